/*
 * base/histogram.h — log-scale histogram: 32 sub-buckets per power of two, about 3 % error.
 *
 * Percentiles are interpolated inside their bucket, never a bucket's edge. One writer; a reader on
 * another thread merges it into a histogram of its own, any time, and gets counts that are each
 * exact within a moment.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS (60 * 32)

struct histogram {
    uint64_t count, sum, max;
    uint32_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_init(struct histogram *h);
void histogram_add(struct histogram *h, uint64_t value);
/* P in 0..100. 0 when empty. */
uint64_t histogram_percentile(const struct histogram *h, double p);
double histogram_mean(const struct histogram *h);
void histogram_merge(struct histogram *into, const struct histogram *from);

#endif
