/*
 * cluster/node.c — the composition root: builds the parts in order, runs the turn, takes it down.
 *
 *   OPEN --start--> RECOVERING --all shards lead and have applied--> SERVING
 *        among other nodes: --the log is read--> SERVING: each shard serves where it is led, and
 *        clients may come when this node has joined the others, or cannot (may_announce)
 *   RECOVERING, SERVING --stop--> STOPPING --nothing under way--> STOPPED
 *
 * One turn of reactor 0: callbacks queue commands, a stored batch is applied and answered, then the
 * hook of this file proposes what waits (shard.c), lets the sink send (sink.c), submits one batch
 * to the log (stream.c) and starts flushes (shard_flush.c). It is registered before anyone else's,
 * so that whoever writes to sockets at the end of the turn sees every answer of the turn.
 *
 * Invariants
 *   N1  Everything a shard needs exists before its log is read; the reactor starts after recovery.
 *   N2  on_ready and on_failed are called at most once each; after `failed` nothing is proposed.
 *   N3  on_stopped is called when nothing is queued, in the log, or on the pool, and what was in
 *       memory alone is in the store, as far as there was time for it.
 *
 * Threads: open, start and close from one thread outside the loops; the rest on reactor 0.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/rcu.h"
#include "cluster/compact.h"
#include "cluster/expire.h"
#include "cluster/forward.h"
#include "cluster/host.h"
#include "cluster/long_reads.h"
#include "cluster/membership.h"
#include "cluster/others.h"
#include "cluster/peer_tls.h"
#include "cluster/reclaim.h"
#include "cluster/service.h"
#include "cluster/sink.h"
#include "cluster/snapshot.h"
#include <stdio.h>
#include <stdlib.h>

#define TIMER_BUSY_US 100000u
#define TIMER_IDLE_US 1000000u
#define STOP_PATIENCE_US 3000000u
#define STOP_FLUSH_US 8000000u /* until then a stop begins flushes */
#define POOL_QUEUE_MAX 4096u
#define PARSE_STACK_BYTES (64u << 20)
#define QUERY_THREADS 2u
#define FLUSH_THREADS 2u
#define SLOWER 8          /* time ahead of the wall clock passes slower by one part in so many */
#define WAIT_US 10000000  /* stamps that are ahead by less are waited for */
#define JOIN_ELECTIONS 5u /* a node opens without the others after so many election timeouts */

static const struct {
    const char *name;
    uint32_t ns;
} databases[CL_DATABASES] = {{"metadb", 1}, {"postgres", 2}};

/* -- the turn ---------------------------------------------------------------------------------- */

static void on_turn(void *arg)
{
    struct cl_node *n = arg;
    struct loop *loop = n->reactors[0].loop;
    n->turn_us = loop_now_us(loop);
    cl_long_reads_turn(n->long_reads, n->stirred || n->short_calls != n->short_calls_seen);
    n->short_calls_seen = n->short_calls;
    if (!n->stirred) /* a turn of reads */
        return;
    n->stirred = false;
    if (n->host != NULL) {
        cl_host_turn(n->host);
        cl_forward_turn(n->forward);
    }
    cl_sink_poll(n->sink);
    size_t memory = n->memory_bytes = cl__memtable_bytes(n);
    for (unsigned i = 0; i < CL_SHARDS; i++)
        cl_shard_propose_waiting(n->shards[i]);
    cl__stream_submit(n);
    bool more = false;
    if (memory > n->options.memtables_budget / 2)
        cl__flush_pressure(n);
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = n->shards[i];
        cl_shard_flush_poll(s);
        if (s->apply_later) { /* in the next turn, after what is sent at the end of this one */
            s->apply_later = false;
            more = true;
        } else if (cl_shard_behind(s)) {
            cl_shard_apply(s);
            more = true;
        }
        more |= s->waiting_count > 0 && cl__stream_open(n) && n->stream.refused == ST_OK &&
                cl__has_memory(n);
    }
    cl__flush_pace(n);
    cl__node_progress(n);
    if (more) {
        cl__node_stir(n);
        loop_again(loop);
    }
}

