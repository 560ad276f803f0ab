/*
 * planner/relations/translate_expr.c — expressions.
 *
 * Types come first: an operator's meaning, an untyped literal's type and a comparison's legality
 * follow from PostgreSQL's types of both sides, which SQLite knows nothing of. Rules here are a
 * small part of PostgreSQL's, in its direction: untyped takes the other side's type; two families
 * are not compared (42883); what has no rule is 0A000.
 */
#include "planner/relations/translate.h"

#include <stdlib.h>

static const char *type_name(struct tr *t, uint32_t type)
{
    bytes b = type == OID_UNKNOWN ? BYTES_LIT("unknown") : rel_type_format(t->a, type, -1);
    return arena_strdup(t->a, b);
}

static struct tr_ex typed(const char *sql, uint32_t type)
{
    return (struct tr_ex){.sql = sql, .type = type, .typmod = -1};
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
    *e = typed(sql, type);
}

static status type_literal(struct tr *t, struct tr_ex *e, uint32_t type, int location)
{
    if (!e->literal) {
        *e = typed("NULL", type);
        return ST_OK;
    }
    if (rel_type_is_integer(type) && !rel_type_is_reg(type)) {
        char *end;
        long long v = strtoll(e->literal, &end, 10);
        while (*end == ' ')
            end++;
        if (*end || end == e->literal)
            return tr_fail(t, ST_INVALID, "22P02", location,
                           "invalid input syntax for type %s: \"%s\"", type_name(t, type),
                           e->literal);
        *e = typed(arena_printf(t->a, v < 0 ? "(%lld)" : "%lld", v), type);
        return ST_OK;
    }
    enum rel_family family = rel_type_family(type);
    bool as_is = (family == FAMILY_TEXT && type != OID_CHAR) || family == FAMILY_ARRAY ||
                 family == FAMILY_OTHER;
    const char *sql = tr_literal(t, e->literal);
    if (!as_is)
        sql = arena_printf(t->a, "%s(%s,%u)", tr_call(t, REL_FN_IN, 2), sql, type);
    *e = typed(sql, type);
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
        *e = typed(arena_printf(t->a, "(%s*86400000000)", e->sql), type);
        return ST_OK;
    }
    if (rel_type_family(e->type) == rel_type_family(type)) {
        if (type == OID_FLOAT8 || type == OID_FLOAT4)
            *e = typed(arena_printf(t->a, "CAST(%s AS REAL)", e->sql), type);
        return ST_OK;
    }
    if (rel_type_is_reg(type) && rel_type_family(e->type) == FAMILY_TEXT) {
        *e = typed(arena_printf(t->a, "%s(%s,%u)", tr_call(t, REL_FN_IN, 2), e->sql, type), type);
        return ST_OK;
    }
    return tr_fail(t, ST_INVALID, "42804", location,
                   "a value of type %s cannot stand for one of type %s", type_name(t, e->type),
                   type_name(t, type));
}

status tr_settle(struct tr *t, struct tr_ex *e)
{
    return e->type == OID_UNKNOWN ? tr_coerce(t, e, OID_TEXT, -1) : ST_OK;
}

/* numeric promotion: later in the list wins */
static unsigned number_rank(uint32_t type)
{
    static const uint32_t order[] = {OID_INT2,    OID_INT4,   OID_INT8,
                                     OID_NUMERIC, OID_FLOAT4, OID_FLOAT8};
    for (unsigned i = 0; i < ARRAY_LEN(order); i++)
        if (order[i] == type)
            return i + 1;
    return 0;
}

static uint32_t wider(uint32_t a, uint32_t b)
{
    if (a == OID_UNKNOWN || a == b)
        return b;
    if (b == OID_UNKNOWN)
        return a;
    if (number_rank(a) && number_rank(b))
        return number_rank(a) > number_rank(b) ? a : b;
    return a == OID_CHAR && rel_type_family(b) == FAMILY_TEXT ? b : a;
}

uint32_t tr_common_type(const struct tr_ex *e, unsigned count)
{
    uint32_t type = OID_UNKNOWN;
    for (unsigned i = 0; i < count; i++)
        type = wider(type, e[i].type);
    return type == OID_UNKNOWN ? OID_TEXT : type;
}

static status coerce_all(struct tr *t, struct tr_ex *e, unsigned count, int location,
                         uint32_t *type)
{
    *type = tr_common_type(e, count);
    for (unsigned i = 0; i < count; i++)
        ST_TRY(tr_coerce(t, &e[i], *type, location));
    return ST_OK;
}

/* ---- casts ---- */

