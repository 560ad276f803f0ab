/*
 * planner/scan.c — PostgreSQL's lexical rules in one pass, without building tokens.
 *
 * Key bytes. Words are lower-cased (ASCII only, as PostgreSQL does for UTF-8), quoted identifiers
 * and $n stand as they are, operators are cut by PostgreSQL's rule of the longest match. A literal
 * is one byte, its kind (PL_SLOT_*). White space and comments vanish. A blank is written where two
 * tokens could otherwise run together: between two words, and between two operators or dots (`< =`,
 * `: =`). Bytes below 0x20 never come from a token, so that markers cannot be imitated: a text with
 * such a byte in a quoted identifier is not cacheable.
 *
 * Collapsed lists. The rows of VALUES whose key bytes equal the first row's, and the values of IN
 * (…) of one kind, are written once and followed by MARK_REPEAT; how many there were is in
 * `repeats`.
 *
 * Signs stay outside of literals: `-` is an operator in the key.
 *
 * Not cacheable: E'', B'', X'', N'', U&'' and U&"", dollar quotes, strings continued on the next
 * line, letters behind a number, identifiers over 63 bytes, a semicolon before the end, NUL bytes,
 * and more than LIMIT_LITERALS literals. Guards hold for them too.
 *
 * Guards. The parser recurses for parentheses, brackets and CASE, and also for chains like 1+1+1.
 * Depth is bounded by LIMIT_SQL_DEPTH; a chain by LIMIT_SQL_CHAIN tokens without a comma on the
 * same level of parentheses, tokens of deeper levels included. PostgreSQL's own scanner is
 * quadratic in nested comments: those are bounded by LIMIT_SQL_DEPTH too.
 *
 * Invariants:
 *  K1 texts with equal keys and equal kinds have equal token sequences up to literal values and
 *     repeat counts (tests/unit/planner/test_scan.c compares with pg_query_scan).
 *  K2 slots are in order of the text and lie inside it.
 *  K3 no byte is written beyond key_room = 2 * text + 16: each token adds at most one blank, and
 *     MARK_REPEAT replaces at least two dropped bytes.
 */
#include "planner/scan.h"

#include "base/assert.h"
#include "base/limits.h"

#include <stdlib.h>

#define MARK_REPEAT 0x07

enum class {
    C_BAD, /* control bytes */
    C_SPACE,
    C_IDENT, /* letters, _, high bytes */
    C_DIGIT,
    C_QUOTE,
    C_DQUOTE,
    C_DOLLAR,
    C_OPER,
    C_DOT,
    C_COLON,
    C_OPEN,
    C_CLOSE,
    C_COMMA,
    C_SEMI,
};

/* Set for what may follow inside an identifier. */
static uint8_t class_of[256];
static uint8_t lower_of[256];
static bool ident_part[256];

