/*
 * cluster/flush_pace.h — how much of a processor a flush takes.
 *
 * A flush is work that nobody waits for while there is memory, and the processors are those that
 * clients' statements want. So its thread works for a millisecond, pauses, and takes a tenth of a
 * core; as memory fills, more, and all it can get before writes would have to wait. When somebody
 * waits for the flush itself it does not pause at all.
 */
#ifndef CLUSTER_FLUSH_PACE_H
#define CLUSTER_FLUSH_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Thousandths of a core. */
#define CL_FLUSH_SHARE_LEAST 100u
#define CL_FLUSH_SHARE_ALL 1000u

struct cl_flush_need {
    uint64_t memory, budget; /* bytes of memtables, and above which writes wait */
    unsigned running;        /* flushes that share it; at least 1 */
    bool waited_for;         /* by a stop, a start, metadb.flush(), a snapshot, the log's room */
};
/* What each of the running flushes may take. A pure function.
 *
 * Invariants
 *   W1  All, if the flush is waited for or memory is at half of its budget, where generations are
 *       sealed early.
 *   W2  Up to a quarter of the budget, a tenth of a core for all running flushes together.
 *   W3  Between these it rises with memory, in a straight line; it never falls as memory rises. */
unsigned cl_flush_share(const struct cl_flush_need *need);

struct cl_flush_pace;
struct cl_flush_pace *cl_flush_pace_new(void);
void cl_flush_pace_free(struct cl_flush_pace *p);
/* Reactor: from now on; ends pauses that are longer than SHARE asks for. */
void cl_flush_pace_set(struct cl_flush_pace *p, unsigned share);
/* Flush thread: where its work may pause. It remembers what its thread has used of a processor. */
struct cl_flush_work {
    struct cl_flush_pace *pace;
    uint64_t used_us; /* processor time of the thread at the last pause; 0: none yet */
};
void cl_flush_pause(void *work);

#endif
