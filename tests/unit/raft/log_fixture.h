/*
 * A log on a simulated disk, stepped by hand, and a model of what it must give back. With `overlap`
 * the log has the ring's writer on a disk that holds every write until the test lets it end.
 *
 * `sent` is what was appended, `stored` what was reported stored, `got` what the last open handed
 * over. Entries of the model are (term, tag); the tag is the data's first eight bytes.
 */
#ifndef TESTS_LOG_FIXTURE_H
#define TESTS_LOG_FIXTURE_H

#include "base/env_sim.h"
#include "raft/log.h"
#include "raft/log_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GROUPS 4u
#define INDEXES 1024u

struct model_group {
    struct {
        uint64_t term, tag;
    } entries[INDEXES]; /* by index; term 0 = nothing there */
    uint64_t last, cut;
    struct raft_hard_state hard;
};

struct model {
    struct model_group groups[GROUPS];
};

/* Writes that the log has begun and that have not ended. */
struct held {
    struct raft__round *rounds[RAFT__ROUNDS_MAX];
    size_t count;
    uint64_t random; /* which one ends next, where the test does not say */
};

struct fixture {
    bool overlap;
    struct held held;
    struct env *env;     /* the simulated disk */
    struct env *log_env; /* what the log is given: env, or something in front of it */
    struct raft_log_options options;
    struct raft_log *log;
    struct model *sent, *got;
    uint64_t stored_ticket, failed_calls;
    status failed;
    uint64_t next_tag;
    struct err err;
};

static inline void model_put(struct model *m, uint64_t group, uint64_t index, uint64_t term,
                             uint64_t tag)
{
    struct model_group *g = &m->groups[group];
    assert_true(group < GROUPS && index < INDEXES);
    for (uint64_t i = index; i <= g->last; i++)
        g->entries[i].term = 0;
    g->entries[index].term = term;
    g->entries[index].tag = tag;
    g->last = index;
}

static inline uint64_t entry_tag(const struct raft_entry *e)
{
    uint64_t tag = 0;
    if (e->data)
        memcpy(&tag, e->data->data, sizeof tag);
    return tag;
}

static inline void fixture_hard(void *arg, uint64_t group, struct raft_hard_state hs)
{
    struct fixture *f = arg;
    f->got->groups[group].hard = hs;
}

static inline status fixture_entry(void *arg, uint64_t group, const struct raft_entry *e)
{
    struct fixture *f = arg;
    model_put(f->got, group, e->index, e->term, entry_tag(e));
    return ST_OK;
}

static inline void fixture_cut(void *arg, uint64_t group, uint64_t index)
{
    struct fixture *f = arg;
    f->got->groups[group].cut = index;
}

static inline void fixture_stored(void *arg, uint64_t ticket)
{
    struct fixture *f = arg;
    assert_true(ticket > f->stored_ticket);
    f->stored_ticket = ticket;
}

static inline void fixture_failed(void *arg, status st)
{
    struct fixture *f = arg;
    f->failed = st;
    f->failed_calls++;
}

static inline void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){.env = env_sim_new(seed), .next_tag = 1};
    f->options = (struct raft_log_options){
        .dir = "stream",
        .cluster_id = 0xc1,
        .store_id = 0x51,
        .stream = 3,
        .segment_bytes = 8192,
        .batch_bytes = 4096,
        .batch_entries = 64,
    };
    f->log_env = f->env;
    f->sent = calloc(1, sizeof *f->sent);
    f->got = calloc(1, sizeof *f->got);
}

static inline status fixture_try_open(struct fixture *f)
{
    const struct raft_log_recovery recovery = {
        .arg = f, .on_hard_state = fixture_hard, .on_entry = fixture_entry, .on_cut = fixture_cut};
    memset(f->got, 0, sizeof *f->got);
    f->log = NULL;
    return raft_log_open(f->log_env, &f->options, &recovery, &f->log, &f->err);
}

