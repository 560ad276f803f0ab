/*
 * base/log.h — events with stable dotted names and typed fields, one line each on stderr.
 *
 *   2026-11-30T16:42:22.123456Z WARN raft.append_rejected shard=7 term=3 why="gap"
 *
 * Any thread. No user data above DEBUG.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/bytes.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

struct log_field {
    const char *name;
    enum { LOG_FIELD_END, LOG_FIELD_U64, LOG_FIELD_I64, LOG_FIELD_STR, LOG_FIELD_BYTES } kind;
    union {
        uint64_t u;
        int64_t i;
        const char *s;
        bytes b;
    };
};
#define LOG_U64(n, v) ((struct log_field){.name = (n), .kind = LOG_FIELD_U64, .u = (uint64_t)(v)})
#define LOG_I64(n, v) ((struct log_field){.name = (n), .kind = LOG_FIELD_I64, .i = (int64_t)(v)})
#define LOG_STR(n, v) ((struct log_field){.name = (n), .kind = LOG_FIELD_STR, .s = (v)})
#define LOG_BYTES(n, v) ((struct log_field){.name = (n), .kind = LOG_FIELD_BYTES, .b = (v)})

void log_set_level(enum log_level level);
bool log_parse_level(const char *text, enum log_level *out);
bool log_enabled(enum log_level level);
void log_write(enum log_level level, const char *event, const struct log_field *fields);

#define LOG_AT(level, event, ...)                                                                  \
    do {                                                                                           \
        if (log_enabled(level))                                                                    \
            log_write((level), (event),                                                            \
                      (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}});                  \
    } while (0)
#define LOG_DEBUG(event, ...) LOG_AT(LOG_LEVEL_DEBUG, event, __VA_ARGS__)
#define LOG_INFO(event, ...) LOG_AT(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define LOG_WARN(event, ...) LOG_AT(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define LOG_ERROR(event, ...) LOG_AT(LOG_LEVEL_ERROR, event, __VA_ARGS__)

#endif
