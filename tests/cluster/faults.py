#!/usr/bin/env python3
"""Three real processes, real packets, every kind of trouble: nothing acknowledged is lost, nothing is done twice.

    faults.py --binary build/release/src/metadb [--minutes 1] [--seed N] [--report FILE]

Each node is a process on a machine of its own (isolate.py); between them is a wire that loses, delays and cuts
(relay.py).  Clients work on all nodes, and each knows exactly what the database must hold (tests/crash/workload.py).
When a connection is lost, or the outcome is 40003, the statement may be there as a whole or not at all, now or later;
so that worker does nothing more, and another takes its place.  An error that promises "not done" is held to that.

After each fault the cluster must serve again by itself.  At the end every worker that there ever was is compared with
what is stored, num_children, quota and index are recounted, and the same is asked with each node as the leader, whose
state must have one hash.

How long there was no service after the leader was lost is measured and reported; it decides nothing here, since it
depends on the machine.  Status 77: this kernel has no network namespaces for us.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "crash")]
import isolate  # noqa: E402
from nodes import Cluster  # noqa: E402
from pgclient import Lost, PgError  # noqa: E402
from workload import HOT, Worker  # noqa: E402

NODES = 3
# Small memtables and little log in memory: flushes, cuts of the log and snapshots happen all the time.
SETTINGS = ["--memory.budget=64MB", "--memtable.bytes=256kB", "--memtable.age=2s", "--mvcc.retention=500ms",
            "--log.segment_bytes=1MB", "--log.retain_bytes=2MB", "--raft.keep=256kB", "--cluster.patience=3s"]
NOT_DONE = {"57P03", "40001", "25P04"}  # 25P04: a transaction that waited for a leader for too long
SERVES_AGAIN = 90.0   # a hang, not a limit of speed
PATIENCE = 4.0        # of a client, longer than a node's


class Failed(Exception):
    pass


class Moved(Exception):
    """Not done, and this node is not the one to ask."""


class ClusterWorker(Worker):
    def __init__(self, number, seed):
        super().__init__(number, seed)
        self.void = NOT_DONE

    def once(self, c):
        before = self.refused
        self.step(c)
        if self.refused != before:
            raise Moved()


class Seat:
    """A client's place: a worker after the other, at one node as long as that one answers."""

    def __init__(self, test, number):
        self.test, self.number = test, number
        self.at = number % NODES
        self.connects = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            while not self.test.stop.is_set():
                self.life(self.test.new_worker())
        except Exception as e:  # whatever it is, it fails the test
            self.test.problems.append("seat %d: %r" % (self.number, e))

    def life(self, worker):
        ready = False
        while not self.test.stop.is_set():
            try:
                c = self.test.cluster.nodes[self.at].connect(PATIENCE)
                self.connects += 1
                if not ready:
                    worker.prepare(c)
                    ready = True
                while not self.test.stop.is_set():
                    worker.once(c)
                c.close()
                return
            except Moved:
                pass
            except Lost:
                if worker.pending is not None:
                    worker.maybe += 1
                    return
            except PgError as e:
                if ready and worker.pending is not None:
                    self.test.problems.append("worker %d: unexpected %s" % (worker.n, e))
                    return
            self.at = (self.at + 1) % NODES
            time.sleep(0.01)


