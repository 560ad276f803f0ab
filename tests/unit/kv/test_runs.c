/*
 * Runs against the store's own iterator: random batches, left open, written and thrown away between
 * pages that start and end anywhere; then the queues, the bounds and what may not be kept.
 */
#include "base/arena.h"
#include "kv/runs.h"
#include "kv/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define KEYS 3000u
#define STEPS 1500u

struct pair {
    struct kv_store *store;
    uint64_t random;
    uint64_t version; /* of the values written last */
};

static uint64_t below(struct pair *p, uint64_t bound)
{
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return p->random % bound;
}

static bytes key_of(char *buffer, uint64_t i)
{
    int n = snprintf(buffer, 32, "k%06u", (unsigned)i);

    return bytes_make(buffer, (size_t)n);
}

static void put(struct pair *p, struct kv_store_batch *b, uint64_t i)
{
    char key[32], value[64];
    int n = snprintf(value, sizeof value, "%llu:%0*u", (unsigned long long)p->version,
                     (int)below(p, 20), (unsigned)i);

    kv_store_batch_put(b, key_of(key, i), bytes_make(value, (size_t)n));
}

/* A batch of neighbours, or of keys from everywhere. */
static struct kv_store_batch *some_batch(struct pair *p)
{
    struct kv_store_batch *b = kv_store_batch_new(p->store);
    uint64_t first = below(p, KEYS), count = 1 + below(p, 60);
    bool near = below(p, 2) == 0;
    char key[32];

    p->version++;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t k = near ? (first + i) % KEYS : below(p, KEYS);

        if (below(p, 3) == 0)
            kv_store_batch_delete(b, key_of(key, k));
        else
            put(p, b, k);
    }
    return b;
}

/* One page over kept runs is what the store itself shows. */
static void check_page(struct pair *p)
{
    char from[32], to[32], at[32];
    uint64_t a = below(p, KEYS), b = a + 1 + below(p, KEYS - a);
    unsigned limit = 1 + (unsigned)below(p, 700);
    bytes lower = key_of(from, a), upper = key_of(to, b), start = lower;
    struct kv_store_iter *is = kv_store_iter_new_forward(p->store, lower, upper, KV_TIER_ANY);
    struct kv_store_iter *should = kv_store_iter_new(p->store, lower, upper, KV_TIER_ANY);

    if (below(p, 4) == 0)
        start = key_of(at, a + below(p, b - a));
    status st = kv_store_iter_seek(is, start);
    assert_int_equal(st, kv_store_iter_seek(should, start));
    for (unsigned i = 0; st == ST_OK && i < limit; i++) {
        assert_true(bytes_eq(kv_store_iter_key(is), kv_store_iter_key(should)));
        assert_true(bytes_eq(kv_store_iter_value(is), kv_store_iter_value(should)));
        if (below(p, 200) == 0) { /* put elsewhere in the middle of it */
            bytes again = key_of(at, a + below(p, b - a));
            st = kv_store_iter_seek(is, again);
            assert_int_equal(st, kv_store_iter_seek(should, again));
            continue;
        }
        st = kv_store_iter_next(is);
        assert_int_equal(st, kv_store_iter_next(should));
    }
    kv_store_iter_free(is);
    kv_store_iter_free(should);
}

static void pages_with(uint64_t seed, uint64_t bytes_max)
{
    struct pair p = {.store = kv_store_new_mem(), .random = seed};
    struct kv_store_batch *open[2] = {NULL, NULL};
    struct kv_store_stats stats;

    kv_store_keep_runs(p.store, bytes_max);
    for (unsigned i = 0; i < STEPS; i++) {
        struct kv_store_batch **b = &open[below(&p, 2)];

        if (below(&p, 8) != 0) {
            check_page(&p);
        } else if (*b == NULL) {
            *b = some_batch(&p);
        } else {
            if (below(&p, 5) == 0)
                kv_store_batch_free(*b);
            else
                assert_int_equal(kv_store_write(p.store, *b), ST_OK);
            *b = NULL;
        }
    }
    kv_store_stats(p.store, &stats);
    assert_true(stats.run_hits > STEPS / 20);
    assert_true(stats.run_misses > STEPS / 20);
    for (unsigned i = 0; i < 2; i++)
        kv_store_batch_free(open[i]);
    kv_store_close(p.store);
}

static void test_pages_are_the_stores(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        pages_with(seed * 7919, 1 << 20);
        pages_with(seed * 104729, 40 << 10); /* several runs are pushed out all the time */
    }
}

static struct kv_store *filled(uint64_t bytes_max, unsigned keys)
{
    struct pair p = {.store = kv_store_new_mem(), .random = 1};
    struct kv_store_batch *b = kv_store_batch_new(p.store);

    for (unsigned i = 0; i < keys; i++)
        put(&p, b, i);
    assert_int_equal(kv_store_write(p.store, b), ST_OK);
    kv_store_keep_runs(p.store, bytes_max);
    return p.store;
}

static unsigned list_all(struct kv_store *s, unsigned from, unsigned to)
{
    char a[32], b[32];
    struct kv_store_iter *it =
        kv_store_iter_new_forward(s, key_of(a, from), key_of(b, to), KV_TIER_ANY);
    unsigned n = 0;

    for (status st = kv_store_iter_seek(it, key_of(a, from)); st == ST_OK;
         st = kv_store_iter_next(it))
        n++;
    kv_store_iter_free(it);
    return n;
}

