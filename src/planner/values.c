/*
 * planner/values.c — values the planner computes itself: constants, parameters, casts, and the
 * functions that tell about the session.
 *
 * pl__expr turns a tree into a struct pl__expr on the parse thread; pl__eval gives its value for
 * one execution. A literal becomes EXPR_LITERAL (its slot is read at every execution, and the slot
 * is noted as free) unless the compile says that literals are fixed; then it is EXPR_CONST and its
 * text belongs to the plan's key.
 *
 * SELECT without FROM whose every output is such a value is PL_VALUES. Anything else is not ours:
 * the caller hands it to the evaluator of catalogue relations.
 *
 * Invariant V1: an expression of a shared plan depends on the literals only through slots, so it is
 * right for every text of the shape.
 */
#include "base/assert.h"
#include "planner/catalog.h"
#include "planner/pl_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum function {
    FN_VERSION,
    FN_DATABASE,
    FN_SCHEMA,
    FN_USER,
    FN_SESSION_USER,
    FN_PID,
    FN_NOW,
    FN_CLOCK,
    FN_LOCAL_NOW,
    FN_DATE,
    FN_RECOVERY,
    FN_SETTING,
    FN_SET_CONFIG,
    FN_SLEEP,
    FN_UNLOCK_ALL,
    FN_TXID,
    FN_ENCODING,
    FN_QUOTE_LITERAL,
    FN_CONCAT,
    FN_ADD,
    FN_SUBTRACT,
    FN_MULTIPLY,
    FN_NOTIFY,
    FN_TO_TIMESTAMP,
    FN_BLOCKED,
    FN_TIME_PLUS,
    FN_TIME_MINUS,
};

static const struct function_row {
    const char *name;
    enum function fn;
    uint32_t result;
    unsigned least, most;
    uint32_t args[3];
} functions[] = {
    {"version", FN_VERSION, OID_TEXT, 0, 0, {0}},
    {"current_database", FN_DATABASE, OID_NAME, 0, 0, {0}},
    {"current_schema", FN_SCHEMA, OID_NAME, 0, 0, {0}},
    {"pg_backend_pid", FN_PID, OID_INT4, 0, 0, {0}},
    {"now", FN_NOW, OID_TIMESTAMPTZ, 0, 0, {0}},
    {"transaction_timestamp", FN_NOW, OID_TIMESTAMPTZ, 0, 0, {0}},
    {"statement_timestamp", FN_CLOCK, OID_TIMESTAMPTZ, 0, 0, {0}},
    {"clock_timestamp", FN_CLOCK, OID_TIMESTAMPTZ, 0, 0, {0}},
    {"pg_is_in_recovery", FN_RECOVERY, OID_BOOL, 0, 0, {0}},
    {"current_setting", FN_SETTING, OID_TEXT, 1, 2, {OID_TEXT, OID_BOOL}},
    {"set_config", FN_SET_CONFIG, OID_TEXT, 3, 3, {OID_TEXT, OID_TEXT, OID_BOOL}},
    {"pg_sleep", FN_SLEEP, OID_VOID, 1, 1, {OID_FLOAT8}},
    {"pg_advisory_unlock_all", FN_UNLOCK_ALL, OID_VOID, 0, 0, {0}},
    {"txid_current", FN_TXID, OID_INT8, 0, 0, {0}},
    {"pg_client_encoding", FN_ENCODING, OID_NAME, 0, 0, {0}},
    {"quote_literal", FN_QUOTE_LITERAL, OID_TEXT, 1, 1, {OID_TEXT}},
    {"pg_notify", FN_NOTIFY, OID_VOID, 2, 2, {OID_TEXT, OID_TEXT}},
    {"to_timestamp", FN_TO_TIMESTAMP, OID_TIMESTAMPTZ, 1, 1, {OID_FLOAT8}},
    /* No session waits for a lock of another, which isolationtester wants to know. */
    {"pg_isolation_test_session_is_blocked",
     FN_BLOCKED,
     OID_BOOL,
     2,
     2,
     {OID_INT4, OID_INT4_ARRAY}},
    /* Not named by anyone: make_time_operator. */
    {"operator +", FN_TIME_PLUS, OID_TIMESTAMPTZ, 2, 2, {OID_TIMESTAMPTZ, OID_INTERVAL}},
    {"operator -", FN_TIME_MINUS, OID_TIMESTAMPTZ, 2, 2, {OID_TIMESTAMPTZ, OID_INTERVAL}},
};
static const struct {
    const char *name;
    enum function fn;
    uint32_t result;
} keywords[] = {
    {"current_user", FN_USER, OID_NAME},
    {"user", FN_USER, OID_NAME},
    {"current_role", FN_USER, OID_NAME},
    {"session_user", FN_SESSION_USER, OID_NAME},
    {"current_catalog", FN_DATABASE, OID_NAME},
    {"current_schema", FN_SCHEMA, OID_NAME},
    {"current_timestamp", FN_NOW, OID_TIMESTAMPTZ},
    {"localtimestamp", FN_LOCAL_NOW, OID_TIMESTAMP},
    {"current_date", FN_DATE, OID_DATE},
};

