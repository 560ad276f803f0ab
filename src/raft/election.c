/*
 * raft/election.c — time, terms and roles (Raft 5.2; thesis 9.6 for the pre-vote).
 *
 * A replica that has heard of no leader for a random time, election_ms and up to half as much more,
 * first asks who would vote for it (pre-vote), which changes nothing anywhere; so one that was cut
 * off and comes back disturbs nobody. With the consent of a majority it raises its term, votes for
 * itself, and when that is durable asks in earnest. With the votes of a majority it leads. A lone
 * voter is its own majority and leads in the same step. That is safe because of the order of
 * outputs: the new term and vote are durable before or with the entries of that step, and nothing
 * commits before those entries are reported stored.
 *
 *   FOLLOWER --consent--> CANDIDATE --majority--> LEADER --no majority, hung disk, removed--.
 *      ^--- a higher term, a leader of this term ---'                                        |
 *      '-------------------------------------------------------------------------------------'
 *
 * A leader's first act is a no-op of its term: entries of earlier terms commit only below it
 * (Raft 5.4.2), so without it a restarted group would not apply what it has until the next write.
 *
 * Who has heard a leader votes for nobody, itself included, for election_ms: a leader's lease
 * (lease.c) rests on that promise. Only an election that the leader asked for passes it by.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"
#include "raft/quorum.h"

#include <stdlib.h>

#define TO(role) (1u << (role))
static const unsigned role_next[] = {
    [RAFT_FOLLOWER] = TO(RAFT_CANDIDATE),
    [RAFT_CANDIDATE] = TO(RAFT_FOLLOWER) | TO(RAFT_CANDIDATE) | TO(RAFT_LEADER),
    [RAFT_LEADER] = TO(RAFT_FOLLOWER),
};

/* The only place that assigns the role. */
static void role_move(struct raft *r, enum raft_role next)
{
    ASSERT(role_next[r->role] & TO(next));
    r->out_role |= next != r->role;
    r->role = next;
    r->leader = next == RAFT_LEADER ? r->config.self : 0;
}

void raft__deadline_reset(struct raft *r)
{
    uint64_t spread = r->config.election_ms / RAFT__ELECTION_SPREAD;
    r->deadline_ms = r->now_ms + r->config.election_ms + raft__random(r, spread + 1);
    r->deadline_set = true;
}

/* Consent was refused by one who heard the leader a little later, or has the longer log. */
static void deadline_again(struct raft *r)
{
    uint64_t half = r->config.election_ms / 2;
    r->deadline_ms = r->now_ms + half + raft__random(r, half + 1);
}

/* What only a leader knows ends with its role. */
static void leader_end(struct raft *r)
{
    raft__consent_forget(r);
    free(r->progress);
    r->progress = NULL;
    r->progress_count = 0;
    r->transfer_to = 0;
    r->transfer_told = r->transfer_sent = false;
    r->leave = false;
    r->read_asked = r->read_waiting = 0;
    r->quiesced = false;
    r->stalled = raft__disk_hangs(r);
}

void raft__become_follower(struct raft *r, uint64_t term, uint64_t leader)
{
    ASSERT(term >= r->hard.term);
    if (r->role == RAFT_LEADER)
        leader_end(r);
    if (r->role != RAFT_FOLLOWER) {
        role_move(r, RAFT_FOLLOWER);
        raft__deadline_reset(r);
    }
    r->poll = RAFT__POLL_NONE;
    if (term > r->hard.term) {
        r->hard = (struct raft_hard_state){.term = term};
        r->out_hard = true;
        r->vote_owed = 0;
        r->leader = 0;
        if (r->quiesced) { /* the leader under which it sleeps is none any more */
            r->quiesced = false;
            raft__deadline_reset(r);
        }
    }
    if (leader != r->leader || leader == 0) {
        /* Another leader counts its messages from elsewhere, and its log is not yet compared. */
        r->ack_seq = r->ack_sent_ms = 0;
        r->verified = r->acked = r->commit;
        r->leader = leader;
    }
}

/* A candidate whose vote for itself is not durable yet cannot ask for others', so it would only
 * raise its term. */
static bool hard_is_stored(const struct raft *r)
{
    return r->hard_stored.term == r->hard.term && r->hard_stored.vote == r->hard.vote;
}

bool raft__may_lead(const struct raft *r)
{
    if (r->voters > 1 && !hard_is_stored(r))
        return false;
    return r->self_at != RAFT_MEMBERS_MAX && r->members.at[r->self_at].role == RAFT_VOTER &&
           !r->config.votes_never && !r->stalled && !r->hung && r->install.index == 0;
}

static void become_leader(struct raft *r)
{
    role_move(r, RAFT_LEADER);
    r->poll = RAFT__POLL_NONE;
    r->quiesced = false;
    r->settled = 0;
    raft__heartbeat_next(r);
    r->active_ms = r->unstored_ms = r->now_ms;
    raft__progress_align(r);
    r->opened = raft__append(r, RAFT_ENTRY_NOOP, NULL);
}

