/*
 * frontend/execute.c — running a portal.
 *
 * Vocabulary: a *run* is one execution of a portal, up to its row limit; its *source* is the portal
 * whose rows go out, which may be another one (FETCH: the cursor; EXECUTE: the prepared statement);
 * a *page* is what one cl_read gives.
 *
 *   fe_run ─> fe_run_plan ─┬─> fe_run_source ─> read_pages │ write │ values │ catalogue │ function
 *                          └─> utility.c, cursor.c, copy_*.c
 *
 * Reads go page by page straight into the output, and stop while the client does not take it. A
 * page's rows are encoded by the thread that reads it (on_page_row). What is not a read gives its
 * rows at once; under a row limit they wait in the portal's store.
 *
 * Invariants
 *   X1  Every run ends once: fe_run returns its outcome, or returned ST_PENDING and DONE gets it.
 *   X2  A portal of a read remembers its position by key, in its own `page` arena; between pages
 *       nothing is held but the transaction's snapshot.
 *   X3  A write is run once per portal, and so is what is no query but gives rows (FETCH, EXECUTE,
 *       EXPLAIN, SHOW): a second Execute gives what is left of its rows.
 */
#include "frontend/execute.h"
#include "base/assert.h"
#include "base/decimal.h"
#include "cluster/views.h"
#include <stdio.h>
#include <stdlib.h>

/* A long read lets others have their turn after each page. */
#define PAGES_PER_TURN 1u

static NODISCARD status read_pages(struct fe_session *s);
static NODISCARD status bad_format(struct fe_session *s);

/* -- beginning and end ------------------------------------------------------------------------- */

static void release(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    struct fe_run *r = &w->run;
    if (r->counted != NULL) {
        uint64_t now = env_mono_us(cl_node_env(s->worker->node));
        pl_pattern_count(s->worker->planner, r->counted,
                         now > r->started_us ? now - r->started_us : 0, st);
        s->worker->clock_us = now;
    }
    r->counted = NULL;
    fe_portal_unref(s, r->source);
    fe_portal_unref(s, r->portal);
    fe_statement_unref(s, r->inner);
    r->source = r->portal = NULL;
    r->inner = NULL;
    arena_reset(&w->call_arena);
}

static status ended(struct fe_session *s, status st)
{
    struct fe_run *r = &s->work->run;
    if (st == ST_OK && r->bad_row)
        return bad_format(s);
    if (st == ST_OK && r->told != NULL)
        fe_told_end(s, r->told);
    return st;
}

status fe_run(struct fe_session *s, struct fe_portal *p, int64_t limit, bool describe,
              fe_next *done)
{
    struct fe_run *r = &fe_work(s)->run;
    ASSERT_INV("X1", r->portal == NULL);
    struct obuf scratch = r->scratch;
    *r = (struct fe_run){.portal = p,
                         .formats = p->formats,
                         .format_count = p->format_count,
                         .limit = limit,
                         .describe = describe,
                         .done = done,
                         .scratch = scratch,
                         .started_us = fe_run_clock(s->worker),
                         .counted = p->statement->stmt.plan};
    p->refs++;
    status st = fe_run_plan(s, p);
    st = ended(s, st);
    if (st != ST_PENDING)
        release(s, st);
    return st;
}

void fe_run_finish(struct fe_session *s, status st)
{
    if (st == ST_PENDING)
        return;
    fe_next *done = s->work->run.done;
    st = ended(s, st);
    release(s, st);
    done(s, st);
}

static void put_tag(char *out, size_t size, const char *word, int64_t count)
{
    size_t n = strlen(word);
    ASSERT(n + 1 + DECIMAL_MAX < size);
    memcpy(out, word, n);
    out[n++] = ' ';
    n += decimal_put(out + n, count);
    out[n] = '\0';
}

void fe_run_tag(struct fe_run *r, const char *word, int64_t count)
{
    put_tag(r->tag, sizeof r->tag, word, count);
}

status fe_check_cancel(struct fe_session *s)
{
    struct fe_work *w = s->work;
    if (LIKELY(!w->cancelled))
        return ST_OK;
    return err_set(&w->err, ST_CANCELLED, "canceling statement due to %s",
                   w->timed_out ? "statement timeout" : "user request");
}

static void call_done(struct cl_call *call, status st)
{
    fe_resume(call->arg, st);
}

