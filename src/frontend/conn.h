/*
 * frontend/conn.h — one client's socket: bytes in, bytes out, and who may run next.
 *
 * A connection belongs to one worker (a reactor's share of the server) and its thread. The session
 * above it is told of whole messages, one at a time, and only while it is not busy.
 *
 *   STARTUP ──> READY ──> DRAINING ──> CLOSED
 *      └──────────┴──────────┴───────────^
 */
#ifndef FRONTEND_CONN_H
#define FRONTEND_CONN_H

#include "base/buf.h"
#include "cluster/node.h"

/* Input read ahead of what is handled: clients queue thousands of statements before they read. */
#define FE_INPUT_AHEAD_BYTES (8u * 1024u * 1024u)
/* Above this much unsent output nothing more is executed for the client, until there is less than a
 * quarter of it. */
#define FE_OUTPUT_HIGH_BYTES (256u * 1024u)
/* The same where all connections of a worker hold much, so that many who do not read, or send
 * faster than we can follow, take no more memory than this (and a message or page each). */
#define FE_HELD_BYTES (256u * 1024u * 1024u)
#define FE_INPUT_PRESSED_BYTES (64u * 1024u)
#define FE_OUTPUT_PRESSED_BYTES (16u * 1024u)
/* Below this the answers before a write wait for that of the write. */
#define FE_OUTPUT_HOLD_BYTES (8u * 1024u)
/* Messages of one connection before others get their turn. */
#define FE_MESSAGES_PER_TURN 128u
#define FE_BYTES_PER_TURN (64u * 1024u) /* the same for long ones, COPY's */
#define FE_NUMBER_BUCKETS 1024u
/* Memory that a worker keeps for its connections' buffers. */
#define FE_SPARE_BUFFERS 1024u
#define FE_SPARE_BUFFERS_BYTES (16u * 1024u * 1024u)

struct fe_session;
struct fe_server;
struct planner;
struct fe_conn;
struct tls;
struct fe_login;

/* What a reactor has for its connections. */
struct fe_worker {
    struct fe_server *server;
    struct cl_node *node;
    struct cl_reactor *reactor;
    struct loop *loop;
    struct planner *planner;
    struct loop_turn *turn;
    struct loop_timer *sweep;     /* ends start-ups that take too long; the limit of a stop */
    unsigned index, count;        /* of workers */
    uint64_t random;              /* state of the generator of statement seeds */
    uint32_t serial;              /* of process numbers */
    uint64_t clock_us;            /* when the last run ended */
    unsigned conn_count, passing; /* passing: in start-up or draining */
    unsigned starting;            /* in start-up */
    struct fe_conn *conns;
    struct fe_conn *dirty;    /* have output to send at the end of this turn */
    struct fe_conn *runnable; /* go on at the end of this turn */
    struct fe_pool *pool;     /* session_pool.c */
    size_t buffer_bytes;      /* of buffers[] */
    size_t held_bytes;        /* of the connections' own buffers */
    unsigned buffer_count;
    struct obuf buffers[FE_SPARE_BUFFERS];           /* empty ones, the one used last on top */
    struct fe_ahead *ahead;                          /* spare ones, ahead.c */
    unsigned ahead_count;                            /* of them */
    struct fe_session *listeners;                    /* notify.c */
    struct fe_session *by_number[FE_NUMBER_BUCKETS]; /* cancel.c */
    bool stopping, stop_reported;
    unsigned stop_ticks;
};

enum fe_conn_state {
    FE_CONN_STARTUP,
    FE_CONN_READY,
    FE_CONN_DRAINING,
    FE_CONN_CLOSED,
    FE_CONN_STATES
};

struct fe_conn {
    struct fe_worker *worker;
    struct fe_conn *next, **link; /* in worker->conns */
    struct fe_conn *next_dirty, *next_runnable;
    struct loop_io *io;
    struct fe_session *session;
    struct tls *tls;        /* NULL: bytes go in the clear */
    struct fe_login *login; /* startup.c: the client is proving who it is */
    struct obuf in, out;
    size_t in_at, out_at; /* handled; sent */
    size_t held;          /* of in and out, as counted in worker->held_bytes */
    size_t need;          /* bytes of the unfinished message at in_at, 0 = not known */
    size_t charged;       /* of in, as taken from memory.messages */
    size_t dropping;      /* bytes of a message without room that are still to come */
    uint64_t since_us;    /* of the accept; of the end of the session */
    int fd, interest;
    unsigned statements; /* asked for in the messages that ran last */
    enum fe_conn_state state;
    bool dirty, runnable, running, eof;
    bool blocked; /* messages wait for output to drain */
    bool push;    /* the client asked for what there is */
    bool shut;    /* our side is shut down */
    bool ssl_asked, gss_asked, refuse;
    uint8_t dropped; /* type of that message, until it is answered */
};

/* Takes FD over. */
void fe_conn_new(struct fe_worker *w, int fd, bool refuse);
/* Start-up is over. */
void fe_conn_ready(struct fe_conn *c);
/* Handles what is in the input as far as that goes now. */
void fe_conn_run(struct fe_conn *c);
/* Goes on at the end of this turn. */
void fe_conn_later(struct fe_conn *c);
/* Output was added: sends it at the end of this turn. */
void fe_conn_dirty(struct fe_conn *c);
/* The same, and nothing is held back. */
void fe_conn_push(struct fe_conn *c);
bool fe_conn_over_high(const struct fe_conn *c);
/* OUT becomes a buffer for answers that are made elsewhere, and for what is to be sent before them;
 * until it is returned nothing else may be answered. */
void fe_conn_lend_output(struct fe_conn *c, struct obuf *out);
void fe_conn_return_output(struct fe_conn *c, struct obuf *out);
/* Sends what is there, then closes. Nothing more is read. */
void fe_conn_drain(struct fe_conn *c);
/* Closes at once; the session is dropped, or as soon as its pending call is done. */
void fe_conn_close(struct fe_conn *c);
/* The session of a closed connection is gone: frees C. */
void fe_conn_free(struct fe_conn *c);
/* The type of the first whole message after the current one that is not a Close; 0 = none is
 * there. */
uint8_t fe_conn_peek(const struct fe_conn *c);
/* Is a Sync right behind the current message? MORE: and something behind it. */
bool fe_conn_sync_behind(const struct fe_conn *c, bool *more);
/* From here on both directions go through TLS, if the server has a certificate; else false. ALPN:
 * it must name the protocol. */
bool fe_conn_tls_start(struct fe_conn *c, bool alpn);
/* Answers an SSLRequest with S, in the clear, behind what was answered before. */
void fe_conn_tls_answer(struct fe_conn *c);
void fe_worker_buffers_free(struct fe_worker *w);
/* The end of a turn: runs who may run, sends what is to be sent. */
void fe_worker_turn(void *worker);

#endif
