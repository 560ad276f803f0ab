/*
 * cluster/identity.h — what a data directory is: lock, cluster, node, store, format, streams.
 *
 * Layout of a data directory:
 *
 *   LOCK        held for the life of the process
 *   identity    text, checksummed, replaced atomically
 *   log/N/      one log stream each
 *   store/      RocksDB
 *   reserve     zeros; gives its space to a start on a full disk (making.reserve: under way)
 *
 * A replica is tied to its disk: the store id is random and part of every log segment's seed, so a
 * directory that was wiped or put together from two is never taken for what it was.
 */
#ifndef CLUSTER_IDENTITY_H
#define CLUSTER_IDENTITY_H

#include "base/arena.h"
#include "base/env.h"
#include "base/err.h"

#define CL_FORMAT_VERSION 1u
#define CL_FIRST_MAX 7u
#define CL_RESERVE_NAME "reserve"
#define CL_RESERVE_MAKING "making.reserve"

struct cl_identity {
    uint64_t cluster_id, node_id, store_id; /* none is 0 */
    uint32_t format;
    uint32_t streams; /* fixed when the directory is made */
    /* The nodes of the cluster's first configuration; none: this node alone was it. */
    unsigned first_count;
    uint64_t first[CL_FIRST_MAX];
    bool joined; /* the directory was made to be added to a cluster that was there */
};

/* The replica that a node with this directory has of every shard: the node's id, and for a
 * directory that joined one that no other directory has, so that a disk that was lost and votes no
 * more is never mixed up with its successor. */
uint64_t cl_identity_replica(const struct cl_identity *id);
/* The node of a replica; node ids are below 2^32. */
static inline uint64_t cl_replica_node(uint64_t replica)
{
    return replica & UINT32_MAX;
}

/* Makes DIR when missing, takes its lock, reads its identity or, in an empty directory, writes a
 * new one with STREAMS log streams, WANTED's first configuration, and its cluster and node where
 * they are not 0; one that is there must have these two. Blocking; once per process and directory.
 * ST_LOCKED, ST_INVALID (foreign: log or store without an identity; a newer format), ST_CORRUPT
 * (damaged identity), ST_DISK_FULL, ST_IO. ERR says what to do. */
NODISCARD status cl_identity_open(struct env *env, const char *dir, uint32_t streams,
                                  const struct cl_identity *wanted, struct cl_identity *out,
                                  struct err *err);

/* DIR/NAME in A. */
char *cl_identity_path(struct arena *a, const char *dir, const char *name);

#endif
