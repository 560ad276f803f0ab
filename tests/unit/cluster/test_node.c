/* A node from start to stop: restarts, flushes, log cuts, directories that it must refuse. */
#include "base/assert.h"
#include "base/fault.h"
#include "fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void new_directory_serves_and_stops(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_lookup(&x, 0, "_attr_"), ST_END);
    assert_int_equal(x.row_count, 1);
    assert_int_equal(x.rows[0].col[META_TYPE].i, 'd');
    assert_int_equal(x.rows[0].col[META_NUM_CHILDREN].i, 0);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void acknowledged_writes_survive_a_restart(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    char name[16];
    fx_init(&f);
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "dir", 'd', 100)), ST_OK);
    assert_int_equal(x.call.result.affected, 1);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(fx_op(&x, fx_create(&x.arena, 100, name, 'f', 1000 + i)), ST_OK);
    }
    assert_int_equal(fx_op(&x, fx_remove(&x.arena, 100, "f7")), ST_OK);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v1")), ST_OK);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v2")), ST_OK);
    fx_client_fini(&x);
    for (int again = 0; again < 3; again++) {
        fx_reopen(&f);
        fx_client_init(&x, &f);
        assert_int_equal(fx_list(&x, 100), 49);
        assert_int_equal(fx_lookup(&x, 100, "f7"), ST_END);
        assert_int_equal(x.row_count, 0);
        assert_int_equal(fx_lookup(&x, 100, "_attr_"), ST_END);
        assert_int_equal(x.rows[0].col[META_NUM_CHILDREN].i, 49);
        assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
        assert_true(bytes_eq(x.rows[0].col[KVT_VALUE].b, BYTES_LIT("v2")));
        fx_client_fini(&x);
    }
    fx_fini(&f);
}

static void errors_of_a_statement_reach_the_caller(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "a", 'f', 10)), ST_OK);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "a", 'f', 11)), ST_EXISTS);
    assert_string_equal(x.call.err.sqlstate, "23505");
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 555, "a", 'f', 12)), ST_NO_PARENT);
    assert_string_equal(x.call.err.sqlstate, "23503");
    const struct kv_op *both[] = {fx_create(&x.arena, 0, "b", 'f', 13),
                                  fx_create(&x.arena, 0, "a", 'f', 14)};
    assert_int_equal(fx_ops(&x, both, 2), ST_EXISTS);
    assert_int_equal(fx_lookup(&x, 0, "b"), ST_END);
    assert_int_equal(x.row_count, 0);
    const struct kv_op *two_tables[] = {fx_create(&x.arena, 0, "c", 'f', 15),
                                        fx_kv_put(&x.arena, "k", "v")};
    assert_int_equal(fx_ops(&x, two_tables, 2), ST_UNSUPPORTED);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void stamps_ascend_over_restarts(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    int64_t last = 0;
    fx_init(&f);
    fx_clock_advance(3600u * 1000000u); /* the wall clock goes back after the first life */
    for (int life = 0; life < 3; life++) {
        fx_open(&f);
        fx_client_init(&x, &f);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_OK);
            assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
            assert_true(x.rows[0].col[KVT_SEQ].i > last);
            last = x.rows[0].col[KVT_SEQ].i;
        }
        fx_client_fini(&x);
        fx_close(&f);
        fx_clock_reset();
    }
    fx_fini(&f);
}

static uint64_t persisted(struct fixture *f, unsigned shard)
{
    return kv_state_persisted_index(f->node->shards[shard]->state);
}

