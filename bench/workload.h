/*
 * bench/workload.h — the named workloads and the values of their operations.
 *
 * A run works below directories of its own, BASE, BASE + 1, ...: one for all clients (hot) or one
 * per client (spread). Client C's N-th name is the same on every peer, and ascends with N.
 */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "wire.h"

enum access {
    ACCESS_CREATE,  /* a new name each time */
    ACCESS_CONSUME, /* the client's next existing name; ends when there is none */
    ACCESS_RENAME,  /* the client's names to and fro between two directories */
    ACCESS_READ,    /* a random directory, a random name */
    ACCESS_KV,      /* a random key */
};

struct workload {
    const char *name;
    const char *operation; /* name of the statements in the peers' tables */
    enum access access;
    bool hot;
    bool directories; /* entries are directories */
    bool accounted;   /* quota and index are part of the operation */
};

const struct workload *workload_find(const char *name);
/* One name per call with INDEX 0, 1, ..; NULL at the end. */
const char *workload_name(unsigned index);

struct generator {
    const struct workload *workload;
    uint64_t base;        /* first directory */
    unsigned clients;     /* of the run */
    unsigned directories; /* ACCESS_READ: from BASE on */
    uint64_t entries;     /* in each directory, or per client, before the run */
    uint64_t keys;        /* ACCESS_KV: half exist before the run */
    uint64_t *used;       /* per client: operations generated */
    uint8_t *written;     /* ACCESS_KV: a bit per key */
    uint64_t random;
    char value[101];
};

void generator_init(struct generator *g);
void generator_fini(struct generator *g);
/* CLIENT's next operation; false when it has used up its entries. */
bool generator_next(struct generator *g, unsigned client, struct op *op);

/* The values of entry N of client (or directory) C, which preparation writes as well. */
void generator_entry(const struct generator *g, unsigned c, uint64_t n, struct op *op);
void generator_key(const struct generator *g, uint64_t key, struct op *op);
/* The directories of a run: BASE .. BASE + count - 1; renames have as many from BASE + this on. */
#define SECOND_DIRECTORIES 50000u
unsigned generator_directory_count(const struct generator *g);
uint64_t generator_directory(const struct generator *g, unsigned c);

/* The plan of OPERATION in FORM ("" for the peer's first) on a peer. */
bool plan_find(const char *peer, const char *operation, const char *form, struct plan *plan);

struct form {
    const char *operation, *form;
    uint64_t rows;
    const char *steps[STEPS_MAX];
};
extern const struct form forms_metadb[], forms_pg[], forms_redis[], forms_etcd[];

#endif
