/*
 * Three nodes, clients at any of them: statements are served whoever leads, in order, once each,
 * also while leaders come and go; and the bytes of what nodes ask of each other.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "base/fault.h"
#include "cluster/forward.h"
#include "cluster/host.h"
#include "cluster/request.h"
#include "cluster_fixture.h"
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void open_all(struct cluster *c)
{
    cx_init(c);
    cx_open_all(c);
    cx_acquaint(c);
    (void)cx_leader(c);
}

/* A statement of its own at node AT. */
static status put(struct cluster *c, unsigned at, const char *key, const char *value)
{
    struct fx_client x;
    fx_client_init(&x, &c->nodes[at]);
    status st = fx_op(&x, fx_kv_put(&x.arena, key, value));
    fx_client_fini(&x);
    return st;
}

static void expect(struct cluster *c, unsigned at, const char *key, const char *value)
{
    struct fx_client x;
    fx_client_init(&x, &c->nodes[at]);
    assert_int_equal(fx_lookup_kv(&x, key), ST_END);
    assert_int_equal(x.row_count, value != NULL);
    if (value != NULL) {
        bytes got = x.rows[0].col[KVT_VALUE].b;
        assert_int_equal(got.size, strlen(value));
        assert_memory_equal(got.data, value, got.size);
    }
    fx_client_fini(&x);
}

static status create(struct cluster *c, unsigned at, const char *name, int64_t id)
{
    struct fx_client x;
    fx_client_init(&x, &c->nodes[at]);
    status st = fx_op(&x, fx_create(&x.arena, 0, name, 'f', id));
    fx_client_fini(&x);
    return st;
}

static struct cl_forward_stats stats_of(struct cluster *c, unsigned at);

/* -- every statement, on every node ------------------------------------------------------------ */

static void any_node_serves_and_sees_what_was_written_before(void **state)
{
    UNUSED(state);
    struct cluster c;
    char value[16];
    open_all(&c);
    for (unsigned i = 0; i < 60; i++) {
        snprintf(value, sizeof value, "%u", i);
        assert_int_equal(put(&c, i % CX_NODES, "k", value), ST_OK);
        expect(&c, (i + 1) % CX_NODES, "k", value);
        expect(&c, (i + 2) % CX_NODES, "k", value);
    }
    unsigned leader = cx_leader(&c);
    assert_int_equal(stats_of(&c, leader).sent, 0);
    assert_true(stats_of(&c, (leader + 1) % CX_NODES).sent > 0);
    cx_fini(&c);
}

/* What an error says comes through. */
static void errors_come_through(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    open_all(&c);
    unsigned other = (cx_leader(&c) + 1) % CX_NODES;
    assert_int_equal(create(&c, other, "f", 5), ST_OK);
    fx_client_init(&x, &c.nodes[other]);
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 0, "f", 'f', 6)), ST_EXISTS);
    assert_string_equal(x.call.err.sqlstate, "23505");
    assert_string_equal(x.call.err.constraint, "meta_pkey");
    assert_int_equal(fx_op(&x, fx_create(&x.arena, 999, "f", 'f', 6)), ST_NO_PARENT);
    /* Rows too: RETURNING. */
    struct kv_op *op = fx_set_size(&x.arena, 0, "f", 77);
    op->want_rows = true;
    assert_int_equal(fx_op(&x, op), ST_OK);
    assert_int_equal(x.call.result.affected, 1);
    assert_int_equal(x.call.result.row_count, 1);
    assert_int_equal(x.call.result.rows[0].col[META_SIZE].i, 77);
    assert_int_equal(x.call.result.rows[0].col[META_ID].i, 5);
    fx_client_fini(&x);
    cx_fini(&c);
}

