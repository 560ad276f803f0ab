/*
 * planner/ast.h — the syntax tree as the planner sees it: a copy of what parse.c got from
 * libpg_query, cut down to the node kinds that patterns can use.
 *
 * Everything lives in the arena given to pl__parse. A node kind that no pattern uses is AST_OTHER
 * (in expressions) or STMT_OTHER with its PostgreSQL name, so that an error can name it. `at` is
 * the byte offset in the text, -1 where the grammar keeps none.
 */
#ifndef PLANNER_AST_H
#define PLANNER_AST_H

#include "base/bytes.h"

enum ast_kind {
    AST_OTHER,
    AST_INT,        /* ival: fits int4 */
    AST_NUMBER,     /* text: a larger integer or a decimal, sign folded in */
    AST_STRING,     /* text: decoded */
    AST_BOOL_CONST, /* ival 0 or 1 */
    AST_NULL,
    AST_BITS,
    AST_PARAM,  /* ival: number */
    AST_COLUMN, /* items: names; star */
    AST_CALL,   /* names, items; star for count(*); plain = no DISTINCT, FILTER, OVER … */
    AST_CAST,   /* left, type */
    AST_OP,     /* text: operator; left (NULL for a prefix), right */
    AST_ANY,    /* left text ANY (right) */
    AST_ALL,
    AST_IN,      /* left IN (items) when text is "=", NOT IN when "<>" */
    AST_LIKE,    /* left LIKE right; text "~~" or "!~~" */
    AST_BETWEEN, /* left BETWEEN items[0] AND items[1] */
    AST_AND,
    AST_OR,
    AST_NOT, /* items */
    AST_IS_NULL,
    AST_IS_NOT_NULL, /* left */
    AST_ROW,         /* items */
    AST_ARRAY,       /* items */
    AST_GREATEST,
    AST_LEAST,          /* items */
    AST_VALUE_FUNCTION, /* text: "current_user", … */
    AST_DEFAULT,
    AST_LIST, /* items */
};

struct ast_type {
    const char *const *names; /* pg_catalog.int8 → "pg_catalog", "int8" */
    unsigned name_count;
    const struct ast_node *const *typmods;
    unsigned typmod_count;
    bool array, setof;
    int at;
};

struct ast_node {
    enum ast_kind kind;
    int at;
    int64_t ival;
    const char *text;
    const char *const *names;
    unsigned name_count;
    bool star, plain;
    const struct ast_node *left, *right;
    const struct ast_node *const *items;
    unsigned count;
    const struct ast_type *type;
};

/* An output column, a SET clause, a column of an INSERT. */
struct ast_target {
    const char *name; /* alias or column; NULL if none */
    bool indirection; /* name[1], name.field */
    const struct ast_node *value;
    int at;
};

struct ast_relation {
    const char *schema, *name; /* name NULL: not a plain table */
    const char *alias;
    bool column_aliases, only;
    const struct ast_node *function; /* FROM f(…) */
    bool ordinality;
    const char *other; /* what it is, if neither */
    int at;
};

struct ast_sort {
    const struct ast_node *value;
    bool descending, nulls_first, nulls_said, using_op;
    int at;
};

struct ast_option { /* a DefElem */
    const char *name;
    const struct ast_node *value; /* NULL if only named */
    int at;
};

enum ast_stmt_kind {
    STMT_OTHER,
    STMT_SELECT,
    STMT_INSERT,
    STMT_UPDATE,
    STMT_DELETE,
    STMT_TRANSACTION,
    STMT_SET,
    STMT_SHOW,
    STMT_DISCARD,
    STMT_PREPARE,
    STMT_EXECUTE,
    STMT_DEALLOCATE,
    STMT_DECLARE,
    STMT_FETCH,
    STMT_CLOSE,
    STMT_LISTEN,
    STMT_UNLISTEN,
    STMT_NOTIFY,
    STMT_EXPLAIN,
    STMT_COPY,
    STMT_ROLE,
};

