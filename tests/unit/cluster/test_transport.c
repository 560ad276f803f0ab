/* Two or three transports: refusals, requests, bounds, one connection per pair. Most of it on a
 * simulated network; one test over TCP. tests/sim has the faults. */
#include "lib/test.h"

#include "base/env_sim.h"
#include "base/fault.h"
#include "base/sim_loop.h"
#include "base/sim_net.h"
#include "cluster/node.h"
#include "cluster/transport_internal.h"
#include "lib/x509.h"
#include <unistd.h>

#define NODES 3u
#define MS 1000u
#define SECOND 1000000u

struct side {
    struct env *env;
    struct loop *loop;
    struct cl_topology topology;
    struct cl_transport_options o;
    struct cl_transport *t;
    unsigned messages, beacons, served;
    bool hold; /* keeps requests */
    struct cl_incoming held[64];
    unsigned held_count, ups, downs;
    uint64_t want_store; /* of every other node */
};

struct fixture {
    struct sim_world *world;
    struct sim_net *net;
    struct side sides[NODES];
};

struct call {
    struct cl_request request;
    unsigned done;
    status st;
    char answer[32];
};

static void on_message(void *arg, uint64_t node, uint64_t group, uint64_t from, uint64_t to,
                       bytes payload)
{
    struct side *s = arg;
    assert_int_equal(group, 5);
    assert_int_equal(from, 6);
    assert_int_equal(to, 7);
    assert_true(node >= 1 && node <= NODES);
    assert_true(payload.size > 0);
    s->messages++;
}

static void on_request(void *arg, const struct cl_incoming *in, uint64_t method,
                       uint64_t patience_us, bytes payload)
{
    struct side *s = arg;
    assert_int_equal(method, 3);
    assert_true(patience_us > 0);
    s->served++;
    if (s->hold && s->held_count < ARRAY_LEN(s->held))
        s->held[s->held_count++] = *in;
    else if (!s->hold)
        cl_transport_answer(s->t, in, ST_EXISTS, payload);
}

static void fill_beacon(void *arg, uint64_t node, struct obuf *out)
{
    (void)arg;
    put_u64(out, node);
}

static void on_beacon(void *arg, uint64_t node, bytes payload)
{
    struct side *s = arg;
    struct reader r = reader_make(payload);
    (void)node;
    assert_int_equal(get_u64(&r), s->topology.self);
    assert_int_equal(codec_finish(&r), ST_OK);
    s->beacons++;
}

static void on_changed(void *arg, uint64_t node, bool up)
{
    struct side *s = arg;
    (void)node;
    s->ups += up;
    s->downs += !up;
}

static uint64_t store_of(void *arg, uint64_t node)
{
    (void)node;
    return ((struct side *)arg)->want_store;
}

static const struct cl_transport_events events = {.message = on_message,
                                                  .request = on_request,
                                                  .fill_beacon = fill_beacon,
                                                  .beacon = on_beacon,
                                                  .changed = on_changed,
                                                  .store_of = store_of};

static void on_done(struct cl_request *r, status st, bytes answer)
{
    struct call *c = CONTAINER_OF(r, struct call, request);
    c->done++;
    c->st = st;
    snprintf(c->answer, sizeof c->answer, "%.*s", (int)answer.size, (const char *)answer.data);
}

static void prepare(struct side *s, unsigned i)
{
    s->topology = (struct cl_topology){.self = i + 1, .count = NODES};
    for (unsigned k = 0; k < NODES; k++) {
        struct cl_node_address *a = &s->topology.nodes[k];
        a->id = k + 1;
        snprintf(a->peers, sizeof a->peers, "10.0.0.%u:7433", k + 1);
    }
    s->o = (struct cl_transport_options){.env = s->env,
                                         .loop = s->loop,
                                         .topology = &s->topology,
                                         .cluster_id = 7,
                                         .store_id = 100 + i,
                                         .events = &events,
                                         .arg = s};
    cl_transport_defaults(&s->o);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->world = sim_world_new(11);
    f->net = sim_net_new(f->world);
    for (unsigned i = 0; i < NODES; i++) {
        struct side *s = &f->sides[i];
        char host[32];
        s->env = env_sim_new(i + 1);
        sim_world_add(f->world, s->env, 0);
        s->loop = sim_loop_new(f->world, s->env);
        snprintf(host, sizeof host, "10.0.0.%u", i + 1);
        (void)sim_net_join(f->net, s->env, host);
        prepare(s, i);
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < NODES; i++) {
        cl_transport_free(f->sides[i].t);
        loop_free(f->sides[i].loop);
        sim_world_remove(f->world, f->sides[i].env);
        env_sim_free(f->sides[i].env);
    }
    sim_net_free(f->net);
    sim_world_free(f->world);
    free(f);
    return 0;
}

