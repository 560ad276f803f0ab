-- What tools, drivers and ORMs ask of a server's catalogues, one block a question, written anew with the relations,
-- functions and forms of theirs. tests/wire/introspection.py asks metadb and, where it is installed, PostgreSQL 15.
--
-- `== name` begins a block. Both must answer with the same columns and types. `== name rows`: with the same rows as well;
-- those ask only about what both have. `== name only`: metadb alone is asked.

== pgadmin.version
SELECT version();

== pgadmin.connection
SELECT db.oid AS did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding,
  has_database_privilege(db.oid, 'CREATE') AS cancreate, datistemplate
FROM pg_catalog.pg_database db WHERE db.datname = current_database();

== pgadmin.role
SELECT roles.oid AS id, roles.rolname AS name, roles.rolsuper AS is_superuser,
  CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END AS can_create_role,
  CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END AS can_create_db,
  CASE WHEN 'pg_signal_backend' = ANY (ARRAY(WITH RECURSIVE cte AS (
    SELECT pg_roles.oid, pg_roles.rolname FROM pg_catalog.pg_roles WHERE pg_roles.oid = roles.oid
    UNION ALL
    SELECT m.roleid, pgr.rolname FROM cte cte_1
      JOIN pg_catalog.pg_auth_members m ON m.member = cte_1.oid
      JOIN pg_catalog.pg_roles pgr ON pgr.oid = m.roleid)
    SELECT rolname FROM cte)) THEN true ELSE false END AS can_signal_backend
FROM pg_catalog.pg_roles AS roles WHERE rolname = current_user;

== pgadmin.databases
SELECT db.oid AS did, db.datname AS name, ta.spcname AS spcname, db.datallowconn, db.datistemplate AS is_template,
  has_database_privilege(db.oid, 'CREATE') AS cancreate, datdba AS owner, descr.description
FROM pg_catalog.pg_database db
  LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON db.dattablespace = ta.oid
  LEFT OUTER JOIN pg_catalog.pg_shdescription descr ON (db.oid = descr.objoid AND descr.classoid = 'pg_database'::regclass)
WHERE db.oid > 0::OID ORDER BY datname;

== pgadmin.schemas
SELECT nsp.oid, nsp.nspname AS name, has_schema_privilege(nsp.oid, 'CREATE') AS can_create,
  has_schema_privilege(nsp.oid, 'USAGE') AS has_usage, des.description
FROM pg_catalog.pg_namespace nsp
  LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = nsp.oid AND des.classoid = 'pg_namespace'::regclass)
WHERE nspname NOT LIKE E'pg\\_%' AND NOT (
  (nsp.nspname = 'pg_catalog' AND EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1))
  OR (nsp.nspname = 'information_schema' AND EXISTS (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'tables' AND relnamespace = nsp.oid LIMIT 1)))
ORDER BY nspname;

== pgadmin.tables
SELECT rel.oid, rel.relname AS name,
  (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = FALSE) AS triggercount,
  (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = FALSE AND tgenabled = 'O') AS has_enable_triggers,
  (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned,
  (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid = rel.oid LIMIT 1) AS is_inherits, des.description
FROM pg_catalog.pg_class rel
  LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = rel.oid AND des.objsubid = 0 AND des.classoid = 'pg_class'::regclass)
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = 2200::oid AND NOT rel.relispartition
ORDER BY rel.relname;

== pgadmin.table_properties
SELECT rel.oid, rel.relname AS name, rel.reltablespace AS spcoid, rel.relacl AS relacl_str,
  (CASE WHEN length(spc.spcname::text) > 0 OR rel.relkind = 'p' THEN spc.spcname ELSE (SELECT sp.spcname
    FROM pg_catalog.pg_database dtb JOIN pg_catalog.pg_tablespace sp ON dtb.dattablespace = sp.oid
    WHERE dtb.datname = current_database()) END) AS spcname,
  rel.relkind, pg_catalog.pg_get_userbyid(rel.relowner) AS relowner, rel.relhastriggers, rel.relhassubclass,
  rel.reltuples::bigint, des.description, con.conname, con.conkey,
  EXISTS (SELECT 1 FROM pg_catalog.pg_trigger JOIN pg_catalog.pg_proc pt ON pt.oid = tgfoid AND pt.proname = 'logtrigger'
    WHERE tgrelid = rel.oid) AS isrepl,
  substring(array_to_string(rel.reloptions, ',') FROM 'fillfactor=([0-9]*)') AS fillfactor,
  (substring(array_to_string(rel.reloptions, ',') FROM 'autovacuum_enabled=([a-z|0-9]*)'))::BOOL AS autovacuum_enabled,
  array_to_string(rel.reloptions, ',') AS table_vacuum_settings_str,
  (CASE WHEN rel.reltoastrelid = 0 THEN false ELSE true END) AS hastoasttable,
  (CASE WHEN rel.oid <= (SELECT datlastsysoid FROM (SELECT 16383::oid AS datlastsysoid) x) THEN true ELSE false END) AS is_sys_table
FROM pg_catalog.pg_class rel
  LEFT OUTER JOIN pg_catalog.pg_tablespace spc ON spc.oid = rel.reltablespace
  LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = rel.oid AND des.objsubid = 0 AND des.classoid = 'pg_class'::regclass)
  LEFT OUTER JOIN pg_catalog.pg_constraint con ON con.conrelid = rel.oid AND con.contype = 'p'
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = 2200::oid ORDER BY rel.relname;

== pgadmin.columns
SELECT DISTINCT att.attname AS name, att.attnum AS OID, pg_catalog.format_type(ty.oid, NULL) AS datatype, att.attnotnull AS not_null,
  CASE WHEN att.atthasdef OR att.attidentity != '' OR ty.typdefault IS NOT NULL THEN True ELSE False END AS has_default_val,
  des.description, seq.seqtypid
FROM pg_catalog.pg_attribute att
  JOIN pg_catalog.pg_type ty ON ty.oid = atttypid
  JOIN pg_catalog.pg_namespace tn ON tn.oid = ty.typnamespace
  JOIN pg_catalog.pg_class cl ON cl.oid = att.attrelid
  JOIN pg_catalog.pg_namespace na ON na.oid = cl.relnamespace
  LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = ty.typelem
  LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid = att.attrelid AND adnum = att.attnum
  LEFT OUTER JOIN (pg_catalog.pg_depend JOIN pg_catalog.pg_class cs ON classid = 'pg_class'::regclass AND objid = cs.oid AND cs.relkind = 'S')
    ON refobjid = att.attrelid AND refobjsubid = att.attnum
  LEFT OUTER JOIN pg_catalog.pg_namespace ns ON ns.oid = cs.relnamespace
  LEFT OUTER JOIN pg_catalog.pg_index pi ON pi.indrelid = att.attrelid AND indisprimary
  LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = att.attrelid AND des.objsubid = att.attnum AND des.classoid = 'pg_class'::regclass)
  LEFT OUTER JOIN pg_catalog.pg_sequence seq ON cs.oid = seq.seqrelid
WHERE att.attrelid = 'meta'::regclass AND att.attnum > 0 AND att.attisdropped IS FALSE
ORDER BY att.attnum;

== pgadmin.column_properties
SELECT att.attname AS name, att.atttypid, att.attlen, att.attnum, att.attndims, att.atttypmod, att.attacl, att.attnotnull, att.attoptions,
  att.attstattarget, att.attstorage, att.attidentity, pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS defval,
  pg_catalog.format_type(ty.oid, NULL) AS typname, pg_catalog.format_type(ty.oid, att.atttypmod) AS displaytypname,
  pg_catalog.format_type(ty.oid, att.atttypmod) AS cltype,
  CASE WHEN ty.typelem > 0 THEN ty.typelem ELSE ty.oid END AS elemoid,
  (SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = ty.typnamespace) AS typnspname, ty.typstorage AS defaultstorage,
  description, pi.indkey, att.attcompression,
  (SELECT count(1) FROM pg_catalog.pg_type t2 WHERE t2.typname = ty.typname) > 1 AS isdup,
  CASE WHEN length(coll.collname::text) > 0 AND length(nspc.nspname::text) > 0 THEN
    pg_catalog.concat(pg_catalog.quote_ident(nspc.nspname), '.', pg_catalog.quote_ident(coll.collname)) ELSE '' END AS collspcname,
  EXISTS (SELECT 1 FROM pg_catalog.pg_constraint WHERE conrelid = att.attrelid AND contype = 'f' AND att.attnum = ANY (conkey)) AS is_fk,
  (SELECT pg_catalog.array_agg(provider || '=' || label) FROM pg_catalog.pg_seclabels sl1 WHERE sl1.objoid = att.attrelid AND sl1.objsubid = att.attnum) AS seclabels,
  (CASE WHEN (att.attnum < 1) THEN true ElSE false END) AS is_sys_column,
  (CASE WHEN (att.attidentity IN ('a', 'd')) THEN 'i' WHEN (att.attgenerated IN ('s')) THEN 'g' ELSE 'n' END) AS colconstype,
  (CASE WHEN (att.attgenerated IN ('s')) THEN pg_catalog.pg_get_expr(def.adbin, def.adrelid) END) AS genexpr
FROM pg_catalog.pg_attribute att
  JOIN pg_catalog.pg_type ty ON ty.oid = atttypid
  LEFT OUTER JOIN pg_catalog.pg_attrdef def ON adrelid = att.attrelid AND adnum = att.attnum
  LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = att.attrelid AND des.objsubid = att.attnum AND des.classoid = 'pg_class'::regclass)
  LEFT OUTER JOIN pg_catalog.pg_index pi ON pi.indrelid = att.attrelid AND indisprimary
  LEFT OUTER JOIN pg_catalog.pg_collation coll ON att.attcollation = coll.oid
  LEFT OUTER JOIN pg_catalog.pg_namespace nspc ON coll.collnamespace = nspc.oid
WHERE att.attrelid = 'meta'::regclass AND att.attnum > 0 AND att.attisdropped IS FALSE ORDER BY att.attnum;

== pgadmin.indexes
SELECT DISTINCT ON (cls.relname) cls.oid, cls.relname AS name,
  (SELECT CASE WHEN inhparent > 0 THEN true ELSE false END FROM pg_catalog.pg_inherits WHERE cls.oid = inhrelid LIMIT 1) AS is_inherited,
  indnkeyatts, indisclustered
