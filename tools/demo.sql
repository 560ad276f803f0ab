-- Five minutes with metadb: `make demo-sql` runs this. docs/sql.md is the reference.
\pset footer off
\pset pager off
\set VERBOSITY default
-- A directory of our own under the root, whose id is 0; the name is new in every run.
\set top `date +demo-%Y%m%d-%H%M%S`
\set dir /:top
\set june_dir :dir /projects/2024/june
\set plan_file :june_dir /plan.md
\set ECHO queries

\echo '== 1. Directories and files'
\echo '-- mkdir: type d is a directory; the server draws its id'
INSERT INTO meta (pid, name, type, uid) VALUES (0, :'top', 'd', 1000) RETURNING id AS top_id \gset
\echo '-- create: one file, then several in one statement, all or none'
INSERT INTO meta (pid, name, mode, uid, size) VALUES (:top_id, 'readme.txt', 420, 1000, 512)
    RETURNING name, type, mode, size;
INSERT INTO meta (pid, name, uid, size, fid) VALUES (:top_id, 'a.txt', 1000, 10, 9001),
    (:top_id, 'b.txt', 1000, 20, 9002), (:top_id, 'c.txt', 1000, 30, 9003);
\echo '-- stat'
SELECT name, type, size, nlink FROM meta WHERE pid = :top_id AND name = 'a.txt';
\echo '-- list, page by page: continue behind the last name'
SELECT name, type, size FROM meta WHERE pid = :top_id AND name <> '_attr_' ORDER BY name LIMIT 3;
SELECT name, type, size FROM meta WHERE pid = :top_id AND name > 'c.txt' ORDER BY name LIMIT 3;
\echo '-- the attributes of the directory itself are its row _attr_; num_children is always right'
SELECT num_children, mode, uid, parent FROM meta WHERE pid = :top_id AND name = '_attr_';
\echo '-- setattr and append; rename, which never replaces'
UPDATE meta SET size = size + 100, mode = 384 WHERE pid = :top_id AND name = 'a.txt'
    RETURNING name, size, mode;
UPDATE meta SET name = 'notes.txt' WHERE pid = :top_id AND name = 'readme.txt' RETURNING name, size;

\echo '== 2. Errors are those of PostgreSQL, where it has them'
INSERT INTO meta (pid, name) VALUES (:top_id, 'a.txt');
DELETE FROM meta WHERE pid = 0 AND name = :'top';
\echo '-- what is not a pattern is refused at once, never a slow query'
SELECT max(size) FROM meta WHERE pid = :top_id;

\echo '== 3. Paths'
\echo '-- mkdir -p, a file in it, look-up of a whole path, listing with directories attributes'
SELECT make_path(:'june_dir') AS june \gset
INSERT INTO meta (pid, name, uid, size) VALUES (:june, 'plan.md', 1000, 4096);
SELECT name, type, size FROM resolve(:'plan_file');
SELECT name, type, size, num_children FROM list_attr(:top_id, '', 10);
\echo '-- hard link; POSIX rename, which replaces or exchanges when asked to'
SELECT link(:june, 'plan.md', :top_id, 'plan.md') AS links;
SELECT move(:top_id, 'b.txt', :top_id, 'c.txt', 'replace') AS moved \gset
SELECT name, size FROM meta WHERE pid = :top_id AND name IN ('b.txt', 'c.txt');
\echo '-- a directory moves with all that is below; never below itself'
UPDATE meta SET pid = :june, name = 'loop' WHERE pid = :top_id AND name = 'projects';
SELECT files, directories, bytes FROM usage(:'dir');

\echo '== 4. What follows by itself: quota by owner, index by fid'
SELECT metadb.wait_for_sinks() AS waited \gset
SELECT name, value FROM quota WHERE uid = 1000;
SELECT name FROM secondary_index WHERE fid = 9002;

\echo '== 5. Keys and values: upsert, compare-and-set, expiry'
INSERT INTO kv (key, value) VALUES ('demo/answer', '41')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value RETURNING seq \gset
UPDATE kv SET value = '42' WHERE key = 'demo/answer' AND seq = :seq RETURNING key, value;
\echo '-- the same again finds a newer version and does nothing'
UPDATE kv SET value = '43' WHERE key = 'demo/answer' AND seq = :seq RETURNING key, value;
INSERT INTO kv (key, value, expires_at)
    VALUES ('demo/lease', 'mine', now() + interval '30 seconds')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at;
SELECT key, value FROM kv WHERE key LIKE 'demo/%' ORDER BY key;

\echo '== 6. Transactions: a snapshot, all or nothing'
BEGIN;
INSERT INTO meta (pid, name) VALUES (:top_id, 'draft');
SAVEPOINT before_move;
UPDATE meta SET pid = :june WHERE pid = :top_id AND name = 'draft';
ROLLBACK TO before_move;
SELECT name FROM meta WHERE pid = :top_id AND name = 'draft' FOR UPDATE;
ROLLBACK;
SELECT count(*) FROM meta WHERE pid = :top_id AND name = 'draft';

\echo '== 7. COPY'
\set ECHO all
COPY kv (key, value) FROM STDIN WITH (FORMAT csv);
demo/one,\x01
demo/two,\x02
\.
COPY (SELECT name, type, size FROM meta WHERE pid = :top_id AND name > '_attr_') TO STDOUT
    WITH (FORMAT csv, HEADER);

\echo '== 8. How a statement is executed, and what else there is'
EXPLAIN (ANALYZE) SELECT id FROM meta WHERE pid = :top_id AND name = 'a.txt';
SELECT name, template FROM metadb.patterns WHERE name IN ('meta.create', 'meta.lookup', 'meta.rename') ORDER BY name;
SELECT shard, "table" FROM metadb.shards ORDER BY shard;
\echo '-- recounts directories, quota and index: no row is good news'
SELECT * FROM metadb.check();

\echo '== 9. Clean up: a whole tree at once'
SELECT remove_tree(0, :'top') AS job \gset
DELETE FROM kv WHERE key >= 'demo/' AND key < 'demo0';
SELECT count(*) FROM meta WHERE pid = 0 AND name = :'top';
