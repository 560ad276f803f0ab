/*
 * frontend/pgwire.h — the bytes of PostgreSQL's protocol 3: frames and messages that clients send,
 * and the small messages that a server sends.
 *
 * Pure functions over borrowed bytes, any thread. A decoded message borrows the frame's body.
 * Every length comes from a stranger: a body must hold exactly its fields, else ST_PROTOCOL
 * (08P01).
 */
#ifndef FRONTEND_PGWIRE_H
#define FRONTEND_PGWIRE_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/limits.h"

#define FE_PROTOCOL_3_0 196608
#define FE_CODE_CANCEL 80877102
#define FE_CODE_SSL 80877103
#define FE_CODE_GSS 80877104

/* Numbers as they lie in the message, in network order. */
struct fe_numbers {
    const uint8_t *data;
    unsigned count;
};
int16_t fe_int16_at(struct fe_numbers n, unsigned i);
uint32_t fe_oid_at(struct fe_numbers n, unsigned i);

/* COUNT times a length (-1 = NULL) and its bytes; decoding has checked all lengths. */
struct fe_values {
    bytes raw;
    unsigned count;
};
/* Takes the next value off V. False: it is NULL. */
bool fe_values_take(struct fe_values *v, bytes *out);

typedef uint8_t fe_field_byte;
typedef int32_t fe_field_int32;
typedef bytes fe_field_string;
typedef bytes fe_field_rest;
typedef struct fe_numbers fe_field_oids;
typedef struct fe_numbers fe_field_int16s;
typedef struct fe_values fe_field_values;

#include "frontend/pgwire_msgs.def"
#define FE_FIELD(kind, name) fe_field_##kind name;
struct fe_msg_query {
    FE_FIELDS_QUERY(FE_FIELD)
};
struct fe_msg_parse {
    FE_FIELDS_PARSE(FE_FIELD)
};
struct fe_msg_bind {
    FE_FIELDS_BIND(FE_FIELD)
};
struct fe_msg_describe {
    FE_FIELDS_DESCRIBE(FE_FIELD)
};
struct fe_msg_execute {
    FE_FIELDS_EXECUTE(FE_FIELD)
};
struct fe_msg_close {
    FE_FIELDS_CLOSE(FE_FIELD)
};
struct fe_msg_copy_fail {
    FE_FIELDS_COPY_FAIL(FE_FIELD)
};
#undef FE_FIELD

NODISCARD status fe_decode_query(bytes body, struct fe_msg_query *out, struct err *err);
NODISCARD status fe_decode_parse(bytes body, struct fe_msg_parse *out, struct err *err);
NODISCARD status fe_decode_bind(bytes body, struct fe_msg_bind *out, struct err *err);
NODISCARD status fe_decode_describe(bytes body, struct fe_msg_describe *out, struct err *err);
NODISCARD status fe_decode_execute(bytes body, struct fe_msg_execute *out, struct err *err);
NODISCARD status fe_decode_close(bytes body, struct fe_msg_close *out, struct err *err);
NODISCARD status fe_decode_copy_fail(bytes body, struct fe_msg_copy_fail *out, struct err *err);
/* For messages without fields. */
/* The names of a Bind alone: they are looked at before the rest. */
NODISCARD status fe_decode_bind_names(bytes body, struct fe_msg_bind *out, struct err *err);
NODISCARD status fe_decode_nothing(bytes body, struct err *err);

/* -- frames ------------------------------------------------------------------------------------ */

enum fe_framing {
    FE_FRAME_OK,
    FE_FRAME_MORE,    /* more bytes are needed; frame.total says how many in all, 0 = not known */
    FE_FRAME_UNKNOWN, /* no message of that type exists */
    FE_FRAME_BAD_LENGTH, /* below 4, or over the type's limit */
};
struct fe_frame {
    uint8_t type;
    bytes body;
    size_t total; /* with the header */
    bool refused; /* there is no memory for it: the body is not there */
};
/* The message at the front of IN. */
enum fe_framing fe_frame_next(bytes in, struct fe_frame *out);
/* The same while a client proves who it is: only what a login is made of is waited for. */
enum fe_framing fe_login_next(bytes in, struct fe_frame *out);
/* The packet at the front of IN before the session starts: no type byte. body begins with the
 * code. */
enum fe_framing fe_startup_next(bytes in, struct fe_frame *out);

/* A StartupMessage's parameters, one pair at a time. ST_OK, ST_END after the closing zero byte,
 * ST_PROTOCOL if a name or value is missing or not ended. */
NODISCARD status fe_startup_pair(bytes *in, bytes *name, bytes *value);

/* -- messages to the client -------------------------------------------------------------------- */

/* Begins a message of TYPE; returns where its length is, for fe_message_end. */
size_t fe_message_begin(struct obuf *o, char type);
void fe_message_end(struct obuf *o, size_t at);
void fe_put_string(struct obuf *o, const char *text); /* with its zero byte */
void fe_put_empty(struct obuf *o, char type);         /* a message without a body */
void fe_put_tag(struct obuf *o, const char *tag);     /* CommandComplete */
void fe_put_ready(struct obuf *o, char txn_status);
void fe_put_parameter(struct obuf *o, const char *name, const char *value);

/* Where TEXT stops being UTF-8 (no overlong forms, no surrogates, no zero byte); SIZE_MAX =
 * nowhere. */
size_t fe_utf8_fault(bytes text);
/* ST_OK, or 22021 in PostgreSQL's words. */
NODISCARD status fe_utf8_check(bytes text, struct err *err);

#endif
