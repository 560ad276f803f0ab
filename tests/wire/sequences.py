"""Sequences of messages drawn from a seed, of statements that metadb and PostgreSQL both support.

A sequence is a list of steps; a step is (text for people, bytes, wait). WAIT says whether a client that
goes step by step may expect a ReadyForQuery or a CopyInResponse for it.
"""
import random
import struct

INT2, INT4, INT8, TEXT, VARCHAR, BYTEA, BOOL, UNKNOWN = 21, 23, 20, 25, 1043, 17, 16, 705


def frame(kind, body=b""):
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def text(s):
    return s.encode() + b"\0" if isinstance(s, str) else s + b"\0"


class Step:
    def __init__(self, label, data, kind):
        self.label, self.data, self.kind = label, data, kind

    def __str__(self):
        return self.label


def query(sql):
    return Step("Query %r" % sql, frame("Q", text(sql)), "Q")


def parse(name, sql, types=()):
    body = text(name) + text(sql) + struct.pack("!H", len(types)) + b"".join(struct.pack("!I", t) for t in types)
    return Step("Parse %r %r %s" % (name, sql, list(types)), frame("P", body), "P")


def bind(portal, name, params=(), formats=(), results=()):
    body = text(portal) + text(name) + struct.pack("!H", len(formats)) + b"".join(struct.pack("!h", f) for f in formats)
    body += struct.pack("!H", len(params))
    for p in params:
        body += struct.pack("!i", -1) if p is None else struct.pack("!i", len(p)) + p
    body += struct.pack("!H", len(results)) + b"".join(struct.pack("!h", f) for f in results)
    return Step("Bind %r %r %s formats=%s results=%s" % (portal, name, list(params), list(formats), list(results)), frame("B", body), "B")


def describe(kind, name):
    return Step("Describe %s %r" % (kind, name), frame("D", kind.encode() + text(name)), "D")


def execute(portal, limit=0):
    return Step("Execute %r %d" % (portal, limit), frame("E", text(portal) + struct.pack("!i", limit)), "E")


def close(kind, name):
    return Step("Close %s %r" % (kind, name), frame("C", kind.encode() + text(name)), "C")


def raw(label, kind, body=b""):
    return Step(label, frame(kind, body), kind)


def sync():
    return raw("Sync", "S")


def flush():
    return raw("Flush", "H")


def copy_data(data):
    return raw("CopyData %r" % data, "d", data)


def copy_done():
    return raw("CopyDone", "c")


def copy_fail(why):
    return raw("CopyFail %r" % why, "f", text(why))


def function_call():
    return raw("FunctionCall", "F", struct.pack("!IHHH", 4000000000, 0, 0, 0))


def terminate():
    return raw("Terminate", "X")


# -- statements ----------------------------------------------------------------------------------

KEYS = ["k1", "k2", "k3", "k9", "n1", "n2"]

