/*
 * Settings: what is accepted and how it is shown, what undoes a change, what is reported.
 */
#include "frontend/settings_session.h"
#include "lib/test.h"
#include <strings.h>

static void set(struct fe_settings *s, const char *name, const char *value, bool local)
{
    struct err err;
    err_clear(&err);
    status st = fe_settings_set(s, name, value, local, &err);
    if (st != ST_OK)
        print_message("%s: %s\n", name, err.message);
    assert_int_equal(st, ST_OK);
}

static void refused(struct fe_settings *s, const char *name, const char *value, const char *state)
{
    struct err err;
    err_clear(&err);
    assert_int_not_equal(fe_settings_set(s, name, value, false, &err), ST_OK);
    assert_string_equal(err.sqlstate, state);
}

#define SHOWS(s, name, want) assert_string_equal(fe_settings_get(s, name), want)

static void values_are_shown_in_one_form(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"client_encoding", "utf8", "UTF8"},
        {"client_encoding", "'utf-8'", "UTF8"},
        {"client_encoding", "sql_ascii", "SQL_ASCII"},
        {"datestyle", "postgres", "Postgres, MDY"},
        {"DateStyle", "ISO, DMY", "ISO, DMY"},
        {"DateStyle", "ymd", "ISO, YMD"},
        {"DateStyle", "German", "German, DMY"},
        {"jit", "TRUE", "on"},
        {"jit", "0", "off"},
        {"statement_timeout", "2500", "2500ms"},
        {"statement_timeout", "5s", "5s"},
        {"statement_timeout", "60000", "1min"},
        {"statement_timeout", "0", "0"},
        {"extra_float_digits", "3", "3"},
        {"client_min_messages", "WARNING", "warning"},
        {"default_transaction_isolation", "REPEATABLE READ", "repeatable read"},
        {"TimeZone", "utc", "UTC"},
        {"application_name", "a\xc3\xa4", "a??"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fe_settings s;
        fe_settings_init(&s);
        set(&s, cases[i][0], cases[i][1], false);
        SHOWS(&s, cases[i][0], cases[i][2]);
        fe_settings_fini(&s);
    }
}

static void bad_values_and_names_are_told_apart(void **state)
{
    (void)state;
    struct fe_settings s;
    fe_settings_init(&s);
    refused(&s, "no_such_setting", "1", "42704");
    refused(&s, "client_encoding", "klingon", "22023");
    refused(&s, "DateStyle", "upside down", "22023");
    refused(&s, "TimeZone", "Nowhere/Land", "22023");
    refused(&s, "jit", "maybe", "22023");
    refused(&s, "extra_float_digits", "4", "22023");
    refused(&s, "statement_timeout", "-1", "22023");
    refused(&s, "statement_timeout", "9999999999999", "22023");
    refused(&s, "standard_conforming_strings", "off", "22023");
    refused(&s, "server_version", "99", "55P02");
    SHOWS(&s, "DateStyle", "ISO, MDY");
    fe_settings_fini(&s);
}

static void rollback_undoes_to_the_mark(void **state)
{
    (void)state;
    struct fe_settings s;
    fe_settings_init(&s);
    set(&s, "application_name", "one", false);
    unsigned mark = fe_settings_mark(&s);
    set(&s, "application_name", "two", false);
    set(&s, "DateStyle", "SQL", false);
    set(&s, "application_name", "three", true);
    fe_settings_rollback_to(&s, mark);
    SHOWS(&s, "application_name", "one");
    SHOWS(&s, "DateStyle", "ISO, MDY");
    assert_int_equal(s.style.date_style, PL_DATE_ISO);
    fe_settings_rollback_to(&s, 0);
    SHOWS(&s, "application_name", "");
    fe_settings_fini(&s);
}

static void commit_keeps_all_but_local_changes(void **state)
{
    (void)state;
    struct fe_settings s;
    fe_settings_init(&s);
    set(&s, "application_name", "kept", false);
    set(&s, "application_name", "local", true);
    set(&s, "jit", "on", true);
    set(&s, "bytea_output", "escape", true);
    set(&s, "bytea_output", "hex", false);
    SHOWS(&s, "application_name", "local");
    fe_settings_commit(&s);
    SHOWS(&s, "application_name", "kept");
    SHOWS(&s, "jit", "off");
    SHOWS(&s, "bytea_output", "hex");
    fe_settings_rollback_to(&s, 0);
    SHOWS(&s, "application_name", "kept");
    fe_settings_fini(&s);
}

static void reset_goes_back_to_the_start(void **state)
{
    (void)state;
    struct fe_settings s;
    struct err err;
    fe_settings_init(&s);
    assert_int_equal(fe_settings_start(&s, "application_name", "born", &err), ST_OK);
    set(&s, "application_name", "other", false);
    set(&s, "application_name", NULL, false);
    SHOWS(&s, "application_name", "born");
    set(&s, "application_name", "other", false);
    set(&s, "jit", "on", false);
    fe_settings_reset_all(&s);
    SHOWS(&s, "application_name", "born");
    SHOWS(&s, "jit", "off");
    fe_settings_commit(&s);
    fe_settings_fini(&s);
}

static unsigned reports(struct fe_settings *s, bool all)
{
    struct obuf o;
    unsigned n = 0;
    obuf_init(&o);
    fe_settings_report(s, all, &o);
    for (size_t at = 0; at < o.size; n++) {
        uint32_t length;
        assert_int_equal(o.data[at], 'S');
        memcpy(&length, o.data + at + 1, sizeof length);
        at += 1 + __builtin_bswap32(length);
        assert_true(at <= o.size);
    }
    obuf_fini(&o);
    return n;
}

static void only_what_differs_is_reported(void **state)
{
    (void)state;
    struct fe_settings s;
    fe_settings_init(&s);
    assert_int_equal(reports(&s, true), 13);
    assert_int_equal(reports(&s, false), 0);
    set(&s, "application_name", "x", false);
    set(&s, "jit", "on", false);
    assert_int_equal(reports(&s, false), 1);
    set(&s, "application_name", "x", false);
    assert_int_equal(reports(&s, false), 0);
    set(&s, "application_name", "y", false);
    fe_settings_rollback_to(&s, 3);
    assert_int_equal(reports(&s, false), 0);
    fe_settings_rollback_to(&s, 0);
    assert_int_equal(reports(&s, false), 1);
    fe_settings_fini(&s);
}

static void show_all_is_in_order_of_names(void **state)
{
    (void)state;
    struct fe_settings s;
    const char *value, *help, *name, *before = "";
    fe_settings_init(&s);
    for (unsigned i = 0; (name = fe_settings_at(&s, i, &value, &help)) != NULL; i++) {
        assert_true(strcasecmp(before, name) < 0);
        assert_true(strlen(help) > 0);
        before = name;
    }
    fe_settings_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_shown_in_one_form),
        cmocka_unit_test(bad_values_and_names_are_told_apart),
        cmocka_unit_test(rollback_undoes_to_the_mark),
        cmocka_unit_test(commit_keeps_all_but_local_changes),
        cmocka_unit_test(reset_goes_back_to_the_start),
        cmocka_unit_test(only_what_differs_is_reported),
        cmocka_unit_test(show_all_is_in_order_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