struct cl_call *fe_call(struct fe_session *s)
{
    struct cl_call *call = &s->work->call;
    call->done = call_done;
    call->arg = s;
    call->arena = &s->work->call_arena;
    call->on_row = NULL;
    call->anywhere = false;
    call->timed = s->work->run.timed;
    call->result = (struct kv_result){0};
    call->err.code = ST_OK;
    return call;
}

/* The error of a call, in the session's words. */
static NODISCARD status call_failed(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    if (st == ST_CANCELLED) {
        w->cancelled = true;
        return fe_check_cancel(s);
    }
    w->err = w->call.err;
    err_default(&w->err, st);
    return st;
}

/* -- binding ----------------------------------------------------------------------------------- */

status fe_portal_bind(struct fe_session *s, struct fe_portal *p)
{
    if (p->bound_ready)
        return ST_OK;
    struct pl_context context;
    fe_context(s, &context);
    ST_TRY(pl_bind(&p->statement->stmt, p->params, p->param_count, &context, &p->arena, &p->bound,
                   &s->work->err));
    p->bound_ready = true;
    return ST_OK;
}

status fe_refuse_locking(struct fe_session *s, struct fe_portal *p)
{
    if (fe_portal_bind(s, p) == ST_OK && p->bound.read.for_update)
        return err_set_state(&s->work->err, ST_TXN_STATE, "25006",
                             "cannot execute SELECT FOR UPDATE in a read-only transaction");
    err_clear(&s->work->err); /* what else is wrong is said when it runs */
    return ST_OK;
}

static const struct pl_column explain_column = {
    .name = "QUERY PLAN", .oid = OID_TEXT, .typmod = -1, .source = 0};
static const struct pl_column show_all_columns[] = {
    {.name = "name", .oid = OID_TEXT, .typmod = -1, .source = 0},
    {.name = "setting", .oid = OID_TEXT, .typmod = -1, .source = 1},
    {.name = "description", .oid = OID_TEXT, .typmod = -1, .source = 2},
};

static struct fe_shape show_shape(const struct fe_statement *st)
{
    const char *name = st->stmt.plan->utility->name;
    if (name == NULL)
        return (struct fe_shape){show_all_columns, ARRAY_LEN(show_all_columns), true};
    if (st->stmt.plan->column_count == 1)
        return (struct fe_shape){st->stmt.plan->columns, 1, true};
    /* Kept with the statement: a description may be asked for again. */
    struct fe_statement *owner = (struct fe_statement *)(uintptr_t)st;
    struct pl_column *c = ARENA_NEW(&owner->arena, struct pl_column);
    const char *proper = fe_settings_name(name);
    *c = (struct pl_column){.name = proper != NULL ? proper : name, .oid = OID_TEXT, .typmod = -1};
    return (struct fe_shape){c, 1, true};
}

bool fe_is_source(const struct pl_plan *plan)
{
    return plan != NULL &&
           (plan->kind == PL_READ || plan->kind == PL_WRITE || plan->kind == PL_VALUES ||
            plan->kind == PL_CATALOG || plan->kind == PL_FUNCTION);
}

struct fe_shape fe_statement_shape(struct fe_session *s, const struct fe_statement *st)
{
    const struct pl_plan *plan = st->stmt.plan;
    struct fe_shape none = {0};
    if (plan == NULL)
        return none;
    if (plan->kind == PL_FETCH) {
        const struct fe_portal *p = fe_portal_find(s, plan->utility->name);
        bool rows = p != NULL && fe_is_source(p->statement->stmt.plan) && !plan->utility->is_move;
        return rows ? fe_statement_shape(s, p->statement) : none;
    }
    if (plan->kind == PL_EXECUTE) {
        const struct fe_statement *named = fe_statement_find(s, plan->utility->name);
        bool loops =
            named != NULL && named->stmt.plan != NULL && named->stmt.plan->kind == PL_EXECUTE;
        return named == NULL || loops ? none : fe_statement_shape(s, named);
    }
    if (plan->kind == PL_SHOW)
        return show_shape(st);
    if (plan->kind == PL_EXPLAIN)
        return (struct fe_shape){&explain_column, 1, true};
    if (plan->kind == PL_COPY_IN || plan->kind == PL_COPY_OUT || !plan->returns_rows)
        return none;
    return (struct fe_shape){plan->columns, plan->column_count, true};
}

/* -- the end of a source ----------------------------------------------------------------------- */

