/*
 * planner/type_time.c — dates, times and intervals as text.
 *
 * A moment is microseconds since 2000-01-01 00:00 UTC; a date is days since then. Input takes the
 * forms that drivers and people write: ISO 8601 with T or a blank, PostgreSQL's own four output
 * styles, month names, 8-digit dates, zones as offset, abbreviation or IANA name, and the words
 * now, today, tomorrow, yesterday, epoch, infinity. Numbers parted by slashes are month/day/year,
 * parted by dots the same, or day first where the style is German.
 *
 * The reader goes through the text once and fills `struct parts`; a part that comes twice is an
 * error.
 */
#include "base/assert.h"
#include "base/decimal.h"
#include "planner/calendar.h"
#include "planner/pl_internal.h"
#include "planner/timezone.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define US INT64_C(1000000)
#define DAY_US (INT64_C(86400) * US)
#define FIRST_DAY (-2451545) /* 4714-11-24 BC, Julian day 0 */
#define EPOCH_DAYS 10957     /* 2000-01-01 in days since 1970 */

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                     "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekdays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

static const struct {
    const char *name;
    int minutes_east;
} abbreviations[] = {
    {"z", 0},       {"utc", 0},    {"gmt", 0},    {"ut", 0},     {"zulu", 0},   {"wet", 0},
    {"west", 60},   {"bst", 60},   {"cet", 60},   {"cest", 120}, {"eet", 120},  {"eest", 180},
    {"msk", 180},   {"jst", 540},  {"kst", 540},  {"est", -300}, {"edt", -240}, {"cst", -360},
    {"cdt", -300},  {"mst", -420}, {"mdt", -360}, {"pst", -480}, {"pdt", -420}, {"akst", -540},
    {"akdt", -480}, {"hst", -600}, {"aest", 600}, {"aedt", 660}, {"nzst", 720}, {"nzdt", 780},
};

struct parts {
    bool has_date, has_time, has_zone, has_month_name, bc, dmy, ymd, julian_day;
    int64_t year;
    int month, day;
    int64_t time_us;
    int ampm; /* 0, 1 am, 2 pm */
    const struct pl_zone *zone;
    int32_t seconds_east;
    bytes zone_name;                         /* of BAD_ZONE */
    int numbers[3], number_count, digits[3]; /* loose numbers beside a month name */
};

enum outcome { GOOD, BAD_SYNTAX, BAD_FIELD, BAD_ZONE, BAD_OFFSET, BAD_MONTH_DAY };

struct reading {
    const char *p, *end;
    struct parts *t;
};

static int64_t digits(struct reading *r, int *count)
{
    int64_t v = 0;
    *count = 0;
    while (r->p < r->end && isdigit((unsigned char)*r->p)) {
        if (*count < 15)
            v = v * 10 + (*r->p - '0');
        r->p++;
        (*count)++;
    }
    return v;
}

static int month_of(const char *p, size_t n)
{
    static const char *const full[] = {"january",   "february", "march",    "april",
                                       "may",       "june",     "july",     "august",
                                       "september", "october",  "november", "december"};
    for (int i = 0; i < 12; i++) {
        if ((n == 3 && strncasecmp(p, months[i], 3) == 0) ||
            (n == strlen(full[i]) && strncasecmp(p, full[i], n) == 0))
            return i + 1;
    }
    return n == 4 && strncasecmp(p, "sept", 4) == 0 ? 9 : 0;
}

/* :MM[:SS[.fraction]] behind HOURS. */
static enum outcome read_time(struct reading *r, int64_t hours)
{
    int n;
    if (r->t->has_time)
        return BAD_SYNTAX;
    r->p++;
    int64_t minutes = digits(r, &n), seconds = 0, us = 0;
    if (n == 0)
        return BAD_SYNTAX;
    if (r->p < r->end && *r->p == ':') {
        r->p++;
        seconds = digits(r, &n);
        if (n == 0)
            return BAD_SYNTAX;
    }
    if (r->p < r->end && *r->p == '.') {
        r->p++;
        int64_t scale = US;
        int64_t next = -1;
        while (r->p < r->end && isdigit((unsigned char)*r->p)) {
            if (scale > 1) {
                scale /= 10;
                us += (*r->p - '0') * scale;
            } else if (next < 0) {
                next = *r->p - '0';
            }
            r->p++;
        }
        us += next >= 5;
    }
    if (hours > 24 || minutes > 59 || seconds > 60 ||
        (hours == 24 && (minutes > 0 || seconds > 0 || us > 0)))
        return BAD_FIELD;
    r->t->has_time = true;
    r->t->time_us = ((hours * 60 + minutes) * 60 + seconds) * US + us;
    return GOOD;
}

