/*
 * base/hlc.c — the hybrid logical clock.
 *
 * Invariants
 *   H1  `last` never decreases, whatever the wall clock does.
 *   H2  Every stamp returned is above every stamp returned or observed before, and at most HLC_MAX.
 *
 * When more than 2^10 stamps fall into one microsecond the logical part carries into the time part:
 * the clock runs ahead of the wall by what it handed out, which is harmless and bounded by the
 * rate.
 */
#include "base/hlc.h"
#include "base/assert.h"

hlc_ts hlc_next(struct hlc *c, int64_t now_unix_us)
{
    hlc_ts wall = now_unix_us > 0 ? hlc_from_us(now_unix_us) : 0;
    hlc_ts next = wall > c->last ? wall : c->last + 1;
    ASSERT_INV("H2", next <= HLC_MAX);
    c->last = next;
    return next;
}

status hlc_observe(struct hlc *c, hlc_ts remote, int64_t now_unix_us, int64_t max_ahead_us)
{
    if (remote > HLC_MAX || hlc_unix_us(remote) > now_unix_us + max_ahead_us)
        return ST_INVALID;
    hlc_raise(c, remote);
    return ST_OK;
}

void hlc_raise(struct hlc *c, hlc_ts at_least)
{
    if (at_least > c->last)
        c->last = at_least;
}
