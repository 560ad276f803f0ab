/*
 * What a scenario prints: steps, messages, and the answers to state, log, members, peers, queue
 * and get.
 */
#include "scenario_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* -- output --------------------------------------------- */

void scenario__say(struct scenario *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(s->out + s->used, sizeof s->out - s->used, format, args);
    va_end(args);
    ASSERT(n >= 0 && (size_t)n < sizeof s->out - s->used);
    s->used += (size_t)n;
}

static const char *role_name(enum raft_role role)
{
    static const char *const names[] = {"follower", "candidate", "leader"};
    return names[role];
}

static void say_members(struct scenario *s, const struct raft_members *m)
{
    for (unsigned i = 0; i < m->count; i++)
        scenario__say(s, "%s%" PRIu64 "%s", i > 0 ? "," : "", m->at[i].id,
                      m->at[i].role == RAFT_LEARNER ? "l" : "");
}

static void say_entry(struct scenario *s, const struct raft_entry *e)
{
    struct raft_members m;
    scenario__say(s, "%" PRIu64 ":%" PRIu64, e->index, e->term);
    switch (e->kind) {
    case RAFT_ENTRY_COMMAND:
        scenario__say(s, ":%.*s", (int)e->data->size, (const char *)e->data->data);
        break;
    case RAFT_ENTRY_NOOP: scenario__say(s, ":noop"); break;
    case RAFT_ENTRY_MEMBERS:
    case RAFT_ENTRY_SNAPSHOT:
        ASSERT(raft_members_decode(buf_bytes(e->data), &m) == ST_OK);
        scenario__say(s, e->kind == RAFT_ENTRY_MEMBERS ? ":members=" : ":snapshot=");
        say_members(s, &m);
        break;
    }
}

static void say_ack(struct scenario *s, const struct raft_ack *a)
{
    scenario__say(s, " match=%" PRIu64 " last=%" PRIu64, a->match, a->last);
}

void scenario__say_message(struct scenario *s, const struct raft_message *m)
{
    static const char *const verdicts[] = {"", "accepted", "refused", "done"};
    scenario__say(s, "%" PRIu64 ">%" PRIu64 " %s term=%" PRIu64, m->from, m->to,
                  raft_message_name(m->kind), m->term);
    switch (m->kind) {
    case RAFT_MSG_APPEND:
        scenario__say(s, " prev=%" PRIu64 ":%" PRIu64, m->append.prev_index, m->append.prev_term);
        for (size_t i = 0; i < m->append.count; i++) {
            scenario__say(s, " ");
            say_entry(s, &m->append.entries[i]);
        }
        scenario__say(s, " commit=%" PRIu64, m->lead.commit);
        break;
    case RAFT_MSG_APPEND_REPLY:
        say_ack(s, &m->ack);
        if (m->append_reply.refused)
            scenario__say(s, " refused prev=%" PRIu64 " hint=%" PRIu64 ":%" PRIu64,
                          m->append_reply.prev_index, m->append_reply.hint_index,
                          m->append_reply.hint_term);
        break;
    case RAFT_MSG_HEARTBEAT:
        scenario__say(s, " commit=%" PRIu64 "%s%s", m->lead.commit,
                      m->heartbeat.quiet ? " quiet" : "", m->heartbeat.quiesce ? " quiesce" : "");
        break;
    case RAFT_MSG_HEARTBEAT_REPLY:
        say_ack(s, &m->ack);
        if (m->heartbeat_reply.installing)
            scenario__say(s, " installing=%" PRIu64, m->heartbeat_reply.installing);
        scenario__say(s, "%s", m->heartbeat_reply.asleep ? " asleep" : "");
        break;
    case RAFT_MSG_VOTE:
        scenario__say(s, "%s%s last=%" PRIu64 ":%" PRIu64, m->vote.pre ? " pre" : "",
                      m->vote.transfer ? " transfer" : "", m->vote.last_index, m->vote.last_term);
        break;
    case RAFT_MSG_VOTE_REPLY:
        scenario__say(s, "%s%s", m->vote_reply.pre ? " pre" : "",
                      m->vote_reply.granted ? " granted" : " refused");
        break;
    case RAFT_MSG_SNAPSHOT:
        scenario__say(s, " at=%" PRIu64 ":%" PRIu64 " members=", m->snapshot.index,
                      m->snapshot.term);
        say_members(s, &m->snapshot.members);
        break;
    case RAFT_MSG_SNAPSHOT_REPLY:
        scenario__say(s, " %s at=%" PRIu64, verdicts[m->snapshot_reply.verdict],
                      m->snapshot_reply.index);
        say_ack(s, &m->ack);
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_KINDS: break;
    }
    scenario__say(s, "\n");
}

void scenario__say_terse(struct scenario *s, const struct node *n, const struct raft_output *out)
{
    uint64_t id = n->core.id;
    if (out->role_changed)
        scenario__say(s, "%" PRIu64 ": %s term=%" PRIu64 "\n", id,
                      role_name(raft_role(n->core.raft)), raft_hard_state(n->core.raft).term);
    if (out->read_token)
        scenario__say(s, "%" PRIu64 ": reads up to %" PRIu64 " at %" PRIu64 "\n", id,
                      out->read_token, out->read_index);
    if (out->snapshot_for)
        scenario__say(s, "%" PRIu64 ": needs a snapshot for %" PRIu64 "\n", id, out->snapshot_for);
    if (out->install)
        scenario__say(s, "%" PRIu64 ": installs %" PRIu64 ":%" PRIu64 " from %" PRIu64 "\n", id,
                      out->install->index, out->install->term, out->install_from);
}

