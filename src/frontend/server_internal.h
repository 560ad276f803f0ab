/*
 * frontend/server_internal.h — what the connections tell the server they belong to.
 */
#ifndef FRONTEND_SERVER_INTERNAL_H
#define FRONTEND_SERVER_INTERNAL_H

#include "frontend/access.h"
#include "frontend/conn.h"

/* A connection of W is gone, on W's thread. */
void fe_server_gone(struct fe_worker *w);
struct fe_access *fe_server_access(struct fe_server *s);
bool fe_server_has_tls(struct fe_server *s);
/* Are the connections that are left for superusers only? */
bool fe_server_is_reserved(const struct fe_server *s);
struct fe_worker *fe_server_worker(struct fe_server *s, unsigned i);
/* Runs FN(W, ARG) on W's thread; at once if that is the caller's. ARG is free()d afterwards. */
void fe_worker_call(struct fe_worker *from, struct fe_worker *w,
                    void (*fn)(struct fe_worker *w, void *arg), void *arg);

#endif
