/*
 * planner/relations/translate.h — PostgreSQL's parse tree to SQLite's SQL, inside the folder.
 *
 * With planner/parse.c the only place that sees libpg_query: this header is included by the
 * translate*.c files alone. All memory is in the query's arena. Parse thread only.
 *
 * No name of the client's reaches the SQL: relations are r17, sources t3, columns c1, functions
 * f42; text only inside literals. So every name is resolved, and every error made, here.
 */
#ifndef PLANNER_RELATIONS_TRANSLATE_H
#define PLANNER_RELATIONS_TRANSLATE_H

#include "planner/relations/relations.h"

#include <pg_query.h>
#include <pg_query/pg_query.pb-c.h>

#define TR_DEPTH_MAX 1000u                 /* nesting of the tree */
#define TR_BYTES_MAX (64u * 1024u * 1024u) /* memory of a translation */
#define TR_COLUMNS_MAX 1000u               /* of one select list */
#define TR_PARAMS_MAX 1000u
#define TR_AGG_KEYS_MAX 32u

/* An expression, translated. */
struct tr_ex {
    const char *sql;
    uint32_t type; /* OID_UNKNOWN: a literal, NULL or parameter nobody has typed yet */
    int32_t typmod;
    const char *literal; /* text of an untyped literal */
    unsigned param;      /* number of an untyped parameter, or 0 */
};

struct tr_column {
    const char *name; /* as clients know it */
    const char *sql;  /* "t3.c1" */
    uint32_t type;
    int32_t typmod;
    bool hidden; /* the second of a USING pair: only t.name finds it */
};

struct tr_source {
    const char *alias; /* as clients know it; NULL for a sub-select without one */
    const struct rel *rel;
    struct tr_column *columns;
    unsigned count;
    const char *sql; /* "t3" */
};

struct tr_cte {
    const char *name, *sql;
    const struct tr_column *columns; /* name, type, typmod */
    unsigned count;
    struct tr_cte *next;
};

/* Set-returning functions of a select list, moved into FROM. */
struct tr_srf {
    const char *argument; /* SQL; equal arguments share a scan */
    const char *sql;      /* "t5" */
    struct tr_srf *next;
};

struct tr_scope {
    struct tr_scope *outer;
    struct tr_source **sources;
    unsigned count, capacity;
    struct tr_cte *ctes;
    struct tr_srf *srfs;
    bool srf_allowed;                  /* in the select list */
    bool aggregates;                   /* one was seen */
    bool exists;                       /* of EXISTS: its columns do not matter */
    const PgQuery__SelectStmt *select; /* for its WINDOW clause */
};

/* What a row of aclexplode has. */
#define TR_ACL_FIELDS 4u
#define TR_ACL_FIELD_LIST                                                                          \
    {"grantor", OID_OID}, {"grantee", OID_OID}, {"privilege_type", OID_TEXT},                      \
    {                                                                                              \
        "is_grantable", OID_BOOL                                                                   \
    }

/* A query, translated. */
struct tr_query {
    const char *sql;
    struct tr_column *columns; /* name, type, typmod */
    unsigned count;
    bool one_row; /* never more */
};

struct tr {
    struct catalog_query *q;
    struct arena *a; /* q->arena */
    bytes text;
    struct err *err;
    unsigned depth, next_id;
    bool *rel_used;                 /* by index */
    uint32_t params[TR_PARAMS_MAX]; /* 0: not typed yet */
    unsigned param_count;
};

