/*
 * raft/recv_snapshot.c — the leader offers a snapshot, since its log no longer goes back to what is
 * missing here (Raft 7).
 *
 * If its last entry is here, the logs agree up to it and it is not needed. Else the host is told to
 * fetch it: one at a time; another offer waits until this one is installed or has failed.
 */
#include "raft/raft_internal.h"

#include "base/fault.h"

static bool not_needed(struct raft *r, const struct raft_snapshot *s)
{
    uint64_t held;

    if (s->index <= r->commit)
        return true;
    if (!raft__term_of(r, s->index, &held) || held != s->term)
        return false;
    MARK("raft.snapshot.log_has_it");
    if (r->verified < s->index)
        r->verified = s->index;
    raft__commit_heard(r, s->index);
    return true;
}

static void answer(struct raft *r, const struct raft_message *m, enum raft_snapshot_verdict verdict)
{
    struct raft_message *reply = raft__send_ack(r, RAFT_MSG_SNAPSHOT_REPLY, m->from);
    reply->ack.seq = m->lead.seq;
    reply->ack.sent_ms = m->lead.sent_ms;
    reply->snapshot_reply.verdict = verdict;
    reply->snapshot_reply.index = m->snapshot.index;
}

status raft__recv_snapshot(struct raft *r, const struct raft_message *m)
{
    uint64_t held;

    ST_TRY(raft__lead_check(r, m));
    if (m->term >= r->hard.term && m->snapshot.index <= r->commit &&
        raft__term_of(r, m->snapshot.index, &held) && held != m->snapshot.term)
        return ST_CORRUPT;
    if (!raft__lead_heard(r, m))
        return ST_OK;
    if (not_needed(r, &m->snapshot)) {
        answer(r, m, RAFT_SNAPSHOT_DONE);
        return ST_OK;
    }
    if (r->install.index == 0) {
        r->install = m->snapshot;
        r->install_from = m->from;
        r->out_install = true;
    }
    if (r->install.index == m->snapshot.index)
        answer(r, m, RAFT_SNAPSHOT_ACCEPTED);
    return ST_OK;
}
