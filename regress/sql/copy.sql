-- COPY in and out: text, csv; errors; transactions.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'copy', 800, 'd');
COPY meta (pid, name, id, size, attr, mtime) FROM STDIN;
800	c1	8001	1	\\x01	2024-01-01 00:00:00+00
800	c2	8002	2	\N	2024-01-01 00:00:00+00
800	c\\3	8003	3	plain	2024-01-01 00:00:00+00
800	c4\ttab\x41\101	8004	3	\N	2024-01-01 00:00:00+00
\.
SELECT name, id, size, attr, mtime FROM meta WHERE pid = 800 AND name <> '_attr_' ORDER BY name;
SELECT num_children FROM meta WHERE pid = 800 AND name = '_attr_';
-- a directory and what is in it, in one COPY
COPY meta (pid, name, id, type) FROM STDIN WITH (DELIMITER ',');
800,dir,801,d
801,in,8011,f
\.
SELECT name, num_children FROM list_attr(800, 'd', 1);
-- out
COPY (SELECT name, size, attr FROM meta WHERE pid = 800 AND name <> '_attr_' ORDER BY name) TO STDOUT;
COPY (SELECT name, size, attr FROM meta WHERE pid = 800 AND name LIKE 'c%' ORDER BY name) TO STDOUT WITH (FORMAT csv, HEADER);
COPY (SELECT name, attr FROM meta WHERE pid = 800 AND name LIKE 'c%' ORDER BY name) TO STDOUT WITH DELIMITER '|' NULL 'nil';
COPY (SELECT name, attr FROM meta WHERE pid = 800 AND name LIKE 'c%' ORDER BY name) TO STDOUT CSV QUOTE '''' NULL 'c2';
COPY (SELECT count(*) FROM meta WHERE pid = 800) TO STDOUT;
COPY (SELECT name, handler FROM metadb.patterns WHERE name = 'kv.get') TO STDOUT;
COPY (SELECT 1, 'x', NULL) TO STDOUT;
COPY (VALUES (1, 'x'), (2, 'y')) TO STDOUT;
-- csv in
COPY meta (pid, name, attr) FROM STDIN CSV NULL 'nil' HEADER;
pid,name,attr
800,csv1,nil
800,"csv2","nil"
800,"csv ""3"", x",
\.
SELECT name, attr FROM meta WHERE pid = 800 AND name LIKE 'csv%';
COPY meta (pid, name) FROM STDIN (FORMAT csv, DELIMITER '|');
800|pipe
\.
-- errors: the whole COPY is undone
COPY meta (pid, name, id) FROM STDIN;
800	d1	1
800	c1	2
\.
COPY meta (pid, name, size) FROM STDIN;
800	d1	1
800	d2	many
\.
COPY meta (pid, name, size) FROM STDIN;
800	d1
\.
COPY meta (pid, name, size) FROM STDIN;
800	d1	1	2
\.
COPY meta (pid, name, size) FROM STDIN;
800	d1	

\.
COPY meta (pid, name, size) FROM STDIN;
800	\N	1
\.
COPY meta (pid, name, size) FROM STDIN;
800	d1	99999999999999999999
\.
COPY meta (pid, name, mtime) FROM STDIN;
800	d1	nonsense
\.
COPY meta (pid, name) FROM STDIN;
424242	d1
\.
COPY meta (pid, name) FROM STDIN;
800	a/b
\.
COPY meta (pid, name) FROM STDIN CSV;
800,"open
\.
COPY meta (pid, name, nosuch) FROM STDIN;
\.
COPY meta (pid, pid) FROM STDIN;
\.
COPY meta (pid, name, seq) FROM STDIN;
800	d1	5
\.
COPY nosuch FROM STDIN;
\.
COPY nosuch TO STDOUT;
COPY meta (pid, name) FROM STDIN (FORMAT nosuch);
\.
COPY meta (pid, name) FROM STDIN (NOSUCH 1);
\.
COPY meta (pid, name) FROM STDIN (DELIMITER 'ab');
\.
COPY meta (pid, name) FROM STDIN (FORMAT text, FORMAT csv);
\.
COPY meta (pid, name) FROM STDIN (FORMAT text, QUOTE '"');
\.
COPY meta FROM '/tmp/nosuchfile';
COPY meta TO '/tmp/nosuchfile';
COPY meta FROM PROGRAM 'true';
COPY meta (pid, name) FROM STDIN WHERE pid = 1;
\.
COPY quota FROM STDIN;
\.
COPY (INSERT INTO kv (key) VALUES ('cp') RETURNING key) TO STDOUT;
COPY (SELECT nosuch FROM meta) TO STDOUT;
COPY (SELECT max(size) FROM meta WHERE pid = 800) TO STDOUT;
COPY meta TO STDOUT (FORMAT binary, HEADER);
SELECT count(*) FROM meta WHERE pid = 800 AND name LIKE 'd1%';
-- kv and object
COPY kv (key, value) FROM STDIN;
ck1	\\x0102
ck2	plain
ck3	\N
\.
COPY (SELECT key, value FROM kv WHERE key LIKE 'ck%') TO STDOUT;
COPY kv (key, value) FROM STDIN;
ck4	\\x0
\.
COPY object (bucket, key, size) FROM STDIN CSV;
cb,k1,1
cb,k2,2
\.
COPY (SELECT bucket, key, size FROM object WHERE bucket = 'cb') TO STDOUT CSV;
\copy kv (key, value) from program 'printf "ck5\tv1\n"'
\copy (select key, value from kv where key = 'ck5') to stdout
-- in transactions
BEGIN;
COPY meta (pid, name) FROM STDIN;
800	t1
800	t2
\.
SELECT name FROM meta WHERE pid = 800 AND name LIKE 't%';
ROLLBACK;
SELECT count(*) FROM meta WHERE pid = 800 AND name LIKE 't%';
BEGIN;
COPY kv (key) FROM STDIN;
ck1
\.
SELECT 1;
ROLLBACK;
COPY kv (key) FROM STDIN\; SELECT 1 AS one;
ck6
\.
