/*
 * kv/answer.h — what a command was answered, as bytes: for whoever sends it again, and for the node
 * that sent it.
 *
 * Bytes are part of the replicated state and go between nodes: fields are only added behind a new
 * format byte. Decoding never trusts.
 */
#ifndef KV_ANSWER_H
#define KV_ANSWER_H

#include "kv/command.h"

/* Outcome, result and error of A; not its cold key. Appends to OUT. */
void kv_answer_encode(const struct kv_applied *a, struct obuf *out);
/* Fills OUT; rows are in A and borrow the bytes of IN. ST_CORRUPT. */
NODISCARD status kv_answer_decode(bytes in, struct arena *a, struct kv_applied *out);

#endif
