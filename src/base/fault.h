/*
 * base/fault.h — named places where a test can make something go wrong, and marks that prove a
 * rare branch was reached.
 *
 * In a release build without METADB_FAULTS both cost nothing. Armed from METADB_FAULT in the
 * environment ("site=action[:nth]", comma-separated; actions: kill, error, always, while-PATH,
 * pause-MS, hold) or by tests.
 *   kill   _exit(137) at once, as kill -9 would
 *   error  fault_point returns true: the caller fails as if its own call had failed
 *   always the same, from the nth hit on each time
 *   while-PATH  the same at each hit while there is a file PATH: another process says when
 *   pause-MS  the caller waits that long
 *   hold   the caller, and whoever comes after it, waits until fault_disarm(): for a test that
 *          must act meanwhile
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef METADB_FAULTS
bool fault_hit(const char *site);
void mark_hit(const char *name);
#define fault_point(site) fault_hit(site)
#define MARK(name) mark_hit(name)
#else
#define fault_point(site) false
#define MARK(name) ((void)0)
#endif

/* Calls FN with every mark that was passed, in the order of their first passing. */
void mark_each(void (*fn)(void *arg, const char *name, uint64_t count), void *arg);

/* Patterns may end in '*'. NTH counts from 1. Arming a pattern again replaces it.
 * Present in every build; without METADB_FAULTS fault_arm has no effect. */
void fault_arm(const char *pattern, const char *action, unsigned nth);
void fault_disarm(void);
bool fault_fired(void); /* has any armed fault fired since fault_arm? */
void fault_from_environment(void);
uint64_t mark_count(const char *name);

#endif
