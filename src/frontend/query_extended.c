/*
 * frontend/query_extended.c — Parse, Bind, Describe, Execute, Close, Sync.
 *
 * Between two Syncs everything is one implicit transaction. Opening one for every write would make
 * the usual Parse/Bind/Execute/Sync dearer than it must be, so an Execute of a write looks at the
 * message behind it: Sync — it commits by itself, as one command; nothing there yet — it is put off
 * until something is (no answer is owed before Sync or Flush); anything else — the transaction is
 * opened, and committed at Sync. With more behind the Sync it is started ahead (ahead.c), and what
 * follows is handled before its answer is there.
 *
 * Invariants
 *   E1  Every handler here either answers, or fails and leaves mode SKIP, or waits and does so
 *       later.
 */
#include "base/assert.h"
#include "frontend/ahead.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static void finish(struct fe_session *s, status st)
{
    if (st != ST_OK)
        fe_fail(s);
    else
        fe_message_done(s);
}

/* -- Parse ------------------------------------------------------------------------------------- */

/* What is wrong with the text itself is said now, although it is found out by binding. */
static status check_text(struct fe_session *s, struct fe_statement *target)
{
    struct err *err = &s->work->err;
    const struct pl_plan *plan = target->stmt.plan;
    if (plan == NULL)
        return ST_OK;
    if (plan->kind == PL_SHOW && plan->utility->name != NULL &&
        fe_settings_get(&s->settings, plan->utility->name) == NULL)
        return err_set_state(err, ST_NOT_FOUND, "42704",
                             "unrecognized configuration parameter \"%s\"", plan->utility->name);
    target->constant = plan->kind == PL_VALUES && memchr(s->work->run.inner_text.data, '(',
                                                         s->work->run.inner_text.size) == NULL;
    bool plain = plan->kind == PL_READ || plan->kind == PL_WRITE || target->constant;
    if (!plain || plan->param_count > 0)
        return ST_OK;
    struct fe_portal *p = fe_portal_new(s, target);
    status st = fe_portal_bind(s, p);
    fe_portal_unref(s, p);
    /* Where it is in the text is said of literals only; what they become is seen when it runs. */
    bool value = strncmp(err->sqlstate, "22", 2) == 0 && err->position > 0;
    if (st == ST_OK || value || strncmp(err->sqlstate, "42", 2) == 0)
        return st;
    err_clear(err);
    return ST_OK;
}

static bool is_copy(bytes text)
{
    return text.size > 4 && strncasecmp((const char *)text.data, "copy", 4) == 0;
}

/* Ends a Parse; the statement is in run.inner meanwhile, its name in its own memory. */
static status parsed(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    struct fe_statement *target = w->run.inner;
    w->run.inner = NULL;
    const char *name = target->name;
    target->name = NULL;
    const struct pl_plan *plan = target->stmt.plan;
    if (st == ST_OK)
        st = check_text(s, target);
    if (st != ST_OK)
        fe_error_of_piece(&w->err, w->run.inner_whole, w->run.inner_text);
    else if (target->stmt.plan != NULL) {
        fe_txn_query(s, target->stmt.plan->kind, true);
        target->lends_rows =
            target->stmt.plan->kind == PL_EXECUTE && fe_statement_shape(s, target).rows;
    }
    bool refused =
        s->txn == FE_TXN_FAILED && (st == ST_OK ? plan == NULL || !fe_is_txn_exit(plan->kind)
                                                : strcmp(w->err.sqlstate, "42601") != 0);
    if (st != ST_OK && !refused && is_copy(w->run.inner_text) && !fe_is_grammar_error(&w->err)) {
        /* PostgreSQL looks into COPY when it runs. */
        target->late = arena_alloc(&target->arena, sizeof *target->late);
        *target->late = w->err;
        err_clear(&w->err);
        st = ST_OK;
    }
    if (refused && !(st == ST_OK && (plan == NULL || plan->kind == PL_EMPTY)))
        st = fe_txn_refuse(s);
    if (st == ST_OK)
        st = fe_statement_name(s, target, name);
    fe_statement_unref(s, target);
    if (st == ST_OK)
        fe_put_empty(fe_out(s), '1');
    return st;
}

