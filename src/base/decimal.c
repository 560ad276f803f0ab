/*
 * base/decimal.c — integers as decimal text, eight and two digits a step, from the end.
 */
#include "base/decimal.h"

const char decimal__pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536"
    "37383940414243444546474849505152535455565758596061626364656667686970717273"
    "7475767778798081828384858687888990919293949596979899";

/* 1233/4096 is log10(2): from the bits of V to its digits, or one less. */
static size_t digit_count(uint64_t v)
{
    static const uint64_t powers[] = {
        1u,
        10u,
        100u,
        1000u,
        10000u,
        100000u,
        1000000u,
        10000000u,
        100000000u,
        1000000000u,
        10000000000u,
        100000000000u,
        1000000000000u,
        10000000000000u,
        100000000000000u,
        1000000000000000u,
        10000000000000000u,
        100000000000000000u,
        1000000000000000000u,
        10000000000000000000u,
    };
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
    unsigned n = bits * 1233 >> 12;
    return n + (n < 20 && v >= powers[n]) + (v == 0);
}

/* V, below 10^8, as eight digits: halves, quarters and digits side by side in one word. Each
 * quotient is a product with the reciprocal, exact for what can be in its place. */
static void put_eight(char *out, uint32_t v)
{
    uint64_t halves = v / 10000 | (uint64_t)(v % 10000) << 32;
    uint64_t high = halves * 10486 >> 20 & 0x0000007F0000007Fu; /* by 100 */
    uint64_t pairs = high | (halves - high * 100) << 16;
    uint64_t tens = pairs * 103 >> 10 & 0x000F000F000F000Fu; /* by 10 */
    uint64_t digits = tens | (pairs - tens * 10) << 8 | 0x3030303030303030u;
    memcpy(out, &digits, sizeof digits);
}

/* SIZE digits; V has no more. */
static inline void fill(char *out, uint64_t v, size_t size)
{
    for (; size >= 8; size -= 8) {
        uint64_t high = v / 100000000;
        put_eight(out + size - 8, (uint32_t)(v - high * 100000000));
        v = high;
    }
    uint32_t rest = (uint32_t)v; /* below 10^8 */
    for (; size >= 2; size -= 2, rest /= 100)
        decimal_put_pair(out + size - 2, rest % 100);
    if (size == 1)
        out[0] = (char)('0' + rest % 10);
}

size_t decimal_put_unsigned(char *out, uint64_t v)
{
    size_t size = digit_count(v);
    fill(out, v, size);
    return size;
}

size_t decimal_put(char *out, int64_t v)
{
    if (v >= 0)
        return decimal_put_unsigned(out, (uint64_t)v);
    out[0] = '-';
    return 1 + decimal_put_unsigned(out + 1, 0 - (uint64_t)v);
}

void decimal_put_padded(char *out, uint64_t v, unsigned width)
{
    fill(out, v, width);
}
