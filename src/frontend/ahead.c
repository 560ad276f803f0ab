/*
 * frontend/ahead.c — writes of a pipeline that are under way while the next statement is read.
 *
 *   s->ahead ─> write ─> write ─> write        oldest first
 *               after    after    after ─ output of what was handled behind it
 *
 * Only writes without rows, each a transaction of its own and alone between two Syncs, are started
 * ahead, and all that are under way are in one shard: so they take effect, and become durable, in
 * the order in which they were sent, and a statement sees what those before it did. Whatever reads,
 * runs or ends something waits until all are answered.
 *
 * Invariants
 *   W1  Answers go out in the order of the messages: output behind a write is in its `after` until
 *       the write is answered.
 *   W2  No portal is run and nothing waits for a call while writes are ahead, but for planning.
 *   W3  The session lives until its last write is answered.
 *
 * Threads: the worker's.
 */
#include "frontend/ahead.h"
#include "base/assert.h"
#include <stdlib.h>

struct fe_ahead {
    struct fe_ahead *next;
    struct fe_session *session;
    struct fe_statement *statement;
    enum kv_table table;
    uint64_t started_us;
    struct obuf answer, after;
    bool answered;
};

static struct fe_ahead *ahead_new(struct fe_session *s)
{
    struct fe_worker *w = s->worker;
    struct fe_ahead *a = w->ahead;
    if (a != NULL) {
        w->ahead = a->next;
        w->ahead_count--;
    } else {
        a = calloc(1, sizeof *a);
        ASSERT(a != NULL);
        obuf_init(&a->answer);
        obuf_init(&a->after);
    }
    a->next = NULL;
    a->session = s;
    a->answered = false;
    return a;
}

static void ahead_destroy(struct fe_ahead *a)
{
    obuf_fini(&a->answer);
    obuf_fini(&a->after);
    free(a);
}

static void ahead_free(struct fe_worker *w, struct fe_ahead *a)
{
    if (w->ahead_count == FE_AHEAD_SPARE) {
        ahead_destroy(a);
        return;
    }
    obuf_reset(&a->answer);
    obuf_reset(&a->after);
    obuf_shrink(&a->after, 4096);
    a->next = w->ahead;
    w->ahead = a;
    w->ahead_count++;
}

void fe_ahead_free(struct fe_worker *w)
{
    for (struct fe_ahead *a = w->ahead, *next; a != NULL; a = next) {
        next = a->next;
        ahead_destroy(a);
    }
    w->ahead = NULL;
}

struct obuf *fe_ahead_output(struct fe_session *s)
{
    return s->ahead_last != NULL ? &s->ahead_last->after : &s->conn->out;
}

/* -- the end of a write ------------------------------------------------------------------------ */

/* Gives out what is next in order. */
static void deliver(struct fe_session *s)
{
    struct fe_ahead *a;
    while ((a = s->ahead) != NULL && a->answered) {
        struct obuf *o = &s->conn->out;
        if (!s->gone) {
            fe_conn_push(s->conn);
            obuf_put(o, a->answer.data, a->answer.size);
            obuf_put(o, a->after.data, a->after.size);
        }
        s->ahead = a->next;
        if (s->ahead == NULL)
            s->ahead_last = NULL;
        s->ahead_count--;
        ahead_free(s->worker, a);
    }
}

static void write_done(void *arg, status st, const struct kv_result *result, struct err *err)
{
    struct fe_ahead *a = arg;
    struct fe_session *s = a->session;
    struct fe_worker *w = s->worker;
    const struct pl_plan *plan = a->statement->stmt.plan;
    uint64_t now = env_mono_us(cl_node_env(w->node));
    pl_pattern_count(w->planner, plan, now > a->started_us ? now - a->started_us : 0, st);
    if (st == ST_OK) {
        struct fe_run run; /* for its tag */
        fe_run_tag(&run, plan->tag, result->affected);
        fe_put_tag(&a->answer, run.tag);
    } else {
        err_default(err, st);
        fe_put_error(&a->answer, 'E', "ERROR", err, NULL);
    }
    a->answered = true;
    fe_statement_unref(s, a->statement);
    deliver(s);
    fe_session_ahead_done(s);
}

/* -- its beginning ----------------------------------------------------------------------------- */

bool fe_ahead_wanted(const struct fe_session *s, const struct fe_portal *p)
{
    const struct pl_plan *plan = p->statement->stmt.plan;
    if (plan->kind != PL_WRITE || plan->returns_rows || fe_read_only(s))
        return false;
    /* A write that fails undoes what was executed before it since the last Sync, and what stands
     * between it and its own is dropped: nothing may be there. */
    if (s->txn_piped)
        return false;
    bool more;
    return s->ahead_count < FE_AHEAD_MAX && fe_conn_sync_behind(s->conn, &more) &&
           (s->ahead != NULL || more);
}

status fe_ahead_start(struct fe_session *s, struct fe_portal *p)
{
    struct fe_work *w = s->work;
    ASSERT(s->txn == FE_TXN_IDLE);
    ST_TRY(fe_portal_bind(s, p));
    if (UNLIKELY(fe_session_limited(s)))
        ST_TRY(fe_check_powers(s, &p->bound));
    const struct kv_op *op = &p->bound.op;
    if (s->ahead_last != NULL && s->ahead_last->table != op->table)
        return ST_PENDING;
    struct fe_ahead *a = ahead_new(s);
    a->table = op->table;
    a->started_us = fe_run_clock(s->worker);
    status st = cl_write(s->client, op, write_done, a, &w->err);
    if (st != ST_PENDING) {
        ASSERT(st != ST_OK);
        ahead_free(s->worker, a);
        return st;
    }
    p->started = true;
    a->statement = p->statement;
    a->statement->refs++;
    if (s->ahead_last != NULL)
        s->ahead_last->next = a;
    else
        s->ahead = a;
    s->ahead_last = a;
    s->ahead_count++;
    return ST_OK;
}

bool fe_ahead_permits(struct fe_session *s, uint8_t type)
{
    if (fe_ahead_output(s)->size > FE_OUTPUT_PRESSED_BYTES)
        return false;
    switch (type) {
    case 'P':
    case 'B':
    case 'D':
    case 'E': /* decides for itself */
    case 'C':
    case 'S':
    case 'H': return true;
    default: return false;
    }
}
