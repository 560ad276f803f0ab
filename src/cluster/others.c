/*
 * cluster/others.c — see others.h.
 *
 *   metadb-others 2, floor, votes, peer NODE STORE REPLICA …, sum
 *
 * Invariants
 *   O1  What is answered here is in the file, durably: `filed` is what the last finished write had.
 *   O2  A store is never forgotten, and replaced only together with its replica; the floor never
 *       falls.
 *
 * Threads: the owner; the write on a pool thread, of a text that is the job's.
 */
#include "cluster/others.h"
#include "base/assert.h"
#include "base/checksum.h"
#include "base/fault.h"
#include "base/log.h"
#include "raft/members.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME "others"
#define MAGIC "metadb-others"
#define VERSION 2u
#define SUM_SEED 0x6f746865u
#define TEXT_MAX 2048u
#define AHEAD_US 6000000u /* a write is good for so long, */
#define LEAST_US 3000000u /* and the next begins when so much is left */
/* Without the file: no leader asks for more than a second beyond its own clock. */
#define GUESS_US 1500000u
#define RETRY_US 1000000u

struct memory {
    hlc_ts floor;
    bool votes;
    uint64_t store[CL_NODES_MAX]; /* by position in the topology, 0 = not met */
    uint64_t replica[CL_NODES_MAX];
};

struct cl_others {
    struct cl_node *node;
    struct memory now, filed, writing; /* O1 */
    hlc_ts floor_at_open;
    bool met[CL_NODES_MAX]; /* by this process */
    bool busy;
    uint64_t retry_us; /* not before */
    struct pool_job job;
    char text[TEXT_MAX];
    status result;
};

/* -- the file ---------------------------------------------------------------------------------- */

static size_t print(const struct cl_others *o, const struct memory *m, char *out)
{
    const struct cl_topology *t = &o->node->topology;
    size_t n = (size_t)snprintf(out, TEXT_MAX, MAGIC " %u\nfloor %016" PRIx64 "\nvotes %u\n",
                                VERSION, (uint64_t)m->floor, m->votes);
    for (unsigned i = 0; i < t->count; i++) {
        if (m->store[i] != 0)
            n += (size_t)snprintf(out + n, TEXT_MAX - n,
                                  "peer %" PRIu64 " %016" PRIx64 " %" PRIu64 "\n", t->nodes[i].id,
                                  m->store[i], m->replica[i]);
    }
    uint64_t sum = checksum64(bytes_make(out, n), SUM_SEED);
    n += (size_t)snprintf(out + n, TEXT_MAX - n, "sum %016" PRIx64 "\n", sum);
    ASSERT(n < TEXT_MAX);
    return n;
}

static int position(const struct cl_others *o, uint64_t node)
{
    const struct cl_topology *t = &o->node->topology;
    for (unsigned i = 0; i < t->count; i++) {
        if (t->nodes[i].id == node)
            return (int)i;
    }
    return -1;
}

static bool parse(const struct cl_others *o, const char *text, struct memory *out)
{
    unsigned version, votes;
    uint64_t floor, node, store, replica, sum;
    int n = 0, at = 0;
    *out = (struct memory){0};
    if (sscanf(text, MAGIC " %u\nfloor %" SCNx64 "\nvotes %u\n%n", &version, &floor, &votes, &n) !=
            3 ||
        version != VERSION || votes > 1)
        return false;
    out->floor = floor;
    out->votes = votes == 1;
    for (at = n; sscanf(text + at, "peer %" SCNu64 " %" SCNx64 " %" SCNu64 "\n%n", &node, &store,
                        &replica, &n) == 3;
         at += n) {
        int i = position(o, node);
        if (i >= 0) { /* else it is no longer listed */
            out->store[i] = store;
            out->replica[i] = replica;
        }
    }
    return sscanf(text + at, "sum %" SCNx64, &sum) == 1 &&
           sum == checksum64(bytes_make(text, (size_t)at), SUM_SEED);
}

static status load(struct cl_others *o, struct arena *a, struct err *err)
{
    struct cl_node *n = o->node;
    bytes content;
    status st = env_read_file(n->env, a, cl_identity_path(a, n->dir, NAME), &content);
    if (st == ST_OK && !parse(o, arena_strdup(a, content), &o->now)) {
        err_set(err, ST_CORRUPT, "\"%s/" NAME "\" is damaged", n->dir);
        err_hint(err, "Start the node with an empty directory, under a new id.");
        return ST_CORRUPT;
    }
    if (st == ST_NOT_FOUND) {
        o->now.floor = hlc_from_us(env_unix_us(n->env) + GUESS_US);
        /* What was alone so far has its votes in its log. */
        o->now.votes = n->identity.joined || n->identity.first_count == 0;
        st = env_write_file(n->env, n->dir, NAME, bytes_make(o->text, print(o, &o->now, o->text)));
    }
    if (st != ST_OK)
        return err_set(err, st, "could not read or write \"%s/" NAME "\"", n->dir);
    o->filed = o->now;
    o->floor_at_open = o->now.floor;
    if (!o->now.votes)
        LOG_WARN("node.may_not_vote",
                 LOG_STR("until", "each other node has taken its connection once"));
    return ST_OK;
}

