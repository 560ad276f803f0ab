/*
 * planner/parse.c — texts into our own syntax trees, through libpg_query.
 *
 * pg_query_parse_protobuf runs PostgreSQL's grammar and serialises the raw tree; protobuf-c turns
 * the bytes into C structs; copy_* take from them what patterns can use and everything foreign is
 * freed before pl__parse returns. Nothing of libpg_query is visible outside this file.
 *
 * Traps that this file owns:
 *  1. The library and protobuf-c recurse without limit. pl_scan bounds nesting and chains before,
 *  and
 *     parse threads have 64 MiB of stack: 2,000 levels of the worst shape use 12 MiB.
 *  2. pg_query_exit is never called (it frees state that the next call would use).
 *  3. A result is freed by its own free function, also after an error.
 *  4. protobuf-c is linked before libpg_query, which carries a copy of its own.
 */
#include "planner/parse.h"

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>
#include <stdlib.h>

struct copy {
    struct arena *a;
};

typedef PgQuery__Node node;

static const struct ast_node *copy_node(struct copy *c, const node *n);
static const struct ast_stmt *copy_stmt(struct copy *c, const node *n);

/* Fields share a name with the union's member in every case used here. */
#define IS(n, what) ((n) != NULL && (n)->node_case == PG_QUERY__NODE__NODE_##what)

static const char *copy_text(struct copy *c, const char *s)
{
    return arena_strdup(c->a, bytes_str(s == NULL ? "" : s));
}

/* protobuf-c gives "" for a string that is not there. */
static const char *copy_name(struct copy *c, const char *s)
{
    return s == NULL || s[0] == '\0' ? NULL : copy_text(c, s);
}

static const char *const *copy_strings(struct copy *c, node *const *list, size_t n)
{
    const char **out = ARENA_ARRAY(c->a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = IS(list[i], STRING) ? copy_text(c, list[i]->string->sval) : "*";
    return out;
}

static const struct ast_node *const *copy_list(struct copy *c, node *const *list, size_t n)
{
    const struct ast_node **out = ARENA_ARRAY(c->a, const struct ast_node *, n + 1);
    for (size_t i = 0; i < n; i++)
        out[i] = copy_node(c, list[i]);
    return out;
}

static struct ast_node *make(struct copy *c, enum ast_kind kind, int at)
{
    struct ast_node *out = ARENA_NEW(c->a, struct ast_node);
    out->kind = kind;
    out->at = at;
    return out;
}

static const struct ast_node *copy_const(struct copy *c, const PgQuery__AConst *k)
{
    struct ast_node *out = make(c, AST_NULL, k->location);
    if (k->isnull)
        return out;
    switch ((int)k->val_case) {
    case PG_QUERY__A__CONST__VAL_IVAL:
        out->kind = AST_INT;
        out->ival = k->ival->ival;
        break;
    case PG_QUERY__A__CONST__VAL_FVAL:
        out->kind = AST_NUMBER;
        out->text = copy_text(c, k->fval->fval);
        break;
    case PG_QUERY__A__CONST__VAL_BOOLVAL:
        out->kind = AST_BOOL_CONST;
        out->ival = k->boolval->boolval;
        break;
    case PG_QUERY__A__CONST__VAL_SVAL:
        out->kind = AST_STRING;
        out->text = copy_text(c, k->sval->sval);
        break;
    default:
        out->kind = AST_BITS;
        out->text =
            k->val_case == PG_QUERY__A__CONST__VAL_BSVAL ? copy_text(c, k->bsval->bsval) : "";
    }
    return out;
}

static const struct ast_type *copy_type(struct copy *c, const PgQuery__TypeName *t)
{
    struct ast_type *out = ARENA_NEW(c->a, struct ast_type);
    if (t == NULL)
        return out;
    out->names = copy_strings(c, t->names, t->n_names);
    out->name_count = (unsigned)t->n_names;
    out->typmods = copy_list(c, t->typmods, t->n_typmods);
    out->typmod_count = (unsigned)t->n_typmods;
    out->array = t->n_array_bounds > 0;
    out->setof = t->setof;
    out->at = t->location;
    return out;
}

static const struct ast_node *copy_a_expr(struct copy *c, const PgQuery__AExpr *e)
{
    struct ast_node *out = make(c, AST_OTHER, e->location);
    out->left = copy_node(c, e->lexpr);
    out->text = e->n_name > 0 && IS(e->name[e->n_name - 1], STRING)
                    ? copy_text(c, e->name[e->n_name - 1]->string->sval)
                    : "";
    switch ((int)e->kind) {
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP: out->kind = AST_OP; break;
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP_ANY: out->kind = AST_ANY; break;
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP_ALL: out->kind = AST_ALL; break;
    case PG_QUERY__A__EXPR__KIND__AEXPR_LIKE: out->kind = AST_LIKE; break;
    case PG_QUERY__A__EXPR__KIND__AEXPR_IN: out->kind = AST_IN; break;
    case PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN: out->kind = AST_BETWEEN; break;
    default: return out;
    }
    if ((out->kind == AST_IN || out->kind == AST_BETWEEN)) {
        if (!IS(e->rexpr, LIST)) {
            out->kind = AST_OTHER;
            return out;
        }
        out->items = copy_list(c, e->rexpr->list->items, e->rexpr->list->n_items);
        out->count = (unsigned)e->rexpr->list->n_items;
    } else {
        out->right = copy_node(c, e->rexpr);
    }
    return out;
}

static const struct ast_node *copy_call(struct copy *c, const PgQuery__FuncCall *f)
{
    struct ast_node *out = make(c, AST_CALL, f->location);
    out->names = copy_strings(c, f->funcname, f->n_funcname);
    out->name_count = (unsigned)f->n_funcname;
    out->items = copy_list(c, f->args, f->n_args);
    out->count = (unsigned)f->n_args;
    out->star = f->agg_star;
    out->plain = f->n_agg_order == 0 && f->agg_filter == NULL && f->over == NULL &&
                 !f->agg_within_group && !f->agg_distinct && !f->func_variadic;
    return out;
}

static const struct ast_node *copy_value_function(struct copy *c,
                                                  const PgQuery__SQLValueFunction *f)
{
    static const char *const names[] = {
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_DATE] = "current_date",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIME] = "current_time",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIME_N] = "current_time",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIMESTAMP] = "current_timestamp",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIMESTAMP_N] = "current_timestamp",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIME] = "localtime",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIME_N] = "localtime",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP] = "localtimestamp",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP_N] = "localtimestamp",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_ROLE] = "current_role",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_USER] = "current_user",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_USER] = "user",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_SESSION_USER] = "session_user",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_CATALOG] = "current_catalog",
        [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_SCHEMA] = "current_schema",
    };
    struct ast_node *out = make(c, AST_VALUE_FUNCTION, f->location);
    size_t op = (size_t)f->op;
    out->text = op < ARRAY_LEN(names) && names[op] != NULL ? names[op] : "";
    return out;
}

