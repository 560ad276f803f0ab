#!/usr/bin/env python3
"""Replicas are removed and added while clients write: a node goes and comes back, with its disk and with a new one,
and nodes are killed in the middle of a change.  No acknowledged write is lost, and the new replica alone can tell."""
import argparse
import os
import random
import shutil
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pgclient  # noqa: E402
import three  # noqa: E402

SHARDS = 5
NODES = three.NODES
RETRIED = ("57P03", "40003", "55006", "55000", "57P01")


class Writer(threading.Thread):
    """Writes keys that nobody else writes, to whoever takes them; KEPT is what was acknowledged."""

    def __init__(self, cluster, name):
        super().__init__()
        self.cluster, self.prefix = cluster, name
        self.kept, self.sequence = {}, 0
        self.ended = threading.Event()

    def run(self):
        client, at = None, 0
        while not self.ended.is_set():
            key, value = "%s%d" % (self.prefix, self.sequence % 500), self.sequence
            try:
                if client is None:
                    client = pgclient.Client(self.cluster.ports[at % NODES], timeout=5.0)
                client.query("INSERT INTO kv (key, value) VALUES ('%s', '%d') ON CONFLICT (key) DO UPDATE SET value = '%d'"
                             % (key, value, value))
                self.kept[key] = value
                self.sequence += 1
            except (pgclient.PgError, pgclient.Lost, OSError) as e:
                if isinstance(e, pgclient.PgError):
                    three.check(e.state in RETRIED, "the writer meets what may be tried again: %s" % e)
                if client is not None:
                    client.close()
                client, at = None, at + 1
                time.sleep(0.02)
        if client is not None:
            client.close()


def ask(cluster, sql):
    """Of whoever leads, until somebody does; what is so already is taken for done."""
    end = time.monotonic() + 120
    said = None
    while time.monotonic() < end:
        for i, n in enumerate(cluster.nodes):
            if n is None or not n.alive():
                continue
            try:
                client = pgclient.Client(n.port)
                try:
                    return client.rows(sql)
                finally:
                    client.close()
            except pgclient.PgError as e:
                said = e
                if e.state in ("42710", "42704"):
                    return []
                three.check(e.state in RETRIED, "%s: %s" % (sql, e))
            except (pgclient.Lost, OSError) as e:
                said = e
        time.sleep(0.05)
    raise AssertionError("never: %s (%s)" % (sql, said))


def change_all(cluster, function, node):
    for shard in range(1, SHARDS + 1):
        ask(cluster, "SELECT * FROM metadb.%s(%d, %d)" % (function, shard, node + 1))


def find_leader(cluster):
    """The node that leads kv and takes a write.  A node may have died, or not know the roles."""
    for i, n in enumerate(cluster.nodes):
        try:
            if n is not None and leads(n) == i + 1 and three.put(n, "who")[0]:
                return i
        except (pgclient.PgError, pgclient.Lost, OSError):
            pass
    return None


def leads(node):
    """A leader's view has itself as such; others know their own replica only."""
    client = pgclient.Client(node.port)
    try:
        rows = client.rows("SELECT node FROM metadb.replicas WHERE role = 'leader' AND shard = 4")
        return int(rows[0][0]) if rows else None
    finally:
        client.close()


def leader_of(cluster):
    return three.until("a leader", lambda: find_leader(cluster))


def voters(cluster):
    """Of every shard, as their leader sees it."""
    leader = leader_of(cluster)
    client = pgclient.Client(cluster.nodes[leader].port)
    try:
        rows = client.rows("SELECT shard, node FROM metadb.replicas WHERE kind = 'voter'")
    finally:
        client.close()
    return {s: sorted(int(n) - 1 for shard, n in rows if int(shard) == s) for s in range(1, SHARDS + 1)}


def await_voters(cluster, wanted):
    def probe():
        try:
            got = voters(cluster)
        except (pgclient.PgError, pgclient.Lost, OSError):
            return None
        return True if all(v == wanted for v in got.values()) else None
    three.until("voters are %s" % wanted, probe)


def victim_of(cluster):
    leader = leader_of(cluster)
    return random.choice([i for i in range(NODES) if i != leader])


