/* Quota and index follow meta, each update once, over restarts, refused batches and kills. */
#include "base/assert.h"
#include "base/fault.h"
#include "fixture.h"
#include "kv/aux.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define UID 7

static void create_files(struct fx_client *x, int from, int to)
{
    char name[32];
    for (int i = from; i < to; i++) {
        snprintf(name, sizeof name, "f%d", i);
        assert_int_equal(fx_op(x, fx_create_full(&x->arena, 0, name, 1000 + i, UID, 10, 5000 + i)),
                         ST_OK);
    }
}

static void expect_counts(struct fx_client *x, int64_t files)
{
    assert_int_equal(fx_call(x, "wait_for_sinks"), ST_OK);
    assert_int_equal(fx_quota(x, UID, "#FILE"), files);
    assert_int_equal(fx_quota(x, UID, "#SIZE"), files * 10);
    assert_int_equal(fx_call(x, "check"), ST_OK);
    if (x->row_count != 0)
        print_error("%s %s\n", (const char *)x->rows[0].col[0].b.data,
                    (const char *)x->rows[0].col[2].b.data);
    assert_int_equal(x->row_count, 0);
}

static void items_arrive_once_over_restarts(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "sink.linger", "20ms");
    for (int life = 0; life < 4; life++) {
        fx_open(&f);
        fx_client_init(&x, &f);
        if (life == 2)
            expect_counts(&x, 60);
        create_files(&x, life * 30, life * 30 + 30); /* stopped before or while they are sent */
        fx_client_fini(&x);
        fx_close(&f);
    }
    fx_open(&f);
    fx_client_init(&x, &f);
    expect_counts(&x, 120);
    assert_int_equal(fx_op(&x, fx_remove(&x.arena, 0, "f3")), ST_OK);
    expect_counts(&x, 119);
    fx_client_fini(&x);
    fx_fini(&f);
}

static void refused_batches_and_lost_acks_count_nothing_twice(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_set(&f, "sink.linger", "0");
    fx_set(&f, "sink.batch_records", "8");
    fx_open(&f);
    fx_client_init(&x, &f);
    for (unsigned nth = 1; nth <= 6; nth++) {
        fault_arm(nth % 2 ? "sink.send" : "sink.ack", "error", nth);
        create_files(&x, (int)nth * 20, (int)nth * 20 + 20);
        expect_counts(&x, 20 * nth);
    }
    fault_disarm();
    fx_client_fini(&x);
    fx_reopen(&f);
    fx_client_init(&x, &f);
    expect_counts(&x, 120);
    fx_client_fini(&x);
    fx_fini(&f);
}

struct seen_stats {
    struct fixture *f;
    struct cl_sink_stats stats;
};

static void read_stats(void *arg)
{
    struct seen_stats *x = arg;
    cl_sink_stats(x->f->node->sink, &x->stats);
}

static void linger_for_an_hour(void *arg)
{
    struct fixture *f = arg;
    f->node->options.sink_linger_us = 3600000000u;
}

static void updates_go_with_commands_once_they_are_enough(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct seen_stats s = {.f = &f};
    fx_init(&f);
    fx_open(&f);
    fx_client_init(&x, &f);
    fx_on_reactor(&f, linger_for_an_hour, &f);
    create_files(&x, 0, 64);
    fx_on_reactor(&f, read_stats, &s);
    assert_int_equal(s.stats.batches, 0);
    create_files(&x, 64, 65);
    fx_on_reactor(&f, read_stats, &s);
    assert_int_equal(s.stats.batches, 1);
    assert_int_equal(s.stats.records, 64);
    fx_client_fini(&x);
    fx_fini(&f);
}

/* Alone it would be one more sync of the log, with a client's next command behind it. */
static void an_ack_waits_for_company(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct seen_stats s = {.f = &f};
    fx_init(&f);
    fx_set(&f, "sink.batch_records", "1"); /* sent at once */
    fx_open(&f);
    fx_client_init(&x, &f);
    fx_on_reactor(&f, linger_for_an_hour, &f);
    create_files(&x, 0, 1);
    do
        fx_on_reactor(&f, read_stats, &s);
    while (s.stats.records == 0 || s.stats.sending);
    assert_int_equal(s.stats.acks, 0);
    assert_int_equal(s.stats.pending, 1);
    create_files(&x, 1, 2);
    fx_on_reactor(&f, read_stats, &s);
    assert_int_equal(s.stats.acks, 1);
    fx_client_fini(&x);
    fx_fini(&f);
}

