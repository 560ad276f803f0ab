/* frontend/hba: which rule decides, and what a wrong one is told. */
#include "lib/test.h"

#include "frontend/hba.h"
#include <arpa/inet.h>

static struct sockaddr_storage address(const char *text)
{
    struct sockaddr_storage out = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
        out.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)
        out.ss_family = AF_INET6;
    else
        fail_msg("no address: %s", text);
    return out;
}

static enum fe_method ask(const struct fe_hba *h, const char *database, const char *user,
                          const char *from, bool tls)
{
    struct sockaddr_storage peer = address(from);
    struct fe_hba_request r = {database, user, &peer, tls};
    return fe_hba_find(h, &r);
}

static void the_first_rule_that_fits_decides(void **state)
{
    static const char *const rules[] = {
        "local all all trust",
        "host all root 127.0.0.1/32 trust",
        "host all root all reject",
        "hostnossl all all 0.0.0.0/0 reject",
        "hostssl a,\"all\" app,\"x y\" 10.0.0.0 255.255.0.0 cert",
        "hostssl sameuser all 10.1.0.0/16 scram-sha-256",
        "host metadb all fd00::/8 scram-sha-256",
    };
    static const struct {
        const char *database, *user, *from;
        bool tls;
        enum fe_method method;
    } cases[] = {
        {"metadb", "root", "127.0.0.1", false, FE_METHOD_TRUST},
        {"metadb", "root", "127.0.0.2", false, FE_METHOD_REJECT},
        {"metadb", "root", "::ffff:127.0.0.1", false, FE_METHOD_TRUST},
        {"metadb", "app", "10.0.1.2", false, FE_METHOD_REJECT},
        {"a", "app", "10.0.1.2", true, FE_METHOD_CERT},
        {"a", "x y", "10.0.1.2", true, FE_METHOD_CERT},
        {"all", "app", "10.0.1.2", true, FE_METHOD_CERT},
        {"b", "app", "10.0.1.2", true, FE_METHOD_NONE},
        {"a", "app", "10.1.1.2", true, FE_METHOD_NONE},
        {"app", "app", "10.1.1.2", true, FE_METHOD_SCRAM},
        {"metadb", "app", "fd12::1", false, FE_METHOD_SCRAM},
        {"metadb", "app", "fe80::1", true, FE_METHOD_NONE},
    };
    struct fe_hba h;
    struct err err;
    (void)state;
    fe_hba_init(&h);
    for (unsigned i = 0; i < sizeof rules / sizeof *rules; i++)
        assert_int_equal(fe_hba_add(&h, rules[i], "file:1", &err), ST_OK);
    assert_true(fe_hba_needs_certificates(&h));
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ask(&h, cases[i].database, cases[i].user, cases[i].from, cases[i].tls),
                         cases[i].method);
    fe_hba_fini(&h);
}

static void a_wrong_rule_is_told_where_it_is(void **state)
{
    static const char *const wrong[] = {
        "",
        "host",
        "host all all trust",
        "hots all all all trust",
        "host all all 127.0.0.1 trust",
        "host all all 127.0.0.1/33 trust",
        "host all all 127.0.0.1/ trust",
        "host all all ::1/129 trust",
        "host all all localhost trust",
        "host all all 1.2.3.4 ffff:: trust",
        "host all all all md5",
        "host all all all cert",
        "host all +group all trust",
        "host all \"a all trust",
        "host all all all trust map=x",
        "host a b c d e f g h i",
    };
    struct fe_hba h;
    struct err err;
    (void)state;
    fe_hba_init(&h);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        err_clear(&err);
        assert_int_equal(fe_hba_add(&h, wrong[i], "x.conf:7", &err), ST_INVALID);
        assert_int_equal(strncmp(err.message, "x.conf:7: ", 10), 0);
    }
    assert_int_equal(h.count, 0);
    fe_hba_fini(&h);
}

static void loopback_is_known(void **state)
{
    static const char *const yes[] = {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"};
    static const char *const no[] = {"128.0.0.1", "10.0.0.1", "::2",
                                     "::",        "fe80::1",  "::ffff:10.0.0.1"};
    (void)state;
    for (unsigned i = 0; i < sizeof yes / sizeof *yes; i++) {
        struct sockaddr_storage a = address(yes[i]);
        assert_true(fe_address_is_loopback(&a));
    }
    for (unsigned i = 0; i < sizeof no / sizeof *no; i++) {
        struct sockaddr_storage a = address(no[i]);
        assert_false(fe_address_is_loopback(&a));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rule_that_fits_decides),
        cmocka_unit_test(a_wrong_rule_is_told_where_it_is),
        cmocka_unit_test(loopback_is_known),
    };
    return cmocka_run_group_tests_name("frontend_hba", tests, NULL, NULL);
}
