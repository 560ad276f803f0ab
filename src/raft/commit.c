/*
 * raft/commit.c — when an entry is committed (Raft 5.3, 5.4.2).
 *
 * An index counts for a voter only once it is durable there: for the leader itself that is what
 * RAFT_STORED said, never what was merely appended. A majority at or above index N commits N if
 * entry N is of the leader's own term; earlier terms commit below it and never by counting
 * (figure 8 of the paper is the history that this rule forbids).
 */
#include "raft/raft_internal.h"

#include "base/fault.h"
#include "raft/quorum.h"

void raft__stored(struct raft *r, uint64_t index, uint64_t term)
{
    uint64_t held;

    /* The report may be about an entry that was overwritten since: another entry has its index
     * now, and that one is not durable. */
    if (!raft__tail_term(&r->tail, index, &held) || held != term) {
        MARK("raft.stored.stale");
        return;
    }
    if (index <= r->stored)
        return;
    r->stored = index;
    r->match[r->self_at] = index;
    raft__commit_advance(r);
}

void raft__commit_advance(struct raft *r)
{
    uint64_t term;

    if (r->role != RAFT_LEADER)
        return;
    uint64_t index = raft__quorum_index(r->match, r->config.voter_count);
    if (index <= r->commit)
        return;
    if (raft__tail_term(&r->tail, index, &term) && term == r->hard.term)
        r->commit = index;
    else
        MARK("raft.commit.older_term");
}
