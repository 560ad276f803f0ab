/*
 * COPY's formats taken apart. Every input is fed whole, and cut at every place: the rows must be
 * the same.
 */
#include "frontend/copy_parse.h"
#include "lib/test.h"

/* Appends a row as text: fields in brackets, NULL as <>. */
static void print_row(struct obuf *out, const struct fe_copy_row *row)
{
    for (unsigned i = 0; i < row->count; i++) {
        obuf_u8(out, row->nulls[i] ? '<' : '[');
        obuf_put(out, row->fields[i].data, row->fields[i].size);
        obuf_u8(out, row->nulls[i] ? '>' : ']');
    }
    obuf_u8(out, ';');
}

static status drain(struct fe_copy_parser *p, bool last, struct arena *a, struct obuf *out,
                    struct err *err)
{
    struct fe_copy_row row;
    status st;
    while ((st = fe_copy_next(p, last, a, &row, err)) == ST_OK)
        print_row(out, &row);
    return st;
}

struct setup {
    enum fe_copy_kind kind;
    char delimiter;
    const char *null_text;
    bool header;
};

/* The rows of DATA fed in two pieces, the first of CUT bytes; an error as its SQLSTATE and line. */
static void rows_of(const struct setup *s, bytes data, size_t cut, struct obuf *out)
{
    struct fe_copy_parser p;
    struct arena a;
    struct err err;
    arena_init(&a, 1024);
    fe_copy_parser_init(&p, s->kind);
    if (s->delimiter != '\0')
        p.delimiter = s->delimiter;
    if (s->null_text != NULL)
        p.null_text = s->null_text;
    p.header = s->header;
    fe_copy_feed(&p, bytes_make(data.data, cut));
    status st = drain(&p, false, &a, out, &err);
    if (st == ST_NOT_FOUND || st == ST_END) {
        fe_copy_feed(&p, bytes_make(data.data + cut, data.size - cut));
        st = drain(&p, true, &a, out, &err);
    }
    if (st != ST_END) {
        char text[32];
        int n = snprintf(text, sizeof text, "%s@%u", err.sqlstate, (unsigned)p.line);
        obuf_put(out, text, (size_t)n);
    }
    fe_copy_parser_fini(&p);
    arena_fini(&a);
}

static void check(const struct setup *s, bytes data, const char *want)
{
    for (size_t cut = 0; cut <= data.size; cut++) {
        struct obuf out;
        obuf_init(&out);
        rows_of(s, data, cut, &out);
        obuf_u8(&out, 0);
        assert_string_equal((const char *)out.data, want);
        obuf_fini(&out);
    }
}

#define CHECK(setup, text, want) check(&(setup), BYTES_LIT(text), want)

static const struct setup text = {.kind = FE_COPY_TEXT}, csv = {.kind = FE_COPY_CSV};

static void text_rows_are_lines(void **state)
{
    (void)state;
    CHECK(text, "", "");
    CHECK(text, "a\tb\nc\td\n", "[a][b];[c][d];");
    CHECK(text, "a\tb", "[a][b];");
    CHECK(text, "\n", "[];");
    CHECK(text, "a\t\n", "[a][];");
    const struct setup bar = {.kind = FE_COPY_TEXT, .delimiter = '|', .null_text = "nil"};
    CHECK(bar, "a|nil\n", "[a]<>;");
}

static void text_escapes_are_undone(void **state)
{
    (void)state;
    CHECK(text, "\\N\t\\\\N\n", "<>[\\N];");
    CHECK(text, "a\\tb\\nc\\101\\x42\\q\n", "[a\tb\ncABq];");
    CHECK(text, "a\\\tb\n", "[a\tb];");
    CHECK(text, "a\\\nb\n", "[a\nb];");
    CHECK(text, "\\x4\\1011\\xzz\n",
          "[\x04"
          "A1xzz];");
    CHECK(text, "\\b\\f\\v\\r\n", "[\b\f\v\r];");
    CHECK(text, "x\\", "[x\\];");
}

static void backslash_dot_ends_the_data(void **state)
{
    (void)state;
    CHECK(text, "a\n\\.\nb\n", "[a];");
    CHECK(text, "a\n\\.", "[a];");
    CHECK(csv, "a\n\\.\nb\n", "[a];");
}

static void line_ends_are_all_of_one_kind(void **state)
{
    (void)state;
    CHECK(text, "a\r\nb\r\n", "[a];[b];");
    CHECK(text, "a\r\nb\n", "[a];22P04@2");
    CHECK(text, "a\nb\r\n", "[a];22P04@2");
    CHECK(csv, "a,b\r\nc,d\r\n", "[a][b];[c][d];");
    CHECK(text, "a\rb\r", "[a];[b];");
    CHECK(text, "a\rb\n", "[a];22P04@2");
    CHECK(text, "a\r\nb\r", "[a];22P04@2");
    CHECK(text, "a\\\rb\nc\n", "[a\rb];[c];");
    CHECK(csv, "a\nb\rc\n", "[a];22P04@2");
    CHECK(csv, "a\r\n\"b\nc\rd\"\r\n", "[a];[b\nc\rd];");
}

