/*
 * frontend/server.c — listeners, workers, and the stop.
 *
 * Vocabulary: a *worker* is a reactor's share of the server: its planner, its connections. The
 * listeners are on reactor 0; an accepted descriptor goes to the next worker in turn.
 *
 * Descriptors run out: base/spare.h drops the client that waits, so that the loop does not spin.
 *
 * Stop: listeners close; every worker tells its sessions; a sweep per worker ends what is left
 * after FE_STOP_TICKS; the last connection of the last worker ends the server. A session whose call
 * is pending is waited for: calls always end.
 *
 * Threads: struct fe_server belongs to reactor 0, but `total`; a worker belongs to its reactor.
 */
#include "frontend/server.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/spare.h"
#include "cluster/roles.h"
#include "frontend/ahead.h"
#include "frontend/server_internal.h"
#include "frontend/session.h"
#include "frontend/session_pool.h"
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENERS_MAX 16u
#define ADDRESS_BYTES 256u
#define ACCEPT_PER_TURN 64u
#define BACKLOG 1024
#define SWEEP_US 1000000u
#define STOP_TICK_US 100000u
#define FE_STOP_TICKS 30u
#define DRAIN_SECONDS 15u
/* Beyond the limit some are still let in far enough to be told so in a message. */
#define REFUSED_MAX 64u
/* Log, store and the like. */
#define OTHER_DESCRIPTORS 1024u

struct listener {
    struct fe_server *server;
    struct loop_io *io;
    int fd;
};

struct fe_server {
    struct cl_node *node;
    struct fe_access *access;
    struct listener listeners[LISTENERS_MAX];
    unsigned listener_count, next_worker, worker_count, stopped_workers, connections_max;
    unsigned reserved, starting_max; /* starting_max: of a worker */
    uint64_t timeout_us;             /* of a start-up */
    bool open;                       /* roles have been read */
    struct fe_worker *workers;
    struct spare *spare;
    atomic_uint total;
    void (*done)(void *arg);
    void *arg;
};

/* -- messages between workers ------------------------------------------------------------------ */

struct call {
    struct mail mail;
    struct fe_worker *worker;
    void (*fn)(struct fe_worker *w, void *arg);
    void *arg;
};

static void call_deliver(struct mail *m)
{
    struct call *c = CONTAINER_OF(m, struct call, mail);
    c->fn(c->worker, c->arg);
    free(c->arg);
    free(c);
}

static void send_call(struct fe_worker *w, void (*fn)(struct fe_worker *w, void *arg), void *arg)
{
    struct call *c = malloc(sizeof *c);
    ASSERT(c != NULL);
    *c = (struct call){.mail.deliver = call_deliver, .worker = w, .fn = fn, .arg = arg};
    mailbox_send(w->reactor->mailbox, &c->mail);
}

void fe_worker_call(struct fe_worker *from, struct fe_worker *w,
                    void (*fn)(struct fe_worker *w, void *arg), void *arg)
{
    if (from != w) {
        send_call(w, fn, arg);
        return;
    }
    fn(w, arg);
    free(arg);
}

struct fe_worker *fe_server_worker(struct fe_server *s, unsigned i)
{
    ASSERT(i < s->worker_count);
    return &s->workers[i];
}

/* -- workers ----------------------------------------------------------------------------------- */

static void stop_finished(struct fe_worker *w);

/* Ends start-ups and farewells that take too long. */
static void on_sweep(void *arg)
{
    struct fe_worker *w = arg;
    uint64_t now = loop_now_us(w->loop);
    bool over = w->stopping && ++w->stop_ticks >= FE_STOP_TICKS;
    /* Thousands of idle connections are not looked at. */
    struct fe_conn *first = w->passing > 0 || over ? w->conns : NULL;
    for (struct fe_conn *c = first, *next; c != NULL; c = next) {
        next = c->next;
        uint64_t age_us = now - c->since_us;
        bool slow = (c->state == FE_CONN_STARTUP && age_us >= w->server->timeout_us) ||
                    (c->state == FE_CONN_DRAINING && age_us >= DRAIN_SECONDS * 1000000u);
        if (slow || over)
            fe_conn_close(c);
    }
    fe_pool_trim(w->pool);
    if (w->index == 0)
        fe_access_poll(w->server->access);
    loop_timer_start(w->sweep, w->stopping ? STOP_TICK_US : SWEEP_US);
}

