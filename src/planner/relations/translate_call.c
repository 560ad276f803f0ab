/*
 * planner/relations/translate_call.c — function calls: scalar, aggregate, window, set-returning.
 *
 * A set-returning function in a select list becomes a table function in FROM that may refer to the
 * sources before it (SQLite's table-valued functions are lateral). Several of them run in step:
 * over one argument they share one scan.
 */
#include "planner/relations/translate.h"

#include <limits.h>

/* The name without pg_catalog or information_schema; other schemas are not the evaluator's. */
static status call_name(struct tr *t, const PgQuery__FuncCall *f, const char **name)
{
    const char *schema = f->n_funcname > 1 ? tr_str(f->funcname[f->n_funcname - 2]) : NULL;
    *name = f->n_funcname ? tr_str(f->funcname[f->n_funcname - 1]) : "";
    if (!schema || strcmp(schema, "pg_catalog") == 0 || strcmp(schema, "information_schema") == 0)
        return ST_OK;
    if (strcmp(schema, "metadb") == 0)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", f->location,
                       "function metadb.%s is called on its own: SELECT metadb.%s(…)", *name,
                       *name);
    return tr_fail(t, ST_UNSUPPORTED, "42883", f->location, "function %s.%s does not exist", schema,
                   *name);
}

static status no_function(struct tr *t, const char *name, const struct tr_ex *args, unsigned count,
                          int location)
{
    const char *list = "";
    for (unsigned i = 0; i < count; i++) {
        bytes type = args[i].type == OID_UNKNOWN ? BYTES_LIT("unknown")
                                                 : rel_type_format(t->a, args[i].type, -1);
        list = arena_printf(t->a, "%s%s%.*s", list, i ? ", " : "", (int)type.size,
                            (const char *)type.data);
    }
    status st =
        tr_fail(t, ST_UNSUPPORTED, "42883", location, "function %s(%s) does not exist", name, list);
    err_hint(t->err, "No function matches the given name and argument types. You might need to add "
                     "explicit type casts.");
    return st;
}

/* Values that print otherwise than SQLite would: names behind OIDs, times, booleans. */
static status print_arg(struct tr *t, struct tr_ex *e, int location)
{
    enum rel_family family = rel_type_family(e->type);
    if (rel_type_is_reg(e->type) || family == FAMILY_TIME || family == FAMILY_INTERVAL ||
        family == FAMILY_BOOL)
        return tr_cast(t, e, OID_TEXT, location);
    return ST_OK;
}

static status coerce_arg(struct tr *t, const struct rel_function *f, unsigned i, struct tr_ex *e,
                         int location)
{
    uint32_t wanted = rel_function_arg_type(f, i);
    if (wanted == 0) {
        ST_TRY(tr_settle(t, e));
        if (rel_type_family(e->type) == FAMILY_BOOL && strncmp(f->name, "quote_", 6) != 0 &&
            f->result == OID_TEXT && f->name[0] != '.')
            return tr_array_item(t, e); /* what its output function says: t, f */
        return f->result == OID_TEXT && f->name[0] != '.' ? print_arg(t, e, location) : ST_OK;
    }
    if (wanted == OID_TEXT_ARRAY && rel_type_family(e->type) == FAMILY_ARRAY)
        return ST_OK;
    return tr_coerce(t, e, wanted, location);
}

static uint32_t result_type(const struct rel_function *f, const struct tr_ex *args, unsigned count)
{
    if (f->result == REL_RESULT_ARG1)
        return count ? args[0].type : OID_TEXT;
    if (f->result == REL_RESULT_ELEMENT)
        return count ? rel_type_element_of(args[0].type) : OID_TEXT;
    return f->result;
}

