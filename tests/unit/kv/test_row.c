/* Rows: what is encoded comes back, in one encoding; damage is refused. */
#include "base/arena.h"
#include "base/buf.h"
#include "kv/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t state = 7;

static uint64_t next_random(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static struct kv_datum random_datum(struct arena *a, enum kv_type type)
{
    int64_t v = (int64_t)(next_random() >> (next_random() % 64));
    size_t size = next_random() % 300;
    uint8_t *p;

    if (next_random() % 2)
        v = -v - 1;
    switch (type) {
    case KV_INT2: return kv_int((int16_t)v);
    case KV_INT4: return kv_int((int32_t)v);
    case KV_CHAR: return kv_int((uint8_t)v);
    case KV_TEXT:
    case KV_BYTEA:
        p = arena_alloc(a, size + 1);
        for (size_t i = 0; i < size; i++)
            p[i] = (uint8_t)next_random();
        return kv_text(bytes_make(p, size));
    case KV_INT8:
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL: break;
    }
    return kv_int(v);
}

static void random_row(struct arena *a, const struct kv_table_def *def, struct kv_row *row)
{
    row->table = def->table;
    for (unsigned c = 0; c < def->column_count; c++)
        row->col[c] = next_random() % 3 ? random_datum(a, def->columns[c].type) : KV_NULL;
}

static bytes encode(struct obuf *o, const struct kv_row *row)
{
    obuf_reset(o);
    kv_row_encode(row, o);
    return bytes_make(o->data, o->size);
}

static bool stored(const struct kv_table_def *def, unsigned c)
{
    return c >= def->key_count && (int)c != def->seq_column;
}

static void check_equal(const struct kv_table_def *def, const struct kv_row *x,
                        const struct kv_row *y)
{
    for (unsigned c = 0; c < def->column_count; c++) {
        if (!stored(def, c))
            continue;
        assert_int_equal(x->col[c].null, y->col[c].null);
        assert_false(y->col[c].deflt);
        if (x->col[c].null)
            continue;
        if (def->columns[c].type == KV_TEXT || def->columns[c].type == KV_BYTEA)
            assert_true(bytes_eq(x->col[c].b, y->col[c].b));
        else
            assert_int_equal(x->col[c].i, y->col[c].i);
    }
}

static void row_comes_back_and_every_cut_is_refused(void **unused)
{
    struct obuf o, again;

    (void)unused;
    obuf_init(&o);
    obuf_init(&again);
    for (unsigned i = 0; i < 6000; i++) {
        const struct kv_table_def *def = kv_table_at(i % 6);
        struct kv_row row, back, copy;
        struct arena a;
        bytes value;

        arena_init(&a, 4096);
        random_row(&a, def, &row);
        value = encode(&o, &row);
        assert_int_equal(kv_row_decode(def->table, value, &back), ST_OK);
        check_equal(def, &row, &back);
        assert_true(bytes_eq(encode(&again, &back), value));
        for (size_t size = 0; size < value.size; size++)
            assert_int_equal(kv_row_decode(def->table, bytes_make(value.data, size), &copy),
                             ST_CORRUPT);
        kv_row_copy(&a, &row, &copy);
        check_equal(def, &row, &copy);
        arena_fini(&a);
    }
    obuf_fini(&o);
    obuf_fini(&again);
}

static void damaged_rows_are_refused(void **unused)
{
    struct kv_row out;

    (void)unused;
    assert_int_equal(kv_row_decode(KV_KV, BYTES_EMPTY, &out), ST_CORRUPT);
    assert_int_equal(kv_row_decode(KV_KV, BYTES_LIT("\2\0"), &out), ST_CORRUPT); /* format */
    assert_int_equal(kv_row_decode(KV_KV, bytes_make("\1\0", 2), &out), ST_OK);
    assert_int_equal(kv_row_decode(KV_KV, bytes_make("\1\0x", 3), &out), ST_CORRUPT); /* rest */
    /* Bit 1 is seq, which is never in a row; bit 3 is no column. */
    assert_int_equal(kv_row_decode(KV_KV, bytes_make("\1\2\0", 3), &out), ST_CORRUPT);
    assert_int_equal(kv_row_decode(KV_KV, bytes_make("\1\x8\0", 3), &out), ST_CORRUPT);
    assert_int_equal(kv_row_decode(KV_QUEUE, bytes_make("\1\0", 2), &out), ST_CORRUPT);
    /* nlink, an integer, of 2^32 */
    assert_int_equal(kv_row_decode(KV_META, bytes_make("\1\x40\x80\x80\x80\x80\x20", 7), &out),
                     ST_CORRUPT);
}

static void columns_of_a_later_version_are_skipped_where_allowed(void **unused)
{
    struct kv_row out;

    (void)unused;
    assert_int_equal(kv_row_decode(KV_KV, bytes_make("\x81\x09\1vzzz", 7), &out), ST_OK);
    assert_true(bytes_eq(out.col[KVT_VALUE].b, BYTES_LIT("v")));
    assert_true(out.col[KVT_EXPIRES_AT].null);
}

static void tables_and_columns_are_found_by_name(void **unused)
{
    (void)unused;
    for (unsigned t = 0; kv_table_at(t) != NULL; t++) {
        const struct kv_table_def *def = kv_table_at(t);

        assert_ptr_equal(kv_table_by_name(bytes_str(def->name)), def);
        assert_ptr_equal(kv_table_def(def->table), def);
        for (unsigned c = 0; c < def->column_count; c++) {
            assert_int_equal(kv_column_by_name(def, bytes_str(def->columns[c].name)), (int)c);
            assert_int_equal(def->columns[c].key, c < def->key_count);
        }
    }
    assert_null(kv_table_def((enum kv_table)0));
    assert_null(kv_table_def(KV_QUEUE));
    assert_null(kv_table_by_name(BYTES_LIT("META")));
    assert_int_equal(kv_column_by_name(kv_table_def(KV_META), BYTES_LIT("nam")), -1);
}

/* Rows read one after the other through one reader are those read one by one, whole, cut at any
 * place, or with any byte changed. */
static void reader_agrees_with_decoding(void **unused)
{
    struct arena a;
    struct obuf o;

    (void)unused;
    arena_init(&a, 4096);
    obuf_init(&o);
    for (unsigned i = 0; i < 4000; i++) {
        const struct kv_table_def *def = kv_table_at(i % KV_TABLES);
        struct kv_row_reader reader;
        struct kv_row row, one, other;
        bytes value;

        random_row(&a, def, &row);
        value = arena_copy(&a, encode(&o, &row));
        kv_row_reader_init(&reader, def->table, (kv_column_set)next_random());
        if (i % 4 == 1)
            value.size = next_random() % (value.size + 1);
        if (i % 4 == 2)
            ((uint8_t *)(uintptr_t)value.data)[next_random() % value.size] = (uint8_t)next_random();
        kv_row_clear(def->table, &one);
        kv_row_clear(def->table, &other);
        status st = kv_row_decode_some(def->table, value, reader.wanted, &one);
        assert_int_equal(kv_row_read(&reader, value, &other), st);
        if (st == ST_OK)
            check_equal(def, &one, &other);
        arena_reset(&a);
    }
    obuf_fini(&o);
    arena_fini(&a);
}

/* Any set of columns reads as the whole row does, and leaves the others alone. */
static void some_columns_are_those_of_the_row(void **unused)
{
    struct arena a;
    struct obuf o;

    (void)unused;
    arena_init(&a, 4096);
    obuf_init(&o);
    for (unsigned i = 0; i < 4000; i++) {
        const struct kv_table_def *def = kv_table_at(i % KV_TABLES);
        kv_column_set wanted = (kv_column_set)next_random();
        struct kv_row row, some;

        random_row(&a, def, &row);
        kv_row_clear(def->table, &some);
        for (unsigned c = 0; c < LIMIT_COLUMNS; c++)
            some.col[c] = kv_int(-77);
        assert_int_equal(kv_row_decode_some(def->table, encode(&o, &row), wanted, &some), ST_OK);
        for (unsigned c = 0; c < LIMIT_COLUMNS; c++) {
            bool read = c < def->column_count && stored(def, c) && (wanted & kv_column_bit(c));

            if (!read) {
                assert_int_equal(some.col[c].i, -77);
                row.col[c] = some.col[c] = KV_NULL;
            }
        }
        check_equal(def, &row, &some);
        arena_reset(&a);
    }
    obuf_fini(&o);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_and_columns_are_found_by_name),
        cmocka_unit_test(row_comes_back_and_every_cut_is_refused),
        cmocka_unit_test(damaged_rows_are_refused),
        cmocka_unit_test(some_columns_are_those_of_the_row),
        cmocka_unit_test(reader_agrees_with_decoding),
        cmocka_unit_test(columns_of_a_later_version_are_skipped_where_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
