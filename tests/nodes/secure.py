#!/usr/bin/env python3
"""Three nodes that talk in TLS: they serve; a node in the clear, one with another node's certificate and one whose
certificate a stranger signed are kept out, and the logs say why; new files are used without a restart."""
import argparse
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

import three
from three import NODES, check, until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgclient  # noqa: E402
import server  # noqa: E402


def openssl(*args):
    subprocess.run(("openssl",) + args, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Authority:
    def __init__(self, directory, name):
        self.directory, self.name = directory, name
        self.pem, self.key = (os.path.join(directory, name + e) for e in (".pem", ".key"))
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=" + name, "-keyout", self.key, "-out", self.pem)

    def sign(self, name, target):
        """A certificate for NAME: TARGET.pem and TARGET.key, each replaced at once."""
        for end in ("key", "csr", "pem"):
            if os.path.exists("%s.new.%s" % (target, end)):
                os.unlink("%s.new.%s" % (target, end))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
                "-keyout", target + ".new.key", "-out", target + ".new.csr")
        openssl("x509", "-req", "-in", target + ".new.csr", "-CA", self.pem, "-CAkey", self.key, "-CAcreateserial",
                "-days", "2", "-out", target + ".new.pem")
        os.chmod(target + ".new.key", 0o600)
        os.replace(target + ".new.key", target + ".key")
        os.replace(target + ".new.pem", target + ".pem")
        return target


class SecureCluster(three.Cluster):
    def __init__(self, binary, directory):
        super().__init__(binary, directory)
        self.authority = Authority(directory, "nodes")
        self.stranger = Authority(directory, "stranger")
        for i in range(NODES):
            self.authority.sign("node-%d" % (i + 1), self.files(i))

    def files(self, i):
        return os.path.join(self.directory, "node%d" % (i + 1))

    def start(self, i, *settings, env=None, certificate=None, clear=False):
        files = certificate or self.files(i)
        tls = () if clear else ("--cluster.tls_certificate=%s.pem" % files, "--cluster.tls_key=%s.key" % files,
                                "--cluster.tls_ca=" + self.authority.pem)
        super().start(i, *tls, *settings, env=env)

    def log(self, i):
        with open(os.path.join(self.directory, "%d.log" % (i + 1)), errors="replace") as f:
            return f.read()

    def wait_log(self, i, *words, after=0):
        """A line with all WORDS, behind the first AFTER characters."""
        return until("the log of node %d says %s" % (i + 1, " ".join(words)), lambda: next(
            (line for line in self.log(i)[after:].splitlines() if all(w in line for w in words)), None))


def write(node, key):
    def attempt():
        try:
            return three.put(node, key)[0] or None
        except pgclient.Lost:
            return None
    until("a write of %s" % key, attempt)


def value(node, key):
    """None: it is not there, or the node does not say."""
    try:
        client = pgclient.Client(node.port)
        found = client.value("SELECT value FROM kv WHERE key = '%s'" % key)
        client.close()
        return found
    except (pgclient.PgError, pgclient.Lost):
        return None


def peers(node):
    """State and last error of the other nodes, by id."""
    client = pgclient.Client(node.port)
    rows = client.rows("SELECT node, state, last_error FROM metadb.peers")
    client.close()
    return {int(r[0]): (r[1], r[2] or "") for r in rows}


