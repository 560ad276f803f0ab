/*
 * frontend/session.h — one client's session: statements, portals, transaction, and what runs.
 *
 * A session is cheap while idle: all that exists only between a message and its ReadyForQuery is in
 * struct fe_work, lent by the worker. One thing runs at a time. What cannot finish at once returns
 * ST_PENDING after fe_wait(next); its completion calls NEXT with the outcome, from the loop.
 *
 * All of this belongs to the worker's thread.
 */
#ifndef FRONTEND_SESSION_H
#define FRONTEND_SESSION_H

#include "cluster/roles.h"
#include "frontend/activity.h"
#include "frontend/conn.h"
#include "frontend/notify.h"
#include "frontend/pgwire.h"
#include "frontend/row_encoder.h"
#include "frontend/settings_session.h"
#include "planner/plan.h"

/* Rows of a read's first page, and of further ones: a long read holds the others up by less. */
#define FE_PAGE_ROWS 1000u
#define FE_NEXT_PAGE_ROWS 256u
#define FE_PAGE_BYTES (256u * 1024u)
#define FE_STATEMENTS_MAX 20000u
#define FE_PORTALS_MAX 4096u
/* Rows of one FETCH or EXECUTE under a row limit. */
#define FE_STORE_BYTES_MAX (64u * 1024u * 1024u)

struct fe_work;
struct fe_copy;
struct fe_ahead;
typedef void fe_next(struct fe_session *s, status st);

/* The one state for "which transaction". */
enum fe_txn {
    FE_TXN_IDLE,     /* none: a statement commits by itself */
    FE_TXN_IMPLICIT, /* opened for several statements of one message, or up to Sync */
    FE_TXN_BLOCK,    /* BEGIN … */
    FE_TXN_FAILED,   /* BEGIN …, and an error: only its end is accepted */
};

/* The one state for "what happens to the next message". */
enum fe_mode {
    FE_MODE_NORMAL,
    FE_MODE_SKIP,    /* an error in the extended protocol: everything up to Sync is dropped */
    FE_MODE_COPY_IN, /* CopyData is expected */
};

/* A planned text. Shared by its name and the portals made from it. */
struct fe_statement {
    unsigned refs;
    struct fe_statement *next; /* in a bucket, or free */
    const char *name;          /* in the arena; NULL = has none */
    struct arena arena;
    bytes text;               /* of a Parse, in the arena */
    struct pl_statement stmt; /* plan NULL = empty text */
    struct err *late;         /* … or what it says when it runs */
    bool constant;            /* values without functions, known as soon as parameters are */
    bool lends_rows;          /* EXECUTE of what gives rows, as it was when it was parsed */
    /* Its rows in one format and any style, made by the first run; fields NULL: not kept. */
    struct fe_row_encoder encoder;
    int16_t encoder_format;
};

/* A statement with its parameters, and how far it has run. */
struct fe_portal {
    /* memory, kept when the portal goes back to the pool */
    struct arena arena, page;
    struct obuf store; /* DataRows not delivered yet, of what cannot be run in pieces */
    /* cleared then */
    unsigned refs;
    struct fe_portal *next;
    const char *name; /* in the arena; NULL = internal */
    struct fe_statement *statement;
    struct fe_portal *parent; /* a cursor's DECLARE: its parameters lie there */
    const struct pl_value *params;
    unsigned param_count;
    const int16_t *formats; /* none, one for all, or one a column */
    unsigned format_count;
    struct kv_read_pos pos;
    size_t store_at;
    char tag[64];   /* of what was stored */
    unsigned level; /* savepoints open when it was made */
    bool bound_ready, started, done, stored, told, cursor, hold, dropped;
    /* left as it is: it means nothing until bound_ready */
    struct pl_bound bound;
};

struct fe_savepoint {
    char *name;
    kv_txn_mark mark;
    bool has_mark; /* else the transaction had touched no data yet */
    unsigned settings, notifies;
};

