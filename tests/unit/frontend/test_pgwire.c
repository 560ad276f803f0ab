/*
 * Frames and fields of the wire protocol: every cut of every good message, every length, and what
 * is text.
 */
#include "frontend/pgwire.h"
#include "lib/test.h"

#define LENGTH(n) 0, 0, 0, (n)

/* A copy of exactly SIZE bytes, so that ASan sees a read beyond. */
static bytes exact(const void *data, size_t size)
{
    uint8_t *p = malloc(size > 0 ? size : 1);
    assert_non_null(p);
    memcpy(p, data, size);
    return bytes_make(p, size);
}

static void drop(bytes b)
{
    free((void *)(uintptr_t)b.data);
}

static enum fe_framing frame_of(const void *data, size_t size, struct fe_frame *f)
{
    bytes in = exact(data, size);
    enum fe_framing r = fe_frame_next(in, f);
    drop(in);
    return r;
}

static void frame_is_whole_only_with_its_last_byte(void **state)
{
    (void)state;
    static const uint8_t m[] = {'Q', LENGTH(13), 's', 'e', 'l', 'e', 'c', 't', ' ', '1', 0, 'X', 0};
    struct fe_frame f;
    for (size_t n = 0; n < 14; n++) {
        assert_int_equal(frame_of(m, n, &f), FE_FRAME_MORE);
        assert_int_equal(f.total, n < 5 ? 0 : 14);
    }
    bytes in = bytes_make(m, sizeof m);
    assert_int_equal(fe_frame_next(in, &f), FE_FRAME_OK);
    assert_int_equal(f.type, 'Q');
    assert_int_equal(f.total, 14);
    assert_int_equal(f.body.size, 9);
    assert_ptr_equal(f.body.data, m + 5);
}

static void type_is_judged_before_its_length(void **state)
{
    (void)state;
    static const char known[] = "QPBDECHSFdcfX";
    for (unsigned t = 0; t < 256; t++) {
        uint8_t type = (uint8_t)t;
        struct fe_frame f;
        bool good = t != 0 && strchr(known, (int)t) != NULL;
        assert_int_equal(frame_of(&type, 1, &f), good ? FE_FRAME_MORE : FE_FRAME_UNKNOWN);
    }
}

static void length_out_of_range_is_refused_without_its_body(void **state)
{
    (void)state;
    static const char known[] = "QPBDECHSFdcfX", small[] = "DECHScfX";
    static const uint32_t bad[] = {0,          1,          2,          3,         0x40000000,
                                   0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc};
    for (const char *t = known; *t != '\0'; t++) {
        uint8_t m[5] = {(uint8_t)*t};
        struct fe_frame f;
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            uint32_t be = __builtin_bswap32(bad[i]);
            memcpy(m + 1, &be, 4);
            assert_int_equal(frame_of(m, 5, &f), FE_FRAME_BAD_LENGTH);
        }
        uint32_t largest = strchr(small, *t) ? LIMIT_SMALL_MESSAGE_BYTES : LIMIT_MESSAGE_BYTES;
        uint32_t be = __builtin_bswap32(largest + 4);
        memcpy(m + 1, &be, 4);
        assert_int_equal(frame_of(m, 5, &f), FE_FRAME_MORE);
        be = __builtin_bswap32(largest + 5);
        memcpy(m + 1, &be, 4);
        assert_int_equal(frame_of(m, 5, &f), FE_FRAME_BAD_LENGTH);
    }
}

static void startup_length_has_both_bounds(void **state)
{
    (void)state;
    struct fe_frame f;
    uint8_t m[16] = {0};
    for (uint32_t n = 0; n < 20000; n += n < 10 ? 1 : 997) {
        uint32_t be = __builtin_bswap32(n);
        memcpy(m, &be, 4);
        enum fe_framing want = n < 8 || n > LIMIT_STARTUP_BYTES ? FE_FRAME_BAD_LENGTH
                               : n <= sizeof m                  ? FE_FRAME_OK
                                                                : FE_FRAME_MORE;
        assert_int_equal(fe_startup_next(bytes_make(m, sizeof m), &f), want);
    }
    assert_int_equal(fe_startup_next(bytes_make(m, 3), &f), FE_FRAME_MORE);
}

