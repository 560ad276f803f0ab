/*
 * planner/relations/translate_select.c — SELECT: sources, list, groups, order, set operations.
 *
 * Every query comes out with its columns named c1…cn, whatever clients call them; a source is an
 * alias t7 over a relation, a sub-query or a table function. Scopes nest as the queries do.
 *
 * NULLs sort last ascending and first descending, as in PostgreSQL and unlike in SQLite, so every
 * sort key says it. A query with an order gets a LIMIT, because SQLite may drop the order of a
 * sub-query without one.
 */
#include "planner/relations/translate.h"

#include <ctype.h>

/* ---- sources ---- */

static void add_source(struct tr *t, struct tr_scope *s, struct tr_source *src)
{
    if (s->count == s->capacity)
        s->sources = arena_grow(t->a, s->sources, sizeof(struct tr_source *), &s->capacity, 8);
    s->sources[s->count++] = src;
}

/* AS alias (a, b): the first columns take these names. */
static status apply_alias(struct tr *t, struct tr_source *src, const PgQuery__Alias *alias)
{
    if (!alias)
        return ST_OK;
    src->alias = alias->aliasname;
    if (alias->n_colnames > src->count)
        return tr_fail(t, ST_INVALID, "42P10", -1,
                       "table \"%s\" has %u columns available but %zu columns specified",
                       alias->aliasname, src->count, alias->n_colnames);
    for (size_t i = 0; i < alias->n_colnames; i++)
        src->columns[i].name = tr_str(alias->colnames[i]);
    return ST_OK;
}

/* Columns c1…cn of what stands behind SRC->sql. */
static void number_columns(struct tr *t, struct tr_source *src, const struct tr_column *from,
                           unsigned count)
{
    src->count = count;
    src->columns = ARENA_ARRAY(t->a, struct tr_column, count + 1);
    for (unsigned i = 0; i < count; i++) {
        src->columns[i] = from[i];
        src->columns[i].hidden = false;
        src->columns[i].sql = arena_printf(t->a, "%s." REL_SQL_COLUMN, src->sql, i + 1);
    }
}

static const struct tr_cte *find_cte(const struct tr_scope *s, const char *name)
{
    for (; s; s = s->outer)
        for (const struct tr_cte *c = s->ctes; c; c = c->next)
            if (strcmp(c->name, name) == 0)
                return c;
    return NULL;
}

static status relation(struct tr *t, struct tr_scope *s, const PgQuery__RangeVar *r,
                       const char **sql)
{
    const char *schema = r->schemaname[0] ? r->schemaname : NULL;
    struct tr_source *src = ARENA_NEW(t->a, struct tr_source);
    src->sql = tr_name(t, "t");
    src->alias = r->relname;
    const struct tr_cte *cte = schema ? NULL : find_cte(s, r->relname);
    if (cte) {
        number_columns(t, src, cte->columns, cte->count);
        *sql = arena_printf(t->a, "%s AS %s", cte->sql, src->sql);
    } else {
        const struct rel *rel = rel_find(schema, r->relname);
        if (!rel)
            return tr_fail(t, ST_UNSUPPORTED, "42P01", r->location,
                           "relation \"%s%s%s\" does not exist", schema ? schema : "",
                           schema ? "." : "", r->relname);
        if (rel->table) {
            status st = tr_fail(t, ST_UNSUPPORTED, "0A000", r->location,
                                "table %s cannot be joined with catalogue relations or read by a "
                                "statement without a pattern",
                                rel->name);
            err_hint(t->err, "SELECT * FROM metadb.patterns lists what can be asked.");
            return st;
        }
        t->rel_used[rel->index] = true;
        src->rel = rel;
        struct tr_column *columns = ARENA_ARRAY(t->a, struct tr_column, rel->column_count);
        for (unsigned i = 0; i < rel->column_count; i++)
            columns[i] = (struct tr_column){
                .name = rel->columns[i].name, .type = rel->columns[i].type, .typmod = -1};
        number_columns(t, src, columns, rel->column_count);
        *sql = arena_printf(t->a, REL_SQL_RELATION " AS %s", rel->index, src->sql);
    }
    ST_TRY(apply_alias(t, src, r->alias));
    add_source(t, s, src);
    return ST_OK;
}

static status sub_select(struct tr *t, struct tr_scope *s, const PgQuery__RangeSubselect *r,
                         const char **sql)
{
    if (r->lateral || !r->subquery || r->subquery->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                       "LATERAL sub-queries are not supported here");
    struct tr_query q;
    struct tr_scope only_ctes = {.outer = s->outer, .ctes = s->ctes};
    ST_TRY(tr_select(t, &only_ctes, r->subquery->select_stmt, &q));
    struct tr_source *src = ARENA_NEW(t->a, struct tr_source);
    src->sql = tr_name(t, "t");
    number_columns(t, src, q.columns, q.count);
    ST_TRY(apply_alias(t, src, r->alias));
    add_source(t, s, src);
    *sql = arena_printf(t->a, "(%s) AS %s", q.sql, src->sql);
    return ST_OK;
}

