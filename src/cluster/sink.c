/*
 * cluster/sink.c — the asynchronous path of quota and secondary_index.
 *
 * Applying a change of meta puts a record (all its quota and index items) into the shard's queue,
 * which is replicated state. The sink takes records in order of their stamps, makes one command per
 * destination shard of a batch, waits until each destination has applied (so: committed) it, and
 * then tells the source, which drops the records. A destination remembers the highest stamp it took
 * from a source and ignores records at or below it: after a crash everything above the acknowledged
 * stamp is sent again and nothing counts twice.
 *
 *   IDLE --records, their time has come--> SENDING --both destinations applied--> IDLE
 *   an ACK runs beside the next batch; it carries the highest stamp delivered
 *
 * Invariants
 *   K1  acked <= delivered <= sent; records are sent in order of stamps, without gaps.
 *   K2  One batch and one ACK are under way at most: a destination never sees a later record before
 *       an earlier one.
 *   K3  A batch that a destination refused is sent again as a whole, from `delivered` on.
 *
 * When a batch goes. Nobody waits for it, so it shall cost those who do wait as little as can be. A
 * log batch of its own would be one more sync, and what a client sends right behind it would be
 * stored only after it. So a batch goes with *company*: a turn in which others propose too. Then it
 * goes once BATCH_ENOUGH records are there, or they have waited LINGERS_MAX times sink.linger; and
 * alone when it is full, or when nobody has proposed anything for sink.linger. An ACK goes with the
 * next company, or alone in the same way.
 *
 * Threads: the owner reactor.
 */
#include "cluster/sink.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "kv/aux.h"
#include <stdlib.h>

#define DESTINATIONS 2u
#define RETRY_US 100000u
#define BATCH_ENOUGH 64u
#define LINGERS_MAX 10u

static const struct {
    enum cl_shard_position shard;
    unsigned bit; /* of kv_items_destinations */
} destinations[DESTINATIONS] = {{CL_QUOTA, 1}, {CL_INDEX, 2}};

struct delivery {
    struct cl_proposal proposal;
    struct cl_sink *sink;
};

struct cl_sink {
    struct cl_node *node;
    struct cl_shard *source;
    struct loop_timer *timer;
    bool timer_on;
    hlc_ts sent;      /* stamp of the newest record in the batch under way */
    hlc_ts delivered; /* everything up to here was taken by its destinations */
    unsigned open;    /* commands of the batch not yet applied */
    bool failed;      /* one of them was refused */
    struct delivery deliveries[DESTINATIONS];
    struct cl_proposal ack;
    hlc_ts acking;         /* stamp of the ACK under way, 0 = none */
    uint64_t unacked;      /* records delivered and still in the queue */
    uint64_t acking_count; /* of them, how many the ACK under way takes out */
    uint64_t oldest_us;    /* when the first record of the next batch was seen, 0 = none */
    uint64_t company_us;   /* when others last proposed something */
    uint64_t retry_us;     /* not before */
    struct kv_queue_record *records; /* of the batch being made */
    unsigned char *wanted;           /* destinations of each */
    unsigned count;
    size_t bytes;
    uint64_t batches, sent_records, sent_bytes, acks, retries;
};

static void on_timer(void *arg)
{
    struct cl_sink *k = arg;
    k->timer_on = false;
    cl__node_stir(k->node); /* the turn's hook looks again */
}

struct cl_sink *cl_sink_new(struct cl_node *n)
{
    struct cl_sink *k = calloc(1, sizeof *k);
    ASSERT(k != NULL);
    k->node = n;
    k->source = n->shards[CL_META];
    k->timer = loop_timer_new(n->reactors[0].loop, on_timer, k);
    k->records = calloc(n->options.sink_records, sizeof *k->records);
    k->wanted = calloc(n->options.sink_records, sizeof *k->wanted);
    ASSERT(k->records != NULL && k->wanted != NULL);
    k->delivered = k->sent = kv_state_record(k->source->state)->queue_acked;
    return k;
}

void cl_sink_free(struct cl_sink *k)
{
    if (k == NULL)
        return;
    loop_timer_free(k->timer);
    free(k->records);
    free(k->wanted);
    free(k);
}

static bool collect(void *arg, hlc_ts ts, bytes items)
{
    struct cl_sink *k = arg;
    ASSERT(k->count < k->node->options.sink_records);
    k->records[k->count] = (struct kv_queue_record){.ts = ts, .items = items};
    k->wanted[k->count] = (unsigned char)kv_items_destinations(items);
    k->count++;
    k->bytes += items.size;
    k->sent = ts;
    return k->count < k->node->options.sink_records && k->bytes < k->node->options.sink_bytes;
}

static void batch_finished(struct cl_sink *k)
{
    if (k->failed) {
        MARK("sink.batch_again");
        k->retries++;
        k->retry_us = loop_now_us(k->node->reactors[0].loop) + RETRY_US;
        k->sent = k->delivered;
        k->failed = false;
        return;
    }
    k->delivered = k->sent;
    k->unacked += k->count;
    cl__node_kick(k->node);
}

static void delivery_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct cl_sink *k = CONTAINER_OF(p, struct delivery, proposal)->sink;
    if (st != ST_OK || a->outcome != ST_OK)
        k->failed = true;
    ASSERT(k->open > 0);
    if (--k->open == 0)
        batch_finished(k);
}

