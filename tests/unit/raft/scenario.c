/*
 * The commands.
 *
 *   nodes 1 2 3 [learner=4] [KEY=N ...]   a group; keys: election heartbeat quiesce drift keep
 *                                         append window pending disk term vote applied=I:T manual
 *                                         beacons
 *   join N                                a node that knows no members yet
 *   restore N I:T ...                     entries of an earlier life, before the first step
 *   time T | run MS                       set the clock | let it pass: ticks, disks, deliveries
 *   tick|campaign|read|install|install_fail N
 *   propose N WORD ... | change N add_learner|add_voter|demote|remove ID | transfer N [ID]
 *   beacon A>B [bound=T] [unanswered]     from process to process, and the answer
 *   hangs|goes_on N                       the log that the host's groups share
 *   down|up N ID | snapshot|snapshot_fail N ID
 *   store N [COUNT] | stored N I:T [EPOCH] | applied N I | persist N | disk N slow|ok
 *   deliver|drop [A>B] [KIND] | reverse   of what waits in the network; the last shall be first
 *   settle                                everything until quiet
 *   cut A>B ... | cut A B | heal          one way, both ways
 *   crash N | restart N | wipe N          what was not stored is lost | everything is
 *   inject A>B KIND KEY=V ...             a message that nobody sent
 *   state|log|members|peers N ... | get N I | queue
 *
 * A single command shows every step that it causes, `settle` and `run` only what matters: roles,
 * answers to reads, snapshots, errors.
 */
#include "scenario_internal.h"

#include <inttypes.h>
#include <stdio.h>

/* -- nodes and words --------------------------------------------- */

static struct node *node_find(struct scenario *s, uint64_t id)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (s->nodes[i].core.id == id)
            return &s->nodes[i];
    }
    return NULL;
}

static const char *word(const struct scenario *s, unsigned at)
{
    return at < s->word_count ? s->words[at] : "";
}

uint64_t scenario__number(const struct scenario *s, unsigned at)
{
    return strtoull(word(s, at), NULL, 10);
}

struct node *scenario__node(struct scenario *s, unsigned at)
{
    struct node *n = node_find(s, scenario__number(s, at));
    ASSERT(n != NULL);
    return n;
}

static const char *value_of(const struct scenario *s, const char *key)
{
    size_t n = strlen(key);
    for (unsigned i = 1; i < s->word_count; i++) {
        if (strncmp(s->words[i], key, n) == 0 && s->words[i][n] == '=')
            return s->words[i] + n + 1;
    }
    return NULL;
}

static bool flag_of(const struct scenario *s, const char *name)
{
    for (unsigned i = 1; i < s->word_count; i++) {
        if (strcmp(s->words[i], name) == 0)
            return true;
    }
    return false;
}

static uint64_t number_of(const struct scenario *s, const char *key, uint64_t otherwise)
{
    const char *v = value_of(s, key);
    return v ? strtoull(v, NULL, 10) : otherwise;
}

static char *pair_parse(const char *text, uint64_t *a, uint64_t *b)
{
    char *end;
    *a = strtoull(text, &end, 10);
    *b = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
    return end;
}

/* -- steps --------------------------------------------- */

static void apply(struct node *n)
{
    struct raft_entry e;
    if (n->manual)
        return;
    uint64_t before = n->core.machine.index;
    while (core_apply_one(&n->core, &e))
        ;
    if (n->core.machine.index > before)
        raft_applied(n->core.raft, n->core.machine.index);
}

static void queue_put(struct scenario *s, const struct raft_message *m)
{
    const struct node *from = node_find(s, m->from), *to = node_find(s, m->to);
    if (!to || (from && s->cut[from - s->nodes][to - s->nodes]))
        return;
    ASSERT(s->queued < QUEUE_MAX);
    s->queue[s->queued++] = message_copy(m);
}

