/* raft/log.c with both writers, stepped: appending, storing, reopening, cutting, failing. */
#include "log_fixture.h"

#include "base/fault.h"
#include "base/limits.h"

/* The writer under test: log_ring.c with several writes under way, or log_write.c. */
static bool overlap;

static void log_init(struct fixture *f, uint64_t seed)
{
    fixture_init(f, seed);
    f->overlap = overlap;
    f->held.random = seed;
}

static void new_log_is_empty_and_reopens(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 1);
    fixture_open(&f);
    assert_int_equal(raft_log_submit(f.log), 0);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

static void several_groups_come_back_in_order(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 2);
    fixture_open(&f);
    fixture_hard_state(&f, 1, 1, 7);
    fixture_store_entries(&f, 1, 1, 1, 3, 20);
    fixture_hard_state(&f, 2, 5, 7);
    assert_int_equal(fixture_append(&f, 2, 1, 5, 2, 300), ST_OK);
    assert_int_equal(fixture_append(&f, 1, 4, 1, 1, 8), ST_OK);
    fixture_store(&f);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    assert_int_equal(f.got->groups[1].last, 4);
    assert_int_equal(f.got->groups[2].hard.term, 5);
    fixture_fini(&f);
}

static void noop_comes_back_without_data(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 3);
    fixture_open(&f);
    const struct raft_entry noop = {.index = 1, .term = 4, .kind = RAFT_ENTRY_NOOP};
    assert_int_equal(raft_log_append(f.log, 0, &noop, 1), ST_OK);
    model_put(f.sent, 0, 1, 4, 0);
    fixture_store(&f);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

static void nothing_is_reported_before_its_sync(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 4);
    fixture_open(&f);
    assert_int_equal(fixture_append(&f, 0, 1, 1, 1, 8), ST_OK);
    assert_int_equal(raft_log_submit(f.log), 1);
    assert_int_equal(f.stored_ticket, 0);
    assert_true(fixture_step(&f));
    assert_int_equal(f.stored_ticket, 1);
    fixture_fini(&f);
}

static void waiting_batches_share_one_write_and_one_sync(void **state)
{
    struct fixture f;
    struct raft_log_stats before, after;
    (void)state;
    if (overlap)
        skip(); /* test_log_ring.c has its counterpart */
    log_init(&f, 5);
    fixture_open(&f);
    fixture_store_entries(&f, 0, 1, 1, 1, 8);
    raft_log_stats(f.log, &before);
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(fixture_append(&f, i % 2, 2 + i, 1, 1, 8), ST_OK);
        assert_int_equal(raft_log_submit(f.log), 2 + i);
    }
    assert_true(fixture_step(&f));
    raft_log_stats(f.log, &after);
    assert_int_equal(f.stored_ticket, 6);
    assert_int_equal(after.syncs - before.syncs, 1);
    assert_int_equal(after.writes - before.writes, 1);
    assert_int_equal(after.entries - before.entries, 5);
    fixture_fini(&f);
}

static void large_run_is_split_into_batches_with_one_ticket(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 6);
    fixture_open(&f);
    assert_int_equal(fixture_append(&f, 0, 1, 1, 300, 100), ST_OK);
    assert_int_equal(raft_log_submit(f.log), 1);
    fixture_run(&f);
    assert_int_equal(f.stored_ticket, 1);
    assert_int_equal(fixture_append(&f, 0, 301, 1, 1, 100), ST_OK);
    assert_int_equal(raft_log_submit(f.log), 2);
    fixture_run(&f);
    fixture_crash(&f);
    fixture_open(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

static void batch_larger_than_a_segment_gets_a_larger_one(void **state)
{
    struct fixture f;
    (void)state;
    for (int first = 0; first < 2; first++) {
        log_init(&f, 7);
        fixture_open(&f);
        if (!first)
            fixture_store_entries(&f, 0, 1, 1, 1, 8);
        fixture_store_entries(&f, 0, f.sent->groups[0].last + 1, 1, 1, 100000);
        fixture_store_entries(&f, 1, 1, 1, 1, 8);
        fixture_crash(&f);
        fixture_open(&f);
        model_check_equal(f.got, f.sent);
        fixture_store_entries(&f, 1, 2, 1, 40, 400);
        fixture_reopen(&f);
        model_check_equal(f.got, f.sent);
        fixture_fini(&f);
    }
}

static void lower_index_overwrites_all_behind_it(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 8);
    fixture_open(&f);
    fixture_store_entries(&f, 0, 1, 1, 10, 50);
    fixture_store_entries(&f, 0, 4, 2, 2, 50);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    assert_int_equal(f.got->groups[0].last, 5);
    assert_int_equal(f.got->groups[0].entries[4].term, 2);
    fixture_fini(&f);
}