static status decode(char type, bytes body)
{
    struct err err;
    union {
        struct fe_msg_query query;
        struct fe_msg_parse parse;
        struct fe_msg_bind bind;
        struct fe_msg_describe describe;
        struct fe_msg_execute execute;
        struct fe_msg_close close;
        struct fe_msg_copy_fail copy_fail;
    } m;
    err_clear(&err);
    status st = ST_INTERNAL;
    switch (type) {
    case 'Q': st = fe_decode_query(body, &m.query, &err); break;
    case 'P': st = fe_decode_parse(body, &m.parse, &err); break;
    case 'B': st = fe_decode_bind(body, &m.bind, &err); break;
    case 'D': st = fe_decode_describe(body, &m.describe, &err); break;
    case 'E': st = fe_decode_execute(body, &m.execute, &err); break;
    case 'C': st = fe_decode_close(body, &m.close, &err); break;
    case 'f': st = fe_decode_copy_fail(body, &m.copy_fail, &err); break;
    case 'S': st = fe_decode_nothing(body, &err); break;
    default: break;
    }
    if (st != ST_OK)
        assert_string_equal(err.sqlstate, "08P01");
    return st;
}

static void every_cut_of_a_body_is_refused_and_every_extra_byte(void **state)
{
    (void)state;
    static const struct {
        char type;
        size_t size;
        const char *body;
    } good[] = {
        {'Q', 9, "select 1"},
        {'P', 3 + 9 + 2 + 8, "ab\0select 1\0\0\2\0\0\0\24\0\0\0\31"},
        {'P', 1 + 1 + 2, "\0\0\0"},
        {'B', 2 + 2 + 6 + 2 + 5 + 4 + 4 + 4,
         "p\0s\0\0\2\0\0\0\1\0\3\0\0\0\1x\377\377\377\377\0\0\0\0\0\1\0\1"},
        {'D', 3, "Sx"},
        {'D', 2, "P"},
        {'E', 6, "p\0\0\0\0\12"},
        {'C', 2, "S"},
        {'f', 4, "why"},
        {'S', 0, ""},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        bytes whole = exact(good[i].body, good[i].size);
        assert_int_equal(decode(good[i].type, whole), ST_OK);
        drop(whole);
        for (size_t n = 0; n < good[i].size; n++) {
            bytes cut = exact(good[i].body, n);
            assert_int_equal(decode(good[i].type, cut), ST_PROTOCOL);
            drop(cut);
        }
        uint8_t more[64] = {0};
        memcpy(more, good[i].body, good[i].size);
        bytes longer = exact(more, good[i].size + 1);
        assert_int_equal(decode(good[i].type, longer), ST_PROTOCOL);
        drop(longer);
    }
}

static void bind_gives_values_in_order(void **state)
{
    (void)state;
    static const char body[] = "p\0s\0\0\1\0\1\0\3\0\0\0\2xy\377\377\377\377\0\0\0\0\0\0";
    struct fe_msg_bind m;
    assert_int_equal(fe_decode_bind(bytes_make(body, sizeof body - 1), &m, NULL), ST_OK);
    assert_int_equal(m.param_formats.count, 1);
    assert_int_equal(fe_int16_at(m.param_formats, 0), 1);
    assert_int_equal(m.params.count, 3);
    bytes v;
    assert_true(fe_values_take(&m.params, &v));
    assert_true(bytes_eq(v, BYTES_LIT("xy")));
    assert_false(fe_values_take(&m.params, &v));
    assert_true(fe_values_take(&m.params, &v));
    assert_int_equal(v.size, 0);
    assert_int_equal(m.params.count, 0);
}

static void value_length_below_minus_one_is_refused(void **state)
{
    (void)state;
    static const char body[] = "\0\0\0\0\0\1\377\377\377\376\0\0";
    struct fe_msg_bind m;
    assert_int_equal(fe_decode_bind(bytes_make(body, sizeof body - 1), &m, NULL), ST_PROTOCOL);
}

