/*
 * frontend/scram.h — the server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, 7677).
 *
 * A state machine from message to message: no connection, no clock, no randomness of its own.
 * A verifier is what is kept of a password; its text is PostgreSQL's,
 * SCRAM-SHA-256$rounds:salt$stored key:server key, the last three in base64.
 *
 *   FIRST ──client-first──> FINAL ──client-final──> OVER
 */
#ifndef FRONTEND_SCRAM_H
#define FRONTEND_SCRAM_H

#include "base/buf.h"
#include "base/crypt.h"
#include "base/err.h"

#define FE_SCRAM_NAME "SCRAM-SHA-256"
#define FE_SCRAM_PLUS_NAME "SCRAM-SHA-256-PLUS"
#define FE_SCRAM_SALT_MAX 64u
#define FE_SCRAM_SALT_BYTES 16u
/* Of the server's part of the nonce. */
#define FE_SCRAM_NONCE_MAX 64u
/* The largest message that is looked at. */
#define FE_SCRAM_MESSAGE_MAX 2048u
#define FE_SCRAM_TEXT_MAX 256u
#define FE_SCRAM_END_POINT_MAX 64u

struct fe_scram_verifier {
    unsigned rounds, salt_size;
    uint8_t salt[FE_SCRAM_SALT_MAX];
    uint8_t stored_key[CRYPT_SHA256_BYTES], server_key[CRYPT_SHA256_BYTES];
};

/* From a verifier's text. False: it is none. */
bool fe_scram_parse(bytes text, struct fe_scram_verifier *out);
/* Takes a third of a microsecond a round. */
void fe_scram_derive(bytes password, bytes salt, unsigned rounds, struct fe_scram_verifier *out);
void fe_scram_text(const struct fe_scram_verifier *v, char out[FE_SCRAM_TEXT_MAX]);
/* What a user who does not exist, or has no password, is asked with: always the same for one name,
 * and no password fits. */
void fe_scram_mock(bytes user, bytes secret, unsigned rounds, struct fe_scram_verifier *out);

struct fe_scram {
    /* set by the caller */
    struct fe_scram_verifier verifier;
    bool doomed;                               /* the verifier is a mock: nothing is right */
    bool plus;                                 /* the mechanism chosen is SCRAM-SHA-256-PLUS */
    uint8_t end_point[FE_SCRAM_END_POINT_MAX]; /* tls-server-end-point */
    unsigned end_point_size;                   /* 0: PLUS was not offered */
    char own_nonce[FE_SCRAM_NONCE_MAX];        /* fresh, random, printable without a comma */
    /* its own */
    enum { FE_SCRAM_FIRST, FE_SCRAM_FINAL, FE_SCRAM_OVER } state;
    char flag; /* n, y, p */
    char client_first_bare[FE_SCRAM_MESSAGE_MAX + 1];
    char server_first[FE_SCRAM_MESSAGE_MAX + 512];
    char nonce[FE_SCRAM_MESSAGE_MAX + FE_SCRAM_NONCE_MAX];
};

/* Answers IN. ST_OK: OUT is the next message; in state OVER it is the server's proof, and the
 * client is who it says. ST_DENIED: the proof is wrong. ST_PROTOCOL, ST_UNSUPPORTED: ERR says how
 * the message is wrong, in PostgreSQL's words. */
NODISCARD status fe_scram_step(struct fe_scram *x, bytes in, struct obuf *out, struct err *err);

#endif