static void flush_persists_and_cuts_the_log(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "dir", 'd', 100)), ST_OK);
    assert_int_equal(fx_op(&x, fx_create_full(&x.arena, 100, "a", 1, 7, 50, 9)), ST_OK);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_OK);
    assert_int_equal(fx_call(&x, "wait_for_sinks"), ST_OK);
    assert_int_equal(fx_call(&x, "flush"), ST_OK);
    assert_int_equal(x.row_count, CL_SHARDS);
    assert_true(persisted(&f, CL_META) > 0);
    assert_true(persisted(&f, CL_KV) > 0);
    assert_true(persisted(&f, CL_QUOTA) > 0);
    assert_int_equal(FX_PEEK(&f, f.node->shards[CL_META]->cuts), 1);
    assert_int_equal(fx_lookup(&x, 100, "a"), ST_END);
    assert_int_equal(x.row_count, 1);
    fx_client_fini(&x);
    fx_reopen(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_lookup(&x, 100, "a"), ST_END);
    assert_int_equal(x.row_count, 1);
    assert_int_equal(fx_lookup(&x, 0, "_attr_"), ST_END);
    assert_int_equal(x.rows[0].col[META_NUM_CHILDREN].i, 1);
    assert_int_equal(fx_quota(&x, 7, "#SIZE"), 50);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
    assert_int_equal(x.row_count, 1);
    fx_client_fini(&x);
    fx_fini(&f);
}

/* Log time goes on although the wall clock is an hour behind it. */
static void flush_does_not_wait_for_a_clock_that_fell_back(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "20ms");
    fx_clock_jump_wall(INT64_C(3600) * 1000000);
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "a", "v")), ST_OK);
    fx_clock_jump_wall(INT64_C(-3600) * 1000000);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "b", "v")), ST_OK);
    assert_int_equal(fx_call(&x, "flush"), ST_OK);
    fx_client_fini(&x);
    fx_reopen(&f); /* and over a restart */
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "c", "v")), ST_OK);
    assert_int_equal(fx_call(&x, "flush"), ST_OK);
    fx_client_fini(&x);
    fx_fini(&f);
}

struct raised {
    struct fixture *f;
    hlc_ts stamp;
    int64_t before_us, after_us;
    uint64_t from_us, to_us; /* by the monotonic clock */
};

static void raise_time(void *arg)
{
    struct raised *r = arg;
    hlc_raise(&r->f->node->hlc, r->stamp);
    cl__node_raise_now(r->f->node, r->stamp);
    r->from_us = env_mono_us(fx_env());
    r->before_us = cl__node_now_us(r->f->node);
}

static void look_at_time(void *arg)
{
    struct raised *r = arg;
    r->after_us = cl__node_now_us(r->f->node);
    r->to_us = env_mono_us(fx_env());
}

/* A leader whose predecessor's clock was an hour ahead: stamps go on from there, and log time
 * passes; the wall clock catches up. */
static void log_time_goes_on_above_the_stamps_of_another(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "20ms");
    fx_open(&f);
    struct raised r = {.f = &f,
                       .stamp = hlc_from_us(env_unix_us(fx_env()) + INT64_C(3600) * 1000000)};
    fx_on_reactor(&f, raise_time, &r);
    assert_true(r.before_us >= hlc_unix_us(r.stamp));
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "a", "v")), ST_OK);
    assert_int_equal(fx_call(&x, "flush"), ST_OK);
    fx_clock_advance(80000000);
    fx_on_reactor(&f, look_at_time, &r);
    int64_t passed_us = (int64_t)(r.to_us - r.from_us);
    assert_in_range(r.after_us - r.before_us, 70000000, passed_us - passed_us / 10);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void small_memtables_flush_by_themselves(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    char key[32], value[512];
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_set(&f, "memtable.bytes", "64kB");
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    fx_open(&f);
    fx_client_init(&x, &f);
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "key%05d", i);
        arena_reset(&x.arena);
        assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, key, value)), ST_OK);
    }
    assert_true(persisted(&f, CL_KV) > 0);
    for (int i = 0; i < 2000; i += 37) {
        snprintf(key, sizeof key, "key%05d", i);
        assert_int_equal(fx_lookup_kv(&x, key), ST_END);
        assert_int_equal(x.row_count, 1);
    }
    fx_client_fini(&x);
    fx_reopen(&f);
    fx_client_init(&x, &f);
    for (int i = 0; i < 2000; i += 41) {
        snprintf(key, sizeof key, "key%05d", i);
        assert_int_equal(fx_lookup_kv(&x, key), ST_END);
        assert_int_equal(x.row_count, 1);
    }
    fx_client_fini(&x);
    fx_fini(&f);
}