FROM pg_catalog.pg_index idx
  JOIN pg_catalog.pg_class cls ON cls.oid = indexrelid
  JOIN pg_catalog.pg_class tab ON tab.oid = indrelid
  LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON ta.oid = cls.reltablespace
  JOIN pg_catalog.pg_namespace n ON n.oid = tab.relnamespace
  JOIN pg_catalog.pg_am am ON am.oid = cls.relam
  LEFT JOIN pg_catalog.pg_depend dep ON (dep.classid = cls.tableoid AND dep.objid = cls.oid AND dep.refobjsubid = '0'
    AND dep.refclassid = (SELECT oid FROM pg_catalog.pg_class WHERE relname = 'pg_constraint') AND dep.deptype = 'i')
  LEFT OUTER JOIN pg_catalog.pg_constraint con ON (con.tableoid = dep.refclassid AND con.oid = dep.refobjid)
WHERE indrelid = 'meta'::regclass AND conname IS NULL ORDER BY cls.relname;

== pgadmin.activity
SELECT pid, datname, usename, application_name, client_addr,
  pg_catalog.to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS backend_start, state,
  wait_event_type || ': ' || wait_event AS wait_event, pg_catalog.array_to_string(pg_catalog.pg_blocking_pids(pid), ', ') AS blocking_pids,
  query, pg_catalog.to_char(state_change, 'YYYY-MM-DD HH24:MI:SS TZ') AS state_change,
  pg_catalog.to_char(query_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS query_start,
  pg_catalog.to_char(xact_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS xact_start, backend_type,
  CASE WHEN state = 'active' THEN ROUND((extract(epoch from now() - query_start) / 60)::numeric, 2) ELSE 0 END AS active_since
FROM pg_catalog.pg_stat_activity WHERE datname = (SELECT datname FROM pg_catalog.pg_database WHERE datname = current_database()) ORDER BY pid;

== pgadmin.dashboard
SELECT 'session_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data
FROM (SELECT
   (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database()) AS "Total",
   (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active' AND datname = current_database()) AS "Active",
   (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'idle' AND datname = current_database()) AS "Idle") t
UNION ALL
SELECT 'tps_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data
FROM (SELECT
   (SELECT sum(xact_commit) + sum(xact_rollback) FROM pg_catalog.pg_stat_database WHERE datname = current_database()) AS "Transactions",
   (SELECT sum(xact_commit) FROM pg_catalog.pg_stat_database WHERE datname = current_database()) AS "Commits",
   (SELECT sum(xact_rollback) FROM pg_catalog.pg_stat_database WHERE datname = current_database()) AS "Rollbacks") t;

== pgadmin.locks
SELECT pid, locktype, datname, relation::regclass, page, tuple, virtualxid, transactionid, classid::regclass, objid, objsubid,
  virtualtransaction, mode, granted, fastpath
FROM pg_catalog.pg_locks l LEFT OUTER JOIN pg_catalog.pg_database d ON (l.database = d.oid)
WHERE datname = 'nosuch' ORDER BY pid, locktype;

== pgadmin.prepared
SELECT gid, database, owner, transaction, prepared FROM pg_catalog.pg_prepared_xacts ORDER BY gid, database, owner;

== pgadmin.settings
SELECT name, vartype, min_val, max_val, enumvals, unit, setting, source, sourcefile, context, category, short_desc
FROM pg_catalog.pg_settings ORDER BY category, name;

== pgadmin.functions
SELECT pr.oid, CASE WHEN pg_catalog.pg_get_function_identity_arguments(pr.oid) <> '' THEN
    pr.proname || '(' || pg_catalog.pg_get_function_identity_arguments(pr.oid) || ')' ELSE pr.proname::text END AS name,
  lanname, pg_catalog.pg_get_userbyid(proowner) AS funcowner, description
FROM pg_catalog.pg_proc pr
  JOIN pg_catalog.pg_type typ ON typ.oid = prorettype
  JOIN pg_catalog.pg_language lng ON lng.oid = prolang
  LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = pr.oid AND des.classoid = 'pg_proc'::regclass AND des.objsubid = 0)
WHERE pr.prokind IN ('f', 'w') AND pronamespace = 2200::oid AND typname NOT IN ('trigger', 'event_trigger') ORDER BY proname;

== pgadmin.acl
SELECT 'relacl' AS deftype, COALESCE(gt.rolname, 'PUBLIC') AS grantee, g.rolname AS grantor,
  pg_catalog.array_agg(b.privilege_type) AS privileges, pg_catalog.array_agg(b.is_grantable) AS grantable
FROM (SELECT (d).grantee AS grantee, (d).grantor AS grantor, (d).is_grantable AS is_grantable,
    CASE (d).privilege_type WHEN 'DELETE' THEN 'd' WHEN 'INSERT' THEN 'a' WHEN 'SELECT' THEN 'r' WHEN 'UPDATE' THEN 'w' ELSE 'UNKNOWN' END AS privilege_type
  FROM (SELECT pg_catalog.aclexplode(rel.relacl) AS d FROM pg_catalog.pg_class rel WHERE rel.oid = 'meta'::regclass) a) b
  LEFT JOIN pg_catalog.pg_roles g ON (b.grantor = g.oid)
  LEFT JOIN pg_catalog.pg_roles gt ON (b.grantee = gt.oid)
GROUP BY g.rolname, gt.rolname;

== dbeaver.databases
SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate OR db.datname = 'metadb' ORDER BY db.datname;

== dbeaver.schemas
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n
  LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass
ORDER BY nspname;

== dbeaver.types
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name, d.description
FROM pg_catalog.pg_type t
  LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem
  LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
  LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid
WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C');

== dbeaver.roles
SELECT a.oid, a.* FROM pg_catalog.pg_roles a ORDER BY a.rolname;

== dbeaver.tables
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr,
  pg_catalog.pg_get_partkeydef(c.oid) AS partition_key
FROM pg_catalog.pg_class c
  LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c');

== dbeaver.columns
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dsc.description, dep.objid
FROM pg_catalog.pg_attribute a
  INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
  LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
  LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
  LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum AND dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind NOT IN ('i', 'I', 'c') AND c.oid = 'meta'::regclass ORDER BY a.attnum;

== dbeaver.constraints
SELECT c.oid, c.*, t.relname AS tabrelname, rt.relnamespace AS refnamespace, d.description, null AS consrc_copy
FROM pg_catalog.pg_constraint c
  INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid
  LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid
  LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_constraint'::regclass
WHERE c.conrelid = 'meta'::regclass ORDER BY c.oid;

== dbeaver.indexes
SELECT i.*, i.indkey AS keys, c.relname, c.relnamespace, c.relam, c.reltablespace, tc.relname AS tabrelname, dsc.description,
  pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr, pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS expr,
  pg_catalog.pg_relation_size(i.indexrelid) AS index_rel_size, pg_catalog.pg_stat_get_numscans(i.indexrelid) AS index_num_scans
FROM pg_catalog.pg_index i
  INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
  INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid
  LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid
WHERE i.indrelid = 'meta'::regclass ORDER BY tabrelname, c.relname;

== dbeaver.keywords
SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{a,abs,absolute,action}'::text[]);

== dbeaver.settings
SELECT * FROM pg_catalog.pg_settings ORDER BY name;

== dbeaver.sessions
SELECT sa.* FROM pg_catalog.pg_stat_activity sa;

== dbeaver.locks
SELECT locks.pid AS wait_pid, locks.granted, age(now(), act.query_start) AS waited
FROM pg_catalog.pg_locks locks JOIN pg_catalog.pg_stat_activity act ON act.pid = locks.pid WHERE NOT locks.granted;

== dbeaver.stats
SELECT c.oid, pg_catalog.pg_total_relation_size(c.oid) AS total_rel_size, pg_catalog.pg_relation_size(c.oid) AS rel_size
FROM pg_class c WHERE c.relnamespace = 2200;

== dbeaver.user
SELECT current_schema(), session_user, current_user;

== datagrip.startup
SELECT current_database() AS a, current_schemas(false) AS b;

== datagrip.databases
SELECT N.oid::bigint AS id, datname AS name, D.description, datistemplate AS is_template, datallowconn AS allow_connections,
  pg_catalog.pg_get_userbyid(N.datdba) AS "owner"
FROM pg_catalog.pg_database N LEFT JOIN pg_catalog.pg_shdescription D ON N.oid = D.objoid
ORDER BY CASE WHEN datname = pg_catalog.current_database() THEN -1::bigint ELSE N.oid::bigint END;

== datagrip.schemas
SELECT N.oid::bigint AS id, N.xmin AS state_number, nspname AS name, D.description, pg_catalog.pg_get_userbyid(N.nspowner) AS "owner"
FROM pg_catalog.pg_namespace N LEFT JOIN pg_catalog.pg_description D ON N.oid = D.objoid
ORDER BY CASE WHEN nspname = pg_catalog.current_schema() THEN -1::bigint ELSE N.oid::bigint END;

== datagrip.age
SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN 1 ELSE (pg_catalog.txid_current() % (2^32)::bigint)::varchar::bigint END AS current_txid;

== datagrip.tables
SELECT T.relkind AS table_kind, T.relname AS table_name, T.oid AS table_id, T.xmin AS table_state_number, false AS table_with_oids,
  T.reltablespace AS tablespace_id, T.reloptions AS options, T.relpersistence AS persistence,
  (SELECT pg_catalog.array_agg(inhparent::bigint ORDER BY inhseqno)::varchar FROM pg_catalog.pg_inherits WHERE T.oid = inhrelid) AS ancestors,
  (SELECT pg_catalog.array_agg(inhrelid::bigint ORDER BY inhrelid)::varchar FROM pg_catalog.pg_inherits WHERE T.oid = inhparent) AS successors,
  T.relispartition AS is_partition, pg_catalog.pg_get_partkeydef(T.oid) AS partition_key,
  pg_catalog.pg_get_expr(T.relpartbound, T.oid) AS partition_expression, T.relam AS am_id, pg_catalog.pg_get_userbyid(T.relowner) AS "owner"
FROM pg_catalog.pg_class T WHERE relnamespace = 2200::oid AND relkind IN ('r', 'm', 'v', 'f', 'p') ORDER BY table_kind, table_id;

== datagrip.columns
WITH T AS (SELECT DISTINCT T.oid AS table_id, T.relname AS table_name FROM pg_catalog.pg_class T, pg_catalog.pg_attribute A
  WHERE T.relnamespace = 2200::oid AND T.relkind IN ('r', 'm', 'v', 'f', 'p') AND A.attrelid = T.oid)
SELECT T.table_id, C.attnum AS column_position, C.attname AS column_name, C.xmin AS column_state_number, C.atttypmod AS type_mod,
  C.attndims AS dimensions_number, pg_catalog.format_type(C.atttypid, C.atttypmod) AS type_spec, C.atttypid AS type_id,
  C.attnotnull AS mandatory, pg_catalog.pg_get_expr(D.adbin, T.table_id) AS column_default_expression,
  not C.attislocal AS column_is_inherited, C.attfdwoptions AS options, C.attisdropped AS column_is_dropped, C.attidentity AS identity_kind
FROM T JOIN pg_catalog.pg_attribute C ON T.table_id = C.attrelid
  LEFT JOIN pg_catalog.pg_attrdef D ON (C.attrelid, C.attnum) = (D.adrelid, D.adnum)
WHERE attnum > 0 AND T.table_name = 'meta' ORDER BY table_id, attnum;

== datagrip.indices
SELECT tab.oid AS table_id, tab.relkind AS table_kind, ind_stor.relname AS index_name, ind_head.indexrelid AS index_id,
  ind_stor.xmin AS state_number, ind_head.indisunique AS is_unique, ind_head.indisprimary AS is_primary,
  pg_catalog.pg_get_expr(ind_head.indpred, ind_head.indrelid) AS condition, ind_stor.reltablespace AS tablespace_id, opcmethod AS access_method_id
FROM pg_catalog.pg_class tab
  JOIN pg_catalog.pg_index ind_head ON ind_head.indrelid = tab.oid
  JOIN pg_catalog.pg_class ind_stor ON tab.relnamespace = ind_stor.relnamespace AND ind_stor.oid = ind_head.indexrelid
  LEFT JOIN pg_catalog.pg_opclass ON pg_opclass.oid = ANY (indclass)
WHERE tab.relnamespace = 2200::oid AND tab.relkind IN ('r', 'm', 'v', 'p') AND ind_stor.relkind IN ('i', 'I');

== datagrip.index_columns
SELECT ind_head.indexrelid AS index_id, k AS col_idx, k <= indnkeyatts AS in_key, pg_catalog.pg_get_indexdef(ind_head.indexrelid, k, true) AS column_name,
  ind_head.indoption[k - 1] AS column_options, ind_head.indcollation[k - 1] AS coll, ind_head.indclass[k - 1] AS opclass
FROM (SELECT indexrelid, generate_series(1, indnatts) AS k, indnkeyatts, indoption, indcollation, indclass FROM pg_catalog.pg_index
  WHERE indrelid = 'meta'::regclass) ind_head ORDER BY index_id, k;

== datagrip.constraints
SELECT T.oid AS table_id, relkind AS table_kind, C.oid::bigint AS con_id, C.xmin::varchar AS con_state_id, conname AS con_name,
  contype AS con_kind, conkey AS con_columns, conindid AS index_id, confrelid AS ref_table_id, condeferrable AS is_deferrable,
  confupdtype AS on_update, confdeltype AS on_delete, connoinherit AS no_inherit,
  pg_catalog.pg_get_expr(conbin, T.oid) AS con_expression, confkey AS ref_columns, conexclop::int[] AS excl_operators,
  array(SELECT unnest::regoper::varchar FROM unnest(conexclop)) AS excl_operators_str
FROM pg_catalog.pg_constraint C JOIN pg_catalog.pg_class T ON C.conrelid = T.oid
WHERE relkind IN ('r', 'v', 'f', 'p') AND relnamespace = 2200::oid AND contype IN ('p', 'u', 'f', 'c', 'x') ORDER BY con_name;

== datagrip.roles
SELECT oid AS role_id, rolname AS role_name, rolsuper AS is_super, rolinherit AS is_inherit, rolcreaterole AS can_createrole,
  rolcreatedb AS can_createdb, rolcanlogin AS can_login, rolreplication AS is_replication, rolconnlimit AS conn_limit,
  rolvaliduntil AS valid_until, rolbypassrls AS bypass_rls, rolconfig AS config, D.description
FROM pg_catalog.pg_roles R LEFT JOIN pg_catalog.pg_shdescription D ON D.objoid = R.oid;

== datagrip.timezones
SELECT name, is_dst FROM pg_catalog.pg_timezone_names WHERE name = 'UTC' UNION DISTINCT SELECT abbrev AS name, is_dst FROM pg_catalog.pg_timezone_abbrevs WHERE abbrev = 'UTC';

== jdbc.columns rows
SELECT * FROM (SELECT n.nspname, c.relname, a.attname, a.atttypid, a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull, a.atttypmod,
  a.attlen, t.typtypmod, row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, nullif(a.attidentity, '') AS attidentity,
  nullif(a.attgenerated, '') AS attgenerated, pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc, dsc.description, t.typbasetype, t.typtype
FROM pg_catalog.pg_namespace n
  JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)
  JOIN pg_catalog.pg_attribute a ON (a.attrelid = c.oid)
  JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)
  LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid = def.adrelid AND a.attnum = def.adnum)
  LEFT JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
  LEFT JOIN pg_catalog.pg_class dc ON (dc.oid = dsc.classoid AND dc.relname = 'pg_class')
  LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace = dn.oid AND dn.nspname = 'pg_catalog')
