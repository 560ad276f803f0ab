/*
 * cluster/admin.c — the functions of schema metadb.
 *
 * A function's work is an object of its own that outlives the call that started it; it ends by
 * finishing the client's call, soon after a cancel too: a session that leaves waits for it, and a
 * stop for the session. Those that need the state to stand still hold the shards' apply while a
 * pool thread reads: commands wait meanwhile, reads go on.
 *
 * Threads: the reactor; `run` functions on a pool thread.
 */
#include "base/assert.h"
#include "cluster/check.h"
#include "cluster/client_internal.h"
#include "cluster/compact.h"
#include "cluster/membership.h"
#include "cluster/views.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define POLL_US 2000u

typedef void emit_fn(void *arg, const struct kv_datum *values);

struct admin {
    struct cl_client *client;
    emit_fn *emit;
    void *emit_arg;
    struct cl_flush_wait wait;
    struct pool_job job;
    struct loop_timer *timer;
    unsigned at; /* shard at hand */
    uint64_t to, until_us, term;
    enum cl_standing wanted;
    uint64_t hash[CL_SHARDS];
    uint64_t number; /* of what was asked for */
    struct arena arena;
    struct cl_mismatch *mismatches;
    status st;
};

static struct admin *admin_new(struct cl_client *c, struct cl_call *call, emit_fn *emit, void *arg)
{
    struct admin *m = calloc(1, sizeof *m);
    ASSERT(m != NULL);
    m->client = c;
    m->emit = emit;
    m->emit_arg = arg;
    m->st = ST_OK;
    atomic_store_explicit(&c->cancel, false, memory_order_relaxed);
    arena_init(&m->arena, 4096);
    c->call = call;
    return m;
}

static void admin_end(struct admin *m, status st)
{
    struct cl_client *c = m->client;
    loop_timer_free(m->timer);
    arena_fini(&m->arena);
    free(m);
    cl__client_finish(c, st);
}

static bool cancelled(const struct admin *m)
{
    return atomic_load_explicit(&m->client->cancel, memory_order_relaxed);
}

static struct kv_datum text(const char *s)
{
    return kv_text(bytes_str(s));
}

/* The pool refused the job before anything happened. */
static void admin_refused(struct admin *m)
{
    err_set(&m->client->call->err, ST_NO_MEMORY, "too much waits for the disk");
    admin_end(m, ST_NO_MEMORY);
}

/* -- flush() ----------------------------------------------------------------------------------- */

static void flush_done(struct cl_flush_wait *w)
{
    struct admin *m = CONTAINER_OF(w, struct admin, wait);
    struct cl_node *n = m->client->node;
    status st = n->failed != ST_OK ? ST_IO : n->phase >= CL_NODE_STOPPING ? ST_SHUTDOWN : ST_OK;
    for (unsigned i = 0; i < CL_SHARDS && st == ST_OK; i++) {
        struct cl_shard *s = n->shards[i];
        struct kv_datum row[] = {kv_int((int64_t)s->id), text(s->name),
                                 kv_int((int64_t)kv_state_persisted_index(s->state))};
        m->emit(m->emit_arg, row);
    }
    admin_end(m, st);
}

static void flush_poll(void *arg)
{
    struct admin *m = arg;
    if (!cancelled(m)) {
        loop_timer_start(m->timer, POLL_US);
        return;
    }
    list_remove(&m->wait.node);
    admin_end(m, ST_CANCELLED);
}

static status call_flush(struct cl_client *c, struct cl_call *call, const struct kv_datum *args,
                         emit_fn *emit, void *arg)
{
    UNUSED(args);
    ST_TRY(cl_shard_serving(c->node->shards[CL_META], &call->err));
    struct admin *m = admin_new(c, call, emit, arg);
    m->wait.done = flush_done;
    m->timer = loop_timer_new(c->reactor->loop, flush_poll, m);
    loop_timer_start(m->timer, POLL_US);
    cl__flush_wait(c->node, &m->wait);
    return ST_PENDING;
}

/* -- state_hash() ------------------------------------------------------------------------------ */

static void hash_next(struct admin *m);

