/*
 * frontend/notify.h — LISTEN and NOTIFY between the sessions of this process.
 *
 * A notification leaves with the commit of its transaction and reaches every listening session of
 * the same database, the sender too, when that is not inside a transaction. Nothing is stored: who
 * does not listen at that moment does not get it, and other nodes do not either.
 */
#ifndef FRONTEND_NOTIFY_H
#define FRONTEND_NOTIFY_H

#include "base/err.h"
#include "frontend/conn.h"

struct fe_notify; /* what a session has of this; made on first use */

NODISCARD status fe_notify_listen(struct fe_session *s, const char *channel, struct err *err);
void fe_notify_unlisten(struct fe_session *s, const char *channel); /* NULL = all */
/* 22023 for a channel or payload too long; 54000 over the bound of one transaction. */
NODISCARD status fe_notify_add(struct fe_session *s, const char *channel, const char *payload,
                               struct err *err);
void fe_notify_commit(struct fe_session *s);
void fe_notify_abort(struct fe_session *s);
/* How much is queued by the transaction, for savepoints; back to such a mark. */
unsigned fe_notify_mark(const struct fe_session *s);
void fe_notify_rollback_to(struct fe_session *s, unsigned mark);
/* Writes what has arrived; outside transactions only. */
void fe_notify_flush(struct fe_session *s);
void fe_notify_free(struct fe_session *s);

#endif
