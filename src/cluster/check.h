/*
 * cluster/check.h — recounts what is kept as counts: num_children, quota, secondary_index.
 */
#ifndef CLUSTER_CHECK_H
#define CLUSTER_CHECK_H

#include "cluster/shard.h"
#include <stdatomic.h>

struct cl_mismatch {
    struct cl_mismatch *next;
    const char *what; /* static */
    uint32_t ns;
    const char *item; /* which one, for a person */
    int64_t expected, found;
};

/* Pool thread, while meta, quota and index stand still (cl_shard_hold) and meta's queue is empty.
 * Mismatches in A, in the order found, at most CL_MISMATCHES_MAX. ST_IO, ST_CORRUPT; ST_CANCELLED
 * soon after *CANCEL. */
#define CL_MISMATCHES_MAX 1000u
NODISCARD status cl_check_run(struct cl_node *n, const atomic_bool *cancel, struct arena *a,
                              struct cl_mismatch **out);

#endif
