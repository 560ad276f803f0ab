/* sim/clients.c — see clients.h. A transaction over lists is in list_client.c. */
#include "sim/clients.h"
#include "base/assert.h"
#include "base/checksum.h"
#include "cluster/client_internal.h"
#include "sim/clients_internal.h"
#include <inttypes.h>
#include <stdio.h>

#define MS 1000u
#define SECOND 1000000u
#define PATIENCE_US (4u * SECOND)
#define CLIENTS_MIN 4u

static uint64_t below(struct clients *s, uint64_t bound)
{
    return cluster_below(s->cluster, bound);
}

void clients_note(struct clients *s, uint64_t what)
{
    uint64_t pair[2] = {s->digest, what};
    s->digest = checksum64(bytes_make(pair, sizeof pair), cluster_now(s->cluster));
}

/* -- a request --------------------------------------------------------------------------------- */

static void free_request(struct request *r)
{
    if (r == NULL)
        return;
    for (unsigned i = 0; i < r->txn.read_count; i++)
        free(r->txn.reads[i].items);
    arena_fini(&r->arena);
    free(r);
}

static bool on_row(void *arg, const struct kv_row *row)
{
    struct request *r = arg;
    r->all->read_rows++;
    if (r->kind == REQUEST_REGISTER) {
        r->op.found = register_value(r->at, row);
    } else if (r->kind == REQUEST_LISTS || r->kind == REQUEST_FINAL_LIST) {
        free(r->items);
        r->items = list_items(row, &r->item_count);
    } else if (r->kind == REQUEST_PAIR && r->rows < 2) {
        unsigned count;
        int64_t *value = list_items(row, &count);
        r->pair[r->rows] = value[0];
        free(value);
    }
    r->rows++;
    return true;
}

static void on_done(struct cl_call *call, status st);

struct maker requests__maker(struct request *r)
{
    struct clients *s = r->all;
    return (struct maker){.arena = &r->arena,
                          .random = sim_world_random(s->cluster->world.sim),
                          .now = cl__timestamptz(env_unix_us(r->node->machine->env)),
                          .directories = s->directories,
                          .directory_count = DIRECTORIES,
                          .new_directory = &r->new_directory};
}

status requests__read(struct request *r, const struct kv_read *read)
{
    r->read = read;
    memset(&r->pos, 0, sizeof r->pos);
    r->rows = 0;
    status st;
    while ((st = cl_read(r->session, &r->call, r->read, &r->pos)) == ST_OK)
        ;
    return st;
}

status requests__write(struct request *r, const struct kv_op *op)
{
    r->operation = op;
    r->read = NULL;
    return cl_ops(r->session, &r->call, &r->operation, 1);
}

/* What did not happen: nothing was done, and another may be asked. */
static bool refused(status st)
{
    return status_retry(st) == RETRY_ELSEWHERE || status_retry(st) == RETRY_LATER || st == ST_IO ||
           st == ST_CANCELLED;
}

static void end_register(struct request *r, status st)
{
    struct clients *s = r->all;
    struct register_op op = r->op;
    op.returned = history_order(s->history);
    if (op.kind == REGISTER_GET) {
        if (st != ST_END)
            return;
    } else if (st == ST_OUTCOME_UNKNOWN) {
        op.returned = NEVER;
    } else if (st == ST_OK) {
        op.hit = op.kind == REGISTER_INSERT || r->call.result.affected == 1;
        s->last_register = r->at;
    } else if (st == ST_EXISTS && op.kind == REGISTER_INSERT) {
        op.hit = false;
    } else {
        return;
    }
    history_register(s->history, r->at, &op);
}

static void end_pair(struct request *r, status st)
{
    if (r->read != NULL && st == ST_END &&
        (r->rows == 1 || (r->rows == 2 && r->pair[0] != r->pair[1])))
        cluster_broken(r->all->cluster, "P1: a read saw half of a statement (%u rows)", r->rows);
}

static void end_other(struct request *r, status st)
{
    if (st == ST_OK && r->new_directory != 0)
        r->all->directories[below(r->all, DIRECTORIES)] = r->new_directory;
}