status tr_known_call(struct tr *t, const char *name, struct tr_ex *args, unsigned count,
                     int location, struct tr_ex *out)
{
    int i = name[0] == '.' ? -1 : rel_function_find(name, count);
    if (i < 0)
        return no_function(t, name, args, count, location);
    const struct rel_function *f = rel_function_at((unsigned)i);
    const char *list = "";
    for (unsigned k = 0; k < count; k++) {
        struct tr_ex as_given = args[k];
        if (coerce_arg(t, f, k, &args[k], location) != ST_OK) {
            bool bad_value = strcmp(t->err->sqlstate, "22P02") == 0;
            args[k] = as_given;
            return bad_value ? t->err->code : no_function(t, name, args, count, location);
        }
        list = arena_printf(t->a, "%s%s%s", list, k ? "," : "", args[k].sql);
    }
    t->q->functions[i] = true;
    *out = tr_typed(arena_printf(t->a, REL_SQL_FUNCTION "(%s)", (unsigned)i, list),
                    result_type(f, args, count));
    return ST_OK;
}

/* ---- aggregates and windows ---- */

enum aggregate { AGG_NONE, AGG_COUNT, AGG_SAME, AGG_SUM, AGG_AVG, AGG_BOOL, AGG_ARRAY, AGG_STRING };
static const struct {
    const char *name, *sql;
    enum aggregate kind;
} aggregates[] = {
    {"count", "count", AGG_COUNT},
    {"min", "min", AGG_SAME},
    {"max", "max", AGG_SAME},
    {"sum", "sum", AGG_SUM},
    {"avg", "avg", AGG_AVG},
    {"bool_and", "min", AGG_BOOL},
    {"every", "min", AGG_BOOL},
    {"bool_or", "max", AGG_BOOL},
    {"array_agg", REL_SQL_ARRAY_AGG, AGG_ARRAY},
    {"string_agg", REL_SQL_STRING_AGG, AGG_STRING},
};

static const struct {
    const char *name;
    uint32_t result; /* 0: of the first argument */
} windows[] = {
    {"row_number", OID_INT8}, {"rank", OID_INT8}, {"dense_rank", OID_INT8},
    {"ntile", OID_INT4},      {"lag", 0},         {"lead", 0},
    {"first_value", 0},       {"last_value", 0},
};

#define FRAME_DEFAULT 1058 /* RANGE UNBOUNDED PRECEDING, as nobody wrote it */

/* OVER w: what the WINDOW clause says of it. */
static status named_window(struct tr *t, const struct tr_scope *s, const PgQuery__WindowDef **w)
{
    const char *name = (*w)->name;
    for (size_t i = 0; s->select && i < s->select->n_window_clause; i++) {
        const PgQuery__WindowDef *d = s->select->window_clause[i]->window_def;
        if (strcmp(d->name, name) == 0) {
            *w = d;
            return ST_OK;
        }
    }
    return tr_fail(t, ST_INVALID, "42704", (*w)->location, "window \"%s\" does not exist", name);
}

static status over(struct tr *t, struct tr_scope *s, const PgQuery__WindowDef *w, const char **sql)
{
    if (w->name[0])
        ST_TRY(named_window(t, s, &w));
    if (w->refname[0] || w->frame_options != FRAME_DEFAULT)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", w->location,
                       "frames, and windows made of others, are not supported here");
    const char *partition = "", *order = "";
    for (size_t i = 0; i < w->n_partition_clause; i++) {
        struct tr_ex e;
        ST_TRY(tr_expr(t, s, w->partition_clause[i], &e));
        partition = arena_printf(t->a, "%s%s%s", partition, i ? "," : "PARTITION BY ", e.sql);
    }
    if (w->n_order_clause) {
        ST_TRY(tr_sort_list(t, s, w->order_clause, w->n_order_clause, &order));
        order = arena_printf(t->a, " ORDER BY %s", order);
    }
    *sql = arena_printf(t->a, " OVER (%s%s)", partition, order);
    return ST_OK;
}

/* Behind the arguments: FILTER and OVER. */
static status tail(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f, const char **sql)
{
    const char *filter = "", *window = "";
    if (f->agg_filter) {
        ST_TRY(tr_bool(t, s, f->agg_filter, "FILTER", &filter));
        filter = arena_printf(t->a, " FILTER (WHERE %s)", filter);
    }
    if (f->over)
        ST_TRY(over(t, s, f->over, &window));
    *sql = arena_printf(t->a, "%s%s", filter, window);
    return ST_OK;
}

