/*
 * cluster/roles_internal.h — what roles.c and roles_read.c share.
 *
 * One call at a time: while `busy` a change or a reading of all rows is under way.
 */
#ifndef CLUSTER_ROLES_INTERNAL_H
#define CLUSTER_ROLES_INTERNAL_H

#include "cluster/client_internal.h"
#include "cluster/roles.h"
#include <pthread.h>
#include <stdatomic.h>

#define CL__ROLES_NS 0u
#define CL__ROLES_PREFIX "role/"
#define CL__ROLES_SECRET_KEY "secret"

struct cl_roles {
    struct cl_node *node;
    struct cl_client *client;
    struct cl_call call;
    struct arena arena; /* of the call; pages: of a read's bounds and position */
    struct arena pages;
    struct kv_read read;
    struct kv_read_pos pos;
    struct kv_op op;
    const struct kv_op *ops[1];
    struct kv_datum cells[2];
    struct kv_set set;
    struct kv_filter filter;
    void (*next)(struct cl_roles *r, status st); /* what the pending call goes on with */
    void (*opened)(void *arg, status st);        /* NULL: it was called */
    void *arg;
    struct cl_role_change *first, **last; /* waiting; the first is under way if `changing` */
    bool busy, changing;
    bool closing;          /* freed when the call is back */
    bool make;             /* what is missing may be tried to be made */
    uint64_t seen;         /* kv_state_system_writes when the rows were read */
    struct cl_role *fresh; /* being read */
    unsigned fresh_count;
    bool fresh_secret;
    uint8_t secret_read[CL_ROLES_SECRET_BYTES];
    _Atomic uint64_t version; /* grows under mu with every change of the list */
    pthread_mutex_t mu;
    bool has_secret;                       /* mu; `secret` does not change after */
    uint8_t secret[CL_ROLES_SECRET_BYTES]; /* mu until then */
    struct cl_role *list;                  /* mu; sorted by name */
    unsigned count;                        /* mu */
};

/* roles.c: the list is another one; mu is held. */
void cl__roles_changed(struct cl_roles *r);
/* roles.c: a call of R, and what follows it. */
struct cl_call *cl__roles_call(struct cl_roles *r, bool (*on_row)(void *, const struct kv_row *));
void cl__roles_go_on(struct cl_roles *r, status st, void (*next)(struct cl_roles *r, status st));
/* A row is written: CONFLICT as for INSERT. */
NODISCARD status cl__roles_put(struct cl_roles *r, bytes key, bytes value,
                               enum kv_conflict conflict);
bytes cl__role_value(struct arena *a, const struct cl_role *role);
bool cl__roles_has(struct cl_roles *r, const char *name);
/* Nothing is under way any more: the next change, or the end. */
void cl__roles_next(struct cl_roles *r);

/* roles_read.c: reads all rows, unless something is under way. */
void cl__roles_read(struct cl_roles *r);

#endif
