/*
 * frontend/copy_in.c — COPY … FROM STDIN.
 *
 *   CopyData ─> parser ─> row of datums ─> chunk (an INSERT of many rows) ─> batch (cl_ops)
 *
 * Outside a transaction up to FE_COPY_ATOMIC_ROWS rows are one command: all or none. What is longer
 * is committed in batches as it comes, and an error says how many rows are in already. Inside a
 * transaction every batch goes into its write set.
 *
 * The mode begins with CopyInResponse and ends in end(): then messages are handled as usual again.
 * While a batch is under way the session is busy and CopyData waits in the input.
 *
 * PostgreSQL writes each row as it comes, so what is wrong with it is said ahead of anything that
 * comes after it. Here a row may be waiting in the batch when another one cannot be read, or when a
 * message comes that is not CopyData: then the batch is *tried*, in a transaction that is undone,
 * and its error goes first.
 *
 * Invariants
 *   K1  s->mode is COPY_IN exactly while w->copy exists.
 */
#include "base/assert.h"
#include "base/memory.h"
#include "cluster/roles.h"
#include "frontend/copy_parse.h"
#include "frontend/execute.h"
#include <stdio.h>
#include <stdlib.h>

#define FE_COPY_ATOMIC_ROWS 10000u
#define FE_COPY_BATCH_ROWS 2000u
#define FE_COPY_BATCH_BYTES (LIMIT_COMMAND_BYTES / 2)
#define CHUNK_FIRST_ROWS 64u
#define CHUNKS_MAX 16u

struct fe_copy {
    const struct pl_plan *plan; /* held by the run's portal */
    const struct kv_table_def *table;
    struct fe_copy_parser parser;
    struct arena batch; /* rows not sent yet */
    struct pl_context context;
    struct kv_op ops[CHUNKS_MAX];
    const struct kv_op *op_list[CHUNKS_MAX];
    struct kv_datum *values[CHUNKS_MAX];
    unsigned chunk_count, chunk_room; /* room left in the newest */
    uint64_t batch_rows, batch_bytes;
    int64_t done_rows;   /* of batches that went well */
    int64_t committed;   /* … and are committed */
    uint64_t tried_rows; /* of the batch: nothing is wrong with them */
    struct err *late;    /* said when the batch was tried and is good */
    char *late_context;
    bool in_transaction, finishing;
};

void fe_copy_free(struct fe_session *s)
{
    struct fe_copy *c = s->work->copy;
    if (c == NULL)
        return;
    s->work->copy = NULL;
    fe_copy_parser_fini(&c->parser);
    arena_fini(&c->batch);
    memory_free(MEMORY_SESSIONS, c, sizeof *c);
}

static void end(struct fe_session *s, status st)
{
    s->mode = FE_MODE_NORMAL;
    fe_copy_free(s);
    fe_run_finish(s, st);
}

void fe_copy_in_abort(struct fe_session *s, status st)
{
    struct fe_copy *c = s->work->copy;
    ASSERT_INV("K1", c != NULL);
    if (c->committed > 0)
        err_detail(&s->work->err,
                   "The first %lld rows of this COPY are committed: more than %u rows are not one "
                   "transaction.",
                   (long long)c->committed, FE_COPY_ATOMIC_ROWS);
    end(s, st);
}

/* -- beginning --------------------------------------------------------------------------------- */

static void put_response(struct fe_session *s, const struct pl_utility *u)
{
    struct obuf *o = fe_out(s);
    bool binary = u->format == PL_COPY_BINARY;
    size_t at = fe_message_begin(o, 'G');
    obuf_u8(o, binary);
    obuf_be16(o, (uint16_t)u->column_count);
    for (unsigned i = 0; i < u->column_count; i++)
        obuf_be16(o, binary);
    fe_message_end(o, at);
}

