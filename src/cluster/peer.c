/*
 * cluster/peer.c — another node: when to connect to it, what to send it, what came from it.
 *
 * Vocabulary: an *outframe* collects items until it is sent. The last one in the list may grow; it
 * is closed when the socket takes it, at the end of a turn, so that a turn's items share a frame
 * and a slow socket makes fewer and larger frames, not more. With net.delay each is closed at the
 * end of its turn and waits for its time.
 *
 * Attempts to connect are spaced by an exponential back-off with jitter, which begins anew when a
 * connection has lasted; a refusal, which only an operator mends, has a longer one. One log line
 * per change, not per attempt.
 *
 * Invariants
 *   P1  queued_bytes is the sum of the outframes' items and stays below queue_bytes plus what may
 *       always be sent: one beacon, answers without payload to requests under way, and one item
 *       of any size in an empty queue.
 *   P2  Without a connection nothing is queued.
 *   P3  A frame's number is below frame_sent if and only if the socket has seen it.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "cluster/transport_internal.h"
#include <stdio.h>
#include <stdlib.h>

#define BACKOFF_SHIFT_MAX 16u
#define SPARE_BYTES (64u * 1024u)
#define LASTED_US 2000000u /* a connection that has lived so long was a good one */
#define REFUSED_DOUBLINGS 4u

/* -- state ------------------------------------------------------------------------------------- */

static void peer_move(struct cl_peer *p, enum cl_peer_state next)
{
    bool still_away = (p->state == CL_PEER_DOWN || p->state == CL_PEER_CONNECTING) &&
                      (next == CL_PEER_DOWN || next == CL_PEER_CONNECTING);
    if (p->state == next)
        return;
    p->state = next;
    if (!still_away)
        p->since_us = env_mono_us(p->transport->o.env);
}

static uint64_t jittered(struct cl_peer *p, uint64_t us)
{
    return us / 2 + env_random64(p->transport->o.env) % (us / 2 + 1);
}

static void dial_later(struct cl_peer *p, uint64_t base_us, uint64_t max_us)
{
    unsigned shift = p->failures < BACKOFF_SHIFT_MAX ? p->failures : BACKOFF_SHIFT_MAX;
    uint64_t us = base_us << shift;
    p->dial_us = cl__transport_now(p->transport) + jittered(p, us < max_us ? us : max_us);
    cl__transport_wake_at(p->transport, p->dial_us);
}

static void note_error(struct cl_peer *p, const char *why)
{
    bool same = strcmp(p->last_error, why) == 0 && p->failures > 1;
    snprintf(p->last_error, sizeof p->last_error, "%s", why);
    if (!same)
        LOG_INFO("net.peer_down", LOG_U64("node", p->address->id),
                 LOG_STR("address", p->address->peers), LOG_STR("why", why));
}

/* -- what is queued ---------------------------------------------------------------------------- */

static struct cl_outframe *last_frame(struct cl_peer *p)
{
    return list_empty(&p->frames) ? NULL : CONTAINER_OF(p->frames.prev, struct cl_outframe, node);
}

/* The outframe that takes SIZE bytes more. */
static struct cl_outframe *open_frame(struct cl_peer *p, size_t size)
{
    struct cl_outframe *f = last_frame(p);
    if (f != NULL && f->due_us == 0 &&
        (f->items.size == 0 || f->items.size + size <= CL_FRAME_TARGET_BYTES))
        return f;
    struct list *spare = list_pop_front(&p->spares);
    if (spare != NULL) {
        f = CONTAINER_OF(spare, struct cl_outframe, node);
    } else {
        f = calloc(1, sizeof *f);
        ASSERT(f != NULL);
        obuf_init(&f->items);
    }
    f->due_us = 0;
    f->number = p->frame_next++;
    list_push_back(&p->frames, &f->node);
    return f;
}

static void frame_done(struct cl_peer *p, struct cl_outframe *f)
{
    ASSERT_INV("P1", p->queued_bytes >= f->items.size);
    p->queued_bytes -= f->items.size;
    list_remove(&f->node);
    obuf_reset(&f->items);
    obuf_shrink(&f->items, SPARE_BYTES);
    if (list_empty(&p->spares) && f->items.capacity <= SPARE_BYTES) {
        list_push_back(&p->spares, &f->node);
        return;
    }
    obuf_fini(&f->items);
    free(f);
}

