/*
 * base/sim_net.h — the network of a simulated world: streams with delay, cuts and every way to
 * break.
 *
 * What it models of TCP: order, flow control (a window per direction), a connection that one side
 * alone believes in (half-open: the next bytes meet a reset, if they arrive), retransmission (what
 * a blocked link holds back arrives after the block, or the sender gives up after
 * ENV_NET_UNACKNOWLEDGED_US), no answer from a machine that is down. There are no probes of idle
 * connections: a program must notice silence by itself.
 *
 * Hosts are numbered in the order of joining. One thread.
 */
#ifndef BASE_SIM_NET_H
#define BASE_SIM_NET_H

#include "base/env_net.h"
#include "base/sim_world.h"

#define SIM_NET_HOSTS_MAX 16u

struct sim_net;
struct sim_net *sim_net_new(struct sim_world *w);
void sim_net_free(struct sim_net *n); /* after every stream and listener */
/* E's network is this one from now on, its address HOST ("10.0.0.1"). Returns the host's number. */
unsigned sim_net_join(struct sim_net *n, struct env *e, const char *host);

/* From one host to another, one way. The delay of each packet lies between MIN and MAX. */
void sim_net_delay(struct sim_net *n, unsigned from, unsigned to, uint64_t min_us, uint64_t max_us);
void sim_net_block(struct sim_net *n, unsigned from, unsigned to, bool blocked);
void sim_net_slow(struct sim_net *n, unsigned from, unsigned to, uint64_t bytes_per_s); /* 0: no */
void sim_net_damage(struct sim_net *n, unsigned from, unsigned to, unsigned packets_per_million);
/* Resets the connections between two hosts; of some, only one end learns of it. */
void sim_net_break(struct sim_net *n, unsigned a, unsigned b);
/* HOST's process is gone: none of its callbacks runs, its owner still closes streams and listeners.
 * Its kernel resets the connections, unless the whole machine is gone (SILENT). */
void sim_net_crash(struct sim_net *n, unsigned host, bool silent);
void sim_net_restart(struct sim_net *n, unsigned host);
/* HOST's process is stopped until then: its kernel goes on, none of its callbacks runs. */
void sim_net_freeze(struct sim_net *n, unsigned host, uint64_t until_us);
/* HOST has so many descriptors for streams; 0: no limit. */
void sim_net_descriptors(struct sim_net *n, unsigned host, unsigned max);

struct sim_net_stats {
    uint64_t connects, refused, resets, half_open, timeouts, packets, bytes, damaged, held;
};
void sim_net_stats(const struct sim_net *n, struct sim_net_stats *out);

#endif
