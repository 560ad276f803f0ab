/*
 * raft/log_internal.h — what the log_*.c files share: disk format, batches, segments, groups.
 *
 * Format (docs/on-disk.md has the byte tables). A stream is a directory of segment files
 * NNNNNNNNNNNN.log. A segment is a header block, then batches; every batch begins at a multiple of
 * RAFT__BLOCK and fills whole blocks, so that writing one never rewrites a sector of another. A
 * batch is a header, records of 32 bytes with their data, and zeros up to the block's end. All
 * integers are little-endian.
 *
 * Fields are marked with who may touch them: [loop] the owner of the log; [writer] the log thread,
 * or the loop where the loop writes; [keeper] the log's thread in both cases; [mu] under log->mu;
 * [const] fixed after open. Whoever steps a log without a thread is all of them.
 */
#ifndef RAFT_LOG_INTERNAL_H
#define RAFT_LOG_INTERNAL_H

#include "base/uring.h"
#include "raft/log.h"

#include <pthread.h>
#include <stdatomic.h>

#define RAFT__BLOCK 512u
#define RAFT__HANG_LOOK_US 1000u /* a hung disk of a test: how often it looks for the end of that */
#define RAFT__FORMAT 1u
#define RAFT__RECORD_BYTES 32u
#define RAFT__HEADER_BYTES 56u /* of a batch */
#define RAFT__PATH_BYTES 4096u
#define RAFT__SPARES_MAX 4u        /* recycled segments kept for reuse */
#define RAFT__FILL_STEP (1u << 20) /* zero-filling goes in steps of this size */
#define RAFT__INLINE_BYTES 4096u   /* entry data up to this size is copied into the batch */
#define RAFT__PENDING_BYTES_MIN (64u << 20) /* raft_log_admit refuses above this or 4 batches */
#define RAFT__FULL_RETRY_US 1000000u
#define RAFT__FILL_PAUSE_US 10000u  /* between steps of filling that nobody waits for */
#define RAFT__ROUNDS_MAX 8u         /* writes under way at a time */
#define RAFT__ROUND_KEEP (4u << 20) /* a larger buffer is not kept for the next round */

/* ---- positions and batch headers (log_batch.c) ---- */

struct raft__position {
    uint64_t segment, offset;
};

static inline bool raft__position_before(struct raft__position a, struct raft__position b)
{
    return a.segment != b.segment ? a.segment < b.segment : a.offset < b.offset;
}

enum raft__batch_kind {
    RAFT__BATCH_DATA = 1,
    RAFT__BATCH_CHECKPOINT = 2, /* first of a segment: hard state and cut of every group */
    RAFT__BATCH_MARK = 3, /* no records: carries the durable position after open and at close */
};

struct raft__batch_header {
    uint32_t kind, payload_bytes, record_count;
    uint64_t sequence;
    struct raft__position durable; /* everything before it was durable when this was written */
    uint64_t payload_sum;
};

/* Header and payload, rounded up to whole blocks. */
static inline uint64_t raft__batch_disk_bytes(uint64_t payload_bytes)
{
    uint64_t n = RAFT__HEADER_BYTES + payload_bytes;
    return (n + RAFT__BLOCK - 1) / RAFT__BLOCK * RAFT__BLOCK;
}

/* False unless the RAFT__HEADER_BYTES at SRC are a header that was written for this segment (SEED)
 * and this offset. */
bool raft__header_decode(const uint8_t *src, uint64_t seed, uint64_t offset,
                         struct raft__batch_header *out);
/* REST is what follows the header up to the batch's last block. */
bool raft__payload_valid(const struct raft__batch_header *header, bytes rest, uint64_t seed,
                         uint64_t offset);

enum raft__record_type { RAFT__RECORD_ENTRY = 1, RAFT__RECORD_HARD = 2, RAFT__RECORD_CUT = 3 };

struct raft__record {
    enum raft__record_type type;
    enum raft_entry_kind kind; /* of an entry */
    uint64_t group, term;
    uint64_t index; /* entry: its index; hard state: the vote; cut: up to here */
    bytes data;     /* of an entry; borrowed */
};

