/*
 * frontend/copy_parse.c — text, csv and binary rows out of a stream.
 *
 * text    A row is a line. A backslash takes the next character with it, also a line end. A field
 *         that reads as the null text before escapes are undone is NULL. `\.` alone is the end.
 * csv     A row ends at a line end outside quotes. Only a field without quotes can be NULL.
 * binary  Signature, flags, extension; rows of a count and fields with lengths; count -1 is the
 * end.
 *
 * The first line end says whether lines end in LF or CR LF; after that the other is an error.
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
    if (p->ended && p->kind != FE_COPY_BINARY) /* there more is an error */
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

/* Where the current row's line end is; SIZE_MAX = not there yet. Counts lines inside quotes. */
static size_t find_line_end(struct fe_copy_parser *p)
{
    const uint8_t *d = p->in.data;
    size_t i = p->scanned;
    for (; i < p->in.size; i++) {
        char c = (char)d[i];
        if (p->kind == FE_COPY_TEXT && c == '\\') {
            if (i + 1 == p->in.size)
                break; /* the next byte decides */
            if (d[i + 1] == '\n')
                p->lines_before++;
            i++;
        } else if (p->kind == FE_COPY_CSV && p->quoted && c == p->escape && p->escape != p->quote) {
            if (i + 1 == p->in.size)
                break;
            if ((char)d[i + 1] == p->quote || (char)d[i + 1] == p->escape)
                i++;
        } else if (p->kind == FE_COPY_CSV && c == p->quote) {
            p->quoted = !p->quoted;
        } else if (c == '\n' && p->quoted) {
            p->lines_before++;
        } else if (c == '\n') {
            p->scanned = i;
            return i;
        }
    }
    p->scanned = i;
    return SIZE_MAX;
}

/* The line without its end; the first one teaches which end lines have. */
static NODISCARD status cut_line_end(struct fe_copy_parser *p, bytes *line, struct err *err)
{
    bool cr = line->size > 0 && line->data[line->size - 1] == '\r';
    if (!p->eol_known) {
        p->eol_known = true;
        p->crlf = cr;
    }
    if (p->crlf && cr)
        line->size--;
    else if (p->crlf)
        return bad(err, "literal newline found in data");
    return ST_OK;
}

static NODISCARD status take_line(struct fe_copy_parser *p, bool last, bytes *line, struct err *err)
{
    size_t end = find_line_end(p);
    if (end == SIZE_MAX && p->in.size - p->at > FE_COPY_ROW_BYTES)
        return err_set(err, ST_LIMIT, "a row of COPY is longer than %u bytes", FE_COPY_ROW_BYTES);
    if (end == SIZE_MAX && !last)
        return ST_NOT_FOUND;
    if (end == SIZE_MAX && p->at == p->in.size)
        return ST_END;
    size_t stop = end == SIZE_MAX ? p->in.size : end;
    *line = bytes_make(p->in.data + p->at, stop - p->at);
    p->line = ++p->lines_before;
    bool unterminated = p->quoted;
    p->quoted = false;
    p->at = p->scanned = end == SIZE_MAX ? stop : stop + 1;
    if (unterminated)
        return bad(err, "unterminated CSV quoted field");
    if (end != SIZE_MAX)
        return cut_line_end(p, line, err);
    /* A last line without an end may still have its CR. */
    if (p->eol_known && p->crlf && line->size > 0 && line->data[line->size - 1] == '\r')
        line->size--;
    return ST_OK;
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

static NODISCARD status split_text(const struct fe_copy_parser *p, bytes line, struct arena *a,
                                   struct fe_copy_row *out, struct err *err)
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
            if (line.data[i] == '\r' && !p->crlf)
                return bad(err, "literal carriage return found in data");
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
    return ST_OK;
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
        ST_TRY(take_line(p, last, &line, err));
        p->header = false;
    }
    line = BYTES_EMPTY;
    status st = take_line(p, last, &line, err);
    if (st == ST_OK || p->kind == FE_COPY_CSV)
        out->text = line;
    ST_TRY(st);
    if (bytes_eq(line, BYTES_LIT("\\."))) {
        p->ended = true;
        return ST_END;
    }
    if (p->kind == FE_COPY_TEXT) {
        ST_TRY(cut_end_marker(p, &line, err));
        out->text = line;
        return split_text(p, line, a, out, err);
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
    if (left == 0)
        return last ? bad(err, "COPY file signature not recognized") : ST_NOT_FOUND;
    const uint8_t *d = p->in.data + p->at;
    size_t known = left < sizeof signature ? left : sizeof signature;
    if (memcmp(d, signature, known) != 0)
        return bad(err, "COPY file signature not recognized");
    if (left < sizeof signature + 8)
        return last ? bad(err, "COPY file signature not recognized") : ST_NOT_FOUND;
    if (load(d + 11, 4) != 0)
        return bad(err, "unrecognized critical flags in COPY file header");
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