WHERE c.relkind IN ('r','p','v','f','m') AND a.attnum > 0 AND NOT a.attisdropped AND n.nspname LIKE 'public' AND c.relname LIKE 'meta') c
WHERE true AND attname LIKE '%' ORDER BY nspname, c.relname, attnum;

== jdbc.index_info rows
SELECT tmp.TABLE_CAT, tmp.TABLE_SCHEM, tmp.TABLE_NAME, tmp.NON_UNIQUE, tmp.INDEX_QUALIFIER, tmp.INDEX_NAME, tmp.TYPE, tmp.ORDINAL_POSITION,
  trim(both '"' from pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp.ORDINAL_POSITION, false)) AS COLUMN_NAME,
  CASE tmp.AM_NAME WHEN 'btree' THEN CASE tmp.I_INDOPTION[tmp.ORDINAL_POSITION - 1] & 1::smallint WHEN 1 THEN 'D' ELSE 'A' END ELSE NULL END AS ASC_OR_DESC
FROM (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME, NOT i.indisunique AS NON_UNIQUE, NULL AS INDEX_QUALIFIER,
    ci.relname AS INDEX_NAME, CASE i.indisclustered WHEN true THEN 1 ELSE CASE am.amname WHEN 'hash' THEN 2 ELSE 3 END END AS TYPE,
    (information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION, ci.oid AS CI_OID, i.indoption AS I_INDOPTION, am.amname AS AM_NAME
  FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid) JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid)
    JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) JOIN pg_catalog.pg_am am ON (ci.relam = am.oid)
  WHERE n.nspname = 'public' AND ct.relname = 'meta') AS tmp ORDER BY NON_UNIQUE, TYPE, INDEX_NAME, ORDINAL_POSITION;

== jdbc.imported_keys
SELECT NULL::text AS PKTABLE_CAT, pkn.nspname AS PKTABLE_SCHEM, pkc.relname AS PKTABLE_NAME, pka.attname AS PKCOLUMN_NAME, fkc.relname AS FKTABLE_NAME,
  pos.n AS KEY_SEQ, CASE con.confupdtype WHEN 'c' THEN 0 WHEN 'n' THEN 2 WHEN 'd' THEN 4 WHEN 'r' THEN 1 WHEN 'p' THEN 1 WHEN 'a' THEN 3 ELSE NULL END AS UPDATE_RULE,
  con.conname AS FK_NAME, pkic.relname AS PK_NAME
FROM pg_catalog.pg_namespace pkn, pg_catalog.pg_class pkc, pg_catalog.pg_attribute pka, pg_catalog.pg_namespace fkn, pg_catalog.pg_class fkc,
  pg_catalog.pg_attribute fka, pg_catalog.pg_constraint con, pg_catalog.generate_series(1, 32) pos(n), pg_catalog.pg_class pkic
WHERE pkn.oid = pkc.relnamespace AND pkc.oid = pka.attrelid AND pka.attnum = con.confkey[pos.n] AND con.confrelid = pkc.oid AND fkn.oid = fkc.relnamespace
  AND fkc.oid = fka.attrelid AND fka.attnum = con.conkey[pos.n] AND con.conrelid = fkc.oid AND con.contype = 'f'
  AND (pkic.relkind = 'i' OR pkic.relkind = 'I') AND pkic.oid = con.conindid AND fkc.relname = 'meta' ORDER BY pkn.nspname, pkc.relname, con.conname, pos.n;

== jdbc.typeinfo rows
SELECT typinput = 'pg_catalog.array_in'::regproc AS is_array, typtype, typname, pg_type.oid
FROM pg_catalog.pg_type LEFT JOIN (SELECT ns.oid AS nspoid, ns.nspname, r.r FROM pg_namespace AS ns
  JOIN (SELECT s.r, (current_schemas(false))[s.r] AS nspname FROM generate_series(1, array_upper(current_schemas(false), 1)) AS s(r)) AS r USING (nspname)) AS sp
  ON sp.nspoid = typnamespace WHERE pg_type.oid = 1016 ORDER BY sp.r, pg_type.oid DESC;

== jdbc.best_row rows
SELECT a.attname, a.atttypid, atttypmod FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
  JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
  JOIN (SELECT i.indexrelid, i.indrelid, i.indisprimary, information_schema._pg_expandarray(i.indkey) AS keys FROM pg_catalog.pg_index i) i
    ON (a.attnum = (i.keys).x AND a.attrelid = i.indrelid)
WHERE true AND n.nspname = 'public' AND ct.relname = 'meta' AND i.indisprimary ORDER BY a.attnum;

== jdbc.procedures
SELECT n.nspname AS schema, p.proname, p.prorettype, p.proargtypes, t.typtype, t.typrelid, p.proargnames, p.proargmodes, p.proallargtypes, p.oid
FROM pg_catalog.pg_proc p, pg_catalog.pg_namespace n, pg_catalog.pg_type t
WHERE p.pronamespace = n.oid AND p.prorettype = t.oid AND n.nspname LIKE 'public' ORDER BY n.nspname, p.proname, p.oid::text;

== jdbc.sql_keywords
SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word <> ALL ('{select,from,where}'::text[]);

== jdbc.max_name_length rows
SELECT t.typlen FROM pg_catalog.pg_type t, pg_catalog.pg_namespace n WHERE t.typnamespace = n.oid AND t.typname = 'name' AND n.nspname = 'pg_catalog';

== jdbc.types
SELECT t.typname, t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON (t.typnamespace = n.oid) WHERE n.nspname != 'pg_toast'
  AND (t.typrelid = 0 OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid));

== hibernate.sequences
SELECT * FROM information_schema.sequences;

== sqlalchemy14.has_table rows
SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE pg_catalog.pg_table_is_visible(c.oid) AND relname = 'meta';