/* A function that stands for a relation: pg_timezone_names(). */
static status relation_function(struct tr *t, const struct rel *rel, struct tr_source *src,
                                const char **sql)
{
    t->rel_used[rel->index] = true;
    src->sql = tr_name(t, "t");
    struct tr_column *columns = ARENA_ARRAY(t->a, struct tr_column, rel->column_count);
    for (unsigned i = 0; i < rel->column_count; i++)
        columns[i] = (struct tr_column){
            .name = rel->columns[i].name, .type = rel->columns[i].type, .typmod = -1};
    number_columns(t, src, columns, rel->column_count);
    *sql = arena_printf(t->a, REL_SQL_RELATION " AS %s", rel->index, src->sql);
    return ST_OK;
}

static status scalar_function(struct tr *t, struct tr_scope *s, const PgQuery__Node *n,
                              struct tr_source *src, const char **sql)
{
    struct tr_ex e;
    struct tr_scope outer = {.outer = s->outer, .ctes = s->ctes};
    ST_TRY(tr_expr(t, &outer, n, &e));
    ST_TRY(tr_settle(t, &e));
    src->sql = tr_name(t, "t");
    struct tr_column c = {.name = tr_heading(n), .type = e.type, .typmod = e.typmod};
    number_columns(t, src, &c, 1);
    *sql = arena_printf(t->a, "(SELECT %s AS c1) AS %s", e.sql, src->sql);
    return ST_OK;
}

static status function(struct tr *t, struct tr_scope *s, const PgQuery__RangeFunction *r,
                       const char **sql)
{
    const PgQuery__Node *item = r->n_functions == 1 ? r->functions[0] : NULL;
    if (item && item->node_case == PG_QUERY__NODE__NODE_LIST)
        item = item->list->n_items ? item->list->items[0] : NULL;
    if (!item || r->n_coldeflist)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                       "ROWS FROM and column definitions are not supported here");
    struct tr_source *src = ARENA_NEW(t->a, struct tr_source);
    bool is = false, relation = false;
    if (item->node_case == PG_QUERY__NODE__NODE_FUNC_CALL) {
        const PgQuery__FuncCall *f = item->func_call;
        const struct rel *rel = rel_function_relation(tr_str(f->funcname[f->n_funcname - 1]));
        if (rel && f->n_args == 0) {
            ST_TRY(relation_function(t, rel, src, sql));
            is = relation = true;
        } else {
            ST_TRY(tr_table_function(t, s, f, &is, sql, src));
        }
    }
    if (!is)
        ST_TRY(scalar_function(t, s, item, src, sql));
    src->alias = tr_heading(item);
    if (r->alias && r->alias->n_colnames == 0 && src->count == 1)
        src->columns[0].name = r->alias->aliasname; /* a scalar's column is called as its source */
    if (r->ordinality) {
        if (!is || relation)
            return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                           "WITH ORDINALITY is not supported with this function");
        struct tr_column *columns = ARENA_ARRAY(t->a, struct tr_column, src->count + 1);
        memcpy(columns, src->columns, sizeof(*columns) * src->count);
        src->columns = columns;
        src->columns[src->count++] =
            (struct tr_column){.name = "ordinality",
                               .sql = arena_printf(t->a, "%s.ord", src->sql),
                               .type = OID_INT8,
                               .typmod = -1};
    }
    ST_TRY(apply_alias(t, src, r->alias));
    add_source(t, s, src);
    return ST_OK;
}

/* ---- joins ---- */

static status from_item(struct tr *t, struct tr_scope *s, const PgQuery__Node *n, const char **sql);

/* The one visible column of this name among sources FROM to TO of S. */
static status using_column(struct tr *t, struct tr_scope *s, unsigned from, unsigned to,
                           const char *name, struct tr_column **out)
{
    *out = NULL;
    for (unsigned i = from; i < to; i++)
        for (unsigned c = 0; c < s->sources[i]->count; c++) {
            struct tr_column *column = &s->sources[i]->columns[c];
            if (column->hidden || strcmp(column->name, name) != 0)
                continue;
            if (*out)
                return tr_fail(t, ST_UNSUPPORTED, "42702", -1,
                               "common column name \"%s\" appears more than once in left table",
                               name);
            *out = column;
        }
    if (!*out)
        return tr_fail(t, ST_UNSUPPORTED, "42703", -1,
                       "column \"%s\" specified in USING clause does not exist", name);
    return ST_OK;
}

struct join_range {
    unsigned start, middle, end; /* sources of the left side, then of the right */
};

static status using_clause(struct tr *t, struct tr_scope *s, struct join_range r, const char *name,
                           bool right_join, const char **sql)
{
    struct tr_column *left, *right;
    ST_TRY(using_column(t, s, r.start, r.middle, name, &left));
    ST_TRY(using_column(t, s, r.middle, r.end, name, &right));
    if (rel_type_family(left->type) != rel_type_family(right->type))
        return tr_fail(t, ST_INVALID, "42804", -1, "JOIN/USING types of \"%s\" cannot be matched",
                       name);
    *sql = arena_printf(t->a, "%s%s%s=%s", *sql, (*sql)[0] ? " AND " : "", left->sql, right->sql);
    (right_join ? left : right)->hidden = true;
    return ST_OK;
}

static status natural(struct tr *t, struct tr_scope *s, struct join_range r, bool right_join,
                      const char **sql)
{
    for (unsigned i = r.middle; i < r.end; i++)
        for (unsigned c = 0; c < s->sources[i]->count; c++) {
            const char *name = s->sources[i]->columns[c].name;
            struct tr_column *left;
            struct err saved = *t->err;
            if (using_column(t, s, r.start, r.middle, name, &left) == ST_OK)
                ST_TRY(using_clause(t, s, r, name, right_join, sql));
            *t->err = saved;
        }
    return ST_OK;
}

