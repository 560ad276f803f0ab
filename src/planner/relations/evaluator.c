/*
 * planner/relations/evaluator.c — runs a translated query in SQLite.
 *
 * Each run opens an empty in-memory database, registers the relations the query reads as virtual
 * tables, the functions it calls, and drops it all at the end.
 *
 * I1. Cost is bounded: STEPS_MAX instructions (54000), EV_MEMORY_MAX bytes of SQLite's memory and
 *     of functions' results (53200), TEXT_MAX bytes of one value (54000), RESULT_MAX bytes of all
 *     rows (54000), which are kept until the last one is there. It ends soon after it is cancelled.
 * I2. All memory of a run is allocated and freed by the thread that runs it, so that a thread-local
 *     count is its budget.
 * I3. env->arena is scratch during a function call and reset after it; env->keep lives for the run.
 */
#include "planner/relations/evaluator.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS_MAX 50000000
#define STEPS_CHECK 100000
#define TEXT_MAX (4 * 1024 * 1024)
#define RESULT_MAX (32 * 1024 * 1024)
#define TOO_LONG "the query over catalogue relations takes too many steps"

/* ---- SQLite's memory, counted by thread (I2) ---- */

static __thread long long budget_used;
static __thread bool budget_on;

#define HEADER 16 /* keeps the alignment of malloc */
static void *mem_malloc(int n)
{
    if (n <= 0 || (budget_on && budget_used + n > EV_MEMORY_MAX))
        return NULL;
    char *p = malloc((size_t)n + HEADER);
    if (!p)
        return NULL;
    memcpy(p, &n, sizeof(n));
    memory_count(MEMORY_CATALOG, n + HEADER);
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
    memory_count(MEMORY_CATALOG, -(ptrdiff_t)(mem_size(p) + HEADER));
    budget_used -= mem_size(p);
    free((char *)p - HEADER);
}
static void *mem_realloc(void *p, int n)
{
    int old = mem_size(p);
    if (n <= 0 || (budget_on && budget_used + n - old > EV_MEMORY_MAX))
        return NULL;
    char *grown = realloc((char *)p - HEADER, (size_t)n + HEADER);
    if (!grown)
        return NULL;
    memcpy(grown, &n, sizeof(n));
    memory_count(MEMORY_CATALOG, n - old);
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

/* ---- scalar functions ---- */

struct bound_function {
    struct ev_run *run;
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
static bool charge(struct ev_run *run, const struct cell *args, int argc)
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
        args[i] = ev_cell(argv[i]);
        fit_arg(&args[i], rel_function_arg_type(b->f, (unsigned)i));
        if (args[i].kind == CELL_NULL && !b->f->not_strict) {
            sqlite3_result_null(c);
            return;
        }
    }
    env->arena = &b->run->scratch;
    bool ok = charge(b->run, args, argc) && b->f->call(env, args, (unsigned)argc, &out);
    if (ok)
        ev_result(c, &out);
    else
        sqlite3_result_error(c, "failed", -1); /* env->err has the reason */
    env->arena = env->keep;
    arena_reset(&b->run->scratch);
}

/* ---- the run ---- */

static bool cancelled(const struct ev_run *run)
{
    return run->env->cancel != NULL && atomic_load_explicit(run->env->cancel, memory_order_relaxed);
}

static int progress(void *arg)
{
    struct ev_run *run = arg;
    run->steps += STEPS_CHECK;
    return run->steps > STEPS_MAX || cancelled(run);
}

static int register_all(struct ev_run *run)
{
    const struct catalog_query *q = run->q;
    struct arena *a = run->env->keep;
    char name[32];
    for (unsigned i = 0; i < q->rel_count; i++) {
        struct ev_relation *b = ARENA_NEW(a, struct ev_relation);
        *b = (struct ev_relation){run, q->rels[i]};
        (void)snprintf(name, sizeof(name), REL_SQL_RELATION, q->rels[i]->index);
        int rc = sqlite3_create_module_v2(run->db, name, &ev_table_module, b, NULL);
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
        /* What sets something must not be called ahead of the rows that it is for. */
        int kind =
            strcmp(f->name, "set_config") == 0 ? SQLITE_UTF8 : SQLITE_UTF8 | SQLITE_DETERMINISTIC;
        int rc =
            sqlite3_create_function_v2(run->db, name, -1, kind, b, call_function, NULL, NULL, NULL);
        if (rc != SQLITE_OK)
            return rc;
    }
    int rc = sqlite3_create_module_v2(run->db, REL_SQL_UNNEST, &ev_function_module, run, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_module_v2(run->db, REL_SQL_SERIES, &ev_function_module, run, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_module_v2(run->db, REL_SQL_UNNEST_MANY, &ev_many_module, run, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(run->db, REL_SQL_SINGLE, 1, SQLITE_UTF8, run, NULL,
                                        ev_single_step, ev_single_final, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(run->db, REL_SQL_ARRAY_AGG, -1, SQLITE_UTF8, NULL, NULL,
                                        ev_agg_step, ev_array_final, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(run->db, REL_SQL_STRING_AGG, -1, SQLITE_UTF8, NULL, NULL,
                                        ev_agg_step, ev_string_final, NULL);
    return rc;
}

static status open_database(struct ev_run *run)
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
static status failed(struct ev_run *run, int rc, struct err *err)
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
static status charge_result(struct ev_run *run, const struct cell *c, uint32_t oid, struct err *err)
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

static status emit_row(struct ev_run *run, sqlite3_stmt *stmt, struct pl_value *values,
                       void (*emit)(void *arg, const struct pl_value *values), void *arg,
                       struct err *err)
{
    const struct catalog_query *q = run->q;
    struct rel_env *env = run->env;
    env->arena = &run->scratch;
    status st = ST_OK;
    for (unsigned i = 0; st == ST_OK && i < q->column_count; i++) {
        struct cell c = ev_cell(sqlite3_column_value(stmt, (int)i));
        st = charge_result(run, &c, q->columns[i].oid, err);
        if (st == ST_OK)
            st = ev_value(env, &c, q->columns[i].oid, &values[i], err);
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
    struct ev_run run = {.q = q, .env = env};
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
        rc = ev_bind_params(env, stmt, params, count);
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