== sqlalchemy14.columns rows
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
  (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef) AS DEFAULT,
  a.attnotnull, a.attnum, pgd.description AS comment, a.attgenerated AS generated,
  (SELECT json_build_object('always', a.attidentity = 'a', 'start', s.seqstart, 'increment', s.seqincrement, 'minvalue', s.seqmin, 'maxvalue', s.seqmax,
      'cache', s.seqcache, 'cycle', s.seqcycle) FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON s.seqrelid = c."oid"
    WHERE c.relkind = 'S' AND a.attidentity != '' AND s.seqrelid = pg_catalog.pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass::oid) AS identity_options
FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_description pgd ON (pgd.objoid = a.attrelid AND pgd.objsubid = a.attnum)
WHERE a.attrelid = 'meta'::regclass AND a.attnum > 0 AND a.attname <> 'id' AND NOT a.attisdropped ORDER BY a.attnum;

== sqlalchemy14.pk rows
SELECT a.attname FROM pg_attribute a JOIN (SELECT unnest(ix.indkey) attnum, generate_subscripts(ix.indkey, 1) ord FROM pg_index ix
  WHERE ix.indrelid = 'meta'::regclass AND ix.indisprimary) k ON a.attnum = k.attnum WHERE a.attrelid = 'meta'::regclass ORDER BY k.ord;

== sqlalchemy14.indexes rows
SELECT i.relname AS relname, ix.indisunique, ix.indexprs, a.attname, a.attnum, c.conrelid IS NOT NULL AS has_con, ix.indkey::varchar, ix.indoption::varchar,
  i.reloptions, am.amname, pg_get_expr(ix.indpred, ix.indrelid), ix.indnkeyatts AS indnkeyatts
FROM pg_class t JOIN pg_index ix ON t.oid = ix.indrelid JOIN pg_class i ON i.oid = ix.indexrelid
  LEFT OUTER JOIN pg_attribute a ON t.oid = a.attrelid AND a.attnum = ANY (ix.indkey)
  LEFT OUTER JOIN pg_constraint c ON (ix.indrelid = c.conrelid AND ix.indexrelid = c.conindid AND c.contype IN ('p', 'u', 'x'))
  LEFT OUTER JOIN pg_am am ON i.relam = am.oid
WHERE t.relkind IN ('r', 'v', 'f', 'm', 'p') AND t.oid = 'meta'::regclass AND ix.indisprimary = 't' ORDER BY t.relname, i.relname, a.attnum;

== sqlalchemy20.tables rows
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
WHERE pg_catalog.pg_class.relname = 'meta' AND pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm'])
  AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog';

== sqlalchemy20.columns rows
SELECT pg_catalog.pg_attribute.attname AS name, pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod) AS format_type,
  (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1 FROM pg_catalog.pg_attrdef
   WHERE pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attrdef.adnum = pg_catalog.pg_attribute.attnum AND pg_catalog.pg_attribute.atthasdef) AS "default",
  pg_catalog.pg_attribute.attnotnull AS not_null, pg_catalog.pg_class.relname AS table_name, pg_catalog.pg_description.description AS comment,
  pg_catalog.pg_attribute.attgenerated AS generated,
  (SELECT json_build_object('always', pg_catalog.pg_attribute.attidentity = 'a', 'start', pg_catalog.pg_sequence.seqstart) AS json_build_object_1
   FROM pg_catalog.pg_sequence WHERE pg_catalog.pg_attribute.attidentity != ''
     AND pg_catalog.pg_sequence.seqrelid = CAST(CAST(pg_catalog.pg_get_serial_sequence(CAST(CAST(pg_catalog.pg_attribute.attrelid AS REGCLASS) AS TEXT), pg_catalog.pg_attribute.attname) AS REGCLASS) AS OID)) AS identity_options
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid
    AND pg_catalog.pg_attribute.attnum > 0 AND NOT pg_catalog.pg_attribute.attisdropped
  LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_description.objsubid = pg_catalog.pg_attribute.attnum
  JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid)
  AND pg_catalog.pg_namespace.nspname != 'pg_catalog' AND pg_catalog.pg_class.relname IN ('meta') AND pg_catalog.pg_attribute.attname <> 'id'
ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum;

== sqlalchemy20.constraints rows
SELECT attr.conrelid::regclass::text AS t, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description
FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.conindid AS conindid, con.description AS description, con.ord AS ord,
    CAST(pg_catalog.pg_attribute.attname AS TEXT) AS attname
  FROM pg_catalog.pg_attribute JOIN (SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname,
      pg_catalog.pg_constraint.conindid AS conindid, unnest(pg_catalog.pg_constraint.conkey) AS attnum,
      generate_subscripts(pg_catalog.pg_constraint.conkey, 1) AS ord, pg_catalog.pg_description.description AS description
    FROM pg_catalog.pg_constraint LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid
    WHERE pg_catalog.pg_constraint.contype = 'p' AND pg_catalog.pg_constraint.conrelid IN ('meta'::regclass, 'kv'::regclass)) AS con
  ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid) AS attr
GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid, attr.conname;

== sqlalchemy20.indexes rows
SELECT idx_sq.indrelid::regclass::text AS t, min(c.relname) AS relname_index, bool_and(idx_sq.indisunique) AS indisunique, array_agg(idx_sq.element ORDER BY idx_sq.ord) AS elements,
  array_agg(idx_sq.is_expr ORDER BY idx_sq.ord) AS elements_is_expr
FROM pg_catalog.pg_class c JOIN (SELECT i.indexrelid, i.indrelid, i.indisunique, i.ord,
    CASE WHEN (i.attnum = 0) THEN pg_catalog.pg_get_indexdef(i.indexrelid, i.ord + 1, true) ELSE CAST(a.attname AS TEXT) END AS element, i.attnum = 0 AS is_expr
  FROM (SELECT ix.indexrelid, ix.indrelid, ix.indisunique, unnest(ix.indkey) AS attnum, generate_subscripts(ix.indkey, 1) AS ord
    FROM pg_catalog.pg_index ix WHERE ix.indrelid = 'meta'::regclass) AS i
  LEFT OUTER JOIN pg_catalog.pg_attribute a ON a.attnum = i.attnum AND a.attrelid = i.indrelid) AS idx_sq ON c.oid = idx_sq.indexrelid
GROUP BY idx_sq.indrelid, idx_sq.indexrelid ORDER BY 1;

== sqlalchemy20.enums
SELECT t.typname AS name, pg_catalog.pg_type_is_visible(t.oid) AS visible, n.nspname AS schema, lbl_agg.labels AS labels
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
  LEFT OUTER JOIN (SELECT e.enumtypid AS enumtypid, array_agg(CAST(e.enumlabel AS TEXT) ORDER BY e.enumsortorder) AS labels FROM pg_catalog.pg_enum e GROUP BY e.enumtypid) AS lbl_agg
  ON t.oid = lbl_agg.enumtypid
WHERE t.typtype = 'e' ORDER BY n.nspname, t.typname;

== sqlalchemy20.domains
SELECT t.typname AS name, pg_catalog.format_type(t.typbasetype, t.typtypmod) AS attype, NOT t.typnotnull AS nullable, t.typdefault AS default,
  pg_catalog.pg_type_is_visible(t.oid) AS visible, n.nspname AS schema, domain_constraints.condefs, domain_constraints.connames
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
  LEFT OUTER JOIN (SELECT contypid, array_agg(pg_catalog.pg_get_constraintdef(oid, true)) AS condefs, array_agg(CAST(conname AS TEXT)) AS connames
    FROM pg_catalog.pg_constraint WHERE contypid != 0 GROUP BY contypid) AS domain_constraints ON t.oid = domain_constraints.contypid
WHERE t.typtype = 'd' AND n.nspname = 'public' ORDER BY n.nspname, t.typname;

== django.tables
SELECT c.relname, CASE WHEN c.relispartition THEN 'p' WHEN c.relkind IN ('m', 'v') THEN 'v' ELSE 't' END, obj_description(c.oid, 'pg_class')
FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_catalog.pg_table_is_visible(c.oid);

== django.columns rows
SELECT a.attname AS column_name, NOT (a.attnotnull OR (t.typtype = 'd' AND t.typnotnull)) AS is_nullable, pg_get_expr(ad.adbin, ad.adrelid) AS column_default,
  CASE WHEN collname = 'default' THEN NULL ELSE collname END AS collation, a.attidentity != '' AS is_autofield, col_description(a.attrelid, a.attnum) AS column_comment
FROM pg_attribute a LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
  LEFT JOIN pg_collation co ON a.attcollation = co.oid JOIN pg_type t ON a.atttypid = t.oid JOIN pg_class c ON a.attrelid = c.oid JOIN pg_namespace n ON c.relnamespace = n.oid
WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND c.relname = 'meta' AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_catalog.pg_table_is_visible(c.oid)
  AND a.attnum > 0 ORDER BY a.attnum;

== django.sequences
SELECT s.relname AS sequence_name, a.attname AS colname FROM pg_class s JOIN pg_depend d ON d.objid = s.oid AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
  JOIN pg_attribute a ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum JOIN pg_class tbl ON tbl.oid = d.refobjid AND tbl.relname = 'meta' AND pg_catalog.pg_table_is_visible(tbl.oid)
WHERE s.relkind = 'S';

== django.constraints rows
SELECT c.conname, array(SELECT attname FROM unnest(c.conkey) WITH ORDINALITY cols(colid, arridx) JOIN pg_attribute AS ca ON cols.colid = ca.attnum
    WHERE ca.attrelid = c.conrelid ORDER BY cols.arridx), c.contype,
  (SELECT fkc.relname || '.' || fka.attname FROM pg_attribute AS fka JOIN pg_class AS fkc ON fka.attrelid = fkc.oid WHERE fka.attrelid = c.confrelid AND fka.attnum = c.confkey[1]),
  cl.reloptions
FROM pg_constraint AS c JOIN pg_class AS cl ON c.conrelid = cl.oid WHERE cl.relname = 'meta' AND pg_catalog.pg_table_is_visible(cl.oid);

== django.indexes rows
SELECT indexname, array_agg(attname ORDER BY arridx), indisunique, indisprimary, array_agg(ordering ORDER BY arridx), amname, exprdef, s2.attoptions
FROM (SELECT c2.relname AS indexname, idx.*, attr.attname, am.amname,
    CASE WHEN idx.indexprs IS NOT NULL THEN pg_get_indexdef(idx.indexrelid) END AS exprdef,
    CASE am.amname WHEN 'btree' THEN CASE (option & 1) WHEN 1 THEN 'DESC' ELSE 'ASC' END END AS ordering, c2.reloptions AS attoptions
  FROM (SELECT * FROM pg_index i, unnest(i.indkey, i.indoption) WITH ORDINALITY koi(key, option, arridx)) idx
    LEFT JOIN pg_class c ON idx.indrelid = c.oid LEFT JOIN pg_class c2 ON idx.indexrelid = c2.oid LEFT JOIN pg_am am ON c2.relam = am.oid
    LEFT JOIN pg_attribute attr ON attr.attrelid = c.oid AND attr.attnum = idx.key
  WHERE c.relname = 'meta' AND pg_catalog.pg_table_is_visible(c.oid)) s2
