/* The simulated disk: what a power cut, a failed sync, a kill and a full disk leave behind. */
#include "lib/test.h"

#include "base/arena.h"
#include "base/env_sim.h"

#define SEEDS 200

static struct env_file *must_open(struct env *e, const char *path, int flags)
{
    struct env_file *f = NULL;
    assert_int_equal(e->ops->open(e, path, flags, &f), ST_OK);
    return f;
}

static void put(struct env *e, struct env_file *f, const void *src, size_t n, uint64_t at)
{
    struct iovec iov = {(void *)(uintptr_t)src, n};
    assert_int_equal(e->ops->pwritev(e, f, &iov, 1, at), ST_OK);
}

static size_t get(struct env *e, const char *path, uint8_t *dst, size_t n)
{
    struct env_file *f = NULL;
    size_t got = 0;
    if (e->ops->open(e, path, ENV_READ, &f) != ST_OK)
        return 0;
    assert_int_equal(e->ops->pread(e, f, dst, n, 0, &got), ST_OK);
    e->ops->close(e, f);
    return got;
}

static bool exists(struct env *e, const char *path)
{
    struct env_file *f = NULL;
    status st = e->ops->open(e, path, ENV_READ, &f);
    e->ops->close(e, f);
    return st == ST_OK;
}

/* A synced file "/a" of 4 KiB of 'S', its name synced too. */
static struct env *world_with_synced_file(uint64_t seed, struct env_file **f)
{
    static uint8_t block[4096];
    struct env *e = env_sim_new(seed);
    memset(block, 'S', sizeof block);
    *f = must_open(e, "/a", ENV_READ | ENV_WRITE | ENV_CREATE);
    put(e, *f, block, sizeof block, 0);
    assert_int_equal(e->ops->datasync(e, *f), ST_OK);
    assert_int_equal(e->ops->sync_dir(e, "/"), ST_OK);
    return e;
}

static void a_power_cut_keeps_what_was_synced(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct env_file *f;
        struct env *e = world_with_synced_file(seed, &f);
        uint8_t block[2048], after[8192];
        memset(block, 'u', sizeof block);
        put(e, f, block, 1024, 1024); /* inside, and */
        put(e, f, block, 2048, 4096); /* behind the end */
        env_sim_power_cut(e);
        size_t n = get(e, "/a", after, sizeof after);
        assert_in_range(n, 4096, 6144);
        for (size_t i = 0; i < n; i++) {
            bool may_be_new = (i >= 1024 && i < 2048) || i >= 4096;
            if (!may_be_new)
                assert_int_equal(after[i], 'S');
            else if (i < 4096)
                assert_true(after[i] == 'S' || after[i] == 'u');
            else
                assert_true(after[i] == 0 || after[i] == 'u');
        }
        env_sim_free(e);
    }
}

/* Over many seeds every outcome is seen: an unsynced write dropped, torn at sectors, whole; and a
 * later one kept where an earlier one was lost. */
static void unsynced_writes_are_dropped_torn_and_reordered(void **state)
{
    (void)state;
    unsigned dropped = 0, torn = 0, whole = 0, reordered = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct env_file *f;
        struct env *e = world_with_synced_file(seed, &f);
        uint8_t first[2048], second[512], after[4096];
        memset(first, '1', sizeof first);
        memset(second, '2', sizeof second);
        put(e, f, first, sizeof first, 0);
        put(e, f, second, sizeof second, 3072);
        env_sim_power_cut(e);
        assert_int_equal(get(e, "/a", after, sizeof after), 4096);
        unsigned sectors = 0;
        for (size_t s = 0; s < 4; s++) {
            for (size_t i = 1; i < 512; i++)
                assert_int_equal(after[s * 512 + i], after[s * 512]);
            sectors += after[s * 512] == '1';
        }
        dropped += sectors == 0;
        whole += sectors == 4;
        torn += sectors > 0 && sectors < 4;
        reordered += sectors == 0 && after[3072] == '2';
        env_sim_free(e);
    }
    assert_true(dropped > 0);
    assert_true(torn > 0);
    assert_true(whole > 0);
    assert_true(reordered > 0);
}

