/*
 * raft/tail.h — the end of one group's log in memory: entries above what the state machine applied.
 *
 * A ring of entries that grows by doubling; it owns one reference of each entry's data. The base
 * is the last entry that left (its index and term stay known), 0/0 before the first entry.
 * Embedded in struct raft; same thread.
 */
#ifndef RAFT_TAIL_H
#define RAFT_TAIL_H

#include "raft/raft.h"

struct raft__tail {
    uint64_t base_index, base_term;
    struct raft_entry *ring;
    size_t first, count, capacity; /* capacity is 0 or a power of two */
    uint64_t bytes;                /* of all entries, as raft__entry_bytes counts */
};

/* What an entry takes in memory. */
static inline uint64_t raft__entry_bytes(const struct raft_entry *e)
{
    return sizeof *e + (e->data ? e->data->size : 0);
}

void raft__tail_init(struct raft__tail *t, uint64_t base_index, uint64_t base_term);
void raft__tail_fini(struct raft__tail *t); /* releases the data; zeroed memory is fine */

uint64_t raft__tail_last_index(const struct raft__tail *t);
uint64_t raft__tail_last_term(const struct raft__tail *t);
/* False if INDEX is below the base or above the end. */
bool raft__tail_term(const struct raft__tail *t, uint64_t index, uint64_t *term);
/* Lends an entry above the base; NULL if it is not held. Valid until the next change. */
const struct raft_entry *raft__tail_get(const struct raft__tail *t, uint64_t index);

/* ENTRY must follow the last one (asserted); takes a reference of its own. */
void raft__tail_append(struct raft__tail *t, const struct raft_entry *entry);
/* Removes entries with this index and above; INDEX is above the base. */
void raft__tail_truncate(struct raft__tail *t, uint64_t index);
/* Removes entries up to INDEX, which becomes the base; INDEX is held or the base itself. */
void raft__tail_drop(struct raft__tail *t, uint64_t index);

#endif