GROUP BY indexname, indisunique, indisprimary, amname, exprdef, attoptions;

== django.autocommit rows
SELECT typarray FROM pg_type WHERE typname = 'citext';

== rails.types
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype FROM pg_type AS t LEFT JOIN pg_range AS r ON oid = rngtypid
WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool') OR t.typtype IN ('r', 'e', 'd') OR t.typinput::varchar = 'array_in'
  OR t.typelem != 0;

== rails.columns rows
SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod, c.collname,
  col_description(a.attrelid, a.attnum) AS comment, attidentity AS identity, attgenerated AS attgenerated
FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum
  LEFT JOIN pg_type t ON a.atttypid = t.oid LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation
WHERE a.attrelid = '"meta"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;

== rails.primary_keys rows
SELECT a.attname FROM (SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx FROM pg_index WHERE indrelid = '"meta"'::regclass AND indisprimary) i
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx] ORDER BY i.idx;

== rails.indexes rows
SELECT DISTINCT i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), pg_catalog.obj_description(i.oid, 'pg_class') AS comment, d.indisvalid,
  ARRAY(SELECT pg_get_indexdef(d.indexrelid, k + 1, true) FROM generate_subscripts(d.indkey, 1) AS k ORDER BY k) AS columns
FROM pg_class t INNER JOIN pg_index d ON t.oid = d.indrelid INNER JOIN pg_class i ON d.indexrelid = i.oid LEFT JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE i.relkind IN ('i', 'I') AND d.indisprimary = 't' AND t.relname = 'meta' AND n.nspname = ANY (current_schemas(false)) ORDER BY i.relname;

== rails.data_sources
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r','v','m','p','f');

== rails.foreign_keys
SELECT t2.oid::regclass::text AS to_table, a1.attname AS column, a2.attname AS primary_key, c.conname AS name, c.confupdtype AS on_update, c.confdeltype AS on_delete,
  c.convalidated AS valid, c.condeferrable AS deferrable, c.condeferred AS deferred, c.conkey, c.confkey, c.conrelid, c.confrelid
FROM pg_constraint c JOIN pg_class t1 ON c.conrelid = t1.oid JOIN pg_class t2 ON c.confrelid = t2.oid
  JOIN pg_attribute a1 ON a1.attnum = c.conkey[1] AND a1.attrelid = t1.oid JOIN pg_attribute a2 ON a2.attnum = c.confkey[1] AND a2.attrelid = t2.oid
  JOIN pg_namespace t3 ON c.connamespace = t3.oid
WHERE c.contype = 'f' AND t1.relname = 'meta' AND t3.nspname = ANY (current_schemas(false)) ORDER BY c.conname;

== rails.pk_and_sequence
SELECT attr.attname, nsp.nspname, seq.relname FROM pg_class seq, pg_attribute attr, pg_depend dep, pg_constraint cons, pg_namespace nsp
WHERE seq.oid = dep.objid AND seq.relkind = 'S' AND attr.attrelid = dep.refobjid AND attr.attnum = dep.refobjsubid AND attr.attrelid = cons.conrelid
  AND attr.attnum = cons.conkey[1] AND seq.relnamespace = nsp.oid AND cons.contype = 'p' AND dep.classid = 'pg_class'::regclass AND dep.refobjid = '"meta"'::regclass;

== rails.version
SHOW server_version_num;

== rails.extensions
SELECT pg_extension.extname, n.nspname AS schema FROM pg_extension JOIN pg_namespace n ON pg_extension.extnamespace = n.oid WHERE extname <> 'plpgsql';

== rails.enums
SELECT type.typname AS name, type.OID AS oid, n.nspname AS schema, array_agg(enum.enumlabel ORDER BY enum.enumsortorder) AS value
FROM pg_enum AS enum JOIN pg_type AS type ON (type.oid = enum.enumtypid) JOIN pg_namespace n ON type.typnamespace = n.oid
WHERE n.nspname = ANY (current_schemas(false)) GROUP BY type.OID, n.nspname, type.typname;

== prisma.version
SELECT EXISTS(SELECT 1 FROM pg_namespace WHERE nspname = 'public'), version(), current_setting('server_version_num')::integer AS numeric_version;

== prisma.namespaces rows
SELECT namespace.nspname AS namespace_name FROM pg_namespace AS namespace WHERE namespace.nspname = ANY ('{public}'::text[]) ORDER BY namespace_name;

== prisma.tables rows
SELECT tbl.relname AS table_name, namespace.nspname AS namespace, (tbl.relhassubclass AND tbl.relkind = 'p') AS is_partition,
  (tbl.relhassubclass AND tbl.relkind = 'r') AS has_subclass, tbl.relrowsecurity AS has_row_level_security, reloptions, pg_catalog.obj_description(tbl.oid, 'pg_class') AS description
FROM pg_class AS tbl INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace
WHERE (tbl.relkind = 'r' OR tbl.relkind = 'p') AND namespace.nspname = ANY ('{public}'::text[]) AND tbl.relname IN ('kv', 'meta', 'object') ORDER BY namespace, table_name;

== prisma.columns rows
SELECT oid.namespace, info.table_name, info.column_name, format_type(att.atttypid, att.atttypmod) AS formatted_type, info.numeric_precision, info.numeric_scale,
  info.numeric_precision_radix, info.datetime_precision, info.data_type, info.udt_schema AS type_schema_name, info.udt_name AS full_data_type,
  pg_get_expr(attdef.adbin, attdef.adrelid) AS column_default, info.is_nullable, info.is_identity, info.character_maximum_length,
  col_description(att.attrelid, ordinal_position) AS description
FROM information_schema.columns info
  JOIN pg_attribute att ON att.attname = info.column_name
  JOIN (SELECT pg_class.oid, relname, pg_namespace.nspname AS namespace FROM pg_class JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
    AND pg_namespace.nspname = ANY ('{public}'::text[]) WHERE reltype > 0) AS oid ON oid.oid = att.attrelid AND relname = info.table_name AND namespace = info.table_schema
  LEFT JOIN pg_attrdef attdef ON attdef.adrelid = att.attrelid AND attdef.adnum = att.attnum AND table_schema = namespace
WHERE table_schema = ANY ('{public}'::text[]) AND info.table_name = 'meta' ORDER BY namespace, table_name, ordinal_position;

== prisma.indexes rows
WITH rawindex AS (SELECT indrelid, indexrelid, indisunique, indisprimary, unnest(indkey) AS indkeyid, generate_subscripts(indkey, 1) AS indkeyidx,
    unnest(indclass) AS indclass, unnest(indoption) AS indoption FROM pg_index WHERE indpred IS NULL AND NOT indisexclusion)
SELECT schemainfo.nspname AS namespace, indexinfo.relname AS index_name, tableinfo.relname AS table_name, columninfo.attname AS column_name,
  rawindex.indisunique AS is_unique, rawindex.indisprimary AS is_primary_key, rawindex.indkeyidx AS column_index, opclass.opcname AS opclass, opclass.opcdefault AS opcdefault,
  indexaccess.amname AS index_algo,
  CASE rawindex.indoption & 1 WHEN 1 THEN 'DESC' ELSE 'ASC' END AS column_order, CASE rawindex.indoption & 2 WHEN 2 THEN true ELSE false END AS nulls_first,
  pc.condeferrable AS condeferrable, pc.condeferred AS condeferred
FROM rawindex INNER JOIN pg_class AS tableinfo ON tableinfo.oid = rawindex.indrelid INNER JOIN pg_class AS indexinfo ON indexinfo.oid = rawindex.indexrelid
  INNER JOIN pg_namespace AS schemainfo ON schemainfo.oid = tableinfo.relnamespace
  LEFT JOIN pg_attribute AS columninfo ON columninfo.attrelid = tableinfo.oid AND columninfo.attnum = rawindex.indkeyid
  INNER JOIN pg_am AS indexaccess ON indexaccess.oid = indexinfo.relam LEFT JOIN pg_opclass AS opclass ON opclass.oid = rawindex.indclass
  LEFT JOIN pg_constraint pc ON rawindex.indexrelid = pc.conindid AND pc.contype <> 'f'
WHERE schemainfo.nspname = ANY ('{public}'::text[]) AND tableinfo.relname = 'meta' ORDER BY namespace, table_name, index_name, column_index;

== prisma.foreign_keys
SELECT con.oid AS con_id, att2.attname AS child_column, cl.relname AS parent_table, att.attname AS parent_column, con.confdeltype, con.confupdtype,
  con.referenced_schema_name, conname AS constraint_name, child, parent, table_name, namespace
FROM (SELECT ns.nspname AS namespace, unnest(con1.conkey) AS parent, unnest(con1.confkey) AS child, cl.relname AS table_name, ns.nspname AS schema_name,
    generate_subscripts(con1.conkey, 1) AS colidx, con1.oid, con1.confrelid, con1.conrelid, con1.conname, con1.confdeltype, con1.confupdtype, ns2.nspname AS referenced_schema_name
  FROM pg_class cl JOIN pg_constraint con1 ON con1.conrelid = cl.oid JOIN pg_namespace ns ON cl.relnamespace = ns.oid JOIN pg_class ref ON con1.confrelid = ref.oid
    JOIN pg_namespace ns2 ON ref.relnamespace = ns2.oid
  WHERE ns.nspname = ANY ('{public}'::text[]) AND con1.contype = 'f' ORDER BY colidx) con
  JOIN pg_attribute att ON att.attrelid = con.confrelid AND att.attnum = con.child JOIN pg_class cl ON cl.oid = con.confrelid
  JOIN pg_attribute att2 ON att2.attrelid = con.conrelid AND att2.attnum = con.parent
ORDER BY namespace, table_name, constraint_name, con_id, con.colidx;

== prisma.procedures
SELECT p.proname AS name, n.nspname AS namespace, CASE WHEN l.lanname = 'internal' THEN p.prosrc ELSE pg_get_functiondef(p.oid) END AS definition
FROM pg_proc p LEFT JOIN pg_namespace n ON p.pronamespace = n.oid LEFT JOIN pg_language l ON p.prolang = l.oid WHERE n.nspname = ANY ('{nosuch}'::text[]);

