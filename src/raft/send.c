/*
 * raft/send.c — the outputs of a step: messages and entries, lent to the caller until the next.
 *
 * Parts of a step add messages; entries of an append are named by their range and become an array
 * when the step is done, since the ring of the tail may wrap and grow meanwhile. Nothing else of
 * the tail changes between: a leader never truncates.
 */
#include "raft/raft_internal.h"

#include "base/assert.h"

#include <stdlib.h>

struct raft_message *raft__send(struct raft *r, enum raft_message_kind kind, uint64_t to)
{
    ASSERT(to != r->config.self);
    if (r->out_message_count == r->out_message_capacity) {
        r->out_message_capacity = r->out_message_capacity ? 2 * r->out_message_capacity : 4;
        r->out_messages =
            realloc(r->out_messages, r->out_message_capacity * sizeof *r->out_messages);
        ASSERT(r->out_messages != NULL);
    }
    struct raft_message *m = &r->out_messages[r->out_message_count++];
    *m =
        (struct raft_message){.kind = kind, .from = r->config.self, .to = to, .term = r->hard.term};
    return m;
}

struct raft_message *raft__send_lead(struct raft *r, enum raft_message_kind kind,
                                     struct raft__progress *p)
{
    ASSERT(r->role == RAFT_LEADER);
    struct raft_message *m = raft__send(r, kind, p->id);
    m->lead = (struct raft_lead){
        .seq = ++r->seq,
        .sent_ms = r->now_ms,
        .commit = r->commit,
        .settled = r->settled < r->commit ? r->settled : r->commit,
        .read_bound = r->read_bound,
    };
    p->commit_sent = r->commit;
    p->asleep = false; /* whatever comes next wakes it: quiesce.c, Q3 */
    return m;
}

struct raft_message *raft__send_ack(struct raft *r, enum raft_message_kind kind, uint64_t to)
{
    struct raft_message *m = raft__send(r, kind, to);
    uint64_t match = r->verified < r->stored ? r->verified : r->stored;
    if (RAFT_BROKEN(RAFT__BREAK_ACK_UNSTORED))
        match = r->verified;
    m->ack = (struct raft_ack){
        .match = match,
        .last = r->verified,
        .commit = r->commit,
        .read_bound = r->read_bound,
    };
    return m;
}

void raft__outputs_clear(struct raft *r)
{
    r->out_first = 0;
    r->out_proposed = 0;
    r->out_hard = false;
    r->out_role = false;
    r->out_read_token = r->out_read_index = 0;
    r->out_snapshot_for = 0;
    r->out_install = false;
    r->out_message_count = 0;
    if (r->out_boundary) {
        buf_unref(r->boundary.data);
        r->boundary.data = NULL;
        r->out_boundary = false;
    }
}

static void grow(struct raft_entry **array, size_t *capacity, size_t count)
{
    if (count <= *capacity)
        return;
    *array = realloc(*array, count * sizeof **array);
    ASSERT(*array != NULL);
    *capacity = count;
}

static size_t entries_fill(struct raft *r)
{
    size_t count = r->out_first ? (size_t)(raft__tail_last_index(&r->tail) - r->out_first + 1) : 0;

    if (r->out_boundary) {
        ASSERT(count == 0);
        grow(&r->out_entries, &r->out_capacity, 1);
        r->out_entries[0] = r->boundary;
        return 1;
    }
    grow(&r->out_entries, &r->out_capacity, count);
    for (size_t i = 0; i < count; i++)
        r->out_entries[i] = *raft__tail_get(&r->tail, r->out_first + i);
    return count;
}

static void messages_fill(struct raft *r)
{
    size_t count = 0, at = 0;

    for (size_t i = 0; i < r->out_message_count; i++) {
        if (r->out_messages[i].kind == RAFT_MSG_APPEND)
            count += r->out_messages[i].append.count;
    }
    grow(&r->out_sent, &r->out_sent_capacity, count);
    for (size_t i = 0; i < r->out_message_count; i++) {
        struct raft_message *m = &r->out_messages[i];
        if (m->kind != RAFT_MSG_APPEND || m->append.count == 0)
            continue;
        m->append.entries = &r->out_sent[at];
        for (size_t k = 0; k < m->append.count; k++)
            r->out_sent[at++] = *raft__tail_get(&r->tail, m->append.prev_index + 1 + k);
    }
}

void raft__outputs_fill(struct raft *r, struct raft_output *out)
{
    size_t count = entries_fill(r);

    if (r->out_message_count > 0)
        messages_fill(r);
    *out = (struct raft_output){
        .append = count ? r->out_entries : NULL,
        .append_count = count,
        .append_epoch = r->epoch,
        .send = r->out_messages,
        .send_count = r->out_message_count,
        .commit_index = r->commit,
        .first_proposed = r->out_proposed,
        .hard_state_changed = r->out_hard,
        .role_changed = r->out_role,
        .read_token = r->out_read_token,
        .read_index = r->out_read_index,
        .snapshot_for = r->out_snapshot_for,
        .install = r->out_install ? &r->install : NULL,
        .install_from = r->out_install ? r->install_from : 0,
    };
}

void raft__outputs_fini(struct raft *r)
{
    if (r->out_boundary)
        buf_unref(r->boundary.data);
    free(r->out_entries);
    free(r->out_messages);
    free(r->out_sent);
}
