/* The state against the naive model, on both stores, over seals, flushes, crashes and reopening. */
#include "model.h"

#include "base/buf.h"
#include "base/fault.h"
#include "base/rcu.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define RETENTION_US 20000

enum way { IN_TURNS, ONE_BATCH, PIECES };

struct fixture {
    struct model model;
    struct kv_store *store;
    struct kv_state *state, *twin; /* the twin stays in memory as a whole */
    struct kv_store *twin_store;
    hlc_ts oldest; /* of snapshots that are still readable */
    unsigned flushes, pauses;
    enum way way; /* of flushes */
    char dir[64]; /* empty: store_mem */
};

static const struct kv_state_options options = {
    .shard = 3, .memtable_bytes = 1u << 20, .retention_us = RETENTION_US};

static void store_open(struct fixture *f)
{
    static const struct kv_store_options o = {
        .block_cache_bytes = 1u << 20, .write_buffer_bytes = 1u << 20, .background_threads = 1};
    struct err err;

    if (f->dir[0] == 0)
        f->store = kv_store_new_mem();
    else
        assert_int_equal(kv_store_open_rocks(f->dir, &o, &f->store, &err), ST_OK);
    kv_store_keep_runs(f->store, 256 << 10);
}

static void fixture_init(struct fixture *f, uint64_t seed, bool rocks)
{
    struct err err;

    memset(f, 0, sizeof *f);
    model_init(&f->model, seed, 4000);
    if (rocks) {
        snprintf(f->dir, sizeof f->dir, "/tmp/metadb-test-XXXXXX");
        assert_non_null(mkdtemp(f->dir));
    }
    store_open(f);
    f->twin_store = kv_store_new_mem();
    assert_int_equal(kv_state_open(f->store, &options, &f->state, &err), ST_OK);
    assert_int_equal(kv_state_open(f->twin_store, &options, &f->twin, &err), ST_OK);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *w)
{
    (void)st;
    (void)kind;
    (void)w;
    return remove(path);
}

static void fixture_fini(struct fixture *f)
{
    kv_state_close(f->state);
    kv_state_close(f->twin);
    kv_store_close(f->store);
    kv_store_close(f->twin_store);
    model_fini(&f->model);
    if (f->dir[0] != 0)
        nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    rcu_quiescent();
}

/* What a power cut leaves, then the log from there on. */
static void crash(struct fixture *f)
{
    struct err err;

    kv_state_close(f->state);
    if (f->dir[0] == 0) {
        kv_store_mem_crash(f->store);
    } else {
        kv_store_close(f->store);
        store_open(f);
    }
    assert_int_equal(kv_state_open(f->store, &options, &f->state, &err), ST_OK);
    assert_int_equal(kv_state_persisted_index(f->state), kv_state_record(f->state)->applied_index);
    f->oldest =
        kv_state_applied_ts(f->state) > f->oldest ? kv_state_applied_ts(f->state) : f->oldest;
    model_replay(&f->model, f->state);
}

static void count_pause(void *arg)
{
    ++*(unsigned *)arg;
}

static status flush_one(struct fixture *f)
{
    hlc_ts due = kv_state_flush_due(f->state);
    struct kv_flush *flush = kv_flush_new(f->state, model_last_ts(&f->model));
    hlc_ts seal = due - hlc_from_us(RETENTION_US);
    status st;

    if (flush == NULL) {
        assert_true(due == 0 || due > model_last_ts(&f->model));
        return ST_END;
    }
    assert_null(kv_flush_new(f->state, HLC_MAX)); /* one at a time */
    char dir[sizeof f->dir + 8];
    snprintf(dir, sizeof dir, "%s-flush", f->dir[0] != 0 ? f->dir : "memory");
    if (f->way == PIECES || (f->way == IN_TURNS && f->flushes++ % 2 == 1))
        kv_flush_in_pieces(
            flush, &(struct kv_flush_pieces){.dir = dir, .pause = count_pause, .arg = &f->pauses});
    st = kv_flush_run(flush);
    kv_flush_done(flush, st);
    f->oldest = seal > f->oldest ? seal : f->oldest;
    return st;
}

static uint64_t hash_of(struct kv_state *s)
{
    uint64_t h;

    assert_int_equal(kv_state_hash(s, NULL, &h), ST_OK);
    return h;
}