static inline void held_begin(void *arg, struct raft__round *r)
{
    struct fixture *f = arg;
    assert_true(f->held.count < RAFT__ROUNDS_MAX);
    f->held.rounds[f->held.count++] = r;
}

static inline struct raft__round *held_take(struct fixture *f, size_t at)
{
    struct raft__round *r = f->held.rounds[at];
    assert_true(at < f->held.count);
    f->held.count--;
    for (size_t i = at; i < f->held.count; i++)
        f->held.rounds[i] = f->held.rounds[i + 1];
    return r;
}

/* The first SIZE bytes of held write AT reach the disk, not durably. */
static inline status held_write(struct fixture *f, struct env *env, size_t at, uint64_t size)
{
    struct raft__round *r = f->held.rounds[at];
    const struct iovec iov = {r->data, (size_t)(size < r->bytes ? size : r->bytes)};
    assert_true(at < f->held.count);
    return env->ops->pwritev(env, f->log->newest->file, &iov, 1, r->start);
}

/* Held write AT ends, durable or failed as the disk says. */
static inline void held_end(struct fixture *f, size_t at)
{
    status st = held_write(f, f->log_env, at, UINT64_MAX);
    if (st == ST_OK)
        st = f->log_env->ops->datasync(f->log_env, f->log->newest->file);
    raft__ring_done(held_take(f, at), st);
}

static inline uint64_t held_draw(struct fixture *f, uint64_t below)
{
    f->held.random = f->held.random * 6364136223846793005u + 1442695040888963407u;
    return (f->held.random >> 33) % below;
}

static inline void held_wait(void *arg)
{
    struct fixture *f = arg;
    held_end(f, (size_t)held_draw(f, f->held.count));
}

static inline void fixture_start(struct fixture *f)
{
    const struct raft_log_events events = {
        .arg = f, .on_stored = fixture_stored, .on_failed = fixture_failed};
    const struct raft__ring_io io = {f, held_begin, held_wait};
    f->stored_ticket = 0;
    f->held.count = 0;
    if (f->overlap)
        raft__ring_start(f->log, &io, &events);
    else
        raft_log_start(f->log, NULL, &events);
}

/* One write ends, or one step of housekeeping. False when there is nothing to do. */
static inline bool fixture_step(struct fixture *f)
{
    if (f->held.count > 0 && held_draw(f, 4) != 0) {
        held_wait(f);
        return true;
    }
    if (raft_log_step(f->log))
        return true;
    if (f->held.count == 0)
        return false;
    held_wait(f);
    return true;
}

static inline void fixture_open(struct fixture *f)
{
    status st = fixture_try_open(f);
    if (st != ST_OK)
        print_message("open: %s: %s\n", status_name(st), f->err.message);
    assert_int_equal(st, ST_OK);
    fixture_start(f);
}

static inline void fixture_fini(struct fixture *f)
{
    raft_log_close(f->log);
    env_sim_free(f->env);
    free(f->sent);
    free(f->got);
}

/* Appends COUNT entries of SIZE bytes each (at least 8) from FIRST on. */
static inline status fixture_append(struct fixture *f, uint64_t group, uint64_t first,
                                    uint64_t term, size_t count, size_t size)
{
    struct raft_entry *entries = calloc(count, sizeof *entries);
    uint64_t tag = f->next_tag;

    for (size_t i = 0; i < count; i++) {
        entries[i] = (struct raft_entry){
            .index = first + i, .term = term, .kind = RAFT_ENTRY_COMMAND, .data = buf_new(size)};
        memset(entries[i].data->data, (int)(tag & 0xff), size);
        memcpy(entries[i].data->data, &tag, sizeof tag);
        tag++;
    }
    status st = raft_log_append(f->log, group, entries, count);
    for (size_t i = 0; i < count; i++) {
        if (st == ST_OK)
            model_put(f->sent, group, entries[i].index, term, f->next_tag + i);
        buf_unref(entries[i].data);
    }
    if (st == ST_OK)
        f->next_tag = tag;
    free(entries);
    return st;
}

