/*
 * A store against an array: random steps, with iterators held open over all of them, on RocksDB and
 * on the store of tests. RocksDB's process is killed again and again; what it left is opened by the
 * next one, compared as a whole, and goes on from there.
 *
 *   METADB_STORE_STEPS    steps on RocksDB in all, default 60,000
 *   METADB_STORE_SECONDS  stops after these and goes on with the next run, default: no limit
 *   METADB_STORE_DIR      where it all is; kept. Default: a temporary directory
 *   METADB_STORE_SEED     default 1
 *
 * RocksDB's threads do not survive fork, so the parent never opens a store.
 */
#include "store_model.h"

#include "base/assert.h"
#include "base/fault.h"
#include "kv/key.h"
#include "kv/store.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <rocksdb/c.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define STEPS 60000u
#define MEM_STEPS 20000u
#define ITERS 6u
#define BATCH_MAX 24u
#define LIFE_MS_MIN 60u
#define LIFE_MS_SPAN 900u
#define LIFE_DOUBLINGS 8u /* of a process that comes nowhere: it is killed later each time */

/* A failed check in a child is its end: the parent says so. */
#define CHECK(w, cond)                                                                             \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: step %llu of seed %llu: %s\n", __FILE__, __LINE__,             \
                    (unsigned long long)atomic_load(&(w)->steps), (unsigned long long)(w)->seed,   \
                    #cond);                                                                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static const bytes record = {(const uint8_t *)"\x00record", 7};

struct held_iter {
    struct kv_store_iter *it; /* NULL: none */
    enum kv_tier tier;
    struct content seen; /* when it was made */
    unsigned lower, upper;
    unsigned at; /* MODEL_KEYS: at no entry */
};

struct driver {
    struct world *w;
    struct kv_store *store;
    bool rocks;
    char dir[PATH_MAX];
    struct content now;
    struct held_iter iters[ITERS];
    struct arena arena;
};

static uint64_t below(struct driver *d, uint64_t bound)
{
    return world_random(d->w, bound);
}

static bool one_in(struct driver *d, uint64_t n)
{
    return below(d, n) == 0;
}

static void path_in(const struct driver *d, const char *name, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "%s/%s", d->dir, name);

    ASSERT(n > 0 && n < PATH_MAX);
}

/* -- checks ------------------------------------------------------------------------------------ */

static bool is_value(uint32_t number, bytes value)
{
    uint8_t data[MODEL_VALUE_MAX];

    return bytes_eq(model_value(number, data), value);
}

static unsigned first_at(const struct content *c, unsigned from, unsigned to)
{
    while (from < to && c->value[from] == 0)
        from++;
    return from < to ? from : MODEL_KEYS;
}

static unsigned last_before(const struct content *c, unsigned from, unsigned to)
{
    while (to > from && c->value[to - 1] == 0)
        to--;
    return to > from ? to - 1 : MODEL_KEYS;
}

/* Does the store hold C, no more and no less? */
static bool holds(struct driver *d, const struct content *c)
{
    struct kv_store_iter *it =
        kv_store_iter_new(d->store, BYTES_LIT("\x01"), model_upper(MODEL_KEYS), KV_TIER_BULK);
    status st = kv_store_iter_seek(it, BYTES_LIT("\x01"));
    unsigned at = first_at(c, 0, MODEL_KEYS);

    for (; st == ST_OK && at < MODEL_KEYS; at = first_at(c, at + 1, MODEL_KEYS)) {
        if (!bytes_eq(kv_store_iter_key(it), model_key(at)) ||
            !is_value(c->value[at], kv_store_iter_value(it)))
            break;
        st = kv_store_iter_next(it);
    }
    kv_store_iter_free(it);
    return st == ST_END && at == MODEL_KEYS;
}

static uint64_t batch_of(struct driver *d, enum kv_tier tier)
{
    uint64_t batch = 0;
    bytes value;
    status st = kv_store_get(d->store, record, tier, &d->arena, &value);

    if (st == ST_NOT_FOUND)
        return 0;
    CHECK(d->w, st == ST_OK && value.size == sizeof batch);
    memcpy(&batch, value.data, sizeof batch);
    return batch;
}

