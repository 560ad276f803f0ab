/*
 * frontend/conn.c — sockets, buffers, turns.
 *
 * Input is appended to c->in and handled from c->in_at; output is appended to c->out by whoever
 * answers and sent from c->out_at once at the end of a turn, a pipeline's answers as soon as they
 * are whole (answer_pipeline). An empty buffer goes back to the worker, so that an idle connection
 * costs its struct only, and the next one that reads or writes gets memory that is still in the
 * processor's cache.
 *
 *            readable                       end of turn
 *   socket ───────────> in ─ fe_conn_run ─> out ───────────> socket
 *
 * Back-pressure: while more than FE_OUTPUT_HIGH_BYTES wait to be sent, nothing is handled (C3), but
 * input is still read, up to FE_INPUT_AHEAD_BYTES: a client that queues thousands of statements
 * before it reads any answer would otherwise wait for us while we wait for it.
 *
 * What one connection may hold is much; where all together hold more than FE_HELD_BYTES, it is
 * little (is_pressed). Nobody is woken when that is over: who has stopped reading has input to
 * handle, and reads on when that is done.
 *
 * A message that has not come whole is kept in c->in. What that takes beyond FE_INPUT_PRESSED_BYTES
 * is taken from memory.messages, which all connections share, before the buffer grows (C7): first
 * come, first served. A message for which nothing is left is dropped as it comes, and then answered
 * with an error. No one waits for memory that others hold, so nobody waits for ever.
 *
 * Invariants
 *   C1  state changes only through move(), along rules[].
 *   C2  A closed connection has no descriptor and no watcher; it exists on for a session whose call
 *       is pending, and for nothing else.
 *   C3  Output grows only by the answer of one message, or one page of rows, above the high mark.
 *   C4  c->dirty and c->runnable tell whether the connection is in the worker's list of that name.
 *   C6  c->held is the connection's share of worker->held_bytes, as of the end of its last turn.
 *   C5  Interest in writing begins when the socket took less than there was, and only flush() turns
 *       it on or off: what is sent whole at the end of its turn costs no call to the poller.
 *   C7  Where an unfinished message needs more than FE_INPUT_PRESSED_BYTES, c->charged is at least
 *       the capacity of c->in; it falls with that at the end of a turn.
 *
 * Threads: one worker, one thread.
 */
#include "frontend/conn.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/limits.h"
#include "base/memory.h"
#include "frontend/conn_internal.h"
#include "frontend/server_internal.h"
#include "frontend/session.h"
#include "frontend/startup.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* What one turn adds to the input at most: in TLS a record is read behind what came. */
#define READ_ROOM (2 * FE_READ_BYTES)

#define TO(s) (1u << (s))
static const struct {
    const char *name;
    unsigned next;
} rules[FE_CONN_STATES] = {
    [FE_CONN_STARTUP] = {"startup", TO(FE_CONN_READY) | TO(FE_CONN_DRAINING) | TO(FE_CONN_CLOSED)},
    [FE_CONN_READY] = {"ready", TO(FE_CONN_DRAINING) | TO(FE_CONN_CLOSED)},
    [FE_CONN_DRAINING] = {"draining", TO(FE_CONN_CLOSED)},
    [FE_CONN_CLOSED] = {"closed", 0},
};

/* States that a connection may not stay in for long: the sweep looks for those that do. */
static bool passes(enum fe_conn_state s)
{
    return s == FE_CONN_STARTUP || s == FE_CONN_DRAINING;
}

static void move(struct fe_conn *c, enum fe_conn_state next)
{
    ASSERT_INV("C1", rules[c->state].next & TO(next));
    c->worker->passing += passes(next);
    c->worker->passing -= passes(c->state);
    c->worker->starting -= c->state == FE_CONN_STARTUP;
    c->state = next;
}

static void on_event(void *arg, int events);

/* -- life -------------------------------------------------------------------------------------- */

/* A peer that vanished without a word is noticed within a minute or two, also while we write. */
static void set_options(int fd)
{
    int on = 1, idle_s = 60, interval_s = 10, probes = 3;
    unsigned give_up_ms = 60000;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, sizeof give_up_ms);
}