struct counter {
    const char *part;
    unsigned count;
};

static void count_name(void *arg, const char *name)
{
    struct counter *c = arg;
    c->count += strstr(name, c->part) != NULL;
}

static unsigned count_files(struct fixture *f, const char *part)
{
    struct counter c = {.part = part};
    assert_int_equal(f->env->ops->list(f->env, f->options.dir, count_name, &c), ST_OK);
    return c.count;
}

static void cut_segments_are_recycled_and_a_restart_follows(void **state)
{
    struct fixture f;
    struct raft_log_stats stats;
    uint64_t recycled = 0;
    (void)state;
    log_init(&f, 9);
    fixture_open(&f);
    fixture_hard_state(&f, 1, 3, 7);
    for (uint64_t round = 0; round < 40; round++) {
        fixture_store_entries(&f, 0, round * 10 + 1, 3, 10, 300);
        fixture_store_entries(&f, 1, round + 1, 3, 1, 20);
        raft_log_cut(f.log, 0, round * 10 + 5);
        raft_log_cut(f.log, 1, round + 1);
        fixture_store(&f);
        raft_log_stats(f.log, &stats);
        if (round % 4 == 3) { /* right after a cut: FIELD-REPORTS A15 */
            recycled += stats.segments_recycled;
            fixture_crash(&f);
            fixture_open(&f);
            model_check_equal(f.got, f.sent);
            assert_int_equal(f.got->groups[0].cut, round * 10 + 5);
            assert_int_equal(f.got->groups[1].cut, round + 1);
        }
        assert_true(count_files(&f, ".log") <= 4);
    }
    assert_true(recycled > 10);
    assert_int_equal(f.got->groups[1].hard.term, 3); /* said once, carried by checkpoints */
    fixture_fini(&f);
}

static void idle_group_pins_the_oldest_segment_and_is_named(void **state)
{
    struct fixture f;
    uint64_t group, held;
    (void)state;
    log_init(&f, 10);
    fixture_open(&f);
    fixture_store_entries(&f, 2, 1, 1, 1, 8);
    for (uint64_t i = 0; i < 20; i++) {
        fixture_store_entries(&f, 0, i * 10 + 1, 1, 10, 300);
        raft_log_cut(f.log, 0, i * 10 + 10);
    }
    fixture_store(&f);
    raft_log_oldest(f.log, &group, &held);
    assert_int_equal(group, 2);
    assert_true(held > 7 * 8192);
    raft_log_cut(f.log, 2, 1);
    fixture_store(&f);
    raft_log_oldest(f.log, &group, &held);
    assert_true(held <= 8192);
    fixture_fini(&f);
}

static void all_that_pin_too_much_are_named(void **state)
{
    struct fixture f;
    uint64_t groups[4];
    (void)state;
    log_init(&f, 12);
    fixture_open(&f);
    fixture_store_entries(&f, 2, 1, 1, 1, 8);
    fixture_store_entries(&f, 3, 1, 1, 1, 8);
    for (uint64_t i = 0; i < 20; i++)
        fixture_store_entries(&f, 0, i * 10 + 1, 1, 10, 300);
    fixture_store_entries(&f, 1, 1, 1, 1, 8); /* young: pins the end alone */
    fixture_store(&f);
    assert_int_equal(raft_log_pinning(f.log, 3 * 8192, groups, 4), 3);
    assert_int_equal(raft_log_pinning(f.log, 3 * 8192, groups, 2), 2);
    assert_int_equal(raft_log_pinning(f.log, 1 << 20, groups, 4), 0);
    raft_log_cut(f.log, 2, 1);
    raft_log_cut(f.log, 0, 200);
    fixture_store(&f);
    assert_int_equal(raft_log_pinning(f.log, 3 * 8192, groups, 4), 1);
    assert_int_equal(groups[0], 3);
    fixture_fini(&f);
}

static bool none_wanted(void *arg, uint64_t group, uint64_t index)
{
    (void)arg;
    return group != 1 || index > 2;
}

static status without_what_is_not_wanted(void *arg, uint64_t group, const struct raft_entry *e)
{
    unsigned *seen = arg;
    seen[e->data ? 1 : 0]++;
    assert_int_equal(e->data != NULL, none_wanted(NULL, group, e->index));
    return ST_OK;
}