/* -- single reads ------------------------------------------------------------------------------ */

static void check_get(struct driver *d, unsigned i, enum kv_tier tier)
{
    bytes value;
    status st = kv_store_get(d->store, model_key(i), tier, &d->arena, &value);

    if (st == ST_COLD && tier == KV_TIER_CACHE)
        return;
    CHECK(d->w, st == (d->now.value[i] != 0 ? ST_OK : ST_NOT_FOUND));
    CHECK(d->w, st != ST_OK || is_value(d->now.value[i], value));
}

/* Background flushes go on meanwhile: what is persisted is as of some batch. */
static void check_persisted(struct driver *d, unsigned i)
{
    uint64_t from = batch_of(d, KV_TIER_PERSISTED), to;
    bytes value;
    status st = kv_store_get(d->store, model_key(i), KV_TIER_PERSISTED, &d->arena, &value);
    bool found = false;

    to = batch_of(d, KV_TIER_PERSISTED);
    CHECK(d->w, st == ST_OK || st == ST_NOT_FOUND);
    CHECK(d->w, from >= world_base(d->w)->batch && from <= to && to <= d->now.batch);
    for (uint64_t batch = from; batch <= to && !found; batch++) {
        uint32_t number = world_value(d->w, i, batch);

        found = st == ST_OK ? number != 0 && is_value(number, value) : number == 0;
    }
    CHECK(d->w, found);
}

static void step_get(struct driver *d)
{
    static const enum kv_tier tiers[] = {KV_TIER_ANY, KV_TIER_CACHE, KV_TIER_BULK};
    unsigned i = (unsigned)below(d, MODEL_KEYS);

    if (one_in(d, 100))
        check_persisted(d, i);
    else
        check_get(d, i, tiers[below(d, ARRAY_LEN(tiers))]);
    arena_reset(&d->arena);
}

/* -- iterators --------------------------------------------------------------------------------- */

static void pick_range(struct driver *d, unsigned *lower, unsigned *upper)
{
    unsigned span = one_in(d, 20) ? MODEL_KEYS : one_in(d, 4) ? 400 : 40;

    *lower = (unsigned)below(d, MODEL_KEYS);
    *upper = *lower + 1 + (unsigned)below(d, span);
    if (*upper > MODEL_KEYS)
        *upper = MODEL_KEYS;
}

static void iter_drop(struct held_iter *h)
{
    kv_store_iter_free(h->it);
    h->it = NULL;
}

static void iter_make(struct driver *d, struct held_iter *h)
{
    static const enum kv_tier tiers[] = {KV_TIER_ANY, KV_TIER_ANY, KV_TIER_CACHE, KV_TIER_BULK};

    pick_range(d, &h->lower, &h->upper);
    h->tier = tiers[below(d, ARRAY_LEN(tiers))];
    h->it = kv_store_iter_new(d->store, model_key(h->lower), model_upper(h->upper), h->tier);
    h->seen = d->now;
    h->at = MODEL_KEYS;
}

/* The iterator has moved, with ST, to where the entry AT should be. */
static void check_iter(struct driver *d, struct held_iter *h, status st, unsigned at)
{
    if (st == ST_COLD && h->tier == KV_TIER_CACHE) {
        h->at = MODEL_KEYS;
        return;
    }
    h->at = at;
    CHECK(d->w, st == (at < MODEL_KEYS ? ST_OK : ST_END));
    if (st != ST_OK)
        return;
    CHECK(d->w, bytes_eq(kv_store_iter_key(h->it), model_key(at)));
    CHECK(d->w, is_value(h->seen.value[at], kv_store_iter_value(h->it)));
}

/* To any key, also one outside the bounds. */
static void iter_seek(struct driver *d, struct held_iter *h)
{
    unsigned i = one_in(d, 5) ? (unsigned)below(d, MODEL_KEYS)
                              : h->lower + (unsigned)below(d, h->upper - h->lower);
    unsigned from = i < h->lower ? h->lower : i, to = i > h->upper ? h->upper : i;

    if (one_in(d, 2))
        check_iter(d, h, kv_store_iter_seek(h->it, model_key(i)),
                   first_at(&h->seen, from, h->upper));
    else
        check_iter(d, h, kv_store_iter_seek_before(h->it, model_key(i)),
                   last_before(&h->seen, h->lower, to));
}