/* A two-digit year means 1970 to 2069. */
static int64_t full_year(int64_t year, int digit_count)
{
    return digit_count > 2 ? year : year < 70 ? 2000 + year : 1900 + year;
}

/* A separator and two more parts behind FIRST, which had N digits. */
static enum outcome read_date(struct reading *r, int64_t first, int n)
{
    struct parts *t = r->t;
    char separator = *r->p++;
    int64_t part[3] = {first, 0, 0};
    int count[3] = {n, 0, 0};
    bool named = false;
    if (t->has_date)
        return BAD_SYNTAX;
    for (int i = 1; i < 3; i++) {
        const char *start = r->p;
        if (r->p < r->end && isalpha((unsigned char)*r->p)) {
            while (r->p < r->end && isalpha((unsigned char)*r->p))
                r->p++;
            part[i] = month_of(start, (size_t)(r->p - start));
            if (part[i] == 0 || i != 1)
                return BAD_SYNTAX;
            named = true;
        } else {
            part[i] = digits(r, &count[i]);
            if (count[i] == 0)
                return BAD_SYNTAX;
        }
        if (i == 1) {
            if (r->p == r->end || *r->p != separator) {
                if (separator == '-' && count[1] == 3 && !named) { /* year-day */
                    t->has_date = true;
                    t->year = part[0];
                    t->julian_day = true;
                    t->day = (int)part[1];
                    return GOOD;
                }
                return BAD_SYNTAX;
            }
            r->p++;
        }
    }
    t->has_date = true;
    bool year_first = count[0] > 2 || (t->ymd && !named && count[0] == 2 && count[2] <= 2);
    if (year_first) {
        t->year = full_year(part[0], count[0]);
        t->month = (int)part[1];
        t->day = (int)part[2];
        return part[1] > 12 || part[2] > 31 ? BAD_MONTH_DAY : GOOD;
    }
    bool day_first = named || t->dmy;
    t->year = full_year(part[2], count[2]);
    t->month = (int)(day_first ? part[1] : part[0]);
    t->day = (int)(day_first ? part[0] : part[1]);
    return part[0] > 99 || part[1] > 99 || t->month > 12 ? BAD_MONTH_DAY : GOOD;
}

/* [+-]HH[:MM[:SS]] or [+-]HHMM */
static enum outcome read_offset(struct reading *r)
{
    int sign = *r->p++ == '-' ? -1 : 1, n;
    int64_t h = digits(r, &n), m = 0, s = 0;
    if (n == 0 || r->t->has_zone)
        return BAD_SYNTAX;
    if (n == 4 || n == 3) {
        m = h % 100;
        h /= 100;
    } else if (n > 4) {
        return BAD_FIELD;
    }
    if (r->p < r->end && *r->p == ':') {
        r->p++;
        m = digits(r, &n);
        if (r->p < r->end && *r->p == ':') {
            r->p++;
            s = digits(r, &n);
        }
    }
    if (h > 15 || m > 59 || s > 59)
        return BAD_OFFSET;
    r->t->has_zone = true;
    r->t->seconds_east = sign * (int32_t)(h * 3600 + m * 60 + s);
    return GOOD;
}

static enum outcome read_zone_name(struct reading *r, const char *start, size_t n,
                                   const struct pl_style *style)
{
    struct parts *t = r->t;
    if (t->has_zone)
        return BAD_SYNTAX;
    t->has_zone = true;
    if (pl_zone_abbreviation(style == NULL ? NULL : style->zone, bytes_make(start, n),
                             &t->seconds_east))
        return GOOD;
    for (size_t i = 0; i < ARRAY_LEN(abbreviations); i++) {
        if (strlen(abbreviations[i].name) == n &&
            strncasecmp(start, abbreviations[i].name, n) == 0) {
            t->seconds_east = abbreviations[i].minutes_east * 60;
            return GOOD;
        }
    }
    t->zone = memchr(start, '/', n) != NULL || n > 3 ? pl_zone_find(bytes_make(start, n)) : NULL;
    if (t->zone != NULL)
        return GOOD;
    t->zone_name = bytes_make(start, n);
    return memchr(start, '/', n) != NULL ? BAD_ZONE : BAD_SYNTAX;
}

