/*
 * cluster/compact.c — local compaction: a range that is dense with tombstones, on all levels.
 *
 *   IDLE --a shard has a dense range, and the pause is over--> RUNNING (pool)
 *     ^                                                           |
 *     '--pause: bytes that were read and written, by the rate-----'
 *
 * The store compacts whole files, so a range costs the files that touch it. A range is compacted
 * when it has one tombstone for every `compaction.work` bytes of them; else it is put back until it
 * has twice as many. What the store's own compactions have removed meanwhile is seen in the files'
 * counts, and is not compacted again.
 *
 * It changes nothing that anybody can read, on this node alone: replicas compact each for itself.
 *
 * Invariants
 *   C1  One at a time, on a thread of its own that gives way: neither a flush nor a read waits for
 *       it, and the store's other threads go on beside it.
 *   C2  On average no more than `compaction.rate` bytes a second, but for what was asked for.
 *
 * Threads: the reactor; `run` on the pool's thread.
 */
#include "cluster/compact.h"
#include "base/assert.h"
#include "base/log.h"

#include <stdlib.h>

#define ASKED_MAX 8u

enum outcome { OUTCOME_DONE, OUTCOME_SPARSE, OUTCOME_STALE };

struct asked {
    uint64_t number; /* 0 = free */
    struct cl_shard *shard;
    struct cl_compact_part parts[CL_COMPACT_PARTS];
    unsigned count;
    bool done;
    struct cl_compact_result result;
};

struct cl_compact {
    struct cl_node *node;
    struct pool_job job;
    bool busy, stopped;
    uint64_t next_us;
    unsigned turn; /* the shard that is looked at first */
    struct asked asked[ASKED_MAX];
    uint64_t last_number;
    /* of what is under way; the pool thread's while it runs */
    struct cl_shard *shard;
    struct asked *by_hand;       /* or NULL */
    struct kv_density_span span; /* const while it runs */
    struct obuf upper;           /* behind it; the same */
    uint64_t present;            /* of its tombstones */
    enum outcome outcome;
    struct cl_compact_result result;
    struct cl_compact_stats stats[CL_SHARDS]; /* counters alone */
};

static void parts_fini(struct cl_compact_part *parts, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        obuf_fini(&parts[i].lower);
        obuf_fini(&parts[i].upper);
    }
}

/* -- on the pool ------------------------------------------------------------------------------- */

static void compact_part(struct cl_compact *c, bytes lower, bytes upper)
{
    struct kv_store *store = c->node->store;
    struct kv_store_stats before, after;
    struct kv_store_span left;

    kv_store_stats(store, &before);
    kv_store_compact(store, lower, upper);
    kv_store_stats(store, &after);
    kv_store_span(store, lower, upper, &left);
    c->result.bytes_read += after.compaction_read - before.compaction_read;
    c->result.bytes_written += after.compaction_written - before.compaction_written;
    c->result.tombstones_after += left.tombstones;
}

/* Is the range worth it? */
static enum outcome judge(struct cl_compact *c, bytes lower, bytes upper)
{
    const struct cl_options *o = &c->node->options;
    struct kv_store_span there;

    kv_store_span(c->node->store, lower, upper, &there);
    c->present = c->span.counts.tombstones;
    if (there.tombstones < c->present)
        c->present = there.tombstones;
    if (c->present < o->compact_tombstones)
        return OUTCOME_STALE;
    if (there.bytes / o->compact_work > c->present ||
        kv_store_room(c->node->store, there.bytes) != ST_OK)
        return OUTCOME_SPARSE;
    c->result.tombstones_before = there.tombstones;
    return OUTCOME_DONE;
}

static void run_asked(struct cl_compact *c, const struct asked *a)
{
    for (unsigned i = 0; i < a->count; i++) {
        bytes lower = bytes_make(a->parts[i].lower.data, a->parts[i].lower.size);
        bytes upper = bytes_make(a->parts[i].upper.data, a->parts[i].upper.size);
        struct kv_store_span before;

        kv_store_span(c->node->store, lower, upper, &before);
        c->result.tombstones_before += before.tombstones;
        compact_part(c, lower, upper);
    }
}

