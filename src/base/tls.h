/*
 * base/tls.h — TLS between bytes and bytes: no sockets, no clock.
 *
 * A context holds what the files say: certificate, key, authorities. It is immutable; new files are
 * a new context, and connections go on with the one that they began with. A connection takes what
 * came from the peer and gives what is to be sent to it; whoever owns the socket moves the bytes.
 * Nothing blocks, and what a call cannot use up it keeps.
 *
 * TLS 1.2 and above, the server's side; between nodes TLS 1.3, either side. No compression, no
 * renegotiation, no resumption: a session ticket would outlive a change of the files.
 *
 * Contexts: any thread, counted. Connections: one owner.
 */
#ifndef BASE_TLS_H
#define BASE_TLS_H

#include "base/buf.h"
#include "base/err.h"
#include <stdbool.h>

#define TLS_END_POINT_MAX 64u
#define TLS_NAME_MAX 256u

struct tls_files {
    const char *certificate; /* PEM, the chain behind it */
    const char *key;         /* PEM, without a passphrase, for nobody else to read */
    const char *client_ca;   /* PEM, "" = clients are not asked for a certificate */
};

struct tls_context;

/* ST_INVALID: a file cannot be read, or they do not belong together; ERR names the file. Blocking:
 * it reads files. PROTOCOL is the only one that ALPN may agree on; static. */
NODISCARD status tls_context_new(const struct tls_files *files, const char *protocol,
                                 struct tls_context **out, struct err *err);
/* For both ends of a connection in which each shows a certificate that client_ca has signed: TLS
 * 1.3 only, and PROTOCOL must be agreed on. */
NODISCARD status tls_context_new_mutual(const struct tls_files *files, const char *protocol,
                                        struct tls_context **out, struct err *err);
struct tls_context *tls_context_ref(struct tls_context *c);
void tls_context_unref(struct tls_context *c); /* NULL is fine */
/* When the certificate ends, in seconds of Unix time. */
int64_t tls_context_not_after(const struct tls_context *c);
/* The common name of its own certificate; NULL as for tls_peer_name. */
const char *tls_context_name(const struct tls_context *c);

struct tls;

/* ALPN: the peer must name the protocol, else its handshake fails. */
struct tls *tls_accept(struct tls_context *c, bool alpn);
/* The side that begins, of a mutual context. A tls_read of nothing makes the first bytes. */
struct tls *tls_connect(struct tls_context *c);
void tls_free(struct tls *t); /* NULL is fine */

/* What came from the peer; all of it is used. What it says is added to PLAIN, at most as many bytes
 * as came and one record more. ST_END: the peer has said goodbye. ST_PROTOCOL: the connection is
 * lost, and ERR says why; the alert is in the output. */
NODISCARD status tls_read(struct tls *t, bytes cipher, struct obuf *plain, struct err *err);
/* Adds PLAIN to the output. After the handshake only. */
NODISCARD status tls_write(struct tls *t, bytes plain, struct err *err);
/* Says goodbye, once. */
void tls_close(struct tls *t);
/* What is to be sent: whoever sends it takes it off the front. */
struct obuf *tls_output(struct tls *t);

bool tls_is_open(const struct tls *t); /* the handshake is over */
/* Of the peer's certificate, which an authority of client_ca has signed: its common name. NULL: it
 * has shown none, or one whose name holds a zero byte. */
const char *tls_peer_name(const struct tls *t);
/* tls-server-end-point of RFC 5929; empty if the certificate's signature has no hash of its own. */
bytes tls_end_point(const struct tls *t);

#endif