static void step_iter(struct driver *d)
{
    struct held_iter *h = &d->iters[below(d, ITERS)];

    if (h->it != NULL && one_in(d, 300))
        iter_drop(h);
    if (h->it == NULL)
        iter_make(d, h);
    if (h->at == MODEL_KEYS || one_in(d, 10))
        iter_seek(d, h);
    else if (one_in(d, 3))
        check_iter(d, h, kv_store_iter_prev(h->it), last_before(&h->seen, h->lower, h->at));
    else
        check_iter(d, h, kv_store_iter_next(h->it), first_at(&h->seen, h->at + 1, h->upper));
}

/* A page over kept runs. Nothing is written meanwhile, so all of it is as of now. */
static void step_page(struct driver *d)
{
    unsigned lower, upper, at, left = 1 + (unsigned)below(d, 200);
    struct kv_store_iter *it;
    status st;

    pick_range(d, &lower, &upper);
    it = kv_store_iter_new_forward(d->store, model_key(lower), model_upper(upper), KV_TIER_ANY);
    at = first_at(&d->now, lower, upper);
    st = kv_store_iter_seek(it, model_key(lower));
    for (; left > 0 && at < MODEL_KEYS; left--, at = first_at(&d->now, at + 1, upper)) {
        CHECK(d->w, st == ST_OK);
        CHECK(d->w, bytes_eq(kv_store_iter_key(it), model_key(at)));
        CHECK(d->w, is_value(d->now.value[at], kv_store_iter_value(it)));
        st = kv_store_iter_next(it);
    }
    CHECK(d->w, left == 0 || st == ST_END);
    kv_store_iter_free(it);
}

/* -- changes ----------------------------------------------------------------------------------- */

static void change_make(struct driver *d, struct change *c)
{
    bool range = one_in(d, 60);

    pick_range(d, &c->lower, &c->upper);
    if (range && c->upper - c->lower > 40 && !one_in(d, 10))
        c->upper = c->lower + 40;
    c->kind = range ? CHANGE_DELETE_RANGE : one_in(d, 3) ? CHANGE_DELETE : CHANGE_PUT;
    c->value = c->kind == CHANGE_PUT ? d->w->next_value++ : 0;
}

/* Every key of [LOWER, UPPER), one by one. */
static status batch_delete_range(struct kv_store *store, struct kv_store_batch *b, bytes lower,
                                 bytes upper)
{
    struct kv_store_iter *it;
    status st;

    it = kv_store_iter_new(store, lower, upper, KV_TIER_BULK);
    for (st = kv_store_iter_seek(it, lower); st == ST_OK; st = kv_store_iter_next(it))
        kv_store_batch_delete(b, kv_store_iter_key(it));
    kv_store_iter_free(it);
    return st == ST_END ? ST_OK : st;
}

static void batch_add(struct driver *d, struct kv_store_batch *b, const struct change *c)
{
    uint8_t data[MODEL_VALUE_MAX];
    status st = ST_OK;

    if (c->kind == CHANGE_PUT)
        kv_store_batch_put(b, model_key(c->lower), model_value(c->value, data));
    else if (c->kind == CHANGE_DELETE)
        kv_store_batch_delete(b, model_key(c->lower));
    else
        st = batch_delete_range(d->store, b, model_key(c->lower), model_upper(c->upper));
    CHECK(d->w, st == ST_OK);
}

static void write_changes(struct driver *d, struct change *changes, unsigned count)
{
    struct kv_store_batch *b = kv_store_batch_new(d->store);
    uint64_t batch = d->now.batch + 1;

    for (unsigned i = 0; i < count; i++) {
        changes[i].batch = batch;
        changes[i].load = 0;
        world_add(d->w, changes[i]);
        batch_add(d, b, &changes[i]);
        content_apply(&d->now, &changes[i]);
    }
    kv_store_batch_put(b, record, bytes_make(&batch, sizeof batch));
    CHECK(d->w, kv_store_write(d->store, b) == ST_OK);
}

