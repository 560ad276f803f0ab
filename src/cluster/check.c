/*
 * cluster/check.c — the recount behind metadb.check().
 *
 * One walk over all of meta in key order. Entries of a directory are neighbours, so its children
 * are counted without a table of directories; quota needs a small table by user. Then quota is
 * compared row by row, and secondary_index in both directions: each entry with a fid has its row
 * (during the walk), each row has its entry (a walk over the index).
 *
 * What is counted (invariants E1 to E5 of kv/entry.c): a directory's row (id, _attr_) is one #DIR,
 * a file is one #FILE where its attributes are, in its entry or in (id, _attr_).
 *
 * Walks go page by page: a position is a key, and each page has an arena of its own.
 */
#include "cluster/check.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/hash.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE_ROWS 1024u

struct usage { /* of one user */
    uint8_t key[12];
    bool seen[3];
    int64_t value[3]; /* #DIR, #FILE, #SIZE */
};
static const char *const quota_names[3] = {"#DIR", "#FILE", "#SIZE"};

struct check {
    struct cl_node *node;
    const atomic_bool *cancel;
    struct arena *out; /* mismatches */
    struct cl_mismatch *first, **last;
    unsigned count;
    struct arena memory; /* usage records */
    struct hash users;
    /* the directory at hand */
    bool in_dir, has_attr, is_dir;
    uint32_t ns;
    int64_t pid, claimed, children;
};

static void mismatch(struct check *c, const char *what, uint32_t ns, const char *item,
                     int64_t expected, int64_t found)
{
    if (c->count++ >= CL_MISMATCHES_MAX)
        return;
    struct cl_mismatch *m = ARENA_NEW(c->out, struct cl_mismatch);
    *m = (struct cl_mismatch){
        .what = what, .ns = ns, .item = item, .expected = expected, .found = found};
    *c->last = m;
    c->last = &m->next;
}

/* -- walking ----------------------------------------------------------------------------------- */

static struct kv_view view_of(struct cl_node *n, enum cl_shard_position p, struct arena *a)
{
    return (struct kv_view){
        .state = n->shards[p]->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .pool = true, .arena = a};
}

struct walk {
    struct check *check;
    enum cl_shard_position shard;
    status (*row)(struct check *c, struct arena *a, bytes key, const struct kv_cell *cell);
};

/* Up to a page from *FROM on; moves *FROM (in KEEP) behind it. ST_END after the last. */
static status walk_page(const struct walk *w, struct arena *a, struct arena *keep, bytes *from,
                        bytes upper)
{
    struct kv_view view = view_of(w->check->node, w->shard, a);
    struct kv_scan *scan = kv_scan_open(&view, *from, upper, false);
    struct kv_cell cell;
    bytes key;
    status st = ST_OK;
    for (unsigned i = 0; i < PAGE_ROWS; i++) {
        ST_GOTO(out, kv_scan_next(scan, &key, &cell));
        ST_GOTO(out, w->row(w->check, a, key, &cell));
        bytes next = kv_key_successor(a, key);
        if (i + 1 == PAGE_ROWS) {
            arena_reset(keep);
            *from = arena_copy(keep, next);
        }
    }
out:
    kv_scan_close(scan);
    return st;
}

static status walk_on(const struct walk *w, struct arena *a, struct arena *keep, bytes *from,
                      bytes upper)
{
    if (atomic_load_explicit(w->check->cancel, memory_order_relaxed))
        return ST_CANCELLED;
    return fault_point("check.stays") ? ST_OK : walk_page(w, a, keep, from, upper);
}

static status walk_table(const struct walk *w, enum kv_table table)
{
    uint8_t lower[1] = {(uint8_t)table}, upper[1] = {(uint8_t)(table + 1)};
    bytes from = bytes_make(lower, 1);
    struct arena a, keep;
    status st;
    arena_init(&a, 64 * 1024);
    arena_init(&keep, 1024);
    do {
        arena_reset(&a);
        st = walk_on(w, &a, &keep, &from, bytes_make(upper, 1));
    } while (st == ST_OK);
    arena_fini(&keep);
    arena_fini(&a);
    return st == ST_END ? ST_OK : st;
}

/* -- meta -------------------------------------------------------------------------------------- */

static struct usage *usage_of(struct check *c, uint32_t ns, int64_t uid)
{
    uint8_t key[12];
    memcpy(key, &ns, 4);
    memcpy(key + 4, &uid, 8);
    struct usage *u = hash_get(&c->users, bytes_make(key, sizeof key));
    if (u != NULL)
        return u;
    u = ARENA_NEW(&c->memory, struct usage);
    memcpy(u->key, key, sizeof key);
    hash_put(&c->users, bytes_make(u->key, sizeof u->key), u);
    return u;
}