# Without parameters; with rows.
READS = [
    "SELECT 1", "SELECT 'x'", "SELECT NULL", "SELECT true AS yes", "SELECT 1 AS a, 'b' AS b, 2", "SELECT 1::int8",
    "SELECT 'x'::text", "select current_schema()", "SELECT current_database()", "SELECT current_user",
    "SELECT '\\x00ff'::bytea", "SELECT -1", "SELECT 9223372036854775807", "SELECT 2147483648", "SELECT 1.5",
    "SELECT key, value FROM kv WHERE key = 'k1'", "SELECT value FROM kv WHERE key = 'none'",
    "SELECT * FROM kv WHERE key = 'k2'", "SELECT key FROM kv WHERE key >= 'k' AND key < 'l' ORDER BY key",
    "SELECT key, value FROM kv WHERE key LIKE 'k%' ORDER BY key", "SELECT key FROM kv WHERE key LIKE 'k%' ORDER BY key LIMIT 2",
    "SELECT key FROM kv WHERE key LIKE 'k%' ORDER BY key LIMIT 0", "SELECT key FROM kv WHERE key LIKE 'k%' ORDER BY key DESC LIMIT 3",
    "SELECT key AS a, key AS b FROM kv WHERE key = 'k1'", "SELECT k.key FROM kv k WHERE k.key = 'k1'",
    "SELECT 7 FROM kv WHERE key = 'k1'", "SELECT name, size, mode FROM meta WHERE pid = 100 AND name = 'f1'",
    "SELECT name, id, type FROM meta WHERE pid = 100 AND name > 'f' AND name < 'g' ORDER BY name",
    "SELECT count(*) FROM meta WHERE pid = 100 AND name >= 'f' AND name < 'g'",
    "SELECT size, uid, class FROM meta WHERE pid = 100 AND name = 'f2'",
    "SELECT key, size, etag FROM object WHERE bucket = 'b' AND key = 'o1'",
    "SELECT bucket, key FROM object WHERE bucket = 'b' AND key >= 'a' AND key < 'z' ORDER BY key",
    "SELECT 1::int2", "SELECT 1.5::float8", "SELECT 1e10", "SELECT 'NaN'::float8", "SELECT '2024-01-02'::date", "SELECT false::int4",
    "SELECT '2024-01-02 03:04:05.678+02'::timestamptz", "SELECT '2024-01-02 03:04:05'::timestamp", "SELECT '{1,2,NULL}'::int4[]",
    "SELECT '{a,\"b c\",NULL}'::text[]", "SELECT 'a'::\"char\"", "SELECT 'abc'::varchar(2)", "SELECT 12::text", "SELECT '12'::int4::int8",
    "SELECT 1.6::int4", "SELECT NULL::bytea", "SELECT 1 AS \"select\", 2 AS \"A b\"", "SELECT 'it''s', E'a\\nb'", "SELECT -9223372036854775808",
    "SELECT current_setting('server_encoding')", "SELECT set_config('application_name', 'set', false)", "SELECT session_user, user",
    "SELECT quote_literal('a''b')", "SELECT current_setting('nosetting', true)", "SELECT pg_catalog.current_database()",
    "SELECT name, id FROM meta WHERE pid = 100 AND name = 'none'",
    "SELECT name FROM meta WHERE pid = 100 AND name IN ('f1', 'f3', 'x') ORDER BY name", "SELECT count(*) FROM kv WHERE key LIKE 'k%'",
    "SELECT name, size FROM meta WHERE pid = 100 AND name >= 'f' AND name < 'g' ORDER BY name DESC LIMIT 2",
    "SELECT key FROM object WHERE bucket = 'b' AND key LIKE 'o%' ORDER BY key LIMIT 2",
    "SHOW server_encoding", "SHOW standard_conforming_strings", "SHOW transaction_isolation", "SHOW TRANSACTION ISOLATION LEVEL",
    "SHOW DateStyle", "SHOW TimeZone", "SHOW application_name", "SHOW client_min_messages", "SHOW transaction_read_only",
    "SHOW search_path", "SHOW statement_timeout", "SHOW bytea_output", "SHOW extra_float_digits",
]

# Of table kv: a transaction writes to one table.
WRITES = [
    "INSERT INTO kv (key, value) VALUES ('n1', 'new')", "INSERT INTO kv (key, value) VALUES ('n1', 'a'), ('n2', 'b')",
    "INSERT INTO kv (key, value) VALUES ('n3', 'x') RETURNING key, value", "INSERT INTO kv (key) VALUES ('n4')",
    "INSERT INTO kv (key, value) VALUES ('k1', 'x') ON CONFLICT DO NOTHING",
    "INSERT INTO kv (key, value) VALUES ('k1', 'up') ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    "INSERT INTO kv (key, value) VALUES ('n1', 'r1'), ('n2', 'r2'), ('n5', 'r3') RETURNING key",
    "UPDATE kv SET value = 'u' WHERE key = 'k1'", "UPDATE kv SET value = 'u' WHERE key = 'none'",
    "UPDATE kv SET value = NULL WHERE key = 'k2' RETURNING key, value", "DELETE FROM kv WHERE key = 'k3'",
    "DELETE FROM kv WHERE key = 'none'", "DELETE FROM kv WHERE key = 'k1' RETURNING key, value",
    "DELETE FROM kv WHERE key IN ('k1', 'k2')", "DELETE FROM kv WHERE key >= 'k2' AND key < 'k4'",
    "UPDATE kv SET expires_at = '2099-01-02 03:04:05+00' WHERE key = 'k1' RETURNING expires_at",
    "SELECT key FROM kv WHERE key = 'k1' FOR UPDATE",
]
META_WRITES = [
    "INSERT INTO meta (pid, name, id) VALUES (100, 'g1', 2001)", "INSERT INTO meta (pid, name, id, size) VALUES (100, 'f1', 2002, 1)",
    "INSERT INTO meta (pid, name, id, mode) VALUES (100, 'g2', 2003, 384) RETURNING name, id, mode, type",
    "UPDATE meta SET size = 99 WHERE pid = 100 AND name = 'f1'", "UPDATE meta SET size = size + 1 WHERE pid = 100 AND name = 'f2' RETURNING size",
    "UPDATE meta SET size = greatest(size, 15) WHERE pid = 100 AND name = 'f1' RETURNING size",
    "DELETE FROM meta WHERE pid = 100 AND name = 'f3'", "DELETE FROM meta WHERE pid = 100 AND name = 'f3' RETURNING id",
    "UPDATE meta SET name = 'h1' WHERE pid = 100 AND name = 'f1'", "UPDATE meta SET name = 'f2' WHERE pid = 100 AND name = 'f1'",
]
OBJECT_WRITES = [
    "INSERT INTO object (bucket, key, size) VALUES ('b', 'p1', 1)", "INSERT INTO object (bucket, key, size) VALUES ('b', 'o1', 1)",
    "INSERT INTO object (bucket, key, size, etag) VALUES ('b', 'o1', 5, 'z') ON CONFLICT (bucket, key) DO UPDATE SET"
    " size = excluded.size, etag = excluded.etag RETURNING size, etag",
    "UPDATE object SET size = 3 WHERE bucket = 'b' AND key = 'o2'", "DELETE FROM object WHERE bucket = 'b' AND key = 'o3'",
]

