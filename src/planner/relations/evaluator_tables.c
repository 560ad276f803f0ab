/*
 * planner/relations/evaluator_tables.c — relations and table functions as SQLite's virtual tables.
 *
 * Rows are not copied into SQLite: a virtual table reads the cells that rel_build_rows made. An
 * equality on a column is answered from an index over that column, sorted at first use; without it
 * joins of pg_attribute would be quadratic.
 */
#include "planner/relations/evaluator.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- relations ---- */

struct table {
    sqlite3_vtab base;
    struct ev_run *run;
    struct rel_build rows;
    uint32_t *sorted[REL_COLUMNS_MAX]; /* row numbers by column, made at first use */
};
struct cursor {
    sqlite3_vtab_cursor base;
    const uint32_t *order; /* NULL: as emitted */
    size_t at, end;
};

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **message)
{
    UNUSED(argc);
    UNUSED(argv);
    UNUSED(message);
    struct ev_relation *b = aux;
    struct obuf o;
    obuf_init(&o);
    obuf_put(&o, "CREATE TABLE x(", 15);
    for (unsigned i = 0; i < b->rel->column_count; i++) {
        char name[16];
        int n = snprintf(name, sizeof(name), "%s" REL_SQL_COLUMN, i ? "," : "", i + 1);
        obuf_put(&o, name, (size_t)n);
    }
    obuf_put(&o, ")", 2);
    int rc = sqlite3_declare_vtab(db, (const char *)o.data);
    obuf_fini(&o);
    if (rc != SQLITE_OK)
        return rc;
    struct table *t = ARENA_NEW(b->run->env->keep, struct table);
    t->run = b->run;
    rel_build_rows(&t->rows, b->run->env, b->rel);
    *out = &t->base;
    return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *v)
{
    UNUSED(v); /* of the run's arena */
    return SQLITE_OK;
}

static int table_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    const struct table *t = (const struct table *)v;
    double rows = (double)t->rows.row_count;
    info->estimatedCost = rows + 1;
    info->estimatedRows = (sqlite3_int64)rows;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (!c->usable || c->op != SQLITE_INDEX_CONSTRAINT_EQ || c->iColumn < 0)
            continue;
        bool unique = strcmp(t->rows.rel->columns[c->iColumn].name, "oid") == 0;
        double expected = unique ? 1 : rows / 8 + 1;
        if (expected + 1 >= info->estimatedCost)
            continue;
        for (int k = 0; k < info->nConstraint; k++)
            info->aConstraintUsage[k].argvIndex = 0;
        info->aConstraintUsage[i].argvIndex = 1;
        info->idxNum = c->iColumn + 1;
        info->estimatedCost = expected + 1;
        info->estimatedRows = (sqlite3_int64)expected;
    }
    return SQLITE_OK;
}

