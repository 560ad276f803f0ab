/*
 * raft/raft_internal.h — the core's one struct, shared by the files that implement raft_step.
 *
 * Only files of this folder and their tests include it. Each raft__ function below is a part of
 * one step: it changes the struct and the outputs under way, and raft_step asserts the invariants
 * (invariants.c) when all parts are done.
 */
#ifndef RAFT_RAFT_INTERNAL_H
#define RAFT_RAFT_INTERNAL_H

#include "raft/raft.h"
#include "raft/tail.h"

struct raft {
    struct raft_config config; /* const after raft_new */
    unsigned self_at;          /* position of config.self in config.voters */

    struct raft_hard_state hard; /* as it must be durable before anything of this step leaves */
    enum raft_role role;
    uint64_t leader; /* replica id, 0 = unknown */

    struct raft__tail tail; /* entries above the applied base, stored or not */
    uint64_t stored;        /* the own log is durable up to here */
    uint64_t commit, applied;

    uint64_t match[RAFT_VOTERS_MAX]; /* leader: durable at this voter; the own one is `stored` */
    bool granted[RAFT_VOTERS_MAX];   /* candidate: votes of this term */

    uint64_t now_ms, deadline_ms; /* deadline of a follower's or candidate's patience */
    uint64_t random;              /* generator state, seeded by the configuration */
    bool deadline_set;            /* false until the first input brings a clock reading */

    /* Outputs of the step under way. */
    uint64_t out_first; /* index of the first entry appended in this step; 0 = none */
    uint64_t out_proposed;
    bool out_hard, out_role;
    struct raft_entry *out_entries; /* borrowed copies, contiguous for the caller */
    size_t out_capacity;
};

/* election.c */
void raft__deadline_reset(struct raft *r);
void raft__campaign(struct raft *r);
void raft__tick(struct raft *r);

/* replicate.c */
uint64_t raft__append(struct raft *r, enum raft_entry_kind kind, struct buf *data);
NODISCARD status raft__propose(struct raft *r, struct buf *const *commands, size_t count);

/* commit.c */
void raft__stored(struct raft *r, uint64_t index, uint64_t term);
void raft__commit_advance(struct raft *r);

/* invariants.c */
struct raft__before { /* what a step may not take back */
    uint64_t term, vote, commit, stored;
};
struct raft__before raft__invariants_before(const struct raft *r);
void raft__invariants_after(const struct raft *r, const struct raft__before *before);

#endif