static void parse_waited(struct fe_session *s, status st)
{
    finish(s, parsed(s, st));
}

/* One statement at most; several are for Query messages. */
static status only_piece(struct fe_session *s, struct arena *a, bytes text, bytes *out)
{
    struct err *err = &s->work->err;
    bytes *pieces;
    unsigned count;
    ST_TRY(pl_split(text, a, &pieces, &count, err));
    /* Several: the planner refuses them, once the grammar has taken them all. */
    *out = count == 0 ? BYTES_EMPTY : count > 1 ? text : pieces[0];
    return ST_OK;
}

static status parse(struct fe_session *s, bytes body)
{
    struct fe_work *w = s->work;
    struct fe_msg_parse m;
    const char *name;
    ST_TRY(fe_decode_parse(body, &m, &w->err));
    if (m.name.size == 0)
        fe_statement_drop(s, "");
    struct fe_statement *target = fe_statement_new(s);
    struct arena *a = &target->arena;
    w->run.inner = target;
    ST_TRY(fe_name(s, m.name, a, &name));
    if (!s->settings.sql_ascii)
        ST_TRY(fe_utf8_check(m.text, &w->err));
    bytes text, copy = bytes_make(arena_strdup(a, m.text), m.text.size);
    ST_TRY(only_piece(s, a, copy, &text));
    uint32_t *types = arena_alloc(a, sizeof(uint32_t) * (m.types.count + 1));
    for (unsigned i = 0; i < m.types.count; i++)
        types[i] = fe_oid_at(m.types, i);
    target->name = name;
    target->text = text;
    w->run.inner_whole = copy;
    w->run.inner_text = text;
    if (text.size == 0)
        return parsed(s, ST_OK);
    status st = fe_plan(s, target, text, types, m.types.count, parse_waited);
    return st == ST_PENDING ? st : parsed(s, st);
}

void fe_extended_parse(struct fe_session *s, bytes body)
{
    status st = parse(s, body);
    if (st == ST_PENDING)
        return;
    if (s->work->run.inner != NULL) {
        s->work->run.inner->name = NULL;
        fe_statement_unref(s, s->work->run.inner);
        s->work->run.inner = NULL;
    }
    finish(s, st);
}

/* -- Bind -------------------------------------------------------------------------------------- */

static status read_formats(struct fe_session *s, struct fe_portal *p, struct fe_numbers in)
{
    struct err *err = &s->work->err;
    struct fe_shape shape = fe_statement_shape(s, p->statement);
    if (shape.rows && in.count > 1 && in.count != shape.count)
        return err_set(err, ST_PROTOCOL,
                       "bind message has %u result formats but query has %u columns", in.count,
                       shape.count);
    int16_t *formats = arena_alloc(&p->arena, sizeof(int16_t) * (in.count + 1));
    for (unsigned i = 0; i < in.count; i++)
        formats[i] = fe_int16_at(in, i);
    p->formats = formats;
    p->format_count = in.count;
    return ST_OK;
}

static bool is_text(uint32_t oid)
{
    return oid == OID_TEXT || oid == OID_VARCHAR || oid == OID_BPCHAR || oid == OID_NAME ||
           oid == OID_UNKNOWN;
}

static status read_param(struct fe_session *s, struct fe_portal *p, uint32_t oid, int16_t format,
                         bool null, bytes in, struct pl_value *out)
{
    struct err *err = &s->work->err;
    *out = (struct pl_value){.oid = oid, .null = true};
    if (format != 0 && format != 1)
        return err_set(err, ST_INVALID, "unsupported format code: %d", format);
    if (null)
        return ST_OK;
    if (format == 1 && is_text(oid) && !s->settings.sql_ascii)
        ST_TRY(fe_utf8_check(in, err));
    if (format == 1)
        return pl_value_from_binary(oid, in, &p->arena, out, err);
    if (!s->settings.sql_ascii)
        ST_TRY(fe_utf8_check(in, err));
    return pl_value_from_text(oid, in, &s->settings.style, fe_now(s), &p->arena, out, err);
}

