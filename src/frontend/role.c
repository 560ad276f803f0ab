/*
 * frontend/role.c — what a session may do, and the statements that change it.
 *
 * A role statement is a change of its own, at once and for good: inside BEGIN it is refused. A
 * plain password is hashed on a pool's thread; what is kept, logged or shown is never the password.
 *
 *   fe_run_role ─> next_role ─> hash ··pool··> change ··cl_role_change··> changed ─> next_role …
 *
 * Every one that was tried by somebody who may, and every function of schema metadb, leaves a line
 * in the log: who, what, on whom, how it ended.
 */
#include "base/assert.h"
#include "base/crypt.h"
#include "base/log.h"
#include "base/saslprep.h"
#include "cluster/roles.h"
#include "cluster/views.h"
#include "frontend/execute.h"
#include "frontend/scram.h"
#include "frontend/server_internal.h"
#include <stdio.h>
#include <stdlib.h>

struct fe_role_run {
    struct fe_session *session;
    const struct pl_role *ask; /* the portal's plan holds it */
    const char *tag;
    unsigned at; /* of the names */
    struct cl_role_change change;
    struct pool_job job;
    int64_t until; /* VALID UNTIL */
    bool plain;    /* the password is to be hashed */
    unsigned rounds;
    char verifier[FE_SCRAM_TEXT_MAX]; /* of the new password */
};

/* -- powers ------------------------------------------------------------------------------------ */

void fe_session_renew_powers(struct fe_session *s)
{
    struct cl_role role;
    s->roles_seen = cl_roles_version(s->worker->node);
    if (cl_role_find(s->worker->node, bytes_str(s->user), &role) != ST_OK)
        role = (struct cl_role){.superuser = false}; /* dropped: it may nothing any more */
    s->superuser = role.superuser;
    s->privileges = (uint8_t)cl_role_privileges(&role, s->ns);
    s->limited = !role.superuser;
}

static NODISCARD status denied(struct fe_session *s, enum kv_table table)
{
    const struct kv_table_def *t = kv_table_def(table);
    return err_set(&s->work->err, ST_DENIED, "permission denied for table %s",
                   t != NULL ? t->name : "");
}

status fe_check_table(struct fe_session *s, enum kv_table table, unsigned privileges)
{
    return (s->privileges & privileges) == privileges ? ST_OK : denied(s, table);
}

status fe_check_powers(struct fe_session *s, const struct pl_bound *b)
{
    enum pl_kind kind = b->plan->kind;
    if (kind == PL_READ)
        return fe_check_table(s, b->read.table,
                              CL_MAY_READ | (b->read.for_update ? CL_MAY_WRITE : 0));
    if (kind == PL_WRITE)
        return fe_check_table(s, b->op.table, CL_MAY_WRITE | (b->op.want_rows ? CL_MAY_READ : 0));
    if (kind == PL_FUNCTION && !s->superuser)
        return err_set(&s->work->err, ST_DENIED, "permission denied for function %s",
                       b->function->name);
    return ST_OK;
}

void fe_audit_function(const struct fe_session *s, const char *name)
{
    LOG_INFO("audit.function", LOG_STR("function", name), LOG_STR("by", s->user),
             LOG_STR("database", s->database), LOG_I64("session", s->number));
}

/* -- what is asked for ------------------------------------------------------------------------- */

static const char *name_at(const struct fe_role_run *r, unsigned i)
{
    return r->ask->names[i] != NULL ? r->ask->names[i] : r->session->user;
}

/* Anybody may change the own password, and nothing else. */
static NODISCARD status check_asker(struct fe_session *s, const struct pl_role *ask)
{
    bool superuser = !fe_session_limited(s);
    bool own = ask->action == PL_ROLE_ALTER && ask->password_said && ask->superuser < 0 &&
               ask->login < 0 && !ask->limit_said && ask->valid_until == NULL &&
               (ask->names[0] == NULL || strcmp(ask->names[0], s->user) == 0);
    static const char *const texts[] = {
        [PL_ROLE_CREATE] = "permission denied to create role",
        [PL_ROLE_ALTER] = "permission denied",
        [PL_ROLE_DROP] = "permission denied to drop role",
        [PL_ROLE_GRANT] = "permission denied to grant privileges",
        [PL_ROLE_REVOKE] = "permission denied to revoke privileges",
    };
    return superuser || own ? ST_OK : err_set(&s->work->err, ST_DENIED, "%s", texts[ask->action]);
}

static NODISCARD status set_privileges(struct fe_role_run *r, struct cl_role *role, uint32_t ns,
                                       struct err *err)
{
    unsigned i = 0, bits = r->ask->privileges;
    while (i < role->grant_count && role->grants[i].ns != ns)
        i++;
    if (i == role->grant_count && r->ask->action == PL_ROLE_REVOKE)
        return ST_OK;
    if (i == CL_ROLE_GRANTS_MAX)
        return err_set(err, ST_LIMIT, "a role has privileges on %u databases at most",
                       CL_ROLE_GRANTS_MAX);
    if (i == role->grant_count) {
        role->grants[role->grant_count].ns = ns;
        role->grants[role->grant_count++].privileges = 0;
    }
    if (r->ask->action == PL_ROLE_GRANT)
        role->grants[i].privileges |= bits;
    else
        role->grants[i].privileges &= ~bits;
    return ST_OK;
}

