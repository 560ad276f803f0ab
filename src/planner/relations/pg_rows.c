/*
 * planner/relations/pg_rows.c — rows of the relations of pg_catalog that have any.
 *
 * Each generator emits cells in the column order of its definition in pg_defs.c; rel_emit asserts
 * their number. Rows follow from the model (relations, types, functions), which never changes, and
 * from the session (its role, its database, its settings).
 */
#include "planner/relations/pg_rows.h"
#include "cluster/roles.h"

#include <stdio.h>
#include <stdlib.h>

#define N cell_null()
#define I(x) cell_int((int64_t)(x))
#define T(x) cell_str(x)
#define TRUE cell_int(1)
#define FALSE cell_int(0)
#define EMIT(b, ...)                                                                               \
    do {                                                                                           \
        const struct cell cells_[] = {__VA_ARGS__};                                                \
        rel_emit((b), cells_, ARRAY_LEN(cells_));                                                  \
    } while (0)

/* ---- helpers ---- */

/* One printable character as a value that outlives the row's making. */
static struct cell letter(char ch)
{
    static const char printable[] =
        " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_"
        "`abcdefghijklmnopqrstuvwxyz{|}~";
    ASSERT(ch >= ' ' && ch <= '~');
    return cell_bytes(bytes_make(&printable[ch - ' '], 1));
}

const struct rel_role *rel__role_list(struct rel_env *env, unsigned *count)
{
    if (env->snap && env->snap->role_count > 0) {
        *count = env->snap->role_count;
        return env->snap->roles;
    }
    struct rel_role *r = ARENA_ARRAY(env->arena, struct rel_role, 2);
    const char *user = env->ctx->user;
    r[0] = (struct rel_role){
        .oid = OID_OWNER, .name = "metadb", .superuser = true, .login = true, .connections = -1};
    *count = 1;
    if (user && strcmp(user, r[0].name) != 0)
        r[(*count)++] = (struct rel_role){.oid = rel_name_oid("role", user),
                                          .name = user,
                                          .superuser = true,
                                          .login = true,
                                          .connections = -1};
    return r;
}

const struct rel_database *rel__database_list(struct rel_env *env, unsigned *count)
{
    if (env->snap && env->snap->database_count > 0) {
        *count = env->snap->database_count;
        return env->snap->databases;
    }
    struct rel_database *d = ARENA_NEW(env->arena, struct rel_database);
    d->name = env->ctx->database ? env->ctx->database : "metadb";
    d->oid = 16000u + env->ctx->ns;
    *count = 1;
    return d;
}

const char *rel__key_columns(struct arena *a, const struct kv_table_def *t)
{
    const char *out = "";
    for (unsigned i = 0; i < t->key_count; i++) {
        bytes q = rel_quote_ident(a, bytes_str(t->columns[i].name));
        out = arena_printf(a, "%s%s%.*s", out, i ? ", " : "", (int)q.size, (const char *)q.data);
    }
    return out;
}

const char *rel__index_definition(struct arena *a, const struct kv_table_def *t, bool with_schema)
{
    return arena_printf(a, "CREATE UNIQUE INDEX %s ON %s%s USING btree (%s)", t->pkey,
                        with_schema ? "public." : "", t->name, rel__key_columns(a, t));
}

const char *rel__comment(const struct rel *r)
{
    if (r->patterns)
        return "statements that can be asked, how often they were and how long they took";
    return r->view ? r->view->comment : NULL;
}

/* ---- namespaces, roles, databases ---- */

void rel__namespace(struct rel_build *b)
{
    unsigned count;
    const struct rel_schema *s = rel_schemas(&count);
    for (unsigned i = 0; i < count; i++)
        EMIT(b, I(s[i].oid), T(s[i].name), I(OID_OWNER), N);
}

static struct cell until(const struct rel_role *r)
{
    return r->expires ? I(r->expires_at) : N;
}

