/* Damage, full disks, failed syncs, little memory, cold blocks: what is answered, what goes on. */
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void damaged_shard_is_fenced_and_others_serve(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
    fx_open(&f);
    fx_client_init(&x, &f);
    fault_arm("shard.apply", "error", 1);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_CORRUPT);
    fault_disarm();
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_CORRUPT);
    assert_string_equal(x.call.err.sqlstate, "XX001");
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_CORRUPT);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "a", 'f', 1)), ST_OK);
    assert_int_equal(fx_lookup(&x, 0, "a"), ST_END);
    assert_int_equal(x.row_count, 1);
    fx_client_fini(&x);
    fx_reopen(&f); /* the damage was not on disk: the entry is applied now */
    fx_client_init(&x, &f);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
    assert_int_equal(x.row_count, 1);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void failed_sync_ends_the_node_and_leaves_the_outcome_open(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_OK);
    fault_arm("log.sync", "error", 1);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "w")), ST_OUTCOME_UNKNOWN);
    assert_string_equal(x.call.err.sqlstate, "40003");
    fault_disarm();
    assert_int_not_equal(fx_wait_failed(&f), ST_OK);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "x")), ST_IO);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
    assert_true(bytes_eq(x.rows[0].col[KVT_VALUE].b, BYTES_LIT("v")));
    fx_client_fini(&x);
    fx_close(&f);
    f.failed = ST_OK;
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
    assert_int_equal(x.row_count, 1);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void set_store_full(void *arg)
{
    ((struct fixture *)arg)->node->store_full = true;
}

static void full_disk_of_the_store_refuses_writes_until_it_heals(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
    fx_set(&f, "mvcc.retention", "1ms");
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_OK);
    fault_arm("store.rocks.room", "error", 1);
    assert_int_equal(fx_call(&x, "flush"), ST_OK); /* comes back once a later try succeeds */
    fault_disarm();
    assert_int_equal(FX_PEEK(&f, f.node->counters.full_refused), 0);
    assert_int_equal(FX_PEEK(&f, f.node->shards[CL_META]->flush_errors), 0);
    assert_int_equal(FX_PEEK(&f, f.node->shards[CL_KV]->flush_errors), 0);
    fx_on_reactor(&f, set_store_full, &f); /* as between the two tries */
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "w")), ST_DISK_FULL);
    assert_string_equal(x.call.err.sqlstate, "53100");
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
    assert_int_equal(fx_call(&x, "wait_for_sinks"), ST_OK);
    fx_client_fini(&x);
    fx_reopen(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "w")), ST_OK);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void full_disk_of_the_log_refuses_writes_until_it_heals(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    char value[20000];
    status st = ST_OK;
    fx_init(&f);
    log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", value)), ST_OK);
    fx_disk_full(true);
    for (int i = 0; i < 1000 && st == ST_OK; i++) {
        arena_reset(&x.arena);
        st = fx_op(&x, fx_kv_put(&x.arena, "k", value));
    }
    assert_int_equal(st, ST_DISK_FULL);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "w")), ST_DISK_FULL);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
    assert_int_equal(x.row_count, 1);
    fx_disk_full(false);
    for (int i = 0; i < 5000 && st == ST_DISK_FULL; i++) {
        usleep(1000); /* the log looks again after a while of its own */
        st = fx_op(&x, fx_kv_put(&x.arena, "k", "w"));
    }
    assert_int_equal(st, ST_OK);
    fx_client_fini(&x);
    fx_reopen(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
    assert_true(bytes_eq(x.rows[0].col[KVT_VALUE].b, BYTES_LIT("w")));
    fx_client_fini(&x);
    fx_fini(&f);
}