static void hash_run(struct pool_job *job)
{
    struct admin *m = CONTAINER_OF(job, struct admin, job);
    m->st =
        kv_state_hash(m->client->node->shards[m->at]->state, &m->client->cancel, &m->hash[m->at]);
}

static void hash_done(struct pool_job *job)
{
    struct admin *m = CONTAINER_OF(job, struct admin, job);
    struct cl_shard *s = m->client->node->shards[m->at];
    cl__job_done(m->client->node);
    uint64_t applied = s->applied;
    cl_shard_release(s);
    if (m->st != ST_OK) {
        admin_end(m, m->st);
        return;
    }
    char *hash = arena_printf(&m->arena, "%016" PRIx64, m->hash[m->at]);
    struct kv_datum row[] = {kv_int((int64_t)s->id), text(s->name), text(hash),
                             kv_int((int64_t)applied)};
    m->emit(m->emit_arg, row);
    m->at++;
    hash_next(m);
}

static void hash_next(struct admin *m)
{
    if (m->at == CL_SHARDS) {
        admin_end(m, ST_OK);
        return;
    }
    struct cl_shard *s = m->client->node->shards[m->at];
    m->job.run = hash_run;
    m->job.done = hash_done;
    cl_shard_hold(s);
    if (cl__job_start(m->client->node, &m->job) == ST_OK)
        return;
    cl_shard_release(s);
    admin_refused(m);
}

/* A first step that may not finish inside the call that started it. */
static void start_later(void *arg)
{
    struct admin *m = arg;
    hash_next(m);
}

static status call_state_hash(struct cl_client *c, struct cl_call *call,
                              const struct kv_datum *args, emit_fn *emit, void *arg)
{
    UNUSED(args);
    ST_TRY(cl_shard_serving(c->node->shards[CL_META], &call->err));
    struct admin *m = admin_new(c, call, emit, arg);
    m->timer = loop_timer_new(c->reactor->loop, start_later, m);
    loop_timer_start(m->timer, 0);
    return ST_PENDING;
}

/* -- check() ----------------------------------------------------------------------------------- */

static const enum cl_shard_position checked[] = {CL_META, CL_QUOTA, CL_INDEX};

static void check_run(struct pool_job *job)
{
    struct admin *m = CONTAINER_OF(job, struct admin, job);
    m->st = cl_check_run(m->client->node, &m->client->cancel, &m->arena, &m->mismatches);
}

static void release_checked(struct cl_node *n)
{
    for (unsigned i = 0; i < ARRAY_LEN(checked); i++)
        cl_shard_release(n->shards[checked[i]]);
}

static void check_done(struct pool_job *job)
{
    struct admin *m = CONTAINER_OF(job, struct admin, job);
    struct cl_node *n = m->client->node;
    cl__job_done(n);
    release_checked(n);
    for (struct cl_mismatch *x = m->mismatches; x != NULL && m->st == ST_OK; x = x->next) {
        struct kv_datum row[] = {text(x->what), kv_int(x->ns), text(x->item), kv_int(x->expected),
                                 kv_int(x->found)};
        m->emit(m->emit_arg, row);
    }
    admin_end(m, m->st);
}

static void check_start(struct admin *m)
{
    struct cl_node *n = m->client->node;
    m->job.run = check_run;
    m->job.done = check_done;
    for (unsigned i = 0; i < ARRAY_LEN(checked); i++)
        cl_shard_hold(n->shards[checked[i]]);
    if (cl__job_start(n, &m->job) == ST_OK)
        return;
    release_checked(n);
    admin_refused(m);
}

/* -- waiting for the sink ---------------------------------------------------------------------- */

static bool queue_empty(const struct cl_node *n)
{
    return kv_state_queue_length(n->shards[CL_META]->state) == 0;
}

static void wait_again(struct admin *m)
{
    struct cl_node *n = m->client->node;
    if (n->phase >= CL_NODE_STOPPING)
        admin_end(m, ST_SHUTDOWN);
    else if (cancelled(m))
        admin_end(m, ST_CANCELLED);
    else
        loop_timer_start(m->timer, POLL_US);
}

