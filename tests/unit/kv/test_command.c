/* Operations and commands as bytes: round trips, truncation, refusal of what is wrong. */
#include "ops.h"

#include "base/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *const statements[] = {
    "insert meta pid=0 name=a type=d id=17 uid=NULL gid=DEFAULT attr=xyz | 0 b f 18 3 4 NULL",
    "insert kv key=a value=1 : update value=@value",
    "insert object bucket=b key=k size=5 : nothing",
    "update meta 0 a 0 b : size+=5 mtime>=7 uid<=3 attr=abc mode=DEFAULT : seq=5 type!=d fid~NULL",
    "delete meta 0 a 0 NULL : type=f",
    "range meta 0 a b",
    "range kv a b",
    "move 0 a 17 b",
    "replace 0 a 17 b",
    "exchange -5 a 17 b",
    "rename 0 a 17 b : seq=9",
    "link 0 a 17 b",
    "mkpath 0 /a/b",
    "detach 0 a",
    "lock kv a b c",
    "bootstrap",
};

/* What is decoded encodes to the same bytes, and no proper prefix decodes. */
static void check_round_trip(struct shard *s, const char *text)
{
    struct arena a;
    struct obuf first, second;
    struct kv_op op, again;
    arena_init(&a, 4096);
    obuf_init(&first);
    obuf_init(&second);
    parse_op(s, &a, text, &op);
    kv_op_encode(&op, &first);
    struct reader in = reader_make(bytes_make(first.data, first.size));
    assert_int_equal(kv_op_decode(&in, &a, &again), ST_OK);
    assert_int_equal(codec_finish(&in), ST_OK);
    kv_op_encode(&again, &second);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    assert_int_equal(again.kind, op.kind);
    assert_int_equal(again.row_count, op.row_count);
    assert_int_equal(again.key_count, op.key_count);
    assert_int_equal(again.set_count, op.set_count);
    assert_int_equal(again.filter_count, op.filter_count);
    assert_int_equal(again.now, op.now);
    assert_int_equal(again.seed, op.seed);
    for (size_t n = 0; n < first.size; n++) {
        uint8_t *cut = malloc(n + 1); /* its own block, so that ASan sees a read too far */
        memcpy(cut, first.data, n);
        in = reader_make(bytes_make(cut, n));
        assert_int_equal(kv_op_decode(&in, &a, &again), ST_CORRUPT);
        free(cut);
    }
    obuf_fini(&first);
    obuf_fini(&second);
    arena_fini(&a);
}

static void operations_survive_the_round_trip(void **state)
{
    for (unsigned i = 0; i < ARRAY_LEN(statements); i++)
        check_round_trip(*state, statements[i]);
}

static status apply_raw(struct shard *s, bytes command)
{
    arena_reset(&s->arena);
    return kv_apply(s->state, s->index + 1, 1, command, KV_TIER_CACHE, &s->arena, &s->last);
}

/* Every prefix of a command of a well-filled log is refused and changes nothing. */
static void check_truncation(struct shard *s, bytes command)
{
    uint64_t before = shard_hash(s);
    for (size_t n = 0; n < command.size; n++) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, command.data, n);
        if (n >= 10)
            kv_command_stamp(cut, s->ts + 5000);
        assert_int_equal(apply_raw(s, bytes_make(cut, n)), ST_CORRUPT);
        free(cut);
    }
    assert_int_equal(shard_hash(s), before);
}

static void truncated_commands_are_refused(void **state)
{
    struct shard *s = *state;
    struct session t;
    EXPECT("00000", run(s, "insert meta pid=0 name=d type=d id=17 | 17 a f 1 | 0 e d 18"));
    check_truncation(s, bytes_make(s->command.data, s->command.size));
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=c size=3 fid=5"));
    EXPECT("00000", session_run(&t, "update meta 0 d : mode=448"));
    EXPECT("00000", session_run(&t, "delete meta 0 e"));
    EXPECT("00000", session_run(&t, "lock meta 17 a"));
    EXPECT("00000", session_commit(&t));
    struct obuf copy;
    obuf_init(&copy);
    obuf_put(&copy, s->command.data, s->command.size);
    check_truncation(s, bytes_make(copy.data, copy.size));
    obuf_fini(&copy);
}

