/*
 * planner/relations/match.c — LIKE and regular expressions, and what is done with matches.
 *
 * LIKE is PostgreSQL's: case matters, backslash escapes. Regular expressions are POSIX extended
 * ones (regexec), which covers what clients send about catalogues: ^(name)$, classes, alternatives,
 * groups. A client chooses the expression, so its cost is bounded here:
 *
 * I1. A pattern has at most REGEX_BYTES_MAX bytes, at most one counted repetition {m,n} with n at
 *     most REGEX_REPEAT_MAX, and no back reference; matching is then linear in the text for each
 *     state of a small automaton.
 * I2. Where positions are asked for, which costs memory by text and states, the text has at most
 *     REGEX_TEXT_MAX bytes.
 */
#include "planner/relations/pg_rows.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>

#define REGEX_BYTES_MAX 1024u
#define REGEX_REPEAT_MAX 64
#define REGEX_CACHE 8u
#define REGEX_TEXT_MAX (64u * 1024u)
#define REGEX_GROUPS_MAX 10u                /* the whole match and \1 to \9 */
#define LIKE_WORK_MAX (16u * 1024u * 1024u) /* bytes of the text times bytes of the pattern */

struct rel_regex {
    bytes pattern;
    bool ignore_case;
    regex_t compiled;
};

/* ---- LIKE ---- */

static bool same_byte(uint8_t a, uint8_t b, bool ignore_case)
{
    return a == b || (ignore_case && tolower(a) == tolower(b));
}

