/*
 * raft/log_inspect.c — a stream as text, read without changing anything: for people and tools.
 *
 * It walks with the same scan as recovery and so gives the same verdict: what is printed is what a
 * start would use, and an error says why a start would refuse.
 */
#include "raft/log_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct inspection {
    void (*fn)(void *arg, const char *line);
    void *arg;
    uint64_t segment; /* the last one announced */
};

static void PRINTF_LIKE(2, 3) say(struct inspection *in, const char *format, ...)
{
    char line[512];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (in->fn)
        in->fn(in->arg, line);
}

static const char *batch_name(uint32_t kind)
{
    switch (kind) {
    case RAFT__BATCH_DATA: return "data";
    case RAFT__BATCH_CHECKPOINT: return "checkpoint";
    case RAFT__BATCH_MARK: return "mark";
    default: return "unknown";
    }
}

static const char *entry_name(enum raft_entry_kind kind)
{
    switch (kind) {
    case RAFT_ENTRY_COMMAND: return "command";
    case RAFT_ENTRY_NOOP: return "noop";
    case RAFT_ENTRY_MEMBERS: return "members";
    case RAFT_ENTRY_SNAPSHOT: return "snapshot";
    }
    return "unknown";
}

static status inspect_record(void *arg, const struct raft__record *rec)
{
    struct inspection *in = arg;

    switch (rec->type) {
    case RAFT__RECORD_ENTRY:
        say(in, "entry group=%" PRIu64 " index=%" PRIu64 " term=%" PRIu64 " kind=%s bytes=%zu",
            rec->group, rec->index, rec->term, entry_name(rec->kind), rec->data.size);
        break;
    case RAFT__RECORD_HARD:
        say(in, "hard_state group=%" PRIu64 " term=%" PRIu64 " vote=%" PRIu64, rec->group,
            rec->term, rec->index);
        break;
    case RAFT__RECORD_CUT:
        say(in, "cut group=%" PRIu64 " index=%" PRIu64, rec->group, rec->index);
        break;
    }
    return ST_OK;
}

static status inspect_batch(void *arg, const struct raft__scan_segment *s, uint64_t offset,
                            const struct raft__batch_header *header, bytes payload)
{
    struct inspection *in = arg;

    if (in->segment != s->number) {
        in->segment = s->number;
        say(in,
            "segment number=%" PRIu64 " generation=%" PRIu64 " bytes=%" PRIu64
            " stream=%u cluster=%016" PRIx64 " store=%016" PRIx64,
            s->number, s->identity.generation, s->size, s->identity.stream, s->identity.cluster_id,
            s->identity.store_id);
    }
    say(in,
        "batch offset=%" PRIu64 " sequence=%" PRIu64 " kind=%s records=%u bytes=%u durable=%" PRIu64
        ":%" PRIu64,
        offset, header->sequence, batch_name(header->kind), header->record_count,
        header->payload_bytes, header->durable.segment, header->durable.offset);
    return raft__records_decode(payload, header->record_count, inspect_record, in);
}

status raft_log_inspect(struct env *env, const char *dir, void (*fn)(void *arg, const char *line),
                        void *arg, struct err *err)
{
    struct inspection in = {.fn = fn, .arg = arg};
    const struct raft__scan_events events = {.arg = &in, .on_batch = inspect_batch};
    struct raft__scan scan;

    status st = raft__scan_run(env, dir, NULL, &events, &scan, err);
    if (st == ST_OK)
        say(&in,
            "end segment=%" PRIu64 " offset=%" PRIu64 " durable=%" PRIu64 ":%" PRIu64 " tail=%s",
            scan.end.segment, scan.end.offset, scan.marked.segment, scan.marked.offset,
            scan.cut ? "torn" : "clean");
    else
        err_default(err, st);
    raft__scan_fini(&scan);
    return st;
}
