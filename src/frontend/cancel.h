/*
 * frontend/cancel.h — keys of sessions, and requests to end what a session runs.
 *
 * A process number names its worker (number modulo workers) and is looked up there only, on that
 * worker's thread. The secret is random, four bytes, never zero, compared in constant time.
 */
#ifndef FRONTEND_CANCEL_H
#define FRONTEND_CANCEL_H

#include "frontend/conn.h"

/* Draws number and secret for S. */
void fe_cancel_key_new(struct fe_session *s);
void fe_cancel_key_free(struct fe_session *s);
/* A CancelRequest's number and secret, from any worker's thread. Never answered. */
void fe_cancel_request(struct fe_worker *from, uint32_t number, bytes secret);

#endif
