/*
 * planner/bind_meta.c — what the table meta has beside the common forms: the functions on the tree,
 * with the one on buckets, and the functions of schema metadb.
 *
 * A function of a table is a read (FROM resolve(…), list_attr(…), usage(…), list_objects(…)) or an
 * operation (SELECT move(…), link(…), make_path(…), remove_tree(…)); its arguments are values of
 * values.c. A function of schema metadb comes from cl_functions() with its argument and result
 * types.
 */
#include "cluster/views.h"
#include "planner/pl_internal.h"

#include <stdio.h>

static const struct pl__rules rules_meta = {
    .get = PATTERN_META_LOOKUP,
    .get_many = PATTERN_META_LOOKUP_MANY,
    .list = PATTERN_META_LIST,
    .count = PATTERN_META_COUNT,
    .scan = PATTERN_META_SCAN,
    .insert = PATTERN_META_CREATE,
    .update = PATTERN_META_SET,
    .remove = PATTERN_META_REMOVE,
    .remove_many = PATTERN_META_REMOVE_MANY,
    .remove_range = PATTERN_META_REMOVE_RANGE,
    .move = PATTERN_META_RENAME,
};

const struct pl__rules *pl__rules_of(enum kv_table t)
{
    switch ((int)t) {
    case KV_META: return &rules_meta;
    case KV_KV: return &pl__rules_kv;
    case KV_OBJECT: return &pl__rules_object;
    case KV_LIFECYCLE: return &pl__rules_lifecycle;
    case KV_QUOTA: return &pl__rules_quota;
    case KV_INDEX: return &pl__rules_index;
    default: return &pl__rules_none;
    }
}

/* -- the functions ----------------------------------------------------------------------------- */

enum meta_function {
    MF_RESOLVE,
    MF_LIST_ATTR,
    MF_USAGE,
    MF_LIST_OBJECTS,
    MF_MAKE_PATH,
    MF_MOVE,
    MF_LINK,
    MF_REMOVE_TREE
};

static const struct meta_row {
    const char *name;
    enum meta_function fn;
    enum pl_pattern_id id;
    bool is_table;   /* stands in FROM */
    uint32_t result; /* type of the one value, if it does not */
    enum kv_type type;
    unsigned least, most;
    enum kv_type args[5];
} meta_functions[] = {
    {"resolve", MF_RESOLVE, PATTERN_META_RESOLVE, true, 0, 0, 1, 1, {KV_TEXT}},
    {"resolve", MF_RESOLVE, PATTERN_META_RESOLVE, true, 0, 0, 2, 2, {KV_INT8, KV_TEXT}},
    {"list_attr",
     MF_LIST_ATTR,
     PATTERN_META_LIST_ATTR,
     true,
     0,
     0,
     1,
     3,
     {KV_INT8, KV_TEXT, KV_INT8}},
    {"usage", MF_USAGE, PATTERN_META_USAGE, true, 0, 0, 1, 1, {KV_TEXT}},
    {"list_objects",
     MF_LIST_OBJECTS,
     PATTERN_OBJECT_PAGE,
     true,
     0,
     0,
     1,
     5,
     {KV_TEXT, KV_TEXT, KV_TEXT, KV_TEXT, KV_INT8}},
    {"make_path", MF_MAKE_PATH, PATTERN_META_MAKE_PATH, false, OID_INT8, KV_INT8, 1, 1, {KV_TEXT}},
    {"move",
     MF_MOVE,
     PATTERN_META_MOVE,
     false,
     OID_INT8,
     KV_INT8,
     4,
     5,
     {KV_INT8, KV_TEXT, KV_INT8, KV_TEXT, KV_TEXT}},
    {"link",
     MF_LINK,
     PATTERN_META_LINK,
     false,
     OID_INT4,
     KV_INT4,
     4,
     4,
     {KV_INT8, KV_TEXT, KV_INT8, KV_TEXT}},
    {"remove_tree",
     MF_REMOVE_TREE,
     PATTERN_META_REMOVE_TREE,
     false,
     OID_INT8,
     KV_INT8,
     2,
     2,
     {KV_INT8, KV_TEXT}},
};

/* usage(path) as a relation. */
static const struct kv_column usage_columns[] = {
    {.name = "files", .type = KV_INT8},
    {.name = "directories", .type = KV_INT8},
    {.name = "bytes", .type = KV_INT8},
    {.name = "as_of", .type = KV_TIMESTAMPTZ},
};
static const struct kv_table_def usage_def = {
    .table = KV_META,
    .name = "usage",
    .pkey = "",
    .columns = usage_columns,
    .column_count = ARRAY_LEN(usage_columns),
    .seq_column = -1,
    .read_only = true,
};