static int table_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    UNUSED(v);
    struct cursor *c = sqlite3_malloc(sizeof(*c));
    if (!c)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof(*c));
    *out = &c->base;
    return SQLITE_OK;
}
static int table_close(sqlite3_vtab_cursor *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

static const struct cell *cell_at(const struct table *t, uint32_t row, unsigned column)
{
    return &t->rows.cells[(size_t)row * t->rows.rel->column_count + column];
}

struct index_of {
    const struct table *t;
    unsigned column;
};
static int compare_rows(const void *x, const void *y, void *arg)
{
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    const struct index_of *o = arg;
    int order = rel_cell_compare(cell_at(o->t, a, o->column), cell_at(o->t, b, o->column));
    return order != 0 ? order : a < b ? -1 : a > b;
}

static const uint32_t *sorted_by(struct table *t, unsigned column)
{
    if (!t->sorted[column]) {
        uint32_t *order = ARENA_ARRAY(t->run->env->keep, uint32_t, t->rows.row_count + 1);
        for (uint32_t i = 0; i < t->rows.row_count; i++)
            order[i] = i;
        qsort_r(order, t->rows.row_count, sizeof(*order), compare_rows,
                &(struct index_of){t, column});
        t->sorted[column] = order;
    }
    return t->sorted[column];
}

/* First position in ORDER whose cell is not below KEY (or is above it). */
static size_t bound(const struct table *t, const uint32_t *order, unsigned column,
                    const struct cell *key, bool above)
{
    size_t low = 0, high = t->rows.row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = rel_cell_compare(cell_at(t, order[middle], column), key);
        if (c < 0 || (above && c == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int table_filter(sqlite3_vtab_cursor *v, int index, const char *text, int argc,
                        sqlite3_value **argv)
{
    UNUSED(text);
    struct cursor *c = (struct cursor *)v;
    struct table *t = (struct table *)v->pVtab;
    c->order = NULL;
    c->at = 0;
    c->end = t->rows.row_count;
    if (index == 0 || argc != 1)
        return SQLITE_OK;
    struct cell key = ev_cell(argv[0]);
    if (key.kind == CELL_NULL) {
        c->end = 0;
        return SQLITE_OK;
    }
    unsigned column = (unsigned)index - 1;
    c->order = sorted_by(t, column);
    c->at = bound(t, c->order, column, &key, false);
    c->end = bound(t, c->order, column, &key, true);
    return SQLITE_OK;
}
static int table_next(sqlite3_vtab_cursor *v)
{
    ((struct cursor *)v)->at++;
    return SQLITE_OK;
}
static int table_eof(sqlite3_vtab_cursor *v)
{
    const struct cursor *c = (const struct cursor *)v;
    return c->at >= c->end;
}
static int table_column(sqlite3_vtab_cursor *v, sqlite3_context *ctx, int column)
{
    const struct cursor *c = (const struct cursor *)v;
    uint32_t row = c->order ? c->order[c->at] : (uint32_t)c->at;
    ev_result(ctx, cell_at((const struct table *)v->pVtab, row, (unsigned)column));
    return SQLITE_OK;
}
static int table_rowid(sqlite3_vtab_cursor *v, sqlite3_int64 *out)
{
    const struct cursor *c = (const struct cursor *)v;
    *out = c->order ? (sqlite3_int64)c->order[c->at] : (sqlite3_int64)c->at;
    return SQLITE_OK;
}

const sqlite3_module ev_table_module = {
    .xConnect = table_connect, /* no xCreate: the module's name is the table */
    .xBestIndex = table_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = table_open,
    .xClose = table_close,
    .xFilter = table_filter,
    .xNext = table_next,
    .xEof = table_eof,
    .xColumn = table_column,
    .xRowid = table_rowid,
};

/* ---- table functions: pg_unnest(array, numbers), pg_series(start, stop, step) ---- */

enum { FN_VALUE, FN_ORD, FN_SUB, FN_ARG1, FN_ARG2, FN_ARG3 };
struct function_table {
    sqlite3_vtab base;
    struct ev_run *run;
    bool series;
};
struct function_cursor {
    sqlite3_vtab_cursor base;
    struct arena arena;
    struct rel_array array;
    int64_t start, step, at, count;
};

static int function_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                            sqlite3_vtab **out, char **message)
{
    UNUSED(argc);
    UNUSED(message);
    struct ev_run *run = aux;
    int rc = sqlite3_declare_vtab(
        db, "CREATE TABLE x(value, ord, sub, arg1 HIDDEN, arg2 HIDDEN, arg3 HIDDEN)");
    if (rc != SQLITE_OK)
        return rc;
    struct function_table *t = ARENA_NEW(run->env->keep, struct function_table);
    t->run = run;
    t->series = strcmp(argv[0], REL_SQL_SERIES) == 0;
    *out = &t->base;
    return SQLITE_OK;
}

/* Arguments are equalities on the hidden columns; a plan without all of them is refused. */
static int function_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    int wanted = ((const struct function_table *)v)->series ? 3 : 2, found = 0;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (c->op != SQLITE_INDEX_CONSTRAINT_EQ || c->iColumn < FN_ARG1 ||
            c->iColumn >= FN_ARG1 + wanted)
            continue;
        if (!c->usable)
            return SQLITE_CONSTRAINT;
        info->aConstraintUsage[i].argvIndex = c->iColumn - FN_ARG1 + 1;
        info->aConstraintUsage[i].omit = 1;
        found++;
    }
    info->estimatedCost = 10;
    info->estimatedRows = 10;
    return found == wanted ? SQLITE_OK : SQLITE_CONSTRAINT;
}

static int function_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    UNUSED(v);
    struct function_cursor *c = sqlite3_malloc(sizeof(*c));
    if (!c)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof(*c));
    arena_init(&c->arena, 1024);
    *out = &c->base;
    return SQLITE_OK;
}
static int function_close(sqlite3_vtab_cursor *v)
{
    arena_fini(&((struct function_cursor *)v)->arena);
    sqlite3_free(v);
    return SQLITE_OK;
}