static void start(struct side *s)
{
    struct err err = {0};
    sim_loop_enter(s->loop);
    assert_int_equal(cl_transport_new(&s->o, &s->t, &err), ST_OK);
}

static void run_for(struct fixture *f, uint64_t us)
{
    uint64_t until_us = sim_world_now_us(f->world) + us;
    while (sim_world_step(f->world, until_us))
        ;
}

static void copy_stats(void *arg, const struct cl_peer_stats *s)
{
    struct cl_peer_stats *out = arg;
    if (s->node == out->node)
        *out = *s;
}

static struct cl_peer_stats stats(struct side *s, uint64_t node)
{
    struct cl_peer_stats out = {.node = node};
    cl_transport_each(s->t, copy_stats, &out);
    return out;
}

static bool message(struct side *s, uint64_t node, size_t size)
{
    uint8_t *data = calloc(1, size);
    sim_loop_enter(s->loop);
    bool taken = cl_transport_message(s->t, node, 5, 6, 7, bytes_make(data, size));
    free(data);
    return taken;
}

static status request(struct side *s, struct call *c, uint64_t node, uint64_t patience_us)
{
    *c = (struct call){.request.done = on_done};
    sim_loop_enter(s->loop);
    return cl_transport_request(s->t, &c->request, node, 3, patience_us, BYTES_LIT("ping"));
}

/* -- one connection per pair ------------------------------------------------------------------- */

static void all_pairs_have_one_connection(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < NODES; i++)
        start(&f->sides[i]);
    run_for(f, 3 * SECOND);
    for (unsigned i = 0; i < NODES; i++) {
        for (unsigned k = 1; k <= NODES; k++) {
            if (k == i + 1)
                continue;
            struct cl_peer_stats p = stats(&f->sides[i], k);
            assert_true(cl_transport_up(f->sides[i].t, k));
            assert_string_equal(p.state, "up");
            assert_int_equal(p.connects, 1);
            assert_int_equal(p.store_id, 100 + k - 1);
            assert_true(p.rtt_us >= 100 && p.rtt_us <= 5 * MS);
            assert_true(message(&f->sides[i], k, 10));
        }
        assert_int_equal(f->sides[i].ups, 2);
        assert_int_equal(f->sides[i].downs, 0);
        assert_true(f->sides[i].beacons >= 2 * 12); /* five a second and node */
    }
    run_for(f, SECOND);
    for (unsigned i = 0; i < NODES; i++)
        assert_int_equal(f->sides[i].messages, 2);
}

static void a_crossing_leaves_one_connection(void **state)
{
    struct fixture *f = *state;
    uint64_t before = mark_count("net.crossed");
    /* Both requests to connect are on their way at once. */
    sim_net_delay(f->net, 0, 1, 200 * MS, 200 * MS);
    sim_net_delay(f->net, 1, 0, 200 * MS, 200 * MS);
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, 5 * SECOND);
    assert_true(mark_count("net.crossed") > before);
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(stats(&f->sides[i], 2 - i).state, "up");
        assert_int_equal(stats(&f->sides[i], 2 - i).connects, 1);
        assert_int_equal(f->sides[i].downs, 0);
    }
}

/* The one that forgot connects again; the other one takes that for what it is. */
static void a_restarted_node_replaces_its_connection(void **state)
{
    struct fixture *f = *state;
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, SECOND);
    sim_net_crash(f->net, 0, true);
    cl_transport_free(f->sides[0].t);
    sim_net_restart(f->net, 0);
    start(&f->sides[0]);
    run_for(f, SECOND);
    assert_string_equal(stats(&f->sides[1], 1).state, "up");
    assert_int_equal(f->sides[1].downs, 1);
    assert_true(message(&f->sides[1], 1, 10));
    run_for(f, SECOND);
    assert_int_equal(f->sides[0].messages, 1);
}

