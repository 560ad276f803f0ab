/*
 * raft/log_gc.c — which group needs what of the log, and so which segments may go.
 *
 * For every segment the log keeps, per group, the highest index of an entry in it: the need. A need
 * is met when the group's cut reaches it (the state machine has persisted that far) or when a later
 * segment overwrote those entries. A segment goes when it is the oldest and all its needs are met;
 * everything else it says (hard states, cuts) is repeated by the checkpoint that begins each newer
 * segment.
 *
 * G1  A need is noted when its records are durable, never before.
 * G2  A cut counts when its own record is durable: after a restart the log must be able to say why
 *     entries are missing.
 * G3  Segments go oldest first, so the numbers in the directory stay contiguous.
 * G4  The segment being written never goes.
 * G5  Cuts only grow and needs only shrink, so a need found met is met for good (`settled`).
 *
 * The table is a hash from group id to a dense array; order never depends on the hash.
 */
#include "raft/log_internal.h"

#include "base/assert.h"

#include <stdlib.h>

static size_t bucket_of(const struct raft__groups *g, uint64_t id)
{
    return (size_t)((id * 0x9e3779b97f4a7c15u) >> 32) & (g->bucket_count - 1);
}

static void buckets_put(struct raft__groups *g, size_t item)
{
    size_t at = bucket_of(g, g->items[item].id);
    while (g->buckets[at])
        at = (at + 1) & (g->bucket_count - 1);
    g->buckets[at] = (uint32_t)item + 1;
}

static void buckets_grow(struct raft__groups *g)
{
    g->bucket_count = g->bucket_count ? g->bucket_count * 2 : 64;
    free(g->buckets);
    g->buckets = calloc(g->bucket_count, sizeof *g->buckets);
    ASSERT(g->buckets != NULL);
    for (size_t i = 0; i < g->count; i++)
        buckets_put(g, i);
}

void raft__groups_fini(struct raft__groups *g)
{
    free(g->items);
    free(g->buckets);
    *g = (struct raft__groups){0};
}

struct raft__group *raft__groups_find(const struct raft__groups *g, uint64_t id)
{
    if (g->bucket_count == 0)
        return NULL;
    for (size_t at = bucket_of(g, id); g->buckets[at]; at = (at + 1) & (g->bucket_count - 1)) {
        struct raft__group *group = &g->items[g->buckets[at] - 1];
        if (group->id == id)
            return group;
    }
    return NULL;
}

static struct raft__group *group_obtain(struct raft__groups *g, uint64_t id)
{
    struct raft__group *group = raft__groups_find(g, id);
    if (group)
        return group;
    if (g->count == g->capacity) {
        g->capacity = g->capacity ? g->capacity * 2 : 16;
        g->items = realloc(g->items, g->capacity * sizeof *g->items);
        ASSERT(g->items != NULL);
    }
    g->items[g->count] = (struct raft__group){.id = id};
    g->count++;
    if (g->count * 2 > g->bucket_count)
        buckets_grow(g);
    else
        buckets_put(g, g->count - 1);
    return &g->items[g->count - 1];
}

/* Entries from FIRST on were overwritten: older copies of them are nobody's need any more. */
static void needs_clamp(struct raft__segment *oldest, uint32_t group_at, uint64_t first)
{
    for (struct raft__segment *s = oldest; s; s = s->newer) {
        for (size_t i = s->settled; i < s->need_count; i++) {
            if (s->needs[i].group_at == group_at && s->needs[i].last_index >= first)
                s->needs[i].last_index = first - 1;
        }
    }
}

static void need_add(struct raft__segment *s, struct raft__group *group, uint32_t group_at,
                     uint64_t last)
{
    if (group->need_segment == s->number) {
        s->needs[group->need_at].last_index = last;
        return;
    }
    if (s->need_count == s->need_capacity) {
        s->need_capacity = s->need_capacity ? s->need_capacity * 2 : 16;
        s->needs = realloc(s->needs, s->need_capacity * sizeof *s->needs);
        ASSERT(s->needs != NULL);
    }
    group->need_segment = s->number;
    group->need_at = s->need_count;
    s->needs[s->need_count++] = (struct raft__need){.group_at = group_at, .last_index = last};
}

void raft__groups_note(struct raft__groups *g, struct raft__segment *oldest,
                       struct raft__segment *segment, const struct raft__note *note)
{
    struct raft__group *group = group_obtain(g, note->group);
    uint32_t group_at = (uint32_t)(group - g->items);

    switch (note->type) {
    case RAFT__RECORD_ENTRY:
        ASSERT(note->a <= note->b);
        if (note->a <= group->last_index)
            needs_clamp(oldest, group_at, note->a);
        group->last_index = note->b;
        need_add(segment, group, group_at, note->b);
        return;
    case RAFT__RECORD_HARD:
        group->hard = (struct raft_hard_state){.term = note->a, .vote = note->b};
        group->has_hard = true;
        return;
    case RAFT__RECORD_CUT:
        if (note->a > group->cut)
            group->cut = note->a;
        return;
    }
    ASSERT_INV("a known type of record", false);
}

struct raft__batch *raft__groups_checkpoint(const struct raft__groups *g)
{
    struct raft__batch *b = raft__batch_new(RAFT__BATCH_CHECKPOINT);
    for (size_t i = 0; i < g->count; i++) {
        const struct raft__group *group = &g->items[i];
        if (group->has_hard)
            raft__batch_hard_state(b, group->id, group->hard);
        if (group->cut)
            raft__batch_cut(b, group->id, group->cut);
    }
    return b;
}

bool raft__segment_needed(const struct raft__groups *g, struct raft__segment *segment,
                          uint32_t *group_at)
{
    for (; segment->settled < segment->need_count; segment->settled++) {
        const struct raft__need *need = &segment->needs[segment->settled];
        if (need->last_index > g->items[need->group_at].cut) {
            *group_at = need->group_at;
            return true;
        }
    }
    return false;
}
