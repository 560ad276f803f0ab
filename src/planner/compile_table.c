/*
 * planner/compile_table.c — from the tree of a statement on a table to its plan: reads by key and
 * range, INSERT, UPDATE, DELETE. Runs on a parse thread; bind_table.c runs what this makes.
 *
 * After pl__canonical_where, key columns bound by equality are counted from the left. All of them:
 * points; all but the last, and that by a list: many points; else a range over the next key column,
 * and other conditions are filters on the rows. Which of these a table has is in its rules
 * (bind_meta.c, bind_kv.c, bind_object.c); what is missing there is 0A000 with the nearest pattern.
 */
#include "planner/pl_internal.h"

/* -- which form --------------------------------------------------------------------- */

/* What the conditions mean for the key. */
static void classify(struct pl__table *t)
{
    const struct kv_table_def *def = t->def;
    while (t->eq_count < def->key_count) {
        bool bound = false, listed = false;
        for (unsigned i = 0; i < t->where.count; i++) {
            const struct pl__cond *k = &t->where.conds[i];
            if (k->column != t->eq_count)
                continue;
            bound = bound || (k->kind == COND_COMPARE && k->cmp == KV_EQ);
            listed = listed || k->kind == COND_IN || k->kind == COND_ANY;
        }
        if (!bound) {
            t->many = listed && t->eq_count + 1 == def->key_count;
            break;
        }
        t->eq_count++;
    }
    t->points = t->many || t->eq_count == def->key_count;
}

/* Conditions that neither points nor ranges use are filters: comparisons only, and for key columns
 * only those that bounds cannot say. */
bool pl__is_bound(const struct pl__table *t, const struct pl__cond *k)
{
    if (k->kind == COND_ROW)
        return true;
    if (k->column < t->eq_count)
        return k->kind == COND_COMPARE && k->cmp == KV_EQ;
    if (k->column == t->eq_count && t->many)
        return k->kind == COND_IN || k->kind == COND_ANY;
    if (k->column != t->eq_count || t->points)
        return false;
    return k->kind == COND_LIKE || (k->kind == COND_COMPARE && k->cmp >= KV_LT && k->cmp <= KV_GE);
}

static status check_conds(struct pl__compile *c, const struct pl__table *t,
                          enum pl_pattern_id nearest)
{
    unsigned lists = 0;
    for (unsigned i = 0; i < t->where.count; i++) {
        const struct pl__cond *k = &t->where.conds[i];
        if (k->kind == COND_ROW && t->eq_count > 0)
            return pl__no_pattern(c, k->at, nearest, "a row comparison stands alone");
        if (k->kind == COND_IN || k->kind == COND_ANY)
            lists++;
        if (pl__is_bound(t, k))
            continue;
        if (k->kind != COND_COMPARE)
            return pl__no_pattern(c, k->at, nearest, "column \"%s\" takes no such condition here",
                                  t->def->columns[k->column].name);
    }
    if (lists > 1)
        return pl__no_pattern(c, -1, nearest, "it has one list of values");
    return ST_OK;
}

static bool is_count(const struct ast_stmt *s)
{
    if (s->target_count != 1 || s->targets[0].value == NULL)
        return false;
    const struct ast_node *n = s->targets[0].value;
    return n->kind == AST_CALL && n->star && n->plain &&
           strcmp(n->names[n->name_count - 1], "count") == 0 &&
           (n->name_count == 1 || (n->name_count == 2 && strcmp(n->names[0], "pg_catalog") == 0));
}

static void count_column(struct pl__compile *c, const struct ast_target *t)
{
    struct pl_column *column = ARENA_NEW(c->a, struct pl_column);
    *column = (struct pl_column){
        .name = t->name == NULL ? "count" : arena_strdup(c->a, bytes_str(t->name)),
        .oid = OID_INT8,
        .typmod = -1,
        .source = -1,
        .type = KV_INT8,
    };
    c->plan->pub.columns = column;
    c->plan->pub.column_count = 1;
    c->plan->pub.returns_rows = true;
}

static enum pl_pattern_id read_pattern(const struct pl__rules *r, const struct pl__table *t)
{
    if (t->many)
        return r->get_many;
    if (t->points)
        return r->get;
    if (t->eq_count == 0)
        return r->scan;
    return t->count ? r->count : r->list;
}

