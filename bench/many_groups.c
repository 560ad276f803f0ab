#include "many_groups.h"

#include "base/assert.h"
#include "raft/message.h"

#include <stdlib.h>

#define READ_AHEAD_US 1000000u

static uint64_t now_us(const struct many *m)
{
    return env_mono_us(m->o.env);
}

/* -- steps ------------------------------------------------------------------------------------- */

static void remember(struct many *m, unsigned at, const struct raft_output *out)
{
    struct many_group *g = &m->at[at];
    if (out->append_count == 0 && !out->hard_state_changed)
        return;
    if (!g->pending) {
        g->store = (struct raft_input){.kind = RAFT_STORED};
        m->pending[m->pending_count++] = at;
    }
    g->pending = true;
    if (out->hard_state_changed)
        g->store.stored_hard = raft_hard_state(g->group.raft);
    if (out->append_count == 0)
        return;
    g->store.stored_index = out->append[out->append_count - 1].index;
    g->store.stored_term = out->append[out->append_count - 1].term;
    g->store.stored_epoch = out->append_epoch;
}

static status take_step(struct many *m, struct many_group *g, struct raft_input *in)
{
    struct raft_output out;
    uint64_t us = now_us(m);
    m->steps++;
    in->now_ms = us / 1000;
    if (raft_role(g->group.raft) == RAFT_LEADER)
        in->read_bound = us + READ_AHEAD_US;
    status st = raft_step(g->group.raft, in, &out);
    if (st != ST_OK)
        return st;
    remember(m, (unsigned)(g - m->at), &out);
    for (size_t i = 0; i < out.send_count; i++) {
        const struct raft_message *one = &out.send[i];
        obuf_reset(&m->message);
        raft_message_encode(one, &m->message);
        m->messages++;
        (void)cl_transport_message(m->transport, one->to, g->group.id, one->from, one->to,
                                   bytes_make(m->message.data, m->message.size));
    }
    ASSERT(out.install == NULL);
    if (out.commit_index > g->applied)
        raft_applied(g->group.raft, g->applied = out.commit_index);
    cl_groups_note(m->groups, &g->group);
    return ST_OK;
}

static void on_turn(void *arg)
{
    struct many *m = arg;
    m->turns++;
    /* What a step here appends comes behind the others: some rounds and it is all stored. */
    for (unsigned i = 0; i < m->pending_count; i++) {
        struct many_group *g = &m->at[m->pending[i]];
        struct raft_input in = g->store;
        g->pending = false;
        (void)take_step(m, g, &in);
        ASSERT(m->pending_count <= 4 * m->o.groups);
    }
    m->pending_count = 0;
    cl_groups_turn(m->groups);
}

/* -- events ------------------------------------------------------------------------------------ */

static void on_group(void *arg, struct cl_group *g, struct raft_input *in)
{
    (void)take_step(arg, CONTAINER_OF(g, struct many_group, group), in);
}

static uint64_t on_wish(void *arg)
{
    return now_us(arg) + READ_AHEAD_US;
}

static bool on_covers(void *arg, uint64_t bound)
{
    (void)arg;
    (void)bound;
    return true; /* there is no restart */
}

static const struct cl_groups_events group_events = {
    .step = on_group, .read_wish = on_wish, .covers = on_covers};

static void on_message(void *arg, uint64_t node, uint64_t group, uint64_t from, uint64_t to,
                       bytes payload)
{
    struct many *m = arg;
    struct raft_message one;
    if (group < 1 || group > m->o.groups || from != node || to != m->o.topology->self ||
        raft_message_decode(payload, &one) != ST_OK)
        return;
    (void)take_step(m, &m->at[group - 1],
                    &(struct raft_input){.kind = RAFT_MESSAGE, .message = &one});
    raft_message_fini(&one);
}

static void on_changed(void *arg, uint64_t node, bool up)
{
    cl_groups_changed(((struct many *)arg)->groups, node, up);
}

static void fill_beacon(void *arg, uint64_t node, struct obuf *out)
{
    struct many *m = arg;
    m->beacons++;
    cl_groups_fill_beacon(m->groups, node, out);
}

static void on_beacon(void *arg, uint64_t node, bytes payload)
{
    status st = cl_groups_beacon(((struct many *)arg)->groups, node, payload);
    ASSERT(st == ST_OK);
}

static const struct cl_transport_events transport_events = {
    .message = on_message, .changed = on_changed, .fill_beacon = fill_beacon, .beacon = on_beacon};

/* -- the object -------------------------------------------------------------------------------- */

static void make_groups(struct many *m)
{
    const struct many_options *o = &m->o;
    struct raft_config config = {.self = o->topology->self,
                                 .election_ms = o->election_ms,
                                 .heartbeat_ms = o->heartbeat_ms,
                                 .quiesce_ms = o->quiesce_ms,
                                 .beacons = cl_groups_beacons(m->groups)};
    for (unsigned i = 0; i < MANY_NODES; i++)
        config.members.at[config.members.count++] =
            (struct raft_member){.id = i + 1, .role = RAFT_VOTER};
    m->at = calloc(o->groups, sizeof *m->at);
    m->pending = calloc(4 * o->groups + 1, sizeof *m->pending);
    ASSERT(m->at != NULL && m->pending != NULL);
    for (unsigned i = 0; i < o->groups; i++) {
        config.seed = o->topology->self * 1000003 + i;
        m->at[i].group = (struct cl_group){
            .id = i + 1, .raft = raft_new(&config, (struct raft_hard_state){0}, 0, 0)};
        cl_groups_add(m->groups, &m->at[i].group);
    }
}

status many_open(struct many *m, const struct many_options *o, struct err *err)
{
    *m = (struct many){.o = *o};
    struct cl_transport_options t = {.env = o->env,
                                     .loop = o->loop,
                                     .topology = o->topology,
                                     .cluster_id = 7,
                                     .store_id = 100 + o->topology->self,
                                     .events = &transport_events,
                                     .arg = m};
    cl_transport_defaults(&t);
    t.beacon_us = o->heartbeat_ms * 1000;
    t.silence_us = o->election_ms * 1000;
    obuf_init(&m->message);
    m->groups = cl_groups_new(o->env, &group_events, m);
    make_groups(m);
    m->turn =
        loop_turn_new(o->loop, on_turn, m); /* before the transport's: it sends what is said */
    cl_groups_start(m->groups, o->loop);
    return cl_transport_new(&t, &m->transport, err);
}

void many_close(struct many *m)
{
    cl_transport_free(m->transport);
    loop_turn_free(m->turn);
    for (unsigned i = 0; i < m->o.groups; i++)
        raft_free(m->at[i].group.raft);
    cl_groups_free(m->groups);
    free(m->at);
    free(m->pending);
    obuf_fini(&m->message);
}

status many_propose(struct many *m, unsigned group)
{
    struct buf *command = buf_copy(BYTES_LIT("command"));
    struct raft_input in = {.kind = RAFT_PROPOSE, .commands = &command, .command_count = 1};
    status st = take_step(m, &m->at[group], &in);
    buf_unref(command);
    return st;
}

bool many_serves(const struct many *m, unsigned group)
{
    const struct raft *r = m->at[group].group.raft;
    uint64_t us = now_us(m);
    return raft_role(r) == RAFT_LEADER && raft_lease_until_ms(r) > us / 1000 &&
           raft_read_bound(r) > us;
}

unsigned many_led(const struct many *m)
{
    unsigned led = 0;
    for (unsigned i = 0; i < m->o.groups; i++)
        led += raft_role(m->at[i].group.raft) == RAFT_LEADER;
    return led;
}