void cl__node_kick(struct cl_node *n)
{
    struct loop *loop = n->reactors[0].loop;
    cl__node_stir(n);
    if (loop_now_us(loop) == n->turn_us)
        loop_again(loop);
}

static bool busy(const struct cl_node *n)
{
    if (n->phase != CL_NODE_SERVING || n->store_full || n->stream.refused != ST_OK ||
        !list_empty(&n->flush_waits) || (n->host != NULL && !n->announced))
        return true;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (kv_state_flush_due(n->shards[i]->state) != 0 || n->shards[i]->waiting_count > 0 ||
            cl_members_waiting(n->shards[i]))
            return true;
    }
    return false;
}

static bool requests_done(const struct cl_node *n)
{
    if (n->forward != NULL && !cl_forward_idle(n->forward))
        return false;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (!cl_shard_idle(n->shards[i]))
            return false;
    }
    return true;
}

static bool log_done(const struct cl_node *n)
{
    return n->stream.stored == n->stream.submitted && !n->stream.dirty;
}

/* A log that cannot write (a full disk) must not keep the process: the outcome of what is in it is
 * open, as after a crash. Flushes have a time of their own. */
static void give_up(struct cl_node *n)
{
    uint64_t now_us = env_mono_us(n->env);
    if (requests_done(n) && log_done(n))
        n->stop_deadline_us = now_us + STOP_PATIENCE_US;
    if (n->stop_given_up || now_us < n->stop_deadline_us)
        return;
    LOG_WARN("node.stop_given_up");
    n->stop_given_up = true;
    cl_forward_abandon(n->forward, ST_SHUTDOWN);
    for (unsigned i = 0; i < CL_SHARDS; i++)
        cl_shard_abandon(n->shards[i], ST_SHUTDOWN);
}

static void on_timer(void *arg)
{
    struct cl_node *n = arg;
    cl__node_stir(n); /* what time alone changes is looked at here, and every hundred ms if busy */
    if (n->phase == CL_NODE_STOPPING)
        give_up(n);
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = n->shards[i];
        if (n->host == NULL && raft_role(s->raft) != RAFT_LEADER)
            cl_shard_campaign(s);
    }
    if (n->host != NULL)
        cl_host_maintain(n->host);
    cl_snapshots_poll(n->snapshots);
    n->stream.refused = n->failed == ST_OK ? raft_log_admit(n->stream.log, 0) : n->failed;
    cl__flush_maintain(n);
    cl__reserve_poll(n);
    cl__transactions_expire(n);
    cl_reclaim_poll(n->reclaim);
    cl_compact_poll(n->compact);
    cl_expire_poll(n->expire);
    loop_timer_start(n->timer, busy(n) ? TIMER_BUSY_US : TIMER_IDLE_US);
}

/* -- start-up ---------------------------------------------------------------------------------- */

static void make_reactor(struct cl_node *n, unsigned i)
{
    struct cl_reactor *r = &n->reactors[i];
    r->index = i;
    r->loop = n->driven ? n->drive.loop : loop_new();
    r->mailbox = mailbox_new(r->loop);
}

static struct pool *make_pool(struct cl_node *n, const char *name, unsigned threads, size_t stack,
                              unsigned queue_max)
{
    if (n->driven)
        return pool_new_driven(queue_max, n->drive.submitted, n->drive.arg);
    return pool_new(name, threads, stack, queue_max);
}

static status open_store(struct cl_node *n, struct err *err)
{
    if (n->driven) {
        n->store = n->drive.store;
        return ST_OK;
    }
    struct kv_store_options o = {.block_cache_bytes = n->options.block_cache_bytes,
                                 .write_buffer_bytes = n->options.write_buffer_bytes,
                                 .background_threads = n->options.background_threads};
    struct arena a;
    arena_init(&a, 1024);
    const char *path = cl_identity_path(&a, n->dir, "store");
    status st = kv_store_open_rocks(path, &o, &n->store, err);
    if (st == ST_DISK_FULL && cl__reserve_release(n)) {
        err_clear(err);
        st = kv_store_open_rocks(path, &o, &n->store, err);
    }
    arena_fini(&a);
    if (st == ST_OK && n->options.runs_bytes > 0)
        kv_store_keep_runs(n->store, n->options.runs_bytes);
    return st;
}

