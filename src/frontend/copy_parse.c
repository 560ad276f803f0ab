/*
 * frontend/copy_parse.c — text, csv and binary rows out of a stream.
 *
 * text    A row is a line. A backslash takes the next character with it, also a line end. A field
 *         that reads as the null text before escapes are undone is NULL. `\.` alone is the end.
 * csv     A row ends at a line end outside quotes. Only a field without quotes can be NULL.
 * binary  Signature, flags, extension; rows of a count and fields with lengths; count -1 is the
 * end.
 *
 * The first line end says whether lines end in LF, CR or CR LF; after that another is an error.
 *
 * Invariants
 *   Y1  at <= scanned <= in.size; bytes below `scanned` hold no end of the current row, so feeding
 *       byte by byte costs no more than feeding all at once.
 */
#include "frontend/copy_parse.h"
#include "base/assert.h"

#define HEADER_EXTENSION_MAX 65536u

static const uint8_t signature[11] = {'P', 'G', 'C', 'O', 'P', 'Y', '\n', 0xff, '\r', '\n', 0};

void fe_copy_parser_init(struct fe_copy_parser *p, enum fe_copy_kind kind)
{
    *p = (struct fe_copy_parser){.kind = kind,
                                 .delimiter = kind == FE_COPY_CSV ? ',' : '\t',
                                 .quote = '"',
                                 .escape = '"',
                                 .null_text = kind == FE_COPY_CSV ? "" : "\\N"};
}

void fe_copy_parser_fini(struct fe_copy_parser *p)
{
    obuf_fini(&p->in);
}

void fe_copy_feed(struct fe_copy_parser *p, bytes data)
{
    if ((p->ended || p->marked) && p->kind != FE_COPY_BINARY) /* there more is an error */
        return;
    if (p->at > 0 && p->at >= p->in.size - p->at) {
        obuf_consume(&p->in, p->at);
        p->scanned = p->scanned > p->at ? p->scanned - p->at : 0;
        p->at = 0;
    }
    obuf_put(&p->in, data.data, data.size);
}

static status bad(struct err *err, const char *text)
{
    return err_set_state(err, ST_INVALID, "22P04", "%s", text);
}

/* -- lines ------------------------------------------------------------------------------------- */

static status bad_end(const struct fe_copy_parser *p, bool cr, struct err *err)
{
    const char *what = cr ? "carriage return" : "newline";
    if (p->kind == FE_COPY_CSV) {
        (void)err_set_state(err, ST_INVALID, "22P04", "unquoted %s found in data", what);
        err_hint(err, "Use quoted CSV field to represent %s.", what);
    } else {
        (void)err_set_state(err, ST_INVALID, "22P04", "literal %s found in data", what);
        err_hint(err, "Use \"\\%c\" to represent %s.", cr ? 'r' : 'n', what);
    }
    return ST_INVALID;
}

/* The CR or LF at I ends a line if lines end like that. SIZE: of the line end. */
static NODISCARD status line_end_at(struct fe_copy_parser *p, size_t i, bool last, size_t *size,
                                    struct err *err)
{
    const uint8_t *d = p->in.data;
    bool cr = d[i] == '\r', next = i + 1 < p->in.size;
    *size = 1;
    bool marker = p->kind == FE_COPY_CSV && i == p->at + 2 && memcmp(d + p->at, "\\.", 2) == 0;
    if (marker && p->eol == (cr ? FE_COPY_LF : FE_COPY_CR))
        return bad(err, "end-of-copy marker does not match previous newline style");
    if (cr && p->kind == FE_COPY_CSV && !next && !last)
        return ST_NOT_FOUND; /* PostgreSQL looks behind it first, whatever it makes of it */
    if (!cr && (p->eol == FE_COPY_CR || p->eol == FE_COPY_CRLF))
        return bad_end(p, false, err);
    if (!cr || p->eol == FE_COPY_CR) {
        p->eol = cr ? FE_COPY_CR : FE_COPY_LF;
        return ST_OK;
    }
    if (p->eol == FE_COPY_LF)
        return bad_end(p, true, err);
    if (!next && !last)
        return ST_NOT_FOUND; /* the next byte decides */
    if (next && d[i + 1] == '\n') {
        p->eol = FE_COPY_CRLF;
        *size = 2;
        return ST_OK;
    }
    if (p->eol == FE_COPY_CRLF)
        return bad_end(p, true, err);
    p->eol = FE_COPY_CR;
    return ST_OK;
}

