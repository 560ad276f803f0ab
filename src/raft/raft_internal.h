/*
 * raft/raft_internal.h — the core's one struct, shared by the files that implement raft_step.
 *
 * Only files of this folder and their tests include it. Each raft__ function below is a part of
 * one step: it changes the struct and the outputs under way, and raft_step asserts the invariants
 * (invariants.c) when all parts are done.
 */
#ifndef RAFT_RAFT_INTERNAL_H
#define RAFT_RAFT_INTERNAL_H

#include "raft/message.h"
#include "raft/progress.h"
#include "raft/raft.h"
#include "raft/tail.h"

/* Patience of followers differs by election_ms through this: messages and syncs of an election take
 * much less, and within two election_ms there shall be a leader. */
#define RAFT__ELECTION_SPREAD 2u

struct raft {
    struct raft_config config; /* const after raft_new; but `members`: in force at the base */

    struct raft_hard_state hard; /* as it must be durable before what depends on it leaves */
    struct raft_hard_state hard_stored;
    enum raft_role role;
    uint64_t leader; /* replica id, 0 = unknown */

    struct raft__tail tail; /* entries above the base, stored or not */
    uint64_t stored;        /* the own log is durable up to here */
    uint64_t epoch;         /* counts truncations: reports of earlier ones mean other entries */
    uint64_t commit, applied;
    uint64_t settled;     /* every member has the log up to here */
    uint64_t unstored_ms; /* since when the log owes us something; while stored < last */
    bool stalled;         /* it owed too long: no campaign before it moves */
    bool hung;            /* RAFT_DISK_HANGS was the last word of the log */
    bool restoring_other; /* restore: what follows continues a log that was replaced */

    struct raft_members members; /* the last in the log, committed or not */
    uint64_t members_index;      /* its entry; config.members_index below for the base's */
    uint64_t members_base_index;
    unsigned self_at; /* position in members, or RAFT_MEMBERS_MAX */
    unsigned voters;  /* how many */
    bool lone;        /* the only member and a voter: nobody to talk to */

    /* Time. */
    uint64_t now_ms, deadline_ms; /* deadline of a follower's or candidate's patience */
    uint64_t promise_ms;          /* votes for nobody before, for a leader's lease */
    uint64_t random;              /* generator state, seeded by the configuration */
    bool deadline_set;            /* false until the first input brings a clock reading */
    bool quiesced;

    /* Elections. */
    enum raft__poll { RAFT__POLL_NONE, RAFT__POLL_PRE, RAFT__POLL_VOTE } poll;
    bool poll_transfer, poll_asked; /* requests of RAFT__POLL_VOTE have left */
    bool granted[RAFT_MEMBERS_MAX];
    uint64_t vote_owed; /* voted for, and not told before the vote is durable */

    /* Follower: of the present leader. */
    uint64_t ack_seq, ack_sent_ms; /* of the newest append */
    uint64_t verified;             /* the log up to here is the leader's */
    uint64_t acked;                /* what the last answer said */
    uint64_t read_bound;           /* highest heard of or asked for */
    /* The leader under which it fell asleep and that may still count on it, 0 = none; quiesce.c. */
    uint64_t asleep_under, asleep_term, asleep_seq;
    struct raft_snapshot install; /* under way; index 0 = none */
    uint64_t install_from;

    /* Leader. */
    struct raft__progress *progress; /* as members; NULL for a lone leader and others */
    unsigned progress_count;
    uint64_t opened; /* index of the no-op of its term */
    uint64_t seq;
    uint64_t heartbeat_ms; /* next one */
    uint64_t active_ms;    /* last time that somebody wanted something */
    uint64_t offer_seq;    /* of the first heartbeat that offered sleep; 0 = none did */
    uint64_t transfer_to, transfer_ms;
    bool transfer_told; /* it was told to start */
    bool transfer_sent; /* somebody was in this term: no lease any more, transfer.c */
    bool leave;         /* removed by an entry that is committed: the step ends the role */
    uint64_t read_asked, read_seq; /* token that a round under way answers; 0 = none */
    uint64_t read_index;           /* and what it needs applied */
    uint64_t read_waiting;         /* token for the round after it */

