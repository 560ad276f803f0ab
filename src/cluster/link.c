/*
 * cluster/link.c — one connection between two nodes: its handshake, and the frames that come in.
 *
 *    we open                                     they open
 *    DIALLING --opened, HELLO--> GREETING        STRANGER --HELLO, WELCOME--> WELCOMED
 *                                   |  \                |  \                     |
 *               WELCOME, READY      |   \__ REFUSAL     |   \__ REFUSAL --> REFUSED
 *                                   v                   |                        v  READY
 *                                   UP                  v                        UP
 *    every state --error, limit, end--> CLOSED
 *
 * Both nodes of a pair open connections, since either may be the one who can reach the other. When
 * both do at once, the one opened by the node of the lower id stays: its acceptor gives up its own
 * attempt, the other one refuses. A connection that comes while one is up replaces it, since the
 * other side would not open one without need: it has lost the old one and we have not noticed. That
 * happens at READY, not at HELLO, so that only a living connection replaces another.
 *
 * Invariants
 *   T1  A link is in exactly one of its peer's fields link, dial, welcomed, or it has no peer, or
 *       it is closed.
 *   T2  Items are taken from a link only in state UP.
 *   T3  The input of a link holds less than one frame, whose size was checked.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/tls_stream.h"
#include "cluster/transport_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TO(s) (1u << (s))
#define INPUT_KEEP_BYTES 65536u
#define REFUSAL_LOG_US 60000000u
#define LINGER_US 1000000u

static const struct {
    const char *name;
    unsigned next;
} rules[CL_LINK_STATES] = {
    [CL_LINK_DIALLING] = {"dialling", TO(CL_LINK_GREETING) | TO(CL_LINK_CLOSED)},
    [CL_LINK_GREETING] = {"greeting", TO(CL_LINK_UP) | TO(CL_LINK_CLOSED)},
    [CL_LINK_STRANGER] = {"stranger",
                          TO(CL_LINK_WELCOMED) | TO(CL_LINK_REFUSED) | TO(CL_LINK_CLOSED)},
    [CL_LINK_WELCOMED] = {"welcomed", TO(CL_LINK_UP) | TO(CL_LINK_CLOSED)},
    [CL_LINK_UP] = {"up", TO(CL_LINK_CLOSED)},
    [CL_LINK_REFUSED] = {"refused", TO(CL_LINK_CLOSED)},
    [CL_LINK_CLOSED] = {"closed", 0},
};

static void link_move(struct cl_link *l, enum cl_link_state next)
{
    ASSERT(rules[l->state].next & TO(next));
    if (l->state == CL_LINK_STRANGER)
        l->transport->strangers--;
    l->state = next;
}

/* -- a link's end ------------------------------------------------------------------------------ */

void cl__link_close(struct cl_link *l)
{
    struct cl_peer *p = l->peer;
    if (l->state == CL_LINK_CLOSED)
        return;
    link_move(l, CL_LINK_CLOSED);
    if (p != NULL) {
        p->link = p->link == l ? NULL : p->link;
        p->dial = p->dial == l ? NULL : p->dial;
        p->welcomed = p->welcomed == l ? NULL : p->welcomed;
    }
    env_stream_close(l->stream);
    l->stream = NULL;
    list_remove(&l->node);
    list_push_back(&l->transport->graves, &l->node);
    cl__transport_kick(l->transport);
}

void cl__links_bury(struct cl_transport *t)
{
    struct list *it;
    while ((it = list_pop_front(&t->graves)) != NULL) {
        struct cl_link *l = CONTAINER_OF(it, struct cl_link, node);
        obuf_fini(&l->in);
        free(l);
    }
}

/* Something is wrong with the connection. */
static void link_fail(struct cl_link *l, const char *why)
{
    struct cl_peer *p = l->peer;
    if (l->state == CL_LINK_CLOSED)
        return;
    if (p == NULL) {
        if (l->state == CL_LINK_STRANGER)
            LOG_INFO("net.stranger_gone", LOG_STR("from", env_stream_remote(l->stream)),
                     LOG_STR("why", why));
        cl__link_close(l);
        return;
    }
    cl__peer_lost(p, l, why);
}

/* -- sending the handshake --------------------------------------------------------------------- */

static void send_frame(struct cl_link *l, enum cl_frame_type type, bytes body)
{
    uint8_t header[CL_FRAME_HEADER_BYTES];
    struct iovec iov[2] = {{header, sizeof header}, {(void *)(uintptr_t)body.data, body.size}};
    cl_frame_header(header, type, body, &l->out_seal);
    env_stream_send(l->stream, iov, body.size > 0 ? 2 : 1);
}

