/*
 * planner/relations/casts.c — input and output functions of types, as casts call them.
 *
 * Types of planner/types.h use its conversions. The reg… types resolve names in the model: that is
 * what 'pg_class'::regclass and 16385::regclass do. All others are their text.
 */
#include "planner/relations/pg_rows.h"

#include <ctype.h>
#include <stdlib.h>

/* Words that PostgreSQL would take for something else where a name stands. */
const char *rel_reserved_word(unsigned i)
{
    static const char *const words[] = {
        "all",
        "analyse",
        "analyze",
        "and",
        "any",
        "array",
        "as",
        "asc",
        "asymmetric",
        "authorization",
        "between",
        "bigint",
        "binary",
        "bit",
        "boolean",
        "both",
        "case",
        "cast",
        "char",
        "character",
        "check",
        "coalesce",
        "collate",
        "collation",
        "column",
        "concurrently",
        "constraint",
        "create",
        "cross",
        "current_catalog",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "dec",
        "decimal",
        "default",
        "deferrable",
        "desc",
        "distinct",
        "do",
        "else",
        "end",
        "except",
        "exists",
        "extract",
        "false",
        "fetch",
        "float",
        "for",
        "foreign",
        "freeze",
        "from",
        "full",
        "grant",
        "greatest",
        "group",
        "grouping",
        "having",
        "ilike",
        "in",
        "initially",
        "inner",
        "inout",
        "int",
        "integer",
        "intersect",
        "interval",
        "into",
        "is",
        "isnull",
        "join",
        "lateral",
        "leading",
        "least",
        "left",
        "like",
        "limit",
        "localtime",
        "localtimestamp",
        "national",
        "natural",
        "nchar",
        "none",
        "normalize",
        "not",
        "notnull",
        "null",
        "nullif",
        "numeric",
        "offset",
        "on",
        "only",
        "or",
        "order",
        "out",
        "outer",
        "overlaps",
        "overlay",
        "placing",
        "position",
        "precision",
        "primary",
        "real",
        "references",
        "returning",
        "right",
        "row",
        "select",
        "session_user",
        "setof",
        "similar",
        "smallint",
        "some",
        "substring",
        "symmetric",
        "table",
        "tablesample",
        "then",
        "time",
        "timestamp",
        "to",
        "trailing",
        "treat",
        "trim",
        "true",
        "union",
        "unique",
        "user",
        "using",
        "values",
        "varchar",
        "variadic",
        "verbose",
        "when",
        "where",
        "window",
        "with",
        "xmlattributes",
        "xmlconcat",
        "xmlelement",
        "xmlexists",
        "xmlforest",
        "xmlnamespaces",
        "xmlparse",
        "xmlpi",
        "xmlroot",
        "xmlserialize",
        "xmltable",
    };
    return i < ARRAY_LEN(words) ? words[i] : NULL;
}

static bool is_reserved(bytes name)
{
    const char *word;
    for (unsigned i = 0; (word = rel_reserved_word(i)) != NULL; i++)
        if (bytes_eq(name, bytes_str(word)))
            return true;
    return false;
}

bytes rel_quote_ident(struct arena *a, bytes name)
{
    bool plain = name.size > 0 && (name.data[0] == '_' || islower(name.data[0]));
    for (size_t i = 0; plain && i < name.size; i++)
        plain = name.data[i] == '_' || islower(name.data[i]) || isdigit(name.data[i]) ||
                name.data[i] == '$';
    if (plain && !is_reserved(name))
        return name;
    uint8_t *out = arena_alloc(a, name.size * 2 + 2);
    size_t n = 0;
    out[n++] = '"';
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '"')
            out[n++] = '"';
        out[n++] = name.data[i];
    }
    out[n++] = '"';
    return bytes_make(out, n);
}

