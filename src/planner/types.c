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
#include "planner/pl_internal.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

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

static bool is_text(uint32_t oid)
{
    return oid == OID_TEXT || oid == OID_VARCHAR || oid == OID_BPCHAR || oid == OID_NAME ||
           oid == OID_UNKNOWN;
}

static bool is_integer(uint32_t oid)
{
    return oid == OID_INT8 || oid == OID_INT4 || oid == OID_INT2 || oid == OID_OID ||
           oid == OID_REGCLASS || oid == OID_REGPROC;
}

/* Text cut for a message. */
static struct shown {
    char s[200];
} show(bytes text)
{
    struct shown out;
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

static status bad_syntax(struct err *err, uint32_t oid, bytes text)
{
    return err_set_state(err, ST_INVALID, "22P02", "invalid input syntax for type %s: \"%s\"",
                         pl_type_name(oid), show(text).s);
}

static bytes trim(bytes t)
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

static void int_range(uint32_t oid, int64_t *lowest, int64_t *highest)
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

static status int_from_text(uint32_t oid, bytes text, int64_t *out, struct err *err)
{
    bytes t = trim(text);
    bool negative = false, over = false;
    size_t i = 0;
    uint64_t v = 0;
    if (t.size > 0 && (t.data[0] == '-' || t.data[0] == '+'))
        negative = t.data[i++] == '-';
    if (i == t.size)
        return bad_syntax(err, oid, text);
    for (; i < t.size; i++) {
        unsigned digit = (unsigned)t.data[i] - '0';
        if (digit > 9)
            return bad_syntax(err, oid, text);
        if (v > (UINT64_MAX - digit) / 10)
            over = true;
        v = v * 10 + digit;
    }
    int64_t lowest, highest;
    int_range(oid, &lowest, &highest);
    if (!over && negative)
        over = v > (uint64_t)INT64_MAX + 1;
    else if (!over)
        over = v > (uint64_t)INT64_MAX;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    if (over || *out < lowest || *out > highest)
        return err_set_state(err, ST_INVALID, "22003", "value \"%s\" is out of range for type %s",
                             show(t).s, pl_type_name(oid));
    if (oid == OID_OID && *out < 0)
        *out = (int64_t)(uint32_t)*out;
    return ST_OK;
}

/* Decimal digits of V into the end of BUF; gives the start. */
static char *int_digits(int64_t v, char buf[24])
{
    char *p = buf + 23;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    *p = '\0';
    do
        *--p = (char)('0' + u % 10);
    while ((u /= 10) != 0);
    if (v < 0)
        *--p = '-';
    return p;
}

static void put_int(int64_t v, struct obuf *out)
{
    char buf[24], *p = int_digits(v, buf);
    obuf_put(out, p, (size_t)(buf + 23 - p));
}

/* -- numbers as text --------------------------------------------------------------------------- */

/* The parts of [+-]digits[.digits][e[+-]digits]. */
struct number {
    bool negative;
    bytes whole, fraction;
    long exponent;
};

static bool number_parts(bytes t, struct number *n)
{
    size_t i = 0, start;
    memset(n, 0, sizeof(*n));
    if (i < t.size && (t.data[i] == '-' || t.data[i] == '+'))
        n->negative = t.data[i++] == '-';
    for (start = i; i < t.size && isdigit(t.data[i]);)
        i++;
    n->whole = bytes_make(t.data + start, i - start);
    if (i < t.size && t.data[i] == '.') {
        for (start = ++i; i < t.size && isdigit(t.data[i]);)
            i++;
        n->fraction = bytes_make(t.data + start, i - start);
    }
    if (n->whole.size + n->fraction.size == 0)
        return false;
    if (i < t.size && (t.data[i] == 'e' || t.data[i] == 'E')) {
        bool minus = false;
        if (++i < t.size && (t.data[i] == '-' || t.data[i] == '+'))
            minus = t.data[i++] == '-';
        if (i == t.size)
            return false;
        for (; i < t.size && isdigit(t.data[i]); i++) {
            if (n->exponent < 1000000)
                n->exponent = n->exponent * 10 + (t.data[i] - '0');
        }
        if (minus)
            n->exponent = -n->exponent;
    }
    return i == t.size;
}

/* Digit number I of N's digits before the point once the exponent is applied; I from 0 = the first
 * of whole. Beyond both ends 0. */
static unsigned number_digit(const struct number *n, long i)
{
    if (i < 0)
        return 0;
    if ((size_t)i < n->whole.size)
        return n->whole.data[i] - '0';
    i -= (long)n->whole.size;
    return (size_t)i < n->fraction.size ? n->fraction.data[i] - '0' : 0;
}

bool pl__number_to_int(bytes text, int64_t *floor_out, bool *exact, int *out_of_range)
{
    struct number n;
    *out_of_range = 0;
    *exact = true;
    if (!number_parts(trim(text), &n))
        return false;
    long point = (long)n.whole.size + n.exponent;
    uint64_t v = 0;
    bool over = false;
    for (long i = 0; i < point; i++) {
        unsigned d = number_digit(&n, i);
        if (v > (UINT64_MAX - d) / 10 || (v > 0 && i > 400)) {
            over = true;
            break;
        }
        v = v * 10 + d;
        if (v == 0 && i > (long)(n.whole.size + n.fraction.size))
            break; /* zeros only */
    }
    for (long i = point < 0 ? 0 : point; i < (long)(n.whole.size + n.fraction.size); i++) {
        if (number_digit(&n, i) != 0)
            *exact = false;
    }
    uint64_t most = (uint64_t)INT64_MAX + (n.negative ? 1 : 0);
    if (over || v > most) {
        *out_of_range = n.negative ? -1 : 1;
        *floor_out = n.negative ? INT64_MIN : INT64_MAX;
        return true;
    }
    *floor_out = n.negative ? (int64_t)(0 - v) : (int64_t)v;
    if (n.negative && !*exact && *floor_out > INT64_MIN)
        *floor_out -= 1;
    return true;
}

bool pl__number_round(bytes text, int64_t *out)
{
    struct number n;
    bool exact;
    int beyond;
    bytes t = trim(text);
    if (!number_parts(t, &n) || !pl__number_to_int(t, out, &exact, &beyond) || beyond != 0)
        return false;
    if (exact)
        return true;
    /* floor + 1 when the first digit behind the point pushes up; half goes away from zero. */
    bool half = number_digit(&n, (long)n.whole.size + n.exponent) >= 5;
    bool up = n.negative ? !half : half;
    if (up && *out == INT64_MAX)
        return false;
    *out += up;
    return true;
}

status pl__numeric_check(bytes text, struct arena *a, bytes *canonical, struct err *err)
{
    struct number n;
    bytes t = trim(text);
    if (t.size == 3 && strncasecmp((const char *)t.data, "nan", 3) == 0) {
        *canonical = BYTES_LIT("NaN");
        return ST_OK;
    }
    if (!number_parts(t, &n))
        return bad_syntax(err, OID_NUMERIC, text);
    long point = (long)n.whole.size + n.exponent;
    long total = (long)(n.whole.size + n.fraction.size);
    if (point > 131072 || total - point > 16383)
        return err_set_state(err, ST_INVALID, "22003", "value overflows numeric format");
    long last = total > point ? total : point, first = 0;
    while (first < point - 1 && number_digit(&n, first) == 0)
        first++;
    char *s = arena_alloc(a, (size_t)(last + (point < 0 ? -point : 0)) + 8), *p = s;
    bool zero = true;
    for (long i = 0; i < total; i++)
        zero = zero && number_digit(&n, i) == 0;
    if (n.negative && !zero)
        *p++ = '-';
    if (point <= 0)
        *p++ = '0';
    for (long i = first; i < point; i++)
        *p++ = (char)('0' + number_digit(&n, i));
    if (last > point) {
        *p++ = '.';
        for (long i = point; i < last; i++)
            *p++ = (char)('0' + number_digit(&n, i));
    }
    *canonical = bytes_make(s, (size_t)(p - s));
    return ST_OK;
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
    bytes t = trim(text);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (t.size >= words[i].least && t.size <= strlen(words[i].word) &&
            strncasecmp((const char *)t.data, words[i].word, t.size) == 0) {
            *out = words[i].value;
            return ST_OK;
        }
    }
    return bad_syntax(err, OID_BOOL, text);
}

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
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
            return err_set_state(err, ST_INVALID, "22023", "invalid hexadecimal digit: \"%s\"",
                                 show(bytes_make(t.data + i + (hi < 0 ? 0 : 1), 1)).s);
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
    bytes t = trim(text);
    char *s = arena_strdup(a, t), *end;
    errno = 0;
    *out = strtod(s, &end);
    if (t.size == 0 || *end != '\0' || strpbrk(s, "xXpP") != NULL)
        return bad_syntax(err, oid, text);
    if (oid == OID_FLOAT4)
        *out = (double)(float)*out;
    if (errno == ERANGE || (isinf(*out) && strpbrk(s, "iI") == NULL))
        return err_set_state(err, ST_INVALID, "22003", "\"%s\" is out of range for type %s",
                             show(text).s, pl_type_name(oid));
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
static int64_t char_from_text(bytes t)
{
    if (t.size == 4 && t.data[0] == '\\' && t.data[1] >= '0' && t.data[1] <= '3' &&
        t.data[2] >= '0' && t.data[2] <= '7' && t.data[3] >= '0' && t.data[3] <= '7')
        return (t.data[1] - '0') << 6 | (t.data[2] - '0') << 3 | (t.data[3] - '0');
    return t.size == 0 ? 0 : t.data[0];
}