static void step(struct scenario *s, struct node *n, struct raft_input *in)
{
    struct raft_output out;
    uint64_t commit = raft_commit_index(n->core.raft);

    in->now_ms = s->now;
    status st = raft_step(n->core.raft, in, &out);
    if (!s->terse)
        scenario__say_step(s, n, st, &out, commit);
    else if (st != ST_OK)
        scenario__say(s, "%" PRIu64 ": %s\n", n->core.id, status_name(st));
    if (s->terse)
        scenario__say_terse(s, n, &out);
    core_write(&n->core, &out);
    for (size_t i = 0; i < out.send_count; i++)
        queue_put(s, &out.send[i]);
    if (out.install) {
        n->core.installing = *out.install;
        n->core.installing_from = out.install_from;
    }
    apply(n);
}

static void step_kind(struct scenario *s, struct node *n, unsigned kind)
{
    struct raft_input in = {0};
    in.kind = (__typeof__(in.kind))kind;
    in.peer = scenario__number(s, 2);
    step(s, n, &in);
}

static bool store(struct scenario *s, struct node *n, size_t count)
{
    struct raft_input in;
    if (!core_store(&n->core, count, &in))
        return false;
    step(s, n, &in);
    return true;
}

/* -- network --------------------------------------------- */

static bool matches(const struct scenario *s, const struct raft_message *m)
{
    for (unsigned i = 1; i < s->word_count; i++) {
        char link[32];
        snprintf(link, sizeof link, "%" PRIu64 ">%" PRIu64, m->from, m->to);
        if (strchr(s->words[i], '>') ? strcmp(s->words[i], link) != 0
                                     : strcmp(s->words[i], raft_message_name(m->kind)) != 0)
            return false;
    }
    return true;
}

static void deliver_one(struct scenario *s, struct raft_message *m)
{
    struct node *n = node_find(s, m->to);
    struct raft_input in = {.kind = RAFT_MESSAGE, .message = m};
    if (n && n->core.raft)
        step(s, n, &in);
    raft_message_fini(m);
}

/* Those that wait now and match; what they cause waits for the next time. */
static bool deliver(struct scenario *s, bool drop, bool all)
{
    struct raft_message taken[QUEUE_MAX];
    unsigned count = 0, kept = 0;
    for (unsigned i = 0; i < s->queued; i++) {
        if (all || matches(s, &s->queue[i]))
            taken[count++] = s->queue[i];
        else
            s->queue[kept++] = s->queue[i];
    }
    s->queued = kept;
    for (unsigned i = 0; i < count; i++) {
        if (drop)
            raft_message_fini(&taken[i]);
        else
            deliver_one(s, &taken[i]);
    }
    return count > 0;
}

static void reverse(struct scenario *s)
{
    for (unsigned i = 0; i < s->queued / 2; i++) {
        struct raft_message m = s->queue[i];
        s->queue[i] = s->queue[s->queued - 1 - i];
        s->queue[s->queued - 1 - i] = m;
    }
}

static void settle(struct scenario *s)
{
    bool more = true;
    for (unsigned round = 0; more; round++) {
        ASSERT(round < SETTLE_MAX);
        more = false;
        for (unsigned i = 0; i < s->count; i++) {
            struct node *n = &s->nodes[i];
            if (n->core.raft && !n->slow)
                more |= store(s, n, SIZE_MAX);
        }
        more |= deliver(s, false, true);
    }
}

static void do_settle(struct scenario *s)
{
    s->terse = true;
    settle(s);
    s->terse = false;
}

static void do_run(struct scenario *s)
{
    uint64_t until = s->now + scenario__number(s, 1);
    s->terse = true;
    settle(s);
    while (s->now < until) {
        s->now++;
        for (unsigned i = 0; i < s->count; i++) {
            struct node *n = &s->nodes[i];
            struct raft_input in = {.kind = RAFT_TICK};
            if (n->core.raft && s->now >= raft_next_tick_ms(n->core.raft))
                step(s, n, &in);
        }
        settle(s);
    }
    s->terse = false;
}

static void do_cut(struct scenario *s)
{
    if (strchr(word(s, 1), '>')) {
        for (unsigned i = 1; i < s->word_count; i++) {
            char *end;
            struct node *a = node_find(s, strtoull(word(s, i), &end, 10));
            struct node *b = node_find(s, strtoull(end + 1, NULL, 10));
            ASSERT(a && b);
            s->cut[a - s->nodes][b - s->nodes] = true;
        }
        return;
    }
    struct node *a = scenario__node(s, 1), *b = scenario__node(s, 2);
    s->cut[a - s->nodes][b - s->nodes] = s->cut[b - s->nodes][a - s->nodes] = true;
}

