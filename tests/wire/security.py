#!/usr/bin/env python3
"""Who is let in, how, and what they may do: over raw sockets, against servers of the test's own.

    security.py --binary METADB

Prints ok, FAIL or skip and a name, one line per test. Certificates are made with openssl(1).
"""
import argparse
import base64
import hashlib
import hmac
import os
import random
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
from server import Server, clean_env  # noqa: E402

TESTS = []
ROUNDS = 4096


def test(fn):
    TESTS.append(fn)
    return fn


class Refused(Exception):
    def __init__(self, fields):
        self.state, self.text = fields.get("C", ""), fields.get("M", "")
        super().__init__("%s %s" % (self.state, self.text))


class Closed(Exception):
    pass


def msg(kind, body=b""):
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def startup(user, database="metadb"):
    body = struct.pack("!I", 196608)
    for word in ("user", user, "database", database):
        body += word.encode() + b"\0"
    return struct.pack("!I", len(body) + 5) + body + b"\0"


SSL_REQUEST = struct.pack("!II", 8, 80877103)


class Conn:
    """One connection. TLS: None, or an SSLContext; direct: without an SSLRequest."""

    def __init__(self, port, tls=None, direct=False, host="127.0.0.1", timeout=20):
        self.sock = socket.create_connection((host, port), timeout)
        self.buffer = b""
        if tls is not None:
            if not direct:
                self.sock.sendall(SSL_REQUEST)
                assert self.sock.recv(1) == b"S"
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")

    def send(self, data):
        self.sock.sendall(data)

    def need(self, n):
        while len(self.buffer) < n:
            try:
                more = self.sock.recv(1 << 16)
            except (ConnectionError, ssl.SSLError) as e:
                raise Closed(str(e))
            if not more:
                raise Closed("closed")
            self.buffer += more

    def message(self):
        self.need(5)
        size = struct.unpack("!I", self.buffer[1:5])[0]
        self.need(1 + size)
        kind, body = chr(self.buffer[0]), self.buffer[5:1 + size]
        self.buffer = self.buffer[1 + size:]
        if kind == "E":
            raise Refused({chr(f[0]): f[1:].decode() for f in body.split(b"\0") if f})
        return kind, body

    def request(self):
        """An authentication request: (number, data)."""
        kind, body = self.message()
        assert kind == "R", kind
        return struct.unpack("!I", body[:4])[0], body[4:]

    def ready(self):
        rows, error = [], None
        while True:
            try:
                kind, body = self.message()
            except Refused as e:
                error = e
                continue
            if kind == "D":
                rows.append(body)
            if kind == "K":
                self.key = body
            if kind == "Z":
                if error:
                    raise error
                return rows

    def query(self, sql):
        self.send(msg("Q", sql.encode() + b"\0"))
        return self.ready()

    def login(self, user, password=None, database="metadb"):
        self.send(startup(user, database))
        number, data = self.request()
        if number == 10:
            self.scram(data, password)
            number, data = self.request()
        assert number == 0, number
        self.ready()
        return self

    def scram(self, mechanisms, password):
        first = "n=,r=" + base64.b64encode(os.urandom(18)).decode()
        server_first = self.sasl_first(b"n,," + first.encode())
        fields = dict(f.split("=", 1) for f in server_first.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", (password or "").encode(), base64.b64decode(fields["s"]), int(fields["i"]))
        bare = "c=biws,r=" + fields["r"]
        self.auth = ",".join((first, server_first, bare)).encode()
        key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(key).digest(), self.auth, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature))
        self.send(msg("p", (bare + ",p=" + base64.b64encode(proof).decode()).encode()))
        number, data = self.request()
        assert number == 12, number
        expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), self.auth, "sha256")
        assert data == b"v=" + base64.b64encode(expected), "the server's proof is wrong"

    def sasl_first(self, data, mechanism=b"SCRAM-SHA-256"):
        self.send(msg("p", mechanism + b"\0" + struct.pack("!I", len(data)) + data))
        number, data = self.request()
        assert number == 11, number
        return data.decode()

    def ends(self, seconds=10):
        """Nothing but the end comes."""
        self.sock.settimeout(seconds)
        try:
            while self.sock.recv(1 << 16):
                pass
        except (ConnectionError, ssl.SSLError):
            pass

    def abort(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()


class Place:
    """Directories, certificates and one server at a time."""

    def __init__(self, binary):
        self.binary = binary
        self.dir = tempfile.mkdtemp(prefix="metadb-security.")
        self.certificates = os.path.join(self.dir, "certificates")
        subprocess.run([os.path.join(ROOT, "tests", "lib", "certificates"), self.certificates], check=True)
        self.data = os.path.join(self.dir, "data")
        self.config = os.path.join(self.dir, "metadb.conf")
        self.log = os.path.join(self.dir, "log")
        self.server = None
        self.live = [self.file(n) for n in ("live.pem", "live.key")]
        self.install("server")

    def file(self, name):
        return os.path.join(self.certificates, name)

    def install(self, name):
        """The certificate in use, replaced as certbot and the like do it."""
        for kind, target in zip((".pem", ".key"), self.live):
            shutil.copyfile(self.file(name + kind), target + ".new")
            os.chmod(target + ".new", 0o600)
            os.replace(target + ".new", target)

    def write(self, rules=(), tls=True, **settings):
        lines = ["%s = %s" % (k.replace("__", "."), v) for k, v in settings.items()]
        lines += ["auth.rule = " + r for r in rules]
        if tls:
            lines += ["tls.certificate = " + self.live[0], "tls.key = " + self.live[1],
                      "tls.client_ca = " + self.file("ca.pem")]
        with open(self.config, "w") as f:
            f.write("\n".join(lines) + "\n")

    def start(self, *args):
        self.server = Server(self.binary, self.data, "--config", self.config, *args, log=self.log)
        assert self.server.wait_ready(), "the server does not start: " + self.read_log()[-500:]
        return self.server.port

    def stop(self):
        if self.server is not None:
            code = self.server.stop()
            self.server = None
            assert code == 0, "exit status %d: %s" % (code, self.read_log()[-2000:])

    @property
    def port(self):
        return self.server.port

    def read_log(self):
        with open(self.log, errors="replace") as f:  # names of roles are logged as they came
            return f.read()

    def wait_log(self, what, count=1, seconds=15):
        end = time.monotonic() + seconds
        while self.read_log().count(what) < count:
            assert time.monotonic() < end, "the log does not say %r" % what
            time.sleep(0.05)

    def hangup(self, event="server.reloaded"):
        count = self.read_log().count(event)
        os.kill(self.server.pid, signal.SIGHUP)
        self.wait_log(event, count + 1)

    def tls(self, certificate=None, alpn=None):
        c = ssl.create_default_context(cafile=self.file("ca.pem"))
        if certificate:
            c.load_cert_chain(self.file(certificate + ".pem"), self.file(certificate + ".key"))
        if alpn:
            c.set_alpn_protocols(alpn)
        return c

    def admin(self, *statements):
        c = Conn(self.port).login("metadb", "root")
        for s in statements:
            c.query(s)
        c.close()


def refused(state, fn, *args, text=""):
    try:
        fn(*args)
    except Refused as e:
        assert e.state == state and text in e.text, str(e)
        return e
    raise AssertionError("not refused with %s" % state)


def own_address():
    """An address of this host that is not loopback; None if it has none."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.connect(("192.0.2.1", 9))
        address = s.getsockname()[0]
    except OSError:
        return None
    finally:
        s.close()
    return None if address.startswith("127.") else address


# -- the first password -------------------------------------------------------------------------

@test
def wrong_rules_and_files_stop_the_start(p):
    for line, named in (("auth.rule = host all all all md5", ":2: invalid authentication method"),
                        ("auth.rule = hostssl all all all cert", "tls.client_ca"),
                        ("tls.certificate = /nonexistent", "tls.key"),
                        ("tls.certificate = /nonexistent\ntls.key = /nonexistent", "/nonexistent")):
        with open(p.config, "w") as f:
            f.write("max_connections = 100\n" + line + "\n")
        r = subprocess.run([p.binary, "start", "--data", p.data, "--listen", "127.0.0.1:0", "--config", p.config],
                           capture_output=True, text=True, timeout=60, env=clean_env())
        assert r.returncode == 1 and named in r.stderr, r.stderr[-300:]
        assert not os.path.exists(p.data), "a start with wrong settings of access has made the directory"


@test
def without_a_password_only_this_host_is_served(p):
    p.write(tls=False)
    p.server = Server(p.binary, p.data, "--config", p.config, log=p.log)
    p.server.wait_ready()
    p.wait_log("auth.no_password")
    Conn(p.port).login("metadb").close()
    refused("28000", Conn(p.port).login, "nobody", text="does not exist")
    p.stop()
    address = own_address()
    if address is None:
        raise LookupError("this host has no other address")
    p.server = Server(p.binary, p.data, "--config", p.config, "--listen", "%s:%d" % (address, 0), log=p.log)
    p.server.wait_ready()
    port = int(p.server.output.split(b" -p ")[1].split()[0])
    refused("28000", Conn(port, host=address).login, "metadb", text="no role has a password yet")


@test
def the_first_superuser_password_closes_the_door(p):
    p.write(superuser_reserved_connections=3, max_connections=30, auth__timeout="2s", auth__pending=15, memory__messages="8MB")
    p.start()
    c = Conn(p.port).login("metadb")
    c.query("create role app login password 'app-pass'")
    Conn(p.port).login("app", "app-pass").close()
    Conn(p.port).login("metadb").close()  # no superuser has one yet
    c.query("alter role metadb password 'root'")
    refused("28P01", Conn(p.port).login, "metadb", "")
    refused("28P01", Conn(p.port).login, "nobody", "")
    Conn(p.port).login("metadb", "root").close()
    c.query("alter user current_user password 'root2'")
    refused("28P01", Conn(p.port).login, "metadb", "root")
    c.query("alter role metadb password 'root'")


@test
def roles_survive_kill_and_restart(p):
    p.server.kill()
    p.start()
    p.admin("create role ro login password 'ro-pass'", "grant select on database metadb to ro",
            "grant all on all tables in schema public to app", "create user few connection limit 2 password 'few-pass'",
            "create role alice login", "create role locked password 'locked-pass'")
    p.server.kill()
    p.start()
    Conn(p.port).login("ro", "ro-pass").close()


# -- SCRAM --------------------------------------------------------------------------------------

@test
def unknown_users_and_wrong_passwords_look_the_same(p):
    seen = {}
    for user in ("app", "nobody", "alice", "locked"):
        salts, texts = set(), set()
        for _ in range(2):
            c = Conn(p.port)
            c.send(startup(user))
            number, mechanisms = c.request()
            assert number == 10
            try:
                c.scram(mechanisms, "wrong")
            except Refused as e:
                texts.add((e.state, e.text.replace(user, "*")))
            fields = dict(f.split("=", 1) for f in c.auth.decode().split(",") if f[1] == "=")
            salts.add((fields["s"], fields["i"]))
        assert len(salts) == 1, "the salt changes for %s" % user
        salt, rounds = salts.pop()
        seen[user] = (mechanisms, len(salt), rounds, texts)
    assert all(v == seen["app"] for v in seen.values()), seen
    refused("28P01", Conn(p.port).login, "locked", "locked-pass")


@test
def passwords_are_prepared(p):
    p.admin("create role prep login password 'I\u00adX\u2168'")
    Conn(p.port).login("prep", "IXIX").close()
    refused("28P01", Conn(p.port).login, "prep", "I\u00adX\u2168")
    p.admin("drop role prep")


@test
def verifiers_are_taken_as_they_are(p):
    salt = b"0123456789abcdef"
    salted = hashlib.pbkdf2_hmac("sha256", b"ready-made", salt, 5000)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    text = "SCRAM-SHA-256$5000:%s$%s:%s" % tuple(base64.b64encode(b).decode() for b in (salt, stored, server))
    p.admin("create role made login password '%s'" % text)
    Conn(p.port).login("made", "ready-made").close()
    p.admin("alter role made password null")
    refused("28P01", Conn(p.port).login, "made", "ready-made")
    p.admin("drop role made")


# -- before the login ---------------------------------------------------------------------------

@test
def large_messages_before_the_login_are_not_read(p):
    c = Conn(p.port)
    c.send(startup("app"))
    c.request()
    c.send(b"p" + struct.pack("!I", 1 << 20) + b"x" * 100)
    c.ends()
    c = Conn(p.port)
    c.send(startup("app"))
    c.request()
    c.send(msg("p", b"SCRAM-SHA-256\0" + struct.pack("!I", 60000) + b"n" * 60000))
    refused("08P01", c.message)


@test
def silence_is_cut_off(p):
    start = time.monotonic()
    silent = Conn(p.port)
    asked = Conn(p.port)
    asked.send(SSL_REQUEST)
    half = Conn(p.port)
    half.send(startup("app"))
    begun = Conn(p.port)
    begun.send(b"\x16\x03\x01")
    for c in (silent, asked, half, begun):
        c.ends()
    assert time.monotonic() - start > 1.5


@test
def strangers_are_bounded(p):
    strangers = [Conn(p.port) for _ in range(18)]
    for c in strangers[:3]:
        c.ends(1)
    Conn(p.port).login("app", "app-pass").close()
    assert "auth.too_many_pending" in p.read_log()
    for c in strangers:
        c.close()


@test
def superusers_find_a_place(p):
    time.sleep(0.3)
    some = [Conn(p.port).login("app", "app-pass") for _ in range(27)]
    refused("53300", Conn(p.port).login, "app", "app-pass", text="reserved")
    Conn(p.port).login("metadb", "root").close()
    for c in some:
        c.close()
    end = time.monotonic() + 10
    while True:
        try:
            pair = [Conn(p.port).login("few", "few-pass") for _ in range(2)]
            break
        except Refused:
            assert time.monotonic() < end
            time.sleep(0.1)
    refused("53300", Conn(p.port).login, "few", "few-pass", text='too many connections for role "few"')
    for c in pair:
        c.close()


# -- powers -------------------------------------------------------------------------------------

@test
def privileges_are_told_as_they_are(p):
    def told(c, call):
        return c.query("select " + call)[0][6:]

    ro, app = Conn(p.port).login("ro", "ro-pass"), Conn(p.port).login("app", "app-pass")
    admin, elsewhere = Conn(p.port).login("metadb", "root"), Conn(p.port).login("ro", "ro-pass", "postgres")
    for call, answers in (
            # superuser, read and write, read, read in another database
            ("has_table_privilege('kv', 'SELECT')", "ttt" "f"), ("has_table_privilege('kv', 'insert')", "ttf" "f"),
            ("has_table_privilege('public.kv'::regclass, 'UPDATE, DELETE')", "ttf" "f"), ("has_table_privilege('kv', 'TRUNCATE')", "tff" "f"),
            ("has_table_privilege('quota', 'INSERT')", "tff" "f"), ("has_table_privilege('pg_class', 'SELECT')", "ttt" "t"),
            ("has_table_privilege('metadb.settings', 'SELECT')", "ttt" "t"), ("has_table_privilege('kv', 'SELECT WITH GRANT OPTION')", "tff" "f"),
            ("has_table_privilege('app', 'kv', 'INSERT')", "ttt" "f"), ("has_table_privilege('ro', 'kv', 'INSERT')", "fff" "f"),
            ("has_column_privilege('kv', 'value', 'UPDATE')", "ttf" "f"), ("has_any_column_privilege('kv', 'SELECT')", "ttt" "f"),
            ("has_database_privilege('metadb', 'CONNECT')", "ttt" "t"), ("has_database_privilege('metadb', 'CREATE')", "tff" "f"),
            ("has_schema_privilege('public', 'USAGE')", "ttt" "t"), ("has_schema_privilege('public', 'CREATE')", "tff" "f"),
            ("has_function_privilege('metadb.flush()', 'EXECUTE')", "tff" "f"), ("has_function_privilege('version()', 'EXECUTE')", "ttt" "t"),
            ("pg_has_role('app', 'MEMBER')", "ttf" "f"), ("pg_has_role('pg_read_all_stats', 'USAGE')", "tff" "f")):
        got = b"".join(told(c, call) for c in (admin, app, ro, elsewhere)).decode()
        assert got == answers, "%s: got %s, want %s" % (call, got, answers)
    for state, call in (("42P01", "has_table_privilege('nothere', 'SELECT')"), ("22023", "has_table_privilege('kv', 'SEE')"),
                        ("42704", "has_table_privilege('nobody', 'kv', 'SELECT')"), ("3D000", "has_database_privilege('nowhere', 'CONNECT')"),
                        ("3F000", "has_schema_privilege('nothere', 'USAGE')"), ("42703", "has_column_privilege('kv', 'nothere', 'SELECT')"),
                        ("42704", "pg_has_role('nobody', 'USAGE')")):
        refused(state, ro.query, "select " + call)
    assert ro.query("select has_table_privilege(99999::oid, 'SELECT')")[0][2:6] == b"\xff" * 4
    # What the server's rules and paths are is for superusers.
    for sql in ("select * from metadb.settings where name = 'auth.rule'", "select * from pg_settings where name = 'auth.rule'",
                "select * from metadb.settings where name = 'tls.key'"):
        assert len(admin.query(sql)) == 1 and ro.query(sql) == [], sql
    assert len(ro.query("select * from metadb.settings where name = 'max_connections'")) == 1
    refused("42501", ro.query, "select current_setting('auth.rule') from pg_class limit 1")
    for c in (ro, app, admin, elsewhere):
        c.close()


@test
def passwords_are_valid_until_then(p):
    def until():
        return admin.query("select rolvaliduntil from pg_roles where rolname = 'brief'")[0][6:]

    admin = Conn(p.port).login("metadb", "root")
    admin.query("create role brief login password 'brief-pass' valid until '2001-02-03 04:05:06+00'")
    assert until() == b"2001-02-03 04:05:06+00", until()
    late = refused("28P01", Conn(p.port).login, "brief", "brief-pass")
    wrong = refused("28P01", Conn(p.port).login, "brief", "wrong")
    assert late.text == wrong.text, "it can be told from a wrong password"
    admin.query("alter role brief valid until '2999-01-01'")
    Conn(p.port).login("brief", "brief-pass").close()
    admin.query("alter role brief valid until 'infinity'")
    assert admin.query("select rolvaliduntil from pg_roles where rolname = 'brief'")[0][2:6] == b"\xff" * 4
    Conn(p.port).login("brief", "brief-pass").close()
    refused("22007", admin.query, "alter role brief valid until 'tomorrow or so'")
    refused("42501", Conn(p.port).login("brief", "brief-pass").query, "alter role brief password 'x' valid until 'infinity'")
    admin.query("alter role brief valid until '2001-02-03'")
    p.server.kill()
    p.start()
    refused("28P01", Conn(p.port).login, "brief", "brief-pass")
    Conn(p.port).login("metadb", "root").query("drop role brief")


@test
def roles_may_what_they_were_given(p):
    ro, app = Conn(p.port).login("ro", "ro-pass"), Conn(p.port).login("app", "app-pass")
    app.query("insert into kv (key, value) values ('a', 'x')")
    assert len(ro.query("select * from kv where key = 'a'")) == 1
    for sql in ("insert into kv (key, value) values ('b', 'x')", "delete from kv where key = 'a'",
                "copy kv (key, value) from stdin", "select * from kv where key = 'a' for update",
                "explain analyze delete from kv where key = 'a'", "select make_path('/x')",
                "select * from metadb.flush()", "create role x", "drop role app", "alter role ro superuser",
                "grant all on database metadb to ro"):
        refused("42501", ro.query, sql)
        assert ro.query("select 1")
    # Writes of a pipeline with a Sync each take another way.
    ro.send(b"".join(
        msg("P", b"\0insert into kv (key, value) values ('p%d', 'x')\0\0\0" % i) + msg("B", b"\0\0\0\0\0\0\0\0") +
        msg("E", b"\0\0\0\0\0") + msg("S") for i in range(3)))
    for i in range(3):
        refused("42501", ro.ready)
    assert ro.query("select * from kv where key >= 'p' and key < 'q'") == []
    other = Conn(p.port).login("ro", "ro-pass", "postgres")
    refused("42501", other.query, "select * from kv where key = 'a'")
    refused("42501", other.query, "copy (select * from kv where key = 'a') to stdout")
    # What is open follows.
    p.admin("grant insert on database metadb to ro", "revoke select on database metadb from ro")
    ro.query("insert into kv (key, value) values ('b', 'x')")
    refused("42501", ro.query, "insert into kv (key, value) values ('c', 'x') returning key")
    refused("42501", ro.query, "select * from kv where key = 'b'")
    p.admin("drop role ro")
    refused("42501", ro.query, "insert into kv (key, value) values ('d', 'x')")
    refused("28P01", Conn(p.port).login, "ro", "ro-pass")
    admin = Conn(p.port).login("metadb", "root")
    refused("55006", admin.query, "drop role metadb")
    admin.query("create role boss login superuser password 'boss-pass'")
    refused("2BP01", Conn(p.port).login("boss", "boss-pass").query, "drop role metadb")
    admin.query("drop role boss")
    refused("42501", admin.query, "alter role metadb nosuperuser")
    refused("42710", admin.query, "create role app")
    refused("42704", admin.query, "alter role nobody password 'x'")
    admin.query("drop role if exists nobody")
    refused("3D000", admin.query, "grant select on database nowhere to app")
    refused("0A000", admin.query, "create role x createdb")
    admin.query("begin")
    refused("25001", admin.query, "create role x")


@test
def what_was_answered_holds_for_the_next_statement(p):
    admin = Conn(p.port).login("metadb", "root")
    admin.query("create role turn login password 'turn-pass'")
    turns = [Conn(p.port).login("turn", "turn-pass") for _ in range(3)]
    put = "insert into kv (key, value) values ('turn', 'x') on conflict (key) do update set value = excluded.value"
    for i in range(300):
        admin.query("grant insert on database metadb to turn")
        turns[i % 3].query(put)
        admin.query("revoke insert on database metadb from turn")
        refused("42501", turns[i % 3].query, put)
    admin.query("drop role turn")
    admin.query("delete from kv where key = 'turn'")


# -- TLS ----------------------------------------------------------------------------------------

@test
def plain_bytes_ahead_of_the_handshake_are_refused(p):
    c = Conn(p.port)
    c.send(SSL_REQUEST + startup("app"))
    first = c.sock.recv(1)
    assert first == b"N", first
    refused("08P01", c.message)
    c.ends()


@test
def direct_tls_needs_the_name_of_the_protocol(p):
    Conn(p.port, p.tls(alpn=["postgresql"]), direct=True).login("app", "app-pass").close()
    for alpn in (None, ["http/1.1"]):
        try:
            c = Conn(p.port, p.tls(alpn=alpn), direct=True)
            c.send(startup("app"))
            c.message()
            raise AssertionError("served with ALPN %r" % alpn)
        except (ssl.SSLError, ConnectionError, Closed):
            pass


@test
def cancel_requests_come_in_both_ways(p):
    c = Conn(p.port, p.tls()).login("app", "app-pass")
    for tls in (None, p.tls()):
        c.send(msg("Q", b"select pg_sleep(30)\0"))
        time.sleep(0.2)
        other = Conn(p.port, tls)
        other.send(struct.pack("!II", 16, 80877102) + c.key)
        other.ends()
        refused("57014", c.ready)
    other = Conn(p.port)
    other.send(struct.pack("!II", 16, 80877102) + c.key[:4] + b"none")
    other.ends()
    assert c.query("select 1")


@test
def many_messages_in_one_record_are_answered(p):
    c = Conn(p.port, p.tls()).login("app", "app-pass")
    c.send(b"".join(msg("Q", b"select %d\0" % i) for i in range(700)))
    for i in range(700):
        assert c.ready() == [b"\0\1" + struct.pack("!I", len(str(i))) + str(i).encode()]
    c.send(msg("X"))
    c.ends()


@test
def a_tls_client_that_does_not_read_costs_little(p):
    c = Conn(p.port, p.tls()).login("app", "app-pass")
    c.query("insert into kv (key, value) values ('big', '%s')" % ("x" * 200000))
    before = memory(p.server.pid)
    c.send(b"".join(msg("Q", b"select value from kv where key = 'big'\0") for _ in range(300)))
    time.sleep(1)
    grown = memory(p.server.pid) - before
    for _ in range(300):
        rows = c.ready()
        assert len(rows) == 1 and len(rows[0]) > 200000
    assert grown < 24 << 20, "grown by %d MB" % (grown >> 20)


@test
def unfinished_messages_share_their_memory(p):
    """memory.messages is 8 MB here: what goes beyond it is refused, and serves on."""
    def bytes_held():
        c = Conn(p.port).login("app", "app-pass")
        row = c.query("select bytes from metadb.memory where what = 'unfinished messages'")
        c.close()
        return int(row[0][6:])

    def long_query(size):
        return msg("Q", b"select '" + b"x" * size + b"'\0")

    other = Conn(p.port).login("app", "app-pass")
    for tls in (None, p.tls()):
        whole = long_query(900000)
        c = Conn(p.port, tls).login("app", "app-pass")
        c.send(whole)
        assert len(c.ready()[0]) > 900000
        assert bytes_held() == 0
        waiting = []
        for _ in range(16):  # all begin, none ends; the last ones go beyond the budget
            waiting.append(Conn(p.port, p.tls() if tls else None).login("app", "app-pass"))
            waiting[-1].send(whole[:-10])
        end = time.monotonic() + 10
        while bytes_held() < 5 << 20:
            assert time.monotonic() < end, "they do not count"
        assert bytes_held() <= 8 << 20
        assert other.query("select 1")
        served = 0
        for w in waiting:
            w.send(whole[-10:])
            try:
                served += len(w.ready()[0]) > 900000
            except Refused as e:
                assert e.state == "53200", str(e)
            assert len(w.query("select 1")) == 1
        assert 5 <= served < 16, served
        assert bytes_held() == 0
        for w in waiting:
            w.close()

        # Of an extended message everything up to Sync is dropped; of COPY the whole.
        big = 9 << 20
        c.send(msg("P", b"\0select '" + b"x" * big + b"'\0\0\0") + msg("H") + msg("B", b"\0\0\0\0\0\0\0\0"))
        refused("53200", c.message)
        c.send(msg("S"))
        assert c.message() == ("Z", b"I")
        c.query("begin")
        refused("53200", c.query, "select '%s'" % ("x" * big))
        refused("25P02", c.query, "select 1")
        c.query("rollback")
        c.send(msg("Q", b"copy kv (key, value) from stdin\0"))
        assert c.message()[0] == "G"
        c.send(msg("d", b"unfinished-1\tx\n") + msg("d", b"unfinished-2\t" + b"x" * big + b"\n") + msg("c"))
        refused("53200", c.ready, text="message")
        assert c.query("select key from kv where key = 'unfinished-1'") == []
        c.send(msg("d", b"x" * big))  # outside COPY it is dropped in any case
        c.query("select 1")

        # Whoever goes gives back what it held, also in the middle of one that is dropped.
        gone = Conn(p.port, p.tls() if tls else None).login("app", "app-pass")
        gone.send(whole[:-10])
        half = Conn(p.port, p.tls() if tls else None).login("app", "app-pass")
        half.send(long_query(big)[:big - 100])
        time.sleep(0.2)
        gone.abort()
        half.abort()
        end = time.monotonic() + 10
        while bytes_held() > 0:
            assert time.monotonic() < end, "not given back"
        c.close()
    other.close()


def memory(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return sum(int(line.split()[1]) * 1024 for line in f if line.startswith("Private_"))


@test
def abrupt_ends_do_no_harm(p):
    rng = random.Random(7)
    descriptors = len(os.listdir("/proc/%d/fd" % p.server.pid))
    for i in range(150):
        c = Conn(p.port)
        c.send(SSL_REQUEST)
        if i % 3 == 0:
            c.send(rng.randbytes(rng.randrange(1, 300)))
        elif i % 3 == 1:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            half = p.tls().wrap_bio(incoming, outgoing, server_hostname="localhost")
            try:
                half.do_handshake()
            except ssl.SSLWantReadError:
                pass
            hello = outgoing.read()
            c.send(hello[:rng.randrange(1, len(hello) + 1)])
        else:
            c = Conn(p.port, p.tls())
            c.send(startup("app"))
            if i % 2:
                c.request()
        (c.abort if i % 2 else c.close)()
    Conn(p.port, p.tls()).login("app", "app-pass").close()
    end = time.monotonic() + 10
    while len(os.listdir("/proc/%d/fd" % p.server.pid)) > descriptors:
        assert time.monotonic() < end, "descriptors are left"
        time.sleep(0.1)


@test
def without_descriptors_clients_are_dropped_and_the_log_is_short(p):
    old = Conn(p.port, p.tls()).login("app", "app-pass")
    limits = resource.prlimit(p.server.pid, resource.RLIMIT_NOFILE)
    used = {int(n) for n in os.listdir("/proc/%d/fd" % p.server.pid)}
    places = 5
    limit = [n for n in range(len(used) + places + 1) if n not in used][places]
    before, began = p.read_log().count("net.descriptors_exhausted"), time.monotonic()
    kept, dropped = [], 0
    try:
        resource.prlimit(p.server.pid, resource.RLIMIT_NOFILE, (limit, limits[1]))
        while dropped < 300:
            c = Conn(p.port)
            try:
                c.send(SSL_REQUEST)
                good = c.sock.recv(1) == b"S"
                if good:  # the last that found a place
                    c.sock = p.tls().wrap_socket(c.sock, server_hostname="localhost")
                    kept.append(c.login("app", "app-pass"))
            except (OSError, Closed):
                good = False
            dropped += not good
            assert len(kept) <= places, "nobody is dropped"
        p.wait_log("net.descriptors_exhausted", before + 1)
        old.query("select 1")
        said = p.read_log().count("net.descriptors_exhausted") - before
        assert said <= 1 + time.monotonic() - began, "said %d times" % said
    finally:
        resource.prlimit(p.server.pid, resource.RLIMIT_NOFILE, limits)
    for c in kept:
        c.close()
    old.close()
    Conn(p.port, p.tls()).login("app", "app-pass").close()


@test
def certificates_are_replaced_while_serving(p):
    old = Conn(p.port, p.tls()).login("app", "app-pass")
    before = old.sock.getpeercert(True)
    with open(p.live[0], "w") as f:
        f.write("not a certificate\n")
    p.wait_log("tls.not_loaded")
    assert Conn(p.port, p.tls()).sock.getpeercert(True) == before
    count = p.read_log().count("tls.reloaded")
    p.install("renewed")
    p.wait_log("tls.reloaded", count + 1)
    end = time.monotonic() + 10
    while Conn(p.port, p.tls()).sock.getpeercert(True) == before:
        assert time.monotonic() < end, "the old certificate is still served"
        time.sleep(0.1)
    assert old.query("select 1")
    # A certificate of somebody else's is not the server's.
    p.install("other")
    p.hangup()
    try:
        Conn(p.port, p.tls())
        raise AssertionError("the client accepts another authority")
    except ssl.SSLError:
        pass
    p.install("server")
    p.hangup()
    assert Conn(p.port, p.tls()).sock.getpeercert(True) == before


# -- rules --------------------------------------------------------------------------------------

@test
def rules_decide_and_are_read_again(p):
    p.write(["host all metadb 127.0.0.1/32 scram-sha-256", "host postgres app all reject",
             "hostssl metadb app 127.0.0.0/8 scram-sha-256", "hostssl all alice,few all cert"], auth__timeout="2s")
    p.hangup()
    refused("28000", Conn(p.port).login, "app", "app-pass", text='no pg_hba.conf entry for host "127.0.0.1"')
    refused("28000", Conn(p.port, p.tls()).login, "app", "app-pass", "postgres", text="pg_hba.conf rejects connection")
    Conn(p.port, p.tls()).login("app", "app-pass").close()
    Conn(p.port, p.tls("alice")).login("alice").close()
    refused("28000", Conn(p.port, p.tls("alice")).login, "few", text='certificate authentication failed for user "few"')
    refused("28000", Conn(p.port, p.tls()).login, "alice", text="valid client certificate")
    refused("28000", Conn(p.port).login, "alice", text="no encryption")
    # What cannot be read changes nothing.
    p.write(["host all all all trust", "host all all all trusted"])
    p.hangup("server.not_reloaded")
    refused("28000", Conn(p.port).login, "app", "app-pass")
    p.admin("select 1")


@test
def a_certificate_of_another_authority_is_refused(p):
    try:
        c = Conn(p.port, p.tls("other"))
        c.login("alice")
        raise AssertionError("let in")
    except (ssl.SSLError, ConnectionError, Closed):
        pass


@test
def the_log_holds_no_password_and_every_change(p):
    log = p.read_log()
    for secret in ("app-pass", "few-pass", "ro-pass", "root2", "ready-made", "SCRAM-SHA-256$"):
        assert secret not in log, secret
    for line in ('audit.role statement="CREATE ROLE" role="app" by="metadb"', 'audit.role statement="GRANT" role="ro"',
                 'audit.role statement="DROP ROLE" role="ro"', "auth.refused user="):
        assert line in log, line
    p.hangup("server.not_reloaded")
    c = Conn(p.port).login("metadb", "root")
    c.query("select * from metadb.flush()")
    p.wait_log('audit.function function="flush" by="metadb"')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    o = parser.parse_args()
    failed = 0
    p = Place(os.path.abspath(o.binary))
    for fn in TESTS:
        try:
            fn(p)
            print("ok security-" + fn.__name__, flush=True)
        except LookupError as e:
            print("skip security-%s %s" % (fn.__name__, e), flush=True)
        except Exception as e:
            failed += 1
            where = traceback.extract_tb(e.__traceback__)
            lines = [str(f.lineno) for f in where if f.filename == os.path.abspath(__file__)]
            print("FAIL security-%s %s %s (lines %s)" % (fn.__name__, type(e).__name__, str(e)[:300], " ".join(lines)), flush=True)
        if fn is without_a_password_only_this_host_is_served:
            p.stop()
    try:
        p.stop()
        assert not any(w in p.read_log() for w in ("Sanitizer", "runtime error", "assertion"))
        print("ok security-stop")
    except Exception as e:
        failed += 1
        print("FAIL security-stop", str(e)[:2000])
    shutil.rmtree(p.dir, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