def apart(cluster, i, seconds=1.5):
    """Node I stays without the others."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for n, p in peers(cluster.nodes[0]).items():
            check(n != i + 1 or p[0] != "up", "node %d is kept out, not %s" % (i + 1, p))
        time.sleep(0.1)


def in_the_clear(cluster):
    """What a node that knows no TLS would say, and what is not even that."""
    for said in (struct.pack("<4sBBHIIQ", b"mdbp", 1, 1, 0, 0, 0, 0), b"\x16", b"\x16\x03\x01\xff\xff" + b"x" * 70000, b""):
        with socket.create_connection(("127.0.0.1", cluster.peers[0]), 10) as s:
            try:
                s.sendall(said)
                s.shutdown(socket.SHUT_WR)
                while s.recv(1 << 16):
                    pass
            except OSError:
                pass
    cluster.wait_log(0, "net.stranger_gone", "in the clear")


def an_impostor(cluster):
    """A node 2 that listens where node 3 should."""
    listed = " ".join("%d=127.0.0.1:%d/127.0.0.1:%d" % (n, p, q) for n, p, q in (
        (1, cluster.peers[0], cluster.ports[0]), (2, cluster.peers[2], cluster.ports[2]),
        (3, server.free_port(), server.free_port())))
    files = cluster.files(1)
    data = os.path.join(cluster.directory, "impostor")
    return server.Server(cluster.binary, data, "--cluster.id=7040", "--cluster.node=2", "--cluster.nodes=" + listed,
                         "--cluster.tls_certificate=%s.pem" % files, "--cluster.tls_key=%s.key" % files,
                         "--cluster.tls_ca=" + cluster.authority.pem, log=data + ".log", port=cluster.ports[2])


def run(cluster):
    last = NODES - 1
    three.every_node_serves(cluster)
    for i in range(NODES):
        check("net.tls_loaded" in cluster.log(i), "a node says that it has its certificate")
    in_the_clear(cluster)

    # Kept out: in the clear; another node's certificate; another authority's.
    cluster.stop(last)
    cluster.start(last, clear=True)
    cluster.wait_log(0, "net.stranger_gone", "in the clear")
    apart(cluster, last)
    write(cluster.nodes[0], "without the third")
    cluster.stop(last)
    mark = len(cluster.log(0))
    wrong = cluster.authority.sign("node-1", os.path.join(cluster.directory, "wrong"))
    cluster.start(last, certificate=wrong)
    check(cluster.nodes[last].process.wait(timeout=60) != 0, "a node does not start with another's certificate")
    check('not of this node, "node-3"' in cluster.log(last), "and says so")
    cluster.nodes[last] = None
    foreign = cluster.stranger.sign("node-3", os.path.join(cluster.directory, "foreign"))
    cluster.start(last, certificate=foreign)
    cluster.wait_log(0, "certificate verify failed", after=mark)
    apart(cluster, last)
    cluster.stop(last)

    # Node 2's certificate where node 3 should be.
    mark = len(cluster.log(0))
    impostor = an_impostor(cluster)
    cluster.wait_log(0, "net.peer_refused", 'reason="certificate"', "node-2", "node-3", after=mark)
    apart(cluster, last)
    impostor.kill()
    cluster.start(last)
    until("the third is back", lambda: peers(cluster.nodes[0])[NODES][0] == "up" or None)
    until("it has what was written", lambda: value(cluster.nodes[last], "without the third"))

    # New files, first ones that do not fit.
    mark = len(cluster.log(0))
    with open(cluster.files(0) + ".pem", "w") as f:
        f.write("nothing\n")
    cluster.wait_log(0, "net.tls_not_loaded", after=mark)
    write(cluster.nodes[1], "still connected")
    cluster.authority.sign("node-1", cluster.files(0))
    cluster.wait_log(0, "net.tls_reloaded", after=mark)
    cluster.stop(last)
    cluster.start(last)
    until("new connections come with the new files", lambda: peers(cluster.nodes[0])[NODES][0] == "up" or None)
    write(cluster.nodes[last], "with new files")
    for i in range(NODES):
        cluster.stop(i)
        check("Sanitizer" not in cluster.log(i), "no sanitizer has anything to say")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    o = parser.parse_args()
    if shutil.which("openssl") is None:
        print("no openssl: not tried")
        return 0
    three.with_cluster(lambda d: SecureCluster(os.path.abspath(o.binary), d), run)
    print("three nodes in TLS: they serve, strangers are kept out, certificates are replaced")
    return 0


if __name__ == "__main__":
    sys.exit(main())
