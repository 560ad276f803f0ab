/*
 * cluster/peer_tls.h — the certificate that this node shows to other nodes, and theirs.
 *
 *   [cluster]
 *   tls_certificate = /etc/metadb/node1.pem     CN = node-1; its chain behind it
 *   tls_key = /etc/metadb/node1.key
 *   tls_ca = /etc/metadb/nodes.pem              who signs nodes' certificates, and nothing else
 *
 * A node's certificate has the common name node-ID, with the node's id in cluster.nodes: whoever
 * holds one cannot be another node. The files are looked at every second; new ones are for new
 * connections.
 *
 * Belongs to the transport's thread.
 */
#ifndef CLUSTER_PEER_TLS_H
#define CLUSTER_PEER_TLS_H

#include "base/config.h"
#include "base/tls.h"

#define CL_PEER_TLS_POLL_US 1000000u
#define CL_PEER_NAME_BYTES 32u

struct cl_peer_tls;

/* Are the settings all there, or none? ST_INVALID. */
NODISCARD status cl_peer_tls_check(const struct config *c, struct err *err);
/* *OUT NULL: nodes talk in the clear. NODE's own certificate must have its name. Blocking: it reads
 * files. ST_INVALID: ERR names the file. C is borrowed. */
NODISCARD status cl_peer_tls_new(const struct config *c, uint64_t node, struct cl_peer_tls **out,
                                 struct err *err);
void cl_peer_tls_free(struct cl_peer_tls *t); /* NULL is fine */
/* Reads the files again if they have changed; those that are no good change nothing. */
void cl_peer_tls_poll(struct cl_peer_tls *t);
/* For the next connection; borrowed until the next poll. */
struct tls_context *cl_peer_tls_context(const struct cl_peer_tls *t);
/* Is NAME, NULL for none, that of NODE? WANTED: the name that it must have. */
bool cl_peer_tls_is(const char *name, uint64_t node, char wanted[CL_PEER_NAME_BYTES]);

#endif
