/*
 * Readers on other threads while the owner applies, seals and flushes. The owner creates files in
 * one directory, two a command, so what a reader may see is known from the stamp alone: the files
 * 0 .. 2k-1 without a hole, and a counter that is neither behind nor counted twice.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/rcu.h"
#include "kv/state.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define COMMANDS 6000u
#define PAGE 500u /* even: a page that ends early ends with a whole command */
#define FIRST_TS hlc_from_us(1000)
#define STEP_TS hlc_from_us(10)

struct shared {
    struct kv_state *state;
    _Atomic(struct kv_flush *) to_flush; /* owner -> flusher */
    _Atomic int flushed;                 /* flusher -> owner: a status, -1 = none */
    _Atomic bool stop;
    _Atomic uint64_t checks, bad;
};

static bytes name_key(struct arena *a, unsigned i)
{
    return kv_key_meta(a, 1, 5, bytes_str(arena_printf(a, "file%06u", i)));
}

static unsigned number_of(bytes key)
{
    unsigned n = 0;

    for (size_t i = key.size - 6; i < key.size; i++)
        n = n * 10 + key.data[i] - '0';
    return n;
}

/* Files that exist at stamp TS. */
static unsigned files_at(hlc_ts ts)
{
    return ts < FIRST_TS ? 0 : 2 * (unsigned)((ts - FIRST_TS) / STEP_TS);
}

static void note(struct shared *s, bool ok)
{
    if (!ok)
        atomic_fetch_add(&s->bad, 1);
}

static void check_counter(struct shared *s, const struct kv_view *v)
{
    unsigned before = files_at(kv_state_applied_ts(s->state)), after;
    struct kv_cell cell;
    status st = kv_state_get(v, kv_key_attr(v->arena, 1, 5), &cell);

    after = files_at(kv_state_applied_ts(s->state));
    /* A command under way may be counted already. */
    note(s, st == ST_OK && cell.aggregated && cell.num_children >= (int64_t)before &&
                cell.num_children <= (int64_t)after + 2 && cell.mtime == cell.num_children);
}

static void check_scan(struct shared *s, const struct kv_view *v, bool backwards)
{
    unsigned before = files_at(kv_state_applied_ts(s->state)), n = 0, first = 0;
    struct kv_scan *scan = kv_scan_open(v, kv_key_meta(v->arena, 1, 5, BYTES_LIT("file")),
                                        kv_key_meta(v->arena, 1, 6, BYTES_EMPTY), backwards);
    struct kv_cell cell;
    bytes key;
    status st;

    while ((st = kv_scan_next(scan, &key, &cell)) == ST_OK && n < PAGE) {
        unsigned i = number_of(key);

        if (n == 0)
            first = i;
        note(s, i == (backwards ? first - n : n));
        n++;
    }
    kv_scan_close(scan);
    note(s, st == ST_OK || st == ST_END);
    note(s, n % 2 == 0); /* both files of a command or none */
    if (backwards)
        note(s, before == 0 || first + 1 >= before);
    else
        note(s, n >= (before < PAGE ? before : PAGE));
}

static void check_snapshot(struct shared *s, const struct kv_view *latest)
{
    struct kv_view v = *latest;
    unsigned n;
    struct kv_cell cell;
    status st;

    v.at = kv_state_applied_ts(s->state);
    n = files_at(v.at);
    st = kv_state_get(&v, name_key(v.arena, n), &cell); /* the next one: not there yet */
    note(s, st == ST_NOT_FOUND || st == ST_CONFLICT);
    if (n > 0) {
        st = kv_state_get(&v, name_key(v.arena, n - 1), &cell);
        note(s, st == ST_OK || st == ST_CONFLICT);
    }
}

static void *reader(void *arg, bool pool)
{
    struct shared *s = arg;
    struct arena a;
    struct kv_view v = {
        .state = s->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .pool = pool, .arena = &a};

    rcu_thread_register();
    arena_init(&a, 65536);
    for (unsigned i = 0; !atomic_load(&s->stop); i++) {
        if (!pool)
            rcu_online();
        check_counter(s, &v);
        check_snapshot(s, &v);
        if (i % 8 == 0)
            check_scan(s, &v, i % 16 == 0);
        arena_reset(&a);
        atomic_fetch_add(&s->checks, 1);
        if (!pool)
            rcu_offline();
    }
    arena_fini(&a);
    rcu_thread_unregister();
    return NULL;
}

static void *pool_reader(void *arg)
{
    return reader(arg, true);
}

static void *reactor_reader(void *arg)
{
    return reader(arg, false);
}