static void worker_start(struct fe_worker *w, void *arg)
{
    UNUSED(arg);
    w->loop = w->reactor->loop;
    w->planner = pl_new(w->node, w->reactor);
    w->pool = fe_pool_new();
    w->random = env_random64(cl_node_env(w->node));
    w->serial = (uint32_t)(w->random & 0xffff);
    w->turn = loop_turn_new(w->loop, fe_worker_turn, w);
    w->sweep = loop_timer_new(w->loop, on_sweep, w);
    loop_timer_start(w->sweep, SWEEP_US);
}

struct handover {
    int fd;
    bool refuse;
};

/* Strangers are many, and the one that has been silent for longest is the least likely to log in.
 *  */
static void drop_oldest(struct fe_worker *w)
{
    struct fe_conn *oldest = NULL;
    for (struct fe_conn *c = w->conns; c != NULL; c = c->next)
        if (c->state == FE_CONN_STARTUP && (oldest == NULL || c->since_us <= oldest->since_us))
            oldest = c;
    LOG_WARN("auth.too_many_pending", LOG_U64("pending", w->starting));
    fe_conn_close(oldest);
}

static void worker_take(struct fe_worker *w, void *arg)
{
    const struct handover *h = arg;
    if (w->stop_reported) {
        close(h->fd);
        atomic_fetch_sub_explicit(&w->server->total, 1, memory_order_relaxed);
        return;
    }
    if (w->starting >= w->server->starting_max)
        drop_oldest(w);
    fe_conn_new(w, h->fd, h->refuse);
}

void fe_server_gone(struct fe_worker *w)
{
    atomic_fetch_sub_explicit(&w->server->total, 1, memory_order_relaxed);
    if (w->stopping && w->conn_count == 0)
        stop_finished(w);
}

/* -- accepting --------------------------------------------------------------------------------- */

static void watch(struct fe_server *s, int events)
{
    for (unsigned i = 0; i < s->listener_count; i++)
        loop_io_set(s->listeners[i].io, events);
}

static void accept_again(void *arg)
{
    watch(arg, LOOP_READ);
}

static void hand_over(struct fe_server *s, int fd)
{
    unsigned before = atomic_fetch_add_explicit(&s->total, 1, memory_order_relaxed);
    if (before >= s->connections_max + REFUSED_MAX || fault_point("fe.accept")) {
        atomic_fetch_sub_explicit(&s->total, 1, memory_order_relaxed);
        close(fd);
        return;
    }
    struct handover *h = malloc(sizeof *h);
    ASSERT(h != NULL);
    *h = (struct handover){.fd = fd, .refuse = before >= s->connections_max};
    struct fe_worker *w = &s->workers[s->next_worker++ % s->worker_count];
    fe_worker_call(&s->workers[0], w, worker_take, h);
}

