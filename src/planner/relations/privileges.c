/*
 * planner/relations/privileges.c — has_…_privilege() and pg_has_role().
 *
 * metadb keeps two privileges, per role and database: to read and to write. A superuser may
 * everything. Beyond that, as the session's own checks have it: every role may connect, look into
 * the catalogue and schema metadb, and use types; functions of schema metadb are for superusers.
 * There are no members of roles and no grant options.
 *
 * Objects that do not exist are errors by name and NULL by OID, as in PostgreSQL.
 */
#include "cluster/roles.h"
#include "planner/relations/pg_rows.h"

#include <ctype.h>
#include <stdio.h>

enum privilege {
    MAY_SELECT = 1 << 0,
    MAY_INSERT = 1 << 1,
    MAY_UPDATE = 1 << 2,
    MAY_DELETE = 1 << 3,
    MAY_USE = 1 << 4,
    MAY_CONNECT = 1 << 5,
    MAY_EXECUTE = 1 << 6,
    MAY_NOTHING = 1 << 7, /* what only a superuser has: CREATE, TRUNCATE, grant options … */
};

struct privilege_name {
    const char *name;
    unsigned bit;
};

static const struct privilege_name of_table[] = {
    {"SELECT", MAY_SELECT},    {"INSERT", MAY_INSERT},
    {"UPDATE", MAY_UPDATE},    {"DELETE", MAY_DELETE},
    {"TRUNCATE", MAY_NOTHING}, {"REFERENCES", MAY_NOTHING},
    {"TRIGGER", MAY_NOTHING},  {NULL, 0}};
static const struct privilege_name of_column[] = {{"SELECT", MAY_SELECT},
                                                  {"INSERT", MAY_INSERT},
                                                  {"UPDATE", MAY_UPDATE},
                                                  {"REFERENCES", MAY_NOTHING},
                                                  {NULL, 0}};
static const struct privilege_name of_database[] = {{"CREATE", MAY_NOTHING},
                                                    {"CONNECT", MAY_CONNECT},
                                                    {"TEMPORARY", MAY_NOTHING},
                                                    {"TEMP", MAY_NOTHING},
                                                    {NULL, 0}};
static const struct privilege_name of_schema[] = {
    {"CREATE", MAY_NOTHING}, {"USAGE", MAY_USE}, {NULL, 0}};
static const struct privilege_name of_sequence[] = {
    {"USAGE", MAY_USE}, {"SELECT", MAY_SELECT}, {"UPDATE", MAY_UPDATE}, {NULL, 0}};
static const struct privilege_name of_function[] = {{"EXECUTE", MAY_EXECUTE}, {NULL, 0}};
static const struct privilege_name of_usage[] = {{"USAGE", MAY_USE}, {NULL, 0}};
static const struct privilege_name of_tablespace[] = {{"CREATE", MAY_NOTHING}, {NULL, 0}};
static const struct privilege_name of_role[] = {{"USAGE", MAY_USE}, {"MEMBER", MAY_USE}, {NULL, 0}};

/* A call taken apart: [role,] OBJECTS…, privileges. */
struct asked {
    const struct rel_role *role;
    const struct cell *objects;
    unsigned wanted;
};

/* ---- who ---- */

static const struct rel_role nobody = {.name = "public"};

static const struct rel_role *find_role(struct rel_env *env, const struct cell *said)
{
    unsigned count;
    const struct rel_role *roles = rel__role_list(env, &count);
    const char *name = said->kind == CELL_INT ? NULL : rel_cell_str(env, said);
    for (unsigned i = 0; i < count; i++)
        if (name ? strcmp(roles[i].name, name) == 0 : roles[i].oid == (uint32_t)said->i)
            return &roles[i];
    if (name == NULL || strcmp(name, "public") == 0)
        return &nobody;
    return NULL;
}

bool rel__session_is_superuser(struct rel_env *env)
{
    struct cell user = cell_str(env->ctx->user);
    const struct rel_role *r = user.kind == CELL_NULL ? NULL : find_role(env, &user);
    return r != NULL && r->superuser;
}

/* Bits of enum cl_privilege that R has where the session is. */
static unsigned privileges_here(const struct rel_env *env, const struct rel_role *r)
{
    const struct catalog_snapshot *s = env->snap;
    for (unsigned i = 0; s && r->privileges && i < s->database_count; i++)
        if (env->ctx->database && strcmp(s->databases[i].name, env->ctx->database) == 0)
            return r->privileges[i];
    return 0;
}

/* ---- what ---- */

/* One privilege of a list. False: there is none of the name. */
static bool one_privilege(const struct privilege_name *names, bytes item, unsigned *wanted)
{
    static const char option[] = " WITH GRANT OPTION";
    while (item.size > 0 && isspace(item.data[0]))
        item = bytes_make(item.data + 1, item.size - 1);
    while (item.size > 0 && isspace(item.data[item.size - 1]))
        item.size--;
    size_t n = strlen(option);
    bool grant =
        item.size > n && strncasecmp((const char *)item.data + item.size - n, option, n) == 0;
    size_t size = grant ? item.size - n : item.size;
    for (; names->name; names++)
        if (strlen(names->name) == size &&
            strncasecmp((const char *)item.data, names->name, size) == 0) {
            *wanted |= grant ? MAY_NOTHING : names->bit;
            return true;
        }
    return false;
}

