/*
 * base/err.c — filling a struct err.
 *
 * Every text field is fixed in size. A text that does not fit is cut, and the cut never leaves half
 * a UTF-8 character behind: the client would refuse the whole message.
 */
#include "base/err.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Removes an incomplete UTF-8 sequence from the end of TEXT, which was cut after SIZE bytes. */
static void trim_partial_character(char *text, size_t size)
{
    size_t start = size;
    while (start > 0 && size - start < 4 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t need = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (need > size - (start - 1))
        text[start - 1] = '\0';
}

static PRINTF_LIKE(3, 0) void set_text(char *field, size_t capacity, const char *fmt, va_list args)
{
    int n = vsnprintf(field, capacity, fmt, args);
    if (n < 0)
        field[0] = '\0';
    else if ((size_t)n >= capacity)
        trim_partial_character(field, capacity - 1);
}

static void copy_text(char *field, size_t capacity, const char *text)
{
    size_t n = strlen(text);
    bool cut = n >= capacity;
    if (cut)
        n = capacity - 1;
    memcpy(field, text, n);
    field[n] = '\0';
    if (cut)
        trim_partial_character(field, n);
}

void err_clear(struct err *e)
{
    if (e == NULL)
        return;
    e->code = ST_OK;
    e->position = 0;
    e->sqlstate[0] = e->message[0] = e->detail[0] = e->hint[0] = '\0';
    e->schema[0] = e->table[0] = e->column[0] = e->constraint[0] = '\0';
}

static void set_code(struct err *e, status code, const char *sqlstate)
{
    err_clear(e);
    e->code = code;
    copy_text(e->sqlstate, sizeof e->sqlstate, sqlstate);
}

static PRINTF_LIKE(4, 0) void set(struct err *e, status code, const char *sqlstate, const char *fmt,
                                  va_list args)
{
    if (e == NULL)
        return;
    set_code(e, code, sqlstate);
    set_text(e->message, sizeof e->message, fmt, args);
}

status err_set(struct err *e, status code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    set(e, code, status_sqlstate(code), fmt, args);
    va_end(args);
    return code;
}

status err_set_state(struct err *e, status code, const char *sqlstate, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    set(e, code, sqlstate, fmt, args);
    va_end(args);
    return code;
}

void err_detail(struct err *e, const char *fmt, ...)
{
    if (e == NULL)
        return;
    va_list args;
    va_start(args, fmt);
    set_text(e->detail, sizeof e->detail, fmt, args);
    va_end(args);
}

void err_hint(struct err *e, const char *fmt, ...)
{
    if (e == NULL)
        return;
    va_list args;
    va_start(args, fmt);
    set_text(e->hint, sizeof e->hint, fmt, args);
    va_end(args);
}

void err_where(struct err *e, const char *schema, const char *table, const char *column,
               const char *constraint)
{
    if (e == NULL)
        return;
    if (schema != NULL)
        copy_text(e->schema, sizeof e->schema, schema);
    if (table != NULL)
        copy_text(e->table, sizeof e->table, table);
    if (column != NULL)
        copy_text(e->column, sizeof e->column, column);
    if (constraint != NULL)
        copy_text(e->constraint, sizeof e->constraint, constraint);
}

void err_default(struct err *e, status code)
{
    if (e == NULL || e->code != ST_OK || code == ST_OK)
        return;
    set_code(e, code, status_sqlstate(code));
    copy_text(e->message, sizeof e->message, status_text(code));
}
