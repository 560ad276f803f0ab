/*
 * frontend/utility.c — statements about the session itself: transactions, settings, names.
 *
 * Each does its work, then sets the run's tag. Only COMMIT can wait.
 */
#include "base/assert.h"
#include "frontend/execute.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static status done(struct fe_session *s, const char *tag)
{
    struct fe_run *r = &s->work->run;
    snprintf(r->tag, sizeof r->tag, "%s", tag);
    return ST_OK;
}

/* -- transactions ------------------------------------------------------------------------------ */

static const char *isolation_name(const char *said)
{
    static const char *const levels[] = {"serializable", "repeatable read", "read committed",
                                         "read uncommitted"};
    for (unsigned i = 0; said != NULL && i < ARRAY_LEN(levels); i++)
        if (strcasecmp(said, levels[i]) == 0)
            return levels[i];
    return NULL;
}

static status run_begin(struct fe_session *s, const struct pl_utility *u)
{
    const char *tag = u->is_start ? "START TRANSACTION" : "BEGIN";
    if (s->txn == FE_TXN_BLOCK)
        fe_warning(s, "25001", "there is already a transaction in progress");
    ST_TRY(fe_txn_set(s, u->read_only, isolation_name(u->isolation)));
    s->txn = FE_TXN_BLOCK;
    return done(s, tag);
}

static status chain_outside(struct fe_session *s, const char *what)
{
    return err_set_state(&s->work->err, ST_TXN_STATE, "25P01",
                         "%s AND CHAIN can only be used in transaction blocks", what);
}

/* The next transaction is to be as this one, if AND CHAIN was said. What BEGIN said of one that has
 * failed went back with its other settings, as far as the last savepoint. */
static void keep_chain(struct fe_session *s, const struct pl_utility *u)
{
    if (s->txn == FE_TXN_FAILED && s->savepoint_count == 0) {
        s->work->run.chain = (struct fe_chain){u->chain, s->settings.default_read_only, NULL};
        return;
    }
    s->work->run.chain = (struct fe_chain){u->chain, s->txn_read_only, s->txn_isolation};
}

static status chained(struct fe_session *s, const char *tag)
{
    const struct fe_chain *chain = &s->work->run.chain;
    if (chain->wanted) {
        ST_TRY(fe_txn_set(s, chain->read_only, chain->isolation));
        s->txn = FE_TXN_BLOCK;
    }
    return done(s, tag);
}

static status run_rollback(struct fe_session *s, const struct pl_utility *u)
{
    bool block = s->txn == FE_TXN_BLOCK || s->txn == FE_TXN_FAILED;
    if (!block && u->chain)
        return chain_outside(s, "ROLLBACK");
    if (!block)
        fe_warning(s, "25P01", "there is no transaction in progress");
    keep_chain(s, u);
    fe_txn_rollback(s);
    return chained(s, "ROLLBACK");
}

static void commit_done(struct fe_session *s, status st)
{
    fe_run_finish(s, st == ST_OK ? chained(s, "COMMIT") : st);
}

static status run_commit(struct fe_session *s, const struct pl_utility *u)
{
    if (s->txn == FE_TXN_FAILED)
        return run_rollback(s, u);
    if (s->txn != FE_TXN_BLOCK && u->chain)
        return chain_outside(s, "COMMIT");
    if (s->txn != FE_TXN_BLOCK)
        fe_warning(s, "25P01", "there is no transaction in progress");
    keep_chain(s, u);
    status st = fe_txn_commit(s, commit_done);
    return st == ST_OK ? chained(s, "COMMIT") : st;
}

/* -- settings ---------------------------------------------------------------------------------- */

/* SET TRANSACTION … and SET SESSION CHARACTERISTICS AS TRANSACTION …. */
static status set_transaction(struct fe_session *s, const struct pl_utility *u)
{
    struct err *err = &s->work->err;
    if (u->characteristics) {
        if (u->isolation != NULL)
            ST_TRY(fe_settings_set(&s->settings, "default_transaction_isolation", u->isolation,
                                   false, err));
        if (u->read_only >= 0)
            ST_TRY(fe_settings_set(&s->settings, "default_transaction_read_only",
                                   u->read_only ? "on" : "off", false, err));
        return done(s, "SET");
    }
    if (!fe_txn_in_block(s))
        fe_warning(s, "25P01", "SET TRANSACTION can only be used in transaction blocks");
    ST_TRY(fe_txn_set(s, u->read_only, isolation_name(u->isolation)));
    return done(s, "SET");
}

