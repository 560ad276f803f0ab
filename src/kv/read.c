/*
 * kv/read.c — point reads and ranges, a page at a time. Paths and trees: read_tree.c;
 * buckets with common prefixes: read_objects.c.
 *
 * A page opens its scan, gives out rows and closes it; what remains is the key delivered last. So
 * a cold block costs nothing but the way back to that key: the caller runs the same page on a pool
 * thread. A page's work is bounded by rows, bytes and by entries passed over, so that a filter that
 * keeps little, or a count, gives the loop back to others too.
 *
 * What a page reads is copied, where it must be, into an arena of the page.
 *
 * Threads: whoever owns the view.
 */
#include "base/assert.h"
#include "kv/read_internal.h"

#define PASSED_MAX 512u /* entries of one page that give no row */

bool kv__page_row(struct kv_page *p, const struct kv_row *row, size_t bytes_estimate)
{
    p->rows++;
    p->bytes += bytes_estimate + ROW_OVERHEAD;
    p->pos->delivered++;
    bool more = p->on_row(p->arg, row);
    return more && p->rows < p->max_rows && p->bytes < p->max_bytes;
}

status kv__page_end(struct kv_page *p)
{
    p->pos->done = true;
    return ST_END;
}

static bool limit_reached(const struct kv_page *p)
{
    return p->r->limit >= 0 && p->pos->delivered >= p->r->limit;
}

/* The one row of a count. */
static status end_with_count(struct kv_page *p)
{
    struct kv_row row = {.table = p->r->table};
    row.col[0] = kv_int(p->pos->counted);
    if (!limit_reached(p))
        (void)kv__page_row(p, &row, 0);
    return kv__page_end(p);
}

static bool row_is_wanted(const struct kv_page *p, const struct kv_row *row)
{
    const struct kv_read *r = p->r;
    if (r->filter_count == 0 && r->table == KV_META)
        return true;
    if (kv__page_expired(p, row))
        return false;
    return kv__filters_match(r->table, r->filters, r->filter_count, row);
}

/* What filters, expiry and ON_ROW look at. */
static kv_column_set columns_needed(const struct kv_read *r)
{
    kv_column_set needed = r->columns;
    if (needed == 0)
        return KV_ALL_COLUMNS;
    for (unsigned i = 0; i < r->filter_count; i++)
        needed |= kv_column_bit(r->filters[i].column);
    if (r->now != 0 && r->table == KV_KV)
        needed |= kv_column_bit(KVT_EXPIRES_AT);
    if (r->now != 0 && r->table == KV_OBJECT)
        needed |= kv_column_bit(OBJECT_EXPIRES_AT) | kv_column_bit(OBJECT_MTIME);
    return needed;
}

/* -- points ------------------------------------------------------------------------------------ */

static status read_points(struct kv_page *p)
{
    const struct kv_read *r = p->r;
    struct kv_read_pos *pos = p->pos;
    bool room = true;
    struct kv_row row;
    kv_row_clear(r->table, &row);
    while (pos->point < r->point_count && !(limit_reached(p) && !r->count)) {
        struct kv_cell cell;
        bytes key = r->points[pos->point];
        if (!room)
            return ST_OK;
        status st = kv_txn_get(p->view, key, &cell);
        if (st != ST_OK && st != ST_NOT_FOUND)
            return st;
        if (st == ST_OK) {
            ST_TRY(kv__cell_row_some(p->scratch, key, &cell, p->columns, &row));
            if (row_is_wanted(p, &row)) {
                if (r->count)
                    pos->counted++;
                else
                    room = kv__page_row(p, &row, key.size + cell.row.size);
            }
        }
        pos->point++;
    }
    return r->count ? end_with_count(p) : kv__page_end(p);
}

/* -- ranges ------------------------------------------------------------------------------------ */

/* Where the last entry's key is kept between pages. */
struct range_pos {
    uint8_t key[KV_KEY_MAX + 1];
};

