/*
 * What scenario.c (commands) and scenario_say.c (what is printed) share.
 */
#ifndef TESTS_RAFT_SCENARIO_INTERNAL_H
#define TESTS_RAFT_SCENARIO_INTERNAL_H

#include "scenario.h"

#include "core_fixture.h"

#define NODES_MAX 8u
#define WORDS_MAX 32u
#define QUEUE_MAX 1024u
#define SETTLE_MAX 10000u

struct node {
    struct core core;
    struct raft_beacons beacons;
    bool slow, manual;
    uint64_t token;
};

struct scenario {
    struct node nodes[NODES_MAX];
    unsigned count;
    uint64_t now;
    struct raft_message queue[QUEUE_MAX];
    unsigned queued;
    bool cut[NODES_MAX][NODES_MAX];
    bool terse;
    char *words[WORDS_MAX];
    unsigned word_count;
    char out[1u << 16];
    size_t used;
};

/* scenario.c: the line being run. */
struct node *scenario__node(struct scenario *s, unsigned at); /* named by word AT */
uint64_t scenario__number(const struct scenario *s, unsigned at);

/* scenario_say.c */
void PRINTF_LIKE(2, 3) scenario__say(struct scenario *s, const char *format, ...);
void scenario__say_message(struct scenario *s, const struct raft_message *m);
void scenario__say_terse(struct scenario *s, const struct node *n, const struct raft_output *out);
void scenario__say_step(struct scenario *s, const struct node *n, status st,
                        const struct raft_output *out, uint64_t commit_before);
/* The commands that ask: false if the line is none. */
bool scenario__question(struct scenario *s);

#endif
