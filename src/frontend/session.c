/*
 * frontend/session.c — the session: messages to handlers, waiting, limits of time, planning.
 *
 * Vocabulary: *work* is what exists between a message and its ReadyForQuery; a *cycle* is that
 * span.
 *
 * Waiting. A handler that cannot finish calls fe_wait(next) and returns; the session is busy until
 * fe_resume() calls NEXT from the loop. Handlers copy what they keep of a message: its bytes go
 * when the handler returns.
 *
 * Invariants
 *   S1  While busy no message is handled and exactly one completion is due: of a call (pending), of
 *       the sleep timer, of output that drains, or of the next turn.
 *   S2  A session that left (gone) is freed as soon as neither a call nor the stack holds it.
 *   S3  Every answer to a cycle ends in one ReadyForQuery, or the connection ends.
 *   S4  mode SKIP begins with any ErrorResponse in an extended-protocol message and ends with Sync.
 */
#include "frontend/session.h"
#include "base/assert.h"
#include "base/memory.h"
#include "frontend/ahead.h"
#include "frontend/cancel.h"
#include "frontend/execute.h"
#include "frontend/session_pool.h"
#include <stdio.h>
#include <stdlib.h>

/* -- work -------------------------------------------------------------------------------------- */

struct fe_work *fe_work(struct fe_session *s)
{
    if (s->work != NULL)
        return s->work;
    struct fe_work *w = fe_pool_take_work(s->worker->pool);
    w->session = s;
    s->work = w;
    return w;
}

static void work_release(struct fe_session *s)
{
    struct fe_work *w = s->work;
    if (w == NULL)
        return;
    fe_simple_free(s);
    fe_copy_free(s);
    fe_gathering_free(w->gathering);
    w->gathering = NULL;
    w->warning_count = 0;
    ASSERT(w->next == NULL);
    if (w->planning != NULL) {
        fe_statement_unref(s, w->planning);
        w->planning = NULL;
    }
    arena_reset(&w->arena);
    arena_reset(&w->call_arena);
    obuf_reset(&w->run.scratch);
    obuf_shrink(&w->run.scratch, 64u * 1024u);
    s->work = NULL;
    w->session = NULL;
    w->cancelled = w->timed_out = w->extended = w->pipes = false;
    /* A session that ends while it waits has not been resumed, which would have cleared these. */
    w->stalled = w->yielded = w->sleeping = w->uncertain = false;
    w->context[0] = '\0';
    err_clear(&w->err);
    w->now = 0;
    fe_pool_give_work(s->worker->pool, w);
}

struct obuf *fe_out(struct fe_session *s)
{
    fe_conn_dirty(s->conn);
    return fe_ahead_output(s);
}

static void arm_idle_timer(struct fe_session *s);

/* -- life -------------------------------------------------------------------------------------- */

static char *duplicate(bytes b)
{
    char *p = malloc(b.size + 1);
    ASSERT(p != NULL);
    if (b.size > 0)
        memcpy(p, b.data, b.size);
    p[b.size] = '\0';
    return p;
}

struct fe_session *fe_session_new(struct fe_conn *c, uint32_t ns, bytes user, bytes database)
{
    struct fe_session *s = memory_new(MEMORY_SESSIONS, sizeof *s);
    s->conn = c;
    s->worker = c->worker;
    s->ns = ns;
    s->user = duplicate(user);
    s->database = duplicate(database);
    fe_settings_init(&s->settings);
    s->client = cl_client_new(c->worker->node, c->worker->reactor, ns);
    fe_cancel_key_new(s);
    s->activity.since = fe_clock(s->worker);
    c->session = s;
    return s;
}

static void destroy(struct fe_session *s)
{
    struct fe_conn *c = s->conn;
    ASSERT_INV("S2", !s->pending && !s->pinned);
    ASSERT_INV("W3", s->ahead == NULL);
    if (s->work != NULL)
        s->work->next = NULL;
    if (s->work != NULL && s->work->sleeping) {
        loop_timer_stop(s->work->sleep);
        s->work->sleeping = false;
    }
    if (s->work != NULL && s->work->run.inner != NULL) {
        fe_statement_unref(s, s->work->run.inner);
        s->work->run.inner = NULL;
    }
    if (s->work != NULL && s->work->run.source != NULL)
        fe_portal_unref(s, s->work->run.source);
    if (s->work != NULL && s->work->run.portal != NULL)
        fe_portal_unref(s, s->work->run.portal);
    if (s->work != NULL) {
        obuf_fini(&s->work->run.page.out);
        s->work->run = (struct fe_run){.scratch = s->work->run.scratch};
    }
    work_release(s);
    fe_txn_rollback(s);
    fe_portal_drop_all(s, true, 0);
    fe_statement_drop_all(s);
    fe_statement_drop(s, "");
    fe_notify_free(s);
    fe_activity_free(s);
    fe_cancel_key_free(s);
    cl_client_free(s->client);
    loop_timer_free(s->timer);
    fe_settings_fini(&s->settings);
    memory_free(MEMORY_SESSIONS, s->buckets, s->bucket_count * sizeof *s->buckets);
    free(s->savepoints);
    free((void *)(uintptr_t)s->user);
    free((void *)(uintptr_t)s->database);
    memory_free(MEMORY_SESSIONS, s, sizeof *s);
    c->session = NULL;
    fe_conn_dirty(c);
}