static void full_disk_does_not_keep_the_process(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    char value[20000];
    status st = ST_OK;
    unsigned written = 0;
    fx_init(&f);
    log_set_level((enum log_level)(LOG_LEVEL_ERROR + 1));
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    fx_open(&f);
    fx_client_init(&x, &f);
    fx_disk_full(true);
    while (written < 1000 && st == ST_OK) {
        char key[16];
        snprintf(key, sizeof key, "k%04u", written);
        arena_reset(&x.arena);
        st = fx_op(&x, fx_kv_put(&x.arena, key, value));
        written += st == ST_OK;
    }
    assert_int_equal(st, ST_DISK_FULL);
    fx_client_fini(&x);
    fx_close(&f);
    fx_disk_full(false);
    fx_open(&f);
    fx_client_init(&x, &f);
    for (unsigned i = 0; i < written; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%04u", i);
        assert_int_equal(fx_lookup_kv(&x, key), ST_END);
        assert_int_equal(x.row_count, 1);
    }
    fx_client_fini(&x);
    fx_fini(&f);
}

/* What the reactor's thread owns, as of one moment. */
struct seen {
    struct fixture *f;
    uint64_t held, memory, cuts;
    struct cl_counters counters;
};

static void look(void *arg)
{
    struct seen *h = arg;
    struct cl_node *n = h->f->node;
    uint64_t group;
    raft_log_oldest(n->stream.log, &group, &h->held);
    h->memory = kv_state_memory(n->shards[CL_KV]->state);
    h->cuts = n->shards[CL_QUOTA]->cuts;
    h->counters = n->counters;
}

static void fill(struct fx_client *x, unsigned count, unsigned size)
{
    char key[32], *value = malloc(size);
    memset(value, 'v', size - 1);
    value[size - 1] = '\0';
    for (unsigned i = 0; i < count; i++) {
        snprintf(key, sizeof key, "key%06u", i);
        arena_reset(&x->arena);
        assert_int_equal(fx_op(x, fx_kv_put(&x->arena, key, value)), ST_OK);
    }
    free(value);
}

static void writes_wait_for_memory_and_all_arrive(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct seen now = {.f = &f};
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "memory.budget", "4MB");
    fx_set(&f, "memtable.bytes", "256kB");
    fx_set(&f, "mvcc.retention", "200ms");
    fx_open(&f);
    fx_client_init(&x, &f);
    for (unsigned i = 0; i < 300; i++) {
        char key[32], value[30000];
        memset(value, 'v', sizeof value - 1);
        value[sizeof value - 1] = '\0';
        snprintf(key, sizeof key, "key%06u", i);
        arena_reset(&x.arena);
        assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, key, value)), ST_OK);
        fx_on_reactor(&f, look, &now);
        assert_true(now.memory < 2 * (2u << 20));
    }
    assert_true(now.counters.memory_waits > 0);
    assert_int_equal(now.counters.memory_refused, 0);
    assert_int_equal(fx_lookup_kv(&x, "key000299"), ST_END);
    assert_int_equal(x.row_count, 1);
    fx_client_fini(&x);
    fx_fini(&f);
}

/* After a restart nothing is cached: reads and applies meet cold blocks. */
static void cold_reads_and_applies_go_through_the_pool(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct seen now = {.f = &f};
    struct fx_client x;
    char key[32];
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_open(&f);
    fx_client_init(&x, &f);
    fill(&x, 2000, 500);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "d", 'd', 100)), ST_OK);
    assert_int_equal(fx_call(&x, "flush"), ST_OK);
    fx_client_fini(&x);
    fx_reopen(&f);
    fx_client_init(&x, &f);
    for (unsigned i = 0; i < 2000; i += 97) {
        snprintf(key, sizeof key, "key%06u", i);
        assert_int_equal(fx_lookup_kv(&x, key), ST_END);
        assert_int_equal(x.row_count, 1);
        assert_int_equal(x.rows[0].col[KVT_VALUE].b.size, 499);
    }
    fx_on_reactor(&f, look, &now);
    assert_true(now.counters.reads_cold > 0);
    for (unsigned i = 10; i < 2000; i += 97) {
        snprintf(key, sizeof key, "key%06u", i);
        assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, key, "new")), ST_OK);
    }
    fx_on_reactor(&f, look, &now);
    assert_true(now.counters.stalls > 0);
    fx_begin(&x, false);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "key001999", "txn")), ST_OK);
    assert_int_equal(fx_commit(&x), ST_OK);
    struct kv_datum none = {.null = false, .b = BYTES_LIT("")};
    bytes lower = kv_key_prefix(&x.arena, 1, KV_KV, &none, 1);
    struct kv_read all = {.kind = KV_READ_RANGE,
                          .table = KV_KV,
                          .ns = 1,
                          .lower = lower,
                          .upper = kv_key_after_prefix(&x.arena, lower),
                          .limit = -1};
    assert_int_equal(fx_read(&x, &all), ST_END);
    assert_int_equal(x.row_count, 2000);
    fx_client_fini(&x);
    fx_fini(&f);
}

