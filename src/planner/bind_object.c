/*
 * planner/bind_object.c — what the tables object and lifecycle have, and the two tables that the
 * server maintains and clients only read.
 */
#include "planner/pl_internal.h"

const struct pl__rules pl__rules_object = {
    .get = PATTERN_OBJECT_GET,
    .get_many = PATTERN_OBJECT_GET,
    .list = PATTERN_OBJECT_LIST,
    .count = PATTERN_OBJECT_COUNT,
    .scan = PATTERN_OBJECT_SCAN,
    .insert = PATTERN_OBJECT_PUT,
    .upsert = PATTERN_OBJECT_PUT,
    .update = PATTERN_OBJECT_SET,
    .remove = PATTERN_OBJECT_REMOVE,
    .remove_many = PATTERN_OBJECT_REMOVE,
    .remove_range = PATTERN_OBJECT_REMOVE_RANGE,
};

const struct pl__rules pl__rules_quota = {
    .get = PATTERN_QUOTA_GET,
    .get_many = PATTERN_QUOTA_GET,
    .list = PATTERN_QUOTA_LIST,
    .count = PATTERN_QUOTA_LIST,
    .scan = PATTERN_QUOTA_LIST,
};

const struct pl__rules pl__rules_index = {
    .get = PATTERN_INDEX_GET,
    .get_many = PATTERN_INDEX_GET,
    .list = PATTERN_INDEX_GET,
    .count = PATTERN_INDEX_GET,
    .scan = PATTERN_INDEX_SCAN,
};

const struct pl__rules pl__rules_lifecycle = {
    .get = PATTERN_LIFECYCLE_LIST,
    .get_many = PATTERN_LIFECYCLE_LIST,
    .list = PATTERN_LIFECYCLE_LIST,
    .count = PATTERN_LIFECYCLE_LIST,
    .scan = PATTERN_LIFECYCLE_LIST,
    .insert = PATTERN_LIFECYCLE_PUT,
    .upsert = PATTERN_LIFECYCLE_PUT,
    .update = PATTERN_LIFECYCLE_SET,
    .remove = PATTERN_LIFECYCLE_REMOVE,
    .remove_many = PATTERN_LIFECYCLE_REMOVE,
    .remove_range = PATTERN_LIFECYCLE_REMOVE,
};

const struct pl__rules pl__rules_none = {.get = PATTERN_NONE};