BAD = [
    "SELEC 1", "SELECT", "SELECT * FROM", "SELECT 'unterminated", "SELECT (1", ")", "SELECT 1 FROM kv WHERE", "SELECT * FROM nothere",
    "SELECT nocolumn FROM kv WHERE key = 'k1'", "SELECT key FROM kv WHERE nocolumn = 'k1'", "SELECT nofunction(1)",
    "INSERT INTO kv (key, value) VALUES ('k1', 'dup')", "INSERT INTO kv (key, value) VALUES ('n1', 'a'), ('n1', 'b')",
    "INSERT INTO kv (key, nocolumn) VALUES ('n1', 'a')", "INSERT INTO nothere (key) VALUES ('n1')",
    "INSERT INTO kv (key, value) VALUES ('n1')", "INSERT INTO kv (key) VALUES ('n1', 'a')", "INSERT INTO kv (key, key) VALUES ('n1', 'a')",
    "INSERT INTO kv (key, value) VALUES (NULL, 'a')", "INSERT INTO kv (value) VALUES ('a')", "UPDATE kv SET nocolumn = 1 WHERE key = 'k1'",
    "UPDATE nothere SET a = 1 WHERE b = 2", "DELETE FROM nothere WHERE a = 1", "SELECT name FROM meta WHERE pid = 'abc' AND name = 'x'",
    "SELECT name FROM meta WHERE pid = 99999999999999999999 AND name = 'f1'", "SELECT 'abc'::int4", "SELECT '99999999999'::int4",
    "SELECT 1::notype", "SELECT key FROM kv WHERE key = 1", "SELECT name FROM meta WHERE pid = 100 AND name = 5",
    "INSERT INTO kv (key, value) VALUES ('n1', '\\xzz')", "INSERT INTO kv (key, expires_at) VALUES ('n1', 'notatime')",
    "SELECT key FROM kv WHERE key LIKE 'k%' ORDER BY key LIMIT -1", "SELECT key FROM kv WHERE key LIKE 'k%' ORDER BY nocolumn",
    "SET nosetting = 1", "SHOW nosetting", "SET client_min_messages = 'nolevel'", "SET statement_timeout = 'abc'", "SET TimeZone = 'No/Where'",
    "SET DateStyle = 'nostyle'", "RESET nosetting", "EXECUTE nostatement", "DEALLOCATE nostatement", "FETCH 1 FROM nocursor", "CLOSE nocursor",
    "MOVE 1 IN nocursor", "ROLLBACK TO nosavepoint", "RELEASE nosavepoint", "SELECT $1", "SELECT key FROM kv WHERE key = $1",
    "SELECT 1; SELEC 2", "SELECT $0", "COPY nothere FROM STDIN", "COPY kv (nocolumn) FROM STDIN", "COPY kv (key) FROM STDIN (FORMAT nope)",
    "SELECT nothere.key FROM kv WHERE key = 'k1'", "SELECT * FROM noschema.kv", "SELECT key FROM kv WHERE key = 'k1' AND", "\"", "SELECT 1 1",
    "BEGIN; SELEC 1; COMMIT", "SELECT 'abc'::float8", "SELECT '2024-13-01'::date", "SELECT 'x'::timestamptz", "SELECT '{1,x}'::int4[]",
    "SELECT 99999::int2", "SELECT 1::int4::bytea", "SELECT 'maybe'::bool", "SELECT current_setting('nosetting')", "SELECT '1e400'::float8",
    "SELECT '{1,2'::int4[]", "SELECT name FROM meta WHERE pid = true AND name = 'x'", "SELECT 10000000000::int4", "SELECT '\\xz'::bytea",
    "SELECT \"", "SELECT E'\\xff'", "SELECT 1 AS select FROM", "PREPARE p AS SELEC", "PREPARE p AS SELECT * FROM nothere",
    "DECLARE c CURSOR FOR SELECT * FROM nothere", "DECLARE c CURSOR FOR SELEC", "SAVEPOINT", "SET", "SHOW", "COMMIT 1", "LISTEN", "NOTIFY",
    "FETCH", "UPDATE kv SET WHERE key = 'k1'", "DELETE kv", "INSERT kv VALUES (1)", "SELECT key key2 key3 FROM kv WHERE key = 'k1'",
    "UPDATE kv SET value = 5 WHERE key = 'k1'", "INSERT INTO meta (pid, name, id, mode) VALUES (100, 'g1', 2001, 'x')",
    "INSERT INTO kv (key, value) VALUES ('n1', 7)", "SELECT 1; ;SELEC", "SELECT \u00e9\u00e9 FROM kv WHERE key = 'k1'",
]

