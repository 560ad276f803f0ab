/*
 * cluster/read.c — one page of a read: on the reactor as far as the cache goes, then on the pool.
 *
 * The page starts on the loop with KV_TIER_QUICK and hands its rows over at once. Where it meets a
 * block that is not in the cache, the same position goes on with KV_TIER_ANY on a pool thread, over
 * the same stamp. There the rows are handed over at once if the call takes them anywhere, else
 * copied and handed over when it is back. A page that was cancelled ends at the next row.
 *
 * A page that has given CL_READ_SHORT_ROWS rows and is not at its end is long: if its rows may be
 * taken anywhere, the rest waits for whoever has time (long_reads.h).
 *
 * Invariants
 *   R1  A row is handed over once, in order, whichever thread read it.
 *   R2  A page is one snapshot, also when two threads read it.
 *
 * Threads: the client's reactor and one pool thread at a time.
 */
#include "base/assert.h"
#include "cluster/long_reads.h"

static bool cancelled(struct cl_client *c)
{
    return atomic_load_explicit(&c->cancel, memory_order_relaxed);
}

static bool give_row(void *arg, const struct kv_row *row)
{
    struct cl_client *c = arg;
    c->read.given++;
    return c->call->on_row(c->call->arg, row);
}

/* Does READ give a row of plain numbers, whatever the types of the table's columns are? */
static bool gives_numbers(const struct kv_read *read)
{
    return read->count || read->kind == KV_READ_COUNT || read->kind == KV_READ_USAGE;
}

static bool copy_row(void *arg, const struct kv_row *row)
{
    struct cl_client *c = arg;
    struct cl_row *copy = arena_alloc(&c->scratch, sizeof *copy);
    copy->next = NULL;
    if (gives_numbers(c->read.read))
        copy->row = *row;
    else
        kv_row_copy(&c->scratch, row, &copy->row);
    *c->read.last = copy;
    c->read.last = &copy->next;
    c->read.given++;
    return !cancelled(c);
}

static bool give_row_anywhere(void *arg, const struct kv_row *row)
{
    return give_row(arg, row) && !cancelled(arg);
}

/* Up to MAX_ROWS rows in all, or the rest of the page's bytes. */
static status run_page(struct cl_client *c, struct cl_call *call, unsigned max_rows,
                       bool (*on_row)(void *, const struct kv_row *))
{
    struct cl_read_run *r = &c->read;
    return kv_read_page(r->txn, r->read, r->pos, call->arena, max_rows - r->given, r->bytes_max,
                        on_row, c, &call->err);
}

static status finish_page(struct cl_client *c, struct cl_call *call, status st)
{
    if (call->timed)
        call->stats.read_us += env_mono_us(c->node->env) - c->read.started_us;
    call->stats.keys += c->read.given;
    call->stats.tombstones += c->read.pos->skipped - c->read.skipped_before;
    if (st == ST_OK && cancelled(c))
        st = err_set(&call->err, ST_CANCELLED, "canceling statement due to user request");
    if (st == ST_COLD)
        st = ST_INTERNAL; /* a pool thread never meets a cold block */
    if (st != ST_OK && st != ST_END)
        err_default(&call->err, st);
    return st;
}

static void page_on_pool(struct pool_job *job)
{
    struct cl_client *c = CONTAINER_OF(job, struct cl_client, job);
    bool (*on_row)(void *, const struct kv_row *) =
        c->call->anywhere ? give_row_anywhere : copy_row;
    c->read.st = cancelled(c) ? ST_OK : run_page(c, c->call, c->call->max_rows, on_row);
}

static void page_back(struct pool_job *job)
{
    struct cl_client *c = CONTAINER_OF(job, struct cl_client, job);
    struct cl_call *call = c->call;
    cl__job_done(c->node);
    cl__txn_tier(c, c->read.txn, false);
    for (struct cl_row *row = c->read.first; row != NULL; row = row->next)
        (void)call->on_row(call->arg, &row->row);
    cl__client_finish(c, finish_page(c, call, c->read.st));
}

/* What the page reads through: the transaction's view, or the latest state. */
static status open_view(struct cl_client *c, struct cl_call *call, struct cl_shard *s,
                        struct kv_txn **out)
{
    if (c->txn.active)
        return cl__transaction_of(c, s, out, &call->err);
    struct kv_view view = {.state = s->state,
                           .at = kv_state_applied_ts(s->state),
                           .tier = KV_TIER_CACHE,
                           .arena = &c->scratch};
    *out = kv_txn_new(&c->scratch, &view);
    return ST_OK;
}

static status check_readable(struct cl_client *c, struct cl_shard *s, struct err *err)
{
    if (s == NULL)
        return err_set(err, ST_UNSUPPORTED, "this table cannot be read yet");
    if (c->node->phase == CL_NODE_RECOVERING || c->node->phase == CL_NODE_OPEN)
        return err_set(err, ST_NOT_LEADER, "shard %llu is still recovering",
                       (unsigned long long)s->id);
    if (s->fenced == ST_OK)
        return ST_OK;
    return err_set(err, s->fenced, "shard %llu (table %s) is fenced: %s", (unsigned long long)s->id,
                   s->name, status_text(s->fenced));
}