/* Sort keys of an aggregate: their directions, one letter each, and their SQL. */
static status agg_keys(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                       const char **flags, const char **keys)
{
    if (f->n_agg_order > TR_AGG_KEYS_MAX)
        return tr_fail(t, ST_TOO_COMPLEX, "54001", f->location, "too many sort keys");
    *flags = f->agg_distinct ? "D" : "";
    *keys = "";
    for (size_t i = 0; i < f->n_agg_order; i++) {
        const PgQuery__SortBy *by = f->agg_order[i]->sort_by;
        struct tr_ex e;
        ST_TRY(tr_expr(t, s, by->node, &e));
        ST_TRY(tr_settle(t, &e));
        bool down = by->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_DESC;
        *flags = arena_printf(t->a, "%s%c", *flags, down ? 'd' : 'a');
        *keys = arena_printf(t->a, "%s,%s", *keys, e.sql);
    }
    return ST_OK;
}

static status collecting(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                         enum aggregate kind, const char *sql, struct tr_ex *args,
                         struct tr_ex *out)
{
    const char *flags = "", *keys = "", *rest;
    uint32_t type = kind == AGG_ARRAY ? rel_type_array_of(args[0].type) : OID_TEXT;
    ST_TRY(agg_keys(t, s, f, &flags, &keys));
    ST_TRY(tail(t, s, f, &rest));
    ST_TRY(kind == AGG_ARRAY ? tr_array_item(t, &args[0]) : print_arg(t, &args[0], f->location));
    const char *separator = kind == AGG_STRING ? arena_printf(t->a, ",%s", args[1].sql) : "";
    *out = tr_typed(
        arena_printf(t->a, "%s('%s',%s%s%s)%s", sql, flags, args[0].sql, separator, keys, rest),
        type ? type : OID_TEXT_ARRAY);
    return ST_OK;
}

status tr_string_agg(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                     const char *value, const char *separator, const char **sql)
{
    const char *flags, *keys, *rest;
    if (!s)
        return tr_fail(t, ST_UNSUPPORTED, "42803", f->location,
                       "aggregate functions are not allowed here");
    if (!f->over)
        s->aggregates = true;
    ST_TRY(agg_keys(t, s, f, &flags, &keys));
    ST_TRY(tail(t, s, f, &rest));
    *sql = arena_printf(t->a, REL_SQL_STRING_AGG "('%s',%s,%s%s)%s", flags, value, separator, keys,
                        rest);
    return ST_OK;
}

static uint32_t aggregate_type(enum aggregate kind, uint32_t arg)
{
    switch (kind) {
    case AGG_COUNT: return OID_INT8;
    case AGG_SUM:
        return arg == OID_INT8 ? OID_NUMERIC : arg == OID_INT2 || arg == OID_INT4 ? OID_INT8 : arg;
    case AGG_AVG: return arg == OID_FLOAT4 || arg == OID_FLOAT8 ? OID_FLOAT8 : OID_NUMERIC;
    case AGG_BOOL: return OID_BOOL;
    case AGG_NONE:
    case AGG_SAME: return arg == OID_NAME || arg == OID_VARCHAR ? OID_TEXT : arg;
    case AGG_ARRAY:
    case AGG_STRING:
    default: return arg;
    }
}

