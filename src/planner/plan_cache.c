/*
 * planner/plan_cache.c — shapes and their plans.
 *
 *   shape (key bytes + declared parameter types) ──► plan, or
 *                                               └──► plans by the text of their baked-in literals
 *
 * A compiled plan says which literal slots it leaves open; all others are baked in, and the cache
 * compares their text ("baked key") before it gives the plan out. The number of items of a
 * collapsed list counts as baked in too, unless the plan leaves it open. All plans of a shape bake
 * the same slots: which ones follows from the shape alone. A plan that would disagree is not kept.
 *
 * The hash only finds the bucket; key bytes, types and baked key are always compared.
 *
 * Bounds: MAX_PLANS plans, MAX_BYTES of memory, MAX_VARIANTS plans a shape, MAX_BAKED bytes of
 * baked key. Over a bound the least recently used plans go, by the clock algorithm: a plan that was
 * found since the hand passed gets a second round.
 *
 * One owner: the reactor of its planner. Plans outlive the cache as long as they are referenced.
 */
#include "base/assert.h"
#include "base/checksum.h"
#include "base/memory.h"
#include "planner/pl_internal.h"

#include <stdlib.h>

#define BUCKETS 4096u
#define MAX_PLANS 4096u
#define MAX_BYTES (32u * 1024u * 1024u)
#define MAX_VARIANTS 64u
#define MAX_BAKED 4096u

struct pl__shape {
    struct pl__shape *next; /* in its bucket */
    uint64_t hash;
    struct pl__plan *plans;
    unsigned plan_count;
    uint32_t *baked; /* slots */
    unsigned baked_count;
    bool repeat_free[PL_REPEATS];
    uint32_t type_count, key_size;
    uint32_t *types;
    uint8_t *key;
};

struct entry {
    struct pl__plan *plan;
    bool used;
};

struct pl__cache {
    struct pl__shape *buckets[BUCKETS];
    struct entry entries[MAX_PLANS];
    unsigned count, hand;
    size_t bytes;
    uint8_t scratch[MAX_BAKED];
};

struct pl__cache *pl__cache_new(void)
{
    return memory_new(MEMORY_PLANS, sizeof(struct pl__cache));
}

static uint64_t hash_of(const struct pl_scan *s, const uint32_t *types, unsigned type_count)
{
    uint64_t h = checksum64(bytes_make(s->key, s->key_size), type_count);
    return type_count == 0 ? h : checksum64(bytes_make(types, type_count * sizeof(*types)), h);
}

static struct pl__shape *find_shape(const struct pl__cache *c, uint64_t hash,
                                    const struct pl_scan *s, const uint32_t *types,
                                    unsigned type_count)
{
    for (struct pl__shape *x = c->buckets[hash % BUCKETS]; x != NULL; x = x->next) {
        if (x->hash == hash && x->key_size == s->key_size && x->type_count == type_count &&
            memcmp(x->key, s->key, s->key_size) == 0 &&
            (type_count == 0 || memcmp(x->types, types, type_count * sizeof(*types)) == 0))
            return x;
    }
    return NULL;
}

/* Texts of the baked slots and counts of closed lists, each with its length. False: too long. */
static bool baked_key(const uint32_t *baked, unsigned count, const bool *repeat_free,
                      const struct pl_scan *s, bytes text, uint8_t *out, uint32_t *size)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < s->repeat_count; i++) {
        if (repeat_free[i])
            continue;
        if (n + 4 > MAX_BAKED)
            return false;
        memcpy(out + n, &s->repeats[i].count, 4);
        n += 4;
    }
    for (unsigned i = 0; i < count; i++) {
        if (baked[i] >= s->slot_count)
            return false;
        const struct pl_slot *slot = &s->slots[baked[i]];
        if (n + 4 + slot->size > MAX_BAKED)
            return false;
        memcpy(out + n, &slot->size, 4);
        memcpy(out + n + 4, text.data + slot->at, slot->size);
        n += 4 + slot->size;
    }
    *size = n;
    return true;
}

static struct pl__plan *find_plan(struct pl__cache *c, const struct pl__shape *x,
                                  const struct pl_scan *s, bytes text)
{
    uint32_t size = 0;
    if (x->baked_count == 0 && s->repeat_count == 0)
        return x->plans;
    if (!baked_key(x->baked, x->baked_count, x->repeat_free, s, text, c->scratch, &size))
        return NULL;
    for (struct pl__plan *p = x->plans; p != NULL; p = p->next) {
        if (p->baked_size == size && memcmp(p->baked_key, c->scratch, size) == 0)
            return p;
    }
    return NULL;
}

struct pl__plan *pl__cache_find(struct pl__cache *c, const struct pl_scan *s, bytes text,
                                const uint32_t *types, unsigned type_count)
{
    if (!s->cacheable)
        return NULL;
    struct pl__shape *x = find_shape(c, hash_of(s, types, type_count), s, types, type_count);
    struct pl__plan *p = x == NULL ? NULL : find_plan(c, x, s, text);
    if (p != NULL)
        c->entries[p->entry].used = true;
    return p;
}

static ptrdiff_t shape_bytes(const struct pl__shape *x)
{
    return (ptrdiff_t)(sizeof(*x) + x->key_size + x->type_count * sizeof(*x->types) +
                       x->baked_count * sizeof(*x->baked));
}

