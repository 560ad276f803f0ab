/* raft/quorum.c, tail.c, members.c, message.c: the core's small parts on their own. */
#include "raft/message.h"
#include "raft/quorum.h"
#include "raft/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void quorum_index_is_what_a_majority_has(void **state)
{
    (void)state;
    /* Every assignment of indexes 0 to 3 to up to 5 voters, against counting. */
    for (unsigned voters = 1; voters <= 5; voters++) {
        for (unsigned code = 0; code < 1u << (2 * voters); code++) {
            uint64_t match[5] = {0};
            for (unsigned i = 0; i < voters; i++)
                match[i] = (code >> (2 * i)) & 3;
            uint64_t expected = 0;
            for (uint64_t index = 1; index <= 3; index++) {
                unsigned have = 0;
                for (unsigned i = 0; i < voters; i++)
                    have += match[i] >= index;
                if (2 * have > voters)
                    expected = index;
            }
            assert_int_equal(raft__quorum_index(match, voters), expected);
        }
    }
}

static void two_quorums_always_share_a_voter(void **state)
{
    (void)state;
    for (unsigned voters = 1; voters <= RAFT_VOTERS_MAX; voters++) {
        assert_true(2 * raft__quorum_size(voters) > voters);
        assert_true(raft__quorum_size(voters) <= voters);
        bool granted[RAFT_VOTERS_MAX] = {false};
        for (unsigned i = 0; i < voters; i++) {
            granted[i] = true;
            assert_int_equal(raft__quorum_granted(granted, voters), 2 * (i + 1) > voters);
        }
    }
}

static void tail_keeps_entries_across_growth_wrap_and_truncation(void **state)
{
    struct raft__tail t;
    uint64_t first = 101, last = 100, random = 5;
    (void)state;
    raft__tail_init(&t, 100, 1);
    for (unsigned step = 0; step < 5000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned what = (unsigned)(random >> 60);
        if (what < 9) {
            struct raft_entry e = {
                .index = ++last, .term = 2, .kind = RAFT_ENTRY_COMMAND, .data = buf_new(8)};
            memcpy(e.data->data, &last, 8);
            raft__tail_append(&t, &e);
            buf_unref(e.data);
        } else if (what < 13 && first <= last) {
            first += (random >> 32) % (last - first + 1) / 4 + 1;
            raft__tail_drop(&t, first - 1);
        } else if (first <= last) {
            last -= (random >> 32) % (last - first + 1) / 4;
            raft__tail_truncate(&t, last + 1);
        }
        assert_int_equal(raft__tail_last_index(&t), last);
        assert_null(raft__tail_get(&t, first - 1));
        assert_null(raft__tail_get(&t, last + 1));
        for (uint64_t i = first; i <= last; i++) {
            const struct raft_entry *e = raft__tail_get(&t, i);
            assert_int_equal(e->index, i);
            assert_memory_equal(e->data->data, &i, 8);
        }
    }
    raft__tail_fini(&t);
}

static void tail_knows_the_term_of_its_base(void **state)
{
    struct raft__tail t;
    uint64_t term;
    (void)state;
    raft__tail_init(&t, 7, 3);
    const struct raft_entry e = {.index = 8, .term = 5, .kind = RAFT_ENTRY_NOOP};
    raft__tail_append(&t, &e);
    assert_true(raft__tail_term(&t, 7, &term));
    assert_int_equal(term, 3);
    assert_true(raft__tail_term(&t, 8, &term));
    assert_int_equal(term, 5);
    assert_false(raft__tail_term(&t, 6, &term));
    assert_false(raft__tail_term(&t, 9, &term));
    raft__tail_drop(&t, 8);
    assert_int_equal(raft__tail_last_term(&t), 5);
    raft__tail_fini(&t);
}

static struct raft_members three_and_a_learner(void)
{
    return (struct raft_members){
        .count = 4,
        .at = {{1, RAFT_VOTER}, {2, RAFT_VOTER}, {3, RAFT_VOTER}, {UINT64_MAX, RAFT_LEARNER}}};
}

static void members_change_by_one_and_keep_a_voter(void **state)
{
    struct raft_members m = three_and_a_learner(), next;
    (void)state;
    assert_int_equal(raft_members_change(&m, RAFT_ADD_VOTER, UINT64_MAX, &next), ST_OK);
    assert_int_equal(raft_members_voters(&next), 4);
    assert_int_equal(raft_members_change(&m, RAFT_ADD_LEARNER, 9, &next), ST_OK);
    assert_int_equal(next.count, 5);
    assert_int_equal(raft_members_change(&m, RAFT_REMOVE, 2, &next), ST_OK);
    assert_int_equal(raft_members_find(&next, 2), RAFT_MEMBERS_MAX);
    assert_int_equal(raft_members_find(&next, 3), 1);
    assert_int_equal(raft_members_change(&m, RAFT_DEMOTE, 2, &next), ST_OK);
    assert_int_equal(raft_members_voters(&next), 2);
    assert_int_equal(raft_members_change(&m, RAFT_ADD_VOTER, 2, &next), ST_EXISTS);
    assert_int_equal(raft_members_change(&m, RAFT_ADD_LEARNER, 2, &next), ST_EXISTS);
    assert_int_equal(raft_members_change(&m, RAFT_REMOVE, 7, &next), ST_NOT_FOUND);
    assert_int_equal(raft_members_change(&m, RAFT_ADD_VOTER, 0, &next), ST_INVALID);
    for (uint64_t id = 10; raft_members_voters(&m) < RAFT_VOTERS_MAX; id++) {
        assert_int_equal(raft_members_change(&m, RAFT_ADD_VOTER, id, &next), ST_OK);
        m = next;
    }
    assert_int_equal(raft_members_change(&m, RAFT_ADD_VOTER, 99, &next), ST_LIMIT);
    m = (struct raft_members){.count = 1, .at = {{5, RAFT_VOTER}}};
    assert_int_equal(raft_members_change(&m, RAFT_REMOVE, 5, &next), ST_INVALID);
    assert_int_equal(raft_members_change(&m, RAFT_DEMOTE, 5, &next), ST_INVALID);
}

