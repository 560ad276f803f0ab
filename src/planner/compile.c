/*
 * planner/compile.c — one statement's text into a plan, on a parse thread.
 *
 * pl__compile_text parses, decides whose statement it is, lets that part fill the plan, and settles
 * parameter types and baked-in literals. Who gets a SELECT:
 *
 *   a table of schema public in FROM, alone        bind_table.c
 *   a function of the tree, or of schema metadb    bind_meta.c
 *   no FROM, only values of values.c               values.c
 *   anything else without a table of ours          the evaluator of catalogue relations
 *   a table of ours in any other company           0A000
 */
#include "base/memory.h"
#include "planner/catalog.h"
#include "planner/parse.h"
#include "planner/pl_internal.h"

#include <stdlib.h>

/* -- whose table ------------------------------------------------------------------------------- */

static bool is_catalog_schema(const char *schema)
{
    return strcmp(schema, "pg_catalog") == 0 || strcmp(schema, "information_schema") == 0 ||
           strcmp(schema, "metadb") == 0;
}

static const struct kv_table_def *ours(const struct ast_relation *r)
{
    if (r->name == NULL || (r->schema != NULL && strcmp(r->schema, "public") != 0))
        return NULL;
    return kv_table_by_name(bytes_str(r->name));
}

static status no_relation(struct pl__compile *c, const struct ast_relation *r)
{
    return pl__error(c, r->at, ST_INVALID, "42P01", "relation \"%s%s%s\" does not exist",
                     r->schema == NULL ? "" : r->schema, r->schema == NULL ? "" : ".", r->name);
}

/* A table that is there for later versions. */
static status not_yet(struct pl__compile *c, const struct ast_relation *r)
{
    return pl__error(c, r->at, ST_UNSUPPORTED, NULL, "table \"%s\" cannot be used yet", r->name);
}

status pl__table_of(struct pl__compile *c, const struct ast_relation *r,
                    const struct kv_table_def **out)
{
    *out = ours(r);
    if (*out != NULL && pl__rules_of((*out)->table)->get == PATTERN_NONE)
        return not_yet(c, r);
    if (*out != NULL || (r->schema != NULL && is_catalog_schema(r->schema)) ||
        (r->schema == NULL && strncmp(r->name, "pg_", 3) == 0))
        return ST_OK;
    return no_relation(c, r);
}

static status written_table(struct pl__compile *c, const struct kv_table_def **out)
{
    const struct ast_relation *r = &c->stmt->table;
    ST_TRY(pl__table_of(c, r, out));
    if (*out == NULL)
        return pl__error(c, r->at, ST_DENIED, NULL, "permission denied for table %s", r->name);
    return ST_OK;
}

/* -- SELECT ------------------------------------------------------------------------------------ */

static status catalog(struct pl__compile *c, const uint32_t *declared, bytes text)
{
    struct catalog_shape shape = {0};
    struct pl__plan *p = c->plan;
    status st = pl_catalog_prepare(c->node, text, declared, c->declared_count, c->a, &p->catalog,
                                   &shape, c->err);
    if (st != ST_OK && c->err != NULL && c->err->position > 0)
        c->err->position += c->text_before;
    ST_TRY(st);
    p->pub.kind = PL_CATALOG;
    p->pub.tag = "SELECT";
    p->pub.returns_rows = true;
    p->pub.columns = shape.columns;
    p->pub.column_count = shape.column_count;
    p->pattern_id = PATTERN_CATALOG;
    for (unsigned i = 0; i < shape.param_count; i++)
        c->param_types[i] = shape.param_types[i];
    if (shape.param_count > c->param_count)
        c->param_count = shape.param_count;
    return ST_OK;
}

/* Tables of ours below S, and the first relation that is neither ours nor a catalogue's. */
static unsigned count_ours(const struct ast_stmt *s, const struct ast_relation **unknown)
{
    unsigned n = 0;
    *unknown = NULL;
    for (unsigned i = 0; i < s->relation_count; i++) {
        const struct ast_relation *r = &s->relations[i];
        if (ours(r) != NULL)
            n++;
        else if (*unknown == NULL && r->schema != NULL && !is_catalog_schema(r->schema))
            *unknown = r;
    }
    return n;
}

