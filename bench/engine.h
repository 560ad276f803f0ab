/*
 * bench/engine.h — many connections, one thread: runs a plan's operations for a while and measures.
 *
 * Closed loop: a client keeps DEPTH operations under way and sends the next one when an answer has
 * come. With BATCH, DEPTH operations share one Sync and one answer, as in a pgbench pipeline; on
 * PostgreSQL and metadb they are one implicit transaction then.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include "base/histogram.h"
#include "workload.h"
#include <sys/types.h>

struct engine_options {
    unsigned clients, idle, depth;
    bool batch;
    double seconds, warmup;     /* the measured window, and what precedes it */
    uint64_t count;             /* if not 0: stop after so many operations; no warm-up */
    pid_t server;               /* whose processor time is taken; 0: nobody's */
    const char *before, *after; /* shell commands around the operations, or NULL */
};

struct engine_result {
    struct histogram latency; /* ns, of operations that ended in the window */
    uint64_t measured;        /* how many did */
    uint64_t acknowledged;    /* all, from first to last */
    uint64_t errors;
    uint64_t begun, ended, drained; /* ns: the window, and the last answer */
    uint64_t least, most;           /* acknowledged, per client */
    double server_cores, client_cores, other_cores;
    char error[160]; /* the first one */
};

void engine_run(const struct target *t, const struct wire *w, const struct plan *plan,
                struct generator *g, const struct engine_options *o, struct engine_result *r);

#endif
