/*
 * cluster/handshake.c — packs, unpacks and judges the messages of peer.proto.
 *
 * protobuf-c allocates while it unpacks; the input is bounded by CL_HANDSHAKE_BYTES_MAX, and its
 * messages are freed before the functions return.
 */
#include "cluster/handshake.h"
#include "base/assert.h"
#include "cluster/peer.pb-c.h"
#include <inttypes.h>
#include <stdio.h>

const char *cl_refusal_name(enum cl_refusal_reason r)
{
    static const char *const names[CL_REFUSED_REASONS] = {
        [CL_REFUSED_NOT] = "none",          [CL_REFUSED_CLUSTER] = "cluster",
        [CL_REFUSED_NODE] = "node",         [CL_REFUSED_STORE] = "store",
        [CL_REFUSED_PROTOCOL] = "protocol", [CL_REFUSED_SELF] = "self",
        [CL_REFUSED_CROSSED] = "crossed",   [CL_REFUSED_CERTIFICATE] = "certificate"};
    return r < CL_REFUSED_REASONS ? names[r] : "unknown";
}

void cl_hello_put(struct obuf *o, const struct cl_hello *h)
{
    Cl__Hello m = CL__HELLO__INIT;
    m.has_cluster_id = m.has_node_id = m.has_store_id = m.has_incarnation = true;
    m.has_protocol_min = m.has_protocol_max = m.has_nonce = m.has_protocol = true;
    m.has_expected_node_id = m.has_expected_store_id = true;
    m.cluster_id = h->cluster_id;
    m.node_id = h->node_id;
    m.store_id = h->store_id;
    m.incarnation = h->incarnation;
    m.protocol_min = h->protocol_min;
    m.protocol_max = h->protocol_max;
    m.expected_node_id = h->expected_node_id;
    m.expected_store_id = h->expected_store_id;
    m.nonce = h->nonce;
    m.protocol = h->protocol;
    m.has_replica_id = true;
    m.replica_id = h->replica_id != 0 ? h->replica_id : h->node_id;
    m.software = (char *)(uintptr_t)METADB_VERSION;
    size_t size = cl__hello__get_packed_size(&m);
    o->size += cl__hello__pack(&m, obuf_reserve(o, size));
}

void cl_refusal_put(struct obuf *o, const struct cl_refusal *r)
{
    Cl__Refusal m = CL__REFUSAL__INIT;
    m.has_reason = true;
    m.reason = r->reason;
    m.text = (char *)(uintptr_t)r->text;
    size_t size = cl__refusal__get_packed_size(&m);
    o->size += cl__refusal__pack(&m, obuf_reserve(o, size));
}

status cl_hello_get(bytes body, struct cl_hello *out)
{
    if (body.size > CL_HANDSHAKE_BYTES_MAX)
        return ST_CORRUPT;
    Cl__Hello *m = cl__hello__unpack(NULL, body.size, body.data);
    if (m == NULL)
        return ST_CORRUPT;
    *out = (struct cl_hello){.cluster_id = m->cluster_id,
                             .node_id = m->node_id,
                             .store_id = m->store_id,
                             .incarnation = m->incarnation,
                             .protocol_min = m->protocol_min,
                             .protocol_max = m->protocol_max,
                             .expected_node_id = m->expected_node_id,
                             .expected_store_id = m->expected_store_id,
                             .nonce = m->nonce,
                             .protocol = m->protocol,
                             .replica_id = m->replica_id != 0 ? m->replica_id : m->node_id};
    bool whole = m->has_cluster_id && m->has_node_id && m->has_store_id && m->has_incarnation &&
                 m->has_protocol_min && m->has_protocol_max && m->has_expected_node_id &&
                 m->has_nonce && (uint32_t)out->replica_id == out->node_id;
    cl__hello__free_unpacked(m, NULL);
    return whole ? ST_OK : ST_CORRUPT;
}

