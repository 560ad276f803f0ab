/*
 * planner/relations/evaluator.c — the door to SQLite: runs a translated query.
 *
 * Each run opens an empty in-memory database, registers the relations the query reads as virtual
 * tables, the functions it calls, and drops it all at the end. Rows are not copied into SQLite: a
 * virtual table reads the cells that rel_build_rows made. An equality on a column is answered from
 * an index over that column, sorted at first use; without it joins of pg_attribute would be
 * quadratic.
 *
 * I1. Cost is bounded: STEPS_MAX instructions (54000), MEMORY_MAX bytes of SQLite's memory and of
 *     functions' results (53200), TEXT_MAX bytes of one value (54000), RESULT_MAX bytes of all rows
 *     (54000), which are kept until the last one is there. It ends soon after it is cancelled.
 * I2. All memory of a run is allocated and freed by the thread that runs it, so that a thread-local
 *     count is its budget.
 * I3. env->arena is scratch during a function call and reset after it; env->keep lives for the run.
 */
#include "planner/relations/relations.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS_MAX 50000000
#define STEPS_CHECK 100000
#define MEMORY_MAX (256 * 1024 * 1024)
#define TEXT_MAX (4 * 1024 * 1024)
#define RESULT_MAX (32 * 1024 * 1024)
#define TOO_LONG "the query over catalogue relations takes too many steps"

struct run {
    const struct catalog_query *q;
    struct rel_env *env;
    struct arena scratch;
    long steps;
    size_t result_bytes;
    sqlite3 *db;
};

/* ---- SQLite's memory, counted by thread (I2) ---- */

static __thread long long budget_used;
static __thread bool budget_on;

#define HEADER 16 /* keeps the alignment of malloc */
static void *mem_malloc(int n)
{
    if (n <= 0 || (budget_on && budget_used + n > MEMORY_MAX))
        return NULL;
    char *p = malloc((size_t)n + HEADER);
    if (!p)
        return NULL;
    memcpy(p, &n, sizeof(n));
    budget_used += n;
    return p + HEADER;
}
static int mem_size(void *p)
{
    int n;
    memcpy(&n, (char *)p - HEADER, sizeof(n));
    return n;
}
static void mem_free(void *p)
{
    if (!p)
        return;
    budget_used -= mem_size(p);
    free((char *)p - HEADER);
}
static void *mem_realloc(void *p, int n)
{
    int old = mem_size(p);
    if (n <= 0 || (budget_on && budget_used + n - old > MEMORY_MAX))
        return NULL;
    char *grown = realloc((char *)p - HEADER, (size_t)n + HEADER);
    if (!grown)
        return NULL;
    memcpy(grown, &n, sizeof(n));
    budget_used += n - old;
    return grown + HEADER;
}
static int mem_roundup(int n)
{
    return (n + 7) & ~7;
}
static int mem_init(void *arg)
{
    UNUSED(arg);
    return SQLITE_OK;
}
static void mem_shutdown(void *arg)
{
    UNUSED(arg);
}

static void library_init(void)
{
    static const sqlite3_mem_methods methods = {
        .xMalloc = mem_malloc,
        .xFree = mem_free,
        .xRealloc = mem_realloc,
        .xSize = mem_size,
        .xRoundup = mem_roundup,
        .xInit = mem_init,
        .xShutdown = mem_shutdown,
    };
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    (void)sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
    (void)sqlite3_initialize();
}
static pthread_once_t library_once = PTHREAD_ONCE_INIT;

/* ---- values ---- */

static struct cell cell_of_value(sqlite3_value *v)
{
    switch (sqlite3_value_type(v)) {
    case SQLITE_INTEGER: return cell_int(sqlite3_value_int64(v));
    case SQLITE_FLOAT: return cell_real(sqlite3_value_double(v));
    case SQLITE_NULL: return cell_null();
    default: {
        const void *data = sqlite3_value_text(v);
        return cell_bytes(bytes_make(data ? data : "", (size_t)sqlite3_value_bytes(v)));
    }
    }
}

static void result_cell(sqlite3_context *c, const struct cell *v)
{
    switch (v->kind) {
    case CELL_INT: sqlite3_result_int64(c, v->i); break;
    case CELL_REAL: sqlite3_result_double(c, v->d); break;
    case CELL_TEXT:
        sqlite3_result_text64(c, v->b.size ? (const char *)v->b.data : "", v->b.size,
                              SQLITE_TRANSIENT, SQLITE_UTF8);
        break;
    case CELL_NULL:
    default: sqlite3_result_null(c); break;
    }
}

