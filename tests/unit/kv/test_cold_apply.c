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
#define TRIES_MAX 1000u /* far more than the blocks that FILES rows fill */
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
    unsigned colds;
    struct kv_applied last;
};

static void open_store(struct fixture *f)
{
    static const struct kv_store_options o = {
        .block_cache_bytes = 32u << 20, .write_buffer_bytes = 1u << 20, .background_threads = 1};
    struct err err;
    assert_int_equal(kv_store_open_rocks(f->dir, &o, &f->store, &err), ST_OK);
    assert_int_equal(kv_state_open(f->store, &options, &f->state, &err), ST_OK);
}

static void close_store(struct fixture *f)
{
    kv_state_close(f->state);
    kv_store_close(f->store);
}

/* Applies OP as the shard's host does: prefetch and again, a bounded number of times. */
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
        arena_reset(&f->arena);
        st = kv_apply(f->state, f->index, 1, bytes_make(o.data, o.size), &f->arena, &f->last);
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
    kv_state_seal(f->state, true);
    struct kv_flush *flush = kv_flush_new(f->state, HLC_MAX - 1);
    assert_non_null(flush);
    status st = kv_flush_run(flush);
    kv_flush_done(flush, st);
    assert_int_equal(st, ST_OK);
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
        cmocka_unit_test_setup_teardown(what_a_flush_wrote_is_in_the_cache, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
