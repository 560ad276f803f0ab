/*
 * base/tls_stream.c — TLS between the handler of a stream and the stream below.
 *
 *   send ─> piece ─ tls_write ─> output ─> inner      inner ─ tls_read ─> plain ─> received
 *
 * Pieces are gathered, so that a small buffer in front of a large one makes no record of its own.
 *
 * Invariants
 *   V1  Callbacks run inside the inner stream's, so from the loop; none after `closed` or close.
 *   V2  A stream that is closed inside one of its callbacks is freed when that callback returns.
 */
#include "base/tls_stream.h"
#include "base/assert.h"
#include <stdlib.h>

#define PIECE_BYTES (128u * 1024u)
#define KEEP_BYTES (64u * 1024u)
#define TLS_HANDSHAKE 0x16
#define TLS_ALERT 0x15

struct tls_stream {
    struct env_stream base;
    struct env_stream *inner;
    struct tls *tls;
    const struct env_stream_handler *handler;
    void *arg;
    bool connector, begun, ended; /* bytes have come; `closed` was called */
    bool calling, dropped;        /* inside a callback; closed by its owner meanwhile (V2) */
    struct obuf plain, piece;
};

static const struct env_net_ops tls_stream_ops;

static struct tls_stream *stream_of(const struct env_stream *s)
{
    return CONTAINER_OF((struct env_stream *)(uintptr_t)s, struct tls_stream, base);
}

static void stream_free(struct tls_stream *s)
{
    tls_free(s->tls);
    obuf_fini(&s->plain);
    obuf_fini(&s->piece);
    free(s);
}

static void enter(struct tls_stream *s)
{
    ASSERT(!s->calling);
    s->calling = true;
}

/* False: the owner has closed the stream, which is gone. */
static bool leave(struct tls_stream *s)
{
    s->calling = false;
    if (!s->dropped)
        return true;
    stream_free(s);
    return false;
}

static void send_output(struct tls_stream *s)
{
    struct obuf *o = tls_output(s->tls);
    struct iovec iov = {o->data, o->size};
    if (o->size > 0)
        env_stream_send(s->inner, &iov, 1);
    obuf_reset(o);
    obuf_shrink(o, KEEP_BYTES);
}

static void end(struct tls_stream *s, status st, const char *why)
{
    if (s->ended)
        return;
    s->ended = true;
    enter(s);
    s->handler->closed(s->arg, st, why);
    (void)leave(s);
}

/* -- what the inner stream says ---------------------------------------------------------------- */

static void on_opened(void *arg)
{
    struct tls_stream *s = arg;
    struct err err;
    err_clear(&err);
    if (tls_read(s->tls, BYTES_EMPTY, &s->plain, &err) != ST_OK) {
        end(s, ST_UNREACHABLE, err.message);
        return;
    }
    send_output(s);
}

/* Hands over what was decrypted. False: the stream is gone. */
static bool deliver(struct tls_stream *s)
{
    if (s->plain.size == 0)
        return true;
    enter(s);
    s->handler->received(s->arg, bytes_make(s->plain.data, s->plain.size));
    if (!leave(s))
        return false;
    obuf_reset(&s->plain);
    obuf_shrink(&s->plain, KEEP_BYTES);
    return true;
}

static void on_received(void *arg, bytes data)
{
    struct tls_stream *s = arg;
    struct err err;
    bool was_open = tls_is_open(s->tls);
    if (s->ended)
        return;
    if (!s->begun && data.data[0] != TLS_HANDSHAKE && data.data[0] != TLS_ALERT) {
        end(s, ST_UNREACHABLE, "the other side speaks in the clear, where TLS is asked for");
        return;
    }
    s->begun = true;
    err_clear(&err);
    status st = tls_read(s->tls, data, &s->plain, &err);
    send_output(s); /* the handshake, or an alert */
    if (!was_open && tls_is_open(s->tls) && s->connector) {
        enter(s);
        s->handler->opened(s->arg);
        if (!leave(s))
            return;
    }
    if (!deliver(s) || st == ST_OK)
        return;
    end(s, st == ST_END ? ST_END : ST_UNREACHABLE,
        st == ST_END ? "the other side closed" : err.message);
}

