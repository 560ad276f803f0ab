/*
 * raft/message.h — what replicas of a group say to each other, and its bytes.
 *
 * A message is a plain struct. The core lends those it sends until its next step; a decoded one
 * owns its entries until raft_message_fini. Which group it belongs to and whether the sender may
 * speak for its cluster is the transport's business.
 *
 * Leader to others: APPEND, HEARTBEAT, SNAPSHOT (an offer: metadata only, the host moves the
 * data), TIMEOUT_NOW. Candidate to voters: VOTE. The rest are answers.
 *
 * seq ascends with every message a leader sends, sent_ms is its clock at that moment; an answer
 * repeats both. So a leader knows which questions were heard after which moment: that is its
 * lease and its proof for reads.
 */
#ifndef RAFT_MESSAGE_H
#define RAFT_MESSAGE_H

#include "raft/raft.h"

#define RAFT_APPEND_ENTRIES_MAX 4096u

enum raft_message_kind {
    RAFT_MSG_APPEND = 1,
    RAFT_MSG_APPEND_REPLY,
    RAFT_MSG_HEARTBEAT,
    RAFT_MSG_HEARTBEAT_REPLY,
    RAFT_MSG_VOTE,
    RAFT_MSG_VOTE_REPLY,
    RAFT_MSG_SNAPSHOT,
    RAFT_MSG_SNAPSHOT_REPLY,
    RAFT_MSG_TIMEOUT_NOW,
    RAFT_MSG_KINDS /* one more than the last */
};

/* Leader to others: in every APPEND, HEARTBEAT and SNAPSHOT. */
struct raft_lead {
    uint64_t seq, sent_ms;
    uint64_t commit;
    uint64_t settled;    /* every member has the log up to here */
    uint64_t read_bound; /* see raft_read_bound */
};

/* Answers to it. */
struct raft_ack {
    uint64_t seq, sent_ms;
    uint64_t match;      /* durable here and the same as at the leader */
    uint64_t last;       /* the same as at the leader, durable or not */
    uint64_t commit;     /* known here */
    uint64_t read_bound; /* the highest heard of */
};

enum raft_snapshot_verdict {
    RAFT_SNAPSHOT_ACCEPTED = 1, /* the host fetches it */
    RAFT_SNAPSHOT_REFUSED,      /* fetching or installing failed */
    RAFT_SNAPSHOT_DONE,         /* installed, or not needed: see ack.match */
};

struct raft_message {
    enum raft_message_kind kind;
    uint64_t from, to; /* replica ids */
    uint64_t term;     /* a pre-vote and its consent: the term that the candidate would open */
    union {
        struct raft_lead lead; /* APPEND, HEARTBEAT, SNAPSHOT */
        struct raft_ack ack;   /* APPEND_REPLY, HEARTBEAT_REPLY, SNAPSHOT_REPLY */
    };
    union {
        struct {
            uint64_t prev_index, prev_term;
            const struct raft_entry *entries; /* prev_index + 1 and on */
            size_t count;
        } append;
        struct {
            bool refused;                   /* prev does not match; the rest is 0 otherwise */
            uint64_t prev_index;            /* which was asked for */
            uint64_t hint_index, hint_term; /* the best place to try next */
        } append_reply;
        struct {
            bool quiet;   /* asks for no answer: tells the commit index */
            bool quiesce; /* nothing will follow: sleep if all is here up to lead.commit */
        } heartbeat;
        struct {
            uint64_t installing; /* index of the snapshot under way here, or 0 */
            bool asleep;         /* agrees to sleep */
        } heartbeat_reply;
        struct {
            bool pre;      /* would you vote for me? */
            bool transfer; /* the leader itself asked for this election */
            uint64_t last_index, last_term;
        } vote;
        struct {
            bool pre, granted;
            uint64_t read_bound;
        } vote_reply;
        struct raft_snapshot snapshot;
        struct {
            enum raft_snapshot_verdict verdict;
            uint64_t index; /* of the snapshot */
        } snapshot_reply;
    };
};

const char *raft_message_name(enum raft_message_kind kind);

/* What can be said of a message without its receiver: ST_PROTOCOL if it cannot be true. */
NODISCARD status raft_message_check(const struct raft_message *m);

void raft_message_encode(const struct raft_message *m, struct obuf *out);
/* Of an append without entries; what entries add: raft_entry_size. Upper bounds. */
#define RAFT_MESSAGE_BYTES_MAX 512u
/* ST_PROTOCOL: not a message of this version; OUT needs no fini then. */
NODISCARD status raft_message_decode(bytes src, struct raft_message *out);
void raft_message_fini(struct raft_message *m); /* of a decoded one */

#endif
