/*
 * planner/bind_session.c — statements about the session: transactions, settings, prepared
 * statements, cursors, channels, EXPLAIN.
 *
 * They have nothing to bind: all they say is in struct pl_utility. An inner statement (of PREPARE,
 * DECLARE, EXPLAIN, COPY) is passed on as text; where it starts is found by its tokens, because the
 * grammar keeps no place for it. DECLARE and EXPLAIN compile it once here too, for its errors and
 * for the types of its parameters, which are the outer statement's.
 */
#include "planner/catalog.h"
#include "planner/pl_internal.h"
#include "planner/timezone.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

static struct pl_utility *start(struct pl__compile *c, enum pl_kind kind, const char *tag)
{
    struct pl_utility *u = ARENA_NEW(c->a, struct pl_utility);
    c->plan->pub.kind = kind;
    c->plan->pub.tag = tag;
    c->plan->pub.utility = u;
    c->plan->pattern_id = PATTERN_SESSION;
    return u;
}

static const char *own(struct pl__compile *c, const char *s)
{
    return s == NULL ? NULL : arena_strdup(c->a, bytes_str(s));
}

/* -- transactions ------------------------------------------------------------------------------ */

static bool as_bool(const struct ast_node *n)
{
    if (n == NULL)
        return true;
    if (n->kind == AST_INT || n->kind == AST_BOOL_CONST)
        return n->ival != 0;
    return n->text != NULL && (strcmp(n->text, "true") == 0 || strcmp(n->text, "on") == 0 ||
                               strcmp(n->text, "1") == 0);
}

static void transaction_options(struct pl__compile *c, const struct ast_stmt *s,
                                struct pl_utility *u)
{
    u->read_only = -1;
    for (unsigned i = 0; i < s->option_count; i++) {
        const struct ast_option *o = &s->options[i];
        if (strcmp(o->name, "transaction_isolation") == 0 && o->value != NULL)
            u->isolation = own(c, o->value->text);
        else if (strcmp(o->name, "transaction_read_only") == 0)
            u->read_only = as_bool(o->value);
        /* DEFERRABLE changes nothing here: a snapshot never waits. */
    }
}

static status transaction(struct pl__compile *c, const struct ast_stmt *s)
{
    struct pl_utility *u;
    switch (s->transaction) {
    case TRANSACTION_BEGIN: u = start(c, PL_BEGIN, "BEGIN"); break;
    case TRANSACTION_START:
        u = start(c, PL_BEGIN, "START TRANSACTION");
        u->is_start = true;
        break;
    case TRANSACTION_COMMIT: u = start(c, PL_COMMIT, "COMMIT"); break;
    case TRANSACTION_ROLLBACK: u = start(c, PL_ROLLBACK, "ROLLBACK"); break;
    case TRANSACTION_SAVEPOINT: u = start(c, PL_SAVEPOINT, "SAVEPOINT"); break;
    case TRANSACTION_RELEASE: u = start(c, PL_RELEASE, "RELEASE"); break;
    case TRANSACTION_ROLLBACK_TO: u = start(c, PL_ROLLBACK_TO, "ROLLBACK"); break;
    case TRANSACTION_TWO_PHASE:
    default:
        return pl__error(c, s->at, ST_UNSUPPORTED, NULL, "prepared transactions are not supported");
    }
    transaction_options(c, s, u);
    u->name = own(c, s->name);
    u->chain = s->chain;
    c->plan->pattern_id = PATTERN_TRANSACTION;
    return ST_OK;
}

/* -- settings ---------------------------------------------------------------------------------- */

/* SET TIME ZONE INTERVAL '+02:00' HOUR TO MINUTE */
static status zone_of_interval(struct pl__compile *c, const struct ast_node *n, struct obuf *out)
{
    int64_t us;
    ST_TRY(pl__interval_from_text(bytes_str(n->left->text), &us, c->err));
    const struct pl_zone *z = pl_zone_fixed((int32_t)(us / 1000000));
    const char *name = z == NULL ? "UTC" : pl_zone_name(z);
    obuf_put(out, name, strlen(name));
    return ST_OK;
}

/* QUOTED: in double quotes unless it is a plain identifier. */
static void put_name(struct obuf *out, const char *s, bool quoted)
{
    size_t n = strlen(s);
    bool plain = n > 0 && strspn(s, "abcdefghijklmnopqrstuvwxyz_0123456789") == n &&
                 !isdigit((unsigned char)s[0]);
    if (!quoted || plain) {
        obuf_put(out, s, n);
        return;
    }
    obuf_u8(out, '"');
    for (; *s != '\0'; s++) {
        if (*s == '"')
            obuf_u8(out, '"');
        obuf_u8(out, (uint8_t)*s);
    }
    obuf_u8(out, '"');
}

