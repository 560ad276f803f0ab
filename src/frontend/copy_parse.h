/*
 * frontend/copy_parse.h — COPY's formats taken apart: a stream of bytes → rows of fields.
 *
 * Pure: no session, no tables. The stream comes in pieces cut anywhere. One owner.
 */
#ifndef FRONTEND_COPY_PARSE_H
#define FRONTEND_COPY_PARSE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* One row, unread. */
#define FE_COPY_ROW_BYTES (8u * 1024u * 1024u)

enum fe_copy_kind { FE_COPY_TEXT, FE_COPY_CSV, FE_COPY_BINARY };
enum fe_copy_eol { FE_COPY_EOL_UNKNOWN, FE_COPY_LF, FE_COPY_CR, FE_COPY_CRLF };

struct fe_copy_parser {
    enum fe_copy_kind kind;
    char delimiter, quote, escape;
    const char *null_text; /* borrowed */
    bool header;           /* csv: the first line is names */
    unsigned expected;     /* binary: fields of a row; 0 = any number */
    struct obuf in;        /* private from here on */
    size_t at, scanned;
    size_t wanted;         /* binary: bytes before the next try */
    uint64_t line;         /* of the row given last; binary: its number */
    uint64_t lines_before; /* lines that ended before the current row */
    enum fe_copy_eol eol;  /* as the first line ends */
    bool ended, quoted, signature_seen;
    bool marked; /* text: the current line is the last, and waits for the end of the stream */
};

struct fe_copy_row {
    bytes *fields;
    bool *nulls;
    unsigned count;
    bytes seen; /* of a line whose end is wrong: what is before that */
    bytes text; /* as it came, for messages; until the next call. None: no line is known */
};

/* Fields that are 0: the defaults of KIND. */
void fe_copy_parser_init(struct fe_copy_parser *p, enum fe_copy_kind kind);
void fe_copy_parser_fini(struct fe_copy_parser *p);
void fe_copy_feed(struct fe_copy_parser *p, bytes data);
/* The next row, in A. LAST: no more will be fed. ST_OK; ST_NOT_FOUND: feed more; ST_END: all rows
 * were given, or the end marker was seen (what follows it is ignored). 22P04 as PostgreSQL says
 * it. */
NODISCARD status fe_copy_next(struct fe_copy_parser *p, bool last, struct arena *a,
                              struct fe_copy_row *out, struct err *err);

#endif
