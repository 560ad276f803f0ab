/*
 * frontend/cursor.c — DECLARE, FETCH, MOVE, CLOSE.
 *
 * A cursor is a portal made by SQL: the same list, the same names, the same life, so that a client
 * may MOVE a portal of the protocol and describe a cursor. It goes forward only. WITH HOLD lets it
 * outlive its transaction; its later pages are then snapshots of their own.
 */
#include "base/assert.h"
#include "frontend/execute.h"
#include <stdio.h>

static status declared(struct fe_session *s, status st)
{
    struct fe_run *r = &s->work->run;
    if (st != ST_OK)
        return fe_inner_failed(s, st);
    const struct pl_utility *u = r->portal->statement->stmt.plan->utility;
    const struct pl_plan *inner = r->inner->stmt.plan;
    bool good = inner != NULL && inner->returns_rows &&
                (inner->kind == PL_READ || inner->kind == PL_VALUES || inner->kind == PL_CATALOG ||
                 inner->kind == PL_FUNCTION);
    if (!good)
        return err_set(&s->work->err, ST_UNSUPPORTED,
                       "a cursor over this kind of statement is not supported");
    struct fe_portal *p = fe_portal_new(s, r->inner);
    const struct fe_portal *outer = r->portal;
    struct pl_value *params = ARENA_ARRAY(&p->arena, struct pl_value, outer->param_count + 1);
    for (unsigned i = 0; i < outer->param_count; i++)
        params[i] = outer->params[i];
    p->params = params;
    p->param_count = outer->param_count;
    p->cursor = true;
    p->hold = u->hold;
    /* The parameters lie in the memory of the DECLARE: binding copies what it keeps, so do it now,
     * and let that portal live as long as this one. */
    st = fe_portal_bind(s, p);
    if (st == ST_OK)
        st = fe_portal_name(s, p, u->name);
    if (st == ST_OK) {
        p->parent = r->portal;
        p->parent->refs++;
        fe_txn_touch(s);
        /* It shows the data as they are now, whatever this transaction writes while fetching. One
         * that outlives its transaction has no mark to hold on to. */
        if (inner->kind == PL_READ && !p->hold && cl_in_transaction(s->client))
            p->bound.read.own_writes = 1 + cl_savepoint(s->client).writes;
        snprintf(r->tag, sizeof r->tag, "DECLARE CURSOR");
    }
    fe_portal_unref(s, p);
    return st;
}

static void declare_planned(struct fe_session *s, status st)
{
    fe_run_finish(s, declared(s, st));
}

status fe_run_declare(struct fe_session *s, const struct pl_plan *plan)
{
    const struct pl_utility *u = plan->utility;
    if (!u->hold && !fe_txn_in_block(s))
        return err_set_state(&s->work->err, ST_TXN_STATE, "25P01",
                             "DECLARE CURSOR can only be used in transaction blocks");
    status st =
        fe_plan_inner(s, bytes_str(u->text), plan->param_types, plan->param_count, declare_planned);
    return st == ST_PENDING ? st : declared(s, st);
}

static status no_cursor(struct fe_session *s, const char *name)
{
    return err_set_state(&s->work->err, ST_NOT_FOUND, "34000", "cursor \"%s\" does not exist",
                         name);
}

static status fetched(struct fe_session *s)
{
    struct fe_run *r = &s->work->run;
    bool move = r->portal->statement->stmt.plan->utility->is_move;
    fe_run_tag(r, move ? "MOVE" : "FETCH", r->rows);
    return ST_OK;
}

status fe_run_fetch(struct fe_session *s, const struct pl_plan *plan)
{
    struct fe_run *r = &s->work->run;
    const struct pl_utility *u = plan->utility;
    struct fe_portal *p = fe_portal_find(s, u->name);
    if (p == NULL || p == r->portal)
        return no_cursor(s, u->name);
    if (u->backward || u->count < 0) {
        status st =
            err_set_state(&s->work->err, ST_UNSUPPORTED, "0A000", "cursors can only go forward");
        err_hint(&s->work->err, "Declare the cursor again, or select in descending order.");
        return st;
    }
    if (p->statement->stmt.plan != NULL && !fe_is_source(p->statement->stmt.plan))
        return err_set(&s->work->err, ST_UNSUPPORTED,
                       "a cursor over this kind of statement is not supported");
    if (p->statement->stmt.plan == NULL || !fe_statement_shape(s, p->statement).rows)
        return err_set_state(&s->work->err, ST_TXN_STATE, "55000", "portal \"%s\" has no rows",
                             u->name);
    r->sink = u->is_move ? FE_SINK_NOTHING : FE_SINK_ROWS;
    r->limit = u->count;
    r->shape = fe_statement_shape(s, p->statement);
    if (r->format_count > 1 && r->format_count != r->shape.count)
        r->format_count = 0;
    /* A statement that cannot be run in pieces gives its rows to the store. */
    p->cursor = true;
    return fe_run_source(s, p, fetched);
}

status fe_run_close(struct fe_session *s, const struct pl_plan *plan)
{
    struct fe_run *r = &s->work->run;
    const char *name = plan->utility->name;
    if (name == NULL) {
        fe_portal_drop_others(s, r->portal);
        snprintf(r->tag, sizeof r->tag, "CLOSE CURSOR ALL");
        return ST_OK;
    }
    if (!fe_portal_drop(s, name))
        return no_cursor(s, name);
    snprintf(r->tag, sizeof r->tag, "CLOSE CURSOR");
    return ST_OK;
}
