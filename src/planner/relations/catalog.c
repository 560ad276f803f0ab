/*
 * planner/relations/catalog.c — the entries of planner/catalog.h.
 *
 * A query is prepared once (parse thread), and run any number of times: a snapshot on reactor 0 of
 * what only reactor 0 may read, then the evaluation on a pool thread.
 */
#include "cluster/roles.h"
#include "planner/relations/pg_rows.h"

#include <stdlib.h>

/* The shape outlives the query where A does. */
static void copy_shape(struct arena *a, const struct catalog_query *q, struct catalog_shape *out)
{
    struct pl_column *columns = ARENA_ARRAY(a, struct pl_column, q->column_count + 1);
    uint32_t *types = ARENA_ARRAY(a, uint32_t, q->param_count + 1);
    for (unsigned i = 0; i < q->column_count; i++) {
        columns[i] = q->columns[i];
        columns[i].name = arena_strdup(a, bytes_str(q->columns[i].name));
    }
    for (unsigned i = 0; i < q->param_count; i++)
        types[i] = q->param_types[i];
    *out = (struct catalog_shape){.columns = columns,
                                  .column_count = q->column_count,
                                  .param_types = types,
                                  .param_count = q->param_count};
}

status pl_catalog_prepare(struct cl_node *node, bytes text, const uint32_t *types,
                          unsigned type_count, struct arena *a, struct catalog_query **out,
                          struct catalog_shape *shape, struct err *err)
{
    UNUSED(node);
    struct catalog_query *q = calloc(1, sizeof(*q));
    *out = NULL;
    if (!q)
        return err_set(err, ST_NO_MEMORY, "out of memory");
    arena_init(&q->arena, 16 * 1024);
    status st = rel_translate(q, text, types, type_count, err);
    if (st != ST_OK) {
        pl_catalog_query_free(q);
        return st;
    }
    copy_shape(a, q, shape);
    *out = q;
    return ST_OK;
}

void pl_catalog_query_free(struct catalog_query *q)
{
    if (!q)
        return;
    arena_fini(&q->arena);
    free(q);
}

bool pl_catalog_wants_sessions(const struct catalog_query *q)
{
    for (unsigned i = 0; i < q->rel_count; i++)
        if (q->rels[i]->rows && rel__is_of_sessions(q->rels[i]->rows))
            return true;
    for (unsigned i = 0; i < rel_function_count(); i++)
        if (q->functions[i] && rel__signals(rel_function_at(i)->call))
            return true;
    return false;
}

/* ---- snapshot ---- */

struct copying {
    struct catalog_snapshot *s;
    struct rel_table_copy *t;
};

static struct cell cell_of_datum(struct arena *a, uint32_t type, const struct kv_datum *d)
{
    if (d->null)
        return cell_null();
    if (type == OID_TEXT)
        return cell_bytes(arena_copy(a, d->b));
    if (type == OID_CHAR) {
        char letter = (char)d->i;
        return cell_bytes(arena_copy(a, bytes_make(&letter, letter != 0)));
    }
    if (type == OID_BYTEA) { /* in its text form */
        static const char digits[] = "0123456789abcdef";
        uint8_t *hex = arena_alloc(a, d->b.size * 2 + 2);
        hex[0] = '\\';
        hex[1] = 'x';
        for (size_t i = 0; i < d->b.size; i++) {
            hex[2 + 2 * i] = (uint8_t)digits[d->b.data[i] >> 4];
            hex[3 + 2 * i] = (uint8_t)digits[d->b.data[i] & 15];
        }
        return cell_bytes(bytes_make(hex, d->b.size * 2 + 2));
    }
    return cell_int(d->i);
}

static void copy_row(void *arg, const struct kv_datum *values)
{
    struct copying *c = arg;
    struct rel_table_copy *t = c->t;
    struct arena *a = &c->s->arena;
    unsigned width = t->rel->column_count;
    if (t->row_count == t->row_capacity)
        t->cells = arena_grow(a, t->cells, sizeof(*t->cells) * width, &t->row_capacity, 16);
    struct cell *row = t->cells + t->row_count++ * width;
    for (unsigned i = 0; i < width; i++)
        row[i] = cell_of_datum(a, t->rel->columns[i].type, &values[i]);
}

