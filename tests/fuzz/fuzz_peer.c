/*
 * Any bytes from another node: frames, the items in them, the messages of the handshake.
 *
 * The first byte says what the rest is. 0: raw bytes as a stream of frames. 1: the body of a batch,
 * in a frame with correct sums, so that the items behind them are reached. 2: HELLO, REFUSAL. 3:
 * raw bytes to a transport that listens on a simulated network, cut in pieces. What must hold: no
 * crash; what was accepted comes out the same when it is written again.
 */
#include "base/assert.h"
#include "base/env_sim.h"
#include "base/log.h"
#include "base/sim_loop.h"
#include "base/sim_net.h"
#include "cluster/frame.h"
#include "cluster/handshake.h"
#include "cluster/transport.h"

#include <stdio.h>
#include <stdlib.h>

#define BODY_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void items(bytes body)
{
    struct reader r = reader_make(body);
    struct cl_item item, again;
    struct obuf o;
    obuf_init(&o);
    while (cl_item_next(&r, &item) == ST_OK) {
        obuf_reset(&o);
        cl_item_put(&o, &item);
        ASSERT(o.size <= item.payload.size + CL_ITEM_BYTES_MAX);
        struct reader second = reader_make(bytes_make(o.data, o.size));
        status st = cl_item_next(&second, &again);
        ASSERT(st == ST_OK && again.kind == item.kind);
        ASSERT(bytes_eq(again.payload, item.payload));
        st = cl_item_next(&second, &again);
        ASSERT(st == ST_END);
    }
    obuf_fini(&o);
}

static void frames(bytes in)
{
    struct cl_frame_seal seal = CL_FRAME_SEAL_OPEN;
    struct cl_frame f;
    const char *why = NULL;
    size_t size;
    while (cl_frame_read(in, BODY_MAX, &seal, &f, &size, &why) == ST_OK) {
        ASSERT(size <= in.size && f.body.size <= BODY_MAX);
        items(f.body);
        in = bytes_make(in.data + size, in.size - size);
    }
}

static void framed(bytes body)
{
    struct cl_frame_seal out = CL_FRAME_SEAL_OPEN;
    uint8_t *data = malloc(CL_FRAME_HEADER_BYTES + body.size);
    ASSERT(data != NULL);
    cl_frame_header(data, CL_FRAME_BATCH, body, &out);
    if (body.size > 0)
        memcpy(data + CL_FRAME_HEADER_BYTES, body.data, body.size);
    frames(bytes_make(data, CL_FRAME_HEADER_BYTES + body.size));
    free(data);
}

static void hello(bytes body)
{
    struct cl_hello h, ours = {.cluster_id = 7, .node_id = 1, .protocol_max = 1};
    const struct cl_expected any = {.known = true, .first = true};
    struct cl_refusal r;
    uint32_t protocol;
    if (cl_hello_get(body, &h) == ST_OK)
        (void)cl_hello_judge(&ours, &h, &any, &protocol, &r);
    (void)cl_refusal_get(body, &r);
}

/* -- a transport that listens ------------------------------------------------------------------ */

static void on_nothing(void *arg)
{
    (void)arg;
}

static void on_received(void *arg, bytes data)
{
    (void)arg;
    (void)data;
}

static void on_closed(void *arg, status st, const char *why)
{
    (void)arg;
    (void)st;
    (void)why;
}

static void run_for(struct sim_world *w, uint64_t us)
{
    uint64_t until_us = sim_world_now_us(w) + us;
    while (sim_world_step(w, until_us))
        ;
}

static void connection(bytes in)
{
    static const struct env_stream_handler handler = {on_nothing, on_received, on_nothing,
                                                      on_closed};
    static const struct cl_transport_events events;
    struct cl_topology topology = {
        .self = 1,
        .count = 2,
        .nodes = {{.id = 1, .peers = "10.0.0.1:1"}, {.id = 2, .peers = "10.0.0.3:1"}}};
    struct sim_world *w = sim_world_new(1);
    struct sim_net *net = sim_net_new(w);
    struct env *envs[2];
    struct loop *loops[2];
    for (unsigned i = 0; i < 2; i++) {
        char host[16];
        snprintf(host, sizeof host, "10.0.0.%u", i + 1);
        envs[i] = env_sim_new(i);
        sim_world_add(w, envs[i], 0);
        loops[i] = sim_loop_new(w, envs[i]);
        (void)sim_net_join(net, envs[i], host);
    }
    struct cl_transport_options o = {.env = envs[0],
                                     .loop = loops[0],
                                     .topology = &topology,
                                     .cluster_id = 7,
                                     .store_id = 8,
                                     .events = &events};
    struct cl_transport *t = NULL;
    struct env_stream *s = NULL;
    struct err err = {0};
    cl_transport_defaults(&o);
    status st = cl_transport_new(&o, &t, &err);
    ASSERT(st == ST_OK);
    st = env_connect(envs[1], loops[1], "10.0.0.1:1", 1000000, &handler, NULL, &s, &err);
    ASSERT(st == ST_OK);
    run_for(w, 10000);
    struct iovec iov = {(void *)(uintptr_t)in.data, in.size};
    env_stream_send(s, &iov, 1);
    run_for(w, 100000);
    env_stream_close(s);
    run_for(w, 10000);
    cl_transport_free(t);
    for (unsigned i = 0; i < 2; i++) {
        loop_free(loops[i]);
        sim_world_remove(w, envs[i]);
        env_sim_free(envs[i]);
    }
    sim_net_free(net);
    sim_world_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bytes rest = bytes_make(data + 1, size - 1);
    log_set_level(LOG_LEVEL_ERROR);
    switch (data[0] % 4) {
    case 0: frames(rest); break;
    case 1: framed(rest); break;
    case 2: hello(rest); break;
    default: connection(rest); break;
    }
    return 0;
}
