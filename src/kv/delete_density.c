/*
 * Ranges in an array by their keys. A range grows to the right while a flush deletes there, until
 * it is dense; what comes next begins another one, so that a range is as narrow as the deletions
 * in it allow. Where the array is full, the two neighbours with the fewest tombstones become one:
 * ranges are wide where little is deleted and narrow where much is.
 *
 * Invariants
 *   D1  Ranges are disjoint and in order, each within one table and namespace.
 *   D2  There are at most KV_DENSITY_RANGES.
 *   D3  A tombstone that was counted stays counted, in the range over its key or in one beside it,
 *       until its range is taken, forgotten or cleared.
 */
#include "kv/delete_density.h"
#include "base/arena.h"
#include "base/assert.h"
#include "kv/key.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A range goes on in the next directory or bucket while it has less than this part of a dense one:
 * many small ones are one range, a large one is its own. */
#define GROUP_SHARE 16u
/* Neighbours are taken along from this part of a dense range on. */
#define JOIN_SHARE 4u

struct range {
    struct obuf first, last; /* both included */
    struct kv_density_counts counts;
    uint64_t refused; /* tombstones when it was put back, 0 = never */
};

struct kv_density {
    pthread_mutex_t lock;
    uint64_t dense;
    unsigned count, at; /* at: where the last tombstone went */
    _Atomic bool much;
    uint64_t behind; /* entries behind it: between tombstones if another one follows */
    struct range ranges[KV_DENSITY_RANGES];
};

static bytes first_of(const struct range *r)
{
    return bytes_make(r->first.data, r->first.size);
}

static bytes last_of(const struct range *r)
{
    return bytes_make(r->last.data, r->last.size);
}

static void set(struct obuf *o, bytes key)
{
    obuf_reset(o);
    obuf_put(o, key.data, key.size);
}

static bytes head(bytes key, size_t size)
{
    return key.size > size ? bytes_make(key.data, size) : key;
}

/* Of one directory, user or file; of one table where keys begin with a text. */
static bool same_group(bytes a, bytes b)
{
    const struct kv_table_def *def = kv_table_def(kv_key_table(a));
    bool text = def != NULL && def->columns[0].type == KV_TEXT;
    size_t size = KV_KEY_HEADER + (text ? 0 : 8);

    return bytes_eq(head(a, size), head(b, size));
}

static bool same_table(bytes a, bytes b)
{
    return bytes_eq(head(a, KV_KEY_HEADER), head(b, KV_KEY_HEADER));
}

static void counts_add(struct kv_density_counts *to, const struct kv_density_counts *from)
{
    to->tombstones += from->tombstones;
    to->entries += from->entries;
    to->skipped += from->skipped;
    if (from->newest > to->newest)
        to->newest = from->newest;
}

static void range_fini(struct range *r)
{
    obuf_fini(&r->first);
    obuf_fini(&r->last);
}

/* -- the array --------------------------------------------------------------------------------- */

struct kv_density *kv_density_new(uint64_t dense)
{
    struct kv_density *d = calloc(1, sizeof *d);

