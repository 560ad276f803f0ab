/*
 * sim/run.h — one seed over whole nodes: a time of faults, then all must come right.
 *
 *   safety     faults at random while clients ask; rules R1 to R3 and what the code asserts
 *   liveness   everything is mended: within LIVE_S every shard serves, every request ends, clients
 *              get through, replicas agree, quota and index have caught up
 *   judgement  the history: registers linearizable, lists as snapshot isolation has them;
 *              the state: equal hashes, counts equal to a recount, the tree a tree
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "sim/faults.h"

struct run_options {
    uint64_t seconds;   /* of faults */
    const char *broken; /* a mistake on purpose, or NULL; see run.c */
};

/* Plain numbers: it crosses a pipe. */
struct run_report {
    bool good;
    uint64_t digest, virtual_us, faults[TROUBLE_KINDS];
    uint64_t asked, answered, unknown, refused, rows, txns, committed, undecided;
    uint64_t leaders, restarts, repeated, reordered, installed, offered, cuts, flushes, lost;
};

/* Says on stderr which rule is broken. Once per process. */
void run_seed(uint64_t seed, const struct run_options *o, struct run_report *out);
bool run_knows(const char *broken);

#endif
