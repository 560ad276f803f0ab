/*
 * base/config.c — settings from file, environment and flags; the only door to inih.
 *
 * Vocabulary: a *setting* is a row of the caller's table; its *value* is kept as text (for SHOW)
 * and as a number (for reading). A *source* is where the value came from: "default", the file's
 * name, "environment", "command line".
 *
 * Invariants
 *   F1  Every value, the defaults too, passed parse_value: config_int and the others never fail.
 *   F2  A refused value leaves the one before in place.
 *
 * The order of precedence is the order of the calls: file, environment, flags. A setting's name in
 * the file is either dotted ("log.batch_bytes = 1MB") or split into section and key. A line that
 * begins with a blank goes on with the value of the line before.
 */
#include "base/config.h"
#include "base/assert.h"
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 128u
#define SOURCE_FLAG "command line"
#define SOURCE_ENVIRONMENT "environment"

extern char **environ;

#define LIST_MAX 1000u

struct line {
    char *text, *where;
};

struct value {
    char *text; /* CONFIG_LIST: the lines with semicolons between */
    int64_t number;
    const char *source; /* static, or the config's file name */
    struct line *lines; /* CONFIG_LIST */
    unsigned line_count;
};

struct config {
    const struct config_setting *settings;
    unsigned count;
    char *file;
    struct value *values;
    unsigned file_line; /* of the value that is being read; 0: it is none of the file's */
};

static const struct unit {
    const char *name;
    int64_t factor;
} size_units[] = {{"B", 1}, {"kB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {NULL, 0}},
  time_units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000}, {"min", 60000000}, {NULL, 0}},
  no_units[] = {{NULL, 0}};

static void *must(void *p)
{
    if (p == NULL) {
        fprintf(stderr, "metadb: out of memory (configuration)\n");
        abort();
    }
    return p;
}

static const struct unit *units_of(enum config_type type)
{
    if (type == CONFIG_SIZE)
        return size_units;
    return type == CONFIG_TIME_US ? time_units : no_units;
}

/* A whole number and, for sizes and times, a unit; without one the number counts bytes or us. */
static bool parse_number(const char *text, const struct unit *units, int64_t *out)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || errno != 0)
        return false;
    while (*end == ' ')
        end++;
    int64_t factor = *end == '\0' ? 1 : 0;
    for (const struct unit *u = units; u->name != NULL && factor == 0; u++) {
        if (strcmp(end, u->name) == 0)
            factor = u->factor;
    }
    return factor != 0 && !__builtin_mul_overflow((int64_t)n, factor, out);
}

static bool parse_bool(const char *text, int64_t *out)
{
    static const char *const yes[] = {"on", "true", "yes", "1"};
    static const char *const no[] = {"off", "false", "no", "0"};
    for (unsigned i = 0; i < ARRAY_LEN(yes); i++) {
        if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
            *out = strcasecmp(text, yes[i]) == 0;
            return true;
        }
    }
    return false;
}

/* TEXT as the position of a choice in "a|b|c". */
static bool parse_choice(const char *text, const char *choices, int64_t *out)
{
    size_t n = strlen(text);
    int64_t at = 0;
    for (const char *c = choices; c != NULL; at++) {
        const char *bar = strchr(c, '|');
        size_t length = bar != NULL ? (size_t)(bar - c) : strlen(c);
        if (length == n && memcmp(c, text, n) == 0) {
            *out = at;
            return true;
        }
        c = bar != NULL ? bar + 1 : NULL;
    }
    return false;
}

static status parse_value(const struct config_setting *s, const char *text, int64_t *out,
                          struct err *err)
{
    *out = 0;
    switch (s->type) {
    case CONFIG_STRING:
    case CONFIG_LIST: return ST_OK;
    case CONFIG_BOOL:
        if (!parse_bool(text, out))
            return err_set(err, ST_INVALID, "setting \"%s\": \"%s\" is not on or off", s->name,
                           text);
        return ST_OK;
    case CONFIG_ENUM:
        if (!parse_choice(text, s->choices, out))
            return err_set(err, ST_INVALID, "setting \"%s\": \"%s\" is not one of %s", s->name,
                           text, s->choices);
        return ST_OK;
    case CONFIG_INT:
    case CONFIG_SIZE:
    case CONFIG_TIME_US: break;
    }
    if (!parse_number(text, units_of(s->type), out)) {
        static const char *const wants[] = {[CONFIG_INT] = "a whole number",
                                            [CONFIG_SIZE] = "a size in B, kB, MB or GB",
                                            [CONFIG_TIME_US] = "a time in us, ms, s or min"};
        return err_set(err, ST_INVALID, "setting \"%s\": \"%s\" is not %s", s->name, text,
                       wants[s->type]);
    }
    bool bounded = s->min != 0 || s->max != 0;
    if (bounded && (*out < s->min || *out > s->max))
        return err_set(err, ST_INVALID, "setting \"%s\": \"%s\" is outside the range %lld to %lld",
                       s->name, text, (long long)s->min, (long long)s->max);
    return ST_OK;
}

