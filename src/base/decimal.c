/*
 * base/decimal.c — integers as decimal text, two digits a division, filled in from the end.
 */
#include "base/decimal.h"
#include <string.h>

static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536"
    "37383940414243444546474849505152535455565758596061626364656667686970717273"
    "7475767778798081828384858687888990919293949596979899";

static size_t digit_count(uint64_t v)
{
    size_t n = 1;
    for (; v >= 10000; v /= 10000)
        n += 4;
    return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

/* SIZE digits; V has no more. */
static void fill(char *out, uint64_t v, size_t size)
{
    while (size >= 2) {
        size -= 2;
        memcpy(out + size, pairs + 2 * (v % 100), 2);
        v /= 100;
    }
    if (size == 1)
        out[0] = (char)('0' + v % 10);
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