__attribute__((constructor)) static void fill_tables(void)
{
    for (unsigned i = 0; i < 256; i++) {
        lower_of[i] = (uint8_t)(i >= 'A' && i <= 'Z' ? i + 32 : i);
        if ((i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z') || i == '_' || i >= 0x80)
            class_of[i] = C_IDENT;
        else if (i >= '0' && i <= '9')
            class_of[i] = C_DIGIT;
        else if (i == ' ' || i == '\t' || i == '\n' || i == '\r' || i == '\f')
            class_of[i] = C_SPACE;
        else if (i != 0 && strchr("~!@#^&|`?+-*/%<>=", (int)i) != NULL)
            class_of[i] = C_OPER;
    }
    class_of['\''] = C_QUOTE;
    class_of['"'] = C_DQUOTE;
    class_of['$'] = C_DOLLAR;
    class_of['.'] = C_DOT;
    class_of[':'] = C_COLON;
    class_of['('] = class_of['['] = C_OPEN;
    class_of[')'] = class_of[']'] = C_CLOSE;
    class_of[','] = C_COMMA;
    class_of[';'] = C_SEMI;
    for (unsigned i = 0; i < 256; i++)
        ident_part[i] = class_of[i] == C_IDENT || class_of[i] == C_DIGIT || i == '$';
}

static status too_complex(struct err *err, const char *what)
{
    err_set(err, ST_TOO_COMPLEX, "statement too complex");
    err_detail(err, "%s.", what);
    return ST_TOO_COMPLEX;
}

/* -- tokens ------------------------------------------------------------------------------------ */

/* Behind a comment that starts at P with two dashes. */
static const uint8_t *skip_line(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p != '\n' && *p != '\r')
        p++;
    return p;
}

/* Behind a comment that starts at P with a slash and a star; NULL if it is not closed. *DEEP when
 * nested over the limit. */
static const uint8_t *skip_block(const uint8_t *p, const uint8_t *end, bool *deep)
{
    unsigned depth = 0;
    while (p + 1 < end) {
        if (p[0] == '/' && p[1] == '*') {
            p += 2;
            if (++depth > LIMIT_SQL_DEPTH) {
                *deep = true;
                return NULL;
            }
        } else if (p[0] == '*' && p[1] == '/') {
            p += 2;
            if (--depth == 0)
                return p;
        } else {
            p++;
        }
    }
    return NULL;
}

/* Behind white space and comments. NULL: a comment is not closed. */
static const uint8_t *skip_blank(const uint8_t *p, const uint8_t *end, bool *deep)
{
    while (p < end) {
        if (class_of[*p] == C_SPACE) {
            p++;
        } else if (*p == '-' && p + 1 < end && p[1] == '-') {
            p = skip_line(p, end);
        } else if (*p == '/' && p + 1 < end && p[1] == '*') {
            p = skip_block(p, end, deep);
            if (p == NULL)
                return NULL;
        } else {
            break;
        }
    }
    return p;
}

/* Behind a quoted piece that starts at P with Q; a doubled Q stands for itself, with BACKSLASH a
 * backslash hides what follows. NULL if it is not closed. */
static const uint8_t *skip_quoted(const uint8_t *p, const uint8_t *end, uint8_t q, bool backslash)
{
    for (p++; p < end; p++) {
        if (*p == q) {
            if (p + 1 < end && p[1] == q) {
                p++;
                continue;
            }
            return p + 1;
        }
        if (backslash && *p == '\\' && p + 1 < end)
            p++;
    }
    return NULL;
}

/* A string goes on behind white space with a line end in it: 'a' <newline> 'b'. Gives the quote
 * that continues it, or NULL. Comments with two dashes count as white space here, the others do
 * not. */
static const uint8_t *continuation(const uint8_t *p, const uint8_t *end)
{
    bool newline = false;
    while (p < end) {
        if (*p == '\n' || *p == '\r') {
            newline = true;
            p++;
        } else if (class_of[*p] == C_SPACE) {
            p++;
        } else if (*p == '-' && p + 1 < end && p[1] == '-') {
            p = skip_line(p, end);
        } else {
            break;
        }
    }
    return newline && p < end && *p == '\'' ? p : NULL;
}

/* A string and what continues it. *CONTINUED tells. */
static const uint8_t *skip_string(const uint8_t *p, const uint8_t *end, bool backslash,
                                  bool *continued)
{
    for (;;) {
        p = skip_quoted(p, end, '\'', backslash);
        if (p == NULL)
            return NULL;
        if (LIKELY(p == end || class_of[*p] != C_SPACE) && !(p < end && *p == '-'))
            return p;
        const uint8_t *next = continuation(p, end);
        if (next == NULL)
            return p;
        *continued = true;
        p = next;
    }
}

/* B'…' and X'…': a quote in them is always the end. */
static const uint8_t *skip_bits(const uint8_t *p, const uint8_t *end)
{
    do {
        p = memchr(p + 1, '\'', (size_t)(end - p - 1));
        if (p == NULL)
            return NULL;
        const uint8_t *next = continuation(++p, end);
        if (next == NULL)
            return p;
        p = next;
    } while (p < end);
    return NULL;
}

/* $tag$ … $tag$. Gives P if no dollar quote starts here, NULL if it is not closed. */
static const uint8_t *skip_dollar(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *tag = p++;
    if (p < end && class_of[*p] == C_IDENT) {
        while (p < end && (class_of[*p] == C_IDENT || class_of[*p] == C_DIGIT))
            p++;
    }
    if (p >= end || *p != '$')
        return tag;
    size_t n = (size_t)(++p - tag);
    for (; p + n <= end; p++) {
        p = memchr(p, '$', (size_t)(end - p));
        if (p == NULL || p + n > end)
            return NULL;
        if (memcmp(p, tag, n) == 0)
            return p + n;
    }
    return NULL;
}

/* Behind a number that starts at P. */
static const uint8_t *skip_number(const uint8_t *p, const uint8_t *end, bool *integer)
{
    const uint8_t *start = p;
    *integer = true;
    while (p < end && class_of[*p] == C_DIGIT)
        p++;
    /* `1..2` is 1 and the operator of ranges. */
    if (p < end && *p == '.' && !(p > start && p + 1 < end && p[1] == '.')) {
        *integer = false;
        p++;
        while (p < end && class_of[*p] == C_DIGIT)
            p++;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        const uint8_t *q = p + 1;
        if (q < end && (*q == '+' || *q == '-'))
            q++;
        if (q < end && class_of[*q] == C_DIGIT) {
            *integer = false;
            while (q < end && class_of[*q] == C_DIGIT)
                q++;
            p = q;
        }
    }
    return p;
}

static bool fits_bigint(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p == '0')
        p++;
    size_t n = (size_t)(end - p);
    return n < 19 || (n == 19 && memcmp(p, "9223372036854775807", 19) <= 0);
}