/* Calls FN for each of COUNT records; stops at its first error. ST_CORRUPT unless the payload is
 * exactly COUNT well-formed records. */
NODISCARD status raft__records_decode(bytes payload, uint32_t count,
                                      status (*fn)(void *arg, const struct raft__record *),
                                      void *arg);

/* ---- a batch under way (log_batch.c) ---- */

/* What a run of records means for the group table, applied once the run is durable. */
struct raft__note {
    enum raft__record_type type;
    uint64_t group;
    uint64_t a, b; /* entries: first and last index; hard state: term, vote; cut: index */
};

struct raft__piece { /* a large block, behind `upto` bytes of head */
    size_t upto;
    struct buf *data; /* one reference */
};

struct raft__batch {
    struct raft__batch *next;
    uint64_t ticket; /* 0 = closed by size; a later one carries the ticket */
    uint32_t kind, records, entries;
    uint64_t payload_bytes;
    struct obuf head; /* RAFT__HEADER_BYTES for the header, then records and small data */
    struct raft__piece *pieces;
    size_t piece_count, piece_capacity;
    struct raft__note *notes;
    size_t note_count, note_capacity;
    uint64_t submitted_us;
};

struct raft__batch *raft__batch_new(enum raft__batch_kind kind);
void raft__batch_free(struct raft__batch *b);
void raft__batch_entries(struct raft__batch *b, uint64_t group, const struct raft_entry *entries,
                         size_t count);
void raft__batch_hard_state(struct raft__batch *b, uint64_t group, struct raft_hard_state hs);
void raft__batch_cut(struct raft__batch *b, uint64_t group, uint64_t index);
/* Computes the sums for this place and writes the header into the batch's head. */
void raft__batch_seal(struct raft__batch *b, uint64_t seed, struct raft__position at,
                      uint64_t sequence, struct raft__position durable);
/* Copies the batch's bytes to DST, raft__batch_disk_bytes of them. */
void raft__batch_copy(const struct raft__batch *b, uint8_t *dst);

/* ---- groups and what each segment is needed for (log_gc.c) ---- */

struct raft__need {
    uint32_t group_at;   /* in groups.items */
    uint64_t last_index; /* highest entry of the group in this segment that still counts */
};

struct raft__segment {
    struct raft__segment *newer;
    uint64_t number, generation, size;
    uint64_t end;  /* where the next batch goes; of the newest in use, else where it stopped */
    uint64_t seed; /* of all checksums in it */
    struct env_file *file; /* open for the one being written and the prepared one */
    struct raft__need *needs;
    size_t need_count, need_capacity;
    size_t settled; /* needs before this one are cut for good */
};

struct raft__group {
    uint64_t id;
    struct raft_hard_state hard;
    bool has_hard;
    uint64_t cut, last_index;
    uint64_t need_segment; /* the newest segment with a need of this group, and where */
    size_t need_at;
};

struct raft__groups {
    struct raft__group *items;
    size_t count, capacity;
    uint32_t *buckets; /* open addressing; item position + 1, 0 = free */
    size_t bucket_count;
};

void raft__groups_fini(struct raft__groups *g);
struct raft__group *raft__groups_find(const struct raft__groups *g,
                                      uint64_t id); /* NULL if unknown */
/* Takes NOTE, whose records lie in SEGMENT, into account. OLDEST begins the list of segments. */
void raft__groups_note(struct raft__groups *g, struct raft__segment *oldest,
                       struct raft__segment *segment, const struct raft__note *note);
/* A batch that repeats all that older segments say beside entries. */
struct raft__batch *raft__groups_checkpoint(const struct raft__groups *g);
/* Does any group still need an entry of SEGMENT? Then *GROUP_AT is the first such. */
bool raft__segment_needed(const struct raft__groups *g, struct raft__segment *segment,
                          uint32_t *group_at);

/* ---- a round: the batches of one write (log_place.c) ---- */

