/*
 * planner/relations/model.c — the list of every relation a client can ask about.
 *
 * Built once, at first use, from four sources: the definitions of pg_catalog and information_schema
 * in this folder, the stored tables of kv/schema.h (schema public), and the views of
 * cluster/views.h together with metadb.patterns (schema metadb). After that it never changes.
 *
 * Numbers. Relations of PostgreSQL keep PostgreSQL's OID. Stored tables take theirs from the table
 * number, which is on disk. Objects that only have a name hash it: the same name has the same OID
 * on every node and in every version.
 *
 * I1. A relation's position in the list is its `index`.
 * I2. No two relations share an OID (checked in the unit test).
 */
#include "planner/relations/pg_rows.h"

#include <pthread.h>
#include <stdlib.h>

#define REL_MAX 256u

static struct {
    struct arena arena;
    struct rel rels[REL_MAX];
    unsigned count;       /* those with a schema */
    unsigned total_count; /* and those of functions */
} model;
static pthread_once_t model_once = PTHREAD_ONCE_INIT;

static const struct rel_schema schemas[] = {
    {OID_PG_CATALOG, "pg_catalog"},
    {OID_PUBLIC, "public"},
    {OID_INFORMATION_SCHEMA, "information_schema"},
    {OID_METADB, "metadb"},
};

static struct rel *add(const char *schema, const char *name, uint32_t oid, char kind)
{
    ASSERT(model.count < REL_MAX);
    struct rel *r = &model.rels[model.count];
    r->index = model.count++;
    r->schema = schema;
    r->name = name;
    r->oid = oid;
    r->kind = kind;
    for (unsigned i = 0; i < ARRAY_LEN(schemas); i++)
        if (strcmp(schemas[i].name, schema) == 0)
            r->schema_oid = schemas[i].oid;
    return r;
}

/* One "name:type!" of a definition; returns what follows it. */
static const char *parse_column(const char *spec, struct rel_column *out)
{
    const char *colon = strchr(spec, ':');
    ASSERT(colon);
    const char *end = strchr(colon, ' ');
    if (!end)
        end = colon + strlen(colon);
    *out = (struct rel_column){
        .name = arena_strdup(&model.arena, bytes_make(spec, (size_t)(colon - spec)))};
    bytes type = bytes_make(colon + 1, (size_t)(end - colon - 1));
    out->not_null = type.size > 0 && type.data[type.size - 1] == '!';
    type.size -= out->not_null;
    out->type = rel_type_by_name(type);
    ASSERT(out->type != 0);
    return *end ? end + 1 : end;
}

static void parse_columns(struct rel *r, const char *spec)
{
    struct rel_column columns[REL_COLUMNS_MAX];
    while (*spec) {
        ASSERT(r->column_count < REL_COLUMNS_MAX);
        spec = parse_column(spec, &columns[r->column_count++]);
    }
    struct rel_column *copy = ARENA_ARRAY(&model.arena, struct rel_column, r->column_count);
    memcpy(copy, columns, sizeof(*copy) * r->column_count);
    r->columns = copy;
}

static void add_defs(const char *schema, const struct rel_def *defs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct rel *r = add(schema, defs[i].name, defs[i].oid, defs[i].kind);
        parse_columns(r, defs[i].columns);
        r->rows = defs[i].rows;
    }
}

/* What kv/values.c gives a column that an INSERT leaves out, as SQL. A directory has others for
 * mode (493) and nlink (2). The id of meta is drawn. */
static const char *default_of(enum kv_table table, unsigned column)
{
    if (table == KV_OBJECT)
        return column == OBJECT_SIZE ? "0" : column == OBJECT_MTIME ? "now()" : NULL;
    if (table != KV_META)
        return NULL;
    switch (column) {
    case META_TYPE: return "'f'::\"char\"";
    case META_MODE: return "420";
    case META_UID:
    case META_GID:
    case META_SIZE: return "0";
    case META_NLINK: return "1";
    case META_ATIME:
    case META_MTIME:
    case META_CTIME:
    case META_BTIME: return "now()";
    default: return NULL;
    }
}

static void add_tables(void)
{
    const struct kv_table_def *t;
    for (unsigned i = 0; (t = kv_table_at(i)) != NULL; i++) {
        struct rel *r = add("public", t->name, rel_table_oid(t->table), 'r');
        struct rel_column *columns = ARENA_ARRAY(&model.arena, struct rel_column, t->column_count);
        for (unsigned c = 0; c < t->column_count; c++)
            columns[c] = (struct rel_column){
                .name = t->columns[c].name,
                .type = pl_type_of(t->columns[c].type),
                .not_null = t->columns[c].not_null || t->columns[c].key,
                .identity = t->table == KV_META && c == META_ID,
                .def = default_of(t->table, c),
            };
        r->columns = columns;
        r->column_count = t->column_count;
        r->table = t;
    }
}