static void send_hello(struct cl_link *l, enum cl_frame_type type)
{
    struct obuf *o = &l->transport->scratch;
    obuf_reset(o);
    cl_hello_put(o, &l->ours);
    send_frame(l, type, bytes_make(o->data, o->size));
}

static uint64_t expected_store(const struct cl_transport *t, uint64_t node)
{
    return t->o.events->store_of != NULL ? t->o.events->store_of(t->o.arg, node) : 0;
}

/* What is known of NODE here. */
static struct cl_expected expected(const struct cl_transport *t, uint64_t node)
{
    const struct cl_transport_events *e = t->o.events;
    return (struct cl_expected){.known = cl__peer_find((struct cl_transport *)(uintptr_t)t, node) !=
                                         NULL,
                                .first = e->is_first == NULL || e->is_first(t->o.arg, node),
                                .store = expected_store(t, node)};
}

static void introduce(struct cl_link *l, uint64_t node)
{
    const struct cl_transport *t = l->transport;
    l->ours = (struct cl_hello){.cluster_id = t->o.cluster_id,
                                .node_id = t->o.topology->self,
                                .store_id = t->o.store_id,
                                .replica_id = t->o.replica_id,
                                .incarnation = t->incarnation,
                                .protocol_min = CL_PROTOCOL_MIN,
                                .protocol_max = CL_PROTOCOL_MAX,
                                .expected_node_id = node,
                                .expected_store_id = node != 0 ? expected_store(t, node) : 0,
                                .nonce = env_random64(t->o.env)};
}

/* Both directions get seeds that belong to this connection alone. */
static void set_seals(struct cl_link *l)
{
    uint64_t connector = l->connector ? l->ours.nonce : l->theirs.nonce;
    uint64_t acceptor = l->connector ? l->theirs.nonce : l->ours.nonce;
    l->out_seal = cl_frame_seal(connector, acceptor, l->connector);
    l->in_seal = cl_frame_seal(connector, acceptor, !l->connector);
}

/* -- refusing ---------------------------------------------------------------------------------- */

/* Once a minute and reason, however often somebody tries. */
static void log_refusal(struct cl_transport *t, const struct cl_link *l, const struct cl_refusal *r)
{
    uint64_t now_us = cl__transport_now(t);
    uint64_t *logged_us = &t->refusal_logged_us[r->reason];
    if (r->reason == CL_REFUSED_CROSSED ||
        (*logged_us != 0 && now_us - *logged_us < REFUSAL_LOG_US))
        return;
    *logged_us = now_us;
    LOG_WARN("net.refused", LOG_STR("reason", cl_refusal_name(r->reason)),
             LOG_STR("from", env_stream_remote(l->stream)), LOG_STR("why", r->text));
}

static void refuse(struct cl_link *l, const struct cl_refusal *r)
{
    struct obuf *o = &l->transport->scratch;
    struct cl_peer *p = cl__peer_find(l->transport, l->theirs.node_id);
    log_refusal(l->transport, l, r);
    if (p != NULL && r->reason != CL_REFUSED_CROSSED)
        p->refusals++;
    obuf_reset(o);
    cl_refusal_put(o, r);
    send_frame(l, CL_FRAME_REFUSAL, bytes_make(o->data, o->size));
    link_move(l, CL_LINK_REFUSED);
    l->due_us = cl__transport_now(l->transport) + LINGER_US;
    cl__transport_wake_at(l->transport, l->due_us);
}

/* -- receiving the handshake ------------------------------------------------------------------- */

/* Is the certificate at the other end NODE's? */
static bool is_certified(const struct cl_link *l, uint64_t node, struct cl_refusal *r)
{
    char wanted[CL_PEER_NAME_BYTES];
    if (l->transport->o.tls == NULL)
        return true;
    const char *name = tls_stream_peer_name(l->stream);
    if (cl_peer_tls_is(name, node, wanted))
        return true;
    r->reason = CL_REFUSED_CERTIFICATE;
    snprintf(r->text, sizeof r->text,
             "the certificate of node %" PRIu64 " is of \"%.80s\", not of %s", node,
             name != NULL ? name : "nobody", wanted);
    return false;
}