static NODISCARD status source_end(struct fe_session *s, status st)
{
    if (st != ST_OK)
        return st;
    struct fe_run *r = &s->work->run;
    struct fe_portal *p = r->source;
    if (p->stored) {
        r->rows = 0;
        p->done = fe_store_deliver(s, p);
    }
    if (r->sink == FE_SINK_ROWS && r->shape.rows)
        fe_describe_once(s);
    return r->after(s);
}

/* Rows that were asked for one by one end in PortalSuspended as soon as the number is reached. */
static NODISCARD status rows_out(struct fe_session *s)
{
    struct fe_run *r = &s->work->run;
    struct fe_portal *p = r->source;
    const char *word = p->statement->stmt.plan->tag;
    bool limited = r->limit != INT64_MAX && r->shape.rows && r->rows == r->limit;
    if (limited && (p->stored || p->statement->stmt.plan->kind == PL_READ))
        r->suspended = true;
    else if (r->shape.rows)
        fe_run_tag(r, word, r->rows);
    else
        memcpy(r->tag, p->tag, sizeof p->tag);
    return ST_OK;
}

/* -- reads ------------------------------------------------------------------------------------- */

static bool on_row(void *arg, const struct kv_row *row)
{
    const struct fe_session *s = arg;
    return !s->gone && fe_row_of_kv(arg, row) && !s->work->run.bad_row;
}

/* On whichever thread the page is read: touches nothing but the page. */
static bool on_page_row(void *arg, const struct kv_row *row)
{
    struct fe_page *page = &((struct fe_session *)arg)->work->run.page;
    fe_row_encode(&page->encoder, row, &page->out);
    page->rows++;
    return true;
}

static NODISCARD status bad_format(struct fe_session *s)
{
    return err_set(&s->work->err, ST_INVALID, "unsupported format code: %d",
                   s->work->run.bad_format);
}

/* Do rows go straight to the client, written by whoever reads them? */
static bool goes_out(const struct fe_run *r)
{
    return r->sink == FE_SINK_ROWS && !r->keeping && r->bad_format == 0;
}

static void page_begin(struct fe_session *s, struct cl_call *call)
{
    struct fe_run *r = &s->work->run;
    call->on_row = on_row;
    call->anywhere = goes_out(r);
    if (!call->anywhere)
        return;
    call->on_row = on_page_row;
    r->page.rows = 0;
    fe_conn_lend_output(s->conn, &r->page.out);
}

static NODISCARD status page_taken(struct fe_session *s, status st)
{
    struct fe_run *r = &s->work->run;
    if (goes_out(r)) {
        r->rows += r->page.rows;
        fe_conn_return_output(s->conn, &r->page.out);
    }
    if (st != ST_OK && st != ST_END)
        return call_failed(s, st);
    r->source->done = st == ST_END;
    return ST_OK;
}

static void page_done(struct fe_session *s, status st)
{
    st = page_taken(s, st);
    fe_run_finish(s, st == ST_OK ? read_pages(s) : st);
}

static void read_again(struct fe_session *s, status st)
{
    UNUSED(st);
    fe_run_finish(s, read_pages(s));
}

static NODISCARD status read_pages(struct fe_session *s)
{
    struct fe_work *w = s->work;
    struct fe_run *r = &w->run;
    struct fe_portal *p = r->source;
    for (unsigned pages = 0; !p->done && r->rows < r->limit; pages++) {
        ST_TRY(fe_check_cancel(s));
        if (fe_conn_over_high(s->conn)) {
            w->stalled = true;
            return fe_wait(s, read_again, false);
        }
        if (r->keeping && r->told->store.size > FE_STORE_BYTES_MAX)
            return err_set(&w->err, ST_NO_MEMORY,
                           "the rows of a statement under a row limit exceed %u bytes",
                           FE_STORE_BYTES_MAX);
        if (pages == PAGES_PER_TURN)
            return fe_yield(s, read_again);
        struct cl_call *call = fe_call(s);
        int64_t left = r->limit - r->rows;
        call->arena = &p->page;
        unsigned page = r->rows == 0 ? FE_PAGE_ROWS : FE_NEXT_PAGE_ROWS;
        call->max_rows = left < page ? (unsigned)left : page;
        call->max_bytes = FE_PAGE_BYTES;
        page_begin(s, call);
        status st = cl_read(s->client, call, &p->bound.read, &p->pos);
        if (st == ST_PENDING)
            return fe_wait(s, page_done, true);
        ST_TRY(page_taken(s, st));
    }
    return source_end(s, ST_OK);
}

