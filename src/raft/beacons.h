/*
 * raft/beacons.h — what one process heard of the others, for all its groups at once.
 *
 * The host's beacons go from process to process, one per interval, whatever the number of groups.
 * They carry the sender's clock and up to which time it may serve reads; the receiver repeats both.
 * A group that sleeps lends from them what its own messages said while it was awake: quiesce.c.
 *
 * The host keeps one table and changes it between steps; each number only ascends, but for `acked`,
 * which ends with the connection.
 */
#ifndef RAFT_BEACONS_H
#define RAFT_BEACONS_H

#include "raft/members.h"

struct raft_beacon {
    uint64_t peer;
    /* The other side has this of an own beacon: when it was sent, by the own clock, and its bound.
     * 0 while there is no connection. */
    uint64_t acked_ms, acked_bound;
    /* Of the other side's beacons: when the last one came, and the highest bound. */
    uint64_t heard_ms, heard_bound;
};

struct raft_beacons {
    uint64_t sent_bound; /* the highest that an own beacon carried */
    unsigned count;
    struct raft_beacon at[RAFT_MEMBERS_MAX];
};

/* NULL: none of PEER. */
static inline const struct raft_beacon *raft_beacon_of(const struct raft_beacons *b, uint64_t peer)
{
    for (unsigned i = 0; b != NULL && i < b->count; i++) {
        if (b->at[i].peer == peer)
            return &b->at[i];
    }
    return NULL;
}

#endif