static void on_connect(void *arg, int events)
{
    UNUSED(events);
    struct listener *l = arg;
    for (unsigned i = 0; i < ACCEPT_PER_TURN; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            hand_over(l->server, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE) {
            enum spare_outcome outcome = spare_use(l->server->spare, l->fd);
            if (outcome == SPARE_GONE)
                watch(l->server, 0);
            if (outcome != SPARE_DROPPED)
                return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* -- listening --------------------------------------------------------------------------------- */

static NODISCARD status listen_on(struct fe_server *s, const struct addrinfo *a, const char *text,
                                  struct err *err)
{
    if (s->listener_count == LISTENERS_MAX)
        return err_set(err, ST_INVALID, "more than %u listen addresses", LISTENERS_MAX);
    int on = 1;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(err, ST_IO, "socket for %s: %s", text, strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int e = errno;
        close(fd);
        return err_set(err, ST_IO, "cannot listen on %s: %s", text, strerror(e));
    }
    s->listeners[s->listener_count++] = (struct listener){.server = s, .fd = fd};
    return ST_OK;
}

/* HOST:PORT or [HOST]:PORT, in place. */
static bool split_address(char *text, char **host, char **port)
{
    char *colon = strrchr(text, ':');
    if (colon == NULL)
        return false;
    *colon = '\0';
    *port = colon + 1;
    *host = text;
    size_t n = strlen(text);
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
        text[n - 1] = '\0';
        *host = text + 1;
    }
    return **port != '\0';
}

/* The addresses of TEXT, of N bytes, the caller's to free; SHOWN is a copy for messages. */
static NODISCARD status resolve(const char *text, size_t n, char shown[ADDRESS_BYTES],
                                struct addrinfo **out, struct err *err)
{
    char copy[ADDRESS_BYTES];
    char *host, *port;
    if (n >= ADDRESS_BYTES)
        return err_set(err, ST_INVALID, "listen address is too long");
    memcpy(copy, text, n);
    copy[n] = '\0';
    memcpy(shown, copy, n + 1);
    if (!split_address(copy, &host, &port))
        return err_set(err, ST_INVALID, "listen address \"%s\" is not host:port", shown);
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    int e = getaddrinfo(host[0] == '\0' || strcmp(host, "*") == 0 ? NULL : host, port, &hints, out);
    if (e != 0)
        return err_set(err, ST_INVALID, "listen address \"%s\": %s", shown,
                       e == EAI_SERVICE ? "not a port" : gai_strerror(e));
    return ST_OK;
}

/* Listens on all of TEXT, or only looks whether it can be read where S is NULL. */
static NODISCARD status listen_all(struct fe_server *s, const char *text, struct err *err)
{
    char shown[ADDRESS_BYTES];
    bool any = false;
    while (*text != '\0') {
        size_t n = strcspn(text, ",");
        struct addrinfo *list = NULL;
        status st = ST_OK;
        if (n > 0)
            ST_TRY(resolve(text, n, shown, &list, err));
        for (struct addrinfo *a = list; a != NULL && st == ST_OK; a = a->ai_next) {
            any = true;
            if (s != NULL)
                st = listen_on(s, a, shown, err);
        }
        if (list != NULL)
            freeaddrinfo(list);
        ST_TRY(st);
        text += n + (text[n] == ',');
    }
    return any ? ST_OK : err_set(err, ST_INVALID, "no listen address");
}

status fe_server_check(const struct config *c, const char *listen, struct err *err)
{
    ST_TRY(listen_all(NULL, listen, err));
    return fe_access_check(c, err);
}

static void close_listeners(struct fe_server *s)
{
    for (unsigned i = 0; i < s->listener_count; i++) {
        loop_io_free(s->listeners[i].io);
        close(s->listeners[i].fd);
    }
    s->listener_count = 0;
}

static void destroy(struct fe_server *s)
{
    close_listeners(s);
    cl_roles_close(s->node);
    spare_free(s->spare);
    fe_access_free(s->access);
    free(s->workers);
    free(s);
}

static void start_workers(struct fe_server *s)
{
    s->worker_count = cl_node_reactor_count(s->node);
    s->workers = calloc(s->worker_count, sizeof *s->workers);
    ASSERT(s->workers != NULL);
    for (unsigned i = 0; i < s->worker_count; i++) {
        struct fe_worker *w = &s->workers[i];
        *w = (struct fe_worker){.server = s,
                                .node = s->node,
                                .reactor = cl_node_reactor(s->node, i),
                                .index = i,
                                .count = s->worker_count};
    }
    worker_start(&s->workers[0], NULL);
    for (unsigned i = 1; i < s->worker_count; i++)
        send_call(&s->workers[i], worker_start, NULL);
}

/* As many descriptors as connections need, if the system lets us. */
static void raise_descriptor_limit(unsigned connections)
{
    struct rlimit r;
    rlim_t want = (rlim_t)connections + REFUSED_MAX + OTHER_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= want)
        return;
    r.rlim_cur = want < r.rlim_max ? want : r.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &r);
    if (r.rlim_cur < want)
        LOG_WARN("fe.few_descriptors", LOG_U64("limit", r.rlim_cur), LOG_U64("wanted", want));
}

static void read_settings(struct fe_server *s, const struct config *c)
{
    s->connections_max = (unsigned)config_int(c, "max_connections");
    s->reserved = (unsigned)config_int(c, "superuser_reserved_connections");
    s->starting_max = (unsigned)config_int(c, "auth.pending");
    s->timeout_us = (uint64_t)config_int(c, "auth.timeout");
}