struct raft__round {
    struct uring_op op; /* first, where the ring writes it */
    struct raft_log *log;
    struct raft__batch *first, *last;
    uint8_t *data; /* their bytes; aligned for direct writes */
    size_t capacity;
    uint64_t bytes, start, ticket, entries, batches;
    uint64_t begin_us, write_us, sync_us;
    /* Where the loop writes: */
    bool done;
    status result, injected; /* of the write; what a fault point wants it to be */
    uint64_t release_us;     /* reported not before this time */
};

/* ---- the log ---- */

struct raft__report; /* log_report.c: the mail that carries events to the loop */
struct raft__ring;   /* log_ring.c: the rounds under way where the loop writes */

struct raft__making { /* a file being zero-filled, step by step */
    struct env_file *file;
    bool reserve; /* what it becomes */
};

/* What the first batch that waits needs before it can be placed. */
enum raft__room_kind {
    RAFT__ROOM_FITS,
    RAFT__ROOM_NEXT, /* a next segment with this many bytes behind its header */
    RAFT__ROOM_GROW, /* the newest segment, still empty, with this size */
};
struct raft__room {
    enum raft__room_kind kind;
    uint64_t bytes;
};

struct raft_log {
    struct env *env;                 /* [const] */
    struct raft_log_options options; /* [const]; dir is owned */
    struct raft_log_events events;   /* [const after start] */

    /* [loop] */
    struct raft__batch *open;
    uint64_t next_ticket;
    bool full_seen; /* what admit and append judge by; refreshed by admit and submit */
    status failed_seen;
    bool started, threaded;
    pthread_t thread;
    struct raft__ring *ring; /* NULL unless the loop writes */

    pthread_mutex_t mu;
    pthread_cond_t wake;                                    /* the log's thread */
    struct raft__batch *queue_first, *queue_last;           /* [mu] submitted, not yet taken */
    uint64_t queue_bytes, queue_entries;                    /* [mu] */
    uint64_t pending_bytes;                                 /* [mu] submitted, not yet durable */
    enum { RAFT__AWAKE, RAFT__IDLE, RAFT__GROUPING } sleep; /* [mu] how the log's thread waits */
    bool stopping;                                          /* [mu] */
    bool full;                                              /* [mu] */
    status failed;                                          /* [mu] latched */
    struct raft__groups groups;            /* [mu] to change; [writer] and [loop] may read */
    struct raft__segment *oldest, *newest; /* [mu] to change; newest is being written */
    struct raft_log_stats stats;           /* [mu] */

    /* [mu] between a loop that writes and the keeper (log_keep.c) */
    struct raft__room wanted;      /* by the loop, until it is there */
    struct raft__segment *offered; /* the prepared segment; the loop takes it */
    bool offer_taken;              /* and the keeper has not noticed yet */
    bool keep_wanted;              /* a segment to close or to retire */
    bool keep_blocked;             /* the keeper found no space for what is wanted */
    uint64_t keep_writes;          /* stats.writes when the keeper last rested */
    pthread_cond_t kept;           /* `wanted` was met, or cannot be */

    /* [writer] */
    struct raft__batch *taken_first, *taken_last; /* out of the queue, not yet written */
    uint64_t placed;                              /* where the next round goes in `newest` */
    uint64_t sequence;                            /* of the next batch */
    struct raft__position durable;
    bool checkpoint_due;      /* the next write is the first of its segment */
    struct raft__round round; /* of whoever writes one at a time */

    /* [keeper] */
    struct raft__segment *next; /* prepared: named, with header, empty */
    uint64_t next_number;       /* of the segment that is made next */
    bool reserve;               /* the reserve file is there */
    bool tidy;                  /* nothing to prepare until a segment is used up */
    uint64_t spares[RAFT__SPARES_MAX];
    size_t spare_count;
    struct raft__making making;

    struct raft__report *report; /* shared with the mailbox */
};

/* ---- segment files (log_segment.c) ---- */

struct raft__identity { /* what a segment's header says beside its size */
    uint64_t cluster_id, store_id, number, generation;
    uint32_t stream, format;
};

