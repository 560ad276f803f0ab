/*
 * base/log.c — one event, one line, one write(2).
 *
 * A line is put together on the stack and written at once, so that lines of several threads do not
 * mix and a crash loses none. A line over LINE_BYTES is cut; it still ends with a newline.
 *
 * Values: numbers plain, texts in double quotes with \" \\ \n \xNN for whatever would break the
 * line or a terminal. Field and event names are literals of ours and written as they are.
 */
#include "base/log.h"
#include "base/compiler.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 2048u

static _Atomic int threshold = LOG_LEVEL_INFO;

static const char *const level_names[] = {
    [LOG_LEVEL_DEBUG] = "debug",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_ERROR] = "error",
};
static const char *const level_marks[] = {
    [LOG_LEVEL_DEBUG] = "DEBUG",
    [LOG_LEVEL_INFO] = "INFO",
    [LOG_LEVEL_WARN] = "WARN",
    [LOG_LEVEL_ERROR] = "ERROR",
};

struct line {
    char text[LINE_BYTES];
    size_t size; /* one byte is always left for the newline */
};

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

bool log_parse_level(const char *text, enum log_level *out)
{
    for (unsigned i = 0; i < ARRAY_LEN(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

static void put_char(struct line *l, char c)
{
    if (l->size < LINE_BYTES - 1)
        l->text[l->size++] = c;
}

static void put_plain(struct line *l, const char *s)
{
    while (*s != '\0')
        put_char(l, *s++);
}

static PRINTF_LIKE(2, 3) void put_format(struct line *l, const char *fmt, ...)
{
    char text[64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    put_plain(l, text);
}

static void put_quoted(struct line *l, bytes b)
{
    put_char(l, '"');
    for (size_t i = 0; i < b.size; i++) {
        uint8_t c = b.data[i];
        if (c == '"' || c == '\\') {
            put_char(l, '\\');
            put_char(l, (char)c);
        } else if (c == '\n') {
            put_plain(l, "\\n");
        } else if (c < 0x20 || c == 0x7F) {
            put_format(l, "\\x%02x", c);
        } else {
            put_char(l, (char)c);
        }
    }
    put_char(l, '"');
}

static void put_field(struct line *l, const struct log_field *f)
{
    put_char(l, ' ');
    put_plain(l, f->name);
    put_char(l, '=');
    switch (f->kind) {
    case LOG_FIELD_U64: put_format(l, "%llu", (unsigned long long)f->u); break;
    case LOG_FIELD_I64: put_format(l, "%lld", (long long)f->i); break;
    case LOG_FIELD_STR: put_quoted(l, bytes_str(f->s != NULL ? f->s : "")); break;
    case LOG_FIELD_BYTES: put_quoted(l, f->b); break;
    case LOG_FIELD_END: break;
    }
}

static void put_time(struct line *l)
{
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    put_format(l, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ ", tm.tm_year + 1900, tm.tm_mon + 1,
               tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, now.tv_nsec / 1000);
}

void log_write(enum log_level level, const char *event, const struct log_field *fields)
{
    struct line l;
    l.size = 0;
    put_time(&l);
    put_plain(&l, level_marks[level]);
    put_char(&l, ' ');
    put_plain(&l, event);
    for (const struct log_field *f = fields; f->kind != LOG_FIELD_END; f++)
        put_field(&l, f);
    l.text[l.size++] = '\n';
    /* Standard error that is full or closed has no better place to complain to. */
    ssize_t written = write(STDERR_FILENO, l.text, l.size);
    UNUSED(written);
}