uint32_t pl__position(bytes text, int at)
{
    uint32_t n = 1;
    if (at < 0 || (size_t)at > text.size)
        return 0;
    for (int i = 0; i < at; i++)
        n += (text.data[i] & 0xc0) != 0x80;
    return n;
}

status pl__error(struct pl__compile *c, int at, status code, const char *sqlstate, const char *fmt,
                 ...)
{
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    if (sqlstate == NULL)
        err_set(c->err, code, "%s", message);
    else
        err_set_state(c->err, code, sqlstate, "%s", message);
    if (c->err != NULL)
        c->err->position = pl__position(c->text, at);
    return code;
}

status pl__no_pattern(struct pl__compile *c, int at, enum pl_pattern_id nearest,
                      const char *differs, ...)
{
    char why[256];
    va_list ap;
    va_start(ap, differs);
    vsnprintf(why, sizeof(why), differs, ap);
    va_end(ap);
    pl__error(c, at, ST_UNSUPPORTED, NULL, "statement matches no metadata pattern");
    const struct pl_pattern *p = pl__pattern(nearest);
    if (p != NULL)
        err_detail(c->err, "The nearest pattern is %s: %s; %s.", p->name, p->template_text, why);
    else
        err_detail(c->err, "%s.", why);
    err_hint(c->err, "SELECT * FROM metadb.patterns");
    return ST_UNSUPPORTED;
}

static const struct {
    const char *name;
    enum function fn;
} operators[] = {{"||", FN_CONCAT}, {"+", FN_ADD}, {"-", FN_SUBTRACT}, {"*", FN_MULTIPLY}};

/* -- literals and their slots ------------------------------------------------------------------ */

/* Minus signs between AT and the slot's token decide the sign; parentheses between do not
 * matter. */
static bool odd_signs(bytes text, size_t at, size_t end)
{
    bool odd = false;
    struct pl_token t;
    while (at < end && pl_token_next(text, &at, &t, NULL) == ST_OK && t.kind != PL_TOKEN_END &&
           t.at < end) {
        if (t.kind == PL_TOKEN_OPER && pl_token_is(text, &t, "-"))
            odd = !odd;
    }
    return odd;
}

