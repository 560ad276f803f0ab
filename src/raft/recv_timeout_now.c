/*
 * raft/recv_timeout_now.c — the leader wants this replica to lead (thesis 3.10).
 */
#include "raft/raft_internal.h"

#include "base/fault.h"

status raft__recv_timeout_now(struct raft *r, const struct raft_message *m)
{
    if (m->term != r->hard.term || r->leader != m->from || r->role != RAFT_FOLLOWER ||
        !raft__may_lead(r)) {
        MARK("raft.timeout_now.ignored");
        return ST_OK;
    }
    raft__campaign_now(r);
    return ST_OK;
}
