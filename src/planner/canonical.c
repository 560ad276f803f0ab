/*
 * planner/canonical.c — statements brought to one form before a pattern is looked for.
 *
 * WHERE becomes a list of conditions over columns of the one table: ANDs are flattened, the column
 * stands left of its comparison (5 > pid is pid < 5), BETWEEN is two comparisons, IN and = ANY
 * (ARRAY[…]) are one list, (pid, name) > (a, b) is a condition on the key as a whole; the list is
 * in the order of columns and otherwise as written. Two conditions on one column both stay. The
 * projection becomes numbers of stored columns under headings.
 *
 * What has another form is no pattern: 0A000, at its place.
 *
 * Nothing here depends on the value of a literal (V1 of values.c).
 */
#include "planner/pl_internal.h"

#include <stdio.h>

/* Conditions of one WHERE clause; more is no statement of a person. */
#define MAX_CONDS 64

struct where_pass {
    struct pl__compile *c;
    const struct pl__scope *scope;
    struct pl__cond conds[MAX_CONDS];
    unsigned count;
    enum pl_pattern_id nearest;
};

/* The pattern that errors about this table name when nothing nearer is known. */
static enum pl_pattern_id nearest_of(const struct pl__compile *c, const struct kv_table_def *def)
{
    const struct pl__rules *r = pl__rules_of(def->table);
    switch ((int)c->stmt->kind) {
    case STMT_INSERT: return r->insert;
    case STMT_UPDATE: return r->update;
    case STMT_DELETE: return r->remove;
    default: return r->list != PATTERN_NONE ? r->list : r->get;
    }
}

/* -- names ------------------------------------------------------------------------------------- */

status pl__scope_of(struct pl__compile *c, const struct ast_relation *r,
                    const struct kv_table_def *def, struct pl__scope *out)
{
    if (r->column_aliases)
        return pl__no_pattern(c, r->at, nearest_of(c, def),
                              "column aliases in FROM are not part of it");
    *out =
        (struct pl__scope){.def = def, .schema = "public", .table = def->name, .alias = r->alias};
    return ST_OK;
}

static bool qualifier_fits(const struct pl__scope *s, const struct ast_node *n, unsigned names)
{
    if (names == 0)
        return true;
    const char *table = n->names[names - 1];
    if (s->alias != NULL)
        return names == 1 && strcmp(table, s->alias) == 0;
    return strcmp(table, s->table) == 0 &&
           (names == 1 || (names == 2 && strcmp(n->names[0], s->schema) == 0));
}

static status bad_qualifier(struct pl__compile *c, const struct pl__scope *s,
                            const struct ast_node *n)
{
    const char *table =
        n->names[n->star || n->name_count < 2 ? n->name_count - 1 : n->name_count - 2];
    if (s->alias != NULL && strcmp(table, s->table) == 0) {
        pl__error(c, n->at, ST_INVALID, "42P01",
                  "invalid reference to FROM-clause entry for table \"%s\"", table);
        err_hint(c->err, "Perhaps you meant to reference the table alias \"%s\".", s->alias);
        return ST_INVALID;
    }
    return pl__error(c, n->at, ST_INVALID, "42P01", "missing FROM-clause entry for table \"%s\"",
                     table);
}

status pl__column(struct pl__compile *c, const struct pl__scope *s, const struct ast_node *n,
                  unsigned *out)
{
    if (n == NULL || n->kind != AST_COLUMN || n->star)
        return ST_UNSUPPORTED;
    if (!qualifier_fits(s, n, n->name_count - 1))
        return bad_qualifier(c, s, n);
    const char *name = n->names[n->name_count - 1];
    int column = kv_column_by_name(s->def, bytes_str(name));
    if (column >= 0) {
        *out = (unsigned)column;
        return ST_OK;
    }
    if (n->name_count > 1)
        return pl__error(c, n->at, ST_INVALID, "42703", "column %s.%s does not exist",
                         n->names[n->name_count - 2], name);
    return pl__error(c, n->at, ST_INVALID, "42703", "column \"%s\" does not exist", name);
}

