/*
 * planner/types.c — the types clients meet: names, sizes, text and binary forms, casts.
 *
 * One table row per type. Input functions say what PostgreSQL says, word for word, because clients
 * and their tests compare texts. Numeric is kept as text in canonical form; there is no arithmetic
 * on it. Arrays are one-dimensional.
 *
 * Binary forms are PostgreSQL's: integers big-endian, timestamps as microseconds since 2000, text
 * and bytea as they are.
 */
#include "planner/types.h"

#include "base/codec.h"
#include "base/decimal.h"
#include "planner/type_internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define SHORT_DIGITS 9u /* below the largest number of four bytes */

struct type_row {
    uint32_t oid;
    int16_t size;
    const char *name;    /* as messages say it */
    const char *catalog; /* pg_type.typname */
    uint32_t array;
};

static const struct type_row types[] = {
    {OID_INT8, 8, "bigint", "int8", OID_INT8_ARRAY},
    {OID_TEXT, -1, "text", "text", OID_TEXT_ARRAY},
    {OID_INT4, 4, "integer", "int4", OID_INT4_ARRAY},
    {OID_INT2, 2, "smallint", "int2", OID_INT2_ARRAY},
    {OID_CHAR, 1, "\"char\"", "char", 0},
    {OID_TIMESTAMPTZ, 8, "timestamp with time zone", "timestamptz", 0},
    {OID_BYTEA, -1, "bytea", "bytea", 0},
    {OID_UNKNOWN, -2, "unknown", "unknown", 0},
    {OID_VARCHAR, -1, "character varying", "varchar", OID_VARCHAR_ARRAY},
    {OID_BOOL, 1, "boolean", "bool", 0},
    {OID_NAME, 64, "name", "name", 0},
    {OID_REGPROC, 4, "regproc", "regproc", 0},
    {OID_OID, 4, "oid", "oid", OID_OID_ARRAY},
    {OID_FLOAT4, 4, "real", "float4", 0},
    {OID_FLOAT8, 8, "double precision", "float8", 0},
    {OID_BPCHAR, -1, "character", "bpchar", 0},
    {OID_DATE, 4, "date", "date", 0},
    {OID_TIMESTAMP, 8, "timestamp without time zone", "timestamp", 0},
    {OID_INTERVAL, 16, "interval", "interval", 0},
    {OID_NUMERIC, -1, "numeric", "numeric", 0},
    {OID_VOID, 4, "void", "void", 0},
    {OID_REGCLASS, 4, "regclass", "regclass", 0},
    {OID_INT2_ARRAY, -1, "smallint[]", "_int2", 0},
    {OID_INT4_ARRAY, -1, "integer[]", "_int4", 0},
    {OID_TEXT_ARRAY, -1, "text[]", "_text", 0},
    {OID_VARCHAR_ARRAY, -1, "character varying[]", "_varchar", 0},
    {OID_INT8_ARRAY, -1, "bigint[]", "_int8", 0},
    {OID_OID_ARRAY, -1, "oid[]", "_oid", 0},
};

static const struct type_row *row_of(uint32_t oid)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].oid == oid)
            return &types[i];
    }
    return NULL;
}

int16_t pl_type_size(uint32_t oid)
{
    const struct type_row *r = row_of(oid);
    return r == NULL ? -1 : r->size;
}

const char *pl_type_name(uint32_t oid)
{
    const struct type_row *r = row_of(oid);
    return r == NULL ? "???" : r->name;
}

const char *pl_type_catalog_name(uint32_t oid)
{
    const struct type_row *r = row_of(oid);
    return r == NULL ? "???" : r->catalog;
}

uint32_t pl_type_by_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (strcmp(types[i].catalog, name) == 0)
            return types[i].oid;
    }
    return 0;
}

uint32_t pl_type_of(enum kv_type t)
{
    switch (t) {
    case KV_INT2: return OID_INT2;
    case KV_INT4: return OID_INT4;
    case KV_INT8: return OID_INT8;
    case KV_CHAR: return OID_CHAR;
    case KV_TEXT: return OID_TEXT;
    case KV_BYTEA: return OID_BYTEA;
    case KV_TIMESTAMPTZ: return OID_TIMESTAMPTZ;
    case KV_INTERVAL: return OID_INTERVAL;
    }
    return OID_TEXT;
}

uint32_t pl_type_element(uint32_t array_oid)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].array == array_oid && array_oid != 0)
            return types[i].oid;
    }
    return 0;
}