static status setting_piece(struct pl__compile *c, const struct ast_node *n, bool quoted,
                            struct obuf *out)
{
    char number[32];
    switch ((int)n->kind) {
    case AST_INT:
        snprintf(number, sizeof(number), "%" PRId64, n->ival);
        obuf_put(out, number, strlen(number));
        return ST_OK;
    case AST_NUMBER: obuf_put(out, n->text, strlen(n->text)); return ST_OK;
    case AST_STRING: put_name(out, n->text, quoted); return ST_OK;
    case AST_BOOL_CONST: obuf_put(out, n->ival ? "true" : "false", n->ival ? 4 : 5); return ST_OK;
    case AST_CAST:
        if (n->left != NULL && n->left->kind == AST_STRING)
            return zone_of_interval(c, n, out);
        break;
    default: break;
    }
    return pl__error(c, n->at, ST_SYNTAX, NULL, "a setting takes constants");
}

static status setting(struct pl__compile *c, const struct ast_stmt *s)
{
    struct pl_utility *u =
        start(c, s->set == SET_RESET || s->set == SET_RESET_ALL ? PL_RESET : PL_SET,
              s->set == SET_RESET || s->set == SET_RESET_ALL ? "RESET" : "SET");
    u->name = own(c, s->name);
    u->local = s->local;
    u->read_only = -1;
    if (s->set == SET_MULTI) {
        u->transaction = true;
        u->characteristics = strcmp(s->name, "SESSION CHARACTERISTICS") == 0;
        if (!u->characteristics && strcmp(s->name, "TRANSACTION") != 0)
            return pl__error(c, s->at, ST_UNSUPPORTED, NULL, "SET %s is not supported", s->name);
        transaction_options(c, s, u);
        return ST_OK;
    }
    if (s->set == SET_CURRENT)
        return pl__error(c, s->at, ST_UNSUPPORTED, NULL, "SET … FROM CURRENT is not supported");
    if (s->set != SET_VALUE)
        return ST_OK; /* DEFAULT and RESET: value NULL */
    struct obuf o;
    obuf_init(&o);
    status st = ST_OK;
    for (unsigned i = 0; i < s->arg_count && st == ST_OK; i++) {
        if (i > 0)
            obuf_put(&o, ", ", 2);
        st = setting_piece(c, s->args[i], strcmp(s->name, "search_path") == 0, &o);
    }
    u->value = arena_strdup(c->a, bytes_make(o.data, o.size));
    obuf_fini(&o);
    return st;
}

static void text_columns(struct pl__compile *c, const char *const *names, unsigned count)
{
    struct pl_column *columns = ARENA_ARRAY(c->a, struct pl_column, count);
    for (unsigned i = 0; i < count; i++)
        columns[i] = (struct pl_column){
            .name = names[i], .oid = OID_TEXT, .typmod = -1, .source = (int)i, .type = KV_TEXT};
    c->plan->pub.columns = columns;
    c->plan->pub.column_count = count;
    c->plan->pub.returns_rows = true;
}

static status show(struct pl__compile *c, const struct ast_stmt *s)
{
    static const char *const all[] = {"name", "setting", "description"};
    static const char *const spelled[][2] = {
        {"datestyle", "DateStyle"}, {"timezone", "TimeZone"}, {"intervalstyle", "IntervalStyle"}};
    struct pl_utility *u = start(c, PL_SHOW, "SHOW");
    if (s->name == NULL || strcmp(s->name, "all") == 0) {
        text_columns(c, all, 3);
        return ST_OK;
    }
    const char *name = own(c, s->name);
    u->name = name;
    for (size_t i = 0; i < ARRAY_LEN(spelled); i++) {
        if (strcmp(name, spelled[i][0]) == 0)
            name = spelled[i][1];
    }
    text_columns(c, (const char *const[]){name}, 1);
    return ST_OK;
}

/* -- inner statements -------------------------------------------------------------------------- */

/* Token by token from *AT; false at the end. */
static bool next(const struct pl__compile *c, size_t *at, struct pl_token *t)
{
    return pl_token_next(c->text, at, t, NULL) == ST_OK && t->kind != PL_TOKEN_END &&
           t->kind != PL_TOKEN_BAD;
}

