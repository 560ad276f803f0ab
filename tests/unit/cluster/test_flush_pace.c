/* How much of a processor a flush takes: the rule, and that a pause ends when somebody waits. */
#include "lib/test.h"

#include "cluster/flush_pace.h"

#include <pthread.h>
#include <time.h>

#define BUDGET 1000000u

static unsigned share(uint64_t memory, unsigned running)
{
    struct cl_flush_need need = {.memory = memory, .budget = BUDGET, .running = running};
    return cl_flush_share(&need);
}

static void a_flush_takes_a_tenth_while_there_is_memory(void **state)
{
    (void)state;
    assert_int_equal(share(0, 1), CL_FLUSH_SHARE_LEAST);
    assert_int_equal(share(BUDGET / 4, 1), CL_FLUSH_SHARE_LEAST);
    assert_int_equal(share(0, 2), CL_FLUSH_SHARE_LEAST / 2);
    assert_int_equal(share(0, 1000), 1); /* never nothing */
}

static void it_takes_more_as_memory_fills_and_all_at_half(void **state)
{
    (void)state;
    for (unsigned running = 1; running <= 6; running++) {
        unsigned last = 0;
        for (uint64_t memory = 0; memory <= BUDGET; memory += BUDGET / 1000) {
            unsigned now = share(memory, running);
            assert_true(now >= last);
            assert_true(now - last <= 5 || last == 0); /* no jumps */
            assert_true(now >= 1 && now <= CL_FLUSH_SHARE_ALL);
            last = now;
        }
        assert_int_equal(share(BUDGET / 2, running), CL_FLUSH_SHARE_ALL);
        assert_int_equal(share(UINT64_MAX, running), CL_FLUSH_SHARE_ALL);
    }
    assert_int_equal(share(BUDGET / 4 + BUDGET / 8, 1), (100 + 1000) / 2);
}

static void it_takes_all_where_it_is_waited_for(void **state)
{
    (void)state;
    struct cl_flush_need need = {.budget = BUDGET, .running = 2, .waited_for = true};
    assert_int_equal(cl_flush_share(&need), CL_FLUSH_SHARE_ALL);
}

static double now_s(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* 20 ms of work at a thousandth of a core are followed by a pause of 20 s. */
static void *work_and_pause(void *arg)
{
    struct cl_flush_work w = {.pace = arg};
    cl_flush_pause(&w);
    double end = now_s(CLOCK_THREAD_CPUTIME_ID) + 0.02;
    while (now_s(CLOCK_THREAD_CPUTIME_ID) < end)
        continue;
    cl_flush_pause(&w);
    return NULL;
}

static void a_pause_ends_when_somebody_waits(void **state)
{
    (void)state;
    struct cl_flush_pace *p = cl_flush_pace_new();
    double start = now_s(CLOCK_MONOTONIC);
    pthread_t thread;
    cl_flush_pace_set(p, 1);
    assert_int_equal(pthread_create(&thread, NULL, work_and_pause, p), 0);
    cl_flush_pace_set(p, 2); /* still ten seconds, and the pause may not have begun */
    cl_flush_pace_set(p, CL_FLUSH_SHARE_ALL);
    pthread_join(thread, NULL);
    assert_true(now_s(CLOCK_MONOTONIC) - start < 5);
    cl_flush_pace_free(p);
}

static void work_is_followed_by_its_pause(void **state)
{
    (void)state;
    struct cl_flush_pace *p = cl_flush_pace_new();
    double start = now_s(CLOCK_MONOTONIC);
    cl_flush_pace_set(p, 200); /* 20 ms of work, 80 ms of pause */
    work_and_pause(p);
    assert_true(now_s(CLOCK_MONOTONIC) - start >= 0.095);
    cl_flush_pace_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flush_takes_a_tenth_while_there_is_memory),
        cmocka_unit_test(it_takes_more_as_memory_fills_and_all_at_half),
        cmocka_unit_test(it_takes_all_where_it_is_waited_for),
        cmocka_unit_test(a_pause_ends_when_somebody_waits),
        cmocka_unit_test(work_is_followed_by_its_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
