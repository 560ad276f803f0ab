/*
 * The scanner against PostgreSQL's own (pg_query_scan) on random token sequences: the same tokens
 * at the same places, the same literals, and never one key for two token sequences. Then what is
 * collapsed, what is not cacheable, and the guards.
 */
#include "../../lib/test.h"

#include "base/limits.h"
#include "planner/scan.h"

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>

static uint64_t seed_state;

static unsigned pick(unsigned n)
{
    seed_state = seed_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((seed_state >> 33) % n);
}

static const char *const pieces[] = {
    "select",
    "SELECT",
    "From",
    "x",
    "X1",
    "_a",
    "a$1",
    "é",
    "tableé",
    "null",
    "TRUE",
    "default",
    "\"Quoted\"",
    "\"a\"\"b\"",
    "\"x y\"",
    "1",
    "0",
    "12345",
    "9223372036854775807",
    "9223372036854775808",
    "1.5",
    ".5",
    "1.",
    "1e5",
    "1.5E-3",
    "1e",
    "1..2",
    "007",
    "'a'",
    "''",
    "'it''s'",
    "'a\nb'",
    "'\\'",
    "E'a\\'b'",
    "e''",
    "B'01'",
    "x'ff'",
    "N'n'",
    "U&'d\\0061'",
    "u&\"d\"",
    "$1",
    "$12",
    "$$",
    "$$a'b$$",
    "$t$ x $$ $t$",
    "+",
    "-",
    "*",
    "/",
    "<",
    ">",
    "=",
    "<=",
    ">=",
    "<>",
    "!=",
    "||",
    "::",
    ":",
    ":=",
    "=>",
    ".",
    "..",
    "(",
    ")",
    "[",
    "]",
    ",",
    "~",
    "!~*",
    "@>",
    "#-",
    "?|",
    "%",
    "^",
    "&&",
    "->",
    "->>",
    "--c\n",
    "-- c",
    "/* c */",
    "/* a /* b */ c */",
    "/**/",
    "+-",
    "@-",
    "*/",
    "'a'\n'b'",
    "'a' --x\n 'b'",
    "E",
    "e1",
    "b",
    "u",
    "&",
    "1a",
    "$1a",
    "0x1f",
    "1_000",
    "\"",
    "'",
};
static const char *const gaps[] = {"", "", "", " ", " ", "\n", "\t", " /*x*/ ", "--y\n"};

static size_t generate(char *out, size_t room, bool tight)
{
    size_t n = 0;
    unsigned count = 1 + pick(12);
    for (unsigned i = 0; i < count; i++) {
        const char *gap = tight ? gaps[pick(4)] : gaps[pick(ARRAY_LEN(gaps))];
        const char *piece = pieces[pick(ARRAY_LEN(pieces))];
        int k = snprintf(out + n, room - n, "%s%s", gap, piece);
        n += (size_t)k;
    }
    return n;
}

/* A token as its meaning: kind and text, but of literals only the kind. */
static void sign(char *out, size_t room, const PgQuery__ScanToken *t, const char *text)
{
    size_t at = strlen(out);
    int n = t->end - t->start;
    switch ((int)t->token) {
    case PG_QUERY__TOKEN__ICONST: snprintf(out + at, room - at, "<i>"); return;
    case PG_QUERY__TOKEN__FCONST: snprintf(out + at, room - at, "<f>"); return;
    case PG_QUERY__TOKEN__SCONST: snprintf(out + at, room - at, "<s>"); return;
    default: break;
    }
    snprintf(out + at, room - at, "<%d ", (int)t->token);
    at = strlen(out);
    for (int i = 0; i < n && at + 2 < room; i++) {
        char c = text[t->start + i];
        out[at++] = text[t->start] != '"' && c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
    }
    out[at++] = '>';
    out[at] = '\0';
}

static bool is_comment(const PgQuery__ScanToken *t)
{
    return t->token == PG_QUERY__TOKEN__SQL_COMMENT || t->token == PG_QUERY__TOKEN__C_COMMENT;
}

/* Every key seen and the token sequence it stood for. */
#define MEMORY 65536
static struct {
    char *key;
    size_t size;
    char *signature;
} memory[MEMORY];
static unsigned remembered;

