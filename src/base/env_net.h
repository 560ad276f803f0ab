/*
 * base/env_net.h — the network of an environment: streams of bytes on a loop, without blocking.
 *
 * The real one is TCP (net_os.c), the simulated one a queue of events (sim_net.h). Both keep one
 * contract, which tests/unit/base/test_env_net.c states for both:
 *
 * - A stream belongs to the thread of its loop. Whoever got it, from env_connect or in `accepted`,
 *   calls env_stream_close on it, once; after that none of its callbacks runs.
 * - Callbacks run from the loop, never inside a call of this file. A callback may close its stream.
 * - Bytes arrive in order, cut at any place. "Sent" says nothing about "arrived": what was sent
 *   before `closed` may or may not have reached the other side.
 * - The send queue has no limit of its own: the caller looks at env_stream_queued first.
 */
#ifndef BASE_ENV_NET_H
#define BASE_ENV_NET_H

#include "base/env.h"
#include "base/err.h"

struct loop;
struct env_listener;

/* The system gives up a connection when what was sent stays without an acknowledgement for so long
 * (TCP_USER_TIMEOUT), or when an idle one does not answer probes. */
#define ENV_NET_UNACKNOWLEDGED_US 10000000u
#define ENV_NET_ADDRESS_BYTES 64u

struct env_stream_handler {
    void (*opened)(void *arg);               /* of env_connect: the other side took it */
    void (*received)(void *arg, bytes data); /* borrowed for the call, never empty */
    void (*drained)(void *arg);              /* the send queue has become empty */
    /* The last callback. ST_END: the other side closed in order. ST_UNREACHABLE: it did not take
     * the connection, or it broke; WHY is a text for a person. */
    void (*closed)(void *arg, status st, const char *why);
};

/* The head of every stream; what follows is the environment's. */
struct env_stream {
    const struct env_net_ops *ops;
};

struct env_net_ops {
    status (*listen)(struct env *e, struct loop *l, const char *address,
                     void (*accepted)(void *arg, struct env_stream *s), void *arg,
                     struct env_listener **out, struct err *err);
    void (*unlisten)(struct env_listener *l);
    const char *(*listener_address)(const struct env_listener *l);
    status (*connect)(struct env *e, struct loop *l, const char *address, uint64_t timeout_us,
                      const struct env_stream_handler *handler, void *arg, struct env_stream **out,
                      struct err *err);
    void (*attach)(struct env_stream *s, const struct env_stream_handler *handler, void *arg);
    void (*send)(struct env_stream *s, const struct iovec *iov, int count);
    size_t (*queued)(const struct env_stream *s);
    void (*pause)(struct env_stream *s, bool paused);
    const char *(*remote)(const struct env_stream *s);
    void (*close)(struct env_stream *s);
};

/* An address is "host:port" or "[host]:port" with a numeric host: names would have to be looked up,
 * which blocks. ST_INVALID. */
NODISCARD status env_address_check(const char *address, struct err *err);

/* Port 0 takes a free one; env_listener_address tells which. ACCEPTED attaches a handler to the
 * stream, or closes it, before it returns. ST_INVALID (address), ST_IO (in use, not ours; ERR says
 * which). When the process has no descriptors left, waiting connections are dropped, not left to
 * spin. */
NODISCARD static inline status env_listen(struct env *e, struct loop *l, const char *address,
                                          void (*accepted)(void *arg, struct env_stream *s),
                                          void *arg, struct env_listener **out, struct err *err)
{
    return e->net->listen(e, l, address, accepted, arg, out, err);
}
/* NULL is fine. Streams that it accepted live on. */
static inline void env_unlisten(struct env *e, struct env_listener *l)
{
    e->net->unlisten(l);
}
static inline const char *env_listener_address(struct env *e, const struct env_listener *l)
{
    return e->net->listener_address(l);
}
/* `opened` or `closed` follows, at the latest after TIMEOUT_US. ST_INVALID (address), ST_TOO_MANY
 * (no descriptor), ST_UNREACHABLE; then no callback follows. HANDLER lives as long as the stream.
 */
NODISCARD static inline status env_connect(struct env *e, struct loop *l, const char *address,
                                           uint64_t timeout_us,
                                           const struct env_stream_handler *handler, void *arg,
                                           struct env_stream **out, struct err *err)
{
    return e->net->connect(e, l, address, timeout_us, handler, arg, out, err);
}
static inline void env_stream_attach(struct env_stream *s, const struct env_stream_handler *handler,
                                     void *arg)
{
    s->ops->attach(s, handler, arg);
}
/* One gathered write at once if nothing is queued; what the system does not take is copied and goes
 * out later. On a stream that is opening or broken nothing is sent. */
static inline void env_stream_send(struct env_stream *s, const struct iovec *iov, int count)
{
    s->ops->send(s, iov, count);
}
/* Bytes that the system has not taken yet. */
static inline size_t env_stream_queued(const struct env_stream *s)
{
    return s->ops->queued(s);
}
/* Paused: nothing is received, and in the end the other side cannot send. TCP ends the connection
 * of a sender that cannot for ENV_NET_UNACKNOWLEDGED_US; the simulated network lets it wait. */
static inline void env_stream_pause(struct env_stream *s, bool paused)
{
    s->ops->pause(s, paused);
}
/* The other side's address, for logs. Lives as long as the stream. */
static inline const char *env_stream_remote(const struct env_stream *s)
{
    return s->ops->remote(s);
}
/* NULL is fine. What is queued here is dropped; what the system took it still sends. */
static inline void env_stream_close(struct env_stream *s)
{
    if (s != NULL)
        s->ops->close(s);
}

extern const struct env_net_ops env_os_net; /* of env_os */
/* Of a stream of env_os, for tests of its options. */
int env_os_stream_fd(const struct env_stream *s);

#endif
