/*
 * planner/timezone.c — reads TZif files (RFC 8536) and POSIX TZ rules.
 *
 * A zone is a sorted array of transitions (moment → type), the types (offset, daylight,
 * abbreviation) and a rule for moments behind the last transition, from the file's footer. A POSIX
 * name is a zone of a rule only.
 *
 * Zones are kept in one list that only grows: a reader walks it without a lock, a new zone is put
 * in front with compare-and-swap; when two threads load one name at once the second copy is
 * dropped. The list is bounded by MAX_ZONES; behind that, names that are not in it are unknown.
 *
 * Names are looked up case-insensitively, component by component, and never leave the directory: a
 * component may not start with a dot.
 *
 * Invariants: Z1 a zone in the list never changes. Z2 every transition's type is in range; a file
 * that breaks this is unknown.
 */
#include "planner/timezone.h"

#include "base/compiler.h"
#include "planner/calendar.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define ZONE_DIR "/usr/share/zoneinfo"
#define MAX_ZONES 1500
#define MAX_FILE (256 * 1024)
#define MAX_TYPES 256
#define DAY 86400

struct zone_type {
    int32_t seconds_east;
    bool dst;
    char abbreviation[20];
};

/* A date of a POSIX rule. */
struct rule_date {
    enum { RULE_MONTH, RULE_JULIAN, RULE_DAY } kind;
    int month, week, day;
    int32_t time; /* seconds of the local day, may be negative or over a day */
};

struct rule {
    bool present, has_dst;
    struct zone_type std, dst;
    struct rule_date begin, end;
};

struct pl_zone {
    struct pl_zone *next;
    char name[64];
    unsigned transition_count, type_count;
    int64_t *moments;
    uint8_t *types_at;
    struct zone_type *types;
    struct rule rule;
};

static struct pl_zone utc_zone = {
    .name = "UTC",
    .rule = {.present = true, .std = {.abbreviation = "UTC"}},
};
static _Atomic(struct pl_zone *) zones;
static atomic_uint zone_count;

/* -- rules ------------------------------------------------------------------------------------- */

/* Local seconds (as if UTC) at which D happens in YEAR. */
static int64_t rule_moment(const struct rule_date *d, int64_t year)
{
    int64_t day;
    if (d->kind == RULE_MONTH) {
        int64_t first = calendar_days(year, d->month, 1);
        int64_t weekday = calendar_weekday(first);
        day = first + (d->day - weekday + 7) % 7 + (d->week - 1) * 7;
        int64_t next =
            d->month == 12 ? calendar_days(year + 1, 1, 1) : calendar_days(year, d->month + 1, 1);
        if (day >= next)
            day -= 7;
    } else if (d->kind == RULE_JULIAN) { /* 1..365, never 29 February */
        day = calendar_days(year, 1, 1) + d->day - 1 + (calendar_leap(year) && d->day >= 60);
    } else {
        day = calendar_days(year, 1, 1) + d->day;
    }
    return day * DAY + d->time;
}

static const struct zone_type *rule_at(const struct rule *r, int64_t utc)
{
    if (!r->has_dst)
        return &r->std;
    int64_t local = utc + r->std.seconds_east;
    int64_t year;
    int month, day;
    calendar_date((local >= 0 ? local : local - DAY + 1) / DAY, &year, &month, &day);
    int64_t begin = rule_moment(&r->begin, year) - r->std.seconds_east;
    int64_t end = rule_moment(&r->end, year) - r->dst.seconds_east;
    bool dst = begin < end ? utc >= begin && utc < end : utc >= begin || utc < end;
    return dst ? &r->dst : &r->std;
}

/* -- POSIX rules ------------------------------------------------------------------------------- */

static const char *parse_abbreviation(const char *p, struct zone_type *out)
{
    size_t n = 0;
    bool quoted = *p == '<';
    const char *start = quoted ? ++p : p;
    while (*p != '\0' && (quoted ? *p != '>' : isalpha((unsigned char)*p) != 0)) {
        p++;
        n++;
    }
    if (n >= sizeof(out->abbreviation) || (quoted && *p != '>'))
        return NULL;
    memcpy(out->abbreviation, start, n);
    out->abbreviation[n] = '\0';
    return quoted ? p + 1 : p;
}

