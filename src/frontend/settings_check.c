/*
 * frontend/settings_check.c — from what was said to what is kept: "TRUE" → "on", "iso, dmy" → "ISO,
 * DMY", or refused.
 */
#include "base/assert.h"
#include "frontend/settings_internal.h"
#include "planner/timezone.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* "|a|b||c|" as "Available values: a, b."; c is taken, too. */
static void hint_choices(const char *choices, struct err *err)
{
    char list[200];
    size_t n = 0;
    for (const char *p = choices; p[1] != '\0' && p[1] != '|'; p = strchr(p + 1, '|')) {
        size_t word = strcspn(p + 1, "|");
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%.*s", n > 0 ? ", " : "", (int)word,
                              p + 1);
        ASSERT(n < sizeof list);
    }
    err_hint(err, "Available values: %s.", list);
}

static bool datestyle_word(const char *p, size_t n, const char **style, const char **order);

static void unknown_word(const char *value, struct err *err)
{
    const char *style, *order;
    for (const char *p = value; *p != '\0';) {
        size_t n = strcspn(p, ", \t");
        if (n > 0 && !datestyle_word(p, n, &style, &order)) {
            err_detail(err, "Unrecognized key word: \"%.*s\".", (int)n, p);
            return;
        }
        p += n;
        p += strspn(p, ", \t");
    }
}

static status bad_value(const struct fe_setting *g, const char *value, struct err *err)
{
    if (g->kind == KIND_BOOL)
        return err_set(err, ST_INVALID, "parameter \"%s\" requires a Boolean value", g->name);
    err_set(err, ST_INVALID, "invalid value for parameter \"%s\": \"%s\"", g->name, value);
    if (g->kind == KIND_ENUM)
        hint_choices(g->choices, err);
    if (g->kind == KIND_DATESTYLE)
        unknown_word(value, err);
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
        snprintf(out, FE_SETTING_SIZE, "%s", words[i].on ? "on" : "off");
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

long fe__time_ms(const char *value)
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
        snprintf(out, FE_SETTING_SIZE, "0");
    else if (ms % 86400000 == 0)
        snprintf(out, FE_SETTING_SIZE, "%ldd", ms / 86400000);
    else if (ms % 3600000 == 0)
        snprintf(out, FE_SETTING_SIZE, "%ldh", ms / 3600000);
    else if (ms % 60000 == 0)
        snprintf(out, FE_SETTING_SIZE, "%ldmin", ms / 60000);
    else if (ms % 1000 == 0)
        snprintf(out, FE_SETTING_SIZE, "%lds", ms / 1000);
    else
        snprintf(out, FE_SETTING_SIZE, "%ldms", ms);
}

static NODISCARD bool check_enum(const struct fe_setting *g, const char *value, char *out)
{
    for (const char *p = g->choices; p[1] != '\0';) {
        const char *end = strchr(p + 1, '|');
        size_t n = (size_t)(end - p - 1);
        if (strlen(value) == n && strncasecmp(value, p + 1, n) == 0) {
            snprintf(out, FE_SETTING_SIZE, "%.*s", (int)n, p + 1);
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
        snprintf(out, FE_SETTING_SIZE, "UTF8");
    else if (strcasecmp(plain, "sqlascii") == 0)
        snprintf(out, FE_SETTING_SIZE, "SQL_ASCII");
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
    snprintf(out, FE_SETTING_SIZE, "%s, %s", style != NULL ? style : old_style, order);
    return true;
}

static NODISCARD bool check_timezone(const char *value, char *out)
{
    size_t n = strlen(value);
    /* SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE arrives as its quoted text, or plain. */
    if (n >= FE_SETTING_SIZE)
        return false;
    if (pl_zone_find(bytes_make(value, n)) == NULL)
        return false;
    snprintf(out, FE_SETTING_SIZE, "%s", pl_zone_name(pl_zone_find(bytes_make(value, n))));
    return true;
}

static NODISCARD bool check_number(const struct fe_setting *g, const char *value, char *out,
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
    snprintf(out, FE_SETTING_SIZE, "%ld", n);
    return true;
}

static NODISCARD bool check_real(const char *value, char *out)
{
    char *end;
    double d = strtod(value, &end);
    if (end == value || *end != '\0')
        return false;
    snprintf(out, FE_SETTING_SIZE, "%g", d);
    return true;
}

static NODISCARD bool check_string(const struct fe_setting *g, const char *value, char *out)
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
    if (n >= FE_SETTING_SIZE)
        return false;
    memcpy(out, value, n + 1);
    return true;
}

status fe__setting_check(const struct fe_settings *s, const struct fe_setting *g, const char *value,
                         char *out, struct err *err)
{
    bool good = false;
    err_clear(err);
    switch (g->kind) {
    case KIND_STRING: good = check_string(g, value, out); break;
    case KIND_BOOL: good = check_bool(value, out); break;
    case KIND_INT: good = check_number(g, value, out, err); break;
    case KIND_REAL: good = check_real(value, out); break;
    case KIND_ENUM: good = check_enum(g, value, out); break;
    case KIND_ENCODING: good = check_encoding(value, out); break;
    case KIND_DATESTYLE: good = check_datestyle(fe_settings_get(s, g->name), value, out); break;
    case KIND_TIMEZONE: good = check_timezone(value, out); break;
    case KIND_TIME: {
        long ms = fe__time_ms(value);
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