void fe_conn_new(struct fe_worker *w, int fd, bool refuse)
{
    struct fe_conn *c = memory_new(MEMORY_SESSIONS, sizeof *c);
    set_options(fd);
    *c = (struct fe_conn){.worker = w,
                          .fd = fd,
                          .refuse = refuse,
                          .since_us = loop_now_us(w->loop),
                          .interest = LOOP_READ};
    c->next = w->conns;
    c->link = &w->conns;
    if (c->next != NULL)
        c->next->link = &c->next;
    w->conns = c;
    w->conn_count++;
    w->passing += passes(c->state);
    w->starting += c->state == FE_CONN_STARTUP;
    c->io = loop_io_new(w->loop, fd, on_event, c);
    loop_io_set(c->io, LOOP_READ);
}

static void count_held(struct fe_conn *c);

static void forget(struct fe_conn **list, struct fe_conn *c, size_t offset)
{
    struct fe_conn **p = list;
    while (*p != NULL && *p != c)
        p = (struct fe_conn **)((char *)*p + offset);
    ASSERT_INV("C4", *p == c);
    *p = *(struct fe_conn **)((char *)c + offset);
}

void fe_conn_free(struct fe_conn *c)
{
    ASSERT_INV("C2", c->state == FE_CONN_CLOSED);
    ASSERT(c->session == NULL);
    struct fe_worker *w = c->worker;
    if (c->dirty)
        forget(&w->dirty, c, offsetof(struct fe_conn, next_dirty));
    if (c->runnable)
        forget(&w->runnable, c, offsetof(struct fe_conn, next_runnable));
    *c->link = c->next;
    if (c->next != NULL)
        c->next->link = c->link;
    w->conn_count--;
    obuf_fini(&c->in);
    obuf_fini(&c->out);
    count_held(c);
    ASSERT_INV("C7", c->charged == 0 && c->held == 0);
    fe_server_gone(w);
    memory_free(MEMORY_SESSIONS, c, sizeof *c);
}

void fe_conn_close(struct fe_conn *c)
{
    if (c->state == FE_CONN_CLOSED)
        return;
    move(c, FE_CONN_CLOSED);
    loop_io_free(c->io);
    c->io = NULL;
    close(c->fd);
    c->fd = -1;
    tls_free(c->tls);
    c->tls = NULL;
    fe_login_free(c->login);
    c->login = NULL;
    /* The memory goes at the end of the turn at the latest: a caller further up still holds C. */
    if (c->session != NULL)
        fe_session_leave(c->session);
    fe_conn_dirty(c);
}

void fe_conn_ready(struct fe_conn *c)
{
    move(c, FE_CONN_READY);
}

void fe_conn_drain(struct fe_conn *c)
{
    if (c->state == FE_CONN_CLOSED || c->state == FE_CONN_DRAINING)
        return;
    move(c, FE_CONN_DRAINING);
    obuf_reset(&c->in);
    c->in_at = 0;
    c->since_us = loop_now_us(c->worker->loop);
    fe_conn_dirty(c);
}

/* -- buffers ----------------------------------------------------------------------------------- */

void fe_buffer_take(struct fe_worker *w, struct obuf *b)
{
    if (b->capacity > 0 || w->buffer_count == 0)
        return;
    *b = w->buffers[--w->buffer_count];
    w->buffer_bytes -= b->capacity;
}

void fe_buffer_give(struct fe_worker *w, struct obuf *b)
{
    if (b->capacity == 0)
        return;
    obuf_reset(b);
    if (w->buffer_count == FE_SPARE_BUFFERS ||
        w->buffer_bytes + b->capacity > FE_SPARE_BUFFERS_BYTES) {
        obuf_fini(b);
        return;
    }
    w->buffers[w->buffer_count++] = *b;
    w->buffer_bytes += b->capacity;
    obuf_init(b);
}

void fe_worker_buffers_free(struct fe_worker *w)
{
    while (w->buffer_count > 0)
        obuf_fini(&w->buffers[--w->buffer_count]);
}

/* -- output ------------------------------------------------------------------------------------ */

void fe_conn_dirty(struct fe_conn *c)
{
    if (c->dirty)
        return;
    c->dirty = true;
    c->next_dirty = c->worker->dirty;
    c->worker->dirty = c;
    fe_buffer_take(c->worker, &c->out);
}

