/*
 * cluster/shard.c — proposes the commands of a shard and follows them to the log.
 *
 * A command waits in the queue until the turn ends. Then all that wait are stamped in order, become
 * one step of the Raft group and one append to the log's open batch. Entries under way are kept by
 * index, so that apply finds who waits for each.
 *
 * Invariants
 *   P1  Stamps ascend with the index: a command is stamped just before it is proposed, in order.
 *   P2  `inflight` is ordered by index and holds only entries above `applied`.
 *   P3  A refused command was not seen by the Raft group: whether the log takes it is asked before.
 *   P4  A proposal's done is called once, and never inside cl_shard_propose.
 *
 * Threads: the owner reactor.
 */
#include "cluster/shard.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/host.h"
#include <stdlib.h>

#define COMMANDS_PER_STEP 1024u
#define BYTES_PER_STEP (16u << 20)

static const enum kv_table shard_tables[CL_SHARDS] = {[CL_META] = KV_META,
                                                      [CL_QUOTA] = KV_QUOTA,
                                                      [CL_INDEX] = KV_INDEX,
                                                      [CL_KV] = KV_KV,
                                                      [CL_OBJECT] = KV_OBJECT};

struct cl_shard *cl_shard_of(struct cl_node *n, enum kv_table t)
{
    if (t == KV_LIFECYCLE)
        t = KV_OBJECT;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (shard_tables[i] == t)
            return n->shards[i];
    }
    return NULL;
}

/* Filters are there from the start: they may not be what a small budget is spent on. */
static uint64_t filter_for_bytes(const struct cl_options *o)
{
    uint64_t most = o->memtables_budget / CL_SHARDS;
    return o->memtable_bytes < most ? o->memtable_bytes : most;
}

status cl_shard_open(struct cl_node *n, unsigned position, struct cl_shard **out, struct err *err)
{
    struct cl_shard *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    s->node = n;
    s->position = position;
    s->id = position + 1;
    s->table = shard_tables[position];
    s->name = kv_table_def(s->table)->name;
    s->fenced = ST_OK;
    arena_init(&s->arena, 16 * 1024);
    list_init(&s->waiting);
    list_init(&s->urgent);
    list_init(&s->inflight);
    histogram_init(&s->flush_us);
    struct kv_state_options options = {.shard = s->id,
                                       .table = s->table,
                                       .memtable_bytes = n->options.memtable_bytes,
                                       .filter_for_bytes = filter_for_bytes(&n->options),
                                       .retention_us = n->options.retention_us,
                                       .dense = n->options.compact_tombstones};
    status st = kv_state_open(n->store, &options, &s->state, err);
    if (st != ST_OK) {
        cl_shard_close(s);
        return st;
    }
    *out = s;
    return ST_OK;
}

void cl_shard_close(struct cl_shard *s)
{
    if (s == NULL)
        return;
    ASSERT(!s->flushing);
    ASSERT(!s->prefetching);
    raft_free(s->raft);
    if (s->state != NULL)
        kv_state_close(s->state);
    arena_fini(&s->arena);
    free(s);
}

bool cl_shard_ready(const struct cl_shard *s)
{
    return s->raft != NULL && raft_role(s->raft) == RAFT_LEADER && s->applied >= s->ready_index;
}

uint64_t cl_shard_leader(const struct cl_shard *s)
{
    uint64_t leader = cl_replica_node(raft_leader(s->raft));
    return leader != 0 ? leader : s->outside_leader;
}

/* This node leads, and nobody else. */
static bool leads(const struct cl_shard *s)
{
    return s->node->host == NULL || (s->leading && s->opened && cl_host_lease(s->node->host, s));
}

bool cl_shard_here(const struct cl_shard *s)
{
    const struct cl_node *n = s->node;
    return n->phase == CL_NODE_SERVING && n->failed == ST_OK && s->fenced == ST_OK && leads(s);
}

static status check_leads(const struct cl_shard *s, struct err *err)
{
    uint64_t leader = cl_shard_leader(s);
    if (leads(s))
        return ST_OK;
    err_set(err, ST_NOT_LEADER, "this node does not lead shard %llu (table %s)",
            (unsigned long long)s->id, s->name);
    const struct cl_node_address *a = cl_topology_find(&s->node->topology, leader);
    if (a != NULL && leader != s->node->topology.self)
        err_hint(err, "Node %llu, at %s, leads it.", (unsigned long long)leader, a->clients);
    else
        err_hint(err, "Try again: the nodes are choosing a leader.");
    return ST_NOT_LEADER;
}

bool cl_shard_idle(const struct cl_shard *s)
{
    return s->waiting_count == 0 && s->inflight_count == 0;
}

status cl_shard_serving(const struct cl_shard *s, struct err *err)
{
    const struct cl_node *n = s->node;
    if (n->phase >= CL_NODE_STOPPING)
        return err_set(err, ST_SHUTDOWN, "the server is stopping");
    if (n->failed != ST_OK)
        return err_set(err, ST_IO, "the server has lost its log or its store");
    if (s->fenced != ST_OK) {
        err_set(err, s->fenced, "shard %llu (table %s) is fenced: %s", (unsigned long long)s->id,
                s->name, status_text(s->fenced));
        err_hint(err, "See the server's log; the other tables are served.");
        return s->fenced;
    }
    if (n->phase != CL_NODE_SERVING)
        return err_set(err, ST_NOT_LEADER, "shard %llu is still recovering",
                       (unsigned long long)s->id);
    return check_leads(s, err);
}

