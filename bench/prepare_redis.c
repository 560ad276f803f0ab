/*
 * bench/prepare_redis.c — data and counts of Redis: the create functions themselves, pipelined.
 */
#include "prepare.h"
#include <inttypes.h>

#define CHUNK 500u

static void load_library(struct control *c)
{
    const char *words[] = {"FUNCTION", "LOAD", "REPLACE", redis_library};
    out_text(&c->out, "*4\r\n");
    for (unsigned i = 0; i < 4; i++) {
        struct out word = {0};
        out_text(&word, words[i]);
        out_u8(&c->out, '$');
        out_decimal(&c->out, word.size);
        out_text(&c->out, "\r\n");
        out_bytes(&c->out, word.data, word.size);
        out_text(&c->out, "\r\n");
        out_free(&word);
    }
    control_flush(c, 1);
}

static void directories(struct control *c, const struct generator *g)
{
    load_library(c);
    for (unsigned i = 0; i < generator_directory_count(g); i++)
        control_integer(c, "HSET a:%" PRIu64 " children 0", g->base + i);
}

static void entries(struct control *c, const struct generator *g)
{
    struct plan plan;
    struct op op;
    unsigned waiting = 0;
    plan_find("redis", g->workload->directories ? "mkdir" : "create", "", &plan);
    for (unsigned owner = 0; owner < prepare_owner_count(g); owner++) {
        for (uint64_t n = 0; n < g->entries; n++) {
            generator_entry(g, owner, n, &op);
            c->wire->operation(&c->out, c->target, &plan, &op);
            if (++waiting == CHUNK) {
                control_flush(c, waiting);
                waiting = 0;
            }
        }
    }
    control_flush(c, waiting);
}

static void keys(struct control *c, const struct generator *g)
{
    struct plan plan;
    struct op op;
    unsigned waiting = 0;
    plan_find("redis", "upsert", "", &plan);
    for (uint64_t key = 0; key < g->keys; key += 2) {
        generator_key(g, key, &op);
        c->wire->operation(&c->out, c->target, &plan, &op);
        if (++waiting == CHUNK) {
            control_flush(c, waiting);
            waiting = 0;
        }
    }
    control_flush(c, waiting);
}

/* Sums COMMAND, which names its directory or owner by %PRIu64, over the run's directories. */
static int64_t sum(struct control *c, const struct generator *g, const char *before,
                   const char *after)
{
    int64_t total = 0;
    for (unsigned i = 0; i < generator_directory_count(g); i++) {
        total += control_integer(c, "%s%" PRIu64 "%s", before, g->base + i, after);
        if (g->workload->access == ACCESS_RENAME)
            total += control_integer(c, "%s%" PRIu64 "%s", before, g->base + SECOND_DIRECTORIES + i,
                                     after);
    }
    return total;
}

static int64_t children(struct control *c, const struct generator *g)
{
    return sum(c, g, "HGET a:", " children");
}

static int64_t listed(struct control *c, const struct generator *g)
{
    return sum(c, g, "ZCARD d:", "");
}

static int64_t owned(struct control *c, const struct generator *g)
{
    return sum(c, g, "HGET q:", " files");
}

/* Every client's first and last, standing for the rest, as with metadb. */
static int64_t indexed(struct control *c, const struct generator *g)
{
    struct op op;
    int64_t total = 0;
    for (unsigned client = 0; client < g->clients; client++) {
        uint64_t used = g->used[client];
        bool there = true;
        for (unsigned last = 0; last < 2 && used > 0; last++) {
            generator_entry(g, client, last ? used - 1 : 0, &op);
            there &= control_integer(c, "EXISTS f:%s", op.i) == 1;
        }
        total += there ? (int64_t)used : 0;
    }
    return total;
}

static int64_t key_count(struct control *c, const struct generator *g)
{
    (void)g;
    return control_integer(c, "EVAL return(#redis.call('keys','k%09" PRIu64 "-*')) 0", g->base);
}

const struct prepare_ops prepare_redis = {.directories = directories,
                                          .entries = entries,
                                          .keys = keys,
                                          .children = children,
                                          .listed = listed,
                                          .owned = owned,
                                          .indexed = indexed,
                                          .key_count = key_count};