status pl_utf8_check(bytes text, struct err *err)
{
    const uint8_t *p = text.data, *end = p + text.size;
    while (p < end) {
        uint8_t c = *p;
        unsigned n = c == 0     ? 0
                     : c < 0x80 ? 1
                     : c < 0xc2 ? 0
                     : c < 0xe0 ? 2
                     : c < 0xf0 ? 3
                     : c < 0xf5 ? 4
                                : 0;
        bool good = n > 0 && (size_t)(end - p) >= n;
        for (unsigned i = 1; good && i < n; i++)
            good = (p[i] & 0xc0) == 0x80;
        if (good && n == 3)
            good = (c != 0xe0 || p[1] >= 0xa0) && (c != 0xed || p[1] < 0xa0);
        else if (good && n == 4)
            good = (c != 0xf0 || p[1] >= 0x90) && (c != 0xf4 || p[1] < 0x90);
        if (!good) {
            char hex[32] = "";
            unsigned want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
            for (unsigned i = 0, at = 0; i < want && p + i < end; i++)
                at +=
                    (unsigned)snprintf(hex + at, sizeof(hex) - at, "%s0x%02x", i ? " " : "", p[i]);
            return err_set_state(err, ST_INVALID, "22021",
                                 "invalid byte sequence for encoding \"UTF8\": %s", hex);
        }
        p += n;
    }
    return ST_OK;
}

