-- Long lists, long names, deep and long statements.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'limits', 950, 'd');
\set rows `seq -s, 1000 | sed -E "s/([0-9]+)/(950, 'n\1')/g"`
INSERT INTO meta (pid, name) VALUES :rows \g
\set rows ''
SELECT num_children FROM meta WHERE pid = 950 AND name = '_attr_';
\set ECHO none
\set names `seq -s, 1 4000 | sed -E "s/([0-9]+)/'n\1'/g"`
SELECT count(*) FROM meta WHERE pid = 950 AND name IN (:names);
\set names `seq -s, 501 4500 | sed -E "s/([0-9]+)/'n\1'/g"`
DELETE FROM meta WHERE pid = 950 AND name IN (:names);
\set names `seq -s, 1 20000 | sed -E "s/([0-9]+)/'n\1'/g"`
SELECT count(*) FROM meta WHERE pid = 950 AND name IN (:names);
\set name255 `printf 'x%.0s' $(seq 255)`
INSERT INTO meta (pid, name) VALUES (950, :'name255');
\set name256 `printf 'x%.0s' $(seq 256)`
INSERT INTO meta (pid, name) VALUES (950, :'name256');
\set attr64k `printf '\\x'; printf '0%.0s' $(seq 131072)`
INSERT INTO meta (pid, name, attr) VALUES (950, 'attr64k', :'attr64k');
\set attr65k `printf '\\x'; printf '0%.0s' $(seq 131074)`
INSERT INTO meta (pid, name, attr) VALUES (950, 'attr65k', :'attr65k');
\set deep `printf '(%.0s' $(seq 20000); printf 1; printf ')%.0s' $(seq 20000)`
SELECT :deep;
SELECT name FROM meta WHERE pid = :deep;
\set deep2 `printf -- '- %.0s' $(seq 20000)`
SELECT :deep2 1;
\set comment `printf '/*%.0s' $(seq 2000); printf '*/%.0s' $(seq 2000)`
SELECT 1 :comment;
\set long `printf 'a%.0s' $(seq 70)`
SELECT 1 AS :long;
SAVEPOINT :long;
\set ECHO all
SELECT name FROM meta WHERE pid = 950 AND name >= 'attr' AND name < 'b';
SELECT num_children FROM meta WHERE pid = 950 AND name = '_attr_';
