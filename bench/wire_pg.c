/*
 * bench/wire_pg.c — the client's side of PostgreSQL protocol 3.0, for metadb and PostgreSQL.
 *
 * Prepared: each connection parses the plan's steps once as s0, s1, ..; an operation is Bind and
 * Execute per step; Sync ends a batch. Values travel as text, as psql, pgbench and most drivers
 * send them. Simple: one Query per operation with the literals in the text, its steps joined by
 * semicolons. Either way an answer ends with ReadyForQuery; everything before it is walked over by
 * the messages' lengths, and only command tags and errors are read.
 */
#include "base/bytes.h"
#include "wire.h"
#include <string.h>

#define PROTOCOL_3_0 (3u << 16)

/* STEP with $1, $2, .. for its letters, in the order of their first use, which LETTERS gets. */
static unsigned number_params(const char *step, struct out *text, char letters[STEP_PARAMS_MAX])
{
    unsigned count = 0;
    for (const char *s = step; *s; s++) {
        if (*s != '$') {
            out_u8(text, (unsigned char)*s);
            continue;
        }
        unsigned i = 0;
        s++;
        while (i < count && letters[i] != *s)
            i++;
        if (i == count) {
            if (count == STEP_PARAMS_MAX)
                die("too many parameters: %s", step);
            letters[count++] = *s;
        }
        out_u8(text, '$');
        out_decimal(text, i + 1);
    }
    out_u8(text, 0);
    return count;
}

static void put_startup(struct out *o, const struct target *t)
{
    size_t begin = out_begin(o, 0);
    out_u32(o, PROTOCOL_3_0);
    out_cstr(o, "user");
    out_cstr(o, t->user);
    out_cstr(o, "database");
    out_cstr(o, t->database);
    out_cstr(o, "application_name");
    out_cstr(o, "metadb_load");
    out_u8(o, 0);
    out_end(o, begin);
}

static void put_step_name(struct out *o, unsigned step)
{
    out_u8(o, 's');
    out_u8(o, '0' + step);
    out_u8(o, 0);
}

static void put_parse(struct out *o, unsigned step, const char *text)
{
    char letters[STEP_PARAMS_MAX];
    struct out numbered = {0};
    number_params(text, &numbered, letters);
    size_t begin = out_begin(o, 'P');
    put_step_name(o, step);
    out_bytes(o, numbered.data, numbered.size);
    out_u16(o, 0);
    out_end(o, begin);
    out_free(&numbered);
}

static void put_sync(struct out *o, const struct target *t)
{
    if (!t->simple)
        out_end(o, out_begin(o, 'S'));
}

static bool hello(struct out *o, unsigned stage, const struct target *t, const struct plan *plan)
{
    if (stage == 0) {
        put_startup(o, t);
        return true;
    }
    if (stage > 1 || !plan || t->simple)
        return false;
    for (unsigned i = 0; i < plan->step_count; i++)
        put_parse(o, i, plan->steps[i]);
    put_sync(o, t);
    return true;
}

/* A Bind's values: each letter once, in the order in which number_params counts them. */
static unsigned put_values(struct out *o, const char *step, const struct op *op)
{
    unsigned count = 0;
    uint32_t seen = 0;
    for (const char *s = strchr(step, '$'); s; s = strchr(s + 1, '$')) {
        uint32_t bit = 1u << (s[1] - 'a');
        if (seen & bit)
            continue;
        seen |= bit;
        const char *value = op_value(op, s[1]);
        size_t size = strlen(value);
        out_u32(o, (uint32_t)size);
        out_bytes(o, value, size);
        count++;
    }
    return count;
}

static void put_bind_execute(struct out *o, unsigned step, const char *text, const struct op *op)
{
    size_t begin = out_begin(o, 'B');
    out_u8(o, 0);
    put_step_name(o, step);
    out_u16(o, 0);
    size_t count_at = o->size;
    out_u16(o, 0);
    unsigned count = put_values(o, text, op);
    o->data[count_at + 1] = (uint8_t)count;
    out_u16(o, 0);
    out_end(o, begin);
    begin = out_begin(o, 'E');
    out_u8(o, 0);
    out_u32(o, 0);
    out_end(o, begin);
}

static void put_literals(struct out *o, const char *step, const struct op *op)
{
    for (const char *s = step; *s; s++) {
        if (*s != '$') {
            out_u8(o, (unsigned char)*s);
            continue;
        }
        bool quote = !op_is_number(*++s);
        if (quote)
            out_u8(o, '\'');
        out_text(o, op_value(op, *s));
        if (quote)
            out_u8(o, '\'');
    }
}

static void operation(struct out *o, const struct target *t, const struct plan *plan,
                      const struct op *op)
{
    if (!t->simple) {
        for (unsigned i = 0; i < plan->step_count; i++)
            put_bind_execute(o, i, plan->steps[i], op);
        return;
    }
    size_t begin = out_begin(o, 'Q');
    for (unsigned i = 0; i < plan->step_count; i++) {
        if (i > 0)
            out_text(o, "; ");
        put_literals(o, plan->steps[i], op);
    }
    out_u8(o, 0);
    out_end(o, begin);
}

/* "INSERT 0 1", "SELECT 1000", "UPDATE 1": the number at the end; tags without one say nothing. */
static bool tag_reports(const char *tag, size_t size, uint64_t rows)
{
    uint64_t n = 0, scale = 1;
    size_t i = size;
    while (i > 0 && tag[i - 1] >= '0' && tag[i - 1] <= '9') {
        n += (uint64_t)(tag[--i] - '0') * scale;
        scale *= 10;
    }
    return i == size || n == rows;
}

static void on_tag(const uint8_t *body, size_t size, uint64_t rows, struct answer *a)
{
    const char *tag = (const char *)body;
    size_t length = strnlen(tag, size);
    if (rows != ROWS_ANY && !tag_reports(tag, length, rows))
        answer_fail(a, tag, length);
}

/* SQLSTATE and message of an ErrorResponse. */
static void on_error(const uint8_t *body, size_t size, struct answer *a)
{
    char text[sizeof a->error] = "";
    size_t used = 0;
    for (size_t i = 0; i < size && body[i];) {
        const char *value = (const char *)body + i + 1;
        size_t length = strnlen(value, size - i - 1);
        if ((body[i] == 'C' || body[i] == 'M') && used + length + 2 < sizeof text) {
            if (used)
                text[used++] = ' ';
            memcpy(text + used, value, length);
            used += length;
        }
        i += length + 2;
    }
    answer_fail(a, text, used);
}

static bool answer(const uint8_t *data, size_t size, uint64_t rows, struct answer *a)
{
    while (size - a->at >= 5) {
        const uint8_t *m = data + a->at;
        uint32_t length = load_u32(m + 1);
        if (length < 4)
            die("a message of %u bytes", length);
        if (size - a->at < (size_t)length + 1)
            return false;
        a->at += (size_t)length + 1;
        switch (m[0]) {
        case 'C': on_tag(m + 5, length - 4, rows, a); break;
        case 'E': on_error(m + 5, length - 4, a); break;
        case 'R':
            if (length < 8 || load_u32(m + 5) != 0)
                die("the server asks for a password; use trust");
            break;
        case 'Z': return true;
        default: break;
        }
    }
    return false;
}

const struct wire wire_pg = {
    .hello = hello, .operation = operation, .sync = put_sync, .answer = answer};
