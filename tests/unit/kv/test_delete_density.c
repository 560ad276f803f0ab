/*
 * Where deletions lie: what is counted goes into narrow ranges, in bounded memory, and comes out
 * as what is worth a compaction; and the same over a shard and its store.
 */
#include "base/arena.h"
#include "kv/delete_density.h"
#include "kv/key.h"
#include "kv/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define DENSE 100u

struct fixture {
    struct kv_density *d;
    struct arena arena;
    uint64_t random;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->d = kv_density_new(DENSE);
    arena_init(&f->arena, 4096);
    f->random = 88172645463325252u;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    kv_density_free(f->d);
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static uint64_t below(struct fixture *f, uint64_t bound)
{
    f->random ^= f->random << 13;
    f->random ^= f->random >> 7;
    f->random ^= f->random << 17;
    return f->random % bound;
}

static bytes name(struct fixture *f, int64_t pid, unsigned i)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%08u", i);

    return kv_key_meta(&f->arena, 1, pid, bytes_make(text, (size_t)n));
}

/* Names FROM to TO of directory PID are deleted by one flush. */
static void deleted(struct fixture *f, struct kv_density *d, int64_t pid, unsigned from,
                    unsigned to)
{
    for (unsigned i = from; i < to; i++)
        kv_density_count(d, name(f, pid, i), true, 7);
}

static unsigned ranges(struct fixture *f)
{
    struct kv_density_range r;
    unsigned n = 0;

    while (kv_density_at(f->d, n, &f->arena, &r))
        n++;
    return n;
}

static void assert_key(bytes found, bytes expected)
{
    assert_int_equal(found.size, expected.size);
    assert_memory_equal(found.data, expected.data, expected.size);
}

static bytes of(const struct obuf *o)
{
    return bytes_make(o->data, o->size);
}

/* Ranges are in order, disjoint and of one table; returns what they count. */
static uint64_t check(struct fixture *f)
{
    struct kv_density_range r, before = {.first = BYTES_EMPTY};
    struct kv_density_counts sum;
    uint64_t tombstones = 0;
    unsigned n;

    for (n = 0; kv_density_at(f->d, n, &f->arena, &r); n++) {
        assert_true(bytes_cmp(r.first, r.last) <= 0);
        assert_true(n == 0 || bytes_cmp(before.last, r.first) < 0);
        assert_memory_equal(r.first.data, r.last.data, KV_KEY_HEADER);
        tombstones += r.counts.tombstones;
        before = r;
    }
    assert_true(n <= KV_DENSITY_RANGES);
    kv_density_sum(f->d, &sum);
    assert_int_equal(sum.tombstones, tombstones);
    return tombstones;
}

static void a_dense_range_is_taken_with_its_neighbours_alone(void **state)
{
    struct fixture *f = *state;
    struct kv_density_span span;

    kv_density_span_init(&span);
    deleted(f, f->d, 5, 0, 10);     /* a few in another directory */
    deleted(f, f->d, 17, 100, 450); /* 100 + 100 + 100 + 50 */
    deleted(f, f->d, 90, 0, 10);
    assert_int_equal(check(f), 370);
    assert_true(kv_density_take(f->d, &span));
    assert_key(of(&span.first), name(f, 17, 100));
    assert_key(of(&span.last), name(f, 17, 449));
    assert_int_equal(span.counts.tombstones, 350);
    assert_int_equal(span.counts.newest, 7);
    assert_int_equal(check(f), 20);
    assert_false(kv_density_take(f->d, &span));
    kv_density_span_fini(&span);
}

static void few_deletions_in_many_directories_are_one_range(void **state)
{
    struct fixture *f = *state;

    for (int64_t pid = 1; pid <= 30; pid++)
        deleted(f, f->d, pid, 0, 2);
    assert_true(ranges(f) <= 10);
    assert_int_equal(check(f), 60);
}

static void directories_with_less_than_it_takes_are_dense_together(void **state)
{
    struct fixture *f = *state;
    struct kv_density_span span;

    kv_density_span_init(&span);
    for (int64_t pid = 1; pid <= 9; pid++)
        deleted(f, f->d, pid, 0, 10);
    assert_false(kv_density_take(f->d, &span));
    for (int64_t pid = 10; pid <= 12; pid++)
        deleted(f, f->d, pid, 0, 10);
    assert_true(kv_density_take(f->d, &span));
    assert_int_equal(span.counts.tombstones, 120);
    assert_key(of(&span.last), name(f, 12, 9));
    kv_density_span_fini(&span);
}

static void keys_that_begin_with_a_text_are_one_group(void **state)
{
    struct fixture *f = *state;

    for (unsigned i = 0; i < 50; i++) {
        struct kv_datum key = kv_text(bytes_str(arena_printf(&f->arena, "%06u", i * 7777)));
        kv_density_count(f->d, kv_key_prefix(&f->arena, 1, KV_KV, &key, 1), true, 1);
    }
    assert_int_equal(ranges(f), 1);
    assert_int_equal(check(f), 50);
}

