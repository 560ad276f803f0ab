/*
 * cluster/service.c — commands, read points and functions for other nodes.
 *
 * A command is proposed as if a client of this node had sent it; its answer goes back when it is
 * applied. Once a command of a sender's epoch was refused, or came back from a shard that is not
 * led here any more, the later ones of that epoch are refused too: they are on their way already
 * and would overtake it (forward.c).
 *
 * Invariants
 *   V1  Every request is answered once, except when the transport is gone before.
 *   V2  Nothing is answered here that this node does not lead: with a lease, or a read point by a
 *       round among the others.
 *
 * Threads: the reactor.
 */
#include "cluster/service.h"
#include "base/assert.h"
#include "base/codec.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/client_internal.h"
#include "cluster/host.h"
#include "cluster/request.h"
#include "cluster/views.h"
#include "kv/answer.h"
#include <stdlib.h>

#define FUNCTION_ROWS_BYTES_MAX (8u << 20)
#define OUT_KEPT_BYTES (64u << 10)

struct refused {
    uint64_t incarnation, epoch; /* of the newest epoch that a command was refused of */
};

struct cl_service {
    struct cl_node *node;
    struct obuf out;
    struct refused refused[CL_NODES_MAX][CL_SHARDS];
    struct list called; /* functions that run for other nodes */
};

static void answer(struct cl_service *v, const struct cl_incoming *in, status st, bytes payload)
{
    if (v->node->transport != NULL)
        cl_transport_answer(v->node->transport, in, st, payload);
}

/* -- commands ---------------------------------------------------------------------------------- */

struct served {
    struct cl_proposal proposal;
    struct cl_service *service;
    struct cl_shard *shard;
    struct cl_incoming in;
    uint64_t incarnation, epoch;
};

/* NULL: a node that is not listed. */
static struct refused *refused_of(struct cl_service *v, uint64_t node, const struct cl_shard *s)
{
    const struct cl_topology *t = &v->node->topology;
    for (unsigned i = 0; i < t->count; i++) {
        if (t->nodes[i].id == node)
            return &v->refused[i][s->position];
    }
    return NULL;
}

static void note_refused(struct cl_service *v, uint64_t node, const struct cl_shard *s,
                         uint64_t incarnation, uint64_t epoch)
{
    struct refused *r = refused_of(v, node, s);
    if (r == NULL || (r->incarnation == incarnation && r->epoch >= epoch))
        return;
    *r = (struct refused){incarnation, epoch};
}

static void answer_applied(struct cl_service *v, const struct cl_incoming *in,
                           const struct cl_shard *s, bool applied, const struct kv_applied *a)
{
    obuf_reset(&v->out);
    cl_proposed_encode(applied, kv_state_applied_ts(s->state), a, &v->out);
    answer(v, in, ST_OK, bytes_make(v->out.data, v->out.size));
    obuf_reset(&v->out);
    obuf_shrink(&v->out, OUT_KEPT_BYTES);
}

static void served_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct served *w = CONTAINER_OF(p, struct served, proposal);
    struct cl_service *v = w->service;
    if (st == ST_OK && fault_point("forward.answer")) {
        /* Applied, and nobody hears of it. */
        answer(v, &w->in, ST_OUTCOME_UNKNOWN, BYTES_EMPTY);
    } else if (st == ST_OK) {
        answer_applied(v, &w->in, w->shard, true, a);
    } else {
        note_refused(v, w->in.node, w->shard, w->incarnation, w->epoch);
        answer(v, &w->in, st, BYTES_EMPTY);
    }
    free(w);
}

/* Why the command is not taken; A says it if it is not a matter of who leads. */
static status may_take(struct cl_service *v, struct cl_shard *s, const struct cl_incoming *in,
                       const struct cl_propose *p, struct kv_applied *a)
{
    const struct refused *r = refused_of(v, in->node, s);
    if (r == NULL || !cl_shard_here(s) ||
        (r->incarnation == p->incarnation && r->epoch >= p->epoch))
        return ST_NOT_LEADER;
    *a = (struct kv_applied){.result = {.scalar = KV_NULL}};
    return a->outcome = cl_shard_admit(s, &a->err);
}