static const struct ast_node *copy_items(struct copy *c, enum ast_kind kind, node *const *items,
                                         size_t n, int at)
{
    struct ast_node *out = make(c, kind, at);
    out->items = copy_list(c, items, n);
    out->count = (unsigned)n;
    return out;
}

static const struct ast_node *copy_bool(struct copy *c, const PgQuery__BoolExpr *b)
{
    enum ast_kind kind = b->boolop == PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR  ? AST_AND
                         : b->boolop == PG_QUERY__BOOL_EXPR_TYPE__OR_EXPR ? AST_OR
                                                                          : AST_NOT;
    return copy_items(c, kind, b->args, b->n_args, b->location);
}

static const struct ast_node *copy_column(struct copy *c, const PgQuery__ColumnRef *r)
{
    struct ast_node *out = make(c, AST_COLUMN, r->location);
    size_t n = r->n_fields;
    out->star = n > 0 && IS(r->fields[n - 1], A_STAR);
    out->name_count = (unsigned)(out->star ? n - 1 : n);
    out->names = copy_strings(c, r->fields, out->name_count);
    return out;
}

/* The name of a node kind as the library's own descriptor has it: "case_expr". */
static const char *kind_name(struct copy *c, const node *n)
{
    const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(
        &pg_query__node__descriptor, (unsigned)n->node_case);
    return f == NULL ? "expression" : copy_text(c, f->name);
}

static const struct ast_node *copy_cast(struct copy *c, const PgQuery__TypeCast *t)
{
    struct ast_node *out = make(c, AST_CAST, t->location);
    out->left = copy_node(c, t->arg);
    out->type = copy_type(c, t->type_name);
    return out;
}

static const struct ast_node *copy_null_test(struct copy *c, const PgQuery__NullTest *t)
{
    bool is_null = t->nulltesttype == PG_QUERY__NULL_TEST_TYPE__IS_NULL;
    struct ast_node *out = make(c, is_null ? AST_IS_NULL : AST_IS_NOT_NULL, t->location);
    out->left = copy_node(c, t->arg);
    return out;
}

static const struct ast_node *copy_min_max(struct copy *c, const PgQuery__MinMaxExpr *m)
{
    bool greatest = m->op == PG_QUERY__MIN_MAX_OP__IS_GREATEST;
    return copy_items(c, greatest ? AST_GREATEST : AST_LEAST, m->args, m->n_args, m->location);
}

