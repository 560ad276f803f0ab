/*
 * base/env_os.c — the environment of a real process: Linux system calls.
 *
 * Calls that a signal interrupted or that moved fewer bytes than asked are continued here, so that
 * a caller sees all or an error. errno becomes a status in one place, status_of_errno; the text of
 * an I/O error is logged here, because the status cannot carry it.
 *
 * Threads: any; the object has no state. Two threads may use one env_file as two threads may use
 * one descriptor.
 */
#include "base/assert.h"
#include "base/env_net.h"
#include "base/log.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ZERO_CHUNK (1024u * 1024u)

struct env_file {
    int fd;
    bool direct;
};

static status status_of_errno(const char *call, const char *path)
{
    int e = errno;
    switch (e) {
    case ENOENT:
    case ENOTDIR: return ST_NOT_FOUND;
    case EEXIST: return ST_EXISTS;
    case ENOSPC:
    case EDQUOT: return ST_DISK_FULL;
    default:
        LOG_ERROR("env.io_error", LOG_STR("call", call), LOG_STR("path", path),
                  LOG_STR("why", strerrordesc_np(e)));
        return ST_IO;
    }
}

static int64_t os_unix_us(struct env *e)
{
    UNUSED(e);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static uint64_t os_mono_us(struct env *e)
{
    UNUSED(e);
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static void os_random(struct env *e, void *out, size_t n)
{
    UNUSED(e);
    for (size_t done = 0; done < n;) {
        ssize_t got = getrandom((char *)out + done, n - done, 0);
        ASSERT(got > 0 || errno == EINTR);
        if (got > 0)
            done += (size_t)got;
    }
}

/* Direct writes in units of 512 bytes, or none: the caller's layout has that unit. */
static bool direct_enable(int fd)
{
    struct statx s;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &s) != 0 || !(s.stx_mask & STATX_DIOALIGN))
        return false;
    if (s.stx_dio_offset_align == 0 || s.stx_dio_offset_align > 512 ||
        s.stx_dio_mem_align > ENV_ALIGN)
        return false;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
}

/* The lock belongs to the open file, and a write under way holds the open file: so the lock of a
 * process that died lasts until its writes have ended. */
static status own(int fd, const char *path)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return ST_OK;
    if (errno == EWOULDBLOCK)
        LOG_INFO("env.wait_for_owner", LOG_STR("path", path));
    while (flock(fd, LOCK_EX) != 0) {
        if (errno != EINTR)
            return status_of_errno("flock", path);
    }
    return ST_OK;
}

static status os_open(struct env *e, const char *path, int flags, struct env_file **out)
{
    UNUSED(e);
    *out = NULL;
    int mode = (flags & ENV_WRITE) ? O_RDWR : O_RDONLY;
    if (flags & ENV_CREATE)
        mode |= O_CREAT;
    if (flags & ENV_EXCLUSIVE)
        mode |= O_EXCL;
    int fd = open(path, mode | O_CLOEXEC, 0600);
    if (fd < 0)
        return status_of_errno("open", path);
    status st = flags & ENV_OWNED ? own(fd, path) : ST_OK;
    struct env_file *f = malloc(sizeof *f);
    if (st == ST_OK && f == NULL)
        st = ST_NO_MEMORY;
    if (st != ST_OK) {
        free(f);
        close(fd);
        return st;
    }
    *f = (struct env_file){.fd = fd, .direct = (flags & ENV_DIRECT) && direct_enable(fd)};
    *out = f;
    return ST_OK;
}

static void os_close(struct env *e, struct env_file *f)
{
    UNUSED(e);
    if (f == NULL)
        return;
    close(f->fd);
    free(f);
}