void kv__page_remember(struct kv_page *p, bytes key)
{
    if (p->pos->inner == NULL)
        p->pos->inner = arena_alloc(p->a, sizeof(struct range_pos));
    struct range_pos *at = p->pos->inner;
    ASSERT(key.size <= KV_KEY_MAX);
    memcpy(at->key, key.data, key.size);
    at->key[key.size] = 0;
    p->pos->last = bytes_make(at->key, key.size);
}

struct kv_txn_scan *kv__page_scan(struct kv_page *p, bytes lower, bytes upper)
{
    bytes last = p->pos->last;
    if (last.size > 0 && p->r->backwards)
        upper = last;
    else if (last.size > 0)
        lower =
            bytes_make(last.data, last.size + 1); /* the successor: range_pos ends keys by zero */
    return kv_txn_scan_open(p->view, lower, upper, p->r->backwards);
}

/* Can the range's filters be told from the key alone? */
static bool key_is_enough(const struct kv_read *r)
{
    const struct kv_table_def *def = kv_table_def(r->table);
    if (r->kind != KV_READ_COUNT || (r->now != 0 && (r->table == KV_KV || r->table == KV_OBJECT)))
        return false;
    for (unsigned i = 0; i < r->filter_count; i++)
        if (r->filters[i].column >= def->key_count)
            return false;
    return true;
}

/* Entries on their way to the page. */
struct entry_taker {
    struct kv_page *p;
    bool key_only;
    unsigned passed;
    status st;
    struct kv_row_reader reader;
    struct kv_row row;
};

/* The columns of an entry that filters and rows need. */
static status entry_row(struct entry_taker *t, bytes key, const struct kv_cell *cell)
{
    uint32_t ns;
    if (!t->key_only)
        return kv__cell_row_read(&t->reader, t->p->scratch, key, cell, &t->row);
    return t->p->r->filter_count > 0 ? kv_key_decode(t->p->scratch, key, &ns, &t->row) : ST_OK;
}

static bool take_entry(void *arg, bytes key, const struct kv_cell *cell)
{
    struct entry_taker *t = arg;
    struct kv_page *p = t->p;
    t->st = entry_row(t, key, cell);
    if (t->st != ST_OK)
        return false;
    bool wanted = row_is_wanted(p, &t->row);
    if (wanted && p->r->kind != KV_READ_COUNT)
        return kv__page_row(p, &t->row, key.size + cell->row.size) && !limit_reached(p);
    p->pos->counted += wanted;
    return ++t->passed < PASSED_MAX;
}

/* The same where every entry gives a row. */
static bool take_row(void *arg, bytes key, const struct kv_cell *cell)
{
    struct entry_taker *t = arg;
    t->st = kv__cell_row_read(&t->reader, t->p->scratch, key, cell, &t->row);
    return t->st == ST_OK && kv__page_row(t->p, &t->row, key.size + cell->row.size) &&
           !limit_reached(t->p);
}

static bool gives_every_entry(const struct kv_read *r)
{
    return r->kind == KV_READ_RANGE && r->filter_count == 0 && (r->now == 0 || r->table == KV_META);
}

static status scan_entries(struct kv_page *p, struct kv_txn_scan *scan)
{
    struct entry_taker t = {.p = p, .key_only = key_is_enough(p->r), .st = ST_OK};
    if (limit_reached(p))
        return kv__page_end(p);
    kv_row_clear(p->r->table, &t.row);
    kv_row_reader_init(&t.reader, p->r->table, p->columns);
    status st = kv_txn_scan_each(scan, gives_every_entry(p->r) ? take_row : take_entry, &t);
    if (st == ST_END)
        return p->r->kind == KV_READ_COUNT ? end_with_count(p) : kv__page_end(p);
    ST_TRY(st);
    ST_TRY(t.st);
    return limit_reached(p) ? kv__page_end(p) : ST_OK;
}

