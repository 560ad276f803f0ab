/*
 * raft/recv_append.c — a leader's entries, or its question whether the logs agree (Raft 5.3).
 *
 * If the entry before them is here with the same term, the logs agree up to it (log matching), so
 * entries that are here already are passed over and the first that differs replaces all behind.
 * Nothing that is committed can differ: that would be another history, and this replica must not
 * go on (ST_CORRUPT).
 *
 * The answer goes out when the entries are durable (follow.c); at once if there was nothing to
 * store. A refusal names the last entry here whose term is not above that of the entry asked for:
 * whole terms are passed over, so the number of refusals is that of terms, not of entries.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"

static bool differs(const struct raft *r, uint64_t index, uint64_t term)
{
    uint64_t held;
    return raft__term_of(r, index, &held) && held != term;
}

static status append_check(const struct raft *r, const struct raft_message *m)
{
    ST_TRY(raft__lead_check(r, m));
    if (m->term < r->hard.term)
        return ST_OK;
    if (m->append.prev_index <= r->commit && differs(r, m->append.prev_index, m->append.prev_term))
        return ST_CORRUPT;
    for (size_t i = 0; i < m->append.count; i++) {
        const struct raft_entry *e = &m->append.entries[i];
        if (e->index > r->commit)
            break;
        if (differs(r, e->index, e->term))
            return ST_CORRUPT;
    }
    return ST_OK;
}

static void refuse(struct raft *r, const struct raft_message *m)
{
    uint64_t index = raft__tail_last_index(&r->tail), term = 0;

    if (index >= m->append.prev_index)
        index = m->append.prev_index - 1;
    while (index > r->commit && raft__term_of(r, index, &term) && term > m->append.prev_term)
        index--;
    bool known = raft__term_of(r, index, &term);
    ASSERT(known);
    struct raft_message *reply = raft__send_ack(r, RAFT_MSG_APPEND_REPLY, m->from);
    reply->ack.seq = m->lead.seq;
    reply->ack.sent_ms = m->lead.sent_ms;
    reply->append_reply.refused = true;
    reply->append_reply.prev_index = m->append.prev_index;
    reply->append_reply.hint_index = index;
    reply->append_reply.hint_term = term;
}

static void truncate(struct raft *r, uint64_t index)
{
    MARK("raft.append.conflict");
    ASSERT(index > r->commit);
    raft__tail_truncate(&r->tail, index);
    raft__members_truncated(r);
    r->epoch++;
    if (r->stored >= index)
        r->stored = index - 1;
}

static void take(struct raft *r, const struct raft_entry *e)
{
    uint64_t last = raft__tail_last_index(&r->tail);

    if (e->index <= last) {
        if (!differs(r, e->index, e->term) || RAFT_BROKEN(RAFT__BREAK_NO_TRUNCATE))
            return;
        truncate(r, e->index);
        last = e->index - 1;
    }
    if (r->stored == last)
        r->unstored_ms = r->now_ms;
    raft__tail_append(&r->tail, e);
    raft__members_took(r, e);
    if (r->out_first == 0)
        r->out_first = e->index;
}

static void take_all(struct raft *r, const struct raft_message *m)
{
    uint64_t end = m->append.prev_index + m->append.count;

    for (size_t i = 0; i < m->append.count; i++) {
        if (m->append.entries[i].index > r->commit)
            take(r, &m->append.entries[i]);
    }
    if (end > r->verified)
        r->verified = end;
    if (m->lead.seq > r->ack_seq) {
        r->ack_seq = m->lead.seq;
        r->ack_sent_ms = m->lead.sent_ms;
    }
    raft__commit_heard(r, m->lead.commit);
    if (r->out_first != 0)
        return; /* answered when they are durable */
    r->acked = 0;
    struct raft_message *reply = raft__send_ack(r, RAFT_MSG_APPEND_REPLY, m->from);
    reply->ack.seq = m->lead.seq;
    reply->ack.sent_ms = m->lead.sent_ms;
    r->acked = reply->ack.match;
}

status raft__recv_append(struct raft *r, const struct raft_message *m)
{
    uint64_t held;

    ST_TRY(append_check(r, m));
    if (!raft__lead_heard(r, m))
        return ST_OK;
    if (m->append.count > 0 && raft__tail_full(r)) {
        MARK("raft.append.no_room");
        return ST_OK; /* as if it had been lost */
    }
    if (m->append.prev_index > r->commit &&
        (!raft__term_of(r, m->append.prev_index, &held) || held != m->append.prev_term)) {
        refuse(r, m);
        return ST_OK;
    }
    take_all(r, m);
    return ST_OK;
}
