/*
 * planner/relations/translate.c — entry, names and errors of the translation.
 *
 * Order of work: parse; translate the SELECT from the inside out, each expression to a piece of
 * SQLite's SQL with its PostgreSQL type; give what is still untyped the type text; collect the
 * relations and functions that the SQL calls.
 *
 * I1. Only SELECT and VALUES come through; anything else is 0A000.
 * I2. A relation of schema public is never read here: statements over stored data are the
 *     planner's patterns.
 * I3. Depth and memory are bounded (tr_enter): 54001.
 */
#include "planner/relations/translate.h"
#include "planner/parse.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- errors and limits ---- */

static uint32_t character_at(bytes text, int location)
{
    uint32_t n = 1;
    for (size_t i = 0; i < (size_t)location && i < text.size; i++)
        n += (text.data[i] & 0xc0) != 0x80;
    return n;
}

status tr_fail(struct tr *t, status code, const char *sqlstate, int location, const char *fmt, ...)
{
    char text[sizeof(t->err->message)];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)err_set_state(t->err, code, sqlstate, "%s", text);
    if (location >= 0)
        t->err->position = character_at(t->text, location);
    return code;
}

status tr_enter(struct tr *t)
{
    t->depth++;
    if (t->depth > TR_DEPTH_MAX || t->a->used_bytes > TR_BYTES_MAX)
        return tr_fail(t, ST_TOO_COMPLEX, "54001", -1, "statement is too deep or too long");
    return ST_OK;
}

void tr_leave(struct tr *t)
{
    ASSERT(t->depth > 0);
    t->depth--;
}

/* ---- pieces of SQL ---- */

const char *tr_name(struct tr *t, const char *prefix)
{
    return arena_printf(t->a, "%s%u", prefix, ++t->next_id);
}

const char *tr_literal(struct tr *t, const char *text)
{
    size_t n = strlen(text), at = 0;
    char *out = arena_alloc(t->a, n * 2 + 3);
    out[at++] = '\'';
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\'')
            out[at++] = '\'';
        out[at++] = text[i];
    }
    out[at++] = '\'';
    out[at] = 0;
    return out;
}

const char *tr_call(struct tr *t, const char *function, unsigned arg_count)
{
    int i = rel_function_find(function, arg_count);
    ASSERT(i >= 0);
    t->q->functions[i] = true;
    return arena_printf(t->a, REL_SQL_FUNCTION, (unsigned)i);
}

/* ---- nodes ---- */

const char *tr_str(const PgQuery__Node *n)
{
    return n && n->node_case == PG_QUERY__NODE__NODE_STRING ? n->string->sval : "";
}

const char *tr_node_kind(const PgQuery__Node *n)
{
    if (!n)
        return "nothing";
    const ProtobufCMessageDescriptor *d = n->base.descriptor;
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field(d, (unsigned)n->node_case);
    return f ? f->name : "an unknown node";
}

status tr_type(struct tr *t, const PgQuery__TypeName *n, uint32_t *type, int32_t *typmod)
{
    const char *name = n->n_names ? tr_str(n->names[n->n_names - 1]) : "";
    *typmod = -1;
    *type = n->n_array_bounds ? rel_type_array_of(rel_type_by_name(bytes_str(name)))
                              : rel_type_by_name(bytes_str(name));
    if (*type == 0 || n->setof || n->pct_type)
        return tr_fail(t, ST_UNSUPPORTED, "42704", n->location, "type \"%s\" does not exist", name);
    return ST_OK;
}

/* ---- headings ---- */

