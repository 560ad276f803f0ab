/* Reads page by page: points, ranges, counts, paths, listings with attributes, usage. */
#include "ops.h"

#include "kv/handler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static int setup(void **state)
{
    shard_setup(state);
    struct shard *shard = *state;
    EXPECT(
        "00000",
        run(shard,
            "insert meta pid=0 name=d type=d id=17 uid=1 size=0 | 17 a f 1 1 10 | 17 b f 2 2 20 | "
            "17 sub d 18 3 0 | 18 x f 3 1 5"));
    EXPECT("00000", run(shard, "insert meta pid=0 name=top id=9 size=100"));
    EXPECT("00000", run(shard, "link 17 b 18 hard"));
    return 0;
}

struct collector {
    struct shard *s;
    const char *columns;
    unsigned stop_after; /* rows, 0 = never */
    unsigned rows;
    size_t n;
};

static bool collect(void *arg, const struct kv_row *row)
{
    struct collector *c = arg;
    if (c->n > 0)
        c->n += (size_t)snprintf(c->s->text + c->n, sizeof c->s->text - c->n, " | ");
    if (c->columns != NULL)
        format_row(c->s->text + c->n, sizeof c->s->text - c->n, row, c->columns);
    else
        snprintf(c->s->text + c->n, sizeof c->s->text - c->n, "%lld %lld %lld",
                 (long long)row->col[0].i, (long long)row->col[1].i, (long long)row->col[2].i);
    c->n += strlen(c->s->text + c->n);
    return ++c->rows != c->stop_after;
}

/* All pages of R over T, MAX_ROWS each. */
static const char *read_through(struct shard *s, struct kv_txn *t, struct arena *a,
                                const struct kv_read *r, const char *columns, unsigned max_rows)
{
    struct collector c = {.s = s, .columns = columns};
    struct kv_read_pos pos = {0};
    struct err err;
    status st;
    s->text[0] = 0;
    while ((st = kv_read_page(t, r, &pos, a, max_rows, 1u << 20, collect, &c, &err)) == ST_OK)
        assert_true(c.rows <= 100000);
    if (st != ST_END)
        snprintf(s->text, sizeof s->text, "%s", err.sqlstate);
    else
        assert_int_equal(kv_read_page(t, r, &pos, a, max_rows, 1u << 20, collect, &c, &err),
                         ST_END);
    return s->text;
}

static const char *read_all(struct shard *s, struct kv_read r, const char *columns,
                            unsigned max_rows)
{
    struct arena a;
    arena_init(&a, 4096);
    struct kv_view view = {.state = s->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = &a};
    r.ns = s->ns;
    if (r.table == 0)
        r.table = KV_META;
    if (r.limit == 0)
        r.limit = -1;
    const char *text = read_through(s, kv_txn_new(&a, &view), &a, &r, columns, max_rows);
    arena_fini(&a);
    return text;
}

static struct kv_read directory(struct shard *s, int64_t pid)
{
    struct kv_datum d = kv_int(pid);
    struct kv_read r = {.kind = KV_READ_RANGE, .table = KV_META, .limit = -1};
    r.lower = kv_key_prefix(&s->arena, s->ns, KV_META, &d, 1);
    r.upper = kv_key_after_prefix(&s->arena, r.lower);
    return r;
}

static void points_come_in_their_order(void **state)
{
    struct shard *s = *state;
    const bytes points[] = {kv_key_meta(&s->arena, 1, 17, BYTES_LIT("b")),
                            kv_key_meta(&s->arena, 1, 17, BYTES_LIT("nobody")),
                            kv_key_meta(&s->arena, 1, 17, BYTES_LIT("a")),
                            kv_key_meta(&s->arena, 1, 0, BYTES_LIT("top"))};
    struct kv_read r = {.kind = KV_READ_POINTS, .points = points, .point_count = 4};
    EXPECT("b 2 | a 1 | top 9", read_all(s, r, "name id", 1));
    EXPECT("b 2 | a 1 | top 9", read_all(s, r, "name id", 100));
    r.limit = 2;
    EXPECT("b | a", read_all(s, r, "name", 100));
    r.limit = -1;
    r.count = true;
    EXPECT("3 0 0", read_all(s, r, NULL, 100));
}

