/*
 * base/err.h — what a person or a driver is told about a failed statement.
 *
 * An out parameter from the handlers upward; there is no global "last error". Fields are those of
 * PostgreSQL's ErrorResponse. Owned by the caller, plain memory, nothing to free.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/status.h"
#include <stdint.h>

struct err {
    status code;
    char sqlstate[6];
    char message[512];
    char detail[1024];
    char hint[256];
    char schema[64], table[64], column[64], constraint[64];
    uint32_t position; /* 1-based character in the statement's text, 0 = unknown */
};

/* Makes all texts empty; their bytes behind the NUL stay, this runs for every statement. */
void err_clear(struct err *e);
/* Sets code, its SQLSTATE and the message; clears the rest. Returns CODE, so that a function can
 * `return err_set(err, ST_EXISTS, "…")`. E may be NULL. Text is cut at the field's size, at a UTF-8
 * boundary. */
status err_set(struct err *e, status code, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same with a finer SQLSTATE than the status has. */
status err_set_state(struct err *e, status code, const char *sqlstate, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void err_detail(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
void err_hint(struct err *e, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* NULL leaves a field as it is. */
void err_where(struct err *e, const char *schema, const char *table, const char *column,
               const char *constraint);
/* If nothing was set yet, fill from the status alone. */
void err_default(struct err *e, status code);

#endif
