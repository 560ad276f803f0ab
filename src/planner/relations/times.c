/*
 * planner/relations/times.c — functions over moments and intervals: to_char, date_trunc, extract.
 *
 * A value is microseconds: since 2000 UTC (timestamptz), on a wall clock (timestamp), or of an
 * interval, whose days are of 24 hours. Which of the three it is the translator says (enum
 * rel_time_kind): it knows the types.
 */
#include "planner/calendar.h"
#include "planner/relations/pg_rows.h"
#include "planner/timezone.h"
#include "planner/type_internal.h"

#include <ctype.h>
#include <stdio.h>

#define SECOND_US INT64_C(1000000)
#define DAY_OF_US (86400 * SECOND_US)
#define DAYS_1970_2000 10957
#define JULIAN_1970 2440588
#define FORMAT_BYTES_MAX 1024u
#define TIME_LIMIT_US INT64_C(9223000000000000000)

/* A moment or an interval, taken apart. */
struct parts {
    enum rel_time_kind kind;
    int64_t us;    /* as given */
    int64_t days;  /* since 1970; of an interval, its days */
    int64_t clock; /* microseconds of the day */
    int64_t year;
    int month, day, weekday, of_year; /* weekday 0 = Sunday, of_year from 1 */
    struct pl_zone_offset zone;
};

static int64_t floor_to(int64_t v, int64_t unit)
{
    int64_t rest = v % unit;
    return v - (rest < 0 ? rest + unit : rest);
}

static struct parts take_apart(const struct rel_env *env, const struct cell *v,
                               enum rel_time_kind kind)
{
    /* Sums of the client's may be anything; no date that PostgreSQL knows is cut. */
    int64_t us = v->i > TIME_LIMIT_US    ? TIME_LIMIT_US
                 : v->i < -TIME_LIMIT_US ? -TIME_LIMIT_US
                                         : v->i;
    struct parts p = {.kind = kind, .us = us};
    int64_t local = kind == REL_TIME_MOMENT ? pl__time_to_local(us, env->ctx->style) : us;
    if (kind == REL_TIME_INTERVAL) {
        p.days = local / DAY_OF_US;
        p.clock = local % DAY_OF_US;
        return p;
    }
    int64_t midnight = floor_to(local, DAY_OF_US);
    p.clock = local - midnight;
    p.days = midnight / DAY_OF_US + DAYS_1970_2000;
    calendar_date(p.days, &p.year, &p.month, &p.day);
    p.weekday = calendar_weekday(p.days);
    p.of_year = (int)(p.days - calendar_days(p.year, 1, 1)) + 1;
    if (kind == REL_TIME_MOMENT)
        p.zone = pl_zone_at(env->ctx->style ? env->ctx->style->zone : NULL,
                            floor_to(us, SECOND_US) / SECOND_US + DAYS_1970_2000 * 86400);
    return p;
}

/* ISO 8601: the week that holds the year's first Thursday is the first. */
static int iso_week(const struct parts *p, int64_t *year)
{
    int64_t thursday = p->days + 3 - (p->weekday + 6) % 7;
    int month, day;
    calendar_date(thursday, year, &month, &day);
    return (int)((thursday - calendar_days(*year, 1, 1)) / 7) + 1;
}

static int64_t century(int64_t year)
{
    return year > 0 ? (year + 99) / 100 : -((99 - (year - 1)) / 100);
}

static bool is_infinite(const struct cell *v, enum rel_time_kind kind)
{
    return kind != REL_TIME_INTERVAL &&
           (v->i == PL_TIME_INFINITY || v->i == PL_TIME_MINUS_INFINITY);
}

/* ---- units of date_trunc and extract ---- */

