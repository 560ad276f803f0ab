/*
 * Property of the whole log: after any history of writes, cuts, crashes, power cuts, failed syncs
 * and full disks, what a log hands over at open is a prefix of what was appended and holds
 * everything that was reported stored.
 *
 * One seed gives one history; a failure prints it. `test_raft_log_power N` runs seed N alone. All
 * of it is done twice: with one write at a time, and with several under way that end in any order
 * and of which a crash leaves any part.
 */
#include "log_fixture.h"

#include "base/fault.h"

#ifndef SEEDS
#define SEEDS 600u
#endif
#define STEPS 120u

struct op { /* what was appended, in order */
    enum { OP_ENTRY, OP_HARD, OP_CUT, OP_SUBMIT } kind;
    uint64_t group, index, term, tag; /* submit: the ticket in index */
};

static bool overlap;

struct history {
    struct fixture f;
    struct op *ops;
    size_t count, capacity;
    size_t stored; /* ops before this one were reported stored */
    struct model *base;
    uint64_t random, seed;
    uint64_t crashes, power_cuts, failures, refusals, tail_lost, tail_kept;
};

static uint64_t draw(struct history *h, uint64_t below)
{
    uint64_t z = h->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

static void op_apply(struct model *m, const struct op *op)
{
    struct model_group *g = &m->groups[op->group];
    switch (op->kind) {
    case OP_ENTRY: model_put(m, op->group, op->index, op->term, op->tag); break;
    case OP_HARD: g->hard = (struct raft_hard_state){op->term, op->index}; break;
    case OP_CUT:
        if (op->index > g->cut)
            g->cut = op->index;
        break;
    case OP_SUBMIT: break;
    }
}

static void op_add(struct history *h, struct op op)
{
    if (h->count == h->capacity) {
        h->capacity = h->capacity ? h->capacity * 2 : 64;
        h->ops = realloc(h->ops, h->capacity * sizeof *h->ops);
    }
    h->ops[h->count++] = op;
    op_apply(h->f.sent, &op);
}

/* Is what came back, WANT, apart from entries that a cut lets go? */
static bool same(const struct model *got, const struct model *want)
{
    for (uint64_t g = 0; g < GROUPS; g++) {
        const struct model_group *a = &got->groups[g], *b = &want->groups[g];
        if (a->cut != b->cut || a->hard.term != b->hard.term || a->hard.vote != b->hard.vote)
            return false;
        if (a->last != b->last && (a->last > b->cut || b->last > b->cut))
            return false;
        for (uint64_t i = a->cut + 1; i <= b->last; i++) {
            if (a->entries[i].term != b->entries[i].term || a->entries[i].tag != b->entries[i].tag)
                return false;
        }
    }
    return true;
}

static void note_stored(struct history *h)
{
    for (size_t i = h->stored; i < h->count; i++) {
        if (h->ops[i].kind == OP_SUBMIT && h->ops[i].index <= h->f.stored_ticket)
            h->stored = i + 1;
    }
}

/* Opens and finds the prefix of the history that came back; the history begins anew with it. */
static void open_and_check(struct history *h)
{
    struct fixture *f = &h->f;
    struct model *m = calloc(1, sizeof *m);

    fixture_open(f);
    memcpy(m, h->base, sizeof *m);
    for (size_t i = 0; i < h->stored; i++)
        op_apply(m, &h->ops[i]);
    size_t at = h->stored;
    while (!same(f->got, m)) {
        if (at == h->count)
            fail_msg("seed %llu: what came back is no prefix of what was written from the last "
                     "stored record on",
                     (unsigned long long)h->seed);
        op_apply(m, &h->ops[at++]);
    }
    h->tail_kept += at > h->stored;
    h->tail_lost += at < h->count;
    memcpy(h->base, m, sizeof *m);
    memcpy(f->sent, m, sizeof *m);
    h->count = h->stored = 0;
    free(m);
}

static void do_entries(struct history *h)
{
    struct fixture *f = &h->f;
    uint64_t group = draw(h, GROUPS), count = 1 + draw(h, 6);
    struct model_group *g = &f->sent->groups[group];
    uint64_t first = g->last + 1, term = g->hard.term + 1;
    size_t size = draw(h, 20) == 0 ? 9000 + draw(h, 9000) : 8 + draw(h, 700);

    if (g->last > g->cut && draw(h, 6) == 0) { /* a later leader overwrites */
        first = g->cut + 1 + draw(h, g->last - g->cut);
        uint64_t next_term = g->hard.term + 1;
        if (raft_log_hard_state(f->log, group, (struct raft_hard_state){next_term, 1}) != ST_OK)
            return;
        op_add(h, (struct op){.kind = OP_HARD, .group = group, .term = next_term, .index = 1});
        term = next_term + 1;
    }
    if (first + count >= INDEXES)
        return;
    uint64_t tag = f->next_tag;
    status st = fixture_append(f, group, first, term, count, size);
    h->refusals += st != ST_OK;
    for (uint64_t i = 0; st == ST_OK && i < count; i++)
        op_add(h, (struct op){OP_ENTRY, group, first + i, term, tag + i});
}

static void do_cut(struct history *h)
{
    uint64_t group = draw(h, GROUPS);
    struct model_group *g = &h->f.sent->groups[group];

    if (g->last <= g->cut)
        return;
    uint64_t index = g->cut + 1 + draw(h, g->last - g->cut);
    /* Only what is stored is applied, persisted and cut. */
    raft_log_submit(h->f.log);
    raft_log_cut(h->f.log, group, index);
    op_add(h, (struct op){.kind = OP_CUT, .group = group, .index = index});
}

static void do_submit(struct history *h)
{
    uint64_t ticket = raft_log_submit(h->f.log);
    if (ticket)
        op_add(h, (struct op){.kind = OP_SUBMIT, .index = ticket});
}

static void do_crash(struct history *h)
{
    note_stored(h);
    fault_disarm();
    held_crash(&h->f);
    if (draw(h, 2)) {
        env_sim_power_cut(h->f.env);
        h->power_cuts++;
    } else {
        env_sim_kill(h->f.env);
        h->crashes++;
    }
    raft__log_abandon(h->f.log);
    h->f.log = NULL;
    h->failures += h->f.failed != ST_OK;
    h->f.failed = ST_OK;
    open_and_check(h);
}

static void do_trouble(struct history *h)
{
    static const char *const sites[] = {
        "log.write", "log.sync",        "log.synced",          "log.rotate",
        "log.cut",   "log.cut.renamed", "log.segment.written", "log.segment.named"};
    switch (draw(h, 4)) {
    case 0: env_sim_fail_next_sync(h->f.env, ST_IO); break;
    case 1: env_sim_set_capacity(h->f.env, 1 + draw(h, 60000)); break;
    case 2: env_sim_set_capacity(h->f.env, 0); break;
    case 3: fault_arm(sites[draw(h, 8)], "error", 1 + (unsigned)draw(h, 5)); break;
    }
}

static void run_step(struct history *h)
{
    uint64_t what = draw(h, 100);

    if (what < 40)
        do_entries(h);
    else if (what < 50)
        do_cut(h);
    else if (what < 70)
        do_submit(h);
    else if (what < 88)
        (void)fixture_step(&h->f);
    else if (what < 92)
        fixture_run(&h->f);
    else if (what < 95)
        do_trouble(h);
    else
        do_crash(h);
    note_stored(h);
}

static void history_init(struct history *h, uint64_t seed)
{
    fixture_init(&h->f, seed);
    h->f.overlap = overlap;
    h->f.held.random = seed;
    h->f.options.inflight = 1 + (unsigned)(seed % 4);
    h->base = calloc(1, sizeof *h->base);
}

static struct history totals;

static void run_seed(uint64_t seed)
{
    struct history h = {.random = seed, .seed = seed};

    history_init(&h, seed);
    open_and_check(&h);
    for (unsigned i = 0; i < STEPS; i++)
        run_step(&h);
    env_sim_set_capacity(h.f.env, 0);
    do_crash(&h);
    fixture_fini(&h.f);
    fault_disarm();
    totals.crashes += h.crashes;
    totals.power_cuts += h.power_cuts;
    totals.failures += h.failures;
    totals.refusals += h.refusals;
    totals.tail_kept += h.tail_kept;
    totals.tail_lost += h.tail_lost;
    free(h.ops);
    free(h.base);
}

/* ---- a crash at every call that changes the disk ---- */

/* In front of the simulated disk: from call number STOP_AT on nothing is done any more and every
 * call fails, as for a process that died there. */
struct stop_env {
    struct env env;
    struct env *inner;
    uint64_t calls, stop_at;
};

static struct env *inner_of(struct env *e)
{
    return ((struct stop_env *)e)->inner;
}

static bool stopped(struct env *e)
{
    struct stop_env *s = (struct stop_env *)e;
    return ++s->calls >= s->stop_at;
}

#define FORWARD(op, ...) inner_of(e)->ops->op(inner_of(e), ##__VA_ARGS__)
#define FORWARD_UNLESS_STOPPED(op, ...) (stopped(e) ? ST_IO : FORWARD(op, ##__VA_ARGS__))

static int64_t stop_unix_us(struct env *e)
{
    return FORWARD(unix_us);
}
static uint64_t stop_mono_us(struct env *e)
{
    return FORWARD(mono_us);
}
static status stop_open(struct env *e, const char *path, int flags, struct env_file **out)
{
    return FORWARD_UNLESS_STOPPED(open, path, flags, out);
}
static void stop_close(struct env *e, struct env_file *file)
{
    FORWARD(close, file);
}
static status stop_pread(struct env *e, struct env_file *file, void *dst, size_t n, uint64_t at,
                         size_t *got)
{
    return FORWARD(pread, file, dst, n, at, got);
}
static status stop_pwritev(struct env *e, struct env_file *file, const struct iovec *iov, int count,
                           uint64_t at)
{
    return FORWARD_UNLESS_STOPPED(pwritev, file, iov, count, at);
}
static status stop_datasync(struct env *e, struct env_file *file)
{
    return FORWARD_UNLESS_STOPPED(datasync, file);
}
static status stop_size(struct env *e, struct env_file *file, uint64_t *out)
{
    return FORWARD(size, file, out);
}
static status stop_zero_fill(struct env *e, struct env_file *file, uint64_t size)
{
    return FORWARD_UNLESS_STOPPED(zero_fill, file, size);
}
static status stop_rename(struct env *e, const char *from, const char *to)
{
    return FORWARD_UNLESS_STOPPED(rename, from, to);
}
static status stop_unlink(struct env *e, const char *path)
{
    return FORWARD_UNLESS_STOPPED(unlink, path);
}
static status stop_mkdir(struct env *e, const char *path)
{
    return FORWARD_UNLESS_STOPPED(mkdir, path);
}
static status stop_sync_dir(struct env *e, const char *path)
{
    return FORWARD_UNLESS_STOPPED(sync_dir, path);
}
static status stop_list(struct env *e, const char *path, void (*fn)(void *, const char *),
                        void *arg)
{
    return FORWARD(list, path, fn, arg);
}

static const struct env_ops stop_ops = {
    .unix_us = stop_unix_us,
    .mono_us = stop_mono_us,
    .open = stop_open,
    .close = stop_close,
    .pread = stop_pread,
    .pwritev = stop_pwritev,
    .datasync = stop_datasync,
    .size = stop_size,
    .zero_fill = stop_zero_fill,
    .rename = stop_rename,
    .unlink = stop_unlink,
    .mkdir = stop_mkdir,
    .sync_dir = stop_sync_dir,
    .list = stop_list,
};

/* Entries, overwrites and cuts over several segments, with a restart in the middle. */
static void workload(struct history *h)
{
    struct fixture *f = &h->f;

    for (uint64_t i = 0; i < 24 && f->failed == ST_OK; i++) {
        uint64_t group = i % 3, last = f->sent->groups[group].last, tag = f->next_tag;
        if (fixture_append(f, group, last + 1, 1, 4, 300) != ST_OK)
            return;
        for (uint64_t k = 0; k < 4; k++)
            op_add(h, (struct op){OP_ENTRY, group, last + 1 + k, 1, tag + k});
        if (i >= 3 && last > 2) {
            raft_log_cut(f->log, group, last - 2);
            op_add(h, (struct op){.kind = OP_CUT, .group = group, .index = last - 2});
        }
        do_submit(h);
        fixture_run(f);
        note_stored(h);
    }
}

/* A process was killed, the next one stored more, and then the power went: what the first one left
 * half done in the directory must not take the second one's records away. */
static void power_cut_in_next_life(struct history *h)
{
    struct fixture *f = &h->f;

    for (unsigned i = 0; i < 3; i++) {
        uint64_t last = f->sent->groups[1].last, term = f->sent->groups[1].hard.term + 1;
        op_add(h, (struct op){OP_ENTRY, 1, last + 1, term, f->next_tag});
        assert_int_equal(fixture_append(f, 1, last + 1, term, 1, 300), ST_OK);
        do_submit(h);
        fixture_run(f);
        note_stored(h);
    }
    env_sim_power_cut(f->env);
    raft__log_abandon(f->log);
    open_and_check(h);
}

/* True if the workload came to its end before the stop. */
static bool crash_at(uint64_t stop_at, uint64_t seed, bool power)
{
    struct history h = {.random = seed, .seed = seed};
    struct stop_env front = {.env = {.ops = &stop_ops}, .stop_at = stop_at};

    history_init(&h, seed);
    front.inner = h.f.env;
    h.f.log_env = &front.env;
    for (int life = 0; life < 2; life++) {
        if (fixture_try_open(&h.f) != ST_OK)
            break;
        fixture_start(&h.f);
        if (life == 1) { /* the first life was closed cleanly */
            note_stored(&h);
            assert_int_equal(h.stored, h.count);
            h.count = h.stored = 0;
            memcpy(h.base, h.f.sent, sizeof *h.base);
        }
        workload(&h);
        if (front.calls >= stop_at)
            break;
        if (life == 0) {
            raft_log_close(h.f.log);
            h.f.log = NULL;
        }
    }
    bool finished = front.calls < stop_at;
    if (h.f.log)
        held_crash(&h.f);
    if (power)
        env_sim_power_cut(h.f.env);
    else
        env_sim_kill(h.f.env);
    if (h.f.log)
        raft__log_abandon(h.f.log);
    h.f.log_env = h.f.env;
    h.f.failed = ST_OK;
    open_and_check(&h);
    power_cut_in_next_life(&h);
    fixture_fini(&h.f);
    free(h.ops);
    free(h.base);
    return finished;
}

static void crash_at_every_call_loses_nothing_stored(void **state)
{
    uint64_t stop_at = 1;
    (void)state;
    for (bool finished = false; !finished; stop_at++) {
        for (uint64_t seed = 1; seed <= 12; seed++) {
            (void)crash_at(stop_at, seed, true);
            finished = crash_at(stop_at, seed, false);
        }
    }
    print_message("%llu calls\n", (unsigned long long)stop_at);
    assert_true(stop_at > 100);
}

static uint64_t only_seed;

static void no_record_reported_stored_is_ever_lost(void **state)
{
    (void)state;
    if (only_seed) {
        run_seed(only_seed);
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        run_seed(seed);
    print_message("kills %llu, power cuts %llu, latched failures %llu, refusals %llu, tails kept "
                  "%llu, lost %llu\n",
                  (unsigned long long)totals.crashes, (unsigned long long)totals.power_cuts,
                  (unsigned long long)totals.failures, (unsigned long long)totals.refusals,
                  (unsigned long long)totals.tail_kept, (unsigned long long)totals.tail_lost);
    /* The histories reach what they are for. */
    assert_true(totals.power_cuts > SEEDS);
    assert_true(totals.failures > 0);
    assert_true(totals.refusals > 0);
    assert_true(totals.tail_kept > 0);
    assert_true(totals.tail_lost > 0);
    assert_true(!overlap || mark_count("raft.ring.out_of_order") > SEEDS / 2);
}

static int run(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_record_reported_stored_is_ever_lost),
        cmocka_unit_test(crash_at_every_call_loses_nothing_stored),
    };
    memset(&totals, 0, sizeof totals);
    return _cmocka_run_group_tests(name, tests, sizeof tests / sizeof tests[0], NULL, NULL);
}

int main(int argc, char **argv)
{
    only_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    int failed = run("one write at a time");
    overlap = true;
    return run("several under way") + failed;
}