static bool keep_first(void *arg, hlc_ts ts, bytes items)
{
    struct kv_queue_record *r = arg;
    r->ts = ts;
    r->items = items;
    return false;
}

static void item_batches_are_checked(void **state)
{
    struct shard *s = *state;
    struct kv_queue_record twice[2];
    struct obuf out;
    EXPECT("00000", run(s, "insert meta pid=0 name=a fid=5 size=3"));
    kv_state_queue_each(s->state, 0, keep_first, &twice[0]);
    assert_int_equal(kv_items_destinations(twice[0].items), KV_ITEMS_QUOTA | KV_ITEMS_INDEX);
    twice[1] = twice[0];
    obuf_init(&out);
    kv_command_items(&out, KV_ITEMS_QUOTA, 1, twice, 1, (struct kv_origin){0});
    kv_command_stamp(out.data, s->ts + 5000);
    check_truncation(s, bytes_make(out.data, out.size));
    obuf_reset(&out);
    kv_command_items(&out, KV_ITEMS_QUOTA, 1, twice, 2, (struct kv_origin){0});
    kv_command_stamp(out.data, s->ts + 5000);
    assert_int_equal(apply_raw(s, bytes_make(out.data, out.size)),
                     ST_CORRUPT); /* stamps must ascend */
    obuf_reset(&out);
    kv_command_items(&out, KV_ITEMS_QUOTA, 1, twice, 1, (struct kv_origin){0});
    EXPECT("00000", apply_bytes(s, bytes_make(out.data, out.size)));
    EXPECT("", all(s, "secondary_index", "fid")); /* not this receiver's */
    EXPECT("0 #FILE 1 | 0 #SIZE 3", all(s, "quota", "uid name value"));
    obuf_fini(&out);
}

static void stamps_never_go_back(void **state)
{
    struct shard *s = *state;
    struct obuf out;
    obuf_init(&out);
    kv_command_tick(&out);
    kv_command_stamp(out.data, s->ts);
    assert_int_equal(apply_raw(s, bytes_make(out.data, out.size)), ST_CORRUPT);
    EXPECT("00000", apply_bytes(s, bytes_make(out.data, out.size)));
    assert_int_equal(kv_state_applied_ts(s->state), s->ts);
    obuf_fini(&out);
}

static void header_carries_origin_and_stamp(void **state)
{
    struct obuf out;
    struct kv_command c;
    (void)state;
    obuf_init(&out);
    kv_command_ack(&out, 77,
                   (struct kv_origin){.incarnation = 1, .sequence = 2, .since = 3, .again = true});
    kv_command_stamp(out.data, 99);
    assert_int_equal(kv_command_decode(bytes_make(out.data, out.size), &c), ST_OK);
    assert_int_equal(c.kind, KV_CMD_ACK);
    assert_int_equal(c.stamp, 99);
    assert_int_equal(c.origin.incarnation, 1);
    assert_int_equal(c.origin.sequence, 2);
    assert_int_equal(c.origin.since, 3);
    assert_true(c.origin.again);
    out.data[0] = 2; /* another version */
    assert_int_equal(kv_command_decode(bytes_make(out.data, out.size), &c), ST_CORRUPT);
    obuf_fini(&out);
}

/* A failed statement takes its entry of the log and nothing else. */
static void failed_command_moves_only_the_position(void **state)
{
    struct shard *s = *state;
    uint64_t before = shard_hash(s);
    EXPECT("23503", run(s, "insert meta pid=9 name=a"));
    assert_int_equal(kv_state_record(s->state)->applied_index, s->index);
    assert_int_equal(shard_hash(s), before);
    assert_int_equal(kv_state_queue_length(s->state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, shard_setup, shard_teardown)
        T(operations_survive_the_round_trip), T(truncated_commands_are_refused),
        T(item_batches_are_checked),          T(stamps_never_go_back),
        T(header_carries_origin_and_stamp),   T(failed_command_moves_only_the_position),
    };
    return run_shard_tests(tests);
}