static void stop(struct fe_server *s);

/* Clients wait in the listeners' queues until roles have been read. */
static void on_roles(void *arg, status st)
{
    struct fe_server *s = arg;
    s->open = true;
    if (st != ST_OK)
        LOG_ERROR("fe.no_roles", LOG_STR("why", status_text(st)));
    if (s->done != NULL) {
        stop(s);
        return;
    }
    watch(s, LOOP_READ);
}

status fe_server_new(struct cl_node *node, const char *listen, struct fe_server **out,
                     struct err *err)
{
    struct fe_server *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    s->node = node;
    read_settings(s, cl_node_config(node));
    raise_descriptor_limit(s->connections_max);
    signal(SIGPIPE, SIG_IGN);
    status st = fe_access_new(cl_node_config(node), &s->access, err);
    if (st == ST_OK)
        st = listen_all(s, listen, err);
    if (st != ST_OK) {
        destroy(s);
        return st;
    }
    start_workers(s);
    s->spare = spare_new(s->workers[0].loop, "clients", accept_again, s);
    for (unsigned i = 0; i < s->listener_count; i++) {
        struct listener *l = &s->listeners[i];
        l->io = loop_io_new(s->workers[0].loop, l->fd, on_connect, l);
    }
    *out = s;
    cl_roles_open(node, on_roles, s);
    return ST_OK;
}

struct fe_access *fe_server_access(struct fe_server *s)
{
    return s->access;
}

bool fe_server_has_tls(struct fe_server *s)
{
    struct tls_context *tls = fe_access_tls(s->access);
    tls_context_unref(tls);
    return tls != NULL;
}

bool fe_server_is_reserved(const struct fe_server *s)
{
    return fe_server_connections(s) + s->reserved > s->connections_max;
}

status fe_server_reload(struct fe_server *s, const struct config *c, struct err *err)
{
    return fe_access_reload(s->access, c, err);
}

unsigned fe_server_port(const struct fe_server *s)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    if (getsockname(s->listeners[0].fd, (struct sockaddr *)&a, &n) != 0)
        return 0;
    if (a.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&a)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&a)->sin_port);
}

unsigned fe_server_connections(const struct fe_server *s)
{
    return atomic_load_explicit(&s->total, memory_order_relaxed);
}

/* -- stopping ---------------------------------------------------------------------------------- */

static void on_worker_stopped(struct fe_worker *w, void *arg)
{
    UNUSED(arg);
    struct fe_server *s = w->server;
    if (++s->stopped_workers < s->worker_count)
        return;
    void (*done)(void *) = s->done;
    void *done_arg = s->arg;
    destroy(s);
    done(done_arg);
}

/* On W's thread, from its mailbox: nothing of W is on the stack. */
static void worker_end(struct fe_worker *w, void *arg)
{
    UNUSED(arg);
    loop_timer_free(w->sweep);
    loop_turn_free(w->turn);
    pl_free(w->planner);
    fe_pool_free(w->pool);
    fe_ahead_free(w);
    fe_worker_buffers_free(w);
    send_call(&w->server->workers[0], on_worker_stopped, NULL);
}

static void stop_finished(struct fe_worker *w)
{
    if (w->stop_reported)
        return;
    w->stop_reported = true;
    send_call(w, worker_end, NULL);
}

static void worker_stop(struct fe_worker *w, void *arg)
{
    UNUSED(arg);
    w->stopping = true;
    if (w->index == 0)
        cl_node_drain(w->node);
    for (struct fe_conn *c = w->conns, *next; c != NULL; c = next) {
        next = c->next;
        if (c->session != NULL)
            fe_session_stop(c->session);
        else
            fe_conn_close(c);
    }
    loop_timer_start(w->sweep, STOP_TICK_US);
    if (w->conn_count == 0)
        stop_finished(w);
}

static void stop(struct fe_server *s)
{
    close_listeners(s);
    for (unsigned i = 0; i < s->worker_count; i++)
        send_call(&s->workers[i], worker_stop, NULL);
}

void fe_server_stop(struct fe_server *s, void (*done)(void *arg), void *arg)
{
    s->done = done;
    s->arg = arg;
    if (s->open)
        stop(s);
}
