/*
 * base/sim_loop.h — a loop without descriptors: the functions of loop.h in virtual time.
 *
 * Timers, turn hooks, loop_again and mailboxes work as on a real loop; loop_io, signals, loop_run
 * and loop_stop do not exist here: the world drives it. A turn ends a few microseconds after its
 * first callback, so that several callbacks share it, as they do when a poll finds many.
 */
#ifndef BASE_SIM_LOOP_H
#define BASE_SIM_LOOP_H

#include "base/loop.h"
#include "base/sim_world.h"
#include <stdbool.h>

/* Freed by loop_free. Its clock is E's monotonic one. */
struct loop *sim_loop_new(struct sim_world *w, struct env *e);
/* Before a callback on L from outside: it is now, and the turn that has begun will end. */
void sim_loop_enter(struct loop *l);
/* The process is stopped until then: timers and turns wait; its owner calls nothing on it. */
void sim_loop_freeze(struct loop *l, uint64_t until_us);
bool sim_loop_frozen(struct loop *l);
/* The process is gone, and nothing of it runs any more; its memory is left as it is. */
void sim_loop_abandon(struct loop *l);

#endif
