/*
 * bench/forms_redis.c — the same work on Redis: functions of the library in redis_library, so that
 * an operation is one command and all or nothing.
 *
 *   d:P  names of directory P, a sorted set of equal scores    m:P:N  an entry's attributes
 *   a:P  the directory's attributes                            f:I    index of file ids
 *   q:U  the owner's counts                                    k..    keys
 */
#include "prepare.h"
#include "workload.h"

const char *const redis_library =
    "#!lua name=meta\n"
    "local function enter(p, n, row)\n"
    "  if redis.call('ZADD', 'd:' .. p, 'NX', 0, n) == 0 then return false end\n"
    "  redis.call('SET', 'm:' .. p .. ':' .. n, row)\n"
    "  redis.call('HINCRBY', 'a:' .. p, 'children', 1)\n"
    "  redis.call('HSET', 'a:' .. p, 'mtime', n)\n"
    "  return true\n"
    "end\n"
    "local function leave(p, n)\n"
    "  if redis.call('ZREM', 'd:' .. p, n) == 0 then return false end\n"
    "  redis.call('DEL', 'm:' .. p .. ':' .. n)\n"
    "  redis.call('HINCRBY', 'a:' .. p, 'children', -1)\n"
    "  redis.call('HSET', 'a:' .. p, 'mtime', n)\n"
    "  return true\n"
    "end\n"
    "local function row(id, kind)\n"
    "  return id .. ' ' .. kind .. ' 420 1000 1000 0 1700000000000000 1700000000000000'\n"
    "end\n"
    "redis.register_function('create', function(keys, a)\n"
    "  return enter(a[1], a[2], row(a[3], 'f')) and 1 or 0\n"
    "end)\n"
    "redis.register_function('create_full', function(keys, a)\n"
    "  if not enter(a[1], a[2], row(a[3], 'f')) then return 0 end\n"
    "  redis.call('SET', 'f:' .. a[3], a[1] .. '/' .. a[2])\n"
    "  redis.call('HINCRBY', 'q:' .. a[4], 'files', 1)\n"
    "  return 1\n"
    "end)\n"
    "redis.register_function('mkdir', function(keys, a)\n"
    "  if not enter(a[1], a[2], row(a[3], 'd')) then return 0 end\n"
    "  redis.call('HSET', 'a:' .. a[3], 'children', 0, 'parent', a[1], 'mtime', a[2])\n"
    "  return 1\n"
    "end)\n"
    "redis.register_function('remove', function(keys, a)\n"
    "  return leave(a[1], a[2]) and 1 or 0\n"
    "end)\n"
    "redis.register_function('rmdir', function(keys, a)\n"
    "  local entry = redis.call('GET', 'm:' .. a[1] .. ':' .. a[2])\n"
    "  if not entry then return 0 end\n"
    "  local id = string.match(entry, '^%d+')\n"
    "  if redis.call('HGET', 'a:' .. id, 'children') ~= '0' then return 0 end\n"
    "  redis.call('DEL', 'a:' .. id)\n"
    "  return leave(a[1], a[2]) and 1 or 0\n"
    "end)\n"
    "redis.register_function('rename', function(keys, a)\n"
    "  local entry = redis.call('GET', 'm:' .. a[1] .. ':' .. a[2])\n"
    "  if not entry or not enter(a[3], a[4], entry) then return 0 end\n"
    "  return leave(a[1], a[2]) and 1 or 0\n"
    "end)\n";

const struct form forms_redis[] = {
    {"create", "lua", 1, {"FCALL create 0 $p $n $i"}},
    {"create_full", "lua", 1, {"FCALL create_full 0 $p $n $i $u"}},
    {"mkdir", "lua", 1, {"FCALL mkdir 0 $p $n $i"}},
    {"delete", "lua", 1, {"FCALL remove 0 $p $n"}},
    {"rmdir", "lua", 1, {"FCALL rmdir 0 $p $n"}},
    {"rename", "lua", 1, {"FCALL rename 0 $p $n $d $n"}},
    {"dirstat", "", 2, {"HMGET a:$p children mtime"}},
    {"lookup", "", 1, {"GET m:$p:$n"}},
    {"listdir", "", 1000, {"ZRANGE d:$p ($a + BYLEX LIMIT 0 1000"}},
    {"upsert", "", 1, {"SET $k $v"}},
    {0},
};
