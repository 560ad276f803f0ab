/*
 * frontend/row_encoder.c — one pass over a row's fields.
 *
 * Room is asked for once per row, and again where a text comes: `room` covers everything else. What
 * has no form of its own here (dates, intervals, bytea as text, odd characters) is written by
 * pl_datum_to_field, constants were written when the encoder was made.
 *
 * Invariant E1: at each field there is room for all that this row still needs without its texts.
 */
#include "frontend/row_encoder.h"
#include "base/assert.h"
#include "base/codec.h"
#include "base/decimal.h"

#define HEADER_BYTES 7u /* type, length, count of fields */
#define LENGTH_BYTES 4u

enum form {
    FORM_TEXT, /* the bytes as they are */
    FORM_DECIMAL,
    FORM_INT2,
    FORM_INT4,
    FORM_INT8,
    FORM_CHAR,
    FORM_OTHER,
    FORM_CONSTANT,
};

struct fe_field {
    enum form form;
    enum kv_type type;
    uint8_t source;
    bool binary;
    bytes constant; /* length and bytes */
};

int16_t fe_format_of(const int16_t *formats, unsigned count, unsigned i)
{
    return count == 0 ? 0 : formats[count == 1 ? 0 : i];
}

static enum form form_of(enum kv_type t, bool binary)
{
    switch (t) {
    case KV_TEXT: return FORM_TEXT;
    case KV_BYTEA: return binary ? FORM_TEXT : FORM_OTHER;
    case KV_INT2: return binary ? FORM_INT2 : FORM_DECIMAL;
    case KV_INT4: return binary ? FORM_INT4 : FORM_DECIMAL;
    case KV_INT8: return binary ? FORM_INT8 : FORM_DECIMAL;
    case KV_CHAR: return FORM_CHAR;
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL: break;
    }
    return FORM_OTHER;
}

/* A constant as every row will have it. */
static bytes constant_field(struct arena *a, const struct pl_value *v, bool binary,
                            const struct pl_style *style)
{
    struct obuf o;
    obuf_init(&o);
    obuf_be32(&o, UINT32_MAX);
    if (!v->null) {
        if (binary)
            pl_value_to_binary(v, &o);
        else
            pl_value_to_text(v, style, &o);
        obuf_patch_be32(&o, 0, (uint32_t)(o.size - LENGTH_BYTES));
    }
    bytes field = arena_copy(a, bytes_make(o.data, o.size));
    obuf_fini(&o);
    return field;
}

void fe_row_encoder_init(struct fe_row_encoder *e, struct arena *a, struct fe_shape shape,
                         const int16_t *formats, unsigned format_count,
                         const struct pl_style *style)
{
    struct fe_field *fields = arena_alloc(a, sizeof *fields * (shape.count > 0 ? shape.count : 1));
    *e = (struct fe_row_encoder){
        .fields = fields, .count = shape.count, .room = HEADER_BYTES, .style = style};
    for (unsigned i = 0; i < shape.count; i++) {
        const struct pl_column *c = &shape.columns[i];
        bool binary = fe_format_of(formats, format_count, i) == 1;
        fields[i] = (struct fe_field){.type = c->type, .binary = binary};
        if (c->source == PL_CONSTANT) {
            fields[i].form = FORM_CONSTANT;
            fields[i].constant = constant_field(a, c->constant, binary, style);
            e->room += fields[i].constant.size;
            continue;
        }
        fields[i].form = form_of(c->type, binary);
        fields[i].source = (uint8_t)(c->source < 0 ? 0 : c->source);
        e->room += LENGTH_BYTES + DECIMAL_MAX;
    }
}

bool fe_row_encoder_keeps(struct fe_shape shape)
{
    for (unsigned i = 0; i < shape.count; i++)
        if (shape.columns[i].source == PL_CONSTANT)
            return false;
    return true;
}

/* -- one row ----------------------------------------------------------------------------------- */

/* Where a row is written. END is that of the buffer's memory. */
struct pen {
    uint8_t *p, *end;
    struct obuf *out;
};