enum unit {
    UNIT_MICROSECOND,
    UNIT_MILLISECOND,
    UNIT_SECOND,
    UNIT_MINUTE,
    UNIT_HOUR,
    UNIT_DAY,
    UNIT_WEEK,
    UNIT_MONTH,
    UNIT_QUARTER,
    UNIT_YEAR,
    UNIT_DECADE,
    UNIT_CENTURY,
    UNIT_MILLENNIUM,
    UNIT_EPOCH,
    UNIT_DOW,
    UNIT_ISODOW,
    UNIT_DOY,
    UNIT_ISOYEAR,
    UNIT_JULIAN,
    UNIT_TIMEZONE,
    UNIT_TIMEZONE_HOUR,
    UNIT_TIMEZONE_MINUTE,
};

static bool unit_of(struct rel_env *env, const struct cell *name, enum rel_time_kind kind,
                    enum unit *out)
{
    static const struct {
        const char *name;
        enum unit unit;
    } units[] = {
        {"microseconds", UNIT_MICROSECOND},
        {"microsecond", UNIT_MICROSECOND},
        {"us", UNIT_MICROSECOND},
        {"milliseconds", UNIT_MILLISECOND},
        {"millisecond", UNIT_MILLISECOND},
        {"ms", UNIT_MILLISECOND},
        {"second", UNIT_SECOND},
        {"seconds", UNIT_SECOND},
        {"minute", UNIT_MINUTE},
        {"minutes", UNIT_MINUTE},
        {"hour", UNIT_HOUR},
        {"hours", UNIT_HOUR},
        {"day", UNIT_DAY},
        {"days", UNIT_DAY},
        {"week", UNIT_WEEK},
        {"weeks", UNIT_WEEK},
        {"month", UNIT_MONTH},
        {"months", UNIT_MONTH},
        {"quarter", UNIT_QUARTER},
        {"year", UNIT_YEAR},
        {"years", UNIT_YEAR},
        {"decade", UNIT_DECADE},
        {"century", UNIT_CENTURY},
        {"millennium", UNIT_MILLENNIUM},
        {"epoch", UNIT_EPOCH},
        {"dow", UNIT_DOW},
        {"isodow", UNIT_ISODOW},
        {"doy", UNIT_DOY},
        {"isoyear", UNIT_ISOYEAR},
        {"julian", UNIT_JULIAN},
        {"timezone", UNIT_TIMEZONE},
        {"timezone_hour", UNIT_TIMEZONE_HOUR},
        {"timezone_minute", UNIT_TIMEZONE_MINUTE},
    };
    static const char *const types[] = {"timestamp with time zone", "timestamp without time zone",
                                        "interval"};
    const char *text = rel_cell_str(env, name);
    for (unsigned i = 0; i < ARRAY_LEN(units); i++)
        if (strcasecmp(units[i].name, text) == 0) {
            *out = units[i].unit;
            return true;
        }
    return rel_fail(env, ST_INVALID, "22023", "unit \"%s\" not recognized for type %s", text,
                    types[kind]);
}

static bool not_for(struct rel_env *env, const struct cell *unit, enum rel_time_kind kind)
{
    static const char *const types[] = {"timestamp with time zone", "timestamp without time zone",
                                        "interval"};
    return rel_fail(env, ST_UNSUPPORTED, "0A000", "unit \"%s\" not supported for type %s",
                    rel_cell_str(env, unit), types[kind]);
}

/* ---- date_trunc ---- */

static const int64_t unit_us[] = {
    [UNIT_MICROSECOND] = 1,         [UNIT_MILLISECOND] = 1000,      [UNIT_SECOND] = SECOND_US,
    [UNIT_MINUTE] = 60 * SECOND_US, [UNIT_HOUR] = 3600 * SECOND_US, [UNIT_DAY] = DAY_OF_US};

/* The first day of the unit, as days since 1970. */
static int64_t first_day(const struct parts *p, enum unit unit)
{
    switch ((int)unit) {
    case UNIT_WEEK: return p->days - (p->weekday + 6) % 7;
    case UNIT_MONTH: return calendar_days(p->year, p->month, 1);
    case UNIT_QUARTER: return calendar_days(p->year, (p->month - 1) / 3 * 3 + 1, 1);
    case UNIT_YEAR: return calendar_days(p->year, 1, 1);
    case UNIT_DECADE: return calendar_days(floor_to(p->year, 10), 1, 1);
    case UNIT_CENTURY: return calendar_days(floor_to(p->year - 1, 100) + 1, 1, 1);
    default: return calendar_days(floor_to(p->year - 1, 1000) + 1, 1, 1);
    }
}

