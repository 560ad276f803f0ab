/*
 * A shard's state from one store to another: the same on both kinds of store, whatever was there
 * before, whatever is written meanwhile, and whole or not at all where anything fails or the
 * process is killed. RocksDB's threads do not survive fork, so the parent never opens a store.
 */
#include "model.h"

#include "base/assert.h"
#include "base/fault.h"
#include "base/rcu.h"
#include "kv/snapshot.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STEPS 400u
#define PART 512u
#define KILLED 137

static const struct kv_state_options options = {
    .shard = 1, .memtable_bytes = 1u << 20, .retention_us = 0};
static const bytes note = {(const uint8_t *)"note", 4};

/* -- stores in a directory of the test --------------------------------------------------------- */

struct side {
    struct kv_store *store;
    struct kv_state *state;
    const char *dir;
    bool rocks;
};

static void side_open(struct side *s)
{
    static const struct kv_store_options o = {
        .block_cache_bytes = 1u << 20, .write_buffer_bytes = 1u << 20, .background_threads = 1};
    struct err err;

    if (s->store == NULL && s->rocks)
        assert_int_equal(kv_store_open_rocks(s->dir, &o, &s->store, &err), ST_OK);
    else if (s->store == NULL)
        s->store = kv_store_new_mem();
    assert_int_equal(kv_state_open(s->store, &options, &s->state, &err), ST_OK);
}

static void side_close(struct side *s)
{
    kv_state_close(s->state);
    kv_store_close(s->store);
    s->state = NULL;
    s->store = NULL;
}

static void flush_all(struct kv_state *s)
{
    struct kv_flush *f;

    kv_state_touch(s);
    kv_state_seal(s, true);
    while ((f = kv_flush_new(s, HLC_MAX)) != NULL) {
        status st = kv_flush_run(f);
        kv_flush_done(f, st);
        assert_int_equal(st, ST_OK);
    }
}

static struct kv_snapshot_id id_of(const struct kv_state *s)
{
    const struct kv_shard_record *r = kv_state_record(s);
    return (struct kv_snapshot_id){r->applied_index, r->applied_term};
}

static uint64_t hash_of(struct kv_state *s)
{
    uint64_t h;

    assert_int_equal(kv_state_hash(s, NULL, &h), ST_OK);
    return h;
}

/* STEPS of a workload that depends on SEED, flushed. */
static void fill(struct model *m, struct kv_state *s, uint64_t seed, unsigned steps)
{
    model_init(m, seed, 4 * STEPS);
    for (unsigned i = 0; i < steps; i++)
        model_step(m);
    model_replay(m, s);
    flush_all(s);
}

/* Everything a dump says, part after part, for tests that look at them. */
struct parts {
    struct obuf data;
    size_t at[4096]; /* where each begins; at[count] is the end */
    unsigned count;
};

static void parts_read(struct parts *p, struct kv_dump *d, size_t target)
{
    status st = ST_OK;

    obuf_init(&p->data);
    p->count = 0;
    while (st == ST_OK) {
        assert_true(p->count + 1 < ARRAY_LEN(p->at));
        p->at[p->count++] = p->data.size;
        st = kv_dump_part(d, target, &p->data);
    }
    assert_int_equal(st, ST_END);
    p->at[p->count] = p->data.size;
}

static bytes part(const struct parts *p, unsigned i)
{
    return bytes_make(p->data.data + p->at[i], p->at[i + 1] - p->at[i]);
}

static void load_dir(const struct side *s, char out[64])
{
    snprintf(out, 64, "%s-load", s->dir != NULL ? s->dir : "none");
}

/* Into S, up to the first failure. */
static status load(struct side *s, const struct parts *p, struct kv_snapshot_id id, bool *installed)
{
    char dir[64];
    struct kv_load *l;
    status st = ST_OK;

    *installed = false;
    load_dir(s, dir);
    ST_TRY(kv_load_new(s->state, dir, id, note, &l));
    for (unsigned i = 0; i < p->count && st == ST_OK; i++)
        st = kv_load_part(l, part(p, i));
    if (st == ST_END)
        st = kv_load_install(l);
    *installed = kv_load_installed(l);
    if (st == ST_OK)
        kv_load_take(l);
    else
        kv_load_free(l);
    return st;
}

/* -- the same everywhere ----------------------------------------------------------------------- */

