/*
 * frontend/session_pool.h — what a worker lends its sessions: work, statements, portals.
 *
 * Free objects, newest first: their memory is warm. As many stay as were in use at once lately:
 * what nobody took for a while is freed (fe_pool_trim). Whoever takes an object owns it until it
 * gives it back, emptied: arenas reset, nothing held.
 *
 * A pool belongs to its worker's thread.
 */
#ifndef FRONTEND_SESSION_POOL_H
#define FRONTEND_SESSION_POOL_H

struct fe_work;
struct fe_statement;
struct fe_portal;
struct fe_pool;

struct fe_pool *fe_pool_new(void);
void fe_pool_free(struct fe_pool *p);
/* Once in a while: frees some of what nobody has needed since the last time. */
void fe_pool_trim(struct fe_pool *p);

/* A new one, zeroed but for its empty arenas, or one as it was given back. */
struct fe_work *fe_pool_take_work(struct fe_pool *p);
struct fe_statement *fe_pool_take_statement(struct fe_pool *p);
struct fe_portal *fe_pool_take_portal(struct fe_pool *p);
void fe_pool_give_work(struct fe_pool *p, struct fe_work *w);
void fe_pool_give_statement(struct fe_pool *p, struct fe_statement *st);
void fe_pool_give_portal(struct fe_pool *p, struct fe_portal *q);

#endif
