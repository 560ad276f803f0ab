/*
 * planner/bind_table.c — a plan of compile_table.c and the values of one execution: a kv_read or a
 * kv_op.
 *
 * Values become datums of their columns and keys are encoded. A comparison with NULL holds for no
 * row, so that the bound read is KV_READ_NOTHING, and a write has no keys. A number that is no
 * integer, compared with an integer column, moves to the integer beside it. Two equalities on one
 * key column must agree, or nothing is found.
 *
 * Range bounds are keys: the prefix of the equal columns, then the narrowest of all conditions on
 * the next column. > and <= go behind the value: for a text in the last place to value + zero byte,
 * for others to the end of everything that starts with it.
 */
#include "base/assert.h"
#include "kv/key.h"
#include "planner/pl_internal.h"

#include <stdlib.h>

/* -- values --------------------------------------------------------------------------- */

enum match { MATCH_VALUE, MATCH_NEVER, MATCH_ALWAYS };

/* A number against an integer column: the comparison with the integer beside it. */
static enum match match_number(const struct pl_value *v, enum kv_cmp *cmp, struct kv_datum *out)
{
    char buf[40];
    bool exact, number;
    int beyond;
    bytes text = v->b;
    if (v->oid != OID_NUMERIC) {
        struct obuf o;
        obuf_init(&o);
        pl_value_to_text(v, NULL, &o);
        text = bytes_make(buf, o.size < sizeof(buf) ? o.size : 0);
        memcpy(buf, o.data, text.size);
        obuf_fini(&o);
    }
    number = pl__number_to_int(text, &out->i, &exact, &beyond);
    if (!number) { /* NaN and infinities: above every integer, but for -Infinity */
        beyond = text.size > 0 && text.data[0] == '-' ? -1 : 1;
        exact = false;
    }
    if (beyond != 0) {
        bool above = *cmp == KV_LT || *cmp == KV_LE;
        if (*cmp == KV_NE)
            return MATCH_ALWAYS;
        return *cmp != KV_EQ && above == (beyond > 0) ? MATCH_ALWAYS : MATCH_NEVER;
    }
    if (exact)
        return MATCH_VALUE;
    if (*cmp == KV_EQ)
        return MATCH_NEVER;
    if (*cmp == KV_NE)
        return MATCH_ALWAYS;
    *cmp = *cmp == KV_GE ? KV_GT : *cmp == KV_LT ? KV_LE : *cmp; /* against the integer below */
    return MATCH_VALUE;
}

static enum match match_char(const struct pl_value *v, enum kv_cmp cmp, struct kv_datum *out)
{
    if (v->oid == OID_CHAR) {
        out->i = v->i;
        return MATCH_VALUE;
    }
    out->i = v->b.size == 0 ? 0 : v->b.data[0];
    if (v->oid == OID_UNKNOWN || v->b.size <= 1)
        return MATCH_VALUE;
    return cmp == KV_NE ? MATCH_ALWAYS : MATCH_NEVER;
}

/* V compared by *CMP with column K: the datum to compare with, or that it holds never or always. */
static status match_value(const struct pl__bind *b, const struct kv_column *k,
                          const struct pl_value *v, enum kv_cmp *cmp, struct kv_datum *out,
                          enum match *match)
{
    struct pl_value x;
    *out = (struct kv_datum){0};
    *match = MATCH_NEVER;
    if (v->null)
        return ST_OK;
    *match = MATCH_VALUE;
    switch (k->type) {
    case KV_INT2:
    case KV_INT4:
    case KV_INT8:
        if (v->oid == OID_NUMERIC || v->oid == OID_FLOAT4 || v->oid == OID_FLOAT8) {
            *match = match_number(v, cmp, out);
            return ST_OK;
        }
        /* A text is read as a bigint also for smaller columns only if it is no literal of its own
         * type. */
        ST_TRY(pl_value_convert(v, v->oid == OID_UNKNOWN ? pl_type_of(k->type) : OID_INT8, -1,
                                false, b->ctx->style, b->ctx->now, b->a, &x, b->err));
        out->i = x.i;
        return ST_OK;
    case KV_CHAR: *match = match_char(v, *cmp, out); return ST_OK;
    case KV_TEXT:
    case KV_BYTEA:
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL:
        ST_TRY(pl_value_convert(v, pl_type_of(k->type), -1, false, b->ctx->style, b->ctx->now, b->a,
                                &x, b->err));
        *out = k->type == KV_TEXT || k->type == KV_BYTEA ? kv_text(x.b) : kv_int(x.i);
        return ST_OK;
    }
    return ST_OK;
}

