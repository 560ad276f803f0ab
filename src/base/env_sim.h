/*
 * base/env_sim.h — a simulated world: virtual time, seeded randomness, an in-memory disk.
 *
 * Every write since a file's last sync is remembered on its own; a power cut keeps a random subset
 * of them, may tear the kept ones at 512-byte boundaries, and loses creations, renames and
 * unlinks whose directory was not synced. One seed reproduces a run.
 */
#ifndef BASE_ENV_SIM_H
#define BASE_ENV_SIM_H

#include "base/env.h"

struct env *env_sim_new(uint64_t seed);
void env_sim_free(struct env *e);
void env_sim_advance(struct env *e, uint64_t us);  /* both clocks */
void env_sim_jump_wall(struct env *e, int64_t us); /* the wall clock alone */
/* Drops, tears or keeps what was not synced; open files become invalid, locks are gone. */
void env_sim_power_cut(struct env *e);
/* Closes everything but keeps all writes: a killed process, a surviving kernel. */
void env_sim_kill(struct env *e);
void env_sim_fail_next_sync(struct env *e, status st); /* once */
void env_sim_set_capacity(struct env *e,
                          uint64_t max_bytes); /* 0: no limit; beyond it ST_DISK_FULL */

#endif
