/* cluster/forward_internal.h — the parts of the forwarder: forward.c commands, ask.c reads,
 * remote.c functions. */
#ifndef CLUSTER_FORWARD_INTERNAL_H
#define CLUSTER_FORWARD_INTERNAL_H

#include "cluster/forward.h"

/* Requests for read points that may be under way; later askers share the next one. */
#define CL_ASKS_UNDER_WAY 64u

/* The commands of one shard. */
struct cl_line {
    struct cl_shard *shard;
    struct list waiting, under_way; /* of cl_command, by number */
    unsigned waiting_count, under_way_count;
    uint64_t place;  /* where those under way are: a node; 0 = here */
    uint64_t epoch;  /* see struct cl_propose */
    bool draining;   /* one came back undone: no other leaves before all are back */
    bool withdrawn;  /* one of those that wait is */
    bool trial;      /* the last one failed: one at a time until one succeeds */
    hlc_ts log_time; /* the newest that a leader told */
};

struct cl_forward {
    struct cl_node *node;
    struct loop_timer *timer;
    struct obuf encoding;
    struct arena arena; /* of one answer */
    uint64_t numbers;
    struct cl_line lines[CL_SHARDS];
    size_t bytes;
    struct list asks;     /* not sent */
    struct list batches;  /* sent */
    struct list applying; /* known, and not yet applied */
    struct list ready;    /* to be ended in the next turn, with their outcome */
    struct list calls;    /* of functions, see remote.c */
    struct list recalls;  /* cancels of those, on their way */
    unsigned asks_under_way, ask_count;
    uint64_t sent, retried, unknown, asked, rounds;
    bool abandoned; /* nothing is taken any more */
};

uint64_t cl__forward_now(const struct cl_forward *f);
/* The end of a turn comes soon. */
void cl__forward_kick(struct cl_forward *f);
/* The node that S is led by and a connection leads to; 0: there is none, or it is this one. */
uint64_t cl__forward_leader(const struct cl_forward *f, const struct cl_shard *s);

/* ask.c */
void cl__asks_turn(struct cl_forward *f);
void cl__asks_abandon(struct cl_forward *f, status st);

/* remote.c */
void cl__calls_turn(struct cl_forward *f);
void cl__calls_abandon(struct cl_forward *f, status st);

#endif
