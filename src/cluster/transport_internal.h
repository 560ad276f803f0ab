/*
 * cluster/transport_internal.h — the parts of the transport, for its files and their tests.
 *
 *   transport.c   options, peers, the timer and the end of the turn
 *   link.c        one connection: handshake, frames in
 *   peer.c        one node: when to connect, what to send
 *   rpc.c         requests and answers
 *
 * A link that is closed stays in memory until the end of the turn (`graves`), so that whoever is in
 * the middle of one of its callbacks can look at it.
 */
#ifndef CLUSTER_TRANSPORT_INTERNAL_H
#define CLUSTER_TRANSPORT_INTERNAL_H

#include "base/list.h"
#include "base/loop.h"
#include "cluster/frame.h"
#include "cluster/handshake.h"
#include "cluster/peer_tls.h"
#include "cluster/transport.h"

/* A frame ends at this size, if an item does. */
#define CL_FRAME_TARGET_BYTES (256u * 1024u)
/* No more is handed to a socket that has so much to send. */
#define CL_SOCKET_QUEUE_BYTES (512u * 1024u)
/* Requests under way to one node; a power of two. */
#define CL_REQUESTS_MAX 1024u
/* Requests of one node that are not answered, in bytes: above it nothing is received from it. */
#define CL_SERVING_BYTES (16u * 1024u * 1024u)
/* Connections whose other side has not said who it is. */
#define CL_STRANGERS_MAX 64u
#define CL_ERROR_TEXT 256u

struct cl_peer;

enum cl_link_state {
    CL_LINK_DIALLING, /* the connection is being opened by us */
    CL_LINK_GREETING, /* HELLO sent */
    CL_LINK_STRANGER, /* accepted; HELLO comes */
    CL_LINK_WELCOMED, /* WELCOME sent; READY comes */
    CL_LINK_UP,
    CL_LINK_REFUSED, /* REFUSAL sent; the other side closes */
    CL_LINK_CLOSED,
    CL_LINK_STATES
};

struct cl_link {
    struct list node; /* of the transport's links or graves */
    struct cl_transport *transport;
    struct cl_peer *peer; /* NULL while the other side is not known */
    struct env_stream *stream;
    enum cl_link_state state;
    bool connector; /* we opened it */
    bool paused;
    uint64_t serial;
    uint64_t due_us; /* of the handshake */
    struct cl_hello ours, theirs;
    struct cl_frame_seal in_seal, out_seal;
    struct obuf in; /* the beginning of a frame */
};

/* Items that will go out as one frame. */
struct cl_outframe {
    struct list node;
    struct obuf items;
    uint64_t number, due_us;
};

enum cl_peer_state { CL_PEER_DOWN, CL_PEER_CONNECTING, CL_PEER_UP, CL_PEER_REFUSED };

struct cl_peer {
    struct cl_transport *transport;
    const struct cl_node_address *address;
    /* The connection; one that we open; one that was welcomed and is not ready yet. */
    struct cl_link *link, *dial, *welcomed;

    unsigned failures;              /* in a row */
    uint64_t dial_us;               /* when the next attempt begins */
    uint64_t up_us;                 /* when `link` came up */
    uint64_t received_us;           /* when it was heard last */
    uint64_t beacon_us;             /* when the next beacon is due */
    uint64_t their_us, their_at_us; /* last beacon's clock, and when it came */
    uint64_t beacon_frame;          /* number of the frame of our last one */
    uint64_t rtt_us;

    struct list frames; /* of cl_outframe, oldest first; the last one may still grow */
    struct list spares;
    uint64_t frame_next, frame_sent; /* numbers: of the last one + 1; below it all are out */
    size_t queued_bytes;

    struct cl_request *requests[CL_REQUESTS_MAX];
    unsigned request_count, request_at;
    uint64_t request_serial, request_due_us; /* no deadline is before it */
    unsigned serving;
    size_t serving_bytes;

    enum cl_peer_state state;
    uint64_t since_us;
    enum cl_refusal_reason refused;
    uint64_t store_id, replica_id; /* of the last connection */
    uint64_t sent_frames, sent_bytes, received_frames, received_bytes, dropped, late, damaged,
        connects, refusals;
    char last_error[CL_ERROR_TEXT];
};

struct cl_transport {
    struct cl_transport_options o;
    uint64_t incarnation, serials;
    struct env_listener *listener;
    struct list links, graves;
    unsigned strangers;
    struct loop_turn *turn;
    struct loop_timer *timer;
    uint64_t timer_us;   /* when it fires; UINT64_MAX = not armed */
    uint64_t turn_us;    /* of the last end of a turn */
    uint64_t checked_us; /* when the timer ran last */
    uint64_t tls_us;     /* when the files of TLS are looked at next */
    uint64_t refusal_logged_us[CL_REFUSED_REASONS];
    struct obuf scratch;
    unsigned peer_count;
    struct cl_peer peers[CL_NODES_MAX];
};

/* -- transport.c ------------------------------------------------------------------------------- */

struct cl_peer *cl__peer_find(struct cl_transport *t, uint64_t node); /* NULL: not listed */
uint64_t cl__transport_now(const struct cl_transport *t);
/* The timer fires at AT_US at the latest. */
void cl__transport_wake_at(struct cl_transport *t, uint64_t at_us);
/* The end of a turn comes soon. */
void cl__transport_kick(struct cl_transport *t);

/* -- link.c ------------------------------------------------------------------------------------ */

/* Begins to connect. ERR on failure. */
NODISCARD status cl__link_dial(struct cl_peer *p, struct err *err);
void cl__link_accept(struct cl_transport *t, struct env_stream *stream);
/* Closes the stream; the link is not its peer's any more. Tells nobody. */
void cl__link_close(struct cl_link *l);
void cl__links_bury(struct cl_transport *t);
/* Handshakes that take too long. The time of the next one. */
uint64_t cl__links_check(struct cl_transport *t, uint64_t now_us);

/* -- peer.c ------------------------------------------------------------------------------------ */

void cl__peer_init(struct cl_peer *p, struct cl_transport *t, const struct cl_node_address *a);
void cl__peer_fini(struct cl_peer *p);
/* Appends an item; without FORCE only if the queue has room. */
bool cl__peer_put(struct cl_peer *p, const struct cl_item *item, bool force);
/* Hands what is queued to the socket. */
void cl__peer_flush(struct cl_peer *p, uint64_t now_us);
/* What time alone brings: attempts, beacons, silence. The time of the next such thing. */
uint64_t cl__peer_check(struct cl_peer *p, uint64_t now_us);
/* L has finished its handshake. */
void cl__peer_adopt(struct cl_peer *p, struct cl_link *l);
/* The connection, or the attempt to have one, has failed. */
void cl__peer_lost(struct cl_peer *p, struct cl_link *l, const char *why);
void cl__peer_refused(struct cl_peer *p, struct cl_link *l, const struct cl_refusal *r);
/* The items of a batch. ST_CORRUPT. */
NODISCARD status cl__peer_receive(struct cl_peer *p, bytes items);

/* -- rpc.c ------------------------------------------------------------------------------------- */

void cl__rpc_request(struct cl_peer *p, const struct cl_item *item);
void cl__rpc_answer(struct cl_peer *p, const struct cl_item *item);
/* The connection is gone. */
void cl__rpc_fail(struct cl_peer *p);
uint64_t cl__rpc_check(struct cl_peer *p, uint64_t now_us);

#endif
