/*
 * Row bytes.
 *
 *     +--------+----------------------+---------+---------+----
 *     | format | bitmap of presence   | value   | value   | ...
 *     | 1 byte | varint               |         |         |
 *     +--------+----------------------+---------+---------+----
 *
 * Bit i of the bitmap stands for column key_count + i; a column that is NULL has no bit and no
 * bytes. Values follow in column order: integers and times as zigzag varints, "char" as one byte,
 * text and bytea as a varint length and the bytes. Key columns are in the key and `seq` is the
 * version's stamp, so neither is here.
 *
 * Invariants
 *   R1  One row has one encoding: equal rows are equal bytes. Replica hashes rest on it.
 *   R2  The low seven bits of the format byte are ROW_FORMAT. Its top bit says that columns which
 *       this program does not know may follow the known ones and may be ignored; without it an
 *       unknown bit or a byte left over is damage.
 */
#include "kv/row.h"
#include "base/assert.h"
#include "base/codec.h"

#define ROW_FORMAT 1u
#define ROW_FORMAT_MASK 0x7fu
#define ROW_SKIPPABLE 0x80u

static void value_put(struct obuf *out, enum kv_type type, const struct kv_datum *d)
{
    switch (type) {
    case KV_CHAR: put_u8(out, (uint8_t)d->i); break;
    case KV_TEXT:
    case KV_BYTEA: put_bytes(out, d->b); break;
    case KV_INT2:
    case KV_INT4:
    case KV_INT8:
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL: put_zigzag(out, d->i); break;
    }
}

static size_t size_max(const struct kv_row *row)
{
    const struct kv_table_def *def = kv_table_def(row->table);
    size_t size = 1 + VARINT_MAX_BYTES;

    ASSERT(def != NULL);
    for (unsigned c = def->key_count; c < def->column_count; c++) {
        enum kv_type type = def->columns[c].type;

        size += VARINT_MAX_BYTES;
        if ((type == KV_TEXT || type == KV_BYTEA) && !row->col[c].null)
            size += row->col[c].b.size;
    }
    return size;
}

static void value_skip(struct reader *r, enum kv_type type)
{
    switch (type) {
    case KV_CHAR: (void)get_u8(r); break;
    case KV_TEXT:
    case KV_BYTEA: (void)get_bytes(r); break;
    case KV_INT2:
    case KV_INT4:
    case KV_INT8:
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL: skip_varint(r); break;
    }
}

/* A value outside its type's range is damage: no statement could have stored it. */
static void value_get(struct reader *r, enum kv_type type, struct kv_datum *d)
{
    d->null = d->deflt = false;
    switch (type) {
    case KV_CHAR: d->i = get_u8(r); break;
    case KV_TEXT:
    case KV_BYTEA: d->b = get_bytes(r); break;
    case KV_INT2:
        d->i = get_zigzag(r);
        r->bad |= d->i != (int16_t)d->i;
        break;
    case KV_INT4:
        d->i = get_zigzag(r);
        r->bad |= d->i != (int32_t)d->i;
        break;
    case KV_INT8:
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL: d->i = get_zigzag(r); break;
    }
}

void kv_row_encode(const struct kv_row *row, struct obuf *out)
{
    const struct kv_table_def *def = kv_table_def(row->table);
    uint64_t present = 0;

    ASSERT(def != NULL);
    for (unsigned c = def->key_count; c < def->column_count; c++) {
        if ((int)c == def->seq_column || row->col[c].null)
            continue;
        ASSERT(!row->col[c].deflt);
        present |= 1ull << (c - def->key_count);
    }
    put_u8(out, ROW_FORMAT);
    put_varint(out, present);
    for (unsigned c = def->key_count; c < def->column_count; c++)
        if (present >> (c - def->key_count) & 1)
            value_put(out, def->columns[c].type, &row->col[c]);
}

