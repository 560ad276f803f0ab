/*
 * frontend/activity.c — see activity.h.
 *
 * Invariants
 *   V1  A gathering belongs to the worker that it visits, and to nobody while it is in the mail;
 *       it visits each worker once, in their order from the asking one on, and ends at home.
 *   V2  The asking session waits meanwhile (pending), so it is there when the gathering comes home.
 */
#include "frontend/activity.h"
#include "base/assert.h"
#include "base/memory.h"
#include "frontend/execute.h"
#include "frontend/server_internal.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

struct fe_gathering {
    struct arena arena;
    struct pl_session *rows;
    struct pl_sessions all;
    unsigned capacity;
    struct fe_session *asking;
    struct fe_worker *home;
    unsigned at; /* the worker that it visits */
};

/* What a call carries; the call frees it. */
struct carried {
    struct fe_gathering *g;
};

/* -- what a session notes ---------------------------------------------------------------------- */

static bytes shown(bytes text)
{
    if (text.size >= FE_ACTIVITY_TEXT_MAX) {
        text.size = FE_ACTIVITY_TEXT_MAX - 1;
        while (text.size > 0 && (text.data[text.size] & 0xc0) == 0x80)
            text.size--; /* whole characters */
    }
    return text;
}

void fe_activity_begin(struct fe_session *s, bytes text)
{
    struct fe_activity *a = &s->activity;
    text = shown(text);
    if (text.size > a->capacity) {
        unsigned capacity = ((unsigned)text.size + 127u) & ~127u;
        memory_free(MEMORY_SESSIONS, a->text, a->capacity);
        a->text = memory_new(MEMORY_SESSIONS, capacity);
        a->capacity = capacity;
    }
    if (text.size > 0)
        memcpy(a->text, text.data, text.size);
    a->size = (unsigned)text.size;
    a->began_us = a->changed_us = fe_run_clock(s->worker);
}

void fe_activity_end(struct fe_session *s)
{
    s->activity.changed_us = fe_run_clock(s->worker);
}

void fe_activity_free(struct fe_session *s)
{
    memory_free(MEMORY_SESSIONS, s->activity.text, s->activity.capacity);
    s->activity = (struct fe_activity){0};
}

/* -- what is written down ---------------------------------------------------------------------- */

static void look_up_address(struct arena *a, int fd, struct pl_session *row)
{
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    char text[INET6_ADDRSTRLEN];
    if (getpeername(fd, (struct sockaddr *)&from, &size) != 0)
        return;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&from;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&from;
    if (from.ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text) != NULL)
        row->client_port = ntohs(v4->sin_port);
    else if (from.ss_family == AF_INET6 &&
             inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text) != NULL)
        row->client_port = ntohs(v6->sin6_port);
    else
        return;
    row->client_address = arena_printf(a, "%s", text);
}

static enum pl_session_state state_of(const struct fe_session *s)
{
    if (s->work != NULL || s->ahead != NULL)
        return PL_SESSION_ACTIVE;
    switch (s->txn) {
    case FE_TXN_BLOCK: return PL_SESSION_IDLE_IN_TRANSACTION;
    case FE_TXN_FAILED: return PL_SESSION_IDLE_IN_FAILED;
    case FE_TXN_IDLE:
    case FE_TXN_IMPLICIT:
    default: return PL_SESSION_IDLE;
    }
}

/* In PostgreSQL's words; NULL: it does not wait. */
static void look_up_wait(const struct fe_session *s, struct pl_session *row)
{
    const struct fe_work *w = s->work;
    if (w == NULL ? s->ahead == NULL : !s->busy) {
        row->wait_type = "Client";
        row->wait_event = "ClientRead";
    } else if (s->ahead != NULL || w->uncertain) {
        row->wait_type = "IO";
        row->wait_event = "WALSync";
    } else if (w->sleeping) {
        row->wait_type = "Timeout";
        row->wait_event = "PgSleep";
    } else if (w->stalled) {
        row->wait_type = "Client";
        row->wait_event = "ClientWrite";
    }
}

/* A moment of the loop's clock as a timestamptz: so long ago. */
static int64_t moment(const struct fe_worker *w, uint64_t us)
{
    uint64_t now = loop_now_us(w->loop);
    int64_t ago = us < now ? (int64_t)(now - us) : 0;
    return us == 0 ? 0 : fe_clock(w) - ago;
}

