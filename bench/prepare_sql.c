/*
 * bench/prepare_sql.c — data and counts of metadb and PostgreSQL. Rows are loaded by COPY; metadb's
 * directories by INSERT, since their ids are given.
 */
#include "prepare.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define DIRECTORY_BATCH 250u

/* Calls F for each directory of the run, the second ones of a rename included. */
static void each_directory(const struct generator *g, void (*f)(void *arg, uint64_t id), void *arg)
{
    unsigned count = generator_directory_count(g);
    for (unsigned i = 0; i < count; i++)
        f(arg, g->base + i);
    for (unsigned i = 0; i < count && g->workload->access == ACCESS_RENAME; i++)
        f(arg, g->base + SECOND_DIRECTORIES + i);
}

/* Calls F for each entry that is there before the run. */
static void each_entry(struct control *c, const struct generator *g,
                       void (*f)(struct control *c, const struct op *op))
{
    struct op op;
    for (unsigned owner = 0; owner < prepare_owner_count(g); owner++) {
        for (uint64_t n = 0; n < g->entries; n++) {
            generator_entry(g, owner, n, &op);
            f(c, &op);
        }
    }
}

static void each_key(struct control *c, const struct generator *g)
{
    struct op op;
    control_copy_begin(c, "COPY kv (key, value) FROM STDIN");
    for (uint64_t key = 0; key < g->keys; key += 2) {
        generator_key(g, key, &op);
        control_copy_row(c, "%s\t%s\n", op.k, op.v);
    }
    control_copy_end(c);
}

static int64_t number(struct control *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int64_t number(struct control *c, const char *format, ...)
{
    char *sql;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&sql, format, ap) < 0)
        die("out of memory");
    va_end(ap);
    int64_t n = control_number(c, sql);
    free(sql);
    return n;
}

/* The keys of a run lie between "k000000100-" and "k000000100.". */
static int64_t count_keys(struct control *c, const struct generator *g)
{
    return number(
        c, "SELECT count(*) FROM kv WHERE key >= 'k%09" PRIu64 "-' AND key < 'k%09" PRIu64 ".'",
        g->base, g->base);
}

struct batch {
    struct control *control;
    struct out sql;
    unsigned rows;
};

static void flush_batch(struct batch *b)
{
    if (b->rows == 0)
        return;
    out_u8(&b->sql, 0);
    control_exec(b->control, "%s", (const char *)b->sql.data);
    b->sql.size = b->rows = 0;
}

static void metadb_directory(void *arg, uint64_t id)
{
    struct batch *b = arg;
    char row[128];
    out_text(&b->sql, b->rows == 0 ? "INSERT INTO meta (pid, name, id, type) VALUES " : ", ");
    snprintf(row, sizeof row, "(0, 'b%" PRIu64 "', %" PRIu64 ", 'd')", id, id);
    out_text(&b->sql, row);
    if (++b->rows == DIRECTORY_BATCH)
        flush_batch(b);
}

static void metadb_directories(struct control *c, const struct generator *g)
{
    struct batch b = {.control = c};
    each_directory(g, metadb_directory, &b);
    flush_batch(&b);
    out_free(&b.sql);
}

static void metadb_file(struct control *c, const struct op *op)
{
    control_copy_row(c, "%s\t%s\tf\t420\t1000\t1000\t0\n", op->p, op->n);
}

/* With ids of their own, as PostgreSQL gets them. */
static void metadb_subdirectory(struct control *c, const struct op *op)
{
    control_copy_row(c, "%s\t%s\t%s\td\t493\t1000\t1000\n", op->p, op->n, op->i);
}

static void metadb_entries(struct control *c, const struct generator *g)
{
    bool directories = g->workload->directories;
    control_copy_begin(c, directories
                              ? "COPY meta (pid, name, id, type, mode, uid, gid) FROM STDIN"
                              : "COPY meta (pid, name, type, mode, uid, gid, size) FROM STDIN");
    each_entry(c, g, directories ? metadb_subdirectory : metadb_file);
    control_copy_end(c);
}

struct sum {
    struct control *control;
    const char *before, *after; /* of the directory's id in the statement */
    int64_t total;
};

static void add_number(void *arg, uint64_t id)
{
    struct sum *s = arg;
    s->total += number(s->control, "%s%" PRIu64 "%s", s->before, id, s->after);
}

static int64_t sum_directories(struct control *c, const struct generator *g, const char *before,
                               const char *after)
{
    struct sum s = {.control = c, .before = before, .after = after};
    each_directory(g, add_number, &s);
    return s.total;
}

static int64_t metadb_children(struct control *c, const struct generator *g)
{
    return sum_directories(c, g,
                           "SELECT num_children FROM meta WHERE pid = ", " AND name = '_attr_'");
}

static int64_t metadb_listed(struct control *c, const struct generator *g)
{
    return sum_directories(c, g, "SELECT count(*) FROM meta WHERE pid = ", " AND name <> '_attr_'");
}