/* How many of them one batch may have: none of a range in which it has put something. */
static unsigned legal_count(const struct change *changes, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < i && changes[i].kind == CHANGE_DELETE_RANGE; j++)
            if (changes[j].kind == CHANGE_PUT && changes[j].lower >= changes[i].lower &&
                changes[j].lower < changes[i].upper)
                return i;
    return count;
}

/* Neighbours or keys from everywhere. Returns how many steps it was. */
static unsigned step_write(struct driver *d)
{
    struct change changes[BATCH_MAX];
    unsigned count = 1 + (unsigned)below(d, BATCH_MAX);

    for (unsigned i = 0; i < count; i++) {
        change_make(d, &changes[i]);
        if (i > 0 && changes[i].kind != CHANGE_DELETE_RANGE && !one_in(d, 4))
            changes[i].lower = (changes[i - 1].lower + 1) % MODEL_KEYS;
    }
    count = legal_count(changes, count);
    if (one_in(d, 50)) { /* one that is thrown away */
        struct kv_store_batch *b = kv_store_batch_new(d->store);

        batch_add(d, b, &changes[0]);
        kv_store_batch_free(b);
    }
    write_changes(d, changes, count);
    return count;
}

static void step_flush(struct driver *d)
{
    CHECK(d->w, kv_store_flush(d->store) == ST_OK);
    world_persisted(d->w, &d->now);
}

static void step_compact(struct driver *d)
{
    unsigned lower, upper;

    pick_range(d, &lower, &upper);
    kv_store_compact(d->store, model_key(lower), model_upper(upper));
}

/* -- loads ------------------------------------------------------------------------------------- */

static void load_change(struct driver *d, struct kv_store_load *l, struct change c)
{
    uint8_t data[MODEL_VALUE_MAX];
    status st;

    c.load = d->w->loads;
    if (c.kind == CHANGE_PUT)
        st = kv_store_load_put(l, model_key(c.lower), model_value(c.value, data));
    else if (c.kind == CHANGE_DELETE)
        st = kv_store_load_delete(l, model_key(c.lower));
    else
        st = kv_store_load_replace(l, model_key(c.lower), model_upper(c.upper));
    CHECK(d->w, st == ST_OK);
    world_add(d->w, c);
}

/* Changes of [from, to) in the order of keys; how many. */
static unsigned load_part(struct driver *d, struct kv_store_load *l, unsigned from, unsigned to)
{
    unsigned count = 0, stride = one_in(d, 3) ? 50 : 3;

    if (one_in(d, 2)) {
        load_change(d, l, (struct change){CHANGE_DELETE_RANGE, .lower = from, .upper = to});
        count++;
    }
    for (unsigned i = from + (unsigned)below(d, stride); i < to;
         i += 1 + (unsigned)below(d, stride)) {
        bool put = !one_in(d, 4);

        load_change(d, l,
                    (struct change){put ? CHANGE_PUT : CHANGE_DELETE, .lower = i,
                                    .value = put ? d->w->next_value++ : 0});
        count++;
    }
    return count;
}

static void load_installed(struct driver *d, unsigned count)
{
    uint64_t end = atomic_load(&d->w->end);

    for (uint64_t at = end - count; at < end; at++)
        content_apply(&d->now, &d->w->history[at % MODEL_HISTORY]);
}

/* Up to three parts, now and then given up at the end, or behind a fault. */
static void step_load(struct driver *d)
{
    struct kv_store_load *l;
    unsigned from = 0, count = 0;
    char dir[PATH_MAX];
    bool give_up = one_in(d, 10);

    path_in(d, "load", dir);
    CHECK(d->w, kv_store_load_new(d->store, dir, &l) == ST_OK);
    d->w->loads++;
    atomic_store(&d->w->loading, d->w->loads);
    for (unsigned part = 0; part < 3 && from < MODEL_KEYS; part++) {
        unsigned lower = from + (unsigned)below(d, MODEL_KEYS - from);
        unsigned upper = lower + 1 + (unsigned)below(d, one_in(d, 10) ? 1500 : 100);

        upper = upper < MODEL_KEYS ? upper : MODEL_KEYS;
        count += load_part(d, l, lower, upper);
        from = upper;
    }
    CHECK(d->w, kv_store_load_seal(l) == ST_OK);
    if (count == 0 || give_up) {
        world_take_back(d->w, count);
    } else {
        CHECK(d->w, kv_store_load_install(l) == ST_OK);
        load_installed(d, count);
    }
    atomic_store(&d->w->loading, 0);
    kv_store_load_free(l);
}

