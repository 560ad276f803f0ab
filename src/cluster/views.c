/*
 * cluster/views.c — the list of relations, and those about the node as a whole.
 *
 * A generator runs on reactor 0, reads counters and emits rows; values live until emit returns. The
 * generators of shards, of the log and of the other nodes are in views_shards.c, views_log.c and
 * views_peers.c.
 */
#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "cluster/expire.h"
#include "cluster/forward.h"
#include "cluster/reclaim.h"
#include "cluster/sink.h"
#include "cluster/transport.h"
#include "cluster/views_internal.h"
#include "kv/dedup.h"
#include <inttypes.h>
#include <stdio.h>

struct kv_datum cl__text(const char *s)
{
    return s != NULL ? kv_text(bytes_str(s)) : KV_NULL;
}

struct kv_datum cl__count(uint64_t v)
{
    return kv_int(v > INT64_MAX ? INT64_MAX : (int64_t)v);
}

/* -- nodes ------------------------------------------------------------------------------------- */

static const struct cl_view_column nodes_columns[] = {
    {"node", KV_INT8},           {"cluster", KV_TEXT},      {"store", KV_TEXT},
    {"listen", KV_TEXT},         {"state", KV_TEXT},        {"version", KV_TEXT},
    {"reactors", KV_INT4},       {"clients", KV_INT8},      {"transactions", KV_INT8},
    {"started", KV_TIMESTAMPTZ}, {"peer_address", KV_TEXT}, {"since", KV_TIMESTAMPTZ},
    {"shards_led", KV_INT8}};

static const char *state_name(const struct cl_node *n)
{
    static const char *const names[] = {[CL_NODE_OPEN] = "opening",
                                        [CL_NODE_RECOVERING] = "recovering",
                                        [CL_NODE_SERVING] = "serving",
                                        [CL_NODE_STOPPING] = "stopping",
                                        [CL_NODE_STOPPED] = "stopped"};
    return n->failed != ST_OK ? "failed" : names[n->phase];
}

static uint64_t led_by(const struct cl_node *n, uint64_t node)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CL_SHARDS; i++)
        sum += cl_shard_leader(n->shards[i]) == node;
    return sum;
}

static void own_node(struct cl_node *n, const char *cluster, cl_emit *emit, void *arg)
{
    char store[17];
    uint64_t self = n->identity.node_id;
    const struct cl_node_address *a = cl_topology_find(&n->topology, self);
    struct kv_datum started = kv_int(cl__timestamptz(n->started_unix_us));
    snprintf(store, sizeof store, "%016" PRIx64, n->identity.store_id);
    struct kv_datum row[] = {cl__count(self),
                             cl__text(cluster),
                             cl__text(store),
                             cl__text(config_string(n->config, "listen")),
                             cl__text(state_name(n)),
                             cl__text(METADB_VERSION),
                             kv_int(n->options.reactors),
                             cl__count(n->clients),
                             cl__count(n->transactions),
                             started,
                             cl__text(a != NULL ? a->peers : NULL),
                             started,
                             cl__count(led_by(n, self))};
    _Static_assert(ARRAY_LEN(row) == ARRAY_LEN(nodes_columns), "one value per column");
    emit(arg, row);
}

struct node_rows {
    struct cl_node *node;
    const char *cluster;
    cl_emit *emit;
    void *arg;
};

/* What is known here of another node: the list, and the connection. */
static void other_node(void *arg, const struct cl_peer_stats *s)
{
    const struct node_rows *r = arg;
    struct cl_node *n = r->node;
    char store[17];
    int64_t age_us = (int64_t)(env_mono_us(n->env) - s->since_us);
    const struct cl_node_address *a = cl_topology_find(&n->topology, s->node);
    snprintf(store, sizeof store, "%016" PRIx64, s->store_id);
    struct kv_datum row[] = {cl__count(s->node),
                             cl__text(r->cluster),
                             s->store_id != 0 ? cl__text(store) : KV_NULL,
                             cl__text(a != NULL ? a->clients : NULL),
                             cl__text(s->state),
                             KV_NULL,
                             KV_NULL,
                             KV_NULL,
                             KV_NULL,
                             KV_NULL,
                             cl__text(s->address),
                             kv_int(cl__timestamptz(env_unix_us(n->env) - age_us)),
                             cl__count(led_by(n, s->node))};
    _Static_assert(ARRAY_LEN(row) == ARRAY_LEN(nodes_columns), "one value per column");
    r->emit(r->arg, row);
}

