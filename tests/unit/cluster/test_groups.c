/* Many groups on three simulated machines: they sleep, wake, and never have two that serve. */
#include "base/assert.h"
#include "base/env_sim.h"
#include "base/log.h"
#include "base/sim_loop.h"
#include "base/sim_net.h"
#include "many_groups.h"
#include "raft/raft_internal.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define GROUPS 40u
#define LOOK_US 5000u
#define SECOND 1000000u

struct side {
    struct env *env;
    struct loop *loop;
    struct cl_topology topology;
    struct many many;
};

struct fixture {
    struct sim_world *world;
    struct sim_net *net;
    struct side sides[MANY_NODES];
    uint64_t served, served_asleep;
};

static void open_side(struct fixture *f, unsigned i)
{
    struct side *s = &f->sides[i];
    struct err err = {0};
    char host[32];
    s->env = env_sim_new(i + 1);
    sim_world_add(f->world, s->env, (int)i * 1000 - 1000);
    s->loop = sim_loop_new(f->world, s->env);
    snprintf(host, sizeof host, "10.0.0.%u", i + 1);
    (void)sim_net_join(f->net, s->env, host);
    s->topology = (struct cl_topology){.self = i + 1, .count = MANY_NODES};
    for (unsigned k = 0; k < MANY_NODES; k++) {
        s->topology.nodes[k].id = k + 1;
        snprintf(s->topology.nodes[k].peers, sizeof s->topology.nodes[k].peers, "10.0.0.%u:7433",
                 k + 1);
    }
    sim_loop_enter(s->loop);
    const struct many_options o = {.env = s->env,
                                   .loop = s->loop,
                                   .topology = &s->topology,
                                   .groups = GROUPS,
                                   .election_ms = 1000,
                                   .heartbeat_ms = 100,
                                   .quiesce_ms = 500};
    assert_int_equal(many_open(&s->many, &o, &err), ST_OK);
}

static struct fixture *fixture_new(uint64_t seed)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
    f->world = sim_world_new(seed);
    f->net = sim_net_new(f->world);
    for (unsigned i = 0; i < MANY_NODES; i++)
        open_side(f, i);
    return f;
}

static void fixture_free(struct fixture *f)
{
    for (unsigned i = 0; i < MANY_NODES; i++) {
        struct side *s = &f->sides[i];
        sim_loop_enter(s->loop);
        many_close(&s->many);
        loop_free(s->loop);
        sim_world_remove(f->world, s->env);
        env_sim_free(s->env);
    }
    sim_net_free(f->net);
    sim_world_free(f->world);
    free(f);
}

/* Two that may serve one group at one moment are what no rule may allow. */
static void look(struct fixture *f)
{
    for (unsigned g = 0; g < GROUPS; g++) {
        unsigned serve = 0;
        for (unsigned i = 0; i < MANY_NODES; i++) {
            const struct many *m = &f->sides[i].many;
            bool serves = many_serves(m, g);
            serve += serves;
            f->served_asleep += serves && m->at[g].group.at == 0;
        }
        f->served += serve;
        assert_true(serve <= 1);
    }
}

static void run_for(struct fixture *f, uint64_t us)
{
    uint64_t end_us = sim_world_now_us(f->world) + us;
    while (sim_world_now_us(f->world) < end_us) {
        uint64_t until_us = sim_world_now_us(f->world) + LOOK_US;
        while (sim_world_step(f->world, until_us))
            ;
        look(f);
    }
}

static bool settled(const struct fixture *f)
{
    unsigned led = 0, awake = 0;
    for (unsigned i = 0; i < MANY_NODES; i++) {
        led += many_led(&f->sides[i].many);
        awake += cl_groups_awake(f->sides[i].many.groups);
    }
    return led == GROUPS && awake == 0;
}

static void settle(struct fixture *f)
{
    for (unsigned i = 0; !settled(f); i++) {
        assert_true(i < 30); /* of virtual time */
        run_for(f, SECOND);
    }
}

static uint64_t steps(const struct fixture *f)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < MANY_NODES; i++)
        sum += f->sides[i].many.steps;
    return sum;
}

static unsigned all_serve(const struct fixture *f)
{
    unsigned serve = 0;
    for (unsigned g = 0; g < GROUPS; g++) {
        for (unsigned i = 0; i < MANY_NODES; i++)
            serve += many_serves(&f->sides[i].many, g);
    }
    return serve;
}

static void propose_to(struct fixture *f, unsigned group)
{
    for (unsigned i = 0; i < MANY_NODES; i++) {
        struct side *s = &f->sides[i];
        sim_loop_enter(s->loop);
        status st = many_propose(&s->many, group);
        assert_true(st == ST_OK || st == ST_NOT_LEADER || st == ST_LOCKED || st == ST_NO_MEMORY);
    }
}

