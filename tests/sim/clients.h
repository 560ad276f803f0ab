/*
 * sim/clients.h — sessions that ask whole nodes at random, and remember the answers.
 *
 * Each client has one request under way, at a node of its choice, and gives up on it after a while:
 * then its outcome is open, as it is when the process that had it ends. What was asked of registers
 * and lists is in the history; of the rest (directories, objects) only what an answer may never be
 * is looked at here, and what they leave at the end, by state.c.
 */
#ifndef SIM_CLIENTS_H
#define SIM_CLIENTS_H

#include "sim/cluster.h"
#include "sim/history.h"

#define CLIENTS_MAX 10u
#define DIRECTORIES 12u

struct request;

struct client {
    struct clients *all;
    unsigned index;
    struct sim_event next, patience;
    struct request *request; /* under way, NULL if none */
    struct request *over;    /* the last one, to be freed */
    struct node *waits_for;  /* a stopped process that finds the next request when it goes on */
};

struct clients {
    struct cluster *cluster;
    struct history *history;
    struct client client[CLIENTS_MAX];
    unsigned count;                   /* of them in this run */
    int64_t values;                   /* written so far: each once */
    int64_t last_value[REGISTERS];    /* what somebody tried to write last */
    int64_t directories[DIRECTORIES]; /* that may be there */
    unsigned last_register;           /* whose write was answered last */
    uint64_t pace_us;                 /* mean time between two requests of one */
    bool stopped;
    /* Of those answered some were refused, of some the outcome is unknown; the rest is done. */
    uint64_t asked, answered, unknown, refused, digest;
    uint64_t read_rows;
};

static inline uint64_t clients_done(const struct clients *s)
{
    return s->answered - s->refused - s->unknown;
}

void clients_init(struct clients *s, struct cluster *c, struct history *h);
void clients_begin(struct clients *s);
/* No new requests. */
void clients_stop(struct clients *s);
/* Is a request under way, with somebody still waiting for it? */
bool clients_busy(const struct clients *s);
/* The process of N is gone, and all answers of it. */
void clients_ended(struct clients *s, const struct node *n);
/* On stderr, what each waits for. */
void clients_print(const struct clients *s);
/* Reads every register and every list at whoever serves them; false: nobody did in time. */
bool clients_read_all(struct clients *s, uint64_t until_us);
/* What was done is mixed into the digest. */
void clients_note(struct clients *s, uint64_t what);

#endif
