/*
 * raft/raft.c — the object of one group and the step function that dispatches its inputs.
 *
 * Vocabulary. The tail is the part of the log in memory: entries above the base, which is what the
 * state machine has applied. `stored` is how far the own log is durable, `commit` how far a
 * majority's is, `applied` how far the state machine went: applied <= commit <= last, and with one
 * voter commit <= stored.
 *
 * A step takes one input and leaves its effects in the outputs: new hard state, entries for the
 * own log, the commit index. It never blocks, never fails half way, and reads nothing but its
 * input and its own state, so a recorded sequence of inputs replays exactly.
 *
 * What is left out here arrives as new files, one per message (recv_*.c): messages between
 * replicas are refused with ST_PROTOCOL until then, so a group has one voter that can win.
 *
 * Invariants R1..R10: invariants.c. Threads: one at a time per object.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"

#include <stdlib.h>

static unsigned voter_position(const struct raft_config *config, uint64_t id)
{
    for (unsigned i = 0; i < config->voter_count; i++) {
        if (config->voters[i] == id)
            return i;
    }
    ASSERT_INV("the replica itself is a voter", false);
    return 0;
}

struct raft *raft_new(const struct raft_config *config, struct raft_hard_state hard,
                      uint64_t applied, uint64_t applied_term)
{
    ASSERT(config->self != 0);
    ASSERT(config->voter_count >= 1);
    ASSERT(config->voter_count <= RAFT_VOTERS_MAX);
    struct raft *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    r->config = *config;
    r->self_at = voter_position(config, config->self);
    r->hard = hard;
    /* The state machine may legally be ahead of a hard state that was not yet durable. */
    if (r->hard.term < applied_term)
        r->hard = (struct raft_hard_state){.term = applied_term};
    r->role = RAFT_FOLLOWER;
    r->random = config->seed;
    raft__tail_init(&r->tail, applied, applied_term);
    r->stored = r->commit = r->applied = applied;
    return r;
}

void raft_free(struct raft *r)
{
    if (!r)
        return;
    raft__tail_fini(&r->tail);
    free(r->out_entries);
    free(r);
}

/* An entry at or below the base was applied, so only its place in the log matters: everything held
 * above it was overwritten by it. */
static status restore_applied(struct raft *r, const struct raft_entry *entry)
{
    /* Whoever led a later term than the base's had the base (Raft 5.4.3, leader completeness). */
    if (entry->index == r->tail.base_index && entry->term > r->tail.base_term)
        return ST_CORRUPT;
    raft__tail_truncate(&r->tail, r->tail.base_index + 1);
    return ST_OK;
}

static status restore_above(struct raft *r, const struct raft_entry *entry)
{
    uint64_t term_before = 0;

    if (entry->term < r->tail.base_term) {
        /* It followed another entry than the one applied at the base: a stretch that a later leader
         * overwrote. The state machine has what overwrote it, by a snapshot or by other records. */
        MARK("raft.restore.other_branch");
        return ST_OK;
    }
    if (!raft__tail_term(&r->tail, entry->index - 1, &term_before) || entry->term < term_before)
        return ST_CORRUPT;
    raft__tail_truncate(&r->tail, entry->index);
    raft__tail_append(&r->tail, entry);
    return ST_OK;
}

status raft_restore_entry(struct raft *r, const struct raft_entry *entry)
{
    ASSERT(!r->deadline_set); /* before the first step */
    if (entry->index <= r->tail.base_index)
        ST_TRY(restore_applied(r, entry));
    else
        ST_TRY(restore_above(r, entry));
    r->stored = raft__tail_last_index(&r->tail);
    /* A term is durable before entries of it; a log that shows the entry has seen the term. */
    if (r->hard.term < raft__tail_last_term(&r->tail))
        r->hard = (struct raft_hard_state){.term = raft__tail_last_term(&r->tail)};
    return ST_OK;
}

void raft_restore_hard_state(struct raft *r, struct raft_hard_state hard)
{
    ASSERT(!r->deadline_set); /* before the first step */
    if (hard.term >= r->hard.term)
        r->hard = hard;
}

static void outputs_clear(struct raft *r)
{
    r->out_first = 0;
    r->out_proposed = 0;
    r->out_hard = false;
    r->out_role = false;
}

/* The ring may wrap, so the caller gets copies; the data stays the tail's. */
static void outputs_fill(struct raft *r, struct raft_output *out)
{
    size_t count = r->out_first ? (size_t)(raft__tail_last_index(&r->tail) - r->out_first + 1) : 0;

    if (count > r->out_capacity) {
        r->out_entries = realloc(r->out_entries, count * sizeof *r->out_entries);
        ASSERT(r->out_entries != NULL);
        r->out_capacity = count;
    }
    for (size_t i = 0; i < count; i++)
        r->out_entries[i] = *raft__tail_get(&r->tail, r->out_first + i);
    *out = (struct raft_output){
        .append = count ? r->out_entries : NULL,
        .append_count = count,
        .commit_index = r->commit,
        .first_proposed = r->out_proposed,
        .hard_state_changed = r->out_hard,
        .role_changed = r->out_role,
    };
}

static status dispatch(struct raft *r, const struct raft_input *in)
{
    switch (in->kind) {
    case RAFT_TICK: raft__tick(r); return ST_OK;
    case RAFT_MESSAGE: return ST_PROTOCOL;
    case RAFT_PROPOSE: return raft__propose(r, in->commands, in->command_count);
    case RAFT_STORED: raft__stored(r, in->stored_index, in->stored_term); return ST_OK;
    case RAFT_CAMPAIGN: raft__campaign(r); return ST_OK;
    }
    ASSERT_INV("a known kind of input", false);
    return ST_INTERNAL;
}

status raft_step(struct raft *r, const struct raft_input *in, struct raft_output *out)
{
    struct raft__before before = raft__invariants_before(r);

    outputs_clear(r);
    if (in->now_ms > r->now_ms)
        r->now_ms = in->now_ms;
    if (!r->deadline_set)
        raft__deadline_reset(r);
    status st = dispatch(r, in);
    outputs_fill(r, out);
    raft__invariants_after(r, &before);
    return st;
}

const struct raft_entry *raft_entry_get(const struct raft *r, uint64_t index)
{
    return raft__tail_get(&r->tail, index);
}

void raft_applied(struct raft *r, uint64_t index)
{
    ASSERT(index >= r->applied);
    ASSERT(index <= r->commit);
    r->applied = index;
    /* What is not durable here yet stays: with other voters an entry may commit and be applied
     * before the own log has it. */
    raft__tail_drop(&r->tail, index < r->stored ? index : r->stored);
}

enum raft_role raft_role(const struct raft *r)
{
    return r->role;
}

struct raft_hard_state raft_hard_state(const struct raft *r)
{
    return r->hard;
}

uint64_t raft_leader(const struct raft *r)
{
    return r->leader;
}

uint64_t raft_last_index(const struct raft *r)
{
    return raft__tail_last_index(&r->tail);
}

uint64_t raft_commit_index(const struct raft *r)
{
    return r->commit;
}

uint64_t raft_next_tick_ms(const struct raft *r)
{
    if (r->role == RAFT_LEADER)
        return UINT64_MAX; /* a lone leader has nobody to reassure */
    return r->deadline_set ? r->deadline_ms : 0;
}
