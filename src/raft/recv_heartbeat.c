/*
 * raft/recv_heartbeat.c — the leader is there; so far is committed; or: nothing will follow.
 */
#include "raft/raft_internal.h"

#include "base/fault.h"

/* May this follower sleep? Only if it has all that there is, durable, and knows it committed. */
static bool complete(const struct raft *r, uint64_t commit)
{
    return r->commit == commit && r->stored == commit &&
           raft__tail_last_index(&r->tail) == commit && r->install.index == 0;
}

status raft__recv_heartbeat(struct raft *r, const struct raft_message *m)
{
    ST_TRY(raft__lead_check(r, m));
    if (!raft__lead_heard(r, m))
        return ST_OK;
    raft__commit_heard(r, m->lead.commit);
    bool sleeps = m->heartbeat.quiesce && complete(r, m->lead.commit);
    if (sleeps && !raft__asleep_after(r, m))
        raft__fall_asleep(r, m);
    if (m->heartbeat.quiet)
        return ST_OK;
    struct raft_message *reply = raft__send_ack(r, RAFT_MSG_HEARTBEAT_REPLY, m->from);
    reply->ack.seq = m->lead.seq;
    reply->ack.sent_ms = m->lead.sent_ms;
    reply->heartbeat_reply.installing = r->install.index;
    reply->heartbeat_reply.asleep = sleeps && r->quiesced;
    return ST_OK;
}