static void on_hello(struct cl_link *l, bytes body)
{
    struct cl_transport *t = l->transport;
    struct cl_refusal r;
    if (cl_hello_get(body, &l->theirs) != ST_OK) {
        link_fail(l, "damaged HELLO");
        return;
    }
    struct cl_peer *p = cl__peer_find(t, l->theirs.node_id);
    struct cl_expected e = expected(t, l->theirs.node_id);
    introduce(l, l->theirs.node_id);
    if (!is_certified(l, l->theirs.node_id, &r) ||
        cl_hello_judge(&l->ours, &l->theirs, &e, &l->ours.protocol, &r) != CL_REFUSED_NOT) {
        refuse(l, &r);
        return;
    }
    if (p->dial != NULL && t->o.topology->self < p->address->id) {
        r = (struct cl_refusal){.reason = CL_REFUSED_CROSSED};
        refuse(l, &r);
        return;
    }
    if (p->dial != NULL) {
        MARK("net.crossed");
        cl__link_close(p->dial);
    }
    if (p->welcomed != NULL)
        cl__link_close(p->welcomed); /* the other side has tried again */
    send_hello(l, CL_FRAME_WELCOME);
    set_seals(l);
    l->peer = p;
    p->welcomed = l;
    link_move(l, CL_LINK_WELCOMED);
}

static void on_welcome(struct cl_link *l, bytes body)
{
    struct cl_peer *p = l->peer;
    struct cl_refusal r;
    uint32_t protocol;
    if (cl_hello_get(body, &l->theirs) != ST_OK) {
        link_fail(l, "damaged WELCOME");
        return;
    }
    if (l->theirs.node_id != p->address->id) {
        r = (struct cl_refusal){.reason = CL_REFUSED_NODE, .text = "another node answered there"};
        cl__peer_refused(p, l, &r);
        return;
    }
    struct cl_expected e = expected(l->transport, l->theirs.node_id);
    if (cl_hello_judge(&l->ours, &l->theirs, &e, &protocol, &r) != CL_REFUSED_NOT) {
        cl__peer_refused(p, l, &r);
        return;
    }
    set_seals(l);
    send_frame(l, CL_FRAME_READY, BYTES_EMPTY);
    link_move(l, CL_LINK_UP);
    cl__peer_adopt(p, l);
}

static void on_refusal(struct cl_link *l, bytes body)
{
    struct cl_refusal r;
    if (cl_refusal_get(body, &r) != ST_OK)
        link_fail(l, "damaged REFUSAL");
    else
        cl__peer_refused(l->peer, l, &r);
}

static void on_frame(struct cl_link *l, const struct cl_frame *f)
{
    switch (f->type) {
    case CL_FRAME_HELLO:
        if (l->state == CL_LINK_STRANGER) {
            on_hello(l, f->body);
            return;
        }
        break;
    case CL_FRAME_WELCOME:
        if (l->state == CL_LINK_GREETING) {
            on_welcome(l, f->body);
            return;
        }
        break;
    case CL_FRAME_REFUSAL:
        if (l->state == CL_LINK_GREETING) {
            on_refusal(l, f->body);
            return;
        }
        break;
    case CL_FRAME_READY:
        if (l->state == CL_LINK_WELCOMED && f->body.size == 0) {
            link_move(l, CL_LINK_UP);
            cl__peer_adopt(l->peer, l);
            return;
        }
        break;
    case CL_FRAME_BATCH:
        if (l->state == CL_LINK_UP) {
            l->peer->received_frames++;
            if (cl__peer_receive(l->peer, f->body) == ST_OK)
                return;
            if (l->peer != NULL)
                l->peer->damaged++;
            link_fail(l, "damaged item");
            return;
        }
        break;
    }
    if (l->state != CL_LINK_REFUSED)
        link_fail(l, "a frame that does not belong here");
}

/* -- bytes ------------------------------------------------------------------------------------- */

static size_t body_max(const struct cl_link *l)
{
    return l->state == CL_LINK_UP ? LIMIT_PEER_FRAME_BYTES : CL_HANDSHAKE_BYTES_MAX;
}

/* The whole frames at the start of DATA; returns what they took. */
static size_t take_frames(struct cl_link *l, bytes data)
{
    size_t at = 0;
    while (l->state != CL_LINK_CLOSED && l->state != CL_LINK_REFUSED) {
        struct cl_frame f;
        size_t size;
        const char *why = NULL;
        bytes rest = bytes_make(data.data + at, data.size - at);
        status st = cl_frame_read(rest, body_max(l), &l->in_seal, &f, &size, &why);
        if (st == ST_PENDING)
            break;
        if (st != ST_OK) {
            if (l->peer != NULL)
                l->peer->damaged++;
            LOG_WARN("net.bad_frame", LOG_STR("from", env_stream_remote(l->stream)),
                     LOG_STR("why", why));
            link_fail(l, why);
            break;
        }
        at += size;
        on_frame(l, &f);
    }
    return at;
}

