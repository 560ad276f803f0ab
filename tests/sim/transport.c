/*
 * sim/transport.c — the production transport on simulated machines.
 *
 * Each node sends numbered messages and requests to every other one, while the world makes faults;
 * then everything is healed. What must hold:
 *
 *   M1  A message that arrives is byte for byte one that was sent to this node by that one.
 *   M2  Messages of one sender arrive in the order sent, each at most once, also over connections
 *       and restarts of the sender.
 *   Q1  `done` of a request runs exactly once, while its node lives.
 *   Q2  An answer is the right one; the other side saw the request exactly once.
 *   Q3  After ST_UNREACHABLE or a refusal nobody has seen or will ever see the request.
 *   B1  What is queued stays within its bound.
 *   L1  After healing every pair is connected within HEAL_US, and stays so; a message sent then
 *       arrives, a request is answered.
 */
#include "sim/transport.h"
#include "base/assert.h"
#include "base/checksum.h"
#include "base/codec.h"
#include "base/limits.h"
#include "cluster/transport_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MS 1000u
#define SECOND 1000000u
#define FAULTS_US (20 * SECOND)
#define HEAL_US (12 * SECOND)
#define CALM_US (4 * SECOND)
#define WORK_US (25 * MS)
#define REQUESTS_MAX 20000u
#define CLUSTER 7040u
#define BIG_ONE_IN 200u

struct sim;

struct node {
    struct sim *sim;
    struct machine *machine;
    struct cl_transport *transport; /* NULL: does not run */
    struct cl_topology topology;
    size_t queue_bytes;
    uint64_t delay_us;
    unsigned life; /* from 1 */
    uint64_t sent[MACHINES_MAX];
    struct {
        uint64_t life, number;
    } seen[MACHINES_MAX]; /* the last message of each sender */
    struct loop_timer *work;
    bool quiet; /* sends nothing any more */
};

/* A request, known to the whole world. */
struct record {
    struct sim *sim;
    struct cl_request request;
    unsigned from, to, life; /* of its sender */
    unsigned done, served;
    bool live; /* its `done` is due */
    status st;
};

/* A request that its server answers later. */
struct pending {
    struct sim_event event;
    struct list node;
    struct node *server;
    unsigned life;
    struct cl_incoming in;
    uint64_t number;
};

struct sim {
    struct world world;
    uint64_t seed;
    struct node nodes[MACHINES_MAX];
    struct record *records;
    uint64_t record_count;
    struct list pending;
    struct transport_report *out;
    bool failed;
};

static void fail(struct sim *s, const char *rule, const char *what, uint64_t a, uint64_t b)
{
    fprintf(stderr,
            "seed %" PRIu64 ": %s: %s (%" PRIu64 ", %" PRIu64 ") at %" PRIu64 " us\n"
            "  again: sim --seed %" PRIu64 "\n",
            s->seed, rule, what, a, b, sim_world_now_us(s->world.sim), s->seed);
    s->failed = true;
}

static uint64_t now(struct sim *s)
{
    return sim_world_now_us(s->world.sim);
}

/* The history as one number: two runs of a seed must agree in it. */
static void note(struct sim *s, uint64_t kind, uint64_t a, uint64_t b)
{
    uint64_t event[] = {kind, a, b, now(s)};
    s->out->digest = checksum64(bytes_make(event, sizeof event), s->out->digest);
}

/* -- payloads ---------------------------------------------------------------------------------- */

struct label {
    uint64_t from, to, life, number, size;
};

/* A payload that only this label has. */
static void payload_put(struct obuf *o, const struct label *l)
{
    struct sim_random r = {.state = checksum64(bytes_make(l, sizeof *l), 1)};
    obuf_put(o, l, sizeof *l);
    for (uint64_t i = 0; i < l->size; i += 8) {
        uint64_t v = sim_random_next(&r);
        obuf_put(o, &v, l->size - i < 8 ? (size_t)(l->size - i) : 8);
    }
}

