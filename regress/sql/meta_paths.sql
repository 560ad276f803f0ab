-- resolve, make_path, list_attr, move, link, usage, remove_tree.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO meta (pid, name, id, type) VALUES (0, 'paths', 400, 'd');
-- make_path gives the last id, and the same again
SELECT make_path('/paths/a/b/c') AS first_id \gset
SELECT make_path('/paths/a/b/c') AS second_id \gset
SELECT :first_id > 0 AS drawn, :first_id = :second_id AS same;
SELECT make_path('/paths/a//b/./c/') AS third_id \gset
SELECT make_path('/') AS root;
SELECT make_path('');
SELECT make_path('paths/relative') AS relative_id \gset
SELECT :second_id = :third_id AS same;
SELECT name FROM resolve('/paths/relative');
SELECT make_path(NULL);
SELECT make_path(5);
SELECT make_path();
-- resolve
SELECT name, type FROM resolve('/paths/a/b/c');
SELECT name, type, num_children FROM resolve(400, 'a/b');
SELECT name FROM resolve('/paths/a/nosuch/c');
SELECT name, type FROM resolve('/');
SELECT name, id, num_children FROM resolve('/paths');
SELECT id AS resolved_id FROM resolve('/paths/a/b/c') \gset
SELECT :first_id = :resolved_id AS same;
SELECT name FROM resolve('/paths/a/b/c') WHERE type = 'd';
SELECT nosuch FROM resolve('/paths');
SELECT name FROM resolve('/paths', 'x');
SELECT name FROM resolve(NULL);
SELECT name FROM resolve(424242, 'x');
SELECT name FROM resolve('');
INSERT INTO meta (pid, name, id, uid, size) VALUES (400, 'file', 4001, 42, 100);
SELECT name, type, size FROM resolve('/paths/file');
SELECT name FROM resolve('/paths/file/x');
SELECT make_path('/paths/file/x');
-- list_attr: directories with their own attributes
SELECT name, type, uid, size, num_children FROM list_attr(400, '', 10);
SELECT name, type FROM list_attr(400, 'a', 1);
SELECT name, type FROM list_attr(400, 'z', 1);
SELECT name, type FROM list_attr(424242, '', 10);
SELECT name FROM list_attr(400, '', -1);
SELECT name FROM list_attr(400, '');
SELECT name FROM list_attr(400, '', 0);
-- link
SELECT link(400, 'file', 400, 'file2');
SELECT name, id, type FROM meta WHERE pid = 400 AND name IN ('file', 'file2') ORDER BY name;
SELECT nlink, size, uid FROM meta WHERE pid = 4001 AND name = '_attr_';
SELECT name, nlink, size FROM list_attr(400, 'file', 10);
SELECT name, nlink, size, uid FROM resolve('/paths/file2');
UPDATE meta SET size = 200 WHERE pid = 4001 AND name = '_attr_' RETURNING size, nlink;
SELECT name, size FROM list_attr(400, 'a', 10);
SELECT link(400, 'file', 400, 'file2');
SELECT link(400, 'a', 400, 'dirlink');
SELECT link(400, 'nosuch', 400, 'x');
SELECT link(400, 'file', 424242, 'x');
SELECT link(400, 'file', 400, '_attr_');
SELECT link(400, 'file', 400, 'a/b');
SELECT link(400, '_attr_', 400, 'x');
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
SELECT move(400, 'm2', 400, 'm2', 'replace');
SELECT move(400, 'm2', 400, 'm2', 'noreplace');
SELECT move(400, 'nosuch', 400, 'x', 'replace');
SELECT move(400, 'm2', 400, 'a', 'replace');
SELECT move(400, 'm2', 400, 'nosuch', 'exchange');
SELECT move(400, 'm2', 424242, 'x', 'noreplace');
SELECT move(0, 'paths', 400, 'loop', 'replace');
SELECT move(0, 'paths', :first_id, 'loop', 'noreplace');
SELECT move(400, 'm2', 400, 'm3', 'sideways');
SELECT move(400, '_attr_', 400, 'm3', 'noreplace');
SELECT move(400, 'm2', 400, '', 'noreplace');
SELECT move(400, 'm2', 400, 'm3');
SELECT move(400, 'm2', 400, 'm3', NULL);
SELECT move(400, 'm2', 400, 'm3', 5);
-- a directory replaces an empty directory, not a full one, not a file
INSERT INTO meta (pid, name, id, type) VALUES (400, 'd1', 410, 'd'), (400, 'd2', 411, 'd'), (411, 'in', 412, 'd');
SELECT move(400, 'd1', 400, 'd2', 'replace');
SELECT move(400, 'd1', 400, 'm3', 'replace');
SELECT move(400, 'm3', 400, 'd1', 'replace');
SELECT move(400, 'd2', 400, 'd1', 'replace');
SELECT name, id FROM meta WHERE pid = 400 AND name LIKE 'd%' ORDER BY name;
SELECT count(*) FROM meta WHERE pid = 410;
SELECT move(400, 'd1', 412, 'x', 'noreplace');
SELECT move(411, 'in', 400, 'm3', 'exchange');
SELECT name, type, id FROM list_attr(400, 'c', 2);
SELECT name, type, id FROM meta WHERE pid = 411 AND name <> '_attr_';
SELECT parent FROM meta WHERE pid = 412 AND name = '_attr_';
SELECT num_children FROM meta WHERE pid = 400 AND name = '_attr_';
-- usage: all that is below
SELECT files, directories, bytes FROM usage('/paths');
SELECT files, directories, bytes FROM usage('/paths/a');
SELECT files, directories, bytes FROM usage('/paths/nosuch');
SELECT nosuch FROM usage('/paths');
SELECT files FROM usage('/paths', 5);
-- remove_tree: detached at once
SELECT remove_tree(400, 'a') AS job \gset
SELECT :job > 0 AS has_job;
SELECT name FROM resolve('/paths/a/b/c');
SELECT name FROM meta WHERE pid = 400 AND name = 'a';
SELECT remove_tree(400, 'nosuch');
SELECT remove_tree(400, '_attr_');
SELECT num_children FROM meta WHERE pid = 400 AND name = '_attr_';
-- in a transaction
BEGIN;
SELECT make_path('/paths/t/u') AS t \gset
SELECT name, num_children FROM resolve('/paths/t');
SELECT link(400, 'd1', 400, 'l');
ROLLBACK;
SELECT name FROM resolve('/paths/t');
