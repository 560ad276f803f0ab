/*
 * base/sim_net.c — the simulated network.
 *
 * Vocabulary: an *end* is one side of a connection, a stream. Its *peer* is the other end, NULL
 * when that one is gone or has forgotten us. A *packet* is on its way to an end, in the end's `in`
 * list. What a sender's window does not admit waits in its *queue*. What has arrived and was not
 * yet received (the receiver pauses) is in the end's *buffer*.
 *
 *   env_stream_send → queue → pump → packet in peer->in → arrive → buffer → handler->received
 *
 * Packets of an end arrive in order. A blocked link keeps them in the list: they are what TCP
 * retransmits. Data for an end without a peer is lost; once the path is open it earns a reset.
 *
 * Invariants
 *   X1  Callbacks run from events only, one per event, and none after close or a crash.
 *   X2  a->peer == b if and only if b->peer == a.
 *   X3  `flight` of an end is the bytes in its peer's `in` list, while it has a peer.
 */
#include "base/sim_net.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/sim_loop.h"
#include <stdio.h>
#include <stdlib.h>

#define DELAY_MIN_US 50u
#define DELAY_MAX_US 500u
#define SYN_RETRY_US 1000000u
#define PACKET_MAX 65536u
#define MILLION 1000000u

enum end_state { END_OPENING, END_OPEN, END_OVER };
enum packet_kind { PACKET_DATA, PACKET_OPENED, PACKET_FIN, PACKET_RESET };

struct packet {
    struct list node;
    uint64_t due_us;
    enum packet_kind kind;
    const char *why; /* of a reset */
    size_t size;
    uint8_t data[];
};

struct end {
    struct env_stream base;
    struct list node; /* of the network */
    struct sim_net *net;
    unsigned host, other;
    struct end *peer;
    struct loop *loop;
    const struct env_stream_handler *handler;
    void *arg;
    enum end_state state;
    bool calling, dropped, dead; /* as in net_os.c; its host has crashed */
    bool paused, drained, fin, ack_missing;
    struct list in;
    struct obuf queue, buffer;
    size_t queue_at; /* what is before it has left the queue */
    size_t flight, window;
    uint64_t progress_us; /* when something was acknowledged last, or sent after a rest */
    struct sim_event arrive, syn, limit;
    char remote[ENV_NET_ADDRESS_BYTES];
};

struct env_listener {
    struct list node;
    struct sim_net *net;
    unsigned host;
    struct loop *loop;
    bool dead;
    void (*accepted)(void *arg, struct env_stream *s);
    void *arg;
    char address[ENV_NET_ADDRESS_BYTES];
};

struct host {
    struct env_net_ops ops; /* its address is env->net: how a call finds its host */
    struct sim_net *net;
    struct env *env;
    char name[40];
    bool down;
    uint64_t frozen_until_us;
    unsigned descriptors, next_port;
};

struct link {
    bool blocked;
    uint64_t min_us, max_us, bytes_per_s, free_us;
    unsigned damage;
};

struct sim_net {
    struct sim_world *world;
    struct host hosts[SIM_NET_HOSTS_MAX];
    unsigned host_count;
    struct link links[SIM_NET_HOSTS_MAX][SIM_NET_HOSTS_MAX];
    struct list ends, listeners;
    struct sim_net_stats stats;
};

static const struct env_net_ops sim_ops;

static struct end *end_of(const struct env_stream *s)
{
    return CONTAINER_OF((struct env_stream *)(uintptr_t)s, struct end, base);
}

static uint64_t now(const struct sim_net *n)
{
    return sim_world_now_us(n->world);
}

static uint64_t below(struct sim_net *n, uint64_t bound)
{
    return sim_random_below(sim_world_random(n->world), bound);
}

static bool reaches(const struct sim_net *n, unsigned from, unsigned to)
{
    return !n->links[from][to].blocked && !n->hosts[to].down;
}

static uint64_t latency(struct sim_net *n, unsigned from, unsigned to)
{
    const struct link *l = &n->links[from][to];
    return l->min_us + below(n, l->max_us - l->min_us + 1);
}

/* -- packets ----------------------------------------------------------------------------------- */

/* The next packet of E, or what else it waits for. */
static void arm(struct end *e)
{
    struct sim_net *n = e->net;
    if (e->dead)
        return;
    if (e->drained || (!e->paused && (e->buffer.size > 0 || e->fin))) {
        sim_world_at(n->world, &e->arrive, now(n));
        return;
    }
    if (list_empty(&e->in) || n->links[e->other][e->host].blocked) {
        sim_world_cancel(n->world, &e->arrive);
        return;
    }
    sim_world_at(n->world, &e->arrive, CONTAINER_OF(e->in.next, struct packet, node)->due_us);
}

