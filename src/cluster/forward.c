/*
 * cluster/forward.c — clients' commands, in order, to whoever leads.
 *
 * Each shard has a line of commands. Its front goes to the shard's queue where this node leads,
 * else to the leader as requests, many at a time. One that comes back undone stops the line: when
 * all that are under way have come back, in whatever way, it starts again, in the old order and
 * under the next epoch. A leader that refused one command refuses the others of its epoch, so none
 * overtakes another.
 *
 * An attempt's end is of three kinds: an answer; "certainly not done", then it is tried again; "not
 * known", then it is tried again too, for its id makes the second attempt harmless. When time is up
 * the two latter are what the client is told.
 *
 * Invariants
 *   C1  A command is in one list of its line, both ordered by number, and all under way have lower
 *       numbers than all that wait, but for those that came back.
 *   C2  Those under way are all at one place.
 *   C3  DONE runs once, after the command has left the line.
 *   C4  Bytes that were proposed are not stamped again: a second proposal gets a copy.
 *
 * Threads: the reactor.
 */
#include "base/assert.h"
#include "base/codec.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/forward_internal.h"
#include "kv/answer.h"
#include <stdlib.h>

/* Between attempts where nothing happens that would be a reason for one. */
#define AGAIN_US 10000u
/* So often a command that was told to be too old gets a newer time, if it was never done. */
#define RENEWALS_MAX 3u

uint64_t cl__forward_now(const struct cl_forward *f)
{
    return env_mono_us(f->node->env);
}

void cl__forward_kick(struct cl_forward *f)
{
    cl__node_kick(f->node);
}

uint64_t cl__forward_leader(const struct cl_forward *f, const struct cl_shard *s)
{
    uint64_t leader = cl_shard_leader(s);
    if (leader == 0 || leader == f->node->topology.self ||
        !cl_transport_up(f->node->transport, leader))
        return 0;
    return leader;
}

static struct cl_line *line_of(const struct cl_shard *s)
{
    return &s->node->forward->lines[s->position];
}

static struct cl_command *command_at(struct list *node)
{
    return CONTAINER_OF(node, struct cl_command, node);
}

/* -- leaving the line -------------------------------------------------------------------------- */

static void leave(struct cl_command *c)
{
    struct cl_forward *f = c->shard->node->forward;
    struct cl_line *l = line_of(c->shard);
    list_remove(&c->node);
    if (c->state == CL_COMMAND_WAITING)
        l->waiting_count--;
    else
        l->under_way_count--;
    f->bytes -= c->bytes->size;
    buf_unref(c->bytes);
    c->bytes = NULL;
    cl__forward_kick(f);
}

/* It is certain that the attempt did nothing, and another place or moment may be better. */
static bool not_done(status st)
{
    return st == ST_NOT_LEADER || st == ST_UNREACHABLE || st == ST_BUSY || st == ST_LOCKED ||
           st == ST_SHUTDOWN;
}

static void answered(struct cl_command *c, const struct kv_applied *a)
{
    leave(c);
    c->done(c, ST_OK, a);
}

/* What the client is told when no attempt has brought an answer; ST: why the last one did not. */
static void give_up(struct cl_command *c, status st)
{
    const struct cl_shard *s = c->shard;
    struct kv_applied a = {.result = {.scalar = KV_NULL}};
    leave(c);
    if (c->doubtful) {
        MARK("forward.unknown");
        s->node->forward->unknown++;
        c->done(c, ST_OUTCOME_UNKNOWN, NULL);
        return;
    }
    if (s->node->phase >= CL_NODE_STOPPING || !not_done(st)) {
        c->done(c, st == ST_NOT_LEADER ? ST_SHUTDOWN : st, NULL);
        return;
    }
    a.outcome = err_set(&a.err, ST_NOT_LEADER, "no node leads shard %llu (table %s)",
                        (unsigned long long)s->id, s->name);
    err_hint(&a.err, "Nothing was done. Try again: the nodes are choosing a leader, or too few of "
                     "them are up.");
    c->done(c, ST_OK, &a);
}

/* -- coming back ------------------------------------------------------------------------------- */

static void wait_again(struct cl_command *c)
{
    struct cl_line *l = line_of(c->shard);
    struct list *before = &l->waiting;
    list_remove(&c->node);
    l->under_way_count--;
    /* Those that came back before have lower numbers, as a rule. */
    while (before->next != &l->waiting && command_at(before->next)->number < c->number)
        before = before->next;
    list_insert_between(&c->node, before, before->next);
    l->waiting_count++;
    c->state = CL_COMMAND_WAITING;
    MARK("forward.came_back");
    l->draining = l->trial = true;
    c->shard->node->forward->retried++;
    cl__forward_kick(c->shard->node->forward);
}

