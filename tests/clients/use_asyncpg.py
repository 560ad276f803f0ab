#!/usr/bin/python3
"""asyncpg: binary results, prepared statements, its type query, pools, cursors, COPY, cancel, LISTEN."""
import asyncio
import os
import ssl
import sys

import asyncpg
from kit import CLEAR, COLUMNS, DIRECTORY, MKDIR, RMDIR, WHEN, connection, eq, report, row, steps, tls
import kit

INSERT = "INSERT INTO meta (%s) VALUES (%s)" % (COLUMNS, ", ".join("$%d" % i for i in range(1, 12)))
SELECT = "SELECT %s FROM meta WHERE pid = $1 AND name = $2" % COLUMNS
NAMES = "SELECT name FROM meta WHERE pid = $1 AND name > 'f' AND name < 'g' ORDER BY name"


def values(i):
    v = list(row(i))
    v[3] = b"f"  # "char" is bytes to asyncpg
    return tuple(v)


def options():
    o = connection()
    o["ssl"] = ssl.create_default_context(cafile=os.environ["PGSSLROOTCERT"]) if tls() else False
    return o


async def fill(c, n):
    await c.executemany(INSERT, [values(i) for i in range(n)])


async def count(c):
    return await c.fetchval("SELECT count(*) FROM meta WHERE pid = $1 AND name <> '_attr_'", DIRECTORY)


async def refused(error, awaited):
    try:
        await awaited
    except error as e:
        return e
    raise AssertionError("not refused")


async def step_connect(c):
    eq(c.get_server_version().major, 15)
    eq(c.get_settings().client_encoding, "UTF8")


async def step_wrong_password(c):
    if connection()["password"]:
        await refused(asyncpg.InvalidPasswordError, asyncpg.connect(**dict(options(), password="wrong")))


async def step_types(c):
    eq(await c.execute(INSERT, *values(1)), "INSERT 0 1")
    eq(tuple(await c.fetchrow(SELECT, DIRECTORY, "f0001")), values(1))
    empty = values(2)[:8] + (None, None, None)
    await c.execute(INSERT, *empty)
    eq(tuple(await c.fetchrow(SELECT, DIRECTORY, "f0002")), empty)


async def step_values(c):
    for sql, value in [("$1::int8", -2**63), ("$1::int4", 2**31 - 1), ("$1::int2", -2**15), ("$1::bool", True), ("$1::text", "é\u4e16"),
                       ("$1::bytea", bytes(range(256))), ("$1::float8", -0.1), ("$1::timestamptz", WHEN)]:
        eq(await c.fetchval("SELECT " + sql, value), value)
        eq(await c.fetchval("SELECT " + sql, None), None)


async def step_prepared(c):
    await fill(c, 50)
    s = await c.prepare(SELECT)
    eq([a.name for a in s.get_attributes()], COLUMNS.split(", "))
    eq([p.name for p in s.get_parameters()], ["int8", "text"])
    for i in range(50):
        eq(tuple(await s.fetchrow(DIRECTORY, "f%04d" % i)), values(i))
    await s.fetch(DIRECTORY, "f0001")
    eq(s.get_statusmsg(), "SELECT 1")


async def step_arrays_and_type_query(c):
    await fill(c, 3)
    got = await c.fetch("SELECT name FROM meta WHERE pid = $1 AND name = ANY($2)", DIRECTORY, ["f0001", "f0002", "x"])
    eq(sorted(r[0] for r in got), ["f0001", "f0002"])
    eq(await c.fetchval("SELECT $1::int8[]", [1, None, 3]), [1, None, 3])
    await c.reload_schema_state()
    eq(await c.fetchval("SELECT $1::text[]", ["a", "b,c"]), ["a", "b,c"])


async def step_error_in_transaction(c):
    tr = c.transaction()
    await tr.start()
    await c.execute(INSERT, *values(1))
    e = await refused(asyncpg.UniqueViolationError, c.execute(INSERT, *values(1)))
    eq((e.constraint_name, e.table_name), ("meta_pkey", "meta"))
    await refused(asyncpg.InFailedSQLTransactionError, count(c))
    await tr.rollback()
    eq(await count(c), 0)


