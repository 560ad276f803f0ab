/*
 * base/histogram.c — log-linear buckets.
 *
 * Values below 32 have a bucket each. A value whose highest bit is e (e >= 5) falls into one of 32
 * equal sub-buckets of [2^e, 2^(e+1)):
 *
 *   index(v) = v                                   for v < 32
 *   index(v) = (e - 4) * 32 + ((v >> (e-5)) & 31)  otherwise
 *
 * so the relative width of a bucket is at most 1/32.
 *
 * Threads: one writer. It stores every word with relaxed atomics, and a reader on another thread
 * goes through histogram_merge, which loads the same way; the words of such a copy belong to
 * slightly different moments, each is exact.
 */
#include "base/histogram.h"
#include "base/assert.h"
#include <string.h>

#define SUB_BITS 5u
#define SUB_COUNT (1u << SUB_BITS)

#define LOAD(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

static unsigned index_of(uint64_t v)
{
    if (v < SUB_COUNT)
        return (unsigned)v;
    unsigned e = 63u - (unsigned)__builtin_clzll(v);
    unsigned sub = (unsigned)(v >> (e - SUB_BITS)) & (SUB_COUNT - 1);
    return (e - SUB_BITS + 1) * SUB_COUNT + sub;
}

static uint64_t bucket_low(unsigned index)
{
    if (index < SUB_COUNT)
        return index;
    unsigned e = index / SUB_COUNT + SUB_BITS - 1;
    return (uint64_t)(SUB_COUNT + index % SUB_COUNT) << (e - SUB_BITS);
}

static uint64_t bucket_width(unsigned index)
{
    return index < SUB_COUNT ? 1 : (uint64_t)1 << (index / SUB_COUNT - 1);
}

void histogram_init(struct histogram *h)
{
    memset(h, 0, sizeof *h);
}

void histogram_add(struct histogram *h, uint64_t value)
{
    unsigned i = index_of(value);
    ASSERT(i < HISTOGRAM_BUCKETS);
    STORE(&h->bucket[i], h->bucket[i] + 1);
    STORE(&h->sum, h->sum + value);
    if (value > h->max)
        STORE(&h->max, value);
    STORE(&h->count, h->count + 1);
}

/* The samples of a bucket are taken as evenly spread over it. */
static uint64_t interpolate(unsigned index, double fraction, uint64_t max)
{
    double inside = fraction * (double)(bucket_width(index) - 1);
    uint64_t v = bucket_low(index) + (uint64_t)inside;
    return v < max ? v : max;
}

uint64_t histogram_percentile(const struct histogram *h, double p)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        total += LOAD(&h->bucket[i]);
    if (total == 0)
        return 0;
    uint64_t max = LOAD(&h->max);
    if (p >= 100.0)
        return max;
    double rank = (p < 0.0 ? 0.0 : p) / 100.0 * (double)total;
    uint64_t before = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t n = LOAD(&h->bucket[i]);
        if (n > 0 && (double)(before + n) >= rank)
            return interpolate(i, (rank - (double)before) / (double)n, max);
        before += n;
    }
    return max;
}

double histogram_mean(const struct histogram *h)
{
    uint64_t count = LOAD(&h->count);
    return count > 0 ? (double)LOAD(&h->sum) / (double)count : 0.0;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        STORE(&into->bucket[i], into->bucket[i] + LOAD(&from->bucket[i]));
    STORE(&into->sum, into->sum + LOAD(&from->sum));
    STORE(&into->count, into->count + LOAD(&from->count));
    uint64_t max = LOAD(&from->max);
    if (max > into->max)
        STORE(&into->max, max);
}