uint32_t pl_type_array(uint32_t element_oid)
{
    const struct type_row *r = row_of(element_oid);
    return r == NULL ? 0 : r->array;
}

bool pl__is_text(uint32_t oid)
{
    return oid == OID_TEXT || oid == OID_VARCHAR || oid == OID_BPCHAR || oid == OID_NAME ||
           oid == OID_UNKNOWN;
}

bool pl__is_integer(uint32_t oid)
{
    return oid == OID_INT8 || oid == OID_INT4 || oid == OID_INT2 || oid == OID_OID ||
           oid == OID_REGCLASS || oid == OID_REGPROC;
}

/* Text cut for a message. */
struct pl__shown pl__shown(bytes text)
{
    struct pl__shown out;
    size_t n = text.size < sizeof(out.s) - 1 ? text.size : sizeof(out.s) - 1;
    if (n < text.size) {
        while (n > 0 && (text.data[n] & 0xc0) == 0x80)
            n--;
    }
    if (n > 0)
        memcpy(out.s, text.data, n);
    out.s[n] = '\0';
    return out;
}

status pl__bad_syntax(struct err *err, uint32_t oid, bytes text)
{
    return err_set_state(err, ST_INVALID, "22P02", "invalid input syntax for type %s: \"%s\"",
                         pl_type_name(oid), pl__shown(text).s);
}

bytes pl__trim(bytes t)
{
    while (t.size > 0 && isspace(t.data[0])) {
        t.data++;
        t.size--;
    }
    while (t.size > 0 && isspace(t.data[t.size - 1]))
        t.size--;
    return t;
}

/* -- integers ---------------------------------------------------------------------------------- */

void pl__int_range(uint32_t oid, int64_t *lowest, int64_t *highest)
{
    switch (oid) {
    case OID_INT2:
        *lowest = INT16_MIN;
        *highest = INT16_MAX;
        break;
    case OID_INT4:
        *lowest = INT32_MIN;
        *highest = INT32_MAX;
        break;
    case OID_OID:
    case OID_REGCLASS:
    case OID_REGPROC:
        *lowest = INT32_MIN;
        *highest = UINT32_MAX;
        break;
    default: *lowest = INT64_MIN; *highest = INT64_MAX;
    }
}

/* A few digits and nothing else, as clients send them. Their number is below that of any type. */
static bool digits_only(bytes text, int64_t *out)
{
    int64_t v = 0;
    if (text.size == 0 || text.size > SHORT_DIGITS)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        if (digit > 9)
            return false;
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

static status int_from_text(uint32_t oid, bytes text, int64_t *out, struct err *err)
{
    if (digits_only(text, out) && (oid != OID_INT2 || *out <= INT16_MAX))
        return ST_OK;
    bytes t = pl__trim(text);
    bool negative = false, over = false;
    size_t i = 0;
    uint64_t v = 0;
    if (t.size > 0 && (t.data[0] == '-' || t.data[0] == '+'))
        negative = t.data[i++] == '-';
    if (i == t.size)
        return pl__bad_syntax(err, oid, text);
    for (; i < t.size; i++) {
        unsigned digit = (unsigned)t.data[i] - '0';
        if (digit > 9)
            return pl__bad_syntax(err, oid, text);
        if (v > (UINT64_MAX - digit) / 10)
            over = true;
        v = v * 10 + digit;
    }
    int64_t lowest, highest;
    pl__int_range(oid, &lowest, &highest);
    if (!over && negative)
        over = v > (uint64_t)INT64_MAX + 1;
    else if (!over)
        over = v > (uint64_t)INT64_MAX;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    if (over || *out < lowest || *out > highest)
        return err_set_state(err, ST_INVALID, "22003", "value \"%s\" is out of range for type %s",
                             pl__shown(t).s, pl_type_name(oid));
    if (oid == OID_OID && *out < 0)
        *out = (int64_t)(uint32_t)*out;
    return ST_OK;
}

static void put_int(int64_t v, struct obuf *out)
{
    out->size += decimal_put((char *)obuf_reserve(out, DECIMAL_MAX), v);
}

/* -- other scalars ----------------------------------------------------------------------------- */

static status bool_from_text(bytes text, int64_t *out, struct err *err)
{
    static const struct {
        const char *word;
        size_t least;
        bool value;
    } words[] = {{"true", 1, true}, {"false", 1, false}, {"yes", 1, true}, {"no", 1, false},
                 {"on", 2, true},   {"off", 2, false},   {"1", 1, true},   {"0", 1, false}};
    bytes t = pl__trim(text);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (t.size >= words[i].least && t.size <= strlen(words[i].word) &&
            strncasecmp((const char *)t.data, words[i].word, t.size) == 0) {
            *out = words[i].value;
            return ST_OK;
        }
    }
    return pl__bad_syntax(err, OID_BOOL, text);
}

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* The character that T begins with is none. */
static status bad_digit(bytes t, struct err *err)
{
    size_t n = 1;
    while (n < t.size && n < 4 && (t.data[n] & 0xc0) == 0x80)
        n++;
    return err_set_state(err, ST_INVALID, "22023", "invalid hexadecimal digit: \"%s\"",
                         pl__shown(bytes_make(t.data, n)).s);
}

