/*
 * planner/bind_copy.c — COPY: options, columns, the inner query of COPY … TO, and rows of COPY …
 * FROM.
 *
 * COPY table TO is COPY (SELECT cols FROM table) TO. A column that the server sets may stand in the
 * data of a COPY without a column list, so that what COPY TO wrote can be read again: its value is
 * passed over. Named in a column list it is an error, as in INSERT.
 */
#include "planner/pl_internal.h"

#include <stdio.h>
#include <strings.h>

static status one_byte(struct pl__compile *c, const struct ast_option *o, const char *what,
                       char *out)
{
    const char *s = o->value == NULL ? NULL : o->value->text;
    if (s == NULL || strlen(s) != 1)
        return pl__error(c, o->at, ST_UNSUPPORTED, NULL,
                         "COPY %s must be a single one-byte character", what);
    *out = s[0];
    return ST_OK;
}

static bool truth(const struct ast_node *n, bool *good)
{
    *good = true;
    if (n == NULL)
        return true;
    if (n->kind == AST_BOOL_CONST || n->kind == AST_INT)
        return n->ival != 0;
    if (n->text != NULL && (strcasecmp(n->text, "true") == 0 || strcasecmp(n->text, "on") == 0))
        return true;
    *good =
        n->text != NULL && (strcasecmp(n->text, "false") == 0 || strcasecmp(n->text, "off") == 0 ||
                            strcasecmp(n->text, "match") == 0);
    return n->text != NULL && strcasecmp(n->text, "match") == 0;
}

static status format_option(struct pl__compile *c, const struct ast_option *o, struct pl_utility *u)
{
    const char *s = o->value == NULL || o->value->text == NULL ? "" : o->value->text;
    if (strcmp(s, "text") == 0)
        u->format = PL_COPY_TEXT;
    else if (strcmp(s, "csv") == 0)
        u->format = PL_COPY_CSV;
    else if (strcmp(s, "binary") == 0)
        u->format = PL_COPY_BINARY;
    else
        return pl__error(c, o->at, ST_INVALID, NULL, "COPY format \"%s\" not recognized", s);
    return ST_OK;
}

static status option(struct pl__compile *c, const struct ast_option *o, struct pl_utility *u)
{
    bool good = true;
    if (strcmp(o->name, "format") == 0)
        return format_option(c, o, u);
    if (strcmp(o->name, "delimiter") == 0)
        return one_byte(c, o, "delimiter", &u->delimiter);
    if (strcmp(o->name, "quote") == 0)
        return one_byte(c, o, "quote", &u->quote);
    if (strcmp(o->name, "escape") == 0)
        return one_byte(c, o, "escape", &u->escape);
    if (strcmp(o->name, "null") == 0) {
        u->null_text = arena_strdup(
            c->a, bytes_str(o->value == NULL || o->value->text == NULL ? "" : o->value->text));
        return ST_OK;
    }
    if (strcmp(o->name, "header") == 0) {
        u->header = truth(o->value, &good);
        return good ? ST_OK
                    : pl__error(c, o->at, ST_SYNTAX, NULL,
                                "header requires a Boolean value or \"match\"");
    }
    if (strcmp(o->name, "freeze") == 0)
        return ST_OK;
    if (strcmp(o->name, "encoding") == 0 && o->value != NULL && o->value->text != NULL &&
        (strcasecmp(o->value->text, "utf8") == 0 || strcasecmp(o->value->text, "utf-8") == 0))
        return ST_OK;
    if (strncmp(o->name, "force_", 6) == 0 || strcmp(o->name, "encoding") == 0)
        return pl__error(c, o->at, ST_UNSUPPORTED, NULL, "COPY option \"%s\" is not supported",
                         o->name);
    return pl__error(c, o->at, ST_SYNTAX, NULL, "option \"%s\" not recognized", o->name);
}

