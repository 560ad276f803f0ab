/* Transactions of sessions: own writes, conflicts, savepoints. */
#include "ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int setup(void **state)
{
    shard_setup(state);
    struct shard *shard = *state;
    EXPECT("00000",
           run(shard, "insert meta pid=0 name=d type=d id=17 | 0 e d 18 | 17 a f 1 | 17 b f 2"));
    return 0;
}

static void own_writes_are_seen_and_nobody_elses(void **state)
{
    struct shard *s = *state;
    struct session t;
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=c size=3"));
    EXPECT("00000", session_run(&t, "update meta 17 a : size=7"));
    EXPECT("00000", session_run(&t, "delete meta 17 b"));
    EXPECT("none", get(s, "meta 17 c", "id"));
    EXPECT("0", get(s, "meta 17 a", "size"));
    EXPECT("3 NULL", session_get(&t, "meta 17 c", "size seq"));
    EXPECT("7 NULL", session_get(&t, "meta 17 a", "size seq"));
    EXPECT("none", session_get(&t, "meta 17 b", "size"));
    EXPECT("23505", session_run(&t, "insert meta pid=17 name=c"));
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=b size=1"));
    EXPECT("00000", session_run(&t, "update meta 17 c : size=4 : seq=1"));
    assert_int_equal(t.result.affected, 0);
    EXPECT("3", session_get(&t, "meta 17 _attr_", "num_children"));
    EXPECT("00000", run(s, "insert meta pid=17 name=other"));
    EXPECT("4", session_get(&t, "meta 17 _attr_", "num_children")); /* always current */
    EXPECT("none", session_get(&t, "meta 17 other", "id"));
    EXPECT("00000", session_commit(&t));
    EXPECT("17 a 7 | 17 b 1 | 17 c 3 | 17 other 0",
           (run(s, "update meta 17 a 17 b 17 c 17 other : uid=0"), returned(s, "pid name size")));
    EXPECT("4", get(s, "meta 17 _attr_", "num_children"));
}

static void scans_merge_own_writes_both_ways(void **state)
{
    struct shard *s = *state;
    struct session t;
    EXPECT("00000", run(s, "insert meta pid=17 name=g | 17 m | 17 z"));
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=0 | 17 c | 17 zz"));
    EXPECT("00000", session_run(&t, "delete meta 17 a 17 m"));
    EXPECT("00000", session_run(&t, "update meta 17 g : size=5"));
    EXPECT("0 _attr_ b c g z zz", session_list(&t, 17, false));
    EXPECT("zz z g c b _attr_ 0", session_list(&t, 17, true));
    EXPECT("00000", session_run(&t, "range meta 17 0 z"));
    EXPECT("_attr_ z zz", session_list(&t, 17, false));
    EXPECT("00000", session_run(&t, "insert meta pid=18 name=x"));
    EXPECT("_attr_ x", session_list(&t, 18, false));
    EXPECT("x _attr_", session_list(&t, 18, true));
    session_rollback(&t);
    EXPECT("0 d | 0 e", (run(s, "update meta 0 d 0 e : uid=0"), returned(s, "pid name")));
}

static void first_committer_wins(void **state)
{
    struct shard *s = *state;
    struct session t, u;
    session_begin(&t, s);
    session_begin(&u, s);
    EXPECT("00000", session_run(&t, "update meta 17 a : size=1"));
    EXPECT("00000", session_run(&u, "update meta 17 a : size=2"));
    EXPECT("00000", session_commit(&u));
    EXPECT("40001", session_commit(&t));
    EXPECT("2", get(s, "meta 17 a", "size"));
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "delete meta 17 a"));
    EXPECT("00000", run(s, "update meta 17 a : size=3"));
    EXPECT("40001", session_commit(&t));
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=new"));
    EXPECT("00000", run(s, "insert meta pid=17 name=new"));
    EXPECT("40001", session_commit(&t));
    EXPECT("3", get(s, "meta 17 _attr_", "num_children"));
}

/* What a transaction conflicts with is flushed before it is applied: at once, or because the log
 * goes on behind what the store has, and is applied again after a restart. */
