/* The hybrid logical clock: stamps grow, whatever the wall clock does. */
#include "lib/test.h"

#include "base/hlc.h"

static void stamps_grow_while_the_wall_goes_back(void **state)
{
    (void)state;
    struct hlc c = {0};
    hlc_ts last = 0;
    for (int64_t now = 1000000; now > 0; now -= 100) {
        hlc_ts t = hlc_next(&c, now);
        assert_true(t > last);
        last = t;
    }
    assert_int_equal(hlc_unix_us(hlc_from_us(123)), 123);
}

static void stamps_follow_the_wall(void **state)
{
    (void)state;
    struct hlc c = {0};
    assert_true(hlc_next(&c, 5000) == hlc_from_us(5000));
    assert_true(hlc_next(&c, 5000) == hlc_from_us(5000) + 1);
    assert_true(hlc_next(&c, 6000) == hlc_from_us(6000));
}

static void more_than_a_microsecond_holds_carries(void **state)
{
    (void)state;
    struct hlc c = {0};
    hlc_ts last = 0;
    for (int i = 0; i < 3000; i++)
        last = hlc_next(&c, 7);
    assert_int_equal(hlc_unix_us(last), 7 + 2999 / 1024);
}

static void remote_beyond_the_bound_changes_nothing(void **state)
{
    (void)state;
    struct hlc c = {0};
    hlc_next(&c, 1000);
    hlc_ts before = c.last;
    assert_int_equal(hlc_observe(&c, hlc_from_us(1601), 1000, 600), ST_INVALID);
    assert_int_equal(hlc_observe(&c, UINT64_MAX, 1000, INT32_MAX), ST_INVALID);
    assert_true(c.last == before);
    assert_int_equal(hlc_observe(&c, hlc_from_us(1600), 1000, 600), ST_OK);
    assert_true(hlc_next(&c, 1000) > hlc_from_us(1600));
    assert_int_equal(hlc_observe(&c, hlc_from_us(10), 1000, 600), ST_OK);
    assert_true(c.last > hlc_from_us(1600));
}

static void raise_has_no_bound_and_never_lowers(void **state)
{
    (void)state;
    struct hlc c = {0};
    hlc_raise(&c, hlc_from_us(1LL << 50));
    hlc_raise(&c, 5);
    assert_true(hlc_next(&c, 1) == hlc_from_us(1LL << 50) + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stamps_grow_while_the_wall_goes_back),
        cmocka_unit_test(stamps_follow_the_wall),
        cmocka_unit_test(more_than_a_microsecond_holds_carries),
        cmocka_unit_test(remote_beyond_the_bound_changes_nothing),
        cmocka_unit_test(raise_has_no_bound_and_never_lowers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