static status join(struct tr *t, struct tr_scope *s, const PgQuery__JoinExpr *j, const char **sql)
{
    static const char *const words[] = {
        [PG_QUERY__JOIN_TYPE__JOIN_INNER] = "JOIN",
        [PG_QUERY__JOIN_TYPE__JOIN_LEFT] = "LEFT JOIN",
        [PG_QUERY__JOIN_TYPE__JOIN_FULL] = "FULL JOIN",
        [PG_QUERY__JOIN_TYPE__JOIN_RIGHT] = "RIGHT JOIN",
    };
    bool right_join = j->jointype == PG_QUERY__JOIN_TYPE__JOIN_RIGHT,
         full = j->jointype == PG_QUERY__JOIN_TYPE__JOIN_FULL;
    if ((unsigned)j->jointype >= ARRAY_LEN(words) || !words[j->jointype] || j->alias ||
        (full && (j->n_using_clause || j->is_natural)))
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1, "this form of join is not supported here");
    struct join_range r = {.start = s->count};
    const char *left, *right, *on = "";
    ST_TRY(from_item(t, s, j->larg, &left));
    r.middle = s->count;
    ST_TRY(from_item(t, s, j->rarg, &right));
    r.end = s->count;
    if (j->rarg->node_case == PG_QUERY__NODE__NODE_JOIN_EXPR)
        right = arena_printf(t->a, "(%s)", right);
    for (size_t i = 0; i < j->n_using_clause; i++)
        ST_TRY(using_clause(t, s, r, tr_str(j->using_clause[i]), right_join, &on));
    if (j->is_natural)
        ST_TRY(natural(t, s, r, right_join, &on));
    if (j->quals) {
        struct tr_scope sides = {.outer = s->outer,
                                 .sources = s->sources + r.start,
                                 .count = r.end - r.start,
                                 .ctes = s->ctes};
        ST_TRY(tr_bool(t, &sides, j->quals, "JOIN/ON", &on));
    }
    *sql = arena_printf(t->a, "%s %s %s%s%s", left, words[j->jointype], right, on[0] ? " ON " : "",
                        on);
    return ST_OK;
}

static status from_item(struct tr *t, struct tr_scope *s, const PgQuery__Node *n, const char **sql)
{
    ST_TRY(tr_enter(t));
    status st;
    switch ((int)n->node_case) {
    case PG_QUERY__NODE__NODE_RANGE_VAR: st = relation(t, s, n->range_var, sql); break;
    case PG_QUERY__NODE__NODE_RANGE_SUBSELECT:
        st = sub_select(t, s, n->range_subselect, sql);
        break;
    case PG_QUERY__NODE__NODE_RANGE_FUNCTION: st = function(t, s, n->range_function, sql); break;
    case PG_QUERY__NODE__NODE_JOIN_EXPR: st = join(t, s, n->join_expr, sql); break;
    default:
        st = tr_fail(t, ST_UNSUPPORTED, "0A000", -1, "%s in FROM is not supported here",
                     tr_node_kind(n));
        break;
    }
    tr_leave(t);
    return st;
}

static status from_clause(struct tr *t, struct tr_scope *s, const PgQuery__SelectStmt *stmt,
                          const char **sql)
{
    *sql = "";
    for (size_t i = 0; i < stmt->n_from_clause; i++) {
        const PgQuery__Node *n = stmt->from_clause[i];
        const char *item = "";
        ST_TRY(from_item(t, s, n, &item));
        bool outer = n->node_case == PG_QUERY__NODE__NODE_JOIN_EXPR && i > 0 &&
                     (n->join_expr->jointype == PG_QUERY__JOIN_TYPE__JOIN_RIGHT ||
                      n->join_expr->jointype == PG_QUERY__JOIN_TYPE__JOIN_FULL);
        *sql = arena_printf(t->a, "%s%s%s%s%s", *sql, i ? ", " : "", outer ? "(" : "", item,
                            outer ? ")" : "");
    }
    return ST_OK;
}

/* Set-returning functions of the select list, behind the sources. Several run in step: numbered
 * rows up to the longest, each function's NULL where it is shorter. */
static const char *srf_clause(struct tr *t, struct tr_scope *s, const char *from)
{
    if (!s->srfs)
        return from;
    const char *comma = from[0] ? ", " : "";
    if (!s->srfs->next)
        return arena_printf(t->a, "%s%s%s AS %s", from, comma, s->srfs->argument, s->srfs->sql);
    const char *most = "0", *joins = "", *steps = tr_name(t, "t");
    for (const struct tr_srf *f = s->srfs; f; f = f->next) {
        most = arena_printf(t->a, "max(%s,(SELECT count(*) FROM %s))", most, f->argument);
        joins = arena_printf(t->a, "%s LEFT JOIN %s AS %s ON %s.ord=%s.value", joins, f->argument,
                             f->sql, f->sql, steps);
    }
    return arena_printf(t->a, "%s%s" REL_SQL_SERIES "(1,%s,1) AS %s%s", from, comma, most, steps,
                        joins);
}

/* ---- select list ---- */

struct list {
    struct tr_column *columns;
    const char **sql;
    unsigned count, capacity;
};

