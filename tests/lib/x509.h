/* lib/x509.h — keys and certificates for tests, made on the spot. */
#ifndef TESTS_LIB_X509_H
#define TESTS_LIB_X509_H

#include "lib/test.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>

static inline void write_key(const char *path, EVP_PKEY *k, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    assert_int_equal(PEM_write_PrivateKey(f, k, NULL, NULL, 0, NULL, NULL), 1);
    fclose(f);
}

/* K's, for NAME (of NAME_SIZE bytes, -1 to its end), signed BY the key of ISSUER; NULL: an
 * authority that signs itself. */
static inline X509 *certificate(EVP_PKEY *k, const char *name, int name_size, X509 *issuer,
                                EVP_PKEY *by)
{
    X509 *x = X509_new();
    X509_NAME *subject = X509_get_subject_name(x);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), issuer != NULL ? 2 : 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, name_size,
                               -1, 0);
    X509_set_issuer_name(x, issuer != NULL ? X509_get_subject_name(issuer) : subject);
    X509_set_pubkey(x, k);
    if (issuer == NULL) {
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "CA:TRUE");
        X509_add_ext(x, e, -1);
        X509_EXTENSION_free(e);
    }
    assert_true(X509_sign(x, by, EVP_sha256()) > 0);
    return x;
}

static inline void write_certificate(const char *path, X509 *x)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_X509(f, x), 1);
    fclose(f);
}

#endif