static void transactions_run_where_the_client_is(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client a, b;
    open_all(&c);
    unsigned leader = cx_leader(&c), one = (leader + 1) % CX_NODES, two = (leader + 2) % CX_NODES;
    assert_int_equal(put(&c, leader, "x", "0"), ST_OK);
    fx_client_init(&a, &c.nodes[one]);
    fx_client_init(&b, &c.nodes[two]);
    fx_begin(&a, false);
    fx_begin(&b, false);
    assert_int_equal(fx_op(&a, fx_kv_put(&a.arena, "x", "a")), ST_OK);
    assert_int_equal(fx_lookup_kv(&a, "x"), ST_END);
    assert_memory_equal(a.rows[0].col[KVT_VALUE].b.data, "a", 1);
    expect(&c, one, "x", "0"); /* nobody else sees it */
    assert_int_equal(fx_op(&b, fx_kv_put(&b.arena, "x", "b")), ST_OK);
    assert_int_equal(fx_commit(&a), ST_OK);
    assert_int_equal(fx_lookup_kv(&b, "x"), ST_END);
    assert_memory_equal(b.rows[0].col[KVT_VALUE].b.data, "b", 1); /* its own */
    assert_int_equal(fx_commit(&b), ST_CONFLICT);
    assert_string_equal(b.call.err.sqlstate, "40001");
    expect(&c, leader, "x", "a");
    /* A snapshot stays as it is, however much is written meanwhile. */
    fx_begin(&a, true);
    assert_int_equal(fx_lookup_kv(&a, "x"), ST_END);
    assert_int_equal(put(&c, two, "x", "c"), ST_OK);
    assert_int_equal(fx_lookup_kv(&a, "x"), ST_END);
    assert_memory_equal(a.rows[0].col[KVT_VALUE].b.data, "a", 1);
    assert_int_equal(fx_commit(&a), ST_OK);
    fx_begin(&b, false);
    assert_int_equal(fx_op(&b, fx_kv_put(&b.arena, "x", "gone")), ST_OK);
    fx_rollback(&b);
    expect(&c, one, "x", "c");
    fx_client_fini(&a);
    fx_client_fini(&b);
    cx_fini(&c);
}

struct jobs {
    struct cl_node *node;
    unsigned count;
};

static void cancel(void *arg)
{
    cl_cancel(((struct fx_client *)arg)->c);
}

static void functions_run_at_the_leader(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    open_all(&c);
    unsigned other = (cx_leader(&c) + 1) % CX_NODES;
    assert_int_equal(create(&c, other, "f", 5), ST_OK);
    fx_client_init(&x, &c.nodes[other]);
    assert_int_equal(fx_call(&x, "wait_for_sinks"), ST_OK);
    assert_int_equal(x.row_count, 1);
    assert_int_equal(fx_call(&x, "check"), ST_OK);
    assert_int_equal(x.row_count, 0);
    assert_int_equal(fx_call(&x, "state_hash"), ST_OK);
    assert_int_equal(x.row_count, CL_SHARDS);
    assert_int_equal(x.rows[CL_META].col[2].b.size, 16);
    struct kv_datum wrong[] = {kv_int(1), kv_int(9)};
    assert_int_equal(fx_call_with(&x, "transfer_leader", wrong), ST_INVALID);
    assert_string_equal(x.call.err.sqlstate, "22023");
    struct kv_datum here[] = {kv_int(1), kv_int((int64_t)other + 1)};
    status st = fx_call_with(&x, "transfer_leader", here);
    assert_true(st == ST_OK || st == ST_LOCKED); /* another's timer may be faster */
    fx_client_fini(&x);
    cx_fini(&c);
}

/* Cancels X's call when the function that it has called elsewhere is under way there. */
static void *cancel_once_it_runs(void *arg)
{
    struct fx_client *x = arg;
    while (!fault_fired())
        usleep(1000);
    fx_on_reactor(x->f, cancel, x);
    return NULL;
}

static void count_jobs(void *arg)
{
    struct jobs *j = arg;
    j->count = j->node->jobs;
}