static enum outcome read_word(struct reading *r, const struct pl_style *style)
{
    struct parts *t = r->t;
    const char *start = r->p;
    if ((*r->p == 'T' || *r->p == 't') && r->p + 1 < r->end && isdigit((unsigned char)r->p[1]) &&
        (t->has_date || t->number_count > 0)) {
        r->p++;
        return GOOD;
    }
    while (r->p < r->end && isalpha((unsigned char)*r->p))
        r->p++;
    size_t n = (size_t)(r->p - start);
    int month = month_of(start, n);
    if (month > 0) {
        if (t->has_month_name || t->has_date)
            return BAD_SYNTAX;
        t->has_month_name = true;
        t->month = month;
        return GOOD;
    }
    for (int i = 0; i < 7; i++) {
        if (n >= 3 && strncasecmp(start, weekdays[i], 3) == 0 &&
            (n == 3 || strncasecmp(start + n - 3, "day", 3) == 0))
            return GOOD;
    }
    if (n == 2 && (strncasecmp(start, "am", 2) == 0 || strncasecmp(start, "pm", 2) == 0)) {
        t->ampm = tolower((unsigned char)*start) == 'a' ? 1 : 2;
        return t->has_time ? GOOD : BAD_SYNTAX;
    }
    if (n == 2 && (strncasecmp(start, "bc", 2) == 0 || strncasecmp(start, "ad", 2) == 0)) {
        t->bc = tolower((unsigned char)*start) == 'b';
        return GOOD;
    }
    while (r->p < r->end && (isalnum((unsigned char)*r->p) || strchr("/_+-", *r->p) != NULL))
        r->p++;
    return read_zone_name(r, start, (size_t)(r->p - start), style);
}

static enum outcome read_number(struct reading *r)
{
    struct parts *t = r->t;
    int n;
    int64_t v = digits(r, &n);
    char next = r->p < r->end ? *r->p : ' ';
    if (next == ':')
        return read_time(r, v);
    if ((next == '-' || next == '/' || next == '.') && !t->has_date && !t->has_month_name && n <= 7)
        return read_date(r, v, n);
    if (n == 8 && !t->has_date && !t->has_month_name) {
        t->has_date = true;
        t->year = v / 10000;
        t->month = (int)(v / 100 % 100);
        t->day = (int)(v % 100);
        return t->month > 12 || t->day > 31 ? BAD_FIELD : GOOD;
    }
    if (n == 6 && t->has_date && !t->has_time) {
        t->has_time = true;
        t->time_us = ((v / 10000 * 60 + v / 100 % 100) * 60 + v % 100) * US;
        return v / 10000 > 24 || v / 100 % 100 > 59 || v % 100 > 60 ? BAD_FIELD : GOOD;
    }
    if (t->number_count == 2)
        return BAD_SYNTAX;
    t->numbers[t->number_count] = (int)v;
    t->digits[t->number_count++] = n;
    return n > 7 ? BAD_FIELD : GOOD;
}

/* A month by name with a day and a year beside it. */
static enum outcome join_named(struct parts *t)
{
    if (!t->has_month_name)
        return t->number_count == 0 ? GOOD : BAD_SYNTAX;
    if (t->number_count != 2)
        return BAD_SYNTAX;
    bool year_first = t->digits[0] > 2;
    t->day = t->numbers[year_first];
    t->year = full_year(t->numbers[!year_first], t->digits[!year_first]);
    t->has_date = true;
    return GOOD;
}

