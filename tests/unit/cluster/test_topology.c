/* The list of nodes: what is taken, and what a wrong one is told. */
#include "lib/test.h"

#include "cluster/topology.h"

static void a_list_is_read(void **state)
{
    struct cl_topology t;
    struct err err = {0};
    (void)state;
    assert_int_equal(
        cl_topology_parse(" 1=10.0.0.1:7433/10.0.0.1:7432\n\t2=[::1]:1/[::1]:2  ", 2, &t, &err),
        ST_OK);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.self, 2);
    assert_string_equal(cl_topology_find(&t, 2)->peers, "[::1]:1");
    assert_string_equal(cl_topology_find(&t, 1)->clients, "10.0.0.1:7432");
    assert_null(cl_topology_find(&t, 3));
    assert_int_equal(cl_topology_parse("", 0, &t, &err), ST_OK);
    assert_int_equal(t.count, 0);
}

static void a_wrong_list_is_told_why(void **state)
{
    static const struct {
        const char *list;
        uint64_t self;
        const char *told;
    } all[] = {
        {"10.0.0.1:7433", 1, "\"10.0.0.1:7433\" is not a node"},
        {"1=10.0.0.1:7433", 1, "is not a node"},
        {"0=10.0.0.1:1/10.0.0.1:2", 1, "is not a node"},
        {"-1=10.0.0.1:1/10.0.0.1:2", 1, "is not a node"},
        {"1=db1:7433/10.0.0.1:2", 1, "\"db1:7433\" is not a numeric address"},
        {"1=10.0.0.1:1/10.0.0.1", 1, "\"10.0.0.1\" is not host:port"},
        {"1=10.0.0.1:1/10.0.0.1:1", 1, "for nodes and for clients"},
        {"1=10.0.0.1:1/10.0.0.1:2 1=10.0.0.2:1/10.0.0.2:2", 1, "node 1 is twice"},
        {"1=10.0.0.1:1/10.0.0.1:2 2=10.0.0.1:1/10.0.0.2:2", 1, "share address 10.0.0.1:1"},
        {"1=10.0.0.1:1/10.0.0.1:2 2=10.0.0.1:2/10.0.0.2:2", 1, "share address 10.0.0.1:2"},
        {"1=10.0.0.1:1/10.0.0.1:2", 0, "does not say which"},
        {"1=10.0.0.1:1/10.0.0.1:2", 4, "node 4 is not in"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct cl_topology t;
        struct err err = {0};
        assert_int_equal(cl_topology_parse(all[i].list, all[i].self, &t, &err), ST_INVALID);
        if (strstr(err.message, all[i].told) == NULL)
            fail_msg("%s: %s", all[i].list, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read),
        cmocka_unit_test(a_wrong_list_is_told_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