static bool payload_get(bytes payload, struct label *out)
{
    if (payload.size < sizeof *out)
        return false;
    memcpy(out, payload.data, sizeof *out);
    if (out->size > LIMIT_PEER_PAYLOAD_BYTES || payload.size != sizeof *out + out->size)
        return false;
    struct obuf o;
    obuf_init(&o);
    payload_put(&o, out);
    bool same = bytes_eq(bytes_make(o.data, o.size), payload);
    obuf_fini(&o);
    return same;
}

static uint64_t some_size(struct sim *s)
{
    return world_below(&s->world, BIG_ONE_IN) == 0 ? world_below(&s->world, 400u * 1024u)
                                                   : world_below(&s->world, 400);
}

/* -- what arrives ------------------------------------------------------------------------------ */

static void on_message(void *arg, uint64_t node, uint64_t group, uint64_t from, uint64_t to,
                       bytes payload)
{
    struct node *n = arg;
    struct sim *s = n->sim;
    struct label l;
    unsigned me = n->machine->index;
    if (!payload_get(payload, &l) || l.to != me || l.from + 1 != node || from != l.from ||
        to != l.to || group != l.number % 7) {
        fail(s, "M1", "a message that nobody sent", node, payload.size);
        return;
    }
    bool later = l.life > n->seen[l.from].life ||
                 (l.life == n->seen[l.from].life && l.number > n->seen[l.from].number);
    if (!later)
        fail(s, "M2", "out of order or twice", l.number, n->seen[l.from].number);
    n->seen[l.from].life = l.life;
    n->seen[l.from].number = l.number;
    s->out->delivered++;
    note(s, 1, l.from * 16 + me, l.number);
}

static void answer(struct node *n, const struct cl_incoming *in, uint64_t number)
{
    struct obuf o;
    obuf_init(&o);
    payload_put(&o, &(struct label){.number = number, .size = number % 300});
    cl_transport_answer(n->transport, in, ST_OK, bytes_make(o.data, o.size));
    obuf_fini(&o);
}

static void pending_free(struct sim *s, struct pending *p)
{
    sim_world_cancel(s->world.sim, &p->event);
    list_remove(&p->node);
    free(p);
}

static void on_pending(struct sim_event *e)
{
    struct pending *p = CONTAINER_OF(e, struct pending, event);
    struct node *n = p->server;
    if (n->transport != NULL && n->life == p->life) {
        sim_loop_enter(n->machine->loop);
        answer(n, &p->in, p->number);
    }
    pending_free(n->sim, p);
}

static void on_request(void *arg, const struct cl_incoming *in, uint64_t method,
                       uint64_t patience_us, bytes payload)
{
    struct node *n = arg;
    struct sim *s = n->sim;
    struct label l;
    UNUSED(patience_us);
    if (!payload_get(payload, &l) || l.to != n->machine->index || l.from + 1 != in->node ||
        l.number >= s->record_count || method != l.number % 5) {
        fail(s, "M1", "a request that nobody made", in->node, payload.size);
        return;
    }
    struct record *r = &s->records[l.number];
    note(s, 2, l.to, l.number);
    if (++r->served > 1)
        fail(s, "Q2", "a request was served twice", l.number, r->served);
    if (r->done > 0 && r->st == ST_UNREACHABLE)
        fail(s, "Q3", "served although it could not be reached", l.number, 0);
    if (world_below(&s->world, 3) == 0) {
        answer(n, in, l.number);
        return;
    }
    struct pending *p = calloc(1, sizeof *p);
    ASSERT(p != NULL);
    *p = (struct pending){
        .event.fn = on_pending, .server = n, .life = n->life, .in = *in, .number = l.number};
    list_push_back(&s->pending, &p->node);
    sim_world_at(s->world.sim, &p->event, now(s) + world_below(&s->world, 300 * MS));
}

