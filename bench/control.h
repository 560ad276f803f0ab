/*
 * bench/control.h — one blocking connection, for preparing data and checking counts. An error ends
 * the program unless the call says otherwise.
 */
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include "wire.h"

struct control {
    const struct target *target;
    const struct wire *wire;
    int fd;
    struct out out; /* not yet sent */
    struct out in;  /* received */
    size_t at;      /* bytes of it that are used up */
};

void control_open(struct control *c, const struct target *t, const struct wire *w);
void control_close(struct control *c);

/* SQL: the first column of the first row, as a number; 0 without a row. */
int64_t control_number(struct control *c, const char *sql);
/* SQL, with printf's formats; the text of an error instead of the end: false and ERROR. */
bool control_try(struct control *c, char error[160], const char *sql);
void control_exec(struct control *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* COPY SQL FROM STDIN: rows are put into C->out as whole messages by control_copy_row. */
void control_copy_begin(struct control *c, const char *sql);
void control_copy_row(struct control *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void control_copy_end(struct control *c);

/* Redis: sends what is in C->out and reads COUNT answers. */
void control_flush(struct control *c, unsigned count);
/* Redis: a command of blank-separated words whose answer is an integer, or a string of one. */
int64_t control_integer(struct control *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
