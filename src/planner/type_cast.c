/*
 * planner/type_cast.c — from one type to another: casts written in a statement, assignment to a
 * column, and between values and stored datums.
 *
 * Every type has a cast to text, and text one to every type where the statement says so. Without
 * being asked a value only goes where PostgreSQL assigns it: among numbers, among dates and times,
 * to text.
 */
#include "planner/type_internal.h"

#include <math.h>
#include <stdlib.h>

static status no_cast(const struct pl_value *v, uint32_t oid, struct err *err)
{
    return err_set_state(err, ST_INVALID, "42846", "cannot cast type %s to %s",
                         pl_type_name(v->oid), pl_type_name(oid));
}

/* Characters of varchar(n) and char(n); blanks behind are cut silently. */
static status cut(uint32_t oid, int32_t typmod, bool explicit_cast, struct pl_value *v,
                  struct err *err)
{
    if (typmod < 4 || (oid != OID_VARCHAR && oid != OID_BPCHAR))
        return ST_OK;
    size_t most = (size_t)(typmod - 4), chars = 0, i = 0;
    while (i < v->b.size && chars < most) {
        i++;
        while (i < v->b.size && (v->b.data[i] & 0xc0) == 0x80)
            i++;
        chars++;
    }
    for (size_t k = i; !explicit_cast && k < v->b.size; k++) {
        if (v->b.data[k] != ' ')
            return err_set_state(err, ST_INVALID, "22001", "value too long for type %s(%zu)",
                                 pl_type_name(oid), most);
    }
    v->b.size = i;
    return ST_OK;
}

static bytes value_text(const struct pl_value *v, const struct pl_style *style, struct arena *a)
{
    if (pl__is_text(v->oid))
        return v->b;
    struct obuf o;
    obuf_init(&o);
    if (v->oid == OID_BOOL) /* as a cast to text does, unlike output */
        obuf_put(&o, v->i ? "true" : "false", v->i ? 4 : 5);
    else
        pl_value_to_text(v, style, &o);
    bytes out = arena_copy(a, bytes_make(o.data, o.size));
    obuf_fini(&o);
    return out;
}

static status to_integer(const struct pl_value *v, uint32_t oid, int64_t *out, struct err *err)
{
    int64_t lowest, highest;
    bool fits = true;
    pl__int_range(oid, &lowest, &highest);
    if (v->oid == OID_FLOAT8 || v->oid == OID_FLOAT4) {
        double d = rint(v->d);
        fits = d >= -9223372036854775808.0 && d < 9223372036854775808.0;
        *out = fits ? (int64_t)d : 0;
    } else if (v->oid == OID_NUMERIC) {
        fits = pl__number_round(v->b, out);
    } else {
        *out = v->i;
    }
    if (!fits || *out < lowest || *out > highest)
        return err_set_state(err, ST_INVALID, "22003", "%s out of range", pl_type_name(oid));
    return ST_OK;
}

static double to_double(const struct pl_value *v)
{
    if (v->oid == OID_NUMERIC) {
        char buf[64];
        size_t n = v->b.size < sizeof(buf) - 1 ? v->b.size : sizeof(buf) - 1;
        memcpy(buf, v->b.data, n);
        buf[n] = '\0';
        return strtod(buf, NULL);
    }
    return v->oid == OID_FLOAT4 || v->oid == OID_FLOAT8 ? v->d : (double)v->i;
}

static bool is_number(uint32_t oid)
{
    return pl__is_integer(oid) || oid == OID_NUMERIC || oid == OID_FLOAT4 || oid == OID_FLOAT8;
}

static status to_numeric(const struct pl_value *v, struct arena *a, bytes *out, struct err *err)
{
    struct obuf o;
    obuf_init(&o);
    pl_value_to_text(v, NULL, &o);
    status st = pl__numeric_check(bytes_make(o.data, o.size), a, out, err);
    obuf_fini(&o);
    return st;
}

/* Between timestamptz, timestamp and date. */
static bool convert_time(const struct pl_value *v, uint32_t oid, const struct pl_style *style,
                         int64_t *out)
{
    const int64_t day = INT64_C(86400000000);
    bool from_date = v->oid == OID_DATE;
    if (v->oid != OID_DATE && v->oid != OID_TIMESTAMP && v->oid != OID_TIMESTAMPTZ)
        return false;
    if (v->i == (from_date ? INT32_MAX : PL_TIME_INFINITY)) {
        *out = oid == OID_DATE ? INT32_MAX : PL_TIME_INFINITY;
        return true;
    }
    if (v->i == (from_date ? INT32_MIN : PL_TIME_MINUS_INFINITY)) {
        *out = oid == OID_DATE ? INT32_MIN : PL_TIME_MINUS_INFINITY;
        return true;
    }
    int64_t local = from_date                   ? v->i * day
                    : v->oid == OID_TIMESTAMPTZ ? pl__time_to_local(v->i, style)
                                                : v->i;
    if (oid == OID_TIMESTAMPTZ)
        *out = v->oid == OID_TIMESTAMPTZ ? v->i : pl__time_from_local(local, style);
    else if (oid == OID_TIMESTAMP)
        *out = local;
    else
        *out = (local - (local < 0 ? day - 1 : 0)) / day;
    return true;
}