static void names_that_were_not_synced_may_be_lost(void **state)
{
    (void)state;
    unsigned lost = 0, kept = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct env *e = env_sim_new(seed);
        struct env_file *f = must_open(e, "/new", ENV_WRITE | ENV_CREATE);
        put(e, f, "data", 4, 0);
        assert_int_equal(e->ops->datasync(e, f), ST_OK);
        env_sim_power_cut(e);
        if (exists(e, "/new")) {
            uint8_t data[8];
            assert_int_equal(get(e, "/new", data, sizeof data), 4);
            kept++;
        } else {
            lost++;
        }
        env_sim_free(e);
    }
    assert_true(lost > 0);
    assert_true(kept > 0);
}

/* After write, sync, rename, sync_dir the file is the old one or the new one and nothing else. */
static void atomic_replacement_survives_a_cut_at_any_step(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (unsigned step = 0; step <= 4; step++) {
            struct env *e = env_sim_new(seed);
            assert_int_equal(env_write_file(e, "/", "id", BYTES_LIT("old")), ST_OK);
            struct env_file *f = must_open(e, "/id.tmp", ENV_WRITE | ENV_CREATE);
            if (step >= 1)
                put(e, f, "new!", 4, 0);
            if (step >= 2)
                assert_int_equal(e->ops->datasync(e, f), ST_OK);
            if (step >= 3)
                assert_int_equal(e->ops->rename(e, "/id.tmp", "/id"), ST_OK);
            if (step >= 4)
                assert_int_equal(e->ops->sync_dir(e, "/"), ST_OK);
            env_sim_power_cut(e);
            uint8_t text[8] = {0};
            size_t n = get(e, "/id", text, sizeof text);
            bool is_old = n == 3 && memcmp(text, "old", 3) == 0;
            bool is_new = n == 4 && memcmp(text, "new!", 4) == 0;
            assert_true(step < 3 ? is_old : step == 4 ? is_new : is_old || is_new);
            env_sim_free(e);
        }
    }
}

/* The rename is synced by one directory; the creation before it, which it builds on, goes with it
 * and does not come back later. */
static void a_synced_rename_takes_along_what_it_builds_on(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct env *e = env_sim_new(seed);
        assert_int_equal(e->ops->mkdir(e, "/a"), ST_OK);
        assert_int_equal(e->ops->mkdir(e, "/b"), ST_OK);
        assert_int_equal(e->ops->sync_dir(e, "/"), ST_OK);
        e->ops->close(e, must_open(e, "/a/x", ENV_WRITE | ENV_CREATE));
        assert_int_equal(e->ops->rename(e, "/a/x", "/b/x"), ST_OK);
        assert_int_equal(e->ops->sync_dir(e, "/b"), ST_OK);
        env_sim_power_cut(e);
        assert_true(exists(e, "/b/x"));
        assert_false(exists(e, "/a/x"));
        env_sim_free(e);
    }
}

static void a_failed_sync_loses_what_it_was_for(void **state)
{
    (void)state;
    unsigned lost = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct env_file *f;
        struct env *e = world_with_synced_file(seed, &f);
        uint8_t after[4096];
        put(e, f, "A", 1, 0);
        env_sim_fail_next_sync(e, ST_IO);
        assert_int_equal(e->ops->datasync(e, f), ST_IO);
        put(e, f, "B", 1, 1);
        assert_int_equal(e->ops->datasync(e, f), ST_OK);
        env_sim_power_cut(e);
        get(e, "/a", after, sizeof after);
        lost += after[0] == 'S';
        assert_int_equal(after[1], 'B');
        env_sim_free(e);
    }
    assert_true(lost > 0);
}

