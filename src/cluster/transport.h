/*
 * cluster/transport.h — the node's connections to the other nodes: messages, requests, liveness.
 *
 * One connection per pair of nodes, whoever opened it. Everything that one turn of the loop sends
 * to a node goes out in one frame and one write. What is promised:
 *
 * - A message arrives whole, at most once, and after those sent before it; or it does not arrive.
 *   Raft sends again.
 * - A request is answered once: by the other side's answer; when the connection breaks, by
 *   ST_UNREACHABLE if it was never handed to the network, else by ST_OUTCOME_UNKNOWN; by the latter
 *   too when its deadline passes.
 * - Memory is bounded: per node a send queue, a receive budget and a number of requests.
 *
 * Belongs to the thread of its loop. docs/peer-protocol.md has the bytes.
 */
#ifndef CLUSTER_TRANSPORT_H
#define CLUSTER_TRANSPORT_H

#include "base/buf.h"
#include "base/env_net.h"
#include "cluster/topology.h"

struct cl_transport;
struct cl_peer_tls;

/* A request that came from another node; a value, kept by whoever answers it. */
struct cl_incoming {
    uint64_t node, link, id;
    size_t size;
};

struct cl_transport_events {
    /* Payloads are borrowed for the call. */
    void (*message)(void *arg, uint64_t node, uint64_t group, uint64_t from, uint64_t to,
                    bytes payload);
    /* To be answered once by cl_transport_answer, in the call or later, within PATIENCE_US: after
     * that nobody waits. */
    void (*request)(void *arg, const struct cl_incoming *in, uint64_t method, uint64_t patience_us,
                    bytes payload);
    /* Heartbeats of all groups with NODE, once per interval: appended to OUT and given to the other
     * side's `beacon`. Nothing appended: alive, and all groups are quiet. */
    void (*fill_beacon)(void *arg, uint64_t node, struct obuf *out);
    void (*beacon)(void *arg, uint64_t node, bytes payload);
    /* Of a stream (cluster/snapshot.h): a piece of it, and leave to send more. */
    void (*chunk)(void *arg, uint64_t node, uint64_t stream, uint64_t offset, uint8_t flags,
                  bytes payload);
    void (*credit)(void *arg, uint64_t node, uint64_t stream, uint64_t more);
    /* The connection is there; or it is gone, and what was under way with it is lost. */
    void (*changed)(void *arg, uint64_t node, bool up);
    /* The store that NODE must have, 0 for any. NULL: any. */
    uint64_t (*store_of)(void *arg, uint64_t node);
    /* Was NODE one of the cluster's first? NULL: all were. */
    bool (*is_first)(void *arg, uint64_t node);
};

struct cl_transport_options {
    struct env *env;
    struct loop *loop;
    const struct cl_topology *topology; /* borrowed, for the life of the transport */
    uint64_t cluster_id, store_id;
    uint64_t replica_id;               /* 0: the node's id */
    size_t queue_bytes;                /* per node; above it messages are dropped */
    uint64_t delay_us;                 /* added to each frame, for measurements */
    uint64_t beacon_us, silence_us;    /* interval; a node that is silent for so long is gone */
    uint64_t connect_us, handshake_us; /* limits */
    uint64_t backoff_min_us, backoff_max_us;
    uint64_t refused_us;     /* at least so long between attempts that meet a refusal */
    struct cl_peer_tls *tls; /* NULL: in the clear; borrowed, for the life of the transport */
    const struct cl_transport_events *events;
    void *arg;
};
/* Fills in everything but env, loop, topology, ids and events. */
void cl_transport_defaults(struct cl_transport_options *o);

/* Listens, and begins to connect in the loop's next turn. ST_INVALID, ST_IO. */
NODISCARD status cl_transport_new(const struct cl_transport_options *o, struct cl_transport **out,
                                  struct err *err);
/* Closes everything; requests under way end as if the connection broke. NULL is fine. */
void cl_transport_free(struct cl_transport *t);

/* False: dropped, because there is no connection or the queue is full. Copies PAYLOAD. */
bool cl_transport_message(struct cl_transport *t, uint64_t node, uint64_t group, uint64_t from,
                          uint64_t to, bytes payload);
/* The same for streams. */
bool cl_transport_chunk(struct cl_transport *t, uint64_t node, uint64_t stream, uint64_t offset,
                        uint8_t flags, bytes payload);
bool cl_transport_credit(struct cl_transport *t, uint64_t node, uint64_t stream, uint64_t more);
/* Is there a connection to NODE? */
bool cl_transport_up(const struct cl_transport *t, uint64_t node);
/* The store that NODE said it has when it last connected, 0: it never did. */
uint64_t cl_transport_store(const struct cl_transport *t, uint64_t node);
uint64_t cl_transport_replica(const struct cl_transport *t, uint64_t node); /* the same */

/* Embedded in its owner, whose memory stays until `done` or cl_transport_cancel. */
struct cl_request {
    /* Once, from the loop. ANSWER is borrowed for the call. */
    void (*done)(struct cl_request *r, status st, bytes answer);
    uint64_t id, node, deadline_us, frame; /* the transport's */
};
/* ST_UNREACHABLE (no connection), ST_BUSY (queue full, or too many requests under way), ST_LIMIT
 * (PAYLOAD too large): nothing was sent, and `done` is not called. */
NODISCARD status cl_transport_request(struct cl_transport *t, struct cl_request *r, uint64_t node,
                                      uint64_t method, uint64_t patience_us, bytes payload);
/* `done` is not called any more; whether the request took effect is open. */
void cl_transport_cancel(struct cl_transport *t, struct cl_request *r);
/* IN may be of a connection that is gone: then nobody hears it. Where the queue has no room for
 * PAYLOAD the other side is told ST_OUTCOME_UNKNOWN. */
void cl_transport_answer(struct cl_transport *t, const struct cl_incoming *in, status st,
                         bytes payload);

/* -- for operators ----------------------------------------------------------------------------- */

struct cl_peer_stats {
    uint64_t node;
    const char *address, *state; /* borrowed until the next turn, as last_error */
    uint64_t since_us;           /* of this state, on the monotonic clock */
    uint64_t sent_frames, sent_bytes, received_frames, received_bytes;
    uint64_t queue_bytes, requests, serving;
    uint64_t dropped;       /* messages: no connection, or queue full */
    uint64_t late, damaged; /* answers that nobody waited for; connections that a bad frame ended */
    uint64_t connects, refusals;
    uint64_t rtt_us; /* of the last beacon, 0 = not known */
    uint64_t store_id;
    const char *last_error;
};
void cl_transport_each(struct cl_transport *t, void (*fn)(void *arg, const struct cl_peer_stats *s),
                       void *arg);
/* What all nodes' queues and buffers hold now, and the most that they may. */
size_t cl_transport_memory(const struct cl_transport *t, size_t *limit);
const char *cl_transport_address(const struct cl_transport *t); /* where it listens */

#endif