/* [+-]hh[:mm[:ss]] into seconds. */
static const char *parse_hms(const char *p, int32_t *out, int max_hours)
{
    int sign = 1, part[3] = {0, 0, 0};
    if (*p == '-' || *p == '+')
        sign = *p++ == '-' ? -1 : 1;
    for (int i = 0; i < 3; i++) {
        if (!isdigit((unsigned char)*p))
            return NULL;
        while (isdigit((unsigned char)*p) && part[i] < 1000)
            part[i] = part[i] * 10 + (*p++ - '0');
        if (*p != ':' || i == 2)
            break;
        p++;
    }
    if (part[0] > max_hours || part[1] > 59 || part[2] > 59)
        return NULL;
    *out = sign * (part[0] * 3600 + part[1] * 60 + part[2]);
    return p;
}

static const char *parse_int(const char *p, int lowest, int highest, int *out)
{
    if (!isdigit((unsigned char)*p))
        return NULL;
    int v = 0;
    while (isdigit((unsigned char)*p) && v < 10000)
        v = v * 10 + (*p++ - '0');
    *out = v;
    return v < lowest || v > highest ? NULL : p;
}

static const char *parse_date(const char *p, struct rule_date *out)
{
    out->time = 2 * 3600;
    if (*p == 'M') {
        out->kind = RULE_MONTH;
        p = parse_int(p + 1, 1, 12, &out->month);
        p = p != NULL && *p == '.' ? parse_int(p + 1, 1, 5, &out->week) : NULL;
        p = p != NULL && *p == '.' ? parse_int(p + 1, 0, 6, &out->day) : NULL;
    } else if (*p == 'J') {
        out->kind = RULE_JULIAN;
        p = parse_int(p + 1, 1, 365, &out->day);
    } else {
        out->kind = RULE_DAY;
        p = parse_int(p, 0, 365, &out->day);
    }
    if (p != NULL && *p == '/')
        p = parse_hms(p + 1, &out->time, 167);
    return p;
}

/* STD offset [DST [offset] [,begin,end]]; all of TEXT. */
static bool parse_rule(const char *p, struct rule *out)
{
    int32_t west;
    memset(out, 0, sizeof(*out));
    p = parse_abbreviation(p, &out->std);
    if (p == NULL || (p = parse_hms(p, &west, 167)) == NULL)
        return false;
    out->std.seconds_east = -west;
    out->present = true;
    if (*p == '\0')
        return true;
    out->has_dst = out->dst.dst = true;
    out->dst.seconds_east = out->std.seconds_east + 3600;
    p = parse_abbreviation(p, &out->dst);
    if (p == NULL || out->dst.abbreviation[0] == '\0')
        return false;
    if (*p != ',' && *p != '\0') {
        if ((p = parse_hms(p, &west, 167)) == NULL)
            return false;
        out->dst.seconds_east = -west;
    }
    if (*p == '\0') /* the rule of the United States, as everybody else assumes */
        p = ",M3.2.0,M11.1.0";
    p = parse_date(p + 1, &out->begin);
    if (p == NULL || *p != ',')
        return false;
    p = parse_date(p + 1, &out->end);
    return p != NULL && *p == '\0';
}

/* -- files ------------------------------------------------------------------------------------- */

static int64_t be(const uint8_t *p, unsigned n)
{
    uint64_t v = (p[0] & 0x80) != 0 ? ~(uint64_t)0 : 0;
    for (unsigned i = 0; i < n; i++)
        v = v << 8 | p[i];
    return (int64_t)v;
}

struct header {
    uint32_t isut, isstd, leap, time, type, chars;
};

