/*
 * Compactions of ranges where much was deleted: by themselves, not at all, by hand, at a stop.
 */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define KEYS 1000u
#define FIRST_DELETED 200u
#define DELETED 700u

static struct kv_datum key_of(struct arena *a, unsigned i)
{
    return kv_text(bytes_str(arena_printf(a, "key%06u", i)));
}

static void put_keys(struct fx_client *x, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i += 50) {
        const struct kv_op *ops[50];
        arena_reset(&x->arena);
        for (unsigned k = 0; k < 50; k++)
            ops[k] = fx_kv_put(&x->arena, (const char *)key_of(&x->arena, i + k).b.data, "value");
        assert_int_equal(fx_ops(x, ops, 50), ST_OK);
    }
}

static void delete_keys(struct fx_client *x, unsigned from, unsigned count)
{
    arena_reset(&x->arena);
    struct kv_op *op = fx_kv_put(&x->arena, "", "");
    struct kv_datum *keys = ARENA_ARRAY(&x->arena, struct kv_datum, count);
    for (unsigned i = 0; i < count; i++)
        keys[i] = key_of(&x->arena, from + i);
    *op = (struct kv_op){.kind = KV_OP_DELETE,
                         .table = KV_KV,
                         .ns = op->ns,
                         .now = op->now,
                         .seed = op->seed,
                         .keys = keys,
                         .key_count = count};
    assert_int_equal(fx_op(x, op), ST_OK);
}

static void set_up(struct fixture *f)
{
    fx_init(f);
    fx_set(f, "mvcc.retention", "1ms");
    fx_set(f, "compaction.tombstones", "500");
    fx_set(f, "compaction.work", "1MB");
}

/* Keys in the store, and then a part of them deleted there: one flush of that shard more. */
static void fill(struct fixture *f, struct fx_client *x)
{
    fx_open(f);
    fx_client_init(x, f);
    put_keys(x, 0, KEYS);
    assert_int_equal(fx_call(x, "flush"), ST_OK);
    delete_keys(x, FIRST_DELETED, DELETED);
    assert_int_equal(fx_call(x, "flush"), ST_OK);
}

struct seen {
    uint64_t done, tombstones; /* of the shard's compactions */
    uint64_t ranges, dense, due;
};

static void see_compactions(void *arg, const struct kv_datum *v)
{
    struct seen *s = arg;
    if (v[0].i == CL_KV + 1) {
        s->done = (uint64_t)v[4].i;
        s->tombstones = (uint64_t)v[5].i;
    }
}

static void see_density(void *arg, const struct kv_datum *v)
{
    struct seen *s = arg;
    if (v[0].i != CL_KV + 1 || bytes_eq(v[1].b, BYTES_LIT("of the shard")))
        return;
    s->ranges++;
    s->dense += bytes_eq(v[7].b, BYTES_LIT("dense"));
    s->due += !v[9].null;
    assert_true(bytes_eq(v[1].b, BYTES_LIT("kv")));
    assert_true(bytes_has_prefix(v[2].b, BYTES_LIT("key000")));
}

static struct seen look(struct fixture *f)
{
    struct seen s = {.done = 0};
    fx_view(f, "compactions", see_compactions, &s);
    fx_view(f, "delete_density", see_density, &s);
    return s;
}

static void rest_is_there(struct fx_client *x)
{
    char key[16];
    for (unsigned i = 0; i < KEYS; i += 10) {
        bool deleted = i >= FIRST_DELETED && i < FIRST_DELETED + DELETED;
        snprintf(key, sizeof key, "key%06u", i);
        arena_reset(&x->arena);
        assert_int_equal(fx_lookup_kv(x, key), ST_END);
        assert_int_equal(x->row_count, deleted ? 0 : 1);
    }
}

static void a_dense_range_is_compacted_by_itself(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct seen s;
    set_up(&f);
    fill(&f, &x);
    for (unsigned i = 0; (s = look(&f)).done == 0 && i < 5000; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(s.done, 1);
    assert_int_equal(s.tombstones, DELETED);
    assert_int_equal(s.dense, 0);
    rest_is_there(&x);
    fx_client_fini(&x);
    fx_reopen(&f);
    fx_client_init(&x, &f);
    rest_is_there(&x);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void global_mode_waits_for_the_stores_own_and_for_who_asks(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    set_up(&f);
    fx_set(&f, "compaction.mode", "global");
    fill(&f, &x);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    struct seen s = look(&f);
    assert_int_equal(s.done, 0);
    assert_true(s.dense > 0);
    assert_int_equal(s.due, 0);
    const struct kv_datum nothing[] = {KV_NULL, KV_NULL}, none[] = {kv_int(9), KV_NULL},
                          directory[] = {kv_int(CL_KV + 1), kv_int(0)},
                          shard[] = {kv_int(CL_KV + 1), KV_NULL};
    assert_int_equal(fx_call_with(&x, "compact", nothing), ST_INVALID);
    assert_int_equal(fx_call_with(&x, "compact", none), ST_INVALID);
    assert_int_equal(fx_call_with(&x, "compact", directory), ST_INVALID);
    assert_int_equal(fx_call_with(&x, "compact", shard), ST_OK);
    assert_int_equal(x.row_count, 1);
    assert_true(x.rows[0].col[2].i >= DELETED);
    assert_int_equal(x.rows[0].col[3].i, 0);
    assert_true(x.rows[0].col[4].i > 0);
    s = look(&f);
    assert_int_equal(s.done, 1);
    assert_int_equal(s.ranges, 0);
    rest_is_there(&x);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void what_would_cost_too_much_waits_for_more_deletions(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct seen s;
    set_up(&f);
    fx_set(&f, "compaction.work", "1B");
    fill(&f, &x);
    for (unsigned i = 0; (s = look(&f)).dense > 0 && i < 5000; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(s.done, 0);
    assert_int_equal(s.dense, 0);
    assert_true(s.ranges > 0);
    rest_is_there(&x);
    fx_client_fini(&x);
    fx_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_range_is_compacted_by_itself),
        cmocka_unit_test(global_mode_waits_for_the_stores_own_and_for_who_asks),
        cmocka_unit_test(what_would_cost_too_much_waits_for_more_deletions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
