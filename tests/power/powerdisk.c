/*
 * tests/power/powerdisk.c — an LD_PRELOAD disk that remembers what was not synced.
 *
 * Every change below POWERDISK_ROOT is written down in POWERDISK_JOURNAL, with what is needed to
 * undo it, before it happens: data writes with the old bytes, size changes with the old size, names
 * with a hard link in POWERDISK_GRAVE to whatever they hid. fsync and fdatasync only write down
 * that they happened: durability is what the journal says, so the real one is not needed. After a
 * kill, powercut.py takes back what a loss of power could take back.
 *
 * POWERDISK_IGNORE_SYNC=PART is the test of the test: syncs of files and directories whose path has
 * PART in it (at its end, if PART ends with '$') are not written down, as if the program had left
 * them out.
 *
 * POWERDISK_FAIL=CALL:PART:NTH:COUNT:ERRNO makes the NTH to NTH+COUNT-1st CALL fail that meets a
 * path with PART in it, from the moment on at which there is a file `arm` in the graveyard. CALL is
 * write, sync, create or rename. What a failed sync should have made
 * durable is lost for good: a later sync does not bring it back.
 *
 * io_uring. Writes with RWF_DSYNC are written down when they are submitted, and again when the
 * kernel has posted their completion: only that makes them durable, in any order. The completion
 * queue is looked at before anything is submitted, written or sent to a client, so that nothing
 * overtakes what it rests on.
 *
 * A record: struct record, then path(s), old bytes, new bytes. One mutex orders everything.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum kind {
    K_WRITE = 1,
    K_SIZE,
    K_SYNC,
    K_DIRSYNC,
    K_CREATE,
    K_RENAME,
    K_UNLINK,
    K_MKDIR,
    K_RMDIR,
    K_LOST,
    K_FAILED,
    K_DONE
};

struct record {
    uint32_t magic, kind;
    uint64_t ino; /* of the file, or of the directory (K_DIRSYNC) */
    uint64_t offset;
    uint64_t old_size; /* of the file, before */
    uint32_t path_size, path2_size, grave_size;
    uint32_t old_bytes, new_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX], grave[PATH_MAX];
static const char *ignore; /* NULL: every sync counts */
static size_t root_size;
static int journal = -1;
static uint64_t grave_serial;

static struct {
    const char *call, *part;
    unsigned long nth, count, seen;
    int error;
} failing;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);
    if (!p)
        abort();
    return p;
}

/* Takes the text of POWERDISK_FAIL apart. */
static void failing_read(const char *text)
{
    static char copy[256];
    char *rest = copy;
    if (!text)
        return;
    snprintf(copy, sizeof copy, "%s", text);
    failing.call = strsep(&rest, ":");
    failing.part = strsep(&rest, ":");
    char *nth = strsep(&rest, ":"), *count = strsep(&rest, ":");
    if (!rest)
        abort();
    failing.nth = strtoul(nth, NULL, 10);
    failing.count = strtoul(count, NULL, 10);
    failing.error = atoi(rest);
}

static bool meets(const char *path, const char *part)
{
    size_t n = strlen(part), size = strlen(path);
    if (n == 0 || part[n - 1] != '$')
        return strstr(path, part) != NULL;
    return size >= n - 1 && strncmp(path + size - (n - 1), part, n - 1) == 0;
}

__attribute__((constructor)) static void start(void)
{
    const char *r = getenv("POWERDISK_ROOT"), *g = getenv("POWERDISK_GRAVE"),
               *j = getenv("POWERDISK_JOURNAL");
    if (!r || !g || !j || !realpath(r, root))
        return;
    root_size = strlen(root);
    snprintf(grave, sizeof grave, "%s", g);
    ignore = getenv("POWERDISK_IGNORE_SYNC");
    failing_read(getenv("POWERDISK_FAIL"));
    journal = REAL(open)(j, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static bool inside(const char *path)
{
    return journal >= 0 && strncmp(path, root, root_size) == 0 &&
           (path[root_size] == '/' || path[root_size] == 0);
}

/* The absolute path of NAME relative to DIRFD; the last component need not exist. */
static bool absolute(int dirfd, const char *name, char out[PATH_MAX])
{
    char base[PATH_MAX], full[2 * PATH_MAX];
    if (name[0] == '/') {
        snprintf(full, sizeof full, "%s", name);
    } else if (dirfd == AT_FDCWD) {
        if (!getcwd(base, sizeof base))
            return false;
        snprintf(full, sizeof full, "%s/%s", base, name);
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
        ssize_t n = readlink(link, base, sizeof base - 1);
        if (n < 0)
            return false;
        base[n] = 0;
        snprintf(full, sizeof full, "%s/%s", base, name);
    }
    char *slash = strrchr(full, '/');
    char dir[PATH_MAX];
    *slash = 0;
    if (!realpath(full[0] ? full : "/", dir))
        return false;
    return snprintf(out, PATH_MAX, "%s/%s", dir, slash + 1) < PATH_MAX;
}

/* PATH, if not NULL, gets the file's path. */
static bool tracked_fd(int fd, struct stat *st, char *path_out)
{
    char link[64], path[PATH_MAX];
    if (journal < 0 || fd == journal)
        return false;
    if (fstat(fd, st) != 0 || !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)))
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0)
        return false;
    path[n] = 0;
    if (path_out)
        memcpy(path_out, path, (size_t)n + 1);
    return inside(path);
}

