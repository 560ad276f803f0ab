/* base/tls against OpenSSL's own client, over bytes: handshakes at every cut, long transfers, what
 * is refused, and files that are no good. */
#include "lib/test.h"

#include "base/tls.h"
#include "lib/x509.h"
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#define ALPN "\x0apostgresql"

struct fixture {
    char dir[64];
    char certificate[128], key[128], other_key[128], ca[128];
    char client[128], client_key[128];
};

/* -- files ------------------------------------------------------------------------------------ */

static int setup(void **state)
{
    static struct fixture f;
    snprintf(f.dir, sizeof f.dir, "/tmp/test_tls.XXXXXX");
    assert_non_null(mkdtemp(f.dir));
    snprintf(f.certificate, sizeof f.certificate, "%s/server.pem", f.dir);
    snprintf(f.key, sizeof f.key, "%s/server.key", f.dir);
    snprintf(f.other_key, sizeof f.other_key, "%s/other.key", f.dir);
    snprintf(f.ca, sizeof f.ca, "%s/ca.pem", f.dir);
    snprintf(f.client, sizeof f.client, "%s/client.pem", f.dir);
    snprintf(f.client_key, sizeof f.client_key, "%s/client.key", f.dir);
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256"),
             *client_key = EVP_EC_gen("P-256");
    X509 *ca = certificate(ca_key, "authority", -1, NULL, ca_key);
    X509 *server = certificate(key, "localhost", -1, ca, ca_key);
    X509 *client = certificate(client_key, "alice", -1, ca, ca_key);
    write_certificate(f.ca, ca);
    write_certificate(f.certificate, server);
    write_certificate(f.client, client);
    write_key(f.key, key, 0600);
    write_key(f.other_key, client_key, 0600);
    write_key(f.client_key, client_key, 0600);
    X509_free(ca);
    X509_free(server);
    X509_free(client);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(key);
    EVP_PKEY_free(client_key);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    const struct fixture *f = *state;
    const char *const paths[] = {f->certificate, f->key,    f->other_key,
                                 f->ca,          f->client, f->client_key};
    for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++)
        unlink(paths[i]);
    return rmdir(f->dir);
}

static struct tls_context *context(const struct fixture *f, const char *ca)
{
    struct tls_files files = {f->certificate, f->key, ca};
    struct tls_context *c = NULL;
    struct err err;
    assert_int_equal(tls_context_new(&files, "postgresql", &c, &err), ST_OK);
    return c;
}

/* -- a client ---------------------------------------------------------------------------------- */

struct pair {
    struct tls *server;
    SSL_CTX *client_context;
    SSL *client;
    BIO *to_client, *to_server;
    struct obuf plain;
    struct err err;
    status st;
    size_t cut; /* bytes a server's read gets at most */
};

static void pair_init(struct pair *p, struct tls_context *c, bool direct, const char *alpn,
                      size_t cut)
{
    *p = (struct pair){.cut = cut, .st = ST_OK};
    obuf_init(&p->plain);
    p->server = tls_accept(c, direct);
    p->client_context = SSL_CTX_new(TLS_client_method());
    p->client = SSL_new(p->client_context);
    p->to_client = BIO_new(BIO_s_mem());
    p->to_server = BIO_new(BIO_s_mem());
    SSL_set_bio(p->client, p->to_client, p->to_server);
    SSL_set_connect_state(p->client);
    if (alpn != NULL)
        SSL_set_alpn_protos(p->client, (const unsigned char *)alpn, (unsigned)strlen(alpn));
}

static void pair_fini(struct pair *p)
{
    tls_free(p->server);
    SSL_free(p->client);
    SSL_CTX_free(p->client_context);
    obuf_fini(&p->plain);
}

/* The client's bytes to the server, in pieces, and the server's to the client. */
static void carry(struct pair *p)
{
    char piece[4096];
    int n;
    size_t room = p->cut < sizeof piece ? p->cut : sizeof piece;
    while (p->st == ST_OK && (n = BIO_read(p->to_server, piece, (int)room)) > 0)
        p->st = tls_read(p->server, bytes_make(piece, (size_t)n), &p->plain, &p->err);
    struct obuf *o = tls_output(p->server);
    if (o->size > 0)
        assert_int_equal(BIO_write(p->to_client, o->data, (int)o->size), o->size);
    obuf_reset(o);
}

