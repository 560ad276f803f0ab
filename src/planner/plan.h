/*
 * planner/plan.h — from text to something that can run.
 *
 *   pl_split     one message's text into statements
 *   pl_plan      one statement's text → struct pl_statement: shared plan of its shape, own literals
 *   pl_bind      + parameters → struct pl_bound: a kv_op, a kv_read, or a session command
 *
 * A plan is immutable and shared; its cache belongs to one reactor. Text of a known shape costs one
 * scan and a look-up; an unknown one is parsed on a parse thread (ST_PENDING).
 */
#ifndef PLANNER_PLAN_H
#define PLANNER_PLAN_H

#include "cluster/client.h"
#include "planner/types.h"

enum pl_kind {
    PL_EMPTY,    /* only white space and comments */
    PL_READ,     /* bound.read */
    PL_WRITE,    /* bound.op */
    PL_VALUES,   /* SELECT of constants and session functions: one row, bound.values */
    PL_CATALOG,  /* catalogue relations: run with pl_catalog_start */
    PL_FUNCTION, /* SELECT [* FROM] metadb.function(…): bound.function, bound.args */
    PL_COPY_IN,
    PL_COPY_OUT,
    PL_BEGIN,
    PL_COMMIT,
    PL_ROLLBACK,
    PL_SAVEPOINT,
    PL_ROLLBACK_TO,
    PL_RELEASE,
    PL_SET,
    PL_SHOW,
    PL_RESET,
    PL_DISCARD,
    PL_PREPARE,
    PL_EXECUTE,
    PL_DEALLOCATE,
    PL_DECLARE,
    PL_FETCH,
    PL_CLOSE,
    PL_LISTEN,
    PL_UNLISTEN,
    PL_NOTIFY,
    PL_EXPLAIN,
    PL_ROLE, /* roles and privileges: utility->role */
};

#define PL_CONSTANT (-2)
struct pl_column {
    const char *name; /* heading */
    uint32_t oid;
    int32_t typmod;
    int source;        /* column of the kv_row; -1: result.scalar or the count; PL_CONSTANT */
    enum kv_type type; /* of the datum at source, for pl_datum_to_field */
    const struct pl_value *constant; /* PL_CONSTANT: the same in every row */
};

enum pl_role_action { PL_ROLE_CREATE, PL_ROLE_ALTER, PL_ROLE_DROP, PL_ROLE_GRANT, PL_ROLE_REVOKE };
struct pl_role {
    enum pl_role_action action;
    const char *const *names; /* NULL: the current user */
    unsigned name_count;
    bool if_exists;
    int superuser, login; /* -1 not said */
    bool limit_said, password_said;
    int32_t connections;     /* -1 = no limit */
    const char *password;    /* NULL = none */
    const char *valid_until; /* NULL = not said */
    const char *const *databases;
    unsigned database_count; /* none = the current one */
    unsigned privileges;     /* of enum cl_privilege */
};

/* Utility statements, as parsed. Which fields count depends on the kind. */
struct pl_utility {
    const char *name;      /* savepoint, setting, statement, cursor, channel; NULL = ALL or none */
    const char *value;     /* SET: NULL = DEFAULT; NOTIFY payload */
    bool local;            /* SET LOCAL */
    bool is_start;         /* START TRANSACTION (its tag differs from BEGIN's) */
    bool chain;            /* COMMIT AND CHAIN */
    int read_only;         /* BEGIN: -1 not said, 0, 1 */
    const char *isolation; /* BEGIN, SET TRANSACTION: NULL not said */
    bool transaction;      /* SET TRANSACTION, SET SESSION CHARACTERISTICS */
    bool characteristics;
    bool is_move, backward; /* FETCH and MOVE */
    int64_t count; /* FETCH: rows, INT64_MAX = ALL; DISCARD: 0 all, 1 plans, 2 sequences, 3 temp */
    bool scroll, hold; /* DECLARE */
    /* PREPARE, DECLARE, EXPLAIN, COPY (query), COPY table TO: the inner statement's text */
    const char *text;
    const unsigned *args_at; /* EXECUTE: the arguments' positions */
    unsigned text_at;        /* characters of the whole text before it, for error positions */
    const uint32_t *types;   /* PREPARE: declared types */
    unsigned type_count;
    bool analyze, verbose;
    /* EXECUTE: argument expressions as values */
    const struct pl_value *args;
    unsigned arg_count;
    /* COPY */
    enum kv_table table;
    const unsigned *columns;
    unsigned column_count;
    enum { PL_COPY_TEXT, PL_COPY_CSV, PL_COPY_BINARY } format;
    char delimiter, quote, escape;
    const char *null_text;
    bool header;
    const struct pl_role *role;
};