static enum outcome check_date(struct parts *t)
{
    if (!t->has_date)
        return BAD_SYNTAX;
    if (t->bc) {
        if (t->year <= 0)
            return BAD_FIELD;
        t->year = 1 - t->year;
    } else if (t->year == 0) {
        return BAD_FIELD;
    }
    if (t->julian_day) {
        int days = 365 + calendar_leap(t->year);
        return t->day < 1 || t->day > days ? BAD_FIELD : GOOD;
    }
    if (t->month < 1 || t->month > 12 || t->day < 1 ||
        t->day > calendar_month_days(t->year, t->month))
        return BAD_FIELD;
    if (t->ampm != 0) {
        int64_t hour = t->time_us / (3600 * US);
        if (hour > 12)
            return BAD_FIELD;
        if (t->ampm == 2 && hour < 12)
            t->time_us += 12 * 3600 * US;
        else if (t->ampm == 1 && hour == 12)
            t->time_us -= 12 * 3600 * US;
    }
    return GOOD;
}

static enum outcome read_parts(const char *p, const char *end, const struct pl_style *style,
                               struct parts *t)
{
    struct reading r = {.p = p, .end = end, .t = t};
    while (r.p < r.end) {
        enum outcome o;
        if (isspace((unsigned char)*r.p) || *r.p == ',') {
            r.p++;
            continue;
        }
        if (isdigit((unsigned char)*r.p))
            o = read_number(&r);
        else if (*r.p == '+' || *r.p == '-')
            o = t->has_time || t->has_date ? read_offset(&r) : BAD_SYNTAX;
        else if (isalpha((unsigned char)*r.p))
            o = read_word(&r, style);
        else
            o = BAD_SYNTAX;
        if (o != GOOD)
            return o;
    }
    enum outcome o = join_named(t);
    return o == GOOD ? check_date(t) : o;
}

static bool is_word(bytes t, const char *word)
{
    return t.size == strlen(word) && strncasecmp((const char *)t.data, word, t.size) == 0;
}

int64_t pl__time_to_local(int64_t moment, const struct pl_style *style)
{
    if (moment == PL_TIME_INFINITY || moment == PL_TIME_MINUS_INFINITY)
        return moment;
    int64_t seconds = (moment - (moment < 0 ? US - 1 : 0)) / US + EPOCH_DAYS * INT64_C(86400);
    return moment + pl_zone_at(style == NULL ? NULL : style->zone, seconds).seconds_east * US;
}

int64_t pl__time_from_local(int64_t local, const struct pl_style *style)
{
    if (local == PL_TIME_INFINITY || local == PL_TIME_MINUS_INFINITY)
        return local;
    int64_t seconds = (local - (local < 0 ? US - 1 : 0)) / US + EPOCH_DAYS * INT64_C(86400);
    return local - pl_zone_at_local(style == NULL ? NULL : style->zone, seconds).seconds_east * US;
}

static int64_t floor_day(int64_t us)
{
    return (us - (us < 0 ? DAY_US - 1 : 0)) / DAY_US;
}

/* now, today, infinity and their like; false if T is none of them. *OUT as timestamp in local time,
 * or for timestamptz as a moment. */
static bool special(uint32_t oid, bytes t, const struct pl_style *style, int64_t now, int64_t *out)
{
    int64_t local = pl__time_to_local(now, style);
    if (is_word(t, "infinity") || is_word(t, "+infinity"))
        *out = oid == OID_DATE ? INT32_MAX : PL_TIME_INFINITY;
    else if (is_word(t, "-infinity"))
        *out = oid == OID_DATE ? INT32_MIN : PL_TIME_MINUS_INFINITY;
    else if (is_word(t, "now"))
        *out = oid == OID_DATE ? floor_day(local) : oid == OID_TIMESTAMP ? local : now;
    else if (is_word(t, "epoch"))
        *out = oid == OID_DATE ? -EPOCH_DAYS : -EPOCH_DAYS * DAY_US;
    else if (is_word(t, "today") || is_word(t, "tomorrow") || is_word(t, "yesterday")) {
        int64_t day = floor_day(local) + (is_word(t, "tomorrow")    ? 1
                                          : is_word(t, "yesterday") ? -1
                                                                    : 0);
        *out = oid == OID_DATE        ? day
               : oid == OID_TIMESTAMP ? day * DAY_US
                                      : pl__time_from_local(day * DAY_US, style);
    } else {
        return false;
    }
    return true;
}

/* PostgreSQL says the name in lower case. */
static status unknown_zone(bytes zone, struct err *err)
{
    char name[64];
    size_t n = zone.size < sizeof(name) - 1 ? zone.size : sizeof(name) - 1;
    for (size_t i = 0; i < n; i++)
        name[i] = (char)tolower(zone.data[i]);
    name[n] = '\0';
    return err_set_state(err, ST_INVALID, "22023", "time zone \"%s\" not recognized", name);
}

