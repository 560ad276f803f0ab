"""Nodes of a cluster as processes on machines of their own, and the wire between them."""
import os
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
from isolate import Machine  # noqa: E402
from pgclient import Client, Lost, PgError  # noqa: E402
from server import clean_env, end_with_test  # noqa: E402

CLIENTS, PEERS = 7432, 7433


class Wire:
    def __init__(self, count, seed):
        self.count = count
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "relay.py"), str(count), str(seed)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        preexec_fn=end_with_test)
        self.mu = threading.Lock()

    def say(self, text):
        with self.mu:
            self.process.stdin.write(text + "\n")
            return self.process.stdout.readline().strip()

    def cut(self, a, b):
        """From A to B; the other way goes on."""
        if self.say("%d %d cut" % (a, b)) != "ok":
            raise RuntimeError("the relay is gone")

    def spoil(self, loss, delay_us):
        for a in range(1, self.count + 1):
            for b in range(1, self.count + 1):
                if a != b:
                    self.say("%d %d %g %d" % (a, b, loss, delay_us))

    def heal(self):
        self.spoil(0, 0)

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)

    def stats(self):
        return tuple(map(int, self.say("stats").split()))


class Node:
    def __init__(self, binary, machine, directory, settings):
        self.binary, self.machine, self.settings = binary, machine, settings
        self.number = machine.number
        self.data = os.path.join(directory, "node-%d" % self.number)
        self.log = os.path.join(directory, "node-%d.log" % self.number)
        self.env = {}  # further environment of the next start
        self.process = None
        self.stopped = False  # SIGSTOP

    def start(self):
        argv = [self.binary, "start", "--data", self.data, "--listen",
                "%s:%d" % (self.machine.client_address, CLIENTS), "--cluster.node=%d" % self.number, *self.settings]

        def before():
            self.machine.inside()
            end_with_test()

        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_env(**self.env),
                                            start_new_session=True, preexec_fn=before)
        self.stopped = False

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
        return self.process.wait(60)

    def stop(self):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped = True

    def resume(self):
        if self.stopped and self.alive():
            self.process.send_signal(signal.SIGCONT)
        self.stopped = False

    def connect(self, timeout):
        return Client(CLIENTS, host=self.machine.client_address, timeout=timeout)


class Cluster:
    def __init__(self, binary, directory, count, seed, settings):
        self.machines = [Machine(i + 1) for i in range(count)]
        self.wire = Wire(count, seed)
        listed = " ".join("%d=%s:%d/%s:%d" % (m.number, m.peer_address, PEERS, m.client_address, CLIENTS)
                          for m in self.machines)
        shared = ["--cluster.id=7040", "--cluster.nodes=" + listed, "--auth.rule=host all all 0.0.0.0/0 trust"]
        self.nodes = [Node(binary, m, directory, shared + settings) for m in self.machines]

    def start(self):
        for n in self.nodes:
            n.start()

    def end(self):
        """Once the nodes have ended: machines of the same numbers may be made again."""
        self.wire.end()
        for m in self.machines:
            m.end()

    def ask(self, node, sql, timeout=2.0):
        """Rows, or None where there is no answer."""
        try:
            c = node.connect(timeout)
            try:
                return c.rows(sql)
            finally:
                c.close()
        except (Lost, PgError, OSError):
            return None

    def leader(self, timeout=60.0):
        """The node that serves meta and holds itself for its leader."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if not any(n.alive() for n in self.nodes):
                return None
            for n in self.nodes:
                if not n.alive() or n.stopped:
                    continue
                rows = self.ask(n, "SELECT * FROM metadb.shards")
                leads = [r for r in rows or [] if r[3] == str(n.number) and r[2] == "serving"]
                if rows and len(leads) == len(rows):
                    return n
            time.sleep(0.05)
        return None
