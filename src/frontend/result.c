/*
 * frontend/result.c — rows and their descriptions, written straight into the output.
 *
 * The rows of a read that go to the client as they are take another way: row_encoder.c.
 *
 * Rows of what cannot be run in pieces (RETURNING, session functions, catalogue relations) under a
 * row limit go to the portal's store first and are delivered from there.
 */
#include "base/assert.h"
#include "frontend/execute.h"
#include <stdio.h>

void fe_put_row_description(struct obuf *o, struct fe_shape shape, const int16_t *formats,
                            unsigned format_count)
{
    if (!shape.rows) {
        fe_put_empty(o, 'n');
        return;
    }
    size_t at = fe_message_begin(o, 'T');
    obuf_be16(o, (uint16_t)shape.count);
    for (unsigned i = 0; i < shape.count; i++) {
        const struct pl_column *c = &shape.columns[i];
        fe_put_string(o, c->name);
        /* No table: drivers that get one ask the catalogues about it. */
        obuf_be32(o, 0);
        obuf_be16(o, 0);
        obuf_be32(o, c->oid);
        obuf_be16(o, (uint16_t)pl_type_size(c->oid));
        obuf_be32(o, (uint32_t)c->typmod);
        obuf_be16(o, (uint16_t)fe_format_of(formats, format_count, i));
    }
    fe_message_end(o, at);
}

void fe_put_parameter_description(struct obuf *o, const struct pl_plan *plan)
{
    unsigned count = plan != NULL ? plan->param_count : 0;
    size_t at = fe_message_begin(o, 't');
    obuf_be16(o, (uint16_t)count);
    for (unsigned i = 0; i < count; i++)
        obuf_be32(o, plan->param_types[i]);
    fe_message_end(o, at);
}

/* -- one row ----------------------------------------------------------------------------------- */

void fe_describe_once(struct fe_session *s)
{
    struct fe_run *r = &s->work->run;
    if (!r->describe_now)
        return;
    r->describe_now = false;
    fe_put_row_description(fe_out(s), r->shape, r->formats, r->format_count);
}

/* Where a field's bytes go: the row itself, or the scratch buffer from which COPY escapes them. */
static bool escapes(const struct fe_run *r)
{
    return r->sink == FE_SINK_COPY && !r->copy_binary;
}

static bool binary(const struct fe_run *r, unsigned i)
{
    if (r->sink == FE_SINK_COPY)
        return r->copy_binary;
    return fe_format_of(r->formats, r->format_count, i) == 1;
}

static size_t row_begin(struct fe_session *s, struct fe_run *r, unsigned count)
{
    if (r->sink == FE_SINK_ROWS)
        fe_describe_once(s);
    size_t at = fe_message_begin(r->target, r->sink == FE_SINK_COPY ? 'd' : 'D');
    if (r->sink == FE_SINK_COPY)
        fe_copy_header(r, r->target);
    if (!escapes(r))
        obuf_be16(r->target, (uint16_t)count);
    return at;
}

static void row_end(struct fe_run *r, size_t at)
{
    if (escapes(r))
        obuf_u8(r->target, '\n');
    fe_message_end(r->target, at);
}

static void put_text(struct fe_run *r, unsigned i, bytes text, bool null)
{
    if (escapes(r)) {
        fe_copy_text_field(r, r->target, i == 0, text, null);
        return;
    }
    obuf_be32(r->target, null ? UINT32_MAX : (uint32_t)text.size);
    if (!null)
        obuf_put(r->target, text.data, text.size);
}

static void put_datum(struct fe_session *s, struct fe_run *r, unsigned i, const struct kv_datum *d)
{
    enum kv_type t = r->shape.columns[i].type;
    if (!escapes(r)) {
        pl_datum_to_field(t, d, binary(r, i), &s->settings.style, r->target);
        return;
    }
    obuf_reset(&r->scratch);
    pl_datum_to_field(t, d, false, &s->settings.style, &r->scratch);
    bytes text = d->null ? BYTES_EMPTY : bytes_make(r->scratch.data + 4, r->scratch.size - 4);
    fe_copy_text_field(r, r->target, i == 0, text, d->null);
}

static void put_value(struct fe_session *s, struct fe_run *r, unsigned i, const struct pl_value *v)
{
    if (v->null) {
        put_text(r, i, BYTES_EMPTY, true);
        return;
    }
    if (escapes(r)) {
        obuf_reset(&r->scratch);
        pl_value_to_text(v, &s->settings.style, &r->scratch);
        fe_copy_text_field(r, r->target, i == 0, bytes_make(r->scratch.data, r->scratch.size),
                           false);
        return;
    }
    size_t at = r->target->size;
    obuf_be32(r->target, 0);
    if (binary(r, i))
        pl_value_to_binary(v, r->target);
    else
        pl_value_to_text(v, &s->settings.style, r->target);
    obuf_patch_be32(r->target, at, (uint32_t)(r->target->size - at - 4));
}

/* Counts a row. Is it to be written, and can it be? */
static bool shows_row(struct fe_run *r)
{
    r->rows++;
    if (r->sink == FE_SINK_NOTHING)
        return false;
    r->bad_row = r->sink == FE_SINK_ROWS && r->bad_format != 0;
    return !r->bad_row;
}

