/*
 * The fixed tables of SQL.md 2 as constants.
 *
 * A column's position here is its number in row bytes and in plans; a new column goes to the end
 * of its table. Only `id` and `type` of meta are NOT NULL besides the keys: the row of a directory
 * in its parent, and a further hard link of a file, hold nothing else.
 */
#include "kv/schema.h"

/* clang-format off */
#define KEY(n, t) {.name = (n), .type = (t), .key = true, .not_null = true}
#define COL(n, t) {.name = (n), .type = (t)}
#define COL_NOT_NULL(n, t) {.name = (n), .type = (t), .not_null = true}
#define COL_SERVER(n, t) {.name = (n), .type = (t), .read_only = true}
/* clang-format on */

static const struct kv_column meta_columns[META_COLUMNS] = {
    [META_PID] = KEY("pid", KV_INT8),
    [META_NAME] = KEY("name", KV_TEXT),
    [META_ID] = COL_NOT_NULL("id", KV_INT8),
    [META_TYPE] = COL_NOT_NULL("type", KV_CHAR),
    [META_MODE] = COL("mode", KV_INT4),
    [META_UID] = COL("uid", KV_INT8),
    [META_GID] = COL("gid", KV_INT8),
    [META_SIZE] = COL("size", KV_INT8),
    [META_NLINK] = COL("nlink", KV_INT4),
    [META_NUM_CHILDREN] = COL_SERVER("num_children", KV_INT8),
    [META_PARENT] = COL_SERVER("parent", KV_INT8),
    [META_ATIME] = COL("atime", KV_TIMESTAMPTZ),
    [META_MTIME] = COL("mtime", KV_TIMESTAMPTZ),
    [META_CTIME] = COL("ctime", KV_TIMESTAMPTZ),
    [META_BTIME] = COL("btime", KV_TIMESTAMPTZ),
    [META_RDEV] = COL("rdev", KV_INT8),
    [META_FID] = COL("fid", KV_INT8),
    [META_CLASS] = COL("class", KV_INT2),
    [META_ATTR] = COL("attr", KV_BYTEA),
    [META_SEQ] = COL_SERVER("seq", KV_INT8),
};

static const struct kv_column quota_columns[QUOTA_COLUMNS] = {
    [QUOTA_UID] = KEY("uid", KV_INT8),
    [QUOTA_NAME] = KEY("name", KV_TEXT),
    [QUOTA_VALUE] = COL("value", KV_INT8),
    [QUOTA_AS_OF] = COL_SERVER("as_of", KV_TIMESTAMPTZ),
};

static const struct kv_column index_columns[INDEX_COLUMNS] = {
    [INDEX_FID] = KEY("fid", KV_INT8),
    [INDEX_PID] = KEY("pid", KV_INT8),
    [INDEX_NAME] = KEY("name", KV_TEXT),
    [INDEX_ID] = COL("id", KV_INT8),
    [INDEX_AS_OF] = COL_SERVER("as_of", KV_TIMESTAMPTZ),
};

static const struct kv_column object_columns[OBJECT_COLUMNS] = {
    [OBJECT_BUCKET] = KEY("bucket", KV_TEXT),
    [OBJECT_KEY] = KEY("key", KV_TEXT),
    [OBJECT_SIZE] = COL("size", KV_INT8),
    [OBJECT_ETAG] = COL("etag", KV_TEXT),
    [OBJECT_MTIME] = COL("mtime", KV_TIMESTAMPTZ),
    [OBJECT_EXPIRES_AT] = COL("expires_at", KV_TIMESTAMPTZ),
    [OBJECT_ATTR] = COL("attr", KV_BYTEA),
    [OBJECT_SEQ] = COL_SERVER("seq", KV_INT8),
};

static const struct kv_column lifecycle_columns[LIFECYCLE_COLUMNS] = {
    [LIFECYCLE_BUCKET] = KEY("bucket", KV_TEXT),
    [LIFECYCLE_PREFIX] = KEY("prefix", KV_TEXT),
    [LIFECYCLE_EXPIRE_AFTER] = COL("expire_after", KV_INTERVAL),
};

static const struct kv_column kv_columns[KVT_COLUMNS] = {
    [KVT_KEY] = KEY("key", KV_TEXT),
    [KVT_VALUE] = COL("value", KV_BYTEA),
    [KVT_SEQ] = COL_SERVER("seq", KV_INT8),
    [KVT_EXPIRES_AT] = COL("expires_at", KV_TIMESTAMPTZ),
};

/* In the order in which catalogues list them, which is the order of their numbers. */
const struct kv_table_def kv__tables[KV_TABLES] = {
    {.table = KV_META,
     .name = "meta",
     .pkey = "meta_pkey",
     .columns = meta_columns,
     .column_count = META_COLUMNS,
     .key_count = 2,
     .seq_column = META_SEQ},
    {.table = KV_QUOTA,
     .name = "quota",
     .pkey = "quota_pkey",
     .columns = quota_columns,
     .column_count = QUOTA_COLUMNS,
     .key_count = 2,
     .seq_column = -1,
     .read_only = true},
    {.table = KV_INDEX,
     .name = "secondary_index",
     .pkey = "secondary_index_pkey",
     .columns = index_columns,
     .column_count = INDEX_COLUMNS,
     .key_count = 3,
     .seq_column = -1,
     .read_only = true},
    {.table = KV_OBJECT,
     .name = "object",
     .pkey = "object_pkey",
     .columns = object_columns,
     .column_count = OBJECT_COLUMNS,
     .key_count = 2,
     .seq_column = OBJECT_SEQ},
    {.table = KV_LIFECYCLE,
     .name = "lifecycle",
     .pkey = "lifecycle_pkey",
     .columns = lifecycle_columns,
     .column_count = LIFECYCLE_COLUMNS,
     .key_count = 2,
     .seq_column = -1},
    {.table = KV_KV,
     .name = "kv",
     .pkey = "kv_pkey",
     .columns = kv_columns,
     .column_count = KVT_COLUMNS,
     .key_count = 1,
     .seq_column = KVT_SEQ},
};

_Static_assert(META_COLUMNS <= LIMIT_COLUMNS, "a row has room for every column of meta");

const struct kv_table_def *kv_table_by_name(bytes name)
{
    for (unsigned i = 0; i < KV_TABLES; i++)
        if (bytes_eq(bytes_str(kv__tables[i].name), name))
            return &kv__tables[i];
    return NULL;
}

int kv_column_by_name(const struct kv_table_def *t, bytes name)
{
    for (unsigned i = 0; i < t->column_count; i++)
        if (bytes_eq(bytes_str(t->columns[i].name), name))
            return (int)i;
    return -1;
}

const struct kv_table_def *kv_table_at(unsigned i)
{
    return i < KV_TABLES ? &kv__tables[i] : NULL;
}