static void write_run(struct pool_job *job)
{
    struct cl_others *o = CONTAINER_OF(job, struct cl_others, job);
    const struct cl_node *n = o->node;
    o->result = env_write_file(n->env, n->dir, NAME, bytes_str(o->text));
}

static void write_done(struct pool_job *job)
{
    struct cl_others *o = CONTAINER_OF(job, struct cl_others, job);
    struct cl_node *n = o->node;
    o->busy = false;
    if (o->result == ST_OK) {
        if (o->writing.votes && !o->filed.votes)
            LOG_INFO("node.may_vote");
        o->filed = o->writing;
    } else { /* nothing is promised meanwhile */
        MARK("others.not_written");
        LOG_ERROR("others.not_written", LOG_STR("why", status_text(o->result)));
        o->retry_us = env_mono_us(n->env) + RETRY_US;
    }
    cl__job_done(n);
    cl__node_kick(n);
}

void cl_others_turn(struct cl_others *o)
{
    struct cl_node *n = o->node;
    if (o->busy || memcmp(&o->now, &o->filed, sizeof o->now) == 0 || n->failed != ST_OK ||
        n->phase >= CL_NODE_STOPPING || env_mono_us(n->env) < o->retry_us)
        return;
    o->writing = o->now;
    (void)print(o, &o->writing, o->text);
    o->job.run = write_run;
    o->job.done = write_done;
    o->busy = cl__job_start(n, &o->job) == ST_OK;
}

/* -- what it says ------------------------------------------------------------------------------ */

hlc_ts cl_others_floor(const struct cl_others *o)
{
    return o->floor_at_open;
}

bool cl_others_covers(struct cl_others *o, hlc_ts floor)
{
    if (floor + hlc_ms(LEAST_US / 1000) > o->now.floor)
        o->now.floor = floor + hlc_ms(AHEAD_US / 1000);
    return floor <= o->filed.floor;
}

uint64_t cl_others_store(const struct cl_others *o, uint64_t node)
{
    int i = position(o, node);
    return i >= 0 ? o->now.store[i] : 0;
}

bool cl_others_knows(const struct cl_others *o, uint64_t node)
{
    int i = position(o, node);
    return i >= 0 && o->filed.store[i] != 0 && o->filed.store[i] == o->now.store[i];
}

bool cl_others_may_vote(const struct cl_others *o)
{
    return o->filed.votes;
}

uint64_t cl_others_replica(const struct cl_others *o, uint64_t node)
{
    int i = position(o, node);
    return i >= 0 && o->now.replica[i] != 0 ? o->now.replica[i] : node;
}

static bool is_first(const struct cl_identity *id, uint64_t node)
{
    for (unsigned i = 0; i < id->first_count; i++) {
        if (id->first[i] == node)
            return true;
    }
    return false;
}

void cl_others_met(struct cl_others *o, uint64_t node, uint64_t store, uint64_t replica)
{
    const struct cl_topology *t = &o->node->topology;
    int i = position(o, node);
    if (i < 0 || store == 0)
        return;
    if (o->now.store[i] != 0 && o->now.store[i] != store) {
        ASSERT_INV("O2", o->now.replica[i] != replica && replica != node);
        LOG_INFO("node.other_store", LOG_U64("node", node), LOG_U64("replica", replica));
    }
    o->now.store[i] = store;
    o->now.replica[i] = replica;
    o->met[i] = true;
    bool all = true;
    for (unsigned k = 0; k < t->count; k++)
        all &=
            o->met[k] || t->nodes[k].id == t->self || !is_first(&o->node->identity, t->nodes[k].id);
    o->now.votes |= all;
}

/* -- the object -------------------------------------------------------------------------------- */

status cl_others_open(struct cl_node *n, struct cl_others **out, struct err *err)
{
    struct cl_others *o = calloc(1, sizeof *o);
    struct arena a;
    ASSERT(o != NULL);
    o->node = n;
    arena_init(&a, TEXT_MAX);
    status st = load(o, &a, err);
    arena_fini(&a);
    if (st == ST_OK)
        *out = o;
    else
        free(o);
    return st;
}

void cl_others_free(struct cl_others *o)
{
    free(o);
}
