/*
 * raft/raft.h — the consensus core of one group: a pure step function (Raft, Ongaro 2014).
 *
 * No clock, no I/O, no randomness but the seed in its configuration. The caller owns inputs before
 * and after a call, also on error; outputs are borrowed until the next call on the same object.
 * One group belongs to one thread at a time.
 *
 * Order the caller must keep: entries and hard state of an output are durable before its messages
 * of kind vote-reply and append-reply are sent and before RAFT_STORED is fed back. The leader's
 * own entries go to its log and to its followers at the same time.
 */
#ifndef RAFT_RAFT_H
#define RAFT_RAFT_H

#include "base/buf.h"
#include "base/status.h"

#define RAFT_VOTERS_MAX 7

enum raft_entry_kind {
    RAFT_ENTRY_COMMAND = 1, /* opaque to raft */
    RAFT_ENTRY_NOOP = 2,    /* a new leader's first entry */
    RAFT_ENTRY_MEMBERS = 3, /* membership; data encodes it */
};

struct raft_entry {
    uint64_t index, term;
    enum raft_entry_kind kind;
    struct buf *data; /* refcounted; NULL for a no-op */
};

struct raft_hard_state {
    uint64_t term;
    uint64_t vote; /* replica id, 0 = none */
};

enum raft_role { RAFT_FOLLOWER, RAFT_CANDIDATE, RAFT_LEADER };

struct raft_message; /* between replicas: raft/message.h */

struct raft_config {
    uint64_t self;
    uint64_t voters[RAFT_VOTERS_MAX];
    unsigned voter_count;
    uint64_t election_ms; /* a follower waits between this and twice this */
    uint64_t heartbeat_ms;
    uint64_t seed;
};

struct raft_input {
    enum {
        RAFT_TICK,    /* time has passed */
        RAFT_MESSAGE, /* from another replica */
        RAFT_PROPOSE, /* command(s) to append; leader only, else ST_NOT_LEADER */
        RAFT_STORED,  /* own log is durable up to stored_index of stored_term */
        RAFT_CAMPAIGN /* start an election now: the only voter at start-up, a transfer's target */
    } kind;
    uint64_t now_ms;
    const struct raft_message *message;
    struct buf *const *commands; /* RAFT_PROPOSE; the core takes references of its own */
    size_t command_count;
    uint64_t stored_index, stored_term;
};

struct raft_output {
    const struct raft_entry *append; /* to the own log, in order */
    size_t append_count;
    const struct raft_message *const *send;
    size_t send_count;
    uint64_t commit_index;   /* apply up to here, in order */
    uint64_t first_proposed; /* index of the first command of RAFT_PROPOSE */
    bool hard_state_changed; /* store raft_hard_state() with or before `append` */
    bool role_changed;
};

struct raft;

/* A group as the log left it: entries are fed with raft_restore_entry in order before the first
 * step. APPLIED is what the state machine has persisted: entries at or below it may be gone and
 * need no data; the term of entry APPLIED is applied_term (0/0 for a new group). */
struct raft *raft_new(const struct raft_config *config, struct raft_hard_state hard,
                      uint64_t applied, uint64_t applied_term);
void raft_free(struct raft *r); /* NULL is fine */
/* ST_CORRUPT if the entry does not follow the one before. Takes a reference of its own. An entry
 * with an index already held replaces it and all behind it (a later leader overwrote them). */
NODISCARD status raft_restore_entry(struct raft *r, const struct raft_entry *entry);
/* A hard state that the log has: before, among or behind the entries, in the log's order. */
void raft_restore_hard_state(struct raft *r, struct raft_hard_state hard);

/* ST_NOT_LEADER for a proposal elsewhere than at the leader; ST_PROTOCOL for a malformed message;
 * the state is unchanged then. */
NODISCARD status raft_step(struct raft *r, const struct raft_input *in, struct raft_output *out);

/* Lends entry INDEX (stored or not), for apply and for sending. NULL if it is not in memory. */
const struct raft_entry *raft_entry_get(const struct raft *r, uint64_t index);
/* The state machine has applied up to INDEX; entries up to it may leave memory once no follower
 * needs them. */
void raft_applied(struct raft *r, uint64_t index);

enum raft_role raft_role(const struct raft *r);
struct raft_hard_state raft_hard_state(const struct raft *r);
uint64_t raft_leader(const struct raft *r); /* replica id, 0 = unknown */
uint64_t raft_last_index(const struct raft *r);
uint64_t raft_commit_index(const struct raft *r);
/* When the next RAFT_TICK is due; UINT64_MAX when the group sleeps (a lone leader). */
uint64_t raft_next_tick_ms(const struct raft *r);

#endif