status cl_refusal_get(bytes body, struct cl_refusal *out)
{
    if (body.size > CL_HANDSHAKE_BYTES_MAX)
        return ST_CORRUPT;
    Cl__Refusal *m = cl__refusal__unpack(NULL, body.size, body.data);
    if (m == NULL)
        return ST_CORRUPT;
    bool known = m->reason > CL_REFUSED_NOT && m->reason < CL_REFUSED_REASONS;
    out->reason = known ? (enum cl_refusal_reason)m->reason : CL_REFUSED_NODE;
    snprintf(out->text, sizeof out->text, "%s", m->text != NULL ? m->text : "");
    cl__refusal__free_unpacked(m, NULL);
    return ST_OK;
}

/* The first rule that is broken says what an operator must mend. */
enum cl_refusal_reason cl_hello_judge(const struct cl_hello *ours, const struct cl_hello *theirs,
                                      const struct cl_expected *e, uint32_t *protocol,
                                      struct cl_refusal *out)
{
    bool joined = theirs->replica_id != 0 && theirs->replica_id != theirs->node_id;
    bool we_joined = ours->replica_id != 0 && ours->replica_id != ours->node_id;
    uint32_t low =
        ours->protocol_min > theirs->protocol_min ? ours->protocol_min : theirs->protocol_min;
    uint32_t high =
        ours->protocol_max < theirs->protocol_max ? ours->protocol_max : theirs->protocol_max;
    *out = (struct cl_refusal){.reason = CL_REFUSED_NOT};
    *protocol = high;
#define REFUSE(r, ...)                                                                             \
    do {                                                                                           \
        out->reason = (r);                                                                         \
        snprintf(out->text, sizeof out->text, __VA_ARGS__);                                        \
        return out->reason;                                                                        \
    } while (0)
    if (theirs->cluster_id != ours->cluster_id)
        REFUSE(CL_REFUSED_CLUSTER,
               "node %" PRIu64 " is of cluster %016" PRIx64 ", node %" PRIu64
               " of cluster %016" PRIx64,
               ours->node_id, ours->cluster_id, theirs->node_id, theirs->cluster_id);
    if (theirs->incarnation == ours->incarnation)
        REFUSE(CL_REFUSED_SELF, "node %" PRIu64 " has connected to itself", ours->node_id);
    if (theirs->node_id == ours->node_id)
        REFUSE(CL_REFUSED_NODE, "two processes say that they are node %" PRIu64, ours->node_id);
    if (theirs->expected_node_id != ours->node_id)
        REFUSE(CL_REFUSED_NODE,
               "this is node %" PRIu64 ", but node %" PRIu64 " expected node %" PRIu64 " here",
               ours->node_id, theirs->node_id, theirs->expected_node_id);
    if (!e->known)
        REFUSE(CL_REFUSED_NODE, "node %" PRIu64 " is not in the list of node %" PRIu64,
               theirs->node_id, ours->node_id);
    if (!e->first && !joined)
        REFUSE(CL_REFUSED_NODE,
               "node %" PRIu64 " was not there when the cluster of node %" PRIu64
               " was made: start it with a new directory and cluster.join",
               theirs->node_id, ours->node_id);
    if (theirs->expected_store_id != 0 && theirs->expected_store_id != ours->store_id && !we_joined)
        REFUSE(CL_REFUSED_STORE,
               "node %" PRIu64 " has store %016" PRIx64 ", node %" PRIu64
               " expected store %016" PRIx64,
               ours->node_id, ours->store_id, theirs->node_id, theirs->expected_store_id);
    if (e->store != 0 && theirs->store_id != e->store && !joined)
        REFUSE(CL_REFUSED_STORE,
               "node %" PRIu64 " had store %016" PRIx64 " and came back with store %016" PRIx64
               ": its disk was replaced, start it with a new directory and cluster.join",
               theirs->node_id, e->store, theirs->store_id);
    if (low > high)
        REFUSE(CL_REFUSED_PROTOCOL,
               "node %" PRIu64 " speaks versions %u to %u, node %" PRIu64 " %u to %u",
               ours->node_id, ours->protocol_min, ours->protocol_max, theirs->node_id,
               theirs->protocol_min, theirs->protocol_max);
#undef REFUSE
    return CL_REFUSED_NOT;
}
