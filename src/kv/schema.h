/*
 * kv/schema.h — the fixed tables: columns in SQL order, their types and keys.
 *
 * Column numbers are part of the row format on disk: append only.
 */
#ifndef KV_SCHEMA_H
#define KV_SCHEMA_H

#include "base/bytes.h"
#include "base/limits.h"

enum kv_type {
    KV_INT2 = 1,
    KV_INT4,
    KV_INT8,
    KV_CHAR, /* PostgreSQL's "char": one byte, held in datum.i */
    KV_TEXT,
    KV_BYTEA,
    KV_TIMESTAMPTZ, /* microseconds since 2000-01-01 UTC, as in PostgreSQL */
    KV_INTERVAL,    /* microseconds */
};

/* Table numbers begin every key, so they are on disk. */
enum kv_table {
    KV_META = 1,
    KV_QUOTA = 2,
    KV_INDEX = 3, /* secondary_index */
    KV_OBJECT = 4,
    KV_LIFECYCLE = 5,
    KV_KV = 6,
    /* hidden from SQL */
    KV_QUEUE = 0x20,  /* undelivered quota and index items of a shard */
    KV_MARK = 0x21,   /* watermarks of items received, by origin */
    KV_LOCK = 0x22,   /* rename lock, range locks */
    KV_SYSTEM = 0x7f, /* one record per shard: applied index, counters */
};

enum kv_meta_column {
    META_PID,
    META_NAME,
    META_ID,
    META_TYPE,
    META_MODE,
    META_UID,
    META_GID,
    META_SIZE,
    META_NLINK,
    META_NUM_CHILDREN,
    META_PARENT,
    META_ATIME,
    META_MTIME,
    META_CTIME,
    META_BTIME,
    META_RDEV,
    META_FID,
    META_CLASS,
    META_ATTR,
    META_SEQ,
    META_COLUMNS
};
enum kv_quota_column { QUOTA_UID, QUOTA_NAME, QUOTA_VALUE, QUOTA_AS_OF, QUOTA_COLUMNS };
enum kv_index_column { INDEX_FID, INDEX_PID, INDEX_NAME, INDEX_ID, INDEX_AS_OF, INDEX_COLUMNS };
enum kv_object_column {
    OBJECT_BUCKET,
    OBJECT_KEY,
    OBJECT_SIZE,
    OBJECT_ETAG,
    OBJECT_MTIME,
    OBJECT_EXPIRES_AT,
    OBJECT_ATTR,
    OBJECT_SEQ,
    OBJECT_COLUMNS
};
enum kv_lifecycle_column {
    LIFECYCLE_BUCKET,
    LIFECYCLE_PREFIX,
    LIFECYCLE_EXPIRE_AFTER,
    LIFECYCLE_COLUMNS
};
enum kv_kv_column { KVT_KEY, KVT_VALUE, KVT_SEQ, KVT_EXPIRES_AT, KVT_COLUMNS };

struct kv_column {
    const char *name;
    enum kv_type type;
    bool key;       /* part of the primary key; NOT NULL */
    bool not_null;  /* an explicit NULL is 23502 */
    bool read_only; /* set by the server: seq, num_children, parent, as_of */
};

struct kv_table_def {
    enum kv_table table;
    const char *name; /* as in SQL */
    const char *pkey; /* constraint name */
    const struct kv_column *columns;
    unsigned column_count;
    unsigned key_count; /* the key is the first columns */
    int seq_column;     /* -1 if none: its value is the version's stamp, not stored in the row */
    bool read_only;
};

#define KV_TABLES 6u                                    /* visible ones, numbered from KV_META on */
extern const struct kv_table_def kv__tables[KV_TABLES]; /* for kv_table_def */

/* NULL for a hidden or unknown table. */
static inline const struct kv_table_def *kv_table_def(enum kv_table t)
{
    unsigned i = (unsigned)t - (unsigned)KV_META;
    return i < KV_TABLES ? &kv__tables[i] : NULL;
}

/* A set of columns: bit i is column i. */
typedef uint32_t kv_column_set;
#define KV_ALL_COLUMNS UINT32_MAX
_Static_assert(LIMIT_COLUMNS <= 32, "a set of columns has a bit for each");
static inline kv_column_set kv_column_bit(unsigned column)
{
    return (kv_column_set)1 << column;
}

const struct kv_table_def *kv_table_by_name(bytes name);
int kv_column_by_name(const struct kv_table_def *t, bytes name); /* -1 if unknown */
/* Visible tables in a fixed order, for catalogues. */
const struct kv_table_def *kv_table_at(unsigned i); /* NULL past the end */

#define KV_ATTR_NAME BYTES_LIT("_attr_")
#define KV_ROOT_ID 0
#define KV_TYPE_DIR 'd'
#define KV_TYPE_FILE 'f'

#endif
