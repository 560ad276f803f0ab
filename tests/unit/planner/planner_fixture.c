#include "planner_fixture.h"

#include "kv/key.h"

#include <inttypes.h>

static const char *setting(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "client_encoding") == 0  ? "UTF8"
           : strcmp(name, "server_version") == 0 ? "15.0"
                                                 : NULL;
}

void planned_init(struct planned *f)
{
    memset(f, 0, sizeof(*f));
    f->planner = pl_new(NULL, NULL);
    arena_init(&f->arena, 4096);
    f->ctx = (struct pl_context){
        .ns = 1,
        .now = 1000000,
        .clock_now = 2000000,
        .seed = 7,
        .style = &f->style,
        .user = "app",
        .database = "metadb",
        .application_name = "test",
        .backend_pid = 42,
        .setting = setting,
    };
}

void planned_fini(struct planned *f)
{
    pl_plan_unref(f->r.out.plan);
    pl_free(f->planner);
    arena_fini(&f->arena);
}

status planned_run(struct planned *f, const char *text, const uint32_t *types,
                   const char *const *params)
{
    unsigned type_count = 0;
    while (types != NULL && types[type_count] != 0)
        type_count++;
    pl_plan_unref(f->r.out.plan);
    arena_reset(&f->arena);
    f->r = (struct pl_request){
        .text = bytes_str(text), .types = types, .type_count = type_count, .arena = &f->arena};
    f->bound_too = false;
    err_clear(&f->err);
    f->st = pl_plan(f->planner, &f->r);
    f->err = f->r.err;
    if (f->st != ST_OK)
        return f->st;
    const struct pl_plan *plan = f->r.out.plan;
    struct pl_value *values = ARENA_ARRAY(&f->arena, struct pl_value, plan->param_count + 1);
    unsigned given = 0;
    while (params != NULL && params[given] != NULL)
        given++;
    for (unsigned i = 0; i < plan->param_count; i++) {
        if (i >= given || strcmp(params[i], "NULL") == 0) {
            values[i] = (struct pl_value){.oid = plan->param_types[i], .null = true};
            continue;
        }
        f->st = pl_value_from_text(plan->param_types[i], bytes_str(params[i]), &f->style,
                                   f->ctx.now, &f->arena, &values[i], &f->err);
        if (f->st != ST_OK)
            return f->st;
    }
    f->bound_too = true;
    f->st = pl_bind(&f->r.out, values, plan->param_count, &f->ctx, &f->arena, &f->bound, &f->err);
    return f->st;
}

/* -- showing ----------------------------------------------------------------------------------- */

static char line[65536];
static size_t used;

static void add(const char *fmt, ...) PRINTF_LIKE(1, 2);
static void add(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    used += (size_t)vsnprintf(line + used, sizeof(line) - used, fmt, ap);
    va_end(ap);
    if (used >= sizeof(line))
        used = sizeof(line) - 1;
}

static void add_datum(enum kv_type t, const struct kv_datum *d)
{
    if (d->deflt)
        add("default");
    else if (d->null)
        add("null");
    else if (t == KV_TEXT || t == KV_BYTEA)
        add("'%.*s'", (int)d->b.size, (const char *)d->b.data);
    else if (t == KV_CHAR)
        add("%c", (int)d->i);
    else
        add("%" PRId64, d->i);
}

static void add_key(struct planned *f, bytes key)
{
    struct kv_row row;
    uint32_t ns;
    if (key.size == 0) {
        add("end");
        return;
    }
    bytes name = key;
    bool meta = key.data[0] == KV_META || key.data[0] == KV_QUOTA;
    bool successor = key.data[key.size - 1] == 0 && key.size > KV_KEY_HEADER + (meta ? 8u : 1u);
    if (successor)
        name.size--;
    if (name.size >= KV_KEY_HEADER && kv_key_decode(&f->arena, name, &ns, &row) == ST_OK) {
        const struct kv_table_def *def = kv_table_def(row.table);
        if (ns != f->ctx.ns)
            add("ns%u", ns);
        add("(");
        for (unsigned i = 0; i < def->key_count; i++) {
            add(i > 0 ? "," : "%s", "");
            add_datum(def->columns[i].type, &row.col[i]);
        }
        add(successor ? ")+" : ")");
        return;
    }
    add("x");
    for (size_t i = 0; i < key.size; i++)
        add("%02x", key.data[i]);
}