static status time_error(enum outcome o, uint32_t oid, bytes text, bytes zone, struct err *err)
{
    int n = (int)(text.size < 200 ? text.size : 200);
    const char *s = (const char *)text.data;
    switch (o) {
    case BAD_FIELD:
    case BAD_MONTH_DAY:
        err_set_state(err, ST_INVALID, "22008", "date/time field value out of range: \"%.*s\"", n,
                      s);
        if (o == BAD_MONTH_DAY)
            err_hint(err, "Perhaps you need a different \"datestyle\" setting.");
        return ST_INVALID;
    case BAD_OFFSET:
        return err_set_state(err, ST_INVALID, "22009",
                             "time zone displacement out of range: \"%.*s\"", n, s);
    case BAD_ZONE: return unknown_zone(zone, err);
    case BAD_SYNTAX:
    case GOOD: break;
    }
    return err_set_state(err, ST_INVALID, "22007", "invalid input syntax for type %s: \"%.*s\"",
                         oid == OID_TIMESTAMP ? "timestamp" : pl_type_name(oid), n, s);
}

status pl__time_from_text(uint32_t oid, bytes text, const struct pl_style *style, int64_t now,
                          int64_t *out, struct err *err)
{
    const char *p = (const char *)text.data, *end = p + text.size;
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    bytes t = bytes_make(p, (size_t)(end - p));
    if (special(oid, t, style, now, out))
        return ST_OK;
    struct parts parts = {.dmy = style != NULL && style->date_order == PL_DATE_DMY,
                          .ymd = style != NULL && style->date_order == PL_DATE_YMD};
    enum outcome o = read_parts(p, end, style, &parts);
    if (o != GOOD)
        return time_error(o, oid, text, parts.zone_name, err);
    const char *what = oid == OID_DATE ? "date" : "timestamp";
    int64_t days = calendar_days(parts.year, parts.julian_day ? 1 : parts.month,
                                 parts.julian_day ? 1 : parts.day) +
                   (parts.julian_day ? parts.day - 1 : 0) - EPOCH_DAYS;
    if (parts.year < -4713 || parts.year > (oid == OID_DATE ? 5874897 : 294276) || days < FIRST_DAY)
        return err_set_state(err, ST_INVALID, "22008", "%s out of range: \"%.*s\"", what,
                             (int)text.size, (const char *)text.data);
    if (oid == OID_DATE) {
        *out = days;
        return ST_OK;
    }
    int64_t local = days * DAY_US + parts.time_us;
    *out = local;
    if (oid == OID_TIMESTAMPTZ) {
        if (parts.zone != NULL) {
            struct pl_style named = {.zone = parts.zone};
            *out = pl__time_from_local(local, &named);
        } else if (parts.has_zone) {
            *out = local - parts.seconds_east * US;
        } else {
            *out = pl__time_from_local(local, style);
        }
    }
    if (*out < PL_TIME_MIN || *out >= PL_TIME_END)
        return err_set_state(err, ST_INVALID, "22008", "%s out of range: \"%.*s\"", what,
                             (int)text.size, (const char *)text.data);
    return ST_OK;
}

/* -- output ------------------------------------------------------------------------------------ */

