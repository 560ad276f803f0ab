/* base/assert.c — the end of a process whose own rules were broken. */
#include "base/assert.h"
#include <stdio.h>
#include <stdlib.h>

void assert_failed(const char *expr, const char *file, int line, const char *what)
{
    fprintf(stderr, "metadb: assertion failed at %s:%d: %s%s%s\n", file, line, expr,
            what[0] != '\0' ? " -- " : "", what);
    fflush(stderr);
    abort();
}
