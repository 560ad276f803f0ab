/*
 * frontend/settings_session.c — the table of settings, their checks, and the log that undoes them.
 *
 * Vocabulary: the *start value* is what RESET goes back to; a *change* is one SET, kept until its
 * transaction ends; a *local* change is undone at COMMIT too.
 *
 * A value is kept in the form SHOW prints. The check of a setting turns what was said into that
 * form ("TRUE" → "on", "iso, dmy" → "ISO, DMY") or refuses it.
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
#include "planner/timezone.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum kind {
    KIND_STRING,
    KIND_BOOL,
    KIND_INT,  /* bounds below */
    KIND_TIME, /* milliseconds, with a unit if wanted */
    KIND_REAL,
    KIND_ENUM, /* choices below */
    KIND_ENCODING,
    KIND_DATESTYLE,
    KIND_TIMEZONE,
    KIND_FIXED, /* known, cannot be changed */
};

struct setting {
    const char *name;
    enum kind kind;
    const char *def;
    bool report;
    int min, max;
    const char *choices; /* "|a|b|" */
    const char *help;
};

#define ISOLATION_CHOICES "|serializable|repeatable read|read committed|read uncommitted|"
#define MESSAGE_CHOICES "|debug5|debug4|debug3|debug2|debug1|debug|log|info|notice|warning|error|"

/* In order of names without regard to case: SHOW ALL prints them so. */
static const struct setting table[] = {
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

/* -- checks: what was said → what is kept, in OUT of OUT_SIZE bytes ---------------------------- */

#define OUT_SIZE 1024u

/* "|a|b|" as "Available values: a, b." */
static void hint_choices(const char *choices, struct err *err)
{
    char list[200];
    size_t n = 0;
    for (const char *p = choices; p[1] != '\0'; p = strchr(p + 1, '|')) {
        size_t word = strcspn(p + 1, "|");
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%.*s", n > 0 ? ", " : "", (int)word,
                              p + 1);
        ASSERT(n < sizeof list);
    }
    err_hint(err, "Available values: %s.", list);
}

static status bad_value(const struct setting *g, const char *value, struct err *err)
{
    if (g->kind == KIND_BOOL)
        return err_set(err, ST_INVALID, "parameter \"%s\" requires a Boolean value", g->name);
    err_set(err, ST_INVALID, "invalid value for parameter \"%s\": \"%s\"", g->name, value);
    if (g->kind == KIND_ENUM)
        hint_choices(g->choices, err);
    if (g->kind == KIND_TIME && strspn(value, "0123456789 ") > 0)
        err_hint(err, "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", "
                      "and \"d\".");
    return ST_INVALID;
}

static NODISCARD bool check_bool(const char *value, char *out)
{
    static const struct {
        const char *word;
        size_t least; /* letters that make it unmistakable */
        bool on;
    } words[] = {{"true", 1, true}, {"false", 1, false}, {"yes", 1, true}, {"no", 1, false},
                 {"on", 2, true},   {"off", 2, false},   {"1", 1, true},   {"0", 1, false}};
    size_t n = strlen(value);
    for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
        if (n < words[i].least || n > strlen(words[i].word) ||
            strncasecmp(value, words[i].word, n) != 0)
            continue;
        snprintf(out, OUT_SIZE, "%s", words[i].on ? "on" : "off");
        return true;
    }
    return false;
}

static bool parse_long(const char *value, long *number, const char **end)
{
    errno = 0;
    char *stop;
    *number = strtol(value, &stop, 10);
    *end = stop;
    return errno == 0 && stop != value;
}

