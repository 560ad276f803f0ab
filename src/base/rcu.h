/*
 * base/rcu.h — the only door to liburcu (flavour urcu-qsbr).
 *
 * A registered thread is a reader from rcu_online to rcu_offline; a loop thread is online except
 * around its poll. Memory handed to rcu_defer is released once every reader that was online has
 * been offline or quiescent since. Never call rcu_wait on a reactor.
 */
#ifndef BASE_RCU_H
#define BASE_RCU_H

#include <stdatomic.h>
#include <stdbool.h>

/* For a process of one thread, a simulator, before its first call here: from then on threads are
 * not known to liburcu, and a deferred FN runs inside rcu_run_deferred, on the one thread, between
 * two events. */
void rcu_by_hand(void);
bool rcu_run_deferred(void); /* those that wait now; false: none did */

void rcu_thread_register(void); /* registers and goes offline */
void rcu_thread_unregister(void);
void rcu_online(void);
void rcu_offline(void);
void rcu_quiescent(void);                      /* between two read sections of an online thread */
void rcu_defer(void (*fn)(void *), void *arg); /* FN runs later on a helper thread */
void rcu_wait(void);        /* all readers have moved on; pool and main threads only */
void rcu_barrier_all(void); /* every deferred FN has run; at shutdown */

/* Publish and read a pointer: release/acquire, which TSan understands. */
#define rcu_publish(pp, p) atomic_store_explicit((pp), (p), memory_order_release)
#define rcu_read(pp) atomic_load_explicit((pp), memory_order_acquire)

#endif
