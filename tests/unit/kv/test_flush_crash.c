/*
 * kill -9 at every step of a flush, on RocksDB. A child process runs a seeded workload until an
 * armed fault ends it; a second child opens what is left, replays the log from the persisted index
 * and compares the whole state with the model and with a state that never left memory. Both ways
 * of a flush: one batch, and pieces.
 *
 * RocksDB's threads do not survive fork, so the parent never opens a store.
 */
#include "model.h"

#include "base/fault.h"
#include "base/rcu.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS 6u
#define STEPS 40u
#define KILLED 137

static const struct kv_state_options options = {
    .shard = 1, .memtable_bytes = 1u << 20, .retention_us = 10000};

struct run {
    const char *dir;
    const char *site; /* NULL: no fault */
    unsigned nth;
    uint64_t seed;
    unsigned persisted; /* generations that must be left */
    bool pieces;
};

static struct kv_store *rocks_open(const char *dir)
{
    static const struct kv_store_options o = {
        .block_cache_bytes = 1u << 20, .write_buffer_bytes = 1u << 20, .background_threads = 1};
    struct kv_store *store;
    struct err err;

    assert_int_equal(kv_store_open_rocks(dir, &o, &store, &err), ST_OK);
    return store;
}

static void no_pause(void *arg)
{
    (void)arg;
}

static void flush_due(const struct run *r, struct kv_state *s, hlc_ts now)
{
    struct kv_flush *f = kv_flush_new(s, now);
    char dir[64];
    status st;

    if (f == NULL)
        return;
    snprintf(dir, sizeof dir, "%s/flush", r->dir);
    if (r->pieces)
        kv_flush_in_pieces(f, &(struct kv_flush_pieces){.dir = dir, .pause = no_pause});
    st = kv_flush_run(f);
    kv_flush_done(f, st);
    assert_int_equal(st, ST_OK);
}

/* The workload; a fault of kind kill ends the process in the middle. */
static void work(const struct run *r)
{
    struct kv_store *store = rocks_open(r->dir);
    struct kv_state *s;
    struct model m;
    struct err err;

    model_init(&m, r->seed, ROUNDS * STEPS);
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    if (r->site != NULL)
        fault_arm(r->site, "kill", r->nth);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < STEPS; i++)
            model_step(&m);
        model_replay(&m, s);
        kv_state_seal(s, true);
        flush_due(r, s, model_last_ts(&m));
    }
    _exit(0); /* no orderly shutdown: what RocksDB has not flushed is lost */
}

static uint64_t hash_in_memory(const struct model *m)
{
    struct kv_store *store = kv_store_new_mem();
    struct kv_state *s;
    struct err err;
    uint64_t h;

    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    model_replay(m, s);
    assert_int_equal(kv_state_hash(s, NULL, &h), ST_OK);
    kv_state_close(s);
    kv_store_close(store);
    return h;
}

/* Opens what is left and brings it up to the end of the log. */
static void recover(const struct run *r)
{
    struct kv_store *store = rocks_open(r->dir);
    struct kv_state *s;
    struct model m;
    struct err err;
    uint64_t h;

    model_init(&m, r->seed, ROUNDS * STEPS);
    for (unsigned i = 0; i < ROUNDS * STEPS; i++)
        model_step(&m);
    assert_int_equal(kv_state_open(store, &options, &s, &err), ST_OK);
    assert_int_equal(kv_state_persisted_index(s), kv_state_record(s)->applied_index);
    assert_int_equal(kv_state_record(s)->applied_index, r->persisted * STEPS);
    model_replay(&m, s);
    model_check(&m, s, HLC_MAX, false);
    model_check_queue(&m, s);
    assert_int_equal(kv_state_hash(s, NULL, &h), ST_OK);
    assert_true(h == hash_in_memory(&m));
    kv_state_seal(s, true);
    flush_due(r, s, HLC_MAX);
    model_check(&m, s, HLC_MAX, false);
    _exit(0);
}

static int in_child(void (*fn)(const struct run *), const struct run *r)
{
    int result;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        rcu_thread_register();
        rcu_online();
        fn(r);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &result, 0), pid);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *w)
{
    (void)st;
    (void)kind;
    (void)w;
    return remove(path);
}

static void crash_once(bool pieces, const char *site, unsigned nth, unsigned persisted)
{
    char dir[] = "/tmp/metadb-test-XXXXXX";
    struct run r = {
        .site = site, .nth = nth, .seed = 77 + nth, .persisted = persisted, .pieces = pieces};

    r.dir = mkdtemp(dir);
    assert_non_null(r.dir);
    assert_int_equal(in_child(work, &r), site != NULL ? KILLED : 0);
    assert_int_equal(in_child(recover, &r), 0);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void exit_without_shutdown_loses_nothing_of_the_log(void **unused)
{
    (void)unused;
    for (int pieces = 0; pieces < 2; pieces++) /* the last generation is younger than retention */
        crash_once(pieces, NULL, 0, ROUNDS - 1);
}

static void kill_in_a_flush_leaves_whole_generations(void **unused)
{
    static const char *const sites[] = {"kv.flush.build", "kv.flush.write", "kv.flush.sync",
                                        "kv.flush.done"};

    (void)unused;
#ifndef METADB_FAULTS
    skip();
#endif
    for (unsigned i = 0; i < sizeof sites / sizeof sites[0]; i++)
        for (unsigned nth = 1; nth <= 3; nth += 2)
            crash_once(false, sites[i], nth, i == 3 ? nth : nth - 1); /* a write alone is lost */
}

static void kill_in_a_flush_in_pieces_leaves_whole_generations(void **unused)
{
    static const struct {
        const char *site;
        bool there; /* the generation that was being flushed */
    } sites[] = {{"kv.flush.build", false},   {"kv.flush.write", false},
                 {"store.rocks.load", false}, {"store.rocks.seal", false},
                 {"kv.flush.sync", false},    {"store.rocks.ingest", false},
                 {"kv.flush.done", true}};

    (void)unused;
#ifndef METADB_FAULTS
    skip();
#endif
    for (unsigned i = 0; i < sizeof sites / sizeof sites[0]; i++)
        for (unsigned nth = 1; nth <= 3; nth += 2)
            crash_once(true, sites[i].site, nth, sites[i].there ? nth : nth - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_without_shutdown_loses_nothing_of_the_log),
        cmocka_unit_test(kill_in_a_flush_leaves_whole_generations),
        cmocka_unit_test(kill_in_a_flush_in_pieces_leaves_whole_generations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
