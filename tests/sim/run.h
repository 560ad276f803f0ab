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

/* One list: what is counted in a run, beside its faults. */
#define RUN_COUNTS(X)                                                                              \
    X(virtual_us)                                                                                  \
    X(asked)                                                                                       \
    X(answered)                                                                                    \
    X(unknown) /* of those answered, as the next */                                                \
    X(refused)                                                                                     \
    X(rows)                                                                                        \
    X(txns)                                                                                        \
    X(committed)                                                                                   \
    X(undecided)                                                                                   \
    X(leaders) /* changes of them, of all shards */                                                \
    X(restarts)                                                                                    \
    X(repeated)                                                                                    \
    X(reordered)                                                                                   \
    X(installed)                                                                                   \
    X(offered)                                                                                     \
    X(cuts)                                                                                        \
    X(flushes)                                                                                     \
    X(lost)

/* Plain numbers: it crosses a pipe. */
struct run_report {
    bool good;
    uint64_t digest, faults[TROUBLE_KINDS];
#define X(name) uint64_t name;
    RUN_COUNTS(X)
#undef X
};

/* What has to happen in each run of RUN_S_MIN seconds of faults or more, or it proves little. The
 * time of faults goes on until it has, at most RUN_LONGER times as long as asked. */
#define RUN_S_MIN 60u
#define RUN_DONE_MIN 2000u /* requests whose outcome is known */
#define RUN_FAULTS_MIN 20u
#define RUN_LEADERS_MIN 1u
#define RUN_LONGER 4u

static inline uint64_t run_done(const struct run_report *r)
{
    return r->answered - r->refused - r->unknown;
}

static inline uint64_t run_faults(const struct run_report *r)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < TROUBLE_KINDS; i++)
        sum += r->faults[i];
    return sum;
}

/* Says on stderr which rule is broken. Once per process. */
void run_seed(uint64_t seed, const struct run_options *o, struct run_report *out);
bool run_knows(const char *broken);

#endif