/* A sound message of KIND with no field left at zero that may be something else. */
static struct raft_message sample(enum raft_message_kind kind, const struct raft_entry *entries)
{
    struct raft_message m = {.kind = kind, .from = 3, .to = 300, .term = 70000};
    bool leads = kind == RAFT_MSG_APPEND || kind == RAFT_MSG_HEARTBEAT || kind == RAFT_MSG_SNAPSHOT;
    if (leads)
        m.lead = (struct raft_lead){
            .seq = 5, .sent_ms = 6, .commit = 90, .settled = 8, .read_bound = UINT64_MAX};
    else
        m.ack = (struct raft_ack){
            .seq = 5, .sent_ms = 6, .match = 7, .last = 8, .commit = 9, .read_bound = 10};
    switch (kind) {
    case RAFT_MSG_APPEND:
        m.append.prev_index = 40;
        m.append.prev_term = 2;
        m.append.entries = entries;
        m.append.count = 3;
        break;
    case RAFT_MSG_APPEND_REPLY:
        m.append_reply.refused = true;
        m.append_reply.prev_index = 40;
        m.append_reply.hint_index = 39;
        m.append_reply.hint_term = 2;
        break;
    case RAFT_MSG_HEARTBEAT: m.heartbeat.quiesce = true; break;
    case RAFT_MSG_HEARTBEAT_REPLY: m.heartbeat_reply.installing = 12; break;
    case RAFT_MSG_VOTE:
        m.vote.pre = true;
        m.vote.last_index = 40;
        m.vote.last_term = 69999;
        break;
    case RAFT_MSG_VOTE_REPLY: m.vote_reply.granted = true; break;
    case RAFT_MSG_SNAPSHOT:
        m.snapshot =
            (struct raft_snapshot){.index = 50, .term = 3, .members = three_and_a_learner()};
        break;
    case RAFT_MSG_SNAPSHOT_REPLY:
        m.snapshot_reply.verdict = RAFT_SNAPSHOT_DONE;
        m.snapshot_reply.index = 50;
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_KINDS: break;
    }
    return m;
}

/* Whole it says the same; cut anywhere, or with a byte more, or of another version, nothing. */
static void check_wire(const struct raft_message *m)
{
    struct raft_message got;
    struct obuf first, second;
    obuf_init(&first);
    obuf_init(&second);
    raft_message_encode(m, &first);
    assert_int_equal(raft_message_decode(bytes_make(first.data, first.size), &got), ST_OK);
    assert_int_equal(got.kind, m->kind);
    assert_int_equal(got.term, m->term);
    raft_message_encode(&got, &second);
    assert_int_equal(second.size, first.size);
    assert_memory_equal(second.data, first.data, first.size);
    raft_message_fini(&got);
    for (size_t n = 0; n < first.size; n++)
        assert_int_equal(raft_message_decode(bytes_make(first.data, n), &got), ST_PROTOCOL);
    obuf_u8(&first, 0);
    assert_int_equal(raft_message_decode(bytes_make(first.data, first.size), &got), ST_PROTOCOL);
    first.data[0]++;
    assert_int_equal(raft_message_decode(bytes_make(first.data, first.size - 1), &got),
                     ST_PROTOCOL);
    obuf_fini(&first);
    obuf_fini(&second);
}

static void messages_survive_the_wire_whole_or_not_at_all(void **state)
{
    struct raft_members members = three_and_a_learner();
    struct raft_entry entries[] = {
        {.index = 41, .term = 2, .kind = RAFT_ENTRY_COMMAND, .data = buf_copy(bytes_str("a"))},
        {.index = 42, .term = 3, .kind = RAFT_ENTRY_NOOP},
        {.index = 43, .term = 3, .kind = RAFT_ENTRY_MEMBERS, .data = raft_members_encode(&members)},
    };
    (void)state;
    for (unsigned kind = 1; kind < RAFT_MSG_KINDS; kind++) {
        struct raft_message m = sample((enum raft_message_kind)kind, entries);
        assert_int_equal(raft_message_check(&m), ST_OK);
        check_wire(&m);
    }
    buf_unref(entries[0].data);
    buf_unref(entries[2].data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quorum_index_is_what_a_majority_has),
        cmocka_unit_test(two_quorums_always_share_a_voter),
        cmocka_unit_test(tail_keeps_entries_across_growth_wrap_and_truncation),
        cmocka_unit_test(tail_knows_the_term_of_its_base),
        cmocka_unit_test(members_change_by_one_and_keep_a_voter),
        cmocka_unit_test(messages_survive_the_wire_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
