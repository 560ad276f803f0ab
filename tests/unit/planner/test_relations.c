/*
 * tests/unit/planner/test_relations.c — catalogue queries as clients send them, and what they get.
 *
 * The statements and their answers are text: tests/data/relations/NAME.txt. A block is "== title",
 * the statement, "----", then one line of columns (name:type) and a line a row (fields joined by
 * '|', NULL is ∅), or one line "error SQLSTATE[@position] message". METADB_TEST_REWRITE=1 writes
 * the answers anew; the diff is the review. A title that ends in "(columns)" is of a whole
 * catalogue that grows with the product: its rows are left out.
 */
#include "planner/relations/relations.h"
#include "planner/timezone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#ifndef DATA_DIR
#error "DATA_DIR is the folder of the data files"
#endif

/* ---- a session without a server ---- */

static const char *setting(void *arg, const char *name)
{
    UNUSED(arg);
    static const char *const values[][2] = {
        {"server_version", "15.99"}, {"TimeZone", "UTC"}, {"search_path", "public"}};
    for (unsigned i = 0; i < ARRAY_LEN(values); i++)
        if (strcasecmp(values[i][0], name) == 0)
            return values[i][1];
    return NULL;
}

struct session {
    struct pl_style style;
    struct pl_context ctx;
    struct obuf *out;
    const atomic_bool *cancel;
    unsigned columns;
};

static void session_init(struct session *s, struct obuf *out)
{
    s->style = (struct pl_style){.zone = pl_zone_utc(), .date_style = PL_DATE_ISO};
    s->ctx = (struct pl_context){.ns = 1,
                                 .now = 700000000000000,
                                 .clock_now = 700000000000000,
                                 .style = &s->style,
                                 .user = "app",
                                 .database = "metadb",
                                 .application_name = "test",
                                 .backend_pid = 4711,
                                 .setting = setting};
    s->out = out;
    s->cancel = NULL;
}

static void put(struct obuf *o, const char *text)
{
    obuf_put(o, text, strlen(text));
}

static void on_row(void *arg, const struct pl_value *values)
{
    struct session *s = arg;
    for (unsigned i = 0; i < s->columns; i++) {
        if (i)
            put(s->out, "|");
        if (values[i].null)
            put(s->out, "∅");
        else
            pl_value_to_text(&values[i], &s->style, s->out);
    }
    put(s->out, "\n");
}

static void put_error(struct obuf *o, const struct err *err)
{
    char line[700];
    if (err->position)
        (void)snprintf(line, sizeof(line), "error %s@%u %s\n", err->sqlstate, err->position,
                       err->message);
    else
        (void)snprintf(line, sizeof(line), "error %s %s\n", err->sqlstate, err->message);
    put(o, line);
}

/* The answer to one statement, as the data files hold it. Parameters are text. */
static status answer(struct session *s, const char *sql, const struct pl_value *params,
                     unsigned count)
{
    struct arena a;
    struct err err = {0};
    struct catalog_query *q;
    struct catalog_shape shape;
    uint32_t types[8] = {0};
    arena_init(&a, 4096);
    for (unsigned i = 0; i < count; i++)
        types[i] = params[i].oid;
    status st = pl_catalog_prepare(NULL, bytes_str(sql), types, count, &a, &q, &shape, &err);
    if (st == ST_OK) {
        for (unsigned i = 0; i < shape.column_count; i++) {
            bytes type = rel_type_format(&a, shape.columns[i].oid, -1);
            char line[200];
            (void)snprintf(line, sizeof(line), "%s%s:%.*s", i ? ", " : "", shape.columns[i].name,
                           (int)type.size, (const char *)type.data);
            put(s->out, line);
        }
        put(s->out, "\n");
        s->columns = shape.column_count;
        struct catalog_snapshot *snap = NULL;
        st = pl_catalog_run(q, snap, params, count, &s->ctx, s->cancel, &a, on_row, s, &err);
        pl_catalog_query_free(q);
    }
    if (st != ST_OK) {
        assert_int_equal(st, err.code);
        put_error(s->out, &err);
    }
    arena_fini(&a);
    return st;
}

/* ---- data files ---- */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    struct obuf o;
    obuf_init(&o);
    int ch;
    while ((ch = fgetc(f)) != EOF)
        obuf_u8(&o, (uint8_t)ch);
    obuf_u8(&o, 0);
    assert_int_equal(fclose(f), 0);
    return (char *)o.data;
}

/* Up to and without the line that starts with WHAT; the end if there is none. */
static char *until(char *from, const char *what)
{
    if (strncmp(from, what, strlen(what)) == 0)
        return from;
    char *hit = from;
    while ((hit = strchr(hit, '\n')) != NULL) {
        hit++;
        if (strncmp(hit, what, strlen(what)) == 0)
            return hit;
    }
    return from + strlen(from);
}

