/*
 * sim/check_lists.c — do the transactions over lists look like snapshot isolation?
 *
 * A list is the order of its appends, so what each transaction read says which versions it saw
 * (Kingsbury and Alvaro 2020). Checked:
 *
 *   A1  what was read is a beginning of the list at the end; nothing in it is there twice
 *   A2  a committed append is in the list, one that was aborted is not
 *   A3  a transaction sees what was committed before it began (strict), and nothing of itself
 *   A4  no cycle of "wrote after" and "read from" (G0, G1c), and none with exactly one "was not
 *       seen by" (G-single): lost updates and fractured reads are such
 */
#include "base/assert.h"
#include "sim/history.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct edge {
    unsigned to, next; /* of the same transaction; 0: none, else place + 1 */
};

struct edges {
    unsigned *first; /* of each transaction, as `next` */
    struct edge *all;
    unsigned count, capacity;
};

struct graph {
    const struct history *h;
    unsigned count;       /* transactions */
    struct edges follows; /* writes or reads what the other wrote */
    struct edges unseen;  /* to one that wrote what this one did not see yet */
    unsigned *waiting;    /* scratch */
    bool *reached;
};

static unsigned txn_of(int64_t id)
{
    return (unsigned)(id - 1);
}

static bool counts(const struct list_txn *t)
{
    return t->outcome == TXN_COMMITTED || t->outcome == TXN_UNKNOWN;
}

static bool wrong(const char *rule, const struct list_txn *t, unsigned list, const char *what)
{
    fprintf(stderr, "lists %s: transaction %" PRId64 ", list %u: %s\n", rule, t->id, list, what);
    return false;
}

static int position(const struct history *h, unsigned list, int64_t id)
{
    for (unsigned i = 0; i < h->final_count[list]; i++) {
        if (h->final[list][i] == id)
            return (int)i;
    }
    return -1;
}

static bool check_final(const struct history *h, unsigned list)
{
    bool good = true;
    for (unsigned i = 0; i < h->final_count[list]; i++) {
        int64_t id = h->final[list][i];
        if (id < 1 || id > (int64_t)h->txn_count) {
            fprintf(stderr, "lists A1: list %u holds %" PRId64 ", which nobody wrote\n", list, id);
            return false;
        }
        const struct list_txn *t = &h->txns[txn_of(id)];
        if (position(h, list, id) != (int)i)
            good = wrong("A1", t, list, "is there twice");
        if (t->outcome == TXN_ABORTED)
            good = wrong("A2", t, list, "was aborted and is there");
    }
    return good;
}

static bool check_read(const struct history *h, const struct list_txn *t, const struct list_read *r)
{
    if (r->count > h->final_count[r->list] ||
        (r->count > 0 && memcmp(r->items, h->final[r->list], r->count * sizeof *r->items) != 0))
        return wrong("A1", t, r->list, "read what is no beginning of the list");
    int at = position(h, r->list, t->id);
    if (r->append && t->outcome == TXN_COMMITTED && at < 0)
        return wrong("A2", t, r->list, "was committed and is not there");
    if (at >= 0 && at < (int)r->count)
        return wrong("A3", t, r->list, "saw itself");
    /* First committer wins: nobody is between what it read and what it wrote. */
    if (r->append && at >= 0 && at != (int)r->count)
        return wrong("A4", t, r->list, "lost an update that it had not seen");
    for (unsigned i = r->count; i < h->final_count[r->list]; i++) {
        const struct list_txn *other = &h->txns[txn_of(h->final[r->list][i])];
        if (other != t && other->outcome == TXN_COMMITTED && other->returned < t->invoked)
            return wrong("A3", t, r->list, "did not see what was committed before it began");
    }
    return true;
}

static void edge(struct edges *e, unsigned from, unsigned to)
{
    if (from == to)
        return;
    if (e->count == e->capacity) {
        e->capacity = e->capacity == 0 ? 256 : 2 * e->capacity;
        e->all = realloc(e->all, e->capacity * sizeof *e->all);
        ASSERT(e->all != NULL);
    }
    e->all[e->count] = (struct edge){.to = to, .next = e->first[from]};
    e->first[from] = ++e->count;
}

static void add_edges(struct graph *g, unsigned at)
{
    const struct list_txn *t = &g->h->txns[at];
    for (unsigned k = 0; k < t->read_count; k++) {
        const struct list_read *r = &t->reads[k];
        const int64_t *final = g->h->final[r->list];
        if (r->count > 0)
            edge(&g->follows, txn_of(r->items[r->count - 1]), at);
        if (r->count < g->h->final_count[r->list])
            edge(&g->unseen, at, txn_of(final[r->count]));
    }
}

/* Is TO reached from FROM over what follows? */
static bool reaches(struct graph *g, unsigned from, unsigned to)
{
    unsigned first = 0, last = 0;
    memset(g->reached, 0, g->count * sizeof *g->reached);
    g->waiting[last++] = from;
    g->reached[from] = true;
    while (first < last) {
        unsigned at = g->waiting[first++];
        for (unsigned k = g->follows.first[at]; k != 0; k = g->follows.all[k - 1].next) {
            unsigned next = g->follows.all[k - 1].to;
            if (next == to)
                return true;
            if (!g->reached[next]) {
                g->reached[next] = true;
                g->waiting[last++] = next;
            }
        }
    }
    return false;
}

static bool check_cycles(struct graph *g)
{
    bool good = true;
    for (unsigned i = 0; i < g->count; i++) {
        if (good && reaches(g, i, i))
            good = wrong("A4", &g->h->txns[i], 0, "follows itself (G1c)");
    }
    for (unsigned from = 0; from < g->count; from++) {
        for (unsigned k = g->unseen.first[from]; good && k != 0; k = g->unseen.all[k - 1].next) {
            if (reaches(g, g->unseen.all[k - 1].to, from))
                good = wrong("A4", &g->h->txns[from], 0,
                             "saw something of one that it did not see (G-single)");
        }
    }
    return good;
}

bool check_lists(const struct history *h)
{
    bool good = true;
    for (unsigned i = 0; i < LISTS; i++)
        good &= check_final(h, i);
    for (unsigned i = 0; good && i < h->txn_count; i++) {
        const struct list_txn *t = &h->txns[i];
        /* Also what an aborted or open transaction read must have been there. */
        for (unsigned k = 0; k < t->read_count; k++)
            good &= check_read(h, t, &t->reads[k]);
    }
    if (!good || h->txn_count == 0)
        return good;
    struct graph g = {.h = h, .count = h->txn_count};
    g.follows.first = calloc(g.count, sizeof *g.follows.first);
    g.unseen.first = calloc(g.count, sizeof *g.unseen.first);
    g.waiting = calloc(g.count, sizeof *g.waiting);
    g.reached = calloc(g.count, sizeof *g.reached);
    ASSERT(g.follows.first != NULL && g.unseen.first != NULL && g.waiting != NULL &&
           g.reached != NULL);
    for (unsigned i = 0; i < h->txn_count; i++) {
        if (counts(&h->txns[i]))
            add_edges(&g, i);
    }
    for (unsigned list = 0; list < LISTS; list++) { /* one append after the other */
        for (unsigned i = 1; i < h->final_count[list]; i++)
            edge(&g.follows, txn_of(h->final[list][i - 1]), txn_of(h->final[list][i]));
    }
    good = check_cycles(&g);
    free(g.follows.first);
    free(g.follows.all);
    free(g.unseen.first);
    free(g.unseen.all);
    free(g.waiting);
    free(g.reached);
    return good;
}