static status match_expr(const struct pl__bind *b, const struct kv_column *k,
                         const struct pl__expr *e, unsigned shift, enum kv_cmp *cmp,
                         struct kv_datum *out, enum match *match)
{
    struct pl_value v;
    ST_TRY(pl__eval(b, e, shift, &v));
    status st = match_value(b, k, &v, cmp, out, match);
    return st == ST_OK ? ST_OK : pl__eval_error(b, e, shift, st);
}

/* E as a value to store in column K. */
static status store_value(const struct pl__bind *b, const struct kv_table_def *def, unsigned column,
                          const struct pl__expr *e, unsigned shift, struct kv_datum *out)
{
    const struct kv_column *k = &def->columns[column];
    struct pl_value v;
    if (e->kind == EXPR_DEFAULT) {
        *out = (struct kv_datum){.deflt = true};
        return ST_OK;
    }
    ST_TRY(pl__eval(b, e, shift, &v));
    status st = ST_OK;
    bool number =
        v.oid == OID_NUMERIC || v.oid == OID_FLOAT8 || v.oid == OID_INT8 || v.oid == OID_INT4;
    if (v.oid != pl_type_of(k->type) && !(number && pl__integer_column(k)))
        st = pl_value_convert(&v, pl_type_of(k->type), -1, false, b->ctx->style, b->ctx->now, b->a,
                              &v, b->err);
    if (st == ST_OK)
        st = pl_value_to_datum(&v, k->type, k->name, out, b->err);
    if (st != ST_OK)
        return pl__eval_error(b, e, shift, st);
    if (out->null && k->not_null) {
        err_set_state(b->err, ST_INVALID, "23502",
                      "null value in column \"%s\" of relation \"%s\" violates not-null constraint",
                      k->name, def->name);
        err_where(b->err, "public", def->name, k->name, NULL);
        return ST_INVALID;
    }
    return ST_OK;
}

/* -- conditions ----------------------------------------------------------------------- */

/* What WHERE came to. */
struct keys {
    struct kv_datum eq[8]; /* values of the equal key columns */
    unsigned eq_count;
    bool nothing;       /* no row can fit */
    bytes lower, upper; /* range; upper empty = to the end of the prefix (set before) */
    struct kv_filter *filters;
    unsigned filter_count;
    struct kv_datum *list; /* values for the last key column */
    unsigned list_count;
};

static bool same_datum(const struct kv_column *k, const struct kv_datum *a,
                       const struct kv_datum *b)
{
    if (k->type == KV_TEXT || k->type == KV_BYTEA)
        return bytes_eq(a->b, b->b);
    return a->i == b->i;
}

static void narrow_lower(struct keys *k, bytes key)
{
    if (bytes_cmp(key, k->lower) > 0)
        k->lower = key;
}

static void narrow_upper(struct keys *k, bytes key)
{
    if (k->upper.size == 0 || bytes_cmp(key, k->upper) < 0)
        k->upper = key;
}

/* The end of what VALUES, the first COUNT key columns, cover. */
static bytes behind(const struct pl__bind *b, const struct kv_table_def *def,
                    const struct kv_datum *values, unsigned count)
{
    bytes key = kv_key_prefix(b->a, b->ctx->ns, def->table, values, count);
    return count == def->key_count ? kv_key_successor(b->a, key) : kv_key_after_prefix(b->a, key);
}

/* One bound by comparison CMP with VALUES, the first COUNT key columns. */
static void bound(const struct pl__bind *b, const struct kv_table_def *def, struct keys *k,
                  enum kv_cmp cmp, const struct kv_datum *values, unsigned count)
{
    bytes key = cmp == KV_GE || cmp == KV_LT
                    ? kv_key_prefix(b->a, b->ctx->ns, def->table, values, count)
                    : behind(b, def, values, count);
    if (cmp == KV_GT && key.size == 0)
        k->nothing = true; /* nothing lies behind the largest prefix */
    else if (cmp == KV_GT || cmp == KV_GE)
        narrow_lower(k, key);
    else if (key.size > 0)
        narrow_upper(k, key);
}

