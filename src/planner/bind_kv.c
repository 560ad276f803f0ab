/* planner/bind_kv.c — what the table kv has: every form of bind_table.c, upsert among them. */
#include "planner/pl_internal.h"

const struct pl__rules pl__rules_kv = {
    .get = PATTERN_KV_GET,
    .get_many = PATTERN_KV_GET_MANY,
    .list = PATTERN_KV_LIST,
    .count = PATTERN_KV_LIST,
    .scan = PATTERN_KV_LIST,
    .insert = PATTERN_KV_INSERT,
    .upsert = PATTERN_KV_UPSERT,
    .update = PATTERN_KV_UPDATE,
    .remove = PATTERN_KV_REMOVE,
    .remove_many = PATTERN_KV_REMOVE,
    .remove_range = PATTERN_KV_REMOVE_RANGE,
};
