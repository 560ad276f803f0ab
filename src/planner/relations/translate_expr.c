/*
 * planner/relations/translate_expr.c — expressions: constants, boolean logic, CASE, sub-selects,
 * arrays, and the walk to them, to operators and to calls. Types come first (translate_type.c).
 */
#include "planner/relations/translate.h"

#include <stdlib.h>

/* ---- constants, parameters ---- */

static status constant(struct tr *t, const PgQuery__AConst *c, struct tr_ex *out)
{
    if (c->isnull) {
        *out = tr_typed("NULL", OID_UNKNOWN);
        return ST_OK;
    }
    switch ((int)c->val_case) {
    case PG_QUERY__A__CONST__VAL_IVAL:
        *out = tr_typed(arena_printf(t->a, "%d", c->ival->ival), OID_INT4);
        return ST_OK;
    case PG_QUERY__A__CONST__VAL_FVAL: {
        const char *text = c->fval->fval;
        bool digits = strspn(text, "0123456789") == strlen(text);
        bool fits = digits && (strlen(text) < 19 ||
                               (strlen(text) == 19 && strcmp(text, "9223372036854775807") <= 0));
        *out = tr_typed(arena_printf(t->a, digits && !fits ? "%s.0" : "%s", text),
                        fits ? OID_INT8 : OID_NUMERIC);
        return ST_OK;
    }
    case PG_QUERY__A__CONST__VAL_BOOLVAL:
        *out = tr_typed(c->boolval->boolval ? "1" : "0", OID_BOOL);
        return ST_OK;
    case PG_QUERY__A__CONST__VAL_SVAL:
        *out = tr_typed(tr_literal(t, c->sval->sval), OID_UNKNOWN);
        out->literal = arena_strdup(t->a, bytes_str(c->sval->sval));
        return ST_OK;
    default:
        return tr_fail(t, ST_UNSUPPORTED, "0A000", c->location,
                       "bit strings are not supported here");
    }
}

static status parameter(struct tr *t, const PgQuery__ParamRef *p, struct tr_ex *out)
{
    if (p->number < 1 || (unsigned)p->number > TR_PARAMS_MAX)
        return tr_fail(t, ST_INVALID, "42P02", p->location, "there is no parameter $%d", p->number);
    unsigned n = (unsigned)p->number;
    if (n > t->param_count)
        t->param_count = n;
    *out =
        tr_typed(arena_printf(t->a, "?%u", n), t->params[n - 1] ? t->params[n - 1] : OID_UNKNOWN);
    out->param = t->params[n - 1] ? 0 : n;
    return ST_OK;
}

/* ---- boolean ---- */

status tr_bool(struct tr *t, struct tr_scope *s, const PgQuery__Node *n, const char *what,
               const char **sql)
{
    struct tr_ex e;
    ST_TRY(tr_expr(t, s, n, &e));
    if (e.type != OID_UNKNOWN && e.type != OID_BOOL)
        return tr_fail(t, ST_INVALID, "42804", -1,
                       "argument of %s must be type boolean, not type %s", what,
                       tr_type_name(t, e.type));
    ST_TRY(tr_coerce(t, &e, OID_BOOL, -1));
    *sql = e.sql;
    return ST_OK;
}

static status bool_expr(struct tr *t, struct tr_scope *s, const PgQuery__BoolExpr *b,
                        struct tr_ex *out)
{
    bool and = b->boolop == PG_QUERY__BOOL_EXPR_TYPE__AND_EXPR,
         not = b->boolop == PG_QUERY__BOOL_EXPR_TYPE__NOT_EXPR;
    const char *what = not ? "NOT" : and? "AND" : "OR";
    struct obuf o;
    obuf_init(&o);
    status st = ST_OK;
    obuf_put(&o, not ? "(NOT " : "(", not ? 5 : 1);
    for (size_t i = 0; i < b->n_args; i++) {
        const char *sql;
        ST_GOTO(out, tr_bool(t, s, b->args[i], what, &sql));
        if (i)
            obuf_put(&o, and? " AND " : " OR ", and? 5 : 4);
        obuf_put(&o, sql, strlen(sql));
    }
    obuf_u8(&o, ')');
    *out = tr_typed(arena_strdup(t->a, bytes_make(o.data, o.size)), OID_BOOL);
out:
    obuf_fini(&o);
    return st;
}

