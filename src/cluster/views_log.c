/*
 * cluster/views_log.c — metadb.log and metadb.stages: counts and distributions.
 */
#include "base/assert.h"
#include "cluster/views_internal.h"
#include <stdlib.h>

const struct cl_view_column cl__log_columns[] = {
    {"name", KV_TEXT}, {"unit", KV_TEXT}, {"count", KV_INT8}, {"mean", KV_INT8},
    {"p50", KV_INT8},  {"p90", KV_INT8},  {"p99", KV_INT8},   {"max", KV_INT8}};

static void count_row(cl_emit *emit, void *arg, const char *name, const char *unit, uint64_t v)
{
    struct kv_datum row[CL__log_COUNT] = {cl__text(name), cl__text(unit), cl__count(v), KV_NULL,
                                          KV_NULL,        KV_NULL,        KV_NULL,      KV_NULL};
    emit(arg, row);
}

static void distribution_row(cl_emit *emit, void *arg, const char *name, const char *unit,
                             const struct histogram *h)
{
    struct kv_datum row[CL__log_COUNT] = {cl__text(name),
                                          cl__text(unit),
                                          cl__count(h->count),
                                          kv_int((int64_t)histogram_mean(h)),
                                          cl__count(histogram_percentile(h, 50)),
                                          cl__count(histogram_percentile(h, 90)),
                                          cl__count(histogram_percentile(h, 99)),
                                          cl__count(h->max)};
    emit(arg, row);
}

void cl__log_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    struct raft_log_stats *s = malloc(sizeof *s); /* too large for a stack */
    uint64_t group = 0, held = 0;
    ASSERT(s != NULL);
    raft_log_stats(n->stream.log, s);
    raft_log_oldest(n->stream.log, &group, &held);
    count_row(emit, arg, "batches", "", s->batches);
    count_row(emit, arg, "entries", "", s->entries);
    count_row(emit, arg, "bytes", "bytes", s->bytes);
    count_row(emit, arg, "writes", "", s->writes);
    count_row(emit, arg, "syncs", "", s->syncs);
    count_row(emit, arg, "segments", "", s->segments);
    count_row(emit, arg, "segments_recycled", "", s->segments_recycled);
    count_row(emit, arg, "thread_wakeups", "", s->wakeups);
    count_row(emit, arg, "held", "bytes", held);
    count_row(emit, arg, "held_by_shard", "", group);
    count_row(emit, arg, "in_flight", "batches", n->stream.submitted - n->stream.stored);
    distribution_row(emit, arg, "batch_entries", "entries", &s->batch_entries);
    distribution_row(emit, arg, "group_wait", "us", &s->group_wait);
    distribution_row(emit, arg, "queued_wait", "us", &s->queued_wait);
    distribution_row(emit, arg, "write", "us", &s->write);
    distribution_row(emit, arg, "sync", "us", &s->sync);
    distribution_row(emit, arg, "batch", "us", &s->batch);
    free(s);
}

const struct cl_view_column cl__stages_columns[] = {
    {"stage", KV_TEXT}, {"count", KV_INT8}, {"mean", KV_INT8}, {"p50", KV_INT8},
    {"p90", KV_INT8},   {"p99", KV_INT8},   {"max", KV_INT8}};

void cl__stages_rows(struct cl_node *n, cl_emit *emit, void *arg)
{
    static const char *const names[CL_STAGES] = {[CL_STAGE_QUEUED] = "submitted",
                                                 [CL_STAGE_PERSISTED] = "persisted",
                                                 [CL_STAGE_COMMITTED] = "committed",
                                                 [CL_STAGE_APPLIED] = "applied",
                                                 [CL_STAGE_TOTAL] = "total"};
    for (unsigned i = 0; i < CL_STAGES; i++) {
        const struct histogram *h = &n->stages[i];
        struct kv_datum row[CL__stages_COUNT] = {cl__text(names[i]),
                                                 cl__count(h->count),
                                                 kv_int((int64_t)histogram_mean(h)),
                                                 cl__count(histogram_percentile(h, 50)),
                                                 cl__count(histogram_percentile(h, 90)),
                                                 cl__count(histogram_percentile(h, 99)),
                                                 cl__count(h->max)};
        emit(arg, row);
    }
}
