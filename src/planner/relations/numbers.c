/*
 * planner/relations/numbers.c — functions over numbers, to_char() of a number among them.
 *
 * numeric is a double here (relations.h), so results have the digits of one, without the zeros that
 * a scale would add at the end.
 */
#include "planner/relations/pg_rows.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double real_of(const struct cell *c)
{
    return c->kind == CELL_REAL ? c->d : (double)c->i;
}

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

#define FN(name)                                                                                   \
    static bool fn_##name(struct rel_env *env, const struct cell *args, unsigned count,            \
                          struct cell *out)
/* A function of one real number. */
#define FN_REAL(name, expression)                                                                  \
    FN(name)                                                                                       \
    {                                                                                              \
        UNUSED(env);                                                                               \
        UNUSED(count);                                                                             \
        double x = real_of(&args[0]);                                                              \
        *out = cell_real(expression);                                                              \
        return true;                                                                               \
    }

FN_REAL(ceil, ceil(x))
FN_REAL(floor, floor(x))
FN_REAL(sign, x > 0 ? 1 : x < 0 ? -1 : 0)
/* Halves go to the even number for floats, away from zero for numeric. */
FN_REAL(round_float, rint(x))

/* X times a power of ten, with the digits that its decimal text has. */
static double shifted(double x, int places)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%.15g", x * pow(10, places));
    return strtod(text, NULL);
}

static bool to_places(struct rel_env *env, const struct cell *args, unsigned count,
                      double (*how)(double), struct cell *out)
{
    int64_t places = count > 1 ? args[1].i : 0;
    double x = real_of(&args[0]);
    if (places < -300 || places > 300)
        return rel_fail(env, ST_INVALID, "22003", "scale is out of range");
    double v = how(shifted(x, (int)places));
    *out = cell_real(isfinite(v) ? shifted(v, (int)-places) : x);
    return true;
}
FN(round)
{
    return to_places(env, args, count, round, out);
}
FN(trunc)
{
    return to_places(env, args, count, trunc, out);
}

FN(sqrt)
{
    UNUSED(count);
    if (real_of(&args[0]) < 0)
        return rel_fail(env, ST_INVALID, "2201F", "cannot take square root of a negative number");
    *out = cell_real(sqrt(real_of(&args[0])));
    return true;
}

FN(power)
{
    UNUSED(count);
    double x = real_of(&args[0]), y = real_of(&args[1]), v = pow(x, y);
    if (!(x < 0 || x > 0) && y < 0)
        return rel_fail(env, ST_INVALID, "2201F", "zero raised to a negative power is undefined");
    if (isnan(v) && !isnan(x) && !isnan(y))
        return rel_fail(env, ST_INVALID, "2201F",
                        "a negative number raised to a non-integer power yields a complex result");
    if (isinf(v) && isfinite(x) && isfinite(y))
        return rel_fail(env, ST_INVALID, "22003", "value out of range: overflow");
    *out = cell_real(v);
    return true;
}

FN(to_hex)
{
    UNUSED(count);
    *out = rel_text(env, "%llx", (unsigned long long)args[0].i);
    return true;
}

FN(num_nulls)
{
    UNUSED(env);
    int64_t n = 0;
    for (unsigned i = 0; i < count; i++)
        n += args[i].kind == CELL_NULL;
    *out = cell_int(n);
    return true;
}
FN(num_nonnulls)
{
    (void)fn_num_nulls(env, args, count, out);
    *out = cell_int((int64_t)count - out->i);
    return true;
}

/* ---- to_char(number, picture) ---- */

#define PICTURE_MAX 64u
#define DIGITS_MAX 40

/* What a picture says. */
struct picture {
    int before, after; /* digits on either side of the point */
    int zero_before;   /* from this digit on, counted from the point, zeros are written */
    int zero_after;    /* up to this digit behind the point */
    bool fill;         /* FM: no padding */
    bool point;        /* it has one */
    char sign;         /* 0: before the first digit; S, M(I), P(R), L (PL), G (SG) */
};