/* The slot whose literal NODE is; -1 if none. *NEGATE as in pl__expr. */
static int slot_of(const struct pl__compile *c, const struct ast_node *n, bool *negate)
{
    *negate = false;
    if (c->scan == NULL || n->at < 0)
        return -1;
    uint32_t at = (uint32_t)n->at, lo = 0, hi = c->scan->slot_count;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (c->scan->slots[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == c->scan->slot_count)
        return -1;
    const struct pl_slot *s = &c->scan->slots[lo];
    if (s->at == at)
        return (int)lo;
    if (c->text.data[at] != '-' || n->kind == AST_STRING)
        return -1;
    *negate = odd_signs(c->text, at, s->at);
    return (int)lo;
}

/* The tree goes at the end of the compile; what a plan keeps is copied. */
static struct pl_value constant_of(struct arena *a, const struct ast_node *n)
{
    struct pl_value v = {.oid = OID_UNKNOWN};
    bool exact;
    int beyond;
    switch ((int)n->kind) {
    case AST_INT:
        v.oid = OID_INT4;
        v.i = n->ival;
        break;
    case AST_NUMBER:
        v.oid = OID_NUMERIC;
        if (strpbrk(n->text, ".eE") == NULL &&
            pl__number_to_int(bytes_str(n->text), &v.i, &exact, &beyond) && beyond == 0)
            v.oid = OID_INT8;
        else
            v.b = arena_copy(a, bytes_str(n->text));
        break;
    case AST_BOOL_CONST:
        v.oid = OID_BOOL;
        v.i = n->ival;
        break;
    case AST_STRING: v.b = arena_copy(a, bytes_str(n->text)); break;
    default: v.null = true;
    }
    return v;
}

static status make_constant(struct pl__compile *c, const struct ast_node *n, struct pl__expr *e)
{
    e->value = constant_of(c->a, n);
    e->oid = e->value.oid;
    if (e->oid == OID_NUMERIC)
        ST_TRY(pl__numeric_check(e->value.b, c->a, &e->value.b, c->err));
    bool negate;
    e->slot = slot_of(c, n, &negate);
    if (n->kind == AST_NULL || n->kind == AST_BOOL_CONST)
        e->slot = -1;
    else if (e->slot < 0)
        c->plan->cacheable = false; /* a value that the key does not show */
    if (e->slot < 0 || c->fixed) {
        if (n->kind == AST_STRING) /* the plan outlives the parse tree that the text is in */
            e->value.b = arena_copy(c->a, e->value.b);
        return ST_OK;
    }
    e->kind = EXPR_LITERAL;
    e->negate = negate;
    c->slot_free[e->slot] = true;
    return ST_OK;
}

static status make_param(struct pl__compile *c, const struct ast_node *n, uint32_t expected,
                         struct pl__expr *e)
{
    if (n->ival < 1 || n->ival > (int64_t)LIMIT_PARAMS)
        return pl__error(c, n->at, ST_INVALID, "42P02", "there is no parameter $%lld",
                         (long long)n->ival);
    e->kind = EXPR_PARAM;
    e->index = (unsigned)n->ival - 1;
    if (e->index >= c->param_count)
        c->param_count = e->index + 1;
    uint32_t *type = &c->param_types[e->index];
    if (*type == 0 || *type == OID_UNKNOWN)
        *type = expected;
    e->oid = *type == 0 ? OID_UNKNOWN : *type;
    return ST_OK;
}

/* -- types by name ----------------------------------------------------------------------------- */

static void type_text(const struct ast_type *t, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < t->name_count && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%s", i > 0 ? "." : "", t->names[i]);
    if (t->array && n < room)
        snprintf(out + n, room - n, "[]");
}

/* 0 if no type of ours. */
static uint32_t type_oid(const struct ast_type *t)
{
    if (t->name_count == 0 || t->name_count > 2 || t->setof ||
        (t->name_count == 2 && strcmp(t->names[0], "pg_catalog") != 0))
        return 0;
    uint32_t oid = pl_type_by_name(t->names[t->name_count - 1]);
    return t->array && oid != 0 ? pl_type_array(oid) : oid;
}

/* varchar(n) and char(n); other modifiers are not ours. */
static bool type_modifier(const struct ast_type *t, uint32_t oid, int32_t *typmod)
{
    *typmod = -1;
    if (t->typmod_count == 0)
        return true;
    if (t->typmod_count != 1 || t->typmods[0]->kind != AST_INT ||
        (oid != OID_VARCHAR && oid != OID_BPCHAR) || t->typmods[0]->ival < 1)
        return false;
    *typmod = (int32_t)t->typmods[0]->ival + 4;
    return true;
}

status pl__type_name(struct pl__compile *c, const struct ast_type *t, uint32_t *oid,
                     int32_t *typmod)
{
    char name[160];
    *oid = type_oid(t);
    if (*oid == 0 || !type_modifier(t, *oid, typmod)) {
        type_text(t, name, sizeof(name));
        return pl__error(c, t->at, ST_INVALID, "42704", "type \"%s\" does not exist", name);
    }
    return ST_OK;
}

/* -- building ---------------------------------------------------------------------------------- */

static status make_cast(struct pl__compile *c, const struct ast_node *n, struct pl__expr *e)
{
    const struct pl__expr **args = ARENA_ARRAY(c->a, const struct pl__expr *, 1);
    e->oid = type_oid(n->type);
    if (e->oid == 0 || !type_modifier(n->type, e->oid, &e->typmod) || e->oid == OID_REGCLASS ||
        e->oid == OID_REGPROC || n->left == NULL)
        return ST_UNSUPPORTED;
    ST_TRY(pl__expr(c, n->left, e->oid, &args[0]));
    if (!pl_type_has_cast(args[0]->oid, e->oid))
        return pl__error(c, n->at, ST_INVALID, "42846", "cannot cast type %s to %s",
                         pl_type_name(args[0]->oid), pl_type_name(e->oid));
    e->kind = EXPR_CAST;
    e->args = args;
    e->count = 1;
    return ST_OK;
}

static status make_call(struct pl__compile *c, const struct ast_node *n, struct pl__expr *e)
{
    const struct function_row *f = NULL;
    bool ours =
        n->name_count == 1 || (n->name_count == 2 && strcmp(n->names[0], "pg_catalog") == 0);
    for (size_t i = 0; ours && i < ARRAY_LEN(functions); i++) {
        if (strcmp(functions[i].name, n->names[n->name_count - 1]) == 0)
            f = &functions[i];
    }
    if (f == NULL || n->star || !n->plain || n->count < f->least || n->count > f->most)
        return ST_UNSUPPORTED;
    const struct pl__expr **args = ARENA_ARRAY(c->a, const struct pl__expr *, n->count + 1);
    for (unsigned i = 0; i < n->count; i++)
        ST_TRY(pl__expr(c, n->items[i], f->args[i], &args[i]));
    e->kind = EXPR_CALL;
    e->oid = f->result;
    e->index = (unsigned)(f - functions);
    e->args = args;
    e->count = n->count;
    return ST_OK;
}

static status make_keyword(const struct ast_node *n, struct pl__expr *e)
{
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        if (strcmp(keywords[i].name, n->text) == 0) {
            e->kind = EXPR_CALL;
            e->oid = keywords[i].result;
            e->index = (unsigned)(ARRAY_LEN(functions) + i);
            return ST_OK;
        }
    }
    return ST_UNSUPPORTED;
}

