/*
 * cluster/rpc.c — requests to another node and their answers.
 *
 * The id of a request is (serial, slot): the slot finds it, the serial tells it from those that had
 * the slot before. So an answer that comes late, twice or for nothing finds nobody and is counted.
 *
 * When a connection breaks, the frame of a request decides whether it may have taken effect: one
 * that the socket has seen may have arrived, one that it has not was dropped with the queue.
 *
 * Invariants
 *   R1  A request is in its slot from cl_transport_request until its one `done`, or the cancel.
 *   R2  `done` runs after the slot was freed, from the loop, never inside cl_transport_request.
 *   R3  request_due_us is not after the deadline of any request in a slot.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/limits.h"
#include "cluster/transport_internal.h"

#define SLOT_MASK (CL_REQUESTS_MAX - 1u)
#define SERIAL_STEP CL_REQUESTS_MAX
/* Of one node, being served: more are refused without being looked at. */
#define SERVING_MAX (2u * CL_REQUESTS_MAX)

_Static_assert((CL_REQUESTS_MAX & SLOT_MASK) == 0, "a slot is the low bits of an id");

static unsigned free_slot(struct cl_peer *p)
{
    ASSERT(p->request_count < CL_REQUESTS_MAX);
    while (p->requests[p->request_at & SLOT_MASK] != NULL)
        p->request_at++;
    return p->request_at++ & SLOT_MASK;
}

static void release(struct cl_peer *p, struct cl_request *r)
{
    unsigned slot = (unsigned)(r->id & SLOT_MASK);
    ASSERT_INV("R1", p->requests[slot] == r);
    p->requests[slot] = NULL;
    p->request_count--;
}

status cl_transport_request(struct cl_transport *t, struct cl_request *r, uint64_t node,
                            uint64_t method, uint64_t patience_us, bytes payload)
{
    struct cl_peer *p = cl__peer_find(t, node);
    if (payload.size > LIMIT_PEER_PAYLOAD_BYTES)
        return ST_LIMIT;
    if (p == NULL || p->link == NULL)
        return ST_UNREACHABLE;
    if (p->request_count == CL_REQUESTS_MAX)
        return ST_BUSY;
    unsigned slot = free_slot(p);
    p->request_serial += SERIAL_STEP;
    r->id = p->request_serial | slot;
    r->node = node;
    r->deadline_us = cl__transport_now(t) + patience_us;
    struct cl_item item = {.kind = CL_ITEM_REQUEST,
                           .request = {.id = r->id, .method = method, .patience_us = patience_us},
                           .payload = payload};
    if (!cl__peer_put(p, &item, false))
        return ST_BUSY;
    r->frame = p->frame_next - 1;
    p->requests[slot] = r;
    p->request_count++;
    if (r->deadline_us < p->request_due_us)
        p->request_due_us = r->deadline_us;
    cl__transport_wake_at(t, p->request_due_us);
    return ST_OK;
}

void cl_transport_cancel(struct cl_transport *t, struct cl_request *r)
{
    struct cl_peer *p = cl__peer_find(t, r->node);
    if (p->requests[r->id & SLOT_MASK] == r)
        release(p, r);
}

static void give_up(struct cl_peer *p, struct cl_request *r, status st)
{
    release(p, r);
    r->done(r, st, BYTES_EMPTY);
}

/* Requests that a `done` makes meanwhile are refused: there is no connection. */
void cl__rpc_fail(struct cl_peer *p)
{
    ASSERT(p->link == NULL);
    for (unsigned i = 0; i < CL_REQUESTS_MAX && p->request_count > 0; i++) {
        struct cl_request *r = p->requests[i];
        if (r == NULL)
            continue;
        bool sent = r->frame < p->frame_sent && !fault_point("net.broken_unsent");
        give_up(p, r, sent ? ST_OUTCOME_UNKNOWN : ST_UNREACHABLE);
    }
    ASSERT(p->request_count == 0);
    p->request_due_us = UINT64_MAX;
}

uint64_t cl__rpc_check(struct cl_peer *p, uint64_t now_us)
{
    if (now_us < p->request_due_us)
        return p->request_due_us;
    p->request_due_us = UINT64_MAX;
    for (unsigned i = 0; i < CL_REQUESTS_MAX; i++) {
        struct cl_request *r = p->requests[i];
        if (r == NULL)
            continue;
        if (now_us >= r->deadline_us)
            give_up(p, r, ST_OUTCOME_UNKNOWN); /* also when queued: it may still go out */
        else if (r->deadline_us < p->request_due_us)
            p->request_due_us = r->deadline_us;
    }
    return p->request_due_us;
}

void cl__rpc_answer(struct cl_peer *p, const struct cl_item *item)
{
    struct cl_request *r = p->requests[item->answer.id & SLOT_MASK];
    if (r == NULL || r->id != item->answer.id) {
        p->late++;
        return;
    }
    release(p, r);
    r->done(r, item->answer.st, item->payload);
}

/* -- the other side ---------------------------------------------------------------------------- */

/* Nothing is received while too much waits for an answer. */
static void set_pause(struct cl_peer *p)
{
    bool paused = p->serving_bytes > (p->link->paused ? CL_SERVING_BYTES / 2 : CL_SERVING_BYTES);
    if (paused == p->link->paused)
        return;
    p->link->paused = paused;
    if (!paused)
        p->received_us = cl__transport_now(p->transport);
    env_stream_pause(p->link->stream, paused);
}

void cl__rpc_request(struct cl_peer *p, const struct cl_item *item)
{
    const struct cl_transport *t = p->transport;
    struct cl_incoming in = {.node = p->address->id,
                             .link = p->link->serial,
                             .id = item->request.id,
                             .size = item->payload.size};
    if (p->serving >= SERVING_MAX || t->o.events->request == NULL) {
        struct cl_item no = {
            .kind = CL_ITEM_ANSWER,
            .answer = {.id = item->request.id,
                       .st = t->o.events->request != NULL ? ST_BUSY : ST_UNSUPPORTED}};
        (void)cl__peer_put(p, &no, true);
        return;
    }
    p->serving++;
    p->serving_bytes += in.size;
    t->o.events->request(t->o.arg, &in, item->request.method, item->request.patience_us,
                         item->payload);
    if (p->link != NULL)
        set_pause(p);
}

void cl_transport_answer(struct cl_transport *t, const struct cl_incoming *in, status st,
                         bytes payload)
{
    struct cl_peer *p = cl__peer_find(t, in->node);
    struct cl_item item = {
        .kind = CL_ITEM_ANSWER, .answer = {.id = in->id, .st = st}, .payload = payload};
    if (p == NULL || p->link == NULL || p->link->serial != in->link)
        return;
    ASSERT(p->serving > 0);
    p->serving--;
    p->serving_bytes -= in->size;
    if (payload.size > LIMIT_PEER_PAYLOAD_BYTES || !cl__peer_put(p, &item, false)) {
        item.answer.st = st == ST_OK || payload.size > 0 ? ST_OUTCOME_UNKNOWN : st;
        item.payload = BYTES_EMPTY;
        (void)cl__peer_put(p, &item, true);
    }
    set_pause(p);
}
