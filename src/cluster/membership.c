/*
 * cluster/membership.c — changes of a shard's members, and what a removed replica is told.
 *
 * A learner becomes a voter when the leader streams to it and it lacks little. That is the leader's
 * doing, not of the call that added it, so it happens whoever asked, went away or was restarted.
 *
 * A removed replica hears of nobody any more, and asks for votes in vain. The leader that it asks
 * answers with the list, by a message that is no Raft message:
 *
 *   u8 0xf0  u8 version (1)  varint committed index  members
 *
 * Invariants
 *   M1  Nothing of consensus rests on that word: it only makes a replica silent, for a while each
 *       time, until a leader counts it in again.
 *   M2  A node has at most one replica of a shard among its members.
 *
 * Threads: the owner reactor.
 */
#include "cluster/membership.h"
#include "base/assert.h"
#include "base/log.h"
#include "cluster/others.h"
#include <inttypes.h>

#define TOLD 0xf0u /* no Raft message begins with it: that is a version */
#define TOLD_VERSION 1u
#define CAUGHT_UP_ENTRIES 1024u
#define OUTSIDE_ELECTIONS 10u /* a removed replica asks every so many timeouts whether it is back */

const char *cl_standing_name(enum cl_standing standing)
{
    return standing == CL_STANDING_VOTER     ? "voter"
           : standing == CL_STANDING_LEARNER ? "learner"
                                             : "none";
}

/* M2 */
static const struct raft_member *member_of(const struct raft_members *m, uint64_t node)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (cl_replica_node(m->at[i].id) == node)
            return &m->at[i];
    }
    return NULL;
}

static void members_now(const struct cl_shard *s, struct raft_members *out)
{
    raft_members_at(s->raft, raft_last_index(s->raft), out);
}

enum cl_standing cl_member_standing(const struct cl_shard *s, uint64_t node, bool committed)
{
    struct raft_members m;
    raft_members_at(s->raft, committed ? raft_commit_index(s->raft) : raft_last_index(s->raft), &m);
    const struct raft_member *one = member_of(&m, node);
    if (one == NULL)
        return CL_STANDING_NONE;
    return one->role == RAFT_VOTER ? CL_STANDING_VOTER : CL_STANDING_LEARNER;
}

static bool find_peer(const struct cl_shard *s, uint64_t replica, struct raft_peer *out)
{
    for (unsigned i = 0; i < RAFT_MEMBERS_MAX; i++) {
        if (raft_peer(s->raft, i, out) && out->id == replica)
            return true;
    }
    return false;
}

/* -- changes ----------------------------------------------------------------------------------- */

static status change(struct cl_shard *s, enum raft_change_kind kind, uint64_t replica)
{
    struct cl_node *n = s->node;
    ST_TRY(raft_log_admit(n->stream.log, 256));
    ST_TRY(cl_host_try(n->host, s,
                       &(struct raft_input){.kind = RAFT_CHANGE, .change = kind, .peer = replica}));
    LOG_INFO("shard.members", LOG_U64("shard", s->id),
             LOG_STR("change", kind == RAFT_REMOVE        ? "remove"
                               : kind == RAFT_ADD_LEARNER ? "add"
                                                          : "promote"),
             LOG_U64("node", cl_replica_node(replica)), LOG_U64("replica", replica),
             LOG_U64("index", raft_last_index(s->raft)));
    cl_host_look(n->host, s);
    return ST_OK;
}

static status refused(status st, const struct cl_shard *s, struct err *err)
{
    if (st == ST_LOCKED)
        return err_set_state(err, st, "55006",
                             "a transfer or a change of members of shard %" PRIu64 " is under way",
                             s->id);
    if (st == ST_LIMIT)
        return err_set_state(err, st, "54000", "shard %" PRIu64 " has as many replicas as it may",
                             s->id);
    return err_set(err, st, "shard %" PRIu64 ": %s", s->id, status_text(st));
}

static status other_disk(const struct cl_shard *s, uint64_t node, struct err *err)
{
    err_set_state(err, ST_LOCKED, "55000",
                  "node %" PRIu64 " has a replica of shard %" PRIu64 " on a disk that it lost",
                  node, s->id);
    err_hint(err, "Remove that one first: metadb.remove_replica(%" PRIu64 ", %" PRIu64 ").", s->id,
             node);
    return ST_LOCKED;
}

status cl_member_add(struct cl_shard *s, uint64_t node, struct err *err)
{
    struct cl_node *n = s->node;
    struct raft_members m;
    if (n->host == NULL || cl_topology_find(&n->topology, node) == NULL)
        return err_set_state(err, ST_INVALID, "42704",
                             "node %" PRIu64 " is not in \"cluster.nodes\" of this node", node);
    uint64_t replica = cl_host_replica(n->host, node);
    members_now(s, &m);
    const struct raft_member *one = member_of(&m, node);
    if (one != NULL && one->id != replica)
        return other_disk(s, node, err);
    if (one != NULL && one->role == RAFT_VOTER)
        return err_set_state(err, ST_INVALID, "42710",
                             "node %" PRIu64 " has a replica of shard %" PRIu64 " already", node,
                             s->id);
    if (!cl_transport_up(n->transport, node)) {
        err_set_state(err, ST_LOCKED, "55000", "node %" PRIu64 " is not connected", node);
        err_hint(err, "See metadb.peers.");
        return ST_LOCKED;
    }
    if (one != NULL)
        return ST_OK;
    status st = change(s, RAFT_ADD_LEARNER, replica);
    return st == ST_OK ? ST_OK : refused(st, s, err);
}

