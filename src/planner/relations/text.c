/*
 * planner/relations/text.c — functions over text, and the entries of casts.
 */
#include "planner/relations/pg_rows.h"

#include <ctype.h>
#include <stdlib.h>

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
        at += rel__utf8_step(t, at);
    return at;
}

static bool fn_length(struct rel_env *env, const struct cell *args, unsigned count,
                      struct cell *out)
{
    UNUSED(count);
    *out = cell_int((int64_t)characters(rel_cell_text(env, &args[0])));
    return true;
}

static bool fn_bit_length(struct rel_env *env, const struct cell *args, unsigned count,
                          struct cell *out)
{
    UNUSED(count);
    *out = cell_int(8 * (int64_t)rel_cell_text(env, &args[0]).size);
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
    while ((hit = find(t, at, from)) != NULL && o.size <= REL_RESULT_BYTES_MAX) {
        obuf_put(&o, t.data + at, (size_t)(hit - t.data) - at);
        obuf_put(&o, to.data, to.size);
        at = (size_t)(hit - t.data) + from.size;
    }
    obuf_put(&o, t.data + at, t.size - at);
    bool ok = o.size <= REL_RESULT_BYTES_MAX || rel__too_long(env);
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
    int64_t field = args[2].i;
    if (field == 0)
        return rel_fail(env, ST_INVALID, "22023", "field position must not be zero");
    *out = cell_bytes(BYTES_LIT(""));
    size_t at = 0;
    if (field < 0) { /* from the end: -1 is the last */
        int64_t fields = 1;
        for (const uint8_t *hit; (hit = find(t, at, by)) != NULL; fields++)
            at = (size_t)(hit - t.data) + by.size;
        if (field < -fields)
            return true;
        field += fields + 1;
        at = 0;
    }
    for (int64_t i = 1; i < field; i++) {
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
    if (t.size > 0 && (uint64_t)n > REL_RESULT_BYTES_MAX / t.size)
        return rel__too_long(env);
    size_t size = t.size * (size_t)n;
    uint8_t *to = arena_alloc(env->arena, size + 1);
    for (size_t i = 0; t.size > 0 && i < (size_t)n; i++)
        memcpy(to + i * t.size, t.data, t.size);
    *out = cell_bytes(bytes_make(to, size));
    return true;
}

/* lpad and rpad: to a length in characters, with FILL over and over; longer text is cut. */
static bool pad(struct rel_env *env, const struct cell *args, unsigned count, bool left,
                struct cell *out)
{
    bytes t = rel_cell_text(env, &args[0]),
          fill = count > 2 ? rel_cell_text(env, &args[2]) : BYTES_LIT(" ");
    int64_t length = args[1].i < 0 ? 0 : args[1].i, have = (int64_t)characters(t);
    if (length > (int64_t)REL_RESULT_BYTES_MAX / 4)
        return rel__too_long(env);
    if (have >= length || fill.size == 0) {
        size_t end = have > length ? offset_of(t, (size_t)length) : t.size;
        *out = cell_bytes(bytes_make(t.data, end));
        return true;
    }
    struct obuf o;
    obuf_init(&o);
    if (!left)
        obuf_put(&o, t.data, t.size);
    for (size_t at = 0; have < length; have++) {
        size_t n = rel__utf8_step(fill, at);
        obuf_put(&o, fill.data + at, n);
        at = at + n < fill.size ? at + n : 0;
    }
    if (left)
        obuf_put(&o, t.data, t.size);
    *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return true;
}
static bool fn_lpad(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    return pad(env, args, count, true, out);
}
static bool fn_rpad(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    return pad(env, args, count, false, out);
}

static bool fn_reverse(struct rel_env *env, const struct cell *args, unsigned count,
                       struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]);
    uint8_t *copy = arena_alloc(env->arena, t.size + 1);
    for (size_t at = 0, n; at < t.size; at += n) {
        n = rel__utf8_step(t, at);
        memcpy(copy + t.size - at - n, t.data + at, n);
    }
    *out = cell_bytes(bytes_make(copy, t.size));
    return true;
}

static bool fn_initcap(struct rel_env *env, const struct cell *args, unsigned count,
                       struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]);
    uint8_t *copy = arena_alloc(env->arena, t.size + 1);
    bool inside = false;
    for (size_t i = 0; i < t.size; i++) {
        bool word = t.data[i] >= 0x80 || isalnum(t.data[i]);
        copy[i] = t.data[i] >= 0x80 ? t.data[i]
                  : inside          ? (uint8_t)tolower(t.data[i])
                                    : (uint8_t)toupper(t.data[i]);
        inside = word;
    }
    *out = cell_bytes(bytes_make(copy, t.size));
    return true;
}

