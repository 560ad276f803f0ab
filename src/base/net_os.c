/*
 * base/net_os.c — the network of a real process: TCP sockets on a libev loop.
 *
 * Vocabulary: a stream's *queue* is what a send could not hand to the socket; it is written when
 * the socket takes more. A stream is *broken* from the moment a system call failed until `closed`
 * has told so; the timer does that, so that a callback never runs inside a call.
 *
 *   OPENING --connected--> OPEN --error, end--> BROKEN --timer--> CLOSED (waits for its owner)
 *      \____________________________________________/
 *
 * Options: TCP_NODELAY, because a frame is written at once and waits for nothing; keep-alive and
 * TCP_USER_TIMEOUT, because a machine that vanished sends no RST. Each is read back: an option that
 * the system did not take is a dead connection that nobody notices, months later.
 *
 * Descriptors run out: base/spare.h drops who waits.
 *
 * Invariants
 *   W1  Callbacks run from the loop, at most one `closed` per stream, and none after close.
 *   W2  A stream that is closed inside one of its callbacks is freed when that callback returns.
 */
#include "base/assert.h"
#include "base/buf.h"
#include "base/env_net.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/spare.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 128
#define ACCEPT_PER_TURN 64u
#define READ_BYTES 65536u
#define READS_PER_TURN 4u
#define QUEUE_KEEP_BYTES 65536u
#define KEEPALIVE_IDLE_S 5
#define KEEPALIVE_INTERVAL_S 2
#define KEEPALIVE_PROBES 3

enum stream_state { OPENING, OPEN, BROKEN, CLOSED };

struct os_stream {
    struct env_stream base;
    struct loop *loop;
    struct loop_io *io;
    struct loop_timer *timer; /* OPENING: the limit; BROKEN: tells `closed` */
    const struct env_stream_handler *handler;
    void *arg;
    enum stream_state state;
    int fd;
    bool paused, calling, dropped; /* inside a callback; closed by its owner meanwhile (W2) */
    status why;
    char text[128];
    char remote[ENV_NET_ADDRESS_BYTES];
    struct obuf queue;
    size_t written; /* of the queue */
};

struct env_listener {
    struct loop *loop;
    struct loop_io *io;
    struct spare *spare;
    int fd;
    void (*accepted)(void *arg, struct env_stream *s);
    void *arg;
    char address[ENV_NET_ADDRESS_BYTES];
};

static struct os_stream *stream_of(const struct env_stream *s)
{
    return CONTAINER_OF((struct env_stream *)(uintptr_t)s, struct os_stream, base);
}

/* -- addresses --------------------------------------------------------------------------------- */

static status resolve(const char *address, struct addrinfo **out, struct err *err)
{
    char copy[ENV_NET_ADDRESS_BYTES];
    size_t n = strlen(address);
    char *colon, *host = copy;
    if (n >= sizeof copy)
        return err_set(err, ST_INVALID, "address \"%.40s…\" is too long", address);
    memcpy(copy, address, n + 1);
    colon = strrchr(copy, ':');
    if (colon == NULL || colon == copy || colon[1] == '\0')
        return err_set(err, ST_INVALID, "address \"%s\" is not host:port", address);
    *colon = '\0';
    if (copy[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    if (getaddrinfo(host, colon + 1, &hints, out) == 0)
        return ST_OK;
    err_set(err, ST_INVALID, "address \"%s\" is not a numeric address with a port", address);
    err_hint(err, "Names are not looked up here: write the IP address, as in 10.0.0.1:7433.");
    return ST_INVALID;
}

status env_address_check(const char *address, struct err *err)
{
    struct addrinfo *a = NULL;
    ST_TRY(resolve(address, &a, err));
    freeaddrinfo(a);
    return ST_OK;
}

static void print_address(const struct sockaddr_storage *a, socklen_t size, char *out)
{
    char host[48], port[8];
    if (getnameinfo((const struct sockaddr *)a, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(out, ENV_NET_ADDRESS_BYTES, "?");
    else if (strchr(host, ':') != NULL)
        snprintf(out, ENV_NET_ADDRESS_BYTES, "[%s]:%s", host, port);
    else
        snprintf(out, ENV_NET_ADDRESS_BYTES, "%s:%s", host, port);
}

/* -- options ----------------------------------------------------------------------------------- */

static void set_option(int fd, int level, int name, int value, const char *what)
{
    int got = -1;
    socklen_t size = sizeof got;
    if (setsockopt(fd, level, name, &value, sizeof value) != 0 ||
        getsockopt(fd, level, name, &got, &size) != 0 || got != value)
        LOG_WARN("net.option_not_set", LOG_STR("option", what), LOG_I64("wanted", value),
                 LOG_I64("is", got));
}

static void set_options(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S, "TCP_KEEPIDLE");
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S, "TCP_KEEPINTVL");
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES, "TCP_KEEPCNT");
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)(ENV_NET_UNACKNOWLEDGED_US / 1000u),
               "TCP_USER_TIMEOUT");
}

/* -- streams ----------------------------------------------------------------------------------- */

