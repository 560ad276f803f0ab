/*
 * raft/log_ring.c on a disk that holds every write until the test lets it end: orders of
 * completion, what a loss of power leaves of writes under way, failures among them, rotation, the
 * limit.
 */
#include "log_fixture.h"

#include "base/fault.h"

#define UNDER_WAY 3u

static void ring_init(struct fixture *f, uint64_t seed, unsigned inflight)
{
    fixture_init(f, seed);
    f->overlap = true;
    f->held.random = seed;
    f->options.inflight = inflight;
    f->options.segment_bytes = 64 * 1024;
    fixture_open(f);
    while (raft_log_step(f->log)) /* segments are prepared; nothing is under way */
        continue;
    assert_int_equal(f->held.count, 0);
}

/* Entry INDEX of group 0 as a batch of its own; returns the ticket. */
static uint64_t submit_one(struct fixture *f, uint64_t index)
{
    assert_int_equal(fixture_append(f, 0, index, 1, 1, 700), ST_OK);
    return raft_log_submit(f->log);
}

/* Entry 1 is stored, then as many as the ring takes are under way. */
static void put_under_way(struct fixture *f)
{
    assert_int_equal(submit_one(f, 1), 1);
    held_end(f, 0);
    assert_int_equal(f->stored_ticket, 1);
    for (uint64_t i = 0; i < UNDER_WAY; i++)
        assert_int_equal(submit_one(f, 2 + i), 2 + i);
    assert_int_equal(f->held.count, UNDER_WAY);
}

/* The NTH order of three. */
static void order_of(unsigned nth, size_t *order)
{
    static const size_t orders[6][UNDER_WAY] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    memcpy(order, orders[nth], sizeof orders[nth]);
}

static size_t position_of(const struct fixture *f, const struct raft__round *r)
{
    for (size_t i = 0; i < f->held.count; i++) {
        if (f->held.rounds[i] == r)
            return i;
    }
    fail_msg("the write is not under way");
    return 0;
}

static void tickets_are_told_in_order_whatever_ends_first(void **state)
{
    (void)state;
    for (unsigned nth = 0; nth < 6; nth++) {
        struct fixture f;
        struct raft__round *rounds[UNDER_WAY];
        size_t order[UNDER_WAY];
        bool ended[UNDER_WAY] = {0};

        ring_init(&f, nth, UNDER_WAY);
        put_under_way(&f);
        memcpy(rounds, f.held.rounds, sizeof rounds);
        order_of(nth, order);
        for (size_t i = 0; i < UNDER_WAY; i++) {
            held_end(&f, position_of(&f, rounds[order[i]]));
            ended[order[i]] = true;
            size_t prefix = 0;
            while (prefix < UNDER_WAY && ended[prefix])
                prefix++;
            assert_int_equal(f.stored_ticket, 1 + prefix);
            assert_int_equal(f.log->durable.offset,
                             prefix ? rounds[prefix - 1]->start + rounds[prefix - 1]->bytes
                                    : rounds[0]->start);
        }
        fixture_reopen(&f);
        model_check_equal(f.got, f.sent);
        fixture_fini(&f);
    }
    assert_true(mark_count("raft.ring.out_of_order") > 0);
}

enum left { LEFT_NOTHING, LEFT_TORN, LEFT_WHOLE, LEFT_ENDED, LEFT_KINDS };

static void leave(struct fixture *f, size_t at, enum left left)
{
    uint64_t half = f->held.rounds[at]->bytes / 2 / RAFT__BLOCK * RAFT__BLOCK;

    assert_true(half > 0);
    switch (left) {
    case LEFT_NOTHING: break;
    case LEFT_TORN: assert_int_equal(held_write(f, f->env, at, half), ST_OK); break;
    case LEFT_WHOLE: assert_int_equal(held_write(f, f->env, at, UINT64_MAX), ST_OK); break;
    case LEFT_ENDED: held_end(f, at); return;
    case LEFT_KINDS: fail();
    }
    /* The disk has it, and nobody was told. */
    assert_int_equal(f->env->ops->datasync(f->env, f->log->newest->file), ST_OK);
    held_take(f, at);
}