/* -- arrays ------------------------------------------------------------------------------------ */

static status bad_array(struct err *err, bytes text, const char *detail)
{
    err_set_state(err, ST_INVALID, "22P02", "malformed array literal: \"%s\"", show(text).s);
    err_detail(err, "%s", detail);
    return ST_INVALID;
}

/* One element at *AT of T, up to a comma or the closing brace. */
static status array_item(bytes t, size_t *at, struct arena *a, bytes *item, bool *quoted)
{
    uint8_t *p = arena_alloc(a, t.size - *at + 1);
    size_t n = 0, keep = 0; /* KEEP: what trailing blanks may not cut */
    *quoted = false;
    while (*at < t.size && isspace(t.data[*at]))
        (*at)++;
    while (*at < t.size && t.data[*at] != ',' && t.data[*at] != '}') {
        uint8_t c = t.data[(*at)++];
        if (c == '"') {
            *quoted = true;
            while (*at < t.size && t.data[*at] != '"') {
                if (t.data[*at] == '\\' && *at + 1 < t.size)
                    (*at)++;
                p[n++] = t.data[(*at)++];
            }
            if (*at >= t.size)
                return ST_INVALID;
            (*at)++;
            keep = n;
        } else if (c == '{') {
            return ST_INVALID;
        } else if (c == '\\' && *at < t.size) {
            p[n++] = t.data[(*at)++];
            keep = n;
        } else {
            p[n++] = c;
            if (!isspace(c))
                keep = n;
        }
    }
    *item = bytes_make(p, keep);
    return keep == 0 && !*quoted ? ST_INVALID : ST_OK;
}