static bool is_text_type(uint32_t oid)
{
    return oid == OID_TEXT || oid == OID_VARCHAR || oid == OID_UNKNOWN || oid == OID_NAME;
}

static bool is_int_type(uint32_t oid)
{
    return oid == OID_INT2 || oid == OID_INT4 || oid == OID_INT8;
}

/* Moment + interval, interval + moment, moment - interval; behind + the interval may be a plain
 * literal, as in PostgreSQL. */
static status make_time_operator(const char *op, const struct pl__expr **args, struct pl__expr *e)
{
    bool plus = strcmp(op, "+") == 0;
    if (plus && args[1]->oid == OID_TIMESTAMPTZ) {
        const struct pl__expr *swap = args[0];
        args[0] = args[1];
        args[1] = swap;
    }
    if (args[0]->oid != OID_TIMESTAMPTZ || (!plus && strcmp(op, "-") != 0) ||
        !(args[1]->oid == OID_INTERVAL || (plus && args[1]->oid == OID_UNKNOWN)))
        return ST_UNSUPPORTED;
    e->kind = EXPR_CALL;
    for (e->index = 0; functions[e->index].fn != (plus ? FN_TIME_PLUS : FN_TIME_MINUS);)
        e->index++;
    e->oid = OID_TIMESTAMPTZ;
    e->args = args;
    e->count = 2;
    return ST_OK;
}

/* Text || anything, and + - * of integers. A parameter without a type takes that of the other side;
 * so the other side is built first. */
static status make_operator(struct pl__compile *c, const struct ast_node *n, struct pl__expr *e)
{
    const struct pl__expr **args = ARENA_ARRAY(c->a, const struct pl__expr *, 2);
    size_t op = 0;
    while (op < ARRAY_LEN(operators) && strcmp(operators[op].name, n->text) != 0)
        op++;
    if (op == ARRAY_LEN(operators) || n->left == NULL || n->right == NULL)
        return ST_UNSUPPORTED;
    bool concat = operators[op].fn == FN_CONCAT, swap = n->left->kind == AST_PARAM;
    const struct ast_node *first = swap ? n->right : n->left, *second = swap ? n->left : n->right;
    ST_TRY(pl__expr(c, first, concat ? OID_TEXT : 0, &args[swap]));
    ST_TRY(pl__expr(c, second, concat ? OID_TEXT : args[swap]->oid, &args[!swap]));
    uint32_t a = args[0]->oid, b = args[1]->oid;
    bool element = pl_type_element(a) != 0 || pl_type_element(b) != 0;
    if (concat &&
        ((!is_text_type(a) && !is_text_type(b)) || element || a == OID_BYTEA || b == OID_BYTEA))
        return ST_UNSUPPORTED;
    if (a == OID_TIMESTAMPTZ || b == OID_TIMESTAMPTZ)
        return make_time_operator(n->text, args, e);
    if (!concat && (!is_int_type(a) || !is_int_type(b)))
        return ST_UNSUPPORTED;
    /* A literal of a shared plan may be of either width. */
    bool literal = args[0]->kind == EXPR_LITERAL || args[1]->kind == EXPR_LITERAL;
    e->kind = EXPR_CALL;
    e->oid = concat                                      ? OID_TEXT
             : literal || a == OID_INT8 || b == OID_INT8 ? OID_INT8
             : a == OID_INT4 || b == OID_INT4            ? OID_INT4
                                                         : OID_INT2;
    e->index = (unsigned)(ARRAY_LEN(functions) + ARRAY_LEN(keywords) + op);
    e->args = args;
    e->count = 2;
    return ST_OK;
}

status pl__expr(struct pl__compile *c, const struct ast_node *n, uint32_t expected,
                const struct pl__expr **out)
{
    struct pl__expr *e = ARENA_NEW(c->a, struct pl__expr);
    e->at = n == NULL ? -1 : n->at;
    e->typmod = -1;
    e->slot = -1;
    *out = e;
    if (n == NULL)
        return ST_UNSUPPORTED;
    switch ((int)n->kind) {
    case AST_INT:
    case AST_NUMBER:
    case AST_STRING:
    case AST_NULL:
    case AST_BOOL_CONST: return make_constant(c, n, e);
    case AST_PARAM: return make_param(c, n, expected, e);
    case AST_CAST: return make_cast(c, n, e);
    case AST_CALL: return make_call(c, n, e);
    case AST_VALUE_FUNCTION: return make_keyword(n, e);
    case AST_DEFAULT:
        e->kind = EXPR_DEFAULT;
        e->oid = OID_UNKNOWN;
        return ST_OK;
    case AST_OP:
        if (n->left == NULL && strcmp(n->text, "+") == 0 && n->right != NULL &&
            (n->right->kind == AST_INT || n->right->kind == AST_NUMBER))
            return pl__expr(c, n->right, expected, out); /* +5 */
        return make_operator(c, n, e);
    default: return ST_UNSUPPORTED;
    }
}

