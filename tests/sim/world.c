/* sim/world.c — machines, and faults at random times. */
#include "sim/world.h"
#include "base/assert.h"
#include <stdio.h>

#define MS 1000u
#define SECOND 1000000u
#define DRIFT_PPM 3000u
#define JUMP_US 3600000000ll

const char *const fault_names[FAULT_KINDS] = {
#define X(name, text) [FAULT_##name] = text,
    FAULTS(X)
#undef X
};

uint64_t world_below(struct world *w, uint64_t bound)
{
    return sim_random_below(sim_world_random(w->sim), bound);
}

static uint64_t between(struct world *w, uint64_t low, uint64_t high)
{
    return low + world_below(w, high - low + 1);
}

/* -- machines ---------------------------------------------------------------------------------- */

static void on_fault(struct sim_event *e);
static void on_heal(struct sim_event *e);

void world_init(struct world *w, uint64_t seed, unsigned machines)
{
    w->sim = sim_world_new(seed);
    w->net = sim_net_new(w->sim);
    w->count = machines;
    w->fault.fn = on_fault;
    w->heal.fn = on_heal;
    for (unsigned i = 0; i < machines; i++) {
        struct machine *m = &w->machines[i];
        m->index = i;
        m->env = env_sim_new(seed * MACHINES_MAX + i);
        snprintf(m->address, sizeof m->address, "10.0.0.%u", i + 1);
        sim_world_add(w->sim, m->env, (int)world_below(w, 2 * DRIFT_PPM) - (int)DRIFT_PPM);
        unsigned host = sim_net_join(w->net, m->env, m->address);
        ASSERT(host == i);
    }
}

void world_fini(struct world *w)
{
    sim_world_cancel(w->sim, &w->fault);
    sim_world_cancel(w->sim, &w->heal);
    for (unsigned i = 0; i < w->count; i++) {
        loop_free(w->machines[i].loop);
        sim_world_remove(w->sim, w->machines[i].env);
        env_sim_free(w->machines[i].env);
    }
    sim_net_free(w->net);
    sim_world_free(w->sim);
}

void world_start(struct world *w, struct machine *m)
{
    ASSERT(m->loop == NULL);
    sim_net_restart(w->net, m->index);
    m->loop = sim_loop_new(w->sim, m->env);
    sim_loop_enter(m->loop);
}

static void crash(struct world *w, struct machine *m, bool power, uint64_t down_us)
{
    sim_net_crash(w->net, m->index, power);
    w->crashed(w->arg, m);
    loop_free(m->loop);
    m->loop = NULL;
    if (power)
        env_sim_power_cut(m->env);
    else
        env_sim_kill(m->env);
    m->down_until_us = sim_world_now_us(w->sim) + down_us;
}

/* -- faults ------------------------------------------------------------------------------------ */

static void for_pairs_of(struct world *w, unsigned host, bool blocked)
{
    for (unsigned i = 0; i < w->count; i++) {
        if (i == host)
            continue;
        sim_net_block(w->net, host, i, blocked);
        sim_net_block(w->net, i, host, blocked);
    }
}

static void make_fault(struct world *w, enum fault_kind kind)
{
    unsigned a = (unsigned)world_below(w, w->count);
    unsigned b = (a + 1 + (unsigned)world_below(w, w->count - 1)) % w->count;
    struct machine *m = &w->machines[a];
    switch (kind) {
    case FAULT_BLOCK: sim_net_block(w->net, a, b, true); break;
    case FAULT_PARTITION: for_pairs_of(w, a, true); break;
    case FAULT_BREAK: sim_net_break(w->net, a, b); break;
    case FAULT_SLOW: sim_net_slow(w->net, a, b, 1000u << world_below(w, 10)); break;
    case FAULT_DELAY: sim_net_delay(w->net, a, b, between(w, 50, 50 * MS), 300 * MS); break;
    case FAULT_DAMAGE: sim_net_damage(w->net, a, b, 2000); break;
    case FAULT_KILL:
    case FAULT_POWER:
        if (m->loop == NULL)
            return;
        crash(w, m, kind == FAULT_POWER, between(w, 0, 5 * SECOND));
        break;
    case FAULT_JUMP:
        env_sim_jump_wall(m->env, (int64_t)world_below(w, 2 * JUMP_US) - JUMP_US);
        break;
    case FAULT_DESCRIPTORS:
        sim_net_descriptors(w->net, a, (unsigned)between(w, 1, w->count));
        break;
    case FAULT_KINDS: break;
    }
    w->faults[kind]++;
}

static void calm(struct world *w)
{
    for (unsigned a = 0; a < w->count; a++) {
        sim_net_descriptors(w->net, a, 0);
        for (unsigned b = 0; b < w->count; b++) {
            sim_net_delay(w->net, a, b, 50, 500);
            sim_net_slow(w->net, a, b, 0);
            sim_net_damage(w->net, a, b, 0);
            sim_net_block(w->net, a, b, false);
        }
    }
}

static void restart_due(struct world *w, uint64_t until_us)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct machine *m = &w->machines[i];
        if (m->loop == NULL && m->down_until_us <= until_us) {
            world_start(w, m);
            w->started(w->arg, m);
        }
    }
}

static void on_fault(struct sim_event *e)
{
    struct world *w = CONTAINER_OF(e, struct world, fault);
    uint64_t now_us = sim_world_now_us(w->sim);
    restart_due(w, now_us);
    make_fault(w, (enum fault_kind)world_below(w, FAULT_KINDS));
    sim_world_at(w->sim, &w->fault, now_us + between(w, 10 * MS, SECOND));
}

/* Now and then everything is mended, or faults would only pile up. */
static void on_heal(struct sim_event *e)
{
    struct world *w = CONTAINER_OF(e, struct world, heal);
    calm(w);
    sim_world_at(w->sim, &w->heal, sim_world_now_us(w->sim) + between(w, SECOND, 12 * SECOND));
}

void world_begin_faults(struct world *w)
{
    sim_world_at(w->sim, &w->fault, 0);
    sim_world_at(w->sim, &w->heal, sim_world_now_us(w->sim) + 2 * SECOND);
}

void world_heal(struct world *w)
{
    sim_world_cancel(w->sim, &w->fault);
    sim_world_cancel(w->sim, &w->heal);
    calm(w);
    restart_due(w, UINT64_MAX);
}
