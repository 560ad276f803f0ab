/*
 * cluster/settings.c — every setting of the server, in one table.
 *
 * A setting is here and nowhere else: file, environment and flags are checked against this table,
 * and metadb.settings shows it. Values are fixed after start-up. cl__options_read turns those that
 * the cluster layer uses into numbers once, so that no hot path looks a name up.
 */
#include "base/assert.h"
#include "base/limits.h"
#include "cluster/cluster_internal.h"
#include "cluster/peer_tls.h"
#include <string.h>
#include <unistd.h>

#define KB (1ll << 10)
#define MB (1ll << 20)
#define GB (1ll << 30)
#define SECOND 1000000ll

static const struct config_setting settings[] = {
    {"listen", CONFIG_STRING, "127.0.0.1:7432", 0, 0, NULL,
     "address and port for clients; port 0 takes any free one"},
    {"max_connections", CONFIG_INT, "10000", 1, 100000, NULL,
     "clients beyond it are refused with 53300"},
    {"superuser_reserved_connections", CONFIG_INT, "3", 0, 1000, NULL,
     "of max_connections, so many are for superusers"},
    {"log_level", CONFIG_ENUM, "info", 0, 0, "debug|info|warn|error",
     "events below it are not written"},
    {"reactors", CONFIG_INT, "1", 1, 1, NULL,
     "loop threads; a later version spreads connections and shards over several"},
    {"pool.threads", CONFIG_INT, "4", 1, 256, NULL, "threads for cold and long reads"},
    {"pool.readers", CONFIG_INT, "-1", -1, 64, NULL,
     "pool threads that long reads may use beside the reactor; -1 is one for each further core"},
    {"parse.threads", CONFIG_INT, "2", 1, 64, NULL,
     "threads that parse statements of unknown shape"},

    {"auth.rule", CONFIG_LIST, "", 0, 0, NULL,
     "who is let in, and how: TYPE DATABASE USER ADDRESS METHOD; given several times, the first "
     "that "
     "fits decides"},
    {"auth.timeout", CONFIG_TIME_US, "60s", SECOND, 600 * SECOND, NULL,
     "a client that has not logged in by then is cut off"},
    {"auth.pending", CONFIG_INT, "1000", 1, 100000, NULL,
     "clients that have not logged in yet; one more, and the oldest of them goes"},
    {"auth.scram_iterations", CONFIG_INT, "4096", 1, 10000000, NULL,
     "rounds of hashing for passwords set from now on"},
    {"tls.certificate", CONFIG_STRING, "", 0, 0, NULL,
     "PEM file with the server's certificate and its chain; without one there is no TLS"},
    {"tls.key", CONFIG_STRING, "", 0, 0, NULL, "PEM file with its private key"},
    {"tls.client_ca", CONFIG_STRING, "", 0, 0, NULL,
     "PEM file with the authorities that sign clients' certificates"},

    {"memory.budget", CONFIG_SIZE, "0", 0, 1ll << 50, NULL,
     "memory for memtables and block cache together, at least 1MB; 0 is a quarter of the machine"},
    {"cache.runs_percent", CONFIG_INT, "25", 0, 100, NULL,
     "of the memory for the block cache: keeps flushed entries in order for listings; 0 keeps "
     "none"},
    {"memtable.bytes", CONFIG_SIZE, "64MB", 64 * KB, 16 * GB, NULL,
     "a shard's memtable above it is sealed and flushed"},
    {"memtable.age", CONFIG_TIME_US, "5min", SECOND, 86400 * SECOND, NULL,
     "a memtable older than it is sealed and flushed"},
    {"store.write_buffer", CONFIG_SIZE, "16MB", MB, GB, NULL, "write buffer of RocksDB"},
    {"store.background_threads", CONFIG_INT, "2", 1, 64, NULL, "RocksDB's own threads"},
    {"compaction.mode", CONFIG_ENUM, "local", 0, 0, "local|global",
     "local: ranges where much was deleted are compacted alone; global: only what the store's "
     "levels ask for, as databases do that do not look where deletions lie"},
    {"compaction.tombstones", CONFIG_INT, "10000", 16, 1ll << 40, NULL,
     "deletions in a narrow range of keys that are worth a compaction"},
    {"compaction.work", CONFIG_SIZE, "4kB", 1, GB, NULL,
     "a range is compacted when it has a deletion for so many bytes that are rewritten"},
    {"compaction.rate", CONFIG_SIZE, "64MB", MB, 1ll << 40, NULL,
     "bytes that such compactions read and write in a second, on average"},

    {"log.segment_bytes", CONFIG_SIZE, "64MB", MB, 4 * GB, NULL, "size of a log segment file"},
    {"log.batch_bytes", CONFIG_SIZE, "1MB", 4 * KB, 64 * MB, NULL,
     "a log batch above it is closed"},
    {"log.batch_entries", CONFIG_INT, "4096", 1, 1000000, NULL, "the same in entries"},
    {"log.group_wait", CONFIG_TIME_US, "0", 0, SECOND, NULL,
     "let a log batch wait this long for more; 0 closes it when the sockets are drained"},
    {"log.sync_delay", CONFIG_TIME_US, "0", 0, SECOND, NULL,
     "for measurements: added to every sync of the log"},
    {"log.writer", CONFIG_ENUM, "auto", 0, 0, "auto|thread|uring",
     "who writes the log: a thread, or the loop through io_uring; auto is uring where it is "
     "possible"},
    {"log.inflight", CONFIG_INT, "3", 1, CL_INFLIGHT_MAX, NULL,
     "log batches under way at most; later commands wait and merge"},
    {"log.retain_bytes", CONFIG_SIZE, "128MB", 2 * MB, 1ll << 50, NULL,
     "a shard that pins more log than this is flushed; bounds what a start reads and replays"},
    {"log.keep_all", CONFIG_BOOL, "off", 0, 0, NULL, "for tests: never cut the log"},

    {"cluster.id", CONFIG_INT, "0", 0, INT64_MAX, NULL,
     "id that all nodes of a cluster share; 0 only without cluster.nodes"},
    {"cluster.node", CONFIG_INT, "0", 0, INT64_MAX, NULL, "which of cluster.nodes this one is"},
    {"cluster.nodes", CONFIG_STRING, "", 0, 0, NULL,
     "all nodes, each ID=ADDRESS/ADDRESS (for nodes, for clients); empty: this node alone"},
    {"cluster.join", CONFIG_BOOL, "off", 0, 0, NULL,
     "a new directory waits to be added to a cluster that is there (metadb.add_replica)"},
    {"cluster.tls_certificate", CONFIG_STRING, "", 0, 0, NULL,
     "PEM file with this node's certificate, its name node-ID, for the other nodes; without it "
     "they "
     "talk in the clear"},
    {"cluster.tls_key", CONFIG_STRING, "", 0, 0, NULL, "PEM file with its private key"},
    {"cluster.tls_ca", CONFIG_STRING, "", 0, 0, NULL,
     "PEM file with the authorities that sign nodes' certificates"},
    {"net.queue_bytes", CONFIG_SIZE, "32MB", MB, GB, NULL,
     "what may wait for one other node; messages above it are dropped and sent again later"},
    {"raft.election", CONFIG_TIME_US, "1s", 100000, 60 * SECOND, NULL,
     "after so much silence of a shard's leader the other nodes elect one"},
    {"raft.heartbeat", CONFIG_TIME_US, "100ms", 10000, 10 * SECOND, NULL,
     "a leader gives a sign of life so often; less than half of raft.election"},
    {"raft.quiesce", CONFIG_TIME_US, "1s", 0, 3600 * SECOND, NULL,
     "a shard of which nothing was asked for so long sleeps; 0 = never"},
    {"raft.hand_over", CONFIG_TIME_US, "1s", 0, 60 * SECOND, NULL,
     "a stop lets other nodes lead the shards that are led here, for so long at most"},
    {"raft.keep", CONFIG_SIZE, "64MB", 16 * KB, GB, NULL,
     "of each shard's log that others lack, in memory; behind it they get a snapshot, and while "
     "one "
     "is under way four times as much is kept"},
    {"cluster.patience", CONFIG_TIME_US, "5s", 10000, 3600 * SECOND, NULL,
     "a statement waits so long for a leader; then it is refused, or its outcome is unknown"},
    {"net.delay", CONFIG_TIME_US, "0", 0, SECOND, NULL,
     "for measurements: added to every frame to another node"},

    {"sink.linger", CONFIG_TIME_US, "2ms", 0, SECOND, NULL,
     "quota and index updates go with clients' commands, dozens together or after ten times this; "
     "alone when no command came for this long"},
    {"sink.batch_records", CONFIG_INT, "512", 1, 100000, NULL, "commands' updates in one batch"},
    {"sink.batch_bytes", CONFIG_SIZE, "256kB", KB, 4 * MB, NULL, "bytes of one batch"},

    {"mvcc.retention", CONFIG_TIME_US, "6s", 1000, 3600 * SECOND, NULL,
     "log time for which old versions stay in memory; below 6s only for tests, since a transaction "
     "may then miss a conflict"},
    {"recovery.flush_at_stop", CONFIG_BOOL, "on", 0, 0, NULL,
     "a stop writes memtables to the store, for eight seconds at most, so that the next start "
     "has "
     "nothing to replay"},
    {"recovery.empty_store", CONFIG_BOOL, "off", 0, 0, NULL,
     "for tests: replay a log that was kept whole (log.keep_all) into an empty store"},

    {"transaction.memory", CONFIG_SIZE, "64MB", 64 * KB, 16 * GB, NULL,
     "memory of one open transaction; above it a statement fails with 53200"},
    {"transaction.memory_total", CONFIG_SIZE, "512MB", MB, 1ll << 50, NULL,
     "memory of all open transactions"},
    {"memory.messages", CONFIG_SIZE, "256MB", MB, 1ll << 50, NULL,
     "memory of clients' messages above 64kB that have not come whole; one more is dropped with "
     "53200"},
};

