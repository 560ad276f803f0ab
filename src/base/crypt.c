/*
 * base/crypt.c — the door to OpenSSL's primitives (its connections: base/tls.c).
 *
 * Base64 is our own: OpenSSL's accepts blanks, and takes a missing byte for a zero.
 */
#include "base/crypt.h"
#include "base/assert.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

void crypt_sha256(bytes in, uint8_t out[CRYPT_SHA256_BYTES])
{
    int ok = EVP_Digest(in.data, in.size, out, NULL, EVP_sha256(), NULL);
    ASSERT(ok == 1);
}

void crypt_hmac_sha256(bytes key, bytes in, uint8_t out[CRYPT_SHA256_BYTES])
{
    unsigned size = CRYPT_SHA256_BYTES;
    ASSERT(key.size <= INT32_MAX);
    const uint8_t *p = HMAC(EVP_sha256(), key.size > 0 ? key.data : (const uint8_t *)"",
                            (int)key.size, in.data, in.size, out, &size);
    ASSERT(p != NULL);
}

void crypt_pbkdf2_sha256(bytes password, bytes salt, unsigned rounds,
                         uint8_t out[CRYPT_SHA256_BYTES])
{
    ASSERT(rounds > 0);
    ASSERT(password.size <= INT32_MAX);
    int ok = PKCS5_PBKDF2_HMAC(password.size > 0 ? (const char *)password.data : "",
                               (int)password.size, salt.data, (int)salt.size, (int)rounds,
                               EVP_sha256(), CRYPT_SHA256_BYTES, out);
    ASSERT(ok == 1);
}

void crypt_random(void *out, size_t n)
{
    ASSERT(n <= INT32_MAX);
    int ok = RAND_bytes(out, (int)n);
    ASSERT(ok == 1);
}

bool crypt_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

void crypt_forget(void *p, size_t n)
{
    OPENSSL_cleanse(p, n);
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void crypt_base64(bytes in, char *out)
{
    for (size_t i = 0; i < in.size; i += 3) {
        size_t left = in.size - i;
        uint32_t v = (uint32_t)in.data[i] << 16;
        v |= left > 1 ? (uint32_t)in.data[i + 1] << 8 : 0;
        v |= left > 2 ? in.data[i + 2] : 0;
        *out++ = digits[v >> 18];
        *out++ = digits[v >> 12 & 63];
        *out++ = left > 1 ? digits[v >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[v & 63] : '=';
    }
    *out = '\0';
}

/* The value of a digit; 64: none. */
static uint32_t value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26u;
    if (c >= '0' && c <= '9')
        return c - '0' + 52u;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool crypt_unbase64(bytes in, uint8_t *out, size_t room, size_t *size)
{
    size_t n = 0;
    if (in.size % 4 != 0)
        return false;
    for (size_t i = 0; i < in.size; i += 4) {
        const uint8_t *p = in.data + i;
        bool last = i + 4 == in.size;
        unsigned pad = last && p[3] == '=' ? (p[2] == '=' ? 2u : 1u) : 0;
        uint32_t v = 0;
        for (unsigned k = 0; k < 4; k++) {
            uint32_t d = k >= 4 - pad ? 0 : value_of(p[k]);
            if (d == 64)
                return false;
            v = v << 6 | d;
        }
        /* Bits that no byte takes up must be zero: one text for one value. */
        if ((pad == 1 && (v & 0xff) != 0) || (pad == 2 && (v & 0xffff) != 0) ||
            n + (3 - pad) > room)
            return false;
        for (unsigned k = 0; k < 3 - pad; k++)
            out[n++] = (uint8_t)(v >> (16 - 8 * k));
    }
    *size = n;
    return true;
}
