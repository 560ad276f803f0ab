/* The checked codec and its buffers: round trips, truncation, lifetime of shared blocks. */
#include "lib/test.h"

#include "base/checksum.h"
#include "base/codec.h"

static bytes view(const struct obuf *o)
{
    return bytes_make(o->data, o->size);
}

static void fields_come_back_as_written(void **state)
{
    (void)state;
    static const uint64_t varints[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_MAX};
    static const int64_t zigzags[] = {0, -1, 1, INT64_MIN, INT64_MAX, -64, 64};
    struct obuf o;
    obuf_init(&o);
    put_u8(&o, 0xAB);
    put_u16(&o, 0xBEEF);
    put_u32(&o, 0xDEADBEEF);
    put_u64(&o, 0x0123456789ABCDEF);
    for (size_t i = 0; i < ARRAY_LEN(varints); i++)
        put_varint(&o, varints[i]);
    for (size_t i = 0; i < ARRAY_LEN(zigzags); i++)
        put_zigzag(&o, zigzags[i]);
    put_bytes(&o, BYTES_LIT("payload"));
    put_bytes(&o, BYTES_EMPTY);
    assert_memory_equal(o.data, "\xAB\xEF\xBE\xEF\xBE\xAD\xDE", 7);

    struct reader r = reader_make(view(&o));
    assert_int_equal(get_u8(&r), 0xAB);
    assert_int_equal(get_u16(&r), 0xBEEF);
    assert_int_equal(get_u32(&r), 0xDEADBEEF);
    assert_int_equal(get_u64(&r), 0x0123456789ABCDEF);
    for (size_t i = 0; i < ARRAY_LEN(varints); i++)
        assert_true(get_varint(&r) == varints[i]);
    for (size_t i = 0; i < ARRAY_LEN(zigzags); i++)
        assert_true(get_zigzag(&r) == zigzags[i]);
    assert_bytes(get_bytes(&r), "payload");
    assert_int_equal(get_bytes(&r).size, 0);
    assert_int_equal(codec_finish(&r), ST_OK);
    obuf_fini(&o);
}

static void first_violation_latches(void **state)
{
    (void)state;
    struct reader r = reader_make(BYTES_LIT("\x01\x02\x03"));
    assert_int_equal(get_u8(&r), 1);
    assert_int_equal(get_u32(&r), 0);
    assert_int_equal(get_u8(&r), 0);
    assert_int_equal(get_raw(&r, 1).size, 0);
    assert_int_equal(get_bytes(&r).size, 0);
    assert_int_equal(codec_finish(&r), ST_CORRUPT);
}

static void unread_input_is_a_violation(void **state)
{
    (void)state;
    struct reader r = reader_make(BYTES_LIT("\x01\x02"));
    get_u8(&r);
    assert_int_equal(codec_finish(&r), ST_CORRUPT);
    get_u8(&r);
    assert_int_equal(codec_finish(&r), ST_OK);
    r = reader_make(BYTES_EMPTY);
    assert_int_equal(codec_finish(&r), ST_OK);
}

static void every_truncation_is_noticed(void **state)
{
    (void)state;
    struct obuf o;
    obuf_init(&o);
    put_varint(&o, 300);
    put_bytes(&o, BYTES_LIT("abc"));
    put_u64(&o, 7);
    for (size_t n = 0; n < o.size; n++) {
        struct reader r = reader_make(bytes_make(o.data, n));
        get_varint(&r);
        get_bytes(&r);
        get_u64(&r);
        assert_int_equal(codec_finish(&r), ST_CORRUPT);
    }
    obuf_fini(&o);
}

static void varint_has_one_spelling(void **state)
{
    (void)state;
    struct reader r = reader_make(BYTES_LIT("\x81\x00"));
    assert_int_equal(get_varint(&r), 0);
    assert_int_equal(codec_finish(&r), ST_CORRUPT);
    r = reader_make(BYTES_LIT("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"));
    assert_int_equal(get_varint(&r), 0);
    assert_int_equal(codec_finish(&r), ST_CORRUPT);
    r = reader_make(BYTES_LIT("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"));
    get_varint(&r);
    assert_int_equal(codec_finish(&r), ST_CORRUPT);
}

/* Every length of number, with and without bytes behind it: what is read from one load of eight
 * bytes and what is read byte by byte agree. */
