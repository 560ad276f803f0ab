/*
 * raft/election.c — time, terms and roles (Raft 5.2).
 *
 * A replica that has heard of no leader for a random time between election_ms and twice that
 * starts an election: it raises its term, votes for itself and becomes candidate. With the votes
 * of a majority it becomes leader; a lone voter is its own majority and leads in the same step.
 * That is safe because of the order of outputs: the new term and vote are durable before or with
 * the entries of that step, and nothing commits before those entries are reported stored.
 *
 *   FOLLOWER --timeout, campaign--> CANDIDATE --majority--> LEADER
 *
 * A leader's first act is a no-op of its term: entries of earlier terms commit only below it
 * (Raft 5.4.2), so without it a restarted group would not apply what it has until the next write.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"
#include "raft/quorum.h"

#define TO(role) (1u << (role))
static const unsigned role_next[] = {
    [RAFT_FOLLOWER] = TO(RAFT_CANDIDATE),
    [RAFT_CANDIDATE] = TO(RAFT_CANDIDATE) | TO(RAFT_LEADER),
    [RAFT_LEADER] = 0,
};

/* The only place that assigns the role. */
static void role_move(struct raft *r, enum raft_role next)
{
    ASSERT(role_next[r->role] & TO(next));
    r->out_role |= next != r->role;
    r->role = next;
    r->leader = next == RAFT_LEADER ? r->config.self : 0;
}

/* splitmix64 (Steele et al., 2014): good enough to spread timeouts, and one word of state. */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void raft__deadline_reset(struct raft *r)
{
    uint64_t patience =
        r->config.election_ms + random_next(&r->random) % (r->config.election_ms + 1);
    r->deadline_ms = r->now_ms + patience;
    r->deadline_set = true;
}

static void become_leader(struct raft *r)
{
    role_move(r, RAFT_LEADER);
    for (unsigned i = 0; i < r->config.voter_count; i++)
        r->match[i] = 0;
    r->match[r->self_at] = r->stored;
    raft__append(r, RAFT_ENTRY_NOOP, NULL);
}

void raft__campaign(struct raft *r)
{
    if (r->role == RAFT_LEADER)
        return; /* it leads already: a repeated request changes nothing */
    role_move(r, RAFT_CANDIDATE);
    r->hard = (struct raft_hard_state){.term = r->hard.term + 1, .vote = r->config.self};
    r->out_hard = true;
    for (unsigned i = 0; i < r->config.voter_count; i++)
        r->granted[i] = i == r->self_at;
    raft__deadline_reset(r);
    if (raft__quorum_granted(r->granted, r->config.voter_count))
        become_leader(r);
    else
        MARK("raft.campaign.undecided");
}

void raft__tick(struct raft *r)
{
    if (r->role != RAFT_LEADER && r->now_ms >= r->deadline_ms)
        raft__campaign(r);
}