static status array_from_text(uint32_t element, bytes text, const struct pl_style *style,
                              int64_t now, struct arena *a, struct pl_value *out, struct err *err)
{
    bytes t = trim(text);
    size_t at = 1, room = 8;
    unsigned count = 0;
    if (t.size < 2 || t.data[0] != '{')
        return bad_array(err, text, "Array value must start with \"{\" or dimension information.");
    struct pl_value *items = ARENA_ARRAY(a, struct pl_value, room);
    while (at < t.size && isspace(t.data[at]))
        at++;
    if (t.data[at] == '}') {
        at++;
    } else {
        for (;;) {
            bytes item;
            bool quoted;
            if (at < t.size && t.data[at] == '{')
                return err_set(err, ST_UNSUPPORTED,
                               "arrays of several dimensions are not supported");
            if (array_item(t, &at, a, &item, &quoted) != ST_OK || at >= t.size)
                return bad_array(err, text,
                                 at >= t.size ? "Unexpected end of input."
                                              : "Unexpected array element.");
            if (count == room) {
                struct pl_value *more = ARENA_ARRAY(a, struct pl_value, room * 2);
                memcpy(more, items, room * sizeof(*more));
                items = more;
                room *= 2;
            }
            if (!quoted && item.size == 4 && strncasecmp((const char *)item.data, "null", 4) == 0)
                items[count] = (struct pl_value){.oid = element, .null = true};
            else
                ST_TRY(pl_value_from_text(element, item, style, now, a, &items[count], err));
            count++;
            if (t.data[at++] == '}')
                break;
        }
    }
    if (at != t.size)
        return bad_array(err, text, "Junk after closing right brace.");
    out->array.items = items;
    out->array.count = count;
    return ST_OK;
}

static void array_to_text(const struct pl_value *v, const struct pl_style *style, struct obuf *out)
{
    struct obuf item;
    obuf_init(&item);
    obuf_u8(out, '{');
    for (unsigned i = 0; i < v->array.count; i++) {
        if (i > 0)
            obuf_u8(out, ',');
        if (v->array.items[i].null) {
            obuf_put(out, "NULL", 4);
            continue;
        }
        obuf_reset(&item);
        pl_value_to_text(&v->array.items[i], style, &item);
        bool quote =
            item.size == 0 || (item.size == 4 && strncasecmp((char *)item.data, "null", 4) == 0);
        for (size_t k = 0; k < item.size; k++)
            quote = quote || strchr("{},\"\\", item.data[k]) != NULL || isspace(item.data[k]);
        if (!quote) {
            obuf_put(out, item.data, item.size);
            continue;
        }
        obuf_u8(out, '"');
        for (size_t k = 0; k < item.size; k++) {
            if (item.data[k] == '"' || item.data[k] == '\\')
                obuf_u8(out, '\\');
            obuf_u8(out, item.data[k]);
        }
        obuf_u8(out, '"');
    }
    obuf_u8(out, '}');
    obuf_fini(&item);
}

static status short_binary(struct err *err)
{
    return err_set(err, ST_PROTOCOL, "insufficient data left in message");
}

static status long_binary(struct err *err)
{
    return err_set_state(err, ST_INVALID, "22P03", "incorrect binary data format");
}

/* dimensions(4) has-nulls(4) element(4) then size(4) lower-bound(4) a dimension, then the
 * elements. */
