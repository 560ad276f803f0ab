#!/usr/bin/env python3
"""The SQL suite and the isolation specs of regress/, at a node that leads nothing: they are answered as a lone node does."""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import three  # noqa: E402
from three import NODES, check, until  # noqa: E402

REGRESS = os.path.join(HERE, "..", "..", "regress")
OF_A_LONE_NODE = {"catalog"}  # metadb.nodes has a row per node


def names_a_leader(name):
    """EXPLAIN says who leads, and here that may be anybody."""
    for folder in ("expected", os.path.join("isolation", "expected")):
        path = os.path.join(REGRESS, folder, name + ".out")
        if os.path.exists(path):
            with open(path) as f:
                return "leader on node" in f.read()
    return False


def suite():
    files = glob.glob(os.path.join(REGRESS, "sql", "*.sql")) + glob.glob(os.path.join(REGRESS, "isolation", "specs", "*.spec"))
    names = {os.path.splitext(os.path.basename(f))[0] for f in files} - OF_A_LONE_NODE
    return sorted(n for n in names if not names_a_leader(n))


def run(cluster):
    """How many passed, and whether all did."""
    for i in range(NODES):
        cluster.start(i)
    for n in cluster.nodes:
        check(n.wait_ready(), "every node says that it is ready")
    for n in cluster.nodes:
        until("the first role logs in", lambda n=n: three.may_log_in(n, "metadb"))
    leader = until("a leader", lambda: three.find_leader(cluster))
    at = cluster.nodes[(leader + 1) % NODES]
    out = subprocess.run([os.path.join(REGRESS, "run"), "--port", str(at.port), *cluster.names],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = out.stdout.splitlines()
    for line in lines:
        if not line.startswith("ok "):
            print(line)
    check(three.find_leader(cluster) is not None, "there is a leader at the end")
    return sum(line.startswith("ok ") for line in lines), out.returncode == 0


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--binary", required=True)
    p.add_argument("names", nargs="*", help="as for regress/run; default all that a lone node and one among others answer alike")
    a = p.parse_args()
    directory = tempfile.mkdtemp(prefix="metadb-elsewhere-")
    cluster = three.Cluster(a.binary, directory)
    cluster.names = a.names or suite()
    try:
        count, good = run(cluster)
    finally:
        cluster.end()
        shutil.rmtree(directory, ignore_errors=True)
    print("%d tests of regress/ passed at a node that leads nothing" % count)
    return 0 if good and count > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