static void ask_votes(struct raft *r)
{
    for (unsigned i = 0; i < r->members.count; i++) {
        const struct raft_member *peer = &r->members.at[i];
        if (peer->role != RAFT_VOTER || peer->id == r->config.self)
            continue;
        struct raft_message *m = raft__send(r, RAFT_MSG_VOTE, peer->id);
        m->vote.pre = r->poll == RAFT__POLL_PRE;
        m->vote.transfer = r->poll_transfer;
        m->vote.last_index = raft__tail_last_index(&r->tail);
        m->vote.last_term = raft__tail_last_term(&r->tail);
        if (m->vote.pre)
            m->term = r->hard.term + 1;
    }
    r->poll_asked = true;
}

static void poll_begin(struct raft *r, enum raft__poll poll)
{
    r->poll = poll;
    r->poll_asked = false;
    for (unsigned i = 0; i < RAFT_MEMBERS_MAX; i++)
        r->granted[i] = false;
    raft__deadline_reset(r);
    if (poll == RAFT__POLL_PRE)
        deadline_again(r);
}

static void vote_begin(struct raft *r)
{
    role_move(r, RAFT_CANDIDATE);
    r->hard = (struct raft_hard_state){.term = r->hard.term + 1, .vote = r->config.self};
    r->out_hard = true;
    r->vote_owed = 0;
    r->verified = r->acked = r->commit;
    poll_begin(r, RAFT__POLL_VOTE);
    if (r->voters == 1)
        become_leader(r);
}

void raft__campaign_now(struct raft *r)
{
    ASSERT(r->role != RAFT_LEADER);
    ASSERT(raft__may_lead(r));
    raft__released(r);
    r->poll_transfer = true;
    vote_begin(r);
}

void raft__campaign(struct raft *r)
{
    if (r->role == RAFT_LEADER)
        return; /* it leads already: a repeated request changes nothing */
    if (!raft__may_lead(r)) {
        MARK("raft.campaign.may_not");
        raft__deadline_reset(r);
        return;
    }
    r->poll_transfer = false;
    if (r->voters == 1) { /* no other can lead, and a change to this list has ended any lease */
        raft__released(r);
        vote_begin(r);
        return;
    }
    if (r->asleep_under != 0) { /* Q1 */
        MARK("raft.campaign.sleeper");
        r->quiesced = false;
        raft__deadline_reset(r);
        raft__tell_awake(r);
        return;
    }
    if (r->now_ms < r->promise_ms && !RAFT_BROKEN(RAFT__BREAK_NO_PROMISE)) {
        MARK("raft.campaign.promised");
        r->deadline_ms = r->promise_ms;
        return;
    }
    if (r->role == RAFT_CANDIDATE)
        raft__become_follower(r, r->hard.term, 0);
    r->leader = 0;
    poll_begin(r, RAFT__POLL_PRE);
    r->granted[r->self_at] = true;
    ask_votes(r);
}

void raft__poll_count(struct raft *r, uint64_t from)
{
    unsigned at = raft_members_find(&r->members, from), votes = 0;

    if (at == RAFT_MEMBERS_MAX || r->poll == RAFT__POLL_NONE)
        return;
    r->granted[at] = true;
    for (unsigned i = 0; i < r->members.count; i++)
        votes += r->granted[i] && r->members.at[i].role == RAFT_VOTER;
    if (votes < raft__quorum_size(r->voters))
        return;
    if (r->poll == RAFT__POLL_PRE)
        vote_begin(r);
    else
        become_leader(r);
}

void raft__vote_stored(struct raft *r)
{
    if (r->poll == RAFT__POLL_VOTE && !r->poll_asked) {
        raft__poll_count(r, r->config.self);
        if (r->poll == RAFT__POLL_VOTE)
            ask_votes(r);
    }
    if (r->vote_owed != 0) {
        struct raft_message *m = raft__send(r, RAFT_MSG_VOTE_REPLY, r->vote_owed);
        m->vote_reply.granted = true;
        m->vote_reply.read_bound = r->read_bound;
        r->vote_owed = 0;
    }
}

void raft__disk_told(struct raft *r, bool hangs)
{
    r->hung = hangs;
    if (!hangs || r->role != RAFT_LEADER || r->voters == 1)
        return;
    MARK("raft.leader.log_hangs");
    raft__resign(r);
}

static void leader_tick(struct raft *r)
{
    if (r->lone)
        return;
    if (r->voters > 1 && raft__disk_hangs(r)) {
        MARK("raft.leader.disk_hangs");
        raft__resign(r);
        return;
    }
    if (r->now_ms < r->heartbeat_ms)
        return;
    if (raft__quorum_lost(r)) {
        MARK("raft.leader.quorum_lost");
        raft__become_follower(r, r->hard.term, 0);
        return;
    }
    if (raft__quiesce_offer(r))
        raft__heartbeat_next(r);
    else
        raft__heartbeat(r);
}

void raft__tick(struct raft *r)
{
    if (r->quiesced)
        return;
    if (r->role == RAFT_LEADER)
        leader_tick(r);
    else if (r->now_ms >= r->deadline_ms)
        raft__campaign(r);
}
