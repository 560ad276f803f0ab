/*
 * tests/unit/planner/planner_fixture.h — plans and binds texts without a server.
 *
 * One planner without a node: it compiles where it is called. `show` puts a statement's plan and
 * what it is bound to into one line, for comparison with an expected one.
 */
#ifndef TESTS_PLANNER_FIXTURE_H
#define TESTS_PLANNER_FIXTURE_H

#include "../../lib/test.h"

#include "planner/pl_internal.h"

struct planned {
    struct planner *planner;
    struct arena arena;
    struct pl_request r;
    struct pl_bound bound;
    struct pl_context ctx;
    struct pl_style style;
    struct err err;
    status st;      /* of pl_plan or pl_bind */
    bool bound_too; /* pl_bind was reached */
};

void planned_init(struct planned *f);
void planned_fini(struct planned *f);
/* Plans TEXT with declared types (0-terminated list, NULL = none) and binds it to text parameters
 * (NULL-terminated list). */
status planned_run(struct planned *f, const char *text, const uint32_t *types,
                   const char *const *params);
/* "meta.lookup points (1,'a') cols pid,name" or "42703 column … @12". Valid until the next call. */
const char *planned_show(struct planned *f, const char *text, const uint32_t *types,
                         const char *const *params);

#define SHOW(f, text) planned_show(f, text, NULL, NULL)
#define SHOW_P(f, text, ...) planned_show(f, text, NULL, (const char *const[]){__VA_ARGS__, NULL})

#endif
