/*
 * kv/aux.h — quota and secondary-index items: derived at apply of the primary change, delivered
 * later, each exactly once.
 *
 * A queue record is all items of one command; its stamp is its identity. The destination keeps, per
 * source shard, the stamp it has taken (a KV_MARK row) and ignores records at or below it. A record
 * goes whole to each destination, which takes the items of its own table.
 */
#ifndef KV_AUX_H
#define KV_AUX_H

#include "kv/op.h"

enum kv_item_kind { KV_ITEM_QUOTA = 1, KV_ITEM_INDEX_PUT, KV_ITEM_INDEX_DELETE };
struct kv_item {
    enum kv_item_kind kind;
    uint32_t ns;
    int64_t uid;               /* QUOTA */
    int64_t files, dirs, size; /* QUOTA: changes */
    int64_t fid, pid, id;      /* INDEX */
    bytes name;
};
struct reader;
#define KV_ITEM_BYTES 64u /* of an item beside its name, at most */
void kv_item_encode(const struct kv_item *item, struct obuf *out);
NODISCARD status kv_item_decode(struct reader *in, struct kv_item *out);
/* Which of the tables KV_QUOTA and KV_INDEX a record concerns. */
enum { KV_ITEMS_QUOTA = 1, KV_ITEMS_INDEX = 2 };
unsigned kv_items_destinations(bytes items);

#endif
