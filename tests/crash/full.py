#!/usr/bin/env python3
"""Fill the disk under a loaded server, again and again, and give the space back.

    full.py --binary build/debug/src/metadb [--cycles 6] [--kind tmpfs,ext4]

The data directory lies on a small file system of its own: a tmpfs, and an ext4 in a file on a loop
device.  That takes root; without it the test says so and exits with status 77.

While the disk is full writes are refused with 53100, which means that nothing was done, and reads go
on.  When space is back writes go on by themselves, in the same process.  Nothing acknowledged is
lost, also when the server is killed while the disk is full and starts with it full or freed.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import crash  # noqa: E402
from pgclient import Client, Lost, PgError  # noqa: E402

SIZE_MB = 64
SKIPPED = 77


class Mount:
    """A file system of SIZE_MB at PATH."""

    def __init__(self, kind, path):
        self.path, self.image = path, path + ".img"
        os.mkdir(path)
        if kind == "tmpfs":
            self.call("mount", "-t", "tmpfs", "-o", "size=%dm" % SIZE_MB, "tmpfs", path)
        else:
            with open(self.image, "wb") as f:
                f.truncate(SIZE_MB << 20)
            self.call("mkfs.ext4", "-q", "-m", "0", self.image)
            self.call("mount", "-o", "loop", self.image, path)

    @staticmethod
    def call(*argv):
        try:
            p = subprocess.run(argv, capture_output=True, text=True)
        except FileNotFoundError as e:
            raise PermissionError(str(e))
        if p.returncode != 0:
            raise PermissionError("%s: %s" % (argv[0], p.stderr.strip()))

    def close(self):
        for _ in range(50):
            if subprocess.run(["umount", self.path], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        if os.path.exists(self.image):
            os.unlink(self.image)


class FullRun(crash.Run):
    def __init__(self, o, kind):
        super().__init__(o)
        self.mount = Mount(kind, os.path.join(self.dir, "disk"))
        self.data = os.path.join(self.mount.path, "data")
        self.ballast = os.path.join(self.mount.path, "ballast")
        self.keep = crash.CUT
        self.refused = 0
        self.healed_s = []
        for w in self.workers:
            w.void = {"40001", "53100", "53200"}

    def clean(self):
        self.mount.close()
        super().clean()

    # -- the disk ------------------------------------------------------------------------------
    def fill(self):
        """Until not even a block more fits."""
        fd = os.open(self.ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for piece in (1 << 20, 1 << 16, 1 << 12, 512):
            try:
                while True:
                    os.write(fd, bytes(piece))
            except OSError:
                pass
        os.close(fd)

    def give_back(self):
        os.unlink(self.ballast)

    # -- what must be true -----------------------------------------------------------------------
    def write_one(self, c):
        try:
            c.query("INSERT INTO kv (key, value) VALUES ('probe', 'x') ON CONFLICT (key) DO UPDATE SET value = excluded.value")
            return None
        except PgError as e:
            return e.state

    def until(self, c, want, seconds, what):
        """Writes until one ends as WANT says; reads all the while. Returns how long it took."""
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            got = self.write_one(c)
            if got == want:
                return time.monotonic() - begin
            if got not in (None, "53100"):
                self.fail(["%s: a write ended with %s" % (what, got)])
            self.read(c)
            time.sleep(0.02)
        self.fail(["%s: not within %d s" % (what, seconds)])

    def read(self, c):
        if len(c.rows("SELECT name FROM meta WHERE pid = 0 AND name <> '_attr_' LIMIT 5")) != 5:
            self.fail(["a read on a full disk misses rows"])

    def at_work(self, s):
        stop = threading.Event()
        threads = [threading.Thread(target=w.run, args=(s.port, stop), daemon=True) for w in self.workers]
        for t in threads:
            t.start()

        def end():
            stop.set()
            for t in threads:
                t.join(30)
        return end

    def cycle(self, s):
        """Full for a while and free again, in one process."""
        end = self.at_work(s)
        time.sleep(self.rng.uniform(0.1, 1.0))
        self.fill()
        c = Client(s.port)
        self.until(c, "53100", 30, "writes are refused on a full disk")
        for _ in range(self.rng.randint(5, 60)):
            self.read(c)
            self.fill()     # whatever the server gave back is taken at once
            time.sleep(0.02)
        self.give_back()
        self.healed_s.append(self.until(c, None, 30, "writes go on when there is space again"))
        c.close()
        time.sleep(0.3)
        end()
        if not s.alive():
            self.fail(["the server ended with status %s" % s.wait()])
        self.verify(s)

    def killed_when_full(self, s):
        end = self.at_work(s)
        time.sleep(self.rng.uniform(0.05, 0.5))
        self.fill()
        time.sleep(self.rng.uniform(0.0, 0.5))
        s.kill()
        end()
        self.kills += 1
        self.fill()
        s = self.start()
        if s.wait_ready():
            c = Client(s.port)
            self.read(c)
            self.started_full += 1
            self.give_back()
            self.healed_s.append(self.until(c, None, 30, "writes go on after a start on a full disk"))
            c.close()
        else:
            if s.wait() != 4:
                self.fail(["a start on a full disk ends with status %s" % s.wait()])
            self.give_back()
            s = self.started()
        self.verify(s)
        return s

    def go(self):
        self.started_full = 0
        s = self.prepare()
        for number in range(self.o.cycles):
            self.cycle(s)
            s = self.killed_when_full(s)
        if s.stop() != 0:
            self.fail(["SIGTERM does not stop the server cleanly"])
        refused = sum(w.refused for w in self.workers)
        print("%d times full; %d acknowledged statements, %d refused; healed after %.1f s at most; "
              "%d of %d starts on a full disk served" % (2 * self.o.cycles, sum(w.acked for w in self.workers), refused,
                                                         max(self.healed_s), self.started_full, self.o.cycles))
        if not refused:
            self.fail(["no worker met a full disk"])
        if self.started_full < self.o.cycles:
            self.fail(["a start on a full disk does not serve reads"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    crash.options(parser)
    parser.add_argument("--cycles", type=int, default=6)
    parser.add_argument("--kind", default="tmpfs,ext4")
    o = parser.parse_args()
    for kind in o.kind.split(","):
        try:
            run = FullRun(o, kind)
        except PermissionError as e:
            print("skipped: %s" % e)
            return SKIPPED
        print("%s:" % kind)
        if crash.main(run) != 0:
            # What is needed to look into it stays; the mount does not.
            shutil.copytree(run.data, os.path.join(run.dir, "data"), dirs_exist_ok=True)
            run.mount.close()
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
