#!/usr/bin/env python3
"""Damage the log of a killed server: above the last durable offset it starts, below it refuses.

    tail.py --binary build/debug/src/metadb [--places 50]

A loaded server is killed; copies of its directory are damaged one at a time.  `metadb log dump` says
where the log ends and up to where it was known durable when the last batch was written.  Above that
the file is shortened, zeroed, filled with garbage or loses one block, also with whole batches behind
the damage: the server starts and what it holds is consistent.  Below, one flipped bit is refused with
exit status 3 and a message that names the file; so is a lost segment.  `metadb log check` gives the
same verdict each time, and none about a directory in use.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
from pgclient import Client  # noqa: E402
from server import Server, clean_env  # noqa: E402
from workload import HOT, Worker  # noqa: E402

# Small batches, so that one write has several: damage to the first leaves whole ones behind it.
SETTINGS = ["--log.segment_bytes=1MB", "--log.batch_bytes=4kB", "--log.batch_entries=2",
            "--memtable.bytes=64kB", "--mvcc.retention=20ms"]
BLOCK = 512


class Log:
    """What `metadb log dump` says of a directory."""

    def __init__(self, binary, data):
        out = subprocess.run([binary, "log", "dump", data], capture_output=True, text=True, timeout=60, env=clean_env())
        if out.returncode != 0:
            raise RuntimeError("log dump: %s" % out.stderr)
        end = re.search(r"^end segment=(\d+) offset=(\d+) durable=(\d+):(\d+)", out.stdout, re.M)
        self.segment, self.end, durable_segment, self.durable = map(int, end.groups())
        if durable_segment != self.segment:
            self.durable = BLOCK
        segments = re.split(r"^segment number=", out.stdout, flags=re.M)[1:]
        self.numbers = [int(s.split(" ", 1)[0]) for s in segments]
        self.batches = [int(n) for n in re.findall(r"^batch offset=(\d+)", segments[-1], re.M)]

    @staticmethod
    def path(data, number):
        return os.path.join(data, "log", "0", "%012d.log" % number)


class Test:
    def __init__(self, o):
        self.o = o
        self.rng = random.Random(o.seed)
        self.dir = tempfile.mkdtemp(prefix="metadb-tail.", dir=o.tmp)
        self.data = os.path.join(self.dir, "data")
        self.copy = os.path.join(self.dir, "copy")
        self.failures = []
        self.counts = {}

    def killed(self):
        """A loaded server's directory, with something above the durable offset."""
        for attempt in range(20):
            s = Server(self.o.binary, self.data, *SETTINGS)
            assert s.wait_ready()
            if self.check(self.data)[0] != 2:
                self.failures.append("log check of a directory in use: %s" % (self.check(self.data),))
            c = Client(s.port)
            c.query("INSERT INTO meta (pid, name, id, type) VALUES (0, 'hot', %d, 'd') ON CONFLICT DO NOTHING" % HOT)
            workers = [Worker(i + 100 * attempt, self.o.seed + attempt) for i in range(8)]
            for w in workers:
                w.prepare(c)
            c.close()
            stop = threading.Event()
            threads = [threading.Thread(target=w.run, args=(s.port, stop), daemon=True) for w in workers]
            for t in threads:
                t.start()
            time.sleep(self.rng.uniform(1.0, 1.5))
            s.kill()
            stop.set()
            for t in threads:
                t.join(30)
            log = Log(self.o.binary, self.data)
            if len([b for b in log.batches if b >= log.durable]) >= 2 and len(log.numbers) >= 2 \
                    and log.durable > 8 * BLOCK:
                return log
        raise RuntimeError("no log with several batches above its durable offset")

    def damaged(self, change):
        """A copy of the directory with CHANGE made to it."""
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.data, self.copy)
        change(self.copy)
        return self.copy

    def check(self, data):
        """Status and message of `metadb log check`."""
        p = subprocess.run([self.o.binary, "log", "check", data], capture_output=True, text=True, timeout=60,
                           env=clean_env())
        return p.returncode, p.stderr + p.stdout

    def starts(self, what, change):
        self.counts[what] = self.counts.get(what, 0) + 1
        data = self.damaged(change)
        if self.check(data) != (0, "log: sound\n"):
            self.failures.append("%s: log check says %s" % (what, self.check(data)))
        s = Server(self.o.binary, data, *SETTINGS, log=os.path.join(self.dir, "err"))
        if not s.wait_ready():
            self.failures.append("%s: does not start, status %d" % (what, s.wait()))
            return
        c = Client(s.port)
        end = time.monotonic() + 30
        while int(c.rows("SELECT * FROM metadb.sinks")[0][1]) and time.monotonic() < end:
            time.sleep(0.002)
        wrong = c.rows("SELECT * FROM metadb.check()")
        c.query("INSERT INTO kv (key, value) VALUES ('after', 'x')")
        c.close()
        if wrong:
            self.failures.append("%s: metadb.check: %s" % (what, wrong[:3]))
        s.kill()

    def refuses(self, what, change, name):
        self.counts[what] = self.counts.get(what, 0) + 1
        data = self.damaged(change)
        code, text = self.check(data)
        if code != 3 or name not in text:
            self.failures.append("%s: log check says %d %s" % (what, code, text))
        p = subprocess.run([self.o.binary, "start", "--data", data, "--listen", "127.0.0.1:0", *SETTINGS],
                           capture_output=True, text=True, timeout=60, env=clean_env())
        says = [line for line in p.stderr.splitlines() if line.startswith("metadb: ")]
        if p.returncode != 3 or len(says) != 1 or name not in says[0]:
            self.failures.append("%s: status %d, %s" % (what, p.returncode, says))

    # -- ways to damage -----------------------------------------------------------------------
    def shorten(self, number, at):
        return lambda data: os.truncate(Log.path(data, number), at)

    def overwrite(self, number, at, content):
        def change(data):
            with open(Log.path(data, number), "r+b") as f:
                f.seek(at)
                f.write(content)
        return change

    def flip(self, number, at):
        def change(data):
            with open(Log.path(data, number), "r+b") as f:
                f.seek(at)
                byte = f.read(1)[0]
                f.seek(at)
                f.write(bytes([byte ^ 1 << self.rng.randrange(8)]))
        return change

    def above(self, log):
        size = os.path.getsize(Log.path(self.data, log.segment))
        last = log.end
        edges = [log.durable, log.durable + 1, last - 1, last, last + 1]
        edges += [at + d for at in range(log.durable, last, BLOCK) for d in (-1, 0, 1) if at + d >= log.durable]
        self.rng.shuffle(edges)
        places = edges[:self.o.places // 2]
        places += [self.rng.randrange(log.durable, last) for _ in range(self.o.places - len(places))]
        for at in places:
            self.starts("shortened", self.shorten(log.segment, at))
            self.starts("zeroed", self.overwrite(log.segment, at, bytes(size - at)))
            self.starts("garbage", self.overwrite(log.segment, at, self.rng.randbytes(self.rng.choice([1, 100, 5000]))))
        for at in [b for b in log.batches if log.durable <= b][:-1][:self.o.places // 4]:
            self.starts("whole batches behind it", self.overwrite(log.segment, at, bytes(BLOCK)))

    def below(self, log):
        for _ in range(self.o.places):
            at = self.rng.randrange(BLOCK, log.durable)
            self.refuses("one bit, newest segment", self.flip(log.segment, at), "%012d.log" % log.segment)
        for number in log.numbers[:-1][-4:]:
            end = Log.path(self.data, number)
            for _ in range(max(1, self.o.places // 8)):
                at = self.rng.randrange(0, BLOCK * 64)
                self.refuses("one bit, older segment", self.flip(number, at), "%012d.log" % number)
            self.refuses("emptied segment", self.shorten(number, 0), os.path.basename(end))
        if len(log.numbers) > 2:
            number = log.numbers[len(log.numbers) // 2]
            self.refuses("lost segment", lambda data: os.unlink(Log.path(data, number)), "%012d.log" % number)

    def certified(self):
        """A clean stop certifies all: there is nothing left that may be cut."""
        s = Server(self.o.binary, self.data, *SETTINGS)
        assert s.wait_ready()
        if s.stop() != 0:
            self.failures.append("SIGTERM does not stop the server cleanly")
        log = Log(self.o.binary, self.data)
        last = log.batches[-2]      # the mark itself is the only one that nothing vouches for
        for at in range(last, log.batches[-1], 97):
            self.refuses("last batch after a clean stop", self.flip(log.segment, at), "%012d.log" % log.segment)

    def run(self):
        log = self.killed()
        print("log ends at %d of segment %d, durable up to %d" % (log.end, log.segment, log.durable))
        self.above(log)
        self.below(log)
        self.certified()
        for k, v in self.counts.items():
            print("  %s: %d" % (k, v))
        for f in self.failures[:20]:
            print("failed: %s" % f)
        if self.failures:
            print("seed %d, directory kept in %s" % (self.o.seed, self.dir))
            return 1
        shutil.rmtree(self.dir)
        return 0


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", required=True)
    p.add_argument("--places", type=int, default=50)
    p.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    p.add_argument("--tmp", default=tempfile.gettempdir())
    sys.exit(Test(p.parse_args()).run())