static status boolean_test(struct tr *t, struct tr_scope *s, const PgQuery__BooleanTest *b,
                           struct tr_ex *out)
{
    static const char *const tests[] = {
        [PG_QUERY__BOOL_TEST_TYPE__IS_TRUE] = "IS 1",
        [PG_QUERY__BOOL_TEST_TYPE__IS_NOT_TRUE] = "IS NOT 1",
        [PG_QUERY__BOOL_TEST_TYPE__IS_FALSE] = "IS 0",
        [PG_QUERY__BOOL_TEST_TYPE__IS_NOT_FALSE] = "IS NOT 0",
        [PG_QUERY__BOOL_TEST_TYPE__IS_UNKNOWN] = "IS NULL",
        [PG_QUERY__BOOL_TEST_TYPE__IS_NOT_UNKNOWN] = "IS NOT NULL",
    };
    const char *sql;
    ST_TRY(tr_bool(t, s, b->arg, "IS", &sql));
    if ((unsigned)b->booltesttype >= ARRAY_LEN(tests) || !tests[b->booltesttype])
        return tr_fail(t, ST_UNSUPPORTED, "0A000", b->location, "this test is not supported here");
    *out = tr_typed(arena_printf(t->a, "(%s %s)", sql, tests[b->booltesttype]), OID_BOOL);
    return ST_OK;
}

/* ---- CASE, COALESCE, GREATEST ---- */

/* results[0] is what ELSE says: its type comes first where types are chosen. */
static status case_parts(struct tr *t, struct tr_scope *s, const PgQuery__CaseExpr *c,
                         const char **tests, struct tr_ex *results)
{
    struct tr_ex arg = {0};
    if (c->arg)
        ST_TRY(tr_expr(t, s, c->arg, &arg));
    for (size_t i = 0; i < c->n_args; i++) {
        const PgQuery__CaseWhen *w = c->args[i]->case_when;
        if (c->arg) {
            struct tr_ex left = arg, right, test;
            ST_TRY(tr_expr(t, s, w->expr, &right));
            ST_TRY(tr_binary(t, "=", &left, &right, w->location, &test));
            tests[i] = test.sql;
        } else {
            ST_TRY(tr_bool(t, s, w->expr, "CASE/WHEN", &tests[i]));
        }
        ST_TRY(tr_expr(t, s, w->result, &results[i + 1]));
    }
    results[0] = tr_typed("NULL", OID_UNKNOWN);
    return c->defresult ? tr_expr(t, s, c->defresult, &results[0]) : ST_OK;
}

static status case_expr(struct tr *t, struct tr_scope *s, const PgQuery__CaseExpr *c,
                        struct tr_ex *out)
{
    unsigned count = (unsigned)c->n_args;
    struct tr_ex *results = ARENA_ARRAY(t->a, struct tr_ex, count + 1);
    const char **tests = ARENA_ARRAY(t->a, const char *, count + 1);
    uint32_t type;
    ST_TRY(case_parts(t, s, c, tests, results));
    ST_TRY(tr_coerce_all(t, results, count + 1, c->location, &type));
    const char *sql = "(CASE";
    for (unsigned i = 0; i < count; i++)
        sql = arena_printf(t->a, "%s WHEN %s THEN %s", sql, tests[i], results[i + 1].sql);
    *out = tr_typed(arena_printf(t->a, "%s ELSE %s END)", sql, results[0].sql), type);
    return ST_OK;
}

