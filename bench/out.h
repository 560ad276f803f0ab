/*
 * bench/out.h — a growing buffer of bytes to send, and the numbers of the wire protocols.
 *
 * Memory that cannot be had ends the program: this is a load generator, not a server.
 */
#ifndef BENCH_OUT_H
#define BENCH_OUT_H

#include "base/compiler.h"
#include <stddef.h>
#include <stdint.h>

struct out {
    uint8_t *data;
    size_t size, capacity;
    uint32_t requests; /* on this connection, where the protocol numbers them */
};

void out_free(struct out *o);
void out_bytes(struct out *o, const void *data, size_t size);
/* S without its NUL. */
void out_text(struct out *o, const char *s);
/* S with its NUL. */
void out_cstr(struct out *o, const char *s);
/* Big-endian. */
void out_u8(struct out *o, unsigned v);
void out_u16(struct out *o, unsigned v);
void out_u32(struct out *o, uint32_t v);
/* Decimal digits. */
void out_decimal(struct out *o, uint64_t v);
/* A PostgreSQL message: TYPE (0: none, the start-up packet) and a length that out_end fills in. */
size_t out_begin(struct out *o, char type);
void out_end(struct out *o, size_t begin);

/* Writes V as decimal digits and a NUL into TEXT (at least 21 bytes); zero-padded to WIDTH. */
char *decimal(char *text, uint64_t v, unsigned width);

/* Says why on standard error and ends the program with 1. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void *must(void *memory);

#endif
