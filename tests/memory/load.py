#!/usr/bin/env python3
"""Load many entries: memory stays inside its budget, and a start does not depend on how many there are.

    load.py --binary build/release/src/metadb --steps 1000000,3000000,10000000
    load.py --binary build/release/src/metadb --steps 10000000 --dirs 1          one directory
    load.py --binary build/release/src/metadb --steps 1000000 --budget 384MB

At each step the server is killed in the moment the last row was acknowledged, and started again. What
the start has to replay is counted (metadb.counters: recovered_entries, recovered_bytes) and
must be below --replay plus what arrives at the rate of this load while a flush waits and runs: a bound
that does not know the number of rows. Resident memory is sampled all the time and must not exceed the
budget plus --slack (code, stacks, the log's buffers, RocksDB's own). At the end every directory is
counted, the server is stopped with SIGTERM, and what the last start replays must be next to nothing.
Times are printed, not judged. Without --budget the default counts: a quarter of the machine.
"""
import argparse
import os
import re
import shutil
import struct
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from pgclient import Client, PgError  # noqa: E402
from server import Server  # noqa: E402

UNITS = {"kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
COPY = b"COPY meta (pid, name, id) FROM STDIN\0"
FIRST_DIR = 1_000_000
STOPPED_BYTES = 1 << 20


def size(text):
    m = re.fullmatch(r"(\d+)(kB|MB|GB)", text)
    return int(m[1]) * UNITS[m[2]]


def machine_memory():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def resident(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def tree_bytes(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


class Watch(threading.Thread):
    """The most memory that a process was seen with, and it at the end of each start."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.02):
            try:
                self.peak = max(self.peak, resident(self.pid))
            except OSError:
                return

    def end(self):
        self.over.set()
        self.join()
        return self.peak


def data_message(block):
    data = "".join(block).encode()
    return b"d" + struct.pack("!I", 4 + len(data)) + data


def copy_in(c, first, last, dirs):
    """One COPY of rows FIRST to LAST, round robin over DIRS."""
    c._send(b"Q" + struct.pack("!I", 4 + len(COPY)) + COPY)
    kind, _ = c._message()
    assert kind == "G", kind
    for at in range(first, last, 2000):
        c._send(data_message(["%d\tn%014d\t%d\n" % (dirs[i % len(dirs)], i, 10**13 + i) for i in range(at, min(at + 2000, last))]))
    c._send(b"c" + struct.pack("!I", 4))
    return c._until_ready()[1]


def counters(c):
    return {name: int(value) for name, value in c.rows("SELECT name, value FROM metadb.counters")}


def counts(c, dirs):
    """Entries and num_children of all directories; they must agree."""
    total = 0
    for d in dirs:
        n = int(c.value("SELECT count(*) FROM meta WHERE pid = %d AND name <> '_attr_'" % d))
        a = int(c.value("SELECT num_children FROM meta WHERE pid = %d AND name = '_attr_'" % d))
        if n != a:
            raise SystemExit("directory %d: %d entries, num_children %d" % (d, n, a))
        total += n
    return total


class Test:
    def __init__(self, o, top):
        self.o, self.data = o, os.path.join(top, "data")
        self.settings = (["--memory.budget=" + o.budget] if o.budget else []) + ["--" + s for s in o.set]
        self.log = os.path.join(top, "server.log")
        self.allowed = (size(o.budget) if o.budget else machine_memory() // 4) + size(o.slack)
        self.dirs = [FIRST_DIR + d for d in range(o.dirs)]
        self.rows = self.failures = 0
        self.server = self.watch = self.client = None

    def fail(self, text):
        print("FAIL " + text, flush=True)
        self.failures += 1

    def start(self):
        """Starts the server; seconds until it serves, and its memory then."""
        began = time.monotonic()
        self.server = Server(self.o.binary, self.data, *self.settings, log=self.log)
        self.watch = Watch(self.server.pid)
        if not self.server.wait_ready():
            raise SystemExit("FAIL the server ended instead of starting")
        took, now, peak = time.monotonic() - began, resident(self.server.pid), self.watch.peak
        self.client = Client(self.server.port, timeout=600)
        return took, now, peak

    def end(self, how):
        self.client.close()
        began = time.monotonic()
        how()
        took = time.monotonic() - began
        peak = self.watch.end()
        if peak > self.allowed:
            self.fail("resident memory of %d MB exceeds budget and slack, %d MB" % (peak >> 20, self.allowed >> 20))
        return took, peak

    def load(self, rows):
        """Up to ROWS rows in all; rows a second and log bytes a second."""
        c, began, first = self.client, time.monotonic(), self.rows
        logged = self.logged()
        while self.rows < rows:
            more = min(self.o.chunk, rows - self.rows)
            copy_in(c, self.rows, self.rows + more, self.dirs)
            self.rows += more
        took = time.monotonic() - began
        return (self.rows - first) / took, (self.logged() - logged) / took

    def logged(self):
        return int(self.client.value("SELECT count FROM metadb.log WHERE name = 'bytes'"))

    def restart(self, bound):
        """After a kill or a stop: how long, how much; no more than BOUND bytes may be replayed."""
        took, now, peak = self.start()
        n = counters(self.client)
        print("  ready after %.2f s: %d entries and %d MB replayed of a log of %d MB on disk; resident %d MB, at most %d MB before"
              % (took, n.get("recovered_entries", -1), n.get("recovered_bytes", -1) >> 20, tree_bytes(os.path.join(self.data, "log")) >> 20,
                 now >> 20, peak >> 20), flush=True)
        if "recovered_bytes" in n and n["recovered_bytes"] > bound:
            self.fail("%d MB were replayed, more than %d MB" % (n["recovered_bytes"] >> 20, bound >> 20))

    def run(self):
        self.start()
        for d in self.dirs:
            self.client.query("INSERT INTO meta (pid, name, id, type) VALUES (0, 'd%d', %d, 'd')" % (d, d))
        for step in self.o.steps:
            rate, log_rate = self.load(step)
            _, peak = self.end(self.server.kill)
            print("%d entries in %d directories (%.0f rows/s, %.0f MB/s of log), resident at most %d MB; killed"
                  % (self.rows, len(self.dirs), rate, log_rate / (1 << 20), peak >> 20), flush=True)
            self.restart(size(self.o.replay) + int(self.o.flush_wait * log_rate))
        found = counts(self.client, self.dirs)
        if found != self.rows:
            self.fail("%d entries found" % found)
        took, _ = self.end(self.server.stop)
        print("stopped in %.2f s" % took, flush=True)
        self.restart(STOPPED_BYTES)
        if counts(self.client, self.dirs) != self.rows:
            self.fail("entries are missing after the stop")
        self.end(self.server.stop)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", required=True)
    p.add_argument("--steps", default="1000000,3000000,10000000", help="rows in all at each kill (default %(default)s)")
    p.add_argument("--dirs", type=int, default=64)
    p.add_argument("--budget", help="memory.budget, e.g. 512MB")
    p.add_argument("--slack", default="256MB")
    p.add_argument("--replay", default="256MB", help="log that may wait for no reason of time (default %(default)s)")
    p.add_argument("--flush-wait", type=float, default=12, metavar="S",
                   help="a flush waits for mvcc.retention and those before it (default %(default)s)")
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="for the server")
    p.add_argument("--chunk", type=int, default=250_000, help="rows of one COPY")
    p.add_argument("--tmp", default=tempfile.gettempdir())
    o = p.parse_args()
    o.steps = [int(s) for s in o.steps.split(",")]
    top = tempfile.mkdtemp(prefix="metadb-memory.", dir=o.tmp)
    t = Test(o, top)
    try:
        t.run()
    except PgError as e:
        t.fail(str(e))
    finally:
        if t.server and t.server.alive():
            t.server.kill()
        shutil.rmtree(top)
    print("FAIL" if t.failures else "ok memory-load")
    return 1 if t.failures else 0


if __name__ == "__main__":
    sys.exit(main())
