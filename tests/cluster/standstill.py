#!/usr/bin/env python3
"""Nodes that stand still without an error, under load: a disk that hangs, a node that is slow, a leader that wakes up.

    standstill.py --binary build/debug/src/metadb [--rounds 1] [--only disk,slow,wakes] [--seed N]

Each node is a process on a machine of its own (isolate.py).  The disk hangs by a fault point in the log's writer, so the
binary must have those.  Writers at all nodes know what they were promised; what each round asks besides:

disk   The leader's log hangs.  It leads no more within two election timeouts, and the others serve.  The same for a
       follower's log, which nobody notices.  When the disk goes on the node has all that it missed, without a restart,
       and can lead.  Both writers of the log are tried.
slow   A follower's disk and wire are slow, and then its disk hangs while far more is written than may be kept for it:
       the others write as fast as without it, and no process grows by what waits.
wakes  The leader is stopped for longer than its lease, the others go on, then it wakes with requests of clients already
       in its sockets.  It answers no read from what it had, and loses no write that was acknowledged.

Status 77: this kernel has no network namespaces for us.
"""
import argparse
import calendar
import os
import random
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import isolate  # noqa: E402
from nodes import Cluster  # noqa: E402
from pgclient import Lost, PgError  # noqa: E402

NODES = 3
ELECTION = 1.0        # raft.election
PATIENCE = 3.0        # of a client
HANGS = 60.0          # a test that hangs, not a limit of speed
SETTINGS = ["--memory.budget=48MB", "--memtable.bytes=4MB", "--mvcc.retention=500ms", "--log.segment_bytes=4MB",
            "--raft.keep=2MB", "--cluster.patience=3s"]
RETRIED = {"57P03", "40001", "53200"}  # certainly not done
DOUBTFUL = {"40003", "57P01"}
SLOW = ["--log.sync_delay=400ms", "--net.delay=100ms"]
FLOOD_MB = 64
GROWTH_MB = 40        # of a process, by a second flood of the same rows: 16 MB of log kept for the one that hangs, 8 MB under way


class Failed(Exception):
    pass


def check(ok, what):
    if not ok:
        raise Failed(what)


def until(what, probe, seconds=HANGS):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = probe()
        if answer:
            return answer
        time.sleep(0.02)
    raise Failed("never: " + what)


