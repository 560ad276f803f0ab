/*
 * planner/relations/types.c — the types of pg_type and how they relate.
 *
 * OIDs, sizes and names are PostgreSQL 15's, since drivers have them built in. Array types are not
 * listed: their rows follow from their element's. Row types of tables are in model.c.
 *
 * I1. No two types share an OID, arrays included (tests/unit/planner/test_relations.c).
 */
#include "planner/relations/relations.h"

#include <stdio.h>

#define B true
#define R false
static const struct rel_type types[] = {
    {16, "bool", "boolean", 1000, 1, B, 'b', 'B', true, 0, 'c', 'p', 0, "bool"},
    {17, "bytea", NULL, 1001, -1, R, 'b', 'U', false, 0, 'i', 'x', 0, "bytea"},
    {18, "char", "\"char\"", 1002, 1, B, 'b', 'Z', false, 0, 'c', 'p', 0, "char"},
    {19, "name", NULL, 1003, 64, R, 'b', 'S', false, 18, 'c', 'p', 950, "name"},
    {20, "int8", "bigint", 1016, 8, B, 'b', 'N', false, 0, 'd', 'p', 0, "int8"},
    {21, "int2", "smallint", 1005, 2, B, 'b', 'N', false, 0, 's', 'p', 0, "int2"},
    {22, "int2vector", NULL, 1006, -1, R, 'b', 'A', false, 21, 'i', 'p', 0, "int2vector"},
    {23, "int4", "integer", 1007, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "int4"},
    {24, "regproc", NULL, 1008, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regproc"},
    {25, "text", NULL, 1009, -1, R, 'b', 'S', true, 0, 'i', 'x', 100, "text"},
    {26, "oid", NULL, 1028, 4, B, 'b', 'N', true, 0, 'i', 'p', 0, "oid"},
    {27, "tid", NULL, 1010, 6, R, 'b', 'U', false, 0, 's', 'p', 0, "tid"},
    {28, "xid", NULL, 1011, 4, B, 'b', 'U', false, 0, 'i', 'p', 0, "xid"},
    {29, "cid", NULL, 1012, 4, B, 'b', 'U', false, 0, 'i', 'p', 0, "cid"},
    {30, "oidvector", NULL, 1013, -1, R, 'b', 'A', false, 26, 'i', 'p', 0, "oidvector"},
    {114, "json", NULL, 199, -1, R, 'b', 'U', false, 0, 'i', 'x', 0, "json_"},
    {142, "xml", NULL, 143, -1, R, 'b', 'U', false, 0, 'i', 'x', 0, "xml_"},
    {194, "pg_node_tree", NULL, 0, -1, R, 'b', 'Z', false, 0, 'i', 'x', 100, "pg_node_tree_"},
    {600, "point", NULL, 1017, 16, R, 'b', 'G', false, 701, 'd', 'p', 0, "point_"},
    {650, "cidr", NULL, 651, -1, R, 'b', 'I', false, 0, 'i', 'm', 0, "cidr_"},
    {700, "float4", "real", 1021, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "float4"},
    {701, "float8", "double precision", 1022, 8, B, 'b', 'N', true, 0, 'd', 'p', 0, "float8"},
    {705, "unknown", NULL, 0, -2, R, 'p', 'X', false, 0, 'c', 'p', 0, "unknown"},
    {790, "money", NULL, 791, 8, B, 'b', 'N', false, 0, 'd', 'p', 0, "cash_"},
    {829, "macaddr", NULL, 1040, 6, R, 'b', 'U', false, 0, 'i', 'p', 0, "macaddr_"},
    {869, "inet", NULL, 1041, -1, R, 'b', 'I', true, 0, 'i', 'm', 0, "inet_"},
    {1033, "aclitem", NULL, 1034, 12, R, 'b', 'U', false, 0, 'i', 'p', 0, "aclitem"},
    {1042, "bpchar", "character", 1014, -1, R, 'b', 'S', false, 0, 'i', 'x', 100, "bpchar"},
    {1043, "varchar", "character varying", 1015, -1, R, 'b', 'S', false, 0, 'i', 'x', 100,
     "varchar"},
    {1082, "date", NULL, 1182, 4, B, 'b', 'D', false, 0, 'i', 'p', 0, "date_"},
    {1083, "time", "time without time zone", 1183, 8, B, 'b', 'D', false, 0, 'd', 'p', 0, "time_"},
    {1114, "timestamp", "timestamp without time zone", 1115, 8, B, 'b', 'D', false, 0, 'd', 'p', 0,
     "timestamp_"},
    {1184, "timestamptz", "timestamp with time zone", 1185, 8, B, 'b', 'D', true, 0, 'd', 'p', 0,
     "timestamptz_"},
    {1186, "interval", NULL, 1187, 16, R, 'b', 'T', true, 0, 'd', 'p', 0, "interval_"},
    {1266, "timetz", "time with time zone", 1270, 12, R, 'b', 'D', false, 0, 'd', 'p', 0,
     "timetz_"},
    {1560, "bit", NULL, 1561, -1, R, 'b', 'V', false, 0, 'i', 'x', 0, "bit_"},
    {1562, "varbit", "bit varying", 1563, -1, R, 'b', 'V', true, 0, 'i', 'x', 0, "varbit_"},
    {1700, "numeric", NULL, 1231, -1, R, 'b', 'N', false, 0, 'i', 'm', 0, "numeric_"},
    {1790, "refcursor", NULL, 2201, -1, R, 'b', 'U', false, 0, 'i', 'x', 0, "text"},
    {2202, "regprocedure", NULL, 2207, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regprocedure"},
    {2203, "regoper", NULL, 2208, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regoper"},
    {2204, "regoperator", NULL, 2209, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regoperator"},
    {2205, "regclass", NULL, 2210, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regclass"},
    {2206, "regtype", NULL, 2211, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regtype"},
    {2249, "record", NULL, 2287, -1, R, 'p', 'P', false, 0, 'd', 'x', 0, "record_"},
    {2275, "cstring", NULL, 1263, -2, R, 'p', 'P', false, 0, 'c', 'p', 0, "cstring_"},
    {2276, "any", "\"any\"", 0, 4, B, 'p', 'P', false, 0, 'i', 'p', 0, "any_"},
    {2277, "anyarray", NULL, 0, -1, R, 'p', 'P', false, 0, 'd', 'x', 0, "anyarray_"},
    {2278, "void", NULL, 0, 4, B, 'p', 'P', false, 0, 'i', 'p', 0, "void_"},
    {2279, "trigger", NULL, 0, 4, B, 'p', 'P', false, 0, 'i', 'p', 0, "trigger_"},
    {2283, "anyelement", NULL, 0, 4, B, 'p', 'P', false, 0, 'i', 'p', 0, "anyelement_"},
    {2776, "anynonarray", NULL, 0, 4, B, 'p', 'P', false, 0, 'i', 'p', 0, "anynonarray_"},
    {2950, "uuid", NULL, 2951, 16, R, 'b', 'U', false, 0, 'c', 'p', 0, "uuid_"},
    {3220, "pg_lsn", NULL, 3221, 8, B, 'b', 'U', false, 0, 'd', 'p', 0, "pg_lsn_"},
    {3500, "anyenum", NULL, 0, 4, B, 'p', 'P', false, 0, 'i', 'p', 0, "anyenum_"},
    {3614, "tsvector", NULL, 3643, -1, R, 'b', 'U', false, 0, 'i', 'x', 0, "tsvector"},
    {3615, "tsquery", NULL, 3645, -1, R, 'b', 'U', false, 0, 'i', 'p', 0, "tsquery"},
    {3734, "regconfig", NULL, 3735, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regconfig"},
    {3769, "regdictionary", NULL, 3770, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regdictionary"},
    {3802, "jsonb", NULL, 3807, -1, R, 'b', 'U', false, 0, 'i', 'x', 0, "jsonb_"},
    {3904, "int4range", NULL, 3905, -1, R, 'r', 'R', false, 0, 'i', 'x', 0, "range_"},
    {3906, "numrange", NULL, 3907, -1, R, 'r', 'R', false, 0, 'i', 'x', 0, "range_"},
    {3908, "tsrange", NULL, 3909, -1, R, 'r', 'R', false, 0, 'd', 'x', 0, "range_"},
    {3910, "tstzrange", NULL, 3911, -1, R, 'r', 'R', false, 0, 'd', 'x', 0, "range_"},
    {3912, "daterange", NULL, 3913, -1, R, 'r', 'R', false, 0, 'i', 'x', 0, "range_"},
    {3926, "int8range", NULL, 3927, -1, R, 'r', 'R', false, 0, 'd', 'x', 0, "range_"},
    {4089, "regnamespace", NULL, 4090, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regnamespace"},
    {4096, "regrole", NULL, 4097, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regrole"},
    {4191, "regcollation", NULL, 4192, 4, B, 'b', 'N', false, 0, 'i', 'p', 0, "regcollation"},
    {5069, "xid8", NULL, 271, 8, B, 'b', 'U', false, 0, 'd', 'p', 0, "xid8"},
};
#undef B
#undef R

const struct rel_type *rel_types(unsigned *count)
{
    *count = ARRAY_LEN(types);
    return types;
}

const struct rel_type *rel_type_find(uint32_t oid, bool *is_array)
{
    if (oid == 0)
        return NULL;
    for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
        if (types[i].oid != oid && types[i].array != oid)
            continue;
        if (is_array)
            *is_array = types[i].array == oid;
        return &types[i];
    }
    return NULL;
}

/* Other spellings that input accepts. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"int", "int4"},
    {"decimal", "numeric"},
    {"float", "float8"},
    {"timestamp", "timestamp"},
    {"char varying", "varchar"},
    {"dec", "numeric"},
};

static uint32_t base_by_name(bytes name)
{
    for (unsigned i = 0; i < ARRAY_LEN(aliases); i++)
        if (bytes_eq(name, bytes_str(aliases[i].alias)))
            name = bytes_str(aliases[i].name);
    for (unsigned i = 0; i < ARRAY_LEN(types); i++)
        if (bytes_eq(name, bytes_str(types[i].name)) ||
            (types[i].sql_name && bytes_eq(name, bytes_str(types[i].sql_name))))
            return types[i].oid;
    return 0;
}

uint32_t rel_type_by_name(bytes name)
{
    if (bytes_has_prefix(name, BYTES_LIT("pg_catalog.")))
        name = bytes_make(name.data + 11, name.size - 11);
    if (name.size > 2 && memcmp(name.data + name.size - 2, "[]", 2) == 0)
        return rel_type_array_of(base_by_name(bytes_make(name.data, name.size - 2)));
    uint32_t oid = base_by_name(name);
    if (oid == 0 && name.size > 1 && name.data[0] == '_')
        oid = rel_type_array_of(base_by_name(bytes_make(name.data + 1, name.size - 1)));
    return oid;
}

uint32_t rel_type_array_of(uint32_t oid)
{
    bool is_array;
    const struct rel_type *t = rel_type_find(oid, &is_array);
    if (!t)
        return 0;
    return is_array ? oid : t->array; /* PostgreSQL's arrays of arrays are the same type */
}

uint32_t rel_type_element_of(uint32_t oid)
{
    bool is_array;
    const struct rel_type *t = rel_type_find(oid, &is_array);
    if (!t)
        return 0;
    if (is_array)
        return t->oid;
    return oid == OID_INT2VECTOR ? OID_INT2 : oid == OID_OIDVECTOR ? OID_OID : 0;
}

bytes rel_type_format(struct arena *a, uint32_t oid, int64_t typmod)
{
    bool is_array = false;
    const struct rel_type *t = rel_type_find(oid, &is_array);
    if (!t)
        return oid == 0 ? BYTES_LIT("-") : BYTES_LIT("???");
    const char *name = t->sql_name ? t->sql_name : t->name;
    char mod[32] = "";
    if (typmod >= 4 && (t->oid == OID_VARCHAR || t->oid == OID_BPCHAR))
        (void)snprintf(mod, sizeof(mod), "(%lld)", (long long)(typmod - 4));
    else if (typmod >= 4 && t->oid == OID_NUMERIC)
        (void)snprintf(mod, sizeof(mod), "(%lld,%lld)", (long long)((typmod - 4) >> 16),
                       (long long)((typmod - 4) & 0xffff));
    return bytes_str(arena_printf(a, "%s%s%s", name, mod, is_array ? "[]" : ""));
}

bool rel_type_is_reg(uint32_t oid)
{
    switch (oid) {
    case OID_REGPROC:
    case OID_REGPROCEDURE:
    case OID_REGCLASS:
    case OID_REGTYPE:
    case OID_REGNAMESPACE:
    case OID_REGROLE:
    case 2203:
    case 2204:
    case 3734:
    case 3769:
    case 4191: return true;
    default: return false;
    }
}

bool rel_type_is_integer(uint32_t oid)
{
    return oid == OID_INT2 || oid == OID_INT4 || oid == OID_INT8 || oid == OID_OID ||
           oid == OID_XID || oid == 29 || oid == 5069 || rel_type_is_reg(oid);
}

enum rel_family rel_type_family(uint32_t oid)
{
    bool is_array = false;
    const struct rel_type *t = rel_type_find(oid, &is_array);
    if (is_array || oid == OID_INT2VECTOR || oid == OID_OIDVECTOR)
        return FAMILY_ARRAY;
    if (rel_type_is_integer(oid))
        return FAMILY_NUMBER;
    switch (t ? t->category : 'X') {
    case 'N': return FAMILY_NUMBER;
    case 'S': return FAMILY_TEXT;
    case 'B': return FAMILY_BOOL;
    case 'D': return FAMILY_TIME;
    case 'T': return FAMILY_INTERVAL;
    default: return oid == OID_CHAR ? FAMILY_TEXT : FAMILY_OTHER;
    }
}

bool rel_type_is_wire(uint32_t oid)
{
    switch (oid) {
    case OID_BOOL:
    case OID_BYTEA:
    case OID_CHAR:
    case OID_NAME:
    case OID_INT8:
    case OID_INT2:
    case OID_INT4:
    case OID_TEXT:
    case OID_OID:
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_BPCHAR:
    case OID_VARCHAR:
    case OID_DATE:
    case OID_TIMESTAMP:
    case OID_TIMESTAMPTZ:
    case OID_INTERVAL:
    case OID_NUMERIC:
    case OID_INT2_ARRAY:
    case OID_INT4_ARRAY:
    case OID_TEXT_ARRAY:
    case OID_VARCHAR_ARRAY:
    case OID_INT8_ARRAY:
    case OID_OID_ARRAY: return true;
    default: return false;
    }
}

uint32_t rel_type_io_oid(const struct rel_type *t, unsigned which)
{
    return 500000u + t->oid * 4u + which;
}

bool rel_type_io_name(const struct rel_type *t, unsigned which, char *out, size_t size)
{
    static const char *const suffixes[] = {"in", "out", "recv", "send"};
    ASSERT(which < ARRAY_LEN(suffixes));
    bool no_binary = t->kind == 'p' && (t->oid == 2276 || t->oid == 2279 || t->oid == 2283 ||
                                        t->oid == 2776 || t->oid == 3500);
    if (which >= 2 && (no_binary || t->oid == OID_ACLITEM))
        return false;
    (void)snprintf(out, size, "%s%s", t->io, suffixes[which]);
    return true;
}