static void varint_is_the_same_wherever_it_lies(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 64; bits++) {
        for (uint64_t v = 1ull << bits, i = 0; i < 3; i++, v = v * 3 + bits) {
            struct obuf o;
            obuf_init(&o);
            put_varint(&o, v);
            size_t size = o.size;
            for (size_t behind = 0; behind < 12; behind++) {
                struct reader r = reader_make(view(&o));
                assert_true(get_varint(&r) == v);
                assert_ptr_equal(r.next, o.data + size);
                put_u8(&o, (uint8_t)(behind * 0x55));
            }
            /* The last group made zero, or the last byte missing. */
            o.data[size - 1] = 0;
            struct reader r = reader_make(view(&o));
            bool ok = size == 1;
            (void)get_varint(&r);
            assert_true(r.bad != ok);
            r = reader_make(bytes_make(o.data, size - 1));
            assert_true(get_varint(&r) == 0 && r.bad);
            obuf_fini(&o);
        }
    }
}

static void length_over_the_input_is_refused(void **state)
{
    (void)state;
    struct reader r = reader_make(BYTES_LIT("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01zz"));
    assert_int_equal(get_bytes(&r).size, 0);
    assert_int_equal(codec_finish(&r), ST_CORRUPT);
}

static void obuf_grows_patches_and_consumes(void **state)
{
    (void)state;
    struct obuf o;
    obuf_init(&o);
    obuf_be32(&o, 0);
    for (int i = 0; i < 10000; i++)
        obuf_u8(&o, (uint8_t)i);
    obuf_patch_be32(&o, 0, 0x01020304);
    assert_memory_equal(o.data, "\x01\x02\x03\x04\x00\x01", 6);
    obuf_consume(&o, 5);
    assert_int_equal(o.size, 9999);
    assert_int_equal(o.data[0], 1);
    obuf_shrink(&o, 0);
    assert_true(o.capacity > 0);
    obuf_consume(&o, 9999);
    obuf_shrink(&o, 100);
    assert_int_equal(o.capacity, 0);
    obuf_be16(&o, 0x0102);
    obuf_be64(&o, 0x0102030405060708);
    assert_memory_equal(o.data, "\x01\x02\x01\x02\x03\x04\x05\x06\x07\x08", 10);
    obuf_fini(&o);
}

static void buf_lives_until_the_last_reference(void **state)
{
    (void)state;
    struct buf *b = buf_copy(BYTES_LIT("shared"));
    struct buf *again = buf_ref(b);
    buf_unref(b);
    assert_bytes(buf_bytes(again), "shared");
    buf_unref(again);
    buf_unref(NULL);
}

static void checksum_depends_on_seed_and_every_byte(void **state)
{
    (void)state;
    uint8_t data[600];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    bytes all = bytes_make(data, sizeof data);
    uint64_t sum = checksum64(all, 1);
    assert_true(sum != checksum64(all, 2));
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] ^= 1;
        assert_true(sum != checksum64(all, 1));
        data[i] ^= 1;
    }
    struct checksum_state *s = checksum_new(1);
    for (size_t i = 0; i < sizeof data; i += 50)
        checksum_update(s, bytes_make(data + i, 50));
    assert_true(checksum_digest(s) == sum);
    checksum_free(s);
    /* The value is part of the disk format: it may never change. */
    assert_true(checksum64(BYTES_EMPTY, 0) == 0x2D06800538D394C2u);
}

static void big_endian_order_is_byte_order(void **state)
{
    (void)state;
    uint8_t a[8], b[8];
    store_be64(a, 255);
    store_be64(b, 256);
    assert_true(memcmp(a, b, 8) < 0);
    assert_int_equal(load_be64(b), 256);
    store_be32(a, 0x01020304);
    assert_memory_equal(a, "\x01\x02\x03\x04", 4);
    assert_int_equal(load_be32(a), 0x01020304);
    assert_true(bytes_cmp(BYTES_LIT("ab"), BYTES_LIT("abc")) < 0);
    assert_true(bytes_cmp(BYTES_LIT("\xFF"), BYTES_LIT("a")) > 0);
    assert_true(bytes_has_prefix(BYTES_LIT("abc"), BYTES_EMPTY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_come_back_as_written),
        cmocka_unit_test(first_violation_latches),
        cmocka_unit_test(unread_input_is_a_violation),
        cmocka_unit_test(every_truncation_is_noticed),
        cmocka_unit_test(varint_has_one_spelling),
        cmocka_unit_test(varint_is_the_same_wherever_it_lies),
        cmocka_unit_test(length_over_the_input_is_refused),
        cmocka_unit_test(obuf_grows_patches_and_consumes),
        cmocka_unit_test(buf_lives_until_the_last_reference),
        cmocka_unit_test(checksum_depends_on_seed_and_every_byte),
        cmocka_unit_test(big_endian_order_is_byte_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