void fe_conn_push(struct fe_conn *c)
{
    c->push = true;
    fe_conn_dirty(c);
}

/* C6 */
static void count_held(struct fe_conn *c)
{
    size_t now = c->in.capacity + c->out.capacity;
    c->worker->held_bytes += now - c->held;
    c->held = now;
    size_t keep = c->in.capacity < c->charged ? c->in.capacity : c->charged;
    if (c->in.capacity <= FE_INPUT_PRESSED_BYTES)
        keep = 0;
    if (keep < c->charged) {
        cl_node_give_message_memory(c->worker->node, c->charged - keep);
        c->charged = keep;
    }
}

static bool is_pressed(const struct fe_conn *c)
{
    return c->worker->held_bytes > FE_HELD_BYTES;
}

static size_t high_mark(const struct fe_conn *c)
{
    return is_pressed(c) ? FE_OUTPUT_PRESSED_BYTES : FE_OUTPUT_HIGH_BYTES;
}

static size_t ahead_mark(const struct fe_conn *c)
{
    return is_pressed(c) ? FE_INPUT_PRESSED_BYTES : FE_INPUT_AHEAD_BYTES;
}

bool fe_conn_over_high(const struct fe_conn *c)
{
    return c->out.size - c->out_at > high_mark(c);
}

void fe_conn_lend_output(struct fe_conn *c, struct obuf *out)
{
    fe_conn_dirty(c);
    obuf_init(out);
    if (c->out_at > 0 || c->out.size >= FE_OUTPUT_HOLD_BYTES) {
        fe_buffer_take(c->worker, out); /* that much is sent meanwhile */
        return;
    }
    *out = c->out;
    obuf_init(&c->out);
}

void fe_conn_return_output(struct fe_conn *c, struct obuf *out)
{
    if (c->out.size == 0) {
        fe_buffer_give(c->worker, &c->out);
        c->out = *out;
        obuf_init(out);
    } else {
        obuf_put(&c->out, out->data, out->size);
        fe_buffer_give(c->worker, out);
    }
    fe_conn_dirty(c);
}

static size_t input_left(const struct fe_conn *c)
{
    return c->in.size - c->in_at;
}

static void set_interest(struct fe_conn *c, bool writing)
{
    size_t ahead = c->need > ahead_mark(c) ? c->need : ahead_mark(c);
    bool reading = c->state == FE_CONN_DRAINING || (!c->eof && input_left(c) < ahead);
    int want = (reading ? LOOP_READ : 0) | (writing ? LOOP_WRITE : 0);
    if (want != c->interest) {
        c->interest = want;
        loop_io_set(c->io, want);
    }
}

static size_t unsent(const struct fe_conn *c)
{
    return c->out.size - c->out_at + (c->tls != NULL ? fe_conn_tls_unsent(c) : 0);
}

/* Sends as much as the socket takes. False: the connection is closed. */
static bool send_output(struct fe_conn *c)
{
    if (c->tls != NULL && !fe_conn_tls_send(c)) {
        fe_conn_close(c);
        return false;
    }
    while (c->tls == NULL && c->out_at < c->out.size) {
        ssize_t n = fault_point("fe.write")
                        ? (errno = EPIPE, -1)
                        : send(c->fd, c->out.data + c->out_at, c->out.size - c->out_at,
                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0) {
            fe_conn_close(c);
            return false;
        }
        c->out_at += (size_t)n;
    }
    if (c->out_at == c->out.size) {
        c->out_at = 0;
        fe_buffer_give(c->worker, &c->out);
    } else if (c->out_at >= FE_OUTPUT_HIGH_BYTES) {
        obuf_consume(&c->out, c->out_at);
        c->out_at = 0;
    }
    return true;
}

/* The write side is shut first and input read to its end: closing with unread input would make the
 * kernel send a reset, and the client could lose our last words. */
static void finish_draining(struct fe_conn *c)
{
    if (c->tls != NULL) {
        fe_conn_tls_goodbye(c);
        if (!send_output(c))
            return;
    }
    if (unsent(c) > 0)
        return;
    if (c->eof) {
        fe_conn_close(c);
        return;
    }
    if (!c->shut) {
        c->shut = true;
        shutdown(c->fd, SHUT_WR);
    }
}

