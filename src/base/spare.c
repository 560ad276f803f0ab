/*
 * base/spare.c — closes the spare descriptor, accepts with its number, drops that, opens it again.
 *
 * Another thread may take the number in between. Then nothing can be dropped, and the listeners
 * rest until a timer has tried to open a spare one again.
 */
#include "base/spare.h"
#include "base/assert.h"
#include "base/log.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SAY_EVERY_US 1000000u
#define REST_US 100000u

struct spare {
    struct loop *loop;
    struct loop_timer *timer;
    const char *name;
    void (*again)(void *arg);
    void *arg;
    int fd; /* -1: gone */
    uint64_t dropped, said_us;
    bool said;
};

static int open_one(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Rests on if there is still none: AGAIN only when the listeners can get rid of who waits. */
static void on_rested(void *arg)
{
    struct spare *s = arg;
    s->fd = open_one();
    if (s->fd < 0)
        loop_timer_start(s->timer, REST_US);
    else
        s->again(s->arg);
}

struct spare *spare_new(struct loop *l, const char *name, void (*again)(void *arg), void *arg)
{
    struct spare *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    *s = (struct spare){.loop = l, .name = name, .again = again, .arg = arg, .fd = open_one()};
    s->timer = loop_timer_new(l, on_rested, s);
    return s;
}

void spare_free(struct spare *s)
{
    if (s == NULL)
        return;
    loop_timer_free(s->timer);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}

static void say(struct spare *s)
{
    uint64_t now = loop_now_us(s->loop);
    if (s->said && now - s->said_us < SAY_EVERY_US)
        return;
    s->said = true;
    s->said_us = now;
    LOG_WARN("net.descriptors_exhausted", LOG_STR("listener", s->name),
             LOG_U64("dropped", s->dropped));
}

enum spare_outcome spare_use(struct spare *s, int listener)
{
    if (s->fd >= 0)
        close(s->fd);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        close(fd);
    s->fd = open_one();
    s->dropped += fd >= 0;
    if (s->fd < 0) {
        loop_timer_start(s->timer, REST_US);
        say(s);
        return SPARE_GONE;
    }
    if (fd < 0)
        return SPARE_NOBODY;
    say(s);
    return SPARE_DROPPED;
}