/* The end marker stands at the end of its line. ST_NOT_FOUND: what follows it is not there. */
static NODISCARD status check_marker(const struct fe_copy_parser *p, size_t i, bool last,
                                     struct err *err)
{
    if (i + 2 >= p->in.size)
        return last ? ST_OK : ST_NOT_FOUND;
    uint8_t next = p->in.data[i + 2];
    return next == '\n' || next == '\r' ? ST_OK : bad(err, "end-of-copy marker corrupt");
}

/* Does what is at I take the byte behind it along? */
static bool takes_next(const struct fe_copy_parser *p, char c)
{
    if (p->kind == FE_COPY_TEXT)
        return c == '\\';
    return p->quoted && c == p->escape && p->escape != p->quote;
}

/* Where the current row's line end is, and its SIZE. ST_NOT_FOUND: not there yet. Counts lines
 * inside quotes as PostgreSQL does: by LF once LF alone is known to end lines, else by CR. */
static NODISCARD status find_line_end(struct fe_copy_parser *p, bool last, size_t *at, size_t *size,
                                      struct err *err)
{
    const uint8_t *d = p->in.data;
    status st = ST_NOT_FOUND;
    size_t i = p->scanned;
    for (; i < p->in.size; i++) {
        char c = (char)d[i];
        if (takes_next(p, c)) {
            if (i + 1 == p->in.size)
                break; /* the next byte decides */
            char next = (char)d[i + 1];
            if (p->kind == FE_COPY_TEXT && next == '.' &&
                (st = check_marker(p, i, last, err)) != ST_OK)
                break;
            st = ST_NOT_FOUND;
            i += p->kind == FE_COPY_TEXT || next == p->quote || next == p->escape;
        } else if (p->kind == FE_COPY_CSV && c == p->quote) {
            p->quoted = !p->quoted;
        } else if (p->quoted) {
            p->lines_before += c == (p->eol == FE_COPY_LF ? '\n' : '\r');
        } else if (c == '\n' || c == '\r') {
            st = line_end_at(p, i, last, size, err);
            break;
        }
    }
    p->scanned = *at = i;
    return st;
}

static NODISCARD status take_line(struct fe_copy_parser *p, bool last, struct fe_copy_row *out,
                                  bytes *line, struct err *err)
{
    size_t stop, end_size = 0;
    status st = find_line_end(p, last, &stop, &end_size, err);
    if (st == ST_NOT_FOUND && p->in.size - p->at > FE_COPY_ROW_BYTES)
        return err_set(err, ST_LIMIT, "a row of COPY is longer than %u bytes", FE_COPY_ROW_BYTES);
    if (st == ST_NOT_FOUND && !last)
        return ST_NOT_FOUND;
    if (st == ST_NOT_FOUND && p->at == p->in.size)
        return ST_END;
    p->line = ++p->lines_before;
    if (st == ST_NOT_FOUND)
        stop = p->in.size;
    else if (st != ST_OK)
        out->seen = bytes_make(p->in.data + p->at, stop - p->at);
    if (st != ST_NOT_FOUND)
        ST_TRY(st);
    *line = bytes_make(p->in.data + p->at, stop - p->at);
    bool unterminated = p->quoted && !p->header; /* a header's quotes are nobody's business */
    p->quoted = false;
    p->at = p->scanned = stop + end_size;
    return unterminated ? bad(err, "unterminated CSV quoted field") : ST_OK;
}