/* Type modifiers do not matter to any use of these. */
static status coalesce(struct tr *t, struct tr_scope *s, PgQuery__Node *const *args, size_t count,
                       int location, struct tr_ex *out)
{
    struct tr_ex *e = ARENA_ARRAY(t->a, struct tr_ex, count + 1);
    for (size_t i = 0; i < count; i++)
        ST_TRY(tr_expr(t, s, args[i], &e[i]));
    uint32_t type;
    ST_TRY(tr_coerce_all(t, e, (unsigned)count, location, &type));
    if (count == 1) {
        *out = e[0];
        return ST_OK;
    }
    const char *sql = "";
    for (size_t i = 0; i < count; i++)
        sql = arena_printf(t->a, "%s%s%s", sql, i ? "," : "", e[i].sql);
    *out = tr_typed(arena_printf(t->a, "coalesce(%s)", sql), type);
    return ST_OK;
}

/* NULLs are skipped, unlike in SQLite's min() and max(): each pair is compared in turn. */
static status min_max(struct tr *t, struct tr_scope *s, const PgQuery__MinMaxExpr *m,
                      struct tr_ex *out)
{
    struct tr_ex *e = ARENA_ARRAY(t->a, struct tr_ex, m->n_args + 1);
    for (size_t i = 0; i < m->n_args; i++)
        ST_TRY(tr_expr(t, s, m->args[i], &e[i]));
    uint32_t type;
    ST_TRY(tr_coerce_all(t, e, (unsigned)m->n_args, m->location, &type));
    const char *f = m->op == PG_QUERY__MIN_MAX_OP__IS_GREATEST ? "max" : "min";
    const char *sql = e[0].sql;
    for (size_t i = 1; i < m->n_args; i++) {
        ST_TRY(tr_enter(t));
        tr_leave(t);
        sql = arena_printf(t->a, "coalesce(%s(%s,%s),%s,%s)", f, sql, e[i].sql, sql, e[i].sql);
    }
    *out = tr_typed(sql, type);
    return ST_OK;
}

/* ---- sub-selects ---- */

static status sub_select(struct tr *t, struct tr_scope *s, const PgQuery__SubLink *l,
                         struct tr_query *out)
{
    if (!l->subselect || l->subselect->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", l->location,
                       "this sub-query is not supported here");
    if (l->sub_link_type == PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK)
        return tr_exists(t, s, l->subselect->select_stmt, out);
    ST_TRY(tr_select(t, s, l->subselect->select_stmt, out));
    if (out->count != 1)
        return tr_fail(t, ST_SYNTAX, "42601", l->location, "subquery must return only one column");
    return ST_OK;
}

/* x IN (SELECT …), x = ANY (SELECT …), x <> ALL (SELECT …) */
static status in_select(struct tr *t, struct tr_scope *s, const PgQuery__SubLink *l,
                        const struct tr_query *q, struct tr_ex *out)
{
    const char *op = l->n_oper_name ? tr_str(l->oper_name[l->n_oper_name - 1]) : "=";
    bool all = l->sub_link_type == PG_QUERY__SUB_LINK_TYPE__ALL_SUBLINK;
    if (strcmp(op, all ? "<>" : "=") != 0 || !l->testexpr)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", l->location,
                       "operator %s with a sub-query is not supported here", op);
    struct tr_ex x, column = tr_typed("", q->columns[0].type);
    ST_TRY(tr_expr(t, s, l->testexpr, &x));
    ST_TRY(tr_match(t, op, &x, &column, l->location));
    *out =
        tr_typed(arena_printf(t->a, "(%s %sIN (%s))", x.sql, all ? "NOT " : "", q->sql), OID_BOOL);
    return ST_OK;
}

/* A second row is an error (21000), which SQLite does not see. */
static const char *scalar_sql(struct tr *t, const struct tr_query *q)
{
    if (q->one_row)
        return arena_printf(t->a, "(%s)", q->sql);
    const char *v = tr_name(t, "t");
    return arena_printf(t->a, "(SELECT " REL_SQL_SINGLE "(%s.c1) FROM (%s) AS %s)", v, q->sql, v);
}