static void propose(struct cl_service *v, const struct cl_incoming *in, bytes payload)
{
    struct cl_propose p;
    struct kv_applied why;
    status st = cl_propose_decode(payload, &p);
    if (st != ST_OK) {
        LOG_WARN("forward.bad_request", LOG_U64("node", in->node));
        answer(v, in, ST_PROTOCOL, BYTES_EMPTY);
        return;
    }
    struct cl_shard *s = v->node->shards[p.shard - 1];
    st = may_take(v, s, in, &p, &why);
    if (st == ST_NOT_LEADER || st == ST_SHUTDOWN) {
        note_refused(v, in->node, s, p.incarnation, p.epoch);
        answer(v, in, st, BYTES_EMPTY);
        return;
    }
    if (st != ST_OK) {
        answer_applied(v, in, s, false, &why);
        return;
    }
    struct served *w = calloc(1, sizeof *w);
    ASSERT(w != NULL);
    *w = (struct served){.proposal = {.command = buf_copy(p.command), .done = served_done},
                         .service = v,
                         .shard = s,
                         .in = *in,
                         .incarnation = p.incarnation,
                         .epoch = p.epoch};
    cl_shard_propose(s, &w->proposal);
}

/* -- read points ------------------------------------------------------------------------------- */

static void answer_points(struct cl_service *v, const struct cl_incoming *in, cl_shard_set shards,
                          const struct cl_read_point points[CL_SHARDS])
{
    obuf_reset(&v->out);
    cl_read_points_encode(shards, points, &v->out);
    answer(v, in, ST_OK, bytes_make(v->out.data, v->out.size));
}

/* A question for read points that a round has to confirm. */
struct pointed {
    struct cl_ask ask;
    struct cl_service *service;
    struct cl_incoming in;
};

static void pointed_done(struct cl_ask *a, status st)
{
    struct pointed *w = CONTAINER_OF(a, struct pointed, ask);
    if (st == ST_OK)
        answer_points(w->service, &w->in, a->wanted, a->points);
    else
        answer(w->service, &w->in, st, BYTES_EMPTY);
    free(w);
}

static void ask_others(struct cl_service *v, const struct cl_incoming *in, cl_shard_set shards)
{
    struct pointed *w = calloc(1, sizeof *w);
    ASSERT(w != NULL);
    *w = (struct pointed){.ask = {.done = pointed_done}, .service = v, .in = *in};
    cl_ask_points(v->node->forward, &w->ask, shards);
}

static void snapshot(struct cl_service *v, const struct cl_incoming *in, bytes payload)
{
    struct cl_read_point points[CL_SHARDS];
    cl_shard_set shards;
    status st = cl_snapshot_ask_decode(payload, &shards);
    if (st != ST_OK) {
        LOG_WARN("forward.bad_request", LOG_U64("node", in->node));
        answer(v, in, ST_PROTOCOL, BYTES_EMPTY);
        return;
    }
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = v->node->shards[i];
        if ((shards >> i & 1) == 0)
            continue;
        if (!cl_shard_here(s)) { /* V2 */
            if (cl_host_may_ask(v->node->host, s))
                ask_others(v, in, shards);
            else
                answer(v, in, ST_NOT_LEADER, BYTES_EMPTY);
            return;
        }
        points[i] = cl_shard_read_point(s);
    }
    answer_points(v, in, shards, points);
}

/* -- functions --------------------------------------------------------------------------------- */

struct called {
    struct list node; /* in service->called */
    struct cl_call call;
    struct cl_service *service;
    struct cl_client *client;
    const struct cl_function *function;
    struct cl_incoming in;
    struct arena arena;
    struct obuf rows;
    struct buf *payload; /* the arguments lie in it */
};

static void called_row(void *arg, const struct kv_datum *values)
{
    struct called *w = arg;
    if (w->rows.size <= FUNCTION_ROWS_BYTES_MAX)
        cl_function_row_encode(w->function, values, &w->rows);
}