/* The records of the batch that concern destination D, as one command; nothing if none does. */
static void deliver(struct cl_sink *k, unsigned d)
{
    struct cl_node *n = k->node;
    struct kv_queue_record *picked = calloc(k->count, sizeof *picked);
    unsigned count = 0;
    struct obuf o;
    ASSERT(picked != NULL);
    for (unsigned i = 0; i < k->count; i++) {
        if (k->wanted[i] & destinations[d].bit)
            picked[count++] = k->records[i];
    }
    if (count > 0) {
        struct cl_shard *to = n->shards[destinations[d].shard];
        obuf_init(&o);
        kv_command_items(&o, destinations[d].bit, k->source->id, picked, count, cl__node_origin(n));
        struct cl_proposal *p = &k->deliveries[d].proposal;
        k->deliveries[d].sink = k;
        p->command = buf_copy(bytes_make(o.data, o.size));
        p->system = true;
        p->done = delivery_done;
        k->sent_bytes += o.size;
        obuf_fini(&o);
        k->open++;
        cl_shard_propose(to, p);
    }
    free(picked);
}

static void send(struct cl_sink *k)
{
    k->count = 0;
    k->bytes = 0;
    kv_state_queue_each(k->source->state, k->delivered, collect, k);
    k->oldest_us = 0;
    if (k->count == 0)
        return;
    if (fault_point("sink.send")) {
        k->failed = true;
        batch_finished(k);
        return;
    }
    k->batches++;
    k->sent_records += k->count;
    k->open++; /* so that the batch cannot end before it was sent to all */
    for (unsigned d = 0; d < DESTINATIONS; d++)
        deliver(k, d);
    if (--k->open == 0)
        batch_finished(k);
}

static void ack_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct cl_sink *k = CONTAINER_OF(p, struct cl_sink, ack);
    k->acking = 0;
    if (st == ST_OK && a->outcome == ST_OK)
        k->unacked -= k->acking_count;
    else
        k->retry_us = loop_now_us(k->node->reactors[0].loop) + RETRY_US;
}

static void acknowledge(struct cl_sink *k)
{
    struct obuf o;
    if (fault_point("sink.ack"))
        return;
    obuf_init(&o);
    kv_command_ack(&o, k->delivered, cl__node_origin(k->node));
    k->acking = k->delivered;
    k->acking_count = k->unacked;
    k->acks++;
    k->ack.command = buf_copy(bytes_make(o.data, o.size));
    k->ack.system = true;
    k->ack.done = ack_done;
    obuf_fini(&o);
    cl_shard_propose(k->source, &k->ack);
}

static void wake_in(struct cl_sink *k, uint64_t us)
{
    if (k->timer_on)
        return;
    k->timer_on = true;
    loop_timer_start(k->timer, us);
}

/* The queue holds what is not acknowledged; part of it was delivered. */
static bool has_unsent(const struct cl_sink *k)
{
    return kv_state_queue_length(k->source->state) > k->unacked;
}

/* Does this turn propose commands of others? */
static bool has_company(const struct cl_node *n)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (n->shards[i]->waiting_count > 0)
            return true;
    }
    return false;
}

static bool may_send(struct cl_sink *k, uint64_t now_us, bool company, bool quiet)
{
    const struct cl_options *o = &k->node->options;
    if (k->open > 0 || !has_unsent(k))
        return false;
    if (k->oldest_us == 0)
        k->oldest_us = now_us;
    uint64_t unsent = kv_state_queue_length(k->source->state) - k->unacked;
    bool due = unsent >= BATCH_ENOUGH || now_us - k->oldest_us >= LINGERS_MAX * o->sink_linger_us;
    return unsent >= o->sink_records || quiet || (company && due);
}

static bool may_acknowledge(const struct cl_sink *k, bool company, bool quiet)
{
    return k->acking == 0 && k->delivered > kv_state_record(k->source->state)->queue_acked &&
           (company || quiet);
}

void cl_sink_poll(struct cl_sink *k)
{
    struct cl_node *n = k->node;
    if (n->phase != CL_NODE_SERVING || n->failed != ST_OK || k->source->fenced != ST_OK ||
        (n->host != NULL && !k->source->opened))
        return;
    uint64_t now_us = loop_now_us(n->reactors[0].loop), linger_us = n->options.sink_linger_us;
    bool company = has_company(n);
    if (company)
        k->company_us = now_us;
    if (now_us < k->retry_us) {
        wake_in(k, k->retry_us - now_us);
        return;
    }
    bool quiet = now_us - k->company_us >= linger_us;
    if (may_send(k, now_us, company, quiet)) {
        send(k);
        company = true;
    }
    if (may_acknowledge(k, company, quiet))
        acknowledge(k);
    if (!quiet && kv_state_queue_length(k->source->state) > 0)
        wake_in(k, linger_us - (now_us - k->company_us));
}

static bool first(void *arg, hlc_ts ts, bytes items)
{
    UNUSED(items);
    *(hlc_ts *)arg = ts;
    return false;
}

void cl_sink_stats(const struct cl_sink *k, struct cl_sink_stats *out)
{
    hlc_ts oldest = 0;
    kv_state_queue_each(k->source->state, kv_state_record(k->source->state)->queue_acked, first,
                        &oldest);
    *out = (struct cl_sink_stats){
        .pending = kv_state_queue_length(k->source->state),
        .age_us = oldest != 0 ? env_unix_us(k->node->env) - hlc_unix_us(oldest) : 0,
        .batches = k->batches,
        .records = k->sent_records,
        .items_bytes = k->sent_bytes,
        .acks = k->acks,
        .retries = k->retries,
        .sending = k->open > 0,
    };
}