/* BindComplete and the like, ahead of a write's answer: the client waits for the latter, so one
 * send (and one wake-up of the client) does for both. */
static bool may_hold(const struct fe_conn *c)
{
    return c->state == FE_CONN_READY && !c->push && c->session != NULL &&
           fe_session_awaits_write(c->session) && c->out.size - c->out_at < FE_OUTPUT_HOLD_BYTES;
}

static void flush(struct fe_conn *c)
{
    if (c->state == FE_CONN_CLOSED) {
        if (c->session == NULL)
            fe_conn_free(c);
        return;
    }
    if (may_hold(c))
        return;
    c->push = false;
    if (!send_output(c)) {
        flush(c);
        return;
    }
    count_held(c);
    if (c->state == FE_CONN_DRAINING) {
        finish_draining(c);
        if (c->state == FE_CONN_CLOSED)
            return;
    }
    set_interest(c, unsent(c) > 0);
    if (c->state == FE_CONN_READY && c->out.size - c->out_at < high_mark(c) / 4 &&
        (c->blocked ||
         (c->session != NULL && c->session->work != NULL && fe_session_is_stalled(c->session)))) {
        c->blocked = false;
        fe_conn_later(c);
    }
}

/* -- turns ------------------------------------------------------------------------------------- */

void fe_conn_later(struct fe_conn *c)
{
    if (c->runnable || c->state == FE_CONN_CLOSED)
        return;
    c->runnable = true;
    c->next_runnable = c->worker->runnable;
    c->worker->runnable = c;
}

static void run_runnable(struct fe_worker *w)
{
    struct fe_conn *list = w->runnable;
    w->runnable = NULL;
    /* Nobody is freed in here: closing only marks, flushing frees. */
    for (struct fe_conn *c = list, *next; c != NULL; c = next) {
        next = c->next_runnable;
        c->runnable = false;
        if (c->session != NULL && c->state == FE_CONN_READY)
            fe_session_continue(c->session);
        fe_conn_run(c);
    }
}

/* Turns the list of those with output round: the one served last is in front of it. */
static struct fe_conn *reverse(struct fe_conn *list)
{
    struct fe_conn *reversed = NULL;
    for (struct fe_conn *next; list != NULL; list = next) {
        next = list->next_dirty;
        list->next_dirty = reversed;
        reversed = list;
    }
    return reversed;
}

void fe_worker_turn(void *worker)
{
    struct fe_worker *w = worker;
    bool ran = w->runnable != NULL;
    if (ran)
        run_runnable(w);
    /* Who was served first is sent to first, so that nobody waits for all of the turn's statements
     * and for all of its sends. */
    struct fe_conn *list = reverse(w->dirty);
    w->dirty = NULL;
    for (struct fe_conn *c = list, *next; c != NULL; c = next) {
        next = c->next_dirty;
        c->dirty = false;
        flush(c);
    }
    /* What ran may have proposed commands for a batch that others close in this very hook. */
    if (ran || w->runnable != NULL || w->dirty != NULL)
        loop_again(w->loop);
}

/* -- input ------------------------------------------------------------------------------------- */

uint8_t fe_conn_peek(const struct fe_conn *c)
{
    bytes in = bytes_make(c->in.data + c->in_at, input_left(c));
    struct fe_frame f;
    for (bool first = true;; first = false) {
        if (fe_frame_next(in, &f) != FE_FRAME_OK)
            return first ? 0 : f.type;
        if (!first && f.type != 'C')
            return f.type;
        in = bytes_make(in.data + f.total, in.size - f.total);
        if (in.size == 0)
            return 0;
    }
}

bool fe_conn_sync_behind(const struct fe_conn *c, bool *more)
{
    bytes in = bytes_make(c->in.data + c->in_at, input_left(c));
    struct fe_frame f;
    if (fe_frame_next(in, &f) != FE_FRAME_OK)
        return false;
    in = bytes_make(in.data + f.total, in.size - f.total);
    if (fe_frame_next(in, &f) != FE_FRAME_OK || f.type != 'S')
        return false;
    *more = in.size > f.total;
    return true;
}

