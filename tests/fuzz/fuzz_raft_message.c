/*
 * Any bytes as messages of a group: decode them, and let a small core take them.
 *
 * The input is a list of messages: two bytes of length, that many bytes. What is accepted must be
 * encoded to something that decodes to the same. The core of three voters has a few entries and is
 * follower or leader by the first byte; between messages time passes and its log is stored. Nothing
 * may stop the process: whatever a message says, the core's invariants hold or it is refused.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "raft/message.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void step(struct raft *r, struct raft_input in, uint64_t now_ms)
{
    struct raft_output out;
    in.now_ms = now_ms;
    status st = raft_step(r, &in, &out);
    ASSERT(st == ST_OK || st == ST_PROTOCOL || st == ST_CORRUPT);
    if (out.install) {
        struct raft_snapshot s = *out.install;
        struct raft_input done = {.kind = RAFT_INSTALLED, .now_ms = now_ms, .snapshot = &s};
        ASSERT(raft_step(r, &done, &out) == ST_OK);
    }
}

/* Everything that the core has is durable. */
static void store(struct raft *r, uint64_t now_ms)
{
    struct raft_input in = {
        .kind = RAFT_STORED, .stored_index = raft_last_index(r), .stored_hard = raft_hard_state(r)};
    const struct raft_entry *last = raft_entry_get(r, in.stored_index);
    in.stored_term = last ? last->term : 0;
    step(r, in, now_ms);
}

static void round_trip(const struct raft_message *m)
{
    struct raft_message again;
    struct obuf first, second;
    obuf_init(&first);
    obuf_init(&second);
    raft_message_encode(m, &first);
    ASSERT(raft_message_decode(bytes_make(first.data, first.size), &again) == ST_OK);
    raft_message_encode(&again, &second);
    ASSERT(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    raft_message_fini(&again);
    obuf_fini(&first);
    obuf_fini(&second);
}

static struct raft *core_new(bool leads)
{
    struct raft_config config = {
        .self = 1,
        .members = {.count = 3, .at = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}}},
        .election_ms = 1000,
        .heartbeat_ms = 100,
        .quiesce_ms = 300,
        .seed = 1,
    };
    struct raft *r = raft_new(&config, (struct raft_hard_state){0}, 0, 0);
    step(r, (struct raft_input){.kind = RAFT_CAMPAIGN}, 1);
    for (unsigned pre = 0; leads && pre < 2; pre++) {
        struct raft_message m = {.kind = RAFT_MSG_VOTE_REPLY, .from = 2, .to = 1, .term = 1};
        m.vote_reply.pre = pre == 0;
        m.vote_reply.granted = true;
        step(r, (struct raft_input){.kind = RAFT_MESSAGE, .message = &m}, 1);
        store(r, 1);
    }
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader in = reader_make(bytes_make(data, size));
    uint8_t flags = get_u8(&in);
    struct raft *r = core_new(flags & 1);
    uint64_t now_ms = 1;

    while (in.next != in.end && !in.bad) {
        struct raft_message m;
        size_t n = get_u16(&in), left = (size_t)(in.end - in.next);
        bytes one = get_raw(&in, n < left ? n : left);
        if (raft_message_decode(one, &m) == ST_OK) {
            round_trip(&m);
            step(r, (struct raft_input){.kind = RAFT_MESSAGE, .message = &m}, now_ms);
            raft_message_fini(&m);
        }
        now_ms += 60;
        if (flags & 2)
            store(r, now_ms);
        if (raft_next_tick_ms(r) <= now_ms)
            step(r, (struct raft_input){.kind = RAFT_TICK}, now_ms);
        if (raft_commit_index(r) > 0 && (flags & 4))
            raft_applied(r, raft_commit_index(r));
    }
    raft_free(r);
    return 0;
}