/* Characters of the second text become those of the third in the same place, or vanish. */
static bool fn_translate(struct rel_env *env, const struct cell *args, unsigned count,
                         struct cell *out)
{
    UNUSED(count);
    bytes t = rel_cell_text(env, &args[0]), from = rel_cell_text(env, &args[1]),
          to = rel_cell_text(env, &args[2]);
    if (from.size > 256)
        return rel_fail(env, ST_LIMIT, "54000", "too many characters to translate");
    struct obuf o;
    obuf_init(&o);
    for (size_t at = 0, n; at < t.size; at += n) {
        n = rel__utf8_step(t, at);
        size_t place = 0, f = 0;
        while (f < from.size) {
            size_t m = rel__utf8_step(from, f);
            if (m == n && memcmp(from.data + f, t.data + at, n) == 0)
                break;
            f += m;
            place++;
        }
        if (f >= from.size) {
            obuf_put(&o, t.data + at, n);
        } else {
            size_t start = offset_of(to, place);
            if (start < to.size)
                obuf_put(&o, to.data + start, rel__utf8_step(to, start));
        }
    }
    *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return true;
}

/* overlay(text placing other from start for length) */
static bool fn_overlay(struct rel_env *env, const struct cell *args, unsigned count,
                       struct cell *out)
{
    bytes t = rel_cell_text(env, &args[0]), by = rel_cell_text(env, &args[1]);
    int64_t from = args[2].i, length = count > 3 ? args[3].i : (int64_t)characters(by);
    if (from < 1)
        return rel_fail(env, ST_INVALID, "22011", "negative substring length not allowed");
    size_t a = offset_of(t, (size_t)from - 1), b = a;
    if (length > 0)
        b += offset_of(bytes_make(t.data + a, t.size - a), (size_t)length);
    struct obuf o;
    obuf_init(&o);
    obuf_put(&o, t.data, a);
    obuf_put(&o, by.data, by.size);
    obuf_put(&o, t.data + b, t.size - b);
    *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return true;
}

static void put_base64(struct obuf *o, bytes b)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t in_line = 0;
    for (size_t i = 0; i < b.size; i += 3) {
        uint32_t v = (uint32_t)b.data[i] << 16;
        v |= i + 1 < b.size ? (uint32_t)b.data[i + 1] << 8 : 0;
        v |= i + 2 < b.size ? b.data[i + 2] : 0;
        if (in_line == 76) { /* as MIME has it */
            obuf_u8(o, '\n');
            in_line = 0;
        }
        for (unsigned k = 0; k < 4; k++)
            obuf_u8(o, i + k <= b.size ? (uint8_t)digits[v >> (18 - 6 * k) & 63] : '=');
        in_line += 4;
    }
}

/* encode(bytea, 'hex' or 'base64') */
static bool fn_encode(struct rel_env *env, const struct cell *args, unsigned count,
                      struct cell *out)
{
    UNUSED(count);
    struct pl_value v;
    if (pl_value_from_text(OID_BYTEA, rel_cell_text(env, &args[0]), env->ctx->style, env->ctx->now,
                           env->arena, &v, &env->err) != ST_OK)
        return false;
    const char *format = rel_cell_str(env, &args[1]);
    struct obuf o;
    obuf_init(&o);
    bool ok = true;
    if (strcasecmp(format, "base64") == 0)
        put_base64(&o, v.b);
    else if (strcasecmp(format, "hex") == 0)
        for (size_t i = 0; i < v.b.size; i++) {
            obuf_u8(&o, (uint8_t) "0123456789abcdef"[v.b.data[i] >> 4]);
            obuf_u8(&o, (uint8_t) "0123456789abcdef"[v.b.data[i] & 15]);
        }
    else
        ok = rel_fail(env, ST_INVALID, "22023", "unrecognized encoding: \"%s\"", format);
    if (ok)
        *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return ok;
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
    {"length", "t", OID_INT4, false, fn_length},
    {"char_length", "t", OID_INT4, false, fn_length},
    {"character_length", "t", OID_INT4, false, fn_length},
    {"bit_length", "t", OID_INT4, false, fn_bit_length},
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
    {"encode", "xt", OID_TEXT, false, fn_encode},
    {"lpad", "ti?t", OID_TEXT, false, fn_lpad},
    {"rpad", "ti?t", OID_TEXT, false, fn_rpad},
    {"reverse", "t", OID_TEXT, false, fn_reverse},
    {"initcap", "t", OID_TEXT, false, fn_initcap},
    {"translate", "ttt", OID_TEXT, false, fn_translate},
    {"overlay", "tti?i", OID_TEXT, false, fn_overlay},
    {"pg_size_pretty", "i", OID_TEXT, false, fn_size_pretty},
};
const unsigned rel_text_function_count = ARRAY_LEN(rel_text_functions);
