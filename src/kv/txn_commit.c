/*
 * kv/txn_commit.c — the end of a write set: published here, or carried to the apply of its shard.
 *
 * As bytes, a write set is: count(v) writes, each flags(1) key(bytes) and for a PUT row(bytes);
 * count(v) deltas: key children(z) mtime(z) ctime(z); count(v) requirements: empty(1) key
 * children(z); count(v) items(bytes). Only the newest of each slot is carried. What was born and
 * died here is not.
 *
 * At apply it is checked against what was committed after its snapshot. Each written or locked key
 * must have no newer version and no newer lock; a directory that got an entry must still be there;
 * one that was removed must still be empty, which its version does not tell, because entries only
 * count its aggregates.
 *
 * Invariant X1: what validates, publishes without a further read.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "base/fault.h"
#include "kv/txn_internal.h"

/* -- publishing -------------------------------------------------------------------------------- */

static void publish_write(struct kv_txn *t, const struct kv_slot *s, const struct kv_write *w)
{
    struct kv_cell agg;
    switch (w->kind) {
    case KV_WRITE_PUT:
        if (w->dir == NULL) {
            kv_state_put(t->view.state, s->key, w->row, s->fresh);
        } else {
            kv__dir_aggregates(t, w, &agg);
            kv_state_put(t->view.state, s->key, kv__dir_row_bytes(t->a, w->dir, &agg), s->fresh);
        }
        break;
    case KV_WRITE_DELETE:
        if (!s->fresh) /* else born and died here */
            kv_state_delete(t->view.state, s->key, false);
        break;
    case KV_WRITE_LOCK: kv_state_delete(t->view.state, kv__key_lock(t->a, s->key), true); break;
    }
}

static void publish_items(struct kv_txn *t)
{
    size_t size = 0;
    if (t->item_count == 0)
        return;
    for (uint32_t i = 0; i < t->item_count; i++)
        size += t->items[i].size;
    struct buf *all = buf_new(size);
    uint8_t *p = all->data;
    for (uint32_t i = 0; i < t->item_count; i++) {
        memcpy(p, t->items[i].data, t->items[i].size);
        p += t->items[i].size;
    }
    kv_state_queue_push_take(t->view.state, all);
}

void kv_txn_publish(struct kv_txn *t)
{
    ASSERT(kv__txn_at_apply(t));
    for (uint32_t i = 0; i < t->slot_count; i++) {
        const struct kv_slot *s = &t->slots[i];
        if (s->write != KV_TXN_NONE)
            publish_write(t, s, &t->writes[s->write]);
        if (s->delta != KV_TXN_NONE && kv__slot_row(t, i) == NULL) {
            const struct kv_own_delta *d = &t->deltas[s->delta];
            kv_state_delta(t->view.state, s->key, d->children, d->mtime, d->ctime);
        }
    }
    publish_items(t);
    if (t->file_ids > 0)
        kv_state_record_mut(t->view.state)->next_file_id += t->file_ids;
}

/* -- as bytes ---------------------------------------------------------------------------------- */

enum write_flag {
    FLAG_KIND = 3,
    FLAG_FRESH = 4,
    FLAG_DIR = 8,
    FLAG_BORN = 16,
    FLAG_MTIME_SET = 32,
    FLAG_CTIME_SET = 64,
    FLAG_ALL = 127,
};

static uint8_t write_flags(const struct kv_slot *s, const struct kv_write *w)
{
    unsigned flags = (unsigned)w->kind;
    if (s->fresh)
        flags |= FLAG_FRESH;
    if (w->dir != NULL) {
        flags |= FLAG_DIR;
        flags |= w->dir->born ? FLAG_BORN : 0u;
        flags |= w->dir->set.mtime ? FLAG_MTIME_SET : 0u;
        flags |= w->dir->set.ctime ? FLAG_CTIME_SET : 0u;
    }
    return (uint8_t)flags;
}

/* Born and died here: nobody else can have seen it. */
static bool leaves_nothing(const struct kv_slot *s, const struct kv_write *w)
{
    return w->kind == KV_WRITE_DELETE && s->fresh;
}

static void encode_write(const struct kv_slot *s, const struct kv_write *w, struct obuf *out)
{
    put_u8(out, write_flags(s, w));
    put_bytes(out, s->key);
    if (w->kind != KV_WRITE_PUT)
        return;
    if (w->dir == NULL) {
        put_bytes(out, w->row);
        return;
    }
    struct obuf row;
    obuf_init(&row);
    kv_row_encode(&w->dir->row, &row);
    put_bytes(out, bytes_make(row.data, row.size));
    obuf_fini(&row);
}

static bool delta_counts(const struct kv_txn *t, uint32_t slot)
{
    const struct kv_write *w = kv__slot_row(t, slot);
    return t->slots[slot].delta != KV_TXN_NONE && (w == NULL || w->dir != NULL);
}