/* The root is nobody's: neither making it nor changing its owner moves a count. */
static void root_counts_for_nobody(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    fx_init(&f);
    fx_open(&f);
    fx_client_init(&x, &f);
    struct kv_op *op = fx_set_size(&x.arena, 0, "_attr_", 0);
    struct kv_set set = {.column = META_UID, .kind = KV_SET_VALUE, .value = kv_int(UID)};
    op->sets = &set;
    assert_int_equal(fx_op(&x, op), ST_OK);
    assert_int_equal(fx_call(&x, "wait_for_sinks"), ST_OK);
    assert_int_equal(fx_quota(&x, 0, "#DIR"), 0);
    assert_int_equal(fx_quota(&x, UID, "#DIR"), 0);
    assert_int_equal(fx_call(&x, "check"), ST_OK);
    assert_int_equal(x.row_count, 0);
    fx_client_fini(&x);
    fx_fini(&f);
}

/* A command that no statement would cause, proposed as it is. */
struct forged {
    struct cl_proposal proposal;
    struct fixture *f;
    struct cl_shard *shard;
    struct obuf command;
    sem_t done;
};

static void forged_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct forged *x = CONTAINER_OF(p, struct forged, proposal);
    assert_int_equal(st, ST_OK);
    assert_int_equal(a->outcome, ST_OK);
    sem_post(&x->done);
}

static void forged_propose(void *arg)
{
    struct forged *x = arg;
    x->proposal.command = buf_copy(bytes_make(x->command.data, x->command.size));
    x->proposal.done = forged_done;
    cl_shard_propose(x->shard, &x->proposal);
}

static void propose_forged(struct fixture *f, struct forged *x, enum cl_shard_position p)
{
    x->f = f;
    x->shard = f->node->shards[p];
    sem_init(&x->done, 0, 0);
    fx_on_reactor(f, forged_propose, x);
    sem_wait(&x->done);
    sem_destroy(&x->done);
    obuf_fini(&x->command);
}

static void forge_items(struct fixture *f, const struct kv_item *item, enum cl_shard_position p)
{
    struct forged x = {0};
    struct obuf items;
    obuf_init(&items);
    obuf_init(&x.command);
    kv_item_encode(item, &items);
    struct kv_queue_record record = {.ts = 1, .items = bytes_make(items.data, items.size)};
    kv_command_items(&x.command, p == CL_QUOTA ? KV_ITEMS_QUOTA : KV_ITEMS_INDEX, 99, &record, 1,
                     (struct kv_origin){0});
    propose_forged(f, &x, p);
    obuf_fini(&items);
}

static void forge_transaction(void *arg)
{
    struct forged *x = arg;
    struct arena a;
    const struct cl_shard *meta = x->f->node->shards[CL_META];
    arena_init(&a, 4096);
    struct kv_view view = {.state = meta->state,
                           .at = kv_state_applied_ts(meta->state),
                           .tier = KV_TIER_ANY,
                           .arena = &a};
    struct kv_txn *t = kv_txn_new(&a, &view);
    kv_txn_delta(t, kv_key_attr(&a, 1, 0), 1, 0, 0);
    kv_command_txn(&x->command, t, view.at, (struct kv_origin){0});
    arena_fini(&a);
}

static void forge_child(struct fixture *f)
{
    struct forged x = {.f = f};
    obuf_init(&x.command);
    fx_on_reactor(f, forge_transaction, &x);
    propose_forged(f, &x, CL_META);
}

static bool reported(const struct fx_client *x, const char *what)
{
    for (unsigned i = 0; i < x->row_count; i++) {
        if (bytes_eq(x->rows[i].col[0].b, bytes_str(what)))
            return true;
    }
    return false;
}