static void check_equal(struct side *to, struct model *m, uint64_t hash)
{
    model_check(m, to->state, HLC_MAX, false);
    model_check_queue(m, to->state);
    assert_true(hash_of(to->state) == hash);
}

static void check_note(struct side *s, uint64_t index)
{
    struct arena a;
    uint64_t at;
    bytes got;

    arena_init(&a, 256);
    assert_int_equal(kv_state_note(s->store, options.shard, &a, &at, &got), ST_OK);
    assert_true(at == index);
    assert_true(bytes_eq(got, note));
    arena_fini(&a);
}

/* FROM has one history, TO another and shorter one; afterwards TO has the first, also reopened, and
 * goes on with it. */
static void round_trip(struct side *from, struct side *to, uint64_t seed)
{
    struct model a, b;
    struct parts p;
    bool installed;

    side_open(from);
    side_open(to);
    fill(&a, from->state, seed, STEPS);
    fill(&b, to->state, seed + 1000, STEPS / 2);
    struct kv_snapshot_id id = id_of(from->state);
    uint64_t hash = hash_of(from->state);
    assert_true(hash != hash_of(to->state));
    struct kv_dump *d = kv_dump_new(from->state, id);
    parts_read(&p, d, PART);
    kv_dump_free(d);
    assert_int_equal(load(to, &p, id, &installed), ST_OK);
    check_equal(to, &a, hash);
    assert_true(kv_state_persisted_index(to->state) == id.index);
    if (to->rocks) {
        side_close(to);
    } else {
        kv_store_mem_crash(to->store);
        kv_state_close(to->state);
    }
    side_open(to);
    check_equal(to, &a, hash);
    check_note(to, id.index);
    for (unsigned i = 0; i < STEPS / 4; i++)
        model_step(&a);
    model_replay(&a, from->state);
    model_replay(&a, to->state);
    flush_all(to->state);
    check_equal(to, &a, hash_of(from->state));
    obuf_fini(&p.data);
    model_fini(&a);
    model_fini(&b);
    side_close(from);
    side_close(to);
}

static void memory_to_memory(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct side from = {0}, to = {0};
        round_trip(&from, &to, seed);
    }
}

static void writes_during_a_dump_are_not_in_it(void **unused)
{
    struct side from = {0}, to = {0};
    struct model m, other;
    struct parts p;
    bool installed;
    status st = ST_OK;

    (void)unused;
    side_open(&from);
    side_open(&to);
    fill(&m, from.state, 7, STEPS);
    fill(&other, to.state, 8, 10);
    struct kv_snapshot_id id = id_of(from.state);
    uint64_t hash = hash_of(from.state);
    struct kv_dump *d = kv_dump_new(from.state, id);
    obuf_init(&p.data);
    for (p.count = 0; st == ST_OK;) {
        p.at[p.count++] = p.data.size;
        st = kv_dump_part(d, PART / 4, &p.data);
        model_step(&m);
        model_replay(&m, from.state);
        flush_all(from.state);
    }
    p.at[p.count] = p.data.size;
    assert_int_equal(st, ST_END);
    assert_true(p.count > 10);
    assert_int_equal(load(&to, &p, id, &installed), ST_OK);
    assert_true(hash_of(to.state) == hash);
    assert_true(hash_of(from.state) != hash);

    /* Again from the beginning: the same bytes. */
    struct obuf first;
    obuf_init(&first);
    kv_dump_rewind(d);
    assert_int_equal(kv_dump_part(d, PART / 4, &first), ST_OK);
    assert_true(bytes_eq(bytes_make(first.data, first.size), part(&p, 0)));
    obuf_fini(&first);
    kv_dump_free(d);
    obuf_fini(&p.data);
    model_fini(&m);
    model_fini(&other);
    side_close(&from);
    side_close(&to);
}

static void a_dump_of_another_index_is_refused(void **unused)
{
    struct side from = {0};
    struct model m;
    struct obuf o;

    (void)unused;
    side_open(&from);
    fill(&m, from.state, 3, 50);
    struct kv_snapshot_id id = id_of(from.state);
    id.index--;
    struct kv_dump *d = kv_dump_new(from.state, id);
    obuf_init(&o);
    assert_int_equal(kv_dump_part(d, PART, &o), ST_CONFLICT);
    obuf_fini(&o);
    kv_dump_free(d);
    model_fini(&m);
    side_close(&from);
}