TRANSACTION = [
    "BEGIN", "BEGIN", "BEGIN;", "BEGIN READ ONLY", "BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
    "START TRANSACTION", "COMMIT", "COMMIT", "END", "ROLLBACK", "ROLLBACK", "ABORT", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN",
    "SAVEPOINT s1", "SAVEPOINT s2", "SAVEPOINT s1", "ROLLBACK TO s1", "ROLLBACK TO SAVEPOINT s2", "RELEASE s1", "RELEASE SAVEPOINT s2",
    "SET TRANSACTION READ ONLY", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SET LOCAL application_name = 'local'",
]

SESSION = [
    "SET application_name = 'diff'", "SET application_name TO 'diff'", "RESET application_name", "SET TimeZone = 'UTC'",
    "SET TIME ZONE 'Europe/Berlin'", "SET DateStyle = 'German'", "SET DateStyle TO 'ISO, DMY'", "RESET DateStyle", "SET extra_float_digits = 3",
    "SET client_min_messages = warning", "SET client_min_messages = error", "RESET client_min_messages", "SET bytea_output = 'escape'",
    "RESET ALL", "DISCARD ALL", "CLOSE ALL", "DEALLOCATE ALL", "UNLISTEN *", "LISTEN news", "NOTIFY news", "NOTIFY news, 'text'", "UNLISTEN news",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", "DISCARD PLANS",
    "SET standard_conforming_strings = on", "SET NAMES 'UTF8'", "SET client_encoding = 'UTF8'", "SET search_path = public",
    "SET default_transaction_read_only = on", "SET default_transaction_read_only = off", "SET IntervalStyle = 'postgres'",
    "PREPARE q AS SELECT key FROM kv WHERE key = $1", "PREPARE q2 (text) AS SELECT value FROM kv WHERE key = $1", "EXECUTE q ('k1')",
    "EXECUTE q2('k2')", "EXECUTE q", "EXECUTE q ('a', 'b')", "DEALLOCATE q", "DEALLOCATE PREPARE q2", "PREPARE p AS SELECT 1", "EXECUTE p",
    "SET application_name = DEFAULT", "SET SESSION application_name = 'ses'", "SET TIME ZONE LOCAL", "SET TIME ZONE DEFAULT",
    "SET TimeZone = 'America/New_York'", "SET IntervalStyle = 'iso_8601'", "SET DateStyle = 'SQL, DMY'", "SET DateStyle = 'Postgres'",
    "SET extra_float_digits = 0", "SET bytea_output = 'hex'", "SET application_name = \"quoted\"", "SET statement_timeout = '5min'",
    "SET statement_timeout = 0", "SET lock_timeout = '1s'", "PREPARE q (int4) AS SELECT $1", "EXECUTE q (1)", "EXECUTE q (NULL)",
    "EXECUTE q ('x'::text)",
    "PREPARE w AS INSERT INTO kv (key, value) VALUES ('w1', 'w')", "EXECUTE w",
]

CURSOR = [
    "DECLARE c CURSOR FOR SELECT key FROM kv WHERE key LIKE 'k%' ORDER BY key",
    "DECLARE c NO SCROLL CURSOR FOR SELECT key, value FROM kv WHERE key LIKE 'k%' ORDER BY key",
    "DECLARE h CURSOR WITH HOLD FOR SELECT key FROM kv WHERE key LIKE 'k%' ORDER BY key",
    "FETCH FROM c", "FETCH 2 FROM c", "FETCH FORWARD 2 FROM c", "FETCH ALL FROM c", "FETCH NEXT FROM c", "FETCH FORWARD ALL IN c", "FETCH 0 FROM c",
    "MOVE 1 IN c", "MOVE FORWARD 2 FROM c", "MOVE ALL IN c", "CLOSE c", "CLOSE ALL", "FETCH 2 FROM h", "CLOSE h",
]

EMPTY = ["", " ", ";", ";;", "-- comment", "/* comment */", " ; ; "]