static status push(struct tr *t, struct list *l, const char *name, const struct tr_ex *e)
{
    if (l->count == TR_COLUMNS_MAX)
        return tr_fail(t, ST_TOO_COMPLEX, "54011", -1, "target lists can have at most %u entries",
                       TR_COLUMNS_MAX);
    if (l->count == l->capacity) {
        unsigned capacity = l->capacity;
        l->columns = arena_grow(t->a, l->columns, sizeof(*l->columns), &capacity, 16);
        l->sql = arena_grow(t->a, l->sql, sizeof(*l->sql), &l->capacity, 16);
    }
    l->columns[l->count] = (struct tr_column){.name = name, .type = e->type, .typmod = e->typmod};
    l->sql[l->count++] = e->sql;
    return ST_OK;
}

/* NAME NULL: all sources. */
static status push_star(struct tr *t, struct tr_scope *s, struct list *l, const char *name,
                        int location)
{
    bool found = false;
    for (unsigned i = 0; i < s->count; i++) {
        const struct tr_source *src = s->sources[i];
        if (name && (!src->alias || strcmp(src->alias, name) != 0))
            continue;
        found = true;
        for (unsigned c = 0; c < src->count; c++) {
            if (src->columns[c].hidden && !name)
                continue;
            struct tr_ex e = {.sql = src->columns[c].sql,
                              .type = src->columns[c].type,
                              .typmod = src->columns[c].typmod};
            ST_TRY(push(t, l, src->columns[c].name, &e));
        }
    }
    if (!found && name)
        return tr_fail(t, ST_UNSUPPORTED, "42P01", location,
                       "missing FROM-clause entry for table \"%s\"", name);
    if (!found)
        return tr_fail(t, ST_SYNTAX, "42601", location,
                       "SELECT * with no tables specified is not valid");
    return ST_OK;
}

static const PgQuery__ColumnRef *star_of(const PgQuery__Node *n)
{
    if (!n || n->node_case != PG_QUERY__NODE__NODE_COLUMN_REF)
        return NULL;
    const PgQuery__ColumnRef *c = n->column_ref;
    return c->n_fields && c->fields[c->n_fields - 1]->node_case == PG_QUERY__NODE__NODE_A_STAR
               ? c
               : NULL;
}

static status select_list(struct tr *t, struct tr_scope *s, const PgQuery__SelectStmt *stmt,
                          struct list *l)
{
    s->srf_allowed = true;
    for (size_t i = 0; i < stmt->n_target_list; i++) {
        const PgQuery__ResTarget *r = stmt->target_list[i]->res_target;
        const PgQuery__ColumnRef *star = star_of(r->val);
        if (star) {
            const char *name = star->n_fields > 1 ? tr_str(star->fields[star->n_fields - 2]) : NULL;
            ST_TRY(push_star(t, s, l, name, star->location));
            continue;
        }
        struct tr_ex e;
        ST_TRY(tr_expr(t, s, r->val, &e));
        if (e.param)
            ST_TRY(tr_settle(t, &e));
        ST_TRY(push(t, l, r->name[0] ? r->name : tr_heading(r->val), &e));
    }
    s->srf_allowed = false;
    if (l->count == 0 && s->exists) {
        struct tr_ex any = tr_typed("1", OID_INT4);
        return push(t, l, "?column?", &any);
    }
    if (l->count == 0)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                       "a SELECT without columns is not supported here");
    return ST_OK;
}

/* ---- order, groups, limit ---- */

static const char *direction(const PgQuery__SortBy *s)
{
    bool down = s->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_DESC;
    bool first = s->sortby_nulls == PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_FIRST ||
                 (s->sortby_nulls != PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_LAST && down);
    if (down)
        return first ? " DESC NULLS FIRST" : " DESC NULLS LAST";
    return first ? " ASC NULLS FIRST" : " ASC NULLS LAST";
}

/* A bare number would be a position to SQLite; as a key it orders nothing. */
static bool is_bare_number(const char *sql)
{
    return sql[strspn(sql, "0123456789")] == 0;
}

status tr_sort_list(struct tr *t, struct tr_scope *s, PgQuery__Node *const *list, size_t count,
                    const char **sql)
{
    *sql = "";
    for (size_t i = 0; i < count; i++) {
        struct tr_ex e;
        ST_TRY(tr_expr(t, s, list[i]->sort_by->node, &e));
        ST_TRY(tr_settle(t, &e));
        *sql =
            arena_printf(t->a, "%s%s%s%s", *sql, i ? "," : "", e.sql, direction(list[i]->sort_by));
    }
    return ST_OK;
}

/* A position or the name of an output column: its number from 1. 0: neither. */
static status output_number(struct tr *t, const PgQuery__Node *n, const struct tr_column *columns,
                            unsigned count, const char *clause, unsigned *out)
{
    *out = 0;
    if (n->node_case == PG_QUERY__NODE__NODE_A_CONST && !n->a_const->isnull &&
        n->a_const->val_case == PG_QUERY__A__CONST__VAL_IVAL) {
        int at = n->a_const->ival->ival;
        if (at < 1 || (unsigned)at > count)
            return tr_fail(t, ST_INVALID, "42P10", n->a_const->location,
                           "%s position %d is not in select list", clause, at);
        *out = (unsigned)at;
    } else if (n->node_case == PG_QUERY__NODE__NODE_COLUMN_REF && n->column_ref->n_fields == 1) {
        const char *name = tr_str(n->column_ref->fields[0]);
        for (unsigned i = 0; i < count && *out == 0; i++)
            if (name[0] && strcmp(columns[i].name, name) == 0)
                *out = i + 1;
    }
    return ST_OK;
}

