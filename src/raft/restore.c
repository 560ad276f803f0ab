/*
 * raft/restore.c — what a log says about a group, read back in the order it was written.
 *
 * The base is what the state machine has persisted. Entries at or below it were applied, so only
 * their place matters; those above it are the tail, as long as they continue the base. They need
 * not: a log may hold a stretch that a later leader overwrote, or that a snapshot replaced.
 *
 *   - An entry replaces all with its index and above, so what is seen last counts.
 *   - An entry at the base of another term than the base's begins a stretch that is not ours;
 *     all behind it is skipped until an entry at the base agrees. RAFT_ENTRY_SNAPSHOT is such an
 *     entry, written once a snapshot was installed; before it was durable nothing of ours follows.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"

static void restore_applied(struct raft *r, const struct raft_entry *entry)
{
    raft__tail_truncate(&r->tail, r->tail.base_index + 1);
    r->restoring_other = entry->index == r->tail.base_index && entry->term != r->tail.base_term;
    if (r->restoring_other)
        MARK("raft.restore.other_base");
}

static status restore_above(struct raft *r, const struct raft_entry *entry)
{
    uint64_t term_before = 0;
    struct raft_members members;

    if (r->restoring_other || entry->term < r->tail.base_term) {
        /* It followed another entry than the one applied at the base: a stretch that a later leader
         * overwrote. The state machine has what overwrote it, by a snapshot or by other records. */
        MARK("raft.restore.other_branch");
        return ST_OK;
    }
    if (!raft__term_of(r, entry->index - 1, &term_before) || entry->term < term_before)
        return ST_CORRUPT;
    if (entry->kind == RAFT_ENTRY_SNAPSHOT)
        return ST_CORRUPT; /* the state machine has lost the snapshot that it stands for */
    if (entry->kind == RAFT_ENTRY_MEMBERS &&
        raft_members_decode(buf_bytes(entry->data), &members) != ST_OK)
        return ST_CORRUPT;
    raft__tail_truncate(&r->tail, entry->index);
    raft__members_truncated(r);
    raft__tail_append(&r->tail, entry);
    raft__members_took(r, entry);
    return ST_OK;
}

status raft_restore_entry(struct raft *r, const struct raft_entry *entry)
{
    ASSERT(!r->deadline_set); /* before the first step */
    if (entry->index <= r->tail.base_index)
        restore_applied(r, entry);
    else
        ST_TRY(restore_above(r, entry));
    raft__members_truncated(r);
    r->stored = raft__tail_last_index(&r->tail);
    /* A term is durable before entries of it; a log that shows the entry has seen the term. */
    if (r->hard.term < raft__tail_last_term(&r->tail))
        r->hard = (struct raft_hard_state){.term = raft__tail_last_term(&r->tail)};
    return ST_OK;
}

bool raft_restored_other(const struct raft *r)
{
    return r->restoring_other;
}

void raft_restore_hard_state(struct raft *r, struct raft_hard_state hard)
{
    ASSERT(!r->deadline_set); /* before the first step */
    if (hard.term >= r->hard.term)
        r->hard = hard;
}