/* A shard to which nothing was ever written but log time. */
static void an_empty_shard_replaces_a_full_one(void **unused)
{
    struct side from = {0}, to = {0};
    struct model m;
    struct parts p;
    bool installed;

    (void)unused;
    side_open(&from);
    side_open(&to);
    fill(&m, to.state, 5, 100);
    kv_state_begin(from.state, 1000, 9, model_last_ts(&m) + 1);
    kv_state_end(from.state);
    flush_all(from.state);
    struct kv_snapshot_id id = id_of(from.state);
    struct kv_dump *d = kv_dump_new(from.state, id);
    parts_read(&p, d, PART);
    kv_dump_free(d);
    assert_int_equal(p.count, 2);
    assert_int_equal(load(&to, &p, id, &installed), ST_OK);
    assert_true(hash_of(to.state) == hash_of(from.state));
    assert_true(kv_state_record(to.state)->applied_index == 1000);
    obuf_fini(&p.data);
    model_fini(&m);
    side_close(&from);
    side_close(&to);
}

/* -- among other shards in one store ----------------------------------------------------------- */

static struct kv_state *shard_open(struct kv_store *store, uint64_t shard, enum kv_table t)
{
    struct kv_state_options o = options;
    struct kv_state *s;
    struct err err;

    o.shard = shard;
    o.table = t;
    assert_int_equal(kv_state_open(store, &o, &s, &err), ST_OK);
    return s;
}

static void put_key(struct kv_state *s, const char *key, size_t size, const char *value)
{
    kv_state_put(s, bytes_make(key, size), bytes_str(value), false);
}
#define PUT(s, key, value) put_key(s, key, sizeof(key) - 1, value)

/* Rows and locks of meta and of quota, with what each writes as VALUE. */
static void shards_fill(struct kv_state *meta, struct kv_state *quota, uint64_t at,
                        const char *value, bool more)
{
    kv_state_begin(meta, at, 1, hlc_from_us((int64_t)at));
    PUT(meta, "\x01\0\0\0\x01\0\0\0\0\0\0\0\x01x", value);
    PUT(meta, "\x22\0\0\0\x01row\x01m", value);
    PUT(meta, "\x22\0\0\0\x01tree", value);
    if (more) {
        PUT(meta, "\x22\0\0\0\x01row\x01k", value);
        PUT(meta, "\x22\0\0\0\x01row\x01z", value);
    }
    kv_state_queue_push(meta, bytes_str(value));
    kv_state_end(meta);
    flush_all(meta);
    kv_state_begin(quota, at, 1, hlc_from_us((int64_t)at));
    PUT(quota, "\x02\0\0\0\x01\0\0\0\0\0\0\0\x01q", value);
    PUT(quota, "\x22\0\0\0\x01row\x02k", value);
    PUT(quota, "\x22\0\0\0\x01row\x02x", value);
    kv_state_end(quota);
    flush_all(quota);
}

static status find(struct kv_state *s, const char *key, size_t size)
{
    struct arena a;
    struct kv_view v = {.state = s, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = &a};
    struct kv_cell cell;

    arena_init(&a, 256);
    status st = kv_state_get(&v, bytes_make(key, size), &cell);
    arena_fini(&a);
    return st;
}
#define FIND(s, key) find(s, key, sizeof(key) - 1)