static void run(struct pool_job *job)
{
    struct cl_compact *c = CONTAINER_OF(job, struct cl_compact, job);
    uint64_t started_us = env_mono_us(c->node->env);

    c->result = (struct cl_compact_result){.us = 0};
    c->outcome = OUTCOME_DONE;
    if (c->by_hand != NULL) {
        run_asked(c, c->by_hand);
    } else {
        bytes lower = bytes_make(c->span.first.data, c->span.first.size);
        bytes upper = bytes_make(c->upper.data, c->upper.size);

        c->outcome = judge(c, lower, upper);
        if (c->outcome == OUTCOME_DONE)
            compact_part(c, lower, upper);
    }
    c->result.us = env_mono_us(c->node->env) - started_us;
}

/* -- on the reactor ---------------------------------------------------------------------------- */

static uint64_t now_us(const struct cl_compact *c)
{
    return loop_now_us(c->node->reactors[0].loop);
}

static void count_done(struct cl_compact *c)
{
    const struct cl_compact_result *r = &c->result;
    struct cl_compact_stats *s = &c->stats[c->shard->position];

    s->done++;
    s->bytes_read += r->bytes_read;
    s->bytes_written += r->bytes_written;
    s->us += r->us;
    if (r->tombstones_before > r->tombstones_after)
        s->tombstones += r->tombstones_before - r->tombstones_after;
    LOG_INFO("compact.done", LOG_U64("shard", c->shard->id),
             LOG_STR("why", c->by_hand != NULL ? "asked for" : "deletions"),
             LOG_U64("tombstones", r->tombstones_before), LOG_U64("left", r->tombstones_after),
             LOG_U64("read", r->bytes_read), LOG_U64("written", r->bytes_written),
             LOG_U64("us", r->us));
}

static void asked_done(struct cl_compact *c, struct asked *a)
{
    for (unsigned i = 0; i < a->count; i++) {
        struct cl_compact_part *p = &a->parts[i];

        kv_density_forget(kv_state_density(c->shard->state),
                          bytes_make(p->lower.data, p->lower.size),
                          bytes_make(p->upper.data, p->upper.size));
    }
    parts_fini(a->parts, a->count);
    a->count = 0;
    a->result = c->result;
    a->done = true;
}

static void done(struct pool_job *job)
{
    struct cl_compact *c = CONTAINER_OF(job, struct cl_compact, job);
    struct cl_compact_stats *s = &c->stats[c->shard->position];
    uint64_t moved = c->result.bytes_read + c->result.bytes_written;

    cl__job_done(c->node);
    if (c->outcome == OUTCOME_DONE) {
        count_done(c);
        kv_density_done(kv_state_density(c->shard->state));
    } else if (c->outcome == OUTCOME_STALE) {
        s->stale++;
        kv_density_done(kv_state_density(c->shard->state));
    } else {
        s->sparse++;
        c->span.counts.tombstones = c->present;
        kv_density_put_back(kv_state_density(c->shard->state), &c->span);
    }
    if (c->by_hand != NULL)
        asked_done(c, c->by_hand);
    else /* C2 */
        c->next_us = now_us(c) + moved * 1000 / (c->node->options.compact_rate / 1000);
    c->by_hand = NULL;
    c->shard = NULL;
    c->busy = false;
    cl_compact_poll(c);
}

struct cl_compact *cl_compact_new(struct cl_node *n)
{
    struct cl_compact *c = calloc(1, sizeof *c);

    ASSERT(c != NULL);
    c->node = n;
    c->job.run = run;
    c->job.done = done;
    kv_density_span_init(&c->span);
    obuf_init(&c->upper);
    return c;
}

void cl_compact_free(struct cl_compact *c)
{
    if (c == NULL)
        return;
    for (unsigned i = 0; i < ASKED_MAX; i++)
        parts_fini(c->asked[i].parts, c->asked[i].count);
    kv_density_span_fini(&c->span);
    obuf_fini(&c->upper);
    free(c);
}

