/*
 * cluster/roles.h — who may log in, and what to do where.
 *
 * Roles are rows of table kv in namespace 0, which belongs to no database: they are changed by
 * ordinary commands, so they are as durable as data. A copy of all of them is kept in memory.
 *
 * Names are compared by bytes. There is always a role `metadb`, made as a superuser without a
 * password when the directory is new.
 *
 * Looking up (cl_role_find, cl_role_at, cl_roles_…) from any thread; the rest on reactor 0.
 */
#ifndef CLUSTER_ROLES_H
#define CLUSTER_ROLES_H

#include "base/limits.h"
#include "cluster/node.h"

#define CL_ROLES_MAX 1000u
#define CL_ROLE_GRANTS_MAX 16u
#define CL_ROLE_VERIFIER_MAX 256u
#define CL_ROLE_FIRST "metadb"
#define CL_ROLES_SECRET_BYTES 32u

enum cl_privilege { CL_MAY_READ = 1, CL_MAY_WRITE = 2 };

struct cl_role {
    char name[LIMIT_IDENTIFIER_BYTES + 1];
    bool superuser, login;
    int32_t connections;                 /* -1 = no limit */
    char verifier[CL_ROLE_VERIFIER_MAX]; /* as frontend/scram.h writes it; "" = no password */
    bool expires;                        /* the password, at: */
    int64_t expires_at;                  /* timestamptz */
    unsigned grant_count;
    struct {
        uint32_t ns;
        unsigned privileges; /* of enum cl_privilege */
    } grants[CL_ROLE_GRANTS_MAX];
    int64_t seq; /* of the row; 0 = not stored */
};

/* Reads all roles; DONE on reactor 0. Once, when the node is ready. Among other nodes the roles are
 * what is applied here, which may be nothing yet; they are read again whenever that changes. */
void cl_roles_open(struct cl_node *n, void (*done)(void *arg, status st), void *arg);
void cl_roles_close(struct cl_node *n); /* no change may be under way */
/* Among others, for the host: the turn's end; this node serves the shard of roles now, or time has
 * passed since it last tried to make what is missing. */
void cl_roles_turn(struct cl_node *n);
void cl_roles_led(struct cl_node *n);
/* False: this node is one of several and has not yet applied even the first roles. */
bool cl_roles_known(struct cl_node *n);

/* Another one whenever a role may have changed, before a change is done; never 0. What was copied
 * from a role is right as long as the version that was asked for before is the same. Any thread,
 * between cl_roles_open and cl_roles_close. */
uint64_t cl_roles_version(struct cl_node *n);
/* ST_NOT_FOUND, as are all before cl_roles_open. */
NODISCARD status cl_role_find(struct cl_node *n, bytes name, struct cl_role *out);
/* In order of names; false past the end. */
bool cl_role_at(struct cl_node *n, unsigned i, struct cl_role *out);
/* What R may do in namespace NS: bits of enum cl_privilege. */
unsigned cl_role_privileges(const struct cl_role *r, uint32_t ns);
bool cl_roles_any_password(struct cl_node *n);
/* Has a superuser who may log in a password? */
bool cl_roles_superuser_password(struct cl_node *n);
/* Random, the same for the life of the cluster. */
const uint8_t *cl_roles_secret(struct cl_node *n);

enum cl_role_change_kind { CL_ROLE_CREATE, CL_ROLE_ALTER, CL_ROLE_DROP };
struct cl_role_change {
    enum cl_role_change_kind kind;
    struct cl_role role; /* as it shall be; ALTER, DROP: with the seq that was found */
    void (*done)(struct cl_role_change *c, status st);
    struct cl_role_change *next; /* internal */
    struct err err;              /* out */
};
/* DONE is called once, maybe inside; C is not the caller's until then. 42710 it exists, ST_CONFLICT
 * somebody else has changed it, ST_LIMIT too many. Changes are made one after the other. */
void cl_role_change(struct cl_node *n, struct cl_role_change *c);

#endif
