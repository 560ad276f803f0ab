/*
 * frontend/conn_tls.c — the bytes of a connection on their way through TLS.
 *
 *   socket ─ recv ─> tls_read ─> c->in          c->out ─> tls_write ─> tls_output ─ send ─> socket
 *
 * What leaves c->out is sent as cipher text at once, and no more is made while some is left: at
 * most one piece and its overhead lies between the two, so the bounds of conn.c on unsent output
 * hold here too. Bytes read are decrypted whole; no event is needed for what OpenSSL has.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "frontend/conn_internal.h"
#include "frontend/server_internal.h"
#include <errno.h>
#include <sys/socket.h>

#define PIECE_BYTES (64u * 1024u)
#define TLS_CODE_HANDSHAKE 0x16

ssize_t fe_conn_tls_receive(struct fe_conn *c, size_t room)
{
    uint8_t cipher[FE_READ_BYTES];
    struct err err;
    ASSERT(room <= sizeof cipher);
    ssize_t n = recv(c->fd, cipher, room, MSG_DONTWAIT);
    if (n <= 0)
        return n;
    err_clear(&err);
    status st = tls_read(c->tls, bytes_make(cipher, (size_t)n), &c->in, &err);
    if (tls_output(c->tls)->size > 0)
        fe_conn_dirty(c); /* the handshake's answer, an alert */
    if (st == ST_OK)
        return n;
    if (st == ST_END) {
        c->eof = true;
        return n;
    }
    LOG_DEBUG("fe.tls_failed", LOG_STR("why", err.message));
    (void)fe_conn_tls_send(c); /* the alert */
    errno = EPROTO;
    return -1;
}

/* False: an error. */
static bool send_cipher(struct fe_conn *c, struct obuf *o)
{
    size_t at = 0;
    bool good = true;
    while (good && at < o->size) {
        ssize_t n = send(c->fd, o->data + at, o->size - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            at += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        else
            good = errno == EINTR;
    }
    obuf_consume(o, at);
    if (o->size == 0)
        fe_buffer_give(c->worker, o);
    return good;
}

bool fe_conn_tls_send(struct fe_conn *c)
{
    struct obuf *o = tls_output(c->tls);
    struct err err;
    for (;;) {
        if (!send_cipher(c, o))
            return false;
        size_t left = c->out.size - c->out_at;
        if (o->size > 0 || left == 0 || !tls_is_open(c->tls))
            return true;
        size_t n = left < PIECE_BYTES ? left : PIECE_BYTES;
        fe_buffer_take(c->worker, o);
        if (tls_write(c->tls, bytes_make(c->out.data + c->out_at, n), &err) != ST_OK)
            return false;
        c->out_at += n;
    }
}

size_t fe_conn_tls_unsent(const struct fe_conn *c)
{
    return tls_output(c->tls)->size;
}

void fe_conn_tls_goodbye(struct fe_conn *c)
{
    tls_close(c->tls);
}

/* -- the beginning ----------------------------------------------------------------------------- */

bool fe_conn_tls_start(struct fe_conn *c, bool alpn)
{
    ASSERT(c->tls == NULL);
    struct tls_context *context = fe_access_tls(fe_server_access(c->worker->server));
    if (context == NULL)
        return false;
    c->tls = tls_accept(context, alpn);
    tls_context_unref(context);
    return true;
}

void fe_conn_tls_answer(struct fe_conn *c)
{
    struct obuf *o = tls_output(c->tls);
    if (c->out.size > c->out_at)
        obuf_put(o, c->out.data + c->out_at, c->out.size - c->out_at);
    obuf_u8(o, 'S');
    obuf_reset(&c->out);
    c->out_at = 0;
    fe_conn_dirty(c);
}

/* No length of a start-up packet begins with this byte. */
bool fe_conn_tls_direct(struct fe_conn *c)
{
    struct err err;
    bool first = c->in_at == 0 && c->in.size > 0 && c->in.data[0] == TLS_CODE_HANDSHAKE;
    if (!first || c->tls != NULL || c->ssl_asked || c->gss_asked || !fe_conn_tls_start(c, true))
        return false;
    struct obuf hello = c->in;
    obuf_init(&c->in);
    err_clear(&err);
    status st = tls_read(c->tls, bytes_make(hello.data, hello.size), &c->in, &err);
    obuf_fini(&hello);
    if (st == ST_END)
        c->eof = true;
    if (st != ST_OK && st != ST_END)
        LOG_DEBUG("fe.tls_failed", LOG_STR("why", err.message));
    (void)fe_conn_tls_send(c);
    fe_conn_dirty(c);
    return st == ST_OK || st == ST_END;
}
