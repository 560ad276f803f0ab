/*
 * planner/relations/translate_operator.c — operators, and what the grammar makes of them: IN, ANY,
 * BETWEEN, LIKE, IS DISTINCT FROM, NULLIF.
 *
 * An operator's meaning and a comparison's legality follow from PostgreSQL's types of both sides,
 * which SQLite knows nothing of; two families are not compared (42883).
 */
#include "planner/relations/translate.h"

/* ---- operators ---- */

static status no_operator(struct tr *t, const char *op, const struct tr_ex *l,
                          const struct tr_ex *r, int location)
{
    status st =
        tr_fail(t, ST_UNSUPPORTED, "42883", location, "operator does not exist: %s%s%s %s",
                l ? tr_type_name(t, l->type) : "", l ? " " : "", op, tr_type_name(t, r->type));
    err_hint(t->err, "No operator matches the given name and argument types. You might need to add "
                     "explicit type casts.");
    return st;
}

/* Both sides to types that may be compared. */
status tr_match(struct tr *t, const char *op, struct tr_ex *l, struct tr_ex *r, int location)
{
    if (l->type == OID_UNKNOWN && r->type == OID_UNKNOWN)
        ST_TRY(tr_settle(t, l));
    if (l->type == OID_UNKNOWN)
        return tr_coerce(t, l, r->type, location);
    if (r->type == OID_UNKNOWN)
        return tr_coerce(t, r, l->type, location);
    enum rel_family a = rel_type_family(l->type), b = rel_type_family(r->type);
    if (a != b || (a == FAMILY_OTHER && l->type != r->type))
        return no_operator(t, op, l, r, location);
    if (l->type == OID_DATE && r->type != OID_DATE)
        return tr_coerce(t, l, r->type, location);
    if (r->type == OID_DATE && l->type != OID_DATE)
        return tr_coerce(t, r, l->type, location);
    return ST_OK;
}

