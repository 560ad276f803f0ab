/*
 * base/config.h — settings from a file (inih), then METADB_* environment, then --flags; later wins.
 *
 * A setting is declared once with its name ("log.batch_bytes"), type, default, bounds and a line of
 * help. Environment: METADB_LOG_BATCH_BYTES. Flag: --log.batch_bytes=1MB. Sizes take B, kB, MB, GB;
 * times us, ms, s, min. An unknown name or a bad value is an error that names it, also an unknown
 * METADB_ variable, except METADB_FAULT* and METADB_TEST*, which belong to tests. Values are fixed
 * after start-up, readable from every thread.
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include "base/err.h"
#include <stdbool.h>

enum config_type {
    CONFIG_BOOL,
    CONFIG_INT,
    CONFIG_SIZE,
    CONFIG_TIME_US,
    CONFIG_STRING,
    CONFIG_ENUM,
    CONFIG_LIST /* several lines, each given as the whole setting; default "" is none */
};

struct config_setting {
    const char *name;
    enum config_type type;
    const char *def;     /* as text, in the same syntax */
    int64_t min, max;    /* of numbers; both 0 = no bounds */
    const char *choices; /* CONFIG_ENUM: "a|b|c" */
    const char *help;
};

struct config;
struct config *config_new(const struct config_setting *settings, unsigned count);
void config_free(struct config *c);
/* At most once. */
NODISCARD status config_load_file(struct config *c, const char *path, struct err *err);
NODISCARD status config_load_environment(struct config *c, struct err *err);
/* From the command line: NAME and VALUE, or VALUE is NULL and NAME holds "name=value". */
NODISCARD status config_set(struct config *c, const char *name, const char *value, struct err *err);

bool config_bool(const struct config *c, const char *name);   /* asserts that NAME exists */
int64_t config_int(const struct config *c, const char *name); /* also sizes (bytes), times (us) */
const char *config_string(const struct config *c, const char *name); /* also enums */
/* The Ith line of a CONFIG_LIST and where it was said, "FILE:LINE" or the source; NULL past the
 * end. A later source replaces the lines of an earlier one. */
const char *config_list(const struct config *c, const char *name, unsigned i, const char **where);
/* For SHOW and documentation: every setting, its current value as text, where it came from. */
void config_each(const struct config *c,
                 void (*fn)(void *, const struct config_setting *, const char *value,
                            const char *source),
                 void *arg);

#endif
