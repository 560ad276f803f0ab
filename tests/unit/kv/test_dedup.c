/*
 * Commands that come twice: the second one changes nothing and gets the first answer, also behind a
 * flush and a reopening, in a replay, and in a state that came as a snapshot. What was forgotten is
 * refused.
 */
#include "ops.h"

#include "base/codec.h"
#include "kv/answer.h"
#include "kv/dedup.h"
#include "kv/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ME 77u

static struct kv_origin origin(const struct shard *s, uint64_t sequence)
{
    return (struct kv_origin){.incarnation = ME,
                              .sequence = sequence,
                              .since = kv_state_applied_ts(s->state),
                              .again = true};
}

static const char *run_as(struct shard *s, struct kv_origin o, const char *statement)
{
    struct arena a;
    struct obuf out;
    struct kv_op op;
    const struct kv_op *ops[] = {&op};
    arena_init(&a, 4096);
    obuf_init(&out);
    parse_op(s, &a, statement, &op);
    op.want_rows = true;
    kv_command_ops(&out, ops, 1, o);
    const char *state = apply_bytes(s, bytes_make(out.data, out.size));
    obuf_fini(&out);
    arena_fini(&a);
    return state;
}

/* -- the answer -------------------------------------------------------------------------------- */

static void the_second_one_gets_the_first_answer(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert meta pid=0 name=f type=f id=5 size=10"));
    struct kv_origin add = origin(s, 1);
    EXPECT("00000", run_as(s, add, "update meta 0 f : size+=5"));
    char first[64];
    snprintf(first, sizeof first, "%.60s", returned(s, "name size seq"));
    assert_int_equal(s->last.result.affected, 1);
    EXPECT("00000", run_as(s, add, "update meta 0 f : size+=5"));
    EXPECT(first, returned(s, "name size seq"));
    assert_int_equal(s->last.result.affected, 1);
    EXPECT("15", get(s, "meta 0 f", "size"));
    /* Another id is another command. */
    EXPECT("00000", run_as(s, origin(s, 2), "update meta 0 f : size+=5"));
    EXPECT("20", get(s, "meta 0 f", "size"));
    /* So is one that does not say that it may come again. */
    add.again = false;
    EXPECT("00000", run_as(s, add, "update meta 0 f : size+=5"));
    EXPECT("25", get(s, "meta 0 f", "size"));
}

static void an_error_is_an_answer(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert kv key=a value=1"));
    struct kv_origin o = origin(s, 3);
    EXPECT("23505", run_as(s, o, "insert kv key=a value=2"));
    char detail[sizeof s->last.err.detail];
    snprintf(detail, sizeof detail, "%s", s->last.err.detail);
    EXPECT("00000", run(s, "delete kv a"));
    EXPECT("23505", run_as(s, o, "insert kv key=a value=2"));
    EXPECT(detail, s->last.err.detail);
    EXPECT("kv_pkey", s->last.err.constraint);
    EXPECT("none", get(s, "kv a", "value"));
}

static void a_long_answer_is_remembered_as_given(void **state)
{
    struct shard *s = *state;
    struct kv_origin o = origin(s, 4);
    EXPECT("00000", run_as(s, o, "insert kv key=long value=*70000"));
    assert_int_equal(s->last.result.row_count, 1);
    EXPECT("40003", run_as(s, o, "insert kv key=long value=*70000"));
}

/* -- forgetting -------------------------------------------------------------------------------- */

static void what_is_old_is_refused(void **state)
{
    struct shard *s = *state;
    struct kv_dedup_stats stats;
    struct kv_origin old = origin(s, 10);
    EXPECT("00000", run_as(s, old, "insert kv key=old value=1"));
    EXPECT("00000", run(s, "delete kv old"));
    struct kv_origin idle = origin(s, 11); /* made now, sent much later */
    s->ts += hlc_ms(KV_DEDUP_SECONDS * 1000 - 1);
    EXPECT("00000", run_as(s, origin(s, 12), "insert kv key=b value=1"));
    EXPECT("00000", run_as(s, old, "insert kv key=old value=1"));
    EXPECT("none", get(s, "kv old", "value"));
    s->ts += hlc_ms(1000);
    EXPECT("00000", run_as(s, origin(s, 13), "insert kv key=c value=1"));
    kv_dedup_stats(s->state, &stats);
    assert_true(stats.dropped > old.since);
    EXPECT("40003", run_as(s, old, "insert kv key=old value=1"));
    EXPECT("none", get(s, "kv old", "value"));
    /* Nothing younger than what IDLE knew has been forgotten. */
    assert_true(stats.dropped <= idle.since);
    EXPECT("00000", run_as(s, idle, "insert kv key=idle value=1"));
}

static void a_command_from_the_future_is_refused(void **state)
{
    struct shard *s = *state;
    struct kv_origin o = origin(s, 20);
    o.since = s->ts + hlc_ms(60000);
    EXPECT("40003", run_as(s, o, "insert kv key=future value=1"));
    EXPECT("none", get(s, "kv future", "value"));
}