static void stream_free(struct os_stream *s)
{
    loop_io_free(s->io);
    loop_timer_free(s->timer);
    if (s->fd >= 0)
        close(s->fd);
    obuf_fini(&s->queue);
    free(s);
}

/* Between a callback's begin and its end the stream stays (W2). False: the owner closed it. */
static bool callback_over(struct os_stream *s)
{
    s->calling = false;
    if (!s->dropped)
        return true;
    stream_free(s);
    return false;
}

static void watch(struct os_stream *s)
{
    int events = 0;
    if (s->state == OPENING || (s->state == OPEN && s->queue.size > s->written))
        events |= LOOP_WRITE;
    if (s->state == OPEN && !s->paused)
        events |= LOOP_READ;
    loop_io_set(s->io, events);
}

static void stream_break(struct os_stream *s, status st, const char *text)
{
    if (s->state == BROKEN || s->state == CLOSED)
        return;
    s->state = BROKEN;
    s->why = st;
    snprintf(s->text, sizeof s->text, "%s", text);
    watch(s);
    loop_timer_start(s->timer, 0);
}

static void break_errno(struct os_stream *s, const char *call)
{
    char text[128];
    snprintf(text, sizeof text, "%s: %s", call, strerrordesc_np(errno));
    stream_break(s, ST_UNREACHABLE, text);
}

static void on_timer(void *arg)
{
    struct os_stream *s = arg;
    if (s->state == OPENING) {
        s->why = ST_UNREACHABLE;
        snprintf(s->text, sizeof s->text, "connect: no answer in time");
    }
    s->state = CLOSED;
    watch(s);
    s->calling = true;
    s->handler->closed(s->arg, s->why, s->text);
    (void)callback_over(s);
}

static void on_opened(struct os_stream *s)
{
    int e = 0;
    socklen_t size = sizeof e;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &e, &size) != 0)
        e = errno;
    if (e != 0) {
        errno = e;
        break_errno(s, "connect");
        return;
    }
    s->state = OPEN;
    loop_timer_stop(s->timer);
    watch(s);
    s->calling = true;
    s->handler->opened(s->arg);
    (void)callback_over(s);
}

/* False: the stream is gone. */
static bool write_queue(struct os_stream *s)
{
    while (s->queue.size > s->written) {
        ssize_t n = send(s->fd, s->queue.data + s->written, s->queue.size - s->written,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            if (errno != EAGAIN)
                break_errno(s, "send");
            return true;
        }
        s->written += (size_t)n;
    }
    s->written = 0;
    obuf_reset(&s->queue);
    obuf_shrink(&s->queue, QUEUE_KEEP_BYTES);
    watch(s);
    s->calling = true;
    s->handler->drained(s->arg);
    return callback_over(s);
}

static void read_some(struct os_stream *s)
{
    uint8_t data[READ_BYTES];
    for (unsigned i = 0; i < READS_PER_TURN && s->state == OPEN && !s->paused; i++) {
        ssize_t n = recv(s->fd, data, sizeof data, MSG_DONTWAIT);
        if (n == 0) {
            stream_break(s, ST_END, "the other side closed");
            return;
        }
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR)
                break_errno(s, "receive");
            return;
        }
        s->calling = true;
        s->handler->received(s->arg, bytes_make(data, (size_t)n));
        if (!callback_over(s) || (size_t)n < sizeof data)
            return;
    }
}

static void on_io(void *arg, int events)
{
    struct os_stream *s = arg;
    if (s->state == OPENING) {
        on_opened(s);
        return;
    }
    if ((events & LOOP_WRITE) && s->state == OPEN && !write_queue(s))
        return;
    if ((events & LOOP_READ) && s->state == OPEN)
        read_some(s);
}

static struct os_stream *stream_new(struct loop *l, int fd, enum stream_state state)
{
    struct os_stream *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    s->base.ops = &env_os_net;
    s->loop = l;
    s->fd = fd;
    s->state = state;
    obuf_init(&s->queue);
    s->io = loop_io_new(l, fd, on_io, s);
    s->timer = loop_timer_new(l, on_timer, s);
    set_options(fd);
    return s;
}

static void os_attach(struct env_stream *base, const struct env_stream_handler *handler, void *arg)
{
    struct os_stream *s = stream_of(base);
    s->handler = handler;
    s->arg = arg;
}

static status os_connect(struct env *e, struct loop *l, const char *address, uint64_t timeout_us,
                         const struct env_stream_handler *handler, void *arg,
                         struct env_stream **out, struct err *err)
{
    UNUSED(e);
    struct addrinfo *a = NULL;
    ST_TRY(resolve(address, &a, err));
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        status st = errno == EMFILE || errno == ENFILE ? ST_TOO_MANY : ST_UNREACHABLE;
        freeaddrinfo(a);
        return err_set(err, st, "socket: %s", strerrordesc_np(errno));
    }
    int r = connect(fd, a->ai_addr, a->ai_addrlen);
    int why = errno;
    freeaddrinfo(a);
    if (r != 0 && why != EINPROGRESS && why != EINTR) {
        close(fd);
        return err_set(err, ST_UNREACHABLE, "connect: %s", strerrordesc_np(why));
    }
    struct os_stream *s = stream_new(l, fd, OPENING);
    snprintf(s->remote, sizeof s->remote, "%s", address);
    os_attach(&s->base, handler, arg);
    watch(s);
    loop_timer_start(s->timer, timeout_us);
    *out = &s->base;
    return ST_OK;
}

