/* Rules of table lifecycle: what they hide from reads and writes, and that what has expired, and
 * nothing else, is taken away, the same on every replica. */
#include "kv/lifecycle.h"
#include "ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define EPOCH_US INT64_C(946684800000000)
#define SECOND INT64_C(1000000)

/* Log time as a timestamptz. A command moves it by a microsecond. */
static int64_t log_now(const struct shard *s)
{
    return hlc_unix_us(s->ts) - EPOCH_US;
}

static int setup(void **state)
{
    shard_setup(state);
    struct shard *s = *state;
    s->now = log_now(s);
    return 0;
}

static void put(struct shard *s, const char *bucket, const char *key, int64_t age_us)
{
    char text[120];
    snprintf(text, sizeof text, "insert object bucket=%s key=%s mtime=%lld", bucket, key,
             (long long)(s->now - age_us));
    EXPECT("00000", run(s, text));
}

static bool collect(void *arg, const struct kv_row *row)
{
    struct shard *s = arg;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%s", n > 0 ? " " : "");
    n = strlen(s->text);
    format_row(s->text + n, sizeof s->text - n, row, "bucket key");
    return true;
}

/* "bucket key bucket key …" of what R gives; T NULL: latest. */
static const char *read_rows(struct shard *s, struct kv_txn *t, struct kv_read *r)
{
    struct arena a;
    struct kv_read_pos pos = {0};
    struct err err;
    status st;
    arena_init(&a, 4096);
    struct kv_view view = {.state = s->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = &a};
    if (t == NULL)
        t = kv_txn_new(&a, &view);
    s->text[0] = 0;
    r->table = KV_OBJECT;
    r->ns = s->ns;
    r->limit = -1;
    while ((st = kv_read_page(t, r, &pos, &a, 3, 1u << 20, collect, s, &err)) == ST_OK)
        continue;
    assert_int_equal(st, ST_END);
    arena_fini(&a);
    return s->text;
}

/* All objects; NOW 0: expired ones, too. */
static const char *objects(struct shard *s, struct kv_txn *t, int64_t now)
{
    struct kv_read r = {.kind = KV_READ_RANGE, .now = now};
    r.lower = kv_key_prefix(&s->arena, s->ns, KV_OBJECT, NULL, 0);
    r.upper = kv_key_after_prefix(&s->arena, r.lower);
    return read_rows(s, t, &r);
}

static const char *point(struct shard *s, const char *bucket, const char *key)
{
    struct kv_datum cols[] = {kv_text(bytes_str(bucket)), kv_text(bytes_str(key))};
    bytes encoded = kv_key_prefix(&s->arena, s->ns, KV_OBJECT, cols, 2);
    struct kv_read r = {
        .kind = KV_READ_POINTS, .now = s->now, .points = &encoded, .point_count = 1};
    return read_rows(s, NULL, &r);
}

static void expired_objects_are_hidden(void **state)
{
    struct shard *s = *state;
    struct session before;
    put(s, "b", "tmp/1", 10 * SECOND);
    put(s, "b", "tmp/2", 1 * SECOND);
    put(s, "b", "x", 10 * SECOND);
    put(s, "b2", "tmp/1", 10 * SECOND);
    session_begin(&before, s);
    EXPECT("00000", run(s, "insert lifecycle bucket=b prefix=tmp/ expire_after=5000000"));
    EXPECT("b tmp/2 b x b2 tmp/1", objects(s, NULL, s->now));
    EXPECT("b tmp/1 b tmp/2 b x b2 tmp/1", objects(s, NULL, 0));
    EXPECT("b tmp/1 b tmp/2 b x b2 tmp/1", objects(s, before.txn, s->now)); /* its own moment */
    EXPECT("", point(s, "b", "tmp/1"));
    EXPECT("b2 tmp/1", point(s, "b2", "tmp/1"));
    struct kv_read page = {.kind = KV_READ_OBJECTS, .bucket = BYTES_LIT("b"), .now = s->now};
    EXPECT("NULL tmp/2 NULL x", read_rows(s, NULL, &page));
    session_rollback(&before);

    EXPECT("00000", run(s, "update object b tmp/1 : size=1"));
    assert_int_equal(s->last.result.affected, 0);
    EXPECT("00000", run(s, "insert object bucket=b key=tmp/1 size=7"));
    EXPECT("b tmp/1", point(s, "b", "tmp/1"));
    EXPECT("23505", run(s, "insert object bucket=b key=tmp/1 size=7"));
    put(s, "b", "tmp/3", 10 * SECOND);
    EXPECT("00000", run(s, "delete object b tmp/3"));
    assert_int_equal(s->last.result.affected, 0);
    EXPECT("none", get(s, "object b tmp/3", "key"));
}

