-- EXPLAIN and the catalogue of patterns.
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
EXPLAIN SELECT id FROM meta WHERE pid = 0 AND name = 'x';
EXPLAIN SELECT name FROM meta WHERE pid = 0 AND name > 'a' ORDER BY name LIMIT 10;
EXPLAIN INSERT INTO meta (pid, name) VALUES (0, 'never');
EXPLAIN DELETE FROM kv WHERE key = 'never';
SELECT count(*) FROM meta WHERE pid = 0 AND name = 'never';
SELECT name FROM metadb.patterns WHERE name LIKE 'meta.%' ORDER BY name;
SELECT name, handler, scope FROM metadb.patterns WHERE name LIKE 'kv.%' ORDER BY name;
SELECT nosuch FROM metadb.patterns;
