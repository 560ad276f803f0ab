/*
 * kv/state_internal.h — what the files behind state.h share: state.c, attr_delta.c, scan.c,
 * flush.c, queue.c, hash.c. Nobody else includes it.
 */
#ifndef KV_STATE_INTERNAL_H
#define KV_STATE_INTERNAL_H

#include "base/buf.h"
#include "base/hash.h"
#include "kv/recent.h"
#include "kv/state.h"

#include <pthread.h>

/* -- the queue of items for the sink ----------------------------------------------------------- */

struct kv__queued {
    hlc_ts ts;
    struct buf *items; /* counted */
};

/* Undelivered records, oldest first, in a ring whose capacity is a power of two. */
struct kv__queue {
    struct kv__queued *ring;
    size_t head, count, capacity;
    uint64_t byte_count;
};

void kv__queue_push_take(struct kv__queue *q, hlc_ts ts, struct buf *items);
void kv__queue_drop(struct kv__queue *q, hlc_ts up_to);
void kv__queue_fini(struct kv__queue *q);
struct kv__queued *kv__queue_at(const struct kv__queue *q, size_t i);
/* First record with a stamp above AFTER; the count if there is none. */
size_t kv__queue_above(const struct kv__queue *q, hlc_ts after);
/* Two rings are in the store: what is queued for the sink, and answers (dedup.h); and what looks
 * like a third (recent.h). */
enum kv__ring { KV__RING_QUEUE, KV__RING_ANSWERS, KV__RING_RECENT };
/* What the store has of SHARD's ring: stamps above DROPPED, none above APPLIED; into an empty one.
 */
NODISCARD status kv__queue_load(struct kv_store *store, enum kv__ring which, uint64_t shard,
                                hlc_ts dropped, hlc_ts applied, struct kv__queue *out);

/* -- answers, see dedup.h ---------------------------------------------------------------------- */

struct kv__dedup {
    struct kv__queue ring;
    struct hash by_id; /* of the ring's entries */
};

void kv__dedup_init(struct kv__dedup *d);
void kv__dedup_fini(struct kv__dedup *d);
void kv__dedup_add_take(struct kv__dedup *d, hlc_ts ts, struct buf *entry);
/* What the store has, whose record is RECORD. OUT is to be given to kv__dedup_fini, also on error.
 */
NODISCARD status kv__dedup_load(struct kv_store *store, uint64_t shard,
                                const struct kv_shard_record *record, struct kv__dedup *out);

/* -- generations ------------------------------------------------------------------------------ */

struct kv__generation {
    _Atomic uint32_t refs;
    struct kv_memtable *mem;
    /* Set by the seal, constant afterwards: the state at the end of this generation. */
    struct kv_shard_record record;
    /* Of each ring: pushed in this generation and still there at its seal; counted. */
    struct kv__sealed_ring {
        struct kv__queued *at;
        size_t count;
    } sealed[2];
};

/* An immutable array, newest first; gen[0] is the active one. */
struct kv__list {
    _Atomic uint32_t refs;
    unsigned count;
    uint64_t epoch; /* counts what was taken out: with it the store changed for good */
    struct kv__generation *gen[];
};

struct kv__generation *kv__generation_ref(struct kv__generation *g);
void kv__generation_unref(struct kv__generation *g);
/* A counted list, from a thread inside an RCU section, or with POOL from one that is outside. */
struct kv__list *kv__list_ref(const struct kv_state *s, bool pool);
/* The same from a thread of which nothing is known; takes the lock. */
struct kv__list *kv__list_ref_locked(struct kv_state *s);
void kv__list_unref(struct kv__list *l);
/* Owner: publishes NEXT (taken over) and releases the list before it after a grace period. */
void kv__list_publish_take(struct kv_state *s, struct kv__list *next);
struct kv__list *kv__list_new(unsigned count);

