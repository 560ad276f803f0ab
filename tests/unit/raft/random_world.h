/*
 * The world of a random history (test_raft_random.c) and the checkers that judge it.
 */
#ifndef TESTS_RAFT_RANDOM_WORLD_H
#define TESTS_RAFT_RANDOM_WORLD_H

#include "core_fixture.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NODES_MAX 6u
#define WIRE_MAX 4096u
#define LOG_MAX 20000u
#define TERMS_MAX 4000u
#define READS_MAX 64u
#define DRIFT_PERMILLE 30
#define FAULTY_MS 8000u
#define HEALED_MS 2000u
#define ELECTION_MS 100u

struct in_flight {
    uint64_t due_ms;
    struct raft_message message;
};

struct read {
    uint64_t token, floor; /* what it must see */
    bool open;
};

/* One end of a connection, see random_links.h. */
struct link {
    uint64_t epoch;                 /* 0: there is none */
    uint64_t heard_at;              /* true time */
    uint64_t their_ms, their_bound; /* of their last beacon */
    uint64_t due_ms;                /* of the last beacon sent */
};

struct beacon_in_flight {
    uint64_t due_ms, epoch, from, to;
    uint64_t sent_ms, bound, ack_ms, ack_bound;
};

struct node {
    struct core core;
    struct raft_beacons beacons;
    struct link link[NODES_MAX]; /* by the slot of the other */
    bool used, removed;          /* removed: some state machine knows it; it may linger */
    int64_t drift_permille;      /* of its clock */
    uint64_t clock_at_ms, clock_ms;
    uint64_t up_ms;     /* down until then */
    uint64_t stored_ms; /* next completion of its disk */
    uint64_t hang_ms;   /* its disk does nothing until then */
    uint64_t install_ms;
    uint64_t wanted[NODES_MAX], wanted_ms[NODES_MAX]; /* snapshots, by the slot of who needs them */
    uint64_t token, token_done;
    struct read reads[READS_MAX];
    uint64_t read_floor_seen;
};

struct known { /* an entry by index and term, anywhere */
    uint64_t term, prev_term, hash;
};

struct world {
    uint64_t seed, random, now;
    struct node nodes[NODES_MAX];
    uint64_t next_id;
    struct in_flight wire[WIRE_MAX];
    unsigned wire_count;
    struct beacon_in_flight beacons[WIRE_MAX];
    unsigned beacon_count;
    uint64_t epochs;
    bool cut[NODES_MAX][NODES_MAX]; /* from, to */
    unsigned loss_permille;
    bool faulty;
    /* Some worlds are worse than others. */
    uint64_t cut_every_ms, crash_every_ms, fall_every_ms, change_every_ms, append_bytes;
    /* what the checkers know */
    uint64_t leader_of[TERMS_MAX], term_led;
    struct machine chain[LOG_MAX]; /* by index, as first applied */
    uint64_t applied_max, acked;   /* highest index a client knows of, by write or read */
    uint64_t served_bound;         /* highest time at which a read was served */
    struct known *known[LOG_MAX];
    unsigned known_count[LOG_MAX];
    /* coverage */
    unsigned leases, sleep_leases, rounds, installs, elections, changes, transfers;
};

static inline NORETURN void PRINTF_LIKE(2, 3)
    fail_seed(const struct world *w, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "seed %" PRIu64 " at %" PRIu64 " ms: ", w->seed, w->now);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    for (unsigned i = 0; i < NODES_MAX; i++) {
        const struct raft *r = w->nodes[i].core.raft;
        if (r)
            fprintf(stderr,
                    "\n  %" PRIu64 ": role %d term %" PRIu64 " leader %" PRIu64 " base %" PRIu64
                    " last %" PRIu64 " stored %" PRIu64 " commit %" PRIu64 " applied %" PRIu64
                    " members %u%s%s",
                    w->nodes[i].core.id, r->role, r->hard.term, r->leader, r->tail.base_index,
                    raft__tail_last_index(&r->tail), r->stored, r->commit, r->applied,
                    r->members.count, r->quiesced ? " asleep" : "",
                    r->install.index ? " installing" : "");
        for (unsigned k = 0; r && k < r->progress_count; k++)
            fprintf(stderr, "\n     %" PRIu64 ": state %d match %" PRIu64 " next %" PRIu64 "%s%s",
                    r->progress[k].id, r->progress[k].state, r->progress[k].match,
                    r->progress[k].next, r->progress[k].down ? " down" : "",
                    r->progress[k].paused ? " paused" : "");
    }
    fprintf(stderr, "\nrun again: test_raft_random %" PRIu64 " 1\n", w->seed);
    abort();
}