/* -- text -------------------------------------------------------------------------------------- */

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What follows a backslash at IN; returns how many bytes it took. */
static size_t unescape(bytes in, uint8_t *out)
{
    static const char letters[] = "bfnrtv", meant[] = "\b\f\n\r\t\v";
    uint8_t c = in.data[0];
    const char *l = c != 0 ? strchr(letters, c) : NULL;
    if (l != NULL) {
        *out = (uint8_t)meant[l - letters];
        return 1;
    }
    if (c >= '0' && c <= '7') {
        unsigned v = 0;
        size_t n = 0;
        while (n < 3 && n < in.size && in.data[n] >= '0' && in.data[n] <= '7')
            v = v * 8 + (unsigned)(in.data[n++] - '0');
        *out = (uint8_t)v;
        return n;
    }
    if (c == 'x' && in.size > 1 && hex_digit(in.data[1]) >= 0) {
        unsigned v = 0;
        size_t n = 1;
        while (n < 3 && n < in.size && hex_digit(in.data[n]) >= 0)
            v = v * 16 + (unsigned)hex_digit(in.data[n++]);
        *out = (uint8_t)v;
        return n;
    }
    *out = c;
    return 1;
}

static bool is_null_text(const struct fe_copy_parser *p, bytes raw)
{
    return bytes_eq(raw, bytes_str(p->null_text));
}

/* Fields of LINE; first counted, then cut, so that the arrays are of the right size. */
static unsigned count_text_fields(const struct fe_copy_parser *p, bytes line)
{
    unsigned n = 1;
    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] == '\\')
            i++;
        else if ((char)line.data[i] == p->delimiter)
            n++;
    }
    return n;
}

static void split_text(const struct fe_copy_parser *p, bytes line, struct arena *a,
                       struct fe_copy_row *out)
{
    unsigned count = count_text_fields(p, line);
    out->fields = arena_alloc(a, sizeof(bytes) * count);
    out->nulls = arena_alloc(a, sizeof(bool) * count);
    out->count = count;
    uint8_t *to = arena_alloc(a, line.size);
    size_t i = 0;
    for (unsigned f = 0; f < count; f++) {
        size_t start = i, n = 0;
        for (; i < line.size && (char)line.data[i] != p->delimiter; i++) {
            if (line.data[i] == '\\' && i + 1 < line.size)
                i += unescape(bytes_make(line.data + i + 1, line.size - i - 1), &to[n++]);
            else
                to[n++] = line.data[i];
        }
        out->nulls[f] = is_null_text(p, bytes_make(line.data + start, i - start));
        out->fields[f] = out->nulls[f] ? BYTES_EMPTY : bytes_make(to, n);
        to += n;
        i++; /* the delimiter */
    }
}

/* -- csv --------------------------------------------------------------------------------------- */

static unsigned count_csv_fields(const struct fe_copy_parser *p, bytes line)
{
    unsigned n = 1;
    bool quoted = false;
    for (size_t i = 0; i < line.size; i++) {
        char c = (char)line.data[i];
        if (quoted && c == p->escape && p->escape != p->quote && i + 1 < line.size)
            i++;
        else if (c == p->quote)
            quoted = !quoted;
        else if (c == p->delimiter && !quoted)
            n++;
    }
    return n;
}

/* One field from I on; returns where it ended. */
static size_t cut_csv_field(const struct fe_copy_parser *p, bytes line, size_t i, uint8_t *to,
                            size_t *size, bool *any_quote)
{
    bool quoted = false;
    size_t n = 0;
    *any_quote = false;
    for (; i < line.size; i++) {
        char c = (char)line.data[i];
        char next = i + 1 < line.size ? (char)line.data[i + 1] : '\0';
        bool has_next = i + 1 < line.size;
        if (!quoted && c == p->delimiter)
            break;
        if (quoted && c == p->escape && has_next && (next == p->quote || next == p->escape)) {
            to[n++] = (uint8_t)next;
            i++;
        } else if (c == p->quote) {
            quoted = !quoted;
            *any_quote = true;
        } else {
            to[n++] = (uint8_t)c;
        }
    }
    *size = n;
    return i;
}