static int64_t metadb_owned(struct control *c, const struct generator *g)
{
    return sum_directories(c, g, "SELECT value FROM quota WHERE uid = ", " AND name = '#FILE'");
}

/* The index answers by file id only: every client's first and last are looked up, and stand for the
 * rest. */
static int64_t metadb_indexed(struct control *c, const struct generator *g)
{
    struct op op;
    int64_t total = 0;
    for (unsigned client = 0; client < g->clients; client++) {
        uint64_t used = g->used[client];
        bool there = true;
        for (unsigned last = 0; last < 2 && used > 0; last++) {
            generator_entry(g, client, last ? used - 1 : 0, &op);
            there &= number(c, "SELECT pid FROM secondary_index WHERE fid = %s", op.i) ==
                     strtoll(op.p, NULL, 10);
        }
        total += there ? (int64_t)used : 0;
    }
    return total;
}

const struct prepare_ops prepare_metadb = {.directories = metadb_directories,
                                           .entries = metadb_entries,
                                           .keys = each_key,
                                           .children = metadb_children,
                                           .listed = metadb_listed,
                                           .owned = metadb_owned,
                                           .indexed = metadb_indexed,
                                           .key_count = count_keys};

struct pg_directories {
    struct control *control;
    const struct generator *generator;
};

static void pg_directory(void *arg, uint64_t id)
{
    struct pg_directories *d = arg;
    uint64_t children =
        id < d->generator->base + SECOND_DIRECTORIES ? prepare_children(d->generator) : 0;
    control_copy_row(d->control, "%" PRIu64 "\t493\t1000\t1000\t%" PRIu64 "\n", id, children);
}

static void pg_quota(void *arg, uint64_t id)
{
    struct pg_directories *d = arg;
    control_copy_row(d->control, "%" PRIu64 "\t0\n", id);
}

#define COPY_DIRECTORY "COPY directory (id, mode, uid, gid, num_children) FROM STDIN"

static void pg_directories(struct control *c, const struct generator *g)
{
    struct pg_directories d = {.control = c, .generator = g};
    control_copy_begin(c, COPY_DIRECTORY);
    each_directory(g, pg_directory, &d);
    control_copy_end(c);
    if (g->workload->accounted) {
        control_copy_begin(c, "COPY quota (uid, files) FROM STDIN");
        each_directory(g, pg_quota, &d);
        control_copy_end(c);
    }
}

static void pg_entry(struct control *c, const struct op *op)
{
    control_copy_row(c, "%s\t%s\t%s\tf\t420\t1000\t1000\t0\n", op->p, op->n, op->i);
}

static void pg_subdirectory(struct control *c, const struct op *op)
{
    control_copy_row(c, "%s\t%s\t%s\td\t\\N\t\\N\t\\N\t\\N\n", op->p, op->n, op->i);
}

static void pg_subdirectory_row(struct control *c, const struct op *op)
{
    control_copy_row(c, "%s\t493\t1000\t1000\t0\n", op->i);
}

static void pg_entries(struct control *c, const struct generator *g)
{
    bool directories = g->workload->directories;
    control_copy_begin(c, "COPY entry (pid, name, id, kind, mode, uid, gid, size) FROM STDIN");
    each_entry(c, g, directories ? pg_subdirectory : pg_entry);
    control_copy_end(c);
    if (directories) {
        control_copy_begin(c, COPY_DIRECTORY);
        each_entry(c, g, pg_subdirectory_row);
        control_copy_end(c);
    }
    control_exec(c, "VACUUM ANALYZE entry");
}

static int64_t pg_range(struct control *c, const struct generator *g, const char *what,
                        const char *column)
{
    return number(c, "SELECT %s WHERE %s >= %" PRIu64 " AND %s < %" PRIu64, what, column, g->base,
                  column, g->base + 2 * SECOND_DIRECTORIES);
}

static int64_t pg_children(struct control *c, const struct generator *g)
{
    control_exec(c, "SELECT fold_deltas()");
    return pg_range(c, g, "coalesce(sum(num_children), 0) FROM directory", "id");
}

static int64_t pg_listed(struct control *c, const struct generator *g)
{
    return pg_range(c, g, "count(*) FROM entry", "pid");
}

static int64_t pg_owned(struct control *c, const struct generator *g)
{
    return pg_range(c, g, "coalesce(sum(files), 0) FROM quota", "uid");
}

static int64_t pg_indexed(struct control *c, const struct generator *g)
{
    return pg_range(c, g, "count(*) FROM file_index", "pid");
}

const struct prepare_ops prepare_pg = {.directories = pg_directories,
                                       .entries = pg_entries,
                                       .keys = each_key,
                                       .children = pg_children,
                                       .listed = pg_listed,
                                       .owned = pg_owned,
                                       .indexed = pg_indexed,
                                       .key_count = count_keys};