/* Strength 2: a name of its own; 1: a construct's keyword, which a better name beats; 0: none. */
static unsigned heading(const PgQuery__Node *n, const char **out)
{
    if (!n)
        return 0;
    switch ((int)n->node_case) {
    case PG_QUERY__NODE__NODE_COLUMN_REF: {
        const PgQuery__ColumnRef *c = n->column_ref;
        const char *name = c->n_fields ? tr_str(c->fields[c->n_fields - 1]) : "";
        *out = name;
        return name[0] ? 2 : 0;
    }
    case PG_QUERY__NODE__NODE_A_INDIRECTION: {
        const PgQuery__AIndirection *i = n->a_indirection;
        for (size_t k = i->n_indirection; k-- > 0;)
            if (tr_str(i->indirection[k])[0]) {
                *out = tr_str(i->indirection[k]);
                return 2;
            }
        return heading(i->arg, out);
    }
    case PG_QUERY__NODE__NODE_FUNC_CALL:
        *out = tr_str(n->func_call->funcname[n->func_call->n_funcname - 1]);
        return 2;
    case PG_QUERY__NODE__NODE_A_EXPR:
        if (n->a_expr->kind != PG_QUERY__A__EXPR__KIND__AEXPR_NULLIF)
            return 0;
        *out = "nullif";
        return 2;
    case PG_QUERY__NODE__NODE_TYPE_CAST: {
        unsigned strength = heading(n->type_cast->arg, out);
        const PgQuery__TypeName *type = n->type_cast->type_name;
        if (strength <= 1 && type && type->n_names) {
            *out = tr_str(type->names[type->n_names - 1]);
            return 1;
        }
        return strength;
    }
    case PG_QUERY__NODE__NODE_COLLATE_CLAUSE: return heading(n->collate_clause->arg, out);
    case PG_QUERY__NODE__NODE_CASE_EXPR: {
        unsigned strength = heading(n->case_expr->defresult, out);
        if (strength <= 1) {
            *out = "case";
            return 1;
        }
        return strength;
    }
    case PG_QUERY__NODE__NODE_COALESCE_EXPR: *out = "coalesce"; return 2;
    case PG_QUERY__NODE__NODE_MIN_MAX_EXPR:
        *out = n->min_max_expr->op == PG_QUERY__MIN_MAX_OP__IS_GREATEST ? "greatest" : "least";
        return 2;
    case PG_QUERY__NODE__NODE_A_ARRAY_EXPR: *out = "array"; return 2;
    case PG_QUERY__NODE__NODE_ROW_EXPR: *out = "row"; return 2;
    case PG_QUERY__NODE__NODE_SUB_LINK: {
        const PgQuery__SubLink *l = n->sub_link;
        if (l->sub_link_type == PG_QUERY__SUB_LINK_TYPE__EXISTS_SUBLINK)
            *out = "exists";
        else if (l->sub_link_type == PG_QUERY__SUB_LINK_TYPE__ARRAY_SUBLINK)
            *out = "array";
        else if (l->sub_link_type == PG_QUERY__SUB_LINK_TYPE__EXPR_SUBLINK && l->subselect &&
                 l->subselect->node_case == PG_QUERY__NODE__NODE_SELECT_STMT &&
                 l->subselect->select_stmt->n_target_list > 0) {
            const PgQuery__ResTarget *r = l->subselect->select_stmt->target_list[0]->res_target;
            if (!r->name[0])
                return heading(r->val, out);
            *out = r->name;
        } else {
            return 0;
        }
        return 2;
    }
    case PG_QUERY__NODE__NODE_SQLVALUE_FUNCTION: {
        static const char *const names[] = {
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_DATE] = "current_date",
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIME] = "current_time",
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_TIMESTAMP] = "current_timestamp",
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_LOCALTIMESTAMP] = "localtimestamp",
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_ROLE] = "current_role",
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_USER] = "current_user",
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_USER] = "user",
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_SESSION_USER] = "session_user",
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_CATALOG] = "current_catalog",
            [PG_QUERY__SQLVALUE_FUNCTION_OP__SVFOP_CURRENT_SCHEMA] = "current_schema",
        };
        unsigned op = (unsigned)n->sqlvalue_function->op;
        if (op >= ARRAY_LEN(names) || !names[op])
            return 0;
        *out = names[op];
        return 2;
    }
    default: return 0;
    }
}

