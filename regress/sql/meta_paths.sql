-- resolve, make_path, list_attr, move, link, usage.
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'paths', 400, 'd');
SELECT make_path('/paths/a/b/c') > 0 AS made;
SELECT make_path('/paths/a/b/c') = (make_path('/paths/a/b/c')) AS same;
SELECT name, type FROM resolve('/paths/a/b/c');
SELECT name, type, num_children FROM resolve(400, 'a/b');
SELECT name FROM resolve('/paths/a/nosuch/c');
SELECT name, type FROM resolve('/');
SELECT num_children FROM resolve('/paths');
INSERT INTO meta (pid, name, id, uid, size) VALUES (400, 'file', 4001, 42, 100);
SELECT name FROM resolve('/paths/file/x');
SELECT make_path('/paths/file/x');
SELECT name, type, uid, size, num_children FROM list_attr(400, '', 10);
SELECT name, type FROM list_attr(400, 'a', 1);
-- link
SELECT link(400, 'file', 400, 'file2');
SELECT name, id, type FROM meta WHERE pid = 400 AND name IN ('file', 'file2') ORDER BY name;
SELECT nlink, size, uid FROM meta WHERE pid = 4001 AND name = '_attr_';
SELECT name, nlink, size FROM list_attr(400, 'file', 10);
SELECT link(400, 'file', 400, 'file2');
SELECT link(400, 'a', 400, 'dirlink');
SELECT link(400, 'nosuch', 400, 'x');
DELETE FROM meta WHERE pid = 400 AND name = 'file';
SELECT nlink FROM meta WHERE pid = 4001 AND name = '_attr_';
DELETE FROM meta WHERE pid = 400 AND name = 'file2';
SELECT count(*) FROM meta WHERE pid = 4001;
-- move
INSERT INTO meta (pid, name, id) VALUES (400, 'm1', 4011), (400, 'm2', 4012);
SELECT move(400, 'm1', 400, 'm2', 'noreplace');
SELECT move(400, 'm1', 400, 'm2', 'exchange');
SELECT name, id FROM meta WHERE pid = 400 AND name LIKE 'm%' ORDER BY name;
SELECT move(400, 'm1', 400, 'm2', 'replace');
SELECT name, id FROM meta WHERE pid = 400 AND name LIKE 'm%' ORDER BY name;
SELECT move(400, 'nosuch', 400, 'x', 'replace');
SELECT move(400, 'm2', 400, 'a', 'replace');
SELECT move(0, 'paths', 400, 'loop', 'replace');
SELECT move(400, 'm2', 400, 'm3', 'sideways');
SELECT num_children FROM meta WHERE pid = 400 AND name = '_attr_';
-- usage
SELECT files, directories, bytes FROM usage('/paths');
