/* The event log: one line per event, also for hostile or overlong text. */
#include "lib/test.h"

#include "base/log.h"
#include <fcntl.h>
#include <unistd.h>

static int saved_stderr;
static int capture;

static int redirect(void **state)
{
    (void)state;
    char path[] = "/tmp/metadb-test-log-XXXXXX";
    capture = mkstemp(path);
    unlink(path);
    saved_stderr = dup(STDERR_FILENO);
    dup2(capture, STDERR_FILENO);
    return 0;
}

static int restore(void **state)
{
    (void)state;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(capture);
    log_set_level(LOG_LEVEL_INFO);
    return 0;
}

static const char *captured(void)
{
    static char text[8192];
    ssize_t n = pread(capture, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void a_line_has_time_level_event_and_fields(void **state)
{
    (void)state;
    LOG_WARN("raft.append_rejected", LOG_U64("shard", 7), LOG_I64("delta", -3),
             LOG_STR("why", "gap"));
    const char *line = captured();
    assert_int_equal(line[4], '-');
    assert_int_equal(line[10], 'T');
    assert_int_equal(line[26], 'Z');
    assert_string_equal(line + 27, " WARN raft.append_rejected shard=7 delta=-3 why=\"gap\"\n");
}

static void hostile_text_stays_on_one_line(void **state)
{
    (void)state;
    LOG_ERROR("x.y", LOG_BYTES("b", bytes_make("a\"\\\n\x1b", 5)), LOG_STR("null", NULL));
    assert_string_equal(captured() + 27, " ERROR x.y b=\"a\\\"\\\\\\n\\x1b\" null=\"\"\n");
}

static void a_long_line_is_cut_with_its_newline(void **state)
{
    (void)state;
    char text[4096];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    LOG_INFO("long.line", LOG_STR("text", text));
    const char *line = captured();
    assert_int_equal(strlen(line), 2048);
    assert_int_equal(line[2047], '\n');
}

static void lower_levels_are_silent(void **state)
{
    (void)state;
    enum log_level level;
    LOG_DEBUG("not.shown");
    assert_string_equal(captured(), "");
    assert_true(log_parse_level("debug", &level));
    assert_false(log_parse_level("loud", &level));
    log_set_level(level);
    LOG_DEBUG("shown");
    assert_string_equal(captured() + 27, " DEBUG shown\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_time_level_event_and_fields, redirect, restore),
        cmocka_unit_test_setup_teardown(hostile_text_stays_on_one_line, redirect, restore),
        cmocka_unit_test_setup_teardown(a_long_line_is_cut_with_its_newline, redirect, restore),
        cmocka_unit_test_setup_teardown(lower_levels_are_silent, redirect, restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
