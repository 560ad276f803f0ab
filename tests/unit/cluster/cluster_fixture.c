#include "cluster_fixture.h"
#include "base/assert.h"
#include "cluster/others.h"
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define POLL_US 5000u

/* Ports that are free now; all are held until the last is known. */
static void free_ports(unsigned *out, unsigned count)
{
    int fds[2 * CX_NODES];
    assert_true(count <= ARRAY_LEN(fds));
    for (unsigned i = 0; i < count; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof a;
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fds[i] >= 0);
        assert_int_equal(bind(fds[i], (struct sockaddr *)&a, sizeof a), 0);
        assert_int_equal(getsockname(fds[i], (struct sockaddr *)&a, &size), 0);
        out[i] = ntohs(a.sin_port);
    }
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

void cx_init(struct cluster *c)
{
    unsigned ports[2 * CX_NODES];
    char list[256] = "", id[8];
    free_ports(ports, ARRAY_LEN(ports));
    for (unsigned i = 0; i < CX_NODES; i++) {
        size_t at = strlen(list);
        snprintf(list + at, sizeof list - at, "%u=127.0.0.1:%u/127.0.0.1:%u ", i + 1, ports[2 * i],
                 ports[2 * i + 1]);
    }
    for (unsigned i = 0; i < CX_NODES; i++) {
        struct fixture *f = &c->nodes[i];
        fx_init(f);
        snprintf(id, sizeof id, "%u", i + 1);
        fx_set(f, "cluster.id", "7040");
        fx_set(f, "cluster.node", id);
        fx_set(f, "cluster.nodes", list);
    }
}

void cx_fini(struct cluster *c)
{
    for (unsigned i = 0; i < CX_NODES; i++)
        fx_fini(&c->nodes[i]);
}

static void on_ready(void *arg)
{
    UNUSED(arg);
}

static void on_failed(void *arg, status st)
{
    struct fixture *f = arg;
    f->failed = st;
}

void cx_open(struct cluster *c, unsigned i)
{
    struct fixture *f = &c->nodes[i];
    status st = fx_try_open(f);
    if (st != ST_OK)
        print_error("open: %s\n", f->err.message);
    assert_int_equal(st, ST_OK);
    cl_node_start(f->node, on_ready, on_failed, f);
}

void cx_open_all(struct cluster *c)
{
    for (unsigned i = 0; i < CX_NODES; i++)
        cx_open(c, i);
}

void cx_close(struct cluster *c, unsigned i)
{
    fx_close(&c->nodes[i]);
}

struct look {
    struct fixture *f;
    bool serves;
    uint64_t applied[CL_SHARDS], last[CL_SHARDS];
    uint64_t hash[CL_SHARDS];
    bool hashes;
};

static void look(void *arg)
{
    struct look *l = arg;
    struct err err;
    l->serves = true;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_shard *s = l->f->node->shards[i];
        err_clear(&err);
        l->serves &= cl_shard_serving(s, &err) == ST_OK;
        l->applied[i] = s->applied;
        l->last[i] = raft_last_index(s->raft);
        if (l->hashes)
            assert_int_equal(kv_state_hash(s->state, NULL, &l->hash[i]), ST_OK);
    }
}

unsigned cx_leader(struct cluster *c)
{
    for (;;) {
        for (unsigned i = 0; i < CX_NODES; i++) {
            struct look l = {.f = &c->nodes[i]};
            if (l.f->node == NULL)
                continue;
            fx_on_reactor(l.f, look, &l);
            if (l.serves)
                return i;
        }
        usleep(POLL_US);
    }
}

static bool settled(const struct look *a, const struct look *b)
{
    return memcmp(a->applied, b->applied, sizeof a->applied) == 0 &&
           memcmp(a->applied, a->last, sizeof a->applied) == 0 &&
           memcmp(b->applied, b->last, sizeof b->applied) == 0;
}

/* What is compared is from one moment only if nobody moved between two looks. */
static bool look_at_all(struct cluster *c, struct look *looks, unsigned *count, bool hashes)
{
    *count = 0;
    for (unsigned i = 0; i < CX_NODES; i++) {
        struct look *l = &looks[*count];
        if (c->nodes[i].node == NULL)
            continue;
        *l = (struct look){.f = &c->nodes[i], .hashes = hashes};
        fx_on_reactor(l->f, look, l);
        (*count)++;
    }
    for (unsigned i = 0; i < *count; i++) {
        if (!settled(&looks[0], &looks[i]))
            return false;
    }
    return true;
}

bool cx_knows_all(struct cl_node *n)
{
    bool all = true;
    for (unsigned i = 0; i < n->topology.count; i++) {
        uint64_t id = n->topology.nodes[i].id;
        all &= id == n->topology.self || cl_others_knows(n->others, id);
    }
    return all;
}

struct acquaintance {
    struct cl_node *node;
    bool complete;
};

static void look_acquaintance(void *arg)
{
    struct acquaintance *a = arg;
    a->complete = cl_others_may_vote(a->node->others) && cx_knows_all(a->node);
}

void cx_acquaint(struct cluster *c)
{
    for (unsigned i = 0; i < CX_NODES;) {
        struct acquaintance a = {.node = c->nodes[i].node};
        fx_on_reactor(&c->nodes[i], look_acquaintance, &a);
        if (a.complete)
            i++;
        else
            usleep(POLL_US);
    }
}

void cx_settle(struct cluster *c)
{
    struct look looks[CX_NODES];
    unsigned count;
    while (!look_at_all(c, looks, &count, false) || !look_at_all(c, looks, &count, true))
        usleep(POLL_US);
    for (unsigned i = 1; i < count; i++)
        assert_memory_equal(looks[i].hash, looks[0].hash, sizeof looks[0].hash);
}

status cx_put(struct cluster *c, const char *key, const char *value)
{
    for (;;) {
        struct fx_client x;
        fx_client_init(&x, &c->nodes[cx_leader(c)]);
        status st = fx_op(&x, fx_kv_put(&x.arena, key, value));
        fx_client_fini(&x);
        if (st != ST_NOT_LEADER && st != ST_OUTCOME_UNKNOWN)
            return st;
    }
}

status cx_get(struct cluster *c, const char *key, char *out, size_t size)
{
    for (;;) {
        struct fx_client x;
        fx_client_init(&x, &c->nodes[cx_leader(c)]);
        status st = fx_lookup_kv(&x, key);
        bool found = st == ST_END && x.row_count == 1;
        if (found) {
            bytes v = x.rows[0].col[KVT_VALUE].b;
            assert_true(v.size < size);
            memcpy(out, v.data, v.size);
            out[v.size] = '\0';
        }
        fx_client_fini(&x);
        if (st == ST_END)
            return found ? ST_END : ST_NOT_FOUND;
        assert_int_equal(st, ST_NOT_LEADER);
    }
}
