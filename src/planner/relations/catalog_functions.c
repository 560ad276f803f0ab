/*
 * planner/relations/catalog_functions.c — functions about the catalogue and the session.
 *
 * They answer from the model, as the rows of pg_rows.c do. What metadb has no notion of (sizes of
 * tables until the store reports them, view definitions) is NULL, never a made-up value.
 */
#include "planner/relations/pg_rows.h"

#include <stdio.h>

#define FN(name)                                                                                   \
    static bool fn_##name(struct rel_env *env, const struct cell *args, unsigned count,            \
                          struct cell *out)
#define UNUSED_ARGS()                                                                              \
    UNUSED(env);                                                                                   \
    UNUSED(args);                                                                                  \
    UNUSED(count)
/* A function that is one expression of its arguments and the session. */
#define FN_IS(name, expression)                                                                    \
    FN(name)                                                                                       \
    {                                                                                              \
        UNUSED_ARGS();                                                                             \
        *out = (expression);                                                                       \
        return true;                                                                               \
    }

FN_IS(yes, cell_int(1))
FN_IS(no, cell_int(0))
FN_IS(null, cell_null())
FN_IS(empty, cell_bytes(BYTES_LIT("")))
FN_IS(first, args[0])

/* ---- visibility ---- */

FN(table_is_visible)
{
    UNUSED_ARGS();
    uint32_t oid = (uint32_t)args[0].i;
    const struct rel *r = rel_by_oid(oid);
    if (r)
        *out = cell_int(rel_is_visible(r));
    else
        *out = rel_pkey_of(oid) ? cell_int(1) : cell_null();
    return true;
}
FN(type_is_visible)
{
    UNUSED_ARGS();
    uint32_t oid = (uint32_t)args[0].i;
    const struct rel *r = rel_by_oid(oid - REL_ROW_TYPE);
    if (!r)
        r = rel_by_oid(oid - REL_ROW_TYPE_ARRAY);
    *out = rel_type_find(oid, NULL) || (r && r->table) ? cell_int(1) : cell_null();
    return true;
}

const struct cl_function *rel__metadb_function(uint32_t oid)
{
    unsigned n;
    const struct cl_function *f = cl_functions(&n);
    for (unsigned i = 0; i < n; i++)
        if (rel_name_oid("metadb()", f[i].name) == oid)
            return &f[i];
    return NULL;
}
FN_IS(function_is_visible, cell_int(rel__metadb_function((uint32_t)args[0].i) == NULL))

/* ---- names ---- */

FN(get_userbyid)
{
    UNUSED(count);
    unsigned n;
    const struct rel_role *roles = rel__role_list(env, &n);
    *out = rel_text(env, "unknown (OID=%lld)", (long long)args[0].i);
    for (unsigned i = 0; i < n; i++)
        if (roles[i].oid == (uint32_t)args[0].i)
            *out = cell_str(roles[i].name);
    return true;
}

static const struct {
    int64_t number;
    const char *name;
} encodings[] = {{0, "SQL_ASCII"}, {6, "UTF8"}, {8, "LATIN1"}};

FN(encoding_to_char)
{
    UNUSED_ARGS();
    *out = cell_bytes(BYTES_LIT(""));
    for (unsigned i = 0; i < ARRAY_LEN(encodings); i++)
        if (encodings[i].number == args[0].i)
            *out = cell_str(encodings[i].name);
    return true;
}
FN(char_to_encoding)
{
    UNUSED(count);
    *out = cell_int(-1);
    for (unsigned i = 0; i < ARRAY_LEN(encodings); i++)
        if (strcasecmp(encodings[i].name, rel_cell_str(env, &args[0])) == 0)
            *out = cell_int(encodings[i].number);
    return true;
}
FN_IS(getdatabaseencoding, cell_str("UTF8"))