static void pen_take(struct pen *pen, struct obuf *out)
{
    pen->p = out->data + out->size;
    pen->end = out->data + out->capacity;
    pen->out = out;
}

/* Room for N bytes; what is written is kept. */
static void pen_room(struct pen *pen, size_t n)
{
    if (LIKELY((size_t)(pen->end - pen->p) >= n))
        return;
    pen->out->size = (size_t)(pen->p - pen->out->data);
    (void)obuf_reserve(pen->out, n);
    pen_take(pen, pen->out);
}

static uint8_t *put_sized(uint8_t *p, const void *src, size_t n)
{
    store_be32(p, (uint32_t)n);
    if (n > 0)
        memcpy(p + LENGTH_BYTES, src, n);
    return p + LENGTH_BYTES + n;
}

static uint8_t *put_decimal(uint8_t *p, int64_t v)
{
    size_t n = decimal_put((char *)p + LENGTH_BYTES, v);
    store_be32(p, (uint32_t)n);
    return p + LENGTH_BYTES + n;
}

static void put_other(const struct fe_row_encoder *e, const struct fe_field *f,
                      const struct kv_datum *d, struct pen *pen)
{
    pen->out->size = (size_t)(pen->p - pen->out->data);
    pl_datum_to_field(f->type, d, f->binary, e->style, pen->out);
    pen_take(pen, pen->out);
    pen_room(pen, e->room); /* E1 */
}

static inline void put_field(const struct fe_row_encoder *e, const struct fe_field *f,
                             const struct kv_datum *d, struct pen *pen)
{
    switch (f->form) {
    case FORM_TEXT:
        pen_room(pen, d->b.size + e->room); /* E1 */
        pen->p = put_sized(pen->p, d->b.data, d->b.size);
        return;
    case FORM_DECIMAL: pen->p = put_decimal(pen->p, d->i); return;
    case FORM_INT2: {
        uint16_t v = __builtin_bswap16((uint16_t)d->i);
        pen->p = put_sized(pen->p, &v, sizeof v);
        return;
    }
    case FORM_INT4: {
        uint32_t v = __builtin_bswap32((uint32_t)d->i);
        pen->p = put_sized(pen->p, &v, sizeof v);
        return;
    }
    case FORM_INT8: {
        uint64_t v = __builtin_bswap64((uint64_t)d->i);
        pen->p = put_sized(pen->p, &v, sizeof v);
        return;
    }
    case FORM_CHAR:
        if (UNLIKELY(d->i <= 0 || d->i >= 0x80)) {
            put_other(e, f, d, pen);
            return;
        }
        store_be32(pen->p, 1);
        pen->p[LENGTH_BYTES] = (uint8_t)d->i;
        pen->p += LENGTH_BYTES + 1;
        return;
    case FORM_OTHER: put_other(e, f, d, pen); return;
    case FORM_CONSTANT: break;
    }
    memcpy(pen->p, f->constant.data, f->constant.size);
    pen->p += f->constant.size;
}

void fe_row_encode(const struct fe_row_encoder *e, const struct kv_row *row, struct obuf *out)
{
    const struct fe_field *f = e->fields, *end = f + e->count;
    size_t at = out->size;
    struct pen pen;
    (void)obuf_reserve(out, e->room); /* E1 */
    pen_take(&pen, out);
    pen.p[0] = 'D';
    pen.p[5] = (uint8_t)(e->count >> 8);
    pen.p[6] = (uint8_t)e->count;
    pen.p += HEADER_BYTES;
    for (; f != end; f++) {
        const struct kv_datum *d = &row->col[f->source];
        if (d->null && f->form != FORM_CONSTANT) {
            store_be32(pen.p, UINT32_MAX);
            pen.p += LENGTH_BYTES;
        } else {
            put_field(e, f, d, &pen);
        }
    }
    out->size = (size_t)(pen.p - out->data);
    store_be32(out->data + at + 1, (uint32_t)(out->size - at - 1));
}
