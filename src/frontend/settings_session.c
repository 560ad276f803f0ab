/*
 * frontend/settings_session.c — the table of settings, and the log that undoes changes.
 *
 * Vocabulary: the *start value* is what RESET goes back to; a *change* is one SET, kept until its
 * transaction ends; a *local* change is undone at COMMIT too.
 *
 * A value is kept in the form SHOW prints (settings_check.c).
 *
 * Invariants
 *   G1  value[i] and start[i] always hold a checked text, or NULL for the level below.
 *   G2  changes[] is in order of time; undoing from the end to a mark restores the values at that
 *       mark.
 *   G3  A bit of dirty is set when the value of a reported setting may differ from reported[].
 */
#include "frontend/settings_session.h"
#include "base/assert.h"
#include "frontend/pgwire.h"
#include "frontend/settings_internal.h"
#include "planner/timezone.h"
#include <stdlib.h>
#include <strings.h>

#define ISOLATION_CHOICES "|serializable|repeatable read|read committed|read uncommitted|"
#define MESSAGE_CHOICES "|debug5|debug4|debug3|debug2|debug1|log|notice|warning|error||debug|info|"

/* In order of names without regard to case: SHOW ALL prints them so. */
static const struct fe_setting table[] = {
    {"application_name", KIND_STRING, "", true, 0, 0, NULL, "Name of the client program."},
    {"array_nulls", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"backend_flush_after", KIND_INT, "0", false, 0, 256, NULL, "Accepted, without effect."},
    {"backslash_quote", KIND_ENUM, "safe_encoding", false, 0, 0, "|safe_encoding|on|off|",
     "Accepted, without effect."},
    {"bytea_output", KIND_ENUM, "hex", false, 0, 0, "|escape|hex|", "Text form of bytea."},
    {"check_function_bodies", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"client_connection_check_interval", KIND_TIME, "0", false, 0, 0, NULL,
     "Accepted, without effect."},
    {"client_encoding", KIND_ENCODING, "UTF8", true, 0, 0, NULL,
     "UTF8, or SQL_ASCII for bytes as they are."},
    {"client_min_messages", KIND_ENUM, "notice", false, 0, 0, MESSAGE_CHOICES,
     "Lowest level of messages that are sent."},
    {"cursor_tuple_fraction", KIND_REAL, "0.1", false, 0, 0, NULL, "Accepted, without effect."},
    {"DateStyle", KIND_DATESTYLE, "ISO, MDY", true, 0, 0, NULL, "Text form of dates and times."},
    {"deadlock_timeout", KIND_TIME, "1s", false, 0, 0, NULL, "Accepted, without effect."},
    {"default_table_access_method", KIND_STRING, "heap", false, 0, 0, NULL,
     "Accepted, without effect."},
    {"default_tablespace", KIND_STRING, "", false, 0, 0, NULL, "Accepted, without effect."},
    {"default_text_search_config", KIND_STRING, "pg_catalog.simple", false, 0, 0, NULL,
     "Accepted, without effect."},
    {"default_transaction_deferrable", KIND_BOOL, "off", false, 0, 0, NULL,
     "Accepted, without effect."},
    {"default_transaction_isolation", KIND_ENUM, "read committed", false, 0, 0, ISOLATION_CHOICES,
     "Isolation level of new transactions; every level gives a snapshot."},
    {"default_transaction_read_only", KIND_BOOL, "off", true, 0, 0, NULL,
     "New transactions may not write."},
    {"enable_hashjoin", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"enable_indexscan", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"enable_nestloop", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"enable_seqscan", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"escape_string_warning", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"extra_float_digits", KIND_INT, "1", false, -15, 3, NULL, "Accepted, without effect."},
    {"geqo", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"idle_in_transaction_session_timeout", KIND_TIME, "0", false, 0, 0, NULL,
     "Ends sessions that idle inside a transaction."},
    {"idle_session_timeout", KIND_TIME, "0", false, 0, 0, NULL,
     "Ends sessions that idle outside transactions."},
    {"in_hot_standby", KIND_FIXED, "off", true, 0, 0, NULL, "Always off."},
    {"integer_datetimes", KIND_FIXED, "on", true, 0, 0, NULL, "Times are integers in binary form."},
    {"IntervalStyle", KIND_ENUM, "postgres", true, 0, 0,
     "|postgres|postgres_verbose|sql_standard|iso_8601|",
     "Accepted; intervals are written in style postgres."},
    {"is_superuser", KIND_FIXED, "on", true, 0, 0, NULL, "Is the user a superuser?"},
    {"jit", KIND_BOOL, "off", false, 0, 0, NULL, "Accepted, without effect."},
    {"lc_collate", KIND_FIXED, "C", false, 0, 0, NULL, "Order of texts."},
    {"lc_ctype", KIND_FIXED, "C", false, 0, 0, NULL, "Classes of characters."},
    {"lc_messages", KIND_STRING, "C", false, 0, 0, NULL, "Language of messages."},
    {"lc_monetary", KIND_STRING, "C", false, 0, 0, NULL, "Accepted, without effect."},
    {"lc_numeric", KIND_STRING, "C", false, 0, 0, NULL, "Accepted, without effect."},
    {"lc_time", KIND_STRING, "C", false, 0, 0, NULL, "Accepted, without effect."},
    {"lock_timeout", KIND_TIME, "0", false, 0, 0, NULL, "Accepted, without effect."},
    {"log_statement", KIND_ENUM, "none", false, 0, 0, "|none|ddl|mod|all|",
     "Accepted, without effect."},
    /* The server's, from when the session begins. */
    {"max_connections", KIND_FIXED, "", false, 0, 0, NULL, "Connections that are let in."},
    {"max_identifier_length", KIND_FIXED, "63", false, 0, 0, NULL, "Bytes of a name that count."},
    {"max_index_keys", KIND_FIXED, "32", false, 0, 0, NULL, "Reported for tools."},
    {"password_encryption", KIND_ENUM, "scram-sha-256", false, 0, 0, "|md5|scram-sha-256|",
     "Accepted, without effect."},
    {"plan_cache_mode", KIND_ENUM, "auto", false, 0, 0,
     "|auto|force_generic_plan|force_custom_plan|", "Accepted, without effect."},
    {"quote_all_identifiers", KIND_BOOL, "off", false, 0, 0, NULL, "Accepted, without effect."},
    {"role", KIND_STRING, "none", false, 0, 0, NULL, "Accepted, without effect."},
    {"row_security", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"search_path", KIND_STRING, "\"$user\", public", false, 0, 0, NULL,
     "Accepted; tables are in public."},
    {"server_encoding", KIND_FIXED, "UTF8", true, 0, 0, NULL, "Encoding of texts."},
    {"server_version", KIND_FIXED, "15.0 (metadb " METADB_VERSION ")", true, 0, 0, NULL,
     "Version of PostgreSQL whose protocol and catalogues are spoken."},
    {"server_version_num", KIND_FIXED, "150000", false, 0, 0, NULL, "The same as a number."},
    {"session_authorization", KIND_FIXED, "", true, 0, 0, NULL, "Name of the session's user."},
    {"ssl", KIND_FIXED, "off", false, 0, 0, NULL, "Is TLS offered?"},
    {"standard_conforming_strings", KIND_BOOL, "on", true, 0, 0, NULL,
     "Backslashes in plain strings are just that; always on."},
    {"statement_timeout", KIND_TIME, "0", false, 0, 0, NULL,
     "Longest time of a statement, 0 = no limit."},
    {"synchronize_seqscans", KIND_BOOL, "on", false, 0, 0, NULL, "Accepted, without effect."},
    {"synchronous_commit", KIND_ENUM, "on", false, 0, 0, "|on|off|local|remote_write|remote_apply|",
     "Accepted; every commit is durable before it is answered."},
    {"TimeZone", KIND_TIMEZONE, "UTC", true, 0, 0, NULL, "Zone of times in text form."},
    {"transaction_deferrable", KIND_BOOL, "off", false, 0, 0, NULL, "Accepted, without effect."},
    {"transaction_isolation", KIND_ENUM, "read committed", false, 0, 0, ISOLATION_CHOICES,
     "Isolation level of this transaction."},
    {"transaction_read_only", KIND_BOOL, "off", false, 0, 0, NULL,
     "This transaction may not write."},
    {"vacuum_defer_cleanup_age", KIND_INT, "0", false, 0, 1000000, NULL,
     "Accepted, without effect."},
    {"work_mem", KIND_STRING, "4MB", false, 0, 0, NULL, "Accepted, without effect."},
    {"xmloption", KIND_ENUM, "content", false, 0, 0, "|content|document|",
     "Accepted, without effect."},
};
_Static_assert(ARRAY_LEN(table) <= FE_SETTINGS_MAX, "raise FE_SETTINGS_MAX");