static status set_one(struct fe_session *s, int read_only, const char *isolation)
{
    ST_TRY(fe_txn_set(s, read_only, isolation));
    return done(s, "SET");
}

static status run_set(struct fe_session *s, const struct pl_utility *u)
{
    struct err *err = &s->work->err;
    if (u->transaction || u->characteristics)
        return set_transaction(s, u);
    if (u->local && !fe_txn_in_block(s))
        fe_warning(s, "25P01", "SET LOCAL can only be used in transaction blocks");
    /* These are of the transaction: checked here, over with it. */
    bool local = u->local || strncasecmp(u->name, "transaction_", 12) == 0;
    ST_TRY(fe_settings_set(&s->settings, u->name, u->value, local, err));
    if (u->value != NULL && strcasecmp(u->name, "transaction_read_only") == 0)
        return set_one(s, s->settings.read_only, NULL);
    if (u->value != NULL && strcasecmp(u->name, "transaction_isolation") == 0)
        return set_one(s, -1, isolation_name(u->value));
    return done(s, "SET");
}

static status run_reset(struct fe_session *s, const struct pl_utility *u)
{
    if (u->name == NULL)
        fe_settings_reset_all(&s->settings);
    else
        ST_TRY(fe_settings_set(&s->settings, u->name, NULL, u->local, &s->work->err));
    return done(s, "RESET");
}

/* Those of the transaction are not in the table. */
static const char *shown_value(const struct fe_session *s, const char *name)
{
    if (strcasecmp(name, "transaction_isolation") == 0)
        return fe_txn_isolation(s);
    if (strcasecmp(name, "transaction_read_only") == 0)
        return fe_read_only(s) ? "on" : "off";
    return fe_settings_get(&s->settings, name);
}

static status run_show(struct fe_session *s, const struct pl_utility *u)
{
    struct fe_run *r = &s->work->run;
    r->target = fe_run_target(s);
    if (u->name == NULL) {
        const char *row[3];
        for (unsigned i = 0; (row[0] = fe_settings_at(&s->settings, i, &row[1], &row[2])) != NULL;
             i++)
            fe_row_of_texts(s, row, 3);
        return done(s, "SHOW");
    }
    const char *value = shown_value(s, u->name);
    if (value == NULL)
        return err_set_state(&s->work->err, ST_NOT_FOUND, "42704",
                             "unrecognized configuration parameter \"%s\"", u->name);
    fe_row_of_texts(s, &value, 1);
    return done(s, "SHOW");
}

static status run_discard(struct fe_session *s, const struct pl_utility *u)
{
    static const char *const tags[] = {"DISCARD ALL", "DISCARD PLANS", "DISCARD SEQUENCES",
                                       "DISCARD TEMP"};
    unsigned what = u->count >= 0 && u->count < (int64_t)ARRAY_LEN(tags) ? (unsigned)u->count : 0;
    if (what != 0)
        return done(s, tags[what]);
    if (fe_txn_in_block(s))
        return err_set_state(&s->work->err, ST_TXN_STATE, "25001",
                             "DISCARD ALL cannot run inside a transaction block");
    if (s->txn_piped)
        return err_set_state(&s->work->err, ST_TXN_STATE, "25001",
                             "DISCARD ALL cannot be executed within a pipeline");
    fe_portal_drop_others(s, s->work->run.portal);
    fe_settings_reset_all(&s->settings);
    fe_statement_drop_all(s);
    fe_notify_unlisten(s, NULL);
    s->work->pipes = false;
    ST_TRY(fe_txn_commit(s, NULL));
    return done(s, tags[0]);
}

/* -- names ------------------------------------------------------------------------------------- */

static status run_deallocate(struct fe_session *s, const struct pl_utility *u)
{
    if (u->name == NULL) {
        fe_statement_drop_all(s);
        return done(s, "DEALLOCATE ALL");
    }
    if (!fe_statement_drop(s, u->name))
        return err_set_state(&s->work->err, ST_NOT_FOUND, "26000",
                             "prepared statement \"%s\" does not exist", u->name);
    return done(s, "DEALLOCATE");
}