/* The answer: for a client that waits, or for nobody. */
static void end_request(struct request *r, status st)
{
    struct clients *s = r->all;
    struct client *c = r->client;
    if (r->given_up)
        return;
    if (st == ST_INTERNAL || st == ST_CORRUPT || st == ST_PROTOCOL)
        cluster_broken(s->cluster, "a statement of kind %d ended with %s: %s", (int)r->kind,
                       status_name(st), r->call.err.message);
    if (r->kind == REQUEST_LISTS && lists__step(r, &st))
        return; /* it goes on */
    s->answered++;
    s->refused += refused(st);
    s->unknown += st == ST_OUTCOME_UNKNOWN;
    clients_note(s, (uint64_t)st << 32 | (uint64_t)r->kind << 8 | r->rows);
    switch (r->kind) {
    case REQUEST_REGISTER: end_register(r, st); break;
    case REQUEST_LISTS: lists__end(r, st); break;
    case REQUEST_FINAL_LIST: r->final_known = st == ST_END; break;
    case REQUEST_PAIR: end_pair(r, st); break;
    case REQUEST_OTHER: end_other(r, st); break;
    }
    r->status = st;
    sim_world_cancel(s->cluster->world.sim, &c->patience);
    c->request = NULL;
    c->over = r;
    if (!s->stopped)
        sim_world_at(s->cluster->world.sim, &c->next,
                     cluster_now(s->cluster) + 1 + below(s, 2 * s->pace_us));
}

static void on_done(struct cl_call *call, status st)
{
    struct request *r = call->arg;
    if (r->node->dark) /* it happens on a machine without power */
        return;
    if (r->read != NULL && st == ST_OK)
        while (st == ST_OK)
            st = cl_read(r->session, &r->call, r->read, &r->pos);
    if (st != ST_PENDING)
        end_request(r, st);
}

/* Nobody waits for R any more; what it asked for may happen yet. */
static void give_up(struct request *r)
{
    if (r->given_up)
        return;
    r->call.result = (struct kv_result){0};
    bool pending_write = r->kind != REQUEST_FINAL_LIST;
    end_request(r, pending_write ? ST_OUTCOME_UNKNOWN : ST_CANCELLED);
    r->given_up = true;
    r->client->over = NULL; /* its memory is lent to the node */
}

static void on_patience(struct sim_event *e)
{
    struct client *c = CONTAINER_OF(e, struct client, patience);
    if (c->request != NULL)
        give_up(c->request);
}

void clients_ended(struct clients *s, const struct node *n)
{
    for (unsigned i = 0; i < s->count; i++) {
        struct request *r = s->client[i].request;
        if (r != NULL && r->node == n)
            give_up(r);
    }
}

/* -- asking ------------------------------------------------------------------------------------ */

static bool may_ask(const struct node *n)
{
    return n->process != NULL && !n->dark && !sim_loop_frozen(n->machine->loop) &&
           n->process->phase == CL_NODE_SERVING;
}

static struct node *choose_node(struct clients *s, enum kv_table table)
{
    static const unsigned positions[] = {
        [KV_META] = CL_META, [KV_OBJECT] = CL_OBJECT, [KV_KV] = CL_KV};
    struct node *n = below(s, 5) > 0 ? cluster_leader(s->cluster, positions[table]) : NULL;
    if (n == NULL)
        n = &s->cluster->nodes[below(s, NODES)];
    return may_ask(n) ? n : NULL;
}

static status ask_register(struct request *r, struct maker *m)
{
    struct clients *s = r->all;
    static const enum register_kind meta_kinds[] = {REGISTER_INSERT, REGISTER_DELETE};
    r->op.kind = (enum register_kind)below(s, REGISTER_GET);
    if (register_table(r->at) == KV_META)
        r->op.kind = meta_kinds[below(s, 2)];
    if (r->only_reads || below(s, 2) == 0)
        r->op.kind = REGISTER_GET;
    r->op.value = ++s->values;
    r->op.expected = s->last_value[r->at];
    s->last_value[r->at] = r->op.kind == REGISTER_GET ? s->last_value[r->at] : r->op.value;
    r->op.invoked = history_order(s->history);
    if (r->op.kind == REGISTER_GET)
        return requests__read(r, make_register_read(m, r->at));
    return requests__write(r, make_register_op(m, r->at, &r->op));
}

