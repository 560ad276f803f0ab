/*
 * frontend/scram.c — see scram.h.
 *
 *   client-first   gs2-flag , [a=authzid] , n=user , r=nonce [, extensions]
 *   server-first   r=nonce+ours , s=salt , i=rounds
 *   client-final   c=base64(gs2 header [+ channel binding]) , r=nonce+ours [, extensions] , p=proof
 *   server-final   v=signature
 *
 * The gs2 flag: n, the client cannot bind channels; y, it could but saw no offer; p=type, it does.
 * `y` where an offer was made means that somebody between took it away: refused. The user's name in
 * the message is ignored, the start-up packet's counts.
 *
 * Invariants
 *   M1  What is compared with a secret is compared in constant time.
 *   M2  A mock goes the same way to the same answer as a wrong password.
 */
#include "frontend/scram.h"
#include "base/assert.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANNEL "tls-server-end-point"
#define ROUNDS_MAX 100000000u

/* -- verifiers --------------------------------------------------------------------------------- */

/* The piece before the first STOP; *TEXT moves behind it. */
static bool piece(bytes *text, char stop, bytes *out)
{
    const uint8_t *p = text->size > 0 ? memchr(text->data, stop, text->size) : NULL;
    if (p == NULL)
        return false;
    size_t n = (size_t)(p - text->data);
    *out = bytes_make(text->data, n);
    *text = bytes_make(p + 1, text->size - n - 1);
    return true;
}

static bool decimal(bytes text, unsigned *out)
{
    unsigned v = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || v > ROUNDS_MAX)
            return false;
        v = v * 10 + (unsigned)(text.data[i] - '0');
    }
    *out = v;
    return text.size > 0 && v > 0 && v <= ROUNDS_MAX;
}

static bool key(bytes text, uint8_t out[CRYPT_SHA256_BYTES])
{
    size_t n = 0;
    return crypt_unbase64(text, out, CRYPT_SHA256_BYTES, &n) && n == CRYPT_SHA256_BYTES;
}

bool fe_scram_parse(bytes text, struct fe_scram_verifier *out)
{
    bytes name, rounds, salt, stored;
    size_t n = 0;
    memset(out, 0, sizeof *out);
    if (!piece(&text, '$', &name) || !bytes_eq(name, BYTES_LIT(FE_SCRAM_NAME)) ||
        !piece(&text, ':', &rounds) || !decimal(rounds, &out->rounds) ||
        !piece(&text, '$', &salt) || !crypt_unbase64(salt, out->salt, sizeof out->salt, &n) ||
        n == 0 || !piece(&text, ':', &stored) || !key(stored, out->stored_key) ||
        !key(text, out->server_key))
        return false;
    out->salt_size = (unsigned)n;
    return true;
}

void fe_scram_derive(bytes password, bytes salt, unsigned rounds, struct fe_scram_verifier *out)
{
    uint8_t salted[CRYPT_SHA256_BYTES], client[CRYPT_SHA256_BYTES];
    ASSERT(salt.size <= sizeof out->salt);
    memset(out, 0, sizeof *out);
    out->rounds = rounds;
    out->salt_size = (unsigned)salt.size;
    memcpy(out->salt, salt.data, salt.size);
    crypt_pbkdf2_sha256(password, salt, rounds, salted);
    crypt_hmac_sha256(bytes_make(salted, sizeof salted), BYTES_LIT("Client Key"), client);
    crypt_sha256(bytes_make(client, sizeof client), out->stored_key);
    crypt_hmac_sha256(bytes_make(salted, sizeof salted), BYTES_LIT("Server Key"), out->server_key);
    crypt_forget(salted, sizeof salted);
    crypt_forget(client, sizeof client);
}

void fe_scram_text(const struct fe_scram_verifier *v, char out[FE_SCRAM_TEXT_MAX])
{
    char salt[CRYPT_BASE64_SIZE(FE_SCRAM_SALT_MAX) + 1];
    char stored[CRYPT_BASE64_SIZE(CRYPT_SHA256_BYTES) + 1], server[sizeof stored];
    crypt_base64(bytes_make(v->salt, v->salt_size), salt);
    crypt_base64(bytes_make(v->stored_key, sizeof v->stored_key), stored);
    crypt_base64(bytes_make(v->server_key, sizeof v->server_key), server);
    int n = snprintf(out, FE_SCRAM_TEXT_MAX, FE_SCRAM_NAME "$%u:%s$%s:%s", v->rounds, salt, stored,
                     server);
    ASSERT(n > 0 && n < (int)FE_SCRAM_TEXT_MAX);
}

void fe_scram_mock(bytes user, bytes secret, unsigned rounds, struct fe_scram_verifier *out)
{
    uint8_t hash[CRYPT_SHA256_BYTES];
    memset(out, 0, sizeof *out);
    crypt_hmac_sha256(secret, user, hash);
    out->rounds = rounds;
    out->salt_size = FE_SCRAM_SALT_BYTES;
    memcpy(out->salt, hash, FE_SCRAM_SALT_BYTES);
}