/* What is left open takes the format's own; what does not fit the format is an error. */
static status settle(struct pl__compile *c, struct pl_utility *u)
{
    bool csv = u->format == PL_COPY_CSV;
    if (u->format == PL_COPY_BINARY && (u->delimiter != 0 || u->null_text != NULL || u->header))
        return pl__error(c, -1, u->header ? ST_UNSUPPORTED : ST_SYNTAX, NULL,
                         "cannot specify %s in BINARY mode",
                         u->delimiter != 0 ? "DELIMITER"
                         : u->header       ? "HEADER"
                                           : "NULL");
    if (!csv && (u->quote != 0 || u->escape != 0))
        return pl__error(c, -1, ST_UNSUPPORTED, NULL, "COPY %s available only in CSV mode",
                         u->quote != 0 ? "quote" : "escape");
    if (u->delimiter == 0)
        u->delimiter = csv ? ',' : '\t';
    if (u->quote == 0)
        u->quote = '"';
    if (u->escape == 0)
        u->escape = u->quote;
    if (u->null_text == NULL)
        u->null_text = csv ? "" : "\\N";
    if (strpbrk(u->null_text, "\r\n") != NULL || u->delimiter == '\r' || u->delimiter == '\n')
        return pl__error(
            c, -1, ST_INVALID, NULL,
            "COPY delimiter and null representation cannot use newline or carriage return");
    if (!csv && strchr("\\.abcdefghijklmnopqrstuvwxyz0123456789", u->delimiter) != NULL)
        return pl__error(c, -1, ST_INVALID, NULL, "COPY delimiter cannot be \"%c\"", u->delimiter);
    if (csv && u->delimiter == u->quote)
        return pl__error(c, -1, ST_INVALID, NULL, "COPY delimiter and quote must be different");
    if (u->null_text[0] != '\0' && strchr(u->null_text, u->delimiter) != NULL)
        return pl__error(c, -1, ST_INVALID, NULL,
                         "COPY delimiter must not appear in the NULL specification");
    return ST_OK;
}

static status columns(struct pl__compile *c, const struct ast_stmt *s,
                      const struct kv_table_def *def, struct pl_utility *u)
{
    unsigned *out = ARENA_ARRAY(c->a, unsigned, def->column_count + s->column_count + 1);
    u->columns = out;
    if (s->column_count == 0) {
        for (unsigned i = 0; i < def->column_count; i++)
            out[i] = i;
        u->column_count = def->column_count;
        return ST_OK;
    }
    for (unsigned i = 0; i < s->column_count; i++) {
        int column = kv_column_by_name(def, bytes_str(s->columns[i]));
        if (column < 0)
            return pl__error(c, -1, ST_INVALID, "42703",
                             "column \"%s\" of relation \"%s\" does not exist", s->columns[i],
                             def->name);
        for (unsigned k = 0; k < i; k++) {
            if (out[k] == (unsigned)column)
                return pl__error(c, -1, ST_INVALID, "42701",
                                 "column \"%s\" specified more than once", s->columns[i]);
        }
        if (s->is_from && def->columns[column].read_only) {
            pl__error(c, -1, ST_INVALID, "428C9",
                      "cannot insert a non-DEFAULT value into column \"%s\"", s->columns[i]);
            err_detail(c->err, "Column \"%s\" is set by the server.", s->columns[i]);
            return ST_INVALID;
        }
        out[i] = (unsigned)column;
    }
    u->column_count = s->column_count;
    return ST_OK;
}

/* SELECT of the columns, for COPY table TO. */
static void table_query(struct pl__compile *c, const struct kv_table_def *def, struct pl_utility *u)
{
    struct obuf o;
    obuf_init(&o);
    obuf_put(&o, "SELECT ", 7);
    for (unsigned i = 0; i < u->column_count; i++) {
        const char *name = def->columns[u->columns[i]].name;
        if (i > 0)
            obuf_put(&o, ", ", 2);
        obuf_u8(&o, '"');
        obuf_put(&o, name, strlen(name));
        obuf_u8(&o, '"');
    }
    obuf_put(&o, " FROM public.", 13);
    obuf_put(&o, def->name, strlen(def->name));
    u->text = arena_strdup(c->a, bytes_make(o.data, o.size));
    obuf_fini(&o);
}

/* The query between the parentheses behind COPY. */
static status inner_query(struct pl__compile *c, const struct ast_stmt *s, struct pl_utility *u)
{
    size_t at = (size_t)s->at, from;
    struct pl_token t = {0};
    unsigned depth = 1;
    if (s->query->kind != STMT_SELECT && s->query->returning_count == 0)
        return pl__error(c, -1, ST_UNSUPPORTED, NULL, "COPY query must have a RETURNING clause");
    if (s->query->kind != STMT_SELECT)
        return pl__no_pattern(c, -1, PATTERN_COPY_OUT, "its query is a SELECT");
    ST_TRY(pl_token_next(c->text, &at, &t, c->err)); /* COPY */
    ST_TRY(pl_token_next(c->text, &at, &t, c->err)); /* ( */
    from = at;
    while (depth > 0 && t.kind != PL_TOKEN_END) {
        ST_TRY(pl_token_next(c->text, &at, &t, c->err));
        if (t.kind == PL_TOKEN_PUNCT && c->text.data[t.at] == '(')
            depth++;
        else if (t.kind == PL_TOKEN_PUNCT && c->text.data[t.at] == ')')
            depth--;
    }
    u->text = arena_strdup(c->a, bytes_make(c->text.data + from, t.at - from));
    u->text_at = pl__position(c->text, (int)from) - 1;
    return ST_OK;
}

