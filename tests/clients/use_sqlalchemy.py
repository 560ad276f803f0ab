#!/usr/bin/python3
"""SQLAlchemy: what its inspector asks, tables reflected from the catalogue, its expressions, its sessions."""
import os

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql
from kit import CLEAR, DIRECTORY, MKDIR, RMDIR, WHEN, connection, eq, run

META = sa.MetaData()


def engine():
    c = connection()
    url = sa.engine.URL.create("postgresql+psycopg2", username=c["user"], password=c["password"], host=c["host"], port=c["port"],
                               database=c["database"], query={"sslmode": os.environ.get("PGSSLMODE", "disable")})
    return sa.create_engine(url, future=True)


def table(e):
    if "meta" not in META.tables:
        sa.Table("meta", META, autoload_with=e)
    return META.tables["meta"]


def file(i):
    return {"pid": DIRECTORY, "name": "f%04d" % i, "id": DIRECTORY + 1 + i, "size": i, "mtime": WHEN, "attr": bytes([i % 256])}


def step_inspector_of_names(e):
    i = sa.inspect(e)
    eq(i.default_schema_name, "public")
    assert {"meta", "quota", "secondary_index", "object", "lifecycle", "kv"} <= set(i.get_table_names()), i.get_table_names()
    assert {"public", "metadb", "information_schema"} <= set(i.get_schema_names()), i.get_schema_names()
    assert "patterns" in i.get_view_names("metadb"), i.get_view_names("metadb")
    eq((i.has_table("meta"), i.has_table("nothere"), i.has_table("patterns", "metadb")), (True, False, True))
    eq(i.get_sequence_names(), [])
    eq(i.get_enums(), [])


def step_inspector_of_a_table(e):
    i = sa.inspect(e)
    columns = {c["name"]: c for c in i.get_columns("meta")}
    eq([(n, type(columns[n]["type"]), columns[n]["nullable"]) for n in ("pid", "name", "mode", "class", "mtime", "attr")],
       [("pid", sa.BIGINT, False), ("name", sa.TEXT, False), ("mode", sa.INTEGER, True), ("class", sa.SMALLINT, True),
        ("mtime", postgresql.TIMESTAMP, True), ("attr", postgresql.BYTEA, True)])
    eq(i.get_pk_constraint("meta"), {"constrained_columns": ["pid", "name"], "name": "meta_pkey"})
    eq((i.get_foreign_keys("meta"), i.get_indexes("meta"), i.get_unique_constraints("meta"), i.get_check_constraints("meta")), ([], [], [], []))
    eq(i.get_table_comment("kv").keys(), {"text"})


def step_every_table_is_reflected(e):
    m = sa.MetaData()
    m.reflect(bind=e)
    eq([c.name for c in m.tables["kv"].primary_key], ["key"])
    views = sa.MetaData()
    views.reflect(bind=e, schema="metadb", views=True)
    assert "metadb.patterns" in views.tables, list(views.tables)


def step_rows(e):
    t = table(e)
    with e.begin() as c:
        c.execute(t.insert(), [file(i) for i in range(30)])
        got = c.execute(sa.select(t.c.name, t.c.size, t.c.mtime, t.c.attr).where(t.c.pid == DIRECTORY, t.c.name == "f0007")).one()
        eq((got.name, got.size, got.mtime, bytes(got.attr)), ("f0007", 7, WHEN, b"\7"))
        names = c.execute(sa.select(t.c.name).where(t.c.pid == DIRECTORY, t.c.name > "f0003", t.c.name != "_attr_").order_by(t.c.name).limit(3))
        eq(names.scalars().all(), ["f0004", "f0005", "f0006"])
        eq(c.execute(sa.select(t.c.name).where(t.c.pid == DIRECTORY, t.c.name.in_(["f0001", "x"]))).scalars().all(), ["f0001"])
        eq(c.execute(t.update().where(t.c.pid == DIRECTORY, t.c.name == "f0001").values(size=9)).rowcount, 1)
        eq(c.execute(t.delete().where(t.c.pid == DIRECTORY, t.c.name == "f0002")).rowcount, 1)
        eq(c.execute(sa.select(sa.func.count()).select_from(t).where(t.c.pid == DIRECTORY, t.c.name != "_attr_")).scalar(), 29)


def step_upsert(e):
    kv = sa.Table("kv", sa.MetaData(), autoload_with=e)
    key = "sqlalchemy%d" % DIRECTORY
    with e.begin() as c:
        for value in (b"1", b"2"):
            new = postgresql.insert(kv).values(key=key, value=value)
            c.execute(new.on_conflict_do_update(index_elements=["key"], set_={"value": new.excluded.value}))
        eq(bytes(c.execute(sa.select(kv.c.value).where(kv.c.key == key)).scalar()), b"2")
        c.execute(kv.delete().where(kv.c.key == key))


def step_session_of_objects(e):
    class File:
        pass
    # What the server sets is no attribute that it writes.
    orm.registry().map_imperatively(File, table(e), include_properties=["pid", "name", "id", "size", "mtime", "attr"])
    with orm.Session(e) as s:
        f = File()
        for k, v in file(1).items():
            setattr(f, k, v)
        s.add(f)
        s.commit()
        eq(bytes(s.get(File, (DIRECTORY, "f0001")).attr), b"\1")
        f.size = 77
        s.commit()
        s.expire_all()
        eq(s.get(File, (DIRECTORY, "f0001")).size, 77)
        s.delete(f)
        s.commit()
        eq(s.get(File, (DIRECTORY, "f0001")), None)


def step_duplicate(e):
    t = table(e)
    with e.connect() as c:
        c.execute(t.insert(), [file(1)])
        try:
            with c.begin_nested():
                c.execute(t.insert(), [file(1)])
        except sa.exc.IntegrityError as error:
            eq(error.orig.pgcode, "23505")
        c.commit()
        eq(c.execute(sa.select(t.c.size).where(t.c.pid == DIRECTORY, t.c.name == "f0001")).scalar(), 1)


def step_isolation_levels(e):
    for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", "AUTOCOMMIT"):
        with e.connect().execution_options(isolation_level=level) as c:
            if level != "AUTOCOMMIT":
                eq(c.get_isolation_level(), level)
            eq(c.execute(sa.text("SELECT 1")).scalar(), 1)


def main():
    e = engine()

    def clean():
        with e.begin() as c:
            c.exec_driver_sql(CLEAR)
    with e.begin() as c:
        c.exec_driver_sql(MKDIR)
    try:
        run(globals(), e, between=clean)
    finally:
        with e.begin() as c:
            c.exec_driver_sql(RMDIR)


main()
