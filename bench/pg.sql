-- The schema of the comparison with PostgreSQL: the same facts as metadb's table meta keeps, and one
-- function per operation, so that an operation is one round trip.
--
-- A directory's attributes are a row of their own, narrow and with free space in its page, so that
-- counting a child is a heap-only update. In each function the row that clients contend for comes
-- last: its lock is held from there to the end of the commit, and no longer.
CREATE TABLE entry (
    pid bigint NOT NULL, name varchar(255) NOT NULL, id bigint NOT NULL, kind "char" NOT NULL,
    mode integer, uid bigint, gid bigint, size bigint, mtime timestamptz, ctime timestamptz,
    PRIMARY KEY (pid, name));
CREATE TABLE directory (
    id bigint PRIMARY KEY, mode integer, uid bigint, gid bigint, num_children bigint NOT NULL,
    mtime timestamptz, ctime timestamptz) WITH (fillfactor = 50);
CREATE TABLE quota (uid bigint PRIMARY KEY, files bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE file_index (fid bigint PRIMARY KEY, pid bigint NOT NULL, name varchar(255) NOT NULL);
CREATE TABLE kv (key varchar(255) PRIMARY KEY, value varchar(1024) NOT NULL);
CREATE TABLE delta (pid bigint NOT NULL, children integer NOT NULL, mtime timestamptz NOT NULL);

CREATE FUNCTION create_file(p bigint, n varchar, i bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO entry (pid, name, id, kind, mode, uid, gid, size, mtime, ctime)
        VALUES (p, n, i, 'f', 420, 1000, 1000, 0, now(), now());
    UPDATE directory SET num_children = num_children + 1, mtime = now() WHERE id = p;
    IF NOT FOUND THEN RAISE EXCEPTION 'no directory %', p; END IF;
END $$;

CREATE FUNCTION create_file_full(p bigint, n varchar, i bigint, u bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO entry (pid, name, id, kind, mode, uid, gid, size, mtime, ctime)
        VALUES (p, n, i, 'f', 420, u, 1000, 0, now(), now());
    INSERT INTO file_index (fid, pid, name) VALUES (i, p, n);
    UPDATE quota SET files = files + 1 WHERE uid = u;
    UPDATE directory SET num_children = num_children + 1, mtime = now() WHERE id = p;
    IF NOT FOUND THEN RAISE EXCEPTION 'no directory %', p; END IF;
END $$;

CREATE FUNCTION create_file_delta(p bigint, n varchar, i bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO entry (pid, name, id, kind, mode, uid, gid, size, mtime, ctime)
        VALUES (p, n, i, 'f', 420, 1000, 1000, 0, now(), now());
    INSERT INTO delta (pid, children, mtime) VALUES (p, 1, now());
END $$;

CREATE FUNCTION fold_deltas() RETURNS void LANGUAGE sql AS $$
    WITH gone AS (DELETE FROM delta RETURNING pid, children, mtime),
         sums AS (SELECT pid, sum(children) AS children, max(mtime) AS mtime FROM gone GROUP BY pid)
    UPDATE directory d SET num_children = d.num_children + s.children,
                           mtime = greatest(d.mtime, s.mtime)
        FROM sums s WHERE d.id = s.pid;
$$;

CREATE FUNCTION make_directory(p bigint, n varchar, i bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO entry (pid, name, id, kind) VALUES (p, n, i, 'd');
    INSERT INTO directory (id, mode, uid, gid, num_children, mtime, ctime)
        VALUES (i, 493, 1000, 1000, 0, now(), now());
    UPDATE directory SET num_children = num_children + 1, mtime = now() WHERE id = p;
    IF NOT FOUND THEN RAISE EXCEPTION 'no directory %', p; END IF;
END $$;

CREATE FUNCTION remove_file(p bigint, n varchar) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM entry WHERE pid = p AND name = n;
    IF NOT FOUND THEN RAISE EXCEPTION 'no entry % in %', n, p; END IF;
    UPDATE directory SET num_children = num_children - 1, mtime = now() WHERE id = p;
END $$;

CREATE FUNCTION remove_directory(p bigint, n varchar) RETURNS void LANGUAGE plpgsql AS $$
DECLARE gone bigint;
BEGIN
    DELETE FROM entry WHERE pid = p AND name = n AND kind = 'd' RETURNING id INTO gone;
    IF NOT FOUND THEN RAISE EXCEPTION 'no directory % in %', n, p; END IF;
    DELETE FROM directory WHERE id = gone AND num_children = 0;
    IF NOT FOUND THEN RAISE EXCEPTION 'directory % is not empty', n; END IF;
    UPDATE directory SET num_children = num_children - 1, mtime = now() WHERE id = p;
END $$;

CREATE FUNCTION rename_entry(p bigint, n varchar, d bigint, m varchar) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE entry SET pid = d, name = m, ctime = now() WHERE pid = p AND name = n;
    IF NOT FOUND THEN RAISE EXCEPTION 'no entry % in %', n, p; END IF;
    UPDATE directory SET num_children = num_children - 1, mtime = now() WHERE id = p;
    UPDATE directory SET num_children = num_children + 1, mtime = now() WHERE id = d;
END $$;