static status range_cond(const struct pl__bind *b, const struct pl__table *t,
                         const struct pl__cond *cond, struct keys *k)
{
    enum kv_cmp cmp = cond->cmp;
    enum match match;
    struct kv_datum values[8];
    memcpy(values, k->eq, sizeof(values));
    ST_TRY(match_expr(b, &t->def->columns[cond->column], cond->values[0], 0, &cmp,
                      &values[k->eq_count], &match));
    if (match == MATCH_NEVER)
        k->nothing = true;
    else if (match == MATCH_VALUE)
        bound(b, t->def, k, cmp, values, k->eq_count + 1);
    return ST_OK;
}

/* (a, b) > (x, y): a NULL in y only matters where a = x, and then the comparison is not true. */
static status row_cond(const struct pl__bind *b, const struct pl__table *t,
                       const struct pl__cond *cond, struct keys *k)
{
    struct kv_datum values[8];
    for (unsigned i = 0; i < cond->count; i++) {
        enum kv_cmp cmp = i + 1 < cond->count ? KV_EQ : cond->cmp;
        enum match match;
        ST_TRY(match_expr(b, &t->def->columns[i], cond->values[i], 0, &cmp, &values[i], &match));
        if (match == MATCH_VALUE)
            continue;
        struct pl_value v;
        ST_TRY(pl__eval(b, cond->values[i], 0, &v));
        if (!v.null)
            return err_set(b->err, ST_UNSUPPORTED,
                           "a row comparison takes integers within the column's range");
        if (i == 0)
            k->nothing = true;
        else
            bound(b, t->def, k, cond->cmp == KV_GT || cond->cmp == KV_GE ? KV_GT : KV_LT, values,
                  i);
        return ST_OK;
    }
    bound(b, t->def, k, cond->cmp, values, cond->count);
    return ST_OK;
}

/* A LIKE pattern as a prefix. *EXACT: without % at its end. */
static status like_prefix(const struct pl__bind *b, bytes pattern, bytes *prefix, bool *exact)
{
    uint8_t *p = arena_alloc(b->a, pattern.size + 1);
    size_t n = 0, i = 0;
    for (; i < pattern.size && pattern.data[i] != '%' && pattern.data[i] != '_'; i++) {
        if (pattern.data[i] == '\\' && ++i == pattern.size)
            return err_set_state(b->err, ST_INVALID, "22025",
                                 "LIKE pattern must not end with escape character");
        p[n++] = pattern.data[i];
    }
    *prefix = bytes_make(p, n);
    *exact = i == pattern.size;
    while (i < pattern.size && pattern.data[i] == '%')
        i++;
    if (i == pattern.size)
        return ST_OK;
    err_set(b->err, ST_UNSUPPORTED, "statement matches no metadata pattern");
    err_detail(
        b->err,
        "LIKE takes a pattern of the form prefix%%; a wildcard stands elsewhere in this one.");
    err_hint(b->err, "SELECT * FROM metadb.patterns");
    return ST_UNSUPPORTED;
}

static status like_cond(const struct pl__bind *b, const struct pl__table *t,
                        const struct pl__cond *cond, struct keys *k)
{
    enum kv_cmp cmp = KV_EQ;
    enum match match;
    struct kv_datum values[8];
    bool exact = false;
    memcpy(values, k->eq, sizeof(values));
    struct kv_datum *last = &values[k->eq_count];
    ST_TRY(match_expr(b, &t->def->columns[cond->column], cond->values[0], 0, &cmp, last, &match));
    if (match != MATCH_VALUE) {
        k->nothing = true;
        return ST_OK;
    }
    ST_TRY(like_prefix(b, last->b, &last->b, &exact));
    if (exact || t->eq_count + 1 < t->def->key_count) {
        if (!exact)
            return err_set(b->err, ST_UNSUPPORTED, "LIKE is for the last column of the key");
        bound(b, t->def, k, KV_GE, values, k->eq_count + 1);
        bound(b, t->def, k, KV_LE, values, k->eq_count + 1);
        return ST_OK;
    }
    bytes key = kv_key_prefix(b->a, b->ctx->ns, t->def->table, values, k->eq_count + 1);
    narrow_lower(k, key);
    bytes end = kv_key_after_prefix(b->a, key);
    if (end.size > 0)
        narrow_upper(k, end);
    return ST_OK;
}