static status sub_link(struct tr *t, struct tr_scope *s, const PgQuery__SubLink *l,
                       struct tr_ex *out)
{
    struct tr_query q;
    ST_TRY(sub_select(t, s, l, &q));
    switch ((int)l->sub_link_type) {
    case PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK:
        *out = tr_typed(arena_printf(t->a, "EXISTS (%s)", q.sql), OID_BOOL);
        return ST_OK;
    case PG_QUERY__SUB_LINK_TYPE__EXPR_SUBLINK:
        *out = tr_typed(scalar_sql(t, &q), q.columns[0].type);
        return ST_OK;
    case PG_QUERY__SUB_LINK_TYPE__ARRAY_SUBLINK: {
        uint32_t type = rel_type_array_of(q.columns[0].type);
        const char *v = tr_name(t, "t");
        struct tr_ex item = tr_typed(arena_printf(t->a, "%s.c1", v), q.columns[0].type);
        ST_TRY(tr_array_item(t, &item));
        *out = tr_typed(arena_printf(t->a,
                                     "(SELECT coalesce(" REL_SQL_ARRAY_AGG
                                     "('',%s),'{}') FROM (%s) AS %s)",
                                     item.sql, q.sql, v),
                        type ? type : OID_TEXT_ARRAY);
        return ST_OK;
    }
    case PG_QUERY__SUB_LINK_TYPE__ANY_SUBLINK:
    case PG_QUERY__SUB_LINK_TYPE__ALL_SUBLINK: return in_select(t, s, l, &q, out);
    default:
        return tr_fail(t, ST_UNSUPPORTED, "0A000", l->location,
                       "this sub-query is not supported here");
    }
}

/* ---- arrays, fields ---- */

/* ARRAY of untyped literals and plain integers: written as a literal, whatever its length. */
static bool constant_array(struct tr *t, const struct tr_ex *e, size_t count, const char **sql)
{
    struct cell *items = ARENA_ARRAY(t->a, struct cell, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (e[i].type == OID_UNKNOWN && e[i].literal)
            items[i] = cell_str(e[i].literal);
        else if (e[i].type == OID_INT4 && strspn(e[i].sql, "0123456789") == strlen(e[i].sql))
            items[i] = cell_str(e[i].sql);
        else
            return false;
    }
    *sql = tr_literal(t, arena_strdup(t->a, rel_array_format(t->a, items, (unsigned)count)));
    return true;
}

static status array_expr(struct tr *t, struct tr_scope *s, const PgQuery__AArrayExpr *a,
                         struct tr_ex *out)
{
    struct tr_ex *e = ARENA_ARRAY(t->a, struct tr_ex, a->n_elements + 1);
    for (size_t i = 0; i < a->n_elements; i++)
        ST_TRY(tr_expr(t, s, a->elements[i], &e[i]));
    const char *constants;
    if (a->n_elements > 0 && constant_array(t, e, a->n_elements, &constants)) {
        uint32_t common = tr_common_type(e, (unsigned)a->n_elements);
        *out = tr_typed(constants, rel_type_array_of(common));
        return ST_OK;
    }
    uint32_t type;
    ST_TRY(tr_coerce_all(t, e, (unsigned)a->n_elements, a->location, &type));
    if (rel_type_family(type) == FAMILY_ARRAY)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", a->location,
                       "arrays of arrays are not supported here");
    if (a->n_elements == 0) {
        *out = tr_typed("'{}'", OID_TEXT_ARRAY);
        return ST_OK;
    }
    const char *sql = "";
    for (size_t i = 0; i < a->n_elements; i++) {
        ST_TRY(tr_array_item(t, &e[i]));
        sql = arena_printf(t->a, "%s%s%s", sql, i ? "," : "", e[i].sql);
    }
    uint32_t array = rel_type_array_of(type);
    *out = tr_typed(
        arena_printf(t->a, "%s(%s)", tr_call(t, REL_FN_ARRAY, (unsigned)a->n_elements), sql),
        array ? array : OID_TEXT_ARRAY);
    return ST_OK;
}