const struct config_setting *cl_settings(unsigned *count)
{
    *count = ARRAY_LEN(settings);
    return settings;
}

static uint64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : (uint64_t)GB;
}

static uint64_t number(const struct config *c, const char *name)
{
    int64_t v = config_int(c, name);
    ASSERT(v >= 0);
    return (uint64_t)v;
}

static enum raft_log_writer log_writer(const char *name)
{
    if (strcmp(name, "thread") == 0)
        return RAFT_LOG_THREAD;
    return strcmp(name, "uring") == 0 ? RAFT_LOG_URING : RAFT_LOG_AUTO;
}

static unsigned long_read_threads(const struct config *c)
{
    int64_t readers = config_int(c, "pool.readers");
    int64_t pool = config_int(c, "pool.threads");
    if (readers < 0)
        readers = sysconf(_SC_NPROCESSORS_ONLN) - 1;
    return (unsigned)(readers < pool ? readers : pool);
}

void cl__options_read(const struct config *c, struct cl_options *o)
{
    uint64_t budget = number(c, "memory.budget");
    if (budget == 0)
        budget = machine_memory() / 4;
    uint64_t runs = budget / 200 * number(c, "cache.runs_percent");
    *o = (struct cl_options){
        .memory_budget = budget,
        .memtables_budget = budget / 2,
        .block_cache_bytes = budget / 2 - runs,
        .runs_bytes = runs,
        .memtable_bytes = number(c, "memtable.bytes"),
        .memtable_age_us = number(c, "memtable.age"),
        .write_buffer_bytes = number(c, "store.write_buffer"),
        .background_threads = (unsigned)number(c, "store.background_threads"),
        .compact_mode = strcmp(config_string(c, "compaction.mode"), "local") == 0
                            ? CL_COMPACT_LOCAL
                            : CL_COMPACT_GLOBAL,
        .compact_tombstones = number(c, "compaction.tombstones"),
        .compact_work = number(c, "compaction.work"),
        .compact_rate = number(c, "compaction.rate"),
        .pool_threads = (unsigned)number(c, "pool.threads"),
        .long_read_threads = long_read_threads(c),
        .parse_threads = (unsigned)number(c, "parse.threads"),
        .reactors = (unsigned)number(c, "reactors"),
        .inflight = (unsigned)number(c, "log.inflight"),
        .retain_bytes = number(c, "log.retain_bytes"),
        .sink_linger_us = number(c, "sink.linger"),
        .sink_records = (unsigned)number(c, "sink.batch_records"),
        .sink_bytes = number(c, "sink.batch_bytes"),
        .retention_us = number(c, "mvcc.retention"),
        .flush_at_stop = config_bool(c, "recovery.flush_at_stop"),
        .net_queue_bytes = number(c, "net.queue_bytes"),
        .net_delay_us = number(c, "net.delay"),
        .election_us = number(c, "raft.election"),
        .heartbeat_us = number(c, "raft.heartbeat"),
        .quiesce_us = number(c, "raft.quiesce"),
        .hand_over_us = number(c, "raft.hand_over"),
        .keep_bytes = number(c, "raft.keep"),
        .patience_us = number(c, "cluster.patience"),
        .empty_store = config_bool(c, "recovery.empty_store"),
        .txn_bytes = number(c, "transaction.memory"),
        .txn_bytes_total = number(c, "transaction.memory_total"),
        .message_bytes = number(c, "memory.messages"),
    };
    o->log = (struct cl_log_options){
        .segment_bytes = number(c, "log.segment_bytes"),
        .batch_bytes = number(c, "log.batch_bytes"),
        .batch_entries = (uint32_t)number(c, "log.batch_entries"),
        .group_wait_us = number(c, "log.group_wait"),
        .sync_delay_us = number(c, "log.sync_delay"),
        .keep_all = config_bool(c, "log.keep_all"),
        .writer = log_writer(config_string(c, "log.writer")),
    };
}

