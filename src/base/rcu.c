/*
 * base/rcu.c — the only door to liburcu, flavour urcu-qsbr.
 *
 * Vocabulary: a *reader* is a registered thread that is online; it is *quiescent* at a moment when
 * it holds no pointer that it read through rcu_read. A *grace period* ends when every thread that
 * was a reader at its start has been quiescent or offline since.
 *
 * The library's functions are called, not inlined (_LGPL_SOURCE is not defined): a call costs a
 * nanosecond or two, and ThreadSanitizer does not instrument what it could not understand anyway.
 *
 * Invariants
 *   R1  A registered thread that sleeps is offline. One that is not stops all reclamation.
 *   R2  A deferred FN runs after the grace period that its rcu_defer began, on liburcu's helper
 *       thread, never inside rcu_defer.
 *
 * Under ThreadSanitizer the address of `grace` stands for the order "what a reader did before it
 * was quiescent happens before a deferred FN".
 */
#include "base/rcu.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <urcu-qsbr.h>

#ifdef BASE_TSAN
static char grace;
#define READER_DONE() TSAN_RELEASE(&grace)
#define GRACE_PASSED() TSAN_ACQUIRE(&grace)
#else
#define READER_DONE() ((void)0)
#define GRACE_PASSED() ((void)0)
#endif

struct deferred {
    struct rcu_head head;
    void (*fn)(void *);
    void *arg;
};

void rcu_thread_register(void)
{
    urcu_qsbr_register_thread();
    urcu_qsbr_thread_offline();
}

void rcu_thread_unregister(void)
{
    READER_DONE();
    urcu_qsbr_unregister_thread();
}

void rcu_online(void)
{
    urcu_qsbr_thread_online();
}

void rcu_offline(void)
{
    READER_DONE();
    urcu_qsbr_thread_offline();
}

void rcu_quiescent(void)
{
    READER_DONE();
    urcu_qsbr_quiescent_state();
}

static void run_deferred(struct rcu_head *head)
{
    struct deferred *d = CONTAINER_OF(head, struct deferred, head);
    GRACE_PASSED();
    d->fn(d->arg);
    free(d);
}

void rcu_defer(void (*fn)(void *), void *arg)
{
    struct deferred *d = malloc(sizeof *d);
    if (d == NULL) {
        fprintf(stderr, "metadb: out of memory (deferred release)\n");
        abort();
    }
    d->fn = fn;
    d->arg = arg;
    READER_DONE();
    urcu_qsbr_call_rcu(&d->head, run_deferred);
}

void rcu_wait(void)
{
    urcu_qsbr_synchronize_rcu();
    GRACE_PASSED();
}

void rcu_barrier_all(void)
{
    urcu_qsbr_barrier();
    GRACE_PASSED();
}
