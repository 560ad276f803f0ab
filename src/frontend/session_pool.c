/*
 * frontend/session_pool.c — lists of free objects, and how many of them stay.
 */
#include "frontend/session_pool.h"
#include "base/assert.h"
#include "base/memory.h"
#include "frontend/execute.h"
#include <stdlib.h>

#define POOL_MAX 2048u

struct pool_size {
    unsigned count, low; /* now; the least since the last trim */
};
struct fe_pool {
    struct fe_work *works;
    struct fe_statement *statements;
    struct fe_portal *portals;
    struct pool_size work, statement, portal;
};

struct fe_pool *fe_pool_new(void)
{
    struct fe_pool *p = calloc(1, sizeof *p);
    ASSERT(p != NULL);
    return p;
}

static void work_destroy(struct fe_work *w)
{
    if (w->sleep != NULL)
        loop_timer_free(w->sleep);
    obuf_fini(&w->run.scratch);
    arena_fini(&w->arena);
    arena_fini(&w->call_arena);
    memory_free(MEMORY_SESSIONS, w, sizeof *w);
}

static void statement_destroy(struct fe_statement *st)
{
    arena_fini(&st->arena);
    memory_free(MEMORY_SESSIONS, st, sizeof *st);
}

static void portal_destroy(struct fe_portal *p)
{
    arena_fini(&p->arena);
    arena_fini(&p->page);
    obuf_fini(&p->store);
    memory_free(MEMORY_SESSIONS, p, sizeof *p);
}

void fe_pool_free(struct fe_pool *p)
{
    for (struct fe_work *w = p->works, *next; w != NULL; w = next) {
        next = w->next_free;
        work_destroy(w);
    }
    for (struct fe_statement *st = p->statements, *next; st != NULL; st = next) {
        next = st->next;
        statement_destroy(st);
    }
    for (struct fe_portal *q = p->portals, *next; q != NULL; q = next) {
        next = q->next;
        portal_destroy(q);
    }
    free(p);
}

static void pool_taken(struct pool_size *p)
{
    p->count--;
    if (p->count < p->low)
        p->low = p->count;
}

/* How many of P to free now: half of those that were there all the time. */
static unsigned pool_surplus(struct pool_size *p)
{
    unsigned n = (p->low + 1) / 2;
    p->count -= n;
    p->low = p->count;
    return n;
}

void fe_pool_trim(struct fe_pool *p)
{
    for (unsigned n = pool_surplus(&p->work); n > 0; n--) {
        struct fe_work *w = p->works;
        p->works = w->next_free;
        work_destroy(w);
    }
    for (unsigned n = pool_surplus(&p->statement); n > 0; n--) {
        struct fe_statement *st = p->statements;
        p->statements = st->next;
        statement_destroy(st);
    }
    for (unsigned n = pool_surplus(&p->portal); n > 0; n--) {
        struct fe_portal *q = p->portals;
        p->portals = q->next;
        portal_destroy(q);
    }
}

/* -- lending ----------------------------------------------------------------------------------- */

struct fe_work *fe_pool_take_work(struct fe_pool *p)
{
    struct fe_work *w = p->works;
    if (w != NULL) {
        p->works = w->next_free;
        pool_taken(&p->work);
        return w;
    }
    w = memory_new(MEMORY_SESSIONS, sizeof *w);
    arena_init(&w->arena, 4096);
    arena_init(&w->call_arena, 4096);
    return w;
}

void fe_pool_give_work(struct fe_pool *p, struct fe_work *w)
{
    if (p->work.count == POOL_MAX) {
        work_destroy(w);
        return;
    }
    w->next_free = p->works;
    p->works = w;
    p->work.count++;
}

struct fe_statement *fe_pool_take_statement(struct fe_pool *p)
{
    struct fe_statement *st = p->statements;
    if (st != NULL) {
        p->statements = st->next;
        pool_taken(&p->statement);
        return st;
    }
    st = memory_new(MEMORY_SESSIONS, sizeof *st);
    arena_init(&st->arena, 1024);
    return st;
}

void fe_pool_give_statement(struct fe_pool *p, struct fe_statement *st)
{
    if (p->statement.count == POOL_MAX) {
        statement_destroy(st);
        return;
    }
    st->next = p->statements;
    p->statements = st;
    p->statement.count++;
}

struct fe_portal *fe_pool_take_portal(struct fe_pool *p)
{
    struct fe_portal *q = p->portals;
    if (q != NULL) {
        p->portals = q->next;
        pool_taken(&p->portal);
        return q;
    }
    q = memory_new(MEMORY_SESSIONS, sizeof *q);
    arena_init(&q->arena, 1024);
    arena_init(&q->page, 4096);
    return q;
}

void fe_pool_give_portal(struct fe_pool *p, struct fe_portal *q)
{
    if (p->portal.count == POOL_MAX) {
        portal_destroy(q);
        return;
    }
    q->next = p->portals;
    p->portals = q;
    p->portal.count++;
}
