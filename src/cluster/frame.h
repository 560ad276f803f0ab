/*
 * cluster/frame.h — what two nodes write to each other: frames, and the items inside them.
 *
 * Layout, integers little-endian:
 *
 *   0  magic "mdbp"     4     12 sum of bytes 0..11      4
 *   4  version          1     16 sum of the body         8
 *   5  type             1     24 body
 *   6  zero             2
 *   8  size of the body 4
 *
 * The header has a sum of its own, so that a damaged size never makes anyone wait for bytes that do
 * not come. Sums are seeded by connection, direction and number of the frame: a frame that is lost,
 * repeated, out of order or from another connection is as wrong as a damaged one.
 *
 * HELLO, WELCOME and REFUSAL hold one message of peer.proto (handshake.h); READY is empty; a BATCH
 * holds items, one after the other. Pure functions, no I/O.
 */
#ifndef CLUSTER_FRAME_H
#define CLUSTER_FRAME_H

#include "base/codec.h"

#define CL_FRAME_HEADER_BYTES 24u
#define CL_FRAME_VERSION 1u

enum cl_frame_type {
    CL_FRAME_HELLO = 1, /* from who connected */
    CL_FRAME_WELCOME,   /* the answer, or: */
    CL_FRAME_REFUSAL,
    CL_FRAME_READY, /* from who connected: the connection counts from here */
    CL_FRAME_BATCH
};

/* One direction of a connection. */
struct cl_frame_seal {
    uint64_t seed, number; /* of the next frame */
};
/* Before the nonces are known. */
#define CL_FRAME_SEAL_OPEN ((struct cl_frame_seal){.seed = 0x6d64627065657231u})
/* For what SENDER sends on the connection of the two nonces. */
struct cl_frame_seal cl_frame_seal(uint64_t connector_nonce, uint64_t acceptor_nonce,
                                   bool from_connector);

/* Writes the header of a frame whose body is BODY, and moves the seal on. */
void cl_frame_header(uint8_t out[CL_FRAME_HEADER_BYTES], enum cl_frame_type type, bytes body,
                     struct cl_frame_seal *seal);

struct cl_frame {
    enum cl_frame_type type;
    bytes body; /* borrowed from the input */
};
/* The frame at the start of IN, which is followed by whatever. ST_OK: *SIZE bytes were used and the
 * seal moved on. ST_PENDING: *SIZE bytes are needed to go on. ST_CORRUPT: WHY says what is wrong;
 * the connection cannot be used any more. A body above BODY_MAX is wrong. */
NODISCARD status cl_frame_read(bytes in, size_t body_max, struct cl_frame_seal *seal,
                               struct cl_frame *out, size_t *size, const char **why);

/* -- items of a batch -------------------------------------------------------------------------- */

enum cl_item_kind {
    CL_ITEM_MESSAGE = 1, /* one replica to another: opaque to the transport */
    CL_ITEM_REQUEST,
    CL_ITEM_ANSWER,
    CL_ITEM_BEACON, /* one per node pair and interval: alive, and heartbeats of all groups */
    CL_ITEM_CHUNK,  /* of a stream: a snapshot */
    CL_ITEM_CREDIT  /* its receiver takes so many bytes more */
};

#define CL_CHUNK_LAST 1u
#define CL_CHUNK_ABORT 2u
#define CL_CHUNK_OPEN 4u /* from who wants the stream: what it shall be */

struct cl_item {
    enum cl_item_kind kind;
    union {
        struct {
            uint64_t group, from, to; /* replicas */
        } message;
        struct {
            uint64_t id, method, patience_us; /* what is left of the deadline */
        } request;
        struct {
            uint64_t id;
            status st;
        } answer;
        struct {
            /* The sender's clock; the last such value that it has received, and for how long it
             * had it: what the round trip was. */
            uint64_t sent_us, echo_us, held_us;
        } beacon;
        struct {
            uint64_t stream, offset;
            uint8_t flags;
        } chunk;
        struct {
            uint64_t stream, bytes;
        } credit;
    };
    bytes payload; /* of all but CREDIT; borrowed */
};

/* An upper bound of what an item takes besides its payload. */
#define CL_ITEM_BYTES_MAX 48u
void cl_item_put(struct obuf *o, const struct cl_item *item);
/* ST_OK, ST_END, ST_CORRUPT. */
NODISCARD status cl_item_next(struct reader *r, struct cl_item *out);

#endif
