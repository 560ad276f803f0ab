/*
 * frontend/settings_session.h — a session's settings: SET, SHOW, RESET and what is reported.
 *
 * Every setting has its value when the session began (the built-in default, or what the start-up
 * packet said): RESET goes back there. A change is undone when its transaction rolls back, SET
 * LOCAL also when it commits. Owned by the session, its thread only.
 */
#ifndef FRONTEND_SETTINGS_SESSION_H
#define FRONTEND_SETTINGS_SESSION_H

#include "base/buf.h"
#include "base/err.h"
#include "planner/types.h"

#define FE_SETTINGS_MAX 96u

struct fe_change; /* one entry of the undo log */

struct fe_settings {
    char *value[FE_SETTINGS_MAX]; /* NULL = the start value */
    char *start[FE_SETTINGS_MAX]; /* NULL = the built-in default */
    char *reported[FE_SETTINGS_MAX];
    uint64_t dirty[2]; /* bits of reported settings that may have changed */
    struct fe_change *changes;
    unsigned change_count, change_capacity;
    /* what the hot paths need, parsed */
    struct pl_style style;
    uint64_t statement_timeout_us, idle_in_txn_timeout_us, idle_timeout_us;
    const char *application_name;
    bool default_read_only, read_only, sql_ascii;
    bool no_notices, no_warnings; /* client_min_messages */
};

void fe_settings_init(struct fe_settings *s);
void fe_settings_fini(struct fe_settings *s);

/* From the start-up packet. 42704 for an unknown name, 22023 for a bad value. */
NODISCARD status fe_settings_start(struct fe_settings *s, const char *name, const char *value,
                                   struct err *err);
/* Fixes a value that clients cannot set (session_authorization, is_superuser). */
void fe_settings_fix(struct fe_settings *s, const char *name, const char *value);
/* VALUE NULL = the start value. 42704, 22023, 55P02 (cannot be changed). */
NODISCARD status fe_settings_set(struct fe_settings *s, const char *name, const char *value,
                                 bool local, struct err *err);
void fe_settings_reset_all(struct fe_settings *s);
/* NULL if there is no such setting. */
const char *fe_settings_get(const struct fe_settings *s, const char *name);
/* The setting's name as PostgreSQL writes it; NULL if there is none. */
const char *fe_settings_name(const char *name);
/* For SHOW ALL, in order of names. NULL past the end. */
const char *fe_settings_at(const struct fe_settings *s, unsigned i, const char **value,
                           const char **help);

/* The log of changes, for savepoints and the end of a transaction. */
unsigned fe_settings_mark(const struct fe_settings *s);
void fe_settings_rollback_to(struct fe_settings *s, unsigned mark);
void fe_settings_commit(struct fe_settings *s);

/* ParameterStatus for what differs from what the client was told last; all of them the first
 * time. */
void fe_settings_report(struct fe_settings *s, bool all, struct obuf *out);

#endif