/* The shortest rule counts, and expires_at; NULLs never expire. */
static void rules_overlap(void **state)
{
    struct shard *s = *state;
    EXPECT("00000",
           run(s, "insert lifecycle bucket=b prefix=a expire_after=20000000 | b a/b 5000000 "
                  "| b n NULL"));
    put(s, "b", "a/b/1", 10 * SECOND);
    put(s, "b", "a/c/1", 10 * SECOND);
    put(s, "b", "a/c/2", 30 * SECOND);
    put(s, "b", "n", 30 * SECOND);
    EXPECT("00000", run(s, "insert object bucket=b key=a/b/2 mtime=NULL | b a/b/3 NULL"));
    EXPECT("00000", run(s, "update object b a/b/3 : expires_at=1"));
    EXPECT("b a/b/2 b a/c/1 b n", objects(s, NULL, s->now));
    EXPECT("22023", run(s, "insert lifecycle bucket=b prefix=z expire_after=0"));
}

static void own_rules_count_in_a_transaction(void **state)
{
    struct shard *s = *state;
    struct session t;
    put(s, "b", "k", 10 * SECOND);
    session_begin(&t, s);
    EXPECT("b k", objects(s, t.txn, s->now));
    EXPECT("00000", session_run(&t, "insert lifecycle bucket=b prefix=k expire_after=1"));
    EXPECT("", objects(s, t.txn, s->now));
    EXPECT("b k", objects(s, NULL, s->now));
    session_rollback(&t);
}

static void rules_are_found_after_a_start(void **state)
{
    struct shard *s = *state;
    assert_false(kv_state_has_rules(s->state));
    put(s, "b", "k", 10 * SECOND);
    EXPECT("00000", run(s, "insert lifecycle bucket=b prefix=k expire_after=1"));
    shard_seal(s, true);
    shard_reopen(s);
    assert_true(kv_state_has_rules(s->state));
    EXPECT("", objects(s, NULL, s->now));
}

static void rules_are_bounded(void **state)
{
    struct shard *s = *state;
    char text[80];
    for (unsigned i = 0; i < KV_RULES_MAX; i++) {
        snprintf(text, sizeof text, "insert lifecycle bucket=b%u prefix= expire_after=1", i);
        EXPECT("00000", run(s, text));
    }
    EXPECT("54000", run(s, "insert lifecycle bucket=c prefix= expire_after=1"));
    EXPECT("00000", run(s, "delete lifecycle b0 "));
}

/* -- taking away ------------------------------------------------------------------------------- */

static const char *expire(struct shard *s, bytes lower, bytes upper)
{
    struct kv_op op = {.kind = KV_OP_EXPIRE,
                       .table = KV_OBJECT,
                       .ns = s->ns,
                       .now = INT64_MAX, /* nothing depends on it */
                       .lower = lower,
                       .upper = upper};
    const struct kv_op *ops[] = {&op};
    struct obuf out;
    obuf_init(&out);
    kv_command_ops(&out, ops, 1, (struct kv_origin){0});
    const char *state = apply_bytes(s, bytes_make(out.data, out.size));
    obuf_fini(&out);
    return state;
}

struct sweep {
    unsigned looks, commands, removed;
    int64_t due;
};

/* One walk over all rules. */
static struct sweep sweep(struct shard *s, bool whole)
{
    struct sweep out = {0};
    struct kv_expire_walk w = {.whole = whole};
    status st;
    do {
        struct arena a;
        bytes lower, upper;
        arena_init(&a, 4096);
        struct kv_view view = {.state = s->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = &a};
        st = kv_expire_find(&view, s->ns, log_now(s), &w, &lower, &upper);
        assert_true(st == ST_OK || st == ST_END);
        out.looks++;
        assert_true(out.looks < 10000);
        if (st == ST_OK && lower.size > 0) {
            EXPECT("00000", expire(s, lower, upper));
            out.commands++;
            out.removed += (unsigned)s->last.result.affected;
        }
        arena_fini(&a);
    } while (st == ST_OK);
    out.due = w.due;
    return out;
}

