-- DECLARE, FETCH, MOVE, CLOSE.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'cursors', 650, 'd');
INSERT INTO meta (pid, name) VALUES (650, 'a'), (650, 'b'), (650, 'c'), (650, 'd'), (650, 'e');
DECLARE c CURSOR FOR SELECT 1;
BEGIN;
DECLARE c CURSOR FOR SELECT name FROM meta WHERE pid = 650 AND name <> '_attr_' ORDER BY name;
FETCH 0 FROM c;
FETCH c;
FETCH NEXT IN c;
FETCH FORWARD 2 FROM c;
MOVE 1 FROM c;
FETCH ALL FROM c;
FETCH 1 FROM c;
MOVE ALL IN c;
CLOSE c;
FETCH 1 FROM c;
COMMIT;
-- a cursor shows the data as they were when it was declared, own writes before that included
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT name FROM meta WHERE pid = 650 AND name <> '_attr_';
FETCH 1 FROM c;
INSERT INTO meta (pid, name) VALUES (650, 'bb');
DECLARE d CURSOR FOR SELECT name FROM meta WHERE pid = 650 AND name <> '_attr_';
MOVE 2 FROM d;
FETCH 1 FROM d;
FETCH 1 FROM c;
DELETE FROM meta WHERE pid = 650 AND name = 'c';
UPDATE meta SET name = 'zz' WHERE pid = 650 AND name = 'd';
DELETE FROM meta WHERE pid = 650 AND name = 'bb';
INSERT INTO meta (pid, name, size) VALUES (650, 'c', 7);
FETCH ALL FROM c;
FETCH ALL FROM d;
SELECT name FROM meta WHERE pid = 650 AND name <> '_attr_';
ROLLBACK;
BEGIN;
DELETE FROM meta WHERE pid = 650 AND name = 'b';
DECLARE c CURSOR FOR SELECT name FROM meta WHERE pid = 650 AND name IN ('a', 'b', 'c', 'x');
INSERT INTO meta (pid, name) VALUES (650, 'b'), (650, 'x');
DELETE FROM meta WHERE pid = 650 AND name = 'c';
FETCH ALL FROM c;
ROLLBACK;
-- two at a time, names, kinds
BEGIN;
DECLARE "Mixed" CURSOR FOR SELECT name FROM meta WHERE pid = 650 AND name LIKE 'a%';
DECLARE k CURSOR FOR SELECT key FROM kv WHERE key = 'nosuch';
DECLARE v CURSOR FOR SELECT 1 AS one, 'x' AS two;
DECLARE p CURSOR FOR SELECT name FROM metadb.patterns WHERE name LIKE 'kv.get%' ORDER BY name;
FETCH ALL FROM "Mixed";
FETCH ALL FROM k;
FETCH ALL FROM v;
FETCH 1 FROM p;
FETCH 1 FROM p;
FETCH 1 FROM p;
CLOSE ALL;
FETCH 1 FROM p;
ROLLBACK;
-- errors
BEGIN;
DECLARE c CURSOR FOR SELECT name FROM meta WHERE pid = 650;
DECLARE c CURSOR FOR SELECT name FROM meta WHERE pid = 650;
ROLLBACK;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT name FROM meta WHERE pid = 650;
FETCH 1 FROM c;
FETCH BACKWARD 1 FROM c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT name FROM meta WHERE pid = 650;
FETCH ABSOLUTE 2 FROM c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT nosuch FROM meta WHERE pid = 650;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR INSERT INTO kv (key) VALUES ('x');
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT max(size) FROM meta WHERE pid = 650;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT name FROM meta WHERE pid = 650;
UPDATE meta SET size = 9 WHERE CURRENT OF c;
ROLLBACK;
FETCH 1 FROM nosuch;
MOVE 1 FROM nosuch;
CLOSE nosuch;
-- WITH HOLD outlives its transaction
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT name FROM meta WHERE pid = 650 AND name <> '_attr_';
FETCH 2 FROM h;
COMMIT;
FETCH 2 FROM h;
CLOSE h;
DECLARE h CURSOR WITH HOLD FOR SELECT name FROM meta WHERE pid = 650 AND name <> '_attr_';
FETCH 1 FROM h;
CLOSE ALL;
-- a rolled back savepoint takes its cursors along
BEGIN;
DECLARE c CURSOR FOR SELECT name FROM meta WHERE pid = 650;
SAVEPOINT s;
DECLARE d CURSOR FOR SELECT name FROM meta WHERE pid = 650;
ROLLBACK TO s;
FETCH 1 FROM c;
FETCH 1 FROM d;
ROLLBACK;
-- psql's own cursors
\set FETCH_COUNT 2
SELECT name FROM meta WHERE pid = 650 AND name <> '_attr_';
SELECT nosuch FROM meta WHERE pid = 650;
\set FETCH_COUNT 0