static bool is_open(const struct pl__compile *c, const struct pl_token *t)
{
    return t->kind == PL_TOKEN_PUNCT && c->text.data[t->at] == '(';
}

/* Behind the parenthesis that closes the one at T. */
static void skip_group(const struct pl__compile *c, size_t *at, struct pl_token *t)
{
    unsigned depth = 1;
    while (depth > 0 && next(c, at, t)) {
        if (t->kind != PL_TOKEN_PUNCT)
            continue;
        depth += c->text.data[t->at] == '(';
        depth -= c->text.data[t->at] == ')';
    }
}

/* The text from FROM to END without blanks around it and a semicolon behind. */
static void inner_text(struct pl__compile *c, struct pl_utility *u, size_t from, size_t end)
{
    while (end > from && (isspace(c->text.data[end - 1]) || c->text.data[end - 1] == ';'))
        end--;
    while (from < end && isspace(c->text.data[from]))
        from++;
    u->text = arena_strdup(c->a, bytes_make(c->text.data + from, end - from));
    u->text_at = pl__position(c->text, (int)from) - 1;
}

/* Behind the first word WORD outside of parentheses, from *AT on. */
static bool behind_word(const struct pl__compile *c, size_t *at, const char *word)
{
    struct pl_token t;
    while (next(c, at, &t)) {
        if (is_open(c, &t))
            skip_group(c, at, &t);
        else if (t.kind == PL_TOKEN_WORD && pl_token_is(c->text, &t, word))
            return true;
    }
    return false;
}

/* Compiles the inner statement for its errors and parameter types; what it makes is thrown away. */
static status check_inner(struct pl__compile *c, const struct ast_stmt *s,
                          const struct pl_utility *u)
{
    struct pl__plan scratch = {.pattern_id = PATTERN_NONE};
    struct pl__compile inner = *c;
    inner.scan = NULL;
    inner.stmt = s;
    inner.plan = &scratch;
    inner.text_before = u->text_at;
    status st = pl__compile_query(&inner, s, bytes_str(u->text));
    c->param_count = inner.param_count;
    pl_catalog_query_free(scratch.catalog);
    return st;
}

static status prepare(struct pl__compile *c, const struct ast_stmt *s)
{
    struct pl_utility *u = start(c, PL_PREPARE, "PREPARE");
    size_t at = (size_t)s->at;
    u->name = own(c, s->name);
    uint32_t *types = ARENA_ARRAY(c->a, uint32_t, s->type_count + 1);
    for (unsigned i = 0; i < s->type_count; i++) {
        int32_t typmod;
        ST_TRY(pl__type_name(c, s->types[i], &types[i], &typmod));
    }
    u->types = types;
    u->type_count = s->type_count;
    if (!behind_word(c, &at, "as"))
        return pl__error(c, s->at, ST_SYNTAX, NULL, "syntax error");
    inner_text(c, u, at, c->text.size);
    return ST_OK;
}

static status execute(struct pl__compile *c, const struct ast_stmt *s)
{
    struct pl_utility *u = start(c, PL_EXECUTE, "EXECUTE");
    struct pl_value *args = ARENA_ARRAY(c->a, struct pl_value, s->arg_count + 1);
    unsigned *at = ARENA_ARRAY(c->a, unsigned, s->arg_count + 1);
    u->name = own(c, s->name);
    u->args_at = at;
    c->fixed = true;
    for (unsigned i = 0; i < s->arg_count; i++) {
        const struct pl__expr *e;
        ST_TRY(pl__expr_of(c, s->args[i], 0, PATTERN_SESSION, &e));
        int32_t typmod = e->typmod;
        const struct ast_node *first = s->args[i];
        while (first->kind == AST_CAST && first->left != NULL)
            first = first->left;
        at[i] = pl__position(c->text, first->at);
        uint32_t oid = e->oid;
        if (e->kind == EXPR_CAST && e->args[0]->kind == EXPR_CONST)
            ST_TRY(pl_value_convert(&e->args[0]->value, oid, typmod, true, NULL, 0, c->a, &args[i],
                                    c->err));
        else if (e->kind == EXPR_CONST)
            args[i] = e->value;
        else
            return pl__error(c, s->args[i]->at, ST_UNSUPPORTED, NULL, "EXECUTE takes constants");
    }
    u->args = args;
    u->arg_count = s->arg_count;
    return ST_OK;
}