/* CONTEXT of a bad parameter. PostgreSQL leaves out what a text was, but not that there was one. */
static void say_which(struct fe_session *s, const char *portal, unsigned i, bool text, bytes in)
{
    struct fe_work *w = s->work;
    const char *value = "";
    if (text && strcmp(w->err.sqlstate, "22021") != 0)
        value = in.size > 0 ? " = '...'" : " = ''";
    if (portal[0] == '\0')
        snprintf(w->context, sizeof w->context, "unnamed portal parameter $%u%s", i + 1, value);
    else
        snprintf(w->context, sizeof w->context, "portal \"%s\" parameter $%u%s", portal, i + 1,
                 value);
}

static unsigned param_count(const struct fe_statement *st)
{
    return st->stmt.plan != NULL ? st->stmt.plan->param_count : 0;
}

static status check_counts(struct fe_session *s, const struct fe_statement *st,
                           const struct fe_msg_bind *m)
{
    struct err *err = &s->work->err;
    if (m->param_formats.count > 1 && m->param_formats.count != m->params.count)
        return err_set(err, ST_PROTOCOL, "bind message has %u parameter formats but %u parameters",
                       m->param_formats.count, m->params.count);
    if (m->params.count != param_count(st))
        return err_set(
            err, ST_PROTOCOL,
            "bind message supplies %u parameters, but prepared statement \"%s\" requires %u",
            m->params.count, st->name != NULL ? st->name : "", param_count(st));
    return ST_OK;
}

static status read_params(struct fe_session *s, struct fe_portal *p, const char *portal,
                          const struct fe_msg_bind *m)
{
    const struct pl_plan *plan = p->statement->stmt.plan;
    unsigned count = param_count(p->statement);
    struct pl_value *params = arena_alloc(&p->arena, sizeof(struct pl_value) * (count + 1));
    p->params = params;
    p->param_count = count;
    struct fe_values left = {.raw = arena_copy(&p->arena, m->params.raw), .count = count};
    for (unsigned i = 0; i < count; i++) {
        bytes in = BYTES_EMPTY;
        bool null = !fe_values_take(&left, &in);
        unsigned formats = m->param_formats.count;
        int16_t format = formats == 0 ? 0 : fe_int16_at(m->param_formats, formats == 1 ? 0 : i);
        status st = read_param(s, p, plan->param_types[i], format, null, in, &params[i]);
        if (st != ST_OK && strcmp(s->work->err.sqlstate, "22P03") == 0)
            err_set_state(&s->work->err, st, "22P03",
                          "incorrect binary data format in bind parameter %u", i + 1);
        if (st != ST_OK) {
            say_which(s, portal, i, format == 0 && !null, in);
            return st;
        }
    }
    return ST_OK;
}

static status bound_statement(struct fe_session *s, bytes wire, struct fe_statement **out)
{
    struct fe_work *w = s->work;
    const char *name;
    ST_TRY(fe_name(s, wire, &w->arena, &name));
    struct fe_statement *st = *out = fe_statement_find(s, name);
    if (st == NULL && name[0] == '\0')
        return err_set_state(&w->err, ST_NOT_FOUND, "26000",
                             "unnamed prepared statement does not exist");
    if (st == NULL)
        return err_set_state(&w->err, ST_NOT_FOUND, "26000",
                             "prepared statement \"%s\" does not exist", name);
    return ST_OK;
}

static status bind_portal(struct fe_session *s, struct fe_statement *st,
                          const struct fe_msg_bind *m)
{
    const char *portal_name;
    ST_TRY(fe_name(s, m->portal, &s->work->arena, &portal_name));
    ST_TRY(check_counts(s, st, m));
    bool exit = st->stmt.plan != NULL && fe_is_txn_exit(st->stmt.plan->kind);
    if (s->txn == FE_TXN_FAILED && !exit)
        return fe_txn_refuse(s);
    if (portal_name[0] != '\0')
        ST_TRY(fe_portal_absent(s, portal_name));
    struct fe_portal *p = fe_portal_new(s, st);
    status result = read_params(s, p, portal_name, m);
    if (result == ST_OK && st->constant)
        result = fe_portal_bind(s, p);
    if (result == ST_OK && fe_read_only(s) && st->stmt.plan != NULL &&
        st->stmt.plan->kind == PL_READ)
        result = fe_refuse_locking(s, p);
    if (result == ST_OK)
        result = read_formats(s, p, m->result_formats);
    /* In a block it is there, for what that is worth in a failed one, even if this has failed. */
    if (result == ST_OK)
        result = fe_portal_name(s, p, portal_name);
    else if (s->txn == FE_TXN_BLOCK && s->portal_count < FE_PORTALS_MAX) {
        status named = fe_portal_name(s, p, portal_name);
        ASSERT(named == ST_OK);
    }
    fe_portal_unref(s, p);
    return result;
}

