/*
 * cluster/groups.c — a queue of groups by the time at which they are due, and what beacons say.
 *
 * The queue is a heap of those that are awake. A group stays where it is when its next tick moves
 * away, as it does with every message of its leader, and is put right when it comes up: so most
 * steps cost one comparison.
 *
 * Invariants
 *   G1  A group that has a tick to come is in the queue, at that time or earlier; one that sleeps,
 *       or is left, is not.
 *   G2  A beacon is sent with a bound that is on disk here, and answered when its bound is on disk
 *       here: a restart of either side does not forget it (raft.h).
 *   G3  What a connection answered is forgotten when it ends, before the groups hear that it did
 *       (Q4 of raft/quiesce.c).
 *
 * Threads: the owner's loop.
 */
#include "cluster/groups.h"
#include "base/assert.h"
#include "base/codec.h"
#include <stdlib.h>

/* A tick that was refused is tried again after this. */
#define REFUSED_MS 20u

struct their_beacon {
    uint64_t sent_ms,
        bound; /* of the last one that may be answered; 0: none since the connection */
};

struct cl_groups {
    struct env *env;
    const struct cl_groups_events *events;
    void *arg;
    struct loop_timer *timer;
    uint64_t timer_ms; /* what the timer is set to; UINT64_MAX: nothing */
    struct cl_group **all, **queue, **left;
    unsigned count, capacity, awake, left_count;
    struct raft_beacons beacons;
    struct their_beacon theirs[RAFT_MEMBERS_MAX]; /* as beacons.at */
};

static uint64_t now_ms(const struct cl_groups *gs)
{
    return env_mono_us(gs->env) / 1000;
}

/* -- the queue --------------------------------------------------------------------------------- */

static void place(struct cl_groups *gs, unsigned at, struct cl_group *g)
{
    gs->queue[at] = g;
    g->at = at;
}

static void sift_up(struct cl_groups *gs, unsigned at)
{
    struct cl_group *g = gs->queue[at];
    for (; at > 1 && gs->queue[at / 2]->due_ms > g->due_ms; at /= 2)
        place(gs, at, gs->queue[at / 2]);
    place(gs, at, g);
}

static void sift_down(struct cl_groups *gs, unsigned at)
{
    struct cl_group *g = gs->queue[at];
    while (2 * at <= gs->awake) {
        unsigned child = 2 * at;
        if (child < gs->awake && gs->queue[child + 1]->due_ms < gs->queue[child]->due_ms)
            child++;
        if (gs->queue[child]->due_ms >= g->due_ms)
            break;
        place(gs, at, gs->queue[child]);
        at = child;
    }
    place(gs, at, g);
}

static void queue_remove(struct cl_groups *gs, struct cl_group *g)
{
    unsigned at = g->at;
    struct cl_group *last = gs->queue[gs->awake--];
    ASSERT(gs->queue[at] == g);
    g->at = 0;
    if (last == g)
        return;
    place(gs, at, last);
    sift_up(gs, at);
    sift_down(gs, last->at);
}

static void queue_set(struct cl_groups *gs, struct cl_group *g, uint64_t due_ms)
{
    bool later = g->at != 0 && due_ms > g->due_ms;
    g->due_ms = due_ms;
    if (g->at == 0) {
        place(gs, ++gs->awake, g);
        ASSERT(gs->awake <= gs->count);
    }
    if (later)
        sift_down(gs, g->at);
    else
        sift_up(gs, g->at);
}

static uint64_t next_tick_ms(const struct cl_group *g)
{
    uint64_t due_ms = raft_next_tick_ms(g->raft);
    return due_ms > g->hold_ms ? due_ms : g->hold_ms;
}

void cl_groups_note(struct cl_groups *gs, struct cl_group *g)
{
    uint64_t due_ms = next_tick_ms(g);
    if (g->left)
        return;
    if (due_ms == UINT64_MAX) {
        if (g->at != 0)
            queue_remove(gs, g);
    } else if (g->at == 0 || due_ms < g->due_ms) {
        queue_set(gs, g, due_ms);
    }
}

void cl_groups_leave(struct cl_groups *gs, struct cl_group *g)
{
    if (g->left)
        return;
    g->left = true;
    gs->left[gs->left_count++] = g;
    if (g->at != 0)
        queue_remove(gs, g);
}

/* -- time -------------------------------------------------------------------------------------- */

static void on_timer(void *arg)
{
    struct cl_groups *gs = arg;
    uint64_t now = now_ms(gs);
    gs->timer_ms = UINT64_MAX;
    while (gs->awake > 0 && gs->queue[1]->due_ms <= now) {
        struct cl_group *g = gs->queue[1];
        if (next_tick_ms(g) <= now)
            gs->events->step(gs->arg, g, &(struct raft_input){.kind = RAFT_TICK});
        uint64_t due_ms = next_tick_ms(g);
        if (g->at == 0 || due_ms == UINT64_MAX)
            cl_groups_note(gs, g);
        else
            queue_set(gs, g, due_ms > now ? due_ms : now + REFUSED_MS);
    }
    cl_groups_turn(gs);
}

void cl_groups_turn(struct cl_groups *gs)
{
    uint64_t next = gs->awake > 0 ? gs->queue[1]->due_ms : UINT64_MAX, now;
    if (gs->timer == NULL || next == gs->timer_ms)
        return;
    gs->timer_ms = next;
    now = now_ms(gs);
    if (next == UINT64_MAX)
        loop_timer_stop(gs->timer);
    else
        loop_timer_start(gs->timer, next > now ? (next - now) * 1000 : 0);
}

unsigned cl_groups_awake(const struct cl_groups *gs)
{
    return gs->awake;
}

