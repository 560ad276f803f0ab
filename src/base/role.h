/*
 * base/role.h — which thread may call a function, checked by clang's -Wthread-safety.
 *
 * State belongs to one role. ON_THREAD(role_shard) behind a declaration says that only a thread in
 * that role may call it; a function that starts a role (a loop's callback, a thread's main) says
 * ROLE_ENTER(role_shard) first. Empty under gcc.
 */
#ifndef BASE_ROLE_H
#define BASE_ROLE_H

#ifdef __clang__
#define ROLE_ATTRIBUTE(x) __attribute__((x))
#else
#define ROLE_ATTRIBUTE(x)
#endif

struct ROLE_ATTRIBUTE(capability("role")) thread_role {
    char unused;
};

/* Tokens for the compiler; nothing reads them. */
extern struct thread_role role_net;   /* a reactor: one loop, its connections */
extern struct thread_role role_shard; /* the single writer of a set of shards */
extern struct thread_role role_log;   /* writes and syncs a log stream */
extern struct thread_role role_bg;    /* flush, compaction, snapshots */

#define ON_THREAD(role) ROLE_ATTRIBUTE(requires_capability(role))

static inline void role_enter(struct thread_role *role) ROLE_ATTRIBUTE(assert_capability(*role));
static inline void role_enter(struct thread_role *role)
{
    (void)role;
}
#define ROLE_ENTER(role) role_enter(&(role))

#endif
