/*
 * kv/lifecycle.c — rules as a page or a command needs them: see lifecycle.h.
 *
 * They are read anew by each, through the same view: so a snapshot has the rules of its moment, a
 * transaction its own, and every replica the same at the same command. kv_state_has_rules says
 * without a read that there are none, which is the common case.
 */
#include "kv/lifecycle.h"
#include "base/assert.h"
#include "kv/handler.h"

/* The part of KEY, an encoded key of object, up to the end of the bucket; the header if KEY ends
 * before that. */
static size_t bucket_end(bytes key)
{
    for (size_t i = KV_KEY_HEADER; i + 1 < key.size; i++) {
        if (key.data[i] == 0 && key.data[i + 1] == 0)
            return i + 2;
        i += key.data[i] == 0; /* an escaped zero */
    }
    return KV_KEY_HEADER;
}

/* Keys of lifecycle that begin as the objects of [LOWER, UPPER) do: of a bucket, or all. */
static bytes rules_of(struct arena *a, bytes lower, bytes upper)
{
    ASSERT(lower.size >= KV_KEY_HEADER);
    bytes part = bytes_make(lower.data, bucket_end(lower));
    if (part.size > KV_KEY_HEADER && bytes_cmp(upper, kv_key_after_prefix(a, part)) > 0)
        part.size = KV_KEY_HEADER;
    uint8_t *prefix = arena_alloc(a, part.size);
    memcpy(prefix, part.data, part.size);
    prefix[0] = KV_LIFECYCLE;
    return bytes_make(prefix, part.size);
}

static status add_rule(struct arena *a, bytes key, const struct kv_cell *cell,
                       struct kv_rule **rules, unsigned *count, unsigned *capacity)
{
    struct kv_row row, copy;
    ST_TRY(kv__cell_row(a, key, cell, &row));
    if (row.col[LIFECYCLE_EXPIRE_AFTER].null)
        return ST_OK;
    kv_row_copy(a, &row, &copy);
    if (*count == *capacity)
        *rules = arena_grow(a, *rules, sizeof **rules, capacity, 4);
    (*rules)[(*count)++] = (struct kv_rule){.bucket = copy.col[LIFECYCLE_BUCKET].b,
                                            .prefix = copy.col[LIFECYCLE_PREFIX].b,
                                            .after = copy.col[LIFECYCLE_EXPIRE_AFTER].i};
    return ST_OK;
}

status kv_rules_load(struct kv_txn *t, struct arena *a, bytes lower, bytes upper,
                     struct kv_rules *out)
{
    struct kv_rule *rules = NULL;
    unsigned count = 0, capacity = 0;
    bytes key;
    struct kv_cell cell;
    status st;
    *out = (struct kv_rules){.count = 0};
    if (!kv_state_has_rules(kv_txn_view(t)->state) && !kv_txn_has_writes(t))
        return ST_OK;
    bytes prefix = rules_of(a, lower, upper);
    struct kv_txn_scan *scan = kv_txn_scan_open(t, prefix, kv_key_after_prefix(a, prefix), false);
    while ((st = kv_txn_scan_next(scan, &key, &cell)) == ST_OK)
        ST_GOTO(out, add_rule(a, key, &cell, &rules, &count, &capacity));
    if (st == ST_END)
        st = ST_OK;
out:
    kv_txn_scan_close(scan);
    if (st == ST_OK)
        *out = (struct kv_rules){.rule = rules, .count = count};
    return st;
}

int64_t kv_object_due(const struct kv_rules *rules, const struct kv_row *row)
{
    const struct kv_datum *mtime = &row->col[OBJECT_MTIME];
    const struct kv_datum *expires_at = &row->col[OBJECT_EXPIRES_AT];
    int64_t due = expires_at->null ? INT64_MAX : expires_at->i, by_rule;
    for (unsigned i = 0; i < rules->count && !mtime->null; i++) {
        const struct kv_rule *rule = &rules->rule[i];
        if (bytes_eq(rule->bucket, row->col[OBJECT_BUCKET].b) &&
            bytes_has_prefix(row->col[OBJECT_KEY].b, rule->prefix) &&
            !__builtin_add_overflow(mtime->i, rule->after, &by_rule) && by_rule < due)
            due = by_rule;
    }
    return due;
}
