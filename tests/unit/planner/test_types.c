/*
 * Values as text and binary. tests/data/types/values.txt holds what PostgreSQL 15 said to each
 * input: type, zone, date style, text, and "=output" or "ERROR sqlstate: message".
 */
#include "planner_fixture.h"

#include "planner/timezone.h"

static struct arena arena;
static struct err err;

static const char *outcome(uint32_t oid, bytes text, const struct pl_style *style)
{
    static char out[4096];
    struct pl_value v;
    struct obuf o;
    if (pl_value_from_text(oid, text, style, 0, &arena, &v, &err) != ST_OK) {
        snprintf(out, sizeof(out), "ERROR %s: %s", err.sqlstate, err.message);
        return out;
    }
    obuf_init(&o);
    pl_value_to_text(&v, style, &o);
    snprintf(out, sizeof(out), "=%.*s", (int)o.size, o.size == 0 ? "" : (const char *)o.data);
    obuf_fini(&o);
    return out;
}

static uint32_t type_of(char *name)
{
    size_t n = strlen(name);
    if (n > 2 && strcmp(name + n - 2, "[]") == 0) {
        name[n - 2] = '\0';
        return pl_type_array(pl_type_by_name(name));
    }
    return pl_type_by_name(name[0] == '"' ? "char" : name);
}

static void text_forms_are_postgresqls(void **state)
{
    (void)state;
    FILE *f = fopen(DATA_DIR "/values.txt", "r");
    char line[1024];
    unsigned cases = 0, failed = 0;
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        char *p = line, *field[5];
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = '\0';
        for (unsigned i = 0; i < 5; i++)
            field[i] = i == 4 ? p : strsep(&p, "|");
        struct pl_style style = {.zone = pl_zone_find(bytes_str(field[1]))};
        assert_non_null(style.zone);
        style.date_style = strcmp(field[2], "Postgres") == 0 ? PL_DATE_POSTGRES
                           : strcmp(field[2], "SQL") == 0    ? PL_DATE_SQL
                           : strcmp(field[2], "German") == 0 ? PL_DATE_GERMAN
                                                             : PL_DATE_ISO;
        /* SET datestyle = 'German' brings the order along. */
        style.date_order = style.date_style == PL_DATE_GERMAN ? PL_DATE_DMY : PL_DATE_MDY;
        uint32_t oid = type_of(field[0]);
        assert_true(oid != 0);
        const char *got = outcome(oid, bytes_str(field[3]), &style);
        cases++;
        if (strcmp(got, field[4]) != 0) {
            failed++;
            print_error("%s %s %s '%s'\n  want %s\n  got  %s\n", pl_type_name(oid), field[1],
                        field[2], field[3], field[4], got);
        }
        arena_reset(&arena);
    }
    fclose(f);
    assert_true(cases > 400);
    assert_int_equal(failed, 0);
}

/* Text to value to binary and back gives the same text. */
static void binary_forms_come_back(void **state)
{
    (void)state;
    static const struct {
        uint32_t oid;
        const char *text;
    } values[] = {
        {OID_INT8, "-9223372036854775808"},
        {OID_INT8, "255"},
        {OID_INT4, "-1"},
        {OID_INT4, "2147483647"},
        {OID_INT2, "-32768"},
        {OID_BOOL, "t"},
        {OID_BOOL, "f"},
        {OID_CHAR, "d"},
        {OID_BYTEA, "\\x00ff7f"},
        {OID_BYTEA, "\\x"},
        {OID_TEXT, "häßlich"},
        {OID_VARCHAR, ""},
        {OID_OID, "4294967295"},
        {OID_FLOAT8, "0.1"},
        {OID_FLOAT8, "-1e+300"},
        {OID_FLOAT4, "1.5"},
        {OID_TIMESTAMPTZ, "2024-01-02 03:04:05.000678+00"},
        {OID_TIMESTAMPTZ, "1999-12-31 23:59:59.999999+00"},
        {OID_TIMESTAMPTZ, "infinity"},
        {OID_TIMESTAMPTZ, "-infinity"},
        {OID_TIMESTAMP, "1969-07-20 20:17:40"},
        {OID_DATE, "1970-01-01"},
        {OID_NUMERIC, "0"},
        {OID_NUMERIC, "1.50"},
        {OID_NUMERIC, "-12345678.0001"},
        {OID_NUMERIC, "10000"},
        {OID_NUMERIC, "0.00012"},
        {OID_NUMERIC, "99999999999999999999.999"},
        {OID_NUMERIC, "NaN"},
        {OID_NUMERIC, "100000000"},
        {OID_INT8_ARRAY, "{1,NULL,-3}"},
        {OID_INT8_ARRAY, "{}"},
        {OID_TEXT_ARRAY, "{a,\"b c\",\"\",\"NULL\"}"},
        {OID_INT2_ARRAY, "{1,2}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct pl_value v, back;
        struct obuf o, text;
        struct pl_style style = {0};
        obuf_init(&o);
        obuf_init(&text);
        assert_int_equal(pl_value_from_text(values[i].oid, bytes_str(values[i].text), &style, 0,
                                            &arena, &v, &err),
                         ST_OK);
        pl_value_to_binary(&v, &o);
        if (pl_value_from_binary(values[i].oid, bytes_make(o.data, o.size), &arena, &back, &err) !=
            ST_OK)
            fail_msg("%s: %s", values[i].text, err.message);
        pl_value_to_text(&back, &style, &text);
        obuf_u8(&text, 0);
        assert_string_equal((char *)text.data, values[i].text);
        obuf_fini(&o);
        obuf_fini(&text);
        arena_reset(&arena);
    }
}

static void binary_of_wrong_length_is_refused(void **state)
{
    (void)state;
    static const uint8_t zeros[64];
    static const struct {
        uint32_t oid;
        size_t size;
    } types[] = {{OID_INT8, 8}, {OID_INT4, 4},   {OID_INT2, 2}, {OID_TIMESTAMPTZ, 8},
                 {OID_BOOL, 1}, {OID_FLOAT8, 8}, {OID_DATE, 4}, {OID_INTERVAL, 16}};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        for (size_t n = 0; n < 40; n++) {
            struct pl_value v;
            status st = pl_value_from_binary(types[i].oid, bytes_make(zeros, n), &arena, &v, &err);
            if (n == types[i].size)
                assert_int_equal(st, ST_OK);
            else
                assert_string_equal(err.sqlstate, n < types[i].size ? "08P01" : "22P03");
        }
    }
    /* Arrays and numerics that promise more than there is. */
    static const uint8_t array[] = {0,    0,    0,    1,    0, 0, 0, 0, 0, 0, 0, 20,
                                    0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 8};
    static const uint8_t numeric[] = {0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0, 1};
    struct pl_value v;
    for (size_t n = 0; n <= sizeof(array); n++)
        assert_int_not_equal(
            pl_value_from_binary(OID_INT8_ARRAY, bytes_make(array, n), &arena, &v, &err), ST_OK);
    for (size_t n = 0; n <= sizeof(numeric); n++)
        assert_int_not_equal(
            pl_value_from_binary(OID_NUMERIC, bytes_make(numeric, n), &arena, &v, &err), ST_OK);
    assert_int_not_equal(pl_value_from_binary(OID_TEXT, bytes_make("a\0b", 3), &arena, &v, &err),
                         ST_OK);
    assert_string_equal(err.sqlstate, "22021");
}

