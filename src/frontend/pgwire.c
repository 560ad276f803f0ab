/*
 * frontend/pgwire.c — frames and fields of protocol 3.
 *
 * Vocabulary: a *frame* is type, length, body; the length counts itself but not the type. A
 * *packet* of the start-up phase has no type. A *cursor* walks a body and never passes its end.
 *
 * Invariants
 *   P1  A type is judged before its length, a length before its body: nothing is waited for that
 *       would be refused.
 *   P2  A decoder reads its fields in order and succeeds only if the body is used up exactly.
 *   P3  Nothing is allocated here, so no length can make anything large.
 */
#include "frontend/pgwire.h"
#include "base/assert.h"
#include "base/limits.h"

/* -- frames ------------------------------------------------------------------------------------ */

static uint32_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap32(v);
}

static uint16_t load16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap16(v);
}

/* By type: one more than the largest body; 0 if there is no such message. */
#define FE_MESSAGE(letter, NAME, name, largest) [letter] = (largest) + 1,
static const uint32_t body_limits[256] = {
#include "frontend/pgwire_msgs.def"
};

/* The message at the front of IN, which is not empty; its body is below LIMIT, 0 = there is none of
 * its type. */
static enum fe_framing frame_take(bytes in, uint32_t limit, struct fe_frame *out)
{
    if (limit == 0)
        return FE_FRAME_UNKNOWN;
    if (in.size < 5)
        return FE_FRAME_MORE;
    uint32_t length = load32(in.data + 1);
    if (length < 4 || length - 4 >= limit)
        return FE_FRAME_BAD_LENGTH;
    out->total = 1 + (size_t)length;
    if (in.size < out->total)
        return FE_FRAME_MORE;
    out->body = bytes_make(in.data + 5, length - 4);
    return FE_FRAME_OK;
}

enum fe_framing fe_frame_next(bytes in, struct fe_frame *out)
{
    *out = (struct fe_frame){0};
    if (in.size == 0)
        return FE_FRAME_MORE;
    out->type = in.data[0];
    return frame_take(in, body_limits[out->type], out);
}

enum fe_framing fe_login_next(bytes in, struct fe_frame *out)
{
    *out = (struct fe_frame){0};
    if (in.size == 0)
        return FE_FRAME_MORE;
    out->type = in.data[0];
    /* The limit counts the length's own four bytes. */
    return frame_take(in, out->type == 'p' ? LIMIT_LOGIN_BYTES - 3 : 0, out);
}

enum fe_framing fe_startup_next(bytes in, struct fe_frame *out)
{
    *out = (struct fe_frame){0};
    if (in.size < 4)
        return FE_FRAME_MORE;
    uint32_t length = load32(in.data);
    if (length < 8 || length > LIMIT_STARTUP_BYTES)
        return FE_FRAME_BAD_LENGTH;
    out->total = length;
    if (in.size < out->total)
        return FE_FRAME_MORE;
    out->body = bytes_make(in.data + 4, length - 4);
    return FE_FRAME_OK;
}

/* -- fields ------------------------------------------------------------------------------------ */

static bool take(bytes *in, size_t n, bytes *out)
{
    if (in->size < n)
        return false;
    *out = bytes_make(in->data, n);
    *in = bytes_make(in->data + n, in->size - n);
    return true;
}

static status short_message(struct err *err)
{
    return err_set(err, ST_PROTOCOL, "insufficient data left in message");
}

static NODISCARD status read_byte(bytes *in, fe_field_byte *out, struct err *err)
{
    bytes b;
    if (!take(in, 1, &b))
        return err_set(err, ST_PROTOCOL, "no data left in message");
    *out = b.data[0];
    return ST_OK;
}

static NODISCARD status read_int32(bytes *in, fe_field_int32 *out, struct err *err)
{
    bytes b;
    if (!take(in, 4, &b))
        return short_message(err);
    *out = (int32_t)load32(b.data);
    return ST_OK;
}