/* Greedy with one point of return: the last '%' seen. */
static bool like(bytes text, bytes pattern, bool ignore_case)
{
    size_t t = 0, p = 0, star = SIZE_MAX, mark = 0;
    while (t < text.size) {
        bool escaped = p + 1 < pattern.size && pattern.data[p] == '\\';
        if (p < pattern.size && !escaped && pattern.data[p] == '%') {
            star = ++p;
            mark = t;
        } else if (p < pattern.size && !escaped && pattern.data[p] == '_') {
            p++;
            t += rel__utf8_step(text, t);
        } else if (p < pattern.size &&
                   same_byte(pattern.data[p + escaped], text.data[t], ignore_case)) {
            p += 1u + escaped;
            t++;
        } else if (star != SIZE_MAX) {
            p = star;
            mark += rel__utf8_step(text, mark);
            t = mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size && pattern.data[p] == '%')
        p++;
    return p == pattern.size;
}

static bool fn_like(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    bytes text = rel_cell_text(env, &args[0]), pattern = rel_cell_text(env, &args[1]);
    if (pattern.size > 0 && text.size > LIKE_WORK_MAX / pattern.size)
        return rel_fail(env, ST_LIMIT, "54000", "text and pattern of LIKE are too long");
    *out = cell_int(like(text, pattern, args[2].i != 0));
    return true;
}

/* Rewrites a pattern with another escape character to one with backslash. */
static bool fn_like_escape(struct rel_env *env, const struct cell *args, unsigned count,
                           struct cell *out)
{
    UNUSED(count);
    bytes p = rel_cell_text(env, &args[0]), e = rel_cell_text(env, &args[1]);
    if (e.size > 1)
        return rel_fail(env, ST_INVALID, "22019", "invalid escape string");
    uint8_t *to = arena_alloc(env->arena, p.size * 2 + 1);
    size_t n = 0;
    for (size_t i = 0; i < p.size; i++) {
        if (e.size == 1 && p.data[i] == e.data[0] && i + 1 < p.size) {
            to[n++] = '\\';
            to[n++] = p.data[++i];
            continue;
        }
        if (p.data[i] == '\\')
            to[n++] = '\\';
        to[n++] = p.data[i];
    }
    *out = cell_bytes(bytes_make(to, n));
    return true;
}

/* ---- regular expressions ---- */

/* I1. */
static bool regex_is_tame(bytes p)
{
    unsigned repeats = 0;
    bool in_class = false;
    for (size_t i = 0; i < p.size; i++) {
        uint8_t ch = p.data[i];
        if (ch == '\\' && !in_class) {
            if (i + 1 < p.size && isdigit(p.data[i + 1]))
                return false;
            i++;
        } else if (ch == '[' && !in_class) {
            in_class = true;
            i += i + 1 < p.size && p.data[i + 1] == '^';
            i += i + 1 < p.size && p.data[i + 1] == ']';
        } else if (ch == ']') {
            in_class = false;
        } else if (ch == '{' && !in_class) {
            char *end;
            long low = strtol((const char *)p.data + i + 1, &end, 10);
            long high = *end == ',' ? strtol(end + 1, NULL, 10) : low;
            if (++repeats > 1 || low > REGEX_REPEAT_MAX || high > REGEX_REPEAT_MAX)
                return false;
        }
    }
    return true;
}

/* Classes of PostgreSQL's own syntax that POSIX lacks. */
static const char *to_posix(struct arena *a, bytes p)
{
    static const struct {
        char letter;
        const char *class;
    } classes[] = {{'d', "[0-9]"},  {'w', "[A-Za-z0-9_]"},  {'s', "[[:space:]]"},
                   {'D', "[^0-9]"}, {'W', "[^A-Za-z0-9_]"}, {'S', "[^[:space:]]"}};
    char *out = arena_alloc(a, p.size * 16 + 1);
    size_t n = 0;
    for (size_t i = 0; i < p.size; i++) {
        const char *class = NULL;
        if (p.data[i] == '\\' && i + 1 < p.size)
            for (unsigned k = 0; k < ARRAY_LEN(classes); k++)
                if (classes[k].letter == (char)p.data[i + 1])
                    class = classes[k].class;
        if (class) {
            memcpy(out + n, class, strlen(class));
            n += strlen(class);
            i++;
            continue;
        }
        out[n++] = (char)p.data[i];
        if (p.data[i] == '\\' && i + 1 < p.size)
            out[n++] = (char)p.data[++i];
        else if (p.data[i] == '(' && i + 2 < p.size && p.data[i + 1] == '?' && p.data[i + 2] == ':')
            i += 2; /* a group that does not capture */
    }
    out[n] = 0;
    return out;
}

static struct rel_regex *regex_find(struct rel_env *env, bytes pattern, bool ignore_case)
{
    if (!env->regexes)
        env->regexes = ARENA_ARRAY(env->keep, struct rel_regex, REGEX_CACHE);
    for (unsigned i = 0; i < env->regex_count; i++)
        if (env->regexes[i].ignore_case == ignore_case &&
            bytes_eq(env->regexes[i].pattern, pattern))
            return &env->regexes[i];
    const char *text = arena_strdup(env->keep, pattern);
    if (pattern.size > REGEX_BYTES_MAX || !regex_is_tame(bytes_str(text))) {
        (void)rel_fail(env, ST_UNSUPPORTED, "0A000",
                       "regular expression is too long or too complex");
        return NULL;
    }
    if (env->regex_count == REGEX_CACHE) {
        regfree(&env->regexes[0].compiled);
        memmove(&env->regexes[0], &env->regexes[1], sizeof(env->regexes[0]) * (REGEX_CACHE - 1));
        env->regex_count--;
    }
    struct rel_regex *r = &env->regexes[env->regex_count];
    int code = regcomp(&r->compiled, to_posix(env->arena, pattern),
                       REG_EXTENDED | (ignore_case ? REG_ICASE : 0));
    if (code != 0) {
        (void)rel_fail(env, ST_INVALID, "2201B", "invalid regular expression: %s", text);
        return NULL;
    }
    r->pattern = bytes_str(text);
    r->ignore_case = ignore_case;
    env->regex_count++;
    return r;
}

void rel_regexes_free(struct rel_env *env)
{
    for (unsigned i = 0; i < env->regex_count; i++)
        regfree(&env->regexes[i].compiled);
    env->regex_count = 0;
}

static bool fn_regex(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    struct rel_regex *r = regex_find(env, rel_cell_text(env, &args[1]), args[2].i != 0);
    if (!r)
        return false;
    *out = cell_int(regexec(&r->compiled, rel_cell_str(env, &args[0]), 0, NULL, 0) == 0);
    return true;
}

/* ---- matches and their parts ---- */

struct match {
    const regex_t *compiled;
    bytes text;
    regmatch_t groups[REGEX_GROUPS_MAX];
};

/* "i" and "g" are known; others would change what matches. */
static bool read_flags(struct rel_env *env, const struct cell *flags, bool *ignore_case, bool *all)
{
    *ignore_case = *all = false;
    bytes f = flags ? rel_cell_text(env, flags) : BYTES_EMPTY;
    for (size_t i = 0; i < f.size; i++) {
        if (f.data[i] == 'i')
            *ignore_case = true;
        else if (f.data[i] == 'g')
            *all = true;
        else if (f.data[i] != 'c')
            return rel_fail(env, ST_UNSUPPORTED, "0A000",
                            "regular expression option \"%c\" is not supported here", f.data[i]);
    }
    return true;
}

static bool match_open(struct rel_env *env, const struct cell *text, const struct cell *pattern,
                       bool ignore_case, struct match *m)
{
    m->text = bytes_str(rel_cell_str(env, text));
    if (m->text.size > REGEX_TEXT_MAX)
        return rel_fail(env, ST_LIMIT, "54000", "text of a regular expression is too long");
    if (strstr(rel_cell_str(env, pattern), "(?:"))
        return rel_fail(env, ST_UNSUPPORTED, "0A000",
                        "groups that do not capture are not supported here");
    struct rel_regex *r = regex_find(env, rel_cell_text(env, pattern), ignore_case);
    m->compiled = r ? &r->compiled : NULL;
    return r != NULL;
}

/* The first match at or behind FROM; positions are of the whole text. */
static bool match_from(struct match *m, size_t from)
{
    const char *start = (const char *)m->text.data + from;
    if (regexec(m->compiled, start, REGEX_GROUPS_MAX, m->groups, from > 0 ? REG_NOTBOL : 0) != 0)
        return false;
    for (unsigned i = 0; i < REGEX_GROUPS_MAX; i++)
        if (m->groups[i].rm_so >= 0) {
            m->groups[i].rm_so += (regoff_t)from;
            m->groups[i].rm_eo += (regoff_t)from;
        }
    return true;
}

static unsigned group_count(const struct match *m)
{
    size_t n = m->compiled->re_nsub;
    return n < REGEX_GROUPS_MAX ? (unsigned)n : REGEX_GROUPS_MAX - 1;
}

static struct cell group(const struct match *m, unsigned i)
{
    if (m->groups[i].rm_so < 0)
        return cell_null();
    size_t from = (size_t)m->groups[i].rm_so, to = (size_t)m->groups[i].rm_eo;
    return cell_bytes(bytes_make(m->text.data + from, to - from));
}

/* Where to look on behind a match: an empty one is stepped over. */
static size_t match_next(const struct match *m)
{
    size_t end = (size_t)m->groups[0].rm_eo;
    return m->groups[0].rm_so == m->groups[0].rm_eo && end < m->text.size
               ? end + rel__utf8_step(m->text, end)
               : end + (m->groups[0].rm_so == m->groups[0].rm_eo);
}

/* substring(text from pattern): its first group, or all of it. */
static bool fn_substring_match(struct rel_env *env, const struct cell *args, unsigned count,
                               struct cell *out)
{
    UNUSED(count);
    struct match m;
    if (!match_open(env, &args[0], &args[1], false, &m))
        return false;
    *out = match_from(&m, 0) ? group(&m, group_count(&m) > 0) : cell_null();
    return true;
}

/* \1 to \9, \& and \\ in a replacement. */
static void put_replacement(struct obuf *o, const struct match *m, bytes by)
{
    for (size_t i = 0; i < by.size; i++) {
        uint8_t next = by.data[i] == '\\' && i + 1 < by.size ? by.data[i + 1] : 0;
        struct cell part = next == '&'                  ? group(m, 0)
                           : next >= '1' && next <= '9' ? group(m, next - (unsigned)'0')
                                                        : cell_null();
        if (next == '&' || (next >= '1' && next <= '9')) {
            if (part.kind == CELL_TEXT)
                obuf_put(o, part.b.data, part.b.size);
            i++;
        } else {
            obuf_u8(o, by.data[i]);
            i += next == '\\';
        }
    }
}

static bool fn_regexp_replace(struct rel_env *env, const struct cell *args, unsigned count,
                              struct cell *out)
{
    bool ignore_case, all;
    struct match m;
    if (!read_flags(env, count > 3 ? &args[3] : NULL, &ignore_case, &all) ||
        !match_open(env, &args[0], &args[1], ignore_case, &m))
        return false;
    bytes by = rel_cell_text(env, &args[2]);
    struct obuf o;
    obuf_init(&o);
    size_t kept = 0, at = 0;
    while (at <= m.text.size && o.size <= REL_RESULT_BYTES_MAX && match_from(&m, at)) {
        obuf_put(&o, m.text.data + kept, (size_t)m.groups[0].rm_so - kept);
        put_replacement(&o, &m, by);
        kept = (size_t)m.groups[0].rm_eo;
        at = match_next(&m);
        if (!all)
            break;
    }
    obuf_put(&o, m.text.data + kept, m.text.size - kept);
    bool ok = o.size <= REL_RESULT_BYTES_MAX || rel__too_long(env);
    if (ok)
        *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return ok;
}

/* (text, pattern [, flags]), where 'g' says nothing. */
static bool open_flagged(struct rel_env *env, const struct cell *args, unsigned count,
                         struct match *out)
{
    bool ignore_case, all;
    return read_flags(env, count > 2 ? &args[2] : NULL, &ignore_case, &all) &&
           match_open(env, &args[0], &args[1], ignore_case, out);
}

static bool fn_regexp_match(struct rel_env *env, const struct cell *args, unsigned count,
                            struct cell *out)
{
    struct match m;
    if (!open_flagged(env, args, count, &m))
        return false;
    *out = cell_null();
    if (!match_from(&m, 0))
        return true;
    struct cell parts[REGEX_GROUPS_MAX];
    unsigned n = group_count(&m);
    for (unsigned i = 0; i < (n ? n : 1); i++)
        parts[i] = group(&m, n ? i + 1 : 0);
    *out = cell_bytes(rel_array_format(env->arena, parts, n ? n : 1));
    return true;
}

static bool fn_regexp_split(struct rel_env *env, const struct cell *args, unsigned count,
                            struct cell *out)
{
    struct match m;
    if (!open_flagged(env, args, count, &m))
        return false;
    unsigned n = 0, capacity = 0;
    struct cell *parts = arena_grow(env->arena, NULL, sizeof(*parts), &capacity, 16);
    size_t kept = 0, at = 0;
    while (at < m.text.size && match_from(&m, at)) {
        at = match_next(&m);
        if (m.groups[0].rm_eo == m.groups[0].rm_so && (size_t)m.groups[0].rm_so <= kept)
            continue; /* an empty match where a part begins divides nothing */
        if (n + 1 >= capacity)
            parts = arena_grow(env->arena, parts, sizeof(*parts), &capacity, 16);
        parts[n++] = cell_bytes(bytes_make(m.text.data + kept, (size_t)m.groups[0].rm_so - kept));
        kept = (size_t)m.groups[0].rm_eo;
    }
    parts[n++] = cell_bytes(bytes_make(m.text.data + kept, m.text.size - kept));
    *out = cell_bytes(rel_array_format(env->arena, parts, n));
    return true;
}

const struct rel_function rel_match_functions[] = {
    {REL_FN_LIKE, "tti", OID_BOOL, false, fn_like},
    {REL_FN_REGEX, "tti", OID_BOOL, false, fn_regex},
    {REL_FN_SUBSTRING_MATCH, "tt", OID_TEXT, false, fn_substring_match},
    {"like_escape", "tt", OID_TEXT, false, fn_like_escape},
    {"regexp_replace", "ttt?t", OID_TEXT, false, fn_regexp_replace},
    {"regexp_match", "tt?t", OID_TEXT_ARRAY, false, fn_regexp_match},
    {"regexp_split_to_array", "tt?t", OID_TEXT_ARRAY, false, fn_regexp_split},
};
const unsigned rel_match_function_count = ARRAY_LEN(rel_match_functions);
