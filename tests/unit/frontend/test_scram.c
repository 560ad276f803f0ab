/* frontend/scram: the vector of RFC 7677, every gs2 header, what is malformed, and that a mock and
 * a wrong password cannot be told apart. */
#include "lib/test.h"

#include "base/assert.h"
#include "frontend/scram.h"

#define CLIENT_NONCE "rOprNGfwEbeRWgbNEkqO"
#define OWN_NONCE "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
#define NONCE CLIENT_NONCE OWN_NONCE
#define SALT "W22ZaJ0SNY7soEsUEjb6gQ=="
#define BARE "n=user,r=" CLIENT_NONCE
#define SERVER_FIRST "r=" NONCE ",s=" SALT ",i=4096"

static void verifier_of(const char *password, struct fe_scram_verifier *out)
{
    uint8_t salt[FE_SCRAM_SALT_MAX];
    size_t n;
    assert_true(crypt_unbase64(BYTES_LIT(SALT), salt, sizeof salt, &n));
    fe_scram_derive(bytes_str(password), bytes_make(salt, n), 4096, out);
}

static void begin(struct fe_scram *x, const char *password)
{
    memset(x, 0, sizeof *x);
    verifier_of(password, &x->verifier);
    memcpy(x->own_nonce, OWN_NONCE, sizeof OWN_NONCE);
}

/* What an honest client sends last. */
static void client_final(const char *password, const char *binding, char *out, size_t size)
{
    struct fe_scram_verifier v;
    uint8_t salted[32], key[32], stored[32], signature[32];
    char bare[512], message[1024], proof[64];
    verifier_of(password, &v);
    crypt_pbkdf2_sha256(bytes_str(password), bytes_make(v.salt, v.salt_size), 4096, salted);
    crypt_hmac_sha256(bytes_make(salted, 32), BYTES_LIT("Client Key"), key);
    crypt_sha256(bytes_make(key, 32), stored);
    snprintf(bare, sizeof bare, "c=%s,r=%s", binding, NONCE);
    snprintf(message, sizeof message, "%s,%s,%s", BARE, SERVER_FIRST, bare);
    crypt_hmac_sha256(bytes_make(stored, 32), bytes_str(message), signature);
    for (unsigned i = 0; i < 32; i++)
        key[i] ^= signature[i];
    crypt_base64(bytes_make(key, 32), proof);
    snprintf(out, size, "%s,p=%s", bare, proof);
}

static status step(struct fe_scram *x, const char *in, char *out, size_t size, struct err *err)
{
    struct obuf o;
    obuf_init(&o);
    err_clear(err);
    err->sqlstate[0] = '\0';
    status st = fe_scram_step(x, bytes_str(in), &o, err);
    assert_true(o.size < size);
    memcpy(out, o.data != NULL ? (const char *)o.data : "", o.size);
    out[o.size] = '\0';
    obuf_fini(&o);
    return st;
}

