/* sim/clients_internal.h — a request, for clients.c and list_client.c. */
#ifndef SIM_CLIENTS_INTERNAL_H
#define SIM_CLIENTS_INTERNAL_H

#include "cluster/client.h"
#include "sim/clients.h"
#include "sim/requests.h"

enum request_kind {
    REQUEST_REGISTER,
    REQUEST_LISTS, /* a transaction */
    REQUEST_FINAL_LIST,
    REQUEST_PAIR,
    REQUEST_OTHER
};

struct request {
    struct clients *all;
    struct client *client;
    struct node *node;
    uint64_t starts; /* of the node's process */
    struct cl_client *session;
    struct cl_call call;
    struct arena arena;
    enum request_kind kind;
    unsigned at;                   /* register or list */
    const struct kv_op *operation; /* under way */
    const struct kv_read *read;    /* the same; NULL: a write */
    struct kv_read_pos pos;
    unsigned rows;
    bool given_up, only_reads;
    status status;
    struct register_op op;
    int64_t pair[2];
    int64_t *items; /* the list read last */
    unsigned item_count;
    bool final_known;
    int64_t new_directory;
    /* REQUEST_LISTS */
    struct list_txn txn;
    unsigned txn_at, lists, list_now; /* in the history; how many; which of them is under way */
    enum { LISTS_READ, LISTS_WRITE, LISTS_COMMIT } phase;
};

struct maker requests__maker(struct request *r);
/* As cl_read to its end, and cl_ops of one operation. */
status requests__read(struct request *r, const struct kv_read *read);
status requests__write(struct request *r, const struct kv_op *op);

/* list_client.c: BEGIN and the first statement. */
status lists__begin(struct request *r);
/* The statement under way ended with *ST. True: the next one is under way; false: it is over. */
bool lists__step(struct request *r, status *st);
void lists__end(struct request *r, status st);

#endif
