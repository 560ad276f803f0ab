/*
 * cluster/handshake.h — who is at the other end, and may it stay? The door to protobuf-c.
 *
 * Pure functions: what to say, what was said, and the verdict on it.
 */
#ifndef CLUSTER_HANDSHAKE_H
#define CLUSTER_HANDSHAKE_H

#include "base/buf.h"

#define CL_PROTOCOL_MIN 1u
#define CL_PROTOCOL_MAX 1u
#define CL_HANDSHAKE_BYTES_MAX 4096u
#define CL_HANDSHAKE_TEXT 200u

struct cl_hello {
    uint64_t cluster_id, node_id, store_id, incarnation;
    uint32_t protocol_min, protocol_max;
    uint64_t expected_node_id, expected_store_id; /* expected_store_id 0: any */
    uint64_t nonce;
    uint32_t protocol;   /* in a WELCOME */
    uint64_t replica_id; /* cl_identity_replica; 0 is sent and read as node_id */
};

/* What is known of the other side before it says anything. */
struct cl_expected {
    bool known;     /* it is in our list */
    bool first;     /* it may be of the first configuration */
    uint64_t store; /* that it must have, 0 for any */
};

enum cl_refusal_reason {
    CL_REFUSED_NOT = 0,
    CL_REFUSED_CLUSTER,
    CL_REFUSED_NODE,     /* this is not the node that was expected, or nobody knows the other */
    CL_REFUSED_STORE,    /* the node came back with another disk */
    CL_REFUSED_PROTOCOL, /* no version in common */
    CL_REFUSED_SELF,
    CL_REFUSED_CROSSED,     /* both connected at once, the other one stays: no error */
    CL_REFUSED_CERTIFICATE, /* it is that of another node */
    CL_REFUSED_REASONS
};
const char *cl_refusal_name(enum cl_refusal_reason r); /* "cluster"; never NULL */

struct cl_refusal {
    enum cl_refusal_reason reason;
    char text[CL_HANDSHAKE_TEXT];
};

/* Appended to O. */
void cl_hello_put(struct obuf *o, const struct cl_hello *h);
void cl_refusal_put(struct obuf *o, const struct cl_refusal *r);
/* ST_CORRUPT: not such a message, a field missing. A reason that a newer node knows reads as
 * CL_REFUSED_NODE. */
NODISCARD status cl_hello_get(bytes body, struct cl_hello *out);
NODISCARD status cl_refusal_get(bytes body, struct cl_refusal *out);

/* May OURS and THEIRS talk? On CL_REFUSED_NOT *PROTOCOL is the version for both. Another store than
 * the expected one may stay where it is another replica. The text names both sides. */
enum cl_refusal_reason cl_hello_judge(const struct cl_hello *ours, const struct cl_hello *theirs,
                                      const struct cl_expected *e, uint32_t *protocol,
                                      struct cl_refusal *out);

#endif