def upsert(key, value):
    return ("INSERT INTO kv (key, value) VALUES ('%s', '%s') ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            % (key, value))


def number(text):
    """A value of kv as this test writes it: digits, then what fills it up."""
    if text is None:
        return None
    if text.startswith("\\x"):
        text = bytes.fromhex(text[2:]).decode()
    return int(text.split(".")[0])


class Writer(threading.Thread):
    """Counts up in a key of its own.  After a write of unknown outcome it takes another key, since that write may come
    later.  `kept` is what each key must have at least, `sent` what it may have at most."""

    def __init__(self, cluster, at, name):
        super().__init__(daemon=True)
        self.cluster, self.at, self.prefix = cluster, at, name
        self.kept, self.sent = {}, {}
        self.keys, self.value = 0, 0
        self.took = []        # (when it was acknowledged, seconds)
        self.problem = None
        self.ended = threading.Event()

    def key(self):
        return "%s-%d" % (self.prefix, self.keys)

    def once(self, c):
        self.value += 1
        self.sent[self.key()] = self.value
        begin = time.monotonic()
        try:
            c.query(upsert(self.key(), self.value))
        except PgError as e:
            if e.state in DOUBTFUL:
                self.keys += 1
            elif e.state not in RETRIED:
                raise
            return
        except Lost:
            self.keys += 1
            raise
        end = time.monotonic()
        self.kept[self.key()] = self.value
        self.took.append((end, end - begin))

    def run(self):
        try:
            while not self.ended.is_set():
                try:
                    c = self.cluster.nodes[self.at].connect(PATIENCE)
                    while not self.ended.is_set():
                        self.once(c)
                    c.close()
                except Lost:
                    time.sleep(0.02)
        except Exception as e:  # whatever it is, it fails the test
            self.problem = "writer at node %d: %r" % (self.at + 1, e)

    def since(self, moment):
        return [took for end, took in self.took if end - took >= moment]


class Load:
    def __init__(self, cluster, name, at=range(NODES)):
        self.writers = [Writer(cluster, i, "%s%d%s" % (name, i, c)) for i in at for c in "ab"]

    def __enter__(self):
        for w in self.writers:
            w.start()
        until("every writer writes", lambda: all(w.took or w.problem for w in self.writers))
        self.look()
        return self

    def __exit__(self, *exc):
        for w in self.writers:
            w.ended.set()
        for w in self.writers:
            w.join(HANGS)

    def look(self):
        for w in self.writers:
            check(w.problem is None, w.problem)

    def verify(self, c):
        """What C's node has, after all writers have ended."""
        for w in self.writers:
            for key, least in w.kept.items():
                got = number(c.value("SELECT value FROM kv WHERE key = '%s'" % key))
                check(got is not None and least <= got <= w.sent[key],
                      "%s is %s; acknowledged %d, sent %d" % (key, got, least, w.sent[key]))


class Test:
    def __init__(self, o, name, *settings):
        self.o = o
        self.dir = os.path.join(o.directory, name)
        os.mkdir(self.dir)
        self.cluster = Cluster(o.binary, self.dir, NODES, o.seed, SETTINGS + list(settings))
        self.nodes = self.cluster.nodes
        for n in self.nodes:
            n.env = {"METADB_FAULT": "log.hang=while-" + self.hang_file(n)}
        self.said = []

    def begin(self):
        self.cluster.start()
        return self.leader()

    def end(self):
        for n in self.nodes:
            code = n.stop()
            check(code == 0, "SIGTERM: node %d ended with status %s" % (n.number, code))
        self.cluster.end()

    def say(self, text):
        print("%5.1f s  %-6s %s" % (time.monotonic() - self.o.began, os.path.basename(self.dir), text), flush=True)

    def leader(self, besides=None):
        def probe():
            n = self.cluster.leader(1.0)
            return n if n is not None and n is not besides else None
        return until("a leader", probe)

    # -- a disk that hangs ------------------------------------------------------------------------
    def hang_file(self, n):
        return os.path.join(self.dir, "hang-%d" % n.number)

    def hang(self, n):
        open(self.hang_file(n), "w").close()
        return time.time(), time.monotonic()

    def goes_on(self, n):
        os.unlink(self.hang_file(n))

    def logged(self, n, event, since):
        """When N has said EVENT first, in seconds after SINCE."""
        with open(n.log, errors="replace") as f:
            for line in f:
                m = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d+)Z? .*%s" % re.escape(event), line)
                if not m:
                    continue
                at = calendar.timegm(time.strptime(m[1], "%Y-%m-%dT%H:%M:%S")) + float("0." + m[2])
                if at >= since:
                    return at - since
        return None

    def lag(self, n):
        """Entries of all shards that N lacks, as their leaders say."""
        leader = self.cluster.leader(1.0)
        rows = leader and self.cluster.ask(leader, "SELECT node, lag FROM metadb.replicas")
        if not rows:
            return None
        return sum(int(lag or 0) for node, lag in rows if node == str(n.number))

    def caught_up(self, n):
        until("node %d has what it missed" % n.number, lambda: self.lag(n) == 0)

    def lead(self, n):
        """N leads everything."""
        def probe():
            leader = self.cluster.leader(1.0)
            if leader is n:
                return True
            if leader is not None:
                self.cluster.ask(leader, "SELECT * FROM metadb.transfer_leader(1, %d)" % n.number)
            return None
        until("node %d leads" % n.number, probe)

    def verify_as_leader(self, n, load):
        self.lead(n)
        c = n.connect(HANGS)
        load.verify(c)
        c.close()
        for m in self.nodes:
            check(m.alive(), "node %d has ended" % m.number)

    def service(self, load, begin, besides):
        """Seconds until a write that began after BEGIN was acknowledged to a client elsewhere, for the slowest client."""
        others = [w for w in load.writers if w.at != besides.number - 1]
        until("the others serve", lambda: all(w.since(begin) for w in others))
        return max(min(end for end, took in w.took if end - took >= begin) for w in others) - begin

    def disk_of_leader(self):
        leader = self.leader()
        with Load(self.cluster, "l%d-" % time.monotonic_ns()) as load:
            wall, begin = self.hang(leader)
            served = self.service(load, begin, leader)
            deposed = until("it is deposed", lambda: self.logged(leader, "shard.deposed", wall))
            self.say("the leader's disk hangs: deposed after %.2f s, all other clients are served after %.2f s"
                     % (deposed, served))
            check(deposed < 2 * ELECTION, "the leader gave up only after %.2f s" % deposed)
            self.leader(besides=leader)
            time.sleep(self.o.seconds)
            self.goes_on(leader)
            self.caught_up(leader)
            load.look()
        self.verify_as_leader(leader, load)

    def disk_of_follower(self):
        leader = self.leader()
        other = next(n for n in self.nodes if n is not leader)
        with Load(self.cluster, "f%d-" % time.monotonic_ns(), [leader.number - 1]) as load:
            _, begin = self.hang(other)
            time.sleep(max(self.o.seconds, 2 * ELECTION))
            check(self.cluster.leader(5.0) is leader, "a follower's disk changes nothing")
            took = [t for w in load.writers for t in w.since(begin)]
            self.goes_on(other)
            self.caught_up(other)
            load.look()
        self.say("a follower's disk hangs: %d writes meanwhile, the longest %.2f s" % (len(took), max(took)))
        check(max(took) < ELECTION, "writes wait for a follower's disk: %.2f s" % max(took))
        self.verify_as_leader(other, load)

    def disk(self):
        self.begin()
        for _ in range(self.o.rounds):
            self.disk_of_leader()
            self.disk_of_follower()
        self.end()

    # -- a slow node --------------------------------------------------------------------------------
    def flood(self, leader, value):
        """FLOOD_MB in rows of one table."""
        c = leader.connect(HANGS)
        for i in range(FLOOD_MB * 16):
            self.insist(c, upsert("flood%d" % (i % 64), "%d.%s" % (value + i, "x" * (64 << 10))))
        c.close()
        return value + FLOOD_MB * 16 - 1

    @staticmethod
    def insist(c, sql):
        """Until there is room for it: memory is freed by flushes."""
        end = time.monotonic() + HANGS
        while True:
            try:
                return c.query(sql)
            except PgError as e:
                if e.state != "53200" or time.monotonic() > end:
                    raise
            time.sleep(0.02)

    def slow(self):
        slow = self.nodes[-1]
        slow.settings = slow.settings + SLOW
        self.begin()
        leader = self.nodes[0]
        self.lead(leader)
        with Load(self.cluster, "s-", [0, 1]) as load:
            begin = time.monotonic()
            time.sleep(self.o.seconds)
            took = [t for w in load.writers for t in w.since(begin)]
            check(self.cluster.leader(5.0) is leader, "the leader stays")
            median = statistics.median(took)
            self.say("a slow follower (sync 400 ms, wire 100 ms): %d writes, median %.1f ms, longest %.0f ms"
                     % (len(took), median * 1e3, max(took) * 1e3))
            check(median < 0.2, "writes wait for the slow follower: %.0f ms" % (median * 1e3))
            self.caught_up_nearly(slow)
            self.flood(leader, 1000)
            before = [self.memory(n) for n in self.nodes]
            self.hang(slow)
            last = self.flood(leader, 100000)
            after = [self.memory(n) for n in self.nodes]
            self.say("its disk hangs under %d MB: the processes' memory grows by %s MB"
                     % (FLOOD_MB, ", ".join("%d" % (b - a) for a, b in zip(before, after))))
            for n, a, b in zip(self.nodes, before, after):
                check(b - a < GROWTH_MB, "node %d holds %d MB more" % (n.number, b - a))
            self.goes_on(slow)
            load.look()
        self.caught_up(slow)
        self.verify_as_leader(slow, load)
        c = slow.connect(HANGS)
        got = number(c.value("SELECT value FROM kv WHERE key = 'flood%d'" % ((FLOOD_MB * 16 - 1) % 64)))
        c.close()
        check(got == last, "the slow node has what was written while its disk hung")
        self.end()

    def caught_up_nearly(self, n):
        until("the slow node follows", lambda: (self.lag(n) is not None and self.cluster.leader(1.0) is not None))

    @staticmethod
    def memory(n):
        """MB that are its own and in memory."""
        with open("/proc/%d/status" % n.process.pid) as f:
            return int(re.search(r"RssAnon:\s+(\d+)", f.read())[1]) // 1024

    # -- a leader that wakes -----------------------------------------------------------------------
    def wake(self):
        """Values of a few keys, read over connections to a leader that slept while they were overwritten."""
        leader = self.leader()
        key = "wake%d" % time.monotonic_ns()
        other = next(n for n in self.nodes if n is not leader)
        with Load(self.cluster, key) as load:
            clients = [leader.connect(HANGS) for _ in range(6)]
            clients[0].query(upsert(key, 1))
            leader.pause()
            stopped = time.monotonic()
            served = self.service(load, stopped, leader)
            c = other.connect(HANGS)
            c.query(upsert(key, 2))
            c.close()
            time.sleep(self.o.rng.uniform(0, 2))
            asked = "SELECT value FROM kv WHERE key = '%s'" % key
            texts = [asked, "BEGIN ISOLATION LEVEL REPEATABLE READ; %s; COMMIT" % asked,
                     "SELECT value FROM kv WHERE key >= '%s' AND key <= '%s' ORDER BY key LIMIT 10" % (key, key)]
            said = [None] * len(clients)

            def ask(i):
                try:
                    said[i] = clients[i].rows(texts[i % len(texts)])
                except (PgError, Lost) as e:
                    said[i] = e

            threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(clients))]
            for t in threads:
                t.start()
            time.sleep(0.1)  # they are in its sockets
            leader.resume()
            for t in threads:
                t.join()
            for text, rows in zip(texts * 2, said):
                if isinstance(rows, Exception):
                    check(getattr(rows, "state", None) in RETRIED, "%s: %r" % (text, rows))
                    continue
                check([number(r[0]) for r in rows] == [2], "%s: a leader that was one says %s" % (text, rows))
            for c in clients:
                c.close()
            answered = sum(not isinstance(s, Exception) for s in said)
            self.say("a leader slept for %.1f s: all other clients are served after %.2f s; %d of %d reads that woke it were answered, none stale"
                     % (time.monotonic() - stopped, served, answered, len(said)))
            self.caught_up(leader)
            load.look()
        self.verify_as_leader(leader, load)

    def wakes(self):
        self.begin()
        for _ in range(2 * self.o.rounds):
            self.wake()
        self.end()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", required=True)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1.0, help="of standing still, beyond what is waited for")
    p.add_argument("--only", default="disk,slow,wakes")
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    p.add_argument("--tmp", default=tempfile.gettempdir())
    o = p.parse_args()
    isolate.enter()
    o.binary = os.path.abspath(o.binary)
    o.rng = random.Random(o.seed)
    o.began = time.monotonic()
    o.directory = tempfile.mkdtemp(prefix="metadb-standstill.", dir=o.tmp)
    runs = {"disk": [("thread", "disk", "--log.writer=thread"), ("uring", "disk", "--log.writer=auto")],
            "slow": [("slow", "slow")], "wakes": [("wakes", "wakes")]}
    try:
        for kind in o.only.split(","):
            for name, method, *settings in runs[kind]:
                getattr(Test(o, name, *settings), method)()
    except Failed as e:
        print("seed %d, data and logs kept in %s" % (o.seed, o.directory))
        print("failed: %s" % e)
        sys.stdout.flush()
        os._exit(1)   # the namespaces take the rest with them
    shutil.rmtree(o.directory)
    print("seed %d" % o.seed)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