static status bytea_hex(bytes t, struct arena *a, bytes *out, struct err *err)
{
    uint8_t *p = arena_alloc(a, t.size / 2 + 1);
    size_t n = 0;
    for (size_t i = 2; i < t.size;) {
        if (t.data[i] == ' ' || t.data[i] == '\n' || t.data[i] == '\t' || t.data[i] == '\r') {
            i++;
            continue;
        }
        int hi = hex_digit(t.data[i]), lo = i + 1 < t.size ? hex_digit(t.data[i + 1]) : 0;
        if (hi < 0 || lo < 0)
            return bad_digit(bytes_make(t.data + i + (hi >= 0), t.size - i - (hi >= 0)), err);
        if (i + 1 >= t.size)
            return err_set_state(err, ST_INVALID, "22023",
                                 "invalid hexadecimal data: odd number of digits");
        p[n++] = (uint8_t)(hi << 4 | lo);
        i += 2;
    }
    *out = bytes_make(p, n);
    return ST_OK;
}

static status bytea_from_text(bytes t, struct arena *a, bytes *out, struct err *err)
{
    if (t.size >= 2 && t.data[0] == '\\' && t.data[1] == 'x')
        return bytea_hex(t, a, out, err);
    uint8_t *p = arena_alloc(a, t.size + 1);
    size_t n = 0;
    for (size_t i = 0; i < t.size; i++) {
        if (t.data[i] != '\\') {
            p[n++] = t.data[i];
        } else if (i + 3 < t.size && t.data[i + 1] >= '0' && t.data[i + 1] <= '3' &&
                   t.data[i + 2] >= '0' && t.data[i + 2] <= '7' && t.data[i + 3] >= '0' &&
                   t.data[i + 3] <= '7') {
            p[n++] = (uint8_t)((t.data[i + 1] - '0') << 6 | (t.data[i + 2] - '0') << 3 |
                               (t.data[i + 3] - '0'));
            i += 3;
        } else if (i + 1 < t.size && t.data[i + 1] == '\\') {
            p[n++] = '\\';
            i++;
        } else {
            return err_set_state(err, ST_INVALID, "22P02", "invalid input syntax for type bytea");
        }
    }
    *out = bytes_make(p, n);
    return ST_OK;
}

static status float_from_text(uint32_t oid, bytes text, struct arena *a, double *out,
                              struct err *err)
{
    bytes t = pl__trim(text);
    char *s = arena_strdup(a, t), *end;
    errno = 0;
    *out = strtod(s, &end);
    if (t.size == 0 || *end != '\0' || strpbrk(s, "xXpP") != NULL)
        return pl__bad_syntax(err, oid, text);
    if (oid == OID_FLOAT4)
        *out = (double)(float)*out;
    if (errno == ERANGE || (isinf(*out) && strpbrk(s, "iI") == NULL))
        return err_set_state(err, ST_INVALID, "22003", "\"%s\" is out of range for type %s",
                             pl__shown(text).s, pl_type_name(oid));
    return ST_OK;
}

/* The shortest text that reads back as D. */
static void put_float(double d, bool single, struct obuf *out)
{
    char buf[40];
    if (isnan(d) || isinf(d)) {
        const char *s = isnan(d) ? "NaN" : d < 0 ? "-Infinity" : "Infinity";
        obuf_put(out, s, strlen(s));
        return;
    }
    for (int digits = single ? 6 : 15; digits <= 17; digits++) {
        snprintf(buf, sizeof(buf), "%.*g", digits, d);
        if (single ? (float)strtod(buf, NULL) == (float)d : strtod(buf, NULL) == d)
            break;
    }
    obuf_put(out, buf, strlen(buf));
}

