/*
 * raft/recv_vote.c — somebody asks for a vote, or would ask (Raft 5.2, 5.4.1; thesis 9.6).
 *
 * Refused without a look while a leader is heard, unless the leader itself wants the election.
 * Granted once per term, to a log at least as complete as the own one; a vote is told when it is
 * durable. A consent (pre-vote) is no promise and changes nothing. Whether the own list of members
 * names this replica as a voter does not matter: the list may be older than the candidate's.
 */
#include "raft/raft_internal.h"

#include "base/fault.h"

static void answer(struct raft *r, const struct raft_message *m, bool granted)
{
    struct raft_message *reply = raft__send(r, RAFT_MSG_VOTE_REPLY, m->from);
    reply->vote_reply.pre = m->vote.pre;
    reply->vote_reply.granted = granted;
    reply->vote_reply.read_bound = r->read_bound;
    if (granted && m->vote.pre)
        reply->term = m->term;
}

static bool leader_is_heard(const struct raft *r)
{
    if (RAFT_BROKEN(RAFT__BREAK_NO_PROMISE))
        return r->role == RAFT_LEADER;
    if (RAFT_BROKEN(RAFT__BREAK_SLEEPER_VOTES))
        return r->role == RAFT_LEADER || r->quiesced || r->now_ms < r->promise_ms;
    return r->role == RAFT_LEADER || r->asleep_under != 0 || r->now_ms < r->promise_ms;
}

/* Who offered sleep leads no more in that term, or was awake to ask for this election (Q1). */
static bool releases(const struct raft *r, const struct raft_message *m)
{
    return r->asleep_under != 0 && (m->from == r->asleep_under || m->vote.transfer) &&
           m->term > r->asleep_term && m->term > r->hard.term;
}

static bool log_is_complete(const struct raft *r, const struct raft_message *m)
{
    uint64_t last_term = raft__tail_last_term(&r->tail);
    if (RAFT_BROKEN(RAFT__BREAK_VOTE_ANY_LOG))
        return true;
    if (m->vote.last_term != last_term)
        return m->vote.last_term > last_term;
    return m->vote.last_index >= raft__tail_last_index(&r->tail);
}

static void vote(struct raft *r, const struct raft_message *m)
{
    bool may = r->hard.vote == 0 || r->hard.vote == m->from || RAFT_BROKEN(RAFT__BREAK_VOTE_TWICE);
    if (!may || !log_is_complete(r, m)) {
        answer(r, m, false);
        return;
    }
    if (r->hard.vote != m->from) {
        r->hard.vote = m->from;
        r->out_hard = true;
    }
    raft__deadline_reset(r);
    if ((r->hard_stored.term == r->hard.term && r->hard_stored.vote == m->from) ||
        RAFT_BROKEN(RAFT__BREAK_VOTE_UNSTORED))
        answer(r, m, true);
    else
        r->vote_owed = m->from;
}

status raft__recv_vote(struct raft *r, const struct raft_message *m)
{
    if (releases(r, m)) {
        raft__released(r);
        raft__deadline_reset(r);
    }
    if (!m->vote.transfer && leader_is_heard(r)) {
        MARK("raft.vote.leader_is_heard");
        raft__stay_awake(r);
        answer(r, m, false);
        return ST_OK;
    }
    if (m->vote.pre) {
        answer(r, m, m->term > r->hard.term && !r->config.votes_never && log_is_complete(r, m));
        return ST_OK;
    }
    if (m->term > r->hard.term)
        raft__become_follower(r, m->term, 0);
    if (m->term < r->hard.term || r->config.votes_never) {
        answer(r, m, false);
        return ST_OK;
    }
    vote(r, m);
    return ST_OK;
}
