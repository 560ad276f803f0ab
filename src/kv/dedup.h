/*
 * kv/dedup.h — the answers of commands that may be sent again.
 *
 * A command whose origin says so has an id, (incarnation, sequence), and the log time that was
 * known when it was made (`since`). Its first application is remembered with its answer; a
 * second one changes nothing and gets that answer. The memory is bounded by count, bytes and log
 * time; what leaves it raises `answers_dropped`, and a command made before that stamp is refused:
 * whether it was done can no longer be told.
 *
 * Part of the replicated state: in the store beside the generation in which it was remembered, in
 * snapshots and in the hash. No clock, no randomness.
 */
#ifndef KV_DEDUP_H
#define KV_DEDUP_H

#include "kv/command.h"

/* The same on all replicas, or they diverge. */
#define KV_DEDUP_COUNT_MAX 65536u
#define KV_DEDUP_BYTES_MAX (16u << 20)
#define KV_DEDUP_SECONDS 30
/* Of one answer; of a longer one it is only remembered that it was given. */
#define KV_DEDUP_ANSWER_MAX (64u << 10)

/* Was the command of ORIGIN done, which is about to be applied at STAMP? ST_NOT_FOUND: it was not.
 * ST_OK: OUT is its answer, or 40003 where that cannot be told; memory from A. ST_CORRUPT. */
NODISCARD status kv_dedup_recall(const struct kv_state *s, const struct kv_origin *origin,
                                 hlc_ts stamp, struct arena *a, struct kv_applied *out);
/* Inside the command of ORIGIN: remembers its answer and forgets what is beyond the bounds. */
void kv_dedup_remember(struct kv_state *s, const struct kv_origin *origin,
                       const struct kv_applied *answer);

struct kv_dedup_stats {
    uint64_t answers, bytes;
    hlc_ts dropped;
};
void kv_dedup_stats(const struct kv_state *s, struct kv_dedup_stats *out);

#endif
