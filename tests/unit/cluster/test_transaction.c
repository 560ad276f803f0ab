/* Transactions of one node: snapshots, conflicts, locks, savepoints and the limits. */
#include "base/assert.h"
#include "fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct world {
    struct fixture f;
    struct fx_client a, b;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    fx_init(&w->f);
    fx_open(&w->f);
    fx_client_init(&w->a, &w->f);
    fx_client_init(&w->b, &w->f);
    assert_int_equal(fx_op(&w->a, fx_create(&w->a.arena, 0, "d", 'd', 100)), ST_OK);
    assert_int_equal(fx_op(&w->a, fx_create(&w->a.arena, 100, "x", 'f', 1)), ST_OK);
    assert_int_equal(fx_op(&w->a, fx_create(&w->a.arena, 100, "y", 'f', 2)), ST_OK);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    fx_client_fini(&w->a);
    fx_client_fini(&w->b);
    fx_fini(&w->f);
    free(w);
    return 0;
}

static int64_t size_of(struct fx_client *x, const char *name)
{
    assert_int_equal(fx_lookup(x, 100, name), ST_END);
    return x->row_count == 0 ? -1 : x->rows[0].col[META_SIZE].i;
}

static void writes_are_seen_by_others_only_after_commit(void **state)
{
    struct world *w = *state;
    fx_begin(&w->a, false);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 7)), ST_OK);
    assert_int_equal(fx_op(&w->a, fx_create(&w->a.arena, 100, "z", 'f', 3)), ST_OK);
    assert_int_equal(size_of(&w->a, "x"), 7);
    assert_int_equal(size_of(&w->b, "x"), 0);
    assert_int_equal(fx_list(&w->a, 100), 3);
    assert_int_equal(fx_list(&w->b, 100), 2);
    assert_int_equal(fx_commit(&w->a), ST_OK);
    assert_int_equal(size_of(&w->b, "x"), 7);
    assert_int_equal(fx_list(&w->b, 100), 3);
}

static void snapshot_does_not_see_later_commits(void **state)
{
    struct world *w = *state;
    fx_begin(&w->a, true);
    assert_int_equal(size_of(&w->a, "x"), 0);
    assert_int_equal(fx_op(&w->b, fx_set_size(&w->b.arena, 100, "x", 9)), ST_OK);
    assert_int_equal(fx_op(&w->b, fx_remove(&w->b.arena, 100, "y")), ST_OK);
    assert_int_equal(size_of(&w->a, "x"), 0);
    assert_int_equal(fx_list(&w->a, 100), 2);
    assert_int_equal(fx_commit(&w->a), ST_OK);
    assert_int_equal(size_of(&w->a, "x"), 9);
    assert_int_equal(fx_list(&w->a, 100), 1);
}

static void first_committer_wins(void **state)
{
    struct world *w = *state;
    fx_begin(&w->a, false);
    fx_begin(&w->b, false);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 1)), ST_OK);
    assert_int_equal(fx_op(&w->b, fx_set_size(&w->b.arena, 100, "x", 2)), ST_OK);
    assert_int_equal(fx_commit(&w->b), ST_OK);
    assert_int_equal(fx_commit(&w->a), ST_CONFLICT);
    assert_string_equal(w->a.call.err.sqlstate, "40001");
    assert_false(cl_in_transaction(w->a.c));
    assert_int_equal(size_of(&w->a, "x"), 2);
}

static void locked_row_conflicts_with_a_write(void **state)
{
    struct world *w = *state;
    fx_begin(&w->a, false);
    assert_int_equal(fx_op(&w->a, fx_lock(&w->a.arena, 100, "x")), ST_OK);
    assert_int_equal(fx_op(&w->b, fx_set_size(&w->b.arena, 100, "x", 5)), ST_OK);
    assert_int_equal(fx_commit(&w->a), ST_CONFLICT);
}