static void check_all(struct fixture *f)
{
    struct model *m = &f->model;
    hlc_ts newest = model_last_ts(m);
    hlc_ts span = newest - f->oldest;

    model_check(m, f->state, HLC_MAX, model_random(m, 2) == 0);
    rcu_online();
    if (f->oldest > 0 && span > 0)
        model_check(m, f->state, f->oldest + model_random(m, span + 1), false);
    model_check_queue(m, f->state);
    assert_true(hash_of(f->state) == hash_of(f->twin));
}

static void steps(struct fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        model_step(&f->model);
    model_replay(&f->model, f->state);
    model_replay(&f->model, f->twin);
}

static void run_random(uint64_t seed, bool rocks, unsigned rounds)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    fixture_init(f, seed, rocks);
    f->oldest = 1;
    for (unsigned round = 0; round < rounds; round++) {
        struct model *m = &f->model;

        steps(f, 1 + (unsigned)model_random(m, 20));
        switch (model_random(m, rocks ? 40 : 12)) {
        case 0: crash(f); break;
        case 1:
        case 2:
        case 3:
        case 4: kv_state_seal(f->state, true); break;
        case 5:
        case 6:
        case 7: assert_in_range(flush_one(f), ST_OK, ST_END); break;
        default: break;
        }
        check_all(f);
        rcu_quiescent();
    }
    assert_true(f->flushes < 3 || f->pauses > 0);
    fixture_fini(f);
    free(f);
}

static void state_equals_model_on_store_mem(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 20; seed++)
        run_random(seed, false, 150);
}

static void state_equals_model_on_rocksdb(void **unused)
{
    (void)unused;
    for (uint64_t seed = 100; seed < 103; seed++)
        run_random(seed, true, 150);
}

/* Every step of a flush fails once; then it is tried again, or the machine stops. */
static void failed_flush_leaves_state_whole(void **unused)
{
    static const struct {
        const char *site;
        enum way way;
        status fails;
    } sites[] = {
        {"kv.flush.build", ONE_BATCH, ST_IO},     {"kv.flush.write", ONE_BATCH, ST_IO},
        {"kv.flush.sync", ONE_BATCH, ST_IO},      {"kv.flush.done", ONE_BATCH, ST_IO},
        {"store.mem.write", ONE_BATCH, ST_IO},    {"store.mem.flush", ONE_BATCH, ST_IO},
        {"kv.flush.build", PIECES, ST_IO},        {"kv.flush.write", PIECES, ST_IO},
        {"kv.flush.sync", PIECES, ST_IO},         {"kv.flush.done", PIECES, ST_IO},
        {"store.mem.seal", PIECES, ST_IO},        {"store.mem.ingest", PIECES, ST_IO},
        {"store.mem.load", PIECES, ST_DISK_FULL},
    };
#ifndef METADB_FAULTS
    skip();
#endif
    (void)unused;
    for (unsigned i = 0; i < 4 * sizeof sites / sizeof sites[0]; i++) {
        struct fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        fixture_init(f, 1000 + i % 24, false); /* whose time passes as below */
        f->oldest = 1;
        f->way = sites[i / 4].way;
        for (unsigned round = 0; round < 9; round++) {
            status st, fails = sites[i / 4].fails;

            steps(f, 30);
            kv_state_seal(f->state, true);
            fault_arm(sites[i / 4].site, "error", 1);
            st = flush_one(f);
            assert_int_equal(st, round % 3 > 0 ? fails : round == 0 || i & 1 ? ST_END : fails);
            assert_int_equal(fault_fired(), st == fails);
            fault_disarm();
            check_all(f);
            if (i & 1 && round % 3 == 2)
                crash(f);
            if (i & 2)
                assert_in_range(flush_one(f), ST_OK, ST_END);
            check_all(f);
        }
        fixture_fini(f);
        free(f);
    }
}

static unsigned keys_in_store(struct kv_store *store)
{
    static const uint8_t first = 1, last = 0xff;
    struct kv_store_iter *it =
        kv_store_iter_new(store, bytes_make(&first, 1), bytes_make(&last, 1), KV_TIER_ANY);
    unsigned n = 0;

    for (status st = kv_store_iter_seek(it, bytes_make(&first, 1)); st == ST_OK;
         st = kv_store_iter_next(it)) {
        bytes key = kv_store_iter_key(it);
        n += key.data[0] != KV_QUEUE || key.data[4] != 2; /* recent changes do not count */
    }
    kv_store_iter_free(it);
    return n;
}

