/*
 * cluster/views_shards.c — metadb.shards, metadb.replicas, metadb.memtables.
 */
#include "base/assert.h"
#include "cluster/views_internal.h"

const struct cl_view_column cl__shards_columns[] = {
    {"shard", KV_INT8},     {"table", KV_TEXT},
    {"state", KV_TEXT},     {"leader", KV_INT8},
    {"term", KV_INT8},      {"last", KV_INT8},
    {"committed", KV_INT8}, {"applied", KV_INT8},
    {"persisted", KV_INT8}, {"applied_at", KV_TIMESTAMPTZ},
    {"memory", KV_INT8},    {"generations", KV_INT8},
    {"entries", KV_INT8},   {"queue", KV_INT8},
    {"waiting", KV_INT8},   {"in_flight", KV_INT8},
    {"stalls", KV_INT8},    {"cuts", KV_INT8}};

static const char *state_name(const struct cl_shard *s)
{
    if (s->fenced != ST_OK)
        return "fenced";
    if (!cl_shard_ready(s))
        return "recovering";
    if (s->holds > 0)
        return "held";
    return s->prefetching ? "waiting for disk" : "serving";
}

void cl__shards_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        const struct cl_shard *s = n->shards[i];
        struct kv_state_stats stats;
        hlc_ts ts = kv_state_applied_ts(s->state);
        kv_state_stats(s->state, &stats);
        struct kv_datum row[] = {cl__count(s->id),
                                 cl__text(s->name),
                                 cl__text(state_name(s)),
                                 cl__count(cl_shard_leader(s)),
                                 cl__count(raft_hard_state(s->raft).term),
                                 cl__count(raft_last_index(s->raft)),
                                 cl__count(raft_commit_index(s->raft)),
                                 cl__count(s->applied),
                                 cl__count(stats.persisted_index),
                                 ts != 0 ? kv_int(cl__timestamptz(hlc_unix_us(ts))) : KV_NULL,
                                 cl__count(stats.memory_bytes),
                                 cl__count(stats.generations),
                                 cl__count(stats.entries),
                                 cl__count(stats.queue_length),
                                 cl__count(s->waiting_count),
                                 cl__count(s->inflight_count),
                                 cl__count(s->stalls),
                                 cl__count(s->cuts)};
        _Static_assert(ARRAY_LEN(row) == ARRAY_LEN(cl__shards_columns), "one value per column");
        emit(arg, row);
    }
}

const struct cl_view_column cl__replicas_columns[] = {
    {"shard", KV_INT8},     {"table", KV_TEXT}, {"node", KV_INT8},         {"stream", KV_INT4},
    {"role", KV_TEXT},      {"kind", KV_TEXT},  {"state", KV_TEXT},        {"leader", KV_INT8},
    {"term", KV_INT8},      {"last", KV_INT8},  {"committed", KV_INT8},    {"applied", KV_INT8},
    {"persisted", KV_INT8}, {"lag", KV_INT8},   {"oldest_needed", KV_INT8}};

static const char *role_name(enum raft_role role)
{
    switch (role) {
    case RAFT_FOLLOWER: return "follower";
    case RAFT_CANDIDATE: return "candidate";
    case RAFT_LEADER: return "leader";
    }
    return "unknown";
}

static const char *kind_name(enum raft_member_role role)
{
    return role == RAFT_VOTER ? "voter" : "learner";
}

/* The replica here. */
static void own_replica(const struct cl_shard *s, cl_emit *emit, void *arg)
{
    struct raft_members members;
    struct kv_state_stats stats;
    uint64_t self = s->node->replica, commit = raft_commit_index(s->raft);
    kv_state_stats(s->state, &stats);
    raft_members_at(s->raft, commit, &members);
    unsigned at = raft_members_find(&members, self);
    bool member = at != RAFT_MEMBERS_MAX && s->outside_leader == 0;
    const char *state = s->fenced != ST_OK ? "fenced" : member ? "here" : "left over";
    if (!member && raft_last_index(s->raft) == 0)
        state = "waits to be added";
    struct kv_datum row[] = {cl__count(s->id),
                             cl__text(s->name),
                             cl__count(cl_replica_node(self)),
                             kv_int(0),
                             cl__text(role_name(raft_role(s->raft))),
                             cl__text(member ? kind_name(members.at[at].role) : "none"),
                             cl__text(state),
                             cl__count(cl_shard_leader(s)),
                             cl__count(raft_hard_state(s->raft).term),
                             cl__count(raft_last_index(s->raft)),
                             cl__count(commit),
                             cl__count(s->applied),
                             cl__count(stats.persisted_index),
                             cl__count(commit - s->applied),
                             cl__count(raft_oldest_needed(s->raft))};
    _Static_assert(ARRAY_LEN(row) == CL__replicas_COUNT, "one value per column");
    emit(arg, row);
}