status fe_run_utility(struct fe_session *s, const struct pl_plan *plan)
{
    const struct pl_utility *u = plan->utility;
    struct err *err = &s->work->err;
    switch ((int)plan->kind) {
    case PL_BEGIN: return run_begin(s, u);
    case PL_COMMIT: return run_commit(s, u);
    case PL_ROLLBACK: return run_rollback(s, u);
    case PL_SAVEPOINT: ST_TRY(fe_txn_savepoint(s, u->name)); return done(s, "SAVEPOINT");
    case PL_ROLLBACK_TO: ST_TRY(fe_txn_rollback_to(s, u->name)); return done(s, "ROLLBACK");
    case PL_RELEASE: ST_TRY(fe_txn_release(s, u->name)); return done(s, "RELEASE");
    case PL_SET: return run_set(s, u);
    case PL_SHOW: return run_show(s, u);
    case PL_RESET: return run_reset(s, u);
    case PL_DISCARD: return run_discard(s, u);
    case PL_DEALLOCATE: return run_deallocate(s, u);
    case PL_LISTEN: ST_TRY(fe_notify_listen(s, u->name, err)); return done(s, "LISTEN");
    case PL_UNLISTEN: fe_notify_unlisten(s, u->name); return done(s, "UNLISTEN");
    case PL_NOTIFY: ST_TRY(fe_notify_add(s, u->name, u->value, err)); return done(s, "NOTIFY");
    default:
        return err_set(err, ST_INTERNAL, "a statement of kind %d cannot be run", (int)plan->kind);
    }
}

status fe_inner_failed(struct fe_session *s, status st)
{
    struct err *err = &s->work->err;
    if (err->position > 0)
        err->position += s->work->run.portal->statement->stmt.plan->utility->text_at;
    return st;
}

/* -- PREPARE and EXECUTE ----------------------------------------------------------------------- */

static status prepared(struct fe_session *s, status st)
{
    struct fe_run *r = &s->work->run;
    if (st != ST_OK)
        return fe_inner_failed(s, st);
    ST_TRY(fe_statement_name(s, r->inner, r->portal->statement->stmt.plan->utility->name));
    return done(s, "PREPARE");
}

static void prepare_planned(struct fe_session *s, status st)
{
    fe_run_finish(s, prepared(s, st));
}

status fe_run_prepare(struct fe_session *s, const struct pl_plan *plan)
{
    const struct pl_utility *u = plan->utility;
    status st = fe_plan_inner(s, bytes_str(u->text), u->types, u->type_count, prepare_planned);
    return st == ST_PENDING ? st : prepared(s, st);
}

/* An argument as the type that the statement expects. */
static status convert(struct fe_session *s, struct arena *a, uint32_t oid, unsigned number,
                      const struct pl_value *in, struct pl_value *out)
{
    struct err *err = &s->work->err;
    bool literal = in->oid == OID_UNKNOWN;
    status st = pl_value_convert(in, oid, -1, literal, &s->settings.style, fe_now(s), a, out, err);
    if (st == ST_OK || strcmp(err->sqlstate, "42846") != 0)
        return st;
    err_set_state(err, ST_INVALID, "42804",
                  "parameter $%u of type %s cannot be coerced to the expected type %s", number,
                  pl_type_name(in->oid), pl_type_name(oid));
    err_hint(err, "You will need to rewrite or cast the expression.");
    return ST_INVALID;
}

static status argument(struct fe_session *s, struct arena *a, const struct pl_utility *u,
                       uint32_t oid, unsigned i, struct pl_value *out)
{
    const struct pl_value *in = &u->args[i];
    status st = convert(s, a, oid, i + 1, in, out);
    bool where = in->oid == OID_UNKNOWN || strcmp(s->work->err.sqlstate, "42804") == 0;
    if (st != ST_OK && s->work->err.position == 0 && where)
        s->work->err.position = u->args_at[i];
    return st;
}

/* A portal of the prepared statement with the arguments of EXECUTE; held by the caller. */
static status execute_portal(struct fe_session *s, const struct pl_plan *plan,
                             struct fe_portal **out)
{
    const struct pl_utility *u = plan->utility;
    struct err *err = &s->work->err;
    struct fe_statement *st = fe_statement_find(s, u->name);
    if (st == NULL)
        return err_set_state(err, ST_NOT_FOUND, "26000", "prepared statement \"%s\" does not exist",
                             u->name);
    const struct pl_plan *inner = st->stmt.plan;
    unsigned expected = inner != NULL ? inner->param_count : 0;
    if (inner != NULL && inner->kind == PL_EXECUTE)
        return err_set(err, ST_UNSUPPORTED, "EXECUTE of an EXECUTE statement is not supported");
    /* As PostgreSQL does, one that takes none is given any number. */
    if (expected > 0 && expected != u->arg_count) {
        err_set_state(err, ST_SYNTAX, "42601",
                      "wrong number of parameters for prepared statement \"%s\"", u->name);
        err_detail(err, "Expected %u parameters but got %u.", expected, u->arg_count);
        return ST_SYNTAX;
    }
    struct fe_portal *p = fe_portal_new(s, st);
    struct pl_value *params = ARENA_ARRAY(&p->arena, struct pl_value, expected + 1);
    p->params = params;
    p->param_count = expected;
    status result = ST_OK;
    for (unsigned i = 0; i < expected && result == ST_OK; i++)
        result = argument(s, &p->arena, u, inner->param_types[i], i, &params[i]);
    if (result == ST_OK)
        *out = p;
    else
        fe_portal_unref(s, p);
    return result;
}

