/*
 * Both writers, log_write.c with its thread and log_ring.c with io_uring, on a real loop and real
 * files: events arrive in order on the loop, group wait and batching do what they say, faults are
 * told once, closing at any moment is clean. Every test runs once per writer.
 */
#include "raft/log.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/mailbox.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct owner { /* everything here belongs to the loop's thread while the loop runs */
    char dir[64], stream[96];
    struct raft_log_options options;
    struct raft_log *log;
    struct loop *loop;
    struct mailbox *mailbox;
    struct loop_turn *turn;
    uint64_t next_index, rounds_left, stored, last_ticket, events;
    uint64_t recovered;
    uint64_t failures; /* on_failed calls; the first stops the loop */
    status failed;
    bool wait_each; /* one batch at a time, the next one after its event */
    bool may_fail, cuts;
};

/* The writer under test; run by both. */
static enum raft_log_writer writer;

static status on_entry(void *arg, uint64_t group, const struct raft_entry *e)
{
    struct owner *o = arg;
    (void)group;
    if (o->cuts && o->recovered == 0)
        o->recovered = e->index - 1;
    assert_int_equal(e->index, o->recovered + 1);
    o->recovered++;
    return ST_OK;
}

static void append_some(struct owner *o, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct raft_entry e = {.index = o->next_index++,
                               .term = 1,
                               .kind = RAFT_ENTRY_COMMAND,
                               .data = buf_new(o->next_index % 50 == 0 ? 20000 : 200)};
        memset(e.data->data, 7, e.data->size);
        status st = raft_log_append(o->log, 1, &e, 1);
        buf_unref(e.data);
        assert_true(st == ST_OK || (st == ST_IO && o->may_fail));
    }
}

/* The loop rests meanwhile; a loop that writes would notice nothing. */
static void wait_for_a_write(struct owner *o)
{
    if (writer == RAFT_LOG_URING)
        return;
    static struct raft_log_stats stats;
    do {
        sched_yield();
        raft_log_stats(o->log, &stats);
    } while (stats.writes == 0);
}

static void one_round(struct owner *o)
{
    append_some(o, 1 + o->rounds_left % 5);
    uint64_t ticket = raft_log_submit(o->log);
    assert_true(ticket == o->last_ticket + 1 || (ticket == 0 && o->may_fail));
    o->last_ticket = ticket;
    o->rounds_left--;
}

static void on_turn(void *arg)
{
    struct owner *o = arg;
    if (o->rounds_left == 0 || o->failures || (o->wait_each && o->stored < o->last_ticket))
        return;
    one_round(o);
    if (!o->wait_each && o->rounds_left > 0)
        loop_again(o->loop);
}

static void on_stored(void *arg, uint64_t ticket)
{
    struct owner *o = arg;
    assert_true(ticket > o->stored);
    assert_true(ticket <= o->last_ticket);
    o->stored = ticket;
    o->events++;
    if (o->rounds_left == 0 && o->stored == o->last_ticket)
        loop_stop(o->loop);
}

static void on_failed(void *arg, status st)
{
    struct owner *o = arg;
    if (!o->may_fail)
        fail_msg("log failed: %s", status_name(st));
    o->failed = st;
    o->failures++;
    loop_stop(o->loop);
}

static void owner_open(struct owner *o)
{
    struct err err;
    const struct raft_log_recovery recovery = {.arg = o, .on_entry = on_entry};
    const struct raft_log_events events = {o, on_stored, on_failed};

    o->recovered = 0;
    status st = raft_log_open(env_os(), &o->options, &recovery, &o->log, &err);
    if (st != ST_OK)
        print_message("%s\n", err.message);
    assert_int_equal(st, ST_OK);
    o->loop = loop_new();
    o->mailbox = mailbox_new(o->loop);
    o->turn = loop_turn_new(o->loop, on_turn, o);
    raft_log_start(o->log, o->mailbox, &events);
    static struct raft_log_stats stats;
    raft_log_stats(o->log, &stats);
    assert_int_equal(stats.writer, writer);
}

static void owner_init(struct owner *o)
{
    *o = (struct owner){.next_index = 1, .dir = "/tmp/metadb-log-XXXXXX"};
    assert_non_null(mkdtemp(o->dir));
    snprintf(o->stream, sizeof o->stream, "%s/0", o->dir);
    o->options = (struct raft_log_options){
        .dir = o->stream,
        .cluster_id = 1,
        .store_id = 2,
        .segment_bytes = 256 * 1024,
        .batch_bytes = 64 * 1024,
        .batch_entries = 512,
        .writer = writer,
    };
}