static unsigned block(struct session *s, char *text, struct obuf *rewritten)
{
    char *title_end = strchr(text, '\n');
    char *sql = title_end + 1, *line = until(sql, "----\n");
    assert_true(*line);
    char *expected = line + 5, *next = until(expected, "== ");
    bytes statement = bytes_make(sql, (size_t)(line - sql));
    bytes wanted = bytes_make(expected, (size_t)(next - expected));
    while (wanted.size && wanted.data[wanted.size - 1] == '\n')
        wanted.size--;

    struct obuf got;
    obuf_init(&got);
    s->out = &got;
    char *copy = strndup(sql, statement.size);
    (void)answer(s, copy, NULL, 0);
    free(copy);
    const uint8_t *first_end = memchr(got.data, '\n', got.size);
    if (memmem(text, (size_t)(title_end - text), "(columns)", 9) && first_end)
        got.size = (size_t)(first_end - got.data);
    while (got.size && got.data[got.size - 1] == '\n')
        got.size--;
    obuf_put(rewritten, text, (size_t)(expected - text));
    obuf_put(rewritten, got.data, got.size);
    put(rewritten, "\n\n");
    unsigned wrong = !bytes_eq(wanted, bytes_make(got.data, got.size));
    if (wrong && !getenv("METADB_TEST_REWRITE"))
        print_error("%.*s\nexpected:\n%.*s\ngot:\n%.*s\n\n", (int)(title_end - text), text,
                    (int)wanted.size, (const char *)wanted.data, (int)got.size,
                    (const char *)got.data);
    obuf_fini(&got);
    return wrong;
}

static void run_file(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s.txt", DATA_DIR, name);
    char *text = read_file(path);
    struct session s;
    struct obuf rewritten;
    session_init(&s, NULL);
    obuf_init(&rewritten);
    char *first = until(text, "== ");
    obuf_put(&rewritten, text, (size_t)(first - text));
    unsigned wrong = 0, blocks = 0;
    for (char *at = first; *at; at = until(strchr(at, '\n') + 1, "== "), blocks++)
        wrong += block(&s, at, &rewritten);
    if (getenv("METADB_TEST_REWRITE")) {
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(rewritten.data, 1, rewritten.size, f), rewritten.size);
        assert_int_equal(fclose(f), 0);
        wrong = 0;
    }
    obuf_fini(&rewritten);
    free(text);
    assert_true(blocks > 0);
    assert_int_equal(wrong, 0);
}

static void psql_meta_commands_get_their_shapes(void **state)
{
    UNUSED(state);
    run_file("psql");
}
static void drivers_and_tools_get_their_shapes(void **state)
{
    UNUSED(state);
    run_file("drivers");
}
static void expressions_follow_postgres(void **state)
{
    UNUSED(state);
    run_file("expressions");
}
static void functions_follow_postgres(void **state)
{
    UNUSED(state);
    run_file("functions");
}
static void errors_name_what_is_wrong(void **state)
{
    UNUSED(state);
    run_file("errors");
}

/* ---- what text cannot say ---- */

static void no_two_types_share_an_oid(void **state)
{
    UNUSED(state);
    unsigned count;
    const struct rel_type *t = rel_types(&count);
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = i + 1; k < count; k++) {
            assert_int_not_equal(t[i].oid, t[k].oid);
            assert_int_not_equal(t[i].oid, t[k].array);
            assert_true(t[i].array == 0 || (t[i].array != t[k].oid && t[i].array != t[k].array));
            assert_string_not_equal(t[i].name, t[k].name);
        }
}

static void no_two_relations_share_an_oid(void **state)
{
    UNUSED(state);
    for (unsigned i = 0; i < rel_count(); i++)
        for (unsigned k = i + 1; k < rel_count(); k++)
            assert_int_not_equal(rel_at(i)->oid, rel_at(k)->oid);
}

static void no_two_functions_share_an_oid(void **state)
{
    UNUSED(state);
    for (unsigned i = 0; rel_function_at(i); i++)
        for (unsigned k = i + 1; rel_function_at(k); k++)
            assert_int_not_equal(rel_function_oid(i), rel_function_oid(k));
}

/* Every relation without rows of its own source too: columns and generator agree. */
static void every_relation_can_be_read_whole(void **state)
{
    UNUSED(state);
    struct session s;
    struct obuf o;
    obuf_init(&o);
    session_init(&s, &o);
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        char sql[200];
        if (r->table)
            continue;
        (void)snprintf(sql, sizeof(sql), "SELECT * FROM %s.%s", r->schema, r->name);
        obuf_reset(&o);
        status st = answer(&s, sql, NULL, 0);
        if (st != ST_OK)
            print_error("%s: %.*s\n", sql, (int)o.size, (const char *)o.data);
        assert_int_equal(st, ST_OK);
    }
    obuf_fini(&o);
}