static void called_end(struct called *w, status st)
{
    struct cl_service *v = w->service;
    struct kv_applied a = {.result = {.scalar = KV_NULL}, .outcome = st};
    struct obuf outcome;
    if (st == ST_OK && w->rows.size > FUNCTION_ROWS_BYTES_MAX)
        a.outcome = err_set(&a.err, ST_LIMIT, "the function gives too many rows");
    else if (st != ST_OK)
        a.err = w->call.err;
    err_default(&a.err, a.outcome);
    obuf_init(&outcome);
    kv_answer_encode(&a, &outcome);
    obuf_reset(&v->out);
    put_bytes(&v->out, bytes_make(outcome.data, outcome.size));
    if (a.outcome == ST_OK)
        obuf_put(&v->out, w->rows.data, w->rows.size);
    if (st == ST_NOT_LEADER || st == ST_SHUTDOWN)
        answer(v, &w->in, st, BYTES_EMPTY);
    else
        answer(v, &w->in, ST_OK, bytes_make(v->out.data, v->out.size));
    obuf_reset(&v->out);
    obuf_shrink(&v->out, OUT_KEPT_BYTES);
    obuf_fini(&outcome);
    list_remove(&w->node);
    cl_client_free(w->client);
    obuf_fini(&w->rows);
    arena_fini(&w->arena);
    buf_unref(w->payload);
    free(w);
}

static void called_done(struct cl_call *call, status st)
{
    called_end(CONTAINER_OF(call, struct called, call), st);
}

static void function(struct cl_service *v, const struct cl_incoming *in, bytes payload)
{
    struct kv_datum args[CL_FUNCTION_ARGS_MAX];
    struct cl_node *n = v->node;
    const struct cl_function *f;
    struct buf *copy = buf_copy(payload);
    status st = cl_function_ask_decode(buf_bytes(copy), &f, args);
    if (st != ST_OK || n->phase != CL_NODE_SERVING) {
        buf_unref(copy);
        answer(v, in,
               st == ST_CORRUPT ? ST_PROTOCOL
               : st != ST_OK    ? st
                                : ST_NOT_LEADER,
               BYTES_EMPTY);
        return;
    }
    struct called *w = calloc(1, sizeof *w);
    ASSERT(w != NULL);
    w->service = v;
    w->function = f;
    w->in = *in;
    w->payload = copy;
    w->client = cl_client_new(n, &n->reactors[0], 0);
    arena_init(&w->arena, 1024);
    obuf_init(&w->rows);
    list_push_back(&v->called, &w->node);
    w->call = (struct cl_call){.done = called_done, .arg = w, .arena = &w->arena};
    st = f->call(w->client, &w->call, args, called_row, w);
    if (st != ST_PENDING)
        called_end(w, st);
}

/* The function ends as if its own session had cancelled it; the answer is for nobody. */
static void cancel(struct cl_service *v, const struct cl_incoming *in, bytes payload)
{
    struct reader r = reader_make(payload);
    uint64_t id = get_varint(&r);
    if (r.bad || r.next != r.end) {
        LOG_WARN("forward.bad_request", LOG_U64("node", in->node));
        answer(v, in, ST_PROTOCOL, BYTES_EMPTY);
        return;
    }
    LIST_FOR_EACH(it, &v->called) {
        struct called *w = CONTAINER_OF(it, struct called, node);
        if (w->in.node == in->node && w->in.link == in->link && w->in.id == id) {
            cl_cancel(w->client);
            break;
        }
    }
    answer(v, in, ST_OK, BYTES_EMPTY);
}

/* -- the door ---------------------------------------------------------------------------------- */

void cl_service_request(struct cl_service *v, const struct cl_incoming *in, uint64_t method,
                        bytes payload)
{
    switch (method) {
    case CL_METHOD_PROPOSE: propose(v, in, payload); break;
    case CL_METHOD_SNAPSHOT: snapshot(v, in, payload); break;
    case CL_METHOD_CALL: function(v, in, payload); break;
    case CL_METHOD_CANCEL: cancel(v, in, payload); break;
    default: answer(v, in, ST_UNSUPPORTED, BYTES_EMPTY); break;
    }
}

struct cl_service *cl_service_new(struct cl_node *n)
{
    struct cl_service *v = calloc(1, sizeof *v);
    ASSERT(v != NULL);
    v->node = n;
    obuf_init(&v->out);
    list_init(&v->called);
    return v;
}

void cl_service_free(struct cl_service *v)
{
    if (v == NULL)
        return;
    obuf_fini(&v->out);
    free(v);
}