static void check_key(const struct pl_scan *s, const char *signature, const char *text)
{
    uint64_t h = 1469598103934665603u;
    for (uint32_t i = 0; i < s->key_size; i++)
        h = (h ^ s->key[i]) * 1099511628211u;
    unsigned at = (unsigned)(h % MEMORY);
    while (memory[at].key != NULL) {
        if (memory[at].size == s->key_size && memcmp(memory[at].key, s->key, s->key_size) == 0) {
            if (strcmp(memory[at].signature, signature) != 0)
                fail_msg("one key for two token sequences: %s | %s | %s", text, signature,
                         memory[at].signature);
            return;
        }
        at = (at + 1) % MEMORY;
    }
    if (remembered > MEMORY / 2)
        return;
    remembered++;
    memory[at].key = malloc(s->key_size + 1);
    memcpy(memory[at].key, s->key, s->key_size);
    memory[at].size = s->key_size;
    memory[at].signature = strdup(signature);
}

/* Where PostgreSQL's own scanner gives a wrong end, or libpg_query no token of its own. */
static bool comparable(const PgQuery__ScanToken *t)
{
    return t->token != PG_QUERY__TOKEN__USCONST && t->token != PG_QUERY__TOKEN__UIDENT;
}

static unsigned compared, cached;

static void compare(const char *text)
{
    struct pl_scan s;
    struct err err;
    char signature[4096] = "";
    bytes b = bytes_str(text);
    PgQueryScanResult r = pg_query_scan(text);
    pl_scan_init(&s);
    assert_int_equal(pl_scan(&s, b, &err), ST_OK);
    if (r.error != NULL) { /* no tokens to compare; the plan cache must not take it for a text */
        pg_query_free_scan_result(r);
        pl_scan_fini(&s);
        return;
    }
    PgQuery__ScanResult *tree =
        pg_query__scan_result__unpack(NULL, r.pbuf.len, (const uint8_t *)r.pbuf.data);
    size_t at = 0;
    unsigned slot = 0;
    compared++;
    for (size_t i = 0; i < tree->n_tokens; i++) {
        const PgQuery__ScanToken *t = tree->tokens[i];
        struct pl_token mine;
        if (is_comment(t))
            continue;
        assert_int_equal(pl_token_next(b, &at, &mine, &err), ST_OK);
        /* libpg_query does not continue a string behind a comment, PostgreSQL does. */
        if (mine.kind == PL_TOKEN_STRANGE && memmem(text + mine.at, mine.size, "--", 2) != NULL)
            break;
        if (mine.kind == PL_TOKEN_STRANGE && text[mine.at] != '\'' && !comparable(t))
            continue;
        if (mine.kind == PL_TOKEN_BAD) /* a character of no token: the rest is not looked at */
            break;
        if (t->token == PG_QUERY__TOKEN__NCHAR) { /* N'…' is two tokens there, one here */
            assert_int_equal(mine.kind, PL_TOKEN_STRANGE);
            i++;
            continue;
        }
        if ((int)mine.at != t->start || (int)(mine.at + mine.size) != t->end)
            fail_msg("token at %u+%u, PostgreSQL has %d-%d in: %s", mine.at, mine.size, t->start,
                     t->end, text);
        if (s.cacheable) {
            bool i4 = t->token == PG_QUERY__TOKEN__ICONST, f = t->token == PG_QUERY__TOKEN__FCONST;
            if (i4 || f || t->token == PG_QUERY__TOKEN__SCONST) {
                assert_true(slot < s.slot_count);
                const struct pl_slot *x = &s.slots[slot++];
                assert_int_equal(x->at, t->start);
                assert_int_equal(x->at + x->size, t->end);
                assert_true(t->token == PG_QUERY__TOKEN__SCONST ? x->kind == PL_SLOT_STRING
                            : i4                                ? x->kind == PL_SLOT_INT
                                                                : x->kind != PL_SLOT_STRING);
            }
            sign(signature, sizeof(signature), t, text);
        }
    }
    if (s.cacheable) {
        assert_int_equal(slot, s.slot_count);
        assert_true(s.key_size <= 2 * b.size + 16);
        /* A number of 10 to 19 digits is <f> to PostgreSQL and a bigint here. */
        char kinds[512] = "";
        size_t n = 0;
        for (uint32_t i = 0; i < s.slot_count && n < sizeof(kinds) - 1; i++)
            kinds[n++] = (char)('0' + s.slots[i].kind);
        strncat(signature, kinds, sizeof(signature) - strlen(signature) - 1);
        for (char *p = strstr(signature, "<f>"); p != NULL; p = strstr(p, "<f>"))
            p[1] = 'i';
        check_key(&s, signature, text);
        cached++;
    }
    pg_query__scan_result__free_unpacked(tree, NULL);
    pg_query_free_scan_result(r);
    pl_scan_fini(&s);
}