/* S NULL: only output columns may be named (set operations). */
static status order_by(struct tr *t, struct tr_scope *s, const PgQuery__SelectStmt *stmt,
                       const struct tr_column *columns, unsigned count, const char **sql)
{
    *sql = "";
    for (size_t i = 0; i < stmt->n_sort_clause; i++) {
        const PgQuery__SortBy *by = stmt->sort_clause[i]->sort_by;
        if (by->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_USING)
            return tr_fail(t, ST_UNSUPPORTED, "0A000", by->location,
                           "ORDER BY USING is not supported here");
        unsigned number;
        ST_TRY(output_number(t, by->node, columns, count, "ORDER BY", &number));
        const char *key = arena_printf(t->a, "%u", number);
        if (number == 0) {
            struct tr_ex e;
            if (!s)
                return tr_fail(t, ST_UNSUPPORTED, "0A000", by->location,
                               "invalid UNION/INTERSECT/EXCEPT ORDER BY clause");
            ST_TRY(tr_expr(t, s, by->node, &e));
            ST_TRY(tr_settle(t, &e));
            if (is_bare_number(e.sql))
                continue;
            key = e.sql;
        }
        *sql = arena_printf(t->a, "%s%s%s%s", *sql, (*sql)[0] ? "," : " ORDER BY ", key,
                            direction(by));
    }
    return ST_OK;
}

/* Input columns win over output names here. */
static status group_by(struct tr *t, struct tr_scope *s, const PgQuery__SelectStmt *stmt,
                       const struct list *l, const char **sql)
{
    *sql = "";
    for (size_t i = 0; i < stmt->n_group_clause; i++) {
        const PgQuery__Node *n = stmt->group_clause[i];
        bool name = n->node_case == PG_QUERY__NODE__NODE_COLUMN_REF;
        struct tr_ex e = {0};
        unsigned number = 0;
        status st = ST_OK;
        if (!name)
            ST_TRY(output_number(t, n, l->columns, l->count, "GROUP BY", &number));
        if (number == 0) {
            struct err saved = *t->err;
            st = tr_expr(t, s, n, &e);
            if (st != ST_OK && name && strcmp(t->err->sqlstate, "42703") == 0) {
                ST_TRY(output_number(t, n, l->columns, l->count, "GROUP BY", &number));
                if (number) {
                    *t->err = saved;
                    st = ST_OK;
                }
            }
        }
        ST_TRY(st);
        const char *key = number ? l->sql[number - 1] : e.sql;
        if (is_bare_number(key))
            continue;
        *sql = arena_printf(t->a, "%s%s%s", *sql, (*sql)[0] ? "," : " GROUP BY ", key);
    }
    return ST_OK;
}

static status limit(struct tr *t, struct tr_scope *outer, const PgQuery__SelectStmt *stmt,
                    bool ordered, const char **sql)
{
    struct tr_ex count = {.sql = "-1"}, offset = {.sql = NULL};
    if (stmt->limit_option == PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_WITH_TIES)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1, "WITH TIES is not supported here");
    if (stmt->limit_count) {
        ST_TRY(tr_expr(t, outer, stmt->limit_count, &count));
        ST_TRY(tr_coerce(t, &count, OID_INT8, -1));
        count.sql = arena_printf(t->a, "coalesce(%s,-1)", count.sql);
    }
    if (stmt->limit_offset) {
        ST_TRY(tr_expr(t, outer, stmt->limit_offset, &offset));
        ST_TRY(tr_coerce(t, &offset, OID_INT8, -1));
    }
    bool needed = ordered || stmt->limit_count || offset.sql;
    *sql = !needed ? ""
                   : arena_printf(t->a, " LIMIT %s%s%s", count.sql, offset.sql ? " OFFSET " : "",
                                  offset.sql ? offset.sql : "");
    return ST_OK;
}

/* ---- DISTINCT ON: the first row of each group of equal keys ---- */

struct key {
    const char *sql, *direction;
};

/* An output column by position or name, or an expression. */
static status key_of(struct tr *t, struct tr_scope *s, const PgQuery__Node *n, const struct list *l,
                     const char *clause, const char **sql)
{
    unsigned number;
    ST_TRY(output_number(t, n, l->columns, l->count, clause, &number));
    if (number) {
        *sql = l->sql[number - 1];
        return ST_OK;
    }
    struct tr_ex e;
    ST_TRY(tr_expr(t, s, n, &e));
    ST_TRY(tr_settle(t, &e));
    *sql = e.sql;
    return ST_OK;
}

static bool is_key(const struct key *keys, size_t count, const char *sql)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i].sql, sql) == 0)
            return true;
    return false;
}

