/*
 * frontend/query_simple.c — the cycle of a Query message.
 *
 *   split ─> plan all pieces ─> run one after another ─> commit what is implicit ─> ReadyForQuery
 *
 * All pieces are planned before the first one runs: a syntax error anywhere refuses the whole
 * message, as PostgreSQL's grammar does; other errors of planning come when their piece's turn
 * comes.
 *
 * Several pieces are one implicit transaction: the first write that is not the last piece opens it,
 * BEGIN turns it into a block. The answer of the last piece is held back until the commit went
 * well.
 *
 * Invariants
 *   Q1  phase only moves forward; whatever waits comes back to go_on().
 *   Q2  After an error no further piece runs.
 */
#include "base/assert.h"
#include "frontend/execute.h"
#include <stdlib.h>

enum phase { PHASE_PLAN, PHASE_RUN, PHASE_COMMIT, PHASE_READY };

struct piece {
    bytes text;
    struct fe_statement *statement;
    status planned;
    struct err *err; /* if planning failed */
};

struct fe_simple {
    enum phase phase;
    bytes text;
    struct piece *pieces;
    unsigned count, at;
};

static void go_on(struct fe_session *s);

void fe_simple_free(struct fe_session *s)
{
    struct fe_simple *q = s->work->simple;
    if (q == NULL)
        return;
    for (unsigned i = 0; i < q->count; i++)
        fe_statement_unref(s, q->pieces[i].statement);
    s->work->simple = NULL;
}

/* -- planning ---------------------------------------------------------------------------------- */

static void planned(struct fe_session *s, status st)
{
    struct fe_work *w = s->work;
    struct piece *p = &w->simple->pieces[w->simple->at];
    p->planned = st;
    if (st == ST_OK)
        return;
    p->err = arena_alloc(&w->arena, sizeof *p->err);
    *p->err = w->err;
    err_clear(&w->err);
}

bool fe_simple_is_many(const struct fe_session *s)
{
    return s->work != NULL && s->work->simple != NULL && s->work->simple->count > 1;
}

static void plan_waited(struct fe_session *s, status st)
{
    planned(s, st);
    s->work->simple->at++;
    go_on(s);
}

/* False: waits. */
static bool plan_pieces(struct fe_session *s)
{
    struct fe_simple *q = s->work->simple;
    for (; q->at < q->count; q->at++) {
        struct piece *p = &q->pieces[q->at];
        p->statement = fe_statement_new(s);
        status st = fe_plan(s, p->statement, p->text, NULL, 0, plan_waited);
        if (st == ST_PENDING)
            return false;
        planned(s, st);
    }
    q->at = 0;
    return true;
}

/* Errors of the grammar, and they alone, say where they are; 42601 is said later, too. So are those
 * of the scanner: bytes that are no characters. */
bool fe_is_grammar_error(const struct err *err)
{
    return strstr(err->message, " at or near ") != NULL ||
           strstr(err->message, " at end of input") != NULL || strcmp(err->sqlstate, "22021") == 0;
}

static bool is_syntax_error(const struct piece *p)
{
    return p->planned != ST_OK && fe_is_grammar_error(p->err);
}

/* The error of piece P, as one of the whole message. */
static void fail_with(struct fe_session *s, const struct piece *p)
{
    fe_error_of_piece(&s->work->err, s->work->simple->text, p->text);
    fe_fail(s);
    s->work->simple->phase = PHASE_READY;
}

/* A syntax error anywhere, or cancelled meanwhile: nothing runs. */
static void check_pieces(struct fe_session *s)
{
    struct fe_simple *q = s->work->simple;
    q->phase = PHASE_RUN;
    for (unsigned i = 0; i < q->count; i++)
        if (is_syntax_error(&q->pieces[i])) {
            s->work->err = *q->pieces[i].err;
            fail_with(s, &q->pieces[i]);
            return;
        }
    if (fe_check_cancel(s) != ST_OK) {
        fe_fail(s);
        q->phase = PHASE_READY;
    }
}

/* -- running ----------------------------------------------------------------------------------- */

static void put_result(struct fe_session *s)
{
    struct fe_run *r = &s->work->run;
    struct obuf *o = fe_out(s);
    if (r->empty)
        fe_put_empty(o, 'I');
    else
        fe_put_tag(o, r->tag);
}

