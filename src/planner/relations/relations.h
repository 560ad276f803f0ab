/*
 * planner/relations/relations.h — what the files of this folder share.
 *
 * Vocabulary: a *relation* is a table or view that clients may ask about (struct rel); the *model*
 * is the immutable list of all of them; a *cell* is a value as the evaluator holds it.
 *
 * How PostgreSQL types are held in cells: integers, oid, bool, reg… (as OIDs), date, times and
 * interval are CELL_INT; floats and numeric CELL_REAL or CELL_INT; everything else is CELL_TEXT in
 * PostgreSQL's text form — also arrays ({a,b}) and vectors (1 2), bytea and "char".
 *
 * The model and everything it points to is const after its first use; any thread may read it.
 */
#ifndef PLANNER_RELATIONS_RELATIONS_H
#define PLANNER_RELATIONS_RELATIONS_H

#include "base/assert.h"
#include "cluster/views.h"
#include "planner/catalog.h"

#include <stdatomic.h>

enum cell_kind { CELL_NULL, CELL_INT, CELL_REAL, CELL_TEXT };
struct cell {
    enum cell_kind kind;
    union {
        int64_t i;
        double d;
        bytes b; /* borrowed */
    };
};
static inline struct cell cell_null(void)
{
    return (struct cell){.kind = CELL_NULL};
}
static inline struct cell cell_int(int64_t v)
{
    return (struct cell){.kind = CELL_INT, .i = v};
}
static inline struct cell cell_real(double v)
{
    return (struct cell){.kind = CELL_REAL, .d = v};
}
static inline struct cell cell_bytes(bytes v)
{
    return (struct cell){.kind = CELL_TEXT, .b = v};
}
static inline struct cell cell_str(const char *s) /* NULL = NULL */
{
    return s ? cell_bytes(bytes_str(s)) : cell_null();
}

/* ---- types.c: the types of pg_type ---- */

/* Types that only this folder names. */
enum rel_oid {
    OID_INT2VECTOR = 22,
    OID_XID = 28,
    OID_OIDVECTOR = 30,
    OID_JSON = 114,
    OID_PG_NODE_TREE = 194,
    OID_CHAR_ARRAY = 1002,
    OID_NAME_ARRAY = 1003,
    OID_ACLITEM = 1033,
    OID_REGPROCEDURE = 2202,
    OID_REGTYPE = 2206,
    OID_RECORD = 2249,
    OID_REGNAMESPACE = 4089,
    OID_REGROLE = 4096,
    OID_JSONB = 3802,
    OID_XN = 0x7ffffff0,      /* a row (x, n) of _pg_expandarray; never leaves the evaluator */
    OID_ACL_ROW = 0x7ffffff1, /* a row of aclexplode; never leaves the evaluator */
};

struct rel_type {
    uint32_t oid;
    const char *name;     /* "int8" */
    const char *sql_name; /* "bigint", NULL = name */
    uint32_t array;       /* 0 if none */
    int16_t size;
    bool byval;
    char kind;     /* typtype */
    char category; /* typcategory */
    bool preferred;
    uint32_t elem;
    char align, storage;
    uint32_t collation;
    const char *io; /* prefix of its input and output functions: "bool", "date_" */
};
const struct rel_type *rel_types(unsigned *count);
/* NULL if unknown. IS_ARRAY: OID is the array of the type returned. */
const struct rel_type *rel_type_find(uint32_t oid, bool *is_array);
/* By either name, also "int8[]" and "_int8"; 0 if unknown. */
uint32_t rel_type_by_name(bytes name);
uint32_t rel_type_array_of(uint32_t oid);   /* 0 if none */
uint32_t rel_type_element_of(uint32_t oid); /* also of vectors; 0 if not an array */
/* As format_type() says it. */
bytes rel_type_format(struct arena *a, uint32_t oid, int64_t typmod);

/* Families that may be compared with each other. */
enum rel_family {
    FAMILY_NUMBER,
    FAMILY_TEXT,
    FAMILY_BOOL,
    FAMILY_TIME,
    FAMILY_INTERVAL,
    FAMILY_ARRAY,
    FAMILY_OTHER
};
enum rel_family rel_type_family(uint32_t oid);
bool rel_type_is_integer(uint32_t oid); /* int2, int4, int8, oid, xid, reg… */
bool rel_type_is_reg(uint32_t oid);     /* an OID that prints as a name */
/* Whether values of this type travel as planner/types.h knows them; others travel as text. */
bool rel_type_is_wire(uint32_t oid);