static NODISCARD status apply_grants(struct fe_role_run *r, struct cl_role *role, struct err *err)
{
    struct fe_session *s = r->session;
    uint32_t ns;
    if (r->ask->database_count == 0)
        return set_privileges(r, role, s->ns, err);
    for (unsigned i = 0; i < r->ask->database_count; i++) {
        const char *name = r->ask->databases[i];
        if (cl_database_find(s->worker->node, bytes_str(name), &ns) != ST_OK)
            return err_set_state(err, ST_NOT_FOUND, "3D000", "database \"%s\" does not exist",
                                 name);
        ST_TRY(set_privileges(r, role, ns, err));
    }
    return ST_OK;
}

static void apply_options(struct fe_role_run *r, struct cl_role *role)
{
    const struct pl_role *ask = r->ask;
    if (ask->superuser >= 0)
        role->superuser = ask->superuser == 1;
    if (ask->login >= 0)
        role->login = ask->login == 1;
    if (ask->limit_said)
        role->connections = ask->connections;
    if (ask->valid_until != NULL) {
        role->expires = r->until != INT64_MAX; /* infinity */
        role->expires_at = role->expires ? r->until : 0;
    }
    if (ask->password_said)
        snprintf(role->verifier, sizeof role->verifier, "%s", r->verifier);
}

static NODISCARD status check_name(const char *name, struct err *err)
{
    if (name[0] == '\0' || strlen(name) > LIMIT_IDENTIFIER_BYTES)
        return err_set_state(err, ST_INVALID, "42602", "invalid name of a role");
    if (strncmp(name, "pg_", 3) == 0)
        return err_set_state(err, ST_RESERVED, "42939", "role name \"%s\" is reserved", name);
    if (strcmp(name, "public") == 0 || strcmp(name, "none") == 0)
        return err_set_state(err, ST_RESERVED, "42939", "role name \"%s\" is reserved", name);
    return ST_OK;
}

/* Fills r->change for the name at hand. ST_END: there is nothing to do. */
static NODISCARD status prepare(struct fe_role_run *r, struct err *err)
{
    struct fe_session *s = r->session;
    const char *name = name_at(r, r->at);
    struct cl_role *role = &r->change.role;
    bool known = cl_role_find(s->worker->node, bytes_str(name), role) == ST_OK;
    if (r->ask->action == PL_ROLE_CREATE) {
        ST_TRY(check_name(name, err));
        if (known)
            return err_set_state(err, ST_EXISTS, "42710", "role \"%s\" already exists", name);
        *role = (struct cl_role){.connections = -1};
        memcpy(role->name, name, strlen(name) + 1);
    } else if (!known) {
        if (r->ask->if_exists) {
            fe_notice(s, "role \"%s\" does not exist, skipping", name);
            return ST_END;
        }
        return err_set_state(err, ST_NOT_FOUND, "42704", "role \"%s\" does not exist", name);
    }
    if (r->ask->action == PL_ROLE_DROP && strcmp(name, s->user) == 0)
        return err_set_state(err, ST_DENIED, "55006", "current user cannot be dropped");
    r->change.kind = r->ask->action == PL_ROLE_CREATE ? CL_ROLE_CREATE
                     : r->ask->action == PL_ROLE_DROP ? CL_ROLE_DROP
                                                      : CL_ROLE_ALTER;
    if (r->ask->action == PL_ROLE_GRANT || r->ask->action == PL_ROLE_REVOKE)
        return apply_grants(r, role, err);
    apply_options(r, role);
    return ST_OK;
}

/* -- running ----------------------------------------------------------------------------------- */

static void next_role(struct fe_role_run *r);

static void role_done(struct fe_session *s, status st)
{
    if (st == ST_OK)
        snprintf(s->work->run.tag, sizeof s->work->run.tag, "%s",
                 s->work->run.portal->statement->stmt.plan->tag);
    fe_run_finish(s, st);
}

/* ERR: that of the session's work, or of the change. */
static void finish(struct fe_role_run *r, status st, const struct err *err)
{
    struct fe_session *s = r->session;
    if (st != ST_OK && err != &s->work->err)
        s->work->err = *err;
    crypt_forget(r, sizeof *r);
    free(r);
    fe_resume(s, st);
}

static void changed(struct cl_role_change *c, status st)
{
    struct fe_role_run *r = CONTAINER_OF(c, struct fe_role_run, change);
    struct fe_session *s = r->session;
    LOG_INFO("audit.role", LOG_STR("statement", r->tag), LOG_STR("role", c->role.name),
             LOG_STR("by", s->user), LOG_I64("session", s->number),
             LOG_STR("outcome", st == ST_OK ? "done" : status_text(st)));
    if (st != ST_OK) {
        finish(r, st, &c->err);
        return;
    }
    r->at++;
    next_role(r);
}