static void nodes_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    char cluster[17];
    snprintf(cluster, sizeof cluster, "%016" PRIx64, n->identity.cluster_id);
    struct node_rows r = {n, cluster, emit, arg};
    own_node(n, cluster, emit, arg);
    if (n->transport != NULL)
        cl_transport_each(n->transport, other_node, &r);
}

/* -- memory ------------------------------------------------------------------------------------ */

static const struct cl_view_column memory_columns[] = {
    {"what", KV_TEXT}, {"bytes", KV_INT8}, {"limit", KV_INT8}};

static void memory_row(cl_emit *emit, void *arg, const char *what, uint64_t size, uint64_t limit)
{
    struct kv_datum row[] = {cl__text(what), cl__count(size),
                             limit != 0 ? cl__count(limit) : KV_NULL};
    emit(arg, row);
}

static uint64_t above(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t answers_bytes(const struct cl_node *n)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct kv_dedup_stats stats;
        kv_dedup_stats(n->shards[i]->state, &stats);
        sum += stats.bytes;
    }
    return sum;
}

/* What is counted, by use; then what the process has. `allocated` less the sum is `unaccounted`:
 * the store's background work, libraries, and what allocations of odd sizes waste. */
static void memory_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct kv_store_stats store;
    kv_store_stats(n->store, &store);
    uint64_t memtables = cl__memtable_bytes(n);
    const uint64_t limits[MEMORY_USES] = {[MEMORY_MEMTABLES] = n->options.memtables_budget,
                                          [MEMORY_RUNS] = n->options.runs_bytes,
                                          [MEMORY_TRANSACTIONS] = n->options.txn_bytes_total};
    struct memory_process process;
    int64_t held[MEMORY_USES];
    uint64_t answers = answers_bytes(n);
    uint64_t sum =
        store.block_cache_bytes + store.memtable_bytes + store.table_reader_bytes + answers;
    memory_process(&process);
    memory_held(held);
    for (unsigned u = 0; u < MEMORY_USES; u++) {
        uint64_t size = held[u] > 0 ? (uint64_t)held[u] : 0;
        memory_row(emit, arg, memory_use_name(u), size, limits[u]);
        sum += size;
    }
    memory_row(emit, arg, "answers", answers, CL_SHARDS * (uint64_t)KV_DEDUP_BYTES_MAX);
    memory_row(emit, arg, "unfinished messages", /* of the buffers above */
               atomic_load_explicit(&n->message_bytes, memory_order_relaxed),
               n->options.message_bytes);
    memory_row(emit, arg, "block cache", store.block_cache_bytes, n->options.block_cache_bytes);
    memory_row(emit, arg, "store write buffers", store.memtable_bytes, 0);
    memory_row(emit, arg, "store table readers", store.table_reader_bytes, 0);
    memory_row(emit, arg, "accounted", sum, 0);
    memory_row(emit, arg, "allocated", process.allocated, 0);
    memory_row(emit, arg, "unaccounted", above(process.allocated, sum), 0);
    memory_row(emit, arg, "allocator's pages", process.active, 0);
    memory_row(emit, arg, "allocator's pages to give back", process.retained, 0);
    memory_row(emit, arg, "resident", process.resident, 0);
    memory_row(emit, arg, "budget", memtables + store.block_cache_bytes, n->options.memory_budget);
}

/* -- counters ---------------------------------------------------------------------------------- */

static const struct cl_view_column counters_columns[] = {{"name", KV_TEXT}, {"value", KV_INT8}};

