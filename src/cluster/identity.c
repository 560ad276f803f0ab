/*
 * cluster/identity.c — takes possession of a data directory.
 *
 * The identity is a text of "name value" lines that a person can read, ended by a line with the
 * checksum of everything before it. It is written before log and store exist, so a crash at any
 * moment of the first start leaves either nothing but the lock, or an identity.
 *
 * Invariants
 *   D1  The lock is held before anything else of the directory is read or written.
 *   D2  A directory without an identity is used only if it is empty: with log or store content
 *       somebody removed the identity, with anything else it is not ours.
 *   D3  An identity is written once; opening never changes it.
 */
#include "cluster/identity.h"
#include "base/assert.h"
#include "base/checksum.h"
#include "base/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define IDENTITY_NAME "identity"
#define IDENTITY_MAGIC "metadb-identity"
#define IDENTITY_BYTES_MAX 4096u
#define SUM_SEED 0x6d65746164622d69u
#define FIRST_NODE_ID 1u

char *cl_identity_path(struct arena *a, const char *dir, const char *name)
{
    return arena_printf(a, "%s/%s", dir, name);
}

/* Makes the name of PATH in the directory that holds it durable. */
static status sync_parent(struct env *env, struct arena *a, const char *path)
{
    char *parent = arena_printf(a, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash == NULL)
        return env->ops->sync_dir(env, ".");
    slash[slash == parent ? 1 : 0] = '\0';
    return env->ops->sync_dir(env, parent);
}

static status make_one(struct env *env, struct arena *a, const char *path)
{
    status st = env->ops->mkdir(env, path);
    if (st == ST_OK)
        return sync_parent(env, a, path);
    return st == ST_EXISTS ? ST_OK : st;
}

/* Makes DIR and its missing parents. */
static status make_directory(struct env *env, struct arena *a, const char *dir)
{
    char *path = arena_printf(a, "%s", dir);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status st = make_one(env, a, path);
        *slash = '/';
        ST_TRY(st);
    }
    return make_one(env, a, path);
}

struct contents {
    struct env *env;
    struct arena *a;
    const char *dir;
    bool data;    /* a log or a store with something in it */
    bool foreign; /* anything that metadb does not make */
};

static void note_any(void *arg, const char *name)
{
    UNUSED(name);
    *(bool *)arg = true;
}

/* What a first start that was cut short leaves is ours: lock, half an identity, empty folders. */
static void note_entry(void *arg, const char *name)
{
    struct contents *c = arg;
    static const char *const ours[] = {"LOCK", IDENTITY_NAME ".tmp", "lost+found"};
    bool any = false;
    for (unsigned i = 0; i < ARRAY_LEN(ours); i++) {
        if (strcmp(name, ours[i]) == 0)
            return;
    }
    if (strcmp(name, "log") != 0 && strcmp(name, "store") != 0) {
        c->foreign = true;
        return;
    }
    status st = c->env->ops->list(c->env, cl_identity_path(c->a, c->dir, name), note_any, &any);
    c->data |= st != ST_OK || any;
}

/* Only an empty directory becomes a data directory (D2). */
static status check_empty(struct env *env, struct arena *a, const char *dir, struct err *err)
{
    struct contents c = {.env = env, .a = a, .dir = dir};
    status st = env->ops->list(env, dir, note_entry, &c);
    if (st != ST_OK)
        return err_set(err, st, "could not list \"%s\"", dir);
    if (c.data) {
        err_set(err, ST_INVALID, "data directory \"%s\" has a log or a store but no identity file",
                dir);
        err_hint(err,
                 "Use another directory, or put back the file \"identity\" that belongs here.");
        return ST_INVALID;
    }
    if (!c.foreign)
        return ST_OK;
    err_set(err, ST_INVALID, "\"%s\" is neither empty nor a data directory of metadb", dir);
    err_hint(err, "Name a directory that is empty or does not exist.");
    return ST_INVALID;
}

uint64_t cl_identity_replica(const struct cl_identity *id)
{
    if (!id->joined)
        return id->node_id;
    uint64_t part = (id->store_id >> 32) ^ (id->store_id & UINT32_MAX);
    return (part != 0 ? part : 1) << 32 | id->node_id;
}

static status write_identity(struct env *env, struct arena *a, const char *dir,
                             const struct cl_identity *id)
{
    char *body = arena_printf(a,
                              IDENTITY_MAGIC " %" PRIu32 "\ncluster %016" PRIx64 "\nnode %" PRIu64
                                             "\nstore %016" PRIx64 "\nstreams %" PRIu32 "\n",
                              id->format, id->cluster_id, id->node_id, id->store_id, id->streams);
    for (unsigned i = 0; i < id->first_count; i++)
        body = arena_printf(a, "%sfirst %" PRIu64 "\n", body, id->first[i]);
    if (id->joined)
        body = arena_printf(a, "%sjoined 1\n", body);
    uint64_t sum = checksum64(bytes_str(body), SUM_SEED);
    char *text = arena_printf(a, "%ssum %016" PRIx64 "\n", body, sum);
    return env_write_file(env, dir, IDENTITY_NAME, bytes_str(text));
}

/* Non-zero, so that 0 can mean "none". */
static uint64_t random_id(struct env *env)
{
    uint64_t id;
    do {
        id = env_random64(env);
    } while (id == 0);
    return id;
}