/* The fault keeps the recount where it is: only the cancel ends it. */
static void a_cancel_reaches_the_function_at_the_other_node(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    pthread_t thread;
    open_all(&c);
    unsigned leader = cx_leader(&c), other = (leader + 1) % CX_NODES;
    struct jobs j = {.node = c.nodes[leader].node};
    fx_client_init(&x, &c.nodes[other]);
    fault_arm("check.stays", "always", 1);
    assert_int_equal(pthread_create(&thread, NULL, cancel_once_it_runs, &x), 0);
    assert_int_equal(fx_call(&x, "check"), ST_CANCELLED);
    assert_string_equal(x.call.err.sqlstate, "57014");
    pthread_join(thread, NULL);
    do
        fx_on_reactor(&c.nodes[leader], count_jobs, &j);
    while (j.count > 0);
    fault_disarm();
    assert_int_equal(fx_call(&x, "check"), ST_OK);
    fx_client_fini(&x);
    cx_fini(&c);
}

/* -- exactly once ------------------------------------------------------------------------------ */

/* The leader has applied it, and its answer is lost: the second attempt gets that answer. */
static void a_lost_answer_is_asked_for_again(void **state)
{
    UNUSED(state);
    struct cluster c;
    open_all(&c);
    unsigned other = (cx_leader(&c) + 1) % CX_NODES;
    fault_arm("forward.answer", "error", 1);
    assert_int_equal(create(&c, other, "once", 7), ST_OK);
    assert_true(fault_fired());
    fault_disarm();
    assert_int_equal(create(&c, other, "once", 7), ST_EXISTS); /* another statement */
    struct cl_forward_stats s = stats_of(&c, other);
    assert_int_equal(s.retried, 1);
    assert_int_equal(s.unknown, 0);
    cx_fini(&c);
}

/* Writes without a call: many under way. */
struct writer {
    struct cluster *c;
    unsigned at, count;
    struct cl_client *client;
    struct arena arena;
    atomic_uint done, failed;
    status st[512];
    sem_t all;
};

struct write {
    struct writer *w;
    unsigned number;
};

static void write_done(void *arg, status st, const struct kv_result *result, struct err *err)
{
    struct write *p = arg;
    struct writer *w = p->w;
    UNUSED(result);
    w->st[p->number] = st;
    if (st != ST_OK) {
        atomic_fetch_add(&w->failed, 1);
        print_message("write %u: %s %s\n", p->number, err->sqlstate, err->message);
    }
    if (atomic_fetch_add(&w->done, 1) + 1 == w->count)
        sem_post(&w->all);
}

/* Each moves the same key on, from what the one before wrote: done twice, left out or out of order,
 * one of them would fail or the end be another. */
static struct kv_op *nth_write(struct writer *w, unsigned i)
{
    const char *name = arena_printf(&w->arena, "n%u", i);
    struct kv_op *op = fx_create(&w->arena, 0, name, 'f', 1000);
    if (i == 0)
        return op;
    *op = (struct kv_op){.kind = KV_OP_MOVE,
                         .table = KV_META,
                         .ns = op->ns,
                         .now = op->now,
                         .pid = 0,
                         .name = bytes_str(arena_printf(&w->arena, "n%u", i - 1)),
                         .new_pid = 0,
                         .new_name = bytes_str(name),
                         .move = KV_MOVE_NOREPLACE};
    return op;
}

static void writes_start(void *arg)
{
    struct writer *w = arg;
    w->client =
        cl_client_new(w->c->nodes[w->at].node, cl_node_reactor(w->c->nodes[w->at].node, 0), 1);
    for (unsigned i = 0; i < w->count; i++) {
        struct err err;
        struct write *p = arena_alloc(&w->arena, sizeof *p);
        *p = (struct write){w, i};
        assert_int_equal(cl_write(w->client, nth_write(w, i), write_done, p, &err), ST_PENDING);
    }
}

static void writes_end(void *arg)
{
    struct writer *w = arg;
    cl_client_free(w->client);
}

static void writer_start(struct writer *w, struct cluster *c, unsigned at, unsigned count)
{
    *w = (struct writer){.c = c, .at = at, .count = count};
    assert_true(count <= ARRAY_LEN(w->st));
    arena_init(&w->arena, 4096);
    sem_init(&w->all, 0, 0);
    fx_on_reactor(&c->nodes[at], writes_start, w);
}