/* "char": one byte; \ooo is how output shows bytes over 127. */
int64_t pl__char_from_text(bytes t)
{
    if (t.size == 4 && t.data[0] == '\\' && t.data[1] >= '0' && t.data[1] <= '3' &&
        t.data[2] >= '0' && t.data[2] <= '7' && t.data[3] >= '0' && t.data[3] <= '7')
        return (t.data[1] - '0') << 6 | (t.data[2] - '0') << 3 | (t.data[3] - '0');
    return t.size == 0 ? 0 : t.data[0];
}

/* -- text -------------------------------------------------------------------------------------- */

status pl_value_from_text(uint32_t oid, bytes text, const struct pl_style *style, int64_t now,
                          struct arena *a, struct pl_value *out, struct err *err)
{
    *out = (struct pl_value){.oid = oid};
    switch (oid) {
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_OID:
    case OID_REGCLASS:
    case OID_REGPROC: return int_from_text(oid, text, &out->i, err);
    case OID_BOOL: return bool_from_text(text, &out->i, err);
    case OID_CHAR: out->i = pl__char_from_text(text); return ST_OK;
    case OID_BYTEA: return bytea_from_text(text, a, &out->b, err);
    case OID_FLOAT4:
    case OID_FLOAT8: return float_from_text(oid, text, a, &out->d, err);
    case OID_NUMERIC: return pl__numeric_check(text, a, &out->b, err);
    case OID_DATE:
    case OID_TIMESTAMP:
    case OID_TIMESTAMPTZ: return pl__time_from_text(oid, text, style, now, &out->i, err);
    case OID_INTERVAL: return pl__interval_from_text(text, &out->i, err);
    case OID_NAME:
        out->b = text;
        if (out->b.size > LIMIT_IDENTIFIER_BYTES)
            out->b.size = LIMIT_IDENTIFIER_BYTES;
        return ST_OK;
    case OID_TEXT:
    case OID_VARCHAR: out->b = text; return ST_OK; /* no array: the list of types is long */
    default: break;
    }
    uint32_t element = pl_type_element(oid);
    if (element != 0)
        return pl__array_from_text(element, text, style, now, a, out, err);
    out->b = text;
    return ST_OK;
}

void pl_value_to_text(const struct pl_value *v, const struct pl_style *style, struct obuf *out)
{
    char c;
    switch (v->oid) {
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_OID:
    case OID_REGCLASS:
    case OID_REGPROC: put_int(v->i, out); return;
    case OID_BOOL: obuf_u8(out, v->i ? 't' : 'f'); return;
    case OID_CHAR:
        c = (char)v->i;
        if ((uint8_t)c >= 0x80) {
            char octal[8];
            snprintf(octal, sizeof(octal), "\\%03o", (unsigned)(uint8_t)c);
            obuf_put(out, octal, 4);
        } else if (c != 0) {
            obuf_u8(out, (uint8_t)c);
        }
        return;
    case OID_BYTEA: {
        struct kv_datum d = {.b = v->b};
        size_t at = out->size;
        pl_datum_to_field(KV_BYTEA, &d, false, style, out);
        memmove(out->data + at, out->data + at + 4, out->size - at - 4);
        out->size -= 4;
        return;
    }
    case OID_FLOAT4:
    case OID_FLOAT8: put_float(v->d, v->oid == OID_FLOAT4, out); return;
    case OID_DATE:
    case OID_TIMESTAMP:
    case OID_TIMESTAMPTZ: pl__time_to_text(v->oid, v->i, style, out); return;
    case OID_INTERVAL: pl__interval_to_text(v->i, out); return;
    case OID_VOID: return;
    default: break;
    }
    if (pl_type_element(v->oid) != 0)
        pl__array_to_text(v, style, out);
    else
        obuf_put(out, v->b.data, v->b.size);
}

status pl__short_binary(struct err *err)
{
    return err_set(err, ST_PROTOCOL, "insufficient data left in message");
}

status pl__long_binary(struct err *err)
{
    return err_set_state(err, ST_INVALID, "22P03", "incorrect binary data format");
}

/* -- binary ------------------------------------------------------------------------------------ */