static int shake(struct pair *p)
{
    int r = -1;
    for (unsigned i = 0; i < 10 && (r != 1 || !tls_is_open(p->server)) && p->st == ST_OK; i++) {
        r = SSL_do_handshake(p->client);
        carry(p);
    }
    ERR_clear_error();
    return r;
}

/* -- tests ------------------------------------------------------------------------------------- */

static void handshakes_at_every_cut(void **state)
{
    struct tls_context *c = context(*state, "");
    static const size_t cuts[] = {1, 2, 5, 100, 4096};
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (unsigned i = 0; i < 10; i++) {
        struct pair p;
        pair_init(&p, c, false, i % 3 == 0 ? NULL : ALPN, cuts[i % 5]);
        SSL_set_max_proto_version(p.client, versions[i / 5]);
        assert_int_equal(shake(&p), 1);
        assert_true(tls_is_open(p.server));
        assert_null(tls_peer_name(p.server));
        assert_int_equal(tls_end_point(p.server).size, 32);
        assert_int_equal(SSL_write(p.client, "ping", 4), 4);
        carry(&p);
        assert_int_equal(p.plain.size, 4);
        assert_memory_equal(p.plain.data, "ping", 4);
        pair_fini(&p);
    }
    tls_context_unref(c);
}

/* The end point is the hash of the certificate as the client has it. */
static void the_end_point_is_the_hash_of_the_certificate(void **state)
{
    struct tls_context *c = context(*state, "");
    struct pair p;
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    pair_init(&p, c, false, NULL, 4096);
    assert_int_equal(shake(&p), 1);
    assert_int_equal(X509_digest(SSL_get0_peer_certificate(p.client), EVP_sha256(), hash, &n), 1);
    assert_int_equal(tls_end_point(p.server).size, n);
    assert_memory_equal(tls_end_point(p.server).data, hash, n);
    pair_fini(&p);
    tls_context_unref(c);
}

static void long_transfers_come_whole(void **state)
{
    struct tls_context *c = context(*state, "");
    struct pair p;
    enum { SIZE = 3 << 20 };
    char *sent = malloc(SIZE), *got = malloc(SIZE);
    size_t done = 0;
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (char)(i * 2654435761u >> 13);
    pair_init(&p, c, false, NULL, 777);
    assert_int_equal(shake(&p), 1);
    for (size_t at = 0; at < SIZE; at += 70001) {
        size_t n = SIZE - at < 70001 ? SIZE - at : 70001;
        assert_int_equal(tls_write(p.server, bytes_make(sent + at, n), &p.err), ST_OK);
        assert_int_equal(SSL_write(p.client, sent + at, (int)n), n);
        carry(&p);
        int r;
        while ((r = SSL_read(p.client, got + done, (int)(SIZE - done))) > 0)
            done += (size_t)r;
    }
    assert_int_equal(done, SIZE);
    assert_memory_equal(got, sent, SIZE);
    assert_int_equal(p.plain.size, SIZE);
    assert_memory_equal(p.plain.data, sent, SIZE);
    free(sent);
    free(got);
    pair_fini(&p);
    tls_context_unref(c);
}

static void alpn_decides_about_direct_connections(void **state)
{
    struct tls_context *c = context(*state, "");
    static const struct {
        bool direct, good;
        const char *alpn;
    } cases[] = {{true, true, ALPN},
                 {true, false, NULL},
                 {true, false, "\x08http/1.1"},
                 {true, true, "\x08http/1.1" ALPN},
                 {false, true, NULL},
                 {false, false, "\x08http/1.1"}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pair p;
        pair_init(&p, c, cases[i].direct, cases[i].alpn, 4096);
        (void)shake(&p);
        assert_int_equal(p.st, cases[i].good ? ST_OK : ST_PROTOCOL);
        assert_int_equal(tls_is_open(p.server), cases[i].good);
        pair_fini(&p);
    }
    tls_context_unref(c);
}

