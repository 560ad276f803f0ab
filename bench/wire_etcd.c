/*
 * bench/wire_etcd.c — etcd's v3 API: gRPC, that is HTTP/2 frames around protobuf messages.
 *
 * A call is HEADERS and DATA on a new odd stream; its answer ends with the frame that closes the
 * stream, and succeeded if there was DATA in it. Header blocks are written as literals without
 * Huffman coding and never read: nothing in them is needed. Windows are opened wide at the start,
 * and requests are too small and too few under way to exhaust the server's, so that flow control
 * needs no state here. One call at a time per connection.
 *
 * A plan's step is words: put KEY VALUE; range KEY; page AFTER END LIMIT; count FROM END;
 * txn WORDS with
 *   ?KEY it exists   !KEY it does not   -KEY delete it   +KEY=VALUE put it
 */
#include "wire_etcd.h"
#include "workload.h"
#include <stdlib.h>
#include <string.h>

enum frame { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_SETTINGS = 4, FRAME_WINDOW = 8 };

#define FLAG_ACK 1u
#define FLAG_END_STREAM 1u
#define FLAG_END_HEADERS 4u
#define FRAME_HEAD 9u
#define WINDOW_MAX 0x7fffffffu
#define SETTING_INITIAL_WINDOW 4u

/* Protobuf field numbers of etcdserverpb. */
enum {
    RANGE_KEY = 1,
    RANGE_END = 2,
    RANGE_LIMIT = 3,
    RANGE_COUNT_ONLY = 9,
    PUT_KEY = 1,
    PUT_VALUE = 2,
    DELETE_KEY = 1,
    TXN_COMPARE = 1,
    TXN_SUCCESS = 2,
    COMPARE_RESULT = 1,
    COMPARE_TARGET = 2,
    COMPARE_KEY = 3,
    COMPARE_CREATE_REVISION = 5,
    OP_PUT = 2,
    OP_DELETE = 3,
    ANSWER_ROWS = 2,
    ANSWER_COUNT = 4
};
#define TARGET_CREATE 1u
#define RESULT_GREATER 1u

static void put_frame_head(struct out *o, size_t size, enum frame type, unsigned flags,
                           uint32_t stream)
{
    out_u8(o, (unsigned)(size >> 16) & 255);
    out_u16(o, (unsigned)size & 65535);
    out_u8(o, type);
    out_u8(o, flags);
    out_u32(o, stream);
}

static void put_varint(struct out *o, uint64_t v)
{
    while (v >= 128) {
        out_u8(o, (unsigned)(v & 127) | 128);
        v >>= 7;
    }
    out_u8(o, (unsigned)v);
}

static void put_number(struct out *o, unsigned field, uint64_t v)
{
    put_varint(o, field << 3);
    put_varint(o, v);
}

static void put_field(struct out *o, unsigned field, const void *data, size_t size)
{
    put_varint(o, field << 3 | 2);
    put_varint(o, size);
    out_bytes(o, data, size);
}

/* A header as a literal that enters no table; NAME_INDEX is the name's place in the static one. */
static void put_header(struct out *o, unsigned name_index, const char *value)
{
    if (name_index < 15) {
        out_u8(o, name_index);
    } else {
        out_u8(o, 15);
        out_u8(o, name_index - 15);
    }
    out_u8(o, (unsigned)strlen(value));
    out_text(o, value);
}

static void put_call(struct out *o, const char *path, const struct out *message)
{
    enum { POST = 0x83, SCHEME_HTTP = 0x86, AUTHORITY = 1, PATH = 4, CONTENT_TYPE = 31 };
    struct out headers = {0};
    uint32_t stream = 2 * o->requests++ + 1;
    out_u8(&headers, POST);
    out_u8(&headers, SCHEME_HTTP);
    put_header(&headers, PATH, path);
    put_header(&headers, AUTHORITY, "etcd");
    put_header(&headers, CONTENT_TYPE, "application/grpc");
    out_u8(&headers, 0);
    out_u8(&headers, 2);
    out_text(&headers, "te");
    out_u8(&headers, 8);
    out_text(&headers, "trailers");
    put_frame_head(o, headers.size, FRAME_HEADERS, FLAG_END_HEADERS, stream);
    out_bytes(o, headers.data, headers.size);
    out_free(&headers);
    put_frame_head(o, message->size + 5, FRAME_DATA, FLAG_END_STREAM, stream);
    out_u8(o, 0);
    out_u32(o, (uint32_t)message->size);
    out_bytes(o, message->data, message->size);
}