static status aggregate(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                        unsigned which, struct tr_ex *args, unsigned count, struct tr_ex *out)
{
    enum aggregate kind = aggregates[which].kind;
    const char *name = aggregates[which].name, *rest;
    if (!f->over)
        s->aggregates = true;
    if (f->agg_star && kind == AGG_COUNT) {
        ST_TRY(tail(t, s, f, &rest));
        *out = tr_typed(arena_printf(t->a, "count(*)%s", rest), OID_INT8);
        return ST_OK;
    }
    if (count != (kind == AGG_STRING ? 2u : 1u))
        return no_function(t, name, args, count, f->location);
    for (unsigned i = 0; i < count; i++)
        ST_TRY(tr_settle(t, &args[i]));
    if (kind == AGG_ARRAY || kind == AGG_STRING)
        return collecting(t, s, f, kind, aggregates[which].sql, args, out);
    bool numbers = kind == AGG_SUM || kind == AGG_AVG;
    enum rel_family family = rel_type_family(args[0].type);
    if ((numbers && family != FAMILY_NUMBER && family != FAMILY_INTERVAL) ||
        (kind == AGG_BOOL && family != FAMILY_BOOL))
        return no_function(t, name, args, count, f->location);
    ST_TRY(tail(t, s, f, &rest));
    *out = tr_typed(arena_printf(t->a, "%s(%s%s)%s", aggregates[which].sql,
                                 f->agg_distinct ? "DISTINCT " : "", args[0].sql, rest),
                    aggregate_type(kind, args[0].type));
    return ST_OK;
}

static status window(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f, unsigned which,
                     struct tr_ex *args, unsigned count, struct tr_ex *out)
{
    const char *list = "", *rest;
    for (unsigned i = 0; i < count; i++) {
        ST_TRY(tr_settle(t, &args[i]));
        list = arena_printf(t->a, "%s%s%s", list, i ? "," : "", args[i].sql);
    }
    ST_TRY(tail(t, s, f, &rest));
    uint32_t type = windows[which].result ? windows[which].result : count ? args[0].type : OID_TEXT;
    *out = tr_typed(arena_printf(t->a, "%s(%s)%s", windows[which].name, list, rest), type);
    return ST_OK;
}

/* ---- set-returning functions ---- */

static bool is_srf(const char *name)
{
    return strcmp(name, "unnest") == 0 || strcmp(name, "generate_subscripts") == 0 ||
           strcmp(name, "_pg_expandarray") == 0 || strcmp(name, "generate_series") == 0 ||
           strcmp(name, "pg_partition_ancestors") == 0 || strcmp(name, "aclexplode") == 0;
}

static status arguments(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                        struct tr_ex **args, unsigned *count)
{
    *count = (unsigned)f->n_args;
    *args = ARENA_ARRAY(t->a, struct tr_ex, *count + 1);
    for (unsigned i = 0; i < *count; i++)
        ST_TRY(tr_expr(t, s, f->args[i], &(*args)[i]));
    return ST_OK;
}

static status series_call(struct tr *t, struct tr_ex *args, unsigned count, int location,
                          const char **sql, uint32_t *type)
{
    if (count < 2 || count > 3)
        return no_function(t, "generate_series", args, count, location);
    for (unsigned i = 0; i < count; i++) {
        ST_TRY(tr_coerce(t, &args[i], OID_INT4, location));
        if (!rel_type_is_integer(args[i].type))
            return no_function(t, "generate_series", args, count, location);
    }
    *type = tr_common_type(args, count);
    *sql = arena_printf(t->a, REL_SQL_SERIES "(%s,%s,%s)", args[0].sql, args[1].sql,
                        count > 2 ? args[2].sql : "1");
    return ST_OK;
}

static status unnest_call(struct tr *t, struct tr_ex *args, unsigned count, const char *name,
                          int location, const char **sql, uint32_t *element)
{
    if (strcmp(name, "pg_partition_ancestors") == 0 && count == 1) { /* there are no partitions */
        *element = OID_REGCLASS;
        *sql = REL_SQL_UNNEST "('{}',1)";
        return tr_coerce(t, &args[0], OID_REGCLASS, location);
    }
    if (strcmp(name, "aclexplode") == 0 && count == 1) {
        *element = OID_ACL_ROW;
        ST_TRY(tr_settle(t, &args[0]));
        *sql = arena_printf(t->a, REL_SQL_UNNEST "(%s(%s),0)", tr_call(t, REL_FN_ACL_ITEMS, 1),
                            args[0].sql);
        return ST_OK;
    }
    bool subscripts = strcmp(name, "generate_subscripts") == 0;
    if (count != (subscripts ? 2u : 1u))
        return no_function(t, name, args, count, location);
    ST_TRY(tr_coerce(t, &args[0], args[0].type == OID_UNKNOWN ? OID_TEXT_ARRAY : args[0].type,
                     location));
    *element = rel_type_element_of(args[0].type);
    if (*element == 0)
        return no_function(t, name, args, count, location);
    *sql = arena_printf(t->a, REL_SQL_UNNEST "(%s,%d)", args[0].sql, rel_type_is_integer(*element));
    return ST_OK;
}