/* Behind an operator: the longest run, cut before a comment; a run of several characters does not
 * end in + or - unless it has one of ~ ! @ # % ^ & | ` ?. */
static const uint8_t *skip_operator(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *start = p;
    bool special = false;
    while (p < end && class_of[*p] == C_OPER) {
        if (p > start && p + 1 < end &&
            ((p[0] == '-' && p[1] == '-') || (p[0] == '/' && p[1] == '*')))
            break;
        if (strchr("~!@#%^&|`?", *p) != NULL)
            special = true;
        p++;
    }
    if (!special) {
        while (p > start + 1 && (p[-1] == '+' || p[-1] == '-'))
            p--;
    }
    return p;
}

/* The token at P, which is no white space. Gives where it ends. */
static const uint8_t *token(const uint8_t *p, const uint8_t *end, struct pl_token *t)
{
    const uint8_t *start = p;
    bool continued = false, integer;
    t->junk = false;
    switch ((enum class)class_of[*p]) {
    case C_IDENT:
        if (end - p > 1 && p[1] == '\'' && strchr("eEbBxXnN", *p) != NULL) {
            t->kind = PL_TOKEN_STRANGE;
            if (strchr("bBxX", *p) != NULL)
                return skip_bits(p + 1, end);
            return skip_string(p + 1, end, *p == 'e' || *p == 'E', &continued);
        }
        if (end - p > 2 && (*p == 'u' || *p == 'U') && p[1] == '&' &&
            (p[2] == '\'' || p[2] == '"')) {
            t->kind = PL_TOKEN_STRANGE;
            return p[2] == '"' ? skip_quoted(p + 2, end, '"', false)
                               : skip_string(p + 2, end, false, &continued);
        }
        t->kind = PL_TOKEN_WORD;
        do
            p++;
        while (p < end && ident_part[*p]);
        return p;
    case C_DIGIT:
        p = skip_number(p, end, &integer);
        t->kind = integer && fits_bigint(start, p) ? PL_TOKEN_INT : PL_TOKEN_NUMERIC;
        t->junk = p < end && class_of[*p] == C_IDENT;
        return p;
    case C_QUOTE:
        p = skip_string(p, end, false, &continued);
        t->kind = continued ? PL_TOKEN_STRANGE : PL_TOKEN_STRING;
        return p;
    case C_DQUOTE: t->kind = PL_TOKEN_QUOTED; return skip_quoted(p, end, '"', false);
    case C_DOLLAR:
        if (end - p > 1 && class_of[p[1]] == C_DIGIT) {
            for (p++; p < end && class_of[*p] == C_DIGIT;)
                p++;
            t->kind = PL_TOKEN_PARAM;
            t->junk = p < end && class_of[*p] == C_IDENT;
            return p;
        }
        t->kind = PL_TOKEN_STRANGE;
        p = skip_dollar(p, end);
        return p == start ? NULL : p;
    case C_OPER: t->kind = PL_TOKEN_OPER; return skip_operator(p, end);
    case C_DOT:
        if (end - p > 1 && class_of[p[1]] == C_DIGIT) {
            p = skip_number(p, end, &integer);
            t->kind = PL_TOKEN_NUMERIC;
            t->junk = p < end && class_of[*p] == C_IDENT;
            return p;
        }
        t->kind = PL_TOKEN_PUNCT;
        return p + (end - p > 1 && p[1] == '.' ? 2 : 1);
    case C_COLON:
        t->kind = PL_TOKEN_PUNCT;
        return p + (end - p > 1 && (p[1] == ':' || p[1] == '=') ? 2 : 1);
    case C_OPEN:
    case C_CLOSE:
    case C_COMMA:
    case C_SEMI: t->kind = PL_TOKEN_PUNCT; return p + 1;
    case C_SPACE:
    case C_BAD: break;
    }
    return NULL;
}