static void old_versions_and_noise_are_refused(void **state)
{
    struct tls_context *c = context(*state, "");
    struct pair p;
    pair_init(&p, c, false, NULL, 4096);
    SSL_set_min_proto_version(p.client, TLS1_VERSION);
    SSL_set_max_proto_version(p.client, TLS1_1_VERSION);
    SSL_set_cipher_list(p.client, "ALL:@SECLEVEL=0");
    (void)shake(&p);
    assert_int_equal(p.st, ST_PROTOCOL);
    pair_fini(&p);
    pair_init(&p, c, false, NULL, 4096);
    assert_int_equal(tls_read(p.server, BYTES_LIT("GET / HTTP/1.1\r\n\r\n"), &p.plain, &p.err),
                     ST_PROTOCOL);
    assert_true(p.err.message[0] != '\0');
    assert_int_equal(tls_read(p.server, BYTES_LIT("x"), &p.plain, &p.err), ST_PROTOCOL);
    pair_fini(&p);
    tls_context_unref(c);
}

static void a_damaged_record_ends_the_connection(void **state)
{
    struct tls_context *c = context(*state, "");
    struct pair p;
    char piece[256];
    pair_init(&p, c, false, NULL, 4096);
    assert_int_equal(shake(&p), 1);
    assert_int_equal(SSL_write(p.client, "ping", 4), 4);
    int n = BIO_read(p.to_server, piece, sizeof piece);
    assert_true(n > 8);
    piece[n - 1] ^= 1;
    assert_int_equal(tls_read(p.server, bytes_make(piece, (size_t)n), &p.plain, &p.err),
                     ST_PROTOCOL);
    assert_int_equal(p.plain.size, 0);
    assert_int_equal(tls_write(p.server, BYTES_LIT("pong"), &p.err), ST_PROTOCOL);
    pair_fini(&p);
    tls_context_unref(c);
}

static void both_sides_say_goodbye(void **state)
{
    struct tls_context *c = context(*state, "");
    struct pair p;
    char byte;
    pair_init(&p, c, false, NULL, 4096);
    assert_int_equal(shake(&p), 1);
    assert_int_equal(SSL_write(p.client, "last", 4), 4);
    (void)SSL_shutdown(p.client);
    carry(&p);
    assert_int_equal(p.st, ST_END);
    assert_int_equal(p.plain.size, 4);
    tls_close(p.server);
    tls_close(p.server);
    carry(&p);
    assert_true(SSL_read(p.client, &byte, 1) <= 0);
    assert_int_equal(SSL_get_shutdown(p.client), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    ERR_clear_error();
    pair_fini(&p);
    tls_context_unref(c);
}

static void clients_show_certificates_of_the_authority_only(void **state)
{
    const struct fixture *f = *state;
    struct tls_context *c = context(f, f->ca);
    for (unsigned good = 0; good < 2; good++) {
        struct pair p;
        pair_init(&p, c, false, NULL, 4096);
        if (good == 1) {
            assert_int_equal(SSL_use_certificate_file(p.client, f->client, SSL_FILETYPE_PEM), 1);
            assert_int_equal(SSL_use_PrivateKey_file(p.client, f->client_key, SSL_FILETYPE_PEM), 1);
        } else {
            EVP_PKEY *k = EVP_EC_gen("P-256");
            X509 *own = certificate(k, "alice", -1, NULL, k);
            SSL_use_certificate(p.client, own);
            SSL_use_PrivateKey(p.client, k);
            X509_free(own);
            EVP_PKEY_free(k);
        }
        (void)shake(&p);
        assert_int_equal(p.st, good ? ST_OK : ST_PROTOCOL);
        if (good == 1)
            assert_string_equal(tls_peer_name(p.server), "alice");
        else
            assert_null(tls_peer_name(p.server));
        pair_fini(&p);
    }
    tls_context_unref(c);
}

static void files_that_are_no_good_are_named(void **state)
{
    const struct fixture *f = *state;
    char missing[128];
    snprintf(missing, sizeof missing, "%s/missing.pem", f->dir);
    const struct {
        struct tls_files files;
        const char *named;
    } cases[] = {
        {{missing, f->key, ""}, missing},
        {{f->key, f->key, ""}, f->key},
        {{f->certificate, missing, ""}, missing},
        {{f->certificate, f->certificate, ""}, f->certificate},
        {{f->certificate, f->other_key, ""}, f->other_key},
        {{f->certificate, f->key, missing}, missing},
        {{f->certificate, f->key, f->key}, f->key},
        {{f->certificate, f->dir, ""}, f->dir},
    };
    struct tls_context *c = NULL;
    struct err err;
    chmod(f->certificate, 0600);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        err_clear(&err);
        assert_int_equal(tls_context_new(&cases[i].files, "postgresql", &c, &err), ST_INVALID);
        assert_non_null(strstr(err.message, cases[i].named));
    }
    struct tls_files open = {f->certificate, f->key, ""};
    chmod(f->key, 0644);
    assert_int_equal(tls_context_new(&open, "postgresql", &c, &err), ST_INVALID);
    assert_non_null(strstr(err.message, "group or world access"));
    chmod(f->key, 0600);
}

