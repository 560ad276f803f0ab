-- meta.lookup, lookup_many, list, count, scan.
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'read', 200, 'd');
INSERT INTO meta (pid, name, id, size) VALUES (200, 'a1', 2001, 1), (200, 'a2', 2002, 2), (200, 'a3', 2003, 3), (200, 'b1', 2004, 4), (200, 'b2', 2005, 5), (200, 'B1', 2006, 6), (200, 'c%x', 2007, 7), (200, 'c_x', 2008, 8);
INSERT INTO meta (pid, name, id, type) VALUES (200, 'dir', 201, 'd');
-- lookup
SELECT id, size FROM meta WHERE pid = 200 AND name = 'a1';
SELECT size, id, size AS again, name FROM meta WHERE name = 'a1' AND pid = 200;
SELECT m.id, m.name FROM meta m WHERE m.pid = 200 AND 'a2' = m.name;
SELECT public.meta.id FROM public.meta WHERE pid = 200::bigint AND name = 'a3'::text;
SELECT id FROM meta WHERE pid = 200 AND name = 'nosuch';
SELECT id FROM meta WHERE pid = 200 AND name = NULL;
SELECT count(*) FROM meta WHERE pid = 200 AND name = 'a1';
SELECT count(*) AS n FROM meta WHERE pid = 200 AND name = 'nosuch';
SELECT name FROM meta WHERE pid = 200 AND name = 'a1' AND type = 'd';
-- many
SELECT name, id FROM meta WHERE pid = 200 AND name IN ('b2', 'nosuch', 'a1') ORDER BY name;
SELECT name, id FROM meta WHERE pid = 200 AND name = ANY('{b1,a2,a2}') ORDER BY name;
SELECT name FROM meta WHERE pid = 200 AND name = ANY(ARRAY['b1', 'a2']) ORDER BY name DESC;
-- list
SELECT name, type FROM meta WHERE pid = 200;
SELECT name FROM meta WHERE pid = 200 AND name <> '_attr_' ORDER BY name;
SELECT name FROM meta WHERE pid = 200 ORDER BY name DESC LIMIT 3;
SELECT name FROM meta WHERE pid = 200 AND name > 'a2' ORDER BY name LIMIT 2;
SELECT name FROM meta WHERE pid = 200 AND name >= 'a2' AND name < 'b2' ORDER BY 1;
SELECT name FROM meta WHERE pid = 200 AND name <= 'a1' ORDER BY name ASC;
SELECT name FROM meta WHERE pid = 200 AND name LIKE 'a%' ORDER BY name;
SELECT name FROM meta WHERE pid = 200 AND name LIKE 'c\%%' ORDER BY name;
SELECT name FROM meta WHERE pid = 200 AND type = 'd' AND name <> '_attr_';
SELECT name FROM meta WHERE pid = 200 LIMIT 0;
SELECT name FROM meta WHERE pid = 200 AND name <> '_attr_' FETCH FIRST 2 ROWS ONLY;
SELECT name FROM meta WHERE pid = 200 ORDER BY name LIMIT ALL;
SELECT name FROM meta WHERE pid = 424242;
SELECT name FROM meta WHERE pid = 200 LIMIT -1;
-- count
SELECT count(*) FROM meta WHERE pid = 200;
SELECT count(*) FROM meta WHERE pid = 200 AND name > 'a' AND name < 'b';
SELECT count(*) AS files FROM meta WHERE pid = 200 AND type = 'f';
-- scan in key order
SELECT pid, name FROM meta WHERE (pid, name) > (200, 'b1') ORDER BY pid, name LIMIT 4;
-- what has no pattern, is unknown, or has the wrong type
SELECT max(size) FROM meta WHERE pid = 200;
SELECT name FROM meta WHERE size = 1;
SELECT name FROM meta WHERE pid = 200 AND name LIKE '%x';
SELECT name FROM meta WHERE pid = 200 ORDER BY size;
SELECT name FROM meta WHERE pid = 200 OR pid = 201;
SELECT a.name FROM meta a, meta b WHERE a.pid = b.pid;
SELECT nosuch FROM meta WHERE pid = 200;
SELECT name FROM meta WHERE nosuch = 200;
SELECT name FROM nosuch WHERE pid = 200;
SELECT nosuch(1);
SELECT name FROM meta WHERE pid = 'x';
SELECT name FROM meta WHERE pid = 99999999999999999999;
SELECT name FROM meta WHERE name = 5 AND pid = 200;
SELEC name FROM meta;
SELECT name FROM meta WHERE pid = ;