COPY_OUT = [
    "COPY (SELECT key, value FROM kv WHERE key LIKE 'k%' ORDER BY key) TO STDOUT",
    "COPY (SELECT key, value FROM kv WHERE key LIKE 'k%' ORDER BY key) TO STDOUT WITH CSV HEADER",
    "COPY (SELECT key, value FROM kv WHERE key LIKE 'k%' ORDER BY key) TO STDOUT (FORMAT binary)",
    "COPY (SELECT key FROM kv WHERE key = 'none') TO STDOUT", "COPY (SELECT 1, 'a', NULL) TO STDOUT (FORMAT csv, NULL '-')",
]
COPY_IN = [
    "COPY kv (key, value) FROM STDIN", "COPY kv (key, value) FROM STDIN WITH (FORMAT csv)", "COPY kv (key, value) FROM STDIN WITH (FORMAT text)",
    "COPY kv (key) FROM STDIN", "COPY kv (key, value) FROM STDIN (FORMAT binary)",
]
COPY_IN_WIDE = [
    ("COPY kv (key, value) FROM STDIN (FORMAT csv, HEADER)", ","), ("COPY kv (key, value) FROM STDIN (DELIMITER '|')", "|"),
    ("COPY kv (key, value) FROM STDIN (NULL 'nil')", "\t"), ("COPY kv (key, value) FROM STDIN WITH CSV QUOTE '\"' ESCAPE '!'", ","),
    ("COPY object (bucket, key, size) FROM STDIN", "\t"), ("COPY meta (pid, name, id, mode) FROM STDIN (FORMAT csv)", ","),
]
# Pieces of lines, joined at random, and cut at random.
COPY_PIECES = ["c1", "c2", "k1", "b", "100", "7", "nil", "\\N", "\\t", "\\x41", "\\101", "\\", "'", '"', "!", '""', "\xc3\xa9", "\\.", " "]
COPY_TEXT = [b"c1\tone\n", b"c2\ttwo\nc3\t\\N\n", b"c4\t\\\\x00ff\n", b"c5\t", b"five\n", b"\\.\n", b"k1\tdup\n", b"c6\n", b"c7\ta\tb\n", b"",
             b"c8\tlast", b"c9\t\\\\xzz\n", b"c1\ttwice\n", b"\xff\tbad\n", b"c1\r\n", b"c2\tx\r",
             b"d1\ta\\\nb\n", b"d2\t\r\n"]
COPY_CSV = [b"c1,one\n", b"c2,\nc3,\"a\"\"b\"\n", b"\"c4\",x\n", b"k1,dup\n", b"c6\n", b"c7,a,b\n", b"\"open", b"\\.\n", b"", b"\"c9\n\",line\n", b"\"d1\r\n\",x\r\n",
            b"d2,x\r", b"d3,x\r\n"]
BINARY_HEAD = b"PGCOPY\n\xff\r\n\0" + b"\0" * 8
COPY_BINARY = [BINARY_HEAD, b"\0\2\0\0\0\2c1\0\0\0\1x", b"\0\2\0\0\0\2c2\xff\xff\xff\xff", b"\xff\xff", b"\0\3\0\0", b"junk", b"\0\2\0\0\0\2k1\0\0\0\0"]


def int8(n):
    return struct.pack("!q", n)


