/* Nodes that lack what the log no longer holds get the state itself, whatever happens meanwhile. */
#include "base/assert.h"
#include "base/fault.h"
#include "cluster/snapshot.h"
#include "cluster_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define VALUE_BYTES 4096u

static void start(struct cluster *c)
{
    cx_init(c);
    for (unsigned i = 0; i < CX_NODES; i++) {
        fx_set(&c->nodes[i], "raft.keep", "16kB");
        fx_set(&c->nodes[i], "mvcc.retention", "20ms");
    }
}

static void put_many(struct cluster *c, unsigned from, unsigned to)
{
    static char value[VALUE_BYTES + 1];
    char key[16];
    for (unsigned i = from; i < to; i++) {
        memset(value, 'a' + (int)(i % 26), VALUE_BYTES);
        snprintf(key, sizeof key, "k%u", i);
        assert_int_equal(cx_put(c, key, value), ST_OK);
    }
}

static void tick_all(void *arg)
{
    struct cl_node *n = arg;
    for (unsigned i = 0; i < CL_SHARDS; i++)
        cl_shard_tick(n->shards[i]);
}

/* A follower that was restarted learns with the next entry what is committed; so each shard gets
 * one. */
static void settle(struct cluster *c)
{
    struct fixture *leader = &c->nodes[cx_leader(c)];
    fx_on_reactor(leader, tick_all, leader->node);
    cx_settle(c);
}

struct ask {
    struct cl_node *node;
    struct cl_snapshot_counters counters;
    uint64_t receiving_from; /* a node; 0: from none */
};

static void count_receiving(void *arg, const struct cl_snapshot_transfer *t)
{
    struct ask *a = arg;
    if (!t->sends && strcmp(t->state, "streaming") == 0 && t->bytes > 0)
        a->receiving_from = t->node;
}

static void ask(void *arg)
{
    struct ask *a = arg;
    a->receiving_from = 0;
    a->counters = cl_snapshots_counters(a->node->snapshots);
    cl_snapshots_each(a->node->snapshots, count_receiving, a);
}

static struct ask look_at(struct cluster *c, unsigned i)
{
    struct ask a = {.node = c->nodes[i].node};
    fx_on_reactor(&c->nodes[i], ask, &a);
    return a;
}

/* Two nodes write what the third, which is not there, will no longer find in their logs. The third
 * is neither of the two that are returned. */
static unsigned leave_one_behind(struct cluster *c, unsigned rows)
{
    put_many(c, 0, 10);
    unsigned away = (cx_leader(c) + 1) % CX_NODES;
    settle(c);
    cx_close(c, away);
    put_many(c, 5, rows);
    return away;
}

static void one_that_was_away_comes_back(void **state)
{
    struct cluster c;
    UNUSED(state);
    start(&c);
    cx_open_all(&c);
    cx_acquaint(&c);
    unsigned away = leave_one_behind(&c, 100);
    cx_open(&c, away);
    settle(&c);
    assert_true(look_at(&c, away).counters.installed > 0);
    put_many(&c, 90, 120);
    settle(&c);
    cx_close(&c, away); /* and what it has is its own: it starts from it */
    put_many(&c, 120, 122);
    cx_open(&c, away);
    settle(&c);
    assert_int_equal(look_at(&c, away).counters.installed, 0);
    cx_fini(&c);
}

/* It has met the others, so that it may vote, and knows nothing of what they hold. */
static void one_that_has_nothing_gets_all(void **state)
{
    struct cluster c;
    UNUSED(state);
    start(&c);
    cx_open_all(&c);
    cx_acquaint(&c);
    cx_close(&c, 2);
    put_many(&c, 0, 100);
    cx_open(&c, 2);
    settle(&c);
    assert_true(look_at(&c, 2).counters.installed > 0);
    for (unsigned i = 0; i < 2; i++) /* it can lead: with what it has */
        cx_close(&c, i);
    cx_open(&c, 0);
    put_many(&c, 100, 110);
    cx_open(&c, 1);
    settle(&c);
    cx_fini(&c);
}

/* What comes to node AWAY is not taken in until all faults are disarmed. Returns which node sends
 * to it. */
static unsigned open_and_hold(struct cluster *c, unsigned away)
{
    fault_arm("kv.load.part", "hold", 1);
    cx_open(c, away);
    for (;;) {
        uint64_t from = look_at(c, away).receiving_from;
        if (from != 0 && fault_fired())
            return (unsigned)from - 1;
        usleep(1000);
    }
}

