/*
 * planner/parse.h — the only door to libpg_query.
 *
 * Runs on parse threads (64 MiB stacks): the library recurses without a check. Every text must have
 * passed pl_scan first, which refuses what is nested too deep. Thread-safe; the library keeps its
 * state per thread.
 */
#ifndef PLANNER_PARSE_H
#define PLANNER_PARSE_H

#include "base/arena.h"
#include "base/err.h"
#include "planner/ast.h"

/* Parses TEXT (with a NUL) into statements in A. 42601 with PostgreSQL's message and position. */
NODISCARD status pl__parse(const char *text, struct arena *a, const struct ast_stmt **stmts,
                           unsigned *count, struct err *err);
/* libpg_query's own tree of TEXT, for relations/translate.c; the same errors. The caller
 * frees it. */
struct PgQuery__ParseResult;
NODISCARD status pl__tree_new(const char *text, struct PgQuery__ParseResult **out, struct err *err);
void pl__tree_free(struct PgQuery__ParseResult *tree); /* NULL is fine */
/* libpg_query's fingerprint: for statistics, never to find a plan. 0 if TEXT does not parse. */
uint64_t pl__fingerprint(const char *text);

#endif