static inline void fixture_hard_state(struct fixture *f, uint64_t group, uint64_t term,
                                      uint64_t vote)
{
    struct raft_hard_state hs = {term, vote};
    assert_int_equal(raft_log_hard_state(f->log, group, hs), ST_OK);
    f->sent->groups[group].hard = hs;
}

static inline void fixture_run(struct fixture *f)
{
    while (fixture_step(f))
        continue;
}

/* Submits and writes all; everything sent is stored then. */
static inline void fixture_store(struct fixture *f)
{
    uint64_t ticket = raft_log_submit(f->log);
    fixture_run(f);
    if (ticket)
        assert_int_equal(f->stored_ticket, ticket);
}

static inline void fixture_store_entries(struct fixture *f, uint64_t group, uint64_t first,
                                         uint64_t term, size_t count, size_t size)
{
    assert_int_equal(fixture_append(f, group, first, term, count, size), ST_OK);
    fixture_store(f);
}

/* What a crash leaves of the writes under way: nothing, or all of it, durable or not. */
static inline void held_crash(struct fixture *f)
{
    while (f->held.count > 0) {
        uint64_t fate = held_draw(f, 4);
        if (fate > 0)
            (void)held_write(f, f->env, 0, UINT64_MAX);
        if (fate > 2)
            (void)f->env->ops->datasync(f->env, f->log->newest->file);
        (void)held_take(f, 0);
    }
}

static inline void fixture_crash(struct fixture *f)
{
    held_crash(f);
    env_sim_kill(f->env);
    raft__log_abandon(f->log);
    f->log = NULL;
}

static inline void fixture_reopen(struct fixture *f)
{
    raft_log_close(f->log);
    fixture_open(f);
}

/* Does GOT hold everything of WANT that no cut lets go? Entries beyond WANT are allowed. */
static inline void model_check_holds(const struct model *got, const struct model *want)
{
    for (uint64_t g = 0; g < GROUPS; g++) {
        const struct model_group *a = &got->groups[g], *b = &want->groups[g];
        assert_true(a->last >= b->last || a->cut >= b->last);
        for (uint64_t i = a->cut + 1; i <= b->last; i++) {
            assert_int_equal(a->entries[i].term, b->entries[i].term);
            assert_int_equal(a->entries[i].tag, b->entries[i].tag);
        }
        assert_true(a->hard.term >= b->hard.term);
    }
}

static inline void model_check_equal(const struct model *got, const struct model *want)
{
    model_check_holds(got, want);
    for (uint64_t g = 0; g < GROUPS; g++) {
        const struct model_group *a = &got->groups[g], *b = &want->groups[g];
        assert_true(a->last == b->last || a->cut >= b->last);
        assert_int_equal(a->hard.term, b->hard.term);
        assert_int_equal(a->hard.vote, b->hard.vote);
    }
}

static inline void *file_read(struct env *env, const char *path, size_t *size)
{
    struct env_file *file;
    uint64_t n;
    assert_int_equal(env->ops->open(env, path, ENV_READ, &file), ST_OK);
    assert_int_equal(env->ops->size(env, file, &n), ST_OK);
    uint8_t *data = malloc(n + 1);
    assert_int_equal(env->ops->pread(env, file, data, n, 0, size), ST_OK);
    env->ops->close(env, file);
    return data;
}

static inline void file_write(struct env *env, const char *path, const void *data, size_t size)
{
    struct env_file *file;
    const struct iovec iov = {(void *)(uintptr_t)data, size};
    assert_int_equal(env->ops->open(env, path, ENV_READ | ENV_WRITE | ENV_CREATE, &file), ST_OK);
    assert_int_equal(env->ops->truncate(env, file, 0), ST_OK);
    assert_int_equal(env->ops->pwritev(env, file, &iov, 1, 0), ST_OK);
    assert_int_equal(env->ops->datasync(env, file), ST_OK);
    env->ops->close(env, file);
}

#endif
