/*
 * cluster/roles.c — see roles.h: the copy in memory, and changes.
 *
 * Invariants
 *   R1  What is in memory has been applied: a change is copied here after its command was, and all
 *       rows are read again where something else has changed them (roles_read.c).
 *   R2  One change at a time: the seq in memory is the row's, unless another node has written.
 *   R3  The role that stands for the cluster's owner cannot be dropped, nor lose its powers.
 *   R4  `version` has grown before anybody hears that a role was changed.
 *
 * Threads: reactor 0; readers copy under the lock.
 */
#include "base/assert.h"
#include "cluster/roles_internal.h"
#include <stdlib.h>

#define PAGE_ROWS 100u
#define PAGE_BYTES (256u * 1024u)

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

void cl__roles_changed(struct cl_roles *r)
{
    atomic_fetch_add_explicit(&r->version, 1, memory_order_release); /* R4 */
}

uint64_t cl_roles_version(struct cl_node *n)
{
    return atomic_load_explicit(&n->roles->version, memory_order_acquire);
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
    cl__roles_changed(r);
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
    cl__roles_changed(r);
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

bool cl__roles_has(struct cl_roles *r, const char *name)
{
    bool found;
    pthread_mutex_lock(&r->mu);
    (void)position(r, bytes_str(name), &found);
    pthread_mutex_unlock(&r->mu);
    return found;
}

bool cl_roles_known(struct cl_node *n)
{
    struct cl_roles *r = n->roles;
    if (n->host == NULL)
        return true;
    if (r == NULL)
        return false;
    pthread_mutex_lock(&r->mu);
    bool known = r->has_secret && r->count > 0;
    pthread_mutex_unlock(&r->mu);
    return known;
}

/* -- rows -------------------------------------------------------------------------------------- */

bytes cl__role_value(struct arena *a, const struct cl_role *role)
{
    char *v = arena_printf(a, "superuser %d\nlogin %d\nconnections %d\n", role->superuser,
                           role->login, role->connections);
    if (role->verifier[0] != '\0')
        v = arena_printf(a, "%sverifier %s\n", v, role->verifier);
    if (role->expires)
        v = arena_printf(a, "%suntil %lld\n", v, (long long)role->expires_at);
    for (unsigned i = 0; i < role->grant_count; i++)
        v = arena_printf(a, "%sgrant %u %u\n", v, role->grants[i].ns, role->grants[i].privileges);
    return bytes_str(v);
}

/* -- calls ------------------------------------------------------------------------------------- */

static void call_done(struct cl_call *call, status st)
{
    struct cl_roles *r = call->arg;
    r->next(r, st);
}

void cl__roles_go_on(struct cl_roles *r, status st, void (*next)(struct cl_roles *r, status st))
{
    r->next = next;
    if (st != ST_PENDING)
        next(r, st);
}

struct cl_call *cl__roles_call(struct cl_roles *r, bool (*on_row)(void *, const struct kv_row *))
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

status cl__roles_put(struct cl_roles *r, bytes key, bytes value, enum kv_conflict conflict)
{
    static const unsigned columns[] = {KVT_KEY, KVT_VALUE};
    r->cells[0] = kv_text(key);
    r->cells[1] = kv_text(value);
    r->op = (struct kv_op){.kind = KV_OP_INSERT,
                           .table = KV_KV,
                           .ns = CL__ROLES_NS,
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

/* -- the end ----------------------------------------------------------------------------------- */

static void destroy(struct cl_roles *r)
{
    r->node->roles = NULL;
    cl_client_free(r->client);
    arena_fini(&r->arena);
    arena_fini(&r->pages);
    pthread_mutex_destroy(&r->mu);
    free(r->fresh);
    free(r->list);
    free(r);
}

void cl_roles_close(struct cl_node *n)
{
    struct cl_roles *r = n->roles;
    if (r == NULL)
        return;
    ASSERT(r->first == NULL);
    r->closing = true;
    if (!r->busy)
        destroy(r);
}

/* -- changes ----------------------------------------------------------------------------------- */

static void change_start(struct cl_roles *r);

void cl__roles_next(struct cl_roles *r)
{
    if (r->busy)
        return;
    if (r->closing)
        destroy(r);
    else if (r->first != NULL)
        change_start(r);
}

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
    r->busy = r->changing = false;
    c->done(c, st); /* may ask for another change */
    cl__roles_next(r);
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
                           .ns = CL__ROLES_NS,
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
    r->busy = r->changing = true;
    (void)cl__roles_call(r, NULL);
    bytes key = bytes_str(arena_printf(&r->arena, CL__ROLES_PREFIX "%s", c->role.name));
    bytes value = cl__role_value(&r->arena, &c->role);
    status st = change_allowed(r, c);
    if (st == ST_OK)
        st = c->kind == CL_ROLE_CREATE ? cl__roles_put(r, key, value, KV_CONFLICT_ERROR)
                                       : rewrite_row(r, key, value, c);
    cl__roles_go_on(r, st, change_applied);
}

void cl_role_change(struct cl_node *n, struct cl_role_change *c)
{
    struct cl_roles *r = n->roles;
    err_clear(&c->err);
    c->err.code = ST_OK;
    c->next = NULL;
    *r->last = c;
    r->last = &c->next;
    cl__roles_next(r);
}
