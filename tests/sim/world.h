/*
 * sim/world.h — machines in a simulated world, and what goes wrong there.
 *
 * A machine has a clock, a disk and an address (base/env_sim.h, base/sim_net.h), and runs one
 * program at a time on one loop. The world knows nothing of the program: the owner starts it after
 * world_start and takes it down after world_crash.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/env_sim.h"
#include "base/sim_loop.h"
#include "base/sim_net.h"

#define MACHINES_MAX 5u

/* One list: the kinds of faults, and their names in the report. */
#define FAULTS(X)                                                                                  \
    X(BLOCK, "block")                                                                              \
    X(PARTITION, "partition")                                                                      \
    X(BREAK, "break")                                                                              \
    X(SLOW, "slow")                                                                                \
    X(DELAY, "delay")                                                                              \
    X(DAMAGE, "damage")                                                                            \
    X(KILL, "kill")                                                                                \
    X(POWER, "power")                                                                              \
    X(JUMP, "jump")                                                                                \
    X(DESCRIPTORS, "descriptors")
enum fault_kind {
#define X(name, text) FAULT_##name,
    FAULTS(X)
#undef X
        FAULT_KINDS
};
extern const char *const fault_names[FAULT_KINDS];

struct machine {
    unsigned index; /* also its host number */
    struct env *env;
    struct loop *loop; /* NULL: no program runs */
    char address[32];  /* without port */
    uint64_t down_until_us;
};

struct world {
    struct sim_world *sim;
    struct sim_net *net;
    unsigned count;
    struct machine machines[MACHINES_MAX];
    uint64_t faults[FAULT_KINDS];
    struct sim_event fault, heal;
    /* Tells the owner that a machine lost its program (env and network are in the state that the
     * crash left) or may start it again. */
    void (*crashed)(void *arg, struct machine *m);
    void (*started)(void *arg, struct machine *m);
    void *arg;
};

void world_init(struct world *w, uint64_t seed, unsigned machines);
/* After every program was taken down. */
void world_fini(struct world *w);
uint64_t world_below(struct world *w, uint64_t bound);
/* A loop for the program of M. */
void world_start(struct world *w, struct machine *m);
/* Makes faults until world_heal. */
void world_begin_faults(struct world *w);
/* Everything works from now on, every machine runs. */
void world_heal(struct world *w);

#endif