static status open_transport(struct cl_node *n, struct err *err)
{
    struct cl_transport_options o = {
        .env = n->env,
        .loop = n->reactors[0].loop,
        .topology = &n->topology,
        .cluster_id = n->identity.cluster_id,
        .store_id = n->identity.store_id,
        .replica_id = n->replica,
        .events = n->driven && n->drive.events != NULL ? n->drive.events : cl_host_events(),
        .arg = n};
    if (n->topology.count < 2)
        return ST_OK;
    cl_transport_defaults(&o);
    o.queue_bytes = n->options.net_queue_bytes;
    /* A sleeping shard's leader is missed as soon as one that is awake is. */
    o.beacon_us = n->options.heartbeat_us;
    o.silence_us = n->options.election_us;
    o.delay_us = n->options.net_delay_us;
    ST_TRY(cl_peer_tls_new(n->config, n->topology.self, &n->peer_tls, err));
    o.tls = n->peer_tls;
    return cl_transport_new(&o, &n->transport, err);
}

static status build(struct cl_node *n, struct err *err)
{
    struct cl_identity wanted = {.cluster_id = (uint64_t)config_int(n->config, "cluster.id"),
                                 .node_id = (uint64_t)config_int(n->config, "cluster.node")};
    ST_TRY(cl_settings_check(n->config, err));
    ST_TRY(cl_topology_parse(config_string(n->config, "cluster.nodes"), wanted.node_id,
                             &n->topology, err));
    wanted.joined = config_bool(n->config, "cluster.join");
    ASSERT(n->topology.count <= CL_FIRST_MAX); /* cl_settings_check */
    while (wanted.first_count < n->topology.count) {
        wanted.first[wanted.first_count] = n->topology.nodes[wanted.first_count].id;
        wanted.first_count++;
    }
    ST_TRY(cl_identity_open(n->env, n->dir, 1, &wanted, &n->identity, err));
    n->replica = cl_identity_replica(&n->identity);
    ST_TRY(open_store(n, err));
    n->host = cl_host_new(n);
    if (n->host != NULL) {
        ST_TRY(cl_others_open(n, &n->others, err));
        n->snapshots = cl_snapshots_new(n);
    }
    for (unsigned i = 0; i < CL_SHARDS; i++)
        ST_TRY(cl_shard_open(n, i, &n->shards[i], err));
    ST_TRY(cl__stream_recover(n, err));
    n->steady_us = env_unix_us(n->env);
    n->steady_mono_us = env_mono_us(n->env);
    cl__node_raise_now(n, n->hlc.last);
    for (unsigned i = 0; i < n->options.reactors; i++)
        make_reactor(n, i);
    n->pool = make_pool(n, "pool", n->options.pool_threads, 0, POOL_QUEUE_MAX);
    n->parse_pool =
        make_pool(n, "parse", n->options.parse_threads, PARSE_STACK_BYTES, POOL_QUEUE_MAX);
    n->query_pool = make_pool(n, "query", QUERY_THREADS, 0, POOL_QUEUE_MAX);
    n->long_reads = cl_long_reads_new(n);
    n->flush_pool = make_pool(n, "flush", FLUSH_THREADS, 0, CL_SHARDS);
    pool_give_way(n->flush_pool);
    n->compact_pool = make_pool(n, "compact", 1, 0, 1);
    pool_give_way(n->compact_pool);
    n->compact = cl_compact_new(n);
    n->flush_pace = cl_flush_pace_new();
    cl__flush_clean(n);
    n->sink = cl_sink_new(n);
    n->reclaim = cl_reclaim_new(n);
    n->expire = cl_expire_new(n);
    cl__reserve_find(n);
    if (n->host != NULL) {
        n->forward = cl_forward_new(n);
        n->service = cl_service_new(n);
    }
    n->turn = loop_turn_new(n->reactors[0].loop, on_turn, n);
    n->timer = loop_timer_new(n->reactors[0].loop, on_timer, n);
    return open_transport(n, err);
}