static status ask(struct request *r)
{
    struct maker m = requests__maker(r);
    switch (r->kind) {
    case REQUEST_REGISTER: return ask_register(r, &m);
    case REQUEST_LISTS: return lists__begin(r);
    case REQUEST_FINAL_LIST: return requests__read(r, make_list_read(&m, r->at));
    case REQUEST_PAIR:
        if (below(r->all, 2) == 0)
            return requests__read(r, make_pair_read(&m));
        return requests__write(r, make_pair_write(&m, ++r->all->values));
    case REQUEST_OTHER:
        if (below(r->all, 4) == 0)
            return requests__read(r, make_other_read(&m));
        return requests__write(r, make_other_op(&m, 1000000 + ++r->all->values));
    }
    return ST_INTERNAL;
}

static struct request *new_request(struct client *c, struct node *n, enum request_kind kind,
                                   unsigned at)
{
    struct request *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    r->all = c->all;
    r->client = c;
    r->node = n;
    r->kind = kind;
    r->at = at;
    arena_init(&r->arena, 2048);
    r->call = (struct cl_call){.done = on_done,
                               .arg = r,
                               .arena = &r->arena,
                               .on_row = on_row,
                               .max_rows = 1 + (unsigned)below(c->all, 40),
                               .max_bytes = 1 << 20};
    err_clear(&r->call.err);
    if (kind != REQUEST_OTHER && r->call.max_rows < 2)
        r->call.max_rows = 2; /* a pair is one page */
    return r;
}

static void start(struct client *c, struct node *n, enum request_kind kind, unsigned at,
                  bool only_reads)
{
    struct clients *s = c->all;
    if (c->over != NULL) {
        struct request *over = c->over;
        c->over = NULL;
        if (over->node->process != NULL && over->starts == over->node->starts)
            cl_client_free(over->session);
        free_request(over);
    }
    struct request *r = new_request(c, n, kind, at);
    r->only_reads = only_reads;
    sim_loop_enter(n->machine->loop);
    r->starts = n->starts;
    r->session = cl_client_new(n->process, cl_node_reactor(n->process, 0), SIM_NS);
    c->request = r;
    s->asked++;
    sim_world_at(s->cluster->world.sim, &c->patience, cluster_now(s->cluster) + PATIENCE_US);
    status st = ask(r);
    if (st != ST_PENDING)
        end_request(r, st);
}

/* Sometimes a request is on its way to a process that is stopped, and is what it sees first when
 * it goes on: before it has looked at the time. Two clients wait for that, the others write
 * meanwhile what these should see. */
static bool wait_for_stopped(struct client *c)
{
    struct cluster *all = c->all->cluster;
    for (unsigned i = 0; c->index < 2 && c->waits_for == NULL && i < NODES; i++) {
        struct node *n = &all->nodes[i];
        if (n->process == NULL || n->dark || !sim_loop_frozen(n->machine->loop) ||
            below(c->all, 2) == 0)
            continue;
        c->waits_for = n;
        sim_world_at(all->world.sim, &c->next, n->frozen_until_us);
        return true;
    }
    return false;
}

static void on_next(struct sim_event *e)
{
    struct client *c = CONTAINER_OF(e, struct client, next);
    struct clients *s = c->all;
    if (s->stopped || c->request != NULL)
        return;
    static const enum request_kind kinds[] = {REQUEST_REGISTER, REQUEST_REGISTER, REQUEST_REGISTER,
                                              REQUEST_REGISTER, REQUEST_LISTS,    REQUEST_PAIR,
                                              REQUEST_OTHER,    REQUEST_OTHER,    REQUEST_OTHER};
    enum request_kind kind = kinds[below(s, ARRAY_LEN(kinds))];
    unsigned at = (unsigned)below(s, REGISTERS);
    enum kv_table table = kind == REQUEST_OTHER      ? KV_META
                          : kind == REQUEST_REGISTER ? register_table(at)
                                                     : KV_KV;
    if (wait_for_stopped(c))
        return;
    struct node *n = c->waits_for;
    c->waits_for = NULL;
    if (n != NULL && may_ask(n)) { /* what did others write meanwhile? */
        start(c, n, REQUEST_REGISTER, s->last_register, true);
        return;
    }
    n = choose_node(s, table);
    if (n == NULL)
        sim_world_at(s->cluster->world.sim, e, cluster_now(s->cluster) + 20 * MS);
    else
        start(c, n, kind, at, false);
}