void rel__roles(struct rel_build *b)
{
    unsigned count;
    const struct rel_role *r = rel__role_list(b->env, &count);
    for (unsigned i = 0; i < count; i++, r++)
        EMIT(b, T(r->name), I(r->superuser), TRUE, I(r->superuser), I(r->superuser), I(r->login),
             FALSE, I(r->connections), T("********"), until(r), I(r->superuser), N, I(r->oid));
}

void rel__authid(struct rel_build *b)
{
    unsigned count;
    const struct rel_role *r = rel__role_list(b->env, &count);
    for (unsigned i = 0; i < count; i++, r++)
        EMIT(b, I(r->oid), T(r->name), I(r->superuser), TRUE, I(r->superuser), I(r->superuser),
             I(r->login), FALSE, I(r->superuser), I(r->connections), N, until(r));
}

void rel__user(struct rel_build *b)
{
    unsigned count;
    const struct rel_role *r = rel__role_list(b->env, &count);
    for (unsigned i = 0; i < count; i++, r++)
        if (r->login)
            EMIT(b, T(r->name), I(r->oid), I(r->superuser), I(r->superuser), FALSE, I(r->superuser),
                 T("********"), until(r), N);
}

void rel__database(struct rel_build *b)
{
    unsigned count;
    const struct rel_database *d = rel__database_list(b->env, &count);
    for (unsigned i = 0; i < count; i++)
        EMIT(b, I(d[i].oid), T(d[i].name), I(OID_OWNER), I(6), T("c"), FALSE, TRUE, I(-1), I(0),
             I(0), I(1663), T("C"), T("C"), N, N, T(d[i].acl));
}

void rel__tablespace(struct rel_build *b)
{
    EMIT(b, I(1663), T("pg_default"), I(OID_OWNER), N, N);
    EMIT(b, I(1664), T("pg_global"), I(OID_OWNER), N, N);
}

void rel__am(struct rel_build *b)
{
    EMIT(b, I(2), T("heap"), I(0), T("t"));
    EMIT(b, I(403), T("btree"), I(0), T("i"));
}

void rel__collation(struct rel_build *b)
{
    EMIT(b, I(100), T("default"), I(OID_PG_CATALOG), I(OID_OWNER), T("d"), TRUE, I(-1), N, N, N, N);
    EMIT(b, I(950), T("C"), I(OID_PG_CATALOG), I(OID_OWNER), T("c"), TRUE, I(-1), T("C"), T("C"), N,
         N);
    EMIT(b, I(951), T("POSIX"), I(OID_PG_CATALOG), I(OID_OWNER), T("c"), TRUE, I(-1), T("POSIX"),
         T("POSIX"), N, N);
}

void rel__language(struct rel_build *b)
{
    EMIT(b, I(12), T("internal"), I(OID_OWNER), FALSE, FALSE, I(0), I(0), I(0), N);
}

/* ---- types ---- */

static int64_t io_or_zero(const struct rel_type *t, unsigned which)
{
    char name[64];
    return rel_type_io_name(t, which, name, sizeof(name)) ? rel_type_io_oid(t, which) : 0;
}

static void base_type(struct rel_build *b, const struct rel_type *t)
{
    EMIT(b, I(t->oid), T(t->name), I(OID_PG_CATALOG), I(OID_OWNER), I(t->size), I(t->byval),
         letter(t->kind), letter(t->category), I(t->preferred), TRUE, T(","), I(0), I(0),
         I(t->elem), I(t->array), I(io_or_zero(t, 0)), I(io_or_zero(t, 1)), I(io_or_zero(t, 2)),
         I(io_or_zero(t, 3)), I(0), I(0), I(0), letter(t->align), letter(t->storage), FALSE, I(0),
         I(-1), I(0), I(t->collation), N, N, N);
}