static void release_if_gone(struct fe_session *s)
{
    if (s->gone && !s->pending && !s->pinned && s->ahead == NULL)
        destroy(s);
}

/* Ends soon what the session waits for. */
static void stop_pending(struct fe_session *s)
{
    if (s->work != NULL && s->work->catalog.job != NULL)
        pl_catalog_cancel(&s->work->catalog);
    else
        cl_cancel(s->client);
}

void fe_session_leave(struct fe_session *s)
{
    s->gone = true;
    if (s->pending)
        stop_pending(s);
    release_if_gone(s);
}

/* -- waiting ----------------------------------------------------------------------------------- */

/* Since when does the statement run? A timeout counts from its first wait: up to there it cost
 * microseconds. */
static void arm_statement_timer(struct fe_session *s);

status fe_wait(struct fe_session *s, fe_next *next, bool external)
{
    struct fe_work *w = fe_work(s);
    ASSERT_INV("S1", w->next == NULL);
    w->next = next;
    s->busy = true;
    s->pending = external;
    arm_statement_timer(s);
    return ST_PENDING;
}

status fe_yield(struct fe_session *s, fe_next *next)
{
    fe_work(s)->yielded = true;
    fe_conn_later(s->conn);
    return fe_wait(s, next, false);
}

void fe_resume(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    fe_next *next = w->next;
    w->next = NULL;
    w->stalled = w->yielded = w->sleeping = w->uncertain = false;
    s->busy = s->pending = false;
    if (s->gone) {
        release_if_gone(s);
        return;
    }
    ASSERT_INV("S1", next != NULL);
    s->pinned = true;
    next(s, st);
    s->pinned = false;
    if (s->gone) {
        release_if_gone(s);
        return;
    }
    if (s->conn->out.size > s->conn->out_at)
        fe_conn_dirty(s->conn); /* also what was held back meanwhile */
    fe_conn_run(s->conn);
}

void fe_session_ahead_done(struct fe_session *s)
{
    if (s->gone) {
        release_if_gone(s);
        return;
    }
    if (s->ahead == NULL && !s->busy && s->work == NULL) {
        if (s->stopping)
            fe_session_stop(s);
        else
            arm_idle_timer(s);
    }
    fe_conn_run(s->conn);
}

bool fe_session_is_stalled(const struct fe_session *s)
{
    return s->work != NULL && s->work->stalled;
}

bool fe_session_awaits_write(const struct fe_session *s)
{
    return s->ahead != NULL || (s->work != NULL && s->work->uncertain);
}

void fe_session_continue(struct fe_session *s)
{
    struct fe_work *w = s->work;
    if (w == NULL)
        return;
    bool drained = w->stalled && s->conn->out.size - s->conn->out_at < FE_OUTPUT_HIGH_BYTES;
    if (w->yielded || drained)
        fe_resume(s, ST_OK);
}

void fe_session_cancel(struct fe_session *s, bool timeout)
{
    struct fe_work *w = s->work;
    if (s->mode == FE_MODE_COPY_IN && !s->busy) {
        w->cancelled = true;
        w->timed_out = timeout;
        s->pinned = true;
        fe_copy_in_abort(s, fe_check_cancel(s));
        s->pinned = false;
        release_if_gone(s);
        return;
    }
    if (w == NULL || !s->busy)
        return;
    if (w->uncertain) { /* but where nobody leads it is only waiting */
        w->timed_out = cl_withdraw(s->client) && timeout;
        return;
    }
    w->cancelled = true;
    w->timed_out = timeout;
    if (w->sleeping) {
        loop_timer_stop(w->sleep);
        fe_resume(s, ST_CANCELLED);
    } else if (s->pending) {
        stop_pending(s);
    }
}

