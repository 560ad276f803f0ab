#!/usr/bin/env python3
"""Cut the power of a loaded server again and again: everything of log and store that was not synced
is dropped, torn or reordered, and nothing acknowledged may be missing.

    power.py --binary build/debug/metadb --cuts 200
    power.py --binary build/nosync/metadb --cuts 20 --expect-loss

The second form is the test of the test: a server built without fdatasync must be caught.
"""
import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "crash"), os.path.join(HERE, "..", "lib")]
import crash  # noqa: E402
from powercut import power_cut  # noqa: E402


class Loss(Exception):
    pass


class PowerRun(crash.Run):
    def __init__(self, o):
        super().__init__(o)
        self.grave = os.path.join(self.dir, "grave")
        self.journal = os.path.join(self.dir, "journal")
        self.shim = os.path.join(self.dir, "powerdisk.so")
        subprocess.run(["cc", "-O1", "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-o", self.shim,
                        os.path.join(HERE, "powerdisk.c"), "-ldl", "-lpthread"], check=True)
        self.done = {}
        self.fresh()

    def fresh(self):
        shutil.rmtree(self.grave, ignore_errors=True)
        os.mkdir(self.grave)
        if os.path.exists(self.journal):
            os.unlink(self.journal)
        os.makedirs(self.data, exist_ok=True)

    def start(self, env=None, data=None, *more):
        full = dict(env or {})
        if data is None:
            full.update(LD_PRELOAD=self.shim, POWERDISK_ROOT=self.data, POWERDISK_GRAVE=self.grave, POWERDISK_JOURNAL=self.journal)
        return super().start(full, data, *more)

    def cut(self):
        for k, v in power_cut(self.data, self.grave, self.journal, self.rng).items():
            self.done[k] = self.done.get(k, 0) + v
        self.fresh()

    def after_kill(self):
        self.cut()
        s = super().after_kill()
        return s

    def fail(self, lines):
        if self.o.expect_loss:
            raise Loss(lines[0])
        super().fail(lines)

    def go(self):
        s = self.prepare()
        s.stop()
        self.fresh()
        for number in range(1, self.o.cuts + 1):
            self.round(number, None)
            self.cut_again()
        acked = sum(w.acked for w in self.workers)
        print("%d power cuts, %d acknowledged statements, %d in doubt; unsynced writes: %s"
              % (self.kills, acked, sum(w.maybe for w in self.workers), self.done))
        shutil.rmtree(self.dir)
        return acked > 0 and self.done.get("dropped", 0) > 0

    def cut_again(self):
        """The server that verified was killed too: its unsynced writes may go as well."""
        self.cut()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    crash.options(parser)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--expect-loss", action="store_true", help="succeed only if a loss is found")
    o = parser.parse_args()
    o.replay_every = 0
    run = PowerRun(o)
    try:
        ok = run.go()
    except Loss as e:
        print("found, as it must be: %s" % e)
        shutil.rmtree(run.dir)
        sys.exit(0)
    if o.expect_loss:
        print("no loss found in %d power cuts of a server that does not sync" % o.cuts)
        sys.exit(1)
    sys.exit(0 if ok else 1)
