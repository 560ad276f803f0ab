/*
 * raft/lease.c — how long a leader may trust that there is no other (thesis 6.4.1, by promise).
 *
 * A replica that hears a leader promises to vote for nobody for election_ms of its own clock. So
 * from the moment at which a majority was sent what it has answered since, no other leader can be
 * elected for election_ms; less what two clocks may drift apart, that is the lease:
 *
 *   lease_ms = election_ms * (1000 - drift_permille) / (1000 + drift_permille)
 *
 * The bound: no clock runs faster or slower than true time by more than drift_permille, and
 * now_ms never jumps (a monotonic clock that counts while the machine sleeps, or sleep stops it
 * for all that runs here). A replica that restarts renews its promise, since it has forgotten it.
 *
 * So by the time that a leader is elected the lease of the one before has run out, or was suspended
 * because it asked for the election: a new leader need not wait. What it must know is up to which
 * time of day reads were served: raft_read_bound, which a majority remembers and votes carry.
 *
 * There is no lease before an entry of the leader's term is committed, while a change of members
 * is not, and from the start of a transfer on: the successor is elected in spite of promises.
 * If the transfer was let go before the successor was told, the lease comes back; else a late
 * message may still elect it, so it does not in this term.
 *
 * While a group sleeps the beacons of the two processes keep its lease, and carry the bound: by
 * which rules is said in quiesce.c.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"
#include "base/fault.h"
#include "raft/quorum.h"

uint64_t raft__quorum_of(const struct raft *r, uint64_t self,
                         uint64_t (*value)(const struct raft *, const struct raft__progress *))
{
    uint64_t values[RAFT_VOTERS_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < r->members.count; i++) {
        if (r->members.at[i].role != RAFT_VOTER)
            continue;
        ASSERT(count < RAFT_VOTERS_MAX);
        values[count++] = i == r->self_at ? self : value(r, &r->progress[i]);
    }
    return raft__quorum_index(values, count);
}

static uint64_t heard(const struct raft *r, const struct raft__progress *p)
{
    (void)r;
    return p->heard_ms;
}

bool raft__quorum_lost(const struct raft *r)
{
    uint64_t patience = RAFT_BROKEN(RAFT__BREAK_LEASE_LONG) ? 3 : 1;
    return raft__quorum_of(r, r->now_ms, heard) + patience * r->config.election_ms <= r->now_ms;
}

bool raft__opened(const struct raft *r)
{
    return r->role == RAFT_LEADER && r->commit >= r->opened;
}

/* In sleep beacons speak for the group, to those that agreed to sleep (quiesce.c). */
static const struct raft_beacon *beacon(const struct raft *r, const struct raft__progress *p)
{
    return r->quiesced && p->asleep ? raft_beacon_of(r->config.beacons, p->id) : NULL;
}

static uint64_t answered(const struct raft *r, const struct raft__progress *p)
{
    const struct raft_beacon *b = beacon(r, p);
    return b != NULL && b->acked_ms > p->acked_ms ? b->acked_ms : p->acked_ms;
}

uint64_t raft_lease_until_ms(const struct raft *r)
{
    if (!raft__opened(r))
        return 0;
    if (r->lone)
        return UINT64_MAX;
    if (raft__change_pending(r) || r->transfer_to != 0 || r->transfer_sent)
        return 0;
    if ((r->quiesced && r->config.beacons == NULL) || fault_point("raft.no_lease"))
        return 0;
    uint64_t from = raft__quorum_of(r, UINT64_MAX, answered); /* asleep now_ms is an old one */
    if (from == UINT64_MAX)
        from = r->now_ms; /* no other voter */
    if (from == 0)
        return 0;
    uint64_t drift = r->config.drift_permille;
    if (RAFT_BROKEN(RAFT__BREAK_LEASE_LONG))
        return from + 3 * r->config.election_ms;
    return from + r->config.election_ms * (1000 - drift) / (1000 + drift);
}

static uint64_t bound(const struct raft *r, const struct raft__progress *p)
{
    const struct raft_beacon *b = beacon(r, p);
    return b != NULL && b->acked_bound > p->read_bound ? b->acked_bound : p->read_bound;
}

static uint64_t own_bound(const struct raft *r)
{
    const struct raft_beacons *b = r->quiesced ? r->config.beacons : NULL;
    return b != NULL && b->sent_bound > r->read_bound ? b->sent_bound : r->read_bound;
}

/* Not above the own bound, though a majority may know a higher one: only the own one goes to those
 * who become voters later, with the entry that makes them so. */
uint64_t raft_read_bound(const struct raft *r)
{
    if (r->role != RAFT_LEADER)
        return 0;
    uint64_t own = own_bound(r), known = r->lone ? own : raft__quorum_of(r, own, bound);
    return known < own ? known : own;
}

uint64_t raft_read_floor(const struct raft *r)
{
    return r->read_bound;
}