struct array_like {
    uint32_t oid, elem;
    const char *elem_name, *align;
    uint32_t schema, collation;
};
static void array_type(struct rel_build *b, struct array_like t)
{
    EMIT(b, I(t.oid), T(arena_printf(b->arena, "_%s", t.elem_name)), I(t.schema), I(OID_OWNER),
         I(-1), FALSE, T("b"), T("A"), FALSE, TRUE, T(","), I(0), I(0), I(t.elem), I(0),
         I(OID_ARRAY_IO), I(OID_ARRAY_IO + 1), I(OID_ARRAY_IO + 2), I(OID_ARRAY_IO + 3), I(0), I(0),
         I(0), T(t.align), T("x"), FALSE, I(0), I(-1), I(0), I(t.collation), N, N, N);
}

static void row_type(struct rel_build *b, const struct rel *r)
{
    const struct rel_type *record = rel_type_find(OID_RECORD, NULL);
    EMIT(b, I(r->oid + REL_ROW_TYPE), T(r->name), I(r->schema_oid), I(OID_OWNER), I(-1), FALSE,
         T("c"), T("C"), FALSE, TRUE, T(","), I(r->oid), I(0), I(0), I(r->oid + REL_ROW_TYPE_ARRAY),
         I(rel_type_io_oid(record, 0)), I(rel_type_io_oid(record, 1)),
         I(rel_type_io_oid(record, 2)), I(rel_type_io_oid(record, 3)), I(0), I(0), I(0), T("d"),
         T("x"), FALSE, I(0), I(-1), I(0), I(0), N, N, N);
}

void rel__type(struct rel_build *b)
{
    unsigned count;
    const struct rel_type *t = rel_types(&count);
    for (unsigned i = 0; i < count; i++) {
        base_type(b, &t[i]);
        if (t[i].array)
            array_type(b, (struct array_like){.oid = t[i].array,
                                              .elem = t[i].oid,
                                              .elem_name = t[i].name,
                                              .align = t[i].align == 'd' ? "d" : "i",
                                              .schema = OID_PG_CATALOG,
                                              .collation = t[i].collation});
    }
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (!r->table)
            continue;
        row_type(b, r);
        array_type(b, (struct array_like){.oid = r->oid + REL_ROW_TYPE_ARRAY,
                                          .elem = r->oid + REL_ROW_TYPE,
                                          .elem_name = r->name,
                                          .align = "d",
                                          .schema = r->schema_oid});
    }
}

void rel__range(struct rel_build *b)
{
    static const uint32_t ranges[][3] = {{3904, 23, 1978},   {3906, 1700, 3125}, {3908, 1114, 3128},
                                         {3910, 1184, 3127}, {3912, 1082, 3122}, {3926, 20, 3124}};
    for (unsigned i = 0; i < ARRAY_LEN(ranges); i++)
        EMIT(b, I(ranges[i][0]), I(ranges[i][1]), I(0), I(0), I(ranges[i][2]), I(0), I(0));
}

/* Default btree operator classes of the types that stored keys have. */
static const struct opclass {
    uint32_t oid, type;
    const char *name;
} opclasses[] = {
    {3124, OID_INT8, "int8_ops"}, {3126, OID_TEXT, "text_ops"},  {1978, OID_INT4, "int4_ops"},
    {1979, OID_INT2, "int2_ops"}, {10007, OID_CHAR, "char_ops"}, {10006, OID_BYTEA, "bytea_ops"},
};

static uint32_t opclass_of(uint32_t type)
{
    for (unsigned i = 0; i < ARRAY_LEN(opclasses); i++)
        if (opclasses[i].type == type)
            return opclasses[i].oid;
    return 0;
}

void rel__opclass(struct rel_build *b)
{
    for (unsigned i = 0; i < ARRAY_LEN(opclasses); i++)
        EMIT(b, I(opclasses[i].oid), I(403), T(opclasses[i].name), I(OID_PG_CATALOG), I(OID_OWNER),
             I(opclasses[i].oid + 100000u), I(opclasses[i].type), TRUE, I(0));
}

void rel__opfamily(struct rel_build *b)
{
    for (unsigned i = 0; i < ARRAY_LEN(opclasses); i++)
        EMIT(b, I(opclasses[i].oid + 100000u), I(403), T(opclasses[i].name), I(OID_PG_CATALOG),
             I(OID_OWNER));
}

