/*
 * planner/relations/translate_special.c — functions whose code depends on the types of their
 * arguments: to_char of a time or a number, round of a float or a numeric, substring by a pattern.
 */
#include "planner/relations/translate.h"

static bool one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}

/* What kind of time E is; false: it is none. An untyped literal becomes a moment. */
static status time_kind(struct tr *t, struct tr_ex *e, int location, bool *is,
                        enum rel_time_kind *kind)
{
    if (e->type == OID_UNKNOWN)
        ST_TRY(tr_coerce(t, e, OID_TIMESTAMPTZ, location));
    if (e->type == OID_DATE)
        ST_TRY(tr_coerce(t, e, OID_TIMESTAMP, location));
    enum rel_family family = rel_type_family(e->type);
    *kind = e->type == OID_TIMESTAMP    ? REL_TIME_WALL
            : family == FAMILY_INTERVAL ? REL_TIME_INTERVAL
                                        : REL_TIME_MOMENT;
    *is = family == FAMILY_TIME || family == FAMILY_INTERVAL;
    return ST_OK;
}

/* to_char(value, format) */
static status to_char(struct tr *t, struct tr_ex *args, int location, bool *is, struct tr_ex *out)
{
    *is = args[0].type != OID_UNKNOWN;
    if (!*is)
        return ST_OK; /* PostgreSQL would not know which either */
    ST_TRY(tr_coerce(t, &args[1], OID_TEXT, location));
    if (rel_type_family(args[0].type) == FAMILY_NUMBER) {
        *out = tr_typed(arena_printf(t->a, "%s(%s,%s)", tr_call(t, REL_FN_TO_CHAR_NUMBER, 2),
                                     args[0].sql, args[1].sql),
                        OID_TEXT);
        return ST_OK;
    }
    enum rel_time_kind kind;
    ST_TRY(time_kind(t, &args[0], location, is, &kind));
    if (*is)
        *out = tr_typed(arena_printf(t->a, "%s(%s,%s,%d)", tr_call(t, REL_FN_TO_CHAR_TIME, 3),
                                     args[0].sql, args[1].sql, (int)kind),
                        OID_TEXT);
    return ST_OK;
}

/* date_trunc, extract, date_part of (unit, value) */
static status by_unit(struct tr *t, const char *name, struct tr_ex *args, int location, bool *is,
                      struct tr_ex *out)
{
    enum rel_time_kind kind;
    bool truncates = strcmp(name, "date_trunc") == 0;
    ST_TRY(tr_coerce(t, &args[0], OID_TEXT, location));
    if (truncates && args[1].type == OID_DATE)
        ST_TRY(tr_coerce(t, &args[1], OID_TIMESTAMPTZ, location));
    ST_TRY(time_kind(t, &args[1], location, is, &kind));
    if (!*is)
        return ST_OK;
    uint32_t type = truncates ? args[1].type : name[0] == 'e' ? OID_NUMERIC : OID_FLOAT8;
    const char *function = truncates ? REL_FN_DATE_TRUNC : REL_FN_EXTRACT;
    *out = tr_typed(arena_printf(t->a, "%s(%s,%s,%d)", tr_call(t, function, 3), args[0].sql,
                                 args[1].sql, (int)kind),
                    type);
    return ST_OK;
}

/* Of a numeric the result is numeric; of an integer or a float it is a float. */
static status math(struct tr *t, const char *name, struct tr_ex *args, unsigned count, int location,
                   struct tr_ex *out)
{
    bool numeric = false, floats = false;
    for (unsigned i = 0; i < count; i++) {
        numeric = numeric || args[i].type == OID_NUMERIC;
        floats = floats || args[i].type == OID_FLOAT8 || args[i].type == OID_FLOAT4;
    }
    bool places = count == 2 && name[0] != 'p'; /* round(numeric, integer) */
    if (strcmp(name, "round") == 0 && count == 1 && !numeric) {
        ST_TRY(tr_coerce(t, &args[0], OID_FLOAT8, location));
        *out =
            tr_typed(arena_printf(t->a, "%s(%s)", tr_call(t, REL_FN_ROUND_FLOAT, 1), args[0].sql),
                     OID_FLOAT8);
        return ST_OK;
    }
    if (places && floats && args[0].type != OID_NUMERIC)
        return tr_fail(t, ST_UNSUPPORTED, "42883", location,
                       "function %s(%s, integer) does not exist", name,
                       tr_type_name(t, args[0].type));
    ST_TRY(tr_known_call(t, name, args, count, location, out));
    out->type = places || (numeric && !floats) ? OID_NUMERIC : OID_FLOAT8;
    return ST_OK;
}

/* Text between, or what matches: substring(text from 'pattern'). */
static status substring(struct tr *t, struct tr_ex *args, int location, bool *is, struct tr_ex *out)
{
    bool pattern = (args[1].type == OID_UNKNOWN && args[1].literal) ||
                   rel_type_family(args[1].type) == FAMILY_TEXT;
    *is = pattern;
    if (!pattern)
        return ST_OK;
    ST_TRY(tr_coerce(t, &args[0], OID_TEXT, location));
    ST_TRY(tr_coerce(t, &args[1], OID_TEXT, location));
    *out = tr_typed(arena_printf(t->a, "%s(%s,%s)", tr_call(t, REL_FN_SUBSTRING_MATCH, 2),
                                 args[0].sql, args[1].sql),
                    OID_TEXT);
    return ST_OK;
}

status tr_special(struct tr *t, const char *name, struct tr_ex *args, unsigned count, int location,
                  bool *is, struct tr_ex *out)
{
    static const char *const units[] = {"date_trunc", "extract", "date_part", NULL};
    static const char *const maths[] = {"round", "trunc", "ceil",  "ceiling", "floor",
                                        "sign",  "sqrt",  "power", "pow",     NULL};
    *is = true;
    if (strcmp(name, "pg_typeof") == 0 && count == 1) {
        *out = tr_typed(arena_printf(t->a, "%u", args[0].type), OID_REGTYPE);
        return ST_OK;
    }
    if (strcmp(name, "to_char") == 0 && count == 2)
        return to_char(t, args, location, is, out);
    if (count == 2 && one_of(name, units))
        return by_unit(t, name, args, location, is, out);
    if ((count == 1 || count == 2) && one_of(name, maths))
        return math(t, name, args, count, location, out);
    if (strcmp(name, "encode") == 0 && count == 2) {
        ST_TRY(tr_coerce(t, &args[0], OID_BYTEA, location));
        return tr_known_call(t, name, args, count, location, out);
    }
    if (strcmp(name, "substring") == 0 && count == 2)
        return substring(t, args, location, is, out);
    *is = false;
    return ST_OK;
}
