/*
 * frontend/copy_out.c — COPY … TO STDOUT: the rows of a query in COPY's formats, a message a row.
 *
 * A table is copied as the query SELECT columns FROM table, so that there is one way to read.
 */
#include "base/assert.h"
#include "frontend/execute.h"

static const char binary_header[19] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";

/* -- fields ------------------------------------------------------------------------------------ */

static void put_escaped(const struct fe_run *r, struct obuf *o, bytes field)
{
    static const char plain[] = "\b\f\n\r\t\v", letters[] = "bfnrtv";
    for (size_t i = 0; i < field.size; i++) {
        uint8_t c = field.data[i];
        const char *special = c >= '\b' && c <= '\r' ? strchr(plain, c) : NULL;
        if (special != NULL && (char)c != r->copy_delimiter) {
            obuf_u8(o, '\\');
            obuf_u8(o, (uint8_t)letters[special - plain]);
            continue;
        }
        if (c == '\\' || (char)c == r->copy_delimiter) {
            /* A tab as delimiter is written by its letter. */
            obuf_u8(o, '\\');
            obuf_u8(o, special != NULL ? (uint8_t)letters[special - plain] : c);
            continue;
        }
        obuf_u8(o, c);
    }
}

static bool needs_quotes(const struct fe_run *r, bytes field)
{
    if (bytes_eq(field, bytes_str(r->copy_null)) || bytes_eq(field, BYTES_LIT("\\.")))
        return true;
    for (size_t i = 0; i < field.size; i++) {
        char c = (char)field.data[i];
        if (c == r->copy_delimiter || c == r->copy_quote || c == '\n' || c == '\r')
            return true;
    }
    return false;
}

static void put_csv(const struct fe_run *r, struct obuf *o, bytes field)
{
    if (!needs_quotes(r, field)) {
        obuf_put(o, field.data, field.size);
        return;
    }
    obuf_u8(o, (uint8_t)r->copy_quote);
    for (size_t i = 0; i < field.size; i++) {
        char c = (char)field.data[i];
        if (c == r->copy_quote || c == r->copy_escape)
            obuf_u8(o, (uint8_t)r->copy_escape);
        obuf_u8(o, (uint8_t)c);
    }
    obuf_u8(o, (uint8_t)r->copy_quote);
}

void fe_copy_text_field(struct fe_run *r, struct obuf *o, bool first, bytes field, bool null)
{
    if (!first)
        obuf_u8(o, (uint8_t)r->copy_delimiter);
    if (null)
        obuf_put(o, r->copy_null, strlen(r->copy_null));
    else if (r->copy_csv)
        put_csv(r, o, field);
    else
        put_escaped(r, o, field);
}

/* -- the run ----------------------------------------------------------------------------------- */

static void put_response(struct fe_session *s)
{
    const struct fe_run *r = &s->work->run;
    struct obuf *o = fe_out(s);
    size_t at = fe_message_begin(o, 'H');
    obuf_u8(o, r->copy_binary);
    obuf_be16(o, (uint16_t)r->shape.count);
    for (unsigned i = 0; i < r->shape.count; i++)
        obuf_be16(o, r->copy_binary);
    fe_message_end(o, at);
}

/* The binary header has no message of its own: it is in that of the first row, or the trailer. */
void fe_copy_header(struct fe_run *r, struct obuf *o)
{
    if (!r->copy_header)
        return;
    r->copy_header = false;
    obuf_put(o, binary_header, sizeof binary_header);
}

static void put_header(struct fe_session *s, const struct pl_utility *u)
{
    struct fe_run *r = &s->work->run;
    struct obuf *o = fe_out(s);
    r->copy_header = r->copy_binary;
    if (!u->header || r->copy_binary)
        return;
    size_t at = fe_message_begin(o, 'd');
    for (unsigned i = 0; i < r->shape.count; i++)
        fe_copy_text_field(r, o, i == 0, bytes_str(r->shape.columns[i].name), false);
    obuf_u8(o, '\n');
    fe_message_end(o, at);
}

static status copied(struct fe_session *s)
{
    struct fe_run *r = &s->work->run;
    struct obuf *o = fe_out(s);
    if (r->copy_binary) {
        size_t at = fe_message_begin(o, 'd');
        fe_copy_header(r, o);
        obuf_put(o, "\377\377", 2);
        fe_message_end(o, at);
    }
    fe_put_empty(o, 'c');
    fe_run_tag(r, "COPY", r->rows);
    return ST_OK;
}

static status start(struct fe_session *s, status st)
{
    struct fe_run *r = &s->work->run;
    if (st != ST_OK)
        return fe_inner_failed(s, st);
    const struct pl_utility *u = r->portal->statement->stmt.plan->utility;
    r->shape = fe_statement_shape(s, r->inner);
    if (!r->shape.rows)
        return err_set(&s->work->err, ST_UNSUPPORTED,
                       "COPY of a statement without rows is not supported");
    r->sink = FE_SINK_COPY;
    r->limit = INT64_MAX;
    r->copy_csv = u->format == PL_COPY_CSV;
    r->copy_binary = u->format == PL_COPY_BINARY;
    r->copy_delimiter = u->delimiter != '\0' ? u->delimiter : r->copy_csv ? ',' : '\t';
    r->copy_quote = u->quote != '\0' ? u->quote : '"';
    r->copy_escape = u->escape != '\0' ? u->escape : r->copy_quote;
    r->copy_null = u->null_text != NULL ? u->null_text : r->copy_csv ? "" : "\\N";
    struct fe_portal *p = fe_portal_new(s, r->inner);
    st = fe_portal_bind(s, p);
    if (st == ST_OK) {
        put_response(s);
        put_header(s, u);
        st = fe_run_source(s, p, copied);
    }
    fe_portal_unref(s, p);
    return st;
}

static void planned(struct fe_session *s, status st)
{
    fe_run_finish(s, start(s, st));
}

status fe_run_copy_out(struct fe_session *s, const struct pl_plan *plan)
{
    status st = fe_plan_inner(s, bytes_str(plan->utility->text), NULL, 0, planned);
    return st == ST_PENDING ? st : start(s, st);
}