static bool read_privileges(struct rel_env *env, const struct privilege_name *names,
                            const struct cell *said, unsigned *wanted)
{
    bytes left = rel_cell_text(env, said);
    *wanted = 0;
    for (;;) {
        const uint8_t *comma = left.size > 0 ? memchr(left.data, ',', left.size) : NULL;
        size_t size = comma ? (size_t)(comma - left.data) : left.size;
        if (!one_privilege(names, bytes_make(left.data, size), wanted))
            return rel_fail(env, ST_INVALID, "22023", "unrecognized privilege type: \"%.*s\"",
                            (int)size, (const char *)left.data);
        if (!comma)
            return true;
        left = bytes_make(comma + 1, left.size - size - 1);
    }
}

static bool take_apart(struct rel_env *env, const struct cell *args, unsigned count,
                       unsigned objects, const struct privilege_name *names, struct asked *out)
{
    struct cell user = cell_str(env->ctx->user);
    const struct cell *who = count == objects + 2 ? args : &user;
    out->objects = count == objects + 2 ? args + 1 : args;
    out->role = find_role(env, who);
    if (out->role == NULL)
        return rel_fail(env, ST_UNSUPPORTED, "42704", "role \"%s\" does not exist",
                        rel_cell_str(env, who));
    return read_privileges(env, names, &args[count - 1], &out->wanted);
}

static struct cell answer(const struct asked *a, unsigned held)
{
    return cell_int(a->role->superuser || (a->wanted & held) != 0);
}

/* The OID of what SAID names as a reg… type does; by OID it may be of nothing. */
static bool find_oid(struct rel_env *env, const struct cell *said, uint32_t type, uint32_t *oid)
{
    struct cell found = *said;
    if (said->kind == CELL_TEXT && !rel_cast_in(env, said->b, type, &found))
        return false;
    *oid = found.kind == CELL_INT ? (uint32_t)found.i : 0;
    return true;
}

#define FN(name)                                                                                   \
    static bool fn_##name(struct rel_env *env, const struct cell *args, unsigned count,            \
                          struct cell *out)

/* ---- tables ---- */

static bool table_answer(struct rel_env *env, const struct asked *a, struct cell *out)
{
    uint32_t oid;
    if (!find_oid(env, &a->objects[0], OID_REGCLASS, &oid))
        return false;
    const struct rel *r = rel_by_oid(oid);
    unsigned bits = privileges_here(env, a->role), held = MAY_SELECT;
    if (r && r->table)
        held = (bits & CL_MAY_READ ? MAY_SELECT : 0) |
               (bits & CL_MAY_WRITE && !r->table->read_only ? MAY_INSERT | MAY_UPDATE | MAY_DELETE
                                                            : 0);
    *out = r ? answer(a, held) : cell_null();
    return true;
}

FN(table_privilege)
{
    struct asked a;
    return take_apart(env, args, count, 1, of_table, &a) && table_answer(env, &a, out);
}

FN(any_column_privilege)
{
    struct asked a;
    return take_apart(env, args, count, 1, of_column, &a) && table_answer(env, &a, out);
}

FN(column_privilege)
{
    struct asked a;
    uint32_t oid;
    if (!take_apart(env, args, count, 2, of_column, &a) || !table_answer(env, &a, out))
        return false;
    if (out->kind == CELL_NULL || !find_oid(env, &a.objects[0], OID_REGCLASS, &oid))
        return out->kind == CELL_NULL;
    const struct rel *r = rel_by_oid(oid);
    const struct cell *column = &a.objects[1];
    for (unsigned i = 0; i < r->column_count; i++)
        if (column->kind == CELL_INT ? column->i == (int64_t)i + 1
                                     : bytes_eq(column->b, bytes_str(r->columns[i].name)))
            return true;
    if (column->kind == CELL_TEXT)
        return rel_fail(env, ST_UNSUPPORTED, "42703",
                        "column \"%s\" of relation \"%s\" does not exist",
                        rel_cell_str(env, column), r->name);
    *out = cell_null();
    return true;
}

/* There is none: by name an error, by OID nothing. */
FN(sequence_privilege)
{
    struct asked a;
    uint32_t oid;
    *out = cell_null();
    if (!take_apart(env, args, count, 1, of_sequence, &a) ||
        !find_oid(env, &a.objects[0], OID_REGCLASS, &oid))
        return false;
    const struct rel *r = rel_by_oid(oid);
    return r == NULL ? true
                     : rel_fail(env, ST_UNSUPPORTED, "42809", "\"%s\" is not a sequence", r->name);
}

/* ---- databases, schemas, functions, types ---- */

