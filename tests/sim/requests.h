/*
 * sim/requests.h — the statements of the clients, as operations and reads of kv.
 *
 * Memory is the caller's arena. Names: registers of kv are "r00" …, of meta the entries "r00" … of
 * the root; lists are "l00" … of kv; "p00" and "p01" are always written together.
 */
#ifndef SIM_REQUESTS_H
#define SIM_REQUESTS_H

#include "base/sim_file.h"
#include "kv/read.h"
#include "sim/history.h"

#define SIM_NS 1u
#define KV_REGISTERS 12u /* of REGISTERS; the others are entries of the root */

struct maker {
    struct arena *arena;
    struct sim_random *random;
    int64_t now; /* timestamptz */
    const int64_t *directories;
    unsigned directory_count;
    int64_t *new_directory; /* id of the one that the operation makes, 0 = none */
};

static inline enum kv_table register_table(unsigned at)
{
    return at < KV_REGISTERS ? KV_KV : KV_META;
}

/* OP on register AT; kv registers take all kinds, meta's no PUT and no SWAP. Not for GET. */
const struct kv_op *make_register_op(struct maker *m, unsigned at, const struct register_op *op);
const struct kv_read *make_register_read(struct maker *m, unsigned at);
int64_t register_value(unsigned at, const struct kv_row *row);

const struct kv_read *make_list_read(struct maker *m, unsigned list);
/* The list as ITEMS with ID behind them. */
const struct kv_op *make_list_write(struct maker *m, unsigned list, const int64_t *items,
                                    unsigned count, int64_t id);
const struct kv_op *make_list_lock(struct maker *m, unsigned list);
/* Malloced; *COUNT items. */
int64_t *list_items(const struct kv_row *row, unsigned *count);

const struct kv_op *make_pair_write(struct maker *m, int64_t value);
const struct kv_read *make_pair_read(struct maker *m);

/* Anything else that writes; anything else that reads. */
const struct kv_op *make_other_op(struct maker *m, int64_t value);
const struct kv_read *make_other_read(struct maker *m);

#endif
