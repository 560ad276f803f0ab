/*
 * planner/plan.c — the planner of one reactor: texts to statements, statements to bound operations.
 *
 *   pl_plan ── scan ── cache ──► hit: literals are read from the text, done
 *                        │
 *                        └─ miss: a job on a parse thread scans and compiles ── back on the loop
 *                        the
 *                           plan is put into the cache, `done` runs
 *
 * A text longer than LIMIT_SQL_FAST_BYTES is scanned on a parse thread too: the job comes back for
 * the look-up and goes out again only if the shape is unknown.
 *
 * A planner without a node (tests) compiles where it is called.
 *
 * Threads: everything here runs on the reactor, but for job_run and catalog_run. A job owns what it
 * touches there; the request is read by the job (text, types) and written only back on the loop.
 * Plans are counted without atomics: references are taken and dropped on the reactor.
 */
#include "base/assert.h"
#include "base/memory.h"
#include "base/pool.h"
#include "planner/catalog.h"
#include "planner/pl_internal.h"

#include <stdlib.h>

struct planner {
    struct cl_node *node;
    struct cl_reactor *reactor;
    struct pl__cache *cache;
    struct pl__stats *stats;
    struct pl_scan scan; /* of the text under way; never kept over a return */
};

struct planner *pl_new(struct cl_node *node, struct cl_reactor *reactor)
{
    struct planner *p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->node = node;
    p->reactor = reactor;
    p->cache = pl__cache_new();
    p->stats = pl__stats_new();
    pl_scan_init(&p->scan);
    if (p->cache == NULL || p->stats == NULL) {
        pl_free(p);
        return NULL;
    }
    return p;
}

void pl_free(struct planner *p)
{
    if (p == NULL)
        return;
    pl__cache_free(p->cache);
    pl__stats_free(p->stats);
    pl_scan_fini(&p->scan);
    free(p);
}

/* -- plans ------------------------------------------------------------------------------------- */

void pl_plan_ref(const struct pl_plan *plan)
{
    ((struct pl__plan *)(uintptr_t)plan)->refs++;
}

void pl_plan_unref(const struct pl_plan *plan)
{
    struct pl__plan *p = (struct pl__plan *)(uintptr_t)plan;
    if (p == NULL || --p->refs > 0)
        return;
    if (p->catalog != NULL)
        pl_catalog_query_free(p->catalog);
    arena_fini(&p->arena);
    memory_free(MEMORY_PLANS, p, sizeof(*p));
}

/* -- statements -------------------------------------------------------------------------------- */

/* The text of a string without its quotes; doubled quotes inside are halved into A. */
static bytes string_value(bytes token, struct arena *a)
{
    bytes in = bytes_make(token.data + 1, token.size - 2);
    if (memchr(in.data, '\'', in.size) == NULL)
        return in;
    uint8_t *p = arena_alloc(a, in.size);
    size_t n = 0;
    for (size_t i = 0; i < in.size; i++) {
        p[n++] = in.data[i];
        i += in.data[i] == '\'';
    }
    return bytes_make(p, n);
}

static struct pl_value literal_value(bytes text, const struct pl_slot *s, struct arena *a)
{
    bytes token = bytes_make(text.data + s->at, s->size);
    struct pl_value v = {.oid = OID_UNKNOWN};
    if (s->kind == PL_SLOT_STRING) {
        v.b = string_value(token, a);
    } else if (s->kind == PL_SLOT_NUMERIC) {
        v.oid = OID_NUMERIC;
        v.b = token;
    } else {
        v.oid = OID_INT8;
        for (size_t i = 0; i < token.size; i++)
            v.i = v.i * 10 + (token.data[i] - '0');
    }
    return v;
}

