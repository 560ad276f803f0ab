/*
 * bench/out.c — bytes to send. Plain doubling; integers are written byte by byte, so that no
 * alignment matters.
 */
#include "out.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void die(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("metadb_load: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

void *must(void *memory)
{
    if (!memory)
        die("out of memory");
    return memory;
}

void out_free(struct out *o)
{
    free(o->data);
    *o = (struct out){0};
}

static uint8_t *reserve(struct out *o, size_t size)
{
    if (o->capacity - o->size < size) {
        size_t capacity = o->capacity ? o->capacity : 512;
        while (capacity - o->size < size)
            capacity *= 2;
        o->data = must(realloc(o->data, capacity));
        o->capacity = capacity;
    }
    uint8_t *at = o->data + o->size;
    o->size += size;
    return at;
}

void out_bytes(struct out *o, const void *data, size_t size)
{
    memcpy(reserve(o, size), data, size);
}

void out_text(struct out *o, const char *s)
{
    out_bytes(o, s, strlen(s));
}

void out_cstr(struct out *o, const char *s)
{
    out_bytes(o, s, strlen(s) + 1);
}

void out_u8(struct out *o, unsigned v)
{
    *reserve(o, 1) = (uint8_t)v;
}

void out_u16(struct out *o, unsigned v)
{
    uint8_t *p = reserve(o, 2);
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static void store_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

void out_u32(struct out *o, uint32_t v)
{
    store_u32(reserve(o, 4), v);
}

void out_decimal(struct out *o, uint64_t v)
{
    char text[24];
    out_text(o, decimal(text, v, 1));
}

size_t out_begin(struct out *o, char type)
{
    if (type)
        out_u8(o, (unsigned char)type);
    size_t begin = o->size;
    out_u32(o, 0);
    return begin;
}

void out_end(struct out *o, size_t begin)
{
    store_u32(o->data + begin, (uint32_t)(o->size - begin));
}

char *decimal(char *text, uint64_t v, unsigned width)
{
    char digits[20];
    unsigned n = 0, at = 0;
    while (v || n == 0) {
        digits[n++] = (char)('0' + v % 10);
        v /= 10;
    }
    while (width > n) {
        text[at++] = '0';
        width--;
    }
    while (n)
        text[at++] = digits[--n];
    text[at] = 0;
    return text;
}