/* list_objects(…) as a relation: the columns of object by their numbers, with the common prefix in
 * place of the bucket, which is the same for all rows. */
static const struct kv_column object_page_columns[OBJECT_COLUMNS] = {
    [OBJECT_BUCKET] = {.name = "common_prefix", .type = KV_TEXT},
    [OBJECT_KEY] = {.name = "key", .type = KV_TEXT},
    [OBJECT_SIZE] = {.name = "size", .type = KV_INT8},
    [OBJECT_ETAG] = {.name = "etag", .type = KV_TEXT},
    [OBJECT_MTIME] = {.name = "mtime", .type = KV_TIMESTAMPTZ},
    [OBJECT_EXPIRES_AT] = {.name = "expires_at", .type = KV_TIMESTAMPTZ},
    [OBJECT_ATTR] = {.name = "attr", .type = KV_BYTEA},
    [OBJECT_SEQ] = {.name = "seq", .type = KV_INT8},
};
static const struct kv_table_def object_page_def = {
    .table = KV_OBJECT,
    .name = "list_objects",
    .pkey = "",
    .columns = object_page_columns,
    .column_count = ARRAY_LEN(object_page_columns),
    .seq_column = -1,
    .read_only = true,
};

/* The table whose function F is, and what F gives in FROM. */
static const struct kv_table_def *function_table(const struct meta_row *f)
{
    return kv_table_def(f->fn == MF_LIST_OBJECTS ? KV_OBJECT : KV_META);
}

static const struct kv_table_def *function_output(const struct meta_row *f)
{
    if (f->fn == MF_USAGE)
        return &usage_def;
    return f->fn == MF_LIST_OBJECTS ? &object_page_def : function_table(f);
}

/* 42883 for a call of the function and with the arguments of N. */
static status no_function(struct pl__compile *c, const struct ast_node *n)
{
    char call[400];
    size_t at = 0;
    for (unsigned i = 0; i < n->name_count && at < sizeof(call); i++)
        at += (size_t)snprintf(call + at, sizeof(call) - at, "%s%s", i > 0 ? "." : "", n->names[i]);
    for (unsigned i = 0; i < n->count && at < sizeof(call); i++) {
        const struct pl__expr *e;
        const char *type = "unknown";
        if (pl__expr(c, n->items[i], 0, &e) == ST_OK)
            type = pl_type_name(e->oid);
        at += (size_t)snprintf(call + at, sizeof(call) - at, "%s%s", i > 0 ? ", " : "(", type);
    }
    pl__error(c, n->at, ST_INVALID, "42883", "function %s%s) does not exist", call,
              n->count == 0 ? "(" : "");
    err_hint(
        c->err,
        "No function matches the given name and argument types. You might need to add explicit "
        "type casts.");
    return ST_INVALID;
}

/* The call that S is: SELECT f(…) or SELECT … FROM f(…). NULL if neither. */
static const struct ast_node *call_of(const struct ast_stmt *s, bool *in_from)
{
    *in_from = s->from_count == 1 && s->from[0].function != NULL;
    if (*in_from)
        return s->from[0].function->kind == AST_CALL ? s->from[0].function : NULL;
    if (s->from_count > 0 || s->target_count != 1 || s->targets[0].value == NULL)
        return NULL;
    return s->targets[0].value->kind == AST_CALL ? s->targets[0].value : NULL;
}

static bool bare(const struct ast_stmt *s)
{
    return s->unusual == NULL && s->where == NULL && s->sort_count == 0 && s->limit == NULL &&
           s->offset == NULL && !s->for_update && !s->lock_other;
}

/* Arguments of the call N as values of TYPES. */
static status arguments(struct pl__compile *c, const struct ast_node *n, const enum kv_type *types,
                        enum pl_pattern_id nearest, const struct pl__expr *const **out)
{
    const struct pl__expr **args = ARENA_ARRAY(c->a, const struct pl__expr *, n->count + 1);
    for (unsigned i = 0; i < n->count; i++) {
        struct kv_column column = {.name = "", .type = types[i]};
        ST_TRY(pl__expr_of(c, n->items[i], pl_type_of(types[i]), nearest, &args[i]));
        bool text = types[i] == KV_TEXT; /* a call has no assignment cast to text */
        if (pl__check_assign(c, &column, args[i]) != ST_OK ||
            (text && args[i]->oid != OID_UNKNOWN && args[i]->oid != OID_TEXT &&
             args[i]->oid != OID_VARCHAR && args[i]->oid != OID_NAME))
            return no_function(c, n);
    }
    *out = args;
    return ST_OK;
}