/* May another attempt end otherwise? */
static bool worth_trying(const struct cl_command *c, status st)
{
    const struct cl_node *n = c->shard->node;
    if (n->phase >= CL_NODE_STOPPING || n->forward->abandoned)
        return false;
    if (c->state == CL_COMMAND_HERE && n->failed != ST_OK)
        return false;
    return c->doubtful || not_done(st);
}

static void came_back(struct cl_command *c, status st)
{
    struct cl_forward *f = c->shard->node->forward;
    if (st == ST_OUTCOME_UNKNOWN)
        c->doubtful = true;
    if (worth_trying(c, st) && cl__forward_now(f) < c->deadline_us)
        wait_again(c);
    else
        give_up(c, st);
}

static void own_bytes(struct cl_command *c)
{
    struct buf *copy = buf_copy(buf_bytes(c->bytes));
    buf_unref(c->bytes);
    c->bytes = copy;
}

/* An answer, which may be that the command is too old: one that was surely never done gets another
 * time. */
static void took_effect(struct cl_command *c, hlc_ts log_time, const struct kv_applied *a)
{
    struct cl_line *l = line_of(c->shard);
    if (log_time > l->log_time)
        l->log_time = log_time;
    if (a->outcome == ST_OUTCOME_UNKNOWN && !c->doubtful && c->renewals < RENEWALS_MAX) {
        MARK("forward.renewed");
        c->renewals++;
        own_bytes(c); /* C4 */
        kv_command_renew(c->bytes->data, l->log_time);
        came_back(c, ST_BUSY);
        return;
    }
    l->trial = false;
    answered(c, a);
}

/* -- here -------------------------------------------------------------------------------------- */

static void here_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct cl_command *c = CONTAINER_OF(p, struct cl_command, proposal);
    ASSERT(c->state == CL_COMMAND_HERE);
    if (st == ST_OK)
        took_effect(c, kv_state_applied_ts(c->shard->state), a);
    else
        came_back(c, st);
}

static void start_here(struct cl_command *c)
{
    if (c->attempts > 1)
        own_bytes(c); /* C4 */
    c->state = CL_COMMAND_HERE;
    c->proposal = (struct cl_proposal){.command = buf_ref(c->bytes), .done = here_done};
    cl_shard_propose(c->shard, &c->proposal);
}

/* -- elsewhere --------------------------------------------------------------------------------- */

static void sent_answered(struct cl_command *c, bytes payload)
{
    struct cl_forward *f = c->shard->node->forward;
    struct kv_applied a;
    struct cl_proposed p;
    arena_reset(&f->arena);
    if (cl_proposed_decode(payload, &p) != ST_OK ||
        kv_answer_decode(p.answer, &f->arena, &a) != ST_OK) {
        LOG_ERROR("forward.bad_answer", LOG_U64("node", c->request.node));
        came_back(c, ST_OUTCOME_UNKNOWN);
    } else if (p.applied) {
        took_effect(c, p.log_time, &a);
    } else if (worth_trying(c, a.outcome)) {
        came_back(c, a.outcome);
    } else {
        answered(c, &a);
    }
}

static void sent_done(struct cl_request *r, status st, bytes payload)
{
    struct cl_command *c = CONTAINER_OF(r, struct cl_command, request);
    ASSERT(c->state == CL_COMMAND_SENT);
    if (st == ST_OK)
        sent_answered(c, payload);
    else
        came_back(c, st);
}

static status send(struct cl_forward *f, struct cl_line *l, struct cl_command *c, uint64_t leader)
{
    uint64_t now = cl__forward_now(f);
    struct cl_propose ask = {
        .shard = l->shard->id, .epoch = l->epoch, .command = buf_bytes(c->bytes)};
    obuf_reset(&f->encoding);
    cl_propose_encode(&ask, &f->encoding);
    c->request.done = sent_done;
    return cl_transport_request(f->node->transport, &c->request, leader, CL_METHOD_PROPOSE,
                                c->deadline_us > now ? c->deadline_us - now : 1,
                                bytes_make(f->encoding.data, f->encoding.size));
}

/* Another leader is known than the one that has them: it may never answer. */
static void recall(struct cl_forward *f, struct cl_line *l)
{
    LIST_FOR_EACH_SAFE(it, after, &l->under_way) {
        struct cl_command *c = command_at(it);
        if (c->state != CL_COMMAND_SENT)
            continue; /* the shard gives it back when it ceases to lead */
        MARK("forward.recalled");
        cl_transport_cancel(f->node->transport, &c->request);
        came_back(c, ST_OUTCOME_UNKNOWN);
    }
}

