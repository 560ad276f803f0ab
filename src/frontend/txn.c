/*
 * frontend/txn.c — the session's transaction: one enum, and what goes with its end.
 *
 *                 statements of one message, before Sync
 *        IDLE ───────────────────────────> IMPLICIT ──BEGIN──┐
 *         │ ^<──── commit at the end, rollback on error ──┘  v
 *         └─BEGIN──────────────────────────────────────────> BLOCK ──error──> FAILED
 *           ^<──────────────── COMMIT, ROLLBACK ───────────────┘ ^─ROLLBACK TO─┘ │
 *           └────────────────────────── COMMIT (says ROLLBACK), ROLLBACK ────────┘
 *
 * cl_begin is called by the first statement that touches data (fe_txn_touch): BEGIN itself costs
 * nothing and the snapshot is as new as can be.
 *
 * Invariants
 *   T1  cl_in_transaction only in IMPLICIT and BLOCK, in FAILED while a savepoint can still bring
 *       the block back, and while COPY tries a batch.
 *   T2  Settings, notifications and portals end with the transaction: committed or undone in one
 *       place, end_of_transaction().
 */
#include "base/assert.h"
#include "frontend/execute.h"
#include <stdlib.h>

#define EPOCH_2000_US (INT64_C(946684800) * 1000000)

int64_t fe_clock(const struct fe_worker *w)
{
    return env_unix_us(cl_node_env(w->node)) - EPOCH_2000_US;
}

int64_t fe_now(struct fe_session *s)
{
    if (s->txn == FE_TXN_IDLE) {
        struct fe_work *w = fe_work(s);
        if (w->now == 0)
            w->now = fe_clock(s->worker);
        return w->now;
    }
    if (s->txn_now == 0)
        s->txn_now = fe_clock(s->worker);
    return s->txn_now;
}

bool fe_is_txn_exit(enum pl_kind k)
{
    return k == PL_COMMIT || k == PL_ROLLBACK || k == PL_ROLLBACK_TO;
}

status fe_txn_refuse(struct fe_session *s)
{
    return err_set_state(
        &fe_work(s)->err, ST_TXN_STATE, "25P02",
        "current transaction is aborted, commands ignored until end of transaction block");
}

bool fe_read_only(const struct fe_session *s)
{
    return s->txn_settled ? s->txn_read_only : s->settings.default_read_only;
}

void fe_txn_settle(struct fe_session *s)
{
    s->txn_read_only = fe_read_only(s);
    s->txn_settled = true;
}

bool fe_txn_in_block(const struct fe_session *s)
{
    return s->txn == FE_TXN_BLOCK || fe_simple_is_many(s);
}

void fe_txn_query(struct fe_session *s, enum pl_kind kind, bool parse)
{
    switch ((int)kind) {
    case PL_READ:
    case PL_WRITE:
    case PL_VALUES:
    case PL_CATALOG:
    case PL_FUNCTION:
    case PL_DECLARE:
    case PL_EXPLAIN: s->txn_queried = true; break;
    case PL_COPY_IN:
    case PL_COPY_OUT:
    case PL_PREPARE:
    case PL_EXECUTE:
    case PL_DEALLOCATE:
    case PL_CLOSE:
    case PL_DISCARD: s->txn_queried |= !parse; break;
    default: break;
    }
}

const char *fe_txn_isolation(const struct fe_session *s)
{
    return s->txn_isolation != NULL
               ? s->txn_isolation
               : fe_settings_get(&s->settings, "default_transaction_isolation");
}

status fe_txn_set(struct fe_session *s, int read_only, const char *isolation)
{
    struct err *err = &s->work->err;
    fe_txn_settle(s);
    if (isolation != NULL && s->txn_queried && strcmp(fe_txn_isolation(s), isolation) != 0)
        return err_set_state(err, ST_TXN_STATE, "25001",
                             "SET TRANSACTION ISOLATION LEVEL must be called before any query");
    if (read_only == 0 && s->txn_read_only && s->txn_queried)
        return err_set_state(err, ST_TXN_STATE, "25001",
                             "transaction read-write mode must be set before any query");
    if (read_only >= 0)
        s->txn_read_only = read_only == 1;
    if (isolation != NULL)
        s->txn_isolation = isolation;
    return ST_OK;
}

void fe_txn_touch(struct fe_session *s)
{
    if (s->txn == FE_TXN_IDLE || cl_in_transaction(s->client))
        return;
    cl_begin(s->client, fe_read_only(s), fe_now(s));
}

static void drop_savepoints(struct fe_session *s, unsigned keep)
{
    while (s->savepoint_count > keep)
        free(s->savepoints[--s->savepoint_count].name);
}

static void end_of_transaction(struct fe_session *s, bool committed)
{
    s->txn = FE_TXN_IDLE;
    s->txn_now = 0;
    s->txn_settled = s->txn_read_only = s->txn_queried = s->txn_piped = false;
    s->txn_isolation = NULL;
    drop_savepoints(s, 0);
    if (s->portals != NULL)
        fe_portal_drop_all(s, false, 0);
    if (committed) {
        fe_settings_commit(&s->settings);
        fe_notify_commit(s);
    } else {
        fe_settings_rollback_to(&s->settings, 0);
        fe_notify_abort(s);
    }
}

