/*
 * planner/relations/information_rows.c — information_schema: definitions and rows.
 *
 * Columns and their order are PostgreSQL 15's. Its domains (sql_identifier, cardinal_number,
 * yes_or_no, character_data) appear as their base types, as a result row describes them too.
 * Numbers are 13400 and up in the order of this list: append only.
 */
#include "planner/relations/pg_rows.h"

static void schemata(struct rel_build *b);
static void tables(struct rel_build *b);
static void columns(struct rel_build *b);
static void table_constraints(struct rel_build *b);
static void key_column_usage(struct rel_build *b);
static void views(struct rel_build *b);
static void constraint_column_usage(struct rel_build *b);

/* clang-format off */
const struct rel_def rel_information_defs[] = {
    {13400, "applicable_roles", 'v',
     "grantee:name role_name:name is_grantable:varchar",
     NULL},
    {13401, "character_sets", 'v',
     "character_set_catalog:name character_set_schema:name character_set_name:name "
     "character_repertoire:name form_of_use:name default_collate_catalog:name "
     "default_collate_schema:name default_collate_name:name",
     NULL},
    {13402, "check_constraints", 'v',
     "constraint_catalog:name constraint_schema:name constraint_name:name "
     "check_clause:varchar",
     NULL},
    {13403, "collations", 'v',
     "collation_catalog:name collation_schema:name collation_name:name pad_attribute:varchar",
     NULL},
    {13404, "column_privileges", 'v',
     "grantor:name grantee:name table_catalog:name table_schema:name table_name:name "
     "column_name:name privilege_type:varchar is_grantable:varchar",
     NULL},
    {13405, "columns", 'v',
     "table_catalog:name table_schema:name table_name:name column_name:name "
     "ordinal_position:int4 column_default:varchar is_nullable:varchar data_type:varchar "
     "character_maximum_length:int4 character_octet_length:int4 numeric_precision:int4 "
     "numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 "
     "interval_type:varchar interval_precision:int4 character_set_catalog:name "
     "character_set_schema:name character_set_name:name collation_catalog:name "
     "collation_schema:name collation_name:name domain_catalog:name domain_schema:name "
     "domain_name:name udt_catalog:name udt_schema:name udt_name:name scope_catalog:name "
     "scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name "
     "is_self_referencing:varchar is_identity:varchar identity_generation:varchar "
     "identity_start:varchar identity_increment:varchar identity_maximum:varchar "
     "identity_minimum:varchar identity_cycle:varchar is_generated:varchar "
     "generation_expression:varchar is_updatable:varchar",
     columns},
    {13406, "constraint_column_usage", 'v',
     "table_catalog:name table_schema:name table_name:name column_name:name "
     "constraint_catalog:name constraint_schema:name constraint_name:name",
     constraint_column_usage},
    {13407, "constraint_table_usage", 'v',
     "table_catalog:name table_schema:name table_name:name constraint_catalog:name "
     "constraint_schema:name constraint_name:name",
     NULL},
    {13408, "domains", 'v',
     "domain_catalog:name domain_schema:name domain_name:name data_type:varchar "
     "character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name "
     "character_set_schema:name character_set_name:name collation_catalog:name "
     "collation_schema:name collation_name:name numeric_precision:int4 "
     "numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 "
     "interval_type:varchar interval_precision:int4 domain_default:varchar udt_catalog:name "
     "udt_schema:name udt_name:name scope_catalog:name scope_schema:name scope_name:name "
     "maximum_cardinality:int4 dtd_identifier:name",
     NULL},
    {13409, "element_types", 'v',
     "object_catalog:name object_schema:name object_name:name object_type:varchar "
     "collection_type_identifier:name data_type:varchar character_maximum_length:int4 "
     "character_octet_length:int4 character_set_catalog:name character_set_schema:name "
     "character_set_name:name collation_catalog:name collation_schema:name "
     "collation_name:name numeric_precision:int4 numeric_precision_radix:int4 "
     "numeric_scale:int4 datetime_precision:int4 interval_type:varchar "
     "interval_precision:int4 domain_default:varchar udt_catalog:name udt_schema:name "
     "udt_name:name scope_catalog:name scope_schema:name scope_name:name "
     "maximum_cardinality:int4 dtd_identifier:name",
     NULL},
    {13410, "enabled_roles", 'v',
     "role_name:name",
     NULL},
    {13411, "foreign_tables", 'v',
     "foreign_table_catalog:name foreign_table_schema:name foreign_table_name:name "
     "foreign_server_catalog:name foreign_server_name:name",
     NULL},
    {13412, "information_schema_catalog_name", 'v',
     "catalog_name:name",
     NULL},
    {13413, "key_column_usage", 'v',
     "constraint_catalog:name constraint_schema:name constraint_name:name table_catalog:name "
     "table_schema:name table_name:name column_name:name ordinal_position:int4 "
     "position_in_unique_constraint:int4",
     key_column_usage},
    {13414, "parameters", 'v',
     "specific_catalog:name specific_schema:name specific_name:name ordinal_position:int4 "
     "parameter_mode:varchar is_result:varchar as_locator:varchar parameter_name:name "
     "data_type:varchar character_maximum_length:int4 character_octet_length:int4 "
     "character_set_catalog:name character_set_schema:name character_set_name:name "
     "collation_catalog:name collation_schema:name collation_name:name "
     "numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 "
     "datetime_precision:int4 interval_type:varchar interval_precision:int4 udt_catalog:name "
     "udt_schema:name udt_name:name scope_catalog:name scope_schema:name scope_name:name "
     "maximum_cardinality:int4 dtd_identifier:name parameter_default:varchar",
     NULL},
    {13415, "referential_constraints", 'v',
     "constraint_catalog:name constraint_schema:name constraint_name:name "
     "unique_constraint_catalog:name unique_constraint_schema:name "
     "unique_constraint_name:name match_option:varchar update_rule:varchar "
     "delete_rule:varchar",
     NULL},
    {13416, "role_table_grants", 'v',
     "grantor:name grantee:name table_catalog:name table_schema:name table_name:name "
     "privilege_type:varchar is_grantable:varchar with_hierarchy:varchar",
     NULL},
    {13417, "routines", 'v',
     "specific_catalog:name specific_schema:name specific_name:name routine_catalog:name "
     "routine_schema:name routine_name:name routine_type:varchar module_catalog:name "
     "module_schema:name module_name:name udt_catalog:name udt_schema:name udt_name:name "
     "data_type:varchar character_maximum_length:int4 character_octet_length:int4 "
     "character_set_catalog:name character_set_schema:name character_set_name:name "
     "collation_catalog:name collation_schema:name collation_name:name "
     "numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 "
     "datetime_precision:int4 interval_type:varchar interval_precision:int4 "
     "type_udt_catalog:name type_udt_schema:name type_udt_name:name scope_catalog:name "
     "scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name "
     "routine_body:varchar routine_definition:varchar external_name:varchar "
     "external_language:varchar parameter_style:varchar is_deterministic:varchar "
     "sql_data_access:varchar is_null_call:varchar sql_path:varchar "
     "schema_level_routine:varchar max_dynamic_result_sets:int4 is_user_defined_cast:varchar "
     "is_implicitly_invocable:varchar security_type:varchar to_sql_specific_catalog:name "
     "to_sql_specific_schema:name to_sql_specific_name:name as_locator:varchar "
     "created:timestamptz last_altered:timestamptz new_savepoint_level:varchar "
     "is_udt_dependent:varchar result_cast_from_data_type:varchar "
     "result_cast_as_locator:varchar result_cast_char_max_length:int4 "
     "result_cast_char_octet_length:int4 result_cast_char_set_catalog:name "
     "result_cast_char_set_schema:name result_cast_char_set_name:name "
     "result_cast_collation_catalog:name result_cast_collation_schema:name "
     "result_cast_collation_name:name result_cast_numeric_precision:int4 "
     "result_cast_numeric_precision_radix:int4 result_cast_numeric_scale:int4 "
     "result_cast_datetime_precision:int4 result_cast_interval_type:varchar "
     "result_cast_interval_precision:int4 result_cast_type_udt_catalog:name "
     "result_cast_type_udt_schema:name result_cast_type_udt_name:name "
     "result_cast_scope_catalog:name result_cast_scope_schema:name "
     "result_cast_scope_name:name result_cast_maximum_cardinality:int4 "
     "result_cast_dtd_identifier:name",
     NULL},
    {13418, "schemata", 'v',
     "catalog_name:name schema_name:name schema_owner:name "
     "default_character_set_catalog:name default_character_set_schema:name "
     "default_character_set_name:name sql_path:varchar",
     schemata},
    {13419, "sequences", 'v',
     "sequence_catalog:name sequence_schema:name sequence_name:name data_type:varchar "
     "numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 "
     "start_value:varchar minimum_value:varchar maximum_value:varchar increment:varchar "
     "cycle_option:varchar",
     NULL},
    {13420, "table_constraints", 'v',
     "constraint_catalog:name constraint_schema:name constraint_name:name table_catalog:name "
     "table_schema:name table_name:name constraint_type:varchar is_deferrable:varchar "
     "initially_deferred:varchar enforced:varchar nulls_distinct:varchar",
     table_constraints},
    {13421, "table_privileges", 'v',
     "grantor:name grantee:name table_catalog:name table_schema:name table_name:name "
     "privilege_type:varchar is_grantable:varchar with_hierarchy:varchar",
     NULL},
    {13422, "tables", 'v',
     "table_catalog:name table_schema:name table_name:name table_type:varchar "
     "self_referencing_column_name:name reference_generation:varchar "
     "user_defined_type_catalog:name user_defined_type_schema:name "
     "user_defined_type_name:name is_insertable_into:varchar is_typed:varchar "
     "commit_action:varchar",
     tables},
    {13423, "triggers", 'v',
     "trigger_catalog:name trigger_schema:name trigger_name:name event_manipulation:varchar "
     "event_object_catalog:name event_object_schema:name event_object_table:name "
     "action_order:int4 action_condition:varchar action_statement:varchar "
     "action_orientation:varchar action_timing:varchar action_reference_old_table:name "
     "action_reference_new_table:name action_reference_old_row:name "
     "action_reference_new_row:name created:timestamptz",
     NULL},
    {13424, "user_defined_types", 'v',
     "user_defined_type_catalog:name user_defined_type_schema:name "
     "user_defined_type_name:name user_defined_type_category:varchar is_instantiable:varchar "
     "is_final:varchar ordering_form:varchar ordering_category:varchar "
     "ordering_routine_catalog:name ordering_routine_schema:name ordering_routine_name:name "
     "reference_type:varchar data_type:varchar character_maximum_length:int4 "
     "character_octet_length:int4 character_set_catalog:name character_set_schema:name "
     "character_set_name:name collation_catalog:name collation_schema:name "
     "collation_name:name numeric_precision:int4 numeric_precision_radix:int4 "
     "numeric_scale:int4 datetime_precision:int4 interval_type:varchar "
     "interval_precision:int4 source_dtd_identifier:name ref_dtd_identifier:name",
     NULL},
    {13425, "views", 'v',
     "table_catalog:name table_schema:name table_name:name view_definition:varchar "
     "check_option:varchar is_updatable:varchar is_insertable_into:varchar "
     "is_trigger_updatable:varchar is_trigger_deletable:varchar "
     "is_trigger_insertable_into:varchar",
     views},
};
/* clang-format on */
const unsigned rel_information_def_count = ARRAY_LEN(rel_information_defs);