static void sinks_poll(void *arg)
{
    struct admin *m = arg;
    if (!queue_empty(m->client->node)) {
        wait_again(m);
        return;
    }
    struct kv_datum row[] = {kv_int(0)};
    m->emit(m->emit_arg, row);
    admin_end(m, ST_OK);
}

/* A short while for the queue to drain; then the recount would not be one. */
static void check_poll(void *arg)
{
    struct admin *m = arg;
    struct cl_node *n = m->client->node;
    if (queue_empty(n)) {
        check_start(m);
    } else if (m->at++ < 500) {
        wait_again(m);
    } else {
        struct cl_call *call = m->client->call;
        err_set(&call->err, ST_TXN_STATE, "quota and index updates are still on their way");
        err_detail(&call->err, "%llu of them wait in the queue of shard 1.",
                   (unsigned long long)kv_state_queue_length(n->shards[CL_META]->state));
        err_hint(&call->err, "A recount needs a pause of writes to meta; see metadb.sinks.");
        admin_end(m, ST_TXN_STATE);
    }
}

static status start_polling(struct cl_client *c, struct cl_call *call, emit_fn *emit, void *arg,
                            void (*poll)(void *))
{
    ST_TRY(cl_shard_serving(c->node->shards[CL_META], &call->err));
    struct admin *m = admin_new(c, call, emit, arg);
    m->timer = loop_timer_new(c->reactor->loop, poll, m);
    loop_timer_start(m->timer, 0);
    return ST_PENDING;
}

static status call_check(struct cl_client *c, struct cl_call *call, const struct kv_datum *args,
                         emit_fn *emit, void *arg)
{
    UNUSED(args);
    return start_polling(c, call, emit, arg, check_poll);
}

static status call_wait_for_sinks(struct cl_client *c, struct cl_call *call,
                                  const struct kv_datum *args, emit_fn *emit, void *arg)
{
    UNUSED(args);
    return start_polling(c, call, emit, arg, sinks_poll);
}

/* -- transfer_leader(shard, node) -------------------------------------------------------------- */

/* The shard's leader knows the new one when that one has won its election. */
static void transfer_poll(void *arg)
{
    struct admin *m = arg;
    struct cl_node *n = m->client->node;
    const struct cl_shard *s = n->shards[m->at];
    if (cl_shard_leader(s) == m->to) {
        struct kv_datum row[] = {kv_int((int64_t)s->id), text(s->name), kv_int((int64_t)m->to)};
        m->emit(m->emit_arg, row);
        admin_end(m, ST_OK);
    } else if (env_mono_us(n->env) < m->until_us) {
        wait_again(m);
    } else {
        struct err *err = &m->client->call->err;
        err_set_state(err, ST_LOCKED, "55000", "node %" PRIu64 " did not take over shard %" PRIu64,
                      m->to, s->id);
        err_hint(err, "It may lack too much of the log, or not be reached; see metadb.replicas and "
                      "metadb.peers.");
        admin_end(m, ST_LOCKED);
    }
}

static status transfer_refused(status st, const struct cl_shard *s, uint64_t to, struct err *err)
{
    if (st == ST_NOT_FOUND)
        return err_set(err, ST_INVALID, "node %" PRIu64 " has no voter of shard %" PRIu64, to,
                       s->id);
    if (st == ST_LOCKED)
        return err_set_state(err, st, "55000",
                             "a transfer or a change of members of shard %" PRIu64 " is under way",
                             s->id);
    return err_set(err, st, "shard %" PRIu64 ": %s", s->id, status_text(st));
}

static status call_transfer_leader(struct cl_client *c, struct cl_call *call,
                                   const struct kv_datum *args, emit_fn *emit, void *arg)
{
    struct cl_node *n = c->node;
    if (args[0].null || args[1].null)
        return err_set(&call->err, ST_INVALID, "shard and node cannot be null");
    int64_t shard = args[0].i, node = args[1].i;
    if (shard < 1 || shard > CL_SHARDS)
        return err_set(&call->err, ST_INVALID, "there is no shard %" PRId64, shard);
    struct cl_shard *s = n->shards[shard - 1];
    ST_TRY(cl_shard_serving(s, &call->err));
    if (node < 1 || (uint64_t)node != n->identity.node_id) {
        status st = n->host != NULL && node > 0 ? cl_host_transfer(n->host, s, (uint64_t)node)
                                                : ST_NOT_FOUND;
        if (st != ST_OK)
            return transfer_refused(st, s, (uint64_t)node, &call->err);
    }
    struct admin *m = admin_new(c, call, emit, arg);
    m->at = (unsigned)(shard - 1);
    m->to = (uint64_t)node;
    m->until_us = env_mono_us(n->env) + 2 * n->options.election_us;
    m->timer = loop_timer_new(c->reactor->loop, transfer_poll, m);
    loop_timer_start(m->timer, 0);
    return ST_PENDING;
}

