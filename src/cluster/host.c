/*
 * cluster/host.c — messages, time and liveness for the Raft groups of a node among others.
 *
 * A message of a group goes into the open frame of its node, which leaves at the end of the turn:
 * what all groups say to a node in one turn is one frame. Time, sleep and the liveness of the other
 * processes are those of groups.c, which this file joins to shards, log and transport.
 *
 * Invariants
 *   H1  A message reaches a group only from the node whose replica sent it.
 *   H2  No entry and no vote is taken that the log has no room for: the message is dropped, and
 *       Raft sends it again.
 *   H3  A group that is fenced, or whose log is lost, gets neither messages nor time: it leads and
 *       votes no more, and the others go on without it; beacons tell those that sleep under it.
 *   H5  A message leaves only when the read floor that it may speak of is on disk; one of a node
 *       counts only when that node's store is.
 *   H6  A node with a new directory sends no vote and asks for none before each other node has
 *       taken its connection: until then one of them may know it under an older store.
 *   H7  While the log hangs (it has not stored a batch for an election's time) no group leads here,
 *       whether it has something to store or not, or stands for election.
 *   H4  What a group had proposed when it ceased to lead is answered ST_OUTCOME_UNKNOWN at once.
 *
 * Threads: the owner reactor; new and configure run before it starts.
 */
#include "cluster/host.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/membership.h"
#include "cluster/others.h"
#include "cluster/roles.h"
#include "cluster/service.h"
#include "cluster/snapshot.h"
#include "raft/message.h"
#include <stdlib.h>

#define READ_AHEAD_US 1000000
#define LONE_AHEAD_MS 3000u /* more: it is raised by the maintenance timer alone */
#define PENDING_BYTES (64u << 20)
#define APPEND_BYTES (1u << 20)
/* While a snapshot is under way more is kept: what is written meanwhile, or it comes too late. */
#define SNAPSHOT_KEEP_TIMES 4u
#define SNAPSHOT_KEEP_LEAST (16u << 20)

struct cl_host {
    struct cl_node *node;
    struct cl_groups *groups;
    struct obuf message; /* on its way into a frame */
    uint64_t dropped;    /* messages that the log had no room for */
    uint64_t held;       /* messages that promised what is not on disk */
    bool disk_hangs;     /* what the groups were told */
    bool started;
};

static uint64_t now_ms(const struct cl_host *h)
{
    return env_mono_us(h->node->env) / 1000;
}

static bool may_hand_over(const struct cl_host *h, const struct cl_shard *s)
{
    const struct cl_node *n = h->node;
    return s->leading && !n->stop_given_up && env_mono_us(n->env) < n->hand_over_us;
}

/* H3 */
bool cl_host_takes_part(const struct cl_host *h, const struct cl_shard *s)
{
    const struct cl_node *n = h->node;
    if (n->failed != ST_OK || s->fenced != ST_OK || n->phase == CL_NODE_STOPPED)
        return false;
    return n->phase != CL_NODE_STOPPING || !cl_shard_idle(s) || may_hand_over(h, s);
}

/* -- outputs ----------------------------------------------------------------------------------- */

static bool is_vote(const struct raft_message *m)
{
    return m->kind == RAFT_MSG_VOTE || (m->kind == RAFT_MSG_VOTE_REPLY && m->vote_reply.granted);
}

static void send(struct cl_host *h, const struct cl_shard *s, const struct raft_message *m)
{
    struct cl_others *others = h->node->others;
    uint64_t node = cl_replica_node(m->to);
    if (cl_others_replica(others, node) != m->to)
        return; /* its disk is gone: what answers there is another replica */
    if (!cl_others_covers(others, raft_read_floor(s->raft)) ||
        (is_vote(m) && !cl_others_may_vote(others))) { /* H5, H6 */
        h->held++;
        return;
    }
    obuf_reset(&h->message);
    raft_message_encode(m, &h->message);
    bytes payload = bytes_make(h->message.data, h->message.size);
    /* False: no connection or a full queue. Raft sends again what matters. */
    (void)cl_transport_message(h->node->transport, node, s->id, m->from, m->to, payload);
}

