/*
 * planner/patterns.h — the catalogue of statements that metadb executes.
 *
 * patterns.def lists them. Statistics are kept by planner (one per reactor) and added up when
 * metadb.patterns is read.
 */
#ifndef PLANNER_PATTERNS_H
#define PLANNER_PATTERNS_H

#include "planner/plan.h"

enum pl_pattern_id {
    PATTERN_NONE, /* 0: rules name only what they have */
#define PATTERN(id, name, handler, scope, text, example) id,
#include "planner/patterns.def"
#undef PATTERN
    PATTERN_COUNT
};

const struct pl_pattern *pl__pattern(enum pl_pattern_id id); /* NULL for PATTERN_NONE */
const char *pl__pattern_example(enum pl_pattern_id id);      /* likewise */

/* One planner's counters. One writer, its reactor; read by pl_patterns_rows. */
struct pl__stats;
struct pl__stats *pl__stats_new(void);
void pl__stats_free(struct pl__stats *s);
void pl__stats_count(struct pl__stats *s, enum pl_pattern_id id, uint64_t us, status st);

#endif