#define N cell_null()
#define I(x) cell_int((int64_t)(x))
#define T(x) cell_str(x)
#define YES T("YES")
#define NO T("NO")
#define EMIT(b, ...)                                                                               \
    do {                                                                                           \
        const struct cell cells_[] = {__VA_ARGS__};                                                \
        rel_emit((b), cells_, ARRAY_LEN(cells_));                                                  \
    } while (0)

static struct cell catalog(const struct rel_build *b)
{
    return T(b->env->ctx->database);
}

static void schemata(struct rel_build *b)
{
    unsigned count;
    const struct rel_schema *s = rel_schemas(&count);
    for (unsigned i = 0; i < count; i++)
        EMIT(b, catalog(b), T(s[i].name), T("metadb"), N, N, N, N);
}

static void tables(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        EMIT(b, catalog(b), T(r->schema), T(r->name), T(r->kind == 'v' ? "VIEW" : "BASE TABLE"), N,
             N, N, N, N, r->table && !r->table->read_only ? YES : NO, NO, N);
    }
}

struct numeric {
    struct cell precision, radix, scale;
};
static struct numeric numeric_of(uint32_t type)
{
    switch (type) {
    case OID_INT2: return (struct numeric){I(16), I(2), I(0)};
    case OID_INT4: return (struct numeric){I(32), I(2), I(0)};
    case OID_INT8: return (struct numeric){I(64), I(2), I(0)};
    case OID_FLOAT4: return (struct numeric){I(24), I(2), N};
    case OID_FLOAT8: return (struct numeric){I(53), I(2), N};
    default: return (struct numeric){N, N, N};
    }
}

