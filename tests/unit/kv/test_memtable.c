/* The memtable against a sorted array, and its promises to readers on other threads. */
#include "base/arena.h"
#include "base/codec.h"
#include "base/rcu.h"
#include "kv/key.h"
#include "kv/memtable.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t next_random(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* Keys of several shapes: few distinct bytes (long common prefixes, keys that begin each other,
 * zeros and 0xff), directories with counted names, and uniform ones. */
static bytes random_key(struct arena *a, uint64_t *seed)
{
    uint64_t r = next_random(seed);
    size_t size = 1 + r % 40;
    uint8_t *p;

    switch (r >> 60) {
    case 0:
    case 1:
    case 2:
    case 3:
        p = arena_alloc(a, size);
        for (size_t i = 0; i < size; i++)
            p[i] = (uint8_t)(next_random(seed) % 3 == 0 ? 0xff : next_random(seed) % 2);
        return bytes_make(p, size);
    case 4:
    case 5:
        p = arena_alloc(a, size);
        for (size_t i = 0; i < size; i++)
            p[i] = (uint8_t)next_random(seed);
        return bytes_make(p, size);
    default:
        return kv_key_meta(a, (uint32_t)(r % 2), (int64_t)(r >> 8) % 7,
                           bytes_str(arena_printf(a, "file-%06u", (unsigned)(r >> 16) % 3000)));
    }
}

#define MANY 6000u

struct naive {
    bytes key;
    hlc_ts ts[4]; /* newest first */
    unsigned versions;
    int64_t children;
    bool delta;
};

struct naive_map {
    struct naive at[MANY];
    unsigned count;
};

