/*
 * base/pool.c — worker threads behind one bounded queue.
 *
 * One mutex and one condition variable: jobs here cost tens of microseconds and more, so the lock
 * is not what limits them. A submit signals only if a worker sleeps.
 *
 * Invariants
 *   P1  queued <= queue_max.
 *   P2  An accepted job runs exactly once, and then its done runs exactly once on the loop of its
 *       reply mailbox.
 *   P3  A worker is offline for RCU between jobs and is left offline by a job.
 *
 * A driven pool has no threads: its owner runs a job when it says so (P2, P3 hold as well).
 *
 * Threads: pool_submit from any; pool_free from the thread that made the pool.
 */
#include "base/pool.h"
#include "base/assert.h"
#include "base/list.h"
#include "base/rcu.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* A third of a processor that is wanted by others too, all of it otherwise. */
#define NICE_GIVING_WAY 5

_Static_assert(sizeof(struct list) <= sizeof((struct pool_job *)0)->node, "a job holds a node");

struct pool {
    pthread_mutex_t mu;
    pthread_cond_t work;
    struct list queue;  /* mu */
    unsigned queued;    /* mu */
    unsigned sleeping;  /* mu */
    bool stop;          /* mu */
    bool gives_way;     /* mu; const after the first job */
    unsigned queue_max; /* const after init, as all below */
    unsigned threads;   /* 0: driven */
    void (*submitted)(void *arg, struct pool *p);
    void *submitted_arg;
    char name[16];
    pthread_t thread[];
};

static struct list *node_of(struct pool_job *job)
{
    return (struct list *)(void *)job->node;
}

static void deliver_done(struct mail *mail)
{
    struct pool_job *job = CONTAINER_OF(mail, struct pool_job, mail);
    job->done(job);
}

/* The next job, waiting for it; NULL when the pool stops and nothing is left. */
static struct pool_job *next_job(struct pool *p, bool *gives_way)
{
    pthread_mutex_lock(&p->mu);
    while (list_empty(&p->queue) && !p->stop) {
        p->sleeping++;
        pthread_cond_wait(&p->work, &p->mu);
        p->sleeping--;
    }
    struct list *node = list_pop_front(&p->queue);
    if (node != NULL)
        p->queued--;
    *gives_way = p->gives_way;
    pthread_mutex_unlock(&p->mu);
    return node != NULL ? CONTAINER_OF((void *)node, struct pool_job, node) : NULL;
}

static void *worker(void *arg)
{
    struct pool *p = arg;
    struct pool_job *job;
    bool lowered = false, gives_way;
    pthread_setname_np(pthread_self(), p->name);
    rcu_thread_register();
    while ((job = next_job(p, &gives_way)) != NULL) {
        if (gives_way && !lowered) /* of this thread alone, on Linux */
            lowered = setpriority(PRIO_PROCESS, 0, NICE_GIVING_WAY) == 0;
        job->run(job);
        mailbox_send(job->reply, &job->mail);
    }
    rcu_thread_unregister();
    return NULL;
}

static void start_threads(struct pool *p, size_t stack_bytes)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (stack_bytes > 0)
        pthread_attr_setstacksize(&attr, stack_bytes);
    for (unsigned i = 0; i < p->threads; i++) {
        if (pthread_create(&p->thread[i], &attr, worker, p) != 0) {
            fprintf(stderr, "metadb: thread %u of pool %s could not be started\n", i, p->name);
            abort();
        }
    }
    pthread_attr_destroy(&attr);
}

static struct pool *make(const char *name, unsigned threads, unsigned queue_max)
{
    ASSERT(queue_max > 0);
    struct pool *p = calloc(1, sizeof *p + threads * sizeof(pthread_t));
    if (p == NULL) {
        fprintf(stderr, "metadb: out of memory (pool %s)\n", name);
        abort();
    }
    pthread_mutex_init(&p->mu, NULL);
    pthread_cond_init(&p->work, NULL);
    list_init(&p->queue);
    p->queue_max = queue_max;
    p->threads = threads;
    snprintf(p->name, sizeof p->name, "%s", name);
    return p;
}

struct pool *pool_new(const char *name, unsigned threads, size_t stack_bytes, unsigned queue_max)
{
    ASSERT(threads > 0);
    struct pool *p = make(name, threads, queue_max);
    start_threads(p, stack_bytes);
    return p;
}

struct pool *pool_new_driven(unsigned queue_max, void (*submitted)(void *arg, struct pool *p),
                             void *arg)
{
    struct pool *p = make("driven", 0, queue_max);
    p->submitted = submitted;
    p->submitted_arg = arg;
    return p;
}

bool pool_step(struct pool *p)
{
    ASSERT(p->threads == 0);
    struct list *node = list_pop_front(&p->queue);
    if (node == NULL)
        return false;
    struct pool_job *job = CONTAINER_OF((void *)node, struct pool_job, node);
    p->queued--;
    job->run(job);
    mailbox_send(job->reply, &job->mail);
    return true;
}

void pool_give_way(struct pool *p)
{
    pthread_mutex_lock(&p->mu);
    p->gives_way = true;
    pthread_mutex_unlock(&p->mu);
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->mu);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->mu);
    for (unsigned i = 0; i < p->threads; i++)
        pthread_join(p->thread[i], NULL);
    while (p->threads == 0 && pool_step(p))
        ;
    ASSERT(list_empty(&p->queue));
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->mu);
    free(p);
}

status pool_submit(struct pool *p, struct mailbox *reply, struct pool_job *job)
{
    status st = ST_NO_MEMORY;
    job->reply = reply;
    job->mail.deliver = deliver_done;
    pthread_mutex_lock(&p->mu);
    ASSERT(!p->stop);
    if (p->queued < p->queue_max) {
        list_push_back(&p->queue, node_of(job));
        p->queued++;
        if (p->sleeping > 0)
            pthread_cond_signal(&p->work);
        st = ST_OK;
    }
    pthread_mutex_unlock(&p->mu);
    if (st == ST_OK && p->submitted != NULL)
        p->submitted(p->submitted_arg, p);
    return st;
}