uint64_t raft__segment_seed(const struct raft__identity *id);
/* BLOCK is the segment's first RAFT__BLOCK bytes. */
bool raft__segment_header_decode(const uint8_t *block, struct raft__identity *out);
void raft__segment_header_encode(uint8_t *block, const struct raft__identity *id);
/* OUT has RAFT__PATH_BYTES. KIND: "%012u.log" and so on, see the .c file. */
void raft__segment_path(char *out, const char *dir, uint64_t number);
void raft__spare_path(char *out, const char *dir, uint64_t number);
/* True if NAME is a segment's (then *NUMBER) or, for the second, a spare's. */
bool raft__segment_name(const char *name, uint64_t *number);
bool raft__spare_name(const char *name, uint64_t *number);

struct raft__segment *raft__segment_new(uint64_t number, uint64_t generation, uint64_t seed,
                                        uint64_t size);
void raft__segment_free(struct env *env, struct raft__segment *s);
/* Removes files of half-done work, finds spares and the reserve. */
NODISCARD status raft__segment_adopt(struct raft_log *log);
/* One bounded step towards a prepared next segment and a reserve; *MORE: another step is due.
 * ST_OK also when the disk is full, which it notes in log->full. */
NODISCARD status raft__segment_prepare(struct raft_log *log, bool *more);
/* Makes log->next at once, from the reserve if the disk is full, with ROOM bytes behind its
 * header. ST_DISK_FULL. */
NODISCARD status raft__segment_force_next(struct raft_log *log, uint64_t room);
/* Makes the file of S, in which nothing stands yet, SIZE bytes large. ST_DISK_FULL. */
NODISCARD status raft__segment_grow(struct raft_log *log, struct raft__segment *s, uint64_t size);
/* Opens the file of segment NUMBER as its writer: for aligned writes, and as its only owner. */
NODISCARD status raft__segment_open(struct raft_log *log, uint64_t number, struct env_file **out);
/* The file of segment NUMBER is needed no more: becomes a spare or goes. */
NODISCARD status raft__segment_retire(struct raft_log *log, uint64_t number, uint64_t size);
/* Zeros over [FROM, size) wherever something else stands there, durably. */
NODISCARD status raft__segment_wipe(struct env *env, struct env_file *file, uint64_t from,
                                    uint64_t size);
void raft__full_set(struct raft_log *log, bool full);

/* ---- from batches to rounds and back (log_place.c) ---- */

/* Moves what was submitted behind what was taken. */
void raft__take_submitted(struct raft_log *log);
/* Something was taken; what does its first batch need? */
struct raft__room raft__room_wanted(const struct raft_log *log);
/* Puts NEXT in place of the full segment, in which nothing is under way. */
void raft__rotate(struct raft_log *log, struct raft__segment *next);
/* The first taken batch fits: cuts off of the taken ones what fits too and writes their bytes, with
 * the checkpoint that is due before them, into R. */
void raft__round_build(struct raft_log *log, struct raft__round *r);
/* R and everything before it is durable: notes, counters. False, and nothing done, if the log has
 * failed meanwhile. */
bool raft__round_note(struct raft_log *log, const struct raft__round *r);
/* Frees the batches; keeps a buffer of usual size for the next round. */
void raft__round_clear(struct raft__round *r);
void raft__round_fini(struct raft__round *r); /* frees them all */
void raft__batches_free(struct raft__batch **first, struct raft__batch **last);
/* Does nobody need the oldest segment any more? Takes the lock. */
bool raft__oldest_retirable(struct raft_log *log);
status raft__failed(struct raft_log *log); /* takes the lock */
/* Latches ST. Any thread of the log; what was taken stays. */
void raft__latch(struct raft_log *log, status st);

/* ---- one write at a time (log_write.c) ---- */

enum raft__work { RAFT__WORK_NONE, RAFT__WORK_DONE, RAFT__WORK_BLOCKED };
/* Takes what was submitted; one write and one sync of what fits the segment; reports. */
enum raft__work raft__write_step(struct raft_log *log);
/* A batch without records that says how far the log is durable. */
NODISCARD status raft__write_mark(struct raft_log *log);
void *raft__write_thread(void *arg);
/* Retires segments at the old end that nobody needs. */
NODISCARD status raft__retire_unneeded(struct raft_log *log);
/* Under mu. False on timeout. */
bool raft__wait_us(struct raft_log *log, pthread_cond_t *cond, uint64_t us);