/* The pattern to compare a refused SELECT with. */
static enum pl_pattern_id nearest_read(const struct pl__rules *r)
{
    return r->list != PATTERN_NONE ? r->list : r->scan != PATTERN_NONE ? r->scan : r->get;
}

static status unusual(struct pl__compile *c, enum pl_pattern_id nearest)
{
    const struct ast_stmt *s = c->stmt;
    if (s->unusual != NULL)
        return pl__no_pattern(c, s->unusual_at, nearest, "%s is not part of it", s->unusual);
    return ST_OK;
}

/* What every statement on a table begins with. FROM is where DEF is named. */
static status begin(struct pl__compile *c, const struct kv_table_def *def,
                    const struct ast_relation *from, enum pl_pattern_id nearest,
                    struct pl__table **out, struct pl__scope *scope)
{
    struct pl__table *t = ARENA_NEW(c->a, struct pl__table);
    t->def = def;
    t->repeat = -1;
    *out = t;
    ST_TRY(unusual(c, nearest));
    return pl__scope_of(c, from, def, scope);
}

status pl__read_only(struct pl__compile *c, const struct ast_relation *table,
                     const struct kv_table_def *def)
{
    pl__error(c, table->at, ST_DENIED, NULL, "permission denied for table %s", def->name);
    err_detail(c->err, "The server maintains this table.");
    return ST_DENIED;
}

/* As begin, of a statement that writes: ID is its pattern, if DEF has it. */
static status begin_write(struct pl__compile *c, const struct kv_table_def *def,
                          enum pl_pattern_id id, struct pl__table **out, struct pl__scope *scope)
{
    const struct ast_relation *table = &c->stmt->table;
    if (def->read_only || id == PATTERN_NONE)
        return pl__read_only(c, table, def);
    return begin(c, def, table, id, out, scope);
}

/* The plan of a statement on a table, once T says all. */
static void settle(struct pl__compile *c, enum pl_kind kind, const char *tag, enum pl_pattern_id id,
                   const struct pl__table *t, status (*bind)(struct pl__bind *b))
{
    c->plan->pub.kind = kind;
    c->plan->pub.tag = tag;
    c->plan->pattern_id = id;
    c->plan->body = t;
    c->plan->bind = bind;
}

/* Conditions on key columns behind a gap (name without pid) would read the whole table. */
static status check_gap(struct pl__compile *c, const struct pl__table *t,
                        enum pl_pattern_id nearest)
{
    bool bounded = false;
    for (unsigned i = 0; i < t->where.count; i++)
        bounded = bounded || pl__is_bound(t, &t->where.conds[i]);
    for (unsigned i = 0; i < t->where.count && t->eq_count == 0 && !bounded; i++) {
        const struct pl__cond *k = &t->where.conds[i];
        if (k->column != 0)
            return pl__no_pattern(c, k->at, nearest, "the statement has no %s = ?",
                                  t->def->columns[0].name);
    }
    return ST_OK;
}

/* FOR UPDATE [OF table]. */
static status check_locking(struct pl__compile *c, const struct ast_stmt *s,
                            const struct pl__table *t, enum pl_pattern_id nearest)
{
    const struct ast_relation *from = &s->from[0];
    const char *of = s->lock_of.name, *name = from->alias != NULL ? from->alias : from->name;
    if (of != NULL && strcmp(of, name) != 0)
        return pl__error(c, s->lock_of.at, ST_INVALID, "42P01",
                         "relation \"%s\" in FOR UPDATE clause not found in FROM clause", of);
    if (s->lock_other)
        return pl__no_pattern(c, -1, nearest, "FOR UPDATE is the only lock it has");
    if (s->for_update && !t->points)
        return pl__no_pattern(c, -1, nearest, "FOR UPDATE goes with the lookup of whole keys");
    return ST_OK;
}

