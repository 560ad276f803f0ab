/*
 * frontend/startup.h — from the first packet to the first ReadyForQuery.
 */
#ifndef FRONTEND_STARTUP_H
#define FRONTEND_STARTUP_H

#include "frontend/conn.h"
#include "frontend/pgwire.h"

/* One packet of the start-up phase: SSLRequest, GSSENCRequest, CancelRequest or StartupMessage.
 * REST: bytes that came behind it. Afterwards C is still in STARTUP, or READY, or on its way
 * out. */
void fe_startup_packet(struct fe_conn *c, bytes body, size_t rest);

/* What fe_login_next found while C->login is not NULL, also of another type (FE_FRAME_UNKNOWN). As
 * fe_startup_packet. */
void fe_login_message(struct fe_conn *c, const struct fe_frame *f);
void fe_login_free(struct fe_login *l); /* NULL is fine */

#endif