/* -- opening and going down -------------------------------------------------------------------- */

static void open_store(struct driver *d)
{
    static const struct kv_store_options o = {.block_cache_bytes = 256u << 10,
                                              .write_buffer_bytes = 64u << 10,
                                              .table_bytes = 16u << 10,
                                              .background_threads = 2};
    struct err err;
    char dir[PATH_MAX];

    path_in(d, "store", dir);
    if (kv_store_open_rocks(dir, &o, &d->store, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
    kv_store_keep_runs(d->store, 128u << 10);
}

/* What the crash left becomes what the store must hold. */
static void recover(struct driver *d)
{
    uint64_t batch = batch_of(d, KV_TIER_ANY);

    CHECK(d->w, batch >= world_base(d->w)->batch);
    world_after_crash(d->w, batch, false, &d->now);
    if (atomic_load(&d->w->loading) != 0 && !holds(d, &d->now))
        world_after_crash(d->w, batch, true, &d->now);
    CHECK(d->w, holds(d, &d->now));
    world_persisted(d->w, &d->now);
    atomic_store(&d->w->loading, 0);
}

static void drop_iters(struct driver *d)
{
    for (unsigned i = 0; i < ITERS; i++)
        iter_drop(&d->iters[i]);
}

/* Closing writes nothing, so what was not flushed is lost as by a crash. */
static void step_crash(struct driver *d)
{
    uint64_t before = d->now.batch;

    drop_iters(d);
    if (d->rocks) {
        kv_store_close(d->store);
        open_store(d);
        d->w->opens++;
    } else {
        kv_store_mem_crash(d->store);
    }
    recover(d);
    CHECK(d->w, d->now.batch <= before);
}

/* -- the run ----------------------------------------------------------------------------------- */

static void step(struct driver *d)
{
    unsigned steps = 1;
    uint64_t n = below(d, 40000);

    if (world_pending(d->w) > MODEL_HISTORY / 2 || n < 20)
        step_flush(d);
    else if (n < 40)
        step_compact(d);
    else if (n < 60)
        step_load(d);
    else if (n < 72)
        step_crash(d);
    else if (n < 76)
        CHECK(d->w, holds(d, &d->now));
    else if (n < 800)
        step_page(d);
    else if (n < 3000)
        steps = step_write(d);
    else if (n < 18000)
        step_get(d);
    else
        step_iter(d);
    atomic_fetch_add(&d->w->steps, steps);
}

static void drive(struct driver *d, uint64_t until)
{
    arena_init(&d->arena, 4096);
    while (atomic_load(&d->w->steps) < until)
        step(d);
    CHECK(d->w, holds(d, &d->now));
    drop_iters(d);
    kv_store_close(d->store);
    arena_fini(&d->arena);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    UNUSED(st);
    UNUSED(type);
    UNUSED(ftw);
    return remove(path);
}

static void pause_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&t, NULL);
}

/* Waits for CHILD, and kills it after LIFE_MS; true if it came to its end. */
static bool child_ended(struct world *w, pid_t child, unsigned life_ms)
{
    int how = 0;

    for (unsigned waited = 0; waitpid(child, &how, WNOHANG) == 0; waited += 5) {
        if (waited >= life_ms) {
            kill(child, SIGKILL);
            assert_int_equal(waitpid(child, &how, 0), child);
            break;
        }
        pause_ms(5);
    }
    if (WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) {
        w->kills++;
        return false;
    }
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    return true;
}

