/*
 * planner/relations/translate_json.c — JSON: objects, arrays and whole rows out of their parts.
 *
 * An object's keys are known here but for json_build_object's and json_object_agg's; values are
 * written by REL_FN_JSON. jsonb has its keys in order of length, then of bytes, where they are
 * constants.
 */
#include "planner/relations/translate.h"

#include <stdlib.h>

struct member {
    const char *key; /* text of the key; NULL: KEY_SQL is an expression */
    const char *key_sql, *value;
};

static const char *json_of(struct tr *t, const struct tr_ex *e, bool jsonb)
{
    return arena_printf(t->a, "%s(%s,%u,%d)", tr_call(t, REL_FN_JSON, 3), e->sql, e->type, jsonb);
}

static int by_key(const void *x, const void *y)
{
    const struct member *a = x, *b = y;
    size_t m = strlen(a->key), n = strlen(b->key);
    return m != n ? (m < n ? -1 : 1) : strcmp(a->key, b->key);
}

/* SEPARATOR stands between key and value. */
static const char *object(struct tr *t, struct member *m, size_t count, const char *comma,
                          const char *separator, bool sorted)
{
    for (size_t i = 0; i < count; i++)
        sorted = sorted && m[i].key;
    if (sorted)
        qsort(m, count, sizeof(*m), by_key);
    const char *sql = "'{'";
    for (size_t i = 0; i < count; i++) {
        struct tr_ex key = tr_typed(m[i].key ? tr_literal(t, m[i].key) : m[i].key_sql, OID_TEXT);
        sql = arena_printf(t->a, "%s||'%s'||%s||'%s'||%s", sql, i ? comma : "",
                           json_of(t, &key, false), separator, m[i].value);
    }
    return arena_printf(t->a, "(%s||'}')", sql);
}

/* The source that N names as a whole row, if it does and no column is called so. */
static const struct tr_source *whole_row(struct tr_scope *s, const PgQuery__Node *n)
{
    if (!n || n->node_case != PG_QUERY__NODE__NODE_COLUMN_REF || n->column_ref->n_fields != 1)
        return NULL;
    const char *name = tr_str(n->column_ref->fields[0]);
    for (; s; s = s->outer)
        for (unsigned i = 0; i < s->count; i++) {
            const struct tr_source *src = s->sources[i];
            for (unsigned c = 0; c < src->count; c++)
                if (strcmp(src->columns[c].name, name) == 0)
                    return NULL;
            if (src->alias && strcmp(src->alias, name) == 0)
                return src;
        }
    return NULL;
}

/* An argument as JSON: a whole row, or a value. ROW says which. */
static status argument(struct tr *t, struct tr_scope *s, const PgQuery__Node *n, bool jsonb,
                       const char **sql, bool *row)
{
    const struct tr_source *src = whole_row(s, n);
    *row = src != NULL;
    if (!src) {
        struct tr_ex e;
        ST_TRY(tr_expr(t, s, n, &e));
        ST_TRY(tr_settle(t, &e));
        *row = rel_type_family(e.type) == FAMILY_ARRAY;
        *sql = json_of(t, &e, jsonb);
        return ST_OK;
    }
    struct member *m = ARENA_ARRAY(t->a, struct member, src->count + 1);
    for (unsigned i = 0; i < src->count; i++) {
        struct tr_ex e =
            tr_typed(src->columns[i].sql,
                     src->columns[i].type == OID_UNKNOWN ? OID_TEXT : src->columns[i].type);
        m[i] = (struct member){.key = src->columns[i].name, .value = json_of(t, &e, jsonb)};
    }
    *sql = object(t, m, src->count, jsonb ? ", " : ",", jsonb ? ": " : ":", jsonb);
    return ST_OK;
}

static status wrong_arguments(struct tr *t, const char *name, int location)
{
    return tr_fail(t, ST_UNSUPPORTED, "42883", location,
                   "function %s with these arguments does not exist", name);
}

static status build_object(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f, bool jsonb,
                           struct tr_ex *out)
{
    size_t count = f->n_args / 2;
    struct member *m = ARENA_ARRAY(t->a, struct member, count + 1);
    if (f->n_args % 2)
        return tr_fail(t, ST_INVALID, "22023", f->location,
                       "argument list must have even number of elements");
    for (size_t i = 0; i < count; i++) {
        struct tr_ex key;
        bool row;
        ST_TRY(tr_expr(t, s, f->args[2 * i], &key));
        m[i].key = key.type == OID_UNKNOWN ? key.literal : NULL;
        ST_TRY(tr_settle(t, &key));
        ST_TRY(tr_cast_text(t, &key, OID_TEXT));
        m[i].key_sql = key.sql;
        ST_TRY(argument(t, s, f->args[2 * i + 1], jsonb, &m[i].value, &row));
    }
    *out = tr_typed(object(t, m, count, ", ", jsonb ? ": " : " : ", jsonb),
                    jsonb ? OID_JSONB : OID_JSON);
    return ST_OK;
}