FN(format_type)
{
    UNUSED(count);
    if (args[0].kind == CELL_NULL) {
        *out = cell_null();
        return true;
    }
    uint32_t oid = (uint32_t)args[0].i;
    *out = cell_bytes(rel_type_format(env->arena, oid, args[1].kind == CELL_INT ? args[1].i : -1));
    const struct rel *row = rel_type_find(oid, NULL) ? NULL : rel_by_oid(oid - REL_ROW_TYPE);
    if (row && row->table)
        *out = cell_str(row->name);
    return true;
}

/* ---- definitions ---- */

FN(get_indexdef)
{
    const struct kv_table_def *t = rel_pkey_of((uint32_t)args[0].i);
    int64_t column = count > 1 && args[1].kind == CELL_INT ? args[1].i : 0;
    bool pretty = count > 2 && args[2].i != 0;
    if (!t || column < 0 || column > (int64_t)t->key_count)
        *out = t ? cell_bytes(BYTES_LIT("")) : cell_null();
    else if (column > 0)
        *out = cell_bytes(rel_quote_ident(env->arena, bytes_str(t->columns[column - 1].name)));
    else
        *out = cell_str(rel__index_definition(env->arena, t, !pretty));
    return true;
}

FN(get_constraintdef)
{
    UNUSED(count);
    const struct kv_table_def *t =
        rel_pkey_of((uint32_t)args[0].i - REL_PKEY_CONSTRAINT + REL_PKEY_INDEX);
    *out = t ? rel_text(env, "PRIMARY KEY (%s)", rel__key_columns(env->arena, t)) : cell_null();
    return true;
}

static const char *column_list(struct rel_env *env, const struct cl_view_column *c, unsigned count)
{
    const char *out = "";
    for (unsigned i = 0; i < count; i++) {
        bytes type = rel_type_format(env->arena, pl_type_of(c[i].type), -1);
        out = arena_printf(env->arena, "%s%s%s %.*s", out, i ? ", " : "", c[i].name, (int)type.size,
                           (const char *)type.data);
    }
    return out;
}

/* The input and output functions of types; W as in rel_type_io_oid. */
static const struct rel_type *io_function(uint32_t oid, unsigned *w)
{
    unsigned n;
    const struct rel_type *t = rel_types(&n);
    for (unsigned i = 0; i < n; i++)
        for (*w = 0; *w < 4; (*w)++)
            if (rel_type_io_oid(&t[i], *w) == oid)
                return &t[i];
    return NULL;
}

static const struct rel_function *own_function(uint32_t oid)
{
    const struct rel_function *f;
    for (unsigned i = 0; (f = rel_function_at(i)) != NULL; i++)
        if (rel_function_oid(i) == oid)
            return f;
    return NULL;
}

FN(get_function_result)
{
    UNUSED(count);
    uint32_t oid = (uint32_t)args[0].i;
    const struct cl_function *m = rel__metadb_function(oid);
    const struct rel_function *f = own_function(oid);
    unsigned w;
    const struct rel_type *io = io_function(oid, &w);
    if (m && m->result_count == 1)
        *out = cell_bytes(rel_type_format(env->arena, pl_type_of(m->result[0].type), -1));
    else if (m && m->result_count == 0)
        *out = cell_str("void");
    else if (m)
        *out = rel_text(env, "TABLE(%s)", column_list(env, m->result, m->result_count));
    else if (f)
        *out = cell_bytes(
            rel_type_format(env->arena, f->result > REL_RESULT_ELEMENT ? f->result : 2283, -1));
    else if (io)
        *out = cell_bytes(w == 0 || w == 2 ? rel_type_format(env->arena, io->oid, -1)
                          : w == 1         ? BYTES_LIT("cstring")
                                           : BYTES_LIT("bytea"));
    else
        *out = cell_null();
    return true;
}