    /* Outputs of the step under way. */
    uint64_t out_first; /* index of the first entry appended in this step; 0 = none */
    uint64_t out_proposed;
    bool out_hard, out_role, out_boundary;
    uint64_t out_read_token, out_read_index;
    uint64_t out_snapshot_for;
    bool out_install;
    struct raft_entry boundary;     /* of a snapshot that was installed; owns its data */
    struct raft_entry *out_entries; /* borrowed copies, contiguous for the caller */
    size_t out_capacity;
    struct raft_message *out_messages;
    size_t out_message_count, out_message_capacity;
    struct raft_entry *out_sent; /* entries of the appends in out_messages */
    size_t out_sent_capacity;
};

/* Deliberate errors, for tests that prove that the checkers notice. */
#ifdef METADB_FAULTS
enum raft__break {
    RAFT__BREAK_NONE,
    RAFT__BREAK_COMMIT_OTHER_TERM, /* commits entries of earlier terms by counting */
    RAFT__BREAK_VOTE_TWICE,
    RAFT__BREAK_VOTE_UNSTORED, /* tells a vote before it is durable */
    RAFT__BREAK_VOTE_ANY_LOG,  /* for a candidate that lacks entries */
    RAFT__BREAK_NO_TRUNCATE,   /* keeps what conflicts */
    RAFT__BREAK_ACK_UNSTORED,
    RAFT__BREAK_LEASE_LONG,    /* serves after the lease, and gives up as late */
    RAFT__BREAK_READ_UNASKED,  /* read index without a round */
    RAFT__BREAK_CHANGE_EARLY,  /* changes members before an entry of the term is committed */
    RAFT__BREAK_NO_PROMISE,    /* votes while a leader is heard */
    RAFT__BREAK_KEEP_CONFLICT, /* installs a snapshot under a log that conflicts with it */
    RAFT__BREAK_SLEEPER_VOTES, /* forgets who counts on its sleep */
    RAFT__BREAK_COMMIT_ALONE,  /* what the own log has is committed */
    RAFT__BREAKS
};
extern enum raft__break raft__broken;
#define RAFT_BROKEN(what) (raft__broken == (what))
#else
#define RAFT_BROKEN(what) false
#endif

static inline void raft__raise(uint64_t *value, uint64_t to)
{
    if (*value < to)
        *value = to;
}

/* raft.c */
void raft__stay_awake(struct raft *r); /* the group has work: ends quiescence */
uint64_t raft__random(struct raft *r, uint64_t below);
bool raft__term_of(const struct raft *r, uint64_t index, uint64_t *term);

/* send.c: outputs. */
struct raft_message *raft__send(struct raft *r, enum raft_message_kind kind, uint64_t to);
struct raft_message *raft__send_lead(struct raft *r, enum raft_message_kind kind,
                                     struct raft__progress *p);
struct raft_message *raft__send_ack(struct raft *r, enum raft_message_kind kind, uint64_t to);
void raft__outputs_clear(struct raft *r);
void raft__outputs_fill(struct raft *r, struct raft_output *out);
void raft__outputs_fini(struct raft *r);

/* election.c */
void raft__deadline_reset(struct raft *r);
void raft__become_follower(struct raft *r, uint64_t term, uint64_t leader);
void raft__campaign(struct raft *r);
void raft__campaign_now(struct raft *r); /* for a transfer: no pre-vote */
void raft__poll_count(struct raft *r, uint64_t from);
void raft__vote_stored(struct raft *r); /* the hard state is durable: tell what waited for it */
bool raft__may_lead(const struct raft *r);
void raft__tick(struct raft *r);

/* replicate.c */
uint64_t raft__append(struct raft *r, enum raft_entry_kind kind, struct buf *data);
NODISCARD status raft__propose(struct raft *r, struct buf *const *commands, size_t count);
void raft__replicate(struct raft *r); /* whatever followers can be sent now */
void raft__heartbeat(struct raft *r); /* to all */
void raft__heartbeat_next(struct raft *r);
void raft__acked(struct raft *r, struct raft__progress *p, const struct raft_ack *ack);
NODISCARD status raft__ack_check(const struct raft *r, const struct raft_message *m,
                                 struct raft__progress **out);
bool raft__tail_full(const struct raft *r);
void raft__trim(struct raft *r); /* entries that nobody needs leave memory */

