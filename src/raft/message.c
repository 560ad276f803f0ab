/*
 * raft/message.c — the bytes of a message.
 *
 *   u8 version (1)  u8 kind  varint from, to, term  then the kind's fields in the order of
 *   message.h: numbers as varint, flags as one byte 0 or 1, a membership list as members.c has it.
 *   Entries: varint count, then per entry varint term, u8 kind, varint size and data; indexes
 *   follow from prev_index.
 *
 * Little is optional, so every message of a version has one spelling of its fields, and trailing
 * bytes are an error. A change of fields is a new version.
 */
#include "raft/message.h"

#include "base/assert.h"
#include "base/codec.h"
#include "base/limits.h"

#include <stdlib.h>

#define MESSAGE_VERSION 1u

static const char *const names[RAFT_MSG_KINDS] = {
    [RAFT_MSG_APPEND] = "append",
    [RAFT_MSG_APPEND_REPLY] = "append_reply",
    [RAFT_MSG_HEARTBEAT] = "heartbeat",
    [RAFT_MSG_HEARTBEAT_REPLY] = "heartbeat_reply",
    [RAFT_MSG_VOTE] = "vote",
    [RAFT_MSG_VOTE_REPLY] = "vote_reply",
    [RAFT_MSG_SNAPSHOT] = "snapshot",
    [RAFT_MSG_SNAPSHOT_REPLY] = "snapshot_reply",
    [RAFT_MSG_TIMEOUT_NOW] = "timeout_now",
};

const char *raft_message_name(enum raft_message_kind kind)
{
    return kind > 0 && kind < RAFT_MSG_KINDS ? names[kind] : "unknown";
}

/* Indexes and terms beyond it cannot be reached; it keeps sums of them from wrapping. */
#define NUMBER_MAX (UINT64_MAX / 4)

static bool entry_sound(const struct raft_entry *e, uint64_t index, uint64_t term_min,
                        uint64_t term_max)
{
    if (e->index != index || e->term < term_min || e->term > term_max)
        return false;
    struct raft_members members;
    switch (e->kind) {
    case RAFT_ENTRY_COMMAND: return e->data != NULL && e->data->size <= LIMIT_COMMAND_BYTES;
    case RAFT_ENTRY_NOOP: return e->data == NULL;
    case RAFT_ENTRY_MEMBERS:
        return e->data != NULL && raft_members_decode(buf_bytes(e->data), &members) == ST_OK;
    case RAFT_ENTRY_SNAPSHOT: break; /* never leaves a log */
    }
    return false;
}

static bool append_sound(const struct raft_message *m)
{
    uint64_t term = m->append.prev_term;

    if (m->append.count > RAFT_APPEND_ENTRIES_MAX || m->append.prev_index > NUMBER_MAX)
        return false;
    if (term > m->term || (m->append.prev_index == 0 && term != 0))
        return false;
    for (size_t i = 0; i < m->append.count; i++) {
        if (!entry_sound(&m->append.entries[i], m->append.prev_index + 1 + i, term, m->term))
            return false;
        term = m->append.entries[i].term;
    }
    return true;
}

static bool lead_sound(const struct raft_lead *l)
{
    return l->seq != 0 && l->seq <= NUMBER_MAX && l->commit <= NUMBER_MAX &&
           l->settled <= l->commit;
}

static bool ack_sound(const struct raft_ack *a)
{
    return a->match <= a->last && a->last <= NUMBER_MAX;
}

static bool fields_sound(const struct raft_message *m)
{
    switch (m->kind) {
    case RAFT_MSG_APPEND: return lead_sound(&m->lead) && append_sound(m);
    case RAFT_MSG_HEARTBEAT: return lead_sound(&m->lead);
    case RAFT_MSG_SNAPSHOT:
        return lead_sound(&m->lead) && m->snapshot.index > 0 && m->snapshot.index <= NUMBER_MAX &&
               m->snapshot.term > 0 && m->snapshot.term <= m->term &&
               m->snapshot.index <= m->lead.commit && m->snapshot.members.count > 0;
    case RAFT_MSG_APPEND_REPLY:
        if (m->append_reply.refused && m->append_reply.hint_index >= m->append_reply.prev_index)
            return false;
        return ack_sound(&m->ack);
    case RAFT_MSG_HEARTBEAT_REPLY: return ack_sound(&m->ack);
    case RAFT_MSG_SNAPSHOT_REPLY:
        return ack_sound(&m->ack) && m->snapshot_reply.verdict >= RAFT_SNAPSHOT_ACCEPTED &&
               m->snapshot_reply.verdict <= RAFT_SNAPSHOT_DONE;
    case RAFT_MSG_VOTE: return m->vote.last_term < m->term && m->vote.last_index <= NUMBER_MAX;
    case RAFT_MSG_VOTE_REPLY:
    case RAFT_MSG_TIMEOUT_NOW: return true;
    case RAFT_MSG_KINDS: break;
    }
    return false;
}

