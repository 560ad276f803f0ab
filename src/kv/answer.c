/*
 * kv/answer.c — the codec of answers.
 *
 *   format(1) outcome(v) failed_op(v) affected(z) scalar: present(1) value(z)
 *   rows: count(v), then if any table(1), then each: present columns(v), their values in order
 *   unless the outcome is ST_OK, the error: code(v) position(v) and its eight texts
 *
 * Numbers and texts of a row are told apart by the table's columns.
 */
#include "kv/answer.h"
#include "base/assert.h"
#include "base/codec.h"

#define ANSWER_FORMAT 1u

static bool is_text(enum kv_type type)
{
    return type == KV_TEXT || type == KV_BYTEA;
}

/* -- to bytes ---------------------------------------------------------------------------------- */

static void put_row(const struct kv_table_def *def, const struct kv_row *row, struct obuf *out)
{
    uint64_t present = 0;
    for (unsigned i = 0; i < def->column_count; i++)
        present |= (uint64_t)!row->col[i].null << i;
    put_varint(out, present);
    for (unsigned i = 0; i < def->column_count; i++) {
        if (row->col[i].null)
            continue;
        if (is_text(def->columns[i].type))
            put_bytes(out, row->col[i].b);
        else
            put_zigzag(out, row->col[i].i);
    }
}

static void put_rows(const struct kv_result *r, struct obuf *out)
{
    put_varint(out, r->row_count);
    if (r->row_count == 0)
        return;
    const struct kv_table_def *def = kv_table_def(r->rows[0].table);
    ASSERT(def != NULL);
    put_u8(out, (uint8_t)r->rows[0].table);
    for (unsigned i = 0; i < r->row_count; i++) {
        ASSERT(r->rows[i].table == r->rows[0].table);
        put_row(def, &r->rows[i], out);
    }
}

static void put_err(const struct err *e, struct obuf *out)
{
    const char *const texts[] = {e->sqlstate, e->message, e->detail, e->hint,
                                 e->schema,   e->table,   e->column, e->constraint};
    put_varint(out, e->code);
    put_varint(out, e->position);
    for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
        put_bytes(out, bytes_str(texts[i]));
}

void kv_answer_encode(const struct kv_applied *a, struct obuf *out)
{
    put_u8(out, ANSWER_FORMAT);
    put_varint(out, a->outcome);
    put_varint(out, a->failed_op);
    put_zigzag(out, a->result.affected);
    put_u8(out, !a->result.scalar.null);
    put_zigzag(out, a->result.scalar.null ? 0 : a->result.scalar.i);
    put_rows(&a->result, out);
    if (a->outcome != ST_OK)
        put_err(&a->err, out);
}

/* -- and back ---------------------------------------------------------------------------------- */

static void get_row(struct reader *in, const struct kv_table_def *def, struct kv_row *out)
{
    uint64_t present = get_varint(in);
    if (present >> def->column_count != 0)
        in->bad = true;
    kv_row_clear(def->table, out);
    for (unsigned i = 0; i < def->column_count && !in->bad; i++) {
        if ((present >> i & 1) == 0)
            continue;
        if (is_text(def->columns[i].type))
            out->col[i] = kv_text(get_bytes(in));
        else
            out->col[i] = kv_int(get_zigzag(in));
    }
}

static void get_rows(struct reader *in, struct arena *a, struct kv_result *out)
{
    uint64_t count = get_varint(in);
    out->rows = NULL;
    out->row_count = 0;
    if (count == 0)
        return;
    const struct kv_table_def *def = kv_table_def((enum kv_table)get_u8(in));
    /* A row takes a byte at least: no more is reserved than was sent. */
    if (def == NULL || count > (uint64_t)(in->end - in->next)) {
        in->bad = true;
        return;
    }
    struct kv_row *rows = arena_alloc(a, sizeof *rows * count);
    for (uint64_t i = 0; i < count && !in->bad; i++)
        get_row(in, def, &rows[i]);
    out->rows = rows;
    out->row_count = (unsigned)count;
}

static void get_text(struct reader *in, char *out, size_t size)
{
    bytes b = get_bytes(in);
    if (b.size >= size || (b.size > 0 && memchr(b.data, 0, b.size) != NULL)) {
        in->bad = true;
        return;
    }
    if (b.size > 0)
        memcpy(out, b.data, b.size);
    out[b.size] = '\0';
}

static void get_err(struct reader *in, struct err *e)
{
    uint64_t code = get_varint(in), position = get_varint(in);
    if (code >= ST_COUNT || position > UINT32_MAX)
        in->bad = true;
    err_clear(e);
    if (in->bad)
        return;
    e->code = (status)code;
    e->position = (uint32_t)position;
    get_text(in, e->sqlstate, sizeof e->sqlstate);
    get_text(in, e->message, sizeof e->message);
    get_text(in, e->detail, sizeof e->detail);
    get_text(in, e->hint, sizeof e->hint);
    get_text(in, e->schema, sizeof e->schema);
    get_text(in, e->table, sizeof e->table);
    get_text(in, e->column, sizeof e->column);
    get_text(in, e->constraint, sizeof e->constraint);
}

status kv_answer_decode(bytes in, struct arena *a, struct kv_applied *out)
{
    struct reader r = reader_make(in);
    unsigned format = get_u8(&r);
    uint64_t outcome = get_varint(&r), failed_op = get_varint(&r);
    out->result.affected = get_zigzag(&r);
    bool scalar = get_u8(&r) != 0;
    int64_t value = get_zigzag(&r);
    if (r.bad || format != ANSWER_FORMAT || outcome >= ST_COUNT || failed_op > UINT32_MAX)
        return ST_CORRUPT;
    out->outcome = (status)outcome;
    out->failed_op = (unsigned)failed_op;
    out->result.scalar = scalar ? kv_int(value) : KV_NULL;
    out->cold_key = BYTES_EMPTY;
    get_rows(&r, a, &out->result);
    if (out->outcome != ST_OK)
        get_err(&r, &out->err);
    else
        err_clear(&out->err);
    return codec_finish(&r);
}
