/* The event loop: order of hooks in a turn, watchers that go while they run. */
#include "lib/test.h"

#include "base/loop.h"
#include <signal.h>
#include <unistd.h>

struct fixture {
    struct loop *l;
    char trace[64];
    struct loop_turn *turn[3];
    struct loop_timer *timer;
    struct loop_io *io;
    int pipe[2];
    unsigned count;
};

static struct fixture f;

static int setup(void **state)
{
    (void)state;
    f = (struct fixture){.l = loop_new()};
    return pipe(f.pipe);
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        loop_turn_free(f.turn[i]);
    loop_timer_free(f.timer);
    loop_io_free(f.io);
    loop_free(f.l);
    close(f.pipe[0]);
    close(f.pipe[1]);
    return 0;
}

static void trace(const char *letter)
{
    strcat(f.trace, letter);
}

static void turn_a(void *arg)
{
    (void)arg;
    trace("a");
}

static void turn_b_stops(void *arg)
{
    (void)arg;
    trace("b");
    loop_stop(f.l);
}

static void stop_now(void *arg)
{
    (void)arg;
    trace("t");
    loop_stop(f.l);
}

static void on_readable(void *arg, int events)
{
    (void)arg;
    char c;
    assert_int_equal(events, LOOP_READ);
    assert_int_equal(read(f.pipe[0], &c, 1), 1);
    trace("r");
    loop_turn_free(f.turn[0]);
    f.turn[0] = loop_turn_new(f.l, turn_b_stops, NULL);
}

static void hooks_run_after_io_in_order(void **state)
{
    (void)state;
    assert_int_equal(write(f.pipe[1], "xy", 2), 2);
    f.io = loop_io_new(f.l, f.pipe[0], on_readable, NULL);
    loop_io_set(f.io, LOOP_READ);
    f.turn[0] = loop_turn_new(f.l, turn_a, NULL);
    f.turn[1] = loop_turn_new(f.l, turn_a, NULL);
    loop_run(f.l);
    /* First turn: both hooks. Then one byte, and the new hook behind the old one stops. */
    assert_string_equal(f.trace, "aarab");
}

static void free_the_next(void *arg)
{
    (void)arg;
    trace("x");
    loop_turn_free(f.turn[1]);
    f.turn[1] = NULL;
}

static void a_hook_may_free_the_one_behind_it(void **state)
{
    (void)state;
    f.turn[0] = loop_turn_new(f.l, free_the_next, NULL);
    f.turn[1] = loop_turn_new(f.l, turn_a, NULL);
    f.turn[2] = loop_turn_new(f.l, turn_b_stops, NULL);
    loop_run(f.l);
    assert_string_equal(f.trace, "xb");
}

static void count_to_five(void *arg)
{
    (void)arg;
    if (++f.count == 5)
        loop_stop(f.l);
    else
        loop_again(f.l);
}

static void again_makes_another_turn_at_once(void **state)
{
    (void)state;
    f.turn[0] = loop_turn_new(f.l, count_to_five, NULL);
    loop_run(f.l);
    assert_int_equal(f.count, 5);
}

static void a_timer_is_never_early(void **state)
{
    (void)state;
    uint64_t before = loop_now_us(f.l);
    f.timer = loop_timer_new(f.l, stop_now, NULL);
    loop_timer_start(f.timer, 3000);
    loop_run(f.l);
    assert_true(loop_now_us(f.l) - before >= 3000);
    assert_string_equal(f.trace, "t");
}

static void rearm(void *arg)
{
    (void)arg;
    trace("r");
    if (strlen(f.trace) == 3)
        loop_stop(f.l);
    else
        loop_timer_start(f.timer, 0);
}

static void a_timer_can_be_rearmed_inside_itself(void **state)
{
    (void)state;
    f.timer = loop_timer_new(f.l, rearm, NULL);
    loop_timer_start(f.timer, 0);
    loop_run(f.l);
    assert_string_equal(f.trace, "rrr");
}

static void free_io(void *arg, int events)
{
    (void)arg;
    (void)events;
    trace("w");
    loop_io_free(f.io);
    f.io = NULL;
    loop_stop(f.l);
}

static void an_io_freed_inside_its_callback_is_not_called_again(void **state)
{
    (void)state;
    f.io = loop_io_new(f.l, f.pipe[1], free_io, NULL);
    loop_io_set(f.io, LOOP_READ | LOOP_WRITE);
    loop_io_set(f.io, 0);
    loop_io_set(f.io, LOOP_WRITE);
    loop_run(f.l);
    f.timer = loop_timer_new(f.l, stop_now, NULL);
    loop_timer_start(f.timer, 1000);
    loop_run(f.l);
    assert_string_equal(f.trace, "wt");
}

static void on_term(void *arg, int signo)
{
    (void)arg;
    assert_int_equal(signo, SIGTERM);
    trace("s");
    loop_stop(f.l);
}

static void a_signal_reaches_the_loop(void **state)
{
    (void)state;
    loop_on_signal(f.l, SIGTERM, on_term, NULL);
    raise(SIGTERM);
    loop_run(f.l);
    assert_string_equal(f.trace, "s");
}

static void a_broken_pipe_is_an_error_not_a_death(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe(p), 0);
    close(p[0]);
    assert_int_equal(write(p[1], "x", 1), -1);
    close(p[1]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(hooks_run_after_io_in_order),
        T(a_hook_may_free_the_one_behind_it),
        T(again_makes_another_turn_at_once),
        T(a_timer_is_never_early),
        T(a_timer_can_be_rearmed_inside_itself),
        T(an_io_freed_inside_its_callback_is_not_called_again),
        T(a_signal_reaches_the_loop),
        T(a_broken_pipe_is_an_error_not_a_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
