/*
 * Commands whose reads meet cold blocks of a real store: an apply that says ST_COLD and a prefetch
 * of the key it names must come to an end, also for handlers that scan.
 *
 * The store is written, closed and opened again with an empty block cache. RocksDB's threads do not
 * survive fork, so everything runs in one process.
 */
#include "base/rcu.h"
#include "kv/command.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define FILES 20000u
#define PID 7
#define LARGE_ROWS 300u
#define LARGE_BYTES 60000u
#define CACHE_BYTES (8u << 20) /* less than half of the large rows */
#define TRIES_MAX 1000u        /* far more than the blocks that FILES rows fill */
#define START_US 1700000000000000

static const struct kv_state_options options = {
    .shard = 1, .memtable_bytes = 1u << 30, .retention_us = 1000};

struct fixture {
    char dir[32];
    struct kv_store *store;
    struct kv_state *state;
    struct arena arena;
    uint64_t index;
    hlc_ts ts;
    unsigned colds, tries_max; /* after so many the disk is waited for */
    struct kv_applied last;
};

static void open_store(struct fixture *f)
{
    static const struct kv_store_options o = {
        .block_cache_bytes = CACHE_BYTES, .write_buffer_bytes = 1u << 20, .background_threads = 1};
    struct err err;
    assert_int_equal(kv_store_open_rocks(f->dir, &o, &f->store, &err), ST_OK);
    assert_int_equal(kv_state_open(f->store, &options, &f->state, &err), ST_OK);
}

static void close_store(struct fixture *f)
{
    kv_state_close(f->state);
    kv_store_close(f->store);
}

/* Applies OP as the shard's host does: prefetch and again, a bounded number of times; then from the
 * disk, if the fixture says so. */
static void apply(struct fixture *f, const struct kv_op *op)
{
    const struct kv_op *ops[] = {op};
    struct obuf o;
    status st = ST_COLD;
    obuf_init(&o);
    kv_command_ops(&o, ops, 1, (struct kv_origin){0});
    f->ts += 1u << HLC_LOGICAL_BITS;
    kv_command_stamp(o.data, f->ts);
    f->index++;
    f->colds = 0;
    for (unsigned i = 0; st == ST_COLD && i < TRIES_MAX; i++) {
        bool wait = f->tries_max > 0 && i >= f->tries_max;
        arena_reset(&f->arena);
        st = kv_apply(f->state, f->index, 1, bytes_make(o.data, o.size),
                      wait ? KV_TIER_ANY : KV_TIER_CACHE, &f->arena, &f->last);
        if (st == ST_COLD) {
            kv_state_prefetch(f->state, f->last.cold_key);
            f->colds++;
        }
    }
    assert_int_equal(st, ST_OK);
    obuf_fini(&o);
}

static struct kv_op op_of(enum kv_op_kind kind)
{
    return (struct kv_op){.kind = kind, .table = KV_META, .ns = 1, .now = 1, .seed = 1};
}

static void insert(struct fixture *f, int64_t pid, const char *name, int64_t id, char type)
{
    static const unsigned columns[] = {META_PID, META_NAME, META_ID, META_TYPE};
    struct kv_datum values[] = {kv_int(pid), kv_text(bytes_str(name)), kv_int(id), kv_int(type)};
    struct kv_op op = op_of(KV_OP_INSERT);
    op.columns = columns;
    op.column_count = 4;
    op.values = values;
    op.row_count = 1;
    apply(f, &op);
    assert_int_equal(f->last.outcome, ST_OK);
}

static void put_large(struct fixture *f, unsigned i)
{
    static const unsigned columns[] = {KVT_KEY, KVT_VALUE};
    static char value[LARGE_BYTES];
    char key[16];
    memset(value, 'a' + (int)(i % 26), sizeof value);
    snprintf(key, sizeof key, "k%03u", i);
    struct kv_datum values[] = {kv_text(bytes_str(key)), kv_text(bytes_make(value, sizeof value))};
    struct kv_op op = op_of(KV_OP_INSERT);
    op.table = KV_KV;
    op.columns = columns;
    op.column_count = 2;
    op.values = values;
    op.row_count = 1;
    apply(f, &op);
    assert_int_equal(f->last.outcome, ST_OK);
}

static void flush_all(struct fixture *f)
{
    kv_state_seal(f->state, true);
    struct kv_flush *flush = kv_flush_new(f->state, HLC_MAX - 1);
    assert_non_null(flush);
    status st = kv_flush_run(flush);
    kv_flush_done(flush, st);
    assert_int_equal(st, ST_OK);
}

static void fill(struct fixture *f)
{
    char name[16];
    struct kv_op root = op_of(KV_OP_BOOTSTRAP);
    apply(f, &root);
    insert(f, 0, "d", PID, 'd');
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "f%06u", i);
        insert(f, PID, name, 1000 + i, 'f');
    }
    flush_all(f);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    rcu_thread_register();
    rcu_online();
    snprintf(f->dir, sizeof f->dir, "/tmp/cold_apply.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    arena_init(&f->arena, 4096);
    f->ts = hlc_from_us(START_US);
    open_store(f);
    fill(f);
    close_store(f);
    open_store(f); /* nothing is in the block cache now */
    *state = f;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    UNUSED(st)
    , UNUSED(kind)
    , UNUSED(ftw);
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close_store(f);
    arena_fini(&f->arena);
    nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(f);
    rcu_offline();
    rcu_thread_unregister();
    return 0;
}