static status make_identity(struct env *env, struct arena *a, const char *dir, uint32_t streams,
                            const struct cl_identity *wanted, struct cl_identity *out,
                            struct err *err)
{
    ST_TRY(check_empty(env, a, dir, err));
    /* An earlier start may have made the directory and died before its name was durable. One that
     * somebody else made may lie where we cannot look. */
    (void)sync_parent(env, a, dir);
    *out = *wanted;
    out->cluster_id = wanted->cluster_id != 0 ? wanted->cluster_id : random_id(env);
    out->node_id = wanted->node_id != 0 ? wanted->node_id : FIRST_NODE_ID;
    out->store_id = random_id(env);
    out->format = CL_FORMAT_VERSION;
    out->streams = streams;
    status st = write_identity(env, a, dir, out);
    if (st != ST_OK)
        return err_set(err, st, "could not write \"%s/" IDENTITY_NAME "\"", dir);
    LOG_INFO("node.directory_made", LOG_STR("dir", dir));
    return ST_OK;
}

/* One "NAME value" line at *CURSOR in base BASE; moves the cursor behind it. */
static bool take_line(char **cursor, const char *name, int base, uint64_t *out)
{
    size_t n = strlen(name);
    char *end;
    if (strncmp(*cursor, name, n) != 0 || (*cursor)[n] != ' ')
        return false;
    *out = strtoull(*cursor + n + 1, &end, base);
    if (end == *cursor + n + 1 || *end != '\n')
        return false;
    *cursor = end + 1;
    return true;
}

static status parse_identity(char *text, const char *dir, struct cl_identity *out, struct err *err)
{
    char *cursor = text;
    uint64_t format, streams, sum, joined;
    if (!take_line(&cursor, IDENTITY_MAGIC, 10, &format))
        return err_set(err, ST_INVALID, "\"%s/" IDENTITY_NAME "\" is not an identity of metadb",
                       dir);
    if (format > CL_FORMAT_VERSION) {
        err_set(err, ST_INVALID,
                "data directory \"%s\" has format %" PRIu64
                ", this version of metadb reads up to %u",
                dir, format, CL_FORMAT_VERSION);
        err_hint(err, "Start the newer metadb that wrote it.");
        return ST_INVALID;
    }
    bool whole = take_line(&cursor, "cluster", 16, &out->cluster_id) &&
                 take_line(&cursor, "node", 10, &out->node_id) &&
                 take_line(&cursor, "store", 16, &out->store_id) &&
                 take_line(&cursor, "streams", 10, &streams);
    *out = (struct cl_identity){
        .cluster_id = out->cluster_id, .node_id = out->node_id, .store_id = out->store_id};
    while (whole && out->first_count < CL_FIRST_MAX &&
           take_line(&cursor, "first", 10, &out->first[out->first_count]))
        out->first_count++;
    if (whole && take_line(&cursor, "joined", 10, &joined))
        out->joined = joined != 0;
    size_t summed = (size_t)(cursor - text);
    if (!whole || !take_line(&cursor, "sum", 16, &sum) || *cursor != '\0' ||
        sum != checksum64(bytes_make(text, summed), SUM_SEED) || format == 0 || streams == 0 ||
        streams > UINT32_MAX)
        return err_set(err, ST_CORRUPT, "\"%s/" IDENTITY_NAME "\" is damaged", dir);
    out->format = (uint32_t)format;
    out->streams = (uint32_t)streams;
    return ST_OK;
}

/* A directory of another node or cluster must not speak for this one. */
static status check_wanted(const char *dir, const struct cl_identity *wanted,
                           const struct cl_identity *id, struct err *err)
{
    if (wanted->cluster_id != 0 && wanted->cluster_id != id->cluster_id)
        return err_set(err, ST_INVALID,
                       "data directory \"%s\" belongs to cluster %" PRIu64
                       ", not to cluster %" PRIu64 " (cluster.id)",
                       dir, id->cluster_id, wanted->cluster_id);
    if (wanted->node_id != 0 && wanted->node_id != id->node_id)
        return err_set(err, ST_INVALID,
                       "data directory \"%s\" belongs to node %" PRIu64 ", not to node %" PRIu64
                       " (cluster.node)",
                       dir, id->node_id, wanted->node_id);
    return ST_OK;
}

static status load_identity(struct env *env, struct arena *a, const char *dir, uint32_t streams,
                            const struct cl_identity *wanted, struct cl_identity *out,
                            struct err *err)
{
    bytes content;
    status st = env_read_file(env, a, cl_identity_path(a, dir, IDENTITY_NAME), &content);
    if (st == ST_NOT_FOUND)
        return make_identity(env, a, dir, streams, wanted, out, err);
    if (st != ST_OK)
        return err_set(err, st, "could not read \"%s/" IDENTITY_NAME "\"", dir);
    if (content.size > IDENTITY_BYTES_MAX)
        return err_set(err, ST_CORRUPT, "\"%s/" IDENTITY_NAME "\" is damaged", dir);
    ST_TRY(parse_identity(arena_strdup(a, content), dir, out, err));
    return check_wanted(dir, wanted, out, err);
}

status cl_identity_open(struct env *env, const char *dir, uint32_t streams,
                        const struct cl_identity *wanted, struct cl_identity *out, struct err *err)
{
    struct arena a;
    arena_init(&a, 4096);
    status st = make_directory(env, &a, dir);
    if (st != ST_OK) {
        err_set(err, st, "could not make data directory \"%s\"", dir);
        goto out;
    }
    st = env->ops->lock(env, cl_identity_path(&a, dir, "LOCK"));
    if (st == ST_LOCKED) {
        err_set(err, st, "data directory \"%s\" is in use by another process", dir);
        err_hint(err, "Stop the other metadb, or choose another directory with --data.");
        goto out;
    }
    if (st != ST_OK) {
        err_set(err, st, "could not lock data directory \"%s\"", dir);
        goto out;
    }
    ST_GOTO(out, load_identity(env, &a, dir, streams, wanted, out, err));
out:
    arena_fini(&a);
    return st;
}
