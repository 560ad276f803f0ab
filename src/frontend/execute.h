/*
 * frontend/execute.h — running a portal: from bound plan to rows and tag.
 */
#ifndef FRONTEND_EXECUTE_H
#define FRONTEND_EXECUTE_H

#include "frontend/row_encoder.h"
#include "frontend/session.h"

/* Where rows go. */
enum fe_sink {
    FE_SINK_ROWS,    /* DataRow */
    FE_SINK_COPY,    /* CopyData */
    FE_SINK_NOTHING, /* counted only: MOVE, EXPLAIN ANALYZE */
};

/* Rows of a page on their way to the client. Whoever reads the page writes here, a pool thread too;
 * what the connection had to send goes along at the front, so that all goes out as it is. */
struct fe_page {
    struct fe_row_encoder encoder;
    struct obuf out; /* lent by the connection while the page is read */
    int64_t rows;
};

/* What follows when all rows of a source went out. ST_PENDING if it waits in turn. */
typedef status fe_after(struct fe_session *s);

/* COMMIT AND CHAIN: what the next transaction is to be. */
struct fe_chain {
    bool wanted, read_only;
    const char *isolation;
};

/* One execution. Part of fe_work. */
struct fe_run {
    struct fe_portal *portal; /* as asked for */
    struct fe_portal
        *source; /* whose rows these are: the portal, or a cursor, or an inner statement */
    const int16_t *formats;
    unsigned format_count;
    enum fe_sink sink;
    struct fe_shape shape;
    int64_t limit; /* rows; INT64_MAX = all */
    int64_t rows;
    struct obuf *target;
    int16_t bad_format; /* asked for, of a column; 0 = none. An error once there is a row: */
    bool bad_row;
    bool describe;     /* simple protocol: RowDescription goes ahead of the rows */
    bool describe_now; /* … and has not been sent yet */
    bool suspended;    /* out: PortalSuspended instead of a tag */
    bool empty;        /* out: EmptyQueryResponse */
    bool timed;        /* EXPLAIN ANALYZE: calls take their times */
    bool copy_csv, copy_binary;
    bool copy_header; /* binary: still due */
    char copy_delimiter, copy_quote, copy_escape;
    const char *copy_null;
    struct fe_portal *told; /* of FETCH, EXECUTE, EXPLAIN, SHOW: these rows are its, once */
    bool keeping;           /* … and go into its store, for its own limit is another: */
    int64_t told_limit;
    struct fe_chain chain;
    char tag[64]; /* out */
    fe_next *done;
    fe_after *after; /* the rows of SOURCE */
    uint64_t started_us;
    const struct pl_plan *counted; /* whose statistics this execution goes into */
    struct obuf scratch;
    struct fe_page page; /* reads into FE_SINK_ROWS */
    struct fe_statement *inner;
    bytes inner_whole, inner_text; /* of a Parse: the message, and its statement */
};

/* All that exists between a message and its ReadyForQuery. Lent by the worker. */
#define FE_WARNINGS_MAX 8u
struct fe_simple; /* query_simple.c */
struct fe_work {
    struct fe_work *next_free;
    struct arena arena; /* this message's memory */
    struct err err;
    char context[256];
    struct pl_request plan;
    struct fe_statement *planning;
    struct cl_call call;
    const struct kv_op *op; /* what the call runs */
    int64_t now;            /* of the cycle; 0 = not taken yet */
    struct pl_context context_of_catalog;
    struct arena call_arena;
    struct pl_catalog_call catalog;
    struct fe_run run;
    struct fe_simple *simple;
    struct fe_copy *copy;
    fe_next *next;         /* what waits */
    bool stalled, yielded; /* … for output to drain; for its turn */
    bool sleeping;         /* … for the sleep timer */
    bool extended;         /* the current message is of the extended protocol */
    bool pipes;            /* an Execute of what leaves its transaction open */
    bool cancelled, timed_out;
    bool uncertain; /* waits for a write: a cancel comes too late, or takes it back */
    struct loop_timer *sleep;
    struct fe_session *session;
    struct fe_gathering *gathering; /* the sessions, for a catalogue query that asks about them */
    /* What such a query warned of; given out before its first row. */
    unsigned warning_count;
    char warnings[FE_WARNINGS_MAX][80];
};

/* Runs P for up to LIMIT rows (INT64_MAX = all). ST_OK, an error in work->err, or ST_PENDING and
 * DONE later. The outcome is in work->run. */
NODISCARD status fe_run(struct fe_session *s, struct fe_portal *p, int64_t limit, bool describe,
                        fe_next *done);