struct fe_change {
    unsigned index;
    bool local;
    char *before, *after; /* of value[] */
};

static int find(const char *name)
{
    if (strcasecmp(name, "time zone") == 0)
        name = "TimeZone";
    else if (strcasecmp(name, "names") == 0)
        name = "client_encoding";
    for (unsigned i = 0; i < ARRAY_LEN(table); i++)
        if (strcasecmp(table[i].name, name) == 0)
            return (int)i;
    return -1;
}

static char *copy(const char *text)
{
    if (text == NULL)
        return NULL;
    size_t n = strlen(text) + 1;
    char *p = malloc(n);
    ASSERT(p != NULL);
    memcpy(p, text, n);
    return p;
}

static const char *current(const struct fe_settings *s, unsigned i)
{
    return s->value[i] != NULL ? s->value[i] : s->start[i] != NULL ? s->start[i] : table[i].def;
}

/* -- effects ----------------------------------------------------------------------------------- */

static bool is(const struct fe_settings *s, const char *name, const char *value)
{
    return strcmp(fe_settings_get(s, name), value) == 0;
}

static uint64_t time_us(const struct fe_settings *s, const char *name)
{
    long ms = fe__time_ms(fe_settings_get(s, name));
    return ms > 0 ? (uint64_t)ms * 1000u : 0;
}