static status equal_cond(const struct pl__bind *b, const struct pl__table *t,
                         const struct pl__cond *cond, struct keys *k)
{
    enum kv_cmp cmp = KV_EQ;
    enum match match;
    struct kv_datum d;
    ST_TRY(match_expr(b, &t->def->columns[cond->column], cond->values[0], 0, &cmp, &d, &match));
    if (match != MATCH_VALUE)
        k->nothing = true;
    if (cond->column < k->eq_count &&
        !same_datum(&t->def->columns[cond->column], &k->eq[cond->column], &d))
        k->nothing = true;
    if (cond->column == k->eq_count) {
        k->eq[cond->column] = d;
        k->eq_count++;
    }
    return ST_OK;
}

static status filter_cond(const struct pl__bind *b, const struct pl__table *t,
                          const struct pl__cond *cond, struct keys *k)
{
    struct kv_filter *f = &k->filters[k->filter_count];
    *f = (struct kv_filter){.column = cond->column, .cmp = cond->cmp};
    if (cond->cmp < KV_IS_NULL) {
        enum match match;
        ST_TRY(match_expr(b, &t->def->columns[cond->column], cond->values[0], 0, &f->cmp, &f->value,
                          &match));
        if (match == MATCH_NEVER)
            k->nothing = true;
        else if (match == MATCH_ALWAYS)
            f->cmp = KV_IS_NOT_NULL;
    }
    k->filter_count++;
    return ST_OK;
}

static status list_item(const struct pl__bind *b, const struct kv_column *column,
                        const struct pl_value *v, struct keys *k)
{
    enum kv_cmp cmp = KV_EQ;
    enum match match;
    ST_TRY(match_value(b, column, v, &cmp, &k->list[k->list_count], &match));
    k->list_count += match == MATCH_VALUE;
    return ST_OK;
}

static status list_cond(const struct pl__bind *b, const struct pl__table *t,
                        const struct pl__cond *cond, struct keys *k)
{
    const struct kv_column *column = &t->def->columns[cond->column];
    unsigned count =
        cond->repeat >= 0 && b->s->repeats != NULL ? b->s->repeats[cond->repeat] : cond->count;
    if (count > LIMIT_STATEMENT_ROWS)
        return err_set(b->err, ST_LIMIT, "a list has at most %u values", LIMIT_STATEMENT_ROWS);
    k->list = ARENA_ARRAY(b->a, struct kv_datum, count + 1);
    for (unsigned i = 0; i < count; i++) {
        unsigned shift = cond->repeat >= 0 ? i : 0;
        const struct pl__expr *e = cond->values[cond->repeat >= 0 ? 0 : i];
        struct pl_value v;
        ST_TRY(pl__eval(b, e, shift, &v));
        status st = list_item(b, column, &v, k);
        if (st != ST_OK)
            return pl__eval_error(b, e, shift, st);
    }
    return ST_OK;
}

static status array_cond(const struct pl__bind *b, const struct pl__table *t,
                         const struct pl__cond *cond, struct keys *k)
{
    const struct kv_column *column = &t->def->columns[cond->column];
    struct pl_value v;
    ST_TRY(pl__eval(b, cond->values[0], 0, &v));
    if (!v.null && pl_type_element(v.oid) == 0) {
        status st = pl_value_convert(&v, pl_type_array(pl_type_of(column->type)), -1, true,
                                     b->ctx->style, b->ctx->now, b->a, &v, b->err);
        if (st != ST_OK)
            return pl__eval_error(b, cond->values[0], 0, st);
    }
    if (v.null)
        return ST_OK;
    if (v.array.count > LIMIT_STATEMENT_ROWS)
        return err_set(b->err, ST_LIMIT, "a list has at most %u values", LIMIT_STATEMENT_ROWS);
    k->list = ARENA_ARRAY(b->a, struct kv_datum, v.array.count + 1);
    for (unsigned i = 0; i < v.array.count; i++)
        ST_TRY(list_item(b, column, &v.array.items[i], k));
    return ST_OK;
}

