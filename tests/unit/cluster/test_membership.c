/* Who belongs to a shard: replicas are removed and added while it serves, over restarts, on disks
 * that were lost. */
#include "base/assert.h"
#include "cluster/membership.h"
#include "cluster_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void start(struct cluster *c)
{
    cx_init(c);
    for (unsigned i = 0; i < CX_NODES; i++)
        fx_set(&c->nodes[i], "mvcc.retention", "20ms");
}

static void put_many(struct cluster *c, unsigned from, unsigned to)
{
    char key[16];
    for (unsigned i = from; i < to; i++) {
        snprintf(key, sizeof key, "k%u", i);
        assert_int_equal(cx_put(c, key, key), ST_OK);
    }
}

static void check_many(struct cluster *c, unsigned from, unsigned to)
{
    char key[16], got[16];
    for (unsigned i = from; i < to; i++) {
        snprintf(key, sizeof key, "k%u", i);
        assert_int_equal(cx_get(c, key, got, sizeof got), ST_END);
        assert_string_equal(got, key);
    }
}

static status call(struct cluster *c, unsigned at, const char *function, unsigned shard,
                   unsigned node, struct err *err)
{
    struct fx_client x;
    const struct kv_datum args[] = {kv_int(shard), kv_int(node)};
    fx_client_init(&x, &c->nodes[at]);
    status st = fx_call_with(&x, function, args);
    *err = x.call.err;
    fx_client_fini(&x);
    return st;
}

/* Asks whoever leads until it is so: an election in between leaves the outcome open, and then the
 * second one is told that it is so already. */
static void change(struct cluster *c, const char *function, unsigned shard, unsigned node)
{
    struct err err;
    for (;;) {
        status st = call(c, cx_leader(c), function, shard, node, &err);
        if (st == ST_END || st == ST_OK ||
            (st == ST_INVALID && strncmp(err.sqlstate, "427", 3) == 0))
            return;
        if (st != ST_NOT_LEADER && st != ST_OUTCOME_UNKNOWN && st != ST_LOCKED)
            print_error("%s: %s\n", function, err.message);
        assert_true(st == ST_NOT_LEADER || st == ST_OUTCOME_UNKNOWN || st == ST_LOCKED);
        usleep(5000);
    }
}

static void change_all(struct cluster *c, const char *function, unsigned i)
{
    for (unsigned s = 1; s <= CL_SHARDS; s++)
        change(c, function, s, i + 1);
}

static void flush_leader(struct cluster *c)
{
    struct fx_client x;
    fx_client_init(&x, &c->nodes[cx_leader(c)]);
    status st = fx_call(&x, "flush");
    assert_true(st == ST_OK || st == ST_END || st == ST_NOT_LEADER);
    fx_client_fini(&x);
}

struct counted {
    unsigned voters, others, left_over;
};

static void count_replica(void *arg, const struct kv_datum *v)
{
    struct counted *n = arg;
    n->voters += bytes_eq(v[5].b, BYTES_LIT("voter"));
    n->others += !bytes_eq(v[5].b, BYTES_LIT("voter"));
    n->left_over += bytes_eq(v[6].b, BYTES_LIT("left over"));
}

static struct counted replicas_at(struct cluster *c, unsigned i)
{
    struct counted n = {0};
    fx_view(&c->nodes[i], "replicas", count_replica, &n);
    return n;
}

static void await_left_over(struct cluster *c, unsigned i)
{
    while (replicas_at(c, i).left_over < CL_SHARDS)
        usleep(5000);
}

static void restart(struct cluster *c, unsigned i)
{
    cx_close(c, i);
    cx_open(c, i);
}

static void a_removed_replica_is_left_over_and_comes_back(void **state)
{
    UNUSED(state);
    struct cluster c;
    start(&c);
    cx_open_all(&c);
    put_many(&c, 0, 20);
    cx_settle(&c);
    unsigned out = (cx_leader(&c) + 1) % CX_NODES;
    change_all(&c, "remove_replica", out);
    await_left_over(&c, out);
    unsigned leader = cx_leader(&c);
    assert_int_not_equal(leader, out);
    assert_int_equal(replicas_at(&c, leader).voters, 2 * CL_SHARDS);
    put_many(&c, 20, 40);
    cx_close(&c, out); /* two of two are a majority */
    put_many(&c, 40, 50);
    cx_open(&c, out);
    change_all(&c, "add_replica", out);
    cx_settle(&c); /* all three have the same state */
    assert_int_equal(replicas_at(&c, cx_leader(&c)).voters, 3 * CL_SHARDS);
    assert_int_equal(replicas_at(&c, out).left_over, 0);
    check_many(&c, 0, 50);
    cx_fini(&c);
}

