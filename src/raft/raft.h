/*
 * raft/raft.h — the consensus core of one group: a pure step function (Raft, Ongaro 2014).
 *
 * No clock, no I/O, no randomness but the seed in its configuration. The caller owns inputs before
 * and after a call, also on error; outputs are borrowed until the next call on the same object.
 * One group belongs to one thread at a time.
 *
 * What the caller must do:
 *   - A step's hard state goes to the log with or before its `append`, later steps' behind it;
 *     RAFT_STORED tells what is durable, of both. Messages may leave at once: the core holds back a
 *     vote or an acknowledgement until what it promises is durable.
 *   - The state machine may be ahead of the own log; what it persists must not be
 *     (raft_stored_index), and has the members of raft_members_at with it.
 *   - Tick at raft_next_tick_ms. Where that is never, watch processes instead, per node, and say
 *     RAFT_PEER_DOWN to each group whose leader's process died or was restarted.
 *   - Serve a read while the clock is below raft_lease_until_ms and the read's time not above
 *     raft_read_bound, or by RAFT_READ; as a new leader write and read above raft_read_floor.
 *     Persist raft_read_floor, rounded up so that it is seldom, before messages leave: it is
 *     raft_config.read_bound after a restart. The same for a bound in a beacon, before it is sent
 *     and before it is answered.
 *   - A replica whose disk is new is a new replica, with a new id.
 */
#ifndef RAFT_RAFT_H
#define RAFT_RAFT_H

#include "base/buf.h"
#include "base/status.h"
#include "raft/beacons.h"
#include "raft/members.h"