static void put(struct record r, const char *path, const char *path2, const char *grave_path,
                const void *old, const struct iovec *iov, int count)
{
    struct iovec v[5 + 64];
    int n = 0;
    r.magic = 0x70776473;
    r.path_size = path ? (uint32_t)strlen(path) : 0;
    r.path2_size = path2 ? (uint32_t)strlen(path2) : 0;
    r.grave_size = grave_path ? (uint32_t)strlen(grave_path) : 0;
    v[n++] = (struct iovec){&r, sizeof r};
    v[n++] = (struct iovec){(void *)(uintptr_t)path, r.path_size};
    v[n++] = (struct iovec){(void *)(uintptr_t)path2, r.path2_size};
    v[n++] = (struct iovec){(void *)(uintptr_t)grave_path, r.grave_size};
    v[n++] = (struct iovec){(void *)(uintptr_t)old, r.old_bytes};
    uint8_t *flat = NULL;
    if (r.new_bytes) {
        flat = malloc(r.new_bytes);
        size_t at = 0;
        for (int i = 0; i < count && at < r.new_bytes; i++) {
            size_t take = iov[i].iov_len < r.new_bytes - at ? iov[i].iov_len : r.new_bytes - at;
            memcpy(flat + at, iov[i].iov_base, take);
            at += take;
        }
        v[n++] = (struct iovec){flat, r.new_bytes};
    }
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += v[i].iov_len;
    if (REAL(writev)(journal, v, n) != (ssize_t)total)
        abort();
    free(flat);
}

/* Locked. Shall this call fail? Then errno is set. */
static bool fails(const char *call, const char *path)
{
    char arm[PATH_MAX + 8];
    if (!failing.call || strcmp(failing.call, call) != 0 || !meets(path, failing.part))
        return false;
    snprintf(arm, sizeof arm, "%s/arm", grave);
    if (access(arm, F_OK) != 0)
        return false;
    failing.seen++;
    if (failing.seen < failing.nth || failing.seen >= failing.nth + failing.count)
        return false;
    put((struct record){.kind = K_FAILED}, path, NULL, NULL, NULL, NULL, 0);
    errno = failing.error;
    return true;
}

/* ---- io_uring: completions ---- */

#define FLIGHTS 64u

static struct {
    struct io_uring *ring; /* the one that writes; NULL before the first */
    unsigned seen;         /* completions up to here were looked at */
    uint64_t serial;
    struct {
        uint64_t user_data, serial; /* serial 0: free */
        bool ignored;
    } flights[FLIGHTS];
} uring;

/* Locked. Writes down which flights have become durable. */
static void land(void)
{
    if (!uring.ring)
        return;
    const struct io_uring_cq *cq = &uring.ring->cq;
    unsigned tail = __atomic_load_n(cq->ktail, __ATOMIC_ACQUIRE);
    for (; uring.seen != tail; uring.seen++) {
        const struct io_uring_cqe *cqe = &cq->cqes[uring.seen & cq->ring_mask];
        for (unsigned i = 0; i < FLIGHTS; i++) {
            if (uring.flights[i].serial == 0 || uring.flights[i].user_data != cqe->user_data)
                continue;
            char name[32];
            snprintf(name, sizeof name, "%d.%llu", (int)getpid(),
                     (unsigned long long)uring.flights[i].serial);
            if (cqe->res > 0 && !uring.flights[i].ignored)
                put((struct record){.kind = K_DONE}, name, NULL, NULL, NULL, NULL, 0);
            uring.flights[i].serial = 0;
            break;
        }
    }
}

