/* Buckets as S3 lists them: prefix, delimiter, continuation, against a model that rolls up all keys
 * and sorts; what a page costs. */
#include "ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOW 100
#define KEYS_MAX 200u
#define KEY_ROOM 12u /* bytes of a random key and its NUL */

struct item {
    char text[KEY_ROOM * 2];
    bool common;
};
struct items {
    struct item item[KEYS_MAX];
    unsigned count;
};

static bool collect(void *arg, const struct kv_row *row)
{
    struct items *all = arg;
    assert_true(all->count < KEYS_MAX);
    struct item *i = &all->item[all->count++];
    i->common = !row->col[OBJECT_BUCKET].null;
    assert_int_equal(row->col[OBJECT_KEY].null, i->common);
    bytes text = row->col[i->common ? OBJECT_BUCKET : OBJECT_KEY].b;
    assert_true(text.size < sizeof i->text);
    memcpy(i->text, text.data, text.size);
    i->text[text.size] = 0;
    return true;
}

/* How a page is read. */
struct way {
    unsigned rows;       /* of a page */
    unsigned cold_after; /* 0 = everything is cached */
    struct kv_txn *txn;  /* NULL: latest */
};

/* The items behind AFTER, up to LIMIT; what is cold goes on at another tier. How often that was. */
static unsigned read_items(struct shard *s, const struct way *w, const char *prefix,
                           const char *delimiter, const char *after, int64_t limit,
                           struct items *out)
{
    struct arena a;
    struct err err;
    status st;
    unsigned colds = 0;
    struct kv_read_pos pos = {0};
    struct kv_read r = {.kind = KV_READ_OBJECTS,
                        .table = KV_OBJECT,
                        .ns = s->ns,
                        .bucket = BYTES_LIT("b"),
                        .prefix = bytes_str(prefix),
                        .delimiter = bytes_str(delimiter),
                        .after = bytes_str(after),
                        .limit = limit,
                        .now = NOW};
    arena_init(&a, 4096);
    struct kv_view view = {.state = s->state, .at = HLC_MAX, .tier = KV_TIER_CACHE, .arena = &a};
    struct kv_txn *t = w->txn != NULL ? w->txn : kv_txn_new(&a, &view);
    out->count = 0;
    shard_cold_after(s, w->cold_after);
    while ((st = kv_read_page(t, &r, &pos, &a, w->rows, 1u << 20, collect, out, &err)) != ST_END) {
        assert_true(st == ST_OK || st == ST_COLD);
        kv_txn_view(t)->tier = st == ST_COLD ? KV_TIER_ANY : KV_TIER_CACHE;
        colds += st == ST_COLD;
    }
    shard_cold_after(s, 0);
    arena_fini(&a);
    return colds;
}

static const char *list(struct shard *s, unsigned rows, const char *prefix, const char *delimiter,
                        const char *after)
{
    struct items got;
    size_t n = 0;
    read_items(s, &(struct way){.rows = rows}, prefix, delimiter, after, -1, &got);
    s->text[0] = 0;
    for (unsigned i = 0; i < got.count; i++)
        n += (size_t)snprintf(s->text + n, sizeof s->text - n, "%s%s%s", n > 0 ? " " : "",
                              got.item[i].text, got.item[i].common ? "*" : "");
    return s->text;
}

static void keys_are_rolled_up(void **state)
{
    struct shard *s = *state;
    EXPECT("00000",
           run(s, "insert object bucket=a key=z | b a | b p/ | b p/1 | b p/2/x | b p/2/y | b q/1 | "
                  "b q0 | b r | b2 s/1"));
    EXPECT("00000", run(s, "insert object bucket=b key=old/1 expires_at=100 | b old/2 100 | "
                           "b mid/1 100 | b mid/2 101"));
    for (unsigned rows = 1; rows < 8; rows++) {
        EXPECT("a mid/* p/* q/* q0 r", list(s, rows, "", "/", ""));
        EXPECT("p/ p/1 p/2/*", list(s, rows, "p/", "/", "")); /* a key that equals the prefix */
        EXPECT("p/*", list(s, rows, "p", "/", ""));
        EXPECT("p/ p/1 p/2/x p/2/y", list(s, rows, "p", "", ""));
        EXPECT("a mid/2 p/ p/1 p/2/* q/1 q0 r", list(s, rows, "", "/2/", ""));
        EXPECT("", list(s, rows, "x", "/", ""));
        EXPECT("", list(s, rows, "old/", "/", ""));
    }
}