bytes rel_quote_literal(struct arena *a, bytes text)
{
    bool escape = text.size > 0 && memchr(text.data, '\\', text.size) != NULL;
    uint8_t *out = arena_alloc(a, text.size * 2 + 4);
    size_t n = 0;
    if (escape)
        out[n++] = 'E';
    out[n++] = '\'';
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\'' || text.data[i] == '\\')
            out[n++] = text.data[i];
        out[n++] = text.data[i];
    }
    out[n++] = '\'';
    return bytes_make(out, n);
}

/* ---- names to OIDs ---- */

struct qualified {
    const char *schema, *name; /* SCHEMA NULL: not given */
};

/* One part of a possibly quoted, qualified name; folds what is not quoted. */
static bool take_part(const char **s, char *out, size_t size)
{
    size_t n = 0;
    if (**s == '"') {
        (*s)++;
        for (; **s && n + 1 < size; (*s)++) {
            if (**s == '"') {
                if ((*s)[1] != '"')
                    break;
                (*s)++;
            }
            out[n++] = **s;
        }
        if (**s != '"')
            return false;
        (*s)++;
    } else {
        while (**s && **s != '.' && n + 1 < size)
            out[n++] = (char)tolower((unsigned char)*(*s)++);
    }
    out[n] = 0;
    return n > 0 && (**s == 0 || **s == '.');
}

static bool parse_name(struct rel_env *env, bytes text, struct qualified *out)
{
    char part[128];
    const char *s = arena_strdup(env->arena, text);
    *out = (struct qualified){0};
    for (unsigned i = 0;; i++) {
        if (i == 3 || !take_part(&s, part, sizeof(part)))
            return rel_fail(env, ST_INVALID, "42602", "invalid name syntax");
        if (i == 2 && (!env->ctx->database || strcmp(out->schema, env->ctx->database) != 0))
            return rel_fail(env, ST_UNSUPPORTED, "0A000",
                            "cross-database references are not implemented");
        out->schema = out->name;
        out->name = arena_printf(env->arena, "%s", part);
        if (*s++ == 0)
            return true;
    }
}

static uint32_t find_class(const struct qualified *q)
{
    const struct rel *r = rel_find(q->schema, q->name);
    if (r)
        return r->oid;
    const struct kv_table_def *t;
    for (unsigned i = 0; (t = kv_table_at(i)) != NULL; i++)
        if (strcmp(t->pkey, q->name) == 0 && (!q->schema || strcmp(q->schema, "public") == 0))
            return rel_table_oid(t->table) + REL_PKEY_INDEX;
    return 0;
}

static uint32_t find_proc(const char *name)
{
    unsigned count;
    const struct rel_type *t = rel_types(&count);
    for (unsigned i = 0; i < count; i++)
        for (unsigned w = 0; w < 4; w++) {
            char io[64];
            if (rel_type_io_name(&t[i], w, io, sizeof(io)) && strcmp(io, name) == 0)
                return rel_type_io_oid(&t[i], w);
        }
    static const char *const array_io[] = {"array_in", "array_out", "array_recv", "array_send"};
    for (unsigned i = 0; i < ARRAY_LEN(array_io); i++)
        if (strcmp(array_io[i], name) == 0)
            return OID_ARRAY_IO + i;
    const struct rel_function *f;
    for (unsigned i = 0; (f = rel_function_at(i)) != NULL; i++)
        if (strcmp(f->name, name) == 0)
            return rel_function_oid(i);
    const struct cl_function *m = cl_functions(&count);
    for (unsigned i = 0; i < count; i++)
        if (strcmp(m[i].name, name) == 0)
            return rel_name_oid("metadb()", name);
    return 0;
}

static uint32_t find_type(const struct qualified *q, bytes text)
{
    uint32_t oid = rel_type_by_name(text);
    if (oid == 0 && (!q->schema || strcmp(q->schema, "pg_catalog") == 0))
        oid = rel_type_by_name(bytes_str(q->name));
    const struct rel *r = oid == 0 ? rel_find(q->schema, q->name) : NULL;
    return r && r->table ? r->oid + REL_ROW_TYPE : oid;
}

