/*
 * base/hlc.h — hybrid logical clock (Kulkarni et al., 2014) in 63 bits.
 *
 * A stamp is microseconds since 1970 << 10 | logical. It never goes back, also when the wall clock
 * does. It is a row's `seq`, so it is positive and fits bigint. One clock per node; the owner
 * passes the wall time in, so the core stays free of clocks.
 */
#ifndef BASE_HLC_H
#define BASE_HLC_H

#include "base/status.h"
#include <stdint.h>

typedef uint64_t hlc_ts;
#define HLC_LOGICAL_BITS 10
#define HLC_MAX ((hlc_ts)INT64_MAX)

struct hlc {
    hlc_ts last;
};

static inline hlc_ts hlc_from_us(int64_t unix_us)
{
    return (hlc_ts)unix_us << HLC_LOGICAL_BITS;
}
static inline int64_t hlc_unix_us(hlc_ts ts)
{
    return (int64_t)(ts >> HLC_LOGICAL_BITS);
}
static inline hlc_ts hlc_ms(uint64_t ms)
{
    return (hlc_ts)(ms * 1000) << HLC_LOGICAL_BITS;
}

/* The next stamp: above every stamp returned or observed before. */
hlc_ts hlc_next(struct hlc *c, int64_t now_unix_us);
/* Takes a stamp from elsewhere into account. ST_INVALID, and nothing changes, when it is more than
 * MAX_AHEAD_US ahead of NOW: one bad clock must not poison the others. */
NODISCARD status hlc_observe(struct hlc *c, hlc_ts remote, int64_t now_unix_us,
                             int64_t max_ahead_us);
/* Raises without a bound: stamps read back from the own log. */
void hlc_raise(struct hlc *c, hlc_ts at_least);

#endif
