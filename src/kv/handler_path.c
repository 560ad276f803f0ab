/*
 * kv/handler_path.c — make_path(): mkdir -p below a directory; and the directory above all, the
 * root, which has no entry and no parent and is made once per namespace.
 *
 * Components are taken one by one; "." and empty ones stay, ".." goes up (the root's parent is the
 * root). A directory that is there is entered, a missing one is made with defaults, anything else
 * is 42809.
 */
#include "kv/handler.h"

static status not_a_directory(struct kv_run *r, bytes name)
{
    err_set_state(r->err, ST_INVALID, "42809", "\"%.*s\" is not a directory", (int)name.size,
                  (const char *)name.data);
    err_where(r->err, "public", "meta", NULL, NULL);
    return ST_INVALID;
}

static struct kv_row default_dir(const struct kv_run *r)
{
    struct kv_row row = {.table = KV_META};
    for (unsigned c = 0; c < META_COLUMNS; c++)
        row.col[c] = kv__default(r, c, true);
    row.col[META_TYPE] = kv_int(KV_TYPE_DIR);
    return row;
}

status kv__bootstrap(struct kv_run *r)
{
    struct kv_cell cell;
    struct kv_row row = default_dir(r);
    bytes key = kv_key_attr(r->a, r->op->ns, KV_ROOT_ID);
    status st = kv_txn_get(r->t, key, &cell);
    if (st != ST_NOT_FOUND)
        return st;
    row.col[META_PID] = kv_int(KV_ROOT_ID);
    row.col[META_NAME] = kv_text(KV_ATTR_NAME);
    row.col[META_ID] = kv_int(KV_ROOT_ID);
    row.col[META_NUM_CHILDREN] = kv_int(0);
    ST_TRY(kv_txn_put_dir(r->t, key, &row, (struct kv_times_set){0}));
    r->res->affected++;
    return ST_OK;
}

static status make_component(struct kv_run *r, int64_t pid, bytes name, int64_t *id)
{
    struct kv_row row = default_dir(r), entry;
    ST_TRY(kv__draw_dir_id(r, id));
    row.col[META_PID] = kv_int(pid);
    row.col[META_NAME] = kv_text(name);
    row.col[META_ID] = kv_int(*id);
    ST_TRY(kv__make_dir(r, kv_key_meta(r->a, r->op->ns, pid, name), &row, &entry));
    r->res->affected++;
    return ST_OK;
}

/* From directory *AT to its child NAME, made if missing. */
static status enter(struct kv_run *r, bytes name, int64_t *at)
{
    struct kv_entry e;
    struct kv_row attr;
    bytes attr_key;
    ST_TRY(kv__parent_find(r, *at, &attr_key, &attr));
    if (bytes_eq(name, BYTES_LIT(".")))
        return ST_OK;
    if (bytes_eq(name, BYTES_LIT(".."))) {
        if (!attr.col[META_PARENT].null)
            *at = attr.col[META_PARENT].i;
        return ST_OK;
    }
    ST_TRY(kv__check_name(r, name));
    status st = kv__entry_find(r->t, r->a, r->op->ns, *at, name, &e);
    if (st == ST_NOT_FOUND)
        return make_component(r, *at, name, at);
    ST_TRY(st);
    if (!e.dir)
        return not_a_directory(r, name);
    *at = e.row.col[META_ID].i;
    return ST_OK;
}

status kv__make_path(struct kv_run *r)
{
    bytes path = r->op->name, attr_key;
    struct kv_row attr;
    int64_t at = r->op->pid;
    unsigned depth = 0;
    if (path.size > LIMIT_PATH_BYTES)
        return err_set_state(r->err, ST_INVALID, "22001", "path is longer than %u bytes",
                             LIMIT_PATH_BYTES);
    ST_TRY(kv__parent_find(r, at, &attr_key, &attr));
    for (size_t i = 0; i < path.size;) {
        const uint8_t *slash = memchr(path.data + i, '/', path.size - i);
        size_t end = slash != NULL ? (size_t)(slash - path.data) : path.size;
        if (end > i) {
            if (++depth > LIMIT_PATH_DEPTH)
                return err_set(r->err, ST_TOO_COMPLEX, "path has more than %u components",
                               LIMIT_PATH_DEPTH);
            ST_TRY(enter(r, bytes_make(path.data + i, end - i), &at));
        }
        i = end + 1;
    }
    r->res->scalar = kv_int(at);
    return ST_OK;
}