status pl_token_next(bytes text, size_t *at, struct pl_token *out, struct err *err)
{
    const uint8_t *end = text.data + text.size;
    bool deep = false;
    const uint8_t *p = skip_blank(text.data + *at, end, &deep);
    *out = (struct pl_token){.kind = PL_TOKEN_END, .at = (uint32_t)text.size};
    if (deep)
        return too_complex(err, "Comments are nested too deep");
    if (p == NULL) { /* an open comment */
        out->kind = PL_TOKEN_BAD;
        out->at = (uint32_t)*at;
        out->size = (uint32_t)(text.size - *at);
        *at = text.size;
        return ST_OK;
    }
    if (p == end) {
        *at = text.size;
        return ST_OK;
    }
    const uint8_t *q = token(p, end, out);
    if (q == NULL) {
        out->kind = PL_TOKEN_BAD;
        q = end;
    }
    out->at = (uint32_t)(p - text.data);
    out->size = (uint32_t)(q - p);
    *at = (size_t)(q - text.data);
    return ST_OK;
}

bool pl_token_is(bytes text, const struct pl_token *t, const char *word)
{
    size_t n = strlen(word);
    if (t->size != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (lower_of[text.data[t->at + i]] != (uint8_t)word[i])
            return false;
    }
    return true;
}

/* -- the scan ---------------------------------------------------------------------------------- */

void pl_scan_init(struct pl_scan *s)
{
    memset(s, 0, sizeof(*s));
}

void pl_scan_fini(struct pl_scan *s)
{
    free(s->key);
    free(s->slots);
    pl_scan_init(s);
}

/* Where collapsing stands. */
enum list_state {
    LIST_NONE,
    LIST_WANT_ROW, /* behind VALUES, or behind a comma behind a row */
    LIST_IN_ROW,
    LIST_AFTER_ROW,
    LIST_WANT_IN,  /* behind IN */
    LIST_IN_FIRST, /* behind IN ( */
    LIST_IN_VALUE, /* behind a value of the list */
    LIST_IN_COMMA, /* behind its comma */
};

/* Which tokens need a blank between them. */
enum glue { GLUE_NONE, GLUE_WORD, GLUE_OPER, GLUE_QUOTED };

struct pass {
    struct pl_scan *s;
    uint8_t *out;
    enum glue glue;
    enum list_state list;
    struct pl_repeat *repeat;   /* the list under way, once it has two items */
    uint32_t row_key, row_slot; /* where the row under way starts */
    uint32_t one_key, one_size; /* key bytes of the first row */
    uint32_t list_key;          /* key size behind the first item (and its mark) */
    uint32_t list_slot, stride, row_depth;
    uint32_t depth, cases;
    uint32_t run[LIMIT_SQL_DEPTH + 2];
    struct err *err;
};

static uint32_t key_size(const struct pass *p)
{
    return (uint32_t)(p->out - p->s->key);
}

/* A second equal item: the mark behind the first, and the count. False when no more lists fit. */
static bool repeat_begin(struct pass *p)
{
    if (p->repeat != NULL)
        return true;
    if (p->s->repeat_count == PL_REPEATS)
        return false;
    p->repeat = &p->s->repeats[p->s->repeat_count++];
    *p->repeat = (struct pl_repeat){.first = p->list_slot, .stride = p->stride, .count = 1};
    p->s->key[p->list_key++] = MARK_REPEAT;
    return true;
}

/* At the closing parenthesis of a row of VALUES, already written. */
static void row_end(struct pass *p)
{
    struct pl_scan *s = p->s;
    uint32_t size = key_size(p) - p->row_key, slots = s->slot_count - p->row_slot;
    p->list = LIST_AFTER_ROW;
    if (p->one_size == 0) {
        p->one_key = p->row_key;
        p->one_size = size;
        p->list_key = key_size(p);
        p->list_slot = p->row_slot;
        p->stride = slots;
        return;
    }
    /* The row must follow the list so far: its key starts behind list_key and a comma. */
    if (size != p->one_size || slots != p->stride || p->row_key != p->list_key + 1 ||
        memcmp(s->key + p->one_key, s->key + p->row_key, size) != 0 || !repeat_begin(p)) {
        p->list = LIST_NONE;
        return;
    }
    p->repeat->count++;
    p->out = s->key + p->list_key;
}

