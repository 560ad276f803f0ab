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
 * By hand (a simulator, one thread) there is no grace period to wait for: what is deferred waits
 * in a list until the owner, who reads nothing at that moment, runs it.
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
    struct deferred *next; /* by hand */
    void (*fn)(void *);
    void *arg;
};

static bool by_hand; /* const once there is a thread */
static struct deferred *waiting, **waiting_end = &waiting;

void rcu_by_hand(void)
{
    by_hand = true;
}

bool rcu_run_deferred(void)
{
    struct deferred *d = waiting;
    waiting = NULL;
    waiting_end = &waiting;
    bool any = d != NULL;
    while (d != NULL) {
        struct deferred *next = d->next;
        d->fn(d->arg);
        free(d);
        d = next;
    }
    return any;
}

void rcu_thread_register(void)
{
    if (by_hand)
        return;
    urcu_qsbr_register_thread();
    urcu_qsbr_thread_offline();
}

void rcu_thread_unregister(void)
{
    if (by_hand)
        return;
    READER_DONE();
    urcu_qsbr_unregister_thread();
}

void rcu_online(void)
{
    if (by_hand)
        return;
    urcu_qsbr_thread_online();
}

void rcu_offline(void)
{
    if (by_hand)
        return;
    READER_DONE();
    urcu_qsbr_thread_offline();
}

void rcu_quiescent(void)
{
    if (by_hand)
        return;
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
    if (by_hand) {
        d->next = NULL;
        *waiting_end = d;
        waiting_end = &d->next;
        return;
    }
    READER_DONE();
    urcu_qsbr_call_rcu(&d->head, run_deferred);
}

void rcu_wait(void)
{
    if (by_hand)
        return;
    urcu_qsbr_synchronize_rcu();
    GRACE_PASSED();
}

void rcu_barrier_all(void)
{
    if (by_hand) {
        while (rcu_run_deferred())
            ;
        return;
    }
    urcu_qsbr_barrier();
    GRACE_PASSED();
}