status fe_run_execute(struct fe_session *s, const struct pl_plan *plan)
{
    struct fe_run *r = &s->work->run;
    struct fe_portal *p;
    ST_TRY(execute_portal(s, plan, &p));
    /* From here on the run is that of the prepared statement; the formats stay with the parent. */
    p->formats = r->formats;
    p->format_count = r->format_count;
    p->parent = r->portal;
    r->portal = p;
    p->refs++;
    status st = fe_run_plan(s, p);
    fe_portal_unref(s, p);
    return st;
}

/* -- EXPLAIN ----------------------------------------------------------------------------------- */

static void explain_line(void *arg, const char *text)
{
    fe_row_of_texts(arg, &text, 1);
}

static status explained(struct fe_session *s)
{
    struct fe_work *w = s->work;
    struct fe_run *r = &w->run;
    const struct pl_utility *u = r->portal->statement->stmt.plan->utility;
    struct fe_portal *p = r->source;
    bool write = p->statement->stmt.plan->kind == PL_WRITE;
    int64_t rows = write && u->analyze ? w->call.result.affected : r->rows;
    struct cl_call_stats stats = w->call.stats;
    r->sink = FE_SINK_ROWS;
    r->rows = 0;
    r->limit = INT64_MAX;
    r->shape = fe_statement_shape(s, r->portal->statement);
    r->describe_now = r->describe;
    r->target = fe_run_target(s);
    pl_explain(&p->statement->stmt, &p->bound, s->client, u->analyze ? &stats : NULL, rows,
               explain_line, s);
    return done(s, "EXPLAIN");
}

/* What is explained: the inner statement, or for EXECUTE the prepared one. */
static status explained_portal(struct fe_session *s, struct fe_portal **out)
{
    struct fe_run *r = &s->work->run;
    const struct pl_plan *inner = r->inner->stmt.plan;
    if (inner != NULL && inner->kind == PL_EXECUTE)
        return execute_portal(s, inner, out);
    *out = fe_portal_new(s, r->inner);
    (*out)->params = r->portal->params;
    (*out)->param_count = r->portal->param_count;
    return ST_OK;
}

static status explain_start(struct fe_session *s, status st)
{
    struct fe_run *r = &s->work->run;
    if (st != ST_OK)
        return fe_inner_failed(s, st);
    const struct fe_portal *outer = r->portal;
    struct fe_portal *p;
    ST_TRY(explained_portal(s, &p));
    enum pl_kind kind = p->statement->stmt.plan != NULL ? p->statement->stmt.plan->kind : PL_EMPTY;
    bool rows = kind == PL_READ || kind == PL_WRITE || kind == PL_VALUES || kind == PL_CATALOG ||
                kind == PL_FUNCTION;
    s->work->call.stats = (struct cl_call_stats){0};
    if (!rows) {
        st = err_set(&s->work->err, ST_UNSUPPORTED,
                     "EXPLAIN of this kind of statement is not supported");
    } else if (outer->statement->stmt.plan->utility->analyze) {
        r->sink = FE_SINK_NOTHING;
        r->timed = true;
        r->shape = fe_statement_shape(s, p->statement);
        r->describe_now = false;
        st = fe_run_source(s, p, explained);
    } else {
        st = fe_portal_bind(s, p);
        r->source = p;
        p->refs++;
        if (st == ST_OK)
            st = explained(s);
    }
    fe_portal_unref(s, p);
    return st;
}

static void explain_planned(struct fe_session *s, status st)
{
    fe_run_finish(s, explain_start(s, st));
}

status fe_run_explain(struct fe_session *s, const struct pl_plan *plan)
{
    const struct pl_plan *outer = s->work->run.portal->statement->stmt.plan;
    status st = fe_plan_inner(s, bytes_str(plan->utility->text), outer->param_types,
                              outer->param_count, explain_planned);
    return st == ST_PENDING ? st : explain_start(s, st);
}
