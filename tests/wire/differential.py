#!/usr/bin/env python3
"""metadb and PostgreSQL 15 are sent the same messages; their answers must be equal, message by message.

    differential.py --binary build/debug/src/metadb [--count 2000] [--seed 1] [--only SEED]

First come those of pinned.py, then sequences that are drawn from a seed (sequences.py); both servers start from the same rows (pair.py); what may
differ is listed in streams.py. A sequence that differs is made as short as it can be and printed, with
the seed that gives it. Prints ok, FAIL or skip and a name.
"""
import argparse
import random
import socket
import struct
import sys
import tempfile

import pair
import pinned
import sequences
import streams

HANG_SECONDS = 20


def connect(port):
    s = socket.create_connection(("127.0.0.1", port), HANG_SECONDS)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = struct.pack("!I", 196608) + b"user\0metadb\0database\0metadb\0\0"
    s.sendall(struct.pack("!I", len(body) + 4) + body)
    reader = streams.Reader(s)
    reader.until_ready()
    return reader


def send(reader, data):
    try:
        reader.sock.sendall(data)
    except OSError:
        pass  # it has ended the connection: what it said before counts


def by_steps(reader, steps):
    """Waits wherever an answer is certain: for a Sync outside of COPY, and a Query that nothing precedes."""
    clean, maybe_copying = True, False
    for step in steps:
        send(reader, step.data)
        if step.kind in "PBE" and b"STDIN" in step.data:
            maybe_copying = True
        if step.kind == "Q" and b"STDIN" in step.data and not clean:
            maybe_copying = True
        if (step.kind == "S" and not maybe_copying) or (step.kind == "Q" and clean):
            kind = reader.until_ready()
            if kind is None:
                return
            clean = kind == "Z"
            maybe_copying = kind == "G"
        elif step.kind not in "Hdcf":
            clean = False


def play(port, steps, delivery, seed):
    """The whole stream of one connection."""
    reader = connect(port)
    everything = steps + sequences.END
    if delivery == "steps":
        by_steps(reader, everything)
    elif delivery == "pieces":
        r, data = random.Random(seed), b"".join(s.data for s in everything)
        while data:
            n = r.choice([1, 3, 5, 17, 100, 1000])
            send(reader, data[:n])
            data = data[n:]
    else:
        send(reader, b"".join(s.data for s in everything))
    reader.until_end()
    reader.sock.close()
    return reader.messages


def difference(sides, steps, delivery, seed):
    """None, or (text, PostgreSQL's stream, metadb's stream)."""
    said, left = [], []
    for side in sides:
        side.begin()
        said.append(play(side.port, steps, delivery, seed))
        left.append(side.state())
    at = streams.first_difference(*said)
    if at is not None:
        return "message %d" % at, said
    if left[0] != left[1]:
        return "rows left behind: %s, %s" % (left[0], left[1]), said
    return None


def minimise(sides, steps, delivery, seed):
    """Leaves out what can be left out, from large pieces to single messages."""
    size = max(1, len(steps) // 2)
    while True:
        at, shorter = 0, False
        while at < len(steps):
            candidate = steps[:at] + steps[at + size:]
            if candidate != steps and difference(sides, candidate, delivery, seed):
                steps, shorter = candidate, True
            else:
                at += size
        if size == 1 and not shorter:
            return steps
        size = max(1, size // 2)


def show(sides, steps, delivery, seed):
    found = difference(sides, steps, delivery, seed)
    if not found:
        print("   not again")
        return
    for step in steps:
        print("   > %s" % step)
    print("   %s" % found[0])
    a, b = found[1]
    at = streams.first_difference(a, b)
    for i in range(max(0, (at if at is not None else len(a)) - 2), max(len(a), len(b))):
        if at is None or i > at + 3:
            break
        print("   postgresql %s" % (str(a[i]) if i < len(a) else "(nothing)"))
        if i >= at:
            print("   metadb     %s" % (str(b[i]) if i < len(b) else "(nothing)"))


def signature(found):
    """What is the same for two sequences that show the same difference, most probably."""
    at = streams.first_difference(*found[1])
    return tuple(str(said[at]) if at is not None and at < len(said) else found[0] for said in found[1])


def run(sides, seeds, failures_shown):
    """How many sequences differ; one of each kind is shown."""
    failed, seen = 0, set()
    for seed in seeds:
        steps, delivery = sequences.generate(seed)
        try:
            found = difference(sides, steps, delivery, seed)
        except pair.pgclient.Lost:
            print("seed %d, delivery %s: the server is gone" % (seed, delivery))
            for step in steps:
                print("   > %s" % step)
            raise
        if not found:
            continue
        failed += 1
        if signature(found) in seen or len(seen) >= failures_shown:
            continue
        seen.add(signature(found))
        steps = minimise(sides, steps, delivery, seed)
        print("seed %d, delivery %s, at its shortest:" % (seed, delivery))
        show(sides, steps, delivery, seed)
        sys.stdout.flush()
    return failed


def run_pinned(sides):
    """How many of the pinned sequences differ. Delivered at once, and step by step."""
    failed = 0
    for name, steps in pinned.PINNED:
        for delivery in ("whole", "steps"):
            if difference(sides, steps, delivery, 0):
                failed += 1
                print("pinned \"%s\", delivery %s:" % (name, delivery))
                show(sides, steps, delivery, 0)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, action="append")
    parser.add_argument("--shown", type=int, default=10)
    args = parser.parse_args()
    if not pair.tool("initdb"):
        print("skip differential PostgreSQL 15 is not installed")
        return 0
    seeds = args.only or range(args.seed, args.seed + args.count)
    with tempfile.TemporaryDirectory(prefix="differential.") as work:
        sides = [pair.Postgresql(work)]
        try:
            sides.append(pair.Metadb(work, args.binary))
            failed_pinned = 0 if args.only else run_pinned(sides)
            failed = run(sides, seeds, args.shown)
        finally:
            clean = all([side.stop() for side in sides])
    if not clean:
        print("FAIL differential-stop see above")
    if failed_pinned:
        print("FAIL differential-pinned %d of %d differ" % (failed_pinned, 2 * len(pinned.PINNED)))
    elif not args.only:
        print("ok differential-pinned %d sequences in two deliveries" % len(pinned.PINNED))
    if failed:
        print("FAIL differential %d of %d sequences differ, first seed %d" % (failed, len(seeds), seeds[0]))
        return 1
    print("ok differential %d sequences from seed %d" % (len(seeds), seeds[0]))
    return 0 if clean and not failed_pinned else 1


if __name__ == "__main__":
    sys.exit(main())