static void locked(struct fe_session *s, status st)
{
    if (st != ST_OK)
        st = call_failed(s, st);
    fe_run_finish(s, st == ST_OK ? read_pages(s) : st);
}

/* FOR UPDATE: the keys enter the write set before the rows are read. A statement that is a
 * transaction of its own has nothing to keep away from. */
static NODISCARD status lock_rows(struct fe_session *s)
{
    struct fe_work *w = s->work;
    struct fe_portal *p = w->run.source;
    if (!cl_in_transaction(s->client) || p->bound.read.kind == KV_READ_NOTHING)
        return ST_OK;
    w->op = &p->bound.op;
    status st = cl_ops(s->client, fe_call(s), &w->op, 1);
    if (st == ST_PENDING)
        return fe_wait(s, locked, true);
    return st == ST_OK ? ST_OK : call_failed(s, st);
}

static NODISCARD status read_start(struct fe_session *s, bool first)
{
    struct fe_run *r = &s->work->run;
    r->target = fe_run_target(s);
    if (r->sink == FE_SINK_ROWS)
        fe_describe_once(s);
    if (r->source->done)
        return source_end(s, ST_OK);
    if (goes_out(r))
        fe_page_encoder(s);
    fe_txn_touch(s);
    if (first && r->source->bound.read.for_update)
        ST_TRY(lock_rows(s));
    return read_pages(s);
}

/* -- writes ------------------------------------------------------------------------------------ */

static NODISCARD status write_taken(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    struct fe_run *r = &w->run;
    struct fe_portal *p = r->source;
    if (st != ST_OK)
        return call_failed(s, st);
    const struct kv_result *res = &w->call.result;
    put_tag(p->tag, sizeof p->tag, p->statement->stmt.plan->tag, res->affected);
    if (!r->shape.rows)
        return source_end(s, ST_OK);
    bool scalar = r->shape.count == 1 && r->shape.columns[0].source < 0;
    if (scalar)
        fe_row_of_datums(s, &res->scalar);
    for (unsigned i = 0; i < res->row_count && !scalar; i++)
        (void)fe_row_of_kv(s, &res->rows[i]);
    return source_end(s, ST_OK);
}

static void write_done(struct fe_session *s, status st)
{
    fe_run_finish(s, write_taken(s, st));
}

static NODISCARD status check_writable(struct fe_session *s, const struct pl_plan *plan)
{
    if (plan->kind != PL_WRITE || !fe_read_only(s))
        return ST_OK;
    return err_set_state(&s->work->err, ST_TXN_STATE, "25006",
                         "cannot execute %.*s in a read-only transaction",
                         (int)strcspn(plan->tag, " "), plan->tag);
}

static NODISCARD status write_start(struct fe_session *s)
{
    struct fe_work *w = s->work;
    struct fe_portal *p = w->run.source;
    fe_txn_touch(s);
    w->op = &p->bound.op;
    status st = cl_ops(s->client, fe_call(s), &w->op, 1);
    if (st == ST_PENDING) {
        w->uncertain = true;
        return fe_wait(s, write_done, true);
    }
    return write_taken(s, st);
}

/* -- session functions, catalogue relations, functions of schema metadb ------------------------ */

static NODISCARD status values_row(struct fe_session *s)
{
    struct fe_run *r = &s->work->run;
    fe_row_of_values(s, r->source->bound.values, r->shape.count);
    return source_end(s, ST_OK);
}

static void slept(struct fe_session *s, status st)
{
    if (st != ST_OK)
        st = fe_check_cancel(s);
    fe_run_finish(s, st == ST_OK ? values_row(s) : st);
}

static NODISCARD status values_start(struct fe_session *s)
{
    struct fe_portal *p = s->work->run.source;
    return p->bound.sleep_us > 0 ? fe_sleep(s, p->bound.sleep_us, slept) : values_row(s);
}

static void on_sleep_over(void *arg)
{
    struct fe_work *w = arg;
    fe_resume(w->session, ST_OK);
}

status fe_sleep(struct fe_session *s, uint64_t us, fe_next *next)
{
    struct fe_work *w = s->work;
    if (w->sleep == NULL)
        w->sleep = loop_timer_new(s->worker->loop, on_sleep_over, w);
    w->sleeping = true;
    loop_timer_start(w->sleep, us);
    return fe_wait(s, next, false);
}

