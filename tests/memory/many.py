#!/usr/bin/env python3
"""Many connections at once: fairness, back-pressure, and memory that is accounted for.

    many.py --binary build/release/src/metadb [--idle 10000] [--active 1024]

What is judged are counts: statements served to each client, answers that came before others, bytes that
metadb.memory shows. Prints ok or FAIL and a name, one line per test.
"""
import argparse
import os
import resource
import selectors
import shutil
import socket
import struct
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from pgclient import Client  # noqa: E402
from server import Server  # noqa: E402

READY = b"Z\0\0\0\5I"
MB = 1 << 20
HELD_BYTES = 256 * MB  # FE_HELD_BYTES
DIR = 1000
ENTRIES = 2000


def query(sql):
    body = sql.encode() + b"\0"
    return b"Q" + struct.pack("!I", len(body) + 4) + body


def lookup(i):
    return query("SELECT id FROM meta WHERE pid = %d AND name = 'n%06d'" % (DIR, i % ENTRIES))


def create(client, i):
    return query("INSERT INTO meta (pid, name) VALUES (%d, 'c%d.%d')" % (DIR, client, i))


COUNT = query("SELECT count(*) FROM meta WHERE pid = %d AND name >= 'n' AND name < 'o'" % DIR)
LIST = query("SELECT name, id, type FROM meta WHERE pid = %d AND name <> '_attr_' ORDER BY name LIMIT 1000" % DIR)


class Peer:
    """A connection that is not waited for: what it has to send, and the answers it got, counted."""

    def __init__(self, port, selector, receive=None):
        self.sock = socket.socket()
        if receive:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setblocking(False)
        self.selector, self.out, self.sent, self.tail, self.answers, self.reading = selector, b"", 0, b"", 0, True
        self.events = 0
        body = struct.pack("!I", 196608) + b"user\0metadb\0database\0metadb\0\0"
        self.put(struct.pack("!I", len(body) + 4) + body)

    def put(self, data):
        self.out = self.out[self.sent:] + data
        self.sent = 0
        self.flush()

    def put_later(self, data):
        """The same, but nothing is sent before the next turn."""
        self.out, self.sent = self.out[self.sent:] + data, 0
        self.watch()

    def flush(self):
        for _ in range(16):
            if self.sent == len(self.out):
                break
            try:
                self.sent += self.sock.send(memoryview(self.out)[self.sent:self.sent + 65536])
            except BlockingIOError:
                break
        if self.sent == len(self.out):
            self.out, self.sent = b"", 0
        self.watch()

    def watch(self):
        want = (selectors.EVENT_READ if self.reading else 0) | (selectors.EVENT_WRITE if self.out else 0)
        if want == self.events:
            return
        if not self.events:
            self.selector.register(self.sock, want, self)
        elif not want:
            self.selector.unregister(self.sock)
        else:
            self.selector.modify(self.sock, want, self)
        self.events = want

    def receive(self):
        """New answers: ReadyForQuery messages. Their bytes occur in no row of these tests."""
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            return 0
        if not data:
            raise SystemExit("FAIL many the server closed a connection")
        data = self.tail + data
        new = data.count(READY)
        end = data.rfind(READY)
        self.tail = data[max(end + len(READY) if end >= 0 else 0, len(data) - len(READY) + 1):]
        self.answers += new
        return new

    def close(self):
        if self.events:
            self.selector.unregister(self.sock)
        self.sock.close()


class Crowd:
    def __init__(self, port):
        self.port, self.selector, self.peers = port, selectors.DefaultSelector(), []

    def add(self, count, **more):
        """COUNT connections, all greeted. A few at a time: a listen queue is short."""
        added = []
        while len(added) < count:
            some = [Peer(self.port, self.selector, **more) for _ in range(min(64, count - len(added)))]
            added += some
            self.turn_until(lambda: all(p.answers for p in some))
        for p in added:
            p.answers = 0
        self.peers += added
        return added

    def turn(self, on_answer=None):
        for key, events in self.selector.select(10):
            p = key.data
            if events & selectors.EVENT_READ:
                new = p.receive()
                if new and on_answer:
                    on_answer(p, new)
            if events & selectors.EVENT_WRITE:
                p.flush()

    def turn_until(self, over, on_answer=None):
        while not over():
            self.turn(on_answer)

    def close(self, some=None):
        for p in some or self.peers:
            p.close()
        self.peers = [p for p in self.peers if some and p not in some]


