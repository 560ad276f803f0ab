#!/usr/bin/env python3
"""The command line: help wherever somebody asks for it, and mistakes that are named, with status 1 or 2, before
anything is made or read."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import server  # noqa: E402

HELP = [["help"], ["--help"], ["-h"], ["start", "--help"], ["start", "-h"], ["demo", "--help"], ["log", "--help"]]
# arguments, exit status, what standard error says; DIR is a directory that is not there
MISTAKES = [
    ([], 1, "metadb start --data DIR"),
    (["frob"], 1, "unknown command frob"),
    (["start"], 1, "start needs --data DIR"),
    (["start", "--data", "DIR", "--frob=1"], 1, 'unknown setting "frob"'),
    (["start", "--data", "DIR", "--config"], 1, "no value for --config"),
    (["start", "--data"], 1, "no value for --data"),
    (["start", "--data", "DIR", "--listen", "127.0.0.1"], 1, "is not host:port"),
    (["start", "--data", "DIR", "--listen", "127.0.0.1:http5432"], 1, "not a port"),
    (["start", "--data", "DIR", "--listen", ","], 1, "no listen address"),
    (["start", "--data", "DIR", "--listen", "127.0.0.1:0", "--auth.rule=host all all"], 1, "command line"),
    (["start", "--data", "DIR", "--listen", "127.0.0.1:0", "--tls.key=/nonexistent"], 1, "are needed both"),
    (["demo", "--nodes", "8"], 1, "1 to 7"),
    (["log", "frob"], 1, "dump DIR"),
    (["log", "check", "DIR"], 2, 'there is no log in "DIR"'),
    (["log", "dump", "DIR"], 2, 'there is no log in "DIR"'),
]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--binary", required=True)
    binary = os.path.abspath(p.parse_args().binary)
    place = tempfile.mkdtemp(prefix="metadb-command.")
    missing = os.path.join(place, "none")

    def run(words):
        return subprocess.run([binary, *words], capture_output=True, text=True, timeout=60, env=server.clean_env())

    try:
        for words in HELP:
            r = run(words)
            assert r.returncode == 0 and "metadb start --data DIR" in r.stdout, (words, r.returncode, r.stderr)
        for words, status, said in MISTAKES:
            r = run([w.replace("DIR", missing) for w in words])
            assert r.returncode == status, (words, r.returncode, r.stderr)
            # The usage text names its DIR itself.
            assert said in r.stderr.replace(missing, "DIR"), (words, r.stderr)
            assert not os.path.exists(missing), (words, "a directory was made")
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
