/*
 * The language of the scenarios in tests/data/raft: a few named cores, their disks and the network
 * between them, driven by commands. What each command does is in scenario.c; the file format is in
 * test_raft.c.
 */
#ifndef TESTS_RAFT_SCENARIO_H
#define TESTS_RAFT_SCENARIO_H

#include <stdbool.h>

struct scenario;

struct scenario *scenario_new(void);
void scenario_free(struct scenario *s);
/* Runs one line (changed while parsing); what happened is added to the output. False: unknown. */
bool scenario_command(struct scenario *s, char *line);
/* What happened since the last call; valid until the next command. */
const char *scenario_take(struct scenario *s);

#endif