static void a_silent_node_is_noticed(void **state)
{
    struct fixture *f = *state;
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, SECOND);
    sim_net_block(f->net, 0, 1, true); /* one way */
    run_for(f, 3 * SECOND);
    assert_false(cl_transport_up(f->sides[1].t, 1));
    assert_string_equal(stats(&f->sides[1], 1).last_error, "nothing was heard of it");
}

/* What the others sent meanwhile has not been looked at. */
static void a_node_that_stood_still_does_not_blame_the_others(void **state)
{
    struct fixture *f = *state;
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, SECOND);
    env_sim_advance(f->sides[0].env, 5 * SECOND);
    run_for(f, 5 * SECOND);
    assert_int_equal(f->sides[0].downs + f->sides[1].downs, 0);
}

/* -- refusals ---------------------------------------------------------------------------------- */

/* Node 1 and node 2 cannot be friends: both say why, and neither tries more often than it may. */
static void check_refused(struct fixture *f, const char *why)
{
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, 60 * SECOND);
    struct sim_net_stats net;
    sim_net_stats(f->net, &net);
    for (unsigned i = 0; i < 2; i++) {
        struct cl_peer_stats p = stats(&f->sides[i], 2 - i);
        assert_string_equal(p.state, "refused");
        if (strstr(p.last_error, why) == NULL)
            fail_msg("%s", p.last_error);
        assert_int_equal(p.connects, 0);
        assert_true(p.refusals > 0);
    }
    /* 5, 10, 20 … seconds apart, in each direction; the third node, which does not run, is tried
     * about once in two seconds. */
    assert_true(net.connects - net.refused <= 2 * 8);
}

static void another_cluster_is_refused(void **state)
{
    struct fixture *f = *state;
    f->sides[1].o.cluster_id = 8;
    check_refused(f, "of cluster 0000000000000008");
}

static void another_store_is_refused(void **state)
{
    struct fixture *f = *state;
    f->sides[0].want_store = 5;
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, 30 * SECOND);
    assert_string_equal(stats(&f->sides[0], 2).state, "refused");
    assert_non_null(strstr(stats(&f->sides[0], 2).last_error, "store 0000000000000005"));
    assert_int_equal(stats(&f->sides[0], 2).connects + stats(&f->sides[1], 1).connects, 0);
}

static void another_node_at_that_address_is_refused(void **state)
{
    struct fixture *f = *state;
    /* Node 1 believes that node 3 is where node 2 is. */
    snprintf(f->sides[0].topology.nodes[2].peers, ENV_NET_ADDRESS_BYTES, "10.0.0.2:7433");
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, 20 * SECOND);
    assert_string_equal(stats(&f->sides[0], 2).state, "up");
    assert_string_equal(stats(&f->sides[0], 3).state, "refused");
    assert_non_null(strstr(stats(&f->sides[0], 3).last_error, "this is node 2"));
}

static void a_node_does_not_talk_to_itself(void **state)
{
    struct fixture *f = *state;
    snprintf(f->sides[0].topology.nodes[1].peers, ENV_NET_ADDRESS_BYTES, "10.0.0.1:7433");
    start(&f->sides[0]);
    run_for(f, 20 * SECOND);
    assert_string_equal(stats(&f->sides[0], 2).state, "refused");
    assert_non_null(strstr(stats(&f->sides[0], 2).last_error, "itself"));
}

/* -- requests ---------------------------------------------------------------------------------- */

static void requests_are_answered_in_any_order(void **state)
{
    struct fixture *f = *state;
    struct call calls[3];
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, SECOND);
    f->sides[1].hold = true;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(request(&f->sides[0], &calls[i], 2, 10 * SECOND), ST_OK);
    run_for(f, SECOND);
    assert_int_equal(f->sides[1].held_count, 3);
    for (unsigned i = 3; i > 0; i--) {
        sim_loop_enter(f->sides[1].loop);
        cl_transport_answer(f->sides[1].t, &f->sides[1].held[i - 1], ST_OK, BYTES_LIT("pong"));
        run_for(f, 100 * MS);
        assert_int_equal(calls[i - 1].done, 1);
        assert_string_equal(calls[i - 1].answer, "pong");
    }
    f->sides[1].hold = false;
    assert_int_equal(request(&f->sides[0], &calls[0], 2, SECOND), ST_OK);
    run_for(f, SECOND / 2);
    assert_int_equal(calls[0].st, ST_EXISTS);
    assert_string_equal(calls[0].answer, "ping");
}

