-- -D base=DIRECTORY -D count=NAMES that create.sql made with one client
\set n0 1000000000000000 + random(1, :count)
\set n1 1000000000000000 + random(1, :count)
\set n2 1000000000000000 + random(1, :count)
\set n3 1000000000000000 + random(1, :count)
\set n4 1000000000000000 + random(1, :count)
\set n5 1000000000000000 + random(1, :count)
\set n6 1000000000000000 + random(1, :count)
\set n7 1000000000000000 + random(1, :count)
\startpipeline
SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = :base AND name = :n0;
SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = :base AND name = :n1;
SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = :base AND name = :n2;
SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = :base AND name = :n3;
SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = :base AND name = :n4;
SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = :base AND name = :n5;
SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = :base AND name = :n6;
SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = :base AND name = :n7;
\endpipeline