status pl__compile_select(struct pl__compile *c, const struct kv_table_def *def)
{
    const struct ast_stmt *s = c->stmt;
    const struct pl__rules *rules = pl__rules_of(def->table);
    struct pl__table *t;
    struct pl__scope scope;
    enum pl_pattern_id nearest = nearest_read(rules);

    ST_TRY(begin(c, def, &s->from[0], nearest, &t, &scope));
    t->count = is_count(s);
    if (t->count)
        count_column(c, &s->targets[0]);
    else
        ST_TRY(pl__projection(c, &scope, s->targets, s->target_count));
    t->output = kv_column_bit(0); /* a count needs none; the key's are there in any case */
    for (unsigned i = 0; i < c->plan->pub.column_count && !t->count; i++) {
        int source = c->plan->pub.columns[i].source;
        if (source >= 0) /* else a constant */
            t->output |= kv_column_bit((unsigned)source);
    }
    ST_TRY(pl__canonical_where(c, &scope, s->where, &t->where));
    classify(t);
    enum pl_pattern_id id = read_pattern(rules, t);
    if (id != PATTERN_NONE)
        nearest = id;
    ST_TRY(check_conds(c, t, nearest));
    ST_TRY(check_gap(c, t, nearest));
    if (id == PATTERN_NONE)
        return pl__no_pattern(c, s->from[0].at, nearest, "the key is not given");
    if (t->count && s->sort_count > 0)
        return pl__no_pattern(c, s->sort[0].at, nearest, "a count has no order");
    ST_TRY(pl__order(c, &scope, t, nearest));
    ST_TRY(pl__limit(c, s, t, nearest));
    ST_TRY(check_locking(c, s, t, nearest));
    if (s->for_update && t->count)
        return pl__error(c, -1, ST_UNSUPPORTED, NULL,
                         "FOR UPDATE is not allowed with aggregate functions");
    if (s->for_update && def->read_only)
        return pl__error(c, -1, ST_DENIED, NULL, "cannot lock rows in relation \"%s\"", def->name);
    t->for_update = s->for_update;
    settle(c, PL_READ, "SELECT", id, t, pl__bind_read);
    return ST_OK;
}

/* -- INSERT ------------------------------------------------------------------------- */

static status insert_columns(struct pl__compile *c, struct pl__table *t)
{
    const struct ast_stmt *s = c->stmt;
    unsigned *columns = ARENA_ARRAY(c->a, unsigned, t->def->column_count + 1);
    bool seen[LIMIT_COLUMNS] = {false};
    t->columns = columns;
    if (s->target_count == 0) {
        for (unsigned i = 0; i < t->def->column_count; i++)
            columns[i] = i;
        t->column_count = t->def->column_count;
        return ST_OK;
    }
    for (unsigned i = 0; i < s->target_count; i++) {
        const struct ast_target *x = &s->targets[i];
        int column = x->name == NULL ? -1 : kv_column_by_name(t->def, bytes_str(x->name));
        if (column < 0)
            return pl__error(c, x->at, ST_INVALID, "42703",
                             "column \"%s\" of relation \"%s\" does not exist",
                             x->name == NULL ? "" : x->name, t->def->name);
        if (x->indirection)
            return pl__no_pattern(c, x->at, PATTERN_NONE, "Columns have no parts to assign to");
        if (seen[column])
            return pl__error(c, x->at, ST_INVALID, "42701",
                             "column \"%s\" specified more than once", x->name);
        seen[column] = true;
        columns[i] = (unsigned)column;
    }
    t->column_count = s->target_count;
    return ST_OK;
}

static status read_only_column(struct pl__compile *c, const struct kv_column *column, bool insert,
                               int at)
{
    pl__error(c, at, ST_INVALID, "428C9",
              insert ? "cannot insert a non-DEFAULT value into column \"%s\""
                     : "column \"%s\" can only be updated to DEFAULT",
              column->name);
    err_detail(c->err, "Column \"%s\" is set by the server.", column->name);
    return ST_INVALID;
}

static status insert_rows(struct pl__compile *c, struct pl__table *t, enum pl_pattern_id nearest)
{
    const struct ast_stmt *s = c->stmt;
    size_t room = (size_t)s->row_count * t->column_count;
    const struct pl__expr **cells = ARENA_ARRAY(c->a, const struct pl__expr *, room + 1);
    if (s->row_count > LIMIT_STATEMENT_ROWS)
        return pl__error(c, -1, ST_LIMIT, NULL, "an INSERT has at most %u rows",
                         LIMIT_STATEMENT_ROWS);
    for (unsigned r = 0; r < s->row_count; r++) {
        const struct ast_node *row = s->rows[r];
        if (row->count != s->rows[0]->count)
            return pl__error(c, row->count > 0 ? row->items[0]->at : -1, ST_SYNTAX, NULL,
                             "VALUES lists must all be the same length");
        if (row->count > t->column_count)
            return pl__error(c, row->items[t->column_count]->at, ST_SYNTAX, NULL,
                             "INSERT has more expressions than target columns");
        if (row->count < t->column_count && s->target_count > 0)
            return pl__error(c, s->targets[row->count].at, ST_SYNTAX, NULL,
                             "INSERT has more target columns than expressions");
        t->column_count = row->count;
        for (unsigned i = 0; i < row->count; i++) {
            const struct kv_column *column = &t->def->columns[t->columns[i]];
            const struct pl__expr *e;
            ST_TRY(pl__expr_of(c, row->items[i], pl_type_of(column->type), nearest, &e));
            ST_TRY(pl__check_assign(c, column, e));
            if (column->read_only && e->kind != EXPR_DEFAULT)
                return read_only_column(c, column, true, row->items[i]->at);
            cells[r * row->count + i] = e;
        }
    }
    t->cells = cells;
    t->row_count = s->row_count;
    return ST_OK;
}

