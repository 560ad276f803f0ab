#!/usr/bin/env python3
"""What the frontend promises beside PostgreSQL's protocol, over raw sockets.

    session.py --port P [--pid SERVER]

Prints ok, FAIL or skip and a name, one line per test. Limits of time, cancellation, back-pressure,
COPY in batches, deferred writes, cursors that outlive their transaction.
"""
import argparse
import socket
import struct
import sys
import time
import traceback

TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


class Ended(Exception):
    pass


def msg(kind, body=b""):
    return kind.encode() + struct.pack("!i", len(body) + 4) + body


def text(s):
    return s.encode() + b"\0"


def query(sql):
    return msg("Q", text(sql))


def parse(sql, name=""):
    return msg("P", text(name) + text(sql) + b"\0\0")


def bind(portal="", statement="", params=()):
    body = text(portal) + text(statement) + b"\0\0" + struct.pack("!h", len(params))
    for p in params:
        body += struct.pack("!i", -1) if p is None else struct.pack("!i", len(p.encode())) + p.encode()
    return msg("B", body + b"\0\0")


def execute(portal="", limit=0):
    return msg("E", text(portal) + struct.pack("!i", limit))


SYNC, FLUSH = msg("S"), msg("H")


class Conn:
    def __init__(self, port, receive=None, **settings):
        self.sock = socket.socket()
        if receive:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.sock.settimeout(30)
        self.sock.connect(("127.0.0.1", port))
        self.buffer = b""
        self.port = port
        pairs = dict({"user": "metadb", "database": "metadb"}, **settings)
        body = struct.pack("!i", 196608) + b"".join(text(k) + text(v) for k, v in pairs.items()) + b"\0"
        self.send(struct.pack("!i", len(body) + 4) + body)
        for kind, body in self.until("Z"):
            if kind == "K":
                self.key = body

    def send(self, *parts):
        self.sock.sendall(b"".join(parts))

    def need(self, n):
        while len(self.buffer) < n:
            piece = self.sock.recv(65536)
            if not piece:
                raise Ended()
            self.buffer += piece

    def one(self):
        self.need(5)
        n = 1 + struct.unpack("!i", self.buffer[1:5])[0]
        self.need(n)
        kind, body = self.buffer[:1].decode(), self.buffer[5:n]
        self.buffer = self.buffer[n:]
        return kind, body

    def until(self, kinds):
        got = []
        while True:
            got.append(self.one())
            if got[-1][0] in kinds:
                return got

    def ask(self, *parts):
        self.send(*parts)
        return self.until("Z")

    def q(self, sql):
        return self.ask(query(sql))

    def cancel(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        s.sendall(struct.pack("!ii", 16, 80877102) + self.key)
        rest = s.recv(10)
        s.close()
        assert rest == b"", rest

    def close(self):
        self.sock.close()


def shape(got, drop="NSA"):
    return "".join(k for k, _ in got if k not in drop)


def fields(body):
    return {f[:1].decode(): f[1:].decode() for f in body.split(b"\0") if f}


def error(got):
    found = [fields(b) for k, b in got if k == "E"]
    assert found, "no error in " + shape(got)
    return found[0]


def state(got):
    return error(got)["C"]


def tag(got):
    return [b[:-1].decode() for k, b in got if k == "C"]


def rows(got):
    out = []
    for kind, body in got:
        if kind != "D":
            continue
        n, at, row = struct.unpack("!h", body[:2])[0], 2, []
        for _ in range(n):
            size = struct.unpack("!i", body[at:at + 4])[0]
            row.append(None if size < 0 else body[at + 4:at + 4 + size].decode())
            at += 4 + max(size, 0)
        out.append(row)
    return out


def status(got):
    return got[-1][1].decode()


def eq(got, want):
    assert got == want, "%r, expected %r" % (got, want)


class Env:
    def __init__(self, port, pid):
        self.port, self.pid = port, pid
        self.prefix = "fe%d." % (time.time_ns() % 10 ** 12)

    def conn(self, **more):
        return Conn(self.port, **more)

    def put(self, c, key, value="v"):
        eq(tag(c.q("INSERT INTO kv (key, value) VALUES ('%s', '%s')" % (self.prefix + key, value))), ["INSERT 0 1"])

    def has(self, c, key):
        return len(rows(c.q("SELECT key FROM kv WHERE key = '%s'" % (self.prefix + key)))) == 1

    def insert(self, key):
        return "INSERT INTO kv (key) VALUES ('%s')" % (self.prefix + key)


# -- time ------------------------------------------------------------------------------------------

@test
def statement_timeout_ends_a_sleep(env):
    c = env.conn()
    c.q("SET statement_timeout = '150ms'")
    began = time.monotonic()
    got = c.q("SELECT pg_sleep(20)")
    eq(error(got)["C"], "57014")
    assert "statement timeout" in error(got)["M"]
    assert time.monotonic() - began < 5
    eq(rows(c.q("SELECT 1")), [["1"]])
    c.q("SET statement_timeout = 0")
    eq(shape(c.q("SELECT pg_sleep(0.3)")), "TDCZ")


@test
def catalogue_query_ends_with_its_timeout_or_a_cancel(env):
    # Without it, the query goes on until its limit of steps, and the timeout is only said then.
    sql = "SELECT count(*) FROM pg_type a, pg_type b, pg_type c, pg_type d"
    c = env.conn()
    c.q("SET statement_timeout = 20")
    begin = time.monotonic()
    eq(state(c.q(sql)), "57014")
    c.q("SET statement_timeout = 0")
    c.send(query(sql))
    time.sleep(0.02)
    c.cancel()
    eq(state(c.until("Z")), "57014")
    eq(rows(c.q("SELECT 1")), [["1"]])
    assert time.monotonic() - begin < 20


@test
def catalogue_queries_hold_up_no_other_pool_work(env):
    # metadb.check() stands for what runs on the pool: flushes, cold reads.
    c = env.conn()
    c.q("SELECT * FROM metadb.check()")
    heavy = [env.conn() for _ in range(12)]
    for h in heavy:
        h.send(query("SELECT count(*) FROM pg_type a, pg_type b, pg_type c, pg_type d"))
    time.sleep(0.1)
    eq(shape(c.q("SELECT * FROM metadb.check()")), "TCZ")
    waiting = 0
    for h in heavy:
        h.sock.setblocking(False)
        try:
            h.sock.recv(1)
        except BlockingIOError:
            waiting += 1
        h.close()
    assert waiting >= 8, "it waited for the queries, %d are left" % waiting


@test
def idle_in_transaction_timeout_ends_the_session(env):
    c = env.conn()
    c.q("SET idle_in_transaction_session_timeout = '200ms'")
    time.sleep(0.4)
    eq(rows(c.q("SELECT 1")), [["1"]])
    c.q("BEGIN")
    try:
        got = c.until("E")
        eq(error(got)["C"], "25P03")
        c.until("?")
    except Ended:
        return
    raise AssertionError("still open")


@test
def transaction_over_its_time_is_25P04(env):
    c = env.conn()
    c.q("BEGIN")
    eq(tag(c.q(env.insert("late"))), ["INSERT 0 1"])
    time.sleep(5.5)
    got = c.q(env.insert("later"))
    eq((state(got), status(got)), ("25P04", "E"))
    eq(state(c.q("SELECT 1")), "25P02")
    eq(tag(c.q("COMMIT")), ["ROLLBACK"])
    assert not env.has(c, "late")


# -- cancel ----------------------------------------------------------------------------------------

@test
def cancel_ends_a_sleep_and_nothing_else(env):
    c = env.conn()
    for _ in range(20):
        c.send(query("SELECT pg_sleep(20)"))
        time.sleep(0.02)
        c.cancel()
        got = c.until("Z")
        eq((state(got), shape(got)), ("57014", "EZ"))
        eq(rows(c.q("SELECT 1")), [["1"]])


@test
def cancel_ends_a_flush_that_waits_for_retention(env):
    c = env.conn()
    env.put(c, "flushed")
    c.send(query("SELECT * FROM metadb.flush()"))
    time.sleep(0.05)
    c.cancel()
    got = c.until("Z")
    eq((state(got), shape(got)), ("57014", "EZ"))


@test
def cancel_ends_copy_in(env):
    c = env.conn()
    c.send(query("COPY kv (key) FROM STDIN"))
    c.until("G")
    c.send(msg("d", (env.prefix + "copy\n").encode()))
    time.sleep(0.1)
    c.cancel()
    eq(state(c.until("Z")), "57014")
    c.send(msg("d", b"stray\n"), msg("c"))
    eq(rows(c.q("SELECT 1")), [["1"]])
    assert not env.has(c, "copy")


@test
def storm_of_cancels_hits_only_what_runs(env):
    c = env.conn()
    for i in range(60):
        c.send(query("SELECT 1"))
        c.cancel()
        got = c.until("Z")
        assert shape(got) in ("TDCZ", "EZ"), shape(got)
        if "E" in shape(got):
            eq(state(got), "57014")
    eq(rows(c.q("SELECT 1")), [["1"]])


# -- implicit transactions -------------------------------------------------------------------------

@test
def write_waits_for_what_follows_it(env):
    c = env.conn()
    c.send(parse(env.insert("defer")), bind(), execute())
    time.sleep(0.2)
    other = env.conn()
    assert not env.has(other, "defer"), "a write before Sync is visible"
    c.send(FLUSH)
    eq(shape(c.until("C")), "12C")
    assert not env.has(other, "defer"), "a write before Sync is committed"
    eq(shape(c.ask(SYNC)), "Z")
    assert env.has(other, "defer")


@test
def pipeline_of_writes_is_one_transaction(env):
    c = env.conn()
    one = lambda k: parse(env.insert(k)) + bind() + execute()
    got = c.ask(one("p1"), one("p2"), parse("SELECT 1"), bind(), execute(), one("p1"), one("p3"), SYNC)
    eq((shape(got), state(got), status(got)), ("12C12C12DC12EZ", "23505", "I"))
    eq([env.has(c, k) for k in ("p1", "p2", "p3")], [False] * 3)
    got = c.ask(one("p1"), one("p2"), SYNC)
    eq(shape(got), "12C12CZ")
    eq([env.has(c, k) for k in ("p1", "p2")], [True, True])


@test
def query_after_unsynced_messages_commits_them(env):
    c = env.conn()
    got = c.ask(parse(env.insert("u1")), bind(), execute(), query("SELECT 1"))
    eq(shape(got), "12CTDCZ")
    assert env.has(env.conn(), "u1")


@test
def disconnect_before_sync_undoes(env):
    c = env.conn()
    c.send(parse(env.insert("gone")), bind(), execute(), FLUSH)
    c.until("C")
    c.close()
    time.sleep(0.2)
    assert not env.has(env.conn(), "gone")


@test
def several_statements_of_a_query_are_one_transaction(env):
    c = env.conn()
    got = c.q("%s; %s; SELECT 1" % (env.insert("m1"), env.insert("m2")))
    eq(shape(got), "CCTDCZ")
    got = c.q("%s; SET application_name = 'undone'; %s" % (env.insert("m3"), env.insert("m1")))
    eq(shape(got), "CCEZ")
    assert not env.has(c, "m3")
    assert rows(c.q("SHOW application_name")) != [["undone"]]
    eq(shape(c.q("%s; BEGIN; %s; ROLLBACK" % (env.insert("m4"), env.insert("m5")))), "CCCCZ")
    eq([env.has(c, k) for k in ("m4", "m5")], [False, False])
    eq(state(c.q("%s; SELEKT" % env.insert("m6"))), "42601")
    assert not env.has(c, "m6")
    got = c.q("%s; COMMIT; %s" % (env.insert("m7"), env.insert("m7")))
    eq((shape(got), state(got)), ("CCEZ", "23505"))
    assert env.has(c, "m7")


@test
def error_position_counts_from_the_start_of_the_message(env):
    c = env.conn()
    eq(error(c.q("SELECT 1; SELECT 'ä'; SELECT nothing FROM kv"))["P"], "30")
    eq(error(c.q("SELECT 1; SELEKT 1"))["P"], "11")


# -- pipelines with a Sync behind each statement ---------------------------------------------------

def synced(sql, *params):
    return parse(sql) + bind(params=params) + execute() + SYNC


@test
def synced_writes_are_answered_in_order_each_on_its_own(env):
    c = env.conn()
    c.send(*[synced(env.insert(k)) for k in ("w1", "w2", "w1", "w3")])
    eq([shape(c.until("Z")) for _ in range(4)], ["12CZ", "12CZ", "12EZ", "12CZ"])
    eq([env.has(c, k) for k in ("w1", "w2", "w3")], [True] * 3)


@test
def statement_of_a_synced_pipeline_sees_those_before_it(env):
    c = env.conn()
    look = "SELECT count(*) FROM kv WHERE key >= '%s' AND key < '%s'" % ((env.prefix + "see0"), (env.prefix + "see9"))
    c.send(synced(env.insert("see1")), synced(look), synced(env.insert("see2")), synced(env.insert("see3")), query(look),
           synced(env.insert("see4")), synced(look), synced("BEGIN"), synced(env.insert("see5")), synced("ROLLBACK"), synced(look))
    got = [c.until("Z") for _ in range(11)]
    eq([rows(g) for g in got if rows(g)], [[["1"]], [["3"]], [["4"]], [["4"]]])
    eq([status(g) for g in got], ["I"] * 7 + ["T"] * 2 + ["I"] * 2)


@test
def error_of_a_message_stays_in_its_place_of_a_synced_pipeline(env):
    c = env.conn()
    c.send(synced(env.insert("e1")), bind(statement="nothing"), execute(), SYNC, synced("SELEKT"), synced(env.insert("e2")),
           parse(env.insert("e3")), bind(), execute(), execute(), SYNC, synced(env.insert("e4")))
    got = [c.until("Z") for _ in range(6)]
    eq([shape(g) for g in got], ["12CZ", "EZ", "EZ", "12CZ", "12CEZ", "12CZ"])
    eq([state(g) for g in got if "E" in shape(g)], ["26000", "42601", "55000"])
    eq([env.has(c, k) for k in ("e1", "e2", "e3", "e4")], [True, True, False, True])


@test
def failed_write_of_a_synced_pipeline_undoes_what_was_executed_since_the_last_sync(env):
    c, listener = env.conn(), env.conn()
    listener.q("LISTEN undone")
    c.q(env.insert("undo"))
    step = lambda sql: parse(sql) + bind() + execute()
    c.send(step("SET application_name = 'undone'"), step("NOTIFY undone, 'no'"), synced(env.insert("undo")),
           step("SET statement_timeout = '71s'"), step("NOTIFY undone, 'yes'"), synced(env.insert("kept")),
           synced("SHOW application_name"), synced("SHOW statement_timeout"))
    got = [c.until("Z") for _ in range(4)]
    eq([shape(g) for g in got], ["12C12C12EZ", "12C12C12CZ", "12DCZ", "12DCZ"])
    eq([rows(g) for g in got[2:]], [[[""]], [["71s"]]])
    eq([k for k, _ in got[0] if k == "S"], [])
    eq([b[4:].split(b"\0")[1] for k, b in listener.q("SELECT 1") if k == "A"], [b"yes"])


@test
def many_synced_writes_to_several_tables(env):
    c = env.conn()
    pid = int(rows(c.q("INSERT INTO meta (pid, name, type) VALUES (0, '%s', 'd') RETURNING id" % (env.prefix + "many")))[0][0])
    file = lambda n: "INSERT INTO meta (pid, name, type) VALUES (%d, 'f%d', 'f')" % (pid, n)
    describe = msg("D", b"P" + text(""))
    n = 400
    c.send(*[parse(file(i) if i % 7 else env.insert("many%d" % i)) + bind() + describe + execute() + msg("C", b"P" + text("")) + SYNC
             for i in range(n)])
    for i in range(n):
        eq(shape(c.until("Z"), drop="SA"), "12nC3Z")
    got = rows(c.q("SELECT num_children FROM meta WHERE pid = %d AND name = '_attr_'" % pid))
    eq(got, [[str(n - (n + 6) // 7)]])


@test
def end_of_a_synced_pipeline_comes_after_its_answers(env):
    c = env.conn()
    c.send(synced(env.insert("x1")), synced(env.insert("x2")), msg("X"))
    eq([shape(c.until("Z")) for _ in range(2)], ["12CZ"] * 2)
    c = env.conn()
    c.send(synced(env.insert("x3")), synced(env.insert("x4")))
    c.sock.shutdown(socket.SHUT_WR)
    eq([shape(c.until("Z")) for _ in range(2)], ["12CZ"] * 2)
    c = env.conn()
    c.send(synced(env.insert("x5")), synced(env.insert("x6")), msg("y"))
    eq([shape(c.until("Z")) for _ in range(2)], ["12CZ"] * 2)
    eq(state([c.one()]), "08P01")
    c = env.conn()
    c.send(synced(env.insert("x7")), synced(env.insert("x8")))
    c.close()
    other = env.conn()
    eq([env.has(other, "x%d" % i) for i in range(1, 7)], [True] * 6)


# -- savepoints, cursors ---------------------------------------------------------------------------

@test
def savepoints_of_one_name_nest(env):
    c = env.conn()
    c.q("BEGIN")
    c.q(env.insert("s1"))
    c.q("SAVEPOINT a")
    c.q("SET application_name = 'inner'")
    c.q(env.insert("s2"))
    c.q("SAVEPOINT a")
    c.q(env.insert("s3"))
    eq(state(c.q(env.insert("s1"))), "23505")
    eq(tag(c.q("ROLLBACK TO a")), ["ROLLBACK"])
    eq([env.has(c, k) for k in ("s1", "s2", "s3")], [True, True, False])
    eq(rows(c.q("SHOW application_name")), [["inner"]])
    c.q("RELEASE a")
    c.q("ROLLBACK TO a")
    eq([env.has(c, k) for k in ("s1", "s2", "s3")], [True, False, False])
    assert rows(c.q("SHOW application_name")) != [["inner"]]
    eq(state(c.q("RELEASE b")), "3B001")
    c.q("ROLLBACK")
    assert not env.has(c, "s1")


@test
def cursors_fetch_move_and_hold(env):
    c = env.conn()
    for i in range(5):
        env.put(c, "c%d" % i)
    select = "SELECT key FROM kv WHERE key LIKE '%sc%%' ORDER BY key" % env.prefix
    name = lambda i: env.prefix + "c%d" % i
    eq(state(c.q("DECLARE x CURSOR FOR " + select)), "25P01")
    c.q("BEGIN")
    eq(tag(c.q("DECLARE x CURSOR FOR " + select)), ["DECLARE CURSOR"])
    eq(state(c.q("DECLARE x CURSOR FOR " + select)), "42P03")
    c.q("ROLLBACK")
    c.q("BEGIN")
    c.q("DECLARE x CURSOR FOR " + select)
    c.q("DECLARE y CURSOR WITH HOLD FOR " + select)
    eq(rows(c.q("FETCH 2 FROM x")), [[name(0)], [name(1)]])
    eq(tag(c.q("MOVE 1 FROM x")), ["MOVE 1"])
    got = c.q("FETCH ALL FROM x")
    eq((rows(got), tag(got)), ([[name(3)], [name(4)]], ["FETCH 2"]))
    eq(tag(c.q("FETCH x")), ["FETCH 0"])
    eq(rows(c.q("FETCH NEXT FROM y")), [[name(0)]])
    got = c.ask(parse(select), bind("p"), execute("p", 1), parse("MOVE 2 FROM p"), bind(),
                execute(), execute("p", 1), SYNC)
    eq((shape(got), rows(got)), ("12Ds12CDsZ", [[name(0)], [name(3)]]))
    c.q("COMMIT")
    eq(state(c.q("FETCH 1 FROM x")), "34000")
    eq(rows(c.q("FETCH 2 FROM y")), [[name(1)], [name(2)]])
    eq(tag(c.q("CLOSE y")), ["CLOSE CURSOR"])
    eq(state(c.q("CLOSE y")), "34000")


@test
def row_limit_never_suspends_what_returns_no_rows(env):
    c = env.conn()
    got = c.ask(parse(env.insert("one")), bind(), execute("", 1), SYNC)
    eq((shape(got), tag(got)), ("12CZ", ["INSERT 0 1"]))
    got = c.ask(parse(env.insert("two") + " RETURNING key"), bind(), execute("", 1), execute("", 1), SYNC)
    eq((shape(got), tag(got)), ("12DsCZ", ["INSERT 0 0"]))  # the tag counts the rows of its own Execute
    got = c.ask(parse("SELECT 1"), bind(), execute("", 1), execute("", 1), SYNC)
    eq((shape(got), tag(got)), ("12DsCZ", ["SELECT 0"]))
    got = c.ask(parse("SHOW server_version"), bind(), execute("", 1), execute("", 1), SYNC)
    eq(shape(got), "12DsCZ")
    got = c.ask(parse("BEGIN"), bind(), execute("", 1), execute("", 1), SYNC)
    assert status(got) in "TE"
    c.q("ROLLBACK")


# -- COPY ------------------------------------------------------------------------------------------

@test
def copy_of_many_rows_commits_in_batches(env):
    c = env.conn()
    n = 12500
    data = "".join("%sb%05d\n" % (env.prefix, i) for i in range(n)).encode()

    def copy(tail):
        c.send(query("COPY kv (key) FROM STDIN"))
        c.until("G")
        for at in range(0, len(data), 30000):
            c.send(msg("d", data[at:at + 30000]))
        c.send(msg("d", tail), msg("c"))
        return c.until("Z")
    got = copy(b"too\tmany\n")
    eq(state(got), "22P04")
    assert "rows of this COPY are committed" in error(got)["D"], error(got)
    assert env.has(c, "b00000") and not env.has(c, "b12499")
    for i in range(0, n, 4000):
        c.q("DELETE FROM kv WHERE key >= '%sb%05d' AND key < '%sb%05d'" % (env.prefix, i, env.prefix, i + 4000))
    eq(tag(copy(b"")), ["COPY %d" % n])
    eq(rows(c.q("SELECT count(*) FROM kv WHERE key >= '%sb' AND key < '%sc'" % (env.prefix, env.prefix))), [[str(n)]])


@test
def query_inside_copy_ends_the_connection(env):
    c = env.conn()
    c.send(query("COPY kv (key) FROM STDIN"))
    c.until("G")
    c.send(msg("d", b"half a li"), query("SELECT 1"))
    got = []
    try:
        while True:
            got.append(c.one())
    except Ended:
        pass
    said = [fields(b) for k, b in got if k == "E"]
    eq([(f["V"], f["C"]) for f in said], [("ERROR", "08P01"), ("FATAL", "08P01")])


@test
def copy_between_other_statements(env):
    c = env.conn()
    c.send(query("SELECT 1; COPY kv (key) FROM STDIN; SELECT 2"))
    eq(shape(c.until("G")), "TDCG")
    c.send(msg("d", (env.prefix + "mid").encode()), msg("c"))
    eq(shape(c.until("Z")), "CTDCZ")
    assert env.has(c, "mid")
    c.send(query("COPY kv (key) FROM STDIN; SELECT 2"))
    c.until("G")
    c.send(msg("f", text("no")))
    eq(shape(c.until("Z")), "EZ")


# -- the connection --------------------------------------------------------------------------------

def memory_kb(pid):
    for line in open("/proc/%d/status" % pid):
        if line.startswith("VmRSS"):
            return int(line.split()[1])


@test
def client_that_does_not_read_takes_no_memory(env):
    c = env.conn(receive=4096)
    env.put(c, "big", "x" * 200000)
    get = query("SELECT value FROM kv WHERE key = '%sbig'" % env.prefix)
    before = memory_kb(env.pid) if env.pid else 0
    n = 2000 # 800 MB of answers
    for _ in range(n // 100):
        c.send(get * 100)
    time.sleep(1)
    if env.pid:
        grown = memory_kb(env.pid) - before
        assert grown < 100000, "the server grew by %d kB" % grown
    eq(rows(env.conn().q("SELECT 1")), [["1"]])
    c.close()


@test
def thousands_of_statements_before_a_read(env):
    c = env.conn()
    one = parse("SELECT key FROM kv WHERE key = '%snone'" % env.prefix) + bind() + execute()
    n = 20000
    c.send(one * n, SYNC)
    got = c.until("Z")
    eq(len(got), 3 * n + 1)


@test
def big_result_comes_in_pages_and_can_be_cancelled(env):
    c = env.conn(receive=4096)
    c.send(query("COPY kv (key) TO STDOUT"))
    eq(c.one()[0], "H")
    time.sleep(0.1)
    c.cancel()
    got = c.until("Z")
    assert shape(got)[-2:] in ("EZ", "CZ"), shape(got)[-5:]
    eq(rows(c.q("SELECT 1")), [["1"]])


@test
def vanished_client_leaves_no_session(env):
    conns = [env.conn() for _ in range(50)]
    for i, c in enumerate(conns):
        c.send([query("SELECT pg_sleep(20)"), query("BEGIN; " + env.insert("v%d" % i)),
                query("COPY kv (key) FROM STDIN"), query("SELECT * FROM pg_class"), query("SELECT * FROM kv")][i % 5])
    time.sleep(0.3)
    for c in conns:
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
    c = env.conn()
    assert not env.has(c, "v1")
    eq(rows(c.q("SELECT 1")), [["1"]])


@test
def what_a_vanished_client_waited_for_is_forgotten(env):
    """What a session used is given to the next one: nothing may be left in it of how the first waited."""
    c = env.conn()
    for i in range(20):
        env.put(c, "wide%02d" % i, "x" * 200000)
    many = query("SELECT value FROM kv WHERE key LIKE '%swide%%'" % env.prefix)
    conns = [env.conn(receive=4096) for _ in range(10)]
    for gone in conns:
        gone.send(many)
    time.sleep(0.5)
    for gone in conns:
        gone.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()
    time.sleep(0.3)
    conns = [env.conn() for _ in range(10)]
    for c in conns:
        c.send(parse("SELECT 1", "p") + b"".join(bind("", "p") for _ in range(3000)) + SYNC)
    for c in conns:
        eq(shape(c.until("Z")), "1" + "2" * 3000 + "Z")


# -- listings --------------------------------------------------------------------------------------

LISTED = 3000


def listed_directory(env, c):
    """A directory of LISTED files, and its id."""
    made = c.q("INSERT INTO meta (pid, name, type) VALUES (0, '%sdir%d', 'd') RETURNING id" % (env.prefix, time.time_ns()))
    pid = rows(made)[0][0]
    for first in range(0, LISTED, 1000):
        values = ",".join("(%s, 'f%05d', 'f', %d)" % (pid, i, i) for i in range(first, first + 1000))
        eq(tag(c.q("INSERT INTO meta (pid, name, type, size) VALUES " + values)), ["INSERT 0 1000"])
    return pid


@test
def listings_side_by_side_are_whole_and_in_order(env):
    c = env.conn()
    pid = listed_directory(env, c)
    page = "SELECT name, size, type FROM meta WHERE pid = %s AND name > 'f%05d' ORDER BY name LIMIT 1000"
    conns = [env.conn() for _ in range(12)]
    for turn in range(5):
        after = [(turn * 331 + i * 97) % (LISTED - 1001) for i in range(len(conns))]
        for conn, at in zip(conns, after):
            # Three pages and what comes behind each, in one pipeline.
            conn.send(b"".join(parse(page % (pid, at)) + bind() + execute() + parse("SELECT %d" % n) + bind() + execute() for n in range(3)) + SYNC)
        for i in range(20):
            eq(tag(c.q("UPDATE meta SET mode = %d WHERE pid = %s AND name = 'f%05d'" % (turn + i, pid, i * 100))), ["UPDATE 1"])
        for conn, at in zip(conns, after):
            want = [["f%05d" % i, str(i), "f"] for i in range(at + 1, at + 1001)]
            got = conn.until("Z")
            eq(shape(got), ("12" + "D" * 1000 + "C12DC") * 3 + "Z")
            eq(rows(got), want + [["0"]] + want + [["1"]] + want + [["2"]])


@test
def listing_is_cancelled_or_abandoned_in_the_middle(env):
    c = env.conn()
    everything = query("SELECT * FROM meta WHERE pid = %s" % listed_directory(env, c))
    for _ in range(5):
        conns = [env.conn(receive=4096) for _ in range(10)]
        for conn in conns:
            conn.send(everything * 3)
        for i, conn in enumerate(conns):
            if i % 2:
                conn.cancel()
            else:
                conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                conn.close()
        for conn in conns[1::2]:
            for _ in range(3):
                got = conn.until("Z")
                assert shape(got)[-2:] in ("EZ", "CZ"), shape(got)[-5:]
                if shape(got)[-2] == "E":
                    eq(state(got), "57014")
                else:
                    eq(len(rows(got)), LISTED + 1)
            eq(rows(conn.q("SELECT 1")), [["1"]])
    eq(len(rows(c.ask(everything))), LISTED + 1)


@test
def listings_that_nobody_reads_take_no_memory(env):
    c = env.conn()
    everything = query("SELECT * FROM meta WHERE pid = %s" % listed_directory(env, c))
    conns = [env.conn(receive=4096) for _ in range(8)]
    before = memory_kb(env.pid) if env.pid else 0
    for conn in conns:
        conn.send(everything * 300) # 1 GB of answers in all
    time.sleep(1)
    if env.pid:
        grown = memory_kb(env.pid) - before
        assert grown < 100000, "the server grew by %d kB" % grown
    eq(rows(c.q("SELECT 1")), [["1"]])
    for conn in conns:
        conn.close()


@test
def statements_and_portals_are_bounded(env):
    c = env.conn()
    got = c.ask(*[parse("SELECT 1", "s%d" % i) for i in range(3000)], SYNC)
    eq(shape(got), "1" * 3000 + "Z")
    got = c.ask(*[bind("p%d" % i, "s%d" % i) for i in range(3000)], SYNC)
    eq(shape(got), "2" * 3000 + "Z")
    got = c.ask(*[bind("p%d" % i, "s1") for i in range(5000)], SYNC)
    eq(state(got), "54000")
    eq(tag(c.q("DEALLOCATE ALL")), ["DEALLOCATE ALL"])
    eq(state(c.ask(bind("", "s7"), SYNC)), "26000")


@test
def statement_run_again_follows_its_formats_and_the_style(env):
    """What is kept of a prepared statement's first run is neither its formats nor its style."""
    c = env.conn()
    name = env.prefix + "again"
    c.q("INSERT INTO meta (pid, name, type, size, mtime) VALUES (0, '%s', 'f', 258, '2001-02-03 04:05:06+00')" % name)
    select = "SELECT size, mtime FROM meta WHERE pid = 0 AND name = '%s'" % name
    eq(shape(c.ask(parse(select, "again"), SYNC)), "1Z")

    def run(*formats):
        results = struct.pack("!h", len(formats)) + b"".join(struct.pack("!h", f) for f in formats)
        got = c.ask(msg("B", text("") + text("again") + b"\0\0\0\0" + results), execute(), SYNC)
        body = dict(got)["D"]
        first = struct.unpack("!i", body[2:6])[0]
        return body[6:6 + first], body[10 + first:]

    size, mtime = struct.pack("!q", 258), struct.pack("!q", 34488306 * 1000000)
    iso = b"2001-02-03 04:05:06+00"
    eq(run(), (b"258", iso))
    eq(run(1), (size, mtime))
    eq(run(0), (b"258", iso))
    eq(run(0, 1), (b"258", mtime))
    eq(run(1, 0), (size, iso))
    eq(tag(c.q("SET datestyle = 'German'")), ["SET"])
    eq(run(), (b"258", b"03.02.2001 04:05:06 UTC"))
    eq(run(1), (size, mtime))
    eq(tag(c.q("DEALLOCATE again")), ["DEALLOCATE"])
    eq(shape(c.ask(parse(select.replace("size, mtime", "name, size"), "again"), SYNC)), "1Z")
    eq(run(), (name.encode(), b"258"))


@test
def settings_by_options_at_start(env):
    c = env.conn(options="-c application_name=by\\ options -c statement_timeout=5s --datestyle=sql")
    eq(rows(c.q("SHOW application_name")), [["by options"]])
    eq(rows(c.q("SHOW statement_timeout")), [["5s"]])
    eq(rows(c.q("SHOW datestyle")), [["SQL, MDY"]])
    c.q("SET statement_timeout = 0")
    c.q("RESET ALL")
    eq(rows(c.q("SHOW statement_timeout")), [["5s"]])
    try:
        env.conn(options="-c nothing_like_that=1")
    except Ended:
        return
    raise AssertionError("an unknown setting was taken")


# -- other sessions --------------------------------------------------------------------------------

def watched(c, name, columns="state, wait_event, query"):
    return rows(c.q("SELECT %s FROM pg_stat_activity WHERE application_name = '%s'" % (columns, name)))


def until_watched(c, name, want):
    end = time.monotonic() + 10
    while watched(c, name) != want:
        assert time.monotonic() < end, "%r, expected %r" % (watched(c, name), want)
        time.sleep(0.02)


@test
def activity_shows_what_every_session_does(env):
    name = env.prefix + "watched"
    a, b = env.conn(), env.conn(application_name=name)
    eq(watched(a, name), [["idle", "ClientRead", ""]])
    b.q("SELECT 1")
    eq(watched(a, name), [["idle", "ClientRead", "SELECT 1"]])
    b.q("BEGIN; SELECT pid FROM meta WHERE pid = 0 AND name = 'nosuch'")
    eq(watched(a, name, "state, query, xact_start IS NOT NULL"),
       [["idle in transaction", "BEGIN; SELECT pid FROM meta WHERE pid = 0 AND name = 'nosuch'", "t"]])
    b.q("SELECT 1/0 FROM pg_am")
    eq(watched(a, name, "state"), [["idle in transaction (aborted)"]])
    b.q("ROLLBACK")
    eq(shape(b.ask(parse("SELECT 2 AS \u00e4"), bind(), execute(), SYNC)), "12DCZ")
    eq(watched(a, name, "state, query, xact_start"), [["idle", "SELECT 2 AS \u00e4", None]])
    b.send(query("SELECT pg_sleep(20)"))
    until_watched(a, name, [["active", "PgSleep", "SELECT pg_sleep(20)"]])
    b.cancel()
    b.until("Z")
    # Long texts are cut, at a whole character.
    b.q("SELECT '%s'" % ("\u00e4" * 3000))
    eq(watched(a, name, "query"), [["SELECT '" + "\u00e4" * 507]])
    eq(watched(a, name, "datname, usename, client_addr, client_port > 0, backend_type, backend_start <= query_start, "
               "query_start <= state_change, leader_pid, pid"),
       [["metadb", "metadb", "127.0.0.1", "t", "client backend", "t", "t", None,
         rows(b.q("SELECT pg_backend_pid()"))[0][0]]])
    eq(rows(a.q("SELECT wait_event, state FROM pg_stat_activity WHERE pid = pg_backend_pid()")), [[None, "active"]])
    b.close()
    end = time.monotonic() + 10
    while watched(a, name):
        assert time.monotonic() < end, "a closed session is still there"


@test
def backends_are_cancelled_and_terminated(env):
    name = env.prefix + "ended"
    a, b = env.conn(), env.conn(application_name=name)
    b.send(query("SELECT pg_sleep(20)"))
    until_watched(a, name, [["active", "PgSleep", "SELECT pg_sleep(20)"]])
    signal = "SELECT pg_%s_backend(pid) FROM pg_stat_activity WHERE application_name = '" + name + "'"
    eq(rows(a.q(signal % "cancel")), [["t"]])
    eq(state(b.until("Z")), "57014")
    eq(rows(a.q(signal % "cancel")), [["t"]])  # it does nothing: nothing runs
    eq(rows(b.q("SELECT 1")), [["1"]])
    b.send(query("SELECT pg_sleep(20)"))
    until_watched(a, name, [["active", "PgSleep", "SELECT pg_sleep(20)"]])
    eq(rows(a.q(signal % "terminate")), [["t"]])
    ended = b.until("E")
    eq((fields(ended[-1][1])["S"], state(ended)), ("FATAL", "57P01"))
    try:
        b.one()
        raise AssertionError("something follows the end")
    except Ended:
        pass
    c = env.conn(application_name=name)
    c.q("BEGIN")
    eq(rows(a.q(signal % "terminate")), [["t"]])  # also one that sits idle
    eq(state(c.until("E")), "57P01")
    d = env.conn(application_name=name)
    d.send(query("COPY kv (key) FROM STDIN"))
    d.until("G")
    eq(rows(a.q(signal % "terminate")), [["t"]])  # … or waits for COPY data
    eq(state(d.until("E")), "57P01")
    got = a.q("SELECT pg_terminate_backend(2147483647), pg_cancel_backend(0)")
    eq(shape(got, "SA"), "TNNDCZ")
    eq(fields(dict(got)["N"])["C"], "01000")
    eq(rows(got), [["f", "f"]])
    eq(state(a.q("SELECT pg_terminate_backend(1, -1)")), "22023")


@test
def other_roles_sessions_are_private(env):
    a = env.conn()
    names = ["fe_watch_one", "fe_watch_two"]
    for role in names:
        a.q("DROP ROLE IF EXISTS " + role)
        eq(tag(a.q("CREATE ROLE %s LOGIN" % role)), ["CREATE ROLE"])
    one, two = [env.conn(user=role, application_name=role) for role in names]
    two.q("SELECT 'secret'")
    hidden = "usename, state, query, client_addr, query_start, backend_start"
    eq(watched(one, names[1], hidden), [[names[1], None, "<insufficient privilege>", None, None, None]])
    eq(watched(a, names[1], "state, query"), [["idle", "SELECT 'secret'"]])
    pid = "(SELECT pid FROM pg_stat_activity WHERE application_name = '%s')"
    for what in ("cancel", "terminate"):
        said = error(one.q("SELECT pg_%s_backend(%s)" % (what, pid % names[1])))
        eq((said["C"], said["M"].split(" or ")[1]), ("42501", "member of pg_signal_backend"))
        me = rows(a.q("SELECT pg_backend_pid()"))[0][0]
        eq(state(one.q("SELECT pg_%s_backend(%s)" % (what, me))), "42501")
    mine = env.conn(user=names[0], application_name="mine")
    eq(rows(one.q("SELECT pg_terminate_backend(%s)" % (pid % "mine"))), [["t"]])
    eq(state(mine.until("E")), "57P01")
    for c in (one, two):
        c.close()
    for role in names:
        a.q("DROP ROLE " + role)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--port", type=int, required=True)
    args.add_argument("--pid", type=int, default=0)
    args.add_argument("--only", default="")
    opts = args.parse_args()
    bad = 0
    for fn in TESTS:
        if opts.only not in fn.__name__:
            continue
        try:
            fn(Env(opts.port, opts.pid))
            print("ok", fn.__name__)
        except Exception as e: # every failure is a line, whatever it is
            bad += 1
            where = traceback.extract_tb(e.__traceback__)
            line = [f.lineno for f in where if f.name == fn.__name__]
            print("FAIL", fn.__name__, "line %s: %s: %s" % (line[-1] if line else "?", type(e).__name__,
                                                            str(e).replace("\n", " ")[:300]))
        sys.stdout.flush()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