status fe_run_copy_in(struct fe_session *s, const struct pl_plan *plan)
{
    const struct pl_utility *u = plan->utility;
    if (fe_read_only(s))
        return err_set_state(&s->work->err, ST_TXN_STATE, "25006",
                             "cannot execute COPY FROM in a read-only transaction");
    if (fe_session_limited(s))
        ST_TRY(fe_check_table(s, u->table, CL_MAY_WRITE));
    struct fe_copy *c = memory_new(MEMORY_SESSIONS, sizeof *c);
    c->plan = plan;
    c->table = kv_table_def(u->table);
    arena_init(&c->batch, 16u * 1024u);
    fe_copy_parser_init(&c->parser, u->format == PL_COPY_BINARY ? FE_COPY_BINARY
                                    : u->format == PL_COPY_CSV  ? FE_COPY_CSV
                                                                : FE_COPY_TEXT);
    if (u->delimiter != '\0')
        c->parser.delimiter = u->delimiter;
    if (u->quote != '\0')
        c->parser.quote = c->parser.escape = u->quote;
    if (u->escape != '\0')
        c->parser.escape = u->escape;
    if (u->null_text != NULL)
        c->parser.null_text = u->null_text;
    c->parser.header = u->header;
    c->parser.expected = u->column_count;
    fe_txn_touch(s);
    c->in_transaction = s->txn != FE_TXN_IDLE;
    fe_context(s, &c->context);
    s->work->copy = c;
    s->mode = FE_MODE_COPY_IN;
    put_response(s, u);
    return ST_PENDING;
}

/* -- rows -------------------------------------------------------------------------------------- */

static void put_context(struct fe_session *s, const struct fe_copy *c,
                        const struct fe_copy_row *row)
{
    struct fe_work *w = s->work;
    char prefix[160];
    snprintf(prefix, sizeof prefix, "COPY %s, line %llu", c->table->name,
             (unsigned long long)c->parser.line);
    const struct pl_utility *u = c->plan->utility;
    bool value = w->err.column[0] != '\0' && w->err.table[0] == '\0';
    for (unsigned i = 0; i < u->column_count && i < row->count && value; i++) {
        if (strcmp(c->table->columns[u->columns[i]].name, w->err.column) != 0)
            continue;
        bool binary = c->parser.kind == FE_COPY_BINARY;
        int n = (int)(row->fields[i].size < 100 ? row->fields[i].size : 100);
        snprintf(w->context, sizeof w->context,
                 binary ? "%s, column %s" : "%s, column %s: \"%.*s\"", prefix, w->err.column, n,
                 (const char *)row->fields[i].data);
        w->err.column[0] = '\0'; /* a field of errors about the table's constraints */
        return;
    }
    int n = (int)(row->text.size < 100 ? row->text.size : 100);
    if (row->text.data != NULL)
        snprintf(w->context, sizeof w->context, "%s: \"%.*s\"", prefix, n,
                 (const char *)row->text.data);
    else
        snprintf(w->context, sizeof w->context, "%s", prefix);
}

void fe_copy_in_context(struct fe_session *s)
{
    struct fe_work *w = s->work;
    const struct fe_copy *c = w->copy;
    bool binary = c->parser.kind == FE_COPY_BINARY;
    if (binary && !c->parser.signature_seen)
        return;
    uint64_t line = c->parser.lines_before + (binary || !c->parser.ended);
    snprintf(w->context, sizeof w->context, "COPY %s, line %llu", c->table->name,
             (unsigned long long)line);
}

static struct kv_datum *new_row(struct fe_copy *c)
{
    const struct pl_utility *u = c->plan->utility;
    if (c->chunk_room == 0) {
        unsigned rows =
            c->chunk_count < 5 ? CHUNK_FIRST_ROWS << c->chunk_count : FE_COPY_BATCH_ROWS;
        struct kv_op *op = &c->ops[c->chunk_count];
        c->values[c->chunk_count] =
            arena_alloc(&c->batch, sizeof(struct kv_datum) * rows * u->column_count);
        *op = (struct kv_op){.kind = KV_OP_INSERT,
                             .table = u->table,
                             .ns = c->context.ns,
                             .now = c->context.now,
                             .seed = c->context.seed + c->chunk_count * 0x9E3779B97F4A7C15u,
                             .columns = u->columns,
                             .column_count = u->column_count,
                             .values = c->values[c->chunk_count],
                             .conflict = KV_CONFLICT_ERROR};
        c->op_list[c->chunk_count] = op;
        c->chunk_room = rows;
        c->chunk_count++;
    }
    unsigned newest = c->chunk_count - 1;
    return &c->values[newest][(size_t)c->ops[newest].row_count * u->column_count];
}

/* Bytes that are no characters are found before there is a line to show, and ahead of ST, what is
 * wrong with its end. */
static NODISCARD status check_line(struct fe_session *s, const struct fe_copy *c,
                                   struct fe_copy_row *row, status st)
{
    struct err err;
    if (c->parser.kind == FE_COPY_BINARY || s->settings.sql_ascii ||
        fe_utf8_check(st == ST_OK ? row->text : row->seen, &err) == ST_OK)
        return st;
    row->text = BYTES_EMPTY;
    s->work->err = err;
    return err.code;
}