static bool is_column(const struct ast_node *n)
{
    return n != NULL && n->kind == AST_COLUMN && !n->star;
}

/* -- types ------------------------------------------------------------------------------------- */

static bool number_type(uint32_t oid)
{
    return oid == OID_INT8 || oid == OID_INT4 || oid == OID_INT2 || oid == OID_OID ||
           oid == OID_NUMERIC || oid == OID_FLOAT4 || oid == OID_FLOAT8;
}

static bool text_type(uint32_t oid)
{
    return oid == OID_TEXT || oid == OID_VARCHAR || oid == OID_BPCHAR || oid == OID_NAME;
}

static bool time_type(uint32_t oid)
{
    return oid == OID_TIMESTAMPTZ || oid == OID_TIMESTAMP || oid == OID_DATE;
}

static bool comparable(uint32_t column, uint32_t oid)
{
    if (oid == OID_UNKNOWN || oid == column)
        return true;
    if (number_type(column))
        return number_type(oid);
    if (column == OID_TEXT || column == OID_CHAR)
        return text_type(oid) || oid == OID_CHAR;
    return time_type(column) && time_type(oid);
}

static const char *const cmp_names[] = {
    [KV_EQ] = "=", [KV_NE] = "<>", [KV_LT] = "<", [KV_LE] = "<=", [KV_GT] = ">", [KV_GE] = ">=",
};

static status no_operator(struct pl__compile *c, const char *left, const char *op,
                          const char *right, int at)
{
    pl__error(c, at, ST_INVALID, "42883", "operator does not exist: %s %s %s", left, op, right);
    err_hint(c->err, "No operator matches the given name and argument types. You might need to add "
                     "explicit type casts.");
    return ST_INVALID;
}

/* May a column of type COLUMN be compared with E? Sets 42883. */
static status check_compare(struct pl__compile *c, uint32_t column, const struct pl__expr *e,
                            enum kv_cmp cmp, int at)
{
    if (comparable(column, e->oid))
        return ST_OK;
    return no_operator(c, pl_type_name(column), cmp_names[cmp], pl_type_name(e->oid), at);
}

static bool assignable(uint32_t column, uint32_t oid)
{
    if (oid == OID_UNKNOWN || oid == column || column == OID_TEXT)
        return true;
    if (number_type(column))
        return number_type(oid);
    if (column == OID_CHAR)
        return text_type(oid);
    return time_type(column) && time_type(oid);
}

status pl__check_assign(struct pl__compile *c, const struct kv_column *column,
                        const struct pl__expr *e)
{
    uint32_t oid = pl_type_of(column->type);
    if (e->kind == EXPR_DEFAULT || assignable(oid, e->oid))
        return ST_OK;
    pl__error(c, e->at, ST_INVALID, "42804",
              "column \"%s\" is of type %s but expression is of type %s", column->name,
              pl_type_name(oid), pl_type_name(e->oid));
    err_hint(c->err, "You will need to rewrite or cast the expression.");
    return ST_INVALID;
}

/* -- WHERE ------------------------------------------------------------------------------------- */

static status add(struct where_pass *w, const struct pl__cond *cond)
{
    if (w->count == MAX_CONDS)
        return pl__no_pattern(w->c, cond->at, w->nearest, "there are too many conditions");
    w->conds[w->count++] = *cond;
    return ST_OK;
}

static uint32_t column_oid(const struct where_pass *w, unsigned column)
{
    return pl_type_of(w->scope->def->columns[column].type);
}

static status one_value(struct where_pass *w, const struct ast_node *n, uint32_t expected,
                        const struct pl__expr *const **out)
{
    const struct pl__expr **values = ARENA_ARRAY(w->c->a, const struct pl__expr *, 1);
    ST_TRY(pl__expr_of(w->c, n, expected, w->nearest, &values[0]));
    if (values[0]->kind == EXPR_DEFAULT)
        return pl__error(w->c, n->at, ST_SYNTAX, NULL, "DEFAULT is not allowed in this context");
    *out = values;
    return ST_OK;
}