/* (unit, value, kind) */
static bool fn_date_trunc(struct rel_env *env, const struct cell *args, unsigned count,
                          struct cell *out)
{
    enum rel_time_kind kind = count > 2 ? (enum rel_time_kind)args[2].i : REL_TIME_MOMENT;
    enum unit unit;
    if (!unit_of(env, &args[0], kind, &unit))
        return false;
    *out = args[1];
    if (is_infinite(&args[1], kind))
        return true;
    if (unit > UNIT_MILLENNIUM || (kind == REL_TIME_INTERVAL && unit > UNIT_DAY))
        return not_for(env, &args[0], kind);
    if (kind == REL_TIME_INTERVAL) {
        *out = cell_int(args[1].i / unit_us[unit] * unit_us[unit]);
        return true;
    }
    struct parts p = take_apart(env, &args[1], kind);
    int64_t day = unit > UNIT_DAY ? first_day(&p, unit) : p.days;
    int64_t local = (day - DAYS_1970_2000) * DAY_OF_US;
    if (unit < UNIT_DAY)
        local += floor_to(p.clock, unit_us[unit]);
    /* Below a day the offset is the moment's own, so that an hour told twice keeps its place. */
    if (kind == REL_TIME_MOMENT && unit < UNIT_DAY)
        local -= p.zone.seconds_east * SECOND_US;
    else if (kind == REL_TIME_MOMENT)
        local = pl__time_from_local(local, env->ctx->style);
    *out = cell_int(local);
    return true;
}

/* ---- extract ---- */

static struct cell seconds_of(int64_t us, int64_t unit)
{
    return us % unit == 0 ? cell_int(us / unit) : cell_real((double)us / (double)unit);
}

static bool interval_part(struct rel_env *env, const struct cell *name, const struct parts *p,
                          enum unit unit, struct cell *out)
{
    switch ((int)unit) {
    case UNIT_DAY: *out = cell_int(p->days); return true;
    case UNIT_WEEK: *out = cell_int(p->days / 7); return true;
    case UNIT_MONTH:
    case UNIT_YEAR: *out = cell_int(0); return true; /* an interval here has days only */
    default: return not_for(env, name, p->kind);
    }
}

static bool date_part(struct rel_env *env, const struct cell *name, const struct parts *p,
                      enum unit unit, struct cell *out)
{
    int64_t iso_year;
    int week = iso_week(p, &iso_year);
    int east = p->zone.seconds_east;
    switch ((int)unit) {
    case UNIT_DAY: *out = cell_int(p->day); return true;
    case UNIT_WEEK: *out = cell_int(week); return true;
    case UNIT_MONTH: *out = cell_int(p->month); return true;
    case UNIT_QUARTER: *out = cell_int((p->month - 1) / 3 + 1); return true;
    case UNIT_YEAR: *out = cell_int(p->year > 0 ? p->year : p->year - 1); return true;
    case UNIT_DECADE: *out = cell_int(floor_to(p->year, 10) / 10); return true;
    case UNIT_CENTURY: *out = cell_int(century(p->year)); return true;
    case UNIT_MILLENNIUM:
        *out = cell_int(p->year > 0 ? (p->year + 999) / 1000 : -((999 - (p->year - 1)) / 1000));
        return true;
    case UNIT_DOW: *out = cell_int(p->weekday); return true;
    case UNIT_ISODOW: *out = cell_int(p->weekday ? p->weekday : 7); return true;
    case UNIT_DOY: *out = cell_int(p->of_year); return true;
    case UNIT_ISOYEAR: *out = cell_int(iso_year > 0 ? iso_year : iso_year - 1); return true;
    case UNIT_JULIAN:
        *out =
            p->clock
                ? cell_real((double)(p->days + JULIAN_1970) + (double)p->clock / (double)DAY_OF_US)
                : cell_int(p->days + JULIAN_1970);
        return true;
    default: break;
    }
    if (p->kind != REL_TIME_MOMENT)
        return not_for(env, name, p->kind);
    *out = cell_int(unit == UNIT_TIMEZONE        ? east
                    : unit == UNIT_TIMEZONE_HOUR ? east / 3600
                                                 : east / 60 % 60);
    return true;
}

