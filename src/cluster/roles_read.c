/*
 * cluster/roles_read.c — the rows of roles: all are read into a list, which then is the copy.
 *
 * A row: key "role/NAME", value lines of "field value". The key "secret" holds the random bytes
 * that cl_roles_secret gives. What reads them is this file only; a field that it does not know is
 * damage or a newer version, and the role is left out, with an error in the log.
 *
 * A node alone makes what is missing before it opens. Among others the rows are what is applied
 * here, whoever leads: they are read again in the turn in which an applied command has changed one,
 * and what is missing is made by the node that leads their shard.
 *
 * Threads: reactor 0.
 */
#include "base/assert.h"
#include "base/log.h"
#include "cluster/roles_internal.h"
#include <stdio.h>
#include <stdlib.h>

/* -- rows -------------------------------------------------------------------------------------- */

static bool read_field(struct cl_role *role, const char *line)
{
    int n = 0, end = 0;
    unsigned ns, privileges;
    long long until;
    if (sscanf(line, "superuser %d%n", &n, &end) == 1) {
        role->superuser = n != 0;
    } else if (sscanf(line, "login %d%n", &n, &end) == 1) {
        role->login = n != 0;
    } else if (sscanf(line, "connections %d%n", &n, &end) == 1) {
        role->connections = n;
    } else if (sscanf(line, "until %lld%n", &until, &end) == 1) {
        role->expires = true;
        role->expires_at = until;
    } else if (strncmp(line, "verifier ", 9) == 0) {
        end = 9 + snprintf(role->verifier, sizeof role->verifier, "%s", line + 9);
    } else if (sscanf(line, "grant %u %u%n", &ns, &privileges, &end) == 2 &&
               role->grant_count < CL_ROLE_GRANTS_MAX) {
        role->grants[role->grant_count].ns = ns;
        role->grants[role->grant_count++].privileges = privileges;
    } else {
        return false;
    }
    return (size_t)end == strlen(line) && strlen(role->verifier) + 1 < sizeof role->verifier;
}

static bool read_role(struct arena *a, const struct kv_row *row, struct cl_role *out)
{
    bytes name = row->col[KVT_KEY].b, value = row->col[KVT_VALUE].b;
    size_t skip = sizeof CL__ROLES_PREFIX - 1;
    *out = (struct cl_role){.connections = -1, .seq = row->col[KVT_SEQ].i};
    if (name.size <= skip || name.size - skip >= sizeof out->name)
        return false;
    memcpy(out->name, name.data + skip, name.size - skip);
    char *line = arena_strdup(a, value), *end;
    for (; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        if (end == NULL)
            return false;
        *end = '\0';
        if (!read_field(out, line))
            return false;
    }
    return true;
}

/* Rows come in order of their keys, so roles in order of their names. */
static bool on_row(void *arg, const struct kv_row *row)
{
    struct cl_roles *r = arg;
    struct cl_role role;
    bytes key = row->col[KVT_KEY].b, value = row->col[KVT_VALUE].b;
    if (bytes_eq(key, BYTES_LIT(CL__ROLES_SECRET_KEY))) {
        r->fresh_secret = value.size == sizeof r->secret_read;
        if (r->fresh_secret)
            memcpy(r->secret_read, value.data, sizeof r->secret_read);
    } else if (bytes_has_prefix(key, BYTES_LIT(CL__ROLES_PREFIX))) {
        if (!read_role(&r->arena, row, &role)) {
            LOG_ERROR("roles.not_readable", LOG_BYTES("key", key));
        } else if (r->fresh_count < CL_ROLES_MAX) {
            r->fresh = realloc(r->fresh, (r->fresh_count + 1) * sizeof *r->fresh);
            ASSERT(r->fresh != NULL);
            r->fresh[r->fresh_count++] = role;
        }
    }
    return true;
}

static void publish(struct cl_roles *r)
{
    pthread_mutex_lock(&r->mu);
    free(r->list);
    r->list = r->fresh;
    r->count = r->fresh_count;
    if (!r->has_secret && r->fresh_secret)
        memcpy(r->secret, r->secret_read, sizeof r->secret);
    r->has_secret |= r->fresh_secret;
    cl__roles_changed(r);
    pthread_mutex_unlock(&r->mu);
    r->fresh = NULL;
}

/* -- reading ----------------------------------------------------------------------------------- */

static bool alone(const struct cl_roles *r)
{
    return r->node->host == NULL;
}

static void opened(struct cl_roles *r, status st)
{
    void (*fn)(void *arg, status st) = r->opened;
    if (st != ST_OK)
        LOG_ERROR("roles.not_read", LOG_STR("why", r->call.err.message));
    else if (fn != NULL && r->has_secret && !cl_roles_any_password(r->node))
        LOG_WARN("auth.no_password", LOG_STR("served", "clients of this host only"));
    r->opened = NULL;
    if (fn != NULL)
        fn(r->arg, st);
}

