\pset footer off
\set VERBOSITY default
-- A directory of our own under the root, whose id is 0; the name is new in every run.
\set top `date +demo-%Y%m%d-%H%M%S`

\echo '-- mkdir: type d is a directory; the server draws its id'
INSERT INTO meta (pid, name, type) VALUES (0, :'top', 'd') RETURNING id AS top_id \gset
INSERT INTO meta (pid, name, type, mode, uid) VALUES (:top_id, 'projects', 'd', 493, 1000)
    RETURNING pid, name, id;

\echo '-- create: one file, then several in one statement'
INSERT INTO meta (pid, name, mode, uid, size) VALUES (:top_id, 'readme.txt', 420, 1000, 512);
INSERT INTO meta (pid, name, uid) VALUES (:top_id, 'a.txt', 1000), (:top_id, 'b.txt', 1000),
    (:top_id, 'c.txt', 1000);

\echo '-- list a directory, page by page'
SELECT name, type, size FROM meta WHERE pid = :top_id ORDER BY name LIMIT 3;
SELECT name, type, size FROM meta WHERE pid = :top_id AND name > 'b.txt' ORDER BY name LIMIT 3;

\echo '-- stat a directory: its own attributes are the row named _attr_'
SELECT num_children, nlink, parent FROM meta WHERE pid = :top_id AND name = '_attr_';

\echo '-- rename never replaces'
UPDATE meta SET pid = :top_id, name = 'notes.txt' WHERE pid = :top_id AND name = 'readme.txt'
    RETURNING name, size;

\echo '-- an error has the code and the words that PostgreSQL would use'
INSERT INTO meta (pid, name) VALUES (:top_id, 'a.txt');
DELETE FROM meta WHERE pid = 0 AND name = :'top';

\echo '-- keys and values: upsert, and compare-and-set by seq'
INSERT INTO kv (key, value) VALUES ('demo/answer', '41')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
INSERT INTO kv (key, value) VALUES ('demo/answer', '42')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
SELECT key, value FROM kv WHERE key = 'demo/answer';

\echo '-- a transaction: all or nothing'
BEGIN;
INSERT INTO meta (pid, name) VALUES (:top_id, 'in-transaction');
SELECT count(*) FROM meta WHERE pid = :top_id;
ROLLBACK;
SELECT count(*) FROM meta WHERE pid = :top_id;

\echo '-- how a statement is executed, and what else there is'
EXPLAIN SELECT id FROM meta WHERE pid = :top_id AND name = 'a.txt';
SELECT name, template FROM metadb.patterns ORDER BY name LIMIT 8;

\echo '-- clean up'
DELETE FROM meta WHERE pid = :top_id AND name IN ('a.txt', 'b.txt', 'c.txt', 'notes.txt');
DELETE FROM meta WHERE pid = :top_id AND name = 'projects';
DELETE FROM meta WHERE pid = 0 AND name = :'top';
DELETE FROM kv WHERE key = 'demo/answer';