def comes_back(cluster, wiped):
    """Out, dead or alive, and in again; whoever leads dies while it catches up."""
    out = victim_of(cluster)
    change_all(cluster, "remove_replica", out)
    await_voters(cluster, [i for i in range(NODES) if i != out])
    cluster.nodes[out].kill()
    cluster.nodes[out] = None
    if wiped:
        shutil.rmtree(os.path.join(cluster.directory, str(out + 1)))
    cluster.start(out, *(["--cluster.join=on"] if wiped else []))
    three.check(cluster.nodes[out].wait_ready(), "the removed node opens")
    killer = threading.Timer(random.uniform(0, 0.3), lambda: cluster.nodes[leader].kill())
    leader = leader_of(cluster)
    killer.start()
    try:
        change_one = "SELECT * FROM metadb.add_replica(1, %d)" % (out + 1)
        first = threading.Thread(target=lambda: ask(cluster, change_one))
        first.start()
        killer.join()
        cluster.nodes[leader] = None
        cluster.start(leader, *(["--cluster.join=on"] if leader in cluster.joined else []))
        first.join()
    finally:
        killer.cancel()
    if wiped:
        cluster.joined.add(out)
    three.check(cluster.nodes[leader].wait_ready(), "the leader that died opens")
    change_all(cluster, "add_replica", out)
    await_voters(cluster, list(range(NODES)))
    return out


def added_dies(cluster):
    """The node that is added dies while it is a learner, and becomes a voter by itself once it is back."""
    out = victim_of(cluster)
    change_all(cluster, "remove_replica", out)
    adding = [threading.Thread(target=lambda s=s: ask(cluster, "SELECT * FROM metadb.add_replica(%d, %d)" % (s, out + 1)))
              for s in range(1, SHARDS + 1)]
    for t in adding:
        t.start()
    time.sleep(random.uniform(0, 0.2))
    cluster.nodes[out].kill()
    cluster.start(out)
    three.check(cluster.nodes[out].wait_ready(), "the node that died opens")
    for t in adding:
        t.join()
    await_voters(cluster, list(range(NODES)))


def read_all(cluster, node, writers):
    """NODE leads, one of the others is gone: what it has is what there is."""
    def node_leads():
        if find_leader(cluster) == node:
            return True
        try:
            ask(cluster, "SELECT * FROM metadb.transfer_leader(1, %d)" % (node + 1))
        except AssertionError:
            pass
        return None
    three.until("node %d leads" % (node + 1), node_leads)
    client = pgclient.Client(cluster.nodes[node].port)
    try:
        for w in writers:
            for key, value in w.kept.items():
                got = three.until("an answer", lambda key=key: value_of(client, key))
                three.check(int(got) >= value, "%s is %s, but %d was acknowledged" % (key, got, value))
    finally:
        client.close()


def value_of(client, key):
    try:
        rows = client.rows("SELECT value FROM kv WHERE key = '%s'" % key)
    except pgclient.PgError as e:
        three.check(e.state in RETRIED, str(e))
        return None
    three.check(len(rows) == 1, "%s was acknowledged and is not there" % key)
    value = rows[0][0]
    return bytes.fromhex(value[2:]).decode() if value.startswith("\\x") else value


class Cluster(three.Cluster):
    def __init__(self, binary, directory):
        super().__init__(binary, directory)
        self.joined = set()


def run(cluster):
    for i in range(NODES):
        cluster.start(i)
    for n in cluster.nodes:
        three.check(n.wait_ready(), "every node is ready")
    leader_of(cluster)
    writers = [Writer(cluster, "w%d-" % i) for i in range(3)]
    for w in writers:
        w.start()
    try:
        three.until("writes", lambda: True if all(w.sequence > 50 for w in writers) else None)
        comes_back(cluster, False)
        added_dies(cluster)
        new = comes_back(cluster, True)
        three.until("more writes", lambda: True if leader_of(cluster) is not None else None)
    finally:
        for w in writers:
            w.ended.set()
        for w in writers:
            w.join()
    read_all(cluster, new, writers)
    return sum(w.sequence for w in writers)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--binary", required=True)
    p.add_argument("--seed", type=int, default=None)
    a = p.parse_args()
    seed = a.seed if a.seed is not None else random.randrange(1 << 30)
    random.seed(seed)
    try:
        acknowledged = three.with_cluster(lambda directory: Cluster(a.binary, directory), run)
    except BaseException:
        sys.stderr.write("seed %d\n" % seed)
        raise
    print("members: out and in, with the old disk and a new one, under %d acknowledged writes" % acknowledged)


if __name__ == "__main__":
    main()