/* -- beacons ----------------------------------------------------------------------------------- */

static unsigned peer_at(struct cl_groups *gs, uint64_t node)
{
    struct raft_beacons *b = &gs->beacons;
    for (unsigned i = 0; i < b->count; i++) {
        if (b->at[i].peer == node)
            return i;
    }
    ASSERT(b->count < RAFT_MEMBERS_MAX);
    b->at[b->count] = (struct raft_beacon){.peer = node};
    return b->count++;
}

static void raise_to(uint64_t *value, uint64_t to)
{
    if (*value < to)
        *value = to;
}

void cl_groups_changed(struct cl_groups *gs, uint64_t node, bool up)
{
    unsigned at = peer_at(gs, node);
    gs->theirs[at] = (struct their_beacon){0};
    gs->beacons.at[at].acked_ms = gs->beacons.at[at].acked_bound = 0; /* G3 */
    for (unsigned i = 0; i < gs->count; i++) {
        struct raft_input in = {.kind = up ? RAFT_PEER_UP : RAFT_PEER_DOWN, .peer = node};
        if (!gs->all[i]->left)
            gs->events->step(gs->arg, gs->all[i], &in);
    }
}

void cl_groups_forget(struct cl_groups *gs, uint64_t node)
{
    unsigned at = peer_at(gs, node);
    cl_groups_changed(gs, node, false);
    gs->beacons.count--;
    gs->beacons.at[at] = gs->beacons.at[gs->beacons.count];
    gs->theirs[at] = gs->theirs[gs->beacons.count];
}

void cl_groups_fill_beacon(struct cl_groups *gs, uint64_t node, struct obuf *out)
{
    const struct their_beacon *theirs = &gs->theirs[peer_at(gs, node)];
    uint64_t wish = gs->events->read_wish(gs->arg);
    if (gs->events->covers(gs->arg, wish)) /* G2 */
        raise_to(&gs->beacons.sent_bound, wish);
    put_varint(out, now_ms(gs));
    put_varint(out, gs->beacons.sent_bound);
    put_varint(out, theirs->sent_ms);
    put_varint(out, theirs->bound);
    for (unsigned i = 0; i < gs->left_count; i++)
        put_varint(out, gs->left[i]->id);
}

/* Their replica of this group leads no more. One that follows another need not hear of it. */
static void on_left(struct cl_groups *gs, uint64_t node, uint64_t id)
{
    for (unsigned i = 0; i < gs->count; i++) {
        struct cl_group *g = gs->all[i];
        if (g->id != id || g->left)
            continue;
        if (raft_leader(g->raft) == node || raft_leader(g->raft) == 0)
            gs->events->step(gs->arg, g,
                             &(struct raft_input){.kind = RAFT_PEER_DOWN, .peer = node});
        return;
    }
}

status cl_groups_beacon(struct cl_groups *gs, uint64_t node, bytes payload)
{
    unsigned at = peer_at(gs, node);
    struct raft_beacon *b = &gs->beacons.at[at];
    struct reader r = reader_make(payload);
    uint64_t sent_ms = get_varint(&r), bound = get_varint(&r);
    uint64_t acked_ms = get_varint(&r), acked_bound = get_varint(&r), now = now_ms(gs);
    if (r.bad || acked_ms > now || acked_bound > gs->beacons.sent_bound)
        return ST_PROTOCOL;
    b->heard_ms = now;
    raise_to(&b->heard_bound, bound);
    raise_to(&b->acked_ms, acked_ms);
    raise_to(&b->acked_bound, acked_bound);
    if (gs->events->covers(gs->arg, bound)) /* G2 */
        gs->theirs[at] = (struct their_beacon){.sent_ms = sent_ms, .bound = bound};
    while (!r.bad && r.next < r.end)
        on_left(gs, node, get_varint(&r));
    return r.bad ? ST_PROTOCOL : ST_OK;
}

/* -- the object -------------------------------------------------------------------------------- */

struct cl_groups *cl_groups_new(struct env *env, const struct cl_groups_events *e, void *arg)
{
    struct cl_groups *gs = calloc(1, sizeof *gs);
    ASSERT(gs != NULL);
    gs->env = env;
    gs->events = e;
    gs->arg = arg;
    gs->timer_ms = UINT64_MAX;
    return gs;
}

void cl_groups_free(struct cl_groups *gs)
{
    if (gs == NULL)
        return;
    loop_timer_free(gs->timer);
    free(gs->all);
    free(gs->queue);
    free(gs->left);
    free(gs);
}

const struct raft_beacons *cl_groups_beacons(const struct cl_groups *gs)
{
    return &gs->beacons;
}

static struct cl_group **grown(struct cl_group **old, unsigned capacity)
{
    struct cl_group **list = realloc(old, (capacity + 1) * sizeof(struct cl_group *));
    ASSERT(list != NULL);
    return list;
}

void cl_groups_add(struct cl_groups *gs, struct cl_group *g)
{
    ASSERT(!g->added);
    if (gs->count == gs->capacity) {
        gs->capacity = gs->capacity > 0 ? 2 * gs->capacity : 16;
        gs->all = grown(gs->all, gs->capacity);
        gs->queue = grown(gs->queue, gs->capacity);
        gs->left = grown(gs->left, gs->capacity);
    }
    g->added = true;
    gs->all[gs->count++] = g;
}

void cl_groups_start(struct cl_groups *gs, struct loop *loop)
{
    gs->timer = loop_timer_new(loop, on_timer, gs);
    for (unsigned i = 0; i < gs->count; i++)
        cl_groups_note(gs, gs->all[i]);
    cl_groups_turn(gs);
}