/* Locked. Before IOV goes to OFFSET of FD. A NAME is for a completion to refer to. */
static void note_write(int fd, const struct stat *st, const struct iovec *iov, int count,
                       uint64_t offset, const char *name)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        total += iov[i].iov_len;
    uint64_t size = (uint64_t)st->st_size;
    size_t old_bytes =
        offset >= size ? 0 : (size - offset < total ? (size_t)(size - offset) : total);
    uint8_t *old = malloc(old_bytes ? old_bytes : 1);
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd); /* FD may be write-only */
    int in = old_bytes ? REAL(open)(link, O_RDONLY | O_CLOEXEC) : -1;
    if (old_bytes &&
        (in < 0 || REAL(pread)(in, old, old_bytes, (off_t)offset) != (ssize_t)old_bytes))
        abort();
    if (in >= 0)
        REAL(close)(in);
    put((struct record){.kind = K_WRITE,
                        .ino = st->st_ino,
                        .offset = offset,
                        .old_size = size,
                        .old_bytes = (uint32_t)old_bytes,
                        .new_bytes = (uint32_t)total},
        name, NULL, NULL, old, iov, count);
    free(old);
}

static ssize_t do_write(int fd, const struct iovec *iov, int count, off_t at, bool positioned)
{
    struct stat st;
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    land();
    if (tracked_fd(fd, &st, path) && S_ISREG(st.st_mode)) {
        if (fails("write", path)) {
            pthread_mutex_unlock(&lock);
            return -1;
        }
        uint64_t offset = (uint64_t)at;
        if (!positioned)
            offset = (fcntl(fd, F_GETFL) & O_APPEND) ? (uint64_t)st.st_size
                                                     : (uint64_t)lseek(fd, 0, SEEK_CUR);
        note_write(fd, &st, iov, count, offset, NULL);
    }
    ssize_t n = positioned ? REAL(pwritev)(fd, iov, count, at) : REAL(writev)(fd, iov, count);
    int e = errno;
    pthread_mutex_unlock(&lock);
    errno = e;
    return n;
}

EXPORT ssize_t write(int fd, const void *p, size_t n)
{
    if (journal < 0)
        return REAL(write)(fd, p, n);
    struct iovec v = {(void *)(uintptr_t)p, n};
    return do_write(fd, &v, 1, 0, false);
}
EXPORT ssize_t writev(int fd, const struct iovec *v, int n)
{
    return journal < 0 ? REAL(writev)(fd, v, n) : do_write(fd, v, n, 0, false);
}
EXPORT ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    struct iovec v = {(void *)(uintptr_t)p, n};
    return do_write(fd, &v, 1, at, true);
}
EXPORT ssize_t pwrite64(int fd, const void *p, size_t n, off_t at)
{
    return pwrite(fd, p, n, at);
}
EXPORT ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    return do_write(fd, v, n, at, true);
}
EXPORT ssize_t pwritev64(int fd, const struct iovec *v, int n, off_t at)
{
    return do_write(fd, v, n, at, true);
}

static int do_size(int fd, off_t size, int (*change)(int, off_t))
{
    struct stat st;
    pthread_mutex_lock(&lock);
    if (tracked_fd(fd, &st, NULL)) {
        /* What is cut off comes back when the cut is undone. */
        uint64_t old_size = (uint64_t)st.st_size;
        size_t lost = (uint64_t)size < old_size ? (size_t)(old_size - (uint64_t)size) : 0;
        uint8_t *old = malloc(lost ? lost : 1);
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        int in = lost ? REAL(open)(link, O_RDONLY | O_CLOEXEC) : -1;
        if (lost && REAL(pread)(in, old, lost, size) != (ssize_t)lost)
            abort();
        if (in >= 0)
            REAL(close)(in);
        put((struct record){.kind = K_SIZE,
                            .ino = st.st_ino,
                            .offset = (uint64_t)size,
                            .old_size = old_size,
                            .old_bytes = (uint32_t)lost},
            NULL, NULL, NULL, old, NULL, 0);
        free(old);
    }
    int rc = change(fd, size);
    int e = errno;
    pthread_mutex_unlock(&lock);
    errno = e;
    return rc;
}
EXPORT int ftruncate(int fd, off_t size)
{
    return do_size(fd, size, REAL(ftruncate));
}
EXPORT int ftruncate64(int fd, off_t size)
{
    return do_size(fd, size, REAL(ftruncate));
}
EXPORT int fallocate(int fd, int mode, off_t at, off_t n)
{
    (void)fd, (void)mode, (void)at, (void)n;
    errno = EOPNOTSUPP; /* callers fall back to plain writes */
    return -1;
}
EXPORT int fallocate64(int fd, int mode, off_t at, off_t n)
{
    return fallocate(fd, mode, at, n);
}