static unsigned rank(const struct naive_map *n, bytes key)
{
    unsigned low = 0, high = n->count;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (bytes_cmp(n->at[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct naive *naive_entry(struct naive_map *n, bytes key)
{
    unsigned at = rank(n, key);

    if (at < n->count && bytes_eq(n->at[at].key, key))
        return &n->at[at];
    assert_true(n->count < MANY);
    memmove(&n->at[at + 1], &n->at[at], (n->count - at) * sizeof n->at[0]);
    n->count++;
    n->at[at] = (struct naive){.key = key};
    return &n->at[at];
}

static void check_entry(const struct kv_mem_entry *e, const struct naive *want)
{
    const struct kv_version *v;
    struct kv_delta d;

    assert_non_null(e);
    assert_true(bytes_eq(kv_mem_entry_key(e), want->key));
    kv_mem_entry_read(e, &v, &d);
    assert_int_equal(d.present, want->delta);
    assert_int_equal(d.children, want->children);
    for (unsigned i = 0; i < want->versions; i++, v = v->older) {
        assert_non_null(v);
        assert_true(v->ts == want->ts[i]);
        assert_int_equal(v->size, 8);
        assert_memory_equal(v->data, &v->ts, 8);
    }
    if (want->versions < 4)
        assert_null(v);
}

static void random_write(struct kv_memtable *m, struct naive_map *n, bytes key, hlc_ts ts,
                         uint64_t what)
{
    struct naive *e = naive_entry(n, key);

    if (what % 5 == 0) {
        kv_memtable_delta(m, key, (int64_t)(what % 17), 1, 2, ts);
        e->children += (int64_t)(what % 17);
        e->delta = true;
        return;
    }
    kv_memtable_put(m, key, ts, what % 7 == 0, false, bytes_make(&ts, 8));
    memmove(&e->ts[1], &e->ts[0], 3 * sizeof e->ts[0]);
    e->ts[0] = ts;
    e->versions += e->versions < 4;
    e->children = 0;
    e->delta = false;
}

static void check_walks(const struct kv_memtable *m, const struct naive_map *n, bytes from,
                        bytes to, uint64_t *seed)
{
    const struct kv_mem_entry *out[64];
    unsigned want = rank(n, from), end = rank(n, to), step = 1 + (unsigned)(next_random(seed) % 64);
    unsigned got = kv_memtable_walk(m, from, to, out, step);

    for (;;) {
        unsigned left = want < end ? end - want : 0;

        assert_int_equal(got, left < step ? left : step);
        for (unsigned i = 0; i < got; i++)
            check_entry(out[i], &n->at[want++]);
        if (got < step)
            break;
        got = kv_memtable_walk_after(m, kv_mem_entry_key(out[got - 1]), to, out, step);
    }
    want = rank(n, to);
    end = rank(n, from);
    for (got = kv_memtable_walk_back(m, to, from, out, step);;
         got = kv_memtable_walk_back(m, kv_mem_entry_key(out[got - 1]), from, out, step)) {
        unsigned left = want > end ? want - end : 0;

        assert_int_equal(got, left < step ? left : step);
        for (unsigned i = 0; i < got; i++)
            check_entry(out[i], &n->at[--want]);
        if (got < step)
            break;
    }
}

static void memtable_equals_sorted_array(void **unused)
{
    struct naive_map *n = malloc(sizeof *n);

    (void)unused;
    assert_non_null(n);
    for (uint64_t round = 0; round < 6; round++) {
        /* without a filter, with one that soon excludes nothing, with one of the right size */
        static const size_t expected[] = {0, 4096, 1 << 20};
        struct kv_memtable *m = kv_memtable_new(expected[round % 3]);
        uint64_t seed = round;
        struct arena a;

        arena_init(&a, 65536);
        n->count = 0;
        for (unsigned i = 1; i < MANY; i++) {
            bytes key = random_key(&a, &seed);

            if (i % 8 == 0 && n->count > 0) /* an old key again */
                key = n->at[next_random(&seed) % n->count].key;
            random_write(m, n, key, i, next_random(&seed));
            if (i % 97 == 0)
                check_walks(m, n, random_key(&a, &seed), random_key(&a, &seed), &seed);
        }
        for (unsigned i = 0; i < n->count; i++)
            check_entry(kv_memtable_find(m, n->at[i].key), &n->at[i]);
        for (unsigned i = 0; i < 1000; i++) {
            bytes key = random_key(&a, &seed);
            unsigned at = rank(n, key);

            if (at == n->count || !bytes_eq(n->at[at].key, key))
                assert_null(kv_memtable_find(m, key));
        }
        assert_int_equal(kv_memtable_entries(m), n->count);
        kv_memtable_unref(m);
        arena_fini(&a);
    }
    free(n);
}

static void ascending_and_descending_keys_are_all_found(void **unused)
{
    struct arena a;

    (void)unused;
    arena_init(&a, 65536);
    for (unsigned down = 0; down < 2; down++) {
        struct kv_memtable *m = kv_memtable_new(4 << 20);
        const struct kv_mem_entry *out[1];

        for (unsigned i = 0; i < 20000; i++) {
            unsigned at = down ? 19999 - i : i;
            bytes key = kv_key_meta(&a, 1, 9, bytes_str(arena_printf(&a, "f.%08u", at)));

            kv_memtable_put(m, key, i + 1, false, true, BYTES_EMPTY);
        }
        for (unsigned i = 0; i < 20000; i++) {
            bytes key = kv_key_meta(&a, 1, 9, bytes_str(arena_printf(&a, "f.%08u", i)));

            assert_non_null(kv_memtable_find(m, key));
            assert_int_equal(kv_memtable_walk_after(m, key, BYTES_EMPTY, out, 1), i < 19999);
        }
        kv_memtable_unref(m);
    }
    arena_fini(&a);
}

static void equal_stamp_replaces_version_of_same_command(void **unused)
{
    struct kv_memtable *m = kv_memtable_new(0);
    const struct kv_version *v;

    (void)unused;
    kv_memtable_put(m, BYTES_LIT("k"), 1, false, true, BYTES_LIT("a"));
    kv_memtable_put(m, BYTES_LIT("k"), 2, false, false, BYTES_LIT("b"));
    kv_memtable_put(m, BYTES_LIT("k"), 2, false, false, BYTES_LIT("c"));
    v = kv_mem_entry_newest(kv_memtable_find(m, BYTES_LIT("k")));
    assert_int_equal(v->data[0], 'c');
    assert_int_equal(v->older->data[0], 'a');
    assert_null(v->older->older);
    assert_true(kv_mem_entry_born_here(kv_memtable_find(m, BYTES_LIT("k"))));
    kv_memtable_unref(m);
}

/* -- readers on other threads ----------------------------------------------------------------- */

#define SHARED 30000u

struct shared {
    struct kv_memtable *m;
    bytes *keys; /* in order of insertion */
    _Atomic unsigned inserted;
    _Atomic bool stop;
    _Atomic uint64_t checks, bad;
};

static void check_order(struct shared *s, bool back)
{
    const struct kv_mem_entry *out[32];
    static const uint8_t low = 0, high = 0xff;
    bytes last = back ? bytes_make(&high, 1) : bytes_make(&low, 1);
    unsigned at_least = atomic_load_explicit(&s->inserted, memory_order_acquire), seen = 0, n;

    do {
        n = back ? kv_memtable_walk_back(s->m, last, BYTES_EMPTY, out, 32)
                 : kv_memtable_walk_after(s->m, last, BYTES_EMPTY, out, 32);
        for (unsigned i = 0; i < n; i++) {
            bytes key = kv_mem_entry_key(out[i]);
            int c = bytes_cmp(last, key);

            if (back ? c <= 0 : c >= 0)
                atomic_fetch_add(&s->bad, 1);
            last = key;
        }
        seen += n;
    } while (n == 32);
    if (seen < at_least)
        atomic_fetch_add(&s->bad, 1);
}

static void *reader(void *arg)
{
    struct shared *s = arg;
    uint64_t seed = (uint64_t)(uintptr_t)&seed;

    while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
        unsigned n = atomic_load_explicit(&s->inserted, memory_order_acquire);

        for (unsigned i = 0; i < 200 && n > 0; i++) {
            /* The youngest are the likeliest to be lost in a split. */
            unsigned back = (unsigned)next_random(&seed) % (i % 2 ? n : n < 20 ? n : 20);
            bytes key = s->keys[n - 1 - back];
            const struct kv_mem_entry *e = kv_memtable_find(s->m, key);

            if (e == NULL || !bytes_eq(kv_mem_entry_key(e), key))
                atomic_fetch_add(&s->bad, 1);
        }
        check_order(s, next_random(&seed) % 2 == 0);
        atomic_fetch_add(&s->checks, 1);
    }
    return NULL;
}

static void readers_never_miss_what_was_inserted(void **unused)
{
    struct shared s = {.m = kv_memtable_new(1 << 20)};
    pthread_t threads[2];
    struct arena a;
    uint64_t seed = 5;

    (void)unused;
    arena_init(&a, 1u << 20);
    s.keys = calloc(SHARED, sizeof *s.keys);
    assert_non_null(s.keys);
    for (unsigned i = 0; i < SHARED; i++) {
        unsigned r = (unsigned)next_random(&seed);

        s.keys[i] = kv_key_meta(&a, 1, r % 5, bytes_str(arena_printf(&a, "n%08x", i % 3 ? r : i)));
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, &s), 0);
    for (unsigned i = 0; i < SHARED; i++) {
        kv_memtable_put(s.m, s.keys[i], i + 1, false, true, BYTES_EMPTY);
        atomic_store_explicit(&s.inserted, i + 1, memory_order_release);
    }
    while (atomic_load(&s.checks) < 4)
        continue;
    atomic_store(&s.stop, true);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&s.bad), 0);
    kv_memtable_unref(s.m);
    free(s.keys);
    arena_fini(&a);
}

