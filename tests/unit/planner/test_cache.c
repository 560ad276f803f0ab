/*
 * The plan cache: texts of one shape share a plan, texts of another meaning never do, whatever
 * order they come in; what is kept is bounded, and what is referenced lives on.
 */
#include "planner_fixture.h"

/* Every two of these mean different things; many pairs share a fingerprint of libpg_query. */
static const char *const meanings[] = {
    "SELECT 1",
    "SELECT 2",
    "SELECT 'x'",
    "SELECT true",
    "SELECT NULL",
    "SELECT '1'::int",
    "SELECT '2'::int",
    "SELECT 'abcdef'::varchar(3)",
    "SELECT 'abcdef'::varchar(4)",
    "SELECT 1 AS a",
    "SELECT 1 AS b",
    "SELECT id, type FROM meta WHERE pid = 1 AND name = 'a'",
    "SELECT type, id FROM meta WHERE pid = 1 AND name = 'a'",
    "SELECT id, id FROM meta WHERE pid = 1 AND name = 'a'",
    "SELECT id AS type, type AS id FROM meta WHERE pid = 1 AND name = 'a'",
    "SELECT id FROM meta WHERE pid = 1 AND name = 'a'",
    "SELECT id FROM meta WHERE pid = -1 AND name = 'a'",
    "SELECT id FROM meta WHERE pid = NULL AND name = 'a'",
    "SELECT id FROM meta WHERE pid = '2' AND name = 'a'",
    "SELECT id FROM meta WHERE pid = 3.0 AND name = 'a'",
    "SELECT id FROM meta WHERE pid = 1 AND name IN ('a', 'b')",
    "SELECT id FROM meta WHERE pid = 1 AND name IN ('a', 'b', 'c')",
    "SELECT id FROM meta WHERE pid = 1 AND name = ANY('{a,b,d}')",
    "SELECT id FROM meta WHERE pid = 1 AND name > 'a'",
    "SELECT id FROM meta WHERE pid = 1 AND name >= 'a'",
    "SELECT id FROM meta WHERE pid = 1 AND name > 'a' ORDER BY name DESC",
    "SELECT name, id FROM meta WHERE pid = 1 ORDER BY 1",
    "SELECT name, id FROM meta WHERE pid = 1 LIMIT 1",
    "SELECT name, id FROM meta WHERE pid = 1 LIMIT 20",
    "SELECT count(*) FROM meta WHERE pid = 1",
    "SELECT count(*) AS n FROM meta WHERE pid = 1",
    "SELECT pid FROM meta WHERE (pid, name) > (1, 'b')",
    "SELECT pid FROM meta WHERE (pid, name) < (1, 'b')",
    "INSERT INTO meta (pid, name) VALUES (1, 'a')",
    "INSERT INTO meta (name, pid) VALUES ('a', 1)",
    "INSERT INTO meta (pid, name) VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO meta (pid, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO meta (pid, name, size) VALUES (1, 'a', DEFAULT)",
    "INSERT INTO meta (pid, name, size) VALUES (1, 'a', NULL)",
    "INSERT INTO meta (pid, name, size) VALUES (1, 'a', 3)",
    "INSERT INTO meta (pid, name, size) VALUES (1, 'a', -3)",
    "INSERT INTO meta (pid, name) VALUES (1, 'a') ON CONFLICT DO NOTHING",
    "UPDATE meta SET uid = 1, gid = 2 WHERE pid = 1 AND name = 'a'",
    "UPDATE meta SET gid = 1, uid = 2 WHERE pid = 1 AND name = 'a'",
    "UPDATE meta SET size = size + 1 WHERE pid = 1 AND name = 'a'",
    "UPDATE meta SET size = size - 1 WHERE pid = 1 AND name = 'a'",
    "BEGIN",
    "BEGIN READ ONLY",
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "SAVEPOINT a",
    "SAVEPOINT b",
    "ROLLBACK TO a",
    "ROLLBACK TO b",
    "RELEASE a",
    "RELEASE b",
    "CLOSE a",
    "CLOSE ALL",
    "DEALLOCATE a",
    "DEALLOCATE ALL",
    "SET TimeZone = 'UTC'",
    "SET TimeZone = 'x'",
    "SET TimeZone = 5",
    "FETCH 10 FROM c",
    "FETCH 20 FROM c",
    "DECLARE c1 CURSOR FOR SELECT name FROM meta WHERE pid = 1",
    "DECLARE c1 CURSOR FOR SELECT name FROM meta WHERE pid = 2",
    "EXECUTE p (1)",
    "EXECUTE p (2)",
    "NOTIFY c, 'a'",
    "NOTIFY c, 'b'",
};