static status open_node(struct env *env, const struct config *config, const char *dir,
                        const struct cl_drive *drive, struct cl_node **out, struct err *err)
{
    struct cl_node *n = calloc(1, sizeof *n);
    ASSERT(n != NULL);
    n->env = env;
    n->config = config;
    n->driven = drive != NULL;
    if (drive != NULL)
        n->drive = *drive;
    n->dir = strdup(dir);
    ASSERT(n->dir != NULL);
    cl__options_read(config, &n->options);
    env->ops->random(env, &n->incarnation, sizeof n->incarnation);
    n->started_us = env_mono_us(env);
    n->started_unix_us = env_unix_us(env);
    n->turn_us = UINT64_MAX;
    list_init(&n->flush_waits);
    list_init(&n->open_transactions);
    for (unsigned i = 0; i < CL_STAGES; i++)
        histogram_init(&n->stages[i]);
    n->reactors = calloc(n->options.reactors, sizeof *n->reactors);
    n->threads = calloc(n->options.reactors, sizeof *n->threads);
    ASSERT(n->reactors != NULL && n->threads != NULL);
    status st = build(n, err);
    if (st != ST_OK) {
        cl_node_close(n);
        return st;
    }
    *out = n;
    return ST_OK;
}

status cl_node_open(struct env *env, const struct config *config, const char *dir,
                    struct cl_node **out, struct err *err)
{
    return open_node(env, config, dir, NULL, out, err);
}

status cl_node_open_driven(struct env *env, const struct config *config, const char *dir,
                           const struct cl_drive *drive, struct cl_node **out, struct err *err)
{
    return open_node(env, config, dir, drive, out, err);
}

bool cl_node_step_log(struct cl_node *n)
{
    ASSERT(n->driven);
    return raft_log_step(n->stream.log);
}

static void *reactor_main(void *arg)
{
    struct cl_reactor *r = arg;
    char name[16];
    snprintf(name, sizeof name, "reactor-%u", r->index);
    pthread_setname_np(pthread_self(), name);
    loop_run(r->loop);
    return NULL;
}

void cl_node_start(struct cl_node *n, void (*ready)(void *arg),
                   void (*failed)(void *arg, status st), void *arg)
{
    ASSERT(n->phase == CL_NODE_OPEN);
    n->phase = CL_NODE_RECOVERING;
    n->on_ready = ready;
    n->on_failed = failed;
    n->event_arg = arg;
    cl__stream_start(n);
    loop_timer_start(n->timer, 0); /* its first run campaigns */
    if (n->host != NULL)
        cl_host_start(n->host);
    for (unsigned i = 0; i < n->options.reactors && !n->driven; i++) {
        int e = pthread_create(&n->threads[i], NULL, reactor_main, &n->reactors[i]);
        ASSERT(e == 0);
        n->running++;
    }
}

/* What a shard gets when it begins to lead: the root directories where they are missing, elsewhere
 * a TICK, so that the state's applied index passes the no-op. */
struct bootstrap {
    struct cl_proposal proposal;
    struct cl_node *node;
};

static void bootstrap_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct bootstrap *b = CONTAINER_OF(p, struct bootstrap, proposal);
    struct cl_node *n = b->node;
    if (st == ST_OK && a->outcome != ST_OK)
        LOG_ERROR("node.bootstrap_failed", LOG_STR("why", a->err.message));
    else if (st != ST_OK)
        LOG_ERROR("node.bootstrap_failed", LOG_STR("why", status_text(st)));
    ASSERT(n->bootstraps > 0);
    n->bootstraps--;
    free(b);
}

