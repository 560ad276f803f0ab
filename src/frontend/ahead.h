/*
 * frontend/ahead.h — writes of a pipeline that are under way while the next statement is read.
 *
 * A client that sends a Sync behind each write and does not wait for its answer may have many of
 * them in one batch of the log. Such a write is started *ahead*: its cycle goes on to ReadyForQuery
 * and further messages are handled, while the answers wait their turn.
 *
 * All of this belongs to the worker's thread.
 */
#ifndef FRONTEND_AHEAD_H
#define FRONTEND_AHEAD_H

#include "frontend/execute.h"

/* Of one session. */
#define FE_AHEAD_MAX 64u
/* Kept by a worker. */
#define FE_AHEAD_SPARE 1024u

/* May P's write be started ahead? It stands between IDLE and a Sync with more behind it. */
bool fe_ahead_wanted(const struct fe_session *s, const struct fe_portal *p);
/* Starts it. ST_OK: its answer comes in time. ST_PENDING: not before those that are ahead. An error
 * is in work->err. */
NODISCARD status fe_ahead_start(struct fe_session *s, struct fe_portal *p);
/* May a message of TYPE be handled while writes are ahead? What runs or ends something waits, and
 * everything once much output is behind them. */
bool fe_ahead_permits(struct fe_session *s, uint8_t type);
/* Where output goes now: behind the answers that are due. */
struct obuf *fe_ahead_output(struct fe_session *s);
void fe_ahead_free(struct fe_worker *w);

#endif
