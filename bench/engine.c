/*
 * bench/engine.c — the event loop of the load generator.
 *
 * A connection's life: CONNECTING, GREETING (the stages of wire->hello), READY. Connections are
 * opened CONNECT_WINDOW at a time, so that no listen queue overflows. When all are READY every
 * client fills its window; from then on each answer that arrives is timed, and the same turn sends
 * what may follow it, so one operation costs one recv and one send. Nothing new is sent after the
 * end of the window, or once a client has no entries left; the answers still under way are waited
 * for, so that the counts on the server can be compared with what was acknowledged.
 *
 * Invariants:
 * 1. connection->waiting answers are under way, at most ring_size; the ring holds when each was
 *    sent and for how many operations it answers, oldest at head.
 * 2. Processor time is read before the first and after the last operation, never in between.
 */
#include "engine.h"
#include "cpu.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_WINDOW 32u
#define EVENTS 256
#define RECEIVE_MIN 16384u
#define CONNECT_WAIT_MS 60000
#define DRAIN_WAIT_NS 60000000000ull

enum state { CONNECTING, GREETING, READY };

struct sent {
    uint64_t at;
    unsigned operations;
};

struct connection {
    int fd;
    enum state state;
    bool idle, writable_wanted;
    unsigned stage, client;
    struct out out;
    size_t sent;
    uint8_t *in;
    size_t in_size, in_capacity;
    struct answer answer;
    struct sent *ring;
    unsigned head, waiting;
    uint64_t acknowledged;
};

struct engine {
    const struct target *target;
    const struct wire *wire;
    const struct plan *plan;
    const struct engine_options *options;
    struct generator *generator;
    struct engine_result *result;
    struct connection *connections;
    unsigned count, opened, ready, ring_size;
    int epoll;
    bool sending;
    uint64_t generated, waiting; /* operations; answers under way */
    uint64_t begin, end;         /* of the window */
};

static void watch(struct engine *e, struct connection *c, int how)
{
    struct epoll_event event = {.events = EPOLLIN | (c->writable_wanted ? EPOLLOUT : 0u),
                                .data.ptr = c};
    if (epoll_ctl(e->epoll, how, c->fd, &event) != 0)
        die("epoll_ctl: %s", strerror(errno));
}

static void want_writable(struct engine *e, struct connection *c, bool wanted)
{
    if (c->writable_wanted != wanted) {
        c->writable_wanted = wanted;
        watch(e, c, EPOLL_CTL_MOD);
    }
}

static void open_connection(struct engine *e)
{
    struct connection *c = &e->connections[e->opened];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)e->target->port)};
    int one = 1;
    inet_pton(AF_INET, e->target->host, &to.sin_addr);
    c->client = e->opened++;
    c->idle = c->client >= e->options->clients;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        die("socket: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)
        die("connect: %s", strerror(errno));
    c->ring = must(calloc(e->ring_size, sizeof *c->ring));
    c->writable_wanted = true;
    watch(e, c, EPOLL_CTL_ADD);
}

static void flush(struct engine *e, struct connection *c)
{
    while (c->sent < c->out.size) {
        ssize_t n = send(c->fd, c->out.data + c->sent, c->out.size - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            want_writable(e, c, true);
            return;
        }
        if (n < 0)
            die("send: %s", strerror(errno));
        c->sent += (size_t)n;
    }
    c->out.size = c->sent = 0;
    want_writable(e, c, false);
}

static bool add_operation(struct engine *e, struct connection *c)
{
    const struct engine_options *o = e->options;
    struct op op;
    if (!e->sending || (o->count && e->generated == o->count))
        return false;
    if (!generator_next(e->generator, c->client, &op)) {
        e->sending = false;
        e->end = now_ns();
        return false;
    }
    e->wire->operation(&c->out, e->target, e->plan, &op);
    e->generated++;
    return true;
}