== npgsql.types
SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid
FROM (SELECT typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, typ.relkind, elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname,
    elemcls.relkind AS elemrelkind, CASE WHEN elemproc.proname = 'array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype, typ.typcategory
  FROM (SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid, CASE WHEN proc.proname = 'array_recv' THEN 'a' ELSE typ.typtype END AS typtype,
      CASE WHEN proc.proname = 'array_recv' THEN typ.typelem WHEN typ.typtype = 'r' THEN rngsubtype WHEN typ.typtype = 'm' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = typ.oid)
        WHEN typ.typtype = 'd' THEN typ.typbasetype END AS elemtypoid, typcategory
    FROM pg_type AS typ LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid) LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)) AS typ
  LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid LEFT JOIN pg_class AS elemcls ON (elemcls.oid = elemtyp.typrelid) LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive) AS t
  JOIN pg_namespace AS ns ON (ns.oid = typnamespace)
WHERE (typtype IN ('b', 'r', 'm', 'e', 'd') AND typcategory != 'Z') OR (typtype = 'c' AND relkind = 'c') OR (typtype = 'p' AND typname IN ('record', 'void', 'unknown'))
  OR (typtype = 'a' AND (elemtyptype IN ('b', 'r', 'm', 'e', 'd') OR (elemtyptype = 'p' AND elemtypname IN ('record', 'void')) OR (elemtyptype = 'c' AND elemrelkind = 'c')))
ORDER BY CASE WHEN typtype IN ('b', 'e', 'p') THEN 0 WHEN typtype = 'c' THEN 1 WHEN typtype = 'r' THEN 2 WHEN typtype = 'm' THEN 3 WHEN typtype = 'd' AND elemtyptype <> 'a' THEN 4
  WHEN typtype = 'a' THEN 5 WHEN typtype = 'd' AND elemtyptype = 'a' THEN 6 END;

== npgsql.columns rows
SELECT typ.oid AS typoid, nspname, relname, attname, attrelid::regclass::text AS r, attnum, attnotnull, attidentity != '' AS isidentity,
  CASE WHEN typ.typtype = 'd' THEN typ.typtypmod ELSE atttypmod END AS typmod,
  CASE WHEN atthasdef THEN (SELECT pg_get_expr(adbin, cls.oid) FROM pg_attrdef WHERE adrelid = cls.oid AND adnum = attr.attnum) ELSE NULL END AS default,
  CASE WHEN (cls.relkind = ANY (ARRAY['r'::"char", 'p'::"char"])) OR ((cls.relkind = ANY (ARRAY['v'::"char", 'f'::"char"])) AND pg_column_is_updatable((cls.oid)::regclass, attr.attnum, false))
    THEN 'true'::boolean ELSE 'false'::boolean END AS is_updatable,
  EXISTS (SELECT * FROM pg_index WHERE pg_index.indrelid = cls.oid AND pg_index.indisprimary AND attnum = ANY (indkey)) AS isprimarykey,
  EXISTS (SELECT * FROM pg_index WHERE pg_index.indrelid = cls.oid AND pg_index.indisunique AND pg_index.indnkeyatts = 1 AND attnum = pg_index.indkey[0]) AS isunique
FROM pg_attribute AS attr JOIN pg_type AS typ ON attr.atttypid = typ.oid JOIN pg_class AS cls ON cls.oid = attr.attrelid JOIN pg_namespace AS ns ON ns.oid = cls.relnamespace
WHERE atttypid <> 0 AND relkind IN ('r', 'v', 'm') AND NOT attisdropped AND nspname NOT IN ('pg_catalog', 'information_schema') AND attnum > 0 AND relname = 'meta' ORDER BY attnum;

== efcore.tables rows
SELECT nspname, cls.relname, relkind, description, current_schema() FROM pg_class AS cls JOIN pg_namespace AS ns ON ns.oid = cls.relnamespace
  LEFT OUTER JOIN pg_description AS des ON des.objoid = cls.oid AND des.objsubid = 0
WHERE cls.relkind IN ('r', 'v', 'm', 'f') AND ns.nspname NOT IN ('pg_catalog', 'information_schema', 'metadb') AND cls.relname IN ('kv', 'meta', 'object')
  AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = (SELECT cls.oid FROM pg_class AS cls JOIN pg_namespace AS ns ON ns.oid = cls.relnamespace
    WHERE relname = 'pg_class' AND ns.nspname = 'pg_catalog') AND objid = cls.oid AND deptype IN ('e', 'x')) ORDER BY 2;

== asyncpg.types
WITH RECURSIVE typeinfo_tree(oid, ns, name, kind, basetype, elemtype, elemdelim, range_subtype, attrtypoids, attrnames, depth) AS (
  SELECT ti.oid, ti.ns, ti.name, ti.kind, ti.basetype, ti.elemtype, ti.elemdelim, ti.range_subtype, ti.attrtypoids, ti.attrnames, 0
  FROM (SELECT t.oid AS oid, ns.nspname AS ns, t.typname AS name, t.typtype AS kind, CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE NULL END AS basetype,
      t.typelem AS elemtype, elem_t.typdelim AS elemdelim, range_t.rngsubtype AS range_subtype,
      (CASE WHEN t.typtype = 'c' THEN (SELECT array_agg(ia.atttypid ORDER BY ia.attnum) FROM pg_attribute ia INNER JOIN pg_class c ON (ia.attrelid = c.oid)
        WHERE ia.attnum > 0 AND NOT ia.attisdropped AND c.reltype = t.oid) ELSE NULL END) AS attrtypoids,
      (CASE WHEN t.typtype = 'c' THEN (SELECT array_agg(ia.attname::text ORDER BY ia.attnum) FROM pg_attribute ia INNER JOIN pg_class c ON (ia.attrelid = c.oid)
        WHERE ia.attnum > 0 AND NOT ia.attisdropped AND c.reltype = t.oid) ELSE NULL END) AS attrnames
    FROM pg_catalog.pg_type AS t INNER JOIN pg_catalog.pg_namespace ns ON (ns.oid = t.typnamespace) LEFT JOIN pg_type elem_t ON (t.typlen = -1 AND t.typelem != 0 AND t.typelem = elem_t.oid)
      LEFT JOIN pg_range range_t ON (t.oid = range_t.rngtypid)) AS ti WHERE ti.oid = any('{1016,1009}'::oid[])
  UNION ALL
  SELECT ti.oid, ti.ns, ti.name, ti.kind, NULL::oid, ti.elemtype, ti.elemdelim, NULL::oid, NULL::oid[], NULL::text[], tt.depth + 1
  FROM (SELECT t.oid AS oid, ns.nspname AS ns, t.typname AS name, t.typtype AS kind, t.typelem AS elemtype, t.typdelim AS elemdelim
    FROM pg_catalog.pg_type AS t INNER JOIN pg_catalog.pg_namespace ns ON (ns.oid = t.typnamespace)) ti, typeinfo_tree tt
  WHERE (tt.elemtype IS NOT NULL AND ti.oid = tt.elemtype))
SELECT DISTINCT *, basetype::regtype::text AS basetype_name, elemtype::regtype::text AS elemtype_name, range_subtype::regtype::text AS range_subtype_name
FROM typeinfo_tree ORDER BY depth DESC;

== pgx.types
SELECT t.typname, t.oid, t.typtype, t.typelem, array(SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) AS fields
FROM pg_type t WHERE t.oid = 'text'::text::regtype::oid;

== psycopg3.typeinfo
SELECT typname AS name, oid, typarray AS array_oid, oid::regtype::text AS regtype, typdelim AS delimiter FROM pg_type t WHERE t.oid = to_regtype('int8') ORDER BY t.oid;

== node.types
SELECT b.oid, b.typarray FROM pg_catalog.pg_type a LEFT JOIN pg_catalog.pg_type b ON b.oid = a.typelem WHERE a.typcategory = 'A' GROUP BY b.oid, b.typarray ORDER BY b.oid;

== sequelize.tables rows
SELECT table_name, table_schema FROM information_schema.tables WHERE table_schema = 'public' AND table_type LIKE '%TABLE' AND table_name IN ('kv', 'meta', 'object') ORDER BY 1;

== sequelize.columns rows
SELECT pk.constraint_type AS "Constraint", c.column_name AS "Field", c.column_default AS "Default", c.is_nullable AS "Null",
  (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) AS "Type",
  (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid = e.enumtypid WHERE t.typname = c.udt_name) AS "special",
  (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd ON (pgd.objoid = st.relid)
    WHERE c.ordinal_position = pgd.objsubid AND c.table_name = st.relname) AS "Comment"
FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc
  JOIN information_schema.KEY_COLUMN_USAGE cu ON tc.table_schema = cu.table_schema AND tc.table_name = cu.table_name AND tc.constraint_name = cu.constraint_name AND tc.constraint_type = 'PRIMARY KEY') pk
  ON pk.table_schema = c.table_schema AND pk.table_name = c.table_name AND pk.column_name = c.column_name
WHERE c.table_name = 'meta' AND c.table_schema = 'public' ORDER BY c.ordinal_position;

== sequelize.indexes rows
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) AS column_indexes, array_agg(a.attname) AS column_names,
  pg_get_indexdef(ix.indexrelid) AS definition
FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND a.attnum > 0 AND t.relkind = 'r' AND t.relname = 'kv'
GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;

== typeorm.columns rows
SELECT columns.*, pg_catalog.col_description(('"' || table_catalog || '"."' || table_schema || '"."' || table_name || '"')::regclass::oid, ordinal_position) AS description,
  ('"' || "udt_schema" || '"."' || "udt_name" || '"')::"regtype" AS "regtype", pg_catalog.format_type("col_attr"."atttypid", "col_attr"."atttypmod") AS "format_type"
FROM "information_schema"."columns" LEFT JOIN "pg_catalog"."pg_attribute" AS "col_attr" ON "col_attr"."attname" = "columns"."column_name"
  AND "col_attr"."attrelid" = (SELECT "cls"."oid" FROM "pg_catalog"."pg_class" AS "cls" LEFT JOIN "pg_catalog"."pg_namespace" AS "ns" ON "ns"."oid" = "cls"."relnamespace"
    WHERE "cls"."relname" = "columns"."table_name" AND "ns"."nspname" = "columns"."table_schema")
WHERE ("table_schema" = 'public' AND "table_name" = 'kv' AND column_name <> 'seq') ORDER BY ordinal_position;

== typeorm.constraints rows
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "cnst"."conname" AS "constraint_name", pg_get_constraintdef("cnst"."oid") AS "expression",
  CASE "cnst"."contype" WHEN 'p' THEN 'PRIMARY' WHEN 'u' THEN 'UNIQUE' WHEN 'c' THEN 'CHECK' WHEN 'x' THEN 'EXCLUDE' END AS "constraint_type", "a"."attname" AS "column_name"
