/*
 * base/hash.h — a hash map from bytes to a pointer, open addressing with linear probing.
 *
 * Keys are borrowed: the memory of a key must stay as it is while it is in the map (usually it lies
 * in the value). Deterministic: the same operations give the same order, on every machine; still,
 * replicated state may not depend on that order. Not thread-safe.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/bytes.h"

struct hash_slot {
    bytes key;
    void *value; /* NULL = free */
    uint64_t hash;
};

struct hash {
    struct hash_slot *slots;
    size_t count, capacity; /* capacity is 0 or a power of two */
};

void hash_init(struct hash *h);
void hash_fini(struct hash *h);                  /* frees the table, not the values */
void *hash_get(const struct hash *h, bytes key); /* NULL if absent */
/* VALUE may not be NULL. Returns the value that KEY had before, or NULL; the new key replaces the
 * old one too. */
void *hash_put(struct hash *h, bytes key, void *value);
void *hash_remove(struct hash *h, bytes key); /* what it was, or NULL */
/* The next value at or after position *AT, which starts at 0; NULL at the end. The map may not
 * change in between. */
void *hash_next(const struct hash *h, size_t *at);

#endif
