/* base/compiler.h — attributes and small macros that every file may use. */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <stddef.h>

#define NODISCARD __attribute__((warn_unused_result))
#define NORETURN __attribute__((noreturn))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define UNUSED(x) ((void)(x))

#endif