static int64_t value_of(const struct kv_row *row, unsigned column)
{
    return row->col[column].null ? 0 : row->col[column].i;
}

static void count_inode(struct check *c, uint32_t ns, const struct kv_row *attr)
{
    struct usage *u = usage_of(c, ns, value_of(attr, META_UID));
    u->value[attr->col[META_TYPE].i == KV_TYPE_DIR ? 0 : 1]++;
    /* Modulo 2^64, as the quota row itself. */
    u->value[2] = (int64_t)((uint64_t)u->value[2] + (uint64_t)value_of(attr, META_SIZE));
}

static void end_directory(struct check *c)
{
    bool orphans = c->in_dir && (!c->has_attr || !c->is_dir) && c->children > 0;
    bool wrong = c->in_dir && c->is_dir && c->claimed != c->children;
    if (!orphans && !wrong)
        return;
    char *item = arena_printf(c->out, "directory %" PRId64, c->pid);
    mismatch(c, orphans ? "orphans" : "num_children", c->ns, item, orphans ? 0 : c->children,
             orphans ? c->children : c->claimed);
}

static void begin_directory(struct check *c, uint32_t ns, int64_t pid)
{
    if (c->in_dir && c->ns == ns && c->pid == pid)
        return;
    end_directory(c);
    c->in_dir = true;
    c->has_attr = c->is_dir = false;
    c->ns = ns;
    c->pid = pid;
    c->claimed = c->children = 0;
}

/* The index has the row of ENTRY for FID. */
static status expect_index(struct check *c, struct arena *a, uint32_t ns,
                           const struct kv_row *entry, struct kv_datum fid)
{
    struct kv_view view = view_of(c->node, CL_INDEX, a);
    struct kv_datum cols[3] = {fid, entry->col[META_PID], entry->col[META_NAME]};
    struct kv_cell cell;
    struct kv_row row;
    bytes key = kv_key_prefix(a, ns, KV_INDEX, cols, 3);
    status st = kv_state_get(&view, key, &cell);
    bytes name = entry->col[META_NAME].b;
    bool there = st == ST_OK;
    if (st != ST_NOT_FOUND)
        ST_TRY(st);
    if (there)
        ST_TRY(kv_cell_row(a, key, &cell, &row));
    if (there && row.col[INDEX_ID].i == entry->col[META_ID].i)
        return ST_OK;
    char *item = arena_printf(c->out, "fid %" PRId64 ", entry %" PRId64 " \"%.*s\"", fid.i,
                              entry->col[META_PID].i, (int)name.size, (const char *)name.data);
    mismatch(c, "secondary_index", ns, item, entry->col[META_ID].i,
             there ? row.col[INDEX_ID].i : 0);
    return ST_OK;
}

/* Attributes of ENTRY: its own, or those of (id, _attr_). */
static status attributes(struct check *c, struct arena *a, uint32_t ns, const struct kv_row *entry,
                         struct kv_row *attr, bool *split)
{
    *split = entry->col[META_TYPE].i == KV_TYPE_DIR || entry->col[META_MODE].null;
    if (!*split) {
        *attr = *entry;
        return ST_OK;
    }
    struct kv_view view = view_of(c->node, CL_META, a);
    struct kv_cell cell;
    bytes key = kv_key_attr(a, ns, entry->col[META_ID].i);
    ST_TRY(kv_state_get(&view, key, &cell));
    return kv_cell_row(a, key, &cell, attr);
}

static status meta_row(struct check *c, struct arena *a, bytes key, const struct kv_cell *cell)
{
    struct kv_row row, attr;
    uint32_t ns;
    bool split;
    ST_TRY(kv_cell_row(a, key, cell, &row));
    ST_TRY(kv_key_decode(a, key, &ns, &attr));
    begin_directory(c, ns, row.col[META_PID].i);
    if (kv_key_is_attr(key)) {
        c->has_attr = true;
        c->is_dir = row.col[META_TYPE].i == KV_TYPE_DIR;
        c->claimed = value_of(&row, META_NUM_CHILDREN);
        if (row.col[META_PID].i != KV_ROOT_ID) /* the root belongs to nobody's quota */
            count_inode(c, ns, &row);
        return ST_OK;
    }
    c->children++;
    status st = attributes(c, a, ns, &row, &attr, &split);
    if (st == ST_NOT_FOUND) {
        char *item = arena_printf(c->out, "inode %" PRId64, row.col[META_ID].i);
        mismatch(c, "attributes", ns, item, 1, 0);
        return ST_OK;
    }
    ST_TRY(st);
    if (!split)
        count_inode(c, ns, &attr);
    if (attr.col[META_TYPE].i == KV_TYPE_DIR || attr.col[META_FID].null)
        return ST_OK;
    return expect_index(c, a, ns, &row, attr.col[META_FID]);
}