/* Is there a function of this name at all, here or in the catalogue's queries? */
static bool is_function(const struct ast_node *n)
{
    const char *name = n->names[n->name_count - 1];
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        if (strcmp(functions[i].name, name) == 0)
            return true;
    }
    return n->star || pl_catalog_has_function(name);
}

static status no_function(struct pl__compile *c, const struct ast_node *n)
{
    char args[256] = "";
    size_t used = 0;
    for (unsigned i = 0; i < n->count && used < sizeof(args); i++) {
        const struct pl__expr *e;
        status st = pl__expr(c, n->items[i], OID_UNKNOWN, &e);
        if (c->err != NULL)
            err_clear(c->err);
        used += (size_t)snprintf(args + used, sizeof(args) - used, "%s%s", i > 0 ? ", " : "",
                                 st == ST_OK ? pl_type_name(e->oid) : "unknown");
    }
    pl__error(c, n->at, ST_INVALID, "42883", "function %s(%s) does not exist",
              n->names[n->name_count - 1], args);
    err_hint(c->err, "No function matches the given name and argument types. You might need to add "
                     "explicit type casts.");
    return ST_INVALID;
}

status pl__expr_of(struct pl__compile *c, const struct ast_node *n, uint32_t expected,
                   enum pl_pattern_id nearest, const struct pl__expr **out)
{
    if (c->err != NULL)
        err_clear(c->err);
    status st = pl__expr(c, n, expected, out);
    if (st != ST_UNSUPPORTED || (c->err != NULL && c->err->code != ST_OK))
        return st;
    if (n != NULL && n->kind == AST_CAST && type_oid(n->type) == 0) {
        uint32_t oid;
        int32_t typmod;
        ST_TRY(pl__type_name(c, n->type, &oid, &typmod));
    }
    if (n != NULL && n->kind == AST_COLUMN && n->name_count == 1)
        return pl__error(c, n->at, ST_INVALID, "42703", "column \"%s\" does not exist",
                         n->names[0]);
    if (n != NULL && n->kind == AST_CALL && !is_function(n))
        return no_function(c, n);
    return pl__no_pattern(c, n == NULL ? -1 : n->at, nearest,
                          "this expression is neither a constant nor a parameter");
}

/* -- evaluating -------------------------------------------------------------------------------- */

status pl__eval_error(const struct pl__bind *b, const struct pl__expr *e, unsigned slot_shift,
                      status st)
{
    if (st == ST_OK || b->err == NULL || b->err->position != 0)
        return st;
    while (e->kind == EXPR_CAST)
        e = e->args[0];
    if (e->kind == EXPR_PARAM)
        return st;
    int at = e->at;
    if (b->s->literal_at != NULL)
        at = e->slot < 0 ? -1 : (int)b->s->literal_at[(unsigned)e->slot + slot_shift];
    b->err->position = pl__position(b->s->text, at);
    return st;
}

static status negate(const struct pl__bind *b, struct pl_value *v)
{
    if (v->oid != OID_NUMERIC) {
        v->i = (int64_t)(0 - (uint64_t)v->i);
        return ST_OK;
    }
    uint8_t *p = arena_alloc(b->a, v->b.size + 1);
    p[0] = '-';
    memcpy(p + 1, v->b.data, v->b.size);
    v->b = bytes_make(p, v->b.size + 1);
    bool exact;
    int beyond;
    int64_t i;
    if (memchr(p, '.', v->b.size) == NULL && memchr(p, 'e', v->b.size) == NULL &&
        memchr(p, 'E', v->b.size) == NULL && pl__number_to_int(v->b, &i, &exact, &beyond) &&
        beyond == 0)
        *v = (struct pl_value){.oid = OID_INT8, .i = i};
    return ST_OK;
}

static struct pl_value text_value(uint32_t oid, const char *s)
{
    return (struct pl_value){
        .oid = oid, .null = s == NULL, .b = s == NULL ? BYTES_EMPTY : bytes_str(s)};
}

static status setting_value(const struct pl__bind *b, const struct pl_value *args, unsigned count,
                            struct pl_value *out)
{
    char *name = arena_strdup(b->a, args[0].b);
    const char *v = b->ctx->setting == NULL ? NULL : b->ctx->setting(b->ctx->arg, name);
    if (v == NULL && !(count == 2 && args[1].i != 0))
        return err_set_state(b->err, ST_INVALID, "42704",
                             "unrecognized configuration parameter \"%s\"", name);
    *out = text_value(OID_TEXT, v);
    return ST_OK;
}