/* Digits of V, at least WIDTH of them. */
static char *put_digits(char *p, int64_t v, int width)
{
    static const int64_t above[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    ASSERT_SLOW(v >= 0);
    if (width == 2 && v < 100) {
        decimal_put_pair(p, (unsigned)v);
        return p + 2;
    }
    if ((size_t)width < ARRAY_LEN(above) && v < above[width]) {
        decimal_put_padded(p, (uint64_t)v, (unsigned)width);
        return p + width;
    }
    return p + decimal_put(p, v);
}

static char *put_text(char *p, const char *s)
{
    size_t n = strlen(s);
    memcpy(p, s, n);
    return p + n;
}

/* HH:MM:SS[.ffffff], zeros behind cut. */
static char *put_clock(char *p, int64_t us)
{
    p = put_digits(p, us / (3600 * US), 2);
    *p++ = ':';
    p = put_digits(p, us / (60 * US) % 60, 2);
    *p++ = ':';
    p = put_digits(p, us / US % 60, 2);
    int64_t fraction = us % US;
    if (fraction != 0) {
        *p++ = '.';
        p = put_digits(p, fraction, 6);
        while (p[-1] == '0')
            p--;
    }
    return p;
}

/* +HH[:MM[:SS]] */
static char *put_offset(char *p, int32_t seconds_east)
{
    int32_t s = seconds_east < 0 ? -seconds_east : seconds_east;
    *p++ = seconds_east < 0 ? '-' : '+';
    p = put_digits(p, s / 3600, 2);
    if (s % 3600 != 0) {
        *p++ = ':';
        p = put_digits(p, s / 60 % 60, 2);
    }
    if (s % 60 != 0) {
        *p++ = ':';
        p = put_digits(p, s % 60, 2);
    }
    return p;
}

static char *put_numbers(char *p, const int64_t part[3], const int width[3], char separator)
{
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            *p++ = separator;
        p = put_digits(p, part[i], width[i]);
    }
    return p;
}

static char *put_date(char *p, int style, bool dmy, int64_t year, int month, int day)
{
    int first = dmy ? day : month, second = dmy ? month : day;
    switch (style) {
    case PL_DATE_SQL:
        return put_numbers(p, (int64_t[]){first, second, year}, (int[]){2, 2, 4}, '/');
    case PL_DATE_GERMAN:
        return put_numbers(p, (int64_t[]){day, month, year}, (int[]){2, 2, 4}, '.');
    case PL_DATE_POSTGRES:
        return put_numbers(p, (int64_t[]){first, second, year}, (int[]){2, 2, 4}, '-');
    default: return put_numbers(p, (int64_t[]){year, month, day}, (int[]){4, 2, 2}, '-');
    }
}

/* Sat Jan 06 12:34:56 2024, or with the day first. */
static char *put_postgres(char *p, bool dmy, int64_t days, int64_t clock, int64_t year, int month,
                          int day)
{
    p = put_text(p, weekdays[calendar_weekday(days)]);
    *p++ = ' ';
    for (int i = 0; i < 2; i++) {
        if ((i == 0) == dmy) {
            p = put_digits(p, day, 2);
        } else {
            *p++ = (char)toupper(months[month - 1][0]);
            p = put_text(p, months[month - 1] + 1);
        }
        *p++ = ' ';
    }
    p = put_clock(p, clock);
    *p++ = ' ';
    return put_digits(p, year, 4);
}

void pl__time_to_text(uint32_t oid, int64_t v, const struct pl_style *style, struct obuf *out)
{
    char buf[128], *p = buf;
    bool date_only = oid == OID_DATE;
    int date_style = style == NULL ? PL_DATE_ISO : (int)style->date_style;
    bool dmy = style != NULL && style->date_order == PL_DATE_DMY;
    if (v == (date_only ? INT32_MAX : PL_TIME_INFINITY)) {
        obuf_put(out, "infinity", 8);
        return;
    }
    if (v == (date_only ? INT32_MIN : PL_TIME_MINUS_INFINITY)) {
        obuf_put(out, "-infinity", 9);
        return;
    }
    struct pl_zone_offset zone = {0};
    int64_t local = v, days = v, clock = 0, year;
    int month, day;
    if (oid == OID_TIMESTAMPTZ) {
        int64_t seconds = (v - (v < 0 ? US - 1 : 0)) / US + EPOCH_DAYS * INT64_C(86400);
        zone = pl_zone_at(style == NULL ? NULL : style->zone, seconds);
        local = v + zone.seconds_east * US;
    }
    if (!date_only) {
        days = floor_day(local);
        clock = local - days * DAY_US;
    }
    days += EPOCH_DAYS;
    calendar_date(days, &year, &month, &day);
    bool bc = year <= 0;
    if (bc)
        year = 1 - year;
    if (date_style == PL_DATE_POSTGRES && !date_only) {
        p = put_postgres(p, dmy, days, clock, year, month, day);
    } else {
        p = put_date(p, date_style, dmy, year, month, day);
        if (!date_only) {
            *p++ = ' ';
            p = put_clock(p, clock);
        }
    }
    if (oid == OID_TIMESTAMPTZ) {
        if (date_style == PL_DATE_ISO || zone.abbreviation == NULL ||
            zone.abbreviation[0] == '\0') {
            p = put_offset(p, zone.seconds_east);
        } else {
            *p++ = ' ';
            p = put_text(p, zone.abbreviation);
        }
    }
    if (bc)
        p = put_text(p, " BC");
    obuf_put(out, buf, (size_t)(p - buf));
}