static void a_listing_goes_on_behind_an_item(void **state)
{
    struct shard *s = *state;
    EXPECT("00000", run(s, "insert object bucket=b key=a | b p/ | b p/1 | b p/2 | b q/1 | b r"));
    EXPECT("q/* r", list(s, 9, "", "/", "p/"));
    EXPECT("q/* r", list(s, 9, "", "/", "p/1")); /* "p/" lies before it */
    EXPECT("p/* q/* r", list(s, 9, "", "/", "p"));
    EXPECT("p/ p/1 p/2", list(s, 9, "p/", "/", "a")); /* not of the prefix, before and behind */
    EXPECT("", list(s, 9, "p/", "/", "q"));
    EXPECT("p/2", list(s, 9, "p/", "/", "p/1"));
    EXPECT("", list(s, 9, "", "/", "\xff"));
}

/* Longer than any key: the first bytes decide. */
static void long_arguments(void **state)
{
    struct shard *s = *state;
    static char longer[3000];
    struct items got;
    struct way w = {.rows = 9};
    EXPECT("00000", run(s, "insert object bucket=b key=a | b k | b z"));
    memset(longer, 'k', sizeof longer - 1);
    read_items(s, &w, "", "/", longer, -1, &got);
    assert_int_equal(got.count, 1);
    assert_string_equal(got.item[0].text, "z");
    longer[2000] = '/';
    read_items(s, &w, "", "/", longer, -1, &got);
    assert_int_equal(got.count, 1);
    read_items(s, &w, "", longer, "", -1, &got);
    assert_int_equal(got.count, 3);
    read_items(s, &w, longer, "/", "", -1, &got);
    assert_int_equal(got.count, 0);
}

/* -- against a model --------------------------------------------------------------------------- */

static uint64_t seed;

static unsigned below(unsigned n)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(seed >> 33) % n;
}

/* Bytes just below and above the delimiters, the lowest and the highest one among them. */
static void random_text(char *out, unsigned least, unsigned most)
{
    static const char alphabet[] = "ab/./0\x01\xff\xc3\xa9";
    unsigned n = least + below(most - least + 1);
    for (unsigned i = 0; i < n; i++)
        out[i] = alphabet[below(sizeof alphabet - 1)];
    out[n] = 0;
}

static const char *const delimiters[] = {"",     "/",    "//",       "a/", "/a",
                                         "\xff", "\x01", "\xc3\xa9", "ab"};

struct model {
    char keys[KEYS_MAX][KEY_ROOM];
    unsigned count;
};

static bool model_has(const struct model *m, const char *key, unsigned *at)
{
    for (*at = 0; *at < m->count; (*at)++)
        if (strcmp(m->keys[*at], key) == 0)
            return true;
    return false;
}

static void model_remove(struct model *m, const char *key)
{
    unsigned at;
    if (model_has(m, key, &at))
        memmove(m->keys[at], m->keys[--m->count], KEY_ROOM);
}

static int by_bytes(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    return strcmp(a->text, b->text);
}

/* Every key rolled up, once each, sorted; those behind AFTER. */
static void model_items(const struct model *m, const char *prefix, const char *delimiter,
                        const char *after, struct items *out)
{
    size_t begin = strlen(prefix);
    out->count = 0;
    for (unsigned i = 0; i < m->count; i++) {
        struct item *one = &out->item[out->count];
        if (strncmp(m->keys[i], prefix, begin) != 0)
            continue;
        snprintf(one->text, sizeof one->text, "%s", m->keys[i]);
        char *found = delimiter[0] == 0 ? NULL : strstr(one->text + begin, delimiter);
        one->common = found != NULL;
        if (found != NULL)
            found[strlen(delimiter)] = 0;
        bool seen = strcmp(one->text, after) <= 0;
        for (unsigned k = 0; k < out->count && !seen; k++)
            seen = strcmp(out->item[k].text, one->text) == 0;
        out->count += !seen;
    }
    qsort(out->item, out->count, sizeof out->item[0], by_bytes);
}

static void same_items(const struct items *want, const struct items *got)
{
    assert_int_equal(want->count, got->count);
    for (unsigned i = 0; i < want->count; i++) {
        assert_string_equal(want->item[i].text, got->item[i].text);
        assert_int_equal(want->item[i].common, got->item[i].common);
    }
}

