/*
 * planner/relations/arrays.c — arrays as PostgreSQL writes them, and functions over them.
 *
 * An array is text: {a,"b c",NULL}; a vector (int2vector, oidvector) is text too: 1 2 3, its lowest
 * subscript 0. Which of the two a text is follows from its first character. One dimension only:
 * no catalogue column has more.
 */
#include "planner/relations/relations.h"

#define ARRAY_WORK_MAX (16u * 1024u * 1024u) /* comparisons of one call */

#include <stdlib.h>

static struct cell item_of(struct arena *a, bytes text, bool numbers)
{
    if (!numbers)
        return cell_bytes(text);
    return cell_int(strtoll(arena_strdup(a, text), NULL, 10));
}

static void push(struct arena *a, struct rel_array *out, unsigned *capacity, struct cell c)
{
    if (out->count == *capacity)
        out->items = arena_grow(a, out->items, sizeof(*out->items), capacity, 8);
    out->items[out->count++] = c;
}

static bool parse_vector(struct arena *a, bytes text, bool numbers, struct rel_array *out)
{
    unsigned capacity = 0;
    out->first = 0;
    for (size_t at = 0; at < text.size;) {
        if (text.data[at] == ' ') {
            at++;
            continue;
        }
        size_t start = at;
        while (at < text.size && text.data[at] != ' ')
            at++;
        push(a, out, &capacity, item_of(a, bytes_make(text.data + start, at - start), numbers));
    }
    return true;
}

/* One element at *AT; stops at the ',' or '}' behind it. */
static bool parse_item(struct arena *a, bytes text, size_t *at, bool numbers, struct cell *out)
{
    uint8_t *buffer = arena_alloc(a, text.size - *at + 1);
    size_t n = 0;
    bool quoted = false, inside = false;
    for (; *at < text.size; (*at)++) {
        uint8_t ch = text.data[*at];
        if (ch == '"') {
            inside = !inside;
            quoted = true;
        } else if (ch == '\\' && *at + 1 < text.size) {
            buffer[n++] = text.data[++*at];
        } else if (!inside && (ch == ',' || ch == '}')) {
            break;
        } else if (!inside && ch == '{') {
            return false; /* a second dimension */
        } else {
            buffer[n++] = ch;
        }
    }
    bytes item = bytes_make(buffer, n);
    bool null = !quoted && n == 4 && strncasecmp((const char *)buffer, "null", 4) == 0;
    *out = null ? cell_null() : item_of(a, item, numbers);
    return *at < text.size && (quoted || n > 0);
}

bool rel_array_parse(struct arena *a, bytes text, bool numbers, struct rel_array *out)
{
    *out = (struct rel_array){.first = 1};
    if (text.size == 0 || text.data[0] != '{')
        return parse_vector(a, text, numbers, out);
    unsigned capacity = 0;
    size_t at = 1;
    if (text.size == 2 && text.data[1] == '}')
        return true;
    for (;;) {
        struct cell c;
        if (!parse_item(a, text, &at, numbers, &c))
            return false;
        push(a, out, &capacity, c);
        if (text.data[at++] == '}')
            return at == text.size;
    }
}

static bool must_quote(bytes b)
{
    if (b.size == 0 || (b.size == 4 && strncasecmp((const char *)b.data, "null", 4) == 0))
        return true;
    for (size_t i = 0; i < b.size; i++)
        if (strchr("{}\",\\ \t\n\r\v\f", b.data[i]))
            return true;
    return false;
}