bool cl__peer_put(struct cl_peer *p, const struct cl_item *item, bool force)
{
    size_t size = item->payload.size + CL_ITEM_BYTES_MAX;
    /* One item fits into an empty queue whatever its size, or it would never be sent. */
    bool full = p->queued_bytes > 0 && p->queued_bytes + size > p->transport->o.queue_bytes;
    if (p->link == NULL || (full && !force))
        return false;
    struct cl_outframe *f = open_frame(p, size);
    size_t before = f->items.size;
    cl_item_put(&f->items, item);
    p->queued_bytes += f->items.size - before;
    ASSERT(f->items.size <= LIMIT_PEER_FRAME_BYTES);
    cl__transport_kick(p->transport);
    return true;
}

static void send_frame(struct cl_peer *p, struct cl_outframe *f)
{
    uint8_t header[CL_FRAME_HEADER_BYTES];
    struct iovec iov[2] = {{header, sizeof header}, {f->items.data, f->items.size}};
    cl_frame_header(header, CL_FRAME_BATCH, bytes_make(f->items.data, f->items.size),
                    &p->link->out_seal);
    ASSERT_INV("P3", f->number >= p->frame_sent);
    p->frame_sent = f->number + 1;
    p->sent_frames++;
    p->sent_bytes += sizeof header + f->items.size;
    env_stream_send(p->link->stream, iov, 2);
    frame_done(p, f);
}

void cl__peer_flush(struct cl_peer *p, uint64_t now_us)
{
    uint64_t delay_us = p->transport->o.delay_us;
    struct cl_outframe *last = last_frame(p);
    if (p->link == NULL)
        return;
    if (delay_us > 0 && last != NULL && last->due_us == 0)
        last->due_us = now_us + delay_us;
    while (!list_empty(&p->frames) && env_stream_queued(p->link->stream) < CL_SOCKET_QUEUE_BYTES) {
        struct cl_outframe *f = CONTAINER_OF(p->frames.next, struct cl_outframe, node);
        if (f->due_us > now_us) {
            cl__transport_wake_at(p->transport, f->due_us);
            return;
        }
        send_frame(p, f);
    }
}

static void drop_queue(struct cl_peer *p)
{
    while (!list_empty(&p->frames))
        frame_done(p, CONTAINER_OF(p->frames.next, struct cl_outframe, node));
    ASSERT_INV("P1", p->queued_bytes == 0);
}

/* -- connections come and go ------------------------------------------------------------------- */

/* Nothing of the connection is left: what was under way is over. */
static void disconnect(struct cl_peer *p)
{
    const struct cl_transport *t = p->transport;
    drop_queue(p);
    p->serving = 0;
    p->serving_bytes = 0;
    cl__rpc_fail(p);
    if (t->o.events->changed != NULL)
        t->o.events->changed(t->o.arg, p->address->id, false);
}

void cl__peer_adopt(struct cl_peer *p, struct cl_link *l)
{
    const struct cl_transport *t = p->transport;
    uint64_t now_us = cl__transport_now(t);
    struct cl_link *old = p->link;
    ASSERT(l->state == CL_LINK_UP && (p->dial == l || p->welcomed == l));
    ASSERT(p->dial == NULL || p->dial == l);
    p->dial = p->welcomed = NULL;
    if (old != NULL) {
        MARK("net.replaced");
        LOG_INFO("net.connection_replaced", LOG_U64("node", p->address->id));
        cl__link_close(old);
        disconnect(p);
    }
    p->link = l;
    p->store_id = l->theirs.store_id;
    p->replica_id = l->theirs.replica_id;
    p->refused = CL_REFUSED_NOT;
    p->up_us = p->received_us = now_us;
    p->beacon_us = now_us;
    p->their_us = p->rtt_us = 0;
    p->beacon_frame = 0;
    p->connects++;
    cl__transport_wake_at(p->transport, now_us);
    peer_move(p, CL_PEER_UP);
    LOG_INFO("net.peer_up", LOG_U64("node", p->address->id),
             LOG_STR("address", env_stream_remote(l->stream)),
             LOG_STR("opened_by", l->connector ? "us" : "them"),
             LOG_U64("protocol", l->connector ? l->theirs.protocol : l->ours.protocol));
    if (t->o.events->changed != NULL)
        t->o.events->changed(t->o.arg, p->address->id, true);
}

