/*
 * raft/invariants.c — what holds after every step; asserted always, in every build.
 *
 * R1  The term never goes back (Raft 5.1).
 * R2  In one term a replica votes at most once: a vote that was given stays (5.2).
 * R3  A hard state that changed is in the output, so that it is stored before anything leaves.
 * R4  The commit index never goes back and never passes the end of the log (5.3).
 * R5  applied <= commit, and the base of the tail is at or below applied.
 * R6  stored <= last index, and never below the commit index's own share: a lone voter commits
 *     nothing that is not durable.
 * R7  Terms in the log never decrease and never exceed the current term.
 * R8  A leader voted for itself in its term, and its own match index is `stored`.
 * R9  A leader advances the commit index only to an entry of its own term (5.4.2).
 * R10 Only a leader appends; what it appends in a step is of its own term and at the end.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"

struct raft__before raft__invariants_before(const struct raft *r)
{
    return (struct raft__before){
        .term = r->hard.term,
        .vote = r->hard.vote,
        .commit = r->commit,
        .stored = r->stored,
    };
}

static void check_terms(const struct raft *r, const struct raft__before *before)
{
    ASSERT_INV("R1", r->hard.term >= before->term);
    if (r->hard.term == before->term)
        ASSERT_INV("R2", before->vote == 0 || r->hard.vote == before->vote);
    if (r->hard.term != before->term || r->hard.vote != before->vote)
        ASSERT_INV("R3", r->out_hard);
}

static void check_indexes(const struct raft *r, const struct raft__before *before)
{
    uint64_t last = raft__tail_last_index(&r->tail);

    ASSERT_INV("R4", r->commit >= before->commit);
    ASSERT_INV("R4", r->commit <= last);
    ASSERT_INV("R5", r->applied <= r->commit);
    ASSERT_INV("R5", r->tail.base_index <= r->applied);
    ASSERT_INV("R6", r->stored <= last);
    if (r->config.voter_count == 1)
        ASSERT_INV("R6", r->commit <= r->stored);
    ASSERT_INV("R7", raft__tail_last_term(&r->tail) <= r->hard.term);
#ifdef METADB_SLOW_CHECKS
    uint64_t term = r->tail.base_term;
    for (uint64_t i = r->tail.base_index + 1; i <= last; i++) {
        const struct raft_entry *entry = raft__tail_get(&r->tail, i);
        ASSERT_INV("R7", entry->index == i);
        ASSERT_INV("R7", entry->term >= term);
        term = entry->term;
    }
#endif
}

static void check_leader(const struct raft *r, const struct raft__before *before)
{
    uint64_t term = 0;

    ASSERT_INV("R8", r->hard.vote == r->config.self);
    ASSERT_INV("R8", r->leader == r->config.self);
    ASSERT_INV("R8", r->match[r->self_at] == r->stored);
    if (r->commit > before->commit) {
        bool held = raft__tail_term(&r->tail, r->commit, &term);
        ASSERT_INV("R9", held);
        ASSERT_INV("R9", term == r->hard.term);
    }
}

void raft__invariants_after(const struct raft *r, const struct raft__before *before)
{
    check_terms(r, before);
    check_indexes(r, before);
    if (r->role == RAFT_LEADER)
        check_leader(r, before);
    if (r->out_first != 0) {
        ASSERT_INV("R10", r->role == RAFT_LEADER);
        const struct raft_entry *first = raft__tail_get(&r->tail, r->out_first);
        ASSERT_INV("R10", first != NULL);
        ASSERT_INV("R10", first->term == r->hard.term);
    }
}