static status take_commit(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    if (st != ST_OK) {
        w->err = w->call.err;
        err_default(&w->err, st);
    }
    end_of_transaction(s, st == ST_OK);
    return st;
}

static void commit_done(struct cl_call *call, status st)
{
    struct fe_session *s = call->arg;
    fe_resume(s, take_commit(s, st));
}

status fe_txn_commit(struct fe_session *s, fe_next *next)
{
    if (!cl_in_transaction(s->client)) {
        end_of_transaction(s, true);
        return ST_OK;
    }
    struct cl_call *call = fe_call(s);
    call->done = commit_done;
    status st = cl_commit(s->client, call);
    if (st == ST_PENDING) {
        s->work->uncertain = true;
        return fe_wait(s, next, true);
    }
    return take_commit(s, st);
}

void fe_txn_rollback(struct fe_session *s)
{
    if (cl_in_transaction(s->client))
        cl_rollback(s->client);
    end_of_transaction(s, false);
}

void fe_txn_abort(struct fe_session *s)
{
    switch (s->txn) {
    case FE_TXN_BLOCK:
        s->txn = FE_TXN_FAILED;
        /* Settings go back at once, as far as a savepoint. */
        fe_settings_rollback_to(&s->settings, s->savepoint_count > 0
                                                  ? s->savepoints[s->savepoint_count - 1].settings
                                                  : 0);
        /* Without a savepoint nothing can come back: free the write set now. */
        if (s->savepoint_count == 0 && cl_in_transaction(s->client))
            cl_rollback(s->client);
        break;
    case FE_TXN_FAILED: break;
    case FE_TXN_IDLE:
    case FE_TXN_IMPLICIT: fe_txn_rollback(s); break;
    }
}

/* -- savepoints -------------------------------------------------------------------------------- */

static status outside(struct fe_session *s, const char *what)
{
    return err_set_state(&fe_work(s)->err, ST_TXN_STATE, "25P01",
                         "%s can only be used in transaction blocks", what);
}

static int savepoint_find(const struct fe_session *s, const char *name)
{
    for (unsigned i = s->savepoint_count; i > 0; i--)
        if (strcmp(s->savepoints[i - 1].name, name) == 0)
            return (int)i - 1;
    return -1;
}

static status no_savepoint(struct fe_session *s, const char *name)
{
    return err_set_state(&fe_work(s)->err, ST_TXN_STATE, "3B001", "savepoint \"%s\" does not exist",
                         name);
}

status fe_txn_savepoint(struct fe_session *s, const char *name)
{
    if (s->txn != FE_TXN_BLOCK)
        return outside(s, "SAVEPOINT");
    if (s->savepoint_count >= LIMIT_SAVEPOINTS)
        return err_set(&fe_work(s)->err, ST_LIMIT, "too many savepoints in one transaction");
    if (s->savepoint_count == s->savepoint_capacity) {
        s->savepoint_capacity = s->savepoint_capacity == 0 ? 4 : s->savepoint_capacity * 2;
        s->savepoints = realloc(s->savepoints, s->savepoint_capacity * sizeof *s->savepoints);
        ASSERT(s->savepoints != NULL);
    }
    struct fe_savepoint *sp = &s->savepoints[s->savepoint_count++];
    *sp = (struct fe_savepoint){.name = strdup(name),
                                .has_mark = cl_in_transaction(s->client),
                                .settings = fe_settings_mark(&s->settings),
                                .notifies = fe_notify_mark(s)};
    ASSERT(sp->name != NULL);
    if (sp->has_mark)
        sp->mark = cl_savepoint(s->client);
    return ST_OK;
}

status fe_txn_release(struct fe_session *s, const char *name)
{
    if (s->txn != FE_TXN_BLOCK)
        return outside(s, "RELEASE SAVEPOINT");
    int i = savepoint_find(s, name);
    if (i < 0)
        return no_savepoint(s, name);
    drop_savepoints(s, (unsigned)i);
    for (struct fe_portal *p = s->portals; p != NULL; p = p->next)
        if (p->level > (unsigned)i)
            p->level = (unsigned)i;
    return ST_OK;
}

status fe_txn_rollback_to(struct fe_session *s, const char *name)
{
    if (s->txn != FE_TXN_BLOCK && s->txn != FE_TXN_FAILED)
        return outside(s, "ROLLBACK TO SAVEPOINT");
    int i = savepoint_find(s, name);
    if (i < 0)
        return no_savepoint(s, name);
    struct fe_savepoint *sp = &s->savepoints[i];
    if (sp->has_mark && !cl_in_transaction(s->client))
        return err_set(&fe_work(s)->err, ST_TXN_TIMEOUT,
                       "the transaction is over, it cannot go back to a savepoint");
    /* Without a mark nothing had been written yet, and all writes go. The snapshot stays: what was
     * read behind the savepoint was read by this transaction. */
    if (cl_in_transaction(s->client))
        cl_rollback_to(s->client, sp->mark);
    fe_settings_rollback_to(&s->settings, sp->settings);
    fe_notify_rollback_to(s, sp->notifies);
    fe_portal_drop_all(s, true, (unsigned)i + 1);
    drop_savepoints(s, (unsigned)i + 1);
    s->txn = FE_TXN_BLOCK;
    return ST_OK;
}
