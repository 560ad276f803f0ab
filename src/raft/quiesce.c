/*
 * raft/quiesce.c — an idle group sleeps: no ticks, no messages, whatever the number of groups.
 *
 * When nothing has been asked for quiesce_ms and every member that is up has the whole log and
 * knows that it is committed, the leader's heartbeats offer sleep. A follower that agrees says so
 * and sleeps; when all that are up do, the leader sleeps, too. Whoever wants something of a group
 * wakes it: a proposal or a read without a lease the leader, a newer message of the leader's a
 * follower. A follower that is woken by others tells the leader, which wakes and talks to all.
 *
 * Whether processes live is then the host's to watch, per process and not per group: by beacons
 * (beacons.h). RAFT_PEER_DOWN wakes the followers of a leader that is dead, was restarted or gave
 * the group up, and lets a leader sleep although a dead member lacks something; RAFT_PEER_UP wakes
 * it to mend that.
 *
 * The lease in sleep. A beacon says to every group at once what a heartbeat says to one: the sender
 * is there, and may serve reads up to its bound. It counts for a group between these:
 *
 *   Q1  A follower that sleeps under a leader votes for nobody, and asks for no vote, from its
 *       consent on until it is released, awake or not. Released it is by that leader alone: by a
 *       newer message of it, by its request for a vote in a later term, by an election that it
 *       asked for; by another leader, which a majority released before elected; or by
 *       RAFT_PEER_DOWN.
 *   Q2  Released, it owes what beacons promised: no vote for election_ms since the last one came,
 *       and it remembers reads up to the highest bound.
 *   Q3  A sleeping leader counts beacons that a member has answered only of a member that has
 *       consented, to an offer of this sleep. What else it sends to a member ends its consent.
 *   Q4  The host says RAFT_PEER_DOWN at both ends when it does at one: it ends the connection, and
 *       an answer that comes over a later one follows RAFT_PEER_UP, which wakes the leader (Q3).
 *
 * So an answered beacon stands for a promise that is still kept, and the arithmetic of lease.c is
 * the same, with a beacon in the place of a heartbeat.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"
#include "raft/quorum.h"

static bool peer_settled(const struct raft *r, const struct raft__progress *p)
{
    if (p->down)
        return true;
    return p->state == RAFT__PIPELINE && p->match == r->commit && p->commit_acked >= r->commit;
}

/* With less than a majority the leader stays awake, until it notices (check-quorum). */
static bool majority_up(const struct raft *r)
{
    unsigned up = 0;
    for (unsigned i = 0; i < r->progress_count; i++)
        up += r->progress[i].role == RAFT_VOTER && (i == r->self_at || !r->progress[i].down);
    return up >= raft__quorum_size(r->voters);
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
    return majority_up(r);
}

static bool all_asleep(const struct raft *r)
{
    for (unsigned i = 0; i < r->progress_count; i++) {
        const struct raft__progress *p = &r->progress[i];
        if (i != r->self_at && !p->down && !p->asleep)
            return false;
    }
    return true;
}

/* Q3 */
void raft__consent_forget(struct raft *r)
{
    if (r->offer_seq == 0)
        return;
    r->offer_seq = 0;
    for (unsigned i = 0; i < r->progress_count; i++)
        r->progress[i].asleep = false;
    if (r->config.beacons != NULL)
        raft__raise(&r->read_bound, r->config.beacons->sent_bound);
}

bool raft__quiesce_offer(struct raft *r)
{
    if (!nothing_to_do(r)) {
        raft__consent_forget(r);
        return false;
    }
    if (all_asleep(r)) { /* those that did not are down by now */
        r->quiesced = true;
        return true;
    }
    if (r->offer_seq == 0)
        r->offer_seq = r->seq + 1;
    for (unsigned i = 0; i < r->progress_count; i++) {
        struct raft__progress *p = &r->progress[i];
        bool asleep = p->asleep;
        if (i == r->self_at || p->down)
            continue;
        raft__send_lead(r, RAFT_MSG_HEARTBEAT, p)->heartbeat.quiesce = true;
        p->asleep = asleep;
    }
    return true;
}

void raft__quiesce_answer(struct raft *r, struct raft__progress *p, const struct raft_message *m)
{
    if (r->offer_seq == 0 || m->ack.seq < r->offer_seq)
        return; /* to what was asked before */
    p->asleep = m->heartbeat_reply.asleep;
    if (!p->asleep && r->quiesced)
        raft__stay_awake(r); /* somebody woke it */
    else if (p->asleep && all_asleep(r) && nothing_to_do(r))
        r->quiesced = true;
}

/* -- followers --------------------------------------------------------------------------------- */

void raft__fall_asleep(struct raft *r, const struct raft_message *m)
{
    MARK("raft.heartbeat.quiesced");
    r->quiesced = true;
    r->asleep_under = m->from;
    r->asleep_term = m->term;
    r->asleep_seq = m->lead.seq;
}

bool raft__asleep_after(const struct raft *r, const struct raft_message *m)
{
    return r->asleep_under == m->from && r->asleep_term == m->term && m->lead.seq <= r->asleep_seq;
}

/* Q2 */
void raft__released(struct raft *r)
{
    const struct raft_beacon *b = raft_beacon_of(r->config.beacons, r->asleep_under);

    r->quiesced = false;
    r->asleep_under = 0;
    if (b == NULL || RAFT_BROKEN(RAFT__BREAK_NO_PROMISE) || RAFT_BROKEN(RAFT__BREAK_SLEEPER_VOTES))
        return;
    if (b->heard_ms != 0)
        raft__raise(&r->promise_ms, b->heard_ms + r->config.election_ms);
    raft__raise(&r->read_bound, b->heard_bound);
}

/* A leader that sleeps takes it for a member that did not agree to. */
void raft__tell_awake(struct raft *r)
{
    if (r->asleep_under == 0)
        return;
    struct raft_message *m = raft__send_ack(r, RAFT_MSG_HEARTBEAT_REPLY, r->asleep_under);
    m->ack.seq = r->asleep_seq;
    if (r->hard.term != r->asleep_term)
        m->ack = (struct raft_ack){0}; /* the term says it all */
}

/* -- whether processes live -------------------------------------------------------------------- */

/* The leader is dead: who follows need not wait out its patience, only its promise. */
static void leader_down(struct raft *r, bool slept)
{
    uint64_t from = r->now_ms > r->promise_ms ? r->now_ms : r->promise_ms;
    uint64_t deadline = from + raft__random(r, r->config.election_ms / RAFT__ELECTION_SPREAD + 1);

    r->leader = 0;
    if (slept || deadline < r->deadline_ms)
        r->deadline_ms = deadline;
}

void raft__peer_down(struct raft *r, uint64_t peer)
{
    if (r->role != RAFT_LEADER) {
        bool slept = r->quiesced;
        if (peer == r->asleep_under)
            raft__released(r);
        if (peer == r->leader && peer != 0)
            leader_down(r, slept);
        return;
    }
    struct raft__progress *p = raft__progress_find(r, peer);
    if (!p || peer == r->config.self)
        return;
    p->down = true;
    p->asleep = false;
    if (r->quiesced && !majority_up(r))
        raft__stay_awake(r);
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
