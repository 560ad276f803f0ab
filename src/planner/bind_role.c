/*
 * planner/bind_role.c — CREATE, ALTER and DROP ROLE, GRANT and REVOKE.
 *
 * Privileges are per database, so GRANT … ON DATABASE takes the words that PostgreSQL has for
 * tables: SELECT reads; INSERT, UPDATE, DELETE, TRUNCATE write; ALL is both. GRANT … ON ALL TABLES
 * IN SCHEMA public means the current database. A plan of these is never kept: its text may hold a
 * password.
 */
#include "cluster/roles.h"
#include "planner/pl_internal.h"

#include <stdio.h>

static bool is_true(const struct ast_node *n)
{
    return n == NULL || n->ival != 0;
}

static status not_supported(struct pl__compile *c, int at, const char *what)
{
    return pl__error(c, at, ST_UNSUPPORTED, NULL, "roles do not have %s here", what);
}

static status role_option(struct pl__compile *c, const struct ast_option *o, struct pl_role *r)
{
    static const struct {
        const char *name, *what;
    } absent[] = {{"createdb", "CREATEDB"},         {"createrole", "CREATEROLE"},
                  {"isreplication", "REPLICATION"}, {"bypassrls", "BYPASSRLS"},
                  {"addroleto", "IN ROLE"},         {"rolemembers", "members"},
                  {"adminmembers", "members"}};
    if (strcmp(o->name, "superuser") == 0) {
        r->superuser = is_true(o->value);
    } else if (strcmp(o->name, "canlogin") == 0) {
        r->login = is_true(o->value);
    } else if (strcmp(o->name, "connectionlimit") == 0) {
        if (o->value == NULL || o->value->ival < -1 || o->value->ival > INT32_MAX)
            return pl__error(c, o->at, ST_INVALID, NULL, "invalid connection limit");
        r->limit_said = true;
        r->connections = (int32_t)o->value->ival;
    } else if (strcmp(o->name, "password") == 0) {
        r->password_said = true;
        if (o->value != NULL && o->value->text != NULL && o->value->text[0] != '\0')
            r->password = arena_strdup(c->a, bytes_str(o->value->text));
    } else if (strcmp(o->name, "validUntil") == 0) {
        bool text = o->value != NULL && o->value->text != NULL;
        r->valid_until = text ? arena_strdup(c->a, bytes_str(o->value->text)) : "infinity";
    }
    /* NO… of what there is not is fine, and so are INHERIT and SYSID: nothing depends on them. */
    for (unsigned i = 0; i < ARRAY_LEN(absent); i++)
        if (strcmp(o->name, absent[i].name) == 0 &&
            (o->value == NULL || o->value->kind != AST_BOOL_CONST || o->value->ival != 0))
            return not_supported(c, o->at, absent[i].what);
    return ST_OK;
}

static unsigned privilege_named(const char *name)
{
    static const struct {
        const char *name;
        unsigned bits;
    } names[] = {{"select", CL_MAY_READ},
                 {"insert", CL_MAY_WRITE},
                 {"update", CL_MAY_WRITE},
                 {"delete", CL_MAY_WRITE},
                 {"truncate", CL_MAY_WRITE}};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].bits;
    return 0;
}

static status privileges(struct pl__compile *c, const struct ast_stmt *s, struct pl_role *r)
{
    if (s->all_tables) {
        for (unsigned i = 0; i < s->database_count; i++)
            if (strcmp(s->databases[i], "public") != 0)
                return pl__error(c, s->at, ST_UNSUPPORTED, NULL,
                                 "privileges are kept for schema public only");
    } else {
        const char **names = ARENA_ARRAY(c->a, const char *, s->database_count + 1);
        for (unsigned i = 0; i < s->database_count; i++)
            names[i] = arena_strdup(c->a, bytes_str(s->databases[i]));
        r->databases = names;
        r->database_count = s->database_count;
    }
    if (s->privilege_count == 0)
        r->privileges = CL_MAY_READ | CL_MAY_WRITE;
    for (unsigned i = 0; i < s->privilege_count; i++) {
        unsigned bits = privilege_named(s->privileges[i]);
        if (bits != 0) {
            r->privileges |= bits;
            continue;
        }
        pl__error(c, s->at, ST_UNSUPPORTED, NULL, "privilege %s is not kept", s->privileges[i]);
        err_hint(c->err, "SELECT reads, INSERT, UPDATE and DELETE write, ALL is both.");
        return ST_UNSUPPORTED;
    }
    return ST_OK;
}

static const char *tag_of(enum ast_role action)
{
    static const char *const tags[] = {[ROLE_CREATE] = "CREATE ROLE",
                                       [ROLE_ALTER] = "ALTER ROLE",
                                       [ROLE_DROP] = "DROP ROLE",
                                       [ROLE_GRANT] = "GRANT",
                                       [ROLE_REVOKE] = "REVOKE"};
    return tags[action];
}

status pl__compile_role(struct pl__compile *c, const struct ast_stmt *s)
{
    static const enum pl_role_action actions[] = {[ROLE_CREATE] = PL_ROLE_CREATE,
                                                  [ROLE_ALTER] = PL_ROLE_ALTER,
                                                  [ROLE_DROP] = PL_ROLE_DROP,
                                                  [ROLE_GRANT] = PL_ROLE_GRANT,
                                                  [ROLE_REVOKE] = PL_ROLE_REVOKE};
    struct pl_utility *u = ARENA_NEW(c->a, struct pl_utility);
    struct pl_role *r = ARENA_NEW(c->a, struct pl_role);
    const char **names = ARENA_ARRAY(c->a, const char *, s->role_count + 1);
    c->plan->pub.kind = PL_ROLE;
    c->plan->pub.tag = tag_of(s->role);
    c->plan->pub.utility = u;
    c->plan->pattern_id = PATTERN_SESSION;
    c->plan->cacheable = false;
    u->role = r;
    if (s->refused != NULL)
        return pl__error(c, s->at, ST_UNSUPPORTED, NULL, "%s with %s is not supported",
                         tag_of(s->role), s->refused);
    *r = (struct pl_role){.action = actions[s->role],
                          .superuser = -1,
                          .login = s->role == ROLE_CREATE && s->is_user ? 1 : -1,
                          .if_exists = s->missing_ok,
                          .names = names,
                          .name_count = s->role_count};
    for (unsigned i = 0; i < s->role_count; i++)
        names[i] = s->roles[i] != NULL ? arena_strdup(c->a, bytes_str(s->roles[i])) : NULL;
    if (s->role == ROLE_GRANT || s->role == ROLE_REVOKE)
        return privileges(c, s, r);
    for (unsigned i = 0; i < s->option_count; i++)
        ST_TRY(role_option(c, &s->options[i], r));
    return ST_OK;
}