static bool is_comparison(const char *op)
{
    static const char *const ops[] = {"=", "<>", "<", "<=", ">", ">="};
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
        if (strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

static status concatenate(struct tr *t, struct tr_ex *l, struct tr_ex *r, int location,
                          struct tr_ex *out)
{
    bool left_array = rel_type_family(l->type) == FAMILY_ARRAY,
         right_array = rel_type_family(r->type) == FAMILY_ARRAY;
    if (left_array || right_array) {
        uint32_t type = left_array ? l->type : r->type;
        if (l->type == OID_UNKNOWN)
            ST_TRY(tr_coerce(t, l, type, location));
        if (r->type == OID_UNKNOWN)
            ST_TRY(tr_coerce(t, r, type, location));
        left_array = rel_type_family(l->type) == FAMILY_ARRAY;
        right_array = rel_type_family(r->type) == FAMILY_ARRAY;
        if (left_array && !right_array)
            *out = tr_typed(
                arena_printf(t->a, "%s(%s,%s)", tr_call(t, "array_append", 2), l->sql, r->sql),
                type);
        else if (right_array && !left_array)
            *out = tr_typed(arena_printf(t->a, "%s(%s(%s),%s)", tr_call(t, "array_cat", 2),
                                         tr_call(t, REL_FN_ARRAY, 1), l->sql, r->sql),
                            type);
        else
            *out = tr_typed(
                arena_printf(t->a, "%s(%s,%s)", tr_call(t, "array_cat", 2), l->sql, r->sql), type);
        return ST_OK;
    }
    if (l->type != OID_UNKNOWN && r->type != OID_UNKNOWN &&
        rel_type_family(l->type) != FAMILY_TEXT && rel_type_family(r->type) != FAMILY_TEXT)
        return no_operator(t, "||", l, r, location);
    ST_TRY(tr_settle(t, l));
    ST_TRY(tr_settle(t, r));
    ST_TRY(tr_cast_text(t, l, OID_TEXT));
    ST_TRY(tr_cast_text(t, r, OID_TEXT));
    *out = tr_typed(arena_printf(t->a, "(%s||%s)", l->sql, r->sql), OID_TEXT);
    return ST_OK;
}

static status arithmetic(struct tr *t, const char *op, struct tr_ex *l, struct tr_ex *r,
                         int location, struct tr_ex *out)
{
    if (l->type == OID_UNKNOWN && r->type == OID_UNKNOWN)
        return tr_fail(t, ST_INVALID, "42725", location,
                       "operator is not unique: unknown %s unknown", op);
    if (l->type == OID_UNKNOWN)
        ST_TRY(tr_coerce(t, l, r->type == OID_TIMESTAMPTZ && op[0] == '+' ? OID_INTERVAL : r->type,
                         location));
    if (r->type == OID_UNKNOWN)
        ST_TRY(tr_coerce(t, r, rel_type_family(l->type) == FAMILY_TIME ? OID_INTERVAL : l->type,
                         location));
    enum rel_family a = rel_type_family(l->type), b = rel_type_family(r->type);
    uint32_t type;
    if (a == FAMILY_NUMBER && b == FAMILY_NUMBER)
        type = tr_number_rank(l->type) && tr_number_rank(r->type) ? tr_wider(l->type, r->type)
                                                                  : OID_INT8;
    else if (a == FAMILY_TIME && b == FAMILY_INTERVAL && (op[0] == '+' || op[0] == '-') &&
             l->type != OID_DATE)
        type = l->type;
    else if (a == FAMILY_TIME && l->type == r->type && op[0] == '-' && l->type != OID_DATE)
        type = OID_INTERVAL;
    else if (a == FAMILY_INTERVAL && b == FAMILY_INTERVAL && (op[0] == '+' || op[0] == '-'))
        type = OID_INTERVAL;
    else
        return no_operator(t, op, l, r, location);
    if (op[0] == '/' || op[0] == '%')
        *out = tr_typed(arena_printf(t->a, "%s(%s,%s)",
                                     tr_call(t, op[0] == '/' ? REL_FN_DIVIDE : REL_FN_MODULO, 2),
                                     l->sql, r->sql),
                        type);
    else
        *out = tr_typed(arena_printf(t->a, "(%s%s%s)", l->sql, op, r->sql), type);
    return ST_OK;
}

/* Arrays as sets: ARGS[0] holds all of ARGS[1], or they have an element in common (&&). */
static status array_sets(struct tr *t, const char *op, struct tr_ex *args, int location,
                         struct tr_ex *out)
{
    for (unsigned i = 0; i < 2; i++)
        if (args[i].type == OID_UNKNOWN)
            ST_TRY(tr_coerce(t, &args[i], args[1 - i].type, location));
    uint32_t a = rel_type_element_of(args[0].type), b = rel_type_element_of(args[1].type);
    if (a == 0 || b == 0 || rel_type_family(a) != rel_type_family(b))
        return no_operator(t, op, &args[0], &args[1], location);
    *out = tr_typed(arena_printf(t->a, "%s(%s,%s,%d)",
                                 tr_call(t, op[0] == '&' ? REL_FN_OVERLAPS : REL_FN_CONTAINS, 3),
                                 args[0].sql, args[1].sql, rel_type_is_integer(a)),
                    OID_BOOL);
    return ST_OK;
}

/* ~ and LIKE and their kin: OP without '!' and '*'. */
static status pattern_match(struct tr *t, const char *op, struct tr_ex *l, struct tr_ex *r,
                            int location, struct tr_ex *out)
{
    bool negated = op[0] == '!', like = strstr(op, "~~") != NULL,
         ignore_case = strchr(op, '*') != NULL;
    ST_TRY(tr_settle(t, l));
    ST_TRY(tr_settle(t, r));
    if (rel_type_family(l->type) != FAMILY_TEXT || rel_type_family(r->type) != FAMILY_TEXT)
        return no_operator(t, op, l, r, location);
    const char *call =
        arena_printf(t->a, "%s(%s,%s,%d)", tr_call(t, like ? REL_FN_LIKE : REL_FN_REGEX, 3), l->sql,
                     r->sql, ignore_case);
    *out = tr_typed(negated ? arena_printf(t->a, "(NOT %s)", call) : call, OID_BOOL);
    return ST_OK;
}

static bool is_pattern_operator(const char *op)
{
    static const char *const ops[] = {"~", "!~", "~*", "!~*", "~~", "!~~", "~~*", "!~~*"};
    for (unsigned i = 0; i < ARRAY_LEN(ops); i++)
        if (strcmp(op, ops[i]) == 0)
            return true;
    return false;
}

status tr_binary(struct tr *t, const char *op, struct tr_ex *l, struct tr_ex *r, int location,
                 struct tr_ex *out)
{
    if (is_comparison(op)) {
        ST_TRY(tr_match(t, op, l, r, location));
        *out = tr_typed(arena_printf(t->a, "(%s%s%s)", l->sql, op, r->sql), OID_BOOL);
        return ST_OK;
    }
    if (is_pattern_operator(op))
        return pattern_match(t, op, l, r, location, out);
    if (strcmp(op, "||") == 0)
        return concatenate(t, l, r, location, out);
    if (strlen(op) == 1 && strchr("+-*/%", op[0]))
        return arithmetic(t, op, l, r, location, out);
    if (strcmp(op, "&") == 0 || strcmp(op, "|") == 0 || strcmp(op, "<<") == 0 ||
        strcmp(op, ">>") == 0) {
        ST_TRY(tr_match(t, op, l, r, location));
        if (rel_type_family(l->type) != FAMILY_NUMBER)
            return no_operator(t, op, l, r, location);
        *out = tr_typed(arena_printf(t->a, "(%s%s%s)", l->sql, op, r->sql),
                        tr_wider(l->type, r->type));
        return ST_OK;
    }
    if (strcmp(op, "^") == 0) {
        struct tr_ex args[2] = {*l, *r};
        bool is;
        return tr_special(t, "power", args, 2, location, &is, out);
    }
    bool contains = strcmp(op, "@>") == 0, within = strcmp(op, "<@") == 0;
    if (contains || within || strcmp(op, "&&") == 0) {
        struct tr_ex args[2] = {within ? *r : *l, within ? *l : *r};
        return array_sets(t, op, args, location, out);
    }
    return tr_fail(t, ST_UNSUPPORTED, "0A000", location, "operator %s is not supported here", op);
}

/* A row: its fields one by one. */
static status row_fields(struct tr *t, struct tr_scope *s, const PgQuery__Node *n,
                         struct tr_ex **out, unsigned *count)
{
    const PgQuery__RowExpr *row = n->row_expr;
    *count = (unsigned)row->n_args;
    *out = ARENA_ARRAY(t->a, struct tr_ex, *count + 1);
    for (unsigned i = 0; i < *count; i++)
        ST_TRY(tr_expr(t, s, row->args[i], &(*out)[i]));
    return ST_OK;
}

static status compare_rows(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e,
                           const char *op, struct tr_ex *out)
{
    struct tr_ex *l, *r;
    unsigned count, other;
    ST_TRY(row_fields(t, s, e->lexpr, &l, &count));
    ST_TRY(row_fields(t, s, e->rexpr, &r, &other));
    if (count != other || count == 0)
        return tr_fail(t, ST_SYNTAX, "42601", e->location,
                       "unequal number of entries in row expressions");
    const char *left = "", *right = "";
    for (unsigned i = 0; i < count; i++) {
        ST_TRY(tr_match(t, op, &l[i], &r[i], e->location));
        left = arena_printf(t->a, "%s%s%s", left, i ? "," : "", l[i].sql);
        right = arena_printf(t->a, "%s%s%s", right, i ? "," : "", r[i].sql);
    }
    *out = tr_typed(arena_printf(t->a, "((%s)%s(%s))", left, op, right), OID_BOOL);
    return ST_OK;
}

static status unary(struct tr *t, const char *op, struct tr_ex *r, int location, struct tr_ex *out)
{
    enum rel_family family = rel_type_family(r->type);
    if ((strcmp(op, "-") == 0 || strcmp(op, "+") == 0) &&
        (family == FAMILY_NUMBER || family == FAMILY_INTERVAL)) {
        *out = tr_typed(arena_printf(t->a, "(%s%s)", op, r->sql), r->type);
        return ST_OK;
    }
    if (strcmp(op, "@") == 0 && family == FAMILY_NUMBER)
        return tr_known_call(t, "abs", r, 1, location, out);
    if (strcmp(op, "~") == 0 && rel_type_is_integer(r->type)) {
        *out = tr_typed(arena_printf(t->a, "(~%s)", r->sql), r->type);
        return ST_OK;
    }
    return no_operator(t, op, NULL, r, location);
}

static status operator(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e, const char *op,
                       struct tr_ex *out)
{
    struct tr_ex l, r;
    if (!e->rexpr)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", e->location, "operator %s is not supported here",
                       op);
    bool rows = e->lexpr && e->lexpr->node_case == PG_QUERY__NODE__NODE_ROW_EXPR &&
                e->rexpr->node_case == PG_QUERY__NODE__NODE_ROW_EXPR;
    if (rows && is_comparison(op))
        return compare_rows(t, s, e, op, out);
    ST_TRY(tr_expr(t, s, e->rexpr, &r));
    if (!e->lexpr)
        return unary(t, op, &r, e->location, out);
    ST_TRY(tr_expr(t, s, e->lexpr, &l));
    return tr_binary(t, op, &l, &r, e->location, out);
}

/* x op ANY (array), x op ALL (array) */
static status quantified(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e, const char *op,
                         bool any, struct tr_ex *out)
{
    struct tr_ex l, r;
    ST_TRY(tr_expr(t, s, e->lexpr, &l));
    ST_TRY(tr_expr(t, s, e->rexpr, &r));
    if (!is_comparison(op))
        return tr_fail(t, ST_UNSUPPORTED, "0A000", e->location,
                       "operator %s with ANY or ALL is not supported here", op);
    if (r.type == OID_UNKNOWN) {
        uint32_t array = rel_type_array_of(l.type == OID_UNKNOWN ? OID_TEXT : l.type);
        ST_TRY(tr_coerce(t, &r, array ? array : OID_TEXT_ARRAY, e->location));
    }
    uint32_t element = rel_type_element_of(r.type);
    if (element == 0)
        return tr_fail(t, ST_INVALID, "42809", e->location,
                       "op ANY/ALL (array) requires array on right side");
    struct tr_ex item = tr_typed("", element);
    ST_TRY(tr_match(t, op, &l, &item, e->location));
    *out = tr_typed(arena_printf(t->a, "%s(%s,%s,'%s',%d)",
                                 tr_call(t, any ? REL_FN_ANY : REL_FN_ALL, 4), l.sql, r.sql, op,
                                 rel_type_is_integer(element)),
                    OID_BOOL);
    return ST_OK;
}

static status in_list(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e, const char *op,
                      struct tr_ex *out)
{
    struct tr_ex l;
    if (e->rexpr->node_case != PG_QUERY__NODE__NODE_LIST ||
        e->lexpr->node_case == PG_QUERY__NODE__NODE_ROW_EXPR)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", e->location, "IN of rows is not supported here");
    const PgQuery__List *list = e->rexpr->list;
    struct tr_ex *items = ARENA_ARRAY(t->a, struct tr_ex, list->n_items + 1);
    ST_TRY(tr_expr(t, s, e->lexpr, &l));
    for (size_t i = 0; i < list->n_items; i++)
        ST_TRY(tr_expr(t, s, list->items[i], &items[i]));
    if (l.type == OID_UNKNOWN)
        ST_TRY(tr_coerce(t, &l, tr_common_type(items, (unsigned)list->n_items), e->location));
    struct obuf o;
    obuf_init(&o);
    status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < list->n_items; i++) {
        st = tr_match(t, "=", &l, &items[i], e->location);
        if (i)
            obuf_u8(&o, ',');
        obuf_put(&o, items[i].sql, strlen(items[i].sql));
    }
    if (st == ST_OK)
        *out = tr_typed(arena_printf(t->a, "(%s%sIN (%.*s))", l.sql,
                                     strcmp(op, "<>") == 0 ? " NOT " : " ", (int)o.size,
                                     (const char *)o.data),
                        OID_BOOL);
    obuf_fini(&o);
    return st;
}