static void one_column(struct pl__compile *c, const struct ast_target *t, const char *name,
                       uint32_t oid, enum kv_type type, int source)
{
    struct pl_column *column = ARENA_NEW(c->a, struct pl_column);
    *column = (struct pl_column){
        .name = arena_strdup(c->a, bytes_str(t->name == NULL ? name : t->name)),
        .oid = oid,
        .typmod = -1,
        .source = source,
        .type = type,
    };
    c->plan->pub.columns = column;
    c->plan->pub.column_count = 1;
    c->plan->pub.returns_rows = true;
}

/* The output of FROM f(…) over DEF. */
static status table_output(struct pl__compile *c, const struct ast_stmt *s,
                           const struct kv_table_def *def, const char *name)
{
    struct pl__scope scope = {
        .def = def, .schema = "public", .table = name, .alias = s->from[0].alias};
    if (s->from[0].column_aliases || s->from[0].ordinality)
        return pl__no_pattern(c, s->from[0].at, PATTERN_NONE,
                              "Column aliases and WITH ORDINALITY have no pattern");
    return pl__projection(c, &scope, s->targets, s->target_count);
}

/* A function of the tree among other outputs: named in the error, since nobody else knows it. */
static status beside_others(struct pl__compile *c, const struct ast_stmt *s)
{
    for (unsigned i = 0; i < s->target_count && s->from_count == 0; i++) {
        const struct ast_node *n = s->targets[i].value;
        for (size_t k = 0; n != NULL && n->kind == AST_CALL && k < ARRAY_LEN(meta_functions); k++) {
            if (n->name_count == 1 && strcmp(n->names[0], meta_functions[k].name) == 0)
                return pl__no_pattern(c, n->at, meta_functions[k].id,
                                      "it stands alone in the SELECT list");
        }
    }
    return ST_UNSUPPORTED;
}

static status bind_meta_function(struct pl__bind *b);

status pl__compile_meta_function(struct pl__compile *c, const struct ast_stmt *s)
{
    bool in_from, known = false;
    const struct ast_node *n = call_of(s, &in_from);
    const struct meta_row *f = NULL;
    if (n == NULL)
        return beside_others(c, s);
    if (n->name_count > 2 || (n->name_count == 2 && strcmp(n->names[0], "public") != 0))
        return ST_UNSUPPORTED;
    for (size_t i = 0; i < ARRAY_LEN(meta_functions); i++) {
        if (strcmp(meta_functions[i].name, n->names[n->name_count - 1]) != 0)
            continue;
        known = true;
        if (n->count >= meta_functions[i].least && n->count <= meta_functions[i].most)
            f = &meta_functions[i];
    }
    if (!known)
        return ST_UNSUPPORTED;
    if (f == NULL || n->star || !n->plain)
        return no_function(c, n);
    if (in_from != f->is_table || !bare(s))
        return pl__no_pattern(c, n->at, f->id,
                              f->is_table ? "it stands alone in FROM, without other clauses"
                                          : "it stands alone in the SELECT list");
    struct pl__table *t = ARENA_NEW(c->a, struct pl__table);
    t->def = function_table(f);
    t->repeat = -1;
    ST_TRY(arguments(c, n, f->args, f->id, &t->args));
    t->arg_count = n->count;
    t->function = (unsigned)(f - meta_functions);
    if (f->is_table)
        ST_TRY(table_output(c, s, function_output(f), f->name));
    else
        one_column(c, &s->targets[0], f->name, f->result, f->type, -1);
    c->plan->pub.kind = f->is_table ? PL_READ : PL_WRITE;
    c->plan->pub.tag = "SELECT";
    c->plan->pattern_id = f->id;
    c->plan->body = t;
    c->plan->bind = bind_meta_function;
    return ST_OK;
}

/* -- binding ----------------------------------------------------------------------------------- */

