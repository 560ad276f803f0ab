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

static void begin(struct fe_session *s, bool read_only, const char *isolation)
{
    s->txn = FE_TXN_BLOCK;
    s->txn_read_only = read_only;
    s->txn_isolation = isolation;
    s->txn_now = 0;
}

static status run_begin(struct fe_session *s, const struct pl_utility *u)
{
    const char *tag = u->is_start ? "START TRANSACTION" : "BEGIN";
    if (s->txn == FE_TXN_BLOCK) {
        fe_warning(s, "25001", "there is already a transaction in progress");
        return done(s, tag);
    }
    bool read_only = u->read_only >= 0 ? u->read_only == 1 : fe_read_only(s);
    begin(s, read_only, isolation_name(u->isolation));
    return done(s, tag);
}

static status chain_outside(struct fe_session *s, const char *what)
{
    return err_set_state(&s->work->err, ST_TXN_STATE, "25P01",
                         "%s AND CHAIN can only be used in transaction blocks", what);
}

struct chain {
    bool wanted, read_only;
    const char *isolation;
};

static struct chain chain_of(const struct fe_session *s, const struct pl_utility *u)
{
    return (struct chain){u->chain, s->txn_read_only, s->txn_isolation};
}

static status run_rollback(struct fe_session *s, const struct pl_utility *u)
{
    bool block = s->txn == FE_TXN_BLOCK || s->txn == FE_TXN_FAILED;
    struct chain chain = chain_of(s, u);
    if (!block && chain.wanted)
        return chain_outside(s, "ROLLBACK");
    if (!block)
        fe_warning(s, "25P01", "there is no transaction in progress");
    if (block || s->txn == FE_TXN_IMPLICIT)
        fe_txn_rollback(s);
    if (chain.wanted)
        begin(s, chain.read_only, chain.isolation);
    return done(s, "ROLLBACK");
}

static status committed(struct fe_session *s, status st, struct chain chain)
{
    if (st != ST_OK)
        return st;
    if (chain.wanted)
        begin(s, chain.read_only, chain.isolation);
    return done(s, "COMMIT");
}

static void commit_done(struct fe_session *s, status st)
{
    fe_run_finish(s, committed(s, st, (struct chain){0}));
}

static void commit_done_chain(struct fe_session *s, status st)
{
    fe_run_finish(s, committed(s, st, (struct chain){.wanted = true}));
}

static status run_commit(struct fe_session *s, const struct pl_utility *u)
{
    if (s->txn == FE_TXN_FAILED)
        return run_rollback(s, u);
    if (s->txn != FE_TXN_BLOCK && u->chain)
        return chain_outside(s, "COMMIT");
    if (s->txn != FE_TXN_BLOCK)
        fe_warning(s, "25P01", "there is no transaction in progress");
    if (s->txn == FE_TXN_IDLE)
        return done(s, "COMMIT");
    struct chain chain = chain_of(s, u);
    status st = fe_txn_commit(s, u->chain ? commit_done_chain : commit_done);
    return st == ST_PENDING ? st : committed(s, st, chain);
}

/* -- settings ---------------------------------------------------------------------------------- */

static bool in_block(const struct fe_session *s)
{
    return s->txn == FE_TXN_BLOCK;
}

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
    if (!in_block(s)) {
        fe_warning(s, "25P01", "SET TRANSACTION can only be used in transaction blocks");
        return done(s, "SET");
    }
    if (u->read_only == 0 && s->txn_read_only && cl_in_transaction(s->client))
        return err_set_state(err, ST_TXN_STATE, "25001",
                             "transaction read-write mode must be set before any query");
    if (u->isolation != NULL && cl_in_transaction(s->client) &&
        (s->txn_isolation == NULL || strcmp(s->txn_isolation, isolation_name(u->isolation)) != 0))
        return err_set_state(err, ST_TXN_STATE, "25001",
                             "SET TRANSACTION ISOLATION LEVEL must be called before any query");
    if (u->read_only >= 0)
        s->txn_read_only = u->read_only == 1;
    if (u->isolation != NULL)
        s->txn_isolation = isolation_name(u->isolation);
    return done(s, "SET");
}

static status run_set(struct fe_session *s, const struct pl_utility *u)
{
    struct err *err = &s->work->err;
    if (u->transaction || u->characteristics)
        return set_transaction(s, u);
    if (u->local && !in_block(s) && s->txn != FE_TXN_IMPLICIT)
        fe_warning(s, "25P01", "SET LOCAL can only be used in transaction blocks");
    bool block = in_block(s);
    /* Outside a block these are of the statement's own transaction: checked, then over. */
    bool local = u->local || (!block && strncasecmp(u->name, "transaction_", 12) == 0);
    if (block && strcasecmp(u->name, "transaction_read_only") == 0 && u->value != NULL)
        s->txn_read_only = strcasecmp(u->value, "on") == 0 || strcasecmp(u->value, "true") == 0;
    else if (block && strcasecmp(u->name, "transaction_isolation") == 0 && u->value != NULL)
        s->txn_isolation = isolation_name(u->value);
    else
        ST_TRY(fe_settings_set(&s->settings, u->name, u->value, local, err));
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
        return s->txn_isolation != NULL
                   ? s->txn_isolation
                   : fe_settings_get(&s->settings, "default_transaction_isolation");
    if (strcasecmp(name, "transaction_read_only") == 0)
        return fe_read_only(s) ? "on" : "off";
    return fe_settings_get(&s->settings, name);
}

static status run_show(struct fe_session *s, const struct pl_utility *u)
{
    struct fe_run *r = &s->work->run;
    struct fe_portal *p = r->portal;
    r->target = fe_out(s);
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
    /* asyncpg's fetchval asks for one row: PortalSuspended now, the tag next time. */
    if (!p->done)
        fe_row_of_texts(s, &value, 1);
    r->suspended = !p->done && r->limit == 1;
    p->done = true;
    return done(s, "SHOW");
}

static status run_discard(struct fe_session *s, const struct pl_utility *u)
{
    static const char *const tags[] = {"DISCARD ALL", "DISCARD PLANS", "DISCARD SEQUENCES",
                                       "DISCARD TEMP"};
    unsigned what = u->count >= 0 && u->count < (int64_t)ARRAY_LEN(tags) ? (unsigned)u->count : 0;
    if (what != 0)
        return done(s, tags[what]);
    if (in_block(s))
        return err_set_state(&s->work->err, ST_TXN_STATE, "25001",
                             "DISCARD ALL cannot run inside a transaction block");
    fe_portal_drop_all(s, true, 0);
    fe_settings_reset_all(&s->settings);
    fe_statement_drop_all(s);
    fe_notify_unlisten(s, NULL);
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
    if (fe_statement_find(s, u->name) != NULL)
        return err_set_state(&s->work->err, ST_EXISTS, "42P05",
                             "prepared statement \"%s\" already exists", u->name);
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
    if (expected != u->arg_count) {
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
        result = convert(s, &p->arena, inner->param_types[i], i + 1, &u->args[i], &params[i]);
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
    r->target = fe_out(s);
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
