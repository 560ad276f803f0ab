"""What the Python clients' tests share: steps that are reported by name, and rows to work with.

The connection is in PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSWORD, PGSSLMODE and PGSSLROOTCERT, as libpq
reads them; clients that do not read them get them from `connection()`.
"""
import datetime
import os
import sys
import traceback

CLIENT = os.path.basename(sys.argv[0]).rsplit(".", 1)[0].replace("use_", "")
# Ids below 2^53, of this run alone: the process number changes between runs of one server.
DIRECTORY = 10**14 + os.getpid() * 10**6 + (os.getppid() % 1000) * 1000
NAME = "client_%s_%d" % (CLIENT, DIRECTORY)
WHEN = datetime.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=datetime.timezone.utc)
COLUMNS = "pid, name, id, type, mode, uid, size, mtime, fid, class, attr"
MKDIR = "INSERT INTO meta (pid, name, id, type) VALUES (0, '%s', %d, 'd')" % (NAME, DIRECTORY)
CLEAR = "DELETE FROM meta WHERE pid = %d AND name >= 'a' AND name < 'z'" % DIRECTORY
RMDIR = "DELETE FROM meta WHERE pid = 0 AND name = '%s'" % NAME
failed = 0


def row(i):
    """Values of COLUMNS, one of each type that the table has."""
    return (DIRECTORY, "f%04d" % i, DIRECTORY + 1 + i, "f", 0o400 + i % 8, i, 10 * i, WHEN + datetime.timedelta(seconds=i),
            -i, i % 100, bytes([0, 255, i % 256]))


def connection():
    """Environment's connection by the names of Python's drivers."""
    e = os.environ
    return {"host": e["PGHOST"], "port": int(e["PGPORT"]), "user": e["PGUSER"], "database": e["PGDATABASE"],
            "password": e.get("PGPASSWORD") or None}


def tls():
    return os.environ.get("PGSSLMODE", "disable") != "disable"


def eq(got, want):
    assert got == want, "got %r, want %r" % (got, want)


def report(step, error=None):
    global failed
    if error is None:
        print("ok %s %s" % (CLIENT, step), flush=True)
        return
    failed += 1
    line = traceback.extract_tb(error.__traceback__)[-1].lineno
    print("FAIL %s %s %s: %s (line %d)" % (CLIENT, step, type(error).__name__, " ".join(str(error).split())[:300], line), flush=True)


def steps(namespace):
    return [(name[5:], fn) for name, fn in namespace.items() if name.startswith("step_")]


def run(namespace, *args, between=None):
    """Every step_NAME in the order of the file; BETWEEN cleans up behind each."""
    for name, fn in steps(namespace):
        try:
            fn(*args)
            report(name)
        except Exception as e:  # noqa: BLE001 - it is the report
            report(name, e)
        if between:
            between()
    sys.exit(1 if failed else 0)
