/*
 * sim/history.h — what clients asked for and were told, in the one order of the world.
 *
 * Two kinds of records: operations on a register (one row of kv or meta), for check_register.c, and
 * transactions over lists (rows of kv whose value names who appended), for check_lists.c. Orders
 * come from one counter, so "returned before the other began" is a comparison.
 */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define REGISTERS 20u
#define LISTS 6u
#define LIST_READS_MAX 4u
#define NEVER UINT64_MAX

enum register_kind {
    REGISTER_PUT,    /* VALUE, whatever is there */
    REGISTER_INSERT, /* VALUE if nothing is there */
    REGISTER_DELETE,
    REGISTER_SWAP, /* VALUE if EXPECTED is there */
    REGISTER_GET
};

struct register_op {
    enum register_kind kind;
    uint64_t invoked, returned; /* orders; NEVER: it may take effect at any time, or not at all */
    int64_t value, expected;    /* values are above 0 and each is written once */
    bool hit;                   /* INSERT, DELETE, SWAP: it changed the row */
    int64_t found;              /* GET: 0 = nothing */
};

struct list_read {
    unsigned list;
    bool append;
    int64_t *items; /* as the transaction saw it, before its own append */
    unsigned count;
};

struct list_txn {
    int64_t id; /* what it appends */
    uint64_t invoked, returned;
    enum { TXN_OPEN, TXN_COMMITTED, TXN_ABORTED, TXN_UNKNOWN } outcome;
    struct list_read reads[LIST_READS_MAX];
    unsigned read_count;
};

struct register_history {
    struct register_op *ops;
    unsigned count, capacity;
};

struct history {
    uint64_t order;
    struct register_history registers[REGISTERS];
    struct list_txn *txns;
    unsigned txn_count, txn_capacity;
    /* The lists at the end, read when all was quiet. */
    int64_t *final[LISTS];
    unsigned final_count[LISTS];
};

void history_init(struct history *h);
void history_fini(struct history *h);
static inline uint64_t history_order(struct history *h)
{
    return ++h->order;
}
/* Copies OP. */
void history_register(struct history *h, unsigned at, const struct register_op *op);
/* A new transaction; its place, since the array moves. */
unsigned history_txn(struct history *h);

/* True: OPS have an order in which each takes effect between its invocation and its return (Wing
 * and Gong 1993, with Lowe's cache 2017). *UNDECIDED counts histories given up after too many
 * steps. */
bool check_register(const struct register_history *h, unsigned *undecided);
/* Prints what is wrong with the lists; true: nothing. */
bool check_lists(const struct history *h);

#endif