status cl_shard_admit(struct cl_shard *s, struct err *err)
{
    struct cl_node *n = s->node;
    ST_TRY(cl_shard_serving(s, err));
    if (n->store_full || n->stream.refused == ST_DISK_FULL) {
        n->counters.full_refused++;
        err_set(err, ST_DISK_FULL, "the disk is full");
        err_hint(err, "Free space; writing goes on by itself then.");
        return ST_DISK_FULL;
    }
    if (n->memory_bytes + n->inflight_bytes + n->waiting_bytes > 2 * n->options.memtables_budget) {
        n->counters.memory_refused++;
        err_set(err, ST_NO_MEMORY, "too much is written and not yet flushed");
        err_hint(err, "Write more slowly or raise memory.budget.");
        return ST_NO_MEMORY;
    }
    return ST_OK;
}

bool cl_shard_current(const struct cl_shard *s)
{
    return cl_shard_here(s) && s->applied >= raft_commit_index(s->raft);
}

/* For a reader of all entries up to INDEX and nothing behind them: those have later stamps. */
static hlc_ts snapshot_at(struct cl_shard *s, uint64_t index)
{
    LIST_FOR_EACH(it, &s->inflight) {
        const struct cl_proposal *p = CONTAINER_OF(it, struct cl_proposal, node);
        if (p->index <= index)
            continue;
        ASSERT(p->stamp > kv_state_applied_ts(s->state));
        MARK("shard.snapshot_below_inflight");
        return p->stamp - 1;
    }
    return hlc_next(&s->node->hlc, cl__node_now_us(s->node));
}

struct cl_read_point cl_shard_read_point(struct cl_shard *s)
{
    uint64_t commit = raft_commit_index(s->raft);
    if (s->applied < commit)
        MARK("shard.leader_is_behind");
    return (struct cl_read_point){commit, snapshot_at(s, commit)};
}

hlc_ts cl_shard_snapshot(struct cl_shard *s)
{
    return snapshot_at(s, s->applied);
}

void cl_shard_propose(struct cl_shard *s, struct cl_proposal *p)
{
    p->queued_us = loop_now_us(s->node->reactors[0].loop);
    p->index = 0;
    p->size = (uint32_t)p->command->size;
    list_push_back(p->system ? &s->urgent : &s->waiting, &p->node);
    s->waiting_count++;
    s->node->waiting_bytes += p->size;
    cl__node_kick(s->node);
}

static void answer(struct cl_proposal *p, status st)
{
    buf_unref(p->command);
    p->command = NULL;
    p->done(p, st, NULL);
}

static struct cl_proposal *take_waiting(struct cl_shard *s, struct list *queue)
{
    struct list *node = list_pop_front(queue);
    if (node == NULL)
        return NULL;
    struct cl_proposal *p = CONTAINER_OF(node, struct cl_proposal, node);
    ASSERT(s->waiting_count > 0);
    s->waiting_count--;
    s->node->waiting_bytes -= p->size;
    return p;
}

/* Moves up to a step's worth from QUEUE to STEP, until STEP has BYTES_MAX. */
static size_t gather(struct cl_shard *s, struct list *queue, struct list *step, size_t bytes_max,
                     size_t *bytes_out)
{
    size_t count = 0;
    while (!list_empty(queue) && count < COMMANDS_PER_STEP && *bytes_out < bytes_max) {
        struct cl_proposal *p = take_waiting(s, queue);
        *bytes_out += p->command->size;
        list_push_back(step, &p->node);
        count++;
    }
    return count;
}

static void refuse(struct list *step, status st)
{
    struct list *node;
    while ((node = list_pop_front(step)) != NULL)
        answer(CONTAINER_OF(node, struct cl_proposal, node), st);
}

/* Stamps what is in STEP and hands it to the Raft group. */
static void propose(struct cl_shard *s, struct list *step, size_t count)
{
    struct cl_node *n = s->node;
    struct buf *commands[2 * COMMANDS_PER_STEP];
    struct raft_output out;
    size_t at = 0;
    int64_t unix_us = cl__node_now_us(n);
    uint64_t now_us = env_mono_us(n->env);

    ASSERT(count <= ARRAY_LEN(commands));
    LIST_FOR_EACH(it, step) {
        struct cl_proposal *p = CONTAINER_OF(it, struct cl_proposal, node);
        p->stamp = hlc_next(&n->hlc, unix_us);
        kv_command_stamp(p->command->data, p->stamp);
        p->proposed_us = now_us;
        commands[at++] = p->command;
    }
    struct raft_input in = {.kind = RAFT_PROPOSE,
                            .now_ms = now_us / 1000,
                            .commands = commands,
                            .command_count = count};
    status st = raft_step(s->raft, &in, &out);
    if (st != ST_OK) {
        refuse(step, st);
        return;
    }
    uint64_t index = out.first_proposed;
    struct list *node;
    while ((node = list_pop_front(step)) != NULL) {
        struct cl_proposal *p = CONTAINER_OF(node, struct cl_proposal, node);
        p->index = index++;
        list_push_back(&s->inflight, &p->node);
        s->inflight_count++;
        n->inflight_bytes += p->size;
        buf_unref(p->command); /* the group has references of its own */
        p->command = NULL;
    }
    n->counters.commands += count;
    cl__stream_append(&n->stream, s, &out);
    if (n->host != NULL)
        cl_host_output(n->host, s, &out);
}

