/*
 * kv/op.c — operations as bytes.
 *
 *   kind(1) table(1) flags(1) namespace(v) now(z) seed(8) | sections of the kind
 *
 * v: varint, z: zigzag varint. Which sections a kind has is in `sections`, in the order ROWS, KEYS,
 * SETS, FILTERS, RANGE, PATHS. A datum is a tag and a value; the tag must fit the column's type, so
 * that a handler never reads a number as a pointer. Everything else about values (NULLs, ranges,
 * lengths) is the handlers' to judge: a client chose them.
 *
 * Invariant O1: what decodes, encodes to the same bytes.
 */
#include "kv/op.h"
#include "base/codec.h"

enum section {
    ROWS = 1,
    KEYS = 2,
    SETS = 4,
    FILTERS = 8,
    RANGE = 16,
    PATHS = 32,
};
static const unsigned sections[] = {
    [KV_OP_INSERT] = ROWS | SETS,
    [KV_OP_UPDATE] = KEYS | SETS | FILTERS,
    [KV_OP_DELETE] = KEYS | FILTERS,
    [KV_OP_DELETE_RANGE] = RANGE | FILTERS,
    [KV_OP_MOVE] = PATHS | FILTERS,
    [KV_OP_LINK] = PATHS,
    [KV_OP_MAKE_PATH] = PATHS,
    [KV_OP_DETACH] = PATHS,
    [KV_OP_LOCK] = KEYS,
    [KV_OP_BOOTSTRAP] = 0,
    [KV_OP_RECLAIM] = PATHS,
    [KV_OP_EXPIRE] = RANGE,
};

enum {
    FLAG_WANT_ROWS = 1,
    FLAG_CONFLICT_SHIFT = 1,
    FLAG_MOVE_SHIFT = 3,
    FLAG_BITS = 5,
};
enum datum_tag { DATUM_NULL, DATUM_DEFAULT, DATUM_INT, DATUM_BYTES };

static bool type_is_bytes(enum kv_type type)
{
    return type == KV_TEXT || type == KV_BYTEA;
}

/* -- encoding ---------------------------------------------------------------------------------- */

static void put_datum(struct obuf *out, enum kv_type type, const struct kv_datum *d)
{
    if (d->deflt) {
        put_u8(out, DATUM_DEFAULT);
    } else if (d->null) {
        put_u8(out, DATUM_NULL);
    } else if (type_is_bytes(type)) {
        put_u8(out, DATUM_BYTES);
        put_bytes(out, d->b);
    } else {
        put_u8(out, DATUM_INT);
        put_zigzag(out, d->i);
    }
}

static void encode_rows(const struct kv_op *op, const struct kv_table_def *def, struct obuf *out)
{
    put_varint(out, op->column_count);
    for (unsigned i = 0; i < op->column_count; i++)
        put_varint(out, op->columns[i]);
    put_varint(out, op->row_count);
    for (unsigned row = 0; row < op->row_count; row++)
        for (unsigned i = 0; i < op->column_count; i++)
            put_datum(out, def->columns[op->columns[i]].type,
                      &op->values[row * op->column_count + i]);
}

static void encode_keys(const struct kv_op *op, const struct kv_table_def *def, struct obuf *out)
{
    put_varint(out, op->key_count);
    for (unsigned k = 0; k < op->key_count; k++)
        for (unsigned i = 0; i < def->key_count; i++)
            put_datum(out, def->columns[i].type, &op->keys[k * def->key_count + i]);
}

static void encode_sets(const struct kv_op *op, const struct kv_table_def *def, struct obuf *out)
{
    put_varint(out, op->set_count);
    for (unsigned i = 0; i < op->set_count; i++) {
        const struct kv_set *s = &op->sets[i];
        put_varint(out, s->column);
        put_u8(out, (uint8_t)s->kind);
        if (s->kind == KV_SET_EXCLUDED)
            put_varint(out, s->from);
        else
            put_datum(out, def->columns[s->column].type, &s->value);
    }
}

