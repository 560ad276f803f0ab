#!/usr/bin/env python3
"""Load many entries and watch the server's memory: it must stay inside its budget.

    load.py --binary build/release/src/metadb --rows 10000000
    load.py --binary build/release/src/metadb --rows 1000000 --budget 384MB

Resident memory is sampled all the time and must not exceed the budget plus --slack (code, stacks,
the log's buffers, RocksDB's own).  Afterwards every directory is counted, the server is restarted
and counted again.  Without --budget the default counts: a quarter of the machine.
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


def size(text):
    m = re.fullmatch(r"(\d+)(kB|MB|GB)", text)
    return int(m[1]) * UNITS[m[2]]


def machine_memory():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def resident(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Watch(threading.Thread):
    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0, threading.Event()

    def run(self):
        while not self.over.wait(0.05):
            try:
                self.peak = max(self.peak, resident(self.pid))
            except OSError:
                return


def copy_in(c, first, last, dirs):
    """One COPY of rows FIRST to LAST, round robin over DIRS."""
    c._send(b"Q" + struct.pack("!I", 4 + len(COPY)) + COPY)
    kind, _ = c._message()
    assert kind == "G", kind
    block = []
    for i in range(first, last):
        block.append("%d\tn%014d\t%d\n" % (dirs[i % len(dirs)], i, 10**13 + i))
        if len(block) == 2000:
            data = "".join(block).encode()
            c._send(b"d" + struct.pack("!I", 4 + len(data)) + data)
            block = []
    data = "".join(block).encode()
    c._send(b"d" + struct.pack("!I", 4 + len(data)) + data + b"c" + struct.pack("!I", 4))
    return c._until_ready()[1]


COPY = b"COPY meta (pid, name, id) FROM STDIN\0"


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


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", required=True)
    p.add_argument("--rows", type=int, default=10_000_000)
    p.add_argument("--dirs", type=int, default=64)
    p.add_argument("--budget", help="memory.budget, e.g. 512MB")
    p.add_argument("--slack", default="256MB")
    p.add_argument("--chunk", type=int, default=250_000, help="rows of one COPY")
    p.add_argument("--tmp", default=tempfile.gettempdir())
    o = p.parse_args()
    budget = size(o.budget) if o.budget else machine_memory() // 4
    allowed = budget + size(o.slack)
    top = tempfile.mkdtemp(prefix="metadb-memory.", dir=o.tmp)
    settings = ["--memory.budget=" + o.budget] if o.budget else []
    log = os.path.join(top, "server.log")
    s = Server(o.binary, os.path.join(top, "data"), *settings, log=log)
    ok = True
    try:
        assert s.wait_ready()
        w = Watch(s.pid)
        w.start()
        c = Client(s.port, timeout=600)
        dirs = [1_000_000 + d for d in range(o.dirs)]
        for d in dirs:
            c.query("INSERT INTO meta (pid, name, id, type) VALUES (0, 'd%d', %d, 'd')" % (d, d))
        began = time.monotonic()
        for first in range(0, o.rows, o.chunk):
            copy_in(c, first, min(first + o.chunk, o.rows), dirs)
        loaded = time.monotonic() - began
        found = counts(c, dirs)
        c.close()
        w.over.set()
        w.join()
        print("%d entries in %.1f s (%.0f rows/s); resident at most %d MB, budget %d MB"
              % (o.rows, loaded, o.rows / loaded, w.peak >> 20, budget >> 20))
        if found != o.rows:
            print("FAIL %d entries found" % found)
            ok = False
        if w.peak > allowed:
            print("FAIL resident memory exceeds budget and slack (%d MB)" % (allowed >> 20))
            ok = False
        s.stop()
        began = time.monotonic()
        s = Server(o.binary, os.path.join(top, "data"), *settings, log=log)
        assert s.wait_ready()
        print("restart to ready: %.2f s, resident %d MB" % (time.monotonic() - began, resident(s.pid) >> 20))
        c = Client(s.port, timeout=600)
        if counts(c, dirs) != o.rows:
            print("FAIL entries are missing after the restart")
            ok = False
        c.close()
    except PgError as e:
        print("FAIL %s" % e)
        ok = False
    finally:
        s.stop()
        shutil.rmtree(top)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