/* -- limits of time ---------------------------------------------------------------------------- */

static void on_timer(void *arg)
{
    struct fe_session *s = arg;
    if (s->timer_statement) {
        fe_session_cancel(s, true);
        return;
    }
    if (s->busy || s->ahead != NULL)
        return;
    if (s->txn == FE_TXN_BLOCK || s->txn == FE_TXN_FAILED)
        fe_fatal(s, "25P03", "terminating connection due to idle-in-transaction timeout");
    else
        fe_fatal(s, "57P05", "terminating connection due to idle-session timeout");
}

static void arm(struct fe_session *s, uint64_t us, bool statement)
{
    if (s->timer == NULL)
        s->timer = loop_timer_new(s->worker->loop, on_timer, s);
    s->timer_statement = statement;
    loop_timer_start(s->timer, us);
}

static void arm_statement_timer(struct fe_session *s)
{
    if (s->settings.statement_timeout_us != 0 && !s->timer_statement)
        arm(s, s->settings.statement_timeout_us, true);
}

static void stop_timer(struct fe_session *s)
{
    if (s->timer != NULL)
        loop_timer_stop(s->timer);
    s->timer_statement = false;
}

static void arm_idle_timer(struct fe_session *s)
{
    bool inside = s->txn == FE_TXN_BLOCK || s->txn == FE_TXN_FAILED;
    uint64_t us = inside ? s->settings.idle_in_txn_timeout_us : s->settings.idle_timeout_us;
    if (us != 0)
        arm(s, us, false);
}

/* -- the ends of cycles ------------------------------------------------------------------------ */

void fe_fatal(struct fe_session *s, const char *sqlstate, const char *message)
{
    struct err err;
    (void)err_set_state(&err, ST_PROTOCOL, sqlstate, "%s", message);
    fe_put_error(fe_out(s), 'E', "FATAL", &err, NULL);
    fe_conn_drain(s->conn);
}

void fe_fail(struct fe_session *s)
{
    struct fe_work *w = fe_work(s);
    err_default(&w->err, w->err.code != ST_OK ? w->err.code : ST_INTERNAL);
    if (s->terminated && s->conn->state == FE_CONN_READY)
        fe_fatal(s, "57P01", "terminating connection due to administrator command");
    else
        fe_put_error(fe_out(s), 'E', "ERROR", &w->err, w->context[0] != '\0' ? w->context : NULL);
    w->context[0] = '\0';
    err_clear(&w->err);
    w->cancelled = w->timed_out = false;
    stop_timer(s);
    fe_txn_abort(s);
    if (w->extended)
        s->mode = FE_MODE_SKIP;
}

static char txn_letter(const struct fe_session *s)
{
    return s->txn == FE_TXN_BLOCK ? 'T' : s->txn == FE_TXN_FAILED ? 'E' : 'I';
}

void fe_ready(struct fe_session *s)
{
    struct obuf *o = fe_out(s);
    ASSERT(s->txn != FE_TXN_IMPLICIT);
    if (s->txn == FE_TXN_IDLE)
        fe_notify_flush(s);
    if ((s->settings.dirty[0] | s->settings.dirty[1]) != 0)
        fe_settings_report(&s->settings, false, o);
    if (!s->terminated || s->conn->state == FE_CONN_READY)
        fe_put_ready(o, txn_letter(s));
    s->mode = FE_MODE_NORMAL;
    work_release(s);
    fe_activity_end(s);
    stop_timer(s);
    arm_idle_timer(s);
    if (s->stopping && s->ahead == NULL && s->conn->state == FE_CONN_READY)
        fe_fatal(s, "57P01", "terminating connection due to administrator command");
}

void fe_message_done(struct fe_session *s)
{
    stop_timer(s);
    if (s->work != NULL)
        s->work->cancelled = s->work->timed_out = false;
}

void fe_session_terminate(struct fe_session *s)
{
    bool now = !s->busy && s->mode == FE_MODE_NORMAL && s->ahead == NULL;
    s->terminated = true;
    fe_session_stop(s);
    if (!now)
        fe_session_cancel(s, false);
}

void fe_session_stop(struct fe_session *s)
{
    s->stopping = true;
    if (!s->busy && s->mode == FE_MODE_NORMAL && s->ahead == NULL)
        fe_fatal(s, "57P01", "terminating connection due to administrator command");
}

/* -- messages ---------------------------------------------------------------------------------- */