static void the_exchange_of_rfc_7677(void **state)
{
    struct fe_scram x;
    struct err err;
    char out[1024];
    (void)state;
    begin(&x, "pencil");
    assert_int_equal(step(&x, "n,," BARE, out, sizeof out, &err), ST_OK);
    assert_string_equal(out, SERVER_FIRST);
    assert_int_equal(step(&x, "c=biws,r=" NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
                          out, sizeof out, &err),
                     ST_OK);
    assert_string_equal(out, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    assert_int_equal(x.state, FE_SCRAM_OVER);
}

static void verifiers_go_both_ways(void **state)
{
    struct fe_scram_verifier v, back;
    char text[FE_SCRAM_TEXT_MAX];
    (void)state;
    verifier_of("pencil", &v);
    fe_scram_text(&v, text);
    assert_string_equal(text,
                        "SCRAM-SHA-256$4096:" SALT "$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
                        "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=");
    assert_true(fe_scram_parse(bytes_str(text), &back));
    assert_memory_equal(&v, &back, sizeof v);
    for (size_t n = 0; n < strlen(text); n++)
        assert_false(fe_scram_parse(bytes_make(text, n), &back));
    assert_false(fe_scram_parse(BYTES_LIT("SCRAM-SHA-256$0:c2FsdA==$:"), &back));
    assert_false(fe_scram_parse(BYTES_LIT("md5f0123456789abcdef0123456789abcde"), &back));
}

/* Flag of the client × is it PLUS × is PLUS offered. */
static void every_gs2_header(void **state)
{
    static const struct {
        const char *header;
        bool plus, offered, good;
        const char *sqlstate;
    } cases[] = {
        {"n,,", false, false, true, NULL},
        {"n,,", false, true, true, NULL}, /* a client that cannot bind, inside TLS */
        {"y,,", false, false, true, NULL},
        {"y,,", false, true, false, "28000"}, /* somebody took the offer away */
        {"n,,", true, true, false, "08P01"},
        {"y,,", true, true, false, "08P01"},
        {"p=tls-server-end-point,,", true, true, true, NULL},
        {"p=tls-server-end-point,,", false, true, false, "08P01"},
        {"p=tls-server-end-point,,", false, false, false, "08P01"},
        {"p=tls-unique,,", true, true, false, "08P01"},
        {"n,a=boss,", false, false, false, "0A000"},
        {"n,b=boss,", false, false, false, "08P01"},
        {"x,,", false, false, false, "08P01"},
        {"nn,,", false, false, false, "08P01"},
        {"p,,", true, true, false, "08P01"},
        {",,", false, false, false, "08P01"},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fe_scram x;
        struct err err;
        char in[512], out[1024];
        begin(&x, "pencil");
        x.plus = cases[i].plus;
        x.end_point_size = cases[i].offered ? 32 : 0;
        snprintf(in, sizeof in, "%s" BARE, cases[i].header);
        status st = step(&x, in, out, sizeof out, &err);
        assert_int_equal(st == ST_OK, cases[i].good);
        if (!cases[i].good)
            assert_string_equal(err.sqlstate, cases[i].sqlstate);
    }
}

static void channels_are_bound(void **state)
{
    struct fe_scram x;
    struct err err;
    char out[1024], last[1024], binding[256];
    uint8_t raw[24 + 32] = "p=tls-server-end-point,,";
    (void)state;
    for (unsigned wrong = 0; wrong < 2; wrong++) {
        begin(&x, "pencil");
        x.plus = true;
        x.end_point_size = 32;
        memset(x.end_point, 7, 32);
        memset(raw + 24, 7 + (int)wrong, 32);
        crypt_base64(bytes_make(raw, sizeof raw), binding);
        assert_int_equal(step(&x, "p=tls-server-end-point,," BARE, out, sizeof out, &err), ST_OK);
        client_final("pencil", binding, last, sizeof last);
        status st = step(&x, last, out, sizeof out, &err);
        assert_int_equal(st, wrong ? ST_PROTOCOL : ST_OK);
        if (wrong)
            assert_string_equal(err.sqlstate, "28000");
    }
}

static void what_is_malformed_is_refused(void **state)
{
    static const char *const first[] = {"",
                                        "n",
                                        "n,",
                                        "n,,",
                                        "n,,n=user",
                                        "n,,r=x,n=user",
                                        "n,,n=user,r=",
                                        "n,,n=user,r=\x01",
                                        "n,,m=x," BARE,
                                        "n,,n=user,r=\xc3\xa4"};
    static const char *const last[] = {
        "",
        "c=biws",
        "c=biws,r=" NONCE,
        "c=biws,r=" NONCE ",p=",
        "c=biws,r=" NONCE ",p=*",
        "c=biws,r=" NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndV",
        "c=eSws,r=" NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "c=biws,r=" CLIENT_NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "r=" NONCE ",c=biws,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="};
    struct fe_scram x;
    struct err err;
    char out[1024];
    (void)state;
    for (unsigned i = 0; i < sizeof first / sizeof *first; i++) {
        begin(&x, "pencil");
        status st = step(&x, first[i], out, sizeof out, &err);
        assert_true(st == ST_PROTOCOL || st == ST_UNSUPPORTED);
        assert_true(err.message[0] != '\0');
    }
    for (unsigned i = 0; i < sizeof last / sizeof *last; i++) {
        begin(&x, "pencil");
        assert_int_equal(step(&x, "n,," BARE, out, sizeof out, &err), ST_OK);
        assert_int_equal(step(&x, last[i], out, sizeof out, &err), ST_PROTOCOL);
        assert_int_equal(x.state, FE_SCRAM_FINAL);
    }
}

static void a_mock_is_like_a_wrong_password(void **state)
{
    struct fe_scram wrong, mock;
    struct err err;
    char a[1024], b[1024], last[1024];
    struct fe_scram_verifier again;
    (void)state;
    begin(&wrong, "pencil");
    begin(&mock, "pencil");
    fe_scram_mock(BYTES_LIT("nobody"), BYTES_LIT("secret"), 4096, &mock.verifier);
    mock.doomed = true;
    fe_scram_mock(BYTES_LIT("nobody"), BYTES_LIT("secret"), 4096, &again);
    assert_memory_equal(&again, &mock.verifier, sizeof again);
    fe_scram_mock(BYTES_LIT("nobodi"), BYTES_LIT("secret"), 4096, &again);
    assert_memory_not_equal(again.salt, mock.verifier.salt, FE_SCRAM_SALT_BYTES);
    assert_int_equal(step(&wrong, "n,," BARE, a, sizeof a, &err), ST_OK);
    assert_int_equal(step(&mock, "n,," BARE, b, sizeof b, &err), ST_OK);
    assert_int_equal(strlen(a), strlen(b));
    client_final("pencil2", "biws", last, sizeof last);
    assert_int_equal(step(&wrong, last, a, sizeof a, &err), ST_DENIED);
    assert_int_equal(step(&mock, last, b, sizeof b, &err), ST_DENIED);
    assert_string_equal(a, b);
}

/* Even a client that guesses the zeros of a mock's keys is not let in. */
static void a_mock_cannot_be_fitted(void **state)
{
    struct fe_scram x;
    struct err err;
    char out[1024], last[1024];
    (void)state;
    begin(&x, "pencil");
    x.doomed = true; /* the verifier is right */
    assert_int_equal(step(&x, "n,," BARE, out, sizeof out, &err), ST_OK);
    client_final("pencil", "biws", last, sizeof last);
    assert_int_equal(step(&x, last, out, sizeof out, &err), ST_DENIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exchange_of_rfc_7677),
        cmocka_unit_test(verifiers_go_both_ways),
        cmocka_unit_test(every_gs2_header),
        cmocka_unit_test(channels_are_bound),
        cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(a_mock_is_like_a_wrong_password),
        cmocka_unit_test(a_mock_cannot_be_fitted),
    };
    return cmocka_run_group_tests_name("frontend_scram", tests, NULL, NULL);
}
