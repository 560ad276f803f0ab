/*
 * Any bytes as what a client sends: start-up packets, frames, the fields of every message, and
 * COPY's formats.
 *
 * The first byte chooses what the rest is. What must hold: no crash, no read beyond the input; a
 * frame that is whole is not longer than the input; a decoded message accounts for its body to the
 * last byte; COPY gives the same rows whether its bytes come at once or in two pieces.
 */
#include "base/assert.h"
#include "frontend/copy_parse.h"
#include "frontend/pgwire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_values(struct fe_values v)
{
    while (v.count > 0) {
        bytes out;
        if (fe_values_take(&v, &out) && out.size > 0)
            ASSERT(out.data + out.size <= v.raw.data + v.raw.size);
    }
    ASSERT(v.raw.size == 0);
}

static void check_bind(bytes body)
{
    struct fe_msg_bind m;
    struct err err;
    if (fe_decode_bind(body, &m, &err) != ST_OK)
        return;
    size_t used = m.portal.size + 1 + m.statement.size + 1 + 2 + 2 * (size_t)m.param_formats.count +
                  2 + m.params.raw.size + 2 + 2 * (size_t)m.result_formats.count;
    ASSERT(used == body.size);
    check_values(m.params);
    for (unsigned i = 0; i < m.param_formats.count; i++)
        (void)fe_int16_at(m.param_formats, i);
}

static void check_parse(bytes body)
{
    struct fe_msg_parse m;
    struct err err;
    if (fe_decode_parse(body, &m, &err) != ST_OK)
        return;
    ASSERT(m.name.size + 1 + m.text.size + 1 + 2 + 4 * (size_t)m.types.count == body.size);
    for (unsigned i = 0; i < m.types.count; i++)
        (void)fe_oid_at(m.types, i);
    status st = fe_utf8_check(m.text, &err);
    ASSERT(st == ST_OK || err.message[0] != '\0');
}

static void decode(const struct fe_frame *f)
{
    struct err err;
    union {
        struct fe_msg_query query;
        struct fe_msg_describe describe;
        struct fe_msg_execute execute;
        struct fe_msg_close close;
        struct fe_msg_copy_fail copy_fail;
    } m;
    status st = ST_OK;
    switch (f->type) {
    case 'B': check_bind(f->body); break;
    case 'P': check_parse(f->body); break;
    case 'Q':
        st = fe_decode_query(f->body, &m.query, &err);
        ASSERT(st != ST_OK || m.query.text.size + 1 == f->body.size);
        break;
    case 'D': st = fe_decode_describe(f->body, &m.describe, &err); break;
    case 'E': st = fe_decode_execute(f->body, &m.execute, &err); break;
    case 'C': st = fe_decode_close(f->body, &m.close, &err); break;
    case 'f': st = fe_decode_copy_fail(f->body, &m.copy_fail, &err); break;
    default: st = fe_decode_nothing(f->body, &err); break;
    }
    ASSERT(st == ST_OK || st == ST_PROTOCOL);
}

static void frames(bytes in)
{
    struct fe_frame f;
    while (fe_frame_next(in, &f) == FE_FRAME_OK) {
        ASSERT(f.total <= in.size);
        decode(&f);
        in = bytes_make(in.data + f.total, in.size - f.total);
    }
}

static void startup(bytes in)
{
    struct fe_frame f;
    if (fe_startup_next(in, &f) != FE_FRAME_OK || f.body.size < 4)
        return;
    bytes pairs = bytes_make(f.body.data + 4, f.body.size - 4), name, value;
    while (fe_startup_pair(&pairs, &name, &value) == ST_OK)
        ASSERT(name.size > 0);
}

/* A sum over all fields of all rows, or of how it failed. */
static uint64_t copy_sum(enum fe_copy_kind kind, bytes in, size_t cut)
{
    struct fe_copy_parser p;
    struct fe_copy_row row;
    struct arena a;
    struct err err;
    uint64_t sum = 1;
    arena_init(&a, 1024);
    fe_copy_parser_init(&p, kind);
    for (unsigned piece = 0; piece < 2; piece++) {
        bytes part =
            piece == 0 ? bytes_make(in.data, cut) : bytes_make(in.data + cut, in.size - cut);
        fe_copy_feed(&p, part);
        status st;
        while ((st = fe_copy_next(&p, piece == 1, &a, &row, &err)) == ST_OK) {
            for (unsigned i = 0; i < row.count; i++) {
                sum = sum * 31 + row.nulls[i];
                for (size_t k = 0; k < row.fields[i].size; k++)
                    sum = sum * 31 + row.fields[i].data[k];
            }
            sum = sum * 31 + row.count;
        }
        if (st != ST_NOT_FOUND && st != ST_END) {
            sum = sum * 31 + (uint64_t)st;
            break;
        }
    }
    fe_copy_parser_fini(&p);
    arena_fini(&a);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    bytes in = bytes_make(data + 2, size - 2);
    size_t cut = in.size > 0 ? data[1] % (in.size + 1) : 0;
    switch (data[0] % 5) {
    case 0: startup(in); break;
    case 1: frames(in); break;
    default: {
        enum fe_copy_kind kind = (enum fe_copy_kind)(data[0] % 5 - 2);
        ASSERT(copy_sum(kind, in, cut) == copy_sum(kind, in, in.size));
        break;
    }
    }
    return 0;
}
