/*
 * Order-preserving keys.
 *
 *     +-------+-----------+-------------+-------------+----
 *     | table | namespace | key column  | key column  | ...
 *     | 1     | 4, BE     |             |             |
 *     +-------+-----------+-------------+-------------+----
 *
 * A bigint is 8 bytes big-endian with its sign bit flipped. A text in the last place is its bytes.
 * A text before the last place has 0x00 written as 0x00 0xff and ends with 0x00 0x00, so that a
 * shorter text sorts before what it begins whatever follows.
 *
 * Invariant K1: memcmp of two keys of a table, a prefix first, is the order of their tuples with
 * text compared by bytes. Invariant K2: one tuple has one key, and decoding accepts only that.
 */
#include "kv/key.h"
#include "base/assert.h"
#include "base/codec.h"

#define SIGN_BIT (1ull << 63)

static size_t escaped_size(bytes text)
{
    size_t size = text.size + 2;

    for (size_t i = 0; i < text.size; i++)
        size += text.data[i] == 0;
    return size;
}

static uint8_t *escaped_put(uint8_t *p, bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        *p++ = text.data[i];
        if (text.data[i] == 0)
            *p++ = 0xff;
    }
    *p++ = 0;
    *p++ = 0;
    return p;
}

static uint8_t *header_put(uint8_t *p, uint32_t ns, enum kv_table t)
{
    p[0] = (uint8_t)t;
    store_be32(p + 1, ns);
    return p + KV_KEY_HEADER;
}

static uint8_t *int_put(uint8_t *p, int64_t v)
{
    store_be64(p, (uint64_t)v ^ SIGN_BIT);
    return p + 8;
}

bytes kv_key_prefix(struct arena *a, uint32_t ns, enum kv_table t, const struct kv_datum *cols,
                    unsigned count)
{
    const struct kv_table_def *def = kv_table_def(t);
    size_t size = KV_KEY_HEADER;
    uint8_t *start, *p;

    ASSERT(def != NULL);
    ASSERT(count <= def->key_count);
    for (unsigned c = 0; c < count; c++) {
        ASSERT(!cols[c].null);
        if (def->columns[c].type != KV_TEXT)
            size += 8;
        else
            size += c + 1 < def->key_count ? escaped_size(cols[c].b) : cols[c].b.size;
    }
    start = arena_alloc(a, size);
    p = header_put(start, ns, t);
    for (unsigned c = 0; c < count; c++) {
        if (def->columns[c].type != KV_TEXT) {
            p = int_put(p, cols[c].i);
        } else if (c + 1 < def->key_count) {
            p = escaped_put(p, cols[c].b);
        } else if (cols[c].b.size > 0) {
            memcpy(p, cols[c].b.data, cols[c].b.size);
            p += cols[c].b.size;
        }
    }
    ASSERT((size_t)(p - start) == size);
    return bytes_make(start, size);
}

bytes kv_key_of_row(struct arena *a, uint32_t ns, const struct kv_row *row)
{
    const struct kv_table_def *def = kv_table_def(row->table);

    ASSERT(def != NULL);
    return kv_key_prefix(a, ns, row->table, row->col, def->key_count);
}

bytes kv_key_meta(struct arena *a, uint32_t ns, int64_t pid, bytes name)
{
    size_t size = KV_KEY_HEADER + 8 + name.size;
    uint8_t *start = arena_alloc(a, size);
    uint8_t *p = int_put(header_put(start, ns, KV_META), pid);

    if (name.size > 0)
        memcpy(p, name.data, name.size);
    return bytes_make(start, size);
}

bytes kv_key_attr(struct arena *a, uint32_t ns, int64_t pid)
{
    return kv_key_meta(a, ns, pid, KV_ATTR_NAME);
}

bytes kv_key_after_prefix(struct arena *a, bytes key)
{
    size_t size = key.size;
    uint8_t *p;

    while (size > 0 && key.data[size - 1] == 0xff)
        size--;
    if (size == 0)
        return BYTES_EMPTY;
    p = arena_alloc(a, size);
    memcpy(p, key.data, size);
    p[size - 1]++;
    return bytes_make(p, size);
}

bytes kv_key_successor(struct arena *a, bytes key)
{
    uint8_t *p = arena_alloc(a, key.size + 1);

    if (key.size > 0)
        memcpy(p, key.data, key.size);
    p[key.size] = 0;
    return bytes_make(p, key.size + 1);
}

/* Takes an escaped text off the front of REST. Borrows it where nothing was escaped. */
static status escaped_take(struct arena *a, bytes *rest, bytes *out)
{
    const uint8_t *in = rest->data;
    size_t i = 0, zeros = 0;
    uint8_t *p;

    for (;; i++) {
        if (i + 1 >= rest->size)
            return ST_CORRUPT;
        if (in[i] != 0)
            continue;
        if (in[i + 1] == 0)
            break;
        if (in[i + 1] != 0xff)
            return ST_CORRUPT;
        zeros++;
        i++;
    }
    *out = bytes_make(in, i);
    *rest = bytes_make(in + i + 2, rest->size - i - 2);
    if (zeros == 0)
        return ST_OK;
    p = arena_alloc(a, i - zeros);
    for (size_t from = 0, to = 0; from < i; from++) {
        p[to++] = in[from];
        from += in[from] == 0;
    }
    *out = bytes_make(p, i - zeros);
    return ST_OK;
}

status kv_key_decode(struct arena *a, bytes key, uint32_t *ns, struct kv_row *out)
{
    const struct kv_table_def *def;
    bytes rest;

    if (key.size < KV_KEY_HEADER)
        return ST_CORRUPT;
    def = kv_table_def((enum kv_table)key.data[0]);
    if (def == NULL)
        return ST_CORRUPT;
    *ns = load_be32(key.data + 1);
    out->table = def->table;
    rest = bytes_make(key.data + KV_KEY_HEADER, key.size - KV_KEY_HEADER);
    for (unsigned c = 0; c < def->key_count; c++) {
        out->col[c].null = out->col[c].deflt = false;
        if (def->columns[c].type != KV_TEXT) {
            if (rest.size < 8)
                return ST_CORRUPT;
            out->col[c].i = (int64_t)(load_be64(rest.data) ^ SIGN_BIT);
            rest = bytes_make(rest.data + 8, rest.size - 8);
        } else if (c + 1 < def->key_count) {
            ST_TRY(escaped_take(a, &rest, &out->col[c].b));
        } else {
            out->col[c].b = rest;
        }
    }
    return ST_OK;
}

enum kv_table kv_key_table(bytes key)
{
    return key.size > 0 ? (enum kv_table)key.data[0] : (enum kv_table)0;
}

bool kv_key_is_attr(bytes key)
{
    const size_t at = KV_KEY_HEADER + 8;

    return key.size == at + KV_ATTR_NAME.size && key.data[0] == KV_META &&
           memcmp(key.data + at, KV_ATTR_NAME.data, KV_ATTR_NAME.size) == 0;
}
