/*
 * frontend/server.h — the listener: where client connections come from and how they end.
 *
 * Made and stopped on reactor 0, while the node runs. Connections are spread over the node's
 * reactors; each belongs to one for its life.
 */
#ifndef FRONTEND_SERVER_H
#define FRONTEND_SERVER_H

#include "cluster/node.h"

struct fe_server;

/* Is there a mistake in LISTEN or in the settings of access that fe_server_new would find? Asked
 * before a node is opened, which may take long. Any thread. ST_INVALID. */
NODISCARD status fe_server_check(const struct config *c, const char *listen, struct err *err);
/* Listens on LISTEN: "host:port", "[v6]:port", several with commas. Port 0 picks a free one. From
 * cl_node_start's READY. ST_INVALID for an address that cannot be read, ST_IO for one that is
 * taken. */
NODISCARD status fe_server_new(struct cl_node *node, const char *listen, struct fe_server **out,
                               struct err *err);
/* Takes auth.rule and the TLS files as C has them; connections that are there stay as they are.
 * ST_INVALID: nothing has changed. */
NODISCARD status fe_server_reload(struct fe_server *s, const struct config *c, struct err *err);
/* The port of the first listener. */
unsigned fe_server_port(const struct fe_server *s);
/* Open connections, on all reactors; any thread. */
unsigned fe_server_connections(const struct fe_server *s);
/* Stops listening, tells idle sessions 57P01, lets running statements finish (3 s at most), then
 * frees the server and calls DONE on reactor 0. */
void fe_server_stop(struct fe_server *s, void (*done)(void *arg), void *arg);

#endif