static bool series_start(struct function_cursor *c, sqlite3_value **argv)
{
    for (int i = 0; i < 3; i++)
        if (sqlite3_value_type(argv[i]) == SQLITE_NULL)
            return true;
    c->start = sqlite3_value_int64(argv[0]);
    c->step = sqlite3_value_int64(argv[2]);
    int64_t stop = sqlite3_value_int64(argv[1]), distance;
    if (c->step == 0)
        return false;
    if (__builtin_sub_overflow(stop, c->start, &distance) || distance == INT64_MIN)
        return false;
    if ((distance >= 0) == (c->step > 0) || distance == 0)
        c->count = distance / c->step + 1;
    return true;
}

static int function_filter(sqlite3_vtab_cursor *v, int index, const char *text, int argc,
                           sqlite3_value **argv)
{
    UNUSED(index);
    UNUSED(text);
    struct function_cursor *c = (struct function_cursor *)v;
    struct function_table *t = (struct function_table *)v->pVtab;
    struct rel_env *env = t->run->env;
    arena_reset(&c->arena);
    c->array = (struct rel_array){0};
    c->at = c->count = 0;
    ASSERT(argc == (t->series ? 3 : 2));
    if (t->series) {
        if (series_start(c, argv))
            return SQLITE_OK;
        (void)rel_fail(env, ST_INVALID, "22023",
                       "step size cannot equal zero, nor the range overflow");
        return SQLITE_ERROR;
    }
    struct cell array = ev_cell(argv[0]);
    if (array.kind != CELL_TEXT)
        return SQLITE_OK;
    if (!rel_array_parse(&c->arena, arena_copy(&c->arena, array.b), sqlite3_value_int(argv[1]) != 0,
                         &c->array)) {
        (void)rel_fail(env, ST_INVALID, "22P02", "malformed array literal: \"%.*s\"",
                       (int)array.b.size, (const char *)array.b.data);
        return SQLITE_ERROR;
    }
    c->count = c->array.count;
    return SQLITE_OK;
}
static int function_next(sqlite3_vtab_cursor *v)
{
    ((struct function_cursor *)v)->at++;
    return SQLITE_OK;
}
static int function_eof(sqlite3_vtab_cursor *v)
{
    const struct function_cursor *c = (const struct function_cursor *)v;
    return c->at >= c->count;
}
static int function_column(sqlite3_vtab_cursor *v, sqlite3_context *ctx, int column)
{
    const struct function_cursor *c = (const struct function_cursor *)v;
    bool series = ((const struct function_table *)v->pVtab)->series;
    struct cell out = cell_null();
    if (column == FN_VALUE)
        out = series ? cell_int(c->start + c->at * c->step) : c->array.items[c->at];
    else if (column == FN_ORD)
        out = cell_int(c->at + 1);
    else if (column == FN_SUB)
        out = cell_int(c->at + c->array.first);
    ev_result(ctx, &out);
    return SQLITE_OK;
}
static int function_rowid(sqlite3_vtab_cursor *v, sqlite3_int64 *out)
{
    *out = ((const struct function_cursor *)v)->at;
    return SQLITE_OK;
}

const sqlite3_module ev_function_module = {
    .xConnect = function_connect,
    .xBestIndex = function_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = function_open,
    .xClose = function_close,
    .xFilter = function_filter,
    .xNext = function_next,
    .xEof = function_eof,
    .xColumn = function_column,
    .xRowid = function_rowid,
};

/* ---- pg_unnest_many(count, array, numbers, …) ---- */

enum { MANY_ORD = REL_UNNEST_MAX, MANY_COUNT };
struct many_cursor {
    sqlite3_vtab_cursor base;
    struct arena arena;
    struct rel_array arrays[REL_UNNEST_MAX];
    int64_t at, count;
};

