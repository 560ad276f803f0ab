"""Sequences that once differed from PostgreSQL's, played before those that are drawn: (name, steps)."""
from sequences import (bind, copy_data, copy_done, copy_fail, describe, execute, function_call, parse, query, raw, sync,
                       terminate)

COPY = "COPY kv (key, value) FROM STDIN"
CSV = COPY + " WITH (FORMAT csv)"
TWICE = copy_data(b"c1\ta\nc1\tb\n")
LIST = "SELECT key FROM kv WHERE key LIKE 'k%' ORDER BY key"


def copying(name, sql, data, *after):
    return "copy: " + name, [query(sql), copy_data(data)] + list(after or [copy_done()])


def line_ends():
    return [
        copying("backslash and LF are one line", COPY, b"c1\ta\\\nb\nc2\n"),
        copying("LF in quotes, first line", CSV, b'"c9\n",line\n', query("SELECT 1")),
        copying("LF in quotes, later", CSV, b'c0,x\n"c9\n",line\nc8\n'),
        copying("CR in quotes", CSV, b'"c9\r",line\nc8\n'),
        copying("CR LF in quotes", CSV, b'c0,x\r\n"c9\r\n",line\r\nc8\r\n'),
        copying("CR alone", COPY, b"c9\tline\rc8\tx\r"),
        copying("CR alone, csv", CSV, b"c9,line\rc8\r"),
        copying("LF behind CR", COPY, b"c9\tline\rc8\tx\n"),
        copying("LF behind CR, csv", CSV, b"c9,line\rc8,x\n"),
        copying("CR behind LF", COPY, b"c9\tline\nc8\tx\r"),
        copying("CR behind LF, csv", CSV, b"c9,line\nc8,x\rc7,g\n"),
        copying("CR LF behind LF", COPY, b"c9\tline\nc8\tx\r\n"),
        copying("LF behind CR LF", COPY, b"c9\tline\r\nc8\tx\n"),
        copying("LF behind CR LF, csv", CSV, b"c9,line\r\nc8,x\n"),
        copying("CR behind CR LF, csv", CSV, b"c9,line\r\nc8,x\rc7,g\n"),
    ]


def wrong_rows():
    """What is wrong with a row comes ahead of whatever comes behind it."""
    extended = [parse("", COPY), bind("", ""), execute(""), TWICE]
    return [
        ("copy: a bad row behind", [query(COPY), TWICE, copy_data(b"c2\n"), copy_done()]),
        ("copy: CopyFail behind", [query(COPY), TWICE, copy_fail("x")]),
        ("copy: Query behind", [query(COPY), TWICE, query("SELECT 1"), copy_done()]),
        ("copy: Terminate behind", [query(COPY), TWICE, terminate()]),
        ("copy: unknown behind", [query(COPY), TWICE, raw("unknown type y", "y")]),
        ("copy: Sync behind", [query(COPY), TWICE, sync(), copy_done(), query("SELECT 1")]),
        ("copy: Sync between", [query(COPY), copy_data(b"c1\ta\n"), sync(), copy_data(b"c1\tb\n"), sync(), copy_done(), query("SELECT 1")]),
        ("copy: Sync behind, all well", [query(COPY), copy_data(b"c1\ta\nc2\tb\n"), sync(), copy_data(b"c3\tc\n"), copy_done()]),
        ("copy: extended, Sync behind", extended + [sync(), copy_done(), sync(), query("SELECT 1")]),
        ("copy: extended, FunctionCall behind", extended + [function_call(), copy_done(), sync(), query("SELECT 1")]),
        ("copy: in a block", [query("BEGIN"), query(COPY), TWICE, query("COMMIT"), copy_done(), query("SELECT 1")]),
        ("copy: in a block, CopyFail", [query("BEGIN"), query(COPY), copy_data(b"c1\ta\n"), copy_fail("x"), query("COMMIT")]),
        ("copy: one of several", [query(COPY + "; SELECT 1"), TWICE, query("SELECT 1"), copy_done()]),
        ("copy: the key is there", [query(COPY), copy_data(b"c1\ta\nk1\tb\n"), parse("", "SELECT 1"), copy_done(), sync()]),
    ]


def chained():
    """What a chained transaction takes over."""
    out = []
    shown = query("SHOW transaction_read_only; SHOW transaction_isolation")
    begin = query("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY")
    for end in ("ROLLBACK AND CHAIN", "COMMIT AND CHAIN"):
        for name, between in (("", []), ("failed, ", [query("SELECT nosuch FROM kv")]),
                              ("failed behind a savepoint, ", [query("SAVEPOINT s1"), query("SELECT nosuch FROM kv")])):
            out.append(("chained: " + name + end, [begin] + between + [query(end), shown, query("ROLLBACK")]))
    return out