/* R's statement: PLAN and the literals of this text. */
static void make_statement(struct pl_request *r, struct pl__plan *plan, const struct pl_scan *s)
{
    struct pl_statement *out = &r->out;
    *out = (struct pl_statement){.plan = &plan->pub, .text = r->text};
    pl_plan_ref(&plan->pub);
    if (!s->cacheable || plan->bind == NULL)
        return;
    struct pl_value *values = arena_alloc(r->arena, (s->slot_count + 1) * sizeof(*values));
    uint32_t *at = arena_alloc(r->arena, (s->slot_count + 1) * sizeof(*at));
    for (uint32_t i = 0; i < s->slot_count; i++) {
        values[i] = literal_value(r->text, &s->slots[i], r->arena);
        at[i] = s->slots[i].at;
    }
    out->literals = values;
    out->literal_count = s->slot_count;
    out->literal_at = at;
    if (s->repeat_count > 0) {
        uint32_t *repeats = ARENA_ARRAY(r->arena, uint32_t, PL_REPEATS);
        for (uint32_t i = 0; i < s->repeat_count; i++)
            repeats[i] = s->repeats[i].count;
        out->repeats = repeats;
    }
}

/* -- parse jobs -------------------------------------------------------------------------------- */

struct plan_job {
    struct pool_job job;
    struct planner *planner;
    struct pl_request *request;
    bool scan_only, scanned;
    struct pl_scan scan;
    struct pl__plan *plan;
    struct err err;
    status st;
};

static void job_free(struct plan_job *j)
{
    pl_scan_fini(&j->scan);
    free(j);
}

static void job_run(struct pool_job *job)
{
    struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);
    const struct pl_request *r = j->request;
    if (!j->scanned) {
        j->st = pl_scan(&j->scan, r->text, &j->err);
        j->scanned = true;
    }
    if (j->st == ST_OK && !j->scan_only)
        j->st = pl__compile_text(j->planner->node, r->text, &j->scan, r->types, r->type_count,
                                 &j->plan, &j->err);
}

static status job_submit(struct plan_job *j)
{
    struct planner *p = j->planner;
    status st = pool_submit(cl_node_parse_pool(p->node), p->reactor->mailbox, &j->job);
    if (st != ST_OK)
        return err_set(&j->request->err, ST_NO_MEMORY, "too many statements wait for the parser");
    return ST_OK;
}

static void job_done(struct pool_job *job)
{
    struct plan_job *j = CONTAINER_OF(job, struct plan_job, job);
    struct pl_request *r = j->request;
    struct planner *p = j->planner;
    status st = j->st;
    struct pl__plan *plan = j->plan;

    if (st == ST_OK && j->scan_only) {
        plan = pl__cache_find(p->cache, &j->scan, r->text, r->types, r->type_count);
        if (plan == NULL) {
            j->scan_only = false;
            st = job_submit(j);
            if (st == ST_OK)
                return;
        } else {
            pl_plan_ref(&plan->pub);
        }
    } else if (st == ST_OK) {
        pl__cache_put(p->cache, &j->scan, r->text, r->types, r->type_count, plan);
    } else {
        r->err = j->err;
    }
    if (st == ST_OK) {
        make_statement(r, plan, &j->scan);
        pl_plan_unref(&plan->pub);
    }
    r->job = NULL;
    job_free(j);
    r->done(r, st);
}

static status start_job(struct planner *p, struct pl_request *r, bool scan_only)
{
    struct plan_job *j = calloc(1, sizeof(*j));
    if (j == NULL)
        return err_set(&r->err, ST_NO_MEMORY, "out of memory");
    j->job.run = job_run;
    j->job.done = job_done;
    j->planner = p;
    j->request = r;
    j->scan_only = scan_only;
    pl_scan_init(&j->scan);
    status st = job_submit(j);
    if (st != ST_OK) {
        job_free(j);
        return st;
    }
    r->job = j;
    return ST_PENDING;
}

static status compile_here(struct planner *p, struct pl_request *r)
{
    struct pl__plan *plan;
    ST_TRY(pl__compile_text(NULL, r->text, &p->scan, r->types, r->type_count, &plan, &r->err));
    pl__cache_put(p->cache, &p->scan, r->text, r->types, r->type_count, plan);
    make_statement(r, plan, &p->scan);
    pl_plan_unref(&plan->pub);
    return ST_OK;
}

