/*
 * planner/type_array.c — one-dimensional arrays as text ({a,"b c",NULL}) and binary.
 */
#include "planner/type_internal.h"

#include "base/codec.h"

#include <ctype.h>
#include <strings.h>

static status bad_array(struct err *err, bytes text, const char *detail)
{
    err_set_state(err, ST_INVALID, "22P02", "malformed array literal: \"%s\"", pl__shown(text).s);
    err_detail(err, "%s", detail);
    return ST_INVALID;
}

/* One element at *AT of T, up to a comma or the closing brace. */
static status array_item(bytes t, size_t *at, struct arena *a, bytes *item, bool *quoted)
{
    uint8_t *p = arena_alloc(a, t.size - *at + 1);
    size_t n = 0, keep = 0; /* KEEP: what trailing blanks may not cut */
    *quoted = false;
    while (*at < t.size && isspace(t.data[*at]))
        (*at)++;
    while (*at < t.size && t.data[*at] != ',' && t.data[*at] != '}') {
        uint8_t c = t.data[(*at)++];
        if (c == '"') {
            *quoted = true;
            while (*at < t.size && t.data[*at] != '"') {
                if (t.data[*at] == '\\' && *at + 1 < t.size)
                    (*at)++;
                p[n++] = t.data[(*at)++];
            }
            if (*at >= t.size)
                return ST_INVALID;
            (*at)++;
            keep = n;
        } else if (c == '{') {
            return ST_INVALID;
        } else if (c == '\\' && *at < t.size) {
            p[n++] = t.data[(*at)++];
            keep = n;
        } else {
            p[n++] = c;
            if (!isspace(c))
                keep = n;
        }
    }
    *item = bytes_make(p, keep);
    return keep == 0 && !*quoted ? ST_INVALID : ST_OK;
}

status pl__array_from_text(uint32_t element, bytes text, const struct pl_style *style, int64_t now,
                           struct arena *a, struct pl_value *out, struct err *err)
{
    bytes t = pl__trim(text);
    size_t at = 1, room = 8;
    unsigned count = 0;
    if (t.size < 2 || t.data[0] != '{')
        return bad_array(err, text, "Array value must start with \"{\" or dimension information.");
    struct pl_value *items = ARENA_ARRAY(a, struct pl_value, room);
    while (at < t.size && isspace(t.data[at]))
        at++;
    if (t.data[at] == '}') {
        at++;
    } else {
        for (;;) {
            bytes item;
            bool quoted;
            if (at < t.size && t.data[at] == '{')
                return err_set(err, ST_UNSUPPORTED,
                               "arrays of several dimensions are not supported");
            if (array_item(t, &at, a, &item, &quoted) != ST_OK || at >= t.size)
                return bad_array(err, text,
                                 at >= t.size ? "Unexpected end of input."
                                              : "Unexpected array element.");
            if (count == room) {
                struct pl_value *more = ARENA_ARRAY(a, struct pl_value, room * 2);
                memcpy(more, items, room * sizeof(*more));
                items = more;
                room *= 2;
            }
            if (!quoted && item.size == 4 && strncasecmp((const char *)item.data, "null", 4) == 0)
                items[count] = (struct pl_value){.oid = element, .null = true};
            else
                ST_TRY(pl_value_from_text(element, item, style, now, a, &items[count], err));
            count++;
            if (t.data[at++] == '}')
                break;
        }
    }
    if (at != t.size)
        return bad_array(err, text, "Junk after closing right brace.");
    out->array.items = items;
    out->array.count = count;
    return ST_OK;
}

void pl__array_to_text(const struct pl_value *v, const struct pl_style *style, struct obuf *out)
{
    struct obuf item;
    obuf_init(&item);
    obuf_u8(out, '{');
    for (unsigned i = 0; i < v->array.count; i++) {
        if (i > 0)
            obuf_u8(out, ',');
        if (v->array.items[i].null) {
            obuf_put(out, "NULL", 4);
            continue;
        }
        obuf_reset(&item);
        pl_value_to_text(&v->array.items[i], style, &item);
        bool quote =
            item.size == 0 || (item.size == 4 && strncasecmp((char *)item.data, "null", 4) == 0);
        for (size_t k = 0; k < item.size; k++)
            quote = quote || strchr("{},\"\\", item.data[k]) != NULL || isspace(item.data[k]);
        if (!quote) {
            obuf_put(out, item.data, item.size);
            continue;
        }
        obuf_u8(out, '"');
        for (size_t k = 0; k < item.size; k++) {
            if (item.data[k] == '"' || item.data[k] == '\\')
                obuf_u8(out, '\\');
            obuf_u8(out, item.data[k]);
        }
        obuf_u8(out, '"');
    }
    obuf_u8(out, '}');
    obuf_fini(&item);
}

/* dimensions(4) has-nulls(4) element(4) then size(4) lower-bound(4) a dimension, then the
 * elements. */
status pl__array_from_binary(uint32_t element, bytes data, struct arena *a, struct pl_value *out,
                             struct err *err)
{
    if (data.size < 12)
        return pl__short_binary(err);
    uint32_t dimensions = load_be32(data.data), type = load_be32(data.data + 8);
    bool same = type == element || (pl__is_text(type) && pl__is_text(element));
    if (dimensions > 1)
        return err_set(err, ST_UNSUPPORTED, "arrays of several dimensions are not supported");
    if (!same)
        return err_set_state(err, ST_INVALID, "42804",
                             "binary data has array element type %u (%s) "
                             "instead of expected %u (%s)",
                             type, pl_type_name(type), element, pl_type_name(element));
    if (dimensions == 0)
        return data.size == 12 ? ST_OK : pl__long_binary(err);
    if (data.size < 20)
        return pl__short_binary(err);
    uint32_t count = load_be32(data.data + 12);
    if (count > (data.size - 20) / 4)
        return pl__short_binary(err);
    struct pl_value *items = ARENA_ARRAY(a, struct pl_value, count + 1);
    size_t at = 20;
    for (uint32_t i = 0; i < count; i++) {
        if (data.size - at < 4)
            return pl__short_binary(err);
        uint32_t n = load_be32(data.data + at);
        at += 4;
        if (n == UINT32_MAX) {
            items[i] = (struct pl_value){.oid = element, .null = true};
            continue;
        }
        if (n > data.size - at)
            return pl__short_binary(err);
        ST_TRY(pl_value_from_binary(element, bytes_make(data.data + at, n), a, &items[i], err));
        at += n;
    }
    out->array.items = items;
    out->array.count = count;
    return at == data.size ? ST_OK : pl__long_binary(err);
}

void pl__array_to_binary(const struct pl_value *v, uint32_t element, struct obuf *out)
{
    bool nulls = false;
    for (unsigned i = 0; i < v->array.count; i++)
        nulls = nulls || v->array.items[i].null;
    obuf_be32(out, v->array.count == 0 ? 0 : 1);
    obuf_be32(out, nulls);
    obuf_be32(out, element);
    if (v->array.count == 0)
        return;
    obuf_be32(out, v->array.count);
    obuf_be32(out, 1);
    for (unsigned i = 0; i < v->array.count; i++) {
        size_t at = out->size;
        obuf_be32(out, UINT32_MAX);
        if (v->array.items[i].null)
            continue;
        pl_value_to_binary(&v->array.items[i], out);
        obuf_patch_be32(out, at, (uint32_t)(out->size - at - 4));
    }
}