static void write_down(struct fe_gathering *g, struct fe_session *s)
{
    struct arena *a = &g->arena;
    const struct fe_worker *w = s->worker;
    if (g->all.count == g->capacity)
        g->rows = arena_grow(a, g->rows, sizeof *g->rows, &g->capacity, 16);
    struct pl_session *row = &g->rows[g->all.count++];
    *row = (struct pl_session){
        .number = s->number,
        .user = arena_strdup(a, bytes_str(s->user)),
        .database = arena_strdup(a, bytes_str(s->database)),
        .application_name = arena_strdup(a, bytes_str(s->settings.application_name)),
        .superuser = !fe_session_limited(s),
        .tls = s->conn->tls != NULL,
        .state = state_of(s),
        .since = s->activity.since,
        .query_start = moment(w, s->activity.began_us),
        .state_change = moment(w, s->activity.changed_us),
        .query = arena_copy(a, bytes_make(s->activity.text, s->activity.size)),
    };
    if (s->txn != FE_TXN_IDLE)
        row->transaction_start = s->txn_now;
    else if (row->state == PL_SESSION_ACTIVE)
        row->transaction_start = row->query_start;
    if (row->state_change == 0)
        row->state_change = row->since;
    look_up_address(a, s->conn->fd, row);
    if (s != g->asking)
        look_up_wait(s, row);
}

static void visit(struct fe_gathering *g, const struct fe_worker *w)
{
    for (const struct fe_conn *c = w->conns; c != NULL; c = c->next)
        if (c->session != NULL && !c->session->gone && c->state == FE_CONN_READY)
            write_down(g, c->session);
    g->at = (g->at + 1) % w->count;
}

/* -- the visits -------------------------------------------------------------------------------- */

static void arrive(struct fe_worker *w, void *arg);

static void travel(struct fe_worker *from, struct fe_gathering *g)
{
    struct carried *c = malloc(sizeof *c);
    ASSERT(c != NULL);
    c->g = g;
    fe_worker_call(from, fe_server_worker(from->server, g->at), arrive, c);
}

static void arrive(struct fe_worker *w, void *arg)
{
    struct fe_gathering *g = ((struct carried *)arg)->g;
    if (w != g->home) {
        visit(g, w);
        travel(w, g);
        return;
    }
    ASSERT_INV("V2", g->asking->pending && g->asking->work->gathering == g);
    fe_resume(g->asking, ST_OK);
}

status fe_activity_gather(struct fe_session *s, fe_next *next)
{
    struct fe_worker *w = s->worker;
    struct fe_gathering *g = calloc(1, sizeof *g);
    if (g == NULL)
        return err_set(&s->work->err, ST_NO_MEMORY, "out of memory");
    arena_init(&g->arena, 4096);
    g->asking = s;
    g->home = w;
    g->at = w->index;
    fe_gathering_free(s->work->gathering); /* of a statement before, in the same message */
    s->work->gathering = g;
    visit(g, w);
    if (w->count == 1)
        return ST_OK;
    status st = fe_wait(s, next, true);
    travel(w, g);
    return st;
}

const struct pl_sessions *fe_activity_gathered(const struct fe_gathering *g)
{
    if (g == NULL)
        return NULL;
    struct pl_sessions *all = (struct pl_sessions *)(uintptr_t)&g->all;
    all->rows = g->rows;
    return all;
}

void fe_gathering_free(struct fe_gathering *g)
{
    if (g == NULL)
        return;
    arena_fini(&g->arena);
    free(g);
}

/* -- signals ----------------------------------------------------------------------------------- */

struct signalled {
    int32_t number;
    bool terminate;
};

static void receive(struct fe_worker *w, void *arg)
{
    const struct signalled *m = arg;
    for (struct fe_conn *c = w->conns; c != NULL; c = c->next) {
        struct fe_session *s = c->session;
        if (s == NULL || s->gone || s->number != m->number)
            continue;
        if (m->terminate)
            fe_session_terminate(s);
        else
            fe_session_cancel(s, false);
        return;
    }
}

void fe_activity_signal(struct fe_session *s, int32_t number, bool terminate)
{
    struct fe_worker *w = s->worker;
    struct signalled *m = malloc(sizeof *m);
    ASSERT(m != NULL);
    *m = (struct signalled){.number = number, .terminate = terminate};
    fe_worker_call(NULL, fe_server_worker(w->server, (uint32_t)number % w->count), receive, m);
}