/* NULL, TRUE, FALSE and DEFAULT, which the shape shows. */
static bool same_constant(const struct pl__expr *a, const struct pl__expr *b)
{
    if (a->kind != b->kind || (a->kind != EXPR_CONST && a->kind != EXPR_DEFAULT))
        return false;
    return a->kind == EXPR_DEFAULT || (a->value.null && b->value.null) ||
           (a->oid == OID_BOOL && b->oid == OID_BOOL && a->value.i == b->value.i);
}

static int first_slot(const struct pl__table *t)
{
    for (unsigned i = 0; i < t->column_count; i++) {
        if (t->cells[i]->kind == EXPR_LITERAL)
            return t->cells[i]->slot;
    }
    return -1;
}

/* Do the cells follow a collapsed list of the text row by row? Then the plan holds for any number
 * of rows, and the cells of the first one, shifted, stand for all. */
static int rows_repeat(struct pl__compile *c, const struct pl__table *t)
{
    for (unsigned r = 0; c->scan != NULL && r < c->scan->repeat_count; r++) {
        const struct pl_repeat *repeat = &c->scan->repeats[r];
        bool same = repeat->count == t->row_count;
        for (unsigned row = 1; same && row < t->row_count; row++) {
            for (unsigned i = 0; same && i < t->column_count; i++) {
                const struct pl__expr *a = t->cells[i], *b = t->cells[row * t->column_count + i];
                if (a->kind == EXPR_LITERAL)
                    same = b->kind == EXPR_LITERAL && a->negate == b->negate &&
                           a->slot + (int)(row * repeat->stride) == b->slot;
                else
                    same = same_constant(a, b);
            }
        }
        if (same && (repeat->stride == 0 || first_slot(t) == (int)repeat->first))
            return (int)r;
    }
    return -1;
}

static status set_clauses(struct pl__compile *c, const struct pl__scope *scope, struct pl__table *t,
                          const struct ast_target *targets, unsigned count, bool conflict,
                          enum pl_pattern_id nearest);

static status conflict(struct pl__compile *c, struct pl__table *t, const struct pl__rules *rules,
                       const struct pl__scope *scope, enum pl_pattern_id *id)
{
    const struct ast_stmt *s = c->stmt;
    const struct kv_table_def *def = t->def;
    if (s->on_conflict == ON_CONFLICT_NONE)
        return ST_OK;
    if (s->conflict_unusual || s->conflict_where != NULL)
        return pl__no_pattern(c, s->conflict_at, *id, "ON CONFLICT has no condition");
    if (s->conflict_constraint != NULL && strcmp(s->conflict_constraint, def->pkey) != 0)
        return pl__error(c, -1, ST_INVALID, "42704",
                         "constraint \"%s\" for table \"%s\" does not exist",
                         s->conflict_constraint, def->name);
    unsigned hit = 0;
    for (unsigned i = 0; i < s->conflict_column_count; i++) {
        int column = kv_column_by_name(def, bytes_str(s->conflict_columns[i]));
        if (column < 0)
            return pl__error(c, s->conflict_at, ST_INVALID, "42703", "column \"%s\" does not exist",
                             s->conflict_columns[i]);
        hit += (unsigned)column < def->key_count;
    }
    if (s->conflict_column_count > 0 && (hit != def->key_count || s->conflict_column_count != hit))
        return pl__error(
            c, -1, ST_INVALID, "42P10",
            "there is no unique or exclusion constraint matching the ON CONFLICT specification");
    t->conflict = KV_CONFLICT_NOTHING;
    if (s->on_conflict == ON_CONFLICT_NOTHING)
        return ST_OK;
    if (s->conflict_column_count == 0 && s->conflict_constraint == NULL) {
        pl__error(c, s->conflict_at, ST_SYNTAX, NULL,
                  "ON CONFLICT DO UPDATE requires inference specification or constraint name");
        err_hint(c->err, "For example, ON CONFLICT (column_name).");
        return ST_SYNTAX;
    }
    if (rules->upsert == PATTERN_NONE)
        return pl__no_pattern(c, s->conflict_at, *id, "ON CONFLICT DO UPDATE is not part of it");
    *id = rules->upsert;
    t->conflict = KV_CONFLICT_UPDATE;
    return set_clauses(c, scope, t, s->conflict_sets, s->conflict_set_count, true, *id);
}