static void add_views(void)
{
    unsigned count;
    const struct cl_view *views = cl_views(&count);
    for (unsigned i = 0; i < count; i++) {
        struct rel *r = add("metadb", views[i].name, rel_name_oid("metadb", views[i].name), 'v');
        ASSERT(views[i].column_count <= REL_COLUMNS_MAX);
        struct rel_column *columns =
            ARENA_ARRAY(&model.arena, struct rel_column, views[i].column_count);
        for (unsigned c = 0; c < views[i].column_count; c++)
            columns[c] = (struct rel_column){
                .name = views[i].columns[c].name,
                .type = pl_type_of(views[i].columns[c].type),
            };
        r->columns = columns;
        r->column_count = views[i].column_count;
        r->view = &views[i];
    }
    struct rel *r = add("metadb", "patterns", rel_name_oid("metadb", "patterns"), 'v');
    parse_columns(r, "name:text template:text fingerprint:text handler:text scope:text calls:int8 "
                     "p50:int8 p99:int8 errors:int8");
    r->patterns = true;
}

/* Relations that only functions stand for. They have no schema, so that no name finds them, and
 * come after all others, outside rel_count(). */
static void add_function_relations(void)
{
    struct rel *r = add("", "pg_get_keywords", 0, 'f');
    parse_columns(r, "word:text catcode:char barelabel:bool catdesc:text baredesc:text");
    r->rows = rel__keywords;
}

static void build(void)
{
    arena_init(&model.arena, 64 * 1024);
    add_defs("pg_catalog", rel_pg_defs, rel_pg_def_count);
    add_defs("information_schema", rel_information_defs, rel_information_def_count);
    add_tables();
    add_views();
    unsigned named = model.count;
    add_function_relations();
    model.total_count = model.count;
    model.count = named;
}

static void ready(void)
{
    (void)pthread_once(&model_once, build);
}

unsigned rel_count(void)
{
    ready();
    return model.count;
}

unsigned rel_total_count(void)
{
    ready();
    return model.total_count;
}

const struct rel *rel_at(unsigned i)
{
    ready();
    return i < model.total_count ? &model.rels[i] : NULL;
}

const struct rel *rel_find(const char *schema, const char *name)
{
    static const char *const path[] = {"pg_catalog", "public"};
    ready();
    for (unsigned p = 0; p < (schema ? 1 : ARRAY_LEN(path)); p++)
        for (unsigned i = 0; i < model.count; i++)
            if (strcmp(model.rels[i].name, name) == 0 &&
                strcmp(model.rels[i].schema, schema ? schema : path[p]) == 0)
                return &model.rels[i];
    return NULL;
}

const struct rel *rel_by_oid(uint32_t oid)
{
    ready();
    for (unsigned i = 0; i < model.count; i++)
        if (model.rels[i].oid == oid)
            return &model.rels[i];
    return NULL;
}

bool rel_is_visible(const struct rel *r)
{
    return r->schema_oid == OID_PG_CATALOG || r->schema_oid == OID_PUBLIC;
}

const struct rel_schema *rel_schemas(unsigned *count)
{
    *count = ARRAY_LEN(schemas);
    return schemas;
}

const struct kv_table_def *rel_pkey_of(uint32_t index_oid)
{
    const struct kv_table_def *t;
    for (unsigned i = 0; (t = kv_table_at(i)) != NULL; i++)
        if (rel_table_oid(t->table) + REL_PKEY_INDEX == index_oid)
            return t;
    return NULL;
}

/* FNV-1a over "schema.name", moved above every number handed out otherwise. */
uint32_t rel_name_oid(const char *schema, const char *name)
{
    uint32_t h = 2166136261u;
    for (const char *s = schema; *s; s++)
        h = (h ^ (uint8_t)*s) * 16777619u;
    h = (h ^ '.') * 16777619u;
    for (const char *s = name; *s; s++)
        h = (h ^ (uint8_t)*s) * 16777619u;
    return 0x40000000u | (h & 0x3fffffffu);
}

const struct rel *rel_function_relation(const char *name)
{
    static const struct {
        const char *function, *relation;
    } map[] = {
        {"pg_timezone_names", "pg_timezone_names"},
        {"pg_timezone_abbrevs", "pg_timezone_abbrevs"},
        {"pg_show_all_settings", "pg_settings"},
        {"pg_prepared_statement", "pg_prepared_statements"},
        {"pg_cursor", "pg_cursors"},
        {"pg_available_extensions", "pg_available_extensions"},
    };
    ready();
    for (unsigned i = 0; i < ARRAY_LEN(map); i++)
        if (strcmp(map[i].function, name) == 0)
            return rel_find("pg_catalog", map[i].relation);
    for (unsigned i = model.count; i < model.total_count; i++)
        if (strcmp(model.rels[i].name, name) == 0)
            return &model.rels[i];
    return NULL;
}