/* All are done, once each and in order. */
static void writer_check(struct writer *w, unsigned from)
{
    struct fx_client x;
    char name[16];
    sem_wait(&w->all);
    assert_int_equal(atomic_load(&w->failed), 0);
    snprintf(name, sizeof name, "n%u", w->count - 1);
    fx_client_init(&x, &w->c->nodes[from]);
    assert_int_equal(fx_lookup(&x, 0, name), ST_END);
    assert_int_equal(x.row_count, 1);
    assert_int_equal(x.rows[0].col[META_ID].i, 1000);
    assert_int_equal(fx_list(&x, 0), 1);
    fx_client_fini(&x);
    fx_on_reactor(&w->c->nodes[w->at], writes_end, w);
    sem_destroy(&w->all);
    arena_fini(&w->arena);
}

static void a_stopped_leader_loses_and_doubles_nothing(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct writer w;
    open_all(&c);
    unsigned leader = cx_leader(&c), other = (leader + 1) % CX_NODES;
    /* Some of the answers are lost too. */
    fault_arm("forward.answer", "error", 20);
    writer_start(&w, &c, other, 300);
    cx_close(&c, leader);
    writer_check(&w, other);
    fault_disarm();
    cx_settle(&c);
    cx_fini(&c);
}

static void give_away(struct cluster *c, unsigned leader)
{
    struct fx_client x;
    unsigned to = (leader + 1) % CX_NODES;
    fx_client_init(&x, &c->nodes[leader]);
    struct kv_datum args[] = {kv_int(CL_META + 1), kv_int((int64_t)to + 1)};
    status st = fx_call_with(&x, "transfer_leader", args);
    assert_true(st == ST_OK || st == ST_LOCKED);
    fx_client_fini(&x);
}

/* Leadership moves under clients of the leader and of another node. */
static void a_leader_that_gives_way_loses_and_doubles_nothing(void **state)
{
    UNUSED(state);
    for (unsigned at = 0; at < 2; at++) {
        struct cluster c;
        struct writer w;
        open_all(&c);
        unsigned leader = cx_leader(&c);
        writer_start(&w, &c, (leader + 2 * at) % CX_NODES, 400);
        give_away(&c, leader);
        give_away(&c, cx_leader(&c));
        writer_check(&w, cx_leader(&c));
        cx_settle(&c);
        cx_fini(&c);
    }
}

static void a_transaction_outlives_its_leader(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    open_all(&c);
    unsigned leader = cx_leader(&c), other = (leader + 1) % CX_NODES;
    assert_int_equal(put(&c, leader, "t", "before"), ST_OK);
    fx_client_init(&x, &c.nodes[other]);
    fx_begin(&x, false);
    assert_int_equal(fx_lookup_kv(&x, "t"), ST_END);
    assert_int_equal(x.row_count, 1);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "u", "1")), ST_OK);
    cx_close(&c, leader);
    status st = fx_commit(&x); /* its time may have run out meanwhile */
    assert_true(st == ST_OK || st == ST_TXN_TIMEOUT);
    expect(&c, other, "u", st == ST_OK ? "1" : NULL);
    fx_client_fini(&x);
    cx_fini(&c);
}

/* -- no leader --------------------------------------------------------------------------------- */

static void without_a_majority_patience_ends(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    cx_init(&c);
    for (unsigned i = 0; i < CX_NODES; i++)
        fx_set(&c.nodes[i], "cluster.patience", "300ms");
    cx_open_all(&c);
    cx_acquaint(&c);
    unsigned leader = cx_leader(&c), other = (leader + 1) % CX_NODES;
    assert_int_equal(put(&c, leader, "k", "1"), ST_OK);
    cx_close(&c, leader);
    cx_close(&c, (leader + 2) % CX_NODES);
    fx_client_init(&x, &c.nodes[other]);
    status st;
    while ((st = fx_lookup_kv(&x, "k")) == ST_END)
        usleep(1000); /* the other one may have been led by, or have led, for a moment */
    assert_int_equal(st, ST_NOT_LEADER);
    assert_string_equal(x.call.err.sqlstate, "57P03");
    st = fx_op(&x, fx_kv_put(&x.arena, "k", "2"));
    assert_true(st == ST_NOT_LEADER || st == ST_OUTCOME_UNKNOWN);
    fx_begin(&x, false);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_NOT_LEADER);
    fx_rollback(&x);
    assert_int_equal(fx_call(&x, "check"), ST_NOT_LEADER);
    fx_client_fini(&x);
    cx_fini(&c);
}

