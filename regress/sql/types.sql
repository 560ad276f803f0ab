-- Text forms of every column type, in and out.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'types', 900, 'd');
-- bigint
INSERT INTO meta (pid, name, id) VALUES (900, 'i1', 9223372036854775807), (900, 'i2', -9223372036854775808), (900, 'i3', '  42  '), (900, 'i4', -0), (900, 'i5', 1e3) RETURNING name, id;
INSERT INTO meta (pid, name, id) VALUES (900, 'x', '');
INSERT INTO meta (pid, name, id) VALUES (900, 'x', '1e3');
INSERT INTO meta (pid, name, id) VALUES (900, 'x', '0x10');
INSERT INTO meta (pid, name, id) VALUES (900, 'x', '1_000');
INSERT INTO meta (pid, name, id) VALUES (900, 'x', '9223372036854775808');
INSERT INTO meta (pid, name, id) VALUES (900, 'x', 9223372036854775808);
INSERT INTO meta (pid, name, id) VALUES (900, 'x', 1.5::numeric) RETURNING id;
INSERT INTO meta (pid, name, id) VALUES (900, 'y', 'NaN'::numeric);
INSERT INTO meta (pid, name, id) VALUES (900, 'y', 2.5::float8) RETURNING id;
INSERT INTO meta (pid, name, id) VALUES (900, 'z', 1e30::float8);
-- integer and smallint
INSERT INTO meta (pid, name, mode) VALUES (900, 'm1', '0'), (900, 'm2', 4095) RETURNING name, mode;
INSERT INTO meta (pid, name, mode) VALUES (900, 'x1', 2147483648);
INSERT INTO meta (pid, name, mode) VALUES (900, 'x1', '2147483648');
INSERT INTO meta (pid, name, class) VALUES (900, 's1', 32767), (900, 's2', '-32768') RETURNING name, class;
INSERT INTO meta (pid, name, class) VALUES (900, 'x1', 32768);
INSERT INTO meta (pid, name, class) VALUES (900, 'x1', '32768');
INSERT INTO meta (pid, name, class) VALUES (900, 'x1', 'a');
-- text: bytes order, unicode, quotes
INSERT INTO meta (pid, name) VALUES (900, 'Zebra'), (900, 'apple'), (900, 'Äpfel'), (900, '日本語'), (900, '🙂'), (900, 'it''s'), (900, E'tab\there'), (900, E'back\\slash'), (900, ' space '), (900, '%');
SELECT name FROM meta WHERE pid = 900 AND name > 't' ORDER BY name;
SELECT name FROM meta WHERE pid = 900 AND name < 'a' ORDER BY name;
SELECT name FROM meta WHERE pid = 900 AND name LIKE '日%';
SELECT name FROM meta WHERE pid = 900 AND name IN ('🙂', 'Äpfel') ORDER BY name;
-- "char"
INSERT INTO meta (pid, name, type) VALUES (900, 'c1', 'fxyz'), (900, 'c2', 'l'::"char"), (900, 'c3', 's'::text) RETURNING name, type;
INSERT INTO meta (pid, name, type) VALUES (900, 'c4', 5);
INSERT INTO meta (pid, name, type) VALUES (900, 'c4', '');
-- bytea
INSERT INTO meta (pid, name, attr) VALUES (900, 'b1', '\x'), (900, 'b2', '\xDEADbeef'), (900, 'b3', 'plain'), (900, 'b4', '\001\\x'), (900, 'b5', '\x 01 02 ') RETURNING name, attr;
SET bytea_output = 'escape';
SELECT name, attr FROM meta WHERE pid = 900 AND name IN ('b1', 'b2', 'b3', 'b4') ORDER BY name;
RESET bytea_output;
INSERT INTO meta (pid, name, attr) VALUES (900, 'x2', '\xzz');
INSERT INTO meta (pid, name, attr) VALUES (900, 'x2', '\x123');
INSERT INTO meta (pid, name, attr) VALUES (900, 'x2', '\q');
INSERT INTO meta (pid, name, attr) VALUES (900, 'x2', 5);
-- timestamptz, in
INSERT INTO meta (pid, name, mtime) VALUES
  (900, 't01', '2024-02-29 12:34:56.789012+00'), (900, 't02', '2024-02-29T12:34:56Z'), (900, 't03', '20240229T123456'),
  (900, 't04', 'Feb 29 2024 12:34'), (900, 't05', '2024-02-29'), (900, 't06', '2024-02-29 23:59:60'), (900, 't07', '2024-02-29 24:00'),
  (900, 't08', '1999-12-31 23:00:00-08'), (900, 't09', '2024-07-01 12:00 Europe/Berlin'), (900, 't10', '2024-07-01 12:00 PST'),
  (900, 't11', 'epoch'), (900, 't12', 'infinity'), (900, 't13', '-infinity'), (900, 't14', '0044-03-15 BC'), (900, 't15', '12/25/2024'),
  (900, 't16', '1-feb-2024 3:04 pm'), (900, 't17', '20240229123456'), (900, 't18', '1.5.2024'), (900, 't19', '294276-12-31 23:59:59.999999'), (900, 't20', '4713-01-01 BC');
SELECT name, mtime FROM meta WHERE pid = 900 AND name LIKE 't%' AND name < 'tab' ORDER BY name;
SET timezone = 'America/New_York'; SET datestyle = 'Postgres, DMY';
SELECT name, mtime FROM meta WHERE pid = 900 AND name LIKE 't%' AND name < 'tab' ORDER BY name;
SET datestyle = 'SQL, DMY';
SELECT name, mtime FROM meta WHERE pid = 900 AND name IN ('t01', 't05', 't09') ORDER BY name;
SELECT '2024-03-04 05:06:07+00'::timestamptz;
SET datestyle = 'German';
SELECT name, mtime FROM meta WHERE pid = 900 AND name IN ('t01', 't05', 't09') ORDER BY name;
SET datestyle = 'ISO, DMY'; SET timezone = '+05:30';
INSERT INTO meta (pid, name, mtime) VALUES (900, 't21', '02/03/2024') RETURNING mtime;
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, mtime) VALUES (900, 'x3', '');
INSERT INTO meta (pid, name, mtime) VALUES (900, 'x3', 'nonsense');
INSERT INTO meta (pid, name, mtime) VALUES (900, 'x3', '2024-13-01');
INSERT INTO meta (pid, name, mtime) VALUES (900, 'x3', '2023-02-29');
INSERT INTO meta (pid, name, mtime) VALUES (900, 'x3', '2024-01-01 25:00');
INSERT INTO meta (pid, name, mtime) VALUES (900, 'x3', '2024-01-01 12:00 Nowhere/City');
INSERT INTO meta (pid, name, mtime) VALUES (900, 'x3', '294277-01-01');
INSERT INTO meta (pid, name, mtime) VALUES (900, 'x3', '4714-01-01 BC');
INSERT INTO meta (pid, name, mtime) VALUES (900, 'x3', 5);
-- comparing with every type
SELECT name FROM meta WHERE pid = 900 AND mtime = 'infinity';
SELECT name FROM meta WHERE pid = 900 AND mtime < '1970-01-02' ORDER BY name;
SELECT name FROM meta WHERE pid = 900 AND attr = '\xdeadbeef';
SELECT name FROM meta WHERE pid = 900 AND class > 0;
SELECT name FROM meta WHERE pid = 900 AND id < 0;
SELECT name FROM meta WHERE pid = 900 AND type = 'l';
SELECT name FROM meta WHERE pid = 900 AND type IN ('l', 's') ORDER BY name;