static bool take_asked(struct cl_compact *c)
{
    struct asked *first = NULL;

    for (unsigned i = 0; i < ASKED_MAX; i++) {
        struct asked *a = &c->asked[i];

        if (a->number != 0 && !a->done && (first == NULL || a->number < first->number))
            first = a;
    }
    if (first == NULL)
        return false;
    c->by_hand = first;
    c->shard = first->shard;
    return true;
}

/* A dense range of some shard, each in its turn. */
static bool take_dense(struct cl_compact *c)
{
    if (c->node->options.compact_mode != CL_COMPACT_LOCAL || now_us(c) < c->next_us)
        return false;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = c->node->shards[(c->turn + i) % CL_SHARDS];

        if (s->fenced != ST_OK || s->installing ||
            !kv_density_take(kv_state_density(s->state), &c->span))
            continue;
        obuf_reset(&c->upper);
        obuf_put(&c->upper, c->span.last.data, c->span.last.size);
        obuf_u8(&c->upper, 0);
        c->shard = s;
        c->turn = s->position + 1;
        return true;
    }
    return false;
}

void cl_compact_poll(struct cl_compact *c)
{
    struct cl_node *n = c->node;

    if (c->busy || c->stopped || n->phase != CL_NODE_SERVING || n->failed != ST_OK || n->store_full)
        return;
    if (!take_asked(c) && !take_dense(c))
        return;
    status st = cl__compact_job_start(n, &c->job);
    ASSERT_INV("C1", st == ST_OK); /* nothing else is queued there */
    c->busy = true;
}

void cl_compact_stop(struct cl_compact *c)
{
    if (c->stopped)
        return;
    c->stopped = true;
    kv_store_stop_compacting(c->node->store);
}

/* -- asked for --------------------------------------------------------------------------------- */

/* A free place, or that of the oldest result: nobody came for it. */
static unsigned place(const struct cl_compact *c)
{
    unsigned best = ASKED_MAX;

    for (unsigned i = 0; i < ASKED_MAX; i++) {
        const struct asked *a = &c->asked[i];

        if (a->number == 0)
            return i;
        if (a->done && (best == ASKED_MAX || a->number < c->asked[best].number))
            best = i;
    }
    return best;
}

bool cl_compact_full(const struct cl_compact *c)
{
    return place(c) == ASKED_MAX;
}

uint64_t cl_compact_ask_take(struct cl_compact *c, struct cl_shard *s,
                             struct cl_compact_part *parts, unsigned count)
{
    unsigned at = place(c);
    struct asked *a = &c->asked[at];

    ASSERT(at < ASKED_MAX);
    ASSERT(count > 0 && count <= CL_COMPACT_PARTS);
    *a = (struct asked){.number = ++c->last_number, .shard = s, .count = count};
    memcpy(a->parts, parts, count * sizeof *parts);
    cl_compact_poll(c);
    return a->number;
}

status cl_compact_asked(struct cl_compact *c, uint64_t number, struct cl_compact_result *out)
{
    for (unsigned i = 0; i < ASKED_MAX; i++) {
        struct asked *a = &c->asked[i];

        if (a->number != number)
            continue;
        if (!a->done)
            return c->stopped ? ST_SHUTDOWN : ST_PENDING;
        *out = a->result;
        a->number = 0;
        return ST_OK;
    }
    return ST_SHUTDOWN; /* others came for more results than are kept */
}

/* -- for operators ----------------------------------------------------------------------------- */

void cl_compact_stats(const struct cl_compact *c, const struct cl_shard *s, struct arena *a,
                      struct cl_compact_stats *out)
{
    *out = c->stats[s->position];
    out->running = c->busy && c->shard == s;
    if (out->running && c->by_hand == NULL) {
        out->range.first = arena_copy(a, bytes_make(c->span.first.data, c->span.first.size));
        out->range.last = arena_copy(a, bytes_make(c->span.last.data, c->span.last.size));
        out->range.counts = c->span.counts;
    }
}

uint64_t cl_compact_next_us(const struct cl_compact *c)
{
    return c->next_us;
}