status pl_plan(struct planner *p, struct pl_request *r)
{
    err_clear(&r->err);
    r->out = (struct pl_statement){0};
    if (r->text.size > LIMIT_MESSAGE_BYTES)
        return err_set(&r->err, ST_TOO_COMPLEX, "statement too long");
    if (r->text.size > LIMIT_SQL_FAST_BYTES && p->node != NULL)
        return start_job(p, r, true);
    ST_TRY(pl_scan(&p->scan, r->text, &r->err));
    struct pl__plan *plan = pl__cache_find(p->cache, &p->scan, r->text, r->types, r->type_count);
    if (plan != NULL) {
        make_statement(r, plan, &p->scan);
        return ST_OK;
    }
    return p->node == NULL ? compile_here(p, r) : start_job(p, r, false);
}

/* -- binding ----------------------------------------------------------------------------------- */

/* Simple queries have no parameters: says which one the text wants, and where. */
static status no_parameter(const struct pl_statement *s, unsigned count, struct err *err)
{
    size_t at = 0;
    struct pl_token t;
    err_set_state(err, ST_INVALID, "42P02", "there is no parameter $%u", count + 1);
    while (err != NULL && pl_token_next(s->text, &at, &t, NULL) == ST_OK &&
           t.kind != PL_TOKEN_END) {
        if (t.kind != PL_TOKEN_PARAM)
            continue;
        err->position = pl__position(s->text, (int)t.at);
        break;
    }
    return ST_INVALID;
}

status pl_bind(const struct pl_statement *s, const struct pl_value *params, unsigned count,
               const struct pl_context *ctx, struct arena *a, struct pl_bound *out, struct err *err)
{
    const struct pl__plan *plan = (const struct pl__plan *)s->plan;
    *out = (struct pl_bound){.plan = s->plan};
    if (count < plan->pub.param_count)
        return no_parameter(s, count, err);
    if (plan->bind == NULL)
        return ST_OK;
    struct pl__bind b = {
        .plan = plan,
        .s = s,
        .params = params,
        .param_count = count,
        .ctx = ctx,
        .a = a,
        .out = out,
        .err = err,
    };
    err_clear(err);
    status st = plan->bind(&b);
    if (st != ST_OK)
        err_default(err, st);
    return st;
}

void pl_pattern_count(struct planner *p, const struct pl_plan *plan, uint64_t us, status st)
{
    if (plan != NULL)
        pl__stats_count(p->stats, ((const struct pl__plan *)plan)->pattern_id, us, st);
}

/* -- catalogue queries ------------------------------------------------------------------------- */

/* Reactor 0 copies what the query names of the node's state; a pool thread evaluates and keeps the
 * rows; the caller's loop gives them out. */
struct catalog_job {
    struct mail mail;
    struct pool_job job;
    struct planner *planner;
    struct pl_catalog_call *call;
    const struct pl__plan *plan;
    const struct pl_value *params;
    unsigned param_count;
    struct pl_context ctx;
    struct catalog_snapshot *snapshot;
    struct arena arena;
    struct catalog_row {
        struct catalog_row *next;
        struct pl_value values[];
    } * first, **last;
    struct err err;
    status st;
    atomic_bool cancel; /* set by the loop, read by the pool thread */
};

static struct pl_value copy_value(struct arena *a, const struct pl_value *v)
{
    struct pl_value out = *v;
    if (v->null)
        return out;
    switch (v->oid) {
    case OID_BOOL:
    case OID_CHAR:
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_OID:
    case OID_REGCLASS:
    case OID_REGPROC:
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_DATE:
    case OID_TIMESTAMP:
    case OID_TIMESTAMPTZ:
    case OID_INTERVAL: return out;
    default: break;
    }
    if (pl_type_element(v->oid) == 0) {
        out.b = arena_copy(a, v->b);
        return out;
    }
    struct pl_value *items = ARENA_ARRAY(a, struct pl_value, v->array.count + 1);
    for (unsigned i = 0; i < v->array.count; i++)
        items[i] = copy_value(a, &v->array.items[i]);
    out.array.items = items;
    return out;
}