/* ---- relations, their columns and keys ---- */

/* What roles were given on the session's database holds for every table in it; NULL: nothing was
 * given to anybody. The superusers' all is said of the owner alone. */
static const char *table_acl(struct rel_build *b, const struct kv_table_def *t)
{
    unsigned count, databases;
    const struct rel_role *r = rel__role_list(b->env, &count);
    const struct rel_database *d = rel__database_list(b->env, &databases);
    unsigned at = 0;
    const char *database = b->env->ctx->database;
    while (at < databases && (!database || strcmp(d[at].name, database) != 0))
        at++;
    const char *acl = NULL;
    for (unsigned i = 0; at < databases && i < count; i++) {
        unsigned bits = r[i].superuser || !r[i].privileges ? 0 : r[i].privileges[at];
        bool writes = (bits & CL_MAY_WRITE) && !t->read_only, reads = bits & CL_MAY_READ;
        if (!writes && !reads)
            continue;
        bytes name = rel_quote_ident(b->arena, bytes_str(r[i].name));
        acl = arena_printf(b->arena, "%s,%.*s=%s%s%s/metadb", acl ? acl : "metadb=arwdDxt/metadb",
                           (int)name.size, (const char *)name.data, writes ? "a" : "",
                           reads ? "r" : "", writes ? "wd" : "");
    }
    return acl ? arena_printf(b->arena, "{%s}", acl) : NULL;
}

struct class_like {
    uint32_t oid, schema, type, am;
    const char *name;
    char kind, identity;
    unsigned columns;
    bool has_index;
    const char *acl;
};
static void class_row(struct rel_build *b, struct class_like c)
{
    bool stored = c.am != 0;
    EMIT(b, I(c.oid), T(c.name), I(c.schema), I(c.type), I(0), I(OID_OWNER), I(c.am),
         I(stored ? c.oid : 0), I(0), I(0), cell_real(stored ? -1 : 0), I(0), I(0), I(c.has_index),
         FALSE, T("p"), letter(c.kind), I(c.columns), I(0), FALSE, FALSE, FALSE, FALSE, FALSE, TRUE,
         letter(c.identity), FALSE, I(0), I(0), I(0), T(c.acl), N, N);
}

void rel__class(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        class_row(b, (struct class_like){.oid = r->oid,
                                         .schema = r->schema_oid,
                                         .type = r->table ? r->oid + REL_ROW_TYPE : 0,
                                         .am = r->kind == 'r' ? 2 : 0,
                                         .name = r->name,
                                         .kind = r->kind,
                                         .identity = r->table ? 'd' : 'n',
                                         .columns = r->column_count,
                                         .has_index = r->table != NULL,
                                         .acl = r->table ? table_acl(b, r->table) : NULL});
        if (r->table)
            class_row(b, (struct class_like){.oid = r->oid + REL_PKEY_INDEX,
                                             .schema = r->schema_oid,
                                             .am = 403,
                                             .name = r->table->pkey,
                                             .kind = 'i',
                                             .identity = 'n',
                                             .columns = r->table->key_count});
    }
}

struct attribute {
    uint32_t relation;
    const char *name;
    uint32_t type;
    unsigned number;
    bool not_null, has_default, identity;
};
static void attribute_row(struct rel_build *b, struct attribute a)
{
    bool is_array = false;
    const struct rel_type *t = rel_type_find(a.type, &is_array);
    char align = !is_array ? t->align : t->align == 'd' ? 'd' : 'i';
    EMIT(b, I(a.relation), T(a.name), I(a.type), I(-1), I(is_array ? -1 : t->size), I(a.number),
         I(is_array), I(-1), I(-1), I(!is_array && t->byval), letter(align),
         letter(is_array ? 'x' : t->storage), T(""), I(a.not_null), I(a.has_default), FALSE,
         T(a.identity ? "d" : ""), T(""), FALSE, TRUE, I(0), I(t->collation), N, N, N, N);
}