static void range_delete_over_cold_blocks_ends(void **state)
{
    struct fixture *f = *state;
    struct kv_op op = op_of(KV_OP_DELETE_RANGE);
    op.lower = kv_key_meta(&f->arena, 1, PID, bytes_str("f005000"));
    op.upper = kv_key_meta(&f->arena, 1, PID, bytes_str("f015000"));
    uint8_t keys[2][64]; /* apply resets the arena */
    memcpy(keys[0], op.lower.data, op.lower.size);
    memcpy(keys[1], op.upper.data, op.upper.size);
    op.lower.data = keys[0];
    op.upper.data = keys[1];
    apply(f, &op);
    assert_int_equal(f->last.outcome, ST_OK);
    assert_int_equal(f->last.result.affected, 10000);
    assert_true(f->colds > 0);
}

static void delete_of_a_cold_entry_ends(void **state)
{
    struct fixture *f = *state;
    struct kv_datum key[] = {kv_int(PID), kv_text(bytes_str("f003000"))};
    struct kv_op op = op_of(KV_OP_DELETE);
    op.keys = key;
    op.key_count = 1;
    apply(f, &op);
    assert_int_equal(f->last.result.affected, 1);
    assert_true(f->colds > 0);
    op.keys = key;
    apply(f, &op);
    assert_int_equal(f->last.result.affected, 0);
}

/* All of them in the store, none in its cache. */
static void fill_large(struct fixture *f)
{
    for (unsigned i = 0; i < LARGE_ROWS; i++)
        put_large(f, i);
    flush_all(f);
    close_store(f);
    open_store(f);
}

static struct kv_op delete_large(struct fixture *f, unsigned from, unsigned to, uint8_t keys[2][64])
{
    char key[2][16];
    snprintf(key[0], sizeof key[0], "k%03u", from);
    snprintf(key[1], sizeof key[1], "k%03u", to);
    struct kv_op op = op_of(KV_OP_DELETE_RANGE);
    op.table = KV_KV;
    bytes *bounds[] = {&op.lower, &op.upper};
    for (unsigned i = 0; i < 2; i++) { /* apply resets the arena */
        struct kv_datum column = kv_text(bytes_str(key[i]));
        bytes encoded = kv_key_prefix(&f->arena, 1, KV_KV, &column, 1);
        assert_true(encoded.size <= 64);
        memcpy(keys[i], encoded.data, encoded.size);
        *bounds[i] = bytes_make(keys[i], encoded.size);
    }
    return op;
}

/* A prefetch reads on around its key, and must not displace what it was made for. */
static void large_rows_around_leave_the_row_in_the_cache(void **state)
{
    struct fixture *f = *state;
    uint8_t keys[2][64];
    fill_large(f);
    struct kv_op op = delete_large(f, 140, 150, keys);
    apply(f, &op);
    assert_int_equal(f->last.result.affected, 10);
    assert_in_range(f->colds, 1, 20);
}

/* Its blocks displace each other however they are fetched. */
static void one_that_needs_more_than_the_cache_waits_for_the_disk(void **state)
{
    struct fixture *f = *state;
    uint8_t keys[2][64];
    fill_large(f);
    struct kv_op op = delete_large(f, 0, LARGE_ROWS, keys);
    f->tries_max = 50;
    apply(f, &op);
    assert_int_equal(f->last.result.affected, LARGE_ROWS);
    assert_int_equal(f->colds, 50);
}

static unsigned cold_gets(struct fixture *f)
{
    unsigned cold = 0;
    char name[16];
    for (unsigned i = 0; i < FILES; i++) {
        bytes value;
        arena_reset(&f->arena);
        snprintf(name, sizeof name, "g%06u", i);
        status st = kv_store_get(f->store, bytes_str(name), KV_TIER_CACHE, &f->arena, &value);
        assert_true(st == ST_OK || st == ST_COLD);
        cold += st == ST_COLD;
    }
    return cold;
}

/* Those who just wrote it ask for it soon; opened again, the same blocks are cold. */
static void what_a_flush_wrote_is_in_the_cache(void **state)
{
    struct fixture *f = *state;
    struct kv_store_batch *b = kv_store_batch_new(f->store);
    char name[16];
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "g%06u", i);
        kv_store_batch_put(b, bytes_str(name), bytes_str("a value of some length"));
    }
    assert_int_equal(kv_store_write(f->store, b), ST_OK);
    assert_int_equal(kv_store_flush(f->store), ST_OK);
    assert_int_equal(cold_gets(f), 0);
    close_store(f);
    open_store(f);
    assert_true(cold_gets(f) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(range_delete_over_cold_blocks_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(delete_of_a_cold_entry_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(large_rows_around_leave_the_row_in_the_cache, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_needs_more_than_the_cache_waits_for_the_disk,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_flush_wrote_is_in_the_cache, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
