/*
 * planner/bind_table.c — the statements that all tables share: reads by key and range, INSERT,
 * UPDATE, DELETE.
 *
 * Compile (parse thread): after pl__canonical_where, key columns bound by equality are counted from
 * the left. All of them: points; all but the last, and that by a list: many points; else a range
 * over the next key column, and other conditions are filters on the rows. Which of these a table
 * has is in its rules (bind_meta.c, bind_kv.c, bind_object.c); what is missing there is 0A000.
 *
 * Bind (reactor): values become datums of their columns and keys are encoded. A comparison with
 * NULL holds for no row, so that the bound read is KV_READ_NOTHING, and a write has no keys. A
 * number that is no integer, compared with an integer column, moves to the integer beside it. Two
 * equalities on one key column must agree, or nothing is found.
 *
 * Range bounds are keys: the prefix of the equal columns, then the narrowest of all conditions on
 * the next column. > and <= go behind the value: for a text in the last place to value + zero byte,
 * for others to the end of everything that starts with it.
 */
#include "base/assert.h"
#include "kv/key.h"
#include "planner/pl_internal.h"

#include <stdlib.h>

/* -- compiling: which form --------------------------------------------------------------------- */

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
static bool is_bound(const struct pl__table *t, const struct pl__cond *k)
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
        if (is_bound(t, k))
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

/* Conditions on key columns behind a gap (name without pid) would read the whole table. */
static status check_gap(struct pl__compile *c, const struct pl__table *t,
                        enum pl_pattern_id nearest)
{
    bool bounded = false;
    for (unsigned i = 0; i < t->where.count; i++)
        bounded = bounded || is_bound(t, &t->where.conds[i]);
    for (unsigned i = 0; i < t->where.count && t->eq_count == 0 && !bounded; i++) {
        const struct pl__cond *k = &t->where.conds[i];
        if (k->column != 0)
            return pl__no_pattern(c, k->at, nearest, "the statement has no %s = ?",
                                  t->def->columns[0].name);
    }
    return ST_OK;
}

status pl__compile_select(struct pl__compile *c, const struct kv_table_def *def)
{
    const struct ast_stmt *s = c->stmt;
    const struct pl__rules *rules = pl__rules_of(def->table);
    struct pl__table *t = ARENA_NEW(c->a, struct pl__table);
    struct pl__scope scope;
    enum pl_pattern_id nearest = nearest_read(rules);

    t->def = def;
    t->repeat = -1;
    ST_TRY(unusual(c, nearest));
    ST_TRY(pl__scope_of(c, &s->from[0], def, &scope));
    t->count = is_count(s);
    if (t->count)
        count_column(c, &s->targets[0]);
    else
        ST_TRY(pl__projection(c, &scope, s->targets, s->target_count));
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
    if (s->lock_other || (s->for_update && !t->points))
        return pl__no_pattern(c, -1, nearest, "FOR UPDATE goes with the lookup of whole keys");
    if (s->for_update && t->count)
        return pl__error(c, -1, ST_UNSUPPORTED, NULL,
                         "FOR UPDATE is not allowed with aggregate functions");
    if (s->for_update && def->read_only)
        return pl__error(c, -1, ST_DENIED, NULL, "cannot lock rows in relation \"%s\"", def->name);
    t->for_update = s->for_update;
    c->plan->pub.kind = PL_READ;
    c->plan->pub.tag = "SELECT";
    c->plan->pattern_id = id;
    c->plan->body = t;
    c->plan->bind = pl__bind_read;
    return ST_OK;
}

/* -- compiling: INSERT ------------------------------------------------------------------------- */

static status not_writable(struct pl__compile *c, const struct kv_table_def *def, int at)
{
    pl__error(c, at, ST_DENIED, NULL, "permission denied for table %s", def->name);
    err_detail(c->err, "The server maintains this table.");
    return ST_DENIED;
}

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
        return pl__error(c, s->conflict_at, ST_INVALID, "42704",
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
            c, s->conflict_at, ST_INVALID, "42P10",
            "there is no unique or exclusion constraint matching the ON CONFLICT specification");
    t->conflict = KV_CONFLICT_NOTHING;
    if (s->on_conflict == ON_CONFLICT_NOTHING)
        return ST_OK;
    if (s->conflict_column_count == 0 && s->conflict_constraint == NULL)
        return pl__error(
            c, s->conflict_at, ST_SYNTAX, NULL,
            "ON CONFLICT DO UPDATE requires inference specification or constraint name");
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
    struct pl__table *t = ARENA_NEW(c->a, struct pl__table);
    struct pl__scope scope;
    enum pl_pattern_id id = rules->insert;

    t->def = def;
    if (def->read_only || id == PATTERN_NONE)
        return not_writable(c, def, s->table.at);
    ST_TRY(unusual(c, id));
    if (s->default_values || s->insert_select)
        return pl__no_pattern(c, s->table.at, id, "its rows are a VALUES list");
    ST_TRY(pl__scope_of(c, &s->table, def, &scope));
    ST_TRY(insert_columns(c, t));
    ST_TRY(insert_rows(c, t, id));
    ST_TRY(conflict(c, t, rules, &scope, &id));
    ST_TRY(returning(c, t, &scope));
    t->repeat = rows_repeat(c, t);
    if (t->repeat >= 0)
        c->repeat_free[t->repeat] = true;
    c->plan->pub.kind = PL_WRITE;
    c->plan->pub.tag = "INSERT 0";
    c->plan->pattern_id = id;
    c->plan->body = t;
    c->plan->bind = pl__bind_insert;
    return ST_OK;
}

