/* base/crypt: vectors of RFC 4231, RFC 7914, RFC 4648; what is not base64. */
#include "lib/test.h"

#include "base/crypt.h"

static void hex(const uint8_t *p, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        snprintf(out + 2 * i, 3, "%02x", p[i]);
}

static void hashes_as_the_rfcs_say(void **state)
{
    uint8_t out[CRYPT_SHA256_BYTES];
    char text[2 * sizeof out + 1];
    (void)state;
    crypt_sha256(BYTES_LIT("abc"), out);
    hex(out, sizeof out, text);
    assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    crypt_hmac_sha256(BYTES_LIT("Jefe"), BYTES_LIT("what do ya want for nothing?"), out);
    hex(out, sizeof out, text);
    assert_string_equal(text, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    crypt_pbkdf2_sha256(BYTES_LIT("passwd"), BYTES_LIT("salt"), 1, out);
    hex(out, sizeof out, text);
    assert_string_equal(text, "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc");
    crypt_hmac_sha256(BYTES_EMPTY, BYTES_EMPTY, out);
    hex(out, sizeof out, text);
    assert_string_equal(text, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void base64_goes_both_ways(void **state)
{
    static const struct {
        const char *plain, *coded;
    } pairs[] = {{"", ""},
                 {"f", "Zg=="},
                 {"fo", "Zm8="},
                 {"foo", "Zm9v"},
                 {"foob", "Zm9vYg=="},
                 {"fooba", "Zm9vYmE="},
                 {"foobar", "Zm9vYmFy"}};
    (void)state;
    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char coded[32];
        uint8_t plain[8];
        size_t n = 99;
        crypt_base64(bytes_str(pairs[i].plain), coded);
        assert_string_equal(coded, pairs[i].coded);
        assert_true(crypt_unbase64(bytes_str(coded), plain, sizeof plain, &n));
        assert_bytes(bytes_make(plain, n), pairs[i].plain);
    }
}

static void what_is_not_base64_is_refused(void **state)
{
    static const char *const bad[] = {"Zg",   "Zg=",    "Z===",     "====", "Zh==", "Zm9=",
                                      "Zm 9", "Zm9v\n", "Zg==Zg==", "=m9v", "Zm9*", "Z=9v"};
    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t plain[16];
        size_t n;
        assert_false(crypt_unbase64(bytes_str(bad[i]), plain, sizeof plain, &n));
    }
    uint8_t small[2];
    size_t n;
    assert_false(crypt_unbase64(BYTES_LIT("Zm9v"), small, sizeof small, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_as_the_rfcs_say),
        cmocka_unit_test(base64_goes_both_ways),
        cmocka_unit_test(what_is_not_base64_is_refused),
    };
    return cmocka_run_group_tests_name("base_crypt", tests, NULL, NULL);
}
