/*
 * bench/control.c — sends a request, reads its answer to the end. The reader keeps one buffer that
 * is emptied whenever a request begins, since nothing then is under way.
 */
#include "control.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define COPY_CHUNK (64u << 10)

static void send_all(struct control *c)
{
    size_t sent = 0;
    while (sent < c->out.size) {
        ssize_t n = send(c->fd, c->out.data + sent, c->out.size - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            die("%s: send: %s", c->target->peer, strerror(errno));
        sent += (size_t)n;
    }
    c->out.size = 0;
}

static void receive(struct control *c)
{
    uint8_t piece[16384];
    ssize_t n;
    do
        n = recv(c->fd, piece, sizeof piece, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        die("%s: the control connection ended", c->target->peer);
    out_bytes(&c->in, piece, (size_t)n);
}

/* Reads one answer; the bytes of it stay in C->in from *BEGIN on. */
static struct answer read_answer(struct control *c, size_t *begin)
{
    struct answer a = {0};
    *begin = c->at;
    while (!c->wire->answer(c->in.data + c->at, c->in.size - c->at, ROWS_ANY, &a))
        receive(c);
    c->at += a.at;
    return a;
}

static void begin_request(struct control *c)
{
    c->in.size = c->at = 0;
    send_all(c);
}

void control_open(struct control *c, const struct target *t, const struct wire *w)
{
    *c = (struct control){.target = t, .wire = w};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)t->port)};
    if (inet_pton(AF_INET, t->host, &to.sin_addr) != 1)
        die("%s is not an IPv4 address", t->host);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0)
        die("connect to %s:%u: %s", t->host, t->port, strerror(errno));
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (unsigned stage = 0; w->hello(&c->out, stage, t, NULL); stage++) {
        size_t begin;
        begin_request(c);
        struct answer a = read_answer(c, &begin);
        if (a.failed)
            die("%s: %s", t->peer, a.error);
    }
}

void control_close(struct control *c)
{
    close(c->fd);
    out_free(&c->out);
    out_free(&c->in);
}

static void put_query(struct control *c, const char *sql)
{
    size_t begin = out_begin(&c->out, 'Q');
    out_cstr(&c->out, sql);
    out_end(&c->out, begin);
}

bool control_try(struct control *c, char error[160], const char *sql)
{
    size_t begin;
    put_query(c, sql);
    begin_request(c);
    struct answer a = read_answer(c, &begin);
    if (a.failed)
        memcpy(error, a.error, sizeof a.error);
    return !a.failed;
}

void control_exec(struct control *c, const char *format, ...)
{
    char error[160], *sql;
    va_list ap;
    va_start(ap, format);
    if (vasprintf(&sql, format, ap) < 0)
        die("out of memory");
    va_end(ap);
    if (!control_try(c, error, sql))
        die("%s: %s: %.200s", c->target->peer, error, sql);
    free(sql);
}

/* The first field of the first DataRow between BEGIN and C->at. */
static int64_t first_field(const struct control *c, size_t begin)
{
    while (begin + 5 <= c->at) {
        const uint8_t *m = c->in.data + begin;
        uint32_t length = load_u32(m + 1);
        if (m[0] == 'D' && length >= 10) {
            char text[32] = "";
            uint32_t size = load_u32(m + 7);
            if (size < sizeof text && size + 10 <= length)
                memcpy(text, m + 11, size);
            return strtoll(text, NULL, 10);
        }
        begin += (size_t)length + 1;
    }
    return 0;
}

int64_t control_number(struct control *c, const char *sql)
{
    char error[160];
    if (!control_try(c, error, sql))
        die("%s: %s: %.200s", c->target->peer, error, sql);
    return first_field(c, 0);
}

void control_copy_begin(struct control *c, const char *sql)
{
    put_query(c, sql);
    begin_request(c);
    while (c->in.size < 5 || c->in.size < (size_t)load_u32(c->in.data + 1) + 1)
        receive(c);
    if (c->in.data[0] == 'G')
        return;
    size_t begin;
    struct answer a = read_answer(c, &begin);
    die("%s: %s: %s", c->target->peer, a.failed ? a.error : "no COPY", sql);
}

void control_copy_row(struct control *c, const char *format, ...)
{
    char row[512];
    va_list ap;
    va_start(ap, format);
    int size = vsnprintf(row, sizeof row, format, ap);
    va_end(ap);
    if (size < 0 || (size_t)size >= sizeof row)
        die("a row of %d bytes", size);
    size_t begin = out_begin(&c->out, 'd');
    out_bytes(&c->out, row, (size_t)size);
    out_end(&c->out, begin);
    if (c->out.size > COPY_CHUNK)
        send_all(c);
}

void control_copy_end(struct control *c)
{
    size_t begin;
    out_end(&c->out, out_begin(&c->out, 'c'));
    begin_request(c);
    struct answer a = read_answer(c, &begin);
    if (a.failed)
        die("%s: COPY: %s", c->target->peer, a.error);
}

void control_flush(struct control *c, unsigned count)
{
    size_t begin;
    begin_request(c);
    while (count-- > 0) {
        struct answer a = read_answer(c, &begin);
        if (a.failed)
            die("%s: %s", c->target->peer, a.error);
    }
}

int64_t control_integer(struct control *c, const char *format, ...)
{
    char command[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(command, sizeof command, format, ap);
    va_end(ap);
    struct plan plan = {.steps = {command}, .step_count = 1};
    c->wire->operation(&c->out, c->target, &plan, NULL);
    control_flush(c, 1);
    if (c->in.size == 0 || c->in.data[c->in.size - 1] != '\n')
        die("redis: no line");
    c->in.data[c->in.size - 1] = 0;
    const char *line = (const char *)c->in.data;
    const char *body = line[0] == '$' ? strchr(line, '\n') : line;
    return body ? strtoll(body + 1, NULL, 10) : 0;
}