struct pl_pattern {
    const char *name; /* "meta.lookup" */
    const char *template_text;
    const char *handler;
    const char *scope; /* "one shard", "fan-out", "transaction", "session" */
};

struct pl_plan {
    enum pl_kind kind;
    const struct pl_pattern *pattern; /* NULL for session commands without one */
    uint64_t fingerprint;             /* libpg_query's, for statistics only */
    const char *tag;                  /* "SELECT", "INSERT 0", "UPDATE", "BEGIN", … */
    bool returns_rows;
    const struct pl_column *columns;
    unsigned column_count;
    const uint32_t *param_types; /* of $1…, inferred where the client gave none */
    unsigned param_count;
    const struct pl_utility *utility;
    /* private to the planner behind this */
};

struct pl_statement {
    const struct pl_plan *plan; /* referenced */
    const struct pl_value *literals;
    unsigned literal_count;
    bytes text; /* for error positions and pg_stat-like views */
    /* private to the planner: */
    const uint32_t
        *literal_at; /* byte offsets of the literals in text; NULL if the plan has its own */
    const uint32_t
        *repeats; /* how many items each list of the text has that the shape leaves open */
};

struct planner; /* one per reactor */
struct planner *pl_new(struct cl_node *node, struct cl_reactor *reactor);
void pl_free(struct planner *p);

/* Splits TEXT at top-level semicolons (strings, dollar quotes, comments, parentheses respected).
 * Empty pieces are dropped; none left = an empty query. 54001 over its bounds. */
NODISCARD status pl_split(bytes text, struct arena *a, bytes **pieces, unsigned *count,
                          struct err *err);

struct pl_request {
    void (*done)(struct pl_request *r, status st); /* if pl_plan returned ST_PENDING */
    void *arg;
    bytes text;
    const uint32_t *types; /* declared by the client; 0 or missing = infer */
    unsigned type_count;
    struct arena *arena; /* the statement's memory: literals, error */
    struct pl_statement out;
    struct err err; /* position counts characters of `text` */
    void *job;
};
/* 42601 syntax, 0A000 no pattern (DETAIL names the nearest, HINT metadb.patterns), 42P01, 42703,
 * 42883,
 * 42804, 42P18 (type of a parameter cannot be told), 54001. */
NODISCARD status pl_plan(struct planner *p, struct pl_request *r);
void pl_plan_ref(const struct pl_plan *plan);
void pl_plan_unref(const struct pl_plan *plan); /* NULL is fine */

/* What binding and session functions may ask of a session. */
/* A client's session, for catalogue queries that ask about them. Borrowed. */
enum pl_session_state {
    PL_SESSION_IDLE,
    PL_SESSION_ACTIVE,
    PL_SESSION_IDLE_IN_TRANSACTION,
    PL_SESSION_IDLE_IN_FAILED,
};
struct pl_session {
    int32_t number; /* its pid */
    const char *user, *database, *application_name;
    const char *client_address; /* NULL: not known */
    int client_port;
    bool superuser, tls;
    enum pl_session_state state;
    const char *wait_type, *wait_event;                          /* static or NULL */
    int64_t since, transaction_start, query_start, state_change; /* timestamptz; 0: none */
    bytes query;
};
struct pl_sessions {
    const struct pl_session *rows;
    unsigned count;
};

