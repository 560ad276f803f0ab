/*
 * The core, driven by text: tests/data/raft/<name>.txt holds commands, "----", the expected lines
 * and an empty line, many times. `test_raft_core --rewrite` writes what the core did into the
 * files; the difference is the review.
 *
 *   new voters=1,2,3 self=1 term=0 vote=0 applied=0:0   a group; default one voter and zeros
 *   restore 1:1 2:1                                     entries index:term from the log
 *   tick NOW | campaign | message                       inputs
 *   propose a b c                                       commands
 *   stored INDEX:TERM | applied INDEX
 *   get INDEX | state
 */
#include "base/buf.h"
#include "raft/raft.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS_MAX 32u

struct world {
    struct raft *raft;
    uint64_t now_ms;
    char out[4096];
    size_t used;
};

static bool rewrite_wanted;

static void PRINTF_LIKE(2, 3) say(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->out + w->used, sizeof w->out - w->used, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof w->out - w->used);
    w->used += (size_t)n;
}

static const char *role_name(enum raft_role role)
{
    static const char *const names[] = {"follower", "candidate", "leader"};
    return names[role];
}

static void say_entry(struct world *w, const struct raft_entry *e)
{
    say(w, "%" PRIu64 ":%" PRIu64, e->index, e->term);
    if (e->kind == RAFT_ENTRY_NOOP)
        say(w, ":noop");
    else if (e->data)
        say(w, ":%.*s", (int)e->data->size, (const char *)e->data->data);
}

static const char *value_of(char **words, size_t count, const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 1; i < count; i++) {
        if (strncmp(words[i], key, n) == 0 && words[i][n] == '=')
            return words[i] + n + 1;
    }
    return NULL;
}

static uint64_t number_of(char **words, size_t count, const char *key, uint64_t otherwise)
{
    const char *v = value_of(words, count, key);
    return v ? strtoull(v, NULL, 10) : otherwise;
}

static void pair_parse(const char *text, uint64_t *a, uint64_t *b)
{
    char *end;
    *a = strtoull(text, &end, 10);
    *b = *end == ':' ? strtoull(end + 1, NULL, 10) : 0;
}

static void do_new(struct world *w, char **words, size_t count)
{
    struct raft_config config = {.election_ms = 1000, .heartbeat_ms = 100, .seed = 7};
    uint64_t applied = 0, applied_term = 0;
    const char *voters = value_of(words, count, "voters");

    config.self = number_of(words, count, "self", 1);
    for (const char *p = voters ? voters : "1"; *p;) {
        char *end;
        config.voters[config.voter_count++] = strtoull(p, &end, 10);
        p = *end == ',' ? end + 1 : end;
    }
    if (value_of(words, count, "applied"))
        pair_parse(value_of(words, count, "applied"), &applied, &applied_term);
    raft_free(w->raft);
    struct raft_hard_state hs = {.term = number_of(words, count, "term", 0),
                                 .vote = number_of(words, count, "vote", 0)};
    w->raft = raft_new(&config, hs, applied, applied_term);
    w->now_ms = 0;
    say(w, "ok\n");
}

static void do_restore(struct world *w, char **words, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct raft_entry e = {.kind = RAFT_ENTRY_COMMAND, .data = buf_copy(bytes_str("old"))};
        pair_parse(words[i], &e.index, &e.term);
        status st = raft_restore_entry(w->raft, &e);
        buf_unref(e.data);
        if (st != ST_OK)
            say(w, "%s at %s\n", status_name(st), words[i]);
    }
    say(w, "last=%" PRIu64 "\n", raft_last_index(w->raft));
}

static void do_hard(struct world *w, char **words, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct raft_hard_state hs;
        pair_parse(words[i], &hs.term, &hs.vote);
        raft_restore_hard_state(w->raft, hs);
    }
    struct raft_hard_state now = raft_hard_state(w->raft);
    say(w, "hard=%" PRIu64 "/%" PRIu64 "\n", now.term, now.vote);
}

static void step(struct world *w, struct raft_input *in)
{
    struct raft_output out;
    in->now_ms = w->now_ms;
    status st = raft_step(w->raft, in, &out);
    say(w, "%s", status_name(st));
    if (out.hard_state_changed) {
        struct raft_hard_state hs = raft_hard_state(w->raft);
        say(w, " hard=%" PRIu64 "/%" PRIu64, hs.term, hs.vote);
    }
    for (size_t i = 0; i < out.append_count; i++) {
        say(w, "%s", i == 0 ? " append=" : ",");
        say_entry(w, &out.append[i]);
    }
    if (out.first_proposed)
        say(w, " first=%" PRIu64, out.first_proposed);
    say(w, " commit=%" PRIu64, out.commit_index);
    if (out.role_changed)
        say(w, " role=%s", role_name(raft_role(w->raft)));
    say(w, "\n");
}