static void split_csv(const struct fe_copy_parser *p, bytes line, struct arena *a,
                      struct fe_copy_row *out)
{
    unsigned room = count_csv_fields(p, line), count = 0;
    out->fields = arena_alloc(a, sizeof(bytes) * room);
    out->nulls = arena_alloc(a, sizeof(bool) * room);
    uint8_t *to = arena_alloc(a, line.size);
    size_t i = 0;
    do {
        size_t start = i, n;
        bool quoted;
        i = cut_csv_field(p, line, i, to, &n, &quoted);
        out->nulls[count] = !quoted && is_null_text(p, bytes_make(line.data + start, i - start));
        out->fields[count] = out->nulls[count] ? BYTES_EMPTY : bytes_make(to, n);
        count++;
        to += n;
    } while (i++ < line.size && count < room);
    out->count = count;
}

/* The marker ends the data behind a row's last field, too; nowhere else. */
static NODISCARD status cut_end_marker(struct fe_copy_parser *p, bytes *line, struct err *err)
{
    for (size_t i = 0; i + 1 < line->size; i++) {
        if (line->data[i] != '\\')
            continue;
        if (line->data[++i] != '.')
            continue;
        if (i + 1 < line->size)
            return bad(err, "end-of-copy marker corrupt");
        p->ended = true;
        line->size = i - 1;
    }
    return ST_OK;
}

static NODISCARD status next_line(struct fe_copy_parser *p, bool last, struct arena *a,
                                  struct fe_copy_row *out, struct err *err)
{
    bytes line;
    if (p->header) {
        ST_TRY(take_line(p, last, out, &line, err));
        p->header = false;
        p->ended = bytes_eq(line, BYTES_LIT("\\."));
        if (p->ended)
            return ST_END;
    }
    if (p->marked && !last)
        return ST_NOT_FOUND;
    line = BYTES_EMPTY;
    size_t start = p->at;
    status st = take_line(p, last, out, &line, err);
    out->text = line; /* also of a quoted field without end */
    ST_TRY(st);
    if (bytes_eq(line, BYTES_LIT("\\."))) {
        p->ended = true;
        return ST_END;
    }
    if (p->kind == FE_COPY_TEXT) {
        out->text = BYTES_EMPTY;
        ST_TRY(cut_end_marker(p, &line, err));
        if (p->ended && !last) { /* PostgreSQL reads on to the end before it looks at this row */
            p->marked = true;
            p->ended = false;
            p->at = p->scanned = start;
            p->lines_before--;
            return ST_NOT_FOUND;
        }
        out->text = line;
        split_text(p, line, a, out);
        return ST_OK;
    }
    split_csv(p, line, a, out);
    return ST_OK;
}

/* -- binary ------------------------------------------------------------------------------------ */

static uint32_t load(const uint8_t *d, unsigned size)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < size; i++)
        v = v << 8 | d[i];
    return v;
}

static NODISCARD status skip_header(struct fe_copy_parser *p, bool last, struct err *err)
{
    size_t left = p->in.size - p->at;
    if (left < sizeof signature)
        return last ? bad(err, "COPY file signature not recognized") : ST_NOT_FOUND;
    const uint8_t *d = p->in.data + p->at;
    if (memcmp(d, signature, sizeof signature) != 0)
        return bad(err, "COPY file signature not recognized");
    if (left < sizeof signature + 4)
        return last ? bad(err, "invalid COPY file header (missing flags)") : ST_NOT_FOUND;
    uint32_t flags = load(d + 11, 4);
    if ((flags & 1u << 16) != 0)
        return bad(err, "invalid COPY file header (WITH OIDS)");
    if (flags >> 16 != 0)
        return bad(err, "unrecognized critical flags in COPY file header");
    if (left < sizeof signature + 8)
        return last ? bad(err, "invalid COPY file header (missing length)") : ST_NOT_FOUND;
    uint32_t extension = load(d + 15, 4);
    if (extension > HEADER_EXTENSION_MAX)
        return bad(err, "invalid COPY file header (wrong length)");
    if (left < sizeof signature + 8 + extension)
        return last ? bad(err, "invalid COPY file header (wrong length)") : ST_NOT_FOUND;
    p->at += sizeof signature + 8 + extension;
    p->signature_seen = true;
    return ST_OK;
}