static bool read_header(const uint8_t *p, size_t size, struct header *h)
{
    if (size < 44 || memcmp(p, "TZif", 4) != 0 || p[4] < '2')
        return false;
    uint32_t *fields[6] = {&h->isut, &h->isstd, &h->leap, &h->time, &h->type, &h->chars};
    for (unsigned i = 0; i < 6; i++) {
        *fields[i] = (uint32_t)be(p + 20 + 4 * i, 4);
        if (*fields[i] > MAX_FILE)
            return false;
    }
    return true;
}

static size_t block_size(const struct header *h, size_t time_size)
{
    return h->time * (time_size + 1) + (size_t)h->type * 6 + h->chars + h->leap * (time_size + 4) +
           h->isstd + h->isut;
}

/* The block of 64-bit times at P, with its header. */
static bool read_block(struct pl_zone *z, const uint8_t *p, size_t size)
{
    struct header h;
    if (!read_header(p, size, &h) || block_size(&h, 8) > size - 44 || h.type == 0 ||
        h.type > MAX_TYPES)
        return false;
    const uint8_t *times = p + 44, *index = times + (size_t)h.time * 8, *types = index + h.time;
    const uint8_t *chars = types + (size_t)h.type * 6, *footer = p + 44 + block_size(&h, 8);
    z->moments = calloc(h.time + 1, sizeof(*z->moments));
    z->types_at = calloc(h.time + 1, 1);
    z->types = calloc(h.type, sizeof(*z->types));
    if (z->moments == NULL || z->types_at == NULL || z->types == NULL)
        return false;
    z->transition_count = h.time;
    z->type_count = h.type;
    for (uint32_t i = 0; i < h.time; i++) {
        z->moments[i] = be(times + (size_t)i * 8, 8);
        z->types_at[i] = index[i];
        if (index[i] >= h.type || (i > 0 && z->moments[i] < z->moments[i - 1]))
            return false;
    }
    for (uint32_t i = 0; i < h.type; i++) {
        const uint8_t *t = types + (size_t)i * 6;
        if (t[5] >= h.chars)
            return false;
        z->types[i].seconds_east = (int32_t)be(t, 4);
        z->types[i].dst = t[4] != 0;
        size_t n = strnlen((const char *)chars + t[5], h.chars - t[5]);
        if (n >= sizeof(z->types[i].abbreviation))
            n = sizeof(z->types[i].abbreviation) - 1;
        memcpy(z->types[i].abbreviation, chars + t[5], n);
    }
    char rule[128];
    size_t left = size - (size_t)(footer - p), n = 0;
    if (left > 2 && footer[0] == '\n') {
        while (n + 1 < left && n < sizeof(rule) - 1 && footer[1 + n] != '\n') {
            rule[n] = (char)footer[1 + n];
            n++;
        }
        rule[n] = '\0';
        if (!parse_rule(rule, &z->rule))
            z->rule.present = false;
    }
    return true;
}

static bool read_zone(struct pl_zone *z, const uint8_t *data, size_t size)
{
    struct header h;
    if (!read_header(data, size, &h) || block_size(&h, 4) > size - 44)
        return false;
    size_t second = 44 + block_size(&h, 4);
    return read_block(z, data + second, size - second);
}

static void zone_free(struct pl_zone *z)
{
    free(z->moments);
    free(z->types_at);
    free(z->types);
    free(z);
}

/* The entry of DIR whose name is COMPONENT in any case, appended to PATH. */
static bool find_component(char *path, size_t room, const char *component)
{
    DIR *d = opendir(path);
    bool found = false;
    if (d == NULL)
        return false;
    for (struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        if (strcasecmp(e->d_name, component) == 0) {
            size_t at = strlen(path);
            int n = snprintf(path + at, room - at, "/%s", e->d_name);
            found = n > 0 && (size_t)n < room - at;
        }
    }
    closedir(d);
    return found;
}

