/*
 * planner/catalog.h — the seam between the planner and the evaluator of catalogue relations.
 *
 * The planner hands over statements whose every relation and function is of pg_catalog,
 * information_schema or metadb (or that have none the patterns know). The evaluator answers with
 * columns at plan time and rows at run time.
 */
#ifndef PLANNER_CATALOG_H
#define PLANNER_CATALOG_H

#include "planner/plan.h"

#include <stdatomic.h>

struct catalog_query; /* a translated statement; immutable, any thread */

/* Parse thread. TEXT is one statement. TYPES: declared parameter types, 0 = infer (text). Fills
 * columns (name, oid) and parameter types in A. 42P01, 42703, 42883, 0A000 for what the evaluator
 * does not do. */
struct catalog_shape {
    const struct pl_column *columns;
    unsigned column_count;
    const uint32_t *param_types;
    unsigned param_count;
};
NODISCARD status pl_catalog_prepare(struct cl_node *node, bytes text, const uint32_t *types,
                                    unsigned type_count, struct arena *a,
                                    struct catalog_query **out, struct catalog_shape *shape,
                                    struct err *err);
void pl_catalog_query_free(struct catalog_query *q);
/* Does it look at the sessions of the server? Then pl_context.sessions is to be there. */
bool pl_catalog_wants_sessions(const struct catalog_query *q);

/* Does the evaluator have a function of this name, with whatever arguments? Any thread. */
bool pl_catalog_has_function(const char *name);

/* A relation over planner state, beside those of cluster/views.h: metadb.patterns (name, template,
 * fingerprint, handler, scope: text; calls, p50, p99 in microseconds, errors: bigint). */
#define PL_PATTERNS_COLUMNS 9
void pl_patterns_rows(void (*emit)(void *arg, const struct kv_datum *values), void *arg);

/* Runs QUERY: reactor 0 copies the metadb.* relations it names, then a thread of the query pool
 * evaluates. Rows go to emit on that thread in order. Once *CANCEL is true (NULL: never) it ends
 * soon, with ST_CANCELLED. */
struct catalog_snapshot;
struct catalog_snapshot *pl_catalog_snapshot(struct cl_node *node,
                                             const struct catalog_query *q); /* reactor 0 */
NODISCARD status pl_catalog_run(const struct catalog_query *q, struct catalog_snapshot *snap,
                                const struct pl_value *params, unsigned count,
                                const struct pl_context *ctx, const atomic_bool *cancel,
                                struct arena *a,
                                void (*emit)(void *arg, const struct pl_value *values), void *arg,
                                struct err *err);
void pl_catalog_snapshot_free(struct catalog_snapshot *s);

#endif