/* (unit, value, kind) */
static bool fn_extract(struct rel_env *env, const struct cell *args, unsigned count,
                       struct cell *out)
{
    enum rel_time_kind kind = count > 2 ? (enum rel_time_kind)args[2].i : REL_TIME_MOMENT;
    enum unit unit;
    if (!unit_of(env, &args[0], kind, &unit))
        return false;
    *out = cell_null();
    if (is_infinite(&args[1], kind))
        return true;
    struct parts p = take_apart(env, &args[1], kind);
    int64_t before_2000 = kind == REL_TIME_INTERVAL ? 0 : DAYS_1970_2000 * INT64_C(86400);
    switch ((int)unit) {
    case UNIT_MICROSECOND: *out = cell_int(p.clock % (60 * SECOND_US)); return true;
    case UNIT_MILLISECOND: *out = seconds_of(p.clock % (60 * SECOND_US), 1000); return true;
    case UNIT_SECOND: *out = seconds_of(p.clock % (60 * SECOND_US), SECOND_US); return true;
    case UNIT_MINUTE: *out = cell_int(p.clock / (60 * SECOND_US) % 60); return true;
    case UNIT_HOUR: *out = cell_int(p.clock / (3600 * SECOND_US)); return true;
    case UNIT_EPOCH: *out = seconds_of(p.us + before_2000 * SECOND_US, SECOND_US); return true;
    default: break;
    }
    return kind == REL_TIME_INTERVAL ? interval_part(env, &args[0], &p, unit, out)
                                     : date_part(env, &args[0], &p, unit, out);
}

/* ---- to_char ---- */

enum letter_case { AS_LOWER, AS_UPPER, AS_NAME };

static const char *const months[] = {"january",   "february", "march",    "april",
                                     "may",       "june",     "july",     "august",
                                     "september", "october",  "november", "december"};
static const char *const weekdays[] = {"sunday",   "monday", "tuesday", "wednesday",
                                       "thursday", "friday", "saturday"};
static const char *const roman[] = {"I",   "II",   "III", "IV", "V",  "VI",
                                    "VII", "VIII", "IX",  "X",  "XI", "XII"};

/* In the order of field_names. */
enum field_id {
    F_HH24,
    F_HH12,
    F_HH,
    F_MI,
    F_SSSSS,
    F_SSSS,
    F_SS,
    F_MS,
    F_US,
    F_AM,
    F_AM_DOTS,
    F_Y_YYY,
    F_YYYY,
    F_YYY,
    F_YY,
    F_Y,
    F_IYYY,
    F_IYY,
    F_IY,
    F_MONTH,
    F_MON,
    F_MM,
    F_DAY,
    F_DDD,
    F_DD,
    F_DY,
    F_D,
    F_IDDD,
    F_ID,
    F_IW,
    F_I,
    F_WW,
    F_W,
    F_CC,
    F_J,
    F_Q,
    F_RM,
    F_TZH,
    F_TZM,
    F_TZ,
    F_OF,
    F_BC,
    F_COUNT
};
static const char *const field_names[F_COUNT] = {
    [F_HH24] = "HH24",   [F_HH12] = "HH12", [F_HH] = "HH",        [F_MI] = "MI",
    [F_SSSSS] = "SSSSS", [F_SSSS] = "SSSS", [F_SS] = "SS",        [F_MS] = "MS",
    [F_US] = "US",       [F_AM] = "AM",     [F_AM_DOTS] = "A.M.", [F_Y_YYY] = "Y,YYY",
    [F_YYYY] = "YYYY",   [F_YYY] = "YYY",   [F_YY] = "YY",        [F_Y] = "Y",
    [F_IYYY] = "IYYY",   [F_IYY] = "IYY",   [F_IY] = "IY",        [F_MONTH] = "MONTH",
    [F_MON] = "MON",     [F_MM] = "MM",     [F_DAY] = "DAY",      [F_DDD] = "DDD",
    [F_DD] = "DD",       [F_DY] = "DY",     [F_D] = "D",          [F_IDDD] = "IDDD",
    [F_ID] = "ID",       [F_IW] = "IW",     [F_I] = "I",          [F_WW] = "WW",
    [F_W] = "W",         [F_CC] = "CC",     [F_J] = "J",          [F_Q] = "Q",
    [F_RM] = "RM",       [F_TZH] = "TZH",   [F_TZM] = "TZM",      [F_TZ] = "TZ",
    [F_OF] = "OF",       [F_BC] = "BC",
};

