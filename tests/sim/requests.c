/* sim/requests.c — see requests.h. */
#include "sim/requests.h"
#include "base/assert.h"
#include "kv/key.h"
#include <stdio.h>
#include <string.h>

static uint64_t below(struct maker *m, uint64_t bound)
{
    return sim_random_below(m->random, bound);
}

static struct kv_op *new_op(struct maker *m, enum kv_op_kind kind, enum kv_table table)
{
    struct kv_op *op = ARENA_NEW(m->arena, struct kv_op);
    *op = (struct kv_op){.kind = kind,
                         .table = table,
                         .ns = SIM_NS,
                         .now = m->now,
                         .seed = sim_random_next(m->random)};
    return op;
}

/* PREFIX and N. */
static struct kv_datum text(struct maker *m, const char *prefix, int64_t n)
{
    char buffer[32];
    snprintf(buffer, sizeof buffer, "%s%02lld", prefix, (long long)n);
    return kv_text(arena_copy(m->arena, bytes_str(buffer)));
}

static struct kv_datum number_text(struct maker *m, int64_t n)
{
    char buffer[32];
    snprintf(buffer, sizeof buffer, "%lld", (long long)n);
    return kv_text(arena_copy(m->arena, bytes_str(buffer)));
}

static void set_rows(struct maker *m, struct kv_op *op, const unsigned *columns, unsigned count,
                     const struct kv_datum *values, unsigned rows)
{
    struct kv_datum *v = ARENA_ARRAY(m->arena, struct kv_datum, count * rows);
    memcpy(v, values, sizeof *v * count * rows);
    op->columns = columns;
    op->column_count = count;
    op->values = v;
    op->row_count = rows;
}

static void set_keys(struct maker *m, struct kv_op *op, const struct kv_datum *cols, unsigned count)
{
    struct kv_datum *k = ARENA_ARRAY(m->arena, struct kv_datum, count);
    memcpy(k, cols, sizeof *k * count);
    op->keys = k;
    op->key_count = 1;
}

static void set_value(struct maker *m, struct kv_op *op, unsigned column, struct kv_datum value)
{
    struct kv_set *set = ARENA_NEW(m->arena, struct kv_set);
    *set = (struct kv_set){.column = column, .kind = KV_SET_VALUE, .value = value};
    op->sets = set;
    op->set_count = 1;
}

static void set_filter(struct maker *m, struct kv_op *op, unsigned column, struct kv_datum value)
{
    struct kv_filter *f = ARENA_NEW(m->arena, struct kv_filter);
    *f = (struct kv_filter){.column = column, .cmp = KV_EQ, .value = value};
    op->filters = f;
    op->filter_count = 1;
}

static void on_conflict_update(struct maker *m, struct kv_op *op, unsigned column)
{
    struct kv_set *set = ARENA_NEW(m->arena, struct kv_set);
    *set = (struct kv_set){.column = column, .kind = KV_SET_EXCLUDED, .from = column};
    op->conflict = KV_CONFLICT_UPDATE;
    op->sets = set;
    op->set_count = 1;
}

static struct kv_read *new_read(struct maker *m, enum kv_read_kind kind, enum kv_table table)
{
    struct kv_read *r = ARENA_NEW(m->arena, struct kv_read);
    *r = (struct kv_read){.kind = kind, .table = table, .ns = SIM_NS, .limit = -1};
    return r;
}

static struct kv_read *points(struct maker *m, enum kv_table table, const struct kv_datum *cols,
                              unsigned width, unsigned count)
{
    struct kv_read *r = new_read(m, KV_READ_POINTS, table);
    bytes *keys = ARENA_ARRAY(m->arena, bytes, count);
    for (unsigned i = 0; i < count; i++)
        keys[i] = kv_key_prefix(m->arena, SIM_NS, table, cols + i * width, width);
    r->points = keys;
    r->point_count = count;
    return r;
}

static const unsigned kv_columns[] = {KVT_KEY, KVT_VALUE};

/* -- registers --------------------------------------------------------------------------------- */

static unsigned register_key(struct maker *m, unsigned at, struct kv_datum *cols)
{
    if (register_table(at) == KV_KV) {
        cols[0] = text(m, "r", at);
        return 1;
    }
    cols[0] = kv_int(KV_ROOT_ID);
    cols[1] = text(m, "r", at);
    return 2;
}