static void the_leader_goes_in_the_middle(void **state)
{
    struct cluster c;
    UNUSED(state);
#ifndef METADB_FAULTS
    skip();
#endif
    start(&c);
    cx_open_all(&c);
    cx_acquaint(&c);
    unsigned away = leave_one_behind(&c, 200);
    unsigned leader = open_and_hold(&c, away);
    cx_close(&c, leader);
    fault_disarm();
    put_many(&c, 200, 230);
    settle(&c);
    assert_true(look_at(&c, away).counters.failed > 0);
    assert_true(look_at(&c, away).counters.installed > 0);
    cx_open(&c, leader);
    settle(&c);
    cx_fini(&c);
}

static void the_receiver_goes_in_the_middle(void **state)
{
    struct cluster c;
    UNUSED(state);
#ifndef METADB_FAULTS
    skip();
#endif
    start(&c);
    cx_open_all(&c);
    cx_acquaint(&c);
    unsigned away = leave_one_behind(&c, 200);
    (void)open_and_hold(&c, away);
    fx_close_while(&c.nodes[away], fault_disarm);
    char dir[96];
    snprintf(dir, sizeof dir, "%s/snapshot/%u", c.nodes[away].dir, CL_KV + 1);
    assert_int_not_equal(access(dir, F_OK), 0); /* its files are gone */
    put_many(&c, 200, 230);
    cx_open(&c, away);
    settle(&c);
    assert_true(look_at(&c, away).counters.installed > 0);
    cx_fini(&c);
}

/* SITE fails once at the sender or the receiver; the next attempt is as good as the first. */
static void fails_once(const char *site)
{
    struct cluster c;
    start(&c);
    cx_open_all(&c);
    cx_acquaint(&c);
    unsigned away = leave_one_behind(&c, 100);
    fault_arm(site, "error", 1);
    cx_open(&c, away);
    settle(&c);
    assert_true(fault_fired());
    fault_disarm();
    assert_true(look_at(&c, away).counters.installed > 0);
    uint64_t failed = 0;
    for (unsigned i = 0; i < CX_NODES; i++) {
        struct cl_snapshot_counters got = look_at(&c, i).counters;
        failed += got.failed + got.send_failed;
    }
    assert_true(failed > 0);
    cx_fini(&c);
}

static void a_failure_harms_nothing(void **state)
{
    static const char *const sites[] = {
        "kv.dump.part",    "kv.load.new",      "kv.load.part",          "kv.load.seal",
        "kv.load.install", "store.rocks.load", "store.rocks.load_full", "store.rocks.ingest"};
    UNUSED(state);
#ifndef METADB_FAULTS
    skip();
#endif
    for (unsigned i = 0; i < ARRAY_LEN(sites); i++)
        fails_once(sites[i]);
}

struct fence {
    struct cl_node *node;
    bool fenced;
};

static void look_at_fences(void *arg)
{
    struct fence *f = arg;
    for (unsigned i = 0; i < CL_SHARDS; i++)
        f->fenced |= f->node->shards[i]->fenced != ST_OK;
}

static bool is_fenced(struct cluster *c, unsigned i)
{
    struct fence f = {.node = c->nodes[i].node};
    fx_on_reactor(&c->nodes[i], look_at_fences, &f);
    return f.fenced;
}

/* The store has the new state, and neither memory nor the log hears of it. Only that shard of that
 * node stops; a restart finds the state, and writes what the log lacks. */
static void a_start_goes_on_where_the_log_was_not_told(void **state)
{
    struct cluster c;
    UNUSED(state);
#ifndef METADB_FAULTS
    skip();
#endif
    start(&c);
    cx_open_all(&c);
    cx_acquaint(&c);
    unsigned away = leave_one_behind(&c, 100);
    fault_arm("kv.load.installed", "error", 1);
    cx_open(&c, away);
    while (!is_fenced(&c, away))
        usleep(1000);
    fault_disarm();
    put_many(&c, 100, 105); /* the others go on */
    for (unsigned i = 0; i < 3; i++) {
        cx_close(&c, away);
        put_many(&c, 105 + i, 106 + i);
        cx_open(&c, away);
        settle(&c);
    }
    cx_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_was_away_comes_back),
        cmocka_unit_test(one_that_has_nothing_gets_all),
        cmocka_unit_test(the_leader_goes_in_the_middle),
        cmocka_unit_test(the_receiver_goes_in_the_middle),
        cmocka_unit_test(a_failure_harms_nothing),
        cmocka_unit_test(a_start_goes_on_where_the_log_was_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