static bool has(const char *s, const char *word)
{
    return strncasecmp(s, word, strlen(word)) == 0;
}

/* The length of the element at S; 0 if it is none that is known here. */
static unsigned element(const char *s, char *kind)
{
    static const struct {
        const char *word;
        char kind;
    } words[] = {{"FM", 'F'}, {"MI", 'M'}, {"PL", 'L'}, {"SG", 'G'}, {"PR", 'P'}, {"S", 'S'},
                 {"9", '9'},  {"0", '0'},  {".", '.'},  {"D", '.'},  {",", ','},  {"G", ','}};
    for (unsigned i = 0; i < ARRAY_LEN(words); i++)
        if (has(s, words[i].word)) {
            *kind = words[i].kind;
            return (unsigned)strlen(words[i].word);
        }
    static const char *const unknown[] = {"EEEE", "RN", "TH", "V", "L", "C", "B"};
    for (unsigned i = 0; i < ARRAY_LEN(unknown); i++)
        if (has(s, unknown[i]))
            return 0;
    *kind = ' '; /* as it is */
    return 1;
}

static bool read_picture(struct rel_env *env, const char *s, struct picture *p)
{
    *p = (struct picture){.zero_before = 0};
    int first_zero = -1, seen = 0;
    for (const char *at = s; *at;) {
        char kind;
        unsigned n = element(at, &kind);
        if (n == 0)
            return rel_fail(env, ST_UNSUPPORTED, "0A000",
                            "number format \"%s\" is not supported here", s);
        if (kind == 'F')
            p->fill = true;
        else if (kind == '.')
            p->point = true;
        else if (kind == '9' || kind == '0') {
            if (p->point) {
                p->after++;
                p->zero_after = kind == '0' ? p->after : p->zero_after;
            } else {
                first_zero = kind == '0' && first_zero < 0 ? seen : first_zero;
                seen++;
            }
        } else if (strchr("MLGPS", kind)) {
            p->sign = kind;
        }
        at += n;
    }
    p->before = seen;
    p->zero_before = first_zero < 0 ? 0 : seen - first_zero;
    if (p->before + p->after > DIGITS_MAX)
        return rel_fail(env, ST_LIMIT, "54000", "number format is too long");
    return true;
}

struct written {
    struct obuf *o;
    const struct picture *p;
    char whole[DIGITS_MAX + 2], part[DIGITS_MAX + 2];
    int whole_digits, part_digits;
    bool negative, signed_yet, started;
};

static void put_sign(struct written *w)
{
    if (w->signed_yet || w->p->sign == 'M' || w->p->sign == 'L' || w->p->sign == 'G')
        return;
    w->signed_yet = true;
    if (w->p->sign == 'P')
        obuf_u8(w->o, w->negative ? '<' : ' ');
    else if (w->p->sign == 'S')
        obuf_u8(w->o, w->negative ? '-' : '+');
    else if (w->negative)
        obuf_u8(w->o, '-');
    else if (!w->p->fill)
        obuf_u8(w->o, ' ');
}

/* The digit in place LEFT, counted from the point. */
static void put_whole(struct written *w, int left)
{
    if (left <= w->whole_digits) {
        put_sign(w);
        w->started = true;
        obuf_u8(w->o, (uint8_t)w->whole[w->whole_digits - left]);
    } else if (left <= w->p->zero_before) {
        put_sign(w);
        w->started = true;
        obuf_u8(w->o, '0');
    } else if (!w->p->fill) {
        obuf_u8(w->o, ' ');
    }
}