static const struct ast_node *copy_node(struct copy *c, const node *n)
{
    struct ast_node *out;
    if (n == NULL)
        return NULL;
    switch ((int)n->node_case) {
    case PG_QUERY__NODE__NODE_A_CONST: return copy_const(c, n->a_const);
    case PG_QUERY__NODE__NODE_PARAM_REF:
        out = make(c, AST_PARAM, n->param_ref->location);
        out->ival = n->param_ref->number;
        return out;
    case PG_QUERY__NODE__NODE_COLUMN_REF: return copy_column(c, n->column_ref);
    case PG_QUERY__NODE__NODE_A_EXPR: return copy_a_expr(c, n->a_expr);
    case PG_QUERY__NODE__NODE_TYPE_CAST: return copy_cast(c, n->type_cast);
    case PG_QUERY__NODE__NODE_FUNC_CALL: return copy_call(c, n->func_call);
    case PG_QUERY__NODE__NODE_BOOL_EXPR: return copy_bool(c, n->bool_expr);
    case PG_QUERY__NODE__NODE_NULL_TEST: return copy_null_test(c, n->null_test);
    case PG_QUERY__NODE__NODE_MIN_MAX_EXPR: return copy_min_max(c, n->min_max_expr);
    case PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION:
        return copy_value_function(c, n->sqlvalue_function);
    case PG_QUERY__NODE__NODE_ROW_EXPR:
        return copy_items(c, AST_ROW, n->row_expr->args, n->row_expr->n_args,
                          n->row_expr->location);
    case PG_QUERY__NODE__NODE_A_ARRAY_EXPR:
        return copy_items(c, AST_ARRAY, n->a_array_expr->elements, n->a_array_expr->n_elements,
                          n->a_array_expr->location);
    case PG_QUERY__NODE__NODE_LIST:
        return copy_items(c, AST_LIST, n->list->items, n->list->n_items, -1);
    case PG_QUERY__NODE__NODE_SET_TO_DEFAULT:
        return make(c, AST_DEFAULT, n->set_to_default->location);
    /* Bare values, as options of COPY, EXPLAIN and transactions have them. */
    case PG_QUERY__NODE__NODE_STRING:
        out = make(c, AST_STRING, -1);
        out->text = copy_text(c, n->string->sval);
        return out;
    case PG_QUERY__NODE__NODE_INTEGER:
        out = make(c, AST_INT, -1);
        out->ival = n->integer->ival;
        return out;
    case PG_QUERY__NODE__NODE_FLOAT:
        out = make(c, AST_NUMBER, -1);
        out->text = copy_text(c, n->float_->fval);
        return out;
    case PG_QUERY__NODE__NODE_BOOLEAN:
        out = make(c, AST_BOOL_CONST, -1);
        out->ival = n->boolean->boolval;
        return out;
    case PG_QUERY__NODE__NODE_A_STAR:
        out = make(c, AST_STRING, -1);
        out->text = "*";
        return out;
    default:
        out = make(c, AST_OTHER, -1);
        out->text = kind_name(c, n);
        if (n->node_case == PG_QUERY__NODE__NODE_SUB_LINK)
            out->at = n->sub_link->location;
        else if (n->node_case == PG_QUERY__NODE__NODE_CASE_EXPR)
            out->at = n->case_expr->location;
        else if (n->node_case == PG_QUERY__NODE__NODE_COALESCE_EXPR)
            out->at = n->coalesce_expr->location;
        return out;
    }
}

/* -- statements -------------------------------------------------------------------------------- */

static const struct ast_target *copy_targets(struct copy *c, node *const *list, size_t n)
{
    struct ast_target *out = ARENA_ARRAY(c->a, struct ast_target, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!IS(list[i], RES_TARGET))
            continue;
        const PgQuery__ResTarget *t = list[i]->res_target;
        out[i].name = copy_name(c, t->name);
        out[i].indirection = t->n_indirection > 0;
        out[i].value = copy_node(c, t->val);
        out[i].at = t->location;
    }
    return out;
}

static void copy_range_var(struct copy *c, const PgQuery__RangeVar *r, struct ast_relation *out)
{
    if (r == NULL)
        return;
    out->schema = copy_name(c, r->schemaname);
    out->name = copy_text(c, r->relname);
    out->only = !r->inh;
    out->at = r->location;
    if (r->alias != NULL) {
        out->alias = copy_name(c, r->alias->aliasname);
        out->column_aliases = r->alias->n_colnames > 0;
    }
}

static void copy_range_function(struct copy *c, const PgQuery__RangeFunction *f,
                                struct ast_relation *out)
{
    /* Each function is a list of the call and its column definitions. */
    if (f->n_functions == 1 && IS(f->functions[0], LIST) && f->functions[0]->list->n_items > 0 &&
        f->n_coldeflist == 0 && !f->is_rowsfrom) {
        out->function = copy_node(c, f->functions[0]->list->items[0]);
        out->at = out->function->at;
    } else {
        out->other = "ROWS FROM";
    }
    out->ordinality = f->ordinality;
    if (f->alias != NULL) {
        out->alias = copy_name(c, f->alias->aliasname);
        out->column_aliases = f->alias->n_colnames > 0;
    }
}

static const struct ast_relation *copy_from(struct copy *c, node *const *list, size_t n)
{
    struct ast_relation *out = ARENA_ARRAY(c->a, struct ast_relation, n + 1);
    for (size_t i = 0; i < n; i++) {
        out[i].at = -1;
        if (IS(list[i], RANGE_VAR))
            copy_range_var(c, list[i]->range_var, &out[i]);
        else if (IS(list[i], RANGE_FUNCTION))
            copy_range_function(c, list[i]->range_function, &out[i]);
        else if (IS(list[i], JOIN_EXPR))
            out[i].other = "JOIN";
        else if (IS(list[i], RANGE_TABLE_SAMPLE))
            out[i].other = "TABLESAMPLE";
        else
            out[i].other = "a sub-select";
    }
    return out;
}

static const struct ast_sort *copy_sort(struct copy *c, node *const *list, size_t n)
{
    struct ast_sort *out = ARENA_ARRAY(c->a, struct ast_sort, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!IS(list[i], SORT_BY))
            continue;
        const PgQuery__SortBy *s = list[i]->sort_by;
        out[i].value = copy_node(c, s->node);
        out[i].descending = s->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_DESC;
        out[i].using_op = s->sortby_dir == PG_QUERY__SORT_BY_DIR__SORTBY_USING;
        out[i].nulls_said = s->sortby_nulls == PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_FIRST ||
                            s->sortby_nulls == PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_LAST;
        out[i].nulls_first = s->sortby_nulls == PG_QUERY__SORT_BY_NULLS__SORTBY_NULLS_FIRST;
        out[i].at = out[i].value == NULL ? -1 : out[i].value->at;
    }
    return out;
}

