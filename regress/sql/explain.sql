-- EXPLAIN and the catalogue of patterns.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
EXPLAIN SELECT id FROM meta WHERE pid = 0 AND name = 'x';
EXPLAIN SELECT id FROM meta WHERE pid = 0 AND name IN ('x', 'y', 'x');
EXPLAIN SELECT name FROM meta WHERE pid = 0 AND name > 'a' ORDER BY name LIMIT 10;
EXPLAIN SELECT name FROM meta WHERE pid = 0 AND name LIKE 'a%' AND type = 'f' ORDER BY name DESC;
EXPLAIN SELECT count(*) FROM meta WHERE pid = 0;
EXPLAIN SELECT * FROM meta;
EXPLAIN SELECT * FROM meta WHERE (pid, name) > (5, 'x') ORDER BY pid, name LIMIT 3;
EXPLAIN INSERT INTO meta (pid, name) VALUES (0, 'never'), (0, 'never2');
EXPLAIN UPDATE meta SET size = 1 WHERE pid = 0 AND name = 'never';
EXPLAIN UPDATE meta SET name = 'x' WHERE pid = 0 AND name = 'never';
EXPLAIN DELETE FROM meta WHERE pid = 0 AND name = 'never';
EXPLAIN DELETE FROM meta WHERE pid = 0 AND name >= 'a' AND name < 'b';
EXPLAIN SELECT * FROM resolve('/a/b');
EXPLAIN SELECT * FROM list_attr(0, '', 10);
EXPLAIN SELECT * FROM usage('/');
EXPLAIN SELECT make_path('/never/made');
EXPLAIN SELECT move(0, 'never', 0, 'x', 'replace');
EXPLAIN SELECT link(0, 'never', 0, 'x');
EXPLAIN SELECT remove_tree(0, 'never');
EXPLAIN SELECT value FROM quota WHERE uid = 1;
EXPLAIN SELECT * FROM secondary_index WHERE fid = 1;
EXPLAIN SELECT * FROM kv WHERE key = 'never';
EXPLAIN INSERT INTO kv (key) VALUES ('never') ON CONFLICT (key) DO UPDATE SET value = excluded.value;
EXPLAIN DELETE FROM kv WHERE key = 'never';
EXPLAIN SELECT * FROM object WHERE bucket = 'b' AND key = 'never';
EXPLAIN SELECT 1;
EXPLAIN SELECT name FROM metadb.patterns;
EXPLAIN SELECT id FROM meta WHERE pid = NULL AND name = 'x';
-- nothing was done
SELECT count(*) FROM meta WHERE pid = 0 AND name LIKE 'never%';
-- errors and options
EXPLAIN SELECT nosuch FROM meta;
EXPLAIN SELECT max(size) FROM meta WHERE pid = 0;
EXPLAIN BEGIN;
EXPLAIN (NOSUCH) SELECT 1;
EXPLAIN (FORMAT json) SELECT 1;
EXPLAIN (VERBOSE, COSTS off) SELECT id FROM meta WHERE pid = 0 AND name = 'x';
-- ANALYZE executes
INSERT INTO meta (pid, name, id, type) VALUES (0, 'explain', 850, 'd');
BEGIN;
EXPLAIN (ANALYZE, TIMING off) INSERT INTO meta (pid, name) VALUES (850, 'x');
ROLLBACK;
SELECT count(*) FROM meta WHERE pid = 850 AND name = 'x';
-- the catalogue
SELECT name FROM metadb.patterns WHERE name LIKE 'meta.%' ORDER BY name;
SELECT name, handler, scope FROM metadb.patterns WHERE name NOT LIKE 'meta.%' ORDER BY name;
SELECT template FROM metadb.patterns WHERE name = 'meta.lookup';
SELECT calls > 0 AS called, errors > 0 AS failed FROM metadb.patterns WHERE name = 'meta.lookup';
SELECT nosuch FROM metadb.patterns;
