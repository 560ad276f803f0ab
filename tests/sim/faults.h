/*
 * sim/faults.h — what goes wrong with whole nodes, at random times.
 *
 * Of the machines a majority must be able to come back with what it promised, or nothing could be
 * asked of the cluster: so at most one disk in a run is replaced, and only that one loses what it
 * had synced. Everything else happens to any machine at any time, also to all at once.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "sim/cluster.h"

/* One list: the kinds, and their names in the report. */
#define TROUBLES(X)                                                                                \
    X(KILL, "kill")                                                                                \
    X(POWER, "power")                                                                              \
    X(TORN, "torn")         /* the power goes in the middle of a write */                          \
    X(BLACKOUT, "blackout") /* the power of all */                                                 \
    X(FULL, "full")                                                                                \
    X(HANG, "hang")                                                                                \
    X(SYNC, "sync")                                                                                \
    X(LIE, "lie")     /* syncs that do nothing for a while; then the truth, or the disk is lost */ \
    X(STORE, "store") /* one of its next calls fails, at some machine */                           \
    X(WIPE, "wipe")                                                                                \
    X(PARTITION, "partition")                                                                      \
    X(BLOCK, "block") /* one way */                                                                \
    X(BREAK, "break")                                                                              \
    X(DELAY, "delay")                                                                              \
    X(SLOW, "slow")                                                                                \
    X(DAMAGE, "damage")                                                                            \
    X(JUMP, "jump")                                                                                \
    X(PAUSE, "pause")                                                                              \
    X(TRANSFER, "transfer")                                                                        \
    X(STOP, "stop") /* in good order */
enum trouble {
#define X(name, text) TROUBLE_##name,
    TROUBLES(X)
#undef X
        TROUBLE_KINDS
};
extern const char *const trouble_names[TROUBLE_KINDS];

struct faults {
    struct cluster *cluster;
    struct sim_event next, heal;
    uint64_t pace_us; /* mean time between two */
    uint32_t kinds;   /* bits: those of this run */
    bool disk_lost;   /* one machine's */
    uint64_t made[TROUBLE_KINDS], sum;
    uint64_t heals;
    unsigned last; /* machine of the last one */
};

void faults_init(struct faults *f, struct cluster *c);
void faults_begin(struct faults *f);
/* From now on there are few. */
void faults_slow(struct faults *f);
/* No more of them, and all that can be mended is. */
void faults_end(struct faults *f);

#endif
