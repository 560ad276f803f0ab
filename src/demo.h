/*
 * demo.h — `metadb demo`: a cluster of several processes on loopback, to try things out.
 *
 *   metadb demo [--nodes N] [--data DIR] [--port PORT] [--NAME=VALUE ...]
 *
 * Every node is a `metadb start` of its own, with a file of settings, a data directory and a log
 * that stay in DIR. Without --data everything is under a temporary directory, which is removed at
 * the end. Other flags are settings of every node.
 */
#ifndef DEMO_H
#define DEMO_H

/* Runs until a signal ends it, or until no node is left. The exit status of the command. */
int demo_run(int argc, char **argv);

#endif
