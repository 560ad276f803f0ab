/*
 * Decoding of keys and rows as they come from a disk or a peer. What decodes must encode again to
 * something that decodes to the same: keys to the same bytes, rows to equal ones.
 */
#include "base/arena.h"
#include "base/assert.h"
#include "base/buf.h"
#include "kv/key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_key(struct arena *a, bytes key)
{
    struct kv_row row;
    uint32_t ns;

    if (key.size > KV_KEY_MAX || kv_key_decode(a, key, &ns, &row) != ST_OK)
        return;
    ASSERT(bytes_eq(kv_key_of_row(a, ns, &row), key));
    ASSERT(kv_key_table(key) == row.table);
    ASSERT(!kv_key_is_attr(key) || bytes_eq(row.col[META_NAME].b, KV_ATTR_NAME));
}

static void try_row(enum kv_table table, bytes value)
{
    struct kv_row row;
    struct obuf once, twice;

    if (kv_row_decode(table, value, &row) != ST_OK)
        return;
    obuf_init(&once);
    obuf_init(&twice);
    kv_row_encode(&row, &once);
    ASSERT(kv_row_decode(table, bytes_make(once.data, once.size), &row) == ST_OK);
    kv_row_encode(&row, &twice);
    ASSERT(bytes_eq(bytes_make(once.data, once.size), bytes_make(twice.data, twice.size)));
    obuf_fini(&once);
    obuf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;

    if (size < 1)
        return 0;
    arena_init(&a, 1024);
    try_key(&a, bytes_make(data, size));
    try_row((enum kv_table)data[0], bytes_make(data + 1, size - 1));
    arena_fini(&a);
    return 0;
}
