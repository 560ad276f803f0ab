/*
 * raft/quorum.c — majorities of up to RAFT_VOTERS_MAX voters.
 *
 * The committed index is the q-th largest match index, q being the quorum's size: exactly then at
 * least q voters have it. Sorting seven numbers by insertion is cheaper than anything cleverer.
 */
#include "raft/quorum.h"

#include "base/assert.h"
#include "raft/raft.h"

unsigned raft__quorum_size(unsigned count)
{
    ASSERT(count >= 1);
    return count / 2 + 1;
}

uint64_t raft__quorum_index(const uint64_t *match, unsigned count)
{
    uint64_t sorted[RAFT_VOTERS_MAX]; /* descending */

    ASSERT(count >= 1 && count <= RAFT_VOTERS_MAX);
    for (unsigned i = 0; i < count; i++) {
        unsigned at = i;
        for (; at > 0 && sorted[at - 1] < match[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = match[i];
    }
    return sorted[raft__quorum_size(count) - 1];
}

bool raft__quorum_granted(const bool *granted, unsigned count)
{
    unsigned votes = 0;
    for (unsigned i = 0; i < count; i++)
        votes += granted[i];
    return votes >= raft__quorum_size(count);
}