static status int_from_binary(bytes data, size_t size, int64_t *out, struct err *err)
{
    if (data.size < size)
        return pl__short_binary(err);
    if (data.size > size)
        return pl__long_binary(err);
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++)
        v = v << 8 | data.data[i];
    unsigned unused = (unsigned)(64 - 8 * size);
    *out = (int64_t)(v << unused) >> unused;
    return ST_OK;
}

static status byte_from_binary(bytes data, int64_t *out, struct err *err)
{
    if (data.size == 0)
        return err_set(err, ST_PROTOCOL, "no data left in message");
    return int_from_binary(data, 1, out, err);
}

/* time(8) days(4) months(4) */
static status interval_from_binary(bytes data, int64_t *out, struct err *err)
{
    if (data.size < 16)
        return pl__short_binary(err);
    if (data.size > 16)
        return pl__long_binary(err);
    int64_t us = (int64_t)load_be64(data.data), days = (int32_t)load_be32(data.data + 8);
    days += (int64_t)(int32_t)load_be32(data.data + 12) * 30;
    if (__builtin_mul_overflow(days, INT64_C(86400000000), &days) ||
        __builtin_add_overflow(us, days, out))
        return err_set_state(err, ST_INVALID, "22008", "interval out of range");
    return ST_OK;
}

static status text_from_binary(bytes data, bytes *out, struct err *err)
{
    if (data.size > 0 && memchr(data.data, 0, data.size) != NULL)
        return err_set_state(err, ST_INVALID, "22021",
                             "invalid byte sequence for encoding \"UTF8\": 0x00");
    *out = data;
    return ST_OK;
}

static status float_from_binary(uint32_t oid, bytes data, double *out, struct err *err)
{
    int64_t raw = 0;
    if (oid == OID_FLOAT4) {
        ST_TRY(int_from_binary(data, 4, &raw, err));
        uint32_t bits = (uint32_t)raw;
        float f;
        memcpy(&f, &bits, sizeof(f));
        *out = (double)f;
        return ST_OK;
    }
    ST_TRY(int_from_binary(data, 8, &raw, err));
    memcpy(out, &raw, sizeof(*out));
    return ST_OK;
}

status pl_value_from_binary(uint32_t oid, bytes data, struct arena *a, struct pl_value *out,
                            struct err *err)
{
    *out = (struct pl_value){.oid = oid};
    switch (oid) {
    case OID_INT2: return int_from_binary(data, 2, &out->i, err);
    case OID_INT4:
    case OID_DATE: return int_from_binary(data, 4, &out->i, err);
    case OID_OID:
    case OID_REGCLASS:
    case OID_REGPROC:
        ST_TRY(int_from_binary(data, 4, &out->i, err));
        out->i = (int64_t)(uint32_t)out->i;
        return ST_OK;
    case OID_INT8: return int_from_binary(data, 8, &out->i, err);
    case OID_TIMESTAMP:
    case OID_TIMESTAMPTZ:
        ST_TRY(int_from_binary(data, 8, &out->i, err));
        if (out->i != PL_TIME_INFINITY && out->i != PL_TIME_MINUS_INFINITY &&
            (out->i < PL_TIME_MIN || out->i >= PL_TIME_END))
            return err_set_state(err, ST_INVALID, "22008", "timestamp out of range");
        return ST_OK;
    case OID_BOOL:
        ST_TRY(byte_from_binary(data, &out->i, err));
        out->i = out->i != 0;
        return ST_OK;
    case OID_CHAR:
        ST_TRY(byte_from_binary(data, &out->i, err));
        out->i &= 0xff;
        return ST_OK;
    case OID_FLOAT4:
    case OID_FLOAT8: return float_from_binary(oid, data, &out->d, err);
    case OID_NUMERIC: return pl__numeric_from_binary(data, a, &out->b, err);
    case OID_INTERVAL: return interval_from_binary(data, &out->i, err);
    case OID_BYTEA: out->b = data; return ST_OK;
    default: break;
    }
    uint32_t element = pl_type_element(oid);
    if (element != 0)
        return pl__array_from_binary(element, data, a, out, err);
    return text_from_binary(data, &out->b, err);
}