/* commit.c */
void raft__stored(struct raft *r, const struct raft_input *in);
void raft__commit_advance(struct raft *r);
void raft__commit_heard(struct raft *r, uint64_t commit);
bool raft__disk_hangs(const struct raft *r);
/* The host on the log that all its groups share. */
void raft__disk_told(struct raft *r, bool hangs);

/* lease.c */
uint64_t raft__quorum_of(const struct raft *r, uint64_t self,
                         uint64_t (*value)(const struct raft *, const struct raft__progress *));
bool raft__quorum_lost(const struct raft *r);
bool raft__opened(const struct raft *r); /* an entry of the own term is committed */

/* read_index.c */
NODISCARD status raft__read(struct raft *r, uint64_t token);
void raft__read_check(struct raft *r);

/* member.c */
void raft__members_took(struct raft *r, const struct raft_entry *entry);
void raft__members_truncated(struct raft *r);
void raft__members_dropping(struct raft *r, uint64_t index);
void raft__members_replace(struct raft *r, const struct raft_snapshot *s);
void raft__progress_align(struct raft *r); /* progress is in step with members */
struct raft__progress *raft__progress_find(const struct raft *r, uint64_t id);
NODISCARD status raft__change(struct raft *r, enum raft_change_kind kind, uint64_t id);
bool raft__change_pending(const struct raft *r);

/* transfer.c */
NODISCARD status raft__transfer(struct raft *r, uint64_t to);
void raft__transfer_check(struct raft *r);
void raft__resign(struct raft *r); /* the own disk hangs: lead no more, and say who should */

/* quiesce.c */
bool raft__quiesce_offer(struct raft *r); /* in place of a heartbeat; false: not now */
void raft__quiesce_answer(struct raft *r, struct raft__progress *p, const struct raft_message *m);
void raft__consent_forget(struct raft *r);
void raft__fall_asleep(struct raft *r, const struct raft_message *m);
bool raft__asleep_after(const struct raft *r, const struct raft_message *m);
void raft__released(struct raft *r); /* nobody counts on its sleep any more: it is awake */
void raft__tell_awake(struct raft *r);
void raft__peer_down(struct raft *r, uint64_t peer);
void raft__peer_up(struct raft *r, uint64_t peer);

/* snapshot.c */
void raft__snapshot_needed(struct raft *r, struct raft__progress *p);
void raft__snapshot_offer(struct raft *r, struct raft__progress *p);
void raft__snapshot_ready(struct raft *r, const struct raft_input *in);
void raft__snapshot_failed(struct raft *r, uint64_t peer);
void raft__installed(struct raft *r, const struct raft_snapshot *s);
void raft__install_failed(struct raft *r);

/* follow.c: what all messages of a leader have in common. */
NODISCARD status raft__lead_check(const struct raft *r, const struct raft_message *m);
bool raft__lead_heard(struct raft *r, const struct raft_message *m); /* false: it is deposed */
void raft__acknowledge(struct raft *r);

/* recv_*.c */
NODISCARD status raft__recv(struct raft *r, const struct raft_message *m);
NODISCARD status raft__recv_append(struct raft *r, const struct raft_message *m);
NODISCARD status raft__recv_append_reply(struct raft *r, const struct raft_message *m);
NODISCARD status raft__recv_heartbeat(struct raft *r, const struct raft_message *m);
NODISCARD status raft__recv_heartbeat_reply(struct raft *r, const struct raft_message *m);
NODISCARD status raft__recv_vote(struct raft *r, const struct raft_message *m);
NODISCARD status raft__recv_vote_reply(struct raft *r, const struct raft_message *m);
NODISCARD status raft__recv_snapshot(struct raft *r, const struct raft_message *m);
NODISCARD status raft__recv_snapshot_reply(struct raft *r, const struct raft_message *m);
NODISCARD status raft__recv_timeout_now(struct raft *r, const struct raft_message *m);

/* invariants.c */
struct raft__before { /* what a step may not take back */
    uint64_t term, vote, commit, stored, seq;
    enum raft_role role;
};
struct raft__before raft__invariants_before(const struct raft *r);
void raft__invariants_after(const struct raft *r, const struct raft__before *before);

#endif
