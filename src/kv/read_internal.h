/* kv/read_internal.h — inside kv: one page of a read under way, for the files read*.c. */
#ifndef KV_READ_INTERNAL_H
#define KV_READ_INTERNAL_H

#include "kv/handler.h"
#include "kv/read.h"

#define ROW_OVERHEAD 64u    /* what a row costs beside its bytes */
#define SCRATCH_BYTES 4096u /* first block of a page's memory */

struct kv_page {
    struct kv_txn *view;
    const struct kv_read *r;
    struct kv_read_pos *pos;
    struct arena *a;       /* the read's: positions */
    struct arena *scratch; /* the page's */
    unsigned max_rows;
    size_t max_bytes;
    bool (*on_row)(void *arg, const struct kv_row *row);
    void *arg;
    struct err *err;
    kv_column_set columns; /* of the row bytes that are looked at */
    struct kv_rules rules; /* object: by which rows expire */
    unsigned rows;
    size_t bytes;
};

/* Gives out ROW; false when the page is full. */
bool kv__page_row(struct kv_page *p, const struct kv_row *row, size_t bytes_estimate);
NODISCARD status kv__page_end(struct kv_page *p); /* ST_END, now and for ever */
/* KEY is done with: the next page goes on behind it. Uses pos->inner. */
void kv__page_remember(struct kv_page *p, bytes key);
/* A scan of [LOWER, UPPER) from where the read stands. */
struct kv_txn_scan *kv__page_scan(struct kv_page *p, bytes lower, bytes upper);

/* Of an object's row: has it expired at the read's time? */
static inline bool kv__page_expired(const struct kv_page *p, const struct kv_row *row)
{
    return p->r->now != 0 && kv__expired(&p->rules, row, p->r->now);
}

NODISCARD status kv__read_resolve(struct kv_page *p);
NODISCARD status kv__read_list_attr(struct kv_page *p);
NODISCARD status kv__read_objects(struct kv_page *p);
NODISCARD status kv__read_usage(struct kv_page *p);

#endif
