/*
 * kv/values.c — what a column takes: defaults, NULLs, ranges, SET and WHERE.
 *
 * The schema says which columns are keys, NOT NULL or the server's. Beyond it, a column of meta
 * that has a default refuses an explicit NULL (23502): NULL there means that the attributes are in
 * another row, so no statement may write it.
 *
 * Comparison is PostgreSQL's: NULL compares to nothing, text and bytea by bytes.
 */
#include "base/assert.h"
#include "kv/handler.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define MODE_MAX 07777
#define MODE_FILE 0644
#define MODE_DIR 0755

static bool type_is_bytes(enum kv_type type)
{
    return type == KV_TEXT || type == KV_BYTEA;
}

/* -- errors ------------------------------------------------------------------------------------ */

static PRINTF_LIKE(4, 5) status
    column_error(struct kv_run *r, unsigned column, const char *sqlstate, const char *fmt, ...)
{
    char message[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    err_set_state(r->err, ST_INVALID, sqlstate, "%s", message);
    err_where(r->err, "public", r->def->name, r->def->columns[column].name, NULL);
    return ST_INVALID;
}

static const char *column_name(const struct kv_run *r, unsigned column)
{
    return r->def->columns[column].name;
}

static status null_error(struct kv_run *r, unsigned column)
{
    return column_error(
        r, column, "23502",
        "null value in column \"%s\" of relation \"%s\" violates not-null constraint",
        column_name(r, column), r->def->name);
}

static status range_error(struct kv_run *r, unsigned column, int64_t value)
{
    return column_error(r, column, "22003", "%s %" PRId64 " is out of range",
                        column_name(r, column), value);
}

static status length_error(struct kv_run *r, unsigned column, size_t max)
{
    return column_error(r, column, "22001", "%s is longer than %zu bytes", column_name(r, column),
                        max);
}

/* Appends to a text of SIZE bytes; cut at its end. */
static PRINTF_LIKE(3, 4) void append(char *text, size_t size, const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text + n, size - n, fmt, args);
    va_end(args);
}

status kv__exists_error(struct kv_run *r, const struct kv_row *row)
{
    char names[128] = "", values[sizeof r->err->detail - 64] = "";
    for (unsigned i = 0; i < r->def->key_count; i++) {
        const char *comma = i > 0 ? ", " : "";
        const struct kv_datum *d = &row->col[i];
        append(names, sizeof names, "%s%s", comma, r->def->columns[i].name);
        if (type_is_bytes(r->def->columns[i].type))
            append(values, sizeof values, "%s%.*s", comma, (int)d->b.size, (const char *)d->b.data);
        else
            append(values, sizeof values, "%s%" PRId64, comma, d->i);
    }
    err_set(r->err, ST_EXISTS, "duplicate key value violates unique constraint \"%s\"",
            r->def->pkey);
    err_detail(r->err, "Key (%s)=(%s) already exists.", names, values);
    err_where(r->err, "public", r->def->name, NULL, r->def->pkey);
    return ST_EXISTS;
}

/* -- defaults ---------------------------------------------------------------------------------- */

static struct kv_datum meta_default(const struct kv_run *r, unsigned column, bool dir)
{
    switch ((enum kv_meta_column)column) {
    case META_TYPE: return kv_int(KV_TYPE_FILE);
    case META_MODE: return kv_int(dir ? MODE_DIR : MODE_FILE);
    case META_UID:
    case META_GID:
    case META_SIZE: return kv_int(0);
    case META_NLINK: return kv_int(dir ? 2 : 1);
    case META_ATIME:
    case META_MTIME:
    case META_CTIME:
    case META_BTIME: return kv_int(r->op->now);
    case META_PID:
    case META_NAME:
    case META_ID: /* drawn by the caller */
    case META_NUM_CHILDREN:
    case META_PARENT:
    case META_RDEV:
    case META_FID:
    case META_CLASS:
    case META_ATTR:
    case META_SEQ:
    case META_COLUMNS: break;
    }
    return KV_NULL;
}

/* Does a column of meta have a default, so that NULL is refused? */
static bool meta_has_default(const struct kv_run *r, unsigned column)
{
    return column == META_ID || !meta_default(r, column, false).null;
}

struct kv_datum kv__default(const struct kv_run *r, unsigned column, bool dir)
{
    if (r->op->table == KV_META)
        return meta_default(r, column, dir);
    if (r->op->table == KV_OBJECT && column == OBJECT_MTIME)
        return kv_int(r->op->now);
    if (r->op->table == KV_OBJECT && column == OBJECT_SIZE)
        return kv_int(0);
    return KV_NULL;
}

