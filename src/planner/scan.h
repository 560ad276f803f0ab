/*
 * planner/scan.h — one pass over a statement's text: its shape, its literals, its guards.
 *
 * The shape is a byte string: two texts with equal shapes have the same tokens except for the
 * values of literals and the lengths of lists that were collapsed. pl_plan finds plans by it.
 */
#ifndef PLANNER_SCAN_H
#define PLANNER_SCAN_H

#include "base/bytes.h"
#include "base/err.h"

enum pl_slot_kind {
    PL_SLOT_INT = 1, /* digits that fit bigint */
    PL_SLOT_NUMERIC, /* any other number */
    PL_SLOT_STRING,  /* '…' without backslash escapes; '' stands for ' */
};

/* A literal: where its token is. */
struct pl_slot {
    uint32_t at, size; /* bytes, quotes included */
    uint32_t kind;
};

/* A list that was collapsed: rows of VALUES, or the values of IN (…). Its COUNT items take STRIDE
 * literals each, from slot FIRST on. */
struct pl_repeat {
    uint32_t first, stride, count;
};
#define PL_REPEATS 4

/* Reused from statement to statement; fini frees. */
struct pl_scan {
    uint8_t *key;
    uint32_t key_size;
    struct pl_slot *slots;
    uint32_t slot_count;
    struct pl_repeat repeats[PL_REPEATS];
    uint32_t repeat_count;
    bool empty;     /* no token but semicolons */
    bool cacheable; /* false: the scanner cannot give a token's value; key and slots are unusable */
    size_t key_room, slot_room;
};

void pl_scan_init(struct pl_scan *s);
void pl_scan_fini(struct pl_scan *s);
/* ST_OK also for texts that will not parse. 54001 when nesting or a chain without a comma is longer
 * than the parser may see. */
NODISCARD status pl_scan(struct pl_scan *s, bytes text, struct err *err);

/* One token, for those who walk a text by themselves (split.c, and finding an inner statement). */
enum pl_token_kind {
    PL_TOKEN_END,
    PL_TOKEN_WORD,   /* keyword or identifier */
    PL_TOKEN_QUOTED, /* "…" */
    PL_TOKEN_PARAM,  /* $1 */
    PL_TOKEN_INT,
    PL_TOKEN_NUMERIC,
    PL_TOKEN_STRING,  /* '…' */
    PL_TOKEN_STRANGE, /* E'' B'' X'' N'' U&'' U&"" $$…$$, strings over several lines */
    PL_TOKEN_OPER,
    PL_TOKEN_PUNCT, /* ( ) [ ] , ; : . and their doubles */
    PL_TOKEN_BAD,   /* unterminated, or no token: takes the rest of the text */
};
struct pl_token {
    enum pl_token_kind kind;
    uint32_t at, size;
    bool junk; /* letters directly behind a number: not a valid text */
};
/* The token at or after *AT, which moves behind it. 54001 for comments nested too deep. */
NODISCARD status pl_token_next(bytes text, size_t *at, struct pl_token *out, struct err *err);
/* Case-insensitive (ASCII). */
bool pl_token_is(bytes text, const struct pl_token *t, const char *word);

#endif
