/*
 * bench/prepare_etcd.c — data and counts of etcd. Puts go a hundred per transaction, below its
 * limit of 128 operations. There is no counter to check (see `forms_etcd.c`).
 */
#include "prepare.h"
#include "wire_etcd.h"
#include <inttypes.h>
#include <stdio.h>

#define PUTS 100u

struct puts {
    struct control *control;
    struct out txn;
    unsigned count;
};

static void flush_puts(struct puts *p)
{
    if (p->count == 0)
        return;
    wire_etcd_put_send(&p->control->out, &p->txn);
    control_flush(p->control, 1);
    p->txn.size = p->count = 0;
}

static void put(struct puts *p, const char *key, const char *value)
{
    wire_etcd_put_add(&p->txn, key, value);
    if (++p->count == PUTS)
        flush_puts(p);
}

static void finish_puts(struct puts *p)
{
    flush_puts(p);
    out_free(&p->txn);
}

static void put_attributes(struct puts *p, uint64_t directory)
{
    char key[32];
    snprintf(key, sizeof key, "a/%" PRIu64, directory);
    put(p, key, "0");
}

static void directories(struct control *c, const struct generator *g)
{
    struct puts p = {.control = c};
    for (unsigned i = 0; i < generator_directory_count(g); i++) {
        put_attributes(&p, g->base + i);
        if (g->workload->access == ACCESS_RENAME)
            put_attributes(&p, g->base + SECOND_DIRECTORIES + i);
    }
    finish_puts(&p);
}

static void entries(struct control *c, const struct generator *g)
{
    struct puts p = {.control = c};
    struct op op;
    char key[64], value[96];
    for (unsigned owner = 0; owner < prepare_owner_count(g); owner++) {
        for (uint64_t n = 0; n < g->entries; n++) {
            generator_entry(g, owner, n, &op);
            snprintf(key, sizeof key, "m/%s/%s", op.p, op.n);
            snprintf(value, sizeof value, "f,420,1000,1000,0,1700000000000000,1700000000000000,%s",
                     op.i);
            put(&p, key, value);
            if (g->workload->directories) {
                snprintf(key, sizeof key, "a/%s", op.i);
                put(&p, key, op.p);
            }
        }
    }
    finish_puts(&p);
}

static void keys(struct control *c, const struct generator *g)
{
    struct puts p = {.control = c};
    struct op op;
    for (uint64_t key = 0; key < g->keys; key += 2) {
        generator_key(g, key, &op);
        put(&p, op.k, op.v);
    }
    finish_puts(&p);
}

static int64_t count(struct control *c, const char *from, const char *end)
{
    char step[128];
    snprintf(step, sizeof step, "count %s %s", from, end);
    struct plan plan = {.steps = {step}, .step_count = 1};
    c->wire->operation(&c->out, c->target, &plan, NULL);
    control_flush(c, 1);
    return (int64_t)wire_etcd_count(c->in.data, c->in.size);
}

static int64_t count_entries(struct control *c, uint64_t directory)
{
    char from[48], end[48];
    snprintf(from, sizeof from, "m/%" PRIu64 "/", directory);
    snprintf(end, sizeof end, "m/%" PRIu64 "0", directory);
    return count(c, from, end);
}

static int64_t listed(struct control *c, const struct generator *g)
{
    int64_t total = 0;
    for (unsigned i = 0; i < generator_directory_count(g); i++) {
        total += count_entries(c, g->base + i);
        if (g->workload->access == ACCESS_RENAME)
            total += count_entries(c, g->base + SECOND_DIRECTORIES + i);
    }
    return total;
}

static int64_t key_count(struct control *c, const struct generator *g)
{
    char from[48], end[48];
    snprintf(from, sizeof from, "k%09" PRIu64 "-", g->base);
    snprintf(end, sizeof end, "k%09" PRIu64 ".", g->base);
    return count(c, from, end);
}

const struct prepare_ops prepare_etcd = {.directories = directories,
                                         .entries = entries,
                                         .keys = keys,
                                         .listed = listed,
                                         .key_count = key_count};