static int do_sync(int fd)
{
    struct stat st;
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    land();
    int rc = 0, e = errno;
    if (tracked_fd(fd, &st, path)) {
        enum kind kind = S_ISDIR(st.st_mode) ? K_DIRSYNC : K_SYNC;
        if (fails("sync", path)) {
            rc = -1;
            e = failing.error;
            kind = K_LOST;
        }
        if (rc != 0 || !ignore || !meets(path, ignore))
            put((struct record){.kind = kind, .ino = st.st_ino}, NULL, NULL, NULL, NULL, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = e;
    return rc;
}
EXPORT int fsync(int fd)
{
    return journal < 0 ? REAL(fsync)(fd) : do_sync(fd);
}
EXPORT int fdatasync(int fd)
{
    return journal < 0 ? REAL(fdatasync)(fd) : do_sync(fd);
}

static uint64_t parent_ino(const char *path)
{
    char dir[PATH_MAX];
    struct stat st;
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = 0;
    return stat(dir, &st) == 0 ? st.st_ino : 0;
}

/* Keeps what PATH names alive under a name in the graveyard. */
static const char *bury(const char *path, char out[PATH_MAX])
{
    if (snprintf(out, PATH_MAX, "%s/%d.%llu", grave, (int)getpid(),
                 (unsigned long long)++grave_serial) >= PATH_MAX)
        return NULL;
    return REAL(link)(path, out) == 0 ? out : NULL;
}

static int do_open(int dirfd, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];
    struct stat st;
    if (journal < 0 || !(flags & (O_CREAT | O_TRUNC)) || !absolute(dirfd, name, path) ||
        !inside(path))
        return REAL(openat)(dirfd, name, flags, mode);
    pthread_mutex_lock(&lock);
    bool there = stat(path, &st) == 0;
    if (!there && fails("create", path)) {
        pthread_mutex_unlock(&lock);
        return -1;
    }
    int fd = REAL(openat)(dirfd, name, flags & ~O_TRUNC, mode);
    int e = errno;
    if (fd >= 0 && !there && fstat(fd, &st) == 0)
        put((struct record){.kind = K_CREATE, .ino = st.st_ino, .offset = parent_ino(path)}, path,
            NULL, NULL, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    if (fd >= 0 && there && (flags & O_TRUNC) && ftruncate(fd, 0) != 0)
        return -1;
    errno = e;
    return fd;
}
#define MODE_ARG(last)                                                                             \
    mode_t mode = 0;                                                                               \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                           \
        va_list ap;                                                                                \
        va_start(ap, last);                                                                        \
        mode = va_arg(ap, mode_t);                                                                 \
        va_end(ap);                                                                                \
    }
EXPORT int open(const char *name, int flags, ...)
{
    MODE_ARG(flags)
    return do_open(AT_FDCWD, name, flags, mode);
}
EXPORT int open64(const char *name, int flags, ...)
{
    MODE_ARG(flags)
    return do_open(AT_FDCWD, name, flags, mode);
}
EXPORT int openat(int dirfd, const char *name, int flags, ...)
{
    MODE_ARG(flags)
    if (journal < 0)
        return ((int (*)(int, const char *, int, ...))real("openat64"))(dirfd, name, flags, mode);
    return do_open(dirfd, name, flags, mode);
}

EXPORT int rename(const char *from, const char *to)
{
    char a[PATH_MAX], b[PATH_MAX], g[PATH_MAX];
    struct stat st, over;
    if (journal < 0 || !absolute(AT_FDCWD, from, a) || !absolute(AT_FDCWD, to, b) || !inside(b))
        return REAL(rename)(from, to);
    pthread_mutex_lock(&lock);
    if (fails("rename", b)) {
        pthread_mutex_unlock(&lock);
        return -1;
    }
    if (stat(a, &st) == 0) {
        const char *hidden = stat(b, &over) == 0 && S_ISREG(over.st_mode) ? bury(b, g) : NULL;
        put((struct record){.kind = K_RENAME, .ino = st.st_ino, .offset = parent_ino(b)}, a, b,
            hidden, NULL, NULL, 0);
    }
    int rc = REAL(rename)(from, to);
    int e = errno;
    pthread_mutex_unlock(&lock);
    errno = e;
    return rc;
}
EXPORT int unlink(const char *name)
{
    char path[PATH_MAX], g[PATH_MAX];
    struct stat st;
    if (journal < 0 || !absolute(AT_FDCWD, name, path) || !inside(path))
        return REAL(unlink)(name);
    pthread_mutex_lock(&lock);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        put((struct record){.kind = K_UNLINK, .ino = st.st_ino, .offset = parent_ino(path)}, path,
            NULL, bury(path, g), NULL, NULL, 0);
    int rc = REAL(unlink)(name);
    int e = errno;
    pthread_mutex_unlock(&lock);
    errno = e;
    return rc;
}
EXPORT int mkdir(const char *name, mode_t mode)
{
    char path[PATH_MAX];
    struct stat st;
    if (journal < 0 || !absolute(AT_FDCWD, name, path) || !inside(path))
        return REAL(mkdir)(name, mode);
    pthread_mutex_lock(&lock);
    int rc = REAL(mkdir)(name, mode);
    int e = errno;
    if (rc == 0 && stat(path, &st) == 0)
        put((struct record){.kind = K_MKDIR, .ino = st.st_ino, .offset = parent_ino(path)}, path,
            NULL, NULL, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = e;
    return rc;
}
EXPORT int rmdir(const char *name)
{
    char path[PATH_MAX];
    if (journal < 0 || !absolute(AT_FDCWD, name, path) || !inside(path))
        return REAL(rmdir)(name);
    pthread_mutex_lock(&lock);
    int rc = REAL(rmdir)(name);
    int e = errno;
    if (rc == 0)
        put((struct record){.kind = K_RMDIR, .offset = parent_ino(path)}, path, NULL, NULL, NULL,
            NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = e;
    return rc;
}

/* ---- io_uring: submissions ---- */

/* Locked. One submission, before the kernel sees it. */
static void take_off(struct io_uring_sqe *sqe)
{
    struct stat st;
    char path[PATH_MAX], name[32];
    if (sqe->opcode != IORING_OP_WRITE || !tracked_fd(sqe->fd, &st, path))
        return;
    if (fails("write", path) || fails("sync", path)) {
        sqe->fd = -1;
        return;
    }
    unsigned i = 0;
    while (uring.flights[i].serial != 0)
        if (++i == FLIGHTS)
            abort();
    uring.flights[i].serial = ++uring.serial;
    uring.flights[i].user_data = sqe->user_data;
    uring.flights[i].ignored = !(sqe->rw_flags & RWF_DSYNC) || (ignore && meets(path, ignore));
    snprintf(name, sizeof name, "%d.%llu", (int)getpid(), (unsigned long long)uring.serial);
    struct iovec iov = {(void *)(uintptr_t)sqe->addr, sqe->len};
    note_write(sqe->fd, &st, &iov, 1, sqe->off, name);
}

EXPORT int io_uring_submit(struct io_uring *ring)
{
    if (journal < 0)
        return REAL(io_uring_submit)(ring);
    pthread_mutex_lock(&lock);
    if (ring != uring.ring) {
        uring.ring = ring;
        uring.seen = __atomic_load_n(ring->cq.khead, __ATOMIC_ACQUIRE);
    }
    land();
    for (unsigned i = ring->sq.sqe_head; i != ring->sq.sqe_tail; i++)
        take_off(&ring->sq.sqes[i & ring->sq.ring_mask]);
    pthread_mutex_unlock(&lock);
    return REAL(io_uring_submit)(ring);
}

EXPORT void io_uring_queue_exit(struct io_uring *ring)
{
    pthread_mutex_lock(&lock);
    if (ring == uring.ring) {
        land();
        uring.ring = NULL;
    }
    pthread_mutex_unlock(&lock);
    REAL(io_uring_queue_exit)(ring);
}

EXPORT ssize_t send(int fd, const void *p, size_t n, int flags)
{
    if (journal >= 0) {
        pthread_mutex_lock(&lock);
        land();
        pthread_mutex_unlock(&lock);
    }
    return REAL(send)(fd, p, n, flags);
}
