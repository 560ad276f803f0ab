/*
 * planner/type_number.c — numbers as text: numeric, and literals too large or too fine for a
 * bigint.
 *
 * There is no arithmetic here: a number is taken apart into digits, compared with integers,
 * rounded, brought to one spelling, and turned into PostgreSQL's binary numeric and back (groups of
 * four decimal digits: count, weight of the first, sign, digits behind the point).
 */
#include "planner/type_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

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
    if (!number_parts(pl__trim(text), &n))
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
    bytes t = pl__trim(text);
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
    bytes t = pl__trim(text);
    if (t.size == 3 && strncasecmp((const char *)t.data, "nan", 3) == 0) {
        *canonical = BYTES_LIT("NaN");
        return ST_OK;
    }
    if (!number_parts(t, &n))
        return pl__bad_syntax(err, OID_NUMERIC, text);
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

/* numeric: digits(2) weight(2) sign(2) scale(2), then groups of four digits. */
status pl__numeric_from_binary(bytes data, struct arena *a, bytes *out, struct err *err)
{
    if (data.size < 8)
        return pl__short_binary(err);
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
        return pl__short_binary(err);
    if (data.size > 8 + 2 * (size_t)groups)
        return pl__long_binary(err);
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

void pl__numeric_to_binary(bytes text, struct obuf *out)
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