static void ranges_page_both_ways(void **state)
{
    struct shard *s = *state;
    struct kv_read r = directory(s, 17);
    for (unsigned rows = 1; rows < 6; rows++) {
        r.backwards = false;
        EXPECT("_attr_ | a | b | sub", read_all(s, r, "name", rows));
        r.backwards = true;
        EXPECT("sub | b | a | _attr_", read_all(s, r, "name", rows));
    }
    r.limit = 2;
    EXPECT("sub | b", read_all(s, r, "name", 1));
    r.upper = r.lower;
    EXPECT("", read_all(s, r, "name", 1));
}

/* The position behind an own entry, and behind one that was deleted here. */
static void pages_go_on_behind_own_writes(void **state)
{
    struct shard *s = *state;
    struct session t;
    struct arena a;
    session_begin(&t, s);
    EXPECT("00000", session_run(&t, "insert meta pid=17 name=0 id=40 | 17 aa 41 | 17 zz 42"));
    EXPECT("00000", session_run(&t, "delete meta 17 b"));
    for (unsigned rows = 1; rows < 7; rows++) {
        struct kv_read r = directory(s, 17);
        arena_init(&a, 4096);
        r.table = KV_META;
        r.ns = s->ns;
        EXPECT("0 | _attr_ | a | aa | sub | zz", read_through(s, t.txn, &a, &r, "name", rows));
        r.backwards = true;
        EXPECT("zz | sub | aa | a | _attr_ | 0", read_through(s, t.txn, &a, &r, "name", rows));
        r.kind = KV_READ_COUNT;
        EXPECT("6 0 0", read_through(s, t.txn, &a, &r, NULL, rows));
        arena_fini(&a);
    }
    session_rollback(&t);
}

static void filters_and_counts(void **state)
{
    struct shard *s = *state;
    struct kv_read r = directory(s, 17);
    struct kv_filter f[] = {{.column = META_NAME, .cmp = KV_NE, .value = kv_text(KV_ATTR_NAME)},
                            {.column = META_TYPE, .cmp = KV_EQ, .value = kv_int('f')}};
    r.filters = f;
    r.filter_count = 2;
    EXPECT("a | b", read_all(s, r, "name", 1));
    r.kind = KV_READ_COUNT;
    EXPECT("2 0 0", read_all(s, r, NULL, 1));
    r.filter_count = 1; /* from keys alone */
    EXPECT("3 0 0", read_all(s, r, NULL, 1));
    r.filter_count = 0;
    EXPECT("4 0 0", read_all(s, r, NULL, 1));
    f[0] = (struct kv_filter){.column = META_MODE, .cmp = KV_IS_NULL};
    r.filters = f;
    r.filter_count = 1;
    EXPECT("2 0 0", read_all(s, r, NULL, 1)); /* sub, and b with its two names */
    f[0] = (struct kv_filter){.column = META_FID, .cmp = KV_GE, .value = kv_int(0)};
    EXPECT("0 0 0", read_all(s, r, NULL, 1));
    r = (struct kv_read){.kind = KV_READ_NOTHING, .count = true};
    EXPECT("0 0 0", read_all(s, r, NULL, 1));
    r.count = false;
    EXPECT("", read_all(s, r, NULL, 1));
}