static void add_filters(const struct kv_table_def *def, const struct kv_filter *filters,
                        unsigned count)
{
    static const char *const ops[] = {
        "?", "=", "<>", "<", "<=", ">", ">=", " is null", " is not null"};
    for (unsigned i = 0; i < count; i++) {
        add(" if %s%s", def->columns[filters[i].column].name, ops[filters[i].cmp]);
        if (filters[i].cmp < KV_IS_NULL)
            add_datum(def->columns[filters[i].column].type, &filters[i].value);
    }
}

static void add_read(struct planned *f, const struct kv_read *r)
{
    const struct kv_table_def *def = kv_table_def(r->table);
    switch (r->kind) {
    case KV_READ_POINTS:
        add(" points");
        for (unsigned i = 0; i < r->point_count; i++) {
            add(" ");
            add_key(f, r->points[i]);
        }
        break;
    case KV_READ_RANGE:
    case KV_READ_COUNT:
        add(r->kind == KV_READ_COUNT ? " count [" : " range [");
        add_key(f, r->lower);
        add(" to ");
        add_key(f, r->upper);
        add(")");
        break;
    case KV_READ_RESOLVE:
        add(" resolve %" PRId64 " '%.*s'", r->pid, (int)r->path.size, (const char *)r->path.data);
        break;
    case KV_READ_USAGE: add(" usage '%.*s'", (int)r->path.size, (const char *)r->path.data); break;
    case KV_READ_LIST_ATTR:
        add(" list_attr %" PRId64 " '%.*s'", r->pid, (int)r->after.size,
            (const char *)r->after.data);
        break;
    case KV_READ_OBJECTS:
        add(" objects '%.*s' prefix '%.*s' delimiter '%.*s' after '%.*s'", (int)r->bucket.size,
            (const char *)r->bucket.data, (int)r->prefix.size, (const char *)r->prefix.data,
            (int)r->delimiter.size, (const char *)r->delimiter.data, (int)r->after.size,
            (const char *)r->after.data);
        break;
    case KV_READ_NOTHING: add(" nothing"); break;
    }
    if (r->count)
        add(" counted");
    if (r->backwards)
        add(" backwards");
    if (r->limit >= 0)
        add(" limit %" PRId64, r->limit);
    if (r->for_update)
        add(" locked");
    add_filters(def, r->filters, r->filter_count);
}

static void add_sets(const struct kv_table_def *def, const struct kv_op *op)
{
    static const char *const kinds[] = {"=", "+=", "greatest", "least", "excluded"};
    for (unsigned i = 0; i < op->set_count; i++) {
        const struct kv_set *s = &op->sets[i];
        add(" set %s%s", def->columns[s->column].name, kinds[s->kind]);
        if (s->kind == KV_SET_EXCLUDED)
            add(".%s", def->columns[s->from].name);
        else
            add_datum(def->columns[s->column].type, &s->value);
    }
}

static void add_op(struct planned *f, const struct kv_op *op)
{
    const struct kv_table_def *def = kv_table_def(op->table);
    static const char *const kinds[] = {"?",    "insert", "update",    "delete", "delete_range",
                                        "move", "link",   "make_path", "detach", "lock"};
    add(" %s", kinds[op->kind]);
    for (unsigned r = 0; r < op->row_count; r++) {
        add(" (");
        for (unsigned i = 0; i < op->column_count; i++) {
            add("%s%s=", i > 0 ? "," : "", def->columns[op->columns[i]].name);
            add_datum(def->columns[op->columns[i]].type, &op->values[r * op->column_count + i]);
        }
        add(")");
    }
    if (op->kind == KV_OP_INSERT && op->conflict != KV_CONFLICT_ERROR)
        add(op->conflict == KV_CONFLICT_NOTHING ? " or nothing" : " or update");
    for (unsigned k = 0; k < op->key_count; k++) {
        add(" (");
        for (unsigned i = 0; i < def->key_count; i++) {
            add("%s", i > 0 ? "," : "");
            add_datum(def->columns[i].type, &op->keys[k * def->key_count + i]);
        }
        add(")");
    }
    if (op->kind == KV_OP_DELETE_RANGE) {
        add(" [");
        add_key(f, op->lower);
        add(" to ");
        add_key(f, op->upper);
        add(")");
    }
    if (op->kind == KV_OP_MOVE || op->kind == KV_OP_LINK)
        add(" (%" PRId64 ",'%.*s') to (%" PRId64 ",'%.*s') mode %d", op->pid, (int)op->name.size,
            (const char *)op->name.data, op->new_pid, (int)op->new_name.size,
            (const char *)op->new_name.data, (int)op->move);
    if (op->kind == KV_OP_MAKE_PATH || op->kind == KV_OP_DETACH)
        add(" %" PRId64 " '%.*s'", op->pid, (int)op->name.size, (const char *)op->name.data);
    add_sets(def, op);
    add_filters(def, op->filters, op->filter_count);
    if (op->want_rows)
        add(" returning");
}

