/*
 * raft/log_recover.c — reads a stream from its oldest segment, finds and repairs its end.
 *
 * The scan walks batches in sequence, across segments, to the first place P that holds no valid
 * next batch. Then it looks at every block behind P for valid batch headers: each carries the
 * position that was known durable when it was written. Let M be the highest of all of them.
 *
 *   M > P   what stood at P was durable once and is damaged now: ST_CORRUPT, nothing is changed;
 *   M <= P  nothing at or behind P was ever known durable: it is the torn end of the last writes,
 *           and all of it is cut, also batches that happen to be whole.
 *
 * A segment's last batch may end anywhere; the walk goes on in the next segment if that begins with
 * a checkpoint that has the next sequence number and says that the log was durable exactly up to P.
 *
 * Before all that the scan waits until the writes of a process that was killed have ended: requests
 * of io_uring outlive their process, but not the lock on the file that they hold open.
 *
 * The repair. (1) Segments behind the end become spares: a new life gives them a new generation,
 * which makes every batch in them invalid. (2) The rest of the last segment is overwritten with
 * zeros and synced: otherwise a stale batch could follow a new one that happens to end right before
 * it. (3) Batches in [M, P) may be in the page cache only: a killed process wrote but did not sync,
 * or a sync failed and the kernel marked the pages clean all the same. They are written again and
 * synced before anybody acts on them. (4) A mark batch says that the log is durable up to P.
 * Each step may be interrupted: the next scan finds the same P.
 *
 * V1  The scan changes nothing; the repair begins after it has succeeded.
 * V2  Nothing at or above P survives the repair in a form that a later scan could take for valid.
 * V3  After the repair everything below P is durable.
 */
#include "raft/log_internal.h"

#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WINDOW_BYTES (256u * 1024u)

/* ---- a window over one segment's file ---- */

struct window {
    struct env *env;
    struct env_file *file;
    uint8_t *data;
    size_t capacity, loaded;
    uint64_t from;
};

static status window_open(struct window *w, const char *dir, uint64_t number)
{
    char path[RAFT__PATH_BYTES];

    w->env->ops->close(w->env, w->file);
    w->file = NULL;
    w->loaded = 0;
    raft__segment_path(path, dir, number);
    return w->env->ops->open(w->env, path, ENV_READ, &w->file);
}

static void window_fini(struct window *w)
{
    w->env->ops->close(w->env, w->file);
    free(w->data);
}

/* Lends SIZE bytes at OFFSET; the caller has checked that the file has them. */
static status window_get(struct window *w, uint64_t offset, size_t size, const uint8_t **out)
{
    if (offset < w->from || offset + size > w->from + w->loaded) {
        size_t want = size < WINDOW_BYTES ? WINDOW_BYTES : size;
        if (want > w->capacity) {
            free(w->data);
            w->data = malloc(want);
            ASSERT(w->data != NULL);
            w->capacity = want;
        }
        w->from = offset;
        w->loaded = 0;
        ST_TRY(w->env->ops->pread(w->env, w->file, w->data, want, offset, &w->loaded));
        if (w->loaded < size)
            return ST_IO; /* the file shrank under us */
    }
    *out = w->data + (offset - w->from);
    return ST_OK;
}

/* ---- the files ---- */

struct numbers {
    uint64_t *items;
    size_t count, capacity;
};