/* Adds one answer's worth of operations; false when there is nothing left to send. */
static bool add_batch(struct engine *e, struct connection *c)
{
    unsigned limit = e->options->batch ? e->options->depth : 1, n = 0;
    while (n < limit && add_operation(e, c))
        n++;
    if (n == 0)
        return false;
    if (e->wire->sync)
        e->wire->sync(&c->out, e->target);
    c->ring[(c->head + c->waiting) % e->ring_size] = (struct sent){now_ns(), n};
    c->waiting++;
    e->waiting++;
    return true;
}

static void send_more(struct engine *e, struct connection *c)
{
    while (c->waiting < e->ring_size && add_batch(e, c))
        ;
    flush(e, c);
}

static void greet(struct engine *e, struct connection *c)
{
    const struct plan *plan = c->idle ? NULL : e->plan;
    c->state = GREETING;
    if (e->wire->hello(&c->out, c->stage++, e->target, plan)) {
        flush(e, c);
        return;
    }
    c->state = READY;
    e->ready++;
    want_writable(e, c, false);
}

static void count_answer(struct engine *e, struct connection *c)
{
    struct engine_result *r = e->result;
    struct sent sent = c->ring[c->head];
    uint64_t now = now_ns();
    c->head = (c->head + 1) % e->ring_size;
    c->waiting--;
    e->waiting--;
    if (c->answer.failed) {
        if (r->errors == 0)
            memcpy(r->error, c->answer.error, sizeof r->error);
        r->errors += sent.operations;
        return;
    }
    c->acknowledged += sent.operations;
    r->acknowledged += sent.operations;
    r->drained = now;
    if (now < e->begin || now > e->end)
        return;
    r->measured += sent.operations;
    for (unsigned i = 0; i < sent.operations; i++)
        histogram_add(&r->latency, now - sent.at);
}

static void on_answer(struct engine *e, struct connection *c)
{
    if (c->state == READY) {
        if (c->waiting == 0)
            die("%s answers what was not asked", e->target->peer);
        count_answer(e, c);
    } else {
        if (c->answer.failed)
            die("%s: %s", e->target->peer, c->answer.error);
        greet(e, c);
    }
    c->answer = (struct answer){0};
}

static void take_answers(struct engine *e, struct connection *c)
{
    size_t at = 0;
    while (at < c->in_size) {
        uint64_t rows = c->state == READY ? e->plan->rows : ROWS_ANY;
        if (!e->wire->answer(c->in + at, c->in_size - at, rows, &c->answer))
            break;
        at += c->answer.at;
        on_answer(e, c);
    }
    c->in_size -= at;
    if (c->in_size > 0 && at > 0)
        memmove(c->in, c->in + at, c->in_size);
}

static void on_readable(struct engine *e, struct connection *c)
{
    size_t room;
    ssize_t n;
    do {
        if (c->in_capacity - c->in_size < RECEIVE_MIN) {
            c->in_capacity = c->in_capacity ? c->in_capacity * 2 : RECEIVE_MIN;
            c->in = must(realloc(c->in, c->in_capacity));
        }
        room = c->in_capacity - c->in_size;
        n = recv(c->fd, c->in + c->in_size, room, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0)
            die("%s closed connection %u: %s", e->target->peer, c->client,
                n ? strerror(errno) : "end of stream");
        c->in_size += (size_t)n;
        take_answers(e, c);
    } while ((size_t)n == room);
    if (c->state == READY && e->sending)
        send_more(e, c);
}

static void on_writable(struct engine *e, struct connection *c)
{
    if (c->state != CONNECTING) {
        flush(e, c);
        return;
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error)
        die("connect to %s:%u: %s", e->target->host, e->target->port, strerror(error));
    want_writable(e, c, false);
    greet(e, c);
}

/* One turn; false after WAIT_MS without an event. */
static bool turn(struct engine *e, int wait_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(e->epoll, events, EVENTS, wait_ms);
    if (n < 0 && errno != EINTR)
        die("epoll_wait: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
        struct connection *c = events[i].data.ptr;
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && c->state != CONNECTING)
            on_readable(e, c);
        if (events[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR) && c->writable_wanted)
            on_writable(e, c);
    }
    return n != 0;
}

