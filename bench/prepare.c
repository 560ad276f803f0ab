/*
 * bench/prepare.c — what is prepared and checked, whatever the peer.
 *
 * After a mutating run four numbers must agree: entries before it plus or minus the acknowledged
 * operations; the sum of the directories' counts; the entries that can be listed; and where quota
 * and index are part of the operation, those too.
 */
#include "prepare.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define ACCOUNT_WAIT_S 60

static const struct prepare_ops *ops_of(const struct control *c)
{
    if (strcmp(c->target->peer, "metadb") == 0)
        return &prepare_metadb;
    if (strcmp(c->target->peer, "pg") == 0)
        return &prepare_pg;
    return strcmp(c->target->peer, "redis") == 0 ? &prepare_redis : &prepare_etcd;
}

unsigned prepare_owner_count(const struct generator *g)
{
    switch (g->workload->access) {
    case ACCESS_CONSUME:
    case ACCESS_RENAME: return g->clients;
    case ACCESS_READ: return g->directories;
    case ACCESS_CREATE:
    case ACCESS_KV: break;
    }
    return 0;
}

uint64_t prepare_children(const struct generator *g)
{
    if (prepare_owner_count(g) == 0)
        return 0;
    return g->workload->hot ? g->entries * g->clients : g->entries;
}

void prepare(struct control *c, const struct generator *g)
{
    const struct prepare_ops *ops = ops_of(c);
    if (g->workload->access == ACCESS_KV) {
        ops->keys(c, g);
        return;
    }
    ops->directories(c, g);
    if (prepare_owner_count(g) > 0)
        ops->entries(c, g);
    prepare_wait_accounted(c);
}

void prepare_wait_accounted(struct control *c)
{
    if (strcmp(c->target->peer, "metadb") != 0)
        return;
    struct timespec pause = {.tv_nsec = 2000000};
    for (unsigned turn = 0; turn < ACCOUNT_WAIT_S * 500; turn++) {
        if (control_number(c, "SELECT sum(pending) FROM metadb.sinks") == 0)
            return;
        nanosleep(&pause, NULL);
    }
    die("quota and index updates still pending after %d s", ACCOUNT_WAIT_S);
}

static int64_t expected_entries(const struct generator *g, uint64_t done)
{
    int64_t before = (int64_t)(g->entries * prepare_owner_count(g));
    switch (g->workload->access) {
    case ACCESS_CREATE: return before + (int64_t)done;
    case ACCESS_CONSUME: return before - (int64_t)done;
    case ACCESS_RENAME:
    case ACCESS_READ:
    case ACCESS_KV: break;
    }
    return before;
}

static int64_t expected_keys(const struct generator *g)
{
    int64_t count = 0;
    for (uint64_t key = 0; key < g->keys; key++)
        count += key % 2 == 0 || (g->written[key / 8] >> (key % 8) & 1);
    return count;
}

static bool agree(const char *what, int64_t is, int64_t expected, char result[160])
{
    if (is == expected)
        return true;
    snprintf(result, 160, "BAD(%s:%lld!=%lld)", what, (long long)is, (long long)expected);
    return false;
}

void prepare_check(struct control *c, const struct generator *g, uint64_t done, char result[160])
{
    const struct prepare_ops *ops = ops_of(c);
    int64_t expected = expected_entries(g, done);
    snprintf(result, 160, "ok");
    if (g->workload->access == ACCESS_READ)
        return;
    if (g->workload->access == ACCESS_KV) {
        agree("keys", ops->key_count(c, g), expected_keys(g), result);
        return;
    }
    if ((ops->children && !agree("num_children", ops->children(c, g), expected, result)) ||
        !agree("entries", ops->listed(c, g), expected, result) || !g->workload->accounted)
        return;
    if (agree("quota", ops->owned(c, g), expected, result))
        agree("index", ops->indexed(c, g), expected, result);
}
