/*
 * A host for one core, as small as it can be: a log whose records become durable when the test
 * says so, a state machine that is a chain of hashes, and what survives a crash of both. Used by
 * the scenarios (test_raft.c) and the random histories (test_raft_random.c).
 */
#ifndef TESTS_RAFT_CORE_FIXTURE_H
#define TESTS_RAFT_CORE_FIXTURE_H

#include "base/assert.h"
#include "base/checksum.h"
#include "raft/message.h"
#include "raft/raft_internal.h"

#include <stdlib.h>
#include <string.h>

/* One record of the log on disk, in the order of writing. */
struct disk_record {
    bool is_hard;
    struct raft_hard_state hard;
    struct raft_entry entry;
    uint64_t epoch;
};

/* What a state machine is at an index: equal chains mean equal histories. */
struct machine {
    uint64_t index, term, chain;
    struct raft_members members;
};

struct core {
    uint64_t id;
    struct raft_config config;
    struct raft *raft; /* NULL: down */
    struct disk_record *disk;
    size_t durable, written, capacity; /* records up to `durable` survive */
    size_t reported;
    struct machine machine, persisted;
    struct raft_snapshot installing; /* index 0: none */
    uint64_t installing_from;
};

static inline uint64_t chain_next(uint64_t chain, const struct raft_entry *e)
{
    uint64_t words[4] = {chain, e->index, e->term, (uint64_t)e->kind};
    uint64_t h = checksum64(bytes_make((const uint8_t *)words, sizeof words), 1);
    return e->data ? checksum64(buf_bytes(e->data), h) : h;
}

static inline void disk_write(struct core *c, struct disk_record record)
{
    if (c->written == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 64;
        c->disk = realloc(c->disk, c->capacity * sizeof *c->disk);
        ASSERT(c->disk != NULL);
    }
    if (!record.is_hard && record.entry.data)
        buf_ref(record.entry.data);
    c->disk[c->written++] = record;
}

static inline void disk_lose(struct core *c, size_t from)
{
    for (size_t i = from; i < c->written; i++) {
        if (!c->disk[i].is_hard)
            buf_unref(c->disk[i].entry.data);
    }
    c->written = from;
}

/* What a step wants written, in the order of the contract. */
static inline void core_write(struct core *c, const struct raft_output *out)
{
    if (out->hard_state_changed)
        disk_write(c, (struct disk_record){.is_hard = true, .hard = raft_hard_state(c->raft)});
    for (size_t i = 0; i < out->append_count; i++)
        disk_write(c, (struct disk_record){.entry = out->append[i], .epoch = out->append_epoch});
}

/* The first COUNT records are durable now; IN becomes the report. False: nothing to report. */
static inline bool core_store(struct core *c, size_t count, struct raft_input *in)
{
    *in = (struct raft_input){.kind = RAFT_STORED};
    if (count > c->written - c->durable)
        count = c->written - c->durable;
    c->durable += count;
    for (; c->reported < c->durable; c->reported++) {
        const struct disk_record *record = &c->disk[c->reported];
        if (record->is_hard) {
            in->stored_hard = record->hard;
        } else {
            in->stored_index = record->entry.index;
            in->stored_term = record->entry.term;
            in->stored_epoch = record->epoch;
        }
    }
    return count > 0;
}

/* Reads the log back. ST_CORRUPT as raft_restore_entry. */
static inline status core_start(struct core *c)
{
    struct raft_hard_state hard = {0};
    for (size_t i = 0; i < c->written; i++) {
        if (c->disk[i].is_hard)
            hard = c->disk[i].hard;
    }
    c->durable = c->reported = c->written;
    c->machine = c->persisted;
    c->installing.index = 0;
    c->config.self = c->id;
    c->config.members = c->machine.members;
    c->raft = raft_new(&c->config, hard, c->machine.index, c->machine.term);
    for (size_t i = 0; i < c->written; i++) {
        if (!c->disk[i].is_hard)
            ST_TRY(raft_restore_entry(c->raft, &c->disk[i].entry));
    }
    /* A snapshot that the log was not told of: said now, before anything follows it. */
    if (raft_restored_other(c->raft))
        disk_write(c, (struct disk_record){.entry = {.kind = RAFT_ENTRY_SNAPSHOT,
                                                     .index = c->machine.index,
                                                     .term = c->machine.term}});
    return ST_OK;
}

/* KEPT of the records that were not durable survive all the same. */
static inline void core_crash(struct core *c, size_t kept)
{
    disk_lose(c, c->durable + kept);
    raft_free(c->raft);
    c->raft = NULL;
}

static inline void core_free(struct core *c)
{
    disk_lose(c, 0);
    free(c->disk);
    raft_free(c->raft);
    *c = (struct core){0};
}

/* Applies one entry; false when there is none. */
static inline bool core_apply_one(struct core *c, struct raft_entry *applied)
{
    if (c->installing.index != 0 || c->machine.index >= raft_commit_index(c->raft))
        return false;
    const struct raft_entry *e = raft_entry_get(c->raft, c->machine.index + 1);
    ASSERT(e != NULL);
    *applied = *e;
    c->machine.index = e->index;
    c->machine.term = e->term;
    c->machine.chain = chain_next(c->machine.chain, e);
    if (e->kind == RAFT_ENTRY_MEMBERS)
        ASSERT(raft_members_decode(buf_bytes(e->data), &c->machine.members) == ST_OK);
    return true;
}

/* What the state machine persists must not be ahead of the own log. */
static inline void core_persist(struct core *c)
{
    if (c->machine.index <= raft_stored_index(c->raft) && c->installing.index == 0)
        c->persisted = c->machine;
}

/* A message as it comes out of the wire. */
static inline struct raft_message message_copy(const struct raft_message *m)
{
    struct raft_message copy;
    struct obuf bytes_out;
    obuf_init(&bytes_out);
    raft_message_encode(m, &bytes_out);
    status st = raft_message_decode(bytes_make(bytes_out.data, bytes_out.size), &copy);
    ASSERT(st == ST_OK);
    obuf_fini(&bytes_out);
    return copy;
}

#endif