static status array_from_binary(uint32_t element, bytes data, struct arena *a, struct pl_value *out,
                                struct err *err)
{
    if (data.size < 12)
        return short_binary(err);
    uint32_t dimensions = load_be32(data.data), type = load_be32(data.data + 8);
    bool same = type == element || (is_text(type) && is_text(element));
    if (dimensions > 1)
        return err_set(err, ST_UNSUPPORTED, "arrays of several dimensions are not supported");
    if (!same)
        return err_set_state(err, ST_INVALID, "42804",
                             "binary data has array element type %u (%s) "
                             "instead of expected %u (%s)",
                             type, pl_type_name(type), element, pl_type_name(element));
    if (dimensions == 0)
        return data.size == 12 ? ST_OK : long_binary(err);
    if (data.size < 20)
        return short_binary(err);
    uint32_t count = load_be32(data.data + 12);
    if (count > (data.size - 20) / 4)
        return short_binary(err);
    struct pl_value *items = ARENA_ARRAY(a, struct pl_value, count + 1);
    size_t at = 20;
    for (uint32_t i = 0; i < count; i++) {
        if (data.size - at < 4)
            return short_binary(err);
        uint32_t n = load_be32(data.data + at);
        at += 4;
        if (n == UINT32_MAX) {
            items[i] = (struct pl_value){.oid = element, .null = true};
            continue;
        }
        if (n > data.size - at)
            return short_binary(err);
        ST_TRY(pl_value_from_binary(element, bytes_make(data.data + at, n), a, &items[i], err));
        at += n;
    }
    out->array.items = items;
    out->array.count = count;
    return at == data.size ? ST_OK : long_binary(err);
}

static void array_to_binary(const struct pl_value *v, uint32_t element, struct obuf *out)
{
    bool nulls = false;
    for (unsigned i = 0; i < v->array.count; i++)
        nulls = nulls || v->array.items[i].null;
    obuf_be32(out, v->array.count == 0 ? 0 : 1);
    obuf_be32(out, nulls);
    obuf_be32(out, element);
    if (v->array.count == 0)
        return;
    obuf_be32(out, v->array.count);
    obuf_be32(out, 1);
    for (unsigned i = 0; i < v->array.count; i++) {
        size_t at = out->size;
        obuf_be32(out, UINT32_MAX);
        if (v->array.items[i].null)
            continue;
        pl_value_to_binary(&v->array.items[i], out);
        obuf_patch_be32(out, at, (uint32_t)(out->size - at - 4));
    }
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
    case OID_CHAR: out->i = char_from_text(text); return ST_OK;
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
    default: break;
    }
    uint32_t element = pl_type_element(oid);
    if (element != 0)
        return array_from_text(element, text, style, now, a, out, err);
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
        array_to_text(v, style, out);
    else
        obuf_put(out, v->b.data, v->b.size);
}

/* -- binary ------------------------------------------------------------------------------------ */

static status int_from_binary(bytes data, size_t size, int64_t *out, struct err *err)
{
    if (data.size < size)
        return short_binary(err);
    if (data.size > size)
        return long_binary(err);
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++)
        v = v << 8 | data.data[i];
    unsigned unused = (unsigned)(64 - 8 * size);
    *out = (int64_t)(v << unused) >> unused;
    return ST_OK;
}

/* numeric: digits(2) weight(2) sign(2) scale(2), then groups of four digits. */
static status numeric_from_binary(bytes data, struct arena *a, bytes *out, struct err *err)
{
    if (data.size < 8)
        return short_binary(err);
#define BE16(at) ((int)(int16_t)(uint16_t)(data.data[at] << 8 | data.data[(at) + 1]))
    int groups = BE16(0), weight = BE16(2), sign = (uint16_t)BE16(4), scale = BE16(6);
    if (sign == 0xc000) {
        *out = BYTES_LIT("NaN");
        return ST_OK;
    }
    if (groups < 0 || scale < 0 || scale > 16383 || weight > 32768 || weight < -8192 ||
        (sign != 0 && sign != 0x4000))
        return err_set_state(err, ST_INVALID, "22P03",
                             "invalid sign in external \"numeric\" value");
    if (data.size < 8 + 2 * (size_t)groups)
        return short_binary(err);
    if (data.size > 8 + 2 * (size_t)groups)
        return long_binary(err);
    struct obuf o;
    obuf_init(&o);
    if (sign == 0x4000)
        obuf_u8(&o, '-');
    if (weight < 0)
        obuf_u8(&o, '0');
    int last = -((scale + 3) / 4);
    for (int g = weight > 0 ? weight : 0; g >= last; g--) {
        int i = weight - g, digit = i >= 0 && i < groups ? BE16(8 + 2 * i) : 0;
        char four[8];
        if (digit < 0 || digit > 9999) {
            obuf_fini(&o);
            return err_set_state(err, ST_INVALID, "22P03",
                                 "invalid digit in external \"numeric\" value");
        }
        snprintf(four, sizeof(four), "%04d", digit);
        if (g == -1)
            obuf_u8(&o, '.');
        size_t n = g == last && scale % 4 != 0 && g < 0 ? (size_t)(scale % 4) : 4;
        if (g >= 0 || scale > 0)
            obuf_put(&o, four, n);
    }
#undef BE16
    status st = pl__numeric_check(bytes_make(o.data, o.size), a, out, err);
    obuf_fini(&o);
    return st;
}

