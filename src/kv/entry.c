/*
 * kv/entry.c — entries, inodes and directories of meta over a write set.
 *
 * An inode's attributes are in its entry (*inline*), or, for a directory and for a file that ever
 * had two links, in the row (id, _attr_) (*split*). A split entry holds id and type alone, so a
 * mode that is NULL tells.
 *
 * Invariants
 * E1  A directory's entry and its row (id, _attr_) are made and removed together; `parent` of the
 *     latter is the pid of the former.
 * E2  num_children of (pid, _attr_) is the number of other rows with that pid: whoever adds or
 *     removes an entry counts it with kv__touch_parent.
 * E3  nlink of a split file is the number of its entries.
 * E4  For each inode there is one unit of #FILE or #DIR and its size in #SIZE, under its uid.
 * E5  For each entry of a file with a fid there is one row of secondary_index.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "kv/handler.h"
#include <inttypes.h>

/* Ids of directories drawn by the server; clients may give smaller ones. */
#define DIR_ID_MIN (INT64_C(1) << 32)
#define DIR_ID_MAX (INT64_C(1) << 62)
#define DRAW_TRIES 64u
/* Ids of files: bit 62, then the shard's counter; inside a transaction bit 61 and random bits. */
#define FILE_ID_BIT (INT64_C(1) << 62)
#define FILE_ID_RANDOM_BIT (INT64_C(1) << 61)

/* -- hidden keys ------------------------------------------------------------------------------- */

bytes kv__key_hidden(struct arena *a, enum kv_table t, uint32_t ns, bytes rest)
{
    uint8_t *key = arena_alloc(a, KV_KEY_HEADER + rest.size);
    key[0] = (uint8_t)t;
    store_be32(key + 1, ns);
    if (rest.size > 0)
        memcpy(key + KV_KEY_HEADER, rest.data, rest.size);
    return bytes_make(key, KV_KEY_HEADER + rest.size);
}

bytes kv__key_rename_lock(struct arena *a, uint32_t ns)
{
    return kv__key_hidden(a, KV_LOCK, ns, BYTES_LIT("rename"));
}

bytes kv__key_trash(struct arena *a, uint32_t ns, int64_t id)
{
    uint8_t rest[5 + 8] = "trash";
    store_be64(rest + 5, (uint64_t)id);
    return kv__key_hidden(a, KV_LOCK, ns, bytes_make(rest, sizeof rest));
}

bytes kv__key_mark(struct arena *a, uint64_t source, unsigned table_bit)
{
    uint8_t rest[9];
    store_be64(rest, source);
    rest[8] = (uint8_t)table_bit;
    return kv__key_hidden(a, KV_MARK, 0, bytes_make(rest, sizeof rest));
}

bytes kv__key_lock(struct arena *a, bytes key)
{
    if (kv_key_table(key) == KV_LOCK)
        return key;
    uint8_t *rest = arena_alloc(a, key.size + 4);
    memcpy(rest, "row", 3);
    rest[3] = key.data[0];
    memcpy(rest + 4, key.data + KV_KEY_HEADER, key.size - KV_KEY_HEADER);
    return kv__key_hidden(a, KV_LOCK, load_be32(key.data + 1),
                          bytes_make(rest, key.size - KV_KEY_HEADER + 4));
}

/* -- rows -------------------------------------------------------------------------------------- */

/* A row that has its columns, WANTED among them, becomes as a reader sees it. */
static status cell_row_finish(struct arena *a, bytes key, const struct kv_cell *cell,
                              struct kv_row *out)
{
    if (out->table == KV_META && cell->aggregated && out->col[META_TYPE].i != KV_TYPE_DIR) {
        struct kv_cell plain = *cell; /* a file's attributes have no aggregates */
        plain.aggregated = false;
        ST_TRY(kv_cell_row(a, key, &plain, out));
    }
    const struct kv_table_def *def = kv_table_def(out->table);
    if (def != NULL && def->seq_column >= 0 && cell->ts == 0)
        out->col[def->seq_column] = KV_NULL;
    return ST_OK;
}

status kv__cell_row(struct arena *a, bytes key, const struct kv_cell *cell, struct kv_row *out)
{
    ST_TRY(kv_cell_row(a, key, cell, out));
    return cell_row_finish(a, key, cell, out);
}

status kv__cell_row_some(struct arena *a, bytes key, const struct kv_cell *cell,
                         kv_column_set wanted, struct kv_row *out)
{
    if (cell->aggregated)
        wanted |= kv_column_bit(META_TYPE);
    ST_TRY(kv_cell_row_some(a, key, cell, wanted, out));
    return cell_row_finish(a, key, cell, out);
}

