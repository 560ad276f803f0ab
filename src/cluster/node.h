/*
 * cluster/node.h — the composition root: data directory, store, log, shards, reactors, pools.
 *
 * cl_node_open recovers and leaves every shard a leader with its log replayed; from then on the
 * reactors own everything. Now one reactor owns all shards; connections may be on any reactor.
 */
#ifndef CLUSTER_NODE_H
#define CLUSTER_NODE_H

#include "base/config.h"
#include "base/env.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mailbox.h"
#include "base/pool.h"

struct cl_node;

/* Every setting of the server with type, default and help (cluster/settings.c). */
const struct config_setting *cl_settings(unsigned *count);
/* Do the values fit together? ST_INVALID: ERR names the setting. cl_node_open looks, too. */
NODISCARD status cl_settings_check(const struct config *config, struct err *err);

/* A loop thread and what belongs to it. */
struct cl_reactor {
    struct loop *loop;
    struct mailbox *mailbox;
    unsigned index;
};

/* Locks DIR, makes it when missing, checks identity and format, recovers. Errors name what to do:
 * ST_LOCKED (another process), ST_INVALID (foreign or newer format), ST_CORRUPT (damage), ST_IO. */
NODISCARD status cl_node_open(struct env *env, const struct config *config, const char *dir,
                              struct cl_node **out, struct err *err);
/* What stands in for threads where a simulator runs the node, on one thread and in virtual time. */
struct cl_transport_events;
struct kv_store;
struct cl_drive {
    struct loop *loop;      /* the reactor's (base/sim_loop.h); the node frees it */
    struct kv_store *store; /* in place of DIR's; outlives the node, as a disk does */
    /* A job waits in P, which is the node's: pool_step. */
    void (*submitted)(void *arg, struct pool *p);
    void *arg;
    /* In place of cl_host_events, which it calls; NULL: those. */
    const struct cl_transport_events *events;
};
/* As cl_node_open. There are no threads: cl_node_start only starts, and cl_node_step_log writes. */
NODISCARD status cl_node_open_driven(struct env *env, const struct config *config, const char *dir,
                                     const struct cl_drive *drive, struct cl_node **out,
                                     struct err *err);
/* One write of the log, or one step of its housekeeping. False: there was nothing to do. */
bool cl_node_step_log(struct cl_node *n);
/* Starts the reactors. READY runs on reactor 0 when clients may come: alone, when all shards serve;
 * among other nodes, when they have what was committed when this node joined, or nobody was there
 * to join for a while. Then a statement of a shard that is led elsewhere, or nowhere, ends with
 * ST_NOT_LEADER. FAILED runs once, on reactor 0, when the log or the store
 * is lost for good: the process must exit then. */
void cl_node_start(struct cl_node *n, void (*ready)(void *arg),
                   void (*failed)(void *arg, status st), void *arg);
/* From reactor 0: a stop is coming, clients end their last statements. Commands that wait for
 * memory are taken now: what frees it, a flush, may itself wait for mvcc.retention. */
void cl_node_drain(struct cl_node *n);
/* From reactor 0: stops accepting commands, waits for those under way, syncs, then calls DONE. */
void cl_node_stop(struct cl_node *n, void (*done)(void *arg), void *arg);
/* Joins threads and frees everything. After cl_node_stop's DONE. */
void cl_node_close(struct cl_node *n);

/* When it began, as a timestamptz. Any thread. */
int64_t cl_node_started(const struct cl_node *n);
struct env *cl_node_env(struct cl_node *n);
const struct config *cl_node_config(struct cl_node *n);
unsigned cl_node_reactor_count(const struct cl_node *n);
struct cl_reactor *cl_node_reactor(struct cl_node *n, unsigned i);
/* Threads of their own: a catalogue query may take seconds, and cold reads and flushes, which are
 * the node's, may not wait for it. */
struct pool *cl_node_query_pool(struct cl_node *n);
struct pool *cl_node_parse_pool(struct cl_node *n); /* 64 MiB stacks */

/* Memory for messages of clients that have not come whole; any thread. False: memory.messages has
 * no more, and the message is not to be waited for. */
bool cl_node_take_message_memory(struct cl_node *n, size_t more);
void cl_node_give_message_memory(struct cl_node *n, size_t less);

/* Databases: a name and its namespace. ST_NOT_FOUND. Now `metadb` (1) and `postgres` (2, for tools
 * that connect there first). */
NODISCARD status cl_database_find(struct cl_node *n, bytes name, uint32_t *ns);
const char *cl_database_at(struct cl_node *n, unsigned i, uint32_t *ns); /* NULL past the end */

#endif