/* -- life --------------------------------------------- */

static struct raft_config config_of(const struct scenario *s)
{
    return (struct raft_config){
        .election_ms = number_of(s, "election", 1000),
        .heartbeat_ms = number_of(s, "heartbeat", 100),
        .quiesce_ms = number_of(s, "quiesce", 0),
        .drift_permille = number_of(s, "drift", 0),
        .keep_bytes = number_of(s, "keep", 0),
        .append_bytes = number_of(s, "append", 0),
        .window_bytes = number_of(s, "window", 0),
        .pending_bytes = number_of(s, "pending", 0),
        .disk_ms = number_of(s, "disk", 0),
    };
}

static struct node *node_open(struct scenario *s, uint64_t id)
{
    ASSERT(s->count < NODES_MAX);
    struct node *n = &s->nodes[s->count++];
    *n = (struct node){.manual = flag_of(s, "manual")};
    n->core.id = id;
    n->core.config = config_of(s);
    n->core.config.seed = id;
    n->core.config.beacons = flag_of(s, "beacons") ? &n->beacons : NULL;
    return n;
}

static void clear(struct scenario *s)
{
    deliver(s, true, true);
    for (unsigned i = 0; i < s->count; i++)
        core_free(&s->nodes[i].core);
    s->count = 0;
    s->now = 0;
    memset(s->cut, 0, sizeof s->cut);
}

static void do_nodes(struct scenario *s)
{
    struct raft_members members = {0};
    struct raft_hard_state hs = {number_of(s, "term", 0), number_of(s, "vote", 0)};
    uint64_t learner = number_of(s, "learner", 0);

    clear(s);
    for (unsigned i = 1; i < s->word_count && scenario__number(s, i) != 0; i++)
        members.at[members.count++] = (struct raft_member){scenario__number(s, i), RAFT_VOTER};
    if (learner)
        members.at[members.count++] = (struct raft_member){learner, RAFT_LEARNER};
    for (unsigned i = 0; i < members.count; i++) {
        struct node *n = node_open(s, members.at[i].id);
        struct machine *m = &n->core.persisted;
        m->members = members;
        if (value_of(s, "applied"))
            (void)pair_parse(value_of(s, "applied"), &m->index, &m->term);
        if (hs.term)
            disk_write(&n->core, (struct disk_record){.is_hard = true, .hard = hs});
        ASSERT(core_start(&n->core) == ST_OK);
    }
}

static void do_join(struct scenario *s)
{
    ASSERT(core_start(&node_open(s, scenario__number(s, 1))->core) == ST_OK);
}

static struct raft_entry entry_parse(const char *text)
{
    struct raft_entry e = {.kind = RAFT_ENTRY_COMMAND};
    const char *rest = pair_parse(text, &e.index, &e.term);
    if (strcmp(rest, ":noop") == 0)
        e.kind = RAFT_ENTRY_NOOP;
    else
        e.data = buf_copy(bytes_str(*rest == ':' ? rest + 1 : "old"));
    return e;
}

static void do_restore(struct scenario *s)
{
    struct node *n = scenario__node(s, 1);
    for (unsigned i = 2; i < s->word_count; i++) {
        struct raft_entry e = entry_parse(s->words[i]);
        status st = raft_restore_entry(n->core.raft, &e);
        if (st == ST_OK)
            disk_write(&n->core, (struct disk_record){.entry = e});
        else
            scenario__say(s, "%s at %s\n", status_name(st), s->words[i]);
        buf_unref(e.data);
    }
    n->core.durable = n->core.reported = n->core.written;
    scenario__say(s, "last=%" PRIu64 "%s\n", raft_last_index(n->core.raft),
                  raft_restored_other(n->core.raft) ? " other" : "");
}