static void a_late_answer_finds_nobody(void **state)
{
    struct fixture *f = *state;
    struct call late, next;
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, SECOND);
    f->sides[1].hold = true;
    assert_int_equal(request(&f->sides[0], &late, 2, 100 * MS), ST_OK);
    run_for(f, SECOND);
    assert_int_equal(late.done, 1);
    assert_int_equal(late.st, ST_OUTCOME_UNKNOWN);
    assert_int_equal(request(&f->sides[0], &next, 2, 10 * SECOND), ST_OK);
    sim_loop_enter(f->sides[1].loop);
    cl_transport_answer(f->sides[1].t, &f->sides[1].held[0], ST_OK, BYTES_LIT("late"));
    run_for(f, SECOND);
    assert_int_equal(late.done, 1);
    assert_int_equal(next.done, 0);
    assert_int_equal(stats(&f->sides[0], 2).late, 1);
    sim_loop_enter(f->sides[0].loop);
    cl_transport_cancel(f->sides[0].t, &next.request);
}

/* What was given to the network may have arrived; what waited behind a full socket did not. */
static void a_broken_connection_tells_unsent_from_unknown(void **state)
{
    struct fixture *f = *state;
    struct call sent, waiting;
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, SECOND);
    sim_net_block(f->net, 0, 1, true);
    assert_int_equal(request(&f->sides[0], &sent, 2, 60 * SECOND), ST_OK);
    run_for(f, MS);
    for (unsigned i = 0; i < 10; i++) {
        assert_true(message(&f->sides[0], 2, 200u * 1024u));
        run_for(f, MS);
    }
    assert_int_equal(request(&f->sides[0], &waiting, 2, 60 * SECOND), ST_OK);
    run_for(f, MS);
    assert_int_equal(sent.done + waiting.done, 0);
    sim_net_break(f->net, 0, 1);
    sim_net_crash(f->net, 1, false);
    cl_transport_free(f->sides[1].t);
    f->sides[1].t = NULL;
    sim_net_block(f->net, 0, 1, false);
    run_for(f, 15 * SECOND);
    assert_int_equal(sent.st, ST_OUTCOME_UNKNOWN);
    assert_int_equal(waiting.st, ST_UNREACHABLE);
    assert_int_equal(sent.done + waiting.done, 2);
    assert_int_equal(request(&f->sides[0], &sent, 2, SECOND), ST_UNREACHABLE);
    assert_int_equal(sent.done, 0);
}

/* -- bounds ------------------------------------------------------------------------------------ */

static void a_slow_node_holds_no_memory_without_bound(void **state)
{
    struct fixture *f = *state;
    unsigned taken = 0;
    f->sides[0].o.queue_bytes = 1u << 20;
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, SECOND);
    sim_net_slow(f->net, 0, 1, 20000);
    for (unsigned i = 0; i < 10000; i++) {
        taken += message(&f->sides[0], 2, 1000);
        if (i % 10 == 0)
            run_for(f, MS / 10);
    }
    struct cl_peer_stats p = stats(&f->sides[0], 2);
    assert_true(taken > 0 && taken < 3000);
    assert_int_equal(p.dropped, 10000 - taken);
    assert_true(p.queue_bytes <= (1u << 20) + CL_SOCKET_QUEUE_BYTES + CL_FRAME_TARGET_BYTES);
    struct call c;
    while (message(&f->sides[0], 2, 1))
        ;
    assert_int_equal(request(&f->sides[0], &c, 2, SECOND), ST_BUSY);
    /* A slow node is not a dead one. */
    run_for(f, 5 * SECOND);
    assert_int_equal(f->sides[0].downs, 0);
}

static void requests_under_way_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct call *calls = calloc(CL_REQUESTS_MAX + 1, sizeof *calls);
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, SECOND);
    f->sides[1].hold = true;
    for (unsigned i = 0; i < CL_REQUESTS_MAX; i++)
        assert_int_equal(request(&f->sides[0], &calls[i], 2, SECOND), ST_OK);
    assert_int_equal(request(&f->sides[0], &calls[CL_REQUESTS_MAX], 2, SECOND), ST_BUSY);
    run_for(f, 2 * SECOND);
    for (unsigned i = 0; i < CL_REQUESTS_MAX; i++)
        assert_int_equal(calls[i].done, 1);
    assert_int_equal(request(&f->sides[0], &calls[0], 2, SECOND), ST_OK);
    sim_loop_enter(f->sides[0].loop);
    cl_transport_cancel(f->sides[0].t, &calls[0].request);
    free(calls);
}