bool fe_row_of_kv(void *session, const struct kv_row *row)
{
    struct fe_session *s = session;
    struct fe_run *r = &s->work->run;
    if (!shows_row(r))
        return true;
    size_t at = row_begin(s, r, r->shape.count);
    for (unsigned i = 0; i < r->shape.count; i++) {
        const struct pl_column *column = &r->shape.columns[i];
        const struct kv_datum *d = &row->col[column->source < 0 ? 0 : column->source];
        if (column->source == PL_CONSTANT)
            put_value(s, r, i, column->constant);
        else
            put_datum(s, r, i, d);
    }
    row_end(r, at);
    return true;
}

void fe_row_of_datums(struct fe_session *s, const struct kv_datum *datums)
{
    struct fe_run *r = &s->work->run;
    if (!shows_row(r))
        return;
    size_t at = row_begin(s, r, r->shape.count);
    for (unsigned i = 0; i < r->shape.count; i++)
        put_datum(s, r, i,
                  &datums[r->shape.columns[i].source < 0 ? (int)i : r->shape.columns[i].source]);
    row_end(r, at);
}

void fe_row_of_values(struct fe_session *s, const struct pl_value *values, unsigned count)
{
    struct fe_run *r = &s->work->run;
    if (!shows_row(r))
        return;
    size_t at = row_begin(s, r, count);
    for (unsigned i = 0; i < count; i++)
        put_value(s, r, i, &values[i]);
    row_end(r, at);
}

void fe_row_of_texts(struct fe_session *s, const char *const *texts, unsigned count)
{
    struct fe_run *r = &s->work->run;
    if (!shows_row(r))
        return;
    size_t at = row_begin(s, r, count);
    for (unsigned i = 0; i < count; i++)
        put_text(r, i, texts[i] != NULL ? bytes_str(texts[i]) : BYTES_EMPTY, texts[i] == NULL);
    row_end(r, at);
}

/* -- the store --------------------------------------------------------------------------------- */

struct obuf *fe_run_target(struct fe_session *s)
{
    const struct fe_run *r = &s->work->run;
    return r->keeping ? &r->told->store : fe_out(s);
}

bool fe_store_deliver(struct fe_session *s, struct fe_portal *p)
{
    struct fe_run *r = &s->work->run;
    struct obuf *o = fe_run_target(s);
    while (p->store_at < p->store.size && r->rows < r->limit) {
        uint32_t length;
        memcpy(&length, p->store.data + p->store_at + 1, sizeof length);
        size_t total = 1 + (size_t)__builtin_bswap32(length);
        ASSERT(total <= p->store.size - p->store_at);
        if (r->sink == FE_SINK_ROWS) {
            fe_describe_once(s);
            obuf_put(o, p->store.data + p->store_at, total);
        }
        p->store_at += total;
        r->rows++;
    }
    return p->store_at == p->store.size;
}

void fe_told_begin(struct fe_session *s, struct fe_portal *p)
{
    struct fe_run *r = &s->work->run;
    p->told = true;
    r->told = p;
    r->keeping = r->limit != INT64_MAX;
    r->told_limit = r->limit;
    r->limit = INT64_MAX;
}

void fe_told_end(struct fe_session *s, struct fe_portal *p)
{
    struct fe_run *r = &s->work->run;
    if (r->told == p) {
        memcpy(p->tag, r->tag, sizeof p->tag);
        if (!r->keeping)
            return;
        r->limit = r->told_limit;
    }
    r->told = NULL;
    r->keeping = false;
    r->sink = FE_SINK_ROWS;
    r->rows = 0;
    (void)fe_store_deliver(s, p);
    r->suspended = r->limit != INT64_MAX && r->rows == r->limit;
    /* A tag that counts rows counts those of this Execute. */
    size_t word = strlen(p->tag);
    while (word > 0 && p->tag[word - 1] >= '0' && p->tag[word - 1] <= '9')
        word--;
    if (p->tag[word] == '\0') {
        memcpy(r->tag, p->tag, sizeof r->tag);
        return;
    }
    char words[sizeof p->tag];
    snprintf(words, sizeof words, "%.*s", (int)word - 1, p->tag);
    fe_run_tag(r, words, r->rows);
}

/* The encoder of what runs. A prepared statement that is run again in the format of its first run
 * has it already; its text depends on the session's style only where a row is written. */
void fe_page_encoder(struct fe_session *s)
{
    struct fe_run *r = &s->work->run;
    struct fe_statement *st = r->source->statement;
    const struct pl_style *style = &s->settings.style;
    int16_t format = fe_format_of(r->formats, r->format_count, 0);
    bool own = r->format_count <= 1 && st->name != NULL && st->stmt.plan != NULL &&
               r->shape.columns == st->stmt.plan->columns;
    if (own && st->encoder.fields == NULL && fe_row_encoder_keeps(r->shape)) {
        fe_row_encoder_init(&st->encoder, &st->arena, r->shape, r->formats, r->format_count, style);
        st->encoder_format = format;
    }
    if (own && st->encoder.fields != NULL && st->encoder_format == format) {
        r->page.encoder = st->encoder;
        r->page.encoder.style = style;
        return;
    }
    fe_row_encoder_init(&r->page.encoder, &s->work->call_arena, r->shape, r->formats,
                        r->format_count, style);
}