/* (d).grantee of a row of aclexplode. */
static status acl_field(struct tr *t, const char *field, struct tr_ex *out)
{
    static const struct {
        const char *name;
        uint32_t type;
    } fields[TR_ACL_FIELDS] = {TR_ACL_FIELD_LIST};
    for (unsigned i = 0; i < TR_ACL_FIELDS; i++)
        if (strcmp(fields[i].name, field) == 0) {
            *out = tr_typed(
                arena_printf(t->a, "%s(%s,%u)", tr_call(t, REL_FN_ACL_FIELD, 2), out->sql, i),
                fields[i].type);
            return ST_OK;
        }
    return tr_fail(t, ST_UNSUPPORTED, "42703", -1, "column \"%s\" not found in data type record",
                   field);
}

static status indirection(struct tr *t, struct tr_scope *s, const PgQuery__AIndirection *n,
                          struct tr_ex *out)
{
    ST_TRY(tr_expr(t, s, n->arg, out));
    for (size_t i = 0; i < n->n_indirection; i++) {
        const PgQuery__Node *step = n->indirection[i];
        if (step->node_case == PG_QUERY__NODE__NODE_STRING && out->type == OID_ACL_ROW) {
            ST_TRY(acl_field(t, tr_str(step), out));
            continue;
        }
        if (step->node_case == PG_QUERY__NODE__NODE_STRING && out->type == OID_XN) {
            const char *field = tr_str(step);
            if (strcmp(field, "x") != 0 && strcmp(field, "n") != 0)
                return tr_fail(t, ST_UNSUPPORTED, "42703", -1,
                               "column \"%s\" not found in data type record", field);
            *out = tr_typed(arena_printf(t->a, "%s(%s,%d)", tr_call(t, REL_FN_FIELD, 2), out->sql,
                                         field[0] == 'n'),
                            OID_INT4);
            continue;
        }
        if (step->node_case != PG_QUERY__NODE__NODE_A_INDICES || step->a_indices->is_slice ||
            !step->a_indices->uidx)
            return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                           "this field or slice is not supported here");
        uint32_t element = rel_type_element_of(out->type);
        if (element == 0)
            return tr_fail(t, ST_INVALID, "42804", -1,
                           "cannot subscript type %s because it does not support subscripting",
                           tr_type_name(t, out->type));
        struct tr_ex at;
        ST_TRY(tr_expr(t, s, step->a_indices->uidx, &at));
        ST_TRY(tr_coerce(t, &at, OID_INT4, -1));
        *out = tr_typed(arena_printf(t->a, "%s(%s,%s,%d)", tr_call(t, REL_FN_SUBSCRIPT, 3),
                                     out->sql, at.sql, rel_type_is_integer(element)),
                        element);
    }
    return ST_OK;
}

/* ---- session values ---- */

static status value_function(struct tr *t, const PgQuery__SQLValueFunction *f, struct tr_ex *out)
{
    const char *name;
    switch ((int)f->op) {
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_ROLE:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_USER:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_USER:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_SESSION_USER: name = "current_user"; break;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_CATALOG: name = "current_database"; break;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_SCHEMA: name = "current_schema"; break;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIMESTAMP:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIMESTAMP_N: name = "now"; break;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_DATE:
        *out = tr_typed(tr_call_typed(t, REL_FN_IN, "'today'", OID_DATE), OID_DATE);
        return ST_OK;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP_N:
        *out = tr_typed(tr_call_typed(t, REL_FN_IN, "'now'", OID_TIMESTAMP), OID_TIMESTAMP);
        return ST_OK;
    default:
        return tr_fail(t, ST_UNSUPPORTED, "0A000", f->location,
                       "this date or time function is not supported here");
    }
    return tr_known_call(t, name, NULL, 0, f->location, out);
}

/* ---- the walk ---- */

