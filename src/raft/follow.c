/*
 * raft/follow.c — what every message of a leader means to whoever hears it (Raft 5.1, 5.2).
 *
 * A message of the present term or a later one is from the term's one leader: the receiver follows
 * it, waits anew, and promises its patience (election.c). One of an earlier term is from a leader
 * that does not know that it is deposed; it is told the term.
 */
#include "raft/raft_internal.h"

status raft__lead_check(const struct raft *r, const struct raft_message *m)
{
    if (m->term != r->hard.term)
        return ST_OK;
    if (r->role == RAFT_LEADER || (r->leader != 0 && r->leader != m->from))
        return ST_PROTOCOL; /* two leaders of one term */
    return ST_OK;
}

bool raft__lead_heard(struct raft *r, const struct raft_message *m)
{
    if (m->term < r->hard.term) {
        raft__send_ack(r, RAFT_MSG_HEARTBEAT_REPLY, m->from);
        return false;
    }
    if (m->term > r->hard.term || r->leader != m->from || r->poll != RAFT__POLL_NONE)
        raft__become_follower(r, m->term, m->from);
    r->promise_ms = r->now_ms + r->config.election_ms;
    raft__deadline_reset(r);
    if (!raft__asleep_after(r, m))
        raft__released(r);
    raft__raise(&r->settled, m->lead.settled);
    raft__raise(&r->read_bound, m->lead.read_bound);
    return true;
}

/* What became durable here is news for the leader as far as it is its log, too. */
void raft__acknowledge(struct raft *r)
{
    uint64_t match = r->verified < r->stored ? r->verified : r->stored;

    if (r->leader == 0 || r->ack_seq == 0 || match <= r->acked)
        return;
    struct raft_message *m = raft__send_ack(r, RAFT_MSG_APPEND_REPLY, r->leader);
    m->ack.seq = r->ack_seq;
    m->ack.sent_ms = r->ack_sent_ms;
    r->acked = match;
}