static status bind_where(const struct pl__bind *b, const struct pl__table *t, struct keys *k)
{
    memset(k, 0, sizeof(*k));
    if (t->where.count > t->eq_count)
        k->filters = ARENA_ARRAY(b->a, struct kv_filter, t->where.count);
    /* Equalities first: bounds are built on them. Conditions are in column order already, but a
     * range may stand before a second equality on the same column. */
    for (unsigned i = 0; i < t->where.count; i++) {
        const struct pl__cond *cond = &t->where.conds[i];
        if (cond->kind == COND_COMPARE && cond->cmp == KV_EQ && cond->column < t->eq_count)
            ST_TRY(equal_cond(b, t, cond, k));
    }
    if (!t->points) {
        k->lower = kv_key_prefix(b->a, b->ctx->ns, t->def->table, k->eq, k->eq_count);
        k->upper = kv_key_after_prefix(b->a, k->lower);
    }
    for (unsigned i = 0; i < t->where.count; i++) {
        const struct pl__cond *cond = &t->where.conds[i];
        if (!pl__is_bound(t, cond)) {
            ST_TRY(filter_cond(b, t, cond, k));
            continue;
        }
        switch (cond->kind) {
        case COND_COMPARE:
            if (cond->column >= t->eq_count)
                ST_TRY(range_cond(b, t, cond, k));
            break;
        case COND_LIKE: ST_TRY(like_cond(b, t, cond, k)); break;
        case COND_ROW: ST_TRY(row_cond(b, t, cond, k)); break;
        case COND_IN: ST_TRY(list_cond(b, t, cond, k)); break;
        case COND_ANY: ST_TRY(array_cond(b, t, cond, k)); break;
        }
    }
    if (t->many && k->list_count == 0)
        k->nothing = true;
    if (!t->points && k->upper.size > 0 && bytes_cmp(k->lower, k->upper) >= 0)
        k->nothing = true;
    return ST_OK;
}

/* -- reads ---------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    return bytes_cmp(*(const bytes *)a, *(const bytes *)b);
}

/* Sorted, each once; backwards if asked for. */
static unsigned sort_points(bytes *points, unsigned count, bool backwards)
{
    unsigned kept = 0;
    qsort(points, count, sizeof(*points), by_bytes);
    for (unsigned i = 0; i < count; i++) {
        if (kept == 0 || !bytes_eq(points[kept - 1], points[i]))
            points[kept++] = points[i];
    }
    for (unsigned i = 0; backwards && i < kept / 2; i++) {
        bytes x = points[i];
        points[i] = points[kept - 1 - i];
        points[kept - 1 - i] = x;
    }
    return kept;
}

static status bind_points(const struct pl__bind *b, const struct pl__table *t, struct keys *k,
                          struct kv_read *r)
{
    const struct kv_table_def *def = t->def;
    unsigned count = t->many ? k->list_count : 1;
    bytes *points = ARENA_ARRAY(b->a, bytes, count);
    for (unsigned i = 0; i < count; i++) {
        if (t->many)
            k->eq[def->key_count - 1] = k->list[i];
        points[i] = kv_key_prefix(b->a, b->ctx->ns, def->table, k->eq, def->key_count);
    }
    r->kind = KV_READ_POINTS;
    r->point_count = count > 1 ? sort_points(points, count, t->backwards) : count;
    r->points = points;
    r->count = t->count;
    return ST_OK;
}

static status bind_limit(const struct pl__bind *b, const struct pl__table *t, struct kv_read *r)
{
    struct pl_value v;
    r->limit = -1;
    if (t->limit == NULL)
        return ST_OK;
    ST_TRY(pl__eval(b, t->limit, 0, &v));
    if (v.null)
        return ST_OK;
    status st = v.oid == OID_UNKNOWN || v.oid == OID_NUMERIC
                    ? pl_value_convert(&v, OID_INT8, -1, false, b->ctx->style, b->ctx->now, b->a,
                                       &v, b->err)
                    : ST_OK;
    if (st != ST_OK)
        return pl__eval_error(b, t->limit, 0, st);
    if (v.i < 0)
        return err_set_state(b->err, ST_INVALID, "2201W", "LIMIT must not be negative");
    r->limit = v.i;
    return ST_OK;
}

