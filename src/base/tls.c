/*
 * base/tls.c — the door to OpenSSL's connections (its primitives: base/crypt.c).
 *
 *   peer's bytes ─ tls_read ─> input ─> SSL ─> plain
 *   peer     <─── output <─── SSL <─ tls_write ─── plain
 *
 * OpenSSL reads and writes through a BIO of ours over these two, so that it never sees a socket:
 * writing always succeeds, reading runs dry. Hence no write is ever to be repeated, and no
 * decrypted bytes lie where no event of the socket would tell of them.
 *
 * Invariants
 *   L1  After tls_read the input is used up: SSL holds at most an unfinished record.
 *   L2  The thread's error queue is empty when a function of this file returns, and so when it is
 *       called: SSL_get_error looks at it.
 */
#include "base/tls.h"
#include "base/assert.h"
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (16u * 1024u)

struct tls_context {
    atomic_uint refs;
    SSL_CTX *ssl;
    BIO_METHOD *method;
    uint8_t protocol[32]; /* as ALPN writes it: its length first */
    unsigned protocol_size;
    uint8_t end_point[TLS_END_POINT_MAX];
    unsigned end_point_size;
    int64_t not_after;
    bool named;
    char name[TLS_NAME_MAX];
};

struct tls {
    struct tls_context *context;
    SSL *ssl;
    bytes input; /* of the tls_read under way */
    struct obuf output;
    bool connector, alpn, open, lost, closed;
    bool named;
    char name[TLS_NAME_MAX];
};

/* -- errors ------------------------------------------------------------------------------------ */

/* Emptying walks over every place of the queue, full or not: only where there is something. */
static void forget_errors(void)
{
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

/* The first error of the queue, which is emptied. */
static const char *reason(void)
{
    unsigned long e = ERR_get_error();
    const char *text = e != 0 ? ERR_reason_error_string(e) : NULL;
    ERR_clear_error();
    return text != NULL ? text : "unknown error";
}

static status file_error(struct err *err, const char *what, const char *path)
{
    return err_set(err, ST_INVALID, "could not load %s \"%s\": %s", what, path, reason());
}

/* -- the BIO ----------------------------------------------------------------------------------- */

static int bio_read(BIO *b, char *out, int size)
{
    struct tls *t = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (size <= 0)
        return 0;
    if (t->input.size == 0) {
        BIO_set_retry_read(b);
        return -1;
    }
    size_t n = t->input.size < (size_t)size ? t->input.size : (size_t)size;
    memcpy(out, t->input.data, n);
    t->input = bytes_make(t->input.data + n, t->input.size - n);
    return (int)n;
}

static int bio_write(BIO *b, const char *in, int size)
{
    struct tls *t = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (size > 0)
        obuf_put(&t->output, in, (size_t)size);
    return size;
}

static long bio_ctrl(BIO *b, int command, long number, void *pointer)
{
    UNUSED(b);
    UNUSED(number);
    UNUSED(pointer);
    return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *b)
{
    BIO_set_init(b, 1);
    return 1;
}

static BIO_METHOD *method_new(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "bytes");
    ASSERT(m != NULL);
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_ctrl(m, bio_ctrl);
    BIO_meth_set_create(m, bio_create);
    return m;
}

/* -- contexts ---------------------------------------------------------------------------------- */

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *in, unsigned in_size, void *arg)
{
    const struct tls_context *c = arg;
    unsigned char *found;
    UNUSED(ssl);
    if (SSL_select_next_proto(&found, out_size, c->protocol, c->protocol_size, in, in_size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = found;
    return SSL_TLSEXT_ERR_OK;
}

/* A key with a passphrase is refused instead of asking on the terminal. */
static int no_passphrase(char *out, int size, int writing, void *arg)
{
    UNUSED(out);
    UNUSED(size);
    UNUSED(writing);
    UNUSED(arg);
    return 0;
}

static NODISCARD status check_key_mode(const char *path, struct err *err)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return err_set(err, ST_INVALID, "could not access private key file \"%s\": %s", path,
                       strerrordesc_np(errno));
    if (!S_ISREG(s.st_mode))
        return err_set(err, ST_INVALID, "private key file \"%s\" is not a regular file", path);
    if ((s.st_uid == geteuid() && (s.st_mode & (S_IRWXG | S_IRWXO)) != 0) ||
        (s.st_uid == 0 && (s.st_mode & (S_IWGRP | S_IXGRP | S_IRWXO)) != 0)) {
        err_set(err, ST_INVALID, "private key file \"%s\" has group or world access", path);
        err_detail(err, "File must have permissions u=rw (0600) or less if owned by the server's "
                        "user, or permissions u=rw,g=r (0640) or less if owned by root.");
        return ST_INVALID;
    }
    return ST_OK;
}

/* RFC 5929, section 4.1: the hash of the certificate's signature, SHA-256 in place of weaker
 * ones. */
static void read_end_point(struct tls_context *c, X509 *certificate)
{
    int nid = NID_undef;
    unsigned size = 0;
    if (X509_get_signature_info(certificate, &nid, NULL, NULL, NULL) == 1 && nid != NID_undef) {
        const EVP_MD *md =
            nid == NID_md5 || nid == NID_sha1 ? EVP_sha256() : EVP_get_digestbynid(nid);
        if (md != NULL && EVP_MD_get_size(md) <= (int)sizeof c->end_point &&
            X509_digest(certificate, md, c->end_point, &size) == 1)
            c->end_point_size = size;
    }
    ERR_clear_error();
}

static void read_not_after(struct tls_context *c, X509 *certificate)
{
    struct tm tm;
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &tm) == 1)
        c->not_after = timegm(&tm);
}