static void owner_close(struct owner *o)
{
    raft_log_close(o->log);
    loop_turn_free(o->turn);
    mailbox_free(o->mailbox);
    loop_free(o->loop);
    o->log = NULL;
    o->turn = NULL;
    o->mailbox = NULL;
    o->loop = NULL;
    o->stored = o->last_ticket = 0;
}

static void owner_fini(struct owner *o)
{
    char command[128];
    owner_close(o);
    snprintf(command, sizeof command, "rm -rf %s", o->dir);
    assert_int_equal(system(command), 0);
}

static void events_come_in_order_and_everything_is_there(void **state)
{
    struct owner o;
    struct raft_log_stats stats;
    (void)state;
    owner_init(&o);
    owner_open(&o);
    o.rounds_left = 500;
    loop_again(o.loop);
    loop_run(o.loop);
    assert_int_equal(o.stored, 500);
    raft_log_stats(o.log, &stats);
    assert_int_equal(stats.entries, o.next_index - 1);
    assert_int_equal(stats.batch.count, stats.queued_wait.count);
    assert_true(stats.syncs <= stats.batches);
    assert_true(o.events <= stats.syncs);
    owner_close(&o);
    owner_open(&o);
    assert_int_equal(o.recovered, o.next_index - 1);
    owner_fini(&o);
}

static void waiting_batches_are_merged_while_a_sync_runs(void **state)
{
    struct owner o;
    struct raft_log_stats stats;
    (void)state;
    owner_init(&o);
    o.options.sync_delay_us = 20000;
    owner_open(&o);
    o.rounds_left = 200;
    loop_again(o.loop);
    loop_run(o.loop);
    raft_log_stats(o.log, &stats);
    assert_true(stats.syncs < stats.batches / 2);
    owner_fini(&o);
}

static void group_wait_lets_a_batch_wait_and_a_full_one_go(void **state)
{
    struct owner o;
    struct raft_log_stats stats;
    (void)state;
    owner_init(&o);
    o.options.group_wait_us = 30000;
    o.wait_each = true;
    owner_open(&o);
    o.rounds_left = 3;
    loop_again(o.loop);
    loop_run(o.loop);
    raft_log_stats(o.log, &stats);
    assert_int_equal(stats.group_wait.count, 3);
    assert_true(stats.batch.sum >= 3 * 25000);
    owner_close(&o);

    o.options.group_wait_us = 3600u * 1000000u; /* nobody waits an hour for a batch that is full */
    o.options.batch_entries = 1;
    owner_open(&o);
    o.rounds_left = 3;
    loop_again(o.loop);
    loop_run(o.loop);
    owner_fini(&o);
}

static void close_writes_what_is_pending_and_no_event_follows(void **state)
{
    struct owner o;
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        owner_init(&o);
        owner_open(&o);
        o.rounds_left = 1 + i;
        while (o.rounds_left)
            one_round(&o);
        append_some(&o, 3); /* not even submitted */
        if (i % 2)
            wait_for_a_write(&o); /* its event is in the mailbox, or about to be */
        owner_close(&o);
        assert_int_equal(o.events, 0);
        owner_open(&o);
        assert_int_equal(o.recovered, o.next_index - 1);
        owner_fini(&o);
    }
}

/* A loop that writes needs its thread for segments alone. */
static void uring_wakes_no_thread_per_batch(void **state)
{
    struct owner o;
    struct raft_log_stats stats;
    (void)state;
    if (writer != RAFT_LOG_URING)
        skip();
    owner_init(&o);
    o.options.segment_bytes = 64u << 20;
    o.wait_each = true;
    owner_open(&o);
    o.rounds_left = 300;
    loop_again(o.loop);
    loop_run(o.loop);
    raft_log_stats(o.log, &stats);
    assert_int_equal(stats.writes, stats.syncs);
    assert_true(stats.writes >= 300);
    assert_true(stats.wakeups <= 2);
    owner_fini(&o);
}