static void give_warnings(struct fe_session *s)
{
    struct fe_work *w = s->work;
    if (w->warning_count > 0)
        fe_describe_once(s); /* PostgreSQL describes before it looks for the first row */
    for (unsigned i = 0; i < w->warning_count; i++)
        fe_warning(s, "01000", "%s", w->warnings[i]);
    w->warning_count = 0;
}

static void on_catalog_row(void *arg, const struct pl_value *values)
{
    struct fe_session *s = arg;
    if (s->gone)
        return;
    give_warnings(s);
    fe_row_of_values(s, values, s->work->run.shape.count);
}

static NODISCARD status catalog_taken(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    give_warnings(s);
    if (st == ST_CANCELLED)
        w->cancelled = true;
    else if (st != ST_OK && st != ST_END) {
        w->err = w->catalog.err;
        err_default(&w->err, st);
        return st;
    }
    ST_TRY(fe_check_cancel(s));
    return source_end(s, ST_OK);
}

static void catalog_resumed(struct fe_session *s, status st)
{
    fe_run_finish(s, catalog_taken(s, st));
}

static void catalog_done(struct pl_catalog_call *c, status st)
{
    fe_resume(c->arg, st);
}

static NODISCARD status catalog_run(struct fe_session *s)
{
    struct fe_work *w = s->work;
    struct fe_portal *p = w->run.source;
    fe_context(s, &w->context_of_catalog);
    w->context_of_catalog.clock_now = fe_clock(s->worker); /* it is evaluated on another thread */
    w->context_of_catalog.clock = NULL;
    w->catalog.on_row = on_catalog_row;
    w->catalog.done = catalog_done;
    w->catalog.arg = s;
    w->catalog.arena = &w->call_arena;
    w->catalog.err.code = ST_OK;
    w->catalog.job = NULL;
    status st = pl_catalog_start(s->worker->planner, &p->statement->stmt, p->params,
                                 &w->context_of_catalog, &w->catalog);
    return st == ST_PENDING ? fe_wait(s, catalog_resumed, true) : catalog_taken(s, st);
}

static void catalog_gathered(struct fe_session *s, status st)
{
    if (st == ST_OK)
        st = fe_check_cancel(s);
    if (st == ST_OK)
        st = catalog_run(s);
    if (st != ST_PENDING)
        fe_run_finish(s, st);
}

static NODISCARD status catalog_start(struct fe_session *s)
{
    if (pl_catalog_asks_sessions(s->work->run.source->statement->stmt.plan))
        ST_TRY(fe_activity_gather(s, catalog_gathered));
    return catalog_run(s);
}

static void on_function_row(void *arg, const struct kv_datum *values)
{
    struct fe_session *s = arg;
    if (!s->gone)
        fe_row_of_datums(s, values);
}

static NODISCARD status function_taken(struct fe_session *s, status st)
{
    return st == ST_OK || st == ST_END ? source_end(s, ST_OK) : call_failed(s, st);
}

static void function_done(struct fe_session *s, status st)
{
    fe_run_finish(s, function_taken(s, st));
}

static NODISCARD status function_start(struct fe_session *s)
{
    struct fe_portal *p = s->work->run.source;
    fe_audit_function(s, p->bound.function->name);
    status st = cl_function_run(p->bound.function, s->client, fe_call(s), p->bound.args,
                                on_function_row, s);
    return st == ST_PENDING ? fe_wait(s, function_done, true) : function_taken(s, st);
}

/* -- dispatch ---------------------------------------------------------------------------------- */

static NODISCARD status cannot_run_again(struct fe_session *s, const struct fe_portal *p)
{
    return err_set_state(&s->work->err, ST_TXN_STATE, "55000", "portal \"%s\" cannot be run",
                         p->name != NULL ? p->name : "");
}

/* What is wrong with the text itself was said by PostgreSQL before it looked at who may write. */
static NODISCARD status unless_text_is_bad(struct fe_session *s, struct fe_portal *p, status st)
{
    struct err *err = &s->work->err, first = *err;
    status bound = fe_portal_bind(s, p);
    if (bound != ST_OK && err->position > 0 && strncmp(err->sqlstate, "22", 2) == 0)
        return bound;
    *err = first;
    return st;
}