static enum kv_cmp cmp_of(const char *op)
{
    for (enum kv_cmp i = KV_EQ; i <= KV_GE; i++) {
        if (strcmp(op, cmp_names[i]) == 0)
            return i;
    }
    return strcmp(op, "!=") == 0 ? KV_NE : 0;
}

/* 5 < pid as pid > 5 */
static enum kv_cmp mirror(enum kv_cmp c)
{
    return c == KV_LT ? KV_GT : c == KV_GT ? KV_LT : c == KV_LE ? KV_GE : c == KV_GE ? KV_LE : c;
}

static status compare(struct where_pass *w, const struct ast_node *column, enum kv_cmp cmp,
                      const struct ast_node *value, int at, bool swapped)
{
    struct pl__cond cond = {.kind = COND_COMPARE, .cmp = cmp, .count = 1, .repeat = -1, .at = at};
    ST_TRY(pl__column(w->c, w->scope, column, &cond.column));
    unsigned other;
    if (is_column(value)) {
        ST_TRY(pl__column(w->c, w->scope, value, &other));
        return pl__no_pattern(w->c, value->at, w->nearest, "it compares no column with another");
    }
    uint32_t oid = column_oid(w, cond.column);
    ST_TRY(one_value(w, value, oid, &cond.values));
    if (swapped && !comparable(oid, cond.values[0]->oid))
        return no_operator(w->c, pl_type_name(cond.values[0]->oid), cmp_names[mirror(cmp)],
                           pl_type_name(oid), at);
    ST_TRY(check_compare(w->c, oid, cond.values[0], cmp, at));
    return add(w, &cond);
}

/* (pid, name) > (a, b) over the whole key, in its order. */
static status compare_rows(struct where_pass *w, const struct ast_node *n, enum kv_cmp cmp)
{
    const struct kv_table_def *def = w->scope->def;
    const struct ast_node *left = n->left, *right = n->right;
    if (left->count > 0 && !is_column(left->items[0])) {
        left = n->right;
        right = n->left;
        cmp = mirror(cmp);
    }
    if (left->count != right->count)
        return pl__error(w->c, n->at, ST_SYNTAX, NULL,
                         "unequal number of entries in row expressions");
    const struct pl__expr **values = ARENA_ARRAY(w->c->a, const struct pl__expr *, left->count + 1);
    bool whole = left->count == def->key_count && cmp != KV_NE;
    for (unsigned i = 0; i < left->count; i++) {
        unsigned column;
        status st = pl__column(w->c, w->scope, left->items[i], &column);
        if (st == ST_UNSUPPORTED && (w->c->err == NULL || w->c->err->code == ST_OK))
            return pl__no_pattern(w->c, left->at, w->nearest,
                                  "a row comparison is over the key's columns");
        ST_TRY(st);
        if (cmp == KV_EQ) {
            ST_TRY(compare(w, left->items[i], KV_EQ, right->items[i], n->at, false));
            continue;
        }
        whole = whole && column == i;
        ST_TRY(pl__expr_of(w->c, right->items[i], column_oid(w, column), w->nearest, &values[i]));
        ST_TRY(check_compare(w->c, column_oid(w, column), values[i], cmp, n->at));
    }
    if (cmp == KV_EQ)
        return ST_OK;
    if (!whole)
        return pl__no_pattern(w->c, n->at, w->nearest,
                              "a row comparison is over all columns of the key, in its order");
    struct pl__cond cond = {.kind = COND_ROW,
                            .cmp = cmp,
                            .values = values,
                            .count = left->count,
                            .repeat = -1,
                            .at = n->at};
    return add(w, &cond);
}