/* A table of ours in a company that no pattern has. */
static status mixed(struct pl__compile *c, const struct ast_stmt *s)
{
    enum pl_pattern_id nearest = PATTERN_META_LIST;
    int at = -1;
    for (unsigned i = 0; i < s->relation_count; i++) {
        const struct kv_table_def *def = ours(&s->relations[i]);
        if (def != NULL && at < 0) {
            at = s->relations[i].at;
            nearest = pl__rules_of(def->table)->list;
        }
    }
    if (s->unusual != NULL)
        return pl__no_pattern(c, s->unusual_at, nearest, "%s is not part of it", s->unusual);
    const char *what = s->from_count > 1                                ? "a second table"
                       : s->from_count == 1 && s->from[0].other != NULL ? s->from[0].other
                                                                        : "a sub-select";
    return pl__no_pattern(c, at, nearest, "%s is not part of it", what);
}

static bool has_error(const struct pl__compile *c)
{
    return c->err != NULL && c->err->code != ST_OK;
}

static status compile_select(struct pl__compile *c, const struct ast_stmt *s, bytes text)
{
    const struct ast_relation *unknown;
    unsigned n = count_ours(s, &unknown);
    if (unknown != NULL)
        return no_relation(c, unknown);
    if (n == 1 && s->from_count == 1 && ours(&s->from[0]) != NULL &&
        pl__rules_of(ours(&s->from[0])->table)->get == PATTERN_NONE)
        return not_yet(c, &s->from[0]);
    if (n == 1 && s->from_count == 1 && ours(&s->from[0]) != NULL && s->relation_count == 1)
        return pl__compile_select(c, ours(&s->from[0]));
    if (n > 0)
        return mixed(c, s);

    /* The declared types, before an attempt that fails infers others. */
    uint32_t *declared = ARENA_ARRAY(c->a, uint32_t, c->declared_count + 1);
    memcpy(declared, c->param_types, c->declared_count * sizeof(*declared));
    status (*const attempts[])(struct pl__compile *, const struct ast_stmt *) = {
        pl__compile_meta_function, pl__compile_admin_function, pl__compile_values};
    for (unsigned i = 0; i < ARRAY_LEN(attempts); i++) {
        status st = attempts[i](c, s);
        if (st == ST_OK || has_error(c))
            return st;
    }
    memset(c->param_types, 0, c->param_count * sizeof(*c->param_types));
    memcpy(c->param_types, declared, c->declared_count * sizeof(*declared));
    c->param_count = c->declared_count;
    return catalog(c, declared, text);
}

status pl__compile_query(struct pl__compile *c, const struct ast_stmt *s, bytes text)
{
    const struct kv_table_def *def;
    if (s->param_max > LIMIT_PARAMS)
        return pl__error(c, -1, ST_INVALID, "42P02", "there is no parameter $%u", s->param_max);
    if (!ast_is_query(s))
        return pl__unsupported(c, s);
    if (s->kind == STMT_SELECT)
        return compile_select(c, s, text);
    ST_TRY(written_table(c, &def));
    return s->kind == STMT_INSERT   ? pl__compile_insert(c, def)
           : s->kind == STMT_UPDATE ? pl__compile_update(c, def)
                                    : pl__compile_delete(c, def);
}

/* -- the end of a compile ---------------------------------------------------------------------- */

static status settle_params(struct pl__compile *c)
{
    unsigned count = c->param_count;
    if (c->declared_count > count)
        count = c->declared_count;
    if (c->stmt->kind != STMT_PREPARE && c->stmt->param_max > count)
        count = c->stmt->param_max;
    uint32_t *types = ARENA_ARRAY(c->a, uint32_t, count + 1);
    for (unsigned i = 0; i < count; i++) {
        types[i] = c->param_types[i];
        if (types[i] == 0)
            return pl__error(c, -1, ST_INVALID, "42P18",
                             "could not determine data type of parameter $%u", i + 1);
        if (types[i] == OID_UNKNOWN)
            types[i] = OID_TEXT;
    }
    c->plan->pub.param_types = types;
    c->plan->pub.param_count = count;
    return ST_OK;
}