/* In a select list: the scan of this argument, made at its first use. */
static const char *srf_scan(struct tr *t, struct tr_scope *s, const char *call)
{
    struct tr_srf **at = &s->srfs;
    for (; *at; at = &(*at)->next)
        if (strcmp((*at)->argument, call) == 0)
            return (*at)->sql;
    *at = ARENA_NEW(t->a, struct tr_srf);
    (*at)->argument = call;
    (*at)->sql = tr_name(t, "t");
    return (*at)->sql;
}

static status srf(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f, const char *name,
                  struct tr_ex *out)
{
    struct tr_ex *args;
    unsigned count;
    const char *call;
    uint32_t element;
    if (!s || !s->srf_allowed)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", f->location,
                       "set-returning functions are not allowed here");
    ST_TRY(arguments(t, s, f, &args, &count));
    if (strcmp(name, "generate_series") == 0) {
        ST_TRY(series_call(t, args, count, f->location, &call, &element));
        *out = tr_typed(arena_printf(t->a, "%s.value", srf_scan(t, s, call)), element);
        return ST_OK;
    }
    ST_TRY(unnest_call(t, args, count, name, f->location, &call, &element));
    const char *scan = srf_scan(t, s, call);
    if (strcmp(name, "unnest") == 0 || strcmp(name, "pg_partition_ancestors") == 0 ||
        strcmp(name, "aclexplode") == 0)
        *out = tr_typed(arena_printf(t->a, "%s.value", scan), element);
    else if (strcmp(name, "generate_subscripts") == 0)
        *out = tr_typed(arena_printf(t->a, "%s.sub", scan), OID_INT4);
    else
        *out = tr_typed(
            arena_printf(t->a, "%s(%s.value,%s.ord)", tr_call(t, REL_FN_ROW, 2), scan, scan),
            OID_XN);
    return ST_OK;
}

static struct tr_column column(const char *name, const char *sql, uint32_t type)
{
    return (struct tr_column){.name = name, .sql = sql, .type = type, .typmod = -1};
}

/* unnest(a, b, …): in step, NULL where one is shorter. */
static status unnest_many(struct tr *t, struct tr_ex *args, unsigned count, int location,
                          const char **sql, struct tr_source *src)
{
    if (count > REL_UNNEST_MAX)
        return tr_fail(t, ST_TOO_COMPLEX, "54001", location, "unnest() of too many arrays");
    src->sql = tr_name(t, "t");
    src->columns = ARENA_ARRAY(t->a, struct tr_column, count + 1);
    const char *list = "";
    for (unsigned i = 0; i < count; i++) {
        if (args[i].type == OID_UNKNOWN)
            ST_TRY(tr_coerce(t, &args[i], OID_TEXT_ARRAY, location));
        uint32_t element = rel_type_element_of(args[i].type);
        if (element == 0)
            return no_function(t, "unnest", args, count, location);
        list = arena_printf(t->a, "%s,%s,%d", list, args[i].sql, rel_type_is_integer(element));
        src->columns[src->count++] =
            column("unnest", arena_printf(t->a, "%s.value%u", src->sql, i + 1), element);
    }
    *sql = arena_printf(t->a, REL_SQL_UNNEST_MANY "(%u%s) AS %s", count, list, src->sql);
    return ST_OK;
}

