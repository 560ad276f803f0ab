/*
 * frontend/startup.h — from the first packet to the first ReadyForQuery.
 */
#ifndef FRONTEND_STARTUP_H
#define FRONTEND_STARTUP_H

#include "frontend/conn.h"

/* One packet of the start-up phase: SSLRequest, GSSENCRequest, CancelRequest or StartupMessage.
 * REST: bytes that came behind it. Afterwards C is still in STARTUP, or READY, or on its way
 * out. */
void fe_startup_packet(struct fe_conn *c, bytes body, size_t rest);

#endif