static void data_that_nobody_wants_is_not_handed_over(void **state)
{
    struct fixture f;
    unsigned seen[2] = {0};
    struct raft_log_recovery recovery = {
        .arg = seen, .wanted = none_wanted, .on_entry = without_what_is_not_wanted};
    (void)state;
    log_init(&f, 13);
    fixture_open(&f);
    fixture_store_entries(&f, 1, 1, 1, 5, 40);
    fixture_store_entries(&f, 2, 1, 1, 2, 40);
    fixture_store(&f);
    raft_log_close(f.log);
    assert_int_equal(raft_log_open(f.log_env, &f.options, &recovery, &f.log, &f.err), ST_OK);
    assert_int_equal(seen[0], 2);
    assert_int_equal(seen[1], 5);
    fixture_fini(&f);
}

static void overwritten_entries_do_not_pin_segments(void **state)
{
    struct fixture f;
    uint64_t group, held;
    (void)state;
    log_init(&f, 11);
    fixture_open(&f);
    fixture_store_entries(&f, 2, 1, 1, 5, 8); /* indexes 3 to 5 never come back */
    for (uint64_t i = 0; i < 10; i++)
        fixture_store_entries(&f, 0, i * 10 + 1, 1, 10, 300);
    fixture_store_entries(&f, 2, 3, 2, 1, 8);
    raft_log_cut(f.log, 0, 100);
    raft_log_cut(f.log, 2, 2);
    fixture_store(&f);
    raft_log_oldest(f.log, &group, &held);
    assert_true(held <= 2 * 8192);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

static void keep_all_keeps_every_segment(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 12);
    f.options.keep_all = true;
    fixture_open(&f);
    for (uint64_t i = 0; i < 10; i++) {
        fixture_store_entries(&f, 0, i * 10 + 1, 1, 10, 300);
        raft_log_cut(f.log, 0, i * 10 + 10);
    }
    fixture_store(&f);
    assert_true(count_files(&f, ".log") >= 4);
    assert_int_equal(count_files(&f, "spare"), 0);
    fixture_reopen(&f);
    assert_int_equal(f.got->groups[0].entries[1].term, 1);
    fixture_fini(&f);
}

static void failed_sync_is_latched_for_ever(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 13);
    fixture_open(&f);
    fixture_store_entries(&f, 0, 1, 1, 1, 8);
    assert_int_equal(fixture_append(&f, 0, 2, 1, 1, 8), ST_OK);
    env_sim_fail_next_sync(f.env, ST_IO);
    (void)raft_log_submit(f.log);
    fixture_run(&f);
    assert_int_equal(f.failed, ST_IO);
    assert_int_equal(f.stored_ticket, 1);
    /* The disk is fine again; nothing comes back to life. */
    assert_int_equal(raft_log_admit(f.log, 1), ST_IO);
    assert_int_equal(fixture_append(&f, 0, 3, 1, 1, 8), ST_IO);
    assert_int_equal(raft_log_submit(f.log), 0);
    fixture_run(&f);
    assert_int_equal(f.stored_ticket, 1);
    assert_int_equal(f.failed_calls, 1);
    fixture_fini(&f);
}

static void every_fault_point_fails_the_log_once_and_loses_nothing(void **state)
{
    (void)state;
    static const char *const sites[] = {
        "log.write", "log.sync",        "log.synced",          "log.rotate",
        "log.cut",   "log.cut.renamed", "log.segment.written", "log.segment.named"};
    for (size_t s = 0; s < sizeof sites / sizeof sites[0]; s++) {
        for (unsigned nth = 1; nth <= 4; nth++) {
            struct fixture f;
            struct model stored;
            log_init(&f, 14);
            fixture_open(&f);
            memcpy(&stored, f.sent, sizeof stored);
            fault_arm(sites[s], "error", nth);
            for (uint64_t i = 0; i < 12 && f.failed == ST_OK; i++) {
                assert_int_equal(fixture_append(&f, 0, i * 10 + 1, 1, 10, 300), ST_OK);
                raft_log_cut(f.log, 0, i * 10);
                uint64_t ticket = raft_log_submit(f.log);
                fixture_run(&f);
                if (f.stored_ticket == ticket)
                    memcpy(&stored, f.sent, sizeof stored);
            }
            assert_true(fault_fired());
            assert_int_equal(f.failed_calls, 1);
            fault_disarm();
            fixture_crash(&f);
            fixture_open(&f);
            model_check_holds(f.got, &stored);
            fixture_fini(&f);
        }
    }
}

