/*
 * bench/prepare.h — the data that a workload needs, and the counts that it must leave.
 */
#ifndef BENCH_PREPARE_H
#define BENCH_PREPARE_H

#include "control.h"
#include "workload.h"

/* Directories, entries and keys of G's run. */
void prepare(struct control *c, const struct generator *g);

/* After a run of which DONE operations were acknowledged and none failed: "ok", or what is wrong.
 * */
void prepare_check(struct control *c, const struct generator *g, uint64_t done, char result[160]);

/* Waits until asynchronous quota and index updates have been delivered. */
void prepare_wait_accounted(struct control *c);

/* How a peer does it. Counts: the sum of the directories' own; entries that can be listed; what the
 * owners' quota says; entries found by file id; keys. children, owned and indexed may be NULL. */
struct prepare_ops {
    void (*directories)(struct control *c, const struct generator *g);
    void (*entries)(struct control *c, const struct generator *g);
    void (*keys)(struct control *c, const struct generator *g);
    int64_t (*children)(struct control *c, const struct generator *g);
    int64_t (*listed)(struct control *c, const struct generator *g);
    int64_t (*owned)(struct control *c, const struct generator *g);
    int64_t (*indexed)(struct control *c, const struct generator *g);
    int64_t (*key_count)(struct control *c, const struct generator *g);
};
extern const struct prepare_ops prepare_metadb, prepare_pg, prepare_redis, prepare_etcd;
extern const char *const redis_library;

/* How many clients (or directories) have entries before the run, and how many each. */
unsigned prepare_owner_count(const struct generator *g);
uint64_t prepare_children(const struct generator *g);

#endif