static void on_received(void *arg, bytes data)
{
    struct cl_link *l = arg;
    if (l->state == CL_LINK_REFUSED)
        return;
    if (l->peer != NULL) {
        l->peer->received_bytes += data.size;
        if (l->peer->link == l)
            l->peer->received_us = cl__transport_now(l->transport);
    }
    if (l->in.size == 0) {
        size_t used = take_frames(l, data);
        if (l->state != CL_LINK_CLOSED)
            obuf_put(&l->in, data.data + used, data.size - used);
        return;
    }
    obuf_put(&l->in, data.data, data.size);
    size_t used = take_frames(l, bytes_make(l->in.data, l->in.size));
    obuf_consume(&l->in, used);
    obuf_shrink(&l->in, INPUT_KEEP_BYTES);
    ASSERT_INV("T3", l->state == CL_LINK_CLOSED || l->state == CL_LINK_REFUSED ||
                         l->in.size < CL_FRAME_HEADER_BYTES + LIMIT_PEER_FRAME_BYTES);
}

static void on_opened(void *arg)
{
    struct cl_link *l = arg;
    struct cl_refusal r;
    if (!is_certified(l, l->peer->address->id, &r)) {
        cl__peer_refused(l->peer, l, &r);
        return;
    }
    link_move(l, CL_LINK_GREETING);
    l->due_us = cl__transport_now(l->transport) + l->transport->o.handshake_us;
    cl__transport_wake_at(l->transport, l->due_us);
    send_hello(l, CL_FRAME_HELLO);
}

static void on_drained(void *arg)
{
    struct cl_link *l = arg;
    cl__transport_kick(l->transport);
}

static void on_closed(void *arg, status st, const char *why)
{
    UNUSED(st);
    link_fail(arg, why);
}

static const struct env_stream_handler handler = {
    .opened = on_opened, .received = on_received, .drained = on_drained, .closed = on_closed};

/* -- beginnings -------------------------------------------------------------------------------- */

static struct cl_link *link_new(struct cl_transport *t, enum cl_link_state state)
{
    struct cl_link *l = calloc(1, sizeof *l);
    ASSERT(l != NULL);
    l->transport = t;
    l->state = state;
    l->serial = ++t->serials;
    l->in_seal = l->out_seal = CL_FRAME_SEAL_OPEN;
    obuf_init(&l->in);
    l->due_us = cl__transport_now(t) + t->o.handshake_us;
    cl__transport_wake_at(t, l->due_us);
    return l;
}

static NODISCARD status open_stream(struct cl_link *l, const char *address, struct err *err)
{
    struct cl_transport *t = l->transport;
    if (t->o.tls == NULL) {
        l->due_us = UINT64_MAX; /* the stream has a limit of its own */
        return env_connect(t->o.env, t->o.loop, address, t->o.connect_us, &handler, l, &l->stream,
                           err);
    }
    l->due_us = cl__transport_now(t) + t->o.connect_us + t->o.handshake_us;
    return tls_stream_connect(t->o.env, t->o.loop, address, t->o.connect_us,
                              cl_peer_tls_context(t->o.tls), &handler, l, &l->stream, err);
}

status cl__link_dial(struct cl_peer *p, struct err *err)
{
    struct cl_transport *t = p->transport;
    struct cl_link *l = link_new(t, CL_LINK_DIALLING);
    ASSERT(p->link == NULL && p->dial == NULL && p->welcomed == NULL);
    l->connector = true;
    introduce(l, p->address->id);
    status st = open_stream(l, p->address->peers, err);
    if (st != ST_OK) {
        obuf_fini(&l->in);
        free(l);
        return st;
    }
    l->peer = p;
    p->dial = l;
    list_push_back(&t->links, &l->node);
    return ST_OK;
}

void cl__link_accept(struct cl_transport *t, struct env_stream *stream)
{
    struct cl_link *l = link_new(t, CL_LINK_STRANGER);
    l->stream =
        t->o.tls != NULL ? tls_stream_accept(stream, cl_peer_tls_context(t->o.tls)) : stream;
    t->strangers++;
    list_push_back(&t->links, &l->node);
    env_stream_attach(l->stream, &handler, l);
    if (t->strangers > CL_STRANGERS_MAX)
        cl__link_close(l);
}

uint64_t cl__links_check(struct cl_transport *t, uint64_t now_us)
{
    uint64_t next_us = UINT64_MAX;
    LIST_FOR_EACH_SAFE(it, after, &t->links) {
        struct cl_link *l = CONTAINER_OF(it, struct cl_link, node);
        if (l->state == CL_LINK_UP)
            continue;
        if (now_us >= l->due_us)
            link_fail(l, "the handshake took too long");
        else if (l->due_us < next_us)
            next_us = l->due_us;
    }
    return next_us;
}