static NODISCARD status read_string(bytes *in, fe_field_string *out, struct err *err)
{
    const uint8_t *zero = in->size > 0 ? memchr(in->data, 0, in->size) : NULL;
    if (zero == NULL)
        return err_set(err, ST_PROTOCOL, "invalid string in message");
    size_t n = (size_t)(zero - in->data);
    *out = bytes_make(in->data, n);
    *in = bytes_make(in->data + n + 1, in->size - n - 1);
    return ST_OK;
}

static NODISCARD status read_numbers(bytes *in, size_t each, struct fe_numbers *out,
                                     struct err *err)
{
    bytes b;
    if (!take(in, 2, &b))
        return short_message(err);
    out->count = load16(b.data);
    if (!take(in, each * out->count, &b))
        return short_message(err);
    out->data = b.data;
    return ST_OK;
}

static NODISCARD status read_oids(bytes *in, fe_field_oids *out, struct err *err)
{
    return read_numbers(in, 4, out, err);
}

static NODISCARD status read_int16s(bytes *in, fe_field_int16s *out, struct err *err)
{
    return read_numbers(in, 2, out, err);
}

static NODISCARD status read_values(bytes *in, fe_field_values *out, struct err *err)
{
    bytes b;
    if (!take(in, 2, &b))
        return short_message(err);
    out->count = load16(b.data);
    const uint8_t *start = in->data;
    for (unsigned i = 0; i < out->count; i++) {
        if (!take(in, 4, &b))
            return short_message(err);
        int32_t length = (int32_t)load32(b.data);
        if (length < -1)
            return err_set(err, ST_PROTOCOL, "invalid length of a parameter value");
        if (length > 0 && !take(in, (size_t)length, &b))
            return short_message(err);
    }
    out->raw = bytes_make(start, (size_t)(in->data - start));
    return ST_OK;
}

static NODISCARD status read_end(bytes in, struct err *err)
{
    return in.size == 0 ? ST_OK : err_set(err, ST_PROTOCOL, "invalid message format");
}

#define READ_FIELD(kind, name) ST_TRY(read_##kind(&body, &out->name, err));
#define DECODER(NAME, name)                                                                        \
    status fe_decode_##name(bytes body, struct fe_msg_##name *out, struct err *err)                \
    {                                                                                              \
        FE_FIELDS_##NAME(READ_FIELD) return read_end(body, err);                                   \
    }
DECODER(QUERY, query)
DECODER(PARSE, parse)
DECODER(BIND, bind)
DECODER(DESCRIBE, describe)
DECODER(EXECUTE, execute)
DECODER(CLOSE, close)
DECODER(COPY_FAIL, copy_fail)

status fe_decode_bind_names(bytes body, struct fe_msg_bind *out, struct err *err)
{
    ST_TRY(read_string(&body, &out->portal, err));
    return read_string(&body, &out->statement, err);
}

status fe_decode_nothing(bytes body, struct err *err)
{
    return read_end(body, err);
}

int16_t fe_int16_at(struct fe_numbers n, unsigned i)
{
    ASSERT(i < n.count);
    return (int16_t)load16(n.data + 2 * (size_t)i);
}

uint32_t fe_oid_at(struct fe_numbers n, unsigned i)
{
    ASSERT(i < n.count);
    return load32(n.data + 4 * (size_t)i);
}

bool fe_values_take(struct fe_values *v, bytes *out)
{
    ASSERT(v->count > 0);
    ASSERT(v->raw.size >= 4);
    int32_t length = (int32_t)load32(v->raw.data);
    v->count--;
    v->raw = bytes_make(v->raw.data + 4, v->raw.size - 4);
    if (length < 0)
        return false;
    bool whole = take(&v->raw, (size_t)length, out);
    ASSERT(whole);
    return true;
}

status fe_startup_pair(bytes *in, bytes *name, bytes *value)
{
    if (in->size == 0)
        return ST_PROTOCOL;
    if (in->data[0] == 0)
        return in->size == 1 ? ST_END : ST_PROTOCOL;
    ST_TRY(read_string(in, name, NULL));
    return read_string(in, value, NULL);
}

/* -- messages to the client -------------------------------------------------------------------- */