static void numeric_to_binary(bytes text, struct obuf *out)
{
    struct number n;
    if (!number_parts(text, &n)) { /* NaN */
        obuf_be64(out, (uint64_t)0xc000 << 16);
        return;
    }
    long point = (long)n.whole.size + n.exponent, total = (long)(n.whole.size + n.fraction.size);
    long scale = total > point ? total - point : 0;
    long weight = point > 0 ? (point + 3) / 4 - 1 : 0;
    long first = point - 4 * (weight + 1), groups = weight + 1 + (scale + 3) / 4;
    size_t at = out->size;
    obuf_be16(out, 0);
    obuf_be16(out, (uint16_t)weight);
    obuf_be16(out, n.negative ? 0x4000 : 0);
    obuf_be16(out, (uint16_t)scale);
    long used = 0;
    for (long g = 0; g < groups; g++) {
        unsigned v = 0;
        for (long k = 0; k < 4; k++)
            v = v * 10 + number_digit(&n, first + 4 * g + k);
        obuf_be16(out, (uint16_t)v);
        if (v != 0)
            used = g + 1;
    }
    out->size = at + 8 + 2 * (size_t)used;
    out->data[at] = (uint8_t)(used >> 8);
    out->data[at + 1] = (uint8_t)used;
}

/* time(8) days(4) months(4) */
static status interval_from_binary(bytes data, int64_t *out, struct err *err)
{
    if (data.size < 16)
        return short_binary(err);
    if (data.size > 16)
        return long_binary(err);
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
        ST_TRY(int_from_binary(data, 1, &out->i, err));
        out->i = out->i != 0;
        return ST_OK;
    case OID_CHAR:
        ST_TRY(int_from_binary(data, 1, &out->i, err));
        out->i &= 0xff;
        return ST_OK;
    case OID_FLOAT4:
    case OID_FLOAT8: return float_from_binary(oid, data, &out->d, err);
    case OID_NUMERIC: return numeric_from_binary(data, a, &out->b, err);
    case OID_INTERVAL: return interval_from_binary(data, &out->i, err);
    case OID_BYTEA: out->b = data; return ST_OK;
    default: break;
    }
    uint32_t element = pl_type_element(oid);
    if (element != 0)
        return array_from_binary(element, data, a, out, err);
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
    case OID_NUMERIC: numeric_to_binary(v->b, out); return;
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
        array_to_binary(v, element, out);
    else
        obuf_put(out, v->b.data, v->b.size);
}

/* -- casts ------------------------------------------------------------------------------------- */

static status no_cast(const struct pl_value *v, uint32_t oid, struct err *err)
{
    return err_set_state(err, ST_INVALID, "42846", "cannot cast type %s to %s",
                         pl_type_name(v->oid), pl_type_name(oid));
}

/* Characters of varchar(n) and char(n); blanks behind are cut silently. */
static status cut(uint32_t oid, int32_t typmod, bool explicit_cast, struct pl_value *v,
                  struct err *err)
{
    if (typmod < 4 || (oid != OID_VARCHAR && oid != OID_BPCHAR))
        return ST_OK;
    size_t most = (size_t)(typmod - 4), chars = 0, i = 0;
    while (i < v->b.size && chars < most) {
        i++;
        while (i < v->b.size && (v->b.data[i] & 0xc0) == 0x80)
            i++;
        chars++;
    }
    for (size_t k = i; !explicit_cast && k < v->b.size; k++) {
        if (v->b.data[k] != ' ')
            return err_set_state(err, ST_INVALID, "22001", "value too long for type %s(%zu)",
                                 pl_type_name(oid), most);
    }
    v->b.size = i;
    return ST_OK;
}