static void flush_all(struct kv_state *s)
{
    struct kv_flush *flush;

    kv_state_seal(s, true);
    while ((flush = kv_flush_new(s, HLC_MAX)) != NULL) {
        status st = kv_flush_run(flush);

        assert_int_equal(st, ST_OK);
        kv_flush_done(flush, st);
    }
}

static void key_born_and_gone_in_memory_leaves_nothing(void **unused)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s;
    struct kv_state_stats stats;
    struct kv_store_stats written;
    struct arena a;
    struct err err;
    uint64_t index = 0;

    (void)unused;
    arena_init(&a, 4096);
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    for (unsigned i = 0; i < 100; i++) {
        bytes key = kv_key_meta(&a, 1, 5, bytes_str(arena_printf(&a, "f%u", i)));

        index++;
        kv_state_begin(s, index, 1, hlc_from_us((int64_t)index));
        kv_state_put(s, key, BYTES_LIT("x"), true);
        kv_state_end(s);
        index++;
        kv_state_begin(s, index, 1, hlc_from_us((int64_t)index));
        kv_state_delete(s, key, false);
        kv_state_end(s);
    }
    flush_all(s);
    assert_int_equal(keys_in_store(store), 1); /* the shard's record */
    kv_state_stats(s, &stats);
    assert_int_equal(stats.keys_pruned, 100);
    assert_int_equal(stats.tombstones_flushed, 0);
    kv_store_stats(store, &written);
    assert_int_equal(written.keys_deleted, 0);
    assert_int_equal(kv_state_persisted_index(s), index);
    kv_state_close(s);
    kv_store_close(store);
    arena_fini(&a);
}

static void deletion_of_an_older_key_reaches_the_store(void **unused)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s;
    struct arena a;
    struct err err;
    bytes key;

    (void)unused;
    arena_init(&a, 4096);
    key = kv_key_meta(&a, 1, 5, BYTES_LIT("f"));
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    kv_state_begin(s, 1, 1, 1000);
    kv_state_put(s, key, BYTES_LIT("x"), true);
    kv_state_end(s);
    flush_all(s);
    assert_int_equal(keys_in_store(store), 2);
    /* Gone, there again as a fresh key, gone: the store must lose the old row. */
    kv_state_begin(s, 2, 1, 2000);
    kv_state_delete(s, key, false);
    kv_state_end(s);
    kv_state_begin(s, 3, 1, 3000);
    kv_state_put(s, key, BYTES_LIT("y"), true);
    kv_state_end(s);
    kv_state_begin(s, 4, 1, 4000);
    kv_state_delete(s, key, false);
    kv_state_end(s);
    flush_all(s);
    assert_int_equal(keys_in_store(store), 1);
    kv_state_close(s);
    kv_store_close(store);
    arena_fini(&a);
}

static void command_sees_its_own_writes_and_others_do_not(void **unused)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s;
    struct arena a;
    struct err err;
    struct kv_cell cell;
    struct kv_view latest;
    bool deleted;
    bytes key;

    (void)unused;
    arena_init(&a, 4096);
    key = kv_key_meta(&a, 1, 5, BYTES_LIT("f"));
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    latest = (struct kv_view){.state = s, .at = HLC_MAX, .arena = &a};
    kv_state_begin(s, 1, 1, 1000);
    kv_state_put(s, key, BYTES_LIT("x"), true);
    assert_int_equal(kv_state_get(&latest, key, &cell), ST_OK);
    assert_int_equal(kv_state_applied_ts(s), 0);
    kv_state_end(s);
    assert_int_equal(kv_state_applied_ts(s), 1000);
    assert_int_equal(kv_state_get(&latest, key, &cell), ST_OK);
    assert_int_equal(cell.ts, 1000);
    assert_true(bytes_eq(cell.row, BYTES_LIT("x")));
    latest.at = 999;
    assert_int_equal(kv_state_get(&latest, key, &cell), ST_NOT_FOUND);
    assert_int_equal(kv_state_newer(s, key, 999, &deleted), 1000);
    assert_false(deleted);
    assert_int_equal(kv_state_newer(s, key, 1000, &deleted), 0);
    kv_state_close(s);
    kv_store_close(store);
    arena_fini(&a);
}

