#!/usr/bin/env python3
"""Cut the power of a loaded server again and again: what was not synced of log and store is dropped,
torn or reordered, and nothing acknowledged may be missing.

    power.py --binary build/debug/src/metadb --cuts 200
    power.py --binary build/debug/src/metadb_nosync --cuts 20 --expect-loss
    power.py --binary build/debug/src/metadb --cuts 20 --ignore-sync /store --expect-loss

The rounds are those of tests/crash/crash.py, with the disk of powerdisk.c between the server and its
files; nearly every kill, also of the servers that verify, is a power cut.  A few cuts come first in
the life of a data directory.  With --expect-loss the run is the test of the test: a server that does not
sync, or whose syncs of some files are ignored, must be caught.
"""
import argparse
import fcntl
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "crash"), os.path.join(HERE, "..", "lib")]
import crash  # noqa: E402
from powercut import drop_cut_record, power_cut  # noqa: E402


class PowerRun(crash.Run):
    def __init__(self, o):
        super().__init__(o)
        self.disk = os.path.join(self.dir, "disk")      # all of it is lost or kept as one
        self.data = os.path.join(self.disk, "data")
        self.grave = os.path.join(self.dir, "grave")
        self.journal = os.path.join(self.dir, "journal")
        self.shim = os.path.join(self.dir, "powerdisk.so")
        subprocess.run(["cc", "-O1", "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-o", self.shim,
                        os.path.join(HERE, "powerdisk.c"), "-ldl", "-lpthread"], check=True)
        self.done = {}
        self.cuts = 0
        self.only_killed = 0.2      # share of kills without a loss of power
        os.mkdir(self.disk)
        self.fresh()

    def empty(self):
        shutil.rmtree(self.disk)
        os.mkdir(self.disk)
        self.fresh()

    def fresh(self):
        shutil.rmtree(self.grave, ignore_errors=True)
        os.mkdir(self.grave)
        if os.path.exists(self.journal):
            os.unlink(self.journal)

    def start(self, env=None, data=None, *more):
        full = dict(env or {})
        if data is None:
            self.cut()
            full.update(LD_PRELOAD=self.shim, POWERDISK_ROOT=self.disk, POWERDISK_GRAVE=self.grave,
                        POWERDISK_JOURNAL=self.journal)
            if self.o.ignore_sync:
                full["POWERDISK_IGNORE_SYNC"] = self.o.ignore_sync
        return super().start(full, data, *more)

    def cut(self):
        """Whatever ran before this start ended by a loss of power, as a rule."""
        if not os.path.exists(self.journal):
            return
        drop_cut_record(self.journal)
        if self.rng.random() < self.only_killed:
            return      # only the process was killed; what it left unsynced is still at stake
        self.cuts += 1
        self.landed()
        for k, v in power_cut(self.disk, self.grave, self.journal, self.rng).items():
            self.done[k] = self.done.get(k, 0) + v
        self.fresh()

    def landed(self):
        """The kernel has finished what a killed process had under way: it holds the file open until then."""
        for path in glob.glob(os.path.join(self.data, "log", "*", "*.log")):
            with open(path, "rb") as f:
                fcntl.flock(f, fcntl.LOCK_EX)

    def first_starts(self, times):
        """A directory that is only just made holds what was acknowledged, too."""
        for _ in range(times):
            self.empty()
            self.workers = self.new_workers(self.o.seed + self.kills)
            s = self.prepare()
            self.load(s, None)
            self.kills += 1
            s = self.started()
            self.verify(s)
            s.kill()

    def go(self):
        self.first_starts(min(10, self.o.kills // 10))
        super().go()

    def report(self, sites):
        super().report(sites)
        print("  %d power cuts in all; unsynced: %s" % (self.cuts, self.done))
        if not self.done.get("dropped") or not self.done.get("torn"):
            self.fail(["the cuts took nothing away"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    crash.options(parser)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--expect-loss", action="store_true", help="succeed only if a loss is found")
    parser.add_argument("--ignore-sync", metavar="PART", help="syncs of paths with PART in them do nothing")
    o = parser.parse_args()
    o.kills = o.cuts
    run = PowerRun(o)
    if not o.expect_loss:
        return crash.main(run)
    try:
        run.go()
    except crash.Failed as e:
        # A server that never came up has lost nothing; status 1 is a wrong call of it.
        caught = run.kills > 0 and "status 1" not in str(e)
        print("%s %s" % ("found, as it must be," if caught else "failed, but not by a loss,", e))
        shutil.rmtree(run.dir)
        return 0 if caught else 1
    print("no loss found in %d power cuts of a server that does not sync" % run.cuts)
    return 1


if __name__ == "__main__":
    sys.exit(main())
