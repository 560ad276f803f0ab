/*
 * planner/relations/evaluator_values.c — SQLite's values as cells and back, parameters in, results
 * out.
 */
#include "planner/relations/evaluator.h"

#include <stdlib.h>

/* ---- cells ---- */

struct cell ev_cell(sqlite3_value *v)
{
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER: return cell_int(sqlite3_value_int64(v));
    case SQLITE_FLOAT: return cell_real(sqlite3_value_double(v));
    case SQLITE_NULL: return cell_null();
    default: {
        const void *data = sqlite3_value_text(v);
        return cell_bytes(bytes_make(data ? data : "", (size_t)sqlite3_value_bytes(v)));
    }
    }
}

void ev_result(sqlite3_context *c, const struct cell *v)
{
    switch (v->kind) {
    case CELL_INT: sqlite3_result_int64(c, v->i); break;
    case CELL_REAL: sqlite3_result_double(c, v->d); break;
    case CELL_TEXT:
        sqlite3_result_text64(c, v->b.size ? (const char *)v->b.data : "", v->b.size,
                              SQLITE_TRANSIENT, SQLITE_UTF8);
        break;
    case CELL_NULL:
    default: sqlite3_result_null(c); break;
    }
}

/* ---- results ---- */

/* The array type that travels for OID: itself, or text[] for arrays of names and the like. */
static uint32_t wire_array(uint32_t oid)
{
    bool is_array = false;
    (void)rel_type_find(oid, &is_array);
    return rel_type_is_wire(oid) ? oid : is_array ? OID_TEXT_ARRAY : 0;
}

static bool array_value(struct arena *a, struct rel_env *env, uint32_t oid, bytes text,
                        struct pl_value *out)
{
    uint32_t wire = wire_array(oid), element = rel_type_element_of(wire);
    struct rel_array parsed;
    if (wire == 0 || !rel_array_parse(a, text, false, &parsed))
        return false;
    struct pl_value *items = ARENA_ARRAY(a, struct pl_value, parsed.count + 1);
    for (unsigned i = 0; i < parsed.count; i++) {
        struct err err;
        items[i] = (struct pl_value){.oid = element, .null = parsed.items[i].kind == CELL_NULL};
        if (!items[i].null && pl_value_from_text(element, parsed.items[i].b, env->ctx->style,
                                                 env->ctx->now, a, &items[i], &err) != ST_OK)
            return false;
    }
    *out = (struct pl_value){.oid = wire, .array = {items, parsed.count}};
    return true;
}

/* What does not travel as itself travels as its text, under its own type in the row description. */
static void text_value(struct rel_env *env, const struct cell *c, uint32_t oid,
                       struct pl_value *out)
{
    struct cell text;
    if (!rel_cast_out(env, c, oid, &text))
        text = *c;
    *out = (struct pl_value){.oid = OID_TEXT, .b = rel_cell_text(env, &text)};
}

status ev_value(struct rel_env *env, const struct cell *c, uint32_t oid, struct pl_value *out,
                struct err *err)
{
    *out = (struct pl_value){.oid = oid, .null = true};
    if (c->kind == CELL_NULL)
        return ST_OK;
    if (rel_type_family(oid) == FAMILY_ARRAY) {
        bytes text = rel_cell_text(env, c);
        if (!array_value(env->arena, env, oid, text, out))
            *out = (struct pl_value){.oid = OID_TEXT, .b = text};
        return ST_OK;
    }
    if ((oid == OID_XID || oid == 29) && c->kind == CELL_INT) {
        *out = (struct pl_value){.oid = OID_OID, .i = c->i};
        return ST_OK;
    }
    if (!rel_type_is_wire(oid)) {
        text_value(env, c, oid, out);
        return ST_OK;
    }
    out->null = false;
    bool real = oid == OID_FLOAT4 || oid == OID_FLOAT8;
    if (oid == OID_CHAR) {
        bytes text = rel_cell_text(env, c);
        out->i = text.size ? text.data[0] : 0;
    } else if (real) {
        out->d = c->kind == CELL_REAL ? c->d : c->kind == CELL_INT ? (double)c->i : 0;
    } else if (rel_type_family(oid) == FAMILY_TEXT || oid == OID_NUMERIC) {
        out->b = rel_cell_text(env, c);
    } else if (oid == OID_BYTEA) {
        return pl_value_from_text(oid, rel_cell_text(env, c), env->ctx->style, env->ctx->now,
                                  env->arena, out, err);
    } else if (c->kind == CELL_INT) {
        out->i = c->i;
        if ((oid == OID_INT4 && c->i != (int32_t)c->i) ||
            (oid == OID_INT2 && c->i != (int16_t)c->i))
            return err_set_state(err, ST_INVALID, "22003", "%s out of range", pl_type_name(oid));
    } else {
        return err_set_state(err, ST_INVALID, "22003", "%s out of range", pl_type_name(oid));
    }
    return ST_OK;
}

/* ---- parameters ---- */

static struct cell cell_of_param(struct rel_env *env, const struct pl_value *v)
{
    if (v->null)
        return cell_null();
    if (rel_type_element_of(v->oid) != 0 && v->oid != OID_INT2VECTOR && v->oid != OID_OIDVECTOR) {
        struct cell *items = ARENA_ARRAY(env->keep, struct cell, v->array.count + 1);
        for (unsigned i = 0; i < v->array.count; i++)
            items[i] = cell_of_param(env, &v->array.items[i]);
        return cell_bytes(rel_array_format(env->keep, items, v->array.count));
    }
    switch (v->oid) {
    case OID_FLOAT4:
    case OID_FLOAT8: return cell_real(v->d);
    case OID_NUMERIC: return cell_real(strtod(arena_strdup(env->keep, v->b), NULL));
    case OID_CHAR: {
        char letter = (char)v->i;
        return cell_bytes(arena_copy(env->keep, bytes_make(&letter, letter != 0)));
    }
    case OID_BYTEA: {
        struct obuf o;
        obuf_init(&o);
        pl_value_to_text(v, env->ctx->style, &o);
        struct cell c = cell_bytes(arena_copy(env->keep, bytes_make(o.data, o.size)));
        obuf_fini(&o);
        return c;
    }
    default: break;
    }
    bool number = rel_type_is_integer(v->oid) || v->oid == OID_BOOL ||
                  rel_type_family(v->oid) == FAMILY_TIME ||
                  rel_type_family(v->oid) == FAMILY_INTERVAL;
    return number ? cell_int(v->i) : cell_bytes(v->b);
}

int ev_bind_params(struct rel_env *env, sqlite3_stmt *stmt, const struct pl_value *params,
                   unsigned count)
{
    for (unsigned i = 0; i < count && (int)i < sqlite3_bind_parameter_count(stmt); i++) {
        struct cell c = cell_of_param(env, &params[i]);
        int at = (int)i + 1, rc;
        if (c.kind == CELL_INT)
            rc = sqlite3_bind_int64(stmt, at, c.i);
        else if (c.kind == CELL_REAL)
            rc = sqlite3_bind_double(stmt, at, c.d);
        else if (c.kind == CELL_TEXT)
            rc = sqlite3_bind_text64(stmt, at, c.b.size ? (const char *)c.b.data : "", c.b.size,
                                     SQLITE_TRANSIENT, SQLITE_UTF8);
        else
            rc = sqlite3_bind_null(stmt, at);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}