async def step_nested_transactions(c):
    async with c.transaction(isolation="repeatable_read"):
        await c.execute(INSERT, *values(1))
        try:
            async with c.transaction():
                await c.execute(INSERT, *values(2))
                await c.execute(INSERT, *values(1))
        except asyncpg.UniqueViolationError:
            pass
        await c.execute(INSERT, *values(3))
    eq(await count(c), 2)
    await refused(asyncpg.ReadOnlySQLTransactionError, in_read_only(c))


async def in_read_only(c):
    async with c.transaction(readonly=True):
        await c.execute(INSERT, *values(9))


async def step_executemany_is_one_transaction(c):
    await refused(asyncpg.UniqueViolationError, c.executemany(INSERT, [values(1), values(2), values(1)]))
    eq(await count(c), 0)


async def step_cursor(c):
    await fill(c, 300)
    async with c.transaction():
        got = [r[0] async for r in c.cursor(NAMES, DIRECTORY, prefetch=7)]
        eq(got, ["f%04d" % i for i in range(300)])
        cur = await c.cursor(NAMES, DIRECTORY)
        eq(len(await cur.fetch(10)), 10)
        eq(await cur.forward(5), 5)
        eq((await cur.fetchrow())[0], "f0015")


async def step_copy(c):
    records = [(DIRECTORY, "c%d" % i, i, bytes([i % 256])) for i in range(2000)]
    eq(await c.copy_records_to_table("meta", records=records, columns=["pid", "name", "fid", "attr"]), "COPY 2000")
    out = []

    async def take(data):
        out.append(data)
    eq(await c.copy_from_query("SELECT name FROM meta WHERE pid = $1 AND name LIKE 'c%'", DIRECTORY, output=take), "COPY 2000")
    eq(len(b"".join(out).splitlines()), 2000)
    bad = [(DIRECTORY, "d1", 1, b""), (DIRECTORY, "c1", 1, b"")]
    await refused(asyncpg.UniqueViolationError, c.copy_records_to_table("meta", records=bad, columns=["pid", "name", "fid", "attr"]))
    eq(await count(c), 2000)


async def step_cancel(c):
    await refused(asyncio.TimeoutError, c.execute("SELECT pg_sleep(60)", timeout=0.3))
    eq(await c.fetchval("SELECT 1"), 1)
    await c.execute("SET statement_timeout = '100ms'")
    await refused(asyncpg.QueryCanceledError, c.fetchval("SELECT pg_sleep(60)"))
    await c.execute("RESET statement_timeout")


async def step_pool(c):
    async with asyncpg.create_pool(min_size=2, max_size=4, **options()) as pool:
        async def work(i):
            async with pool.acquire() as d:
                await d.execute("SET application_name = 'work'")
                await d.execute(INSERT, *values(i))
                return await d.fetchval("SELECT name FROM meta WHERE pid = $1 AND name = $2", DIRECTORY, "f%04d" % i)
        eq(await asyncio.gather(*(work(i) for i in range(60))), ["f%04d" % i for i in range(60)])
        eq(await pool.fetchval("SHOW application_name"), "")


async def step_notify(c):
    heard = asyncio.get_running_loop().create_future()
    await c.add_listener("asyncpg", lambda *a: heard.done() or heard.set_result(a[2:]))
    d = await asyncpg.connect(**options())
    await d.execute("SELECT pg_notify('asyncpg', 'text')")
    eq(await heard, ("asyncpg", "text"))
    await d.close()
    await c.reset()


async def step_simple_protocol(c):
    eq(await c.execute("BEGIN; SELECT 1; COMMIT"), "COMMIT")
    await refused(asyncpg.PostgresSyntaxError, c.execute("SELECT 1; SELEC 2"))


async def main():
    c = await asyncpg.connect(**options())
    await c.execute(MKDIR)
    try:
        for name, fn in steps(globals()):
            try:
                await asyncio.wait_for(fn(c), 120)
                report(name)
            except Exception as e:  # noqa: BLE001 - it is the report
                report(name, e)
            if c.is_in_transaction():
                await c.execute("ROLLBACK")
            await c.execute(CLEAR)
    finally:
        await c.execute(RMDIR)
        await c.close()
    return 1 if kit.failed else 0


sys.exit(asyncio.run(main()))
