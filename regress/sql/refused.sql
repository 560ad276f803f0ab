-- What a user of PostgreSQL may try and metadb refuses: at once, with the place, and nothing happens.
\set VERBOSITY verbose
\set QUIET off
INSERT INTO meta (pid, name, id, type) VALUES (0, 'refused', 970, 'd');
INSERT INTO meta (pid, name, id) VALUES (970, 'x', 9701), (970, 'h', 9702);
-- reading
SELECT name FROM meta WHERE pid = 970 AND name IN (SELECT 'x');
SELECT name FROM meta WHERE pid IN (970, 971) AND name = 'x';
SELECT name FROM meta WHERE pid IN (970, 971);
SELECT name FROM meta WHERE name = 'x';
SELECT pid, name FROM meta WHERE (pid, name) IN ((970, 'x'));
SELECT name FROM meta WHERE pid = 970 AND name = ANY(ARRAY['x']::int[]);
SELECT name FROM meta WHERE pid = 970 AND name = ANY(ARRAY['x']::text);
SELECT name FROM meta WHERE pid = 970 AND name NOT IN ('x');
SELECT name FROM meta WHERE pid = 970 AND name NOT LIKE 'x%';
SELECT name FROM meta WHERE pid = 970 AND NOT name = 'x';
SELECT name FROM meta WHERE pid = 970 AND name ^@ 'x';
SELECT name FROM meta WHERE pid = 970 AND starts_with(name, 'x');
SELECT name FROM meta WHERE pid = 970 AND name = name;
SELECT name FROM meta WHERE pid = 970 AND true;
SELECT name FROM meta WHERE pid = 970 AND size + 1 = 1;
SELECT name::text FROM meta WHERE pid = 970;
SELECT count(*), 1 FROM meta WHERE pid = 970;
SELECT count(DISTINCT name) FROM meta WHERE pid = 970;
SELECT sum(size) FROM meta WHERE pid = 970;
SELECT row_number() OVER () FROM meta WHERE pid = 970;
SELECT name, ctid FROM meta WHERE pid = 970;
SELECT name FROM meta TABLESAMPLE system (10);
SELECT name FROM meta WHERE pid = 970 ORDER BY lower(name);
SELECT name FROM meta WHERE pid = 970 ORDER BY name USING >;
SELECT name FROM meta WHERE pid = 970 FETCH FIRST 1 ROWS WITH TIES;
SELECT pid, name FROM meta ORDER BY name;
SELECT pid, name FROM meta ORDER BY pid, name DESC;
-- writing
UPDATE meta SET size = size * 2 WHERE pid = 970 AND name = 'x';
UPDATE meta SET size = (SELECT 1) WHERE pid = 970 AND name = 'x';
UPDATE meta SET size = coalesce(size, 0) WHERE pid = 970 AND name = 'x';
UPDATE meta SET size = nlink WHERE pid = 970 AND name = 'x';
UPDATE meta SET size = name WHERE pid = 970 AND name = 'x';
UPDATE meta SET size = size WHERE pid = 970 AND name = 'x';
UPDATE meta SET mode = mode & 1 WHERE pid = 970 AND name = 'x';
UPDATE meta SET name = name || '.bak' WHERE pid = 970 AND name = 'x';
UPDATE meta SET size = 1, name = 'xx' WHERE pid = 970 AND name = 'x';
UPDATE meta SET type = 'd' WHERE pid = 970 AND name = 'x';
UPDATE meta SET id = 5 WHERE pid = 0 AND name = 'refused';
SELECT link(970, 'h', 970, 'h2');
UPDATE meta SET id = 5 WHERE pid = 970 AND name = 'h';
UPDATE meta SET parent = 5 WHERE pid = 970 AND name = '_attr_';
UPDATE meta SET size = 1 WHERE pid = 970 AND name IN ('x', 'y');
UPDATE meta SET size = 1 FROM kv WHERE pid = 970 AND name = 'x';
UPDATE meta SET (size, mode) = (1, 2) WHERE pid = 970 AND name = 'x';
DELETE FROM meta USING kv WHERE pid = 970;
DELETE FROM meta WHERE pid = 970 AND name = 'x' LIMIT 1;
DELETE FROM meta WHERE pid = 970 AND name > 'a' AND name < 'z' RETURNING name;
DELETE FROM meta WHERE pid = 970 AND name > 'a';
DELETE FROM meta WHERE pid = 970 AND name > 'a' AND name < 'z' AND size = 0;
INSERT INTO meta (pid, name) VALUES (970, 'o') ON CONFLICT (pid, name) DO UPDATE SET size = 5;
INSERT INTO kv (key, value) VALUES ('n', '1') ON CONFLICT (key) DO UPDATE SET value = kv.value;
INSERT INTO kv (key, value) VALUES ('n', '1') ON CONFLICT (key) DO UPDATE SET value = excluded.nosuch;
INSERT INTO kv (key, value) VALUES ('n', '1') ON CONFLICT (key) DO UPDATE SET seq = 1;
INSERT INTO kv (key, value) VALUES ('n', '1') ON CONFLICT (key) DO UPDATE SET key = 'm';
INSERT INTO kv (key, value) TABLE kv;
MERGE INTO kv USING kv k ON true WHEN MATCHED THEN DO NOTHING;
-- nothing of it happened
SELECT name, id, size, mode, nlink FROM list_attr(970);
SELECT key FROM kv WHERE key = 'n';
