"""metadb and PostgreSQL 15 side by side, on loopback ports of their own, with the same tables and rows.

PostgreSQL's data folder is made new, and belongs to a user without rights when we are root: initdb and
postgres refuse to work as root.
"""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import pgclient  # noqa: E402
import server  # noqa: E402

# The clock of both sides is never compared; durability of PostgreSQL's side is not what is tested.
POSTGRESQL_CONF = """
listen_addresses = '127.0.0.1'
port = %d
unix_socket_directories = '%s'
fsync = off
synchronous_commit = off
full_page_writes = off
shared_buffers = 32MB
max_connections = 20
autovacuum = off
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
log_min_messages = fatal
lc_messages = 'C'
max_prepared_transactions = 0
default_text_search_config = 'pg_catalog.simple'
"""

# What metadb's tables look like to a client. The server draws seq: a trigger does, and no statement of the
# sequences names it.
SCHEMA = """
CREATE SEQUENCE versions START 1100000000000000000;
CREATE FUNCTION draw_version() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN NEW.seq := nextval('public.versions'); RETURN NEW; END $$;
CREATE TABLE kv (key text PRIMARY KEY, value bytea, seq bigint, expires_at timestamptz);
CREATE TABLE object (bucket text, key text, size bigint DEFAULT 0, etag text, mtime timestamptz DEFAULT now(),
  expires_at timestamptz, attr bytea, seq bigint, PRIMARY KEY (bucket, key));
CREATE TABLE meta (pid bigint, name text, id bigint NOT NULL, type "char" NOT NULL DEFAULT 'f', mode integer DEFAULT 420,
  uid bigint DEFAULT 0, gid bigint DEFAULT 0, size bigint DEFAULT 0, nlink integer DEFAULT 1, num_children bigint,
  parent bigint, atime timestamptz DEFAULT now(), mtime timestamptz DEFAULT now(), ctime timestamptz DEFAULT now(),
  btime timestamptz DEFAULT now(), rdev bigint, fid bigint, class smallint, attr bytea, seq bigint,
  PRIMARY KEY (pid, name));
CREATE TRIGGER versions BEFORE INSERT OR UPDATE ON kv FOR EACH ROW EXECUTE FUNCTION draw_version();
CREATE TRIGGER versions BEFORE INSERT OR UPDATE ON object FOR EACH ROW EXECUTE FUNCTION draw_version();
CREATE TRIGGER versions BEFORE INSERT OR UPDATE ON meta FOR EACH ROW EXECUTE FUNCTION draw_version();
"""

DIRECTORY = 100

# Before every sequence, on both sides. Names outside of these are not written by any sequence.
CLEAN = [
    "DELETE FROM kv WHERE key >= 'a' AND key < 'z'",
    "DELETE FROM object WHERE bucket = 'b' AND key >= 'a' AND key < 'z'",
    "DELETE FROM meta WHERE pid = %d AND name >= 'a' AND name < 'z'" % DIRECTORY,
]
FILL = [
    "INSERT INTO kv (key, value) VALUES ('k1', 'one'), ('k2', 'two'), ('k3', NULL), ('k4', '\\x00ff'), ('k5', '')",
    "INSERT INTO object (bucket, key, size, etag) VALUES ('b', 'o1', 10, 'e1'), ('b', 'o2', 20, NULL), ('b', 'o3', 30, 'e3')",
    "INSERT INTO meta (pid, name, id, size, uid) VALUES (%d, 'f1', 1001, 10, 7), (%d, 'f2', 1002, 20, 7), (%d, 'f3', 1003, 30, 8)"
    % (DIRECTORY, DIRECTORY, DIRECTORY),
]
# After every sequence, from both sides: what it left behind.
STATE = [
    "SELECT key, value, expires_at FROM kv WHERE key >= 'a' AND key < 'z' ORDER BY key",
    "SELECT bucket, key, size, etag, attr FROM object WHERE bucket = 'b' AND key >= 'a' AND key < 'z' ORDER BY key",
    "SELECT pid, name, id, type, mode, uid, gid, size, nlink, rdev, fid, class, attr FROM meta"
    " WHERE pid = %d AND name >= 'a' AND name < 'z' ORDER BY name" % DIRECTORY,
]


def tool(name):
    found = glob.glob("/usr/lib/postgresql/15/bin/" + name)
    return found[0] if found else shutil.which(name)


def other_user():
    """Arguments of Popen for a user without rights; none where we have none."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return {}


class Side:
    """What both servers have in common; a session beside the ones that are compared."""

    def __init__(self, name, port):
        self.name, self.port = name, port
        self.client = None

    def connect(self):
        self.client = pgclient.Client(self.port)

    def begin(self):
        """The rows that every sequence starts from."""
        self.client.query(";".join(CLEAN[:1]))
        for sql in CLEAN[1:] + FILL:
            self.client.query(sql)

    def state(self):
        return [self.client.rows(sql) for sql in STATE]


class Postgresql(Side):
    def __init__(self, work):
        user = other_user()
        folder = os.path.join(work, "postgresql")
        os.mkdir(folder, 0o700)
        if user:
            os.chown(folder, user["user"], user["group"])
            for parent in (work,):
                os.chmod(parent, 0o711)
        data = os.path.join(folder, "data")
        subprocess.run([tool("initdb"), "-D", data, "-U", "metadb", "--locale=C", "-E", "UTF8", "-A", "trust", "-N"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/", **user)
        super().__init__("postgresql", server.free_port())
        with open(os.path.join(data, "postgresql.conf"), "a", encoding="utf-8") as f:
            f.write(POSTGRESQL_CONF % (self.port, folder))
        with open(os.path.join(work, "postgresql.log"), "wb") as log:
            self.process = subprocess.Popen([tool("postgres"), "-D", data], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd="/", preexec_fn=server.end_with_test, start_new_session=True, **user)
        first = self.wait_for("postgres")
        first.query("CREATE DATABASE metadb")
        first.close()
        self.connect()
        self.client.query(SCHEMA)

    def wait_for(self, database):
        while True:
            try:
                return pgclient.Client(self.port, database=database)
            except (pgclient.Lost, pgclient.PgError):
                if self.process.poll() is not None:
                    raise RuntimeError("postgres ended with %d" % self.process.returncode)
                time.sleep(0.05)

    def stop(self):
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        return True


class Metadb(Side):
    def __init__(self, work, binary):
        self.log = os.path.join(work, "metadb.log")
        self.server = server.Server(binary, os.path.join(work, "metadb"), log=self.log)
        if not self.server.wait_ready():
            raise RuntimeError("metadb did not start: " + open(self.log, encoding="utf-8", errors="replace").read()[-2000:])
        super().__init__("metadb", self.server.port)
        self.connect()
        self.client.query("INSERT INTO meta (pid, name, id, type) VALUES (0, 'differential', %d, 'd')" % DIRECTORY)

    def stop(self):
        """True if it ended by itself with nothing to say about memory."""
        self.client.close()
        code = self.server.stop()
        with open(self.log, encoding="utf-8", errors="replace") as f:
            said = f.read()
        bad = [line for line in said.splitlines() if "Sanitizer" in line or "runtime error" in line or "assertion" in line]
        for line in bad:
            print(line)
        return code == 0 and not bad