static int many_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                        sqlite3_vtab **out, char **message)
{
    UNUSED(argc);
    UNUSED(argv);
    UNUSED(message);
    struct ev_run *run = aux;
    struct obuf o;
    obuf_init(&o);
    obuf_put(&o, "CREATE TABLE x(", 15);
    char text[64];
    for (unsigned i = 1; i <= REL_UNNEST_MAX; i++)
        obuf_put(&o, text, (size_t)snprintf(text, sizeof(text), "value%u,", i));
    obuf_put(&o, "ord,count HIDDEN", 16);
    for (unsigned i = 1; i <= REL_UNNEST_MAX; i++)
        obuf_put(&o, text,
                 (size_t)snprintf(text, sizeof(text), ",array%u HIDDEN,numbers%u HIDDEN", i, i));
    obuf_put(&o, ")", 2);
    int rc = sqlite3_declare_vtab(db, (const char *)o.data);
    obuf_fini(&o);
    if (rc != SQLITE_OK)
        return rc;
    struct function_table *t = ARENA_NEW(run->env->keep, struct function_table);
    t->run = run;
    *out = &t->base;
    return SQLITE_OK;
}

/* Arguments are equalities on the hidden columns, those that were given from the first on. */
static int many_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    UNUSED(v);
    int found = 0;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (c->op != SQLITE_INDEX_CONSTRAINT_EQ || c->iColumn < MANY_COUNT)
            continue;
        if (!c->usable)
            return SQLITE_CONSTRAINT;
        info->aConstraintUsage[i].argvIndex = c->iColumn - MANY_COUNT + 1;
        info->aConstraintUsage[i].omit = 1;
        found++;
    }
    info->estimatedCost = 10;
    info->estimatedRows = 10;
    return found > 0 ? SQLITE_OK : SQLITE_CONSTRAINT;
}

static int many_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    UNUSED(v);
    struct many_cursor *c = sqlite3_malloc(sizeof(*c));
    if (!c)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof(*c));
    arena_init(&c->arena, 1024);
    *out = &c->base;
    return SQLITE_OK;
}
static int many_close(sqlite3_vtab_cursor *v)
{
    arena_fini(&((struct many_cursor *)v)->arena);
    sqlite3_free(v);
    return SQLITE_OK;
}

static int many_filter(sqlite3_vtab_cursor *v, int index, const char *text, int argc,
                       sqlite3_value **argv)
{
    UNUSED(index);
    UNUSED(text);
    struct many_cursor *c = (struct many_cursor *)v;
    struct rel_env *env = ((struct function_table *)v->pVtab)->run->env;
    arena_reset(&c->arena);
    memset(c->arrays, 0, sizeof(c->arrays));
    c->at = c->count = 0;
    int count = (argc - 1) / 2;
    ASSERT(argc % 2 == 1 && count <= (int)REL_UNNEST_MAX);
    for (int i = 0; i < count; i++) {
        struct cell array = ev_cell(argv[1 + 2 * i]);
        if (array.kind != CELL_TEXT)
            continue;
        if (!rel_array_parse(&c->arena, arena_copy(&c->arena, array.b),
                             sqlite3_value_int(argv[2 + 2 * i]) != 0, &c->arrays[i])) {
            (void)rel_fail(env, ST_INVALID, "22P02", "malformed array literal: \"%.*s\"",
                           (int)array.b.size, (const char *)array.b.data);
            return SQLITE_ERROR;
        }
        if (c->arrays[i].count > c->count)
            c->count = c->arrays[i].count;
    }
    return SQLITE_OK;
}
static int many_next(sqlite3_vtab_cursor *v)
{
    ((struct many_cursor *)v)->at++;
    return SQLITE_OK;
}
static int many_eof(sqlite3_vtab_cursor *v)
{
    const struct many_cursor *c = (const struct many_cursor *)v;
    return c->at >= c->count;
}
static int many_column(sqlite3_vtab_cursor *v, sqlite3_context *ctx, int column)
{
    const struct many_cursor *c = (const struct many_cursor *)v;
    struct cell out = cell_null();
    if (column == MANY_ORD)
        out = cell_int(c->at + 1);
    else if (column < MANY_ORD && c->at < (int64_t)c->arrays[column].count)
        out = c->arrays[column].items[c->at];
    ev_result(ctx, &out);
    return SQLITE_OK;
}
static int many_rowid(sqlite3_vtab_cursor *v, sqlite3_int64 *out)
{
    *out = ((const struct many_cursor *)v)->at;
    return SQLITE_OK;
}

const sqlite3_module ev_many_module = {
    .xConnect = many_connect,
    .xBestIndex = many_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = many_open,
    .xClose = many_close,
    .xFilter = many_filter,
    .xNext = many_next,
    .xEof = many_eof,
    .xColumn = many_column,
    .xRowid = many_rowid,
};