static uint64_t iterators(struct kv_store *s)
{
    struct kv_store_stats stats;

    kv_store_stats(s, &stats);
    return stats.iters;
}

static void test_a_second_listing_needs_no_iterator(void **state)
{
    struct kv_store *s = filled(1 << 20, KEYS);
    (void)state;

    assert_int_equal(list_all(s, 100, 2100), 2000);
    uint64_t before = iterators(s);
    assert_int_equal(list_all(s, 100, 2100), 2000);
    assert_int_equal(list_all(s, 333, 1444), 1111);
    assert_int_equal(iterators(s), before);
    assert_int_equal(list_all(s, 50, 2100), 2050); /* 50 of them were not kept */
    assert_int_equal(iterators(s), before + 1);
    assert_int_equal(list_all(s, 50, 2100), 2050);
    assert_int_equal(iterators(s), before + 1);
    kv_store_close(s);
}

/* Pages that begin everywhere leave no gap that each later page would miss. */
static void test_short_gaps_are_closed(void **state)
{
    struct kv_store *s = filled(1 << 20, KEYS);
    struct kv_runs_stats stats;
    (void)state;

    for (unsigned from = 1003; from > 0; from -= from > 3 ? 3 : 1)
        assert_int_equal(list_all(s, from, from + 1000), 1000);
    uint64_t before = iterators(s);
    assert_int_equal(list_all(s, 1, 2003), 2002);
    assert_int_equal(iterators(s), before);
    for (unsigned from = 700; from > 690; from--)
        assert_int_equal(list_all(s, from, from + 1000), 1000);
    assert_int_equal(iterators(s), before);
    kv_runs_stats(s->runs, &stats);
    assert_true(stats.runs < 40); /* of 8 full ones */
    kv_store_close(s);
}

static void test_a_cold_block_is_no_matter_for_a_run(void **state)
{
    struct kv_store *s = filled(1 << 20, KEYS);
    char a[32], b[32];
    (void)state;

    assert_int_equal(list_all(s, 0, 1000), 1000);
    kv_store_mem_set_cold(s, true);
    struct kv_store_iter *it =
        kv_store_iter_new_forward(s, key_of(a, 0), key_of(b, 2000), KV_TIER_CACHE);
    unsigned n = 0;
    status st = kv_store_iter_seek(it, key_of(a, 0));
    for (; st == ST_OK; st = kv_store_iter_next(it))
        n++;
    assert_int_equal(st, ST_COLD);
    assert_int_equal(n, 1000);
    kv_store_iter_free(it);
    kv_store_close(s);
}

static void test_nothing_is_kept_while_a_batch_is_under_way(void **state)
{
    struct kv_store *s = filled(1 << 20, KEYS);
    struct kv_store_stats stats;
    char a[32], b[32];
    (void)state;

    /* begun before the batch, ended after it */
    struct kv_store_iter *it =
        kv_store_iter_new_forward(s, key_of(a, 0), key_of(b, 500), KV_TIER_ANY);
    assert_int_equal(kv_store_iter_seek(it, key_of(a, 0)), ST_OK);
    struct kv_store_batch *batch = kv_store_batch_new(s);
    assert_int_equal(list_all(s, 1000, 1500), 500); /* begun and ended during it */
    assert_int_equal(kv_store_write(s, batch), ST_OK);
    while (kv_store_iter_next(it) == ST_OK)
        ;
    kv_store_iter_free(it);
    kv_store_stats(s, &stats);
    assert_int_equal(stats.runs, 0);
    assert_int_equal(list_all(s, 0, 500), 500);
    kv_store_stats(s, &stats);
    assert_true(stats.runs > 0);
    kv_store_close(s);
}

static uint64_t kept_bytes(struct kv_store *s)
{
    struct kv_runs_stats stats;

    kv_runs_stats(s->runs, &stats);
    assert_true(stats.bytes <= stats.bytes_max);
    return stats.bytes;
}

static void test_one_long_listing_does_not_push_out_what_is_used(void **state)
{
    struct kv_store *s = filled(100 << 10, 40000);
    (void)state;

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(list_all(s, 0, 600), 600);
    assert_int_equal(list_all(s, 600, 40000), 39400);
    assert_true(kept_bytes(s) > 50 << 10);
    uint64_t before = iterators(s);
    assert_int_equal(list_all(s, 0, 600), 600);
    assert_int_equal(iterators(s), before);
    kv_store_close(s);
}

static void test_small_bounds(void **state)
{
    static const uint64_t bounds[] = {1, 500, 4000, 20000};
    (void)state;

    for (unsigned i = 0; i < 4; i++) {
        struct kv_store *s = filled(bounds[i], KEYS);

        for (unsigned k = 0; k < 3; k++)
            assert_int_equal(list_all(s, 0, KEYS), KEYS);
        (void)kept_bytes(s);
        kv_store_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_are_the_stores),
        cmocka_unit_test(test_a_second_listing_needs_no_iterator),
        cmocka_unit_test(test_short_gaps_are_closed),
        cmocka_unit_test(test_a_cold_block_is_no_matter_for_a_run),
        cmocka_unit_test(test_nothing_is_kept_while_a_batch_is_under_way),
        cmocka_unit_test(test_one_long_listing_does_not_push_out_what_is_used),
        cmocka_unit_test(test_small_bounds),
    };
    return cmocka_run_group_tests_name("runs", tests, NULL, NULL);
}