status kv__cell_row_read(const struct kv_row_reader *reader, struct arena *a, bytes key,
                         const struct kv_cell *cell, struct kv_row *out)
{
    uint32_t ns;
    if (UNLIKELY(cell->aggregated))
        return kv__cell_row_some(a, key, cell, reader->wanted, out);
    if (reader->table != KV_META)
        ST_TRY(kv_key_decode(a, key, &ns, out));
    else if (!kv_key_decode_meta(key, out))
        return ST_CORRUPT;
    int seq = kv_table_def(reader->table)->seq_column;
    if (seq >= 0)
        out->col[seq] = cell->ts != 0 ? kv_int((int64_t)cell->ts) : KV_NULL;
    return kv_row_read(reader, cell->row, out);
}

status kv__get_row(struct kv_txn *t, struct arena *a, bytes key, struct kv_row *out)
{
    struct kv_cell cell;
    ST_TRY(kv_txn_get(t, key, &cell));
    return kv__cell_row(a, key, &cell, out);
}

status kv__put_row(struct kv_run *r, bytes key, const struct kv_row *row)
{
    return kv__txn_put_row(r->t, key, row);
}

status kv__entry_find(struct kv_txn *t, struct arena *a, uint32_t ns, int64_t pid, bytes name,
                      struct kv_entry *out)
{
    *out = (struct kv_entry){.key = kv_key_meta(a, ns, pid, name)};
    ST_TRY(kv__get_row(t, a, out->key, &out->row));
    out->dir = out->row.col[META_TYPE].i == KV_TYPE_DIR;
    out->split = !kv_key_is_attr(out->key) && kv__row_is_split(&out->row);
    if (!out->split) {
        out->attr = out->row;
        return ST_OK;
    }
    out->attr_key = kv_key_attr(a, ns, out->row.col[META_ID].i);
    status st = kv__get_row(t, a, out->attr_key, &out->attr);
    return st == ST_NOT_FOUND ? ST_CORRUPT : st; /* E1, E3 */
}

void kv__entry_merge(const struct kv_entry *e, struct kv_row *out)
{
    const struct kv_datum *seq = &e->row.col[META_SEQ], *attr_seq = &e->attr.col[META_SEQ];
    *out = e->attr;
    if (!e->split)
        return;
    out->col[META_PID] = e->row.col[META_PID];
    out->col[META_NAME] = e->row.col[META_NAME];
    out->col[META_ID] = e->row.col[META_ID];
    if (seq->null || attr_seq->null)
        out->col[META_SEQ] = KV_NULL;
    else if (seq->i > attr_seq->i)
        out->col[META_SEQ] = *seq;
}

bool kv__entry_matches(const struct kv_run *r, const struct kv_entry *e)
{
    const struct kv_op *op = r->op;
    struct kv_row merged;
    if (kv__filters_match(KV_META, op->filters, op->filter_count, &e->row))
        return true;
    if (!e->split)
        return false;
    kv__entry_merge(e, &merged);
    return kv__filters_match(KV_META, op->filters, op->filter_count, &merged);
}

status kv__no_entry(struct kv_run *r, int64_t pid, bytes name)
{
    err_set_state(r->err, ST_NOT_FOUND, "P0002",
                  "entry \"%.*s\" of directory %" PRId64 " does not exist", (int)name.size,
                  (const char *)name.data, pid);
    err_where(r->err, "public", "meta", NULL, NULL);
    return ST_NOT_FOUND;
}

status kv__entry_named(struct kv_run *r, struct kv_entry *out)
{
    const struct kv_op *op = r->op;
    if (bytes_eq(op->name, KV_ATTR_NAME))
        return kv__check_name(r, op->name);
    return kv__entry_find(r->t, r->a, op->ns, op->pid, op->name, out);
}

status kv__entry_required(struct kv_run *r, struct kv_entry *out)
{
    status st = kv__entry_named(r, out);
    return st == ST_NOT_FOUND ? kv__no_entry(r, r->op->pid, r->op->name) : st;
}

status kv__target_exists(struct kv_run *r)
{
    struct kv_row key = {.table = KV_META};
    key.col[META_PID] = kv_int(r->op->new_pid);
    key.col[META_NAME] = kv_text(r->op->new_name);
    return kv__exists_error(r, &key);
}

/* -- names and parents ------------------------------------------------------------------------- */

static status name_error(struct kv_run *r, status st, const char *sqlstate, const char *message)
{
    err_set_state(r->err, st, sqlstate, "%s", message);
    err_where(r->err, "public", "meta", "name", NULL);
    return st;
}

