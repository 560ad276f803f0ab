/*
 * raft/recv_heartbeat_reply.c — a follower lives, and says how far it has come.
 *
 * If it answers a heartbeat that left after the last append and does not have that append, the
 * append is lost (or still on its way: then it will arrive twice, which does no harm).
 *
 * If it can vouch for less than it had acknowledged, it was restarted: its log has all that, but it
 * does not know that it is this leader's. It is asked, though there is nothing to send, since it
 * believes no commit index above what it can vouch for.
 */
#include "raft/raft_internal.h"

#include "base/fault.h"

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void resume(struct raft *r, struct raft__progress *p, const struct raft_message *m)
{
    switch (p->state) {
    case RAFT__PROBE:
        /* `last` at or past the probe: it has the entries and its disk is slow. */
        if (m->ack.last >= p->next) {
            raft__progress_move(p, RAFT__PIPELINE, r->seq);
            p->next = max_u64(m->ack.last, p->match) + 1;
        }
        p->paused = false;
        return;
    case RAFT__PIPELINE:
        if (max_u64(m->ack.last, p->match) + 1 < p->next || m->ack.last < p->match) {
            if (m->ack.last < p->match)
                MARK("raft.heartbeat_reply.restarted");
            else
                MARK("raft.heartbeat_reply.lost_append");
            raft__progress_move(p, RAFT__PROBE, r->seq);
            p->next = max_u64(m->ack.last, p->match) + 1;
        }
        return;
    case RAFT__SNAPSHOT:
        if (p->snapshot.index != 0 && m->heartbeat_reply.installing != p->snapshot.index)
            p->paused = false; /* it does not know of the offer */
        return;
    }
}

status raft__recv_heartbeat_reply(struct raft *r, const struct raft_message *m)
{
    struct raft__progress *p;

    ST_TRY(raft__ack_check(r, m, &p));
    if (!p)
        return ST_OK;
    raft__acked(r, p, &m->ack);
    raft__quiesce_answer(r, p, m);
    if (m->ack.seq > p->append_seq)
        resume(r, p, m);
    return ST_OK;
}