static void snapshot_older_than_the_store_is_refused(void **unused)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s;
    struct arena a;
    struct err err;
    struct kv_cell cell;
    struct kv_view v;
    bytes key;

    (void)unused;
    arena_init(&a, 4096);
    key = kv_key_meta(&a, 1, 5, BYTES_LIT("f"));
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    kv_state_begin(s, 1, 1, 1000);
    kv_state_put(s, key, BYTES_LIT("x"), true);
    kv_state_end(s);
    kv_state_begin(s, 2, 1, 2000);
    kv_state_put(s, key, BYTES_LIT("y"), false);
    kv_state_end(s);
    flush_all(s);
    v = (struct kv_view){.state = s, .at = 1000, .arena = &a};
    assert_int_equal(kv_state_get(&v, key, &cell), ST_CONFLICT);
    v.at = 2000;
    assert_int_equal(kv_state_get(&v, key, &cell), ST_OK);
    kv_state_close(s);
    kv_store_close(store);
    arena_fini(&a);
}

static bytes file_key(struct arena *a, unsigned i)
{
    return kv_key_meta(a, 1, 5, bytes_str(arena_printf(a, "f%03u", i)));
}

/* Files FROM to TO come or go with the command INDEX at STAMP, and everything is flushed. */
static void files_change(struct kv_state *s, struct arena *a, uint64_t index, hlc_ts stamp,
                         unsigned from, unsigned to, bool come)
{
    kv_state_begin(s, index, 1, stamp);
    for (unsigned i = from; i < to; i++) {
        if (come)
            kv_state_put(s, file_key(a, i), BYTES_LIT("x"), false);
        else
            kv_state_delete(s, file_key(a, i), false);
    }
    kv_state_end(s);
    flush_all(s);
}

static bool count_entry(void *arg, bytes key, const struct kv_cell *cell)
{
    unsigned *n = arg;

    (void)key;
    (void)cell;
    return ++*n % 256 != 0;
}

/* What was deleted and flushed is missed by whoever reads at a stamp before it: in a scan that was
 * under way, also where the rest is gone, in a new one, and at one key. */
static void missing_rows_are_no_end(bool runs, bool each)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_view v = {.at = 1000};
    struct kv_scan *scan;
    struct kv_state *s;
    struct kv_cell cell;
    struct arena a;
    struct err err;
    unsigned n = 0;
    bytes key, lower, upper;
    status st;

    arena_init(&a, 4096);
    if (runs)
        kv_store_keep_runs(store, 1u << 20);
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    v.state = s;
    v.arena = &a;
    lower = kv_key_meta(&a, 1, 5, BYTES_LIT("f"));
    upper = kv_key_meta(&a, 1, 5, BYTES_LIT("g"));
    files_change(s, &a, 1, 1000, 0, 300, true);
    scan = kv_scan_open(&v, lower, upper, false); /* makes the runs */
    while (kv_scan_next(scan, &key, &cell) == ST_OK)
        n++;
    assert_int_equal(n, 300);
    kv_scan_close(scan);
    scan = kv_scan_open(&v, lower, upper, false);
    n = 0;
    if (each)
        assert_int_equal(kv_scan_each(scan, count_entry, &n), ST_OK);
    else
        for (; n < 256; n++)
            assert_int_equal(kv_scan_next(scan, &key, &cell), ST_OK);
    files_change(s, &a, 2, 5000, 256, 300, false);
    st = each ? kv_scan_each(scan, count_entry, &n) : kv_scan_next(scan, &key, &cell);
    assert_int_equal(st, ST_CONFLICT);
    kv_scan_close(scan);
    scan = kv_scan_open(&v, file_key(&a, 256), upper, false);
    st = each ? kv_scan_each(scan, count_entry, &n) : kv_scan_next(scan, &key, &cell);
    assert_int_equal(st, ST_CONFLICT);
    kv_scan_close(scan);
    assert_int_equal(kv_state_get(&v, file_key(&a, 256), &cell), ST_CONFLICT);
    kv_state_close(s);
    kv_store_close(store);
    arena_fini(&a);
}

static void rows_missing_at_an_old_snapshot_are_no_end(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 4; i++)
        missing_rows_are_no_end((i & 1) != 0, (i & 2) != 0);
}