def lent_rows():
    """Describe of an EXECUTE whose statement is gone: an error where rows were promised."""
    out = []
    for sql, lends in (("SELECT key FROM kv WHERE key = 'k1'", True), ("DELETE FROM kv WHERE key = 'k1'", False)):
        made = [query("PREPARE e AS " + sql), query("BEGIN"), parse("s", "EXECUTE e"), bind("p", "s"), sync(), query("DEALLOCATE e")]
        out.append(("lent: portal of " + sql, made + [describe("P", "p"), sync(), query("ROLLBACK")]))
        out.append(("lent: statement of " + sql, made + [describe("S", "s"), sync(), query("ROLLBACK")]))
        out.append(("lent: executed, of " + sql, made + [execute("p"), sync(), query("ROLLBACK")]))
    return out


def left_by_a_query():
    """What stands under the unnamed portal's name when a Query of a block has failed."""
    return [("left: " + sql, [query("BEGIN"), query(sql), execute(""), sync(), query("ROLLBACK")])
            for sql in ("RELEASE nosuch", "SELECT nosuch FROM kv", "SELECT 1", "SELECT 1; RELEASE nosuch; SELECT 2")]


def copied_until_sync():
    """What Execute copied in is committed at Sync, with all else that came before it."""
    copied = [parse("", COPY), bind("", ""), execute(""), copy_data(b"c1\ta\nc2\tb\n"), copy_done()]
    bad = [parse("", "SELECT nosuch FROM kv WHERE key = 'k1'"), bind("", ""), execute("")]
    good = [parse("", "SELECT value FROM kv WHERE key = 'c1'"), bind("", ""), execute("")]
    insert = [parse("", "INSERT INTO kv (key) VALUES ('c3')"), bind("", ""), execute("")]
    return [
        ("copied: Sync", copied + [sync(), query(LIST)]),
        ("copied: read before Sync", copied + good + [sync(), query("SELECT 1")]),
        ("copied: an error before Sync", copied + bad + [sync(), query("SELECT 1")]),
        ("copied: a write before, an error behind", insert + copied + bad + [sync()]),
        ("copied: a write behind", copied + insert + [sync()]),
        ("copied: twice", copied + copied + [sync()]),
        ("copied: Query behind", copied + [query("SELECT 1"), sync()]),
        ("copied: in a block", [query("BEGIN")] + copied + [sync(), query("ROLLBACK")]),
    ]


def executed_again():
    """What is no query but gives rows runs once, whatever limits Execute has."""
    out = []
    for limits in ((0, 0), (1, 1, 0), (1, 0), (2, 2, 2), (5, 1)):
        again = [execute("", n) for n in limits] + [sync(), query("COMMIT")]
        for inner in (LIST, "SELECT 1", "INSERT INTO kv (key) VALUES ('n1') RETURNING key", "INSERT INTO kv (key) VALUES ('n1')",
                      "UPDATE kv SET value = 'x' WHERE key = 'k1'", "DELETE FROM kv WHERE key IN ('k1', 'k2', 'k3') RETURNING key"):
            out.append(("again: EXECUTE of %s %s" % (inner, limits),
                        [query("PREPARE q AS " + inner), query("BEGIN"), parse("", "EXECUTE q"), bind("", ""), describe("P", "")] + again))
        out.append(("again: SHOW %s" % (limits,), [query("BEGIN"), parse("", "SHOW server_encoding"), bind("", "")] + again))
        out.append(("again: FETCH %s" % (limits,), [query("BEGIN"), query("DECLARE c CURSOR FOR " + LIST), parse("", "FETCH 3 FROM c"),
                                                    bind("", "")] + again[:-1] + [query("FETCH 1 FROM c"), query("COMMIT")]))
    out.append(("again: DEALLOCATE between", [query("PREPARE q AS " + LIST), query("BEGIN"), parse("", "EXECUTE q"), bind("p1", ""),
                                              execute("p1", 2), sync(), query("DEALLOCATE q"), execute("p1", 0), sync()]))
    out.append(("again: CLOSE between", [query("BEGIN"), query("DECLARE c CURSOR FOR " + LIST), parse("", "FETCH 3 FROM c"), bind("p1", ""),
                                         execute("p1", 2), sync(), query("CLOSE c"), execute("p1", 0), sync()]))
    return out


def said_at_parse():
    return [("parse: no such cast", [parse("", sql), sync(), query(sql)])
            for sql in ("SELECT 'x'::bytea::int4", "SELECT 1::int8::bytea", "SELECT true::float8")]


