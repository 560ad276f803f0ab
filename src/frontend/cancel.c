/*
 * frontend/cancel.c — see cancel.h.
 *
 * A request comes on a connection of its own, on any worker. It is sent to the worker that its
 * number names and compared there; a wrong one does nothing, and nobody is told either way. A right
 * one ends what the session runs at the moment it arrives; an idle session is left alone.
 */
#include "frontend/cancel.h"
#include "base/assert.h"
#include "frontend/server_internal.h"
#include "frontend/session.h"
#include <stdlib.h>

static struct fe_session **bucket(struct fe_worker *w, uint32_t number)
{
    return &w->by_number[number / w->count % FE_NUMBER_BUCKETS];
}

static struct fe_session *find(struct fe_worker *w, uint32_t number)
{
    struct fe_session *s = *bucket(w, number);
    while (s != NULL && (uint32_t)s->number != number)
        s = s->next_by_number;
    return s;
}

void fe_cancel_key_new(struct fe_session *s)
{
    struct fe_worker *w = s->worker;
    uint32_t number;
    do {
        w->serial = (w->serial + 1) % (0x7fffffffu / w->count - 1);
        number = (w->serial + 1) * w->count + w->index;
    } while (find(w, number) != NULL);
    s->number = (int32_t)number;
    struct env *env = cl_node_env(w->node);
    uint32_t secret = 0;
    while (secret == 0)
        env->ops->random(env, &secret, sizeof secret);
    memcpy(s->secret, &secret, sizeof s->secret);
    struct fe_session **home = bucket(w, number);
    s->next_by_number = *home;
    *home = s;
}

void fe_cancel_key_free(struct fe_session *s)
{
    struct fe_session **p = bucket(s->worker, (uint32_t)s->number);
    while (*p != s)
        p = &(*p)->next_by_number;
    *p = s->next_by_number;
}

struct request {
    uint32_t number;
    uint8_t secret[4];
};

/* Takes the same time wherever the first difference is. */
static bool same_secret(const uint8_t *a, const uint8_t *b)
{
    unsigned difference = 0;
    for (unsigned i = 0; i < 4; i++)
        difference |= (unsigned)(a[i] ^ b[i]);
    return difference == 0;
}

static void deliver(struct fe_worker *w, void *arg)
{
    const struct request *r = arg;
    struct fe_session *s = find(w, r->number);
    if (s != NULL && !s->gone && same_secret(s->secret, r->secret))
        fe_session_cancel(s, false);
}

void fe_cancel_request(struct fe_worker *from, uint32_t number, bytes secret)
{
    if (secret.size != 4)
        return;
    struct request *r = malloc(sizeof *r);
    ASSERT(r != NULL);
    r->number = number;
    memcpy(r->secret, secret.data, sizeof r->secret);
    fe_worker_call(from, fe_server_worker(from->server, number % from->count), deliver, r);
}