/* ---- the loop writes, several at a time (log_ring.c) ---- */

/* How a round gets to the disk. `write` ends in raft__ring_done, never from inside; `wait` blocks
 * until one has. Tests put a disk of their own here. */
struct raft__ring_io {
    void *arg;
    void (*write)(void *arg, struct raft__round *r);
    void (*wait)(void *arg);
};
/* NULL where it is not possible. LOOP may be NULL with an IO of a test: no timers then. */
struct raft__ring *raft__ring_new(struct raft_log *log, struct loop *loop,
                                  const struct raft__ring_io *io);
/* Writes what waits and can be written; no event arrives from now on. */
void raft__ring_drain(struct raft_log *log);
void raft__ring_free(struct raft_log *log); /* waits for what is under way */
/* Begins rounds for what was submitted, as many as may be under way. */
void raft__ring_kick(struct raft_log *log);
void raft__ring_done(struct raft__round *r, status st);
/* As raft_log_start, but with this IO and without a thread. */
void raft__ring_start(struct raft_log *log, const struct raft__ring_io *io,
                      const struct raft_log_events *events);

/* ---- segments for a loop that writes (log_keep.c) ---- */

void *raft__keep_thread(void *arg);
/* One step of what there is to do. */
enum raft__work raft__keep_step(struct raft_log *log);
/* Loop: WANTED is met by a later raft__ring_kick. */
void raft__keep_want(struct raft_log *log, struct raft__room wanted);
/* Loop: a segment was rotated away or may have become unneeded. */
void raft__keep_wake(struct raft_log *log);

/* ---- events (log_report.c) ---- */

struct raft__report *raft__report_new(struct raft_log *log, struct mailbox *mailbox);
void raft__report_close(struct raft__report *r);
/* To be told on the loop: stored up to TICKET (0: nothing new), failed with FAILED (ST_OK: not).
 * A loop that writes is kicked too. Any thread of the log. */
void raft__report_send(struct raft__report *r, uint64_t ticket, status failed);
/* Loop, not from inside a call of the owner: the same, at once. */
void raft__report_now(struct raft__report *r, uint64_t ticket);

/* ---- reading (log_recover.c) ---- */

struct raft__scan_segment {
    uint64_t number, size, seed;
    struct raft__identity identity;
    bool blank; /* the newest file and nothing but zeros, also no header */
};

struct raft__scan_events {
    void *arg;
    /* A valid batch in sequence. PAYLOAD is borrowed for the call. */
    status (*on_batch)(void *arg, const struct raft__scan_segment *segment, uint64_t offset,
                       const struct raft__batch_header *header, bytes payload);
};

struct raft__scan {
    struct raft__scan_segment *segments; /* ascending, contiguous numbers */
    size_t count;
    size_t last; /* position in `segments` of the one where the log ends; 0 if there is none */
    struct raft__position end;    /* behind the last valid batch */
    struct raft__position marked; /* highest durable position that any valid header carries */
    uint64_t sequence;            /* of the next batch; 1 in a new log */
    uint64_t batches;             /* valid ones */
    bool cut;                     /* whole headers stand behind the end */
};

/* Reads the whole log and decides where it ends. EXPECT may be NULL (any identity). Changes
 * nothing. ST_CORRUPT, ST_INVALID as raft_log_open. The caller frees with raft__scan_fini. */
NODISCARD status raft__scan_run(struct env *env, const char *dir,
                                const struct raft_log_options *expect,
                                const struct raft__scan_events *events, struct raft__scan *out,
                                struct err *err);
void raft__scan_fini(struct raft__scan *scan);
/* raft_log_open's work on a log that has its options. */
NODISCARD status raft__recover(struct raft_log *log, const struct raft_log_recovery *recovery,
                               struct err *err);

/* Releases everything without writing, as a crash would. For tests with a simulated disk. */
void raft__log_abandon(struct raft_log *log);

#endif