struct recovery_seen {
    struct fixture *f;
    uint64_t entries, bytes;
    bool flush_due;
};

static void look_at_recovery(void *arg)
{
    struct recovery_seen *r = arg;
    struct cl_node *n = r->f->node;
    r->entries = n->counters.recovered_entries;
    r->bytes = n->counters.recovered_bytes;
    uint64_t pinning[CL_SHARDS]; /* it may not have been noticed yet */
    r->flush_due = raft_log_pinning(n->stream.log, n->options.retain_bytes, pinning, CL_SHARDS) > 0;
    for (unsigned i = 0; i < CL_SHARDS; i++)
        r->flush_due |= kv_state_flush_due(n->shards[i]->state) != 0 || n->shards[i]->flushing;
}

static void put_many(struct fx_client *x, unsigned first, unsigned count)
{
    char key[32], value[8000];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (unsigned i = first; i < first + count; i++) {
        snprintf(key, sizeof key, "key%06u", i);
        arena_reset(&x->arena);
        assert_int_equal(fx_op(x, fx_kv_put(&x->arena, key, value)), ST_OK);
    }
}

/* What a start replays is bounded by log.retain_bytes, however much has been written. */
static void replay_does_not_grow_with_what_is_stored(void **state)
{
    UNUSED(state);
    enum { COUNT = 500, STEPS = 4 };
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_set(&f, "log.retain_bytes", "2MB");
    fx_open(&f);
    for (unsigned step = 0; step < STEPS; step++) {
        struct recovery_seen r = {.f = &f};
        fx_client_init(&x, &f);
        put_many(&x, step * COUNT, COUNT); /* 4 MB */
        for (unsigned i = 0; i == 0 || r.flush_due; i++) {
            fx_on_reactor(&f, look_at_recovery, &r);
            assert_true(i < 10000);
            usleep(1000);
        }
        fx_client_fini(&x);
        fx_reopen(&f);
        fx_on_reactor(&f, look_at_recovery, &r);
        assert_true(r.entries > 0);
        assert_true(r.bytes < 5u << 20); /* the limit, a segment, what came meanwhile */
    }
    fx_client_init(&x, &f);
    for (unsigned i = 0; i < STEPS * COUNT; i += 17) {
        char key[32];
        snprintf(key, sizeof key, "key%06u", i);
        assert_int_equal(fx_lookup_kv(&x, key), ST_END);
        assert_int_equal(x.row_count, 1);
    }
    fx_client_fini(&x);
    fx_fini(&f);
}

static void stop_in_good_order_leaves_nothing_to_replay(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct recovery_seen r = {.f = &f};
    fx_init(&f);
    fx_set(&f, "recovery.flush_at_stop", "on");
    fx_open(&f);
    fx_client_init(&x, &f);
    put_many(&x, 0, 100);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "dir", 'd', 100)), ST_OK);
    assert_int_equal(fx_op(&x, fx_create_full(&x.arena, 100, "a", 1, 7, 50, 9)), ST_OK);
    fx_client_fini(&x);
    fx_reopen(&f); /* long before mvcc.retention is over */
    fx_on_reactor(&f, look_at_recovery, &r);
    assert_true(r.entries <= 2 * CL_SHARDS); /* no-ops and the like of shards without changes */
    assert_true(persisted(&f, CL_KV) >= 100);
    fx_client_init(&x, &f);
    assert_int_equal(fx_lookup_kv(&x, "key000099"), ST_END);
    assert_int_equal(x.row_count, 1);
    assert_int_equal(fx_call(&x, "wait_for_sinks"), ST_OK);
    assert_int_equal(fx_quota(&x, 7, "#SIZE"), 50);
    fx_client_fini(&x);
    fx_fini(&f);
}