static void keep_row(void *arg, const struct pl_value *values)
{
    struct catalog_job *j = arg;
    unsigned n = j->plan->pub.column_count;
    struct catalog_row *row = arena_alloc(&j->arena, sizeof(*row) + n * sizeof(*values));
    row->next = NULL;
    for (unsigned i = 0; i < n; i++)
        row->values[i] = copy_value(&j->arena, &values[i]);
    *j->last = row;
    j->last = &row->next;
}

static void catalog_run(struct pool_job *job)
{
    struct catalog_job *j = CONTAINER_OF(job, struct catalog_job, job);
    if (j->st == ST_OK)
        j->st = pl_catalog_run(j->plan->catalog, j->snapshot, j->params, j->param_count, &j->ctx,
                               &j->cancel, &j->arena, keep_row, j, &j->err);
}

static void catalog_end(struct catalog_job *j)
{
    struct pl_catalog_call *call = j->call;
    status st = j->st;
    if (st == ST_OK) {
        for (const struct catalog_row *row = j->first; row != NULL; row = row->next)
            call->on_row(call->arg, row->values);
    } else {
        call->err = j->err;
        err_default(&call->err, st);
    }
    pl_plan_unref(&j->plan->pub);
    arena_fini(&j->arena);
    free(j);
    call->job = NULL;
    call->done(call, st);
}

static void catalog_done(struct pool_job *job)
{
    struct catalog_job *j = CONTAINER_OF(job, struct catalog_job, job);
    pl_catalog_snapshot_free(j->snapshot);
    catalog_end(j);
}

static void catalog_fail(struct mail *m)
{
    catalog_end(CONTAINER_OF(m, struct catalog_job, mail));
}

/* Reactor 0. */
static void catalog_snapshot(struct mail *m)
{
    struct catalog_job *j = CONTAINER_OF(m, struct catalog_job, mail);
    struct planner *p = j->planner;
    j->snapshot = pl_catalog_snapshot(p->node, j->plan->catalog);
    if (pool_submit(cl_node_query_pool(p->node), p->reactor->mailbox, &j->job) == ST_OK)
        return;
    pl_catalog_snapshot_free(j->snapshot);
    j->st = err_set(&j->err, ST_NO_MEMORY, "too many catalogue queries are waiting");
    j->mail.deliver = catalog_fail;
    mailbox_send(p->reactor->mailbox, &j->mail);
}

status pl_catalog_start(struct planner *p, const struct pl_statement *s,
                        const struct pl_value *params, const struct pl_context *ctx,
                        struct pl_catalog_call *call)
{
    struct catalog_job *j = calloc(1, sizeof(*j));
    if (j == NULL)
        return err_set(&call->err, ST_NO_MEMORY, "out of memory");
    ASSERT(s->plan->kind == PL_CATALOG);
    j->mail.deliver = catalog_snapshot;
    j->job.run = catalog_run;
    j->job.done = catalog_done;
    j->planner = p;
    j->call = call;
    j->plan = (const struct pl__plan *)s->plan;
    j->params = params;
    j->param_count = s->plan->param_count;
    j->ctx = *ctx;
    j->last = &j->first;
    arena_init(&j->arena, 16 * 1024);
    pl_plan_ref(s->plan);
    call->job = j;
    mailbox_send(cl_node_reactor(p->node, 0)->mailbox, &j->mail);
    return ST_PENDING;
}

bool pl_catalog_asks_sessions(const struct pl_plan *plan)
{
    return pl_catalog_wants_sessions(((const struct pl__plan *)plan)->catalog);
}

void pl_catalog_cancel(struct pl_catalog_call *call)
{
    struct catalog_job *j = call->job;
    atomic_store_explicit(&j->cancel, true, memory_order_relaxed);
}
