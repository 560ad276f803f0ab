/*
 * base/decimal.h — integers as decimal text.
 */
#ifndef BASE_DECIMAL_H
#define BASE_DECIMAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DECIMAL_MAX 20u /* characters of the longest number */

/* Writes V at OUT, which has room for DECIMAL_MAX characters, and gives their number. No NUL. */
size_t decimal_put(char *out, int64_t v);
size_t decimal_put_unsigned(char *out, uint64_t v);
extern const char decimal__pairs[];
/* V, below 100, as two digits. */
static inline void decimal_put_pair(char *out, unsigned v)
{
    memcpy(out, decimal__pairs + 2 * v, 2);
}
/* Exactly WIDTH digits: zeros in front, what is above is cut. */
void decimal_put_padded(char *out, uint64_t v, unsigned width);

#endif
