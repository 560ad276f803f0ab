/*
 * raft/replicate.c — entries enter the log at the leader, and go to its followers (Raft 5.3).
 *
 * An appended entry is in the tail at once and in the step's output; the caller hands the output
 * to the shared log, and its messages to the followers, at the same time: the own disk is one vote
 * among others (commit.c).
 *
 * At the end of each step every follower is sent what its window has room for, so many proposals
 * of one step are one message. The commit index travels with appends and heartbeats; a follower
 * that has acknowledged everything is told at once, by a heartbeat that asks for no answer.
 *
 * Memory. An applied entry stays while some member lacks it, up to keep_bytes: then the oldest go,
 * and who lacks them gets a snapshot. While one is under way the bound is keep_bytes_snapshot, so
 * that its receiver finds the entries behind it. A follower learns from `settled` what nobody
 * lacks, so that it can go on from there as a leader.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"

uint64_t raft__append(struct raft *r, enum raft_entry_kind kind, struct buf *data)
{
    ASSERT(r->role == RAFT_LEADER);
    uint64_t last = raft__tail_last_index(&r->tail);
    const struct raft_entry entry = {
        .index = last + 1,
        .term = r->hard.term,
        .kind = kind,
        .data = data,
    };
    if (r->stored == last)
        r->unstored_ms = r->now_ms;
    raft__tail_append(&r->tail, &entry);
    if (r->out_first == 0)
        r->out_first = entry.index;
    return entry.index;
}

static uint64_t keep_bytes(const struct raft *r)
{
    for (unsigned i = 0; i < r->progress_count; i++) {
        const struct raft__progress *p = &r->progress[i];
        if (p->id != r->config.self && p->state == RAFT__SNAPSHOT && p->snapshot.index != 0)
            return r->config.keep_bytes_snapshot;
    }
    return r->config.keep_bytes;
}

bool raft__tail_full(const struct raft *r)
{
    return r->tail.bytes > r->config.pending_bytes &&
           r->tail.bytes > r->config.pending_bytes + keep_bytes(r);
}

status raft__propose(struct raft *r, struct buf *const *commands, size_t count)
{
    if (r->role != RAFT_LEADER)
        return ST_NOT_LEADER;
    if (r->transfer_to != 0)
        return ST_LOCKED;
    if (raft__tail_full(r))
        return ST_NO_MEMORY;
    raft__stay_awake(r);
    for (size_t i = 0; i < count; i++) {
        uint64_t index = raft__append(r, RAFT_ENTRY_COMMAND, commands[i]);
        if (i == 0)
            r->out_proposed = index;
    }
    return ST_OK;
}

/* Everything that P lacks and one message may hold. */
static size_t entries_for(const struct raft *r, const struct raft__progress *p, uint64_t *size)
{
    uint64_t last = raft__tail_last_index(&r->tail);
    size_t count = 0;

    *size = 0;
    while (p->next + count <= last && count < RAFT_APPEND_ENTRIES_MAX) {
        uint64_t more = raft__entry_bytes(raft__tail_get(&r->tail, p->next + count));
        if (count > 0 && *size + more > r->config.append_bytes)
            break;
        *size += more;
        count++;
    }
    return count;
}

/* False if the log here no longer goes back to what P needs. */
static bool send_append(struct raft *r, struct raft__progress *p)
{
    uint64_t prev_term, size;

    if (!raft__term_of(r, p->next - 1, &prev_term)) {
        raft__snapshot_needed(r, p);
        return false;
    }
    size_t count = entries_for(r, p, &size);
    struct raft_message *m = raft__send_lead(r, RAFT_MSG_APPEND, p);
    m->append.prev_index = p->next - 1;
    m->append.prev_term = prev_term;
    m->append.count = count;
    p->append_seq = m->lead.seq;
    if (p->state == RAFT__PIPELINE)
        raft__progress_sent(p, p->next + count - 1, size);
    else
        p->paused = true;
    return true;
}

static void replicate_to(struct raft *r, struct raft__progress *p)
{
    uint64_t last = raft__tail_last_index(&r->tail);

    switch (p->state) {
    case RAFT__PROBE:
        if (!p->paused && !send_append(r, p))
            raft__snapshot_offer(r, p);
        return;
    case RAFT__SNAPSHOT: raft__snapshot_offer(r, p); return;
    case RAFT__PIPELINE: break;
    }
    while (p->next <= last && raft__progress_room(p, &r->config)) {
        if (!send_append(r, p))
            return;
    }
    if (p->commit_sent < r->commit && p->next == p->match + 1)
        raft__send_lead(r, RAFT_MSG_HEARTBEAT, p)->heartbeat.quiet = true;
}