static void on_done(struct cl_request *request, status st, bytes payload)
{
    struct record *r = CONTAINER_OF(request, struct record, request);
    struct sim *s = r->sim;
    struct label l;
    uint64_t number = (uint64_t)(r - s->records);
    const struct node *n = &s->nodes[r->from];
    if (++r->done > 1 || !r->live || n->life != r->life)
        fail(s, "Q1", "done more than once, or after the end", number, r->done);
    r->live = false;
    r->st = st;
    note(s, 3, st, number);
    if (st == ST_OK && (!payload_get(payload, &l) || l.number != number || r->served != 1))
        fail(s, "Q2", "not the answer to this request", number, r->served);
    if (st == ST_UNREACHABLE && r->served > 0)
        fail(s, "Q3", "could not be reached, but served it", number, 0);
    if (st != ST_OK && st != ST_UNREACHABLE && st != ST_OUTCOME_UNKNOWN && st != ST_BUSY)
        fail(s, "Q2", "an outcome that nobody gives", number, st);
    s->out->answered += st == ST_OK;
    s->out->unknown += st == ST_OUTCOME_UNKNOWN;
    s->out->unreachable += st == ST_UNREACHABLE;
    s->out->busy += st == ST_BUSY;
}

static const struct cl_transport_events events = {.message = on_message, .request = on_request};

/* -- what is sent ------------------------------------------------------------------------------ */

static void send_message(struct node *n, unsigned to)
{
    struct sim *s = n->sim;
    struct label l = {.from = n->machine->index,
                      .to = to,
                      .life = n->life,
                      .number = ++n->sent[to],
                      .size = some_size(s)};
    struct obuf o;
    obuf_init(&o);
    payload_put(&o, &l);
    bool taken = cl_transport_message(n->transport, to + 1, l.number % 7, l.from, l.to,
                                      bytes_make(o.data, o.size));
    s->out->sent += taken;
    s->out->dropped += !taken;
    obuf_fini(&o);
}

static void send_request(struct node *n, unsigned to)
{
    struct sim *s = n->sim;
    if (s->record_count == REQUESTS_MAX)
        return;
    uint64_t number = s->record_count++;
    struct record *r = &s->records[number];
    struct label l = {.from = n->machine->index,
                      .to = to,
                      .life = n->life,
                      .number = number,
                      .size = some_size(s)};
    struct obuf o;
    obuf_init(&o);
    payload_put(&o, &l);
    *r = (struct record){.sim = s,
                         .request.done = on_done,
                         .from = n->machine->index,
                         .to = to,
                         .life = n->life,
                         .live = true};
    s->out->requests++;
    r->st =
        cl_transport_request(n->transport, &r->request, to + 1, number % 5,
                             1 * MS + world_below(&s->world, 800 * MS), bytes_make(o.data, o.size));
    obuf_fini(&o);
    if (r->st == ST_OK)
        return;
    /* Refused at once: as good as done, and never to be served (Q3). */
    r->live = false;
    r->done = 1;
    s->out->busy += r->st == ST_BUSY;
    s->out->unreachable += r->st == ST_UNREACHABLE;
    r->st = ST_UNREACHABLE;
}

static void check_bound(void *arg, const struct cl_peer_stats *p)
{
    struct node *n = arg;
    /* The queue, what may always be sent, and what a socket was given when it was nearly full. */
    uint64_t bound = n->queue_bytes + 64u * 1024u + CL_SOCKET_QUEUE_BYTES +
                     2u * CL_FRAME_TARGET_BYTES + 500u * 1024u;
    if (p->queue_bytes > bound)
        fail(n->sim, "B1", "the queue is over its bound", p->queue_bytes, bound);
}

