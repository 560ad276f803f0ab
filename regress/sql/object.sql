-- object: put, get, list, count, set, remove, remove_range in flat buckets.
\set VERBOSITY verbose
\set QUIET off
SET datestyle = 'ISO, MDY'; SET timezone = 'UTC';
INSERT INTO object (bucket, key, size, etag, mtime, attr) VALUES ('b', 'k/1', 10, 'e1', '2024-01-01', '\x01') RETURNING bucket, key, size, etag, mtime, expires_at, attr;
INSERT INTO object (bucket, key, size) VALUES ('b', 'k/1', 11);
INSERT INTO object (bucket, key, size) VALUES ('b', 'k/1', 11) ON CONFLICT DO NOTHING;
INSERT INTO object (bucket, key, size, etag) VALUES ('b', 'k/1', 12, 'e2') ON CONFLICT (bucket, key) DO UPDATE SET size = excluded.size, etag = excluded.etag RETURNING size, etag;
INSERT INTO object (bucket, key, size) VALUES ('b', 'k/2', 2), ('b', 'k/3', 3), ('b', 'l', 4), ('b2', 'k/1', 5);
SELECT key, size, etag FROM object WHERE bucket = 'b' AND key = 'k/1';
SELECT key, size FROM object WHERE bucket = 'b' AND key IN ('k/3', 'nosuch', 'k/2') ORDER BY key;
SELECT key, size FROM object WHERE bucket = 'b';
SELECT key FROM object WHERE bucket = 'b' AND key LIKE 'k/%' ORDER BY key DESC LIMIT 2;
SELECT key FROM object WHERE bucket = 'b' AND key > 'k/1' AND key < 'l' ORDER BY key;
SELECT bucket, key FROM object WHERE (bucket, key) > ('b', 'k/3') ORDER BY bucket, key;
SELECT count(*) FROM object WHERE bucket = 'b' AND key LIKE 'k/%';
SELECT count(*) FROM object WHERE bucket = 'nosuch';
UPDATE object SET etag = 'e3', expires_at = '2100-01-01' WHERE bucket = 'b' AND key = 'k/1' RETURNING etag, expires_at;
SELECT seq AS s FROM object WHERE bucket = 'b' AND key = 'k/2' \gset
UPDATE object SET size = 22 WHERE bucket = 'b' AND key = 'k/2' AND seq = :s;
UPDATE object SET size = 23 WHERE bucket = 'b' AND key = 'k/2' AND seq = :s;
UPDATE object SET size = 23 WHERE bucket = 'b' AND key = 'nosuch';
DELETE FROM object WHERE bucket = 'b' AND key = 'k/1' RETURNING key;
DELETE FROM object WHERE bucket = 'b' AND key IN ('k/1', 'l') RETURNING key;
DELETE FROM object WHERE bucket = 'b' AND key >= 'k/' AND key < 'k0';
SELECT count(*) FROM object WHERE bucket = 'b';
DELETE FROM object WHERE bucket = 'b2' AND key LIKE 'k%';
INSERT INTO object (bucket, key, expires_at) VALUES ('b', 'old', '2000-01-01');
SELECT key FROM object WHERE bucket = 'b';
-- errors
INSERT INTO object (bucket) VALUES ('b');
INSERT INTO object (bucket, key) VALUES ('', 'k');
INSERT INTO object (bucket, key) VALUES ('b', '');
INSERT INTO object (bucket, key, nosuch) VALUES ('b', 'k', 1);
INSERT INTO object (bucket, key, size) VALUES ('b', 'k', 'x');
INSERT INTO object (bucket, key, seq) VALUES ('b', 'k', 1);
INSERT INTO object (bucket, key) VALUES ('b', 'k') ON CONFLICT (key) DO NOTHING;
UPDATE object SET key = 'x' WHERE bucket = 'b' AND key = 'k';
UPDATE object SET size = 1 WHERE bucket = 'b';
SELECT key FROM object WHERE key = 'k';
DELETE FROM object WHERE bucket = 'b';
SELECT * FROM list_objects('b', '', '/', '', 10);
SELECT * FROM lifecycle;
INSERT INTO lifecycle (bucket, prefix, expire_after) VALUES ('b', 'tmp/', '1 day');
