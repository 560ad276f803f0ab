/*
 * frontend/activity.h — what the sessions of this server do: pg_stat_activity, and the signals
 * that pg_cancel_backend() and pg_terminate_backend() send.
 *
 * A session notes the text of what it runs and when that began; all else is looked up when somebody
 * asks. A question visits the workers one after another, each of which writes down its own
 * sessions, and comes home with a copy that nobody else touches.
 */
#ifndef FRONTEND_ACTIVITY_H
#define FRONTEND_ACTIVITY_H

#include "base/bytes.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define FE_ACTIVITY_TEXT_MAX 1024u /* bytes of a statement's text that are shown */

struct fe_session;
struct fe_gathering;
struct pl_sessions;

/* Part of a session. */
struct fe_activity {
    char *text; /* of what runs, or ran last */
    unsigned size, capacity;
    int64_t since;       /* of the session, a timestamptz */
    uint64_t began_us;   /* the statement, by the loop's clock; 0: none yet */
    uint64_t changed_us; /* … and when the state did */
};

/* TEXT begins to run. */
void fe_activity_begin(struct fe_session *s, bytes text);
/* The message cycle is over. */
void fe_activity_end(struct fe_session *s);
void fe_activity_free(struct fe_session *s);

/* Writes down all sessions. ST_OK: done at once. ST_PENDING: NEXT later (fe_wait). The copy is
 * work->gathering and goes with the work. */
NODISCARD status fe_activity_gather(struct fe_session *s,
                                    void (*next)(struct fe_session *s, status st));
const struct pl_sessions *fe_activity_gathered(const struct fe_gathering *g);
void fe_gathering_free(struct fe_gathering *g); /* NULL is fine */

/* Cancels what session NUMBER runs, or ends it. Any thread; S only names the server. */
void fe_activity_signal(struct fe_session *s, int32_t number, bool terminate);

#endif