static status set_config(const struct pl__bind *b, const struct pl_value *args,
                         struct pl_value *out)
{
    char *name = arena_strdup(b->a, args[0].b), *value = arena_strdup(b->a, args[1].b);
    if (b->ctx->set_setting == NULL)
        return err_set(b->err, ST_UNSUPPORTED, "settings cannot be changed here");
    ST_TRY(b->ctx->set_setting(b->ctx->arg, name, value, args[2].i != 0, b->err));
    *out = text_value(OID_TEXT, value);
    return ST_OK;
}

/* 'it''s', with an E in front when there are backslashes. */
static bytes quote_literal(struct arena *a, bytes t)
{
    uint8_t *p = arena_alloc(a, 2 * t.size + 4), *q = p;
    if (memchr(t.data, '\\', t.size) != NULL) {
        *q++ = ' ';
        *q++ = 'E';
    }
    *q++ = '\'';
    for (size_t i = 0; i < t.size; i++) {
        if (t.data[i] == '\'' || t.data[i] == '\\')
            *q++ = t.data[i];
        *q++ = t.data[i];
    }
    *q++ = '\'';
    return bytes_make(p, (size_t)(q - p));
}

/* As PostgreSQL writes it, so that clients find a version number in it. */
static const char *version_text(const struct pl__bind *b)
{
    const char *v = b->ctx->setting == NULL ? NULL : b->ctx->setting(b->ctx->arg, "server_version");
    return arena_printf(b->a, "PostgreSQL %s on x86_64-linux, 64-bit",
                        v == NULL ? "15.0 (metadb " METADB_VERSION ")" : v);
}

static status notify(const struct pl__bind *b, const struct pl_value *args, struct pl_value *out)
{
    *out = text_value(OID_VOID, "");
    if (b->ctx->notify == NULL)
        return err_set(b->err, ST_UNSUPPORTED, "notifications cannot be sent here");
    return b->ctx->notify(b->ctx->arg, arena_strdup(b->a, args[0].b), arena_strdup(b->a, args[1].b),
                          b->err);
}

static bool is_infinite(int64_t t)
{
    return t == PL_TIME_INFINITY || t == PL_TIME_MINUS_INFINITY;
}

/* A moment and microseconds beside it. */
static status shift(const struct pl__bind *b, int64_t at, int64_t by, struct pl_value *out)
{
    out->i = at;
    if (!is_infinite(at) &&
        (__builtin_add_overflow(at, by, &out->i) || out->i < PL_TIME_MIN || out->i >= PL_TIME_END))
        return err_set_state(b->err, ST_INVALID, "22008", "timestamp out of range");
    return ST_OK;
}

/* Seconds of Unix time as a timestamptz. */
static status moment(const struct pl__bind *b, double seconds, struct pl_value *out)
{
    const double epoch = 946684800;
    if (seconds != seconds)
        return err_set_state(b->err, ST_INVALID, "22008", "timestamp cannot be NaN");
    if (seconds - seconds != 0) {
        out->i = seconds > 0 ? PL_TIME_INFINITY : PL_TIME_MINUS_INFINITY;
        return ST_OK;
    }
    if (seconds < (double)PL_TIME_MIN / 1e6 + epoch || seconds >= (double)PL_TIME_END / 1e6 + epoch)
        return err_set_state(b->err, ST_INVALID, "22008", "timestamp out of range: \"%g\"",
                             seconds);
    out->i = llrint((seconds - epoch) * 1e6);
    return ST_OK;
}

static status call(const struct pl__bind *b, enum function fn, const struct pl_value *args,
                   unsigned count, struct pl_value *out)
{
    const struct pl_context *x = b->ctx;
    for (unsigned i = 0; i < count; i++) {
        if (args[i].null) { /* strict, all of them */
            out->null = true;
            return ST_OK;
        }
    }
    switch (fn) {
    case FN_VERSION: *out = text_value(OID_TEXT, version_text(b)); return ST_OK;
    case FN_DATABASE: *out = text_value(OID_NAME, x->database); return ST_OK;
    case FN_SCHEMA: *out = text_value(OID_NAME, "public"); return ST_OK;
    case FN_USER:
    case FN_SESSION_USER: *out = text_value(OID_NAME, x->user); return ST_OK;
    case FN_PID: out->i = x->backend_pid; return ST_OK;
    case FN_NOW: out->i = x->now; return ST_OK;
    case FN_CLOCK: out->i = x->clock != NULL ? x->clock(x->arg) : x->clock_now; return ST_OK;
    case FN_LOCAL_NOW: out->i = pl__time_to_local(x->now, x->style); return ST_OK;
    case FN_DATE: {
        struct pl_value now = {.oid = OID_TIMESTAMPTZ, .i = x->now};
        return pl_value_convert(&now, OID_DATE, -1, true, x->style, x->now, b->a, out, b->err);
    }
    case FN_RECOVERY: out->i = 0; return ST_OK;
    case FN_SETTING: return setting_value(b, args, count, out);
    case FN_SET_CONFIG: return set_config(b, args, out);
    case FN_SLEEP:
        if (args[0].d > 0)
            b->out->sleep_us +=
                args[0].d > 1e9 ? UINT64_C(1000000000000000) : (uint64_t)(args[0].d * 1e6);
        *out = text_value(OID_VOID, "");
        return ST_OK;
    case FN_UNLOCK_ALL: *out = text_value(OID_VOID, ""); return ST_OK;
    case FN_TXID: out->i = x->now; return ST_OK; /* one number a transaction, growing */
    case FN_ENCODING:
        *out = text_value(OID_NAME,
                          x->setting == NULL ? "UTF8" : x->setting(x->arg, "client_encoding"));
        return ST_OK;
    case FN_QUOTE_LITERAL: out->b = quote_literal(b->a, args[0].b); return ST_OK;
    case FN_CONCAT:
    case FN_ADD:
    case FN_SUBTRACT:
    case FN_MULTIPLY: break; /* eval_operator */
    case FN_NOTIFY: return notify(b, args, out);
    case FN_TO_TIMESTAMP: return moment(b, args[0].d, out);
    case FN_BLOCKED: out->i = 0; return ST_OK;
    case FN_TIME_PLUS: return shift(b, args[0].i, args[1].i, out);
    case FN_TIME_MINUS: return shift(b, args[0].i, -args[1].i, out);
    }
    return ST_OK;
}