status kv__check_name(struct kv_run *r, bytes name)
{
    if (bytes_eq(name, KV_ATTR_NAME))
        return name_error(r, ST_RESERVED, "42939", "name \"_attr_\" is reserved");
    if (name.size == 0)
        return name_error(r, ST_INVALID, "22023", "name is empty");
    if (memchr(name.data, '/', name.size) != NULL)
        return name_error(r, ST_INVALID, "22023", "name contains a slash");
    if (name.size > LIMIT_NAME_BYTES)
        return name_error(r, ST_INVALID, "22001", "name is longer than 255 bytes");
    if (memchr(name.data, 0, name.size) != NULL)
        return name_error(r, ST_INVALID, "22021", "name contains a zero byte");
    return ST_OK;
}

static status no_parent(struct kv_run *r, int64_t pid)
{
    err_set(r->err, ST_NO_PARENT,
            "insert or update on table \"meta\" violates foreign key constraint \"meta_pid_fkey\"");
    err_detail(r->err, "Key (pid)=(%" PRId64 ") is not present in table \"meta\".", pid);
    err_where(r->err, "public", "meta", NULL, "meta_pid_fkey");
    return ST_NO_PARENT;
}

status kv__parent_find(struct kv_run *r, int64_t pid, bytes *attr_key, struct kv_row *attr)
{
    *attr_key = kv_key_attr(r->a, r->op->ns, pid);
    struct kv_cell cell;
    status st = kv_txn_get(r->t, *attr_key, &cell);
    if (st == ST_NOT_FOUND)
        return no_parent(r, pid);
    ST_TRY(st);
    ST_TRY(kv__cell_row_some(r->a, *attr_key, &cell,
                             kv_column_bit(META_TYPE) | kv_column_bit(META_PARENT), attr));
    const struct kv_datum *up = &attr->col[META_PARENT];
    if (attr->col[META_TYPE].i != KV_TYPE_DIR || (!up->null && up->i == KV_TRASH_ID))
        return no_parent(r, pid);
    kv_txn_require_dir(r->t, *attr_key);
    return ST_OK;
}

void kv__touch_parent(struct kv_run *r, int64_t pid, int64_t children)
{
    kv_txn_delta(r->t, kv_key_attr(r->a, r->op->ns, pid), children, r->op->now, r->op->now);
}

/* -- ids --------------------------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The seed is mixed first: seeds that differ by a multiple of the step must not give one sequence,
 * shifted. */