static status between(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e, bool negated,
                      struct tr_ex *out)
{
    struct tr_ex x, low, high;
    if (e->rexpr->node_case != PG_QUERY__NODE__NODE_LIST || e->rexpr->list->n_items != 2)
        return tr_fail(t, ST_SYNTAX, "42601", e->location, "BETWEEN takes two bounds");
    ST_TRY(tr_expr(t, s, e->lexpr, &x));
    ST_TRY(tr_expr(t, s, e->rexpr->list->items[0], &low));
    ST_TRY(tr_expr(t, s, e->rexpr->list->items[1], &high));
    ST_TRY(tr_match(t, ">=", &x, &low, e->location));
    ST_TRY(tr_match(t, "<=", &x, &high, e->location));
    *out = tr_typed(arena_printf(t->a, "(%s %sBETWEEN %s AND %s)", x.sql, negated ? "NOT " : "",
                                 low.sql, high.sql),
                    OID_BOOL);
    return ST_OK;
}

static status distinct(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e, bool negated,
                       struct tr_ex *out)
{
    struct tr_ex l, r;
    ST_TRY(tr_expr(t, s, e->lexpr, &l));
    ST_TRY(tr_expr(t, s, e->rexpr, &r));
    ST_TRY(tr_match(t, "=", &l, &r, e->location));
    *out =
        tr_typed(arena_printf(t->a, "(%s IS %s%s)", l.sql, negated ? "" : "NOT ", r.sql), OID_BOOL);
    return ST_OK;
}