struct pl_context {
    uint32_t ns;
    int64_t now;                 /* timestamptz of the transaction or statement */
    int64_t (*clock)(void *arg); /* right now; NULL: clock_now */
    int64_t clock_now;
    uint64_t seed; /* fresh random bits of this statement */
    const struct pl_style *style;
    const char *user, *database, *application_name;
    int32_t backend_pid;
    bool in_transaction, read_only;
    /* SHOW and current_setting; NULL if unknown */
    const char *(*setting)(void *arg, const char *name);
    /* set_config: ST_OK or ERR */
    status (*set_setting)(void *arg, const char *name, const char *value, bool local,
                          struct err *err);
    /* pg_notify; NULL where there are no notifications */
    status (*notify)(void *arg, const char *channel, const char *payload, struct err *err);
    /* All sessions of the server, if the query asks (pl_catalog_asks_sessions); else NULL */
    const struct pl_sessions *sessions;
    /* Cancels what another session runs, or ends it. Any thread. */
    void (*signal)(void *arg, int32_t number, bool terminate);
    /* A WARNING goes ahead of the rows. */
    void (*warn)(void *arg, const char *message);
    void *arg;
};

struct pl_bound {
    const struct pl_plan *plan;
    struct kv_op op; /* a read FOR UPDATE: the KV_OP_LOCK that goes before it */
    struct kv_read read;
    const struct pl_value *values; /* PL_VALUES: column_count of them */
    uint64_t sleep_us;             /* PL_VALUES with pg_sleep: answer after this; cancellable */
    const struct cl_function *function;
    const struct kv_datum *args;
};
/* PARAMS: param_count values already of plan->param_types (frontend decodes text and binary). */
NODISCARD status pl_bind(const struct pl_statement *s, const struct pl_value *params,
                         unsigned count, const struct pl_context *ctx, struct arena *a,
                         struct pl_bound *out, struct err *err);

/* A bind that would touch nothing (a key compared with NULL) gives KV_READ_NOTHING, or an op with
 * kind KV_OP_DELETE and key_count 0. */

/* COPY IN: one row of fields, as datums of plan->utility->columns; NULLS says which are NULL. A
 * value that is no good sets ERR's column and no table. */
NODISCARD status pl_copy_row(const struct pl_plan *plan, const bytes *fields, const bool *nulls,
                             unsigned count, const struct pl_context *ctx, struct arena *a,
                             struct kv_datum *out, struct err *err);

/* EXPLAIN: lines of text for the inner statement; STATS NULL without ANALYZE. */
void pl_explain(const struct pl_statement *s, const struct pl_bound *b, struct cl_client *c,
                const struct cl_call_stats *stats, int64_t rows,
                void (*line)(void *arg, const char *text), void *arg);

/* Catalogue relations: pg_catalog, information_schema, metadb. Runs on a pool thread over small
 * relations; rows arrive on the loop. Borrowed until the callback returns. `job` is not NULL from
 * ST_PENDING to done; pl_catalog_cancel, on the same loop, ends it soon with ST_CANCELLED. */
struct pl_catalog_call {
    void (*on_row)(void *arg, const struct pl_value *values);
    void (*done)(struct pl_catalog_call *c, status st);
    void *arg;
    struct arena *arena;
    struct err err;
    void *job;
};
NODISCARD status pl_catalog_start(struct planner *p, const struct pl_statement *s,
                                  const struct pl_value *params, const struct pl_context *ctx,
                                  struct pl_catalog_call *call);
void pl_catalog_cancel(struct pl_catalog_call *call);
/* Does it need context.sessions? */
bool pl_catalog_asks_sessions(const struct pl_plan *plan);

/* Statistics of patterns, for metadb.patterns: one call took US and ended with ST. */
void pl_pattern_count(struct planner *p, const struct pl_plan *plan, uint64_t us, status st);

#endif