static void startup_pairs_end_with_a_zero_byte(void **state)
{
    (void)state;
    static const char good[] = "user\0me\0database\0\0";
    bytes in = bytes_make(good, sizeof good), name, value;
    assert_int_equal(fe_startup_pair(&in, &name, &value), ST_OK);
    assert_true(bytes_eq(name, BYTES_LIT("user")) && bytes_eq(value, BYTES_LIT("me")));
    assert_int_equal(fe_startup_pair(&in, &name, &value), ST_OK);
    assert_true(bytes_eq(name, BYTES_LIT("database")) && value.size == 0);
    assert_int_equal(fe_startup_pair(&in, &name, &value), ST_END);
    for (size_t n = 0; n < sizeof good; n++) {
        bytes cut = exact(good, n), left = cut;
        status st;
        while ((st = fe_startup_pair(&left, &name, &value)) == ST_OK)
            ;
        assert_int_equal(st, ST_PROTOCOL);
        drop(cut);
    }
    in = bytes_make("\0x", 2);
    assert_int_equal(fe_startup_pair(&in, &name, &value), ST_PROTOCOL);
}

static void utf8_faults_are_found_where_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t fault;
    } cases[] = {
        {"plain text, long enough for words", SIZE_MAX},
        {"\xc3\xa4\xe4\xb8\xad\xf0\x9f\x98\x80", SIZE_MAX},
        {"abcdefgh\xff", 8},
        {"abcdefg\xc3", 7},
        {"\xc0\x80", 0},
        {"\xe0\x80\x80", 0},
        {"a\xed\xa0\x80", 1},
        {"\xf4\x90\x80\x80", 0},
        {"\xf0\x80\x80\x80", 0},
        {"\x80", 0},
        {"12345678\xe4\xb8", 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes text = exact(cases[i].text, strlen(cases[i].text));
        assert_true(fe_utf8_fault(text) == cases[i].fault);
        drop(text);
    }
    /* A zero byte and a stray one, in every place of texts of every length. */
    for (size_t size = 1; size < 20; size++)
        for (size_t n = 0; n < size; n++)
            for (int stray = 0; stray < 2; stray++) {
                bytes text = exact("plain words and more", size);
                ((uint8_t *)text.data)[n] = stray ? 0x80 : 0;
                assert_true(fe_utf8_fault(text) == n);
                ((uint8_t *)text.data)[n] = 'x';
                assert_true(fe_utf8_fault(text) == SIZE_MAX);
                drop(text);
            }
    /* A zero byte, in every place of a word. */
    for (size_t n = 0; n < 20; n++) {
        char text[20];
        memset(text, 'x', sizeof text);
        text[n] = '\0';
        assert_true(fe_utf8_fault(bytes_make(text, sizeof text)) == n);
    }
    struct err err;
    assert_int_equal(fe_utf8_check(BYTES_LIT("a\xff"), &err), ST_INVALID);
    assert_string_equal(err.sqlstate, "22021");
    assert_string_equal(err.message, "invalid byte sequence for encoding \"UTF8\": 0xff");
}

static void messages_have_their_length(void **state)
{
    (void)state;
    struct obuf o;
    obuf_init(&o);
    fe_put_tag(&o, "SELECT 1");
    fe_put_empty(&o, '1');
    fe_put_ready(&o, 'I');
    static const char want[] = "C\0\0\0\15SELECT 1\0001\0\0\0\4Z\0\0\0\5I";
    assert_true(bytes_eq(bytes_make(o.data, o.size), bytes_make(want, sizeof want - 1)));
    obuf_fini(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frame_is_whole_only_with_its_last_byte),
        cmocka_unit_test(type_is_judged_before_its_length),
        cmocka_unit_test(length_out_of_range_is_refused_without_its_body),
        cmocka_unit_test(startup_length_has_both_bounds),
        cmocka_unit_test(every_cut_of_a_body_is_refused_and_every_extra_byte),
        cmocka_unit_test(bind_gives_values_in_order),
        cmocka_unit_test(value_length_below_minus_one_is_refused),
        cmocka_unit_test(startup_pairs_end_with_a_zero_byte),
        cmocka_unit_test(utf8_faults_are_found_where_they_are),
        cmocka_unit_test(messages_have_their_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