static void creates_in_one_directory_do_not_conflict(void **state)
{
    struct world *w = *state;
    fx_begin(&w->a, false);
    fx_begin(&w->b, false);
    assert_int_equal(fx_op(&w->a, fx_create(&w->a.arena, 100, "a", 'f', 11)), ST_OK);
    assert_int_equal(fx_op(&w->b, fx_create(&w->b.arena, 100, "b", 'f', 12)), ST_OK);
    assert_int_equal(fx_commit(&w->a), ST_OK);
    assert_int_equal(fx_commit(&w->b), ST_OK);
    assert_int_equal(fx_list(&w->a, 100), 4);
    assert_int_equal(fx_lookup(&w->a, 100, "_attr_"), ST_END);
    assert_int_equal(w->a.rows[0].col[META_NUM_CHILDREN].i, 4);
}

static void time_limit_ends_a_transaction(void **state)
{
    struct world *w = *state;
    fx_begin(&w->a, false);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 3)), ST_OK);
    fx_clock_advance(LIMIT_TXN_MS * 1000u + 1000u);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 4)), ST_TXN_TIMEOUT);
    assert_string_equal(w->a.call.err.sqlstate, "25P04");
    assert_int_equal(fx_lookup(&w->a, 100, "x"), ST_TXN_TIMEOUT);
    assert_int_equal(fx_commit(&w->a), ST_TXN_TIMEOUT);
    assert_int_equal(size_of(&w->a, "x"), 0);
    fx_begin(&w->a, false);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 3)), ST_OK);
    fx_clock_advance(LIMIT_TXN_MS * 1000u + 1000u);
    assert_int_equal(fx_commit(&w->a), ST_TXN_TIMEOUT);
    assert_int_equal(size_of(&w->a, "x"), 0);
}

/* Nothing is under way afterwards that carries a stamp of now: a snapshot is taken below it. */
static void idle(struct fx_client *x)
{
    assert_int_equal(fx_call(x, "wait_for_sinks"), ST_OK);
}

static void idle_time_before_begin_does_not_count(void **state)
{
    struct world *w = *state;
    idle(&w->a);
    fx_clock_advance(60u * 1000000u);
    fx_begin(&w->a, false);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 3)), ST_OK);
    assert_int_equal(fx_commit(&w->a), ST_OK);
    idle(&w->a);
    fx_clock_jump_wall(INT64_C(-3600) * 1000000);
    fx_clock_advance(60u * 1000000u);
    fx_begin(&w->a, false);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 4)), ST_OK);
    assert_int_equal(fx_commit(&w->a), ST_OK);
    assert_int_equal(size_of(&w->a, "x"), 4);
}

static void read_only_refuses_writes(void **state)
{
    struct world *w = *state;
    fx_begin(&w->a, true);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 3)), ST_TXN_STATE);
    assert_string_equal(w->a.call.err.sqlstate, "25006");
    assert_int_equal(size_of(&w->a, "x"), 0);
    assert_int_equal(fx_commit(&w->a), ST_OK);
}

struct savepoint {
    struct cl_client *c;
    kv_txn_mark mark;
};

static void save(void *arg)
{
    struct savepoint *s = arg;
    s->mark = cl_savepoint(s->c);
}

static void back(void *arg)
{
    struct savepoint *s = arg;
    cl_rollback_to(s->c, s->mark);
}

static void savepoints_undo_what_came_after(void **state)
{
    struct world *w = *state;
    struct savepoint empty = {.c = w->a.c}, one = {.c = w->a.c};
    fx_begin(&w->a, false);
    fx_on_reactor(&w->f, save, &empty);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 1)), ST_OK);
    fx_on_reactor(&w->f, save, &one);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "x", 2)), ST_OK);
    assert_int_equal(fx_op(&w->a, fx_create(&w->a.arena, 100, "n", 'f', 9)), ST_OK);
    fx_on_reactor(&w->f, back, &one);
    assert_int_equal(size_of(&w->a, "x"), 1);
    assert_int_equal(size_of(&w->a, "n"), -1);
    fx_on_reactor(&w->f, back, &empty);
    assert_int_equal(size_of(&w->a, "x"), 0);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "y", 8)), ST_OK);
    assert_int_equal(fx_commit(&w->a), ST_OK);
    assert_int_equal(size_of(&w->b, "x"), 0);
    assert_int_equal(size_of(&w->b, "y"), 8);
}

