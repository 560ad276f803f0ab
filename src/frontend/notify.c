/*
 * frontend/notify.c — see notify.h.
 *
 * A session has: the channels it listens to, what its transaction wants to send, and what has
 * arrived for it. Sessions with a channel are in their worker's list. A commit copies its
 * notifications once per worker and hands them over there.
 *
 * Bounds: FE_NOTIFY_MAX per transaction and per inbox. An inbox that is full drops the newest: its
 * session sits in a transaction and does not take them.
 */
#include "frontend/notify.h"
#include "base/assert.h"
#include "base/limits.h"
#include "frontend/server_internal.h"
#include "frontend/session.h"
#include <stdlib.h>

#define FE_NOTIFY_MAX 10000u
#define FE_PAYLOAD_MAX 7999u

struct note {
    struct note *next;
    int32_t sender;
    uint32_t ns;
    char *payload; /* in text */
    char text[];   /* channel, payload */
};

struct channel {
    struct channel *next;
    char name[];
};

struct fe_notify {
    struct channel *channels;
    struct note *queued, *arrived;
    unsigned queued_count, arrived_count;
    bool listed;
};

static struct note *note_new(int32_t sender, uint32_t ns, const char *channel, const char *payload)
{
    size_t a = strlen(channel) + 1, b = strlen(payload) + 1;
    struct note *n = malloc(sizeof *n + a + b);
    ASSERT(n != NULL);
    *n = (struct note){.sender = sender, .ns = ns, .payload = n->text + a};
    memcpy(n->text, channel, a);
    memcpy(n->text + a, payload, b);
    return n;
}

static void append(struct note **list, struct note *n)
{
    while (*list != NULL)
        list = &(*list)->next;
    *list = n;
}

static void free_notes(struct note **list)
{
    while (*list != NULL) {
        struct note *n = *list;
        *list = n->next;
        free(n);
    }
}

static struct fe_notify *mine(struct fe_session *s)
{
    if (s->notify == NULL)
        s->notify = calloc(1, sizeof *s->notify);
    ASSERT(s->notify != NULL);
    return s->notify;
}

static bool listens(const struct fe_notify *n, const char *channel)
{
    for (const struct channel *c = n->channels; c != NULL; c = c->next)
        if (strcmp(c->name, channel) == 0)
            return true;
    return false;
}

status fe_notify_listen(struct fe_session *s, const char *channel, struct err *err)
{
    struct fe_notify *n = mine(s);
    if (strlen(channel) > LIMIT_IDENTIFIER_BYTES)
        return err_set(err, ST_INVALID, "channel name too long");
    if (listens(n, channel))
        return ST_OK;
    struct channel *c = malloc(sizeof *c + strlen(channel) + 1);
    ASSERT(c != NULL);
    memcpy(c->name, channel, strlen(channel) + 1);
    c->next = n->channels;
    n->channels = c;
    if (!n->listed) {
        n->listed = true;
        s->next_listener = s->worker->listeners;
        s->worker->listeners = s;
    }
    return ST_OK;
}

static void unlist(struct fe_session *s)
{
    if (!s->notify->listed)
        return;
    struct fe_session **p = &s->worker->listeners;
    while (*p != s)
        p = &(*p)->next_listener;
    *p = s->next_listener;
    s->notify->listed = false;
}

void fe_notify_unlisten(struct fe_session *s, const char *channel)
{
    if (s->notify == NULL)
        return;
    for (struct channel **p = &s->notify->channels; *p != NULL;) {
        struct channel *c = *p;
        if (channel != NULL && strcmp(c->name, channel) != 0) {
            p = &c->next;
            continue;
        }
        *p = c->next;
        free(c);
    }
    if (s->notify->channels == NULL)
        unlist(s);
}

