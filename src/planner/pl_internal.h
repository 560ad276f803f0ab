/*
 * planner/pl_internal.h — what the planner's files share among themselves: expressions, compiled
 * statements, the compile and the bind context. Nobody outside src/planner and its tests includes
 * it.
 */
#ifndef PLANNER_PL_INTERNAL_H
#define PLANNER_PL_INTERNAL_H

#include "planner/ast.h"
#include "planner/patterns.h"
#include "planner/plan.h"
#include "planner/scan.h"

struct catalog_query;

/* -- types and time (types.c, type_time.c) ----------------------------------------------------- */

#define PL_TIME_INFINITY INT64_MAX
#define PL_TIME_MINUS_INFINITY INT64_MIN
#define PL_TIME_MIN INT64_C(-211813488000000000) /* 4713-11-24 BC, in microseconds since 2000 */
#define PL_TIME_END INT64_C(9223371331200000000) /* 294277-01-01 */

/* OID: timestamp, timestamptz or date (days since 2000). */
NODISCARD status pl__time_from_text(uint32_t oid, bytes text, const struct pl_style *style,
                                    int64_t now, int64_t *out, struct err *err);
void pl__time_to_text(uint32_t oid, int64_t v, const struct pl_style *style, struct obuf *out);
/* Between wall clock (timestamp) and moment (timestamptz). */
int64_t pl__time_to_local(int64_t moment, const struct pl_style *style);
int64_t pl__time_from_local(int64_t local, const struct pl_style *style);
NODISCARD status pl__interval_from_text(bytes text, int64_t *out, struct err *err);
void pl__interval_to_text(int64_t v, struct obuf *out);
/* A number's text as bigint: false if it is no integer or does not fit. *FLOOR is the largest
 * integer below it, cut at the ends of bigint; *OUT_OF_RANGE is -1 or 1 beyond them. */
bool pl__number_to_int(bytes text, int64_t *floor, bool *exact, int *out_of_range);
/* Rounded half away from zero; false if out of range or not a number. */
bool pl__number_round(bytes text, int64_t *out);
NODISCARD status pl__numeric_check(bytes text, struct arena *a, bytes *canonical, struct err *err);

/* Position in characters of byte offset AT (1-based); 0 for AT < 0. */
uint32_t pl__position(bytes text, int at);

/* -- expressions (values.c) -------------------------------------------------------------------- */

enum pl__expr_kind { EXPR_CONST, EXPR_LITERAL, EXPR_PARAM, EXPR_CAST, EXPR_CALL, EXPR_DEFAULT };

struct pl__expr {
    enum pl__expr_kind kind;
    uint32_t oid; /* static type; OID_UNKNOWN for 'text' and NULL without a cast */
    int32_t typmod;
    int at;         /* byte offset in the text, -1 unknown */
    unsigned index; /* EXPR_PARAM: 0-based; EXPR_CALL: function */
    int slot;       /* where the literal stands in the text, also for EXPR_CONST; -1 unknown */
    bool negate;    /* EXPR_LITERAL: a minus stands before the token */
    struct pl_value value; /* EXPR_CONST */
    const struct pl__expr *const *args;
    unsigned count;
};

/* Compiling one statement, on a parse thread. */
struct pl__compile {
    struct arena *a; /* the plan's */
    struct cl_node *node;
    bytes text;           /* with a NUL behind */
    unsigned text_before; /* characters ahead of an inner statement's own text */
    const struct ast_stmt *stmt;
    const struct pl_scan *scan; /* NULL: not cacheable, literals become constants */
    bool *slot_free;            /* [slot]: the plan holds for any value of it */
    bool fixed;                 /* literals become constants of the plan */
    bool repeat_free[PL_REPEATS];
    uint32_t *param_types; /* [LIMIT_PARAMS + 1] in the compile's memory */
    unsigned param_count, declared_count;
    struct pl__plan *plan;
    struct err *err;
};

/* Running one statement. */
struct pl__bind {
    const struct pl__plan *plan;
    const struct pl_statement *s;
    const struct pl_value *params;
    unsigned param_count;
    const struct pl_context *ctx;
    struct arena *a;
    struct pl_bound *out;
    struct err *err;
};

/* E from NODE. EXPECTED: type for a parameter that has none yet, 0 = none. ST_UNSUPPORTED with no
 * error set when NODE is no value the planner computes itself. */
NODISCARD status pl__expr(struct pl__compile *c, const struct ast_node *node, uint32_t expected,
                          const struct pl__expr **out);
/* As pl__expr, but what is no such value is 0A000 that names NEAREST. */
NODISCARD status pl__expr_of(struct pl__compile *c, const struct ast_node *node, uint32_t expected,
                             enum pl_pattern_id nearest, const struct pl__expr **out);