static const char *call2(struct tr *t, const char *function, const char *sql, uint32_t type)
{
    return arena_printf(t->a, "%s(%s,%u)", tr_call(t, function, 2), sql, type);
}

static status cast_array(struct tr *t, struct tr_ex *e, uint32_t type, int location)
{
    enum rel_family family = rel_type_family(e->type);
    if (family == FAMILY_ARRAY) {
        uint32_t from = rel_type_element_of(e->type), to = rel_type_element_of(type);
        if (rel_type_family(to) == FAMILY_TEXT && rel_type_family(from) != FAMILY_TEXT)
            e->sql = call2(t, REL_FN_ARRAY_OUT, e->sql, from);
    } else if (family != FAMILY_TEXT) {
        return tr_fail(t, ST_INVALID, "42846", location, "cannot cast type %s to %s",
                       type_name(t, e->type), type_name(t, type));
    }
    *e = typed(e->sql, type);
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
    case FAMILY_TEXT: e->sql = call2(t, REL_FN_IN, e->sql, type); break;
    case FAMILY_BOOL: break;
    case FAMILY_TIME:
    case FAMILY_INTERVAL:
    case FAMILY_ARRAY:
    case FAMILY_OTHER:
    default:
        return tr_fail(t, ST_INVALID, "42846", location, "cannot cast type %s to %s",
                       type_name(t, e->type), type_name(t, type));
    }
    *e = typed(e->sql, type);
    return ST_OK;
}

static status cast_text(struct tr *t, struct tr_ex *e, uint32_t type)
{
    enum rel_family family = rel_type_family(e->type);
    uint32_t element = family == FAMILY_ARRAY ? rel_type_element_of(e->type) : 0;
    if (element && rel_type_is_reg(element))
        e->sql = call2(t, REL_FN_ARRAY_OUT, e->sql, element);
    else if (family != FAMILY_TEXT && family != FAMILY_ARRAY)
        e->sql = call2(t, REL_FN_OUT, e->sql, e->type);
    if (type == OID_CHAR && e->type != OID_CHAR)
        e->sql = arena_printf(t->a, "substr(%s,1,1)", e->sql);
    *e = typed(e->sql, type);
    return ST_OK;
}

status tr_cast(struct tr *t, struct tr_ex *e, uint32_t type, int location)
{
    if (e->type == OID_UNKNOWN || e->type == type)
        return e->type == type ? ST_OK : tr_coerce(t, e, type, location);
    enum rel_family from = rel_type_family(e->type), to = rel_type_family(type);
    switch (to) {
    case FAMILY_TEXT: return cast_text(t, e, type);
    case FAMILY_ARRAY: return cast_array(t, e, type, location);
    case FAMILY_NUMBER: return cast_number(t, e, type, location);
    case FAMILY_BOOL:
        if (from != FAMILY_NUMBER && from != FAMILY_TEXT)
            break;
        *e = typed(from == FAMILY_NUMBER ? arena_printf(t->a, "(%s<>0)", e->sql)
                                         : call2(t, REL_FN_IN, e->sql, type),
                   type);
        return ST_OK;
    case FAMILY_TIME:
        if (e->type == OID_DATE)
            return tr_coerce(t, e, type, location);
        if (from == FAMILY_TIME)
            return tr_fail(t, ST_UNSUPPORTED, "0A000", location,
                           "a cast of type %s to %s is not supported here", type_name(t, e->type),
                           type_name(t, type));
        if (from != FAMILY_TEXT)
            break;
        *e = typed(call2(t, REL_FN_IN, e->sql, type), type);
        return ST_OK;
    case FAMILY_INTERVAL:
        if (from != FAMILY_TEXT)
            break;
        *e = typed(call2(t, REL_FN_IN, e->sql, type), type);
        return ST_OK;
    case FAMILY_OTHER:
        if (from == FAMILY_TEXT || from == FAMILY_OTHER) {
            *e = typed(e->sql, type);
            return ST_OK;
        }
        break;
    }
    return tr_fail(t, ST_INVALID, "42846", location, "cannot cast type %s to %s",
                   type_name(t, e->type), type_name(t, type));
}

/* ---- constants, parameters ---- */

