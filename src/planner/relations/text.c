/*
 * planner/relations/text.c — functions over text and numbers.
 *
 * Patterns. LIKE is PostgreSQL's: case matters, backslash escapes. Regular expressions are POSIX
 * extended ones (regexec), which covers what clients send about catalogues: ^(name)$, classes,
 * alternatives. A client chooses the expression, so its cost is bounded here:
 *
 * I1. A pattern has at most REGEX_BYTES_MAX bytes, at most one counted repetition {m,n} with n at
 *     most REGEX_REPEAT_MAX, and no back reference; matching is then linear in the text for each
 *     state of a small automaton.
 */
#include "planner/relations/pg_rows.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>

#define REGEX_BYTES_MAX 1024u
#define REGEX_REPEAT_MAX 64
#define REGEX_CACHE 8u
#define LIKE_WORK_MAX (16u * 1024u * 1024u) /* bytes of the text times bytes of the pattern */
#define RESULT_BYTES_MAX (1024u * 1024u)

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

static size_t utf8_step(bytes t, size_t at)
{
    size_t n = 1;
    while (at + n < t.size && (t.data[at + n] & 0xc0) == 0x80)
        n++;
    return n;
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
            t += utf8_step(text, t);
        } else if (p < pattern.size &&
                   same_byte(pattern.data[p + escaped], text.data[t], ignore_case)) {
            p += 1u + escaped;
            t++;
        } else if (star != SIZE_MAX) {
            p = star;
            mark += utf8_step(text, mark);
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
                       REG_EXTENDED | REG_NOSUB | (ignore_case ? REG_ICASE : 0));
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

/* ---- numbers ---- */

static bool fn_divide(struct rel_env *env, const struct cell *args, unsigned count,
                      struct cell *out)
{
    UNUSED(count);
    bool real = args[0].kind == CELL_REAL || args[1].kind == CELL_REAL;
    double x = args[0].kind == CELL_REAL ? args[0].d : (double)args[0].i;
    double y = args[1].kind == CELL_REAL ? args[1].d : (double)args[1].i;
    if (real ? !(y < 0 || y > 0) : args[1].i == 0)
        return rel_fail(env, ST_INVALID, "22012", "division by zero");
    if (real)
        *out = cell_real(x / y);
    else if (args[1].i == -1)
        *out = cell_int((int64_t)(0 - (uint64_t)args[0].i));
    else
        *out = cell_int(args[0].i / args[1].i);
    return true;
}

static bool fn_modulo(struct rel_env *env, const struct cell *args, unsigned count,
                      struct cell *out)
{
    UNUSED(count);
    if (args[0].kind != CELL_INT || args[1].kind != CELL_INT || args[1].i == 0)
        return rel_fail(env, ST_INVALID, "22012", "division by zero");
    *out = cell_int(args[1].i == -1 ? 0 : args[0].i % args[1].i);
    return true;
}

static bool fn_abs(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(env);
    UNUSED(count);
    *out = args[0];
    if (args[0].kind == CELL_INT && args[0].i < 0)
        *out = cell_int((int64_t)(0 - (uint64_t)args[0].i));
    else if (args[0].kind == CELL_REAL && args[0].d < 0)
        *out = cell_real(-args[0].d);
    return true;
}

/* ---- characters ---- */

static size_t characters(bytes t)
{
    size_t n = 0;
    for (size_t i = 0; i < t.size; i++)
        n += (t.data[i] & 0xc0) != 0x80;
    return n;
}

/* Byte position of the character with this number, from 0; the end if there are fewer. */
static size_t offset_of(bytes t, size_t character)
{
    size_t at = 0;
    while (at < t.size && character-- > 0)
        at += utf8_step(t, at);
    return at;
}

static bool fn_length(struct rel_env *env, const struct cell *args, unsigned count,
                      struct cell *out)
{
    UNUSED(count);
    *out = cell_int((int64_t)characters(rel_cell_text(env, &args[0])));
    return true;
}

static bool fn_octet_length(struct rel_env *env, const struct cell *args, unsigned count,
                            struct cell *out)
{
    UNUSED(count);
    *out = cell_int((int64_t)rel_cell_text(env, &args[0]).size);
    return true;
}