void fe_extended_bind(struct fe_session *s, bytes body)
{
    struct fe_msg_bind m;
    struct err *err = &s->work->err;
    struct fe_statement *statement = NULL;
    status st = fe_decode_bind_names(body, &m, err);
    if (st == ST_OK)
        st = bound_statement(s, m.statement, &statement);
    if (st == ST_OK)
        st = fe_decode_bind(body, &m, err);
    if (st == ST_OK)
        st = bind_portal(s, statement, &m);
    if (st == ST_OK)
        fe_put_empty(fe_out(s), '2');
    finish(s, st);
}

/* -- Describe, Close --------------------------------------------------------------------------- */

static status bad_kind(struct fe_session *s, const char *message, uint8_t kind)
{
    return err_set(&s->work->err, ST_PROTOCOL, "invalid %s message subtype %u", message, kind);
}

/* An EXECUTE whose rows were promised, and whose statement is gone. */
static status check_lender(struct fe_session *s, const struct fe_statement *st)
{
    const char *name = st->lends_rows ? st->stmt.plan->utility->name : NULL;
    if (name == NULL || fe_statement_find(s, name) != NULL)
        return ST_OK;
    return err_set_state(&s->work->err, ST_NOT_FOUND, "26000",
                         "prepared statement \"%s\" does not exist", name);
}

static status describe_statement(struct fe_session *s, const char *name)
{
    const struct fe_statement *st = fe_statement_find(s, name);
    if (st == NULL && name[0] == '\0')
        return err_set_state(&s->work->err, ST_NOT_FOUND, "26000",
                             "unnamed prepared statement does not exist");
    if (st == NULL)
        return err_set_state(&s->work->err, ST_NOT_FOUND, "26000",
                             "prepared statement \"%s\" does not exist", name);
    struct fe_shape shape = fe_statement_shape(s, st);
    if (s->txn == FE_TXN_FAILED && (shape.rows || st->lends_rows))
        return fe_txn_refuse(s);
    fe_put_parameter_description(fe_out(s), st->stmt.plan);
    ST_TRY(check_lender(s, st));
    fe_put_row_description(fe_out(s), shape, NULL, 0);
    return ST_OK;
}

static status no_portal(struct fe_session *s, const char *name)
{
    return err_set_state(&s->work->err, ST_NOT_FOUND, "34000", "portal \"%s\" does not exist",
                         name);
}

static status describe_portal(struct fe_session *s, const char *name)
{
    const struct fe_portal *p = fe_portal_find(s, name);
    if (p == NULL)
        return no_portal(s, name);
    struct fe_shape shape = fe_statement_shape(s, p->statement);
    if (s->txn == FE_TXN_FAILED && (shape.rows || p->statement->lends_rows))
        return fe_txn_refuse(s);
    ST_TRY(check_lender(s, p->statement));
    fe_put_row_description(fe_out(s), shape, p->formats, p->format_count);
    return ST_OK;
}

static status describe(struct fe_session *s, bytes body)
{
    struct fe_msg_describe m;
    const char *name;
    ST_TRY(fe_decode_describe(body, &m, &s->work->err));
    ST_TRY(fe_name(s, m.name, &s->work->arena, &name));
    if (m.kind == 'S')
        return describe_statement(s, name);
    return m.kind == 'P' ? describe_portal(s, name) : bad_kind(s, "DESCRIBE", m.kind);
}

void fe_extended_describe(struct fe_session *s, bytes body)
{
    finish(s, describe(s, body));
}

