/*
 * cluster/service.h — what other nodes ask of this one: cluster/request.h, answered.
 *
 * Everything is done here or refused with ST_NOT_LEADER; nothing is passed on, so no request can go
 * round. Owner: reactor 0 (role_shard).
 */
#ifndef CLUSTER_SERVICE_H
#define CLUSTER_SERVICE_H

#include "cluster/transport.h"

struct cl_node;
struct cl_service;

struct cl_service *cl_service_new(struct cl_node *n);
void cl_service_free(struct cl_service *v); /* NULL is fine; no shard has a command of it */
/* As the transport's event `request`. */
void cl_service_request(struct cl_service *v, const struct cl_incoming *in, uint64_t method,
                        bytes payload);

#endif