/* Every combination of what three writes under way may have become, in every order. What comes back
 * is the longest run of whole batches from the first on: at least what was reported, and nothing
 * behind the first bad byte, be it ever so whole. */
static void power_loss_keeps_the_whole_prefix_and_cuts_the_rest(void **state)
{
    (void)state;
    unsigned beyond = 0;
    for (unsigned nth = 0; nth < 6 * LEFT_KINDS * LEFT_KINDS * LEFT_KINDS; nth++) {
        struct fixture f;
        struct raft__round *rounds[UNDER_WAY];
        size_t order[UNDER_WAY];
        const enum left left[UNDER_WAY] = {(enum left)(nth / 6 % LEFT_KINDS),
                                           (enum left)(nth / 6 / LEFT_KINDS % LEFT_KINDS),
                                           (enum left)(nth / 6 / LEFT_KINDS / LEFT_KINDS)};
        ring_init(&f, nth, UNDER_WAY);
        put_under_way(&f);
        memcpy(rounds, f.held.rounds, sizeof rounds);
        order_of(nth % 6, order);
        for (size_t i = 0; i < UNDER_WAY; i++)
            leave(&f, position_of(&f, rounds[order[i]]), left[order[i]]);
        uint64_t stored = f.stored_ticket, whole = 0;
        while (whole < UNDER_WAY && left[whole] >= LEFT_WHOLE)
            whole++;
        assert_true(stored <= 1 + whole);

        env_sim_power_cut(f.env);
        raft__log_abandon(f.log);
        fixture_open(&f);
        assert_int_equal(f.got->groups[0].last, 1 + whole);
        beyond += whole < UNDER_WAY - 1 && left[UNDER_WAY - 1] >= LEFT_WHOLE;

        /* A new life: nothing of the old end comes back later. */
        fixture_store_entries(&f, 0, 2 + whole, 2, 3, 300);
        fixture_crash(&f);
        fixture_open(&f);
        assert_int_equal(f.got->groups[0].last, 4 + whole);
        assert_int_equal(f.got->groups[0].entries[4 + whole].term, 2);
        fixture_fini(&f);
    }
    assert_true(beyond > 0); /* whole batches behind a bad one were there to be cut */
}

static void damage_below_a_stored_round_is_refused_with_others_under_way(void **state)
{
    struct fixture f;
    struct err err;
    uint8_t byte = 0xff;
    (void)state;
    ring_init(&f, 1, UNDER_WAY);
    put_under_way(&f);
    uint64_t first = f.held.rounds[0]->start;
    held_end(&f, 0);
    assert_int_equal(f.stored_ticket, 2);
    assert_int_equal(submit_one(&f, 5), 5); /* its header knows that ticket 2 is durable */
    leave(&f, f.held.count - 1, LEFT_WHOLE);
    const struct iovec iov = {&byte, 1};
    struct env_file *file = f.log->newest->file;
    assert_int_equal(f.env->ops->pwritev(f.env, file, &iov, 1, first + 100), ST_OK);
    assert_int_equal(f.env->ops->datasync(f.env, file), ST_OK);
    f.held.count = 0;
    env_sim_power_cut(f.env);
    raft__log_abandon(f.log);
    f.err = err = (struct err){0};
    assert_int_equal(fixture_try_open(&f), ST_CORRUPT);
    f.log = NULL;
    fixture_fini(&f);
}

static void one_failure_ends_all_reporting_and_is_told_once(void **state)
{
    (void)state;
    for (size_t bad = 0; bad < UNDER_WAY; bad++) {
        struct fixture f;
        ring_init(&f, bad, UNDER_WAY);
        put_under_way(&f);
        raft__ring_done(held_take(&f, bad), ST_IO);
        assert_int_equal(f.failed_calls, 1);
        while (f.held.count > 0)
            held_end(&f, 0); /* the others end well, too late */
        assert_int_equal(f.stored_ticket, 1);
        assert_int_equal(f.failed_calls, 1);
        assert_int_equal(raft_log_admit(f.log, 1), ST_IO);
        assert_int_equal(raft_log_submit(f.log), 0);
        raft_log_close(f.log);
        assert_int_equal(f.stored_ticket, 1);
        f.failed = ST_OK;
        fixture_open(&f);
        model_check_holds(f.got, f.got);
        assert_true(f.got->groups[0].last >= 1);
        fixture_fini(&f);
    }
}

