#!/usr/bin/env python3
"""Calls of the disk that fail once: the server stops, or goes on, as is promised, and loses nothing.

    failing.py --binary build/debug/src/metadb [--times 2]

Each case lets one call on one kind of file fail, at a random moment of a loaded server, on the disk
of powerdisk.c: what a failed sync should have made durable is gone for good, although later syncs
succeed.  An I/O error of log or store ends the process with status 4, and only that; a full disk is
no failure: writes are refused for a while and then go on in the same process.  A power cut follows
every case, then a start, and all is compared as in crash.py.
"""
import argparse
import errno
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "crash"), os.path.join(HERE, "..", "lib")]
import crash  # noqa: E402
from pgclient import Client, PgError  # noqa: E402
from power import PowerRun  # noqa: E402
from powercut import FAILED, records  # noqa: E402

ENDS, GOES_ON = 4, None
SETTLE_S = 20

# call, files, errno, how often in a row, what follows, the latest call that fails
CASES = [
    ("sync", ".log$", errno.EIO, 1, ENDS, 200),
    ("write", ".log$", errno.EIO, 1, ENDS, 200),
    ("sync", "making.tmp$", errno.EIO, 1, ENDS, 3),
    ("write", "making.tmp$", errno.EIO, 1, ENDS, 3),
    ("sync", "/log/0$", errno.EIO, 1, ENDS, 6),
    ("rename", "/log/0/", errno.EIO, 1, ENDS, 6),
    ("sync", ".sst$", errno.EIO, 1, ENDS, 8),
    ("write", ".sst$", errno.EIO, 1, ENDS, 8),
    ("sync", "/store/MANIFEST", errno.EIO, 1, ENDS, 8),
    ("write", "/store/MANIFEST", errno.EIO, 1, ENDS, 8),
    ("sync", "/store$", errno.EIO, 1, ENDS, 8),
    ("write", "making.tmp$", errno.ENOSPC, 3, GOES_ON, 3),
    ("create", "making.tmp$", errno.ENOSPC, 3, GOES_ON, 1),
    ("write", ".sst$", errno.ENOSPC, 3, GOES_ON, 8),
    ("sync", ".sst$", errno.ENOSPC, 2, GOES_ON, 8),
    ("create", ".sst$", errno.ENOSPC, 3, GOES_ON, 8),
    ("write", "/store/MANIFEST", errno.ENOSPC, 2, GOES_ON, 8),
]


class FailingRun(PowerRun):
    def __init__(self, o):
        super().__init__(o)
        self.only_killed = 0
        for w in self.workers:
            w.void = {"40001", "25P04", "53100", "53200", "58030"}  # nothing was done; in doubt is 40003

    def case_env(self, case):
        call, part, error, count, _, latest = case
        nth = self.rng.randint(1, latest)
        return {"POWERDISK_FAIL": "%s:%s:%d:%d:%d" % (call, part, nth, count, error)}

    def arm(self):
        with open(os.path.join(self.grave, "arm"), "w"):
            pass

    def probe(self, s, case):
        """Writing goes on, in this process."""
        c = Client(s.port)
        end = time.monotonic() + SETTLE_S
        while True:
            try:
                c.query("INSERT INTO kv (key, value) VALUES ('probe', 'x') ON CONFLICT (key) DO UPDATE SET value = excluded.value")
                c.query("SELECT metadb.flush()")
                return c.close()
            except PgError as e:
                if e.state not in ("53100", "58030", "53200") or time.monotonic() > end:
                    self.fail(["%s: does not go on: %s" % (self.title(case), e)])
                time.sleep(0.1)

    @staticmethod
    def title(case):
        return "%s of %s of *%s" % (errno.errorcode[case[2]], case[0], case[1].rstrip("$"))

    def has_failed(self):
        return any(r["kind"] == FAILED for r in records(self.journal))

    def failing(self, case):
        expected = case[4]
        s = self.start(self.case_env(case))     # cuts the power first, which clears the graveyard
        early = expected == ENDS and self.rng.random() < 0.3
        if early:
            self.arm()
        if not s.wait_ready():
            return self.ended_with(s.wait(), case)
        stop = threading.Event()
        threads = [threading.Thread(target=w.run, args=(s.port, stop), daemon=True) for w in self.workers]
        for t in threads:
            t.start()
        time.sleep(self.rng.uniform(0, 0.3))
        if not early:
            self.arm()
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end and s.alive() and not (expected is None and self.has_failed()):
            time.sleep(0.1)
        alive = s.alive()
        if alive and expected is None:
            self.probe(s, case)
        stop.set()
        for t in threads:
            t.join(30)
        if alive:
            s.kill()
            if expected is not None:
                self.fail(["%s: the server is alive after %d s" % (self.title(case), SETTLE_S)])
        else:
            self.ended_with(s.wait(), case)

    def ended_with(self, code, case):
        if code != case[4]:
            self.fail(["%s: the server ended with status %s" % (self.title(case), code)])

    def go(self):
        self.prepare().kill()
        for number in range(self.o.times):
            for case in CASES:
                if self.o.only and self.o.only not in self.title(case):
                    continue
                begin = time.monotonic()
                self.failing(case)
                self.kills += 1
                if not self.has_failed():
                    self.fail(["%s: no call failed" % self.title(case)])
                s = self.after_kill()
                self.verify(s)
                s.kill()
                if self.o.verbose:
                    print("  %.1f s %s" % (time.monotonic() - begin, self.title(case)), flush=True)
        self.cut()
        print("%d failures of %d kinds; %d acknowledged statements; %d power cuts, unsynced: %s"
              % (self.kills, len(CASES), sum(w.acked for w in self.workers), self.cuts, self.done))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    crash.options(parser)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--only", help="cases with this in their title")
    parser.add_argument("--verbose", action="store_true")
    o = parser.parse_args()
    o.ignore_sync = None
    sys.exit(crash.main(FailingRun(o)))
