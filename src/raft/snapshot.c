/*
 * raft/snapshot.c — metadata of snapshots; the data is the host's to move (Raft 7).
 *
 *   leader                          host            host                       follower
 *     |-- snapshot_for ------------->|               |                             |
 *     |<- RAFT_SNAPSHOT_READY -------|               |                             |
 *     |-- SNAPSHOT (an offer) ------------------------------------------------->  |
 *     |                                              |<--------------- install ---|
 *     |                              |<-- data ----> |                             |
 *     |                                              |---- RAFT_INSTALLED ------->|
 *     |<------------------------------------------------- SNAPSHOT_REPLY (done) --|
 *
 * The host names the snapshot when its index is fixed, before it is built: from then on entries
 * behind it are kept. An offer that got lost, or a follower that restarted, shows in the answers to
 * heartbeats, which say what is being installed; the offer is repeated then.
 *
 * What installing does to the follower's log: if it has the snapshot's last entry, everything up to
 * it is the same and what is behind it stays. Else, whether the log ends before, has another entry
 * there, or goes on behind another entry, all of it goes, and RAFT_ENTRY_SNAPSHOT says so in the
 * log on disk, where the entries still are (restore.c).
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"

void raft__snapshot_needed(struct raft *r, struct raft__progress *p)
{
    raft__progress_move(p, RAFT__SNAPSHOT, r->seq);
}

static void send_offer(struct raft *r, struct raft__progress *p)
{
    struct raft_message *m = raft__send_lead(r, RAFT_MSG_SNAPSHOT, p);
    m->snapshot = p->snapshot;
    p->append_seq = m->lead.seq;
    p->paused = true;
}

/* Asks the host for a snapshot (for one replica in a step), or offers what it named. */
void raft__snapshot_offer(struct raft *r, struct raft__progress *p)
{
    if (p->snapshot.index != 0) {
        if (!p->paused)
            send_offer(r, p);
    } else if (!p->snapshot_asked && !p->down && r->out_snapshot_for == 0) {
        r->out_snapshot_for = p->id;
        p->snapshot_asked = true;
    }
}

void raft__snapshot_ready(struct raft *r, const struct raft_input *in)
{
    struct raft__progress *p = r->role == RAFT_LEADER ? raft__progress_find(r, in->peer) : NULL;

    if (!p || p->state != RAFT__SNAPSHOT || p->snapshot.index != 0) {
        MARK("raft.snapshot.not_needed");
        return;
    }
    ASSERT(in->snapshot->index > 0);
    ASSERT(in->snapshot->index <= r->applied);
    p->snapshot = *in->snapshot;
}

/* The next sign of life starts over, so a follower that always refuses costs little. */
void raft__snapshot_failed(struct raft *r, uint64_t peer)
{
    struct raft__progress *p = r->role == RAFT_LEADER ? raft__progress_find(r, peer) : NULL;

    if (!p || p->state != RAFT__SNAPSHOT)
        return;
    raft__progress_move(p, RAFT__PROBE, r->seq);
    p->next = p->match + 1;
    p->paused = true;
}

static void log_reset(struct raft *r, const struct raft_snapshot *s)
{
    MARK("raft.snapshot.log_replaced");
    raft__tail_fini(&r->tail);
    raft__tail_init(&r->tail, s->index, s->term);
    r->stored = s->index;
    r->epoch++;
    raft__members_replace(r, s);
    r->boundary = (struct raft_entry){.index = s->index,
                                      .term = s->term,
                                      .kind = RAFT_ENTRY_SNAPSHOT,
                                      .data = raft_members_encode(&s->members)};
    r->out_boundary = true;
}

static bool log_has(const struct raft *r, const struct raft_snapshot *s)
{
    uint64_t held;
    if (!raft__term_of(r, s->index, &held))
        return false;
    return held == s->term || RAFT_BROKEN(RAFT__BREAK_KEEP_CONFLICT);
}

static void install(struct raft *r, const struct raft_snapshot *s)
{
    if (s->index <= r->applied)
        return;
    if (!log_has(r, s))
        log_reset(r, s);
    /* What the state machine has durably, the log need not have. */
    raft__raise(&r->stored, s->index);
    raft__raise(&r->commit, s->index);
    raft__raise(&r->applied, s->index);
    raft__raise(&r->verified, s->index);
    raft__trim(r);
    /* A snapshot of a later term than ours was taken by leaders that we have not heard of. */
    if (s->term > r->hard.term)
        raft__become_follower(r, s->term, 0);
}

static void tell_leader(struct raft *r, enum raft_snapshot_verdict verdict, uint64_t index)
{
    if (r->leader == 0 || r->leader == r->config.self)
        return;
    struct raft_message *m = raft__send_ack(r, RAFT_MSG_SNAPSHOT_REPLY, r->leader);
    m->snapshot_reply.verdict = verdict;
    m->snapshot_reply.index = index;
}

void raft__installed(struct raft *r, const struct raft_snapshot *s)
{
    ASSERT(r->install.index != 0);
    ASSERT(s->index == r->install.index);
    ASSERT(s->term == r->install.term);
    r->install.index = 0;
    install(r, s);
    tell_leader(r, RAFT_SNAPSHOT_DONE, s->index);
}

void raft__install_failed(struct raft *r)
{
    uint64_t index = r->install.index;
    ASSERT(index != 0);
    r->install.index = 0;
    tell_leader(r, RAFT_SNAPSHOT_REFUSED, index);
}
