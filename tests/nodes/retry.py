#!/usr/bin/env python3
"""The leader is killed when it has applied a statement of another node's client and has not answered: the client gets the
answer all the same, from the next leader, and the statement was done once."""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import three  # noqa: E402
from three import NODES, check, pgclient, until  # noqa: E402

VICTIM, CLIENT = 0, 1
KILLED = 137


def lead(cluster):
    """The victim leads everything; nothing is written meanwhile, for that would kill it."""
    def moved():
        if three.find_leader(cluster) == VICTIM:
            return True
        try:
            client = pgclient.Client(cluster.nodes[CLIENT].port)
            client.query("SELECT * FROM metadb.transfer_leader(1, %d)" % (VICTIM + 1))
            client.close()
        except (pgclient.PgError, pgclient.Lost):
            pass  # not now
        return None

    until("the victim leads", moved)


def once(cluster, statements, expected, look, value):
    """STATEMENTS by a client of another node; the last one kills the leader after it is applied."""
    cluster.start(VICTIM, env={"METADB_FAULT": "forward.answer=kill:1"})
    check(cluster.nodes[VICTIM].wait_ready(), "the victim is ready")
    lead(cluster)
    client = pgclient.Client(cluster.nodes[CLIENT].port)
    for sql in statements[:-1]:
        client.query(sql)
    got = client.query(statements[-1])
    check(expected in repr(got), "%s is answered as if nothing had happened: %r" % (statements[-1], got))
    check(cluster.nodes[VICTIM].process.wait(60) == KILLED, "the leader was killed")
    cluster.nodes[VICTIM] = None
    for n in cluster.nodes:
        if n is None:
            continue
        reader = pgclient.Client(n.port)
        check(reader.value(look) == value, "it was done once: %s" % look)
        reader.close()
    client.close()


def run(cluster):
    for i in range(NODES):
        cluster.start(i)
    for n in cluster.nodes:
        check(n.wait_ready(), "every node says that it is ready")
    for n in cluster.nodes:
        until("the first role logs in", lambda n=n: three.may_log_in(n, "metadb"))
    until("a write", lambda: three.put(cluster.nodes[CLIENT], "first")[0] or None)
    for i in range(NODES):
        three.until("it has met the others", lambda i=i: may_vote(cluster, i))
    cluster.stop(VICTIM)
    count = "SELECT num_children FROM meta WHERE pid = 0 AND name = '_attr_'"
    size = "SELECT size FROM meta WHERE pid = 0 AND name = 'f'"
    once(cluster, ["INSERT INTO meta (pid, name, type, size) VALUES (0, 'f', 'f', 1)"], "INSERT 0 1", count, "1")
    once(cluster, ["UPDATE meta SET size = size + 10 WHERE pid = 0 AND name = 'f' RETURNING size"], "11", size, "11")
    once(cluster, ["BEGIN", "UPDATE meta SET size = size + 100 WHERE pid = 0 AND name = 'f'", "COMMIT"], "COMMIT", size,
         "111")
    once(cluster, ["DELETE FROM meta WHERE pid = 0 AND name = 'f'"], "DELETE 1", count, "0")


def may_vote(cluster, i):
    with open(os.path.join(cluster.directory, "%d.log" % (i + 1)), errors="replace") as f:
        return True if " node.may_vote" in f.read() else None


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--binary", required=True)
    a = p.parse_args()
    three.with_cluster(lambda directory: three.Cluster(a.binary, directory), run)
    print("a killed leader: four statements answered, each done once")


if __name__ == "__main__":
    main()
