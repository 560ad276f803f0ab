/*
 * base/bytes.h — a borrowed view of memory that somebody else owns.
 * A parameter of type `bytes` is always a borrow for the duration of the call.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct bytes {
    const uint8_t *data; /* may be NULL only if size is 0 */
    size_t size;
} bytes;

#define BYTES_EMPTY ((bytes){NULL, 0})
/* A string literal without its NUL. */
#define BYTES_LIT(s) ((bytes){(const uint8_t *)("" s), sizeof(s) - 1})

static inline bytes bytes_make(const void *data, size_t size)
{
    return (bytes){(const uint8_t *)data, size};
}
static inline bytes bytes_str(const char *s)
{
    return (bytes){(const uint8_t *)s, strlen(s)};
}
/* <0, 0, >0 in unsigned byte order; a prefix sorts before what it begins. */
static inline int bytes_cmp(bytes a, bytes b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int c = n ? memcmp(a.data, b.data, n) : 0;
    if (c != 0)
        return c;
    return a.size < b.size ? -1 : a.size > b.size;
}
static inline bool bytes_eq(bytes a, bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
static inline bool bytes_has_prefix(bytes a, bytes prefix)
{
    return a.size >= prefix.size &&
           (prefix.size == 0 || memcmp(a.data, prefix.data, prefix.size) == 0);
}

#endif
