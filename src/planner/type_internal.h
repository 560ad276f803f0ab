/*
 * planner/type_internal.h — what the files of the types share: types.c, type_number.c,
 * type_array.c, type_cast.c.
 */
#ifndef PLANNER_TYPE_INTERNAL_H
#define PLANNER_TYPE_INTERNAL_H

#include "planner/pl_internal.h"

bool pl__is_text(uint32_t oid);    /* the text kinds, unknown among them */
bool pl__is_integer(uint32_t oid); /* oid and its aliases among them */
void pl__int_range(uint32_t oid, int64_t *lowest, int64_t *highest);
bytes pl__trim(bytes t);             /* without white space around it */
int64_t pl__char_from_text(bytes t); /* "char": one byte, or \ooo */

/* Text cut for a message. */
struct pl__shown {
    char s[200];
};
struct pl__shown pl__shown(bytes text);
status pl__bad_syntax(struct err *err, uint32_t oid, bytes text); /* 22P02 */
status pl__short_binary(struct err *err);                         /* 08P01 */
status pl__long_binary(struct err *err);                          /* 22P03 */

NODISCARD status pl__numeric_from_binary(bytes data, struct arena *a, bytes *out, struct err *err);
void pl__numeric_to_binary(bytes text, struct obuf *out);
NODISCARD status pl__array_from_text(uint32_t element, bytes text, const struct pl_style *style,
                                     int64_t now, struct arena *a, struct pl_value *out,
                                     struct err *err);
void pl__array_to_text(const struct pl_value *v, const struct pl_style *style, struct obuf *out);
NODISCARD status pl__array_from_binary(uint32_t element, bytes data, struct arena *a,
                                       struct pl_value *out, struct err *err);
void pl__array_to_binary(const struct pl_value *v, uint32_t element, struct obuf *out);

#endif