static void settle_baked(struct pl__compile *c)
{
    struct pl__plan *p = c->plan;
    if (c->scan == NULL) {
        p->cacheable = false;
        return;
    }
    /* A list whose count is open leaves its slots open too: those of items beyond the first have
     * been compiled, but may not exist in the next text. */
    uint32_t *baked = ARENA_ARRAY(c->a, uint32_t, c->scan->slot_count + 1);
    unsigned n = 0;
    for (uint32_t i = 0; i < c->scan->slot_count; i++) {
        if (!c->slot_free[i])
            baked[n++] = i;
    }
    /* A slot behind an open list moves when the list grows; such a plan is right for one count
     * only. */
    for (unsigned r = 0; r < c->scan->repeat_count; r++) {
        const struct pl_repeat *x = &c->scan->repeats[r];
        if (c->repeat_free[r] && x->first + x->stride * x->count < c->scan->slot_count)
            c->repeat_free[r] = false;
    }
    p->baked = baked;
    p->baked_count = n;
    memcpy(p->repeat_free, c->repeat_free, sizeof(p->repeat_free));
}

static status compile_one(struct pl__compile *c, const struct ast_stmt *stmts, unsigned count)
{
    if (count == 0) {
        c->plan->pub.kind = PL_EMPTY;
        c->plan->pub.tag = "";
        c->plan->pattern_id = PATTERN_NONE;
        return ST_OK;
    }
    if (count > 1)
        return pl__error(c, -1, ST_SYNTAX, NULL,
                         "cannot insert multiple commands into a prepared statement");
    c->stmt = &stmts[0];
    ST_TRY(ast_is_query(c->stmt) ? pl__compile_query(c, c->stmt, c->text)
                                 : pl__compile_session(c, c->stmt));
    return settle_params(c);
}

status pl__compile_text(struct cl_node *node, bytes text, const struct pl_scan *scan,
                        const uint32_t *types, unsigned type_count, struct pl__plan **out,
                        struct err *err)
{
    struct arena scratch; /* the tree and what only the compile needs */
    const struct ast_stmt *stmts = NULL;
    unsigned count = 0;
    status st;

    if (type_count > LIMIT_PARAMS)
        return err_set(err, ST_PROTOCOL, "too many parameter types");
    struct pl__plan *plan = memory_new(MEMORY_PLANS, sizeof(*plan));
    plan->refs = 1;
    plan->cacheable = true;
    plan->pattern_id = PATTERN_NONE;
    arena_init(&plan->arena, 1024);
    plan->arena.use = MEMORY_PLANS;
    arena_init(&scratch, 16 * 1024);

    char *copy = arena_strdup(&scratch, text);
    struct pl__compile c = {
        .a = &plan->arena,
        .node = node,
        .text = bytes_make(copy, text.size),
        .scan = scan->cacheable ? scan : NULL,
        .slot_free = ARENA_ARRAY(&scratch, bool, scan->slot_count + 1),
        .param_types = ARENA_ARRAY(&scratch, uint32_t, LIMIT_PARAMS + 1),
        .param_count = type_count,
        .declared_count = type_count,
        .plan = plan,
        .err = err,
    };
    if (type_count > 0)
        memcpy(c.param_types, types, type_count * sizeof(*types));
    err_clear(err);
    if (text.size > LIMIT_SQL_PARSE_BYTES) {
        st = err_set(err, ST_TOO_COMPLEX, "statement of unknown shape is longer than %u bytes",
                     LIMIT_SQL_PARSE_BYTES);
        err_hint(err, "Send long values as parameters.");
    } else if (strlen(copy) != text.size) {
        st = err_set_state(err, ST_INVALID, "22021",
                           "invalid byte sequence for encoding \"UTF8\": 0x00");
    } else {
        st = pl__parse(copy, &scratch, &stmts, &count, err);
    }
    if (st == ST_OK)
        st = compile_one(&c, stmts, count);
    if (st == ST_OK) {
        settle_baked(&c);
        plan->pub.pattern = pl__pattern(plan->pattern_id);
        plan->pub.fingerprint = count == 0 ? 0 : pl__fingerprint(copy);
        *out = plan;
    } else {
        err_default(err, st);
        pl_plan_unref(&plan->pub);
    }
    arena_fini(&scratch);
    return st;
}