static NODISCARD status check_fields(struct fe_session *s, const struct fe_copy *c,
                                     const struct fe_copy_row *row)
{
    const struct pl_utility *u = c->plan->utility;
    struct err *err = &s->work->err;
    if (row->count > u->column_count)
        return err_set_state(err, ST_INVALID, "22P04", "extra data after last expected column");
    for (unsigned i = 0;
         i < row->count && c->parser.kind != FE_COPY_BINARY && !s->settings.sql_ascii; i++)
        ST_TRY(fe_utf8_check(row->fields[i], err));
    return ST_OK;
}

static NODISCARD status add_row(struct fe_session *s, struct fe_copy *c,
                                const struct fe_copy_row *row)
{
    ST_TRY(check_fields(s, c, row));
    struct kv_datum *out = new_row(c);
    ST_TRY(pl_copy_row(c->plan, row->fields, row->nulls, row->count, &c->context, &c->batch, out,
                       &s->work->err));
    c->ops[c->chunk_count - 1].row_count++;
    c->chunk_room--;
    c->batch_rows++;
    c->batch_bytes += 16 + 10 * (uint64_t)row->count;
    for (unsigned i = 0; i < row->count; i++)
        c->batch_bytes += row->fields[i].size;
    return ST_OK;
}

/* -- batches ----------------------------------------------------------------------------------- */

static void consume(struct fe_session *s);

static bool batch_is_full(const struct fe_copy *c)
{
    bool pieces = c->in_transaction || c->committed > 0;
    return c->batch_rows >= (pieces ? FE_COPY_BATCH_ROWS : FE_COPY_ATOMIC_ROWS) ||
           c->batch_bytes >= FE_COPY_BATCH_BYTES ||
           (c->chunk_count == CHUNKS_MAX && c->chunk_room == 0);
}

static NODISCARD status batch_taken(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    struct fe_copy *c = w->copy;
    if (st != ST_OK) {
        w->err = w->call.err;
        err_default(&w->err, st);
        return st;
    }
    c->done_rows += (int64_t)c->batch_rows;
    if (!c->in_transaction)
        c->committed = c->done_rows;
    c->batch_rows = c->batch_bytes = c->tried_rows = 0;
    c->chunk_count = c->chunk_room = 0;
    arena_reset(&c->batch);
    arena_reset(&w->call_arena);
    /* Seeds and times of the next batch are its own. */
    fe_context(s, &c->context);
    return ST_OK;
}

static void batch_done(struct fe_session *s, status st)
{
    st = batch_taken(s, st);
    if (st == ST_OK)
        consume(s);
    else
        fe_copy_in_abort(s, st);
}

static NODISCARD status send_batch(struct fe_session *s)
{
    struct fe_work *w = s->work;
    struct fe_copy *c = w->copy;
    if (c->batch_rows == 0)
        return ST_OK;
    /* What Execute began ends with all else up to Sync, unless some of it is in already. */
    if (c->finishing && w->extended && s->txn == FE_TXN_IDLE && c->committed == 0) {
        s->txn = FE_TXN_IMPLICIT;
        fe_txn_touch(s);
        c->in_transaction = true;
    }
    status st = cl_ops(s->client, fe_call(s), c->op_list, c->chunk_count);
    if (st == ST_PENDING) {
        w->uncertain = true;
        return fe_wait(s, batch_done, true);
    }
    return batch_taken(s, st);
}

/* -- trying a batch ---------------------------------------------------------------------------- */

/* Is it the rows that are wrong? Else it is found out when they are written. */
static bool is_of_rows(status st)
{
    return st == ST_INVALID || st == ST_EXISTS || st == ST_NO_PARENT || st == ST_RESERVED ||
           st == ST_DENIED || st == ST_CANCELLED;
}

static NODISCARD status tried(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    struct fe_copy *c = w->copy;
    if (c->in_transaction)
        return batch_taken(s, st);
    cl_rollback(s->client);
    if (is_of_rows(st)) {
        w->err = w->call.err;
        err_default(&w->err, st);
        return st;
    }
    arena_reset(&w->call_arena);
    c->tried_rows = c->batch_rows;
    return ST_OK;
}