static void copy_databases(struct catalog_snapshot *s, struct cl_node *node)
{
    uint32_t ns;
    while (cl_database_at(node, s->database_count, &ns))
        s->database_count++;
    s->databases = ARENA_ARRAY(&s->arena, struct rel_database, s->database_count + 1);
    for (unsigned i = 0; i < s->database_count; i++) {
        const char *name = cl_database_at(node, i, &ns);
        s->databases[i].name = arena_strdup(&s->arena, bytes_str(name));
        s->databases[i].oid = 16000u + ns;
    }
}

/* "{app=arwd/metadb,ro=r/metadb}" */
static void note_privileges(struct arena *a, struct rel_database *d, const struct cl_role *r)
{
    unsigned bits = r->superuser ? 0 : cl_role_privileges(r, d->oid - 16000u);
    if (bits == 0)
        return;
    bytes name = rel_quote_ident(a, bytes_str(r->name));
    size_t kept = d->acl ? strlen(d->acl) - 1 : 0; /* without the brace at its end */
    d->acl = arena_printf(a, "%.*s%s%.*s=%s%s%s/metadb}", (int)kept, d->acl ? d->acl : "",
                          d->acl ? "," : "{", (int)name.size, (const char *)name.data,
                          bits & CL_MAY_WRITE ? "a" : "", bits & CL_MAY_READ ? "r" : "",
                          bits & CL_MAY_WRITE ? "wd" : "");
}

static void copy_roles(struct catalog_snapshot *s, struct cl_node *node)
{
    struct cl_role r;
    unsigned room = 8;
    s->roles = ARENA_ARRAY(&s->arena, struct rel_role, room);
    for (unsigned i = 0; cl_role_at(node, i, &r); i++) {
        if (i == room) {
            struct rel_role *old = s->roles;
            s->roles = ARENA_ARRAY(&s->arena, struct rel_role, 2 * room);
            memcpy(s->roles, old, room * sizeof *old);
            room *= 2;
        }
        bool owner = strcmp(r.name, CL_ROLE_FIRST) == 0;
        s->roles[i] = (struct rel_role){.oid = owner ? OID_OWNER : rel_name_oid("role", r.name),
                                        .name = arena_strdup(&s->arena, bytes_str(r.name)),
                                        .superuser = r.superuser,
                                        .login = r.login,
                                        .connections = r.connections,
                                        .expires = r.expires,
                                        .expires_at = r.expires_at};
        uint8_t *privileges = arena_alloc(&s->arena, s->database_count + 1);
        for (unsigned d = 0; d < s->database_count; d++)
            privileges[d] = (uint8_t)cl_role_privileges(&r, s->databases[d].oid - 16000u);
        s->roles[i].privileges = privileges;
        s->role_count = i + 1;
        for (unsigned d = 0; d < s->database_count; d++)
            note_privileges(&s->arena, &s->databases[d], &r);
    }
}

struct catalog_snapshot *pl_catalog_snapshot(struct cl_node *node, const struct catalog_query *q)
{
    struct catalog_snapshot *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    arena_init(&s->arena, 4096);
    s->tables = ARENA_ARRAY(&s->arena, struct rel_table_copy, q->rel_count + 1);
    if (node) {
        copy_databases(s, node);
        copy_roles(s, node);
        s->config = cl_node_config(node);
        s->started = cl_node_started(node);
    }
    for (unsigned i = 0; i < q->rel_count; i++) {
        const struct rel *r = q->rels[i];
        if (!r->view && !r->patterns)
            continue;
        struct rel_table_copy *t = &s->tables[s->table_count++];
        t->rel = r;
        struct copying c = {s, t};
        if (r->view)
            r->view->rows(node, copy_row, &c);
        else
            pl_patterns_rows(copy_row, &c);
    }
    return s;
}

void pl_catalog_snapshot_free(struct catalog_snapshot *s)
{
    if (!s)
        return;
    arena_fini(&s->arena);
    free(s);
}

/* ---- run ---- */

status pl_catalog_run(const struct catalog_query *q, struct catalog_snapshot *snap,
                      const struct pl_value *params, unsigned count, const struct pl_context *ctx,
                      const atomic_bool *cancel, struct arena *a,
                      void (*emit)(void *arg, const struct pl_value *values), void *arg,
                      struct err *err)
{
    struct rel_env env = {.ctx = ctx, .snap = snap, .cancel = cancel, .arena = a, .keep = a};
    return rel_evaluate(q, &env, params, count, emit, arg, err);
}

bool pl_catalog_has_function(const char *name)
{
    return rel_function_find(name, 0) != -1;
}