static void conflict_is_found_behind_a_flush(void **state)
{
    struct shard *s = *state;
    const char *const changes[] = {"update meta 17 a : size=3", "delete meta 17 a"};
    for (unsigned i = 0; i < ARRAY_LEN(changes); i++) {
        for (unsigned reopen = 0; reopen < 2; reopen++) {
            struct session t;
            struct obuf command;
            (void)run(s, "insert meta pid=17 name=a");
            (void)run(s, "insert meta pid=17 name=b");
            session_begin(&t, s);
            EXPECT("00000", session_run(&t, "update meta 17 a : size=1"));
            EXPECT("00000", run(s, changes[i]));
            obuf_init(&command);
            kv_command_txn(&command, t.txn, t.snapshot, (struct kv_origin){.incarnation = 1});
            session_rollback(&t);
            shard_seal(s, true);
            if (reopen == 1)
                shard_reopen(s);
            EXPECT("40001", apply_bytes(s, bytes_make(command.data, command.size)));
            obuf_fini(&command);
            /* Another row has no conflict. */
            session_begin(&t, s);
            EXPECT("00000", session_run(&t, "update meta 17 b : size=1"));
            EXPECT("00000", session_commit(&t));
        }
    }
}

static void write_skew_is_permitted(void **state)
{
    struct shard *s = *state;
    struct session t, u;
    session_begin(&t, s);
    session_begin(&u, s);
    EXPECT("0", session_get(&t, "meta 17 b", "size"));
    EXPECT("0", session_get(&u, "meta 17 a", "size"));
    EXPECT("00000", session_run(&t, "update meta 17 a : size=1"));
    EXPECT("00000", session_run(&u, "update meta 17 b : size=1"));
    EXPECT("00000", session_commit(&t));
    EXPECT("00000", session_commit(&u));
}

static void creates_in_one_directory_do_not_conflict(void **state)
{
    struct shard *s = *state;
    struct session t, u;
    session_begin(&t, s);
    session_begin(&u, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=t"));
    EXPECT("00000", session_run(&u, "insert meta pid=17 name=u"));
    EXPECT("00000", session_commit(&t));
    EXPECT("00000", session_commit(&u));
    EXPECT("4", get(s, "meta 17 _attr_", "num_children"));
}

static void removed_directory_conflicts_with_create(void **state)
{
    struct shard *s = *state;
    struct session t, u;
    session_begin(&t, s);
    session_begin(&u, s);
    EXPECT("00000", session_run(&t, "insert meta pid=18 name=x"));
    EXPECT("00000", session_run(&u, "delete meta 0 e"));
    EXPECT("00000", session_commit(&u));
    EXPECT("40001", session_commit(&t));

    EXPECT("00000", run(s, "insert meta pid=0 name=e type=d id=18"));
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "delete meta 0 e"));
    EXPECT("00000", run(s, "insert meta pid=18 name=x"));
    EXPECT("40001", session_commit(&t));
    EXPECT("1", get(s, "meta 18 _attr_", "num_children"));
}

static void directory_emptied_and_removed_in_one_transaction(void **state)
{
    struct shard *s = *state;
    struct session t;
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "delete meta 17 a 17 b 0 d"));
    EXPECT("00000", session_commit(&t));
    EXPECT("none", get(s, "meta 17 _attr_", "id"));
    EXPECT("1", get(s, "meta 0 _attr_", "num_children"));
}

static void what_is_born_and_dies_inside_leaves_no_tombstone(void **state)
{
    struct shard *s = *state;
    struct kv_state_stats before, after;
    const char *both[] = {"insert kv key=a value=1", "delete kv a"};
    shard_seal(s, true);
    kv_state_stats(s->state, &before);
    EXPECT("00000", run_all(s, both, 2));
    kv_state_stats(s->state, &after);
    assert_int_equal(after.entries, before.entries);
}

static void detached_directory_conflicts_with_create(void **state)
{
    struct shard *s = *state;
    struct session t;
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=18 name=x"));
    EXPECT("00000", run(s, "detach 0 e"));
    EXPECT("40001", session_commit(&t));
}

static void two_moves_cannot_make_a_loop_together(void **state)
{
    struct shard *s = *state;
    struct session t, u;
    session_begin(&t, s);
    session_begin(&u, s);
    EXPECT("00000", session_run(&t, "move 0 d 18 d"));
    EXPECT("00000", session_run(&u, "move 0 e 17 e"));
    EXPECT("00000", session_commit(&t));
    EXPECT("40001", session_commit(&u));
    session_begin(&u, s);
    EXPECT("00000", session_run(&u, "move 18 d 0 d"));
    EXPECT("00000", run(s, "insert meta pid=0 name=q type=d id=20"));
    EXPECT("00000", run(s, "move 0 q 17 q")); /* outside a transaction counts too */
    EXPECT("40001", session_commit(&u));
}