void pl_value_to_binary(const struct pl_value *v, struct obuf *out)
{
    switch (v->oid) {
    case OID_INT2: obuf_be16(out, (uint16_t)v->i); return;
    case OID_INT4:
    case OID_DATE:
    case OID_OID:
    case OID_REGCLASS:
    case OID_REGPROC: obuf_be32(out, (uint32_t)v->i); return;
    case OID_INT8:
    case OID_TIMESTAMP:
    case OID_TIMESTAMPTZ: obuf_be64(out, (uint64_t)v->i); return;
    case OID_BOOL:
    case OID_CHAR: obuf_u8(out, (uint8_t)v->i); return;
    case OID_FLOAT4: {
        float f = (float)v->d;
        uint32_t bits;
        memcpy(&bits, &f, sizeof(bits));
        obuf_be32(out, bits);
        return;
    }
    case OID_FLOAT8: {
        uint64_t bits;
        memcpy(&bits, &v->d, sizeof(bits));
        obuf_be64(out, bits);
        return;
    }
    case OID_NUMERIC: pl__numeric_to_binary(v->b, out); return;
    case OID_INTERVAL: {
        int64_t day = INT64_C(86400000000);
        obuf_be64(out, (uint64_t)(v->i % day));
        obuf_be32(out, (uint32_t)(v->i / day));
        obuf_be32(out, 0);
        return;
    }
    case OID_VOID: return;
    default: break;
    }
    uint32_t element = pl_type_element(v->oid);
    if (element != 0)
        pl__array_to_binary(v, element, out);
    else
        obuf_put(out, v->b.data, v->b.size);
}

/* -- stored columns ---------------------------------------------------------------------------- */

static void bytea_to_text(bytes b, bool escape, struct obuf *out)
{
    static const char digits[] = "0123456789abcdef";
    if (!escape) {
        uint8_t *p = obuf_reserve(out, 2 * b.size + 2);
        *p++ = '\\';
        *p++ = 'x';
        for (size_t i = 0; i < b.size; i++) {
            *p++ = (uint8_t)digits[b.data[i] >> 4];
            *p++ = (uint8_t)digits[b.data[i] & 15];
        }
        out->size += 2 * b.size + 2;
        return;
    }
    for (size_t i = 0; i < b.size; i++) {
        uint8_t c = b.data[i];
        if (c == '\\') {
            obuf_put(out, "\\\\", 2);
        } else if (c < 0x20 || c > 0x7e) {
            char octal[8];
            snprintf(octal, sizeof(octal), "\\%03o", (unsigned)c);
            obuf_put(out, octal, 4);
        } else {
            obuf_u8(out, c);
        }
    }
}

void pl_datum_to_field(enum kv_type t, const struct kv_datum *d, bool binary,
                       const struct pl_style *style, struct obuf *out)
{
    if (d->null) {
        obuf_be32(out, UINT32_MAX);
        return;
    }
    size_t at = out->size;
    switch (t) {
    case KV_TEXT:
        obuf_be32(out, (uint32_t)d->b.size);
        obuf_put(out, d->b.data, d->b.size);
        return;
    case KV_BYTEA:
        if (binary) {
            obuf_be32(out, (uint32_t)d->b.size);
            obuf_put(out, d->b.data, d->b.size);
            return;
        }
        obuf_be32(out, 0);
        bytea_to_text(d->b, style != NULL && style->bytea_escape, out);
        break;
    case KV_INT2:
    case KV_INT4:
    case KV_INT8:
        if (binary) {
            uint32_t size = t == KV_INT8 ? 8 : t == KV_INT4 ? 4 : 2;
            obuf_be32(out, size);
            if (size == 8)
                obuf_be64(out, (uint64_t)d->i);
            else if (size == 4)
                obuf_be32(out, (uint32_t)d->i);
            else
                obuf_be16(out, (uint16_t)d->i);
            return;
        } else {
            uint8_t *p = obuf_reserve(out, 4 + DECIMAL_MAX);
            size_t n = decimal_put((char *)p + 4, d->i);
            store_be32(p, (uint32_t)n);
            out->size += 4 + n;
            return;
        }
    case KV_CHAR:
        if (d->i > 0 && d->i < 0x80) {
            obuf_be32(out, 1);
            obuf_u8(out, (uint8_t)d->i);
            return;
        }
        /* fall through */
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL: {
        struct pl_value v = {.oid = pl_type_of(t), .i = d->i};
        obuf_be32(out, 0);
        if (binary)
            pl_value_to_binary(&v, out);
        else
            pl_value_to_text(&v, style, out);
        break;
    }
    }
    obuf_patch_be32(out, at, (uint32_t)(out->size - at - 4));
}
