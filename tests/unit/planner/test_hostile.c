/*
 * Texts made to hurt: nested, chained, long, broken, and texts of random tokens. Every one gets an
 * answer, and the process lives. Compiles run on a thread with the stack that parse threads have.
 */
#include "planner_fixture.h"

#include <pthread.h>

#define PARSE_STACK (64u * 1024u * 1024u)

struct job {
    const char *text;
    struct planned f;
    char sqlstate[6];
    status st;
};

static void *plan_one(void *arg)
{
    struct job *j = arg;
    planned_init(&j->f);
    j->st = planned_run(&j->f, j->text, NULL, NULL);
    memcpy(j->sqlstate, j->f.err.sqlstate, sizeof(j->sqlstate));
    planned_fini(&j->f);
    return NULL;
}

/* The SQLSTATE that TEXT ends with, "00000" if it is planned and bound. */
static const char *outcome(const char *text)
{
    static struct job j;
    pthread_attr_t attr;
    pthread_t t;
    memset(&j, 0, sizeof(j));
    j.text = text;
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstacksize(&attr, PARSE_STACK), 0);
    assert_int_equal(pthread_create(&t, &attr, plan_one, &j), 0);
    pthread_join(t, NULL);
    pthread_attr_destroy(&attr);
    return j.st == ST_OK ? "00000" : j.sqlstate;
}

static char *repeat(const char *head, const char *piece, unsigned times, const char *middle,
                    const char *closing, const char *tail)
{
    size_t n = strlen(head) + (strlen(piece) + strlen(closing)) * times + strlen(middle) +
               strlen(tail) + 1;
    char *text = malloc(n), *p = stpcpy(text, head);
    for (unsigned i = 0; i < times; i++)
        p = stpcpy(p, piece);
    p = stpcpy(p, middle);
    for (unsigned i = 0; i < times; i++)
        p = stpcpy(p, closing);
    stpcpy(p, tail);
    return text;
}

static const struct shape {
    const char *head, *piece, *middle, *closing, *tail;
} shapes[] = {
    {"select 1", "+1", "", "", ""},
    {"select ", "(", "1", ")", ""},
    {"select ", "(select ", "1", ")", ""},
    {"select * from ", "(select * from ", "pg_class", ") x", ""},
    {"select ", "f(", "1", ")", ""},
    {"select ", "f(1,", "1", ")", ""},
    {"select 1", " union select 1", "", "", ""},
    {"select 1", " union all (select 1", "", ")", ""},
    {"select ", "case when true then ", "1", " end", ""},
    {"select ", "not ", "true", "", ""},
    {"select ", "- ", "1", "", ""},
    {"select ", "array[", "1", "]", ""},
    {"select ", "row(", "1", ")", ""},
    {"select a", "[1]", "", "", ""},
    {"select a", ".b", "", "", ""},
    {"select 1", "::int", "", "", ""},
    {"select '1'", " collate \"C\"", "", "", ""},
    {"select 1 where true", " and true", "", "", ""},
    {"select 1 where true", " or (true and true", "", ")", ""},
    {"select name from meta where pid = 1", " and pid = 1", "", "", ""},
    {"select name from meta where pid in (1", ",1", "", "", ")"},
    {"select name from meta where pid = 1 and name in ('a'", ",'a'", "", "", ")"},
    {"select 1", ",1", "", "", ""},
    {"insert into meta (pid, name) values (1,'a')", ",(1,'a')", "", "", ""},
    {"insert into meta (pid, name) values (1,", "(", "'a'", ")", ")"},
    {"select * from pg_class a", " join pg_class b on true", "", "", ""},
    {"select * from pg_class", ", pg_class", "", "", ""},
    {"with ", "a as (with ", "b as (select 1) select 1", ") select 1", " select 1"},
    {"explain ", "explain ", "select 1", "", ""},
    {"prepare a as ", "prepare a as ", "select 1", "", ""},
    {"copy ", "(", "select 1", ")", " to stdout"},
    {"select /*", "/*", "", "*/", "*/ 1"},
    {"select ", "'a' || ", "'b'", "", ""},
    {"select ", "$$", "", "", ""},
    {"select ", "\"", "", "", ""},
    {"select ", "'", "", "", ""},
    {"select 1", ";", "", "", "select 2"},
    {"set x = 1", ",1", "", "", ""},
    {"select $1", " + $1", "", "", ""},
    {"select ", "9", "", "", ""},
    {"select ", "x", "", "", ""},
    {"", "(", "", ")", ""},
    {"", "begin;", "", "", ""},
};