/* ON and ORDER BY; without an order, that of the keys of ON, as PostgreSQL's sort leaves them. */
static status distinct_keys(struct tr *t, struct tr_scope *s, const PgQuery__SelectStmt *stmt,
                            const struct list *l, struct key *on, struct key *order)
{
    for (size_t i = 0; i < stmt->n_distinct_clause; i++) {
        on[i].direction = " ASC NULLS LAST";
        ST_TRY(key_of(t, s, stmt->distinct_clause[i], l, "SELECT DISTINCT ON", &on[i].sql));
    }
    for (size_t i = 0; i < stmt->n_sort_clause; i++) {
        const PgQuery__SortBy *by = stmt->sort_clause[i]->sort_by;
        order[i].direction = direction(by);
        ST_TRY(key_of(t, s, by->node, l, "ORDER BY", &order[i].sql));
        if (i < stmt->n_distinct_clause && !is_key(on, stmt->n_distinct_clause, order[i].sql))
            return tr_fail(t, ST_INVALID, "42P10", by->location,
                           "SELECT DISTINCT ON expressions must match initial ORDER BY "
                           "expressions");
    }
    return ST_OK;
}

/* BODY: FROM and what follows up to HAVING. Rows are numbered in their group, by the order. */
static status distinct_on(struct tr *t, struct tr_scope *s, const PgQuery__SelectStmt *stmt,
                          const struct list *l, const char *items, const char *body,
                          const char **sql)
{
    size_t on_count = stmt->n_distinct_clause, count = stmt->n_sort_clause;
    struct key *on = ARENA_ARRAY(t->a, struct key, on_count + 1);
    struct key *order = ARENA_ARRAY(t->a, struct key, count + 1);
    ST_TRY(distinct_keys(t, s, stmt, l, on, order));
    const char *partition = "", *sort = "", *columns = "", *outer = "", *names = "";
    for (size_t i = 0; i < on_count; i++)
        partition = arena_printf(t->a, "%s%s%s", partition, i ? "," : "", on[i].sql);
    if (count == 0) {
        order = on;
        count = on_count;
    }
    const char *v = tr_name(t, "t");
    for (size_t i = 0; i < count; i++) {
        const char *comma = i ? "," : "";
        sort = arena_printf(t->a, "%s%s%s%s", sort, comma, order[i].sql, order[i].direction);
        columns = arena_printf(t->a, "%s,%s AS o%zu", columns, order[i].sql, i + 1);
        outer = arena_printf(t->a, "%s%s%s.o%zu%s", outer, comma, v, i + 1, order[i].direction);
    }
    for (unsigned i = 0; i < l->count; i++)
        names = arena_printf(t->a, "%s%s%s." REL_SQL_COLUMN, names, i ? "," : "", v, i + 1);
    *sql = arena_printf(t->a,
                        "SELECT %s FROM (SELECT %s%s,row_number() OVER (PARTITION BY %s ORDER BY "
                        "%s) AS place%s) AS %s WHERE %s.place=1 ORDER BY %s",
                        names, items, columns, partition, sort, body, v, v, outer);
    return ST_OK;
}

/* ---- the three shapes of a query ---- */

static const char *select_items(struct tr *t, const struct list *l)
{
    struct obuf o;
    obuf_init(&o);
    for (unsigned i = 0; i < l->count; i++) {
        const char *item =
            arena_printf(t->a, "%s%s AS " REL_SQL_COLUMN, i ? "," : "", l->sql[i], i + 1);
        obuf_put(&o, item, strlen(item));
    }
    const char *items = arena_strdup(t->a, bytes_make(o.data, o.size));
    obuf_fini(&o);
    return items;
}

static status simple(struct tr *t, struct tr_scope *with, const PgQuery__SelectStmt *stmt,
                     bool exists, struct tr_query *out)
{
    struct tr_scope s = {.outer = with, .exists = exists, .select = stmt};
    struct list l = {0};
    const char *from, *where = "", *groups, *having = "", *order, *bounds;
    bool on = stmt->n_distinct_clause && stmt->distinct_clause[0] &&
              stmt->distinct_clause[0]->node_case != 0;
    if (stmt->into_clause || stmt->n_locking_clause)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                       "SELECT INTO and FOR UPDATE are not supported over catalogue relations");
    ST_TRY(from_clause(t, &s, stmt, &from));
    ST_TRY(select_list(t, &s, stmt, &l));
    if (stmt->where_clause) {
        ST_TRY(tr_bool(t, &s, stmt->where_clause, "WHERE", &where));
        where = arena_printf(t->a, " WHERE %s", where);
    }
    ST_TRY(group_by(t, &s, stmt, &l, &groups));
    if (stmt->having_clause) {
        ST_TRY(tr_bool(t, &s, stmt->having_clause, "HAVING", &having));
        having = arena_printf(t->a, " HAVING %s", having);
    }
    if (!on)
        ST_TRY(order_by(t, &s, stmt, l.columns, l.count, &order));
    ST_TRY(limit(t, with, stmt, on || order[0] != 0, &bounds));
    if (s.srfs && (s.aggregates || groups[0]))
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                       "set-returning functions with aggregates are not supported here");
    from = srf_clause(t, &s, from);
    const char *items = select_items(t, &l);
    const char *body =
        arena_printf(t->a, "%s%s%s%s%s", from[0] ? " FROM " : "", from, where, groups, having);
    if (on) {
        ST_TRY(distinct_on(t, &s, stmt, &l, items, body, &out->sql));
        out->sql = arena_printf(t->a, "%s%s", out->sql, bounds);
    } else {
        out->sql =
            arena_printf(t->a, "SELECT %s%s%s%s%s", stmt->n_distinct_clause ? "DISTINCT " : "",
                         items, body, order, bounds);
    }
    out->columns = l.columns;
    out->count = l.count;
    out->one_row = (s.aggregates && !groups[0]) || (!from[0] && !s.srfs);
    return ST_OK;
}

