-- meta.create: files, directories, defaults, every error.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'create', 100, 'd');
INSERT INTO meta (pid, name) VALUES (100, 'plain');
SELECT name, type, mode, uid, gid, size, nlink, num_children, parent, rdev, fid, class, attr FROM meta WHERE pid = 100 AND name = 'plain';
INSERT INTO meta (pid, name, id, type, mode, uid, gid, size, nlink, rdev, fid, class, attr, atime, mtime, ctime, btime)
  VALUES (100, 'full', 1001, 'f', 384, 7, 8, 4096, 1, 2049, 77, 3, '\x00ff', '2024-01-01 00:00:00.000001+00', '2024-01-02 00:00:00+01', '2024-01-03 00:00:00Z', '2024-01-04')
  RETURNING pid, name, id, type, mode, uid, gid, size, nlink, rdev, fid, class, attr, atime, mtime, ctime, btime;
-- several rows, all or none
INSERT INTO meta (pid, name, id) VALUES (100, 'a', 1), (100, 'b', 2), (100, 'c', 3);
INSERT INTO meta (pid, name) VALUES (100, 'd'), (100, 'a');
SELECT name, id FROM meta WHERE pid = 100 AND name IN ('a', 'b', 'c', 'd') ORDER BY name;
INSERT INTO meta (pid, name) VALUES (100, 'e'), (100, 'e');
INSERT INTO meta (pid, name) VALUES (100, 'a'), (100, 'f'), (100, 'f') ON CONFLICT DO NOTHING RETURNING name;
INSERT INTO meta (pid, name) VALUES (100, 'a') ON CONFLICT DO NOTHING;
-- every type
INSERT INTO meta (pid, name, type) VALUES (100, 'tl', 'l'), (100, 'tp', 'p'), (100, 'ts', 's'), (100, 'tc', 'c'), (100, 'tb', 'b');
INSERT INTO meta (pid, name, type) VALUES (100, 'tx', 'x');
-- directories
INSERT INTO meta (pid, name, id, type, mode) VALUES (100, 'sub', 101, 'd', 448) RETURNING name, id, type, mode, num_children;
SELECT name, id, type, mode FROM meta WHERE pid = 100 AND name = 'sub';
SELECT pid, name, id, type, mode, nlink, num_children, parent FROM meta WHERE pid = 101 AND name = '_attr_';
INSERT INTO meta (pid, name, id, type) VALUES (100, 'sub2', 101, 'd');
INSERT INTO meta (pid, name, type) VALUES (100, 'drawn', 'd') RETURNING id AS drawn_id \gset
SELECT :drawn_id > 0 AS drawn;
SELECT name, num_children FROM meta WHERE pid = :drawn_id AND name = '_attr_';
INSERT INTO meta (pid, name, id, type) VALUES (101, 'x', 1002, 'f');
SELECT num_children FROM meta WHERE pid = 101 AND name = '_attr_';
SELECT num_children FROM meta WHERE pid = 100 AND name = '_attr_';
SELECT count(*) FROM meta WHERE pid = 100 AND name <> '_attr_';
-- names
INSERT INTO meta (pid, name) VALUES (100, '');
INSERT INTO meta (pid, name) VALUES (100, 'a/b');
INSERT INTO meta (pid, name) VALUES (100, '_attr_');
INSERT INTO meta (pid, name) VALUES (100, '01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789');
INSERT INTO meta (pid, name) VALUES (100, NULL);
INSERT INTO meta (name) VALUES ('nowhere');
INSERT INTO meta (pid, name) VALUES (100, 'ÄÖ ü'), (100, '日本');
-- no such directory; a file is no directory
INSERT INTO meta (pid, name) VALUES (424242, 'x');
INSERT INTO meta (pid, name) VALUES (1001, 'x');
-- values
INSERT INTO meta (pid, name, mode) VALUES (100, 'm', 4096);
INSERT INTO meta (pid, name, mode) VALUES (100, 'm', -1);
INSERT INTO meta (pid, name, size) VALUES (100, 'm', -1);
INSERT INTO meta (pid, name, mode) VALUES (100, 'm', NULL);
INSERT INTO meta (pid, name, uid) VALUES (100, 'm', 'nobody');
INSERT INTO meta (pid, name, class) VALUES (100, 'm', 40000);
INSERT INTO meta (pid, name, mtime) VALUES (100, 'm', 'yesterdayish');
INSERT INTO meta (pid, name, mtime) VALUES (100, 'm', '2024-13-01');
INSERT INTO meta (pid, name, seq) VALUES (100, 'm', 5);
INSERT INTO meta (pid, name, num_children) VALUES (100, 'm', 5);
INSERT INTO meta (pid, name, mode) VALUES (100, 'dflt', DEFAULT) RETURNING mode;
INSERT INTO meta (pid, name, nosuch) VALUES (100, 'm', 1);
INSERT INTO meta (pid, name) VALUES (100, 'm', 1);
INSERT INTO meta (pid, name, pid) VALUES (100, 'm', 1);
INSERT INTO nosuch (pid, name) VALUES (100, 'm');
INSERT INTO meta VALUES (100, 'positional');
INSERT INTO meta (pid, name) SELECT 100, 'x';
INSERT INTO meta DEFAULT VALUES;
INSERT INTO meta (pid, name, mode) VALUES (100, 'm', 10000000000);
INSERT INTO meta (pid, name, size) VALUES (100, 'm', 9223372036854775808);
INSERT INTO meta (pid, name, size) VALUES (100, 'm', true);
INSERT INTO meta (pid, name, size) VALUES (100, 'm', now());
INSERT INTO meta (pid, name, mtime) VALUES (100, 'm', 5);
INSERT INTO meta (pid, name, mtime) VALUES (100, 'm', '2024-02-30');
INSERT INTO meta (pid, name, mtime) VALUES (100, 'm', '2024-02-29 12:00 Nowhere/City');
INSERT INTO meta (pid, name, attr) VALUES (100, 'm', '\xzz');
INSERT INTO meta (pid, name, attr) VALUES (100, 'm', '\x123');
INSERT INTO meta (pid, name, attr) VALUES (100, 'm', 5);
INSERT INTO meta (pid, name) VALUES (100, true);
INSERT INTO meta (pid, name) VALUES (100, nosuch);
INSERT INTO meta (pid, name) VALUES (100, nosuch('x'));
INSERT INTO meta (pid, name) VALUES (100, 'm'::nosuch);
INSERT INTO meta (pid, name) VALUES (100, 'm'), (100);
INSERT INTO meta (pid, name) VALUES (100);
INSERT INTO nosch.meta (pid, name) VALUES (100, 'm');
INSERT INTO meta (pid, name) VALUES (100, 'm') RETURNING nosuch;
INSERT INTO meta (pid, name) VALUES (100, 'm') RETURNING size + 1;
INSERT INTO meta (pid, name) VALUES (100, 'a') ON CONFLICT (pid, name) DO UPDATE SET size = 1;
INSERT INTO meta (pid, name) VALUES (100, 'a') ON CONFLICT (pid) DO NOTHING;
INSERT INTO meta (pid, name) VALUES (100, 'a') ON CONFLICT (nosuch) DO NOTHING;
INSERT INTO meta (pid, name) VALUES (100, 'a') ON CONFLICT ON CONSTRAINT nosuch DO NOTHING;
INSERT INTO meta (pid, name) VALUES (100, 'a') ON CONFLICT ON CONSTRAINT meta_pkey DO NOTHING;
INSERT INTO meta (pid, name) VALUES (100, 'a') ON CONFLICT (pid, name) DO NOTHING RETURNING name;
SELECT count(*) FROM meta WHERE pid = 100 AND name = 'm';
-- values that convert
INSERT INTO meta (pid, name, size, mode) VALUES (' 100 ', 5, 1.5, '0') RETURNING pid, name, size, mode;
INSERT INTO meta (pid, name, type) VALUES (100, 'tt', 'file') RETURNING type;
INSERT INTO meta (pid, name, mtime) VALUES (100, 'i1', 'infinity'), (100, 'i2', '-infinity'), (100, 'i3', 'epoch'), (100, 'i4', '0044-03-15 BC'), (100, 'i5', '2024-01-01'::date) RETURNING name, mtime;
INSERT INTO meta AS m (pid, name, id) VALUES (100, 'as', 77) RETURNING m.id, m.name AS n;
-- the root
SELECT pid, name, id, type, mode, nlink, parent FROM meta WHERE pid = 0 AND name = '_attr_';
INSERT INTO meta (pid, name, id, type) VALUES (100, 'root', 0, 'd');