/* Hard states TERM:VOTE of the log, between entries. */
static void do_hard(struct scenario *s)
{
    struct node *n = scenario__node(s, 1);
    for (unsigned i = 2; i < s->word_count; i++) {
        char *vote;
        struct raft_hard_state hard = {.term = strtoull(s->words[i], &vote, 10)};
        hard.vote = *vote == ':' ? strtoull(vote + 1, NULL, 10) : 0;
        raft_restore_hard_state(n->core.raft, hard);
    }
    struct raft_hard_state now = raft_hard_state(n->core.raft);
    scenario__say(s, "hard=%" PRIu64 "/%" PRIu64 "\n", now.term, now.vote);
}

static void do_restart(struct scenario *s)
{
    struct node *n = scenario__node(s, 1);
    status st = core_start(&n->core);
    if (st != ST_OK)
        scenario__say(s, "%s\n", status_name(st));
}

static void do_wipe(struct scenario *s)
{
    struct node *n = scenario__node(s, 1);
    struct raft_members members = n->core.persisted.members;
    disk_lose(&n->core, 0);
    n->core.persisted = (struct machine){.members = members};
    n->core.config.votes_never = true;
}

/* -- inputs --------------------------------------------- */

static void do_propose(struct scenario *s)
{
    struct buf *commands[WORDS_MAX];
    size_t count = s->word_count - 2;
    for (size_t i = 0; i < count; i++)
        commands[i] = buf_copy(bytes_str(s->words[i + 2]));
    struct raft_input in = {.kind = RAFT_PROPOSE, .commands = commands, .command_count = count};
    step(s, scenario__node(s, 1), &in);
    for (size_t i = 0; i < count; i++)
        buf_unref(commands[i]);
}

static void do_read(struct scenario *s)
{
    struct node *n = scenario__node(s, 1);
    struct raft_input in = {.kind = RAFT_READ, .read_token = ++n->token};
    step(s, n, &in);
}

static void do_change(struct scenario *s)
{
    static const char *const names[] = {"", "add_learner", "add_voter", "demote", "remove"};
    struct raft_input in = {.kind = RAFT_CHANGE, .peer = scenario__number(s, 3)};
    for (unsigned i = RAFT_ADD_LEARNER; i <= RAFT_REMOVE; i++) {
        if (strcmp(word(s, 2), names[i]) == 0)
            in.change = (enum raft_change_kind)i;
    }
    step(s, scenario__node(s, 1), &in);
}

static void do_stored(struct scenario *s)
{
    struct raft_input in = {.kind = RAFT_STORED, .stored_epoch = scenario__number(s, 3)};
    (void)pair_parse(word(s, 2), &in.stored_index, &in.stored_term);
    step(s, scenario__node(s, 1), &in);
}

static void do_snapshot(struct scenario *s)
{
    struct node *n = scenario__node(s, 1);
    struct raft_snapshot snapshot = {.index = n->core.machine.index, .term = n->core.machine.term};
    raft_members_at(n->core.raft, snapshot.index, &snapshot.members);
    struct raft_input in = {
        .kind = RAFT_SNAPSHOT_READY, .peer = scenario__number(s, 2), .snapshot = &snapshot};
    step(s, n, &in);
}

static void do_install(struct scenario *s)
{
    struct node *n = scenario__node(s, 1), *from = node_find(s, n->core.installing_from);
    struct raft_snapshot snapshot = n->core.installing;
    struct raft_input in = {.kind = RAFT_INSTALLED, .snapshot = &snapshot};
    n->core.installing.index = 0;
    if (snapshot.index > n->core.machine.index) {
        n->core.machine = (struct machine){.index = snapshot.index,
                                           .term = snapshot.term,
                                           .chain = from ? from->core.machine.chain : 0,
                                           .members = snapshot.members};
        n->core.persisted = n->core.machine;
    }
    if (flag_of(s, "crash"))
        core_crash(&n->core, 0);
    else
        step(s, n, &in);
}

static void do_install_fail(struct scenario *s)
{
    struct node *n = scenario__node(s, 1);
    n->core.installing.index = 0;
    step_kind(s, n, RAFT_INSTALL_FAILED);
}

static void do_applied(struct scenario *s)
{
    struct node *n = scenario__node(s, 1);
    n->core.machine.index = scenario__number(s, 2);
    raft_applied(n->core.raft, n->core.machine.index);
}