class Test:
    def __init__(self, o, top):
        self.o, self.failures = o, 0
        self.server = Server(o.binary, os.path.join(top, "data"), "--max_connections=%d" % (o.idle + o.active + 500),
                             log=os.path.join(top, "server.log"))
        assert self.server.wait_ready()
        self.control = Client(self.server.port, timeout=300)
        self.control.query("INSERT INTO meta (pid, name, id, type) VALUES (0, 'd', %d, 'd')" % DIR)
        for first in range(0, ENTRIES, 500):
            rows = ", ".join("(%d, 'n%06d', %d)" % (DIR, i, 10**6 + i) for i in range(first, first + 500))
            self.control.query("INSERT INTO meta (pid, name, id) VALUES " + rows)
        self.crowd = Crowd(self.server.port)

    def judge(self, name, good, text):
        print("%s %s %s" % ("ok" if good else "FAIL", name, text), flush=True)
        self.failures += not good

    def memory(self):
        return {what: int(size) for what, size in self.control.rows("SELECT what, bytes FROM metadb.memory")}

    def accounted(self, name):
        """What nobody counted must stay a fixed part and a small share."""
        m = self.memory()
        limit = 40 * MB + m["accounted"] // 8
        self.judge(name, m["unaccounted"] <= limit and m["accounted"] <= m["allocated"] * 1.1 + 8 * MB,
                   "resident %d MB, allocated %d, accounted %d, unaccounted %d, at most %d" %
                   tuple(v // MB for v in (m["resident"], m["allocated"], m["accounted"], m["unaccounted"], limit)))
        return m

    def share(self):
        """Every client sends its next statement when it has the answer: all are served alike."""
        clients = self.crowd.add(self.o.active)
        number = {p: i for i, p in enumerate(clients)}
        rounds = 60
        state = {"total": 0}

        def next_statement(p, new):
            state["total"] += new
            p.put(create(number[p], p.answers) if p.answers % 4 == 0 else lookup(p.answers))

        for p in clients:
            p.put(lookup(number[p]))
        self.crowd.turn_until(lambda: state["total"] >= rounds * len(clients), next_statement)
        served = sorted(p.answers for p in clients)
        self.judge("many-share", 2 * served[0] >= served[-1] and served[0] > 0,
                   "%d clients beside %d idle: %d to %d statements each" % (len(clients), self.o.idle, served[0], served[-1]))
        self.crowd.turn_until(lambda: state["total"] >= rounds * len(clients) + len(clients), lambda p, n: state.update(total=state["total"] + n))
        self.crowd.close(clients)

    def pipelines(self):
        """Who has thousands of statements under way does not keep others waiting until they are done."""
        greedy, modest = self.crowd.add(4), self.crowd.add(64)
        queued, rounds = 1500, 5
        for p in greedy:
            p.put(COUNT * queued)
        for p in modest:
            p.put(lookup(1))

        def next_statement(p, new):
            if p in modest and p.answers < rounds:
                p.put(lookup(p.answers))

        self.crowd.turn_until(lambda: all(p.answers == rounds for p in modest), next_statement)
        left = [queued - p.answers for p in greedy]
        self.crowd.turn_until(lambda: all(p.answers == queued for p in greedy))
        self.judge("many-pipelines", min(left) > queued // 4,
                   "64 clients were served %d times while at least %d of each %d queued statements were still open" % (rounds, min(left), queued))
        self.crowd.close(greedy + modest)

    def deaf(self):
        """Clients that send and do not read: the server stops reading, others are served."""
        before = self.memory()
        deaf = self.crowd.add(300, receive=8192)
        for p in deaf:
            p.reading = False
            p.put((LIST + lookup(0) * 20) * 2500)  # 3 MB of statements, 100 MB of answers
        good = self.crowd.add(16)
        most = {"bytes": 0}
        for p in good:
            p.put(lookup(0))
        self.crowd.turn_until(lambda: all(p.answers >= 300 for p in good), lambda p, new: p.put(lookup(p.answers)))
        m = self.accounted("many-deaf-accounted")
        most["bytes"] = m["connection buffers and encodings"] - before["connection buffers and encodings"]
        # A buffer doubles; each may be in the middle of a read or of a page.
        limit = HELD_BYTES + len(deaf) * MB // 2
        self.judge("many-deaf", most["bytes"] <= limit, "300 clients that do not read: %d MB of buffers, at most %d" % (most["bytes"] // MB, limit // MB))
        self.crowd.close(deaf + good)

    def slow_readers_get_all(self):
        """A client that reads a little at a time gets every answer, whole."""
        slow = self.crowd.add(8, receive=8192)
        for p in slow:
            p.put(LIST * 40)
        self.crowd.turn_until(lambda: all(p.answers == 40 for p in slow))
        self.judge("many-slow-readers", True, "8 clients with small windows read 40 lists of 1000 each")
        self.crowd.close(slow)

    @staticmethod
    def load(n, rows):
        data = "".join("%d\tk%d.%06d\n" % (DIR, n, i) for i in range(rows)).encode()
        chunks = [data[at:at + 60000] for at in range(0, len(data), 60000)]
        return query("COPY meta (pid, name) FROM STDIN") + b"".join(b"d" + struct.pack("!I", 4 + len(c)) + c for c in chunks) + b"c\0\0\0\4"

    def copies(self):
        """COPY faster than it can be applied: bounded memory, and others are served meanwhile."""
        before = self.memory()
        loaders, good = self.crowd.add(32), self.crowd.add(16)
        rows = 40000
        loads = [self.load(n, rows) for n in range(len(loaders))]
        for p in good:
            p.put(lookup(0))
        for p, load in zip(loaders, loads):
            p.put_later(load)
        seen = {"least": None}

        def next_statement(p, new):
            if p in good:
                p.put(lookup(p.answers))
            elif seen["least"] is None:
                seen["least"] = min(g.answers for g in good)
                seen["memory"] = self.memory()

        self.crowd.turn_until(lambda: all(p.answers for p in loaders), next_statement)
        grown = seen["memory"]["connection buffers and encodings"] - before["connection buffers and encodings"]
        self.judge("many-copies", grown <= HELD_BYTES and seen["least"] >= 20,
                   "32 loaders of %d rows: %d MB of buffers; the others were served %d times before the first was done" % (rows, grown // MB, seen["least"]))
        self.accounted("many-copies-accounted")
        self.crowd.close(loaders + good)
        found = int(self.control.value("SELECT count(*) FROM meta WHERE pid = %d AND name >= 'k' AND name < 'l'" % DIR))
        self.judge("many-copies-all-there", found == 32 * rows, "%d rows" % found)

    def run(self):
        self.accounted("many-start-accounted")
        self.crowd.add(self.o.idle)
        self.accounted("many-idle-accounted")
        self.share()
        self.pipelines()
        self.deaf()
        self.slow_readers_get_all()
        self.copies()
        self.crowd.close()
        self.control.close()
        self.judge("many-stop", self.server.stop() == 0, "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--binary", required=True)
    p.add_argument("--idle", type=int, default=10000)
    p.add_argument("--active", type=int, default=1024)
    p.add_argument("--tmp", default=tempfile.gettempdir())
    o = p.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = hard - 600
    if o.active > room:
        print("the limit of descriptors is %d" % hard)
        return 77
    if o.idle + o.active > room:
        o.idle = room - o.active
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    top = tempfile.mkdtemp(prefix="metadb-many.", dir=o.tmp)
    t = None
    try:
        t = Test(o, top)
        t.run()
    finally:
        if t and t.server.alive():
            t.server.kill()
        shutil.rmtree(top)
    return 1 if t.failures else 0


if __name__ == "__main__":
    sys.exit(main())