static int first_at(const struct ast_node *const *items, size_t n)
{
    return n > 0 && items[0] != NULL ? items[0]->at : -1;
}

static void copy_locking(struct copy *c, const PgQuery__SelectStmt *s, struct ast_stmt *out)
{
    for (size_t i = 0; i < s->n_locking_clause; i++) {
        const PgQuery__LockingClause *l = s->locking_clause[i]->locking_clause;
        bool update = l->strength == PG_QUERY__LOCK_CLAUSE_STRENGTH__LCS_FORUPDATE ||
                      l->strength == PG_QUERY__LOCK_CLAUSE_STRENGTH__LCS_FORNOKEYUPDATE;
        out->for_update = out->for_update || update;
        out->lock_other = out->lock_other || !update || i > 0;
        if (l->n_locked_rels > 0)
            copy_range_var(c, l->locked_rels[0]->range_var, &out->lock_of);
        out->lock_other = out->lock_other || l->n_locked_rels > 1;
        if (l->wait_policy == PG_QUERY__LOCK_WAIT_POLICY__LockWaitSkip)
            out->lock_other = true; /* SKIP LOCKED; NOWAIT is what happens anyway */
    }
}

/* Clauses that no pattern has; the first one present is named in the error. */
static void note_unusual(struct copy *c, const PgQuery__SelectStmt *s, struct ast_stmt *out)
{
    out->unusual_at = -1;
    if (s->with_clause != NULL) {
        out->unusual = "WITH";
        out->unusual_at = s->with_clause->location;
    } else if (s->op != PG_QUERY__SET_OPERATION__SETOP_NONE) {
        out->unusual = "UNION, INTERSECT or EXCEPT";
        out->set_operation = true;
    } else if (s->n_distinct_clause > 0) {
        out->unusual = "DISTINCT";
    } else if (s->into_clause != NULL) {
        out->unusual = "INTO";
    } else if (s->n_group_clause > 0) {
        out->unusual = "GROUP BY";
        out->unusual_at = first_at(copy_list(c, s->group_clause, s->n_group_clause), 1);
    } else if (s->having_clause != NULL) {
        out->unusual = "HAVING";
        out->unusual_at = copy_node(c, s->having_clause)->at;
    } else if (s->n_window_clause > 0) {
        out->unusual = "WINDOW";
    }
}

static void copy_select(struct copy *c, const PgQuery__SelectStmt *s, struct ast_stmt *out)
{
    out->kind = STMT_SELECT;
    out->targets = copy_targets(c, s->target_list, s->n_target_list);
    out->target_count = (unsigned)s->n_target_list;
    out->from = copy_from(c, s->from_clause, s->n_from_clause);
    out->from_count = (unsigned)s->n_from_clause;
    out->where = copy_node(c, s->where_clause);
    out->sort = copy_sort(c, s->sort_clause, s->n_sort_clause);
    out->sort_count = (unsigned)s->n_sort_clause;
    out->limit = copy_node(c, s->limit_count);
    out->offset = copy_node(c, s->limit_offset);
    out->with_ties = s->limit_option == PG_QUERY__LIMIT_OPTION__LIMIT_OPTION_WITH_TIES;
    out->rows = copy_list(c, s->values_lists, s->n_values_lists);
    out->row_count = (unsigned)s->n_values_lists;
    copy_locking(c, s, out);
    note_unusual(c, s, out);
}

static void copy_conflict(struct copy *c, const PgQuery__OnConflictClause *k, struct ast_stmt *out)
{
    if (k == NULL || k->action == PG_QUERY__ON_CONFLICT_ACTION__ONCONFLICT_NONE)
        return;
    out->on_conflict = k->action == PG_QUERY__ON_CONFLICT_ACTION__ONCONFLICT_UPDATE
                           ? ON_CONFLICT_UPDATE
                           : ON_CONFLICT_NOTHING;
    out->conflict_at = k->location;
    out->conflict_sets = copy_targets(c, k->target_list, k->n_target_list);
    out->conflict_set_count = (unsigned)k->n_target_list;
    out->conflict_where = copy_node(c, k->where_clause);
    const PgQuery__InferClause *infer = k->infer;
    if (infer == NULL)
        return;
    out->conflict_constraint = copy_name(c, infer->conname);
    out->conflict_unusual = infer->where_clause != NULL;
    const char **names = ARENA_ARRAY(c->a, const char *, infer->n_index_elems + 1);
    for (size_t i = 0; i < infer->n_index_elems; i++) {
        const PgQuery__IndexElem *e =
            IS(infer->index_elems[i], INDEX_ELEM) ? infer->index_elems[i]->index_elem : NULL;
        if (e == NULL || e->expr != NULL || e->n_collation > 0 || e->n_opclass > 0)
            out->conflict_unusual = true;
        names[i] = e == NULL ? "" : copy_text(c, e->name);
    }
    out->conflict_columns = names;
    out->conflict_column_count = (unsigned)infer->n_index_elems;
}

