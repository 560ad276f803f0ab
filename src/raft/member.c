/*
 * raft/member.c — who belongs to the group: one change at a time (thesis 4.2).
 *
 * The list in force is the last one in the log, committed or not, so it takes effect when it is
 * appended and goes back when its entry is truncated. Two lists that follow each other differ in
 * one member, so a majority of one and of the other share a voter. That holds only along one log:
 * two leaders could start from the same list and each reach a majority that the other does not
 * meet. So a leader changes nothing before it has committed an entry of its own term, and before
 * the change before is committed. (The four-node race of tests/data/raft/add_race.txt.)
 *
 * A leader that is removed leads until that entry is committed, without a vote of its own.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"

#include <stdlib.h>

static void members_decode(const struct raft_entry *entry, struct raft_members *out)
{
    status st = raft_members_decode(buf_bytes(entry->data), out);
    ASSERT_INV("a membership entry in the tail was checked on its way in", st == ST_OK);
}

static void progress_init(const struct raft *r, struct raft__progress *p, uint64_t id)
{
    *p = (struct raft__progress){
        .id = id,
        .state = RAFT__PROBE,
        .next = raft__tail_last_index(&r->tail) + 1,
        .state_seq = r->seq,
        .heard_ms = r->now_ms,
    };
}

void raft__progress_align(struct raft *r)
{
    struct raft__progress *now = NULL;

    r->self_at = raft_members_find(&r->members, r->config.self);
    r->voters = raft_members_voters(&r->members);
    r->lone = r->members.count == 1 && r->self_at == 0 && r->voters == 1;
    if (r->role == RAFT_LEADER && !r->lone) {
        now = calloc(r->members.count, sizeof *now);
        ASSERT(now != NULL);
    }
    for (unsigned i = 0; now && i < r->members.count; i++) {
        const struct raft__progress *old = raft__progress_find(r, r->members.at[i].id);
        if (old)
            now[i] = *old;
        else
            progress_init(r, &now[i], r->members.at[i].id);
        now[i].role = r->members.at[i].role;
    }
    free(r->progress);
    r->progress = now;
    r->progress_count = now ? r->members.count : 0;
}

struct raft__progress *raft__progress_find(const struct raft *r, uint64_t id)
{
    for (unsigned i = 0; i < r->progress_count; i++) {
        if (r->progress[i].id == id)
            return &r->progress[i];
    }
    return NULL;
}

void raft__members_took(struct raft *r, const struct raft_entry *entry)
{
    if (LIKELY(entry->kind != RAFT_ENTRY_MEMBERS))
        return;
    members_decode(entry, &r->members);
    r->members_index = entry->index;
    raft__progress_align(r);
}

/* The last list at or below INDEX; its own index. */
static uint64_t members_find(const struct raft *r, uint64_t index, struct raft_members *out)
{
    for (uint64_t i = index; i > r->tail.base_index; i--) {
        const struct raft_entry *entry = raft__tail_get(&r->tail, i);
        if (entry && entry->kind == RAFT_ENTRY_MEMBERS) {
            members_decode(entry, out);
            return i;
        }
    }
    *out = r->config.members;
    return r->members_base_index;
}

void raft__members_truncated(struct raft *r)
{
    uint64_t last = raft__tail_last_index(&r->tail);
    if (r->members_index <= last)
        return;
    MARK("raft.members.rolled_back");
    r->members_index = members_find(r, last, &r->members);
    raft__progress_align(r);
}

void raft__members_dropping(struct raft *r, uint64_t index)
{
    if (LIKELY(r->members_index == r->members_base_index))
        return;
    struct raft_members members;
    r->members_base_index = members_find(r, index, &members);
    r->config.members = members;
}

void raft__members_replace(struct raft *r, const struct raft_snapshot *s)
{
    r->config.members = r->members = s->members;
    r->members_base_index = r->members_index = s->index;
    raft__progress_align(r);
}

void raft_members_at(const struct raft *r, uint64_t index, struct raft_members *out)
{
    ASSERT(index >= r->tail.base_index);
    if (index >= r->members_index)
        *out = r->members;
    else
        (void)members_find(r, index, out);
}

bool raft__change_pending(const struct raft *r)
{
    return r->members_index > r->commit;
}

status raft__change(struct raft *r, enum raft_change_kind kind, uint64_t id)
{
    struct raft_members next;

    if (r->role != RAFT_LEADER)
        return ST_NOT_LEADER;
    if (RAFT_BROKEN(RAFT__BREAK_CHANGE_EARLY)) {
        if (raft__change_pending(r))
            return ST_LOCKED;
    } else if (r->transfer_to != 0 || !raft__opened(r) || raft__change_pending(r)) {
        return ST_LOCKED;
    }
    ST_TRY(raft_members_change(&r->members, kind, id, &next));
    const struct raft__progress *p = raft__progress_find(r, id);
    if (kind == RAFT_ADD_VOTER && p && p->state != RAFT__PIPELINE)
        return ST_LOCKED; /* a learner that lacks too much would be a voter in name only */
    raft__stay_awake(r);
    struct buf *data = raft_members_encode(&next);
    r->out_proposed = raft__append(r, RAFT_ENTRY_MEMBERS, data);
    buf_unref(data);
    raft__members_took(r, raft__tail_get(&r->tail, r->out_proposed));
    /* The new majority may be there already. */
    raft__commit_advance(r);
    return ST_OK;
}

bool raft_peer(const struct raft *r, unsigned at, struct raft_peer *out)
{
    if (r->role != RAFT_LEADER || at >= r->progress_count || at == r->self_at)
        return false;
    const struct raft__progress *p = &r->progress[at];
    *out = (struct raft_peer){
        .id = p->id,
        .role = p->role,
        .state = p->state == RAFT__PROBE      ? RAFT_PEER_PROBE
                 : p->state == RAFT__PIPELINE ? RAFT_PEER_PIPELINE
                                              : RAFT_PEER_SNAPSHOT,
        .match = p->match,
        .next = p->next,
        .heard_ms = p->heard_ms,
        .down = p->down,
    };
    return true;
}