/* -- the line ---------------------------------------------------------------------------------- */

static void leave_for(struct cl_line *l, struct cl_command *c, uint64_t place)
{
    ASSERT_INV("C2", l->under_way_count == 0 || l->place == place);
    list_remove(&c->node);
    l->waiting_count--;
    list_push_back(&l->under_way, &c->node);
    l->under_way_count++;
    l->place = place;
    c->attempts++;
}

/* The first one that waits. False: not now. */
static bool start_first(struct cl_forward *f, struct cl_line *l, uint64_t place)
{
    struct cl_command *c = command_at(l->waiting.next);
    struct err err;
    status st;
    if (place == 0) {
        st = cl_shard_admit(l->shard, &err);
        if (st == ST_OK) {
            leave_for(l, c, place);
            start_here(c);
            return true;
        }
    } else {
        st = send(f, l, c, place);
        if (st == ST_OK) {
            leave_for(l, c, place);
            c->state = CL_COMMAND_SENT;
            f->sent++;
            return true;
        }
    }
    if (worth_trying(c, st))
        return false;
    give_up(c, st);
    return true;
}

static void expire(struct cl_forward *f, struct cl_line *l)
{
    uint64_t now = cl__forward_now(f);
    while (!list_empty(&l->waiting) && command_at(l->waiting.next)->deadline_us <= now)
        give_up(command_at(l->waiting.next), ST_NOT_LEADER);
}

static void end_withdrawn(struct cl_line *l)
{
    l->withdrawn = false;
    LIST_FOR_EACH_SAFE(it, after, &l->waiting) {
        if (command_at(it)->withdrawn)
            give_up(command_at(it), ST_CANCELLED);
    }
}

static void push(struct cl_forward *f, struct cl_line *l)
{
    bool here = cl_shard_here(l->shard);
    uint64_t place = here ? 0 : cl__forward_leader(f, l->shard);
    if (l->under_way_count > 0 && place != l->place && (here || place != 0)) {
        l->draining = true;
        recall(f, l);
    }
    expire(f, l);
    if (l->withdrawn)
        end_withdrawn(l);
    if (l->draining) {
        if (l->under_way_count > 0)
            return;
        l->draining = false;
        l->epoch++;
    }
    while (!list_empty(&l->waiting) && (here || place != 0) && !l->draining) {
        if ((l->trial && l->under_way_count > 0) || !start_first(f, l, place))
            return;
    }
}

status cl_command_admit(struct cl_shard *s, struct err *err)
{
    const struct cl_node *n = s->node;
    const struct cl_forward *f = n->forward;
    if (f == NULL || cl_shard_here(s))
        return cl_shard_admit(s, err);
    if (n->phase >= CL_NODE_STOPPING || n->failed != ST_OK || n->phase != CL_NODE_SERVING)
        return cl_shard_serving(s, err);
    const struct cl_line *l = line_of(s);
    if (l->waiting_count + l->under_way_count < CL_COMMANDS_MAX && f->bytes < CL_COMMANDS_BYTES_MAX)
        return ST_OK;
    err_set(err, ST_BUSY, "too many commands wait for the leader of shard %llu (table %s)",
            (unsigned long long)s->id, s->name);
    err_hint(err, "Nothing was done. Try again later.");
    return ST_BUSY;
}

struct kv_origin cl_command_origin(struct cl_shard *s)
{
    struct cl_node *n = s->node;
    struct kv_origin o = cl__node_origin(n);
    if (n->forward == NULL)
        return o;
    hlc_ts told = line_of(s)->log_time;
    o.again = true;
    o.since = kv_state_applied_ts(s->state);
    if (told > o.since)
        o.since = told;
    return o;
}

static void alone_done(struct cl_proposal *p, status st, const struct kv_applied *a)
{
    struct cl_command *c = CONTAINER_OF(p, struct cl_command, proposal);
    c->done(c, st, a);
}