/* X's common name, unless a zero byte would let it pass for another. */
static bool read_name(const X509 *x, char out[TLS_NAME_MAX])
{
    const X509_NAME *subject = X509_get_subject_name(x);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
        return false;
    unsigned char *text = NULL;
    int n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    bool good = n > 0 && (size_t)n < TLS_NAME_MAX && memchr(text, 0, (size_t)n) == NULL;
    if (good) {
        memcpy(out, text, (size_t)n);
        out[n] = '\0';
    }
    OPENSSL_free(text);
    return good;
}

static NODISCARD status load_client_ca(struct tls_context *c, const char *path, struct err *err)
{
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(path);
    if (names == NULL || SSL_CTX_load_verify_file(c->ssl, path) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return file_error(err, "client authorities file", path);
    }
    SSL_CTX_set_client_CA_list(c->ssl, names);
    SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER | SSL_VERIFY_CLIENT_ONCE, NULL);
    return ST_OK;
}

static NODISCARD status load(struct tls_context *c, const struct tls_files *f, struct err *err)
{
    SSL_CTX_set_default_passwd_cb(c->ssl, no_passphrase);
    if (SSL_CTX_use_certificate_chain_file(c->ssl, f->certificate) != 1)
        return file_error(err, "certificate file", f->certificate);
    ST_TRY(check_key_mode(f->key, err));
    if (SSL_CTX_use_PrivateKey_file(c->ssl, f->key, SSL_FILETYPE_PEM) != 1)
        return file_error(err, "private key file", f->key);
    if (SSL_CTX_check_private_key(c->ssl) != 1)
        return file_error(err, "private key of the certificate", f->key);
    X509 *certificate = SSL_CTX_get0_certificate(c->ssl);
    read_end_point(c, certificate);
    read_not_after(c, certificate);
    c->named = read_name(certificate, c->name);
    return f->client_ca[0] != '\0' ? load_client_ca(c, f->client_ca, err) : ST_OK;
}