/* Would those who are there be a majority without NODE? */
static bool majority_without(const struct cl_shard *s, const struct raft_members *m, uint64_t node)
{
    const struct cl_node *n = s->node;
    unsigned voters = 0, there = 0;
    struct raft_peer p;
    for (unsigned i = 0; i < m->count; i++) {
        if (m->at[i].role != RAFT_VOTER || cl_replica_node(m->at[i].id) == node)
            continue;
        voters++;
        there += m->at[i].id == n->replica ||
                 (find_peer(s, m->at[i].id, &p) && !p.down && p.state == RAFT_PEER_PIPELINE &&
                  cl_transport_up(n->transport, cl_replica_node(p.id)));
    }
    return 2 * there > voters;
}

status cl_member_remove(struct cl_shard *s, uint64_t node, struct err *err)
{
    struct cl_node *n = s->node;
    struct raft_members m;
    members_now(s, &m);
    const struct raft_member *one = member_of(&m, node);
    if (n->host == NULL || one == NULL)
        return err_set_state(err, ST_INVALID, "42704",
                             "node %" PRIu64 " has no replica of shard %" PRIu64, node, s->id);
    if (one->id == n->replica) {
        err_set_state(err, ST_LOCKED, "55000", "node %" PRIu64 " leads shard %" PRIu64, node,
                      s->id);
        err_hint(err, "Let another lead first: metadb.transfer_leader(1, …).");
        return ST_LOCKED;
    }
    if (one->role == RAFT_VOTER && !majority_without(s, &m, node)) {
        err_set_state(err, ST_LOCKED, "55000",
                      "without node %" PRIu64 " too few replicas of shard %" PRIu64
                      " would be there for a majority",
                      node, s->id);
        err_hint(err, "See metadb.replicas; start the nodes that are down first.");
        return ST_LOCKED;
    }
    status st = change(s, RAFT_REMOVE, one->id);
    return st == ST_OK ? ST_OK : refused(st, s, err);
}

bool cl_members_waiting(const struct cl_shard *s)
{
    struct raft_members m;
    if (!s->leading)
        return false;
    members_now(s, &m);
    return raft_members_voters(&m) < m.count;
}

static void promote(struct cl_shard *s)
{
    struct raft_members m;
    struct raft_peer p;
    members_now(s, &m);
    for (unsigned i = 0; i < m.count; i++) {
        if (m.at[i].role != RAFT_LEARNER || !find_peer(s, m.at[i].id, &p) || p.down ||
            p.state != RAFT_PEER_PIPELINE || p.match + CAUGHT_UP_ENTRIES < raft_last_index(s->raft))
            continue;
        if (change(s, RAFT_ADD_VOTER, m.at[i].id) == ST_OK)
            return; /* the next one when this change is committed */
    }
}

void cl_members_maintain(struct cl_host *h)
{
    struct cl_node *n = cl_host_node(h);
    for (unsigned i = 0; i < CL_SHARDS && n->phase == CL_NODE_SERVING; i++) {
        struct cl_shard *s = n->shards[i];
        if (s->opened && cl_host_takes_part(h, s) && cl_members_waiting(s))
            promote(s);
    }
}

/* -- who was removed --------------------------------------------------------------------------- */

void cl_member_tell(struct cl_shard *s, uint64_t from)
{
    struct cl_node *n = s->node;
    struct raft_members m;
    struct obuf o;
    uint64_t commit = raft_commit_index(s->raft);
    raft_members_at(s->raft, commit, &m);
    if (!s->opened || raft_members_find(&m, from) != RAFT_MEMBERS_MAX)
        return;
    obuf_init(&o);
    put_u8(&o, TOLD);
    put_u8(&o, TOLD_VERSION);
    put_varint(&o, commit);
    raft_members_put(&o, &m);
    (void)cl_transport_message(n->transport, cl_replica_node(from), s->id, n->replica, from,
                               bytes_make(o.data, o.size));
    obuf_fini(&o);
}

bool cl_member_told(struct cl_shard *s, uint64_t node, bytes payload)
{
    struct reader r = reader_make(payload);
    struct raft_members m;
    if (payload.size == 0 || get_u8(&r) != TOLD)
        return false;
    if (get_u8(&r) != TOLD_VERSION)
        return true; /* a newer node says more than this one understands */
    uint64_t commit = get_varint(&r);
    raft_members_get(&r, &m);
    if (codec_finish(&r) != ST_OK || commit < raft_commit_index(s->raft) ||
        raft_members_find(&m, s->node->replica) != RAFT_MEMBERS_MAX)
        return true;
    if (s->outside_leader == 0)
        LOG_WARN("shard.left_over", LOG_U64("shard", s->id), LOG_STR("table", s->name),
                 LOG_U64("leader", node), LOG_U64("applied", s->applied));
    s->outside_leader = node;
    s->group.hold_ms =
        (env_mono_us(s->node->env) + OUTSIDE_ELECTIONS * s->node->options.election_us) / 1000;
    return true;
}
