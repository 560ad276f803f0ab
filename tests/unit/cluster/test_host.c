/* Three nodes: they elect, replicate, fail over and come back. */
#include "base/assert.h"
#include "base/log.h"
#include "cluster/others.h"
#include "cluster/roles.h"
#include "cluster/transport.h"
#include "cluster_fixture.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

/* -- roles ------------------------------------------------------------------------------------- */

static void roles_opened(void *arg, status st)
{
    UNUSED(arg);
    UNUSED(st);
}

static void open_roles(void *arg)
{
    cl_roles_open(arg, roles_opened, NULL);
}

static void close_roles(void *arg)
{
    cl_roles_close(arg);
}

struct change {
    struct cl_role_change change;
    struct cl_node *node;
    status st;
    sem_t done;
};

static void change_done(struct cl_role_change *c, status st)
{
    struct change *w = CONTAINER_OF(c, struct change, change);
    w->st = st;
    sem_post(&w->done);
}

static void change_start(void *arg)
{
    struct change *w = arg;
    cl_role_change(w->node, &w->change);
}

static status create_role(struct fixture *f, const char *name)
{
    struct change w = {.node = f->node,
                       .change = {.kind = CL_ROLE_CREATE,
                                  .done = change_done,
                                  .role = {.login = true, .connections = -1}}};
    snprintf(w.change.role.name, sizeof w.change.role.name, "%s", name);
    sem_init(&w.done, 0, 0);
    fx_on_reactor(f, change_start, &w);
    sem_wait(&w.done);
    sem_destroy(&w.done);
    return w.st;
}

static void await_role(struct cluster *c, const char *name)
{
    for (unsigned i = 0; i < CX_NODES; i++) {
        struct cl_role role;
        while (cl_role_find(c->nodes[i].node, bytes_str(name), &role) != ST_OK)
            usleep(5000);
        assert_true(role.login);
    }
}

static void roles_are_what_is_applied_on_every_node(void **state)
{
    UNUSED(state);
    struct cluster c;
    cx_init(&c);
    cx_open_all(&c);
    for (unsigned i = 0; i < CX_NODES; i++)
        fx_on_reactor(&c.nodes[i], open_roles, c.nodes[i].node);
    await_role(&c, CL_ROLE_FIRST);
    unsigned leader = cx_leader(&c), other = (leader + 1) % CX_NODES;
    for (unsigned i = 0; i < CX_NODES; i++) {
        while (!cl_roles_known(c.nodes[i].node))
            usleep(5000);
        assert_memory_equal(cl_roles_secret(c.nodes[i].node), cl_roles_secret(c.nodes[0].node),
                            CL_ROLES_SECRET_BYTES);
    }
    assert_int_equal(create_role(&c.nodes[leader], "guest"), ST_OK);
    await_role(&c, "guest");
    assert_int_equal(create_role(&c.nodes[other], "late"), ST_OK);
    assert_int_equal(create_role(&c.nodes[leader], "late"), ST_EXISTS);
    await_role(&c, "late");
    for (unsigned i = 0; i < CX_NODES; i++)
        fx_on_reactor(&c.nodes[i], close_roles, c.nodes[i].node);
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

/* -- what a node remembers -------------------------------------------------------------------- */

struct memory {
    struct cl_node *node;
    bool votes, knows_all, leads;
    hlc_ts floor_at_open, floor; /* floor: the highest of all shards */
    uint64_t refusals;
};

static void count_refusals(void *arg, const struct cl_peer_stats *s)
{
    struct memory *m = arg;
    m->refusals += s->refusals;
}

static void look_memory(void *arg)
{
    struct memory *m = arg;
    struct cl_node *n = m->node;
    m->votes = cl_others_may_vote(n->others);
    m->knows_all = cx_knows_all(n);
    m->floor_at_open = cl_others_floor(n->others);
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        hlc_ts floor = raft_read_floor(n->shards[i]->raft);
        m->floor = floor > m->floor ? floor : m->floor;
        m->leads |= raft_role(n->shards[i]->raft) == RAFT_LEADER;
    }
    cl_transport_each(n->transport, count_refusals, m);
}

static struct memory memory_of(struct cluster *c, unsigned i)
{
    struct memory m = {.node = c->nodes[i].node};
    fx_on_reactor(&c->nodes[i], look_memory, &m);
    return m;
}

/* Two of three have acknowledged; one of them loses its disk, the other is down. The third lacks
 * nothing here, but it might: no leader may come of it and the empty one. */
