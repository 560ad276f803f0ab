-- What psql's \ commands and tools ask of the catalogues.
\set VERBOSITY verbose
\set QUIET off
\d
\d meta
\d+ kv
\d metadb.patterns
\d nosuch
\dt
\di
\dn
\dv
\ds
\dm
\df
\dT
\du
\dp meta
\dx
\l metadb
\dconfig timezone
SELECT relname, relkind, relnatts FROM pg_class WHERE relname IN ('meta', 'kv', 'kv_pkey') ORDER BY relname;
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relname = 'quota' AND a.attnum > 0 ORDER BY a.attnum;
SELECT 'meta'::regclass, 'bigint'::regtype;
SELECT 'nosuch'::regclass;
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name;
SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 'kv' ORDER BY ordinal_position;
SELECT schemaname, tablename, tableowner FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename;
SELECT datname FROM pg_database ORDER BY datname;
SELECT typname FROM pg_type WHERE oid = 20;
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind = 'r';
SELECT n.nspname, count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = 'public' GROUP BY n.nspname;
SELECT name, setting FROM pg_settings WHERE name IN ('server_encoding', 'max_identifier_length') ORDER BY name;
SELECT name, setting, context FROM pg_settings WHERE name = 'max_connections';
SELECT name FROM pg_settings GROUP BY name HAVING count(*) > 1;
SELECT nosuch FROM pg_class;
SELECT * FROM pg_nosuch;
SELECT relname FROM pg_class, meta;
SELECT name FROM metadb.nosuch;
SELECT metadb.nosuch();
SELECT node FROM metadb.nodes;
SELECT "table" FROM metadb.shards ORDER BY 1;
INSERT INTO pg_class (relname) VALUES ('x');
UPDATE metadb.settings SET value = 1;
DELETE FROM metadb.patterns;
