/*
 * planner/relations/evaluator.h — what the evaluator's files share; the door to SQLite, whose names
 * nothing else may see.
 *
 * All of it belongs to the thread of one run. A callback that fails says why in env->err and gives
 * SQLite any error.
 */
#ifndef PLANNER_RELATIONS_EVALUATOR_H
#define PLANNER_RELATIONS_EVALUATOR_H

#include "planner/relations/relations.h"

#include <sqlite3.h>

#define EV_MEMORY_MAX (256 * 1024 * 1024)

struct ev_run {
    const struct catalog_query *q;
    struct rel_env *env;
    struct arena scratch;
    long steps;
    size_t result_bytes;
    sqlite3 *db;
};

/* evaluator_values.c: SQLite's values, cells, and values as they travel */
struct cell ev_cell(sqlite3_value *v); /* borrows V's text */
void ev_result(sqlite3_context *c, const struct cell *v);
int ev_bind_params(struct rel_env *env, sqlite3_stmt *stmt, const struct pl_value *params,
                   unsigned count);
/* Cell C of a column of type OID; 22003 if it does not fit. */
NODISCARD status ev_value(struct rel_env *env, const struct cell *c, uint32_t oid,
                          struct pl_value *out, struct err *err);

/* evaluator_tables.c: relations, and the table functions pg_unnest and pg_series */
struct ev_relation {
    struct ev_run *run;
    const struct rel *rel;
};
extern const sqlite3_module ev_table_module;    /* with a struct ev_relation */
extern const sqlite3_module ev_function_module; /* with the struct ev_run */
extern const sqlite3_module ev_many_module;     /* the same */

/* evaluator_aggregates.c: array_agg, string_agg, and the one row of a scalar sub-query */
void ev_agg_step(sqlite3_context *c, int argc, sqlite3_value **argv);
void ev_array_final(sqlite3_context *c);
void ev_string_final(sqlite3_context *c);
void ev_single_step(sqlite3_context *c, int argc,
                    sqlite3_value **argv); /* with the struct ev_run */
void ev_single_final(sqlite3_context *c);

#endif