/* A store that cannot take the memtables does not keep the process: the log has them. */
static void stop_does_not_insist_on_a_flush_that_fails(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct recovery_seen r = {.f = &f};
    fx_init(&f);
    fx_set(&f, "recovery.flush_at_stop", "on");
    fx_set(&f, "pool.threads", "1");
    fx_open(&f);
    fx_client_init(&x, &f);
    put_many(&x, 0, 50);
    fx_client_fini(&x);
    fault_arm("store.rocks.write", "error", 1);
    fx_close(&f);
    assert_true(fault_fired());
    fault_disarm();
    fx_open(&f);
    fx_on_reactor(&f, look_at_recovery, &r);
    assert_true(r.entries >= 50);
    fx_client_init(&x, &f);
    assert_int_equal(fx_lookup_kv(&x, "key000049"), ST_END);
    assert_int_equal(x.row_count, 1);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void same_log_gives_the_same_hash(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    char before[CL_SHARDS][17], command[256];
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_set(&f, "log.keep_all", "on");
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "dir", 'd', 100)), ST_OK);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(
            fx_op(&x, fx_create_full(&x.arena, 100, name, 1000 + i, i % 3, i, 5000 + i)), ST_OK);
        if (i == 20) {
            assert_int_equal(fx_call(&x, "wait_for_sinks"), ST_OK);
            assert_int_equal(fx_call(&x, "flush"), ST_OK);
        }
    }
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_OK);
    assert_int_equal(fx_call(&x, "wait_for_sinks"), ST_OK);
    assert_int_equal(fx_call(&x, "state_hash"), ST_OK);
    assert_int_equal(x.row_count, CL_SHARDS);
    for (unsigned i = 0; i < CL_SHARDS; i++)
        snprintf(before[i], 17, "%.16s", (const char *)x.rows[i].col[2].b.data);
    fx_client_fini(&x);
    fx_close(&f);
    snprintf(command, sizeof command, "rm -rf '%s/store'", f.dir);
    assert_int_equal(system(command), 0);
    fx_set(&f, "recovery.empty_store", "on");
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_call(&x, "state_hash"), ST_OK);
    for (unsigned i = 0; i < CL_SHARDS; i++)
        assert_memory_equal(before[i], x.rows[i].col[2].b.data, 16);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void functions_end_soon_after_a_cancel(void **state)
{
    UNUSED(state);
    static const char *const names[] = {"flush", "state_hash", "check"};
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "10min"); /* so long a flush waits */
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "dir", 'd', 100)), ST_OK);
    assert_int_equal(fx_call(&x, "wait_for_sinks"), ST_OK);
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        x.cancel = true;
        assert_int_equal(fx_call(&x, names[i]), ST_CANCELLED);
        x.cancel = false;
        assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", names[i])), ST_OK);
    }
    assert_int_equal(fx_call(&x, "state_hash"), ST_OK);
    assert_int_equal(fx_call(&x, "check"), ST_OK);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void foreign_and_wiped_directories_are_refused(void **state)
{
    UNUSED(state);
    struct fixture f;
    char command[256];
    fx_init(&f);
    fx_open(&f);
    fx_close(&f);
    snprintf(command, sizeof command, "mv '%s/identity' '%s/kept'", f.dir, f.dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(fx_try_open(&f), ST_INVALID);
    assert_non_null(strstr(f.err.message, "no identity file"));
    snprintf(command, sizeof command,
             "sed 's/^metadb-identity 1/metadb-identity 99/' '%s/kept' > '%s/identity'", f.dir,
             f.dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(fx_try_open(&f), ST_INVALID);
    assert_non_null(strstr(f.err.message, "format 99"));
    snprintf(command, sizeof command, "sed 's/^node 1/node 2/' '%s/kept' > '%s/identity'", f.dir,
             f.dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(fx_try_open(&f), ST_CORRUPT);
    snprintf(command, sizeof command, "mv '%s/kept' '%s/identity' && rm -rf '%s/store'", f.dir,
             f.dir, f.dir);
    assert_int_equal(system(command), 0);
    fx_open(&f); /* the log was never cut: it has everything */
    fx_fini(&f);
}

static void budget_that_no_command_fits_in_is_refused(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "memory.budget", "1");
    assert_int_equal(fx_try_open(&f), ST_INVALID);
    assert_non_null(strstr(f.err.message, "memory.budget"));
    fx_set(&f, "memory.budget", "1048575");
    assert_int_equal(fx_try_open(&f), ST_INVALID);
    fx_set(&f, "memory.budget", "1MB");
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_OK);
    fx_client_fini(&x);
    fx_fini(&f);
}

/* What came within mvcc.retention cannot be flushed before log time has moved on: a start that has
 * less memory than that must not wait for it. */
static void start_needs_no_more_memory_than_the_budget_has(void **state)
{
    UNUSED(state);
    enum { COUNT = 400 }; /* 3 MB */
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "10min");
    fx_set(&f, "recovery.flush_at_stop", "off");
    fx_open(&f);
    fx_client_init(&x, &f);
    put_many(&x, 0, COUNT);
    fx_client_fini(&x);
    fx_close(&f);
    fx_set(&f, "memory.budget", "4MB");
    fx_set(&f, "memtable.bytes", "1MB");
    fx_open(&f);
    fx_client_init(&x, &f);
    for (unsigned i = 0; i < COUNT; i++) {
        char key[32];
        snprintf(key, sizeof key, "key%06u", i);
        arena_reset(&x.arena);
        assert_int_equal(fx_lookup_kv(&x, key), ST_END);
        assert_int_equal(x.row_count, 1);
    }
    fx_client_fini(&x);
    fx_fini(&f);
}

