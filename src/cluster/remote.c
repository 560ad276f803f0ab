/*
 * cluster/remote.c — a function of schema metadb, called at the node that leads.
 *
 * The call waits in a list until there is a leader who takes it. What certainly was not begun is
 * tried again until `cluster.patience` has passed; a call that was lost on the way is
 * ST_OUTCOME_UNKNOWN: it is not repeated, for functions have no ids. One that is cancelled ends
 * here at once, and the node that runs it is told, so that it does not go on for nobody.
 *
 * Threads: the reactor.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "cluster/client_internal.h"
#include "cluster/forward_internal.h"
#include "cluster/views.h"
#include "kv/answer.h"
#include <stdlib.h>

/* A recount or a flush may take long. */
#define FUNCTION_US 120000000u

struct remote {
    struct list node; /* in forward->calls */
    struct cl_request request;
    struct cl_client *client;
    const struct cl_function *function;
    const struct cl_shard *shard;
    void (*emit)(void *arg, const struct kv_datum *values);
    void *emit_arg;
    struct buf *payload;
    uint64_t deadline_us;
    bool sent;
};

static struct remote *remote_at(struct list *node)
{
    return CONTAINER_OF(node, struct remote, node);
}

static void end(struct remote *r, status st)
{
    struct cl_client *c = r->client;
    struct err *err = &c->call->err;
    list_remove(&r->node);
    buf_unref(r->payload);
    if (st == ST_NOT_LEADER || st == ST_UNREACHABLE)
        st = cl_shard_serving(r->shard, err);
    if (st == ST_OK) /* it came to be led here too late */
        st = err_set(err, ST_NOT_LEADER, "the leader has changed");
    free(r);
    cl__client_finish(c, st);
}

static void succeed(struct remote *r, struct reader *rows)
{
    struct kv_datum values[CL_FUNCTION_COLUMNS_MAX];
    struct cl_client *c = r->client;
    while (rows->next != rows->end && !rows->bad) {
        cl_function_row_decode(rows, r->function, values);
        if (!rows->bad)
            r->emit(r->emit_arg, values);
    }
    if (rows->bad) {
        end(r, ST_INTERNAL);
        return;
    }
    list_remove(&r->node);
    buf_unref(r->payload);
    free(r);
    cl__client_finish(c, ST_OK);
}

static void request_done(struct cl_request *request, status st, bytes answer)
{
    struct remote *r = CONTAINER_OF(request, struct remote, request);
    struct cl_forward *f = r->client->node->forward;
    struct reader in = reader_make(answer);
    struct kv_applied a;
    bool again = st == ST_NOT_LEADER || st == ST_UNREACHABLE || st == ST_BUSY || st == ST_SHUTDOWN;
    r->sent = false;
    if (again && cl__forward_now(f) < r->deadline_us) {
        cl__forward_kick(f);
        return;
    }
    if (st != ST_OK) {
        end(r, st);
        return;
    }
    arena_reset(&f->arena);
    if (kv_answer_decode(get_bytes(&in), &f->arena, &a) != ST_OK) {
        end(r, ST_INTERNAL);
        return;
    }
    if (a.outcome == ST_OK) {
        succeed(r, &in);
        return;
    }
    r->client->call->err = a.err;
    end(r, a.outcome);
}

static void try(struct cl_forward *f, struct remote *r)
{
    uint64_t leader = cl__forward_leader(f, r->shard);
    if (leader == 0)
        return;
    r->request.done = request_done;
    r->sent = cl_transport_request(f->node->transport, &r->request, leader, CL_METHOD_CALL,
                                   FUNCTION_US, buf_bytes(r->payload)) == ST_OK;
}

/* -- a cancel, on its way ---------------------------------------------------------------------- */

struct recall {
    struct list node; /* in forward->recalls */
    struct cl_request request;
};

static void recall_free(struct recall *c)
{
    list_remove(&c->node);
    free(c);
}

/* Whatever comes of it: nobody waits for the function any more. */
static void recall_done(struct cl_request *request, status st, bytes answer)
{
    UNUSED(st);
    UNUSED(answer);
    recall_free(CONTAINER_OF(request, struct recall, request));
}

static void recall(struct cl_forward *f, struct remote *r)
{
    struct recall *c = calloc(1, sizeof *c);
    ASSERT(c != NULL);
    c->request.done = recall_done;
    list_push_back(&f->recalls, &c->node);
    obuf_reset(&f->encoding);
    put_varint(&f->encoding, r->request.id);
    if (cl_transport_request(f->node->transport, &c->request, r->request.node, CL_METHOD_CANCEL,
                             f->node->options.election_us,
                             bytes_make(f->encoding.data, f->encoding.size)) != ST_OK)
        recall_free(c); /* the connection is gone, or far too much waits for it */
    cl_transport_cancel(f->node->transport, &r->request);
}

static bool cancelled(const struct remote *r)
{
    return atomic_load_explicit(&r->client->cancel, memory_order_relaxed);
}

void cl__calls_turn(struct cl_forward *f)
{
    LIST_FOR_EACH_SAFE(it, after, &f->calls) {
        struct remote *r = remote_at(it);
        if (cancelled(r)) {
            if (r->sent)
                recall(f, r);
            end(r, ST_CANCELLED);
            return; /* who was called may have changed the list; the timer goes on */
        }
        if (r->sent)
            continue;
        if (cl__forward_now(f) >= r->deadline_us) {
            end(r, ST_NOT_LEADER);
            return;
        }
        try(f, r);
    }
}

void cl__calls_abandon(struct cl_forward *f, status st)
{
    while (!list_empty(&f->calls)) {
        struct remote *r = remote_at(f->calls.next);
        if (r->sent)
            cl_transport_cancel(f->node->transport, &r->request);
        end(r, st);
    }
    while (!list_empty(&f->recalls)) {
        struct recall *c = CONTAINER_OF(f->recalls.next, struct recall, node);
        cl_transport_cancel(f->node->transport, &c->request);
        recall_free(c);
    }
}

status cl_remote_call(struct cl_client *c, struct cl_call *call, const struct cl_function *f,
                      const struct cl_shard *s, const struct kv_datum *args,
                      void (*emit)(void *arg, const struct kv_datum *values), void *arg)
{
    struct cl_forward *all = c->node->forward;
    struct remote *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    ASSERT(c->call == NULL);
    atomic_store_explicit(&c->cancel, false, memory_order_relaxed);
    obuf_reset(&all->encoding);
    cl_function_ask_encode(f, args, &all->encoding);
    *r = (struct remote){.client = c,
                         .function = f,
                         .shard = s,
                         .emit = emit,
                         .emit_arg = arg,
                         .payload = buf_copy(bytes_make(all->encoding.data, all->encoding.size)),
                         .deadline_us = cl__forward_now(all) + c->node->options.patience_us};
    list_push_back(&all->calls, &r->node);
    c->call = call;
    cl__forward_kick(all);
    return ST_PENDING;
}
