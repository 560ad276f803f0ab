/*
 * cluster/stream.c — joins the Raft groups of a reactor to their log stream.
 *
 * Vocabulary: the *open batch* is what groups appended since the last submit; a *ticket* stands for
 * a submitted batch. All groups' entries of one turn go into one batch: one write, one sync.
 *
 * Invariants
 *   S1  At most options.inflight batches are submitted and not stored; what comes meanwhile stays
 *       in the open batch or in the shards' queues and merges.
 *   S2  A group hears RAFT_STORED only for entries that a stored ticket covers, in order.
 *   S3  Recovery holds the bytes of an entry only if the store does not hold what it does.
 *
 * Recovery feeds the groups while it reads. What it holds and what is then applied again is bounded
 * by what may be in the log and not in the store, see shard_flush.c, not by what there is.
 *
 * Threads: the owner reactor; recovery runs before it starts.
 */
#include "base/assert.h"
#include "base/log.h"
#include "cluster/host.h"
#include "cluster/snapshot.h"

bool cl__stream_open(const struct cl_node *n)
{
    const struct cl_stream *t = &n->stream;
    return t->submitted - t->stored < n->options.inflight && n->failed == ST_OK;
}

void cl__stream_append(struct cl_stream *t, struct cl_shard *s, const struct raft_output *out)
{
    status st = ST_OK;
    if (out->hard_state_changed)
        st = raft_log_hard_state(t->log, s->id, raft_hard_state(s->raft));
    if (st == ST_OK && out->append_count > 0)
        st = raft_log_append(t->log, s->id, out->append, out->append_count);
    if (st != ST_OK) {
        /* Asked before (raft_log_admit), so this is a log that failed meanwhile, or a first entry
         * that found no space. The group has it in its tail and could never store it. */
        cl__node_fail(s->node, st);
        return;
    }
    if (!out->hard_state_changed && out->append_count == 0)
        return;
    t->dirty = true;
    if (out->hard_state_changed)
        t->open.last[s->position].hard = raft_hard_state(s->raft);
    if (out->append_count > 0) {
        const struct raft_entry *last = &out->append[out->append_count - 1];
        t->open.last[s->position].index = last->index;
        t->open.last[s->position].term = last->term;
        t->open.last[s->position].epoch = out->append_epoch;
    }
}

void cl__stream_submit(struct cl_node *n)
{
    struct cl_stream *t = &n->stream;
    if (!t->dirty || !cl__stream_open(n))
        return;
    uint64_t ticket = raft_log_submit(t->log);
    ASSERT(ticket == t->submitted + 1);
    t->open.ticket = ticket;
    t->open.submitted_us = env_mono_us(n->env);
    t->ring[ticket % CL_INFLIGHT_MAX] = t->open;
    t->open = (struct cl_ticket){0};
    t->submitted = ticket;
    t->dirty = false;
}

/* An event may stand for several tickets: what they cover together is what the last of each shard
 * covers. */
static void on_stored(void *arg, uint64_t ticket)
{
    struct cl_node *n = arg;
    struct cl_stream *t = &n->stream;
    struct cl_ticket sum = {0};
    ASSERT(ticket <= t->submitted);
    cl__node_stir(n); /* there is room for a batch */
    while (t->stored < ticket) {
        const struct cl_ticket *one = &t->ring[++t->stored % CL_INFLIGHT_MAX];
        ASSERT_INV("S2", one->ticket == t->stored);
        for (unsigned i = 0; i < CL_SHARDS; i++) {
            if (one->last[i].index != 0) {
                sum.last[i].index = one->last[i].index;
                sum.last[i].term = one->last[i].term;
                sum.last[i].epoch = one->last[i].epoch;
            }
            if (one->last[i].hard.term != 0)
                sum.last[i].hard = one->last[i].hard;
        }
    }
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct raft_input in = {.kind = RAFT_STORED,
                                .stored_index = sum.last[i].index,
                                .stored_term = sum.last[i].term,
                                .stored_epoch = sum.last[i].epoch,
                                .stored_hard = sum.last[i].hard};
        if (in.stored_index != 0 || in.stored_hard.term != 0)
            cl_shard_stored(n->shards[i], &in);
    }
}

static void on_log_failed(void *arg, status st)
{
    cl__node_fail(arg, st);
}

/* What recovery knows of a group beside the group itself. */
struct recovered {
    uint64_t last, cut;     /* the last entry and the last cut in the log */
    uint64_t kept, skipped; /* entries above and below what the store holds */
    uint64_t refused;       /* the first entry that does not follow, 0 = none */
    status why;
};
struct recovery {
    struct cl_node *node;
    struct recovered group[CL_SHARDS];
    uint64_t foreign; /* records of groups that this node does not know */
};

static struct recovered *recovered_group(struct recovery *r, uint64_t group)
{
    if (group >= 1 && group <= CL_SHARDS)
        return &r->group[group - 1];
    r->foreign++;
    return NULL;
}