static status returning(struct pl__compile *c, struct pl__table *t, const struct pl__scope *scope)
{
    if (c->stmt->returning_count == 0)
        return ST_OK;
    t->want_rows = true;
    return pl__projection(c, scope, c->stmt->returning, c->stmt->returning_count);
}

status pl__compile_insert(struct pl__compile *c, const struct kv_table_def *def)
{
    const struct ast_stmt *s = c->stmt;
    const struct pl__rules *rules = pl__rules_of(def->table);
    struct pl__table *t;
    struct pl__scope scope;
    enum pl_pattern_id id = rules->insert;

    ST_TRY(begin_write(c, def, id, &t, &scope));
    if (s->default_values || s->insert_select)
        return pl__no_pattern(c, s->table.at, id, "its rows are a VALUES list");
    ST_TRY(insert_columns(c, t));
    ST_TRY(insert_rows(c, t, id));
    ST_TRY(conflict(c, t, rules, &scope, &id));
    ST_TRY(returning(c, t, &scope));
    t->repeat = rows_repeat(c, t);
    if (t->repeat >= 0)
        c->repeat_free[t->repeat] = true;
    settle(c, PL_WRITE, "INSERT 0", id, t, pl__bind_insert);
    return ST_OK;
}

/* -- UPDATE ------------------------------------------------------------------------- */

/* Is N the column COLUMN itself, unqualified or of this table? */
static bool is_itself(const struct pl__scope *scope, const struct ast_node *n, unsigned column)
{
    if (n == NULL || n->kind != AST_COLUMN || n->star || n->name_count == 0 || n->name_count > 2 ||
        kv_column_by_name(scope->def, bytes_str(n->names[n->name_count - 1])) != (int)column)
        return false;
    return n->name_count == 1 ||
           strcmp(n->names[0], scope->alias != NULL ? scope->alias : scope->table) == 0;
}

bool pl__integer_column(const struct kv_column *k)
{
    return k->type == KV_INT2 || k->type == KV_INT4 || k->type == KV_INT8;
}

/* col + ?, ? + col, col - ?, greatest(col, ?), least(col, ?): gives the other operand. */
static const struct ast_node *other_operand(const struct pl__scope *scope, const struct ast_node *n,
                                            struct pl__set *set)
{
    if (n->kind == AST_OP && n->left != NULL && n->right != NULL &&
        (strcmp(n->text, "+") == 0 || strcmp(n->text, "-") == 0) &&
        pl__integer_column(&scope->def->columns[set->column])) {
        set->kind = KV_SET_ADD;
        set->negate = n->text[0] == '-';
        if (is_itself(scope, n->left, set->column))
            return n->right;
        return !set->negate && is_itself(scope, n->right, set->column) ? n->left : NULL;
    }
    if ((n->kind == AST_GREATEST || n->kind == AST_LEAST) && n->count == 2) {
        set->kind = n->kind == AST_GREATEST ? KV_SET_GREATEST : KV_SET_LEAST;
        if (is_itself(scope, n->items[0], set->column))
            return n->items[1];
        return is_itself(scope, n->items[1], set->column) ? n->items[0] : NULL;
    }
    return NULL;
}

static bool is_excluded(const struct kv_table_def *def, const struct ast_node *n, unsigned *from)
{
    if (n->kind != AST_COLUMN || n->star || n->name_count != 2 ||
        strcmp(n->names[0], "excluded") != 0)
        return false;
    int column = kv_column_by_name(def, bytes_str(n->names[1]));
    *from = (unsigned)column;
    return column >= 0;
}