static status comparison(struct where_pass *w, const struct ast_node *n)
{
    enum kv_cmp cmp = cmp_of(n->text);
    if (cmp == 0 || n->left == NULL || n->right == NULL)
        return pl__no_pattern(w->c, n->at, w->nearest, "it has no operator %s", n->text);
    if (n->left->kind == AST_ROW && n->right->kind == AST_ROW)
        return compare_rows(w, n, cmp);
    if (is_column(n->left))
        return compare(w, n->left, cmp, n->right, n->at, false);
    if (is_column(n->right))
        return compare(w, n->right, mirror(cmp), n->left, n->at, true);
    return pl__no_pattern(w->c, n->at, w->nearest, "a condition compares a column with a value");
}

/* Are VALUES exactly the items of a collapsed list of the text, one literal each? */
static int repeat_of(struct pl__compile *c, const struct pl__expr *const *values, unsigned count)
{
    for (unsigned r = 0; c->scan != NULL && r < c->scan->repeat_count; r++) {
        const struct pl_repeat *repeat = &c->scan->repeats[r];
        bool same = repeat->count == count && repeat->stride == 1;
        for (unsigned i = 0; same && i < count; i++)
            same = values[i]->kind == EXPR_LITERAL && !values[i]->negate &&
                   values[i]->slot == (int)(repeat->first + i);
        if (same)
            return (int)r;
    }
    return -1;
}

static status list(struct where_pass *w, const struct ast_node *column,
                   const struct ast_node *const *items, unsigned count, int at)
{
    struct pl__cond cond = {.kind = COND_IN, .cmp = KV_EQ, .count = count, .repeat = -1, .at = at};
    ST_TRY(pl__column(w->c, w->scope, column, &cond.column));
    if (count > LIMIT_STATEMENT_ROWS)
        return pl__error(w->c, at, ST_LIMIT, NULL, "a list has at most %u values",
                         LIMIT_STATEMENT_ROWS);
    const struct pl__expr **values = ARENA_ARRAY(w->c->a, const struct pl__expr *, count + 1);
    uint32_t oid = column_oid(w, cond.column);
    for (unsigned i = 0; i < count; i++) {
        ST_TRY(pl__expr_of(w->c, items[i], oid, w->nearest, &values[i]));
        ST_TRY(check_compare(w->c, oid, values[i], KV_EQ, at));
    }
    cond.values = values;
    cond.repeat = repeat_of(w->c, values, count);
    if (cond.repeat >= 0)
        w->c->repeat_free[cond.repeat] = true;
    return add(w, &cond);
}

/* ARRAY[…]::type[] */
static bool is_array_cast(const struct ast_node *n)
{
    return n != NULL && n->kind == AST_CAST && n->left != NULL && n->left->kind == AST_ARRAY;
}

/* column = ANY (ARRAY[…]::text[]): each item as the element type, where that is the column's. */
static status any_of_cast(struct where_pass *w, const struct ast_node *n)
{
    uint32_t oid, element;
    int32_t typmod;
    unsigned column;
    ST_TRY(pl__type_name(w->c, n->right->type, &oid, &typmod));
    ST_TRY(pl__column(w->c, w->scope, n->left, &column));
    element = pl_type_element(oid);
    if (element == 0)
        return pl__error(w->c, n->at, ST_INVALID, "42809",
                         "op ANY/ALL (array) requires array on right side");
    if (!comparable(column_oid(w, column), element))
        return no_operator(w->c, pl_type_name(column_oid(w, column)), "=", pl_type_name(element),
                           n->at);
    return list(w, n->left, n->right->left->items, n->right->left->count, n->at);
}

/* column = ANY (array) */
static status any(struct where_pass *w, const struct ast_node *n)
{
    struct pl__cond cond = {.kind = COND_ANY, .cmp = KV_EQ, .count = 1, .repeat = -1, .at = n->at};
    if (strcmp(n->text, "=") != 0 || !is_column(n->left))
        return pl__no_pattern(w->c, n->at, w->nearest, "ANY stands right of column =");
    if (n->right != NULL && n->right->kind == AST_ARRAY)
        return list(w, n->left, n->right->items, n->right->count, n->at);
    if (is_array_cast(n->right))
        return any_of_cast(w, n);
    ST_TRY(pl__column(w->c, w->scope, n->left, &cond.column));
    uint32_t oid = column_oid(w, cond.column), array = pl_type_array(oid);
    ST_TRY(one_value(w, n->right, array, &cond.values));
    uint32_t given = cond.values[0]->oid, element = pl_type_element(given);
    if (given != OID_UNKNOWN && element == 0)
        return pl__error(w->c, n->at, ST_INVALID, "42809",
                         "op ANY/ALL (array) requires array on right side");
    if (given != OID_UNKNOWN && !comparable(oid, element))
        return no_operator(w->c, pl_type_name(oid), "=", pl_type_name(element), n->at);
    if (array == 0)
        return pl__no_pattern(w->c, n->at, w->nearest, "ANY takes an array of integers or texts");
    return add(w, &cond);
}