/* Packet for E, behind those that are on their way. */
static struct packet *packet_to(struct end *e, enum packet_kind kind, const void *data, size_t size)
{
    struct sim_net *n = e->net;
    struct link *l = &n->links[e->other][e->host];
    struct packet *p = malloc(sizeof *p + size);
    ASSERT(p != NULL);
    p->kind = kind;
    p->why = "";
    p->size = size;
    if (size > 0)
        memcpy(p->data, data, size);
    uint64_t start_us = l->free_us > now(n) ? l->free_us : now(n);
    if (l->bytes_per_s > 0)
        l->free_us = start_us += size * MILLION / l->bytes_per_s;
    else
        start_us = now(n);
    p->due_us = start_us + latency(n, e->other, e->host);
    if (!list_empty(&e->in)) {
        uint64_t last_us = CONTAINER_OF(e->in.prev, struct packet, node)->due_us;
        p->due_us = p->due_us > last_us ? p->due_us : last_us;
    }
    list_push_back(&e->in, &p->node);
    n->stats.packets++;
    n->stats.bytes += size;
    if (l->blocked)
        n->stats.held++;
    arm(e);
    return p;
}

static void hurry(struct end *e)
{
    uint64_t due_us = now(e->net) + latency(e->net, e->other, e->host);
    LIST_FOR_EACH(it, &e->in) {
        struct packet *p = CONTAINER_OF(it, struct packet, node);
        p->due_us = p->due_us < due_us ? p->due_us : due_us;
    }
}

static void drop_packets(struct end *e)
{
    struct list *it;
    while ((it = list_pop_front(&e->in)) != NULL)
        free(CONTAINER_OF(it, struct packet, node));
    if (e->peer != NULL)
        e->peer->flight = 0;
}

/* E learns that the connection is no more; what was on its way to it may be lost. */
static void reset(struct end *e, const char *why)
{
    if (below(e->net, 2) == 0)
        drop_packets(e);
    e->net->stats.resets++;
    packet_to(e, PACKET_RESET, NULL, 0)->why = why;
}

/* Both ends forget each other (X2). */
static void unlink_ends(struct end *e)
{
    if (e->peer == NULL)
        return;
    e->peer->peer = NULL;
    e->peer = NULL;
}

static size_t queued(const struct end *e)
{
    return e->queue.size - e->queue_at;
}

static size_t packet_size(struct sim_net *n, size_t most)
{
    uint64_t kind = below(n, 16);
    size_t limit = kind == 0 ? 16 : kind < 8 ? 1448 : PACKET_MAX;
    size_t size = limit < PACKET_MAX ? 1 + (size_t)below(n, limit) : limit;
    return size < most ? size : most;
}

static void watch_progress(struct end *e)
{
    if (e->limit.place == 0)
        sim_world_at(e->net->world, &e->limit, e->progress_us + ENV_NET_UNACKNOWLEDGED_US);
}

/* Nobody is at the other side of E: its data earns a reset when it gets there and back. */
static void meet_nobody(struct end *e)
{
    struct sim_net *n = e->net;
    if (e->peer == NULL && e->state == END_OPEN && e->flight > 0 && !e->dead &&
        reaches(n, e->host, e->other) && reaches(n, e->other, e->host)) {
        e->flight = 0;
        reset(e, "reset by the other side");
    }
}

static void pump(struct end *e)
{
    struct sim_net *n = e->net;
    size_t before = e->queue_at;
    bool rested = e->flight == 0 && !e->ack_missing;
    while (e->queue_at < e->queue.size && e->state == END_OPEN) {
        size_t held = e->flight + (e->peer != NULL ? e->peer->buffer.size : 0);
        if (held >= e->window)
            break;
        size_t room = e->window - held, left = e->queue.size - e->queue_at;
        size_t size = packet_size(n, left < room ? left : room);
        if (e->peer != NULL) {
            struct packet *p = packet_to(e->peer, PACKET_DATA, e->queue.data + e->queue_at, size);
            if (below(n, MILLION) < n->links[e->host][e->other].damage) {
                p->data[below(n, size)] ^= (uint8_t)(1u << below(n, 8));
                n->stats.damaged++;
            }
        }
        e->flight += size;
        e->queue_at += size;
    }
    if (e->queue_at == before)
        return;
    if (rested)
        e->progress_us = now(n);
    if (e->queue_at > e->queue.size / 2) {
        obuf_consume(&e->queue, e->queue_at);
        e->queue_at = 0;
    }
    watch_progress(e);
    meet_nobody(e);
}

