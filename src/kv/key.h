/*
 * kv/key.h — order-preserving keys: table(1) | namespace(4) | key columns.
 *
 * bigint: 8 bytes big-endian with the sign bit flipped. Text in the last place: as it is. Text
 * elsewhere (object.bucket): 0x00 becomes 0x00 0xff, ended by 0x00 0x00. memcmp order of keys is
 * the order of their tuples.
 */
#ifndef KV_KEY_H
#define KV_KEY_H

#include "base/arena.h"
#include "base/codec.h"
#include "kv/row.h"

#define KV_KEY_MAX (1 + 4 + 2 * LIMIT_KEY_BYTES + 2 + LIMIT_KEY_BYTES + 16)
#define KV_KEY_HEADER 5

/* The key of ROW from its key columns. Allocated in A. */
bytes kv_key_of_row(struct arena *a, uint32_t ns, const struct kv_row *row);
/* The first COUNT key columns, as the common prefix of all keys that have them. For a text column
 * in the last place COUNT may include it, giving the exact key. */
bytes kv_key_prefix(struct arena *a, uint32_t ns, enum kv_table t, const struct kv_datum *cols,
                    unsigned count);
bytes kv_key_meta(struct arena *a, uint32_t ns, int64_t pid, bytes name);
bytes kv_key_attr(struct arena *a, uint32_t ns, int64_t pid); /* (pid, _attr_) */
/* The smallest key above every key with prefix KEY; empty when there is none. */
bytes kv_key_after_prefix(struct arena *a, bytes key);
/* The smallest key above KEY itself: KEY and a zero byte. */
bytes kv_key_successor(struct arena *a, bytes key);

/* Back to columns: table, namespace and key columns of OUT; text borrows KEY or A. ST_CORRUPT. */
NODISCARD status kv_key_decode(struct arena *a, bytes key, uint32_t *ns, struct kv_row *out);
/* The same for a key of meta; false if it is too short. */
static inline bool kv_key_decode_meta(bytes key, struct kv_row *out)
{
    const size_t name_at = KV_KEY_HEADER + 8;
    if (key.size < name_at)
        return false;
    out->table = KV_META;
    out->col[META_PID].null = out->col[META_PID].deflt = false;
    out->col[META_PID].i = (int64_t)(load_be64(key.data + KV_KEY_HEADER) ^ 1ull << 63);
    out->col[META_NAME].null = out->col[META_NAME].deflt = false;
    out->col[META_NAME].b = bytes_make(key.data + name_at, key.size - name_at);
    return true;
}
enum kv_table kv_key_table(bytes key);
/* The visible table whose shard KEY belongs to, also for hidden keys (key_owner.c). */
enum kv_table kv_key_owner(bytes key);
bool kv_key_is_attr(bytes key); /* a meta key whose name is _attr_ */

#endif
