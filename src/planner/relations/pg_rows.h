/*
 * planner/relations/pg_rows.h — generators of the rows of pg_catalog, inside the folder.
 *
 * Each emits its rows into B from the model and the snapshot. Any thread; they cannot fail.
 */
#ifndef PLANNER_RELATIONS_PG_ROWS_H
#define PLANNER_RELATIONS_PG_ROWS_H

#include "planner/relations/relations.h"

void rel__namespace(struct rel_build *b);
void rel__class(struct rel_build *b);
void rel__attribute(struct rel_build *b);
void rel__attrdef(struct rel_build *b);
void rel__stat_tables(struct rel_build *b);
void rel__stat_indexes(struct rel_build *b);
void rel__statio_tables(struct rel_build *b);
void rel__type(struct rel_build *b);
void rel__index(struct rel_build *b);
void rel__constraint(struct rel_build *b);
void rel__am(struct rel_build *b);
void rel__database(struct rel_build *b);
void rel__roles(struct rel_build *b);
void rel__authid(struct rel_build *b);
void rel__user(struct rel_build *b);
void rel__proc(struct rel_build *b);
void rel__settings(struct rel_build *b);
void rel__description(struct rel_build *b);
void rel__collation(struct rel_build *b);
void rel__tablespace(struct rel_build *b);
void rel__language(struct rel_build *b);
void rel__opclass(struct rel_build *b);
void rel__opfamily(struct rel_build *b);
void rel__range(struct rel_build *b);
void rel__stat_activity(struct rel_build *b);
void rel__stat_ssl(struct rel_build *b);
void rel__stat_database(struct rel_build *b);
/* Does the generator, or the function, look at the sessions of the server? */
bool rel__is_of_sessions(void (*rows)(struct rel_build *b));
bool rel__signals(rel_call *call);
void rel__timezone_names(struct rel_build *b);
void rel__tables(struct rel_build *b);
void rel__views(struct rel_build *b);
void rel__indexes(struct rel_build *b);

/* pg_get_keywords(): not a relation but a function that stands where one may. */
void rel__keywords(struct rel_build *b);
/* A setting of the session, a constant or one of the server's; NULL if NAME is none of them. */
const char *rel__setting(struct rel_env *env, const char *name);

/* Is it shown to superusers only? */
bool rel__setting_is_private(const char *name);
bool rel__session_is_superuser(struct rel_env *env);

/* What several functions need. */
#define REL_RESULT_BYTES_MAX (1024u * 1024u)
bool rel__too_long(struct rel_env *env); /* 54000; returns false */
/* Bytes of the character at AT. */
static inline size_t rel__utf8_step(bytes t, size_t at)
{
    size_t n = 1;
    while (at + n < t.size && (t.data[at + n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* What several generators need. */
/* Databases of the snapshot, or the session's own without one. */
const struct rel_database *rel__database_list(struct rel_env *env, unsigned *count);
/* The function of schema metadb with this OID; NULL if there is none. */
const struct cl_function *rel__metadb_function(uint32_t oid);
/* Roles of the snapshot; without one, the owner of everything and the session's user. */
const struct rel_role *rel__role_list(struct rel_env *env, unsigned *count);
/* "pid, name" of the primary key. */
const char *rel__key_columns(struct arena *a, const struct kv_table_def *t);
const char *rel__index_definition(struct arena *a, const struct kv_table_def *t, bool with_schema);
/* Comment on a relation; NULL if it has none. */
const char *rel__comment(const struct rel *r);

#endif
