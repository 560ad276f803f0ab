/*
 * planner/relations/translate_type.c — types of expressions: what an untyped one becomes, what is
 * converted implicitly, casts.
 *
 * Rules here are a small part of PostgreSQL's, in its direction: untyped takes the other side's
 * type; what has no rule is 0A000.
 */
#include "planner/relations/translate.h"

#include <stdlib.h>

const char *tr_type_name(struct tr *t, uint32_t type)
{
    bytes b = type == OID_UNKNOWN ? BYTES_LIT("unknown") : rel_type_format(t->a, type, -1);
    return arena_strdup(t->a, b);
}

/* ---- coercion ---- */

/* A parameter that gets its type here. Types that do not travel as themselves come as text. */
static void type_param(struct tr *t, struct tr_ex *e, uint32_t type)
{
    uint32_t *declared = &t->params[e->param - 1];
    bool array = rel_type_family(type) == FAMILY_ARRAY;
    uint32_t wire = rel_type_is_wire(type) ? type : array ? OID_TEXT_ARRAY : OID_TEXT;
    if (*declared == 0)
        *declared = wire;
    const char *sql = arena_printf(t->a, "?%u", e->param);
    if (*declared == OID_TEXT && !array && rel_type_family(type) != FAMILY_TEXT)
        sql = arena_printf(t->a, "%s(%s,%u)", tr_call(t, REL_FN_IN, 2), sql, type);
    *e = tr_typed(sql, type);
}

static status type_literal(struct tr *t, struct tr_ex *e, uint32_t type, int location)
{
    if (!e->literal) {
        *e = tr_typed("NULL", type);
        return ST_OK;
    }
    if (rel_type_is_integer(type) && !rel_type_is_reg(type)) {
        char *end;
        long long v = strtoll(e->literal, &end, 10);
        while (*end == ' ')
            end++;
        if (*end || end == e->literal)
            return tr_fail(t, ST_INVALID, "22P02", location,
                           "invalid input syntax for type %s: \"%s\"", tr_type_name(t, type),
                           e->literal);
        *e = tr_typed(arena_printf(t->a, v < 0 ? "(%lld)" : "%lld", v), type);
        return ST_OK;
    }
    enum rel_family family = rel_type_family(type);
    bool as_is = (family == FAMILY_TEXT && type != OID_CHAR) || family == FAMILY_ARRAY ||
                 family == FAMILY_OTHER;
    const char *sql = tr_literal(t, e->literal);
    if (!as_is)
        sql = arena_printf(t->a, "%s(%s,%u)", tr_call(t, REL_FN_IN, 2), sql, type);
    *e = tr_typed(sql, type);
    return ST_OK;
}

status tr_coerce(struct tr *t, struct tr_ex *e, uint32_t type, int location)
{
    if (e->type == OID_UNKNOWN) {
        if (e->param) {
            type_param(t, e, type);
            return ST_OK;
        }
        return type_literal(t, e, type, location);
    }
    if (e->type == OID_DATE && (type == OID_TIMESTAMP || type == OID_TIMESTAMPTZ)) {
        *e = tr_typed(arena_printf(t->a, "(%s*86400000000)", e->sql), type);
        return ST_OK;
    }
    if (rel_type_family(e->type) == rel_type_family(type)) {
        if (type == OID_FLOAT8 || type == OID_FLOAT4)
            *e = tr_typed(arena_printf(t->a, "CAST(%s AS REAL)", e->sql), type);
        return ST_OK;
    }
    if (rel_type_is_reg(type) && rel_type_family(e->type) == FAMILY_TEXT) {
        *e =
            tr_typed(arena_printf(t->a, "%s(%s,%u)", tr_call(t, REL_FN_IN, 2), e->sql, type), type);
        return ST_OK;
    }
    return tr_fail(t, ST_INVALID, "42804", location,
                   "a value of type %s cannot stand for one of type %s", tr_type_name(t, e->type),
                   tr_type_name(t, type));
}

status tr_settle(struct tr *t, struct tr_ex *e)
{
    return e->type == OID_UNKNOWN ? tr_coerce(t, e, OID_TEXT, -1) : ST_OK;
}

/* numeric promotion: later in the list wins */
unsigned tr_number_rank(uint32_t type)
{
    static const uint32_t order[] = {OID_INT2,    OID_INT4,   OID_INT8,
                                     OID_NUMERIC, OID_FLOAT4, OID_FLOAT8};
    for (unsigned i = 0; i < ARRAY_LEN(order); i++)
        if (order[i] == type)
            return i + 1;
    return 0;
}

uint32_t tr_wider(uint32_t a, uint32_t b)
{
    if (a == OID_UNKNOWN || a == b)
        return b;
    if (b == OID_UNKNOWN)
        return a;
    if (tr_number_rank(a) && tr_number_rank(b))
        return tr_number_rank(a) > tr_number_rank(b) ? a : b;
    return a == OID_CHAR && rel_type_family(b) == FAMILY_TEXT ? b : a;
}

uint32_t tr_common_type(const struct tr_ex *e, unsigned count)
{
    uint32_t type = OID_UNKNOWN;
    for (unsigned i = 0; i < count; i++)
        type = tr_wider(type, e[i].type);
    return type == OID_UNKNOWN ? OID_TEXT : type;
}

status tr_coerce_all(struct tr *t, struct tr_ex *e, unsigned count, int location, uint32_t *type)
{
    *type = tr_common_type(e, count);
    for (unsigned i = 0; i < count; i++)
        ST_TRY(tr_coerce(t, &e[i], *type, location));
    return ST_OK;
}

/* ---- casts ---- */

