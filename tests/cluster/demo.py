#!/usr/bin/env python3
"""`metadb demo` as an operator meets it: it says where things are, serves, reports a death, and leaves nothing behind.

    demo.py --binary build/debug/src/metadb
"""
import argparse
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from pgclient import Client, Lost, PgError  # noqa: E402
from server import clean_env, end_with_test  # noqa: E402

HANGS = 120
failed = 0


class Demo:
    def __init__(self, binary, *flags, env=None):
        self.process = subprocess.Popen([binary, "demo", *flags, "--memory.budget=64MB"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=clean_env(**(env or {})),
                                        preexec_fn=end_with_test)
        self.text = ""

    def until(self, pattern):
        """Reads on until PATTERN was said."""
        end = time.monotonic() + HANGS
        while True:
            m = re.search(pattern, self.text)
            if m:
                return m
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("not said: %s\n%s" % (pattern, self.text))
            piece = os.read(self.process.stdout.fileno(), 4096).decode()
            if not piece:
                raise AssertionError("ended without saying: %s\n%s" % (pattern, self.text))
            self.text += piece

    def nodes(self, count):
        """number -> process"""
        self.until("Ctrl-C stops all")
        found = {int(n): int(p) for n, p in re.findall(r"node (\d) +process (\d+)", self.text)}
        assert len(found) == count, self.text
        return found

    def ends(self):
        rest, _ = self.process.communicate(timeout=HANGS)
        self.text += rest.decode()
        return self.process.returncode


def gone(pid):
    """Ended, if only as one whom nobody has waited for yet."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def all_gone(pids):
    end = time.monotonic() + HANGS
    while not all(gone(p) for p in pids):
        assert time.monotonic() < end, "nodes outlived the demo"
        time.sleep(0.02)


def a_write_is_taken(demo):
    """By any node that serves; for as long as it takes them to agree on one."""
    end = time.monotonic() + HANGS
    while time.monotonic() < end:
        for port in re.findall(r"serves +psql -h 127.0.0.1 -p (\d+)", demo.text):
            try:
                c = Client(int(port))
                c.query("INSERT INTO kv (key, value) VALUES ('a', '1') ON CONFLICT (key) DO UPDATE SET value = excluded.value")
                c.close()
                return int(port)
            except (Lost, PgError):
                pass
        if select.select([demo.process.stdout], [], [], 0.05)[0]:
            demo.text += os.read(demo.process.stdout.fileno(), 4096).decode()
    raise AssertionError("no node took a write\n" + demo.text)


def have_met(data, numbers):
    """Each node has met all others: before that a new one does not vote."""
    end = time.monotonic() + HANGS
    for n in numbers:
        while True:
            with open("%s/node-%d.log" % (data, n)) as f:
                if " node.may_vote" in f.read():
                    break
            assert time.monotonic() < end, "node %d has not met the others" % n
            time.sleep(0.02)


def test_three_nodes_serve_and_leave_nothing(o, tmp):
    d = Demo(o.binary, env={"TMPDIR": tmp})
    pids = d.nodes(3)
    d.until("node . serves")
    a_write_is_taken(d)
    assert len(os.listdir(tmp)) == 1
    d.process.send_signal(signal.SIGINT)
    assert d.ends() == 0, d.text
    all_gone(pids.values())
    assert os.listdir(tmp) == [], "the temporary directory is still there"
    assert "killed" not in d.text and "ended with status" not in d.text, d.text


def test_one_node_is_a_demo_too(o, tmp):
    d = Demo(o.binary, "--nodes", "1", env={"TMPDIR": tmp})
    pids = d.nodes(1)
    d.until("node 1 serves")
    a_write_is_taken(d)
    d.process.send_signal(signal.SIGTERM)
    assert d.ends() == 0, d.text
    all_gone(pids.values())


def test_a_death_is_said_and_the_others_go_on(o, tmp):
    d = Demo(o.binary, "--data", tmp + "/d")
    pids = d.nodes(3)
    for n in pids:
        d.until("node %d serves" % n)
    have_met(tmp + "/d", pids)
    a_write_is_taken(d)
    victim = int(re.search(r"node (\d) serves", d.text)[1])
    os.kill(pids[victim], signal.SIGKILL)
    d.until("node %d was killed by signal 9" % victim)
    d.until("start it again: .*--data .*node-%d" % victim)
    a_write_is_taken(d)
    d.process.send_signal(signal.SIGINT)
    assert d.ends() == 0, d.text
    # What was written is there for the next demo in this directory, which knows how many nodes it has.
    d = Demo(o.binary, "--data", tmp + "/d")
    d.nodes(3)
    d.until("node . serves")
    c = Client(a_write_is_taken(d))
    assert c.value("SELECT value FROM kv WHERE key = 'a'") is not None
    c.close()
    d.process.send_signal(signal.SIGINT)
    assert d.ends() == 0, d.text
    d = Demo(o.binary, "--data", tmp + "/d", "--nodes", "5")
    assert d.ends() == 1 and "has 3 nodes, not 5" in d.text, d.text


def ports(demo):
    """node number -> port for clients"""
    return {int(n): int(p) for n, p in re.findall(r"node (\d) serves +psql -h 127.0.0.1 -p (\d+)", demo.text)}


class Writer(threading.Thread):
    """Statements of every kind at one node, over and over; none may fail, whoever leads."""

    def __init__(self, number, port, stop):
        super().__init__()
        self.number, self.port, self.stop = number, port, stop
        self.rounds, self.error = 0, None

    def round(self, c, i):
        name = "n%d-%d" % (self.number, i)
        assert c.value("INSERT INTO meta (pid, name, type, size) VALUES (0, '%s', 'f', 1) RETURNING name" % name) == name
        assert c.value("UPDATE meta SET size = size + 1 WHERE pid = 0 AND name = '%s' RETURNING size" % name) == "2"
        assert c.value("SELECT size FROM meta WHERE pid = 0 AND name = '%s'" % name) == "2"
        c.query("BEGIN")
        c.query("INSERT INTO kv (key, value) VALUES ('%s', 'x')" % name)
        assert c.value("SELECT value FROM kv WHERE key = '%s'" % name) == "\\x78"
        c.query("COMMIT")

    def run(self):
        try:
            c = Client(self.port)
            while not self.stop.is_set():
                self.round(c, self.rounds)
                self.rounds += 1
            c.close()
        except Exception as e:  # said by the test
            self.error = e


def test_every_node_serves_while_leadership_moves(o, tmp):
    d = Demo(o.binary, "--data", tmp + "/d")
    pids = d.nodes(3)
    for n in pids:
        d.until("node %d serves" % n)
    have_met(tmp + "/d", pids)
    a_write_is_taken(d)
    at, stop = ports(d), threading.Event()
    writers = [Writer(n, p, stop) for n, p in at.items()]
    for w in writers:
        w.start()
    moved, k = 0, 0
    while moved < 6 or min(w.rounds for w in writers) < 10:
        if any(w.error for w in writers):
            break
        k += 1
        c = Client(at[k % 3 + 1])
        try:
            c.query("SELECT * FROM metadb.transfer_leader(1, %d)" % ((k + k // 3) % 3 + 1))
            moved += 1
        except PgError as e:
            assert e.state in ("55000", "57P03", "40003"), e  # another moves it, or was faster
        c.close()
        time.sleep(0.2)
    stop.set()
    for w in writers:
        w.join()
        assert w.error is None, "node %d: %r" % (w.number, w.error)
    for p in at.values():
        c = Client(p)
        files = c.value("SELECT count(*) FROM meta WHERE pid = 0 AND name <> '_attr_'")
        counted = c.value("SELECT num_children FROM meta WHERE pid = 0 AND name = '_attr_'")
        assert int(files) == int(counted) == sum(w.rounds for w in writers), (files, counted, [w.rounds for w in writers])
        assert c.rows("SELECT * FROM metadb.check()") == []
        c.close()
    d.process.send_signal(signal.SIGINT)
    assert d.ends() == 0, d.text


def test_nodes_end_with_a_killed_demo(o, tmp):
    d = Demo(o.binary, "--data", tmp + "/d")
    pids = d.nodes(3)
    d.process.kill()
    d.process.wait()
    all_gone(pids.values())


def test_all_nodes_dead_ends_it(o, tmp):
    d = Demo(o.binary, "--data", tmp + "/d")
    for p in d.nodes(3).values():
        os.kill(p, signal.SIGKILL)
    assert d.ends() == 4 and "no node is left" in d.text, d.text


def test_wrong_flags_are_named(o, tmp):
    for flags, text in ((["--nodes", "8"], "--nodes takes 1 to 7"), (["--port", "x"], "not a port"), (["--memtable.age"], "--NAME=VALUE"),
                        (["--cluster.id=3"], "the demo that sets"), (["surplus"], "--NAME=VALUE")):
        d = Demo(o.binary, "--data", tmp + "/d", *flags[:-1], flags[-1])
        assert d.ends() == 1 and text in d.text, d.text


def main():
    global failed
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", required=True)
    o = p.parse_args()
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        with tempfile.TemporaryDirectory(prefix="metadb-demo-test.") as tmp:
            try:
                test(o, tmp)
                print("ok %s" % name[5:])
            except AssertionError as e:
                failed += 1
                print("FAIL %s: %s" % (name[5:], e))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
