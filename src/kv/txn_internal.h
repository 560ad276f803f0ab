/*
 * kv/txn_internal.h — inside kv: the parts of a write set, for txn.c, txn_scan.c and txn_commit.c.
 * Vocabulary and invariants: head of txn.c.
 */
#ifndef KV_TXN_INTERNAL_H
#define KV_TXN_INTERNAL_H

#include "kv/handler.h"
#include "kv/txn.h"

#define KV_TXN_NONE UINT32_MAX
#define KV_ABSENT_REMEMBERED 4u
#define KV_ABSENT_KEY_BYTES 288u

enum kv_write_kind { KV_WRITE_PUT = 1, KV_WRITE_DELETE, KV_WRITE_LOCK };

/* The row of a directory whose aggregates come from the state at publish. */
struct kv_dir_write {
    struct kv_row row;
    struct kv_times_set set;
    bool born;            /* the directory is new in this write set: no base */
    int64_t own_at_birth; /* own children counted before */
    int64_t base_children, base_mtime, base_ctime;
};
struct kv_write {
    uint32_t slot, prev;
    enum kv_write_kind kind;
    bytes row;                /* PUT of anything but a directory's own row */
    struct kv_dir_write *dir; /* PUT of one */
};
struct kv_slot {
    bytes key;
    uint64_t hash;
    uint32_t write, delta;
    bool fresh;
};
struct kv_own_delta {
    uint32_t slot, prev;
    int64_t children;     /* sum since the write set began */
    int64_t mtime, ctime; /* largest since the slot's last PUT; INT64_MIN = none */
};
struct kv_require {
    bytes attr_key;
    bool empty;
    int64_t own_children; /* EMPTY: own deltas when it was asked */
};

struct kv_txn {
    struct arena *a;
    struct kv_view view;
    hlc_ts stamp;

    struct kv_slot *slots;
    uint32_t slot_count, slot_capacity;
    uint32_t *index; /* open addressing over slots; NULL up to LINEAR_SLOTS */
    uint32_t index_size;

    struct kv_write *writes;
    uint32_t write_count, write_capacity, write_floor;
    struct kv_own_delta *deltas;
    uint32_t delta_count, delta_capacity, delta_floor;
    uint32_t horizon; /* writes from here on are hidden from reads; KV_TXN_NONE: none is */
    struct kv_require *requires;
    uint32_t require_count, require_capacity;
    bytes *items;
    uint32_t item_count, item_capacity;
    uint64_t file_ids;

    uint32_t *sorted; /* slots in key order, for scans */
    uint32_t sorted_count;

    unsigned absent_next;
    bytes cold_key;
    struct {
        size_t size;
        uint8_t key[KV_ABSENT_KEY_BYTES];
    } absent[KV_ABSENT_REMEMBERED]; /* last: kv_txn_new */
};

/* Makes room for one more element. The old array stays in the arena. */
#define KV_TXN_GROW(t, array, count, capacity)                                                     \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            uint32_t grown_ = (capacity) != 0 ? (capacity)*2 : 8;                                  \
            void *new_ = arena_alloc((t)->a, sizeof *(array)*grown_);                              \
            if ((count) > 0)                                                                       \
                memcpy(new_, (array), sizeof *(array) * (count));                                  \
            (array) = new_;                                                                        \
            (capacity) = grown_;                                                                   \
        }                                                                                          \
    } while (0)

/* The slot of KEY, or KV_TXN_NONE. */
uint32_t kv__slot_find(const struct kv_txn *t, bytes key);
/* The slot's newest PUT or DELETE, or NULL. A lock is written only where there is neither. */
const struct kv_write *kv__slot_row(const struct kv_txn *t, uint32_t slot);
/* Children counted for the directory as it is now: what came before its birth was another one's. */
int64_t kv__live_children(const struct kv_txn *t, uint32_t slot, const struct kv_write *w);
/* Adds the slot's own deltas to CELL, which is the state's. */
void kv__add_own_delta(const struct kv_txn *t, uint32_t slot, struct kv_cell *cell);
/* The cell of an own PUT. */
NODISCARD status kv__own_cell(struct kv_txn *t, const struct kv_write *w, struct kv_cell *out);
/* The aggregates of a directory that was written here, over the base kept in the write. */
void kv__dir_aggregates(const struct kv_txn *t, const struct kv_write *w, struct kv_cell *out);
/* The row bytes of a directory with aggregates AGG. */
bytes kv__dir_row_bytes(struct arena *a, const struct kv_dir_write *d, const struct kv_cell *agg);
/* What the state has for a directory written here, as of now. ST_NOT_FOUND, ST_COLD. */
NODISCARD status kv__refresh_base(struct kv_txn *t, bytes key, struct kv_dir_write *d);
/* A write of KEY to fill in. ST_LIMIT. */
NODISCARD status kv__write_add(struct kv_txn *t, bytes key, enum kv_write_kind kind,
                               struct kv_write **out);

#endif