const char *tr_call_typed(struct tr *t, const char *function, const char *sql, uint32_t type)
{
    return arena_printf(t->a, "%s(%s,%u)", tr_call(t, function, 2), sql, type);
}

static status cast_array(struct tr *t, struct tr_ex *e, uint32_t type, int location)
{
    enum rel_family family = rel_type_family(e->type);
    if (family == FAMILY_ARRAY) {
        uint32_t from = rel_type_element_of(e->type), to = rel_type_element_of(type);
        if (rel_type_family(to) == FAMILY_TEXT && rel_type_family(from) != FAMILY_TEXT)
            e->sql = tr_call_typed(t, REL_FN_ARRAY_OUT, e->sql, from);
    } else if (family != FAMILY_TEXT) {
        return tr_fail(t, ST_INVALID, "42846", location, "cannot cast type %s to %s",
                       tr_type_name(t, e->type), tr_type_name(t, type));
    }
    *e = tr_typed(e->sql, type);
    return ST_OK;
}

static status cast_number(struct tr *t, struct tr_ex *e, uint32_t type, int location)
{
    bool to_real = type == OID_FLOAT4 || type == OID_FLOAT8 || type == OID_NUMERIC;
    bool from_real = e->type == OID_FLOAT4 || e->type == OID_FLOAT8 || e->type == OID_NUMERIC;
    switch (rel_type_family(e->type)) {
    case FAMILY_NUMBER:
        if (to_real && type != OID_NUMERIC)
            e->sql = arena_printf(t->a, "CAST(%s AS REAL)", e->sql);
        else if (!to_real && from_real)
            e->sql = arena_printf(t->a, "CAST(round(%s) AS INTEGER)", e->sql);
        break;
    case FAMILY_TEXT: e->sql = tr_call_typed(t, REL_FN_IN, e->sql, type); break;
    case FAMILY_BOOL: break;
    case FAMILY_TIME:
    case FAMILY_INTERVAL:
    case FAMILY_ARRAY:
    case FAMILY_OTHER:
    default:
        return tr_fail(t, ST_INVALID, "42846", location, "cannot cast type %s to %s",
                       tr_type_name(t, e->type), tr_type_name(t, type));
    }
    *e = tr_typed(e->sql, type);
    return ST_OK;
}

status tr_cast_text(struct tr *t, struct tr_ex *e, uint32_t type)
{
    enum rel_family family = rel_type_family(e->type);
    uint32_t element = family == FAMILY_ARRAY ? rel_type_element_of(e->type) : 0;
    if (element && rel_type_is_reg(element))
        e->sql = tr_call_typed(t, REL_FN_ARRAY_OUT, e->sql, element);
    else if (family != FAMILY_TEXT && family != FAMILY_ARRAY)
        e->sql = tr_call_typed(t, REL_FN_OUT, e->sql, e->type);
    if (type == OID_CHAR && e->type != OID_CHAR)
        e->sql = arena_printf(t->a, "substr(%s,1,1)", e->sql);
    *e = tr_typed(e->sql, type);
    return ST_OK;
}

status tr_array_item(struct tr *t, struct tr_ex *e)
{
    enum rel_family family = rel_type_family(e->type);
    if (family == FAMILY_BOOL)
        *e = tr_typed(
            arena_printf(t->a, "substr(%s,1,1)", tr_call_typed(t, REL_FN_OUT, e->sql, e->type)),
            OID_TEXT);
    else if (family != FAMILY_NUMBER || rel_type_is_reg(e->type))
        return tr_cast_text(t, e, OID_TEXT);
    return ST_OK;
}

status tr_cast(struct tr *t, struct tr_ex *e, uint32_t type, int location)
{
    if (e->type == OID_UNKNOWN || e->type == type)
        return e->type == type ? ST_OK : tr_coerce(t, e, type, location);
    enum rel_family from = rel_type_family(e->type), to = rel_type_family(type);
    switch (to) {
    case FAMILY_TEXT: return tr_cast_text(t, e, type);
    case FAMILY_ARRAY: return cast_array(t, e, type, location);
    case FAMILY_NUMBER: return cast_number(t, e, type, location);
    case FAMILY_BOOL:
        if (from != FAMILY_NUMBER && from != FAMILY_TEXT)
            break;
        *e = tr_typed(from == FAMILY_NUMBER ? arena_printf(t->a, "(%s<>0)", e->sql)
                                            : tr_call_typed(t, REL_FN_IN, e->sql, type),
                      type);
        return ST_OK;
    case FAMILY_TIME:
        if (e->type == OID_DATE)
            return tr_coerce(t, e, type, location);
        if (from == FAMILY_TIME)
            return tr_fail(t, ST_UNSUPPORTED, "0A000", location,
                           "a cast of type %s to %s is not supported here",
                           tr_type_name(t, e->type), tr_type_name(t, type));
        if (from != FAMILY_TEXT)
            break;
        *e = tr_typed(tr_call_typed(t, REL_FN_IN, e->sql, type), type);
        return ST_OK;
    case FAMILY_INTERVAL:
        if (from != FAMILY_TEXT)
            break;
        *e = tr_typed(tr_call_typed(t, REL_FN_IN, e->sql, type), type);
        return ST_OK;
    case FAMILY_OTHER:
        if (from == FAMILY_TEXT || from == FAMILY_OTHER) {
            *e = tr_typed(e->sql, type);
            return ST_OK;
        }
        break;
    }
    return tr_fail(t, ST_INVALID, "42846", location, "cannot cast type %s to %s",
                   tr_type_name(t, e->type), tr_type_name(t, type));
}
