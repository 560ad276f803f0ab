-- quota and secondary_index follow by themselves.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type, uid) VALUES (0, 'quota', 500, 'd', 77);
INSERT INTO meta (pid, name, id, uid, size, fid) VALUES (500, 'q1', 5001, 77, 100, 9001), (500, 'q2', 5002, 77, 50, 9002), (500, 'q3', 5003, 78, 1, NULL);
UPDATE meta SET size = 70 WHERE pid = 500 AND name = 'q2';
UPDATE meta SET uid = 78 WHERE pid = 500 AND name = 'q1';
UPDATE meta SET pid = 500, name = 'q9' WHERE pid = 500 AND name = 'q2';
DELETE FROM meta WHERE pid = 500 AND name = 'q3';
SELECT metadb.wait_for_sinks();
SELECT name, value FROM quota WHERE uid = 77;
SELECT name, value FROM quota WHERE uid = 78;
SELECT value FROM quota WHERE uid = 77 AND name = '#SIZE';
SELECT count(*) FROM quota WHERE uid = 77;
SELECT name, value FROM quota WHERE uid = 424242;
SELECT nosuch FROM quota WHERE uid = 77;
SELECT value FROM quota WHERE value = 1;
SELECT value FROM quota WHERE uid = 'x';
SELECT fid, pid, name, id FROM secondary_index WHERE fid = 9001;
SELECT pid, name FROM secondary_index WHERE fid = 9002;
SELECT pid FROM secondary_index WHERE fid = NULL;
SELECT pid FROM secondary_index WHERE pid = 500;
DELETE FROM meta WHERE pid = 500 AND name = 'q1';
SELECT metadb.wait_for_sinks();
SELECT count(*) FROM secondary_index WHERE fid = 9001;
INSERT INTO quota (uid, name, value) VALUES (1, '#FILE', 1);
UPDATE secondary_index SET id = 1 WHERE fid = 1;
DELETE FROM quota WHERE uid = 77;
UPDATE quota SET value = 0 WHERE uid = 77 AND name = '#SIZE';
DELETE FROM secondary_index WHERE fid = 9001;
COPY secondary_index TO STDOUT WHERE fid = 1;
SELECT * FROM metadb.nosuch_function();
SELECT * FROM metadb.check();
