/* Status codes and errors: names, SQLSTATEs, text cut between characters. */
#include "lib/test.h"

#include "base/err.h"

static void every_status_has_name_state_and_text(void **state)
{
    (void)state;
    for (int i = 0; i < ST_COUNT; i++) {
        status st = (status)i;
        assert_memory_equal(status_name(st), "ST_", 3);
        assert_int_equal(strlen(status_sqlstate(st)), 5);
        assert_true(strlen(status_text(st)) > 0);
    }
    assert_string_equal(status_name(ST_CONFLICT), "ST_CONFLICT");
    assert_string_equal(status_sqlstate(ST_CONFLICT), "40001");
    assert_int_equal(status_retry(ST_CONFLICT), RETRY_TXN);
    assert_int_equal(status_retry(ST_NOT_LEADER), RETRY_ELSEWHERE);
}

static void unknown_status_reads_as_internal(void **state)
{
    (void)state;
    assert_string_equal(status_sqlstate((status)12345), "XX000");
    assert_string_equal(status_name((status)-1), "ST_INTERNAL");
}

static void err_set_clears_what_was_there(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(err_set(&e, ST_EXISTS, "key %d", 7), ST_EXISTS);
    err_detail(&e, "detail");
    err_where(&e, "public", "meta", NULL, "meta_pkey");
    assert_string_equal(e.sqlstate, "23505");
    assert_string_equal(e.message, "key 7");
    assert_string_equal(e.constraint, "meta_pkey");
    assert_string_equal(e.column, "");
    assert_int_equal(err_set_state(&e, ST_INVALID, "22P02", "bad"), ST_INVALID);
    assert_string_equal(e.sqlstate, "22P02");
    assert_string_equal(e.detail, "");
    assert_string_equal(e.table, "");
    assert_int_equal(err_set(NULL, ST_IO, "nobody listens"), ST_IO);
}

static void long_text_is_cut_between_characters(void **state)
{
    (void)state;
    struct err e = {0};
    char text[sizeof e.message + 8];
    /* Capacity is 511 bytes: 510 letters, then a three-byte character that only half fits. */
    memset(text, 'a', 510);
    memcpy(text + 510, "\xE2\x82\xAC", 4);
    err_set(&e, ST_INVALID, "%s", text);
    assert_int_equal(strlen(e.message), 510);
    /* Two letters less, and it fits exactly. */
    memcpy(text + 508, "\xE2\x82\xAC", 4);
    err_set(&e, ST_INVALID, "%s", text);
    assert_int_equal(strlen(e.message), 511);
    memset(e.schema, 'x', sizeof e.schema);
    err_where(&e, text, NULL, NULL, NULL);
    assert_int_equal(strlen(e.schema), sizeof e.schema - 1);
}

static void default_fills_only_an_empty_error(void **state)
{
    (void)state;
    struct err e = {0};
    err_default(&e, ST_DISK_FULL);
    assert_string_equal(e.sqlstate, "53100");
    assert_string_equal(e.message, "disk full");
    err_default(&e, ST_IO);
    assert_string_equal(e.sqlstate, "53100");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_name_state_and_text),
        cmocka_unit_test(unknown_status_reads_as_internal),
        cmocka_unit_test(err_set_clears_what_was_there),
        cmocka_unit_test(long_text_is_cut_between_characters),
        cmocka_unit_test(default_fills_only_an_empty_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