static void free_shape(struct pl__cache *c, struct pl__shape *x)
{
    struct pl__shape **link = &c->buckets[x->hash % BUCKETS];
    while (*link != x)
        link = &(*link)->next;
    *link = x->next;
    memory_count(MEMORY_PLANS, -shape_bytes(x));
    free(x->key);
    free(x->types);
    free(x->baked);
    free(x);
}

static size_t plan_bytes(const struct pl__plan *p)
{
    return sizeof(*p) + p->arena.held_bytes + p->baked_size + p->shape->key_size + 256;
}

/* Takes entry I out of the cache. The last entry moves into its place. */
static void drop(struct pl__cache *c, unsigned i)
{
    struct pl__plan *p = c->entries[i].plan;
    struct pl__shape *x = p->shape;
    struct pl__plan **link = &x->plans;
    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    c->bytes -= plan_bytes(p);
    c->entries[i] = c->entries[--c->count];
    if (i < c->count)
        c->entries[i].plan->entry = i;
    if (--x->plan_count == 0)
        free_shape(c, x);
    memory_free(MEMORY_PLANS, p->baked_key, p->baked_size);
    p->baked_key = NULL;
    p->shape = NULL;
    pl_plan_unref(&p->pub);
}

static void make_room(struct pl__cache *c, size_t size)
{
    while (c->count > 0 && (c->count == MAX_PLANS || c->bytes + size > MAX_BYTES)) {
        if (c->hand >= c->count)
            c->hand = 0;
        if (c->entries[c->hand].used)
            c->entries[c->hand++].used = false;
        else
            drop(c, c->hand);
    }
}

static void *copy_of(const void *from, size_t size)
{
    void *out = malloc(size + 1);
    if (out != NULL && size > 0)
        memcpy(out, from, size);
    return out;
}

static struct pl__shape *new_shape(struct pl__cache *c, uint64_t hash, const struct pl_scan *s,
                                   const uint32_t *types, unsigned type_count,
                                   const struct pl__plan *plan)
{
    struct pl__shape *x = calloc(1, sizeof(*x));
    if (x == NULL)
        return NULL;
    x->hash = hash;
    x->key = copy_of(s->key, s->key_size);
    x->key_size = s->key_size;
    x->types = copy_of(types, type_count * sizeof(*types));
    x->type_count = type_count;
    x->baked = copy_of(plan->baked, plan->baked_count * sizeof(*plan->baked));
    x->baked_count = plan->baked_count;
    memcpy(x->repeat_free, plan->repeat_free, sizeof(x->repeat_free));
    memory_count(MEMORY_PLANS, shape_bytes(x));
    x->next = c->buckets[hash % BUCKETS];
    c->buckets[hash % BUCKETS] = x;
    if (x->key == NULL || x->types == NULL || x->baked == NULL) {
        free_shape(c, x);
        return NULL;
    }
    return x;
}

static bool same_baking(const struct pl__shape *x, const struct pl__plan *p)
{
    return x->baked_count == p->baked_count &&
           memcmp(x->repeat_free, p->repeat_free, sizeof(x->repeat_free)) == 0 &&
           (p->baked_count == 0 ||
            memcmp(x->baked, p->baked, p->baked_count * sizeof(*p->baked)) == 0);
}

/* The oldest variant of X, which is the last of its list, makes room. */
static void drop_variant(struct pl__cache *c, struct pl__shape *x)
{
    struct pl__plan *last = x->plans;
    while (last->next != NULL)
        last = last->next;
    drop(c, last->entry);
}

void pl__cache_put(struct pl__cache *c, const struct pl_scan *s, bytes text, const uint32_t *types,
                   unsigned type_count, struct pl__plan *plan)
{
    uint32_t size;
    if (!s->cacheable || !plan->cacheable || plan->shape != NULL ||
        pl__cache_find(c, s, text, types, type_count) != NULL ||
        !baked_key(plan->baked, plan->baked_count, plan->repeat_free, s, text, c->scratch, &size))
        return;
    uint8_t *key = copy_of(c->scratch, size);
    if (key == NULL)
        return;
    make_room(c, sizeof(*plan) + plan->arena.held_bytes + size + s->key_size + 256);
    uint64_t hash = hash_of(s, types, type_count);
    struct pl__shape *x = find_shape(c, hash, s, types, type_count);
    if (x != NULL && x->plan_count == MAX_VARIANTS)
        drop_variant(c, x);
    if (x == NULL)
        x = new_shape(c, hash, s, types, type_count, plan);
    if (x == NULL || !same_baking(x, plan)) {
        free(key);
        return;
    }
    memory_count(MEMORY_PLANS, (ptrdiff_t)size);
    plan->baked_key = key;
    plan->baked_size = size;
    plan->shape = x;
    plan->next = x->plans;
    x->plans = plan;
    x->plan_count++;
    plan->entry = c->count;
    c->entries[c->count++] = (struct entry){.plan = plan};
    c->bytes += plan_bytes(plan);
    pl_plan_ref(&plan->pub);
}

unsigned pl__cache_count(const struct pl__cache *c)
{
    return c->count;
}

void pl__cache_free(struct pl__cache *c)
{
    if (c == NULL)
        return;
    while (c->count > 0)
        drop(c, c->count - 1);
    memory_free(MEMORY_PLANS, c, sizeof(*c));
}