void raft__replicate(struct raft *r)
{
    /* With one voter nobody was asked whether the term is new, so nobody may hear of entries of it
     * before the term is durable: the leader could open it again after a crash. */
    if (r->quiesced || (r->voters == 1 && r->stored < r->opened))
        return;
    for (unsigned i = 0; i < r->progress_count; i++) {
        if (i != r->self_at)
            replicate_to(r, &r->progress[i]);
    }
}

/* At a multiple of the interval: those of all groups of a process go out together. */
void raft__heartbeat_next(struct raft *r)
{
    r->heartbeat_ms = (r->now_ms / r->config.heartbeat_ms + 1) * r->config.heartbeat_ms;
}

void raft__heartbeat(struct raft *r)
{
    raft__heartbeat_next(r);
    for (unsigned i = 0; i < r->progress_count; i++) {
        if (i != r->self_at)
            raft__send_lead(r, RAFT_MSG_HEARTBEAT, &r->progress[i]);
    }
}

/* What every member has. */
static void settle(struct raft *r)
{
    uint64_t settled = r->stored;
    for (unsigned i = 0; i < r->progress_count; i++) {
        if (i != r->self_at && r->progress[i].match < settled)
            settled = r->progress[i].match;
    }
    r->settled = settled;
}

status raft__ack_check(const struct raft *r, const struct raft_message *m,
                       struct raft__progress **out)
{
    const struct raft_ack *ack = &m->ack;

    *out = NULL;
    if (r->role != RAFT_LEADER || m->term != r->hard.term)
        return ST_OK;
    struct raft__progress *p = raft__progress_find(r, m->from);
    if (!p)
        return ST_OK; /* no member any more, or not yet */
    if (ack->seq > r->seq || ack->sent_ms > r->now_ms ||
        ack->last > raft__tail_last_index(&r->tail))
        return ST_PROTOCOL;
    *out = p;
    return ST_OK;
}

void raft__acked(struct raft *r, struct raft__progress *p, const struct raft_ack *ack)
{
    p->heard_ms = r->now_ms;
    p->down = false;
    raft__raise(&p->acked_seq, ack->seq);
    raft__raise(&p->acked_ms, ack->sent_ms);
    raft__raise(&p->commit_acked, ack->commit);
    raft__raise(&p->read_bound, ack->read_bound);
    if (!raft__progress_match(p, ack->match))
        return;
    settle(r);
    raft__commit_advance(r);
    raft__trim(r);
}

/* The first index that somebody may still need from here. */
static uint64_t needed_from(const struct raft *r)
{
    uint64_t from = UINT64_MAX;

    if (r->role != RAFT_LEADER)
        return r->settled + 1;
    for (unsigned i = 0; i < r->progress_count; i++) {
        const struct raft__progress *p = &r->progress[i];
        uint64_t has = p->state == RAFT__SNAPSHOT && p->snapshot.index > p->match
                           ? p->snapshot.index
                           : p->match;
        if (i != r->self_at && has + 1 < from)
            from = has + 1;
    }
    return from;
}

static uint64_t kept_for_others(const struct raft *r, uint64_t to)
{
    uint64_t from = needed_from(r), at = r->tail.base_index, held = r->tail.bytes;
    uint64_t keep = keep_bytes(r);

    while (at < to && (at + 1 < from || held > keep)) {
        at++;
        held -= raft__entry_bytes(raft__tail_get(&r->tail, at));
    }
    return at;
}

void raft__trim(struct raft *r)
{
    /* What is not durable here yet stays: with other voters an entry may commit and be applied
     * before the own log has it. */
    uint64_t to = r->applied < r->stored ? r->applied : r->stored;

    if (!r->lone)
        to = kept_for_others(r, to);
    if (to <= r->tail.base_index)
        return;
    raft__members_dropping(r, to);
    raft__tail_drop(&r->tail, to);
}

uint64_t raft_oldest_needed(const struct raft *r)
{
    uint64_t from = r->lone ? UINT64_MAX : needed_from(r);
    return from < r->applied + 1 ? from : r->applied + 1;
}