struct phase {
    struct cl_node *node;
    bool serves;
};

static void look_phase(void *arg)
{
    struct phase *p = arg;
    p->serves = p->node->phase == CL_NODE_SERVING;
}

/* Its log is read: from here on it waits for the others. */
static void await_recovery(struct cluster *c, unsigned at)
{
    struct phase p = {.node = c->nodes[at].node};
    do
        fx_on_reactor(&c->nodes[at], look_phase, &p);
    while (!p.serves);
}

/* Cancels the client's call, over and over: a cancel that comes before the call does nothing. */
struct canceller {
    struct fx_client *x;
    pthread_t thread;
    atomic_bool done;
};

static void *cancel_until_done(void *arg)
{
    struct canceller *k = arg;
    while (!atomic_load(&k->done)) {
        usleep(1000);
        fx_on_reactor(k->x->f, cancel, k->x);
    }
    return NULL;
}

static void canceller_start(struct canceller *k, struct fx_client *x)
{
    k->x = x;
    atomic_init(&k->done, false);
    assert_int_equal(pthread_create(&k->thread, NULL, cancel_until_done, k), 0);
}

static void canceller_end(struct canceller *k)
{
    atomic_store(&k->done, true);
    pthread_join(k->thread, NULL);
}

static void who_waits_for_a_leader_can_be_cancelled(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    struct canceller k;
    cx_init(&c);
    for (unsigned i = 0; i < CX_NODES; i++)
        fx_set(&c.nodes[i], "cluster.patience", "3600s");
    cx_open(&c, 0); /* alone among three */
    await_recovery(&c, 0);
    fx_client_init(&x, &c.nodes[0]);
    canceller_start(&k, &x);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_CANCELLED);
    assert_string_equal(x.call.err.sqlstate, "57014");
    fx_begin(&x, false);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "1")), ST_CANCELLED);
    fx_rollback(&x);
    assert_int_equal(fx_op(&x, fx_kv_put(&x.arena, "k", "1")), ST_CANCELLED);
    assert_int_equal(fx_call(&x, "check"), ST_CANCELLED);
    canceller_end(&k);
    fx_client_fini(&x);
    cx_fini(&c);
}

/* -- reads without a lease --------------------------------------------------------------------- */

/* The leader asks the others whether it still leads, for readers of its own and of other nodes. */
static void a_leader_without_a_lease_lets_read_by_rounds(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    open_all(&c);
    assert_int_equal(put(&c, 0, "k", "1"), ST_OK);
    unsigned leader = cx_leader(&c);
    assert_int_equal(stats_of(&c, leader).rounds, 0);
    fault_arm("raft.no_lease", "always", 1);
    for (unsigned i = 0; i < CX_NODES; i++) {
        uint64_t before = stats_of(&c, leader).rounds;
        expect(&c, i, "k", "1");
        assert_true(stats_of(&c, leader).rounds > before);
    }
    for (unsigned i = 0; i < CX_NODES; i++) { /* a snapshot of all shards */
        fx_client_init(&x, &c.nodes[i]);
        fx_begin(&x, false);
        assert_int_equal(fx_lookup_kv(&x, "k"), ST_END);
        fx_rollback(&x);
        fx_client_fini(&x);
    }
    fault_disarm();
    assert_int_equal(put(&c, 1, "k", "2"), ST_OK);
    expect(&c, 2, "k", "2");
    cx_fini(&c);
}