static status null_if(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e, struct tr_ex *out)
{
    struct tr_ex l, r;
    ST_TRY(tr_expr(t, s, e->lexpr, &l));
    ST_TRY(tr_expr(t, s, e->rexpr, &r));
    ST_TRY(tr_match(t, "=", &l, &r, e->location));
    *out = tr_typed(arena_printf(t->a, "nullif(%s,%s)", l.sql, r.sql), l.type);
    return ST_OK;
}

status tr_operator(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e, struct tr_ex *out)
{
    const char *op = e->n_name ? tr_str(e->name[e->n_name - 1]) : "";
    switch ((int)e->kind) {
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP:
    case PG_QUERY__A__EXPR__KIND__AEXPR_LIKE:
    case PG_QUERY__A__EXPR__KIND__AEXPR_ILIKE: return operator(t, s, e, op, out);
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP_ANY: return quantified(t, s, e, op, true, out);
    case PG_QUERY__A__EXPR__KIND__AEXPR_OP_ALL: return quantified(t, s, e, op, false, out);
    case PG_QUERY__A__EXPR__KIND__AEXPR_IN: return in_list(t, s, e, op, out);
    case PG_QUERY__A__EXPR__KIND__AEXPR_BETWEEN: return between(t, s, e, false, out);
    case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_BETWEEN: return between(t, s, e, true, out);
    case PG_QUERY__A__EXPR__KIND__AEXPR_DISTINCT: return distinct(t, s, e, false, out);
    case PG_QUERY__A__EXPR__KIND__AEXPR_NOT_DISTINCT: return distinct(t, s, e, true, out);
    case PG_QUERY__A__EXPR__KIND__AEXPR_NULLIF: return null_if(t, s, e, out);
    default:
        return tr_fail(t, ST_UNSUPPORTED, "0A000", e->location,
                       "operator %s in this form is not supported here", op);
    }
}