static status like(struct where_pass *w, const struct ast_node *n)
{
    struct pl__cond cond = {.kind = COND_LIKE, .cmp = KV_EQ, .count = 1, .repeat = -1, .at = n->at};
    if (strcmp(n->text, "~~") != 0)
        return pl__no_pattern(w->c, n->at, w->nearest, "it has no NOT LIKE");
    ST_TRY(pl__column(w->c, w->scope, n->left, &cond.column));
    if (column_oid(w, cond.column) != OID_TEXT)
        return no_operator(w->c, pl_type_name(column_oid(w, cond.column)), "~~", "unknown", n->at);
    ST_TRY(one_value(w, n->right, OID_TEXT, &cond.values));
    if (!comparable(OID_TEXT, cond.values[0]->oid))
        return no_operator(w->c, "text", "~~", pl_type_name(cond.values[0]->oid), n->at);
    return add(w, &cond);
}

static status condition(struct where_pass *w, const struct ast_node *n)
{
    switch ((int)n->kind) {
    case AST_AND:
        for (unsigned i = 0; i < n->count; i++)
            ST_TRY(condition(w, n->items[i]));
        return ST_OK;
    case AST_OP: return comparison(w, n);
    case AST_BETWEEN:
        if (!is_column(n->left) || n->count != 2)
            break;
        ST_TRY(compare(w, n->left, KV_GE, n->items[0], n->at, false));
        return compare(w, n->left, KV_LE, n->items[1], n->at, false);
    case AST_IN:
        if (!is_column(n->left) || strcmp(n->text, "=") != 0)
            break;
        return list(w, n->left, n->items, n->count, n->at);
    case AST_ANY: return any(w, n);
    case AST_LIKE:
        if (!is_column(n->left))
            break;
        return like(w, n);
    case AST_IS_NULL:
    case AST_IS_NOT_NULL: {
        struct pl__cond cond = {.kind = COND_COMPARE,
                                .repeat = -1,
                                .at = n->at,
                                .cmp = n->kind == AST_IS_NULL ? KV_IS_NULL : KV_IS_NOT_NULL};
        if (!is_column(n->left))
            break;
        ST_TRY(pl__column(w->c, w->scope, n->left, &cond.column));
        return add(w, &cond);
    }
    case AST_OR: return pl__no_pattern(w->c, n->at, w->nearest, "OR is not part of it");
    case AST_NOT: return pl__no_pattern(w->c, n->at, w->nearest, "NOT is not part of it");
    default: break;
    }
    return pl__no_pattern(w->c, n->at, w->nearest, "it has no condition of this form");
}

status pl__canonical_where(struct pl__compile *c, const struct pl__scope *scope,
                           const struct ast_node *where, struct pl__where *out)
{
    struct where_pass w = {.c = c, .scope = scope, .nearest = nearest_of(c, scope->def)};
    if (where != NULL)
        ST_TRY(condition(&w, where));
    /* A stable insertion sort by column; whole-key conditions come first. */
    struct pl__cond *conds = ARENA_ARRAY(c->a, struct pl__cond, w.count + 1);
    for (unsigned i = 0; i < w.count; i++) {
        unsigned k = i;
        for (; k > 0 && conds[k - 1].column > w.conds[i].column; k--)
            conds[k] = conds[k - 1];
        conds[k] = w.conds[i];
    }
    out->conds = conds;
    out->count = w.count;
    return ST_OK;
}

