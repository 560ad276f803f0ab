/*
 * planner/relations/functions.c — the registry of scalar functions and what they share.
 *
 * A function's number is its position in the parts, one after another; it is not stored
 * anywhere, so order is free. The same name may appear more than once with different numbers of
 * arguments.
 */
#include "planner/relations/pg_rows.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    const struct rel_function *list;
    const unsigned *count;
} parts[] = {
    {rel_text_functions, &rel_text_function_count},
    {rel_match_functions, &rel_match_function_count},
    {rel_number_functions, &rel_number_function_count},
    {rel_time_functions, &rel_time_function_count},
    {rel_json_functions, &rel_json_function_count},
    {rel_array_functions, &rel_array_function_count},
    {rel_catalog_functions, &rel_catalog_function_count},
    {rel_privilege_functions, &rel_privilege_function_count},
    {rel_session_functions, &rel_session_function_count},
};

const struct rel_function *rel_function_at(unsigned i)
{
    for (unsigned p = 0; p < ARRAY_LEN(parts); p++) {
        if (i < *parts[p].count)
            return &parts[p].list[i];
        i -= *parts[p].count;
    }
    return NULL;
}

unsigned rel_function_count(void)
{
    unsigned count = 0;
    for (unsigned p = 0; p < ARRAY_LEN(parts); p++)
        count += *parts[p].count;
    return count;
}

bool rel__too_long(struct rel_env *env)
{
    return rel_fail(env, ST_LIMIT, "54000",
                    "result of a catalogue function is longer than %u bytes", REL_RESULT_BYTES_MAX);
}

void rel_function_arity(const struct rel_function *f, unsigned *min, unsigned *max)
{
    *min = *max = 0;
    bool optional = false;
    for (const char *s = f->args; *s; s++) {
        if (*s == '*') {
            *max = UINT_MAX;
            return;
        }
        if (*s == '?') {
            optional = true;
            continue;
        }
        (*max)++;
        if (!optional)
            (*min)++;
    }
}

int rel_function_find(const char *name, unsigned arg_count)
{
    int found = -1;
    const struct rel_function *f;
    for (unsigned i = 0; (f = rel_function_at(i)) != NULL; i++) {
        if (strcmp(f->name, name) != 0)
            continue;
        unsigned min, max;
        rel_function_arity(f, &min, &max);
        if (arg_count >= min && arg_count <= max)
            return (int)i;
        found = -2;
    }
    return found;
}

uint32_t rel_function_oid(unsigned i)
{
    const struct rel_function *f = rel_function_at(i);
    char key[128];
    (void)snprintf(key, sizeof(key), "%s(%s)", f->name, f->args);
    return rel_name_oid("pg_catalog", key);
}

uint32_t rel_function_arg_type(const struct rel_function *f, unsigned i)
{
    char letter = 'x';
    unsigned at = 0;
    for (const char *s = f->args; *s; s++) {
        if (*s == '?' || *s == '*')
            continue;
        letter = *s;
        if (at++ == i)
            break;
    }
    switch (letter) {
    case 't': return OID_TEXT;
    case 'n': return OID_NAME;
    case 'i': return OID_INT8;
    case 'o': return OID_OID;
    case 'b': return OID_BOOL;
    case 'f': return OID_FLOAT8;
    case 'r': return OID_REGCLASS;
    case 'p': return OID_TIMESTAMPTZ;
    case 'a': return OID_TEXT_ARRAY;
    default: return 0;
    }
}

bool rel_fail(struct rel_env *env, status code, const char *sqlstate, const char *fmt, ...)
{
    char text[sizeof(env->err.message)];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    (void)err_set_state(&env->err, code, sqlstate, "%s", text);
    return false;
}

struct cell rel_text(struct rel_env *env, const char *fmt, ...)
{
    char small[512];
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof(small), fmt, args);
    va_end(args);
    ASSERT(n >= 0);
    char *out = arena_alloc(env->arena, (size_t)n + 1);
    (void)vsnprintf(out, (size_t)n + 1, fmt, again);
    va_end(again);
    return cell_bytes(bytes_make(out, (size_t)n));
}

bytes rel_cell_text(struct rel_env *env, const struct cell *c)
{
    switch (c->kind) {
    case CELL_INT: return bytes_str(arena_printf(env->arena, "%lld", (long long)c->i));
    case CELL_REAL: return bytes_str(arena_printf(env->arena, "%.15g", c->d));
    case CELL_TEXT: return c->b;
    case CELL_NULL:
    default: return BYTES_EMPTY;
    }
}

const char *rel_cell_str(struct rel_env *env, const struct cell *c)
{
    return arena_strdup(env->arena, rel_cell_text(env, c));
}
