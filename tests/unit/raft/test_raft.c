/*
 * The core, driven by text: tests/data/raft/<name>.txt holds commands (scenario.c), "----", the
 * expected lines and an empty line, many times. `test_raft_core --rewrite` writes what the cores
 * did into the files; the difference is the review. Lines that begin with '#' are comments.
 */
#include "raft/raft_internal.h"
#include "scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool rewrite_wanted;
#ifdef METADB_FAULTS
#define BROKEN (raft__broken != RAFT__BREAK_NONE)
#else
#define BROKEN false
#endif

/* Runs PATH and returns the file as it should read: commands as they are, results as they were. */
static char *run_file(const char *path, char **original)
{
    char *text = NULL, line[1024], *result = NULL;
    size_t text_size = 0, result_size = 0;
    struct scenario *s = scenario_new();
    bool skipping = false;
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    FILE *out = open_memstream(&result, &result_size);
    FILE *copy = open_memstream(&text, &text_size);

    while (fgets(line, sizeof line, in)) {
        fputs(line, copy);
        line[strcspn(line, "\n")] = '\0';
        if (skipping && line[0] != '\0')
            continue;
        skipping = false;
        fprintf(out, "%s\n", line);
        if (strcmp(line, "----") == 0) {
            fputs(scenario_take(s), out);
            skipping = true;
        } else if (line[0] != '\0' && line[0] != '#') {
            if (!scenario_command(s, line))
                fail_msg("%s: unknown command %s", path, line);
        }
    }
    scenario_free(s);
    fclose(in);
    fclose(out);
    fclose(copy);
    *original = text;
    return result;
}

static bool data_agrees(const char *name)
{
    char path[512], *original;
    snprintf(path, sizeof path, "%s/%s.txt", RAFT_TEST_DATA, name);
    char *result = run_file(path, &original);
    bool same = strcmp(result, original) == 0;
    if (rewrite_wanted && !same) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(result, out);
        fclose(out);
        same = true;
    } else if (!same && !BROKEN) {
        printf("%s: what happened is\n%s", path, result);
    }
    free(result);
    free(original);
    return same;
}

#define SCENARIO(claim, file)                                                                      \
    static void claim(void **state)                                                                \
    {                                                                                              \
        (void)state;                                                                               \
        assert_true(data_agrees(file));                                                            \
    }

SCENARIO(lone_voter_leads_and_commits_what_is_stored, "lone_voter")
SCENARIO(restart_commits_all_with_its_first_entry, "restart")
SCENARIO(restarted_follower_of_an_idle_group_hears_what_is_committed, "restart_under_leader")
SCENARIO(restore_takes_what_follows_and_refuses_the_rest, "restore")
SCENARIO(candidate_needs_a_majority, "election")
SCENARIO(cut_off_replica_comes_back_without_an_election, "prevote")
SCENARIO(entries_go_to_all_and_commit_when_a_majority_stored_them, "append")
SCENARIO(logs_that_differ_agree_again_after_few_refusals, "conflict")
SCENARIO(heartbeats_carry_commits_and_show_what_was_lost, "heartbeat")
SCENARIO(leader_without_a_majority_steps_down, "check_quorum")
SCENARIO(lease_and_rounds_answer_reads, "lease")
SCENARIO(transfer_moves_the_office_or_is_given_up, "transfer")
SCENARIO(members_change_one_at_a_time, "members")
SCENARIO(four_node_race_is_closed, "add_race")
SCENARIO(figure_8_never_commits_by_counting, "figure8")
SCENARIO(snapshot_is_installed_onto_any_log, "snapshot")
SCENARIO(snapshot_offers_survive_losses_and_failures, "snapshot_offer")
SCENARIO(idle_group_sleeps_and_wakes, "quiesce")
SCENARIO(beacons_keep_the_lease_of_a_sleeper, "sleep_lease")
SCENARIO(leader_with_a_hanging_disk_resigns, "disk_hangs")
SCENARIO(wiped_replica_never_votes, "wiped")
SCENARIO(impossible_messages_are_refused, "refused")

#ifdef METADB_FAULTS
/* A scenario that a broken core passes would prove nothing. */
static void broken_cores_fail_their_scenarios(void **state)
{
    static const struct {
        enum raft__break what;
        const char *file;
    } broken[] = {
        {RAFT__BREAK_COMMIT_OTHER_TERM, "figure8"}, {RAFT__BREAK_CHANGE_EARLY, "add_race"},
        {RAFT__BREAK_NO_PROMISE, "lease"},          {RAFT__BREAK_VOTE_ANY_LOG, "figure8"},
        {RAFT__BREAK_VOTE_UNSTORED, "election"},    {RAFT__BREAK_ACK_UNSTORED, "figure8"},
        {RAFT__BREAK_READ_UNASKED, "lease"},        {RAFT__BREAK_LEASE_LONG, "lease"},
        {RAFT__BREAK_KEEP_CONFLICT, "snapshot"},    {RAFT__BREAK_SLEEPER_VOTES, "sleep_lease"},
    };
    (void)state;
    if (rewrite_wanted)
        return;
    for (unsigned i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        raft__broken = broken[i].what;
        bool agrees = data_agrees(broken[i].file);
        raft__broken = RAFT__BREAK_NONE;
        if (agrees)
            fail_msg("%s does not notice break %d", broken[i].file, broken[i].what);
    }
}
#endif

int main(int argc, char **argv)
{
    rewrite_wanted = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lone_voter_leads_and_commits_what_is_stored),
        cmocka_unit_test(restart_commits_all_with_its_first_entry),
        cmocka_unit_test(restarted_follower_of_an_idle_group_hears_what_is_committed),
        cmocka_unit_test(restore_takes_what_follows_and_refuses_the_rest),
        cmocka_unit_test(candidate_needs_a_majority),
        cmocka_unit_test(cut_off_replica_comes_back_without_an_election),
        cmocka_unit_test(entries_go_to_all_and_commit_when_a_majority_stored_them),
        cmocka_unit_test(logs_that_differ_agree_again_after_few_refusals),
        cmocka_unit_test(heartbeats_carry_commits_and_show_what_was_lost),
        cmocka_unit_test(leader_without_a_majority_steps_down),
        cmocka_unit_test(lease_and_rounds_answer_reads),
        cmocka_unit_test(transfer_moves_the_office_or_is_given_up),
        cmocka_unit_test(members_change_one_at_a_time),
        cmocka_unit_test(four_node_race_is_closed),
        cmocka_unit_test(figure_8_never_commits_by_counting),
        cmocka_unit_test(snapshot_is_installed_onto_any_log),
        cmocka_unit_test(snapshot_offers_survive_losses_and_failures),
        cmocka_unit_test(idle_group_sleeps_and_wakes),
        cmocka_unit_test(beacons_keep_the_lease_of_a_sleeper),
        cmocka_unit_test(leader_with_a_hanging_disk_resigns),
        cmocka_unit_test(wiped_replica_never_votes),
        cmocka_unit_test(impossible_messages_are_refused),
#ifdef METADB_FAULTS
        cmocka_unit_test(broken_cores_fail_their_scenarios),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