status kv__proposed_row(struct kv_run *r, unsigned index, struct kv_row *row)
{
    const struct kv_op *op = r->op;
    const struct kv_table_def *def = r->def;
    uint64_t given = 0;
    row->table = def->table;
    for (unsigned i = 0; i < op->column_count; i++) {
        unsigned c = op->columns[i];
        row->col[c] = op->values[index * op->column_count + i];
        given |= row->col[c].deflt ? 0 : 1ull << c;
        if (def->columns[c].read_only && !row->col[c].deflt)
            return column_error(r, c, "428C9",
                                "cannot insert a non-DEFAULT value into column \"%s\"",
                                column_name(r, c));
    }
    bool dir = def->table == KV_META && (given >> META_TYPE & 1) && !row->col[META_TYPE].null &&
               row->col[META_TYPE].i == KV_TYPE_DIR;
    for (uint64_t rest = ((1ull << def->column_count) - 1) & ~given; rest != 0; rest &= rest - 1) {
        unsigned c = (unsigned)__builtin_ctzll(rest);
        if (def->table == KV_META && c == META_ID)
            row->col[c] = (struct kv_datum){.deflt = true}; /* the caller draws it */
        else
            row->col[c] = kv__default(r, c, dir);
    }
    return ST_OK;
}

/* -- checks ------------------------------------------------------------------------------------ */

static status check_int_type(struct kv_run *r, unsigned column, int64_t v)
{
    enum kv_type type = r->def->columns[column].type;
    if (type == KV_INT2 && (v < INT16_MIN || v > INT16_MAX))
        return column_error(r, column, "22003", "smallint out of range");
    if (type == KV_INT4 && (v < INT32_MIN || v > INT32_MAX))
        return column_error(r, column, "22003", "integer out of range");
    return ST_OK;
}

static status check_meta_column(struct kv_run *r, unsigned c, const struct kv_datum *d)
{
    if (c == META_MODE && (d->i < 0 || d->i > MODE_MAX)) {
        status st = range_error(r, c, d->i);
        err_detail(r->err, "Permission bits run from 0 to 07777.");
        return st;
    }
    if ((c == META_SIZE && d->i < 0) || (c == META_NLINK && d->i < 1))
        return range_error(r, c, d->i);
    if (c == META_ATTR && d->b.size > LIMIT_ATTR_BYTES)
        return length_error(r, c, LIMIT_ATTR_BYTES);
    return ST_OK;
}

/* Longest value of a text or bytea column outside meta. */
static size_t length_max(const struct kv_run *r, unsigned column)
{
    if (r->op->table == KV_KV && column == KVT_VALUE)
        return LIMIT_KV_VALUE_BYTES;
    if (r->op->table == KV_OBJECT && column == OBJECT_ATTR)
        return LIMIT_ATTR_BYTES;
    return LIMIT_KEY_BYTES;
}

static status check_plain_column(struct kv_run *r, unsigned c, const struct kv_datum *d)
{
    const struct kv_column *column = &r->def->columns[c];
    if (!type_is_bytes(column->type)) {
        if (r->op->table == KV_OBJECT && c == OBJECT_SIZE && d->i < 0)
            return range_error(r, c, d->i);
        if (r->op->table == KV_LIFECYCLE && d->i <= 0)
            return column_error(r, c, "22023", "expire_after must be positive");
        return ST_OK;
    }
    if (d->b.size > length_max(r, c))
        return length_error(r, c, length_max(r, c));
    bool may_be_empty = !column->key || (r->op->table == KV_LIFECYCLE && c == LIFECYCLE_PREFIX);
    if (d->b.size == 0 && !may_be_empty)
        return column_error(r, c, "22023", "%s is empty", column->name);
    if (column->type == KV_TEXT && d->b.size > 0 && memchr(d->b.data, 0, d->b.size) != NULL)
        return column_error(r, c, "22021", "%s contains a zero byte", column->name);
    return ST_OK;
}

status kv__check_values(struct kv_run *r, const struct kv_row *row)
{
    bool meta = r->op->table == KV_META;
    for (unsigned c = 0; c < r->def->column_count; c++) {
        const struct kv_datum *d = &row->col[c];
        const struct kv_column *column = &r->def->columns[c];
        if (d->deflt || column->read_only)
            continue;
        if (d->null) {
            if (column->key || column->not_null || (meta && meta_has_default(r, c)))
                return null_error(r, c);
            continue;
        }
        if (!type_is_bytes(column->type))
            ST_TRY(check_int_type(r, c, d->i));
        ST_TRY(meta ? check_meta_column(r, c, d) : check_plain_column(r, c, d));
    }
    return ST_OK;
}

/* -- SET --------------------------------------------------------------------------------------- */

bool kv__sets_column(const struct kv_op *op, unsigned column)
{
    for (unsigned i = 0; i < op->set_count; i++)
        if (op->sets[i].column == column)
            return true;
    return false;
}