static void parameters_take_the_type_of_the_other_side(void **state)
{
    UNUSED(state);
    struct arena a;
    struct err err = {0};
    struct catalog_query *q;
    struct catalog_shape shape;
    arena_init(&a, 4096);
    const char *sql = "SELECT relname FROM pg_class WHERE oid = $1 AND relname = $2 AND relkind = "
                      "ANY($3) AND relnatts > $4";
    assert_int_equal(pl_catalog_prepare(NULL, bytes_str(sql), NULL, 0, &a, &q, &shape, &err),
                     ST_OK);
    assert_int_equal(shape.param_count, 4);
    assert_int_equal(shape.param_types[0], OID_OID);
    assert_int_equal(shape.param_types[1], OID_NAME);
    assert_int_equal(shape.param_types[2], OID_TEXT_ARRAY);
    assert_int_equal(shape.param_types[3], OID_INT2);
    pl_catalog_query_free(q);
    arena_fini(&a);
}

static void parameters_reach_the_query(void **state)
{
    UNUSED(state);
    struct session s;
    struct obuf o;
    obuf_init(&o);
    session_init(&s, &o);
    const struct pl_value name = {.oid = OID_TEXT, .b = BYTES_LIT("pg_class")};
    assert_int_equal(
        answer(&s, "SELECT oid, relname FROM pg_class WHERE oid = $1::regclass", &name, 1), ST_OK);
    obuf_u8(&o, 0);
    assert_string_equal((char *)o.data, "oid:oid, relname:name\n1259|pg_class\n");
    obuf_reset(&o);
    const struct pl_value items[] = {{.oid = OID_OID, .i = 1259}, {.oid = OID_OID, .i = 1247}};
    const struct pl_value list = {.oid = OID_OID_ARRAY, .array = {items, 2}};
    assert_int_equal(
        answer(&s, "SELECT relname FROM pg_class WHERE oid = ANY($1) ORDER BY 1", &list, 1), ST_OK);
    obuf_u8(&o, 0);
    assert_string_equal((char *)o.data, "relname:name\npg_class\npg_type\n");
    obuf_fini(&o);
}

static void endless_queries_are_stopped(void **state)
{
    UNUSED(state);
    struct session s;
    struct obuf o;
    obuf_init(&o);
    session_init(&s, &o);
    const char *sql =
        "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c, pg_attribute d";
    assert_int_equal(answer(&s, sql, NULL, 0), ST_LIMIT);
    obuf_fini(&o);
}

static void greedy_queries_are_stopped(void **state)
{
    UNUSED(state);
    struct session s;
    struct obuf o;
    obuf_init(&o);
    session_init(&s, &o);
    const char *sql = "SELECT x FROM (SELECT repeat('x', 100000) || a.attname || b.attname AS x "
                      "FROM pg_attribute a, pg_attribute b) q ORDER BY x";
    assert_int_equal(answer(&s, sql, NULL, 0), ST_NO_MEMORY);
    obuf_fini(&o);
}

static void long_results_are_stopped(void **state)
{
    UNUSED(state);
    struct session s;
    struct obuf o;
    obuf_init(&o);
    session_init(&s, &o);
    assert_int_equal(answer(&s, "SELECT * FROM generate_series(1, 1000000000)", NULL, 0), ST_LIMIT);
    const char *sql = "SELECT a.*, b.*, c.* FROM pg_type a, pg_type b, pg_type c";
    assert_int_equal(answer(&s, sql, NULL, 0), ST_LIMIT);
    obuf_fini(&o);
}

static void cancelled_query_ends(void **state)
{
    UNUSED(state);
    struct session s;
    struct obuf o;
    atomic_bool cancel = true;
    obuf_init(&o);
    session_init(&s, &o);
    s.cancel = &cancel;
    assert_int_equal(answer(&s, "SELECT * FROM generate_series(1, 1000000000)", NULL, 0),
                     ST_CANCELLED);
    assert_int_equal(
        answer(&s, "SELECT count(*) FROM pg_attribute a, pg_attribute b, pg_attribute c", NULL, 0),
        ST_CANCELLED);
    obuf_fini(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_two_types_share_an_oid),
        cmocka_unit_test(no_two_relations_share_an_oid),
        cmocka_unit_test(no_two_functions_share_an_oid),
        cmocka_unit_test(every_relation_can_be_read_whole),
        cmocka_unit_test(psql_meta_commands_get_their_shapes),
        cmocka_unit_test(drivers_and_tools_get_their_shapes),
        cmocka_unit_test(expressions_follow_postgres),
        cmocka_unit_test(functions_follow_postgres),
        cmocka_unit_test(errors_name_what_is_wrong),
        cmocka_unit_test(parameters_take_the_type_of_the_other_side),
        cmocka_unit_test(parameters_reach_the_query),
        cmocka_unit_test(endless_queries_are_stopped),
        cmocka_unit_test(greedy_queries_are_stopped),
        cmocka_unit_test(long_results_are_stopped),
        cmocka_unit_test(cancelled_query_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
