#include "lib/test.h"

#include "base/compiler.h"
#include "base/decimal.h"
#include <inttypes.h>
#include <stdio.h>

static void check(int64_t v)
{
    char have[DECIMAL_MAX + 1], want[32];
    size_t n = decimal_put(have, v);
    assert_in_range(n, 1, DECIMAL_MAX);
    have[n] = '\0';
    snprintf(want, sizeof want, "%" PRId64, v);
    assert_string_equal(have, want);
}

static void numbers_are_as_printf_writes_them(void **state)
{
    (void)state;
    check(INT64_MIN);
    check(INT64_MAX);
    for (int64_t v = -12345; v <= 12345; v++)
        check(v);
    for (int64_t v = 1; v <= INT64_MAX / 10; v *= 10) {
        check(v - 1);
        check(v);
        check(-v);
        check(v * 9 + 7);
    }
}

static void unsigned_numbers_reach_their_end(void **state)
{
    (void)state;
    char have[DECIMAL_MAX];
    assert_int_equal(decimal_put_unsigned(have, UINT64_MAX), 20);
    assert_memory_equal(have, "18446744073709551615", 20);
}

static void padded_numbers_have_their_width(void **state)
{
    (void)state;
    char have[8] = "xxxxxxx";
    decimal_put_padded(have, 7, 1);
    assert_memory_equal(have, "7x", 2);
    decimal_put_padded(have, 7, 2);
    assert_memory_equal(have, "07x", 3);
    decimal_put_padded(have, 1234, 6);
    assert_memory_equal(have, "001234x", 7);
    decimal_put_padded(have, 123, 2);
    assert_memory_equal(have, "231", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_as_printf_writes_them),
        cmocka_unit_test(unsigned_numbers_reach_their_end),
        cmocka_unit_test(padded_numbers_have_their_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