/* A replica elsewhere, as the leader here sees it: what it acknowledged, what it lacks. */
static void other_replica(const struct cl_shard *s, const struct raft_peer *p, cl_emit *emit,
                          void *arg)
{
    static const char *const states[] = {[RAFT_PEER_PROBE] = "probed",
                                         [RAFT_PEER_PIPELINE] = "streaming",
                                         [RAFT_PEER_SNAPSHOT] = "needs a snapshot"};
    uint64_t last = raft_last_index(s->raft);
    struct kv_datum row[] = {cl__count(s->id),
                             cl__text(s->name),
                             cl__count(cl_replica_node(p->id)),
                             KV_NULL,
                             cl__text("follower"),
                             cl__text(kind_name(p->role)),
                             cl__text(p->down ? "down" : states[p->state]),
                             cl__count(cl_shard_leader(s)),
                             cl__count(raft_hard_state(s->raft).term),
                             cl__count(p->match),
                             KV_NULL,
                             KV_NULL,
                             KV_NULL,
                             cl__count(last > p->match ? last - p->match : 0),
                             KV_NULL};
    _Static_assert(ARRAY_LEN(row) == CL__replicas_COUNT, "one value per column");
    emit(arg, row);
}

void cl__replicas_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct raft_peer p;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        const struct cl_shard *s = n->shards[i];
        own_replica(s, emit, arg);
        for (unsigned k = 0; k < RAFT_MEMBERS_MAX; k++) {
            if (raft_peer(s->raft, k, &p) && p.id != n->replica)
                other_replica(s, &p, emit, arg);
        }
    }
}

const struct cl_view_column cl__memtables_columns[] = {
    {"shard", KV_INT8},        {"table", KV_TEXT},        {"generations", KV_INT8},
    {"entries", KV_INT8},      {"bytes", KV_INT8},        {"oldest", KV_TIMESTAMPTZ},
    {"flushing", KV_TEXT},     {"flushes", KV_INT8},      {"flush_errors", KV_INT8},
    {"flush_p50_us", KV_INT8}, {"flush_p99_us", KV_INT8}, {"keys_flushed", KV_INT8},
    {"keys_pruned", KV_INT8},  {"tombstones", KV_INT8},   {"versions_pruned", KV_INT8},
    {"deltas_folded", KV_INT8}};

void cl__memtables_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        const struct cl_shard *s = n->shards[i];
        struct kv_state_stats stats;
        kv_state_stats(s->state, &stats);
        hlc_ts oldest = stats.oldest_generation;
        struct kv_datum row[] = {cl__count(s->id),
                                 cl__text(s->name),
                                 cl__count(stats.generations),
                                 cl__count(stats.entries),
                                 cl__count(stats.memory_bytes),
                                 oldest != 0 ? kv_int(cl__timestamptz(hlc_unix_us(oldest)))
                                             : KV_NULL,
                                 cl__text(s->flushing ? "yes" : "no"),
                                 cl__count(stats.flushes),
                                 cl__count(s->flush_errors),
                                 cl__count(histogram_percentile(&s->flush_us, 50)),
                                 cl__count(histogram_percentile(&s->flush_us, 99)),
                                 cl__count(stats.keys_flushed),
                                 cl__count(stats.keys_pruned),
                                 cl__count(stats.tombstones_flushed),
                                 cl__count(stats.versions_pruned),
                                 cl__count(stats.deltas_folded)};
        _Static_assert(ARRAY_LEN(row) == ARRAY_LEN(cl__memtables_columns), "one value per column");
        emit(arg, row);
    }
}