static void *flusher(void *arg)
{
    struct shared *s = arg;

    rcu_thread_register();
    while (!atomic_load(&s->stop)) {
        struct kv_flush *f = atomic_exchange(&s->to_flush, NULL);

        if (f != NULL)
            atomic_store(&s->flushed, (int)kv_flush_run(f));
    }
    rcu_thread_unregister();
    return NULL;
}

static void put_dir(struct kv_state *s, struct arena *a, int64_t children)
{
    struct kv_row row = {.table = KV_META};
    struct obuf o;

    obuf_init(&o);
    for (unsigned c = 0; c < META_COLUMNS; c++)
        row.col[c] = KV_NULL;
    row.col[META_ID] = kv_int(5);
    row.col[META_TYPE] = kv_int(KV_TYPE_DIR);
    row.col[META_NUM_CHILDREN] = row.col[META_MTIME] = kv_int(children);
    kv_row_encode(&row, &o);
    kv_state_put(s, kv_key_attr(a, 1, 5), bytes_make(o.data, o.size), children == 0);
    obuf_fini(&o);
}

static void finish_flush(struct shared *s, struct kv_flush **running)
{
    int st = atomic_exchange(&s->flushed, -1);

    if (*running == NULL || st < 0)
        return;
    kv_flush_done(*running, (status)st);
    *running = NULL;
    note(s, st == ST_OK);
}

static uint64_t generations(const struct shared *s)
{
    struct kv_state_stats stats;

    kv_state_stats(s->state, &stats);
    return stats.generations;
}

/* At most four generations wait for the flusher, so that it works beside every part of the run. */
static void owner(struct shared *s)
{
    struct kv_flush *running = NULL;
    hlc_ts ts = FIRST_TS;
    struct arena a;

    arena_init(&a, 4096);
    for (unsigned i = 0; i < COMMANDS || running != NULL || atomic_load(&s->checks) < 20; i++) {
        arena_reset(&a);
        if (i < COMMANDS) {
            ts += STEP_TS;
            kv_state_begin(s->state, i + 2, 1, ts);
            kv_state_put(s->state, name_key(&a, 2 * i), BYTES_LIT("row"), true);
            kv_state_put(s->state, name_key(&a, 2 * i + 1), BYTES_LIT("row"), true);
            if (i % 1000 == 700) /* chmod: an image in between */
                put_dir(s->state, &a, 2 * i + 2);
            else
                kv_state_delta(s->state, kv_key_attr(&a, 1, 5), 2, 2 * i + 2, 2 * i + 2);
            kv_state_end(s->state);
            if (i % 150 == 149)
                kv_state_seal(s->state, true);
        }
        do {
            finish_flush(s, &running);
            if (running == NULL && i < COMMANDS && (running = kv_flush_new(s->state, ts)) != NULL)
                atomic_store(&s->to_flush, running);
            rcu_quiescent();
        } while (running != NULL && generations(s) > 4);
    }
    arena_fini(&a);
}

static void readers_across_flushes(bool runs)
{
    static const struct kv_state_options o = {.shard = 1, .memtable_bytes = 1u << 30};
    struct shared s = {.flushed = -1};
    struct kv_store *store = kv_store_new_mem();
    pthread_t threads[3];
    struct kv_state_stats stats;
    struct arena a;
    struct err err;

    arena_init(&a, 4096);
    if (runs)
        kv_store_keep_runs(store, 64 << 10);
    assert_int_equal(kv_state_open(store, &o, &s.state, &err), ST_OK);
    kv_state_begin(s.state, 1, 1, FIRST_TS);
    put_dir(s.state, &a, 0);
    kv_state_end(s.state);
    assert_int_equal(pthread_create(&threads[0], NULL, pool_reader, &s), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, reactor_reader, &s), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, flusher, &s), 0);
    owner(&s);
    atomic_store(&s.stop, true);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&s.bad), 0);
    kv_state_stats(s.state, &stats);
    assert_true(stats.flushes > 30);
    kv_state_close(s.state);
    kv_store_close(store);
    arena_fini(&a);
}

static void readers_see_whole_commands_across_flushes(void **unused)
{
    (void)unused;
    readers_across_flushes(false);
}

static void readers_of_kept_runs_see_whole_commands_too(void **unused)
{
    (void)unused;
    readers_across_flushes(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_whole_commands_across_flushes),
        cmocka_unit_test(readers_of_kept_runs_see_whole_commands_too),
    };
    int failed;

    rcu_thread_register();
    rcu_online();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    rcu_offline();
    rcu_barrier_all();
    rcu_barrier_all();
    rcu_thread_unregister();
    return failed;
}