static void add_values(struct planned *f)
{
    struct obuf o;
    obuf_init(&o);
    for (unsigned i = 0; i < f->r.out.plan->column_count; i++) {
        const struct pl_value *v = &f->bound.values[i];
        obuf_reset(&o);
        if (!v->null)
            pl_value_to_text(v, &f->style, &o);
        add("%s%s", i > 0 ? "|" : " ", v->null ? "NULL" : "");
        add("%.*s", (int)o.size, o.size == 0 ? "" : (const char *)o.data);
    }
    obuf_fini(&o);
}

static void add_columns(const struct pl_plan *plan)
{
    if (plan->column_count == 0)
        return;
    add(" :");
    for (unsigned i = 0; i < plan->column_count; i++)
        add("%s%s %s", i > 0 ? ", " : " ", plan->columns[i].name,
            pl_type_catalog_name(plan->columns[i].oid));
}

static void add_utility(const struct pl_utility *u)
{
    static const char *const formats[] = {"text", "csv", "binary"};
    if (u->name != NULL)
        add(" name=%s", u->name);
    if (u->value != NULL)
        add(" value=%s", u->value);
    if (u->isolation != NULL)
        add(" isolation=%s", u->isolation);
    if (u->read_only > 0)
        add(" read_only");
    if (u->local)
        add(" local");
    if (u->is_start)
        add(" start");
    if (u->chain)
        add(" chain");
    if (u->transaction)
        add("%s", u->characteristics ? " characteristics" : " transaction");
    if (u->is_move)
        add(" move");
    if (u->backward)
        add(" backward");
    if (u->count != 0)
        add(" count=%" PRId64, u->count);
    if (u->scroll || u->hold)
        add("%s%s", u->scroll ? " scroll" : "", u->hold ? " hold" : "");
    if (u->analyze || u->verbose)
        add("%s%s", u->analyze ? " analyze" : "", u->verbose ? " verbose" : "");
    for (unsigned i = 0; i < u->type_count; i++)
        add(" type=%s", pl_type_catalog_name(u->types[i]));
    for (unsigned i = 0; i < u->arg_count; i++) {
        struct obuf o;
        obuf_init(&o);
        if (!u->args[i].null)
            pl_value_to_text(&u->args[i], NULL, &o);
        add(" arg=%s:%.*s", pl_type_catalog_name(u->args[i].oid), (int)o.size,
            o.size == 0 ? "" : (const char *)o.data);
        obuf_fini(&o);
    }
    if (u->column_count > 0)
        add(" table=%s columns=%u", kv_table_def(u->table)->name, u->column_count);
    if (u->delimiter != 0)
        add(" %s delimiter=%s null=%s quote=%c escape=%c%s", formats[u->format],
            u->delimiter == '\t' ? "tab" : (const char[]){u->delimiter, 0}, u->null_text, u->quote,
            u->escape, u->header ? " header" : "");
    if (u->text != NULL)
        add(" at %u text={%s}", u->text_at, u->text);
}

const char *planned_show(struct planned *f, const char *text, const uint32_t *types,
                         const char *const *params)
{
    used = 0;
    line[0] = '\0';
    status st = planned_run(f, text, types, params);
    if (st != ST_OK) {
        add("%s %s", f->err.sqlstate, f->err.message);
        if (f->err.position != 0)
            add(" @%u", f->err.position);
        return line;
    }
    const struct pl_plan *plan = f->r.out.plan;
    add("%s", plan->pattern == NULL ? "-" : plan->pattern->name);
    switch ((int)plan->kind) {
    case PL_READ: add_read(f, &f->bound.read); break;
    case PL_WRITE: add_op(f, &f->bound.op); break;
    case PL_VALUES: add_values(f); break;
    default: add(" %s", plan->kind == PL_CATALOG ? "evaluated" : plan->tag);
    }
    if (plan->utility != NULL)
        add_utility(plan->utility);
    add_columns(plan);
    if (plan->param_count > 0) {
        add(" params");
        for (unsigned i = 0; i < plan->param_count; i++)
            add(" %s", pl_type_catalog_name(plan->param_types[i]));
    }
    return line;
}