/* -- intervals --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int64_t us;
} units[] = {
    {"microsecond", 1},
    {"us", 1},
    {"usec", 1},
    {"millisecond", 1000},
    {"ms", 1000},
    {"msec", 1000},
    {"second", US},
    {"sec", US},
    {"s", US},
    {"minute", 60 * US},
    {"min", 60 * US},
    {"m", 60 * US},
    {"hour", 3600 * US},
    {"hr", 3600 * US},
    {"h", 3600 * US},
    {"day", DAY_US},
    {"d", DAY_US},
    {"week", 7 * DAY_US},
    {"w", 7 * DAY_US},
    {"month", 30 * DAY_US},
    {"mon", 30 * DAY_US},
    {"year", 360 * DAY_US},
    {"y", 360 * DAY_US},
};

static int64_t unit_of(const char *p, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        size_t m = strlen(units[i].name);
        if ((n == m || (n == m + 1 && tolower((unsigned char)p[n - 1]) == 's' && m > 1)) &&
            strncasecmp(p, units[i].name, m) == 0)
            return units[i].us;
    }
    return 0;
}

/* [-]H:MM[:SS[.f]] with H already read. */
static bool interval_clock(const char **p, double hours, double *us)
{
    char *end;
    double minutes = strtod(*p + 1, &end), seconds = 0;
    if (*end == ':')
        seconds = strtod(end + 1, &end);
    *p = end;
    *us = ((hours * 60 + minutes) * 60 + seconds) * (double)US;
    return minutes < 60 && seconds < 61;
}

/* "1 day 02:03:04", "90 minutes", "-1 mon": a month counts 30 days, a year 360. */
status pl__interval_from_text(bytes text, int64_t *out, struct err *err)
{
    char buf[128];
    double total = 0;
    bool any = false, good = text.size < sizeof(buf), ago = false;
    const char *p = buf;
    memcpy(buf, text.data, good ? text.size : 0);
    buf[good ? text.size : 0] = '\0';
    while (good && *p != '\0') {
        if (isspace((unsigned char)*p) || *p == '@') {
            p++;
            continue;
        }
        if (strncasecmp(p, "ago", 3) == 0 && p[3 + strspn(p + 3, " ")] == '\0' && any) {
            ago = true;
            break;
        }
        char *end;
        bool minus = *p == '-';
        double v = strtod(p, &end), us;
        if (end == p)
            good = false;
        p = end;
        if (good && *p == ':') {
            good = interval_clock(&p, v < 0 ? -v : v, &us);
            total += minus ? -us : us;
        } else if (good) {
            p += strspn(p, " ");
            size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
            int64_t unit = n == 0 ? US : unit_of(p, n);
            good = unit != 0;
            total += v * (double)unit;
            p += n;
        }
        any = true;
    }
    if (!good || !any)
        return err_set_state(err, ST_INVALID, "22007",
                             "invalid input syntax for type interval: \"%.*s\"",
                             (int)(text.size < 200 ? text.size : 200), (const char *)text.data);
    if (total > 9.2e18 || total < -9.2e18)
        return err_set_state(err, ST_INVALID, "22008", "interval field value out of range: \"%s\"",
                             buf);
    *out = (int64_t)(ago ? -total : total);
    return ST_OK;
}

void pl__interval_to_text(int64_t v, struct obuf *out)
{
    char buf[64], *p = buf;
    int64_t days = v / DAY_US, clock = v % DAY_US;
    if (days != 0) {
        if (days < 0)
            *p++ = '-';
        p = put_digits(p, days < 0 ? -days : days, 1);
        p = put_text(p, days == 1 || days == -1 ? " day" : " days");
    }
    if (clock != 0 || days == 0) {
        if (days != 0)
            *p++ = ' ';
        if (clock < 0)
            *p++ = '-';
        p = put_clock(p, clock < 0 ? -clock : clock);
    }
    obuf_put(out, buf, (size_t)(p - buf));
}