static bool is_time(uint32_t oid)
{
    return oid == OID_TIMESTAMPTZ || oid == OID_TIMESTAMP || oid == OID_DATE;
}

bool pl_type_has_cast(uint32_t from, uint32_t to)
{
    if (from == to || from == 0 || from == OID_UNKNOWN || pl__is_text(from) || pl__is_text(to))
        return true;
    if (pl__is_integer(to))
        return is_number(from) || from == OID_BOOL || from == OID_CHAR;
    if (is_number(to))
        return is_number(from);
    if (to == OID_BOOL)
        return pl__is_integer(from);
    if (to == OID_CHAR)
        return from == OID_INT4;
    if (is_time(to))
        return is_time(from);
    uint32_t element = pl_type_element(to), inner = pl_type_element(from);
    return element != 0 && inner != 0 && pl_type_has_cast(inner, element);
}

status pl_value_convert(const struct pl_value *v, uint32_t oid, int32_t typmod, bool explicit_cast,
                        const struct pl_style *style, int64_t now, struct arena *a,
                        struct pl_value *out, struct err *err)
{
    if (v->null) {
        *out = (struct pl_value){.oid = oid, .null = true};
        return ST_OK;
    }
    if (v->oid == oid && typmod < 0) {
        *out = *v;
        return ST_OK;
    }
    struct pl_value r = {.oid = oid};
    if (pl__is_text(oid)) { /* every type has a cast to text */
        r.b = value_text(v, style, a);
        ST_TRY(cut(oid, typmod, explicit_cast, &r, err));
    } else if (v->oid == OID_UNKNOWN || (explicit_cast && pl__is_text(v->oid))) {
        ST_TRY(pl_value_from_text(oid, v->b, style, now, a, &r, err));
    } else if (oid == OID_CHAR && pl__is_text(v->oid)) {
        r.i = pl__char_from_text(v->b);
    } else if (pl__is_integer(oid) && is_number(v->oid)) {
        ST_TRY(to_integer(v, oid, &r.i, err));
    } else if (pl__is_integer(oid) && explicit_cast && (v->oid == OID_BOOL || v->oid == OID_CHAR)) {
        r.i = v->oid == OID_CHAR ? (int8_t)v->i : v->i;
    } else if ((oid == OID_FLOAT4 || oid == OID_FLOAT8) && is_number(v->oid)) {
        r.d = oid == OID_FLOAT4 ? (double)(float)to_double(v) : to_double(v);
    } else if (oid == OID_NUMERIC && is_number(v->oid)) {
        ST_TRY(to_numeric(v, a, &r.b, err));
    } else if (oid == OID_BOOL && explicit_cast && pl__is_integer(v->oid)) {
        r.i = v->i != 0;
    } else if (oid == OID_CHAR && explicit_cast && v->oid == OID_INT4) {
        if (v->i < INT8_MIN || v->i > INT8_MAX)
            return err_set_state(err, ST_INVALID, "22003", "\"char\" out of range");
        r.i = v->i & 0xff;
    } else if (!is_time(oid) || !convert_time(v, oid, style, &r.i)) {
        uint32_t to = pl_type_element(oid), from = pl_type_element(v->oid);
        if (to == 0 || from == 0)
            return no_cast(v, oid, err);
        struct pl_value *items = ARENA_ARRAY(a, struct pl_value, v->array.count + 1);
        for (unsigned i = 0; i < v->array.count; i++)
            ST_TRY(pl_value_convert(&v->array.items[i], to, -1, explicit_cast, style, now, a,
                                    &items[i], err));
        r.array.items = items;
        r.array.count = v->array.count;
    }
    *out = r;
    return ST_OK;
}

status pl_value_to_datum(const struct pl_value *v, enum kv_type t, const char *column,
                         struct kv_datum *out, struct err *err)
{
    uint32_t oid = pl_type_of(t);
    *out = (struct kv_datum){.null = v->null};
    if (v->null)
        return ST_OK;
    switch (t) {
    case KV_INT2:
    case KV_INT4:
    case KV_INT8:
        if (is_number(v->oid))
            return to_integer(v, oid, &out->i, err);
        break;
    case KV_CHAR:
        if (v->oid == OID_CHAR || pl__is_text(v->oid)) {
            out->i = v->oid == OID_CHAR ? v->i : pl__char_from_text(v->b);
            return ST_OK;
        }
        break;
    case KV_TEXT:
        if (pl__is_text(v->oid) || v->oid == OID_NUMERIC) {
            out->b = v->b;
            return ST_OK;
        }
        break;
    case KV_BYTEA:
        if (v->oid == OID_BYTEA) {
            out->b = v->b;
            return ST_OK;
        }
        break;
    case KV_TIMESTAMPTZ:
    case KV_INTERVAL:
        if (v->oid == oid) {
            out->i = v->i;
            return ST_OK;
        }
        break;
    }
    err_set_state(err, ST_INVALID, "42804",
                  "column \"%s\" is of type %s but expression is of type %s", column,
                  pl_type_name(oid), pl_type_name(v->oid));
    err_hint(err, "You will need to rewrite or cast the expression.");
    return ST_INVALID;
}