status fe_run_source(struct fe_session *s, struct fe_portal *source, fe_after *after)
{
    struct fe_run *r = &s->work->run;
    enum pl_kind kind = source->statement->stmt.plan->kind;
    r->source = source;
    source->refs++;
    r->after = after;
    status writable = check_writable(s, source->statement->stmt.plan);
    if (writable != ST_OK)
        return unless_text_is_bad(s, source, writable);
    if (kind == PL_WRITE && r->shape.rows && r->bad_format != 0)
        return bad_format(s); /* before it is too late to undo it */
    status bound = fe_portal_bind(s, source);
    if (UNLIKELY(bound != ST_OK)) {
        /* Not of the text, but of its execution: the rows have been announced. */
        const char *state = s->work->err.sqlstate;
        bool running = strcmp(state, "2201W") == 0 ||
                       (kind == PL_VALUES && strcmp(state, "42704") == 0); /* current_setting */
        if (r->sink == FE_SINK_ROWS && running)
            fe_describe_once(s);
        return bound;
    }
    if (UNLIKELY(fe_session_limited(s)))
        ST_TRY(fe_check_powers(s, &source->bound));
    if (kind == PL_READ && source->bound.read.for_update && fe_read_only(s))
        return fe_refuse_locking(s, source);
    if (kind == PL_READ) {
        bool first = !source->started;
        source->started = true;
        return read_start(s, first);
    }
    if (source->stored)
        return source_end(s, ST_OK);
    if (source->started && !r->shape.rows)
        return cannot_run_again(s, source);
    if (source->started) /* all of its rows went out */
        return source_end(s, ST_OK);
    source->started = true;
    r->target = fe_run_target(s);
    if (r->shape.rows && (r->limit != INT64_MAX || source->cursor)) {
        source->stored = true;
        r->target = &source->store;
    }
    switch ((int)kind) {
    case PL_WRITE: return write_start(s);
    case PL_VALUES: return values_start(s);
    case PL_CATALOG: return catalog_start(s);
    case PL_FUNCTION: return function_start(s);
    default:
        return err_set(&s->work->err, ST_INTERNAL, "a statement of kind %d has no rows", (int)kind);
    }
}

/* Bind takes any format code; rows can be written in two. */
static void check_formats(struct fe_run *r)
{
    for (unsigned i = 0; r->shape.rows && i < r->format_count && r->bad_format == 0; i++)
        if (r->formats[i] != 0 && r->formats[i] != 1)
            r->bad_format = r->formats[i];
}

/* What is no query is run once: only rows can be left for another Execute. */
static NODISCARD status run_once(struct fe_session *s, struct fe_portal *p)
{
    if (p->started && !s->work->run.shape.rows)
        return cannot_run_again(s, p);
    p->started = true;
    return ST_OK;
}

status fe_run_plan(struct fe_session *s, struct fe_portal *p)
{
    struct fe_run *r = &s->work->run;
    const struct pl_plan *plan = p->statement->stmt.plan;
    if (s->txn == FE_TXN_FAILED && (plan == NULL || !fe_is_txn_exit(plan->kind)))
        return fe_txn_refuse(s);
    if (p->statement->late != NULL) {
        s->work->err = *p->statement->late;
        return s->work->err.code;
    }
    if (plan == NULL || plan->kind == PL_EMPTY) {
        r->empty = true;
        return ST_OK;
    }
    fe_txn_query(s, plan->kind, false);
    r->shape = fe_statement_shape(s, p->statement);
    r->describe_now = r->describe && r->shape.rows;
    check_formats(r);
    switch ((int)plan->kind) {
    case PL_READ:
    case PL_WRITE:
    case PL_VALUES:
    case PL_CATALOG:
    case PL_FUNCTION: return fe_run_source(s, p, rows_out);
    default: break;
    }
    if (p->told) {
        fe_told_end(s, p);
        return ST_OK;
    }
    ST_TRY(run_once(s, p));
    if (r->shape.rows)
        fe_told_begin(s, p);
    switch ((int)plan->kind) {
    case PL_COPY_IN: return fe_run_copy_in(s, plan);
    case PL_COPY_OUT: return fe_run_copy_out(s, plan);
    case PL_DECLARE: return fe_run_declare(s, plan);
    case PL_FETCH: return fe_run_fetch(s, plan);
    case PL_CLOSE: return fe_run_close(s, plan);
    case PL_PREPARE: return fe_run_prepare(s, plan);
    case PL_EXECUTE: return fe_run_execute(s, plan);
    case PL_EXPLAIN: return fe_run_explain(s, plan);
    case PL_ROLE: return fe_run_role(s, plan);
    default: return fe_run_utility(s, plan);
    }
}