static void the_count_is_bounded(void **state)
{
    struct shard *s = *state;
    struct kv_dedup_stats stats;
    struct kv_origin first = origin(s, 1000), second;
    EXPECT("00000", run_as(s, first, "insert kv key=n value=1"));
    second = origin(s, 1001);
    EXPECT("00000", run_as(s, second, "update kv n : value=2"));
    for (unsigned i = 2; i <= KV_DEDUP_COUNT_MAX; i++)
        EXPECT("00000", run_as(s, origin(s, 1000 + i), "lock kv n"));
    kv_dedup_stats(s->state, &stats);
    assert_true(stats.answers <= KV_DEDUP_COUNT_MAX);
    assert_true(stats.bytes <= KV_DEDUP_BYTES_MAX);
    EXPECT("40003", run_as(s, first, "insert kv key=n value=1"));
    EXPECT("00000", run_as(s, origin(s, 1000 + KV_DEDUP_COUNT_MAX), "update kv n : value=3"));
    EXPECT("2", get(s, "kv n", "value"));
}

static void the_bytes_are_bounded(void **state)
{
    struct shard *s = *state;
    struct kv_dedup_stats stats;
    struct kv_origin first = origin(s, 200000);
    EXPECT("00000", run_as(s, first, "insert kv key=big value=*60000"));
    for (unsigned i = 1; i <= KV_DEDUP_BYTES_MAX / 60000; i++)
        EXPECT("00000", run_as(s, origin(s, 200000 + i), "update kv big : value=*60000"));
    kv_dedup_stats(s->state, &stats);
    assert_true(stats.bytes <= KV_DEDUP_BYTES_MAX);
    EXPECT("40003", run_as(s, first, "insert kv key=big value=*60000"));
}

/* -- the memory is part of the state ----------------------------------------------------------- */

static void reopen(struct shard *s)
{
    static const struct kv_state_options options = {
        .shard = 1, .memtable_bytes = 1u << 24, .retention_us = SHARD_RETENTION_COMMANDS};
    struct err err;
    kv_state_close(s->state);
    assert_int_equal(kv_state_open(s->store, &options, &s->state, &err), ST_OK);
}

static uint64_t answers_in_store(struct shard *s)
{
    struct kv_dedup_stats stats;
    reopen(s);
    kv_dedup_stats(s->state, &stats);
    return stats.answers;
}

static void it_survives_flush_and_reopening(void **state)
{
    struct shard *s = *state;
    struct kv_origin before = origin(s, 1);
    EXPECT("00000", run_as(s, before, "insert kv key=a value=1"));
    shard_seal(s, true);
    struct kv_origin after = origin(s, 2);
    EXPECT("23505", run_as(s, after, "insert kv key=a value=2"));
    shard_seal(s, true);
    uint64_t hash = shard_hash(s);
    assert_int_equal(answers_in_store(s), 2);
    assert_int_equal(shard_hash(s), hash);
    EXPECT("00000", run_as(s, before, "insert kv key=a value=1"));
    EXPECT("23505", run_as(s, after, "insert kv key=a value=2"));
    /* Both are forgotten, and leave the store too. */
    s->ts += hlc_ms(KV_DEDUP_SECONDS * 1000 + 1000);
    EXPECT("00000", run_as(s, origin(s, 3), "delete kv a"));
    shard_seal(s, true);
    hash = shard_hash(s);
    assert_int_equal(answers_in_store(s), 1);
    assert_int_equal(shard_hash(s), hash);
    EXPECT("40003", run_as(s, before, "insert kv key=a value=1"));
    EXPECT("none", get(s, "kv a", "value"));
}

static void some_commands(struct shard *s, unsigned from, unsigned to)
{
    char text[64];
    for (unsigned i = from; i < to; i++) {
        struct kv_origin o = origin(s, i / 2); /* each comes twice */
        snprintf(text, sizeof text, "insert kv key=k%u value=%u : update value=@value", i % 7, i);
        EXPECT("00000", run_as(s, o, text));
        if (i % 20 == 0)
            s->ts += hlc_ms(4000);
    }
}

static void a_replay_remembers_the_same(void **state)
{
    struct shard *s = *state, other;
    some_commands(s, 0, 400);
    shard_open(&other);
    shard_replay(&other, s, shard_seal_and_flush_old);
    assert_int_equal(shard_hash(&other), shard_hash(s));
    struct kv_dedup_stats here, there;
    kv_dedup_stats(s->state, &here);
    kv_dedup_stats(other.state, &there);
    assert_true(here.answers > 10);
    assert_true(here.dropped > 0);
    assert_int_equal(here.answers, there.answers);
    assert_int_equal(here.dropped, there.dropped);
    shard_close(&other);
}

