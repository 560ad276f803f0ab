#!/usr/bin/env python3
"""Kill a loaded server again and again, and check that nothing acknowledged is lost or doubled.

    crash.py --binary build/debug/src/metadb --kills 200
    crash.py --binary build/debug/src/metadb --site log.sync --kills 10

One data directory lives through --renew-after kills, then an empty one.  A round starts the server, runs the workers, ends the
server by SIGKILL at a random moment or at an armed fault point, starts it again and compares what
is there with what the workers know.  Every other kill is at a fault point, in turn; a fault point
that never acted fails the run.  Now and then the restart itself is killed before it is ready.

The log is kept whole, and every --replay-every rounds it is replayed into an empty store: both must
have the same state hash.  The last quarter of the rounds lets the server cut its log.  Exit status 0
only if every round was clean.
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
SOURCE = os.path.join(HERE, "..", "..", "src")
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
from pgclient import Client  # noqa: E402
from server import Server  # noqa: E402
from workload import HOT, Worker  # noqa: E402

# Little memory and short retention, so that flushes, cuts, new segments and compactions happen all the time.
SETTINGS = ["--memtable.bytes=64kB", "--mvcc.retention=20ms", "--log.segment_bytes=1MB",
            "--compaction.tombstones=64", "--compaction.work=1GB", "--compaction.rate=1GB",
            "--sink.batch_records=16", "--sink.linger=1ms"]
KEEP, CUT = "--log.keep_all=on", "--log.keep_all=off"
CUT_SITES = ("log.cut", "log.cut.renamed")  # need a log that may be cut
# A node alone never gets there: state that goes from one node to another (tests/unit/kv/test_snapshot.c).
AMONG_OTHERS = re.compile(r"(kv\.dump|kv\.load|store\.rocks\.(load|load_full|seal|ingest))(\.|$)")


def fault_sites():
    """The fault points of append, apply, flush, cut and sink of a lone node, from the source itself."""
    found = set()
    for folder in ("raft", "kv", "cluster"):
        for path in glob.glob(os.path.join(SOURCE, folder, "*.c")):
            with open(path) as f:
                found |= set(re.findall(r'fault_point\("([a-z_.]+)"\)', f.read()))
    return sorted(s for s in found if re.match(r"(log|kv|shard|sink|store\.rocks)\.", s) and not AMONG_OTHERS.match(s))


class Site:
    """A fault point and how late in a run it may be told to act: later each time it did."""

    def __init__(self, name):
        self.name, self.reach, self.fired, self.missed = name, 1, 0, 0

    def arm(self, rng):
        self.nth = rng.randint(1, self.reach)
        return {"METADB_FAULT": "%s=kill:%d" % (self.name, self.nth)}

    def acted(self, early):
        self.fired += 1
        if early and self.nth * 2 > self.reach:
            self.reach = min(self.reach * 2, 512)

    def waited(self):
        self.missed += 1
        self.reach = max(1, self.nth // 4)


class Failed(Exception):
    pass


class Run:
    def __init__(self, o):
        self.o = o
        self.rng = random.Random(o.seed)
        self.dir = tempfile.mkdtemp(prefix="metadb-crash.", dir=o.tmp)
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "server.log")
        self.keep = KEEP
        self.workers = self.new_workers(o.seed)
        self.kills = self.replays = self.start_kills = 0
        self.renewed = self.acked = self.maybe = 0      # at the last renewal
        self.by_site = {}

    def clean(self):
        shutil.rmtree(self.dir)

    def new_workers(self, seed):
        return [Worker(i, seed) for i in range(self.o.workers)]

    def empty(self):
        shutil.rmtree(self.data)

    # -- servers -------------------------------------------------------------------------------
    def start(self, env=None, data=None, *more):
        writer = "--log.writer=" + self.rng.choice(self.o.writers.split(","))
        return Server(self.o.binary, data or self.data, *SETTINGS, writer, self.keep, *self.o.set, *more,
                      env=env, log=self.log)

    def started(self, *a):
        s = self.start(*a)
        if not s.wait_ready():
            self.fail(["the server does not start: status %s" % s.wait()])
        return s

    def fail(self, lines):
        raise Failed("\n  ".join(["after %d kills:" % self.kills] + lines))

    def prepare(self):
        s = self.started()
        c = Client(s.port)
        c.query("INSERT INTO meta (pid, name, id, type) VALUES (0, 'hot', %d, 'd')" % HOT)
        for w in self.workers:
            w.prepare(c)
        c.close()
        return s

    # -- what must hold -------------------------------------------------------------------------
    def drained(self, c):
        """Waits until quota and index have taken everything."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if int(c.rows("SELECT * FROM metadb.sinks")[0][1]) == 0:
                return
            time.sleep(0.002)
        self.fail(["the queue of quota and index items does not drain"])

    def converged(self, c):
        """Quota and index become what a recount gives, once removed trees are reclaimed."""
        wrong, end = [], time.monotonic() + 60
        for w in self.workers:
            while time.monotonic() < end:
                self.drained(c)
                wrong = w.recount(c)
                if not wrong:
                    break
                time.sleep(0.02)
            if wrong:
                return wrong
        return []

    def verify(self, s):
        c = Client(s.port)
        wrong = []
        for w in self.workers:
            if w.problem:
                wrong.append(w.problem)
            wrong += w.verify(c)
        if not wrong:
            wrong += self.converged(c)
        wrong += self.recount_children(c)
        wrong += ["metadb.check: %s" % r for r in c.rows("SELECT * FROM metadb.check()")]
        c.close()
        if wrong:
            self.fail(wrong[:40])

    def recount_children(self, c):
        dirs = [HOT] + [d for w in self.workers for d in w.all_dirs()]
        wrong = []
        sql = ("SELECT num_children FROM meta WHERE pid = %d AND name = '_attr_'; "
               "SELECT count(*) FROM meta WHERE pid = %d AND name <> '_attr_'")
        for some in [dirs[i:i + 50] for i in range(0, len(dirs), 50)]:
            rows = c.rows("; ".join(sql % (d, d) for d in some))
            for d, claimed, counted in zip(some, rows[::2], rows[1::2]):
                if claimed != counted:
                    wrong.append("directory %d: num_children is %s, a recount gives %s"
                                 % (d, claimed[0], counted[0]))
        return wrong

    def hashes(self, s):
        c = Client(s.port)
        self.drained(c)
        # columns shard, table, hash, applied; a restart applies an entry of its own
        rows = sorted((r[1], r[2]) for r in c.rows("SELECT * FROM metadb.state_hash()"))
        c.close()
        return rows

    def replay(self, s):
        """The same log into an empty store gives the same state, without any kill in between."""
        want = self.hashes(s)
        code = s.stop()
        if code != 0:
            self.fail(["SIGTERM: exit status %s" % code])
        copy = os.path.join(self.dir, "replay")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.data, copy, ignore=lambda d, n: ["store"] if d == self.data else [])
        r = self.started(None, copy, "--memtable.bytes=256MB", "--recovery.empty_store=on")
        got = self.hashes(r)
        r.kill()
        shutil.rmtree(copy)
        if want != got:
            self.fail(["state hashes differ: %s, replayed %s" % (want, got)])
        self.replays += 1

    # -- a round ---------------------------------------------------------------------------------
    def load(self, s, site):
        """Runs the workers until the server is gone; returns how it went."""
        stop = threading.Event()
        threads = [threading.Thread(target=w.run, args=(s.port, stop), daemon=True)
                   for w in self.workers]
        begin = time.monotonic()
        for t in threads:
            t.start()
        longest = self.o.site_seconds if site else self.rng.uniform(0.02, self.o.seconds)
        while time.monotonic() < begin + longest and s.alive():
            time.sleep(0.005)
        if s.alive():
            how = self.end(s, site)
        else:
            how = self.ended(s.wait(), site, time.monotonic() - begin)
        stop.set()
        for t in threads:
            t.join(30)
        if site and how != site.name:
            site.waited()
        return how

    def end(self, s, site):
        """As a rule kill -9; now and then a SIGTERM, which is to end a loaded server cleanly, or both."""
        way = "random" if site else self.rng.choice(["random"] * 8 + ["SIGTERM", "in its stop"])
        if way == "SIGTERM":
            code = s.stop(30)
            if code != 0:
                self.fail(["SIGTERM under load: exit status %s" % code])
        elif way == "in its stop":
            s.process.terminate()
            time.sleep(self.rng.uniform(0, 0.03))
        s.kill()
        return way

    def ended(self, code, site, after):
        if code != 137 or not site:
            self.fail(["the server ended by itself with status %s" % code])
        site.acted(after < self.o.site_seconds / 4)
        return site.name

    def round(self, number, site):
        for w in self.workers:
            w.trees = number % 4 == 1
        s = self.start(site.arm(self.rng) if site else None)
        if s.wait_ready():
            how = self.load(s, site)
        else:
            how = self.ended(s.wait(), site, 0.0)
        self.kills += how != "SIGTERM"
        self.by_site[how] = self.by_site.get(how, 0) + 1
        if self.rng.random() < 0.2:
            self.kill_start()
        s = self.after_kill()
        self.verify(s)
        if self.keep == KEEP and self.o.replay_every and number % self.o.replay_every == 0:
            self.replay(s)
        else:
            s.kill()

    def renew(self):
        """An empty directory: the log is kept whole, so that each replay takes longer than the one before."""
        s = self.started()
        self.verify(s)
        if self.keep == KEEP and self.o.replay_every:
            self.replay(s)
        else:
            s.kill()
        self.acked += sum(w.acked for w in self.workers)
        self.maybe += sum(w.maybe for w in self.workers)
        self.renewed = self.kills
        self.workers = self.new_workers(self.o.seed + self.kills)
        self.empty()
        self.prepare().kill()

    def kill_start(self):
        """The first restart does not live long either."""
        s = self.start()
        time.sleep(self.rng.uniform(0, 0.08))
        s.kill()
        self.start_kills += 1

    def after_kill(self):
        return self.started()

    def sites(self):
        return [Site(n) for n in self.o.site or fault_sites()]

    def pick(self, sites, number):
        """Every other round, the site that has acted least often and can act now."""
        can = [x for x in sites if (x.name in CUT_SITES) <= (self.keep == CUT)]
        if number % 2 or not can:
            return None
        return min(can, key=lambda x: (x.fired + 2 * x.missed, self.rng.random()))

    def go(self):
        if not self.kills:
            self.prepare().kill()
        sites = self.sites()
        number = 0
        while self.kills < self.o.kills:
            number += 1
            if self.kills >= self.o.kills * 3 // 4:
                self.keep = CUT
            if self.kills - self.renewed >= self.o.renew_after:
                self.renew()
            self.round(number, self.pick(sites, number))
        s = self.started()
        self.verify(s)
        if s.stop() != 0:
            self.fail(["SIGTERM does not stop the server cleanly"])
        self.report(sites)
        silent = [x.name for x in sites if not x.fired]
        if silent and self.o.kills >= 4 * len(sites):
            self.fail(["fault points that never acted: %s" % ", ".join(silent)])

    def report(self, sites):
        acked = self.acked + sum(w.acked for w in self.workers)
        maybe = self.maybe + sum(w.maybe for w in self.workers)
        print("%d kills and %d during a restart; %d acknowledged statements, %d in doubt; "
              "%d replays with equal hashes" % (self.kills, self.start_kills, acked, maybe, self.replays))
        print("  at a random moment: %d, of them %d in a clean stop; %d clean stops under load"
              % (self.by_site.get("random", 0) + self.by_site.get("in its stop", 0),
                 self.by_site.get("in its stop", 0), self.by_site.get("SIGTERM", 0)))
        for x in sites:
            print("  at %s: %d%s" % (x.name, x.fired, ", missed %d" % x.missed if x.missed else ""))
        if acked < self.kills:
            self.fail(["hardly any statement was acknowledged"])


