/*
 * sim/check_register.c — is the history of one row linearizable?
 *
 * Depth first: of the operations not yet placed, each that was invoked before the first return
 * among them may come next, if its answer fits the value at that point. An operation without an
 * answer may come at any time after its invocation, or never. What was tried is remembered by the
 * set of placed operations and the value, so that no situation is looked at twice (Lowe's cache);
 * sets are compared by a sum of random numbers of 128 bits, one per operation.
 */
#include "base/assert.h"
#include "base/sim_file.h"
#include "sim/history.h"
#include <string.h>

#define STEPS_MAX 4000000u
/* Entries of the cache, powers of two: most histories need few, and a run checks twenty. */
#define CACHE_FIRST (1u << 12)
#define CACHE_MAX (1u << 20)

struct situation {
    uint64_t low, high;
};

struct search {
    const struct register_op *ops;
    unsigned count;
    struct situation *numbers; /* of each operation */
    bool *placed;
    unsigned *order; /* operations by invocation */
    unsigned first;  /* of `order`: all before are placed */
    unsigned to_place;
    struct situation sum;
    struct situation *cache; /* (0, 0): free; at most half of it is used */
    unsigned cached, cache_size;
    unsigned steps;
};

static bool fits(const struct register_op *op, int64_t value, int64_t *next)
{
    bool open = op->returned == NEVER, hit = true;
    *next = value;
    switch (op->kind) {
    case REGISTER_PUT: *next = op->value; return true;
    case REGISTER_INSERT: hit = value == 0; break;
    case REGISTER_DELETE: hit = value != 0; break;
    case REGISTER_SWAP: hit = value != 0 && value == op->expected; break;
    case REGISTER_GET: return op->found == value;
    }
    if (hit)
        *next = op->kind == REGISTER_DELETE ? 0 : op->value;
    return open ? hit : hit == op->hit; /* without an answer and without effect: never */
}

/* The place of KEY in the cache, or the free one where it belongs. */
static struct situation *cache_find(const struct search *s, struct situation key)
{
    size_t mask = s->cache_size - 1, at = (size_t)(key.low ^ key.high) & mask;
    while (s->cache[at].low != 0 || s->cache[at].high != 0) {
        if (s->cache[at].low == key.low && s->cache[at].high == key.high)
            break;
        at = (at + 1) & mask;
    }
    return &s->cache[at];
}

static void cache_resize(struct search *s, unsigned size)
{
    struct situation *old = s->cache;
    unsigned old_size = s->cache_size;
    s->cache = calloc(size, sizeof *s->cache);
    ASSERT(s->cache != NULL);
    s->cache_size = size;
    for (unsigned i = 0; i < old_size; i++) {
        if (old[i].low != 0 || old[i].high != 0)
            *cache_find(s, old[i]) = old[i];
    }
    free(old);
}

/* False: the situation was met before. */
static bool remember(struct search *s, int64_t value)
{
    struct situation key = {s->sum.low ^ ((uint64_t)value * 0x9E3779B97F4A7C15u), s->sum.high};
    if (key.low == 0 && key.high == 0)
        key.low = 1;
    struct situation *place = cache_find(s, key);
    if (place->low != 0 || place->high != 0)
        return false;
    if (s->cached == s->cache_size / 2) {
        if (s->cache_size == CACHE_MAX)
            return true; /* full: still right, only slower */
        cache_resize(s, 2 * s->cache_size);
        place = cache_find(s, key);
    }
    *place = key;
    s->cached++;
    return true;
}

static void place(struct search *s, unsigned i, bool on)
{
    s->placed[i] = on;
    s->sum.low ^= s->numbers[i].low;
    s->sum.high ^= s->numbers[i].high;
    s->to_place += s->ops[i].returned == NEVER ? 0 : on ? -1u : 1u;
}

/* Completed operations first: those without an answer are placed where nothing else goes on. */
static bool search(struct search *s, int64_t value)
{
    if (s->to_place == 0)
        return true;
    if (s->steps++ > STEPS_MAX || !remember(s, value))
        return false;
    unsigned from = s->first;
    while (s->placed[s->order[from]])
        from++;
    uint64_t limit = NEVER;
    for (unsigned k = from; k < s->count; k++) {
        const struct register_op *op = &s->ops[s->order[k]];
        if (op->invoked > limit)
            break;
        if (!s->placed[s->order[k]] && op->returned < limit)
            limit = op->returned;
    }
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned k = from; k < s->count && s->ops[s->order[k]].invoked < limit; k++) {
            unsigned i = s->order[k];
            int64_t next;
            if (s->placed[i] || (s->ops[i].returned == NEVER) != (round == 1) ||
                !fits(&s->ops[i], value, &next))
                continue;
            unsigned before = s->first;
            place(s, i, true);
            s->first = from;
            if (search(s, next))
                return true;
            place(s, i, false);
            s->first = before;
        }
    }
    return false;
}

static const struct register_op *sorted_by;

static int by_invocation(const void *a, const void *b)
{
    uint64_t x = sorted_by[*(const unsigned *)a].invoked,
             y = sorted_by[*(const unsigned *)b].invoked;
    return x < y ? -1 : x > y;
}

bool check_register(const struct register_history *h, unsigned *undecided)
{
    struct sim_random random = {.state = 1};
    struct search s = {.ops = h->ops, .count = h->count};
    if (h->count == 0)
        return true;
    s.numbers = calloc(h->count, sizeof *s.numbers);
    s.placed = calloc(h->count, sizeof *s.placed);
    s.order = calloc(h->count, sizeof *s.order);
    ASSERT(s.numbers != NULL && s.placed != NULL && s.order != NULL);
    cache_resize(&s, CACHE_FIRST);
    for (unsigned i = 0; i < h->count; i++) {
        s.numbers[i].low = sim_random_next(&random);
        s.numbers[i].high = sim_random_next(&random);
        s.order[i] = i;
        s.to_place += h->ops[i].returned != NEVER;
    }
    sorted_by = h->ops;
    qsort(s.order, h->count, sizeof *s.order, by_invocation);
    bool good = search(&s, 0);
    if (!good && s.steps > STEPS_MAX) {
        (*undecided)++;
        good = true;
    }
    free(s.numbers);
    free(s.placed);
    free(s.order);
    free(s.cache);
    return good;
}