static void callback_ends_a_page(void **state)
{
    struct shard *s = *state;
    struct arena a;
    arena_init(&a, 4096);
    struct kv_view view = {.state = s->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = &a};
    struct kv_txn *t = kv_txn_new(&a, &view);
    struct kv_read r = directory(s, 17);
    struct kv_read_pos pos = {0};
    struct collector c = {.s = s, .columns = "name", .stop_after = 2};
    struct err err;
    s->text[0] = 0;
    assert_int_equal(kv_read_page(t, &r, &pos, &a, 100, 1u << 20, collect, &c, &err), ST_OK);
    EXPECT("_attr_ | a", s->text);
    assert_int_equal(kv_read_page(t, &r, &pos, &a, 100, 1, collect, &c, &err), ST_OK); /* bytes */
    EXPECT("_attr_ | a | b", s->text);
    assert_int_equal(pos.delivered, 3);
    arena_fini(&a);
}

static struct kv_read path(const char *text)
{
    return (struct kv_read){.kind = KV_READ_RESOLVE, .path = bytes_str(text), .limit = -1};
}

static void resolve_walks_a_path(void **state)
{
    struct shard *s = *state;
    EXPECT("17 a 1 10", read_all(s, path("/d/a"), "pid name id size", 9));
    EXPECT("18 x 3", read_all(s, path("d//./sub/../sub/x"), "pid name id", 9));
    EXPECT("17 sub 18 d 3 2 17",
           read_all(s, path("/d/sub/"), "pid name id type uid num_children parent", 9));
    EXPECT("17 b 2 20 2", read_all(s, path("/d/b"), "pid name id size nlink", 9));
    EXPECT("0 _attr_ 0", read_all(s, path("/"), "pid name id", 9));
    EXPECT("0 _attr_ 0", read_all(s, path("/.."), "pid name id", 9));
    EXPECT("17 _attr_ 17", read_all(s, path("/d/sub/.."), "pid name id", 9));
    EXPECT("", read_all(s, path("/d/nobody"), "id", 9));
    EXPECT("", read_all(s, path("/d/a/x"), "id", 9));
    EXPECT("", read_all(s, path("/d/_attr_"), "id", 9));
    struct kv_read r = path("sub/x");
    r.pid = 17;
    EXPECT("3", read_all(s, r, "id", 9));
    r.pid = 99;
    EXPECT("", read_all(s, r, "id", 9));
    char deep[2 * 300 + 1];
    for (unsigned i = 0; i < 300; i++)
        memcpy(deep + 2 * i, "./", 2);
    deep[600] = 0;
    EXPECT("54001", read_all(s, path(deep), "id", 9));
    static char longer[5000];
    memset(longer, 'a', sizeof longer - 1);
    EXPECT("22001", read_all(s, path(longer), "id", 9));
}

static void list_attr_adds_attributes(void **state)
{
    struct shard *s = *state;
    struct kv_read r = {.kind = KV_READ_LIST_ATTR, .pid = 17, .limit = -1};
    for (unsigned rows = 1; rows < 5; rows++)
        EXPECT("17 a 10 1 NULL | 17 b 20 2 NULL | 17 sub 0 2 2",
               read_all(s, r, "pid name size nlink num_children", rows));
    r.after = BYTES_LIT("a");
    r.limit = 1;
    EXPECT("b", read_all(s, r, "name", 9));
    r.after = BYTES_LIT("sub");
    EXPECT("", read_all(s, r, "name", 9));
}

static void usage_counts_what_is_below(void **state)
{
    struct shard *s = *state;
    struct kv_read r = {.kind = KV_READ_USAGE, .path = BYTES_LIT("/"), .limit = -1};
    EXPECT("5 2 155", read_all(s, r, NULL, 1)); /* top, a, b, x, hard */
    r.path = BYTES_LIT("d/sub");
    EXPECT("2 0 25", read_all(s, r, NULL, 1));
    r.path = BYTES_LIT("top");
    EXPECT("", read_all(s, r, NULL, 1));
    /* More entries than one page examines. */
    char text[96];
    for (unsigned i = 0; i < 9000; i++) {
        snprintf(text, sizeof text, "insert meta pid=%u name=f%u size=1", i % 2 ? 17 : 18, i);
        EXPECT("00000", run(s, text));
    }
    r.path = BYTES_LIT("/d");
    EXPECT("9004 1 9055", read_all(s, r, NULL, 1));
    r = directory(s, 17);
    r.kind = KV_READ_COUNT;
    r.upper = kv_key_after_prefix(&s->arena, kv_key_prefix(&s->arena, s->ns, KV_META, NULL, 0));
    EXPECT("9007 0 0", read_all(s, r, NULL, 1));
}

