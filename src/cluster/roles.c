/*
 * cluster/roles.c — see roles.h.
 *
 * A row: key "role/NAME", value lines of "field value". The key "secret" holds the random bytes
 * that cl_roles_secret gives. What reads them is this file only; a field that it does not know is
 * damage or a newer version, and the role is left out, with an error in the log.
 *
 * Invariants
 *   R1  What is in memory has been applied: a change is copied here after its command was.
 *   R2  One change at a time: the seq in memory is the row's, unless another node has written.
 *   R3  The role that stands for the cluster's owner cannot be dropped, nor lose its powers.
 *
 * Threads: reactor 0; readers copy under the lock.
 */
#include "cluster/roles.h"
#include "base/assert.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SYSTEM_NS 0u
#define PREFIX "role/"
#define SECRET_KEY "secret"
#define PAGE_ROWS 100u
#define PAGE_BYTES (256u * 1024u)

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
    void (*opened)(void *arg, status st);
    void *opened_arg;
    struct cl_role_change *first, **last; /* waiting; the first is under way if busy */
    bool busy;
    bool has_secret;
    uint8_t secret[CL_ROLES_SECRET_BYTES];
    pthread_mutex_t mu;
    struct cl_role *list; /* mu; sorted by name */
    unsigned count;       /* mu */
};

/* -- the copy in memory ------------------------------------------------------------------------ */