/* Answers of LIMIT items, each behind the last item of the one before, are the whole. */
static void in_answers(struct shard *s, const struct way *w, const char *prefix,
                       const char *delimiter, int64_t limit, struct items *out)
{
    struct items part;
    char after[KEY_ROOM * 2] = "";
    out->count = 0;
    do {
        read_items(s, w, prefix, delimiter, after, limit, &part);
        assert_true(part.count <= limit);
        for (unsigned i = 0; i < part.count; i++)
            out->item[out->count++] = part.item[i];
        if (part.count > 0)
            memcpy(after, part.item[part.count - 1].text, sizeof after);
    } while (part.count == limit);
}

static void compare_random(struct shard *s, const struct model *m, struct kv_txn *txn)
{
    char prefix[KEY_ROOM], after[KEY_ROOM];
    struct items want, got;
    const char *delimiter = delimiters[below(ARRAY_LEN(delimiters))];
    struct way w = {
        .rows = 1 + below(9), .cold_after = below(3) == 0 ? 1 + below(20) : 0, .txn = txn};
    random_text(prefix, 0, 3);
    random_text(after, 0, 4);
    if (m->count > 0 && below(2) == 0)
        snprintf(after, sizeof after, "%s", m->keys[below(m->count)]);
    model_items(m, prefix, delimiter, after, &want);
    read_items(s, &w, prefix, delimiter, after, -1, &got);
    same_items(&want, &got);
    model_items(m, prefix, delimiter, "", &want);
    in_answers(s, &w, prefix, delimiter, 1 + below(5), &got);
    same_items(&want, &got);
}

/* One put, removal, or put of an expired object. RUN: on the shard, or in a session. */
static void change_random(struct shard *s, struct session *t, struct model *m)
{
    char key[KEY_ROOM], statement[100];
    unsigned at, kind = below(4);
    random_text(key, 1, 7);
    if (m->count > 0 && below(3) == 0)
        snprintf(key, sizeof key, "%s", m->keys[below(m->count)]);
    if (kind == 0)
        snprintf(statement, sizeof statement, "delete object b %s", key);
    else
        snprintf(statement, sizeof statement,
                 "insert object bucket=b key=%s expires_at=%s : update expires_at=@expires_at", key,
                 kind == 1 ? "99" : "NULL");
    EXPECT("00000", t != NULL ? session_run(t, statement) : run(s, statement));
    if (kind < 2)
        model_remove(m, key);
    else if (!model_has(m, key, &at) && m->count < KEYS_MAX)
        snprintf(m->keys[m->count++], KEY_ROOM, "%s", key);
}

static void random_buckets_are_as_the_model(void **state)
{
    struct shard *s = *state;
    static struct model m, own;
    struct session t;
    for (seed = 1; seed <= 30; seed++) {
        uint64_t first = seed;
        while (m.count > 0) {
            char statement[100];
            snprintf(statement, sizeof statement, "delete object b %s", m.keys[0]);
            EXPECT("00000", run(s, statement));
            model_remove(&m, m.keys[0]);
        }
        for (unsigned round = 0; round < 12; round++) {
            for (unsigned i = 0; i < 12; i++)
                change_random(s, NULL, &m);
            if (below(4) == 0)
                shard_seal(s, below(2) == 0);
            for (unsigned i = 0; i < 8; i++)
                compare_random(s, &m, NULL);
            own = m;
            session_begin(&t, s);
            for (unsigned i = 0; i < 4; i++)
                change_random(s, &t, &own);
            for (unsigned i = 0; i < 4; i++)
                compare_random(s, &own, t.txn);
            session_rollback(&t);
        }
        seed = first;
    }
}

/* -- what it costs ----------------------------------------------------------------------------- */

/* A listing of a few common prefixes over many keys looks at a few keys of each: it ends before the
 * 100th step of the store's iterator. */
static void common_prefixes_are_not_walked(void **state)
{
    struct shard *s = *state;
    struct items got;
    char text[80];
    for (unsigned i = 0; i < 8000; i++) {
        snprintf(text, sizeof text, "insert object bucket=b key=d%u/%05u", i % 4, i);
        EXPECT("00000", run(s, text));
        if (i == 4000)
            shard_seal(s, true);
    }
    assert_int_equal(read_items(s, &(struct way){100, 100, NULL}, "", "/", "", -1, &got), 0);
    assert_int_equal(got.count, 4);
    assert_int_equal(read_items(s, &(struct way){100, 20, NULL}, "", "/", "", -1, &got), 1);
    assert_int_equal(got.count, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, shard_setup, shard_teardown)
        T(keys_are_rolled_up),
        T(a_listing_goes_on_behind_an_item),
        T(long_arguments),
        T(random_buckets_are_as_the_model),
        T(common_prefixes_are_not_walked),
    };
    return run_shard_tests(tests);
}
