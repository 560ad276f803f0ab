/* DataRows of the encoder: byte for byte those that the general functions write. */
#include "base/codec.h"
#include "frontend/pgwire.h"
#include "frontend/row_encoder.h"
#include "planner/timezone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t seed = 11;

static uint64_t next_random(void)
{
    uint64_t z = (seed += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static struct kv_datum random_datum(struct arena *a, enum kv_type type)
{
    int64_t v = (int64_t)(next_random() >> (next_random() % 64));
    if (next_random() % 2)
        v = -v - 1;
    switch (type) {
    case KV_INT2: return kv_int((int16_t)v);
    case KV_INT4: return kv_int((int32_t)v);
    case KV_CHAR: return kv_int((uint8_t)v);
    case KV_TIMESTAMPTZ: return kv_int(v / 2048); /* within what has a text */
    case KV_TEXT:
    case KV_BYTEA: {
        size_t size = next_random() % (next_random() % 8 == 0 ? 3000 : 40);
        uint8_t *p = arena_alloc(a, size + 1);
        for (size_t i = 0; i < size; i++)
            p[i] = (uint8_t)next_random();
        return kv_text(bytes_make(p, size));
    }
    case KV_INT8:
    case KV_INTERVAL: break;
    }
    return kv_int(v);
}

/* What result.c and the planner write for the same row. */
static void put_reference(struct obuf *o, struct fe_shape shape, const int16_t *formats,
                          unsigned format_count, const struct pl_style *style,
                          const struct kv_row *row)
{
    size_t at = fe_message_begin(o, 'D');
    obuf_be16(o, (uint16_t)shape.count);
    for (unsigned i = 0; i < shape.count; i++) {
        const struct pl_column *c = &shape.columns[i];
        bool binary = fe_format_of(formats, format_count, i) == 1;
        if (c->source != PL_CONSTANT) {
            pl_datum_to_field(c->type, &row->col[c->source < 0 ? 0 : c->source], binary, style, o);
            continue;
        }
        size_t field = o->size;
        obuf_be32(o, UINT32_MAX);
        if (c->constant->null)
            continue;
        if (binary)
            pl_value_to_binary(c->constant, o);
        else
            pl_value_to_text(c->constant, style, o);
        obuf_patch_be32(o, field, (uint32_t)(o->size - field - 4));
    }
    fe_message_end(o, at);
}

static const struct pl_value constants[] = {
    {.oid = OID_INT4, .i = -17},
    {.oid = OID_TEXT, .null = true},
    {.oid = OID_TEXT, .b = {(const uint8_t *)"a constant that is longer than a number", 39}},
    {.oid = OID_BOOL, .i = 1},
};

static struct pl_column random_column(const struct kv_table_def *def)
{
    unsigned c = (unsigned)(next_random() % (def->column_count + 1));
    if (c < def->column_count)
        return (struct pl_column){.source = (int)c, .type = def->columns[c].type};
    return (struct pl_column){.source = PL_CONSTANT,
                              .constant = &constants[next_random() % ARRAY_LEN(constants)]};
}

/* Tables, columns in any order and number, NULLs, formats, styles; several rows into one buffer. */
static void rows_are_those_of_the_general_way(void **unused)
{
    struct arena a;
    struct obuf have, want;
    (void)unused;
    arena_init(&a, 4096);
    obuf_init(&have);
    obuf_init(&want);
    for (unsigned i = 0; i < 3000; i++) {
        const struct kv_table_def *def = kv_table_at(i % KV_TABLES);
        struct pl_column columns[30];
        int16_t formats[30];
        struct fe_shape shape = {.columns = columns, .rows = true};
        struct pl_style style = {.zone = pl_zone_utc(), .bytea_escape = next_random() % 2 == 0};
        shape.count = (unsigned)(next_random() % ARRAY_LEN(columns));
        for (unsigned c = 0; c < shape.count; c++) {
            columns[c] = random_column(def);
            formats[c] = next_random() % 2 == 0;
        }
        unsigned format_count = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : shape.count;
        struct fe_row_encoder e;
        fe_row_encoder_init(&e, &a, shape, formats, format_count, &style);
        for (unsigned n = 0; n < 5; n++) {
            struct kv_row row = {.table = def->table};
            for (unsigned c = 0; c < def->column_count; c++)
                row.col[c] = next_random() % 4 ? random_datum(&a, def->columns[c].type) : KV_NULL;
            fe_row_encode(&e, &row, &have);
            put_reference(&want, shape, formats, format_count, &style, &row);
        }
        assert_int_equal(have.size, want.size);
        assert_memory_equal(have.data, want.data, want.size);
        obuf_fini(&have); /* so that it grows anew, in the middle of rows */
        obuf_reset(&want);
        arena_reset(&a);
    }
    obuf_fini(&want);
    arena_fini(&a);
}

/* A row without columns, and a count, which is in the first place of its row. */
static void odd_shapes(void **unused)
{
    struct arena a;
    struct obuf o;
    struct fe_row_encoder e;
    struct pl_style style = {.zone = pl_zone_utc()};
    struct pl_column count = {.source = -1, .type = KV_INT8};
    struct kv_row row = {.table = KV_META};
    (void)unused;
    arena_init(&a, 4096);
    obuf_init(&o);
    row.col[0] = kv_int(INT64_MIN);
    fe_row_encoder_init(&e, &a, (struct fe_shape){.rows = true}, NULL, 0, &style);
    fe_row_encode(&e, &row, &o);
    assert_int_equal(o.size, 7);
    assert_memory_equal(o.data, "D\0\0\0\6\0\0", 7);
    obuf_reset(&o);
    fe_row_encoder_init(&e, &a, (struct fe_shape){&count, 1, true}, NULL, 0, &style);
    fe_row_encode(&e, &row, &o);
    assert_int_equal(o.size, 31);
    assert_memory_equal(o.data, "D\0\0\0\36\0\1\0\0\0\24-9223372036854775808", 31);
    obuf_fini(&o);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_general_way),
        cmocka_unit_test(odd_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