/* -- compact(shard, directory) ----------------------------------------------------------------- */

static void compact_poll(void *arg)
{
    struct admin *m = arg;
    struct cl_node *n = m->client->node;
    struct cl_compact_result r;
    status st = cl_compact_asked(n->compact, m->number, &r);
    if (st == ST_PENDING) {
        wait_again(m); /* what was asked for goes on when nobody waits */
    } else if (st != ST_OK) {
        admin_end(m, st);
    } else {
        struct kv_datum row[] = {kv_int((int64_t)n->shards[m->at]->id),
                                 text(n->shards[m->at]->name),
                                 kv_int((int64_t)r.tombstones_before),
                                 kv_int((int64_t)r.tombstones_after),
                                 kv_int((int64_t)r.bytes_read),
                                 kv_int((int64_t)r.bytes_written),
                                 kv_int((int64_t)r.us)};
        m->emit(m->emit_arg, row);
        admin_end(m, ST_OK);
    }
}

static void part_set(struct cl_compact_part *p, bytes lower, bytes upper)
{
    obuf_init(&p->lower);
    obuf_init(&p->upper);
    obuf_put(&p->lower, lower.data, lower.size);
    obuf_put(&p->upper, upper.data, upper.size);
}

/* All its tables: their keys begin with their numbers, which lie side by side. */
static unsigned parts_of_shard(const struct cl_shard *s, struct cl_compact_part *parts)
{
    uint8_t lower = (uint8_t)s->table, upper = (uint8_t)(lower + 1);
    while (kv_table_def((enum kv_table)upper) != NULL &&
           kv_key_owner(bytes_make(&upper, 1)) == s->table)
        upper++;
    part_set(&parts[0], bytes_make(&lower, 1), bytes_make(&upper, 1));
    return 1;
}

/* The entries of the directory with that id in each database. */
static unsigned parts_of_directory(struct cl_node *n, struct arena *a, int64_t pid,
                                   struct cl_compact_part *parts)
{
    unsigned count = 0;
    uint32_t ns;
    struct kv_datum id = kv_int(pid);
    while (count < CL_COMPACT_PARTS && cl_database_at(n, count, &ns) != NULL) {
        bytes lower = kv_key_prefix(a, ns, KV_META, &id, 1);
        part_set(&parts[count++], lower, kv_key_after_prefix(a, lower));
    }
    return count;
}

static status call_compact(struct cl_client *c, struct cl_call *call, const struct kv_datum *args,
                           emit_fn *emit, void *arg)
{
    struct cl_node *n = c->node;
    struct cl_compact_part parts[CL_COMPACT_PARTS];
    if (args[0].null)
        return err_set(&call->err, ST_INVALID, "shard cannot be null");
    int64_t shard = args[0].i;
    if (shard < 1 || shard > CL_SHARDS)
        return err_set(&call->err, ST_INVALID, "there is no shard %" PRId64, shard);
    struct cl_shard *s = n->shards[shard - 1];
    if (!args[1].null && s->position != CL_META)
        return err_set(&call->err, ST_INVALID, "shard %" PRId64 " has no directories", shard);
    ST_TRY(cl_shard_serving(s, &call->err));
    if (cl_compact_full(n->compact))
        return err_set(&call->err, ST_LIMIT, "too many compactions wait already");
    struct admin *m = admin_new(c, call, emit, arg);
    unsigned count = args[1].null ? parts_of_shard(s, parts)
                                  : parts_of_directory(n, &m->arena, args[1].i, parts);
    m->at = (unsigned)(shard - 1);
    m->number = cl_compact_ask_take(n->compact, s, parts, count);
    m->timer = loop_timer_new(c->reactor->loop, compact_poll, m);
    loop_timer_start(m->timer, 0);
    return ST_PENDING;
}