static void live(struct driver *d, uint64_t until)
{
    arena_init(&d->arena, 4096);
    open_store(d);
    d->w->opens++;
    recover(d);
    arena_fini(&d->arena);
    drive(d, until);
}

/* Processes one after the other until the steps are done, or the time is up. */
static void run_killed(struct driver *d, uint64_t until, uint64_t seconds)
{
    struct world *w = d->w;
    time_t end = time(NULL) + (time_t)seconds;
    unsigned nowhere = 0;
    bool ended = false;

    while (!ended && (seconds == 0 || time(NULL) < end)) {
        unsigned life_ms = (LIFE_MS_MIN + (unsigned)(w->kills * 397 % LIFE_MS_SPAN)) << nowhere;
        uint64_t steps = atomic_load(&w->steps);
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            live(d, until);
            _exit(0);
        }
        ended = child_ended(w, child, life_ms);
        if (atomic_load(&w->steps) == steps && nowhere < LIFE_DOUBLINGS)
            nowhere++;
        else
            nowhere = 0;
    }
}

static void test_rocks(void **state)
{
    struct driver *d = calloc(1, sizeof *d);
    const char *dir = getenv("METADB_STORE_DIR");
    uint64_t until = from_environment("METADB_STORE_STEPS", STEPS);
    uint64_t seed = from_environment("METADB_STORE_SEED", 1);
    char world[PATH_MAX];

    UNUSED(state);
    assert_non_null(d);
    d->rocks = true;
    snprintf(d->dir, sizeof d->dir, "%s", dir != NULL ? dir : "/tmp/metadb-store-XXXXXX");
    if (dir == NULL)
        assert_non_null(mkdtemp(d->dir));
    else
        assert_true(mkdir(dir, 0700) == 0 || errno == EEXIST);
    path_in(d, "world", world);
    d->w = world_map(world, seed);
    model_keys_make(seed);
    run_killed(d, until, from_environment("METADB_STORE_SECONDS", 0));
    printf("%llu steps, %llu batches, %llu loads, opened %llu times, killed %llu times\n",
           (unsigned long long)atomic_load(&d->w->steps),
           (unsigned long long)world_base(d->w)->batch, (unsigned long long)d->w->loads,
           (unsigned long long)d->w->opens, (unsigned long long)d->w->kills);
    if (dir == NULL)
        nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    world_unmap(d->w);
    free(d);
}

static void test_mem(void **state)
{
    struct driver *d = calloc(1, sizeof *d);
    char world[] = "/tmp/metadb-store-world-XXXXXX";
    int fd = mkstemp(world);

    UNUSED(state);
    assert_non_null(d);
    assert_true(fd >= 0);
    close(fd);
    snprintf(d->dir, sizeof d->dir, "/tmp");
    d->w = world_map(world, 2);
    model_keys_make(2);
    d->store = kv_store_new_mem();
    kv_store_keep_runs(d->store, 128u << 10);
    drive(d, MEM_STEPS);
    world_unmap(d->w);
    unlink(world);
    free(d);
}

/* -- where a file of a level ends -------------------------------------------------------------- */

/* From key FROM on or back: to the end, or to what is cold. Nothing is passed over. */
static void walk(struct kv_store *s, bool back, unsigned from)
{
    struct kv_store_iter *it =
        kv_store_iter_new(s, BYTES_LIT("\x01"), model_upper(MODEL_KEYS), KV_TIER_CACHE);
    status st = back ? kv_store_iter_seek_before(it, model_upper(from + 1))
                     : kv_store_iter_seek(it, model_key(from));
    unsigned count = 0;

    for (; st == ST_OK; count++) {
        assert_true(bytes_eq(kv_store_iter_key(it), model_key(back ? from - count : from + count)));
        st = back ? kv_store_iter_prev(it) : kv_store_iter_next(it);
    }
    assert_int_equal(st, count == (back ? from + 1 : MODEL_KEYS - from) ? ST_END : ST_COLD);
    kv_store_iter_free(it);
}