    ASSERT(d != NULL);
    ASSERT(dense > 0);
    d->dense = dense;
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

static void remove_ranges(struct kv_density *d, unsigned at, unsigned count)
{
    ASSERT(at + count <= d->count);
    for (unsigned i = at; i < at + count; i++)
        range_fini(&d->ranges[i]);
    memmove(&d->ranges[at], &d->ranges[at + count], (d->count - at - count) * sizeof d->ranges[0]);
    d->count -= count;
    d->at = 0;
    d->behind = 0;
}

void kv_density_free(struct kv_density *d)
{
    if (d == NULL)
        return;
    remove_ranges(d, 0, d->count);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

/* The first range whose last key is not below KEY; the count if there is none. */
static unsigned find(const struct kv_density *d, bytes key)
{
    unsigned low = 0, high = d->count;

    while (low < high) {
        unsigned mid = low + (high - low) / 2;

        if (bytes_cmp(last_of(&d->ranges[mid]), key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool covers(const struct kv_density *d, unsigned at, bytes key)
{
    return at < d->count && bytes_cmp(first_of(&d->ranges[at]), key) <= 0 &&
           bytes_cmp(key, last_of(&d->ranges[at])) <= 0;
}

/* The range behind AT goes into it. */
static void join(struct kv_density *d, unsigned at)
{
    struct range *r = &d->ranges[at], *next = &d->ranges[at + 1];

    ASSERT_INV("D1", same_table(first_of(r), first_of(next)));
    set(&r->last, last_of(next));
    counts_add(&r->counts, &next->counts);
    r->refused += next->refused;
    remove_ranges(d, at + 1, 1);
}

/* D2: the two neighbours of one table that have the fewest become one. Where no two neighbours are
 * of one table, the range that has the fewest goes: a compaction is missed, nothing else. */
static void make_room(struct kv_density *d)
{
    unsigned best = d->count, least = 0;

    for (unsigned i = 0; i < d->count; i++) {
        const struct range *r = &d->ranges[i];

        if (r->counts.tombstones < d->ranges[least].counts.tombstones)
            least = i;
        if (i + 1 == d->count || !same_table(first_of(r), first_of(r + 1)))
            continue;
        if (best == d->count ||
            r->counts.tombstones + r[1].counts.tombstones <
                d->ranges[best].counts.tombstones + d->ranges[best + 1].counts.tombstones)
            best = i;
    }
    if (best < d->count)
        join(d, best);
    else
        remove_ranges(d, least, 1);
}

static unsigned insert(struct kv_density *d, bytes first, bytes last,
                       const struct kv_density_counts *counts)
{
    if (d->count == KV_DENSITY_RANGES)
        make_room(d);
    unsigned at = find(d, first);
    if (covers(d, at, first)) { /* two became one around it */
        counts_add(&d->ranges[at].counts, counts);
        return at;
    }
    struct range *r = &d->ranges[at];
    memmove(r + 1, r, (d->count - at) * sizeof *r);
    memset(r, 0, sizeof *r);
    set(&r->first, first);
    set(&r->last, last);
    r->counts = *counts;
    d->count++;
    return at;
}

/* -- what flushes write ------------------------------------------------------------------------ */

/* May the range go on to KEY, which lies behind it? */
static bool goes_on(const struct kv_density *d, const struct range *r, bytes key)
{
    bytes last = last_of(r);

    if (!same_table(last, key) || r->counts.tombstones >= d->dense)
        return false;
    return same_group(last, key) ||
           r->counts.tombstones < (d->dense + GROUP_SHARE - 1) / GROUP_SHARE;
}

/* The range that KEY lies in, or the one behind it. */
static unsigned place(struct kv_density *d, bytes key)
{
    unsigned at = d->at;

    if (at < d->count && bytes_cmp(first_of(&d->ranges[at]), key) <= 0) {
        if (bytes_cmp(key, last_of(&d->ranges[at])) <= 0)
            return at;
        if (at + 1 == d->count || bytes_cmp(key, first_of(&d->ranges[at + 1])) < 0)
            return at + 1;
    }
    return find(d, key);
}

void kv_density_count(struct kv_density *d, bytes key, bool deleted, hlc_ts ts)
{
    struct kv_density_counts one = {.tombstones = 1, .newest = ts};
    unsigned at;

    if (!deleted && d->count == 0)
        return;
    at = place(d, key);
    if (!deleted) {
        if (covers(d, at, key))
            d->ranges[at].counts.entries++;
        else if (at == d->at + 1)
            d->behind++;
        return;
    }
    if (covers(d, at, key)) {
        counts_add(&d->ranges[at].counts, &one);
    } else if (at > 0 && goes_on(d, &d->ranges[at - 1], key)) {
        at--;
        one.entries = at == d->at ? d->behind : 0;
        set(&d->ranges[at].last, key);
        counts_add(&d->ranges[at].counts, &one);
    } else {
        at = insert(d, key, key, &one);
    }
    d->at = at;
    d->behind = 0;
}

/* R lies over the ranges from AT to END: each gets its share, the outer ones reach as far as R. */
static void spread(struct kv_density *d, unsigned at, unsigned end, const struct range *r)
{
    uint64_t parts = end - at;
    struct kv_density_counts share = {.tombstones = r->counts.tombstones / parts,
                                      .entries = r->counts.entries / parts,
                                      .skipped = r->counts.skipped / parts,
                                      .newest = r->counts.newest};
    struct kv_density_counts rest = {.tombstones = r->counts.tombstones % parts,
                                     .entries = r->counts.entries % parts,
                                     .skipped = r->counts.skipped % parts};

    if (bytes_cmp(first_of(r), first_of(&d->ranges[at])) < 0)
        set(&d->ranges[at].first, first_of(r));
    if (bytes_cmp(last_of(&d->ranges[end - 1]), last_of(r)) < 0)
        set(&d->ranges[end - 1].last, last_of(r));
    counts_add(&d->ranges[at].counts, &rest);
    for (unsigned i = at; i < end; i++)
        counts_add(&d->ranges[i].counts, &share);
}

/* Ranges from *AT on that have a key between FIRST and LAST; behind the last of them. */
static unsigned overlapped(const struct kv_density *d, bytes first, bytes last, unsigned *at)
{
    unsigned end = *at = find(d, first);

    while (end < d->count && bytes_cmp(first_of(&d->ranges[end]), last) <= 0)
        end++;
    return end;
}

static void add_range(struct kv_density *d, const struct range *r)
{
    unsigned at, end = overlapped(d, first_of(r), last_of(r), &at);

    if (end > at) {
        spread(d, at, end, r);
        return;
    }
    if (at > 0 && d->ranges[at - 1].counts.tombstones + r->counts.tombstones <= d->dense &&
        goes_on(d, &d->ranges[at - 1], first_of(r))) {
        set(&d->ranges[at - 1].last, last_of(r));
        counts_add(&d->ranges[at - 1].counts, &r->counts);
        return;
    }
    (void)insert(d, first_of(r), last_of(r), &r->counts);
}

#define MUCH 1000u

/* Of rows, not of what shards write beside them. */
static bool has_much(const struct kv_density *d)
{
    uint64_t tombstones = 0;

    for (unsigned i = 0; i < d->count; i++)
        if (kv_table_def(kv_key_table(first_of(&d->ranges[i]))) != NULL)
            tombstones += d->ranges[i].counts.tombstones;
    return tombstones >= MUCH;
}

/* After a change, with the lock. */
static void weigh(struct kv_density *d)
{
    atomic_store_explicit(&d->much, has_much(d), memory_order_relaxed);
}

void kv_density_expect(struct kv_density *d, const struct kv_density *from)
{
    if (has_much(from))
        atomic_store_explicit(&d->much, true, memory_order_relaxed);
}

bool kv_density_much(const struct kv_density *d)
{
    return atomic_load_explicit(&d->much, memory_order_relaxed);
}

void kv_density_add(struct kv_density *d, const struct kv_density *from)
{
    pthread_mutex_lock(&d->lock);
    for (unsigned i = 0; i < from->count; i++)
        add_range(d, &from->ranges[i]);
    weigh(d);
    pthread_mutex_unlock(&d->lock);
}

/* -- what scans meet --------------------------------------------------------------------------- */

void kv_density_passed(struct kv_density *d, bytes first, bytes last, uint64_t count)
{
    uint64_t known = 0;
    unsigned at, end;

    if (!same_table(first, last) || bytes_cmp(first, last) > 0 ||
        pthread_mutex_trylock(&d->lock) != 0)
        return;
    end = overlapped(d, first, last, &at);
    for (unsigned i = at; i < end; i++)
        known += d->ranges[i].counts.tombstones;
    struct kv_density_counts found = {.skipped = count,
                                      .tombstones = count > known ? count - known : 0};
    struct range r = {.first = {.data = (uint8_t *)first.data, .size = first.size},
                      .last = {.data = (uint8_t *)last.data, .size = last.size},
                      .counts = found};
    if (end > at && found.tombstones <= known) { /* those that are known, some counted twice */
        d->ranges[at].counts.skipped += count;
        d->ranges[at].counts.tombstones += found.tombstones;
    } else {
        add_range(d, &r);
    }
    weigh(d);
    pthread_mutex_unlock(&d->lock);
}

/* -- taking out and putting back --------------------------------------------------------------- */

void kv_density_span_init(struct kv_density_span *s)
{
    obuf_init(&s->first);
    obuf_init(&s->last);
    s->counts = (struct kv_density_counts){.tombstones = 0};
}

void kv_density_span_fini(struct kv_density_span *s)
{
    obuf_fini(&s->first);
    obuf_fini(&s->last);
}

static bool is_dense(const struct kv_density *d, const struct range *r)
{
    return r->counts.tombstones >= d->dense && r->counts.tombstones >= 2 * r->refused;
}

static unsigned densest(const struct kv_density *d)
{
    unsigned best = d->count;

    for (unsigned i = 0; i < d->count; i++)
        if (is_dense(d, &d->ranges[i]) &&
            (best == d->count ||
             d->ranges[i].counts.tombstones > d->ranges[best].counts.tombstones))
            best = i;
    return best;
}

/* Is R one of several that belong together, being at least one part of SHARE of a dense one? */
static bool has_share(const struct kv_density *d, const struct range *r, unsigned share)
{
    return r->refused == 0 && r->counts.tombstones >= (d->dense + share - 1) / share;
}

/* Ranges from AT on, of one table, that have a share; behind the last of them. */
static unsigned run_end(const struct kv_density *d, unsigned at, uint64_t *tombstones)
{
    unsigned end = at;

    for (*tombstones = 0; end < d->count && end - at < KV_DENSITY_JOIN_MAX; end++) {
        const struct range *r = &d->ranges[end];

        if (!has_share(d, r, GROUP_SHARE) || !same_table(first_of(&d->ranges[at]), first_of(r)))
            break;
        *tombstones += r->counts.tombstones;
    }
    return end > at ? end : at + 1;
}

/* Where no range is dense, neighbours may be so together. False: they are not. */
static bool dense_run(const struct kv_density *d, unsigned *first, unsigned *end)
{
    uint64_t most = 0, tombstones;

    for (unsigned at = 0, next; at < d->count; at = next) {
        next = run_end(d, at, &tombstones);
        if (tombstones >= d->dense && tombstones > most) {
            most = tombstones;
            *first = at;
            *end = next;
        }
    }
    return most > 0;
}

/* The densest range and its neighbours. */
static bool dense_range(const struct kv_density *d, unsigned *first, unsigned *end)
{
    unsigned at = densest(d);
    const struct range *best = &d->ranges[at];

    if (at == d->count)
        return false;
    *first = at;
    *end = at + 1;
    while (*first > 0 && *end - *first < KV_DENSITY_JOIN_MAX &&
           has_share(d, &d->ranges[*first - 1], JOIN_SHARE) &&
           same_table(first_of(best), first_of(&d->ranges[*first - 1])))
        --*first;
    while (*end < d->count && *end - *first < KV_DENSITY_JOIN_MAX &&
           has_share(d, &d->ranges[*end], JOIN_SHARE) &&
           same_table(first_of(best), first_of(&d->ranges[*end])))
        ++*end;
    return true;
}

static void take_out(struct kv_density *d, unsigned at, unsigned end, struct kv_density_span *out)
{
    set(&out->first, first_of(&d->ranges[at]));
    set(&out->last, last_of(&d->ranges[end - 1]));
    out->counts = (struct kv_density_counts){.tombstones = 0};
    for (unsigned i = at; i < end; i++)
        counts_add(&out->counts, &d->ranges[i].counts);
    remove_ranges(d, at, end - at);
}

bool kv_density_take(struct kv_density *d, struct kv_density_span *out)
{
    unsigned at, end;

    pthread_mutex_lock(&d->lock);
    bool any = dense_range(d, &at, &end) || dense_run(d, &at, &end);
    if (any)
        take_out(d, at, end, out);
    pthread_mutex_unlock(&d->lock);
    return any;
}

void kv_density_done(struct kv_density *d)
{
    pthread_mutex_lock(&d->lock);
    weigh(d);
    pthread_mutex_unlock(&d->lock);
}

void kv_density_put_back(struct kv_density *d, const struct kv_density_span *s)
{
    struct kv_density_counts counts = s->counts;
    struct kv_density_span all;
    unsigned at, end;

    kv_density_span_init(&all);
    set(&all.first, bytes_make(s->first.data, s->first.size));
    set(&all.last, bytes_make(s->last.data, s->last.size));
    pthread_mutex_lock(&d->lock);
    end = overlapped(d, bytes_make(all.first.data, all.first.size),
                     bytes_make(all.last.data, all.last.size), &at);
    for (unsigned i = at; i < end; i++) /* counted in the meantime */
        counts_add(&counts, &d->ranges[i].counts);
    if (end > at) {
        if (bytes_cmp(first_of(&d->ranges[at]), bytes_make(all.first.data, all.first.size)) < 0)
            set(&all.first, first_of(&d->ranges[at]));
        if (bytes_cmp(bytes_make(all.last.data, all.last.size), last_of(&d->ranges[end - 1])) < 0)
            set(&all.last, last_of(&d->ranges[end - 1]));
        remove_ranges(d, at, end - at);
    }
    at = insert(d, bytes_make(all.first.data, all.first.size),
                bytes_make(all.last.data, all.last.size), &counts);
    d->ranges[at].refused += s->counts.tombstones;
    weigh(d);
    pthread_mutex_unlock(&d->lock);
    kv_density_span_fini(&all);
}

void kv_density_forget(struct kv_density *d, bytes first, bytes last)
{
    pthread_mutex_lock(&d->lock);
    unsigned at, end = overlapped(d, first, last, &at);
    if (at < end && bytes_cmp(first_of(&d->ranges[at]), first) < 0)
        at++;
    if (at < end && bytes_cmp(last, last_of(&d->ranges[end - 1])) < 0)
        end--;
    if (at < end)
        remove_ranges(d, at, end - at);
    weigh(d);
    pthread_mutex_unlock(&d->lock);
}

void kv_density_clear(struct kv_density *d)
{
    pthread_mutex_lock(&d->lock);
    remove_ranges(d, 0, d->count);
    weigh(d);
    pthread_mutex_unlock(&d->lock);
}

/* -- for operators ----------------------------------------------------------------------------- */

/* Will it be taken, as things are? */
static bool will_be_taken(const struct kv_density *d, unsigned at)
{
    uint64_t tombstones = 0;
    unsigned end = 0;

    if (is_dense(d, &d->ranges[at]))
        return true;
    while (end <= at)
        end = run_end(d, end, &tombstones);
    return tombstones >= d->dense;
}

bool kv_density_at(struct kv_density *d, unsigned at, struct arena *a, struct kv_density_range *out)
{
    pthread_mutex_lock(&d->lock);
    bool any = at < d->count;
    if (any) {
        const struct range *r = &d->ranges[at];

        *out = (struct kv_density_range){.first = arena_copy(a, first_of(r)),
                                         .last = arena_copy(a, last_of(r)),
                                         .counts = r->counts,
                                         .dense = will_be_taken(d, at),
                                         .refused = r->refused > 0};
    }
    pthread_mutex_unlock(&d->lock);
    return any;
}

void kv_density_sum(struct kv_density *d, struct kv_density_counts *out)
{
    *out = (struct kv_density_counts){.tombstones = 0};
    pthread_mutex_lock(&d->lock);
    for (unsigned i = 0; i < d->count; i++)
        counts_add(out, &d->ranges[i].counts);
    pthread_mutex_unlock(&d->lock);
}