static status null_test(struct tr *t, struct tr_scope *s, const PgQuery__NullTest *n,
                        struct tr_ex *out)
{
    struct tr_ex e;
    ST_TRY(tr_expr(t, s, n->arg, &e));
    ST_TRY(tr_settle(t, &e));
    bool is = n->nulltesttype == PG_QUERY__NULL_TEST_TYPE__IS_NULL;
    *out = tr_typed(arena_printf(t->a, "(%s IS %sNULL)", e.sql, is ? "" : "NOT "), OID_BOOL);
    return ST_OK;
}

static status type_cast(struct tr *t, struct tr_scope *s, const PgQuery__TypeCast *c,
                        struct tr_ex *out)
{
    uint32_t type;
    int32_t typmod;
    ST_TRY(tr_type(t, c->type_name, &type, &typmod));
    bool empty_array = c->arg->node_case == PG_QUERY__NODE__NODE_A_ARRAY_EXPR &&
                       c->arg->a_array_expr->n_elements == 0;
    if (empty_array) {
        *out = tr_typed("'{}'", type);
        return ST_OK;
    }
    ST_TRY(tr_expr(t, s, c->arg, out));
    ST_TRY(tr_cast(t, out, type, c->location));
    out->type = type;
    out->typmod = typmod;
    return ST_OK;
}

static status walk(struct tr *t, struct tr_scope *s, const PgQuery__Node *n, struct tr_ex *out)
{
    switch ((int)n->node_case) {
    case PG_QUERY__NODE__NODE_COLUMN_REF: return tr_find_column(t, s, n->column_ref, out);
    case PG_QUERY__NODE__NODE_A_CONST: return constant(t, n->a_const, out);
    case PG_QUERY__NODE__NODE_PARAM_REF: return parameter(t, n->param_ref, out);
    case PG_QUERY__NODE__NODE_TYPE_CAST: return type_cast(t, s, n->type_cast, out);
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE:
        return tr_expr(t, s, n->collate_clause->arg, out); /* there is one collation: bytes */
    case PG_QUERY__NODE__NODE_FUNC_CALL: return tr_function(t, s, n->func_call, out);
    case PG_QUERY__NODE__NODE_A_EXPR: return tr_operator(t, s, n->a_expr, out);
    case PG_QUERY__NODE__NODE_BOOL_EXPR: return bool_expr(t, s, n->bool_expr, out);
    case PG_QUERY__NODE__NODE_NULL_TEST: return null_test(t, s, n->null_test, out);
    case PG_QUERY__NODE__NODE_BOOLEAN_TEST: return boolean_test(t, s, n->boolean_test, out);
    case PG_QUERY__NODE__NODE_CASE_EXPR: return case_expr(t, s, n->case_expr, out);
    case PG_QUERY__NODE__NODE_COALESCE_EXPR:
        return coalesce(t, s, n->coalesce_expr->args, n->coalesce_expr->n_args,
                        n->coalesce_expr->location, out);
    case PG_QUERY__NODE__NODE_MIN_MAX_EXPR: return min_max(t, s, n->min_max_expr, out);
    case PG_QUERY__NODE__NODE_SUB_LINK: return sub_link(t, s, n->sub_link, out);
    case PG_QUERY__NODE__NODE_A_ARRAY_EXPR: return array_expr(t, s, n->a_array_expr, out);
    case PG_QUERY__NODE__NODE_A_INDIRECTION: return indirection(t, s, n->a_indirection, out);
    case PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION:
        return value_function(t, n->sqlvalue_function, out);
    default:
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                       "%s is not supported in a query over catalogue relations", tr_node_kind(n));
    }
}

status tr_expr(struct tr *t, struct tr_scope *s, const PgQuery__Node *n, struct tr_ex *out)
{
    if (!n)
        return tr_fail(t, ST_SYNTAX, "42601", -1, "an expression is missing");
    ST_TRY(tr_enter(t));
    *out = (struct tr_ex){0};
    status st = walk(t, s, n, out);
    tr_leave(t);
    return st;
}
