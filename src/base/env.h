/*
 * base/env.h — clock, randomness, files and (env_net.h) networks behind tables, so that a simulator
 * can stand in.
 *
 * The server uses env_os; tests use env_sim with virtual time, seeded randomness and an in-memory
 * disk that can drop, tear and reorder what was not synced. Nothing below frontend calls the
 * system for these directly.
 */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include "base/bytes.h"
#include "base/status.h"
#include <sys/uio.h>

struct env;
struct env_file; /* opaque; owned by whoever opened it */

enum env_open_flags {
    ENV_READ = 1,
    ENV_WRITE = 2,
    ENV_CREATE = 4,    /* make it if missing */
    ENV_EXCLUSIVE = 8, /* with ENV_CREATE: ST_EXISTS if it is there */
    /* Writes go past the page cache where the file system can do that in units of 512 bytes, and
     * through it elsewhere. The caller aligns memory to ENV_ALIGN, sizes and offsets to 512. */
    ENV_DIRECT = 16,
    /* Waits until nobody else has it open with this flag. A process that was killed has it open
     * until the kernel has finished the writes that were under way. */
    ENV_OWNED = 32
};
#define ENV_ALIGN 4096u

struct env_ops {
    int64_t (*unix_us)(struct env *);  /* wall clock, may jump */
    uint64_t (*mono_us)(struct env *); /* monotonic */
    void (*random)(struct env *, void *out, size_t n);

    /* Statuses: ST_NOT_FOUND, ST_EXISTS, ST_DISK_FULL, ST_IO. Paths are relative to the process. */
    status (*open)(struct env *, const char *path, int flags, struct env_file **out);
    void (*close)(struct env *, struct env_file *); /* NULL is fine; reports nothing, sync before */
    status (*pread)(struct env *, struct env_file *, void *dst, size_t n, uint64_t at, size_t *got);
    status (*pwritev)(struct env *, struct env_file *, const struct iovec *iov, int count,
                      uint64_t at);
    status (*datasync)(struct env *, struct env_file *);
    status (*truncate)(struct env *, struct env_file *, uint64_t size);
    status (*size)(struct env *, struct env_file *, uint64_t *out);
    status (*zero_fill)(struct env *, struct env_file *,
                        uint64_t size); /* write zeros up to SIZE and sync */
    status (*rename)(struct env *, const char *from, const char *to);
    status (*unlink)(struct env *, const char *path);
    status (*mkdir)(struct env *, const char *path); /* ST_EXISTS if it is there */
    status (*sync_dir)(struct env *, const char *path);
    /* Calls FN for every name in PATH (no "." and ".."), order undefined. */
    status (*list)(struct env *, const char *path, void (*fn)(void *, const char *name), void *arg);
    /* Exclusive advisory lock on the file at PATH until the process ends. ST_LOCKED if held. */
    status (*lock)(struct env *, const char *path);
};

struct env_net_ops; /* env_net.h */

struct env {
    const struct env_ops *ops;
    const struct env_net_ops *net; /* NULL: a simulated machine that is in no network */
};

/* The real one. Never fails; the same object each time. */
struct env *env_os(void);
/* The descriptor of a file that env_os opened and that really takes direct writes; else -1. */
int env_os_direct_fd(struct env *e, struct env_file *f);

static inline int64_t env_unix_us(struct env *e)
{
    return e->ops->unix_us(e);
}
static inline uint64_t env_mono_us(struct env *e)
{
    return e->ops->mono_us(e);
}
static inline uint64_t env_random64(struct env *e)
{
    uint64_t v;
    e->ops->random(e, &v, sizeof v);
    return v;
}

/* Whole small files. env_write_file is atomic and durable: temp file, sync, rename, sync_dir. */
struct arena;
NODISCARD status env_read_file(struct env *e, struct arena *a, const char *path, bytes *out);
NODISCARD status env_write_file(struct env *e, const char *dir, const char *name, bytes content);

#endif