static status concat(const struct pl__bind *b, const struct pl_value *args, struct pl_value *out)
{
    size_t n = args[0].b.size;
    uint8_t *p = arena_alloc(b->a, n + args[1].b.size + 1);
    if (n > 0)
        memcpy(p, args[0].b.data, n);
    if (args[1].b.size > 0)
        memcpy(p + n, args[1].b.data, args[1].b.size);
    out->b = bytes_make(p, n + args[1].b.size);
    return ST_OK;
}

static status eval_operator(const struct pl__bind *b, const struct pl__expr *e, unsigned slot_shift,
                            struct pl_value *out)
{
    enum function fn = operators[e->index - ARRAY_LEN(functions) - ARRAY_LEN(keywords)].fn;
    struct pl_value args[2], v;
    bool over = false;
    for (unsigned i = 0; i < 2; i++) {
        ST_TRY(pl__eval(b, e->args[i], slot_shift, &v));
        ST_TRY(
            pl__eval_error(b, e->args[i], slot_shift,
                           pl_value_convert(&v, fn == FN_CONCAT ? OID_TEXT : OID_INT8, -1, false,
                                            b->ctx->style, b->ctx->now, b->a, &args[i], b->err)));
        out->null = out->null || args[i].null;
    }
    if (out->null)
        return ST_OK;
    if (fn == FN_CONCAT)
        return concat(b, args, out);
    if (fn == FN_ADD)
        over = __builtin_add_overflow(args[0].i, args[1].i, &out->i);
    else if (fn == FN_SUBTRACT)
        over = __builtin_sub_overflow(args[0].i, args[1].i, &out->i);
    else
        over = __builtin_mul_overflow(args[0].i, args[1].i, &out->i);
    if (over || (e->oid == OID_INT4 && out->i != (int32_t)out->i) ||
        (e->oid == OID_INT2 && out->i != (int16_t)out->i))
        return err_set_state(b->err, ST_INVALID, "22003", "%s out of range", pl_type_name(e->oid));
    return ST_OK;
}

static status eval_call(const struct pl__bind *b, const struct pl__expr *e, unsigned slot_shift,
                        struct pl_value *out)
{
    struct pl_value args[3];
    *out = (struct pl_value){.oid = e->oid};
    if (e->index >= ARRAY_LEN(functions) + ARRAY_LEN(keywords))
        return eval_operator(b, e, slot_shift, out);
    if (e->index >= ARRAY_LEN(functions))
        return call(b, keywords[e->index - ARRAY_LEN(functions)].fn, NULL, 0, out);
    const struct function_row *f = &functions[e->index];
    for (unsigned i = 0; i < e->count; i++) {
        struct pl_value v;
        ST_TRY(pl__eval(b, e->args[i], slot_shift, &v));
        status st = pl_value_convert(&v, f->args[i], -1, false, b->ctx->style, b->ctx->now, b->a,
                                     &args[i], b->err);
        if (st != ST_OK)
            return pl__eval_error(b, e->args[i], slot_shift, st);
    }
    return call(b, f->fn, args, e->count, out);
}