bytes kv_row_bytes(struct arena *a, const struct kv_row *row)
{
    struct obuf out = {.capacity = size_max(row)};
    uint8_t *data = arena_alloc(a, out.capacity);

    out.data = data;
    kv_row_encode(row, &out);
    ASSERT(out.data == data); /* it had room */
    arena_trim(a, data, out.size);
    return bytes_make(data, out.size);
}

/* The bits of the columns that are in row bytes. */
static uint64_t stored_columns(const struct kv_table_def *def)
{
    uint64_t stored = (1ull << def->column_count) - (1ull << def->key_count);

    return def->seq_column >= 0 ? stored & ~(1ull << def->seq_column) : stored;
}

/* Reads up to the last column of WANTED. What follows is left in R. */
static status decode_columns(enum kv_table table, struct reader *r, uint64_t wanted,
                             uint8_t *format, struct kv_row *out)
{
    const struct kv_table_def *def = kv_table_def(table);
    uint64_t present, stored;

    *format = get_u8(r);
    present = get_varint(r);
    if (def == NULL || (*format & ROW_FORMAT_MASK) != ROW_FORMAT)
        return ST_CORRUPT;
    stored = stored_columns(def);
    if ((present & ~(stored >> def->key_count)) != 0 && !(*format & ROW_SKIPPABLE))
        return ST_CORRUPT;
    out->table = table;
    present = (present << def->key_count) & stored;
    wanted &= stored;
    for (uint64_t none = wanted & ~present; none != 0; none &= none - 1)
        out->col[__builtin_ctzll(none)] = KV_NULL;
    wanted &= present;
    for (; wanted != 0; present &= present - 1) {
        unsigned c = (unsigned)__builtin_ctzll(present);

        if (!(wanted >> c & 1)) {
            value_skip(r, def->columns[c].type);
            continue;
        }
        value_get(r, def->columns[c].type, &out->col[c]);
        wanted &= ~(1ull << c);
    }
    return r->bad ? ST_CORRUPT : ST_OK;
}

status kv_row_decode_some(enum kv_table table, bytes value, kv_column_set wanted,
                          struct kv_row *out)
{
    struct reader r = reader_make(value);
    uint8_t format;

    return decode_columns(table, &r, wanted, &format, out);
}

status kv_row_decode(enum kv_table table, bytes value, struct kv_row *out)
{
    struct reader r = reader_make(value);
    uint8_t format;

    ST_TRY(decode_columns(table, &r, KV_ALL_COLUMNS, &format, out));
    return format & ROW_SKIPPABLE ? ST_OK : codec_finish(&r);
}

/* -- many rows --------------------------------------------------------------------------------- */

/* By type, and whether the value is wanted or passed over. */
enum step {
    PASS_NUMBER,
    PASS_CHAR,
    PASS_BYTES,
    TAKE_INT2,
    TAKE_INT4,
    TAKE_INT8,
    TAKE_CHAR,
    TAKE_BYTES
};

static enum step step_of(enum kv_type type, bool wanted)
{
    switch (type) {
    case KV_CHAR: return wanted ? TAKE_CHAR : PASS_CHAR;
    case KV_TEXT:
    case KV_BYTEA: return wanted ? TAKE_BYTES : PASS_BYTES;
    case KV_INT2: return wanted ? TAKE_INT2 : PASS_NUMBER;
    case KV_INT4: return wanted ? TAKE_INT4 : PASS_NUMBER;
    case KV_INT8:
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL: break;
    }
    return wanted ? TAKE_INT8 : PASS_NUMBER;
}

void kv_row_reader_init(struct kv_row_reader *r, enum kv_table table, kv_column_set wanted)
{
    const struct kv_table_def *def = kv_table_def(table);

    ASSERT(def != NULL);
    r->table = table;
    r->wanted = wanted;
    r->first = def->key_count;
    r->known = stored_columns(def) >> def->key_count;
    r->asked = r->known & wanted >> def->key_count;
    for (unsigned c = def->key_count; c < def->column_count; c++)
        r->step[c - def->key_count] =
            (uint8_t)step_of(def->columns[c].type, (wanted >> c & 1) != 0);
}

