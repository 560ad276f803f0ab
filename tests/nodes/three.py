#!/usr/bin/env python3
"""Three nodes as three processes: every node opens its port, serves whoever leads, stops on SIGTERM; a role that is made
on any of them may log in everywhere; a node without the others opens, too, and says what it lacks."""
import argparse
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgclient  # noqa: E402
import server  # noqa: E402

NODES = 3


def free_ports(count):
    ports = set()
    while len(ports) < count:
        ports.add(server.free_port())
    return list(ports)


class Cluster:
    def __init__(self, binary, directory):
        self.binary, self.directory = binary, directory
        ports = free_ports(2 * NODES)
        self.peers, self.ports = ports[:NODES], ports[NODES:]
        self.nodes = [None] * NODES

    def start(self, i, *settings, env=None):
        listed = " ".join("%d=127.0.0.1:%d/127.0.0.1:%d" % (k + 1, self.peers[k], self.ports[k]) for k in range(NODES))
        data = os.path.join(self.directory, str(i + 1))
        self.nodes[i] = server.Server(self.binary, data, "--cluster.id=7040", "--cluster.node=%d" % (i + 1),
                                      "--cluster.nodes=" + listed, *settings, log=data + ".log",
                                      port=self.ports[i], env=env)

    def stop(self, i):
        code = self.nodes[i].stop()
        self.nodes[i] = None
        check(code == 0, "node %d stops with 0 on SIGTERM, not %d" % (i + 1, code))

    def end(self):
        for n in self.nodes:
            if n is not None:
                n.kill()


def check(ok, what):
    if not ok:
        raise AssertionError(what)


def until(what, probe, seconds=60):
    """Waits for what is promised for some time; the limit is that of a test that hangs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = probe()
        if answer is not None:
            return answer
        time.sleep(0.05)
    raise AssertionError("never: " + what)


def put(node, key):
    """Was it taken, and what was said if not?"""
    client = pgclient.Client(node.port)
    try:
        client.query("INSERT INTO kv (key, value) VALUES ('%s', '1') ON CONFLICT (key) DO UPDATE SET value = '1'" % key)
        return True, None
    except pgclient.PgError as e:
        check(e.state in ("57P03", "40003"), "a refusal is retryable: %s" % e)
        return False, e
    finally:
        client.close()


def find_leader(cluster):
    """Who serves all shards itself."""
    for i, n in enumerate(cluster.nodes):
        if n is None:
            continue
        try:
            client = pgclient.Client(n.port)
            rows = client.rows("SELECT * FROM metadb.shards")
            client.close()
        except (pgclient.PgError, pgclient.Lost):
            continue
        if rows and all(r[3] == str(i + 1) and r[2] == "serving" for r in rows):
            return i
    return None


def may_log_in(node, role):
    try:
        pgclient.Client(node.port, user=role).close()
        return True
    except (pgclient.PgError, pgclient.Lost):
        return None


def every_node_serves(cluster):
    for i in range(NODES):
        cluster.start(i)
    for n in cluster.nodes:
        check(n.wait_ready(), "every node says that it is ready")
    for n in cluster.nodes:
        until("the first role logs in", lambda n=n: may_log_in(n, "metadb"))
    leader = until("a leader", lambda: find_leader(cluster))
    for i, n in enumerate(cluster.nodes):
        done, e = put(n, "from%d" % i)
        check(done, "every node takes a write: %s" % e)
        for other in cluster.nodes:
            client = pgclient.Client(other.port)
            check(client.value("SELECT value FROM kv WHERE key = 'from%d'" % i) == "\\x31", "and every node sees it at once")
            client.close()
    client = pgclient.Client(cluster.nodes[(leader + 1) % NODES].port)
    client.query("CREATE ROLE guest LOGIN")
    client.close()
    for n in cluster.nodes:
        until("a new role logs in", lambda n=n: may_log_in(n, "guest"))
    return leader


def a_node_alone_opens(cluster, leader):
    for i in range(NODES):
        cluster.stop(i)
    cluster.start(leader)
    check(cluster.nodes[leader].wait_ready(), "a node without the others is ready")
    check(may_log_in(cluster.nodes[leader], "guest"), "it knows the roles")
    done, e = put(cluster.nodes[leader], "alone")
    check(not done and e.state == "57P03", "it writes nothing: %s" % e)
    cluster.stop(leader)


def with_cluster(make, run):
    """What RUN answers of the cluster that MAKE makes in a directory of its own.  A failure shows the ends of the logs."""
    directory = tempfile.mkdtemp(prefix="metadb-nodes-")
    cluster = make(directory)
    try:
        return run(cluster)
    except BaseException:
        cluster.end()
        for i in range(NODES):
            sys.stderr.write("-- node %d\n" % (i + 1))
            with open(os.path.join(directory, "%d.log" % (i + 1)), errors="replace") as f:
                sys.stderr.write(f.read()[-4000:])
        raise
    finally:
        cluster.end()
        shutil.rmtree(directory, ignore_errors=True)


def run(cluster):
    leader = every_node_serves(cluster)
    a_node_alone_opens(cluster, leader)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--binary", required=True)
    a = p.parse_args()
    with_cluster(lambda directory: Cluster(a.binary, directory), run)
    print("three nodes: each serves, stops, and opens alone")


if __name__ == "__main__":
    main()
