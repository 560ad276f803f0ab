/*
 * planner/relations/pg_defs.c — the relations of pg_catalog: number, name, kind and columns.
 *
 * Columns, their order, types and the numbers of the tables are PostgreSQL 15's, since clients ask
 * for them by name, by position (SELECT *) and by number ('pg_class'::regclass). A relation without
 * a generator has no rows here: metadb has no such objects.
 */
#include "planner/relations/pg_rows.h"

/* clang-format off */
const struct rel_def rel_pg_defs[] = {
    {2600, "pg_aggregate", 'r',
     "aggfnoid:regproc! aggkind:char! aggnumdirectargs:int2! aggtransfn:regproc! "
     "aggfinalfn:regproc! aggcombinefn:regproc! aggserialfn:regproc! aggdeserialfn:regproc! "
     "aggmtransfn:regproc! aggminvtransfn:regproc! aggmfinalfn:regproc! aggfinalextra:bool! "
     "aggmfinalextra:bool! aggfinalmodify:char! aggmfinalmodify:char! aggsortop:oid! "
     "aggtranstype:oid! aggtransspace:int4! aggmtranstype:oid! aggmtransspace:int4! "
     "agginitval:text aggminitval:text",
     NULL},
    {2601, "pg_am", 'r',
     "oid:oid! amname:name! amhandler:regproc! amtype:char!",
     rel__am},
    {2602, "pg_amop", 'r',
     "oid:oid! amopfamily:oid! amoplefttype:oid! amoprighttype:oid! amopstrategy:int2! "
     "amoppurpose:char! amopopr:oid! amopmethod:oid! amopsortfamily:oid!",
     NULL},
    {2603, "pg_amproc", 'r',
     "oid:oid! amprocfamily:oid! amproclefttype:oid! amprocrighttype:oid! amprocnum:int2! "
     "amproc:regproc!",
     NULL},
    {2604, "pg_attrdef", 'r',
     "oid:oid! adrelid:oid! adnum:int2! adbin:pg_node_tree!",
     rel__attrdef},
    {1249, "pg_attribute", 'r',
     "attrelid:oid! attname:name! atttypid:oid! attstattarget:int4! attlen:int2! "
     "attnum:int2! attndims:int4! attcacheoff:int4! atttypmod:int4! attbyval:bool! "
     "attalign:char! attstorage:char! attcompression:char! attnotnull:bool! atthasdef:bool! "
     "atthasmissing:bool! attidentity:char! attgenerated:char! attisdropped:bool! "
     "attislocal:bool! attinhcount:int4! attcollation:oid! attacl:aclitem[] "
     "attoptions:text[] attfdwoptions:text[] attmissingval:anyarray",
     rel__attribute},
    {1261, "pg_auth_members", 'r',
     "roleid:oid! member:oid! grantor:oid! admin_option:bool!",
     NULL},
    {1260, "pg_authid", 'r',
     "oid:oid! rolname:name! rolsuper:bool! rolinherit:bool! rolcreaterole:bool! "
     "rolcreatedb:bool! rolcanlogin:bool! rolreplication:bool! rolbypassrls:bool! "
     "rolconnlimit:int4! rolpassword:text rolvaliduntil:timestamptz",
     rel__authid},
    {12085, "pg_available_extension_versions", 'v',
     "name:name version:text installed:bool superuser:bool trusted:bool relocatable:bool "
     "schema:name requires:name[] comment:text",
     NULL},
    {12081, "pg_available_extensions", 'v',
     "name:name default_version:text installed_version:text comment:text",
     NULL},
    {2605, "pg_cast", 'r',
     "oid:oid! castsource:oid! casttarget:oid! castfunc:oid! castcontext:char! "
     "castmethod:char!",
     NULL},
    {1259, "pg_class", 'r',
     "oid:oid! relname:name! relnamespace:oid! reltype:oid! reloftype:oid! relowner:oid! "
     "relam:oid! relfilenode:oid! reltablespace:oid! relpages:int4! reltuples:float4! "
     "relallvisible:int4! reltoastrelid:oid! relhasindex:bool! relisshared:bool! "
     "relpersistence:char! relkind:char! relnatts:int2! relchecks:int2! relhasrules:bool! "
     "relhastriggers:bool! relhassubclass:bool! relrowsecurity:bool! "
     "relforcerowsecurity:bool! relispopulated:bool! relreplident:char! relispartition:bool! "
     "relrewrite:oid! relfrozenxid:xid! relminmxid:xid! relacl:aclitem[] reloptions:text[] "
     "relpartbound:pg_node_tree",
     rel__class},
    {3456, "pg_collation", 'r',
     "oid:oid! collname:name! collnamespace:oid! collowner:oid! collprovider:char! "
     "collisdeterministic:bool! collencoding:int4! collcollate:text collctype:text "
     "colliculocale:text collversion:text",
     rel__collation},
    {12130, "pg_config", 'v',
     "name:text setting:text",
     NULL},
    {2606, "pg_constraint", 'r',
     "oid:oid! conname:name! connamespace:oid! contype:char! condeferrable:bool! "
     "condeferred:bool! convalidated:bool! conrelid:oid! contypid:oid! conindid:oid! "
     "conparentid:oid! confrelid:oid! confupdtype:char! confdeltype:char! "
     "confmatchtype:char! conislocal:bool! coninhcount:int4! connoinherit:bool! "
     "conkey:int2[] confkey:int2[] conpfeqop:oid[] conppeqop:oid[] conffeqop:oid[] "
     "confdelsetcols:int2[] conexclop:oid[] conbin:pg_node_tree",
     rel__constraint},
    {2607, "pg_conversion", 'r',
     "oid:oid! conname:name! connamespace:oid! conowner:oid! conforencoding:int4! "
     "contoencoding:int4! conproc:regproc! condefault:bool!",
     NULL},
    {12077, "pg_cursors", 'v',
     "name:text statement:text is_holdable:bool is_binary:bool is_scrollable:bool "
     "creation_time:timestamptz",
     NULL},
    {1262, "pg_database", 'r',
     "oid:oid! datname:name! datdba:oid! encoding:int4! datlocprovider:char! "
     "datistemplate:bool! datallowconn:bool! datconnlimit:int4! datfrozenxid:xid! "
     "datminmxid:xid! dattablespace:oid! datcollate:text! datctype:text! daticulocale:text "
     "datcollversion:text datacl:aclitem[]",
     rel__database},
    {2964, "pg_db_role_setting", 'r',
     "setdatabase:oid! setrole:oid! setconfig:text[]",
     NULL},
    {826, "pg_default_acl", 'r',
     "oid:oid! defaclrole:oid! defaclnamespace:oid! defaclobjtype:char! defaclacl:aclitem[]!",
     NULL},
    {2608, "pg_depend", 'r',
     "classid:oid! objid:oid! objsubid:int4! refclassid:oid! refobjid:oid! refobjsubid:int4! "
     "deptype:char!",
     NULL},
    {2609, "pg_description", 'r',
     "objoid:oid! classoid:oid! objsubid:int4! description:text!",
     rel__description},
    {3501, "pg_enum", 'r',
     "oid:oid! enumtypid:oid! enumsortorder:float4! enumlabel:name!",
     NULL},
    {3466, "pg_event_trigger", 'r',
     "oid:oid! evtname:name! evtevent:name! evtowner:oid! evtfoid:oid! evtenabled:char! "
     "evttags:text[]",
     NULL},
    {3079, "pg_extension", 'r',
     "oid:oid! extname:name! extowner:oid! extnamespace:oid! extrelocatable:bool! "
     "extversion:text! extconfig:oid[] extcondition:text[]",
     NULL},
    {12110, "pg_file_settings", 'v',
     "sourcefile:text sourceline:int4 seqno:int4 name:text setting:text applied:bool "
     "error:text",
     NULL},
    {2328, "pg_foreign_data_wrapper", 'r',
     "oid:oid! fdwname:name! fdwowner:oid! fdwhandler:oid! fdwvalidator:oid! "
     "fdwacl:aclitem[] fdwoptions:text[]",
     NULL},
    {1417, "pg_foreign_server", 'r',
     "oid:oid! srvname:name! srvowner:oid! srvfdw:oid! srvtype:text srvversion:text "
     "srvacl:aclitem[] srvoptions:text[]",
     NULL},
    {3118, "pg_foreign_table", 'r',
     "ftrelid:oid! ftserver:oid! ftoptions:text[]",
     NULL},
    {12010, "pg_group", 'v',
     "groname:name grosysid:oid grolist:oid[]",
     NULL},
    {12114, "pg_hba_file_rules", 'v',
     "line_number:int4 type:text database:text[] user_name:text[] address:text netmask:text "
     "auth_method:text options:text[] error:text",
     NULL},
    {2610, "pg_index", 'r',
     "indexrelid:oid! indrelid:oid! indnatts:int2! indnkeyatts:int2! indisunique:bool! "
     "indnullsnotdistinct:bool! indisprimary:bool! indisexclusion:bool! indimmediate:bool! "
     "indisclustered:bool! indisvalid:bool! indcheckxmin:bool! indisready:bool! "
     "indislive:bool! indisreplident:bool! indkey:int2vector! indcollation:oidvector! "
     "indclass:oidvector! indoption:int2vector! indexprs:pg_node_tree indpred:pg_node_tree",
     rel__index},
    {12043, "pg_indexes", 'v',
     "schemaname:name tablename:name indexname:name tablespace:name indexdef:text",
     rel__indexes},
    {2611, "pg_inherits", 'r',
     "inhrelid:oid! inhparent:oid! inhseqno:int4! inhdetachpending:bool!",
     NULL},
    {2612, "pg_language", 'r',
     "oid:oid! lanname:name! lanowner:oid! lanispl:bool! lanpltrusted:bool! "
     "lanplcallfoid:oid! laninline:oid! lanvalidator:oid! lanacl:aclitem[]",
     rel__language},
    {2995, "pg_largeobject_metadata", 'r',
     "oid:oid! lomowner:oid! lomacl:aclitem[]",
     NULL},
    {12073, "pg_locks", 'v',
     "locktype:text database:oid relation:oid page:int4 tuple:int2 virtualxid:text "
     "transactionid:xid classid:oid objid:oid objsubid:int2 virtualtransaction:text pid:int4 "
     "mode:text granted:bool fastpath:bool waitstart:timestamptz",
     NULL},
    {12038, "pg_matviews", 'v',
     "schemaname:name matviewname:name matviewowner:name tablespace:name hasindexes:bool "
     "ispopulated:bool definition:text",
     NULL},
    {2615, "pg_namespace", 'r',
     "oid:oid! nspname:name! nspowner:oid! nspacl:aclitem[]",
     rel__namespace},
    {2616, "pg_opclass", 'r',
     "oid:oid! opcmethod:oid! opcname:name! opcnamespace:oid! opcowner:oid! opcfamily:oid! "
     "opcintype:oid! opcdefault:bool! opckeytype:oid!",
     rel__opclass},
    {2617, "pg_operator", 'r',
     "oid:oid! oprname:name! oprnamespace:oid! oprowner:oid! oprkind:char! oprcanmerge:bool! "
     "oprcanhash:bool! oprleft:oid! oprright:oid! oprresult:oid! oprcom:oid! oprnegate:oid! "
     "oprcode:regproc! oprrest:regproc! oprjoin:regproc!",
     NULL},
    {2753, "pg_opfamily", 'r',
     "oid:oid! opfmethod:oid! opfname:name! opfnamespace:oid! opfowner:oid!",
     rel__opfamily},
    {6243, "pg_parameter_acl", 'r',
     "oid:oid! parname:text! paracl:aclitem[]",
     NULL},
    {3350, "pg_partitioned_table", 'r',
     "partrelid:oid! partstrat:char! partnatts:int2! partdefid:oid! partattrs:int2vector! "
     "partclass:oidvector! partcollation:oidvector! partexprs:pg_node_tree",
     NULL},
    {12018, "pg_policies", 'v',
     "schemaname:name tablename:name policyname:name permissive:text roles:name[] cmd:text "
     "qual:text with_check:text",
     NULL},
    {3256, "pg_policy", 'r',
     "oid:oid! polname:name! polrelid:oid! polcmd:char! polpermissive:bool! polroles:oid[]! "
     "polqual:pg_node_tree polwithcheck:pg_node_tree",
     NULL},
    {12095, "pg_prepared_statements", 'v',
     "name:text statement:text prepare_time:timestamptz parameter_types:regtype[] "
     "from_sql:bool generic_plans:int8 custom_plans:int8",
     NULL},
    {12090, "pg_prepared_xacts", 'v',
     "transaction:xid gid:text prepared:timestamptz owner:name database:name",
     NULL},
    {1255, "pg_proc", 'r',
     "oid:oid! proname:name! pronamespace:oid! proowner:oid! prolang:oid! procost:float4! "
     "prorows:float4! provariadic:oid! prosupport:regproc! prokind:char! prosecdef:bool! "
     "proleakproof:bool! proisstrict:bool! proretset:bool! provolatile:char! "
     "proparallel:char! pronargs:int2! pronargdefaults:int2! prorettype:oid! "
     "proargtypes:oidvector! proallargtypes:oid[] proargmodes:char[] proargnames:text[] "
     "proargdefaults:pg_node_tree protrftypes:oid[] prosrc:text! probin:text "
     "prosqlbody:pg_node_tree proconfig:text[] proacl:aclitem[]",
     rel__proc},
    {6104, "pg_publication", 'r',
     "oid:oid! pubname:name! pubowner:oid! puballtables:bool! pubinsert:bool! "
     "pubupdate:bool! pubdelete:bool! pubtruncate:bool! pubviaroot:bool!",
     NULL},
    {6237, "pg_publication_namespace", 'r',
     "oid:oid! pnpubid:oid! pnnspid:oid!",
     NULL},
    {6106, "pg_publication_rel", 'r',
     "oid:oid! prpubid:oid! prrelid:oid! prqual:pg_node_tree prattrs:int2vector",
     NULL},
    {12068, "pg_publication_tables", 'v',
     "pubname:name schemaname:name tablename:name attnames:name[] rowfilter:text",
     NULL},
    {3541, "pg_range", 'r',
     "rngtypid:oid! rngsubtype:oid! rngmultitypid:oid! rngcollation:oid! rngsubopc:oid! "
     "rngcanonical:regproc! rngsubdiff:regproc!",
     rel__range},
    {12257, "pg_replication_slots", 'v',
     "slot_name:name plugin:name slot_type:text datoid:oid database:name temporary:bool "
     "active:bool active_pid:int4 xmin:xid catalog_xmin:xid restart_lsn:pg_lsn "
     "confirmed_flush_lsn:pg_lsn wal_status:text safe_wal_size:int8 two_phase:bool",
     NULL},
    {2618, "pg_rewrite", 'r',
     "oid:oid! rulename:name! ev_class:oid! ev_type:char! ev_enabled:char! is_instead:bool! "
     "ev_qual:pg_node_tree! ev_action:pg_node_tree!",
     NULL},
    {12000, "pg_roles", 'v',
     "rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool "
     "rolcanlogin:bool rolreplication:bool rolconnlimit:int4 rolpassword:text "
     "rolvaliduntil:timestamptz rolbypassrls:bool rolconfig:text[] oid:oid",
     rel__roles},
    {12023, "pg_rules", 'v',
     "schemaname:name tablename:name rulename:name definition:text",
     NULL},
    {3596, "pg_seclabel", 'r',
     "objoid:oid! classoid:oid! objsubid:int4! provider:text! label:text!",
     NULL},
    {2224, "pg_sequence", 'r',
     "seqrelid:oid! seqtypid:oid! seqstart:int8! seqincrement:int8! seqmax:int8! "
     "seqmin:int8! seqcache:int8! seqcycle:bool!",
     NULL},
    {12048, "pg_sequences", 'v',
     "schemaname:name sequencename:name sequenceowner:name data_type:regtype "
     "start_value:int8 min_value:int8 max_value:int8 increment_by:int8 cycle:bool "
     "cache_size:int8 last_value:int8",
     NULL},
    {12104, "pg_settings", 'v',
     "name:text setting:text unit:text category:text short_desc:text extra_desc:text "
     "context:text vartype:text source:text min_val:text max_val:text enumvals:text[] "
     "boot_val:text reset_val:text sourcefile:text sourceline:int4 pending_restart:bool",
     rel__settings},
    {1214, "pg_shdepend", 'r',
     "dbid:oid! classid:oid! objid:oid! objsubid:int4! refclassid:oid! refobjid:oid! "
     "deptype:char!",
     NULL},
    {2396, "pg_shdescription", 'r',
     "objoid:oid! classoid:oid! description:text!",
     NULL},
    {12052, "pg_seclabels", 'v',
     "objoid:oid classoid:oid objsubid:int4 objtype:text objnamespace:oid objname:text "
     "provider:text label:text",
     NULL},
    {3592, "pg_shseclabel", 'r',
     "objoid:oid! classoid:oid! provider:text! label:text!",
     NULL},
    {12222, "pg_stat_activity", 'v',
     "datid:oid datname:name pid:int4 leader_pid:int4 usesysid:oid usename:name "
     "application_name:text client_addr:inet client_hostname:text client_port:int4 "
     "backend_start:timestamptz xact_start:timestamptz query_start:timestamptz "
     "state_change:timestamptz wait_event_type:text wait_event:text state:text "
     "backend_xid:xid backend_xmin:xid query_id:int8 query:text backend_type:text",
     rel__stat_activity},
    {12147, "pg_stat_all_indexes", 'v',
     "relid:oid indexrelid:oid schemaname:name relname:name indexrelname:name idx_scan:int8 "
     "idx_tup_read:int8 idx_tup_fetch:int8",
     rel__stat_indexes},
    {12137, "pg_stat_all_tables", 'v',
     "relid:oid schemaname:name relname:name seq_scan:int8 seq_tup_read:int8 idx_scan:int8 "
     "idx_tup_fetch:int8 n_tup_ins:int8 n_tup_upd:int8 n_tup_del:int8 n_tup_hot_upd:int8 "
     "n_live_tup:int8 n_dead_tup:int8 n_mod_since_analyze:int8 n_ins_since_vacuum:int8 "
     "last_vacuum:timestamptz last_autovacuum:timestamptz last_analyze:timestamptz "
     "last_autoanalyze:timestamptz vacuum_count:int8 autovacuum_count:int8 "
     "analyze_count:int8 autoanalyze_count:int8",
     rel__stat_tables},
    {12278, "pg_stat_archiver", 'v',
     "archived_count:int8 last_archived_wal:text last_archived_time:timestamptz "
     "failed_count:int8 last_failed_wal:text last_failed_time:timestamptz "
     "stats_reset:timestamptz",
     NULL},
    {12282, "pg_stat_bgwriter", 'v',
     "checkpoints_timed:int8 checkpoints_req:int8 checkpoint_write_time:float8 "
     "checkpoint_sync_time:float8 buffers_checkpoint:int8 buffers_clean:int8 "
     "maxwritten_clean:int8 buffers_backend:int8 buffers_backend_fsync:int8 "
     "buffers_alloc:int8 stats_reset:timestamptz",
     NULL},
    {12261, "pg_stat_gssapi", 'v',
     "pid:int4 gss_authenticated:bool principal:text encrypted:bool",
     NULL},
    {12266, "pg_stat_database", 'v',
     "datid:oid datname:name numbackends:int4 xact_commit:int8 xact_rollback:int8 "
     "blks_read:int8 blks_hit:int8 tup_returned:int8 tup_fetched:int8 tup_inserted:int8 "
     "tup_updated:int8 tup_deleted:int8 conflicts:int8 temp_files:int8 temp_bytes:int8 "
     "deadlocks:int8 checksum_failures:int8 checksum_last_failure:timestamptz "
     "blk_read_time:float8 blk_write_time:float8 session_time:float8 active_time:float8 "
     "idle_in_transaction_time:float8 sessions:int8 sessions_abandoned:int8 "
     "sessions_fatal:int8 sessions_killed:int8 stats_reset:timestamptz",
     rel__stat_database},
    {12227, "pg_stat_replication", 'v',
     "pid:int4 usesysid:oid usename:name application_name:text client_addr:inet "
     "client_hostname:text client_port:int4 backend_start:timestamptz backend_xmin:xid "
     "state:text sent_lsn:pg_lsn write_lsn:pg_lsn flush_lsn:pg_lsn replay_lsn:pg_lsn "
     "write_lag:interval flush_lag:interval replay_lag:interval sync_priority:int4 "
     "sync_state:text reply_time:timestamptz",
     NULL},
    {12250, "pg_stat_ssl", 'v',
     "pid:int4 ssl:bool version:text cipher:text bits:int4 client_dn:text "
     "client_serial:numeric issuer_dn:text",
     rel__stat_ssl},
    {12171, "pg_stat_user_indexes", 'v',
     "relid:oid indexrelid:oid schemaname:name relname:name indexrelname:name idx_scan:int8 "
     "idx_tup_read:int8 idx_tup_fetch:int8",
     rel__stat_indexes},
    {12161, "pg_stat_user_tables", 'v',
     "relid:oid schemaname:name relname:name seq_scan:int8 seq_tup_read:int8 idx_scan:int8 "
     "idx_tup_fetch:int8 n_tup_ins:int8 n_tup_upd:int8 n_tup_del:int8 n_tup_hot_upd:int8 "
     "n_live_tup:int8 n_dead_tup:int8 n_mod_since_analyze:int8 n_ins_since_vacuum:int8 "
     "last_vacuum:timestamptz last_autovacuum:timestamptz last_analyze:timestamptz "
     "last_autoanalyze:timestamptz vacuum_count:int8 autovacuum_count:int8 "
     "analyze_count:int8 autoanalyze_count:int8",
     rel__stat_tables},
    {12176, "pg_statio_all_tables", 'v',
     "relid:oid schemaname:name relname:name heap_blks_read:int8 heap_blks_hit:int8 "
     "idx_blks_read:int8 idx_blks_hit:int8 toast_blks_read:int8 toast_blks_hit:int8 "
     "tidx_blks_read:int8 tidx_blks_hit:int8",
     rel__statio_tables},
    {12184, "pg_statio_user_tables", 'v',
     "relid:oid schemaname:name relname:name heap_blks_read:int8 heap_blks_hit:int8 "
     "idx_blks_read:int8 idx_blks_hit:int8 toast_blks_read:int8 toast_blks_hit:int8 "
     "tidx_blks_read:int8 tidx_blks_hit:int8",
     rel__statio_tables},
    {3381, "pg_statistic_ext", 'r',
     "oid:oid! stxrelid:oid! stxname:name! stxnamespace:oid! stxowner:oid! "
     "stxstattarget:int4! stxkeys:int2vector! stxkind:char[]! stxexprs:pg_node_tree",
     NULL},
    {6100, "pg_subscription", 'r',
     "oid:oid! subdbid:oid! subskiplsn:pg_lsn! subname:name! subowner:oid! subenabled:bool! "
     "subbinary:bool! substream:bool! subtwophasestate:char! subdisableonerr:bool! "
     "subconninfo:text! subslotname:name subsynccommit:text! subpublications:text[]!",
     NULL},
    {12033, "pg_tables", 'v',
     "schemaname:name tablename:name tableowner:name tablespace:name hasindexes:bool "
     "hasrules:bool hastriggers:bool rowsecurity:bool",
     rel__tables},
    {1213, "pg_tablespace", 'r',
     "oid:oid! spcname:name! spcowner:oid! spcacl:aclitem[] spcoptions:text[]",
     rel__tablespace},
    {12122, "pg_timezone_abbrevs", 'v',
     "abbrev:text utc_offset:interval is_dst:bool",
     NULL},
    {12126, "pg_timezone_names", 'v',
     "name:text abbrev:text utc_offset:interval is_dst:bool",
     rel__timezone_names},
    {3576, "pg_transform", 'r',
     "oid:oid! trftype:oid! trflang:oid! trffromsql:regproc! trftosql:regproc!",
     NULL},
    {2620, "pg_trigger", 'r',
     "oid:oid! tgrelid:oid! tgparentid:oid! tgname:name! tgfoid:oid! tgtype:int2! "
     "tgenabled:char! tgisinternal:bool! tgconstrrelid:oid! tgconstrindid:oid! "
     "tgconstraint:oid! tgdeferrable:bool! tginitdeferred:bool! tgnargs:int2! "
     "tgattr:int2vector! tgargs:bytea! tgqual:pg_node_tree tgoldtable:name tgnewtable:name",
     NULL},
    {3602, "pg_ts_config", 'r',
     "oid:oid! cfgname:name! cfgnamespace:oid! cfgowner:oid! cfgparser:oid!",
     NULL},
    {3600, "pg_ts_dict", 'r',
     "oid:oid! dictname:name! dictnamespace:oid! dictowner:oid! dicttemplate:oid! "
     "dictinitoption:text",
     NULL},
    {3601, "pg_ts_parser", 'r',
     "oid:oid! prsname:name! prsnamespace:oid! prsstart:regproc! prstoken:regproc! "
     "prsend:regproc! prsheadline:regproc! prslextype:regproc!",
     NULL},
    {3764, "pg_ts_template", 'r',
     "oid:oid! tmplname:name! tmplnamespace:oid! tmplinit:regproc! tmpllexize:regproc!",
     NULL},
    {1247, "pg_type", 'r',
     "oid:oid! typname:name! typnamespace:oid! typowner:oid! typlen:int2! typbyval:bool! "
     "typtype:char! typcategory:char! typispreferred:bool! typisdefined:bool! typdelim:char! "
     "typrelid:oid! typsubscript:regproc! typelem:oid! typarray:oid! typinput:regproc! "
     "typoutput:regproc! typreceive:regproc! typsend:regproc! typmodin:regproc! "
     "typmodout:regproc! typanalyze:regproc! typalign:char! typstorage:char! "
     "typnotnull:bool! typbasetype:oid! typtypmod:int4! typndims:int4! typcollation:oid! "
     "typdefaultbin:pg_node_tree typdefault:text typacl:aclitem[]",
     rel__type},
    {12014, "pg_user", 'v',
     "usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool "
     "usebypassrls:bool passwd:text valuntil:timestamptz useconfig:text[]",
     rel__user},
    {1418, "pg_user_mapping", 'r',
     "oid:oid! umuser:oid! umserver:oid! umoptions:text[]",
     NULL},
    {12327, "pg_user_mappings", 'v',
     "umid:oid srvid:oid srvname:name umuser:oid usename:name umoptions:text[]",
     NULL},
    {12028, "pg_views", 'v',
     "schemaname:name viewname:name viewowner:name definition:text",
     rel__views},
};
/* clang-format on */
const unsigned rel_pg_def_count = ARRAY_LEN(rel_pg_defs);