class Test:
    def __init__(self, o):
        self.o = o
        self.rng = random.Random(o.seed)
        self.dir = tempfile.mkdtemp(prefix="metadb-cluster.", dir=o.tmp)
        self.cluster = Cluster(o.binary, self.dir, NODES, o.seed, SETTINGS + o.set)
        self.workers, self.problems = [], []
        self.mu = threading.Lock()
        self.stop = threading.Event()
        self.done = {}      # kind of fault -> how often
        self.outages = []   # seconds without service after the leader was lost
        self.serial = 0

    def new_worker(self):
        with self.mu:
            w = ClusterWorker(len(self.workers), self.o.seed)
            self.workers.append(w)
            return w

    def note(self, kind):
        self.done[kind] = self.done.get(kind, 0) + 1
        stamp = time.strftime("%H:%M:%S", time.gmtime()) + (".%03d" % (time.time() % 1 * 1000))
        print("%6.1f s  %s  %s" % (time.monotonic() - self.begin, stamp, kind), flush=True)

    # -- service -------------------------------------------------------------------------------
    def probe(self, nodes, timeout=0.25):
        """A write to each of the tables that have a shard of their own: is it acknowledged somewhere?"""
        with self.mu:
            self.serial += 1
            serial = self.serial
        sql = ("INSERT INTO kv (key, value) VALUES ('probe', '%d') ON CONFLICT (key) DO UPDATE SET value = excluded.value; "
               "INSERT INTO object (bucket, key, size) VALUES ('probe', 'k', %d) "
               "ON CONFLICT (bucket, key) DO UPDATE SET size = excluded.size; "
               "UPDATE meta SET size = %d WHERE pid = 0 AND name = 'probe'" % ((serial,) * 3)).split("; ")
        for n in nodes:
            if n.alive() and not n.stopped and all(self.cluster.ask(n, s, timeout) is not None for s in sql):
                return n
        return None

    def serves(self, nodes=None):
        """Until writes are acknowledged; by whom."""
        end = time.monotonic() + SERVES_AGAIN
        while time.monotonic() < end:
            n = self.probe(nodes or self.cluster.nodes)
            if n:
                return n
            time.sleep(0.01)
        raise Failed("no write was acknowledged within %d s" % SERVES_AGAIN)

    def outage(self, lost):
        """LOST is gone: until another serves.  All others are asked at once, each by a client that waits for its answer."""
        begin, served = time.monotonic(), threading.Event()

        def ask(n):
            while not served.is_set() and time.monotonic() < begin + SERVES_AGAIN:
                if self.probe([n], PATIENCE):
                    served.set()
                time.sleep(0.01)

        threads = [threading.Thread(target=ask, args=(n,)) for n in self.cluster.nodes if n is not lost]
        for t in threads:
            t.start()
        if not served.wait(SERVES_AGAIN):
            raise Failed("no write was acknowledged within %d s" % SERVES_AGAIN)
        took = time.monotonic() - begin
        for t in threads:
            t.join()
        self.outages.append(took)
        print("%6.1f s  served again after %.2f s" % (time.monotonic() - self.begin, took), flush=True)

    def all_connected(self):
        """Every node has met every other again."""
        end = time.monotonic() + SERVES_AGAIN
        while time.monotonic() < end:
            for n in self.cluster.nodes:
                if not n.alive():
                    raise Failed("node %d ended by itself with status %s" % (n.number, n.process.returncode))
            leader = self.cluster.leader(1.0)
            rows = leader and self.cluster.ask(leader, "SELECT * FROM metadb.peers")
            if rows and all(r[2] == "up" for r in rows):
                return leader
            time.sleep(0.05)
        raise Failed("the nodes did not find together within %d s" % SERVES_AGAIN)

    # -- faults ----------------------------------------------------------------------------------
    def pick(self, leader):
        return leader if self.rng.random() < 0.6 else self.rng.choice(self.cluster.nodes)

    def fault_kill(self, leader):
        n = self.pick(leader)
        self.note("kill -9 of %s" % ("the leader" if n is leader else "a follower"))
        n.kill()
        if n is leader:
            self.outage(n)
        time.sleep(self.rng.uniform(0, 2))
        n.start()

    def fault_kill_all(self, leader):
        self.note("kill -9 of all nodes")
        for n in self.cluster.nodes:
            n.kill()
        for n in self.rng.sample(self.cluster.nodes, NODES):
            n.start()
            time.sleep(self.rng.uniform(0, 1))

    def fault_kill_majority(self, leader):
        self.note("kill -9 of two nodes")
        two = self.rng.sample(self.cluster.nodes, 2)
        for n in two:
            n.kill()
        time.sleep(self.rng.uniform(0, 3))
        for n in two:
            n.start()

    def fault_pause(self, leader):
        n = self.pick(leader)
        self.note("SIGSTOP of %s" % ("the leader" if n is leader else "a follower"))
        n.pause()
        if n is leader:
            self.outage(n)
        time.sleep(self.rng.uniform(0.1, 4))
        n.resume()

    def fault_cut(self, leader):
        """One node and the others: both ways, what it says, or what it hears."""
        n = self.pick(leader)
        way = self.rng.choice(["both ways", "what it says", "what it hears"])
        self.note("cut of %s, %s" % ("the leader" if n is leader else "a follower", way))
        for m in self.cluster.nodes:
            if m is not n and way != "what it hears":
                self.cluster.wire.cut(n.number, m.number)
            if m is not n and way != "what it says":
                self.cluster.wire.cut(m.number, n.number)
        if n is leader:
            self.outage(n)
        time.sleep(self.rng.uniform(0.5, 6))
        self.cluster.wire.heal()

    def fault_cut_pair(self, leader):
        """Two nodes lose each other, the third hears both."""
        a, b = self.rng.sample(self.cluster.nodes, 2)
        way = self.rng.choice(["both ways", "one way"])
        self.note("cut between two nodes, %s" % way)
        self.cluster.wire.cut(a.number, b.number)
        if way == "both ways":
            self.cluster.wire.cut(b.number, a.number)
        time.sleep(self.rng.uniform(0.5, 6))
        self.cluster.wire.heal()

    def fault_loss(self, leader):
        loss, delay = self.rng.choice([0.01, 0.05, 0.15]), self.rng.choice([0, 2000, 20000])
        self.note("loss of %g %%, %g ms more" % (loss * 100, delay / 1000))
        self.cluster.wire.spoil(loss, delay)
        time.sleep(self.rng.uniform(2, 6))
        self.cluster.wire.heal()

    def fault_stop(self, leader):
        n = self.pick(leader)
        self.note("SIGTERM of %s" % ("the leader" if n is leader else "a follower"))
        code = n.stop()
        if code != 0:
            raise Failed("SIGTERM: node %d ended with status %s" % (n.number, code))
        time.sleep(self.rng.uniform(0, 1))
        n.start()

    def faults(self):
        kinds = [(self.fault_kill, 5), (self.fault_pause, 4), (self.fault_cut, 5), (self.fault_cut_pair, 2),
                 (self.fault_loss, 2), (self.fault_kill_majority, 1), (self.fault_kill_all, 1)]
        if self.o.only:
            kinds = [k for k in kinds if k[0].__name__[6:] in self.o.only.split(",")]
        order = [k for k, _ in kinds]   # each once, then as drawn
        while time.monotonic() < self.begin + self.o.minutes * 60:
            leader = self.all_connected()
            kind = order.pop(0) if order else self.rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
            kind(leader)
            self.serves()
            if self.problems:
                raise Failed("\n  ".join(self.problems[:20]))
            time.sleep(self.rng.uniform(0, 1))

    # -- what must hold ----------------------------------------------------------------------------
    def drained(self, c):
        while int(c.rows("SELECT * FROM metadb.sinks")[0][1]) != 0:
            time.sleep(0.01)

    def verify(self, leader, first):
        c = leader.connect(60.0)
        self.drained(c)
        wrong = []
        for w in self.workers:
            # The first look settles what was in doubt; every later one, at another node, must see the same.
            wrong += w.verify(c) if first else self.same(w, c)
            wrong += w.recount(c)
        wrong += ["metadb.check: %s" % r for r in c.rows("SELECT * FROM metadb.check()")]
        hashes = sorted((r[1], r[2]) for r in c.rows("SELECT * FROM metadb.state_hash()"))
        c.close()
        if wrong:
            raise Failed("node %d as leader:\n  %s" % (leader.number, "\n  ".join(wrong[:40])))
        return hashes

    @staticmethod
    def same(w, c):
        return ["worker %d: %s" % (w.n, d) for d in w.differences(w.model, w.observe(c))]

    def verified(self, leader, first, hashes):
        """What LEADER has is right. Not known where it leads no more in the middle: whoever does is asked then."""
        try:
            hashes[leader.number] = self.verify(leader, first)
        except PgError as e:
            if e.state != "57P03":
                raise

    def verify_all(self):
        leader, hashes = self.all_connected(), {}
        for _ in range(10):
            self.verified(leader, True, hashes)
            if hashes:
                break
            leader = self.all_connected()
        end = time.monotonic() + 10 * SERVES_AGAIN
        while len(hashes) < NODES and time.monotonic() < end:
            wanted = next(n for n in self.cluster.nodes if n.number not in hashes)
            self.cluster.ask(leader, "SELECT * FROM metadb.transfer_leader(1, %d)" % wanted.number)
            time.sleep(0.5)
            leader = self.all_connected()
            if leader.number not in hashes:
                self.verified(leader, False, hashes)
        if len(hashes) < NODES:
            raise Failed("not every node became the leader: %s" % sorted(hashes))
        if len(set(map(str, hashes.values()))) != 1:
            raise Failed("the nodes' states differ: %s" % hashes)

    # -- the run -----------------------------------------------------------------------------------
    def prepare(self):
        leader = self.cluster.leader()
        if leader is None:
            raise Failed("no node served")
        c = leader.connect(PATIENCE)
        c.query("INSERT INTO meta (pid, name, id, type) VALUES (0, 'hot', %d, 'd')" % HOT)
        c.query("INSERT INTO meta (pid, name, id, type) VALUES (0, 'probe', 901, 'f')")
        c.close()

    def go(self):
        self.begin = time.monotonic()
        self.cluster.start()
        self.prepare()
        seats = [Seat(self, i) for i in range(self.o.clients)]
        for s in seats:
            s.thread.start()
        self.faults()
        self.cluster.wire.heal()
        self.all_connected()
        self.stop.set()
        for s in seats:
            s.thread.join(60)
        if self.problems:
            raise Failed("\n  ".join(self.problems[:20]))
        self.verify_all()
        for n in self.cluster.nodes:
            code = n.stop()
            if code != 0:
                raise Failed("SIGTERM: node %d ended with status %s" % (n.number, code))
        self.report()

    def logged(self, event):
        """How often the nodes have said EVENT."""
        count = 0
        for n in self.cluster.nodes:
            with open(n.log, errors="replace") as f:
                count += sum(event in line for line in f)
        return count

    def report(self):
        acked, maybe = sum(w.acked for w in self.workers), sum(w.maybe for w in self.workers)
        carried, lost = self.cluster.wire.stats()
        out = ["%d acknowledged statements, %d in doubt, %d refused as not done; %d workers; nothing lost, nothing twice"
               % (acked, maybe, sum(w.refused for w in self.workers), len(self.workers)),
               "%d frames carried between the nodes, %d lost" % (carried, lost)]
        out += ["  %3d  %s" % (n, k) for k, n in sorted(self.done.items())]
        if self.outages:
            o = sorted(self.outages)
            out.append("without service after the loss of the leader: %d times, median %.2f s, longest %.2f s; "
                       "over 2 s (two election timeouts): %d" % (len(o), o[len(o) // 2], o[-1], sum(t > 2 for t in o)))
        out.append("flushes and snapshots: %d snapshots of shards installed at nodes that lacked too much of the log"
                   % self.logged(" snapshot.installed "))
        text = "\n".join(out)
        print(text)
        if self.o.report:
            with open(self.o.report, "w") as f:
                f.write("faults.py --minutes %g --seed %d\n%s\n" % (self.o.minutes, self.o.seed, text))
        if acked < 100:
            raise Failed("hardly any statement was acknowledged")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", required=True)
    p.add_argument("--minutes", type=float, default=1.0, help="of faults; the comparison comes after")
    p.add_argument("--clients", type=int, default=6)
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    p.add_argument("--only", help="kinds of faults: kill,pause,cut,cut_pair,loss,kill_majority,kill_all")
    p.add_argument("--report", help="a file for the numbers")
    p.add_argument("--set", action="append", default=[], metavar="--NAME=VALUE", help="a further setting of the nodes")
    p.add_argument("--keep", action="store_true", help="data and logs, to look into what went well")
    p.add_argument("--tmp", default=tempfile.gettempdir())
    o = p.parse_args()
    isolate.enter()
    o.binary = os.path.abspath(o.binary)
    test = Test(o)
    begin = time.monotonic()
    try:
        test.go()
    except Failed as e:
        print("seed %d, data and logs kept in %s" % (o.seed, test.dir))
        print("failed: %s" % e)
        sys.stdout.flush()
        os._exit(1)   # the namespaces take the rest with them
    print("seed %d, %.0f s" % (o.seed, time.monotonic() - begin))
    if o.keep:
        print("data and logs kept in %s" % test.dir)
    else:
        shutil.rmtree(test.dir)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