/* Where NAME is or would be. The lock is held. */
static unsigned position(const struct cl_roles *r, bytes name, bool *found)
{
    unsigned low = 0, high = r->count;
    *found = false;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        int c = bytes_cmp(bytes_str(r->list[middle].name), name);
        if (c == 0)
            *found = true;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void keep(struct cl_roles *r, const struct cl_role *role)
{
    bool found;
    pthread_mutex_lock(&r->mu);
    unsigned at = position(r, bytes_str(role->name), &found);
    if (!found) {
        r->list = realloc(r->list, (r->count + 1) * sizeof *r->list);
        ASSERT(r->list != NULL);
        memmove(&r->list[at + 1], &r->list[at], (r->count - at) * sizeof *r->list);
        r->count++;
    }
    r->list[at] = *role;
    pthread_mutex_unlock(&r->mu);
}

static void forget(struct cl_roles *r, const char *name)
{
    bool found;
    pthread_mutex_lock(&r->mu);
    unsigned at = position(r, bytes_str(name), &found);
    if (found) {
        r->count--;
        memmove(&r->list[at], &r->list[at + 1], (r->count - at) * sizeof *r->list);
    }
    pthread_mutex_unlock(&r->mu);
}

status cl_role_find(struct cl_node *n, bytes name, struct cl_role *out)
{
    struct cl_roles *r = n->roles;
    bool found;
    if (r == NULL)
        return ST_NOT_FOUND;
    pthread_mutex_lock(&r->mu);
    unsigned at = position(r, name, &found);
    if (found)
        *out = r->list[at];
    pthread_mutex_unlock(&r->mu);
    return found ? ST_OK : ST_NOT_FOUND;
}

bool cl_role_at(struct cl_node *n, unsigned i, struct cl_role *out)
{
    struct cl_roles *r = n->roles;
    if (r == NULL)
        return false;
    pthread_mutex_lock(&r->mu);
    bool there = i < r->count;
    if (there)
        *out = r->list[i];
    pthread_mutex_unlock(&r->mu);
    return there;
}

unsigned cl_role_privileges(const struct cl_role *r, uint32_t ns)
{
    if (r->superuser)
        return CL_MAY_READ | CL_MAY_WRITE;
    for (unsigned i = 0; i < r->grant_count; i++)
        if (r->grants[i].ns == ns)
            return r->grants[i].privileges;
    return 0;
}

static bool any_password(struct cl_roles *r, bool superuser)
{
    bool any = false;
    pthread_mutex_lock(&r->mu);
    for (unsigned i = 0; i < r->count; i++)
        any = any || (r->list[i].login && r->list[i].verifier[0] != '\0' &&
                      (r->list[i].superuser || !superuser));
    pthread_mutex_unlock(&r->mu);
    return any;
}

bool cl_roles_any_password(struct cl_node *n)
{
    return any_password(n->roles, false);
}

bool cl_roles_superuser_password(struct cl_node *n)
{
    return any_password(n->roles, true);
}

const uint8_t *cl_roles_secret(struct cl_node *n)
{
    return n->roles->secret;
}

/* -- rows -------------------------------------------------------------------------------------- */

static bytes value_of(struct arena *a, const struct cl_role *role)
{
    char *v = arena_printf(a, "superuser %d\nlogin %d\nconnections %d\n", role->superuser,
                           role->login, role->connections);
    if (role->verifier[0] != '\0')
        v = arena_printf(a, "%sverifier %s\n", v, role->verifier);
    for (unsigned i = 0; i < role->grant_count; i++)
        v = arena_printf(a, "%sgrant %u %u\n", v, role->grants[i].ns, role->grants[i].privileges);
    return bytes_str(v);
}

static bool read_field(struct cl_role *role, const char *line)
{
    int n = 0, end = 0;
    unsigned ns, privileges;
    if (sscanf(line, "superuser %d%n", &n, &end) == 1)
        role->superuser = n != 0;
    else if (sscanf(line, "login %d%n", &n, &end) == 1)
        role->login = n != 0;
    else if (sscanf(line, "connections %d%n", &n, &end) == 1)
        role->connections = n;
    else if (strncmp(line, "verifier ", 9) == 0)
        end = 9 + snprintf(role->verifier, sizeof role->verifier, "%s", line + 9);
    else if (sscanf(line, "grant %u %u%n", &ns, &privileges, &end) == 2 &&
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
    size_t skip = sizeof PREFIX - 1;
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

static bool on_row(void *arg, const struct kv_row *row)
{
    struct cl_roles *r = arg;
    struct cl_role role;
    bytes key = row->col[KVT_KEY].b;
    if (bytes_eq(key, BYTES_LIT(SECRET_KEY))) {
        r->has_secret = row->col[KVT_VALUE].b.size == sizeof r->secret;
        if (r->has_secret)
            memcpy(r->secret, row->col[KVT_VALUE].b.data, sizeof r->secret);
    } else if (bytes_has_prefix(key, BYTES_LIT(PREFIX))) {
        if (!read_role(&r->arena, row, &role))
            LOG_ERROR("roles.not_readable", LOG_BYTES("key", key));
        else if (r->count < CL_ROLES_MAX)
            keep(r, &role);
    }
    return true;
}

/* -- calls ------------------------------------------------------------------------------------- */

static void call_done(struct cl_call *call, status st)
{
    struct cl_roles *r = call->arg;
    r->next(r, st);
}

static void go_on(struct cl_roles *r, status st, void (*next)(struct cl_roles *r, status st))
{
    r->next = next;
    if (st != ST_PENDING)
        next(r, st);
}

static struct cl_call *fresh_call(struct cl_roles *r)
{
    arena_reset(&r->arena);
    r->call = (struct cl_call){.done = call_done,
                               .arg = r,
                               .arena = &r->arena,
                               .on_row = on_row,
                               .max_rows = PAGE_ROWS,
                               .max_bytes = PAGE_BYTES};
    return &r->call;
}

/* A row is written: CONFLICT as for INSERT. */
static status put_row(struct cl_roles *r, bytes key, bytes value, enum kv_conflict conflict)
{
    static const unsigned columns[] = {KVT_KEY, KVT_VALUE};
    r->cells[0] = kv_text(key);
    r->cells[1] = kv_text(value);
    r->op = (struct kv_op){.kind = KV_OP_INSERT,
                           .table = KV_KV,
                           .ns = SYSTEM_NS,
                           .now = cl__timestamptz(cl__node_now_us(r->node)),
                           .want_rows = true,
                           .columns = columns,
                           .column_count = ARRAY_LEN(columns),
                           .values = r->cells,
                           .row_count = 1,
                           .conflict = conflict};
    r->ops[0] = &r->op;
    return cl_ops(r->client, &r->call, r->ops, 1);
}

/* -- opening ----------------------------------------------------------------------------------- */

static void opened(struct cl_roles *r, status st)
{
    if (st != ST_OK)
        LOG_ERROR("roles.not_read", LOG_STR("why", r->call.err.message));
    else if (!cl_roles_any_password(r->node))
        LOG_WARN("auth.no_password", LOG_STR("served", "clients of this host only"));
    r->opened(r->opened_arg, st);
}

static void first_made(struct cl_roles *r, status st)
{
    if (st == ST_OK && r->call.result.row_count == 1) {
        struct cl_role role = {.name = CL_ROLE_FIRST,
                               .superuser = true,
                               .login = true,
                               .connections = -1,
                               .seq = r->call.result.rows[0].col[KVT_SEQ].i};
        keep(r, &role);
    }
    opened(r, st);
}

static void make_first(struct cl_roles *r)
{
    struct cl_role role = {
        .name = CL_ROLE_FIRST, .superuser = true, .login = true, .connections = -1};
    bool found;
    pthread_mutex_lock(&r->mu);
    (void)position(r, BYTES_LIT(CL_ROLE_FIRST), &found);
    pthread_mutex_unlock(&r->mu);
    if (found) {
        opened(r, ST_OK);
        return;
    }
    fresh_call(r);
    bytes key = bytes_str(arena_printf(&r->arena, PREFIX "%s", role.name));
    go_on(r, put_row(r, key, value_of(&r->arena, &role), KV_CONFLICT_NOTHING), first_made);
}

static void secret_made(struct cl_roles *r, status st)
{
    if (st == ST_OK)
        make_first(r);
    else
        opened(r, st);
}

static void page_read(struct cl_roles *r, status st);

static void read_page(struct cl_roles *r)
{
    struct cl_call *call = fresh_call(r);
    call->arena = &r->pages;
    go_on(r, cl_read(r->client, call, &r->read, &r->pos), page_read);
}

static void page_read(struct cl_roles *r, status st)
{
    if (st == ST_OK) {
        read_page(r);
        return;
    }
    arena_reset(&r->pages);
    if (st != ST_END) {
        opened(r, st);
        return;
    }
    if (r->has_secret) {
        make_first(r);
        return;
    }
    struct env *env = r->node->env;
    env->ops->random(env, r->secret, sizeof r->secret);
    fresh_call(r);
    go_on(r,
          put_row(r, BYTES_LIT(SECRET_KEY), bytes_make(r->secret, sizeof r->secret),
                  KV_CONFLICT_NOTHING),
          secret_made);
}

void cl_roles_open(struct cl_node *n, void (*done)(void *arg, status st), void *arg)
{
    struct cl_roles *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    ASSERT(n->roles == NULL);
    n->roles = r;
    r->node = n;
    r->client = cl_client_new(n, &n->reactors[0], SYSTEM_NS);
    r->opened = done;
    r->opened_arg = arg;
    r->last = &r->first;
    pthread_mutex_init(&r->mu, NULL);
    arena_init(&r->arena, 4096);
    arena_init(&r->pages, 4096);
    r->read = (struct kv_read){.kind = KV_READ_RANGE,
                               .table = KV_KV,
                               .ns = SYSTEM_NS,
                               .lower = kv_key_prefix(&r->pages, SYSTEM_NS, KV_KV, NULL, 0),
                               .upper = kv_key_prefix(&r->pages, SYSTEM_NS + 1, KV_KV, NULL, 0),
                               .limit = -1};
    read_page(r);
}

void cl_roles_close(struct cl_node *n)
{
    struct cl_roles *r = n->roles;
    if (r == NULL)
        return;
    ASSERT(r->first == NULL);
    n->roles = NULL;
    cl_client_free(r->client);
    arena_fini(&r->arena);
    arena_fini(&r->pages);
    pthread_mutex_destroy(&r->mu);
    free(r->list);
    free(r);
}

/* -- changes ----------------------------------------------------------------------------------- */

static void change_start(struct cl_roles *r);

static void change_done(struct cl_roles *r, status st)
{
    struct cl_role_change *c = r->first;
    r->first = c->next;
    if (r->first == NULL)
        r->last = &r->first;
    c->next = NULL;
    if (st != ST_OK && c->err.code == ST_OK) {
        c->err = r->call.err;
        err_default(&c->err, st);
    }
    r->busy = false;
    c->done(c, st); /* may ask for another change */
    if (!r->busy && r->first != NULL)
        change_start(r);
}

static void change_applied(struct cl_roles *r, status st)
{
    struct cl_role_change *c = r->first;
    if (st == ST_EXISTS)
        err_set_state(&c->err, ST_EXISTS, "42710", "role \"%s\" already exists", c->role.name);
    if (st == ST_OK && r->call.result.affected != 1)
        st = err_set(&c->err, ST_CONFLICT, "role \"%s\" was changed concurrently", c->role.name);
    if (st == ST_OK && c->kind == CL_ROLE_DROP) {
        forget(r, c->role.name);
    } else if (st == ST_OK) {
        ASSERT(r->call.result.row_count == 1);
        c->role.seq = r->call.result.rows[0].col[KVT_SEQ].i;
        keep(r, &c->role);
    }
    change_done(r, st);
}

static status rewrite_row(struct cl_roles *r, bytes key, bytes value,
                          const struct cl_role_change *c)
{
    r->cells[0] = kv_text(key);
    r->set = (struct kv_set){.column = KVT_VALUE, .kind = KV_SET_VALUE, .value = kv_text(value)};
    r->filter = (struct kv_filter){KVT_SEQ, KV_EQ, kv_int(c->role.seq)};
    r->op = (struct kv_op){.kind = c->kind == CL_ROLE_DROP ? KV_OP_DELETE : KV_OP_UPDATE,
                           .table = KV_KV,
                           .ns = SYSTEM_NS,
                           .now = cl__timestamptz(cl__node_now_us(r->node)),
                           .want_rows = true,
                           .keys = r->cells,
                           .key_count = 1,
                           .sets = &r->set,
                           .set_count = c->kind == CL_ROLE_DROP ? 0 : 1,
                           .filters = &r->filter,
                           .filter_count = 1};
    r->ops[0] = &r->op;
    return cl_ops(r->client, &r->call, r->ops, 1);
}

static NODISCARD status change_allowed(struct cl_roles *r, struct cl_role_change *c)
{
    bool first = strcmp(c->role.name, CL_ROLE_FIRST) == 0;
    if (first && c->kind == CL_ROLE_DROP)
        return err_set_state(
            &c->err, ST_DENIED, "2BP01",
            "cannot drop role \"%s\" because it is required by the database system", c->role.name);
    if (first && (!c->role.superuser || !c->role.login))
        return err_set_state(&c->err, ST_DENIED, "42501",
                             "role \"%s\" stays a superuser who may log in", c->role.name);
    if (c->kind == CL_ROLE_CREATE && r->count >= CL_ROLES_MAX)
        return err_set(&c->err, ST_LIMIT, "there are %u roles already", CL_ROLES_MAX);
    return ST_OK;
}

static void change_start(struct cl_roles *r)
{
    struct cl_role_change *c = r->first;
    r->busy = true;
    fresh_call(r);
    bytes key = bytes_str(arena_printf(&r->arena, PREFIX "%s", c->role.name));
    bytes value = value_of(&r->arena, &c->role);
    status st = change_allowed(r, c);
    if (st == ST_OK)
        st = c->kind == CL_ROLE_CREATE ? put_row(r, key, value, KV_CONFLICT_ERROR)
                                       : rewrite_row(r, key, value, c);
    go_on(r, st, change_applied);
}

void cl_role_change(struct cl_node *n, struct cl_role_change *c)
{
    struct cl_roles *r = n->roles;
    err_clear(&c->err);
    c->err.code = ST_OK;
    c->next = NULL;
    *r->last = c;
    r->last = &c->next;
    if (!r->busy)
        change_start(r);
}
