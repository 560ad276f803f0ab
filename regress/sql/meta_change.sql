-- meta.set, rename, remove, remove_many, remove_range.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'change', 300, 'd'), (0, 'change2', 301, 'd');
INSERT INTO meta (pid, name, id, size, mtime) VALUES (300, 'f', 3001, 10, '2024-01-01');
-- set
UPDATE meta SET size = 20, mtime = '2024-02-02 00:00:00+00' WHERE pid = 300 AND name = 'f' RETURNING name, size, mtime;
UPDATE meta SET size = size + 5 WHERE pid = 300 AND name = 'f' RETURNING size;
UPDATE meta SET size = size - 1 WHERE pid = 300 AND name = 'f' RETURNING size;
UPDATE meta SET size = greatest(size, 100), mtime = greatest(mtime, '2023-01-01') WHERE pid = 300 AND name = 'f' RETURNING size, mtime;
UPDATE meta SET fid = 5, attr = '\x01', class = NULL WHERE name = 'f' AND pid = 300 RETURNING fid, attr, class;
UPDATE meta SET fid = NULL WHERE pid = 300 AND name = 'f' RETURNING fid;
UPDATE meta SET size = DEFAULT WHERE pid = 300 AND name = 'f' RETURNING size;
UPDATE meta SET size = 1 WHERE pid = 300 AND name = 'nosuch';
UPDATE meta SET size = 1 WHERE pid = 300 AND name = 'f' AND seq = 1;
SELECT seq AS s FROM meta WHERE pid = 300 AND name = 'f' \gset
UPDATE meta SET size = 2 WHERE pid = 300 AND name = 'f' AND seq = :s RETURNING size;
UPDATE meta SET size = 3 WHERE pid = 300 AND name = 'f' AND seq = :s RETURNING size;
UPDATE meta SET size = 9223372036854775807 WHERE pid = 300 AND name = 'f';
UPDATE meta SET size = size + 1 WHERE pid = 300 AND name = 'f';
UPDATE meta SET size = -1 WHERE pid = 300 AND name = 'f';
UPDATE meta SET mode = 10000 WHERE pid = 300 AND name = 'f';
UPDATE meta SET mode = NULL WHERE pid = 300 AND name = 'f';
UPDATE meta SET seq = 1 WHERE pid = 300 AND name = 'f';
UPDATE meta SET num_children = 1 WHERE pid = 300 AND name = '_attr_';
UPDATE meta SET nosuch = 1 WHERE pid = 300 AND name = 'f';
UPDATE meta SET size = 1;
UPDATE meta SET size = 1 WHERE pid = 300;
UPDATE meta SET size = 1, size = 2 WHERE pid = 300 AND name = 'f';
UPDATE meta SET mode = 448, uid = 9 WHERE pid = 300 AND name = '_attr_' RETURNING mode, uid, num_children;
-- rename
UPDATE meta SET name = 'g' WHERE pid = 300 AND name = 'f';
UPDATE meta SET pid = 301, name = 'h' WHERE pid = 300 AND name = 'g' RETURNING pid, name, id;
UPDATE meta SET pid = 301, name = 'x' WHERE pid = 300 AND name = 'nosuch';
INSERT INTO meta (pid, name) VALUES (301, 'there');
UPDATE meta SET name = 'there' WHERE pid = 301 AND name = 'h';
UPDATE meta SET pid = 424242, name = 'h' WHERE pid = 301 AND name = 'h';
UPDATE meta SET name = '_attr_' WHERE pid = 301 AND name = 'h';
UPDATE meta SET name = 'a/b' WHERE pid = 301 AND name = 'h';
UPDATE meta SET name = 'x' WHERE pid = 301 AND name = '_attr_';
SELECT num_children FROM meta WHERE pid = 300 AND name = '_attr_';
SELECT num_children FROM meta WHERE pid = 301 AND name = '_attr_';
-- a directory moves with all that is below; no loops
INSERT INTO meta (pid, name, id, type) VALUES (300, 'd1', 302, 'd'), (302, 'd2', 303, 'd');
UPDATE meta SET pid = 303, name = 'loop' WHERE pid = 300 AND name = 'd1';
UPDATE meta SET pid = 302, name = 'loop' WHERE pid = 300 AND name = 'd1';
UPDATE meta SET pid = 301, name = 'd1' WHERE pid = 300 AND name = 'd1' RETURNING pid, name, id;
SELECT parent FROM meta WHERE pid = 302 AND name = '_attr_';
-- remove
DELETE FROM meta WHERE pid = 301 AND name = 'd1';
DELETE FROM meta WHERE pid = 302 AND name = 'd2';
DELETE FROM meta WHERE pid = 301 AND name = 'd1' AND type = 'f';
DELETE FROM meta WHERE pid = 301 AND name = 'd1' AND type = 'd' RETURNING name, id;
SELECT count(*) FROM meta WHERE pid = 302;
DELETE FROM meta WHERE pid = 301 AND name = 'd1';
DELETE FROM meta WHERE pid = 301 AND name = '_attr_';
DELETE FROM meta WHERE pid = 301 AND name = 'h' AND seq = 1;
DELETE FROM meta WHERE pid = 301 AND name = 'h' RETURNING name;
DELETE FROM meta WHERE pid = 301;
DELETE FROM meta;
INSERT INTO meta (pid, name) VALUES (300, 'r1'), (300, 'r2'), (300, 'r3'), (300, 'r4'), (300, 'r5'), (300, 's1');
DELETE FROM meta WHERE pid = 300 AND name IN ('r1', 'nosuch', 'r2') RETURNING name;
DELETE FROM meta WHERE pid = 300 AND name = ANY('{r3}');
DELETE FROM meta WHERE pid = 300 AND name >= 'r' AND name < 's';
INSERT INTO meta (pid, name, id, type) VALUES (300, 'r6', 304, 'd');
INSERT INTO meta (pid, name) VALUES (300, 'r5');
DELETE FROM meta WHERE pid = 300 AND name >= 'r' AND name < 's';
SELECT name FROM meta WHERE pid = 300 AND name <> '_attr_' ORDER BY name;
SELECT num_children FROM meta WHERE pid = 300 AND name = '_attr_';