static void copy_insert(struct copy *c, const PgQuery__InsertStmt *s, struct ast_stmt *out)
{
    out->kind = STMT_INSERT;
    copy_range_var(c, s->relation, &out->table);
    out->targets = copy_targets(c, s->cols, s->n_cols);
    out->target_count = (unsigned)s->n_cols;
    out->returning = copy_targets(c, s->returning_list, s->n_returning_list);
    out->returning_count = (unsigned)s->n_returning_list;
    out->unusual_at = -1;
    if (s->with_clause != NULL)
        out->unusual = "WITH";
    else if (s->override != PG_QUERY__OVERRIDING_KIND__OVERRIDING_NOT_SET &&
             s->override != PG_QUERY__OVERRIDING_KIND__OVERRIDING_KIND_UNDEFINED)
        out->unusual = "OVERRIDING";
    copy_conflict(c, s->on_conflict_clause, out);
    if (!IS(s->select_stmt, SELECT_STMT)) {
        out->default_values = true;
        return;
    }
    const PgQuery__SelectStmt *v = s->select_stmt->select_stmt;
    out->rows = copy_list(c, v->values_lists, v->n_values_lists);
    out->row_count = (unsigned)v->n_values_lists;
    out->insert_select = v->n_values_lists == 0 || v->n_sort_clause > 0 || v->limit_count != NULL ||
                         v->limit_offset != NULL || v->with_clause != NULL;
}

static void copy_update(struct copy *c, const PgQuery__UpdateStmt *s, struct ast_stmt *out)
{
    out->kind = STMT_UPDATE;
    copy_range_var(c, s->relation, &out->table);
    out->targets = copy_targets(c, s->target_list, s->n_target_list);
    out->target_count = (unsigned)s->n_target_list;
    out->where = copy_node(c, s->where_clause);
    out->returning = copy_targets(c, s->returning_list, s->n_returning_list);
    out->returning_count = (unsigned)s->n_returning_list;
    out->unusual_at = -1;
    out->unusual = s->with_clause != NULL ? "WITH" : s->n_from_clause > 0 ? "FROM" : NULL;
}

static void copy_delete(struct copy *c, const PgQuery__DeleteStmt *s, struct ast_stmt *out)
{
    out->kind = STMT_DELETE;
    copy_range_var(c, s->relation, &out->table);
    out->where = copy_node(c, s->where_clause);
    out->returning = copy_targets(c, s->returning_list, s->n_returning_list);
    out->returning_count = (unsigned)s->n_returning_list;
    out->unusual_at = -1;
    out->unusual = s->with_clause != NULL ? "WITH" : s->n_using_clause > 0 ? "USING" : NULL;
}

static void copy_options(struct copy *c, node *const *list, size_t n, struct ast_stmt *out)
{
    struct ast_option *o = ARENA_ARRAY(c->a, struct ast_option, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!IS(list[i], DEF_ELEM))
            continue;
        o[i].name = copy_text(c, list[i]->def_elem->defname);
        o[i].value = copy_node(c, list[i]->def_elem->arg);
        o[i].at = list[i]->def_elem->location;
    }
    out->options = o;
    out->option_count = (unsigned)n;
}

static void copy_transaction(struct copy *c, const PgQuery__TransactionStmt *s,
                             struct ast_stmt *out)
{
    static const enum ast_transaction kinds[] = {
        [PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_BEGIN] = TRANSACTION_BEGIN,
        [PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_START] = TRANSACTION_START,
        [PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_COMMIT] = TRANSACTION_COMMIT,
        [PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_ROLLBACK] = TRANSACTION_ROLLBACK,
        [PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_SAVEPOINT] = TRANSACTION_SAVEPOINT,
        [PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_RELEASE] = TRANSACTION_RELEASE,
        [PG_QUERY__TRANSACTION_STMT_KIND__TRANS_STMT_ROLLBACK_TO] = TRANSACTION_ROLLBACK_TO,
    };
    size_t kind = (size_t)s->kind;
    out->kind = STMT_TRANSACTION;
    out->transaction = kind >= 1 && kind < ARRAY_LEN(kinds) ? kinds[kind] : TRANSACTION_TWO_PHASE;
    out->name = copy_name(c, s->savepoint_name);
    out->chain = s->chain;
    copy_options(c, s->options, s->n_options, out);
}

static void copy_set(struct copy *c, const PgQuery__VariableSetStmt *s, struct ast_stmt *out)
{
    static const enum ast_set kinds[] = {
        [PG_QUERY__VARIABLE_SET_KIND__VAR_SET_VALUE] = SET_VALUE,
        [PG_QUERY__VARIABLE_SET_KIND__VAR_SET_DEFAULT] = SET_DEFAULT,
        [PG_QUERY__VARIABLE_SET_KIND__VAR_SET_CURRENT] = SET_CURRENT,
        [PG_QUERY__VARIABLE_SET_KIND__VAR_SET_MULTI] = SET_MULTI,
        [PG_QUERY__VARIABLE_SET_KIND__VAR_RESET] = SET_RESET,
        [PG_QUERY__VARIABLE_SET_KIND__VAR_RESET_ALL] = SET_RESET_ALL,
    };
    size_t kind = (size_t)s->kind;
    out->kind = STMT_SET;
    out->set = kind < ARRAY_LEN(kinds) ? kinds[kind] : SET_VALUE;
    out->name = copy_name(c, s->name);
    out->local = s->is_local;
    if (out->set == SET_MULTI) {
        copy_options(c, s->args, s->n_args, out);
    } else {
        out->args = copy_list(c, s->args, s->n_args);
        out->arg_count = (unsigned)s->n_args;
    }
}

