/*
 * raft/read_index.c — linearizable reads without a log entry (thesis 6.4).
 *
 * A read that came at this moment may be served when the state machine has applied what is
 * committed now, if this leader is still the leader now. The lease says so for free. Else a round:
 * a majority answers a message that was sent after the read came. Reads that come while a round
 * is under way share the next one, so there are two batches at most, however many reads.
 *
 * Tokens ascend, so "all up to this one" names a batch. Before an entry of the own term is
 * committed the leader does not know what is committed: rounds wait for it.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"

static void release(struct raft *r, uint64_t token, uint64_t index)
{
    ASSERT(token > r->out_read_token);
    r->out_read_token = token;
    r->out_read_index = index;
}

static uint64_t answered(const struct raft *r, const struct raft__progress *p)
{
    (void)r;
    return p->acked_seq;
}

static void round_begin(struct raft *r)
{
    r->read_asked = r->read_waiting;
    r->read_waiting = 0;
    r->read_seq = r->seq;
    r->read_index = r->commit;
    raft__heartbeat(r);
}

static bool round_done(const struct raft *r)
{
    return RAFT_BROKEN(RAFT__BREAK_READ_UNASKED) ||
           raft__quorum_of(r, UINT64_MAX, answered) > r->read_seq;
}

void raft__read_check(struct raft *r)
{
    if (r->role != RAFT_LEADER)
        return;
    if (r->read_asked != 0 && round_done(r)) {
        release(r, r->read_asked, r->read_index);
        r->read_asked = 0;
    }
    if (r->read_asked != 0 || r->read_waiting == 0 || !raft__opened(r))
        return;
    round_begin(r);
    if (round_done(r)) { /* no other voter */
        release(r, r->read_asked, r->read_index);
        r->read_asked = 0;
    }
}

status raft__read(struct raft *r, uint64_t token)
{
    if (r->role != RAFT_LEADER)
        return ST_NOT_LEADER;
    ASSERT(token > r->read_asked);
    ASSERT(token > r->read_waiting);
    if (r->now_ms >= raft_lease_until_ms(r))
        raft__stay_awake(r);
    r->active_ms = r->now_ms;
    if (r->read_asked == 0 && r->read_waiting == 0 && r->now_ms < raft_lease_until_ms(r)) {
        release(r, token, r->commit);
        return ST_OK;
    }
    r->read_waiting = token;
    return ST_OK;
}
