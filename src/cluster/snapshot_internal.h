/* cluster/snapshot_internal.h — what snapshot.c, snapshot_send.c and snapshot_receive.c share. */
#ifndef CLUSTER_SNAPSHOT_INTERNAL_H
#define CLUSTER_SNAPSHOT_INTERNAL_H

#include "cluster/frame.h"
#include "cluster/host.h"
#include "cluster/snapshot.h"
#include "kv/snapshot.h"

#define CL_SNAPSHOT_SENDS_MAX 4u
#define CL_SNAPSHOT_RECEIVES_MAX 2u /* at a time; others wait */
#define CL_SNAPSHOT_PART_BYTES (256u * 1024u)
#define CL_SNAPSHOT_WINDOW_BYTES (1u << 20)
#define CL_SNAPSHOT_PARTS_MAX 64u /* that wait to be written */
#define CL_SNAPSHOT_RETRY_MIN_US 500000u
#define CL_SNAPSHOT_RETRY_MAX_US 30000000u

enum cl_send_state {
    CL_SEND_FREE,
    CL_SEND_FLUSHING, /* until the store holds the index */
    CL_SEND_OFFERED,  /* nobody reads it at present */
    CL_SEND_STREAMING,
    CL_SEND_SENT,   /* all of it; the other side installs */
    CL_SEND_CLOSING /* its job must come back first */
};

struct cl_snapshot_send {
    struct cl_snapshots *all;
    struct cl_shard *shard;
    enum cl_send_state state;
    uint64_t replica, term; /* of the leader that offered it */
    struct kv_snapshot_id id;
    struct kv_dump *dump;
    uint64_t stream, offset, credit; /* sent; may be sent: both from the stream's beginning */
    struct pool_job job;
    bool reading, ready, last; /* a part: being read; there; and the last */
    bool stale;                /* whom it is being read for is gone */
    bool rewind, from_start;   /* the next one is the first again; the one being read is */
    status result;
    struct obuf part;
    uint64_t started_us, touched_us, bytes;
};

enum cl_receive_state {
    CL_RECEIVE_FREE,
    CL_RECEIVE_WAITING,   /* for its turn, and for the shard to be quiet */
    CL_RECEIVE_PREPARING, /* its files */
    CL_RECEIVE_STREAMING,
    CL_RECEIVE_SEALED, /* all is in files */
    CL_RECEIVE_INSTALLING,
    CL_RECEIVE_TELLING, /* the log must have room for the word of it */
    CL_RECEIVE_FAILED   /* what it left is being removed */
};

enum cl_receive_op { CL_RECEIVE_NEW, CL_RECEIVE_PART, CL_RECEIVE_INSTALL, CL_RECEIVE_REMOVE };

struct cl_snapshot_receive {
    struct cl_snapshots *all;
    struct cl_shard *shard;
    enum cl_receive_state state;
    uint64_t from_node;
    struct cl_installed installed; /* the snapshot, and the note */
    uint64_t ticket;               /* of the log: what was said before it began */
    struct kv_load *load;
    uint64_t stream, offset, granted;
    struct buf *parts[CL_SNAPSHOT_PARTS_MAX]; /* a ring */
    unsigned first, count;
    struct pool_job job;
    enum cl_receive_op op;
    bool running;
    status result;
    struct obuf note;
    char dir[512];
    uint64_t started_us, touched_us, bytes;
};

struct cl_pause {
    uint64_t until_us;
    unsigned failures;
};

struct cl_snapshots {
    struct cl_node *node;
    uint64_t streams; /* ids given out */
    struct cl_snapshot_send sends[CL_SNAPSHOT_SENDS_MAX];
    struct cl_snapshot_receive receives[CL_SHARDS];
    struct cl_pause send_pause[CL_SHARDS], receive_pause[CL_SHARDS];
    struct cl_snapshot_counters counters;
};

uint64_t cl__snapshot_now(const struct cl_snapshots *x);
void cl__pause_failed(struct cl_snapshots *x, struct cl_pause *p);
bool cl__pause_over(const struct cl_snapshots *x, const struct cl_pause *p);

/* -- snapshot_send.c --------------------------------------------------------------------------- */

void cl__send_open(struct cl_snapshots *x, uint64_t node, uint64_t stream, bytes what);
struct cl_snapshot_send *cl__send_find(struct cl_snapshots *x, uint64_t node, uint64_t stream);
void cl__send_credit(struct cl_snapshot_send *t, uint64_t more);
/* Its reader is gone; it may come again. */
void cl__send_detach(struct cl_snapshot_send *t);
void cl__send_poll(struct cl_snapshot_send *t);
void cl__send_flushed(struct cl_snapshot_send *t);

/* -- snapshot_receive.c ------------------------------------------------------------------------ */

void cl__receive_chunk(struct cl_snapshot_receive *r, uint64_t offset, uint8_t flags, bytes part);
void cl__receive_fail(struct cl_snapshot_receive *r, status why);
void cl__receive_poll(struct cl_snapshot_receive *r);
/* What the receiver says when it opens a stream. */
struct cl_stream_open {
    uint64_t shard;
    struct kv_snapshot_id id;
};
void cl__stream_open_encode(const struct cl_stream_open *in, struct obuf *out);
NODISCARD status cl__stream_open_decode(bytes src, struct cl_stream_open *out);

#endif