/* Image plus delta never goes back and is never counted twice. */
static void *delta_reader(void *arg)
{
    struct shared *s = arg;
    int64_t last = 0;

    while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
        const struct kv_mem_entry *e = kv_memtable_find(s->m, BYTES_LIT("dir"));
        const struct kv_version *v;
        struct kv_delta d;
        int64_t total;

        kv_mem_entry_read(e, &v, &d);
        memcpy(&total, v->data, 8);
        total += d.children;
        if (total < last || total > (int64_t)atomic_load(&s->inserted) + 1)
            atomic_fetch_add(&s->bad, 1);
        last = total;
        atomic_fetch_add(&s->checks, 1);
    }
    return NULL;
}

static void image_and_delta_are_read_as_of_one_moment(void **unused)
{
    struct shared s = {.m = kv_memtable_new(0)};
    int64_t total = 0;
    pthread_t thread;

    (void)unused;
    kv_memtable_put(s.m, BYTES_LIT("dir"), 1, false, true, bytes_make(&total, 8));
    assert_int_equal(pthread_create(&thread, NULL, delta_reader, &s), 0);
    for (hlc_ts ts = 2; ts < 300000; ts++) {
        if (ts % 3 == 0) {
            kv_memtable_put(s.m, BYTES_LIT("dir"), ts, false, false, bytes_make(&total, 8));
            continue;
        }
        total++;
        kv_memtable_delta(s.m, BYTES_LIT("dir"), 1, 0, 0, ts);
        atomic_store(&s.inserted, (unsigned)total);
    }
    while (atomic_load(&s.checks) < 10)
        continue;
    atomic_store(&s.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&s.bad), 0);
    kv_memtable_unref(s.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memtable_equals_sorted_array),
        cmocka_unit_test(ascending_and_descending_keys_are_all_found),
        cmocka_unit_test(equal_stamp_replaces_version_of_same_command),
        cmocka_unit_test(readers_never_miss_what_was_inserted),
        cmocka_unit_test(image_and_delta_are_read_as_of_one_moment),
    };
    int failed;

    rcu_thread_register();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rcu_barrier_all();
    rcu_thread_unregister();
    return failed;
}