static void acl_columns(struct tr *t, const char *value, struct tr_source *src)
{
    static const struct {
        const char *name;
        uint32_t type;
    } fields[TR_ACL_FIELDS] = {TR_ACL_FIELD_LIST};
    src->columns = ARENA_ARRAY(t->a, struct tr_column, TR_ACL_FIELDS + 1);
    for (unsigned i = 0; i < TR_ACL_FIELDS; i++)
        src->columns[src->count++] =
            column(fields[i].name,
                   arena_printf(t->a, "%s(%s,%u)", tr_call(t, REL_FN_ACL_FIELD, 2), value, i),
                   fields[i].type);
}

status tr_table_function(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f, bool *is,
                         const char **sql, struct tr_source *src)
{
    const char *name;
    ST_TRY(call_name(t, f, &name));
    bool options = strcmp(name, "pg_options_to_table") == 0;
    *is = is_srf(name) || options;
    if (!*is)
        return ST_OK;
    struct tr_ex *args;
    unsigned count;
    uint32_t element;
    const char *call;
    ST_TRY(arguments(t, s, f, &args, &count));
    if (strcmp(name, "unnest") == 0 && count > 1)
        return unnest_many(t, args, count, f->location, sql, src);
    bool series = strcmp(name, "generate_series") == 0;
    if (series)
        ST_TRY(series_call(t, args, count, f->location, &call, &element));
    else
        ST_TRY(unnest_call(t, args, count, name, f->location, &call, &element));
    src->sql = tr_name(t, "t");
    src->columns = ARENA_ARRAY(t->a, struct tr_column, 3);
    const char *value = arena_printf(t->a, "%s.value", src->sql),
               *ord = arena_printf(t->a, "%s.ord", src->sql);
    if (strcmp(name, "_pg_expandarray") == 0) {
        src->columns[src->count++] = column("x", value, element);
        src->columns[src->count++] = column("n", ord, OID_INT4);
    } else if (strcmp(name, "aclexplode") == 0) {
        acl_columns(t, value, src);
    } else if (options) {
        const char *at = arena_printf(t->a, "instr(%s,'=')", value);
        src->columns[src->count++] =
            column("option_name", arena_printf(t->a, "substr(%s,1,%s-1)", value, at), OID_TEXT);
        src->columns[src->count++] =
            column("option_value", arena_printf(t->a, "substr(%s,%s+1)", value, at), OID_TEXT);
    } else {
        bool subscripts = strcmp(name, "generate_subscripts") == 0;
        const char *heading = arena_printf(t->a, "%s", name);
        src->columns[src->count++] =
            column(heading, subscripts ? arena_printf(t->a, "%s.sub", src->sql) : value,
                   subscripts ? OID_INT4 : element);
    }
    *sql = arena_printf(t->a, "%s AS %s", call, src->sql);
    return ST_OK;
}

/* ---- calls ---- */

status tr_function(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f, struct tr_ex *out)
{
    const char *name;
    ST_TRY(call_name(t, f, &name));
    if (f->func_variadic || f->agg_within_group)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", f->location,
                       "this form of a function call is not supported here");
    if (is_srf(name))
        return srf(t, s, f, name, out);
    bool is;
    ST_TRY(tr_json(t, s, f, name, &is, out));
    if (is)
        return ST_OK;
    struct tr_ex *args;
    unsigned count;
    ST_TRY(arguments(t, s, f, &args, &count));
    for (unsigned i = 0; i < ARRAY_LEN(aggregates); i++)
        if (strcmp(aggregates[i].name, name) == 0)
            return s ? aggregate(t, s, f, i, args, count, out)
                     : tr_fail(t, ST_UNSUPPORTED, "42803", f->location,
                               "aggregate functions are not allowed here");
    for (unsigned i = 0; f->over && i < ARRAY_LEN(windows); i++)
        if (strcmp(windows[i].name, name) == 0)
            return window(t, s, f, i, args, count, out);
    if (f->over || f->agg_star || f->agg_distinct || f->n_agg_order || f->agg_filter)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", f->location,
                       "function %s is no aggregate that is known here", name);
    ST_TRY(tr_special(t, name, args, count, f->location, &is, out));
    return is ? ST_OK : tr_known_call(t, name, args, count, f->location, out);
}