/* The path of zone NAME, spelled as the files are. */
static bool find_path(const char *name, char *path, size_t room)
{
    snprintf(path, room, "%s", ZONE_DIR);
    char part[64];
    while (*name != '\0') {
        size_t n = strcspn(name, "/");
        if (n == 0 || n >= sizeof(part) || name[0] == '.')
            return false;
        memcpy(part, name, n);
        part[n] = '\0';
        if (!find_component(path, room, part))
            return false;
        name += n + (name[n] == '/');
    }
    return true;
}

static struct pl_zone *load(const char *name)
{
    char path[256];
    if (!find_path(name, path, sizeof(path)))
        return NULL;
    FILE *f = fopen(path, "rbe");
    if (f == NULL)
        return NULL;
    uint8_t *data = malloc(MAX_FILE);
    size_t size = data == NULL ? 0 : fread(data, 1, MAX_FILE, f);
    fclose(f);
    struct pl_zone *z = calloc(1, sizeof(*z));
    if (z != NULL && data != NULL && read_zone(z, data, size)) {
        size_t n = strnlen(path + sizeof(ZONE_DIR), sizeof(z->name) - 1);
        memcpy(z->name, path + sizeof(ZONE_DIR), n);
    } else if (z != NULL) {
        zone_free(z);
        z = NULL;
    }
    free(data);
    return z;
}

/* -- the list ---------------------------------------------------------------------------------- */

static struct pl_zone *known(const char *name)
{
    for (struct pl_zone *z = atomic_load(&zones); z != NULL; z = z->next) {
        if (strcasecmp(z->name, name) == 0)
            return z;
    }
    return NULL;
}

/* Takes Z into the list, or drops it for the one that is there. */
static const struct pl_zone *publish(struct pl_zone *z)
{
    struct pl_zone *head = atomic_load(&zones);
    do {
        struct pl_zone *there = known(z->name);
        if (there != NULL || atomic_load(&zone_count) >= MAX_ZONES) {
            zone_free(z);
            return there;
        }
        z->next = head;
    } while (!atomic_compare_exchange_weak(&zones, &head, z));
    atomic_fetch_add(&zone_count, 1);
    return z;
}

const struct pl_zone *pl_zone_utc(void)
{
    return &utc_zone;
}

const struct pl_zone *pl_zone_fixed(int32_t seconds_east)
{
    char iso[16], name[64];
    int32_t s = seconds_east < 0 ? -seconds_east : seconds_east;
    int n = snprintf(iso, sizeof(iso), "%02d", s / 3600);
    if (s % 3600 != 0)
        n += snprintf(iso + n, sizeof(iso) - (size_t)n, ":%02d", s / 60 % 60);
    if (s % 60 != 0)
        snprintf(iso + n, sizeof(iso) - (size_t)n, ":%02d", s % 60);
    snprintf(name, sizeof(name), "<%c%s>%c%s", seconds_east < 0 ? '-' : '+', iso,
             seconds_east < 0 ? '+' : '-', iso);
    struct pl_zone *z = known(name);
    if (z != NULL)
        return z;
    z = calloc(1, sizeof(*z));
    if (z == NULL)
        return NULL;
    snprintf(z->name, sizeof(z->name), "%s", name);
    z->rule.present = true;
    z->rule.std.seconds_east = seconds_east;
    snprintf(z->rule.std.abbreviation, sizeof(z->rule.std.abbreviation), "%c%s",
             seconds_east < 0 ? '-' : '+', iso);
    return publish(z);
}

const struct pl_zone *pl_zone_find(bytes name)
{
    char text[64], *end;
    if (name.size == 0 || name.size >= sizeof(text))
        return NULL;
    for (size_t i = 0; i < name.size; i++)
        text[i] = (char)name.data[i];
    text[name.size] = '\0';
    if (strcasecmp(text, "UTC") == 0)
        return &utc_zone;
    struct pl_zone *z = known(text);
    if (z != NULL)
        return z;
    errno = 0;
    if (strspn(text, "+-0123456789.") == name.size) {
        double hours = strtod(text, &end);
        if (*end != '\0' || hours < -168 || hours > 168)
            return NULL;
        return pl_zone_fixed((int32_t)(hours * 3600));
    }
    z = load(text);
    if (z == NULL) {
        struct rule r;
        if (!parse_rule(text, &r) || (z = calloc(1, sizeof(*z))) == NULL)
            return NULL;
        for (size_t i = 0; text[i] != '\0'; i++)
            z->name[i] = (char)toupper((unsigned char)text[i]);
        z->rule = r;
    }
    return publish(z);
}

