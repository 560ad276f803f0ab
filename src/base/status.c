/*
 * base/status.c — the three tables behind status.h, generated from its one list.
 *
 * A number outside the list can only come from a programmer's cast; it reads as ST_INTERNAL so
 * that an error path never makes things worse.
 */
#include "base/status.h"

static const struct {
    const char *name, *sqlstate, *text;
    enum retry_class retry;
} rows[ST_COUNT] = {
#define X(name, sqlstate, retry, text) [name] = {#name, sqlstate, text, retry},
    STATUS_LIST(X)
#undef X
};

static unsigned row_of(status st)
{
    return (unsigned)st < ST_COUNT ? (unsigned)st : ST_INTERNAL;
}

const char *status_name(status st)
{
    return rows[row_of(st)].name;
}

const char *status_sqlstate(status st)
{
    return rows[row_of(st)].sqlstate;
}

const char *status_text(status st)
{
    return rows[row_of(st)].text;
}

enum retry_class status_retry(status st)
{
    return rows[row_of(st)].retry;
}
