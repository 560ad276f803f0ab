/*
 * raft/log.h — one log stream: the durable, ordered records of all groups of a reactor.
 *
 * Records are collected into a batch; a batch is one vectored write and one data sync; a few
 * batches may be in flight. "Stored" is reported on the loop, in order, one call per batch.
 * Segments are zero-filled and recycled; a checksum is seeded with stream, segment number and reuse
 * generation; every batch header carries the offset known durable when it was written. At open,
 * bad bytes below the highest such offset are damage (ST_CORRUPT, nothing is changed); everything
 * from the first bad byte above it is cut, also later records that happen to be whole.
 *
 * A failed write or sync is latched for ever: on_failed is called once, nothing is stored any more,
 * and the owner stops the process. ENOSPC before anything of a batch was written is ST_DISK_FULL
 * from raft_log_append for later batches and heals when space returns.
 */
#ifndef RAFT_LOG_H
#define RAFT_LOG_H

#include "base/env.h"
#include "base/err.h"
#include "base/histogram.h"
#include "base/mailbox.h"
#include "raft/raft.h"

struct raft_log;

/* Who writes. THREAD: a thread per log, woken for a batch when it sleeps. URING: the loop itself,
 * through io_uring, with `inflight` writes under way; needs a real file system with direct I/O.
 * AUTO: the one that measured better (docs/decisions/0004-log-writer.md) where it is possible. */
enum raft_log_writer { RAFT_LOG_AUTO, RAFT_LOG_THREAD, RAFT_LOG_URING };

struct raft_log_options {
    const char *dir; /* of this stream; made when missing */
    uint64_t cluster_id, store_id;
    uint32_t stream;
    uint64_t segment_bytes;
    uint64_t batch_bytes; /* close a batch above it */
    uint32_t batch_entries;
    uint64_t group_wait_us; /* let a batch wait this long for more; 0 = never */
    uint64_t sync_delay_us; /* measurement only: added to each sync */
    bool keep_all;          /* test setting: cut nothing */
    enum raft_log_writer writer;
    unsigned inflight; /* writes under way at a time, where the loop writes; 0 = 3 */
};

/* What recovery hands over, oldest first. Later records win over earlier ones: an entry replaces
 * entries of its group with the same or a higher index. */
struct raft_log_recovery {
    void *arg;
    void (*on_hard_state)(void *arg, uint64_t group, struct raft_hard_state hs);
    /* Is the data of this entry needed? Otherwise it comes without. NULL: always. */
    bool (*wanted)(void *arg, uint64_t group, uint64_t index);
    /* ENTRY is borrowed; take a reference of its data to keep it. */
    status (*on_entry)(void *arg, uint64_t group, const struct raft_entry *entry);
    /* Entries of GROUP up to INDEX were no longer needed when the log was last written. */
    void (*on_cut)(void *arg, uint64_t group, uint64_t index);
};

/* Recovers, repairs the tail and leaves the log ready for raft_log_start. Blocking; at start-up.
 * ST_CORRUPT: damage below the durable offset; ERR names segment and offset. ST_INVALID: the
 * directory belongs to another cluster, store or format. */
NODISCARD status raft_log_open(struct env *env, const struct raft_log_options *options,
                               const struct raft_log_recovery *recovery, struct raft_log **out,
                               struct err *err);

struct raft_log_events {
    void *arg;
    /* Every record handed over before the call raft_log_submit that returned TICKET is durable. */
    void (*on_stored)(void *arg, uint64_t ticket);
    void (*on_failed)(void *arg, status st); /* latched; once */
};
/* Starts writing; events arrive on MAILBOX's loop, never from inside a call. An event may stand for
 * several tickets: the last of them. MAILBOX NULL: no thread; the owner calls raft_log_step, and
 * events come from inside it (simulation, tests). */
void raft_log_start(struct raft_log *log, struct mailbox *mailbox,
                    const struct raft_log_events *events);
/* Without a thread: one write of what was submitted, or one step of housekeeping. False when there
 * was nothing to do. */
bool raft_log_step(struct raft_log *log);
/* Writes what is pending, stops the thread, closes; no event arrives after it. On the loop's thread
 * or after the loop has stopped. NULL is fine. */
void raft_log_close(struct raft_log *log);

/* Loop thread. Would SIZE bytes more of commands be taken now? Ask before proposing: what the core
 * has appended cannot be taken back. After ST_OK appends are not refused until raft_log_submit.
 * ST_DISK_FULL; ST_NO_MEMORY: too much waits to be written; ST_IO: the log has failed. */
NODISCARD status raft_log_admit(struct raft_log *log, size_t size);
/* Loop thread. Adds records to the open batch; takes references of entry data. ST_DISK_FULL, ST_IO
 * (the log has failed): nothing was added. */
NODISCARD status raft_log_append(struct raft_log *log, uint64_t group,
                                 const struct raft_entry *entries, size_t count);
NODISCARD status raft_log_hard_state(struct raft_log *log, uint64_t group,
                                     struct raft_hard_state hs);
/* Closes the open batch and hands it to the writer (or lets it wait group_wait_us). Returns the
 * batch's ticket, 0 when there was nothing to write. Tickets ascend by one. */
uint64_t raft_log_submit(struct raft_log *log);
/* GROUP needs nothing up to INDEX any more. Segments that nobody needs are recycled, unless
 * keep_all. What pins the oldest segment: raft_log_oldest. */
void raft_log_cut(struct raft_log *log, uint64_t group, uint64_t index);
/* The group whose need is the oldest, and the bytes from there to the end; for a forced flush. */
void raft_log_oldest(const struct raft_log *log, uint64_t *group, uint64_t *held_bytes);
/* The groups that need a segment with more than LIMIT bytes from its beginning to the log's end,
 * at most MAX of them. Returns how many. */
size_t raft_log_pinning(const struct raft_log *log, uint64_t limit, uint64_t *groups, size_t max);

struct raft_log_stats {
    uint64_t batches, entries, bytes, syncs, writes, segments, segments_recycled;
    uint64_t wakeups; /* of the log's thread; where the loop writes it only prepares segments */
    enum raft_log_writer writer; /* the one at work; never AUTO after raft_log_start */
    bool disk_full;              /* appends are refused at present */
    status failed;               /* ST_OK or what was latched */
    /* microseconds, but batch_entries in entries */
    struct histogram group_wait, queued_wait, write, sync, batch, batch_entries;
};
/* A copy for views and metrics; loop thread. */
void raft_log_stats(const struct raft_log *log, struct raft_log_stats *out);

/* Offline, for `metadb log dump` and `check`: reads without changing anything. FN gets one line
 * per record. ST_CORRUPT as raft_log_open. */
NODISCARD status raft_log_inspect(struct env *env, const char *dir,
                                  void (*fn)(void *arg, const char *line), void *arg,
                                  struct err *err);

#endif