const char *pl_zone_name(const struct pl_zone *z)
{
    return z->name;
}

/* -- questions --------------------------------------------------------------------------------- */

/* The type that holds before the first transition: the first one that is not daylight time. */
static const struct zone_type *first_type(const struct pl_zone *z)
{
    for (unsigned i = 0; i < z->type_count; i++) {
        if (!z->types[i].dst)
            return &z->types[i];
    }
    return &z->types[0];
}

/* Index of the last transition at or before UTC, -1 if none. */
static int transition_before(const struct pl_zone *z, int64_t utc)
{
    unsigned lo = 0, hi = z->transition_count;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (z->moments[mid] <= utc)
            lo = mid + 1;
        else
            hi = mid;
    }
    return (int)lo - 1;
}

static const struct zone_type *type_at(const struct pl_zone *z, int64_t utc)
{
    int i = transition_before(z, utc);
    if (z->type_count == 0 || (z->rule.present && i + 1 == (int)z->transition_count && i >= 0))
        return rule_at(&z->rule, utc);
    if (i < 0)
        return z->transition_count == 0 && z->rule.present ? rule_at(&z->rule, utc) : first_type(z);
    return &z->types[z->types_at[i]];
}

struct pl_zone_offset pl_zone_at(const struct pl_zone *z, int64_t utc)
{
    const struct zone_type *t = type_at(z == NULL ? &utc_zone : z, utc);
    return (struct pl_zone_offset){
        .seconds_east = t->seconds_east, .dst = t->dst, .abbreviation = t->abbreviation};
}

struct pl_zone_offset pl_zone_at_local(const struct pl_zone *z, int64_t local)
{
    if (z == NULL)
        z = &utc_zone;
    /* Offsets a day before and a day behind: at most one transition lies between. */
    const struct zone_type *before = type_at(z, local - DAY), *after = type_at(z, local + DAY);
    const struct zone_type *t = before;
    if (before->seconds_east != after->seconds_east) {
        bool before_fits =
            type_at(z, local - before->seconds_east)->seconds_east == before->seconds_east;
        bool after_fits =
            type_at(z, local - after->seconds_east)->seconds_east == after->seconds_east;
        if (after_fits)
            t = after; /* also when both fit: the later reading */
        else if (before_fits)
            t = before;
    }
    int64_t utc = local - t->seconds_east;
    const struct zone_type *real = type_at(z, utc);
    if (real->seconds_east != t->seconds_east)
        real = t;
    return (struct pl_zone_offset){
        .seconds_east = real->seconds_east, .dst = real->dst, .abbreviation = real->abbreviation};
}

static bool same_abbreviation(const struct zone_type *t, bytes name)
{
    return strlen(t->abbreviation) == name.size && name.size > 0 &&
           strncasecmp(t->abbreviation, (const char *)name.data, name.size) == 0;
}

bool pl_zone_abbreviation(const struct pl_zone *z, bytes name, int32_t *seconds_east)
{
    if (z == NULL)
        z = &utc_zone;
    /* The latest use of an abbreviation wins. */
    const struct zone_type *found = NULL;
    for (unsigned i = 0; i < z->transition_count; i++) {
        if (same_abbreviation(&z->types[z->types_at[i]], name))
            found = &z->types[z->types_at[i]];
    }
    if (z->rule.present && same_abbreviation(&z->rule.std, name))
        found = &z->rule.std;
    else if (z->rule.present && z->rule.has_dst && same_abbreviation(&z->rule.dst, name))
        found = &z->rule.dst;
    if (found == NULL)
        return false;
    *seconds_east = found->seconds_east;
    return true;
}