/* ---- scalar functions ---- */

struct bound_function {
    struct run *run;
    const struct rel_function *f;
};

/* The kind of cell that the argument's letter promises, whatever an overflow made of it. */
static void fit_arg(struct cell *c, uint32_t type)
{
    bool integer = type == OID_INT8 || type == OID_OID || type == OID_BOOL ||
                   type == OID_REGCLASS || type == OID_TIMESTAMPTZ;
    if (!integer || c->kind == CELL_INT || c->kind == CELL_NULL)
        return;
    double d = c->kind == CELL_REAL ? c->d : 0;
    *c = cell_int(d > -9e18 && d < 9e18 ? (int64_t)d : 0);
}

/* A call costs steps by the bytes it looks at, so that costly functions do not outrun I1. */
static bool charge(struct run *run, const struct cell *args, int argc)
{
    size_t size = 0;
    for (int i = 0; i < argc; i++)
        size += args[i].kind == CELL_TEXT ? args[i].b.size : 8;
    run->steps += 10 + (long)(size / 16);
    if (run->steps <= STEPS_MAX)
        return true;
    return rel_fail(run->env, ST_LIMIT, "54000", TOO_LONG);
}

static void call_function(sqlite3_context *c, int argc, sqlite3_value **argv)
{
    struct bound_function *b = sqlite3_user_data(c);
    struct rel_env *env = b->run->env;
    struct cell args[128], out = cell_null();
    ASSERT(argc <= (int)ARRAY_LEN(args));
    for (int i = 0; i < argc; i++) {
        args[i] = cell_of_value(argv[i]);
        fit_arg(&args[i], rel_function_arg_type(b->f, (unsigned)i));
        if (args[i].kind == CELL_NULL && !b->f->not_strict) {
            sqlite3_result_null(c);
            return;
        }
    }
    env->arena = &b->run->scratch;
    bool ok = charge(b->run, args, argc) && b->f->call(env, args, (unsigned)argc, &out);
    if (ok)
        result_cell(c, &out);
    else
        sqlite3_result_error(c, "failed", -1); /* env->err has the reason */
    env->arena = env->keep;
    arena_reset(&b->run->scratch);
}

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
        row[i] = cell_of_value(argv[i + 1]);
        if (row[i].kind == CELL_TEXT)
            row[i].b = arena_copy(g->arena, row[i].b);
    }
}

static void agg_step(sqlite3_context *c, int argc, sqlite3_value **argv)
{
    struct collected *g = sqlite3_aggregate_context(c, sizeof(*g));
    if (!g || (g->arena && g->arena->used_bytes > MEMORY_MAX / 4)) {
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

static void array_final(sqlite3_context *c)
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
    result_cell(c, &out);
    agg_free(g);
}

static void string_final(sqlite3_context *c)
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
    result_cell(c, &out);
    obuf_fini(&o);
    agg_free(g);
}

/* ---- a scalar sub-query: one row at most ---- */

struct single {
    size_t count;
    sqlite3_value *value;
};
static void single_step(sqlite3_context *c, int argc, sqlite3_value **argv)
{
    ASSERT(argc == 1);
    struct run *run = sqlite3_user_data(c);
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
static void single_final(sqlite3_context *c)
{
    struct single *s = sqlite3_aggregate_context(c, 0);
    if (s && s->value)
        sqlite3_result_value(c, s->value);
    if (s)
        sqlite3_value_free(s->value);
}

/* ---- relations as virtual tables ---- */

struct table {
    sqlite3_vtab base;
    struct run *run;
    struct rel_build rows;
    uint32_t *sorted[REL_COLUMNS_MAX]; /* row numbers by column, made at first use */
};
struct cursor {
    sqlite3_vtab_cursor base;
    const uint32_t *order; /* NULL: as emitted */
    size_t at, end;
};

struct bound_relation {
    struct run *run;
    const struct rel *rel;
};

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **message)
{
    UNUSED(argc);
    UNUSED(argv);
    UNUSED(message);
    struct bound_relation *b = aux;
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
    struct cell key = cell_of_value(argv[0]);
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
    result_cell(ctx, cell_at((const struct table *)v->pVtab, row, (unsigned)column));
    return SQLITE_OK;
}
static int table_rowid(sqlite3_vtab_cursor *v, sqlite3_int64 *out)
{
    const struct cursor *c = (const struct cursor *)v;
    *out = c->order ? (sqlite3_int64)c->order[c->at] : (sqlite3_int64)c->at;
    return SQLITE_OK;
}