/* Is the process there that has REPLICA? */
static bool replica_up(const struct cl_host *h, uint64_t replica)
{
    uint64_t node = cl_replica_node(replica);
    return cl_others_replica(h->node->others, node) == replica &&
           cl_transport_up(h->node->transport, node);
}

void cl_host_look(struct cl_host *h, struct cl_shard *s)
{
    struct raft_members m;
    raft_members_at(s->raft, raft_last_index(s->raft), &m);
    for (unsigned i = 0; i < m.count; i++) {
        if (m.at[i].id != h->node->replica && !replica_up(h, m.at[i].id))
            cl_host_step(h, s, &(struct raft_input){.kind = RAFT_PEER_DOWN, .peer = m.at[i].id});
    }
}

static void log_role(const struct cl_shard *s, const char *event)
{
    LOG_INFO(event, LOG_U64("shard", s->id), LOG_STR("table", s->name),
             LOG_U64("term", raft_hard_state(s->raft).term), LOG_U64("leader", cl_shard_leader(s)),
             LOG_U64("applied", s->applied), LOG_U64("last", raft_last_index(s->raft)));
}

static void role_changed(struct cl_host *h, struct cl_shard *s)
{
    bool leads = raft_role(s->raft) == RAFT_LEADER;
    uint64_t term = raft_hard_state(s->raft).term;
    if (s->leading && (!leads || term != s->leading_term)) {
        s->leading = s->opened = false;
        h->node->counters.handed_over += s->handing;
        log_role(s, "shard.deposed");
        cl_shard_abandon(s, ST_NOT_LEADER); /* H4 */
    }
    if (leads && !s->leading) {
        s->leading = true;
        s->leading_term = term;
        s->ready_index = raft_last_index(s->raft);
        s->gather_index = UINT64_MAX;
        /* Before it serves: a flush for a snapshot may wait for log time, and serving for that. */
        cl__node_raise_now(h->node, kv_state_applied_ts(s->state));
        if (term == s->asked_term)
            h->node->counters.led_asked++;
        else
            h->node->counters.led_alone++;
        log_role(s, "shard.leader");
        cl_host_look(h, s);
    }
}

void cl_host_output(struct cl_host *h, struct cl_shard *s, const struct raft_output *out)
{
    uint64_t snapshot_for = out->snapshot_for, from = out->install_from;
    if (out->read_token != 0)
        s->reads_confirmed = out->read_token;
    struct raft_snapshot snapshot = {0};
    bool install = out->install != NULL, changed = out->role_changed;
    if (install)
        snapshot = *out->install;
    for (size_t i = 0; i < out->send_count; i++)
        send(h, s, &out->send[i]);
    cl_groups_note(h->groups, &s->group);
    /* From here on other steps may follow: OUT is no longer there. */
    if (changed || s->leading != (raft_role(s->raft) == RAFT_LEADER))
        role_changed(h, s);
    if (snapshot_for != 0)
        cl_snapshot_begin(s, snapshot_for);
    if (install)
        cl_snapshot_fetch(s, cl_replica_node(from), &snapshot);
    cl__node_kick(h->node); /* the log may have a batch to take, the timer another time */
}

/* -- inputs ------------------------------------------------------------------------------------ */

/* Reads at times up to this may be asked for soon; a majority has to know it first. */
static hlc_ts read_wish(struct cl_host *h)
{
    struct cl_node *n = h->node;
    hlc_ts ahead = hlc_from_us(cl__node_now_us(n) + READ_AHEAD_US);
    hlc_ts least = n->hlc.last + hlc_ms(READ_AHEAD_US / 2000);
    return ahead > least ? ahead : least;
}

