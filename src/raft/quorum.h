/*
 * raft/quorum.h — arithmetic of majorities; pure functions.
 */
#ifndef RAFT_QUORUM_H
#define RAFT_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* The smallest number of voters of which any two sets share one. COUNT is at least 1. */
unsigned raft__quorum_size(unsigned count);
/* The highest index that a majority of the COUNT voters have; COUNT is 1 to RAFT_VOTERS_MAX. */
uint64_t raft__quorum_index(const uint64_t *match, unsigned count);
bool raft__quorum_granted(const bool *granted, unsigned count);

#endif
