/*
 * bench/wire.h — operations, their statements, and what the engine needs to know of a protocol.
 *
 * An operation (struct op) is a set of values with one-letter names; a plan is the statements of
 * one operation, with $letter where a value goes:
 *
 *   p  directory       d  second directory    n  name     a  name to list after
 *   i  id of a file    u  owner               k  key      v  value of a key
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include "out.h"
#include <stdbool.h>

#define STEPS_MAX 4
#define STEP_PARAMS_MAX 8
#define ROWS_ANY UINT64_MAX

struct op {
    char p[24], d[24], n[24], a[24], i[24], u[24], k[24];
    const char *v;
};

const char *op_value(const struct op *op, char letter);
/* Whether LETTER's values are numbers. */
bool op_is_number(char letter);
/* TEXT with the values in place of $letter; OP may be NULL where there is none. */
void op_expand(struct out *o, const char *text, size_t size, const struct op *op);

/* One operation of one workload on one peer. */
struct plan {
    const char *workload; /* "create_hot" */
    const char *form;     /* "func"; "" where the peer has one only */
    const char *steps[STEPS_MAX];
    unsigned step_count;
    uint64_t rows; /* every step must touch or return so many */
};

struct target {
    const char *peer, *host, *database, *user;
    unsigned port;
    bool simple; /* the simple query protocol, literals in the text */
};

/* Where a reader is in an answer; all zero at its start. */
struct answer {
    size_t at;
    bool failed;
    char error[160];
};

struct wire {
    /* What is sent at STAGE 0, 1, ... of a new connection, each once the answer to the stage before
     * is complete; false when there is nothing more to send. PLAN may be NULL. */
    bool (*hello)(struct out *o, unsigned stage, const struct target *t, const struct plan *plan);
    void (*operation)(struct out *o, const struct target *t, const struct plan *plan,
                      const struct op *op);
    /* Ends a batch of operations; NULL where every operation is answered on its own. */
    void (*sync)(struct out *o, const struct target *t);
    /* True when the answer that begins at DATA is complete within SIZE bytes: A->at is its length.
     * Else to be called again with more; bytes before A->at are not looked at again. Every
     * statement must report ROWS rows. */
    bool (*answer)(const uint8_t *data, size_t size, uint64_t rows, struct answer *a);
};

extern const struct wire wire_pg, wire_redis, wire_etcd;

/* The first error of an answer stays. */
void answer_fail(struct answer *a, const char *text, size_t size);
uint32_t load_u32(const uint8_t *p);

#endif
