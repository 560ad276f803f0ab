-- COPY in text form, in and out.
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'copy', 800, 'd');
COPY meta (pid, name, id, size) FROM STDIN;
800	c1	8001	1
800	c2	8002	2
800	c\\3	8003	3
\.
COPY meta (pid, name, id, size) FROM STDIN;
800	c4	8004	1
800	c1	8001	1
\.
COPY meta (pid, name, size) FROM STDIN;
800	c5	many
\.
COPY meta (pid, name, size) FROM STDIN;
800	c5
\.
COPY meta (pid, name, nosuch) FROM STDIN;
COPY nosuch FROM STDIN;
COPY kv (key, value) FROM STDIN;
ck1	\\x0102
ck2	plain
\.
SELECT key, value FROM kv WHERE key LIKE 'ck%' ORDER BY key;
SELECT name, size FROM meta WHERE pid = 800 AND name <> '_attr_' ORDER BY name;
SELECT num_children FROM meta WHERE pid = 800 AND name = '_attr_';
COPY (SELECT name, size FROM meta WHERE pid = 800 AND name <> '_attr_' ORDER BY name) TO STDOUT;
BEGIN;
COPY meta (pid, name) FROM STDIN;
800	t1
800	t2
\.
ROLLBACK;
SELECT count(*) FROM meta WHERE pid = 800 AND name LIKE 't%';