static void full_disk_refuses_then_heals(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 15);
    fixture_open(&f);
    fixture_run(&f);
    fixture_store_entries(&f, 0, 1, 1, 1, 8);
    assert_int_equal(raft_log_admit(f.log, 100), ST_OK);
    env_sim_set_capacity(f.env, 4 * 8192);
    uint64_t index = 2;
    status st = ST_OK;
    for (; index < 200; index++) {
        st = raft_log_admit(f.log, 300);
        if (st != ST_OK)
            break;
        fixture_store_entries(&f, 0, index, 1, 1, 300);
    }
    assert_int_equal(st, ST_DISK_FULL);
    assert_int_equal(fixture_append(&f, 0, index, 1, 1, 300), ST_DISK_FULL);
    assert_int_equal(f.failed, ST_OK);
    /* It starts in this state, and everything is there. */
    fixture_crash(&f);
    fixture_open(&f);
    model_check_equal(f.got, f.sent);
    fixture_run(&f);
    assert_int_equal(raft_log_admit(f.log, 300), ST_DISK_FULL);
    env_sim_set_capacity(f.env, 0);
    fixture_run(&f);
    assert_int_equal(raft_log_admit(f.log, 300), ST_OK);
    fixture_store_entries(&f, 0, index, 1, 1, 300);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

static void reserve_takes_what_was_accepted_when_the_disk_is_full(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 19);
    fixture_open(&f);
    fixture_run(&f);
    fixture_store_entries(&f, 0, 1, 1, 1, 8);
    env_sim_set_capacity(f.env, 1); /* nothing can grow any more */
    /* Three batches of more than half a segment: this segment, the prepared one, the reserve. */
    assert_int_equal(raft_log_admit(f.log, 40 * 300), ST_OK);
    assert_int_equal(fixture_append(&f, 0, 2, 1, 40, 300), ST_OK);
    assert_int_equal(count_files(&f, "reserve"), 1);
    fixture_store(&f);
    assert_int_equal(count_files(&f, "reserve"), 0);
    assert_int_equal(raft_log_admit(f.log, 1), ST_DISK_FULL);
    fixture_crash(&f);
    fixture_open(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

static void leftovers_of_an_earlier_run_are_used_or_removed(void **state)
{
    struct fixture f;
    uint8_t *junk = calloc(1, 8192);
    (void)state;
    memset(junk, 0xee, 8192);
    log_init(&f, 20);
    fixture_open(&f);
    fixture_crash(&f);
    file_write(f.env, "stream/making.tmp", junk, 5000);
    file_write(f.env, "stream/reserve", junk, 100);
    file_write(f.env, "stream/spare-000000000007", junk, 8192);
    file_write(f.env, "stream/spare-000000000008", junk, 8191);
    fixture_open(&f);
    assert_int_equal(count_files(&f, "making"), 0);
    assert_int_equal(count_files(&f, "reserve"), 0);
    assert_int_equal(count_files(&f, "spare"), 1);
    fixture_run(&f);
    assert_int_equal(count_files(&f, "spare"), 0); /* it is the prepared segment now */
    fixture_store_entries(&f, 0, 1, 1, 60, 300);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    free(junk);
    fixture_fini(&f);
}

/* The prepared segment 2 is retired at open while a spare of that number is there already: it was
 * made of another file in an earlier life. */
static void spare_of_a_number_that_comes_again_is_one_spare(void **state)
{
    struct fixture f;
    uint8_t *junk = calloc(1, 8192);
    (void)state;
    log_init(&f, 31);
    fixture_open(&f);
    fixture_run(&f);
    fixture_crash(&f);
    file_write(f.env, "stream/spare-000000000002", junk, 8192);
    fixture_open(&f);
    assert_int_equal(count_files(&f, "spare"), 1);
    assert_int_equal(f.log->spare_count, 1);
    fixture_store_entries(&f, 0, 1, 1, 60, 300);
    assert_int_equal(f.failed, ST_OK);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    free(junk);
    fixture_fini(&f);
}

static void cut_on_a_full_disk_gives_space_back(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 16);
    fixture_open(&f);
    fixture_run(&f);
    env_sim_set_capacity(f.env, 5 * 8192);
    uint64_t index = 1;
    while (raft_log_admit(f.log, 300) == ST_OK) {
        fixture_store_entries(&f, 0, index++, 1, 1, 300);
        assert_true(index < 1000);
    }
    raft_log_cut(f.log, 0, index - 1);
    fixture_store(&f);
    fixture_run(&f);
    assert_int_equal(raft_log_admit(f.log, 300), ST_OK);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(raft_log_admit(f.log, 300), ST_OK);
        fixture_store_entries(&f, 0, index++, 1, 1, 300);
        raft_log_cut(f.log, 0, index - 1);
    }
    fixture_fini(&f);
}

