/*
 * base/assert.h — two tiers of assertions.
 *
 * ASSERT is on in every build and stops the process: it guards against programmer errors, never
 * against input. ASSERT_SLOW is on in debug and simulation builds only (METADB_SLOW_CHECKS).
 * ASSERT_INV names the invariant of the file's head comment that it checks.
 */
#ifndef BASE_ASSERT_H
#define BASE_ASSERT_H

#include "base/compiler.h"

NORETURN void assert_failed(const char *expr, const char *file, int line, const char *what);

#define ASSERT(cond)                                                                               \
    do {                                                                                           \
        if (UNLIKELY(!(cond)))                                                                     \
            assert_failed(#cond, __FILE__, __LINE__, "");                                          \
    } while (0)
#define ASSERT_INV(id, cond)                                                                       \
    do {                                                                                           \
        if (UNLIKELY(!(cond)))                                                                     \
            assert_failed(#cond, __FILE__, __LINE__, id);                                          \
    } while (0)
#ifdef METADB_SLOW_CHECKS
#define ASSERT_SLOW(cond) ASSERT(cond)
#else
#define ASSERT_SLOW(cond) ((void)sizeof(cond))
#endif

#endif