static void cold_store_is_reported_and_memory_still_answers(void **unused)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s;
    struct arena a;
    struct err err;
    struct kv_cell cell;
    struct kv_view v;
    struct kv_scan *scan;
    bytes old_key, new_key, key;

    (void)unused;
    arena_init(&a, 4096);
    old_key = kv_key_meta(&a, 1, 5, BYTES_LIT("old"));
    new_key = kv_key_meta(&a, 1, 5, BYTES_LIT("new"));
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    kv_state_begin(s, 1, 1, 1000);
    kv_state_put(s, old_key, BYTES_LIT("x"), true);
    kv_state_end(s);
    flush_all(s);
    kv_state_begin(s, 2, 1, 2000);
    kv_state_put(s, new_key, BYTES_LIT("y"), true);
    kv_state_end(s);
    kv_store_mem_set_cold(store, true);
    v = (struct kv_view){.state = s, .at = HLC_MAX, .tier = KV_TIER_CACHE, .arena = &a};
    assert_int_equal(kv_state_get(&v, old_key, &cell), ST_COLD);
    assert_int_equal(kv_state_get(&v, new_key, &cell), ST_OK);
    scan = kv_scan_open(&v, kv_key_meta(&a, 1, 5, BYTES_EMPTY), kv_key_meta(&a, 1, 6, BYTES_EMPTY),
                        false);
    assert_int_equal(kv_scan_next(scan, &key, &cell), ST_COLD);
    kv_scan_close(scan);
    v.tier = KV_TIER_ANY;
    assert_int_equal(kv_state_get(&v, old_key, &cell), ST_OK);
    kv_state_close(s);
    kv_store_close(store);
    arena_fini(&a);
}

/* One command of PUSH items or ACK at STAMP. */
static void queue_command(struct kv_state *s, hlc_ts stamp, hlc_ts ack)
{
    kv_state_begin(s, kv_state_record(s)->applied_index + 1, 1, stamp);
    if (ack > 0)
        kv_state_queue_ack(s, ack);
    else
        kv_state_queue_push(s, BYTES_LIT("items"));
    kv_state_end(s);
}

static void acknowledged_items_leave_the_store(void **unused)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s;
    struct err err;

    (void)unused;
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    queue_command(s, 1000, 0);
    queue_command(s, 2000, 0);
    queue_command(s, 3000, 0);
    flush_all(s);
    assert_int_equal(keys_in_store(store), 4); /* and the record */
    queue_command(s, 4000, 2000);
    queue_command(s, 5000, 2000); /* twice does no harm */
    assert_int_equal(kv_state_queue_length(s), 1);
    flush_all(s);
    assert_int_equal(keys_in_store(store), 2);
    /* Pushed and acknowledged in one generation: never stored. */
    queue_command(s, 6000, 0);
    queue_command(s, 7000, 6000);
    flush_all(s);
    assert_int_equal(keys_in_store(store), 1);
    kv_state_close(s);
    kv_store_close(store);
}

static void idle_generation_is_not_sealed(void **unused)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s;
    struct err err;

    (void)unused;
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    assert_false(kv_state_seal(s, true));
    kv_state_begin(s, 1, 1, 1000); /* a no-op that moves log time */
    kv_state_end(s);
    assert_false(kv_state_seal(s, true));
    queue_command(s, 2000, 0);
    assert_false(kv_state_seal(s, false)); /* small */
    assert_true(kv_state_seal(s, true));
    assert_true(kv_state_flush_due(s) == 2000 + hlc_from_us(RETENTION_US));
    assert_null(kv_flush_new(s, kv_state_flush_due(s) - 1));
    kv_state_close(s);
    kv_store_close(store);
}