static void a_wiped_node_does_not_vote(void **state)
{
    UNUSED(state);
    struct cluster c;
    cx_init(&c);
    cx_open_all(&c);
    put_many(&c, 0, 20);
    cx_acquaint(&c);
    unsigned wiped = cx_leader(&c), down = (wiped + 1) % CX_NODES, left = (wiped + 2) % CX_NODES;
    cx_close(&c, wiped);
    fx_wipe(&c.nodes[wiped]);
    cx_open(&c, wiped);
    put_many(&c, 20, 30); /* the other two go on */
    cx_close(&c, down);
    while (memory_of(&c, left).leads) /* it learns that it has no majority */
        usleep(5000);
    uint64_t before = memory_of(&c, wiped).refusals;
    while (memory_of(&c, wiped).refusals < before + 3) {
        assert_false(memory_of(&c, wiped).votes);
        assert_false(memory_of(&c, wiped).leads);
        assert_false(memory_of(&c, left).leads);
        usleep(5000);
    }
    cx_open(&c, down);
    check_many(&c, 0, 30);
    assert_false(memory_of(&c, wiped).votes);
    cx_fini(&c);
}

/* The wall clock of a node may have fallen back meanwhile: what it has promised has not. */
static void the_read_floor_survives_a_restart(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct memory before[CX_NODES];
    cx_init(&c);
    cx_open_all(&c);
    put_many(&c, 0, 5);
    cx_acquaint(&c);
    cx_settle(&c);
    for (unsigned i = 0; i < CX_NODES; i++) {
        before[i] = memory_of(&c, i);
        assert_true(before[i].floor > 0);
        cx_close(&c, i);
    }
    fx_clock_jump_wall(-3600000000);
    cx_open_all(&c);
    for (unsigned i = 0; i < CX_NODES; i++) {
        struct memory m = memory_of(&c, i);
        assert_true(m.floor_at_open >= before[i].floor);
        assert_true(m.floor >= before[i].floor);
        assert_true(m.votes && m.knows_all);
    }
    put_many(&c, 5, 10);
    check_many(&c, 0, 10);
    cx_fini(&c);
}

static void a_damaged_memory_is_refused(void **state)
{
    UNUSED(state);
    struct cluster c;
    char path[128];
    cx_init(&c);
    cx_open(&c, 0);
    cx_close(&c, 0);
    snprintf(path, sizeof path, "%s/others", c.nodes[0].dir);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, 30, SEEK_SET);
    int old = fgetc(f);
    fseek(f, 30, SEEK_SET);
    fputc(old == '1' ? '2' : '1', f);
    fclose(f);
    assert_int_equal(fx_try_open(&c.nodes[0]), ST_CORRUPT);
    cx_fini(&c);
}

/* -- what an operator asks for and sees -------------------------------------------------------- */

static status transfer(struct cluster *c, unsigned at, int64_t shard, int64_t node, struct err *err)
{
    struct fx_client x;
    const struct kv_datum args[] = {kv_int(shard), kv_int(node)};
    fx_client_init(&x, &c->nodes[at]);
    status st = fx_call_with(&x, "transfer_leader", args);
    *err = x.call.err;
    fx_client_fini(&x);
    return st;
}

/* Every shard follows that of meta; all that was written is there. */
static void leadership_moves_when_asked(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct err err;
    cx_init(&c);
    cx_open_all(&c);
    put_many(&c, 0, 20);
    for (unsigned i = 0; i < 2 * CX_NODES; i++) {
        unsigned leader = cx_leader(&c), to = (leader + 1) % CX_NODES;
        cx_settle(&c);
        status st = transfer(&c, leader, CL_META + 1, to + 1, &err);
        /* The others' election timers may have been faster: then somebody else leads. */
        assert_true(st == ST_OK || st == ST_LOCKED);
        if (st == ST_OK)
            assert_int_equal(cx_leader(&c), to);
        check_many(&c, 0, 20);
    }
    cx_fini(&c);
}

static void transfers_that_cannot_be_are_refused(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct err err;
    cx_init(&c);
    cx_open_all(&c);
    unsigned leader = cx_leader(&c), other = (leader + 1) % CX_NODES;
    cx_settle(&c);
    assert_int_equal(transfer(&c, leader, 0, 1, &err), ST_INVALID);
    assert_int_equal(transfer(&c, leader, CL_SHARDS + 1, 1, &err), ST_INVALID);
    assert_int_equal(transfer(&c, leader, 1, 9, &err), ST_INVALID);
    assert_string_equal(err.sqlstate, "22023");
    assert_int_equal(transfer(&c, leader, 1, -1, &err), ST_INVALID);
    assert_int_equal(transfer(&c, leader, 1, leader + 1, &err), ST_OK); /* it does already */
    assert_int_equal(transfer(&c, other, 1, 9, &err), ST_INVALID);      /* the leader says so */
    cx_fini(&c);
}