FROM "pg_constraint" "cnst" INNER JOIN "pg_class" "t" ON "t"."oid" = "cnst"."conrelid" INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "cnst"."connamespace"
  LEFT JOIN "pg_attribute" "a" ON "a"."attrelid" = "cnst"."conrelid" AND "a"."attnum" = ANY ("cnst"."conkey")
WHERE "t"."relkind" IN ('r', 'p') AND (("ns"."nspname" = 'public' AND "t"."relname" = 'meta')) ORDER BY "a"."attnum";

== drizzle.columns rows
SELECT a.attrelid::regclass::text, a.attname, is_nullable, a.attndims AS array_dimensions,
  CASE WHEN a.atttypid = ANY ('{int,int8,int2}'::regtype[]) AND EXISTS (SELECT FROM pg_attrdef ad WHERE ad.adrelid = a.attrelid AND ad.adnum = a.attnum
      AND pg_get_expr(ad.adbin, ad.adrelid) = 'nextval(''' || pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass || '''::regclass)')
    THEN CASE a.atttypid WHEN 'int'::regtype THEN 'serial' WHEN 'int8'::regtype THEN 'bigserial' WHEN 'int2'::regtype THEN 'smallserial' END
    ELSE format_type(a.atttypid, a.atttypmod) END AS data_type, ns.nspname AS type_schema, pg_get_expr(ad.adbin, ad.adrelid) AS column_default
FROM pg_attribute a JOIN information_schema.columns c ON c.column_name = a.attname JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_namespace ns ON ns.oid = t.typnamespace
  LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = ('"public"."meta"')::regclass AND c.table_name = 'meta' AND c.table_schema = 'public' ORDER BY a.attnum;

== knex.column_info rows
SELECT * FROM information_schema.columns WHERE table_name = 'kv' AND column_name <> 'seq' AND table_catalog = current_database() AND table_schema = current_schema() ORDER BY ordinal_position;

== flyway.exists rows
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relname = 'flyway_schema_history' AND c.relkind IN ('r', 'p'));

== liquibase.sequences
SELECT c.relname AS "SEQUENCE_NAME" FROM pg_class c JOIN pg_namespace on c.relnamespace = pg_namespace.oid WHERE c.relkind = 'S' AND nspname = 'public'
  AND c.oid NOT IN (SELECT d.objid FROM pg_depend d WHERE d.refobjsubid > 0);

== metabase.fields rows
SELECT c.column_name AS name, CASE WHEN c.udt_schema IN ('public', 'pg_catalog') THEN format('%s', c.udt_name) ELSE format('"%s"."%s"', c.udt_schema, c.udt_name) END AS "database-type",
  c.ordinal_position - 1 AS "database-position", c.table_schema AS "table-schema", c.table_name AS "table-name", pk.column_name IS NOT NULL AS "pk?",
  col_description(CAST(CAST(format('%I.%I', CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT)) AS REGCLASS) AS OID), c.ordinal_position) AS "field-comment",
  ((column_default IS NULL) OR (LOWER(column_default) = 'null')) AND (is_nullable = 'NO') AS "database-required"
FROM information_schema.columns AS c LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name FROM information_schema.table_constraints AS tc
  INNER JOIN information_schema.key_column_usage AS kc ON (tc.constraint_name = kc.constraint_name) AND (tc.table_schema = kc.table_schema) AND (tc.table_name = kc.table_name)
  WHERE tc.constraint_type = 'PRIMARY KEY') AS pk ON (c.table_schema = pk.table_schema) AND (c.table_name = pk.table_name) AND (c.column_name = pk.column_name)
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_name IN ('kv', 'object') AND c.column_default IS NULL ORDER BY 4, 5, 3;

== exporter.activity
SELECT pg_database.datname, tmp.state, tmp2.usename, tmp2.application_name, COALESCE(count, 0) AS count, COALESCE(max_tx_duration, 0) AS max_tx_duration
FROM (VALUES ('active'), ('idle'), ('idle in transaction'), ('idle in transaction (aborted)'), ('fastpath function call'), ('disabled')) AS tmp(state) CROSS JOIN pg_database
LEFT JOIN (SELECT datname, state, usename, application_name, count(*) AS count, MAX(EXTRACT(EPOCH FROM now() - xact_start))::float AS max_tx_duration
  FROM pg_stat_activity GROUP BY datname, state, usename, application_name) AS tmp2 ON tmp.state = tmp2.state AND pg_database.datname = tmp2.datname;

== exporter.database
SELECT datname, numbackends, xact_commit, xact_rollback, extract(epoch from stats_reset) AS reset FROM pg_stat_database;

== exporter.size
SELECT pg_database.datname, pg_database_size(pg_database.datname) FROM pg_database;

== exporter.bgwriter
SELECT checkpoints_timed, checkpoints_req, buffers_checkpoint, maxwritten_clean, buffers_backend, stats_reset FROM pg_stat_bgwriter;

== exporter.uptime
SELECT extract(epoch from date_trunc('second', now() - pg_postmaster_start_time())) >= 0 AS ok, pg_conf_load_time() <= now() AS loaded;

== exporter.replication
SELECT CASE WHEN NOT pg_is_in_recovery() THEN 0 ELSE GREATEST(0, EXTRACT(EPOCH FROM (now() - pg_last_xact_replay_timestamp()))) END AS lag;

== exporter.user_tables
SELECT current_database() datname, schemaname, relname, seq_scan, seq_tup_read, COALESCE(last_vacuum, '1970-01-01Z') AS last_vacuum, n_live_tup FROM pg_stat_user_tables;

== monitoring.long
SELECT pid, now() - query_start AS duration, date_trunc('minute', query_start) AS minute, state, left(query, 40) AS query FROM pg_stat_activity
WHERE state <> 'idle' AND now() - query_start > interval '5 minutes' ORDER BY duration DESC;

== monitoring.per_state
SELECT state, count(*), max(age(clock_timestamp(), state_change)) FROM pg_stat_activity WHERE backend_type = 'client backend' GROUP BY 1 ORDER BY 2 DESC;

== monitoring.connections
SELECT max_conn, used, res_for_super, max_conn - used - res_for_super AS res_for_normal
FROM (SELECT count(*) used FROM pg_stat_activity) t1, (SELECT setting::int res_for_super FROM pg_settings WHERE name = 'superuser_reserved_connections') t2,
  (SELECT setting::int max_conn FROM pg_settings WHERE name = 'max_connections') t3;

== monitoring.ssl
SELECT a.pid, s.ssl, s.version, s.cipher FROM pg_stat_activity a LEFT JOIN pg_stat_ssl s ON s.pid = a.pid WHERE a.pid = pg_backend_pid();

== monitoring.sizes
SELECT c.relname, pg_size_pretty(pg_total_relation_size(c.oid)) AS total, round(100.0 * 1 / 3, 1) AS share FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND c.relkind <> 'i' AND nspname !~ '^pg_toast' ORDER BY pg_total_relation_size(c.oid) DESC LIMIT 20;

== psql16.l
SELECT d.datname AS "Name", pg_catalog.pg_get_userbyid(d.datdba) AS "Owner", pg_catalog.pg_encoding_to_char(d.encoding) AS "Encoding",
  CASE d.datlocprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' END AS "Locale Provider", d.datcollate AS "Collate", d.datctype AS "Ctype", d.daticulocale AS "ICU Locale",
  NULL AS "ICU Rules", CASE WHEN pg_catalog.cardinality(d.datacl) = 0 THEN '(none)' ELSE pg_catalog.array_to_string(d.datacl, E'\n') END AS "Access privileges"
FROM pg_catalog.pg_database d ORDER BY 1;

== psql17.du
SELECT r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolconnlimit, r.rolvaliduntil, r.rolreplication, r.rolbypassrls
FROM pg_catalog.pg_roles r WHERE r.rolname !~ '^pg_' ORDER BY 1;

== psql17.drg
SELECT m.rolname AS "Role name", r.rolname AS "Member of", pg_catalog.concat_ws(', ', CASE WHEN pam.admin_option THEN 'ADMIN' END, CASE WHEN m.rolinherit THEN 'INHERIT' END, 'SET') AS "Options",
  g.rolname AS "Grantor"
FROM pg_catalog.pg_roles m JOIN pg_catalog.pg_auth_members pam ON (pam.member = m.oid) LEFT JOIN pg_catalog.pg_roles r ON (pam.roleid = r.oid)
  LEFT JOIN pg_catalog.pg_roles g ON (pam.grantor = g.oid) WHERE r.rolname !~ '^pg_' ORDER BY 1, 2, 4;

== psql17.dp
SELECT n.nspname AS "Schema", c.relname AS "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' END AS "Type",
  CASE WHEN pg_catalog.cardinality(c.relacl) = 0 THEN '(none)' ELSE pg_catalog.array_to_string(c.relacl, E'\n') END AS "Access privileges",
  pg_catalog.array_to_string(ARRAY(SELECT attname || E':\n  ' || pg_catalog.array_to_string(attacl, E'\n  ') FROM pg_catalog.pg_attribute a
    WHERE attrelid = c.oid AND NOT attisdropped AND attacl IS NOT NULL), E'\n') AS "Column privileges",
  pg_catalog.array_to_string(ARRAY(SELECT polname || CASE WHEN NOT polpermissive THEN E' (RESTRICTIVE)' ELSE '' END FROM pg_catalog.pg_policy pol WHERE polrelid = c.oid), E'\n') AS "Policies"
FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r','v','m','S','f','p')
  AND pg_catalog.pg_table_is_visible(c.oid) AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1, 2;

== psql18.dx
SELECT e.extname AS "Name", e.extversion AS "Version", ae.default_version AS "Default version", n.nspname AS "Schema", d.description AS "Description"
FROM pg_catalog.pg_extension e LEFT JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
  LEFT JOIN pg_catalog.pg_description d ON d.objoid = e.oid AND d.classoid = 'pg_catalog.pg_extension'::pg_catalog.regclass
  LEFT JOIN pg_catalog.pg_available_extensions() ae(name, default_version, comment) ON ae.name = e.extname ORDER BY 1;

== psql18.fk
SELECT conname, conrelid::pg_catalog.regclass AS ontable, pg_catalog.pg_get_constraintdef(oid, true) AS condef FROM pg_catalog.pg_constraint c
WHERE confrelid IN (SELECT pg_catalog.pg_partition_ancestors('meta'::regclass) UNION ALL VALUES ('meta'::pg_catalog.regclass)) AND contype = 'f' AND conparentid = 0 ORDER BY conname;

== psql.dconfig
SELECT s.name AS "Parameter", pg_catalog.current_setting(s.name) AS "Value" FROM pg_catalog.pg_settings s WHERE s.source <> 'default' AND s.setting IS DISTINCT FROM s.boot_val ORDER BY 1;

== functions.to_char rows
SELECT to_char('2024-01-02 03:04:05.678+00'::timestamptz, 'YYYY-MM-DD HH24:MI:SS.MS') AS a, to_char('2024-11-12 13:14:15+00'::timestamptz, 'Dy DD Mon YY, HH12:MI AM') AS b,
  to_char('2024-01-02 03:04:05+00'::timestamptz, 'IYYY-IW, DDD, D, Q, J, "week" WW') AS c, to_char('2024-01-02 03:04:05+00'::timestamptz, 'FMMonth FMDD, FMDay US TZ') AS d,
  to_char('2024-01-02 03:04:05+00'::timestamptz, 'Month|MONTH|month|Day|DAY|day|FMDDth|SSSS|HH|CC|Y,YYY|RM') AS e, to_char(interval '23 hours 3 minutes 4 seconds', 'HH24:MI:SS') AS f;

== functions.to_char_number rows
SELECT to_char(1234567, '9,999,999') AS a, to_char(12.345, '999.99') AS b, to_char(-12.3, 'FM990.00') AS c, to_char(7, '000') AS d, to_char(0.5, 'FM0.99') AS e, to_char(123456, '999') AS f,
  to_char(42::bigint, 'FM999') AS g, to_char(3.14159::float8, '9D99') AS h;

== functions.date_trunc rows
SELECT date_trunc('hour', '2024-05-06 07:08:09.123+00'::timestamptz) AS a, date_trunc('day', '2024-05-06 07:08:09+00'::timestamptz) AS b,
  date_trunc('week', '2024-05-08 07:08:09+00'::timestamptz) AS c, date_trunc('month', '2024-05-06 07:08:09+00'::timestamptz) AS d, date_trunc('quarter', '2024-05-06 07:08:09+00'::timestamptz) AS e,
  date_trunc('year', '2024-05-06 07:08:09+00'::timestamptz) AS f, date_trunc('milliseconds', '2024-05-06 07:08:09.123456+00'::timestamptz) AS g,
  date_trunc('decade', '2024-05-06 07:08:09+00'::timestamptz) AS h, date_trunc('century', '2024-05-06 07:08:09+00'::timestamptz) AS i,
  date_trunc('hour', interval '3 days 2 hours 40 minutes') AS j;

== functions.extract rows
SELECT extract(year from '2024-05-06 07:08:09.5+00'::timestamptz) AS a, extract(month from '2024-05-06 07:08:09.5+00'::timestamptz) AS b, extract(day from '2024-05-06 07:08:09.5+00'::timestamptz) AS c,
  extract(hour from '2024-05-06 07:08:09.5+00'::timestamptz) AS d, date_part('minute', '2024-05-06 07:08:09.5+00'::timestamptz) AS e, extract(dow from '2024-05-06 07:08:09.5+00'::timestamptz) AS f,
  extract(doy from '2024-05-06 07:08:09.5+00'::timestamptz) AS g, extract(week from '2024-05-06 07:08:09.5+00'::timestamptz) AS h, extract(quarter from '2024-05-06 07:08:09.5+00'::timestamptz) AS i,
  date_part('epoch', '2024-05-06 07:08:09.5+00'::timestamptz) AS j, extract(isodow from '2024-05-05 07:08:09.5+00'::timestamptz) AS k, date_part('hour', interval '1 day 5 hours') AS l;

== functions.round rows
SELECT round(2.5) AS a, round(3.14159, 2) AS b, round(-2.5) AS c, round(1234.5, -2) AS d, ceil(1.2) AS e, floor(-1.2) AS f, trunc(1.29, 1) AS g, round(2.5::float8) AS h, round(7.0::numeric / 3, 3) AS i,
  ceiling(1.0) AS j, sign(-3) AS k, power(2, 10) AS l, sqrt(16) AS m, round(5) AS n, trunc(-1.7) AS o;

== functions.json rows
SELECT row_to_json(t) AS a, to_json('x'::text) AS b, to_json(1) AS c, to_jsonb(t) AS d FROM (SELECT 1 AS n, 'a"b' AS s, true AS b, NULL::int AS x, ARRAY[1, 2] AS arr) t;

== functions.distinct_on rows
SELECT DISTINCT ON (a) a, b FROM (VALUES (1, 3), (1, 2), (2, 5), (2, 9), (3, NULL)) v(a, b) ORDER BY a, b DESC;

== functions.distinct_on_limit rows
SELECT DISTINCT ON (a) b FROM (VALUES (1, 3), (1, 2), (2, 5), (2, 9), (3, 7)) v(a, b) ORDER BY a DESC, b LIMIT 2 OFFSET 1;

== functions.unnest_many rows
SELECT * FROM unnest(ARRAY[1, 2, 3], ARRAY['a', 'b']) AS u(n, s);

== functions.unnest_lateral rows
SELECT c.conname, u.k, u.ord FROM pg_constraint c CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS u(k, ord) WHERE c.conrelid = 'meta'::regclass ORDER BY u.ord;

== functions.regexp rows
SELECT regexp_replace('abc123', '[0-9]+', 'N') AS a, regexp_replace('a-b-c', '-', '', 'g') AS b, substring('fillfactor=70' from 'fillfactor=([0-9]*)') AS c, substring('foobar' from 'o.b') AS d,
  regexp_replace('schema.table', '^(.*)\.(.*)$', '\2') AS e, 'x' ~* 'X' AS f, regexp_match('key=value', '(\w+)=(\w+)') AS g, regexp_split_to_array('a,b,c', ',') AS h;

== functions.strings rows
SELECT lpad('7', 3, '0') AS a, rpad('ab', 4) AS b, reverse('abc') AS c, initcap('hello world') AS d, translate('12345', '143', 'ax') AS e, split_part('a.b.c', '.', -1) AS f,
  overlay('Txxxxas' placing 'hom' from 2 for 4) AS h, to_hex(255) AS i, concat('a', NULL, 1, true) AS j, string_to_array('a,b', ',') AS k, encode('\x00ff'::bytea, 'hex') AS l, greatest(1, 3, 2) AS m,
  least('b', 'a') AS n, encode('\x00ff'::bytea, 'base64') AS o, octet_length('ä') AS p, bit_length('a') AS q;

== functions.age rows
SELECT age('2024-03-11 00:00:00+00'::timestamptz, '2024-03-01 12:00:00+00'::timestamptz) AS a, ('2024-03-01'::timestamptz - '2024-02-28'::timestamptz) AS b,
  '2024-01-01 00:00:00+00'::timestamptz + interval '1 day' AS c, '2024-01-01'::date AS d;

== functions.window rows
SELECT a, sum(a) OVER (ORDER BY a) AS s, count(*) OVER () AS n, row_number() OVER w AS r FROM (VALUES (1), (2), (3)) v(a) WINDOW w AS (ORDER BY a DESC) ORDER BY a;

== functions.aggregates rows
SELECT array_agg(DISTINCT a) AS a, string_agg(a::text, ',' ORDER BY a DESC) AS b, bool_or(a > 2) AS c, count(DISTINCT a) AS d, count(*) FILTER (WHERE a > 1) AS e, jsonb_agg(a ORDER BY a) AS f,
  json_object_agg(a::text, a) AS g, max(a) AS h
FROM (VALUES (1), (2), (3), (3)) v(a);

== functions.catalog rows
SELECT to_regclass('nosuch') AS a, to_regtype('bigint') AS b, 'meta'::regclass::text AS c, pg_typeof(1) AS d, quote_ident('Order') AS e, format('%I.%L', 'a b', 'x''y') AS f, current_schemas(true) AS g,
  has_table_privilege('meta', 'SELECT') AS h, has_schema_privilege('public', 'USAGE') AS i, pg_get_userbyid(10) IS NOT NULL AS j, has_column_privilege('meta', 'pid', 'UPDATE') AS k,
  has_any_column_privilege('meta', 'SELECT') AS l, pg_has_role(current_user, 'USAGE') AS m, pg_size_pretty(123456789::bigint) AS n, num_nonnulls(1, NULL, 2) AS o, num_nulls(1, NULL) AS p;

== functions.case_types rows
SELECT CASE WHEN true THEN 1 ELSE 2.5 END AS a, coalesce(NULL, 1) AS b, nullif(1, 1) AS c, 1 IS DISTINCT FROM NULL AS d, (1, 2) = (1, 2) AS e, 5 BETWEEN 1 AND 9 AS f, 'a' || 1 AS g, 7 / 2 AS h,
  7 % 3 AS i, 2 ^ 3 AS j, 1 << 4 AS k, 5 & 4 AS l, 5 | 2 AS m, ARRAY[1, 2] || 3 AS n, 2 = ANY (ARRAY[1, 2]) AS o, ARRAY[1] <@ ARRAY[1, 2] AS p, ARRAY[1, 2] && ARRAY[2, 3] AS q, -7 / 2 AS r, @ -3 AS s;

== functions.json_rows rows
SELECT json_agg(t) AS a, json_agg(t.n ORDER BY t.n DESC) AS b, jsonb_agg(t.n) AS c, json_agg(t.n) FILTER (WHERE t.n > 5) AS d,
  json_build_object('a', 1, 'b', 'x', 'c', NULL) AS e, jsonb_build_object('bb', 1, 'a', true) AS f, json_build_array(1, 'x', NULL) AS g FROM (VALUES (1, 'x'), (2, NULL)) t(n, s);

== functions.time_zones rows
SELECT to_char('2024-07-01 12:00:00+00'::timestamptz, 'YYYY-MM-DD HH24:MI:SSOF') AS a, to_char('0044-03-15 BC'::date, 'YYYY BC') AS b, to_char('2024-02-29'::timestamp, 'IDDD IYYY ID Q CC') AS c,
  date_trunc('month', '2024-03-15 10:00:00'::timestamp) AS d, extract(day from '2024-03-15'::date) AS e, extract(isoyear from '2024-12-30'::date) AS f, date_part('julian', '2024-03-15'::date) AS g;

== functions.acl rows
SELECT (aclexplode(acldefault('r', 10::oid))).privilege_type AS a ORDER BY 1;

== functions.acl_from rows
SELECT a.privilege_type, a.is_grantable, a.grantee = 10::oid AS g FROM aclexplode(acldefault('d', 10::oid)) AS a ORDER BY 1, 3;
