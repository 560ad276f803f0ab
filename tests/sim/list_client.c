/*
 * sim/list_client.c — a transaction over lists: BEGIN, for each of a few lists its items
 * and perhaps an append, COMMIT.
 *
 *   read ──▶ append, or FOR UPDATE, or nothing ──▶ the next list … ──▶ commit
 */
#include "base/assert.h"
#include "cluster/client_internal.h"
#include "sim/clients_internal.h"
#include <string.h>

static status read_next(struct request *r)
{
    struct maker m = requests__maker(r);
    struct list_read *l = &r->txn.reads[r->txn.read_count];
    unsigned taken = 0;
    do { /* each list once */
        l->list = (unsigned)cluster_below(r->all->cluster, LISTS);
        taken = 0;
        for (unsigned i = 0; i < r->txn.read_count; i++)
            taken |= r->txn.reads[i].list == l->list;
    } while (taken != 0);
    l->append = cluster_below(r->all->cluster, 3) != 0;
    r->items = NULL;
    r->item_count = 0;
    return requests__read(r, make_list_read(&m, l->list));
}

status lists__begin(struct request *r)
{
    struct clients *s = r->all;
    r->txn_at = history_txn(s->history);
    r->txn = s->history->txns[r->txn_at];
    r->txn.invoked = history_order(s->history);
    r->txn.returned = NEVER;
    r->lists = 1 + (unsigned)cluster_below(s->cluster, LIST_READS_MAX);
    cl_begin(r->session, false, requests__maker(r).now);
    return read_next(r);
}

static void note_read(struct request *r)
{
    struct list_read *l = &r->txn.reads[r->txn.read_count++];
    l->items = r->items;
    l->count = r->item_count;
    r->items = NULL;
    const struct cl_shard *s = r->node->process->shards[CL_KV];
    if (r->txn.read_count == 1 && s->leading && r->session->txn.snapshot_taken)
        cluster_promise(r->all->cluster, s, r->session->txn.snapshot[CL_KV]);
}

/* The statement behind one that went well. */
static status advance(struct request *r)
{
    if (r->txn.read_count < r->lists) {
        r->phase = LISTS_READ;
        return read_next(r);
    }
    r->phase = LISTS_COMMIT;
    r->read = NULL;
    r->call.result = (struct kv_result){0};
    return cl_commit(r->session, &r->call);
}

static status after_read(struct request *r)
{
    struct maker m = requests__maker(r);
    note_read(r);
    const struct list_read *l = &r->txn.reads[r->txn.read_count - 1];
    r->phase = LISTS_WRITE;
    if (l->append)
        return requests__write(r, make_list_write(&m, l->list, l->items, l->count, r->txn.id));
    if (cluster_below(r->all->cluster, 4) == 0)
        return requests__write(r, make_list_lock(&m, l->list));
    return advance(r);
}

bool lists__step(struct request *r, status *st)
{
    for (;;) {
        if (*st == ST_OUTCOME_UNKNOWN || r->phase == LISTS_COMMIT ||
            *st != (r->phase == LISTS_READ ? ST_END : ST_OK))
            return false;
        *st = r->phase == LISTS_READ ? after_read(r) : advance(r);
        if (*st == ST_PENDING)
            return true;
    }
}

void lists__end(struct request *r, status st)
{
    struct history *h = r->all->history;
    struct list_txn *t = &h->txns[r->txn_at];
    bool writes = false, committing = r->phase == LISTS_COMMIT;
    for (unsigned i = 0; i < r->txn.read_count; i++)
        writes |= r->txn.reads[i].append;
    r->txn.returned = history_order(h);
    if (committing && st == ST_OK)
        r->txn.outcome = TXN_COMMITTED;
    else if (committing && st == ST_OUTCOME_UNKNOWN && writes)
        r->txn.outcome = TXN_UNKNOWN;
    else
        r->txn.outcome = TXN_ABORTED;
    *t = r->txn;
    memset(r->txn.reads, 0, sizeof r->txn.reads);
    r->txn.read_count = 0;
}