static const sqlite3_module table_module = {
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
    struct run *run;
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
    struct run *run = aux;
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
    struct cell array = cell_of_value(argv[0]);
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
    result_cell(ctx, &out);
    return SQLITE_OK;
}
static int function_rowid(sqlite3_vtab_cursor *v, sqlite3_int64 *out)
{
    *out = ((const struct function_cursor *)v)->at;
    return SQLITE_OK;
}

static const sqlite3_module function_module = {
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

/* ---- results ---- */

/* The array type that travels for OID: itself, or text[] for arrays of names and the like. */
static uint32_t wire_array(uint32_t oid)
{
    bool is_array = false;
    (void)rel_type_find(oid, &is_array);
    return rel_type_is_wire(oid) ? oid : is_array ? OID_TEXT_ARRAY : 0;
}

static bool array_value(struct arena *a, struct rel_env *env, uint32_t oid, bytes text,
                        struct pl_value *out)
{
    uint32_t wire = wire_array(oid), element = rel_type_element_of(wire);
    struct rel_array parsed;
    if (wire == 0 || !rel_array_parse(a, text, false, &parsed))
        return false;
    struct pl_value *items = ARENA_ARRAY(a, struct pl_value, parsed.count + 1);
    for (unsigned i = 0; i < parsed.count; i++) {
        struct err err;
        items[i] = (struct pl_value){.oid = element, .null = parsed.items[i].kind == CELL_NULL};
        if (!items[i].null && pl_value_from_text(element, parsed.items[i].b, env->ctx->style,
                                                 env->ctx->now, a, &items[i], &err) != ST_OK)
            return false;
    }
    *out = (struct pl_value){.oid = wire, .array = {items, parsed.count}};
    return true;
}

/* What does not travel as itself travels as its text, under its own type in the row description. */
static void text_value(struct rel_env *env, const struct cell *c, uint32_t oid,
                       struct pl_value *out)
{
    struct cell text;
    if (!rel_cast_out(env, c, oid, &text))
        text = *c;
    *out = (struct pl_value){.oid = OID_TEXT, .b = rel_cell_text(env, &text)};
}

static status value_of_cell(struct rel_env *env, const struct cell *c, uint32_t oid,
                            struct pl_value *out, struct err *err)
{
    *out = (struct pl_value){.oid = oid, .null = true};
    if (c->kind == CELL_NULL)
        return ST_OK;
    if (rel_type_family(oid) == FAMILY_ARRAY) {
        bytes text = rel_cell_text(env, c);
        if (!array_value(env->arena, env, oid, text, out))
            *out = (struct pl_value){.oid = OID_TEXT, .b = text};
        return ST_OK;
    }
    if ((oid == OID_XID || oid == 29) && c->kind == CELL_INT) {
        *out = (struct pl_value){.oid = OID_OID, .i = c->i};
        return ST_OK;
    }
    if (!rel_type_is_wire(oid)) {
        text_value(env, c, oid, out);
        return ST_OK;
    }
    out->null = false;
    bool real = oid == OID_FLOAT4 || oid == OID_FLOAT8;
    if (oid == OID_CHAR) {
        bytes text = rel_cell_text(env, c);
        out->i = text.size ? text.data[0] : 0;
    } else if (real) {
        out->d = c->kind == CELL_REAL ? c->d : c->kind == CELL_INT ? (double)c->i : 0;
    } else if (rel_type_family(oid) == FAMILY_TEXT || oid == OID_NUMERIC) {
        out->b = rel_cell_text(env, c);
    } else if (oid == OID_BYTEA) {
        return pl_value_from_text(oid, rel_cell_text(env, c), env->ctx->style, env->ctx->now,
                                  env->arena, out, err);
    } else if (c->kind == CELL_INT) {
        out->i = c->i;
        if ((oid == OID_INT4 && c->i != (int32_t)c->i) ||
            (oid == OID_INT2 && c->i != (int16_t)c->i))
            return err_set_state(err, ST_INVALID, "22003", "%s out of range", pl_type_name(oid));
    } else {
        return err_set_state(err, ST_INVALID, "22003", "%s out of range", pl_type_name(oid));
    }
    return ST_OK;
}

/* ---- parameters ---- */

static struct cell cell_of_param(struct rel_env *env, const struct pl_value *v)
{
    if (v->null)
        return cell_null();
    if (rel_type_element_of(v->oid) != 0 && v->oid != OID_INT2VECTOR && v->oid != OID_OIDVECTOR) {
        struct cell *items = ARENA_ARRAY(env->keep, struct cell, v->array.count + 1);
        for (unsigned i = 0; i < v->array.count; i++)
            items[i] = cell_of_param(env, &v->array.items[i]);
        return cell_bytes(rel_array_format(env->keep, items, v->array.count));
    }
    switch (v->oid) {
    case OID_FLOAT4:
    case OID_FLOAT8: return cell_real(v->d);
    case OID_NUMERIC: return cell_real(strtod(arena_strdup(env->keep, v->b), NULL));
    case OID_CHAR: {
        char letter = (char)v->i;
        return cell_bytes(arena_copy(env->keep, bytes_make(&letter, letter != 0)));
    }
    case OID_BYTEA: {
        struct obuf o;
        obuf_init(&o);
        pl_value_to_text(v, env->ctx->style, &o);
        struct cell c = cell_bytes(arena_copy(env->keep, bytes_make(o.data, o.size)));
        obuf_fini(&o);
        return c;
    }
    default: break;
    }
    bool number = rel_type_is_integer(v->oid) || v->oid == OID_BOOL ||
                  rel_type_family(v->oid) == FAMILY_TIME ||
                  rel_type_family(v->oid) == FAMILY_INTERVAL;
    return number ? cell_int(v->i) : cell_bytes(v->b);
}

static int bind_params(struct rel_env *env, sqlite3_stmt *stmt, const struct pl_value *params,
                       unsigned count)
{
    for (unsigned i = 0; i < count && (int)i < sqlite3_bind_parameter_count(stmt); i++) {
        struct cell c = cell_of_param(env, &params[i]);
        int at = (int)i + 1, rc;
        if (c.kind == CELL_INT)
            rc = sqlite3_bind_int64(stmt, at, c.i);
        else if (c.kind == CELL_REAL)
            rc = sqlite3_bind_double(stmt, at, c.d);
        else if (c.kind == CELL_TEXT)
            rc = sqlite3_bind_text64(stmt, at, c.b.size ? (const char *)c.b.data : "", c.b.size,
                                     SQLITE_TRANSIENT, SQLITE_UTF8);
        else
            rc = sqlite3_bind_null(stmt, at);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

/* ---- the run ---- */

static bool cancelled(const struct run *run)
{
    return run->env->cancel != NULL && atomic_load_explicit(run->env->cancel, memory_order_relaxed);
}

static int progress(void *arg)
{
    struct run *run = arg;
    run->steps += STEPS_CHECK;
    return run->steps > STEPS_MAX || cancelled(run);
}

static int register_all(struct run *run)
{
    const struct catalog_query *q = run->q;
    struct arena *a = run->env->keep;
    char name[32];
    for (unsigned i = 0; i < q->rel_count; i++) {
        struct bound_relation *b = ARENA_NEW(a, struct bound_relation);
        *b = (struct bound_relation){run, q->rels[i]};
        (void)snprintf(name, sizeof(name), REL_SQL_RELATION, q->rels[i]->index);
        int rc = sqlite3_create_module_v2(run->db, name, &table_module, b, NULL);
        if (rc != SQLITE_OK)
            return rc;
    }
    const struct rel_function *f;
    for (unsigned i = 0; (f = rel_function_at(i)) != NULL; i++) {
        if (!q->functions[i])
            continue;
        struct bound_function *b = ARENA_NEW(a, struct bound_function);
        *b = (struct bound_function){run, f};
        (void)snprintf(name, sizeof(name), REL_SQL_FUNCTION, i);
        int rc = sqlite3_create_function_v2(run->db, name, -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                            b, call_function, NULL, NULL, NULL);
        if (rc != SQLITE_OK)
            return rc;
    }
    int rc = sqlite3_create_module_v2(run->db, REL_SQL_UNNEST, &function_module, run, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_module_v2(run->db, REL_SQL_SERIES, &function_module, run, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(run->db, REL_SQL_SINGLE, 1, SQLITE_UTF8, run, NULL,
                                        single_step, single_final, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(run->db, REL_SQL_ARRAY_AGG, -1, SQLITE_UTF8, NULL, NULL,
                                        agg_step, array_final, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(run->db, REL_SQL_STRING_AGG, -1, SQLITE_UTF8, NULL, NULL,
                                        agg_step, string_final, NULL);
    return rc;
}

static status open_database(struct run *run)
{
    int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(":memory:", &run->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(run->db, "PRAGMA temp_store=MEMORY", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = register_all(run);
    if (rc != SQLITE_OK)
        return ST_NO_MEMORY;
    (void)sqlite3_limit(run->db, SQLITE_LIMIT_LENGTH, TEXT_MAX);
    sqlite3_progress_handler(run->db, STEPS_CHECK, progress, run);
    return ST_OK;
}

/* SQLite's outcome in our terms; a function's own error comes first. */
static status failed(struct run *run, int rc, struct err *err)
{
    if (run->env->err.code != ST_OK) {
        *err = run->env->err;
        return err->code;
    }
    const char *message = sqlite3_errmsg(run->db);
    switch (rc & 0xff) {
    case SQLITE_INTERRUPT:
        if (cancelled(run))
            return err_set(err, ST_CANCELLED, "canceling statement due to user request");
        return err_set_state(err, ST_LIMIT, "54000", TOO_LONG);
    case SQLITE_NOMEM:
        return err_set(err, ST_NO_MEMORY,
                       "the query over catalogue relations needs too much memory");
    case SQLITE_TOOBIG:
        return err_set_state(err, ST_LIMIT, "54000",
                             "a value in the query over catalogue relations is too long");
    default:
        if (strstr(message, "stack overflow") || strstr(message, "maximum depth"))
            return err_set(err, ST_TOO_COMPLEX,
                           "the statement is nested too deeply for catalogue relations");
        return err_set(err, ST_UNSUPPORTED,
                       "the evaluator of catalogue relations cannot do this: %s", message);
    }
}

/* What whoever keeps a row needs for value C of it, and the work to send it. An array's item takes
 * more than its text: at least two bytes of text each. */
static status charge_result(struct run *run, const struct cell *c, uint32_t oid, struct err *err)
{
    size_t size = c->kind == CELL_TEXT ? c->b.size : 0;
    if (rel_type_family(oid) == FAMILY_ARRAY)
        size *= sizeof(struct pl_value) / 2;
    run->result_bytes += sizeof(struct pl_value) + size;
    run->steps += 10;
    if (run->result_bytes > RESULT_MAX)
        return err_set_state(err, ST_LIMIT, "54000",
                             "the result of the query over catalogue relations is too long");
    return run->steps > STEPS_MAX ? err_set_state(err, ST_LIMIT, "54000", TOO_LONG) : ST_OK;
}

static status emit_row(struct run *run, sqlite3_stmt *stmt, struct pl_value *values,
                       void (*emit)(void *arg, const struct pl_value *values), void *arg,
                       struct err *err)
{
    const struct catalog_query *q = run->q;
    struct rel_env *env = run->env;
    env->arena = &run->scratch;
    status st = ST_OK;
    for (unsigned i = 0; st == ST_OK && i < q->column_count; i++) {
        struct cell c = cell_of_value(sqlite3_column_value(stmt, (int)i));
        st = charge_result(run, &c, q->columns[i].oid, err);
        if (st == ST_OK)
            st = value_of_cell(env, &c, q->columns[i].oid, &values[i], err);
    }
    if (st == ST_OK)
        emit(arg, values);
    env->arena = env->keep;
    arena_reset(&run->scratch);
    return st;
}

status rel_evaluate(const struct catalog_query *q, struct rel_env *env,
                    const struct pl_value *params, unsigned count,
                    void (*emit)(void *arg, const struct pl_value *values), void *arg,
                    struct err *err)
{
    struct run run = {.q = q, .env = env};
    sqlite3_stmt *stmt = NULL;
    status st;
    int rc;

    (void)pthread_once(&library_once, library_init);
    ASSERT(env->keep && env->arena == env->keep);
    arena_init(&run.scratch, 16 * 1024);
    budget_used = 0;
    budget_on = true;
    struct pl_value *values = ARENA_ARRAY(env->keep, struct pl_value, q->column_count + 1);
    st = open_database(&run);
    if (st != ST_OK) {
        st = failed(&run, SQLITE_NOMEM, err);
        goto out;
    }
    rc = sqlite3_prepare_v2(run.db, q->sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = bind_params(env, stmt, params, count);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW)
            ST_GOTO(out, emit_row(&run, stmt, values, emit, arg, err));
    }
    st = rc == SQLITE_DONE ? ST_OK : failed(&run, rc, err);
out:
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(run.db);
    budget_on = false;
    rel_regexes_free(env);
    arena_fini(&run.scratch);
    return st;
}
