/*
 * base/crypt.h — hashes, keys from passwords, random bytes, comparisons that tell nothing.
 *
 * Pure functions, any thread. None of them fails: what OpenSSL refuses here is out of memory.
 */
#ifndef BASE_CRYPT_H
#define BASE_CRYPT_H

#include "base/bytes.h"

#define CRYPT_SHA256_BYTES 32u
/* Characters of N bytes in base64, without a NUL. */
#define CRYPT_BASE64_SIZE(n) (((n) + 2) / 3 * 4)

void crypt_sha256(bytes in, uint8_t out[CRYPT_SHA256_BYTES]);
void crypt_hmac_sha256(bytes key, bytes in, uint8_t out[CRYPT_SHA256_BYTES]);
/* PBKDF2 with HMAC-SHA-256: takes a third of a microsecond a round. */
void crypt_pbkdf2_sha256(bytes password, bytes salt, unsigned rounds,
                         uint8_t out[CRYPT_SHA256_BYTES]);
/* Fit for keys. */
void crypt_random(void *out, size_t n);
/* Takes the same time wherever the first difference is. */
bool crypt_equal(const void *a, const void *b, size_t n);
/* Overwrites, and is not optimised away. */
void crypt_forget(void *p, size_t n);

/* Base64 of RFC 4648 with padding. OUT has CRYPT_BASE64_SIZE(in.size) + 1 characters. */
void crypt_base64(bytes in, char *out);
/* False: not base64, or more than ROOM bytes. */
bool crypt_unbase64(bytes in, uint8_t *out, size_t room, size_t *size);

#endif