static void scan_counts_what_it_passes_over(void **unused)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s;
    struct kv_scan *scan;
    struct kv_cell cell;
    struct kv_view v;
    struct arena a;
    struct err err;
    bytes key;

    (void)unused;
    arena_init(&a, 4096);
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    v = (struct kv_view){.state = s, .at = HLC_MAX, .arena = &a};
    kv_state_begin(s, 1, 1, 1000);
    for (unsigned i = 0; i < 10; i++)
        kv_state_put(s, kv_key_meta(&a, 1, 5, bytes_str(arena_printf(&a, "f%u", i))),
                     BYTES_LIT("x"), true);
    kv_state_end(s);
    flush_all(s);
    kv_state_begin(s, 2, 1, 2000);
    for (unsigned i = 0; i < 7; i++)
        kv_state_delete(s, kv_key_meta(&a, 1, 5, bytes_str(arena_printf(&a, "f%u", i))), false);
    kv_state_end(s);
    scan = kv_scan_open(&v, kv_key_meta(&a, 1, 5, BYTES_EMPTY), kv_key_meta(&a, 1, 6, BYTES_EMPTY),
                        false);
    assert_int_equal(kv_scan_next(scan, &key, &cell), ST_OK);
    assert_int_equal(kv_scan_skipped(scan), 7);
    assert_int_equal(kv_scan_next(scan, &key, &cell), ST_OK);
    assert_int_equal(kv_scan_next(scan, &key, &cell), ST_OK);
    assert_int_equal(kv_scan_next(scan, &key, &cell), ST_END);
    assert_int_equal(kv_scan_skipped(scan), 7);
    kv_scan_close(scan);
    kv_state_close(s);
    kv_store_close(store);
    arena_fini(&a);
}

enum difference { SAME, OTHER_ROW, OTHER_STAMP, OTHER_DELTA, OTHER_ITEMS, OTHER_COUNTER, OTHERS };

static uint64_t hash_with(enum difference d)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_row dir = {.table = KV_META};
    struct kv_state *s;
    struct arena a;
    struct obuf row;
    struct err err;
    bytes key;
    uint64_t h;

    arena_init(&a, 4096);
    obuf_init(&row);
    for (unsigned c = 0; c < META_COLUMNS; c++)
        dir.col[c] = KV_NULL;
    dir.col[META_NUM_CHILDREN] = kv_int(3);
    kv_row_encode(&dir, &row);
    key = kv_key_attr(&a, 1, 5);
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    kv_state_begin(s, 1, 1, 1000);
    kv_state_put(s, key, bytes_make(row.data, row.size), true);
    kv_state_put(s, kv_key_meta(&a, 1, 5, BYTES_LIT("f")),
                 d == OTHER_ROW ? BYTES_LIT("y") : BYTES_LIT("x"), true);
    kv_state_end(s);
    kv_state_begin(s, 2, 1, d == OTHER_STAMP ? 2001 : 2000);
    kv_state_delete(s, kv_key_meta(&a, 1, 5, BYTES_LIT("f")), false);
    kv_state_put(s, kv_key_meta(&a, 1, 5, BYTES_LIT("g")),
                 d == OTHER_ROW ? BYTES_LIT("y") : BYTES_LIT("x"), true);
    kv_state_delta(s, key, d == OTHER_DELTA ? 2 : 1, 10, 10);
    kv_state_queue_push(s, d == OTHER_ITEMS ? BYTES_LIT("j") : BYTES_LIT("i"));
    kv_state_record_mut(s)->next_file_id += d == OTHER_COUNTER;
    kv_state_end(s);
    h = hash_of(s);
    flush_all(s);
    assert_true(hash_of(s) == h);
    kv_state_close(s);
    kv_store_close(store);
    obuf_fini(&row);
    arena_fini(&a);
    return h;
}

static void hash_tells_states_apart(void **unused)
{
    uint64_t same = hash_with(SAME);

    (void)unused;
    assert_true(hash_with(SAME) == same);
    for (enum difference d = OTHER_ROW; d < OTHERS; d++)
        assert_true(hash_with(d) != same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_sees_its_own_writes_and_others_do_not),
        cmocka_unit_test(key_born_and_gone_in_memory_leaves_nothing),
        cmocka_unit_test(deletion_of_an_older_key_reaches_the_store),
        cmocka_unit_test(snapshot_older_than_the_store_is_refused),
        cmocka_unit_test(rows_missing_at_an_old_snapshot_are_no_end),
        cmocka_unit_test(cold_store_is_reported_and_memory_still_answers),
        cmocka_unit_test(acknowledged_items_leave_the_store),
        cmocka_unit_test(idle_generation_is_not_sealed),
        cmocka_unit_test(scan_counts_what_it_passes_over),
        cmocka_unit_test(hash_tells_states_apart),
        cmocka_unit_test(state_equals_model_on_store_mem),
        cmocka_unit_test(failed_flush_leaves_state_whole),
        cmocka_unit_test(state_equals_model_on_rocksdb),
    };
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