/* The end of a run that had to wait. */
void fe_run_finish(struct fe_session *s, status st);
/* Parameters are there: makes the bound plan, once. */
NODISCARD status fe_portal_bind(struct fe_session *s, struct fe_portal *p);
/* In a read-only transaction: 25006 if P is a SELECT … FOR UPDATE. */
NODISCARD status fe_refuse_locking(struct fe_session *s, struct fe_portal *p);
/* Streams SOURCE into the sink, then AFTER. */
NODISCARD status fe_run_source(struct fe_session *s, struct fe_portal *source, fe_after *after);
/* Runs PLAN as what the current run asked for. */
NODISCARD status fe_run_plan(struct fe_session *s, struct fe_portal *p);
/* Sends the RowDescription if it is still due. */
void fe_describe_once(struct fe_session *s);
/* Does PLAN give rows, or change data, by itself? The others may lead to one, or in circles. */
bool fe_is_source(const struct pl_plan *plan);
/* What encodes the rows of the page that is read next. */
void fe_page_encoder(struct fe_session *s);
/* Columns that a statement, or a portal, returns. */
struct fe_shape fe_statement_shape(struct fe_session *s, const struct fe_statement *st);
/* A tag of KIND with a count. */
void fe_run_tag(struct fe_run *r, const char *word, int64_t count);
/* Cancelled or over its time? Fills work->err. */
NODISCARD status fe_check_cancel(struct fe_session *s);
/* Waits for a timer of this many microseconds. */
NODISCARD status fe_sleep(struct fe_session *s, uint64_t us, fe_next *next);
/* When what begins now began: with the turn, or when the last run of this worker ended. So one look
 * at the clock per statement is enough for its statistics. */
static inline uint64_t fe_run_clock(const struct fe_worker *w)
{
    uint64_t turn_us = loop_now_us(w->loop);
    return w->clock_us > turn_us ? w->clock_us : turn_us;
}
/* Begins a call to the cluster. */
struct cl_call *fe_call(struct fe_session *s);

/* Planning the inner text failed with ST: counts the position from the start of the whole text. */
status fe_inner_failed(struct fe_session *s, status st);
/* utility.c, cursor.c, copy_in.c, copy_out.c: kinds of statements */
NODISCARD status fe_run_utility(struct fe_session *s, const struct pl_plan *plan);
NODISCARD status fe_run_declare(struct fe_session *s, const struct pl_plan *plan);
NODISCARD status fe_run_fetch(struct fe_session *s, const struct pl_plan *plan);
NODISCARD status fe_run_close(struct fe_session *s, const struct pl_plan *plan);
NODISCARD status fe_run_explain(struct fe_session *s, const struct pl_plan *plan);
NODISCARD status fe_run_prepare(struct fe_session *s, const struct pl_plan *plan);
NODISCARD status fe_run_execute(struct fe_session *s, const struct pl_plan *plan);
NODISCARD status fe_run_copy_out(struct fe_session *s, const struct pl_plan *plan);
NODISCARD status fe_run_copy_in(struct fe_session *s, const struct pl_plan *plan);
void fe_copy_in_data(struct fe_session *s, bytes data);
void fe_copy_in_done(struct fe_session *s);
void fe_copy_in_fail(struct fe_session *s, bytes body);
/* The error in work->err ends it. After fe_copy_in_settle. */
void fe_copy_in_refuse(struct fe_session *s, status st);
/* What is wrong with rows that came already is said before a message that is not CopyData is looked
 * at; that may end the mode. False: the message has to wait. */
bool fe_copy_in_settle(struct fe_session *s);
/* CONTEXT of what went wrong between rows: the line that would have come. */
void fe_copy_in_context(struct fe_session *s);
/* Ends the mode with the error in work->err. */
void fe_copy_in_abort(struct fe_session *s, status st);
void fe_copy_free(struct fe_session *s);
void fe_simple_free(struct fe_session *s);

/* result.c: rows */
void fe_put_row_description(struct obuf *o, struct fe_shape shape, const int16_t *formats,
                            unsigned format_count);
void fe_put_parameter_description(struct obuf *o, const struct pl_plan *plan);
void fe_row_of_values(struct fe_session *s, const struct pl_value *values, unsigned count);
void fe_row_of_texts(struct fe_session *s, const char *const *texts,
                     unsigned count); /* NULL = NULL */
bool fe_row_of_kv(void *session, const struct kv_row *row);
void fe_row_of_datums(struct fe_session *s, const struct kv_datum *datums);
/* Where rows go: to the client, or into a store. */
struct obuf *fe_run_target(struct fe_session *s);
/* Delivers stored rows up to the limit; true if that was all. */
bool fe_store_deliver(struct fe_session *s, struct fe_portal *p);
/* A statement that is no query itself but gives rows runs once, to its end, whatever limit Execute
 * has: begin() before it runs, end() after it went well or, for a later Execute, in its place. */
void fe_told_begin(struct fe_session *s, struct fe_portal *p);
void fe_told_end(struct fe_session *s, struct fe_portal *p);

/* copy_out.c: one field in COPY's text or CSV */
void fe_copy_text_field(struct fe_run *r, struct obuf *o, bool first, bytes field, bool null);
/* The header of binary data, once. */
void fe_copy_header(struct fe_run *r, struct obuf *o);

/* role.c: what a session with `limited` may do. ST_DENIED. */
NODISCARD status fe_check_powers(struct fe_session *s, const struct pl_bound *b);
/* PRIVILEGES: bits of enum cl_privilege. */
NODISCARD status fe_check_table(struct fe_session *s, enum kv_table table, unsigned privileges);
NODISCARD status fe_run_role(struct fe_session *s, const struct pl_plan *plan);
void fe_audit_function(const struct fe_session *s, const char *name);

#endif
