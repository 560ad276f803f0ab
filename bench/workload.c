/*
 * bench/workload.c — which values each operation gets.
 *
 * Names are "f0012-000000345": client (or directory) and number, so a client's names ascend as
 * those of a program that writes numbered files do, and the clients of a hot directory interleave.
 * Ids are BASE * 10^10 + client * 10^7 + number: unique over the runs of one server as long as
 * bases differ by more than the number of clients. Random choices come from a splitmix64 of fixed
 * seed: every peer gets the same sequence.
 */
#include "workload.h"
#include <stdlib.h>
#include <string.h>

#define PAGE 1000u

static const struct workload workloads[] = {
    {.name = "create_spread", .operation = "create", .access = ACCESS_CREATE},
    {.name = "create_full", .operation = "create_full", .access = ACCESS_CREATE, .accounted = true},
    {.name = "create_hot", .operation = "create", .access = ACCESS_CREATE, .hot = true},
    {.name = "mkdir_hot",
     .operation = "mkdir",
     .access = ACCESS_CREATE,
     .hot = true,
     .directories = true},
    {.name = "delete_spread", .operation = "delete", .access = ACCESS_CONSUME},
    {.name = "delete_hot", .operation = "delete", .access = ACCESS_CONSUME, .hot = true},
    {.name = "rmdir_hot",
     .operation = "rmdir",
     .access = ACCESS_CONSUME,
     .hot = true,
     .directories = true},
    {.name = "rename", .operation = "rename", .access = ACCESS_RENAME},
    {.name = "dirstat", .operation = "dirstat", .access = ACCESS_READ},
    {.name = "lookup", .operation = "lookup", .access = ACCESS_READ},
    {.name = "listdir", .operation = "listdir", .access = ACCESS_READ},
    {.name = "upsert_kv", .operation = "upsert", .access = ACCESS_KV},
};

const char *workload_name(unsigned index)
{
    return index < sizeof workloads / sizeof workloads[0] ? workloads[index].name : NULL;
}

const struct workload *workload_find(const char *name)
{
    for (unsigned i = 0; i < sizeof workloads / sizeof workloads[0]; i++)
        if (strcmp(workloads[i].name, name) == 0)
            return &workloads[i];
    return NULL;
}

const char *op_value(const struct op *op, char letter)
{
    switch (letter) {
    case 'p': return op->p;
    case 'd': return op->d;
    case 'n': return op->n;
    case 'a': return op->a;
    case 'i': return op->i;
    case 'u': return op->u;
    case 'k': return op->k;
    case 'v': return op->v;
    default: die("no value is named $%c", letter);
    }
}

void op_expand(struct out *o, const char *text, size_t size, const struct op *op)
{
    for (const char *s = text; s < text + size; s++) {
        if (*s == '$')
            out_text(o, op_value(op, *++s));
        else
            out_u8(o, (unsigned char)*s);
    }
}

bool op_is_number(char letter)
{
    return letter == 'p' || letter == 'd' || letter == 'i' || letter == 'u';
}

void answer_fail(struct answer *a, const char *text, size_t size)
{
    if (a->failed)
        return;
    a->failed = true;
    if (size >= sizeof a->error)
        size = sizeof a->error - 1;
    memcpy(a->error, text, size);
    a->error[size] = 0;
}

uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void generator_init(struct generator *g)
{
    g->used = must(calloc(g->clients, sizeof *g->used));
    g->written = must(calloc(g->keys / 8 + 1, 1));
    g->random = 42;
    memset(g->value, 'v', sizeof g->value - 1);
}

void generator_fini(struct generator *g)
{
    free(g->used);
    free(g->written);
}

static uint64_t random_below(struct generator *g, uint64_t limit)
{
    uint64_t z = g->random += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return limit ? (z ^ (z >> 31)) % limit : 0;
}

static void put_name(char *text, char prefix, unsigned c, uint64_t n)
{
    text[0] = prefix;
    decimal(text + 1, c, 4);
    size_t at = strlen(text);
    text[at] = '-';
    decimal(text + at + 1, n, 9);
}

unsigned generator_directory_count(const struct generator *g)
{
    if (g->workload->access == ACCESS_READ)
        return g->directories;
    if (g->workload->access == ACCESS_KV)
        return 0;
    return g->workload->hot ? 1 : g->clients;
}

uint64_t generator_directory(const struct generator *g, unsigned c)
{
    return g->base + (g->workload->hot ? 0 : c);
}

void generator_entry(const struct generator *g, unsigned c, uint64_t n, struct op *op)
{
    uint64_t directory = generator_directory(g, c);
    decimal(op->p, directory, 1);
    decimal(op->d, directory + SECOND_DIRECTORIES, 1);
    put_name(op->n, 'f', c, n);
    memcpy(op->a, op->n, sizeof op->a);
    decimal(op->i, g->base * 10000000000ull + c * 10000000ull + n, 1);
    decimal(op->u, directory, 1);
    op->v = g->value;
}

void generator_key(const struct generator *g, uint64_t key, struct op *op)
{
    decimal(op->k + 1, g->base, 9);
    op->k[0] = 'k';
    op->k[10] = '-';
    decimal(op->k + 11, key, 9);
    op->v = g->value;
}

static void next_read(struct generator *g, struct op *op)
{
    unsigned directory = (unsigned)random_below(g, g->directories);
    bool list = strcmp(g->workload->operation, "listdir") == 0;
    uint64_t limit = list ? g->entries - PAGE : g->entries;
    generator_entry(g, directory, random_below(g, limit), op);
}

static void next_rename(struct generator *g, unsigned client, uint64_t n, struct op *op)
{
    char first[sizeof op->p];
    generator_entry(g, client, n % g->entries, op);
    if (n / g->entries % 2 == 1) {
        memcpy(first, op->p, sizeof first);
        memcpy(op->p, op->d, sizeof op->p);
        memcpy(op->d, first, sizeof op->d);
    }
}

bool generator_next(struct generator *g, unsigned client, struct op *op)
{
    uint64_t n = g->used[client];
    switch (g->workload->access) {
    case ACCESS_CREATE: generator_entry(g, client, n, op); break;
    case ACCESS_CONSUME:
        if (n == g->entries)
            return false;
        generator_entry(g, client, n, op);
        break;
    case ACCESS_RENAME: next_rename(g, client, n, op); break;
    case ACCESS_READ: next_read(g, op); break;
    case ACCESS_KV: {
        uint64_t key = random_below(g, g->keys);
        g->written[key / 8] |= (uint8_t)(1u << (key % 8));
        generator_key(g, key, op);
        break;
    }
    }
    g->used[client] = n + 1;
    return true;
}

static const struct form *forms_of(const char *peer)
{
    if (strcmp(peer, "metadb") == 0)
        return forms_metadb;
    if (strcmp(peer, "pg") == 0)
        return forms_pg;
    return strcmp(peer, "redis") == 0 ? forms_redis : forms_etcd;
}

bool plan_find(const char *peer, const char *operation, const char *form, struct plan *plan)
{
    for (const struct form *f = forms_of(peer); f->operation; f++) {
        if (strcmp(f->operation, operation) != 0 || (*form && strcmp(f->form, form) != 0))
            continue;
        *plan = (struct plan){.form = f->form, .rows = f->rows};
        while (plan->step_count < STEPS_MAX && f->steps[plan->step_count]) {
            plan->steps[plan->step_count] = f->steps[plan->step_count];
            plan->step_count++;
        }
        return true;
    }
    return false;
}