status pl__compile_copy(struct pl__compile *c, const struct ast_stmt *s)
{
    struct pl_utility *u = ARENA_NEW(c->a, struct pl_utility);
    const struct kv_table_def *def = NULL;
    enum pl_pattern_id id = s->is_from ? PATTERN_COPY_IN : PATTERN_COPY_OUT;
    c->plan->pub.kind = s->is_from ? PL_COPY_IN : PL_COPY_OUT;
    c->plan->pub.tag = "COPY";
    c->plan->pub.utility = u;
    c->plan->pattern_id = id;
    if (s->from_program || s->to_file) {
        pl__error(c, -1, ST_DENIED, NULL, "COPY goes to the client or comes from it");
        err_hint(c->err, "Use STDIN or STDOUT; psql's \\copy does so.");
        return ST_DENIED;
    }
    if (s->where != NULL)
        return pl__no_pattern(c, s->where->at, id, "WHERE is not part of it");
    for (unsigned i = 0; i < s->option_count; i++) {
        for (unsigned k = 0; k < i; k++) {
            if (strcmp(s->options[k].name, s->options[i].name) == 0)
                return pl__error(c, s->options[i].at, ST_SYNTAX, NULL,
                                 "conflicting or redundant options");
        }
        ST_TRY(option(c, &s->options[i], u));
    }
    ST_TRY(settle(c, u));
    if (s->query != NULL)
        return inner_query(c, s, u);
    status st = pl__table_of(c, &s->table, &def);
    if (st != ST_OK && c->err != NULL)
        c->err->position = 0; /* utility statements have no positions of names */
    ST_TRY(st);
    if (def == NULL)
        return pl__error(c, s->table.at, ST_UNSUPPORTED, NULL,
                         "COPY is for the tables of schema public");
    u->table = def->table;
    ST_TRY(columns(c, s, def, u));
    if (!s->is_from) {
        table_query(c, def, u);
        return ST_OK;
    }
    if (def->read_only || pl__rules_of(def->table)->insert == PATTERN_NONE)
        return pl__read_only(c, &s->table, def);
    return ST_OK;
}

static status null_value(const struct kv_table_def *def, const struct kv_column *k, struct err *err)
{
    err_set_state(err, ST_INVALID, "23502",
                  "null value in column \"%s\" of relation \"%s\" violates not-null constraint",
                  k->name, def->name);
    err_where(err, "public", def->name, k->name, NULL);
    return ST_INVALID;
}

status pl_copy_row(const struct pl_plan *plan, const bytes *fields, const bool *nulls,
                   unsigned count, const struct pl_context *ctx, struct arena *a,
                   struct kv_datum *out, struct err *err)
{
    const struct pl_utility *u = plan->utility;
    const struct kv_table_def *def = kv_table_def(u->table);
    const struct kv_column *missing = NULL; /* a value of it */
    if (count > u->column_count)
        return err_set_state(err, ST_INVALID, "22P04", "extra data after last expected column");
    for (unsigned i = 0; i < count; i++) {
        const struct kv_column *k = &def->columns[u->columns[i]];
        struct pl_value v;
        if (k->read_only) {
            out[i] = (struct kv_datum){.deflt = true};
            continue;
        }
        if (nulls[i]) {
            if (k->not_null && missing == NULL)
                missing = k;
            out[i] = KV_NULL;
            continue;
        }
        status st = u->format == PL_COPY_BINARY
                        ? pl_value_from_binary(pl_type_of(k->type), fields[i], a, &v, err)
                        : pl_value_from_text(pl_type_of(k->type), fields[i], ctx->style, ctx->now,
                                             a, &v, err);
        if (st == ST_OK)
            st = pl_value_to_datum(&v, k->type, k->name, &out[i], err);
        if (st != ST_OK) {
            err_where(err, NULL, NULL, k->name, NULL);
            return st;
        }
    }
    if (count < u->column_count)
        return err_set_state(err, ST_INVALID, "22P04", "missing data for column \"%s\"",
                             def->columns[u->columns[count]].name);
    return missing == NULL ? ST_OK : null_value(def, missing, err);
}