static enum raft_message_kind kind_of(const char *name)
{
    for (unsigned k = 1; k < RAFT_MSG_KINDS; k++) {
        if (strcmp(name, raft_message_name((enum raft_message_kind)k)) == 0)
            return (enum raft_message_kind)k;
    }
    return RAFT_MSG_KINDS;
}

static size_t inject_entries(const struct scenario *s, struct raft_entry *entries)
{
    size_t count = 0;
    for (unsigned i = 3; i < s->word_count; i++) {
        if (s->words[i][0] >= '0' && s->words[i][0] <= '9')
            entries[count++] = entry_parse(s->words[i]);
    }
    return count;
}

static void inject_fields(const struct scenario *s, struct raft_message *m,
                          const struct raft_entry *entries, size_t count)
{
    uint64_t seq = number_of(s, "seq", 1), match = number_of(s, "match", 0);
    bool is_lead =
        m->kind == RAFT_MSG_APPEND || m->kind == RAFT_MSG_HEARTBEAT || m->kind == RAFT_MSG_SNAPSHOT;
    if (is_lead)
        m->lead = (struct raft_lead){.seq = seq, .commit = number_of(s, "commit", 0)};
    else
        m->ack = (struct raft_ack){.seq = seq, .match = match, .last = number_of(s, "last", match)};
    if (m->kind == RAFT_MSG_APPEND) {
        m->append.entries = entries;
        m->append.count = count;
        if (value_of(s, "prev"))
            (void)pair_parse(value_of(s, "prev"), &m->append.prev_index, &m->append.prev_term);
    } else if (m->kind == RAFT_MSG_APPEND_REPLY && flag_of(s, "refused")) {
        m->append_reply.refused = true;
        m->append_reply.prev_index = number_of(s, "prev", 0);
        (void)pair_parse(value_of(s, "hint"), &m->append_reply.hint_index,
                         &m->append_reply.hint_term);
    } else if (m->kind == RAFT_MSG_HEARTBEAT) {
        m->heartbeat.quiesce = flag_of(s, "quiesce");
    } else if (m->kind == RAFT_MSG_VOTE) {
        m->vote.pre = flag_of(s, "pre");
        m->vote.transfer = flag_of(s, "transfer");
        (void)pair_parse(value_of(s, "at"), &m->vote.last_index, &m->vote.last_term);
    } else if (m->kind == RAFT_MSG_VOTE_REPLY) {
        m->vote_reply.pre = flag_of(s, "pre");
        m->vote_reply.granted = flag_of(s, "granted");
    } else if (m->kind == RAFT_MSG_SNAPSHOT) {
        m->snapshot.members = s->nodes[0].core.persisted.members;
        (void)pair_parse(value_of(s, "at"), &m->snapshot.index, &m->snapshot.term);
    }
}

static void do_inject(struct scenario *s)
{
    struct raft_entry entries[WORDS_MAX];
    size_t count = inject_entries(s, entries);
    struct raft_message m = {.kind = kind_of(word(s, 2)), .term = number_of(s, "term", 1)};
    char *end;
    m.from = strtoull(word(s, 1), &end, 10);
    m.to = strtoull(end + 1, NULL, 10);
    inject_fields(s, &m, entries, count);
    struct raft_input in = {.kind = RAFT_MESSAGE, .message = &m};
    step(s, node_find(s, m.to) ? node_find(s, m.to) : &s->nodes[0], &in);
    for (size_t i = 0; i < count; i++)
        buf_unref(entries[i].data);
}

static struct raft_beacon *beacon_of(struct node *n, uint64_t peer)
{
    for (unsigned i = 0; i < n->beacons.count; i++) {
        if (n->beacons.at[i].peer == peer)
            return &n->beacons.at[i];
    }
    ASSERT(n->beacons.count < RAFT_MEMBERS_MAX);
    n->beacons.at[n->beacons.count].peer = peer;
    return &n->beacons.at[n->beacons.count++];
}