/* Inside a transaction the rows may as well be written for good. */
static NODISCARD status try_batch(struct fe_session *s, fe_next *next)
{
    struct fe_copy *c = s->work->copy;
    if (c->batch_rows == c->tried_rows)
        return ST_OK;
    if (!c->in_transaction)
        cl_begin(s->client, false, c->context.now);
    /* A chunk that was begun for a row that cannot be read has none. */
    unsigned chunks = c->chunk_count - (c->ops[c->chunk_count - 1].row_count == 0);
    status st = cl_ops(s->client, fe_call(s), c->op_list, chunks);
    return st == ST_PENDING ? fe_wait(s, next, true) : tried(s, st);
}

static void settled(struct fe_session *s, status st)
{
    st = tried(s, st);
    if (st != ST_OK)
        fe_copy_in_abort(s, st);
}

bool fe_copy_in_settle(struct fe_session *s)
{
    status st = try_batch(s, settled);
    if (st == ST_PENDING)
        return false;
    if (st != ST_OK)
        fe_copy_in_abort(s, st);
    return true;
}

static status say_late(struct fe_session *s)
{
    struct fe_work *w = s->work;
    w->err = *w->copy->late;
    snprintf(w->context, sizeof w->context, "%s", w->copy->late_context);
    return w->err.code;
}

static void late_settled(struct fe_session *s, status st)
{
    st = tried(s, st);
    fe_copy_in_abort(s, st == ST_OK ? say_late(s) : st);
}

/* The error in work->err is of a row; those before it come first. */
static NODISCARD status row_failed(struct fe_session *s, status failed)
{
    struct fe_work *w = s->work;
    struct fe_copy *c = w->copy;
    if (c->batch_rows == c->tried_rows)
        return failed;
    c->late = arena_alloc(&w->arena, sizeof *c->late);
    *c->late = w->err;
    c->late_context = arena_strdup(&w->arena, bytes_str(w->context));
    err_clear(&w->err);
    w->context[0] = '\0';
    status st = try_batch(s, late_settled);
    return st == ST_OK ? say_late(s) : st;
}

/* Rows that are there; ST_OK: all taken, ST_PENDING: a batch is under way. */
static NODISCARD status take_rows(struct fe_session *s)
{
    struct fe_work *w = s->work;
    struct fe_copy *c = w->copy;
    struct fe_copy_row row;
    for (;;) {
        if (batch_is_full(c))
            ST_TRY(send_batch(s));
        row = (struct fe_copy_row){0};
        status st = fe_copy_next(&c->parser, c->finishing, &c->batch, &row, &w->err);
        if (st == ST_NOT_FOUND || st == ST_END)
            break;
        if (st == ST_OK || row.seen.size > 0)
            st = check_line(s, c, &row, st);
        if (st == ST_OK)
            st = add_row(s, c, &row);
        if (st != ST_OK) {
            if (c->parser.line > 0) /* else the header is wrong */
                put_context(s, c, &row);
            return row_failed(s, st);
        }
    }
    return c->finishing ? send_batch(s) : ST_OK;
}

static void consume(struct fe_session *s)
{
    struct fe_copy *c = s->work->copy;
    status st = take_rows(s);
    if (st == ST_PENDING)
        return;
    if (st != ST_OK) {
        fe_copy_in_abort(s, st);
    } else if (c->finishing) {
        fe_run_tag(&s->work->run, "COPY", c->done_rows);
        end(s, ST_OK);
    }
}

/* -- messages ---------------------------------------------------------------------------------- */

void fe_copy_in_data(struct fe_session *s, bytes data)
{
    fe_copy_feed(&s->work->copy->parser, data);
    consume(s);
}

void fe_copy_in_done(struct fe_session *s)
{
    s->work->copy->finishing = true;
    consume(s);
}

void fe_copy_in_refuse(struct fe_session *s, status st)
{
    fe_copy_in_context(s);
    fe_copy_in_abort(s, st);
}

void fe_copy_in_fail(struct fe_session *s, bytes body)
{
    struct fe_msg_copy_fail m;
    struct err *err = &s->work->err;
    status st = fe_decode_copy_fail(body, &m, err);
    if (st == ST_OK) {
        int n = (int)(m.reason.size < 400 ? m.reason.size : 400);
        st = err_set(err, ST_CANCELLED, "COPY from stdin failed: %.*s", n,
                     (const char *)m.reason.data);
        fe_copy_in_context(s);
    }
    fe_copy_in_abort(s, st);
}
