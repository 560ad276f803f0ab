/*
 * kv/handler_insert.c — INSERT: create and mkdir in meta, put in object and kv, each with
 * ON CONFLICT.
 *
 * Checks of an entry come in this order, so that every replica and every test sees the same error:
 * columns that are the server's (428C9), name, directory (23503), type, values, existence (23505),
 * id of a directory. Each row of a statement sees the rows before it.
 *
 * A row of object or kv that has expired counts as absent: an INSERT replaces it.
 */
#include "kv/handler.h"

#define PARENTS_BITS_MAX 9u

struct kv__known_parent {
    int64_t pid;
    bool known;
};

static bool type_is_known(int64_t type)
{
    return type > 0 && type < 128 && memchr("fdlpscb", (int)type, 7) != NULL;
}

static status check_type(struct kv_run *r, const struct kv_row *row)
{
    const struct kv_datum *type = &row->col[META_TYPE];
    if (type->null || type_is_known(type->i))
        return ST_OK; /* NULL: kv__check_values */
    err_set_state(r->err, ST_INVALID, "22023", "type is not one of f, d, l, p, s, c, b");
    err_where(r->err, "public", "meta", "type", NULL);
    return ST_INVALID;
}

/* An INSERT takes no directory away: what was found for one row holds for those after it, which
 * mostly go to the same few directories. */
static status check_parent(struct kv_run *r, int64_t pid)
{
    bytes attr_key;
    struct kv_row attr;
    if (r->parents == NULL)
        return kv__parent_find(r, pid, &attr_key, &attr);
    struct kv__known_parent *p =
        &r->parents[(uint64_t)pid * UINT64_C(0x9e3779b97f4a7c15) >> (64 - r->parents_bits)];
    if (p->known && p->pid == pid)
        return ST_OK;
    ST_TRY(kv__parent_find(r, pid, &attr_key, &attr));
    *p = (struct kv__known_parent){.pid = pid, .known = true};
    return ST_OK;
}

static status check_entry(struct kv_run *r, const struct kv_row *row)
{
    if (!row->col[META_PID].null && !row->col[META_NAME].null) {
        ST_TRY(kv__check_name(r, row->col[META_NAME].b));
        ST_TRY(check_parent(r, row->col[META_PID].i));
    }
    ST_TRY(check_type(r, row));
    return kv__check_values(r, row);
}

static status create_file(struct kv_run *r, bytes key, struct kv_row *row)
{
    if (row->col[META_ID].deflt)
        row->col[META_ID] = kv_int(kv__draw_file_id(r));
    row->col[META_NUM_CHILDREN] = KV_NULL;
    row->col[META_PARENT] = KV_NULL;
    ST_TRY(kv__put_row(r, key, row));
    kv__touch_parent(r, row->col[META_PID].i, 1);
    kv__inode_born(r, row);
    kv__index_item(r, KV_ITEM_INDEX_PUT, row, row);
    return ST_OK;
}

static status create_dir(struct kv_run *r, bytes key, struct kv_row *row)
{
    struct kv_datum *id = &row->col[META_ID];
    struct kv_row full;
    if (id->deflt) {
        *id = KV_NULL;
        ST_TRY(kv__draw_dir_id(r, &id->i));
        id->null = false;
    } else if (id->i <= 0) {
        err_set_state(r->err, ST_INVALID, "22003", "the id of a directory must be above 0");
        err_where(r->err, "public", "meta", "id", NULL);
        return ST_INVALID;
    } else {
        ST_TRY(kv__check_id_free(r, id->i));
    }
    full = *row;
    return kv__make_dir(r, key, &full, row);
}

static status insert_meta_row(struct kv_run *r, unsigned index)
{
    struct kv_row row;
    struct kv_cell cell;
    ST_TRY(kv__proposed_row(r, index, &row));
    ST_TRY(check_entry(r, &row));
    bytes key = kv_key_meta(r->a, r->op->ns, row.col[META_PID].i, row.col[META_NAME].b);
    status st = kv_txn_get(r->t, key, &cell);
    if (st == ST_OK)
        return r->op->conflict == KV_CONFLICT_NOTHING ? ST_OK : kv__exists_error(r, &row);
    if (st != ST_NOT_FOUND)
        return st;
    ST_TRY(row.col[META_TYPE].i == KV_TYPE_DIR ? create_dir(r, key, &row)
                                               : create_file(r, key, &row));
    kv__own_seq(r, &row);
    kv__affected(r, &row);
    return ST_OK;
}