static status constant(struct tr *t, const PgQuery__AConst *c, struct tr_ex *out)
{
    if (c->isnull) {
        *out = typed("NULL", OID_UNKNOWN);
        return ST_OK;
    }
    switch ((int)c->val_case) {
    case PG_QUERY__A__CONST__VAL_IVAL:
        *out = typed(arena_printf(t->a, "%d", c->ival->ival), OID_INT4);
        return ST_OK;
    case PG_QUERY__A__CONST__VAL_FVAL: {
        const char *text = c->fval->fval;
        bool digits = strspn(text, "0123456789") == strlen(text);
        bool fits = digits && (strlen(text) < 19 ||
                               (strlen(text) == 19 && strcmp(text, "9223372036854775807") <= 0));
        *out = typed(arena_printf(t->a, digits && !fits ? "%s.0" : "%s", text),
                     fits ? OID_INT8 : OID_NUMERIC);
        return ST_OK;
    }
    case PG_QUERY__A__CONST__VAL_BOOLVAL:
        *out = typed(c->boolval->boolval ? "1" : "0", OID_BOOL);
        return ST_OK;
    case PG_QUERY__A__CONST__VAL_SVAL:
        *out = typed(tr_literal(t, c->sval->sval), OID_UNKNOWN);
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
    *out = typed(arena_printf(t->a, "?%u", n), t->params[n - 1] ? t->params[n - 1] : OID_UNKNOWN);
    out->param = t->params[n - 1] ? 0 : n;
    return ST_OK;
}

/* ---- operators ---- */

static status no_operator(struct tr *t, const char *op, const struct tr_ex *l,
                          const struct tr_ex *r, int location)
{
    status st = tr_fail(t, ST_UNSUPPORTED, "42883", location, "operator does not exist: %s%s%s %s",
                        l ? type_name(t, l->type) : "", l ? " " : "", op, type_name(t, r->type));
    err_hint(t->err, "No operator matches the given name and argument types. You might need to add "
                     "explicit type casts.");
    return st;
}

/* Both sides to types that may be compared. */
static status match(struct tr *t, const char *op, struct tr_ex *l, struct tr_ex *r, int location)
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
            *out = typed(
                arena_printf(t->a, "%s(%s,%s)", tr_call(t, "array_append", 2), l->sql, r->sql),
                type);
        else if (right_array && !left_array)
            *out = typed(arena_printf(t->a, "%s(%s(%s),%s)", tr_call(t, "array_cat", 2),
                                      tr_call(t, REL_FN_ARRAY, 1), l->sql, r->sql),
                         type);
        else
            *out = typed(
                arena_printf(t->a, "%s(%s,%s)", tr_call(t, "array_cat", 2), l->sql, r->sql), type);
        return ST_OK;
    }
    if (l->type != OID_UNKNOWN && r->type != OID_UNKNOWN &&
        rel_type_family(l->type) != FAMILY_TEXT && rel_type_family(r->type) != FAMILY_TEXT)
        return no_operator(t, "||", l, r, location);
    ST_TRY(tr_settle(t, l));
    ST_TRY(tr_settle(t, r));
    ST_TRY(cast_text(t, l, OID_TEXT));
    ST_TRY(cast_text(t, r, OID_TEXT));
    *out = typed(arena_printf(t->a, "(%s||%s)", l->sql, r->sql), OID_TEXT);
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
        type = number_rank(l->type) && number_rank(r->type) ? wider(l->type, r->type) : OID_INT8;
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
        *out = typed(arena_printf(t->a, "%s(%s,%s)",
                                  tr_call(t, op[0] == '/' ? REL_FN_DIVIDE : REL_FN_MODULO, 2),
                                  l->sql, r->sql),
                     type);
    else
        *out = typed(arena_printf(t->a, "(%s%s%s)", l->sql, op, r->sql), type);
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
    *out = typed(negated ? arena_printf(t->a, "(NOT %s)", call) : call, OID_BOOL);
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

static status binary(struct tr *t, const char *op, struct tr_ex *l, struct tr_ex *r, int location,
                     struct tr_ex *out)
{
    if (is_comparison(op)) {
        ST_TRY(match(t, op, l, r, location));
        *out = typed(arena_printf(t->a, "(%s%s%s)", l->sql, op, r->sql), OID_BOOL);
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
        ST_TRY(match(t, op, l, r, location));
        if (rel_type_family(l->type) != FAMILY_NUMBER)
            return no_operator(t, op, l, r, location);
        *out = typed(arena_printf(t->a, "(%s%s%s)", l->sql, op, r->sql), wider(l->type, r->type));
        return ST_OK;
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
        ST_TRY(match(t, op, &l[i], &r[i], e->location));
        left = arena_printf(t->a, "%s%s%s", left, i ? "," : "", l[i].sql);
        right = arena_printf(t->a, "%s%s%s", right, i ? "," : "", r[i].sql);
    }
    *out = typed(arena_printf(t->a, "((%s)%s(%s))", left, op, right), OID_BOOL);
    return ST_OK;
}

