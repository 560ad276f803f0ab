/*
 * cluster/ask.c — up to where must this replica have applied, before a reader may look?
 *
 * Askers that wait at the end of a turn share one request per leader: its answer was made after
 * each of them came, so it is good for all (read index, Raft thesis 6.4, with the leader's lease in
 * place of a round). Where the lease is not held (its office is on offer, members are changed) it
 * asks the others in a round that begins after the askers came. A transaction asks for all shards;
 * where they have several leaders it asks one after the other.
 *
 * Invariants
 *   Q1  A point is at least as new as what its leader had committed when the ask came.
 *   Q2  `done` runs from the end of a turn, when every wanted shard is applied up to its point, or
 *       once the points are known of one who asked for those only.
 *
 * Threads: the reactor.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/forward_internal.h"
#include "cluster/host.h"
#include <stdlib.h>
#include <string.h>

/* A request under way, and who shares it. */
struct batch {
    struct list link; /* in forward->batches */
    struct cl_request request;
    struct cl_forward *forward;
    uint64_t node;
    cl_shard_set shards;
    struct list asks;
};

static struct cl_ask *ask_at(struct list *node)
{
    return CONTAINER_OF(node, struct cl_ask, node);
}

/* It ends in the next step of the turn. */
static void end(struct cl_forward *f, struct cl_ask *a, status st)
{
    list_remove(&a->node);
    a->outcome = st;
    list_push_back(&f->ready, &a->node);
}

/* Everything is known, or more is to be asked. */
static void go_on(struct cl_forward *f, struct cl_ask *a)
{
    bool all = (a->wanted & ~a->known) == 0;
    cl__forward_kick(f);
    if (all && a->points_only) {
        end(f, a, ST_OK);
        return;
    }
    list_remove(&a->node);
    list_push_back(all ? &f->applying : &f->asks, &a->node);
}

/* -- answers ----------------------------------------------------------------------------------- */

static void take_points(struct cl_ask *a, cl_shard_set shards,
                        const struct cl_read_point points[CL_SHARDS])
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        cl_shard_set bit = 1u << i;
        if ((a->wanted & ~a->known & shards & bit) == 0)
            continue;
        a->points[i] = points[i];
        a->known |= bit;
    }
}

/* Its askers wait again. */
static void batch_end(struct batch *b)
{
    struct cl_forward *f = b->forward;
    while (!list_empty(&b->asks))
        go_on(f, ask_at(b->asks.next));
    list_remove(&b->link);
    f->asks_under_way--;
    free(b);
}

static void batch_done(struct cl_request *r, status st, bytes answer)
{
    struct batch *b = CONTAINER_OF(r, struct batch, request);
    struct cl_read_point points[CL_SHARDS];
    if (st == ST_OK) {
        st = cl_read_points_decode(answer, b->shards, points);
        if (st != ST_OK)
            LOG_ERROR("forward.bad_points", LOG_U64("node", b->node));
    }
    if (st == ST_OK) {
        LIST_FOR_EACH(it, &b->asks)
            take_points(ask_at(it), b->shards, points);
    }
    batch_end(b);
}

/* Does another node lead now what was asked of this one? It may never answer. */
static bool out_of_date(const struct cl_forward *f, const struct batch *b)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        const struct cl_shard *s = f->node->shards[i];
        if ((b->shards >> i & 1) == 0)
            continue;
        uint64_t leader = cl__forward_leader(f, s);
        if (cl_shard_here(s) || (leader != 0 && leader != b->node))
            return true;
    }
    return false;
}

static void recall(struct cl_forward *f)
{
    LIST_FOR_EACH_SAFE(it, after, &f->batches) {
        struct batch *b = CONTAINER_OF(it, struct batch, link);
        if (!out_of_date(f, b))
            continue;
        MARK("ask.recalled");
        cl_transport_cancel(f->node->transport, &b->request);
        batch_end(b);
    }
}

/* -- questions --------------------------------------------------------------------------------- */

/* Without a lease: is a round over that began after A came? Else one is BEGUN after this. */
static bool is_confirmed(struct cl_ask *a, struct cl_shard *s, cl_shard_set *begun)
{
    unsigned i = s->position;
    if (a->rounds[i].token == 0 || a->rounds[i].term != s->leading_term) {
        a->rounds[i].token = s->reads_asked + 1;
        a->rounds[i].term = s->leading_term;
        *begun |= 1u << i;
        return false;
    }
    return s->reads_confirmed >= a->rounds[i].token;
}

/* What this node leads itself needs no question of another, but perhaps a round. */
static void answer_here(struct cl_forward *f, struct cl_ask *a, cl_shard_set *begun)
{
    bool led = true;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        cl_shard_set bit = 1u << i;
        struct cl_shard *s = f->node->shards[i];
        if ((a->wanted & ~a->known & bit) == 0)
            continue;
        bool here = cl_shard_here(s), may_ask = here || cl_host_may_ask(f->node->host, s);
        led &= may_ask;
        if (!here && (!may_ask || !is_confirmed(a, s, begun)))
            continue;
        a->points[i] = cl_shard_read_point(s);
        a->known |= bit;
    }
    if (!led && a->points_only)
        end(f, a, ST_NOT_LEADER);
}

static void begin_rounds(struct cl_forward *f, cl_shard_set begun)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if ((begun >> i & 1) == 0)
            continue;
        MARK("cluster.read.round");
        f->rounds++;
        (void)cl_host_read(f->node->host, f->node->shards[i]);
    }
}

