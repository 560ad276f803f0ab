/*
 * frontend/login.h — a login under way: what the StartupMessage said, and the proof of who it is.
 *
 * Lives from the StartupMessage to AuthenticationOk or the refusal, as c->login; between two
 * messages only while a proof is awaited.
 */
#ifndef FRONTEND_LOGIN_H
#define FRONTEND_LOGIN_H

#include "base/arena.h"
#include "cluster/roles.h"
#include "frontend/conn.h"

struct fe_scram;

struct fe_login {
    struct fe_conn *conn;
    struct arena arena;
    struct err err;
    uint32_t version;
    bytes pairs;          /* of the message */
    bytes user, database; /* of them */
    bool replication;
    const char **unknown; /* options that are not understood */
    unsigned unknown_count;
    /* auth.c */
    bool known; /* there is such a role */
    struct cl_role role;
    struct fe_scram *scram; /* NULL: none is under way */
    bool chosen;            /* a mechanism is */
};

/* Decides how the client is to prove who it is, and begins. ST_OK: it is who it says; ST_PENDING:
 * its messages are awaited; else l->err. */
NODISCARD status fe_auth_start(struct fe_login *l);
/* The same for its next message. */
NODISCARD status fe_auth_message(struct fe_login *l, bytes body);
void fe_auth_free(struct fe_login *l);
/* A line of the log about a login that failed. */
void fe_login_log(const struct fe_login *l);

#endif
