/*
 * kv/load_batch.h — a batch whose entries go into a load as they come.
 *
 * What a batch of the store does in one piece, a write of everything at once, is done here a little
 * with each entry; there is one file of sorted entries in the end, and taking it in is one short
 * step. For a flush that gives way to others.
 *
 * Rows (tables that clients see) come in the order of their keys and are passed on. What lies
 * behind all rows, queues, locks and the shard's record, comes in any order; it is kept aside and
 * follows at the end.
 */
#ifndef KV_LOAD_BATCH_H
#define KV_LOAD_BATCH_H

#include "kv/store.h"

/* Borrows L. An error of L is kept; what comes behind it goes nowhere. */
struct kv_store_batch *kv_load_batch_new(struct kv_store_load *l);
/* Behind the last entry, once: what was kept aside follows, and W is told of it. The first error of
 * all. The batch is to be freed, not written. */
NODISCARD status kv_load_batch_finish(struct kv_store_batch *b, struct kv_store_change *w);

#endif
