/*
 * cluster/client.c — a session's way to the data: one call at a time.
 *
 * An operation outside a transaction is encoded, goes to whoever leads its shard (forward.h), and
 * is answered when it is applied there. What belongs to a transaction is in transaction.c, reading
 * in read.c.
 *
 * Invariants
 *   C1  At most one call is pending; DONE is called once for it, from the loop, never inside the
 *       function that started it.
 *   C2  All operations of one call are in one shard: they are one command.
 *
 * Threads: the client's reactor, which owns the shards too as long as there is one; pool threads
 * see a client only while its call is theirs.
 */
#include "base/assert.h"
#include "base/memory.h"
#include "cluster/client_internal.h"
#include <stdlib.h>

#define SCRATCH_BYTES 4096u
#define ENCODING_KEPT_BYTES (64u * 1024u)

struct cl_client *cl_client_new(struct cl_node *n, struct cl_reactor *r, uint32_t ns)
{
    ASSERT(r->index == 0); /* calls from other reactors need a hop to the shard's owner */
    struct cl_client *c = memory_new(MEMORY_SESSIONS, sizeof *c);
    c->node = n;
    c->reactor = r;
    c->ns = ns;
    arena_init(&c->scratch, SCRATCH_BYTES);
    list_init(&c->txn.node);
    n->clients++;
    return c;
}

void cl_client_free(struct cl_client *c)
{
    ASSERT(c->call == NULL);
    cl_rollback(c);
    c->node->clients--;
    arena_fini(&c->txn.arena);
    arena_fini(&c->scratch);
    memory_free(MEMORY_SESSIONS, c, sizeof *c);
}

void cl__scratch_take(struct cl_client *c)
{
    struct cl_node *n = c->node;
    ASSERT(c->scratch.used_bytes == 0);
    if (c->scratch.held_bytes == 0 && n->scratch_count > 0)
        c->scratch = n->scratch[--n->scratch_count];
}

void cl__scratch_give(struct cl_client *c)
{
    struct cl_node *n = c->node;
    arena_reset(&c->scratch);
    if (c->scratch.held_bytes == 0)
        return;
    if (n->scratch_count == CL_SCRATCH_SPARE) {
        arena_fini(&c->scratch);
        return;
    }
    n->scratch[n->scratch_count++] = c->scratch;
    arena_init(&c->scratch, SCRATCH_BYTES);
}

void cl__client_finish(struct cl_client *c, status st)
{
    struct cl_call *call = c->call;
    ASSERT(call != NULL);
    c->call = NULL;
    cl__scratch_give(c);
    if (st != ST_OK && st != ST_END)
        err_default(&call->err, st);
    call->done(call, st);
}

status cl__client_to_pool(struct cl_client *c, struct cl_call *call, void (*run)(struct pool_job *),
                          void (*done)(struct pool_job *))
{
    c->job.run = run;
    c->job.done = done;
    c->call = call;
    call->stats.pool_trips++;
    if (cl__job_start(c->node, &c->job) == ST_OK)
        return ST_PENDING;
    c->call = NULL;
    return err_set(&call->err, ST_NO_MEMORY, "too many reads wait for the disk");
}

static void copy_result(struct arena *a, const struct kv_result *src, struct kv_result *dst)
{
    *dst = *src;
    if (src->row_count == 0)
        return;
    struct kv_row *rows = arena_alloc(a, sizeof *rows * src->row_count);
    for (unsigned i = 0; i < src->row_count; i++)
        kv_row_copy(a, &src->rows[i], &rows[i]);
    dst->rows = rows;
}