/* I/O functions of a type have OIDs of their own; WHICH: 0 input, 1 output, 2 receive, 3 send. */
uint32_t rel_type_io_oid(const struct rel_type *t, unsigned which);
/* Appends "boolin"; false if the type has none. */
bool rel_type_io_name(const struct rel_type *t, unsigned which, char *out, size_t size);
#define OID_ARRAY_IO 750u /* array_in, array_out, array_recv, array_send: 750 to 753 */

/* ---- model.c: every relation ---- */

#define REL_COLUMNS_MAX 128u
#define OID_PG_CATALOG 11u
#define OID_PUBLIC 2200u
#define OID_INFORMATION_SCHEMA 13207u
#define OID_METADB 13300u
#define OID_OWNER 10u /* the role that owns everything */
#define OID_CLASS_PG_CLASS 1259u
#define OID_CLASS_PG_PROC 1255u

struct rel_column {
    const char *name;
    uint32_t type;
    bool not_null;
    bool identity;   /* drawn by the server where a statement leaves it out */
    const char *def; /* its default as SQL; NULL: none */
};
struct rel_build;
struct rel {
    uint32_t oid, schema_oid;
    const char *schema, *name;
    char kind; /* relkind: r, v; i for the primary keys */
    const struct rel_column *columns;
    unsigned column_count;
    unsigned index;                    /* in the model */
    void (*rows)(struct rel_build *b); /* NULL: no rows, or of another source below */
    const struct cl_view *view;        /* metadb.*: rows come from the snapshot */
    const struct kv_table_def *table;  /* public.*: rows are not the evaluator's */
    bool patterns;                     /* metadb.patterns */
};
const struct rel *rel_at(unsigned i); /* NULL past the end */
unsigned rel_count(void);
unsigned rel_total_count(void); /* with those that only functions stand for, which come last */
/* SCHEMA NULL: search path pg_catalog, public. NULL if there is none. */
const struct rel *rel_find(const char *schema, const char *name);
const struct rel *rel_by_oid(uint32_t oid);
/* Visible without its schema. */
bool rel_is_visible(const struct rel *r);

struct rel_schema {
    uint32_t oid;
    const char *name;
};
const struct rel_schema *rel_schemas(unsigned *count);

/* OIDs of a stored table and what belongs to it: stable, since table numbers are on disk. */
static inline uint32_t rel_table_oid(enum kv_table t)
{
    return 16384u + (uint32_t)t * 100u;
}
#define REL_PKEY_INDEX 1u /* + table oid */
#define REL_PKEY_CONSTRAINT 2u
#define REL_ROW_TYPE 3u
#define REL_ROW_TYPE_ARRAY 4u
#define REL_DEFAULT 10u /* + column */
/* The table whose primary key index has this OID; NULL. */
const struct kv_table_def *rel_pkey_of(uint32_t index_oid);
/* A stable OID from a name, for objects that have no number of their own. */
uint32_t rel_name_oid(const char *schema, const char *name);

/* ---- functions.c: scalar functions ---- */

/* What a running statement may ask. One thread. */
struct rel_env {
    const struct pl_context *ctx;
    const struct catalog_snapshot *snap; /* NULL in tests */
    const atomic_bool *cancel;           /* set by another thread: stop; NULL = never */
    struct arena *arena;                 /* scratch of a function call; the run's otherwise */
    struct arena *keep;                  /* of the run */
    struct err err;                      /* set by a function that fails */
    struct rel_regex *regexes;           /* text.c */
    unsigned regex_count;
};

/* Fills OUT; false: env->err is set. OUT may borrow from ARGS or the arena. */
typedef bool rel_call(struct rel_env *env, const struct cell *args, unsigned count,
                      struct cell *out);

struct rel_function {
    const char *name;
    /* One letter an argument: t text, i integer, o oid, b bool, n name, f float, r regclass,
     * p timestamptz, a array, x any. '?' behind: optional from here on; '*' behind: any number. */
    const char *args;
    uint32_t result; /* a type, or REL_RESULT_… */
    bool not_strict; /* wants to see NULLs; others are NULL for any NULL argument */
    rel_call *call;
};
#define REL_RESULT_ARG1 1u                              /* type of the first argument */
#define REL_RESULT_ELEMENT 2u                           /* element of the first argument's type */
const struct rel_function *rel_function_at(unsigned i); /* NULL past the end */
unsigned rel_function_count(void);
int rel_function_find(const char *name,
                      unsigned arg_count); /* -1 none of the name, -2 none with the count */