/* col = column: never a pattern; says what is wrong with it. */
static status set_to_column(struct pl__compile *c, const struct pl__scope *scope,
                            const struct kv_column *to, const struct ast_node *n,
                            enum pl_pattern_id nearest)
{
    unsigned from;
    ST_TRY(pl__column(c, scope, n, &from));
    struct pl__expr e = {.oid = pl_type_of(scope->def->columns[from].type), .at = n->at};
    ST_TRY(pl__check_assign(c, to, &e));
    return pl__no_pattern(c, n->at, nearest, "a column is not set to another column or to itself");
}

static status set_clause(struct pl__compile *c, const struct pl__scope *scope, struct pl__set *set,
                         const struct ast_target *x, bool conflict, enum pl_pattern_id nearest)
{
    const struct kv_table_def *def = scope->def;
    const struct kv_column *column = &def->columns[set->column];
    const struct ast_node *n = x->value;
    if (n == NULL || x->indirection)
        return pl__no_pattern(c, x->at, nearest, "it sets whole columns");
    if (conflict && n->kind == AST_COLUMN && !n->star && n->name_count == 2 &&
        strcmp(n->names[0], "excluded") == 0 && kv_column_by_name(def, bytes_str(n->names[1])) < 0)
        return pl__error(c, n->at, ST_INVALID, "42703", "column excluded.%s does not exist",
                         n->names[1]);
    if (conflict && is_excluded(def, n, &set->from)) {
        if (def->columns[set->from].type != column->type)
            return pl__no_pattern(c, n->at, nearest, "the columns have different types");
        set->kind = KV_SET_EXCLUDED;
        return ST_OK;
    }
    const struct ast_node *other = other_operand(scope, n, set);
    if (other == NULL && n->kind == AST_COLUMN && !n->star)
        return set_to_column(c, scope, column, n, nearest);
    if (other == NULL) {
        set->kind = KV_SET_VALUE;
        other = n;
    }
    ST_TRY(pl__expr_of(c, other, pl_type_of(column->type), nearest, &set->value));
    if (set->kind != KV_SET_VALUE && set->value->kind == EXPR_DEFAULT)
        return pl__error(c, other->at, ST_SYNTAX, NULL, "DEFAULT is not allowed in this context");
    if (set->kind == KV_SET_ADD && set->value->oid != OID_UNKNOWN &&
        !(set->value->oid == OID_INT8 || set->value->oid == OID_INT4 ||
          set->value->oid == OID_INT2))
        return pl__no_pattern(c, other->at, nearest, "an integer is added");
    ST_TRY(pl__check_assign(c, column, set->value));
    if (column->read_only && set->value->kind != EXPR_DEFAULT)
        return read_only_column(c, column, false, x->at);
    return ST_OK;
}

static status set_clauses(struct pl__compile *c, const struct pl__scope *scope, struct pl__table *t,
                          const struct ast_target *targets, unsigned count, bool conflict,
                          enum pl_pattern_id nearest)
{
    struct pl__set *sets = ARENA_ARRAY(c->a, struct pl__set, count + 1);
    bool seen[LIMIT_COLUMNS] = {false};
    for (unsigned i = 0; i < count; i++) {
        const struct ast_target *x = &targets[i];
        int column = x->name == NULL ? -1 : kv_column_by_name(t->def, bytes_str(x->name));
        if (column < 0)
            return pl__error(c, x->at, ST_INVALID, "42703",
                             "column \"%s\" of relation \"%s\" does not exist",
                             x->name == NULL ? "" : x->name, t->def->name);
        if (seen[column])
            return pl__error(c, -1, ST_SYNTAX, NULL, "multiple assignments to same column \"%s\"",
                             x->name);
        seen[column] = true;
        sets[i].column = (unsigned)column;
        if ((unsigned)column < t->def->key_count &&
            (conflict || pl__rules_of(t->def->table)->move == PATTERN_NONE))
            return pl__no_pattern(c, x->at, nearest, "columns of the key are not set");
        ST_TRY(set_clause(c, scope, &sets[i], x, conflict, nearest));
        if (sets[i].kind == KV_SET_VALUE && sets[i].value->kind == EXPR_DEFAULT &&
            t->def->columns[column].key)
            return pl__error(c, x->at, ST_INVALID, "23502",
                             "null value in column \"%s\" of relation \"%s\" "
                             "violates not-null constraint",
                             x->name, t->def->name);
    }
    t->sets = sets;
    t->set_count = count;
    return ST_OK;
}

