/*
 * raft/progress.c — a follower's state and the window of appends under way to it.
 *
 * The window is counted in messages, entries and bytes. One message is always let through when
 * nothing is under way, so that an entry larger than the window is sent at all.
 */
#include "raft/progress.h"

#include "base/assert.h"

#define TO(s) (1u << (s))
static const unsigned state_next[] = {
    [RAFT__PROBE] = TO(RAFT__PROBE) | TO(RAFT__PIPELINE) | TO(RAFT__SNAPSHOT),
    [RAFT__PIPELINE] = TO(RAFT__PROBE) | TO(RAFT__SNAPSHOT),
    [RAFT__SNAPSHOT] = TO(RAFT__PROBE),
};

void raft__progress_move(struct raft__progress *p, enum raft__progress_state next, uint64_t seq)
{
    ASSERT(state_next[p->state] & TO(next));
    p->state = next;
    p->state_seq = seq;
    p->paused = false;
    p->window_first = p->window_count = 0;
    p->window_bytes = 0;
    p->snapshot.index = 0;
    p->snapshot_asked = false;
}

bool raft__progress_match(struct raft__progress *p, uint64_t match)
{
    if (match <= p->match)
        return false;
    p->match = match;
    if (p->next <= match)
        p->next = match + 1;
    while (p->window_count > 0 && p->window[p->window_first].last <= match) {
        p->window_bytes -= p->window[p->window_first].bytes;
        p->window_first = (p->window_first + 1) % RAFT__WINDOW_MESSAGES;
        p->window_count--;
    }
    return true;
}

bool raft__progress_room(const struct raft__progress *p, const struct raft_config *config)
{
    if (p->window_count == 0)
        return true;
    return p->window_count < RAFT__WINDOW_MESSAGES && p->window_bytes < config->window_bytes &&
           p->next - p->match - 1 < config->window_entries;
}

void raft__progress_sent(struct raft__progress *p, uint64_t last, uint64_t size)
{
    ASSERT(p->state == RAFT__PIPELINE);
    ASSERT(p->window_count < RAFT__WINDOW_MESSAGES);
    ASSERT(last >= p->next);
    p->window[(p->window_first + p->window_count) % RAFT__WINDOW_MESSAGES] =
        (struct raft__under_way){.last = last, .bytes = size};
    p->window_count++;
    p->window_bytes += size;
    p->next = last + 1;
}
