/*
 * raft/invariants.c — what holds after every step; asserted always, in every build.
 *
 * R1  The term never goes back (Raft 5.1).
 * R2  In one term a replica votes at most once: a vote that was given stays (5.2).
 * R3  A hard state that changed is in the output, so that it is stored before what depends on it.
 * R4  The commit index never goes back and never passes the end of the log (5.3).
 * R5  applied <= commit, and the base of the tail is at or below applied.
 * R6  stored <= last index; a lone voter commits nothing that is not durable.
 * R7  Terms in the log never decrease and never exceed the current term.
 * R8  A leader voted for itself in its term and follows nobody.
 * R9  A leader advances the commit index only to an entry of its own term (5.4.2).
 * R10 What a leader appends in a step is of its own term and at the end.
 * R11 A leader never becomes candidate, and becomes follower of its own term only by giving up.
 * R12 A leader knows each member's progress, in the order of the members; others know none.
 * R13 match < next, match <= last: nothing is acknowledged that was never sent.
 * R14 What is under way to a follower lies between match and next, within its window.
 * R15 acked_seq <= seq: nobody answers what was not asked; seq never goes back.
 * R16 verified <= last: a follower's log is its leader's only where it has one.
 * R17 At most one membership entry is not committed at a leader.
 * R18 A candidate has voted for itself; a poll that has asked has its vote durable.
 * R19 Only a leader has reads, a transfer or a removal under way.
 * R20 Who is being given a snapshot neither leads nor asks for votes.
 * R21 Who leads or asks for votes sleeps under nobody; a follower that sleeps knows under whom.
 * R22 Consent to sleep is counted only from an offer on.
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
        .seq = r->seq,
        .role = r->role,
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
    if (r->lone && r->role == RAFT_LEADER && before->role == RAFT_LEADER)
        ASSERT_INV("R6", r->commit <= r->stored || r->commit == before->commit);
    ASSERT_INV("R7", raft__tail_last_term(&r->tail) <= r->hard.term);
#ifdef METADB_SLOW_CHECKS
    uint64_t term = r->tail.base_term;
    for (uint64_t i = r->tail.base_index + 1; i <= last && last - i < 64; i++) {
        const struct raft_entry *entry = raft__tail_get(&r->tail, i);
        ASSERT_INV("R7", entry->index == i);
        ASSERT_INV("R7", entry->term >= term);
        term = entry->term;
    }
#endif
}

static void check_progress(const struct raft *r, const struct raft__progress *p)
{
    uint64_t last = raft__tail_last_index(&r->tail);

    ASSERT_INV("R13", p->match < p->next);
    ASSERT_INV("R13", p->match <= last);
    ASSERT_INV("R13", p->next <= last + 1);
    ASSERT_INV("R15", p->acked_seq <= r->seq);
    if (p->state != RAFT__PIPELINE)
        ASSERT_INV("R14", p->window_count == 0);
    if (p->window_count > 0) {
        ASSERT_INV("R14", p->window[p->window_first].last > p->match);
        ASSERT_INV("R14", p->window_count <= RAFT__WINDOW_MESSAGES);
    }
}

static void check_leader(const struct raft *r, const struct raft__before *before)
{
    uint64_t term = 0;

    ASSERT_INV("R8", r->hard.vote == r->config.self);
    ASSERT_INV("R8", r->leader == r->config.self);
    if (r->commit > before->commit) {
        bool held = raft__tail_term(&r->tail, r->commit, &term);
        ASSERT_INV("R9", held);
        ASSERT_INV("R9", term == r->hard.term || RAFT_BROKEN(RAFT__BREAK_COMMIT_OTHER_TERM));
    }
    if (r->out_first != 0) {
        const struct raft_entry *first = raft__tail_get(&r->tail, r->out_first);
        ASSERT_INV("R10", first != NULL);
        ASSERT_INV("R10", first->term == r->hard.term);
    }
    ASSERT_INV("R12", r->progress_count == (r->lone ? 0 : r->members.count));
    for (unsigned i = 0; i < r->progress_count; i++) {
        ASSERT_INV("R12", r->progress[i].id == r->members.at[i].id);
        if (i != r->self_at)
            check_progress(r, &r->progress[i]);
    }
    ASSERT_INV("R15", r->seq >= before->seq);
    ASSERT_INV("R20", r->install.index == 0);
    ASSERT_INV("R21", r->asleep_under == 0);
    ASSERT_INV("R22", !r->quiesced || r->offer_seq != 0);
}

static void check_others(const struct raft *r, const struct raft__before *before)
{
    if (before->role == RAFT_LEADER)
        ASSERT_INV("R11", r->role == RAFT_FOLLOWER);
    ASSERT_INV("R12", r->progress == NULL);
    ASSERT_INV("R16", r->verified <= raft__tail_last_index(&r->tail));
    if (r->role == RAFT_CANDIDATE) {
        ASSERT_INV("R18", r->hard.vote == r->config.self);
        ASSERT_INV("R18", r->poll == RAFT__POLL_VOTE);
        ASSERT_INV("R20", r->install.index == 0);
    }
    if (r->poll == RAFT__POLL_VOTE && r->poll_asked)
        ASSERT_INV("R18", r->hard_stored.term == r->hard.term);
    ASSERT_INV("R21", r->asleep_under == 0 || r->poll == RAFT__POLL_NONE);
    ASSERT_INV("R21", r->asleep_under != 0 || !r->quiesced);
    ASSERT_INV("R22", r->offer_seq == 0);
    ASSERT_INV("R19", r->read_asked == 0 && r->read_waiting == 0);
    ASSERT_INV("R19", r->transfer_to == 0 && !r->leave);
}

/* What a change did not touch needs no look: the list is read only when it is longer. */
static void check_members(const struct raft *r)
{
    ASSERT_INV("R17", r->members_index <= raft__tail_last_index(&r->tail));
    ASSERT_INV("R17", r->members_base_index <= r->members_index);
    if (r->role == RAFT_LEADER && raft__change_pending(r))
        ASSERT_INV("R17", r->opened <= r->commit || r->members_index < r->opened ||
                              RAFT_BROKEN(RAFT__BREAK_CHANGE_EARLY));
}

void raft__invariants_after(const struct raft *r, const struct raft__before *before)
{
    check_terms(r, before);
    check_indexes(r, before);
    check_members(r);
    if (r->role == RAFT_LEADER)
        check_leader(r, before);
    else
        check_others(r, before);
}