void rel__attribute(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        for (unsigned c = 0; c < r->column_count; c++)
            attribute_row(b, (struct attribute){.relation = r->oid,
                                                .name = r->columns[c].name,
                                                .type = r->columns[c].type,
                                                .number = c + 1,
                                                .not_null = r->columns[c].not_null,
                                                .has_default = r->columns[c].def != NULL,
                                                .identity = r->columns[c].identity});
        for (unsigned c = 0; r->table && c < r->table->key_count; c++)
            attribute_row(b, (struct attribute){.relation = r->oid + REL_PKEY_INDEX,
                                                .name = r->columns[c].name,
                                                .type = r->columns[c].type,
                                                .number = c + 1});
    }
}

/* One number a key column, in the form of a vector. */
static struct cell key_vector(struct rel_build *b, const struct rel *r,
                              int64_t (*of)(const struct rel *r, unsigned c))
{
    const char *out = "";
    for (unsigned c = 0; c < r->table->key_count; c++)
        out = arena_printf(b->arena, "%s%s%lld", out, c ? " " : "", (long long)of(r, c));
    return T(out);
}
static int64_t key_number(const struct rel *r, unsigned c)
{
    UNUSED(r);
    return (int64_t)c + 1;
}
static int64_t key_collation(const struct rel *r, unsigned c)
{
    return rel_type_find(r->columns[c].type, NULL)->collation;
}
static int64_t key_opclass(const struct rel *r, unsigned c)
{
    return opclass_of(r->columns[c].type);
}
static int64_t key_option(const struct rel *r, unsigned c)
{
    UNUSED(r);
    UNUSED(c);
    return 0;
}

void rel__attrdef(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        for (unsigned c = 0; c < r->column_count; c++)
            if (r->columns[c].def)
                EMIT(b, I(r->oid + REL_DEFAULT + c), I(r->oid), I(c + 1), T(r->columns[c].def));
    }
}

void rel__index(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (!r->table)
            continue;
        EMIT(b, I(r->oid + REL_PKEY_INDEX), I(r->oid), I(r->table->key_count),
             I(r->table->key_count), TRUE, FALSE, TRUE, FALSE, TRUE, FALSE, TRUE, FALSE, TRUE, TRUE,
             FALSE, key_vector(b, r, key_number), key_vector(b, r, key_collation),
             key_vector(b, r, key_opclass), key_vector(b, r, key_option), N, N);
    }
}

void rel__constraint(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (!r->table)
            continue;
        const char *key = "";
        for (unsigned c = 0; c < r->table->key_count; c++)
            key = arena_printf(b->arena, "%s%s%u", key, c ? "," : "", c + 1);
        EMIT(b, I(r->oid + REL_PKEY_CONSTRAINT), T(r->table->pkey), I(r->schema_oid), T("p"), FALSE,
             FALSE, TRUE, I(r->oid), I(0), I(r->oid + REL_PKEY_INDEX), I(0), I(0), T(" "), T(" "),
             T(" "), TRUE, I(0), TRUE, T(arena_printf(b->arena, "{%s}", key)), N, N, N, N, N, N, N);
    }
}

void rel__tables(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (r->kind == 'r')
            EMIT(b, T(r->schema), T(r->name), T("metadb"), N, I(r->table != NULL), FALSE, FALSE,
                 FALSE);
    }
}

void rel__views(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (r->kind == 'v')
            EMIT(b, T(r->schema), T(r->name), T("metadb"), N);
    }
}

void rel__indexes(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (r->table)
            EMIT(b, T(r->schema), T(r->name), T(r->table->pkey), N,
                 T(rel__index_definition(b->arena, r->table, true)));
    }
}

void rel__description(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        const char *comment = rel__comment(r);
        if (comment)
            EMIT(b, I(r->oid), I(OID_CLASS_PG_CLASS), I(0), T(comment));
    }
    unsigned count;
    const struct cl_function *f = cl_functions(&count);
    for (unsigned i = 0; i < count; i++)
        if (f[i].comment)
            EMIT(b, I(rel_name_oid("metadb()", f[i].name)), I(OID_CLASS_PG_PROC), I(0),
                 T(f[i].comment));
}

