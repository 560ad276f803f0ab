/*
 * kv/handler_move.c — rename and POSIX move.
 *
 * RENAME is UPDATE … SET pid, name: absent source 0 rows, existing target 23505. The others are the
 * function move(): absent source P0002; NOREPLACE 23505; REPLACE as rename(2): a file over a file,
 * a directory over an empty one, two names of one file stay as they are; EXCHANGE swaps two
 * entries.
 *
 * A directory's attributes stay where they are, only `parent` changes. It may not move below
 * itself: the ancestors of the target are walked over `parent`. Two such moves, each legal alone,
 * could make a loop together; so every move of a directory to another one locks the namespace's
 * rename key, and the second transaction to commit conflicts.
 */
#include "kv/handler.h"
#include <inttypes.h>

static status loop_error(struct kv_run *r, int64_t id)
{
    err_set(r->err, ST_LOOP, "a directory cannot be moved below itself");
    err_detail(r->err, "Directory %" PRId64 " is the target or above it.", id);
    err_where(r->err, "public", "meta", NULL, NULL);
    return ST_LOOP;
}

/* Directory ID may become an entry of directory PID. */
static status check_no_loop(struct kv_run *r, int64_t id, int64_t pid)
{
    struct kv_row attr;
    int64_t at = pid;
    bytes key;
    for (unsigned i = 0; i <= LIMIT_PATH_DEPTH; i++) {
        if (at == id)
            return loop_error(r, id);
        if (at == KV_ROOT_ID)
            return ST_OK;
        ST_TRY(kv__parent_find(r, at, &key, &attr)); /* refuses detached directories */
        if (attr.col[META_PARENT].null)
            return ST_OK;
        at = attr.col[META_PARENT].i;
    }
    return err_set(r->err, ST_TOO_COMPLEX, "the target is more than %u directories deep",
                   LIMIT_PATH_DEPTH);
}

static status wrong_type(struct kv_run *r, const struct kv_entry *e)
{
    bytes name = e->row.col[META_NAME].b;
    err_set_state(r->err, ST_INVALID, "42809", "\"%.*s\" is %s directory", (int)name.size,
                  (const char *)name.data, e->dir ? "a" : "not a");
    err_where(r->err, "public", "meta", NULL, NULL);
    return ST_INVALID;
}

/* Writes entry E under (PID, NAME); SHOWN is the row there. The old key is the caller's. */
static status put_at(struct kv_run *r, const struct kv_entry *e, int64_t pid, bytes name,
                     struct kv_row *shown)
{
    *shown = e->row;
    shown->col[META_PID] = kv_int(pid);
    shown->col[META_NAME] = kv_text(name);
    if (!e->split)
        shown->col[META_CTIME] = kv_int(r->op->now);
    ST_TRY(kv__put_row(r, kv_key_meta(r->a, r->op->ns, pid, name), shown));
    kv__own_seq(r, shown);
    kv__index_item(r, KV_ITEM_INDEX_DELETE, &e->row, &e->attr);
    return ST_OK;
}

/* A directory now lies in PID. */
static status reparent(struct kv_run *r, const struct kv_entry *e, int64_t pid)
{
    struct kv_row attr = e->attr;
    if (!e->dir || e->row.col[META_PID].i == pid)
        return ST_OK;
    attr.col[META_PARENT] = kv_int(pid);
    attr.col[META_CTIME] = kv_int(r->op->now);
    ST_TRY(kv_txn_put_dir(r->t, e->attr_key, &attr, (struct kv_times_set){0}));
    return kv_txn_lock(r->t, kv__key_rename_lock(r->a, r->op->ns));
}

static void moved(struct kv_run *r, const struct kv_row *shown)
{
    r->res->scalar = shown->col[META_ID];
    kv__affected(r, shown);
}