static void deep_and_long_texts_get_an_answer(void **state)
{
    (void)state;
    static const unsigned depths[] = {1, 2, 10, 50, 99, 100, 101, 150, 600, 1900, 2500, 20000};
    unsigned refused = 0;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct shape *s = &shapes[i];
        for (size_t d = 0; d < ARRAY_LEN(depths); d++) {
            char *text = repeat(s->head, s->piece, depths[d], s->middle, s->closing, s->tail);
            const char *state_of = outcome(text);
            assert_int_equal(strlen(state_of), 5);
            refused += strcmp(state_of, "54001") == 0;
            free(text);
        }
    }
    assert_true(refused > 50);
}

static void unclosed_texts_get_an_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct shape *s = &shapes[i];
        char *text = repeat(s->head, s->piece, 90, "", "", "");
        assert_int_equal(strlen(outcome(text)), 5);
        free(text);
    }
}

static void too_long_a_text_is_refused(void **state)
{
    (void)state;
    char *text = repeat("select '", "aaaaaaaaaa", LIMIT_SQL_PARSE_BYTES / 10 + 1, "", "", "'");
    assert_string_equal(outcome(text), "54001");
    free(text);
}

static void prefixes_of_statements_get_an_answer(void **state)
{
    (void)state;
    for (int id = PATTERN_NONE + 1; id < PATTERN_COUNT; id++) {
        char text[512];
        size_t n = strlen(pl__pattern_example((enum pl_pattern_id)id));
        for (size_t cut = 0; cut <= n; cut++) {
            struct planned f;
            memcpy(text, pl__pattern_example((enum pl_pattern_id)id), cut);
            text[cut] = '\0';
            planned_init(&f);
            planned_run(&f, text, NULL, NULL);
            planned_fini(&f);
        }
    }
}

/* Texts of tokens that statements are made of, in any order: plans or errors, twice the same. */
static void random_texts_get_an_answer(void **state)
{
    (void)state;
    static const char *const words[] = {"select",
                                        "from",
                                        "meta",
                                        "kv",
                                        "where",
                                        "pid",
                                        "name",
                                        "=",
                                        "<",
                                        ">",
                                        "in",
                                        "(",
                                        ")",
                                        ",",
                                        "1",
                                        "'a'",
                                        "and",
                                        "or",
                                        "not",
                                        "null",
                                        "like",
                                        "'a%'",
                                        "order by",
                                        "limit",
                                        "count(*)",
                                        "*",
                                        "insert into",
                                        "values",
                                        "(1,'a')",
                                        "update",
                                        "set",
                                        "size",
                                        "delete from",
                                        "returning",
                                        "$1",
                                        "-",
                                        "+",
                                        "between",
                                        "any",
                                        "array[",
                                        "]",
                                        "::int8",
                                        "::text",
                                        "key",
                                        "value",
                                        "on conflict",
                                        "do nothing",
                                        "do update set",
                                        "excluded.",
                                        "type",
                                        "'d'",
                                        "for update",
                                        "desc",
                                        "as x",
                                        "m.",
                                        "public.",
                                        "default",
                                        "copy",
                                        "from stdin",
                                        "to stdout",
                                        "resolve('/')",
                                        "move(1,'a',2,'b')",
                                        "is null",
                                        "offset 0",
                                        "1.5",
                                        "true"};
    uint64_t x = 88172645463325252u;
    const char *n = getenv("PL_HOSTILE_ROUNDS");
    unsigned rounds = n == NULL ? 3000 : (unsigned)atoi(n);
    struct planned f;
    planned_init(&f);
    for (unsigned i = 0; i < rounds; i++) {
        char text[1024] = "";
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        unsigned count = 2 + (unsigned)(x >> 20) % 14;
        for (unsigned k = 0; k < count; k++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            strcat(strcat(text, words[(x >> 11) % ARRAY_LEN(words)]), " ");
        }
        char *first = strdup(SHOW_P(&f, text, "1", "2"));
        if (strcmp(first, SHOW_P(&f, text, "1", "2")) != 0)
            fail_msg("two answers to %s", text);
        free(first);
    }
    planned_fini(&f);
}

