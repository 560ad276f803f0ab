/*
 * cluster/transport.c — all connections of a node: the listener, the peers, time and turns.
 *
 * One timer serves everything that waits for a time (attempts, handshakes, beacons, silence,
 * deadlines, delayed frames): each check says when it wants to be looked at next, and the timer is
 * set to the earliest. The hook at the end of a turn sends what the turn produced.
 *
 * Invariants
 *   Y1  While something waits for a time, the timer is armed for it or for an earlier one.
 *   Y2  After the end of a turn no item waits that the socket would take, no link is in a grave.
 */
#include "cluster/transport.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/log.h"
#include "cluster/transport_internal.h"
#include <stdlib.h>

#define MB (1u << 20)
#define SECOND_US 1000000u

void cl_transport_defaults(struct cl_transport_options *o)
{
    o->queue_bytes = 32 * MB;
    o->delay_us = 0;
    o->beacon_us = SECOND_US / 5;
    o->silence_us = 2 * SECOND_US;
    o->connect_us = 2 * SECOND_US;
    o->handshake_us = 3 * SECOND_US;
    o->backoff_min_us = SECOND_US / 20;
    o->backoff_max_us = 2 * SECOND_US;
    o->refused_us = 5 * SECOND_US;
}

uint64_t cl__transport_now(const struct cl_transport *t)
{
    return loop_now_us(t->o.loop);
}

struct cl_peer *cl__peer_find(struct cl_transport *t, uint64_t node)
{
    for (unsigned i = 0; i < t->peer_count; i++) {
        if (t->peers[i].address->id == node)
            return &t->peers[i];
    }
    return NULL;
}

/* -- time and turns ---------------------------------------------------------------------------- */

void cl__transport_wake_at(struct cl_transport *t, uint64_t at_us)
{
    uint64_t now_us = cl__transport_now(t);
    if (at_us >= t->timer_us || at_us == UINT64_MAX)
        return;
    t->timer_us = at_us;
    loop_timer_start(t->timer, at_us > now_us ? at_us - now_us : 0);
}

void cl__transport_kick(struct cl_transport *t)
{
    if (cl__transport_now(t) == t->turn_us)
        loop_again(t->o.loop);
}

/* This process itself stood still (stopped, swapped out, a long turn): what the others sent in the
 * meantime waits in the sockets, so nobody has been silent yet. */
static void forgive_silence(struct cl_transport *t, uint64_t now_us)
{
    if (now_us - t->checked_us > t->o.silence_us / 2) {
        for (unsigned i = 0; i < t->peer_count; i++)
            t->peers[i].received_us = now_us;
    }
    t->checked_us = now_us;
}

static void check_tls(struct cl_transport *t, uint64_t now_us)
{
    if (now_us < t->tls_us)
        return;
    t->tls_us = now_us + CL_PEER_TLS_POLL_US;
    cl_peer_tls_poll(t->o.tls);
}

static void on_timer(void *arg)
{
    struct cl_transport *t = arg;
    uint64_t now_us = cl__transport_now(t), next_us;
    t->timer_us = UINT64_MAX;
    forgive_silence(t, now_us);
    next_us = cl__links_check(t, now_us);
    if (t->o.tls != NULL) {
        check_tls(t, now_us);
        next_us = t->tls_us < next_us ? t->tls_us : next_us;
    }
    for (unsigned i = 0; i < t->peer_count; i++) {
        struct cl_peer *p = &t->peers[i];
        uint64_t peer_us = cl__peer_check(p, now_us), rpc_us = cl__rpc_check(p, now_us);
        cl__peer_flush(p, now_us); /* delayed frames */
        next_us = peer_us < next_us ? peer_us : next_us;
        next_us = rpc_us < next_us ? rpc_us : next_us;
    }
    cl__transport_wake_at(t, next_us); /* Y1 */
}

static void on_turn(void *arg)
{
    struct cl_transport *t = arg;
    uint64_t now_us = t->turn_us = cl__transport_now(t);
    for (unsigned i = 0; i < t->peer_count; i++) {
        if (!list_empty(&t->peers[i].frames))
            cl__peer_flush(&t->peers[i], now_us);
    }
    cl__links_bury(t);
}

/* -- the object -------------------------------------------------------------------------------- */

static void on_accepted(void *arg, struct env_stream *s)
{
    cl__link_accept(arg, s);
}

status cl_transport_new(const struct cl_transport_options *o, struct cl_transport **out,
                        struct err *err)
{
    const struct cl_node_address *self = cl_topology_find(o->topology, o->topology->self);
    struct cl_transport *t = calloc(1, sizeof *t);
    ASSERT(t != NULL && self != NULL);
    t->o = *o;
    list_init(&t->links);
    list_init(&t->graves);
    obuf_init(&t->scratch);
    status st = env_listen(o->env, o->loop, self->peers, on_accepted, t, &t->listener, err);
    if (st != ST_OK) {
        free(t);
        return st;
    }
    t->incarnation = env_random64(o->env);
    t->timer_us = t->turn_us = UINT64_MAX;
    t->timer = loop_timer_new(o->loop, on_timer, t);
    t->turn = loop_turn_new(o->loop, on_turn, t);
    for (unsigned i = 0; i < o->topology->count; i++) {
        const struct cl_node_address *a = &o->topology->nodes[i];
        if (a != self)
            cl__peer_init(&t->peers[t->peer_count++], t, a);
    }
    cl__transport_wake_at(t, cl__transport_now(t));
    LOG_INFO("net.listening", LOG_STR("address", cl_transport_address(t)),
             LOG_U64("node", self->id), LOG_U64("peers", t->peer_count));
    *out = t;
    return ST_OK;
}