/* The leader of the first shard that A lacks, and which of those it lacks it leads. */
static uint64_t whom_to_ask(const struct cl_forward *f, const struct cl_ask *a,
                            cl_shard_set *shards)
{
    uint64_t node = 0;
    *shards = 0;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        cl_shard_set bit = 1u << i;
        if ((a->wanted & ~a->known & bit) == 0)
            continue;
        uint64_t leader = cl__forward_leader(f, f->node->shards[i]);
        if (leader == 0)
            continue;
        if (node == 0)
            node = leader;
        if (node == leader)
            *shards |= bit;
    }
    return node;
}

static struct batch *batch_for(struct cl_forward *f, struct batch **open, unsigned *count,
                               uint64_t node)
{
    for (unsigned i = 0; i < *count; i++) {
        if (open[i]->node == node)
            return open[i];
    }
    if (*count == CL_NODES_MAX || f->asks_under_way + *count >= CL_ASKS_UNDER_WAY)
        return NULL;
    struct batch *b = calloc(1, sizeof *b);
    ASSERT(b != NULL);
    b->forward = f;
    b->node = node;
    list_init(&b->asks);
    return open[(*count)++] = b;
}

static void batch_send(struct cl_forward *f, struct batch *b)
{
    obuf_reset(&f->encoding);
    cl_snapshot_ask_encode(b->shards, &f->encoding);
    b->request.done = batch_done;
    list_push_back(&f->batches, &b->link);
    f->asks_under_way++;
    if (cl_transport_request(f->node->transport, &b->request, b->node, CL_METHOD_SNAPSHOT,
                             f->node->options.election_us,
                             bytes_make(f->encoding.data, f->encoding.size)) == ST_OK)
        f->asked++;
    else
        batch_end(b); /* the timer tries again */
}

static void ask_leaders(struct cl_forward *f)
{
    struct batch *open[CL_NODES_MAX];
    cl_shard_set begun = 0;
    unsigned count = 0;
    LIST_FOR_EACH_SAFE(it, after, &f->asks) {
        struct cl_ask *a = ask_at(it);
        cl_shard_set shards;
        a->outcome = ST_PENDING;
        answer_here(f, a, &begun);
        if (a->outcome != ST_PENDING)
            continue; /* it has ended */
        if ((a->wanted & ~a->known) == 0) {
            go_on(f, a);
            continue;
        }
        uint64_t node = a->points_only ? 0 : whom_to_ask(f, a, &shards);
        struct batch *b = node != 0 ? batch_for(f, open, &count, node) : NULL;
        if (b == NULL)
            continue;
        b->shards |= shards;
        list_remove(&a->node);
        list_push_back(&b->asks, &a->node);
    }
    for (unsigned i = 0; i < count; i++)
        batch_send(f, open[i]);
    begin_rounds(f, begun);
}

/* -- waiting ----------------------------------------------------------------------------------- */

/* ST_PENDING: not yet. */
static status reached(struct cl_forward *f, const struct cl_ask *a)
{
    status st = ST_OK;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = f->node->shards[i];
        if ((a->wanted >> i & 1) == 0)
            continue;
        if (s->fenced != ST_OK)
            return s->fenced;
        if (s->applied < a->points[i].index && !s->installing && cl_shard_behind(s))
            cl_shard_apply(s);
        if (s->applied < a->points[i].index || s->installing)
            st = ST_PENDING;
    }
    return st;
}

static void expire(struct cl_forward *f, struct list *asks, uint64_t now_us)
{
    LIST_FOR_EACH_SAFE(it, after, asks) {
        if (ask_at(it)->deadline_us <= now_us)
            end(f, ask_at(it), ST_NOT_LEADER);
    }
}

static void end_all(struct cl_forward *f, struct list *asks, status st)
{
    while (!list_empty(asks))
        end(f, ask_at(asks->next), st);
}

static void say(struct cl_forward *f)
{
    while (!list_empty(&f->ready)) {
        struct cl_ask *a = ask_at(f->ready.next);
        list_remove(&a->node);
        f->ask_count--;
        a->done(a, a->outcome);
    }
}

void cl__asks_turn(struct cl_forward *f)
{
    recall(f);
    ask_leaders(f);
    LIST_FOR_EACH_SAFE(it, after, &f->applying) {
        status st = reached(f, ask_at(it));
        if (st != ST_PENDING)
            end(f, ask_at(it), st);
    }
    expire(f, &f->asks, cl__forward_now(f));
    expire(f, &f->applying, cl__forward_now(f));
    say(f);
}

static void start(struct cl_forward *f, struct cl_ask *a, cl_shard_set wanted, bool points_only)
{
    a->wanted = wanted;
    a->known = 0;
    a->points_only = points_only;
    memset(a->rounds, 0, sizeof a->rounds);
    a->deadline_us = cl__forward_now(f) + f->node->options.patience_us;
    list_push_back(&f->asks, &a->node);
    f->ask_count++;
    cl__forward_kick(f);
}

void cl_ask_start(struct cl_forward *f, struct cl_ask *a, cl_shard_set wanted)
{
    start(f, a, wanted, false);
}

void cl_ask_points(struct cl_forward *f, struct cl_ask *a, cl_shard_set wanted)
{
    start(f, a, wanted, true);
}

void cl_ask_cancel(struct cl_forward *f, struct cl_ask *a)
{
    end(f, a, ST_CANCELLED);
    cl__forward_kick(f);
}

void cl__asks_abandon(struct cl_forward *f, status st)
{
    LIST_FOR_EACH_SAFE(it, after, &f->batches) {
        struct batch *b = CONTAINER_OF(it, struct batch, link);
        cl_transport_cancel(f->node->transport, &b->request);
        batch_end(b);
    }
    end_all(f, &f->asks, st);
    end_all(f, &f->applying, st);
    say(f);
}