static void other_shards_in_the_store_keep_their_keys(void **unused)
{
    struct kv_store *a = kv_store_new_mem(), *b = kv_store_new_mem();
    struct kv_state *meta_a = shard_open(a, 1, KV_META), *quota_a = shard_open(a, 2, KV_QUOTA);
    struct kv_state *meta_b = shard_open(b, 1, KV_META), *quota_b = shard_open(b, 2, KV_QUOTA);
    struct side to = {.store = b, .state = meta_b};
    struct parts p;
    bool installed;

    (void)unused;
    shards_fill(meta_a, quota_a, 20, "new", false);
    shards_fill(meta_b, quota_b, 10, "old", true);
    struct kv_snapshot_id id = id_of(meta_a);
    struct kv_dump *d = kv_dump_new(meta_a, id);
    parts_read(&p, d, 16);
    kv_dump_free(d);
    assert_int_equal(load(&to, &p, id, &installed), ST_OK);
    assert_int_equal(FIND(meta_b, "\x22\0\0\0\x01row\x01m"), ST_OK);
    assert_int_equal(FIND(meta_b, "\x22\0\0\0\x01tree"), ST_OK);
    assert_int_equal(FIND(meta_b, "\x22\0\0\0\x01row\x01k"), ST_NOT_FOUND);
    assert_int_equal(FIND(meta_b, "\x22\0\0\0\x01row\x01z"), ST_NOT_FOUND);
    assert_int_equal(FIND(quota_b, "\x22\0\0\0\x01row\x02k"), ST_OK);
    assert_int_equal(FIND(quota_b, "\x22\0\0\0\x01row\x02x"), ST_OK);
    assert_int_equal(FIND(quota_b, "\x02\0\0\0\x01\0\0\0\0\0\0\0\x01q"), ST_OK);
    assert_int_equal(kv_state_queue_length(meta_b), 1);

    /* A part of one shard is no part of another. */
    to.state = quota_b;
    assert_int_equal(load(&to, &p, id, &installed), ST_CORRUPT);
    assert_false(installed);
    assert_int_equal(FIND(quota_b, "\x02\0\0\0\x01\0\0\0\0\0\0\0\x01q"), ST_OK);
    obuf_fini(&p.data);
    kv_state_close(meta_a);
    kv_state_close(quota_a);
    kv_state_close(meta_b);
    kv_state_close(quota_b);
    kv_store_close(a);
    kv_store_close(b);
}

/* -- damage and failures ----------------------------------------------------------------------- */

struct pair {
    struct side from, to;
    struct model a, b;
    struct parts p;
    struct kv_snapshot_id id;
    uint64_t new_hash, old_hash;
};

static void pair_open(struct pair *x, unsigned steps)
{
    side_open(&x->from);
    side_open(&x->to);
    fill(&x->a, x->from.state, 21, steps);
    fill(&x->b, x->to.state, 22, steps / 2);
    x->id = id_of(x->from.state);
    x->new_hash = hash_of(x->from.state);
    x->old_hash = hash_of(x->to.state);
    struct kv_dump *d = kv_dump_new(x->from.state, x->id);
    parts_read(&x->p, d, PART);
    kv_dump_free(d);
}

static void pair_close(struct pair *x)
{
    obuf_fini(&x->p.data);
    model_fini(&x->a);
    model_fini(&x->b);
    side_close(&x->from);
    side_close(&x->to);
}

static void any_damaged_byte_is_noticed_before_installing(void **unused)
{
    struct pair x = {0};
    bool installed;

    (void)unused;
    pair_open(&x, 20);
    for (size_t i = 0; i < x.p.data.size; i++) {
        x.p.data.data[i] ^= 0x10;
        assert_int_equal(load(&x.to, &x.p, x.id, &installed), ST_CORRUPT);
        assert_false(installed);
        x.p.data.data[i] ^= 0x10;
    }
    assert_true(hash_of(x.to.state) == x.old_hash);
    assert_int_equal(load(&x.to, &x.p, x.id, &installed), ST_OK);
    assert_true(hash_of(x.to.state) == x.new_hash);
    pair_close(&x);
}

static void parts_that_are_missing_or_foreign_are_noticed(void **unused)
{
    struct pair x = {0};
    struct kv_load *l;

    (void)unused;
    pair_open(&x, 100);
    assert_true(x.p.count > 3);
    assert_int_equal(kv_load_new(x.to.state, "x", x.id, note, &l), ST_OK);
    assert_int_equal(kv_load_part(l, part(&x.p, 0)), ST_OK);
    assert_int_equal(kv_load_part(l, part(&x.p, 2)), ST_CORRUPT);
    kv_load_free(l);
    assert_int_equal(kv_load_new(x.to.state, "x", x.id, note, &l), ST_OK);
    assert_int_equal(kv_load_part(l, part(&x.p, 0)), ST_OK);
    assert_int_equal(kv_load_part(l, part(&x.p, 0)), ST_CORRUPT);
    kv_load_free(l);
    struct kv_snapshot_id other = {x.id.index + 1, x.id.term};
    assert_int_equal(kv_load_new(x.to.state, "x", other, note, &l), ST_OK);
    assert_int_equal(kv_load_part(l, part(&x.p, 0)), ST_CORRUPT);
    kv_load_free(l);
    assert_int_equal(kv_load_new(x.to.state, "x", x.id, note, &l), ST_OK);
    assert_int_equal(kv_load_part(l, BYTES_EMPTY), ST_CORRUPT);
    kv_load_free(l);
    pair_close(&x);
}

