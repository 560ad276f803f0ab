/* raft/quorum.c and raft/tail.c: the core's small parts on their own. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quorum_index_is_what_a_majority_has),
        cmocka_unit_test(two_quorums_always_share_a_voter),
        cmocka_unit_test(tail_keeps_entries_across_growth_wrap_and_truncation),
        cmocka_unit_test(tail_knows_the_term_of_its_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
