/*
 * cluster/transaction.c — BEGIN … COMMIT of one session.
 *
 * The snapshot is a vector: a stamp of every shard, by its leader, when the first statement runs.
 * Where others lead, they are asked, and this replica has applied that far before it is read.
 * Writes collect in one kv_txn per touched shard, over that snapshot; nothing is visible to others.
 * COMMIT turns the write set into one command, which apply validates against what was committed
 * after the snapshot (first committer wins). All writes are in one shard, until two-phase commit
 * exists.
 *
 * Limits: LIMIT_TXN_MS from BEGIN by the monotonic clock, here; the same by stamps, at apply.
 * Memory per transaction and of all together; over it a statement fails and the transaction is as
 * before.
 *
 * Invariants
 *   T1  A statement (one cl_ops call) is all or nothing: the write set goes back to its mark.
 *   T2  At most one write set has writes.
 *   T3  A transaction over its time gives nothing but ST_TXN_TIMEOUT until it is ended.
 *
 * Threads: the client's reactor; operations that meet a cold block run again on a pool thread.
 */
#include "base/assert.h"
#include "cluster/client_internal.h"

#define TXN_ARENA_BYTES 4096u

static struct cl_transaction *transaction_at(struct list *node)
{
    return CONTAINER_OF(node, struct cl_transaction, node);
}

void cl_begin(struct cl_client *c, bool read_only, int64_t now)
{
    struct cl_transaction *t = &c->txn;
    ASSERT(!t->active);
    struct arena arena = t->arena;
    *t = (struct cl_transaction){.active = true,
                                 .read_only = read_only,
                                 .now = now,
                                 .started_us = env_mono_us(c->node->env),
                                 .arena = arena};
    if (t->arena.first_block_bytes == 0) {
        arena_init(&t->arena, TXN_ARENA_BYTES);
        t->arena.use = MEMORY_TRANSACTIONS;
    }
    list_push_back(&c->node->open_transactions, &t->node);
    c->node->transactions++;
}

bool cl_in_transaction(const struct cl_client *c)
{
    return c->txn.active;
}

/* Gives back what the write sets hold; the transaction itself goes on. */
static void drop_writes(struct cl_client *c)
{
    struct cl_transaction *t = &c->txn;
    for (unsigned i = 0; i < CL_SHARDS; i++)
        t->txn[i] = NULL;
    arena_reset(&t->arena);
    c->node->txn_bytes -= t->charged;
    t->charged = 0;
}

void cl_rollback(struct cl_client *c)
{
    ASSERT(c->call == NULL);
    if (!c->txn.active)
        return;
    drop_writes(c);
    c->txn.active = false;
    list_remove(&c->txn.node);
    c->node->transactions--;
}

static bool over_time(const struct cl_node *n, const struct cl_transaction *t)
{
    return env_mono_us(n->env) - t->started_us > LIMIT_TXN_MS * 1000ull;
}

static status timeout_error(struct cl_client *c, struct err *err)
{
    c->txn.expired = true;
    c->node->counters.timeouts++;
    err_set(err, ST_TXN_TIMEOUT, "transaction exceeded its limit of %u ms", LIMIT_TXN_MS);
    err_hint(err, "Run the whole transaction again.");
    return ST_TXN_TIMEOUT;
}

static status check_time(struct cl_client *c, struct err *err)
{
    if (!c->txn.expired && !over_time(c->node, &c->txn))
        return ST_OK;
    drop_writes(c);
    return timeout_error(c, err);
}

void cl__transactions_expire(struct cl_node *n)
{
    LIST_FOR_EACH(it, &n->open_transactions) {
        struct cl_transaction *t = transaction_at(it);
        struct cl_client *c = CONTAINER_OF(t, struct cl_client, txn);
        if (c->call != NULL || t->expired || !over_time(n, t))
            continue;
        t->expired = true;
        drop_writes(c);
    }
}