enum raft_entry_kind {
    RAFT_ENTRY_COMMAND = 1, /* opaque to raft */
    RAFT_ENTRY_NOOP = 2,    /* a new leader's first entry */
    RAFT_ENTRY_MEMBERS = 3, /* data is a struct raft_members */
    /* In the log only: a snapshot up to here replaced all before and whatever was behind. Data as
     * MEMBERS. */
    RAFT_ENTRY_SNAPSHOT = 4,
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

/* What a snapshot of the state machine stands for. */
struct raft_snapshot {
    uint64_t index, term;
    struct raft_members members; /* in force at index */
};

enum raft_role { RAFT_FOLLOWER, RAFT_CANDIDATE, RAFT_LEADER };

struct raft_message; /* between replicas: raft/message.h */

/* Zero means the default in parentheses. */
struct raft_config {
    uint64_t self;
    struct raft_members members; /* in force at the applied index */
    bool votes_never;            /* the disk of this identity was lost: it may have voted before */
    uint64_t election_ms;        /* a follower waits so long, and up to half as much more */
    uint64_t heartbeat_ms;
    uint64_t disk_ms;        /* a leader whose log owes it an entry for so long (election_ms) */
    uint64_t quiesce_ms;     /* an idle group sleeps after it; 0 = never */
    uint64_t drift_permille; /* no clock is faster or slower than true time by more (20) */
    uint64_t append_bytes;   /* of one message (1 MiB); one entry may be larger */
    uint64_t window_bytes;   /* under way to one follower (8 MiB) */
    uint64_t window_entries; /* (16384) */
    uint64_t pending_bytes;  /* proposed or received and not yet applied (64 MiB) */
    uint64_t keep_bytes;     /* applied, kept for others that lack it (16 MiB) */
    uint64_t keep_bytes_snapshot; /* the same while a snapshot is under way (256 MiB) */
    uint64_t read_bound;          /* what raft_read_floor gave before a restart, or more */
    /* The host's, for the life of the group, read while it sleeps; NULL: no lease in sleep. */
    const struct raft_beacons *beacons;
    uint64_t seed;
};

struct raft_input {
    enum {
        RAFT_TICK,     /* time has passed */
        RAFT_MESSAGE,  /* from another replica */
        RAFT_PROPOSE,  /* command(s) to append; leader only */
        RAFT_STORED,   /* own log is durable: stored_* */
        RAFT_CAMPAIGN, /* start an election as soon as no promise forbids it */
        RAFT_READ,     /* read_token, above all before: leader only */
        RAFT_CHANGE,   /* change one member: change, peer; leader only */
        RAFT_TRANSFER, /* lead no more, PEER shall (0: the best); leader only */
        /* The host holds PEER's process for dead or restarted. Tell it again after a change of
         * role. */
        RAFT_PEER_DOWN,
        RAFT_PEER_UP,
        RAFT_SNAPSHOT_READY,  /* the index of a snapshot for PEER is fixed: snapshot */
        RAFT_SNAPSHOT_FAILED, /* it has none, or moving it to PEER failed */
        RAFT_INSTALLED,       /* the state machine durably is what `snapshot` says */
        RAFT_INSTALL_FAILED,
        /* The log that the host's groups share has stored nothing of any of them for disk_ms: lead
         * no more, and stand for no election until it goes on. */
        RAFT_DISK_HANGS,
        RAFT_DISK_GOES_ON,
    } kind;
    uint64_t now_ms; /* monotonic */
    const struct raft_message *message;
    struct buf *const *commands; /* RAFT_PROPOSE; the core takes references of its own */
    size_t command_count;
    /* RAFT_STORED: entries up to this one of the output with append_epoch = stored_epoch; a hard
     * state, or zeros if none was written since. */
    uint64_t stored_index, stored_term, stored_epoch;
    struct raft_hard_state stored_hard;
    uint64_t read_token;
    uint64_t read_bound; /* any input: the leader asks to serve reads up to this time */
    enum raft_change_kind change;
    uint64_t peer;
    const struct raft_snapshot *snapshot;
};

struct raft_output {
    /* To the own log, in order; replaces what is there from the first one's index on. */
    const struct raft_entry *append;
    size_t append_count;
    uint64_t append_epoch; /* give it back with RAFT_STORED */
    const struct raft_message *send;
    size_t send_count;
    uint64_t commit_index;   /* apply up to here, in order */
    uint64_t first_proposed; /* index of the first command of RAFT_PROPOSE, or of the change */
    bool hard_state_changed; /* store raft_hard_state() with or before `append` */
    bool role_changed;
    /* Reads with tokens up to read_token may be served once read_index is applied; 0 = none. Those
     * outstanding when the leader's role ends never will be. */
    uint64_t read_token, read_index;
    uint64_t snapshot_for; /* a replica that needs RAFT_SNAPSHOT_READY; 0 = none new */
    /* Fetch this from install_from, replace the state machine and say RAFT_INSTALLED; apply
     * nothing meanwhile. NULL = none new. */
    const struct raft_snapshot *install;
    uint64_t install_from;
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
/* After the last entry: the log ends in a stretch that does not follow what the state machine has.
 * Of a replica that may have lost the record of a snapshot that is right, once a
 * RAFT_ENTRY_SNAPSHOT at the base is written before anything else: what follows without it is
 * skipped by the next restore. Of a lone one, which got none, its log and its state do not belong
 * together. */
bool raft_restored_other(const struct raft *r);
/* A hard state that the log has: before, among or behind the entries, in the log's order. */
void raft_restore_hard_state(struct raft *r, struct raft_hard_state hard);

/* On error the state is as before, but for the time.
 * ST_NOT_LEADER: ask raft_leader. ST_PROTOCOL: a message that no correct replica sends here.
 * ST_CORRUPT: a leader's log contradicts what is committed here: fence this replica.
 * ST_LOCKED: a transfer or a change of members is under way, the leader is too new for one, or the
 * learner to be promoted lacks too much; try again. ST_NO_MEMORY: pending_bytes are used up.
 * RAFT_CHANGE also as raft_members_change; RAFT_TRANSFER ST_NOT_FOUND: PEER is no other voter. */
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
uint64_t raft_stored_index(const struct raft *r);
/* Members in force at INDEX, which is applied or later: for a snapshot's metadata. */
void raft_members_at(const struct raft *r, uint64_t index, struct raft_members *out);
/* When the next RAFT_TICK is due; UINT64_MAX when the group sleeps (idle, or a lone leader). */
uint64_t raft_next_tick_ms(const struct raft *r);

/* Until this moment of the own clock the leader may serve reads of what it has applied, without
 * asking; 0: not now. UINT64_MAX for a lone voter. Of a sleeper by beacons, as of this moment. */
uint64_t raft_lease_until_ms(const struct raft *r);
/* Reads at times up to this are remembered by a majority, so no later leader writes below: the
 * lease is good for them. */
uint64_t raft_read_bound(const struct raft *r);
/* A new leader's host writes and reads above this: earlier leaders may have served reads so far. */
uint64_t raft_read_floor(const struct raft *r);
/* The oldest entry that some member may still be sent; for views. */
uint64_t raft_oldest_needed(const struct raft *r);

/* The leader's view of a member; for views and for the choice of whom to promote. */
struct raft_peer {
    uint64_t id;
    enum raft_member_role role;
    enum { RAFT_PEER_PROBE, RAFT_PEER_PIPELINE, RAFT_PEER_SNAPSHOT } state;
    uint64_t match, next, heard_ms;
    bool down;
};
/* False if AT is no member's position, or this is not the leader. */
bool raft_peer(const struct raft *r, unsigned at, struct raft_peer *out);

#endif