bytes rel_array_format(struct arena *a, const struct cell *items, unsigned count)
{
    size_t size = 2;
    bytes *texts = ARENA_ARRAY(a, bytes, count + 1);
    struct rel_env env = {.arena = a};
    for (unsigned i = 0; i < count; i++) {
        texts[i] = rel_cell_text(&env, &items[i]);
        size += texts[i].size * 2 + 7;
    }
    uint8_t *out = arena_alloc(a, size);
    size_t n = 0;
    out[n++] = '{';
    for (unsigned i = 0; i < count; i++) {
        if (i)
            out[n++] = ',';
        if (items[i].kind == CELL_NULL) {
            memcpy(out + n, "NULL", 4);
            n += 4;
            continue;
        }
        bool quote = must_quote(texts[i]);
        if (quote)
            out[n++] = '"';
        for (size_t k = 0; k < texts[i].size; k++) {
            if (texts[i].data[k] == '"' || texts[i].data[k] == '\\')
                out[n++] = '\\';
            out[n++] = texts[i].data[k];
        }
        if (quote)
            out[n++] = '"';
    }
    out[n++] = '}';
    return bytes_make(out, n);
}

int rel_cell_compare(const struct cell *a, const struct cell *b)
{
    if (a->kind == CELL_TEXT && b->kind == CELL_TEXT)
        return bytes_cmp(a->b, b->b);
    if (a->kind == CELL_INT && b->kind == CELL_INT)
        return a->i < b->i ? -1 : a->i > b->i;
    if (a->kind == CELL_NULL || b->kind == CELL_NULL || a->kind == CELL_TEXT ||
        b->kind == CELL_TEXT)
        return (int)a->kind - (int)b->kind;
    double x = a->kind == CELL_INT ? (double)a->i : a->d,
           y = b->kind == CELL_INT ? (double)b->i : b->d;
    return x < y ? -1 : x > y;
}

/* ---- functions ---- */

static bool parse_arg(struct rel_env *env, const struct cell *c, bool numbers,
                      struct rel_array *out)
{
    bytes text = rel_cell_text(env, c);
    if (rel_array_parse(env->arena, text, numbers, out))
        return true;
    return rel_fail(env, ST_INVALID, "22P02", "malformed array literal: \"%.*s\"", (int)text.size,
                    (const char *)text.data);
}

static bool fn_array(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    *out = cell_bytes(rel_array_format(env->arena, args, count));
    return true;
}

static bool fn_array_to_string(struct rel_env *env, const struct cell *args, unsigned count,
                               struct cell *out)
{
    if (args[0].kind == CELL_NULL || args[1].kind == CELL_NULL) {
        *out = cell_null();
        return true;
    }
    struct rel_array a;
    if (!parse_arg(env, &args[0], false, &a))
        return false;
    bytes separator = rel_cell_text(env, &args[1]);
    struct obuf o;
    obuf_init(&o);
    bool first = true;
    for (unsigned i = 0; i < a.count; i++) {
        struct cell c = a.items[i];
        if (c.kind == CELL_NULL && count > 2)
            c = args[2];
        if (c.kind == CELL_NULL)
            continue;
        if (!first)
            obuf_put(&o, separator.data, separator.size);
        first = false;
        bytes t = rel_cell_text(env, &c);
        obuf_put(&o, t.data, t.size);
    }
    *out = cell_bytes(arena_copy(env->arena, bytes_make(o.data, o.size)));
    obuf_fini(&o);
    return true;
}

static bool fn_string_to_array(struct rel_env *env, const struct cell *args, unsigned count,
                               struct cell *out)
{
    UNUSED(count);
    bytes text = rel_cell_text(env, &args[0]), separator = rel_cell_text(env, &args[1]);
    struct rel_array a = {0};
    unsigned capacity = 0;
    size_t start = 0;
    for (size_t at = 0; separator.size > 0 && at + separator.size <= text.size;) {
        if (memcmp(text.data + at, separator.data, separator.size) != 0) {
            at++;
            continue;
        }
        push(env->arena, &a, &capacity, cell_bytes(bytes_make(text.data + start, at - start)));
        at += separator.size;
        start = at;
    }
    if (text.size > 0)
        push(env->arena, &a, &capacity,
             cell_bytes(bytes_make(text.data + start, text.size - start)));
    *out = cell_bytes(rel_array_format(env->arena, a.items, a.count));
    return true;
}