FN(database_privilege)
{
    struct asked a;
    if (!take_apart(env, args, count, 1, of_database, &a))
        return false;
    const struct cell *said = &a.objects[0];
    unsigned n;
    const struct rel_database *d = rel__database_list(env, &n);
    *out = cell_null();
    for (unsigned i = 0; i < n; i++)
        if (said->kind == CELL_INT ? d[i].oid == (uint32_t)said->i
                                   : bytes_eq(said->b, bytes_str(d[i].name)))
            *out = answer(&a, MAY_CONNECT);
    if (out->kind == CELL_NULL && said->kind == CELL_TEXT)
        return rel_fail(env, ST_UNSUPPORTED, "3D000", "database \"%s\" does not exist",
                        rel_cell_str(env, said));
    return true;
}

FN(schema_privilege)
{
    struct asked a;
    uint32_t oid;
    if (!take_apart(env, args, count, 1, of_schema, &a) ||
        !find_oid(env, &a.objects[0], OID_REGNAMESPACE, &oid))
        return false;
    unsigned n;
    const struct rel_schema *s = rel_schemas(&n);
    *out = cell_null();
    for (unsigned i = 0; i < n; i++)
        if (s[i].oid == oid)
            *out = answer(&a, MAY_USE);
    return true;
}

FN(function_privilege)
{
    struct asked a;
    uint32_t oid;
    if (!take_apart(env, args, count, 1, of_function, &a))
        return false;
    struct cell said = a.objects[0];
    const uint8_t *list =
        said.kind == CELL_TEXT && said.b.size > 0 ? memchr(said.b.data, '(', said.b.size) : NULL;
    if (list) /* functions have no namesakes */
        said.b.size = (size_t)(list - said.b.data);
    if (!find_oid(env, &said, OID_REGPROC, &oid))
        return false;
    *out = answer(&a, rel__metadb_function(oid) ? 0 : MAY_EXECUTE);
    return true;
}

FN(type_privilege)
{
    struct asked a;
    uint32_t oid;
    if (!take_apart(env, args, count, 1, of_usage, &a) ||
        !find_oid(env, &a.objects[0], OID_REGTYPE, &oid))
        return false;
    *out = rel_type_find(oid, NULL) ? answer(&a, MAY_USE) : cell_null();
    return true;
}

FN(language_privilege)
{
    struct asked a;
    if (!take_apart(env, args, count, 1, of_usage, &a))
        return false;
    *out = answer(&a, MAY_USE);
    return true;
}

FN(tablespace_privilege)
{
    struct asked a;
    if (!take_apart(env, args, count, 1, of_tablespace, &a))
        return false;
    *out = answer(&a, 0);
    return true;
}

/* Foreign servers and their wrappers: there are none. */
FN(foreign_privilege)
{
    struct asked a;
    if (!take_apart(env, args, count, 1, of_usage, &a))
        return false;
    if (a.objects[0].kind == CELL_TEXT)
        return rel_fail(env, ST_UNSUPPORTED, "42704", "server \"%s\" does not exist",
                        rel_cell_str(env, &a.objects[0]));
    *out = cell_null();
    return true;
}

/* PostgreSQL's own roles, pg_read_all_stats and the like, are what superusers are here. */
FN(has_role)
{
    struct asked a;
    if (!take_apart(env, args, count, 1, of_role, &a))
        return false;
    const struct cell *said = &a.objects[0];
    const struct rel_role *of = find_role(env, said);
    bool predefined =
        said->kind == CELL_TEXT && said->b.size > 3 && memcmp(said->b.data, "pg_", 3) == 0;
    if (of == NULL && !predefined)
        return rel_fail(env, ST_UNSUPPORTED, "42704", "role \"%s\" does not exist",
                        rel_cell_str(env, said));
    *out = answer(&a, of != NULL && of != &nobody && of == a.role ? MAY_USE : 0);
    return true;
}

const struct rel_function rel_privilege_functions[] = {
    {"has_database_privilege", "xx?t", OID_BOOL, false, fn_database_privilege},
    {"has_schema_privilege", "xx?t", OID_BOOL, false, fn_schema_privilege},
    {"has_table_privilege", "xx?t", OID_BOOL, false, fn_table_privilege},
    {"has_any_column_privilege", "xx?t", OID_BOOL, false, fn_any_column_privilege},
    {"has_column_privilege", "xxx?t", OID_BOOL, false, fn_column_privilege},
    {"has_function_privilege", "xx?t", OID_BOOL, false, fn_function_privilege},
    {"has_type_privilege", "xx?t", OID_BOOL, false, fn_type_privilege},
    {"has_sequence_privilege", "xx?t", OID_BOOL, false, fn_sequence_privilege},
    {"has_language_privilege", "xx?t", OID_BOOL, false, fn_language_privilege},
    {"has_tablespace_privilege", "xx?t", OID_BOOL, false, fn_tablespace_privilege},
    {"has_foreign_data_wrapper_privilege", "xx?t", OID_BOOL, false, fn_foreign_privilege},
    {"has_server_privilege", "xx?t", OID_BOOL, false, fn_foreign_privilege},
    {"pg_has_role", "xx?t", OID_BOOL, false, fn_has_role},
};
const unsigned rel_privilege_function_count = ARRAY_LEN(rel_privilege_functions);