/* The field that TEXT begins with: the longest. F_COUNT if none. */
static enum field_id field_at(const char *text)
{
    enum field_id found = F_COUNT;
    size_t longest = 0;
    for (unsigned i = 0; i < F_COUNT; i++) {
        size_t n = strlen(field_names[i]);
        bool same = strncasecmp(text, field_names[i], n) == 0;
        if ((i == F_AM && strncasecmp(text, "PM", 2) == 0) ||
            (i == F_AM_DOTS && strncasecmp(text, "P.M.", 4) == 0) ||
            (i == F_BC && strncasecmp(text, "AD", 2) == 0))
            same = true;
        if (same && n > longest) {
            longest = n;
            found = (enum field_id)i;
        }
    }
    return found;
}

static void put_name(struct obuf *o, const char *name, size_t size, enum letter_case c, int width)
{
    for (size_t i = 0; i < size; i++) {
        bool upper = c == AS_UPPER || (c == AS_NAME && i == 0);
        obuf_u8(o, (uint8_t)(upper ? toupper(name[i]) : tolower(name[i])));
    }
    for (int i = (int)size; i < width; i++)
        obuf_u8(o, ' ');
}

static enum letter_case case_of(const char *text)
{
    return islower((unsigned char)text[0])   ? AS_LOWER
           : islower((unsigned char)text[1]) ? AS_NAME
                                             : AS_UPPER;
}

/* A number and the least digits it is written with; false: the field is no number. */
static bool number_of(const struct parts *p, enum field_id f, int64_t *v, int *width)
{
    int64_t iso_year = p->year, clock = p->clock < 0 ? -p->clock : p->clock;
    int week = p->kind == REL_TIME_INTERVAL ? 0 : iso_week(p, &iso_year);
    int64_t hour = clock / (3600 * SECOND_US), year = p->year > 0 ? p->year : 1 - p->year;
    int64_t second = clock / SECOND_US;
    *width = 2;
    switch ((int)f) {
    case F_HH24: *v = p->kind == REL_TIME_INTERVAL && p->clock < 0 ? -hour : hour; break;
    case F_HH12:
    case F_HH: *v = hour % 12 ? hour % 12 : 12; break;
    case F_MI: *v = second / 60 % 60; break;
    case F_SS: *v = second % 60; break;
    case F_MS: *v = clock / 1000 % 1000, *width = 3; break;
    case F_US: *v = clock % SECOND_US, *width = 6; break;
    case F_SSSS:
    case F_SSSSS: *v = second, *width = 0; break;
    case F_YYYY: *v = year, *width = 4; break;
    case F_YYY: *v = year % 1000, *width = 3; break;
    case F_YY: *v = year % 100; break;
    case F_Y: *v = year % 10, *width = 1; break;
    case F_IYYY: *v = iso_year, *width = 4; break;
    case F_IYY: *v = iso_year % 1000, *width = 3; break;
    case F_IY: *v = iso_year % 100; break;
    case F_I: *v = iso_year % 10, *width = 1; break;
    case F_MM: *v = p->month; break;
    case F_DDD: *v = p->of_year, *width = 3; break;
    case F_DD: *v = p->kind == REL_TIME_INTERVAL ? p->days : p->day; break;
    case F_D: *v = p->weekday + 1, *width = 1; break;
    case F_ID: *v = p->weekday ? p->weekday : 7, *width = 1; break;
    case F_IDDD: *v = (week - 1) * 7 + (p->weekday ? p->weekday : 7), *width = 3; break;
    case F_IW: *v = week; break;
    case F_WW: *v = (p->of_year - 1) / 7 + 1; break;
    case F_W: *v = (p->day - 1) / 7 + 1, *width = 1; break;
    case F_CC: *v = century(p->year); break;
    case F_J: *v = p->days + JULIAN_1970, *width = 0; break;
    case F_Q: *v = (p->month - 1) / 3 + 1, *width = 1; break;
    default: return false;
    }
    return true;
}