status raft_message_check(const struct raft_message *m)
{
    if (m->from == 0 || m->to == 0 || m->from == m->to || m->term > NUMBER_MAX)
        return ST_PROTOCOL;
    if (m->term == 0 && m->kind != RAFT_MSG_VOTE_REPLY && m->kind != RAFT_MSG_HEARTBEAT_REPLY)
        return ST_PROTOCOL;
    return fields_sound(m) ? ST_OK : ST_PROTOCOL;
}

static void put_lead(struct obuf *o, const struct raft_lead *l)
{
    put_varint(o, l->seq);
    put_varint(o, l->sent_ms);
    put_varint(o, l->commit);
    put_varint(o, l->settled);
    put_varint(o, l->read_bound);
}

static void put_ack(struct obuf *o, const struct raft_ack *a)
{
    put_varint(o, a->seq);
    put_varint(o, a->sent_ms);
    put_varint(o, a->match);
    put_varint(o, a->last);
    put_varint(o, a->commit);
    put_varint(o, a->read_bound);
}

static void put_entries(struct obuf *o, const struct raft_message *m)
{
    put_varint(o, m->append.count);
    for (size_t i = 0; i < m->append.count; i++) {
        const struct raft_entry *e = &m->append.entries[i];
        put_varint(o, e->term);
        put_u8(o, (uint8_t)e->kind);
        put_bytes(o, e->data ? buf_bytes(e->data) : bytes_make(NULL, 0));
    }
}

static void put_fields(struct obuf *o, const struct raft_message *m)
{
    switch (m->kind) {
    case RAFT_MSG_APPEND:
        put_lead(o, &m->lead);
        put_varint(o, m->append.prev_index);
        put_varint(o, m->append.prev_term);
        put_entries(o, m);
        return;
    case RAFT_MSG_APPEND_REPLY:
        put_ack(o, &m->ack);
        put_u8(o, m->append_reply.refused);
        put_varint(o, m->append_reply.prev_index);
        put_varint(o, m->append_reply.hint_index);
        put_varint(o, m->append_reply.hint_term);
        return;
    case RAFT_MSG_HEARTBEAT:
        put_lead(o, &m->lead);
        put_u8(o, m->heartbeat.quiet);
        put_u8(o, m->heartbeat.quiesce);
        return;
    case RAFT_MSG_HEARTBEAT_REPLY:
        put_ack(o, &m->ack);
        put_varint(o, m->heartbeat_reply.installing);
        put_u8(o, m->heartbeat_reply.asleep);
        return;
    case RAFT_MSG_VOTE:
        put_u8(o, m->vote.pre);
        put_u8(o, m->vote.transfer);
        put_varint(o, m->vote.last_index);
        put_varint(o, m->vote.last_term);
        return;
    case RAFT_MSG_VOTE_REPLY:
        put_u8(o, m->vote_reply.pre);
        put_u8(o, m->vote_reply.granted);
        put_varint(o, m->vote_reply.read_bound);
        return;
    case RAFT_MSG_SNAPSHOT:
        put_lead(o, &m->lead);
        put_varint(o, m->snapshot.index);
        put_varint(o, m->snapshot.term);
        raft_members_put(o, &m->snapshot.members);
        return;
    case RAFT_MSG_SNAPSHOT_REPLY:
        put_ack(o, &m->ack);
        put_u8(o, (uint8_t)m->snapshot_reply.verdict);
        put_varint(o, m->snapshot_reply.index);
        return;
    case RAFT_MSG_TIMEOUT_NOW: return;
    case RAFT_MSG_KINDS: break;
    }
    ASSERT_INV("a known kind of message", false);
}

void raft_message_encode(const struct raft_message *m, struct obuf *out)
{
    put_u8(out, MESSAGE_VERSION);
    put_u8(out, (uint8_t)m->kind);
    put_varint(out, m->from);
    put_varint(out, m->to);
    put_varint(out, m->term);
    put_fields(out, m);
}

static bool get_flag(struct reader *r)
{
    uint8_t v = get_u8(r);
    if (v > 1)
        r->bad = true;
    return v == 1;
}

static void get_lead(struct reader *r, struct raft_lead *l)
{
    l->seq = get_varint(r);
    l->sent_ms = get_varint(r);
    l->commit = get_varint(r);
    l->settled = get_varint(r);
    l->read_bound = get_varint(r);
}