def options(p):
    p.add_argument("--binary", required=True)
    p.add_argument("--kills", type=int, default=200)
    p.add_argument("--workers", type=int, default=8)
    p.add_argument("--seconds", type=float, default=0.5, help="longest load before a random kill")
    p.add_argument("--site-seconds", type=float, default=2.0, help="longest wait for a fault point")
    p.add_argument("--site", action="append", default=[], help="only these fault points")
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    p.add_argument("--replay-every", type=int, default=20)
    p.add_argument("--renew-after", type=int, default=200, help="kills that one data directory lives through")
    p.add_argument("--writers", default="auto,thread", help="who writes the log, drawn at each start")
    p.add_argument("--set", action="append", default=[], metavar="--NAME=VALUE",
                   help="a further setting of the server")
    p.add_argument("--tmp", default=tempfile.gettempdir())


def main(run):
    """Runs; keeps data and log of a failure. Returns the exit status."""
    begin = time.monotonic()
    try:
        run.go()
    except Failed as e:
        print("seed %d, data and log kept in %s" % (run.o.seed, run.dir))
        print("failed %s" % e)
        return 1
    print("seed %d, %.0f s" % (run.o.seed, time.monotonic() - begin))
    run.clean()
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options(parser)
    sys.exit(main(Run(parser.parse_args())))
