/*
 * kv/command.h — what a Raft entry of a shard carries.
 *
 *   version(1) kind(1) stamp(8) snapshot(8) origin: incarnation(8) sequence(8) since(8) | body
 *
 * OPS: operations that succeed or fail together. TXN: a write set. ITEMS: quota and index items of
 * another shard's queue. ACK: items delivered. TICK: moves log time. The top bit of the kind says
 * that the command may be sent again. Decoding never trusts.
 */
#ifndef KV_COMMAND_H
#define KV_COMMAND_H

#include "kv/txn.h"

enum kv_command_kind { KV_CMD_OPS = 1, KV_CMD_TXN, KV_CMD_ITEMS, KV_CMD_ACK, KV_CMD_TICK };

struct kv_origin {
    uint64_t incarnation, sequence; /* of the process that made it; its number there */
    hlc_ts since;                   /* what was applied somewhere when it was made, see dedup.h */
    bool again;                     /* it may be sent again: its answer is remembered */
};
struct kv_command {
    enum kv_command_kind kind;
    hlc_ts stamp;    /* set by the leader just before it proposes: kv_command_stamp */
    hlc_ts snapshot; /* TXN; refused when more than LIMIT_TXN_MS older than the stamp */
    struct kv_origin origin;
    bytes body;
};

/* OUT: header and body. */
void kv_command_ops(struct obuf *out, const struct kv_op *const *ops, unsigned count,
                    struct kv_origin origin);
void kv_command_txn(struct obuf *out, const struct kv_txn *t, hlc_ts snapshot,
                    struct kv_origin origin);
/* RECORDS: stamped queue records of shard SOURCE, see aux.h, oldest first. TABLES: which items the
 * receiver takes, bits as in kv_items_destinations; a receiver keeps a watermark for each bit. */
struct kv_queue_record {
    hlc_ts ts;
    bytes items;
};
void kv_command_items(struct obuf *out, unsigned tables, uint64_t source,
                      const struct kv_queue_record *records, unsigned count,
                      struct kv_origin origin);
void kv_command_ack(struct obuf *out, hlc_ts up_to, struct kv_origin origin);
void kv_command_tick(struct obuf *out);
void kv_command_stamp(void *encoded, hlc_ts stamp); /* patches the header in place */
void kv_command_renew(void *encoded, hlc_ts since); /* the same, its origin */

NODISCARD status kv_command_decode(bytes in, struct kv_command *out);

/* Applies one committed entry to STATE: begin, run, publish, end. The answer of the statement (also
 * an error such as 23505) is in OUT with the return value ST_OK; the state has then taken the
 * entry. TIER: KV_TIER_CACHE, or KV_TIER_ANY to wait for the disk. ST_COLD, at KV_TIER_CACHE:
 * nothing changed; prefetch cold_key (in A), apply again. ST_CORRUPT, ST_IO: nothing changed; fence
 * the shard. A is reset by the caller. Deterministic. */
struct kv_applied {
    status outcome;          /* what to answer */
    struct kv_result result; /* OPS: of the last operation, `affected` summed over all; in A */
    struct err err;
    unsigned failed_op; /* OPS: which one the error is from */
    bytes cold_key;
};
NODISCARD status kv_apply(struct kv_state *s, uint64_t index, uint64_t term, bytes command,
                          enum kv_tier tier, struct arena *a, struct kv_applied *out);

#endif