static void column(struct rel_build *b, const struct rel *r, unsigned c)
{
    uint32_t type = r->columns[c].type;
    bool is_array = false;
    const struct rel_type *t = rel_type_find(type, &is_array);
    struct numeric n = is_array ? numeric_of(0) : numeric_of(type);
    enum rel_family family = rel_type_family(type);
    struct cell time = family == FAMILY_TIME       ? I(type == OID_DATE ? 0 : 6)
                       : family == FAMILY_INTERVAL ? I(6)
                                                   : N;
    struct cell octets = !is_array && (type == OID_TEXT || type == OID_VARCHAR) ? I(1073741824) : N;
    struct cell data_type = is_array ? T("ARRAY") : cell_bytes(rel_type_format(b->arena, type, -1));
    bool writable = r->table && !r->table->read_only && !r->table->columns[c].read_only;
    EMIT(b, catalog(b), T(r->schema), T(r->name), T(r->columns[c].name), I(c + 1),
         T(r->columns[c].def), r->columns[c].not_null ? NO : YES, data_type, N, octets, n.precision,
         n.radix, n.scale, time, N, N, N, N, N, N, N, N, N, N, N, catalog(b), T("pg_catalog"),
         T(is_array ? arena_printf(b->arena, "_%s", t->name) : t->name), N, N, N, N,
         T(arena_printf(b->arena, "%u", c + 1)), NO, r->columns[c].identity ? YES : NO,
         T(r->columns[c].identity ? "BY DEFAULT" : NULL), N, N, N, N, NO, T("NEVER"), N,
         writable ? YES : NO);
}

static void columns(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        for (unsigned c = 0; c < r->column_count; c++)
            column(b, r, c);
    }
}

static void table_constraints(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (r->table)
            EMIT(b, catalog(b), T(r->schema), T(r->table->pkey), catalog(b), T(r->schema),
                 T(r->name), T("PRIMARY KEY"), NO, NO, YES, YES);
    }
}

static void key_column_usage(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        for (unsigned c = 0; r->table && c < r->table->key_count; c++)
            EMIT(b, catalog(b), T(r->schema), T(r->table->pkey), catalog(b), T(r->schema),
                 T(r->name), T(r->columns[c].name), I(c + 1), N);
    }
}

static void constraint_column_usage(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        for (unsigned c = 0; r->table && c < r->table->key_count; c++)
            EMIT(b, catalog(b), T(r->schema), T(r->name), T(r->columns[c].name), catalog(b),
                 T(r->schema), T(r->table->pkey));
    }
}

static void views(struct rel_build *b)
{
    for (unsigned i = 0; i < rel_count(); i++) {
        const struct rel *r = rel_at(i);
        if (r->kind == 'v')
            EMIT(b, catalog(b), T(r->schema), T(r->name), N, T("NONE"), NO, NO, NO, NO, NO);
    }
}
