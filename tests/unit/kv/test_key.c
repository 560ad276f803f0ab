/* Keys: memcmp order is tuple order; one tuple, one key; damage is refused. */
#include "base/arena.h"
#include "kv/key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t state = 42;

static uint64_t next_random(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* Values near the places where an encoding breaks. */
static int64_t random_int(void)
{
    static const int64_t edges[] = {0, -1, 1, INT64_MIN, INT64_MAX, 255, 256, -256, INT64_MIN + 1};

    if (next_random() % 3)
        return edges[next_random() % (sizeof edges / sizeof edges[0])];
    return (int64_t)next_random();
}

static bytes random_text(struct arena *a)
{
    static const uint8_t alphabet[] = {0, 0, 1, 'a', 0xfe, 0xff};
    size_t size = next_random() % 5;
    uint8_t *p = arena_alloc(a, size + 1);

    for (size_t i = 0; i < size; i++)
        p[i] = alphabet[next_random() % sizeof alphabet];
    return bytes_make(p, size);
}

static void random_tuple(struct arena *a, const struct kv_table_def *def, struct kv_row *row)
{
    row->table = def->table;
    for (unsigned c = 0; c < def->key_count; c++)
        row->col[c] =
            def->columns[c].type == KV_TEXT ? kv_text(random_text(a)) : kv_int(random_int());
}

static int tuple_cmp(const struct kv_table_def *def, const struct kv_row *x, const struct kv_row *y)
{
    for (unsigned c = 0; c < def->key_count; c++) {
        int d;

        if (def->columns[c].type == KV_TEXT)
            d = bytes_cmp(x->col[c].b, y->col[c].b);
        else
            d = x->col[c].i < y->col[c].i ? -1 : x->col[c].i > y->col[c].i;
        if (d != 0)
            return d;
    }
    return 0;
}

static int sign(int v)
{
    return v < 0 ? -1 : v > 0;
}

static void order_of_keys_is_order_of_tuples(void **unused)
{
    (void)unused;
    for (unsigned t = 0; kv_table_at(t) != NULL; t++) {
        const struct kv_table_def *def = kv_table_at(t);

        for (unsigned i = 0; i < 20000; i++) {
            struct kv_row x, y, back;
            struct arena a;
            bytes kx, ky;
            uint32_t ns;

            arena_init(&a, 1024);
            random_tuple(&a, def, &x);
            random_tuple(&a, def, &y);
            if (next_random() % 2)
                y.col[0] = x.col[0];
            kx = kv_key_of_row(&a, 5, &x);
            ky = kv_key_of_row(&a, 5, &y);
            assert_int_equal(sign(bytes_cmp(kx, ky)), sign(tuple_cmp(def, &x, &y)));
            assert_int_equal(kv_key_decode(&a, kx, &ns, &back), ST_OK);
            assert_int_equal(ns, 5);
            assert_int_equal(back.table, def->table);
            assert_int_equal(tuple_cmp(def, &x, &back), 0);
            assert_true(kx.size <= KV_KEY_MAX);
            arena_fini(&a);
        }
    }
}

static void namespaces_and_tables_come_before_columns(void **unused)
{
    struct arena a;

    (void)unused;
    arena_init(&a, 1024);
    assert_true(bytes_cmp(kv_key_meta(&a, 1, INT64_MAX, BYTES_LIT("z")),
                          kv_key_meta(&a, 2, INT64_MIN, BYTES_LIT("a"))) < 0);
    assert_true(bytes_cmp(kv_key_meta(&a, UINT32_MAX, 0, BYTES_LIT("z")),
                          kv_key_prefix(&a, 0, KV_QUOTA, NULL, 0)) < 0);
    arena_fini(&a);
}

static void prefix_bounds_hold_exactly_the_keys_that_begin_with_it(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < 20000; i++) {
        const struct kv_table_def *def = kv_table_at((unsigned)next_random() % 6);
        struct kv_row x, y;
        struct arena a;
        unsigned count;
        bytes prefix, after, key;
        bool same = true;

        arena_init(&a, 1024);
        random_tuple(&a, def, &x);
        random_tuple(&a, def, &y);
        count = (unsigned)next_random() % def->key_count; /* never the last column */
        for (unsigned c = 0; c < count; c++) {
            if (next_random() % 4)
                y.col[c] = x.col[c];
            same &= def->columns[c].type == KV_TEXT ? bytes_eq(x.col[c].b, y.col[c].b)
                                                    : x.col[c].i == y.col[c].i;
        }
        prefix = kv_key_prefix(&a, 1, def->table, x.col, count);
        after = kv_key_after_prefix(&a, prefix);
        key = kv_key_of_row(&a, 1, &y);
        assert_int_equal(bytes_cmp(prefix, key) <= 0 && bytes_cmp(key, after) < 0, same);
        assert_int_equal(bytes_has_prefix(key, prefix), same);
        arena_fini(&a);
    }
}