/* -- quota ------------------------------------------------------------------------------------- */

static status quota_row(struct check *c, struct arena *a, bytes key, const struct kv_cell *cell)
{
    struct kv_row row, key_columns;
    uint32_t ns;
    ST_TRY(kv_cell_row(a, key, cell, &row));
    ST_TRY(kv_key_decode(a, key, &ns, &key_columns));
    struct usage *u = usage_of(c, ns, row.col[QUOTA_UID].i);
    for (unsigned i = 0; i < 3; i++) {
        if (!bytes_eq(row.col[QUOTA_NAME].b, bytes_str(quota_names[i])))
            continue;
        u->seen[i] = true;
        int64_t found = value_of(&row, QUOTA_VALUE);
        if (found != u->value[i])
            mismatch(
                c, "quota", ns,
                arena_printf(c->out, "uid %" PRId64 " %s", row.col[QUOTA_UID].i, quota_names[i]),
                u->value[i], found);
    }
    return ST_OK;
}

static void missing_quota(struct check *c)
{
    size_t at = 0;
    struct usage *u;
    while ((u = hash_next(&c->users, &at)) != NULL) {
        uint32_t ns;
        int64_t uid;
        memcpy(&ns, u->key, 4);
        memcpy(&uid, u->key + 4, 8);
        for (unsigned i = 0; i < 3; i++) {
            if (!u->seen[i] && u->value[i] != 0)
                mismatch(c, "quota", ns,
                         arena_printf(c->out, "uid %" PRId64 " %s", uid, quota_names[i]),
                         u->value[i], 0);
        }
    }
}

/* -- index ------------------------------------------------------------------------------------- */

static status index_row(struct check *c, struct arena *a, bytes key, const struct kv_cell *cell)
{
    struct kv_view view = view_of(c->node, CL_META, a);
    struct kv_row row, entry, attr;
    struct kv_cell found;
    uint32_t ns;
    bool split, right = false;
    ST_TRY(kv_cell_row(a, key, cell, &row));
    ST_TRY(kv_key_decode(a, key, &ns, &entry));
    bytes at = kv_key_meta(a, ns, row.col[INDEX_PID].i, row.col[INDEX_NAME].b);
    status st = kv_state_get(&view, at, &found);
    if (st == ST_OK) {
        ST_TRY(kv_cell_row(a, at, &found, &entry));
        st = attributes(c, a, ns, &entry, &attr, &split);
        right =
            st == ST_OK && !attr.col[META_FID].null && attr.col[META_FID].i == row.col[INDEX_FID].i;
    }
    if (st != ST_OK && st != ST_NOT_FOUND)
        return st;
    if (!right)
        mismatch(c, "secondary_index", ns,
                 arena_printf(c->out, "fid %" PRId64 ", entry %" PRId64 " \"%.*s\"",
                              row.col[INDEX_FID].i, row.col[INDEX_PID].i,
                              (int)row.col[INDEX_NAME].b.size,
                              (const char *)row.col[INDEX_NAME].b.data),
                 0, 1);
    return ST_OK;
}

status cl_check_run(struct cl_node *n, const atomic_bool *cancel, struct arena *a,
                    struct cl_mismatch **out)
{
    struct check c = {.node = n, .cancel = cancel, .out = a};
    struct walk meta = {&c, CL_META, meta_row}, quota = {&c, CL_QUOTA, quota_row},
                index = {&c, CL_INDEX, index_row};
    status st;
    c.last = &c.first;
    arena_init(&c.memory, 4096);
    hash_init(&c.users);
    ST_GOTO(out, walk_table(&meta, KV_META));
    end_directory(&c);
    ST_GOTO(out, walk_table(&quota, KV_QUOTA));
    missing_quota(&c);
    ST_GOTO(out, walk_table(&index, KV_INDEX));
    *out = c.first;
out:
    hash_fini(&c.users);
    arena_fini(&c.memory);
    return st;
}