/* The number at *P; false where it is too near the end to be read by one load, or misspelled. */
static inline bool number_take(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
    size_t size;

    if (end - *p < VARINT_MAX_BYTES)
        return false;
    size = varint_at(*p, v);
    *p += size;
    return size > 0;
}

static inline bool number_pass(const uint8_t **p, const uint8_t *end)
{
    uint64_t w, last;

    if (end - *p < VARINT_MAX_BYTES)
        return false;
    memcpy(&w, *p, sizeof w);
    last = ~w & 0x8080808080808080u;
    *p += last != 0 ? (unsigned)__builtin_ctzll(last) / 8 + 1 : 0;
    return last != 0;
}

static inline bool bytes_take(const uint8_t **p, const uint8_t *end, bytes *out)
{
    if (*p == end || **p >= 0x80 || end - *p <= **p)
        return false;
    *out = bytes_make(*p + 1, **p);
    *p += 1 + **p;
    return true;
}

/* Whether STEP is done; a value out of its type's range is not. */
static inline bool step_do(enum step step, const uint8_t **p, const uint8_t *end,
                           struct kv_datum *d)
{
    uint64_t v;
    bytes passed;

    switch (step) {
    case PASS_NUMBER: return number_pass(p, end);
    case PASS_CHAR: return (*p)++ != end;
    case PASS_BYTES: return bytes_take(p, end, &passed);
    case TAKE_INT2:
    case TAKE_INT4:
    case TAKE_INT8:
        if (!number_take(p, end, &v))
            return false;
        d->i = zigzag_decode(v);
        if (step == TAKE_INT2)
            return d->i == (int16_t)d->i;
        return step == TAKE_INT8 || d->i == (int32_t)d->i;
    case TAKE_CHAR:
        if (*p == end)
            return false;
        d->i = *(*p)++;
        return true;
    case TAKE_BYTES: return bytes_take(p, end, &d->b);
    }
    return false;
}

/* What is not plain, near the end, or damaged, is left to the general way, from the start. */
status kv_row_read(const struct kv_row_reader *r, bytes value, struct kv_row *out)
{
    const uint8_t *p = value.data, *end = p + value.size;
    uint64_t present, left;

    if (value.size <= VARINT_MAX_BYTES || *p++ != ROW_FORMAT || !number_take(&p, end, &present) ||
        (present & ~r->known) != 0)
        return kv_row_decode_some(r->table, value, r->wanted, out);
    for (left = r->asked & ~present; left != 0; left &= left - 1)
        out->col[r->first + (unsigned)__builtin_ctzll(left)] = KV_NULL;
    for (left = r->asked & present; left != 0; present &= present - 1) {
        unsigned bit = (unsigned)__builtin_ctzll(present);
        struct kv_datum *d = &out->col[r->first + bit];

        if (UNLIKELY(!step_do((enum step)r->step[bit], &p, end, d)))
            return kv_row_decode_some(r->table, value, r->wanted, out);
        if (r->step[bit] < TAKE_INT2)
            continue;
        d->null = d->deflt = false;
        left &= left - 1; /* the lowest one, this */
    }
    return ST_OK;
}

void kv_row_clear(enum kv_table table, struct kv_row *out)
{
    out->table = table;
    for (unsigned c = 0; c < LIMIT_COLUMNS; c++)
        out->col[c].null = true, out->col[c].deflt = false;
}

void kv_row_copy(struct arena *a, const struct kv_row *src, struct kv_row *dst)
{
    const struct kv_table_def *def = kv_table_def(src->table);

    ASSERT(def != NULL);
    *dst = *src;
    for (unsigned c = 0; c < def->column_count; c++) {
        enum kv_type type = def->columns[c].type;

        if ((type == KV_TEXT || type == KV_BYTEA) && !src->col[c].null && !src->col[c].deflt)
            dst->col[c].b = arena_copy(a, src->col[c].b);
    }
}