static void a_turn_goes_out_in_one_frame(void **state)
{
    struct fixture *f = *state;
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, SECOND);
    uint64_t before = stats(&f->sides[0], 2).sent_frames;
    for (unsigned i = 0; i < 100; i++)
        assert_true(message(&f->sides[0], 2, 100));
    run_for(f, 10 * MS);
    assert_in_range(stats(&f->sides[0], 2).sent_frames, before + 1, before + 2); /* or a beacon */
    run_for(f, 100 * MS);
    assert_int_equal(f->sides[1].messages, 100);
}

static void the_delay_holds_each_frame(void **state)
{
    struct fixture *f = *state;
    f->sides[0].o.delay_us = 500 * MS;
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, 3 * SECOND);
    assert_true(message(&f->sides[0], 2, 100));
    run_for(f, 490 * MS);
    assert_int_equal(f->sides[1].messages, 0);
    run_for(f, 20 * MS);
    assert_int_equal(f->sides[1].messages, 1);
}

/* -- over TCP ---------------------------------------------------------------------------------- */

struct tcp {
    struct loop *loop;
    struct side *sides;
    struct call call;
    bool asked;
    struct loop_timer *tick;
};

static void on_tcp_turn(void *arg)
{
    struct tcp *t = arg;
    if (!t->asked && cl_transport_up(t->sides[0].t, 2) && cl_transport_up(t->sides[1].t, 1)) {
        t->asked = true;
        t->call.request.done = on_done;
        assert_int_equal(cl_transport_request(t->sides[0].t, &t->call.request, 2, 3, 60 * SECOND,
                                              BYTES_LIT("ping")),
                         ST_OK);
        assert_true(cl_transport_message(t->sides[1].t, 1, 5, 6, 7, BYTES_LIT("m")));
        loop_again(t->loop);
    }
    if (t->call.done > 0 && t->sides[0].messages > 0 && stats(&t->sides[0], 2).rtt_us > 0)
        loop_stop(t->loop);
}

static void on_tcp_tick(void *arg)
{
    loop_timer_start(((struct tcp *)arg)->tick, 1000);
}

static void two_nodes_talk_over_tcp(void **state)
{
    static struct side sides[2];
    struct tcp t = {.loop = loop_new(), .sides = sides};
    unsigned port = 20000u + (unsigned)getpid() % 20000u;
    struct err err = {0};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        sides[i] = (struct side){.env = env_os(), .loop = t.loop};
        prepare(&sides[i], i);
        sides[i].topology.count = 2;
        for (unsigned k = 0; k < 2; k++)
            snprintf(sides[i].topology.nodes[k].peers, ENV_NET_ADDRESS_BYTES, "127.0.0.1:%u",
                     port + k);
        assert_int_equal(cl_transport_new(&sides[i].o, &sides[i].t, &err), ST_OK);
    }
    struct loop_turn *turn = loop_turn_new(t.loop, on_tcp_turn, &t);
    t.tick = loop_timer_new(t.loop, on_tcp_tick, &t);
    loop_timer_start(t.tick, 0);
    loop_run(t.loop);
    assert_int_equal(t.call.st, ST_EXISTS);
    assert_string_equal(t.call.answer, "ping");
    loop_timer_free(t.tick);
    loop_turn_free(turn);
    cl_transport_free(sides[0].t);
    cl_transport_free(sides[1].t);
    loop_free(t.loop);
}

/* -- TLS --------------------------------------------------------------------------------------- */

/* Certificates of nodes 1 to 3, and one of node 1 that another authority has signed. */
#define CERTIFICATES 4u
struct secured {
    char dir[64], ca[128];
    char pem[CERTIFICATES][128], key[CERTIFICATES][128];
    struct config *config[CERTIFICATES];
    struct cl_peer_tls *tls[NODES];
};

static void set(struct config *c, const char *name, const char *value)
{
    struct err err;
    assert_int_equal(config_set(c, name, value, &err), ST_OK);
}

static void issue(const struct secured *s, unsigned i, X509 *ca, EVP_PKEY *by)
{
    char name[32];
    EVP_PKEY *k = EVP_EC_gen("P-256");
    snprintf(name, sizeof name, "node-%u", i < NODES ? i + 1 : 1);
    X509 *x = certificate(k, name, -1, ca, by);
    write_certificate(s->pem[i], x);
    write_key(s->key[i], k, 0600);
    X509_free(x);
    EVP_PKEY_free(k);
}