static status check_settable(struct kv_run *r, const struct kv_set *s)
{
    const struct kv_column *column = &r->def->columns[s->column];
    if (column->read_only && !(s->kind == KV_SET_VALUE && s->value.deflt))
        return column_error(r, s->column, "428C9", "column \"%s\" can only be updated to DEFAULT",
                            column->name);
    if (column->key || (r->op->table == KV_META && s->column == META_TYPE)) {
        err_set(r->err, ST_UNSUPPORTED, "column \"%s\" cannot be changed by this statement",
                column->name);
        err_where(r->err, "public", r->def->name, column->name, NULL);
        return ST_UNSUPPORTED;
    }
    return ST_OK;
}

static int compare_datums(enum kv_type type, const struct kv_datum *a, const struct kv_datum *b)
{
    if (type_is_bytes(type))
        return bytes_cmp(a->b, b->b);
    return a->i < b->i ? -1 : a->i > b->i;
}

/* greatest(OLD, VALUE), or least with SIGN -1: NULLs are ignored. */
static struct kv_datum extreme(enum kv_type type, const struct kv_datum *old,
                               const struct kv_datum *value, int sign)
{
    if (old->null)
        return *value;
    if (value->null)
        return *old;
    return compare_datums(type, value, old) * sign > 0 ? *value : *old;
}

static status add(struct kv_run *r, unsigned column, const struct kv_datum *old,
                  const struct kv_datum *value, struct kv_datum *out)
{
    *out = KV_NULL;
    if (old->null || value->null)
        return ST_OK;
    int64_t sum;
    if (type_is_bytes(r->def->columns[column].type) ||
        __builtin_add_overflow(old->i, value->i, &sum))
        return column_error(r, column, "22003", "bigint out of range");
    *out = kv_int(sum);
    return check_int_type(r, column, sum);
}

static status set_one(struct kv_run *r, const struct kv_set *s, const struct kv_row *old,
                      const struct kv_row *excluded, struct kv_datum *out)
{
    enum kv_type type = r->def->columns[s->column].type;
    const struct kv_datum *before = &old->col[s->column];
    switch (s->kind) {
    case KV_SET_VALUE:
        *out = s->value;
        if (s->value.deflt && !(r->op->table == KV_META && s->column == META_ID))
            *out = kv__default(r, s->column,
                               r->op->table == KV_META && old->col[META_TYPE].i == KV_TYPE_DIR);
        return ST_OK;
    case KV_SET_ADD: return add(r, s->column, before, &s->value, out);
    case KV_SET_GREATEST: *out = extreme(type, before, &s->value, 1); return ST_OK;
    case KV_SET_LEAST: *out = extreme(type, before, &s->value, -1); return ST_OK;
    case KV_SET_EXCLUDED:
        if (excluded == NULL || type_is_bytes(type) != type_is_bytes(r->def->columns[s->from].type))
            return err_set(r->err, ST_INVALID, "excluded does not fit column \"%s\"",
                           r->def->columns[s->column].name);
        *out = excluded->col[s->from];
        return check_int_type(r, s->column, type_is_bytes(type) || out->null ? 0 : out->i);
    }
    return ST_INTERNAL;
}

status kv__apply_sets(struct kv_run *r, const struct kv_row *old, const struct kv_row *excluded,
                      struct kv_row *out)
{
    *out = *old;
    for (unsigned i = 0; i < r->op->set_count; i++) {
        const struct kv_set *s = &r->op->sets[i];
        struct kv_datum value;
        ST_TRY(check_settable(r, s));
        if (r->def->columns[s->column].read_only)
            continue;
        ST_TRY(set_one(r, s, old, excluded, &value));
        out->col[s->column] = value;
    }
    return ST_OK;
}

/* -- WHERE ------------------------------------------------------------------------------------- */

static bool filter_matches(enum kv_type type, const struct kv_filter *f, const struct kv_datum *d)
{
    if (f->cmp == KV_IS_NULL || f->cmp == KV_IS_NOT_NULL)
        return d->null == (f->cmp == KV_IS_NULL);
    if (d->null || f->value.null || f->value.deflt)
        return false;
    int c = compare_datums(type, d, &f->value);
    switch (f->cmp) {
    case KV_EQ: return c == 0;
    case KV_NE: return c != 0;
    case KV_LT: return c < 0;
    case KV_LE: return c <= 0;
    case KV_GT: return c > 0;
    case KV_GE: return c >= 0;
    case KV_IS_NULL:
    case KV_IS_NOT_NULL: break;
    }
    return false;
}

bool kv__filters_match(enum kv_table t, const struct kv_filter *filters, unsigned count,
                       const struct kv_row *row)
{
    const struct kv_table_def *def = kv_table_def(t);
    for (unsigned i = 0; i < count; i++)
        if (!filter_matches(def->columns[filters[i].column].type, &filters[i],
                            &row->col[filters[i].column]))
            return false;
    return true;
}

bool kv__expired(const struct kv_rules *rules, const struct kv_row *row, int64_t now)
{
    if (row->table == KV_OBJECT)
        return kv_object_due(rules, row) <= now;
    const struct kv_datum *d = &row->col[KVT_EXPIRES_AT];
    return row->table == KV_KV && !d->null && d->i <= now;
}
