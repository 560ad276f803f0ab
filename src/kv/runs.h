/*
 * kv/runs.h — flushed entries in the order of their keys, kept in memory for listings.
 *
 * A *run* is all that the store holds between two keys: entries side by side, without the merge of
 * tables, blocks and versions that the store's own iterator does for each. Runs do not overlap, are
 * made by the pages that found none (runs_iter.c), and hold a bounded number of bytes together.
 *
 * A run is never older than the store but for what a batch has written that is not done yet: the
 * batch drops what it touches before it is written, and nothing is added while one is under way.
 * So whoever takes the list of generations first, as every scan does, finds in a run and in that
 * list together all that was flushed.
 *
 * Threads: any. A run that was lent does not change and stays until it is given back.
 */
#ifndef KV_RUNS_H
#define KV_RUNS_H

#include "base/bytes.h"
#include <stdbool.h>

struct kv_runs;
struct kv_run;

struct kv_runs *kv_runs_new(uint64_t bytes_max);
void kv_runs_free(struct kv_runs *c); /* when nothing is lent; NULL is fine */

/* The run that covers KEY, lent. NULL if there is none; then *NEXT is where the next one begins, a
 * copy in NEXT_DATA (KV_KEY_MAX + 1 bytes), or empty. */
const struct kv_run *kv_runs_find(struct kv_runs *c, bytes key, uint8_t *next_data, bytes *next);
void kv_run_give_back(const struct kv_run *r); /* NULL is fine */

/* Entry AT, borrowed from the run; false behind the last one. */
bool kv_run_entry(const struct kv_run *r, unsigned at, bytes *key, bytes *value);
unsigned kv_run_seek(const struct kv_run *r, bytes key); /* the first entry at or after KEY */
bytes kv_run_end(const struct kv_run *r);                /* the run covers keys below it */

/* -- making one -------------------------------------------------------------------------------- */

/* What may be added: as of a moment. Taken before the iterator is made whose entries are added. */
uint64_t kv_runs_moment(struct kv_runs *c);

/* A run on its way; zeroed before the first use. One thread's. */
struct kv_run_maker {
    uint8_t *data;
    uint32_t *ends; /* of key and value of each entry, in `data` */
    size_t size, capacity, from_size;
    unsigned count;
};
void kv_run_begin(struct kv_run_maker *m, bytes from);
/* False: full. The entry was not taken. */
bool kv_run_add(struct kv_run_maker *m, bytes key, bytes value);
/* The store holds nothing else from `from` to TO. Keeps it, unless it is too short to be of use,
 * or the store may have changed since MOMENT. The maker may begin again. */
void kv_run_keep(struct kv_runs *c, struct kv_run_maker *m, bytes to, uint64_t moment);
/* The last key that was taken; empty if none was. */
bytes kv_run_last(const struct kv_run_maker *m);
void kv_run_maker_fini(struct kv_run_maker *m);

/* -- changes of the store ---------------------------------------------------------------------- */

/* A batch that is made and written between the two: nothing is added meanwhile. */
struct kv_runs_writer;
struct kv_runs_writer *kv_runs_write_begin(struct kv_runs *c);
/* KEY will change: drops what covers it. */
void kv_runs_touch(struct kv_runs_writer *w, bytes key);
void kv_runs_touch_all(struct kv_runs_writer *w); /* every key may */
void kv_runs_write_end(struct kv_runs_writer *w); /* NULL is fine */

/* Drops all of them: the store's content is another one. No batch is under way. */
void kv_runs_clear(struct kv_runs *c);

/* For operators. */
struct kv_runs_stats {
    uint64_t runs, bytes, bytes_max;
    uint64_t hits, misses; /* of kv_runs_find */
    uint64_t kept, dropped, evicted;
};
void kv_runs_stats(struct kv_runs *c, struct kv_runs_stats *out);

#endif
