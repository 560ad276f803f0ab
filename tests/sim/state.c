/* sim/state.c — see state.h. */
#include "sim/state.h"
#include "base/assert.h"
#include "cluster/check.h"
#include "sim/requests.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool runs(const struct node *n)
{
    return n->process != NULL && !n->lost;
}

static bool same_everywhere(struct cluster *c, unsigned position)
{
    const struct cl_shard *first = NULL;
    for (unsigned i = 0; i < NODES; i++) {
        if (!runs(&c->nodes[i])) {
            if (!c->nodes[i].lost)
                return false;
            continue;
        }
        const struct cl_shard *s = c->nodes[i].process->shards[position];
        if (s->installing || s->applied != raft_last_index(s->raft) ||
            s->applied != raft_commit_index(s->raft) || !cl_shard_idle(s) ||
            (first != NULL && s->applied != first->applied))
            return false;
        first = s;
    }
    return first != NULL;
}

static bool trash_left(const struct cl_node *n)
{
    struct arena a;
    int64_t id;
    arena_init(&a, 1024);
    struct kv_view view = {
        .state = n->shards[CL_META]->state, .at = HLC_MAX, .tier = KV_TIER_ANY, .arena = &a};
    bool left = kv_trash_find(&view, SIM_NS, &id) == ST_OK;
    arena_fini(&a);
    return left;
}

bool state_settled(struct cluster *c)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (!same_everywhere(c, i))
            return false;
    }
    for (unsigned i = 0; i < NODES; i++) {
        const struct node *n = &c->nodes[i];
        if (runs(n) && (kv_state_queue_length(n->process->shards[CL_META]->state) > 0 ||
                        trash_left(n->process)))
            return false;
    }
    return true;
}

void state_print(struct cluster *c)
{
    for (unsigned i = 0; i < NODES; i++) {
        const struct cl_node *n = c->nodes[i].process;
        fprintf(stderr, "node %u%s%s\n", i + 1, n == NULL ? ": down" : "",
                c->nodes[i].lost ? " (its disk was replaced)" : "");
        for (unsigned k = 0; n != NULL && k < CL_SHARDS; k++) {
            const struct cl_shard *s = n->shards[k];
            fprintf(stderr,
                    "  %-16s %s term %" PRIu64 " leader %" PRIu64 " applied %" PRIu64
                    " committed %" PRIu64 " stored %" PRIu64 " last %" PRIu64 " queue %" PRIu64
                    "%s%s%s\n",
                    s->name, raft_role(s->raft) == RAFT_LEADER ? "leads" : "follows",
                    raft_hard_state(s->raft).term, raft_leader(s->raft), s->applied,
                    raft_commit_index(s->raft), raft_stored_index(s->raft),
                    raft_last_index(s->raft), kv_state_queue_length(s->state),
                    s->installing ? " installing" : "", cl_shard_idle(s) ? "" : " busy",
                    k == CL_META && trash_left(n) ? " trash" : "");
        }
    }
}

/* -- S1, S2 ------------------------------------------------------------------------------------ */

static void check_hashes(struct cluster *c)
{
    for (unsigned k = 0; k < CL_SHARDS; k++) {
        uint64_t first = 0;
        bool any = false;
        for (unsigned i = 0; i < NODES; i++) {
            uint64_t hash;
            if (!runs(&c->nodes[i]))
                continue;
            struct cl_shard *s = c->nodes[i].process->shards[k];
            if (kv_state_hash(s->state, NULL, &hash) != ST_OK)
                cluster_broken(c, "S1: node %u cannot read shard %s", i + 1, s->name);
            else if (any && hash != first)
                cluster_broken(c, "S1: node %u holds another shard %s", i + 1, s->name);
            first = hash;
            any = true;
        }
    }
}

static void check_counts(struct cluster *c, struct node *n)
{
    struct arena a;
    struct cl_mismatch *found;
    arena_init(&a, 4096);
    static const atomic_bool never;
    status st = cl_check_run(n->process, &never, &a, &found);
    if (st != ST_OK)
        cluster_broken(c, "S2: node %u cannot be checked: %s", n->machine->index + 1,
                       status_text(st));
    else if (found != NULL)
        cluster_broken(c, "S2: node %u, %s, %s: expected %" PRId64 ", found %" PRId64,
                       n->machine->index + 1, found->what, found->item, found->expected,
                       found->found);
    arena_fini(&a);
}

/* -- S3 ---------------------------------------------------------------------------------------- */

struct tree {
    struct entry {
        int64_t pid, id;
    } * entries; /* of directories */
    size_t count, capacity;
};

static void add_entry(struct tree *t, int64_t pid, int64_t id)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
        t->entries = realloc(t->entries, t->capacity * sizeof *t->entries);
        ASSERT(t->entries != NULL);
    }
    t->entries[t->count++] = (struct entry){pid, id};
}

/* The one entry of directory ID; NULL: there is none, or *TWICE. */
static const struct entry *entry_of(const struct tree *t, int64_t id, bool *twice)
{
    const struct entry *found = NULL;
    for (size_t i = 0; i < t->count; i++) {
        if (t->entries[i].id != id)
            continue;
        *twice |= found != NULL;
        found = &t->entries[i];
    }
    return found;
}

static void check_tree(struct cluster *c, const struct tree *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const struct entry *e = &t->entries[i];
        bool twice = false;
        (void)entry_of(t, e->id, &twice);
        if (twice)
            cluster_broken(c, "S3: directory %" PRId64 " has two entries", e->id);
        size_t steps = 0;
        while (e != NULL && e->pid != KV_ROOT_ID && steps++ <= t->count)
            e = entry_of(t, e->pid, &twice);
        if (e == NULL || steps > t->count)
            cluster_broken(c, "S3: directory %" PRId64 " is not below the root", t->entries[i].id);
    }
}

static void walk_tree(struct cluster *c, struct node *n)
{
    struct tree t = {0};
    struct arena a;
    arena_init(&a, 64 * 1024);
    struct kv_view view = {.state = n->process->shards[CL_META]->state,
                           .at = HLC_MAX,
                           .tier = KV_TIER_ANY,
                           .arena = &a};
    bytes lower = kv_key_prefix(&a, SIM_NS, KV_META, NULL, 0);
    struct kv_scan *scan = kv_scan_open(&view, lower, kv_key_after_prefix(&a, lower), false);
    struct kv_cell cell;
    struct kv_row row;
    bytes key;
    status st;
    while ((st = kv_scan_next(scan, &key, &cell)) == ST_OK) {
        if (kv_key_is_attr(key))
            continue;
        st = kv_cell_row(&a, key, &cell, &row);
        ASSERT(st == ST_OK);
        if (row.col[META_TYPE].i == 'd')
            add_entry(&t, row.col[META_PID].i, row.col[META_ID].i);
    }
    kv_scan_close(scan);
    if (st != ST_END)
        cluster_broken(c, "S3: meta cannot be read: %s", status_text(st));
    check_tree(c, &t);
    free(t.entries);
    arena_fini(&a);
}

void state_check(struct cluster *c)
{
    check_hashes(c);
    for (unsigned i = 0; i < NODES; i++) {
        if (!runs(&c->nodes[i]))
            continue;
        check_counts(c, &c->nodes[i]);
        walk_tree(c, &c->nodes[i]);
    }
}