/* Positions count from 1 and may lie before the text; the length counts from there. */
static bool fn_substring(struct rel_env *env, const struct cell *args, unsigned count,
                         struct cell *out)
{
    bytes t = rel_cell_text(env, &args[0]);
    if (args[1].kind != CELL_INT)
        return rel_fail(env, ST_UNSUPPORTED, "0A000",
                        "substring with a pattern is not supported here");
    int64_t from, size = (int64_t)characters(t), to = size;
    if (__builtin_sub_overflow(args[1].i, 1, &from))
        from = INT64_MIN;
    if (count > 2) {
        if (args[2].i < 0)
            return rel_fail(env, ST_INVALID, "22011", "negative substring length not allowed");
        if (__builtin_add_overflow(from, args[2].i, &to) || to > size)
            to = size;
    }
    from = from < 0 ? 0 : from;
    if (from >= to) {
        *out = cell_bytes(BYTES_LIT(""));
        return true;
    }
    size_t a = offset_of(t, (size_t)from), b = offset_of(t, (size_t)to);
    *out = cell_bytes(bytes_make(t.data + a, b - a));
    return true;
}

static bool change_case(struct rel_env *env, const struct cell *args, int (*to)(int),
                        struct cell *out)
{
    bytes t = rel_cell_text(env, &args[0]);
    uint8_t *copy = arena_alloc(env->arena, t.size + 1);
    for (size_t i = 0; i < t.size; i++)
        copy[i] = t.data[i] < 0x80 ? (uint8_t)to(t.data[i]) : t.data[i];
    *out = cell_bytes(bytes_make(copy, t.size));
    return true;
}
static bool fn_lower(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    return change_case(env, args, tolower, out);
}
static bool fn_upper(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    return change_case(env, args, toupper, out);
}

static bytes trim(bytes t, bytes set, bool left, bool right)
{
    while (left && t.size > 0 && set.size > 0 && memchr(set.data, t.data[0], set.size))
        t = bytes_make(t.data + 1, t.size - 1);
    while (right && t.size > 0 && set.size > 0 && memchr(set.data, t.data[t.size - 1], set.size))
        t.size--;
    return t;
}
static bytes trim_set(struct rel_env *env, const struct cell *args, unsigned count)
{
    return count > 1 ? rel_cell_text(env, &args[1]) : BYTES_LIT(" ");
}
static bool fn_btrim(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    *out = cell_bytes(trim(rel_cell_text(env, &args[0]), trim_set(env, args, count), true, true));
    return true;
}
static bool fn_ltrim(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    *out = cell_bytes(trim(rel_cell_text(env, &args[0]), trim_set(env, args, count), true, false));
    return true;
}
static bool fn_rtrim(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    *out = cell_bytes(trim(rel_cell_text(env, &args[0]), trim_set(env, args, count), false, true));
    return true;
}

static bool too_long(struct rel_env *env)
{
    return rel_fail(env, ST_LIMIT, "54000",
                    "result of a catalogue function is longer than %u bytes", RESULT_BYTES_MAX);
}

static const uint8_t *find(bytes t, size_t from, bytes what)
{
    if (what.size == 0 || from > t.size)
        return NULL;
    return memmem(t.data + from, t.size - from, what.data, what.size);
}

static bool fn_replace(struct rel_env *env, const struct cell *args, unsigned count,
                       struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]), from = rel_cell_text(env, &args[1]),
          to = rel_cell_text(env, &args[2]);
    struct obuf o;
    obuf_init(&o);
    size_t at = 0;
    const uint8_t *hit;
    while ((hit = find(t, at, from)) != NULL && o.size <= RESULT_BYTES_MAX) {
        obuf_put(&o, t.data + at, (size_t)(hit - t.data) - at);
        obuf_put(&o, to.data, to.size);
        at = (size_t)(hit - t.data) + from.size;
    }
    obuf_put(&o, t.data + at, t.size - at);
    bool ok = o.size <= RESULT_BYTES_MAX || too_long(env);
    if (ok)
        *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return ok;
}

static bool fn_position(struct rel_env *env, const struct cell *args, unsigned count,
                        struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]), what = rel_cell_text(env, &args[1]);
    const uint8_t *hit = find(t, 0, what);
    int64_t none = what.size == 0;
    *out =
        cell_int(hit ? (int64_t)characters(bytes_make(t.data, (size_t)(hit - t.data))) + 1 : none);
    return true;
}

static bool fn_starts_with(struct rel_env *env, const struct cell *args, unsigned count,
                           struct cell *out)
{
    UNUSED(count);
    *out = cell_int(bytes_has_prefix(rel_cell_text(env, &args[0]), rel_cell_text(env, &args[1])));
    return true;
}

static bool fn_split_part(struct rel_env *env, const struct cell *args, unsigned count,
                          struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]), by = rel_cell_text(env, &args[1]);
    if (args[2].i < 1)
        return rel_fail(env, ST_UNSUPPORTED, "0A000", "split_part counts fields from 1 here");
    *out = cell_bytes(BYTES_LIT(""));
    size_t at = 0;
    for (int64_t i = 1; i < args[2].i; i++) {
        const uint8_t *hit = find(t, at, by);
        if (!hit)
            return true;
        at = (size_t)(hit - t.data) + by.size;
    }
    const uint8_t *end = find(t, at, by);
    *out = cell_bytes(bytes_make(t.data + at, end ? (size_t)(end - t.data) - at : t.size - at));
    return true;
}