/* No step takes more than what the memtables have room for, and one command. */
static size_t step_bytes(const struct cl_node *n)
{
    uint64_t held = n->memory_bytes + n->inflight_bytes, budget = n->options.memtables_budget;
    if (n->draining || n->phase == CL_NODE_STOPPING || held + BYTES_PER_STEP <= budget)
        return BYTES_PER_STEP;
    return held < budget ? budget - held : 1;
}

void cl_shard_propose_waiting(struct cl_shard *s)
{
    struct cl_node *n = s->node;
    if (s->waiting_count == 0 || !cl__stream_open(n))
        return;
    struct list step;
    size_t size = 0;
    list_init(&step);
    size_t count = gather(s, &s->urgent, &step, BYTES_PER_STEP, &size);
    if (cl__has_memory(n))
        count += gather(s, &s->waiting, &step, step_bytes(n), &size);
    else
        n->counters.memory_waits++;
    if (count == 0)
        return;
    n->stream.refused = raft_log_admit(n->stream.log, size + count * 64);
    if (n->stream.refused == ST_NO_MEMORY) {
        /* The log has not caught up yet: wait at the head of the queues, in the same order. */
        while (!list_empty(&step)) {
            struct cl_proposal *p = CONTAINER_OF(step.prev, struct cl_proposal, node);
            list_remove(&p->node);
            list_push_front(p->system ? &s->urgent : &s->waiting, &p->node);
            s->waiting_count++;
            n->waiting_bytes += p->size;
        }
        return;
    }
    if (s->fenced != ST_OK)
        refuse(&step, s->fenced);
    else if (n->host != NULL && !s->opened)
        refuse(&step, ST_NOT_LEADER); /* its stamps could be below those of an earlier leader */
    else if (fault_point("shard.propose"))
        refuse(&step, ST_NOT_LEADER);
    else if (n->stream.refused != ST_OK)
        refuse(&step, n->stream.refused);
    else
        propose(s, &step, count);
}

void cl_shard_stored(struct cl_shard *s, struct raft_input *in)
{
    struct raft_output out;
    uint64_t now_us = env_mono_us(s->node->env);
    bool clients = false;
    in->now_ms = now_us / 1000;
    (void)fault_point("shard.stored");
    LIST_FOR_EACH(it, &s->inflight) {
        struct cl_proposal *p = CONTAINER_OF(it, struct cl_proposal, node);
        if (p->index > in->stored_index)
            break;
        p->stored_us = now_us;
        clients |= !p->system;
    }
    uint64_t before = raft_commit_index(s->raft);
    status st = raft_step(s->raft, in, &out);
    ASSERT(st == ST_OK);
    cl__stream_append(&s->node->stream, s, &out);
    if (out.commit_index > before)
        s->committed_us = now_us;
    if (s->node->host != NULL)
        cl_host_output(s->node->host, s, &out);
    if (clients) {
        cl_shard_apply(s);
        return;
    }
    s->apply_later = true;
    cl__node_kick(s->node);
}

void cl_shard_campaign(struct cl_shard *s)
{
    struct raft_output out;
    struct raft_input in = {.kind = RAFT_CAMPAIGN, .now_ms = env_mono_us(s->node->env) / 1000};
    if (raft_log_admit(s->node->stream.log, 64) != ST_OK)
        return; /* the disk is full; the maintenance timer tries again */
    status st = raft_step(s->raft, &in, &out);
    ASSERT(st == ST_OK);
    cl__stream_append(&s->node->stream, s, &out);
    s->ready_index = raft_last_index(s->raft);
    LOG_INFO("shard.leader", LOG_U64("shard", s->id), LOG_STR("table", s->name),
             LOG_U64("term", raft_hard_state(s->raft).term), LOG_U64("applied", s->applied),
             LOG_U64("last", s->ready_index));
}

void cl_shard_abandon(struct cl_shard *s, status st)
{
    struct list step;
    struct list *node;
    list_init(&step);
    while ((node = list_pop_front(&s->inflight)) != NULL) {
        s->inflight_count--;
        s->node->inflight_bytes -= CONTAINER_OF(node, struct cl_proposal, node)->size;
        list_push_back(&step, node);
    }
    refuse(&step, ST_OUTCOME_UNKNOWN);
    struct cl_proposal *p;
    while ((p = take_waiting(s, &s->urgent)) != NULL || (p = take_waiting(s, &s->waiting)) != NULL)
        answer(p, st);
}