static inline uint64_t rnd(struct world *w, uint64_t below)
{
    uint64_t z = w->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static inline bool one_in(struct world *w, uint64_t n)
{
    return rnd(w, n) == 0;
}

/* -- checkers --------------------------------------------- */

static inline void check_entry(struct world *w, uint64_t prev_term, const struct raft_entry *e)
{
    if (e->index >= LOG_MAX)
        fail_seed(w, "the log is too long for this test");
    uint64_t hash = chain_next(0, e);
    for (unsigned i = 0; i < w->known_count[e->index]; i++) {
        const struct known *k = &w->known[e->index][i];
        if (k->term != e->term)
            continue;
        if (k->hash != hash || k->prev_term != prev_term)
            fail_seed(w, "C2: two entries %" PRIu64 " of term %" PRIu64, e->index, e->term);
        return;
    }
    unsigned n = w->known_count[e->index]++;
    w->known[e->index] = realloc(w->known[e->index], (n + 1) * sizeof(struct known));
    w->known[e->index][n] = (struct known){e->term, prev_term, hash};
}

static inline void check_appended(struct world *w, struct node *n, const struct raft_output *out)
{
    for (size_t i = 0; i < out->append_count; i++) {
        const struct raft_entry *e = &out->append[i];
        uint64_t prev = 0;
        if (e->kind == RAFT_ENTRY_SNAPSHOT)
            continue;
        if (!raft__tail_term(&n->core.raft->tail, e->index - 1, &prev))
            fail_seed(w, "entry %" PRIu64 " follows nothing", e->index);
        check_entry(w, prev, e);
    }
}

static inline void check_leader(struct world *w, struct node *n)
{
    uint64_t term = raft_hard_state(n->core.raft).term, held;

    if (term >= TERMS_MAX)
        fail_seed(w, "too many terms");
    if (w->leader_of[term] != 0 && w->leader_of[term] != n->core.id)
        fail_seed(w, "C1: %" PRIu64 " and %" PRIu64 " lead term %" PRIu64, w->leader_of[term],
                  n->core.id, term);
    w->leader_of[term] = n->core.id;
    w->elections++;
    /* One that wins when a later term has a leader already, by votes that were late, commits
     * nothing, and may lack what that one has committed. */
    if (term < w->term_led)
        return;
    w->term_led = term;
    if (w->applied_max > 0 &&
        (!raft__tail_term(&n->core.raft->tail, w->applied_max, &held) ||
         held != w->chain[w->applied_max].term) &&
        n->core.raft->tail.base_index < w->applied_max)
        fail_seed(w, "C4: leader %" PRIu64 " lacks entry %" PRIu64, n->core.id, w->applied_max);
    if (raft_read_floor(n->core.raft) < w->served_bound)
        fail_seed(w, "C6: leader %" PRIu64 " does not know of reads up to %" PRIu64, n->core.id,
                  w->served_bound);
}

static inline void check_machine(struct world *w, const struct node *n)
{
    const struct machine *m = &n->core.machine;
    struct machine *first = &w->chain[m->index];
    if (m->index > w->applied_max) {
        *first = *m;
        w->applied_max = m->index;
    } else if (first->chain != m->chain || first->term != m->term) {
        fail_seed(w, "C3: %" PRIu64 " applied another entry %" PRIu64, n->core.id, m->index);
    }
}

static inline void acknowledge(struct world *w, uint64_t index)
{
    if (index > w->acked)
        w->acked = index;
}

static inline void serve_read(struct world *w, const struct node *n, uint64_t floor,
                              const char *how)
{
    if (n->core.machine.index < floor)
        fail_seed(w,
                  "C5: %" PRIu64 " served a read at %" PRIu64 " by %s, but %" PRIu64 " was known",
                  n->core.id, n->core.machine.index, how, floor);
    acknowledge(w, n->core.machine.index);
}

#endif