static void bootstrap_command(struct cl_node *n, struct cl_shard *s, struct obuf *out)
{
    struct kv_op ops[CL_DATABASES];
    const struct kv_op *list[CL_DATABASES];
    if (s->position != CL_META) {
        kv_command_tick(out);
        return;
    }
    for (unsigned i = 0; i < CL_DATABASES; i++) {
        ops[i] = (struct kv_op){.kind = KV_OP_BOOTSTRAP,
                                .table = KV_META,
                                .ns = databases[i].ns,
                                .now = cl__timestamptz(env_unix_us(n->env))};
        list[i] = &ops[i];
    }
    kv_command_ops(out, list, CL_DATABASES, cl__node_origin(n));
}

void cl__node_bootstrap(struct cl_node *n, struct cl_shard *s)
{
    struct obuf o;
    struct bootstrap *b = calloc(1, sizeof *b);
    ASSERT(b != NULL);
    obuf_init(&o);
    b->node = n;
    bootstrap_command(n, s, &o);
    b->proposal.command = buf_copy(bytes_make(o.data, o.size));
    b->proposal.system = true;
    b->proposal.done = bootstrap_done;
    n->bootstraps++;
    cl_shard_propose(s, &b->proposal);
    obuf_fini(&o);
}

static void bootstrap(struct cl_node *n)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (n->shards[i]->fenced == ST_OK)
            cl__node_bootstrap(n, n->shards[i]);
    }
    cl__node_kick(n);
}

static void announce(struct cl_node *n)
{
    n->announced = true;
    LOG_INFO("node.ready", LOG_U64("node", n->identity.node_id),
             LOG_U64("after_us", env_mono_us(n->env) - n->started_us),
             LOG_U64("led", cl_shard_leader(n->shards[CL_META])));
    n->on_ready(n->event_arg);
}

static void become_ready(struct cl_node *n)
{
    n->phase = CL_NODE_SERVING;
    cl__node_kick(n); /* the sink may begin */
    if (n->host == NULL)
        announce(n);
}

/* Among others: every shard has what the others had when this node joined them, whoever leads.
 * Where there is nobody to join, or it takes long, clients are told so by their statements. */
static bool may_announce(struct cl_node *n)
{
    if (n->host == NULL || n->announced)
        return false;
    if (env_mono_us(n->env) - n->started_us > JOIN_ELECTIONS * n->options.election_us)
        return true;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (n->shards[i]->fenced == ST_OK && !cl_host_joined(n->shards[i]))
            return false;
    }
    return true;
}

static bool all_recovered(const struct cl_node *n)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        const struct cl_shard *s = n->shards[i];
        if (s->fenced == ST_OK && !cl_shard_ready(s))
            return false;
    }
    return true;
}

static bool all_quiet(const struct cl_node *n)
{
    if (n->jobs > 0 || !cl_long_reads_empty(n->long_reads) || !requests_done(n))
        return false;
    return n->failed != ST_OK || n->stop_given_up || log_done(n);
}

void cl__node_progress(struct cl_node *n)
{
    switch (n->phase) {
    case CL_NODE_RECOVERING:
        if (n->host != NULL) {
            become_ready(n);
        } else if (n->bootstrapped) {
            if (n->bootstraps == 0)
                become_ready(n);
        } else if (all_recovered(n)) {
            n->bootstrapped = true;
            bootstrap(n);
        }
        break;
    case CL_NODE_STOPPING:
        if (n->host != NULL && cl_host_hand_over(n->host))
            break;
        if (all_quiet(n) && !cl__flush_stop(n)) {
            n->phase = CL_NODE_STOPPED;
            n->on_stopped(n->stop_arg);
        }
        break;
    case CL_NODE_SERVING:
        if (may_announce(n))
            announce(n);
        break;
    case CL_NODE_OPEN:
    case CL_NODE_STOPPED: break;
    }
}

/* -- the end ----------------------------------------------------------------------------------- */

