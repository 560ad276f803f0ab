/*
 * base/pool.h — threads for what a reactor may not do: cold reads, flushes, parsing.
 *
 * Bounded queue. A job runs on a pool thread; then its `done` runs on the loop that submitted it.
 * Pool threads are registered RCU readers and offline unless a job says rcu_online().
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/mailbox.h"
#include <stdbool.h>

struct pool_job {
    struct mail mail;                /* internal */
    void *node[2];                   /* internal */
    struct mailbox *reply;           /* where DONE runs; set by pool_submit */
    void (*run)(struct pool_job *);  /* pool thread */
    void (*done)(struct pool_job *); /* loop thread; may free the job */
};

struct pool;
/* STACK_BYTES per thread (parsing needs 64 MiB of address space). */
struct pool *pool_new(const char *name, unsigned threads, size_t stack_bytes, unsigned queue_max);
/* Without threads, for a simulator: SUBMITTED hears of each job, and pool_step runs the oldest. */
struct pool *pool_new_driven(unsigned queue_max, void (*submitted)(void *arg, struct pool *p),
                             void *arg);
bool pool_step(struct pool *p); /* false: nothing is queued */
/* Before the first job: its threads leave most of a processor to others that want it, for work that
 * nobody waits for. */
void pool_give_way(struct pool *p);
void pool_free(struct pool *p); /* finishes what is queued, then joins */
/* ST_NO_MEMORY when the queue is full: nothing was done, the job is still the caller's. */
NODISCARD status pool_submit(struct pool *p, struct mailbox *reply, struct pool_job *job);

#endif