/* Nobody says yes to a round: the old state is not shown. */
static void without_a_majority_no_round_ends(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct fx_client x;
    cx_init(&c);
    for (unsigned i = 0; i < CX_NODES; i++)
        fx_set(&c.nodes[i], "cluster.patience", "300ms");
    cx_open_all(&c);
    cx_acquaint(&c);
    unsigned leader = cx_leader(&c);
    assert_int_equal(put(&c, leader, "k", "1"), ST_OK);
    fault_arm("raft.no_lease", "always", 1);
    expect(&c, leader, "k", "1");
    cx_close(&c, (leader + 1) % CX_NODES);
    cx_close(&c, (leader + 2) % CX_NODES);
    fx_client_init(&x, &c.nodes[leader]);
    assert_int_equal(fx_lookup_kv(&x, "k"), ST_NOT_LEADER);
    fx_client_fini(&x);
    fault_disarm();
    cx_fini(&c);
}

/* -- bounds ------------------------------------------------------------------------------------ */

struct crowd {
    struct cluster *c;
    struct cl_client *client;
    struct arena arena;
    atomic_uint refused_at_stop, others;
    status beyond;
};

static void crowd_done(void *arg, status st, const struct kv_result *result, struct err *err)
{
    struct crowd *w = arg;
    UNUSED(result);
    UNUSED(err);
    atomic_fetch_add(st == ST_SHUTDOWN ? &w->refused_at_stop : &w->others, 1);
}

static void crowd_start(void *arg)
{
    struct crowd *w = arg;
    struct cl_node *n = w->c->nodes[0].node;
    const struct kv_op *op = fx_kv_put(&w->arena, "k", "v");
    struct err err;
    w->client = cl_client_new(n, cl_node_reactor(n, 0), 1);
    for (unsigned i = 0; i < CL_COMMANDS_MAX; i++)
        assert_int_equal(cl_write(w->client, op, crowd_done, w, &err), ST_PENDING);
    w->beyond = cl_write(w->client, op, crowd_done, w, &err);
    cl_client_free(w->client); /* what is under way goes on */
}

/* No more than so many wait; a stop answers them all: nothing was done. */
static void a_crowd_without_a_leader_is_bounded(void **state)
{
    UNUSED(state);
    struct cluster c;
    struct crowd w = {.c = &c};
    cx_init(&c);
    fx_set(&c.nodes[0], "cluster.patience", "3600s");
    cx_open(&c, 0); /* alone among three */
    await_recovery(&c, 0);
    arena_init(&w.arena, 1024);
    fx_on_reactor(&c.nodes[0], crowd_start, &w);
    assert_int_equal(w.beyond, ST_BUSY);
    assert_int_equal(stats_of(&c, 0).waiting, CL_COMMANDS_MAX);
    cx_close(&c, 0);
    assert_int_equal(atomic_load(&w.refused_at_stop), CL_COMMANDS_MAX);
    assert_int_equal(atomic_load(&w.others), 0);
    arena_fini(&w.arena);
    cx_fini(&c);
}

/* -- bytes ------------------------------------------------------------------------------------- */

static void command_into(struct obuf *out, bool again)
{
    struct arena a;
    arena_init(&a, 1024);
    const struct kv_op *ops[] = {fx_kv_put(&a, "k", "v")};
    obuf_reset(out);
    kv_command_ops(out, ops, 1,
                   (struct kv_origin){.incarnation = 3, .sequence = 4, .since = 5, .again = again});
    arena_fini(&a);
}

static void a_proposal_survives_the_round_trip(void **state)
{
    UNUSED(state);
    struct obuf command, o;
    struct cl_propose p;
    obuf_init(&command);
    obuf_init(&o);
    command_into(&command, true);
    struct cl_propose in = {
        .shard = 4, .epoch = 300, .command = bytes_make(command.data, command.size)};
    cl_propose_encode(&in, &o);
    assert_int_equal(cl_propose_decode(bytes_make(o.data, o.size), &p), ST_OK);
    assert_int_equal(p.shard, 4);
    assert_int_equal(p.epoch, 300);
    assert_int_equal(p.incarnation, 3);
    assert_int_equal(p.command.size, command.size);
    for (size_t n = 0; n < o.size; n++) {
        uint8_t *cut = malloc(n + 1); /* its own block, so that ASan sees a read too far */
        memcpy(cut, o.data, n);
        assert_int_equal(cl_propose_decode(bytes_make(cut, n), &p), ST_CORRUPT);
        free(cut);
    }
    /* No such shard; a command that must not be sent; not one of a client. */
    obuf_reset(&o);
    in.shard = CL_SHARDS + 1;
    cl_propose_encode(&in, &o);
    assert_int_equal(cl_propose_decode(bytes_make(o.data, o.size), &p), ST_CORRUPT);
    in.shard = 1;
    command_into(&command, false);
    in.command = bytes_make(command.data, command.size);
    obuf_reset(&o);
    cl_propose_encode(&in, &o);
    assert_int_equal(cl_propose_decode(bytes_make(o.data, o.size), &p), ST_CORRUPT);
    obuf_reset(&command);
    kv_command_tick(&command);
    in.command = bytes_make(command.data, command.size);
    obuf_reset(&o);
    cl_propose_encode(&in, &o);
    assert_int_equal(cl_propose_decode(bytes_make(o.data, o.size), &p), ST_CORRUPT);
    obuf_fini(&command);
    obuf_fini(&o);
}