static status close_name(struct fe_session *s, bytes body)
{
    struct fe_msg_close m;
    const char *name;
    ST_TRY(fe_decode_close(body, &m, &s->work->err));
    ST_TRY(fe_name(s, m.name, &s->work->arena, &name));
    if (m.kind == 'S')
        fe_statement_drop(s, name);
    else if (m.kind == 'P')
        fe_portal_drop(s, name);
    else
        return bad_kind(s, "CLOSE", m.kind);
    fe_put_empty(fe_out(s), '3');
    return ST_OK;
}

void fe_extended_close(struct fe_session *s, bytes body)
{
    finish(s, close_name(s, body));
}

/* -- Execute ----------------------------------------------------------------------------------- */

static bool is_of_transaction(enum pl_kind k)
{
    return fe_is_txn_exit(k) || k == PL_BEGIN || k == PL_SAVEPOINT || k == PL_RELEASE;
}

static void executed(struct fe_session *s, status st)
{
    if (st == ST_OK) {
        s->txn_piped |= s->work->pipes;
        const struct fe_run *r = &s->work->run;
        struct obuf *o = fe_out(s);
        if (r->empty)
            fe_put_empty(o, 'I');
        else if (r->suspended)
            fe_put_empty(o, 's');
        else
            fe_put_tag(o, r->tag);
    }
    finish(s, st);
}

/* May it change data? */
static bool writes(const struct fe_session *s, const struct fe_portal *p)
{
    UNUSED(s);
    const struct pl_plan *plan = p->statement->stmt.plan;
    if (plan == NULL || p->started)
        return false;
    return plan->kind == PL_WRITE || plan->kind == PL_COPY_IN || plan->kind == PL_EXECUTE ||
           (plan->kind == PL_EXPLAIN && plan->utility->analyze);
}

/* The parsed message. FE_DEFERRED: the decision waits for the next one, or what runs waits for the
 * writes that are ahead. */
static status execute(struct fe_session *s, bytes body, enum fe_handled *handled)
{
    struct fe_work *w = s->work;
    struct fe_msg_execute m;
    const char *name;
    ST_TRY(fe_decode_execute(body, &m, &w->err));
    ST_TRY(fe_name(s, m.portal, &w->arena, &name));
    struct fe_portal *p = fe_portal_find(s, name);
    if (p == NULL)
        return no_portal(s, name);
    fe_activity_begin(s, p->statement->text);
    bool writing = s->txn == FE_TXN_IDLE && writes(s, p);
    uint8_t next = writing ? fe_conn_peek(s->conn) : 0;
    if (next == 'S' && fe_ahead_wanted(s, p)) {
        status st = fe_ahead_start(s, p);
        if (st != ST_PENDING)
            return st == ST_OK ? ST_PENDING : st; /* answered when it is done */
    }
    if (s->ahead != NULL) {
        *handled = FE_DEFERRED;
        return ST_PENDING;
    }
    if (writing) {
        bool copy =
            p->statement->stmt.plan->kind == PL_COPY_IN; /* its data may wait for our answer */
        if (next == 0 && !copy) {
            *handled = FE_DEFERRED;
            return ST_PENDING;
        }
        if (next != 'S' && !copy)
            s->txn = FE_TXN_IMPLICIT;
    }
    const struct pl_plan *plan = p->statement->stmt.plan;
    w->pipes = plan != NULL && plan->kind != PL_EMPTY && !is_of_transaction(plan->kind);
    p->refs++;
    status st = fe_run(s, p, m.limit > 0 ? m.limit : INT64_MAX, false, executed);
    fe_portal_unref(s, p);
    return st;
}

enum fe_handled fe_extended_execute(struct fe_session *s, bytes body)
{
    enum fe_handled handled = FE_HANDLED;
    status st = execute(s, body, &handled);
    if (st != ST_PENDING)
        executed(s, st);
    return handled;
}

/* -- Sync -------------------------------------------------------------------------------------- */

static void synced(struct fe_session *s, status st)
{
    if (st != ST_OK) {
        s->work->extended = false; /* this Sync is the one that ends the skipping */
        fe_fail(s);
    }
    fe_ready(s);
}

void fe_extended_sync(struct fe_session *s)
{
    status st = ST_OK;
    (void)fe_work(s);
    if (s->txn == FE_TXN_IMPLICIT || s->txn == FE_TXN_IDLE)
        st = fe_txn_commit(s, synced);
    if (st != ST_PENDING)
        synced(s, st);
}