def various():
    return [
        ("bind: the cursor exists, and the formats are wrong",
         [parse("", "SELECT 1"), bind("p1", ""), bind("p1", "", results=(0, 0)), sync()]),
        ("bind: a failed one in a block leaves its portal",
         [query("BEGIN"), parse("", LIST), bind("p1", "", results=(0, 0)), sync(), execute("p1"), sync(), describe("P", "p1"), sync(),
          query("ROLLBACK"), execute("p1"), sync()]),
        ("bind: a bad value inside a cast", [parse("", "SELECT 99999::int2"), sync(), bind("", ""), sync(), query("SELECT 99999::int2")]),
        ("bind: a bad value ahead of wrong formats", [parse("", "SELECT 99999::int2"), bind("", "", results=(0, 0)), sync()]),
        ("bind: a bad value of a parameter", [parse("", "SELECT $1::int8::int2"), bind("", "", [b"99999"]), execute(""), sync()]),
        ("FOR UPDATE in a read-only transaction, bound",
         [query("BEGIN READ ONLY"), parse("", "SELECT key FROM kv WHERE key = 'k1' FOR UPDATE"), bind("", "", results=(0, 0)), sync()]),
        ("too much of a binary parameter", [parse("", "SELECT $1::bool"), bind("", "", [b"abc"], (1,)), sync()]),
        ("FOR UPDATE in a read-only transaction", [query("BEGIN READ ONLY"), query("SELECT key FROM kv WHERE key = 'k1' FOR UPDATE")]),
        ("DISCARD ALL in several statements behind a pipeline",
         [parse("", "SELECT 1"), bind("", ""), execute(""), query("SELECT 1; DISCARD ALL")]),
        ("EXECUTE with more than nothing", [query("PREPARE q AS SELECT 1"), query("EXECUTE q (1, 2)")]),
        ("a function that fails when it runs", [query("SELECT current_setting('nosetting')")]),
        ("a position inside DECLARE", [query("BEGIN"), query("DECLARE c CURSOR FOR SELECT * FROM nothere")]),
        ("bytes that are no characters, in a later statement", [query("SELECT 1; SELECT E'\\xff'")]),
        ("COPY of nothing is found out when it runs",
         [parse("", "COPY nothere FROM STDIN"), describe("S", ""), bind("", ""), describe("P", ""), sync(), execute(""), sync()]),
        ("a bad result format without rows", [parse("", "SELECT key FROM kv WHERE key = 'none'"), bind("", "", results=(7,)), execute(""), sync()]),
        ("a bad result format with rows", [parse("", LIST), bind("", "", results=(7,)), describe("P", ""), execute("", 2), sync()]),
        copying("bad bytes ahead of a bad line end", COPY, b"c1\ta\n\xff\r\n"),
        copying("a bad value ahead of a missing one", "COPY meta (pid, name, id) FROM STDIN", b"x\n"),
        copying("a bad value behind a missing one", "COPY meta (pid, name, id) FROM STDIN", b"\\N\ta\tx\n"),
        copying("a wrong end marker ahead of a wrong line end", COPY, b"c1\ta\r\n\\.c2\n"),
        copying("a header with an open quote", COPY + " (FORMAT csv, HEADER)", b'"x\nc1,a\n'),
        copying("an end marker in place of the header", COPY + " (FORMAT csv, HEADER)", b"\\.\nx\n"),
        copying("an end marker with another line end, csv", CSV, b"c1,a\n\\.\r\n"),
        copying("CR as the last that came", CSV, b"c1,a\nc2\r", query("SELECT 1")),
        copying("a short signature", COPY + " (FORMAT binary)", b"junk", query("SELECT 1")),
        copying("a signature without flags", COPY + " (FORMAT binary)", b"PGCOPY\n\xff\r\n\0\0"),
        copying("a signature without a length", COPY + " (FORMAT binary)", b"PGCOPY\n\xff\r\n\0\0\0\0\0\0"),
        copying("flags of OIDs", COPY + " (FORMAT binary)", b"PGCOPY\n\xff\r\n\0\0\1\0\0\0\0\0\0"),
        copying("a bad row at the end marker, with more behind", COPY, b"a\tb\tc\\.\n", query("SELECT 1")),
        copying("a bad row at the end marker", COPY, b"a\tb\tc\\.\n"),
        ("a bad argument of EXECUTE", [query("PREPARE q (int8) AS SELECT $1"), query("EXECUTE q ('a')")]),
        ("arguments of EXECUTE that do not fit",
         [query("PREPARE q (int2) AS SELECT $1"), query("EXECUTE q (99999)"), query("EXECUTE q ('\\x00'::bytea)"), query("EXECUTE q (true)")]),
        copying("a wrong end marker", COPY, b"c1\ta\n\\.c2\n"),
    ]


PINNED = line_ends() + wrong_rows() + copied_until_sync() + lent_rows() + chained() + left_by_a_query() + executed_again() + said_at_parse() + various()