void cl__node_fail(struct cl_node *n, status st)
{
    if (n->failed != ST_OK)
        return;
    n->failed = st;
    cl__node_kick(n);
    LOG_ERROR("node.failed", LOG_STR("why", status_text(st)));
    for (unsigned i = 0; i < CL_SHARDS; i++)
        cl_shard_abandon(n->shards[i], ST_IO);
    cl__flush_check_waits(n);
    if (n->on_failed != NULL)
        n->on_failed(n->event_arg, st);
}

void cl_node_drain(struct cl_node *n)
{
    n->draining = true;
    cl__node_kick(n);
}

bool cl__has_memory(const struct cl_node *n)
{
    return n->memory_bytes + n->inflight_bytes <= n->options.memtables_budget || n->draining ||
           n->phase == CL_NODE_STOPPING;
}

void cl_node_stop(struct cl_node *n, void (*done)(void *arg), void *arg)
{
    ASSERT(n->phase == CL_NODE_RECOVERING || n->phase == CL_NODE_SERVING);
    LOG_INFO("node.stopping");
    n->phase = CL_NODE_STOPPING;
    cl_compact_stop(n->compact);
    cl__node_stir(n);
    n->on_stopped = done;
    n->stop_arg = arg;
    uint64_t patience_us = n->host != NULL ? n->options.hand_over_us : 0;
    n->hand_over_us = env_mono_us(n->env) + patience_us;
    n->stop_deadline_us = n->hand_over_us + STOP_PATIENCE_US;
    n->stop_flush_us = n->hand_over_us + STOP_FLUSH_US;
    loop_timer_start(n->timer, TIMER_BUSY_US);
    cl__flush_check_waits(n);        /* whoever waits for a flush hears about the stop */
    cl_snapshots_poll(n->snapshots); /* what is being received goes no step further */
    loop_again(n->reactors[0].loop);
}

static void close_shards(struct cl_node *n)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (n->shards[i] != NULL && n->shards[i]->raft != NULL)
            cl_shard_abandon(n->shards[i], ST_SHUTDOWN);
        cl_shard_close(n->shards[i]);
    }
}

void cl_node_close(struct cl_node *n)
{
    for (unsigned i = 0; i < n->running; i++)
        loop_stop(n->reactors[i].loop);
    for (unsigned i = 0; i < n->running; i++)
        pthread_join(n->threads[i], NULL);
    pool_free(n->parse_pool);
    pool_free(n->query_pool);
    pool_free(n->pool);
    if (n->flush_pace != NULL) /* what is under way ends soon */
        cl_flush_pace_set(n->flush_pace, CL_FLUSH_SHARE_ALL);
    pool_free(n->flush_pool);
    pool_free(n->compact_pool);
    cl_flush_pace_free(n->flush_pace);
    raft_log_close(n->stream.log);
    n->stream.log = NULL;
    for (unsigned i = 0; i < n->options.reactors; i++)
        mailbox_free(n->reactors[i].mailbox);
    cl_snapshots_free(n->snapshots);
    n->snapshots = NULL;
    cl_forward_abandon(n->forward, ST_SHUTDOWN);
    cl_transport_free(n->transport);
    cl_peer_tls_free(n->peer_tls);
    n->transport = NULL;
    cl_host_free(n->host);
    cl_others_free(n->others);
    cl_reclaim_free(n->reclaim);
    cl_compact_free(n->compact);
    cl_expire_free(n->expire);
    cl_sink_free(n->sink);
    cl_long_reads_free(n->long_reads);
    close_shards(n);
    cl_forward_free(n->forward);
    cl_service_free(n->service);
    rcu_barrier_all();
    if (!n->driven)
        kv_store_close(n->store);
    loop_timer_free(n->timer);
    loop_turn_free(n->turn);
    for (unsigned i = 0; i < n->options.reactors; i++)
        loop_free(n->reactors[i].loop);
    obuf_fini(&n->encoding);
    while (n->scratch_count > 0)
        arena_fini(&n->scratch[--n->scratch_count]);
    free(n->reactors);
    free(n->threads);
    free(n->dir);
    free(n);
}