/* Rows of numbers come back from the pool as they are, not as columns of the table. */
static void cold_counts_and_usage_are_right(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct seen now = {.f = &f};
    char name[32];
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_open(&f);
    fx_client_init(&x, &f);
    fill(&x, 500, 500);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "d", 'd', 100)), ST_OK);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "f%d", i);
        arena_reset(&x.arena);
        assert_int_equal(fx_op(&x, fx_create_full(&x.arena, 100, name, 1000 + i, 7, 10, i)), ST_OK);
    }
    assert_int_equal(fx_call(&x, "flush"), ST_OK);
    fx_client_fini(&x);
    fx_reopen(&f);
    fx_client_init(&x, &f);
    struct kv_datum none = {.null = false, .b = BYTES_LIT("")};
    bytes lower = kv_key_prefix(&x.arena, 1, KV_KV, &none, 1);
    struct kv_read count = {.kind = KV_READ_COUNT,
                            .table = KV_KV,
                            .ns = 1,
                            .lower = lower,
                            .upper = kv_key_after_prefix(&x.arena, lower),
                            .limit = -1};
    assert_int_equal(fx_read(&x, &count), ST_END);
    assert_int_equal(x.row_count, 1);
    assert_int_equal(x.rows[0].col[0].i, 500);
    struct kv_read usage = {.kind = KV_READ_USAGE,
                            .table = KV_META,
                            .ns = 1,
                            .pid = 0,
                            .path = BYTES_LIT("d"),
                            .limit = -1};
    assert_int_equal(fx_read(&x, &usage), ST_END);
    assert_int_equal(x.row_count, 1);
    assert_int_equal(x.rows[0].col[0].i, 200);
    assert_int_equal(x.rows[0].col[2].i, 2000);
    fx_on_reactor(&f, look, &now);
    assert_true(now.counters.reads_cold > 0);
    fx_client_fini(&x);
    fx_fini(&f);
}

/* A log that nobody writes to any more is cut all the same. */
static void idle_shards_do_not_pin_the_log(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct seen now = {.f = &f};
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_set(&f, "memtable.bytes", "256kB");
    fx_set(&f, "log.retain_bytes", "2MB");
    fx_open(&f);
    fx_client_init(&x, &f);
    for (int i = 0; i < 40; i++)
        fill(&x, 100, 3000);
    for (int i = 0; i < 5000; i++) {
        fx_on_reactor(&f, look, &now);
        if (now.held <= 4u << 20)
            break;
        usleep(1000);
    }
    assert_true(now.held <= 4u << 20);
    assert_true(now.counters.forced_flushes > 0);
    assert_true(now.cuts > 0);
    fx_client_fini(&x);
    fx_reopen(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_lookup_kv(&x, "key000099"), ST_END);
    assert_int_equal(x.row_count, 1);
    fx_client_fini(&x);
    fx_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_shard_is_fenced_and_others_serve),
        cmocka_unit_test(failed_sync_ends_the_node_and_leaves_the_outcome_open),
        cmocka_unit_test(full_disk_of_the_store_refuses_writes_until_it_heals),
        cmocka_unit_test(full_disk_of_the_log_refuses_writes_until_it_heals),
        cmocka_unit_test(full_disk_does_not_keep_the_process),
        cmocka_unit_test(writes_wait_for_memory_and_all_arrive),
        cmocka_unit_test(cold_reads_and_applies_go_through_the_pool),
        cmocka_unit_test(cold_counts_and_usage_are_right),
        cmocka_unit_test(idle_shards_do_not_pin_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
