/*
 * cluster/host.h — the shards' Raft groups of this node among those of the other nodes.
 *
 * A node that is listed with others has a host; a node alone has none, and pays nothing. The host
 * carries messages between the groups and the transport, gives them time, and tells them which
 * nodes are there. Who belongs to a shard is in its log; cluster.nodes says where a node is, and
 * who belongs to a shard of a new cluster. A replica's id: cl_identity_replica.
 *
 *   transport --message--> raft_step --outputs--> cl__host_output --> log, transport, shard
 *
 * Owner: reactor 0 (role_shard).
 */
#ifndef CLUSTER_HOST_H
#define CLUSTER_HOST_H

#include "cluster/shard.h"
#include "cluster/transport.h"

struct cl_host;
struct raft_config;

/* Before the log is read. NULL: this node is alone. */
struct cl_host *cl_host_new(struct cl_node *n);
void cl_host_free(struct cl_host *h); /* NULL is fine */
/* What the transport shall call; the argument is the node. */
const struct cl_transport_events *cl_host_events(void);
/* Self, times and bounds of S's group. */
void cl_host_configure(const struct cl_host *h, const struct cl_shard *s, struct raft_config *out);
/* The loop is about to run: groups get their first tick. */
void cl_host_start(struct cl_host *h);
/* End of the turn: groups whose log was applied up to what it held when they began to lead are
 * told so, and the timer is set to what the groups wait for. */
void cl_host_turn(struct cl_host *h);
/* Once in a while: the shards gather at the leader of the first, so that what one statement needs
 * is led by one node. */
void cl_host_maintain(struct cl_host *h);

/* Does S serve here, or follow a leader and have applied what was committed when it first heard of
 * one? */
bool cl_host_joined(const struct cl_shard *s);
/* The node stops: shards that are led here and have nothing under way are handed to one of the
 * others, until the stop's time for that is over. True: some still are. */
bool cl_host_hand_over(struct cl_host *h);
/* The replica that NODE has, as far as it is known here. */
uint64_t cl_host_replica(const struct cl_host *h, uint64_t node);
/* NODE shall lead S, which leads here; it does once its log has everything. As RAFT_TRANSFER. */
NODISCARD status cl_host_transfer(struct cl_host *h, struct cl_shard *s, uint64_t node);

/* Everything of a step's output but what goes to the own log. */
void cl_host_output(struct cl_host *h, struct cl_shard *s, const struct raft_output *out);
/* May S, which leads, serve reads now? Other leaders are excluded until the lease ends. */
bool cl_host_lease(const struct cl_host *h, const struct cl_shard *s);
/* It leads S without a lease: a round among the others can still tell that it led when it began. */
bool cl_host_may_ask(const struct cl_host *h, const struct cl_shard *s);
/* Begins such a round, or joins the next. It is over when S's reads_confirmed has reached what this
 * returns, in the same term; a turn follows then. */
uint64_t cl_host_read(struct cl_host *h, struct cl_shard *s);

/* A step of S, which takes part, with all its outputs. */
void cl_host_step(struct cl_host *h, struct cl_shard *s, struct raft_input *in);
/* The same, with raft_step's verdict. */
NODISCARD status cl_host_try(struct cl_host *h, struct cl_shard *s, struct raft_input *in);
/* Members have changed: S, which leads, is told who of them is not there. */
void cl_host_look(struct cl_host *h, struct cl_shard *s);
struct cl_node *cl_host_node(const struct cl_host *h);
/* Not fenced, and its log is not lost; while the node stops, only with something under way or while
 * it is led here and may be handed over. */
bool cl_host_takes_part(const struct cl_host *h, const struct cl_shard *s);

#endif
