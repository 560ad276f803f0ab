/*
 * bench/forms_pg.c — the same work on PostgreSQL, over the schema of bench/pg.sql.
 *
 *   func   one call of a function: what PostgreSQL is compared by, and listed first
 *   pipe   the statements in one round trip, ended by one Sync: an implicit transaction
 *   delta  create only: append a row that a background session folds into the directory's
 */
#include "workload.h"

#define INSERT_FILE                                                                                \
    "INSERT INTO entry (pid, name, id, kind, mode, uid, gid, size, mtime, ctime)"                  \
    " VALUES ($p, $n, $i, 'f', 420, 1000, 1000, 0, now(), now())"
#define COUNT_CHILD(pid, change)                                                                   \
    "UPDATE directory SET num_children = num_children " change ", mtime = now() WHERE id = " pid
#define READ(name, rows, sql)                                                                      \
    {                                                                                              \
        name, "func", rows,                                                                        \
        {                                                                                          \
            sql                                                                                    \
        }                                                                                          \
    }

const struct form forms_pg[] = {
    {"create", "func", 1, {"SELECT create_file($p, $n, $i)"}},
    {"create", "pipe", 1, {INSERT_FILE, COUNT_CHILD("$p", "+ 1")}},
    {"create", "delta", 1, {"SELECT create_file_delta($p, $n, $i)"}},
    {"create_full", "func", 1, {"SELECT create_file_full($p, $n, $i, $u)"}},
    {"create_full",
     "pipe",
     1,
     {INSERT_FILE, "INSERT INTO file_index (fid, pid, name) VALUES ($i, $p, $n)",
      COUNT_CHILD("$p", "+ 1"), "UPDATE quota SET files = files + 1 WHERE uid = $u"}},
    {"mkdir", "func", 1, {"SELECT make_directory($p, $n, $i)"}},
    {"mkdir",
     "pipe",
     1,
     {"INSERT INTO entry (pid, name, id, kind) VALUES ($p, $n, $i, 'd')",
      "INSERT INTO directory (id, mode, uid, gid, num_children, mtime, ctime)"
      " VALUES ($i, 493, 1000, 1000, 0, now(), now())",
      COUNT_CHILD("$p", "+ 1")}},
    {"delete", "func", 1, {"SELECT remove_file($p, $n)"}},
    {"delete",
     "pipe",
     1,
     {"DELETE FROM entry WHERE pid = $p AND name = $n", COUNT_CHILD("$p", "- 1")}},
    {"rmdir", "func", 1, {"SELECT remove_directory($p, $n)"}},
    {"rmdir",
     "pipe",
     1,
     {"DELETE FROM directory WHERE id = (SELECT id FROM entry WHERE pid = $p AND name = $n)"
      " AND num_children = 0",
      "DELETE FROM entry WHERE pid = $p AND name = $n", COUNT_CHILD("$p", "- 1")}},
    {"rename", "func", 1, {"SELECT rename_entry($p, $n, $d, $n)"}},
    {"rename",
     "pipe",
     1,
     {"UPDATE entry SET pid = $d, name = $n WHERE pid = $p AND name = $n", COUNT_CHILD("$p", "- 1"),
      COUNT_CHILD("$d", "+ 1")}},
    READ("dirstat", 1, "SELECT num_children, mtime FROM directory WHERE id = $p"),
    READ("lookup", 1,
         "SELECT id, kind, mode, uid, gid, size, mtime FROM entry WHERE pid = $p AND name = $n"),
    READ("listdir", 1000,
         "SELECT name, id, kind FROM entry WHERE pid = $p AND name > $a ORDER BY name LIMIT 1000"),
    {"upsert",
     "func",
     1,
     {"INSERT INTO kv (key, value) VALUES ($k, $v)"
      " ON CONFLICT (key) DO UPDATE SET value = excluded.value"}},
    {0},
};