static void copy_prepare(struct copy *c, const PgQuery__PrepareStmt *s, struct ast_stmt *out)
{
    const struct ast_type **types = ARENA_ARRAY(c->a, const struct ast_type *, s->n_argtypes + 1);
    out->kind = STMT_PREPARE;
    out->name = copy_name(c, s->name);
    for (size_t i = 0; i < s->n_argtypes; i++)
        types[i] = copy_type(c, IS(s->argtypes[i], TYPE_NAME) ? s->argtypes[i]->type_name : NULL);
    out->types = types;
    out->type_count = (unsigned)s->n_argtypes;
    out->query = copy_stmt(c, s->query);
}

static void copy_fetch(struct copy *c, const PgQuery__FetchStmt *s, struct ast_stmt *out)
{
    out->kind = STMT_FETCH;
    out->name = copy_name(c, s->portalname);
    out->count = s->how_many;
    out->is_move = s->ismove;
    switch ((int)s->direction) {
    case PG_QUERY__FETCH_DIRECTION__FETCH_BACKWARD: out->direction = FETCH_IS_BACKWARD; break;
    case PG_QUERY__FETCH_DIRECTION__FETCH_ABSOLUTE: out->direction = FETCH_IS_ABSOLUTE; break;
    case PG_QUERY__FETCH_DIRECTION__FETCH_RELATIVE: out->direction = FETCH_IS_RELATIVE; break;
    default: out->direction = FETCH_IS_FORWARD;
    }
}

static void copy_copy(struct copy *c, const PgQuery__CopyStmt *s, struct ast_stmt *out)
{
    out->kind = STMT_COPY;
    copy_range_var(c, s->relation, &out->table);
    out->query = s->query == NULL ? NULL : copy_stmt(c, s->query);
    out->columns = copy_strings(c, s->attlist, s->n_attlist);
    out->column_count = (unsigned)s->n_attlist;
    out->is_from = s->is_from;
    out->from_program = s->is_program;
    out->to_file = s->filename != NULL && s->filename[0] != '\0';
    out->where = copy_node(c, s->where_clause);
    copy_options(c, s->options, s->n_options, out);
}

/* -- roles and privileges -- */

static const char *copy_role(struct copy *c, const node *n, struct ast_stmt *out)
{
    if (!IS(n, ROLE_SPEC) || n->role_spec->roletype == PG_QUERY__ROLE_SPEC_TYPE__ROLESPEC_PUBLIC) {
        out->refused = "PUBLIC";
        return "public";
    }
    return n->role_spec->roletype == PG_QUERY__ROLE_SPEC_TYPE__ROLESPEC_CSTRING
               ? copy_text(c, n->role_spec->rolename)
               : NULL;
}