static void end(struct cl_roles *r, status st)
{
    if (st != ST_OK)
        r->seen = UINT64_MAX; /* again in the next turn */
    opened(r, st);            /* may close R */
    r->busy = false;
    cl__roles_next(r);
}

static uint64_t system_writes(const struct cl_roles *r)
{
    return kv_state_system_writes(cl_shard_of(r->node, KV_KV)->state);
}

static bool make_missing(struct cl_roles *r);

static void page_read(struct cl_roles *r, status st);

static void read_page(struct cl_roles *r)
{
    struct cl_call *call = cl__roles_call(r, on_row);
    call->arena = &r->pages;
    cl__roles_go_on(r, cl_read(r->client, call, &r->read, &r->pos), page_read);
}

static void page_read(struct cl_roles *r, status st)
{
    if (st == ST_OK) {
        read_page(r);
        return;
    }
    arena_reset(&r->pages);
    if (st != ST_END) {
        free(r->fresh);
        r->fresh = NULL;
        end(r, st);
        return;
    }
    publish(r);
    if (!alone(r) || !make_missing(r))
        end(r, ST_OK);
}

void cl__roles_read(struct cl_roles *r)
{
    ASSERT(!r->busy);
    r->busy = true;
    r->seen = system_writes(r);
    ASSERT(r->fresh == NULL);
    r->fresh_count = 0;
    r->fresh_secret = false;
    r->pos = (struct kv_read_pos){0};
    r->read = (struct kv_read){.kind = KV_READ_RANGE,
                               .table = KV_KV,
                               .ns = CL__ROLES_NS,
                               .lower = kv_key_prefix(&r->pages, CL__ROLES_NS, KV_KV, NULL, 0),
                               .upper = kv_key_prefix(&r->pages, CL__ROLES_NS + 1, KV_KV, NULL, 0),
                               .limit = -1};
    read_page(r);
}

/* -- what is missing --------------------------------------------------------------------------- */

/* What is there now is another node's, or ours: the rows say. */
static void made(struct cl_roles *r, status st)
{
    r->busy = false;
    if (st == ST_OK)
        cl__roles_read(r);
    else
        end(r, st);
}

static bool make_missing(struct cl_roles *r)
{
    uint8_t secret[CL_ROLES_SECRET_BYTES];
    struct cl_role role = {
        .name = CL_ROLE_FIRST, .superuser = true, .login = true, .connections = -1};
    bytes key, value;
    if (r->has_secret && cl__roles_has(r, CL_ROLE_FIRST))
        return false;
    struct arena *a = cl__roles_call(r, NULL)->arena;
    if (r->has_secret) {
        key = bytes_str(arena_printf(a, CL__ROLES_PREFIX "%s", role.name));
        value = cl__role_value(a, &role);
    } else {
        r->node->env->ops->random(r->node->env, secret, sizeof secret);
        key = BYTES_LIT(CL__ROLES_SECRET_KEY);
        value = arena_copy(a, bytes_make(secret, sizeof secret));
    }
    cl__roles_go_on(r, cl__roles_put(r, key, value, KV_CONFLICT_NOTHING), made);
    return true;
}

void cl_roles_led(struct cl_node *n)
{
    if (n->roles != NULL)
        n->roles->make = true;
}

void cl_roles_turn(struct cl_node *n)
{
    struct cl_roles *r = n->roles;
    struct err err;
    if (r == NULL || r->busy || r->closing || cl_shard_of(n, KV_KV)->fenced != ST_OK)
        return;
    if (system_writes(r) != r->seen) {
        cl__roles_read(r);
        return;
    }
    err_clear(&err);
    if (!r->make || cl_shard_serving(cl_shard_of(n, KV_KV), &err) != ST_OK)
        return;
    r->make = false;
    r->busy = true;
    if (!make_missing(r))
        r->busy = false;
}

/* -- opening ----------------------------------------------------------------------------------- */

void cl_roles_open(struct cl_node *n, void (*done)(void *arg, status st), void *arg)
{
    struct cl_roles *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    ASSERT(n->roles == NULL);
    n->roles = r;
    r->node = n;
    r->client = cl_client_new(n, &n->reactors[0], CL__ROLES_NS);
    r->client->local = !alone(r);
    r->opened = done;
    r->arg = arg;
    r->make = true;
    r->last = &r->first;
    pthread_mutex_init(&r->mu, NULL);
    arena_init(&r->arena, 4096);
    arena_init(&r->pages, 4096);
    cl__roles_read(r);
}