static void encode_deltas(const struct kv_txn *t, struct obuf *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->slot_count; i++)
        count += delta_counts(t, i);
    put_varint(out, count);
    for (uint32_t i = 0; i < t->slot_count; i++) {
        if (!delta_counts(t, i))
            continue;
        const struct kv_own_delta *d = &t->deltas[t->slots[i].delta];
        put_bytes(out, t->slots[i].key);
        put_zigzag(out, kv__live_children(t, i, kv__slot_row(t, i)));
        put_zigzag(out, d->mtime);
        put_zigzag(out, d->ctime);
    }
}

void kv_txn_encode(const struct kv_txn *t, struct obuf *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->slot_count; i++) {
        const struct kv_slot *s = &t->slots[i];
        count += s->write != KV_TXN_NONE && !leaves_nothing(s, &t->writes[s->write]);
    }
    put_varint(out, count);
    for (uint32_t i = 0; i < t->slot_count; i++) {
        const struct kv_slot *s = &t->slots[i];
        if (s->write != KV_TXN_NONE && !leaves_nothing(s, &t->writes[s->write]))
            encode_write(s, &t->writes[s->write], out);
    }
    encode_deltas(t, out);
    put_varint(out, t->require_count);
    for (uint32_t i = 0; i < t->require_count; i++) {
        put_u8(out, t->requires[i].empty);
        put_bytes(out, t->requires[i].attr_key);
        put_zigzag(out, t->requires[i].own_children);
    }
    put_varint(out, t->item_count);
    for (uint32_t i = 0; i < t->item_count; i++)
        put_bytes(out, t->items[i]);
}

/* -- and back ---------------------------------------------------------------------------------- */

/* Keys of a write set: well-formed, of a table that write sets touch. */
static status check_key(struct kv_txn *t, bytes key, struct kv_row *columns)
{
    uint32_t ns;
    if (key.size < KV_KEY_HEADER || key.size > KV_KEY_MAX)
        return ST_CORRUPT;
    if (kv_key_table(key) == KV_LOCK)
        return ST_OK;
    const struct kv_table_def *def = kv_table_def(kv_key_table(key));
    if (def == NULL)
        return ST_CORRUPT;
    return kv_key_decode(t->a, key, &ns, columns);
}

static status decode_put(struct kv_txn *t, unsigned flags, bytes key, struct kv_row *columns,
                         bytes row)
{
    struct kv_write *w;
    if (kv_key_table(key) == KV_LOCK)
        return flags & FLAG_DIR ? ST_CORRUPT : kv_txn_put(t, key, row);
    ST_TRY(kv_row_decode(columns->table, row, columns));
    if ((flags & FLAG_DIR) == 0)
        return kv_txn_put(t, key, row);
    if (!kv_key_is_attr(key))
        return ST_CORRUPT;
    struct kv_dir_write *d = ARENA_NEW(t->a, struct kv_dir_write);
    kv_row_copy(t->a, columns, &d->row);
    d->born = (flags & FLAG_BORN) != 0;
    d->set.mtime = (flags & FLAG_MTIME_SET) != 0;
    d->set.ctime = (flags & FLAG_CTIME_SET) != 0;
    ST_TRY(kv__write_add(t, key, KV_WRITE_PUT, &w));
    w->dir = d;
    return ST_OK;
}

static status decode_writes(struct kv_txn *t, struct reader *in)
{
    uint64_t count = get_varint(in);
    for (uint64_t i = 0; i < count && !in->bad; i++) {
        struct kv_row columns = {0};
        unsigned flags = get_u8(in);
        bytes key = get_bytes(in);
        if (in->bad || (flags & ~(unsigned)FLAG_ALL) != 0 || kv__slot_find(t, key) != KV_TXN_NONE)
            return ST_CORRUPT;
        ST_TRY(check_key(t, key, &columns));
        switch ((enum kv_write_kind)(flags & FLAG_KIND)) {
        case KV_WRITE_PUT: {
            bytes row = get_bytes(in);
            if (in->bad)
                return ST_CORRUPT;
            ST_TRY(decode_put(t, flags, key, &columns, row));
            break;
        }
        case KV_WRITE_DELETE: ST_TRY(kv_txn_delete(t, key)); break;
        case KV_WRITE_LOCK: ST_TRY(kv_txn_lock(t, key)); break;
        default: return ST_CORRUPT;
        }
        t->slots[t->slot_count - 1].fresh = (flags & FLAG_FRESH) != 0;
    }
    return in->bad ? ST_CORRUPT : ST_OK;
}

static status decode_deltas(struct kv_txn *t, struct reader *in)
{
    uint64_t count = get_varint(in);
    for (uint64_t i = 0; i < count && !in->bad; i++) {
        bytes key = get_bytes(in);
        int64_t children = get_zigzag(in), mtime = get_zigzag(in), ctime = get_zigzag(in);
        if (in->bad || key.size > KV_KEY_MAX || key.size < KV_KEY_HEADER || !kv_key_is_attr(key))
            return ST_CORRUPT;
        kv_txn_delta(t, key, children, mtime, ctime);
    }
    return in->bad ? ST_CORRUPT : ST_OK;
}

