/*
 * bench/forms_metadb.c — the operations as metadb's own statements. Parent attributes, quota and
 * index are the server's work: create_full differs by a file id, which is indexed, and an owner of
 * its own per client.
 */
#include "workload.h"

#define CREATE "INSERT INTO meta (pid, name, type, mode, uid, gid, size"

const struct form forms_metadb[] = {
    {"create", "", 1, {CREATE ") VALUES ($p, $n, 'f', 420, 1000, 1000, 0)"}},
    {"create_full", "", 1, {CREATE ", fid) VALUES ($p, $n, 'f', 420, $u, 1000, 0, $i)"}},
    {"mkdir",
     "",
     1,
     {"INSERT INTO meta (pid, name, type, mode, uid, gid) VALUES ($p, $n, 'd', 493, 1000, 1000)"}},
    {"delete", "", 1, {"DELETE FROM meta WHERE pid = $p AND name = $n"}},
    {"rmdir", "", 1, {"DELETE FROM meta WHERE pid = $p AND name = $n AND type = 'd'"}},
    {"rename", "", 1, {"UPDATE meta SET pid = $d, name = $n WHERE pid = $p AND name = $n"}},
    {"dirstat", "", 1, {"SELECT num_children, mtime FROM meta WHERE pid = $p AND name = '_attr_'"}},
    {"lookup",
     "",
     1,
     {"SELECT id, type, mode, uid, gid, size, mtime FROM meta WHERE pid = $p AND name = $n"}},
    {"listdir",
     "",
     1000,
     {"SELECT name, id, type FROM meta WHERE pid = $p AND name > $a ORDER BY name LIMIT 1000"}},
    {"upsert",
     "",
     1,
     {"INSERT INTO kv (key, value) VALUES ($k, $v)"
      " ON CONFLICT (key) DO UPDATE SET value = excluded.value"}},
    {0},
};