/* translate.c */
/* Sets the error with the position of byte LOCATION (-1: none); returns CODE. */
status tr_fail(struct tr *t, status code, const char *sqlstate, int location, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
NODISCARD status tr_enter(struct tr *t); /* depth and memory; pair with tr_leave */
void tr_leave(struct tr *t);
const char *tr_name(struct tr *t, const char *prefix);  /* "t7" */
const char *tr_literal(struct tr *t, const char *text); /* 'it''s' */
const char *tr_call(struct tr *t, const char *function,
                    unsigned arg_count);    /* "f42", marks it used */
const char *tr_str(const PgQuery__Node *n); /* of a String node; "" otherwise */
const char *tr_node_kind(const PgQuery__Node *n);
/* Type named by a TypeName; 42704. */
NODISCARD status tr_type(struct tr *t, const PgQuery__TypeName *n, uint32_t *type, int32_t *typmod);
/* The heading that PostgreSQL gives an expression. */
const char *tr_heading(const PgQuery__Node *n);
NODISCARD status tr_find_column(struct tr *t, struct tr_scope *s, const PgQuery__ColumnRef *ref,
                                struct tr_ex *out);

/* translate_type.c */
static inline struct tr_ex tr_typed(const char *sql, uint32_t type)
{
    return (struct tr_ex){.sql = sql, .type = type, .typmod = -1};
}
const char *tr_type_name(struct tr *t, uint32_t type); /* for messages */
/* To TYPE where PostgreSQL would convert implicitly; untyped literals and parameters take it. */
NODISCARD status tr_coerce(struct tr *t, struct tr_ex *e, uint32_t type, int location);
NODISCARD status tr_coerce_all(struct tr *t, struct tr_ex *e, unsigned count, int location,
                               uint32_t *type);
/* Untyped becomes text. */
NODISCARD status tr_settle(struct tr *t, struct tr_ex *e);
NODISCARD status tr_cast(struct tr *t, struct tr_ex *e, uint32_t type, int location);
/* As an element of an array is written: t and f, not true and false. */
NODISCARD status tr_array_item(struct tr *t, struct tr_ex *e);
NODISCARD status tr_cast_text(struct tr *t, struct tr_ex *e, uint32_t type);
/* FUNCTION of SQL and of the OID of TYPE. */
const char *tr_call_typed(struct tr *t, const char *function, const char *sql, uint32_t type);
unsigned tr_number_rank(uint32_t type);
/* The one of two types of numbers that holds both. */
uint32_t tr_wider(uint32_t a, uint32_t b);
/* The one type of several expressions (CASE, UNION, COALESCE). */
uint32_t tr_common_type(const struct tr_ex *e, unsigned count);
/* translate_operator.c */
NODISCARD status tr_operator(struct tr *t, struct tr_scope *s, const PgQuery__AExpr *e,
                             struct tr_ex *out);
/* L OP R. */
NODISCARD status tr_binary(struct tr *t, const char *op, struct tr_ex *l, struct tr_ex *r,
                           int location, struct tr_ex *out);
/* Both sides of OP to types that may be compared, or 42883. */
NODISCARD status tr_match(struct tr *t, const char *op, struct tr_ex *l, struct tr_ex *r,
                          int location);
/* translate_expr.c */
NODISCARD status tr_expr(struct tr *t, struct tr_scope *s, const PgQuery__Node *n,
                         struct tr_ex *out);
NODISCARD status tr_bool(struct tr *t, struct tr_scope *s, const PgQuery__Node *n, const char *what,
                         const char **sql);
/* translate_call.c: function calls. */
NODISCARD status tr_function(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                             struct tr_ex *out);
NODISCARD status tr_known_call(struct tr *t, const char *name, struct tr_ex *args, unsigned count,
                               int location, struct tr_ex *out);
/* string_agg of texts that are SQL already, with F's order, DISTINCT, FILTER and OVER. */
NODISCARD status tr_string_agg(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                               const char *value, const char *separator, const char **sql);
/* translate_json.c, translate_special.c: false in *IS if NAME is none of theirs. */
NODISCARD status tr_json(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                         const char *name, bool *is, struct tr_ex *out);
NODISCARD status tr_special(struct tr *t, const char *name, struct tr_ex *args, unsigned count,
                            int location, bool *is, struct tr_ex *out);
/* unnest, generate_series and their like; false in *IS if F is none. SQL is the table's text. */
NODISCARD status tr_table_function(struct tr *t, struct tr_scope *s, const PgQuery__FuncCall *f,
                                   bool *is, const char **sql, struct tr_source *src);

/* translate_select.c */
NODISCARD status tr_sort_list(struct tr *t, struct tr_scope *s, PgQuery__Node *const *list,
                              size_t count, const char **sql);
NODISCARD status tr_select(struct tr *t, struct tr_scope *outer, const PgQuery__SelectStmt *s,
                           struct tr_query *out);
/* The same below EXISTS, where there may be no columns. */
NODISCARD status tr_exists(struct tr *t, struct tr_scope *outer, const PgQuery__SelectStmt *s,
                           struct tr_query *out);

#endif