/* -- add_replica(shard, node), remove_replica(shard, node) ------------------------------------- */

static void member_ended(struct admin *m, const struct cl_shard *s, enum cl_standing standing)
{
    struct kv_datum row[] = {kv_int((int64_t)s->id), text(s->name), kv_int((int64_t)m->to),
                             text(cl_standing_name(standing))};
    m->emit(m->emit_arg, row);
    admin_end(m, ST_OK);
}

/* Its entry is in the log; what becomes of it the next leader decides. */
static void member_unknown(struct admin *m, const struct cl_shard *s)
{
    struct err *err = &m->client->call->err;
    err_set(err, ST_OUTCOME_UNKNOWN, "this node ceased to lead shard %" PRIu64 " meanwhile", s->id);
    err_hint(err, "See metadb.replicas where it is led now; a replica that is there as a learner "
                  "becomes a voter by itself.");
    admin_end(m, ST_OUTCOME_UNKNOWN);
}

static void member_removed(struct admin *m, const struct cl_shard *s)
{
    err_set_state(&m->client->call->err, ST_LOCKED, "55000",
                  "the replica of node %" PRIu64 " of shard %" PRIu64 " was removed meanwhile",
                  m->to, s->id);
    admin_end(m, ST_LOCKED);
}

static void member_poll(void *arg)
{
    struct admin *m = arg;
    const struct cl_shard *s = m->client->node->shards[m->at];
    enum cl_standing standing = cl_member_standing(s, m->to, true);
    if (!s->leading || s->leading_term != m->term)
        member_unknown(m, s);
    else if (standing == m->wanted)
        member_ended(m, s, standing);
    else if (m->wanted == CL_STANDING_VOTER &&
             cl_member_standing(s, m->to, false) == CL_STANDING_NONE)
        member_removed(m, s);
    else
        wait_again(m);
}

static status change_member(struct cl_client *c, struct cl_call *call, const struct kv_datum *args,
                            emit_fn *emit, void *arg, enum cl_standing wanted)
{
    struct cl_node *n = c->node;
    if (args[0].null || args[1].null)
        return err_set(&call->err, ST_INVALID, "shard and node cannot be null");
    int64_t shard = args[0].i, node = args[1].i;
    if (shard < 1 || shard > CL_SHARDS)
        return err_set(&call->err, ST_INVALID, "there is no shard %" PRId64, shard);
    if (node < 1)
        return err_set(&call->err, ST_INVALID, "there is no node %" PRId64, node);
    struct cl_shard *s = n->shards[shard - 1];
    ST_TRY(cl_shard_serving(s, &call->err));
    ST_TRY(wanted == CL_STANDING_VOTER ? cl_member_add(s, (uint64_t)node, &call->err)
                                       : cl_member_remove(s, (uint64_t)node, &call->err));
    atomic_store_explicit(&c->cancel, false, memory_order_relaxed);
    struct admin *m = admin_new(c, call, emit, arg);
    m->at = (unsigned)(shard - 1);
    m->to = (uint64_t)node;
    m->wanted = wanted;
    m->term = s->leading_term;
    m->timer = loop_timer_new(c->reactor->loop, member_poll, m);
    loop_timer_start(m->timer, 0);
    return ST_PENDING;
}

static status call_add_replica(struct cl_client *c, struct cl_call *call,
                               const struct kv_datum *args, emit_fn *emit, void *arg)
{
    return change_member(c, call, args, emit, arg, CL_STANDING_VOTER);
}