/* One key after the other comes into the cache, so what is cold begins at every border once. */
static void check_borders(struct driver *d, bool back)
{
    bytes value;

    kv_store_close(d->store);
    open_store(d);
    for (unsigned n = 0; n < MODEL_KEYS; n++) {
        unsigned i = back ? MODEL_KEYS - 1 - n : n, behind = n < 40 ? n : 40;

        assert_int_equal(kv_store_get(d->store, model_key(i), KV_TIER_ANY, &d->arena, &value),
                         ST_OK);
        arena_reset(&d->arena);
        walk(d->store, back, back ? i + behind : i - behind);
    }
}

static void put_each(struct driver *d, unsigned stride)
{
    struct kv_store_batch *b = kv_store_batch_new(d->store);
    uint8_t data[MODEL_VALUE_MAX];

    for (unsigned i = 0; i < MODEL_KEYS; i += stride)
        kv_store_batch_put(b, model_key(i), model_value(i, data));
    assert_int_equal(kv_store_write(d->store, b), ST_OK);
    assert_int_equal(kv_store_flush(d->store), ST_OK);
}

/* Most keys are in many files of one level, some in one file of another. */
static void test_cold_border(void **state)
{
    struct driver *d = calloc(1, sizeof *d);
    char world[] = "/tmp/metadb-store-world-XXXXXX";
    int fd = mkstemp(world);

    UNUSED(state);
    assert_non_null(d);
    assert_true(fd >= 0);
    close(fd);
    snprintf(d->dir, sizeof d->dir, "/tmp/metadb-store-XXXXXX");
    assert_non_null(mkdtemp(d->dir));
    d->w = world_map(world, 3);
    model_keys_make(3);
    arena_init(&d->arena, 4096);
    open_store(d);
    put_each(d, 1);
    kv_store_compact(d->store, model_key(0), model_upper(MODEL_KEYS));
    put_each(d, 7);
    check_borders(d, false);
    check_borders(d, true);
    kv_store_close(d->store);
    nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    world_unmap(d->w);
    unlink(world);
    arena_fini(&d->arena);
    free(d);
}

/* A directory as an older release left it: RocksDB's own writer, a range tombstone in a file. */
static void make_range_tombstone(const char *dir)
{
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_writeoptions_t *w = rocksdb_writeoptions_create();
    rocksdb_flushoptions_t *f = rocksdb_flushoptions_create();
    rocksdb_writebatch_t *b = rocksdb_writebatch_create();
    char *error = NULL;

    rocksdb_options_set_create_if_missing(o, 1);
    rocksdb_t *db = rocksdb_open(o, dir, &error);
    assert_null(error);
    for (const char *key = "bcd"; *key != '\0'; key++)
        rocksdb_put(db, w, key, 1, "v", 1, &error);
    rocksdb_flush(db, f, &error);
    rocksdb_writebatch_delete_range(b, "c", 1, "d", 1);
    rocksdb_write(db, w, b, &error);
    rocksdb_flush(db, f, &error);
    assert_null(error);
    rocksdb_close(db);
    rocksdb_writebatch_destroy(b);
    rocksdb_flushoptions_destroy(f);
    rocksdb_writeoptions_destroy(w);
    rocksdb_options_destroy(o);
}

static void test_range_tombstones(void **state)
{
    struct driver *d = calloc(1, sizeof *d);
    char dir[PATH_MAX];
    bytes value;

    UNUSED(state);
    assert_non_null(d);
    snprintf(d->dir, sizeof d->dir, "/tmp/metadb-store-XXXXXX");
    assert_non_null(mkdtemp(d->dir));
    path_in(d, "store", dir);
    make_range_tombstone(dir);
    arena_init(&d->arena, 4096);
    open_store(d);
    for (const char *key = "bcd"; *key != '\0'; key++)
        assert_int_equal(kv_store_get(d->store, bytes_make(key, 1), KV_TIER_ANY, &d->arena, &value),
                         *key == 'c' ? ST_NOT_FOUND : ST_OK);
    kv_store_close(d->store);
    nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_fini(&d->arena);
    free(d);
}

/* The last two open a store in this process: behind it no child could. */
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mem), cmocka_unit_test(test_rocks),
                                       cmocka_unit_test(test_cold_border),
                                       cmocka_unit_test(test_range_tombstones)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
