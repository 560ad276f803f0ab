/*
 * planner/relations/json.c — values as JSON, and the rows of access lists.
 *
 * The translator composes objects and arrays (translate_json.c); here is what depends on a value:
 * how it is written. json has no spaces between elements, jsonb has them, as PostgreSQL prints
 * both.
 */
#include "planner/relations/pg_rows.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static void put_quoted(struct obuf *o, bytes t)
{
    obuf_u8(o, '"');
    for (size_t i = 0; i < t.size; i++) {
        static const char escaped[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
        uint8_t ch = t.data[i];
        const char *at = ch ? strchr(escaped, ch) : NULL;
        if (at) {
            obuf_u8(o, '\\');
            obuf_u8(o, (uint8_t)letters[at - escaped]);
        } else if (ch < 0x20) {
            char code[8];
            (void)snprintf(code, sizeof(code), "\\u%04x", ch);
            obuf_put(o, code, 6);
        } else {
            obuf_u8(o, ch);
        }
    }
    obuf_u8(o, '"');
}

static bool put_value(struct rel_env *env, struct obuf *o, const struct cell *v, uint32_t type,
                      bool jsonb);

static bool put_array(struct rel_env *env, struct obuf *o, const struct cell *v, uint32_t element,
                      bool jsonb)
{
    struct rel_array a;
    if (!rel_array_parse(env->arena, v->b, rel_type_is_integer(element), &a))
        return rel_fail(env, ST_INVALID, "22P02", "malformed array");
    obuf_u8(o, '[');
    for (unsigned i = 0; i < a.count; i++) {
        struct cell item = a.items[i];
        if (i > 0)
            obuf_put(o, ", ", jsonb ? 2 : 1);
        bool typed = item.kind == CELL_TEXT && rel_type_family(element) != FAMILY_TEXT &&
                     rel_type_family(element) != FAMILY_OTHER;
        if ((typed && !rel_cast_in(env, item.b, element, &item)) ||
            !put_value(env, o, &item, element, jsonb))
            return false;
    }
    obuf_u8(o, ']');
    return true;
}

static bool put_value(struct rel_env *env, struct obuf *o, const struct cell *v, uint32_t type,
                      bool jsonb)
{
    struct cell text;
    if (v->kind == CELL_NULL) {
        obuf_put(o, "null", 4);
        return true;
    }
    if (type == OID_JSON || type == OID_JSONB) {
        bytes as_is = rel_cell_text(env, v);
        obuf_put(o, as_is.data, as_is.size);
        return true;
    }
    enum rel_family family = rel_type_family(type);
    if (family == FAMILY_BOOL) {
        obuf_put(o, v->i ? "true" : "false", v->i ? 4 : 5);
        return true;
    }
    if (family == FAMILY_ARRAY && v->kind == CELL_TEXT)
        return put_array(env, o, v, rel_type_element_of(type), jsonb);
    if (!rel_cast_out(env, v, type, &text))
        return false;
    bytes t = rel_cell_text(env, &text);
    if (family == FAMILY_NUMBER && !rel_type_is_reg(type)) {
        bool plain = t.size > 0 && (isdigit(t.data[t.size - 1]));
        if (plain)
            obuf_put(o, t.data, t.size);
        else
            put_quoted(o, t); /* NaN, Infinity */
        return true;
    }
    put_quoted(o, t);
    return true;
}

/* Times are written by ISO 8601 in JSON, whatever the session's style. */
static bool put_time(struct rel_env *env, struct obuf *o, const struct cell *v, uint32_t type)
{
    struct pl_style iso = {.zone = env->ctx->style ? env->ctx->style->zone : NULL};
    struct obuf text;
    obuf_init(&text);
    pl_value_to_text(&(struct pl_value){.oid = type, .i = v->i}, &iso, &text);
    uint8_t *space = text.size ? memchr(text.data, ' ', text.size) : NULL;
    if (space && type != OID_DATE)
        *space = 'T';
    bool zone = type == OID_TIMESTAMPTZ && text.size > 3 &&
                (text.data[text.size - 3] == '+' || text.data[text.size - 3] == '-');
    if (zone)
        obuf_put(&text, ":00", 3);
    put_quoted(o, bytes_make(text.data, text.size));
    obuf_fini(&text);
    return true;
}

/* (value, type, is jsonb) */
static bool fn_json(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    struct obuf o;
    obuf_init(&o);
    uint32_t type = (uint32_t)args[1].i;
    bool time = rel_type_family(type) == FAMILY_TIME && args[0].kind == CELL_INT;
    bool ok = time ? put_time(env, &o, &args[0], type)
                   : put_value(env, &o, &args[0], type, args[2].i != 0);
    if (ok)
        *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return ok;
}

/* ---- aclexplode ---- */

static const struct {
    char letter;
    const char *name;
} privileges[] = {{'a', "INSERT"},   {'r', "SELECT"},     {'w', "UPDATE"},    {'d', "DELETE"},
                  {'D', "TRUNCATE"}, {'x', "REFERENCES"}, {'t', "TRIGGER"},   {'X', "EXECUTE"},
                  {'U', "USAGE"},    {'C', "CREATE"},     {'T', "TEMPORARY"}, {'c', "CONNECT"}};

static uint32_t role_oid(struct rel_env *env, bytes name)
{
    if (name.size == 0)
        return 0; /* PUBLIC */
    unsigned count;
    const struct rel_role *r = rel__role_list(env, &count);
    for (unsigned i = 0; i < count; i++)
        if (bytes_eq(rel_quote_ident(env->arena, bytes_str(r[i].name)), name))
            return r[i].oid;
    return 0;
}

/* "{metadb=arwd/metadb,ro=r/metadb}" to texts "grantor grantee PRIVILEGE grantable" */
static bool fn_acl_items(struct rel_env *env, const struct cell *args, unsigned count,
                         struct cell *out)
{
    UNUSED(count);
    struct rel_array acl;
    if (!rel_array_parse(env->arena, rel_cell_text(env, &args[0]), false, &acl))
        return rel_fail(env, ST_INVALID, "22P02", "malformed array");
    unsigned n = 0, capacity = 0;
    struct cell *rows = arena_grow(env->arena, NULL, sizeof(*rows), &capacity, 16);
    for (unsigned i = 0; i < acl.count; i++) {
        bytes item = rel_cell_text(env, &acl.items[i]);
        const uint8_t *equal = memchr(item.data, '=', item.size),
                      *slash = memrchr(item.data, '/', item.size);
        if (!equal || !slash || slash < equal)
            return rel_fail(env, ST_INVALID, "22P02", "malformed access list");
        const uint8_t *end = item.data + item.size;
        uint32_t grantee = role_oid(env, bytes_make(item.data, (size_t)(equal - item.data))),
                 grantor = role_oid(env, bytes_make(slash + 1, (size_t)(end - slash - 1)));
        for (const uint8_t *at = equal + 1; at < slash; at++)
            for (unsigned k = 0; k < ARRAY_LEN(privileges); k++) {
                if (privileges[k].letter != (char)*at)
                    continue;
                if (n == capacity)
                    rows = arena_grow(env->arena, rows, sizeof(*rows), &capacity, 16);
                rows[n++] = rel_text(env, "%u %u %s %d", grantor, grantee, privileges[k].name,
                                     at + 1 < slash && at[1] == '*');
            }
    }
    *out = cell_bytes(rel_array_format(env->arena, rows, n));
    return true;
}

/* Field NUMBER of such a row: grantor, grantee, privilege_type, is_grantable. */
static bool fn_acl_field(struct rel_env *env, const struct cell *args, unsigned count,
                         struct cell *out)
{
    UNUSED(count);
    char name[32];
    unsigned grantor, grantee, grantable;
    if (sscanf(rel_cell_str(env, &args[0]), "%u %u %31s %u", &grantor, &grantee, name,
               &grantable) != 4)
        return rel_fail(env, ST_INTERNAL, "XX000", "malformed row");
    switch (args[1].i) {
    case 0: *out = cell_int(grantor); return true;
    case 1: *out = cell_int(grantee); return true;
    case 2: *out = rel_text(env, "%s", name); return true;
    default: *out = cell_int(grantable); return true;
    }
}

/* What the owner has where nobody was given anything: (kind, owner). */
static bool fn_acldefault(struct rel_env *env, const struct cell *args, unsigned count,
                          struct cell *out)
{
    UNUSED(count);
    bytes kind = rel_cell_text(env, &args[0]);
    unsigned n;
    const struct rel_role *r = rel__role_list(env, &n);
    const char *owner = NULL;
    for (unsigned i = 0; i < n; i++)
        if (r[i].oid == (uint32_t)args[1].i)
            owner = arena_strdup(env->arena, rel_quote_ident(env->arena, bytes_str(r[i].name)));
    if (!owner)
        owner = arena_printf(env->arena, "%lld", (long long)args[1].i);
    static const struct {
        char kind;
        const char *all, *own;
    } defaults[] = {{'c', "", ""},      {'r', "", "arwdDxt"}, {'s', "", "rwU"},
                    {'d', "Tc", "CTc"}, {'f', "X", "X"},      {'l', "U", "U"},
                    {'n', "", "UC"},    {'t', "", "C"},       {'T', "U", "U"}};
    for (unsigned i = 0; i < ARRAY_LEN(defaults); i++) {
        if (kind.size != 1 || defaults[i].kind != (char)kind.data[0])
            continue;
        if (defaults[i].all[0])
            *out = rel_text(env, "{=%s/%s,%s=%s/%s}", defaults[i].all, owner, owner,
                            defaults[i].own, owner);
        else if (defaults[i].own[0])
            *out = rel_text(env, "{%s=%s/%s}", owner, defaults[i].own, owner);
        else
            *out = cell_str("{}");
        return true;
    }
    return rel_fail(env, ST_INVALID, "22023", "unrecognized object type abbreviation: %s",
                    rel_cell_str(env, &args[0]));
}

#define OID_ACLITEM_ARRAY 1034
const struct rel_function rel_json_functions[] = {
    {REL_FN_JSON, "xoi", OID_JSON, true, fn_json},
    {REL_FN_ACL_ITEMS, "x", OID_TEXT_ARRAY, false, fn_acl_items},
    {REL_FN_ACL_FIELD, "xi", OID_TEXT, false, fn_acl_field},
    {"acldefault", "to", OID_ACLITEM_ARRAY, false, fn_acldefault},
};
const unsigned rel_json_function_count = ARRAY_LEN(rel_json_functions);
