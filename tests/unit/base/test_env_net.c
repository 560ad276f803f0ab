/* Streams of the network, one contract for TCP and for the simulated network. */
#include "lib/test.h"

#include "base/buf.h"
#include "base/env_net.h"
#include "base/env_sim.h"
#include "base/sim_loop.h"
#include "base/sim_net.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BIG (1u << 20)
#define TIMEOUT_US 3000000u
#define SIM_LIMIT_US 60000000u

struct side {
    struct fixture *f;
    struct env_stream *stream;
    struct obuf in;
    unsigned opened, drained, closed;
    status why;
    bool close_when_received;
};

struct fixture {
    struct env *env[2]; /* of the one who listens, and of the one who connects */
    struct loop *loop[2];
    struct sim_world *world; /* NULL: the real one */
    struct sim_net *net;
    const char *address;
    struct env_listener *listener;
    struct side accepted, connected;
    bool (*done)(struct fixture *f);
    struct loop_turn *turn;
    struct loop_timer *tick;
};

static struct fixture fixture;

static void on_opened(void *arg)
{
    ((struct side *)arg)->opened++;
}

static void on_received(void *arg, bytes data)
{
    struct side *s = arg;
    assert_true(data.size > 0);
    assert_int_equal(s->closed, 0);
    obuf_put(&s->in, data.data, data.size);
    if (s->close_when_received) {
        env_stream_close(s->stream);
        s->stream = NULL;
    }
}

static void on_drained(void *arg)
{
    struct side *s = arg;
    assert_int_equal(env_stream_queued(s->stream), 0);
    s->drained++;
}

static void on_closed(void *arg, status st, const char *why)
{
    struct side *s = arg;
    assert_non_null(why);
    s->closed++;
    s->why = st;
}

static const struct env_stream_handler handler = {on_opened, on_received, on_drained, on_closed};

static void on_accepted(void *arg, struct env_stream *s)
{
    struct fixture *f = arg;
    assert_null(f->accepted.stream);
    f->accepted.stream = s;
    env_stream_attach(s, &handler, &f->accepted);
}

static void on_tick(void *arg)
{
    loop_timer_start(((struct fixture *)arg)->tick, 1000);
}

static void on_turn(void *arg)
{
    struct fixture *f = arg;
    if (f->done(f))
        loop_stop(f->loop[0]);
}

/* Runs until DONE holds; in the simulation within a minute of its time. */
static void run_until(struct fixture *f, bool (*done)(struct fixture *f))
{
    f->done = done;
    if (f->world == NULL) {
        loop_run(f->loop[0]);
        return;
    }
    uint64_t limit_us = sim_world_now_us(f->world) + SIM_LIMIT_US;
    while (!done(f))
        assert_true(sim_world_step(f->world, limit_us));
}

static void listen_at(struct fixture *f, const char *address)
{
    struct err err = {0};
    assert_int_equal(env_listen(f->env[0], f->loop[0], address, on_accepted, f, &f->listener, &err),
                     ST_OK);
    f->address = env_listener_address(f->env[0], f->listener);
    f->accepted.f = f->connected.f = f;
    obuf_init(&f->accepted.in);
    obuf_init(&f->connected.in);
}

static int setup_os(void **state)
{
    struct fixture *f = *state = &fixture;
    *f = (struct fixture){.env = {env_os(), env_os()}};
    f->loop[0] = f->loop[1] = loop_new();
    f->turn = loop_turn_new(f->loop[0], on_turn, f);
    f->tick = loop_timer_new(f->loop[0], on_tick, f);
    loop_timer_start(f->tick, 0);
    listen_at(f, "127.0.0.1:0");
    return 0;
}

static void setup_world(struct fixture *f, uint64_t seed)
{
    static const char *const hosts[] = {"10.0.0.1", "10.0.0.2"};
    *f = (struct fixture){.world = sim_world_new(seed)};
    f->net = sim_net_new(f->world);
    for (unsigned i = 0; i < 2; i++) {
        f->env[i] = env_sim_new(seed + i);
        sim_world_add(f->world, f->env[i], 0);
        f->loop[i] = sim_loop_new(f->world, f->env[i]);
        assert_int_equal(sim_net_join(f->net, f->env[i], hosts[i]), i);
    }
    listen_at(f, "10.0.0.1:0");
}