static void the_stamp_decides(void **state)
{
    struct shard *s = *state;
    bytes all = kv_key_prefix(&s->arena, s->ns, KV_OBJECT, NULL, 0);
    uint8_t lower[16], upper[16];
    bytes end = kv_key_after_prefix(&s->arena, all);
    memcpy(lower, all.data, all.size);
    memcpy(upper, end.data, end.size);
    EXPECT("00000", run(s, "insert lifecycle bucket=b prefix= expire_after=5000000"));
    put(s, "b", "k", 4999990);
    EXPECT("00000", expire(s, bytes_make(lower, all.size), bytes_make(upper, end.size)));
    assert_int_equal(s->last.result.affected, 0);
    for (unsigned i = 0; i < 10; i++)
        EXPECT("00000", run(s, "insert kv key=tick : update value=@value"));
    EXPECT("00000", expire(s, bytes_make(lower, all.size), bytes_make(upper, end.size)));
    assert_int_equal(s->last.result.affected, 1);
    lower[0] = KV_META;
    EXPECT("22023", expire(s, bytes_make(lower, all.size), bytes_make(upper, end.size)));
}

/* Where names go by time a command takes hundreds, and the rest is not looked at. */
static void names_by_time_are_taken_in_ranges(void **state)
{
    struct shard *s = *state;
    char key[40];
    EXPECT("00000", run(s, "insert lifecycle bucket=b prefix=log/ expire_after=5000000"));
    for (unsigned i = 0; i < 9000; i++) {
        snprintf(key, sizeof key, "log/%08u", i);
        put(s, "b", key, i < 3000 ? (int64_t)(10000 - i) * SECOND : (int64_t)(9000 - i));
        if (i % 4000 == 3999)
            shard_seal(s, true);
    }
    struct sweep first = sweep(s, false);
    assert_int_equal(first.removed, 3000);
    assert_int_equal(first.commands, (3000 + KV_EXPIRE_KEYS - 1) / KV_EXPIRE_KEYS);
    assert_true(first.looks <= first.commands + 2);
    assert_true(first.due <= log_now(s) + 5 * SECOND && first.due > log_now(s));
    struct sweep again = sweep(s, false);
    assert_int_equal(again.removed, 0);
    assert_int_equal(again.looks, 1);
    assert_true(sweep(s, true).looks > 1); /* all of the 6000 */
}

static uint64_t seed;

static unsigned below(unsigned n)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % n;
}

static void random_change(struct shard *s)
{
    static const char *const prefixes[] = {"", "a", "a/", "ab", "b"};
    char text[160];
    const char *bucket = below(2) == 0 ? "x" : "y";
    if (below(40) == 0)
        snprintf(text, sizeof text,
                 "insert lifecycle bucket=%s prefix=%s expire_after=%u : update "
                 "expire_after=@expire_after",
                 bucket, prefixes[below(5)], (1 + below(9)) * 1000000);
    else if (below(60) == 0)
        snprintf(text, sizeof text, "delete lifecycle %s %s", bucket, prefixes[1 + below(4)]);
    else
        snprintf(text, sizeof text,
                 "insert object bucket=%s key=%s%u mtime=%lld : update mtime=@mtime", bucket,
                 prefixes[below(5)], below(30), (long long)(s->now - below(12) * SECOND));
    EXPECT("00000", run(s, text));
}

static void nothing(struct shard *s)
{
    if (s->index % 97 == 0)
        shard_seal_and_flush_old(s);
}

/* What is taken away is what was hidden, and a replica that flushes at other times has the same. */
static void what_was_hidden_goes_and_nothing_else(void **state)
{
    struct shard *s = *state;
    static struct shard other;
    char *visible;
    unsigned removed = 0;
    seed = 1;
    for (unsigned round = 0; round < 60; round++) {
        for (unsigned i = 0; i < 60; i++)
            random_change(s);
        if (below(3) == 0)
            shard_seal(s, below(2) == 0);
        visible = strdup(objects(s, NULL, log_now(s)));
        removed += sweep(s, below(2) == 0).removed;
        EXPECT(visible, objects(s, NULL, log_now(s)));
        (void)sweep(s, true);
        EXPECT(visible, objects(s, NULL, 0));
        free(visible);
    }
    assert_true(removed > 100);
    shard_open(&other);
    shard_replay(&other, s, nothing);
    assert_int_equal(shard_hash(s), shard_hash(&other));
    shard_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, shard_teardown)
        T(expired_objects_are_hidden),
        T(rules_overlap),
        T(own_rules_count_in_a_transaction),
        T(rules_are_found_after_a_start),
        T(rules_are_bounded),
        T(the_stamp_decides),
        T(names_by_time_are_taken_in_ranges),
        T(what_was_hidden_goes_and_nothing_else),
    };
    return run_shard_tests(tests);
}