static status build_array(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f, bool jsonb,
                          struct tr_ex *out)
{
    const char *sql = "'['";
    for (size_t i = 0; i < f->n_args; i++) {
        const char *value;
        bool row;
        ST_TRY(argument(t, s, f->args[i], jsonb, &value, &row));
        sql = arena_printf(t->a, "%s||%s%s", sql, i ? "', '||" : "", value);
    }
    *out = tr_typed(arena_printf(t->a, "(%s||']')", sql), jsonb ? OID_JSONB : OID_JSON);
    return ST_OK;
}

static status aggregate(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f, bool jsonb,
                        struct tr_ex *out)
{
    const char *value, *list;
    bool row;
    ST_TRY(argument(t, s, f->args[0], jsonb, &value, &row));
    ST_TRY(tr_string_agg(t, s, f, value, row && !jsonb ? "', '||char(10)||' '" : "', '", &list));
    *out = tr_typed(arena_printf(t->a, "('['||%s||']')", list), jsonb ? OID_JSONB : OID_JSON);
    return ST_OK;
}

static status object_aggregate(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                               struct tr_ex *out)
{
    struct tr_ex key;
    const char *value, *list;
    bool row;
    ST_TRY(tr_expr(t, s, f->args[0], &key));
    ST_TRY(tr_settle(t, &key));
    ST_TRY(tr_cast_text(t, &key, OID_TEXT));
    ST_TRY(argument(t, s, f->args[1], false, &value, &row));
    value = arena_printf(t->a, "(%s||' : '||%s)", json_of(t, &key, false), value);
    ST_TRY(tr_string_agg(t, s, f, value, "', '", &list));
    *out = tr_typed(arena_printf(t->a, "('{ '||%s||' }')", list), OID_JSON);
    return ST_OK;
}

status tr_json(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f, const char *name,
               bool *is, struct tr_ex *out)
{
    enum what { VALUE, AGG, OBJECT_AGG, BUILD_OBJECT, BUILD_ARRAY };
    static const struct {
        const char *name;
        enum what what;
        bool jsonb;
        size_t args; /* 0: any number */
    } known[] = {
        {"row_to_json", VALUE, false, 1},
        {"to_json", VALUE, false, 1},
        {"to_jsonb", VALUE, true, 1},
        {"array_to_json", VALUE, false, 1},
        {"json_agg", AGG, false, 1},
        {"jsonb_agg", AGG, true, 1},
        {"json_object_agg", OBJECT_AGG, false, 2},
        {"json_build_object", BUILD_OBJECT, false, 0},
        {"jsonb_build_object", BUILD_OBJECT, true, 0},
        {"json_build_array", BUILD_ARRAY, false, 0},
        {"jsonb_build_array", BUILD_ARRAY, true, 0},
    };
    unsigned i = 0;
    while (i < ARRAY_LEN(known) && strcmp(known[i].name, name) != 0)
        i++;
    *is = i < ARRAY_LEN(known);
    if (!*is)
        return ST_OK;
    bool aggregates = known[i].what == AGG || known[i].what == OBJECT_AGG;
    if (known[i].args && f->n_args != known[i].args)
        return wrong_arguments(t, name, f->location);
    if (!aggregates &&
        (f->over || f->agg_star || f->agg_distinct || f->n_agg_order || f->agg_filter))
        return tr_fail(t, ST_UNSUPPORTED, "0A000", f->location,
                       "function %s is no aggregate that is known here", name);
    switch (known[i].what) {
    case AGG: return aggregate(t, s, f, known[i].jsonb, out);
    case OBJECT_AGG: return object_aggregate(t, s, f, out);
    case BUILD_OBJECT: return build_object(t, s, f, known[i].jsonb, out);
    case BUILD_ARRAY: return build_array(t, s, f, known[i].jsonb, out);
    case VALUE:
    default: break;
    }
    const char *value;
    bool row;
    ST_TRY(argument(t, s, f->args[0], known[i].jsonb, &value, &row));
    bool array_only = name[0] == 'a', row_only = name[0] == 'r';
    if ((row_only && !whole_row(s, f->args[0])) || (array_only && !row))
        return wrong_arguments(t, name, f->location);
    /* NULL stays NULL, but for a row. */
    if (!whole_row(s, f->args[0])) {
        struct tr_ex e;
        ST_TRY(tr_expr(t, s, f->args[0], &e));
        value = arena_printf(t->a, "(CASE WHEN %s IS NULL THEN NULL ELSE %s END)", e.sql, value);
    }
    *out = tr_typed(value, known[i].jsonb ? OID_JSONB : OID_JSON);
    return ST_OK;
}