static void entries_between_deletions_are_counted_and_others_are_not(void **state)
{
    struct fixture *f = *state;
    struct kv_density_range r;

    kv_density_count(f->d, name(f, 17, 0), false, 0);
    kv_density_count(f->d, name(f, 17, 1), true, 3);
    kv_density_count(f->d, name(f, 17, 2), false, 0);
    kv_density_count(f->d, name(f, 17, 3), false, 0);
    kv_density_count(f->d, name(f, 17, 4), true, 4);
    kv_density_count(f->d, name(f, 17, 5), false, 0);
    assert_true(kv_density_at(f->d, 0, &f->arena, &r));
    assert_int_equal(r.counts.tombstones, 2);
    assert_int_equal(r.counts.entries, 2);
    assert_int_equal(r.counts.newest, 4);
    assert_key(r.first, name(f, 17, 1));
    assert_key(r.last, name(f, 17, 4));
    assert_int_equal(ranges(f), 1);
}

static void flushes_add_up_in_ranges_that_lie_across(void **state)
{
    struct fixture *f = *state;
    uint64_t total = 0;

    for (unsigned round = 0; round < 40; round++) {
        struct kv_density *one = kv_density_new(DENSE);
        unsigned from = (unsigned)below(f, 3000), to = from + 1 + (unsigned)below(f, 400);

        deleted(f, one, 17, from, to);
        kv_density_add(f->d, one);
        kv_density_free(one);
        total += to - from;
        assert_int_equal(check(f), total);
    }
}

static void memory_is_bounded_and_nothing_is_lost_when_it_is_full(void **state)
{
    struct fixture *f = *state;
    uint64_t total = 0;

    for (unsigned i = 0; i < 4 * KV_DENSITY_RANGES; i++) {
        int64_t pid = (int64_t)below(f, 1u << 20);
        unsigned n = DENSE / 8 + (unsigned)below(f, DENSE);

        deleted(f, f->d, pid, 0, n);
        total += n;
        assert_int_equal(check(f), total);
        arena_reset(&f->arena);
    }
    assert_int_equal(ranges(f), KV_DENSITY_RANGES);
}

static void what_was_put_back_is_taken_when_it_has_doubled(void **state)
{
    struct fixture *f = *state;
    struct kv_density_span span;
    struct kv_density_range r;

    kv_density_span_init(&span);
    deleted(f, f->d, 17, 0, 150);
    assert_true(kv_density_take(f->d, &span));
    deleted(f, f->d, 17, 100, 160); /* in the meantime */
    kv_density_put_back(f->d, &span);
    assert_int_equal(ranges(f), 1);
    assert_true(kv_density_at(f->d, 0, &f->arena, &r));
    assert_true(r.refused);
    assert_false(r.dense);
    assert_key(r.last, name(f, 17, 159));
    assert_int_equal(check(f), 210);
    assert_false(kv_density_take(f->d, &span));
    deleted(f, f->d, 17, 0, 100);
    assert_true(kv_density_take(f->d, &span));
    assert_int_equal(span.counts.tombstones, 310);
    kv_density_span_fini(&span);
}

static void a_scan_tells_of_what_no_flush_has_counted(void **state)
{
    struct fixture *f = *state;
    struct kv_density_counts sum;
    struct kv_density_span span;

    kv_density_passed(f->d, name(f, 17, 0), name(f, 17, 900), 400);
    assert_int_equal(check(f), 400);
    kv_density_passed(f->d, name(f, 17, 0), name(f, 17, 900), 400); /* the same ones */
    assert_int_equal(check(f), 400);
    kv_density_sum(f->d, &sum);
    assert_int_equal(sum.skipped, 800);
    kv_density_span_init(&span);
    assert_true(kv_density_take(f->d, &span));
    assert_key(of(&span.last), name(f, 17, 900));
    kv_density_span_fini(&span);
}

static void much_is_said_from_before_it_is_there_until_it_is_gone(void **state)
{
    struct fixture *f = *state;
    struct kv_density *one = kv_density_new(DENSE);
    struct kv_density_span span;

    kv_density_span_init(&span);
    deleted(f, one, 17, 0, 2000);
    assert_false(kv_density_much(f->d));
    kv_density_expect(f->d, one);
    assert_true(kv_density_much(f->d));
    kv_density_add(f->d, one);
    while (kv_density_take(f->d, &span))
        assert_true(kv_density_much(f->d));
    kv_density_done(f->d);
    assert_false(kv_density_much(f->d));
    kv_density_span_fini(&span);
    kv_density_free(one);
}