/* Entries until the page is full; then, or at a cold block, the position is behind the last one. */
static status scan_range(struct kv_page *p, struct kv_txn_scan *scan)
{
    status st = scan_entries(p, scan);
    if ((st == ST_OK || st == ST_COLD) && kv_txn_scan_last(scan).size > 0)
        kv__page_remember(p, kv_txn_scan_last(scan));
    return st;
}

static status read_range(struct kv_page *p)
{
    if (p->r->lower.size == 0 || p->r->upper.size == 0 || bytes_cmp(p->r->lower, p->r->upper) >= 0)
        return p->r->kind == KV_READ_COUNT ? end_with_count(p) : kv__page_end(p);
    struct kv_txn_scan *scan = kv__page_scan(p, p->r->lower, p->r->upper);
    status st = scan_range(p, scan);
    p->pos->skipped += kv_txn_scan_skipped(scan);
    kv_txn_scan_close(scan);
    return st;
}

/* -- the door ---------------------------------------------------------------------------------- */

/* The rules for the objects that the page may see. */
static status load_rules(struct kv_page *p)
{
    const struct kv_read *r = p->r;
    struct kv_datum bucket = kv_text(r->bucket);
    bytes lower = r->lower, upper = r->upper;
    if (r->table != KV_OBJECT || r->now == 0 || r->kind == KV_READ_NOTHING)
        return ST_OK;
    if (r->kind == KV_READ_OBJECTS) {
        lower = kv_key_prefix(p->scratch, r->ns, KV_OBJECT, &bucket, 1);
        upper = kv_key_after_prefix(p->scratch, lower);
    } else if (r->kind == KV_READ_POINTS) {
        for (unsigned i = 0; i < r->point_count; i++) {
            lower = i == 0 || bytes_cmp(r->points[i], lower) < 0 ? r->points[i] : lower;
            upper = i == 0 || bytes_cmp(r->points[i], upper) > 0 ? r->points[i] : upper;
        }
    }
    return lower.size == 0 ? ST_OK : kv_rules_load(p->view, p->scratch, lower, upper, &p->rules);
}

static status read_page(struct kv_page *p)
{
    if (p->r->limit == 0)
        return kv__page_end(p);
    ST_TRY(load_rules(p));
    switch (p->r->kind) {
    case KV_READ_POINTS: return read_points(p);
    case KV_READ_RANGE:
    case KV_READ_COUNT: return read_range(p);
    case KV_READ_RESOLVE: return kv__read_resolve(p);
    case KV_READ_LIST_ATTR: return kv__read_list_attr(p);
    case KV_READ_OBJECTS: return kv__read_objects(p);
    case KV_READ_USAGE: return kv__read_usage(p);
    case KV_READ_NOTHING: return p->r->count ? end_with_count(p) : kv__page_end(p);
    }
    return ST_UNSUPPORTED;
}

status kv_read_page(struct kv_txn *view, const struct kv_read *r, struct kv_read_pos *pos,
                    struct arena *a, unsigned max_rows, size_t max_bytes,
                    bool (*on_row)(void *arg, const struct kv_row *row), void *arg, struct err *err)
{
    struct arena scratch;
    struct kv_view *v = kv_txn_view(view);
    struct arena *before = v->arena;
    if (pos->done)
        return ST_END;
    arena_init(&scratch, SCRATCH_BYTES);
    v->arena = &scratch;
    struct kv_page p = {.view = view,
                        .r = r,
                        .pos = pos,
                        .a = a,
                        .scratch = &scratch,
                        .max_rows = max_rows,
                        .max_bytes = max_bytes,
                        .columns = columns_needed(r),
                        .on_row = on_row,
                        .arg = arg,
                        .err = err};
    err_clear(err);
    if (r->own_writes > 0)
        kv_txn_hide_writes(view, r->own_writes - 1);
    status st = read_page(&p);
    kv_txn_hide_writes(view, UINT64_MAX);
    v->arena = before;
    arena_fini(&scratch);
    if (st != ST_OK && st != ST_END && st != ST_COLD)
        err_default(err, st);
    return st;
}
