/*
 * cluster/views_peers.c — metadb.peers: the connections to the other nodes.
 */
#include "base/assert.h"
#include "cluster/transport.h"
#include "cluster/views_internal.h"
#include <inttypes.h>
#include <stdio.h>

const struct cl_view_column cl__peers_columns[] = {
    {"node", KV_INT8},           {"address", KV_TEXT},    {"state", KV_TEXT},
    {"since", KV_TIMESTAMPTZ},   {"store", KV_TEXT},      {"rtt", KV_INTERVAL},
    {"sent_frames", KV_INT8},    {"sent_bytes", KV_INT8}, {"received_frames", KV_INT8},
    {"received_bytes", KV_INT8}, {"queue", KV_INT8},      {"requests", KV_INT8},
    {"dropped", KV_INT8},        {"damaged", KV_INT8},    {"connects", KV_INT8},
    {"refusals", KV_INT8},       {"last_error", KV_TEXT}};

struct rows {
    struct cl_node *node;
    cl_emit *emit;
    void *arg;
};

static void peer_row(void *arg, const struct cl_peer_stats *s)
{
    const struct rows *r = arg;
    struct env *env = r->node->env;
    int64_t age_us = (int64_t)(env_mono_us(env) - s->since_us);
    char store[17];
    snprintf(store, sizeof store, "%016" PRIx64, s->store_id);
    struct kv_datum row[] = {cl__count(s->node),
                             cl__text(s->address),
                             cl__text(s->state),
                             kv_int(cl__timestamptz(env_unix_us(env) - age_us)),
                             s->store_id != 0 ? cl__text(store) : KV_NULL,
                             s->rtt_us != 0 ? cl__count(s->rtt_us) : KV_NULL,
                             cl__count(s->sent_frames),
                             cl__count(s->sent_bytes),
                             cl__count(s->received_frames),
                             cl__count(s->received_bytes),
                             cl__count(s->queue_bytes),
                             cl__count(s->requests),
                             cl__count(s->dropped),
                             cl__count(s->damaged),
                             cl__count(s->connects),
                             cl__count(s->refusals),
                             s->last_error[0] != '\0' ? cl__text(s->last_error) : KV_NULL};
    _Static_assert(ARRAY_LEN(row) == CL__peers_COUNT, "one value per column");
    r->emit(r->arg, row);
}

void cl__peers_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct rows r = {n, emit, arg};
    if (n->transport != NULL)
        cl_transport_each(n->transport, peer_row, &r);
}
