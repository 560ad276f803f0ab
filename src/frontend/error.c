/*
 * frontend/error.c — ErrorResponse and NoticeResponse.
 *
 * Fields in PostgreSQL's order. S and V carry the severity: clients read V, people read S. A text
 * may quote what a client sent, so bytes that are no UTF-8 become '?': the client would drop the
 * connection over them.
 */
#include "frontend/session.h"
#include <stdarg.h>
#include <stdio.h>

static void put_text(struct obuf *o, const char *text)
{
    bytes left = bytes_str(text);
    for (;;) {
        size_t fault = fe_utf8_fault(left);
        if (fault == SIZE_MAX)
            break;
        obuf_put(o, left.data, fault);
        obuf_u8(o, '?');
        left = bytes_make(left.data + fault + 1, left.size - fault - 1);
    }
    obuf_put(o, left.data, left.size);
    obuf_u8(o, 0);
}

static void put_field(struct obuf *o, char code, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    obuf_u8(o, (uint8_t)code);
    put_text(o, text);
}

/* Positions count characters of the whole message, and where a piece ends the grammar has met a
 * semicolon. */
void fe_error_of_piece(struct err *err, bytes whole, bytes piece)
{
    static const char at_end[] = " at end of input";
    for (const uint8_t *p = whole.data; err->position > 0 && p < piece.data; p++)
        err->position += (*p & 0xC0) != 0x80;
    char *end = strstr(err->message, at_end);
    if (end != NULL && piece.data + piece.size < whole.data + whole.size)
        memcpy(end, " at or near \";\"", sizeof " at or near \";\"");
}

void fe_put_error(struct obuf *o, char type, const char *severity, const struct err *err,
                  const char *context)
{
    char position[16] = "";
    if (err->position > 0)
        snprintf(position, sizeof position, "%u", err->position);
    size_t at = fe_message_begin(o, type);
    put_field(o, 'S', severity);
    put_field(o, 'V', severity);
    put_field(o, 'C', err->sqlstate[0] != '\0' ? err->sqlstate : "XX000");
    put_field(o, 'M', err->message[0] != '\0' ? err->message : status_text(err->code));
    put_field(o, 'D', err->detail);
    put_field(o, 'H', err->hint);
    put_field(o, 'P', position);
    put_field(o, 'W', context);
    put_field(o, 's', err->schema);
    put_field(o, 't', err->table);
    put_field(o, 'c', err->column);
    put_field(o, 'n', err->constraint);
    obuf_u8(o, 0);
    fe_message_end(o, at);
}

static void PRINTF_LIKE(4, 0) put_notice(struct fe_session *s, const char *severity,
                                         const char *sqlstate, const char *fmt, va_list args)
{
    struct err err;
    char text[256];
    vsnprintf(text, sizeof text, fmt, args);
    (void)err_set_state(&err, ST_INVALID, sqlstate, "%s", text);
    fe_put_error(fe_out(s), 'N', severity, &err, NULL);
}

void fe_notice(struct fe_session *s, const char *fmt, ...)
{
    va_list args;
    if (s->settings.no_notices)
        return;
    va_start(args, fmt);
    put_notice(s, "NOTICE", "00000", fmt, args);
    va_end(args);
}

void fe_warning(struct fe_session *s, const char *sqlstate, const char *fmt, ...)
{
    va_list args;
    if (s->settings.no_warnings)
        return;
    va_start(args, fmt);
    put_notice(s, "WARNING", sqlstate, fmt, args);
    va_end(args);
}