uint64_t kv__random(uint64_t seed, uint64_t n)
{
    return mix(mix(seed) + (n + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

static status id_in_use(struct kv_run *r, int64_t id)
{
    struct kv_cell cell;
    return kv_txn_get(r->t, kv_key_attr(r->a, r->op->ns, id), &cell);
}

status kv__check_id_free(struct kv_run *r, int64_t id)
{
    status st = id_in_use(r, id);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    err_set(r->err, ST_EXISTS, "duplicate key value violates unique constraint \"meta_id_key\"");
    err_detail(r->err, "Key (id)=(%" PRId64 ") already exists.", id);
    err_where(r->err, "public", "meta", NULL, "meta_id_key");
    return ST_EXISTS;
}

status kv__draw_dir_id(struct kv_run *r, int64_t *out)
{
    for (unsigned i = 0; i < DRAW_TRIES; i++) {
        uint64_t bits = kv__random(r->op->seed, r->drawn++);
        *out = DIR_ID_MIN + (int64_t)(bits % (uint64_t)(DIR_ID_MAX - DIR_ID_MIN));
        status st = id_in_use(r, *out);
        if (st == ST_NOT_FOUND)
            return ST_OK;
        ST_TRY(st);
    }
    return err_set(r->err, ST_LIMIT, "no free directory id was found");
}

int64_t kv__draw_file_id(struct kv_run *r)
{
    if (kv__txn_at_apply(r->t))
        return FILE_ID_BIT |
               (int64_t)(kv__txn_take_file_id(r->t) & (uint64_t)(FILE_ID_RANDOM_BIT - 1));
    uint64_t bits = kv__random(r->op->seed, r->drawn++);
    return FILE_ID_BIT | FILE_ID_RANDOM_BIT | (int64_t)(bits & (uint64_t)(FILE_ID_RANDOM_BIT - 1));
}

/* -- items ------------------------------------------------------------------------------------- */

static void push_item(struct kv_run *r, const struct kv_item *item)
{
    struct obuf out = {.capacity = KV_ITEM_BYTES + item->name.size};
    uint8_t *data = arena_alloc(r->a, out.capacity);
    out.data = data;
    kv_item_encode(item, &out);
    ASSERT(out.data == data); /* it had room */
    kv_txn_item(r->t, bytes_make(data, out.size));
}

void kv__quota_item(struct kv_run *r, int64_t uid, int64_t files, int64_t dirs, int64_t size)
{
    if (files == 0 && dirs == 0 && size == 0)
        return;
    push_item(r, &(struct kv_item){.kind = KV_ITEM_QUOTA,
                                   .ns = r->op->ns,
                                   .uid = uid,
                                   .files = files,
                                   .dirs = dirs,
                                   .size = size});
}

void kv__index_item(struct kv_run *r, enum kv_item_kind kind, const struct kv_row *entry,
                    const struct kv_row *attr)
{
    if (attr->col[META_FID].null || attr->col[META_TYPE].i == KV_TYPE_DIR)
        return;
    push_item(r, &(struct kv_item){.kind = kind,
                                   .ns = r->op->ns,
                                   .fid = attr->col[META_FID].i,
                                   .pid = entry->col[META_PID].i,
                                   .name = entry->col[META_NAME].b,
                                   .id = entry->col[META_ID].i});
}

static int64_t datum_or_zero(struct kv_datum d)
{
    return d.null ? 0 : d.i;
}

/* +1 or -1 inode with the attributes ATTR. */
static void count_inode(struct kv_run *r, const struct kv_row *attr, int sign)
{
    bool dir = attr->col[META_TYPE].i == KV_TYPE_DIR;
    kv__quota_item(r, datum_or_zero(attr->col[META_UID]), dir ? 0 : sign, dir ? sign : 0,
                   sign * datum_or_zero(attr->col[META_SIZE]));
}

void kv__inode_born(struct kv_run *r, const struct kv_row *attr)
{
    count_inode(r, attr, 1);
}

void kv__inode_died(struct kv_run *r, const struct kv_row *attr)
{
    count_inode(r, attr, -1);
}

/* -- making and taking away -------------------------------------------------------------------- */

void kv__split_entry(const struct kv_row *row, struct kv_row *entry)
{
    *entry = (struct kv_row){.table = KV_META};
    for (unsigned c = 0; c < META_COLUMNS; c++)
        entry->col[c] = KV_NULL;
    entry->col[META_PID] = row->col[META_PID];
    entry->col[META_NAME] = row->col[META_NAME];
    entry->col[META_ID] = row->col[META_ID];
    entry->col[META_TYPE] = row->col[META_TYPE];
}

status kv__make_dir(struct kv_run *r, bytes key, const struct kv_row *row, struct kv_row *entry)
{
    int64_t pid = row->col[META_PID].i, id = row->col[META_ID].i;
    struct kv_row attr = *row;
    kv__split_entry(row, entry);
    attr.col[META_PID] = kv_int(id);
    attr.col[META_NAME] = kv_text(KV_ATTR_NAME);
    attr.col[META_PARENT] = kv_int(pid);
    attr.col[META_NUM_CHILDREN] = kv_int(0);
    attr.col[META_SEQ] = KV_NULL;
    ST_TRY(kv__put_row(r, key, entry));
    ST_TRY(kv_txn_put_dir(r->t, kv_key_attr(r->a, r->op->ns, id), &attr, (struct kv_times_set){0}));
    kv__touch_parent(r, pid, 1);
    count_inode(r, &attr, 1);
    return ST_OK;
}

static status unlink_dir(struct kv_run *r, const struct kv_entry *e)
{
    const struct kv_datum *name = &e->row.col[META_NAME];
    int64_t children = datum_or_zero(e->attr.col[META_NUM_CHILDREN]);
    if (children != 0) {
        err_set(r->err, ST_NOT_EMPTY, "directory is not empty");
        err_detail(r->err, "Directory \"%.*s\" in directory %" PRId64 " has %" PRId64 " %s.",
                   (int)name->b.size, (const char *)name->b.data, e->row.col[META_PID].i, children,
                   children == 1 ? "entry" : "entries");
        err_where(r->err, "public", "meta", NULL, NULL);
        return ST_NOT_EMPTY;
    }
    kv_txn_require_empty(r->t, e->attr_key);
    ST_TRY(kv_txn_delete(r->t, e->attr_key));
    count_inode(r, &e->attr, -1);
    return ST_OK;
}

/* One link less; with the last one the inode goes. */
static status unlink_split_file(struct kv_run *r, const struct kv_entry *e)
{
    struct kv_row attr = e->attr;
    if (datum_or_zero(attr.col[META_NLINK]) <= 1) {
        ST_TRY(kv_txn_delete(r->t, e->attr_key));
        count_inode(r, &e->attr, -1);
        return ST_OK;
    }
    attr.col[META_NLINK].i--;
    attr.col[META_CTIME] = kv_int(r->op->now);
    return kv__put_row(r, e->attr_key, &attr);
}

status kv__unlink(struct kv_run *r, const struct kv_entry *e)
{
    kv__index_item(r, KV_ITEM_INDEX_DELETE, &e->row, &e->attr);
    ST_TRY(kv_txn_delete(r->t, e->key));
    if (e->dir)
        return unlink_dir(r, e);
    if (e->split)
        return unlink_split_file(r, e);
    count_inode(r, &e->attr, -1);
    return ST_OK;
}