const struct kv_op *make_register_op(struct maker *m, unsigned at, const struct register_op *op)
{
    static const unsigned meta_columns[] = {META_PID, META_NAME, META_ID, META_TYPE};
    bool kv = register_table(at) == KV_KV;
    struct kv_datum cols[4];
    unsigned width = register_key(m, at, cols);
    struct kv_op *out = NULL;
    switch (op->kind) {
    case REGISTER_PUT:
    case REGISTER_INSERT:
        out = new_op(m, KV_OP_INSERT, kv ? KV_KV : KV_META);
        if (kv) {
            cols[1] = number_text(m, op->value);
            set_rows(m, out, kv_columns, 2, cols, 1);
        } else {
            cols[2] = kv_int(op->value);
            cols[3] = kv_int('f');
            set_rows(m, out, meta_columns, 4, cols, 1);
        }
        if (op->kind == REGISTER_PUT)
            on_conflict_update(m, out, KVT_VALUE);
        break;
    case REGISTER_DELETE:
        out = new_op(m, KV_OP_DELETE, kv ? KV_KV : KV_META);
        set_keys(m, out, cols, width);
        break;
    case REGISTER_SWAP:
        out = new_op(m, KV_OP_UPDATE, KV_KV);
        set_keys(m, out, cols, width);
        set_filter(m, out, KVT_VALUE, number_text(m, op->expected));
        set_value(m, out, KVT_VALUE, number_text(m, op->value));
        break;
    case REGISTER_GET: break;
    }
    ASSERT(out != NULL);
    return out;
}

const struct kv_read *make_register_read(struct maker *m, unsigned at)
{
    struct kv_datum cols[2];
    unsigned width = register_key(m, at, cols);
    return points(m, register_table(at), cols, width, 1);
}

static int64_t number(bytes b)
{
    int64_t n = 0;
    for (size_t i = 0; i < b.size; i++)
        n = 10 * n + (b.data[i] - '0');
    return n;
}

int64_t register_value(unsigned at, const struct kv_row *row)
{
    return register_table(at) == KV_KV ? number(row->col[KVT_VALUE].b) : row->col[META_ID].i;
}

/* -- lists and pairs --------------------------------------------------------------------------- */

const struct kv_read *make_list_read(struct maker *m, unsigned list)
{
    struct kv_datum key = text(m, "l", list);
    return points(m, KV_KV, &key, 1, 1);
}

const struct kv_op *make_list_write(struct maker *m, unsigned list, const int64_t *items,
                                    unsigned count, int64_t id)
{
    struct kv_op *op = new_op(m, KV_OP_INSERT, KV_KV);
    size_t size = 24 * ((size_t)count + 1), used = 0;
    char *value = arena_alloc(m->arena, size);
    for (unsigned i = 0; i < count; i++)
        used += (size_t)snprintf(value + used, size - used, "%lld,", (long long)items[i]);
    used += (size_t)snprintf(value + used, size - used, "%lld", (long long)id);
    struct kv_datum cols[2] = {text(m, "l", list), kv_text(bytes_make(value, used))};
    set_rows(m, op, kv_columns, 2, cols, 1);
    on_conflict_update(m, op, KVT_VALUE);
    return op;
}

const struct kv_op *make_list_lock(struct maker *m, unsigned list)
{
    struct kv_op *op = new_op(m, KV_OP_LOCK, KV_KV);
    struct kv_datum key = text(m, "l", list);
    set_keys(m, op, &key, 1);
    return op;
}

int64_t *list_items(const struct kv_row *row, unsigned *count)
{
    bytes value = row->col[KVT_VALUE].b;
    int64_t *items = calloc(value.size + 1, sizeof *items);
    ASSERT(items != NULL);
    *count = 0;
    for (size_t at = 0; at < value.size;) {
        size_t end = at;
        while (end < value.size && value.data[end] != ',')
            end++;
        items[(*count)++] = number(bytes_make(value.data + at, end - at));
        at = end + 1;
    }
    return items;
}

const struct kv_op *make_pair_write(struct maker *m, int64_t value)
{
    struct kv_op *op = new_op(m, KV_OP_INSERT, KV_KV);
    struct kv_datum v = number_text(m, value);
    struct kv_datum cols[4] = {text(m, "p", 0), v, text(m, "p", 1), v};
    set_rows(m, op, kv_columns, 2, cols, 2);
    on_conflict_update(m, op, KVT_VALUE);
    return op;
}