static void expired_rows_are_left_out(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert kv key=a expires_at=100 | b 200 | c NULL"));
    struct kv_read r = {.kind = KV_READ_RANGE, .table = KV_KV};
    r.lower = kv_key_prefix(&s->arena, s->ns, KV_KV, NULL, 0);
    r.upper = kv_key_after_prefix(&s->arena, r.lower);
    EXPECT("a | b | c", read_all(s, r, "key", 9));
    r.now = 100;
    EXPECT("b | c", read_all(s, r, "key", 9));
    r.kind = KV_READ_COUNT;
    r.now = 200;
    EXPECT("1 0 0", read_all(s, r, NULL, 9));
}

/* Every cold read of every kind of page: the read goes on at another tier, nothing lost or twice.
 * */
static void cold_pages_go_on(void **state)
{
    struct shard *s = *state;
    struct kv_read reads[] = {directory(s, 17),
                              directory(s, 17),
                              path("/d/sub/hard"),
                              {.kind = KV_READ_LIST_ATTR, .pid = 17, .limit = -1},
                              {.kind = KV_READ_USAGE, .path = BYTES_LIT("/"), .limit = -1}};
    const char *expected[] = {"_attr_ | a | b | sub", "sub | b | a | _attr_", "hard", "a | b | sub",
                              "5 2 155"};
    reads[1].backwards = true;
    shard_seal(s, true);
    for (unsigned k = 0; k < ARRAY_LEN(reads); k++) {
        for (unsigned n = 1;; n++) {
            struct arena a;
            arena_init(&a, 4096);
            struct kv_view view = {
                .state = s->state, .at = HLC_MAX, .tier = KV_TIER_CACHE, .arena = &a};
            struct kv_txn *t = kv_txn_new(&a, &view);
            struct collector c = {.s = s,
                                  .columns = reads[k].kind == KV_READ_USAGE ? NULL : "name"};
            struct kv_read_pos pos = {0};
            struct err err;
            status st;
            unsigned colds = 0;
            reads[k].ns = s->ns;
            reads[k].table = KV_META;
            s->text[0] = 0;
            shard_cold_after(s, n);
            while ((st = kv_read_page(t, &reads[k], &pos, &a, 2, 1u << 20, collect, &c, &err)) !=
                   ST_END) {
                assert_true(st == ST_OK || st == ST_COLD);
                kv_txn_view(t)->tier = st == ST_COLD ? KV_TIER_ANY : KV_TIER_CACHE;
                colds += st == ST_COLD;
            }
            shard_cold_after(s, 0);
            EXPECT(expected[k], s->text);
            arena_fini(&a);
            if (colds == 0) {
                assert_true(n > 1);
                break;
            }
        }
    }
}

#define MANY 5000u

/* Each of names f0000 on, between what stands before and behind it. */
static void each_of_many(struct shard *s, const char *before, const char *behind)
{
    char text[64];
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "%sf%04u%s", before, i, behind);
        EXPECT("00000", run(s, text));
    }
}

/* Directory 20 as of AT, from a name on; entries passed over go to *SKIPPED, in one page at most to
 * *AT_ONCE. */