static bool fn_left(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]);
    int64_t n = args[1].i < 0 ? (int64_t)characters(t) + args[1].i : args[1].i;
    *out = cell_bytes(bytes_make(t.data, offset_of(t, n < 0 ? 0 : (size_t)n)));
    return true;
}

static bool fn_right(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]);
    int64_t all = (int64_t)characters(t);
    int64_t skip = args[1].i < -all   ? all
                   : args[1].i < 0    ? -args[1].i
                   : args[1].i >= all ? 0
                                      : all - args[1].i;
    size_t at = offset_of(t, (size_t)skip);
    *out = cell_bytes(bytes_make(t.data + at, t.size - at));
    return true;
}

static bool join(struct rel_env *env, bytes separator, const struct cell *args, unsigned count,
                 struct cell *out)
{
    struct obuf o;
    obuf_init(&o);
    bool first = true;
    for (unsigned i = 0; i < count; i++) {
        if (args[i].kind == CELL_NULL)
            continue;
        bytes t = rel_cell_text(env, &args[i]);
        if (!first)
            obuf_put(&o, separator.data, separator.size);
        obuf_put(&o, t.data, t.size);
        first = false;
    }
    *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return true;
}
static bool fn_concat(struct rel_env *env, const struct cell *args, unsigned count,
                      struct cell *out)
{
    return join(env, BYTES_EMPTY, args, count, out);
}
static bool fn_concat_ws(struct rel_env *env, const struct cell *args, unsigned count,
                         struct cell *out)
{
    if (args[0].kind == CELL_NULL) {
        *out = cell_null();
        return true;
    }
    return join(env, rel_cell_text(env, &args[0]), args + 1, count - 1, out);
}

/* %s, %I, %L and %%. */
static bool fn_format(struct rel_env *env, const struct cell *args, unsigned count,
                      struct cell *out)
{
    if (args[0].kind == CELL_NULL) {
        *out = cell_null();
        return true;
    }
    bytes f = rel_cell_text(env, &args[0]);
    struct obuf o;
    obuf_init(&o);
    unsigned next = 1;
    bool ok = true;
    for (size_t i = 0; ok && i < f.size; i++) {
        if (f.data[i] != '%') {
            obuf_u8(&o, f.data[i]);
            continue;
        }
        uint8_t kind = ++i < f.size ? f.data[i] : 0;
        if (kind == '%') {
            obuf_u8(&o, '%');
            continue;
        }
        if (kind != 's' && kind != 'I' && kind != 'L') {
            ok = rel_fail(env, ST_INVALID, "22023", "unrecognized format() type specifier");
            break;
        }
        if (next >= count) {
            ok = rel_fail(env, ST_INVALID, "22023", "too few arguments for format()");
            break;
        }
        const struct cell *c = &args[next++];
        bytes t = rel_cell_text(env, c);
        if (kind == 'I')
            t = rel_quote_ident(env->arena, t);
        else if (kind == 'L')
            t = c->kind == CELL_NULL ? BYTES_LIT("NULL") : rel_quote_literal(env->arena, t);
        obuf_put(&o, t.data, t.size);
    }
    if (ok)
        *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return ok;
}

static bool fn_quote_ident(struct rel_env *env, const struct cell *args, unsigned count,
                           struct cell *out)
{
    UNUSED(count);
    *out = cell_bytes(rel_quote_ident(env->arena, rel_cell_text(env, &args[0])));
    return true;
}
static bool fn_quote_literal(struct rel_env *env, const struct cell *args, unsigned count,
                             struct cell *out)
{
    UNUSED(count);
    *out = cell_bytes(rel_quote_literal(env->arena, rel_cell_text(env, &args[0])));
    return true;
}
static bool fn_quote_nullable(struct rel_env *env, const struct cell *args, unsigned count,
                              struct cell *out)
{
    if (args[0].kind != CELL_NULL)
        return fn_quote_literal(env, args, count, out);
    *out = cell_str("NULL");
    return true;
}

static bool fn_chr(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    if (args[0].i < 1 || args[0].i > 127)
        return rel_fail(env, ST_UNSUPPORTED, "0A000", "chr() is supported for 1 to 127 only");
    *out = rel_text(env, "%c", (int)args[0].i);
    return true;
}
static bool fn_ascii(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]);
    *out = cell_int(t.size ? t.data[0] : 0);
    return true;
}