const struct kv_read *make_pair_read(struct maker *m)
{
    struct kv_datum cols[2] = {text(m, "p", 0), text(m, "p", 1)};
    return points(m, KV_KV, cols, 1, 2);
}

/* -- everything else --------------------------------------------------------------------------- */

static int64_t some_directory(struct maker *m)
{
    uint64_t at = below(m, m->directory_count + 1);
    return at == 0 || m->directories[at - 1] == 0 ? KV_ROOT_ID : m->directories[at - 1];
}

static struct kv_datum some_name(struct maker *m)
{
    return text(m, "n", (int64_t)below(m, 8));
}

static const struct kv_op *make_create(struct maker *m, int64_t value)
{
    static const unsigned columns[] = {META_PID, META_NAME, META_ID,   META_TYPE,
                                       META_UID, META_SIZE, META_MODE, META_FID};
    bool directory = below(m, 4) == 0;
    struct kv_op *op = new_op(m, KV_OP_INSERT, KV_META);
    struct kv_datum cols[8] = {kv_int(some_directory(m)),
                               some_name(m),
                               kv_int(value),
                               kv_int(directory ? 'd' : 'f'),
                               kv_int((int64_t)below(m, 3)),
                               kv_int((int64_t)below(m, 100)),
                               kv_int(0644),
                               kv_int(value)};
    if (directory)
        *m->new_directory = value;
    set_rows(m, op, columns, directory ? 4 : 8, cols, 1);
    return op;
}

static const struct kv_op *make_path_op(struct maker *m, enum kv_op_kind kind)
{
    struct kv_op *op = new_op(m, kind, KV_META);
    op->pid = some_directory(m);
    op->name = some_name(m).b;
    if (kind == KV_OP_MAKE_PATH && below(m, 2) == 0)
        op->name = bytes_str("n01/n02/n03");
    op->new_pid = some_directory(m);
    op->new_name = some_name(m).b;
    op->move = (enum kv_move_mode)below(m, 4);
    return op;
}

static const struct kv_op *make_entry_op(struct maker *m, enum kv_op_kind kind)
{
    struct kv_op *op = new_op(m, kind, KV_META);
    struct kv_datum cols[2] = {kv_int(some_directory(m)), some_name(m)};
    set_keys(m, op, cols, 2);
    if (kind != KV_OP_UPDATE)
        return op;
    if (below(m, 2) == 0)
        set_value(m, op, META_SIZE, kv_int((int64_t)below(m, 100)));
    else
        set_value(m, op, META_UID, kv_int((int64_t)below(m, 3)));
    return op;
}

static void range_of(struct maker *m, enum kv_table table, struct kv_datum first, bytes *lower,
                     bytes *upper)
{
    *lower = kv_key_prefix(m->arena, SIM_NS, table, &first, 1);
    *upper = kv_key_after_prefix(m->arena, *lower);
}

static const struct kv_op *make_range_op(struct maker *m, enum kv_table table)
{
    struct kv_op *op = new_op(m, KV_OP_DELETE_RANGE, table);
    if (table == KV_OBJECT) {
        range_of(m, table, text(m, "b", (int64_t)below(m, 3)), &op->lower, &op->upper);
        return op;
    }
    struct kv_datum from[2] = {kv_int(some_directory(m)), text(m, "n", (int64_t)below(m, 8))};
    struct kv_datum to[2] = {from[0], text(m, "n", 9)};
    op->lower = kv_key_prefix(m->arena, SIM_NS, table, from, 2);
    op->upper = kv_key_prefix(m->arena, SIM_NS, table, to, 2);
    return op;
}

/* Rules that come and go, so that objects expire and are taken away. */
static const struct kv_op *make_rule_op(struct maker *m)
{
    static const unsigned columns[] = {LIFECYCLE_BUCKET, LIFECYCLE_PREFIX, LIFECYCLE_EXPIRE_AFTER};
    struct kv_datum cols[3] = {text(m, "b", (int64_t)below(m, 3)),
                               text(m, "o", (int64_t)below(m, 3)),
                               kv_int(1 + (int64_t)below(m, 5000000))};
    if (below(m, 2) == 0) {
        struct kv_op *op = new_op(m, KV_OP_DELETE, KV_LIFECYCLE);
        set_keys(m, op, cols, 2);
        return op;
    }
    struct kv_op *op = new_op(m, KV_OP_INSERT, KV_LIFECYCLE);
    set_rows(m, op, columns, 3, cols, 1);
    on_conflict_update(m, op, LIFECYCLE_EXPIRE_AFTER);
    return op;
}

