/*
 * base/tls_stream.h — a stream of env_net.h whose bytes go through TLS.
 *
 * It keeps the contract of streams and stands on one that it owns: `opened` comes after the
 * handshake, in which both sides have shown a certificate; what breaks the handshake or a record is
 * told by `closed`. What is sent before the handshake is over is dropped, as on a stream that is
 * opening.
 */
#ifndef BASE_TLS_STREAM_H
#define BASE_TLS_STREAM_H

#include "base/env_net.h"
#include "base/tls.h"

/* As env_connect, which it calls; CONTEXT is of tls_context_new_mutual. TIMEOUT_US is of the
 * connection: who wants a limit for the handshake closes the stream. */
NODISCARD status tls_stream_connect(struct env *e, struct loop *l, const char *address,
                                    uint64_t timeout_us, struct tls_context *context,
                                    const struct env_stream_handler *handler, void *arg,
                                    struct env_stream **out, struct err *err);
/* Takes INNER over, which was just accepted. The caller attaches a handler to what is returned, as
 * `accepted` of env_listen does, before it returns to the loop. */
struct env_stream *tls_stream_accept(struct env_stream *inner, struct tls_context *context);
/* tls_peer_name of a stream of this file. */
const char *tls_stream_peer_name(const struct env_stream *s);

#endif