static void next_role(struct fe_role_run *r)
{
    struct fe_session *s = r->session;
    status st = ST_END;
    for (; st == ST_END && r->at < r->ask->name_count; r->at += st == ST_END)
        st = prepare(r, &s->work->err);
    if (st != ST_OK) {
        finish(r, st == ST_END ? ST_OK : st, &s->work->err);
        return;
    }
    r->change.done = changed;
    cl_role_change(s->worker->node, &r->change);
}

/* On a pool's thread; the password is the plan's, which the portal holds while the session waits.
 *  */
static void hash(struct pool_job *job)
{
    struct fe_role_run *r = CONTAINER_OF(job, struct fe_role_run, job);
    struct fe_scram_verifier v;
    uint8_t salt[FE_SCRAM_SALT_BYTES];
    if (!r->plain)
        return;
    struct obuf password;
    obuf_init(&password);
    saslprep(r->ask->password, &password);
    crypt_random(salt, sizeof salt);
    fe_scram_derive(bytes_make(password.data, password.size), bytes_make(salt, sizeof salt),
                    r->rounds, &v);
    fe_scram_text(&v, r->verifier);
    crypt_forget(&v, sizeof v);
    crypt_forget(password.data, password.size);
    obuf_fini(&password);
}

static void hashed(struct pool_job *job)
{
    next_role(CONTAINER_OF(job, struct fe_role_run, job));
}

/* MD5 of earlier versions: "md5" and 32 digits. */
static bool is_md5(const char *text)
{
    return strlen(text) == 35 && strncmp(text, "md5", 3) == 0 &&
           strspn(text + 3, "0123456789abcdef") == 32;
}

static NODISCARD status take_password(struct fe_role_run *r)
{
    const char *text = r->ask->password;
    struct fe_scram_verifier v;
    if (text == NULL)
        return ST_OK;
    if (is_md5(text))
        return err_set(&r->session->work->err, ST_UNSUPPORTED,
                       "passwords hashed with MD5 are not supported");
    r->plain = !fe_scram_parse(bytes_str(text), &v);
    if (!r->plain)
        fe_scram_text(&v, r->verifier);
    return ST_OK;
}

static NODISCARD status take_end(struct fe_role_run *r)
{
    struct fe_session *s = r->session;
    struct pl_value v;
    if (r->ask->valid_until == NULL)
        return ST_OK;
    ST_TRY(pl_value_from_text(OID_TIMESTAMPTZ, bytes_str(r->ask->valid_until), &s->settings.style,
                              fe_now(s), &s->work->arena, &v, &s->work->err));
    r->until = v.i;
    return ST_OK;
}

/* Roles are changed one by one: that all are there is looked at before the first. */
static NODISCARD status check_names(const struct fe_role_run *r, struct err *err)
{
    struct cl_role role;
    bool create = r->ask->action == PL_ROLE_CREATE;
    for (unsigned i = 0; i < r->ask->name_count && !create && !r->ask->if_exists; i++)
        if (cl_role_find(r->session->worker->node, bytes_str(name_at(r, i)), &role) != ST_OK)
            return err_set_state(err, ST_NOT_FOUND, "42704", "role \"%s\" does not exist",
                                 name_at(r, i));
    return ST_OK;
}

static NODISCARD status check_time(struct fe_session *s, const char *tag)
{
    if (s->txn == FE_TXN_BLOCK)
        return err_set_state(&s->work->err, ST_TXN_STATE, "25001",
                             "%s cannot run inside a transaction block", tag);
    if (fe_read_only(s))
        return err_set_state(&s->work->err, ST_TXN_STATE, "25006",
                             "cannot execute %s in a read-only transaction", tag);
    return ST_OK;
}

status fe_run_role(struct fe_session *s, const struct pl_plan *plan)
{
    const struct pl_role *ask = plan->utility->role;
    const struct config *config = cl_node_config(s->worker->node);
    ST_TRY(check_time(s, plan->tag));
    ST_TRY(check_asker(s, ask));
    struct fe_role_run *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    r->session = s;
    r->ask = ask;
    r->tag = plan->tag;
    r->rounds = (unsigned)config_int(config, "auth.scram_iterations");
    r->job.run = hash;
    r->job.done = hashed;
    status st = check_names(r, &s->work->err);
    if (st == ST_OK)
        st = take_password(r);
    if (st == ST_OK)
        st = take_end(r);
    /* Also without anything to hash: what follows must not end before this function has. */
    if (st == ST_OK) {
        st = pool_submit(cl_node_query_pool(s->worker->node), s->worker->reactor->mailbox, &r->job);
        if (st != ST_OK)
            err_set(&s->work->err, st, "too many statements wait for a thread");
    }
    if (st == ST_OK)
        return fe_wait(s, role_done, true);
    free(r);
    return st;
}