static void consume(struct fe_conn *c, size_t n)
{
    c->in_at += n;
    c->need = 0;
    if (c->in_at == c->in.size) {
        obuf_reset(&c->in);
        c->in_at = 0;
    }
}

/* One message of a login. */
static bool run_login(struct fe_conn *c)
{
    struct fe_frame f;
    enum fe_framing framing = fe_login_next(bytes_make(c->in.data + c->in_at, input_left(c)), &f);
    if (framing == FE_FRAME_BAD_LENGTH) {
        fe_conn_close(c);
        return false;
    }
    if (framing == FE_FRAME_MORE)
        return false;
    fe_login_message(c, &f);
    bool open = c->state == FE_CONN_STARTUP || c->state == FE_CONN_READY;
    if (open)
        consume(c, f.total);
    return open;
}

/* One packet before the session. False: nothing whole is there. */
static bool run_startup(struct fe_conn *c)
{
    struct fe_frame f;
    if (c->login != NULL)
        return run_login(c);
    enum fe_framing framing = fe_startup_next(bytes_make(c->in.data + c->in_at, input_left(c)), &f);
    if (framing == FE_FRAME_BAD_LENGTH && fe_conn_tls_direct(c))
        return true;
    if (framing == FE_FRAME_BAD_LENGTH) {
        fe_conn_close(c);
        return false;
    }
    if (framing != FE_FRAME_OK)
        return false;
    fe_startup_packet(c, f.body, input_left(c) - f.total);
    if (c->state == FE_CONN_STARTUP || c->state == FE_CONN_READY)
        consume(c, f.total);
    return c->state == FE_CONN_STARTUP || c->state == FE_CONN_READY;
}

/* Room for more of the unfinished message of TOTAL bytes. False: there is none. */
static bool make_room(struct fe_conn *c, size_t total)
{
    if (total <= FE_INPUT_PRESSED_BYTES)
        return true;
    obuf_consume(&c->in, c->in_at);
    c->in_at = 0;
    size_t capacity = c->in.capacity, most = total + READ_ROOM;
    if (capacity - c->in.size < READ_ROOM) {
        capacity = 2 * capacity < c->in.size + READ_ROOM ? c->in.size + READ_ROOM : 2 * capacity;
        capacity = capacity < most ? capacity : most;
    }
    if (capacity > c->charged) {
        if (!cl_node_take_message_memory(c->worker->node, capacity - c->charged))
            return false;
        c->charged = capacity;
    }
    obuf_extend(&c->in, capacity);
    return true;
}

/* Nothing is kept of the unfinished message F. */
static void drop_message(struct fe_conn *c, const struct fe_frame *f)
{
    ASSERT(f->total > input_left(c));
    c->dropped = f->type;
    c->dropping = f->total - input_left(c);
    c->need = 0;
    c->in_at = 0;
    obuf_fini(&c->in);
}

static bool run_dropped(struct fe_conn *c)
{
    size_t n = c->dropping < input_left(c) ? c->dropping : input_left(c);
    struct fe_frame f = {.type = c->dropped, .refused = true};
    consume(c, n);
    c->dropping -= n;
    if (c->dropping > 0 || fe_session_message(c->session, &f) == FE_DEFERRED)
        return false;
    c->dropped = 0;
    return c->state == FE_CONN_READY;
}

static bool run_message(struct fe_conn *c)
{
    struct fe_frame f;
    if (c->dropped != 0)
        return run_dropped(c);
    enum fe_framing framing = fe_frame_next(bytes_make(c->in.data + c->in_at, input_left(c)), &f);
    if (c->session->ahead != NULL && framing != FE_FRAME_OK && framing != FE_FRAME_MORE)
        return false; /* its answers first */
    if (framing == FE_FRAME_UNKNOWN) {
        fe_session_unknown(c->session, f.type);
        return false;
    }
    if (framing == FE_FRAME_BAD_LENGTH) {
        fe_conn_close(c);
        return false;
    }
    if (framing == FE_FRAME_MORE) {
        c->need = f.total;
        if (!make_room(c, f.total))
            drop_message(c, &f);
        return false;
    }
    if (fe_session_message(c->session, &f) == FE_DEFERRED)
        return false;
    c->statements += f.type == 'E' || f.type == 'Q';
    if (c->state == FE_CONN_READY)
        consume(c, f.total);
    return c->state == FE_CONN_READY;
}