/* Takes over what hot paths read. */
static void apply(struct fe_settings *s)
{
    const char *style = fe_settings_get(s, "DateStyle");
    const char *zone = fe_settings_get(s, "TimeZone");
    s->style.zone = pl_zone_find(bytes_str(zone));
    s->style.date_style = strncmp(style, "Postgres", 8) == 0 ? PL_DATE_POSTGRES
                          : strncmp(style, "SQL", 3) == 0    ? PL_DATE_SQL
                          : strncmp(style, "German", 6) == 0 ? PL_DATE_GERMAN
                                                             : PL_DATE_ISO;
    s->style.date_order = strstr(style, "DMY") != NULL   ? PL_DATE_DMY
                          : strstr(style, "YMD") != NULL ? PL_DATE_YMD
                                                         : PL_DATE_MDY;
    s->style.bytea_escape = is(s, "bytea_output", "escape");
    s->statement_timeout_us = time_us(s, "statement_timeout");
    s->idle_in_txn_timeout_us = time_us(s, "idle_in_transaction_session_timeout");
    s->idle_timeout_us = time_us(s, "idle_session_timeout");
    s->default_read_only = is(s, "default_transaction_read_only", "on");
    s->read_only = is(s, "transaction_read_only", "on");
    s->application_name = fe_settings_get(s, "application_name");
    s->sql_ascii = is(s, "client_encoding", "SQL_ASCII");
    s->no_warnings = is(s, "client_min_messages", "error");
    s->no_notices = s->no_warnings || is(s, "client_min_messages", "warning");
}

static void changed(struct fe_settings *s, unsigned i)
{
    if (table[i].report)
        s->dirty[i / 64] |= (uint64_t)1 << (i % 64);
    apply(s);
}

/* -- the interface ----------------------------------------------------------------------------- */

void fe_settings_init(struct fe_settings *s)
{
    *s = (struct fe_settings){0};
    apply(s);
}

static void drop_changes(struct fe_settings *s)
{
    for (unsigned i = 0; i < s->change_count; i++) {
        free(s->changes[i].before);
        free(s->changes[i].after);
    }
    s->change_count = 0;
}

void fe_settings_fini(struct fe_settings *s)
{
    drop_changes(s);
    free(s->changes);
    for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
        free(s->value[i]);
        free(s->start[i]);
        free(s->reported[i]);
    }
    *s = (struct fe_settings){0};
}

static status unknown(const char *name, struct err *err)
{
    return err_set_state(err, ST_NOT_FOUND, "42704", "unrecognized configuration parameter \"%s\"",
                         name);
}

status fe_settings_start(struct fe_settings *s, const char *name, const char *value,
                         struct err *err)
{
    int i = find(name);
    if (i < 0)
        return unknown(name, err);
    if (table[i].kind == KIND_FIXED)
        return err_set_state(err, ST_INVALID, "55P02", "parameter \"%s\" cannot be changed",
                             table[i].name);
    char out[FE_SETTING_SIZE];
    ST_TRY(fe__setting_check(s, &table[i], value, out, err));
    free(s->start[i]);
    s->start[i] = copy(out);
    changed(s, (unsigned)i);
    return ST_OK;
}