static status datum(struct pl__bind *b, const struct pl__expr *e, enum kv_type type,
                    struct kv_datum *out)
{
    struct pl_value v;
    ST_TRY(pl__eval(b, e, 0, &v));
    status st = pl_value_convert(&v, pl_type_of(type), -1, false, b->ctx->style, b->ctx->now, b->a,
                                 &v, b->err);
    if (st == ST_OK)
        st = pl_value_to_datum(&v, type, "argument", out, b->err);
    return pl__eval_error(b, e, 0, st);
}

static status move_mode(struct pl__bind *b, const struct kv_datum *d, enum kv_move_mode *out)
{
    static const struct {
        const char *name;
        enum kv_move_mode mode;
    } modes[] = {{"replace", KV_MOVE_REPLACE},
                 {"noreplace", KV_MOVE_NOREPLACE},
                 {"exchange", KV_MOVE_EXCHANGE}};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (bytes_eq(d->b, bytes_str(modes[i].name))) {
            *out = modes[i].mode;
            return ST_OK;
        }
    }
    err_set(b->err, ST_INVALID, "unknown mode of move: \"%.*s\"",
            (int)(d->b.size < 60 ? d->b.size : 60), (const char *)d->b.data);
    err_hint(b->err, "The modes are replace, noreplace and exchange.");
    return ST_INVALID;
}

static void bind_table_function(struct pl__bind *b, const struct meta_row *f,
                                const struct kv_datum *args, unsigned count)
{
    struct kv_read *r = &b->out->read;
    *r = (struct kv_read){
        .table = function_table(f)->table, .ns = b->ctx->ns, .now = b->ctx->now, .limit = -1};
    switch (f->fn) {
    case MF_RESOLVE:
        r->kind = KV_READ_RESOLVE;
        r->pid = count == 2 ? args[0].i : KV_ROOT_ID;
        r->path = args[count - 1].b;
        break;
    case MF_LIST_ATTR:
        r->kind = KV_READ_LIST_ATTR;
        r->pid = args[0].i;
        r->after = count > 1 ? args[1].b : BYTES_EMPTY;
        r->limit = count > 2 ? args[2].i : -1;
        break;
    case MF_USAGE:
        r->kind = KV_READ_USAGE;
        r->pid = KV_ROOT_ID;
        r->path = args[0].b;
        break;
    case MF_LIST_OBJECTS:
        r->kind = KV_READ_OBJECTS;
        r->bucket = args[0].b;
        r->prefix = count > 1 ? args[1].b : BYTES_EMPTY;
        r->delimiter = count > 2 ? args[2].b : BYTES_EMPTY;
        r->after = count > 3 ? args[3].b : BYTES_EMPTY;
        r->limit = count > 4 ? args[4].i : -1;
        break;
    case MF_MAKE_PATH:
    case MF_MOVE:
    case MF_LINK:
    case MF_REMOVE_TREE: break;
    }
}

static status bind_operation(struct pl__bind *b, const struct meta_row *f,
                             const struct kv_datum *args, unsigned count)
{
    struct kv_op *op = &b->out->op;
    *op = (struct kv_op){
        .table = KV_META, .ns = b->ctx->ns, .now = b->ctx->now, .seed = b->ctx->seed};
    switch (f->fn) {
    case MF_MAKE_PATH:
        op->kind = KV_OP_MAKE_PATH;
        op->pid = KV_ROOT_ID;
        op->name = args[0].b;
        return ST_OK;
    case MF_MOVE:
    case MF_LINK:
        op->kind = f->fn == MF_MOVE ? KV_OP_MOVE : KV_OP_LINK;
        op->pid = args[0].i;
        op->name = args[1].b;
        op->new_pid = args[2].i;
        op->new_name = args[3].b;
        op->move = KV_MOVE_NOREPLACE;
        return count == 5 ? move_mode(b, &args[4], &op->move) : ST_OK;
    case MF_REMOVE_TREE:
        op->kind = KV_OP_DETACH;
        op->pid = args[0].i;
        op->name = args[1].b;
        return ST_OK;
    case MF_RESOLVE:
    case MF_LIST_ATTR:
    case MF_LIST_OBJECTS:
    case MF_USAGE: break;
    }
    return ST_INTERNAL;
}