/* Each call that can fail fails once: what a restart finds is the old state or the new one, and the
 * load knows which. */
static void every_failure_leaves_the_old_state_or_the_new_one(void **unused)
{
    static const char *const patterns[] = {"kv.load.*", "store.mem.*"};
    bool done = false, any_new = false;

    (void)unused;
#ifndef METADB_FAULTS
    skip();
#endif
    for (unsigned k = 0; k < ARRAY_LEN(patterns); k++, done = false) {
        for (unsigned nth = 1; !done; nth++) {
            struct pair x = {0};
            bool installed;

            pair_open(&x, 60);
            fault_arm(patterns[k], "error", nth);
            status st = load(&x.to, &x.p, x.id, &installed);
            done = !fault_fired();
            fault_disarm();
            assert_int_equal(st == ST_OK, done);
            assert_true(hash_of(x.to.state) == (st == ST_OK ? x.new_hash : x.old_hash) ||
                        installed);
            kv_store_mem_crash(x.to.store);
            kv_state_close(x.to.state);
            side_open(&x.to);
            assert_true(hash_of(x.to.state) == (installed ? x.new_hash : x.old_hash));
            any_new |= st != ST_OK && installed;
            if (!installed) /* and it can be done again */
                assert_int_equal(load(&x.to, &x.p, x.id, &installed), ST_OK);
            pair_close(&x);
        }
    }
    assert_true(any_new);
}

/* -- RocksDB, in processes of its own ---------------------------------------------------------- */

struct run {
    char dir[2][64];
    const char *site;
    unsigned nth;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *w)
{
    (void)st;
    (void)kind;
    (void)w;
    return remove(path);
}

static void run_init(struct run *r)
{
    for (unsigned i = 0; i < 2; i++) {
        snprintf(r->dir[i], sizeof r->dir[i], "/tmp/metadb-test-XXXXXX");
        assert_non_null(mkdtemp(r->dir[i]));
    }
}