static void copy_roles(struct copy *c, node *const *list, size_t n, struct ast_stmt *out)
{
    const char **names = ARENA_ARRAY(c->a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        names[i] = copy_role(c, list[i], out);
    out->roles = names;
    out->role_count = (unsigned)n;
}

static void copy_create_role(struct copy *c, const PgQuery__CreateRoleStmt *s, struct ast_stmt *out)
{
    const char **names = ARENA_ARRAY(c->a, const char *, 1);
    names[0] = copy_text(c, s->role);
    out->kind = STMT_ROLE;
    out->role = ROLE_CREATE;
    out->roles = names;
    out->role_count = 1;
    out->is_user = s->stmt_type == PG_QUERY__ROLE_STMT_TYPE__ROLESTMT_USER;
    copy_options(c, s->options, s->n_options, out);
}

static void copy_alter_role(struct copy *c, const PgQuery__AlterRoleStmt *s, struct ast_stmt *out)
{
    const char **names = ARENA_ARRAY(c->a, const char *, 1);
    out->kind = STMT_ROLE;
    out->role = ROLE_ALTER;
    if (s->role != NULL) {
        node n = {.node_case = PG_QUERY__NODE__NODE_ROLE_SPEC, .role_spec = s->role};
        names[0] = copy_role(c, &n, out);
    }
    out->roles = names;
    out->role_count = 1;
    copy_options(c, s->options, s->n_options, out);
}

static void copy_grant(struct copy *c, const PgQuery__GrantStmt *s, struct ast_stmt *out)
{
    bool database = s->objtype == PG_QUERY__OBJECT_TYPE__OBJECT_DATABASE;
    const char **privileges = ARENA_ARRAY(c->a, const char *, s->n_privileges + 1);
    out->kind = STMT_ROLE;
    out->role = s->is_grant ? ROLE_GRANT : ROLE_REVOKE;
    out->all_tables = s->targtype == PG_QUERY__GRANT_TARGET_TYPE__ACL_TARGET_ALL_IN_SCHEMA &&
                      s->objtype == PG_QUERY__OBJECT_TYPE__OBJECT_TABLE;
    if (s->grant_option)
        out->refused = "GRANT OPTION";
    if (!out->all_tables &&
        (!database || s->targtype != PG_QUERY__GRANT_TARGET_TYPE__ACL_TARGET_OBJECT))
        out->refused = "that object";
    for (size_t i = 0; i < s->n_privileges; i++) {
        bool plain =
            IS(s->privileges[i], ACCESS_PRIV) && s->privileges[i]->access_priv->n_cols == 0;
        if (!plain)
            out->refused = "columns";
        privileges[i] = plain ? copy_text(c, s->privileges[i]->access_priv->priv_name) : "";
    }
    out->privileges = privileges;
    out->privilege_count = (unsigned)s->n_privileges;
    out->databases = copy_strings(c, s->objects, s->n_objects);
    out->database_count = (unsigned)s->n_objects;
    copy_roles(c, s->grantees, s->n_grantees, out);
}

static int64_t discard_target(PgQuery__DiscardMode mode)
{
    switch ((int)mode) {
    case PG_QUERY__DISCARD_MODE__DISCARD_PLANS: return 1;
    case PG_QUERY__DISCARD_MODE__DISCARD_SEQUENCES: return 2;
    case PG_QUERY__DISCARD_MODE__DISCARD_TEMP: return 3;
    default: return 0;
    }
}

/* Statements of a few fields. */
static void copy_small(struct copy *c, const node *n, struct ast_stmt *out)
{
    switch ((int)n->node_case) {
    case PG_QUERY__NODE__NODE_VARIABLE_SHOW_STMT:
        out->kind = STMT_SHOW;
        out->name = copy_name(c, n->variable_show_stmt->name);
        break;
    case PG_QUERY__NODE__NODE_DISCARD_STMT:
        out->kind = STMT_DISCARD;
        out->count = discard_target(n->discard_stmt->target);
        break;
    case PG_QUERY__NODE__NODE_EXECUTE_STMT:
        out->kind = STMT_EXECUTE;
        out->name = copy_name(c, n->execute_stmt->name);
        out->args = copy_list(c, n->execute_stmt->params, n->execute_stmt->n_params);
        out->arg_count = (unsigned)n->execute_stmt->n_params;
        break;
    case PG_QUERY__NODE__NODE_DEALLOCATE_STMT:
        out->kind = STMT_DEALLOCATE;
        out->name = copy_name(c, n->deallocate_stmt->name);
        break;
    case PG_QUERY__NODE__NODE_DECLARE_CURSOR_STMT:
        out->kind = STMT_DECLARE;
        out->name = copy_name(c, n->declare_cursor_stmt->portalname);
        out->cursor_options = (unsigned)n->declare_cursor_stmt->options;
        out->query = copy_stmt(c, n->declare_cursor_stmt->query);
        break;
    case PG_QUERY__NODE__NODE_CLOSE_PORTAL_STMT:
        out->kind = STMT_CLOSE;
        out->name = copy_name(c, n->close_portal_stmt->portalname);
        break;
    case PG_QUERY__NODE__NODE_LISTEN_STMT:
        out->kind = STMT_LISTEN;
        out->name = copy_name(c, n->listen_stmt->conditionname);
        break;
    case PG_QUERY__NODE__NODE_UNLISTEN_STMT:
        out->kind = STMT_UNLISTEN;
        out->name = copy_name(c, n->unlisten_stmt->conditionname);
        break;
    case PG_QUERY__NODE__NODE_NOTIFY_STMT:
        out->kind = STMT_NOTIFY;
        out->name = copy_name(c, n->notify_stmt->conditionname);
        out->payload = copy_text(c, n->notify_stmt->payload);
        break;
    case PG_QUERY__NODE__NODE_EXPLAIN_STMT:
        out->kind = STMT_EXPLAIN;
        out->query = copy_stmt(c, n->explain_stmt->query);
        copy_options(c, n->explain_stmt->options, n->explain_stmt->n_options, out);
        break;
    case PG_QUERY__NODE__NODE_CREATE_ROLE_STMT:
        copy_create_role(c, n->create_role_stmt, out);
        break;
    case PG_QUERY__NODE__NODE_ALTER_ROLE_STMT: copy_alter_role(c, n->alter_role_stmt, out); break;
    case PG_QUERY__NODE__NODE_DROP_ROLE_STMT:
        out->kind = STMT_ROLE;
        out->role = ROLE_DROP;
        out->missing_ok = n->drop_role_stmt->missing_ok;
        copy_roles(c, n->drop_role_stmt->roles, n->drop_role_stmt->n_roles, out);
        break;
    case PG_QUERY__NODE__NODE_GRANT_STMT: copy_grant(c, n->grant_stmt, out); break;
    default: out->kind = STMT_OTHER; out->other = kind_name(c, n);
    }
}

/* What lies below a statement, found by walking messages by their descriptors. */
struct below {
    struct copy *c;
    struct ast_relation *relations;
    unsigned count, room;
    const char **with_names;
    unsigned with_count, with_room;
    unsigned param_max;
};

static void note_relation(struct below *b, const PgQuery__RangeVar *r)
{
    if (b->count == b->room)
        b->relations = arena_grow(b->c->a, b->relations, sizeof *b->relations, &b->room, 4);
    b->relations[b->count] = (struct ast_relation){0};
    copy_range_var(b->c, r, &b->relations[b->count++]);
}

static void note_with(struct below *b, const PgQuery__CommonTableExpr *e)
{
    if (b->with_count == b->with_room)
        b->with_names = arena_grow(b->c->a, b->with_names, sizeof *b->with_names, &b->with_room, 4);
    b->with_names[b->with_count++] = copy_text(b->c, e->ctename);
}

static void walk(struct below *b, const ProtobufCMessage *m)
{
    const ProtobufCMessageDescriptor *d = m->descriptor;
    if (d == &pg_query__locking_clause__descriptor)
        return; /* FOR UPDATE OF names what FROM has */
    if (d == &pg_query__range_var__descriptor)
        note_relation(b, (const PgQuery__RangeVar *)m);
    else if (d == &pg_query__common_table_expr__descriptor)
        note_with(b, (const PgQuery__CommonTableExpr *)m);
    else if (d == &pg_query__param_ref__descriptor) {
        int32_t n = ((const PgQuery__ParamRef *)m)->number;
        if (n > 0 && (unsigned)n > b->param_max)
            b->param_max = (unsigned)n;
    }
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        const uint8_t *base = (const uint8_t *)m;
        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = *(const size_t *)(const void *)(base + f->quantifier_offset);
            ProtobufCMessage *const *list =
                *(ProtobufCMessage *const *const *)(const void *)(base + f->offset);
            for (size_t k = 0; k < n; k++)
                walk(b, list[k]);
            continue;
        }
        if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
            *(const uint32_t *)(const void *)(base + f->quantifier_offset) != f->id)
            continue;
        const ProtobufCMessage *child =
            *(ProtobufCMessage *const *)(const void *)(base + f->offset);
        if (child != NULL)
            walk(b, child);
    }
}

