/*
 * kv/lifecycle.h — which objects have expired by the rules of table lifecycle.
 *
 * A rule (bucket, prefix, expire_after) says: an object of the bucket whose key begins with the
 * prefix has expired when its mtime and expire_after are over. That holds from the moment the rule
 * is there, for all that reads and writes; taking such objects away is handler_expire.c's, and
 * changes no answer. Rules are rows of the same shard, read at the same snapshot as the objects.
 */
#ifndef KV_LIFECYCLE_H
#define KV_LIFECYCLE_H

#include "kv/txn.h"

/* Rules of a namespace: more are refused. */
#define KV_RULES_MAX 1000u

struct kv_rule {
    bytes bucket, prefix;
    int64_t after; /* microseconds */
};
struct kv_rules {
    const struct kv_rule *rule; /* in the order of (bucket, prefix) */
    unsigned count;
};

/* The rules for objects with keys in [LOWER, UPPER), which lie in one namespace. Memory from A.
 * ST_COLD and what a scan gives otherwise. Costs next to nothing where there never was a rule. */
NODISCARD status kv_rules_load(struct kv_txn *t, struct arena *a, bytes lower, bytes upper,
                               struct kv_rules *out);
/* When ROW of object expires by RULES or by its expires_at; INT64_MAX: never. Looks at bucket, key,
 * mtime and expires_at. */
int64_t kv_object_due(const struct kv_rules *rules, const struct kv_row *row);

/* -- taking away what has expired: a look beside the commands, then KV_OP_EXPIRE --------------- */

#define KV_EXPIRE_KEYS 512u /* objects that one command takes away at most */

/* Where a walk over all rules of a namespace stands. Zero at the start. */
struct kv_expire_walk {
    bool whole;  /* in: looks at every object; else it leaves a rule where keys go by time and the
                   * expired ones are behind it */
    int64_t due; /* out, at the end: when to look again; INT64_MAX: there are no rules */
    size_t rule_size, at_size;
    uint8_t rule[KV_KEY_MAX];   /* of lifecycle: whose objects are looked at; empty: the first */
    uint8_t at[KV_KEY_MAX + 1]; /* of object: the next one; empty: the rule's first */
    bool by_time;               /* no object of the rule so far was older than one before it */
    int64_t mtime;              /* of the last one */
    unsigned alive;             /* objects of the rule that have not expired, in a row */
};
/* The next stretch of expired objects at NOW: keys [*LOWER, *UPPER) in VIEW's arena, both empty if
 * a bounded number of objects was looked at in vain. ST_END: that was all, W is as at the start but
 * for `due`. Any thread that may read. */
NODISCARD status kv_expire_find(const struct kv_view *view, uint32_t ns, int64_t now,
                                struct kv_expire_walk *w, bytes *lower, bytes *upper);

#endif