static void a_kill_keeps_all_writes_and_frees_the_lock(void **state)
{
    (void)state;
    struct env_file *f;
    struct env *e = world_with_synced_file(1, &f);
    uint8_t after[4096];
    put(e, f, "killed", 6, 0);
    assert_int_equal(e->ops->lock(e, "/LOCK"), ST_OK);
    env_sim_kill(e);
    struct iovec iov = {"x", 1};
    assert_int_equal(e->ops->pwritev(e, f, &iov, 1, 0), ST_IO);
    assert_int_equal(e->ops->datasync(e, f), ST_IO);
    get(e, "/a", after, sizeof after);
    assert_memory_equal(after, "killed", 6);
    assert_int_equal(e->ops->lock(e, "/LOCK"), ST_OK);
    e->ops->close(e, f);
    env_sim_free(e);
}

static void a_full_disk_refuses_growth_only(void **state)
{
    (void)state;
    struct env_file *f;
    struct env *e = world_with_synced_file(1, &f);
    env_sim_set_capacity(e, 5000);
    struct iovec iov = {"0123456789", 10};
    assert_int_equal(e->ops->pwritev(e, f, &iov, 1, 4995), ST_DISK_FULL);
    assert_int_equal(e->ops->zero_fill(e, f, 6000), ST_DISK_FULL);
    assert_int_equal(e->ops->pwritev(e, f, &iov, 1, 4086), ST_OK);
    assert_int_equal(e->ops->pwritev(e, f, &iov, 1, 4990), ST_OK);
    env_sim_free(e);
}

static void note_power(void *arg)
{
    (*(unsigned *)arg)++;
}

/* The second of three writes is the last call: it may be there in part, the third is not. */
static void power_goes_in_the_middle_of_a_call(void **state)
{
    (void)state;
    unsigned lost = 0, parts = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct env_file *f;
        struct env *e = world_with_synced_file(seed, &f);
        uint8_t after[4096], block[2048];
        struct iovec iov = {block, sizeof block};
        memset(block, 'x', sizeof block);
        env_sim_lose_power_at(e, 2, note_power, &lost);
        put(e, f, "A", 1, 0);
        assert_int_equal(e->ops->pwritev(e, f, &iov, 1, 512), ST_IO);
        assert_int_equal(e->ops->pwritev(e, f, &iov, 1, 0), ST_IO);
        assert_int_equal(e->ops->datasync(e, f), ST_IO);
        assert_int_equal(e->ops->mkdir(e, "/d"), ST_IO);
        assert_int_equal(lost, seed + 1);
        env_sim_power_cut(e);
        get(e, "/a", after, sizeof after);
        assert_true(after[0] == 'S' || after[0] == 'A');
        assert_int_equal(after[4000], 'S');
        parts += after[512] != after[2559];
        assert_int_equal(e->ops->mkdir(e, "/d"), ST_OK);
        e->ops->close(e, f);
        env_sim_free(e);
    }
    assert_true(parts > 0);
}

/* What a disk lied about is there as long as the power is, and for good if it is settled. */
static void a_sync_that_lies_does_nothing(void **state)
{
    (void)state;
    unsigned lost = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct env_file *f;
        struct env *e = world_with_synced_file(seed, &f);
        uint8_t after[4096];
        env_sim_lie(e, true);
        put(e, f, "A", 1, 0);
        assert_int_equal(e->ops->datasync(e, f), ST_OK);
        assert_int_equal(e->ops->mkdir(e, "/d"), ST_OK);
        assert_int_equal(e->ops->sync_dir(e, "/"), ST_OK);
        if (seed % 2 == 0)
            env_sim_settle(e);
        env_sim_power_cut(e);
        get(e, "/a", after, sizeof after);
        lost += after[0] == 'S';
        assert_true(seed % 2 == 1 || after[0] == 'A');
        assert_true(seed % 2 == 1 || e->ops->mkdir(e, "/d") == ST_EXISTS);
        env_sim_free(e);
    }
    assert_true(lost > 0);
}

static void a_wiped_disk_is_empty(void **state)
{
    (void)state;
    struct env_file *f;
    struct env *e = world_with_synced_file(1, &f);
    env_sim_power_cut(e);
    env_sim_wipe(e);
    assert_false(exists(e, "/a"));
    assert_int_equal(e->ops->mkdir(e, "/a"), ST_OK);
    env_sim_free(e);
}

