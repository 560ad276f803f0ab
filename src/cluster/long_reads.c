/*
 * cluster/long_reads.c — the queue of long pages, emptied by pool threads and the reactor together.
 *
 *   first rows ─> queue ─┬─> reader, a pool thread: the rest, from all tiers ─> mailbox ─┐
 *                        └─> reactor, at the end of an idle turn: from the cache ────────┴─> end
 *
 * A reader is a job that takes pages until there are none, so a batch of pages is one wake-up at
 * most, and each page that is ready goes back at once. There are as many readers as cores beside
 * the reactor's: more would take time from it.
 *
 * Invariants
 *   L1  A page in the queue is pending and not cancelled by its removal: whoever takes it ends it.
 *   L2  While pages wait, a reader is under way or the loop does not sleep.
 *   L3  The reactor reads one page a turn at most, and none in a turn that did something else.
 *
 * Threads: the reactor; readers take pages and read them. `mu` is held for a list operation.
 */
#include "cluster/long_reads.h"
#include "base/assert.h"
#include <pthread.h>
#include <stdlib.h>

struct long_reader {
    struct pool_job job;
    struct cl_long_reads *queue;
    bool under_way; /* reactor */
};

struct cl_long_reads {
    struct cl_node *node;
    pthread_mutex_t mu;
    struct list waiting; /* mu: cl_client.long_read */
    unsigned count;      /* mu */
    unsigned reader_count;
    struct long_reader readers[];
};

struct cl_long_reads *cl_long_reads_new(struct cl_node *n)
{
    unsigned count = n->options.long_read_threads;
    struct cl_long_reads *q = calloc(1, sizeof *q + count * sizeof q->readers[0]);
    ASSERT(q != NULL);
    q->node = n;
    q->reader_count = count;
    pthread_mutex_init(&q->mu, NULL);
    list_init(&q->waiting);
    for (unsigned i = 0; i < count; i++)
        q->readers[i].queue = q;
    return q;
}

void cl_long_reads_free(struct cl_long_reads *q)
{
    if (q == NULL)
        return;
    ASSERT(list_empty(&q->waiting));
    pthread_mutex_destroy(&q->mu);
    free(q);
}

static unsigned waiting(struct cl_long_reads *q)
{
    pthread_mutex_lock(&q->mu);
    unsigned count = q->count;
    pthread_mutex_unlock(&q->mu);
    return count;
}

bool cl_long_reads_empty(struct cl_long_reads *q)
{
    return waiting(q) == 0;
}

void cl_long_reads_add(struct cl_long_reads *q, struct cl_client *c)
{
    ASSERT_INV("L1", c->call != NULL);
    pthread_mutex_lock(&q->mu);
    list_push_back(&q->waiting, &c->long_read);
    q->count++;
    pthread_mutex_unlock(&q->mu);
}

static struct cl_client *take(struct cl_long_reads *q)
{
    pthread_mutex_lock(&q->mu);
    struct list *node = list_pop_front(&q->waiting);
    if (node != NULL)
        q->count--;
    pthread_mutex_unlock(&q->mu);
    return node != NULL ? CONTAINER_OF(node, struct cl_client, long_read) : NULL;
}

/* -- readers ----------------------------------------------------------------------------------- */

static void page_back(struct mail *mail)
{
    struct cl_client *c = CONTAINER_OF(mail, struct cl_client, job.mail);
    c->call->stats.pool_trips++;
    cl__read_end(c);
}

static void reader_run(struct pool_job *job)
{
    struct long_reader *r = CONTAINER_OF(job, struct long_reader, job);
    struct cl_client *c;
    while ((c = take(r->queue)) != NULL) {
        cl__read_anywhere(c);
        c->job.mail.deliver = page_back;
        mailbox_send(job->reply, &c->job.mail);
    }
}

static void reader_done(struct pool_job *job)
{
    struct long_reader *r = CONTAINER_OF(job, struct long_reader, job);
    r->under_way = false;
    cl__job_done(r->queue->node);
}

/* Up to WANTED readers are under way. False: none is. */
static bool start_readers(struct cl_long_reads *q, unsigned wanted)
{
    bool any = false;
    for (unsigned i = 0; i < q->reader_count && i < wanted; i++) {
        struct long_reader *r = &q->readers[i];
        if (!r->under_way) {
            r->job.run = reader_run;
            r->job.done = reader_done;
            r->under_way = cl__job_start(q->node, &r->job) == ST_OK;
        }
        any |= r->under_way;
    }
    return any;
}

void cl_long_reads_turn(struct cl_long_reads *q, bool busy)
{
    unsigned count = waiting(q);
    if (count == 0)
        return;
    bool read_here = !busy;
    /* The reactor takes one of them itself, if it may; so one alone wakes nobody. */
    if (!start_readers(q, busy ? count : count - 1) && (busy || count > 1))
        read_here = true;
    struct cl_client *c = read_here ? take(q) : NULL;
    if (c != NULL)
        cl__read_here(c);
    if (waiting(q) > 0)
        loop_again(q->node->reactors[0].loop); /* L2 */
}