static void pump_and_tell(struct end *e)
{
    bool waiting = queued(e) > 0;
    pump(e);
    if (waiting && queued(e) == 0) {
        e->drained = true;
        arm(e);
    }
}

/* SIZE bytes of E's have arrived. */
static void acknowledge(struct end *e, size_t size)
{
    struct sim_net *n = e->net;
    ASSERT_INV("X3", e->flight >= size);
    e->flight -= size;
    if (n->links[e->other][e->host].blocked)
        e->ack_missing = true;
    else
        e->progress_us = now(n);
    pump_and_tell(e);
}

/* -- events of an end -------------------------------------------------------------------------- */

static void end_free(struct end *e)
{
    sim_world_cancel(e->net->world, &e->arrive);
    sim_world_cancel(e->net->world, &e->syn);
    sim_world_cancel(e->net->world, &e->limit);
    drop_packets(e);
    list_remove(&e->node);
    obuf_fini(&e->queue);
    obuf_fini(&e->buffer);
    free(e);
}

static void call_begin(struct end *e)
{
    sim_loop_enter(e->loop);
    e->calling = true;
}

/* False: its owner closed it. */
static bool call_end(struct end *e)
{
    e->calling = false;
    if (!e->dropped)
        return true;
    end_free(e);
    return false;
}

static void end_over(struct end *e, status st, const char *why)
{
    unlink_ends(e);
    e->state = END_OVER;
    e->fin = e->drained = false;
    drop_packets(e);
    obuf_reset(&e->queue);
    e->queue_at = 0;
    obuf_reset(&e->buffer);
    sim_world_cancel(e->net->world, &e->syn);
    sim_world_cancel(e->net->world, &e->limit);
    call_begin(e);
    e->handler->closed(e->arg, st, why);
    (void)call_end(e);
}

static void on_packet(struct end *e, struct packet *p)
{
    switch (p->kind) {
    case PACKET_DATA:
        obuf_put(&e->buffer, p->data, p->size);
        if (e->peer != NULL)
            acknowledge(e->peer, p->size);
        break;
    case PACKET_OPENED:
        e->state = END_OPEN;
        sim_world_cancel(e->net->world, &e->limit);
        call_begin(e);
        e->handler->opened(e->arg);
        if (!call_end(e))
            return;
        break;
    case PACKET_FIN: e->fin = true; break;
    case PACKET_RESET: end_over(e, ST_UNREACHABLE, p->why); return;
    }
    arm(e);
}

static void receive_buffer(struct end *e)
{
    struct obuf data = e->buffer;
    obuf_init(&e->buffer);
    call_begin(e);
    e->handler->received(e->arg, bytes_make(data.data, data.size));
    obuf_fini(&data);
    if (!call_end(e))
        return;
    if (e->peer != NULL)
        pump_and_tell(e->peer);
    arm(e);
}

/* EV waits while the process of HOST is stopped. */
static bool frozen(struct sim_net *n, unsigned host, struct sim_event *ev)
{
    if (n->hosts[host].frozen_until_us <= now(n))
        return false;
    sim_world_at(n->world, ev, n->hosts[host].frozen_until_us);
    return true;
}

/* One callback at most (X1). */
static void on_arrive(struct sim_event *ev)
{
    struct end *e = CONTAINER_OF(ev, struct end, arrive);
    if (frozen(e->net, e->host, ev))
        return;
    ASSERT_INV("X1", !e->dead && !e->calling && e->state != END_OVER);
    if (e->drained) {
        e->drained = false;
        call_begin(e);
        e->handler->drained(e->arg);
        if (call_end(e))
            arm(e);
    } else if (!e->paused && e->buffer.size > 0) {
        receive_buffer(e);
    } else if (!e->paused && e->fin) {
        end_over(e, ST_END, "the other side closed");
    } else {
        struct list *first = list_pop_front(&e->in);
        struct packet *p = CONTAINER_OF(first, struct packet, node);
        on_packet(e, p);
        free(p);
    }
}