static status call_remove_replica(struct cl_client *c, struct cl_call *call,
                                  const struct kv_datum *args, emit_fn *emit, void *arg)
{
    return change_member(c, call, args, emit, arg, CL_STANDING_NONE);
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct cl_view_column flush_columns[] = {
    {"shard", KV_INT8}, {"table", KV_TEXT}, {"persisted", KV_INT8}};
static const struct cl_view_column hash_columns[] = {
    {"shard", KV_INT8}, {"table", KV_TEXT}, {"hash", KV_TEXT}, {"applied", KV_INT8}};
static const struct cl_view_column check_columns[] = {{"what", KV_TEXT},
                                                      {"namespace", KV_INT8},
                                                      {"item", KV_TEXT},
                                                      {"expected", KV_INT8},
                                                      {"found", KV_INT8}};
static const struct cl_view_column compact_args[] = {{"shard", KV_INT8}, {"directory", KV_INT8}};
static const struct cl_view_column compact_columns[] = {
    {"shard", KV_INT8},           {"table", KV_TEXT},      {"tombstones", KV_INT8},
    {"tombstones_left", KV_INT8}, {"bytes_read", KV_INT8}, {"bytes_written", KV_INT8},
    {"duration", KV_INTERVAL}};
static const struct cl_view_column transfer_args[] = {{"shard", KV_INT8}, {"node", KV_INT8}};
static const struct cl_view_column transfer_columns[] = {
    {"shard", KV_INT8}, {"table", KV_TEXT}, {"leader", KV_INT8}};
static const struct cl_view_column member_columns[] = {
    {"shard", KV_INT8}, {"table", KV_TEXT}, {"node", KV_INT8}, {"kind", KV_TEXT}};
static const struct cl_view_column wait_columns[] = {{"pending", KV_INT8}};

#define COLUMNS(c) .result = (c), .result_count = ARRAY_LEN(c)

static const struct cl_function functions[] = {
    {.name = "flush",
     .comment = "persists everything in memory; waits until versions are old enough to be pruned",
     COLUMNS(flush_columns),
     .call = call_flush},
    {.name = "state_hash",
     .comment = "a hash of each shard's replicated state: equal states, equal hashes",
     COLUMNS(hash_columns),
     .call = call_state_hash},
    {.name = "check",
     .comment = "recounts num_children, quota and secondary_index; one row per mismatch",
     COLUMNS(check_columns),
     .call = call_check},
    {.name = "wait_for_sinks",
     .comment = "returns when quota and secondary_index have taken everything written before",
     COLUMNS(wait_columns),
     .call = call_wait_for_sinks},
    {.name = "compact",
     .comment = "compacts a shard in the store, or one directory of it, whatever it costs",
     .args = compact_args,
     .arg_count = ARRAY_LEN(compact_args),
     .of_shard = true,
     COLUMNS(compact_columns),
     .call = call_compact},
    {.name = "transfer_leader",
     .comment = "lets a node lead a shard from now on; every shard follows shard 1, of meta",
     .args = transfer_args,
     .arg_count = ARRAY_LEN(transfer_args),
     .of_shard = true,
     COLUMNS(transfer_columns),
     .call = call_transfer_leader},
    {.name = "add_replica",
     .comment = "gives a node a replica of a shard; returns when it has caught up and votes",
     .args = transfer_args,
     .arg_count = ARRAY_LEN(transfer_args),
     .of_shard = true,
     COLUMNS(member_columns),
     .call = call_add_replica},
    {.name = "remove_replica",
     .comment = "a node's replica of a shard belongs to it no more",
     .args = transfer_args,
     .arg_count = ARRAY_LEN(transfer_args),
     .of_shard = true,
     COLUMNS(member_columns),
     .call = call_remove_replica},
};

status cl_function_run(const struct cl_function *f, struct cl_client *c, struct cl_call *call,
                       const struct kv_datum *args,
                       void (*emit)(void *arg, const struct kv_datum *values), void *emit_arg)
{
    struct cl_node *n = c->node;
    unsigned at = CL_META;
    if (f->of_shard && !args[0].null && args[0].i >= 1 && args[0].i <= CL_SHARDS)
        at = (unsigned)args[0].i - 1;
    const struct cl_shard *s = n->shards[at];
    if (n->forward == NULL || n->phase != CL_NODE_SERVING || n->failed != ST_OK || cl_shard_here(s))
        return f->call(c, call, args, emit, emit_arg);
    return cl_remote_call(c, call, f, s, args, emit, emit_arg);
}

const struct cl_function *cl_functions(unsigned *count)
{
    *count = ARRAY_LEN(functions);
    return functions;
}