static void counters_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    const struct cl_counters *c = &n->counters;
    struct cl_forward_stats f = {0};
    if (n->forward != NULL)
        cl_forward_stats(n->forward, &f);
    uint64_t messages_refused = atomic_load_explicit(&n->messages_refused, memory_order_relaxed);
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {{"commands", c->commands},
               {"reads", c->reads},
               {"reads_cold", c->reads_cold},
               {"ops_cold", c->ops_cold},
               {"commits", c->commits},
               {"conflicts", c->conflicts},
               {"transaction_timeouts", c->timeouts},
               {"apply_stalls", c->stalls},
               {"apply_from_disk", c->disk_applies},
               {"memory_waits", c->memory_waits},
               {"memory_refused", c->memory_refused},
               {"messages_refused", messages_refused},
               {"disk_full_refused", c->full_refused},
               {"forced_flushes", c->forced_flushes},
               {"led_asked", c->led_asked},
               {"led_alone", c->led_alone},
               {"handed_over", c->handed_over},
               {"recovered_entries", c->recovered_entries},
               {"recovered_bytes", c->recovered_bytes},
               {"leader_asked", f.asked},
               {"leader_rounds", f.rounds},
               {"leader_awaited", f.asks + f.waiting},
               {"commands_sent", f.sent},
               {"commands_sent_unanswered", f.under_way},
               {"commands_sent_again", f.retried},
               {"outcomes_unknown", f.unknown}};
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        struct kv_datum row[] = {cl__text(all[i].name), cl__count(all[i].value)};
        emit(arg, row);
    }
}

/* -- jobs -------------------------------------------------------------------------------------- */

static const struct cl_view_column jobs_columns[] = {
    {"kind", KV_TEXT},     {"namespace", KV_INT8}, {"directory", KV_INT8},
    {"commands", KV_INT8}, {"removed", KV_INT8},   {"state", KV_TEXT},
};

static void expire_row(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct cl_expire_stats s;
    cl_expire_stats(n->expire, &s);
    const struct kv_datum row[] = {
        kv_text(BYTES_LIT("expire")),
        s.running ? kv_int(s.ns) : KV_NULL,
        KV_NULL,
        cl__count(s.commands),
        cl__count(s.removed),
        cl__text(s.running ? "running" : "idle"),
    };
    _Static_assert(ARRAY_LEN(row) == ARRAY_LEN(jobs_columns), "one value per column");
    emit(arg, row);
}

static void jobs_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    static const char *const states[] = {
        [CL_RECLAIM_IDLE] = "idle",
        [CL_RECLAIM_WAITING] = "waiting",
        [CL_RECLAIM_RUNNING] = "running",
        [CL_RECLAIM_UNKNOWN] = "unknown",
    };
    struct cl_reclaim_stats s;
    cl_reclaim_stats(n->reclaim, &s);
    bool any = s.state == CL_RECLAIM_WAITING || s.state == CL_RECLAIM_RUNNING;
    const struct kv_datum row[] = {
        kv_text(BYTES_LIT("remove_tree")),   any ? kv_int(s.ns) : KV_NULL,
        any ? kv_int(s.directory) : KV_NULL, kv_int((int64_t)s.commands),
        kv_int((int64_t)s.removed),          cl__text(states[s.state]),
    };
    _Static_assert(ARRAY_LEN(row) == ARRAY_LEN(jobs_columns), "one value per column");
    emit(arg, row);
    expire_row(n, emit, arg);
}

/* -- sinks ------------------------------------------------------------------------------------- */

static const struct cl_view_column sinks_columns[] = {
    {"source", KV_INT8},  {"pending", KV_INT8}, {"age", KV_INTERVAL},
    {"batches", KV_INT8}, {"records", KV_INT8}, {"bytes", KV_INT8},
    {"acks", KV_INT8},    {"retries", KV_INT8}, {"state", KV_TEXT}};

