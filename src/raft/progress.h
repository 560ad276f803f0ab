/*
 * raft/progress.h — what a leader knows of each member (Raft 5.3), and how much is under way to it.
 *
 *   PROBE --an append matched--> PIPELINE --refused or lost--> PROBE
 *     \--- the log here no longer goes back far enough ---> SNAPSHOT --done, failed--> PROBE
 *
 * A probe sends one append and waits; a pipeline sends as long as its window has room.
 */
#ifndef RAFT_PROGRESS_H
#define RAFT_PROGRESS_H

#include "raft/raft.h"

#define RAFT__WINDOW_MESSAGES 32u

struct raft__progress {
    uint64_t id;
    enum raft_member_role role;
    enum raft__progress_state { RAFT__PROBE, RAFT__PIPELINE, RAFT__SNAPSHOT } state;
    bool paused; /* a probe is under way */
    bool down;   /* the host says so */
    bool asleep; /* it has agreed to sleep, and counts as long as the leader does */

    uint64_t match;      /* durable there */
    uint64_t next;       /* to be sent; above match */
    uint64_t state_seq;  /* answers to messages up to this one are older than the state */
    uint64_t append_seq; /* of the last append or offer */
    uint64_t acked_seq;  /* of the newest message that was answered */
    uint64_t acked_ms;   /* when that one was sent; 0 = none */
    uint64_t heard_ms;   /* when it arrived */
    uint64_t commit_sent, commit_acked;
    uint64_t read_bound; /* it remembers */

    struct raft_snapshot snapshot; /* SNAPSHOT; index 0 = the host has not named one */
    bool snapshot_asked;           /* it was asked to */

    /* Pipelined appends that are not acknowledged, oldest first. */
    struct raft__under_way {
        uint64_t last, bytes;
    } window[RAFT__WINDOW_MESSAGES];
    unsigned window_first, window_count;
    uint64_t window_bytes;
};

/* The only place that assigns the state. SEQ: the newest message that was sent. */
void raft__progress_move(struct raft__progress *p, enum raft__progress_state next, uint64_t seq);
/* The log there is durable up to MATCH; false if that was known. */
bool raft__progress_match(struct raft__progress *p, uint64_t match);
bool raft__progress_room(const struct raft__progress *p, const struct raft_config *config);
/* An append up to entry LAST has left. */
void raft__progress_sent(struct raft__progress *p, uint64_t last, uint64_t size);

#endif