static status bind_meta_function(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    const struct meta_row *f = &meta_functions[t->function];
    struct kv_datum args[5];
    bool null = false, lists = f->fn == MF_LIST_ATTR || f->fn == MF_LIST_OBJECTS;
    for (unsigned i = 0; i < t->arg_count; i++) {
        ST_TRY(datum(b, t->args[i], f->args[i], &args[i]));
        bool number = f->args[i] == KV_INT8;
        if (lists && args[i].null && i > 0)
            args[i] = number ? kv_int(-1) : kv_text(BYTES_EMPTY); /* no limit, from the start, … */
        else if (lists && number && i > 0 && args[i].i < 0)
            return err_set_state(b->err, ST_INVALID, "2201W", "LIMIT must not be negative");
        null = null || args[i].null;
    }
    if (null && f->is_table) {
        b->out->read =
            (struct kv_read){.kind = KV_READ_NOTHING, .table = t->def->table, .ns = b->ctx->ns};
        return ST_OK;
    }
    if (null)
        return err_set_state(b->err, ST_INVALID, "22004", "an argument of %s is null", f->name);
    if (!f->is_table)
        return bind_operation(b, f, args, t->arg_count);
    bind_table_function(b, f, args, t->arg_count);
    return ST_OK;
}

/* -- functions of schema metadb ---------------------------------------------------------------- */

struct admin {
    const struct pl__expr *const *args;
};

static const struct kv_table_def *result_def(struct pl__compile *c, const struct cl_function *f)
{
    struct kv_table_def *def = ARENA_NEW(c->a, struct kv_table_def);
    struct kv_column *columns = ARENA_ARRAY(c->a, struct kv_column, f->result_count + 1);
    for (unsigned i = 0; i < f->result_count; i++)
        columns[i] = (struct kv_column){.name = f->result[i].name, .type = f->result[i].type};
    *def = (struct kv_table_def){.table = KV_META,
                                 .name = f->name,
                                 .pkey = "",
                                 .columns = columns,
                                 .column_count = f->result_count,
                                 .seq_column = -1,
                                 .read_only = true};
    return def;
}

/* SELECT metadb.f() of several columns gives them side by side, not as one composite value. */
static status all_columns(struct pl__compile *c, const struct kv_table_def *def)
{
    struct pl__scope scope = {.def = def, .schema = "public", .table = def->name};
    struct ast_node *star = ARENA_NEW(c->a, struct ast_node);
    star->kind = AST_COLUMN;
    star->star = true;
    struct ast_target all = {.value = star};
    return pl__projection(c, &scope, &all, 1);
}

static status bind_admin_function(struct pl__bind *b)
{
    const struct admin *body = b->plan->body;
    const struct cl_function *f = b->plan->function;
    struct kv_datum *args = ARENA_ARRAY(b->a, struct kv_datum, f->arg_count + 1);
    for (unsigned i = 0; i < f->arg_count; i++)
        ST_TRY(datum(b, body->args[i], f->args[i].type, &args[i]));
    b->out->function = f;
    b->out->args = args;
    return ST_OK;
}

status pl__compile_admin_function(struct pl__compile *c, const struct ast_stmt *s)
{
    bool in_from;
    const struct ast_node *n = call_of(s, &in_from);
    if (n == NULL || n->name_count != 2 || strcmp(n->names[0], "metadb") != 0)
        return ST_UNSUPPORTED;
    unsigned count;
    const struct cl_function *all = cl_functions(&count), *f = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(all[i].name, n->names[1]) == 0 && all[i].arg_count == n->count)
            f = &all[i];
    }
    if (f == NULL || n->star || !n->plain)
        return no_function(c, n);
    if (!bare(s))
        return pl__no_pattern(c, n->at, PATTERN_FUNCTION, "it has no other clauses");
    struct admin *body = ARENA_NEW(c->a, struct admin);
    enum kv_type types[8];
    if (f->arg_count > ARRAY_LEN(types))
        return no_function(c, n);
    for (unsigned i = 0; i < f->arg_count; i++)
        types[i] = f->args[i].type;
    ST_TRY(arguments(c, n, types, PATTERN_FUNCTION, &body->args));
    if (in_from)
        ST_TRY(table_output(c, s, result_def(c, f), f->name));
    else if (f->result_count == 1)
        one_column(c, &s->targets[0], f->name, pl_type_of(f->result[0].type), f->result[0].type, 0);
    else
        ST_TRY(all_columns(c, result_def(c, f)));
    c->plan->pub.kind = PL_FUNCTION;
    c->plan->pub.tag = "SELECT";
    c->plan->pattern_id = PATTERN_FUNCTION;
    c->plan->function = f;
    c->plan->body = body;
    c->plan->bind = bind_admin_function;
    return ST_OK;
}