status cl_host_try(struct cl_host *h, struct cl_shard *s, struct raft_input *in)
{
    struct raft_output out;
    uint64_t before = raft_commit_index(s->raft), now_us = env_mono_us(h->node->env);
    in->now_ms = now_us / 1000;
    status st = raft_step(s->raft, in, &out);
    if (st == ST_CORRUPT) {
        LOG_ERROR("shard.other_history", LOG_U64("shard", s->id),
                  LOG_U64("committed", raft_commit_index(s->raft)));
        cl_shard_fence(s, ST_CORRUPT);
        return st;
    }
    if (st != ST_OK) {
        LOG_DEBUG("shard.step_refused", LOG_U64("shard", s->id), LOG_STR("why", status_text(st)));
        return st;
    }
    cl__stream_append(&h->node->stream, s, &out);
    uint64_t commit = out.commit_index;
    cl_host_output(h, s, &out);
    if (commit == before)
        return ST_OK;
    s->committed_us = now_us;
    if (s->inflight_count > 0)
        cl_shard_apply(s);
    else
        s->apply_later = true;
    return ST_OK;
}

/* Where a refusal changes nothing: Raft, or the next tick, tries again. */
void cl_host_step(struct cl_host *h, struct cl_shard *s, struct raft_input *in)
{
    status st = cl_host_try(h, s, in);
    UNUSED(st);
}

static size_t log_bytes(const struct raft_message *m)
{
    size_t sum = 64; /* a hard state */
    if (m->kind != RAFT_MSG_APPEND)
        return sum;
    for (size_t i = 0; i < m->append.count; i++)
        sum += 64 + (m->append.entries[i].data != NULL ? m->append.entries[i].data->size : 0);
    return sum;
}

/* Of the first leader that is heard of: what a reader of the own state has to wait for. */
static void note_leader(struct cl_shard *s, const struct raft_message *m)
{
    bool leads =
        m->kind == RAFT_MSG_APPEND || m->kind == RAFT_MSG_HEARTBEAT || m->kind == RAFT_MSG_SNAPSHOT;
    if (leads && raft_leader(s->raft) == m->from)
        s->outside_leader = s->group.hold_ms = 0; /* it counts this replica in */
    if (s->heard || !leads || raft_leader(s->raft) != m->from)
        return;
    s->heard = true;
    s->heard_commit = m->lead.commit;
}

bool cl_host_joined(const struct cl_shard *s)
{
    return s->opened || (s->heard && s->applied >= s->heard_commit);
}

static void on_message(void *arg, uint64_t node, uint64_t group, uint64_t from, uint64_t to,
                       bytes payload)
{
    struct cl_node *n = arg;
    struct cl_host *h = n->host;
    struct raft_message m;
    if (!h->started || group < 1 || group > CL_SHARDS || to != n->replica)
        return;
    struct cl_shard *s = n->shards[group - 1];
    if (!cl_host_takes_part(h, s) || !cl_others_knows(n->others, node) || /* H5 */
        from != cl_others_replica(n->others, node) ||                     /* H1 */
        cl_member_told(s, node, payload))
        return;
    if (raft_message_decode(payload, &m) != ST_OK || m.from != from || m.to != to) { /* H1 */
        LOG_WARN("shard.bad_message", LOG_U64("shard", group), LOG_U64("node", node));
        return;
    }
    if (m.kind == RAFT_MSG_TIMEOUT_NOW)
        s->asked_term = raft_hard_state(s->raft).term + 1;
    if (raft_log_admit(n->stream.log, log_bytes(&m)) == ST_OK)
        cl_host_step(h, s, &(struct raft_input){.kind = RAFT_MESSAGE, .message = &m});
    else
        h->dropped++; /* H2 */
    note_leader(s, &m);
    if (m.kind == RAFT_MSG_VOTE && s->opened)
        cl_member_tell(s, from);
    raft_message_fini(&m);
}

static void on_changed(void *arg, uint64_t node, bool up)
{
    struct cl_node *n = arg;
    struct cl_host *h = n->host;
    uint64_t before = cl_others_replica(n->others, node);
    if (up)
        cl_others_met(n->others, node, cl_transport_store(n->transport, node),
                      cl_transport_replica(n->transport, node));
    uint64_t replica = cl_others_replica(n->others, node);
    cl_snapshots_changed(n->snapshots, node, up);
    cl__node_kick(n);
    if (before != replica)
        cl_groups_forget(h->groups, before);
    cl_groups_changed(h->groups, replica, up);
}

static void fill_beacon(void *arg, uint64_t node, struct obuf *out)
{
    const struct cl_node *n = arg;
    if (n->host->started)
        cl_groups_fill_beacon(n->host->groups, cl_others_replica(n->others, node), out);
}