/* ---- functions ---- */

struct proc {
    uint32_t oid, schema, result;
    const char *name, *args, *modes, *all_args, *names, *source;
    unsigned arg_count;
    bool strict, set, volatile_;
};
static void proc_row(struct rel_build *b, struct proc p)
{
    EMIT(b, I(p.oid), T(p.name), I(p.schema), I(OID_OWNER), I(12), cell_real(1),
         cell_real(p.set ? 1000 : 0), I(0), I(0), T("f"), FALSE, FALSE, I(p.strict), I(p.set),
         T(p.volatile_ ? "v" : "s"), T("s"), I(p.arg_count), I(0), I(p.result), T(p.args),
         T(p.all_args), T(p.modes), T(p.names), N, N, T(p.source ? p.source : p.name), N, N, N, N);
}

static void io_procs(struct rel_build *b)
{
    unsigned count;
    const struct rel_type *t = rel_types(&count);
    for (unsigned i = 0; i < count; i++)
        for (unsigned w = 0; w < 4; w++) {
            char name[64];
            if (!rel_type_io_name(&t[i], w, name, sizeof(name)))
                continue;
            bool input = w == 0 || w == 2;
            proc_row(b, (struct proc){.oid = rel_type_io_oid(&t[i], w),
                                      .schema = OID_PG_CATALOG,
                                      .result = input    ? t[i].oid
                                                : w == 1 ? 2275
                                                         : OID_BYTEA,
                                      .name = arena_printf(b->arena, "%s", name),
                                      .args = w == 0   ? "2275"
                                              : w == 2 ? "2281"
                                                       : arena_printf(b->arena, "%u", t[i].oid),
                                      .arg_count = 1,
                                      .strict = true});
        }
    static const char *const array_io[] = {"array_in", "array_out", "array_recv", "array_send"};
    for (unsigned w = 0; w < 4; w++)
        proc_row(b, (struct proc){.oid = OID_ARRAY_IO + w,
                                  .schema = OID_PG_CATALOG,
                                  .result = w == 0 || w == 2 ? 2277
                                            : w == 1         ? 2275
                                                             : OID_BYTEA,
                                  .name = array_io[w],
                                  .args = w == 0   ? "2275"
                                          : w == 2 ? "2281"
                                                   : "2277",
                                  .arg_count = 1,
                                  .strict = true});
}

/* The evaluator's own: their least number of arguments. */
static void own_procs(struct rel_build *b)
{
    const struct rel_function *f;
    for (unsigned i = 0; (f = rel_function_at(i)) != NULL; i++) {
        if (f->name[0] == '.')
            continue;
        unsigned min, max;
        rel_function_arity(f, &min, &max);
        const char *args = "";
        for (unsigned k = 0; k < min; k++) {
            uint32_t type = rel_function_arg_type(f, k);
            args = arena_printf(b->arena, "%s%s%u", args, k ? " " : "", type ? type : 2276);
        }
        proc_row(b, (struct proc){.oid = rel_function_oid(i),
                                  .schema = OID_PG_CATALOG,
                                  .result = f->result > REL_RESULT_ELEMENT ? f->result : 2283,
                                  .name = f->name,
                                  .args = args,
                                  .arg_count = min,
                                  .strict = !f->not_strict});
    }
}

static const char *list_of(struct rel_build *b, const char *list, const char *item)
{
    return list[0] ? arena_printf(b->arena, "%s,%s", list, item) : item;
}