struct fe_session {
    struct fe_conn *conn;
    struct fe_worker *worker;
    struct cl_client *client;
    struct fe_work *work; /* NULL while idle */
    enum fe_txn txn;
    enum fe_mode mode;
    bool busy;    /* no message may be handled now */
    bool pending; /* a call holds pointers into this session */
    bool gone;    /* the connection is closed; goes when the pending call is done */
    bool pinned;  /* a handler is on the stack: not to be freed under it */
    bool stopping;
    bool terminated;                     /* by somebody: what runs ends without an answer */
    struct fe_ahead *ahead, *ahead_last; /* writes under way, oldest first; see ahead.c */
    unsigned ahead_count;
    /* Of the role, as of roles_seen; asked for by fe_session_limited. */
    uint64_t roles_seen; /* cl_roles_version */
    bool limited;        /* may not do everything: what it does is checked */
    bool superuser;
    uint8_t privileges; /* on its database: of enum cl_privilege */
    uint32_t ns;
    const char *user, *database;
    int32_t number; /* process number */
    uint8_t secret[4];
    struct fe_session *next_by_number;
    struct fe_session *next_listener;
    struct fe_settings settings;
    struct fe_statement **buckets;
    unsigned bucket_count, statement_count;
    struct fe_statement *unnamed;
    struct fe_portal *portals;
    unsigned portal_count;
    struct fe_savepoint *savepoints;
    unsigned savepoint_count, savepoint_capacity;
    bool txn_settled; /* txn_read_only holds, whatever the default becomes */
    bool txn_read_only;
    bool txn_queried; /* it has looked at data, or planned to: too late for its isolation level */
    bool txn_piped;   /* an Execute was answered, and Sync has not come */
    const char *txn_isolation; /* as said by BEGIN; static or NULL */
    int64_t txn_now;           /* 0 = not taken yet */
    struct loop_timer *timer;  /* idle limits, statement_timeout */
    bool timer_statement;
    struct fe_notify *notify;
    struct fe_activity activity;
};

struct fe_session *fe_session_new(struct fe_conn *c, uint32_t ns, bytes user, bytes database);
/* What its role may now. */
void fe_session_renew_powers(struct fe_session *s);
/* Is there anything that S may not do? Asked before its powers are looked at, so that a change of
 * roles that was answered holds for every statement that comes after it. */
static inline bool fe_session_limited(struct fe_session *s)
{
    if (UNLIKELY(s->roles_seen != cl_roles_version(s->worker->node)))
        fe_session_renew_powers(s);
    return s->limited;
}
/* The connection is gone. Frees now, or when the pending call is done. */
void fe_session_leave(struct fe_session *s);
/* What a handler did with a message. */
enum fe_handled { FE_HANDLED, FE_DEFERRED /* keep it until more has arrived */ };
enum fe_handled fe_session_message(struct fe_session *s, const struct fe_frame *f);
/* A message of a type that does not exist. Waits if it has to: then it is to be seen again. */
void fe_session_unknown(struct fe_session *s, uint8_t type);
/* Does it wait for output to drain? */
bool fe_session_is_stalled(const struct fe_session *s);
/* Writes ahead were answered: what had to wait for them goes on. May free S. */
void fe_session_ahead_done(struct fe_session *s);
/* Does it wait for a write, so that more output follows soon? */
bool fe_session_awaits_write(const struct fe_session *s);
/* Output has drained, or it is this session's turn again. */
void fe_session_continue(struct fe_session *s);
/* Ends what runs: TIMEOUT says why. */
void fe_session_cancel(struct fe_session *s, bool timeout);
/* The server stops: an idle session ends now, another one at its next ReadyForQuery. */
void fe_session_stop(struct fe_session *s);
/* Somebody ends it: now, or as soon as what runs has ended, which it is told to. May free S. */
void fe_session_terminate(struct fe_session *s);

/* -- inside the folder ------------------------------------------------------------------------- */

struct fe_work *fe_work(struct fe_session *s); /* lends one if there is none */
struct obuf *fe_out(struct fe_session *s);     /* the connection's output, marked dirty */

/* What runs waits; NEXT gets the outcome. EXTERNAL: a call that holds pointers is under way. */
status fe_wait(struct fe_session *s, fe_next *next, bool external);
void fe_resume(struct fe_session *s, status st);
/* NEXT after a turn of the loop. */
status fe_yield(struct fe_session *s, fe_next *next);

/* ErrorResponse from work->err, and what an error does to transaction and mode. */
void fe_fail(struct fe_session *s);
void fe_fatal(struct fe_session *s, const char *sqlstate, const char *message);
/* The end of a message cycle: reports, notifications, ReadyForQuery. */
void fe_ready(struct fe_session *s);
/* The answer of the current message is complete. */
void fe_message_done(struct fe_session *s);