static void on_beacon(void *arg, uint64_t node, bytes payload)
{
    const struct cl_node *n = arg;
    if (!n->host->started || payload.size == 0 || !cl_others_knows(n->others, node)) /* H5 */
        return;
    if (cl_groups_beacon(n->host->groups, cl_others_replica(n->others, node), payload) != ST_OK)
        LOG_WARN("net.bad_beacon", LOG_U64("node", node));
}

static void on_request(void *arg, const struct cl_incoming *in, uint64_t method,
                       uint64_t patience_us, bytes payload)
{
    struct cl_node *n = arg;
    UNUSED(patience_us);
    cl_service_request(n->service, in, method, payload);
}

static uint64_t store_of(void *arg, uint64_t node)
{
    struct cl_node *n = arg;
    return cl_others_store(n->others, node);
}

/* A directory that has joined does not know who was first: it takes everybody's word. */
static bool is_first(void *arg, uint64_t node)
{
    const struct cl_node *n = arg;
    for (unsigned i = 0; i < n->identity.first_count; i++) {
        if (n->identity.first[i] == node)
            return true;
    }
    return n->identity.joined;
}

const struct cl_transport_events *cl_host_events(void)
{
    static const struct cl_transport_events events = {.message = on_message,
                                                      .request = on_request,
                                                      .changed = on_changed,
                                                      .store_of = store_of,
                                                      .fill_beacon = fill_beacon,
                                                      .beacon = on_beacon,
                                                      .is_first = is_first,
                                                      .chunk = cl_snapshots_chunk,
                                                      .credit = cl_snapshots_credit};
    return &events;
}

/* -- time -------------------------------------------------------------------------------------- */

static void tick(struct cl_host *h, struct cl_shard *s, struct raft_input *in)
{
    if (raft_log_admit(h->node->stream.log, 64) != ST_OK)
        return; /* an election must be written down */
    if (raft_role(s->raft) == RAFT_LEADER)
        in->read_bound = read_wish(h);
    cl_host_step(h, s, in);
}

static void on_group(void *arg, struct cl_group *g, struct raft_input *in)
{
    struct cl_host *h = arg;
    struct cl_shard *s = CONTAINER_OF(g, struct cl_shard, group);
    if (!h->started || !cl_host_takes_part(h, s))
        return;
    if (in->kind == RAFT_TICK)
        tick(h, s, in);
    else
        cl_host_step(h, s, in);
}

static uint64_t on_wish(void *arg)
{
    return read_wish(arg);
}

static bool on_covers(void *arg, uint64_t bound)
{
    const struct cl_host *h = arg;
    return cl_others_covers(h->node->others, bound);
}

static const struct cl_groups_events group_events = {
    .step = on_group, .read_wish = on_wish, .covers = on_covers};

static bool log_hangs(const struct cl_node *n)
{
    const struct cl_stream *t = &n->stream;
    const struct cl_ticket *oldest = &t->ring[(t->stored + 1) % CL_INFLIGHT_MAX];
    return t->submitted > t->stored && n->phase == CL_NODE_SERVING &&
           env_mono_us(n->env) - oldest->submitted_us >= n->options.election_us;
}

/* H7 */
static void look_at_log(struct cl_host *h)
{
    bool hangs = log_hangs(h->node);
    if (hangs == h->disk_hangs)
        return;
    h->disk_hangs = hangs;
    if (hangs)
        LOG_WARN("node.log_hangs",
                 LOG_U64("batches", h->node->stream.submitted - h->node->stream.stored));
    else
        LOG_INFO("node.log_goes_on");
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct raft_input in = {.kind = hangs ? RAFT_DISK_HANGS : RAFT_DISK_GOES_ON};
        if (cl_host_takes_part(h, h->node->shards[i]))
            cl_host_step(h, h->node->shards[i], &in);
    }
}

