/*
 * Connections between the processes of a random world, and the beacons that go over them.
 *
 * A connection is there for both ends or ends for both, at different moments; each end hears of it
 * by RAFT_PEER_DOWN and RAFT_PEER_UP. Beacons keep their order and end with the connection.
 * Messages of the groups keep neither here, which is worse than any host.
 */
#ifndef TESTS_RAFT_RANDOM_LINKS_H
#define TESTS_RAFT_RANDOM_LINKS_H

#include "random_world.h"

#define BEACON_MS 10u

static status step(struct world *w, struct node *n, struct raft_input *in);
static uint64_t clock_of(struct world *w, struct node *n);
static unsigned slot(const struct world *w, const struct node *n);

static inline bool running(const struct node *n)
{
    return n->used && n->core.raft != NULL;
}

static inline struct raft_beacon *beacon_of(struct world *w, struct node *n, struct node *peer)
{
    struct raft_beacon *b = &n->beacons.at[slot(w, peer)];
    if (b->peer != peer->core.id)
        *b = (struct raft_beacon){.peer = peer->core.id};
    n->beacons.count = NODES_MAX;
    return b;
}

/* What a host has on its disk of what beacons said. */
static inline uint64_t beacons_bound(const struct node *n)
{
    uint64_t bound = n->beacons.sent_bound;
    for (unsigned i = 0; i < n->beacons.count; i++) {
        if (n->beacons.at[i].heard_bound > bound)
            bound = n->beacons.at[i].heard_bound;
    }
    return bound;
}

static inline void link_close(struct world *w, struct node *n, struct node *peer)
{
    struct raft_beacon *b = beacon_of(w, n, peer);
    struct raft_input in = {.kind = RAFT_PEER_DOWN, .peer = peer->core.id};
    n->link[slot(w, peer)] = (struct link){0};
    b->acked_ms = b->acked_bound = 0;
    (void)step(w, n, &in);
}

static inline void link_open(struct world *w, struct node *n, struct node *peer, uint64_t epoch)
{
    struct raft_input in = {.kind = RAFT_PEER_UP, .peer = peer->core.id};
    n->link[slot(w, peer)] = (struct link){.epoch = epoch, .heard_at = w->now};
    (void)step(w, n, &in);
}

/* Of a process that ends: the others find out. */
static inline void links_forget(struct node *n)
{
    memset(n->link, 0, sizeof n->link);
    n->beacons = (struct raft_beacons){0};
}

static inline void beacon_send(struct world *w, struct node *n, struct node *peer, uint64_t bound)
{
    struct link *l = &n->link[slot(w, peer)];
    if (w->cut[slot(w, n)][slot(w, peer)] || w->beacon_count == WIRE_MAX)
        return;
    uint64_t due = w->now + 1 + rnd(w, 4);
    l->due_ms = due > l->due_ms ? due : l->due_ms;
    w->beacons[w->beacon_count++] = (struct beacon_in_flight){.due_ms = l->due_ms,
                                                              .epoch = l->epoch,
                                                              .from = n->core.id,
                                                              .to = peer->core.id,
                                                              .sent_ms = clock_of(w, n),
                                                              .bound = bound,
                                                              .ack_ms = l->their_ms,
                                                              .ack_bound = l->their_bound};
    if (bound > n->beacons.sent_bound)
        n->beacons.sent_bound = bound;
}

static inline void beacon_deliver(struct world *w, const struct beacon_in_flight *m)
{
    struct node *to = NULL, *from = NULL;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        to = running(&w->nodes[i]) && w->nodes[i].core.id == m->to ? &w->nodes[i] : to;
        from = w->nodes[i].used && w->nodes[i].core.id == m->from ? &w->nodes[i] : from;
    }
    if (to == NULL || from == NULL || to->link[slot(w, from)].epoch != m->epoch)
        return;
    struct link *l = &to->link[slot(w, from)];
    struct raft_beacon *b = beacon_of(w, to, from);
    l->heard_at = w->now;
    l->their_ms = m->sent_ms;
    l->their_bound = m->bound;
    b->heard_ms = clock_of(w, to);
    raft__raise(&b->heard_bound, m->bound);
    raft__raise(&b->acked_ms, m->ack_ms);
    raft__raise(&b->acked_bound, m->ack_bound);
}

static inline void link_work(struct world *w, struct node *n, struct node *peer)
{
    struct link *mine = &n->link[slot(w, peer)], *theirs = &peer->link[slot(w, n)];
    bool cut = w->cut[slot(w, n)][slot(w, peer)] || w->cut[slot(w, peer)][slot(w, n)];
    bool gone = !running(peer) || theirs->epoch != mine->epoch;
    bool silent = w->now > mine->heard_at + ELECTION_MS;
    if (mine->epoch != 0) {
        if ((gone && one_in(w, 20)) || (silent && one_in(w, 5)) || (w->faulty && one_in(w, 5000)))
            link_close(w, n, peer);
        else if ((w->now + n->core.id) % BEACON_MS == 0)
            beacon_send(w, n, peer, clock_of(w, n) + 1000 * (n->core.id % 3));
        return;
    }
    if (n->core.id < peer->core.id && running(peer) && theirs->epoch == 0 && !cut &&
        one_in(w, 20)) {
        uint64_t epoch = ++w->epochs;
        bool first = one_in(w, 2);
        link_open(w, first ? n : peer, first ? peer : n, epoch);
        link_open(w, first ? peer : n, first ? n : peer, epoch);
    }
}

static inline void links_work(struct world *w)
{
    for (unsigned i = 0; i < w->beacon_count;) {
        struct beacon_in_flight m = w->beacons[i];
        if (m.due_ms > w->now) {
            i++;
            continue;
        }
        memmove(&w->beacons[i], &w->beacons[i + 1], (--w->beacon_count - i) * sizeof m);
        beacon_deliver(w, &m);
    }
    for (unsigned i = 0; i < NODES_MAX; i++) {
        for (unsigned k = 0; k < NODES_MAX; k++) {
            struct node *n = &w->nodes[i], *peer = &w->nodes[k];
            if (i != k && running(n) && peer->used)
                link_work(w, n, peer);
        }
    }
}

#endif
