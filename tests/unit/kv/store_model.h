/*
 * tests/unit/kv/store_model.h — what a store must hold: an array over a fixed, sorted set of keys.
 *
 * The *world* lives in a file mapped shared, so it outlives the process that is killed while it
 * uses the store. It knows the content that is surely persisted and the history of changes since;
 * what a crash left is that content and the batches up to the one whose number the store shows,
 * and each load that was installed: a load is durable by itself, whatever batches before it are
 * lost.
 *
 * Invariants
 *   W1  A change is in the history before the store hears of it.
 *   W2  Each step of the world is one store of one word: a kill leaves the old or the new.
 *   W3  A batch puts its number under the key of the record, a key outside the set.
 */
#ifndef TESTS_UNIT_KV_STORE_MODEL_H
#define TESTS_UNIT_KV_STORE_MODEL_H

#include "base/arena.h"

#include <stdatomic.h>
#include <stdint.h>

#define MODEL_KEYS 4096u
#define MODEL_HISTORY (1u << 15)
#define MODEL_VALUE_MAX 3000u

/* What each key's value is, by its number; 0: the key is absent. */
struct content {
    uint32_t value[MODEL_KEYS];
    uint64_t batch; /* the last one in it */
};

enum change_kind { CHANGE_PUT, CHANGE_DELETE, CHANGE_DELETE_RANGE };

struct change {
    enum change_kind kind;
    uint32_t lower, upper; /* keys; upper of a range only */
    uint32_t value;
    uint64_t batch; /* 0: of a load */
    uint64_t load;  /* its number, of a load only */
};

struct world {
    uint64_t magic, size, seed;
    _Atomic uint64_t steps;
    uint64_t random;
    uint32_t next_value;
    _Atomic uint64_t end;     /* of the history: changes so far */
    _Atomic uint64_t epoch;   /* where the history begins, and which content is the base, W2 */
    _Atomic uint64_t loading; /* the load whose installation has begun and not ended, or 0 */
    uint64_t loads;
    uint64_t kills, opens;
    struct content base[2];
    struct change history[MODEL_HISTORY]; /* a ring */
};

/* The world in FILE, made if it is not there. One process at a time uses it. */
struct world *world_map(const char *file, uint64_t seed);
void world_unmap(struct world *w);
uint64_t world_random(struct world *w, uint64_t bound);

/* The keys, in order; the same for one seed. */
void model_keys_make(uint64_t seed);
bytes model_key(unsigned i);
bytes model_upper(unsigned i);  /* key I, or above the last one if I is MODEL_KEYS */
unsigned model_find(bytes key); /* MODEL_KEYS if it is none of them */
bytes model_value(uint32_t value, uint8_t out[MODEL_VALUE_MAX]);

const struct content *world_base(const struct world *w);
/* All that is in the history up to now is persisted, and NOW is what it gives. */
void world_persisted(struct world *w, const struct content *now);
uint64_t world_pending(const struct world *w); /* changes in the history */
void world_add(struct world *w, struct change c);
/* The last COUNT changes never were. */
void world_take_back(struct world *w, unsigned count);
void content_apply(struct content *c, const struct change *change);
/* What a crash leaves if the last batch in it is BATCH: the installed loads too, and the one whose
 * installation was under way if WITH_LOADING. */
void world_after_crash(const struct world *w, uint64_t batch, bool with_loading,
                       struct content *out);
/* Key I's value if the last batch is BATCH. */
uint32_t world_value(const struct world *w, unsigned i, uint64_t batch);

#endif
