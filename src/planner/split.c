/*
 * planner/split.c — one message into its statements.
 *
 * Semicolons count at depth 0 of parentheses and brackets only; strings, dollar quotes and comments
 * are tokens or blanks of the scanner. A text that does not end well (an open string) is one last
 * piece: the parser will say what is wrong with it. CREATE RULE and functions with BEGIN ATOMIC,
 * the only statements with semicolons inside, are not ours.
 */
#include "base/limits.h"
#include "planner/plan.h"
#include "planner/scan.h"

/* Nearly every message has no semicolon: it is one piece from its first token on, and the scan that
 * follows need not be done twice. */
static status whole(bytes text, struct arena *a, bytes **pieces, unsigned *count, struct err *err)
{
    size_t at = 0;
    struct pl_token first;
    ST_TRY(pl_token_next(text, &at, &first, err));
    *pieces = ARENA_NEW(a, bytes);
    *count = first.kind != PL_TOKEN_END;
    if (*count == 1)
        **pieces = bytes_make(text.data + first.at, text.size - first.at);
    return ST_OK;
}

status pl_split(bytes text, struct arena *a, bytes **pieces, unsigned *count, struct err *err)
{
    if (text.size == 0 || memchr(text.data, ';', text.size) == NULL)
        return whole(text, a, pieces, count, err);
    size_t at = 0, room = 4, start = 0;
    unsigned n = 0, depth = 0;
    bool any = false;
    bytes *out = ARENA_ARRAY(a, bytes, room);
    struct pl_token t;

    do {
        ST_TRY(pl_token_next(text, &at, &t, err));
        bool end = t.kind == PL_TOKEN_END;
        if (t.kind == PL_TOKEN_PUNCT && t.size == 1) {
            uint8_t c = text.data[t.at];
            depth += c == '(' || c == '[';
            depth -= (c == ')' || c == ']') && depth > 0;
            end = c == ';' && depth == 0;
        }
        if (!end) {
            if (!any)
                start = t.at;
            any = true;
            continue;
        }
        if (any) {
            if (n == room) {
                bytes *more = ARENA_ARRAY(a, bytes, room * 2);
                memcpy(more, out, room * sizeof(*more));
                out = more;
                room *= 2;
            }
            out[n++] = bytes_make(text.data + start, t.at - start);
        }
        any = false;
    } while (t.kind != PL_TOKEN_END);
    *pieces = out;
    *count = n;
    return ST_OK;
}
