/*
 * kv/read_tree.c — reads that know directories: a path, a listing with attributes, usage.
 *
 * Outside a snapshot the parts of an answer may be of different moments: an entry seen may have
 * lost its attributes when they are looked up. Then it was removed meanwhile and counts as absent.
 *
 * Paths: empty components and "." stay, ".." goes up over `parent` and stays at the root; anything
 * but a directory in the middle gives no row. A path that ends at a directory by itself ("/",
 * "a/..", "a/.") gives the directory's own row.
 *
 * Usage walks the tree below: a page examines a bounded number of entries; directories still to
 * visit are a stack of ids. A file with several names counts once for each.
 */
#include "base/assert.h"
#include "kv/read_internal.h"

#define USAGE_ENTRIES_MAX 4096u /* of one page */
#define LIST_ENTRIES_MAX 4096u
#define USAGE_STACK_MAX (1u << 20) /* directories found but not yet visited */

/* Adds the attributes of ENTRY if they are in another row. ST_NOT_FOUND: removed meanwhile. */
static status with_attributes(struct kv_page *p, const struct kv_row *entry, struct kv_row *out)
{
    struct kv_entry e = {.row = *entry, .split = true};
    *out = *entry;
    if (!kv__row_is_split(entry) || bytes_eq(entry->col[META_NAME].b, KV_ATTR_NAME))
        return ST_OK;
    bytes key = kv_key_attr(p->scratch, p->r->ns, entry->col[META_ID].i);
    ST_TRY(kv__get_row(p->view, p->scratch, key, &e.attr));
    kv__entry_merge(&e, out);
    return ST_OK;
}

/* -- paths ------------------------------------------------------------------------------------- */

struct path_pos {
    int64_t dir; /* where the walk stands */
    size_t at;   /* the next byte of the path */
    unsigned depth;
};

static size_t skip_slashes(bytes path, size_t at)
{
    while (at < path.size && path.data[at] == '/')
        at++;
    return at;
}

static status go_up(struct kv_page *p, int64_t *dir)
{
    struct kv_row attr;
    ST_TRY(kv__get_row(p->view, p->scratch, kv_key_attr(p->scratch, p->r->ns, *dir), &attr));
    const struct kv_datum *parent = &attr.col[META_PARENT];
    if (!parent->null && parent->i == KV_TRASH_ID)
        return ST_NOT_FOUND;
    if (!parent->null)
        *dir = parent->i;
    return ST_OK;
}

static status check_path(struct kv_page *p, const struct path_pos *at)
{
    if (p->r->path.size > LIMIT_PATH_BYTES)
        return err_set_state(p->err, ST_INVALID, "22001", "path is longer than %u bytes",
                             LIMIT_PATH_BYTES);
    if (at->depth > LIMIT_PATH_DEPTH)
        return err_set(p->err, ST_TOO_COMPLEX, "path has more than %u components",
                       LIMIT_PATH_DEPTH);
    return ST_OK;
}

/* One component. ST_END with the entry in ROW when it was the last, ST_OK to go on. */
static status step(struct kv_page *p, struct path_pos *at, bytes name, size_t next,
                   struct kv_row *row)
{
    bool last = next == p->r->path.size;
    if (bytes_eq(name, BYTES_LIT("..")))
        return go_up(p, &at->dir);
    if (bytes_eq(name, BYTES_LIT(".")))
        return ST_OK;
    if (bytes_eq(name, KV_ATTR_NAME) || name.size > LIMIT_NAME_BYTES)
        return ST_NOT_FOUND;
    ST_TRY(kv__get_row(p->view, p->scratch, kv_key_meta(p->scratch, p->r->ns, at->dir, name), row));
    if (last)
        return ST_END;
    if (row->col[META_TYPE].i != KV_TYPE_DIR)
        return ST_NOT_FOUND;
    at->dir = row->col[META_ID].i;
    return ST_OK;
}