static void numbers_add(void *arg, const char *name)
{
    struct numbers *n = arg;
    uint64_t number;

    if (!raft__segment_name(name, &number))
        return;
    if (n->count == n->capacity) {
        n->capacity = n->capacity ? n->capacity * 2 : 16;
        n->items = realloc(n->items, n->capacity * sizeof *n->items);
        ASSERT(n->items != NULL);
    }
    n->items[n->count++] = number;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static status list_segments(struct env *env, const char *dir, struct raft__scan *scan,
                            struct err *err)
{
    struct numbers n = {0};
    status st = env->ops->list(env, dir, numbers_add, &n);

    if (st == ST_OK && n.count > 0) {
        qsort(n.items, n.count, sizeof *n.items, compare_numbers);
        scan->segments = calloc(n.count, sizeof *scan->segments);
        ASSERT(scan->segments != NULL);
        scan->count = n.count;
    }
    for (size_t i = 0; st == ST_OK && i < n.count; i++) {
        scan->segments[i].number = n.items[i];
        if (i > 0 && n.items[i] != n.items[i - 1] + 1)
            st = err_set(err, ST_CORRUPT,
                         "%s: log segment %012" PRIu64 ".log is missing although older and newer "
                         "ones are there",
                         dir, n.items[i - 1] + 1);
    }
    free(n.items);
    return st;
}

static status check_identity(const char *dir, const struct raft__scan_segment *s,
                             const struct raft_log_options *expect, struct err *err)
{
    const struct raft__identity *id = &s->identity;

    if (id->format != RAFT__FORMAT)
        return err_set(err, ST_INVALID,
                       "%s/%012" PRIu64 ".log has log format %u, this program reads format %u", dir,
                       s->number, id->format, RAFT__FORMAT);
    if (id->number != s->number)
        return err_set(err, ST_CORRUPT, "%s/%012" PRIu64 ".log says that it is segment %" PRIu64,
                       dir, s->number, id->number);
    if (!expect)
        return ST_OK;
    if (id->cluster_id != expect->cluster_id || id->store_id != expect->store_id)
        return err_set(err, ST_INVALID,
                       "%s/%012" PRIu64 ".log belongs to cluster %016" PRIx64 " store %016" PRIx64
                       ", this is cluster %016" PRIx64 " store %016" PRIx64,
                       dir, s->number, id->cluster_id, id->store_id, expect->cluster_id,
                       expect->store_id);
    if (id->stream != expect->stream)
        return err_set(err, ST_INVALID,
                       "%s/%012" PRIu64 ".log belongs to log stream %u, this is stream %u", dir,
                       s->number, id->stream, expect->stream);
    return ST_OK;
}

static bool is_zero(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Is [FROM, size) nothing but zeros? */
static status rest_is_zero(struct window *w, uint64_t from, uint64_t size, bool *out)
{
    *out = true;
    while (*out && from < size) {
        size_t n = size - from < WINDOW_BYTES ? (size_t)(size - from) : WINDOW_BYTES;
        const uint8_t *p;
        ST_TRY(window_get(w, from, n, &p));
        *out = is_zero(p, n);
        from += n;
    }
    return ST_OK;
}

/* Reads the header of segment AT. A newest file without any byte set is blank, not damaged. */
static status read_segment_header(struct window *w, const char *dir, struct raft__scan *scan,
                                  size_t at, const struct raft_log_options *expect, struct err *err)
{
    struct raft__scan_segment *s = &scan->segments[at];
    const uint8_t *block;

    ST_TRY(window_open(w, dir, s->number));
    ST_TRY(w->env->ops->size(w->env, w->file, &s->size));
    if (s->size >= RAFT__BLOCK) {
        ST_TRY(window_get(w, 0, RAFT__BLOCK, &block));
        if (raft__segment_header_decode(block, &s->identity)) {
            s->seed = raft__segment_seed(&s->identity);
            return check_identity(dir, s, expect, err);
        }
    }
    if (at + 1 == scan->count) {
        ST_TRY(rest_is_zero(w, 0, s->size, &s->blank));
        if (s->blank)
            return ST_OK;
    }
    return err_set(err, ST_CORRUPT, "%s/%012" PRIu64 ".log: the segment header is damaged", dir,
                   s->number);
}

/* ---- batches ---- */

/* Reads the batch at OFFSET of segment S, whose file W has open. *VALID: header and payload are
 * whole. *HEADED: at least the header is. */
static status read_batch(struct window *w, const struct raft__scan_segment *s, uint64_t offset,
                         struct raft__batch_header *header, bytes *payload, bool *headed,
                         bool *valid)
{
    const uint8_t *p;

    *headed = *valid = false;
    if (s->size - offset < RAFT__BLOCK)
        return ST_OK;
    ST_TRY(window_get(w, offset, RAFT__BLOCK, &p));
    *headed = raft__header_decode(p, s->seed, offset, header);
    if (!*headed)
        return ST_OK;
    uint64_t size = raft__batch_disk_bytes(header->payload_bytes);
    if (size > s->size - offset)
        return ST_OK;
    ST_TRY(window_get(w, offset, (size_t)size, &p));
    bytes rest = bytes_make(p + RAFT__HEADER_BYTES, (size_t)size - RAFT__HEADER_BYTES);
    *valid = raft__payload_valid(header, rest, s->seed, offset);
    *payload = bytes_make(rest.data, header->payload_bytes);
    return ST_OK;
}

static void mark_raise(struct raft__scan *scan, struct raft__position durable)
{
    if (raft__position_before(scan->marked, durable))
        scan->marked = durable;
}

/* Reads the batch at the walk's end and moves past it. *MOVED: there was a valid next one. */
static status walk_batch(struct window *w, const char *dir, struct raft__scan *scan,
                         const struct raft__scan_events *events, bool *moved, struct err *err)
{
    const struct raft__scan_segment *s = &scan->segments[scan->last];
    struct raft__batch_header header;
    bytes payload;
    bool headed, valid;

    *moved = false;
    ST_TRY(read_batch(w, s, scan->end.offset, &header, &payload, &headed, &valid));
    if (headed)
        mark_raise(scan, header.durable);
    if (!valid || (scan->sequence != 0 && header.sequence != scan->sequence))
        return ST_OK;
    if ((header.kind == RAFT__BATCH_CHECKPOINT) != (scan->end.offset == RAFT__BLOCK))
        return ST_OK;
    *moved = true;
    if (events->on_batch) {
        status st = events->on_batch(events->arg, s, scan->end.offset, &header, payload);
        if (st != ST_OK && err && err->code == ST_OK)
            err_set(err, st,
                    "%s/%012" PRIu64 ".log: the batch at offset %" PRIu64
                    " is whole but its records were refused: %s",
                    dir, s->number, scan->end.offset, status_text(st));
        ST_TRY(st);
    }
    scan->sequence = header.sequence + 1;
    scan->batches++;
    scan->end.offset += raft__batch_disk_bytes(header.payload_bytes);
    return ST_OK;
}

/* Does the next segment go on where the walk ended in this one? Then W has it open. */
static status walk_segment(struct window *w, const char *dir, struct raft__scan *scan, bool *moved)
{
    struct raft__batch_header header;
    bytes payload;
    bool headed, valid;

    *moved = false;
    if (scan->last + 1 >= scan->count || scan->segments[scan->last + 1].blank)
        return ST_OK;
    const struct raft__scan_segment *s = &scan->segments[scan->last + 1];
    ST_TRY(window_open(w, dir, s->number));
    ST_TRY(read_batch(w, s, RAFT__BLOCK, &header, &payload, &headed, &valid));
    *moved = valid && header.kind == RAFT__BATCH_CHECKPOINT && header.sequence == scan->sequence &&
             header.durable.segment == scan->end.segment &&
             header.durable.offset == scan->end.offset;
    if (*moved) {
        scan->last++;
        scan->end = (struct raft__position){s->number, RAFT__BLOCK};
    }
    return ST_OK;
}

static status walk(struct window *w, const char *dir, struct raft__scan *scan,
                   const struct raft__scan_events *events, struct err *err)
{
    bool moved = true;

    ST_TRY(window_open(w, dir, scan->segments[0].number));
    while (moved) {
        ST_TRY(walk_batch(w, dir, scan, events, &moved, err));
        if (!moved)
            ST_TRY(walk_segment(w, dir, scan, &moved));
    }
    return ST_OK;
}

/* Collects the durable positions of all valid headers behind the end of the walk. */
static status look_behind(struct window *w, const char *dir, struct raft__scan *scan)
{
    for (size_t i = scan->last; i < scan->count && !scan->segments[i].blank; i++) {
        const struct raft__scan_segment *s = &scan->segments[i];
        uint64_t at = i == scan->last ? scan->end.offset : RAFT__BLOCK;
        ST_TRY(window_open(w, dir, s->number));
        for (; s->size - at >= RAFT__BLOCK; at += RAFT__BLOCK) {
            struct raft__batch_header header;
            const uint8_t *p;
            ST_TRY(window_get(w, at, RAFT__BLOCK, &p));
            if (!raft__header_decode(p, s->seed, at, &header))
                continue;
            mark_raise(scan, header.durable);
            scan->cut = true;
        }
    }
    return ST_OK;
}

static status judge_end(const char *dir, const struct raft__scan *scan, struct err *err)
{
    if (raft__position_before(scan->end, scan->marked))
        return err_set(err, ST_CORRUPT,
                       "%s/%012" PRIu64 ".log is damaged at offset %" PRIu64
                       ": no valid batch there, although the log was durable up to %012" PRIu64
                       ".log offset %" PRIu64,
                       dir, scan->end.segment, scan->end.offset, scan->marked.segment,
                       scan->marked.offset);
    if (scan->batches == 0 && scan->segments[0].number > 1)
        return err_set(err, ST_CORRUPT,
                       "%s/%012" PRIu64 ".log, the oldest log segment, has no checkpoint at its "
                       "beginning",
                       dir, scan->segments[0].number);
    return ST_OK;
}

static status scan_files(struct window *w, const char *dir, const struct raft_log_options *expect,
                         const struct raft__scan_events *events, struct raft__scan *scan,
                         struct err *err)
{
    ST_TRY(list_segments(w->env, dir, scan, err));
    for (size_t i = 0; i < scan->count; i++)
        ST_TRY(read_segment_header(w, dir, scan, i, expect, err));
    if (scan->count == 0 || scan->segments[0].blank)
        return ST_OK;
    scan->end = (struct raft__position){scan->segments[0].number, RAFT__BLOCK};
    /* Only the first segment of all is known to begin with sequence 1. */
    scan->sequence = scan->segments[0].number == 1 ? 1 : 0;
    ST_TRY(walk(w, dir, scan, events, err));
    ST_TRY(look_behind(w, dir, scan));
    return judge_end(dir, scan, err);
}

status raft__scan_run(struct env *env, const char *dir, const struct raft_log_options *expect,
                      const struct raft__scan_events *events, struct raft__scan *out,
                      struct err *err)
{
    struct window w = {.env = env};

    *out = (struct raft__scan){.sequence = 1};
    if (err)
        err_clear(err);
    status st = scan_files(&w, dir, expect, events, out, err);
    window_fini(&w);
    return st;
}

void raft__scan_fini(struct raft__scan *scan)
{
    free(scan->segments);
    *scan = (struct raft__scan){0};
}

/* ---- recovery ---- */

/* Writes of a process that was killed may still be under way in the kernel: what is read before
 * they have ended would not be what stands there later. */
static status wait_for_writers(struct raft_log *log)
{
    struct env *env = log->env;
    struct numbers n = {0};
    status st = env->ops->list(env, log->options.dir, numbers_add, &n);

    for (size_t i = 0; st == ST_OK && i < n.count; i++) {
        char path[RAFT__PATH_BYTES];
        struct env_file *file;
        raft__segment_path(path, log->options.dir, n.items[i]);
        st = env->ops->open(env, path, ENV_READ | ENV_OWNED, &file);
        if (st == ST_OK)
            env->ops->close(env, file);
    }
    free(n.items);
    return st;
}

struct recovery {
    struct raft_log *log;
    const struct raft_log_recovery *to;
};

static status recover_entry(const struct raft_log_recovery *to, const struct raft__record *rec)
{
    struct raft_entry entry = {.index = rec->index, .term = rec->term, .kind = rec->kind};

    if (!to->on_entry)
        return ST_OK;
    if (rec->kind != RAFT_ENTRY_NOOP &&
        (!to->wanted || to->wanted(to->arg, rec->group, rec->index)))
        entry.data = buf_copy(rec->data);
    status st = to->on_entry(to->arg, rec->group, &entry);
    buf_unref(entry.data);
    return st;
}

static status recover_record(void *arg, const struct raft__record *rec)
{
    struct recovery *r = arg;
    struct raft_log *log = r->log;
    struct raft__note note = {.type = rec->type, .group = rec->group};

    switch (rec->type) {
    case RAFT__RECORD_ENTRY:
        ST_TRY(recover_entry(r->to, rec));
        note.a = note.b = rec->index;
        break;
    case RAFT__RECORD_HARD: {
        struct raft_hard_state hs = {.term = rec->term, .vote = rec->index};
        if (r->to->on_hard_state)
            r->to->on_hard_state(r->to->arg, rec->group, hs);
        note.a = hs.term;
        note.b = hs.vote;
        break;
    }
    case RAFT__RECORD_CUT:
        if (r->to->on_cut)
            r->to->on_cut(r->to->arg, rec->group, rec->index);
        note.a = rec->index;
        break;
    }
    raft__groups_note(&log->groups, log->oldest, log->newest, &note);
    return ST_OK;
}

static void segment_add(struct raft_log *log, const struct raft__scan_segment *s)
{
    struct raft__segment *segment =
        raft__segment_new(s->number, s->identity.generation, s->seed, s->size);
    if (log->newest)
        log->newest->newer = segment;
    else
        log->oldest = segment;
    log->newest = segment;
    log->stats.segments++;
}

static status recover_batch(void *arg, const struct raft__scan_segment *s, uint64_t offset,
                            const struct raft__batch_header *header, bytes payload)
{
    struct recovery *r = arg;

    UNUSED(offset);
    if (!r->log->newest || r->log->newest->number != s->number)
        segment_add(r->log, s);
    return raft__records_decode(payload, header->record_count, recover_record, r);
}

/* What was read back may not be on disk yet (3): write it again and sync. */
static status rewrite(struct raft_log *log, uint64_t from, uint64_t to)
{
    struct env *env = log->env;
    struct env_file *file = log->newest->file;
    uint8_t *chunk = malloc(WINDOW_BYTES);
    status st = ST_OK;

    ASSERT(chunk != NULL);
    while (from < to) {
        size_t n = to - from < WINDOW_BYTES ? (size_t)(to - from) : WINDOW_BYTES, got;
        ST_GOTO(out, env->ops->pread(env, file, chunk, n, from, &got));
        const struct iovec iov = {chunk, got};
        ST_GOTO(out, env->ops->pwritev(env, file, &iov, 1, from));
        from += n;
    }
    ST_GOTO(out, env->ops->datasync(env, file));
out:
    free(chunk);
    return st;
}

/* Newest first, so that the numbers stay contiguous whenever it is interrupted. */
static status retire_behind_end(struct raft_log *log, const struct raft__scan *scan)
{
    size_t keep = scan->segments[0].blank ? 0 : scan->last + 1;

    for (size_t i = scan->count; i-- > keep;) {
        const struct raft__scan_segment *s = &scan->segments[i];
        ST_TRY(raft__segment_retire(log, s->number, s->blank ? 0 : s->size));
    }
    return ST_OK;
}

static status repair(struct raft_log *log, const struct raft__scan *scan)
{
    struct env *env = log->env;
    char path[RAFT__PATH_BYTES];
    struct raft__segment *s = log->newest;

    raft__segment_path(path, log->options.dir, s->number);
    ST_TRY(env->ops->open(env, path, ENV_READ | ENV_WRITE, &s->file));
    s->end = scan->end.offset;
    if (scan->cut) {
        MARK("raft.recover.cut");
        LOG_WARN("raft.log_tail_cut", LOG_U64("stream", log->options.stream),
                 LOG_U64("segment", s->number), LOG_U64("offset", s->end));
    }
    ST_TRY(raft__segment_wipe(env, s->file, s->end, s->size));
    if (fault_point("log.repair"))
        return ST_IO;
    uint64_t from = scan->marked.segment == s->number ? scan->marked.offset : RAFT__BLOCK;
    ST_TRY(rewrite(log, from, s->end));
    env->ops->close(env, s->file);
    s->file = NULL;
    return raft__segment_open(log, s->number, &s->file);
}

static status first_segment(struct raft_log *log)
{
    ST_TRY(raft__segment_force_next(log, 0));
    log->oldest = log->newest = log->next;
    log->next = NULL;
    log->stats.segments = 1;
    return ST_OK;
}

/* Synced also when it is there: who made it may have died before. */
static status make_dir(struct env *env, const char *dir)
{
    char parent[RAFT__PATH_BYTES];
    status st = env->ops->mkdir(env, dir);

    if (st != ST_EXISTS)
        ST_TRY(st);
    snprintf(parent, sizeof parent, "%s", dir);
    char *slash = strrchr(parent, '/');
    if (slash == parent)
        slash[1] = '\0';
    else if (slash)
        *slash = '\0';
    return env->ops->sync_dir(env, slash ? parent : ".");
}

static status settle(struct raft_log *log, const struct raft__scan *scan)
{
    /* A process that was killed between naming a segment and syncing the directory left a name
     * that a loss of power would take back, with all that is written under it from now on. */
    ST_TRY(log->env->ops->sync_dir(log->env, log->options.dir));
    ST_TRY(raft__segment_adopt(log));
    if (scan->count > 0)
        ST_TRY(retire_behind_end(log, scan));
    if (scan->count == 0 || scan->segments[0].blank) {
        ST_TRY(first_segment(log));
    } else {
        if (!log->newest)
            segment_add(log, &scan->segments[0]); /* it has no valid batch yet */
        log->next_number = log->newest->number + 1;
        ST_TRY(repair(log, scan));
    }
    log->sequence = scan->sequence;
    log->placed = log->newest->end;
    log->durable = (struct raft__position){log->newest->number, log->newest->end};
    log->checkpoint_due = log->newest->end == RAFT__BLOCK;
    return raft__write_mark(log);
}

status raft__recover(struct raft_log *log, const struct raft_log_recovery *recovery,
                     struct err *err)
{
    struct recovery r = {.log = log, .to = recovery};
    const struct raft__scan_events events = {.arg = &r, .on_batch = recover_batch};
    struct raft__scan scan;

    if (fault_point("log.recover"))
        return err_set(err, ST_IO, "%s: injected failure of recovery", log->options.dir);
    ST_TRY(make_dir(log->env, log->options.dir));
    ST_TRY(wait_for_writers(log));
    status st = raft__scan_run(log->env, log->options.dir, &log->options, &events, &scan, err);
    if (st == ST_OK) {
        st = settle(log, &scan);
        if (st != ST_OK)
            err_set(err, st, "%s: cannot make the log ready: %s", log->options.dir,
                    status_text(st));
    }
    raft__scan_fini(&scan);
    return st;
}
