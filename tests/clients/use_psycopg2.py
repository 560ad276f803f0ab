#!/usr/bin/python3
"""psycopg2: the simple protocol, client-side parameters, named cursors, COPY, cancel, reset, LISTEN."""
import io
import os
import select
import sys
import threading

import psycopg2
import psycopg2.errors
import psycopg2.extras
import psycopg2.extensions as ext
from kit import CLEAR, COLUMNS, DIRECTORY, MKDIR, RMDIR, WHEN, connection, eq, row, run, tls

INSERT = "INSERT INTO meta (%s) VALUES (%s)" % (COLUMNS, ", ".join(["%s"] * 11))
SELECT = "SELECT %s FROM meta WHERE pid = %%s AND name = %%s" % COLUMNS


def one(c, sql, args=()):
    with c.cursor() as cur:
        cur.execute(sql, args)
        return cur.fetchone() if cur.description else cur.statusmessage


def count(c):
    return one(c, "SELECT count(*) FROM meta WHERE pid = %s AND name <> '_attr_'", (DIRECTORY,))[0]


def plain(values):
    return tuple(bytes(v) if isinstance(v, memoryview) else v for v in values)


def step_connect(c):
    eq(c.encoding, "UTF8")
    eq(c.server_version // 10000, 15)
    eq(c.info.ssl_in_use, tls())
    eq(c.get_transaction_status(), ext.TRANSACTION_STATUS_IDLE)


def step_wrong_password(c):
    if not connection()["password"]:
        return
    try:
        psycopg2.connect("", password="wrong")
    except psycopg2.OperationalError as e:
        assert "password authentication failed" in str(e), e
    else:
        raise AssertionError("let in")


def step_types(c):
    eq(one(c, INSERT, row(1)), "INSERT 0 1")
    eq(plain(one(c, SELECT, (DIRECTORY, "f0001"))), row(1))
    with c.cursor() as cur:
        cur.execute(SELECT, (DIRECTORY, "f0001"))
        eq([d.type_code for d in cur.description], [20, 25, 20, 18, 23, 20, 20, 1184, 20, 21, 17])
    c.commit()


def step_nulls(c):
    values = row(2)[:8] + (None, None, None)
    one(c, INSERT, values)
    eq(one(c, SELECT, (DIRECTORY, "f0002")), values)


def step_many_rows(c):
    with c.cursor() as cur:
        psycopg2.extras.execute_values(cur, "INSERT INTO meta (%s) VALUES %%s" % COLUMNS, [row(i) for i in range(300)])
        psycopg2.extras.execute_batch(cur, "UPDATE meta SET size = %s WHERE pid = %s AND name = %s",
                                      [(i, DIRECTORY, "f%04d" % i) for i in range(100)])
    eq(count(c), 300)
    c.commit()


def step_error_in_transaction(c):
    one(c, INSERT, row(1))
    try:
        one(c, INSERT, row(1))
    except psycopg2.errors.UniqueViolation as e:
        eq((e.diag.constraint_name, e.diag.table_name, e.diag.schema_name), ("meta_pkey", "meta", "public"))
    else:
        raise AssertionError("written twice")
    eq(c.get_transaction_status(), ext.TRANSACTION_STATUS_INERROR)
    try:
        count(c)
    except psycopg2.errors.InFailedSqlTransaction:
        pass
    else:
        raise AssertionError("a failed transaction goes on")
    c.rollback()
    eq(count(c), 0)


def step_savepoint(c):
    one(c, INSERT, row(1))
    one(c, "SAVEPOINT a")
    try:
        one(c, INSERT, row(1))
    except psycopg2.errors.UniqueViolation:
        one(c, "ROLLBACK TO SAVEPOINT a")
    c.commit()
    eq(count(c), 1)


def step_isolation_and_read_only(c):
    c.rollback()
    c.set_session(isolation_level="REPEATABLE READ", readonly=True)
    try:
        one(c, INSERT, row(1))
    except psycopg2.errors.ReadOnlySqlTransaction:
        c.rollback()
    else:
        raise AssertionError("written in a read-only transaction")
    finally:
        c.rollback()
        c.set_session(isolation_level="DEFAULT", readonly="DEFAULT")
    c.autocommit = True
    eq(one(c, INSERT, row(1)), "INSERT 0 1")
    c.autocommit = False


def step_named_cursor(c):
    step_many_rows(c)
    with c.cursor("far") as cur:
        cur.itersize = 7
        cur.execute("SELECT name FROM meta WHERE pid = %s AND name > 'f' AND name < 'g' ORDER BY name", (DIRECTORY,))
        eq(cur.fetchone()[0], "f0000")
        eq(len(cur.fetchmany(10)), 10)
        cur.scroll(5)
        eq(cur.fetchone()[0], "f0016")
        eq(len(list(cur)), 283)
    c.commit()


def step_copy(c):
    text = "".join("%d\tc%d\t%d\n" % (DIRECTORY, i, i) for i in range(2000))
    with c.cursor() as cur:
        cur.copy_expert("COPY meta (pid, name, fid) FROM STDIN", io.StringIO(text))
        eq(cur.rowcount, 2000)
        out = io.StringIO()
        cur.copy_expert("COPY (SELECT pid, name, fid FROM meta WHERE pid = %d AND name LIKE 'c%%') TO STDOUT" % DIRECTORY, out)
    eq(sorted(out.getvalue().splitlines()), sorted(text.splitlines()))
    c.commit()
    try:
        with c.cursor() as cur:
            cur.copy_expert("COPY meta (pid, name, fid) FROM STDIN", io.StringIO("%d\tbad\tx\n" % DIRECTORY))
    except psycopg2.errors.InvalidTextRepresentation as e:
        assert "line 1" in e.diag.context, e.diag.context
        c.rollback()
    else:
        raise AssertionError("taken")
    eq(count(c), 2000)


def step_cancel(c):
    timer = threading.Timer(0.3, c.cancel)
    timer.start()
    try:
        one(c, "SELECT pg_sleep(60)")
    except psycopg2.errors.QueryCanceled:
        c.rollback()
    else:
        raise AssertionError("not cancelled")
    timer.join()
    eq(one(c, "SELECT 1"), (1,))


def step_notify(c):
    c.rollback()
    c.autocommit = True
    one(c, "LISTEN psycopg2")
    other = psycopg2.connect("")
    one(other, "NOTIFY psycopg2, 'text'")
    other.commit()
    other.close()
    while not c.notifies:
        select.select([c], [], [])
        c.poll()
    eq((c.notifies[0].channel, c.notifies[0].payload), ("psycopg2", "text"))
    c.notifies.clear()
    one(c, "UNLISTEN *")
    c.autocommit = False


def step_reset(c):
    one(c, "SET application_name = 'changed'")
    one(c, "PREPARE p AS SELECT 1")
    c.reset()
    eq(one(c, "SHOW application_name"), ("",))
    c.rollback()


def step_dates_in_another_zone(c):
    one(c, "SET TIME ZONE 'Asia/Tokyo'")
    one(c, INSERT, row(3))
    got = one(c, SELECT, (DIRECTORY, "f0003"))[7]
    eq(got, row(3)[7])
    eq(got.utcoffset().total_seconds(), 9 * 3600)
    eq(one(c, "SELECT %s::timestamptz", (WHEN,))[0], WHEN)
    c.rollback()


def step_settings_beside_the_catalogue(c):
    """As pgAdmin does on connecting."""
    ask = "SELECT set_config('bytea_output', %s, false) FROM pg_show_all_settings() WHERE name = 'bytea_output'"
    eq(one(c, ask, ("escape",)), ("escape",))
    eq(one(c, "SHOW bytea_output"), ("escape",))
    try:
        one(c, ask, ("wrong",))
    except psycopg2.errors.InvalidParameterValue:
        c.rollback()
    else:
        raise AssertionError("taken")
    eq(one(c, "SHOW bytea_output"), ("hex",))
    eq(one(c, "SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = pg_backend_pid()"), None)


def step_array(c):
    step_many_rows(c)
    with c.cursor() as cur:
        cur.execute("SELECT name FROM meta WHERE pid = %s AND name = ANY(%s)", (DIRECTORY, ["f0001", "f0002", "none"]))
        eq(sorted(cur.fetchall()), [("f0001",), ("f0002",)])


def main():
    c = psycopg2.connect("")

    def clean():
        c.rollback()
        c.autocommit = False
        one(c, CLEAR)
        c.commit()

    one(c, MKDIR)
    c.commit()
    try:
        run(globals(), c, between=clean)
    finally:
        one(c, RMDIR)
        c.commit()
        c.close()


main()