static void in_value(struct pass *p, uint32_t kind)
{
    struct pl_scan *s = p->s;
    if (p->list == LIST_IN_FIRST) {
        p->list = LIST_IN_VALUE;
        p->list_key = key_size(p);
        p->list_slot = s->slot_count - 1;
        p->stride = 1;
        return;
    }
    /* The comma was written behind list_key. */
    if (s->slots[p->list_slot].kind != kind || key_size(p) != p->list_key + 2 || !repeat_begin(p)) {
        p->list = LIST_NONE;
        return;
    }
    p->repeat->count++;
    p->out = s->key + p->list_key;
    p->list = LIST_IN_VALUE;
}

static status literal(struct pass *p, const struct pl_token *t, uint32_t kind)
{
    struct pl_scan *s = p->s;
    if (UNLIKELY(s->slot_count == s->slot_room)) {
        if (s->slot_room >= LIMIT_LITERALS) {
            s->cacheable = false;
            return ST_OK;
        }
        s->slot_room = s->slot_room == 0 ? 64 : s->slot_room * 2;
        struct pl_slot *more = realloc(s->slots, s->slot_room * sizeof(*more));
        if (more == NULL)
            return err_set(p->err, ST_NO_MEMORY, "out of memory");
        s->slots = more;
    }
    s->slots[s->slot_count++] = (struct pl_slot){.at = t->at, .size = t->size, .kind = kind};
    *p->out++ = (uint8_t)kind;
    p->glue = GLUE_NONE;
    if (p->list == LIST_IN_FIRST || p->list == LIST_IN_COMMA)
        in_value(p, kind);
    else if (p->list != LIST_IN_ROW)
        p->list = LIST_NONE;
    return ST_OK;
}

static void put(struct pass *p, enum glue glue, const uint8_t *from, size_t n)
{
    if (glue != GLUE_NONE && p->glue == glue)
        *p->out++ = ' ';
    p->glue = glue;
    for (size_t i = 0; i < n; i++) /* mostly one byte */
        *p->out++ = from[i];
}

/* The word at FROM, lower-cased into the key as it is read: most of a text is words. */
static inline status word(struct pass *p, const uint8_t **from, const uint8_t *end)
{
    const uint8_t *at = *from;
    uint8_t *out = p->out;
    if (p->glue == GLUE_WORD)
        *out++ = ' ';
    p->glue = GLUE_WORD;
    uint8_t *start = out;
    do
        *out++ = lower_of[*at++];
    while (at < end && ident_part[*at]);
    *from = at;
    p->out = out;
    size_t n = (size_t)(out - start);
    if (UNLIKELY(n > LIMIT_IDENTIFIER_BYTES))
        p->s->cacheable = false;
    if (p->list != LIST_IN_ROW)
        p->list = LIST_NONE;
    if (n == 6 && memcmp(start, "values", 6) == 0) {
        p->list = LIST_WANT_ROW;
        p->one_size = 0;
        p->repeat = NULL;
    } else if (n == 2 && start[0] == 'i' && start[1] == 'n' && p->list == LIST_NONE) {
        p->list = LIST_WANT_IN;
        p->repeat = NULL;
    } else if (n == 4 && memcmp(start, "case", 4) == 0) {
        if (++p->cases + p->depth > LIMIT_SQL_DEPTH)
            return too_complex(p->err, "Expressions are nested too deep");
    } else if (n == 3 && p->cases > 0 && memcmp(start, "end", 3) == 0) {
        p->cases--;
    }
    return ST_OK;
}

static status punct(struct pass *p, const uint8_t *from, size_t n)
{
    enum class c = class_of[*from];
    if (c == C_DOT || c == C_COLON) {
        put(p, GLUE_OPER, from, n);
        p->list = LIST_NONE;
        return ST_OK;
    }
    uint32_t here = key_size(p);
    put(p, GLUE_NONE, from, n);
    if (c == C_OPEN) {
        if (p->depth + 1 + p->cases > LIMIT_SQL_DEPTH)
            return too_complex(p->err, "Expressions are nested too deep");
        p->run[++p->depth] = 0;
        if (p->list == LIST_WANT_ROW && *from == '(') {
            p->list = LIST_IN_ROW;
            p->row_key = here;
            p->row_slot = p->s->slot_count;
            p->row_depth = p->depth;
        } else if (p->list == LIST_WANT_IN && *from == '(') {
            p->list = LIST_IN_FIRST;
        } else {
            p->list = LIST_NONE;
        }
    } else if (c == C_CLOSE) {
        if (p->list == LIST_IN_ROW && p->depth == p->row_depth)
            row_end(p);
        else
            p->list = LIST_NONE;
        if (p->depth > 0)
            p->depth--;
    } else { /* a comma */
        p->run[p->depth] = 0;
        if (p->list == LIST_AFTER_ROW)
            p->list = LIST_WANT_ROW;
        else if (p->list == LIST_IN_VALUE)
            p->list = LIST_IN_COMMA;
        else if (p->list != LIST_IN_ROW)
            p->list = LIST_NONE;
    }
    return ST_OK;
}