/* Fills ERR's position from E's place in this statement's text, if it has none yet. Returns ST. */
status pl__eval_error(const struct pl__bind *b, const struct pl__expr *e, unsigned slot_shift,
                      status st);
/* SLOT_SHIFT is added to literal slots: the row of a repeated list. */
NODISCARD status pl__eval(const struct pl__bind *b, const struct pl__expr *e, unsigned slot_shift,
                          struct pl_value *out);
/* Type of a cast's or PREPARE's type name; 42704. */
NODISCARD status pl__type_name(struct pl__compile *c, const struct ast_type *t, uint32_t *oid,
                               int32_t *typmod);
/* Heading PostgreSQL gives an output column without an alias. */
const char *pl__heading(struct pl__compile *c, const struct ast_node *n);

/* SELECT of constants and session functions: PL_VALUES. ST_UNSUPPORTED without an error: not
 * ours. */
NODISCARD status pl__compile_values(struct pl__compile *c, const struct ast_stmt *s);

/* -- statements on tables (canonical.c, compile_table.c, bind_*.c) ----------------------------- */

enum pl__cond_kind {
    COND_COMPARE, /* column cmp value */
    COND_IN,      /* column = any of values */
    COND_ANY,     /* column = ANY (array value) */
    COND_LIKE,    /* column LIKE value */
    COND_ROW,     /* the whole key, as a tuple, cmp values */
};
struct pl__cond {
    enum pl__cond_kind kind;
    unsigned column;
    enum kv_cmp cmp;
    const struct pl__expr *const *values;
    unsigned count;
    int repeat; /* COND_IN: index of the scan's repeat that gives the number of values; -1 none */
    int at;
};

/* Conjuncts of a WHERE clause over one table: flattened, column left of its value, BETWEEN split,
 * in the order of columns. */
struct pl__where {
    const struct pl__cond *conds;
    unsigned count;
};

/* What the names of a statement's columns may be qualified with. */
struct pl__scope {
    const struct kv_table_def *def;
    const char *schema, *table, *alias;
};

/* pl__plan.body of a statement on a table. */
struct pl__table {
    const struct kv_table_def *def;
    struct pl__where where;
    unsigned eq_count; /* key columns bound by equality from the left */
    bool points, many; /* all key columns bound; the last by a list */
    bool count, backwards, for_update;
    kv_column_set output; /* SELECT: columns of the result */
    const struct pl__expr *limit;

    /* INSERT */
    const unsigned *columns;
    unsigned column_count;
    const struct pl__expr *const *cells; /* row after row */
    unsigned row_count;
    int repeat; /* rows are as many as this repeat's; -1: row_count */
    enum kv_conflict conflict;
    /* UPDATE, ON CONFLICT DO UPDATE */
    const struct pl__set *sets;
    unsigned set_count;
    bool want_rows;
    /* UPDATE of the key: a move */
    const struct pl__expr *new_pid, *new_name;
    /* functions of meta */
    const struct pl__expr *const *args;
    unsigned arg_count;
    unsigned function;
};
struct pl__set {
    unsigned column, from;
    enum kv_set_kind kind;
    bool negate; /* column = column - value */
    const struct pl__expr *value;
};

NODISCARD status pl__canonical_where(struct pl__compile *c, const struct pl__scope *scope,
                                     const struct ast_node *where, struct pl__where *out);
/* A column of SCOPE; 42703, 42P01 for a foreign qualifier. ST_UNSUPPORTED without an error if NODE
 * is no plain column. */
NODISCARD status pl__column(struct pl__compile *c, const struct pl__scope *scope,
                            const struct ast_node *node, unsigned *out);
NODISCARD status pl__scope_of(struct pl__compile *c, const struct ast_relation *r,
                              const struct kv_table_def *def, struct pl__scope *out);
/* Output columns: SELECT list or RETURNING. */
NODISCARD status pl__projection(struct pl__compile *c, const struct pl__scope *scope,
                                const struct ast_target *targets, unsigned count);
NODISCARD status pl__order(struct pl__compile *c, const struct pl__scope *scope,
                           struct pl__table *t, enum pl_pattern_id nearest);
NODISCARD status pl__limit(struct pl__compile *c, const struct ast_stmt *s, struct pl__table *t,
                           enum pl_pattern_id nearest);
/* May COLUMN be assigned from E? Sets 42804. */
NODISCARD status pl__check_assign(struct pl__compile *c, const struct kv_column *column,
                                  const struct pl__expr *e);

/* Does a bound of T say all that the condition K says? If not it is a filter. */
bool pl__is_bound(const struct pl__table *t, const struct pl__cond *k);
bool pl__integer_column(const struct kv_column *k);

