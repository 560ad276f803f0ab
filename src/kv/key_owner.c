/*
 * kv/key_owner.c — which table's shard a key belongs to.
 *
 * Shards share one store, so a walk over hidden keys meets those of other shards. A hidden key goes
 * with the table that it is about: a watermark with the table that received, a row lock with its
 * row, everything else of KV_LOCK (rename lock, trash) with the tree.
 */
#include "kv/aux.h"
#include "kv/key.h"

static enum kv_table mark_owner(bytes key)
{
    unsigned bit = key.size > KV_KEY_HEADER ? key.data[key.size - 1] : 0;
    return bit == KV_ITEMS_INDEX ? KV_INDEX : KV_QUOTA;
}

/* "row", then the table of the row: see kv__key_lock. */
static enum kv_table lock_owner(bytes key)
{
    bytes rest = bytes_make(key.data + KV_KEY_HEADER, key.size - KV_KEY_HEADER);
    if (rest.size > 3 && bytes_has_prefix(rest, BYTES_LIT("row")))
        return (enum kv_table)rest.data[3];
    return KV_META;
}

enum kv_table kv_key_owner(bytes key)
{
    enum kv_table t = kv_key_table(key);
    if (t == KV_LIFECYCLE)
        return KV_OBJECT;
    if (key.size < KV_KEY_HEADER)
        return t;
    if (t == KV_MARK)
        return mark_owner(key);
    return t == KV_LOCK ? lock_owner(key) : t;
}