void cl_transport_free(struct cl_transport *t)
{
    if (t == NULL)
        return;
    env_unlisten(t->o.env, t->listener);
    for (unsigned i = 0; i < t->peer_count; i++)
        cl__peer_fini(&t->peers[i]);
    while (!list_empty(&t->links))
        cl__link_close(CONTAINER_OF(t->links.next, struct cl_link, node));
    cl__links_bury(t);
    loop_timer_free(t->timer);
    loop_turn_free(t->turn);
    obuf_fini(&t->scratch);
    free(t);
}

bool cl_transport_message(struct cl_transport *t, uint64_t node, uint64_t group, uint64_t from,
                          uint64_t to, bytes payload)
{
    struct cl_peer *p = cl__peer_find(t, node);
    struct cl_item item = {.kind = CL_ITEM_MESSAGE,
                           .message = {.group = group, .from = from, .to = to},
                           .payload = payload};
    ASSERT(payload.size <= LIMIT_PEER_PAYLOAD_BYTES);
    if (p == NULL)
        return false;
    bool taken = cl__peer_put(p, &item, false);
    p->dropped += !taken;
    return taken;
}

bool cl_transport_chunk(struct cl_transport *t, uint64_t node, uint64_t stream, uint64_t offset,
                        uint8_t flags, bytes payload)
{
    struct cl_peer *p = cl__peer_find(t, node);
    struct cl_item item = {.kind = CL_ITEM_CHUNK,
                           .chunk = {.stream = stream, .offset = offset, .flags = flags},
                           .payload = payload};
    ASSERT(payload.size <= LIMIT_PEER_PAYLOAD_BYTES);
    return p != NULL && cl__peer_put(p, &item, false);
}

bool cl_transport_credit(struct cl_transport *t, uint64_t node, uint64_t stream, uint64_t more)
{
    struct cl_peer *p = cl__peer_find(t, node);
    struct cl_item item = {.kind = CL_ITEM_CREDIT, .credit = {.stream = stream, .bytes = more}};
    return p != NULL && cl__peer_put(p, &item, false);
}

bool cl_transport_up(const struct cl_transport *t, uint64_t node)
{
    const struct cl_peer *p = cl__peer_find((struct cl_transport *)(uintptr_t)t, node);
    return p != NULL && p->link != NULL;
}

uint64_t cl_transport_store(const struct cl_transport *t, uint64_t node)
{
    const struct cl_peer *p = cl__peer_find((struct cl_transport *)(uintptr_t)t, node);
    return p != NULL ? p->store_id : 0;
}

uint64_t cl_transport_replica(const struct cl_transport *t, uint64_t node)
{
    const struct cl_peer *p = cl__peer_find((struct cl_transport *)(uintptr_t)t, node);
    return p != NULL ? p->replica_id : 0;
}

const char *cl_transport_address(const struct cl_transport *t)
{
    return env_listener_address(t->o.env, t->listener);
}

/* -- for operators ----------------------------------------------------------------------------- */

void cl_transport_each(struct cl_transport *t, void (*fn)(void *arg, const struct cl_peer_stats *s),
                       void *arg)
{
    static const char *const states[] = {[CL_PEER_DOWN] = "down",
                                         [CL_PEER_CONNECTING] = "connecting",
                                         [CL_PEER_UP] = "up",
                                         [CL_PEER_REFUSED] = "refused"};
    for (unsigned i = 0; i < t->peer_count; i++) {
        const struct cl_peer *p = &t->peers[i];
        size_t socket = p->link != NULL ? env_stream_queued(p->link->stream) : 0;
        fn(arg, &(struct cl_peer_stats){.node = p->address->id,
                                        .address = p->address->peers,
                                        .state = states[p->state],
                                        .since_us = p->since_us,
                                        .sent_frames = p->sent_frames,
                                        .sent_bytes = p->sent_bytes,
                                        .received_frames = p->received_frames,
                                        .received_bytes = p->received_bytes,
                                        .queue_bytes = p->queued_bytes + socket,
                                        .requests = p->request_count,
                                        .serving = p->serving,
                                        .dropped = p->dropped,
                                        .late = p->late,
                                        .damaged = p->damaged,
                                        .connects = p->connects,
                                        .refusals = p->refusals,
                                        .rtt_us = p->rtt_us,
                                        .store_id = p->store_id,
                                        .last_error = p->last_error});
    }
}

size_t cl_transport_memory(const struct cl_transport *t, size_t *limit)
{
    size_t held = 0;
    LIST_FOR_EACH(it, &t->links) {
        const struct cl_link *l = CONTAINER_OF(it, struct cl_link, node);
        held += l->in.capacity + (l->stream != NULL ? env_stream_queued(l->stream) : 0);
    }
    for (unsigned i = 0; i < t->peer_count; i++)
        held += t->peers[i].queued_bytes;
    /* Per node: its queue, what may always be sent, a frame and a socket's share on either side. */
    *limit =
        t->peer_count * (t->o.queue_bytes + CL_SOCKET_QUEUE_BYTES + 3u * LIMIT_PEER_FRAME_BYTES) +
        CL_STRANGERS_MAX * 2u * CL_HANDSHAKE_BYTES_MAX;
    return held;
}
