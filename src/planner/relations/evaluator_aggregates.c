/*
 * planner/relations/evaluator_aggregates.c — aggregates that SQLite has not, or not as PostgreSQL
 * has them. A call's rows are kept in memory of its own until the last one is there.
 */
#include "planner/relations/evaluator.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- aggregates that collect: array_agg, string_agg ---- */

struct collected {
    struct arena *arena; /* NULL before the first row */
    struct cell *rows;   /* width cells each: value, [separator,] keys */
    size_t count;
    unsigned capacity, width;
    char flags[64];
};

static void collect_row(struct collected *g, int argc, sqlite3_value **argv)
{
    if (!g->arena) {
        g->arena = malloc(sizeof(*g->arena));
        if (!g->arena)
            return;
        arena_init(g->arena, 1024);
        g->width = (unsigned)argc - 1;
        (void)snprintf(g->flags, sizeof(g->flags), "%s", (const char *)sqlite3_value_text(argv[0]));
    }
    if (g->count == g->capacity)
        g->rows = arena_grow(g->arena, g->rows, sizeof(*g->rows) * g->width, &g->capacity, 16);
    struct cell *row = g->rows + g->count++ * g->width;
    for (unsigned i = 0; i < g->width; i++) {
        row[i] = ev_cell(argv[i + 1]);
        if (row[i].kind == CELL_TEXT)
            row[i].b = arena_copy(g->arena, row[i].b);
    }
}

void ev_agg_step(sqlite3_context *c, int argc, sqlite3_value **argv)
{
    struct collected *g = sqlite3_aggregate_context(c, sizeof(*g));
    if (!g || (g->arena && g->arena->used_bytes > EV_MEMORY_MAX / 4)) {
        sqlite3_result_error_nomem(c);
        return;
    }
    collect_row(g, argc, argv);
}

struct sort_by {
    const struct collected *g;
    unsigned first_key;
};
/* DISTINCT may only be sorted by the value itself, so then the value is the one key. */
static int compare_collected(const void *x, const void *y, void *arg)
{
    const struct cell *a = x, *b = y;
    const struct sort_by *by = arg;
    bool distinct = by->g->flags[0] == 'D';
    const char *flags = by->g->flags + distinct;
    unsigned from = distinct ? 0 : by->first_key, to = distinct ? 1 : by->g->width;
    for (unsigned i = from; i < to; i++) {
        const struct cell *p = &a[i], *q = &b[i];
        bool np = p->kind == CELL_NULL, nq = q->kind == CELL_NULL;
        int order = np || nq ? (int)np - (int)nq : rel_cell_compare(p, q);
        if (order != 0)
            return flags[i - from] == 'd' ? -order : order;
    }
    return 0;
}

/* Sorts; drops repeats under DISTINCT and, for strings, NULLs. Returns the rows kept. */
static size_t settle(struct collected *g, unsigned first_key, bool drop_nulls)
{
    if (g->width > first_key || g->flags[0] == 'D')
        qsort_r(g->rows, g->count, sizeof(struct cell) * g->width, compare_collected,
                &(struct sort_by){.g = g, .first_key = first_key});
    size_t kept = 0;
    for (size_t i = 0; i < g->count; i++) {
        struct cell *row = g->rows + i * g->width, *to = g->rows + kept * g->width;
        bool repeat = g->flags[0] == 'D' && kept > 0 && rel_cell_compare(to - g->width, row) == 0;
        if (repeat || (drop_nulls && row->kind == CELL_NULL))
            continue;
        memmove(to, row, sizeof(struct cell) * g->width);
        kept++;
    }
    return kept;
}

static void agg_free(struct collected *g)
{
    if (!g || !g->arena)
        return;
    arena_fini(g->arena);
    free(g->arena);
    g->arena = NULL;
}

void ev_array_final(sqlite3_context *c)
{
    struct collected *g = sqlite3_aggregate_context(c, 0);
    if (!g || !g->arena) {
        sqlite3_result_null(c);
        return;
    }
    size_t n = settle(g, 1, false);
    struct cell *values = ARENA_ARRAY(g->arena, struct cell, n + 1);
    for (size_t i = 0; i < n; i++)
        values[i] = g->rows[i * g->width];
    struct cell out = cell_bytes(rel_array_format(g->arena, values, (unsigned)n));
    ev_result(c, &out);
    agg_free(g);
}

void ev_string_final(sqlite3_context *c)
{
    struct collected *g = sqlite3_aggregate_context(c, 0);
    size_t n = g && g->arena ? settle(g, 2, true) : 0;
    if (n == 0) {
        sqlite3_result_null(c);
        agg_free(g);
        return;
    }
    struct rel_env env = {.arena = g->arena};
    struct obuf o;
    obuf_init(&o);
    for (size_t i = 0; i < n; i++) {
        const struct cell *row = g->rows + i * g->width;
        bytes separator = rel_cell_text(&env, &row[1]), value = rel_cell_text(&env, &row[0]);
        if (i > 0)
            obuf_put(&o, separator.data, separator.size);
        obuf_put(&o, value.data, value.size);
    }
    struct cell out = cell_bytes(bytes_make(o.data, o.size));
    ev_result(c, &out);
    obuf_fini(&o);
    agg_free(g);
}

/* ---- a scalar sub-query: one row at most ---- */

struct single {
    size_t count;
    sqlite3_value *value;
};
void ev_single_step(sqlite3_context *c, int argc, sqlite3_value **argv)
{
    ASSERT(argc == 1);
    struct ev_run *run = sqlite3_user_data(c);
    struct single *s = sqlite3_aggregate_context(c, sizeof(*s));
    if (!s) {
        sqlite3_result_error_nomem(c);
    } else if (s->count++ == 0) {
        s->value = sqlite3_value_dup(argv[0]);
    } else {
        (void)rel_fail(run->env, ST_INVALID, "21000",
                       "more than one row returned by a subquery used as an expression");
        sqlite3_result_error(c, "failed", -1);
    }
}
void ev_single_final(sqlite3_context *c)
{
    struct single *s = sqlite3_aggregate_context(c, 0);
    if (s && s->value)
        sqlite3_result_value(c, s->value);
    if (s)
        sqlite3_value_free(s->value);
}