static status decode_requires(struct kv_txn *t, struct reader *in)
{
    uint64_t count = get_varint(in);
    for (uint64_t i = 0; i < count && !in->bad; i++) {
        struct kv_require q = {.empty = get_u8(in) != 0};
        q.attr_key = get_bytes(in);
        q.own_children = get_zigzag(in);
        if (in->bad || q.attr_key.size < KV_KEY_HEADER || !kv_key_is_attr(q.attr_key))
            return ST_CORRUPT;
        KV_TXN_GROW(t, t->requires, t->require_count, t->require_capacity);
        t->requires[t->require_count++] = q;
    }
    return in->bad ? ST_CORRUPT : ST_OK;
}

static status decode_items(struct kv_txn *t, struct reader *in)
{
    uint64_t count = get_varint(in);
    for (uint64_t i = 0; i < count && !in->bad; i++) {
        bytes item = get_bytes(in);
        struct reader one = reader_make(item);
        struct kv_item ignored;
        if (in->bad)
            return ST_CORRUPT;
        ST_TRY(kv_item_decode(&one, &ignored));
        ST_TRY(codec_finish(&one));
        kv_txn_item(t, item);
    }
    return in->bad ? ST_CORRUPT : ST_OK;
}

/* -- validation -------------------------------------------------------------------------------- */

static status conflict(struct err *err, const char *why)
{
    err_set(err, ST_CONFLICT, "could not serialize access due to concurrent update");
    err_detail(err, "%s", why);
    return ST_CONFLICT;
}

/* First committer wins: nobody wrote or locked what this one did. */
static status validate_write(struct kv_txn *t, uint32_t slot, hlc_ts snapshot, struct err *err)
{
    struct kv_state *state = t->view.state;
    bytes key = t->slots[slot].key;
    bool deleted;
    struct kv_write *w = &t->writes[t->slots[slot].write];
    bool is_lock_key = kv_key_table(key) == KV_LOCK;
    if (kv_state_newer(state, key, snapshot, &deleted) != 0) {
        MARK("txn.row_changed");
        return conflict(err, "Another transaction changed a row that this one writes.");
    }
    if (!is_lock_key && kv_state_newer(state, kv__key_lock(t->a, key), snapshot, &deleted) != 0) {
        MARK("txn.row_locked");
        return conflict(err, "Another transaction locked a row that this one writes.");
    }
    if (w->dir == NULL)
        return ST_OK;
    status st = kv__refresh_base(t, key, w->dir);
    return st == ST_NOT_FOUND ? conflict(err, "A directory was removed.") : st;
}

/* The directory is there, is one, and was not detached. */
static status validate_dir(struct kv_txn *t, bytes attr_key, hlc_ts snapshot, struct err *err)
{
    bool deleted = false;
    struct kv_row row;
    if (kv_state_newer(t->view.state, attr_key, snapshot, &deleted) == 0)
        return ST_OK;
    if (deleted)
        return conflict(err, "A directory was removed.");
    struct kv_cell cell;
    status st = kv_state_get(&t->view, attr_key, &cell);
    if (st == ST_COLD)
        kv__txn_note_cold(t, attr_key);
    ST_TRY(st);
    ST_TRY(kv__cell_row(t->a, attr_key, &cell, &row));
    bool taken = row.col[META_TYPE].i == KV_TYPE_DIR &&
                 (row.col[META_PARENT].null || row.col[META_PARENT].i != KV_TRASH_ID);
    return taken ? ST_OK : conflict(err, "A directory was removed.");
}

static status validate_empty(struct kv_txn *t, const struct kv_require *q, struct err *err)
{
    struct kv_cell cell;
    status st = kv_state_get(&t->view, q->attr_key, &cell);
    if (st == ST_COLD)
        kv__txn_note_cold(t, q->attr_key);
    if (st == ST_NOT_FOUND)
        return conflict(err, "A directory was removed.");
    ST_TRY(st);
    if (!cell.aggregated || cell.num_children + q->own_children != 0)
        return conflict(err, "A directory that this transaction removes got an entry.");
    return ST_OK;
}

status kv_txn_validate(struct kv_txn *t, bytes encoded, hlc_ts snapshot, struct err *err)
{
    struct reader in = reader_make(encoded);
    ASSERT(kv__txn_at_apply(t) && t->slot_count == 0);
    ST_TRY(decode_writes(t, &in));
    ST_TRY(decode_deltas(t, &in));
    ST_TRY(decode_requires(t, &in));
    ST_TRY(decode_items(t, &in));
    ST_TRY(codec_finish(&in));
    for (uint32_t i = 0; i < t->slot_count; i++)
        if (t->slots[i].write != KV_TXN_NONE)
            ST_TRY(validate_write(t, i, snapshot, err));
    for (uint32_t i = 0; i < t->require_count; i++) {
        const struct kv_require *q = &t->requires[i];
        ST_TRY(q->empty ? validate_empty(t, q, err) : validate_dir(t, q->attr_key, snapshot, err));
    }
    return ST_OK;
}