static bool fn_array_length(struct rel_env *env, const struct cell *args, unsigned count,
                            struct cell *out)
{
    UNUSED(count);
    struct rel_array a;
    if (!parse_arg(env, &args[0], false, &a))
        return false;
    *out = a.count == 0 || args[1].kind != CELL_INT || args[1].i != 1 ? cell_null()
                                                                      : cell_int(a.count);
    return true;
}

static bool fn_array_lower(struct rel_env *env, const struct cell *args, unsigned count,
                           struct cell *out)
{
    UNUSED(count);
    struct rel_array a;
    if (!parse_arg(env, &args[0], false, &a))
        return false;
    *out = a.count == 0 || args[1].kind != CELL_INT || args[1].i != 1 ? cell_null()
                                                                      : cell_int(a.first);
    return true;
}

static bool fn_array_upper(struct rel_env *env, const struct cell *args, unsigned count,
                           struct cell *out)
{
    UNUSED(count);
    struct rel_array a;
    if (!parse_arg(env, &args[0], false, &a))
        return false;
    bool none = a.count == 0 || args[1].kind != CELL_INT || args[1].i != 1;
    *out = none ? cell_null() : cell_int((int64_t)a.count + a.first - 1);
    return true;
}

static bool fn_cardinality(struct rel_env *env, const struct cell *args, unsigned count,
                           struct cell *out)
{
    UNUSED(count);
    struct rel_array a;
    if (!parse_arg(env, &args[0], false, &a))
        return false;
    *out = cell_int(a.count);
    return true;
}

/* NULL counts as an empty array, unless both are NULL. */
static bool fn_array_cat(struct rel_env *env, const struct cell *args, unsigned count,
                         struct cell *out)
{
    UNUSED(count);
    if (args[0].kind == CELL_NULL && args[1].kind == CELL_NULL) {
        *out = cell_null();
        return true;
    }
    struct rel_array parts[2] = {{0}, {0}};
    for (unsigned i = 0; i < 2; i++)
        if (args[i].kind != CELL_NULL && !parse_arg(env, &args[i], false, &parts[i]))
            return false;
    struct cell *all = ARENA_ARRAY(env->arena, struct cell, parts[0].count + parts[1].count + 1);
    for (unsigned i = 0; i < parts[0].count; i++)
        all[i] = parts[0].items[i];
    for (unsigned i = 0; i < parts[1].count; i++)
        all[parts[0].count + i] = parts[1].items[i];
    *out = cell_bytes(rel_array_format(env->arena, all, parts[0].count + parts[1].count));
    return true;
}

static bool fn_array_append(struct rel_env *env, const struct cell *args, unsigned count,
                            struct cell *out)
{
    UNUSED(count);
    struct rel_array a = {0};
    if (args[0].kind != CELL_NULL && !parse_arg(env, &args[0], false, &a))
        return false;
    struct cell *all = ARENA_ARRAY(env->arena, struct cell, a.count + 1);
    for (unsigned i = 0; i < a.count; i++)
        all[i] = a.items[i];
    all[a.count] = args[1];
    *out = cell_bytes(rel_array_format(env->arena, all, a.count + 1));
    return true;
}

static bool fn_array_remove(struct rel_env *env, const struct cell *args, unsigned count,
                            struct cell *out)
{
    UNUSED(count);
    if (args[0].kind == CELL_NULL) {
        *out = cell_null();
        return true;
    }
    struct rel_array a;
    if (!parse_arg(env, &args[0], false, &a))
        return false;
    bytes gone = rel_cell_text(env, &args[1]);
    unsigned kept = 0;
    for (unsigned i = 0; i < a.count; i++) {
        bool null = a.items[i].kind == CELL_NULL;
        bool same = null ? args[1].kind == CELL_NULL
                         : args[1].kind != CELL_NULL && bytes_eq(a.items[i].b, gone);
        if (!same)
            a.items[kept++] = a.items[i];
    }
    *out = cell_bytes(rel_array_format(env->arena, a.items, kept));
    return true;
}