static bool cmp_has_value(enum kv_cmp cmp)
{
    return cmp != KV_IS_NULL && cmp != KV_IS_NOT_NULL;
}

static void encode_filters(const struct kv_op *op, const struct kv_table_def *def, struct obuf *out)
{
    put_varint(out, op->filter_count);
    for (unsigned i = 0; i < op->filter_count; i++) {
        const struct kv_filter *f = &op->filters[i];
        put_varint(out, f->column);
        put_u8(out, (uint8_t)f->cmp);
        if (cmp_has_value(f->cmp))
            put_datum(out, def->columns[f->column].type, &f->value);
    }
}

void kv_op_encode(const struct kv_op *op, struct obuf *out)
{
    const struct kv_table_def *def = kv_table_def(op->table);
    unsigned has = sections[op->kind];
    put_u8(out, (uint8_t)op->kind);
    put_u8(out, (uint8_t)op->table);
    put_u8(out, (uint8_t)((op->want_rows ? FLAG_WANT_ROWS : 0) |
                          ((unsigned)op->conflict << FLAG_CONFLICT_SHIFT) |
                          ((unsigned)op->move << FLAG_MOVE_SHIFT)));
    put_varint(out, op->ns);
    put_zigzag(out, op->now);
    put_u64(out, op->seed);
    if (has & ROWS)
        encode_rows(op, def, out);
    if (has & KEYS)
        encode_keys(op, def, out);
    if (has & SETS)
        encode_sets(op, def, out);
    if (has & FILTERS)
        encode_filters(op, def, out);
    if (has & RANGE) {
        put_bytes(out, op->lower);
        put_bytes(out, op->upper);
    }
    if (has & PATHS) {
        put_zigzag(out, op->pid);
        put_zigzag(out, op->new_pid);
        put_bytes(out, op->name);
        put_bytes(out, op->new_name);
    }
}

/* -- decoding ---------------------------------------------------------------------------------- */

/* A count of things that take at least one byte each. */
static unsigned get_count(struct reader *in, uint64_t each, uint64_t max)
{
    uint64_t n = get_varint(in);
    if (n > max || n * each > (uint64_t)(in->end - in->next)) {
        in->bad = true;
        return 0;
    }
    return (unsigned)n;
}

static unsigned get_column(struct reader *in, const struct kv_table_def *def)
{
    uint64_t column = get_varint(in);
    if (column >= def->column_count) {
        in->bad = true;
        return 0;
    }
    return (unsigned)column;
}

static struct kv_datum get_datum(struct reader *in, enum kv_type type)
{
    struct kv_datum d = {0};
    switch ((enum datum_tag)get_u8(in)) {
    case DATUM_NULL: d.null = true; return d;
    case DATUM_DEFAULT: d.deflt = true; return d;
    case DATUM_INT:
        in->bad |= type_is_bytes(type);
        d.i = get_zigzag(in);
        return d;
    case DATUM_BYTES:
        in->bad |= !type_is_bytes(type);
        d.b = get_bytes(in);
        return d;
    default: in->bad = true; return d;
    }
}

static void decode_rows(struct reader *in, struct arena *a, const struct kv_table_def *def,
                        struct kv_op *op)
{
    op->column_count = get_count(in, 1, def->column_count);
    unsigned *columns = ARENA_ARRAY(a, unsigned, op->column_count);
    for (unsigned i = 0; i < op->column_count; i++)
        columns[i] = get_column(in, def);
    op->columns = columns;
    op->row_count = get_count(in, op->column_count, LIMIT_STATEMENT_ROWS);
    struct kv_datum *values = ARENA_ARRAY(a, struct kv_datum, op->row_count * op->column_count);
    for (unsigned row = 0; row < op->row_count && !in->bad; row++)
        for (unsigned i = 0; i < op->column_count; i++)
            values[row * op->column_count + i] = get_datum(in, def->columns[columns[i]].type);
    op->values = values;
}