/* -- output columns ---------------------------------------------------------------------------- */

struct projection {
    struct pl_column *columns;
    unsigned count, room;
};

static status project(struct pl__compile *c, struct projection *p, const struct kv_table_def *def,
                      unsigned column, const char *heading, int at)
{
    if (p->count == p->room)
        return pl__error(c, at, ST_LIMIT, "54011", "target lists can have at most %u entries",
                         LIMIT_PROJECTION);
    p->columns[p->count++] = (struct pl_column){
        .name = heading,
        .oid = pl_type_of(def->columns[column].type),
        .typmod = -1,
        .source = (int)column,
        .type = def->columns[column].type,
    };
    return ST_OK;
}

static bool is_constant(const struct ast_node *n)
{
    return n != NULL && (n->kind == AST_INT || n->kind == AST_NUMBER || n->kind == AST_STRING ||
                         n->kind == AST_BOOL_CONST || n->kind == AST_NULL);
}

/* SELECT 1 FROM …: the value is part of the plan, and so of its key. */
static status project_constant(struct pl__compile *c, struct projection *p,
                               const struct ast_target *t)
{
    const struct pl__expr *e;
    bool fixed = c->fixed;
    if (p->count == p->room)
        return pl__error(c, t->value->at, ST_LIMIT, "54011",
                         "target lists can have at most %u entries", LIMIT_PROJECTION);
    c->fixed = true;
    status st = pl__expr(c, t->value, OID_TEXT, &e);
    c->fixed = fixed;
    ST_TRY(st);
    struct pl_value *v = ARENA_NEW(c->a, struct pl_value);
    *v = e->value;
    if (v->oid == OID_UNKNOWN)
        v->oid = OID_TEXT;
    p->columns[p->count++] = (struct pl_column){
        .name = t->name != NULL ? arena_strdup(c->a, bytes_str(t->name)) : pl__heading(c, t->value),
        .oid = v->oid,
        .typmod = -1,
        .source = PL_CONSTANT,
        .constant = v,
    };
    return ST_OK;
}

status pl__projection(struct pl__compile *c, const struct pl__scope *scope,
                      const struct ast_target *targets, unsigned count)
{
    struct projection p = {.room = LIMIT_PROJECTION};
    p.columns = ARENA_ARRAY(c->a, struct pl_column, LIMIT_PROJECTION);
    for (unsigned i = 0; i < count; i++) {
        const struct ast_node *n = targets[i].value;
        unsigned column;
        if (n != NULL && n->kind == AST_COLUMN && n->star) {
            if (!qualifier_fits(scope, n, n->name_count))
                return bad_qualifier(c, scope, n);
            for (unsigned k = 0; k < scope->def->column_count; k++)
                ST_TRY(project(c, &p, scope->def, k, scope->def->columns[k].name, n->at));
            continue;
        }
        if (is_constant(n) && c->stmt->kind == STMT_SELECT) {
            ST_TRY(project_constant(c, &p, &targets[i]));
            continue;
        }
        status st = pl__column(c, scope, n, &column);
        if (st == ST_UNSUPPORTED && (c->err == NULL || c->err->code == ST_OK))
            return pl__no_pattern(
                c, n == NULL ? -1 : n->at, nearest_of(c, scope->def),
                c->stmt->kind == STMT_SELECT
                    ? "its output is plain columns, constants, * or count(*) alone"
                    : "it returns plain columns or *");
        ST_TRY(st);
        const char *name = targets[i].name != NULL ? arena_strdup(c->a, bytes_str(targets[i].name))
                                                   : scope->def->columns[column].name;
        ST_TRY(project(c, &p, scope->def, column, name, n->at));
    }
    c->plan->pub.columns = p.columns;
    c->plan->pub.column_count = p.count;
    c->plan->pub.returns_rows = true;
    return ST_OK;
}

/* -- ORDER BY, LIMIT --------------------------------------------------------------------------- */