static struct value *find(const struct config *c, const char *name, const struct config_setting **s)
{
    for (unsigned i = 0; i < c->count; i++) {
        if (strcmp(c->settings[i].name, name) == 0) {
            *s = &c->settings[i];
            return &c->values[i];
        }
    }
    return NULL;
}

static void forget_lines(struct value *v)
{
    for (unsigned i = 0; i < v->line_count; i++) {
        free(v->lines[i].text);
        free(v->lines[i].where);
    }
    free(v->lines);
    v->lines = NULL;
    v->line_count = 0;
}

static status add_line(struct config *c, const struct config_setting *s, struct value *v,
                       const char *text, const char *source, struct err *err)
{
    char *all = NULL, *where = NULL;
    if (v->source != source) {
        forget_lines(v);
        v->text[0] = '\0';
    }
    v->source = source;
    if (text[0] == '\0')
        return ST_OK;
    if (v->line_count == LIST_MAX)
        return err_set(err, ST_INVALID, "setting \"%s\" has more than %u lines", s->name, LIST_MAX);
    v->lines = must(realloc(v->lines, (v->line_count + 1) * sizeof *v->lines));
    int n = c->file_line > 0 ? asprintf(&where, "%s:%u", source, c->file_line)
                             : asprintf(&where, "%s", source);
    must(n < 0 ? NULL : where);
    v->lines[v->line_count++] = (struct line){.text = must(strdup(text)), .where = where};
    n = asprintf(&all, "%s%s%s", v->text, v->text[0] != '\0' ? "; " : "", text);
    must(n < 0 ? NULL : all);
    free(v->text);
    v->text = all;
    return ST_OK;
}

static status set_value(struct config *c, const char *name, const char *text, const char *source,
                        struct err *err)
{
    const struct config_setting *s = NULL;
    struct value *v = find(c, name, &s);
    if (v == NULL)
        return err_set(err, ST_INVALID, "unknown setting \"%s\" (%s)", name, source);
    int64_t number;
    status st = parse_value(s, text, &number, err);
    if (st != ST_OK) {
        err_detail(err, "It comes from: %s.", source);
        return st;
    }
    if (s->type == CONFIG_LIST && v->text != NULL)
        return add_line(c, s, v, text, source, err);
    char *copy = must(strdup(text));
    free(v->text);
    *v = (struct value){.text = copy, .number = number, .source = source};
    return ST_OK;
}

struct config *config_new(const struct config_setting *settings, unsigned count)
{
    struct config *c = must(calloc(1, sizeof *c));
    c->settings = settings;
    c->count = count;
    c->values = must(calloc(count > 0 ? count : 1, sizeof *c->values));
    for (unsigned i = 0; i < count; i++) {
        struct err err = {0};
        status st = set_value(c, settings[i].name, settings[i].def, "default", &err);
        ASSERT(st == ST_OK);
        ASSERT(strlen(settings[i].name) < NAME_BYTES);
    }
    return c;
}

void config_free(struct config *c)
{
    if (c == NULL)
        return;
    for (unsigned i = 0; i < c->count; i++) {
        free(c->values[i].text);
        forget_lines(&c->values[i]);
    }
    free(c->values);
    free(c->file);
    free(c);
}

struct file_load {
    struct config *config;
    struct err *err;
    FILE *file;
    status st;      /* of the first error */
    bool long_line; /* inih would cut it silently */
    bool continued; /* the line begins with a blank: it goes on with the value before */
    char last[NAME_BYTES * 2];
};

/* VALUE goes on with what the line before gave NAME; of a list it is the next item. */
static status append_value(struct file_load *load, const char *name, const char *value)
{
    const struct config_setting *s = NULL;
    const struct value *v = find(load->config, name, &s);
    if (v == NULL)
        return err_set(load->err, ST_INVALID, "unknown setting \"%s\"", name);
    if (s->type == CONFIG_LIST)
        return set_value(load->config, name, value, load->config->file, load->err);
    size_t size = strlen(v->text) + strlen(value) + 2;
    char *joined = must(malloc(size));
    snprintf(joined, size, "%s %s", v->text, value);
    status st = set_value(load->config, name, joined, load->config->file, load->err);
    free(joined);
    return st;
}

static int on_file_line(void *user, const char *section, const char *key, const char *value)
{
    struct file_load *load = user;
    if (load->st != ST_OK)
        return 0;
    char name[NAME_BYTES * 2];
    int n = snprintf(name, sizeof name, "%s%s%s", section, section[0] != '\0' ? "." : "", key);
    if (n < 0 || (size_t)n >= sizeof name)
        load->st = err_set(load->err, ST_INVALID, "unknown setting \"%s\"", name);
    else if (load->continued && strcmp(name, load->last) == 0)
        load->st = append_value(load, name, value);
    else
        load->st = set_value(load->config, name, value, load->config->file, load->err);
    snprintf(load->last, sizeof load->last, "%s", name);
    return load->st == ST_OK;
}