void fe_session_unknown(struct fe_session *s, uint8_t type)
{
    char text[64];
    if (s->mode == FE_MODE_COPY_IN && !fe_copy_in_settle(s))
        return;
    if (s->mode == FE_MODE_COPY_IN) {
        snprintf(text, sizeof text, "unexpected message type 0x%02X during COPY from stdin", type);
        (void)err_set(&fe_work(s)->err, ST_PROTOCOL, "%s", text);
        fe_copy_in_context(s);
        fe_fail(s); /* no ReadyForQuery: the connection ends */
        fe_fatal(s, "08P01", "terminating connection because protocol synchronization was lost");
        return;
    }
    snprintf(text, sizeof text, "invalid frontend message type %u", type);
    fe_fatal(s, "08P01", text);
}

static void function_call(struct fe_session *s)
{
    struct fe_work *w = fe_work(s);
    status st = ST_TXN_STATE;
    if (s->txn == FE_TXN_FAILED)
        st = fe_txn_refuse(s);
    else
        st = err_set(&w->err, ST_UNSUPPORTED, "function call messages are not supported");
    ASSERT(st != ST_OK);
    w->extended = false;
    fe_fail(s);
    fe_ready(s);
}

static void sync(struct fe_session *s, bytes body)
{
    struct fe_work *w = fe_work(s);
    if (fe_decode_nothing(body, &w->err) == ST_OK) {
        fe_extended_sync(s);
        return;
    }
    w->extended = false; /* it ends the skipping all the same */
    fe_fail(s);
    fe_ready(s);
}

static void flush(struct fe_session *s, bytes body)
{
    struct fe_work *w = fe_work(s);
    if (fe_decode_nothing(body, &w->err) == ST_OK) {
        fe_conn_push(s->conn);
        return;
    }
    w->extended = true;
    fe_fail(s);
}

static status no_room(struct fe_session *s)
{
    struct err *err = &fe_work(s)->err;
    err_set(err, ST_NO_MEMORY, "no memory for so long a message");
    err_detail(err, "The unfinished messages of all clients hold memory.messages already.");
    err_hint(err, "Send smaller messages, or the same one later.");
    return ST_NO_MEMORY;
}

/* A message that was dropped while it came. */
static void refused_message(struct fe_session *s)
{
    (void)no_room(s);
    fe_fail(s);
    if (!s->work->extended)
        fe_ready(s);
}

static void copy_message(struct fe_session *s, const struct fe_frame *f)
{
    switch (f->type) {
    case 'd':
        if (f->refused)
            fe_copy_in_refuse(s, no_room(s));
        else
            fe_copy_in_data(s, f->body);
        break;
    case 'c': fe_copy_in_done(s); break;
    case 'f': fe_copy_in_fail(s, f->body); break;
    case 'H':
    case 'S': break;
    default: fe_session_unknown(s, f->type); break;
    }
}

static enum fe_handled normal_message(struct fe_session *s, const struct fe_frame *f)
{
    struct fe_work *w = fe_work(s);
    if (f->type != 'H' && f->type != 'd' && f->type != 'c' && f->type != 'f')
        w->extended = f->type != 'Q' && f->type != 'F' && f->type != 'S';
    if (s->timer != NULL && !s->timer_statement)
        loop_timer_stop(s->timer);
    if (strchr("QPBDEF", f->type) != NULL)
        fe_txn_settle(s);
    if (f->refused && f->type != 'd') {
        refused_message(s);
        return FE_HANDLED;
    }
    switch (f->type) {
    case 'Q': fe_simple_query(s, f->body); break;
    case 'P': fe_extended_parse(s, f->body); break;
    case 'B': fe_extended_bind(s, f->body); break;
    case 'D': fe_extended_describe(s, f->body); break;
    case 'E': return fe_extended_execute(s, f->body);
    case 'C': fe_extended_close(s, f->body); break;
    case 'S': sync(s, f->body); break;
    case 'F': function_call(s); break;
    case 'H': flush(s, f->body); break;
    case 'X': fe_conn_drain(s->conn); break;
    default: break; /* CopyData, CopyDone, CopyFail outside COPY: dropped */
    }
    return FE_HANDLED;
}