static status relocate(struct kv_run *r, const struct kv_entry *e)
{
    const struct kv_op *op = r->op;
    struct kv_row shown;
    ST_TRY(kv_txn_delete(r->t, e->key));
    ST_TRY(put_at(r, e, op->new_pid, op->new_name, &shown));
    kv__index_item(r, KV_ITEM_INDEX_PUT, &shown, &e->attr);
    ST_TRY(reparent(r, e, op->new_pid));
    if (op->pid == op->new_pid) {
        kv__touch_parent(r, op->pid, 0);
    } else {
        kv__touch_parent(r, op->pid, -1);
        kv__touch_parent(r, op->new_pid, 1);
    }
    moved(r, &shown);
    return ST_OK;
}

static status replace(struct kv_run *r, const struct kv_entry *e, const struct kv_entry *target)
{
    if (e->split && target->split && e->row.col[META_ID].i == target->row.col[META_ID].i) {
        moved(r, &e->row); /* two names of one file */
        return ST_OK;
    }
    if (e->dir != target->dir)
        return wrong_type(r, target);
    ST_TRY(kv__unlink(r, target));
    kv__touch_parent(r, r->op->new_pid, -1);
    return relocate(r, e);
}

static status exchange(struct kv_run *r, const struct kv_entry *e, const struct kv_entry *other)
{
    const struct kv_op *op = r->op;
    struct kv_row shown, other_shown;
    if (other->dir && op->pid != op->new_pid)
        ST_TRY(check_no_loop(r, other->row.col[META_ID].i, op->pid));
    ST_TRY(put_at(r, e, op->new_pid, op->new_name, &shown));
    ST_TRY(put_at(r, other, op->pid, op->name, &other_shown));
    kv__index_item(r, KV_ITEM_INDEX_PUT, &shown, &e->attr);
    kv__index_item(r, KV_ITEM_INDEX_PUT, &other_shown, &other->attr);
    ST_TRY(reparent(r, e, op->new_pid));
    ST_TRY(reparent(r, other, op->pid));
    kv__touch_parent(r, op->pid, 0);
    if (op->pid != op->new_pid)
        kv__touch_parent(r, op->new_pid, 0);
    moved(r, &shown);
    return ST_OK;
}

/* The source is there and the target may be. */
static status move_to_target(struct kv_run *r, const struct kv_entry *e)
{
    const struct kv_op *op = r->op;
    struct kv_entry target;
    status st = kv__entry_find(r->t, r->a, op->ns, op->new_pid, op->new_name, &target);
    if (st == ST_NOT_FOUND)
        return op->move == KV_MOVE_EXCHANGE ? kv__no_entry(r, op->new_pid, op->new_name)
                                            : relocate(r, e);
    ST_TRY(st);
    switch (op->move) {
    case KV_MOVE_REPLACE: return replace(r, e, &target);
    case KV_MOVE_EXCHANGE: return exchange(r, e, &target);
    case KV_MOVE_NOREPLACE:
    case KV_MOVE_RENAME: break;
    }
    return kv__target_exists(r);
}

status kv__move(struct kv_run *r)
{
    const struct kv_op *op = r->op;
    struct kv_entry e;
    struct kv_row parent;
    bytes parent_key;
    status st = op->move == KV_MOVE_RENAME ? kv__entry_named(r, &e) : kv__entry_required(r, &e);
    if (st == ST_NOT_FOUND && op->move == KV_MOVE_RENAME)
        return ST_OK;
    ST_TRY(st);
    if (!kv__entry_matches(r, &e))
        return ST_OK;
    ST_TRY(kv__check_name(r, op->new_name));
    ST_TRY(kv__parent_find(r, op->new_pid, &parent_key, &parent));
    if (op->pid == op->new_pid && bytes_eq(op->name, op->new_name)) {
        moved(r, &e.row);
        return ST_OK;
    }
    if (e.dir && op->pid != op->new_pid)
        ST_TRY(check_no_loop(r, e.row.col[META_ID].i, op->new_pid));
    return move_to_target(r, &e);
}