static void put_picture(struct written *w, const char *s)
{
    int left = w->p->before, right = 0;
    bool point = false;
    for (const char *at = s; *at;) {
        char kind;
        unsigned n = element(at, &kind);
        switch (kind) {
        case '9':
        case '0':
            if (!point)
                put_whole(w, left--);
            else if (right++ < w->part_digits || !w->p->fill || right <= w->p->zero_after)
                obuf_u8(w->o, (uint8_t)w->part[right - 1]);
            break;
        case '.':
            put_sign(w);
            obuf_u8(w->o, '.');
            point = true;
            break;
        case ',':
            if (w->started)
                obuf_u8(w->o, ',');
            else if (!w->p->fill)
                obuf_u8(w->o, ' ');
            break;
        case 'M':
        case 'L':
        case 'G':
            if (w->negative ? kind != 'L' : kind != 'M')
                obuf_u8(w->o, w->negative ? '-' : '+');
            else if (!w->p->fill)
                obuf_u8(w->o, ' ');
            break;
        case 'F':
        case 'S':
        case 'P': break;
        default: obuf_u8(w->o, (uint8_t)*at); break;
        }
        at += n;
    }
    if (w->p->sign == 'P' && (w->negative || !w->p->fill))
        obuf_u8(w->o, w->negative ? '>' : ' ');
}

FN(to_char_number)
{
    UNUSED(count);
    const char *format = rel_cell_str(env, &args[1]);
    struct picture p;
    if (strlen(format) > PICTURE_MAX)
        return rel_fail(env, ST_LIMIT, "54000", "number format is too long");
    if (!read_picture(env, format, &p))
        return false;
    double x = real_of(&args[0]);
    char text[512];
    if (args[0].kind == CELL_INT)
        (void)snprintf(
            text, sizeof(text), "%llu.%0*d",
            (unsigned long long)(args[0].i < 0 ? 0 - (uint64_t)args[0].i : (uint64_t)args[0].i),
            p.after ? p.after : 1, 0);
    else
        (void)snprintf(text, sizeof(text), "%.*f", p.after,
                       shifted(round(shifted(fabs(x), p.after)), -p.after));
    size_t whole = strcspn(text, ".");
    struct obuf o;
    obuf_init(&o);
    struct written w = {.o = &o, .p = &p, .negative = x < 0};
    bool zero = whole == 1 && text[0] == '0';
    bool fits = (int)whole <= p.before || zero;
    w.whole_digits = zero && p.before > 0 && p.after > 0 ? 0 : fits ? (int)whole : p.before;
    for (int i = 0; i < w.whole_digits; i++)
        w.whole[i] = fits ? text[i] : '#';
    for (int i = 0; i < p.after; i++) {
        w.part[i] = !fits ? '#' : text[whole] ? text[whole + 1 + (size_t)i] : '0';
        if (w.part[i] != '0')
            w.part_digits = i + 1;
    }
    put_picture(&w, format);
    *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return true;
}

const struct rel_function rel_number_functions[] = {
    {REL_FN_DIVIDE, "xx", REL_RESULT_ARG1, false, fn_divide},
    {REL_FN_MODULO, "xx", REL_RESULT_ARG1, false, fn_modulo},
    {REL_FN_ROUND_FLOAT, "f", OID_FLOAT8, false, fn_round_float},
    {REL_FN_TO_CHAR_NUMBER, "xt", OID_TEXT, false, fn_to_char_number},
    {"abs", "x", REL_RESULT_ARG1, false, fn_abs},
    {"mod", "ii", REL_RESULT_ARG1, false, fn_modulo},
    {"round", "f?i", OID_NUMERIC, false, fn_round},
    {"trunc", "f?i", OID_NUMERIC, false, fn_trunc},
    {"ceil", "f", OID_FLOAT8, false, fn_ceil},
    {"ceiling", "f", OID_FLOAT8, false, fn_ceil},
    {"floor", "f", OID_FLOAT8, false, fn_floor},
    {"sign", "f", OID_FLOAT8, false, fn_sign},
    {"sqrt", "f", OID_FLOAT8, false, fn_sqrt},
    {"power", "ff", OID_FLOAT8, false, fn_power},
    {"pow", "ff", OID_FLOAT8, false, fn_power},
    {"to_hex", "i", OID_TEXT, false, fn_to_hex},
    {"num_nulls", "x*", OID_INT4, true, fn_num_nulls},
    {"num_nonnulls", "x*", OID_INT4, true, fn_num_nonnulls},
};
const unsigned rel_number_function_count = ARRAY_LEN(rel_number_functions);