static void on_work(void *arg)
{
    struct node *n = arg;
    struct sim *s = n->sim;
    size_t limit, held = cl_transport_memory(n->transport, &limit);
    if (held > limit)
        fail(s, "B1", "memory", held, limit);
    cl_transport_each(n->transport, check_bound, n);
    for (unsigned to = 0; to < s->world.count; to++) {
        if (to == n->machine->index || n->quiet)
            continue;
        for (uint64_t k = world_below(&s->world, 4); k > 0; k--)
            send_message(n, to);
        if (world_below(&s->world, 2) == 0)
            send_request(n, to);
    }
    loop_timer_start(n->work, WORK_US + world_below(&s->world, WORK_US));
}

/* -- nodes begin and end ----------------------------------------------------------------------- */

static void node_start(void *arg, struct machine *m)
{
    struct sim *s = arg;
    struct node *n = &s->nodes[m->index];
    struct cl_transport_options o = {.env = m->env,
                                     .loop = m->loop,
                                     .topology = &n->topology,
                                     .cluster_id = CLUSTER,
                                     .store_id = 100 + m->index,
                                     .events = &events,
                                     .arg = n};
    struct err err = {0};
    cl_transport_defaults(&o);
    o.queue_bytes = n->queue_bytes;
    o.delay_us = n->delay_us;
    n->life++;
    memset(n->sent, 0, sizeof n->sent);
    memset(n->seen, 0, sizeof n->seen);
    status st = cl_transport_new(&o, &n->transport, &err);
    ASSERT(st == ST_OK);
    n->work = loop_timer_new(m->loop, on_work, n);
    loop_timer_start(n->work, 0);
}

/* What was under way is over, and nobody is told. */
static void forget_requests(struct node *n)
{
    struct sim *s = n->sim;
    for (uint64_t i = 0; i < s->record_count; i++) {
        struct record *r = &s->records[i];
        if (r->live && r->from == n->machine->index) {
            cl_transport_cancel(n->transport, &r->request);
            r->live = false;
        }
    }
}

static void node_crash(void *arg, struct machine *m)
{
    struct sim *s = arg;
    struct node *n = &s->nodes[m->index];
    forget_requests(n);
    loop_timer_free(n->work);
    cl_transport_free(n->transport);
    n->transport = NULL;
}

static void sim_begin(struct sim *s, uint64_t seed, struct transport_report *out)
{
    *s = (struct sim){.seed = seed, .out = out};
    list_init(&s->pending);
    struct sim_random r = {.state = ~seed};
    world_init(&s->world, seed, 3 + (unsigned)sim_random_below(&r, MACHINES_MAX - 2));
    s->world.crashed = node_crash;
    s->world.started = node_start;
    s->world.arg = s;
    s->records = calloc(REQUESTS_MAX, sizeof *s->records);
    ASSERT(s->records != NULL);
    for (unsigned i = 0; i < s->world.count; i++) {
        struct node *n = &s->nodes[i];
        n->sim = s;
        n->machine = &s->world.machines[i];
        n->queue_bytes = 65536u << sim_random_below(&r, 6);
        n->delay_us = sim_random_below(&r, 4) == 0 ? sim_random_below(&r, 20 * MS) : 0;
        n->topology = (struct cl_topology){.self = i + 1, .count = s->world.count};
        for (unsigned k = 0; k < s->world.count; k++) {
            struct cl_node_address *a = &n->topology.nodes[k];
            a->id = k + 1;
            snprintf(a->peers, sizeof a->peers, "10.0.0.%u:7433", k + 1);
            snprintf(a->clients, sizeof a->clients, "10.0.0.%u:7432", k + 1);
        }
        world_start(&s->world, n->machine);
        node_start(s, n->machine);
    }
}

static void sim_end(struct sim *s)
{
    for (unsigned i = 0; i < s->world.count; i++) {
        if (s->nodes[i].transport != NULL)
            node_crash(s, s->nodes[i].machine);
    }
    while (!list_empty(&s->pending))
        pending_free(s, CONTAINER_OF(s->pending.next, struct pending, node));
    world_fini(&s->world);
    free(s->records);
}