static status values(struct tr *t, struct tr_scope *with, const PgQuery__SelectStmt *stmt,
                     struct tr_query *out)
{
    size_t rows = stmt->n_values_lists;
    size_t width = stmt->values_lists[0]->list->n_items;
    struct tr_scope s = {.outer = with};
    struct tr_ex *cells = ARENA_ARRAY(t->a, struct tr_ex, rows * width + 1);
    struct tr_ex *column = ARENA_ARRAY(t->a, struct tr_ex, rows + 1);
    out->columns = ARENA_ARRAY(t->a, struct tr_column, width + 1);
    out->count = (unsigned)width;
    for (size_t r = 0; r < rows; r++) {
        const PgQuery__List *list = stmt->values_lists[r]->list;
        if (list->n_items != width)
            return tr_fail(t, ST_SYNTAX, "42601", -1, "VALUES lists must all be the same length");
        for (size_t c = 0; c < width; c++)
            ST_TRY(tr_expr(t, &s, list->items[c], &cells[r * width + c]));
    }
    const char *head = "";
    for (size_t c = 0; c < width; c++) {
        for (size_t r = 0; r < rows; r++)
            column[r] = cells[r * width + c];
        uint32_t type = tr_common_type(column, (unsigned)rows);
        for (size_t r = 0; r < rows; r++)
            ST_TRY(tr_coerce(t, &cells[r * width + c], type, -1));
        out->columns[c] = (struct tr_column){
            .name = arena_printf(t->a, "column%zu", c + 1), .type = type, .typmod = -1};
        head = arena_printf(t->a, "%s%scolumn%zu AS " REL_SQL_COLUMN, head, c ? "," : "", c + 1,
                            (unsigned)c + 1);
    }
    struct obuf o;
    obuf_init(&o);
    for (size_t i = 0; i < rows * width; i++) {
        const char *before = i == 0 ? "(" : i % width == 0 ? "),(" : ",";
        obuf_put(&o, before, strlen(before));
        obuf_put(&o, cells[i].sql, strlen(cells[i].sql));
    }
    const char *order = "", *bounds = "";
    status st;
    ST_GOTO(out, order_by(t, NULL, stmt, out->columns, out->count, &order));
    ST_GOTO(out, limit(t, with, stmt, order[0] != 0, &bounds));
    out->sql = arena_printf(t->a, "SELECT %s FROM (VALUES %.*s))%s%s", head, (int)o.size,
                            (const char *)o.data, order, bounds);
out:
    obuf_fini(&o);
    return st;
}

static bool needs_wrapping(const PgQuery__SelectStmt *s, bool right)
{
    return s->n_sort_clause || s->limit_count || s->limit_offset || s->with_clause ||
           s->n_values_lists || (right && s->op != PG_QUERY__SET_OPERATION__SETOP_NONE);
}

static status query(struct tr *t, struct tr_scope *outer, const PgQuery__SelectStmt *stmt,
                    bool exists, struct tr_query *out);

static status arm(struct tr *t, struct tr_scope *with, const PgQuery__SelectStmt *stmt, bool right,
                  struct tr_query *out)
{
    ST_TRY(query(t, with, stmt, false, out));
    if (needs_wrapping(stmt, right))
        out->sql = arena_printf(t->a, "SELECT * FROM (%s)", out->sql);
    return ST_OK;
}

static status types_differ(struct tr *t, const char *word, const struct tr_ex both[2])
{
    bytes a = rel_type_format(t->a, both[0].type, -1), b = rel_type_format(t->a, both[1].type, -1);
    return tr_fail(t, ST_INVALID, "42804", -1, "%.*s types %.*s and %.*s cannot be matched",
                   (int)strcspn(word, " "), word, (int)a.size, (const char *)a.data, (int)b.size,
                   (const char *)b.data);
}

static status set_operation(struct tr *t, struct tr_scope *with, const PgQuery__SelectStmt *stmt,
                            struct tr_query *out)
{
    const char *word;
    switch ((int)stmt->op) {
    case PG_QUERY__SET_OPERATION__SETOP_UNION: word = stmt->all ? "UNION ALL" : "UNION"; break;
    case PG_QUERY__SET_OPERATION__SETOP_INTERSECT: word = stmt->all ? NULL : "INTERSECT"; break;
    case PG_QUERY__SET_OPERATION__SETOP_EXCEPT: word = stmt->all ? NULL : "EXCEPT"; break;
    default: word = NULL; break;
    }
    if (!word)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                       "INTERSECT ALL and EXCEPT ALL are not supported here");
    struct tr_query l, r;
    ST_TRY(arm(t, with, stmt->larg, false, &l));
    ST_TRY(arm(t, with, stmt->rarg, true, &r));
    if (l.count != r.count)
        return tr_fail(t, ST_SYNTAX, "42601", -1,
                       "each %s query must have the same number of columns", word);
    out->count = l.count;
    out->columns = ARENA_ARRAY(t->a, struct tr_column, l.count);
    for (unsigned i = 0; i < l.count; i++) {
        struct tr_ex both[2] = {{.type = l.columns[i].type}, {.type = r.columns[i].type}};
        enum rel_family a = rel_type_family(both[0].type), b = rel_type_family(both[1].type);
        if (both[0].type != OID_UNKNOWN && both[1].type != OID_UNKNOWN && a != b)
            return types_differ(t, word, both);
        out->columns[i] = l.columns[i];
        if (both[0].type == OID_UNKNOWN && both[1].type == OID_UNKNOWN)
            continue;
        out->columns[i].type = tr_common_type(both, 2);
    }
    const char *order, *bounds;
    ST_TRY(order_by(t, NULL, stmt, out->columns, out->count, &order));
    ST_TRY(limit(t, with, stmt, order[0] != 0, &bounds));
    out->sql = arena_printf(t->a, "%s %s %s%s%s", l.sql, word, r.sql, order, bounds);
    return ST_OK;
}

