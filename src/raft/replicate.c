/*
 * raft/replicate.c — entries enter the log at the leader (Raft 5.3).
 *
 * An appended entry is in the tail at once and in the step's output; the caller hands the output
 * to the shared log (and, with followers, to them at the same time).
 */
#include "raft/raft_internal.h"

#include "base/assert.h"

uint64_t raft__append(struct raft *r, enum raft_entry_kind kind, struct buf *data)
{
    ASSERT(r->role == RAFT_LEADER);
    const struct raft_entry entry = {
        .index = raft__tail_last_index(&r->tail) + 1,
        .term = r->hard.term,
        .kind = kind,
        .data = data,
    };
    raft__tail_append(&r->tail, &entry);
    if (r->out_first == 0)
        r->out_first = entry.index;
    return entry.index;
}

status raft__propose(struct raft *r, struct buf *const *commands, size_t count)
{
    if (r->role != RAFT_LEADER)
        return ST_NOT_LEADER;
    for (size_t i = 0; i < count; i++) {
        uint64_t index = raft__append(r, RAFT_ENTRY_COMMAND, commands[i]);
        if (i == 0)
            r->out_proposed = index;
    }
    return ST_OK;
}