static void take_snapshot(struct cl_client *c)
{
    for (unsigned i = 0; i < CL_SHARDS; i++)
        c->txn.snapshot[i] = cl_shard_snapshot(c->node->shards[i]);
    c->txn.snapshot_taken = true;
}

bool cl__transaction_ready(struct cl_client *c)
{
    if (c->txn.snapshot_taken || c->node->host == NULL || c->txn.expired)
        return true;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (!cl_shard_current(c->node->shards[i]))
            return false;
    }
    return true;
}

void cl__transaction_asked(struct cl_client *c)
{
    ASSERT(c->ask.known == CL_ALL_SHARDS);
    for (unsigned i = 0; i < CL_SHARDS; i++)
        c->txn.snapshot[i] = c->ask.points[i].stamp;
    c->txn.snapshot_taken = true;
}

status cl__transaction_of(struct cl_client *c, struct cl_shard *s, struct kv_txn **out,
                          struct err *err)
{
    struct cl_transaction *t = &c->txn;
    ST_TRY(check_time(c, err));
    if (!t->snapshot_taken)
        take_snapshot(c);
    if (t->txn[s->position] == NULL) {
        struct kv_view view = {.state = s->state,
                               .at = t->snapshot[s->position],
                               .tier = KV_TIER_CACHE,
                               .arena = &c->scratch};
        t->txn[s->position] = kv_txn_new(&t->arena, &view);
    }
    *out = t->txn[s->position];
    return ST_OK;
}

static struct cl_shard *written_shard(const struct cl_client *c)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (c->txn.txn[i] != NULL && kv_txn_has_writes(c->txn.txn[i]))
            return c->node->shards[i];
    }
    return NULL;
}

static const char *verb(const struct kv_op *op)
{
    switch (op->kind) {
    case KV_OP_INSERT: return "INSERT";
    case KV_OP_UPDATE: return "UPDATE";
    case KV_OP_DELETE:
    case KV_OP_DELETE_RANGE: return "DELETE";
    case KV_OP_LOCK: return "SELECT FOR UPDATE";
    case KV_OP_MOVE: return op->move == KV_MOVE_RENAME ? "UPDATE" : "move()";
    case KV_OP_LINK: return "link()";
    case KV_OP_MAKE_PATH: return "make_path()";
    case KV_OP_DETACH: return "remove_tree()";
    case KV_OP_BOOTSTRAP:
    case KV_OP_RECLAIM:
    case KV_OP_EXPIRE: break;
    }
    return "a write";
}

static status check_writable(struct cl_client *c, const struct kv_op *op, struct cl_shard *s,
                             struct err *err)
{
    if (c->txn.read_only)
        return err_set_state(err, ST_TXN_STATE, "25006",
                             "cannot execute %s in a read-only transaction", verb(op));
    struct cl_shard *written = written_shard(c);
    if (written == NULL || written == s)
        return ST_OK;
    err_set(err, ST_UNSUPPORTED, "a transaction cannot write to two shards yet");
    err_detail(err, "It has written to table \"%s\" (shard %llu); table \"%s\" is in shard %llu.",
               written->name, (unsigned long long)written->id, s->name, (unsigned long long)s->id);
    err_hint(err, "Write to one table per transaction.");
    return ST_UNSUPPORTED;
}

/* Counts what the transaction's arena has taken since; false when it is too much. */
static bool charge(struct cl_client *c)
{
    struct cl_node *n = c->node;
    uint64_t held = c->txn.arena.held_bytes;
    n->txn_bytes += held - c->txn.charged;
    c->txn.charged = held;
    return held <= n->options.txn_bytes && n->txn_bytes <= n->options.txn_bytes_total;
}

