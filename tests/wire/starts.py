#!/usr/bin/env python3
"""Malformed and abandoned starts against one server: bytes that are no start, packets cut or damaged at any place,
handshakes and logins that nobody ends. The server serves on, closes every descriptor and, under LeakSanitizer, has lost
nothing when it stops.

    tests/wire/starts.py --binary build/asan/src/metadb [--count N] [--slice N] [--state FILE]

Start I is drawn from I alone. Each slice has a server of its own, so that a leak is found early; with --state the next
run goes on where this one ended. Prints one ok or FAIL line; a failure names the slice.
"""
import argparse
import os
import random
import shutil
import socket
import ssl
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from security import SSL_REQUEST, Closed, Conn, Place, msg, refused, startup  # noqa: E402

GSS_REQUEST = struct.pack("!II", 8, 80877104)
CANCEL = 80877102
OPEN_AT_ONCE = 48


def damaged(rng, data):
    """DATA with some bytes changed, taken out or put in; or only its beginning."""
    data = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2, 5, 20))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 1:
            del data[at:at + rng.randrange(1, 9)]
        elif data:
            data[at % len(data)] = rng.choice((0, 255, rng.randrange(256)))
    return bytes(data[:rng.randrange(len(data) + 1)] if rng.randrange(2) else data)


def hello(context):
    outgoing = ssl.MemoryBIO()
    half = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        half.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


class Starts:
    def __init__(self, place):
        self.place = place
        self.tls, self.direct = place.tls(), place.tls(alpn=["postgresql"])
        self.hellos = [hello(self.tls), hello(self.direct)]

    def first_packet(self, rng):
        kind = rng.randrange(6)
        if kind == 0:
            return rng.randbytes(rng.randrange(0, 400))
        if kind == 1:
            return struct.pack("!II", 16, CANCEL) + rng.randbytes(rng.choice((8, 8, 3)))
        if kind == 2:
            return struct.pack("!Ii", rng.choice((0, 8, 9, 9999, 10001, 1 << 30)), rng.choice((0, 196608, 196610, 131072, -1))) + \
                rng.randbytes(rng.randrange(40))
        return startup(rng.choice(("app", "metadb", "nobody", "", "x" * 300)), rng.choice(("metadb", "none", "")))

    def scram(self, rng, c):
        """A login that ends at some message, or goes wrong there."""
        c.send(startup(rng.choice(("app", "metadb", "nobody"))))
        c.request()
        first = b"n,,n=,r=" + b"%016x" % rng.getrandbits(64)
        body = b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first
        if rng.randrange(2):
            c.send(damaged(rng, msg("p", body)))
            return
        c.send(msg("p", body))
        c.request()
        c.send(damaged(rng, msg("p", b"c=biws,r=x,p=" + b"A" * 43 + b"=")))

    def start(self, i):
        """Start number I; what is open of it when it has done its part."""
        rng = random.Random(i)
        kind = rng.randrange(16)
        if kind == 0:
            c = Conn(self.place.port, self.tls)
            if rng.randrange(2):
                c.send(damaged(rng, self.first_packet(rng)))
            else:
                self.scram(rng, c)
            return c.sock
        c = Conn(self.place.port)
        if kind < 5:
            c.send(damaged(rng, self.first_packet(rng)))
        elif kind < 8:
            c.send(SSL_REQUEST + damaged(rng, rng.choice(self.hellos)) if kind == 5 else SSL_REQUEST)
            if kind != 5 and c.sock.recv(1) == b"S":
                c.send(damaged(rng, rng.choice(self.hellos)))
        elif kind < 10:
            c.send(damaged(rng, self.hellos[1]))
        elif kind < 12:
            c.send(rng.choice((GSS_REQUEST, GSS_REQUEST * 2, GSS_REQUEST + SSL_REQUEST, SSL_REQUEST * 2)))
        elif kind < 15:
            self.scram(rng, c)
        elif rng.randrange(2):
            c.login("app", "app-pass")
            c.send(damaged(rng, msg("Q", b"select 1\0")))
        return c.sock

    def run(self, first, count):
        waiting = []
        for i in range(first, first + count):
            try:
                waiting.append(self.start(i))
            except (OSError, Closed):
                pass
            if len(waiting) >= OPEN_AT_ONCE or i == first + count - 1:
                for k, s in enumerate(waiting):
                    if (i + k) % 2:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    s.close()
                waiting = []


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def one_slice(place, first, count):
    place.start()
    try:
        Conn(place.port).login("app", "app-pass").close()
        before = descriptors(place.server.pid)
        Starts(place).run(first, count)
        Conn(place.port, place.tls()).login("app", "app-pass").close()
        refused("28P01", Conn(place.port).login, "app", "wrong")
        end = time.monotonic() + 20
        while descriptors(place.server.pid) > before:
            assert time.monotonic() < end, "descriptors are left"
            time.sleep(0.1)
    finally:
        place.stop()
    said = place.read_log()
    assert "Sanitizer" not in said and "runtime error" not in said, said[-2000:]


def prepare(place):
    place.write(max_connections=200, auth__timeout="5s")
    place.start()
    c = Conn(place.port).login("metadb")
    c.query("create role app login password 'app-pass'")
    c.query("alter role metadb password 'root'")
    c.close()
    place.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--slice", type=int, default=20000)
    parser.add_argument("--state", help="holds the number of the next start")
    o = parser.parse_args()
    first = 0
    if o.state and os.path.exists(o.state):
        with open(o.state) as f:
            first = int(f.read())
    place = Place(os.path.abspath(o.binary))
    done = 0
    try:
        prepare(place)
        while done < o.count:
            n = min(o.slice, o.count - done)
            one_slice(place, first + done, n)
            done += n
            if o.state:
                with open(o.state + ".new", "w") as f:
                    f.write("%d\n" % (first + done))
                os.replace(o.state + ".new", o.state)
    except Exception as e:
        print("FAIL starts slice from %d: %s %s" % (first + done, type(e).__name__, str(e)[:3000].replace("\n", " | ")))
        return 1
    finally:
        if place.server is not None:
            place.server.kill()
        shutil.rmtree(place.dir, ignore_errors=True)
    print("ok starts %d, from %d" % (done, first))
    return 0


if __name__ == "__main__":
    sys.exit(main())