static void read_points_survive_the_round_trip(void **state)
{
    UNUSED(state);
    struct cl_read_point in[CL_SHARDS] = {0}, out[CL_SHARDS] = {0};
    cl_shard_set shards = 1u << CL_META | 1u << CL_KV, back;
    struct obuf o;
    obuf_init(&o);
    in[CL_META] = (struct cl_read_point){1000, 77};
    in[CL_KV] = (struct cl_read_point){1, 88};
    cl_read_points_encode(shards, in, &o);
    assert_int_equal(cl_read_points_decode(bytes_make(o.data, o.size), shards, out), ST_OK);
    assert_memory_equal(in, out, sizeof in);
    for (size_t n = 0; n < o.size; n++)
        assert_int_equal(cl_read_points_decode(bytes_make(o.data, n), shards, out), ST_CORRUPT);
    assert_int_equal(cl_read_points_decode(bytes_make(o.data, o.size), 1u << CL_KV, out),
                     ST_CORRUPT);
    obuf_reset(&o);
    cl_snapshot_ask_encode(shards, &o);
    assert_int_equal(cl_snapshot_ask_decode(bytes_make(o.data, o.size), &back), ST_OK);
    assert_int_equal(back, shards);
    assert_int_equal(cl_snapshot_ask_decode(BYTES_EMPTY, &back), ST_CORRUPT);
    assert_int_equal(cl_snapshot_ask_decode(BYTES_LIT("\x20"), &back), ST_CORRUPT);
    obuf_fini(&o);
}

/* -- a look inside ----------------------------------------------------------------------------- */

struct look {
    struct cl_node *node;
    struct cl_forward_stats stats;
};

static void look(void *arg)
{
    struct look *l = arg;
    cl_forward_stats(l->node->forward, &l->stats);
}

static struct cl_forward_stats stats_of(struct cluster *c, unsigned at)
{
    struct look l = {.node = c->nodes[at].node};
    fx_on_reactor(&c->nodes[at], look, &l);
    return l.stats;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_node_serves_and_sees_what_was_written_before),
        cmocka_unit_test(errors_come_through),
        cmocka_unit_test(transactions_run_where_the_client_is),
        cmocka_unit_test(functions_run_at_the_leader),
        cmocka_unit_test(a_cancel_reaches_the_function_at_the_other_node),
        cmocka_unit_test(a_lost_answer_is_asked_for_again),
        cmocka_unit_test(a_stopped_leader_loses_and_doubles_nothing),
        cmocka_unit_test(a_leader_that_gives_way_loses_and_doubles_nothing),
        cmocka_unit_test(a_transaction_outlives_its_leader),
        cmocka_unit_test(without_a_majority_patience_ends),
        cmocka_unit_test(a_leader_without_a_lease_lets_read_by_rounds),
        cmocka_unit_test(without_a_majority_no_round_ends),
        cmocka_unit_test(who_waits_for_a_leader_can_be_cancelled),
        cmocka_unit_test(a_crowd_without_a_leader_is_bounded),
        cmocka_unit_test(a_proposal_survives_the_round_trip),
        cmocka_unit_test(read_points_survive_the_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