size_t fe_message_begin(struct obuf *o, char type)
{
    uint8_t *p = obuf_reserve(o, 5);
    p[0] = (uint8_t)type;
    o->size += 5;
    return o->size - 4;
}

void fe_message_end(struct obuf *o, size_t at)
{
    obuf_patch_be32(o, at, (uint32_t)(o->size - at));
}

void fe_put_string(struct obuf *o, const char *text)
{
    obuf_put(o, text, strlen(text) + 1);
}

void fe_put_empty(struct obuf *o, char type)
{
    fe_message_end(o, fe_message_begin(o, type));
}

void fe_put_tag(struct obuf *o, const char *tag)
{
    size_t at = fe_message_begin(o, 'C');
    fe_put_string(o, tag);
    fe_message_end(o, at);
}

void fe_put_ready(struct obuf *o, char txn_status)
{
    size_t at = fe_message_begin(o, 'Z');
    obuf_u8(o, (uint8_t)txn_status);
    fe_message_end(o, at);
}

void fe_put_parameter(struct obuf *o, const char *name, const char *value)
{
    size_t at = fe_message_begin(o, 'S');
    fe_put_string(o, name);
    fe_put_string(o, value);
    fe_message_end(o, at);
}

/* -- UTF-8 ------------------------------------------------------------------------------------- */

/* Length of the character at P with N bytes left; 0 if it is none. */
static size_t utf8_character(const uint8_t *p, size_t n)
{
    uint8_t a = p[0];
    if (a == 0)
        return 0;
    if (a < 0x80)
        return 1;
    size_t length = a >= 0xF0 ? 4 : a >= 0xE0 ? 3 : 2;
    if (a < 0xC2 || a > 0xF4 || n < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (a == 0xE0 && p[1] < 0xA0) || (a == 0xF0 && p[1] < 0x90);
    bool surrogate = a == 0xED && p[1] > 0x9F;
    bool too_high = a == 0xF4 && p[1] > 0x8F;
    return overlong || surrogate || too_high ? 0 : length;
}

/* The N characters at P, fewer than eight: two halves that overlap, or three single ones, so that
 * none is passed over. */
static uint64_t few(const uint8_t *p, size_t n)
{
    uint32_t first, last;
    if (n < 4)
        return 0x2020202020000000u | p[0] | (uint64_t)p[n / 2] << 8 | (uint64_t)p[n - 1] << 16;
    memcpy(&first, p, 4);
    memcpy(&last, p + n - 4, 4);
    return first | (uint64_t)last << 32;
}

size_t fe_utf8_fault(bytes text)
{
    size_t at = 0;
    while (at < text.size) {
        uint64_t eight;
        size_t size = text.size - at < 8 ? text.size - at : 8;
        if (size < 8)
            eight = few(text.data + at, size);
        else
            memcpy(&eight, text.data + at, 8);
        /* Eight plain characters, none of them zero. */
        uint64_t zero = (eight - 0x0101010101010101u) & ~eight;
        if (((eight | zero) & 0x8080808080808080u) == 0) {
            at += size;
            continue;
        }
        size_t n = utf8_character(text.data + at, text.size - at);
        if (n == 0)
            return at;
        at += n;
    }
    return SIZE_MAX;
}

status fe_utf8_check(bytes text, struct err *err)
{
    size_t at = fe_utf8_fault(text);
    if (at == SIZE_MAX)
        return ST_OK;
    static const char digits[] = "0123456789abcdef";
    char shown[4 * 5 + 1];
    size_t n = 0;
    uint8_t lead = text.data[at];
    size_t show = lead >= 0xF8 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    for (size_t i = 0; i < show && at + i < text.size; i++) {
        if (i > 0)
            shown[n++] = ' ';
        shown[n++] = '0';
        shown[n++] = 'x';
        shown[n++] = digits[text.data[at + i] >> 4];
        shown[n++] = digits[text.data[at + i] & 15];
    }
    shown[n] = '\0';
    return err_set_state(err, ST_INVALID, "22021",
                         "invalid byte sequence for encoding \"UTF8\": %s", shown);
}
