-- -D base=DIRECTORY -D count=NAMES that create.sql made with one client
\set n0 1000000000000000 + random(1, :count)
SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = :base AND name = :n0;