/* Walks r->path from AT: the entry, or the own row of the directory where the path ends. */
static status walk_path(struct kv_page *p, struct path_pos *at, struct kv_row *row)
{
    bytes path = p->r->path;
    for (;;) {
        ST_TRY(check_path(p, at));
        size_t from = skip_slashes(path, at->at), to = from;
        while (to < path.size && path.data[to] != '/')
            to++;
        if (from == to)
            return kv__get_row(p->view, p->scratch, kv_key_attr(p->scratch, p->r->ns, at->dir),
                               row);
        size_t next = skip_slashes(path, to);
        status st = step(p, at, bytes_make(path.data + from, to - from), next, row);
        if (st == ST_END)
            return ST_OK;
        ST_TRY(st);
        at->at = next;
        at->depth++;
    }
}

static struct path_pos *path_pos_new(struct kv_page *p)
{
    struct path_pos *at = ARENA_NEW(p->a, struct path_pos);
    at->dir = p->r->pid;
    return at;
}

status kv__read_resolve(struct kv_page *p)
{
    struct kv_row entry, row;
    if (p->pos->inner == NULL)
        p->pos->inner = path_pos_new(p);
    status st = walk_path(p, p->pos->inner, &entry);
    if (st == ST_OK)
        st = with_attributes(p, &entry, &row);
    if (st == ST_NOT_FOUND)
        return kv__page_end(p);
    ST_TRY(st);
    if (kv__filters_match(KV_META, p->r->filters, p->r->filter_count, &row))
        (void)kv__page_row(p, &row, 0);
    return kv__page_end(p);
}

/* -- a directory's entries --------------------------------------------------------------------- */

static bytes prefix_of(struct kv_page *p, int64_t dir)
{
    struct kv_datum pid = kv_int(dir);
    return kv_key_prefix(p->scratch, p->r->ns, KV_META, &pid, 1);
}

static status list_entries(struct kv_page *p, struct kv_txn_scan *scan)
{
    struct kv_cell cell;
    struct kv_row entry, row;
    bytes key;
    bool room = true;
    for (unsigned examined = 0; room && examined < LIST_ENTRIES_MAX; examined++) {
        if (p->r->limit >= 0 && p->pos->delivered >= p->r->limit)
            return kv__page_end(p);
        status st = kv_txn_scan_next(scan, &key, &cell);
        if (st == ST_END)
            return kv__page_end(p);
        ST_TRY(st);
        if (!kv_key_is_attr(key)) {
            ST_TRY(kv__cell_row(p->scratch, key, &cell, &entry));
            st = with_attributes(p, &entry, &row);
            if (st != ST_OK && st != ST_NOT_FOUND)
                return st;
            if (st == ST_OK && kv__filters_match(KV_META, p->r->filters, p->r->filter_count, &row))
                room = kv__page_row(p, &row, key.size + cell.row.size);
        }
        kv__page_remember(p, key);
    }
    return ST_OK;
}

status kv__read_list_attr(struct kv_page *p)
{
    bytes lower = prefix_of(p, p->r->pid), upper = kv_key_after_prefix(p->scratch, lower);
    if (p->r->after.size > 0)
        lower =
            kv_key_successor(p->scratch, kv_key_meta(p->scratch, p->r->ns, p->r->pid, p->r->after));
    struct kv_txn_scan *scan = kv__page_scan(p, lower, upper);
    status st = list_entries(p, scan);
    p->pos->skipped += kv_txn_scan_skipped(scan);
    kv_txn_scan_close(scan);
    return st;
}

/* -- usage ------------------------------------------------------------------------------------- */

struct usage_pos {
    struct path_pos *path; /* NULL once the top is known */
    int64_t files, dirs, size;
    int64_t *stack;
    unsigned count, capacity;
    bool in_dir; /* `dir` is being listed, up to the read's last key */
    int64_t dir;
    void *last_key; /* the read's inner while a directory is listed */
};