static bytes value_text(const struct pl_value *v, const struct pl_style *style, struct arena *a)
{
    if (is_text(v->oid))
        return v->b;
    struct obuf o;
    obuf_init(&o);
    if (v->oid == OID_BOOL) /* as a cast to text does, unlike output */
        obuf_put(&o, v->i ? "true" : "false", v->i ? 4 : 5);
    else
        pl_value_to_text(v, style, &o);
    bytes out = arena_copy(a, bytes_make(o.data, o.size));
    obuf_fini(&o);
    return out;
}

static status to_integer(const struct pl_value *v, uint32_t oid, int64_t *out, struct err *err)
{
    int64_t lowest, highest;
    bool fits = true;
    int_range(oid, &lowest, &highest);
    if (v->oid == OID_FLOAT8 || v->oid == OID_FLOAT4) {
        double d = rint(v->d);
        fits = d >= -9223372036854775808.0 && d < 9223372036854775808.0;
        *out = fits ? (int64_t)d : 0;
    } else if (v->oid == OID_NUMERIC) {
        fits = pl__number_round(v->b, out);
    } else {
        *out = v->i;
    }
    if (!fits || *out < lowest || *out > highest)
        return err_set_state(err, ST_INVALID, "22003", "%s out of range", pl_type_name(oid));
    return ST_OK;
}

static double to_double(const struct pl_value *v)
{
    if (v->oid == OID_NUMERIC) {
        char buf[64];
        size_t n = v->b.size < sizeof(buf) - 1 ? v->b.size : sizeof(buf) - 1;
        memcpy(buf, v->b.data, n);
        buf[n] = '\0';
        return strtod(buf, NULL);
    }
    return v->oid == OID_FLOAT4 || v->oid == OID_FLOAT8 ? v->d : (double)v->i;
}

static bool is_number(uint32_t oid)
{
    return is_integer(oid) || oid == OID_NUMERIC || oid == OID_FLOAT4 || oid == OID_FLOAT8;
}

static status to_numeric(const struct pl_value *v, struct arena *a, bytes *out, struct err *err)
{
    struct obuf o;
    obuf_init(&o);
    pl_value_to_text(v, NULL, &o);
    status st = pl__numeric_check(bytes_make(o.data, o.size), a, out, err);
    obuf_fini(&o);
    return st;
}

/* Between timestamptz, timestamp and date. */
static bool convert_time(const struct pl_value *v, uint32_t oid, const struct pl_style *style,
                         int64_t *out)
{
    const int64_t day = INT64_C(86400000000);
    bool from_date = v->oid == OID_DATE;
    if (v->oid != OID_DATE && v->oid != OID_TIMESTAMP && v->oid != OID_TIMESTAMPTZ)
        return false;
    if (v->i == (from_date ? INT32_MAX : PL_TIME_INFINITY)) {
        *out = oid == OID_DATE ? INT32_MAX : PL_TIME_INFINITY;
        return true;
    }
    if (v->i == (from_date ? INT32_MIN : PL_TIME_MINUS_INFINITY)) {
        *out = oid == OID_DATE ? INT32_MIN : PL_TIME_MINUS_INFINITY;
        return true;
    }
    int64_t local = from_date                   ? v->i * day
                    : v->oid == OID_TIMESTAMPTZ ? pl__time_to_local(v->i, style)
                                                : v->i;
    if (oid == OID_TIMESTAMPTZ)
        *out = v->oid == OID_TIMESTAMPTZ ? v->i : pl__time_from_local(local, style);
    else if (oid == OID_TIMESTAMP)
        *out = local;
    else
        *out = (local - (local < 0 ? day - 1 : 0)) / day;
    return true;
}