static void on_limit(struct sim_event *ev)
{
    struct end *e = CONTAINER_OF(ev, struct end, limit);
    uint64_t due_us = e->progress_us + ENV_NET_UNACKNOWLEDGED_US;
    if (e->dead || e->state == END_OVER || frozen(e->net, e->host, ev))
        return;
    if (e->state == END_OPENING) {
        e->net->stats.timeouts++;
        end_over(e, ST_UNREACHABLE, "connect: no answer in time");
        return;
    }
    if (e->flight == 0 && !e->ack_missing)
        return;
    if (now(e->net) < due_us) {
        sim_world_at(e->net->world, &e->limit, due_us);
        return;
    }
    e->net->stats.timeouts++;
    e->net->stats.half_open += e->peer != NULL;
    end_over(e, ST_UNREACHABLE, "send: no acknowledgement in time");
}

/* -- opening ----------------------------------------------------------------------------------- */

static unsigned descriptors_used(const struct sim_net *n, unsigned host)
{
    unsigned used = 0;
    LIST_FOR_EACH(it, &n->ends) {
        used += CONTAINER_OF(it, struct end, node)->host == host;
    }
    return used;
}

static bool descriptors_left(const struct sim_net *n, unsigned host)
{
    unsigned max = n->hosts[host].descriptors;
    return max == 0 || descriptors_used(n, host) < max;
}

static void on_syn(struct sim_event *ev);

static struct end *end_new(struct sim_net *n, unsigned host, unsigned other, struct loop *loop)
{
    struct end *e = calloc(1, sizeof *e);
    ASSERT(e != NULL);
    e->base.ops = &sim_ops;
    e->net = n;
    e->host = host;
    e->other = other;
    e->loop = loop;
    list_init(&e->in);
    obuf_init(&e->queue);
    obuf_init(&e->buffer);
    e->window = 4096u << below(n, 7);
    e->progress_us = now(n);
    e->arrive.fn = on_arrive;
    e->syn.fn = on_syn;
    e->limit.fn = on_limit;
    list_push_back(&n->ends, &e->node);
    return e;
}

static struct env_listener *find_listener(struct sim_net *n, const char *address)
{
    LIST_FOR_EACH(it, &n->listeners) {
        struct env_listener *l = CONTAINER_OF(it, struct env_listener, node);
        if (!l->dead && strcmp(l->address, address) == 0)
            return l;
    }
    return NULL;
}

static void accept_end(struct env_listener *l, struct end *from)
{
    struct sim_net *n = l->net;
    struct end *e = end_new(n, l->host, from->host, l->loop);
    e->state = END_OPEN;
    e->peer = from;
    from->peer = e;
    snprintf(e->remote, sizeof e->remote, "%s:%u", n->hosts[from->host].name,
             40000u + n->hosts[from->host].next_port++ % 20000u);
    packet_to(from, PACKET_OPENED, NULL, 0);
    call_begin(e);
    l->accepted(l->arg, &e->base);
    (void)call_end(e);
}

/* The request of E to connect arrives, or is sent again. */
static void on_syn(struct sim_event *ev)
{
    struct end *e = CONTAINER_OF(ev, struct end, syn);
    struct sim_net *n = e->net;
    if (!reaches(n, e->host, e->other)) {
        sim_world_at(n->world, &e->syn, now(n) + SYN_RETRY_US);
        return;
    }
    struct env_listener *l = find_listener(n, e->remote);
    if (l == NULL) {
        n->stats.refused++;
        packet_to(e, PACKET_RESET, NULL, 0)->why = "connect: refused";
    } else if (frozen(n, l->host, ev)) {
        return;
    } else if (!descriptors_left(n, l->host)) {
        packet_to(e, PACKET_OPENED, NULL, 0);
        packet_to(e, PACKET_FIN, NULL, 0);
    } else {
        accept_end(l, e);
    }
}

/* -- the table --------------------------------------------------------------------------------- */

static struct host *host_of(const struct env *e)
{
    return CONTAINER_OF((struct env_net_ops *)(uintptr_t)e->net, struct host, ops);
}

static unsigned number_of(const struct host *h)
{
    return (unsigned)(h - h->net->hosts);
}