static bool hello(struct out *o, unsigned stage, const struct target *t, const struct plan *plan)
{
    (void)t, (void)plan;
    if (stage > 1)
        return false;
    if (stage == 0) {
        out_text(o, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        put_frame_head(o, 6, FRAME_SETTINGS, 0, 0);
        out_u16(o, SETTING_INITIAL_WINDOW);
        out_u32(o, WINDOW_MAX);
        put_frame_head(o, 4, FRAME_WINDOW, 0, 0);
        out_u32(o, WINDOW_MAX - 65535);
        return true;
    }
    put_frame_head(o, 0, FRAME_SETTINGS, FLAG_ACK, 0);
    struct out message = {0};
    put_field(&message, RANGE_KEY, "hello", 5);
    put_call(o, "/etcdserverpb.KV/Range", &message);
    out_free(&message);
    return true;
}

static void put_request_op(struct out *txn, unsigned kind, const struct out *request)
{
    struct out op = {0};
    put_field(&op, kind, request->data, request->size);
    put_field(txn, TXN_SUCCESS, op.data, op.size);
    out_free(&op);
}

static void add_compare(struct out *txn, bool exists, const struct out *key)
{
    struct out c = {0};
    if (exists)
        put_number(&c, COMPARE_RESULT, RESULT_GREATER);
    put_number(&c, COMPARE_TARGET, TARGET_CREATE);
    put_field(&c, COMPARE_KEY, key->data, key->size);
    put_number(&c, COMPARE_CREATE_REVISION, 0);
    put_field(txn, TXN_COMPARE, c.data, c.size);
    out_free(&c);
}

static void add_put(struct out *txn, const void *key, size_t key_size, const void *value,
                    size_t value_size)
{
    struct out request = {0};
    put_field(&request, PUT_KEY, key, key_size);
    put_field(&request, PUT_VALUE, value, value_size);
    put_request_op(txn, OP_PUT, &request);
    out_free(&request);
}

static void add_delete(struct out *txn, const struct out *key)
{
    struct out request = {0};
    put_field(&request, DELETE_KEY, key->data, key->size);
    put_request_op(txn, OP_DELETE, &request);
    out_free(&request);
}

/* One word of a transaction, its values already in place. */
static void add_word(struct out *txn, char kind, const struct out *word)
{
    if (kind == '?' || kind == '!') {
        add_compare(txn, kind == '?', word);
    } else if (kind == '-') {
        add_delete(txn, word);
    } else {
        const uint8_t *equals = memchr(word->data, '=', word->size);
        size_t key_size = equals ? (size_t)(equals - word->data) : word->size;
        add_put(txn, word->data, key_size, word->data + key_size + 1, word->size - key_size - 1);
    }
}

static void put_txn(struct out *message, const char *words, const struct op *op)
{
    while (*words) {
        size_t size = strcspn(words, " ");
        struct out word = {0};
        op_expand(&word, words + 1, size - 1, op);
        add_word(message, words[0], &word);
        out_free(&word);
        words += size + (words[size] == ' ');
    }
}

/* Takes the next word of *S, with its values, into WORD. */
static void take_word(const char **s, struct out *word, const struct op *op)
{
    size_t size = strcspn(*s, " ");
    word->size = 0;
    op_expand(word, *s, size, op);
    *s += size + ((*s)[size] == ' ');
}

static void put_range(struct out *message, const char *kind, const char *s, const struct op *op)
{
    struct out word = {0};
    take_word(&s, &word, op);
    if (strncmp(kind, "page", 4) == 0)
        out_u8(&word, 0); /* the first key after AFTER */
    put_field(message, RANGE_KEY, word.data, word.size);
    if (*s) {
        take_word(&s, &word, op);
        put_field(message, RANGE_END, word.data, word.size);
    }
    if (*s)
        put_number(message, RANGE_LIMIT, strtoull(s, NULL, 10));
    if (strncmp(kind, "count", 5) == 0)
        put_number(message, RANGE_COUNT_ONLY, 1);
    out_free(&word);
}

static void put_put(struct out *message, const char *s, const struct op *op)
{
    struct out word = {0};
    take_word(&s, &word, op);
    put_field(message, PUT_KEY, word.data, word.size);
    take_word(&s, &word, op);
    put_field(message, PUT_VALUE, word.data, word.size);
    out_free(&word);
}

static void operation(struct out *o, const struct target *t, const struct plan *plan,
                      const struct op *op)
{
    (void)t;
    const char *s = plan->steps[0], *words = strchr(s, ' ') + 1;
    struct out message = {0};
    if (strncmp(s, "txn ", 4) == 0) {
        put_txn(&message, words, op);
        put_call(o, "/etcdserverpb.KV/Txn", &message);
    } else if (strncmp(s, "put ", 4) == 0) {
        put_put(&message, words, op);
        put_call(o, "/etcdserverpb.KV/Put", &message);
    } else {
        put_range(&message, s, words, op);
        put_call(o, "/etcdserverpb.KV/Range", &message);
    }
    out_free(&message);
}

void wire_etcd_put_add(struct out *txn, const char *key, const char *value)
{
    add_put(txn, key, strlen(key), value, strlen(value));
}

void wire_etcd_put_send(struct out *o, const struct out *txn)
{
    put_call(o, "/etcdserverpb.KV/Txn", txn);
}

static uint32_t frame_size(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

/* The message of an answer: the DATA frames of SIZE bytes of frames, joined. */
static void join_data(const uint8_t *data, size_t size, struct out *message)
{
    for (size_t at = 0; at < size; at += FRAME_HEAD + frame_size(data + at))
        if (data[at + 3] == FRAME_DATA)
            out_bytes(message, data + at + FRAME_HEAD, frame_size(data + at));
}

static bool take_varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        uint8_t byte = *(*p)++;
        *v |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

/* Reads the numbers of a response: ROWS is how many key-values it has, or its "succeeded". */
static bool read_message(const struct out *message, uint64_t *rows, uint64_t *count)
{
    const uint8_t *p = message->data + 5, *end = message->data + message->size;
    *rows = *count = 0;
    while (p < end) {
        uint64_t key, v;
        if (!take_varint(&p, end, &key) || !take_varint(&p, end, &v))
            return false;
        if (key == (ANSWER_ROWS << 3 | 2))
            ++*rows;
        else if (key == ANSWER_ROWS << 3)
            *rows = v;
        else if (key == ANSWER_COUNT << 3)
            *count = v;
        if ((key & 7) == 2) {
            if (v > (uint64_t)(end - p))
                return false;
            p += v;
        }
    }
    return true;
}

static void check_message(const uint8_t *data, uint64_t expected, struct answer *a)
{
    struct out message = {0};
    uint64_t rows, count;
    join_data(data, a->at, &message);
    if (message.size < 5)
        answer_fail(a, "refused", 7);
    else if (!read_message(&message, &rows, &count))
        answer_fail(a, "not a message", 13);
    else if (expected != ROWS_ANY && rows != expected)
        answer_fail(a, "another number of rows", 22);
    out_free(&message);
}

static bool answer(const uint8_t *data, size_t size, uint64_t rows, struct answer *a)
{
    while (size - a->at >= FRAME_HEAD) {
        const uint8_t *f = data + a->at;
        uint32_t length = frame_size(f);
        if (size - a->at < FRAME_HEAD + length)
            return false;
        a->at += FRAME_HEAD + length;
        bool settings = f[3] == FRAME_SETTINGS && !(f[4] & FLAG_ACK);
        if (settings)
            return true; /* the answer to the preface */
        if ((f[3] == FRAME_HEADERS || f[3] == FRAME_DATA) && f[4] & FLAG_END_STREAM) {
            check_message(data, rows, a);
            return true;
        }
    }
    return false;
}

uint64_t wire_etcd_count(const uint8_t *data, size_t size)
{
    struct out message = {0};
    uint64_t rows, count = 0;
    join_data(data, size, &message);
    if (message.size >= 5 && !read_message(&message, &rows, &count))
        die("etcd: not a message");
    out_free(&message);
    return count;
}

const struct wire wire_etcd = {.hello = hello, .operation = operation, .answer = answer};