static const char *list_20_by(struct shard *s, hlc_ts at, const char *from, bool backwards,
                              uint64_t *skipped, uint64_t *at_once)
{
    struct arena a;
    struct err err;
    struct kv_read_pos pos = {0};
    struct collector c = {.s = s, .columns = "name"};
    struct kv_read r = directory(s, 20);
    arena_init(&a, 4096);
    if (from != NULL)
        r.lower = kv_key_meta(&a, s->ns, 20, bytes_str(from));
    r.ns = s->ns;
    r.backwards = backwards;
    struct kv_view view = {.state = s->state, .at = at, .tier = KV_TIER_ANY, .arena = &a};
    struct kv_txn *t = kv_txn_new(&a, &view);
    s->text[0] = 0;
    status st;
    *at_once = 0;
    do {
        uint64_t before = pos.skipped;
        st = kv_read_page(t, &r, &pos, &a, 4, 1u << 20, collect, &c, &err);
        if (pos.skipped - before > *at_once)
            *at_once = pos.skipped - before;
    } while (st == ST_OK);
    assert_int_equal(st, ST_END);
    *skipped = pos.skipped;
    arena_fini(&a);
    return s->text;
}

static const char *list_20(struct shard *s, hlc_ts at, const char *from, bool backwards,
                           uint64_t *skipped)
{
    uint64_t at_once;
    return list_20_by(s, at, from, backwards, skipped, &at_once);
}

/* However much was deleted in it, and wherever that lies. */
static void expect_empty(struct shard *s)
{
    uint64_t skipped;
    EXPECT("_attr_", list_20(s, HLC_MAX, NULL, false, &skipped));
    assert_true(skipped < 200);
    EXPECT("_attr_", list_20(s, HLC_MAX, NULL, true, &skipped));
    assert_true(skipped < 200);
    EXPECT("", list_20(s, HLC_MAX, "f", false, &skipped));
    assert_true(skipped < 200);
}

static void an_empty_directory_is_listed_without_what_was_deleted_in_it(void **state)
{
    struct shard *s = *state;
    uint64_t skipped;
    EXPECT("00000", run(s, "insert meta pid=0 name=e type=d id=20"));
    each_of_many(s, "insert meta pid=20 name=", " size=1");
    each_of_many(s, "delete meta 20 ", ""); /* came and went in memory */
    expect_empty(s);
    each_of_many(s, "insert meta pid=20 name=", " size=1");
    shard_seal(s, true);
    hlc_ts before = s->ts;
    each_of_many(s, "delete meta 20 ", ""); /* of what the store has */
    expect_empty(s);
    (void)list_20(s, before, NULL, false, &skipped);
    assert_int_equal(strncmp(s->text, "_attr_ | f0000 | f0001 |", 24), 0);
    assert_int_equal(strlen(s->text), strlen("_attr_") + MANY * strlen(" | f0000"));
    EXPECT("00000", run(s, "insert meta pid=20 name=f0500 size=1"));
    uint64_t at_once; /* a page ends also where nothing was found for long */
    EXPECT("_attr_ | f0500", list_20_by(s, HLC_MAX, NULL, false, &skipped, &at_once));
    assert_int_equal(skipped, MANY - 1);
    assert_in_range(at_once, 1, MANY - 500);
    EXPECT("00000", run(s, "delete meta 20 f0500"));
    shard_seal(s, true);
    expect_empty(s);
    EXPECT("00000", run(s, "insert meta pid=20 name=g size=1"));
    EXPECT("g | _attr_", list_20(s, HLC_MAX, NULL, true, &skipped));
    EXPECT("g", list_20(s, HLC_MAX, "f", false, &skipped));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, shard_teardown)
        T(points_come_in_their_order),
        T(ranges_page_both_ways),
        T(pages_go_on_behind_own_writes),
        T(filters_and_counts),
        T(callback_ends_a_page),
        T(resolve_walks_a_path),
        T(list_attr_adds_attributes),
        T(usage_counts_what_is_below),
        T(expired_rows_are_left_out),
        T(cold_pages_go_on),
        T(an_empty_directory_is_listed_without_what_was_deleted_in_it),
    };
    return run_shard_tests(tests);
}