status pl_value_convert(const struct pl_value *v, uint32_t oid, int32_t typmod, bool explicit_cast,
                        const struct pl_style *style, int64_t now, struct arena *a,
                        struct pl_value *out, struct err *err)
{
    if (v->null) {
        *out = (struct pl_value){.oid = oid, .null = true};
        return ST_OK;
    }
    if (v->oid == oid && typmod < 0) {
        *out = *v;
        return ST_OK;
    }
    struct pl_value r = {.oid = oid};
    bool time = oid == OID_TIMESTAMPTZ || oid == OID_TIMESTAMP || oid == OID_DATE;
    if (is_text(oid)) { /* every type has a cast to text */
        r.b = value_text(v, style, a);
        ST_TRY(cut(oid, typmod, explicit_cast, &r, err));
    } else if (v->oid == OID_UNKNOWN || (explicit_cast && is_text(v->oid))) {
        ST_TRY(pl_value_from_text(oid, v->b, style, now, a, &r, err));
    } else if (oid == OID_CHAR && is_text(v->oid)) {
        r.i = char_from_text(v->b);
    } else if (is_integer(oid) && is_number(v->oid)) {
        ST_TRY(to_integer(v, oid, &r.i, err));
    } else if (is_integer(oid) && explicit_cast && (v->oid == OID_BOOL || v->oid == OID_CHAR)) {
        r.i = v->oid == OID_CHAR ? (int8_t)v->i : v->i;
    } else if ((oid == OID_FLOAT4 || oid == OID_FLOAT8) && is_number(v->oid)) {
        r.d = oid == OID_FLOAT4 ? (double)(float)to_double(v) : to_double(v);
    } else if (oid == OID_NUMERIC && is_number(v->oid)) {
        ST_TRY(to_numeric(v, a, &r.b, err));
    } else if (oid == OID_BOOL && explicit_cast && is_integer(v->oid)) {
        r.i = v->i != 0;
    } else if (oid == OID_CHAR && explicit_cast && v->oid == OID_INT4) {
        if (v->i < INT8_MIN || v->i > INT8_MAX)
            return err_set_state(err, ST_INVALID, "22003", "\"char\" out of range");
        r.i = v->i & 0xff;
    } else if (!time || !convert_time(v, oid, style, &r.i)) {
        uint32_t to = pl_type_element(oid), from = pl_type_element(v->oid);
        if (to == 0 || from == 0)
            return no_cast(v, oid, err);
        struct pl_value *items = ARENA_ARRAY(a, struct pl_value, v->array.count + 1);
        for (unsigned i = 0; i < v->array.count; i++)
            ST_TRY(pl_value_convert(&v->array.items[i], to, -1, explicit_cast, style, now, a,
                                    &items[i], err));
        r.array.items = items;
        r.array.count = v->array.count;
    }
    *out = r;
    return ST_OK;
}

/* -- stored columns ---------------------------------------------------------------------------- */

status pl_value_to_datum(const struct pl_value *v, enum kv_type t, const char *column,
                         struct kv_datum *out, struct err *err)
{
    uint32_t oid = pl_type_of(t);
    *out = (struct kv_datum){.null = v->null};
    if (v->null)
        return ST_OK;
    switch (t) {
    case KV_INT2:
    case KV_INT4:
    case KV_INT8:
        if (is_number(v->oid))
            return to_integer(v, oid, &out->i, err);
        break;
    case KV_CHAR:
        if (v->oid == OID_CHAR || is_text(v->oid)) {
            out->i = v->oid == OID_CHAR ? v->i : char_from_text(v->b);
            return ST_OK;
        }
        break;
    case KV_TEXT:
        if (is_text(v->oid) || v->oid == OID_NUMERIC) {
            out->b = v->b;
            return ST_OK;
        }
        break;
    case KV_BYTEA:
        if (v->oid == OID_BYTEA) {
            out->b = v->b;
            return ST_OK;
        }
        break;
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL:
        if (v->oid == oid) {
            out->i = v->i;
            return ST_OK;
        }
        break;
    }
    err_set_state(err, ST_INVALID, "42804",
                  "column \"%s\" is of type %s but expression is of type %s", column,
                  pl_type_name(oid), pl_type_name(v->oid));
    err_hint(err, "You will need to rewrite or cast the expression.");
    return ST_INVALID;
}

struct pl_value pl_value_of_datum(enum kv_type t, const struct kv_datum *d)
{
    struct pl_value v = {.oid = pl_type_of(t), .null = d->null};
    if (d->null)
        return v;
    if (t == KV_TEXT || t == KV_BYTEA)
        v.b = d->b;
    else
        v.i = d->i;
    return v;
}

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
            char buf[24], *p = int_digits(d->i, buf);
            uint32_t n = (uint32_t)(buf + 23 - p);
            obuf_be32(out, n);
            obuf_put(out, p, n);
            return;
        }
    case KV_CHAR:
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