enum fe_handled fe_session_message(struct fe_session *s, const struct fe_frame *f)
{
    ASSERT_INV("S1", !s->busy);
    enum fe_handled done = FE_HANDLED;
    if (s->ahead != NULL && !fe_ahead_permits(s, f->type))
        return FE_DEFERRED;
    s->pinned = true;
    /* CopyDone writes the rows, Flush asks for nothing. */
    bool settles = s->mode == FE_MODE_COPY_IN && (f->refused || strchr("dcH", f->type) == NULL);
    bool later = settles && !fe_copy_in_settle(s);
    if (later || s->conn->state != FE_CONN_READY) {
        s->pinned = false;
        release_if_gone(s);
        return later ? FE_DEFERRED : FE_HANDLED;
    }
    switch (s->mode) {
    case FE_MODE_COPY_IN: copy_message(s, f); break;
    case FE_MODE_SKIP:
        if (f->type == 'S')
            sync(s, f->body);
        else if (f->type == 'X')
            fe_conn_drain(s->conn);
        break;
    case FE_MODE_NORMAL: done = normal_message(s, f); break;
    }
    s->pinned = false;
    release_if_gone(s);
    return done;
}

/* -- planning ---------------------------------------------------------------------------------- */

static status plan_take(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    struct fe_statement *target = w->planning;
    w->planning = NULL;
    if (st == ST_OK)
        target->stmt = w->plan.out;
    else
        w->err = w->plan.err;
    if (st != ST_OK)
        err_default(&w->err, st);
    fe_statement_unref(s, target);
    return st;
}

static void plan_done(struct pl_request *r, status st)
{
    struct fe_session *s = r->arg;
    st = plan_take(s, st);
    if (st == ST_OK && !s->gone)
        st = fe_check_cancel(s);
    fe_resume(s, st);
}

status fe_plan(struct fe_session *s, struct fe_statement *st, bytes text, const uint32_t *types,
               unsigned type_count, fe_next *next)
{
    struct fe_work *w = fe_work(s);
    ASSERT(w->planning == NULL);
    w->planning = st;
    st->refs++;
    /* err is large and is filled on errors only. */
    w->plan.done = plan_done;
    w->plan.arg = s;
    w->plan.text = text;
    w->plan.types = types;
    w->plan.type_count = type_count;
    w->plan.arena = &st->arena;
    w->plan.out = (struct pl_statement){0};
    w->plan.err.code = ST_OK;
    w->plan.job = NULL;
    status result = pl_plan(s->worker->planner, &w->plan);
    if (result == ST_PENDING)
        return fe_wait(s, next, true);
    return plan_take(s, result);
}

status fe_plan_inner(struct fe_session *s, bytes text, const uint32_t *types, unsigned type_count,
                     fe_next *next)
{
    struct fe_statement *inner = s->work->run.inner = fe_statement_new(s);
    return fe_plan(s, inner, arena_copy(&inner->arena, text), types, type_count, next);
}

static const char *get_setting(void *arg, const char *name)
{
    const struct fe_session *s = arg;
    return fe_settings_get(&s->settings, name);
}

static status set_setting(void *arg, const char *name, const char *value, bool local,
                          struct err *err)
{
    struct fe_session *s = arg;
    return fe_settings_set(&s->settings, name, value, local, err);
}

static void signal_session(void *arg, int32_t number, bool terminate)
{
    fe_activity_signal(arg, number, terminate);
}

/* On a pool thread, as set_setting: the session waits and touches nothing. */
static void warn(void *arg, const char *message)
{
    struct fe_work *w = ((struct fe_session *)arg)->work;
    if (w->warning_count < FE_WARNINGS_MAX)
        snprintf(w->warnings[w->warning_count++], sizeof w->warnings[0], "%s", message);
}

static status notify(void *arg, const char *channel, const char *payload, struct err *err)
{
    return fe_notify_add(arg, channel, payload, err);
}

/* splitmix64: seeds must differ, nothing more. */
static uint64_t next_random(struct fe_worker *w)
{
    uint64_t z = (w->random += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static int64_t read_clock(void *arg)
{
    const struct fe_session *s = arg;
    return fe_clock(s->worker);
}

void fe_context(struct fe_session *s, struct pl_context *out)
{
    int64_t now = fe_now(s);
    *out = (struct pl_context){
        .ns = s->ns,
        .now = now,
        .clock = read_clock,
        .seed = next_random(s->worker),
        .style = &s->settings.style,
        .user = s->user,
        .database = s->database,
        .application_name = s->settings.application_name,
        .backend_pid = s->number,
        .in_transaction = s->txn == FE_TXN_BLOCK || s->txn == FE_TXN_IMPLICIT,
        .read_only = fe_read_only(s),
        .setting = get_setting,
        .set_setting = set_setting,
        .notify = notify,
        .sessions = fe_activity_gathered(s->work->gathering),
        .signal = signal_session,
        .warn = warn,
        .arg = s,
    };
}
