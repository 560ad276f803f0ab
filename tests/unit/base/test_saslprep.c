/* base/saslprep: the examples of RFC 4013, and what stays as it is. */
#include "lib/test.h"

#include "base/saslprep.h"

static void examples_of_the_rfc(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"I\xc2\xadX", "IX"},   /* soft hyphen goes */
        {"user", "user"},       /* nothing to do */
        {"USER", "USER"},       /* case stays */
        {"\xc2\xaa", "a"},      /* feminine ordinal */
        {"\xe2\x85\xa8", "IX"}, /* roman nine */
        {"a\xc2\xa0"
         "b",
         "a b"},                                  /* a blank of another kind */
        {"\x07", "\x07"},                         /* forbidden: as it is */
        {"\xd8\xa7\x31", "\xd8\xa7\x31"},         /* both directions: as it is */
        {"\xc2\xad", "\xc2\xad"},                 /* nothing would be left: as it is */
        {"\xff\xfe", "\xff\xfe"},                 /* no UTF-8: as it is */
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"}, /* younger than Unicode 3.2: as it is */
        {"", ""},
        {"\xef\xb7\xba\xef\xb7\xba", NULL}, /* grows eleven times */
    };
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct obuf o;
        obuf_init(&o);
        saslprep(cases[i].in, &o);
        if (cases[i].out != NULL)
            assert_bytes(bytes_make(o.data, o.size), cases[i].out);
        else
            assert_int_equal(o.size, 66);
        obuf_fini(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(examples_of_the_rfc)};
    return cmocka_run_group_tests_name("base_saslprep", tests, NULL, NULL);
}