static void on_hard_state(void *arg, uint64_t group, struct raft_hard_state hs)
{
    struct recovery *r = arg;
    if (recovered_group(r, group) != NULL)
        raft_restore_hard_state(r->node->shards[group - 1]->raft, hs);
}

static void on_cut(void *arg, uint64_t group, uint64_t index)
{
    struct recovered *g = recovered_group(arg, group);
    if (g != NULL && index > g->cut)
        g->cut = index;
}

/* S3: what the store has needs no bytes. */
static bool wanted(void *arg, uint64_t group, uint64_t index)
{
    const struct recovery *r = arg;
    return group >= 1 && group <= CL_SHARDS &&
           index > kv_state_record(r->node->shards[group - 1]->state)->applied_index;
}

static status count_command(struct cl_node *n, const struct raft_entry *entry)
{
    struct kv_command c;
    if (entry->data == NULL)
        return ST_CORRUPT;
    ST_TRY(kv_command_decode(buf_bytes(entry->data), &c));
    hlc_raise(&n->hlc, c.stamp);
    n->counters.recovered_bytes += entry->data->size;
    return ST_OK;
}

static status on_entry(void *arg, uint64_t group, const struct raft_entry *entry)
{
    struct recovery *r = arg;
    struct recovered *g = recovered_group(r, group);
    if (g == NULL)
        return ST_OK;
    g->last = entry->index;
    if (wanted(r, group, entry->index)) {
        g->kept++;
        r->node->counters.recovered_entries++;
        if (entry->kind == RAFT_ENTRY_COMMAND)
            ST_TRY(count_command(r->node, entry));
    } else {
        g->skipped++;
    }
    if (g->refused == 0 && (g->why = raft_restore_entry(r->node->shards[group - 1]->raft, entry)))
        g->refused = entry->index; /* said at the end: what the log has cut tells more */
    return ST_OK;
}

/* Who belongs to S by what the store has; later changes are in the log. */
static status stored_members(const struct cl_shard *s, struct raft_members *out)
{
    const struct cl_identity *id = &s->node->identity;
    struct cl_installed installed;
    struct arena a;
    bytes kept;
    if (cl_installed_find(s, &installed)) {
        *out = installed.snapshot.members;
        return ST_OK;
    }
    arena_init(&a, 512);
    status st = kv_state_kept(s->node->store, s->id, &a, &kept);
    if (st == ST_OK)
        st = raft_members_decode(kept, out);
    arena_fini(&a);
    if (st != ST_NOT_FOUND)
        return st;
    *out = (struct raft_members){.count = id->first_count};
    for (unsigned i = 0; i < id->first_count; i++)
        out->at[i] = (struct raft_member){.id = id->first[i], .role = RAFT_VOTER};
    if (out->count == 0)
        out->at[out->count++] = (struct raft_member){.id = id->node_id, .role = RAFT_VOTER};
    return ST_OK;
}

static status prepare_group(struct cl_shard *s, struct err *err)
{
    const struct kv_shard_record *record = kv_state_record(s->state);
    struct raft_config config = {.self = cl_identity_replica(&s->node->identity),
                                 .election_ms = 1000,
                                 .heartbeat_ms = 100,
                                 .seed = s->node->identity.store_id ^ s->id};
    if (s->node->host != NULL)
        cl_host_configure(s->node->host, s, &config);
    status st = stored_members(s, &config.members);
    if (st != ST_OK)
        return err_set(err, st, "the store does not say who has replicas of shard %llu",
                       (unsigned long long)s->id);
    s->raft =
        raft_new(&config, (struct raft_hard_state){0}, record->applied_index, record->applied_term);
    s->applied = record->applied_index;
    hlc_raise(&s->node->hlc, record->applied_ts);
    return ST_OK;
}

/* A node that knows no others must be the only member. */
static status check_members(const struct cl_shard *s, struct err *err)
{
    struct raft_members m;
    if (s->node->host != NULL)
        return ST_OK;
    raft_members_at(s->raft, raft_last_index(s->raft), &m);
    if (m.count == 1 && m.at[0].id == cl_identity_replica(&s->node->identity))
        return ST_OK;
    err_set(err, ST_INVALID,
            "shard %llu has replicas on other nodes, but \"cluster.nodes\" names none",
            (unsigned long long)s->id);
    err_hint(err, "Start the node with the list of its cluster.");
    return ST_INVALID;
}

/* Did the process end after the state of S had come from another replica, and before the log said
 * so? The log then has at least the term in which it came: without that it is a lost one. */
static bool is_unsaid(const struct cl_shard *s, uint64_t last)
{
    struct cl_installed installed;
    return s->node->host != NULL &&
           (kv_state_record(s->state)->applied_index > last || raft_restored_other(s->raft)) &&
           cl_installed_find(s, &installed) && raft_hard_state(s->raft).term >= installed.hard_term;
}