static NODISCARD status after_end(const struct fe_copy_parser *p, struct err *err)
{
    return p->in.size > p->at ? bad(err, "received copy data after EOF marker") : ST_END;
}

/* Is the whole row there? Fills fields that point into the input. */
static NODISCARD status next_tuple(struct fe_copy_parser *p, bool last, struct arena *a,
                                   struct fe_copy_row *out, struct err *err)
{
    size_t left = p->in.size - p->at, i = 2;
    if (left == 0)
        return last ? ST_END : ST_NOT_FOUND;
    p->line = p->lines_before + 1; /* errors from here on are of this row */
    if (left < 2)
        return last ? bad(err, "unexpected EOF in COPY data") : ST_NOT_FOUND;
    const uint8_t *d = p->in.data + p->at;
    int16_t count = (int16_t)load(d, 2);
    if (count == -1) {
        p->ended = true;
        p->at += 2;
        return after_end(p, err);
    }
    if (count < 0)
        return bad(err, "invalid field count in COPY data");
    if (p->expected > 0 && (unsigned)count != p->expected)
        return err_set_state(err, ST_INVALID, "22P04", "row field count is %d, expected %u", count,
                             p->expected);
    out->count = (unsigned)count;
    out->fields = arena_alloc(a, sizeof(bytes) * (out->count + 1));
    out->nulls = arena_alloc(a, sizeof(bool) * (out->count + 1));
    for (unsigned f = 0; f < out->count; f++) {
        if (left - i < 4)
            return last ? bad(err, "unexpected EOF in COPY data") : ST_NOT_FOUND;
        int32_t size = (int32_t)load(d + i, 4);
        i += 4;
        if (size < -1 || size > (int32_t)FE_COPY_ROW_BYTES)
            return bad(err, "invalid field size");
        out->nulls[f] = size == -1;
        size_t n = size > 0 ? (size_t)size : 0;
        if (left - i < n)
            return last ? bad(err, "unexpected EOF in COPY data") : ST_NOT_FOUND;
        out->fields[f] = bytes_make(d + i, n);
        i += n;
    }
    out->text = BYTES_EMPTY;
    p->at += i;
    p->lines_before++;
    /* The input may move when more is fed. */
    for (unsigned f = 0; f < out->count; f++)
        out->fields[f] = arena_copy(a, out->fields[f]);
    return ST_OK;
}

static NODISCARD status next_binary(struct fe_copy_parser *p, bool last, struct arena *a,
                                    struct fe_copy_row *out, struct err *err)
{
    if (!p->signature_seen)
        ST_TRY(skip_header(p, last, err));
    /* Trying again from the row's start with every piece must stay cheap: wait until it has
     * doubled. */
    if (!last && p->in.size - p->at < p->wanted)
        return ST_NOT_FOUND;
    status st = next_tuple(p, last, a, out, err);
    size_t left = p->in.size - p->at;
    p->wanted = st == ST_NOT_FOUND && left > 4096 ? left * 2 : 0;
    return st;
}

status fe_copy_next(struct fe_copy_parser *p, bool last, struct arena *a, struct fe_copy_row *out,
                    struct err *err)
{
    if (p->ended)
        return p->kind == FE_COPY_BINARY ? after_end(p, err) : ST_END;
    return p->kind == FE_COPY_BINARY ? next_binary(p, last, a, out, err)
                                     : next_line(p, last, a, out, err);
}