/* Asked in turn, forwards and backwards, one planner gives for each text what a fresh planner
 * gives. */
static void no_text_gets_the_plan_of_another(void **state)
{
    (void)state;
    struct planned shared;
    char *want[ARRAY_LEN(meanings)];
    planned_init(&shared);
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
        struct planned fresh;
        planned_init(&fresh);
        want[i] = strdup(SHOW(&fresh, meanings[i]));
        assert_int_equal(fresh.st, ST_OK);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(want[i], want[k]) == 0)
                fail_msg("no difference between %s and %s", meanings[i], meanings[k]);
        }
        planned_fini(&fresh);
    }
    for (unsigned round = 0; round < 4; round++) {
        for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
            size_t at = round % 2 == 0 ? i : ARRAY_LEN(meanings) - 1 - i;
            assert_string_equal(SHOW(&shared, meanings[at]), want[at]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        free(want[i]);
    planned_fini(&shared);
}

static const struct pl_plan *plan_of(struct planned *f, const char *text)
{
    if (planned_run(f, text, NULL, NULL) != ST_OK)
        fail_msg("%s: %s", text, f->err.message);
    return f->r.out.plan;
}

static void values_of_literals_share_a_plan(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"SELECT id FROM meta WHERE pid = 1 AND name = 'a'",
         "select id from meta where pid=234 and name='it''s' -- x"},
        {"SELECT id FROM meta WHERE pid = -1 AND name = 'a'",
         "SELECT id FROM meta WHERE pid = - 77 AND name = 'b'"},
        {"SELECT id FROM meta WHERE pid = 1 AND name IN ('a', 'b')",
         "SELECT id FROM meta WHERE pid = 9 AND name IN ('x', 'y', 'z', 'a')"},
        {"SELECT id FROM meta WHERE pid = 1 AND name > 'a' LIMIT 5",
         "SELECT id FROM meta WHERE pid = 2 AND name > 'b' LIMIT 6"},
        {"INSERT INTO kv (key, value) VALUES ('a', 'b')",
         "INSERT INTO kv (key, value) VALUES ('c', 'd')"},
        {"INSERT INTO meta (pid, name) VALUES (1, 'a'), (2, 'b')",
         "INSERT INTO meta (pid, name) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')"},
        {"SELECT id FROM meta WHERE pid = '5'::int8", "SELECT id FROM meta WHERE pid = '6'::int8"},
        {"SELECT move(1, 'a', 2, 'b', 'replace')", "SELECT move(3, 'c', 4, 'd', 'exchange')"},
        {"SELECT 1", "SELECT 1 "},
        {"SAVEPOINT a", "savepoint A"},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct planned f, fresh;
        planned_init(&f);
        planned_init(&fresh);
        const struct pl_plan *first = plan_of(&f, pairs[i][0]);
        if (plan_of(&f, pairs[i][1]) != first)
            fail_msg("two plans for %s and %s", pairs[i][0], pairs[i][1]);
        char *want = strdup(SHOW(&fresh, pairs[i][1]));
        assert_string_equal(SHOW(&f, pairs[i][1]), want);
        free(want);
        planned_fini(&f);
        planned_fini(&fresh);
    }
}

/* A literal behind a list moves when the list grows: such a plan may serve one length only. */
static void literals_behind_a_list_keep_their_places(void **state)
{
    (void)state;
    struct planned f;
    planned_init(&f);
    assert_string_equal(
        SHOW(&f, "SELECT id FROM meta WHERE pid = 1 AND name IN ('a', 'b') LIMIT 7"),
        "meta.lookup_many points (1,'a') (1,'b') limit 7 : id int8");
    assert_string_equal(
        SHOW(&f, "SELECT id FROM meta WHERE pid = 2 AND name IN ('c', 'd', 'e') LIMIT 8"),
        "meta.lookup_many points (2,'c') (2,'d') (2,'e') limit 8 : id int8");
    assert_string_equal(SHOW(&f, "SELECT id FROM meta WHERE name IN ('c', 'd', 'e') AND pid = 4"),
                        "meta.lookup_many points (4,'c') (4,'d') (4,'e') : id int8");
    assert_string_equal(SHOW(&f, "SELECT id FROM meta WHERE name IN ('c', 'd') AND pid = 5"),
                        "meta.lookup_many points (5,'c') (5,'d') : id int8");
    planned_fini(&f);
}