static struct kv_snapshot_id persisted_all(struct shard *s)
{
    kv_state_touch(s->state);
    shard_seal(s, true);
    return kv_state_persisted(s->state);
}

static void move_state(struct shard *from, struct shard *to)
{
    struct kv_snapshot_id id = persisted_all(from);
    struct kv_dump *d = kv_dump_new(from->state, id);
    struct kv_load *l;
    struct obuf part;
    status st = ST_OK, loaded = ST_OK;
    obuf_init(&part);
    assert_int_equal(kv_load_new(to->state, "x", id, BYTES_LIT("n"), &l), ST_OK);
    while (st == ST_OK) {
        obuf_reset(&part);
        st = kv_dump_part(d, 512, &part);
        loaded = kv_load_part(l, bytes_make(part.data, part.size));
        assert_int_equal(loaded, st);
    }
    assert_int_equal(st, ST_END);
    kv_dump_free(d);
    assert_int_equal(kv_load_install(l), ST_OK);
    kv_load_take(l);
    to->index = from->index;
    to->ts = from->ts;
    obuf_fini(&part);
}

static void on_mem(struct shard *s)
{
    static const struct kv_state_options options = {.shard = 1, .memtable_bytes = 1u << 24};
    struct err err;
    shard_open(s);
    kv_state_close(s->state);
    kv_store_close(s->store);
    s->store = kv_store_new_mem();
    assert_int_equal(kv_state_open(s->store, &options, &s->state, &err), ST_OK);
    s->index = 0;
    EXPECT("00000", run(s, "bootstrap"));
}

static void a_snapshot_carries_it(void **state)
{
    struct shard from, to;
    (void)state;
    on_mem(&from);
    on_mem(&to);
    some_commands(&from, 0, 100);
    struct kv_origin o = origin(&from, 1000);
    EXPECT("00000", run_as(&from, o, "insert kv key=last value=1"));
    EXPECT("00000", run_as(&to, origin(&to, 5), "insert kv key=its value=1")); /* goes */
    move_state(&from, &to);
    assert_int_equal(shard_hash(&to), shard_hash(&from));
    EXPECT("00000", run(&to, "delete kv last"));
    EXPECT("00000", run_as(&to, o, "insert kv key=last value=1"));
    EXPECT("none", get(&to, "kv last", "value"));
    shard_close(&from);
    shard_close(&to);
}

/* -- the codec --------------------------------------------------------------------------------- */

static void check_answer(struct shard *s)
{
    struct arena a;
    struct obuf first, second;
    struct kv_applied back;
    arena_init(&a, 4096);
    obuf_init(&first);
    obuf_init(&second);
    kv_answer_encode(&s->last, &first);
    assert_int_equal(kv_answer_decode(bytes_make(first.data, first.size), &a, &back), ST_OK);
    kv_answer_encode(&back, &second);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    assert_int_equal(back.outcome, s->last.outcome);
    assert_int_equal(back.result.affected, s->last.result.affected);
    assert_int_equal(back.result.row_count, s->last.result.row_count);
    EXPECT(s->last.err.message, back.err.message);
    for (size_t n = 0; n < first.size; n++) {
        uint8_t *cut = malloc(n + 1); /* its own block, so that ASan sees a read too far */
        memcpy(cut, first.data, n);
        assert_int_equal(kv_answer_decode(bytes_make(cut, n), &a, &back), ST_CORRUPT);
        free(cut);
    }
    obuf_fini(&first);
    obuf_fini(&second);
    arena_fini(&a);
}

static void answers_survive_the_round_trip(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run_as(s, origin(s, 1), "insert meta pid=0 name=d type=d id=17 attr=xyz"));
    check_answer(s);
    EXPECT("00000", run_as(s, origin(s, 2), "insert meta pid=17 name=a id=-5 | 17 b 6"));
    assert_int_equal(s->last.result.row_count, 2);
    check_answer(s);
    EXPECT("00000", run_as(s, origin(s, 3), "move 17 a 0 b"));
    assert_false(s->last.result.scalar.null);
    check_answer(s);
    EXPECT("23505", run_as(s, origin(s, 4), "insert meta pid=17 name=b"));
    check_answer(s);
    EXPECT("2BP01", run_as(s, origin(s, 5), "delete meta 0 d"));
    check_answer(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, shard_setup, shard_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_second_one_gets_the_first_answer),
        TEST(an_error_is_an_answer),
        TEST(a_long_answer_is_remembered_as_given),
        TEST(what_is_old_is_refused),
        TEST(a_command_from_the_future_is_refused),
        TEST(the_count_is_bounded),
        TEST(the_bytes_are_bounded),
        TEST(it_survives_flush_and_reopening),
        TEST(a_replay_remembers_the_same),
        cmocka_unit_test(a_snapshot_carries_it),
        TEST(answers_survive_the_round_trip),
    };
    return run_shard_tests(tests);
}
