#!/usr/bin/env python3
"""Kill a loaded server again and again, and check that nothing acknowledged is lost or doubled.

    crash.py --binary build/debug/metadb --kills 200
    crash.py --binary build/debug/metadb --site log.sync --kills 10

One data directory lives through all rounds.  A round starts the server, runs the workers, ends the
server by SIGKILL at a random moment or at an armed fault point, starts it again and compares.
Every --replay-every rounds the whole kept log is replayed into an empty directory, and both must
have the same state hash.  Exit status 0 only if every round was clean.
"""
import argparse
import glob
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
from pgclient import Client, Lost, PgError  # noqa: E402
from server import Server  # noqa: E402
from workload import HOT, Worker  # noqa: E402

# Small memory and short retention, so that flushes, cuts and segment changes happen all the time.
SETTINGS = ["--log.keep_all=true", "--memtable.bytes=128kB", "--mvcc.retention=50ms", "--log.segment_bytes=1MB"]


def fault_sites(root):
    """The fault points of append, apply, flush and cut, from the source itself."""
    found = set()
    for folder in ("raft", "kv", "cluster"):
        for path in glob.glob(os.path.join(root, "src", folder, "*.c")):
            found |= set(re.findall(r'fault_point\("([a-z_.]+)"\)', open(path).read()))
    return sorted(s for s in found if s.split(".")[0] in ("log", "kv", "shard", "sink"))


class Run:
    def __init__(self, o):
        self.o = o
        self.rng = random.Random(o.seed)
        self.dir = tempfile.mkdtemp(prefix="metadb-crash.", dir=o.tmp)
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "server.log")
        self.workers = [Worker(i, o.seed) for i in range(o.workers)]
        self.kills = self.clean_exits = self.replays = 0
        self.by_site = {}

    def start(self, env=None, data=None, *more):
        s = Server(self.o.binary, data or self.data, *SETTINGS, *self.o.set, *more, env=env, log=self.log, wrap=self.wrap())
        return s

    def wrap(self):
        return ()

    def fail(self, lines):
        for line in lines:
            print("  " + line)
        print("data and log kept in %s; seed %d" % (self.dir, self.o.seed))
        sys.exit(1)

    def prepare(self):
        s = self.start()
        assert s.wait_ready()
        c = Client(s.port)
        c.query("INSERT INTO meta (pid, name, id, type) VALUES (0, 'hot', %d, 'd') ON CONFLICT DO NOTHING" % HOT)
        for w in self.workers:
            w.prepare(c)
        c.close()
        return s

    def drained(self, c):
        """Waits until quota and index have taken everything."""
        for _ in range(600):
            if int(c.value("SELECT coalesce(sum(pending), 0) FROM metadb.sinks")) == 0:
                return
            time.sleep(0.05)
        self.fail(["the queue of quota and index items does not drain"])

    def verify(self, s):
        c = Client(s.port)
        wrong = []
        for w in self.workers:
            if w.problem:
                wrong.append(w.problem)
            wrong += w.verify(c)
        self.drained(c)
        for w in self.workers:
            wrong += w.recount(c)
        for pid in [HOT] + [d for w in self.workers for d in w.dirs]:
            a = c.value("SELECT num_children FROM meta WHERE pid = %d AND name = '_attr_'" % pid)
            n = c.value("SELECT count(*) FROM meta WHERE pid = %d AND name <> '_attr_'" % pid)
            if a != n:
                wrong.append("directory %d: num_children %s, a recount gives %s" % (pid, a, n))
        wrong += ["metadb.check: %s" % r for r in c.rows("SELECT * FROM metadb.check()")]
        c.close()
        if wrong:
            self.fail(wrong[:40])

    def hashes(self, s):
        c = Client(s.port)
        self.drained(c)
        rows = c.rows("SELECT shard, hash FROM metadb.state_hash() ORDER BY shard")
        c.close()
        return rows

    def replay(self, s):
        """The same log into an empty store gives the same state."""
        want = self.hashes(s)
        code = s.stop()
        if code != 0:
            self.fail(["SIGTERM: exit status %s" % code])
        copy = os.path.join(self.dir, "replay")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.data, copy, ignore=lambda d, names: ["store"] if d == self.data else [])
        r = self.start(None, copy, "--memtable.bytes=64MB", "--recovery.empty_store=true")
        if not r.wait_ready():
            self.fail(["the copy for the replay does not start"])
        got = self.hashes(r)
        r.stop()
        shutil.rmtree(copy)
        if want != got:
            self.fail(["state hashes differ: %s, replayed %s" % (want, got)])
        self.replays += 1

    def round(self, number, site):
        env = {}
        if site:
            env["METADB_FAULT"] = "%s=kill:%d" % (site, self.rng.choice([1, 1, 2, 3, 5, 8, 13, 40]))
        s = self.start(env)
        if s.wait_ready():
            stop = threading.Event()
            threads = [threading.Thread(target=w.run, args=(s.port, stop), daemon=True) for w in self.workers]
            for t in threads:
                t.start()
            end = time.monotonic() + (self.o.site_seconds if site else self.rng.uniform(0.02, self.o.seconds))
            while time.monotonic() < end and s.alive():
                time.sleep(0.01)
            if s.alive():
                s.kill()
                where = "random"
            else:
                where = site or "by itself"
                code = s.wait()
                if code != 137 or not site:
                    self.fail(["the server ended by itself with status %s" % code])
            stop.set()
            for t in threads:
                t.join(30)
        else:
            code = s.wait()
            if not site or code != 137:
                self.fail(["the server does not start: status %s" % code])
            where = site + " at start"
        self.kills += 1
        self.by_site[where] = self.by_site.get(where, 0) + 1
        s = self.after_kill()
        self.verify(s)
        if self.o.replay_every and number % self.o.replay_every == 0:
            self.replay(s)
        else:
            s.kill()

    def after_kill(self):
        s = self.start()
        if not s.wait_ready():
            self.fail(["the server does not start again: status %s" % s.wait()])
        return s

    def go(self):
        self.prepare().kill()
        sites = self.o.site or fault_sites(os.path.join(HERE, "..", ".."))
        for number in range(1, self.o.kills + 1):
            self.round(number, sites[number // 2 % len(sites)] if sites and number % 2 == 0 else None)
        if self.o.replay_every:
            s = self.start()
            assert s.wait_ready()
            self.verify(s)
            self.replay(s)
        acked = sum(w.acked for w in self.workers)
        print("%d kills, %d acknowledged statements, %d in doubt, %d replays with equal hashes"
              % (self.kills, acked, sum(w.maybe for w in self.workers), self.replays))
        for k, v in sorted(self.by_site.items()):
            print("  %-24s %d" % (k, v))
        shutil.rmtree(self.dir)
        return acked > 0


def options(p):
    p.add_argument("--binary", required=True)
    p.add_argument("--kills", type=int, default=200)
    p.add_argument("--workers", type=int, default=8)
    p.add_argument("--seconds", type=float, default=0.5, help="longest load before a random kill")
    p.add_argument("--site-seconds", type=float, default=2.0, help="longest wait for an armed fault point")
    p.add_argument("--site", action="append", default=[], help="only these fault points")
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--replay-every", type=int, default=20)
    p.add_argument("--set", action="append", default=[], metavar="--NAME=VALUE", help="a further setting of the server")
    p.add_argument("--tmp", default=tempfile.gettempdir())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(parser)
    sys.exit(0 if Run(parser.parse_args()).go() else 1)