static status declare(struct pl__compile *c, const struct ast_stmt *s)
{
    struct pl_utility *u = start(c, PL_DECLARE, "DECLARE CURSOR");
    size_t at = (size_t)s->at;
    u->name = own(c, s->name);
    u->scroll = (s->cursor_options & CURSOR_SCROLL) != 0;
    u->hold = (s->cursor_options & CURSOR_HOLD) != 0;
    if (s->query == NULL || s->query->kind != STMT_SELECT || !behind_word(c, &at, "cursor") ||
        !behind_word(c, &at, "for"))
        return pl__error(c, s->at, ST_UNSUPPORTED, NULL, "a cursor is over a SELECT");
    inner_text(c, u, at, c->text.size);
    return check_inner(c, s->query, u);
}

static status explain(struct pl__compile *c, const struct ast_stmt *s)
{
    static const char *const heading[] = {"QUERY PLAN"};
    struct pl_utility *u = start(c, PL_EXPLAIN, "EXPLAIN");
    size_t at = (size_t)s->at, from;
    struct pl_token t;
    for (unsigned i = 0; i < s->option_count; i++) {
        const struct ast_option *o = &s->options[i];
        if (strcmp(o->name, "analyze") == 0)
            u->analyze = as_bool(o->value);
        else if (strcmp(o->name, "verbose") == 0)
            u->verbose = as_bool(o->value);
        else if (strcmp(o->name, "format") == 0 && (o->value == NULL || o->value->text == NULL ||
                                                    strcmp(o->value->text, "text") != 0))
            return pl__error(c, o->at, ST_UNSUPPORTED, NULL, "EXPLAIN gives text only");
        else if (strcmp(o->name, "costs") != 0 && strcmp(o->name, "buffers") != 0 &&
                 strcmp(o->name, "timing") != 0 && strcmp(o->name, "summary") != 0 &&
                 strcmp(o->name, "wal") != 0 && strcmp(o->name, "settings") != 0 &&
                 strcmp(o->name, "format") != 0)
            return pl__error(c, o->at, ST_SYNTAX, NULL, "unrecognized EXPLAIN option \"%s\"",
                             o->name);
    }
    text_columns(c, heading, 1);
    next(c, &at, &t); /* EXPLAIN */
    do {
        from = at;
        if (!next(c, &at, &t))
            break;
        if (is_open(c, &t)) {
            size_t inside = at;
            struct pl_token first;
            if (!next(c, &inside, &first) || pl_token_is(c->text, &first, "select") ||
                pl_token_is(c->text, &first, "values") || is_open(c, &first))
                break; /* the statement itself is in parentheses */
            skip_group(c, &at, &t);
            from = at;
            next(c, &at, &t);
            break;
        }
    } while (pl_token_is(c->text, &t, "analyze") || pl_token_is(c->text, &t, "analyse") ||
             pl_token_is(c->text, &t, "verbose"));
    inner_text(c, u, from, c->text.size);
    if (ast_is_query(s->query))
        return check_inner(c, s->query, u);
    if (s->query->kind == STMT_EXECUTE)
        return ST_OK;
    return pl__error(c, s->at, ST_UNSUPPORTED, NULL,
                     "EXPLAIN explains SELECT, INSERT, UPDATE, DELETE and EXECUTE");
}

static status fetch(struct pl__compile *c, const struct ast_stmt *s)
{
    struct pl_utility *u = start(c, PL_FETCH, s->is_move ? "MOVE" : "FETCH");
    u->name = own(c, s->name);
    u->is_move = s->is_move;
    u->count = s->count;
    u->backward = s->direction == FETCH_IS_BACKWARD;
    if (s->direction == FETCH_IS_FORWARD && s->count < 0) {
        u->backward = true;
        u->count = s->count == INT64_MIN ? INT64_MAX : -s->count;
    }
    if (s->direction == FETCH_IS_ABSOLUTE || s->direction == FETCH_IS_RELATIVE)
        return pl__error(c, s->at, ST_UNSUPPORTED, NULL,
                         "FETCH goes forward or backward by a number of rows");
    return ST_OK;
}

static status discard(struct pl__compile *c, const struct ast_stmt *s)
{
    static const char *const tags[] = {"DISCARD ALL", "DISCARD PLANS", "DISCARD SEQUENCES",
                                       "DISCARD TEMP"};
    struct pl_utility *u = start(c, PL_DISCARD, tags[s->count & 3]);
    u->count = s->count;
    return ST_OK;
}

static status named(struct pl__compile *c, const struct ast_stmt *s, enum pl_kind kind,
                    const char *tag)
{
    struct pl_utility *u = start(c, kind, tag);
    u->name = own(c, s->name);
    u->value = own(c, s->payload);
    return ST_OK;
}

