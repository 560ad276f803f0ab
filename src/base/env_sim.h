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
/* The power goes at the CALLS-th next call that writes to the disk, in the middle of it: that call
 * and all behind it fail with ST_IO, and LOST says so, until env_sim_power_cut. 0: it stays. */
void env_sim_lose_power_at(struct env *e, unsigned calls, void (*lost)(void *arg), void *arg);
/* While LIES, syncs say that they were done and do nothing. */
void env_sim_lie(struct env *e, bool lies);
/* Everything that was written is on the disk. */
void env_sim_settle(struct env *e);
/* After a power cut or kill: an empty disk in the place of this one. */
void env_sim_wipe(struct env *e);
void env_sim_set_capacity(struct env *e,
                          uint64_t max_bytes); /* 0: no limit; beyond it ST_DISK_FULL */

#endif
