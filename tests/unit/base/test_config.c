/* Settings from file, environment and flags: which wins, and how a bad one is refused. */
#include "lib/test.h"

#include "base/config.h"
#include <unistd.h>

static const struct config_setting settings[] = {
    {.name = "log.batch_bytes", .type = CONFIG_SIZE, .def = "1MB", .min = 1024, .max = 1 << 30},
    {.name = "txn.limit", .type = CONFIG_TIME_US, .def = "5s"},
    {.name = "listen", .type = CONFIG_STRING, .def = "127.0.0.1:7432"},
    {.name = "attr.mode", .type = CONFIG_ENUM, .def = "delta", .choices = "delta|txn"},
    {.name = "log.keep_all", .type = CONFIG_BOOL, .def = "off"},
    {.name = "reactors", .type = CONFIG_INT, .def = "2", .min = 1, .max = 64},
    {.name = "auth.rule", .type = CONFIG_LIST, .def = ""},
};

struct fixture {
    struct config *c;
    struct err err;
    char path[64];
};

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){.c = config_new(settings, sizeof settings / sizeof settings[0])};
    snprintf(f.path, sizeof f.path, "/tmp/metadb-test-config-XXXXXX");
    close(mkstemp(f.path));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    config_free(f->c);
    unlink(f->path);
    unsetenv("METADB_LOG_BATCH_BYTES");
    unsetenv("METADB_LOG_BATCH_BYTE");
    unsetenv("METADB_FAULT");
    return 0;
}

static status load(struct fixture *f, const char *text)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return config_load_file(f->c, f->path, &f->err);
}

static void defaults_apply(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(config_int(f->c, "log.batch_bytes"), 1 << 20);
    assert_int_equal(config_int(f->c, "txn.limit"), 5000000);
    assert_string_equal(config_string(f->c, "listen"), "127.0.0.1:7432");
    assert_string_equal(config_string(f->c, "attr.mode"), "delta");
    assert_false(config_bool(f->c, "log.keep_all"));
}

static void later_sources_win(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(load(f, "reactors = 3\n[log]\nbatch_bytes = 2 MB ; inline\nkeep_all = on\n"
                             "[attr]\nmode=txn\n"),
                     ST_OK);
    assert_int_equal(config_int(f->c, "log.batch_bytes"), 2 << 20);
    assert_true(config_bool(f->c, "log.keep_all"));
    assert_string_equal(config_string(f->c, "attr.mode"), "txn");
    setenv("METADB_LOG_BATCH_BYTES", "3MB", 1);
    assert_int_equal(config_load_environment(f->c, &f->err), ST_OK);
    assert_int_equal(config_int(f->c, "log.batch_bytes"), 3 << 20);
    assert_int_equal(config_set(f->c, "log.batch_bytes", "4096", &f->err), ST_OK);
    assert_int_equal(config_int(f->c, "log.batch_bytes"), 4096);
    assert_int_equal(config_set(f->c, "log.batch_bytes=64kB", NULL, &f->err), ST_OK);
    assert_int_equal(config_int(f->c, "log.batch_bytes"), 65536);
    assert_int_equal(config_int(f->c, "reactors"), 3);
}

static void a_bad_value_is_named_and_changes_nothing(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *name, *value, *message;
    } cases[] = {
        {"log.batch_bytes", "1mb", "setting \"log.batch_bytes\": \"1mb\" is not a size"},
        {"log.batch_bytes", "", "setting \"log.batch_bytes\": \"\" is not a size"},
        {"log.batch_bytes", "100", "setting \"log.batch_bytes\": \"100\" is outside the range"},
        {"log.batch_bytes", "9223372036854775807kB", "setting \"log.batch_bytes\": \"9223"},
        {"txn.limit", "5h", "setting \"txn.limit\": \"5h\" is not a time"},
        {"attr.mode", "del", "setting \"attr.mode\": \"del\" is not one of delta|txn"},
        {"log.keep_all", "maybe", "setting \"log.keep_all\": \"maybe\" is not on or off"},
        {"reactors", "1.5", "setting \"reactors\": \"1.5\" is not a whole number"},
        {"no.such", "1", "unknown setting \"no.such\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(config_set(f->c, cases[i].name, cases[i].value, &f->err), ST_INVALID);
        assert_memory_equal(f->err.message, cases[i].message, strlen(cases[i].message));
    }
    defaults_apply(state);
    assert_int_equal(config_set(f->c, "reactors", NULL, &f->err), ST_INVALID);
}