static status push_dir(struct kv_page *p, struct usage_pos *u, int64_t id)
{
    if (u->count == USAGE_STACK_MAX)
        return err_set(p->err, ST_LIMIT, "too many directories below the path");
    if (u->count == u->capacity)
        u->stack = arena_grow(p->a, u->stack, sizeof *u->stack, &u->capacity, 64);
    u->stack[u->count++] = id;
    return ST_OK;
}

static status count_entry(struct kv_page *p, struct usage_pos *u, const struct kv_row *entry)
{
    struct kv_row row;
    if (entry->col[META_TYPE].i == KV_TYPE_DIR) {
        ST_TRY(push_dir(p, u, entry->col[META_ID].i));
        u->dirs++;
        return ST_OK;
    }
    status st = with_attributes(p, entry, &row);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    u->files++;
    u->size += row.col[META_SIZE].null ? 0 : row.col[META_SIZE].i;
    return ST_OK;
}

/* ST_END: the directory is counted; ST_OK: BUDGET is used up. */
static status count_directory(struct kv_page *p, struct usage_pos *u, struct kv_txn_scan *scan,
                              unsigned *budget)
{
    struct kv_cell cell;
    struct kv_row entry;
    bytes key;
    for (; *budget > 0; (*budget)--) {
        ST_TRY(kv_txn_scan_next(scan, &key, &cell));
        if (!kv_key_is_attr(key)) {
            ST_TRY(kv__cell_row(p->scratch, key, &cell, &entry));
            ST_TRY(count_entry(p, u, &entry));
        }
        p->pos->inner = u->last_key;
        kv__page_remember(p, key);
        u->last_key = p->pos->inner;
        p->pos->inner = u;
    }
    return ST_OK;
}

static status usage_walk(struct kv_page *p, struct usage_pos *u)
{
    unsigned budget = USAGE_ENTRIES_MAX;
    while (budget > 0) {
        if (!u->in_dir) {
            if (u->count == 0)
                return ST_END;
            u->dir = u->stack[--u->count];
            u->in_dir = true;
            p->pos->last = BYTES_EMPTY;
            budget--;
        }
        bytes lower = prefix_of(p, u->dir);
        struct kv_txn_scan *scan = kv__page_scan(p, lower, kv_key_after_prefix(p->scratch, lower));
        status st = count_directory(p, u, scan, &budget);
        kv_txn_scan_close(scan);
        if (st == ST_END)
            u->in_dir = false;
        else
            ST_TRY(st);
    }
    return ST_OK;
}

static status usage_start(struct kv_page *p, struct usage_pos *u)
{
    struct kv_row top;
    if (u->path == NULL)
        return ST_OK;
    ST_TRY(walk_path(p, u->path, &top));
    if (top.col[META_TYPE].i != KV_TYPE_DIR)
        return ST_NOT_FOUND;
    ST_TRY(push_dir(p, u, top.col[META_ID].i));
    u->path = NULL;
    return ST_OK;
}

status kv__read_usage(struct kv_page *p)
{
    if (p->pos->inner == NULL) {
        struct usage_pos *u = ARENA_NEW(p->a, struct usage_pos);
        u->path = path_pos_new(p);
        p->pos->inner = u;
    }
    struct usage_pos *u = p->pos->inner;
    status st = usage_start(p, u);
    if (st == ST_NOT_FOUND)
        return kv__page_end(p);
    ST_TRY(st);
    st = usage_walk(p, u);
    if (st != ST_END)
        return st;
    struct kv_row row = {.table = p->r->table};
    row.col[0] = kv_int(u->files);
    row.col[1] = kv_int(u->dirs);
    row.col[2] = kv_int(u->size);
    row.col[3] = kv_int(p->r->now);
    (void)kv__page_row(p, &row, 0);
    return kv__page_end(p);
}
