/*
 * raft/recv_append_reply.c — a follower has stored entries, or lacks what they follow (Raft 5.3).
 *
 * A refusal that is older than the follower's present state says nothing new. A new one moves
 * `next` back to where the logs may agree: the follower's hint, or below it this log's last entry
 * whose term is not above the hint's.
 *
 * If a probe at what the follower had acknowledged is refused, it has lost its log: all that is
 * known of it is void. (Such a replica must not vote: raft_config.votes_never.)
 */
#include "raft/raft_internal.h"

#include "base/fault.h"

/* Where both logs may agree. */
static uint64_t agreed_at(const struct raft *r, const struct raft_message *m)
{
    uint64_t index = m->append_reply.hint_index, term;

    while (index > r->tail.base_index && raft__term_of(r, index, &term) &&
           term > m->append_reply.hint_term)
        index--;
    return index;
}

static void refused(struct raft *r, struct raft__progress *p, const struct raft_message *m)
{
    uint64_t prev = m->append_reply.prev_index;

    if (p->state == RAFT__SNAPSHOT || m->ack.seq <= p->state_seq || prev < p->match) {
        MARK("raft.append_reply.stale");
        return;
    }
    if (prev == p->match) {
        if (p->state != RAFT__PROBE || m->ack.seq != p->append_seq)
            return;
        MARK("raft.append_reply.lost_log");
        p->match = 0;
    }
    uint64_t index = agreed_at(r, m);
    raft__progress_move(p, RAFT__PROBE, r->seq);
    p->next = (index > p->match ? index : p->match) + 1;
}

static void agreed(struct raft *r, struct raft__progress *p, const struct raft_message *m)
{
    if (p->state != RAFT__PROBE || m->ack.seq <= p->state_seq)
        return;
    raft__progress_move(p, RAFT__PIPELINE, r->seq);
    p->next = (m->ack.last > p->match ? m->ack.last : p->match) + 1;
}

status raft__recv_append_reply(struct raft *r, const struct raft_message *m)
{
    struct raft__progress *p;

    ST_TRY(raft__ack_check(r, m, &p));
    if (!p)
        return ST_OK;
    if (m->append_reply.prev_index > raft__tail_last_index(&r->tail))
        return ST_PROTOCOL;
    if (m->append_reply.refused) {
        refused(r, p, m);
        struct raft_ack ack = m->ack;
        ack.match = 0;
        raft__acked(r, p, &ack);
        return ST_OK;
    }
    raft__acked(r, p, &m->ack);
    agreed(r, p, m);
    return ST_OK;
}