/* metadb.*: arguments and result columns. A result of one column is scalar. */
static void metadb_proc(struct rel_build *b, const struct cl_function *f)
{
    const char *args = "", *all = "", *modes = "", *names = "";
    for (unsigned i = 0; i < f->arg_count; i++) {
        const char *type = arena_printf(b->arena, "%u", pl_type_of(f->args[i].type));
        args = i ? arena_printf(b->arena, "%s %s", args, type) : type;
        all = list_of(b, all, type);
        modes = list_of(b, modes, "i");
        names = list_of(b, names, f->args[i].name);
    }
    bool table = f->result_count > 1;
    for (unsigned i = 0; table && i < f->result_count; i++) {
        all = list_of(b, all, arena_printf(b->arena, "%u", pl_type_of(f->result[i].type)));
        modes = list_of(b, modes, "t");
        names = list_of(b, names, f->result[i].name);
    }
    uint32_t result = f->result_count == 0 ? OID_VOID
                      : table              ? OID_RECORD
                                           : pl_type_of(f->result[0].type);
    proc_row(b, (struct proc){.oid = rel_name_oid("metadb()", f->name),
                              .schema = OID_METADB,
                              .result = result,
                              .name = f->name,
                              .args = args,
                              .arg_count = f->arg_count,
                              .all_args = table ? arena_printf(b->arena, "{%s}", all) : NULL,
                              .modes = table ? arena_printf(b->arena, "{%s}", modes) : NULL,
                              .names = names[0] ? arena_printf(b->arena, "{%s}", names) : NULL,
                              .set = table,
                              .strict = true,
                              .volatile_ = true});
}

void rel__proc(struct rel_build *b)
{
    io_procs(b);
    own_procs(b);
    unsigned count;
    const struct cl_function *f = cl_functions(&count);
    for (unsigned i = 0; i < count; i++)
        metadb_proc(b, &f[i]);
}

/* ---- statistics that are not kept: the tables are named, what is not known is NULL ---- */

void rel__stat_tables(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (r->table)
            EMIT(b, I(r->oid), T(r->schema), T(r->name), N, N, N, N, N, N, N, N, N, N, N, N, N, N,
                 N, N, N, N, N, N);
    }
}

void rel__stat_indexes(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (r->table)
            EMIT(b, I(r->oid), I(r->oid + REL_PKEY_INDEX), T(r->schema), T(r->name),
                 T(r->table->pkey), N, N, N);
    }
}

void rel__statio_tables(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (r->table)
            EMIT(b, I(r->oid), T(r->schema), T(r->name), N, N, N, N, N, N, N, N);
    }
}

/* ---- settings, time zones ---- */

static void setting_row(struct rel_build *b, const char *name, const char *value,
                        const char *context, const char *help)
{
    EMIT(b, T(name), T(value), N, T("metadb"), T(help), N, T(context), T("string"), T("session"), N,
         N, N, T(value), T(value), N, N, FALSE);
}

bool rel__setting_is_private(const char *name)
{
    /* Who is let in and from where, and where files are, is nobody else's business. */
    static const char *const names[] = {
        "auth.rule", "cluster.tls_ca",  "cluster.tls_certificate", "cluster.tls_key",
        "data",      "tls.certificate", "tls.client_ca",           "tls.key"};
    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        if (strcasecmp(names[i], name) == 0)
            return true;
    return false;
}

static void server_setting(void *arg, const struct config_setting *s, const char *value,
                           const char *source)
{
    struct rel_build *b = arg;
    if (rel__setting_is_private(s->name) && !rel__session_is_superuser(b->env))
        return;
    static const char *const types[] = {
        [CONFIG_BOOL] = "bool",    [CONFIG_INT] = "integer",   [CONFIG_SIZE] = "integer",
        [CONFIG_TIME_US] = "real", [CONFIG_STRING] = "string", [CONFIG_ENUM] = "enum",
        [CONFIG_LIST] = "string",
    };
    EMIT(b, T(s->name), T(value), N, T("metadb server"), T(s->help), N, T("postmaster"),
         T(types[s->type]), T(source), N, N, N, T(s->def), T(value), N, N, FALSE);
}

static int by_name(const void *x, const void *y)
{
    const struct cell *a = x, *b = y;
    return rel_cell_compare(a, b);
}

