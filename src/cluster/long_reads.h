/*
 * cluster/long_reads.h — pages that are worth another core.
 *
 * A page whose rows may be taken anywhere (cl_call.anywhere) begins on the reactor. When it turns
 * out long, the rest waits here for the end of the turn, and is read by whoever comes first: a pool
 * thread, or the reactor when it has nothing else to do. So a lone client's page never changes the
 * thread, several clients' pages use several cores, and short reads and commands pass them all.
 *
 * All of this is the reactor's but for what the .c says.
 */
#ifndef CLUSTER_LONG_READS_H
#define CLUSTER_LONG_READS_H

#include "cluster/client_internal.h"

/* Rows of a page before it counts as long. */
#define CL_READ_SHORT_ROWS 64u

struct cl_long_reads *cl_long_reads_new(struct cl_node *n);
void cl_long_reads_free(struct cl_long_reads *q);
/* The rest of C's page, whose call is pending. */
void cl_long_reads_add(struct cl_long_reads *q, struct cl_client *c);
/* The end of a turn; BUSY: something else was done in it. */
void cl_long_reads_turn(struct cl_long_reads *q, bool busy);
bool cl_long_reads_empty(struct cl_long_reads *q);

#endif