void scenario__say_step(struct scenario *s, const struct node *n, status st,
                        const struct raft_output *out, uint64_t commit_before)
{
    scenario__say(s, "%" PRIu64 ": %s", n->core.id, status_name(st));
    if (out->hard_state_changed) {
        struct raft_hard_state hs = raft_hard_state(n->core.raft);
        scenario__say(s, " hard=%" PRIu64 "/%" PRIu64, hs.term, hs.vote);
    }
    for (size_t i = 0; i < out->append_count; i++) {
        scenario__say(s, "%s", i == 0 ? " append=" : ",");
        say_entry(s, &out->append[i]);
    }
    if (out->first_proposed)
        scenario__say(s, " first=%" PRIu64, out->first_proposed);
    if (out->commit_index != commit_before)
        scenario__say(s, " commit=%" PRIu64, out->commit_index);
    scenario__say(s, "\n");
    scenario__say_terse(s, n, out);
    for (size_t i = 0; i < out->send_count; i++) {
        scenario__say(s, "  ");
        scenario__say_message(s, &out->send[i]);
    }
}

/* -- questions --------------------------------------------- */

static void say_state(struct scenario *s, const struct node *n)
{
    const struct raft *r = n->core.raft;
    scenario__say(s, "%" PRIu64 ": ", n->core.id);
    if (!r) {
        scenario__say(s, "down\n");
        return;
    }
    struct raft_hard_state hs = raft_hard_state(r);
    scenario__say(s,
                  "%s term=%" PRIu64 " vote=%" PRIu64 " leader=%" PRIu64 " last=%" PRIu64
                  " stored=%" PRIu64 " commit=%" PRIu64,
                  role_name(raft_role(r)), hs.term, hs.vote, raft_leader(r), raft_last_index(r),
                  raft_stored_index(r), raft_commit_index(r));
    uint64_t lease = raft_lease_until_ms(r);
    if (lease == UINT64_MAX)
        scenario__say(s, " lease=always");
    else if (lease > s->now)
        scenario__say(s, " lease=%" PRIu64, lease - s->now);
    if (raft_next_tick_ms(r) == UINT64_MAX)
        scenario__say(s, " asleep");
    scenario__say(s, "\n");
}

static void do_state(struct scenario *s)
{
    if (s->word_count == 1) {
        for (unsigned i = 0; i < s->count; i++)
            say_state(s, &s->nodes[i]);
        return;
    }
    for (unsigned i = 1; i < s->word_count; i++)
        say_state(s, scenario__node(s, i));
}

/* Entries in memory. */
static void do_log(struct scenario *s)
{
    for (unsigned k = 1; k < s->word_count; k++) {
        const struct raft *r = scenario__node(s, k)->core.raft;
        scenario__say(s, "%s:", s->words[k]);
        if (r->tail.base_index > 0)
            scenario__say(s, " (%" PRIu64 ":%" PRIu64 ")", r->tail.base_index, r->tail.base_term);
        for (uint64_t i = r->tail.base_index + 1; i <= raft_last_index(r); i++) {
            scenario__say(s, " ");
            say_entry(s, raft_entry_get(r, i));
        }
        scenario__say(s, "\n");
    }
}

static void do_members(struct scenario *s)
{
    for (unsigned k = 1; k < s->word_count; k++) {
        struct raft_members m;
        const struct raft *r = scenario__node(s, k)->core.raft;
        raft_members_at(r, raft_last_index(r), &m);
        scenario__say(s, "%s: ", s->words[k]);
        say_members(s, &m);
        scenario__say(s, "\n");
    }
}

static void do_peers(struct scenario *s)
{
    static const char *const states[] = {"probe", "pipeline", "snapshot"};
    const struct raft *r = scenario__node(s, 1)->core.raft;
    struct raft_peer p;
    for (unsigned i = 0; i < RAFT_MEMBERS_MAX; i++) {
        if (raft_peer(r, i, &p))
            scenario__say(s, "%" PRIu64 ": %s match=%" PRIu64 " next=%" PRIu64 "%s\n", p.id,
                          states[p.state], p.match, p.next, p.down ? " down" : "");
    }
    scenario__say(s, "oldest needed: %" PRIu64 "\n", raft_oldest_needed(r));
}

static void do_queue(struct scenario *s)
{
    for (unsigned i = 0; i < s->queued; i++)
        scenario__say_message(s, &s->queue[i]);
}

static void do_get(struct scenario *s)
{
    const struct raft_entry *e =
        raft_entry_get(scenario__node(s, 1)->core.raft, scenario__number(s, 2));
    if (e)
        say_entry(s, e);
    else
        scenario__say(s, "none");
    scenario__say(s, "\n");
}

bool scenario__question(struct scenario *s)
{
    static const struct {
        const char *name;
        void (*run)(struct scenario *s);
    } questions[] = {
        {"state", do_state}, {"log", do_log},     {"members", do_members},
        {"peers", do_peers}, {"queue", do_queue}, {"get", do_get},
    };
    for (unsigned i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        if (strcmp(s->words[0], questions[i].name) == 0) {
            questions[i].run(s);
            return true;
        }
    }
    return false;
}