static void failed_statement_leaves_the_transaction_as_before(void **state)
{
    struct world *w = *state;
    const struct kv_op *two[] = {fx_create(&w->a.arena, 100, "n", 'f', 9),
                                 fx_create(&w->a.arena, 100, "x", 'f', 10)};
    fx_begin(&w->a, false);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "y", 8)), ST_OK);
    assert_int_equal(fx_ops(&w->a, two, 2), ST_EXISTS);
    assert_int_equal(size_of(&w->a, "n"), -1);
    assert_int_equal(fx_commit(&w->a), ST_OK);
    assert_int_equal(size_of(&w->b, "y"), 8);
    assert_int_equal(size_of(&w->b, "n"), -1);
}

static void second_table_is_refused(void **state)
{
    struct world *w = *state;
    fx_begin(&w->a, false);
    assert_int_equal(fx_op(&w->a, fx_set_size(&w->a.arena, 100, "y", 8)), ST_OK);
    assert_int_equal(fx_op(&w->a, fx_kv_put(&w->a.arena, "k", "v")), ST_UNSUPPORTED);
    assert_int_equal(fx_lookup_kv(&w->a, "k"), ST_END);
    assert_int_equal(fx_commit(&w->a), ST_OK);
    assert_int_equal(size_of(&w->b, "y"), 8);
}

static void rollback_leaves_nothing(void **state)
{
    struct world *w = *state;
    fx_begin(&w->a, false);
    assert_int_equal(fx_op(&w->a, fx_remove(&w->a.arena, 100, "x")), ST_OK);
    fx_rollback(&w->a);
    assert_int_equal(size_of(&w->a, "x"), 0);
    assert_int_equal(FX_PEEK(&w->f, w->f.node->txn_bytes), 0);
    assert_int_equal(FX_PEEK(&w->f, w->f.node->transactions), 0);
}

static void allow_little(void *arg)
{
    ((struct fixture *)arg)->node->options.txn_bytes = 64 * 1024;
}

static void too_much_memory_is_refused_and_undone(void **state)
{
    struct world *w = *state;
    status st = ST_OK;
    char name[16];
    unsigned made = 0;
    fx_on_reactor(&w->f, allow_little, &w->f);
    fx_begin(&w->a, false);
    for (; made < 10000 && st == ST_OK; made++) {
        snprintf(name, sizeof name, "n%u", made);
        arena_reset(&w->a.arena);
        st = fx_op(&w->a, fx_create(&w->a.arena, 100, name, 'f', 1000 + made));
    }
    assert_int_equal(st, ST_NO_MEMORY);
    assert_int_equal(size_of(&w->a, name), -1);
    assert_int_equal(fx_commit(&w->a), ST_OK);
    assert_int_equal(fx_list(&w->b, 100), 2 + made - 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writes_are_seen_by_others_only_after_commit),
        TEST(snapshot_does_not_see_later_commits),
        TEST(first_committer_wins),
        TEST(locked_row_conflicts_with_a_write),
        TEST(creates_in_one_directory_do_not_conflict),
        TEST(time_limit_ends_a_transaction),
        TEST(idle_time_before_begin_does_not_count),
        TEST(read_only_refuses_writes),
        TEST(savepoints_undo_what_came_after),
        TEST(failed_statement_leaves_the_transaction_as_before),
        TEST(second_table_is_refused),
        TEST(rollback_leaves_nothing),
        TEST(too_much_memory_is_refused_and_undone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