static status unary(struct tr *t, const char *op, struct tr_ex *r, int location, struct tr_ex *out)
{
    enum rel_family family = rel_type_family(r->type);
    if ((strcmp(op, "-") == 0 || strcmp(op, "+") == 0) &&
        (family == FAMILY_NUMBER || family == FAMILY_INTERVAL)) {
        *out = typed(arena_printf(t->a, "(%s%s)", op, r->sql), r->type);
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
    return binary(t, op, &l, &r, e->location, out);
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
    struct tr_ex item = typed("", element);
    ST_TRY(match(t, op, &l, &item, e->location));
    *out =
        typed(arena_printf(t->a, "%s(%s,%s,'%s',%d)", tr_call(t, any ? REL_FN_ANY : REL_FN_ALL, 4),
                           l.sql, r.sql, op, rel_type_is_integer(element)),
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
        st = match(t, "=", &l, &items[i], e->location);
        if (i)
            obuf_u8(&o, ',');
        obuf_put(&o, items[i].sql, strlen(items[i].sql));
    }
    if (st == ST_OK)
        *out = typed(arena_printf(t->a, "(%s%sIN (%.*s))", l.sql,
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
    ST_TRY(match(t, ">=", &x, &low, e->location));
    ST_TRY(match(t, "<=", &x, &high, e->location));
    *out = typed(arena_printf(t->a, "(%s %sBETWEEN %s AND %s)", x.sql, negated ? "NOT " : "",
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
    ST_TRY(match(t, "=", &l, &r, e->location));
    *out = typed(arena_printf(t->a, "(%s IS %s%s)", l.sql, negated ? "" : "NOT ", r.sql), OID_BOOL);
    return ST_OK;
}

static status null_if(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e, struct tr_ex *out)
{
    struct tr_ex l, r;
    ST_TRY(tr_expr(t, s, e->lexpr, &l));
    ST_TRY(tr_expr(t, s, e->rexpr, &r));
    ST_TRY(match(t, "=", &l, &r, e->location));
    *out = typed(arena_printf(t->a, "nullif(%s,%s)", l.sql, r.sql), l.type);
    return ST_OK;
}

static status a_expr(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e, struct tr_ex *out)
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

/* ---- boolean ---- */

status tr_bool(struct tr *t, struct tr_scope *s, const PgQuery__Node *n, const char *what,
               const char **sql)
{
    struct tr_ex e;
    ST_TRY(tr_expr(t, s, n, &e));
    if (e.type != OID_UNKNOWN && e.type != OID_BOOL)
        return tr_fail(t, ST_INVALID, "42804", -1,
                       "argument of %s must be type boolean, not type %s", what,
                       type_name(t, e.type));
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
    *out = typed(arena_strdup(t->a, bytes_make(o.data, o.size)), OID_BOOL);
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
    *out = typed(arena_printf(t->a, "(%s %s)", sql, tests[b->booltesttype]), OID_BOOL);
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
            ST_TRY(binary(t, "=", &left, &right, w->location, &test));
            tests[i] = test.sql;
        } else {
            ST_TRY(tr_bool(t, s, w->expr, "CASE/WHEN", &tests[i]));
        }
        ST_TRY(tr_expr(t, s, w->result, &results[i + 1]));
    }
    results[0] = typed("NULL", OID_UNKNOWN);
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
    ST_TRY(coerce_all(t, results, count + 1, c->location, &type));
    const char *sql = "(CASE";
    for (unsigned i = 0; i < count; i++)
        sql = arena_printf(t->a, "%s WHEN %s THEN %s", sql, tests[i], results[i + 1].sql);
    *out = typed(arena_printf(t->a, "%s ELSE %s END)", sql, results[0].sql), type);
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
    ST_TRY(coerce_all(t, e, (unsigned)count, location, &type));
    if (count == 1) {
        *out = e[0];
        return ST_OK;
    }
    const char *sql = "";
    for (size_t i = 0; i < count; i++)
        sql = arena_printf(t->a, "%s%s%s", sql, i ? "," : "", e[i].sql);
    *out = typed(arena_printf(t->a, "coalesce(%s)", sql), type);
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
    ST_TRY(coerce_all(t, e, (unsigned)m->n_args, m->location, &type));
    const char *f = m->op == PG_QUERY__MIN_MAX_OP__IS_GREATEST ? "max" : "min";
    const char *sql = e[0].sql;
    for (size_t i = 1; i < m->n_args; i++) {
        ST_TRY(tr_enter(t));
        tr_leave(t);
        sql = arena_printf(t->a, "coalesce(%s(%s,%s),%s,%s)", f, sql, e[i].sql, sql, e[i].sql);
    }
    *out = typed(sql, type);
    return ST_OK;
}

/* ---- sub-selects ---- */

static status sub_select(struct tr *t, struct tr_scope *s, const PgQuery__SubLink *l,
                         struct tr_query *out)
{
    if (!l->subselect || l->subselect->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", l->location,
                       "this sub-query is not supported here");
    ST_TRY(tr_select(t, s, l->subselect->select_stmt, out));
    if (l->sub_link_type != PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK && out->count != 1)
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
    struct tr_ex x, column = typed("", q->columns[0].type);
    ST_TRY(tr_expr(t, s, l->testexpr, &x));
    ST_TRY(match(t, op, &x, &column, l->location));
    *out = typed(arena_printf(t->a, "(%s %sIN (%s))", x.sql, all ? "NOT " : "", q->sql), OID_BOOL);
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
        *out = typed(arena_printf(t->a, "EXISTS (%s)", q.sql), OID_BOOL);
        return ST_OK;
    case PG_QUERY__SUB_LINK_TYPE__EXPR_SUBLINK:
        *out = typed(scalar_sql(t, &q), q.columns[0].type);
        return ST_OK;
    case PG_QUERY__SUB_LINK_TYPE__ARRAY_SUBLINK: {
        uint32_t type = rel_type_array_of(q.columns[0].type);
        const char *v = tr_name(t, "t");
        struct tr_ex item = typed(arena_printf(t->a, "%s.c1", v), q.columns[0].type);
        if (rel_type_family(item.type) != FAMILY_NUMBER || rel_type_is_reg(item.type))
            ST_TRY(cast_text(t, &item, OID_TEXT));
        *out = typed(arena_printf(t->a,
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
        *out = typed(constants, rel_type_array_of(common));
        return ST_OK;
    }
    uint32_t type;
    ST_TRY(coerce_all(t, e, (unsigned)a->n_elements, a->location, &type));
    if (rel_type_family(type) == FAMILY_ARRAY)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", a->location,
                       "arrays of arrays are not supported here");
    if (a->n_elements == 0) {
        *out = typed("'{}'", OID_TEXT_ARRAY);
        return ST_OK;
    }
    const char *sql = "";
    for (size_t i = 0; i < a->n_elements; i++) {
        if (rel_type_family(type) != FAMILY_NUMBER || rel_type_is_reg(type))
            ST_TRY(cast_text(t, &e[i], OID_TEXT));
        sql = arena_printf(t->a, "%s%s%s", sql, i ? "," : "", e[i].sql);
    }
    uint32_t array = rel_type_array_of(type);
    *out =
        typed(arena_printf(t->a, "%s(%s)", tr_call(t, REL_FN_ARRAY, (unsigned)a->n_elements), sql),
              array ? array : OID_TEXT_ARRAY);
    return ST_OK;
}

static status indirection(struct tr *t, struct tr_scope *s, const PgQuery__AIndirection *n,
                          struct tr_ex *out)
{
    ST_TRY(tr_expr(t, s, n->arg, out));
    for (size_t i = 0; i < n->n_indirection; i++) {
        const PgQuery__Node *step = n->indirection[i];
        if (step->node_case == PG_QUERY__NODE__NODE_STRING && out->type == OID_XN) {
            const char *field = tr_str(step);
            if (strcmp(field, "x") != 0 && strcmp(field, "n") != 0)
                return tr_fail(t, ST_UNSUPPORTED, "42703", -1,
                               "column \"%s\" not found in data type record", field);
            *out = typed(arena_printf(t->a, "%s(%s,%d)", tr_call(t, REL_FN_FIELD, 2), out->sql,
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
                           type_name(t, out->type));
        struct tr_ex at;
        ST_TRY(tr_expr(t, s, step->a_indices->uidx, &at));
        ST_TRY(tr_coerce(t, &at, OID_INT4, -1));
        *out = typed(arena_printf(t->a, "%s(%s,%s,%d)", tr_call(t, REL_FN_SUBSCRIPT, 3), out->sql,
                                  at.sql, rel_type_is_integer(element)),
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
        *out = typed(call2(t, REL_FN_IN, "'today'", OID_DATE), OID_DATE);
        return ST_OK;
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP:
    case PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP_N:
        *out = typed(call2(t, REL_FN_IN, "'now'", OID_TIMESTAMP), OID_TIMESTAMP);
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
    *out = typed(arena_printf(t->a, "(%s IS %sNULL)", e.sql, is ? "" : "NOT "), OID_BOOL);
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
        *out = typed("'{}'", type);
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
    case PG_QUERY__NODE__NODE_A_EXPR: return a_expr(t, s, n->a_expr, out);
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