static void do_beacon(struct scenario *s)
{
    char *end;
    struct node *from = node_find(s, strtoull(word(s, 1), &end, 10));
    struct node *to = node_find(s, strtoull(end + 1, NULL, 10));
    ASSERT(from && to);
    struct raft_beacon *sent = beacon_of(from, to->core.id);
    struct raft_beacon *heard = beacon_of(to, from->core.id);
    uint64_t bound = number_of(s, "bound", 0);
    raft__raise(&from->beacons.sent_bound, bound);
    raft__raise(&heard->heard_bound, bound);
    heard->heard_ms = s->now;
    if (flag_of(s, "unanswered"))
        return;
    raft__raise(&sent->acked_bound, bound);
    sent->acked_ms = s->now;
}

static bool input_command(struct scenario *s)
{
    static const struct {
        const char *name;
        unsigned kind;
    } inputs[] = {
        {"tick", RAFT_TICK},         {"campaign", RAFT_CAMPAIGN},
        {"transfer", RAFT_TRANSFER}, {"down", RAFT_PEER_DOWN},
        {"up", RAFT_PEER_UP},        {"snapshot_fail", RAFT_SNAPSHOT_FAILED},
        {"hangs", RAFT_DISK_HANGS},  {"goes_on", RAFT_DISK_GOES_ON},
    };
    for (unsigned i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        if (strcmp(word(s, 0), inputs[i].name) == 0) {
            step_kind(s, scenario__node(s, 1), inputs[i].kind);
            return true;
        }
    }
    return false;
}

static bool handler_command(struct scenario *s)
{
    static const struct {
        const char *name;
        void (*run)(struct scenario *s);
    } handlers[] = {
        {"nodes", do_nodes},       {"join", do_join},       {"restore", do_restore},
        {"settle", do_settle},     {"run", do_run},         {"cut", do_cut},
        {"restart", do_restart},   {"wipe", do_wipe},       {"propose", do_propose},
        {"read", do_read},         {"change", do_change},   {"stored", do_stored},
        {"snapshot", do_snapshot}, {"install", do_install}, {"install_fail", do_install_fail},
        {"applied", do_applied},   {"inject", do_inject},   {"hard", do_hard},
        {"beacon", do_beacon},
    };
    for (unsigned i = 0; i < sizeof handlers / sizeof handlers[0]; i++) {
        if (strcmp(word(s, 0), handlers[i].name) == 0) {
            handlers[i].run(s);
            return true;
        }
    }
    return false;
}

static bool world_command(struct scenario *s)
{
    const char *name = word(s, 0);
    if (strcmp(name, "time") == 0)
        s->now = scenario__number(s, 1);
    else if (strcmp(name, "deliver") == 0)
        (void)deliver(s, false, false);
    else if (strcmp(name, "drop") == 0)
        (void)deliver(s, true, false);
    else if (strcmp(name, "reverse") == 0)
        reverse(s);
    else if (strcmp(name, "heal") == 0)
        memset(s->cut, 0, sizeof s->cut);
    else if (strcmp(name, "store") == 0)
        (void)store(s, scenario__node(s, 1),
                    scenario__number(s, 2) ? scenario__number(s, 2) : SIZE_MAX);
    else if (strcmp(name, "disk") == 0)
        scenario__node(s, 1)->slow = strcmp(word(s, 2), "slow") == 0;
    else if (strcmp(name, "persist") == 0)
        core_persist(&scenario__node(s, 1)->core);
    else if (strcmp(name, "crash") == 0)
        core_crash(&scenario__node(s, 1)->core, 0);
    else
        return false;
    return true;
}

struct scenario *scenario_new(void)
{
    struct scenario *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    return s;
}

void scenario_free(struct scenario *s)
{
    clear(s);
    free(s);
}

bool scenario_command(struct scenario *s, char *line)
{
    char *rest = NULL;
    s->word_count = 0;
    memset(s->words, 0, sizeof s->words);
    for (char *p = strtok_r(line, " ", &rest); p && s->word_count < WORDS_MAX;
         p = strtok_r(NULL, " ", &rest))
        s->words[s->word_count++] = p;
    return scenario__question(s) || input_command(s) || handler_command(s) || world_command(s);
}

const char *scenario_take(struct scenario *s)
{
    s->out[s->used] = '\0';
    s->used = 0;
    return s->out;
}