static void begin_serving(struct cl_host *h, struct cl_shard *s)
{
    struct cl_node *n = h->node;
    s->opened = true;
    /* Above what earlier leaders stamped and what they may have let others read. */
    hlc_raise(&n->hlc, kv_state_applied_ts(s->state));
    if (raft_read_floor(s->raft) > n->hlc.last)
        MARK("host.floor_above_clock");
    if (!fault_point("host.broken_floor"))
        hlc_raise(&n->hlc, raft_read_floor(s->raft));
    cl__node_raise_now(n, n->hlc.last); /* stamps begin there, and log time must pass */
    cl__node_bootstrap(n, s);
    cl_roles_led(n);
}

void cl_host_turn(struct cl_host *h)
{
    if (h->started)
        look_at_log(h);
    for (unsigned i = 0; h->started && i < CL_SHARDS; i++) {
        struct cl_shard *s = h->node->shards[i];
        if (!cl_host_takes_part(h, s)) /* H3 */
            cl_groups_leave(h->groups, &s->group);
        if (s->leading && !s->opened && s->fenced == ST_OK && s->applied >= s->ready_index &&
            h->node->phase == CL_NODE_SERVING)
            begin_serving(h, s);
    }
    cl_roles_turn(h->node);
    cl_others_turn(h->node->others);
    cl_groups_turn(h->groups);
}

/* The core of a lone voter wants no time; what it lets others read goes on here, as in every group
 * that may get a second one. */
static void keep_lone(struct cl_host *h)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = h->node->shards[i];
        struct raft_input in = {.kind = RAFT_TICK};
        if (!s->leading || !cl_host_takes_part(h, s) || raft_lease_until_ms(s->raft) != UINT64_MAX)
            continue;
        in.read_bound = read_wish(h) + hlc_ms(LONE_AHEAD_MS);
        cl_host_step(h, s, &in);
    }
}

/* Has REPLICA stored what there was when this was asked last? While a transfer waits for one that
 * has not, nothing is written. */
static bool keeps_pace(struct cl_shard *s, uint64_t replica)
{
    uint64_t before = s->gather_index, last = raft_last_index(s->raft);
    struct raft_peer p;
    s->gather_index = last;
    for (unsigned i = 0; i < RAFT_MEMBERS_MAX; i++) {
        if (raft_peer(s->raft, i, &p) && p.id == replica)
            return p.state == RAFT_PEER_PIPELINE && (p.match >= before || p.match == last);
    }
    return false;
}

void cl_host_maintain(struct cl_host *h)
{
    struct cl_node *n = h->node;
    uint64_t leader = raft_leader(n->shards[CL_META]->raft);
    cl_roles_led(n);
    cl_members_maintain(h);
    keep_lone(h);
    if (leader == 0 || leader == n->replica || n->phase != CL_NODE_SERVING)
        return;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = n->shards[i];
        if (s->leading && cl_host_takes_part(h, s) && keeps_pace(s, leader) &&
            replica_up(h, leader))
            cl_host_step(h, s, &(struct raft_input){.kind = RAFT_TRANSFER, .peer = leader});
    }
}

uint64_t cl_host_replica(const struct cl_host *h, uint64_t node)
{
    const struct cl_node *n = h->node;
    return node == n->topology.self ? n->replica : cl_others_replica(n->others, node);
}

status cl_host_transfer(struct cl_host *h, struct cl_shard *s, uint64_t node)
{
    if (!cl_host_takes_part(h, s))
        return ST_NOT_LEADER;
    uint64_t replica = cl_host_replica(h, node);
    return cl_host_try(h, s, &(struct raft_input){.kind = RAFT_TRANSFER, .peer = replica});
}

/* Are reads up to now, and the next stamps, known to a majority? */
static bool may_stamp(const struct cl_host *h, const struct cl_shard *s)
{
    return raft_read_bound(s->raft) > hlc_from_us(cl__node_now_us(h->node)) &&
           raft_read_bound(s->raft) > h->node->hlc.last + CL_SHARDS;
}

bool cl_host_lease(const struct cl_host *h, const struct cl_shard *s)
{
    return raft_lease_until_ms(s->raft) > now_ms(h) && may_stamp(h, s);
}

bool cl_host_may_ask(const struct cl_host *h, const struct cl_shard *s)
{
    const struct cl_node *n = h->node;
    return n->phase == CL_NODE_SERVING && n->failed == ST_OK && s->fenced == ST_OK && s->leading &&
           s->opened && may_stamp(h, s);
}