static void put_ordinal(struct obuf *o, int64_t v, bool upper)
{
    int64_t tens = v / 10 % 10, ones = v % 10;
    const char *end = tens == 1   ? "th"
                      : ones == 1 ? "st"
                      : ones == 2 ? "nd"
                      : ones == 3 ? "rd"
                                  : "th";
    put_name(o, end, 2, upper ? AS_UPPER : AS_LOWER, 0);
}

static void put_words(struct obuf *o, const struct parts *p, enum field_id f, const char *text,
                      bool fill)
{
    enum letter_case c = case_of(text);
    const char *month = months[p->month > 0 ? p->month - 1 : 0], *day = weekdays[p->weekday];
    bool pm = p->clock >= DAY_OF_US / 2;
    int east = p->zone.seconds_east, east_abs = east < 0 ? -east : east;
    char out[64] = "";
    switch ((int)f) {
    case F_MONTH: put_name(o, month, strlen(month), c, fill ? 0 : 9); return;
    case F_MON: put_name(o, month, 3, c, 0); return;
    case F_DAY: put_name(o, day, strlen(day), c, fill ? 0 : 9); return;
    case F_DY: put_name(o, day, 3, c, 0); return;
    case F_AM:
        put_name(o, pm ? "pm" : "am", 2, islower((unsigned char)text[0]) ? AS_LOWER : AS_UPPER, 0);
        return;
    case F_AM_DOTS:
        put_name(o, pm ? "p.m." : "a.m.", 4, islower((unsigned char)text[0]) ? AS_LOWER : AS_UPPER,
                 0);
        return;
    case F_BC:
        put_name(o, p->year > 0 ? "ad" : "bc", 2,
                 islower((unsigned char)text[0]) ? AS_LOWER : AS_UPPER, 0);
        return;
    case F_RM: {
        const char *r = roman[p->month > 0 ? p->month - 1 : 0];
        put_name(o, r, strlen(r), islower((unsigned char)text[0]) ? AS_LOWER : AS_UPPER,
                 fill ? 0 : 4);
        return;
    }
    case F_Y_YYY:
        (void)snprintf(out, sizeof(out), "%lld,%03lld", (long long)p->year / 1000,
                       (long long)p->year % 1000);
        break;
    case F_TZ: {
        const char *zone = p->kind == REL_TIME_MOMENT ? p->zone.abbreviation : NULL;
        if (zone)
            put_name(o, zone, strlen(zone), islower((unsigned char)text[0]) ? AS_LOWER : AS_UPPER,
                     0);
        return;
    }
    case F_TZH:
        (void)snprintf(out, sizeof(out), "%c%02d", east < 0 ? '-' : '+', east_abs / 3600);
        break;
    case F_TZM: (void)snprintf(out, sizeof(out), "%02d", east_abs / 60 % 60); break;
    case F_OF:
        if (east_abs / 60 % 60)
            (void)snprintf(out, sizeof(out), "%c%02d:%02d", east < 0 ? '-' : '+', east_abs / 3600,
                           east_abs / 60 % 60);
        else
            (void)snprintf(out, sizeof(out), "%c%02d", east < 0 ? '-' : '+', east_abs / 3600);
        break;
    default: break;
    }
    obuf_put(o, out, strlen(out));
}

