/* Three nodes: they elect, replicate, fail over and come back. */
#include "base/assert.h"
#include "cluster_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void put_many(struct cluster *c, unsigned from, unsigned to)
{
    char key[16], value[16];
    for (unsigned i = from; i < to; i++) {
        snprintf(key, sizeof key, "k%u", i);
        snprintf(value, sizeof value, "v%u", i);
        assert_int_equal(cx_put(c, key, value), ST_OK);
    }
}

static void check_many(struct cluster *c, unsigned from, unsigned to)
{
    char key[16], value[16], got[16];
    for (unsigned i = from; i < to; i++) {
        snprintf(key, sizeof key, "k%u", i);
        snprintf(value, sizeof value, "v%u", i);
        assert_int_equal(cx_get(c, key, got, sizeof got), ST_END);
        assert_string_equal(got, value);
    }
}

static void writes_reach_all_nodes(void **state)
{
    UNUSED(state);
    struct cluster c;
    cx_init(&c);
    cx_open_all(&c);
    put_many(&c, 0, 50);
    check_many(&c, 0, 50);
    cx_settle(&c);
    cx_fini(&c);
}

static void others_refuse_and_name_the_leader(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    cx_init(&c);
    cx_open_all(&c);
    unsigned leader = cx_leader(&c), other = (leader + 1) % CX_NODES;
    cx_settle(&c);
    fx_client_init(&x, &c.nodes[other]);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "a", "1")), ST_NOT_LEADER);
    assert_int_equal(fx_lookup_kv(&x, "a"), ST_NOT_LEADER);
    fx_client_fini(&x);
    assert_int_equal(cl_shard_leader(c.nodes[other].node->shards[CL_KV]), leader + 1);
    cx_fini(&c);
}

static void another_leads_when_the_leader_stops(void **state)
{
    UNUSED(state);
    struct cluster c;
    cx_init(&c);
    cx_open_all(&c);
    put_many(&c, 0, 20);
    unsigned old = cx_leader(&c);
    cx_close(&c, old);
    assert_int_not_equal(cx_leader(&c), old);
    check_many(&c, 0, 20);
    put_many(&c, 20, 40);
    cx_open(&c, old);
    check_many(&c, 0, 40);
    cx_settle(&c);
    cx_fini(&c);
}

static void all_restart(void **state)
{
    UNUSED(state);
    struct cluster c;
    cx_init(&c);
    cx_open_all(&c);
    put_many(&c, 0, 20);
    for (unsigned i = 0; i < CX_NODES; i++)
        cx_close(&c, i);
    cx_open_all(&c);
    check_many(&c, 0, 20);
    put_many(&c, 20, 30);
    cx_settle(&c);
    cx_fini(&c);
}

static void one_node_is_no_majority(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    cx_init(&c);
    cx_open_all(&c);
    put_many(&c, 0, 5);
    unsigned leader = cx_leader(&c);
    for (unsigned i = 0; i < CX_NODES; i++) {
        if (i != leader)
            cx_close(&c, i);
    }
    fx_client_init(&x, &c.nodes[leader]);
    status st = fx_op(&x, fx_kv_put(&x.arena, "lonely", "1")); /* not replicated: never ST_OK */
    assert_true(st == ST_OUTCOME_UNKNOWN || st == ST_NOT_LEADER);
    fx_client_fini(&x);
    for (unsigned i = 0; i < CX_NODES; i++) {
        if (i != leader)
            cx_open(&c, i);
    }
    put_many(&c, 5, 10);
    check_many(&c, 0, 10);
    cx_settle(&c);
    cx_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_reach_all_nodes),
        cmocka_unit_test(others_refuse_and_name_the_leader),
        cmocka_unit_test(another_leads_when_the_leader_stops),
        cmocka_unit_test(all_restart),
        cmocka_unit_test(one_node_is_no_majority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