/* The setting lists three nodes all the time: the log, and after a flush the store, know better. */
static void the_members_outlive_restarts(void **state)
{
    UNUSED(state);
    struct cluster c;
    start(&c);
    cx_open_all(&c);
    put_many(&c, 0, 10);
    cx_acquaint(&c); /* who restarts before that may not vote without all the others */
    cx_settle(&c);
    unsigned out = (cx_leader(&c) + 1) % CX_NODES;
    change_all(&c, "remove_replica", out);
    cx_close(&c, out);
    for (unsigned round = 0; round < 3; round++) {
        put_many(&c, 10 * round, 10 * round + 10);
        if (round == 1)
            flush_leader(&c);
        for (unsigned i = 0; i < CX_NODES; i++) {
            if (i != out)
                restart(&c, i);
        }
        assert_int_equal(replicas_at(&c, cx_leader(&c)).voters, 2 * CL_SHARDS);
    }
    cx_open(&c, out); /* it still thinks that it belongs */
    await_left_over(&c, out);
    change_all(&c, "add_replica", out);
    cx_settle(&c);
    flush_leader(&c);
    for (unsigned i = 0; i < CX_NODES; i++)
        restart(&c, i);
    assert_int_equal(replicas_at(&c, cx_leader(&c)).voters, 3 * CL_SHARDS);
    check_many(&c, 0, 30);
    cx_settle(&c);
    cx_fini(&c);
}

/* The new disk is another replica: what the old one has voted and acknowledged is not its own. */
static void a_wiped_node_joins_as_another_replica(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct err err;
    start(&c);
    cx_open_all(&c);
    put_many(&c, 0, 20);
    cx_acquaint(&c);
    cx_settle(&c);
    unsigned out = (cx_leader(&c) + 1) % CX_NODES;
    uint64_t before = c.nodes[out].node->replica;
    cx_close(&c, out);
    fx_wipe(&c.nodes[out]);
    fx_set(&c.nodes[out], "cluster.join", "on");
    cx_open(&c, out);
    assert_true(c.nodes[out].node->replica != before);
    put_many(&c, 20, 30);
    status st;
    do { /* until the others have met it */
        st = call(&c, cx_leader(&c), "add_replica", 1, out + 1, &err);
    } while (st != ST_LOCKED || strstr(err.message, "on a disk that it lost") == NULL);
    assert_string_equal(err.sqlstate, "55000");
    change_all(&c, "remove_replica", out);
    change_all(&c, "add_replica", out);
    cx_settle(&c);
    put_many(&c, 30, 40);
    for (unsigned i = 0; i < CX_NODES; i++)
        restart(&c, i);
    cx_close(&c, cx_leader(&c)); /* the new one is half of the majority now */
    check_many(&c, 0, 40);
    put_many(&c, 40, 50);
    cx_fini(&c);
}

static void one_node_grows_to_three(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    char list[512];
    start(&c);
    snprintf(list, sizeof list, "%s", config_string(c.nodes[0].config, "cluster.nodes"));
    fx_set(&c.nodes[0], "cluster.nodes", "");
    fx_open(&c.nodes[0]);
    fx_client_init(&x, &c.nodes[0]);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k0", "k0")), ST_OK);
    fx_client_fini(&x);
    fx_close(&c.nodes[0]);
    fx_set(&c.nodes[0], "cluster.nodes", list);
    for (unsigned i = 1; i < CX_NODES; i++)
        fx_set(&c.nodes[i], "cluster.join", "on");
    cx_open_all(&c);
    put_many(&c, 1, 20);
    change_all(&c, "add_replica", 1);
    change_all(&c, "add_replica", 2);
    cx_settle(&c);
    assert_int_equal(replicas_at(&c, cx_leader(&c)).voters, 3 * CL_SHARDS);
    cx_close(&c, 0);
    check_many(&c, 0, 20);
    put_many(&c, 20, 30);
    cx_fini(&c);
}

