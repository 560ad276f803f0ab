/*
 * frontend/settings_internal.h — one setting, and the check of what it is set to.
 */
#ifndef FRONTEND_SETTINGS_INTERNAL_H
#define FRONTEND_SETTINGS_INTERNAL_H

#include "frontend/settings_session.h"

#define FE_SETTING_SIZE 1024u /* of a value's text, with its NUL */

enum fe_setting_kind {
    KIND_STRING,
    KIND_BOOL,
    KIND_INT,  /* bounds below */
    KIND_TIME, /* milliseconds, with a unit if wanted */
    KIND_REAL,
    KIND_ENUM, /* choices below */
    KIND_ENCODING,
    KIND_DATESTYLE,
    KIND_TIMEZONE,
    KIND_FIXED, /* known, cannot be changed */
};

struct fe_setting {
    const char *name;
    enum fe_setting_kind kind;
    const char *def;
    bool report;
    int min, max;
    const char *choices; /* "|a|b|" */
    const char *help;
};

/* The form of VALUE that is kept and shown, in OUT of FE_SETTING_SIZE bytes; 22023. S gives what it
 * depends on: the other half of DateStyle, the user for role. */
NODISCARD status fe__setting_check(const struct fe_settings *s, const struct fe_setting *g,
                                   const char *value, char *out, struct err *err);
/* Milliseconds of "250", "5s", "2 min"; -1 if it is none. */
long fe__time_ms(const char *value);

#endif