/* A large batch first of all, then batches over many segments, none of which fits two. */
static void batches_of_every_size_find_their_place(void **state)
{
    struct owner o;
    (void)state;
    owner_init(&o);
    o.cuts = true;
    o.options.segment_bytes = 16 * 1024;
    owner_open(&o);
    for (unsigned i = 0; i < 300; i++) {
        append_some(&o, 1 + i * i % 40);
        raft_log_cut(o.log, 1, o.next_index > 200 ? o.next_index - 200 : 0);
        o.last_ticket = raft_log_submit(o.log);
        if (i % 17 == 0) {
            loop_again(o.loop);
            loop_run(o.loop); /* until the last ticket is stored */
        }
    }
    uint64_t last = o.next_index - 1;
    owner_close(&o);
    owner_open(&o);
    assert_int_equal(o.recovered, last);
    owner_fini(&o);
}

static void every_fault_is_told_once_and_nothing_stored_is_lost(void **state)
{
    static const char *const sites[] = {"log.write", "log.sync", "log.synced", "log.rotate"};
    (void)state;
    for (size_t s = 0; s < sizeof sites / sizeof sites[0]; s++) {
        for (unsigned nth = 1; nth <= 5; nth += 2) {
            struct owner o;
            owner_init(&o);
            owner_open(&o);
            o.may_fail = true;
            o.rounds_left = 100000;
            fault_arm(sites[s], "error", nth);
            loop_again(o.loop);
            loop_run(o.loop);
            assert_true(fault_fired());
            fault_disarm();
            assert_int_equal(o.failures, 1);
            assert_int_equal(o.failed, ST_IO);
            assert_int_equal(raft_log_admit(o.log, 1), ST_IO);
            owner_close(&o);
            assert_int_equal(o.failures, 1);
            owner_fini(&o);
        }
    }
}

/* The thread of the loop is gone when the log closes, as when a node stops. */
static void *run_loop(void *arg)
{
    struct owner *o = arg;
    loop_again(o->loop);
    loop_run(o->loop);
    return NULL;
}

static void stop_early(void *arg)
{
    struct owner *o = arg;
    if (o->events == 3)
        loop_stop(o->loop);
}

static void log_closes_after_the_thread_of_its_loop_has_ended(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        struct owner o;
        pthread_t thread;
        owner_init(&o);
        o.wait_each = i % 2;
        owner_open(&o);
        o.rounds_left = 100000;
        struct loop_turn *stopper = loop_turn_new(o.loop, stop_early, &o);
        assert_int_equal(pthread_create(&thread, NULL, run_loop, &o), 0);
        pthread_join(thread, NULL);
        loop_turn_free(stopper);
        owner_close(&o);
        owner_open(&o);
        assert_int_equal(o.recovered, o.next_index - 1);
        owner_fini(&o);
    }
}

static int run(enum raft_log_writer which, const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_in_order_and_everything_is_there),
        cmocka_unit_test(waiting_batches_are_merged_while_a_sync_runs),
        cmocka_unit_test(group_wait_lets_a_batch_wait_and_a_full_one_go),
        cmocka_unit_test(close_writes_what_is_pending_and_no_event_follows),
        cmocka_unit_test(uring_wakes_no_thread_per_batch),
        cmocka_unit_test(batches_of_every_size_find_their_place),
        cmocka_unit_test(every_fault_is_told_once_and_nothing_stored_is_lost),
        cmocka_unit_test(log_closes_after_the_thread_of_its_loop_has_ended),
    };
    writer = which;
    return _cmocka_run_group_tests(name, tests, sizeof tests / sizeof tests[0], NULL, NULL);
}

/* Does this kernel let us use io_uring, and this file system write directly? */
static bool uring_is_possible(void)
{
    struct raft_log_stats stats;
    struct owner o;
    writer = RAFT_LOG_URING;
    owner_init(&o);
    o.loop = loop_new();
    o.mailbox = mailbox_new(o.loop);
    const struct raft_log_recovery recovery = {.arg = &o};
    const struct raft_log_events events = {&o, on_stored, on_failed};
    if (raft_log_open(env_os(), &o.options, &recovery, &o.log, NULL) != ST_OK)
        abort();
    raft_log_start(o.log, o.mailbox, &events);
    raft_log_stats(o.log, &stats);
    owner_fini(&o);
    return stats.writer == RAFT_LOG_URING;
}

int main(void)
{
    int failed = run(RAFT_LOG_THREAD, "thread");
    if (uring_is_possible())
        return run(RAFT_LOG_URING, "uring") + failed;
    print_message("io_uring is not possible here: its half was not run\n");
    return failed;
}