static void fields_are_length_and_text(void **state)
{
    (void)state;
    struct obuf o;
    struct pl_style style = {.bytea_escape = true};
    obuf_init(&o);
    struct kv_datum d = kv_int(-42);
    pl_datum_to_field(KV_INT8, &d, false, &style, &o);
    assert_memory_equal(o.data, "\0\0\0\3-42", 7);
    obuf_reset(&o);
    pl_datum_to_field(KV_INT2, &d, true, &style, &o);
    assert_memory_equal(o.data, "\0\0\0\2\xff\xd6", 6);
    obuf_reset(&o);
    d = KV_NULL;
    pl_datum_to_field(KV_TEXT, &d, false, &style, &o);
    assert_memory_equal(o.data, "\xff\xff\xff\xff", 4);
    assert_int_equal(o.size, 4);
    obuf_reset(&o);
    d = kv_text(BYTES_LIT("a\\\1"));
    pl_datum_to_field(KV_BYTEA, &d, false, &style, &o);
    assert_memory_equal(o.data, "\0\0\0\7a\\\\\\001", 11);
    obuf_reset(&o);
    d = kv_int('d');
    pl_datum_to_field(KV_CHAR, &d, false, &style, &o);
    assert_memory_equal(o.data, "\0\0\0\1d", 5);
    obuf_reset(&o);
    d = kv_int(0);
    pl_datum_to_field(KV_TIMESTAMPTZ, &d, false, &style, &o);
    assert_memory_equal(o.data,
                        "\0\0\0\x16"
                        "2000-01-01 00:00:00+00",
                        26);
    obuf_fini(&o);
}

static void intervals_are_microseconds(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"1 day", "=1 day"},         {"2 days 03:04:05", "=2 days 03:04:05"},
        {"90 minutes", "=01:30:00"}, {"1.5 hours", "=01:30:00"},
        {"-1 day", "=-1 day"},       {"1 week", "=7 days"},
        {"1 mon", "=30 days"},       {"3600", "=01:00:00"},
        {"1 day ago", "=-1 day"},    {"00:00:00", "=00:00:00"},
        {"500 ms", "=00:00:00.5"}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_string_equal(outcome(OID_INTERVAL, bytes_str(texts[i][0]), NULL), texts[i][1]);
    assert_string_equal(outcome(OID_INTERVAL, BYTES_LIT("nope"), NULL),
                        "ERROR 22007: invalid input syntax for type interval: \"nope\"");
    assert_string_equal(outcome(OID_INTERVAL, BYTES_LIT(""), NULL),
                        "ERROR 22007: invalid input syntax for type interval: \"\"");
}

static void zones_are_found_by_name(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "Nowhere",
                                      "Europe",
                                      "../../etc/passwd",
                                      "/etc/passwd",
                                      "Europe/../UTC",
                                      "posixrules/x",
                                      ".hidden",
                                      "zone.tab",
                                      "999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_null(pl_zone_find(bytes_str(bad[i])));
    assert_string_equal(pl_zone_name(pl_zone_find(BYTES_LIT("utc"))), "UTC");
    assert_ptr_equal(pl_zone_find(BYTES_LIT("europe/BERLIN")),
                     pl_zone_find(BYTES_LIT("Europe/Berlin")));
    assert_string_equal(pl_zone_name(pl_zone_find(BYTES_LIT("europe/berlin"))), "Europe/Berlin");
    assert_string_equal(pl_zone_name(pl_zone_find(BYTES_LIT("-7"))), "<-07>+07");
    assert_string_equal(pl_zone_name(pl_zone_fixed(19800)), "<+05:30>-05:30");
    assert_ptr_equal(pl_zone_fixed(19800), pl_zone_fixed(19800));
}

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 4096);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_forms_are_postgresqls),
        cmocka_unit_test(binary_forms_come_back),
        cmocka_unit_test(binary_of_wrong_length_is_refused),
        cmocka_unit_test(fields_are_length_and_text),
        cmocka_unit_test(intervals_are_microseconds),
        cmocka_unit_test(zones_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
