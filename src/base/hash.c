/*
 * base/hash.c — linear probing with backward-shift deletion.
 *
 * Invariants
 *   B1  capacity is 0 or a power of two, and count <= 3/4 of it, so that every probe ends.
 *   B2  No free slot lies between a key's home slot (hash modulo capacity) and where it is: a
 *       look-up may stop at the first free slot. Deletion moves followers back instead of leaving
 *       tombstones.
 */
#include "base/hash.h"
#include "base/assert.h"
#include "base/checksum.h"
#include <stdio.h>
#include <stdlib.h>

#define CAPACITY_FIRST 16u

void hash_init(struct hash *h)
{
    *h = (struct hash){0};
}

void hash_fini(struct hash *h)
{
    free(h->slots);
    *h = (struct hash){0};
}

/* The slot of KEY, or the free slot where it would go. */
static size_t find(const struct hash *h, bytes key, uint64_t hash)
{
    size_t i = hash & (h->capacity - 1);
    while (h->slots[i].value != NULL &&
           (h->slots[i].hash != hash || !bytes_eq(h->slots[i].key, key)))
        i = (i + 1) & (h->capacity - 1);
    return i;
}

void *hash_get(const struct hash *h, bytes key)
{
    if (h->count == 0)
        return NULL;
    return h->slots[find(h, key, checksum64(key, 0))].value;
}

static void grow(struct hash *h)
{
    struct hash bigger = {.capacity = h->capacity == 0 ? CAPACITY_FIRST : h->capacity * 2,
                          .count = h->count};
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (bigger.slots == NULL) {
        fprintf(stderr, "metadb: out of memory (hash of %zu slots)\n", bigger.capacity);
        abort();
    }
    for (size_t i = 0; i < h->capacity; i++) {
        const struct hash_slot *s = &h->slots[i];
        if (s->value != NULL)
            bigger.slots[find(&bigger, s->key, s->hash)] = *s;
    }
    free(h->slots);
    *h = bigger;
}

void *hash_put(struct hash *h, bytes key, void *value)
{
    ASSERT(value != NULL);
    if ((h->count + 1) * 4 > h->capacity * 3)
        grow(h);
    uint64_t hash = checksum64(key, 0);
    struct hash_slot *s = &h->slots[find(h, key, hash)];
    void *before = s->value;
    *s = (struct hash_slot){.key = key, .value = value, .hash = hash};
    if (before == NULL)
        h->count++;
    return before;
}

/* Slot I was emptied: pull back every follower that could not be found past the gap (B2). */
static void close_gap(struct hash *h, size_t i)
{
    size_t mask = h->capacity - 1;
    for (size_t j = (i + 1) & mask; h->slots[j].value != NULL; j = (j + 1) & mask) {
        size_t home = h->slots[j].hash & mask;
        bool reachable = ((j - home) & mask) < ((j - i) & mask);
        if (reachable)
            continue;
        h->slots[i] = h->slots[j];
        h->slots[j].value = NULL;
        i = j;
    }
}

void *hash_remove(struct hash *h, bytes key)
{
    if (h->count == 0)
        return NULL;
    size_t i = find(h, key, checksum64(key, 0));
    void *before = h->slots[i].value;
    if (before == NULL)
        return NULL;
    h->slots[i].value = NULL;
    h->count--;
    close_gap(h, i);
    return before;
}

void *hash_next(const struct hash *h, size_t *at)
{
    while (*at < h->capacity) {
        void *v = h->slots[(*at)++].value;
        if (v != NULL)
            return v;
    }
    return NULL;
}