static void configure(struct tls_context *c)
{
    SSL_CTX_set_min_proto_version(c->ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(c->ssl, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                    SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_num_tickets(c->ssl, 0);
    SSL_CTX_set_session_cache_mode(c->ssl, SSL_SESS_CACHE_OFF);
    /* An idle connection keeps no record buffers. */
    SSL_CTX_set_mode(c->ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(c->ssl, choose_protocol, c);
}

static void demand_certificates(struct tls_context *c)
{
    SSL_CTX_set_min_proto_version(c->ssl, TLS1_3_VERSION);
    SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
}

static NODISCARD status context_new(const struct tls_files *files, const char *protocol,
                                    bool mutual, struct tls_context **out, struct err *err)
{
    size_t n = strlen(protocol);
    struct tls_context *c = calloc(1, sizeof *c);
    ASSERT(c != NULL);
    ASSERT(n > 0 && n < sizeof c->protocol);
    atomic_init(&c->refs, 1);
    c->protocol[0] = (uint8_t)n;
    memcpy(c->protocol + 1, protocol, n);
    c->protocol_size = (unsigned)n + 1;
    c->method = method_new();
    c->ssl = SSL_CTX_new(mutual ? TLS_method() : TLS_server_method());
    ASSERT(c->ssl != NULL);
    configure(c);
    status st = load(c, files, err);
    if (st == ST_OK && mutual)
        demand_certificates(c);
    ERR_clear_error();
    if (st != ST_OK) {
        tls_context_unref(c);
        return st;
    }
    *out = c;
    return ST_OK;
}

status tls_context_new(const struct tls_files *files, const char *protocol,
                       struct tls_context **out, struct err *err)
{
    return context_new(files, protocol, false, out, err);
}

status tls_context_new_mutual(const struct tls_files *files, const char *protocol,
                              struct tls_context **out, struct err *err)
{
    ASSERT(files->client_ca[0] != '\0');
    return context_new(files, protocol, true, out, err);
}

struct tls_context *tls_context_ref(struct tls_context *c)
{
    atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
    return c;
}

void tls_context_unref(struct tls_context *c)
{
    if (c == NULL || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
        return;
    SSL_CTX_free(c->ssl);
    BIO_meth_free(c->method);
    free(c);
}

int64_t tls_context_not_after(const struct tls_context *c)
{
    return c->not_after;
}

const char *tls_context_name(const struct tls_context *c)
{
    return c->named ? c->name : NULL;
}

/* -- connections ------------------------------------------------------------------------------- */

static struct tls *tls_new(struct tls_context *c, bool alpn)
{
    struct tls *t = calloc(1, sizeof *t);
    ASSERT(t != NULL);
    t->context = tls_context_ref(c);
    t->alpn = alpn;
    t->ssl = SSL_new(c->ssl);
    BIO *bio = BIO_new(c->method);
    ASSERT(t->ssl != NULL);
    ASSERT(bio != NULL);
    BIO_set_data(bio, t);
    SSL_set_bio(t->ssl, bio, bio);
    return t;
}

struct tls *tls_accept(struct tls_context *c, bool alpn)
{
    struct tls *t = tls_new(c, alpn);
    SSL_set_accept_state(t->ssl);
    forget_errors();
    return t;
}

struct tls *tls_connect(struct tls_context *c)
{
    struct tls *t = tls_new(c, true);
    t->connector = true;
    SSL_set_connect_state(t->ssl);
    int failed = SSL_set_alpn_protos(t->ssl, c->protocol, c->protocol_size);
    ASSERT(failed == 0);
    forget_errors();
    return t;
}

void tls_free(struct tls *t)
{
    if (t == NULL)
        return;
    SSL_free(t->ssl);
    forget_errors();
    obuf_fini(&t->output);
    tls_context_unref(t->context);
    free(t);
}

static void read_peer(struct tls *t)
{
    const X509 *x = SSL_get0_peer_certificate(t->ssl);
    if (x != NULL && SSL_get_verify_result(t->ssl) == X509_V_OK)
        t->named = read_name(x, t->name);
}

static status lose(struct tls *t, struct err *err)
{
    t->lost = true;
    return err_set(err, ST_PROTOCOL, "could not %s SSL connection: %s",
                   t->connector ? "open" : "accept", reason());
}

static NODISCARD status handshake(struct tls *t, struct err *err)
{
    int r = SSL_do_handshake(t->ssl);
    if (r != 1)
        return SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ ? ST_OK : lose(t, err);
    const unsigned char *protocol;
    unsigned protocol_size;
    SSL_get0_alpn_selected(t->ssl, &protocol, &protocol_size);
    if (t->alpn && protocol_size == 0) {
        t->lost = true;
        return err_set(err, ST_PROTOCOL,
                       "received direct SSL connection request without ALPN protocol negotiation "
                       "extension");
    }
    read_peer(t);
    t->open = true;
    return ST_OK;
}

static NODISCARD status read_records(struct tls *t, struct obuf *plain, struct err *err)
{
    for (;;) {
        int n = SSL_read(t->ssl, obuf_reserve(plain, READ_BYTES), READ_BYTES);
        if (n > 0) {
            plain->size += (size_t)n;
            /* Nothing is left: another call would only say so. */
            if (t->input.size == 0 && SSL_has_pending(t->ssl) == 0)
                return ST_OK;
            continue;
        }
        int e = SSL_get_error(t->ssl, n);
        if (e == SSL_ERROR_WANT_READ) {
            ASSERT_INV("L1", t->input.size == 0);
            return ST_OK;
        }
        if (e == SSL_ERROR_ZERO_RETURN)
            return ST_END;
        return lose(t, err);
    }
}

status tls_read(struct tls *t, bytes cipher, struct obuf *plain, struct err *err)
{
    status st = ST_OK;
    if (t->lost)
        return err_set(err, ST_PROTOCOL, "the TLS connection is lost");
    t->input = cipher;
    if (!t->open)
        st = handshake(t, err);
    if (st == ST_OK && t->open)
        st = read_records(t, plain, err);
    t->input = BYTES_EMPTY;
    forget_errors();
    return st;
}

status tls_write(struct tls *t, bytes plain, struct err *err)
{
    ASSERT(t->open);
    status st = ST_OK;
    while (st == ST_OK && plain.size > 0) {
        size_t n = 0;
        if (t->lost || SSL_write_ex(t->ssl, plain.data, plain.size, &n) != 1)
            st = lose(t, err);
        else
            plain = bytes_make(plain.data + n, plain.size - n);
    }
    forget_errors();
    return st;
}

void tls_close(struct tls *t)
{
    if (t->closed)
        return;
    t->closed = true;
    if (t->open && !t->lost)
        (void)SSL_shutdown(t->ssl);
    forget_errors();
}

struct obuf *tls_output(struct tls *t)
{
    return &t->output;
}

bool tls_is_open(const struct tls *t)
{
    return t->open;
}

const char *tls_peer_name(const struct tls *t)
{
    return t->named ? t->name : NULL;
}

bytes tls_end_point(const struct tls *t)
{
    return bytes_make(t->context->end_point, t->context->end_point_size);
}