static void store_that_knows_more_than_the_log_is_refused(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    char command[256];
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_OK);
    assert_int_equal(fx_call(&x, "flush"), ST_OK);
    fx_client_fini(&x);
    fx_close(&f);
    snprintf(command, sizeof command, "rm -rf '%s/log'", f.dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(fx_try_open(&f), ST_CORRUPT);
    assert_non_null(strstr(f.err.message, "but its log ends with entry 0"));
    fx_fini(&f);
}

static void run_in(const struct fixture *f, const char *what)
{
    char command[512];
    snprintf(command, sizeof command, "cd '%s' && %s", f->dir, what);
    assert_int_equal(system(command), 0);
}

/* Log and store have a past in common, then other entries at the same places. */
static void store_of_another_history_than_the_log_is_refused(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_open(&f);
    fx_close(&f);
    run_in(&f, "mkdir ../$(basename $PWD).kept && cp -r log store ../$(basename $PWD).kept");
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "v")), ST_OK);
    assert_int_equal(fx_call(&x, "flush"), ST_OK);
    fx_client_fini(&x);
    fx_close(&f);
    run_in(&f,
           "K=../$(basename $PWD).kept && mv store $K/other && rm -rf log && mv $K/log $K/store .");
    for (unsigned term = 2; term < 8; term++) { /* each start adds an entry of a later term */
        fx_open(&f);
        fx_close(&f);
    }
    run_in(&f, "K=../$(basename $PWD).kept && rm -rf store && mv $K/other store && rmdir $K");
    assert_int_equal(fx_try_open(&f), ST_CORRUPT);
    assert_non_null(strstr(f.err.message, "holds another entry"));
    fx_fini(&f);
}

static void directory_of_something_else_is_refused(void **state)
{
    UNUSED(state);
    struct fixture f;
    char command[256];
    fx_init(&f);
    snprintf(command, sizeof command, "echo hello > '%s/letter'", f.dir);
    assert_int_equal(system(command), 0);
    assert_int_equal(fx_try_open(&f), ST_INVALID);
    assert_non_null(strstr(f.err.message, "neither empty"));
    snprintf(command, sizeof command, "rm '%s/letter' && mkdir '%s/log' '%s/store'", f.dir, f.dir,
             f.dir);
    assert_int_equal(system(command), 0);
    fx_open(&f); /* what a first start that was cut short may leave */
    fx_fini(&f);
}

static void count_row(void *arg, const struct kv_datum *values)
{
    UNUSED(values);
    ++*(unsigned *)arg;
}