# (sql, parameters as (text form, {declared type: binary form}))
PARAMETRISED = [
    ("SELECT key, value FROM kv WHERE key = $1", [("k1", {TEXT: b"k1", VARCHAR: b"k1"})]),
    ("SELECT key FROM kv WHERE key = $1", [("none", {TEXT: b"none"})]),
    ("SELECT key FROM kv WHERE key >= $1 AND key < $2 ORDER BY key", [("k", {TEXT: b"k"}), ("l", {TEXT: b"l"})]),
    ("SELECT key FROM kv WHERE key LIKE 'k%' ORDER BY key LIMIT $1", [("2", {INT8: int8(2), INT4: b"\0\0\0\2", INT2: b"\0\2"})]),
    ("SELECT name, size FROM meta WHERE pid = $1 AND name = $2", [("100", {INT8: int8(100), INT4: b"\0\0\0\x64", INT2: b"\0\x64"}),
                                                                 ("f1", {TEXT: b"f1", VARCHAR: b"f1"})]),
    ("SELECT name FROM meta WHERE name = $1 AND pid = $2", [("f2", {TEXT: b"f2"}), ("100", {INT8: int8(100)})]),
    ("SELECT $1", [("x", {TEXT: b"x", INT4: b"\0\0\0\7"})]),
    ("SELECT $1::int4", [("7", {INT4: b"\0\0\0\7"})]),
    ("SELECT $1::int8 AS a, $2::text AS b", [("7", {INT8: int8(7)}), ("t", {TEXT: b"t"})]),
    ("SELECT $1::bool", [("t", {BOOL: b"\1"})]),
    ("SELECT $1::bytea", [("\\x01", {BYTEA: b"\1"})]),
    ("INSERT INTO kv (key, value) VALUES ($1, $2)", [("n1", {TEXT: b"n1"}), ("v", {BYTEA: b"\0v"})]),
    ("INSERT INTO kv (key, value) VALUES ($1, $2) RETURNING key, value", [("n2", {TEXT: b"n2"}), ("v", {BYTEA: b"\0v"})]),
    ("INSERT INTO kv (key, value) VALUES ($1, 'dup')", [("k1", {TEXT: b"k1"})]),
    ("UPDATE kv SET value = $2 WHERE key = $1", [("k1", {TEXT: b"k1"}), ("w", {BYTEA: b"w"})]),
    ("DELETE FROM kv WHERE key = $1", [("k2", {TEXT: b"k2"})]),
    ("INSERT INTO kv (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
     [("k1", {TEXT: b"k1"}), ("v", {BYTEA: b"v"})]),
    ("SELECT name, size FROM meta WHERE pid = $1 AND name > $2 AND name < 'g' ORDER BY name", [("100", {INT8: int8(100)}), ("f", {TEXT: b"f"})]),
    ("SELECT key FROM kv WHERE key = ANY($1) ORDER BY key", [("{k1,k2}", {})]),
]
BAD_PARAMETRISED = [
    "SELECT key FROM kv WHERE key = $2", "SELECT $1 FROM nothere", "SELECT key FROM kv WHERE nocolumn = $1", "SELECT $1 + ", "INSERT INTO kv (key) VALUES ($1, $2)",
]
MALFORMED = [
    ("Parse without end", "P", b"\0SELECT 1"), ("Parse with more", "P", b"\0SELECT 1\0\0\0x"), ("Parse counts too many types", "P", b"\0SELECT 1\0\0\2\0\0\0\x14"),
    ("Bind without end", "B", b"\0\0\0"), ("Bind with more", "B", b"\0\0\0\0\0\0\0\0x"), ("Bind empty", "B", b""),
    ("Describe of kind X", "D", b"Xa\0"), ("Describe empty", "D", b""), ("Close of kind X", "C", b"Xa\0"), ("Execute without limit", "E", b"\0"),
    ("Execute with more", "E", b"\0\0\0\0\0x"), ("Sync with a body", "S", b"x"), ("Flush with a body", "H", b"x"), ("Query without end", "Q", b"SELECT 1"),
    ("Query with more", "Q", b"SELECT 1\0x"), ("Describe without end", "D", b"Sabc"), ("Query of bad UTF-8", "Q", b"SELECT '\xff'\0"),
    ("Parse of bad UTF-8", "P", b"\0SELECT '\xc3'\0\0\0"),
]
FATAL = [("unknown type y", "y", b""), ("unknown type 1", "1", b""), ("Password outside a login", "p", b"x\0"), ("unknown type ~", "~", b"abc")]