static bool reg_in(struct rel_env *env, bytes text, uint32_t type, struct cell *out)
{
    const char *s = arena_strdup(env->arena, text);
    char *end;
    unsigned long number = strtoul(s, &end, 10);
    if (text.size > 0 && isdigit((unsigned char)s[0]) && *end == 0) {
        *out = cell_int((int64_t)(uint32_t)number);
        return true;
    }
    if (strcmp(s, "-") == 0) {
        *out = cell_int(0);
        return true;
    }
    uint32_t oid = 0;
    struct qualified q = {0};
    if (type == OID_REGTYPE)
        oid = rel_type_by_name(text);
    if (oid == 0 && !parse_name(env, text, &q))
        return false;
    unsigned count;
    switch (type) {
    case OID_REGCLASS:
        if ((oid = find_class(&q)) == 0)
            return rel_fail(env, ST_UNSUPPORTED, "42P01", "relation \"%s\" does not exist", s);
        break;
    case OID_REGTYPE:
        if (oid == 0 && (oid = find_type(&q, text)) == 0)
            return rel_fail(env, ST_UNSUPPORTED, "42704", "type \"%s\" does not exist", s);
        break;
    case OID_REGNAMESPACE: {
        const struct rel_schema *schemas = rel_schemas(&count);
        for (unsigned i = 0; i < count; i++)
            if (strcmp(schemas[i].name, q.name) == 0)
                oid = schemas[i].oid;
        if (oid == 0)
            return rel_fail(env, ST_UNSUPPORTED, "3F000", "schema \"%s\" does not exist", s);
        break;
    }
    case OID_REGROLE: {
        const struct rel_role *roles = rel__role_list(env, &count);
        for (unsigned i = 0; i < count; i++)
            if (strcmp(roles[i].name, q.name) == 0)
                oid = roles[i].oid;
        if (oid == 0)
            return rel_fail(env, ST_UNSUPPORTED, "42704", "role \"%s\" does not exist", s);
        break;
    }
    default:
        if ((oid = find_proc(q.name)) == 0)
            return rel_fail(env, ST_UNSUPPORTED, "42883", "function \"%s\" does not exist", s);
        break;
    }
    *out = cell_int(oid);
    return true;
}

/* ---- OIDs to names ---- */

static bytes class_name(struct rel_env *env, uint32_t oid)
{
    const struct kv_table_def *t = rel_pkey_of(oid);
    if (t)
        return bytes_str(t->pkey);
    const struct rel *r = rel_by_oid(oid);
    if (!r)
        return BYTES_EMPTY;
    bytes name = rel_quote_ident(env->arena, bytes_str(r->name));
    if (rel_is_visible(r))
        return name;
    return rel_text(env, "%s.%.*s", r->schema, (int)name.size, (const char *)name.data).b;
}

static bytes proc_name(struct rel_env *env, uint32_t oid)
{
    unsigned count;
    const struct rel_type *t = rel_types(&count);
    for (unsigned i = 0; i < count; i++)
        for (unsigned w = 0; w < 4; w++) {
            char io[64];
            if (rel_type_io_oid(&t[i], w) == oid && rel_type_io_name(&t[i], w, io, sizeof(io)))
                return rel_text(env, "%s", io).b;
        }
    static const char *const array_io[] = {"array_in", "array_out", "array_recv", "array_send"};
    if (oid >= OID_ARRAY_IO && oid < OID_ARRAY_IO + 4)
        return bytes_str(array_io[oid - OID_ARRAY_IO]);
    const struct rel_function *f;
    for (unsigned i = 0; (f = rel_function_at(i)) != NULL; i++)
        if (rel_function_oid(i) == oid)
            return bytes_str(f->name);
    const struct cl_function *m = cl_functions(&count);
    for (unsigned i = 0; i < count; i++)
        if (rel_name_oid("metadb()", m[i].name) == oid)
            return rel_text(env, "metadb.%s", m[i].name).b;
    return BYTES_EMPTY;
}