/* -- messages ---------------------------------------------------------------------------------- */

static status malformed(struct err *err, const char *detail)
{
    err_set(err, ST_PROTOCOL, "malformed SCRAM message");
    err_detail(err, "%s", detail);
    return ST_PROTOCOL;
}

/* The value of attribute NAME at the front of IN, which moves behind the comma. */
static NODISCARD status attribute(bytes *in, char name, bytes *out, struct err *err)
{
    if (in->size < 2 || in->data[0] != (uint8_t)name || in->data[1] != '=') {
        err_set(err, ST_PROTOCOL, "malformed SCRAM message");
        err_detail(err, "Expected attribute \"%c\".", name);
        return ST_PROTOCOL;
    }
    bytes left = bytes_make(in->data + 2, in->size - 2);
    if (piece(&left, ',', out)) {
        *in = left;
    } else {
        *out = left;
        *in = BYTES_EMPTY;
    }
    return ST_OK;
}

static bool printable(bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < 0x21 || text.data[i] > 0x7e || text.data[i] == ',')
            return false;
    return text.size > 0;
}

static NODISCARD status read_flag(struct fe_scram *x, bytes *in, struct err *err)
{
    bytes flag;
    if (!piece(in, ',', &flag) || flag.size == 0)
        return malformed(err, "Comma expected behind the channel-binding flag.");
    x->flag = (char)flag.data[0];
    if ((x->flag == 'n' || x->flag == 'y') && flag.size == 1) {
        if (x->plus)
            return malformed(err, "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message "
                                  "does not include channel binding data.");
        if (x->flag == 'n' || x->end_point_size == 0)
            return ST_OK;
        err_set_state(err, ST_PROTOCOL, "28000", "SCRAM channel binding negotiation error");
        err_detail(err, "The client supports SCRAM channel binding but thinks the server does not. "
                        " However, this server does support channel binding.");
        return ST_PROTOCOL;
    }
    if (x->flag != 'p' || flag.size < 2 || flag.data[1] != '=')
        return malformed(err, "Unexpected channel-binding flag.");
    if (!x->plus)
        return malformed(err, "The client selected SCRAM-SHA-256 without channel binding, but the "
                              "SCRAM message includes channel binding data.");
    if (!bytes_eq(bytes_make(flag.data + 2, flag.size - 2), BYTES_LIT(CHANNEL)))
        return err_set(err, ST_PROTOCOL, "unsupported SCRAM channel-binding type");
    return ST_OK;
}

static NODISCARD status client_first(struct fe_scram *x, bytes in, struct err *err)
{
    bytes identity, user, nonce;
    ST_TRY(read_flag(x, &in, err));
    if (!piece(&in, ',', &identity))
        return malformed(err, "Comma expected behind the authorization identity.");
    if (identity.size > 0 && identity.data[0] == 'a')
        return err_set(err, ST_UNSUPPORTED,
                       "client uses authorization identity, but it is not supported");
    if (identity.size > 0)
        return malformed(err, "Unexpected attribute in client-first-message.");
    memcpy(x->client_first_bare, in.data, in.size);
    x->client_first_bare[in.size] = '\0';
    if (in.size > 0 && in.data[0] == 'm')
        return err_set(err, ST_UNSUPPORTED, "client requires an unsupported SCRAM extension");
    ST_TRY(attribute(&in, 'n', &user, err));
    ST_TRY(attribute(&in, 'r', &nonce, err));
    if (!printable(nonce))
        return err_set(err, ST_PROTOCOL, "non-printable characters in SCRAM nonce");
    snprintf(x->nonce, sizeof x->nonce, "%.*s%s", (int)nonce.size, (const char *)nonce.data,
             x->own_nonce);
    return ST_OK;
}

static void server_first(struct fe_scram *x, struct obuf *out)
{
    char salt[CRYPT_BASE64_SIZE(FE_SCRAM_SALT_MAX) + 1];
    crypt_base64(bytes_make(x->verifier.salt, x->verifier.salt_size), salt);
    int n = snprintf(x->server_first, sizeof x->server_first, "r=%s,s=%s,i=%u", x->nonce, salt,
                     x->verifier.rounds);
    ASSERT(n > 0 && (size_t)n < sizeof x->server_first);
    obuf_put(out, x->server_first, (size_t)n);
}