uint32_t rel_function_oid(unsigned i);
/* The number of arguments that must and may be given (UINT_MAX: any number). */
void rel_function_arity(const struct rel_function *f, unsigned *min, unsigned *max);
/* Type of argument I as its letter says; 0 = any. */
uint32_t rel_function_arg_type(const struct rel_function *f, unsigned i);

/* The parts. */
extern const struct rel_function rel_text_functions[], rel_match_functions[],
    rel_number_functions[], rel_time_functions[], rel_json_functions[], rel_array_functions[],
    rel_catalog_functions[], rel_privilege_functions[], rel_session_functions[];
extern const unsigned rel_text_function_count, rel_match_function_count, rel_number_function_count,
    rel_time_function_count, rel_json_function_count, rel_array_function_count,
    rel_catalog_function_count, rel_privilege_function_count, rel_session_function_count;

/* What casts and comparisons need; only the translator can name them (a leading dot). */
#define REL_FN_IN ".cast_in"   /* (text, oid): input function of a type */
#define REL_FN_OUT ".cast_out" /* (value, oid): output function */
#define REL_FN_ANY ".any"      /* (value, array, operator, elements are numbers) */
#define REL_FN_ALL ".all"
#define REL_FN_REGEX ".regex"         /* (text, pattern, ignore case) */
#define REL_FN_LIKE ".like"           /* (text, pattern, ignore case) */
#define REL_FN_SUBSCRIPT ".subscript" /* (array, index, elements are numbers) */
#define REL_FN_FIELD ".field"         /* (row (x,n), field number) */
#define REL_FN_ROW ".row"
#define REL_FN_ARRAY ".array"         /* (value…) */
#define REL_FN_ARRAY_OUT ".array_out" /* (array, element type): elements to their text */
#define REL_FN_DIVIDE ".divide"
#define REL_FN_MODULO ".modulo"
#define REL_FN_SUBSTRING_MATCH ".substring_match" /* (text, pattern) */
#define REL_FN_ROUND_FLOAT ".round_float"
#define REL_FN_TO_CHAR_NUMBER ".to_char_number" /* (number, picture) */
#define REL_FN_TO_CHAR_TIME ".to_char_time"     /* (value, format, enum rel_time_kind) */
#define REL_FN_DATE_TRUNC ".date_trunc"         /* (unit, value, enum rel_time_kind) */
#define REL_FN_EXTRACT ".extract"               /* the same */
#define REL_FN_JSON ".json"                     /* (value, type, is jsonb): its JSON, never NULL */
#define REL_FN_CONTAINS ".contains"             /* (array, array, elements are numbers) */
#define REL_FN_OVERLAPS ".overlaps"
#define REL_FN_ACL_ITEMS ".acl_items" /* (acl): rows of aclexplode as text[] */
#define REL_FN_ACL_FIELD ".acl_field" /* (such a row, field number) */

/* What the number of a time stands for: a moment, a reading of a wall clock, a length. */
enum rel_time_kind { REL_TIME_MOMENT, REL_TIME_WALL, REL_TIME_INTERVAL };