/* -- helpers of the folder --------------------------------------------------------------------- */

static status start_on(struct pool *pool, struct cl_node *n, struct pool_job *job)
{
    status st = pool_submit(pool, n->reactors[0].mailbox, job);
    if (st == ST_OK)
        n->jobs++;
    return st;
}

status cl__job_start(struct cl_node *n, struct pool_job *job)
{
    return start_on(n->pool, n, job);
}

status cl__flush_job_start(struct cl_node *n, struct pool_job *job)
{
    return start_on(n->flush_pool, n, job);
}

status cl__compact_job_start(struct cl_node *n, struct pool_job *job)
{
    return start_on(n->compact_pool, n, job);
}

void cl__job_done(struct cl_node *n)
{
    ASSERT(n->jobs > 0);
    n->jobs--;
    cl__node_stir(n);
}

int64_t cl__node_now_us(struct cl_node *n)
{
    int64_t wall_us = env_unix_us(n->env);
    uint64_t mono_us = env_mono_us(n->env);
    int64_t passed_us = (int64_t)(mono_us - n->steady_mono_us);
    int64_t steady_us = n->steady_us + passed_us - passed_us / SLOWER;
    n->steady_us = wall_us > steady_us ? wall_us : steady_us;
    n->steady_mono_us = mono_us;
    return n->steady_us;
}

void cl__node_raise_now(struct cl_node *n, hlc_ts at_least)
{
    int64_t now_us = cl__node_now_us(n);
    if (hlc_unix_us(at_least) > now_us + WAIT_US)
        n->steady_us = hlc_unix_us(at_least);
}

struct kv_origin cl__node_origin(struct cl_node *n)
{
    return (struct kv_origin){.incarnation = n->incarnation, .sequence = ++n->sequence};
}

/* -- what others may ask ----------------------------------------------------------------------- */

int64_t cl_node_started(const struct cl_node *n)
{
    return cl__timestamptz(n->started_unix_us);
}

struct env *cl_node_env(struct cl_node *n)
{
    return n->env;
}

const struct config *cl_node_config(struct cl_node *n)
{
    return n->config;
}

unsigned cl_node_reactor_count(const struct cl_node *n)
{
    return n->options.reactors;
}

struct cl_reactor *cl_node_reactor(struct cl_node *n, unsigned i)
{
    ASSERT(i < n->options.reactors);
    return &n->reactors[i];
}

bool cl_node_take_message_memory(struct cl_node *n, size_t more)
{
    uint64_t held = atomic_fetch_add_explicit(&n->message_bytes, more, memory_order_relaxed);
    if (held + more <= n->options.message_bytes)
        return true;
    atomic_fetch_sub_explicit(&n->message_bytes, more, memory_order_relaxed);
    atomic_fetch_add_explicit(&n->messages_refused, 1, memory_order_relaxed);
    return false;
}

void cl_node_give_message_memory(struct cl_node *n, size_t less)
{
    uint64_t held = atomic_fetch_sub_explicit(&n->message_bytes, less, memory_order_relaxed);
    ASSERT(held >= less);
}

struct pool *cl_node_query_pool(struct cl_node *n)
{
    return n->query_pool;
}

struct pool *cl_node_parse_pool(struct cl_node *n)
{
    return n->parse_pool;
}

status cl_database_find(struct cl_node *n, bytes name, uint32_t *ns)
{
    UNUSED(n);
    for (unsigned i = 0; i < CL_DATABASES; i++) {
        if (bytes_eq(name, bytes_str(databases[i].name))) {
            *ns = databases[i].ns;
            return ST_OK;
        }
    }
    return ST_NOT_FOUND;
}

const char *cl_database_at(struct cl_node *n, unsigned i, uint32_t *ns)
{
    UNUSED(n);
    if (i >= CL_DATABASES)
        return NULL;
    *ns = databases[i].ns;
    return databases[i].name;
}