/* A minute of nothing: no step of any group, and all that time each may be read at its leader. */
static void sleepers_cost_nothing_and_are_served(void **state)
{
    UNUSED(state);
    struct fixture *f = fixture_new(1);
    settle(f);
    uint64_t before = steps(f);
    for (unsigned i = 0; i < 60; i++) {
        run_for(f, SECOND);
        assert_int_equal(all_serve(f), GROUPS);
    }
    assert_int_equal(steps(f), before);
    propose_to(f, 3);
    assert_true(steps(f) > before);
    run_for(f, SECOND / 4);
    unsigned awake = 0;
    for (unsigned i = 0; i < MANY_NODES; i++)
        awake += cl_groups_awake(f->sides[i].many.groups);
    assert_int_equal(awake, MANY_NODES); /* that group, and no other */
    settle(f);
    fixture_free(f);
}

/* A machine that nothing is heard of, with everything asleep: others lead within two elections, and
 * no sooner than its leases end. */
static void those_that_a_lost_node_led_wake(void **state)
{
    UNUSED(state);
    struct fixture *f = fixture_new(2);
    settle(f);
    unsigned lost = 0, led = many_led(&f->sides[0].many);
    for (unsigned i = 1; i < MANY_NODES; i++) {
        if (many_led(&f->sides[i].many) > led) {
            lost = i;
            led = many_led(&f->sides[i].many);
        }
    }
    assert_true(led > 0);
    for (unsigned i = 0; i < MANY_NODES; i++) {
        sim_net_block(f->net, lost, i, true);
        sim_net_block(f->net, i, lost, true);
    }
    run_for(f, 3 * SECOND);
    assert_int_equal(all_serve(f), GROUPS);
    for (unsigned g = 0; g < GROUPS; g++)
        assert_false(many_serves(&f->sides[lost].many, g));
    for (unsigned i = 0; i < MANY_NODES; i++) {
        sim_net_block(f->net, lost, i, false);
        sim_net_block(f->net, i, lost, false);
    }
    settle(f);
    assert_int_equal(all_serve(f), GROUPS);
    fixture_free(f);
}

static void mend(struct fixture *f)
{
    for (unsigned a = 0; a < MANY_NODES; a++) {
        for (unsigned b = 0; b < MANY_NODES; b++) {
            sim_net_block(f->net, a, b, false);
            sim_net_delay(f->net, a, b, 50, 500);
        }
    }
}

static void hurt(struct fixture *f, struct sim_random *r)
{
    unsigned a = (unsigned)sim_random_below(r, MANY_NODES);
    unsigned b = (a + 1 + (unsigned)sim_random_below(r, MANY_NODES - 1)) % MANY_NODES;
    switch (sim_random_below(r, 5)) {
    case 0: sim_net_block(f->net, a, b, true); break; /* one way */
    case 1: sim_net_break(f->net, a, b); break;       /* of some only one end learns */
    case 2: sim_net_delay(f->net, a, b, 1000, 700000); break;
    case 3: propose_to(f, (unsigned)sim_random_below(r, GROUPS)); break;
    default: mend(f); break;
    }
}

static void no_two_serve_whatever_the_network_does(void **state)
{
    UNUSED(state);
    uint64_t served = 0, served_asleep = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct fixture *f = fixture_new(100 + seed);
        struct sim_random *r = sim_world_random(f->world);
        settle(f);
        for (unsigned i = 0; i < 120; i++) {
            hurt(f, r);
            run_for(f, SECOND / 4 + sim_random_below(r, SECOND));
        }
        mend(f);
        settle(f);
        run_for(f, SECOND / 2);
        assert_int_equal(all_serve(f), GROUPS);
        served += f->served;
        served_asleep += f->served_asleep;
        fixture_free(f);
    }
    /* Most of the time somebody does, and much of it asleep. */
    assert_true(served > 100000);
    assert_true(served_asleep > served / 10);
}

#ifdef METADB_FAULTS
/* The test of the test: with a core that forgets who counts on its sleep. */
static void a_core_that_votes_in_sleep_is_noticed(void **state)
{
    int result = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(0);
        raft__broken = RAFT__BREAK_SLEEPER_VOTES;
        const struct CMUnitTest one[] = {cmocka_unit_test(no_two_serve_whatever_the_network_does)};
        _exit(cmocka_run_group_tests(one, NULL, NULL) != 0);
    }
    UNUSED(state);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_false(WIFEXITED(result) && WEXITSTATUS(result) == 0);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleepers_cost_nothing_and_are_served),
        cmocka_unit_test(those_that_a_lost_node_led_wake),
        cmocka_unit_test(no_two_serve_whatever_the_network_does),
#ifdef METADB_FAULTS
        cmocka_unit_test(a_core_that_votes_in_sleep_is_noticed),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