status fe_notify_add(struct fe_session *s, const char *channel, const char *payload,
                     struct err *err)
{
    if (payload == NULL)
        payload = "";
    if (channel[0] == '\0')
        return err_set(err, ST_INVALID, "channel name cannot be empty");
    if (strlen(channel) > LIMIT_IDENTIFIER_BYTES)
        return err_set(err, ST_INVALID, "channel name too long");
    if (strlen(payload) > FE_PAYLOAD_MAX)
        return err_set(err, ST_INVALID, "payload string too long");
    struct fe_notify *n = mine(s);
    /* The same again in one transaction is sent once, as PostgreSQL does. */
    for (const struct note *q = n->queued; q != NULL; q = q->next)
        if (strcmp(q->text, channel) == 0 && strcmp(q->payload, payload) == 0)
            return ST_OK;
    if (n->queued_count >= FE_NOTIFY_MAX)
        return err_set(err, ST_LIMIT, "too many notifications in one transaction");
    append(&n->queued, note_new(s->number, s->ns, channel, payload));
    n->queued_count++;
    return ST_OK;
}

unsigned fe_notify_mark(const struct fe_session *s)
{
    return s->notify != NULL ? s->notify->queued_count : 0;
}

void fe_notify_rollback_to(struct fe_session *s, unsigned mark)
{
    if (s->notify == NULL || s->notify->queued_count <= mark)
        return;
    struct note **p = &s->notify->queued;
    for (unsigned i = 0; i < mark; i++)
        p = &(*p)->next;
    free_notes(p);
    s->notify->queued_count = mark;
}

void fe_notify_abort(struct fe_session *s)
{
    fe_notify_rollback_to(s, 0);
}

/* -- delivery ---------------------------------------------------------------------------------- */

static void receive(struct fe_session *s, const struct note *n)
{
    if (s->gone || s->ns != n->ns || !listens(s->notify, n->text) ||
        s->notify->arrived_count >= FE_NOTIFY_MAX)
        return;
    append(&s->notify->arrived, note_new(n->sender, n->ns, n->text, n->payload));
    s->notify->arrived_count++;
}

/* Copies of one transaction's notifications, on one worker's thread. */
static void deliver(struct fe_worker *w, void *arg)
{
    struct note **list = arg;
    for (struct fe_session *s = w->listeners; s != NULL; s = s->next_listener) {
        for (const struct note *n = *list; n != NULL; n = n->next)
            receive(s, n);
        if (s->work == NULL && s->txn == FE_TXN_IDLE)
            fe_notify_flush(s);
    }
    free_notes(list);
}

void fe_notify_commit(struct fe_session *s)
{
    if (s->notify == NULL || s->notify->queued == NULL)
        return;
    struct fe_worker *w = s->worker;
    for (unsigned i = 0; i < w->count; i++) {
        struct note **copy = calloc(1, sizeof *copy);
        ASSERT(copy != NULL);
        for (const struct note *n = s->notify->queued; n != NULL; n = n->next)
            append(copy, note_new(n->sender, n->ns, n->text, n->payload));
        fe_worker_call(w, fe_server_worker(w->server, i), deliver, copy);
    }
    fe_notify_abort(s);
}

void fe_notify_flush(struct fe_session *s)
{
    if (s->notify == NULL || s->notify->arrived == NULL)
        return;
    struct obuf *o = fe_out(s);
    for (const struct note *n = s->notify->arrived; n != NULL; n = n->next) {
        size_t at = fe_message_begin(o, 'A');
        obuf_be32(o, (uint32_t)n->sender);
        fe_put_string(o, n->text);
        fe_put_string(o, n->payload);
        fe_message_end(o, at);
    }
    free_notes(&s->notify->arrived);
    s->notify->arrived_count = 0;
}

void fe_notify_free(struct fe_session *s)
{
    if (s->notify == NULL)
        return;
    fe_notify_unlisten(s, NULL);
    free_notes(&s->notify->queued);
    free_notes(&s->notify->arrived);
    free(s->notify);
    s->notify = NULL;
}