static bool has_control(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] < 0x20)
            return true;
    }
    return false;
}

static status take(struct pass *p, bytes text, const struct pl_token *t)
{
    const uint8_t *from = text.data + t->at;
    if (UNLIKELY(t->junk))
        p->s->cacheable = false;
    switch (t->kind) {
    case PL_TOKEN_INT: return literal(p, t, PL_SLOT_INT);
    case PL_TOKEN_NUMERIC: return literal(p, t, PL_SLOT_NUMERIC);
    case PL_TOKEN_STRING: return literal(p, t, PL_SLOT_STRING);
    case PL_TOKEN_PUNCT: return punct(p, from, t->size);
    case PL_TOKEN_OPER:
        put(p, GLUE_OPER, from, t->size);
        if (p->list != LIST_IN_ROW)
            p->list = LIST_NONE;
        return ST_OK;
    case PL_TOKEN_QUOTED:
        if (t->size > LIMIT_IDENTIFIER_BYTES + 2 || has_control(from, t->size))
            p->s->cacheable = false;
        put(p, GLUE_QUOTED, from, t->size);
        p->list = p->list == LIST_IN_ROW ? LIST_IN_ROW : LIST_NONE;
        return ST_OK;
    case PL_TOKEN_PARAM:
        put(p, GLUE_WORD, from, t->size);
        p->list = p->list == LIST_IN_ROW ? LIST_IN_ROW : LIST_NONE;
        return ST_OK;
    case PL_TOKEN_WORD: ASSERT_SLOW(false); break; /* see pl_scan */
    case PL_TOKEN_STRANGE:
    case PL_TOKEN_BAD:
    case PL_TOKEN_END: p->s->cacheable = false; break;
    }
    return ST_OK;
}

status pl_scan(struct pl_scan *s, bytes text, struct err *err)
{
    size_t room = 2 * text.size + 16;
    if (s->key_room < room) {
        free(s->key);
        s->key_room = 0;
        s->key = malloc(room);
        if (s->key == NULL)
            return err_set(err, ST_NO_MEMORY, "out of memory");
        s->key_room = room;
    }
    s->slot_count = s->repeat_count = 0;
    s->cacheable = s->empty = true;
    struct pass p;
    memset(&p, 0, offsetof(struct pass, run));
    p.run[0] = 0;
    p.s = s;
    p.out = s->key;
    p.err = err;

    const uint8_t *at = text.data, *end = text.data + text.size;
    bool deep = false, ended = false;
    status st = ST_OK;
    while (st == ST_OK) {
        while (at < end && class_of[*at] == C_SPACE)
            at++;
        if (at == end)
            break;
        if ((*at == '-' || *at == '/') && at + 1 < end && at[1] == (*at == '-' ? '-' : '*')) {
            at = skip_blank(at, end, &deep);
            if (deep)
                return too_complex(err, "Comments are nested too deep");
            if (at != NULL)
                continue;
            s->cacheable = s->empty = false;
            break;
        }
        if (*at == ';') {
            ended = !s->empty;
            p.run[p.depth] = 0;
            at++;
            continue;
        }
        if (UNLIKELY(ended))
            s->cacheable = false; /* a second statement */
        s->empty = false;
        if (UNLIKELY(++p.run[p.depth] > LIMIT_SQL_CHAIN))
            return too_complex(err, "An expression is too long");
        /* A letter before a quote may begin a string: token() knows. */
        if (class_of[*at] == C_IDENT && (at + 1 == end || (at[1] != '\'' && at[1] != '&'))) {
            st = word(&p, &at, end);
            continue;
        }
        struct pl_token t;
        const uint8_t *next = token(at, end, &t);
        if (next == NULL) {
            s->cacheable = false;
            break;
        }
        if (t.kind == PL_TOKEN_WORD) {
            st = word(&p, &at, end);
            continue;
        }
        t.at = (uint32_t)(at - text.data);
        t.size = (uint32_t)(next - at);
        at = next;
        st = take(&p, text, &t);
    }
    s->key_size = key_size(&p);
    return st;
}
