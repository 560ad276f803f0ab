/*
 * raft/commit.c — what is durable, and when an entry is committed (Raft 5.3, 5.4.2).
 *
 * An index counts for a voter only once it is durable there: for the leader itself that is what
 * RAFT_STORED said, never what was merely appended. A majority at or above index N commits N if
 * entry N is of the leader's own term; earlier terms commit below it and never by counting
 * (figure 8 of the paper is the history that this rule forbids). So an entry may be committed
 * that the leader's own disk has not stored yet.
 *
 * A follower believes the leader's commit index as far as its log is known to be the leader's.
 */
#include "raft/raft_internal.h"

#include "base/fault.h"

static void hard_stored(struct raft *r, const struct raft_input *in)
{
    if (in->stored_hard.term > r->hard_stored.term ||
        (in->stored_hard.term == r->hard_stored.term && in->stored_hard.vote != 0))
        r->hard_stored = in->stored_hard;
    /* A leader's term and vote lie before the entries of its term. */
    if (r->role == RAFT_LEADER && in->stored_term == r->hard.term)
        r->hard_stored = r->hard;
    if (r->hard_stored.term == r->hard.term && r->hard_stored.vote == r->hard.vote)
        raft__vote_stored(r);
}

static void entries_stored(struct raft *r, uint64_t index)
{
    bool owed = r->applied > r->stored;

    r->stored = index;
    r->unstored_ms = r->now_ms;
    r->stalled = false;
    if (r->role == RAFT_LEADER)
        raft__commit_advance(r);
    else
        raft__acknowledge(r);
    if (owed)
        raft__trim(r);
}

void raft__stored(struct raft *r, const struct raft_input *in)
{
    uint64_t held;

    /* The report may be about an entry that was overwritten since: another entry has its index
     * now, or the same one again, and that is not durable. */
    if (in->stored_epoch != r->epoch || !raft__term_of(r, in->stored_index, &held) ||
        held != in->stored_term)
        MARK("raft.stored.stale");
    else if (in->stored_index > r->stored)
        entries_stored(r, in->stored_index);
    if (r->hard_stored.term != r->hard.term || r->hard_stored.vote != r->hard.vote)
        hard_stored(r, in);
}

static uint64_t match_of(const struct raft *r, const struct raft__progress *p)
{
    (void)r;
    return p->match;
}

/* The entry that removes the leader, or its vote, is the last that it commits. */
static void members_committed(struct raft *r, uint64_t before)
{
    if (r->members_index <= before || r->members_index > r->commit)
        return;
    r->leave = r->self_at == RAFT_MEMBERS_MAX || r->members.at[r->self_at].role != RAFT_VOTER;
}

void raft__commit_advance(struct raft *r)
{
    uint64_t term, before = r->commit;

    if (r->role != RAFT_LEADER)
        return;
    bool alone = r->lone || RAFT_BROKEN(RAFT__BREAK_COMMIT_ALONE);
    uint64_t index = alone ? r->stored : raft__quorum_of(r, r->stored, match_of);
    if (index <= r->commit)
        return;
    if (!raft__term_of(r, index, &term) ||
        (term != r->hard.term && !RAFT_BROKEN(RAFT__BREAK_COMMIT_OTHER_TERM))) {
        MARK("raft.commit.older_term");
        return;
    }
    r->commit = index;
    if (!r->lone)
        members_committed(r, before);
}

void raft__commit_heard(struct raft *r, uint64_t commit)
{
    uint64_t known = commit < r->verified ? commit : r->verified;
    if (known > r->commit)
        r->commit = known;
}

bool raft__disk_hangs(const struct raft *r)
{
    return r->stored < raft__tail_last_index(&r->tail) &&
           r->now_ms >= r->unstored_ms + r->config.disk_ms;
}