static void get_ack(struct reader *r, struct raft_ack *a)
{
    a->seq = get_varint(r);
    a->sent_ms = get_varint(r);
    a->match = get_varint(r);
    a->last = get_varint(r);
    a->commit = get_varint(r);
    a->read_bound = get_varint(r);
}

/* An entry takes three bytes at least, so the count is bounded by what has arrived. */
static void get_entries(struct reader *r, struct raft_message *m)
{
    uint64_t count = get_varint(r);

    if (r->bad || count > RAFT_APPEND_ENTRIES_MAX || count > (uint64_t)(r->end - r->next) / 3) {
        r->bad = true;
        return;
    }
    if (count == 0)
        return;
    struct raft_entry *entries = calloc(count, sizeof *entries);
    ASSERT(entries != NULL);
    m->append.entries = entries;
    m->append.count = count;
    for (size_t i = 0; i < count && !r->bad; i++) {
        entries[i].index = m->append.prev_index + 1 + i;
        entries[i].term = get_varint(r);
        entries[i].kind = (enum raft_entry_kind)get_u8(r);
        bytes data = get_bytes(r);
        if (data.size > LIMIT_COMMAND_BYTES)
            r->bad = true;
        else if (!r->bad && (data.size > 0 || entries[i].kind != RAFT_ENTRY_NOOP))
            entries[i].data = buf_copy(data);
    }
}

static void get_fields(struct reader *r, struct raft_message *m)
{
    switch (m->kind) {
    case RAFT_MSG_APPEND:
        get_lead(r, &m->lead);
        m->append.prev_index = get_varint(r);
        m->append.prev_term = get_varint(r);
        get_entries(r, m);
        return;
    case RAFT_MSG_APPEND_REPLY:
        get_ack(r, &m->ack);
        m->append_reply.refused = get_flag(r);
        m->append_reply.prev_index = get_varint(r);
        m->append_reply.hint_index = get_varint(r);
        m->append_reply.hint_term = get_varint(r);
        return;
    case RAFT_MSG_HEARTBEAT:
        get_lead(r, &m->lead);
        m->heartbeat.quiet = get_flag(r);
        m->heartbeat.quiesce = get_flag(r);
        return;
    case RAFT_MSG_HEARTBEAT_REPLY:
        get_ack(r, &m->ack);
        m->heartbeat_reply.installing = get_varint(r);
        m->heartbeat_reply.asleep = get_flag(r);
        return;
    case RAFT_MSG_VOTE:
        m->vote.pre = get_flag(r);
        m->vote.transfer = get_flag(r);
        m->vote.last_index = get_varint(r);
        m->vote.last_term = get_varint(r);
        return;
    case RAFT_MSG_VOTE_REPLY:
        m->vote_reply.pre = get_flag(r);
        m->vote_reply.granted = get_flag(r);
        m->vote_reply.read_bound = get_varint(r);
        return;
    case RAFT_MSG_SNAPSHOT:
        get_lead(r, &m->lead);
        m->snapshot.index = get_varint(r);
        m->snapshot.term = get_varint(r);
        raft_members_get(r, &m->snapshot.members);
        return;
    case RAFT_MSG_SNAPSHOT_REPLY:
        get_ack(r, &m->ack);
        m->snapshot_reply.verdict = (enum raft_snapshot_verdict)get_u8(r);
        m->snapshot_reply.index = get_varint(r);
        return;
    case RAFT_MSG_TIMEOUT_NOW: return;
    case RAFT_MSG_KINDS: break;
    }
    r->bad = true;
}

status raft_message_decode(bytes src, struct raft_message *out)
{
    struct reader r = reader_make(src);

    *out = (struct raft_message){0};
    if (get_u8(&r) != MESSAGE_VERSION)
        r.bad = true;
    out->kind = (enum raft_message_kind)get_u8(&r);
    out->from = get_varint(&r);
    out->to = get_varint(&r);
    out->term = get_varint(&r);
    if (!r.bad)
        get_fields(&r, out);
    if (codec_finish(&r) == ST_OK && raft_message_check(out) == ST_OK)
        return ST_OK;
    raft_message_fini(out);
    return ST_PROTOCOL;
}

void raft_message_fini(struct raft_message *m)
{
    if (m->kind == RAFT_MSG_APPEND) {
        for (size_t i = 0; i < m->append.count; i++)
            buf_unref(m->append.entries[i].data);
        free((void *)(uintptr_t)m->append.entries);
    }
    *m = (struct raft_message){0};
}