static void ran(struct fe_session *s, status st)
{
    struct fe_simple *q = s->work->simple;
    if (st != ST_OK) {
        fail_with(s, &q->pieces[q->at]);
        return;
    }
    /* The last answer waits for the commit. */
    bool hold_back = q->at + 1 == q->count && s->txn == FE_TXN_IMPLICIT;
    if (!hold_back)
        put_result(s);
    q->at++;
    if (q->at == q->count)
        q->phase = PHASE_COMMIT;
}

static void run_waited(struct fe_session *s, status st)
{
    ran(s, st);
    go_on(s);
}

static bool writes(const struct pl_plan *plan)
{
    return plan->kind == PL_WRITE || plan->kind == PL_COPY_IN || plan->kind == PL_EXECUTE ||
           plan->kind == PL_EXPLAIN;
}

static bool run_piece(struct fe_session *s)
{
    struct fe_work *w = s->work;
    struct fe_simple *q = w->simple;
    struct piece *p = &q->pieces[q->at];
    if (p->planned != ST_OK) {
        status st = p->planned;
        w->err = *p->err;
        if (s->txn == FE_TXN_FAILED)
            st = fe_txn_refuse(s);
        ran(s, st);
        return true;
    }
    const struct pl_plan *plan = p->statement->stmt.plan;
    if (s->txn == FE_TXN_IDLE && q->at + 1 < q->count && writes(plan))
        s->txn = FE_TXN_IMPLICIT;
    struct fe_portal *portal = fe_portal_new(s, p->statement);
    status st = fe_run(s, portal, INT64_MAX, true, run_waited);
    fe_portal_unref(s, portal);
    if (st == ST_PENDING)
        return false;
    ran(s, st);
    return true;
}

/* -- the end ----------------------------------------------------------------------------------- */

static void committed(struct fe_session *s, status st)
{
    if (st == ST_OK)
        put_result(s);
    else
        fe_fail(s);
    s->work->simple->phase = PHASE_READY;
}

static void commit_waited(struct fe_session *s, status st)
{
    committed(s, st);
    go_on(s);
}

static bool commit(struct fe_session *s)
{
    if (s->txn == FE_TXN_IMPLICIT) {
        status st = fe_txn_commit(s, commit_waited);
        if (st == ST_PENDING)
            return false;
        committed(s, st);
    } else if (s->txn == FE_TXN_IDLE) {
        /* Settings and notifications of what committed by itself. */
        status st = fe_txn_commit(s, NULL);
        ASSERT(st == ST_OK);
    }
    s->work->simple->phase = PHASE_READY;
    return true;
}

static void go_on(struct fe_session *s)
{
    struct fe_simple *q = s->work->simple;
    if (q->phase == PHASE_PLAN) {
        if (!plan_pieces(s))
            return;
        check_pieces(s);
    }
    while (q->phase == PHASE_RUN)
        if (!run_piece(s))
            return;
    if (q->phase == PHASE_COMMIT && !commit(s))
        return;
    fe_ready(s);
}

static status begin(struct fe_session *s, bytes body)
{
    struct fe_work *w = s->work;
    struct fe_msg_query m;
    ST_TRY(fe_decode_query(body, &m, &w->err));
    if (!s->settings.sql_ascii)
        ST_TRY(fe_utf8_check(m.text, &w->err));
    struct fe_simple *q = ARENA_NEW(&w->arena, struct fe_simple);
    q->text = bytes_make(arena_strdup(&w->arena, m.text), m.text.size);
    fe_activity_begin(s, q->text);
    bytes *texts;
    unsigned count;
    ST_TRY(pl_split(q->text, &w->arena, &texts, &count, &w->err));
    q->pieces = ARENA_ARRAY(&w->arena, struct piece, count + 1);
    for (unsigned i = 0; i < count; i++)
        q->pieces[i].text = texts[i];
    q->count = count;
    w->simple = q;
    return ST_OK;
}

void fe_simple_query(struct fe_session *s, bytes body)
{
    struct fe_work *w = s->work;
    if (s->unnamed != NULL)
        fe_statement_drop(s, "");
    if (s->portals != NULL)
        fe_portal_drop(s, "");
    status st = begin(s, body);
    if (st != ST_OK) {
        fe_fail(s);
        fe_ready(s);
        return;
    }
    if (w->simple->count == 0) {
        w->run.empty = true;
        w->simple->phase = PHASE_COMMIT;
        if (s->txn != FE_TXN_IMPLICIT)
            put_result(s);
    }
    go_on(s);
}
