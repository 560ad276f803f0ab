/*
 * cluster/reserve.c — a file that gives its space to a start on a full disk.
 *
 * A start has to write: the log marks what it recovered, RocksDB writes a manifest. On a disk that
 * is full to the last block that fails, and with it everything, although reads could be served. So
 * a data directory keeps `reserve`, a file of zeros. A start that meets a full disk removes it and
 * tries again; it is made anew, on the pool, when there is space for more than it.
 *
 *   making.reserve  being filled; renamed when it is whole, removed at the next start
 *
 * Threads: release before the reactor runs; poll on the owner reactor; the filling on the pool.
 */
#include "base/assert.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"

#define RESERVE_BYTES (4u << 20)
#define RETRY_US 10000000u

bool cl__reserve_release(struct cl_node *n)
{
    struct arena a;
    arena_init(&a, 1024);
    status st = n->env->ops->unlink(n->env, cl_identity_path(&a, n->dir, CL_RESERVE_NAME));
    if (st == ST_OK)
        LOG_WARN("node.reserve_used", LOG_STR("dir", n->dir));
    arena_fini(&a);
    return st == ST_OK;
}

static status fill(struct cl_node *n, const char *path)
{
    struct env *env = n->env;
    struct env_file *file;
    ST_TRY(kv_store_room(n->store, RESERVE_BYTES));
    ST_TRY(env->ops->open(env, path, ENV_WRITE | ENV_CREATE, &file));
    status st = env->ops->zero_fill(env, file, RESERVE_BYTES);
    env->ops->close(env, file);
    return st;
}

static void make_run(struct pool_job *job)
{
    struct cl_reserve *r = CONTAINER_OF(job, struct cl_reserve, job);
    struct cl_node *n = r->node;
    struct arena a;
    arena_init(&a, 1024);
    const char *making = cl_identity_path(&a, n->dir, CL_RESERVE_MAKING);
    r->result = fill(n, making);
    if (r->result == ST_OK)
        r->result =
            n->env->ops->rename(n->env, making, cl_identity_path(&a, n->dir, CL_RESERVE_NAME));
    if (r->result != ST_OK)
        (void)n->env->ops->unlink(n->env, making);
    arena_fini(&a);
}

static void make_done(struct pool_job *job)
{
    struct cl_reserve *r = CONTAINER_OF(job, struct cl_reserve, job);
    struct cl_node *n = r->node;
    r->making = false;
    r->there = r->result == ST_OK;
    r->retry_us = env_mono_us(n->env) + RETRY_US;
    cl__job_done(n);
}

void cl__reserve_find(struct cl_node *n)
{
    struct cl_reserve *r = &n->reserve;
    struct env_file *file;
    struct arena a;
    uint64_t size = 0;
    arena_init(&a, 1024);
    r->node = n;
    r->job.run = make_run;
    r->job.done = make_done;
    (void)n->env->ops->unlink(n->env, cl_identity_path(&a, n->dir, CL_RESERVE_MAKING));
    status st =
        n->env->ops->open(n->env, cl_identity_path(&a, n->dir, CL_RESERVE_NAME), ENV_READ, &file);
    if (st == ST_OK) {
        st = n->env->ops->size(n->env, file, &size);
        n->env->ops->close(n->env, file);
    }
    r->there = st == ST_OK && size >= RESERVE_BYTES;
    arena_fini(&a);
}

void cl__reserve_poll(struct cl_node *n)
{
    struct cl_reserve *r = &n->reserve;
    if (r->there || r->making || n->phase != CL_NODE_SERVING || n->failed != ST_OK ||
        n->store_full || n->stream.refused != ST_OK || env_mono_us(n->env) < r->retry_us)
        return;
    r->making = cl__job_start(n, &r->job) == ST_OK;
}