static void csv_quotes_protect(void **state)
{
    (void)state;
    CHECK(csv, "1,\"co,mma\",\"qu\"\"ote\"\n", "[1][co,mma][qu\"ote];");
    CHECK(csv, "\"new\nline\",2\n", "[new\nline][2];");
    CHECK(csv, ",\"\", x \n", "<>[][ x ];");
    CHECK(csv, "a\"b,c\"d,e\n", "[ab,cd][e];");
    CHECK(csv, "\"open\n", "22P04@1");
    const struct setup other = {
        .kind = FE_COPY_CSV, .delimiter = '|', .null_text = "nil", .header = true};
    CHECK(other, "x|y\na|nil\n", "[a]<>;");
}

/* Which line a row of DATA ends in, for each of them. */
static void lines_are(bytes data, const unsigned *lines, unsigned count)
{
    struct fe_copy_parser p;
    struct fe_copy_row row;
    struct arena a;
    arena_init(&a, 256);
    fe_copy_parser_init(&p, FE_COPY_CSV);
    fe_copy_feed(&p, data);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(fe_copy_next(&p, true, &a, &row, NULL), ST_OK);
        assert_int_equal(p.line, lines[i]);
    }
    assert_int_equal(fe_copy_next(&p, true, &a, &row, NULL), ST_END);
    fe_copy_parser_fini(&p);
    arena_fini(&a);
}

/* As PostgreSQL counts them: it takes CR for a line end until it knows better. */
static void lines_inside_quotes_count(void **state)
{
    (void)state;
    lines_are(BYTES_LIT("\"a\nb\"\nc\n\"d\ne\"\n"), (const unsigned[]){1, 2, 4}, 3);
    lines_are(BYTES_LIT("\"a\rb\"\nc\n\"d\re\"\n"), (const unsigned[]){2, 3, 4}, 3);
    lines_are(BYTES_LIT("a\r\n\"b\nc\"\r\n\"d\re\"\r\n"), (const unsigned[]){1, 2, 4}, 3);
}

#define SIGNATURE "PGCOPY\n\377\r\n\0"
#define HEADER SIGNATURE "\0\0\0\0\0\0\0\0"

static void binary_tuples_have_lengths(void **state)
{
    (void)state;
    const struct setup binary = {.kind = FE_COPY_BINARY};
    CHECK(binary, HEADER "\0\2\0\0\0\2ab\377\377\377\377\0\1\0\0\0\0\377\377", "[ab]<>;[];");
    CHECK(binary, HEADER "\377\377junk", "22P04@1");
    CHECK(binary, HEADER "\0\1\0\0\0\1a", "[a];");
    CHECK(binary, SIGNATURE "\0\0\0\0\0\0\0\2xx\377\377", "");
    CHECK(binary, "PGCOPX\n", "22P04@0");
    CHECK(binary, SIGNATURE "\0\1\0\0\0\0\0\0", "22P04@0");
    CHECK(binary, HEADER "\0\1\0\0\0\5ab", "22P04@1");
    CHECK(binary, HEADER "\0\1\377\377\377\376", "22P04@1");
    CHECK(binary, HEADER "\200\0", "22P04@1");
}

static void row_without_an_end_is_bounded(void **state)
{
    (void)state;
    struct fe_copy_parser p;
    struct fe_copy_row row;
    struct arena a;
    struct err err;
    static uint8_t block[1 << 20];
    arena_init(&a, 256);
    memset(block, 'x', sizeof block);
    fe_copy_parser_init(&p, FE_COPY_TEXT);
    status st = ST_NOT_FOUND;
    unsigned fed = 0;
    for (; st == ST_NOT_FOUND && fed < 20; fed++) {
        fe_copy_feed(&p, bytes_make(block, sizeof block));
        st = fe_copy_next(&p, false, &a, &row, &err);
    }
    assert_int_equal(st, ST_LIMIT);
    assert_int_equal(fed, FE_COPY_ROW_BYTES / sizeof block + 1);
    fe_copy_parser_fini(&p);
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_rows_are_lines),
        cmocka_unit_test(text_escapes_are_undone),
        cmocka_unit_test(backslash_dot_ends_the_data),
        cmocka_unit_test(line_ends_are_all_of_one_kind),
        cmocka_unit_test(csv_quotes_protect),
        cmocka_unit_test(lines_inside_quotes_count),
        cmocka_unit_test(binary_tuples_have_lengths),
        cmocka_unit_test(row_without_an_end_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