enum ast_transaction {
    TRANSACTION_BEGIN,
    TRANSACTION_START,
    TRANSACTION_COMMIT,
    TRANSACTION_ROLLBACK,
    TRANSACTION_SAVEPOINT,
    TRANSACTION_RELEASE,
    TRANSACTION_ROLLBACK_TO,
    TRANSACTION_TWO_PHASE,
};
enum ast_role { ROLE_CREATE, ROLE_ALTER, ROLE_DROP, ROLE_GRANT, ROLE_REVOKE };
enum ast_set { SET_VALUE, SET_DEFAULT, SET_CURRENT, SET_MULTI, SET_RESET, SET_RESET_ALL };

struct ast_stmt {
    enum ast_stmt_kind kind;
    const char *other; /* STMT_OTHER: PostgreSQL's name of the node, "CreateStmt" */
    int at, size;      /* piece of the text; size 0 = to the end */

    /* SELECT */
    const struct ast_target *targets; /* SELECT list; UPDATE: SET; INSERT: columns */
    unsigned target_count;
    const struct ast_relation *from;
    unsigned from_count;
    const struct ast_node *where;
    const struct ast_sort *sort;
    unsigned sort_count;
    const struct ast_node *limit, *offset;
    bool with_ties, for_update, lock_other;
    struct ast_relation lock_of; /* FOR UPDATE OF; name NULL: not said */
    const char *unusual;         /* first clause that patterns never have: "GROUP BY", … */
    int unusual_at;
    bool set_operation;

    /* INSERT, UPDATE, DELETE, COPY */
    struct ast_relation table;
    const struct ast_node *const *rows; /* AST_LIST each; SELECT: a VALUES list */
    unsigned row_count;
    bool default_values, insert_select;
    const struct ast_target *returning;
    unsigned returning_count;
    enum { ON_CONFLICT_NONE, ON_CONFLICT_NOTHING, ON_CONFLICT_UPDATE } on_conflict;
    const char *const *conflict_columns;
    unsigned conflict_column_count;
    const char *conflict_constraint;
    bool conflict_unusual; /* expressions, WHERE */
    const struct ast_target *conflict_sets;
    unsigned conflict_set_count;
    const struct ast_node *conflict_where;
    int conflict_at;

    /* utilities */
    enum ast_transaction transaction;
    enum ast_set set;
    const char *name; /* savepoint, setting, statement, cursor, channel */
    const char *payload;
    bool local, chain, is_move, is_from;
    int64_t count; /* FETCH; DISCARD: as struct pl_utility */
    enum { FETCH_IS_FORWARD, FETCH_IS_BACKWARD, FETCH_IS_ABSOLUTE, FETCH_IS_RELATIVE } direction;
    unsigned cursor_options;
    const struct ast_node *const *args; /* SET values, EXECUTE arguments */
    unsigned arg_count;
    const struct ast_type *const *types; /* PREPARE */
    unsigned type_count;
    const struct ast_option *options;
    unsigned option_count;
    const char *const *columns; /* COPY */
    unsigned column_count;
    const struct ast_stmt *query; /* EXPLAIN, DECLARE, COPY (query): the inner statement */
    bool from_program, to_file;

    /* CREATE, ALTER, DROP ROLE (options above), GRANT, REVOKE */
    enum ast_role role;
    const char *const *roles; /* NULL: the current user */
    unsigned role_count;
    bool is_user, missing_ok;
    const char *const *privileges; /* none = ALL */
    unsigned privilege_count;
    const char *const *databases;
    unsigned database_count;
    bool all_tables;     /* ON ALL TABLES IN SCHEMA … (in databases) */
    const char *refused; /* a form of these that is not supported */

    /* Everything below this statement: tables named anywhere (sub-selects and joins too, names of
     * WITH queries left out) and the highest $n. */
    const struct ast_relation *relations;
    unsigned relation_count;
    unsigned param_max;
};

/* One of the four about rows, of tables or of catalogue relations. */
static inline bool ast_is_query(const struct ast_stmt *s)
{
    return s->kind == STMT_SELECT || s->kind == STMT_INSERT || s->kind == STMT_UPDATE ||
           s->kind == STMT_DELETE;
}

#define CURSOR_SCROLL 0x2u
#define CURSOR_HOLD 0x20u

#endif