static bool is_with_name(const struct below *b, const struct ast_relation *r)
{
    if (r->schema != NULL)
        return false;
    for (unsigned i = 0; i < b->with_count; i++) {
        if (strcmp(b->with_names[i], r->name) == 0)
            return true;
    }
    return false;
}

static void note_below(struct copy *c, const node *n, struct ast_stmt *out)
{
    struct below b = {.c = c};
    walk(&b, &n->base);
    unsigned kept = 0;
    for (unsigned i = 0; i < b.count; i++) {
        if (!is_with_name(&b, &b.relations[i]))
            b.relations[kept++] = b.relations[i];
    }
    out->relations = b.relations;
    out->relation_count = kept;
    out->param_max = b.param_max;
}

static const struct ast_stmt *copy_stmt(struct copy *c, const node *n)
{
    struct ast_stmt *out = ARENA_NEW(c->a, struct ast_stmt);
    if (n == NULL)
        return out;
    switch ((int)n->node_case) {
    case PG_QUERY__NODE__NODE_SELECT_STMT: copy_select(c, n->select_stmt, out); break;
    case PG_QUERY__NODE__NODE_INSERT_STMT: copy_insert(c, n->insert_stmt, out); break;
    case PG_QUERY__NODE__NODE_UPDATE_STMT: copy_update(c, n->update_stmt, out); break;
    case PG_QUERY__NODE__NODE_DELETE_STMT: copy_delete(c, n->delete_stmt, out); break;
    case PG_QUERY__NODE__NODE_TRANSACTION_STMT:
        copy_transaction(c, n->transaction_stmt, out);
        break;
    case PG_QUERY__NODE__NODE_VARIABLE_SET_STMT: copy_set(c, n->variable_set_stmt, out); break;
    case PG_QUERY__NODE__NODE_PREPARE_STMT: copy_prepare(c, n->prepare_stmt, out); break;
    case PG_QUERY__NODE__NODE_FETCH_STMT: copy_fetch(c, n->fetch_stmt, out); break;
    case PG_QUERY__NODE__NODE_COPY_STMT: copy_copy(c, n->copy_stmt, out); break;
    default: copy_small(c, n, out);
    }
    note_below(c, n, out);
    return out;
}

/* -- the door ---------------------------------------------------------------------------------- */

static status syntax_error(const PgQueryError *e, struct err *err)
{
    /* The library keeps no SQLSTATE; all but the encoding's are 42601. */
    const char *message = e->message == NULL ? "syntax error" : e->message;
    if (strncmp(message, "invalid byte sequence for encoding", 34) == 0)
        err_set_state(err, ST_SYNTAX, "22021", "%s", message);
    else
        err_set(err, ST_SYNTAX, "%s", message);
    if (err != NULL && e->cursorpos > 0)
        err->position = (uint32_t)e->cursorpos;
    return ST_SYNTAX;
}

status pl__tree_new(const char *text, PgQuery__ParseResult **out, struct err *err)
{
    PgQueryProtobufParseResult r = pg_query_parse_protobuf(text);
    status st = ST_OK;
    *out = NULL;
    if (r.error != NULL) {
        st = syntax_error(r.error, err);
    } else {
        *out = pg_query__parse_result__unpack(NULL, r.parse_tree.len,
                                              (const uint8_t *)r.parse_tree.data);
        if (*out == NULL)
            st = err_set(err, ST_NO_MEMORY, "cannot read the parse tree");
    }
    pg_query_free_protobuf_parse_result(r);
    return st;
}

void pl__tree_free(PgQuery__ParseResult *tree)
{
    if (tree != NULL)
        pg_query__parse_result__free_unpacked(tree, NULL);
}

status pl__parse(const char *text, struct arena *a, const struct ast_stmt **stmts, unsigned *count,
                 struct err *err)
{
    struct copy c = {.a = a};
    PgQuery__ParseResult *tree;
    ST_TRY(pl__tree_new(text, &tree, err));
    struct ast_stmt *list = ARENA_ARRAY(a, struct ast_stmt, tree->n_stmts + 1);
    for (size_t i = 0; i < tree->n_stmts; i++) {
        list[i] = *copy_stmt(&c, tree->stmts[i]->stmt);
        list[i].at = tree->stmts[i]->stmt_location;
        list[i].size = tree->stmts[i]->stmt_len;
    }
    *stmts = list;
    *count = (unsigned)tree->n_stmts;
    pl__tree_free(tree);
    return ST_OK;
}

uint64_t pl__fingerprint(const char *text)
{
    PgQueryFingerprintResult r = pg_query_fingerprint(text);
    uint64_t fp = r.error == NULL ? r.fingerprint : 0;
    pg_query_free_fingerprint_result(r);
    return fp;
}