static void tokens_and_keys_agree_with_postgresql(void **state)
{
    (void)state;
    const char *n = getenv("PL_SCAN_ROUNDS"), *seed = getenv("PL_SCAN_SEED");
    unsigned rounds = n == NULL ? 60000 : (unsigned)atoi(n);
    seed_state = seed == NULL ? 1 : (uint64_t)atoll(seed);
    for (unsigned i = 0; i < rounds; i++) {
        char text[1024];
        generate(text, sizeof(text), i % 2 == 0);
        compare(text);
    }
    assert_true(compared > rounds / 6);
    assert_true(cached > rounds / 20);
}

/* -- keys -------------------------------------------------------------------------------------- */

static bool same_key(const char *a, const char *b)
{
    struct pl_scan x, y;
    struct err err;
    pl_scan_init(&x);
    pl_scan_init(&y);
    assert_int_equal(pl_scan(&x, bytes_str(a), &err), ST_OK);
    assert_int_equal(pl_scan(&y, bytes_str(b), &err), ST_OK);
    assert_true(x.cacheable);
    assert_true(y.cacheable);
    bool same = x.key_size == y.key_size && memcmp(x.key, y.key, x.key_size) == 0;
    pl_scan_fini(&x);
    pl_scan_fini(&y);
    return same;
}

static void writing_does_not_change_the_key(void **state)
{
    (void)state;
    assert_true(same_key("SELECT a FROM t WHERE b = 1", "select a  from t\nwhere b=2 -- x"));
    assert_true(same_key("select 'a'", "select 'it''s';"));
    assert_true(same_key("select -1", "select - 2"));
    assert_true(same_key("select a.b", "select a . b"));
    assert_true(same_key("select a/*x*/", "select A"));
}

static void meaning_changes_the_key(void **state)
{
    (void)state;
    assert_false(same_key("select 1", "select '1'"));
    assert_false(same_key("select 1", "select 1.0"));
    assert_false(same_key("select 1", "select 99999999999999999999"));
    assert_false(same_key("select $1", "select $2"));
    assert_false(same_key("select a b", "select ab"));
    assert_false(same_key("select \"A\"", "select a"));
    assert_false(same_key("select \"a\" \"b\"", "select \"a\"\"b\""));
    assert_false(same_key("select a < = b", "select a <= b"));
    assert_false(same_key("select a : = b", "select a := b"));
    assert_false(same_key("select a $1", "select a$1"));
    assert_false(same_key("select null", "select 1"));
    assert_false(same_key("select a in (1)", "select a in (1, 2)"));
    assert_false(same_key("select a in (1, 2)", "select a in ('x', 'y')"));
    assert_false(same_key("values (1)", "values (1), (2)"));
    assert_false(same_key("values (1, 2)", "values (1), (2)"));
}

static void lists_are_collapsed(void **state)
{
    (void)state;
    struct pl_scan s;
    struct err err;
    assert_true(same_key("select a in (1, 2)", "select a in (1, 2, 3, 4)"));
    assert_true(same_key("values (1, 'a'), (2, 'b')", "values (1, 'a'), (2, 'b'), (3, 'c')"));
    assert_true(
        same_key("values (-1, null), (-2, null)", "values (-1, null), (-2, null), (-3, null)"));
    assert_false(same_key("values (1, 'a'), (2, 'b')", "values (1, 'a'), ('x', 'b')"));
    assert_false(same_key("values (1), (-2)", "values (1), (2)"));
    assert_false(same_key("select a in (1, 2, 'x')", "select a in (1, 2)"));
    assert_false(same_key("values (1), (2), ($1)", "values (1), (2)"));

    pl_scan_init(&s);
    assert_int_equal(pl_scan(&s, bytes_str("insert into t values (1,'a'),(2,'b'),(3,'c')"), &err),
                     ST_OK);
    assert_int_equal(s.repeat_count, 1);
    assert_int_equal(s.repeats[0].first, 0);
    assert_int_equal(s.repeats[0].stride, 2);
    assert_int_equal(s.repeats[0].count, 3);
    assert_int_equal(s.slot_count, 6);
    assert_int_equal(pl_scan(&s, bytes_str("select 7 where a in (1,2,3) limit 5"), &err), ST_OK);
    assert_int_equal(s.repeat_count, 1);
    assert_int_equal(s.repeats[0].first, 1);
    assert_int_equal(s.repeats[0].stride, 1);
    assert_int_equal(s.repeats[0].count, 3);
    assert_int_equal(s.slot_count, 5);
    pl_scan_fini(&s);
}

