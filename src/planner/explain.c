/*
 * planner/explain.c — what EXPLAIN prints: the pattern, its handler and scope, where the data is,
 * the keys that bound the work, and with ANALYZE what the call counted.
 *
 * Nothing is estimated, so there are no costs and no row guesses.
 */
#include "kv/key.h"
#include "planner/pl_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct lines {
    void (*line)(void *arg, const char *text);
    void *arg;
};

static void say(const struct lines *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(const struct lines *l, const char *fmt, ...)
{
    char buf[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof(buf), fmt, ap);
    va_end(ap);
    l->line(l->arg, buf);
}

/* A key as its columns: (17, 'a'); a bound between keys as bytes. */
static const char *show_key(bytes key, struct arena *a)
{
    struct kv_row row;
    uint32_t ns;
    char out[400];
    size_t n = 0;
    if (key.size == 0)
        return "the end";
    /* A bound that leaves its value out, or takes it in at the upper end, is the value's key and a
     * zero byte. */
    bytes before = bytes_make(key.data, key.size - 1);
    if (key.data[key.size - 1] == 0 && kv_key_decode(a, before, &ns, &row) == ST_OK &&
        kv_table_def(row.table)->columns[kv_table_def(row.table)->key_count - 1].type == KV_TEXT &&
        row.col[kv_table_def(row.table)->key_count - 1].b.size > 0)
        return arena_printf(a, "just behind %s", show_key(before, a));
    if (kv_key_decode(a, key, &ns, &row) != ST_OK) {
        n = (size_t)snprintf(out, sizeof(out), "key ");
        for (size_t i = KV_KEY_HEADER; i < key.size && n + 3 < sizeof(out); i++)
            n += (size_t)snprintf(out + n, sizeof(out) - n, "%02x", key.data[i]);
        return arena_printf(a, "%s", out);
    }
    const struct kv_table_def *def = kv_table_def(row.table);
    out[n++] = '(';
    for (unsigned i = 0; i < def->key_count && n < sizeof(out) - 8; i++) {
        if (i > 0)
            n += (size_t)snprintf(out + n, sizeof(out) - n, ", ");
        if (def->columns[i].type == KV_TEXT)
            n += (size_t)snprintf(out + n, sizeof(out) - n, "'%.*s'",
                                  (int)(row.col[i].b.size < 80 ? row.col[i].b.size : 80),
                                  (const char *)row.col[i].b.data);
        else
            n += (size_t)snprintf(out + n, sizeof(out) - n, "%" PRId64, row.col[i].i);
        if (n > sizeof(out) - 2)
            n = sizeof(out) - 2;
    }
    return arena_printf(a, "%.*s)", (int)n, out);
}

static void explain_filters(const struct lines *l, const struct kv_table_def *def,
                            const struct kv_filter *filters, unsigned count)
{
    static const char *const ops[] = {[KV_EQ] = "=",
                                      [KV_NE] = "<>",
                                      [KV_LT] = "<",
                                      [KV_LE] = "<=",
                                      [KV_GT] = ">",
                                      [KV_GE] = ">=",
                                      [KV_IS_NULL] = "IS NULL",
                                      [KV_IS_NOT_NULL] = "IS NOT NULL"};
    for (unsigned i = 0; i < count; i++)
        say(l, "  Filter: %s %s%s", def->columns[filters[i].column].name, ops[filters[i].cmp],
            filters[i].cmp < KV_IS_NULL ? " ?" : "");
}

/* Bounds of the header alone lie before and behind all keys of the table. */
static void explain_range(const struct lines *l, bytes lower, bytes upper, bool backwards,
                          struct arena *a)
{
    bool first = lower.size <= KV_KEY_HEADER, last = upper.size <= KV_KEY_HEADER;
    const char *order = backwards ? ", backwards" : "";
    if (first && last)
        say(l, "  Range: the whole table%s", order);
    else
        say(l, "  Range: from %s to %s%s", first ? "the first key" : show_key(lower, a),
            last ? "the last key" : show_key(upper, a), order);
}

static void explain_read(const struct lines *l, const struct kv_read *r, struct arena *a)
{
    const struct kv_table_def *def = kv_table_def(r->table);
    switch (r->kind) {
    case KV_READ_POINTS:
        say(l, "  Keys: %u", r->point_count);
        for (unsigned i = 0; i < r->point_count && i < 8; i++)
            say(l, "    %s", show_key(r->points[i], a));
        break;
    case KV_READ_RANGE:
    case KV_READ_COUNT: explain_range(l, r->lower, r->upper, r->backwards, a); break;
    case KV_READ_RESOLVE:
    case KV_READ_USAGE:
        say(l, "  Path: '%.*s' below %" PRId64, (int)r->path.size, (const char *)r->path.data,
            r->pid);
        break;
    case KV_READ_LIST_ATTR:
        say(l, "  Directory: %" PRId64 ", after '%.*s'", r->pid, (int)r->after.size,
            (const char *)r->after.data);
        break;
    case KV_READ_OBJECTS:
        say(l, "  Bucket: '%.*s', prefix '%.*s', delimiter '%.*s', after '%.*s'",
            (int)r->bucket.size, (const char *)r->bucket.data, (int)r->prefix.size,
            (const char *)r->prefix.data, (int)r->delimiter.size, (const char *)r->delimiter.data,
            (int)r->after.size, (const char *)r->after.data);
        break;
    case KV_READ_NOTHING: say(l, "  Nothing: a condition holds for no row"); break;
    }
    explain_filters(l, def, r->filters, r->filter_count);
    if (r->limit >= 0)
        say(l, "  Limit: %" PRId64, r->limit);
    if (r->for_update)
        say(l, "  Locks the rows found");
}

static void explain_write(const struct lines *l, const struct kv_op *op, struct arena *a)
{
    const struct kv_table_def *def = kv_table_def(op->table);
    switch ((int)op->kind) {
    case KV_OP_INSERT: say(l, "  Rows: %u", op->row_count); break;
    case KV_OP_UPDATE:
    case KV_OP_DELETE: say(l, "  Keys: %u", op->key_count); break;
    case KV_OP_DELETE_RANGE: explain_range(l, op->lower, op->upper, false, a); break;
    case KV_OP_MOVE:
    case KV_OP_LINK:
        say(l, "  From: (%" PRId64 ", '%.*s') to (%" PRId64 ", '%.*s')", op->pid,
            (int)op->name.size, (const char *)op->name.data, op->new_pid, (int)op->new_name.size,
            (const char *)op->new_name.data);
        break;
    default:
        say(l, "  Entry: (%" PRId64 ", '%.*s')", op->pid, (int)op->name.size,
            (const char *)op->name.data);
    }
    explain_filters(l, def, op->filters, op->filter_count);
}

void pl_explain(const struct pl_statement *s, const struct pl_bound *b, struct cl_client *client,
                const struct cl_call_stats *stats, int64_t rows,
                void (*line)(void *arg, const char *text), void *arg)
{
    const struct lines l = {.line = line, .arg = arg};
    const struct pl_plan *plan = s->plan;
    struct arena a;
    struct cl_where where;
    bool table = plan->kind == PL_READ || plan->kind == PL_WRITE;
    arena_init(&a, 1024);
    if (plan->pattern != NULL) {
        say(&l, "Pattern: %s", plan->pattern->name);
        say(&l, "  Handler: %s", plan->pattern->handler);
        say(&l, "  Scope: %s", plan->pattern->scope);
    } else {
        say(&l, "Pattern: none");
    }
    if (table && b != NULL) {
        enum kv_table t = plan->kind == PL_READ ? b->read.table : b->op.table;
        if (client != NULL && cl_locate(client, t, &where) == ST_OK)
            say(&l, "  Shard: %" PRIu64 " of table %s, leader on node %" PRIu64, where.shard,
                where.table, where.leader);
        if (plan->kind == PL_READ)
            explain_read(&l, &b->read, &a);
        else
            explain_write(&l, &b->op, &a);
    }
    if (stats != NULL) {
        say(&l, "Actual rows: %" PRId64, rows);
        say(&l,
            "  Stages (us): plan %" PRIu64 ", queue %" PRIu64 ", stored %" PRIu64
            ", applied %" PRIu64 ", read %" PRIu64,
            stats->plan_us, stats->queue_us, stats->stored_us, stats->applied_us, stats->read_us);
        say(&l,
            "  Keys: %" PRIu64 ", tombstones: %" PRIu64 ", log bytes: %" PRIu64
            ", pool trips: %" PRIu64,
            stats->keys, stats->tombstones, stats->log_bytes, stats->pool_trips);
    }
    arena_fini(&a);
}
