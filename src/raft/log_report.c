/*
 * raft/log_report.c — how what happened to the log reaches its owner.
 *
 * Events travel to the loop as one mail object: a thread stores the highest ticket and sends the
 * mail unless it is already on its way. It outlives the log if it is still in the mailbox when the
 * log closes. A loop that writes knows by itself what is stored; it uses the mail only for a
 * failure that it found inside a call of the owner, and the keeper uses it to say that a segment is
 * there.
 *
 * Q1  Tickets are told in ascending order, each at most once; a failure once.
 * Q2  No event comes from inside a call of the owner, nor after raft_log_close has returned.
 */
#include "raft/log_internal.h"

#include "base/assert.h"

#include <stdlib.h>

struct raft__report {
    struct mail mail;
    struct mailbox *mailbox; /* NULL: the owner steps the log, events are direct calls */
    struct raft_log *log;    /* [loop] NULL once the log is closed */
    pthread_mutex_t mu;
    bool sent;            /* [mu] in the mailbox */
    uint64_t ticket;      /* [mu] highest stored */
    status failed;        /* [mu] latched, to be told */
    bool told;            /* [loop] on_failed was called */
    uint64_t told_ticket; /* [loop] */
};

void raft__report_now(struct raft__report *r, uint64_t ticket)
{
    if (ticket <= r->told_ticket)
        return;
    r->told_ticket = ticket;
    r->log->events.on_stored(r->log->events.arg, ticket);
}

/* Loop thread. */
static void report_tell(struct raft__report *r)
{
    pthread_mutex_lock(&r->mu);
    r->sent = false;
    uint64_t ticket = r->ticket;
    status failed = r->failed;
    pthread_mutex_unlock(&r->mu);

    raft__report_now(r, ticket);
    if (failed != ST_OK && !r->told) {
        r->told = true;
        r->log->events.on_failed(r->log->events.arg, failed);
    }
    if (r->log->ring)
        raft__ring_kick(r->log);
}

static void report_free(struct raft__report *r)
{
    pthread_mutex_destroy(&r->mu);
    free(r);
}

static void report_deliver(struct mail *m)
{
    struct raft__report *r = (struct raft__report *)m;
    _Static_assert(offsetof(struct raft__report, mail) == 0, "the mail comes first");
    if (r->log)
        report_tell(r);
    else
        report_free(r);
}

void raft__report_send(struct raft__report *r, uint64_t ticket, status failed)
{
    pthread_mutex_lock(&r->mu);
    if (ticket > r->ticket)
        r->ticket = ticket;
    if (failed != ST_OK)
        r->failed = failed;
    bool send = !r->sent;
    r->sent = true;
    pthread_mutex_unlock(&r->mu);
    if (!r->mailbox)
        report_tell(r);
    else if (send)
        mailbox_send(r->mailbox, &r->mail);
}

struct raft__report *raft__report_new(struct raft_log *log, struct mailbox *mailbox)
{
    struct raft__report *r = calloc(1, sizeof *r);
    ASSERT(r != NULL);
    r->mail.deliver = report_deliver;
    r->mailbox = mailbox;
    r->log = log;
    pthread_mutex_init(&r->mu, NULL);
    return r;
}

void raft__report_close(struct raft__report *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->mu);
    bool sent = r->sent && r->mailbox;
    pthread_mutex_unlock(&r->mu);
    r->log = NULL;
    if (!sent)
        report_free(r);
}
