#!/usr/bin/python3
"""pgcli in a terminal: queries, errors, its wording of \\d, completion that it fetches in the background."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

from kit import CLIENT, eq, report


class Terminal:
    """pgcli behind a pseudo terminal; WAIT reads until what is looked for was shown."""

    def __init__(self, home):
        self.master, slave = pty.openpty()
        env = dict(os.environ, HOME=home, XDG_CONFIG_HOME=home, TERM="dumb", PAGER="cat", LC_ALL="C.UTF-8", COLUMNS="200", LINES="50",
                   PROMPT_TOOLKIT_NO_CPR="1")
        self.process = subprocess.Popen(["pgcli", "--prompt", "ready> "], stdin=slave, stdout=slave, stderr=slave, env=env,
                                        start_new_session=True, close_fds=True)
        os.close(slave)
        self.seen = ""

    def wait(self, pattern, seconds=60):
        while True:
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()=>][A-Z0-9]?|\r", "", self.seen)
            found = re.search(pattern, plain, re.S)
            if found:
                self.seen = plain[found.end():]
                return plain[:found.end()]
            if not select.select([self.master], [], [], seconds)[0]:
                raise AssertionError("no %r in %r" % (pattern, plain[-300:]))
            try:
                self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
            except OSError:
                raise AssertionError("pgcli has ended: %r" % plain[-300:])

    def say(self, line, pattern):
        os.write(self.master, line.encode() + b"\r")
        return self.wait(pattern)

    def end(self):
        os.write(self.master, b"\\q\r")
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        eq(self.process.returncode, 0)


def steps(t, home):
    def connect():
        t.wait(r"ready> ")

    def select_one():
        t.say("SELECT 42 AS answer;", r"answer.*42.*SELECT 1")

    def error():
        t.say("SELECT nocolumn FROM meta WHERE pid = 0 AND name = 'x';", r'column "nocolumn" does not exist')

    def list_of_tables():
        t.say("\\dt", r"secondary_index")

    def describe():
        t.say("\\d meta", r"num_children.*meta_pkey")

    def list_of_databases():
        t.say("\\l", r"metadb")

    def list_of_roles():
        t.say("\\du", r"Superuser|superuser|rolname")

    def schemas_and_views():
        t.say("\\dn", r"public")
        t.say("\\dv metadb.*", r"patterns")

    def functions_and_indexes():
        t.say("\\df metadb.*", r"SELECT \d+")
        t.say("\\di", r"meta_pkey")

    def timing_and_transactions():
        t.say("BEGIN;", r"BEGIN")
        t.say("ROLLBACK;", r"ROLLBACK")

    def completion_was_fetched():
        with open(os.path.join(home, "pgcli", "log"), encoding="utf-8") as f:
            log = f.read()
        bad = [line for line in log.splitlines() if "ERROR" in line and "nocolumn" not in line]
        eq(bad[:3], [])
    return [connect, select_one, error, list_of_tables, describe, list_of_databases, list_of_roles, schemas_and_views, functions_and_indexes,
            timing_and_transactions, t.end, completion_was_fetched]


def main():
    assert CLIENT == "pgcli"
    home = tempfile.mkdtemp(prefix="pgcli.")
    bad = False
    try:
        t = Terminal(home)
        for fn in steps(t, home):
            try:
                fn()
                report(fn.__name__)
            except Exception as e:  # noqa: BLE001 - it is the report
                bad = True
                report(fn.__name__, e)
        if t.process.poll() is None:
            os.killpg(t.process.pid, signal.SIGKILL)
            t.process.wait()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return 1 if bad else 0


sys.exit(main())