/* -- phases ------------------------------------------------------------------------------------ */

static bool all_connected(struct sim *s)
{
    for (unsigned a = 0; a < s->world.count; a++) {
        for (unsigned b = 0; b < s->world.count; b++) {
            if (a != b && !cl_transport_up(s->nodes[a].transport, b + 1))
                return false;
        }
    }
    return true;
}

static void run_for(struct sim *s, uint64_t us)
{
    uint64_t until_us = now(s) + us;
    while (!s->failed && sim_world_step(s->world.sim, until_us))
        ;
}

static uint64_t connects(struct sim *s);

/* Until every pair is connected; how long that took. */
static void find_together(struct sim *s)
{
    uint64_t start_us = now(s), until_us = start_us + HEAL_US;
    while (!s->failed && !all_connected(s)) {
        if (!sim_world_step(s->world.sim, until_us))
            fail(s, "L1", "not all pairs are connected", now(s) - start_us, 0);
    }
    uint64_t took_us = now(s) - start_us;
    s->out->heal_us += took_us;
    if (took_us > s->out->heal_worst_us)
        s->out->heal_worst_us = took_us;
}

/* Everything works: no connection ends, and everything that is sent arrives. */
static void check_calm(struct sim *s)
{
    struct node *n;
    /* Connections of which only one side knows may be replaced once more. */
    run_for(s, 3 * SECOND);
    find_together(s);
    uint64_t before = connects(s);
    run_for(s, CALM_US);
    for (unsigned i = 0; i < s->world.count; i++)
        s->nodes[i].quiet = true;
    run_for(s, 2 * SECOND);
    if (s->failed)
        return;
    if (connects(s) != before)
        fail(s, "L1", "connections come and go without a reason", before, connects(s));
    for (unsigned a = 0; a < s->world.count; a++) {
        n = &s->nodes[a];
        for (unsigned b = 0; b < s->world.count; b++) {
            if (a == b)
                continue;
            sim_loop_enter(n->machine->loop);
            send_message(n, b);
            send_request(n, b);
        }
    }
    uint64_t first = s->record_count - (uint64_t)s->world.count * (s->world.count - 1);
    run_for(s, 3 * SECOND);
    for (unsigned a = 0; a < s->world.count && !s->failed; a++) {
        n = &s->nodes[a];
        for (unsigned b = 0; b < s->world.count; b++) {
            if (a != b && s->nodes[b].seen[a].number != n->sent[b])
                fail(s, "L1", "a message did not arrive", n->sent[b], s->nodes[b].seen[a].number);
        }
    }
    for (uint64_t i = first; i < s->record_count && !s->failed; i++) {
        if (s->records[i].done != 1)
            fail(s, "L1", "a request has no outcome", i, 0);
    }
}

static void sum_connects(void *arg, const struct cl_peer_stats *p)
{
    *(uint64_t *)arg += p->connects;
}

static uint64_t connects(struct sim *s)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < s->world.count; i++)
        cl_transport_each(s->nodes[i].transport, sum_connects, &sum);
    return sum;
}

static void collect(struct sim *s)
{
    struct sim_net_stats net;
    sim_net_stats(s->world.net, &net);
    for (unsigned i = 0; i < FAULT_KINDS; i++)
        s->out->faults[i] += s->world.faults[i];
    s->out->connects += net.connects;
    s->out->half_open += net.half_open;
    s->out->damaged += net.damaged;
    s->out->timeouts += net.timeouts;
    s->out->virtual_us += now(s);
}

bool transport_run(uint64_t seed, struct transport_report *out)
{
    struct sim s;
    sim_begin(&s, seed, out);
    world_begin_faults(&s.world);
    run_for(&s, FAULTS_US);
    world_heal(&s.world);
    if (!s.failed)
        find_together(&s);
    if (!s.failed)
        check_calm(&s);
    collect(&s);
    sim_end(&s);
    return !s.failed;
}