FN(get_function_arguments)
{
    UNUSED(count);
    uint32_t oid = (uint32_t)args[0].i;
    const struct cl_function *m = rel__metadb_function(oid);
    const struct rel_function *f = own_function(oid);
    unsigned w;
    const struct rel_type *io = io_function(oid, &w);
    *out = cell_null();
    if (m) {
        *out = cell_str(column_list(env, m->args, m->arg_count));
    } else if (f) {
        unsigned min, max;
        rel_function_arity(f, &min, &max);
        const char *list = "";
        for (unsigned i = 0; i < min; i++) {
            uint32_t type = rel_function_arg_type(f, i);
            bytes name = rel_type_format(env->arena, type ? type : 2276, -1);
            list = arena_printf(env->arena, "%s%s%.*s", list, i ? ", " : "", (int)name.size,
                                (const char *)name.data);
        }
        *out = cell_str(list);
    } else if (io) {
        *out = w == 0   ? cell_str("cstring")
               : w == 2 ? cell_str("internal")
                        : cell_bytes(rel_type_format(env->arena, io->oid, -1));
    }
    return true;
}

FN(get_functiondef)
{
    UNUSED(count);
    UNUSED(out);
    return rel_fail(env, ST_UNSUPPORTED, "0A000",
                    "function %lld is built in and has no SQL definition", (long long)args[0].i);
}

/* ---- comments ---- */

FN(obj_description)
{
    UNUSED(env);
    *out = cell_null();
    bool functions =
        count > 1 && args[1].kind == CELL_TEXT && bytes_eq(args[1].b, BYTES_LIT("pg_proc"));
    bool classes =
        count < 2 || (args[1].kind == CELL_TEXT && bytes_eq(args[1].b, BYTES_LIT("pg_class")));
    const struct rel *r = rel_by_oid((uint32_t)args[0].i);
    const struct cl_function *f = rel__metadb_function((uint32_t)args[0].i);
    if (r && classes)
        *out = cell_str(rel__comment(r));
    else if (f && functions)
        *out = cell_str(f->comment);
    return true;
}

/* ---- names to OIDs, without an error ---- */

static bool to_reg(struct rel_env *env, const struct cell *args, uint32_t type, struct cell *out)
{
    if (!rel_cast_in(env, rel_cell_text(env, &args[0]), type, out)) {
        err_clear(&env->err);
        *out = cell_null();
    }
    return true;
}
#define FN_TO_REG(name, type)                                                                      \
    FN(name)                                                                                       \
    {                                                                                              \
        UNUSED(count);                                                                             \
        return to_reg(env, args, type, out);                                                       \
    }
FN_TO_REG(to_regclass, OID_REGCLASS)
FN_TO_REG(to_regtype, OID_REGTYPE)
FN_TO_REG(to_regnamespace, OID_REGNAMESPACE)
FN_TO_REG(to_regrole, OID_REGROLE)
FN_TO_REG(to_regproc, OID_REGPROC)

/* ---- session ---- */

FN(current_setting)
{
    const char *name = rel_cell_str(env, &args[0]);
    if (rel__setting_is_private(name) && !rel__session_is_superuser(env))
        return rel_fail(env, ST_DENIED, "42501", "must be superuser to examine \"%s\"", name);
    const char *value = rel__setting(env, name);
    bool missing_ok = count > 1 && args[1].kind == CELL_INT && args[1].i != 0;
    if (!value && !missing_ok)
        return rel_fail(env, ST_UNSUPPORTED, "42704", "unrecognized configuration parameter \"%s\"",
                        name);
    *out = value ? rel_text(env, "%s", value) : cell_null();
    return true;
}
/* On another thread than the session's, which waits for this statement and touches nothing. */
FN(set_config)
{
    UNUSED(count);
    const char *name = rel_cell_str(env, &args[0]), *value = rel_cell_str(env, &args[1]);
    if (!env->ctx->set_setting)
        return rel_fail(env, ST_UNSUPPORTED, "0A000", "settings cannot be changed here");
    if (env->ctx->set_setting(env->ctx->arg, name, value, args[2].i != 0, &env->err) != ST_OK)
        return false;
    *out = cell_str(value);
    return true;
}
FN(version)
{
    UNUSED(args);
    UNUSED(count);
    const char *value = rel__setting(env, "server_version");
    *out = rel_text(env, "PostgreSQL %s on x86_64-linux, 64-bit", value ? value : "15.0");
    return true;
}
FN_IS(current_user, cell_str(env->ctx->user))
FN_IS(current_database, cell_str(env->ctx->database))
FN_IS(current_schema, cell_str("public"))
FN_IS(current_schemas, cell_str(args[0].i ? "{pg_catalog,public}" : "{public}"))
FN_IS(now, cell_int(env->ctx->now))
FN_IS(clock_timestamp, cell_int(env->ctx->clock_now))
FN_IS(backend_pid, cell_int(env->ctx->backend_pid))
FN_IS(zero, cell_int(0))
FN_IS(no_items, cell_str("{}"))
/* As the session's own function has it: one number a transaction, growing. */
FN_IS(txid_current, cell_int(env->ctx->now))
FN_IS(started, env->snap && env->snap->started ? cell_int(env->snap->started) : cell_null())

