/*
 * raft/raft.c — the object of one group and the step function that dispatches its inputs.
 *
 * Vocabulary. The tail is the part of the log in memory: entries above the base. `stored` is how
 * far the own log is durable, `commit` how far a majority's is, `applied` how far the state
 * machine went: base <= applied <= commit <= last. `verified` is how far a follower's log is known
 * to be its leader's. A group is lone when this replica is its only member.
 *
 * A step takes one input and leaves its effects in the outputs: new hard state, entries for the
 * own log, messages, the commit index. It never blocks, never fails half way, and reads nothing but
 * its input and its own state, so a recorded sequence of inputs replays exactly.
 *
 * Every step ends the same way: followers are sent what they can take (replicate.c), reads that
 * a round has confirmed are released (read_index.c), and the invariants are asserted.
 *
 * Invariants R1..R22: invariants.c. Threads: one at a time per object.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"

#include <stdlib.h>

#define DRIFT_PERMILLE 20u
#define APPEND_BYTES (1u << 20)
#define WINDOW_BYTES (8u << 20)
#define WINDOW_ENTRIES 16384u
#define PENDING_BYTES (64u << 20)
#define KEEP_BYTES (16u << 20)
#define KEEP_BYTES_SNAPSHOT (256u << 20)

#ifdef METADB_FAULTS
enum raft__break raft__broken;
#endif

static void default_to(uint64_t *value, uint64_t otherwise)
{
    if (*value == 0)
        *value = otherwise;
}

static void config_defaults(struct raft_config *c)
{
    default_to(&c->disk_ms, c->election_ms);
    default_to(&c->drift_permille, DRIFT_PERMILLE);
    default_to(&c->append_bytes, APPEND_BYTES);
    default_to(&c->window_bytes, WINDOW_BYTES);
    default_to(&c->window_entries, WINDOW_ENTRIES);
    default_to(&c->pending_bytes, PENDING_BYTES);
    default_to(&c->keep_bytes, KEEP_BYTES);
    default_to(&c->keep_bytes_snapshot, KEEP_BYTES_SNAPSHOT);
}

struct raft *raft_new(const struct raft_config *config, struct raft_hard_state hard,
                      uint64_t applied, uint64_t applied_term)
{
    ASSERT(config->self != 0);
    ASSERT(config->election_ms > 0);
    ASSERT(config->heartbeat_ms > 0);
    ASSERT(config->heartbeat_ms < config->election_ms);
    ASSERT(config->members.count <= RAFT_MEMBERS_MAX);
    ASSERT(config->drift_permille < 1000);
    struct raft *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    r->config = *config;
    config_defaults(&r->config);
    r->hard = hard;
    /* The state machine may legally be ahead of a hard state that was not yet durable. */
    if (r->hard.term < applied_term)
        r->hard = (struct raft_hard_state){.term = applied_term};
    r->role = RAFT_FOLLOWER;
    r->random = config->seed;
    r->read_bound = config->read_bound;
    raft__tail_init(&r->tail, applied, applied_term);
    r->stored = r->commit = r->applied = r->verified = applied;
    r->members = config->members;
    r->members_index = r->members_base_index = 0;
    raft__progress_align(r);
    return r;
}

void raft_free(struct raft *r)
{
    if (!r)
        return;
    raft__tail_fini(&r->tail);
    raft__outputs_fini(r);
    free(r->progress);
    free(r);
}