static NODISCARD status check_binding(const struct fe_scram *x, bytes given, struct err *err)
{
    static const char header[] = "p=" CHANNEL ",,";
    uint8_t raw[sizeof header - 1 + FE_SCRAM_END_POINT_MAX];
    char expected[CRYPT_BASE64_SIZE(sizeof raw) + 1];
    if (x->flag == 'p') {
        memcpy(raw, header, sizeof header - 1);
        memcpy(raw + sizeof header - 1, x->end_point, x->end_point_size);
        crypt_base64(bytes_make(raw, sizeof header - 1 + x->end_point_size), expected);
    } else {
        crypt_base64(x->flag == 'y' ? BYTES_LIT("y,,") : BYTES_LIT("n,,"), expected);
    }
    if (bytes_eq(given, bytes_str(expected)))
        return ST_OK;
    if (x->flag == 'p')
        return err_set_state(err, ST_PROTOCOL, "28000", "SCRAM channel binding check failed");
    return err_set(err, ST_PROTOCOL,
                   "unexpected SCRAM channel-binding attribute in client-final-message");
}

/* The proof is the last attribute; BARE is what comes before it. */
static bool split_proof(bytes in, bytes *bare, bytes *proof)
{
    for (size_t i = in.size; i-- > 0;) {
        if (in.data[i] != ',')
            continue;
        *bare = bytes_make(in.data, i);
        *proof = bytes_make(in.data + i + 1, in.size - i - 1);
        return proof->size >= 2 && proof->data[0] == 'p' && proof->data[1] == '=';
    }
    return false;
}

/* HMAC of "client-first-bare,server-first,client-final-without-proof". */
static void sign(const struct fe_scram *x, const uint8_t k[CRYPT_SHA256_BYTES], bytes bare,
                 uint8_t out[CRYPT_SHA256_BYTES])
{
    struct obuf text;
    obuf_init(&text);
    obuf_put(&text, x->client_first_bare, strlen(x->client_first_bare));
    obuf_u8(&text, ',');
    obuf_put(&text, x->server_first, strlen(x->server_first));
    obuf_u8(&text, ',');
    obuf_put(&text, bare.data, bare.size);
    crypt_hmac_sha256(bytes_make(k, CRYPT_SHA256_BYTES), bytes_make(text.data, text.size), out);
    obuf_fini(&text);
}

static bool proof_is_right(const struct fe_scram *x, bytes bare,
                           const uint8_t proof[CRYPT_SHA256_BYTES])
{
    uint8_t signature[CRYPT_SHA256_BYTES], client[CRYPT_SHA256_BYTES], stored[CRYPT_SHA256_BYTES];
    sign(x, x->verifier.stored_key, bare, signature);
    for (unsigned i = 0; i < CRYPT_SHA256_BYTES; i++)
        client[i] = proof[i] ^ signature[i];
    crypt_sha256(bytes_make(client, sizeof client), stored);
    bool same = crypt_equal(stored, x->verifier.stored_key, sizeof stored);
    crypt_forget(client, sizeof client);
    return same && !x->doomed;
}

static NODISCARD status client_final(struct fe_scram *x, bytes in, struct obuf *out,
                                     struct err *err)
{
    bytes bare, text, binding, nonce;
    uint8_t proof[CRYPT_SHA256_BYTES], signature[CRYPT_SHA256_BYTES];
    char shown[CRYPT_BASE64_SIZE(CRYPT_SHA256_BYTES) + 1];
    if (!split_proof(in, &bare, &text))
        return malformed(err, "Expected attribute \"p\" at the end of client-final-message.");
    bytes left = bare;
    ST_TRY(attribute(&left, 'c', &binding, err));
    ST_TRY(check_binding(x, binding, err));
    ST_TRY(attribute(&left, 'r', &nonce, err));
    if (!bytes_eq(nonce, bytes_str(x->nonce))) {
        err_set(err, ST_PROTOCOL, "invalid SCRAM response");
        err_detail(err, "Nonce does not match.");
        return ST_PROTOCOL;
    }
    if (!key(bytes_make(text.data + 2, text.size - 2), proof))
        return malformed(err, "Malformed proof in client-final-message.");
    if (!proof_is_right(x, bare, proof))
        return ST_DENIED;
    sign(x, x->verifier.server_key, bare, signature);
    crypt_base64(bytes_make(signature, sizeof signature), shown);
    obuf_put(out, "v=", 2);
    obuf_put(out, shown, strlen(shown));
    return ST_OK;
}

status fe_scram_step(struct fe_scram *x, bytes in, struct obuf *out, struct err *err)
{
    ASSERT(x->state != FE_SCRAM_OVER);
    if (in.size == 0)
        return malformed(err, "The message is empty.");
    if (in.size > FE_SCRAM_MESSAGE_MAX)
        return malformed(err, "The message is too long.");
    if (memchr(in.data, 0, in.size) != NULL)
        return malformed(err, "Message length does not match input length.");
    if (x->state == FE_SCRAM_FIRST) {
        ST_TRY(client_first(x, in, err));
        server_first(x, out);
        x->state = FE_SCRAM_FINAL;
        return ST_OK;
    }
    ST_TRY(client_final(x, in, out, err));
    x->state = FE_SCRAM_OVER;
    return ST_OK;
}