static const struct kv_op *make_object_op(struct maker *m)
{
    if (below(m, 8) == 0)
        return make_rule_op(m);
    static const unsigned columns[] = {OBJECT_BUCKET, OBJECT_KEY, OBJECT_SIZE};
    struct kv_datum cols[3] = {text(m, "b", (int64_t)below(m, 3)),
                               text(m, "o", (int64_t)below(m, 20)),
                               kv_int((int64_t)below(m, 1000))};
    if (below(m, 4) == 0) {
        struct kv_op *op = new_op(m, KV_OP_DELETE, KV_OBJECT);
        set_keys(m, op, cols, 2);
        return op;
    }
    struct kv_op *op = new_op(m, KV_OP_INSERT, KV_OBJECT);
    set_rows(m, op, columns, 3, cols, 1);
    if (below(m, 3) != 0)
        on_conflict_update(m, op, OBJECT_SIZE);
    else if (below(m, 2) == 0)
        op->conflict = KV_CONFLICT_NOTHING;
    return op;
}

/* What fills logs and memtables. */
static const struct kv_op *make_large_op(struct maker *m)
{
    struct kv_op *op = new_op(m, KV_OP_INSERT, KV_KV);
    size_t size = 500 + (size_t)below(m, 4000);
    char *value = arena_alloc(m->arena, size);
    memset(value, 'a' + (int)below(m, 26), size);
    struct kv_datum cols[2] = {text(m, "x", (int64_t)below(m, 60)),
                               kv_text(bytes_make(value, size))};
    set_rows(m, op, kv_columns, 2, cols, 1);
    on_conflict_update(m, op, KVT_VALUE);
    return op;
}

const struct kv_op *make_other_op(struct maker *m, int64_t value)
{
    *m->new_directory = 0;
    switch (below(m, 26)) {
    case 20:
    case 21:
    case 22:
    case 23:
    case 24:
    case 25: return make_large_op(m);
    case 0: return make_path_op(m, KV_OP_LINK);
    case 1:
    case 2:
    case 3: return make_path_op(m, KV_OP_MOVE);
    case 4: return make_path_op(m, KV_OP_MAKE_PATH);
    case 5: return below(m, 3) == 0 ? make_path_op(m, KV_OP_DETACH) : make_object_op(m);
    case 6:
    case 7: return make_entry_op(m, KV_OP_UPDATE);
    case 8:
    case 9:
    case 10: return make_entry_op(m, KV_OP_DELETE);
    case 11: return make_range_op(m, below(m, 2) == 0 ? KV_OBJECT : KV_META);
    case 12:
    case 13: return make_object_op(m);
    default: return make_create(m, value);
    }
}

static const struct kv_read *make_page(struct maker *m)
{
    struct kv_read *r = new_read(m, KV_READ_OBJECTS, KV_OBJECT);
    r->bucket = text(m, "b", (int64_t)below(m, 3)).b;
    r->delimiter = BYTES_LIT("1");
    r->after = below(m, 2) == 0 ? text(m, "o", (int64_t)below(m, 20)).b : BYTES_EMPTY;
    return r;
}

const struct kv_read *make_other_read(struct maker *m)
{
    struct kv_read *r;
    switch (below(m, 6)) {
    case 0:
        r = new_read(m, KV_READ_RESOLVE, KV_META);
        r->pid = some_directory(m);
        r->path = bytes_str("n01/n02");
        return r;
    case 1:
        r = new_read(m, KV_READ_LIST_ATTR, KV_META);
        r->pid = some_directory(m);
        r->limit = 1 + (int64_t)below(m, 20);
        return r;
    case 2:
        r = new_read(m, KV_READ_USAGE, KV_META);
        r->pid = some_directory(m);
        r->now = m->now;
        return r;
    case 3: r = new_read(m, KV_READ_COUNT, KV_META); break;
    case 4:
        if (below(m, 2) == 0)
            return make_page(m);
        r = new_read(m, KV_READ_RANGE, KV_OBJECT);
        range_of(m, KV_OBJECT, text(m, "b", (int64_t)below(m, 3)), &r->lower, &r->upper);
        r->backwards = below(m, 2) == 0;
        return r;
    default: r = new_read(m, KV_READ_RANGE, KV_META); break;
    }
    range_of(m, KV_META, kv_int(some_directory(m)), &r->lower, &r->upper);
    return r;
}