void cl__peer_lost(struct cl_peer *p, struct cl_link *l, const char *why)
{
    const struct cl_transport *t = p->transport;
    uint64_t now_us = cl__transport_now(t);
    bool was_up = p->link == l, was_welcomed = p->welcomed == l;
    cl__link_close(l);
    if (was_welcomed) { /* it was their attempt, and does not count as one of ours */
        dial_later(p, t->o.backoff_min_us, t->o.backoff_max_us);
        return;
    }
    bool lasted = was_up && now_us - p->up_us >= LASTED_US;
    p->failures = lasted ? 0 : p->failures + 1;
    note_error(p, why);
    peer_move(p, CL_PEER_DOWN);
    dial_later(p, t->o.backoff_min_us, t->o.backoff_max_us);
    if (was_up)
        disconnect(p);
}

void cl__peer_refused(struct cl_peer *p, struct cl_link *l, const struct cl_refusal *r)
{
    const struct cl_transport *t = p->transport;
    ASSERT(p->dial == l);
    cl__link_close(l);
    if (r->reason == CL_REFUSED_CROSSED) {
        /* Theirs is on its way. If it does not come we try again. */
        dial_later(p, t->o.backoff_min_us, t->o.backoff_max_us);
        return;
    }
    if (p->refused != r->reason || strcmp(p->last_error, r->text) != 0)
        LOG_WARN("net.peer_refused", LOG_U64("node", p->address->id),
                 LOG_STR("address", p->address->peers),
                 LOG_STR("reason", cl_refusal_name(r->reason)), LOG_STR("why", r->text));
    p->refusals++;
    p->failures = p->refused == CL_REFUSED_NOT ? 0 : p->failures + 1;
    p->refused = r->reason;
    snprintf(p->last_error, sizeof p->last_error, "%s", r->text);
    peer_move(p, CL_PEER_REFUSED);
    dial_later(p, t->o.refused_us, t->o.refused_us << REFUSED_DOUBLINGS);
}

static void dial(struct cl_peer *p)
{
    struct err err;
    err_clear(&err);
    if (p->state != CL_PEER_REFUSED)
        peer_move(p, CL_PEER_CONNECTING);
    if (cl__link_dial(p, &err) == ST_OK)
        return;
    p->failures++;
    note_error(p, err.message);
    dial_later(p, p->transport->o.backoff_min_us, p->transport->o.backoff_max_us);
}

/* -- liveness ---------------------------------------------------------------------------------- */

/* One at most is queued: behind a slow socket the bytes before it prove that we live. */
static void send_beacon(struct cl_peer *p, uint64_t now_us)
{
    const struct cl_transport *t = p->transport;
    struct obuf *o = &p->transport->scratch;
    struct cl_item item = {.kind = CL_ITEM_BEACON};
    p->beacon_us = (now_us / t->o.beacon_us + 1) * t->o.beacon_us; /* to all in one turn */
    if (p->beacon_frame > p->frame_sent)
        return;
    obuf_reset(o);
    if (t->o.events->fill_beacon != NULL)
        t->o.events->fill_beacon(t->o.arg, p->address->id, o);
    item.beacon.sent_us = now_us;
    item.beacon.echo_us = p->their_us;
    item.beacon.held_us = p->their_us != 0 ? now_us - p->their_at_us : 0;
    item.payload = bytes_make(o->data, o->size);
    (void)cl__peer_put(p, &item, true);
    p->beacon_frame = p->frame_next;
}