static status check_group(struct cl_shard *s, const struct recovered *g, struct err *err)
{
    const struct kv_shard_record *record = kv_state_record(s->state);
    uint64_t last = g->last > g->cut ? g->last : g->cut;
    s->unsaid = is_unsaid(s, last);
    /* An entry is durable in the log before it is applied, so a store that knows more is not the
     * log's, or the log has lost what was durable. With it went the vote, so nothing may go on. */
    if (record->applied_index > last && !s->unsaid) {
        err_set(err, ST_CORRUPT,
                "the store holds shard %llu up to entry %llu, but its log ends with entry %llu",
                (unsigned long long)s->id, (unsigned long long)record->applied_index,
                (unsigned long long)last);
        err_hint(err, "Put back the log that belongs to this store, or restore a backup.");
        return ST_CORRUPT;
    }
    if (g->cut > record->applied_index && !s->node->options.empty_store)
        return err_set(err, ST_CORRUPT,
                       "the log of shard %llu is cut up to entry %llu, but the store holds it only "
                       "up to entry %llu",
                       (unsigned long long)s->id, (unsigned long long)g->cut,
                       (unsigned long long)record->applied_index);
    if (raft_restored_other(s->raft) && !s->unsaid)
        return err_set(err, ST_CORRUPT,
                       "the log of shard %llu holds another entry %llu than the store",
                       (unsigned long long)s->id, (unsigned long long)record->applied_index);
    if (g->refused != 0)
        return err_set(err, g->why, "entry %llu of shard %llu does not follow what the store holds",
                       (unsigned long long)g->refused, (unsigned long long)s->id);
    return ST_OK;
}

status cl__stream_recover(struct cl_node *n, struct err *err)
{
    struct recovery r = {.node = n};
    struct arena a;
    arena_init(&a, 1024);
    const struct cl_log_options *o = &n->options.log;
    struct raft_log_options options = {.dir = cl_identity_path(&a, n->dir, "log/0"),
                                       .cluster_id = n->identity.cluster_id,
                                       .store_id = n->identity.store_id,
                                       .stream = 0,
                                       .segment_bytes = o->segment_bytes,
                                       .batch_bytes = o->batch_bytes,
                                       .batch_entries = o->batch_entries,
                                       .group_wait_us = o->group_wait_us,
                                       .sync_delay_us = o->sync_delay_us,
                                       .keep_all = o->keep_all,
                                       .writer = o->writer,
                                       .inflight = n->options.inflight};
    struct raft_log_recovery recovery = {.arg = &r,
                                         .on_hard_state = on_hard_state,
                                         .wanted = wanted,
                                         .on_entry = on_entry,
                                         .on_cut = on_cut};
    status st = n->env->ops->mkdir(n->env, cl_identity_path(&a, n->dir, "log"));
    if (st != ST_OK && st != ST_EXISTS) {
        err_set(err, st, "could not make \"%s/log\"", n->dir);
        goto out;
    }
    /* The names of log and store, also where an earlier start died before this. */
    st = n->env->ops->sync_dir(n->env, n->dir);
    if (st != ST_OK) {
        err_set(err, st, "could not sync \"%s\"", n->dir);
        goto out;
    }
    for (unsigned i = 0; i < CL_SHARDS; i++)
        ST_GOTO(out, prepare_group(n->shards[i], err));
    ST_GOTO(out, raft_log_open(n->env, &options, &recovery, &n->stream.log, err));
    if (r.foreign > 0) {
        st = err_set(err, ST_INVALID,
                     "the log in \"%s\" has groups that this version does not know", n->dir);
        goto out;
    }
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        LOG_INFO("shard.recovered", LOG_U64("shard", n->shards[i]->id),
                 LOG_U64("entries", r.group[i].kept), LOG_U64("skipped", r.group[i].skipped),
                 LOG_U64("persisted", kv_state_record(n->shards[i]->state)->applied_index));
        ST_GOTO(out, check_group(n->shards[i], &r.group[i], err));
        ST_GOTO(out, check_members(n->shards[i], err));
    }
out:
    arena_fini(&a);
    return st;
}

/* Before anything that follows it is appended (raft/restore.c). */
static void say_installed(struct cl_node *n, struct cl_shard *s)
{
    struct cl_installed in;
    bool found = cl_installed_find(s, &in);
    ASSERT(found);
    struct raft_entry entry = {.index = in.snapshot.index,
                               .term = in.snapshot.term,
                               .kind = RAFT_ENTRY_SNAPSHOT,
                               .data = raft_members_encode(&in.snapshot.members)};
    LOG_INFO("shard.installed_before", LOG_U64("shard", s->id), LOG_U64("index", entry.index));
    status st = raft_log_append(n->stream.log, s->id, &entry, 1);
    buf_unref(entry.data);
    s->unsaid = false;
    n->stream.dirty = true;
    if (st != ST_OK)
        cl__node_fail(n, st);
    else
        raft_log_cut(n->stream.log, s->id, entry.index);
}

void cl__stream_start(struct cl_node *n)
{
    struct raft_log_events events = {.arg = n, .on_stored = on_stored, .on_failed = on_log_failed};
    raft_log_start(n->stream.log, n->driven ? NULL : n->reactors[0].mailbox, &events);
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (n->shards[i]->unsaid)
            say_installed(n, n->shards[i]);
    }
}
