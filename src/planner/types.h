/*
 * planner/types.h — PostgreSQL types that clients meet: OIDs, values, text and binary forms.
 */
#ifndef PLANNER_TYPES_H
#define PLANNER_TYPES_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "kv/row.h"

enum pl_oid {
    OID_UNKNOWN = 705,
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_CHAR = 18,
    OID_NAME = 19,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_REGPROC = 24,
    OID_TEXT = 25,
    OID_OID = 26,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_BPCHAR = 1042,
    OID_VARCHAR = 1043,
    OID_DATE = 1082,
    OID_TIMESTAMP = 1114,
    OID_TIMESTAMPTZ = 1184,
    OID_INTERVAL = 1186,
    OID_NUMERIC = 1700,
    OID_VOID = 2278,
    OID_REGCLASS = 2205,
    OID_INT2_ARRAY = 1005,
    OID_INT4_ARRAY = 1007,
    OID_TEXT_ARRAY = 1009,
    OID_VARCHAR_ARRAY = 1015,
    OID_INT8_ARRAY = 1016,
    OID_OID_ARRAY = 1028,
};

/* A value of any of these. Arrays hold their elements. Borrowed memory. */
struct pl_value {
    uint32_t oid;
    bool null;
    union {
        int64_t i; /* bool, integers, "char", oid, date, timestamps, interval (microseconds) */
        double d;  /* float4, float8 */
        bytes b;   /* text kinds, bytea, numeric as text */
        struct {
            const struct pl_value *items;
            unsigned count;
        } array;
    };
};

int16_t pl_type_size(uint32_t oid);     /* as RowDescription reports it; -1 variable */
const char *pl_type_name(uint32_t oid); /* "bigint", for messages */
uint32_t pl_type_of(enum kv_type t);
uint32_t pl_type_element(uint32_t array_oid); /* 0 if not an array */
uint32_t pl_type_array(uint32_t element_oid); /* 0 if there is none */
/* From SQL: "int8", "text"; the catalogue's names. 0 if unknown. */
uint32_t pl_type_by_name(const char *name);
/* What format_type and the headings of casts say: "int8" for OID_INT8. */
const char *pl_type_catalog_name(uint32_t oid);

/* How a session writes times and bytes. */
struct pl_zone; /* a time zone, planner/timezone.h */
struct pl_style {
    const struct pl_zone *zone;
    enum { PL_DATE_ISO, PL_DATE_POSTGRES, PL_DATE_SQL, PL_DATE_GERMAN } date_style;
    enum { PL_DATE_MDY, PL_DATE_DMY, PL_DATE_YMD } date_order; /* of numbers, in and out */
    bool bytea_escape;
};

/* Text and binary input: 22P02, 22003, 22007, 22008, 22021, 08P01 (short binary), 22P03 (long
 * binary) in ERR as PostgreSQL says them. NOW for 'now', 'today'. */
NODISCARD status pl_value_from_text(uint32_t oid, bytes text, const struct pl_style *style,
                                    int64_t now, struct arena *a, struct pl_value *out,
                                    struct err *err);
NODISCARD status pl_value_from_binary(uint32_t oid, bytes data, struct arena *a,
                                      struct pl_value *out, struct err *err);
/* Appends the value's bytes without a length. */
void pl_value_to_text(const struct pl_value *v, const struct pl_style *style, struct obuf *out);
void pl_value_to_binary(const struct pl_value *v, struct obuf *out);
/* May a statement say FROM::TO at all? */
bool pl_type_has_cast(uint32_t from, uint32_t to);
/* V as type OID: EXPLICIT as a cast in the text does it (text in and out, truncation to TYPMOD),
 * else as PostgreSQL assigns to a column. 42804, 42846 where there is no such cast; 22P02, 22003 …
 * as text. */
NODISCARD status pl_value_convert(const struct pl_value *v, uint32_t oid, int32_t typmod,
                                  bool explicit_cast, const struct pl_style *style, int64_t now,
                                  struct arena *a, struct pl_value *out, struct err *err);
/* As the type of a stored column: range checks 22003; 42804 where no assignment cast exists. */
NODISCARD status pl_value_to_datum(const struct pl_value *v, enum kv_type t, const char *column,
                                   struct kv_datum *out, struct err *err);
/* The hot path of results: appends length and bytes of one DataRow field (length -1 for NULL). */
void pl_datum_to_field(enum kv_type t, const struct kv_datum *d, bool binary,
                       const struct pl_style *style, struct obuf *out);

#endif