/* May the rest of a page be left to another thread, or to later? */
static bool may_be_long(const struct cl_call *call, const struct kv_read *read)
{
    return call->anywhere && call->max_rows > 2 * CL_READ_SHORT_ROWS &&
           (read->kind == KV_READ_RANGE || read->kind == KV_READ_LIST_ATTR ||
            read->kind == KV_READ_OBJECTS);
}

/* The page goes on as CALL, which is pending from here on; ST_COLD becomes a job on the pool. */
static status go_on_if_cold(struct cl_client *c, struct cl_call *call, status st)
{
    if (st == ST_COLD) {
        c->node->counters.reads_cold++;
        cl__txn_tier(c, c->read.txn, true);
        st = cl__client_to_pool(c, call, page_on_pool, page_back);
        if (st == ST_PENDING)
            return st;
    }
    return finish_page(c, call, st);
}

static status read_page(struct cl_client *c, struct cl_shard *s, struct cl_call *call,
                        const struct kv_read *read, struct kv_read_pos *pos)
{
    bool split = may_be_long(call, read);
    size_t first_bytes = split ? call->max_bytes / 4 : call->max_bytes;
    struct kv_txn *t;
    ASSERT(c->call == NULL);
    ASSERT(call->max_rows > 0);
    ST_TRY(check_readable(c, s, &call->err));
    ST_TRY(open_view(c, call, s, &t));
    c->read = (struct cl_read_run){.txn = t,
                                   .read = read,
                                   .pos = pos,
                                   .bytes_max = first_bytes,
                                   .started_us = call->timed ? env_mono_us(c->node->env) : 0,
                                   .skipped_before = pos->skipped};
    c->read.last = &c->read.first;
    atomic_store_explicit(&c->cancel, false, memory_order_relaxed);
    c->node->counters.reads++;
    cl__txn_tier(c, t, false);
    kv_txn_view(t)->tier = KV_TIER_QUICK; /* what takes long is the pool's, too */
    c->call = call;                       /* for give_row */
    status st = run_page(c, call, split ? CL_READ_SHORT_ROWS : call->max_rows, give_row);
    if (split)
        c->read.bytes_max = call->max_bytes - first_bytes;
    if (st == ST_OK && split && c->read.given == CL_READ_SHORT_ROWS) {
        cl_long_reads_add(c->node->long_reads, c);
        return ST_PENDING;
    }
    c->call = NULL;
    c->node->short_calls++;
    return go_on_if_cold(c, call, st);
}

void cl__read_anywhere(struct cl_client *c)
{
    cl__txn_tier(c, c->read.txn, true);
    page_on_pool(&c->job);
}

void cl__read_end(struct cl_client *c)
{
    cl__txn_tier(c, c->read.txn, false);
    cl__client_finish(c, finish_page(c, c->call, c->read.st));
}

void cl__read_here(struct cl_client *c)
{
    struct cl_call *call = c->call;
    status st = cancelled(c) ? ST_OK : run_page(c, call, call->max_rows, give_row);
    st = go_on_if_cold(c, call, st);
    if (st != ST_PENDING)
        cl__client_finish(c, st);
}

static bool begun(const struct kv_read_pos *pos)
{
    return pos->last.size > 0 || pos->delivered > 0 || pos->point > 0 || pos->inner != NULL;
}

/* Which shards this node must ask about before it may look; 0: none. Later pages of a read see at
 * least what its first one saw, which is all that is promised. In a transaction the snapshot says
 * what is seen, but for the counters of directories, which are current there, too. */
static cl_shard_set to_ask(struct cl_client *c, const struct cl_shard *s,
                           const struct kv_read *read, const struct kv_read_pos *pos)
{
    if (c->local || s == NULL)
        return 0;
    if (c->txn.active && !cl__transaction_ready(c))
        return CL_ALL_SHARDS;
    if (begun(pos) || cl_shard_current(s) || (c->txn.active && read->table != KV_META))
        return 0;
    return 1u << s->position;
}

static void read_asked(struct cl_client *c, struct cl_call *call)
{
    if (c->ask.wanted == CL_ALL_SHARDS)
        cl__transaction_asked(c);
    cl__scratch_take(c);
    status st =
        read_page(c, cl_shard_of(c->node, c->read.read->table), call, c->read.read, c->read.pos);
    if (st == ST_PENDING)
        return;
    c->call = call;
    cl__client_finish(c, st);
}

status cl_read(struct cl_client *c, struct cl_call *call, const struct kv_read *read,
               struct kv_read_pos *pos)
{
    struct cl_shard *s = cl_shard_of(c->node, read->table);
    bool alone = c->node->host == NULL;
    cl_shard_set asked = alone ? 0 : to_ask(c, s, read, pos);
    if (asked != 0) {
        c->read = (struct cl_read_run){.read = read, .pos = pos};
        return cl__client_ask(c, call, asked, read_asked);
    }
    cl__scratch_take(c);
    status st = read_page(c, s, call, read, pos);
    if (st != ST_PENDING)
        cl__scratch_give(c);
    return st;
}