static const char *fixed_setting(const char *name)
{
    static const struct {
        const char *name, *value;
    } fixed[] = {
        {"max_index_keys", "32"}, {"max_identifier_length", "63"}, {"lc_collate", "C"},
        {"lc_ctype", "C"},        {"server_encoding", "UTF8"},     {"integer_datetimes", "on"},
    };
    for (unsigned i = 0; i < ARRAY_LEN(fixed); i++)
        if (strcasecmp(fixed[i].name, name) == 0)
            return fixed[i].value;
    return NULL;
}

struct wanted_setting {
    const char *name, *value;
};
static void match_setting(void *arg, const struct config_setting *s, const char *value,
                          const char *source)
{
    UNUSED(source);
    struct wanted_setting *w = arg;
    if (strcmp(s->name, w->name) == 0)
        w->value = value;
}

const char *rel__setting(struct rel_env *env, const char *name)
{
    const struct pl_context *ctx = env->ctx;
    const char *value = ctx->setting ? ctx->setting(ctx->arg, name) : NULL;
    if (!value)
        value = fixed_setting(name);
    if (value || !env->snap || !env->snap->config)
        return value;
    struct wanted_setting w = {name, NULL};
    config_each(env->snap->config, match_setting, &w);
    return w.value;
}

void rel__settings(struct rel_build *b)
{
    static const char *const names[] = {
        "application_name",
        "bytea_output",
        "client_encoding",
        "client_min_messages",
        "DateStyle",
        "default_transaction_deferrable",
        "default_transaction_isolation",
        "default_transaction_read_only",
        "extra_float_digits",
        "in_hot_standby",
        "integer_datetimes",
        "IntervalStyle",
        "is_superuser",
        "jit",
        "lc_collate",
        "lc_ctype",
        "lock_timeout",
        "max_identifier_length",
        "max_index_keys",
        "password_encryption",
        "search_path",
        "server_encoding",
        "server_version",
        "server_version_num",
        "session_authorization",
        "standard_conforming_strings",
        "statement_timeout",
        "TimeZone",
        "transaction_deferrable",
        "transaction_isolation",
        "transaction_read_only",
    };
    for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = rel__setting(b->env, names[i]);
        bool internal = strncmp(names[i], "server_", 7) == 0 ||
                        strncmp(names[i], "max_i", 5) == 0 || strncmp(names[i], "lc_", 3) == 0;
        if (value)
            setting_row(b, names[i], arena_printf(b->arena, "%s", value),
                        internal ? "internal" : "user", NULL);
    }
    if (b->env->snap && b->env->snap->config)
        config_each(b->env->snap->config, server_setting, b);
    qsort(b->cells, b->row_count, sizeof(struct cell) * b->rel->column_count, by_name);
}

void rel__timezone_names(struct rel_build *b)
{
    static const char *const zones[] = {
        "UTC",
        "Etc/UTC",
        "GMT",
        "Africa/Cairo",
        "Africa/Johannesburg",
        "Africa/Lagos",
        "America/Chicago",
        "America/Denver",
        "America/Los_Angeles",
        "America/New_York",
        "America/Sao_Paulo",
        "Asia/Dubai",
        "Asia/Hong_Kong",
        "Asia/Kolkata",
        "Asia/Shanghai",
        "Asia/Singapore",
        "Asia/Tokyo",
        "Australia/Sydney",
        "Europe/Berlin",
        "Europe/London",
        "Europe/Madrid",
        "Europe/Moscow",
        "Europe/Paris",
        "Europe/Zurich",
        "Pacific/Auckland",
    };
    for (unsigned i = 0; i < ARRAY_LEN(zones); i++)
        EMIT(b, T(zones[i]), N, N, N);
}

void rel__keywords(struct rel_build *b)
{
    const char *word;
    for (unsigned i = 0; (word = rel_reserved_word(i)) != NULL; i++)
        EMIT(b, T(word), T("R"), FALSE, T("reserved"), T("requires AS"));
}
