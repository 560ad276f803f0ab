/*
 * base/env.c — whole small files on top of any environment.
 *
 * env_write_file replaces a file so that a crash at any moment leaves either the old contents or
 * the new: the temporary file is complete and synced before the rename, and the rename is synced
 * with the directory before the function returns.
 */
#include "base/env.h"
#include "base/arena.h"
#include "base/assert.h"
#include <stdio.h>

status env_read_file(struct env *e, struct arena *a, const char *path, bytes *out)
{
    struct env_file *f = NULL;
    uint64_t size = 0;
    size_t got = 0;
    void *data = NULL;
    status st;

    *out = BYTES_EMPTY;
    ST_GOTO(out, e->ops->open(e, path, ENV_READ, &f));
    ST_GOTO(out, e->ops->size(e, f, &size));
    ST_GOTO(out, arena_try_alloc(a, (size_t)size, &data));
    ST_GOTO(out, e->ops->pread(e, f, data, (size_t)size, 0, &got));
    *out = bytes_make(data, got);
out:
    e->ops->close(e, f);
    return st;
}

static status write_and_sync(struct env *e, const char *path, bytes content)
{
    struct env_file *f = NULL;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)content.data, .iov_len = content.size};
    status st;

    ST_GOTO(out, e->ops->open(e, path, ENV_READ | ENV_WRITE | ENV_CREATE, &f));
    ST_GOTO(out, e->ops->truncate(e, f, 0));
    ST_GOTO(out, e->ops->pwritev(e, f, &iov, 1, 0));
    ST_GOTO(out, e->ops->datasync(e, f));
out:
    e->ops->close(e, f);
    return st;
}

status env_write_file(struct env *e, const char *dir, const char *name, bytes content)
{
    struct arena a;
    arena_init(&a, 512);
    char *path = arena_printf(&a, "%s/%s", dir, name);
    char *temporary = arena_printf(&a, "%s/%s.tmp", dir, name);
    status st;

    ST_GOTO(out, write_and_sync(e, temporary, content));
    ST_GOTO(out, e->ops->rename(e, temporary, path));
    ST_GOTO(out, e->ops->sync_dir(e, dir));
out:
    arena_fini(&a);
    return st;
}