/* On the loop or, in between, on a pool thread: runs what is left. */
static status run_ops(struct cl_client *c, struct cl_call *call)
{
    struct cl_ops_run *r = &c->ops;
    while (r->next < r->count) {
        status st = kv_op_run(r->txn, r->ops[r->next], call->arena, &call->result, &call->err);
        if (st != ST_OK)
            return st;
        r->affected += call->result.affected;
        r->next++;
    }
    call->result.affected = r->affected;
    return ST_OK;
}

/* Back on the loop: what the statement leaves. */
static status finish_ops(struct cl_client *c, struct cl_call *call, status st)
{
    if (st == ST_OK && !charge(c)) {
        err_set(&call->err, ST_NO_MEMORY, "the transaction needs more memory than allowed");
        err_hint(&call->err, "See the settings transaction.memory and transaction.memory_total.");
        st = ST_NO_MEMORY;
    }
    if (st == ST_OK)
        return ST_OK;
    kv_txn_rollback_to(c->ops.txn, c->ops.mark); /* T1 */
    if (st == ST_CONFLICT && over_time(c->node, &c->txn))
        return timeout_error(c, &call->err); /* the snapshot is older than what is kept */
    if (st == ST_COLD)
        st = ST_INTERNAL; /* a pool thread never meets a cold block */
    err_default(&call->err, st);
    return st;
}

static void ops_on_pool(struct pool_job *job)
{
    struct cl_client *c = CONTAINER_OF(job, struct cl_client, job);
    c->ops.st = run_ops(c, c->call);
}

static void ops_back(struct pool_job *job)
{
    struct cl_client *c = CONTAINER_OF(job, struct cl_client, job);
    cl__job_done(c->node);
    cl__txn_tier(c, c->ops.txn, false);
    cl__client_finish(c, finish_ops(c, c->call, c->ops.st));
}

status cl__transaction_ops(struct cl_client *c, struct cl_call *call,
                           const struct kv_op *const *ops, unsigned count, struct cl_shard *s)
{
    struct kv_txn *t;
    ST_TRY(cl__transaction_of(c, s, &t, &call->err));
    ST_TRY(check_writable(c, ops[0], s, &call->err));
    c->ops = (struct cl_ops_run){.txn = t, .ops = ops, .count = count, .mark = kv_txn_save(t)};
    cl__txn_tier(c, t, false);
    status st = run_ops(c, call);
    if (st != ST_COLD)
        return finish_ops(c, call, st);
    c->node->counters.ops_cold++;
    cl__txn_tier(c, t, true);
    st = cl__client_to_pool(c, call, ops_on_pool, ops_back);
    return st == ST_PENDING ? st : finish_ops(c, call, st);
}

kv_txn_mark cl_savepoint(struct cl_client *c)
{
    ASSERT(c->txn.active);
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (c->txn.txn[i] != NULL && kv_txn_has_writes(c->txn.txn[i]))
            return kv_txn_save(c->txn.txn[i]);
    }
    return (kv_txn_mark){0};
}

void cl_rollback_to(struct cl_client *c, kv_txn_mark mark)
{
    struct cl_shard *s = written_shard(c);
    if (s != NULL)
        kv_txn_rollback_to(c->txn.txn[s->position], mark);
}

status cl_commit(struct cl_client *c, struct cl_call *call)
{
    ASSERT(c->call == NULL);
    ASSERT(c->txn.active);
    struct cl_shard *s = written_shard(c);
    status st = c->txn.expired || s != NULL ? check_time(c, &call->err) : ST_OK;
    if (st == ST_OK && s != NULL)
        st = cl_command_admit(s, &call->err);
    if (st == ST_OK && s != NULL) {
        obuf_reset(&c->node->encoding);
        kv_command_txn(&c->node->encoding, c->txn.txn[s->position], c->txn.snapshot[s->position],
                       cl_command_origin(s));
        c->node->counters.commits++;
    }
    cl_rollback(c); /* the write set is in the command now, or is given up */
    if (st != ST_OK || s == NULL)
        return st;
    return cl__client_propose(c, call, s);
}