/* Moves what each has to say until both are silent. */
static void exchange(struct tls *a, struct tls *b, struct obuf *a_says, struct obuf *b_says)
{
    struct err err;
    for (unsigned quiet = 0; quiet < 4;) {
        struct obuf moved = *tls_output(a);
        quiet = moved.size == 0 ? quiet + 1 : 0;
        obuf_init(tls_output(a));
        (void)!tls_read(b, bytes_make(moved.data, moved.size), a_says, &err);
        obuf_fini(&moved);
        struct tls *next = a;
        struct obuf *next_says = a_says;
        a = b;
        b = next;
        a_says = b_says;
        b_says = next_says;
    }
}

static void both_ends_show_certificates(void **state)
{
    const struct fixture *f = *state;
    struct tls_files server = {f->certificate, f->key, f->ca};
    struct tls_files client = {f->client, f->client_key, f->ca};
    struct tls_context *a, *b, *open = context(f, "");
    struct err err;
    struct obuf says[2];
    assert_int_equal(tls_context_new_mutual(&server, "peer", &a, &err), ST_OK);
    assert_int_equal(tls_context_new_mutual(&client, "peer", &b, &err), ST_OK);
    assert_string_equal(tls_context_name(a), "localhost");
    assert_string_equal(tls_context_name(b), "alice");
    struct tls *accepts = tls_accept(a, true), *connects = tls_connect(b);
    obuf_init(&says[0]);
    obuf_init(&says[1]);
    exchange(connects, accepts, &says[0], &says[1]);
    assert_true(tls_is_open(connects) && tls_is_open(accepts));
    assert_string_equal(tls_peer_name(connects), "localhost");
    assert_string_equal(tls_peer_name(accepts), "alice");
    assert_int_equal(tls_write(connects, BYTES_LIT("question"), &err), ST_OK);
    assert_int_equal(tls_write(accepts, BYTES_LIT("answer"), &err), ST_OK);
    exchange(connects, accepts, &says[0], &says[1]);
    assert_int_equal(says[0].size, 8);
    assert_int_equal(says[1].size, 6);
    assert_memory_equal(says[1].data, "answer", 6);
    tls_free(connects);
    /* Against a server of clients, which speaks another protocol and asks for no certificate. */
    struct tls *other = tls_accept(open, false);
    connects = tls_connect(b);
    exchange(connects, other, &says[0], &says[1]);
    assert_false(tls_is_open(connects) || tls_is_open(other));
    tls_free(connects);
    tls_free(other);
    tls_free(accepts);
    obuf_fini(&says[0]);
    obuf_fini(&says[1]);
    tls_context_unref(a);
    tls_context_unref(b);
    tls_context_unref(open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handshakes_at_every_cut),
        cmocka_unit_test(the_end_point_is_the_hash_of_the_certificate),
        cmocka_unit_test(long_transfers_come_whole),
        cmocka_unit_test(alpn_decides_about_direct_connections),
        cmocka_unit_test(old_versions_and_noise_are_refused),
        cmocka_unit_test(a_damaged_record_ends_the_connection),
        cmocka_unit_test(both_sides_say_goodbye),
        cmocka_unit_test(clients_show_certificates_of_the_authority_only),
        cmocka_unit_test(both_ends_show_certificates),
        cmocka_unit_test(files_that_are_no_good_are_named),
    };
    return cmocka_run_group_tests_name("base_tls", tests, setup, teardown);
}