void clients_init(struct clients *s, struct cluster *c, struct history *h)
{
    memset(s, 0, sizeof *s);
    s->cluster = c;
    s->history = h;
    s->count = CLIENTS_MIN + (unsigned)below(s, CLIENTS_MAX - CLIENTS_MIN + 1);
    s->pace_us = (30 + below(s, 90)) * MS;
    for (unsigned i = 0; i < s->count; i++)
        s->client[i] =
            (struct client){.all = s, .index = i, .next.fn = on_next, .patience.fn = on_patience};
}

void clients_begin(struct clients *s)
{
    s->stopped = false;
    for (unsigned i = 0; i < s->count; i++)
        sim_world_at(s->cluster->world.sim, &s->client[i].next,
                     cluster_now(s->cluster) + below(s, 2 * s->pace_us));
}

void clients_stop(struct clients *s)
{
    s->stopped = true;
    for (unsigned i = 0; i < s->count; i++)
        sim_world_cancel(s->cluster->world.sim, &s->client[i].next);
}

void clients_print(const struct clients *s)
{
    fprintf(stderr,
            "clients: %" PRIu64 " asked, %" PRIu64 " answered, %" PRIu64 " refused, %" PRIu64
            " unknown; %u of them, every %" PRIu64 " us\n",
            s->asked, s->answered, s->refused, s->unknown, s->count, s->pace_us);
    for (unsigned i = 0; i < s->count; i++) {
        const struct request *r = s->client[i].request;
        if (r != NULL)
            fprintf(stderr, " %u asks node %u for kind %d, place %u: %s since %" PRIu64 " us\n", i,
                    r->node->machine->index + 1, (int)r->kind, r->at,
                    r->read != NULL ? "read" : "write",
                    cluster_now(s->cluster) + PATIENCE_US - s->client[i].patience.at_us);
        else if (s->client[i].over != NULL)
            fprintf(stderr, " %u got %s from node %u for kind %d\n", i,
                    status_name(s->client[i].over->status),
                    s->client[i].over->node->machine->index + 1, (int)s->client[i].over->kind);
    }
}

bool clients_busy(const struct clients *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (s->client[i].request != NULL)
            return true;
    }
    return false;
}

/* -- the end ----------------------------------------------------------------------------------- */

/* One question of client 0, asked until it is answered. */
static struct request *ask_until(struct clients *s, enum request_kind kind, unsigned at,
                                 uint64_t until_us)
{
    struct client *c = &s->client[0];
    enum kv_table table = kind == REQUEST_REGISTER ? register_table(at) : KV_KV;
    while (cluster_now(s->cluster) < until_us && s->cluster->broken[0] == '\0') {
        struct node *n = choose_node(s, table);
        if (n != NULL) {
            start(c, n, kind, at, true);
            while (c->request != NULL && cluster_now(s->cluster) < until_us &&
                   s->cluster->broken[0] == '\0')
                cluster_run(s->cluster, cluster_now(s->cluster) + 5 * MS);
            if (c->request == NULL && c->over != NULL && c->over->status == ST_END)
                return c->over;
        }
        cluster_run(s->cluster, cluster_now(s->cluster) + 20 * MS);
    }
    return NULL;
}

bool clients_read_all(struct clients *s, uint64_t until_us)
{
    ASSERT(s->stopped && !clients_busy(s));
    for (unsigned at = 0; at < REGISTERS; at++) {
        if (ask_until(s, REQUEST_REGISTER, at, until_us) == NULL)
            return false;
    }
    for (unsigned at = 0; at < LISTS; at++) {
        struct request *r = ask_until(s, REQUEST_FINAL_LIST, at, until_us);
        if (r == NULL)
            return false;
        s->history->final[at] = r->items;
        s->history->final_count[at] = r->item_count;
        r->items = NULL;
    }
    return true;
}
