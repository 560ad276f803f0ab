/*
 * raft/recv.c — a message finds its handler: one file for each kind, recv_KIND.c.
 *
 * Each handler checks first and changes state afterwards, so a refused message leaves none behind.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"

/* An answer of a later term: this replica is behind, whatever its role. */
static bool answer_is_later(struct raft *r, const struct raft_message *m)
{
    if (m->term <= r->hard.term)
        return false;
    if (raft_members_find(&r->members, m->from) != RAFT_MEMBERS_MAX)
        raft__become_follower(r, m->term, 0);
    return true;
}

status raft__recv(struct raft *r, const struct raft_message *m)
{
    ST_TRY(raft_message_check(m));
    if (m->to != r->config.self)
        return ST_PROTOCOL;
    switch (m->kind) {
    case RAFT_MSG_APPEND: return raft__recv_append(r, m);
    case RAFT_MSG_HEARTBEAT: return raft__recv_heartbeat(r, m);
    case RAFT_MSG_SNAPSHOT: return raft__recv_snapshot(r, m);
    case RAFT_MSG_VOTE: return raft__recv_vote(r, m);
    case RAFT_MSG_VOTE_REPLY: return raft__recv_vote_reply(r, m);
    case RAFT_MSG_TIMEOUT_NOW: return raft__recv_timeout_now(r, m);
    case RAFT_MSG_APPEND_REPLY:
        return answer_is_later(r, m) ? ST_OK : raft__recv_append_reply(r, m);
    case RAFT_MSG_HEARTBEAT_REPLY:
        return answer_is_later(r, m) ? ST_OK : raft__recv_heartbeat_reply(r, m);
    case RAFT_MSG_SNAPSHOT_REPLY:
        return answer_is_later(r, m) ? ST_OK : raft__recv_snapshot_reply(r, m);
    case RAFT_MSG_KINDS: break;
    }
    return ST_PROTOCOL;
}
