/*
 * What a follower has shown, its leader shows, too.
 *
 * An entry is committed when a majority has it. A leader with a slow disk applies it later than its
 * followers, and they serve reads: so what it has applied is not what a reader may be given.
 */
#include "base/assert.h"
#include "cluster_fixture.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define LEADER 0u /* the node with the slow disk */
#define WRITER 1u
#define READER 2u
#define ROUNDS 8

/* A statement that another thread waits for. */
struct write {
    struct cluster *cluster;
    int value;
    pthread_t thread;
    status st;
};

static void *run_write(void *arg)
{
    struct write *w = arg;
    struct fx_client x;
    char text[16];
    snprintf(text, sizeof text, "%d", w->value);
    fx_client_init(&x, &w->cluster->nodes[WRITER]);
    w->st = fx_op(&x, fx_kv_put(&x.arena, "k", text));
    fx_client_fini(&x);
    return NULL;
}

static int value_of(const struct fx_client *x)
{
    if (x->row_count == 0)
        return -1;
    bytes text = x->rows[0].col[KVT_VALUE].b;
    char copy[16] = "";
    assert_true(text.size < sizeof copy);
    memcpy(copy, text.data, text.size);
    return atoi(copy);
}

static int read_at(struct cluster *c, unsigned at, bool transaction)
{
    struct fx_client x;
    fx_client_init(&x, &c->nodes[at]);
    if (transaction)
        fx_begin(&x, true);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
    int value = value_of(&x);
    if (transaction)
        assert_int_equal(fx_commit(&x), ST_OK);
    fx_client_fini(&x);
    return value;
}

struct look {
    struct cl_shard *shard;
    bool leads, current;
    uint64_t applied, commit;
    hlc_ts applied_ts;
    struct cl_read_point point;
};

static void look(void *arg)
{
    struct look *l = arg;
    struct cl_shard *s = l->shard;
    l->leads = cl_shard_here(s);
    l->current = cl_shard_current(s);
    l->applied = s->applied;
    l->applied_ts = kv_state_applied_ts(s->state);
    l->commit = raft_commit_index(s->raft);
    if (l->leads)
        l->point = cl_shard_read_point(s);
}

/* The rule itself, at the moment of the look. True: the leader is behind what is committed. */
static bool check_rule(const struct look *l)
{
    if (!l->leads)
        return false;
    assert_int_equal(l->current, l->applied == l->commit);
    assert_int_equal(l->point.index, l->commit);
    assert_true(l->point.stamp > l->applied_ts);
    return l->applied < l->commit;
}

static struct look look_at_leader(struct cluster *c)
{
    struct look l = {.shard = c->nodes[LEADER].node->shards[CL_KV]};
    fx_on_reactor(&c->nodes[LEADER], look, &l);
    return l;
}

/* All shards go where meta is led. */
static void make_leader(struct cluster *c)
{
    const struct kv_datum args[] = {kv_int(CL_META + 1), kv_int(LEADER + 1)};
    while (!look_at_leader(c).leads) {
        struct fx_client x;
        fx_client_init(&x, &c->nodes[WRITER]);
        (void)fx_call_with(&x, "transfer_leader", args);
        fx_client_fini(&x);
        for (unsigned i = 0; i < 100 && !look_at_leader(c).leads; i++)
            usleep(10000);
    }
}

static void a_leader_shows_what_followers_have_shown(void **state)
{
    UNUSED(state);
    struct cluster c;
    unsigned behind = 0;
    cx_init(&c);
    fx_set(&c.nodes[LEADER], "log.sync_delay", "80ms");
    cx_open_all(&c);
    cx_acquaint(&c);
    make_leader(&c);
    for (int round = 1; round <= ROUNDS; round++) {
        struct write w = {.cluster = &c, .value = round};
        assert_int_equal(pthread_create(&w.thread, NULL, run_write, &w), 0);
        while (read_at(&c, READER, false) != round)
            usleep(500);
        struct look l = look_at_leader(&c);
        behind += check_rule(&l);
        assert_int_equal(read_at(&c, LEADER, round % 2 == 0), round);
        assert_int_equal(read_at(&c, READER, round % 2 == 0), round);
        pthread_join(w.thread, NULL);
        assert_int_equal(w.st, ST_OK);
    }
    /* Or the leader was never asked for what it did not have yet. */
    assert_true(behind > 0);
    cx_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leader_shows_what_followers_have_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