static void shrunk_to_one_it_goes_on_alone(void **state)
{
    UNUSED(state);
    struct cluster c;
    start(&c);
    cx_open_all(&c);
    put_many(&c, 0, 10);
    cx_acquaint(&c); /* who restarts before that may not vote without all the others */
    cx_settle(&c);
    unsigned last = cx_leader(&c);
    for (unsigned i = 0; i < CX_NODES; i++) {
        if (i == last)
            continue;
        change_all(&c, "remove_replica", i);
        cx_close(&c, i);
    }
    put_many(&c, 10, 20);
    usleep(1500000); /* longer than a lease and the read bound ahead */
    check_many(&c, 0, 20);
    restart(&c, last);
    check_many(&c, 0, 20);
    cx_close(&c, last);
    fx_set(&c.nodes[last], "cluster.nodes", "");
    fx_open(&c.nodes[last]);
    check_many(&c, 0, 20);
    cx_fini(&c);
}

#define REFUSED(c, at, function, shard, node, want, state)                                         \
    do {                                                                                           \
        assert_int_equal(call(c, at, function, shard, node, &err), want);                          \
        assert_string_equal(err.sqlstate, state);                                                  \
    } while (0)

static void changes_that_cannot_be_are_refused(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct err err;
    start(&c);
    cx_open_all(&c);
    put_many(&c, 0, 5);
    cx_settle(&c);
    unsigned leader = cx_leader(&c), other = (leader + 1) % CX_NODES,
             third = (leader + 2) % CX_NODES;
    REFUSED(&c, leader, "add_replica", 0, 1, ST_INVALID, "22023");
    REFUSED(&c, leader, "add_replica", 1, 0, ST_INVALID, "22023");
    REFUSED(&c, leader, "add_replica", 1, 9, ST_INVALID, "42704");
    REFUSED(&c, leader, "add_replica", 1, other + 1, ST_INVALID, "42710");
    REFUSED(&c, leader, "remove_replica", 1, 9, ST_INVALID, "42704");
    REFUSED(&c, leader, "remove_replica", 1, leader + 1, ST_LOCKED, "55000");
    REFUSED(&c, other, "add_replica", 1, third + 1, ST_INVALID, "42710"); /* asked at any node */
    cx_close(&c, other);
    while (call(&c, cx_leader(&c), "remove_replica", 1, third + 1, &err) == ST_NOT_LEADER ||
           strstr(err.message, "majority") == NULL)
        usleep(5000); /* until it is noticed that one is gone: then the other one may not go */
    assert_string_equal(err.sqlstate, "55000");
    put_many(&c, 5, 10);
    check_many(&c, 0, 10);
    cx_fini(&c);
}

/* A directory that a list of other nodes made is not opened without it. */
static void a_member_of_several_does_not_open_alone(void **state)
{
    UNUSED(state);
    struct cluster c;
    start(&c);
    cx_open_all(&c);
    put_many(&c, 0, 5);
    cx_settle(&c);
    for (unsigned i = 0; i < CX_NODES; i++)
        cx_close(&c, i);
    fx_set(&c.nodes[0], "cluster.nodes", "");
    assert_int_equal(fx_try_open(&c.nodes[0]), ST_INVALID);
    assert_non_null(strstr(c.nodes[0].err.message, "replicas on other nodes"));
    cx_fini(&c);
}

int main(void)
{
    const char *only = getenv("ONLY");
    if (only != NULL)
        cmocka_set_test_filter(only);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_removed_replica_is_left_over_and_comes_back),
        cmocka_unit_test(the_members_outlive_restarts),
        cmocka_unit_test(a_wiped_node_joins_as_another_replica),
        cmocka_unit_test(one_node_grows_to_three),
        cmocka_unit_test(shrunk_to_one_it_goes_on_alone),
        cmocka_unit_test(changes_that_cannot_be_are_refused),
        cmocka_unit_test(a_member_of_several_does_not_open_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