static void strange_texts_are_not_cacheable(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "select E'a'",
        "select b'1'",
        "select x'f'",
        "select n'x'",
        "select U&'x'",
        "select U&\"x\"",
        "select $$a$$",
        "select 'a'\n'b'",
        "select 1a",
        "select $1a",
        "select 'a",
        "select \"a",
        "select 1; select 2",
        "select /* x",
        "select {",
        "select aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "select \"a\nb\"",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct pl_scan s;
        struct err err;
        pl_scan_init(&s);
        assert_int_equal(pl_scan(&s, bytes_str(texts[i]), &err), ST_OK);
        if (s.cacheable)
            fail_msg("cacheable: %s", texts[i]);
        pl_scan_fini(&s);
    }
}

/* -- guards ------------------------------------------------------------------------------------ */

static status scan_of(const char *head, const char *piece, unsigned times, const char *tail)
{
    struct pl_scan s;
    struct err err;
    size_t n = strlen(head) + strlen(piece) * times + strlen(tail) + 1;
    char *text = malloc(n), *p = stpcpy(text, head);
    for (unsigned i = 0; i < times; i++)
        p = stpcpy(p, piece);
    stpcpy(p, tail);
    pl_scan_init(&s);
    status st = pl_scan(&s, bytes_str(text), &err);
    if (st != ST_OK)
        assert_string_equal(err.sqlstate, "54001");
    pl_scan_fini(&s);
    free(text);
    return st;
}

static void deep_and_long_texts_are_refused(void **state)
{
    (void)state;
    assert_int_equal(scan_of("select ", "(", LIMIT_SQL_DEPTH, ""), ST_OK);
    assert_int_equal(scan_of("select ", "(", LIMIT_SQL_DEPTH + 1, ""), ST_TOO_COMPLEX);
    assert_int_equal(scan_of("select ", "f(", LIMIT_SQL_DEPTH + 1, ""), ST_TOO_COMPLEX);
    assert_int_equal(scan_of("select ", "a[", LIMIT_SQL_DEPTH + 1, ""), ST_TOO_COMPLEX);
    assert_int_equal(scan_of("select ", "case when ", LIMIT_SQL_DEPTH + 1, ""), ST_TOO_COMPLEX);
    assert_int_equal(scan_of("select 1", "+1", 900, ""), ST_OK);
    assert_int_equal(scan_of("select 1", "+1", 1001, ""), ST_TOO_COMPLEX);
    assert_int_equal(scan_of("select 1", "+f(1,2)", 700, ""), ST_TOO_COMPLEX);
    assert_int_equal(scan_of("select 1", " union select 1", 1000, ""), ST_TOO_COMPLEX);
    assert_int_equal(scan_of("select ", "- ", 2001, "1"), ST_TOO_COMPLEX);
    assert_int_equal(scan_of("select 1", ",1", 5000, ""), ST_OK);
    assert_int_equal(scan_of("insert into t values (1,2)", ",(1,2)", 5000, ""), ST_OK);
    assert_int_equal(scan_of("select ", "/*", 101, ""), ST_TOO_COMPLEX);
    assert_int_equal(scan_of("select ", "/* x */", 1000, "1"), ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_and_keys_agree_with_postgresql),
        cmocka_unit_test(writing_does_not_change_the_key),
        cmocka_unit_test(meaning_changes_the_key),
        cmocka_unit_test(lists_are_collapsed),
        cmocka_unit_test(strange_texts_are_not_cacheable),
        cmocka_unit_test(deep_and_long_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