static void secured_init(struct secured *s)
{
    unsigned count;
    const struct config_setting *settings = cl_settings(&count);
    *s = (struct secured){0};
    snprintf(s->dir, sizeof s->dir, "/tmp/test_transport.XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->ca, sizeof s->ca, "%s/ca.pem", s->dir);
    EVP_PKEY *by = EVP_EC_gen("P-256"), *other_by = EVP_EC_gen("P-256");
    X509 *ca = certificate(by, "nodes", -1, NULL, by);
    X509 *other = certificate(other_by, "nodes", -1, NULL, other_by);
    write_certificate(s->ca, ca);
    for (unsigned i = 0; i < CERTIFICATES; i++) {
        snprintf(s->pem[i], sizeof s->pem[i], "%s/%u.pem", s->dir, i);
        snprintf(s->key[i], sizeof s->key[i], "%s/%u.key", s->dir, i);
        issue(s, i, i < NODES ? ca : other, i < NODES ? by : other_by);
        s->config[i] = config_new(settings, count);
        set(s->config[i], "cluster.tls_certificate", s->pem[i]);
        set(s->config[i], "cluster.tls_key", s->key[i]);
        set(s->config[i], "cluster.tls_ca", s->ca);
    }
    X509_free(ca);
    X509_free(other);
    EVP_PKEY_free(by);
    EVP_PKEY_free(other_by);
}

/* Side I shows certificate WITH. */
static void secure(struct fixture *f, struct secured *s, unsigned i, unsigned with)
{
    struct err err;
    uint64_t name = with < NODES ? with + 1 : 1;
    assert_int_equal(cl_peer_tls_new(s->config[with], name, &s->tls[i], &err), ST_OK);
    f->sides[i].o.tls = s->tls[i];
}

static void secured_fini(struct fixture *f, struct secured *s)
{
    for (unsigned i = 0; i < NODES; i++) {
        cl_transport_free(f->sides[i].t);
        f->sides[i].t = NULL;
        cl_peer_tls_free(s->tls[i]);
    }
    for (unsigned i = 0; i < CERTIFICATES; i++) {
        config_free(s->config[i]);
        unlink(s->pem[i]);
        unlink(s->key[i]);
    }
    unlink(s->ca);
    assert_int_equal(rmdir(s->dir), 0);
}

static void nodes_talk_in_tls(void **state)
{
    struct fixture *f = *state;
    struct secured s;
    struct call call;
    secured_init(&s);
    for (unsigned i = 0; i < NODES; i++) {
        secure(f, &s, i, i);
        start(&f->sides[i]);
    }
    run_for(f, 3 * SECOND);
    for (unsigned i = 0; i < NODES; i++) {
        assert_int_equal(f->sides[i].ups, 2);
        for (unsigned k = 1; k <= NODES; k++) {
            if (k == i + 1)
                continue;
            assert_string_equal(stats(&f->sides[i], k).state, "up");
            assert_int_equal(stats(&f->sides[i], k).connects, 1);
            assert_true(message(&f->sides[i], k, 300000)); /* many records */
            assert_true(message(&f->sides[i], k, 1));
        }
    }
    assert_int_equal(request(&f->sides[0], &call, 2, SECOND), ST_OK);
    run_for(f, 3 * SECOND);
    assert_int_equal(call.st, ST_EXISTS);
    assert_string_equal(call.answer, "ping");
    for (unsigned i = 0; i < NODES; i++) {
        assert_int_equal(f->sides[i].messages, 4);
        assert_int_equal(f->sides[i].downs, 0);
    }
    secured_fini(f, &s);
}

static bool ever_up(struct fixture *f)
{
    return f->sides[0].ups + f->sides[1].ups > 0;
}

/* Whoever connects: node 1 alone does first, then node 2 alone. */
static void another_nodes_certificate_is_refused(void **state)
{
    struct fixture *f = *state;
    struct secured s;
    secured_init(&s);
    secure(f, &s, 0, 0);
    secure(f, &s, 1, 2); /* node 2 shows what was made for node 3 */
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, 30 * SECOND);
    assert_false(ever_up(f));
    /* As the one who connects node 1 has looked at the certificate before it said a word; as the
     * one who was connected to it has answered node 2 with the reason. */
    assert_string_equal(stats(&f->sides[0], 2).state, "refused");
    assert_non_null(strstr(stats(&f->sides[0], 2).last_error, "is of \"node-3\", not of node-2"));
    assert_string_equal(stats(&f->sides[1], 1).state, "refused");
    assert_non_null(strstr(stats(&f->sides[1], 1).last_error, "is of \"node-3\", not of node-2"));
    assert_true(stats(&f->sides[0], 2).refusals >= 2);
    secured_fini(f, &s);
}