static void locked_rows_conflict(void **state)
{
    struct shard *s = *state;
    struct session t, u;
    char seq[64];
    snprintf(seq, sizeof seq, "%s", get(s, "meta 17 a", "seq"));
    session_begin(&t, s);
    session_begin(&u, s);
    EXPECT("00000", session_run(&t, "lock meta 17 a 17 nobody"));
    assert_int_equal(t.result.affected, 1);
    assert_true(kv_txn_has_writes(t.txn));
    EXPECT("00000", session_run(&u, "update meta 17 a : size=2"));
    EXPECT("00000", session_commit(&t));
    EXPECT(seq, get(s, "meta 17 a", "seq")); /* a lock is no change */
    EXPECT("40001", session_commit(&u));
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "lock meta 17 a"));
    EXPECT("00000", run(s, "update meta 17 a : size=2"));
    EXPECT("40001", session_commit(&t));
}

static void savepoints_undo_what_came_after(void **state)
{
    struct shard *s = *state;
    struct session t;
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=c size=1"));
    kv_txn_mark first = kv_txn_save(t.txn);
    EXPECT("00000", session_run(&t, "update meta 17 c : size=2"));
    kv_txn_mark second = kv_txn_save(t.txn);
    EXPECT("00000", session_run(&t, "update meta 17 c : size=3"));
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=x | 17 y"));
    EXPECT("5", session_get(&t, "meta 17 _attr_", "num_children"));
    kv_txn_rollback_to(t.txn, second);
    EXPECT("2", session_get(&t, "meta 17 c", "size"));
    EXPECT("3", session_get(&t, "meta 17 _attr_", "num_children"));
    EXPECT("00000", session_run(&t, "delete meta 17 c"));
    EXPECT("none", session_get(&t, "meta 17 c", "size"));
    kv_txn_rollback_to(t.txn, first);
    EXPECT("1", session_get(&t, "meta 17 c", "size"));
    EXPECT("23505", session_run(&t, "insert meta pid=17 name=y | 17 c"));
    EXPECT("none", session_get(&t, "meta 17 y", "size"));
    EXPECT("00000", session_commit(&t));
    EXPECT("1", get(s, "meta 17 c", "size"));
    EXPECT("3", get(s, "meta 17 _attr_", "num_children"));
    deliver(s, 100, true);
    EXPECT("0 #DIR 2 | 0 #FILE 3 | 0 #SIZE 1", all(s, "quota", "uid name value"));
}

static void many_writes_are_found_and_undone(void **state)
{
    struct shard *s = *state;
    struct session t;
    char text[64];
    session_begin(&t, s);
    for (unsigned i = 0; i < 500; i++) {
        snprintf(text, sizeof text, "insert meta pid=17 name=f%u size=%u", i, i);
        EXPECT("00000", session_run(&t, text));
    }
    kv_txn_mark mark = kv_txn_save(t.txn);
    for (unsigned i = 0; i < 500; i += 2) {
        snprintf(text, sizeof text, "delete meta 17 f%u", i);
        EXPECT("00000", session_run(&t, text));
    }
    EXPECT("252", session_get(&t, "meta 17 _attr_", "num_children"));
    kv_txn_rollback_to(t.txn, mark);
    for (unsigned i = 0; i < 500; i++) {
        char size[16];
        snprintf(text, sizeof text, "meta 17 f%u", i);
        snprintf(size, sizeof size, "%u", i);
        EXPECT(size, session_get(&t, text, "size"));
    }
    EXPECT("00000", session_commit(&t));
    EXPECT("502", get(s, "meta 17 _attr_", "num_children"));
}

static void explicit_time_and_counts_meet_at_commit(void **state)
{
    struct shard *s = *state;
    struct session t;
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=t"));
    EXPECT("00000", session_run(&t, "update meta 17 _attr_ : mtime=5 mode=448"));
    EXPECT("3 5 448", session_get(&t, "meta 17 _attr_", "num_children mtime mode"));
    s->now += 100;
    EXPECT("00000", run(s, "insert meta pid=17 name=other"));
    EXPECT("00000", session_commit(&t));
    /* The count of the other insert is not lost, the time set later wins. */
    EXPECT("4 5 448", get(s, "meta 17 _attr_", "num_children mtime mode"));
    EXPECT("00000", run(s, "delete meta 17 other"));
    EXPECT("3", get(s, "meta 17 _attr_", "num_children"));
}