static int setup_sim(void **state)
{
    *state = &fixture;
    setup_world(&fixture, 1);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    env_stream_close(f->accepted.stream);
    env_stream_close(f->connected.stream);
    env_unlisten(f->env[0], f->listener);
    obuf_fini(&f->accepted.in);
    obuf_fini(&f->connected.in);
    loop_turn_free(f->turn);
    loop_timer_free(f->tick);
    loop_free(f->loop[0]);
    if (f->world == NULL)
        return 0;
    loop_free(f->loop[1]);
    env_sim_free(f->env[0]);
    env_sim_free(f->env[1]);
    sim_net_free(f->net);
    sim_world_free(f->world);
    return 0;
}

static void connect_to(struct fixture *f, const char *address)
{
    struct err err = {0};
    assert_int_equal(env_connect(f->env[1], f->loop[1], address, TIMEOUT_US, &handler,
                                 &f->connected, &f->connected.stream, &err),
                     ST_OK);
    assert_int_equal(f->connected.opened + f->connected.closed, 0);
}

static bool both_open(struct fixture *f)
{
    return f->connected.opened == 1 && f->accepted.stream != NULL;
}

static void open_both(struct fixture *f)
{
    connect_to(f, f->address);
    run_until(f, both_open);
}

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 31 + (i >> 8) * 7);
}

static void send_pattern(struct side *s, size_t from, size_t n)
{
    uint8_t *data = malloc(n);
    assert_non_null(data);
    for (size_t i = 0; i < n; i++)
        data[i] = pattern(from + i);
    struct iovec iov[2] = {{data, n / 3}, {data + n / 3, n - n / 3}};
    env_stream_send(s->stream, iov, 2);
    free(data);
}