struct elected {
    struct cl_node *node;
    uint64_t asked, alone;
};

static void look_elected(void *arg)
{
    struct elected *l = arg;
    l->asked += l->node->counters.led_asked;
    l->alone += l->node->counters.led_alone;
}

static struct elected elected_at_others(struct cluster *c, unsigned without)
{
    struct elected l = {0};
    for (unsigned i = 0; i < CX_NODES; i++) {
        l.node = c->nodes[i].node;
        if (i != without)
            fx_on_reactor(&c->nodes[i], look_elected, &l);
    }
    return l;
}

/* Nobody waits for a timeout: every shard is led because the old leader wished so. */
static void a_leader_that_stops_hands_over(void **state)
{
    UNUSED(state);
    struct cluster c;
    cx_init(&c);
    for (unsigned i = 0; i < CX_NODES; i++) {
        fx_set(&c.nodes[i], "raft.election", "10s");
        fx_set(&c.nodes[i], "raft.hand_over", "60s");
    }
    cx_open_all(&c);
    put_many(&c, 0, 20);
    cx_acquaint(&c);
    for (unsigned round = 0; round < 2; round++) {
        unsigned leader = cx_leader(&c);
        cx_settle(&c);
        struct elected before = elected_at_others(&c, leader);
        cx_close(&c, leader);
        unsigned next = cx_leader(&c);
        assert_int_not_equal(next, leader);
        struct elected after = elected_at_others(&c, leader);
        assert_true(after.asked >= before.asked + CL_SHARDS);
        assert_int_equal(after.alone, before.alone);
        put_many(&c, 20 + 10 * round, 30 + 10 * round);
        cx_open(&c, leader);
    }
    check_many(&c, 0, 40);
    cx_settle(&c);
    cx_fini(&c);
}

struct seen {
    unsigned rows, led, leaders, streaming;
    int64_t oldest;
};

static void see_node(void *arg, const struct kv_datum *v)
{
    struct seen *s = arg;
    s->rows++;
    s->led += (unsigned)v[12].i;
}

static void see_replica(void *arg, const struct kv_datum *v)
{
    struct seen *s = arg;
    s->rows++;
    s->leaders += (unsigned)bytes_eq(v[4].b, BYTES_LIT("leader"));
    s->streaming += (unsigned)bytes_eq(v[6].b, BYTES_LIT("streaming")) && v[13].i == 0;
}

static void views_show_all_nodes_and_replicas(void **state)
{
    UNUSED(state);
    struct cluster c;
    cx_init(&c);
    cx_open_all(&c);
    put_many(&c, 0, 20);
    unsigned leader = cx_leader(&c);
    cx_settle(&c);
    for (unsigned i = 0; i < CX_NODES; i++) {
        struct seen nodes = {0}, replicas = {0};
        fx_view(&c.nodes[i], "nodes", see_node, &nodes);
        assert_int_equal(nodes.rows, CX_NODES);
        assert_int_equal(nodes.led, CL_SHARDS);
        fx_view(&c.nodes[i], "replicas", see_replica, &replicas);
        assert_int_equal(replicas.rows, i == leader ? CX_NODES * CL_SHARDS : CL_SHARDS);
        assert_int_equal(replicas.leaders, i == leader ? CL_SHARDS : 0);
        assert_int_equal(replicas.streaming, i == leader ? (CX_NODES - 1) * CL_SHARDS : 0);
    }
    cx_fini(&c);
}

static void add_stage(void *arg, const struct kv_datum *v)
{
    UNUSED(v);
    ++*(unsigned *)arg;
}

static void stages_explain_the_total(void **state)
{
    UNUSED(state);
    struct cluster c;
    unsigned rows = 0;
    uint64_t sum = 0;
    cx_init(&c);
    cx_open_all(&c);
    unsigned leader = cx_leader(&c);
    put_many(&c, 0, 100);
    cx_settle(&c);
    struct histogram stages[CL_STAGES];
    fx_peek(&c.nodes[leader], c.nodes[leader].node->stages, stages, sizeof stages);
    for (unsigned i = 0; i < CL_STAGE_TOTAL; i++) {
        assert_int_equal(stages[i].count, stages[CL_STAGE_TOTAL].count);
        sum += stages[i].sum;
    }
    uint64_t total = stages[CL_STAGE_TOTAL].sum;
    assert_true(stages[CL_STAGE_TOTAL].count > 0);
    assert_true(sum <= total + total / 50 && total <= sum + sum / 50);
    fx_view(&c.nodes[leader], "stages", add_stage, &rows);
    assert_int_equal(rows, CL_STAGES);
    cx_fini(&c);
}

/* -- sleep ------------------------------------------------------------------------------------- */