NODISCARD status pl__compile_select(struct pl__compile *c, const struct kv_table_def *def);
NODISCARD status pl__compile_insert(struct pl__compile *c, const struct kv_table_def *def);
NODISCARD status pl__compile_update(struct pl__compile *c, const struct kv_table_def *def);
NODISCARD status pl__compile_delete(struct pl__compile *c, const struct kv_table_def *def);
/* SELECT f(…) and SELECT … FROM f(…) of the functions on meta; ST_UNSUPPORTED without an error: no
 * such function. */
NODISCARD status pl__compile_meta_function(struct pl__compile *c, const struct ast_stmt *s);
/* metadb.f(…): PL_FUNCTION. */
NODISCARD status pl__compile_admin_function(struct pl__compile *c, const struct ast_stmt *s);
NODISCARD status pl__compile_session(struct pl__compile *c, const struct ast_stmt *s);
NODISCARD status pl__compile_role(struct pl__compile *c, const struct ast_stmt *s);
NODISCARD status pl__compile_copy(struct pl__compile *c, const struct ast_stmt *s);
/* SELECT, INSERT, UPDATE or DELETE; TEXT is the piece of c->text that S is. */
NODISCARD status pl__compile_query(struct pl__compile *c, const struct ast_stmt *s, bytes text);
/* A table of ours; NULL and no error: a catalogue relation or unknown to us; 42P01. */
NODISCARD status pl__table_of(struct pl__compile *c, const struct ast_relation *r,
                              const struct kv_table_def **out);
/* Unsupported statements: 0A000 that names them. */
status pl__unsupported(struct pl__compile *c, const struct ast_stmt *s);

/* bind_meta.c, bind_kv.c, bind_object.c: what is special to a table. */
struct pl__rules {
    enum pl_pattern_id get, get_many, list, count, scan, insert, upsert, update, remove,
        remove_many, remove_range, move; /* PATTERN_NONE: not there */
};
extern const struct pl__rules pl__rules_kv, pl__rules_object, pl__rules_lifecycle, pl__rules_quota,
    pl__rules_index, pl__rules_none;
const struct pl__rules *pl__rules_of(enum kv_table t);
/* 42501: a statement writes to DEF, which the server keeps by itself. */
status pl__read_only(struct pl__compile *c, const struct ast_relation *table,
                     const struct kv_table_def *def);

NODISCARD status pl__bind_read(struct pl__bind *b);
NODISCARD status pl__bind_insert(struct pl__bind *b);
NODISCARD status pl__bind_update(struct pl__bind *b);
NODISCARD status pl__bind_delete(struct pl__bind *b);
NODISCARD status pl__bind_move(struct pl__bind *b);

/* 0A000: no pattern matches. NEAREST and what DIFFERS go into DETAIL. */
status pl__no_pattern(struct pl__compile *c, int at, enum pl_pattern_id nearest,
                      const char *differs, ...) PRINTF_LIKE(4, 5);
/* An error at a place of the text. */
status pl__error(struct pl__compile *c, int at, status code, const char *sqlstate, const char *fmt,
                 ...) PRINTF_LIKE(5, 6);

/* -- plans (plan.c, plan_cache.c) -------------------------------------------------------------- */

struct pl__plan {
    struct pl_plan pub; /* first: the frontend sees this */
    unsigned refs;
    struct arena arena;
    enum pl_pattern_id pattern_id;
    status (*bind)(struct pl__bind *b); /* NULL: nothing to bind */
    const void *body;
    struct catalog_query *catalog;
    const struct cl_function *function;
    /* what the cache must compare beside the shape */
    bool cacheable;
    const uint32_t *baked; /* slots whose text belongs to the key */
    unsigned baked_count;
    bool repeat_free[PL_REPEATS];
    /* cache links */
    struct pl__plan *next;
    struct pl__shape *shape;
    unsigned entry;
    uint8_t *baked_key;
    uint32_t baked_size;
};

struct pl__cache;
struct pl__cache *pl__cache_new(void);
void pl__cache_free(struct pl__cache *c);
/* A plan for the scanned text and the declared types; NULL if there is none. Not referenced. */
struct pl__plan *pl__cache_find(struct pl__cache *c, const struct pl_scan *s, bytes text,
                                const uint32_t *types, unsigned type_count);
/* Takes a reference of PLAN when it keeps it. */
void pl__cache_put(struct pl__cache *c, const struct pl_scan *s, bytes text, const uint32_t *types,
                   unsigned type_count, struct pl__plan *plan);
unsigned pl__cache_count(const struct pl__cache *c);

/* Compiles one statement: parse thread. TYPES as in pl_request. */
NODISCARD status pl__compile_text(struct cl_node *node, bytes text, const struct pl_scan *scan,
                                  const uint32_t *types, unsigned type_count, struct pl__plan **out,
                                  struct err *err);

#endif
