/* RCU: a reader never sees released memory, and waiting waits for readers. */
#include "lib/test.h"

#include "base/compiler.h"
#include "base/rcu.h"
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define READERS 3
#define VERSIONS 5000

struct version {
    unsigned number, copy;
};

static struct version *_Atomic current;
static _Atomic bool stop;
static _Atomic unsigned freed;

static void free_version(void *arg)
{
    struct version *v = arg;
    /* A reader that still held it would see the two numbers differ, or ASan the late read. */
    v->copy = 0;
    free(v);
    atomic_fetch_add(&freed, 1);
}

static void *read_versions(void *arg)
{
    (void)arg;
    unsigned last = 0;
    rcu_thread_register();
    while (!atomic_load(&stop)) {
        rcu_online();
        for (unsigned i = 0; i < 100; i++) {
            struct version *v = rcu_read(&current);
            assert_int_equal(v->number, v->copy);
            assert_true(v->number >= last);
            last = v->number;
            rcu_quiescent();
        }
        rcu_offline();
    }
    rcu_thread_unregister();
    return NULL;
}

static struct version *version_new(unsigned number)
{
    struct version *v = malloc(sizeof *v);
    assert_non_null(v);
    *v = (struct version){number, number};
    return v;
}

static void a_reader_never_sees_released_memory(void **state)
{
    (void)state;
    pthread_t threads[READERS];
    atomic_store(&freed, 0);
    atomic_store(&stop, false);
    rcu_thread_register();
    rcu_publish(&current, version_new(1));
    for (unsigned i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_versions, NULL), 0);
    for (unsigned n = 2; n <= VERSIONS; n++) {
        struct version *old = rcu_read(&current);
        rcu_publish(&current, version_new(n));
        rcu_defer(free_version, old);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);
    rcu_barrier_all();
    assert_int_equal(atomic_load(&freed), VERSIONS - 1);
    free(rcu_read(&current));
    rcu_thread_unregister();
}

static _Atomic int phase;

static void *hold_a_section(void *arg)
{
    struct version *v;
    (void)arg;
    rcu_thread_register();
    rcu_online();
    v = rcu_read(&current);
    atomic_store(&phase, 1);
    while (atomic_load(&phase) < 2)
        sched_yield();
    assert_int_equal(v->number, 1);
    atomic_store(&phase, 3);
    rcu_offline();
    rcu_thread_unregister();
    return NULL;
}

/* The writer may free only after rcu_wait, and rcu_wait may return only after phase 3. */
static void wait_returns_after_the_reader_moved_on(void **state)
{
    (void)state;
    pthread_t thread;
    struct version *old = version_new(1);
    atomic_store(&phase, 0);
    rcu_publish(&current, old);
    assert_int_equal(pthread_create(&thread, NULL, hold_a_section, NULL), 0);
    while (atomic_load(&phase) < 1)
        sched_yield();
    rcu_publish(&current, NULL);
    atomic_store(&phase, 2);
    rcu_wait();
    assert_int_equal(atomic_load(&phase), 3);
    free(old);
    pthread_join(thread, NULL);
}

static void count_up(void *arg)
{
    (*(unsigned *)arg)++;
}

/* In a process of its own: it is for good. */
static void by_hand_nothing_runs_before_it_is_told(void **state)
{
    (void)state;
    int result = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsigned ran = 0;
        rcu_by_hand();
        rcu_thread_register();
        rcu_online();
        rcu_defer(count_up, &ran);
        rcu_defer(count_up, &ran);
        rcu_wait();
        bool early = ran != 0;
        bool any = rcu_run_deferred(), again = rcu_run_deferred();
        rcu_thread_unregister();
        _exit(early || !any || again || ran != 2 ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_never_sees_released_memory),
        cmocka_unit_test(by_hand_nothing_runs_before_it_is_told),
        cmocka_unit_test(wait_returns_after_the_reader_moved_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
