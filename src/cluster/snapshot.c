/*
 * cluster/snapshot.c — all transfers of a node: who a chunk is for, time, notes, numbers.
 *
 * A stream's id is chosen by its receiver, random over processes, so that a chunk of an earlier
 * connection finds nobody.
 *
 * Threads: the owner reactor.
 */
#include "base/assert.h"
#include "base/log.h"
#include "cluster/snapshot_internal.h"
#include <stdio.h>
#include <stdlib.h>

#define NOTE_VERSION 1u

uint64_t cl__snapshot_now(const struct cl_snapshots *x)
{
    return env_mono_us(x->node->env);
}

void cl__pause_failed(struct cl_snapshots *x, struct cl_pause *p)
{
    uint64_t us = CL_SNAPSHOT_RETRY_MIN_US;
    for (unsigned i = 0; i < p->failures && us < CL_SNAPSHOT_RETRY_MAX_US; i++)
        us *= 2;
    p->failures++;
    p->until_us =
        cl__snapshot_now(x) + (us < CL_SNAPSHOT_RETRY_MAX_US ? us : CL_SNAPSHOT_RETRY_MAX_US);
}

bool cl__pause_over(const struct cl_snapshots *x, const struct cl_pause *p)
{
    return p->failures == 0 || cl__snapshot_now(x) >= p->until_us;
}

/* -- what comes -------------------------------------------------------------------------------- */

static struct cl_snapshot_receive *receive_find(struct cl_snapshots *x, uint64_t node,
                                                uint64_t stream)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_snapshot_receive *r = &x->receives[i];
        if (r->state == CL_RECEIVE_STREAMING && r->from_node == node && r->stream == stream)
            return r;
    }
    return NULL;
}

void cl_snapshots_chunk(void *arg, uint64_t node, uint64_t stream, uint64_t offset, uint8_t flags,
                        bytes payload)
{
    struct cl_node *n = arg;
    struct cl_snapshots *x = n->snapshots;
    if (x == NULL)
        return;
    if (flags & CL_CHUNK_OPEN) {
        cl__send_open(x, node, stream, payload);
        return;
    }
    struct cl_snapshot_receive *r = receive_find(x, node, stream);
    struct cl_snapshot_send *t = cl__send_find(x, node, stream);
    if (r != NULL)
        cl__receive_chunk(r, offset, flags, payload);
    else if (t != NULL && (flags & CL_CHUNK_ABORT))
        cl__send_detach(t);
}

void cl_snapshots_credit(void *arg, uint64_t node, uint64_t stream, uint64_t more)
{
    struct cl_node *n = arg;
    if (n->snapshots == NULL)
        return;
    struct cl_snapshot_send *t = cl__send_find(n->snapshots, node, stream);
    if (t != NULL)
        cl__send_credit(t, more);
    else
        (void)cl_transport_chunk(n->transport, node, stream, 0, CL_CHUNK_ABORT, BYTES_EMPTY);
}

void cl_snapshots_changed(struct cl_snapshots *x, uint64_t node, bool up)
{
    if (x == NULL || up)
        return;
    for (unsigned i = 0; i < CL_SNAPSHOT_SENDS_MAX; i++) {
        if (x->sends[i].state != CL_SEND_FREE && cl_replica_node(x->sends[i].replica) == node)
            cl__send_detach(&x->sends[i]);
    }
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (x->receives[i].state == CL_RECEIVE_STREAMING && x->receives[i].from_node == node)
            cl__receive_fail(&x->receives[i], ST_UNREACHABLE);
    }
}

void cl_snapshots_flushed(struct cl_snapshots *x, struct cl_shard *s)
{
    for (unsigned i = 0; x != NULL && i < CL_SNAPSHOT_SENDS_MAX; i++) {
        if (x->sends[i].state == CL_SEND_FLUSHING && x->sends[i].shard == s)
            cl__send_flushed(&x->sends[i]);
    }
}

void cl_snapshots_poll(struct cl_snapshots *x)
{
    for (unsigned i = 0; x != NULL && i < CL_SNAPSHOT_SENDS_MAX; i++)
        cl__send_poll(&x->sends[i]);
    for (unsigned i = 0; x != NULL && i < CL_SHARDS; i++)
        cl__receive_poll(&x->receives[i]);
}

/* -- notes and messages ------------------------------------------------------------------------ */

void cl_installed_encode(const struct cl_installed *in, struct obuf *out)
{
    put_u8(out, NOTE_VERSION);
    put_u64(out, in->hard_term);
    put_u64(out, in->snapshot.term);
    raft_members_put(out, &in->snapshot.members);
}

status cl_installed_decode(bytes note, struct cl_installed *out)
{
    struct reader r = reader_make(note);
    if (get_u8(&r) != NOTE_VERSION)
        return ST_CORRUPT;
    out->hard_term = get_u64(&r);
    out->snapshot.term = get_u64(&r);
    raft_members_get(&r, &out->snapshot.members);
    return codec_finish(&r);
}

