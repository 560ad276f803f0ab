/*
 * raft/quiesce.c — an idle group sleeps: no ticks, no messages, whatever the number of groups.
 *
 * When nothing has been asked for quiesce_ms and every member that is up has the whole log and
 * knows that it is committed, the leader says so in its last heartbeat and sleeps; a follower that
 * agrees sleeps, too. One that does not answers, which wakes the leader. There is no lease in
 * sleep; the first read or proposal wakes the group by a round of heartbeats.
 *
 * Whether the leader's process lives is then the host's to watch, per node and not per group:
 * RAFT_PEER_DOWN wakes the followers of a leader that is dead or was restarted, and lets a leader
 * sleep although a dead member lacks something; RAFT_PEER_UP wakes it to mend that.
 *
 * A sleeping follower takes its leader for alive, so it votes for nobody; being asked wakes it.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"

static bool peer_settled(const struct raft *r, const struct raft__progress *p)
{
    if (p->down)
        return true;
    return p->state == RAFT__PIPELINE && p->match == r->commit && p->commit_acked >= r->commit;
}

static bool nothing_to_do(const struct raft *r)
{
    uint64_t last = raft__tail_last_index(&r->tail);

    if (r->config.quiesce_ms == 0 || r->now_ms < r->active_ms + r->config.quiesce_ms)
        return false;
    if (r->commit != last || r->stored != last || r->transfer_to != 0 || r->read_asked != 0 ||
        r->read_waiting != 0)
        return false;
    for (unsigned i = 0; i < r->progress_count; i++) {
        if (i != r->self_at && !peer_settled(r, &r->progress[i]))
            return false;
    }
    return true;
}

void raft__quiesce_check(struct raft *r)
{
    if (!nothing_to_do(r))
        return;
    for (unsigned i = 0; i < r->progress_count; i++) {
        struct raft__progress *p = &r->progress[i];
        if (i != r->self_at && !p->down)
            raft__send_lead(r, RAFT_MSG_HEARTBEAT, p)->heartbeat.quiesce = true;
    }
    r->quiesced = true;
}

/* The leader is dead: who follows need not wait out its patience, only its promise. */
static void leader_down(struct raft *r)
{
    uint64_t from = r->now_ms > r->promise_ms ? r->now_ms : r->promise_ms;
    uint64_t deadline = from + raft__random(r, r->config.election_ms);

    r->leader = 0;
    if (r->quiesced || deadline < r->deadline_ms)
        r->deadline_ms = deadline;
    r->quiesced = false;
}

void raft__peer_down(struct raft *r, uint64_t peer)
{
    if (r->role != RAFT_LEADER) {
        if (peer == r->leader && peer != 0)
            leader_down(r);
        return;
    }
    struct raft__progress *p = raft__progress_find(r, peer);
    if (p && peer != r->config.self)
        p->down = true;
}

void raft__peer_up(struct raft *r, uint64_t peer)
{
    if (r->role != RAFT_LEADER)
        return;
    struct raft__progress *p = raft__progress_find(r, peer);
    if (!p || peer == r->config.self)
        return;
    p->down = false;
    raft__stay_awake(r);
}
