#include "store_model.h"

#include "base/assert.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC 0x6d65746164623031u
#define KEY_MAX 300u

/* -- keys and values --------------------------------------------------------------------------- */

struct key {
    unsigned size;
    uint8_t data[KEY_MAX];
};
static struct key keys[MODEL_KEYS];

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static int by_bytes(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    return bytes_cmp(bytes_make(x->data, x->size), bytes_make(y->data, y->size));
}

/* Names in directories, prefixes of each other, ends in 0x00 and 0xff, a few long ones. */
static void make_key(struct key *k, unsigned i, uint64_t random)
{
    unsigned n = 0;

    if (i > 0 && random % 8 == 0) {
        *k = keys[random / 8 % i];
        if (k->size < KEY_MAX)
            k->data[k->size++] = random % 16 == 0 ? 0x00 : 0xff;
        return;
    }
    k->data[n++] = (uint8_t)(1 + random % 3);
    k->data[n++] = (uint8_t)(random / 8 % 5);
    unsigned size = random / 64 % 64 == 0 ? 250 : 1 + (unsigned)(random / 64 % 24);
    for (unsigned j = 0; j < size; j++) {
        uint64_t r = mix(random + j);
        k->data[n++] = r % 7 == 0 ? 0x00 : r % 7 == 1 ? 0xff : (uint8_t)(r >> 8);
    }
    k->size = n;
}

void model_keys_make(uint64_t seed)
{
    unsigned count = 0;
    uint64_t random = mix(seed);

    while (count < MODEL_KEYS) {
        while (count < MODEL_KEYS) {
            random = mix(random);
            make_key(&keys[count], count, random);
            count++;
        }
        qsort(keys, count, sizeof *keys, by_bytes);
        unsigned kept = 0;
        for (unsigned i = 0; i < count; i++)
            if (kept == 0 || by_bytes(&keys[kept - 1], &keys[i]) != 0)
                keys[kept++] = keys[i];
        count = kept;
    }
}

bytes model_key(unsigned i)
{
    ASSERT(i < MODEL_KEYS);
    return bytes_make(keys[i].data, keys[i].size);
}

bytes model_upper(unsigned i)
{
    return i < MODEL_KEYS ? model_key(i) : BYTES_LIT("\x7f");
}

unsigned model_find(bytes key)
{
    unsigned low = 0, high = MODEL_KEYS;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (bytes_cmp(model_key(middle), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < MODEL_KEYS && bytes_eq(model_key(low), key) ? low : MODEL_KEYS;
}

bytes model_value(uint32_t value, uint8_t out[MODEL_VALUE_MAX])
{
    uint64_t random = mix(value);
    size_t size = random % 16 == 0 ? random / 16 % MODEL_VALUE_MAX : random / 16 % 200;

    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = mix(random + i);

        memcpy(out + i, &word, size - i < 8 ? size - i : 8);
    }
    return bytes_make(out, size);
}

/* -- the world --------------------------------------------------------------------------------- */

struct world *world_map(const char *file, uint64_t seed)
{
    int fd = open(file, O_RDWR | O_CREAT, 0600);
    struct world *w;

    ASSERT(fd >= 0);
    ASSERT(ftruncate(fd, sizeof *w) == 0);
    w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT(w != MAP_FAILED);
    close(fd);
    if (w->magic == 0) {
        w->seed = seed;
        w->size = sizeof *w;
        w->random = mix(seed);
        w->next_value = 1;
        w->magic = MAGIC;
    }
    ASSERT(w->magic == MAGIC && w->size == sizeof *w && w->seed == seed);
    return w;
}

void world_unmap(struct world *w)
{
    ASSERT(munmap(w, sizeof *w) == 0);
}

uint64_t world_random(struct world *w, uint64_t bound)
{
    ASSERT(bound > 0);
    w->random = mix(w->random);
    return w->random % bound;
}

const struct content *world_base(const struct world *w)
{
    return &w->base[atomic_load(&w->epoch) & 1];
}

static uint64_t history_begin(const struct world *w)
{
    return atomic_load(&w->epoch) >> 1;
}

uint64_t world_pending(const struct world *w)
{
    return atomic_load(&w->end) - history_begin(w);
}

void world_persisted(struct world *w, const struct content *now)
{
    uint64_t other = 1 - (atomic_load(&w->epoch) & 1);

    w->base[other] = *now;
    atomic_store(&w->epoch, atomic_load(&w->end) << 1 | other);
}

void world_add(struct world *w, struct change c)
{
    uint64_t end = atomic_load(&w->end);

    ASSERT(world_pending(w) < MODEL_HISTORY);
    w->history[end % MODEL_HISTORY] = c;
    atomic_store(&w->end, end + 1);
}

void world_take_back(struct world *w, unsigned count)
{
    ASSERT(world_pending(w) >= count);
    atomic_store(&w->end, atomic_load(&w->end) - count);
}

void content_apply(struct content *c, const struct change *change)
{
    if (change->kind == CHANGE_DELETE_RANGE)
        memset(c->value + change->lower, 0, (change->upper - change->lower) * sizeof c->value[0]);
    else
        c->value[change->lower] = change->kind == CHANGE_PUT ? change->value : 0;
    if (change->batch > 0)
        c->batch = change->batch;
}

/* Is it in what a crash leaves, if the last batch is BATCH? */
static bool survives(const struct change *c, uint64_t batch, uint64_t not_load)
{
    return c->batch > 0 ? c->batch <= batch : c->load != not_load;
}

void world_after_crash(const struct world *w, uint64_t batch, bool with_loading,
                       struct content *out)
{
    uint64_t end = atomic_load(&w->end);
    uint64_t not_load = with_loading ? UINT64_MAX : atomic_load(&w->loading);

    *out = *world_base(w);
    for (uint64_t at = history_begin(w); at < end; at++) {
        const struct change *c = &w->history[at % MODEL_HISTORY];

        if (survives(c, batch, not_load > 0 ? not_load : UINT64_MAX))
            content_apply(out, c);
    }
    out->batch = batch;
}

uint32_t world_value(const struct world *w, unsigned i, uint64_t batch)
{
    uint32_t value = world_base(w)->value[i];
    uint64_t end = atomic_load(&w->end);

    for (uint64_t at = history_begin(w); at < end; at++) {
        const struct change *c = &w->history[at % MODEL_HISTORY];

        if (!survives(c, batch, UINT64_MAX))
            continue;
        if (c->kind == CHANGE_DELETE_RANGE ? i >= c->lower && i < c->upper : i == c->lower)
            value = c->kind == CHANGE_PUT ? c->value : 0;
    }
    return value;
}