static void check_finds_what_is_wrong(void **state)
{
    UNUSED(state);
    struct fixture f;
    struct fx_client x;
    struct kv_item files = {.kind = KV_ITEM_QUOTA, .ns = 1, .uid = UID, .files = 1};
    struct kv_item index = {.kind = KV_ITEM_INDEX_PUT,
                            .ns = 1,
                            .fid = 77,
                            .pid = 0,
                            .id = 1,
                            .name = BYTES_LIT("nowhere")};
    fx_init(&f);
    fx_open(&f);
    fx_client_init(&x, &f);
    create_files(&x, 0, 3);
    expect_counts(&x, 3);
    forge_items(&f, &files, CL_QUOTA);
    assert_int_equal(fx_call(&x, "check"), ST_OK);
    assert_int_equal(x.row_count, 1);
    assert_true(reported(&x, "quota"));
    assert_int_equal(x.rows[0].col[3].i, 3);
    assert_int_equal(x.rows[0].col[4].i, 4);
    forge_items(&f, &index, CL_INDEX);
    forge_child(&f);
    assert_int_equal(fx_call(&x, "check"), ST_OK);
    assert_int_equal(x.row_count, 3);
    assert_true(reported(&x, "secondary_index"));
    assert_true(reported(&x, "num_children"));
    fx_client_fini(&x);
    fx_fini(&f);
}

/* A child that dies by _exit at SITE's NTH hit; says through OUT how many creates were answered. */
static int run_and_die(struct fixture *f, const char *site, unsigned nth, int out)
{
    struct fx_client x;
    char name[32];
    fx_open(f);
    fx_client_init(&x, f);
    fault_arm(site, "kill", nth);
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "f%d", i);
        arena_reset(&x.arena);
        if (fx_op(&x, fx_create_full(&x.arena, 0, name, 1000 + i, UID, 10, 5000 + i)) == ST_OK &&
            write(out, "x", 1) != 1)
            return 1;
    }
    (void)fx_call(&x, "wait_for_sinks");
    (void)fx_call(&x, "flush");
    return 0; /* the site was not reached so often */
}

static void kill_at(const char *site, unsigned nth, unsigned *kills)
{
    struct fixture f;
    struct fx_client x;
    int p[2], result;
    unsigned answered = 0, listed;
    char c;
    fx_init(&f);
    fx_set(&f, "mvcc.retention", "1ms");
    fx_set(&f, "memtable.bytes", "64kB");
    fx_set(&f, "log.segment_bytes", "1MB");
    assert_int_equal(pipe(p), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(run_and_die(&f, site, nth, p[1]));
    close(p[1]);
    while (read(p[0], &c, 1) == 1)
        answered++;
    close(p[0]);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_true(WEXITSTATUS(result) == 137 || WEXITSTATUS(result) == 0);
    *kills += WEXITSTATUS(result) == 137;
    /* RocksDB's threads do not survive a fork, so the survivor is a child too. */
    child = fork();
    if (child == 0) {
        fx_open(&f);
        fx_client_init(&x, &f);
        listed = fx_list(&x, 0);
        if (listed < answered || listed > answered + 1) {
            print_error("%s:%u answered %u, found %u\n", site, nth, answered, listed);
            _exit(1);
        }
        expect_counts(&x, listed);
        fx_client_fini(&x);
        fx_close(&f);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    fx_fini(&f);
}

static void killed_at_any_point_nothing_is_lost_or_doubled(void **state)
{
    UNUSED(state);
    static const char *const sites[] = {"shard.propose", "shard.stored", "shard.apply",
                                        "shard.flush",   "shard.cut",    "sink.send",
                                        "sink.ack"};
    static const unsigned hits[] = {1, 3, 17};
    for (unsigned i = 0; i < ARRAY_LEN(sites); i++) {
        unsigned kills = 0;
        for (unsigned k = 0; k < ARRAY_LEN(hits); k++)
            kill_at(sites[i], hits[k], &kills);
        if (kills == 0)
            fail_msg("no child ever reached %s", sites[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* Forks: first, before this process calls RocksDB. */
        cmocka_unit_test(killed_at_any_point_nothing_is_lost_or_doubled),
        cmocka_unit_test(items_arrive_once_over_restarts),
        cmocka_unit_test(refused_batches_and_lost_acks_count_nothing_twice),
        cmocka_unit_test(updates_go_with_commands_once_they_are_enough),
        cmocka_unit_test(an_ack_waits_for_company),
        cmocka_unit_test(root_counts_for_nobody),
        cmocka_unit_test(check_finds_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