static void after_prefix_drops_trailing_ff(void **unused)
{
    struct arena a;

    (void)unused;
    arena_init(&a, 1024);
    assert_true(bytes_eq(kv_key_after_prefix(&a, BYTES_LIT("a\xff\xff")), BYTES_LIT("b")));
    assert_int_equal(kv_key_after_prefix(&a, BYTES_LIT("\xff\xff")).size, 0);
    assert_true(bytes_eq(kv_key_successor(&a, BYTES_LIT("a")), bytes_make("a", 2)));
    arena_fini(&a);
}

static void attribute_keys_are_known(void **unused)
{
    struct kv_datum bucket = kv_text(BYTES_LIT("_attr_"));
    struct arena a;

    (void)unused;
    arena_init(&a, 1024);
    assert_true(kv_key_is_attr(kv_key_attr(&a, 9, -3)));
    assert_false(kv_key_is_attr(kv_key_meta(&a, 9, -3, BYTES_LIT("_attr"))));
    assert_false(kv_key_is_attr(kv_key_meta(&a, 9, -3, BYTES_LIT("_attr_x"))));
    assert_false(kv_key_is_attr(kv_key_prefix(&a, 9, KV_KV, &bucket, 1)));
    assert_false(kv_key_is_attr(BYTES_EMPTY));
    assert_int_equal(kv_key_table(kv_key_attr(&a, 9, -3)), KV_META);
    arena_fini(&a);
}

static void damaged_keys_are_refused(void **unused)
{
    struct kv_row object = {.table = KV_OBJECT}, out;
    struct arena a;
    uint32_t ns;
    bytes key;

    (void)unused;
    arena_init(&a, 1024);
    key = kv_key_meta(&a, 1, 2, BYTES_LIT("n"));
    for (size_t size = 0; size < KV_KEY_HEADER + 8; size++)
        assert_int_equal(kv_key_decode(&a, bytes_make(key.data, size), &ns, &out), ST_CORRUPT);
    object.col[OBJECT_BUCKET] = kv_text(bytes_make("b\0c", 3));
    object.col[OBJECT_KEY] = kv_text(BYTES_EMPTY);
    key = kv_key_of_row(&a, 1, &object);
    for (size_t size = 0; size < key.size; size++)
        assert_int_equal(kv_key_decode(&a, bytes_make(key.data, size), &ns, &out), ST_CORRUPT);
    /* A zero must be followed by 0x00 or 0xff. */
    assert_int_equal(kv_key_decode(&a, bytes_make("\4\0\0\0\1b\0\1c\0\0k", 12), &ns, &out),
                     ST_CORRUPT);
    assert_int_equal(kv_key_decode(&a, bytes_make("\x21\0\0\0\1abcdefgh", 13), &ns, &out),
                     ST_CORRUPT);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_keys_is_order_of_tuples),
        cmocka_unit_test(namespaces_and_tables_come_before_columns),
        cmocka_unit_test(prefix_bounds_hold_exactly_the_keys_that_begin_with_it),
        cmocka_unit_test(after_prefix_drops_trailing_ff),
        cmocka_unit_test(attribute_keys_are_known),
        cmocka_unit_test(damaged_keys_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