static uint64_t since(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

/* Of a command that another node proposed only its size is known. */
static void note_stats(struct cl_client *c, const struct cl_proposal *p)
{
    struct cl_call_stats *stats = &c->call->stats;
    stats->log_bytes = c->command_bytes;
    if (!c->call->timed || p->stored_us == 0)
        return;
    uint64_t now_us = env_mono_us(c->node->env);
    stats->queue_us = since(p->queued_us, p->proposed_us);
    stats->stored_us = since(p->proposed_us, p->stored_us);
    stats->applied_us = since(p->stored_us, now_us);
}

static void unknown_outcome(struct err *err)
{
    err_set(err, ST_OUTCOME_UNKNOWN, "the outcome of the statement is unknown");
    err_hint(err, "It may take effect. Look before repeating it.");
}

static void command_done(struct cl_command *command, status st, const struct kv_applied *a)
{
    struct cl_client *c = CONTAINER_OF(command, struct cl_client, command);
    c->commanding = false;
    if (st == ST_OK) {
        note_stats(c, &command->proposal);
        copy_result(c->call->arena, &a->result, &c->call->result);
        st = a->outcome;
        if (st != ST_OK)
            c->call->err = a->err;
        if (st == ST_CONFLICT)
            c->node->counters.conflicts++;
    } else if (st == ST_OUTCOME_UNKNOWN) {
        unknown_outcome(&c->call->err);
    }
    cl__client_finish(c, st);
}

static status too_large(const struct obuf *encoding, struct err *err)
{
    if (encoding->size <= LIMIT_COMMAND_BYTES)
        return ST_OK;
    return err_set(err, ST_LIMIT, "the statement writes %zu bytes, at most %u are allowed",
                   encoding->size, LIMIT_COMMAND_BYTES);
}

status cl__client_propose(struct cl_client *c, struct cl_call *call, struct cl_shard *s)
{
    struct obuf *encoding = &c->node->encoding;
    ST_TRY(too_large(encoding, &call->err));
    c->call = call;
    c->command_bytes = encoding->size;
    c->command.done = command_done;
    c->commanding = true;
    cl_command_start(&c->command, s, buf_copy(bytes_make(encoding->data, encoding->size)));
    return ST_PENDING;
}

/* -- asking who leads -------------------------------------------------------------------------- */

static void ask_done(struct cl_ask *a, status st)
{
    struct cl_client *c = CONTAINER_OF(a, struct cl_client, ask);
    struct cl_call *call = c->call;
    c->asking = false;
    if (st == ST_OK) {
        c->call = NULL;
        c->asked(c, call);
        return;
    }
    if (st == ST_CANCELLED) {
        err_set(&call->err, st, "canceling statement due to user request");
    } else if (st == ST_NOT_LEADER) {
        err_set(&call->err, st, "no node says what is current");
        err_hint(&call->err,
                 "Try again: the nodes are choosing a leader, too few of them are up, or "
                 "this one lags behind.");
    }
    cl__client_finish(c, st);
}

status cl__client_ask(struct cl_client *c, struct cl_call *call, cl_shard_set wanted,
                      void (*next)(struct cl_client *c, struct cl_call *call))
{
    struct cl_node *n = c->node;
    if (n->phase != CL_NODE_SERVING || n->failed != ST_OK)
        return cl_shard_serving(n->shards[CL_META], &call->err);
    atomic_store_explicit(&c->cancel, false, memory_order_relaxed);
    c->call = call;
    c->asking = true;
    c->asked = next;
    c->ask.done = ask_done;
    cl_ask_start(n->forward, &c->ask, wanted);
    return ST_PENDING;
}

/* The one shard that all of OPS are in. */
static status shard_of_ops(struct cl_client *c, struct cl_call *call,
                           const struct kv_op *const *ops, unsigned count, struct cl_shard **out)
{
    *out = cl_shard_of(c->node, ops[0]->table);
    if (*out == NULL)
        return err_set(&call->err, ST_UNSUPPORTED, "this table cannot be written");
    for (unsigned i = 1; i < count; i++) {
        if (cl_shard_of(c->node, ops[i]->table) == *out)
            continue;
        err_set(&call->err, ST_UNSUPPORTED,
                "writing to several tables at once is not supported yet");
        err_detail(&call->err, "The statements are in one implicit transaction.");
        err_hint(&call->err, "Send a Sync between them, or one statement a message.");
        return ST_UNSUPPORTED;
    }
    return ST_OK;
}

/* OPS as a command, in the node's `encoding`. */
static void encode(struct cl_shard *s, const struct kv_op *const *ops, unsigned count)
{
    struct obuf *encoding = &s->node->encoding;
    obuf_reset(encoding);
    obuf_shrink(encoding, ENCODING_KEPT_BYTES);
    kv_command_ops(encoding, ops, count, cl_command_origin(s));
}

static status transaction_ops(struct cl_client *c, struct cl_call *call,
                              const struct kv_op *const *ops, unsigned count)
{
    cl__scratch_take(c);
    status st = cl__transaction_ops(c, call, ops, count, cl_shard_of(c->node, ops[0]->table));
    if (st != ST_PENDING)
        cl__scratch_give(c);
    return st;
}

static void ops_asked(struct cl_client *c, struct cl_call *call)
{
    cl__transaction_asked(c);
    status st = transaction_ops(c, call, c->ops.ops, c->ops.count);
    if (st == ST_PENDING)
        return;
    c->call = call;
    cl__client_finish(c, st);
}

status cl_ops(struct cl_client *c, struct cl_call *call, const struct kv_op *const *ops,
              unsigned count)
{
    struct cl_shard *s;
    ASSERT(c->call == NULL);
    ASSERT(count > 0);
    c->node->short_calls++;
    ST_TRY(shard_of_ops(c, call, ops, count, &s));
    ST_TRY(cl_command_admit(s, &call->err));
    if (c->txn.active && !cl__transaction_ready(c)) {
        c->ops = (struct cl_ops_run){.ops = ops, .count = count};
        return cl__client_ask(c, call, CL_ALL_SHARDS, ops_asked);
    }
    if (c->txn.active)
        return transaction_ops(c, call, ops, count);
    encode(s, ops, count);
    return cl__client_propose(c, call, s);
}

/* A write without a call. */
struct lone_write {
    struct cl_command command;
    cl_write_done *done;
    void *arg;
};

static void lone_write_done(struct cl_command *c, status st, const struct kv_applied *a)
{
    struct lone_write *w = CONTAINER_OF(c, struct lone_write, command);
    struct err err;
    err_clear(&err);
    if (st == ST_OK && a->outcome != ST_OK) {
        st = a->outcome;
        err = a->err;
    } else if (st == ST_OUTCOME_UNKNOWN) {
        unknown_outcome(&err);
    }
    w->done(w->arg, st, st == ST_OK ? &a->result : NULL, &err);
    free(w);
}

status cl_write(struct cl_client *c, const struct kv_op *op, cl_write_done *done, void *arg,
                struct err *err)
{
    struct cl_node *n = c->node;
    struct cl_shard *s = cl_shard_of(n, op->table);
    ASSERT(!c->txn.active);
    if (s == NULL)
        return err_set(err, ST_UNSUPPORTED, "this table cannot be written");
    ST_TRY(cl_command_admit(s, err));
    encode(s, &op, 1);
    ST_TRY(too_large(&n->encoding, err));
    struct lone_write *w = calloc(1, sizeof *w);
    ASSERT(w != NULL);
    w->command.done = lone_write_done;
    w->done = done;
    w->arg = arg;
    cl_command_start(&w->command, s, buf_copy(bytes_make(n->encoding.data, n->encoding.size)));
    return ST_PENDING;
}

bool cl_withdraw(struct cl_client *c)
{
    return c->commanding && cl_command_withdraw(&c->command);
}

void cl_cancel(struct cl_client *c)
{
    if (c->call == NULL)
        return;
    atomic_store_explicit(&c->cancel, true, memory_order_relaxed);
    if (c->asking)
        cl_ask_cancel(c->node->forward, &c->ask);
    (void)cl_withdraw(c);
    cl__node_kick(c->node); /* a function at another node ends at the end of a turn */
}

status cl_locate(struct cl_client *c, enum kv_table t, struct cl_where *out)
{
    struct cl_shard *s = cl_shard_of(c->node, t);
    if (s == NULL)
        return ST_NOT_FOUND;
    *out = (struct cl_where){
        .shard = s->id, .leader = cl_shard_leader(s), .table = kv_table_def(t)->name};
    return ST_OK;
}