static void another_authority_is_refused(void **state)
{
    struct fixture *f = *state;
    struct secured s;
    secured_init(&s);
    secure(f, &s, 0, NODES);
    secure(f, &s, 1, 1);
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, 10 * SECOND);
    assert_false(ever_up(f));
    assert_string_not_equal(stats(&f->sides[1], 1).last_error, "");
    secured_fini(f, &s);
}

static void nobody_talks_in_the_clear_where_tls_is_asked_for(void **state)
{
    struct fixture *f = *state;
    struct secured s;
    secured_init(&s);
    secure(f, &s, 0, 0);
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, 10 * SECOND);
    assert_false(ever_up(f));
    assert_non_null(strstr(stats(&f->sides[0], 2).last_error, "in the handshake of TLS"));
    assert_int_equal(f->sides[0].t->strangers, 0);
    secured_fini(f, &s);
}

static void new_files_are_for_new_connections(void **state)
{
    struct fixture *f = *state;
    struct secured s;
    struct err err;
    struct cl_peer_tls *none;
    secured_init(&s);
    secure(f, &s, 0, 0);
    secure(f, &s, 1, 1);
    start(&f->sides[0]);
    start(&f->sides[1]);
    run_for(f, 3 * SECOND);
    struct tls_context *before = cl_peer_tls_context(s.tls[0]);
    assert_int_equal(f->sides[0].ups, 1);
    /* Node 1's key stays, its certificate becomes one of node 2, then of an unknown authority. */
    assert_int_equal(rename(s.pem[1], s.pem[0]), 0);
    run_for(f, 3 * SECOND);
    assert_ptr_equal(cl_peer_tls_context(s.tls[0]), before);
    assert_int_equal(cl_peer_tls_new(s.config[0], 1, &none, &err), ST_INVALID);
    assert_int_equal(rename(s.pem[NODES], s.pem[0]), 0);
    assert_int_equal(rename(s.key[NODES], s.key[0]), 0);
    run_for(f, 3 * SECOND);
    assert_ptr_not_equal(cl_peer_tls_context(s.tls[0]), before);
    assert_string_equal(stats(&f->sides[0], 2).state, "up");
    assert_int_equal(f->sides[0].downs, 0);
    /* The next connection meets the new ones. */
    cl_transport_free(f->sides[1].t);
    start(&f->sides[1]);
    run_for(f, 10 * SECOND);
    assert_int_equal(f->sides[0].downs, 1);
    assert_int_equal(f->sides[0].ups, 1);
    /* Some of the settings only. */
    set(s.config[0], "cluster.tls_ca", "");
    assert_int_equal(cl_peer_tls_new(s.config[0], 1, &none, &err), ST_INVALID);
    assert_non_null(strstr(err.message, "needed all three"));
    secured_fini(f, &s);
}

#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(all_pairs_have_one_connection),
        T(a_crossing_leaves_one_connection),
        T(a_restarted_node_replaces_its_connection),
        T(a_silent_node_is_noticed),
        T(a_node_that_stood_still_does_not_blame_the_others),
        T(another_cluster_is_refused),
        T(another_store_is_refused),
        T(another_node_at_that_address_is_refused),
        T(a_node_does_not_talk_to_itself),
        T(requests_are_answered_in_any_order),
        T(a_late_answer_finds_nobody),
        T(a_broken_connection_tells_unsent_from_unknown),
        T(a_slow_node_holds_no_memory_without_bound),
        T(requests_under_way_are_bounded),
        T(a_turn_goes_out_in_one_frame),
        T(the_delay_holds_each_frame),
        T(nodes_talk_in_tls),
        T(another_nodes_certificate_is_refused),
        T(another_authority_is_refused),
        T(nobody_talks_in_the_clear_where_tls_is_asked_for),
        T(new_files_are_for_new_connections),
        cmocka_unit_test(two_nodes_talk_over_tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