static char *read_line(char *line, int size, void *stream)
{
    struct file_load *load = stream;
    load->config->file_line++;
    char *r = fgets(line, size, load->file);
    if (r != NULL && strlen(line) == (size_t)size - 1 && line[size - 2] != '\n')
        load->long_line = true;
    load->continued = r != NULL && (line[0] == ' ' || line[0] == '\t');
    return r;
}

status config_load_file(struct config *c, const char *path, struct err *err)
{
    struct file_load load = {.config = c, .err = err, .st = ST_OK, .file = fopen(path, "re")};
    if (load.file == NULL)
        return err_set(err, errno == ENOENT ? ST_NOT_FOUND : ST_IO,
                       "could not open configuration file \"%s\": %s", path,
                       strerrordesc_np(errno));
    ASSERT(c->file == NULL); /* values point at it as their source */
    c->file = must(strdup(path));
    /* The callbacks share one pointer: read_line's stream and on_file_line's user are the load. */
    int line = ini_parse_stream(read_line, &load, on_file_line, &load);
    fclose(load.file);
    c->file_line = 0;
    if (load.long_line)
        return err_set(err, ST_INVALID, "configuration file \"%s\" has a line over %d bytes", path,
                       INI_MAX_LINE - 3);
    if (load.st != ST_OK) {
        err_detail(err, "It comes from: %s, line %d.", path, line);
        return load.st;
    }
    if (line != 0)
        return err_set(err, ST_INVALID,
                       "configuration file \"%s\", line %d: neither a [section] nor name = value",
                       path, line);
    return ST_OK;
}

/* "log.batch_bytes" from "LOG_BATCH_BYTES": compared setting by setting, because both '.' and '_'
 * are '_' there. */
static const struct config_setting *find_by_environment(const struct config *c, const char *name,
                                                        size_t size)
{
    for (unsigned i = 0; i < c->count; i++) {
        const char *s = c->settings[i].name;
        size_t at = 0;
        while (at < size && s[at] != '\0' &&
               name[at] == (s[at] == '.' ? '_' : (char)toupper((unsigned char)s[at])))
            at++;
        if (at == size && s[at] == '\0')
            return &c->settings[i];
    }
    return NULL;
}

static bool is_reserved(const char *name)
{
    return strncmp(name, "FAULT", 5) == 0 || strncmp(name, "TEST", 4) == 0;
}

status config_load_environment(struct config *c, struct err *err)
{
    static const char prefix[] = "METADB_";
    for (char **e = environ; *e != NULL; e++) {
        const char *equals = strchr(*e, '=');
        if (equals == NULL || strncmp(*e, prefix, sizeof prefix - 1) != 0)
            continue;
        const char *name = *e + sizeof prefix - 1;
        if (is_reserved(name))
            continue;
        const struct config_setting *s = find_by_environment(c, name, (size_t)(equals - name));
        if (s == NULL)
            return err_set(err, ST_INVALID, "unknown setting \"%.*s\" (environment)",
                           (int)(equals - *e), *e);
        ST_TRY(set_value(c, s->name, equals + 1, SOURCE_ENVIRONMENT, err));
    }
    return ST_OK;
}

status config_set(struct config *c, const char *name, const char *value, struct err *err)
{
    if (value != NULL)
        return set_value(c, name, value, SOURCE_FLAG, err);
    const char *equals = strchr(name, '=');
    if (equals == NULL)
        return err_set(err, ST_INVALID, "setting \"%s\" has no value", name);
    char key[NAME_BYTES * 2];
    snprintf(key, sizeof key, "%.*s", (int)(equals - name), name);
    return set_value(c, key, equals + 1, SOURCE_FLAG, err);
}

static const struct value *must_find(const struct config *c, const char *name, bool text)
{
    const struct config_setting *s = NULL;
    const struct value *v = find(c, name, &s);
    ASSERT(v != NULL);
    ASSERT((s->type == CONFIG_STRING || s->type == CONFIG_ENUM) == text);
    ASSERT(s->type != CONFIG_LIST);
    return v;
}

const char *config_list(const struct config *c, const char *name, unsigned i, const char **where)
{
    const struct config_setting *s = NULL;
    const struct value *v = find(c, name, &s);
    ASSERT(v != NULL);
    ASSERT(s->type == CONFIG_LIST);
    if (i >= v->line_count)
        return NULL;
    *where = v->lines[i].where;
    return v->lines[i].text;
}

bool config_bool(const struct config *c, const char *name)
{
    return must_find(c, name, false)->number != 0;
}

int64_t config_int(const struct config *c, const char *name)
{
    return must_find(c, name, false)->number;
}

const char *config_string(const struct config *c, const char *name)
{
    return must_find(c, name, true)->text;
}

void config_each(const struct config *c,
                 void (*fn)(void *, const struct config_setting *, const char *value,
                            const char *source),
                 void *arg)
{
    for (unsigned i = 0; i < c->count; i++)
        fn(arg, &c->settings[i], c->values[i].text, c->values[i].source);
}