static void what_was_compacted_is_forgotten_and_what_reaches_out_is_not(void **state)
{
    struct fixture *f = *state;

    deleted(f, f->d, 17, 0, 300);
    kv_density_forget(f->d, name(f, 17, 50), name(f, 17, 1000));
    assert_int_equal(check(f), 100);
    kv_density_clear(f->d);
    assert_int_equal(ranges(f), 0);
}

/* -- over a shard ------------------------------------------------------------------------------ */

struct shard {
    char dir[64];
    struct kv_store *store;
    struct kv_state *state;
    uint64_t index;
};

static void open_shard(struct shard *s)
{
    struct kv_store_options so = {.block_cache_bytes = 8 << 20, .write_buffer_bytes = 4 << 20};
    struct kv_state_options o = {.shard = 1, .memtable_bytes = 64 << 20, .dense = DENSE};
    struct err err = {0};

    assert_int_equal(kv_store_open_rocks(s->dir, &so, &s->store, &err), ST_OK);
    assert_int_equal(kv_state_open(s->store, &o, &s->state, &err), ST_OK);
}

static void close_shard(struct shard *s)
{
    kv_state_close(s->state);
    kv_store_close(s->store);
}

static void flush(struct shard *s)
{
    (void)kv_state_seal(s->state, true);
    struct kv_flush *fl = kv_flush_new(s->state, HLC_MAX);

    assert_non_null(fl);
    status st = kv_flush_run(fl);
    assert_int_equal(st, ST_OK);
    kv_flush_done(fl, st);
}

static void change(struct shard *s, bytes key, bool delete)
{
    s->index++;
    kv_state_begin(s->state, s->index, 1, hlc_ms(s->index));
    if (delete)
        kv_state_delete(s->state, key, false);
    else
        kv_state_put(s->state, key, BYTES_LIT("row"), false);
    kv_state_end(s->state);
}

/* Entries of the directory from a scan of it. */
static unsigned listed(struct fixture *f, struct shard *s, int64_t pid)
{
    struct kv_view v = {.state = s->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = &f->arena};
    struct kv_scan *scan = kv_scan_open(
        &v, name(f, pid, 0), kv_key_after_prefix(&f->arena, name(f, pid, 9999999)), false);
    struct kv_cell cell;
    unsigned n = 0;
    bytes key;

    while (kv_scan_next(scan, &key, &cell) == ST_OK)
        n++;
    kv_scan_close(scan);
    return n;
}

static void flushes_and_scans_of_a_shard_count(void **state)
{
    struct fixture *f = *state;
    struct shard s = {.dir = "/tmp/metadb-density-XXXXXX"};
    struct kv_density_counts sum;
    struct kv_store_stats stats;
    char command[128];

    assert_non_null(mkdtemp(s.dir));
    open_shard(&s);
    for (unsigned i = 0; i < 1000; i++)
        change(&s, name(f, 17, i), false);
    flush(&s);
    for (unsigned i = 200; i < 900; i++)
        change(&s, name(f, 17, i), true);
    change(&s, name(f, 17, 450), false); /* and is back */
    flush(&s);
    kv_density_sum(kv_state_density(s.state), &sum);
    assert_int_equal(sum.tombstones, 699);
    assert_int_equal(sum.entries, 1);
    assert_false(kv_density_much(kv_state_density(s.state)));
    kv_store_stats(s.store, &stats);
    assert_int_equal(stats.tombstones, 699);
    assert_int_equal(listed(f, &s, 17), 301);
    close_shard(&s);

    open_shard(&s); /* nothing is known until a scan meets them */
    kv_density_sum(kv_state_density(s.state), &sum);
    assert_int_equal(sum.tombstones, 0);
    for (unsigned i = 0; i < 64; i++) /* one iterator in so many counts */
        assert_int_equal(listed(f, &s, 17), 301);
    kv_density_sum(kv_state_density(s.state), &sum);
    assert_int_equal(sum.tombstones, 699);
    close_shard(&s);
    snprintf(command, sizeof command, "rm -r %s", s.dir);
    assert_int_equal(system(command), 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_dense_range_is_taken_with_its_neighbours_alone),
        TEST(few_deletions_in_many_directories_are_one_range),
        TEST(directories_with_less_than_it_takes_are_dense_together),
        TEST(keys_that_begin_with_a_text_are_one_group),
        TEST(entries_between_deletions_are_counted_and_others_are_not),
        TEST(flushes_add_up_in_ranges_that_lie_across),
        TEST(memory_is_bounded_and_nothing_is_lost_when_it_is_full),
        TEST(what_was_put_back_is_taken_when_it_has_doubled),
        TEST(a_scan_tells_of_what_no_flush_has_counted),
        TEST(much_is_said_from_before_it_is_there_until_it_is_gone),
        TEST(what_was_compacted_is_forgotten_and_what_reaches_out_is_not),
        TEST(flushes_and_scans_of_a_shard_count),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
