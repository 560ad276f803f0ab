/*
 * base/sim_world.h — virtual time and the queue of what happens in it: the heart of a simulation.
 *
 * Events happen in the order of their time and, at the same time, in the order in which they were
 * asked for: one seed gives one history. Machines (simulated environments, env_sim.h) follow the
 * world's time, each at its own rate. One thread.
 */
#ifndef BASE_SIM_WORLD_H
#define BASE_SIM_WORLD_H

#include "base/env.h"
#include "base/sim_file.h"

/* Embedded in its owner, who initialises FN and cancels it before the memory goes. */
struct sim_event {
    void (*fn)(struct sim_event *e);
    uint64_t at_us, order;
    size_t place; /* in the queue, from 1; 0 = not in it */
};

struct sim_world;
struct sim_world *sim_world_new(uint64_t seed);
void sim_world_free(struct sim_world *w); /* no event may be left */
uint64_t sim_world_now_us(const struct sim_world *w);
/* The world's own randomness: delays, cuts, faults. Never given to a machine. */
struct sim_random *sim_world_random(struct sim_world *w);

/* E happens at AT_US (now, if that has passed); an event that waits already is moved. */
void sim_world_at(struct sim_world *w, struct sim_event *e, uint64_t at_us);
void sim_world_cancel(struct sim_world *w, struct sim_event *e);
/* Takes the next event that happens before UNTIL_US. False: there is none, and it is UNTIL_US. */
bool sim_world_step(struct sim_world *w, uint64_t until_us);

/* E's clocks follow the world's, DRIFT_PPM faster; at most 64 machines. */
void sim_world_add(struct sim_world *w, struct env *e, int drift_ppm);
void sim_world_remove(struct sim_world *w, struct env *e);

#endif