status pl__eval(const struct pl__bind *b, const struct pl__expr *e, unsigned slot_shift,
                struct pl_value *out)
{
    struct pl_value v;
    status st;
    switch (e->kind) {
    case EXPR_CONST: *out = e->value; return ST_OK;
    case EXPR_LITERAL:
        *out = b->s->literals[(unsigned)e->slot + slot_shift];
        return e->negate ? negate(b, out) : ST_OK;
    case EXPR_PARAM:
        ASSERT(e->index < b->param_count);
        *out = b->params[e->index];
        return ST_OK;
    case EXPR_CAST:
        ST_TRY(pl__eval(b, e->args[0], slot_shift, &v));
        st = pl_value_convert(&v, e->oid, e->typmod, true, b->ctx->style, b->ctx->now, b->a, out,
                              b->err);
        /* Of literals that are read it is said where they are, of values that do not fit not. */
        return e->args[0]->oid == OID_UNKNOWN ? pl__eval_error(b, e, slot_shift, st) : st;
    case EXPR_CALL: return eval_call(b, e, slot_shift, out);
    case EXPR_DEFAULT: break;
    }
    *out = (struct pl_value){.oid = OID_UNKNOWN, .null = true};
    return ST_OK;
}

/* -- SELECT without FROM ----------------------------------------------------------------------- */

/* PostgreSQL's FigureColname: 2 = a name of its own, 1 = only a type. */
static int heading(const struct ast_node *n, const char **out)
{
    if (n == NULL)
        return 0;
    switch ((int)n->kind) {
    case AST_COLUMN:
        if (n->name_count == 0 || n->star)
            return 0;
        *out = n->names[n->name_count - 1];
        return 2;
    case AST_CALL: *out = n->names[n->name_count - 1]; return 2;
    case AST_VALUE_FUNCTION: *out = n->text; return 2;
    case AST_GREATEST: *out = "greatest"; return 2;
    case AST_LEAST: *out = "least"; return 2;
    case AST_ARRAY: *out = "array"; return 2;
    case AST_ROW: *out = "row"; return 2;
    case AST_CAST: {
        int strength = heading(n->left, out);
        if (strength > 1 || n->type->name_count == 0)
            return strength;
        *out = n->type->names[n->type->name_count - 1];
        return 1;
    }
    case AST_OTHER:
        if (strcmp(n->text, "case_expr") == 0)
            *out = "case";
        else if (strcmp(n->text, "coalesce_expr") == 0)
            *out = "coalesce";
        else
            return 0;
        return 2;
    default: return 0;
    }
}

const char *pl__heading(struct pl__compile *c, const struct ast_node *n)
{
    const char *name = "?column?";
    heading(n, &name);
    return arena_strdup(c->a, bytes_str(name));
}

struct values {
    const struct pl__expr *const *exprs;
    unsigned count;
};

static status bind_values(struct pl__bind *b)
{
    const struct values *v = b->plan->body;
    struct pl_value *out = ARENA_ARRAY(b->a, struct pl_value, v->count + 1);
    for (unsigned i = 0; i < v->count; i++) {
        struct pl_value x;
        ST_TRY(pl__eval(b, v->exprs[i], 0, &x));
        ST_TRY(pl_value_convert(&x, b->plan->pub.columns[i].oid, -1, true, b->ctx->style,
                                b->ctx->now, b->a, &out[i], b->err));
    }
    b->out->values = out;
    return ST_OK;
}

status pl__compile_values(struct pl__compile *c, const struct ast_stmt *s)
{
    struct values *v = ARENA_NEW(c->a, struct values);
    struct pl_column *columns = ARENA_ARRAY(c->a, struct pl_column, s->target_count + 1);
    const struct pl__expr **exprs = ARENA_ARRAY(c->a, const struct pl__expr *, s->target_count + 1);
    if (s->from_count > 0 || s->where != NULL || s->unusual != NULL || s->sort_count > 0 ||
        s->limit != NULL || s->offset != NULL || s->row_count > 0 || s->for_update ||
        s->lock_other || s->target_count > LIMIT_PROJECTION)
        return ST_UNSUPPORTED;
    c->fixed = true;
    for (unsigned i = 0; i < s->target_count; i++) {
        const struct ast_target *t = &s->targets[i];
        if (t->value != NULL && t->value->kind == AST_DEFAULT)
            return ST_UNSUPPORTED;
        ST_TRY(pl__expr(c, t->value, OID_TEXT, &exprs[i]));
        uint32_t oid = exprs[i]->oid == OID_UNKNOWN ? OID_TEXT : exprs[i]->oid;
        columns[i] = (struct pl_column){
            .name =
                t->name != NULL ? arena_strdup(c->a, bytes_str(t->name)) : pl__heading(c, t->value),
            .oid = oid,
            .typmod = exprs[i]->typmod,
            .source = -1,
        };
    }
    v->exprs = exprs;
    v->count = s->target_count;
    c->plan->pub.kind = PL_VALUES;
    c->plan->pub.tag = "SELECT";
    c->plan->pub.returns_rows = true;
    c->plan->pub.columns = columns;
    c->plan->pub.column_count = s->target_count;
    c->plan->pattern_id = PATTERN_VALUES;
    c->plan->body = v;
    c->plan->bind = bind_values;
    return ST_OK;
}