static bytes reg_name(struct rel_env *env, uint32_t oid, uint32_t type)
{
    unsigned count;
    if (oid == 0)
        return BYTES_LIT("-");
    switch (type) {
    case OID_REGCLASS: return class_name(env, oid);
    case OID_REGTYPE: {
        bytes name = rel_type_format(env->arena, oid, -1);
        const struct rel *r =
            bytes_eq(name, BYTES_LIT("???")) ? rel_by_oid(oid - REL_ROW_TYPE) : NULL;
        return r ? bytes_str(r->name) : bytes_eq(name, BYTES_LIT("???")) ? BYTES_EMPTY : name;
    }
    case OID_REGNAMESPACE: {
        const struct rel_schema *s = rel_schemas(&count);
        for (unsigned i = 0; i < count; i++)
            if (s[i].oid == oid)
                return bytes_str(s[i].name);
        return BYTES_EMPTY;
    }
    case OID_REGROLE: {
        const struct rel_role *roles = rel__role_list(env, &count);
        for (unsigned i = 0; i < count; i++)
            if (roles[i].oid == oid)
                return rel_quote_ident(env->arena, bytes_str(roles[i].name));
        return BYTES_EMPTY;
    }
    default: return proc_name(env, oid);
    }
}

/* ---- the two entries ---- */

static bool wire_in(struct rel_env *env, bytes text, uint32_t type, struct cell *out)
{
    struct pl_value v;
    if (pl_value_from_text(type, text, env->ctx->style, env->ctx->now, env->arena, &v, &env->err) !=
        ST_OK)
        return false;
    if (type == OID_FLOAT4 || type == OID_FLOAT8)
        *out = cell_real(v.d);
    else if (type == OID_NUMERIC)
        *out = cell_real(strtod(arena_strdup(env->arena, v.b), NULL));
    else
        *out = cell_int(v.i);
    return true;
}

bool rel_cast_in(struct rel_env *env, bytes text, uint32_t type, struct cell *out)
{
    if (rel_type_is_reg(type))
        return reg_in(env, text, type, out);
    if (type == OID_CHAR) {
        *out = cell_bytes(bytes_make(text.data, text.size > 0));
        return true;
    }
    switch (rel_type_family(type)) {
    case FAMILY_NUMBER: return wire_in(env, text, rel_type_is_wire(type) ? type : OID_OID, out);
    case FAMILY_BOOL: return wire_in(env, text, OID_BOOL, out);
    case FAMILY_TIME:
    case FAMILY_INTERVAL:
        if (rel_type_is_wire(type))
            return wire_in(env, text, type, out);
        break;
    case FAMILY_TEXT:
    case FAMILY_ARRAY:
    case FAMILY_OTHER: break;
    }
    *out = cell_bytes(text);
    return true;
}

bool rel_cast_out(struct rel_env *env, const struct cell *value, uint32_t type, struct cell *out)
{
    *out = *value;
    if (value->kind == CELL_NULL || value->kind == CELL_TEXT)
        return true;
    if (type == OID_BOOL) {
        *out = cell_str(value->i ? "true" : "false");
        return true;
    }
    if (rel_type_is_reg(type)) {
        bytes name = reg_name(env, (uint32_t)value->i, type);
        *out = cell_bytes(name.size ? name : rel_cell_text(env, value));
        return true;
    }
    enum rel_family family = rel_type_family(type);
    bool real = type == OID_FLOAT4 || type == OID_FLOAT8;
    if ((family != FAMILY_TIME && family != FAMILY_INTERVAL && !real) || !rel_type_is_wire(type)) {
        *out = cell_bytes(rel_cell_text(env, value));
        return true;
    }
    struct pl_value v = {.oid = type};
    if (real)
        v.d = value->kind == CELL_REAL ? value->d : (double)value->i;
    else
        v.i = value->kind == CELL_REAL ? (int64_t)value->d : value->i;
    struct obuf o;
    obuf_init(&o);
    pl_value_to_text(&v, env->ctx->style, &o);
    *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return true;
}
