/*
 * base/status.h — every outcome the code can return, its SQLSTATE and what a caller may do.
 *
 * One list: a status cannot exist without an SQLSTATE and a retry class. Where a statement needs a
 * finer SQLSTATE than its status has (22P02 and 22003 are both ST_INVALID), struct err carries it.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "base/compiler.h"

/* What a caller may do with the same request after this outcome. */
enum retry_class {
    RETRY_NO,        /* the answer is final */
    RETRY_TXN,       /* run the whole transaction again */
    RETRY_ELSEWHERE, /* another replica may take it; nothing was done here */
    RETRY_LATER,     /* the same place may take it later; nothing was done */
};

/* name, SQLSTATE, retry class, text */
#define STATUS_LIST(X)                                                                             \
    X(ST_OK, "00000", RETRY_NO, "ok")                                                              \
    X(ST_END, "02000", RETRY_NO, "no more data")                                                   \
    X(ST_NOT_FOUND, "02000", RETRY_NO, "not found")                                                \
    X(ST_PENDING, "00000", RETRY_NO, "the answer comes by callback")                               \
    X(ST_COLD, "57P03", RETRY_LATER, "needs a read from disk, which this thread may not do")       \
    X(ST_INVALID, "22023", RETRY_NO, "invalid value")                                              \
    X(ST_EXISTS, "23505", RETRY_NO, "key exists")                                                  \
    X(ST_NO_PARENT, "23503", RETRY_NO, "directory does not exist")                                 \
    X(ST_NOT_EMPTY, "2BP01", RETRY_NO, "directory is not empty")                                   \
    X(ST_LOOP, "MD001", RETRY_NO, "move would make a loop")                                        \
    X(ST_DENIED, "42501", RETRY_NO, "not permitted")                                               \
    X(ST_RESERVED, "42939", RETRY_NO, "reserved name")                                             \
    X(ST_SYNTAX, "42601", RETRY_NO, "syntax error")                                                \
    X(ST_UNSUPPORTED, "0A000", RETRY_NO, "not supported")                                          \
    X(ST_TOO_COMPLEX, "54001", RETRY_NO, "statement too complex")                                  \
    X(ST_PROTOCOL, "08P01", RETRY_NO, "protocol violation")                                        \
    X(ST_CONFLICT, "40001", RETRY_TXN, "could not serialize access due to concurrent update")      \
    X(ST_TXN_TIMEOUT, "25P04", RETRY_TXN, "transaction exceeded its time limit")                   \
    X(ST_TXN_STATE, "25000", RETRY_NO, "not allowed in this transaction state")                    \
    X(ST_OUTCOME_UNKNOWN, "40003", RETRY_NO, "statement completion unknown")                       \
    X(ST_NOT_LEADER, "57P03", RETRY_ELSEWHERE, "replica is not the leader")                        \
    X(ST_CANCELLED, "57014", RETRY_NO, "canceling statement due to user request")                  \
    X(ST_SHUTDOWN, "57P01", RETRY_ELSEWHERE, "terminating connection: the server is stopping")     \
    X(ST_TOO_MANY, "53300", RETRY_LATER, "too many connections")                                   \
    X(ST_NO_MEMORY, "53200", RETRY_LATER, "memory budget exceeded")                                \
    X(ST_DISK_FULL, "53100", RETRY_LATER, "disk full")                                             \
    X(ST_LIMIT, "54000", RETRY_NO, "program limit exceeded")                                       \
    X(ST_IO, "58030", RETRY_NO, "I/O error")                                                       \
    X(ST_CORRUPT, "XX001", RETRY_NO, "stored data is corrupt")                                     \
    X(ST_LOCKED, "55P03", RETRY_LATER, "held by another process")                                  \
    X(ST_UNREACHABLE, "57P03", RETRY_ELSEWHERE, "node cannot be reached; nothing was done there")  \
    X(ST_BUSY, "53400", RETRY_LATER, "too many requests under way")                                \
    X(ST_INTERNAL, "XX000", RETRY_NO, "internal error")

typedef enum status {
#define X(name, sqlstate, retry, text) name,
    STATUS_LIST(X)
#undef X
        ST_COUNT
} status;

/* Never NULL; static memory. */
const char *status_name(status st);     /* "ST_CONFLICT" */
const char *status_sqlstate(status st); /* "40001" */
const char *status_text(status st);
enum retry_class status_retry(status st);

/* Propagate anything but ST_OK. ST_GOTO is for functions with one `out:` label and an `st`. */
#define ST_TRY(call)                                                                               \
    do {                                                                                           \
        status st_try_ = (call);                                                                   \
        if (UNLIKELY(st_try_ != ST_OK))                                                            \
            return st_try_;                                                                        \
    } while (0)
#define ST_GOTO(label, call)                                                                       \
    do {                                                                                           \
        st = (call);                                                                               \
        if (UNLIKELY(st != ST_OK))                                                                 \
            goto label;                                                                            \
    } while (0)

#endif