class Generator:
    """One sequence of one seed."""

    def __init__(self, seed):
        self.r = random.Random("sequence %d" % seed)
        self.steps = []
        self.table = self.r.choices([WRITES, META_WRITES, OBJECT_WRITES], [8, 1, 1])[0]
        self.hostile = self.r.random() < 0.25   # malformed messages too
        self.copying = self.r.random() < 0.3 and self.table is WRITES   # of kv, as those

    def add(self, *steps):
        self.steps.extend(steps)

    def chance(self, p):
        return self.r.random() < p

    def statement(self, inside_portal=False):
        kinds = [(READS, 9), (self.table, 7), (BAD, 6), (TRANSACTION, 9), (SESSION, 4), (CURSOR, 4), (EMPTY, 1)]
        if self.copying:
            kinds.append((COPY_OUT, 3))
            if not inside_portal or self.chance(0.3):
                kinds.append((COPY_IN, 4))
        pools, weights = zip(*kinds)
        while True:
            sql = self.r.choice(self.r.choices(pools, weights)[0])
            # A transaction writes to one table.
            if self.table is WRITES or not sql.startswith(("INSERT INTO kv", "UPDATE kv", "DELETE FROM kv")):
                return sql

    def simple(self):
        count = self.r.choices([1, 2, 3, 4], [12, 4, 2, 1])[0]
        picked = [self.statement() for _ in range(count)]
        if count > 1:
            picked = [s.rstrip(";") for s in picked if "--" not in s] or ["SELECT 1"]
        sql = "; ".join(picked)
        self.add(query(sql))
        if "FROM STDIN" in sql:
            self.copy_stream(sql)

    def copy_wide(self):
        """COPY with options, into any table, of lines that are put together."""
        sql, delimiter = self.r.choice([w for w in COPY_IN_WIDE if w[0].split()[1] in self.table[0].split()])
        data = ""
        for _ in range(self.r.randrange(4)):
            fields = ["".join(self.r.choice(COPY_PIECES) for _ in range(self.r.choices([0, 1, 2], [1, 8, 2])[0]))
                      for _ in range(self.r.choices([1, 2, 3, 4], [1, 6, 2, 2])[0])]
            fields[0] = fields[0].strip('"! ') or "c3"  # an empty key is refused by metadb alone
            data += delimiter.join(fields) + self.r.choices(["\n", "\r\n", "\r", ""], [12, 1, 1, 1])[0]
        data = data.encode("latin-1")
        self.add(query(sql))
        while data:
            n = self.r.randrange(1, len(data) + 1)
            self.add(copy_data(data[:n]))
            data = data[n:]
        self.add(self.r.choice([copy_done(), copy_done(), copy_done(), copy_fail("no more")]))

    def copy_stream(self, sql):
        source = COPY_BINARY if "binary" in sql else COPY_CSV if "csv" in sql.lower() else COPY_TEXT
        if "binary" in sql and self.chance(0.7):
            self.add(copy_data(BINARY_HEAD))
        for _ in range(self.r.randrange(4)):
            self.add(copy_data(self.r.choice(source[:5] if self.chance(0.6) else source)))
        if "binary" in sql and self.chance(0.5):
            self.add(copy_data(b"\xff\xff"))
        if self.chance(0.1):
            self.add(self.r.choice([flush(), sync()]))
        roll = self.r.random()
        if roll < 0.6:
            self.add(copy_done())
        elif roll < 0.8:
            self.add(copy_fail(self.r.choice(["no more", "", "client gave up"])))
        elif roll < 0.9 and self.hostile:
            self.add(self.r.choice([query("SELECT 1"), parse("", "SELECT 1"), terminate(), raw("unknown type y", "y"), function_call()]))
        else:
            self.add(copy_done(), copy_done())

    def portal_name(self, sql):
        # FETCH goes on with portals of queries, and of RETURNING, only.
        return self.r.choices(["", "p1", "p2", "c"], [8, 4, 2, sql.startswith("SELECT") or "RETURNING" in sql])[0]

    def fetch_portal(self):
        """SQL's cursors and the protocol's portals are the same."""
        sql = self.r.choice([q for q in READS if "ORDER BY" in q])
        self.add(query("BEGIN"), parse("", sql), bind("p1", ""), execute("p1", self.r.choice([1, 2])))
        self.add(*[query(self.r.choice(["FETCH 2 FROM p1", "MOVE 1 IN p1", "CLOSE p1", "FETCH ALL FROM p1"])) for _ in range(2)])
        self.add(execute("p1", 1), sync(), query("COMMIT"))

    def executed_portal(self):
        """A portal of what is no query but gives rows, in pieces, with something in between."""
        inner = self.r.choice([q for q in READS if "FROM kv" in q] + [w for w in self.table if "FOR UPDATE" not in w])
        sql = self.r.choice(["EXECUTE e", "EXECUTE e", "FETCH 2 FROM c", "FETCH ALL FROM c", "SHOW server_encoding", "MOVE 2 IN c"])
        self.add(query("PREPARE e AS " + inner), query("BEGIN"), query(CURSOR[0]))
        self.add(parse("", sql), bind("p1", "", results=self.result_formats(sql)))
        for _ in range(self.r.randrange(1, 4)):
            self.add(execute("p1", self.r.choice([0, 1, 2, 3])))
            if self.chance(0.3):
                between = ["FETCH 1 FROM c", "DEALLOCATE e", "CLOSE c", "SELECT 1", "ROLLBACK", "EXECUTE e"]
                self.add(sync(), query(self.r.choice(between)))
        self.add(sync(), query(self.r.choice(["COMMIT", "ROLLBACK", "DEALLOCATE e"])))

    def statement_name(self):
        return self.r.choices(["", "s1", "s2", "q"], [8, 4, 2, 1])[0]

    def values(self, wanted, declared):
        """Parameters and their formats, seldom of the wrong number or form."""
        params, formats = [], []
        for (as_text, binary), kind in zip(wanted, declared):
            if kind in binary and self.chance(0.5):
                params.append(binary[kind])
                formats.append(1)
            elif self.chance(0.05):
                params.append(None)
                formats.append(0)
            else:
                params.append(as_text.encode())
                formats.append(0)
        roll = self.r.random()
        if roll < 0.04:
            params.append(b"more")
            formats.append(0)
        elif roll < 0.08 and params:
            params.pop()
            formats.pop()
        elif roll < 0.10:
            formats = formats + [0, 0]
        elif roll < 0.12 and params:
            # An empty key is refused by metadb alone.
            params[0] = self.r.choice([b"\xff", b"abc", b"a\0b"] + ([] if wanted[0][0] in KEYS else [b""]))
        elif roll < 0.14 and params:
            formats[0] = self.r.choice([2, -1])
        if formats and not any(formats) and self.chance(0.6):
            formats = []
        elif len(set(formats)) == 1 and self.chance(0.5):
            formats = formats[:1]
        return params, formats

    def result_formats(self, sql):
        # PostgreSQL sees a bad format when it has a row to write, metadb has written the row by then.
        bad = 0.3 if sql.startswith("SELECT") else 0
        return self.r.choices([(), (0,), (1,), (0, 0), (1, 0), (2,)], [10, 4, 4, 1, 1, bad])[0]

    def prepared_statement(self):
        return self.r.choice(BAD_PARAMETRISED) if self.chance(0.05) else self.statement(inside_portal=True)

    def extended(self):
        """One statement's messages: all of them, or with some left out, doubled, or in another order."""
        name = self.statement_name()
        if self.chance(0.45):
            sql, wanted = self.r.choice([p for p in PARAMETRISED if self.table is WRITES or p[0].startswith("SELECT")])
            declared = [self.r.choice(list(b)) if b and self.chance(0.6) else 0 for _, b in wanted]
            types = [] if not any(declared) and self.chance(0.7) else list(declared)
            params, formats = self.values(wanted, declared)
        else:
            sql = self.prepared_statement()
            types, params, formats = [], [], []
        portal = self.portal_name(sql)
        steps = [parse(name, sql, types)]
        if self.chance(0.3):
            steps.append(describe("S", name))
        steps.append(bind(portal, name, params, formats, self.result_formats(sql)))
        if self.chance(0.5):
            steps.append(describe("P", portal))
        limit = self.r.choices([0, 1, 2, 5, -1], [10, 2, 2, 1, 0.3])[0]
        steps.append(execute(portal, limit))
        while limit and self.chance(0.6):
            steps.append(execute(portal, self.r.choice([0, 1, 2])))
        if self.chance(0.2):
            steps.append(close("P", portal))
        if self.chance(0.2):
            steps.append(close("S", name))
        self.disorder(steps)
        if "FROM STDIN" in sql:
            at = max((i for i, s in enumerate(steps) if s.kind == "E"), default=len(steps) - 1)
            self.add(*steps[:at + 1])
            self.copy_stream(sql)
            steps = steps[at + 1:]
        self.add(*steps)
        roll = self.r.random()
        if roll < 0.65 or "FROM STDIN" in sql:  # COPY commits when its data end, Sync or not
            self.add(sync())
        elif roll < 0.75:
            self.add(flush())

    def disorder(self, steps):
        if self.chance(0.12) and len(steps) > 1:
            steps.pop(self.r.randrange(len(steps)))
        if self.chance(0.08):
            at = self.r.randrange(len(steps))
            steps.insert(at, steps[at])
        if self.chance(0.08) and len(steps) > 1:
            at = self.r.randrange(len(steps) - 1)
            steps[at], steps[at + 1] = steps[at + 1], steps[at]

    def stray(self):
        choices = [sync(), flush(), copy_data(b"stray\n"), copy_done(), copy_fail("stray"), function_call(), close("S", "s1"), close("P", "p1"),
                   describe("S", "s1"), describe("P", "p1"), describe("P", "c"), execute("p1"), execute("c", 1), bind("p2", "s1"), describe("S", ""),
                   execute("")]
        if self.hostile:
            choices += [raw(*m) for m in MALFORMED]
        self.add(self.r.choice(choices))

    def build(self):
        for _ in range(self.r.choices([1, 2, 3, 4, 6, 9], [2, 4, 5, 5, 4, 2])[0]):
            roll = self.r.random()
            if roll < 0.4:
                self.simple()
            elif roll < 0.86:
                self.extended()
            elif roll < 0.88:
                self.fetch_portal()
            elif roll < 0.90:
                self.executed_portal()
            elif roll < 0.92:
                self.copy_wide()
            else:
                self.stray()
        if self.hostile and self.chance(0.15):
            self.add(raw(*self.r.choice(FATAL)))
        return self.steps


# How the bytes travel: all at once; message by message, waiting for answers; in pieces of any size.
DELIVERIES = ["whole", "steps", "pieces"]


def generate(seed):
    """(steps, delivery)"""
    return Generator(seed).build(), DELIVERIES[seed % len(DELIVERIES)]


# Ends whatever state the sequence has left, so that the stream has an end.
END = [copy_done(), sync(), terminate()]