/* statements and portals (names.c) */
struct fe_statement *fe_statement_new(struct fe_session *s);
void fe_statement_unref(struct fe_session *s, struct fe_statement *st);
struct fe_statement *fe_statement_find(struct fe_session *s, const char *name);
NODISCARD status fe_statement_name(struct fe_session *s, struct fe_statement *st, const char *name);
bool fe_statement_drop(struct fe_session *s, const char *name);
void fe_statement_drop_all(struct fe_session *s);
struct fe_portal *fe_portal_new(struct fe_session *s, struct fe_statement *st);
void fe_portal_unref(struct fe_session *s, struct fe_portal *p);
struct fe_portal *fe_portal_find(struct fe_session *s, const char *name);
/* 42P03 if there is one of the name. */
NODISCARD status fe_portal_absent(struct fe_session *s, const char *name);
NODISCARD status fe_portal_name(struct fe_session *s, struct fe_portal *p, const char *name);
bool fe_portal_drop(struct fe_session *s, const char *name);
/* ALL: also those WITH HOLD. LEVEL: only those made inside that many savepoints or more. */
void fe_portal_drop_all(struct fe_session *s, bool all, unsigned level);
/* All but the one that runs. */
void fe_portal_drop_others(struct fe_session *s, const struct fe_portal *kept);
/* A name as the wire gives it: cut at 63 bytes, 22021 if it is no text. */
NODISCARD status fe_name(struct fe_session *s, bytes wire, struct arena *a, const char **out);

/* Plans TEXT into ST. ST_OK, error in work->err, or ST_PENDING with NEXT. */
NODISCARD status fe_plan(struct fe_session *s, struct fe_statement *st, bytes text,
                         const uint32_t *types, unsigned type_count, fe_next *next);
/* The same with the text inside the statement that runs, into a new work->run.inner. */
NODISCARD status fe_plan_inner(struct fe_session *s, bytes text, const uint32_t *types,
                               unsigned type_count, fe_next *next);
void fe_context(struct fe_session *s, struct pl_context *out);
bool fe_read_only(const struct fe_session *s);

/* transactions (txn.c) */
int64_t fe_now(struct fe_session *s);        /* of the transaction, or of the message cycle */
int64_t fe_clock(const struct fe_worker *w); /* right now, as a timestamptz */
bool fe_is_txn_exit(enum pl_kind k);
NODISCARD status fe_txn_refuse(struct fe_session *s); /* 25P02 into work->err */
/* A message that is part of a transaction: settles what that is, once. */
void fe_txn_settle(struct fe_session *s);
/* Is what runs one of several statements that end together? */
bool fe_txn_in_block(const struct fe_session *s);
/* Would PostgreSQL have taken a snapshot: to run a statement of KIND, or already to PARSE it? */
void fe_txn_query(struct fe_session *s, enum pl_kind kind, bool parse);
/* Opens cl_begin for a block or an implicit transaction, once. */
void fe_txn_touch(struct fe_session *s);
/* Commits what is open. ST_OK, error, or ST_PENDING with NEXT; the transaction is over in any
 * case. */
NODISCARD status fe_txn_commit(struct fe_session *s, fe_next *next);
/* What an error does: a block fails, anything less is rolled back. */
void fe_txn_abort(struct fe_session *s);
/* Ends the transaction, undoing it. */
void fe_txn_rollback(struct fe_session *s);
/* SET TRANSACTION, and the options of BEGIN. READ_ONLY -1 and ISOLATION NULL leave it as it is. */
NODISCARD status fe_txn_set(struct fe_session *s, int read_only, const char *isolation);
const char *fe_txn_isolation(const struct fe_session *s);
NODISCARD status fe_txn_savepoint(struct fe_session *s, const char *name);
NODISCARD status fe_txn_release(struct fe_session *s, const char *name);
NODISCARD status fe_txn_rollback_to(struct fe_session *s, const char *name);

/* messages */
void fe_simple_query(struct fe_session *s, bytes body);
/* Is what runs one of several statements of a Query? */
bool fe_simple_is_many(const struct fe_session *s);
/* Is it of the grammar or the scanner, which see a text before anything else does? */
bool fe_is_grammar_error(const struct err *err);
void fe_extended_parse(struct fe_session *s, bytes body);
void fe_extended_bind(struct fe_session *s, bytes body);
void fe_extended_describe(struct fe_session *s, bytes body);
enum fe_handled fe_extended_execute(struct fe_session *s, bytes body);
void fe_extended_close(struct fe_session *s, bytes body);
void fe_extended_sync(struct fe_session *s);

/* NoticeResponse of level NOTICE, and of level WARNING; unless client_min_messages is above it. */
void fe_notice(struct fe_session *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void fe_warning(struct fe_session *s, const char *sqlstate, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* ERR was said of PIECE, a part of the message WHOLE. */
void fe_error_of_piece(struct err *err, bytes whole, bytes piece);
/* Writes an ErrorResponse or NoticeResponse. */
void fe_put_error(struct obuf *o, char type, const char *severity, const struct err *err,
                  const char *context);

#endif