static bool fn_repeat(struct rel_env *env, const struct cell *args, unsigned count,
                      struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]);
    int64_t n = args[1].i < 0 ? 0 : args[1].i;
    if (t.size > 0 && (uint64_t)n > RESULT_BYTES_MAX / t.size)
        return too_long(env);
    size_t size = t.size * (size_t)n;
    uint8_t *to = arena_alloc(env->arena, size + 1);
    for (size_t i = 0; t.size > 0 && i < (size_t)n; i++)
        memcpy(to + i * t.size, t.data, t.size);
    *out = cell_bytes(bytes_make(to, size));
    return true;
}

/* Units change where the number would pass 10 of the next one, rounded half up. */
static bool fn_size_pretty(struct rel_env *env, const struct cell *args, unsigned count,
                           struct cell *out)
{
    UNUSED(count);
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    int64_t v = args[0].i < -INT64_MAX ? -INT64_MAX : args[0].i;
    unsigned u = 0;
    if (llabs(v) >= 10 * 1024) {
        v >>= 9; /* one bit more than needed, for rounding */
        for (u = 1; u + 1 < ARRAY_LEN(units) && llabs(v) >= 20 * 1024 - 1; u++)
            v /= 1024;
        v = (v + (v < 0 ? -1 : 1)) / 2;
    }
    *out = rel_text(env, "%lld %s", (long long)v, units[u]);
    return true;
}

static bool fn_cast_in(struct rel_env *env, const struct cell *args, unsigned count,
                       struct cell *out)
{
    UNUSED(count);
    return rel_cast_in(env, rel_cell_text(env, &args[0]), (uint32_t)args[1].i, out);
}
static bool fn_cast_out(struct rel_env *env, const struct cell *args, unsigned count,
                        struct cell *out)
{
    UNUSED(count);
    return rel_cast_out(env, &args[0], (uint32_t)args[1].i, out);
}

const struct rel_function rel_text_functions[] = {
    {REL_FN_IN, "xo", 0, false, fn_cast_in},
    {REL_FN_OUT, "xo", OID_TEXT, false, fn_cast_out},
    {REL_FN_LIKE, "tti", OID_BOOL, false, fn_like},
    {REL_FN_REGEX, "tti", OID_BOOL, false, fn_regex},
    {REL_FN_DIVIDE, "xx", REL_RESULT_ARG1, false, fn_divide},
    {REL_FN_MODULO, "xx", REL_RESULT_ARG1, false, fn_modulo},
    {"like_escape", "tt", OID_TEXT, false, fn_like_escape},
    {"abs", "x", REL_RESULT_ARG1, false, fn_abs},
    {"mod", "ii", REL_RESULT_ARG1, false, fn_modulo},
    {"length", "t", OID_INT4, false, fn_length},
    {"char_length", "t", OID_INT4, false, fn_length},
    {"character_length", "t", OID_INT4, false, fn_length},
    {"octet_length", "t", OID_INT4, false, fn_octet_length},
    {"substring", "ti?i", OID_TEXT, false, fn_substring},
    {"substr", "ti?i", OID_TEXT, false, fn_substring},
    {"lower", "t", OID_TEXT, false, fn_lower},
    {"upper", "t", OID_TEXT, false, fn_upper},
    {"btrim", "t?t", OID_TEXT, false, fn_btrim},
    {"ltrim", "t?t", OID_TEXT, false, fn_ltrim},
    {"rtrim", "t?t", OID_TEXT, false, fn_rtrim},
    {"replace", "ttt", OID_TEXT, false, fn_replace},
    {"position", "tt", OID_INT4, false, fn_position},
    {"strpos", "tt", OID_INT4, false, fn_position},
    {"starts_with", "tt", OID_BOOL, false, fn_starts_with},
    {"split_part", "tti", OID_TEXT, false, fn_split_part},
    {"left", "ti", OID_TEXT, false, fn_left},
    {"right", "ti", OID_TEXT, false, fn_right},
    {"concat", "x*", OID_TEXT, true, fn_concat},
    {"concat_ws", "tx*", OID_TEXT, true, fn_concat_ws},
    {"format", "t?x*", OID_TEXT, true, fn_format},
    {"quote_ident", "t", OID_TEXT, false, fn_quote_ident},
    {"quote_literal", "x", OID_TEXT, false, fn_quote_literal},
    {"quote_nullable", "x", OID_TEXT, true, fn_quote_nullable},
    {"chr", "i", OID_TEXT, false, fn_chr},
    {"ascii", "t", OID_INT4, false, fn_ascii},
    {"repeat", "ti", OID_TEXT, false, fn_repeat},
    {"pg_size_pretty", "i", OID_TEXT, false, fn_size_pretty},
};
const unsigned rel_text_function_count = ARRAY_LEN(rel_text_functions);
