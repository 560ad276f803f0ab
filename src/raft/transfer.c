/*
 * raft/transfer.c — a leader hands its office over (thesis 3.10).
 *
 * From the request on the leader takes no proposals and its lease is suspended. When the successor
 * has the whole log it is told to start an election at once, past the promises of the others. If
 * nothing has come of it within election_ms the leader goes on, when nobody was told. Otherwise the
 * message may still come, so there is no lease in this term any more: it gives its office up, and
 * the next election, in another term, makes a leader that can serve.
 *
 * A leader whose own disk hangs resigns: it names the follower with the longest log and leads no
 * more, whatever becomes of it. Its heartbeats would hold the group for ever otherwise. One that
 * has nothing to store cannot notice; the host, whose groups share a log, tells it.
 */
#include "raft/raft_internal.h"

#include "base/fault.h"

static const struct raft__progress *best_successor(const struct raft *r)
{
    const struct raft__progress *best = NULL;
    for (unsigned i = 0; i < r->progress_count; i++) {
        const struct raft__progress *p = &r->progress[i];
        if (i == r->self_at || p->role != RAFT_VOTER || p->down)
            continue;
        if (!best || p->match > best->match)
            best = p;
    }
    return best;
}

static void transfer_end(struct raft *r)
{
    r->transfer_to = 0;
    r->transfer_told = false;
}

status raft__transfer(struct raft *r, uint64_t to)
{
    if (r->role != RAFT_LEADER)
        return ST_NOT_LEADER;
    if (r->transfer_to != 0 || raft__change_pending(r))
        return ST_LOCKED;
    const struct raft__progress *p = to != 0 ? raft__progress_find(r, to) : best_successor(r);
    if (!p || p->id == r->config.self || p->role != RAFT_VOTER)
        return ST_NOT_FOUND;
    raft__stay_awake(r);
    r->transfer_to = p->id;
    r->transfer_ms = r->now_ms + r->config.election_ms;
    return ST_OK;
}

void raft__transfer_check(struct raft *r)
{
    if (r->transfer_to == 0)
        return;
    const struct raft__progress *p = raft__progress_find(r, r->transfer_to);
    if (!p || r->now_ms >= r->transfer_ms) {
        MARK("raft.transfer.given_up");
        transfer_end(r);
        if (r->transfer_sent)
            raft__become_follower(r, r->hard.term, 0);
    } else if (!r->transfer_told && p->match == raft__tail_last_index(&r->tail)) {
        raft__send(r, RAFT_MSG_TIMEOUT_NOW, p->id);
        r->transfer_told = r->transfer_sent = true;
    }
}

void raft__resign(struct raft *r)
{
    const struct raft__progress *p = best_successor(r);
    if (p)
        raft__send(r, RAFT_MSG_TIMEOUT_NOW, p->id);
    raft__become_follower(r, r->hard.term, 0);
}
