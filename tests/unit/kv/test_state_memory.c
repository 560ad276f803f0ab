/*
 * Memory of a shard's versions while one key is overwritten, with and without a reader that stays:
 * what came within the retention, and no more, however long it goes on.
 *
 *   METADB_HOT_WRITES  overwrites, default 300,000
 */
#include "base/memory.h"
#include "base/rcu.h"
#include "kv/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_US 1000000u
#define STEP_US 60u /* between two commands */
#define RETENTION_US 6000000u
#define MEMTABLE_BYTES (4u << 20)
#define ROW_BYTES 100u
#define VERSION_BYTES (ROW_BYTES + 40u) /* with its head, rounded up */
#define KEPT (RETENTION_US / STEP_US)   /* versions that a reader may still need */
/* A generation ends when its last slab, up to a quarter of it, has just begun. Beside what is kept:
 * the active one and the one that becomes due. */
#define BYTES_MAX ((KEPT * VERSION_BYTES + 2 * MEMTABLE_BYTES) * 5 / 4)
#define BORN 5000u

struct shard {
    struct kv_store *store;
    struct kv_state *state;
    struct arena arena;
    uint64_t index;
    size_t most; /* bytes of memtables, those that are still read included */
};

static void shard_init(struct shard *s)
{
    static const struct kv_state_options o = {
        .shard = 1, .memtable_bytes = MEMTABLE_BYTES, .retention_us = RETENTION_US};
    struct err err;

    *s = (struct shard){.store = kv_store_new_mem()};
    arena_init(&s->arena, 4096);
    assert_int_equal(kv_state_open(s->store, &o, &s->state, &err), ST_OK);
}

static void shard_fini(struct shard *s)
{
    kv_state_close(s->state);
    kv_store_close(s->store);
    arena_fini(&s->arena);
    rcu_quiescent();
}

static void begin(struct shard *s)
{
    s->index++;
    kv_state_begin(s->state, s->index, 1, hlc_from_us((int64_t)(START_US + s->index * STEP_US)));
}

/* What the shard's reactor does at the end of a turn. */
static void turn(struct shard *s)
{
    int64_t held[MEMORY_USES];
    hlc_ts due;

    kv_state_end(s->state);
    if (!kv_state_seal(s->state, false) && s->index % 1000 != 0)
        return;
    while ((due = kv_state_flush_due(s->state)) != 0 && kv_state_applied_ts(s->state) >= due) {
        struct kv_flush *f = kv_flush_new(s->state, kv_state_applied_ts(s->state));
        status st = kv_flush_run(f);

        kv_flush_done(f, st);
        assert_int_equal(st, ST_OK);
    }
    rcu_offline();
    rcu_barrier_all();
    rcu_barrier_all();
    rcu_online();
    memory_held(held);
    s->most = (size_t)held[MEMORY_MEMTABLES] > s->most ? (size_t)held[MEMORY_MEMTABLES] : s->most;
}

static void overwrite(struct shard *s, bytes key, uint64_t count)
{
    uint8_t row[ROW_BYTES] = {0};

    for (uint64_t i = 0; i < count; i++) {
        begin(s);
        memcpy(row, &s->index, sizeof s->index);
        kv_state_put(s->state, key, bytes_make(row, sizeof row), false);
        turn(s);
    }
}

static uint64_t writes(void)
{
    const char *text = getenv("METADB_HOT_WRITES");

    return text != NULL ? strtoull(text, NULL, 10) : 300000;
}

static void test_hot_key(void **state)
{
    struct kv_state_stats stats;
    struct shard s;
    uint64_t n = writes();

    UNUSED(state);
    shard_init(&s);
    overwrite(&s, kv_key_meta(&s.arena, 1, 7, BYTES_LIT("hot")), n);
    kv_state_stats(s.state, &stats);
    printf("%llu overwrites: %zu bytes at most, %llu versions pruned, %llu keys flushed in %llu\n",
           (unsigned long long)n, s.most, (unsigned long long)stats.versions_pruned,
           (unsigned long long)stats.keys_flushed, (unsigned long long)stats.flushes);
    assert_true(s.most <= BYTES_MAX);
    assert_true(s.most >= KEPT * ROW_BYTES); /* the bound is not met by keeping too little */
    assert_true(stats.flushes > 0 && stats.keys_flushed <= 2 * stats.flushes);
    assert_true(stats.versions_pruned + stats.keys_flushed + BYTES_MAX / ROW_BYTES >= n);
    shard_fini(&s);
}

/* A page that somebody holds open longer than the retention keeps what was in memory when it began,
 * and nothing that came later. */
static void test_pinned_reader(void **state)
{
    struct kv_view view;
    struct kv_cell cell;
    struct shard s;
    uint64_t n = writes();
    bytes key;

    UNUSED(state);
    shard_init(&s);
    bytes hot = kv_key_meta(&s.arena, 1, 7, BYTES_LIT("hot"));
    overwrite(&s, hot, n / 2);
    view = (struct kv_view){.state = s.state,
                            .at = kv_state_applied_ts(s.state),
                            .tier = KV_TIER_ANY,
                            .arena = &s.arena};
    struct kv_scan *scan = kv_scan_open(&view, hot, kv_key_successor(&s.arena, hot), false);
    overwrite(&s, hot, n);
    assert_true(s.most <= 2 * BYTES_MAX);
    assert_int_equal(kv_scan_next(scan, &key, &cell), ST_CONFLICT); /* it is told, too */
    kv_scan_close(scan);
    s.most = 0;
    overwrite(&s, hot, n);
    assert_true(s.most <= BYTES_MAX);
    shard_fini(&s);
}

/* Keys that come and go within one generation are never written down. */
static void test_born_and_deleted(void **state)
{
    struct kv_state_stats stats;
    struct shard s;
    char name[16];

    UNUSED(state);
    shard_init(&s);
    for (unsigned i = 0; i < BORN; i++) {
        snprintf(name, sizeof name, "f%06u", i);
        bytes key = kv_key_meta(&s.arena, 1, 7, bytes_str(name));
        begin(&s);
        kv_state_put(s.state, key, BYTES_LIT("row"), true);
        turn(&s);
        begin(&s);
        kv_state_delete(s.state, key, false);
        turn(&s);
        arena_reset(&s.arena);
    }
    assert_true(kv_state_seal(s.state, true));
    overwrite(&s, kv_key_meta(&s.arena, 1, 8, BYTES_LIT("x")), RETENTION_US / STEP_US + 2000);
    kv_state_stats(s.state, &stats);
    assert_true(stats.flushes > 0);
    assert_true(stats.keys_pruned >= BORN);
    assert_int_equal(stats.tombstones_flushed, 0);
    assert_true(stats.keys_flushed <= 2 * stats.flushes);
    shard_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hot_key),
                                       cmocka_unit_test(test_pinned_reader),
                                       cmocka_unit_test(test_born_and_deleted)};
    int failed;

    rcu_thread_register();
    rcu_online();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rcu_offline();
    rcu_barrier_all();
    rcu_barrier_all(); /* a released list releases memtables, which are deferred again */
    rcu_thread_unregister();
    return failed;
}
