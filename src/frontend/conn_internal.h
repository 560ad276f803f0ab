/*
 * frontend/conn_internal.h — between the two files of a connection: conn.c and conn_tls.c.
 *
 * C's thread. C->tls is not NULL except where a function says so.
 */
#ifndef FRONTEND_CONN_INTERNAL_H
#define FRONTEND_CONN_INTERNAL_H

#include "base/tls.h"
#include "frontend/conn.h"
#include <sys/types.h>

#define FE_READ_BYTES (32u * 1024u)

/* B, which has no memory, gets some that is spare. */
void fe_buffer_take(struct fe_worker *w, struct obuf *b);
/* Takes the memory of B, which is empty. */
void fe_buffer_give(struct fe_worker *w, struct obuf *b);

/* As recv: up to ROOM bytes of cipher text; what they say is added to c->in. EPROTO: TLS failed. */
ssize_t fe_conn_tls_receive(struct fe_conn *c, size_t room);
/* Sends as much as the socket takes; c->out_at moves. False: the connection is lost. */
bool fe_conn_tls_send(struct fe_conn *c);
/* Cipher text that waits for the socket. */
size_t fe_conn_tls_unsent(const struct fe_conn *c);
void fe_conn_tls_goodbye(struct fe_conn *c);
/* Begins with the first byte of the connection: c->in holds a ClientHello. False: it does not, or
 * there is no TLS here, or it failed. C->tls is NULL. */
bool fe_conn_tls_direct(struct fe_conn *c);

#endif