const char *tr_heading(const PgQuery__Node *n)
{
    const char *out = "?column?";
    return heading(n, &out) ? out : "?column?";
}

/* ---- columns ---- */

struct found {
    const struct tr_column *column;
    unsigned count;
};

static void look_in(const struct tr_source *src, const char *name, bool qualified, struct found *f)
{
    for (unsigned i = 0; i < src->count; i++) {
        const struct tr_column *c = &src->columns[i];
        if (strcmp(c->name, name) != 0 || (c->hidden && !qualified))
            continue;
        f->column = c;
        f->count++;
    }
}

/* TABLE is the only or last qualifier, SCHEMA may stand before it. */
static bool is_source(const struct tr_source *src, const char *schema, const char *table)
{
    if (!src->alias || strcmp(src->alias, table) != 0)
        return false;
    return !schema || (src->rel && strcmp(src->rel->schema, schema) == 0);
}

/* System columns that catalogue queries use. Rows here were never updated: xmin is that of the
 * first transaction, as of rows that came with a database. */
static bool is_system_column(struct tr *t, const struct tr_source *src, const char *name,
                             struct tr_ex *out)
{
    if (!src->rel)
        return false;
    if (strcmp(name, "tableoid") == 0)
        *out = tr_typed(arena_printf(t->a, "%u", src->rel->oid), OID_OID);
    else if (strcmp(name, "xmin") == 0)
        *out = tr_typed("1", OID_XID);
    else if (strcmp(name, "xmax") == 0)
        *out = tr_typed("0", OID_XID);
    else
        return false;
    return true;
}

static status qualified_column(struct tr *t, struct tr_scope *s, const PgQuery__ColumnRef *ref,
                               struct tr_ex *out)
{
    const char *name = tr_str(ref->fields[ref->n_fields - 1]);
    const char *table = tr_str(ref->fields[ref->n_fields - 2]);
    const char *schema = ref->n_fields > 2 ? tr_str(ref->fields[ref->n_fields - 3]) : NULL;
    for (; s; s = s->outer) {
        for (unsigned i = 0; i < s->count; i++) {
            const struct tr_source *src = s->sources[i];
            if (!is_source(src, schema, table))
                continue;
            struct found f = {0};
            look_in(src, name, true, &f);
            if (f.count == 0 && is_system_column(t, src, name, out))
                return ST_OK;
            if (f.count == 0)
                return tr_fail(t, ST_UNSUPPORTED, "42703", ref->location,
                               "column %s.%s does not exist", table, name);
            if (f.count > 1)
                return tr_fail(t, ST_UNSUPPORTED, "42702", ref->location,
                               "column reference \"%s\" is ambiguous", name);
            *out = (struct tr_ex){
                .sql = f.column->sql, .type = f.column->type, .typmod = f.column->typmod};
            return ST_OK;
        }
    }
    return tr_fail(t, ST_UNSUPPORTED, "42P01", ref->location,
                   "missing FROM-clause entry for table \"%s\"", table);
}