static void declared_types_are_part_of_the_key(void **state)
{
    (void)state;
    struct planned f;
    const uint32_t narrow[] = {OID_INT4, 0}, wide[] = {OID_INT8, 0};
    const char *const p[] = {"5", NULL};
    const char *text = "SELECT name FROM meta WHERE pid = $1";
    planned_init(&f);
    assert_non_null(strstr(planned_show(&f, text, narrow, p), "params int4"));
    assert_non_null(strstr(planned_show(&f, text, wide, p), "params int8"));
    assert_non_null(strstr(planned_show(&f, text, NULL, p), "params int8"));
    assert_non_null(strstr(planned_show(&f, text, narrow, p), "params int4"));
    planned_fini(&f);
}

static void strange_texts_are_planned_anew(void **state)
{
    (void)state;
    struct planned f;
    planned_init(&f);
    assert_string_equal(SHOW(&f, "SELECT id FROM meta WHERE pid = 1 AND name = E'a\\tb'"),
                        "meta.lookup points (1,'a\tb') : id int8");
    assert_string_equal(SHOW(&f, "SELECT id FROM meta WHERE pid = 2 AND name = $$c$$"),
                        "meta.lookup points (2,'c') : id int8");
    assert_string_equal(SHOW(&f, "SELECT id FROM meta WHERE pid = 2 AND name IN ('a', $$c$$)"),
                        "meta.lookup_many points (2,'a') (2,'c') : id int8");
    assert_string_equal(SHOW(&f, "INSERT INTO kv (key, value) VALUES ('a', $$x$$), ('b', $$y$$)"),
                        "kv.insert insert (key='a',value='x') (key='b',value='y')");
    planned_fini(&f);
}

static struct pl__plan *put(struct pl__cache *c, struct pl_scan *s, const char *text)
{
    struct pl__plan *plan = NULL;
    struct err err;
    assert_int_equal(pl_scan(s, bytes_str(text), &err), ST_OK);
    assert_int_equal(pl__compile_text(NULL, bytes_str(text), s, NULL, 0, &plan, &err), ST_OK);
    pl__cache_put(c, s, bytes_str(text), NULL, 0, plan);
    return plan;
}

static void the_cache_is_bounded_and_keeps_what_is_used(void **state)
{
    (void)state;
    struct pl__cache *c = pl__cache_new();
    struct pl_scan s;
    struct err err;
    char text[128];
    pl_scan_init(&s);
    const char *often = "SELECT id FROM meta WHERE pid = 1";
    struct pl__plan *kept = put(c, &s, often);
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(text, sizeof(text), "SAVEPOINT s%u", i);
        struct pl__plan *p = put(c, &s, text);
        if (i % 100 == 0)
            assert_ptr_equal(pl__cache_find(c, &s, bytes_str(text), NULL, 0), p);
        pl_plan_unref(&p->pub);
        assert_int_equal(pl_scan(&s, bytes_str(often), &err), ST_OK);
        assert_ptr_equal(pl__cache_find(c, &s, bytes_str(often), NULL, 0), kept);
    }
    assert_true(pl__cache_count(c) <= 4096);
    assert_true(pl__cache_count(c) > 1000);
    pl__cache_free(c);
    assert_int_equal(kept->pub.kind, PL_READ); /* still referenced here */
    pl_plan_unref(&kept->pub);
    pl_scan_fini(&s);
}

static void variants_of_a_shape_are_bounded(void **state)
{
    (void)state;
    struct pl__cache *c = pl__cache_new();
    struct pl_scan s;
    char text[64];
    pl_scan_init(&s);
    for (unsigned i = 0; i < 500; i++) {
        snprintf(text, sizeof(text), "SELECT %u", i);
        pl_plan_unref(&put(c, &s, text)->pub);
    }
    assert_true(pl__cache_count(c) <= 64);
    pl__cache_free(c);
    pl_scan_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_text_gets_the_plan_of_another),
        cmocka_unit_test(values_of_literals_share_a_plan),
        cmocka_unit_test(literals_behind_a_list_keep_their_places),
        cmocka_unit_test(declared_types_are_part_of_the_key),
        cmocka_unit_test(strange_texts_are_planned_anew),
        cmocka_unit_test(the_cache_is_bounded_and_keeps_what_is_used),
        cmocka_unit_test(variants_of_a_shape_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