static void check_pattern(const struct side *s, size_t n)
{
    assert_int_equal(s->in.size, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(s->in.data[i], pattern(i));
}

static bool both_have_all(struct fixture *f)
{
    return f->accepted.in.size >= BIG && f->connected.in.size >= BIG;
}

static void bytes_arrive_once_and_in_order(void **state)
{
    struct fixture *f = *state;
    open_both(f);
    for (size_t at = 0; at < BIG; at += BIG / 64) {
        send_pattern(&f->accepted, at, BIG / 64);
        send_pattern(&f->connected, at, BIG / 64);
    }
    run_until(f, both_have_all);
    check_pattern(&f->accepted, BIG);
    check_pattern(&f->connected, BIG);
    assert_true(strstr(env_stream_remote(f->accepted.stream),
                       f->world != NULL ? "10.0.0.2:" : "127.0.0.1:"));
    assert_string_equal(env_stream_remote(f->connected.stream), f->address);
}

static bool accepted_is_closed(struct fixture *f)
{
    return f->accepted.closed > 0;
}

static void the_other_side_learns_of_a_close(void **state)
{
    struct fixture *f = *state;
    open_both(f);
    send_pattern(&f->connected, 0, 1000);
    env_stream_close(f->connected.stream);
    f->connected.stream = NULL;
    run_until(f, accepted_is_closed);
    check_pattern(&f->accepted, 1000);
    assert_int_equal(f->accepted.closed, 1);
    assert_int_equal(f->accepted.why, ST_END);
    assert_int_equal(f->connected.closed, 0);
    send_pattern(&f->accepted, 0, 10); /* goes nowhere, and does no harm */
    assert_int_equal(env_stream_queued(f->accepted.stream), 0);
}

static bool connected_is_closed(struct fixture *f)
{
    return f->connected.closed > 0;
}

static void nobody_listens(void **state)
{
    struct fixture *f = *state;
    char address[ENV_NET_ADDRESS_BYTES];
    snprintf(address, sizeof address, "%s", f->address);
    env_unlisten(f->env[0], f->listener);
    f->listener = NULL;
    connect_to(f, address);
    run_until(f, connected_is_closed);
    assert_int_equal(f->connected.why, ST_UNREACHABLE);
    assert_int_equal(f->connected.opened, 0);
}

static bool accepted_has_closed_itself(struct fixture *f)
{
    return f->accepted.in.size > 0 && f->accepted.stream == NULL && f->connected.closed > 0;
}

static void a_callback_may_close_its_stream(void **state)
{
    struct fixture *f = *state;
    open_both(f);
    f->accepted.close_when_received = true;
    send_pattern(&f->connected, 0, 100);
    run_until(f, accepted_has_closed_itself);
    assert_int_equal(f->accepted.closed, 0);
}

static bool sender_waits(struct fixture *f)
{
    /* Much at once: a window that stays shut for ENV_NET_UNACKNOWLEDGED_US ends the connection. */
    send_pattern(&f->connected, 0, BIG / 2);
    return env_stream_queued(f->connected.stream) > 3 * BIG;
}

static bool sender_is_done(struct fixture *f)
{
    return f->connected.drained > 0;
}

static void a_paused_receiver_holds_the_sender_up(void **state)
{
    struct fixture *f = *state;
    open_both(f);
    env_stream_pause(f->accepted.stream, true);
    if (f->world != NULL)
        send_pattern(&f->connected, 0, 4 * BIG);
    else
        run_until(f, sender_waits);
    assert_true(env_stream_queued(f->connected.stream) > 3 * BIG);
    assert_int_equal(f->accepted.in.size, 0);
    env_stream_pause(f->accepted.stream, false);
    run_until(f, sender_is_done);
    assert_int_equal(env_stream_queued(f->connected.stream), 0);
}

static void an_address_is_numeric_and_has_a_port(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"",      ":",           "127.0.0.1",      "127.0.0.1:",
                                      ":80",   "localhost:1", "127.0.0.1:http", "127.0.0.1:1:2",
                                      "[::1:5"};
    struct err err = {0};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(env_address_check(bad[i], &err), ST_INVALID);
        assert_int_equal(env_connect(f->env[1], f->loop[1], bad[i], TIMEOUT_US, &handler,
                                     &f->connected, &f->connected.stream, &err),
                         ST_INVALID);
        assert_null(f->connected.stream);
    }
    assert_int_equal(env_address_check("10.1.2.3:7433", &err), ST_OK);
    assert_int_equal(env_address_check("[::1]:7433", &err), ST_OK);
}

static void a_port_is_taken_once(void **state)
{
    struct fixture *f = *state;
    struct env_listener *second = NULL;
    struct err err = {0};
    assert_int_equal(env_listen(f->env[0], f->loop[0], f->address, on_accepted, f, &second, &err),
                     ST_IO);
    assert_non_null(strstr(err.message, f->address));
}

/* -- the real one alone ------------------------------------------------------------------------ */

static int option(const struct env_stream *s, int level, int name)
{
    int v = -1;
    socklen_t size = sizeof v;
    assert_int_equal(getsockopt(env_os_stream_fd(s), level, name, &v, &size), 0);
    return v;
}

static void a_vanished_machine_is_noticed(void **state)
{
    struct fixture *f = *state;
    open_both(f);
    const struct env_stream *both[] = {f->accepted.stream, f->connected.stream};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(option(both[i], IPPROTO_TCP, TCP_NODELAY), 1);
        assert_int_equal(option(both[i], SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_int_equal(option(both[i], IPPROTO_TCP, TCP_KEEPIDLE), 5);
        assert_int_equal(option(both[i], IPPROTO_TCP, TCP_USER_TIMEOUT),
                         ENV_NET_UNACKNOWLEDGED_US / 1000u);
    }
}

/* One descriptor is left: enough to connect, none to accept. Who connects is dropped, and the
 * listener does not spin. */
static void descriptors_run_out(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, low;
    struct err err = {0};
    struct env_stream *more = NULL;
    int free_fd = dup(0);
    close(free_fd);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = (rlim_t)free_fd + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    connect_to(f, f->address);
    assert_int_equal(env_connect(f->env[1], f->loop[1], f->address, TIMEOUT_US, &handler,
                                 &f->connected, &more, &err),
                     ST_TOO_MANY);
    run_until(f, connected_is_closed);
    assert_null(f->accepted.stream);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    env_stream_close(f->connected.stream);
    f->connected.opened = f->connected.closed = 0;
    open_both(f);
}

/* -- the simulated one alone ------------------------------------------------------------------- */

static void one_seed_is_one_history(void **state)
{
    struct fixture *f = *state;
    uint64_t ends[2], packets[2];
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(teardown(state), 0);
        setup_world(f, 77);
        bytes_arrive_once_and_in_order(state);
        struct sim_net_stats stats;
        sim_net_stats(f->net, &stats);
        ends[round] = sim_world_now_us(f->world);
        packets[round] = stats.packets;
    }
    assert_int_equal(ends[0], ends[1]);
    assert_int_equal(packets[0], packets[1]);
}