/* Writes the field at TEXT, with what stands around it; how many bytes of the format it was. */
static size_t put_field(struct obuf *o, const struct parts *p, const char *text, enum field_id f,
                        bool fill)
{
    size_t n = strlen(field_names[f]);
    int64_t v;
    int width;
    if (!number_of(p, f, &v, &width)) {
        put_words(o, p, f, text, fill);
        return n;
    }
    char out[32];
    (void)snprintf(out, sizeof(out), "%0*lld", fill ? 0 : v < 0 ? width + 1 : width, (long long)v);
    obuf_put(o, out, strlen(out));
    if (strncasecmp(text + n, "TH", 2) == 0) {
        put_ordinal(o, v, text[n] == 'T');
        n += 2;
    }
    return n;
}

/* (value, format, kind) */
static bool fn_to_char(struct rel_env *env, const struct cell *args, unsigned count,
                       struct cell *out)
{
    const char *s = rel_cell_str(env, &args[1]);
    enum rel_time_kind kind = count > 2 ? (enum rel_time_kind)args[2].i : REL_TIME_MOMENT;
    *out = cell_null();
    if (is_infinite(&args[0], kind) || s[0] == 0)
        return true;
    if (strlen(s) > FORMAT_BYTES_MAX)
        return rel_fail(env, ST_LIMIT, "54000", "time format is too long");
    struct parts p = take_apart(env, &args[0], kind);
    struct obuf o;
    obuf_init(&o);
    bool quoted = false;
    while (*s) {
        bool fill = !quoted && strncasecmp(s, "FM", 2) == 0;
        enum field_id f = quoted ? F_COUNT : field_at(s + (fill ? 2 : 0));
        if (fill)
            s += 2;
        if (f != F_COUNT) {
            s += put_field(&o, &p, s, f, fill);
        } else if (*s == '"') {
            quoted = !quoted;
            s++;
        } else if (*s) {
            s += *s == '\\' && s[1];
            obuf_u8(&o, (uint8_t)*s++);
        }
    }
    *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return true;
}

/* age(a, b): what lies between, in days and less. */
static bool fn_age(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    int64_t from, to = args[0].i;
    if (count > 1) {
        from = args[1].i;
    } else { /* from midnight of today */
        from = args[0].i;
        struct cell now = cell_int(env->ctx->now);
        to = (take_apart(env, &now, REL_TIME_MOMENT).days - DAYS_1970_2000) * DAY_OF_US;
        to = pl__time_from_local(to, env->ctx->style);
    }
    int64_t between;
    if (__builtin_sub_overflow(to, from, &between))
        return rel_fail(env, ST_INVALID, "22008", "interval out of range");
    *out = cell_int(between);
    return true;
}

const struct rel_function rel_time_functions[] = {
    {REL_FN_TO_CHAR_TIME, "iti", OID_TEXT, false, fn_to_char},
    {REL_FN_DATE_TRUNC, "tii", OID_TIMESTAMPTZ, false, fn_date_trunc},
    {REL_FN_EXTRACT, "tii", OID_NUMERIC, false, fn_extract},
    {"to_char", "pt", OID_TEXT, false, fn_to_char},
    {"date_trunc", "tp", OID_TIMESTAMPTZ, false, fn_date_trunc},
    {"extract", "tp", OID_NUMERIC, false, fn_extract},
    {"date_part", "tp", OID_FLOAT8, false, fn_extract},
    {"age", "p?p", OID_INTERVAL, false, fn_age},
};
const unsigned rel_time_function_count = ARRAY_LEN(rel_time_functions);