bool cl_installed_find(const struct cl_shard *s, struct cl_installed *out)
{
    const struct kv_shard_record *record = kv_state_record(s->state);
    struct arena a;
    bytes note;
    arena_init(&a, 512);
    status st = kv_state_note(s->node->store, s->id, &a, &out->snapshot.index, &note);
    if (st == ST_OK)
        st = cl_installed_decode(note, out);
    arena_fini(&a);
    return st == ST_OK && out->snapshot.index == record->applied_index &&
           out->snapshot.term == record->applied_term;
}

void cl__stream_open_encode(const struct cl_stream_open *in, struct obuf *out)
{
    put_varint(out, in->shard);
    put_varint(out, in->id.index);
    put_varint(out, in->id.term);
}

status cl__stream_open_decode(bytes src, struct cl_stream_open *out)
{
    struct reader r = reader_make(src);
    out->shard = get_varint(&r);
    out->id.index = get_varint(&r);
    out->id.term = get_varint(&r);
    return codec_finish(&r);
}

/* -- for operators ----------------------------------------------------------------------------- */

void cl_snapshots_each(const struct cl_snapshots *x,
                       void (*fn)(void *arg, const struct cl_snapshot_transfer *t), void *arg)
{
    static const char *const sending[] = {"free",      "flushing", "offered",
                                          "streaming", "sent",     "closing"};
    static const char *const receiving[] = {"free",   "waiting",    "preparing", "streaming",
                                            "sealed", "installing", "telling",   "failed"};
    for (unsigned i = 0; x != NULL && i < CL_SNAPSHOT_SENDS_MAX; i++) {
        const struct cl_snapshot_send *t = &x->sends[i];
        if (t->state != CL_SEND_FREE)
            fn(arg, &(struct cl_snapshot_transfer){.sends = true,
                                                   .shard = t->shard->id,
                                                   .node = cl_replica_node(t->replica),
                                                   .index = t->id.index,
                                                   .state = sending[t->state],
                                                   .bytes = t->bytes,
                                                   .started_us = t->started_us});
    }
    for (unsigned i = 0; x != NULL && i < CL_SHARDS; i++) {
        const struct cl_snapshot_receive *r = &x->receives[i];
        if (r->state != CL_RECEIVE_FREE)
            fn(arg, &(struct cl_snapshot_transfer){.shard = r->shard->id,
                                                   .node = r->from_node,
                                                   .index = r->installed.snapshot.index,
                                                   .state = receiving[r->state],
                                                   .bytes = r->bytes,
                                                   .started_us = r->started_us});
    }
}

struct cl_snapshot_counters cl_snapshots_counters(const struct cl_snapshots *x)
{
    return x != NULL ? x->counters : (struct cl_snapshot_counters){0};
}

/* -- the object -------------------------------------------------------------------------------- */

static void ignore_name(void *arg, const char *name)
{
    UNUSED(arg);
    UNUSED(name);
}

/* Files of transfers that a crash ended: a load of each shard empties its directory. */
static void clean(struct cl_snapshots *x)
{
    struct env *env = x->node->env;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_snapshot_receive *r = &x->receives[i];
        struct kv_store_load *left;
        int n = snprintf(r->dir, sizeof r->dir, "%s/snapshot/%u", x->node->dir, i + 1);
        ASSERT(n > 0 && n < (int)sizeof r->dir);
        if (env->ops->list(env, r->dir, ignore_name, NULL) != ST_OK)
            continue;
        LOG_INFO("snapshot.cleaned", LOG_STR("dir", r->dir));
        if (kv_store_load_new(x->node->store, r->dir, &left) == ST_OK)
            kv_store_load_free(left);
    }
}

struct cl_snapshots *cl_snapshots_new(struct cl_node *n)
{
    struct cl_snapshots *x = calloc(1, sizeof *x);
    ASSERT(x != NULL);
    x->node = n;
    x->streams = env_random64(n->env) | 1;
    for (unsigned i = 0; i < CL_SNAPSHOT_SENDS_MAX; i++) {
        x->sends[i].all = x;
        obuf_init(&x->sends[i].part);
    }
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        x->receives[i].all = x;
        obuf_init(&x->receives[i].note);
    }
    clean(x);
    return x;
}

void cl_snapshots_free(struct cl_snapshots *x)
{
    if (x == NULL)
        return;
    for (unsigned i = 0; i < CL_SNAPSHOT_SENDS_MAX; i++) {
        kv_dump_free(x->sends[i].dump);
        obuf_fini(&x->sends[i].part);
    }
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_snapshot_receive *r = &x->receives[i];
        while (r->count > 0) {
            buf_unref(r->parts[r->first]);
            r->first = (r->first + 1) % CL_SNAPSHOT_PARTS_MAX;
            r->count--;
        }
        kv_load_free(r->load);
        obuf_fini(&r->note);
    }
    free(x);
}