static status sim_listen(struct env *env, struct loop *loop, const char *address,
                         void (*accepted)(void *arg, struct env_stream *s), void *arg,
                         struct env_listener **out, struct err *err)
{
    struct host *h = host_of(env);
    size_t name = strlen(h->name);
    ST_TRY(env_address_check(address, err));
    if (strncmp(address, h->name, name) != 0 || address[name] != ':')
        return err_set(err, ST_IO, "cannot listen on %s: not an address of this machine", address);
    struct env_listener *l = calloc(1, sizeof *l);
    ASSERT(l != NULL);
    if (strcmp(address + name, ":0") == 0)
        snprintf(l->address, sizeof l->address, "%s:%u", h->name, 30000u + h->next_port++ % 10000u);
    else
        snprintf(l->address, sizeof l->address, "%s", address);
    if (find_listener(h->net, l->address) != NULL) {
        free(l);
        return err_set(err, ST_IO, "cannot listen on %s: in use", address);
    }
    l->net = h->net;
    l->host = number_of(h);
    l->loop = loop;
    l->accepted = accepted;
    l->arg = arg;
    list_push_back(&h->net->listeners, &l->node);
    *out = l;
    return ST_OK;
}

static void sim_unlisten(struct env_listener *l)
{
    if (l == NULL)
        return;
    list_remove(&l->node);
    free(l);
}

static const char *sim_listener_address(const struct env_listener *l)
{
    return l->address;
}

static status sim_connect(struct env *env, struct loop *loop, const char *address,
                          uint64_t timeout_us, const struct env_stream_handler *handler, void *arg,
                          struct env_stream **out, struct err *err)
{
    struct host *h = host_of(env);
    struct sim_net *n = h->net;
    unsigned other = 0;
    ST_TRY(env_address_check(address, err));
    size_t name = (size_t)(strrchr(address, ':') - address);
    while (other < n->host_count && (strncmp(n->hosts[other].name, address, name) != 0 ||
                                     n->hosts[other].name[name] != '\0'))
        other++;
    if (other == n->host_count)
        return err_set(err, ST_UNREACHABLE, "connect: no route to %s", address);
    if (!descriptors_left(n, number_of(h)))
        return err_set(err, ST_TOO_MANY, "socket: too many open files");
    struct end *e = end_new(n, number_of(h), other, loop);
    e->state = END_OPENING;
    e->handler = handler;
    e->arg = arg;
    snprintf(e->remote, sizeof e->remote, "%s", address);
    n->stats.connects++;
    sim_world_at(n->world, &e->syn, now(n) + latency(n, e->host, other));
    sim_world_at(n->world, &e->limit, now(n) + timeout_us);
    *out = &e->base;
    return ST_OK;
}

static void sim_attach(struct env_stream *s, const struct env_stream_handler *handler, void *arg)
{
    end_of(s)->handler = handler;
    end_of(s)->arg = arg;
}

static void sim_send(struct env_stream *s, const struct iovec *iov, int count)
{
    struct end *e = end_of(s);
    if (e->state != END_OPEN || e->dead)
        return;
    for (int i = 0; i < count; i++)
        obuf_put(&e->queue, iov[i].iov_base, iov[i].iov_len);
    pump(e);
}

static size_t sim_queued(const struct env_stream *s)
{
    return queued(end_of(s));
}

static void sim_pause(struct env_stream *s, bool paused)
{
    struct end *e = end_of(s);
    e->paused = paused;
    if (!e->calling && e->state != END_OVER)
        arm(e);
}

static const char *sim_remote(const struct env_stream *s)
{
    return end_of(s)->remote;
}

static void sim_close(struct env_stream *s)
{
    struct end *e = end_of(s);
    struct end *peer = e->peer;
    ASSERT(!e->dropped);
    unlink_ends(e);
    if (peer != NULL && !e->dead)
        packet_to(peer, PACKET_FIN, NULL, 0);
    if (!e->calling) {
        end_free(e);
        return;
    }
    e->dropped = true;
    e->state = END_OVER;
}

static const struct env_net_ops sim_ops = {
    .listen = sim_listen,
    .unlisten = sim_unlisten,
    .listener_address = sim_listener_address,
    .connect = sim_connect,
    .attach = sim_attach,
    .send = sim_send,
    .queued = sim_queued,
    .pause = sim_pause,
    .remote = sim_remote,
    .close = sim_close,
};

/* -- the network ------------------------------------------------------------------------------- */

struct sim_net *sim_net_new(struct sim_world *w)
{
    struct sim_net *n = calloc(1, sizeof *n);
    ASSERT(n != NULL);
    n->world = w;
    list_init(&n->ends);
    list_init(&n->listeners);
    for (unsigned i = 0; i < SIM_NET_HOSTS_MAX; i++) {
        for (unsigned k = 0; k < SIM_NET_HOSTS_MAX; k++)
            n->links[i][k] = (struct link){.min_us = DELAY_MIN_US, .max_us = DELAY_MAX_US};
    }
    return n;
}

