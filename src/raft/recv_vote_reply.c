/*
 * raft/recv_vote_reply.c — a vote, or the consent to ask for one (Raft 5.2).
 *
 * With each comes the highest time at which the voter knows that reads may have been served. A
 * majority of voters shares one with the majority that the old leader's read bound rests on
 * (lease.c), so the new leader knows it, too.
 */
#include "raft/raft_internal.h"

static bool is_asked_for(const struct raft *r, const struct raft_message *m)
{
    if (m->vote_reply.pre)
        return r->poll == RAFT__POLL_PRE && m->term == r->hard.term + 1;
    return r->poll == RAFT__POLL_VOTE && r->poll_asked && m->term == r->hard.term;
}

status raft__recv_vote_reply(struct raft *r, const struct raft_message *m)
{
    if (raft_members_find(&r->members, m->from) == RAFT_MEMBERS_MAX)
        return ST_OK;
    if (!m->vote_reply.granted) {
        if (m->term > r->hard.term)
            raft__become_follower(r, m->term, 0);
        return ST_OK;
    }
    if (!is_asked_for(r, m))
        return ST_OK;
    if (m->vote_reply.read_bound > r->read_bound)
        r->read_bound = m->vote_reply.read_bound;
    raft__poll_count(r, m->from);
    return ST_OK;
}