static void do_propose(struct world *w, char **words, size_t count)
{
    struct buf *commands[WORDS_MAX];
    for (size_t i = 1; i < count; i++)
        commands[i - 1] = buf_copy(bytes_str(words[i]));
    struct raft_input in = {.kind = RAFT_PROPOSE, .commands = commands, .command_count = count - 1};
    step(w, &in);
    for (size_t i = 1; i < count; i++)
        buf_unref(commands[i - 1]);
}

static void do_state(struct world *w)
{
    struct raft_hard_state hs = raft_hard_state(w->raft);
    say(w,
        "role=%s term=%" PRIu64 " vote=%" PRIu64 " leader=%" PRIu64 " last=%" PRIu64
        " commit=%" PRIu64,
        role_name(raft_role(w->raft)), hs.term, hs.vote, raft_leader(w->raft),
        raft_last_index(w->raft), raft_commit_index(w->raft));
    if (raft_next_tick_ms(w->raft) == UINT64_MAX)
        say(w, " tick=never\n");
    else
        say(w, " tick=%" PRIu64 "\n", raft_next_tick_ms(w->raft));
}

static void do_get(struct world *w, const char *index)
{
    const struct raft_entry *e = raft_entry_get(w->raft, strtoull(index, NULL, 10));
    if (e)
        say_entry(w, e);
    else
        say(w, "none");
    say(w, "\n");
}

static void run_command(struct world *w, char *line)
{
    char *words[WORDS_MAX] = {0}, *rest = NULL;
    size_t count = 0;
    struct raft_input in = {0};

    for (char *p = strtok_r(line, " ", &rest); p && count < WORDS_MAX;
         p = strtok_r(NULL, " ", &rest))
        words[count++] = p;
    const char *name = words[0];
    if (strcmp(name, "new") == 0) {
        do_new(w, words, count);
    } else if (strcmp(name, "restore") == 0) {
        do_restore(w, words, count);
    } else if (strcmp(name, "hard") == 0) {
        do_hard(w, words, count);
    } else if (strcmp(name, "propose") == 0) {
        do_propose(w, words, count);
    } else if (strcmp(name, "state") == 0) {
        do_state(w);
    } else if (strcmp(name, "get") == 0) {
        do_get(w, words[1]);
    } else if (strcmp(name, "applied") == 0) {
        raft_applied(w->raft, strtoull(words[1], NULL, 10));
        say(w, "ok\n");
    } else {
        if (strcmp(name, "tick") == 0) {
            in.kind = RAFT_TICK;
            w->now_ms = strtoull(words[1], NULL, 10);
        } else if (strcmp(name, "campaign") == 0) {
            in.kind = RAFT_CAMPAIGN;
        } else if (strcmp(name, "message") == 0) {
            in.kind = RAFT_MESSAGE;
        } else if (strcmp(name, "stored") == 0) {
            in.kind = RAFT_STORED;
            pair_parse(words[1], &in.stored_index, &in.stored_term);
        } else {
            fail_msg("unknown command %s", name);
        }
        step(w, &in);
    }
}

/* Runs PATH and returns the file as it should read: commands as they are, results as they were. */
static char *run_file(const char *path, char **original)
{
    char *text = NULL, line[1024], *result = NULL;
    size_t text_size = 0, result_size = 0;
    struct world w = {0};
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
            fputs(w.out, out);
            w.used = 0;
            w.out[0] = '\0';
            skipping = true;
        } else if (line[0] != '\0' && line[0] != '#') {
            run_command(&w, line);
        }
    }
    raft_free(w.raft);
    fclose(in);
    fclose(out);
    fclose(copy);
    *original = text;
    return result;
}

static void run_data(const char *name)
{
    char path[512], *original;
    snprintf(path, sizeof path, "%s/%s.txt", RAFT_TEST_DATA, name);
    char *result = run_file(path, &original);
    if (rewrite_wanted && strcmp(result, original) != 0) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(result, out);
        fclose(out);
    } else if (!rewrite_wanted) {
        assert_string_equal(result, original);
    }
    free(result);
    free(original);
}

static void lone_voter_leads_and_commits_what_is_stored(void **state)
{
    (void)state;
    run_data("lone_voter");
}

static void restart_commits_all_with_its_first_entry(void **state)
{
    (void)state;
    run_data("restart");
}

static void restore_takes_what_follows_and_refuses_the_rest(void **state)
{
    (void)state;
    run_data("restore");
}

static void candidate_needs_a_majority(void **state)
{
    (void)state;
    run_data("majority");
}

int main(int argc, char **argv)
{
    rewrite_wanted = argc > 1 && strcmp(argv[1], "--rewrite") == 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lone_voter_leads_and_commits_what_is_stored),
        cmocka_unit_test(restart_commits_all_with_its_first_entry),
        cmocka_unit_test(restore_takes_what_follows_and_refuses_the_rest),
        cmocka_unit_test(candidate_needs_a_majority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