static void file_errors_name_the_line(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(load(f, "reactors = 1\n[log]\nbatch_byte = 1MB\n"), ST_INVALID);
    assert_non_null(strstr(f->err.message, "\"log.batch_byte\""));
    assert_non_null(strstr(f->err.detail, "line 3"));
}

static void a_list_keeps_its_lines_and_their_places(void **state)
{
    struct fixture *f = *state;
    char place[80];
    const char *where;
    assert_null(config_list(f->c, "auth.rule", 0, &where));
    assert_int_equal(load(f, "[auth]\nrule = one\n; none\nrule = two three\n  four\n"), ST_OK);
    static const char *const lines[] = {"one", "two three", "four"};
    static const unsigned numbers[] = {2, 4, 5};
    for (unsigned i = 0; i < 3; i++) {
        snprintf(place, sizeof place, "%s:%u", f->path, numbers[i]);
        assert_string_equal(config_list(f->c, "auth.rule", i, &where), lines[i]);
        assert_string_equal(where, place);
    }
    assert_null(config_list(f->c, "auth.rule", 3, &where));
    /* A later source says it all anew. */
    assert_int_equal(config_set(f->c, "auth.rule", "five", &f->err), ST_OK);
    assert_int_equal(config_set(f->c, "auth.rule=six", NULL, &f->err), ST_OK);
    assert_string_equal(config_list(f->c, "auth.rule", 0, &where), "five");
    assert_string_equal(where, "command line");
    assert_string_equal(config_list(f->c, "auth.rule", 1, &where), "six");
    assert_null(config_list(f->c, "auth.rule", 2, &where));
}

static void a_line_that_is_nothing_is_refused(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(load(f, "reactors = 1\nwhat is this\n"), ST_INVALID);
    assert_non_null(strstr(f->err.message, "line 2"));
}

static void an_overlong_line_is_refused(void **state)
{
    struct fixture *f = *state;
    char text[400] = "listen = ";
    memset(text + strlen(text), 'x', 300);
    assert_int_equal(load(f, text), ST_INVALID);
    assert_non_null(strstr(f->err.message, "line over"));
}

static void a_value_goes_on_in_the_next_line(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(load(f, "listen = a\n   b\n\tc\n[log]\n  batch_bytes = 2MB\n"), ST_OK);
    assert_string_equal(config_string(f->c, "listen"), "a b c");
    assert_int_equal(config_int(f->c, "log.batch_bytes"), 2 << 20);
}

static void a_missing_file_is_not_found(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(config_load_file(f->c, "/nonexistent/x.conf", &f->err), ST_NOT_FOUND);
}

static void unknown_environment_is_refused_except_for_tests(void **state)
{
    struct fixture *f = *state;
    setenv("METADB_FAULT", "x=kill", 1);
    assert_int_equal(config_load_environment(f->c, &f->err), ST_OK);
    setenv("METADB_LOG_BATCH_BYTE", "1", 1);
    assert_int_equal(config_load_environment(f->c, &f->err), ST_INVALID);
    assert_non_null(strstr(f->err.message, "METADB_LOG_BATCH_BYTE"));
}

static void find_listen(void *arg, const struct config_setting *s, const char *value,
                        const char *source)
{
    if (strcmp(s->name, "listen") == 0)
        snprintf(arg, 64, "%s from %s", value, source);
}

static void each_tells_value_and_source(void **state)
{
    struct fixture *f = *state;
    char text[64] = "";
    config_each(f->c, find_listen, text);
    assert_string_equal(text, "127.0.0.1:7432 from default");
    assert_int_equal(config_set(f->c, "listen", "h:1", &f->err), ST_OK);
    config_each(f->c, find_listen, text);
    assert_string_equal(text, "h:1 from command line");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(defaults_apply),
        T(later_sources_win),
        T(a_bad_value_is_named_and_changes_nothing),
        T(file_errors_name_the_line),
        T(a_list_keeps_its_lines_and_their_places),
        T(a_line_that_is_nothing_is_refused),
        T(an_overlong_line_is_refused),
        T(a_value_goes_on_in_the_next_line),
        T(a_missing_file_is_not_found),
        T(unknown_environment_is_refused_except_for_tests),
        T(each_tells_value_and_source),
    };
    clearenv(); /* whoever runs the tests may have METADB_* of their own */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
