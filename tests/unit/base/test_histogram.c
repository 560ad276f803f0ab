/* Log-scale histograms: percentiles beside exact ones, merging, extreme values. */
#include "lib/test.h"

#include "base/histogram.h"

static uint64_t seed = 42;

static uint64_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

#define N 20000

/* Against the exact percentile of the same samples: 1/32 relative error plus one. */
static void compare_with_exact(uint64_t (*sample)(void))
{
    static uint64_t values[N];
    static struct histogram h;
    histogram_init(&h);
    for (size_t i = 0; i < N; i++) {
        values[i] = sample();
        histogram_add(&h, values[i]);
    }
    qsort(values, N, sizeof values[0], by_value);
    static const double ps[] = {1, 10, 25, 50, 75, 90, 99, 99.9};
    for (size_t i = 0; i < sizeof ps / sizeof ps[0]; i++) {
        size_t rank = (size_t)(ps[i] / 100 * N);
        double exact = (double)values[rank > 0 ? rank - 1 : 0];
        double got = (double)histogram_percentile(&h, ps[i]);
        double error = got > exact ? got - exact : exact - got;
        assert_true(error <= exact / 32 + 1);
    }
    assert_true(histogram_percentile(&h, 100) == values[N - 1]);
}

static uint64_t small(void)
{
    return next() % 20;
}

static uint64_t uniform(void)
{
    return next() % 1000000;
}

static uint64_t spread(void)
{
    return next() >> (next() % 60);
}

static void percentiles_are_close_to_exact(void **state)
{
    (void)state;
    compare_with_exact(small);
    compare_with_exact(uniform);
    compare_with_exact(spread);
}

static void percentiles_are_interpolated(void **state)
{
    (void)state;
    static struct histogram h;
    histogram_init(&h);
    /* One bucket holds 1024 to 1055. */
    for (uint64_t v = 1024; v < 1056; v++)
        histogram_add(&h, v);
    assert_in_range(histogram_percentile(&h, 25), 1030, 1033);
    assert_in_range(histogram_percentile(&h, 50), 1038, 1041);
    assert_in_range(histogram_percentile(&h, 75), 1046, 1049);
}

static void empty_and_extreme_values_are_safe(void **state)
{
    (void)state;
    static struct histogram h;
    histogram_init(&h);
    assert_int_equal(histogram_percentile(&h, 50), 0);
    assert_true(histogram_mean(&h) == 0.0);
    histogram_add(&h, 0);
    histogram_add(&h, UINT64_MAX);
    assert_int_equal(histogram_percentile(&h, 0), 0);
    assert_true(histogram_percentile(&h, 100) == UINT64_MAX);
    assert_true(histogram_percentile(&h, 99) >= UINT64_MAX / 32 * 31);
}

static void merge_adds_up(void **state)
{
    (void)state;
    static struct histogram a, b;
    histogram_init(&a);
    histogram_init(&b);
    for (uint64_t i = 1; i <= 100; i++)
        histogram_add(i % 2 ? &a : &b, i);
    histogram_merge(&a, &b);
    assert_int_equal(a.count, 100);
    assert_int_equal(a.sum, 5050);
    assert_int_equal(a.max, 100);
    assert_true(histogram_mean(&a) == 50.5);
    assert_in_range(histogram_percentile(&a, 50), 49, 52);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_close_to_exact),
        cmocka_unit_test(percentiles_are_interpolated),
        cmocka_unit_test(empty_and_extreme_values_are_safe),
        cmocka_unit_test(merge_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