static void on_drained(void *arg)
{
    struct tls_stream *s = arg;
    if (s->ended || !tls_is_open(s->tls))
        return;
    enter(s);
    s->handler->drained(s->arg);
    (void)leave(s);
}

static void on_closed(void *arg, status st, const char *why)
{
    struct tls_stream *s = arg;
    bool early = st == ST_END && !tls_is_open(s->tls);
    end(s, st, early ? "the other side closed in the handshake of TLS" : why);
}

static const struct env_stream_handler inner_handler = {
    .opened = on_opened, .received = on_received, .drained = on_drained, .closed = on_closed};

/* -- what the owner asks ----------------------------------------------------------------------- */

static void stream_attach(struct env_stream *base, const struct env_stream_handler *handler,
                          void *arg)
{
    struct tls_stream *s = stream_of(base);
    s->handler = handler;
    s->arg = arg;
    env_stream_attach(s->inner, &inner_handler, s);
}

/* A connection that was lost meanwhile says so when it is read from next. */
static void seal_piece(struct tls_stream *s)
{
    struct err err;
    if (tls_write(s->tls, bytes_make(s->piece.data, s->piece.size), &err) == ST_OK)
        send_output(s);
    obuf_reset(&s->piece);
}

static void stream_send(struct env_stream *base, const struct iovec *iov, int count)
{
    struct tls_stream *s = stream_of(base);
    if (s->ended || !tls_is_open(s->tls))
        return;
    ASSERT(s->piece.size == 0);
    for (int i = 0; i < count; i++) {
        const uint8_t *from = iov[i].iov_base;
        for (size_t at = 0, n; at < iov[i].iov_len; at += n) {
            size_t left = iov[i].iov_len - at, room = PIECE_BYTES - s->piece.size;
            n = left < room ? left : room;
            obuf_put(&s->piece, from + at, n);
            if (s->piece.size == PIECE_BYTES)
                seal_piece(s);
        }
    }
    if (s->piece.size > 0)
        seal_piece(s);
    obuf_shrink(&s->piece, KEEP_BYTES);
}

static size_t stream_queued(const struct env_stream *base)
{
    return env_stream_queued(stream_of(base)->inner);
}

static void stream_pause(struct env_stream *base, bool paused)
{
    env_stream_pause(stream_of(base)->inner, paused);
}

static const char *stream_remote(const struct env_stream *base)
{
    return env_stream_remote(stream_of(base)->inner);
}

static void stream_close(struct env_stream *base)
{
    struct tls_stream *s = stream_of(base);
    ASSERT(!s->dropped);
    if (!s->ended && tls_is_open(s->tls)) {
        tls_close(s->tls);
        send_output(s);
    }
    s->ended = true;
    env_stream_close(s->inner);
    s->inner = NULL;
    if (s->calling)
        s->dropped = true;
    else
        stream_free(s);
}

/* Listening and connecting are the environment's. */
static const struct env_net_ops tls_stream_ops = {.attach = stream_attach,
                                                  .send = stream_send,
                                                  .queued = stream_queued,
                                                  .pause = stream_pause,
                                                  .remote = stream_remote,
                                                  .close = stream_close};

/* -- beginnings -------------------------------------------------------------------------------- */

static struct tls_stream *stream_new(struct tls *t, bool connector)
{
    struct tls_stream *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    s->base.ops = &tls_stream_ops;
    s->tls = t;
    s->connector = connector;
    obuf_init(&s->plain);
    obuf_init(&s->piece);
    return s;
}

status tls_stream_connect(struct env *e, struct loop *l, const char *address, uint64_t timeout_us,
                          struct tls_context *context, const struct env_stream_handler *handler,
                          void *arg, struct env_stream **out, struct err *err)
{
    struct tls_stream *s = stream_new(tls_connect(context), true);
    s->handler = handler;
    s->arg = arg;
    status st = env_connect(e, l, address, timeout_us, &inner_handler, s, &s->inner, err);
    if (st == ST_OK)
        *out = &s->base;
    else
        stream_free(s);
    return st;
}

struct env_stream *tls_stream_accept(struct env_stream *inner, struct tls_context *context)
{
    struct tls_stream *s = stream_new(tls_accept(context, true), false);
    s->inner = inner;
    return &s->base;
}

const char *tls_stream_peer_name(const struct env_stream *base)
{
    return tls_peer_name(stream_of(base)->tls);
}