static status os_pread(struct env *e, struct env_file *f, void *dst, size_t n, uint64_t at,
                       size_t *got)
{
    UNUSED(e);
    *got = 0;
    while (*got < n) {
        ssize_t r = pread(f->fd, (char *)dst + *got, n - *got, (off_t)(at + *got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return status_of_errno("pread", "");
        if (r == 0)
            break;
        *got += (size_t)r;
    }
    return ST_OK;
}

/* Writes one buffer completely; the way out of a short vectored write. */
static status write_rest(int fd, const char *src, size_t n, uint64_t at)
{
    while (n > 0) {
        ssize_t w = pwrite(fd, src, n, (off_t)at);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return status_of_errno("pwrite", "");
        src += w;
        n -= (size_t)w;
        at += (uint64_t)w;
    }
    return ST_OK;
}

/* Up to IOV_MAX pieces with one call. *WRITTEN tells how far it came. */
static status write_pieces(int fd, const struct iovec *iov, int count, uint64_t at,
                           uint64_t *written)
{
    ssize_t w;
    do {
        w = pwritev(fd, iov, count, (off_t)at);
    } while (w < 0 && errno == EINTR);
    if (w < 0)
        return status_of_errno("pwritev", "");
    size_t done = (size_t)w;
    *written = 0;
    for (int i = 0; i < count; i++) {
        size_t n = iov[i].iov_len;
        size_t have = done < n ? done : n;
        if (have < n)
            ST_TRY(write_rest(fd, (const char *)iov[i].iov_base + have, n - have,
                              at + *written + have));
        done -= have;
        *written += n;
    }
    return ST_OK;
}

static status os_pwritev(struct env *e, struct env_file *f, const struct iovec *iov, int count,
                         uint64_t at)
{
    UNUSED(e);
    while (count > 0) {
        int some = count < IOV_MAX ? count : IOV_MAX;
        uint64_t written = 0;
        ST_TRY(write_pieces(f->fd, iov, some, at, &written));
        at += written;
        iov += some;
        count -= some;
    }
    return ST_OK;
}

static status os_datasync(struct env *e, struct env_file *f)
{
    UNUSED(e);
#ifdef METADB_BROKEN_NO_SYNC
    UNUSED(f);
    return ST_OK; /* a build that the power test must catch */
#else
    return fdatasync(f->fd) == 0 ? ST_OK : status_of_errno("fdatasync", "");
#endif
}

static status os_truncate(struct env *e, struct env_file *f, uint64_t size)
{
    UNUSED(e);
    return ftruncate(f->fd, (off_t)size) == 0 ? ST_OK : status_of_errno("ftruncate", "");
}

static status os_size(struct env *e, struct env_file *f, uint64_t *out)
{
    UNUSED(e);
    struct stat s;
    if (fstat(f->fd, &s) != 0)
        return status_of_errno("fstat", "");
    *out = (uint64_t)s.st_size;
    return ST_OK;
}

/* Never written, so all of it is the one page of zeros that the kernel maps. */
static _Alignas(ENV_ALIGN) char zeros[ZERO_CHUNK];

/* Real zeros, not a hole and not an unwritten extent: a later write into them changes no metadata
 * of the file system, so that fdatasync costs one flush. */
static status os_zero_fill(struct env *e, struct env_file *f, uint64_t size)
{
    uint64_t at = 0;
    ST_TRY(os_size(e, f, &at));
    if (at >= size)
        return ST_OK;
    while (at < size) {
        size_t n = size - at < ZERO_CHUNK ? (size_t)(size - at) : ZERO_CHUNK;
        ST_TRY(write_rest(f->fd, zeros, n, at));
        at += n;
    }
    return os_datasync(e, f);
}

static status os_rename(struct env *e, const char *from, const char *to)
{
    UNUSED(e);
    return rename(from, to) == 0 ? ST_OK : status_of_errno("rename", from);
}

static status os_unlink(struct env *e, const char *path)
{
    UNUSED(e);
    return unlink(path) == 0 ? ST_OK : status_of_errno("unlink", path);
}

static status os_mkdir(struct env *e, const char *path)
{
    UNUSED(e);
    return mkdir(path, 0700) == 0 ? ST_OK : status_of_errno("mkdir", path);
}

static status os_sync_dir(struct env *e, const char *path)
{
    UNUSED(e);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return status_of_errno("open", path);
    status st = fsync(fd) == 0 ? ST_OK : status_of_errno("fsync", path);
    close(fd);
    return st;
}

static status os_list(struct env *e, const char *path, void (*fn)(void *, const char *name),
                      void *arg)
{
    UNUSED(e);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return status_of_errno("opendir", path);
    struct dirent *d;
    errno = 0;
    while ((d = readdir(dir)) != NULL) {
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            fn(arg, d->d_name);
        errno = 0;
    }
    status st = errno == 0 ? ST_OK : status_of_errno("readdir", path);
    closedir(dir);
    return st;
}

/* The descriptor stays open on purpose: the lock ends with the process and not before. */
static status os_lock(struct env *e, const char *path)
{
    UNUSED(e);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return status_of_errno("open", path);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return ST_OK;
    status st = errno == EWOULDBLOCK ? ST_LOCKED : status_of_errno("flock", path);
    close(fd);
    return st;
}

struct env *env_os(void)
{
    static const struct env_ops ops = {
        .unix_us = os_unix_us,
        .mono_us = os_mono_us,
        .random = os_random,
        .open = os_open,
        .close = os_close,
        .pread = os_pread,
        .pwritev = os_pwritev,
        .datasync = os_datasync,
        .truncate = os_truncate,
        .size = os_size,
        .zero_fill = os_zero_fill,
        .rename = os_rename,
        .unlink = os_unlink,
        .mkdir = os_mkdir,
        .sync_dir = os_sync_dir,
        .list = os_list,
        .lock = os_lock,
    };
    static struct env env = {.ops = &ops, .net = &env_os_net};
    return &env;
}

int env_os_direct_fd(struct env *e, struct env_file *f)
{
    return e == env_os() && f->direct ? f->fd : -1;
}