/* -- compiling: UPDATE ------------------------------------------------------------------------- */

/* Is N the column COLUMN itself, unqualified or of this table? */
static bool is_itself(const struct pl__scope *scope, const struct ast_node *n, unsigned column)
{
    if (n == NULL || n->kind != AST_COLUMN || n->star || n->name_count == 0 || n->name_count > 2 ||
        kv_column_by_name(scope->def, bytes_str(n->names[n->name_count - 1])) != (int)column)
        return false;
    return n->name_count == 1 ||
           strcmp(n->names[0], scope->alias != NULL ? scope->alias : scope->table) == 0;
}

static bool integer_column(const struct kv_column *k)
{
    return k->type == KV_INT2 || k->type == KV_INT4 || k->type == KV_INT8;
}

/* col + ?, ? + col, col - ?, greatest(col, ?), least(col, ?): gives the other operand. */
static const struct ast_node *other_operand(const struct pl__scope *scope, const struct ast_node *n,
                                            struct pl__set *set)
{
    if (n->kind == AST_OP && n->left != NULL && n->right != NULL &&
        (strcmp(n->text, "+") == 0 || strcmp(n->text, "-") == 0) &&
        integer_column(&scope->def->columns[set->column])) {
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

static status set_clause(struct pl__compile *c, const struct pl__scope *scope, struct pl__set *set,
                         const struct ast_target *x, bool conflict, enum pl_pattern_id nearest)
{
    const struct kv_table_def *def = scope->def;
    const struct kv_column *column = &def->columns[set->column];
    const struct ast_node *n = x->value;
    if (n == NULL || x->indirection)
        return pl__no_pattern(c, x->at, nearest, "it sets whole columns");
    if (conflict && is_excluded(def, n, &set->from)) {
        if (def->columns[set->from].type != column->type)
            return pl__no_pattern(c, n->at, nearest, "the columns have different types");
        set->kind = KV_SET_EXCLUDED;
        return ST_OK;
    }
    const struct ast_node *other = other_operand(scope, n, set);
    if (other == NULL && is_itself(scope, n, set->column)) /* col = col */
        return pl__no_pattern(c, n->at, nearest, "a column set to itself is not part of it");
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
    struct pl__table *t = ARENA_NEW(c->a, struct pl__table);
    struct pl__scope scope;

    t->def = def;
    t->repeat = -1;
    if (def->read_only || rules->update == PATTERN_NONE)
        return not_writable(c, def, s->table.at);
    ST_TRY(unusual(c, rules->update));
    ST_TRY(pl__scope_of(c, &s->table, def, &scope));
    ST_TRY(set_clauses(c, &scope, t, s->targets, s->target_count, false, rules->update));
    ST_TRY(pl__canonical_where(c, &scope, s->where, &t->where));
    ST_TRY(returning(c, t, &scope));
    classify(t);
    if (!t->points || t->many)
        return pl__no_pattern(c, s->table.at, rules->update, "the whole key is given by =");
    ST_TRY(check_conds(c, t, rules->update));
    c->plan->pub.kind = PL_WRITE;
    c->plan->pub.tag = "UPDATE";
    c->plan->pattern_id = rules->update;
    c->plan->body = t;
    c->plan->bind = pl__bind_update;
    for (unsigned i = 0; i < t->set_count; i++) {
        if (t->sets[i].column < def->key_count)
            return as_move(c, t, rules);
    }
    return ST_OK;
}

/* -- compiling: DELETE ------------------------------------------------------------------------- */

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
        if (!is_bound(t, k) && !harmless)
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
    struct pl__table *t = ARENA_NEW(c->a, struct pl__table);
    struct pl__scope scope;

    t->def = def;
    t->repeat = -1;
    if (def->read_only || rules->remove == PATTERN_NONE)
        return not_writable(c, def, s->table.at);
    ST_TRY(unusual(c, rules->remove));
    ST_TRY(pl__scope_of(c, &s->table, def, &scope));
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
    c->plan->pub.kind = PL_WRITE;
    c->plan->pub.tag = "DELETE";
    c->plan->pattern_id = id;
    c->plan->body = t;
    c->plan->bind = pl__bind_delete;
    return ST_OK;
}

/* -- binding: values --------------------------------------------------------------------------- */

enum match { MATCH_VALUE, MATCH_NEVER, MATCH_ALWAYS };

/* A number against an integer column: the comparison with the integer beside it. */
static enum match match_number(const struct pl_value *v, enum kv_cmp *cmp, struct kv_datum *out)
{
    char buf[40];
    bool exact, number;
    int beyond;
    bytes text = v->b;
    if (v->oid != OID_NUMERIC) {
        struct obuf o;
        obuf_init(&o);
        pl_value_to_text(v, NULL, &o);
        text = bytes_make(buf, o.size < sizeof(buf) ? o.size : 0);
        memcpy(buf, o.data, text.size);
        obuf_fini(&o);
    }
    number = pl__number_to_int(text, &out->i, &exact, &beyond);
    if (!number) { /* NaN and infinities: above every integer, but for -Infinity */
        beyond = text.size > 0 && text.data[0] == '-' ? -1 : 1;
        exact = false;
    }
    if (beyond != 0) {
        bool above = *cmp == KV_LT || *cmp == KV_LE;
        if (*cmp == KV_NE)
            return MATCH_ALWAYS;
        return *cmp != KV_EQ && above == (beyond > 0) ? MATCH_ALWAYS : MATCH_NEVER;
    }
    if (exact)
        return MATCH_VALUE;
    if (*cmp == KV_EQ)
        return MATCH_NEVER;
    if (*cmp == KV_NE)
        return MATCH_ALWAYS;
    *cmp = *cmp == KV_GE ? KV_GT : *cmp == KV_LT ? KV_LE : *cmp; /* against the integer below */
    return MATCH_VALUE;
}

static enum match match_char(const struct pl_value *v, enum kv_cmp cmp, struct kv_datum *out)
{
    if (v->oid == OID_CHAR) {
        out->i = v->i;
        return MATCH_VALUE;
    }
    out->i = v->b.size == 0 ? 0 : v->b.data[0];
    if (v->oid == OID_UNKNOWN || v->b.size <= 1)
        return MATCH_VALUE;
    return cmp == KV_NE ? MATCH_ALWAYS : MATCH_NEVER;
}

/* V compared by *CMP with column K: the datum to compare with, or that it holds never or always. */
static status match_value(const struct pl__bind *b, const struct kv_column *k,
                          const struct pl_value *v, enum kv_cmp *cmp, struct kv_datum *out,
                          enum match *match)
{
    struct pl_value x;
    *out = (struct kv_datum){0};
    *match = MATCH_NEVER;
    if (v->null)
        return ST_OK;
    *match = MATCH_VALUE;
    switch (k->type) {
    case KV_INT2:
    case KV_INT4:
    case KV_INT8:
        if (v->oid == OID_NUMERIC || v->oid == OID_FLOAT4 || v->oid == OID_FLOAT8) {
            *match = match_number(v, cmp, out);
            return ST_OK;
        }
        /* A text is read as a bigint also for smaller columns only if it is no literal of its own
         * type. */
        ST_TRY(pl_value_convert(v, v->oid == OID_UNKNOWN ? pl_type_of(k->type) : OID_INT8, -1,
                                false, b->ctx->style, b->ctx->now, b->a, &x, b->err));
        out->i = x.i;
        return ST_OK;
    case KV_CHAR: *match = match_char(v, *cmp, out); return ST_OK;
    case KV_TEXT:
    case KV_BYTEA:
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL:
        ST_TRY(pl_value_convert(v, pl_type_of(k->type), -1, false, b->ctx->style, b->ctx->now, b->a,
                                &x, b->err));
        *out = k->type == KV_TEXT || k->type == KV_BYTEA ? kv_text(x.b) : kv_int(x.i);
        return ST_OK;
    }
    return ST_OK;
}

static status match_expr(const struct pl__bind *b, const struct kv_column *k,
                         const struct pl__expr *e, unsigned shift, enum kv_cmp *cmp,
                         struct kv_datum *out, enum match *match)
{
    struct pl_value v;
    ST_TRY(pl__eval(b, e, shift, &v));
    status st = match_value(b, k, &v, cmp, out, match);
    return st == ST_OK ? ST_OK : pl__eval_error(b, e, shift, st);
}

/* E as a value to store in column K. */
static status store_value(const struct pl__bind *b, const struct kv_table_def *def, unsigned column,
                          const struct pl__expr *e, unsigned shift, struct kv_datum *out)
{
    const struct kv_column *k = &def->columns[column];
    struct pl_value v;
    if (e->kind == EXPR_DEFAULT) {
        *out = (struct kv_datum){.deflt = true};
        return ST_OK;
    }
    ST_TRY(pl__eval(b, e, shift, &v));
    status st = ST_OK;
    bool number =
        v.oid == OID_NUMERIC || v.oid == OID_FLOAT8 || v.oid == OID_INT8 || v.oid == OID_INT4;
    if (v.oid != pl_type_of(k->type) && !(number && integer_column(k)))
        st = pl_value_convert(&v, pl_type_of(k->type), -1, false, b->ctx->style, b->ctx->now, b->a,
                              &v, b->err);
    if (st == ST_OK)
        st = pl_value_to_datum(&v, k->type, k->name, out, b->err);
    if (st != ST_OK)
        return pl__eval_error(b, e, shift, st);
    if (out->null && k->not_null) {
        err_set_state(b->err, ST_INVALID, "23502",
                      "null value in column \"%s\" of relation \"%s\" violates not-null constraint",
                      k->name, def->name);
        err_where(b->err, "public", def->name, k->name, NULL);
        return ST_INVALID;
    }
    return ST_OK;
}

/* -- binding: conditions ----------------------------------------------------------------------- */

/* What WHERE came to. */
struct keys {
    struct kv_datum eq[8]; /* values of the equal key columns */
    unsigned eq_count;
    bool nothing;       /* no row can fit */
    bytes lower, upper; /* range; upper empty = to the end of the prefix (set before) */
    struct kv_filter *filters;
    unsigned filter_count;
    struct kv_datum *list; /* values for the last key column */
    unsigned list_count;
};

static bool same_datum(const struct kv_column *k, const struct kv_datum *a,
                       const struct kv_datum *b)
{
    if (k->type == KV_TEXT || k->type == KV_BYTEA)
        return bytes_eq(a->b, b->b);
    return a->i == b->i;
}

static void narrow_lower(struct keys *k, bytes key)
{
    if (bytes_cmp(key, k->lower) > 0)
        k->lower = key;
}

static void narrow_upper(struct keys *k, bytes key)
{
    if (k->upper.size == 0 || bytes_cmp(key, k->upper) < 0)
        k->upper = key;
}

/* The end of what VALUES, the first COUNT key columns, cover. */
static bytes behind(const struct pl__bind *b, const struct kv_table_def *def,
                    const struct kv_datum *values, unsigned count)
{
    bytes key = kv_key_prefix(b->a, b->ctx->ns, def->table, values, count);
    return count == def->key_count ? kv_key_successor(b->a, key) : kv_key_after_prefix(b->a, key);
}

/* One bound by comparison CMP with VALUES, the first COUNT key columns. */
static void bound(const struct pl__bind *b, const struct kv_table_def *def, struct keys *k,
                  enum kv_cmp cmp, const struct kv_datum *values, unsigned count)
{
    bytes key = cmp == KV_GE || cmp == KV_LT
                    ? kv_key_prefix(b->a, b->ctx->ns, def->table, values, count)
                    : behind(b, def, values, count);
    if (cmp == KV_GT && key.size == 0)
        k->nothing = true; /* nothing lies behind the largest prefix */
    else if (cmp == KV_GT || cmp == KV_GE)
        narrow_lower(k, key);
    else if (key.size > 0)
        narrow_upper(k, key);
}

static status range_cond(const struct pl__bind *b, const struct pl__table *t,
                         const struct pl__cond *cond, struct keys *k)
{
    enum kv_cmp cmp = cond->cmp;
    enum match match;
    struct kv_datum values[8];
    memcpy(values, k->eq, sizeof(values));
    ST_TRY(match_expr(b, &t->def->columns[cond->column], cond->values[0], 0, &cmp,
                      &values[k->eq_count], &match));
    if (match == MATCH_NEVER)
        k->nothing = true;
    else if (match == MATCH_VALUE)
        bound(b, t->def, k, cmp, values, k->eq_count + 1);
    return ST_OK;
}

/* (a, b) > (x, y): a NULL in y only matters where a = x, and then the comparison is not true. */
static status row_cond(const struct pl__bind *b, const struct pl__table *t,
                       const struct pl__cond *cond, struct keys *k)
{
    struct kv_datum values[8];
    for (unsigned i = 0; i < cond->count; i++) {
        enum kv_cmp cmp = i + 1 < cond->count ? KV_EQ : cond->cmp;
        enum match match;
        ST_TRY(match_expr(b, &t->def->columns[i], cond->values[i], 0, &cmp, &values[i], &match));
        if (match == MATCH_VALUE)
            continue;
        struct pl_value v;
        ST_TRY(pl__eval(b, cond->values[i], 0, &v));
        if (!v.null)
            return err_set(b->err, ST_UNSUPPORTED,
                           "a row comparison takes integers within the column's range");
        if (i == 0)
            k->nothing = true;
        else
            bound(b, t->def, k, cond->cmp == KV_GT || cond->cmp == KV_GE ? KV_GT : KV_LT, values,
                  i);
        return ST_OK;
    }
    bound(b, t->def, k, cond->cmp, values, cond->count);
    return ST_OK;
}

/* A LIKE pattern as a prefix. *EXACT: without % at its end. */
static status like_prefix(const struct pl__bind *b, bytes pattern, bytes *prefix, bool *exact)
{
    uint8_t *p = arena_alloc(b->a, pattern.size + 1);
    size_t n = 0, i = 0;
    for (; i < pattern.size && pattern.data[i] != '%' && pattern.data[i] != '_'; i++) {
        if (pattern.data[i] == '\\' && ++i == pattern.size)
            return err_set_state(b->err, ST_INVALID, "22025",
                                 "LIKE pattern must not end with escape character");
        p[n++] = pattern.data[i];
    }
    *prefix = bytes_make(p, n);
    *exact = i == pattern.size;
    while (i < pattern.size && pattern.data[i] == '%')
        i++;
    if (i == pattern.size)
        return ST_OK;
    err_set(b->err, ST_UNSUPPORTED, "statement matches no metadata pattern");
    err_detail(
        b->err,
        "LIKE takes a pattern of the form prefix%%; a wildcard stands elsewhere in this one.");
    err_hint(b->err, "SELECT * FROM metadb.patterns");
    return ST_UNSUPPORTED;
}

static status like_cond(const struct pl__bind *b, const struct pl__table *t,
                        const struct pl__cond *cond, struct keys *k)
{
    enum kv_cmp cmp = KV_EQ;
    enum match match;
    struct kv_datum values[8];
    bool exact = false;
    memcpy(values, k->eq, sizeof(values));
    struct kv_datum *last = &values[k->eq_count];
    ST_TRY(match_expr(b, &t->def->columns[cond->column], cond->values[0], 0, &cmp, last, &match));
    if (match != MATCH_VALUE) {
        k->nothing = true;
        return ST_OK;
    }
    ST_TRY(like_prefix(b, last->b, &last->b, &exact));
    if (exact || t->eq_count + 1 < t->def->key_count) {
        if (!exact)
            return err_set(b->err, ST_UNSUPPORTED, "LIKE is for the last column of the key");
        bound(b, t->def, k, KV_GE, values, k->eq_count + 1);
        bound(b, t->def, k, KV_LE, values, k->eq_count + 1);
        return ST_OK;
    }
    bytes key = kv_key_prefix(b->a, b->ctx->ns, t->def->table, values, k->eq_count + 1);
    narrow_lower(k, key);
    bytes end = kv_key_after_prefix(b->a, key);
    if (end.size > 0)
        narrow_upper(k, end);
    return ST_OK;
}

static status equal_cond(const struct pl__bind *b, const struct pl__table *t,
                         const struct pl__cond *cond, struct keys *k)
{
    enum kv_cmp cmp = KV_EQ;
    enum match match;
    struct kv_datum d;
    ST_TRY(match_expr(b, &t->def->columns[cond->column], cond->values[0], 0, &cmp, &d, &match));
    if (match != MATCH_VALUE)
        k->nothing = true;
    if (cond->column < k->eq_count &&
        !same_datum(&t->def->columns[cond->column], &k->eq[cond->column], &d))
        k->nothing = true;
    if (cond->column == k->eq_count) {
        k->eq[cond->column] = d;
        k->eq_count++;
    }
    return ST_OK;
}

static status filter_cond(const struct pl__bind *b, const struct pl__table *t,
                          const struct pl__cond *cond, struct keys *k)
{
    struct kv_filter *f = &k->filters[k->filter_count];
    *f = (struct kv_filter){.column = cond->column, .cmp = cond->cmp};
    if (cond->cmp < KV_IS_NULL) {
        enum match match;
        ST_TRY(match_expr(b, &t->def->columns[cond->column], cond->values[0], 0, &f->cmp, &f->value,
                          &match));
        if (match == MATCH_NEVER)
            k->nothing = true;
        else if (match == MATCH_ALWAYS)
            f->cmp = KV_IS_NOT_NULL;
    }
    k->filter_count++;
    return ST_OK;
}

static status list_item(const struct pl__bind *b, const struct kv_column *column,
                        const struct pl_value *v, struct keys *k)
{
    enum kv_cmp cmp = KV_EQ;
    enum match match;
    ST_TRY(match_value(b, column, v, &cmp, &k->list[k->list_count], &match));
    k->list_count += match == MATCH_VALUE;
    return ST_OK;
}

static status list_cond(const struct pl__bind *b, const struct pl__table *t,
                        const struct pl__cond *cond, struct keys *k)
{
    const struct kv_column *column = &t->def->columns[cond->column];
    unsigned count =
        cond->repeat >= 0 && b->s->repeats != NULL ? b->s->repeats[cond->repeat] : cond->count;
    if (count > LIMIT_STATEMENT_ROWS)
        return err_set(b->err, ST_LIMIT, "a list has at most %u values", LIMIT_STATEMENT_ROWS);
    k->list = ARENA_ARRAY(b->a, struct kv_datum, count + 1);
    for (unsigned i = 0; i < count; i++) {
        unsigned shift = cond->repeat >= 0 ? i : 0;
        const struct pl__expr *e = cond->values[cond->repeat >= 0 ? 0 : i];
        struct pl_value v;
        ST_TRY(pl__eval(b, e, shift, &v));
        status st = list_item(b, column, &v, k);
        if (st != ST_OK)
            return pl__eval_error(b, e, shift, st);
    }
    return ST_OK;
}

static status array_cond(const struct pl__bind *b, const struct pl__table *t,
                         const struct pl__cond *cond, struct keys *k)
{
    const struct kv_column *column = &t->def->columns[cond->column];
    struct pl_value v;
    ST_TRY(pl__eval(b, cond->values[0], 0, &v));
    if (!v.null && pl_type_element(v.oid) == 0) {
        status st = pl_value_convert(&v, pl_type_array(pl_type_of(column->type)), -1, true,
                                     b->ctx->style, b->ctx->now, b->a, &v, b->err);
        if (st != ST_OK)
            return pl__eval_error(b, cond->values[0], 0, st);
    }
    if (v.null)
        return ST_OK;
    if (v.array.count > LIMIT_STATEMENT_ROWS)
        return err_set(b->err, ST_LIMIT, "a list has at most %u values", LIMIT_STATEMENT_ROWS);
    k->list = ARENA_ARRAY(b->a, struct kv_datum, v.array.count + 1);
    for (unsigned i = 0; i < v.array.count; i++)
        ST_TRY(list_item(b, column, &v.array.items[i], k));
    return ST_OK;
}

static status bind_where(const struct pl__bind *b, const struct pl__table *t, struct keys *k)
{
    memset(k, 0, sizeof(*k));
    if (t->where.count > t->eq_count)
        k->filters = ARENA_ARRAY(b->a, struct kv_filter, t->where.count);
    /* Equalities first: bounds are built on them. Conditions are in column order already, but a
     * range may stand before a second equality on the same column. */
    for (unsigned i = 0; i < t->where.count; i++) {
        const struct pl__cond *cond = &t->where.conds[i];
        if (cond->kind == COND_COMPARE && cond->cmp == KV_EQ && cond->column < t->eq_count)
            ST_TRY(equal_cond(b, t, cond, k));
    }
    if (!t->points) {
        k->lower = kv_key_prefix(b->a, b->ctx->ns, t->def->table, k->eq, k->eq_count);
        k->upper = kv_key_after_prefix(b->a, k->lower);
    }
    for (unsigned i = 0; i < t->where.count; i++) {
        const struct pl__cond *cond = &t->where.conds[i];
        if (!is_bound(t, cond)) {
            ST_TRY(filter_cond(b, t, cond, k));
            continue;
        }
        switch (cond->kind) {
        case COND_COMPARE:
            if (cond->column >= t->eq_count)
                ST_TRY(range_cond(b, t, cond, k));
            break;
        case COND_LIKE: ST_TRY(like_cond(b, t, cond, k)); break;
        case COND_ROW: ST_TRY(row_cond(b, t, cond, k)); break;
        case COND_IN: ST_TRY(list_cond(b, t, cond, k)); break;
        case COND_ANY: ST_TRY(array_cond(b, t, cond, k)); break;
        }
    }
    if (t->many && k->list_count == 0)
        k->nothing = true;
    if (!t->points && k->upper.size > 0 && bytes_cmp(k->lower, k->upper) >= 0)
        k->nothing = true;
    return ST_OK;
}

/* -- binding: reads ---------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    return bytes_cmp(*(const bytes *)a, *(const bytes *)b);
}

/* Sorted, each once; backwards if asked for. */
static unsigned sort_points(bytes *points, unsigned count, bool backwards)
{
    unsigned kept = 0;
    qsort(points, count, sizeof(*points), by_bytes);
    for (unsigned i = 0; i < count; i++) {
        if (kept == 0 || !bytes_eq(points[kept - 1], points[i]))
            points[kept++] = points[i];
    }
    for (unsigned i = 0; backwards && i < kept / 2; i++) {
        bytes x = points[i];
        points[i] = points[kept - 1 - i];
        points[kept - 1 - i] = x;
    }
    return kept;
}

static status bind_points(const struct pl__bind *b, const struct pl__table *t, struct keys *k,
                          struct kv_read *r)
{
    const struct kv_table_def *def = t->def;
    unsigned count = t->many ? k->list_count : 1;
    bytes *points = ARENA_ARRAY(b->a, bytes, count);
    for (unsigned i = 0; i < count; i++) {
        if (t->many)
            k->eq[def->key_count - 1] = k->list[i];
        points[i] = kv_key_prefix(b->a, b->ctx->ns, def->table, k->eq, def->key_count);
    }
    r->kind = KV_READ_POINTS;
    r->point_count = count > 1 ? sort_points(points, count, t->backwards) : count;
    r->points = points;
    r->count = t->count;
    return ST_OK;
}

static status bind_limit(const struct pl__bind *b, const struct pl__table *t, struct kv_read *r)
{
    struct pl_value v;
    r->limit = -1;
    if (t->limit == NULL)
        return ST_OK;
    ST_TRY(pl__eval(b, t->limit, 0, &v));
    if (v.null)
        return ST_OK;
    status st = v.oid == OID_UNKNOWN || v.oid == OID_NUMERIC
                    ? pl_value_convert(&v, OID_INT8, -1, false, b->ctx->style, b->ctx->now, b->a,
                                       &v, b->err)
                    : ST_OK;
    if (st != ST_OK)
        return pl__eval_error(b, t->limit, 0, st);
    if (v.i < 0)
        return err_set_state(b->err, ST_INVALID, "2201W", "LIMIT must not be negative");
    r->limit = v.i;
    return ST_OK;
}

status pl__bind_read(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_read *r = &b->out->read;
    struct keys k;
    *r = (struct kv_read){.table = t->def->table,
                          .ns = b->ctx->ns,
                          .now = b->ctx->now,
                          .for_update = t->for_update,
                          .backwards = t->backwards};
    ST_TRY(bind_where(b, t, &k));
    ST_TRY(bind_limit(b, t, r));
    if (t->count && r->limit == 0) {
        r->kind = KV_READ_NOTHING; /* not even the count's own row */
        return ST_OK;
    }
    if (t->count)
        r->limit = -1;
    r->filters = k.filters;
    r->filter_count = k.filter_count;
    if (k.nothing) {
        r->kind = KV_READ_NOTHING;
        r->count = t->count;
        return ST_OK;
    }
    if (t->points)
        return bind_points(b, t, &k, r);
    r->kind = t->count ? KV_READ_COUNT : KV_READ_RANGE;
    r->lower = k.lower;
    r->upper = k.upper;
    return ST_OK;
}

/* -- binding: writes --------------------------------------------------------------------------- */

static struct kv_op *start_op(struct pl__bind *b, const struct pl__table *t, enum kv_op_kind kind)
{
    b->out->op = (struct kv_op){.kind = kind,
                                .table = t->def->table,
                                .ns = b->ctx->ns,
                                .now = b->ctx->now,
                                .seed = b->ctx->seed,
                                .want_rows = t->want_rows};
    return &b->out->op;
}

static status bind_sets(struct pl__bind *b, const struct pl__table *t, struct kv_op *op)
{
    struct kv_set *sets = ARENA_ARRAY(b->a, struct kv_set, t->set_count + 1);
    for (unsigned i = 0; i < t->set_count; i++) {
        const struct pl__set *s = &t->sets[i];
        sets[i] = (struct kv_set){.column = s->column, .kind = s->kind, .from = s->from};
        if (s->kind == KV_SET_EXCLUDED)
            continue;
        if (s->kind == KV_SET_ADD) { /* the amount may be NULL, and beyond the column's own range */
            struct pl_value v;
            ST_TRY(pl__eval(b, s->value, 0, &v));
            status st = pl_value_convert(&v, OID_INT8, -1, false, b->ctx->style, b->ctx->now, b->a,
                                         &v, b->err);
            if (st == ST_OK && s->negate && __builtin_sub_overflow(INT64_C(0), v.i, &v.i))
                st = err_set_state(b->err, ST_INVALID, "22003", "bigint out of range");
            if (st != ST_OK)
                return pl__eval_error(b, s->value, 0, st);
            sets[i].value = (struct kv_datum){.null = v.null, .i = v.i};
            continue;
        }
        const struct kv_column *k = &t->def->columns[s->column];
        if (s->kind != KV_SET_VALUE && k->not_null) { /* greatest(col, NULL) is col */
            struct pl_value v;
            ST_TRY(pl__eval(b, s->value, 0, &v));
            if (v.null) {
                sets[i].value = KV_NULL;
                continue;
            }
        }
        ST_TRY(store_value(b, t->def, s->column, s->value, 0, &sets[i].value));
    }
    op->sets = sets;
    op->set_count = t->set_count;
    return ST_OK;
}

status pl__bind_insert(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_op *op = start_op(b, t, KV_OP_INSERT);
    unsigned rows =
        t->repeat >= 0 && b->s->repeats != NULL ? b->s->repeats[t->repeat] : t->row_count;
    unsigned stride = 0;
    if (rows > LIMIT_STATEMENT_ROWS)
        return err_set(b->err, ST_LIMIT, "an INSERT has at most %u rows", LIMIT_STATEMENT_ROWS);
    for (unsigned i = 0; i < t->column_count; i++) /* literals of one row */
        stride += t->cells[i]->kind == EXPR_LITERAL;
    struct kv_datum *values =
        ARENA_ARRAY(b->a, struct kv_datum, (size_t)rows * t->column_count + 1);
    for (unsigned r = 0; r < rows; r++) {
        for (unsigned i = 0; i < t->column_count; i++) {
            size_t at = (size_t)r * t->column_count + i;
            const struct pl__expr *e = t->cells[t->repeat >= 0 ? i : at];
            ST_TRY(store_value(b, t->def, t->columns[i], e, t->repeat >= 0 ? r * stride : 0,
                               &values[at]));
        }
    }
    op->columns = t->columns;
    op->column_count = t->column_count;
    op->values = values;
    op->row_count = rows;
    op->conflict = t->conflict;
    return bind_sets(b, t, op);
}

/* Nothing fits: a DELETE of no keys does nothing. */
static status bind_nothing(struct kv_op *op)
{
    op->kind = KV_OP_DELETE;
    op->key_count = 0;
    return ST_OK;
}

static status bind_keys(struct pl__bind *b, const struct pl__table *t, struct keys *k,
                        struct kv_op *op)
{
    unsigned width = t->def->key_count, count = t->many ? k->list_count : 1;
    struct kv_datum *keys = ARENA_ARRAY(b->a, struct kv_datum, (size_t)count * width);
    for (unsigned i = 0; i < count; i++) {
        memcpy(&keys[(size_t)i * width], k->eq, width * sizeof(*keys));
        if (t->many)
            keys[(size_t)i * width + width - 1] = k->list[i];
    }
    op->keys = keys;
    op->key_count = count;
    op->filters = k->filters;
    op->filter_count = k->filter_count;
    return ST_OK;
}

status pl__bind_update(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_op *op = start_op(b, t, KV_OP_UPDATE);
    struct keys k;
    ST_TRY(bind_sets(b, t, op));
    ST_TRY(bind_where(b, t, &k));
    return k.nothing ? bind_nothing(op) : bind_keys(b, t, &k, op);
}

static int by_datum(const void *a, const void *b)
{
    return bytes_cmp(((const struct kv_datum *)a)->b, ((const struct kv_datum *)b)->b);
}

status pl__bind_delete(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_op *op = start_op(b, t, t->points ? KV_OP_DELETE : KV_OP_DELETE_RANGE);
    struct keys k;
    ST_TRY(bind_where(b, t, &k));
    if (k.nothing)
        return bind_nothing(op);
    if (!t->points) {
        op->lower = k.lower;
        op->upper = k.upper;
        return ST_OK;
    }
    if (t->many) { /* a name twice in the list is removed once; the last key column is a text */
        unsigned kept = 0;
        ASSERT(t->def->columns[t->def->key_count - 1].type == KV_TEXT);
        qsort(k.list, k.list_count, sizeof(*k.list), by_datum);
        for (unsigned i = 0; i < k.list_count; i++) {
            if (kept == 0 || !bytes_eq(k.list[kept - 1].b, k.list[i].b))
                k.list[kept++] = k.list[i];
        }
        k.list_count = kept;
    }
    return bind_keys(b, t, &k, op);
}

status pl__bind_move(struct pl__bind *b)
{
    const struct pl__table *t = b->plan->body;
    struct kv_op *op = start_op(b, t, KV_OP_MOVE);
    struct kv_datum pid, name;
    struct keys k;
    ST_TRY(bind_where(b, t, &k));
    if (t->new_pid != NULL)
        ST_TRY(store_value(b, t->def, META_PID, t->new_pid, 0, &pid));
    if (t->new_name != NULL)
        ST_TRY(store_value(b, t->def, META_NAME, t->new_name, 0, &name));
    if (k.nothing)
        return bind_nothing(op);
    op->pid = k.eq[META_PID].i;
    op->name = k.eq[META_NAME].b;
    op->new_pid = t->new_pid != NULL ? pid.i : op->pid;
    op->new_name = t->new_name != NULL ? name.b : op->name;
    op->move = KV_MOVE_RENAME;
    op->filters = k.filters;
    op->filter_count = k.filter_count;
    return ST_OK;
}