static void one_seed_is_one_run(void **state)
{
    (void)state;
    uint8_t runs[2][8192];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        struct env_file *f;
        struct env *e = world_with_synced_file(77, &f);
        for (unsigned k = 0; k < 20; k++) {
            uint64_t v = env_random64(e);
            put(e, f, &v, sizeof v, v % 8000);
        }
        env_sim_power_cut(e);
        sizes[i] = get(e, "/a", runs[i], sizeof runs[i]);
        env_sim_free(e);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(runs[0], runs[1], sizes[0]);
}

static void time_passes_only_when_told(void **state)
{
    (void)state;
    struct env *e = env_sim_new(1);
    uint64_t mono = env_mono_us(e);
    int64_t wall = env_unix_us(e);
    assert_int_equal(env_mono_us(e), mono);
    env_sim_advance(e, 500);
    assert_int_equal(env_mono_us(e), mono + 500);
    assert_int_equal(env_unix_us(e), wall + 500);
    env_sim_jump_wall(e, -1000);
    assert_int_equal(env_mono_us(e), mono + 500);
    assert_int_equal(env_unix_us(e), wall - 500);
    env_sim_free(e);
}

/* Random writes, resizes and syncs with a cut: the synced part of every byte is right. The model
 * keeps, per byte, every value that it may have after a cut. */
static void random_histories_keep_their_synced_bytes(void **state)
{
    (void)state;
    enum { SIZE = 3000 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct env *e = env_sim_new(seed);
        struct env_file *f = must_open(e, "/f", ENV_READ | ENV_WRITE | ENV_CREATE);
        static bool possible[SIZE][256];
        static uint8_t now[SIZE], after[SIZE];
        memset(possible, 0, sizeof possible);
        memset(now, 0, sizeof now);
        assert_int_equal(e->ops->zero_fill(e, f, SIZE), ST_OK);
        assert_int_equal(e->ops->sync_dir(e, "/"), ST_OK);
        for (size_t i = 0; i < SIZE; i++)
            possible[i][0] = true;
        for (unsigned step = 0; step < 30; step++) {
            uint64_t r = env_random64(e);
            if (r % 5 == 0) {
                assert_int_equal(e->ops->datasync(e, f), ST_OK);
                memset(possible, 0, sizeof possible);
                for (size_t i = 0; i < SIZE; i++)
                    possible[i][now[i]] = true;
                continue;
            }
            size_t at = (size_t)(r >> 8) % SIZE, n = (size_t)(r >> 32) % (SIZE - at) + 1;
            memset(now + at, (int)step + 1, n);
            for (size_t i = at; i < at + n; i++)
                possible[i][step + 1] = true;
            put(e, f, now + at, n, at);
        }
        env_sim_power_cut(e);
        assert_int_equal(get(e, "/f", after, SIZE), SIZE);
        for (size_t i = 0; i < SIZE; i++)
            assert_true(possible[i][after[i]]);
        env_sim_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_power_cut_keeps_what_was_synced),
        cmocka_unit_test(unsynced_writes_are_dropped_torn_and_reordered),
        cmocka_unit_test(names_that_were_not_synced_may_be_lost),
        cmocka_unit_test(atomic_replacement_survives_a_cut_at_any_step),
        cmocka_unit_test(a_synced_rename_takes_along_what_it_builds_on),
        cmocka_unit_test(a_failed_sync_loses_what_it_was_for),
        cmocka_unit_test(a_kill_keeps_all_writes_and_frees_the_lock),
        cmocka_unit_test(a_full_disk_refuses_growth_only),
        cmocka_unit_test(power_goes_in_the_middle_of_a_call),
        cmocka_unit_test(a_sync_that_lies_does_nothing),
        cmocka_unit_test(a_wiped_disk_is_empty),
        cmocka_unit_test(one_seed_is_one_run),
        cmocka_unit_test(time_passes_only_when_told),
        cmocka_unit_test(random_histories_keep_their_synced_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