/* What a person needs to know who has tried WORDS; nothing where nothing fits. */
static void say_why(struct err *err, const char *words)
{
    static const char roles[] = "Roles have names, passwords and attributes, and privileges on a "
                                "database; they do not belong to other roles.";
    static const char databases[] = "The databases are metadb and postgres.";
    static const char definitions[] = "The tables of metadb are fixed.";
    static const char upkeep[] = "Nothing has to be maintained by statements.";
    static const struct {
        const char *first, *why;
    } list[] = {
        {"GRANT", roles},
        {"REVOKE", roles},
        {"ALTER ROLE", roles},
        {"ALTER USER", roles},
        {"CREATE DATABASE", databases},
        {"DROP DATABASE", databases},
        {"ALTER DATABASE", databases},
        {"CREATE", definitions},
        {"ALTER", definitions},
        {"DROP", definitions},
        {"TRUNCATE", definitions},
        {"COMMENT", definitions},
        {"VACUUM", upkeep},
        {"ANALYZE", upkeep},
        {"CLUSTER", upkeep},
        {"REINDEX", upkeep},
        {"CHECKPOINT", "Every commit is durable before it is answered."},
        {"LOCK", "Nothing waits for locks; a row that FOR UPDATE reads counts as written."},
        {"DO", "There are no procedural languages."},
        {"CALL", "There are no procedures."},
    };
    for (unsigned i = 0; i < ARRAY_LEN(list); i++) {
        size_t n = strlen(list[i].first);
        if (strncmp(words, list[i].first, n) == 0 && (words[n] == '\0' || words[n] == ' ')) {
            err_detail(err, "%s", list[i].why);
            return;
        }
    }
}

/* CREATE DATABASE, VACUUM, …: named by the first words of the text. */
status pl__unsupported(struct pl__compile *c, const struct ast_stmt *s)
{
    char words[64];
    size_t at = s->at < 0 ? 0 : (size_t)s->at, n = 0;
    struct pl_token t;
    bool more = true; /* CREATE, ALTER, DROP and SET take the next word along */
    for (unsigned i = 0; i < 2 && more && next(c, &at, &t) && t.kind == PL_TOKEN_WORD; i++) {
        if (n + t.size + 2 > sizeof(words))
            break;
        if (i > 0)
            words[n++] = ' ';
        for (uint32_t k = 0; k < t.size; k++)
            words[n++] = (char)toupper(c->text.data[t.at + k]);
        more = pl_token_is(c->text, &t, "create") || pl_token_is(c->text, &t, "set") ||
               pl_token_is(c->text, &t, "alter") || pl_token_is(c->text, &t, "drop");
    }
    words[n] = '\0';
    pl__error(c, -1, ST_UNSUPPORTED, NULL, "%s is not supported",
              n == 0 ? "this statement" : words);
    say_why(c->err, words);
    err_hint(c->err, "SELECT * FROM metadb.patterns");
    return ST_UNSUPPORTED;
}

status pl__compile_session(struct pl__compile *c, const struct ast_stmt *s)
{
    switch (s->kind) {
    case STMT_TRANSACTION: return transaction(c, s);
    case STMT_SET: return setting(c, s);
    case STMT_SHOW: return show(c, s);
    case STMT_DISCARD: return discard(c, s);
    case STMT_PREPARE: return prepare(c, s);
    case STMT_EXECUTE: return execute(c, s);
    case STMT_DEALLOCATE:
        return named(c, s, PL_DEALLOCATE, s->name == NULL ? "DEALLOCATE ALL" : "DEALLOCATE");
    case STMT_DECLARE: return declare(c, s);
    case STMT_FETCH: return fetch(c, s);
    case STMT_CLOSE:
        return named(c, s, PL_CLOSE, s->name == NULL ? "CLOSE CURSOR ALL" : "CLOSE CURSOR");
    case STMT_LISTEN: return named(c, s, PL_LISTEN, "LISTEN");
    case STMT_UNLISTEN: return named(c, s, PL_UNLISTEN, "UNLISTEN");
    case STMT_NOTIFY: return named(c, s, PL_NOTIFY, "NOTIFY");
    case STMT_EXPLAIN: return explain(c, s);
    case STMT_COPY: return pl__compile_copy(c, s);
    case STMT_ROLE: return pl__compile_role(c, s);
    case STMT_OTHER:
    case STMT_SELECT:
    case STMT_INSERT:
    case STMT_UPDATE:
    case STMT_DELETE: break;
    }
    return pl__unsupported(c, s);
}
