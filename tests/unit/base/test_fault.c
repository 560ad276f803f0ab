/* Fault points and coverage marks, with and without METADB_FAULTS. */
#include "lib/test.h"

#include "base/fault.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static int disarm(void **state)
{
    (void)state;
    fault_disarm();
    unsetenv("METADB_FAULT");
    return 0;
}

#ifdef METADB_FAULTS

static void unarmed_points_do_nothing(void **state)
{
    (void)state;
    assert_false(fault_point("store.put"));
    assert_false(fault_fired());
}

static void the_nth_hit_fails_once(void **state)
{
    (void)state;
    fault_arm("store.put", "error", 3);
    assert_false(fault_point("store.put"));
    assert_false(fault_point("store.get"));
    assert_false(fault_point("store.put"));
    assert_false(fault_fired());
    assert_true(fault_point("store.put"));
    assert_true(fault_fired());
    assert_false(fault_point("store.put"));
}

static void always_means_from_then_on(void **state)
{
    (void)state;
    fault_arm("store.put", "always", 2);
    assert_false(fault_point("store.put"));
    for (unsigned i = 0; i < 3; i++)
        assert_true(fault_point("store.put"));
}

static void while_means_as_long_as_its_file_is_there(void **state)
{
    (void)state;
    char path[] = "/tmp/metadb-fault-XXXXXX", action[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(action, sizeof action, "while-%s", path);
    fault_arm("disk", action, 2);
    assert_false(fault_point("disk"));
    assert_true(fault_point("disk"));
    assert_true(fault_point("disk"));
    unlink(path);
    assert_false(fault_point("disk"));
}

static void note_mark(void *arg, const char *name, uint64_t count)
{
    uint64_t *sum = arg;
    if (strcmp(name, "test.each") == 0)
        *sum += count;
}

static void marks_are_listed(void **state)
{
    (void)state;
    uint64_t sum = 0;
    MARK("test.each");
    MARK("test.each");
    mark_each(note_mark, &sum);
    assert_int_equal(sum, 2);
}

static void a_star_matches_a_family(void **state)
{
    (void)state;
    fault_arm("store.*", "error", 2);
    assert_false(fault_point("store.put"));
    assert_false(fault_point("log.sync"));
    assert_true(fault_point("store.get"));
}

/* Three calls of one operation: a sweep sees each of them fail once and then none. */
static void a_sweep_ends_when_nothing_fires(void **state)
{
    (void)state;
    unsigned nth = 1;
    for (;; nth++) {
        fault_arm("op.*", "error", nth);
        bool failed = fault_point("op.a") || fault_point("op.b") || fault_point("op.c");
        assert_int_equal(failed, fault_fired());
        if (!failed)
            break;
    }
    assert_int_equal(nth, 4);
}

static void environment_arms_several(void **state)
{
    (void)state;
    setenv("METADB_FAULT", "a=error:2,b.*=error", 1);
    fault_from_environment();
    assert_false(fault_point("a"));
    assert_true(fault_point("b.x"));
    assert_true(fault_point("a"));
}

static void kill_ends_the_process(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fault_arm("die", "kill", 1);
        fault_point("die");
        _exit(0);
    }
    int result;
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 137);
}

static void pause_returns_without_error(void **state)
{
    (void)state;
    fault_arm("slow", "pause-1", 1);
    assert_false(fault_point("slow"));
    assert_true(fault_fired());
}

static void *pass_held(void *arg)
{
    atomic_bool *passed = arg;
    assert_false(fault_point("held"));
    atomic_store(passed, true);
    return NULL;
}

static void hold_waits_until_all_is_disarmed(void **state)
{
    pthread_t thread;
    atomic_bool passed = false;
    (void)state;
    fault_arm("held", "hold", 1);
    assert_int_equal(pthread_create(&thread, NULL, pass_held, &passed), 0);
    while (!fault_fired())
        sched_yield();
    assert_false(atomic_load(&passed));
    fault_disarm();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(atomic_load(&passed));
}

static void marks_count(void **state)
{
    (void)state;
    assert_int_equal(mark_count("test.rare"), 0);
    MARK("test.rare");
    MARK("test.rare");
    assert_int_equal(mark_count("test.rare"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(unarmed_points_do_nothing, disarm),
        cmocka_unit_test_teardown(the_nth_hit_fails_once, disarm),
        cmocka_unit_test_teardown(hold_waits_until_all_is_disarmed, disarm),
        cmocka_unit_test_teardown(always_means_from_then_on, disarm),
        cmocka_unit_test_teardown(while_means_as_long_as_its_file_is_there, disarm),
        cmocka_unit_test_teardown(marks_are_listed, disarm),
        cmocka_unit_test_teardown(a_star_matches_a_family, disarm),
        cmocka_unit_test_teardown(a_sweep_ends_when_nothing_fires, disarm),
        cmocka_unit_test_teardown(environment_arms_several, disarm),
        cmocka_unit_test_teardown(kill_ends_the_process, disarm),
        cmocka_unit_test_teardown(pause_returns_without_error, disarm),
        cmocka_unit_test_teardown(marks_count, disarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void arming_has_no_effect(void **state)
{
    (void)state;
    fault_arm("x", "error", 1);
    assert_false(fault_point("x"));
    assert_false(fault_fired());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(arming_has_no_effect, disarm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