status tr_find_column(struct tr *t, struct tr_scope *s, const PgQuery__ColumnRef *ref,
                      struct tr_ex *out)
{
    for (size_t i = 0; i < ref->n_fields; i++)
        if (ref->fields[i]->node_case != PG_QUERY__NODE__NODE_STRING)
            return tr_fail(t, ST_UNSUPPORTED, "0A000", ref->location,
                           "a whole row is not supported here");
    if (ref->n_fields == 0)
        return tr_fail(t, ST_SYNTAX, "42601", ref->location, "a column has no name");
    if (ref->n_fields > 1)
        return qualified_column(t, s, ref, out);
    const char *name = tr_str(ref->fields[0]);
    bool row = false;
    for (; s; s = s->outer) {
        struct found f = {0};
        for (unsigned i = 0; i < s->count; i++)
            look_in(s->sources[i], name, false, &f);
        if (f.count > 1)
            return tr_fail(t, ST_UNSUPPORTED, "42702", ref->location,
                           "column reference \"%s\" is ambiguous", name);
        if (f.count == 1) {
            *out = (struct tr_ex){
                .sql = f.column->sql, .type = f.column->type, .typmod = f.column->typmod};
            return ST_OK;
        }
        for (unsigned i = 0; i < s->count; i++) {
            if (is_system_column(t, s->sources[i], name, out))
                return ST_OK;
            row = row || is_source(s->sources[i], NULL, name);
        }
    }
    if (row)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", ref->location,
                       "a whole row (\"%s\") as a value is not supported here", name);
    return tr_fail(t, ST_UNSUPPORTED, "42703", ref->location, "column \"%s\" does not exist", name);
}

/* ---- entry ---- */

static status statement(struct tr *t, const PgQuery__ParseResult *tree)
{
    if (tree->n_stmts != 1 || !tree->stmts[0]->stmt)
        return tr_fail(t, ST_SYNTAX, "42601", -1, "expected one statement");
    const PgQuery__Node *n = tree->stmts[0]->stmt;
    if (n->node_case != PG_QUERY__NODE__NODE_SELECT_STMT)
        return tr_fail(t, ST_UNSUPPORTED, "0A000", -1,
                       "catalogue relations can only be read: %s is not supported",
                       tr_node_kind(n));
    struct tr_query query;
    ST_TRY(tr_select(t, NULL, n->select_stmt, &query));
    struct catalog_query *q = t->q;
    q->sql = query.sql;
    q->columns = ARENA_ARRAY(t->a, struct pl_column, query.count + 1);
    q->column_count = query.count;
    for (unsigned i = 0; i < query.count; i++) {
        const struct tr_column *c = &query.columns[i];
        q->columns[i] = (struct pl_column){
            .name = arena_strdup(t->a, bytes_str(c->name)),
            .oid = c->type == OID_XN || c->type == OID_ACL_ROW ? OID_RECORD : c->type,
            .typmod = c->typmod,
            .source = -1};
    }
    return ST_OK;
}

static void collect(struct tr *t)
{
    struct catalog_query *q = t->q;
    q->param_count = t->param_count;
    q->param_types = ARENA_ARRAY(t->a, uint32_t, t->param_count + 1);
    for (unsigned i = 0; i < t->param_count; i++)
        q->param_types[i] = t->params[i] ? t->params[i] : OID_TEXT;
    q->rels = ARENA_ARRAY(t->a, const struct rel *, rel_total_count());
    for (unsigned i = 0; i < rel_total_count(); i++)
        if (t->rel_used[i])
            q->rels[q->rel_count++] = rel_at(i);
}

status rel_translate(struct catalog_query *q, bytes text, const uint32_t *types,
                     unsigned type_count, struct err *err)
{
    struct tr *t = ARENA_NEW(&q->arena, struct tr);
    *t = (struct tr){.q = q, .a = &q->arena, .text = text, .err = err};
    t->rel_used = ARENA_ARRAY(t->a, bool, rel_total_count());
    q->functions = ARENA_ARRAY(t->a, bool, rel_function_count());
    if (type_count > TR_PARAMS_MAX)
        return tr_fail(t, ST_TOO_COMPLEX, "54001", -1, "too many parameters");
    for (unsigned i = 0; i < type_count; i++)
        t->params[i] = types[i] == OID_UNKNOWN ? 0 : types[i];
    t->param_count = type_count;

    PgQuery__ParseResult *tree;
    ST_TRY(pl__tree_new(arena_strdup(t->a, text), &tree, err));
    status st = statement(t, tree);
    if (st == ST_OK)
        collect(t);
    pl__tree_free(tree);
    return st;
}