/* The column of a sort key: by name, by heading, or by the number of an output column. */
static status sort_column(struct pl__compile *c, const struct pl__scope *scope,
                          const struct ast_node *n, enum pl_pattern_id nearest, unsigned *out)
{
    const struct pl_plan *plan = &c->plan->pub;
    if (n->kind == AST_INT) {
        if (n->ival < 1 || n->ival > plan->column_count)
            return pl__error(c, n->at, ST_INVALID, "42P10",
                             "ORDER BY position %lld is not in select list", (long long)n->ival);
        if (plan->columns[n->ival - 1].source < 0)
            return pl__no_pattern(c, n->at, nearest, "it sorts by columns of the key");
        *out = (unsigned)plan->columns[n->ival - 1].source;
        return ST_OK;
    }
    if (is_column(n) && n->name_count == 1) {
        for (unsigned i = 0; i < plan->column_count; i++) {
            if (strcmp(plan->columns[i].name, n->names[0]) == 0 && plan->columns[i].source >= 0) {
                *out = (unsigned)plan->columns[i].source;
                return ST_OK;
            }
        }
    }
    status st = pl__column(c, scope, n, out);
    if (st == ST_UNSUPPORTED && (c->err == NULL || c->err->code == ST_OK))
        return pl__no_pattern(c, n->at, nearest, "it sorts by columns of the key");
    return st;
}

/* Is COLUMN fixed to one value by an equality? */
static bool is_fixed(const struct pl__table *t, unsigned column)
{
    for (unsigned i = 0; i < t->where.count; i++) {
        const struct pl__cond *k = &t->where.conds[i];
        if (k->kind == COND_COMPARE && k->cmp == KV_EQ && k->column == column)
            return true;
    }
    return false;
}

status pl__order(struct pl__compile *c, const struct pl__scope *scope, struct pl__table *t,
                 enum pl_pattern_id nearest)
{
    unsigned next = t->eq_count; /* the key column that the order must name next */
    bool first = true;
    for (unsigned i = 0; i < c->stmt->sort_count; i++) {
        const struct ast_sort *s = &c->stmt->sort[i];
        unsigned column;
        if (s->using_op || s->value == NULL)
            return pl__no_pattern(c, s->at, nearest, "ORDER BY … USING is not part of it");
        ST_TRY(sort_column(c, scope, s->value, nearest, &column));
        if (is_fixed(t, column) || next >= t->def->key_count)
            continue; /* one value only, or the order is complete already */
        if (column != next)
            return pl__no_pattern(c, s->at, nearest, "rows come in the order of the key, (%s%s%s)",
                                  t->def->columns[0].name, t->def->key_count > 1 ? ", " : "",
                                  t->def->key_count > 1 ? t->def->columns[1].name : "");
        if (!first && s->descending != t->backwards)
            return pl__no_pattern(c, s->at, nearest, "all of the key is sorted in one direction");
        t->backwards = s->descending;
        first = false;
        next++;
    }
    return ST_OK;
}

status pl__limit(struct pl__compile *c, const struct ast_stmt *s, struct pl__table *t,
                 enum pl_pattern_id nearest)
{
    if (s->with_ties)
        return pl__no_pattern(c, -1, nearest, "WITH TIES is not part of it");
    if (s->offset != NULL &&
        !((s->offset->kind == AST_INT && s->offset->ival == 0) || s->offset->kind == AST_NULL))
        return pl__no_pattern(c, s->offset->at, nearest,
                              "OFFSET is not part of it: continue behind the last "
                              "name instead");
    if (s->limit == NULL || s->limit->kind == AST_NULL)
        return ST_OK;
    ST_TRY(pl__expr_of(c, s->limit, OID_INT8, nearest, &t->limit));
    uint32_t oid = t->limit->oid;
    if (oid != OID_UNKNOWN && oid != OID_INT8 && oid != OID_INT4 && oid != OID_INT2)
        return pl__error(c, s->limit->at, ST_INVALID, "42804",
                         "argument of LIMIT must be type bigint, not type %s", pl_type_name(oid));
    return ST_OK;
}