/* splitmix64 (Steele et al., 2014): good enough to spread timeouts, and one word of state. */
uint64_t raft__random(struct raft *r, uint64_t below)
{
    uint64_t z = r->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

bool raft__term_of(const struct raft *r, uint64_t index, uint64_t *term)
{
    return raft__tail_term(&r->tail, index, term);
}

static status dispatch(struct raft *r, const struct raft_input *in)
{
    switch (in->kind) {
    case RAFT_TICK: raft__tick(r); return ST_OK;
    case RAFT_MESSAGE: return raft__recv(r, in->message);
    case RAFT_PROPOSE: return raft__propose(r, in->commands, in->command_count);
    case RAFT_STORED: raft__stored(r, in); return ST_OK;
    case RAFT_CAMPAIGN: raft__campaign(r); return ST_OK;
    case RAFT_READ: return raft__read(r, in->read_token);
    case RAFT_CHANGE: return raft__change(r, in->change, in->peer);
    case RAFT_TRANSFER: return raft__transfer(r, in->peer);
    case RAFT_PEER_DOWN: raft__peer_down(r, in->peer); return ST_OK;
    case RAFT_PEER_UP: raft__peer_up(r, in->peer); return ST_OK;
    case RAFT_SNAPSHOT_READY: raft__snapshot_ready(r, in); return ST_OK;
    case RAFT_SNAPSHOT_FAILED: raft__snapshot_failed(r, in->peer); return ST_OK;
    case RAFT_INSTALLED: raft__installed(r, in->snapshot); return ST_OK;
    case RAFT_INSTALL_FAILED: raft__install_failed(r); return ST_OK;
    case RAFT_DISK_HANGS: raft__disk_told(r, true); return ST_OK;
    case RAFT_DISK_GOES_ON: raft__disk_told(r, false); return ST_OK;
    }
    ASSERT_INV("a known kind of input", false);
    return ST_INTERNAL;
}

/* A replica that comes back does not know which leader it has promised its patience to. */
static void time_begins(struct raft *r)
{
    r->hard_stored = r->hard;
    raft__deadline_reset(r);
    if (r->hard.term > 0 && !r->lone)
        r->promise_ms = r->now_ms + r->config.election_ms;
}

/* With nobody to talk to a step is done when its input is dealt with. */
static void step_end(struct raft *r)
{
    if (r->role == RAFT_LEADER)
        raft__transfer_check(r); /* may end it */
    if (r->role == RAFT_LEADER) {
        raft__replicate(r);
        raft__read_check(r);
        if (r->leave)
            raft__become_follower(r, r->hard.term, 0);
    }
}

status raft_step(struct raft *r, const struct raft_input *in, struct raft_output *out)
{
    struct raft__before before = raft__invariants_before(r);

    raft__outputs_clear(r);
    if (in->now_ms > r->now_ms)
        r->now_ms = in->now_ms;
    if (in->read_bound > r->read_bound)
        r->read_bound = in->read_bound;
    if (!r->deadline_set)
        time_begins(r);
    status st = dispatch(r, in);
    if (!r->lone || r->read_waiting != 0)
        step_end(r);
    raft__outputs_fill(r, out);
    raft__invariants_after(r, &before);
    return st;
}

void raft__stay_awake(struct raft *r)
{
    r->active_ms = r->now_ms;
    raft__consent_forget(r);
    if (!r->quiesced)
        return;
    r->quiesced = false;
    if (r->role != RAFT_LEADER) {
        raft__deadline_reset(r);
        raft__tell_awake(r);
        return;
    }
    /* Nobody was asked for a sign of life meanwhile. */
    for (unsigned i = 0; i < r->progress_count; i++)
        r->progress[i].heard_ms = r->now_ms;
    raft__heartbeat(r);
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
    raft__trim(r);
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

uint64_t raft_stored_index(const struct raft *r)
{
    return r->stored;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t raft_next_tick_ms(const struct raft *r)
{
    if (!r->deadline_set)
        return 0;
    if (r->quiesced)
        return UINT64_MAX;
    if (r->role != RAFT_LEADER)
        return r->deadline_ms;
    if (r->lone)
        return UINT64_MAX; /* a lone leader has nobody to reassure */
    uint64_t next = r->heartbeat_ms;
    if (r->transfer_to != 0)
        next = min_u64(next, r->transfer_ms);
    if (r->stored < raft__tail_last_index(&r->tail))
        next = min_u64(next, r->unstored_ms + r->config.disk_ms);
    return next;
}
