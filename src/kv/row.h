/*
 * kv/row.h — a row in memory and its bytes in memtables, log and store.
 *
 * Key columns live in the key, seq in the version's stamp; the bytes hold the other columns:
 * format byte, bitmap of the present ones, then each value in column order. Unknown trailing
 * columns (a newer format) are ST_CORRUPT unless the format byte allows them.
 */
#ifndef KV_ROW_H
#define KV_ROW_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/hlc.h"
#include "kv/schema.h"

struct kv_datum {
    bool null;
    bool deflt; /* in INSERT and SET: take the column's default; other fields are unused */
    union {
        int64_t i; /* integers, "char", timestamptz, interval */
        bytes b;   /* text, bytea; borrowed */
    };
};

struct kv_row {
    enum kv_table table;
    struct kv_datum col[LIMIT_COLUMNS];
};

#define KV_NULL ((struct kv_datum){.null = true})
static inline struct kv_datum kv_int(int64_t v)
{
    return (struct kv_datum){.i = v};
}
static inline struct kv_datum kv_text(bytes b)
{
    return (struct kv_datum){.b = b};
}

/* Appends the non-key, non-seq columns of ROW to OUT. */
void kv_row_encode(const struct kv_row *row, struct obuf *out);
/* The same as bytes in A. */
bytes kv_row_bytes(struct arena *a, const struct kv_row *row);
/* Fills the non-key, non-seq columns; text and bytea borrow ROW's bytes. ST_CORRUPT. */
NODISCARD status kv_row_decode(enum kv_table table, bytes value, struct kv_row *out);
/* The same for the columns in WANTED; what is behind the last of them is not looked at. Other
 * columns of OUT stay as they are. */
NODISCARD status kv_row_decode_some(enum kv_table table, bytes value, kv_column_set wanted,
                                    struct kv_row *out);
/* The same for many rows of TABLE: what does not depend on the row is worked out once. Const after
 * init. */
struct kv_row_reader {
    enum kv_table table;
    kv_column_set wanted;        /* as given */
    uint64_t known, asked;       /* bits of a row's bitmap: may be set; are wanted */
    uint8_t step[LIMIT_COLUMNS]; /* what to do at each bit */
    unsigned first;              /* column of bit 0 */
};
void kv_row_reader_init(struct kv_row_reader *r, enum kv_table table, kv_column_set wanted);
NODISCARD status kv_row_read(const struct kv_row_reader *r, bytes value, struct kv_row *out);
/* All columns NULL. */
void kv_row_clear(enum kv_table table, struct kv_row *out);
/* Deep copy of what is borrowed. */
void kv_row_copy(struct arena *a, const struct kv_row *src, struct kv_row *dst);

#endif
