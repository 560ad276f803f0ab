/* The pool: accepted jobs are done once, a full queue refuses, freeing finishes the rest. */
#include "lib/test.h"

#include "base/compiler.h"
#include "base/pool.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#define JOBS 2000

struct job {
    struct pool_job job;
    pthread_t ran_on;
    unsigned result;
    int priority;
};

static struct loop *l;
static struct mailbox *box;
static struct pool *p;
static unsigned done_count, accepted;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned started;

static int setup(void **state)
{
    (void)state;
    l = loop_new();
    box = mailbox_new(l);
    done_count = accepted = 0;
    atomic_store(&started, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pool_free(p);
    p = NULL;
    mailbox_free(box);
    loop_free(l);
    return 0;
}

static void work(struct pool_job *job)
{
    struct job *j = CONTAINER_OF(job, struct job, job);
    j->ran_on = pthread_self();
    j->result = 7;
}

static void done(struct pool_job *job)
{
    struct job *j = CONTAINER_OF(job, struct job, job);
    assert_int_equal(j->result, 7);
    assert_false(pthread_equal(j->ran_on, pthread_self()));
    j->result = 0;
    if (++done_count == accepted)
        loop_stop(l);
}

static void every_accepted_job_is_done_once_on_the_loop(void **state)
{
    (void)state;
    static struct job jobs[JOBS];
    p = pool_new("test", 3, 0, JOBS);
    accepted = JOBS;
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.job = {.run = work, .done = done}};
        assert_int_equal(pool_submit(p, box, &jobs[i].job), ST_OK);
    }
    loop_run(l);
    assert_int_equal(done_count, JOBS);
}

static void wait_at_gate(struct pool_job *job)
{
    atomic_fetch_add(&started, 1);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    work(job);
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    static struct job jobs[6];
    p = pool_new("test", 1, 0, 3);
    for (unsigned i = 0; i < 6; i++)
        jobs[i] = (struct job){.job = {.run = wait_at_gate, .done = done}};
    pthread_mutex_lock(&gate);
    assert_int_equal(pool_submit(p, box, &jobs[0].job), ST_OK);
    while (atomic_load(&started) == 0)
        sched_yield();
    /* One runs, three wait, and there is no place for more. */
    for (unsigned i = 1; i <= 3; i++)
        assert_int_equal(pool_submit(p, box, &jobs[i].job), ST_OK);
    assert_int_equal(pool_submit(p, box, &jobs[4].job), ST_NO_MEMORY);
    accepted = 4;
    pthread_mutex_unlock(&gate);
    loop_run(l);
    assert_int_equal(done_count, 4);
    accepted = 5;
    assert_int_equal(pool_submit(p, box, &jobs[4].job), ST_OK);
    loop_run(l);
}

static void freeing_finishes_what_is_queued(void **state)
{
    (void)state;
    static struct job jobs[50];
    p = pool_new("test", 2, 0, 50);
    accepted = 51; /* the loop does not run here */
    for (unsigned i = 0; i < 50; i++) {
        jobs[i] = (struct job){.job = {.run = work, .done = done}};
        assert_int_equal(pool_submit(p, box, &jobs[i].job), ST_OK);
    }
    pool_free(p);
    p = NULL;
    mailbox_free(box);
    assert_int_equal(done_count, 50);
    box = mailbox_new(l);
}

static NODISCARD unsigned recurse(unsigned depth)
{
    volatile char frame[1024];
    frame[0] = (char)depth;
    return depth == 0 ? (unsigned)frame[0] : recurse(depth - 1) + 1;
}

static void note_submitted(void *arg, struct pool *pool)
{
    (void)pool;
    (*(unsigned *)arg)++;
}

static void done_here(struct pool_job *job)
{
    struct job *j = CONTAINER_OF(job, struct job, job);
    assert_int_equal(j->result, 7);
    if (++done_count == accepted)
        loop_stop(l);
}

/* Without threads: nothing runs before the owner says so, one job each time. */
static void a_driven_pool_runs_when_it_is_told(void **state)
{
    (void)state;
    struct job jobs[3];
    unsigned submitted = 0;
    p = pool_new_driven(3, note_submitted, &submitted);
    accepted = 3;
    for (unsigned i = 0; i < 3; i++) {
        jobs[i] = (struct job){.job = {.run = work, .done = done_here}};
        assert_int_equal(pool_submit(p, box, &jobs[i].job), ST_OK);
    }
    assert_int_equal(submitted, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(jobs[i].result, 0);
        assert_true(pool_step(p));
        assert_int_equal(jobs[i].result, 7);
    }
    assert_false(pool_step(p));
    assert_int_equal(done_count, 0);
    loop_run(l);
    assert_int_equal(done_count, 3);
}

static void deep(struct pool_job *job)
{
    struct job *j = CONTAINER_OF(job, struct job, job);
    assert_int_equal(recurse(30000), 30000); /* over 30 MiB of stack */
    work(job);
    j->result = 7;
}

static void the_stack_is_as_large_as_asked(void **state)
{
    (void)state;
    static struct job job = {.job = {.run = deep, .done = done}};
    p = pool_new("test", 1, 256u << 20, 1);
    accepted = 1;
    assert_int_equal(pool_submit(p, box, &job.job), ST_OK);
    loop_run(l);
}

static void ask_priority(struct pool_job *job)
{
    struct job *j = CONTAINER_OF(job, struct job, job);
    work(job);
    j->priority = getpriority(PRIO_PROCESS, 0); /* of this thread, on Linux */
}

static void a_pool_that_gives_way_does_it_alone(void **state)
{
    (void)state;
    static struct job job = {.job = {.run = ask_priority, .done = done}};
    int own = getpriority(PRIO_PROCESS, 0);
    p = pool_new("test", 1, 0, 1);
    pool_give_way(p);
    accepted = 1;
    assert_int_equal(pool_submit(p, box, &job.job), ST_OK);
    loop_run(l);
    assert_true(job.priority > own);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), own);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(every_accepted_job_is_done_once_on_the_loop),
        T(a_full_queue_refuses),
        T(a_driven_pool_runs_when_it_is_told),
        T(freeing_finishes_what_is_queued),
        T(the_stack_is_as_large_as_asked),
        T(a_pool_that_gives_way_does_it_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