static struct kv_op *start_op(struct pl__bind *b, const struct pl__table *t, enum kv_op_kind kind);
static status bind_keys(struct pl__bind *b, const struct pl__table *t, struct keys *k,
                        struct kv_op *op);

status pl__bind_read(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_read *r = &b->out->read;
    struct keys k;
    *r = (struct kv_read){.table = t->def->table,
                          .ns = b->ctx->ns,
                          .now = b->ctx->now,
                          .for_update = t->for_update,
                          .backwards = t->backwards,
                          .columns = t->output};
    ST_TRY(bind_where(b, t, &k));
    ST_TRY(bind_limit(b, t, r));
    if (t->count && r->limit == 0) {
        r->kind = KV_READ_NOTHING; /* not even the count's own row */
        return ST_OK;
    }
    if (t->count)
        r->limit = -1;
    r->filters = k.filters;
    r->filter_count = k.filter_count;
    if (k.nothing) {
        r->kind = KV_READ_NOTHING;
        r->count = t->count;
        return ST_OK;
    }
    if (t->points && t->for_update)
        ST_TRY(bind_keys(b, t, &k, start_op(b, t, KV_OP_LOCK)));
    if (t->points)
        return bind_points(b, t, &k, r);
    r->kind = t->count ? KV_READ_COUNT : KV_READ_RANGE;
    r->lower = k.lower;
    r->upper = k.upper;
    return ST_OK;
}

/* -- writes --------------------------------------------------------------------------- */

static struct kv_op *start_op(struct pl__bind *b, const struct pl__table *t, enum kv_op_kind kind)
{
    b->out->op = (struct kv_op){.kind = kind,
                                .table = t->def->table,
                                .ns = b->ctx->ns,
                                .now = b->ctx->now,
                                .seed = b->ctx->seed,
                                .want_rows = t->want_rows};
    return &b->out->op;
}

static status bind_sets(struct pl__bind *b, const struct pl__table *t, struct kv_op *op)
{
    struct kv_set *sets = ARENA_ARRAY(b->a, struct kv_set, t->set_count + 1);
    for (unsigned i = 0; i < t->set_count; i++) {
        const struct pl__set *s = &t->sets[i];
        sets[i] = (struct kv_set){.column = s->column, .kind = s->kind, .from = s->from};
        if (s->kind == KV_SET_EXCLUDED)
            continue;
        if (s->kind == KV_SET_ADD) { /* the amount may be NULL, and beyond the column's own range */
            struct pl_value v;
            ST_TRY(pl__eval(b, s->value, 0, &v));
            status st = pl_value_convert(&v, OID_INT8, -1, false, b->ctx->style, b->ctx->now, b->a,
                                         &v, b->err);
            if (st == ST_OK && s->negate && __builtin_sub_overflow(INT64_C(0), v.i, &v.i))
                st = err_set_state(b->err, ST_INVALID, "22003", "bigint out of range");
            if (st != ST_OK)
                return pl__eval_error(b, s->value, 0, st);
            sets[i].value = (struct kv_datum){.null = v.null, .i = v.i};
            continue;
        }
        const struct kv_column *k = &t->def->columns[s->column];
        if (s->kind != KV_SET_VALUE && k->not_null) { /* greatest(col, NULL) is col */
            struct pl_value v;
            ST_TRY(pl__eval(b, s->value, 0, &v));
            if (v.null) {
                sets[i].value = KV_NULL;
                continue;
            }
        }
        ST_TRY(store_value(b, t->def, s->column, s->value, 0, &sets[i].value));
    }
    op->sets = sets;
    op->set_count = t->set_count;
    return ST_OK;
}

