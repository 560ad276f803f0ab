/*
 * sim/sums.h — what happened in many runs over whole nodes, also of earlier processes.
 *
 * A file of sums has a line "NAME NUMBER" for each; marks are "mark.NAME", faults "fault.KIND".
 */
#ifndef SIM_SUMS_H
#define SIM_SUMS_H

#include "sim/run.h"

#define SUMS_MARKS_MAX 512u

struct sums {
    uint64_t seeds, failed;
    struct run_report sum;
    uint64_t least_done, least_faults, least_leaders; /* of a seed */
    struct {
        char *name; /* owned */
        uint64_t count;
    } marks[SUMS_MARKS_MAX];
    unsigned mark_count;
};

void sums_init(struct sums *s);
void sums_fini(struct sums *s);
/* A run that went well. */
void sums_add(struct sums *s, const struct run_report *r);
void sums_mark(struct sums *s, const char *name, uint64_t count);
void sums_print(const struct sums *s);
/* Adds what FILE holds; one that is not there holds nothing. False: it is no file of sums. */
bool sums_load(struct sums *s, const char *file);
bool sums_save(const struct sums *s, const char *file);

#endif