static unsigned split(const char *text, char *out)
{
    struct arena a;
    bytes *pieces;
    unsigned count = 0;
    struct err err;
    arena_init(&a, 1024);
    *out = '\0';
    assert_int_equal(pl_split(bytes_str(text), &a, &pieces, &count, &err), ST_OK);
    for (unsigned i = 0; i < count; i++)
        out += snprintf(out, 1024, "%s%.*s", i > 0 ? "|" : "", (int)pieces[i].size,
                        (const char *)pieces[i].data);
    arena_fini(&a);
    return count;
}

static void messages_are_split_into_statements(void **state)
{
    (void)state;
    static const struct {
        const char *text, *pieces;
        unsigned count;
    } cases[] = {
        {"", "", 0},
        {" ; ;; -- x\n /* ; */", "", 0},
        {"select 1", "select 1", 1},
        {"select 1;", "select 1", 1},
        {"select 1; select 2 ;", "select 1|select 2 ", 2},
        {"select ';'; b", "select ';'|b", 2},
        {"select $$;$$; b", "select $$;$$|b", 2},
        {"select $a$;$$;$a$; b", "select $a$;$$;$a$|b", 2},
        {"select \";\"; b", "select \";\"|b", 2},
        {"select /* ; /* ; */ */ 1; b", "select /* ; /* ; */ */ 1|b", 2},
        {"select (1;2); b", "select (1;2)|b", 2},
        {"a -- ;\n; b", "a -- ;\n|b", 2},
        {"select E'\\';'; b", "select E'\\';'|b", 2},
        {"a; select 'open; b", "a|select 'open; b", 2},
        {" \n -- x\n /* y */ ", "", 0},
        {" /* x */ select 1 /* y */ ", "select 1 /* y */ ", 1},
        {" select 'open", "select 'open", 1},
        {" /* open", " /* open", 1},
    };
    char out[4096], ended[4096];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        unsigned n = split(cases[i].text, out);
        if (n != cases[i].count)
            fail_msg("%u pieces of %s: %s", n, cases[i].text, out);
        assert_string_equal(out, cases[i].pieces);
    }
    static const char *const single[] = {
        "", "  ", " select 1", "a\n", "/* x */ ", " /* x */ (1, 'b')  ", "-- x\n $1 "};
    for (size_t i = 0; i < ARRAY_LEN(single); i++) { /* with and without a semicolon are the same */
        unsigned n = split(single[i], out);
        snprintf(ended, sizeof ended, "%s;", single[i]);
        char again[4096];
        assert_int_equal(split(ended, again), n);
        assert_string_equal(again, out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deep_and_long_texts_get_an_answer),
        cmocka_unit_test(unclosed_texts_get_an_answer),
        cmocka_unit_test(too_long_a_text_is_refused),
        cmocka_unit_test(prefixes_of_statements_get_an_answer),
        cmocka_unit_test(random_texts_get_an_answer),
        cmocka_unit_test(messages_are_split_into_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