status pl__bind_insert(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_op *op = start_op(b, t, KV_OP_INSERT);
    unsigned rows =
        t->repeat >= 0 && b->s->repeats != NULL ? b->s->repeats[t->repeat] : t->row_count;
    unsigned stride = 0;
    if (rows > LIMIT_STATEMENT_ROWS)
        return err_set(b->err, ST_LIMIT, "an INSERT has at most %u rows", LIMIT_STATEMENT_ROWS);
    for (unsigned i = 0; i < t->column_count; i++) /* literals of one row */
        stride += t->cells[i]->kind == EXPR_LITERAL;
    struct kv_datum *values =
        ARENA_ARRAY(b->a, struct kv_datum, (size_t)rows * t->column_count + 1);
    for (unsigned r = 0; r < rows; r++) {
        for (unsigned i = 0; i < t->column_count; i++) {
            size_t at = (size_t)r * t->column_count + i;
            const struct pl__expr *e = t->cells[t->repeat >= 0 ? i : at];
            ST_TRY(store_value(b, t->def, t->columns[i], e, t->repeat >= 0 ? r * stride : 0,
                               &values[at]));
        }
    }
    op->columns = t->columns;
    op->column_count = t->column_count;
    op->values = values;
    op->row_count = rows;
    op->conflict = t->conflict;
    return bind_sets(b, t, op);
}

/* Nothing fits: a DELETE of no keys does nothing. */
static status bind_nothing(struct kv_op *op)
{
    op->kind = KV_OP_DELETE;
    op->key_count = 0;
    return ST_OK;
}

static status bind_keys(struct pl__bind *b, const struct pl__table *t, struct keys *k,
                        struct kv_op *op)
{
    unsigned width = t->def->key_count, count = t->many ? k->list_count : 1;
    struct kv_datum *keys = ARENA_ARRAY(b->a, struct kv_datum, (size_t)count * width);
    for (unsigned i = 0; i < count; i++) {
        memcpy(&keys[(size_t)i * width], k->eq, width * sizeof(*keys));
        if (t->many)
            keys[(size_t)i * width + width - 1] = k->list[i];
    }
    op->keys = keys;
    op->key_count = count;
    op->filters = k->filters;
    op->filter_count = k->filter_count;
    return ST_OK;
}

status pl__bind_update(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_op *op = start_op(b, t, KV_OP_UPDATE);
    struct keys k;
    ST_TRY(bind_sets(b, t, op));
    ST_TRY(bind_where(b, t, &k));
    return k.nothing ? bind_nothing(op) : bind_keys(b, t, &k, op);
}

static int by_datum(const void *a, const void *b)
{
    return bytes_cmp(((const struct kv_datum *)a)->b, ((const struct kv_datum *)b)->b);
}

status pl__bind_delete(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_op *op = start_op(b, t, t->points ? KV_OP_DELETE : KV_OP_DELETE_RANGE);
    struct keys k;
    ST_TRY(bind_where(b, t, &k));
    if (k.nothing)
        return bind_nothing(op);
    if (!t->points) {
        op->lower = k.lower;
        op->upper = k.upper;
        return ST_OK;
    }
    if (t->many) { /* a name twice in the list is removed once; the last key column is a text */
        unsigned kept = 0;
        ASSERT(t->def->columns[t->def->key_count - 1].type == KV_TEXT);
        qsort(k.list, k.list_count, sizeof(*k.list), by_datum);
        for (unsigned i = 0; i < k.list_count; i++) {
            if (kept == 0 || !bytes_eq(k.list[kept - 1].b, k.list[i].b))
                k.list[kept++] = k.list[i];
        }
        k.list_count = kept;
    }
    return bind_keys(b, t, &k, op);
}

status pl__bind_move(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_op *op = start_op(b, t, KV_OP_MOVE);
    struct kv_datum pid, name;
    struct keys k;
    ST_TRY(bind_where(b, t, &k));
    if (t->new_pid != NULL)
        ST_TRY(store_value(b, t->def, META_PID, t->new_pid, 0, &pid));
    if (t->new_name != NULL)
        ST_TRY(store_value(b, t->def, META_NAME, t->new_name, 0, &name));
    if (k.nothing)
        return bind_nothing(op);
    op->pid = k.eq[META_PID].i;
    op->name = k.eq[META_NAME].b;
    op->new_pid = t->new_pid != NULL ? pid.i : op->pid;
    op->new_name = t->new_name != NULL ? name.b : op->name;
    op->move = KV_MOVE_RENAME;
    op->filters = k.filters;
    op->filter_count = k.filter_count;
    return ST_OK;
}