struct kv_state {
    struct kv_store *store;
    struct kv_state_options options;
    _Atomic(struct kv__list *) list; /* rcu */
    pthread_mutex_t list_lock;       /* list replaced by the owner, counted by kv_state_hash */
    _Atomic hlc_ts applied_ts;       /* as of the last whole command */
    _Atomic hlc_ts flushed_ts;       /* the store may hold state up to here */
    _Atomic uint64_t persisted_index;
    _Atomic(const void *) writer; /* identity of the thread inside a command, or NULL */
    _Atomic(const void *) owner;  /* of the thread that ran the last command */
    /* owner */
    struct kv_shard_record record;
    uint64_t persisted_term;     /* of persisted_index */
    struct kv_shard_record next; /* the record under way, inside a command */
    hlc_ts sealed_ts;            /* stamp of the last seal */
    bool in_command, pushed, dirty, flushing;
    struct kv__queue queue;
    struct kv__dedup dedup;
    struct kv__recent recent; /* changes that are no versions in memory; none if none is young */
    struct kv_density *density;
    struct kv__attr_cache *attr_cache; /* NULL until the first row from the store */
    uint64_t system_writes, rule_writes;
    atomic_bool has_rules; /* false: there is and was no row of lifecycle */
    struct kv_state_stats stats;
};

/* Is this the thread that runs the commands? Then it may touch what only the owner does. */
bool kv__owner_here(const struct kv_state *s);
/* Owner: memory is empty again, the store holds what RECORD, QUEUE, DEDUP and RECENT say. Takes
 * these three. */
void kv__state_replace_take(struct kv_state *s, const struct kv_shard_record *record,
                            struct kv__queue *queue, struct kv__dedup *dedup,
                            struct kv__recent *recent);
/* Since when changes before a seal at TS matter to a transaction behind it. */
static inline hlc_ts kv__recent_since(hlc_ts ts)
{
    return ts > hlc_ms(LIMIT_TXN_MS) ? ts - hlc_ms(LIMIT_TXN_MS) - 1 : 0;
}
/* Before the store shows state up to TS. Whoever is about to change the store. */
void kv__raise_flushed(struct kv_state *s, hlc_ts ts);
/* What VIEW may see: a stamp. */
hlc_ts kv__view_stamp(const struct kv_view *v);

/* -- values in the store ---------------------------------------------------------------------- */

/* stamp | row, for an _attr_ key stamp | folded | row. FOLDED: deltas up to it are in the row. */
struct kv__stored {
    hlc_ts ts, folded;
    bytes row;
};

NODISCARD status kv__stored_decode(bytes key, bytes value, struct kv__stored *out);
void kv__stored_encode(bytes key, const struct kv__stored *in, struct obuf *out);

/* table | ring | shard [| stamp] */
#define KV__QUEUE_KEY_SIZE (KV_KEY_HEADER + 16)
#define KV__RECORD_KEY_SIZE (KV_KEY_HEADER + 8)
bytes kv__queue_key(uint8_t out[KV__QUEUE_KEY_SIZE], enum kv__ring which, uint64_t shard,
                    hlc_ts ts);
bytes kv__record_key(uint8_t out[KV__RECORD_KEY_SIZE], uint64_t shard);
void kv__record_encode(const struct kv_shard_record *r, struct obuf *out);
NODISCARD status kv__record_decode(bytes value, struct kv_shard_record *out);
/* The record of SHARD at TIER; all zero for a shard that has none. */
NODISCARD status kv__record_load(struct kv_store *store, uint64_t shard, enum kv_tier tier,
                                 struct kv_shard_record *out);

/* -- versions and attributes ------------------------------------------------------------------- */

static inline const struct kv_version *kv__visible(const struct kv_version *v, hlc_ts at)
{
    while (v != NULL && v->ts > at)
        v = v->older;
    return v;
}

/* The _attr_ key KEY over LIST and the store. KNOWN: what the store has under KEY (row.data NULL:
 * nothing); NULL: ask the store as VIEW says. */
NODISCARD status kv__attr_get(const struct kv_view *v, const struct kv__list *list, hlc_ts at,
                              bytes key, const struct kv__stored *known, struct kv_cell *out);
void kv__attr_cache_free(struct kv__attr_cache *c);
/* ROW, a row of meta, with D added to its aggregates. Appends to OUT. */
NODISCARD status kv__attr_fold(bytes row, const struct kv_delta *d, struct obuf *out);
/* KEY in the store as VIEW says. ST_NOT_FOUND; ST_CONFLICT for a snapshot that is too old. */
NODISCARD status kv__store_get(const struct kv_view *v, hlc_ts at, bytes key,
                               struct kv__stored *out);

/* A scan over LIST, whose count it takes over. */
struct kv_scan *kv__scan_open_take(const struct kv_view *v, struct kv__list *list, bytes lower,
                                   bytes upper, bool backwards);

#endif