static status check_options(const struct cl_options *o, struct err *err)
{
    if (2 * o->heartbeat_us >= o->election_us) {
        err_set(err, ST_INVALID, "setting \"raft.heartbeat\" is too long for \"raft.election\"");
        err_hint(err, "A heartbeat takes less than half of an election's time.");
        return ST_INVALID;
    }
    if (o->memory_budget >= CL_MEMORY_BUDGET_MIN)
        return ST_OK;
    err_set(err, ST_INVALID, "setting \"memory.budget\": %llu bytes are too few",
            (unsigned long long)o->memory_budget);
    err_hint(err, "Give at least %u kB, or 0 for a quarter of the machine.",
             CL_MEMORY_BUDGET_MIN / 1024u);
    return ST_INVALID;
}

static status check_topology(const struct config *c, struct err *err)
{
    struct cl_topology t;
    ST_TRY(cl_topology_parse(config_string(c, "cluster.nodes"),
                             (uint64_t)config_int(c, "cluster.node"), &t, err));
    if (t.count > RAFT_VOTERS_MAX)
        return err_set(err, ST_INVALID, "setting \"cluster.nodes\": more than %u nodes",
                       RAFT_VOTERS_MAX);
    if (t.count == 0 || config_int(c, "cluster.id") != 0)
        return ST_OK;
    err_set(err, ST_INVALID, "setting \"cluster.nodes\" lists nodes, but \"cluster.id\" is 0");
    err_hint(err, "Choose a number and give it to every node of the cluster.");
    return ST_INVALID;
}

status cl_settings_check(const struct config *c, struct err *err)
{
    struct cl_options o;
    cl__options_read(c, &o);
    ST_TRY(check_options(&o, err));
    ST_TRY(cl_peer_tls_check(c, err));
    return check_topology(c, err);
}