static void run_fini(struct run *r)
{
    for (unsigned i = 0; i < 2; i++)
        nftw(r->dir[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int in_child(void (*fn)(const struct run *), const struct run *r)
{
    int result;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        fn(r);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &result, 0), pid);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void trips(const struct run *r)
{
    struct side from = {.rocks = true, .dir = r->dir[0]};
    struct side to = {.rocks = true, .dir = r->dir[1]};

    round_trip(&from, &to, 31);
}

static void mixed_trips(const struct run *r)
{
    struct side mem = {0}, rocks = {.rocks = true, .dir = r->dir[0]};
    struct side mem_to = {0}, rocks_to = {.rocks = true, .dir = r->dir[1]};

    round_trip(&rocks, &mem_to, 32);
    round_trip(&mem, &rocks_to, 33);
}

static void rocksdb_to_rocksdb(void **unused)
{
    struct run r = {.site = NULL};

    (void)unused;
    run_init(&r);
    assert_int_equal(in_child(trips, &r), 0);
    run_fini(&r);
}

static void rocksdb_and_memory_are_the_same(void **unused)
{
    struct run r = {.site = NULL};

    (void)unused;
    run_init(&r);
    assert_int_equal(in_child(mixed_trips, &r), 0);
    run_fini(&r);
}

static void killed_load(const struct run *r)
{
    struct pair x = {.to = {.rocks = true, .dir = r->dir[1]}};
    bool installed;

    pair_open(&x, 60);
    fault_arm(r->site, "kill", r->nth);
    (void)load(&x.to, &x.p, x.id, &installed);
    _exit(1);
}

static void after_kill(const struct run *r)
{
    struct pair x = {0}; /* the same two states again, in memory */
    struct side left = {.rocks = true, .dir = r->dir[1]};
    bool installed;

    pair_open(&x, 60);
    side_open(&left);
    bool is_new = strcmp(r->site, "kv.load.installed") == 0;
    assert_true(hash_of(left.state) == (is_new ? x.new_hash : x.old_hash));
    if (!is_new)
        assert_int_equal(load(&left, &x.p, x.id, &installed), ST_OK);
    assert_true(hash_of(left.state) == x.new_hash);
    model_check(&x.a, left.state, HLC_MAX, false);
    model_check_queue(&x.a, left.state);
    _exit(0);
}

static void a_kill_at_any_step_leaves_the_old_state_or_the_new_one(void **unused)
{
    static const char *const sites[] = {"kv.load.new",        "kv.load.part",     "kv.load.seal",
                                        "store.rocks.load",   "store.rocks.seal", "kv.load.install",
                                        "store.rocks.ingest", "kv.load.installed"};

    (void)unused;
#ifndef METADB_FAULTS
    skip();
#endif
    for (unsigned i = 0; i < ARRAY_LEN(sites); i++) {
        struct run r = {.site = sites[i], .nth = i == 1 ? 3 : 1};

        run_init(&r);
        assert_int_equal(in_child(killed_load, &r), KILLED);
        assert_int_equal(in_child(after_kill, &r), 0);
        run_fini(&r);
    }
}

/* More than one file, many times what is in memory of it at a time. */
#define BIG_ROWS 5000u
#define BIG_ROW 16384u

static void big(const struct run *r)
{
    struct side from = {.rocks = true, .dir = r->dir[0]};
    struct side to = {.rocks = true, .dir = r->dir[1]};
    uint8_t key[] = "\x06\0\0\0\x01....";
    uint8_t *row = malloc(BIG_ROW);
    struct kv_load *l;
    struct obuf o;
    char dir[64];
    status st = ST_OK;

    side_open(&from);
    side_open(&to);
    for (uint32_t i = 0; i < BIG_ROWS; i++) {
        for (unsigned j = 0; j < BIG_ROW; j += 8)
            memcpy(row + j, &(uint64_t){(i * 2654435761u + j) * 0x9e3779b97f4a7c15u}, 8);
        store_be32(key + 5, i);
        kv_state_begin(from.state, i + 1, 1, i + 1);
        kv_state_put(from.state, bytes_make(key, 9), bytes_make(row, BIG_ROW), false);
        kv_state_end(from.state);
        if (i % 500 == 499)
            flush_all(from.state);
    }
    struct kv_snapshot_id id = id_of(from.state);
    struct kv_dump *d = kv_dump_new(from.state, id);
    load_dir(&to, dir);
    assert_int_equal(kv_load_new(to.state, dir, id, note, &l), ST_OK);
    obuf_init(&o);
    while (st == ST_OK) {
        obuf_reset(&o);
        st = kv_dump_part(d, 65536, &o);
        assert_true(st == ST_OK || st == ST_END);
        assert_true(o.size < 65536 + BIG_ROW + 64);
        assert_int_equal(kv_load_part(l, bytes_make(o.data, o.size)), st);
    }
    assert_int_equal(kv_load_install(l), ST_OK);
    kv_load_take(l);
    kv_dump_free(d);
    assert_true(access(dir, F_OK) != 0); /* nothing is left of the files */
    struct kv_store_stats stats;
    kv_store_stats(to.store, &stats);
    assert_true(stats.files > 1);
    assert_true(hash_of(to.state) == hash_of(from.state));
    obuf_fini(&o);
    free(row);
    side_close(&from);
    side_close(&to);
}

static void a_large_shard_needs_little_memory(void **unused)
{
    struct run r = {.site = NULL};

    (void)unused;
    run_init(&r);
    assert_int_equal(in_child(big, &r), 0);
    run_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* those that fork come first: before any thread */
        cmocka_unit_test(rocksdb_to_rocksdb),
        cmocka_unit_test(rocksdb_and_memory_are_the_same),
        cmocka_unit_test(a_kill_at_any_step_leaves_the_old_state_or_the_new_one),
        cmocka_unit_test(a_large_shard_needs_little_memory),
        cmocka_unit_test(memory_to_memory),
        cmocka_unit_test(writes_during_a_dump_are_not_in_it),
        cmocka_unit_test(a_dump_of_another_index_is_refused),
        cmocka_unit_test(an_empty_shard_replaces_a_full_one),
        cmocka_unit_test(other_shards_in_the_store_keep_their_keys),
        cmocka_unit_test(any_damaged_byte_is_noticed_before_installing),
        cmocka_unit_test(parts_that_are_missing_or_foreign_are_noticed),
        cmocka_unit_test(every_failure_leaves_the_old_state_or_the_new_one),
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