static void decode_keys(struct reader *in, struct arena *a, const struct kv_table_def *def,
                        struct kv_op *op)
{
    op->key_count = get_count(in, def->key_count, LIMIT_STATEMENT_ROWS);
    struct kv_datum *keys = ARENA_ARRAY(a, struct kv_datum, op->key_count * def->key_count);
    for (unsigned k = 0; k < op->key_count && !in->bad; k++)
        for (unsigned i = 0; i < def->key_count; i++)
            keys[k * def->key_count + i] = get_datum(in, def->columns[i].type);
    op->keys = keys;
}

static void decode_sets(struct reader *in, struct arena *a, const struct kv_table_def *def,
                        struct kv_op *op)
{
    op->set_count = get_count(in, 1, LIMIT_COLUMNS);
    struct kv_set *sets = ARENA_ARRAY(a, struct kv_set, op->set_count);
    for (unsigned i = 0; i < op->set_count && !in->bad; i++) {
        sets[i].column = get_column(in, def);
        unsigned kind = get_u8(in);
        in->bad |= kind > KV_SET_EXCLUDED;
        sets[i].kind = (enum kv_set_kind)kind;
        if (kind == KV_SET_EXCLUDED)
            sets[i].from = get_column(in, def);
        else
            sets[i].value = get_datum(in, def->columns[sets[i].column].type);
    }
    op->sets = sets;
}

static void decode_filters(struct reader *in, struct arena *a, const struct kv_table_def *def,
                           struct kv_op *op)
{
    op->filter_count = get_count(in, 2, LIMIT_LITERALS);
    struct kv_filter *filters = ARENA_ARRAY(a, struct kv_filter, op->filter_count);
    for (unsigned i = 0; i < op->filter_count && !in->bad; i++) {
        filters[i].column = get_column(in, def);
        unsigned cmp = get_u8(in);
        in->bad |= cmp < KV_EQ || cmp > KV_IS_NOT_NULL;
        filters[i].cmp = (enum kv_cmp)cmp;
        if (cmp_has_value(filters[i].cmp))
            filters[i].value = get_datum(in, def->columns[filters[i].column].type);
    }
    op->filters = filters;
}

status kv_op_decode(struct reader *in, struct arena *a, struct kv_op *out)
{
    unsigned kind = get_u8(in), table = get_u8(in), flags = get_u8(in);
    uint64_t ns = get_varint(in);
    const struct kv_table_def *def = kv_table_def((enum kv_table)table);
    if (in->bad || kind < KV_OP_INSERT || kind > KV_OP_EXPIRE || def == NULL ||
        flags >> FLAG_BITS != 0 || ns > UINT32_MAX)
        return ST_CORRUPT;
    unsigned conflict = (flags >> FLAG_CONFLICT_SHIFT) & 3;
    if (conflict > KV_CONFLICT_UPDATE)
        return ST_CORRUPT;
    *out = (struct kv_op){.kind = (enum kv_op_kind)kind,
                          .table = (enum kv_table)table,
                          .ns = (uint32_t)ns,
                          .want_rows = flags & FLAG_WANT_ROWS,
                          .conflict = (enum kv_conflict)conflict,
                          .move = (enum kv_move_mode)((flags >> FLAG_MOVE_SHIFT) & 3)};
    out->now = get_zigzag(in);
    out->seed = get_u64(in);
    unsigned has = sections[kind];
    if (has & ROWS)
        decode_rows(in, a, def, out);
    if (has & KEYS)
        decode_keys(in, a, def, out);
    if (has & SETS)
        decode_sets(in, a, def, out);
    if (has & FILTERS)
        decode_filters(in, a, def, out);
    if (has & RANGE) {
        out->lower = get_bytes(in);
        out->upper = get_bytes(in);
    }
    if (has & PATHS) {
        out->pid = get_zigzag(in);
        out->new_pid = get_zigzag(in);
        out->name = get_bytes(in);
        out->new_name = get_bytes(in);
    }
    return in->bad ? ST_CORRUPT : ST_OK;
}