static void connect_all(struct engine *e)
{
    while (e->ready < e->count) {
        while (e->opened < e->count && e->opened - e->ready < CONNECT_WINDOW)
            open_connection(e);
        if (!turn(e, CONNECT_WAIT_MS))
            die("%s: %u of %u connections after %d s without an answer", e->target->peer, e->ready,
                e->count, CONNECT_WAIT_MS / 1000);
    }
}

static int wait_ms(uint64_t until)
{
    uint64_t now = now_ns();
    return now >= until ? 0 : (int)((until - now) / 1000000) + 1;
}

static void operate(struct engine *e)
{
    const struct engine_options *o = e->options;
    uint64_t start = now_ns();
    e->begin = start + (o->count ? 0 : (uint64_t)(o->warmup * 1e9));
    e->end = o->count ? UINT64_MAX : e->begin + (uint64_t)(o->seconds * 1e9);
    e->sending = true;
    for (unsigned i = 0; i < o->clients; i++)
        send_more(e, &e->connections[i]);
    while (e->sending && e->waiting > 0 && now_ns() < e->end)
        turn(e, o->count ? -1 : wait_ms(e->end));
    e->sending = false;
    uint64_t limit = now_ns() + DRAIN_WAIT_NS;
    while (e->waiting > 0) {
        turn(e, wait_ms(limit));
        if (now_ns() >= limit)
            die("%s: %llu answers missing", e->target->peer, (unsigned long long)e->waiting);
    }
    e->result->begun = e->begin;
    e->result->ended = e->end == UINT64_MAX ? now_ns() : e->end;
    if (e->result->drained == 0)
        e->result->drained = now_ns();
}

static void run_hook(const char *command)
{
    if (command && system(command) != 0)
        die("failed: %s", command);
}

static void measure(struct engine *e)
{
    const struct engine_options *o = e->options;
    struct engine_result *r = e->result;
    run_hook(o->before);
    double server = cpu_of_process(o->server), self = cpu_of_self(), all = cpu_of_machine();
    uint64_t start = now_ns();
    operate(e);
    double seconds = (double)(r->drained - start) / 1e9;
    r->client_cores = (cpu_of_self() - self) / seconds;
    r->other_cores = (cpu_of_machine() - all) / seconds - r->client_cores;
    r->server_cores = (cpu_of_process(o->server) - server) / seconds;
    r->other_cores -= r->server_cores;
    run_hook(o->after);
}

static void close_all(struct engine *e)
{
    struct engine_result *r = e->result;
    r->least = UINT64_MAX;
    for (unsigned i = 0; i < e->count; i++) {
        struct connection *c = &e->connections[i];
        if (!c->idle) {
            r->least = c->acknowledged < r->least ? c->acknowledged : r->least;
            r->most = c->acknowledged > r->most ? c->acknowledged : r->most;
        }
        close(c->fd);
        out_free(&c->out);
        free(c->in);
        free(c->ring);
    }
    free(e->connections);
    close(e->epoll);
}

static void raise_file_limit(unsigned count)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < count + 64)
        die("%u connections need a higher limit of open files (ulimit -n)", count);
}

void engine_run(const struct target *t, const struct wire *w, const struct plan *plan,
                struct generator *g, const struct engine_options *o, struct engine_result *r)
{
    struct engine e = {.target = t,
                       .wire = w,
                       .plan = plan,
                       .options = o,
                       .generator = g,
                       .result = r,
                       .count = o->clients + o->idle,
                       .ring_size = o->batch ? 1 : o->depth};
    memset(r, 0, sizeof *r);
    histogram_init(&r->latency);
    raise_file_limit(e.count);
    e.connections = must(calloc(e.count, sizeof *e.connections));
    e.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (e.epoll < 0)
        die("epoll_create1: %s", strerror(errno));
    connect_all(&e);
    measure(&e);
    close_all(&e);
}