/* It is alone, and nothing was deleted. */
static bool may_be_empty(const char *view)
{
    return strcmp(view, "peers") == 0 || strcmp(view, "delete_density") == 0;
}

static void all_views(void *arg)
{
    struct fixture *f = arg;
    unsigned count;
    const struct cl_view *views = cl_views(&count);
    for (unsigned i = 0; i < count; i++) {
        unsigned rows = 0;
        views[i].rows(f->node, count_row, &rows);
        assert_int_equal(rows > 0, !may_be_empty(views[i].name));
    }
}

static void every_view_has_rows(void **state)
{
    UNUSED(state);
    struct fixture f;
    fx_init(&f);
    fx_open(&f);
    fx_on_reactor(&f, all_views, &f);
    fx_fini(&f);
}

struct job {
    const char *kind; /* which one to take */
    char state[16];
    bool named; /* the directory */
    int64_t removed;
};

static void take_job(void *arg, const struct kv_datum *values)
{
    struct job *j = arg;
    if (!bytes_eq(values[0].b, bytes_str(j->kind)))
        return;
    snprintf(j->state, sizeof j->state, "%.*s", (int)values[5].b.size,
             (const char *)values[5].b.data);
    j->named = !values[2].null;
    j->removed = values[4].i;
}

static void a_tree_is_a_job_until_all_of_it_is_taken_away(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct job j = {.kind = "remove_tree"};
    const char *const names[] = {"a", "b", "c"};
    fx_init(&f);
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "tree", 'd', 20)), ST_OK);
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(fx_op(&x, fx_create(&x.arena, 20, names[i], 'f', 0)), ST_OK);
    fx_view(&f, "jobs", take_job, &j);
    assert_string_equal(j.state, "idle");
    assert_false(j.named);
    struct kv_op *detach = fx_remove(&x.arena, 0, "tree");
    detach->kind = KV_OP_DETACH;
    detach->pid = 0;
    detach->name = BYTES_LIT("tree");
    assert_int_equal(fx_op(&x, detach), ST_OK);
    do {
        fx_view(&f, "jobs", take_job, &j);
        assert_true(j.named == (strcmp(j.state, "idle") != 0));
    } while (strcmp(j.state, "idle") != 0);
    assert_true(j.removed >= (int64_t)ARRAY_LEN(names));
    fx_client_fini(&x);
    fx_fini(&f);
}

static struct kv_op *insert_row(struct arena *a, enum kv_table table, const unsigned *columns,
                                unsigned count, const struct kv_datum *values)
{
    struct kv_op *op = ARENA_NEW(a, struct kv_op);
    *op = (struct kv_op){.kind = KV_OP_INSERT,
                         .table = table,
                         .ns = 1,
                         .row_count = 1,
                         .columns = columns,
                         .column_count = count,
                         .values = values};
    return op;
}

static void expired_objects_are_taken_away(void **state)
{
    UNUSED(state);
    static const unsigned object[] = {OBJECT_BUCKET, OBJECT_KEY, OBJECT_MTIME};
    static const unsigned rule[] = {LIFECYCLE_BUCKET, LIFECYCLE_PREFIX, LIFECYCLE_EXPIRE_AFTER};
    const struct kv_datum old[] = {kv_text(BYTES_LIT("b")), kv_text(BYTES_LIT("tmp/1")), kv_int(0)};
    const struct kv_datum kept[] = {kv_text(BYTES_LIT("b")), kv_text(BYTES_LIT("x")), kv_int(0)};
    const struct kv_datum values[] = {kv_text(BYTES_LIT("b")), kv_text(BYTES_LIT("tmp/")),
                                      kv_int(1000000)};
    struct fixture f;
    struct fx_client x;
    struct job j = {.kind = "expire"};
    fx_init(&f);
    fx_open(&f);
    fx_client_init(&x, &f);
    assert_int_equal(fx_op(&x, insert_row(&x.arena, KV_OBJECT, object, 3, old)), ST_OK);
    assert_int_equal(fx_op(&x, insert_row(&x.arena, KV_OBJECT, object, 3, kept)), ST_OK);
    fx_view(&f, "jobs", take_job, &j);
    assert_string_equal(j.state, "idle");
    assert_int_equal(fx_op(&x, insert_row(&x.arena, KV_LIFECYCLE, rule, 3, values)), ST_OK);
    do
        fx_view(&f, "jobs", take_job, &j);
    while (j.removed == 0 || strcmp(j.state, "idle") != 0);
    assert_int_equal(j.removed, 1);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void count_peers(void *arg)
{
    struct fixture *f = arg;
    unsigned count, rows = 0;
    const struct cl_view *views = cl_views(&count);
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(views[i].name, "peers") == 0)
            views[i].rows(f->node, count_row, &rows);
    }
    assert_int_equal(rows, 2);
}

