/* sim/history.c — see history.h. */
#include "sim/history.h"
#include "base/assert.h"
#include <string.h>

void history_init(struct history *h)
{
    memset(h, 0, sizeof *h);
}

void history_fini(struct history *h)
{
    for (unsigned i = 0; i < REGISTERS; i++)
        free(h->registers[i].ops);
    for (unsigned i = 0; i < h->txn_count; i++) {
        for (unsigned k = 0; k < h->txns[i].read_count; k++)
            free(h->txns[i].reads[k].items);
    }
    for (unsigned i = 0; i < LISTS; i++)
        free(h->final[i]);
    free(h->txns);
}

void history_register(struct history *h, unsigned at, const struct register_op *op)
{
    ASSERT(at < REGISTERS);
    struct register_history *r = &h->registers[at];
    if (r->count == r->capacity) {
        r->capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        r->ops = realloc(r->ops, r->capacity * sizeof *r->ops);
        ASSERT(r->ops != NULL);
    }
    r->ops[r->count++] = *op;
}

unsigned history_txn(struct history *h)
{
    if (h->txn_count == h->txn_capacity) {
        h->txn_capacity = h->txn_capacity == 0 ? 64 : 2 * h->txn_capacity;
        h->txns = realloc(h->txns, h->txn_capacity * sizeof *h->txns);
        ASSERT(h->txns != NULL);
    }
    h->txns[h->txn_count] = (struct list_txn){.id = (int64_t)h->txn_count + 1};
    return h->txn_count++;
}
