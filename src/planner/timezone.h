/*
 * planner/timezone.h — time zones by IANA name, from the system's TZif files.
 *
 * A zone lives for the process; zones of one name are one object. Any thread. The files are read at
 * first use of a name (a few kilobytes).
 */
#ifndef PLANNER_TIMEZONE_H
#define PLANNER_TIMEZONE_H

#include "base/bytes.h"

struct pl_zone;

/* "Europe/Berlin" (case does not matter), "UTC", a POSIX rule like "EST5EDT,M3.2.0,M11.1.0", or
 * what SET TIME ZONE takes as a number of hours ("-7", "5.5"). NULL if unknown. */
const struct pl_zone *pl_zone_find(bytes name);
/* The zone SECONDS east of Greenwich, named as PostgreSQL shows it: "<+05:30>-05:30". */
const struct pl_zone *pl_zone_fixed(int32_t seconds_east);
const struct pl_zone *pl_zone_utc(void);
const char *pl_zone_name(const struct pl_zone *z); /* as SHOW TimeZone says it */

struct pl_zone_offset {
    int32_t seconds_east;
    bool dst;
    const char *abbreviation;
};
/* At a moment, in seconds since 1970 UTC. */
struct pl_zone_offset pl_zone_at(const struct pl_zone *z, int64_t utc);
/* For a wall clock reading (seconds as if it were UTC): in a gap the offset before it holds, of two
 * possible readings the later. */
struct pl_zone_offset pl_zone_at_local(const struct pl_zone *z, int64_t local);
/* An abbreviation of Z ("CET"): its offset. */
bool pl_zone_abbreviation(const struct pl_zone *z, bytes abbreviation, int32_t *seconds_east);

#endif