static void on_beacon(struct cl_peer *p, const struct cl_item *item)
{
    const struct cl_transport *t = p->transport;
    uint64_t now_us = cl__transport_now(t), back_us = item->beacon.echo_us + item->beacon.held_us;
    p->their_us = item->beacon.sent_us;
    p->their_at_us = now_us;
    if (item->beacon.echo_us != 0 && back_us <= now_us)
        p->rtt_us = now_us - back_us > 0 ? now_us - back_us : 1;
    if (t->o.events->beacon != NULL)
        t->o.events->beacon(t->o.arg, p->address->id, item->payload);
}

static uint64_t check_link(struct cl_peer *p, uint64_t now_us)
{
    const struct cl_transport *t = p->transport;
    uint64_t silent_us = p->received_us + t->o.silence_us;
    if (p->link->paused)
        silent_us = now_us + t->o.silence_us; /* it may well speak: we do not listen */
    if (now_us >= silent_us) {
        cl__peer_lost(p, p->link, "nothing was heard of it");
        return p->dial_us;
    }
    if (now_us >= p->beacon_us)
        send_beacon(p, now_us);
    return silent_us < p->beacon_us ? silent_us : p->beacon_us;
}

uint64_t cl__peer_check(struct cl_peer *p, uint64_t now_us)
{
    if (p->link != NULL)
        return check_link(p, now_us);
    if (p->dial != NULL || p->welcomed != NULL)
        return UINT64_MAX;
    if (now_us >= p->dial_us)
        dial(p);
    return p->dial != NULL ? UINT64_MAX : p->dial_us;
}

/* -- what came --------------------------------------------------------------------------------- */

static void on_stream(struct cl_peer *p, const struct cl_item *item)
{
    const struct cl_transport *t = p->transport;
    uint64_t node = p->address->id;
    if (item->kind == CL_ITEM_CHUNK && t->o.events->chunk != NULL)
        t->o.events->chunk(t->o.arg, node, item->chunk.stream, item->chunk.offset,
                           item->chunk.flags, item->payload);
    else if (item->kind == CL_ITEM_CREDIT && t->o.events->credit != NULL)
        t->o.events->credit(t->o.arg, node, item->credit.stream, item->credit.bytes);
    else
        p->late++;
}

status cl__peer_receive(struct cl_peer *p, bytes items)
{
    const struct cl_transport *t = p->transport;
    struct reader r = reader_make(items);
    struct cl_item item;
    status st;
    while ((st = cl_item_next(&r, &item)) == ST_OK) {
        switch (item.kind) {
        case CL_ITEM_MESSAGE:
            if (t->o.events->message != NULL)
                t->o.events->message(t->o.arg, p->address->id, item.message.group,
                                     item.message.from, item.message.to, item.payload);
            break;
        case CL_ITEM_REQUEST: cl__rpc_request(p, &item); break;
        case CL_ITEM_ANSWER: cl__rpc_answer(p, &item); break;
        case CL_ITEM_BEACON: on_beacon(p, &item); break;
        case CL_ITEM_CHUNK:
        case CL_ITEM_CREDIT: on_stream(p, &item); break;
        }
    }
    return st == ST_END ? ST_OK : st;
}

/* -- the object -------------------------------------------------------------------------------- */

void cl__peer_init(struct cl_peer *p, struct cl_transport *t, const struct cl_node_address *a)
{
    uint64_t now_us = cl__transport_now(t);
    *p = (struct cl_peer){.transport = t, .address = a, .since_us = env_mono_us(t->o.env)};
    list_init(&p->frames);
    list_init(&p->spares);
    p->request_due_us = UINT64_MAX;
    /* Two nodes that start together would cross: the one with the higher id waits a little. */
    p->dial_us = now_us + (t->o.topology->self > a->id ? jittered(p, t->o.backoff_min_us) : 0);
}

void cl__peer_fini(struct cl_peer *p)
{
    if (p->link != NULL) {
        cl__link_close(p->link);
        disconnect(p);
    }
    struct list *it;
    while ((it = list_pop_front(&p->spares)) != NULL) {
        struct cl_outframe *f = CONTAINER_OF(it, struct cl_outframe, node);
        obuf_fini(&f->items);
        free(f);
    }
}
