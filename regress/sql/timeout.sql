-- A transaction lives five seconds; statement_timeout ends statements.
\set VERBOSITY verbose
\set QUIET off
INSERT INTO meta (pid, name, id, type) VALUES (0, 'timeout', 990, 'd');
BEGIN;
INSERT INTO meta (pid, name) VALUES (990, 'x');
SELECT pg_sleep(5.1);
SELECT name FROM meta WHERE pid = 990 AND name = 'x';
SELECT 1;
ROLLBACK;
BEGIN;
INSERT INTO meta (pid, name) VALUES (990, 'x');
SAVEPOINT s;
SELECT pg_sleep(5.1);
COMMIT;
COMMIT;
SELECT name FROM meta WHERE pid = 990 AND name = 'x';
SET statement_timeout = 1000;
SELECT pg_sleep(60);
BEGIN;
SELECT pg_sleep(60);
SELECT 1;
ROLLBACK;
SET statement_timeout = 0;
SELECT 1;
