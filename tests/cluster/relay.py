#!/usr/bin/env python3
"""The wire between the nodes: carries Ethernet frames between links r1, r2, …, and spoils what it is told to.

    relay.py LINKS SEED

Commands come on standard input, one a line, and are answered by "ok":

    FROM TO cut              nothing gets through in this direction
    FROM TO LOSS DELAY_US    LOSS of the frames are lost (0 to 1), the others take longer
    stats                    answers "carried lost"

Every direction of every pair has a rule of its own, which is what makes one-way cuts possible; and it needs neither
netem nor a filter in the kernel.  Delays keep the order of frames.
"""
import heapq
import os
import random
import select
import socket
import sys
import time

OUTGOING = 4  # what this program itself sends comes back with this type
BATCH = 64


class Rule:
    def __init__(self):
        self.cut = False
        self.loss = 0.0
        self.delay = 0.0
        self.last = 0.0  # when the last frame of this direction is due


class Relay:
    def __init__(self, count, seed):
        self.rng = random.Random(seed)
        self.numbers = range(1, count + 1)
        self.rules = {(a, b): Rule() for a in self.numbers for b in self.numbers if a != b}
        self.sockets = {n: self.open(n) for n in self.numbers}
        self.late = []  # (due, serial, to, frame)
        self.serial = self.carried = self.lost = 0
        self.text = b""

    @staticmethod
    def open(number):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        s.bind(("r%d" % number, 0))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        s.setblocking(False)
        return s

    def send(self, to, frame):
        try:
            self.sockets[to].send(frame)
            self.carried += 1
        except OSError:
            self.lost += 1  # a full queue loses frames, as a wire does

    def carry(self, a, b, frame):
        rule = self.rules[(a, b)]
        if rule.cut or (rule.loss and self.rng.random() < rule.loss):
            self.lost += 1
            return
        now = time.monotonic()
        if not rule.delay and rule.last <= now:
            self.send(b, frame)
            return
        rule.last = max(rule.last, now + rule.delay)
        self.serial += 1
        heapq.heappush(self.late, (rule.last, self.serial, b, frame))

    def receive(self, a):
        for _ in range(BATCH):
            try:
                frame, address = self.sockets[a].recvfrom(65536)
            except OSError:
                return
            if address[2] == OUTGOING:
                continue
            if frame[0] & 1:  # to all
                for b in self.numbers:
                    if b != a:
                        self.carry(a, b, frame)
            elif (a, frame[5]) in self.rules:  # a machine's number is the last byte of its link's address
                self.carry(a, frame[5], frame)

    def command(self, line):
        words = line.decode().split()
        if words == ["stats"]:
            return "%d %d" % (self.carried, self.lost)
        rule = self.rules[(int(words[0]), int(words[1]))]
        rule.cut = words[2] == "cut"
        rule.loss, rule.delay = (0.0, 0.0) if rule.cut else (float(words[2]), int(words[3]) / 1e6)
        return "ok"

    def commands(self):
        """False at the end of the input."""
        more = os.read(0, 4096)
        self.text += more
        *lines, self.text = self.text.split(b"\n")
        for line in lines:
            os.write(1, (self.command(line) + "\n").encode())
        return bool(more)

    def run(self):
        poll = select.poll()
        poll.register(0, select.POLLIN)
        owners = {}
        for n, s in self.sockets.items():
            poll.register(s, select.POLLIN)
            owners[s.fileno()] = n
        while True:
            wait = max(0.0, self.late[0][0] - time.monotonic()) * 1000 if self.late else None
            for fd, _ in poll.poll(wait):
                if fd == 0:
                    if not self.commands():
                        return
                else:
                    self.receive(owners[fd])
            now = time.monotonic()
            while self.late and self.late[0][0] <= now:
                _, _, to, frame = heapq.heappop(self.late)
                self.send(to, frame)


if __name__ == "__main__":
    Relay(int(sys.argv[1]), int(sys.argv[2])).run()
