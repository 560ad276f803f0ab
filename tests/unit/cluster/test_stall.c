/* A store that takes no more flushes: writers wait and are then refused, and nothing else notices:
 * heartbeats and the log go on, reads are answered, and writing goes on when the store does. */
#include "base/assert.h"
#include "base/fault.h"
#include "cluster_fixture.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define WRITERS 32u /* what waits for all of them is more than the budget */
#define VALUE_BYTES 200000u
#define BUDGET_BYTES (4u << 20) /* of memtables: half of memory.budget */
/* With what rows take beside their bytes, and the begun slabs of five shards. */
#define MEMORY_MAX (2u * BUDGET_BYTES)
#define LOOKS 400u
#define LOOK_US 10000u

struct writer {
    pthread_t thread;
    struct cluster *c;
    unsigned leader, number;
    _Atomic unsigned *written, *refused;
    _Atomic bool *enough;
};

/* Writes until it is refused and told that it is enough; a refusal is taken for what it is. */
static void *write_on(void *arg)
{
    struct writer *w = arg;
    struct fx_client x;
    char key[32], *value = malloc(VALUE_BYTES);
    assert_non_null(value);
    memset(value, 'v', VALUE_BYTES - 1);
    value[VALUE_BYTES - 1] = '\0';
    fx_client_init(&x, &w->c->nodes[w->leader]);
    for (unsigned i = 0; !atomic_load(w->enough); i++) {
        snprintf(key, sizeof key, "w%u-%u", w->number, i % 50);
        arena_reset(&x.arena);
        status st = fx_op(&x, fx_kv_put(&x.arena, key, value));
        ASSERT(st == ST_OK || st == ST_NO_MEMORY);
        ASSERT(st == ST_OK || strcmp(x.call.err.sqlstate, "53200") == 0);
        atomic_fetch_add(st == ST_OK ? w->written : w->refused, 1);
        if (st != ST_OK)
            usleep(LOOK_US);
    }
    fx_client_fini(&x);
    free(value);
    return NULL;
}

struct seen {
    struct fixture *f;
    uint64_t terms, memory, waits;
    bool flushing;
};

static void look(void *arg)
{
    struct seen *s = arg;
    struct cl_node *n = s->f->node;
    s->terms = 0;
    s->flushing = false;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        s->terms += raft_hard_state(n->shards[i]->raft).term;
        s->flushing |= n->shards[i]->flushing;
    }
    s->memory = cl__memtable_bytes(n);
    s->waits = n->counters.memory_waits;
}

static struct seen see(struct cluster *c, unsigned i)
{
    struct seen s = {.f = &c->nodes[i]};
    fx_on_reactor(s.f, look, &s);
    return s;
}

/* The store stands still on every node: for seconds longer than an election takes. */
static void others_do_not_notice(struct cluster *c, unsigned leader, uint64_t terms,
                                 _Atomic unsigned *refused)
{
    char got[16];
    unsigned stalled = 0;
    uint64_t most = 0;
    for (unsigned i = 0; i < LOOKS; i++) {
        struct seen s = see(c, leader);
        assert_int_equal(s.terms, terms);
        most = s.memory > most ? s.memory : most;
        if (i % 10 == 0)
            assert_int_equal(cx_get(c, "before", got, sizeof got), ST_END);
        stalled += s.flushing && atomic_load(refused) > 0;
        usleep(LOOK_US);
    }
    printf("%llu bytes at most, %u writes refused\n", (unsigned long long)most,
           atomic_load(refused));
    assert_true(most < MEMORY_MAX);
    assert_true(stalled > LOOKS / 2);
    assert_int_equal(cx_leader(c), leader);
}

static void a_stalled_store_stalls_writers_alone(void **state)
{
    UNUSED(state);
    /* Of writers that outlive a check that failed. */
    static struct cluster c;
    static struct writer writers[WRITERS];
    static _Atomic unsigned written, refused;
    static _Atomic bool enough;
    cx_init(&c);
    for (unsigned i = 0; i < CX_NODES; i++) {
        fx_set(&c.nodes[i], "mvcc.retention", "20ms");
        fx_set(&c.nodes[i], "memory.budget", "8MB");
        fx_set(&c.nodes[i], "raft.election", "1500ms");
        fx_set(&c.nodes[i], "memtable.bytes", "256kB");
    }
    cx_open_all(&c);
    cx_acquaint(&c);
    unsigned leader = cx_leader(&c);
    assert_int_equal(cx_put(&c, "before", "x"), ST_OK);
    uint64_t terms = see(&c, leader).terms;
    fault_arm("shard.flush", "hold", 1);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.c = &c,
                                     .leader = leader,
                                     .number = i,
                                     .written = &written,
                                     .refused = &refused,
                                     .enough = &enough};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_on, &writers[i]), 0);
    }
    others_do_not_notice(&c, leader, terms, &refused);
    assert_true(see(&c, leader).waits > 0);
    fault_disarm();
    unsigned before = atomic_load(&written);
    while (atomic_load(&written) < before + 4 * WRITERS)
        usleep(LOOK_US);
    atomic_store(&enough, true);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    cx_settle(&c);
    cx_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_stalled_store_stalls_writers_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