static void accepted_batches_wait_for_space_and_are_stored_then(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 17);
    fixture_open(&f);
    fixture_run(&f);
    fixture_store_entries(&f, 0, 1, 1, 1, 8);
    env_sim_set_capacity(f.env, 1);
    /* Far more in one turn than all prepared files hold. */
    assert_int_equal(raft_log_admit(f.log, 60000), ST_OK);
    assert_int_equal(fixture_append(&f, 0, 2, 1, 200, 300), ST_OK);
    uint64_t ticket = raft_log_submit(f.log);
    fixture_run(&f);
    assert_true(f.stored_ticket < ticket);
    assert_int_equal(f.failed, ST_OK);
    assert_int_equal(raft_log_admit(f.log, 1), ST_DISK_FULL);
    env_sim_set_capacity(f.env, 0);
    fixture_run(&f);
    assert_int_equal(f.stored_ticket, ticket);
    fixture_reopen(&f);
    model_check_equal(f.got, f.sent);
    fixture_fini(&f);
}

static void admission_is_bounded_by_what_waits(void **state)
{
    struct fixture f;
    (void)state;
    log_init(&f, 18);
    fixture_open(&f);
    assert_int_equal(raft_log_admit(f.log, 65u << 20), ST_NO_MEMORY);
    struct raft_entry e = {.index = 1, .term = 1, .kind = RAFT_ENTRY_COMMAND};
    e.data = buf_new(LIMIT_COMMAND_BYTES);
    memset(e.data->data, 1, e.data->size);
    uint64_t ticket = 0;
    while (raft_log_admit(f.log, e.data->size) == ST_OK) {
        assert_int_equal(raft_log_append(f.log, 0, &e, 1), ST_OK);
        e.index++;
        ticket = raft_log_submit(f.log);
        assert_true(ticket < 20);
    }
    assert_int_equal(raft_log_admit(f.log, e.data->size), ST_NO_MEMORY);
    fixture_run(&f);
    assert_int_equal(f.stored_ticket, ticket);
    assert_int_equal(raft_log_admit(f.log, e.data->size), ST_OK);
    buf_unref(e.data);
    fixture_fini(&f);
}

static int run(const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_log_is_empty_and_reopens),
        cmocka_unit_test(several_groups_come_back_in_order),
        cmocka_unit_test(noop_comes_back_without_data),
        cmocka_unit_test(nothing_is_reported_before_its_sync),
        cmocka_unit_test(waiting_batches_share_one_write_and_one_sync),
        cmocka_unit_test(large_run_is_split_into_batches_with_one_ticket),
        cmocka_unit_test(batch_larger_than_a_segment_gets_a_larger_one),
        cmocka_unit_test(lower_index_overwrites_all_behind_it),
        cmocka_unit_test(cut_segments_are_recycled_and_a_restart_follows),
        cmocka_unit_test(idle_group_pins_the_oldest_segment_and_is_named),
        cmocka_unit_test(all_that_pin_too_much_are_named),
        cmocka_unit_test(data_that_nobody_wants_is_not_handed_over),
        cmocka_unit_test(overwritten_entries_do_not_pin_segments),
        cmocka_unit_test(keep_all_keeps_every_segment),
        cmocka_unit_test(failed_sync_is_latched_for_ever),
        cmocka_unit_test(every_fault_point_fails_the_log_once_and_loses_nothing),
        cmocka_unit_test(full_disk_refuses_then_heals),
        cmocka_unit_test(reserve_takes_what_was_accepted_when_the_disk_is_full),
        cmocka_unit_test(leftovers_of_an_earlier_run_are_used_or_removed),
        cmocka_unit_test(spare_of_a_number_that_comes_again_is_one_spare),
        cmocka_unit_test(cut_on_a_full_disk_gives_space_back),
        cmocka_unit_test(accepted_batches_wait_for_space_and_are_stored_then),
        cmocka_unit_test(admission_is_bounded_by_what_waits),
    };
    return _cmocka_run_group_tests(name, tests, sizeof tests / sizeof tests[0], NULL, NULL);
}

int main(void)
{
    int failed = run("one write at a time");
    overlap = true;
    return run("several under way") + failed;
}