/* -- object, kv, lifecycle --------------------------------------------------------------------- */

/* ON CONFLICT DO UPDATE of OLD with the proposed row. */
static status upsert(struct kv_run *r, bytes key, const struct kv_row *old,
                     const struct kv_row *proposed, kv_txn_mark statement)
{
    struct kv_row row;
    if (kv__txn_written_since(r->t, key, statement)) {
        err_set_state(r->err, ST_INVALID, "21000",
                      "ON CONFLICT DO UPDATE command cannot affect row a second time");
        err_hint(r->err, "Ensure that no rows proposed for insertion within the same command have "
                         "duplicate constrained values.");
        return ST_INVALID;
    }
    ST_TRY(kv__apply_sets(r, old, proposed, &row));
    ST_TRY(kv__check_values(r, &row));
    ST_TRY(kv__put_row(r, key, &row));
    kv__own_seq(r, &row);
    kv__affected(r, &row);
    return ST_OK;
}

/* One more rule: 54000 if there are too many. */
static status check_room_for_rule(struct kv_run *r, bytes key)
{
    struct kv_rules rules;
    bytes all = bytes_make(key.data, KV_KEY_HEADER);
    ST_TRY(kv_rules_load(r->t, r->a, all, kv_key_after_prefix(r->a, all), &rules));
    if (rules.count >= KV_RULES_MAX)
        return err_set(r->err, ST_LIMIT, "a database has at most %u rules in lifecycle",
                       KV_RULES_MAX);
    return ST_OK;
}

static status insert_plain_row(struct kv_run *r, unsigned index, kv_txn_mark statement)
{
    struct kv_row row, old;
    ST_TRY(kv__proposed_row(r, index, &row));
    ST_TRY(kv__check_values(r, &row));
    bytes key = kv_key_of_row(r->a, r->op->ns, &row);
    status st = kv__get_row(r->t, r->a, key, &old);
    if (st != ST_OK && st != ST_NOT_FOUND)
        return st;
    bool expired = false;
    if (st == ST_OK)
        ST_TRY(kv__found_expired(r, &old, &expired));
    if (st == ST_OK && !expired) {
        switch (r->op->conflict) {
        case KV_CONFLICT_NOTHING: return ST_OK;
        case KV_CONFLICT_UPDATE: return upsert(r, key, &old, &row, statement);
        case KV_CONFLICT_ERROR: return kv__exists_error(r, &row);
        }
    }
    if (r->op->table == KV_LIFECYCLE)
        ST_TRY(check_room_for_rule(r, key));
    ST_TRY(kv__put_row(r, key, &row));
    kv__own_seq(r, &row);
    kv__affected(r, &row);
    return ST_OK;
}

static void remember_parents(struct kv_run *r)
{
    unsigned bits = 2;
    while (bits < PARENTS_BITS_MAX && 1u << bits < 2 * r->op->row_count)
        bits++;
    r->parents = ARENA_ARRAY(r->a, struct kv__known_parent, 1u << bits);
    r->parents_bits = bits;
}

status kv__insert(struct kv_run *r)
{
    bool meta = r->op->table == KV_META;
    if (meta && r->op->conflict == KV_CONFLICT_UPDATE)
        return err_set(r->err, ST_UNSUPPORTED,
                       "ON CONFLICT DO UPDATE is not supported on table \"meta\"");
    kv_txn_mark statement = kv_txn_save(r->t);
    if (meta && r->op->row_count > 1)
        remember_parents(r);
    for (unsigned i = 0; i < r->op->row_count; i++)
        ST_TRY(meta ? insert_meta_row(r, i) : insert_plain_row(r, i, statement));
    return ST_OK;
}