void fe_settings_fix(struct fe_settings *s, const char *name, const char *value)
{
    int i = find(name);
    ASSERT(i >= 0);
    free(s->start[i]);
    s->start[i] = copy(value);
    changed(s, (unsigned)i);
}

static void log_change(struct fe_settings *s, unsigned i, bool local, const char *after)
{
    if (s->change_count == s->change_capacity) {
        s->change_capacity = s->change_capacity == 0 ? 4 : s->change_capacity * 2;
        s->changes = realloc(s->changes, s->change_capacity * sizeof *s->changes);
        ASSERT(s->changes != NULL);
    }
    s->changes[s->change_count++] = (struct fe_change){
        .index = i, .local = local, .before = copy(s->value[i]), .after = copy(after)};
}

static void put(struct fe_settings *s, unsigned i, const char *value)
{
    char *fresh = copy(value);
    free(s->value[i]);
    s->value[i] = fresh;
    changed(s, i);
}

status fe_settings_set(struct fe_settings *s, const char *name, const char *value, bool local,
                       struct err *err)
{
    int i = find(name);
    if (i < 0)
        return unknown(name, err);
    bool default_only = table[i].kind == KIND_FIXED;
    if (default_only && (value == NULL || strcmp(value, current(s, (unsigned)i)) == 0))
        return ST_OK; /* SET SESSION AUTHORIZATION DEFAULT, and to what it is already */
    if (default_only)
        return err_set_state(err, ST_INVALID, "55P02", "parameter \"%s\" cannot be changed",
                             table[i].name);
    char out[FE_SETTING_SIZE];
    if (value != NULL)
        ST_TRY(fe__setting_check(s, &table[i], value, out, err));
    log_change(s, (unsigned)i, local, value != NULL ? out : NULL);
    put(s, (unsigned)i, value != NULL ? out : NULL);
    return ST_OK;
}

void fe_settings_reset_all(struct fe_settings *s)
{
    for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
        bool transactions = strncmp(table[i].name, "transaction_", 12) == 0;
        if (s->value[i] == NULL || transactions)
            continue;
        log_change(s, i, false, NULL);
        put(s, i, NULL);
    }
}

const char *fe_settings_get(const struct fe_settings *s, const char *name)
{
    int i = find(name);
    return i < 0 ? NULL : current(s, (unsigned)i);
}

const char *fe_settings_name(const char *name)
{
    int i = find(name);
    return i < 0 ? NULL : table[i].name;
}

const char *fe_settings_at(const struct fe_settings *s, unsigned i, const char **value,
                           const char **help)
{
    if (i >= ARRAY_LEN(table))
        return NULL;
    *value = current(s, i);
    *help = table[i].help;
    return table[i].name;
}

unsigned fe_settings_mark(const struct fe_settings *s)
{
    return s->change_count;
}

void fe_settings_rollback_to(struct fe_settings *s, unsigned mark)
{
    ASSERT(mark <= s->change_count);
    while (s->change_count > mark) {
        struct fe_change *c = &s->changes[--s->change_count];
        put(s, c->index, c->before);
        free(c->before);
        free(c->after);
    }
}

void fe_settings_commit(struct fe_settings *s)
{
    if (s->change_count == 0)
        return;
    bool any_local = false;
    for (unsigned k = 0; k < s->change_count; k++)
        any_local = any_local || s->changes[k].local;
    for (unsigned k = 0; any_local && k < s->change_count; k++) {
        unsigned i = s->changes[k].index;
        bool first = true;
        for (unsigned j = 0; j < k; j++)
            first = first && s->changes[j].index != i;
        if (!first)
            continue;
        /* What the session keeps: the last change that was not local, else the value before all. */
        const char *keep = s->changes[k].before;
        for (unsigned j = k; j < s->change_count; j++)
            if (s->changes[j].index == i && !s->changes[j].local)
                keep = s->changes[j].after;
        put(s, i, keep);
    }
    drop_changes(s);
}

void fe_settings_report(struct fe_settings *s, bool all, struct obuf *out)
{
    for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
        bool dirty = (s->dirty[i / 64] >> (i % 64) & 1) != 0;
        if (!table[i].report || !(all || dirty))
            continue;
        const char *now = current(s, i);
        const char *told = s->reported[i] != NULL ? s->reported[i] : "";
        if (all || strcmp(now, told) != 0) {
            fe_put_parameter(out, table[i].name, now);
            free(s->reported[i]);
            s->reported[i] = copy(now);
        }
    }
    s->dirty[0] = s->dirty[1] = 0;
}