static bool may_handle(struct fe_conn *c)
{
    if (input_left(c) == 0 && c->dropped == 0)
        return false;
    if (c->state == FE_CONN_STARTUP)
        return true;
    if (c->state != FE_CONN_READY || c->session->busy)
        return false;
    if (fe_conn_over_high(c)) {
        c->blocked = true;
        return false;
    }
    return true;
}

void fe_conn_run(struct fe_conn *c)
{
    if (c->running || c->state == FE_CONN_CLOSED || c->state == FE_CONN_DRAINING)
        return;
    c->running = true;
    unsigned handled = 0;
    c->statements = 0;
    size_t bytes_before = input_left(c);
    bool more = true;
    while (more && may_handle(c)) {
        if (handled++ == FE_MESSAGES_PER_TURN || bytes_before - input_left(c) > FE_BYTES_PER_TURN) {
            fe_conn_later(c);
            break;
        }
        more = c->state == FE_CONN_STARTUP ? run_startup(c) : run_message(c);
    }
    c->running = false;
    if (c->in.size == 0)
        fe_buffer_give(c->worker, &c->in);
    count_held(c);
    bool open = c->state == FE_CONN_STARTUP || c->state == FE_CONN_READY;
    bool waiting = c->session != NULL &&
                   (c->session->busy || c->session->ahead != NULL || c->blocked || c->runnable);
    /* Nothing will complete what is there. */
    if (open && c->eof && !waiting)
        fe_conn_drain(c);
    if (open && c->state != FE_CONN_CLOSED && c->state != FE_CONN_DRAINING)
        set_interest(c, c->interest & LOOP_WRITE);
}

static ssize_t read_some(struct fe_conn *c)
{
    if (fault_point("fe.read")) {
        errno = ECONNRESET;
        return -1;
    }
    if (c->tls != NULL)
        return fe_conn_tls_receive(c, FE_READ_BYTES);
    ssize_t n = recv(c->fd, obuf_reserve(&c->in, FE_READ_BYTES), FE_READ_BYTES, MSG_DONTWAIT);
    c->in.size += n > 0 ? (size_t)n : 0;
    return n;
}

static void drop_input(struct fe_conn *c)
{
    uint8_t waste[4096];
    ssize_t n = 0;
    for (int i = 0; i < 64 && (n = recv(c->fd, waste, sizeof waste, MSG_DONTWAIT)) > 0; i++)
        ;
    bool again = n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
    if (again)
        return;
    c->eof = true;
    if (n < 0)
        fe_conn_close(c);
    else
        fe_conn_dirty(c);
}

static void on_readable(struct fe_conn *c)
{
    if (c->in_at > 0 && c->in_at >= input_left(c)) {
        obuf_consume(&c->in, c->in_at);
        c->in_at = 0;
    }
    fe_buffer_take(c->worker, &c->in);
    ssize_t n = read_some(c);
    if (n == 0) {
        c->eof = true;
    } else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        fe_conn_close(c);
        return;
    }
    fe_conn_run(c);
}

/* A pipeline that is answered whole is sent before the next connection is looked at: its client is
 * at work again while others are served. What is asked one by one stays for the end of the turn,
 * when many clients that sleep are woken one after the other (docs/performance.md). */
static void answer_pipeline(struct fe_conn *c)
{
    const struct fe_session *s = c->session;
    if (c->state != FE_CONN_READY || c->statements < 2 || s == NULL || s->work != NULL ||
        s->ahead != NULL || unsent(c) == 0)
        return;
    (void)send_output(c);
}

static void on_event(void *arg, int events)
{
    struct fe_conn *c = arg;
    if (events & LOOP_WRITE)
        fe_conn_dirty(c);
    if (!(events & LOOP_READ))
        return;
    if (c->state == FE_CONN_DRAINING)
        drop_input(c);
    else {
        on_readable(c);
        answer_pipeline(c);
    }
}