static bool fn_array_position(struct rel_env *env, const struct cell *args, unsigned count,
                              struct cell *out)
{
    UNUSED(count);
    struct rel_array a;
    if (!parse_arg(env, &args[0], false, &a))
        return false;
    bytes wanted = rel_cell_text(env, &args[1]);
    *out = cell_null();
    for (unsigned i = 0; i < a.count; i++)
        if (a.items[i].kind != CELL_NULL && bytes_eq(a.items[i].b, wanted)) {
            *out = cell_int((int64_t)i + a.first);
            break;
        }
    return true;
}

static bool fn_subscript(struct rel_env *env, const struct cell *args, unsigned count,
                         struct cell *out)
{
    UNUSED(count);
    struct rel_array a;
    if (!parse_arg(env, &args[0], args[2].kind == CELL_INT && args[2].i != 0, &a))
        return false;
    int64_t at = args[1].kind == CELL_INT ? args[1].i - a.first : -1;
    *out = at < 0 || at >= (int64_t)a.count ? cell_null() : a.items[at];
    return true;
}

/* The operator applied to two cells that are not NULL; false in *OK if the operator is unknown. */
static bool holds(const struct cell *x, bytes op, const struct cell *y, bool *ok)
{
    int c = rel_cell_compare(x, y);
    *ok = true;
    if (bytes_eq(op, BYTES_LIT("=")))
        return c == 0;
    if (bytes_eq(op, BYTES_LIT("<>")))
        return c != 0;
    if (bytes_eq(op, BYTES_LIT("<")))
        return c < 0;
    if (bytes_eq(op, BYTES_LIT("<=")))
        return c <= 0;
    if (bytes_eq(op, BYTES_LIT(">")))
        return c > 0;
    if (bytes_eq(op, BYTES_LIT(">=")))
        return c >= 0;
    *ok = false;
    return false;
}

/* Three-valued: WANTED true for ANY, false for ALL. */
static bool quantified(struct rel_env *env, const struct cell *args, bool wanted, struct cell *out)
{
    *out = cell_null();
    if (args[1].kind == CELL_NULL)
        return true;
    struct rel_array a;
    if (!parse_arg(env, &args[1], args[3].kind == CELL_INT && args[3].i != 0, &a))
        return false;
    bool null = false;
    for (unsigned i = 0; i < a.count; i++) {
        if (args[0].kind == CELL_NULL || a.items[i].kind == CELL_NULL) {
            null = true;
            continue;
        }
        bool ok;
        bool result = holds(&args[0], args[2].b, &a.items[i], &ok);
        if (!ok)
            return rel_fail(env, ST_UNSUPPORTED, "0A000",
                            "operator %.*s with ANY or ALL is not supported here",
                            (int)args[2].b.size, (const char *)args[2].b.data);
        if (result == wanted) {
            *out = cell_int(wanted);
            return true;
        }
    }
    *out = null ? cell_null() : cell_int(!wanted);
    return true;
}

static bool fn_any(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    return quantified(env, args, true, out);
}

static bool fn_all(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    return quantified(env, args, false, out);
}

static bool holds_item(const struct rel_array *a, const struct cell *item)
{
    for (unsigned i = 0; i < a->count; i++)
        if (a->items[i].kind != CELL_NULL && rel_cell_compare(&a->items[i], item) == 0)
            return true;
    return false;
}