/* UPDATE of pid and name: a move. */
static status as_move(struct pl__compile *c, struct pl__table *t, const struct pl__rules *rules)
{
    for (unsigned i = 0; i < t->set_count; i++) {
        const struct pl__set *set = &t->sets[i];
        if (set->column >= t->def->key_count || set->kind != KV_SET_VALUE)
            return pl__no_pattern(c, c->stmt->targets[i].at, rules->move,
                                  "a rename sets pid and name and nothing else");
        if (set->column == 0)
            t->new_pid = set->value;
        else
            t->new_name = set->value;
    }
    c->plan->pattern_id = rules->move;
    c->plan->bind = pl__bind_move;
    return ST_OK;
}

status pl__compile_update(struct pl__compile *c, const struct kv_table_def *def)
{
    const struct ast_stmt *s = c->stmt;
    const struct pl__rules *rules = pl__rules_of(def->table);
    struct pl__table *t;
    struct pl__scope scope;

    ST_TRY(begin_write(c, def, rules->update, &t, &scope));
    ST_TRY(set_clauses(c, &scope, t, s->targets, s->target_count, false, rules->update));
    ST_TRY(pl__canonical_where(c, &scope, s->where, &t->where));
    ST_TRY(returning(c, t, &scope));
    classify(t);
    if (!t->points || t->many)
        return pl__no_pattern(c, s->table.at, rules->update, "the whole key is given by =");
    ST_TRY(check_conds(c, t, rules->update));
    settle(c, PL_WRITE, "UPDATE", rules->update, t, pl__bind_update);
    for (unsigned i = 0; i < t->set_count; i++) {
        if (t->sets[i].column < def->key_count)
            return as_move(c, t, rules);
    }
    return ST_OK;
}

/* -- DELETE ------------------------------------------------------------------------- */

/* Has the range of a DELETE both ends? */
static bool closed_range(const struct pl__table *t)
{
    bool lower = false, upper = false;
    for (unsigned i = 0; i < t->where.count; i++) {
        const struct pl__cond *k = &t->where.conds[i];
        if (k->kind == COND_LIKE)
            lower = upper = true;
        if (k->kind != COND_COMPARE || k->column != t->eq_count)
            continue;
        lower = lower || k->cmp == KV_GT || k->cmp == KV_GE;
        upper = upper || k->cmp == KV_LT || k->cmp == KV_LE;
    }
    return lower && upper;
}

static status check_range(struct pl__compile *c, struct pl__table *t, enum pl_pattern_id nearest)
{
    if (t->eq_count + 1 != t->def->key_count)
        return pl__no_pattern(c, c->stmt->table.at, nearest, "the statement has no %s = ?",
                              t->def->columns[t->eq_count].name);
    for (unsigned i = 0; i < t->where.count; i++) {
        const struct pl__cond *k = &t->where.conds[i];
        /* name <> '_attr_' holds for what a range removes anyway. */
        bool harmless = t->def->table == KV_META && k->column == META_NAME && k->cmp == KV_NE;
        if (!pl__is_bound(t, k) && !harmless)
            return pl__no_pattern(c, k->at, nearest, "a range has no condition beside its bounds");
        if (k->kind == COND_ROW)
            return pl__no_pattern(c, k->at, nearest, "a row comparison is not part of it");
    }
    if (!closed_range(t))
        return pl__no_pattern(c, c->stmt->table.at, nearest,
                              "a range has a lower and an upper end");
    if (t->want_rows)
        return pl__no_pattern(c, -1, nearest, "RETURNING is not part of it");
    return ST_OK;
}

status pl__compile_delete(struct pl__compile *c, const struct kv_table_def *def)
{
    const struct ast_stmt *s = c->stmt;
    const struct pl__rules *rules = pl__rules_of(def->table);
    struct pl__table *t;
    struct pl__scope scope;

    ST_TRY(begin_write(c, def, rules->remove, &t, &scope));
    ST_TRY(pl__canonical_where(c, &scope, s->where, &t->where));
    ST_TRY(returning(c, t, &scope));
    classify(t);
    enum pl_pattern_id id = t->many     ? rules->remove_many
                            : t->points ? rules->remove
                                        : rules->remove_range;
    if (t->points)
        ST_TRY(check_conds(c, t, id));
    else
        ST_TRY(check_range(c, t, id));
    settle(c, PL_WRITE, "DELETE", id, t, pl__bind_delete);
    return ST_OK;
}