/* Keeps what the socket did not take: everything behind the first DONE bytes. */
static void queue_rest(struct os_stream *s, const struct iovec *iov, int count, size_t done)
{
    for (int i = 0; i < count; i++) {
        size_t skip = done < iov[i].iov_len ? done : iov[i].iov_len;
        done -= skip;
        obuf_put(&s->queue, (const uint8_t *)iov[i].iov_base + skip, iov[i].iov_len - skip);
    }
    watch(s);
}

static void os_send(struct env_stream *base, const struct iovec *iov, int count)
{
    struct os_stream *s = stream_of(base);
    ssize_t n = 0;
    if (s->state != OPEN)
        return;
    if (s->queue.size == s->written) {
        struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)count};
        do {
            n = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        } while (n < 0 && errno == EINTR);
        if (n < 0 && errno != EAGAIN) {
            break_errno(s, "send");
            return;
        }
    }
    queue_rest(s, iov, count, n > 0 ? (size_t)n : 0);
}

static size_t os_queued(const struct env_stream *base)
{
    const struct os_stream *s = stream_of(base);
    return s->queue.size - s->written;
}

static void os_pause(struct env_stream *base, bool paused)
{
    struct os_stream *s = stream_of(base);
    s->paused = paused;
    watch(s);
}

static const char *os_remote(const struct env_stream *base)
{
    return stream_of(base)->remote;
}

static void os_close(struct env_stream *base)
{
    struct os_stream *s = stream_of(base);
    ASSERT(!s->dropped);
    s->state = CLOSED;
    if (!s->calling) {
        stream_free(s);
        return;
    }
    s->dropped = true;
    loop_io_set(s->io, 0);
    loop_timer_stop(s->timer);
}

int env_os_stream_fd(const struct env_stream *s)
{
    return stream_of(s)->fd;
}

/* -- listeners --------------------------------------------------------------------------------- */

static void on_acceptable(void *arg, int events)
{
    UNUSED(events);
    struct env_listener *l = arg;
    for (unsigned i = 0; i < ACCEPT_PER_TURN; i++) {
        struct sockaddr_storage a;
        socklen_t size = sizeof a;
        int fd = accept4(l->fd, (struct sockaddr *)&a, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            struct os_stream *s = stream_new(l->loop, fd, OPEN);
            print_address(&a, size, s->remote);
            s->calling = true;
            l->accepted(l->arg, &s->base);
            if (callback_over(s)) {
                ASSERT(s->handler != NULL);
                watch(s);
            }
        } else if (errno == EMFILE || errno == ENFILE) {
            enum spare_outcome outcome = spare_use(l->spare, l->fd);
            if (outcome == SPARE_GONE)
                loop_io_set(l->io, 0);
            if (outcome != SPARE_DROPPED)
                return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void accept_again(void *arg)
{
    struct env_listener *l = arg;
    loop_io_set(l->io, LOOP_READ);
}

static status os_listen(struct env *e, struct loop *loop, const char *address,
                        void (*accepted)(void *arg, struct env_stream *s), void *arg,
                        struct env_listener **out, struct err *err)
{
    UNUSED(e);
    struct addrinfo *a = NULL;
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    int on = 1;
    ST_TRY(resolve(address, &a, err));
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0 &&
                getsockname(fd, (struct sockaddr *)&bound, &size) == 0;
    int why = errno;
    freeaddrinfo(a);
    if (!good) {
        if (fd >= 0)
            close(fd);
        return err_set(err, ST_IO, "cannot listen on %s: %s", address, strerrordesc_np(why));
    }
    struct env_listener *l = calloc(1, sizeof *l);
    ASSERT(l != NULL);
    l->loop = loop;
    l->fd = fd;
    l->accepted = accepted;
    l->arg = arg;
    print_address(&bound, size, l->address);
    l->spare = spare_new(loop, l->address, accept_again, l);
    l->io = loop_io_new(loop, fd, on_acceptable, l);
    loop_io_set(l->io, LOOP_READ);
    *out = l;
    return ST_OK;
}

static void os_unlisten(struct env_listener *l)
{
    if (l == NULL)
        return;
    loop_io_free(l->io);
    close(l->fd);
    spare_free(l->spare);
    free(l);
}

static const char *os_listener_address(const struct env_listener *l)
{
    return l->address;
}

const struct env_net_ops env_os_net = {
    .listen = os_listen,
    .unlisten = os_unlisten,
    .listener_address = os_listener_address,
    .connect = os_connect,
    .attach = os_attach,
    .send = os_send,
    .queued = os_queued,
    .pause = os_pause,
    .remote = os_remote,
    .close = os_close,
};
