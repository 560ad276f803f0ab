/*
 * bench/wire_redis.c — RESP 2. A plan's one step is a command, its words separated by blanks; every
 * operation is answered on its own, in order.
 */
#include "wire.h"
#include <stdlib.h>
#include <string.h>

static bool hello(struct out *o, unsigned stage, const struct target *t, const struct plan *plan)
{
    (void)t, (void)plan;
    if (stage > 0)
        return false;
    out_text(o, "*1\r\n$4\r\nPING\r\n");
    return true;
}

/* One word with its values in place of $letter. */
static void put_word(struct out *o, const char *word, size_t size, const struct op *op)
{
    struct out text = {0};
    op_expand(&text, word, size, op);
    out_u8(o, '$');
    out_decimal(o, text.size);
    out_text(o, "\r\n");
    out_bytes(o, text.data, text.size);
    out_text(o, "\r\n");
    out_free(&text);
}

static void operation(struct out *o, const struct target *t, const struct plan *plan,
                      const struct op *op)
{
    (void)t;
    const char *s = plan->steps[0];
    unsigned words = 1;
    for (const char *c = s; *c; c++)
        words += *c == ' ';
    out_u8(o, '*');
    out_decimal(o, words);
    out_text(o, "\r\n");
    while (words-- > 0) {
        size_t size = strcspn(s, " ");
        put_word(o, s, size, op);
        s += size + 1;
    }
}

/* The line at A->at, without its CR LF; false when it is not complete. */
static bool take_line(const uint8_t *data, size_t size, struct answer *a, const char **line)
{
    const uint8_t *end = memchr(data + a->at, '\n', size - a->at);
    if (!end)
        return false;
    *line = (const char *)data + a->at;
    a->at = (size_t)(end - data) + 1;
    return true;
}

/* One element that is no array; *COUNT is 1 for a value, N for :N. */
static bool take_element(const uint8_t *data, size_t size, struct answer *a, uint64_t *count)
{
    const char *line;
    size_t begin = a->at;
    if (begin >= size || !take_line(data, size, a, &line))
        return false;
    *count = 1;
    if (line[0] == ':')
        *count = strtoull(line + 1, NULL, 10);
    else if (line[0] == '-')
        answer_fail(a, line + 1, (size_t)(data + a->at - (const uint8_t *)line) - 3);
    else if (line[0] == '$') {
        long length = strtol(line + 1, NULL, 10);
        *count = length >= 0;
        if (length >= 0)
            a->at += (size_t)length + 2;
        if (a->at > size) {
            a->at = begin;
            return false;
        }
    }
    return true;
}

static bool answer(const uint8_t *data, size_t size, uint64_t rows, struct answer *a)
{
    uint64_t count = 0, one;
    const char *line;
    if (size == 0)
        return false;
    if (data[0] == '*') {
        a->at = 0;
        if (!take_line(data, size, a, &line))
            return false;
        count = strtoull(line + 1, NULL, 10);
        for (uint64_t i = 0; i < count; i++)
            if (!take_element(data, size, a, &one))
                return false;
    } else if (!take_element(data, size, a, &count)) {
        return false;
    }
    if (rows != ROWS_ANY && !a->failed && count != rows)
        answer_fail(a, "another number of rows", 22);
    return true;
}

const struct wire wire_redis = {.hello = hello, .operation = operation, .answer = answer};
