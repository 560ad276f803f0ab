/*
 * raft/tail.c — a growable ring of entries.
 *
 * Entry base_index + 1 + i lies in slot (first + i) mod capacity. Dropping from the front and
 * truncating at the end move numbers only; the ring keeps its size, since a group that once had
 * many entries in flight will have them again, but for what only a replay of the log needs.
 */
#include "raft/tail.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>

#define TAIL_FIRST_CAPACITY 16u
#define TAIL_KEPT_CAPACITY 8192u /* of an empty tail */

static struct raft_entry *slot_at(const struct raft__tail *t, size_t at)
{
    return &t->ring[(t->first + at) & (t->capacity - 1)];
}

void raft__tail_init(struct raft__tail *t, uint64_t base_index, uint64_t base_term)
{
    *t = (struct raft__tail){.base_index = base_index, .base_term = base_term};
}

static void ring_free(struct raft__tail *t)
{
    memory_free(MEMORY_GROUPS, t->ring, t->capacity * sizeof *t->ring);
}

void raft__tail_fini(struct raft__tail *t)
{
    for (size_t i = 0; i < t->count; i++)
        buf_unref(slot_at(t, i)->data);
    ring_free(t);
    *t = (struct raft__tail){0};
}

uint64_t raft__tail_last_index(const struct raft__tail *t)
{
    return t->base_index + t->count;
}

uint64_t raft__tail_last_term(const struct raft__tail *t)
{
    return t->count ? slot_at(t, t->count - 1)->term : t->base_term;
}

bool raft__tail_term(const struct raft__tail *t, uint64_t index, uint64_t *term)
{
    if (index == t->base_index) {
        *term = t->base_term;
        return true;
    }
    const struct raft_entry *entry = raft__tail_get(t, index);
    if (!entry)
        return false;
    *term = entry->term;
    return true;
}

const struct raft_entry *raft__tail_get(const struct raft__tail *t, uint64_t index)
{
    if (index <= t->base_index || index > raft__tail_last_index(t))
        return NULL;
    return slot_at(t, (size_t)(index - t->base_index - 1));
}

/* Doubles the ring and straightens it, so that entry base_index + 1 is in slot 0. */
static void tail_grow(struct raft__tail *t)
{
    size_t capacity = t->capacity ? t->capacity * 2 : TAIL_FIRST_CAPACITY;
    struct raft_entry *ring = memory_new(MEMORY_GROUPS, capacity * sizeof *ring);
    for (size_t i = 0; i < t->count; i++)
        ring[i] = *slot_at(t, i);
    ring_free(t);
    t->ring = ring;
    t->first = 0;
    t->capacity = capacity;
}

void raft__tail_append(struct raft__tail *t, const struct raft_entry *entry)
{
    ASSERT(entry->index == raft__tail_last_index(t) + 1);
    ASSERT(entry->term >= raft__tail_last_term(t));
    if (t->count == t->capacity)
        tail_grow(t);
    *slot_at(t, t->count) = *entry;
    if (entry->data)
        buf_ref(entry->data);
    t->bytes += raft__entry_bytes(entry);
    t->count++;
}

void raft__tail_truncate(struct raft__tail *t, uint64_t index)
{
    ASSERT(index > t->base_index);
    while (raft__tail_last_index(t) >= index) {
        struct raft_entry *last = slot_at(t, t->count - 1);
        t->bytes -= raft__entry_bytes(last);
        buf_unref(last->data);
        t->count--;
    }
}

void raft__tail_drop(struct raft__tail *t, uint64_t index)
{
    uint64_t term;
    bool known = raft__tail_term(t, index, &term);
    ASSERT(known);
    while (t->base_index < index) {
        struct raft_entry *entry = slot_at(t, 0);
        t->bytes -= raft__entry_bytes(entry);
        buf_unref(entry->data);
        t->first = (t->first + 1) & (t->capacity - 1);
        t->count--;
        t->base_index++;
    }
    t->base_term = term;
    if (t->count == 0 && t->capacity > TAIL_KEPT_CAPACITY) {
        ring_free(t);
        t->ring = NULL;
        t->first = t->capacity = 0;
    }
}