uint64_t cl_host_read(struct cl_host *h, struct cl_shard *s)
{
    uint64_t token = ++s->reads_asked;
    cl_host_step(h, s, &(struct raft_input){.kind = RAFT_READ, .read_token = token});
    return token;
}

/* -- a stop ------------------------------------------------------------------------------------ */

/* The node that lacks least of meta: all shards go there, so that they need not gather later. */
static uint64_t successor(const struct cl_host *h)
{
    const struct cl_shard *meta = h->node->shards[CL_META];
    struct raft_peer p;
    uint64_t best = 0, match = 0;
    for (unsigned i = 0; i < RAFT_MEMBERS_MAX; i++) {
        if (raft_peer(meta->raft, i, &p) && p.role == RAFT_VOTER && !p.down && p.match >= match) {
            best = p.id;
            match = p.match;
        }
    }
    return best;
}

static void hand_over(struct cl_host *h, struct cl_shard *s, uint64_t to)
{
    struct raft_input in = {.kind = RAFT_TRANSFER, .peer = to};
    status st = cl_host_try(h, s, &in);
    if (st == ST_NOT_FOUND && to != 0) { /* no voter of this shard: whoever lacks least */
        in.peer = 0;
        st = cl_host_try(h, s, &in);
    }
    s->handing = st == ST_OK; /* ST_LOCKED: a change is under way, it is tried again */
    s->kept = st == ST_NOT_FOUND;
    if (st == ST_OK)
        log_role(s, "shard.handed_over");
}

bool cl_host_hand_over(struct cl_host *h)
{
    uint64_t to = successor(h);
    bool some = false;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = h->node->shards[i];
        if (s->fenced != ST_OK || h->node->failed != ST_OK || !may_hand_over(h, s))
            continue;
        if (raft_lease_until_ms(s->raft) == UINT64_MAX)
            continue; /* there is no other */
        if (cl_shard_idle(s) && !s->handing && !s->kept)
            hand_over(h, s, to);
        some |= s->leading && !s->kept;
    }
    return some;
}

/* -- the object -------------------------------------------------------------------------------- */

void cl_host_configure(const struct cl_host *h, const struct cl_shard *s, struct raft_config *out)
{
    struct cl_node *n = h->node;
    uint64_t keep = SNAPSHOT_KEEP_TIMES * n->options.keep_bytes;
    *out = (struct raft_config){.self = n->replica,
                                .election_ms = n->options.election_us / 1000,
                                .heartbeat_ms = n->options.heartbeat_us / 1000,
                                .quiesce_ms = n->options.quiesce_us / 1000,
                                .beacons = cl_groups_beacons(h->groups),
                                .append_bytes = APPEND_BYTES,
                                .pending_bytes = PENDING_BYTES,
                                .keep_bytes = n->options.keep_bytes,
                                .keep_bytes_snapshot =
                                    keep > SNAPSHOT_KEEP_LEAST ? keep : SNAPSHOT_KEEP_LEAST,
                                .read_bound = cl_others_floor(n->others),
                                .seed = n->identity.store_id ^ s->id ^ n->incarnation};
}

struct cl_node *cl_host_node(const struct cl_host *h)
{
    return h->node;
}

struct cl_host *cl_host_new(struct cl_node *n)
{
    if (n->topology.count < 2)
        return NULL;
    struct cl_host *h = calloc(1, sizeof *h);
    ASSERT(h != NULL);
    h->node = n;
    h->groups = cl_groups_new(n->env, &group_events, h);
    obuf_init(&h->message);
    return h;
}

void cl_host_start(struct cl_host *h)
{
    h->started = true;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = h->node->shards[i];
        s->group.id = s->id;
        s->group.raft = s->raft;
        cl_groups_add(h->groups, &s->group);
    }
    cl_groups_start(h->groups, h->node->reactors[0].loop);
}

void cl_host_free(struct cl_host *h)
{
    if (h == NULL)
        return;
    cl_groups_free(h->groups);
    obuf_fini(&h->message);
    free(h);
}