/* Sets env->err and returns false. */
bool rel_fail(struct rel_env *env, status code, const char *sqlstate, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
struct cell rel_text(struct rel_env *env, const char *fmt, ...) PRINTF_LIKE(2, 3);
bytes rel_cell_text(struct rel_env *env,
                    const struct cell *c); /* numbers as digits; NULL = empty */
const char *rel_cell_str(struct rel_env *env, const struct cell *c);
void rel_regexes_free(struct rel_env *env);

/* casts.c: input and output functions of types. */
bool rel_cast_in(struct rel_env *env, bytes text, uint32_t type, struct cell *out);
bool rel_cast_out(struct rel_env *env, const struct cell *value, uint32_t type, struct cell *out);
const char *rel_reserved_word(unsigned i); /* in order; NULL past the end */
bytes rel_quote_ident(struct arena *a, bytes name);
bytes rel_quote_literal(struct arena *a, bytes text);

/* arrays.c: the text form of arrays and vectors. */
struct rel_array {
    struct cell *items; /* CELL_TEXT or CELL_NULL, or CELL_INT if asked for numbers */
    unsigned count;
    int first; /* lowest subscript: 1, or 0 for vectors */
};
/* One dimension only. False: malformed. */
bool rel_array_parse(struct arena *a, bytes text, bool numbers, struct rel_array *out);
bytes rel_array_format(struct arena *a, const struct cell *items, unsigned count);
int rel_cell_compare(const struct cell *a, const struct cell *b); /* NULLs are the caller's */

/* ---- rows: pg_rows.c, information_rows.c ---- */

struct rel_build {
    const struct rel *rel;
    struct rel_env *env;
    struct arena *arena;
    struct cell *cells;
    size_t row_count;
    unsigned row_capacity;
};
void rel_emit(struct rel_build *b, const struct cell *cells, unsigned count);
/* Fills B with the rows of REL, whatever their source. */
void rel_build_rows(struct rel_build *b, struct rel_env *env, const struct rel *rel);

struct rel_def {
    uint32_t oid;
    const char *name;
    char kind;
    const char *columns; /* "oid:oid! amname:name!": name:type, [] array, ! not null */
    void (*rows)(struct rel_build *b);
};
extern const struct rel_def rel_pg_defs[];
extern const unsigned rel_pg_def_count;
extern const struct rel_def rel_information_defs[];
extern const unsigned rel_information_def_count;
/* Relations that are spelled as functions: pg_timezone_names(), pg_get_keywords(). */
const struct rel *rel_function_relation(const char *name);

/* ---- snapshot: catalog.c ---- */

struct rel_database {
    const char *name;
    uint32_t oid;
    const char *acl; /* NULL: nobody has been given anything */
};
struct rel_role {
    uint32_t oid;
    const char *name;
    bool superuser, login;
    int connections; /* -1 = no limit */
    bool expires;    /* its password, at: */
    int64_t expires_at;
    const uint8_t *privileges; /* of enum cl_privilege, for each database; NULL: none */
};
struct catalog_snapshot {
    struct arena arena;
    struct rel_database *databases;
    unsigned database_count;
    struct rel_role *roles;
    unsigned role_count;
    const struct config *config; /* of the server; NULL in tests */
    int64_t started;             /* the server, as a timestamptz; 0 in tests */
    struct rel_table_copy {
        const struct rel *rel;
        struct cell *cells;
        size_t row_count;
        unsigned row_capacity;
    } * tables;
    unsigned table_count;
};

/* ---- translate.c, evaluator.c ---- */

struct catalog_query {
    struct arena arena;
    const char *sql; /* SQLite's dialect; no name of the client's is in it */
    struct pl_column *columns;
    unsigned column_count;
    uint32_t *param_types;
    unsigned param_count;
    const struct rel **rels; /* those it reads, each once */
    unsigned rel_count;
    bool *functions; /* by number: those it calls */
};
/* Parse thread. Fills Q from TEXT. */
NODISCARD status rel_translate(struct catalog_query *q, bytes text, const uint32_t *types,
                               unsigned type_count, struct err *err);
/* Any thread with a stack of 256 KiB. */
NODISCARD status rel_evaluate(const struct catalog_query *q, struct rel_env *env,
                              const struct pl_value *params, unsigned count,
                              void (*emit)(void *arg, const struct pl_value *values), void *arg,
                              struct err *err);
/* Names of relations, functions and columns in SQLite's text. */
#define REL_SQL_RELATION "r%u"
#define REL_SQL_FUNCTION "f%u"
#define REL_SQL_COLUMN "c%u"
#define REL_SQL_UNNEST "pg_unnest" /* columns value, ord, sub; arguments: array, numbers */
#define REL_SQL_UNNEST_MANY "pg_unnest_many" /* value1…, ord; number of arrays, array, numbers, … */
#define REL_UNNEST_MAX 8u
#define REL_SQL_SERIES "pg_series"         /* columns value, ord; arguments: start, stop, step */
#define REL_SQL_SINGLE "pg_single"         /* (value): of the one row there may be */
#define REL_SQL_ARRAY_AGG "pg_array_agg"   /* (flags, value, keys…) */
#define REL_SQL_STRING_AGG "pg_string_agg" /* (flags, value, separator, keys…) */

#endif