/* ---- WITH ---- */

static status cte_columns(struct tr *t, struct tr_cte *cte, const PgQuery__CommonTableExpr *c,
                          const struct tr_query *q)
{
    if (c->n_aliascolnames > q->count)
        return tr_fail(t, ST_INVALID, "42P10", c->location,
                       "WITH query \"%s\" has %u columns available but %zu specified", c->ctename,
                       q->count, c->n_aliascolnames);
    struct tr_column *columns = ARENA_ARRAY(t->a, struct tr_column, q->count);
    for (unsigned i = 0; i < q->count; i++) {
        columns[i] = q->columns[i];
        if (columns[i].type == OID_UNKNOWN)
            columns[i].type = OID_TEXT;
        if (i < c->n_aliascolnames)
            columns[i].name = tr_str(c->aliascolnames[i]);
    }
    cte->columns = columns;
    cte->count = q->count;
    return ST_OK;
}

/* A recursive query is known to itself by the columns of its first arm. */
static status with_item(struct tr *t, struct tr_scope *s, const PgQuery__CommonTableExpr *c,
                        bool recursive, const char **sql)
{
    if (!c->ctequery || c->ctequery->node_case != PG_QUERY__NODE__NODE_SELECT_STMT ||
        c->search_clause || c->cycle_clause)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", c->location,
                       "this form of WITH is not supported here");
    const PgQuery__SelectStmt *stmt = c->ctequery->select_stmt;
    struct tr_cte *cte = ARENA_NEW(t->a, struct tr_cte);
    struct tr_query q;
    cte->name = c->ctename;
    cte->sql = tr_name(t, "k");
    cte->next = s->ctes;
    if (recursive && stmt->op != PG_QUERY__SET_OPERATION__SETOP_NONE) {
        ST_TRY(query(t, s, stmt->larg, false, &q));
        ST_TRY(cte_columns(t, cte, c, &q));
        s->ctes = cte;
    }
    ST_TRY(tr_select(t, s, stmt, &q));
    ST_TRY(cte_columns(t, cte, c, &q));
    s->ctes = cte;
    const char *names = "";
    for (unsigned i = 0; i < q.count; i++)
        names = arena_printf(t->a, "%s%s" REL_SQL_COLUMN, names, i ? "," : "", i + 1);
    *sql = arena_printf(t->a, "%s(%s) AS (%s)", cte->sql, names, q.sql);
    return ST_OK;
}

static status with_clause(struct tr *t, struct tr_scope *s, const PgQuery__WithClause *w,
                          const char **sql)
{
    *sql = "";
    for (size_t i = 0; i < w->n_ctes; i++) {
        const char *item = "";
        ST_TRY(with_item(t, s, w->ctes[i]->common_table_expr, w->recursive, &item));
        *sql = arena_printf(t->a, "%s%s%s", *sql,
                            i              ? ", "
                            : w->recursive ? "WITH RECURSIVE "
                                           : "WITH ",
                            item);
    }
    *sql = arena_printf(t->a, "%s ", *sql);
    return ST_OK;
}

/* Columns may still be untyped. */
static status query(struct tr *t, struct tr_scope *outer, const PgQuery__SelectStmt *stmt,
                    bool exists, struct tr_query *out)
{
    struct tr_scope s = {.outer = outer};
    const char *with = "";
    status st;
    *out = (struct tr_query){0};
    ST_TRY(tr_enter(t));
    if (stmt->with_clause)
        ST_TRY(with_clause(t, &s, stmt->with_clause, &with));
    if (stmt->op != PG_QUERY__SET_OPERATION__SETOP_NONE && stmt->larg && stmt->rarg)
        st = set_operation(t, &s, stmt, out);
    else if (stmt->n_values_lists)
        st = values(t, &s, stmt, out);
    else
        st = simple(t, &s, stmt, exists, out);
    tr_leave(t);
    if (st == ST_OK && with[0])
        out->sql = arena_printf(t->a, "%s%s", with, out->sql);
    return st;
}

status tr_select(struct tr *t, struct tr_scope *outer, const PgQuery__SelectStmt *stmt,
                 struct tr_query *out)
{
    ST_TRY(query(t, outer, stmt, false, out));
    for (unsigned i = 0; i < out->count; i++)
        if (out->columns[i].type == OID_UNKNOWN)
            out->columns[i].type = OID_TEXT;
    return ST_OK;
}

status tr_exists(struct tr *t, struct tr_scope *outer, const PgQuery__SelectStmt *stmt,
                 struct tr_query *out)
{
    return query(t, outer, stmt, true, out);
}