static void sinks_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct cl_sink_stats s;
    cl_sink_stats(n->sink, &s);
    struct kv_datum row[] = {cl__count(n->shards[CL_META]->id),
                             cl__count(s.pending),
                             kv_int(s.age_us > 0 ? s.age_us : 0),
                             cl__count(s.batches),
                             cl__count(s.records),
                             cl__count(s.items_bytes),
                             cl__count(s.acks),
                             cl__count(s.retries),
                             cl__text(s.sending ? "sending" : "idle")};
    _Static_assert(ARRAY_LEN(row) == ARRAY_LEN(sinks_columns), "one value per column");
    emit(arg, row);
}

/* -- settings ---------------------------------------------------------------------------------- */

static const struct cl_view_column settings_columns[] = {
    {"name", KV_TEXT},    {"value", KV_TEXT},   {"source", KV_TEXT},
    {"default", KV_TEXT}, {"choices", KV_TEXT}, {"description", KV_TEXT}};

struct emitter {
    cl_emit *emit;
    void *arg;
};

static void setting_row(void *arg, const struct config_setting *s, const char *value,
                        const char *source)
{
    const struct emitter *e = arg;
    struct kv_datum row[] = {cl__text(s->name), cl__text(value),      cl__text(source),
                             cl__text(s->def),  cl__text(s->choices), cl__text(s->help)};
    _Static_assert(ARRAY_LEN(row) == ARRAY_LEN(settings_columns), "one value per column");
    e->emit(e->arg, row);
}

static void settings_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct emitter e = {emit, arg};
    config_each(n->config, setting_row, &e);
}

/* -- build ------------------------------------------------------------------------------------- */

static const struct cl_view_column build_columns[] = {{"name", KV_TEXT}, {"value", KV_TEXT}};

static void build_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    UNUSED(n);
    static const char *const all[][2] = {
        {"version", METADB_VERSION},
        {"compiler", __VERSION__},
#ifdef METADB_FAULTS
        {"fault_points", "on"},
#else
        {"fault_points", "off"},
#endif
#ifdef METADB_SLOW_CHECKS
        {"slow_checks", "on"},
#else
        {"slow_checks", "off"},
#endif
    };
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        struct kv_datum row[] = {cl__text(all[i][0]), cl__text(all[i][1])};
        emit(arg, row);
    }
}

/* -- the list ---------------------------------------------------------------------------------- */

#define VIEW(n, c)                                                                                 \
    {                                                                                              \
        .name = #n, .comment = (c), .columns = n##_columns,                                        \
        .column_count = ARRAY_LEN(n##_columns), .rows = n##_rows                                   \
    }
#define VIEW_ELSEWHERE(n, c)                                                                       \
    {                                                                                              \
        .name = #n, .comment = (c), .columns = cl__##n##_columns, .column_count = CL__##n##_COUNT, \
        .rows = cl__##n##_rows                                                                     \
    }

static const struct cl_view views[] = {
    VIEW(nodes, "nodes of the cluster: this one, and what it knows of the others"),
    VIEW_ELSEWHERE(shards, "shards: leader, log positions, memory, state"),
    VIEW_ELSEWHERE(replicas,
                   "replicas of the shards: those here, and as their leader sees them the others"),
    VIEW_ELSEWHERE(peers, "connections to the other nodes"),
    VIEW_ELSEWHERE(memtables, "generations in memory, and what flushes did"),
    VIEW_ELSEWHERE(delete_density, "ranges of keys by how much of them is deleted in the store"),
    VIEW_ELSEWHERE(compactions, "compactions of such ranges since the start"),
    VIEW_ELSEWHERE(store, "what the store holds and did since the start"),
    VIEW_ELSEWHERE(log, "the shared log: counts and distributions"),
    VIEW_ELSEWHERE(stages, "how long commands spend between two stages, in microseconds"),
    VIEW(memory, "memory by use, with limits"),
    VIEW(counters, "what happened since the start"),
    VIEW(jobs, "background work: what remove_tree() detached, and expired objects, are taken away"),
    VIEW(sinks, "asynchronous quota and index updates on their way"),
    VIEW(settings, "settings with value and source"),
    VIEW(build, "how this binary was built"),
};

const struct cl_view *cl_views(unsigned *count)
{
    *count = ARRAY_LEN(views);
    return views;
}