/* Which of INSERT (8), UPDATE (4) and DELETE (16) it takes. */
FN(relation_is_updatable)
{
    UNUSED_ARGS();
    const struct rel *r = rel_by_oid((uint32_t)args[0].i);
    *out = cell_int(r && r->table && !r->table->read_only ? 28 : 0);
    return true;
}
FN(column_is_updatable)
{
    UNUSED_ARGS();
    const struct rel *r = rel_by_oid((uint32_t)args[0].i);
    bool column = r && r->table && args[1].i >= 1 && args[1].i <= (int64_t)r->column_count;
    *out = cell_int(column && !r->table->read_only && !r->table->columns[args[1].i - 1].read_only);
    return true;
}

const struct rel_function rel_catalog_functions[] = {
    {"pg_table_is_visible", "o", OID_BOOL, false, fn_table_is_visible},
    {"pg_type_is_visible", "o", OID_BOOL, false, fn_type_is_visible},
    {"pg_function_is_visible", "o", OID_BOOL, false, fn_function_is_visible},
    {"pg_operator_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_opclass_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_opfamily_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_collation_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_conversion_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_statistics_obj_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_ts_config_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_ts_dict_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_ts_parser_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_ts_template_is_visible", "o", OID_BOOL, false, fn_yes},
    {"pg_get_userbyid", "o", OID_NAME, false, fn_get_userbyid},
    {"pg_encoding_to_char", "i", OID_NAME, false, fn_encoding_to_char},
    {"pg_char_to_encoding", "n", OID_INT4, false, fn_char_to_encoding},
    {"getdatabaseencoding", "", OID_NAME, false, fn_getdatabaseencoding},
    {"pg_client_encoding", "", OID_NAME, false, fn_getdatabaseencoding},
    {"format_type", "oi", OID_TEXT, true, fn_format_type},
    {"pg_get_expr", "xo?b", OID_TEXT, false, fn_first},
    {"pg_get_indexdef", "o?ib", OID_TEXT, false, fn_get_indexdef},
    {"pg_get_constraintdef", "o?b", OID_TEXT, false, fn_get_constraintdef},
    {"pg_get_viewdef", "r?x", OID_TEXT, false, fn_null},
    {"pg_get_ruledef", "o?b", OID_TEXT, false, fn_null},
    {"pg_get_triggerdef", "o?b", OID_TEXT, false, fn_null},
    {"pg_get_partkeydef", "o", OID_TEXT, false, fn_null},
    {"pg_get_partition_constraintdef", "o", OID_TEXT, false, fn_null},
    {"pg_get_statisticsobjdef", "o", OID_TEXT, false, fn_null},
    {"pg_get_statisticsobjdef_columns", "o", OID_TEXT, false, fn_null},
    {"pg_get_serial_sequence", "tt", OID_TEXT, false, fn_null},
    {"pg_get_functiondef", "o", OID_TEXT, false, fn_get_functiondef},
    {"pg_get_function_result", "o", OID_TEXT, false, fn_get_function_result},
    {"pg_get_function_arguments", "o", OID_TEXT, false, fn_get_function_arguments},
    {"pg_get_function_identity_arguments", "o", OID_TEXT, false, fn_get_function_arguments},
    {"pg_get_function_sqlbody", "o", OID_TEXT, false, fn_null},
    {"obj_description", "o?n", OID_TEXT, false, fn_obj_description},
    {"shobj_description", "on", OID_TEXT, false, fn_null},
    {"col_description", "oi", OID_TEXT, false, fn_null},
    {"pg_relation_is_publishable", "r", OID_BOOL, false, fn_no},
    {"pg_relation_is_updatable", "rb", OID_INT4, false, fn_relation_is_updatable},
    {"pg_column_is_updatable", "rib", OID_BOOL, false, fn_column_is_updatable},
    {"pg_table_size", "r", OID_INT8, false, fn_null},
    {"pg_total_relation_size", "r", OID_INT8, false, fn_null},
    {"pg_relation_size", "r?t", OID_INT8, false, fn_null},
    {"pg_indexes_size", "r", OID_INT8, false, fn_null},
    {"pg_database_size", "x", OID_INT8, false, fn_null},
    {"pg_stat_get_numscans", "o", OID_INT8, false, fn_null},
    {"pg_tablespace_size", "x", OID_INT8, false, fn_null},
    {"pg_tablespace_location", "o", OID_TEXT, false, fn_empty},
    {"current_setting", "t?b", OID_TEXT, false, fn_current_setting},
    {"set_config", "ttb", OID_TEXT, false, fn_set_config},
    {"pg_is_wal_replay_paused", "", OID_BOOL, false, fn_no},
    {"version", "", OID_TEXT, false, fn_version},
    {"current_user", "", OID_NAME, false, fn_current_user},
    {"session_user", "", OID_NAME, false, fn_current_user},
    {"current_database", "", OID_NAME, false, fn_current_database},
    {"current_schema", "", OID_NAME, false, fn_current_schema},
    {"current_schemas", "b", OID_NAME_ARRAY, false, fn_current_schemas},
    {"now", "", OID_TIMESTAMPTZ, false, fn_now},
    {"transaction_timestamp", "", OID_TIMESTAMPTZ, false, fn_now},
    {"statement_timestamp", "", OID_TIMESTAMPTZ, false, fn_now},
    {"clock_timestamp", "", OID_TIMESTAMPTZ, false, fn_clock_timestamp},
    {"pg_backend_pid", "", OID_INT4, false, fn_backend_pid},
    {"txid_current", "", OID_INT8, false, fn_txid_current},
    {"pg_blocking_pids", "i", OID_INT4_ARRAY, false, fn_no_items},
    {"pg_postmaster_start_time", "", OID_TIMESTAMPTZ, false, fn_started},
    {"pg_conf_load_time", "", OID_TIMESTAMPTZ, false, fn_started},
    {"pg_last_xact_replay_timestamp", "", OID_TIMESTAMPTZ, true, fn_null},
    {"pg_is_in_recovery", "", OID_BOOL, false, fn_no},
    {"pg_is_other_temp_schema", "o", OID_BOOL, false, fn_no},
    {"pg_my_temp_schema", "", OID_OID, false, fn_zero},
    {"inet_server_addr", "", OID_TEXT, true, fn_null},
    {"inet_server_port", "", OID_INT4, true, fn_null},
    {"inet_client_addr", "", OID_TEXT, true, fn_null},
    {"to_regclass", "t", OID_REGCLASS, false, fn_to_regclass},
    {"to_regtype", "t", OID_REGTYPE, false, fn_to_regtype},
    {"to_regnamespace", "t", OID_REGNAMESPACE, false, fn_to_regnamespace},
    {"to_regrole", "t", OID_REGROLE, false, fn_to_regrole},
    {"to_regproc", "t", OID_REGPROC, false, fn_to_regproc},
};
const unsigned rel_catalog_function_count = ARRAY_LEN(rel_catalog_functions);