void cl_command_start(struct cl_command *c, struct cl_shard *s, struct buf *encoded)
{
    struct cl_forward *f = s->node->forward;
    c->shard = s;
    if (f == NULL) {
        c->proposal = (struct cl_proposal){.command = encoded, .done = alone_done};
        cl_shard_propose(s, &c->proposal);
        return;
    }
    struct cl_line *l = line_of(s);
    c->proposal = (struct cl_proposal){.done = here_done};
    c->bytes = encoded;
    c->number = ++f->numbers;
    c->deadline_us = cl__forward_now(f) + f->node->options.patience_us;
    c->state = CL_COMMAND_WAITING;
    c->attempts = c->renewals = 0;
    c->doubtful = c->withdrawn = false;
    f->bytes += encoded->size;
    list_push_back(&l->waiting, &c->node);
    l->waiting_count++;
    if (l->waiting_count == 1 && !l->draining && !l->trial &&
        (l->under_way_count == 0 || l->place == 0) && cl_shard_here(s)) {
        leave_for(l, c, 0);
        start_here(c);
    }
    cl__forward_kick(f);
}

bool cl_command_withdraw(struct cl_command *c)
{
    if (c->shard->node->forward == NULL || c->state != CL_COMMAND_WAITING || c->doubtful)
        return false;
    c->withdrawn = line_of(c->shard)->withdrawn = true;
    cl__forward_kick(c->shard->node->forward);
    return true;
}

/* -- the object -------------------------------------------------------------------------------- */

static void on_timer(void *arg)
{
    cl__forward_kick(arg);
}

struct cl_forward *cl_forward_new(struct cl_node *n)
{
    if (n->host == NULL)
        return NULL;
    struct cl_forward *f = calloc(1, sizeof *f);
    ASSERT(f != NULL);
    f->node = n;
    obuf_init(&f->encoding);
    arena_init(&f->arena, 4096);
    list_init(&f->asks);
    list_init(&f->batches);
    list_init(&f->applying);
    list_init(&f->ready);
    list_init(&f->calls);
    list_init(&f->recalls);
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        f->lines[i].shard = n->shards[i];
        list_init(&f->lines[i].waiting);
        list_init(&f->lines[i].under_way);
    }
    f->timer = loop_timer_new(n->reactors[0].loop, on_timer, f);
    return f;
}

void cl_forward_free(struct cl_forward *f)
{
    if (f == NULL)
        return;
    ASSERT(cl_forward_idle(f));
    loop_timer_free(f->timer);
    obuf_fini(&f->encoding);
    arena_fini(&f->arena);
    free(f);
}

/* What is under way has its answer soon; the rest is not begun any more. */
static void stop_waiting(struct cl_forward *f, status st)
{
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        while (!list_empty(&f->lines[i].waiting))
            give_up(command_at(f->lines[i].waiting.next), st);
    }
    cl__asks_abandon(f, st);
    cl__calls_abandon(f, st);
}

void cl_forward_turn(struct cl_forward *f)
{
    bool waits = f->ask_count > 0 || !list_empty(&f->calls);
    if (f->abandoned)
        return;
    if (f->node->phase >= CL_NODE_STOPPING) {
        stop_waiting(f, ST_SHUTDOWN);
        return;
    }
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        const struct cl_line *l = &f->lines[i];
        push(f, &f->lines[i]);
        waits = waits || l->waiting_count > 0 || (l->under_way_count > 0 && l->place != 0);
    }
    cl__asks_turn(f);
    cl__calls_turn(f);
    if (waits)
        loop_timer_start(f->timer, AGAIN_US);
}

bool cl_forward_idle(const struct cl_forward *f)
{
    if (f->ask_count > 0 || !list_empty(&f->calls))
        return false;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        if (f->lines[i].waiting_count + f->lines[i].under_way_count > 0)
            return false;
    }
    return true;
}

void cl_forward_abandon(struct cl_forward *f, status st)
{
    if (f == NULL)
        return;
    f->abandoned = true;
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        struct cl_line *l = &f->lines[i];
        LIST_FOR_EACH_SAFE(it, after, &l->under_way) {
            struct cl_command *c = command_at(it);
            if (c->state != CL_COMMAND_SENT)
                continue; /* the shard is abandoned too */
            cl_transport_cancel(f->node->transport, &c->request);
            came_back(c, ST_OUTCOME_UNKNOWN);
        }
    }
    stop_waiting(f, st);
}

void cl_forward_stats(const struct cl_forward *f, struct cl_forward_stats *out)
{
    *out = (struct cl_forward_stats){.bytes = f->bytes,
                                     .sent = f->sent,
                                     .retried = f->retried,
                                     .unknown = f->unknown,
                                     .asks = f->ask_count,
                                     .asked = f->asked,
                                     .rounds = f->rounds};
    for (unsigned i = 0; i < CL_SHARDS; i++) {
        out->waiting += f->lines[i].waiting_count;
        out->under_way += f->lines[i].under_way_count;
    }
}
