/*
 * base/sim_file.h — the contents of one simulated file, with a memory of what was not synced.
 *
 * Used by env_sim.c only. Not thread-safe. Out of memory ends the process: this is test equipment.
 */
#ifndef BASE_SIM_FILE_H
#define BASE_SIM_FILE_H

#include "base/bytes.h"

/* Where the decisions of a power cut come from. */
struct sim_random {
    uint64_t state;
};
uint64_t sim_random_next(struct sim_random *r);
/* 0 <= result < bound. */
uint64_t sim_random_below(struct sim_random *r, uint64_t bound);

struct sim_op;

struct sim_file {
    uint8_t **pages; /* NULL = zeros */
    size_t page_count;
    uint64_t size;
    struct sim_op *ops; /* since the last sync, oldest first */
    size_t op_count, op_capacity;
};

void sim_file_init(struct sim_file *f);
void sim_file_fini(struct sim_file *f);
size_t sim_file_read(const struct sim_file *f, void *dst, size_t n, uint64_t at);
void sim_file_write(struct sim_file *f, const void *src, size_t n, uint64_t at);
void sim_file_resize(struct sim_file *f, uint64_t size);
void sim_file_sync(struct sim_file *f);
/* A sync that failed: what was waiting for it may be lost, also when a later sync succeeds. */
void sim_file_sync_failed(struct sim_file *f);
/* All of it is on the disk, whatever syncs did. */
void sim_file_settle(struct sim_file *f);
/* Every operation since the last sync is kept, torn or dropped, each on its own. */
void sim_file_power_cut(struct sim_file *f, struct sim_random *r);

#endif