void sim_net_free(struct sim_net *n)
{
    if (n == NULL)
        return;
    ASSERT(list_empty(&n->ends));
    ASSERT(list_empty(&n->listeners));
    free(n);
}

unsigned sim_net_join(struct sim_net *n, struct env *e, const char *host)
{
    ASSERT(n->host_count < SIM_NET_HOSTS_MAX);
    struct host *h = &n->hosts[n->host_count++];
    *h = (struct host){.ops = sim_ops, .net = n, .env = e};
    snprintf(h->name, sizeof h->name, "%s", host);
    e->net = &h->ops;
    return number_of(h);
}

void sim_net_delay(struct sim_net *n, unsigned from, unsigned to, uint64_t min_us, uint64_t max_us)
{
    ASSERT(min_us <= max_us);
    n->links[from][to].min_us = min_us;
    n->links[from][to].max_us = max_us;
}

void sim_net_slow(struct sim_net *n, unsigned from, unsigned to, uint64_t bytes_per_s)
{
    n->links[from][to].bytes_per_s = bytes_per_s;
    n->links[from][to].free_us = 0;
    if (bytes_per_s > 0)
        return;
    /* What was on its way at the old pace need not keep it. */
    LIST_FOR_EACH(it, &n->ends) {
        struct end *e = CONTAINER_OF(it, struct end, node);
        if (e->other == from && e->host == to) {
            hurry(e);
            arm(e);
        }
    }
}

void sim_net_damage(struct sim_net *n, unsigned from, unsigned to, unsigned packets_per_million)
{
    n->links[from][to].damage = packets_per_million;
}

void sim_net_freeze(struct sim_net *n, unsigned host, uint64_t until_us)
{
    n->hosts[host].frozen_until_us = until_us;
}

void sim_net_descriptors(struct sim_net *n, unsigned host, unsigned max)
{
    n->hosts[host].descriptors = max;
}

/* Paths have opened: what was held goes on. */
static void paths_opened(struct sim_net *n)
{
    LIST_FOR_EACH(it, &n->ends) {
        struct end *e = CONTAINER_OF(it, struct end, node);
        if (e->dead || e->state == END_OVER)
            continue;
        if (e->ack_missing && !n->links[e->other][e->host].blocked) {
            e->ack_missing = false;
            e->progress_us = now(n);
        }
        meet_nobody(e);
        arm(e);
    }
}

void sim_net_block(struct sim_net *n, unsigned from, unsigned to, bool blocked)
{
    n->links[from][to].blocked = blocked;
    paths_opened(n);
}

void sim_net_break(struct sim_net *n, unsigned a, unsigned b)
{
    LIST_FOR_EACH(it, &n->ends) {
        struct end *e = CONTAINER_OF(it, struct end, node), *peer = e->peer;
        if (peer == NULL || e->dead || !((e->host == a && e->other == b)))
            continue;
        uint64_t who = below(n, 4); /* 0: E alone learns of it, 1: its peer alone, else both */
        unlink_ends(e);
        n->stats.half_open += who < 2;
        if (who != 1)
            reset(e, "reset by the network");
        if (who != 0)
            reset(peer, "reset by the network");
    }
}

static void end_die(struct end *e, bool silent)
{
    struct end *peer = e->peer;
    unlink_ends(e);
    if (peer != NULL && silent)
        e->net->stats.half_open++;
    else if (peer != NULL)
        reset(peer, "reset by the other side");
    e->dead = true;
    drop_packets(e);
    sim_world_cancel(e->net->world, &e->arrive);
    sim_world_cancel(e->net->world, &e->syn);
    sim_world_cancel(e->net->world, &e->limit);
}

void sim_net_crash(struct sim_net *n, unsigned host, bool silent)
{
    n->hosts[host].down = silent;
    LIST_FOR_EACH(it, &n->ends) {
        struct end *e = CONTAINER_OF(it, struct end, node);
        if (e->host == host && !e->dead)
            end_die(e, silent);
    }
    LIST_FOR_EACH(it, &n->listeners) {
        struct env_listener *l = CONTAINER_OF(it, struct env_listener, node);
        l->dead |= l->host == host;
    }
}

void sim_net_restart(struct sim_net *n, unsigned host)
{
    n->hosts[host].down = false;
    n->hosts[host].frozen_until_us = 0;
    paths_opened(n);
}

void sim_net_stats(const struct sim_net *n, struct sim_net_stats *out)
{
    *out = n->stats;
}