static void on_ready(void *arg)
{
    UNUSED(arg);
}

static void on_failed(void *arg, status st)
{
    struct fixture *f = arg;
    f->failed = st;
}

static void a_listed_node_looks_for_the_others(void **state)
{
    UNUSED(state);
    struct fixture f;
    char nodes[256];
    unsigned port = 20000u + (unsigned)getpid() % 20000u;
    fx_init(&f);
    snprintf(nodes, sizeof nodes,
             "1=127.0.0.1:%u/127.0.0.1:1 2=127.0.0.1:2/127.0.0.1:3 3=127.0.0.1:4/127.0.0.1:5",
             port);
    fx_set(&f, "cluster.nodes", nodes);
    assert_int_equal(fx_try_open(&f), ST_INVALID);
    assert_non_null(strstr(f.err.message, "does not say which"));
    fx_set(&f, "cluster.node", "1");
    assert_int_equal(fx_try_open(&f), ST_INVALID);
    assert_non_null(strstr(f.err.message, "\"cluster.id\" is 0"));
    fx_set(&f, "cluster.id", "7040");
    fx_set(&f, "raft.election", "150ms");
    assert_int_equal(fx_try_open(&f), ST_INVALID);
    assert_non_null(strstr(f.err.message, "raft.heartbeat"));
    fx_set(&f, "raft.election", "1s");
    assert_int_equal(fx_try_open(&f), ST_OK);
    cl_node_start(f.node, on_ready, on_failed, &f); /* alone it is no majority: never ready */
    fx_on_reactor(&f, count_peers, &f);
    fx_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_directory_serves_and_stops),
        cmocka_unit_test(acknowledged_writes_survive_a_restart),
        cmocka_unit_test(errors_of_a_statement_reach_the_caller),
        cmocka_unit_test(stamps_ascend_over_restarts),
        cmocka_unit_test(flush_persists_and_cuts_the_log),
        cmocka_unit_test(flush_does_not_wait_for_a_clock_that_fell_back),
        cmocka_unit_test(log_time_goes_on_above_the_stamps_of_another),
        cmocka_unit_test(small_memtables_flush_by_themselves),
        cmocka_unit_test(replay_does_not_grow_with_what_is_stored),
        cmocka_unit_test(stop_in_good_order_leaves_nothing_to_replay),
        cmocka_unit_test(stop_does_not_insist_on_a_flush_that_fails),
        cmocka_unit_test(same_log_gives_the_same_hash),
        cmocka_unit_test(budget_that_no_command_fits_in_is_refused),
        cmocka_unit_test(start_needs_no_more_memory_than_the_budget_has),
        cmocka_unit_test(functions_end_soon_after_a_cancel),
        cmocka_unit_test(foreign_and_wiped_directories_are_refused),
        cmocka_unit_test(store_that_knows_more_than_the_log_is_refused),
        cmocka_unit_test(store_of_another_history_than_the_log_is_refused),
        cmocka_unit_test(directory_of_something_else_is_refused),
        cmocka_unit_test(every_view_has_rows),
        cmocka_unit_test(a_tree_is_a_job_until_all_of_it_is_taken_away),
        cmocka_unit_test(expired_objects_are_taken_away),
        cmocka_unit_test(a_listed_node_looks_for_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
