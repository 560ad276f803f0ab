/*
 * kv/handlers.c — running one operation: dispatch, results, and undoing a failed one.
 *
 * A handler may have written half of what it wanted when it meets an error or a cold key. The mark
 * taken first makes every error leave the write set as it was, which is also PostgreSQL's atomicity
 * of a statement inside a transaction.
 */
#include "kv/handler.h"

#define FIRST_ROWS 4u

void kv__affected(struct kv_run *r, const struct kv_row *row)
{
    r->res->affected++;
    if (!r->op->want_rows)
        return;
    if (r->res->row_count == r->row_capacity) {
        r->rows = arena_grow(r->a, r->rows, sizeof *r->rows, &r->row_capacity, FIRST_ROWS);
        r->res->rows = r->rows;
    }
    kv_row_copy(r->a, row, &r->rows[r->res->row_count++]);
}

void kv__own_seq(struct kv_run *r, struct kv_row *row)
{
    hlc_ts stamp = kv__txn_stamp(r->t);
    if (r->def->seq_column >= 0)
        row->col[r->def->seq_column] = stamp != 0 ? kv_int((int64_t)stamp) : KV_NULL;
}

status kv__found_expired(struct kv_run *r, const struct kv_row *row, bool *out)
{
    if (row->table == KV_OBJECT &&
        (r->rules_bucket.size == 0 || !bytes_eq(r->rules_bucket, row->col[OBJECT_BUCKET].b))) {
        bytes bucket = kv_key_prefix(r->a, r->op->ns, KV_OBJECT, row->col, 1);
        ST_TRY(kv_rules_load(r->t, r->a, bucket, kv_key_after_prefix(r->a, bucket), &r->rules));
        r->rules_bucket = arena_copy(r->a, row->col[OBJECT_BUCKET].b);
    }
    *out = kv__expired(&r->rules, row, r->op->now);
    return ST_OK;
}

static bool key_has_null(const struct kv_run *r, const struct kv_datum *key)
{
    for (unsigned i = 0; i < r->def->key_count; i++)
        if (key[i].null || key[i].deflt)
            return true;
    return false;
}

status kv__each_key(struct kv_run *r, status (*fn)(struct kv_run *r, const struct kv_datum *key))
{
    for (unsigned i = 0; i < r->op->key_count; i++) {
        const struct kv_datum *key = &r->op->keys[i * r->def->key_count];
        if (!key_has_null(r, key))
            ST_TRY(fn(r, key));
    }
    return ST_OK;
}

static status lock_key(struct kv_run *r, const struct kv_datum *key)
{
    struct kv_cell cell;
    bytes encoded = kv_key_prefix(r->a, r->op->ns, r->op->table, key, r->def->key_count);
    status st = kv_txn_get(r->t, encoded, &cell);
    if (st == ST_NOT_FOUND)
        return ST_OK;
    ST_TRY(st);
    ST_TRY(kv_txn_lock(r->t, encoded));
    r->res->affected++;
    return ST_OK;
}

static status lock(struct kv_run *r)
{
    return kv__each_key(r, lock_key);
}

/* Operations on the tree exist for meta only. */
static status dispatch(struct kv_run *r)
{
    bool meta = r->op->table == KV_META;
    switch (r->op->kind) {
    case KV_OP_INSERT: return kv__insert(r);
    case KV_OP_UPDATE: return kv__update(r);
    case KV_OP_DELETE: return kv__delete(r);
    case KV_OP_DELETE_RANGE: return kv__delete_range(r);
    case KV_OP_LOCK: return lock(r);
    case KV_OP_MOVE: return meta ? kv__move(r) : ST_UNSUPPORTED;
    case KV_OP_LINK: return meta ? kv__link(r) : ST_UNSUPPORTED;
    case KV_OP_MAKE_PATH: return meta ? kv__make_path(r) : ST_UNSUPPORTED;
    case KV_OP_DETACH: return meta ? kv__detach(r) : ST_UNSUPPORTED;
    case KV_OP_BOOTSTRAP: return meta ? kv__bootstrap(r) : ST_UNSUPPORTED;
    case KV_OP_RECLAIM: return meta ? kv__reclaim(r) : ST_UNSUPPORTED;
    case KV_OP_EXPIRE: return r->op->table == KV_OBJECT ? kv__expire(r) : ST_UNSUPPORTED;
    }
    return ST_UNSUPPORTED;
}

static status check_bounds(const struct kv_op *op, const struct kv_table_def *def, struct err *err)
{
    if (def == NULL)
        return err_set(err, ST_UNSUPPORTED, "unknown table");
    if (def->read_only && op->kind != KV_OP_LOCK) {
        err_set_state(err, ST_DENIED, "42501", "table \"%s\" is read-only", def->name);
        err_where(err, "public", def->name, NULL, NULL);
        return ST_DENIED;
    }
    if (op->row_count > LIMIT_STATEMENT_ROWS || op->key_count > LIMIT_STATEMENT_ROWS)
        return err_set(err, ST_LIMIT, "a statement writes at most %u rows", LIMIT_STATEMENT_ROWS);
    return ST_OK;
}

status kv_op_run(struct kv_txn *t, const struct kv_op *op, struct arena *a, struct kv_result *res,
                 struct err *err)
{
    struct kv_run r = {
        .t = t, .op = op, .def = kv_table_def(op->table), .a = a, .res = res, .err = err};
    *res = (struct kv_result){.scalar = KV_NULL};
    err_clear(err);
    ST_TRY(check_bounds(op, r.def, err));
    kv_txn_mark mark = kv_txn_save(t);
    status st = dispatch(&r);
    if (st != ST_OK) {
        kv_txn_rollback_to(t, mark);
        *res = (struct kv_result){.scalar = KV_NULL};
        if (st != ST_COLD)
            err_default(err, st);
    }
    return st;
}