/* Milliseconds of "250", "5s", "2 min"; -1 if it is none. */
static long parse_time_ms(const char *value)
{
    static const struct {
        const char *unit;
        long ms;
    } units[] = {{"", 1}, {"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}};
    long n;
    const char *end;
    if (!parse_long(value, &n, &end) || n < 0)
        return -1;
    while (*end == ' ')
        end++;
    for (unsigned i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(end, units[i].unit) == 0)
            return n <= 2147483647L / units[i].ms ? n * units[i].ms : -1;
    return -1;
}

static void print_time(long ms, char *out)
{
    if (ms == 0)
        snprintf(out, OUT_SIZE, "0");
    else if (ms % 86400000 == 0)
        snprintf(out, OUT_SIZE, "%ldd", ms / 86400000);
    else if (ms % 3600000 == 0)
        snprintf(out, OUT_SIZE, "%ldh", ms / 3600000);
    else if (ms % 60000 == 0)
        snprintf(out, OUT_SIZE, "%ldmin", ms / 60000);
    else if (ms % 1000 == 0)
        snprintf(out, OUT_SIZE, "%lds", ms / 1000);
    else
        snprintf(out, OUT_SIZE, "%ldms", ms);
}

static NODISCARD bool check_enum(const struct setting *g, const char *value, char *out)
{
    for (const char *p = g->choices; p[1] != '\0';) {
        const char *end = strchr(p + 1, '|');
        size_t n = (size_t)(end - p - 1);
        if (strlen(value) == n && strncasecmp(value, p + 1, n) == 0) {
            snprintf(out, OUT_SIZE, "%.*s", (int)n, p + 1);
            return true;
        }
        p = end;
    }
    return false;
}

/* Encoding names compare without case and punctuation: 'utf-8', UTF8, utf8. */
static NODISCARD bool check_encoding(const char *value, char *out)
{
    char plain[32];
    size_t n = 0;
    for (const char *p = value; *p != '\0'; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (!letter && !(*p >= '0' && *p <= '9'))
            continue;
        if (n + 1 >= sizeof plain)
            return false;
        plain[n++] = *p;
    }
    plain[n] = '\0';
    if (strcasecmp(plain, "utf8") == 0 || strcasecmp(plain, "unicode") == 0)
        snprintf(out, OUT_SIZE, "UTF8");
    else if (strcasecmp(plain, "sqlascii") == 0)
        snprintf(out, OUT_SIZE, "SQL_ASCII");
    else
        return false;
    return true;
}

static bool datestyle_word(const char *p, size_t n, const char **style, const char **order)
{
    static const struct {
        const char *word, *style, *order;
    } words[] = {{"iso", "ISO", NULL},       {"postgres", "Postgres", NULL}, {"sql", "SQL", NULL},
                 {"german", "German", NULL}, {"mdy", NULL, "MDY"},           {"us", NULL, "MDY"},
                 {"noneuro", NULL, "MDY"},   {"noneuropean", NULL, "MDY"},   {"dmy", NULL, "DMY"},
                 {"euro", NULL, "DMY"},      {"european", NULL, "DMY"},      {"ymd", NULL, "YMD"},
                 {"default", NULL, NULL}};
    for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
        if (strlen(words[i].word) != n || strncasecmp(words[i].word, p, n) != 0)
            continue;
        if (words[i].style != NULL)
            *style = words[i].style;
        if (words[i].order != NULL)
            *order = words[i].order;
        return true;
    }
    return false;
}

/* A list of a style and an order, either may be missing. */
static NODISCARD bool check_datestyle(const char *before, const char *value, char *out)
{
    const char *style = NULL, *order = NULL;
    for (const char *p = value; *p != '\0';) {
        size_t n = strcspn(p, ", \t");
        if (n > 0 && !datestyle_word(p, n, &style, &order))
            return false;
        p += n;
        p += strspn(p, ", \t");
    }
    const char *comma = strchr(before, ',');
    ASSERT(comma != NULL);
    char old_style[16];
    snprintf(old_style, sizeof old_style, "%.*s", (int)(comma - before), before);
    if (order == NULL)
        order = style != NULL && strcmp(style, "German") == 0 ? "DMY" : comma + 2;
    snprintf(out, OUT_SIZE, "%s, %s", style != NULL ? style : old_style, order);
    return true;
}

static NODISCARD bool check_timezone(const char *value, char *out)
{
    size_t n = strlen(value);
    /* SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE arrives as its quoted text, or plain. */
    if (n >= OUT_SIZE)
        return false;
    if (pl_zone_find(bytes_make(value, n)) == NULL)
        return false;
    snprintf(out, OUT_SIZE, "%s", pl_zone_name(pl_zone_find(bytes_make(value, n))));
    return true;
}

static NODISCARD bool check_number(const struct setting *g, const char *value, char *out,
                                   struct err *err)
{
    long n;
    const char *end;
    if (!parse_long(value, &n, &end) || *end != '\0')
        return false;
    if (n < g->min || n > g->max) {
        err_set(err, ST_INVALID, "%ld is outside the valid range for parameter \"%s\" (%d .. %d)",
                n, g->name, g->min, g->max);
        return false;
    }
    snprintf(out, OUT_SIZE, "%ld", n);
    return true;
}

static NODISCARD bool check_real(const char *value, char *out)
{
    char *end;
    double d = strtod(value, &end);
    if (end == value || *end != '\0')
        return false;
    snprintf(out, OUT_SIZE, "%g", d);
    return true;
}

static NODISCARD bool check_string(const struct setting *g, const char *value, char *out)
{
    size_t n = strlen(value);
    if (strcmp(g->name, "application_name") == 0) {
        /* Shown in logs and views: cut as PostgreSQL does, and plain characters only. */
        if (n > LIMIT_IDENTIFIER_BYTES)
            n = LIMIT_IDENTIFIER_BYTES;
        for (size_t i = 0; i < n; i++)
            out[i] = value[i] >= 32 && value[i] < 127 ? value[i] : '?';
        out[n] = '\0';
        return true;
    }
    if (n >= OUT_SIZE)
        return false;
    memcpy(out, value, n + 1);
    return true;
}

static NODISCARD status check(const struct fe_settings *s, unsigned i, const char *value, char *out,
                              struct err *err)
{
    const struct setting *g = &table[i];
    bool good = false;
    err_clear(err);
    switch (g->kind) {
    case KIND_STRING: good = check_string(g, value, out); break;
    case KIND_BOOL: good = check_bool(value, out); break;
    case KIND_INT: good = check_number(g, value, out, err); break;
    case KIND_REAL: good = check_real(value, out); break;
    case KIND_ENUM: good = check_enum(g, value, out); break;
    case KIND_ENCODING: good = check_encoding(value, out); break;
    case KIND_DATESTYLE: good = check_datestyle(current(s, i), value, out); break;
    case KIND_TIMEZONE: good = check_timezone(value, out); break;
    case KIND_TIME: {
        long ms = parse_time_ms(value);
        good = ms >= 0;
        if (good)
            print_time(ms, out);
        break;
    }
    case KIND_FIXED: break;
    }
    if (good && strcmp(g->name, "standard_conforming_strings") == 0 && strcmp(out, "on") != 0)
        return err_set_state(err, ST_UNSUPPORTED, "22023",
                             "parameter \"standard_conforming_strings\" can only be on");
    if (good && strcmp(g->name, "role") == 0 && strcmp(out, "none") != 0 &&
        strcmp(out, fe_settings_get(s, "session_authorization")) != 0)
        return err_set_state(err, ST_INVALID, "22023", "role \"%s\" does not exist", out);
    if (!good && err != NULL && err->code != ST_OK)
        return err->code;
    return good ? ST_OK : bad_value(g, value, err);
}

/* -- effects ----------------------------------------------------------------------------------- */

static bool is(const struct fe_settings *s, const char *name, const char *value)
{
    return strcmp(fe_settings_get(s, name), value) == 0;
}

static uint64_t time_us(const struct fe_settings *s, const char *name)
{
    long ms = parse_time_ms(fe_settings_get(s, name));
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
    s->quiet = is(s, "client_min_messages", "error");
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
    char out[OUT_SIZE];
    ST_TRY(check(s, (unsigned)i, value, out, err));
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
    char out[OUT_SIZE];
    if (value != NULL)
        ST_TRY(check(s, (unsigned)i, value, out, err));
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