struct sleepers {
    struct cl_node *node;
    unsigned asleep;
};

static void count_asleep(void *arg)
{
    struct sleepers *x = arg;
    x->asleep = 0;
    for (unsigned i = 0; i < CL_SHARDS; i++)
        x->asleep += raft_next_tick_ms(x->node->shards[i]->raft) == UINT64_MAX;
}

static unsigned asleep(struct cluster *c, unsigned i)
{
    struct sleepers x = {.node = c->nodes[i].node};
    fx_on_reactor(&c->nodes[i], count_asleep, &x);
    return x.asleep;
}

static void await_sleep(struct cluster *c)
{
    for (unsigned i = 0; i < CX_NODES; i++) {
        while (c->nodes[i].node != NULL && asleep(c, i) < CL_SHARDS)
            usleep(5000);
    }
}

static void sleepy(struct cluster *c)
{
    cx_init(c);
    for (unsigned i = 0; i < CX_NODES; i++)
        fx_set(&c->nodes[i], "raft.quiesce", "200ms");
    cx_open_all(c);
    put_many(c, 0, 20);
    cx_acquaint(c);
    await_sleep(c);
}

/* Long after the last lease of a heartbeat: only beacons can have kept it. */
static void sleeping_shards_are_served_without_being_woken(void **state)
{
    UNUSED(state);
    struct cluster c;
    sleepy(&c);
    unsigned leader = cx_leader(&c);
    usleep(2000000);
    await_sleep(&c); /* sinks and flushes may have had a last word */
    check_many(&c, 0, 20);
    assert_int_equal(cx_leader(&c), leader);
    assert_int_equal(asleep(&c, leader), CL_SHARDS);
    put_many(&c, 20, 21);
    assert_true(asleep(&c, leader) < CL_SHARDS);
    check_many(&c, 0, 21);
    cx_settle(&c);
    cx_fini(&c);
}

/* The others find out by the connection: nobody has a timer for a shard that sleeps. */
static void sleepers_elect_another_when_their_leader_is_gone(void **state)
{
    UNUSED(state);
    struct cluster c;
    sleepy(&c);
    unsigned old = cx_leader(&c);
    cx_close(&c, old);
    assert_int_not_equal(cx_leader(&c), old);
    check_many(&c, 0, 20);
    await_sleep(&c); /* although one is not there */
    check_many(&c, 0, 20);
    cx_open(&c, old);
    put_many(&c, 20, 30);
    await_sleep(&c);
    cx_settle(&c);
    cx_fini(&c);
}

struct led {
    struct cl_node *node;
    uint64_t leader;
};

static void look_leader(void *arg)
{
    struct led *l = arg;
    l->leader = cl_shard_leader(l->node->shards[CL_KV]);
}

static void lead_no_more(void *arg)
{
    struct cl_node *n = arg;
    log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
    cl_shard_fence(n->shards[CL_KV], ST_CORRUPT);
}

/* Its process lives and sends beacons: they say so. */
static void a_sleeping_leader_that_is_fenced_is_replaced(void **state)
{
    UNUSED(state);
    struct cluster c;
    sleepy(&c);
    unsigned old = cx_leader(&c);
    fx_on_reactor(&c.nodes[old], lead_no_more, c.nodes[old].node);
    struct led led = {.leader = old + 1};
    for (unsigned i = (old + 1) % CX_NODES; led.leader == 0 || led.leader == old + 1;) {
        led.node = c.nodes[i].node;
        fx_on_reactor(&c.nodes[i], look_leader, &led);
        usleep(5000);
    }
    cx_fini(&c);
}

int main(void)
{
    const char *only = getenv("ONLY");
    if (only != NULL)
        cmocka_set_test_filter(only);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_reach_all_nodes),
        cmocka_unit_test(roles_are_what_is_applied_on_every_node),
        cmocka_unit_test(another_leads_when_the_leader_stops),
        cmocka_unit_test(all_restart),
        cmocka_unit_test(a_wiped_node_does_not_vote),
        cmocka_unit_test(the_read_floor_survives_a_restart),
        cmocka_unit_test(a_damaged_memory_is_refused),
        cmocka_unit_test(one_node_is_no_majority),
        cmocka_unit_test(leadership_moves_when_asked),
        cmocka_unit_test(transfers_that_cannot_be_are_refused),
        cmocka_unit_test(a_leader_that_stops_hands_over),
        cmocka_unit_test(views_show_all_nodes_and_replicas),
        cmocka_unit_test(stages_explain_the_total),
        cmocka_unit_test(sleeping_shards_are_served_without_being_woken),
        cmocka_unit_test(sleepers_elect_another_when_their_leader_is_gone),
        cmocka_unit_test(a_sleeping_leader_that_is_fenced_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