/* How many elements of the second the first has; NULLs are in no array. */
static bool common_items(struct rel_env *env, const struct cell *args, unsigned *have, unsigned *of)
{
    struct rel_array a, b;
    bool numbers = args[2].i != 0;
    if (!parse_arg(env, &args[0], numbers, &a) || !parse_arg(env, &args[1], numbers, &b))
        return false;
    if ((uint64_t)a.count * b.count > ARRAY_WORK_MAX)
        return rel_fail(env, ST_LIMIT, "54000", "arrays are too long to compare");
    *of = b.count;
    *have = 0;
    for (unsigned i = 0; i < b.count; i++)
        *have += b.items[i].kind != CELL_NULL && holds_item(&a, &b.items[i]);
    return true;
}
static bool fn_contains(struct rel_env *env, const struct cell *args, unsigned count,
                        struct cell *out)
{
    UNUSED(count);
    unsigned have, of;
    if (!common_items(env, args, &have, &of))
        return false;
    *out = cell_int(have == of);
    return true;
}
static bool fn_overlaps(struct rel_env *env, const struct cell *args, unsigned count,
                        struct cell *out)
{
    UNUSED(count);
    unsigned have, of;
    if (!common_items(env, args, &have, &of))
        return false;
    *out = cell_int(have > 0);
    return true;
}

/* A row (x, n) is text "(x,n)" of two integers. */
static bool fn_row(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    *out = rel_text(env, "(%s,%s)", rel_cell_str(env, &args[0]), rel_cell_str(env, &args[1]));
    return true;
}

static bool fn_field(struct rel_env *env, const struct cell *args, unsigned count, struct cell *out)
{
    UNUSED(count);
    const char *text = rel_cell_str(env, &args[0]);
    const char *comma = strchr(text, ',');
    if (!comma || args[1].kind != CELL_INT)
        return rel_fail(env, ST_INTERNAL, "XX000", "malformed row");
    *out = cell_int(strtoll(args[1].i == 0 ? text + 1 : comma + 1, NULL, 10));
    return true;
}

static bool fn_array_out(struct rel_env *env, const struct cell *args, unsigned count,
                         struct cell *out)
{
    UNUSED(count);
    uint32_t type = (uint32_t)args[1].i;
    struct rel_array a;
    if (!parse_arg(env, &args[0], rel_type_is_integer(type), &a))
        return false;
    for (unsigned i = 0; i < a.count; i++)
        if (a.items[i].kind != CELL_NULL && !rel_cast_out(env, &a.items[i], type, &a.items[i]))
            return false;
    *out = cell_bytes(rel_array_format(env->arena, a.items, a.count));
    return true;
}

const struct rel_function rel_array_functions[] = {
    {REL_FN_ARRAY, "x*", OID_TEXT_ARRAY, true, fn_array},
    {REL_FN_SUBSCRIPT, "xii", REL_RESULT_ELEMENT, false, fn_subscript},
    {REL_FN_ANY, "xxti", OID_BOOL, true, fn_any},
    {REL_FN_ALL, "xxti", OID_BOOL, true, fn_all},
    {REL_FN_CONTAINS, "xxi", OID_BOOL, false, fn_contains},
    {REL_FN_OVERLAPS, "xxi", OID_BOOL, false, fn_overlaps},
    {REL_FN_ROW, "xx", OID_XN, false, fn_row},
    {REL_FN_FIELD, "xi", OID_INT4, false, fn_field},
    {REL_FN_ARRAY_OUT, "xo", OID_TEXT_ARRAY, false, fn_array_out},
    {"array_to_string", "at?t", OID_TEXT, true, fn_array_to_string},
    {"string_to_array", "tt", OID_TEXT_ARRAY, false, fn_string_to_array},
    {"array_length", "ai", OID_INT4, false, fn_array_length},
    {"array_lower", "ai", OID_INT4, false, fn_array_lower},
    {"array_upper", "ai", OID_INT4, false, fn_array_upper},
    {"cardinality", "a", OID_INT4, false, fn_cardinality},
    {"array_cat", "aa", REL_RESULT_ARG1, true, fn_array_cat},
    {"array_append", "ax", REL_RESULT_ARG1, true, fn_array_append},
    {"array_remove", "ax", REL_RESULT_ARG1, true, fn_array_remove},
    {"array_position", "ax", OID_INT4, false, fn_array_position},
};
const unsigned rel_array_function_count = ARRAY_LEN(rel_array_functions);
