/*
 * raft/recv_snapshot_reply.c — what became of an offered snapshot.
 */
#include "raft/raft_internal.h"

#include "base/fault.h"

status raft__recv_snapshot_reply(struct raft *r, const struct raft_message *m)
{
    struct raft__progress *p;

    ST_TRY(raft__ack_check(r, m, &p));
    if (!p)
        return ST_OK;
    raft__acked(r, p, &m->ack);
    if (p->state != RAFT__SNAPSHOT || m->snapshot_reply.index != p->snapshot.index)
        return ST_OK; /* about an earlier offer */
    switch (m->snapshot_reply.verdict) {
    case RAFT_SNAPSHOT_ACCEPTED: return ST_OK;
    case RAFT_SNAPSHOT_REFUSED:
        MARK("raft.snapshot_reply.refused");
        raft__snapshot_failed(r, p->id);
        return ST_OK;
    case RAFT_SNAPSHOT_DONE: break;
    }
    raft__progress_move(p, RAFT__PROBE, r->seq);
    p->next = (m->ack.last > p->match ? m->ack.last : p->match) + 1;
    return ST_OK;
}