static void directory_made_and_removed_inside_leaves_nothing(void **state)
{
    struct shard *s = *state;
    struct session t;
    uint64_t before = shard_hash(s);
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=n type=d id=30 | 30 x f 31"));
    EXPECT("1", session_get(&t, "meta 30 _attr_", "num_children"));
    EXPECT("2BP01", session_run(&t, "delete meta 17 n"));
    EXPECT("00000", session_run(&t, "delete meta 30 x 17 n"));
    EXPECT("23503", session_run(&t, "insert meta pid=30 name=y"));
    EXPECT("2", session_get(&t, "meta 17 _attr_", "num_children"));
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=n type=d id=30"));
    EXPECT("0", session_get(&t, "meta 30 _attr_", "num_children"));
    EXPECT("00000", session_run(&t, "delete meta 17 n"));
    EXPECT("00000", session_commit(&t));
    EXPECT("none", get(s, "meta 30 _attr_", "id"));
    deliver(s, 100, true);
    EXPECT("0 #DIR 2 | 0 #FILE 2", all(s, "quota", "uid name value"));
    assert_true(before != 0);
}

static void new_directory_keeps_the_entries_of_its_transaction(void **state)
{
    struct shard *s = *state;
    struct session t;
    session_begin(&t, s);
    EXPECT("00000",
           session_run(&t, "insert meta pid=17 name=n type=d id=30 | 30 x f 31 | 30 y f 32"));
    EXPECT("00000", session_run(&t, "update meta 17 n : mode=448"));
    EXPECT("00000", session_run(&t, "delete meta 30 y"));
    EXPECT("00000", session_commit(&t));
    EXPECT("1 448 17", get(s, "meta 30 _attr_", "num_children mode parent"));
    EXPECT("3", get(s, "meta 17 _attr_", "num_children"));
}

static void late_transaction_is_refused(void **state)
{
    struct shard *s = *state;
    struct session t;
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=t"));
    s->ts = t.snapshot + hlc_ms(LIMIT_TXN_MS);
    EXPECT("25P04", session_commit(&t));
    EXPECT("none", get(s, "meta 17 t", "id"));
}

static void drawn_ids_inside_do_not_use_the_counter(void **state)
{
    struct shard *s = *state;
    struct session t;
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=t | 17 u"));
    int64_t a = t.result.rows[0].col[META_ID].i, b = t.result.rows[1].col[META_ID].i;
    assert_true(a != b);
    assert_true((a >> 61) == 3 && (b >> 61) == 3);
    EXPECT("00000", session_commit(&t));
    assert_int_equal(kv_state_record(s->state)->next_file_id, 0);
}

static void range_in_a_transaction_is_bounded(void **state)
{
    struct shard *s = *state;
    struct session t;
    char text[64];
    for (unsigned i = 0; i < 4097; i++) {
        snprintf(text, sizeof text, "insert kv key=k%05u", i);
        EXPECT("00000", run(s, text));
    }
    session_begin(&t, s);
    EXPECT("54000", session_run(&t, "range kv k l"));
    assert_false(kv_txn_has_writes(t.txn));
    EXPECT("00000", session_run(&t, "range kv k k04096"));
    assert_int_equal(t.result.affected, 4096);
    session_rollback(&t);
    EXPECT("00000", run(s, "range kv k l"));
    assert_int_equal(s->last.result.affected, 4097);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, shard_teardown)
        T(own_writes_are_seen_and_nobody_elses),
        T(scans_merge_own_writes_both_ways),
        T(first_committer_wins),
        T(conflict_is_found_behind_a_flush),
        T(write_skew_is_permitted),
        T(creates_in_one_directory_do_not_conflict),
        T(removed_directory_conflicts_with_create),
        T(directory_emptied_and_removed_in_one_transaction),
        T(what_is_born_and_dies_inside_leaves_no_tombstone),
        T(detached_directory_conflicts_with_create),
        T(two_moves_cannot_make_a_loop_together),
        T(locked_rows_conflict),
        T(savepoints_undo_what_came_after),
        T(many_writes_are_found_and_undone),
        T(explicit_time_and_counts_meet_at_commit),
        T(directory_made_and_removed_inside_leaves_nothing),
        T(new_directory_keeps_the_entries_of_its_transaction),
        T(late_transaction_is_refused),
        T(drawn_ids_inside_do_not_use_the_counter),
        T(range_in_a_transaction_is_bounded),
    };
    return run_shard_tests(tests);
}