/* A block one way: what was sent is held and arrives later, or the sender gives up; then the other
 * side believes in the connection until it sends. */
static void a_block_holds_and_then_breaks(void **state)
{
    struct fixture *f = *state;
    open_both(f);
    sim_net_block(f->net, 1, 0, true);
    send_pattern(&f->connected, 0, 1000);
    while (sim_world_step(f->world, sim_world_now_us(f->world) + 1000000u))
        ;
    assert_int_equal(f->accepted.in.size, 0);
    sim_net_block(f->net, 1, 0, false);
    while (f->accepted.in.size < 1000)
        assert_true(sim_world_step(f->world, SIM_LIMIT_US));
    check_pattern(&f->accepted, 1000);

    sim_net_block(f->net, 1, 0, true);
    send_pattern(&f->connected, 0, 1000);
    uint64_t start_us = sim_world_now_us(f->world);
    run_until(f, connected_is_closed);
    assert_int_equal(f->connected.why, ST_UNREACHABLE);
    assert_true(sim_world_now_us(f->world) >= start_us + ENV_NET_UNACKNOWLEDGED_US);
    assert_int_equal(f->accepted.closed, 0);
    sim_net_block(f->net, 1, 0, false);
    send_pattern(&f->accepted, 0, 10);
    run_until(f, accepted_is_closed);
    assert_int_equal(f->accepted.why, ST_UNREACHABLE);
}

static void a_machine_that_is_down_is_silent(void **state)
{
    struct fixture *f = *state;
    open_both(f);
    sim_net_crash(f->net, 1, true);
    send_pattern(&f->accepted, 0, 10);
    while (sim_world_step(f->world, sim_world_now_us(f->world) + 1000000u))
        ;
    assert_int_equal(f->accepted.closed, 0);
    sim_net_restart(f->net, 1); /* its kernel answers for it again */
    run_until(f, accepted_is_closed);
    assert_int_equal(f->accepted.why, ST_UNREACHABLE);
    assert_int_equal(f->connected.closed, 0); /* nobody tells a process that is gone */
}

#define BOTH(t)                                                                                    \
    cmocka_unit_test_setup_teardown(t, setup_os, teardown),                                        \
        cmocka_unit_test_setup_teardown(t, setup_sim, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(bytes_arrive_once_and_in_order),
        BOTH(the_other_side_learns_of_a_close),
        BOTH(nobody_listens),
        BOTH(a_callback_may_close_its_stream),
        BOTH(a_paused_receiver_holds_the_sender_up),
        BOTH(an_address_is_numeric_and_has_a_port),
        BOTH(a_port_is_taken_once),
        cmocka_unit_test_setup_teardown(a_vanished_machine_is_noticed, setup_os, teardown),
        cmocka_unit_test_setup_teardown(one_seed_is_one_history, setup_sim, teardown),
        cmocka_unit_test_setup_teardown(a_block_holds_and_then_breaks, setup_sim, teardown),
        cmocka_unit_test_setup_teardown(a_machine_that_is_down_is_silent, setup_sim, teardown),
        cmocka_unit_test_setup_teardown(descriptors_run_out, setup_os, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