static void what_comes_beyond_the_limit_merges(void **state)
{
    struct fixture f;
    struct raft_log_stats before, after;
    (void)state;
    ring_init(&f, 2, 2);
    raft_log_stats(f.log, &before);
    for (uint64_t i = 1; i <= 8; i++) {
        assert_int_equal(submit_one(&f, i), i);
        assert_true(f.held.count <= 2);
    }
    held_end(&f, 0);
    assert_int_equal(f.held.count, 2); /* six batches in one write */
    while (f.held.count > 0)
        held_end(&f, 0);
    assert_int_equal(f.stored_ticket, 8);
    raft_log_stats(f.log, &after);
    assert_int_equal(after.writes - before.writes, 3);
    fixture_fini(&f);
}

static void a_new_segment_begins_when_nothing_is_under_way(void **state)
{
    struct fixture f;
    uint64_t index = 1, waited = 0;
    (void)state;
    ring_init(&f, 3, UNDER_WAY);
    for (; f.log->newest->number < 4; index++) {
        uint64_t number = f.log->newest->number;
        submit_one(&f, index);
        if (f.log->taken_first && f.held.count > 0) {
            assert_int_equal(f.log->newest->number, number); /* X2 */
            waited++;
        }
        if (f.held.count == UNDER_WAY || f.log->taken_first)
            held_end(&f, 0);
        if (index % 10 == 0)
            fixture_run(&f);
        assert_true(index < 1000);
    }
    assert_true(waited > 0);
    fixture_run(&f);
    fixture_crash(&f);
    fixture_open(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

static void a_segment_that_is_not_there_yet_is_waited_for(void **state)
{
    struct fixture f;
    uint64_t ticket = 0;
    (void)state;
    ring_init(&f, 4, 2);
    uint64_t waits = mark_count("raft.ring.waits_for_room");
    for (uint64_t i = 1; i <= 400; i++) { /* the keeper does not come to work meanwhile */
        ticket = submit_one(&f, i);
        while (f.held.count > 0)
            held_end(&f, 0);
    }
    assert_true(f.stored_ticket < ticket);
    assert_true(mark_count("raft.ring.waits_for_room") > waits);
    fixture_run(&f);
    assert_int_equal(f.stored_ticket, ticket);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

/* Closing writes what waits, also for a segment. */
static void close_ends_what_is_under_way_and_writes_the_rest(void **state)
{
    (void)state;
    for (uint64_t count = 1; count < 300; count += 13) {
        struct fixture f;
        ring_init(&f, count, 1 + (unsigned)(count % 4));
        for (uint64_t i = 1; i <= count; i++)
            submit_one(&f, i);
        uint64_t told = f.stored_ticket;
        raft_log_close(f.log);
        assert_int_equal(f.stored_ticket, told);
        fixture_open(&f);
        model_check_equal(f.got, f.sent);
        fixture_fini(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tickets_are_told_in_order_whatever_ends_first),
        cmocka_unit_test(power_loss_keeps_the_whole_prefix_and_cuts_the_rest),
        cmocka_unit_test(damage_below_a_stored_round_is_refused_with_others_under_way),
        cmocka_unit_test(one_failure_ends_all_reporting_and_is_told_once),
        cmocka_unit_test(what_comes_beyond_the_limit_merges),
        cmocka_unit_test(a_new_segment_begins_when_nothing_is_under_way),
        cmocka_unit_test(a_segment_that_is_not_there_yet_is_waited_for),
        cmocka_unit_test(close_ends_what_is_under_way_and_writes_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
