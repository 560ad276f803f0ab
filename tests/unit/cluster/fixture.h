/*
 * tests/unit/cluster/fixture.h — a node in a temporary directory, driven from the test's thread.
 *
 * Clients belong to the reactor, so every call is sent there and waited for. The environment is the
 * real one with clocks that a test can move and a lock that a second open in the same process gets.
 */
#ifndef TEST_CLUSTER_FIXTURE_H
#define TEST_CLUSTER_FIXTURE_H

#include "cluster/cluster_internal.h"
#include "cluster/shard.h"
#include "cluster/sink.h"
#include "cluster/views.h"

struct fixture {
    char dir[64];
    struct config *config;
    struct cl_node *node;
    struct err err;
    status failed; /* what the node's failed callback said */
};

struct env *fx_env(void);
void fx_clock_advance(uint64_t us); /* both clocks, from now on */
void fx_clock_jump_wall(int64_t us);
void fx_clock_reset(void);
void fx_disk_full(bool full); /* no new log segments */

void fx_init(struct fixture *f); /* makes the directory; nothing is open */
void fx_fini(struct fixture *f); /* closes what is open, removes the directory */
void fx_wipe(struct fixture *f); /* another disk: the directory, closed, is empty again */
void fx_set(struct fixture *f, const char *name, const char *value);
NODISCARD status fx_try_open(struct fixture *f);
void fx_open(struct fixture *f);  /* opens, starts, waits until it serves */
void fx_close(struct fixture *f); /* stops cleanly and closes */
/* The same, and calls MEANWHILE, which may be NULL, once the stop has begun. */
void fx_close_while(struct fixture *f, void (*meanwhile)(void));
void fx_reopen(struct fixture *f);
status fx_wait_failed(struct fixture *f); /* until the node says that it is lost */
/* Runs FN on the reactor and waits. */
void fx_on_reactor(struct fixture *f, void (*fn)(void *arg), void *arg);
/* What is at AT, which the reactor owns: copied there. */
void fx_peek(struct fixture *f, const void *at, void *out, size_t size);
#define FX_PEEK(f, value)                                                                          \
    ({                                                                                             \
        __typeof__(value) peeked_;                                                                 \
        fx_peek((f), &(value), &peeked_, sizeof peeked_);                                          \
        peeked_;                                                                                   \
    })

/* A client with one call at a time. */
struct fx_client {
    struct fixture *f;
    struct cl_client *c;
    struct cl_call call;
    bool cancel; /* right after the start of whatever is pending then */
    struct arena arena;
    struct kv_row rows[64]; /* of the last read, copied into `arena` */
    unsigned row_count;
};
void fx_client_init(struct fx_client *x, struct fixture *f);
void fx_client_fini(struct fx_client *x);
status fx_ops(struct fx_client *x, const struct kv_op *const *ops, unsigned count);
status fx_op(struct fx_client *x, const struct kv_op *op);
status fx_read(struct fx_client *x, const struct kv_read *read);
void fx_begin(struct fx_client *x, bool read_only);
status fx_commit(struct fx_client *x);
void fx_rollback(struct fx_client *x);
status fx_call(struct fx_client *x, const char *function); /* rows: first columns as col[] */
status fx_call_with(struct fx_client *x, const char *function, const struct kv_datum *args);
/* Rows of the relation NAME of schema metadb; FN runs on the reactor. */
void fx_view(struct fixture *f, const char *name,
             void (*fn)(void *arg, const struct kv_datum *values), void *arg);

/* Ready-made operations; memory of A. */
struct kv_op *fx_create(struct arena *a, int64_t pid, const char *name, char type, int64_t id);
struct kv_op *fx_create_full(struct arena *a, int64_t pid, const char *name, int64_t id,
                             int64_t uid, int64_t size, int64_t fid);
struct kv_op *fx_remove(struct arena *a, int64_t pid, const char *name);
struct kv_op *fx_set_size(struct arena *a, int64_t pid, const char *name, int64_t size);
struct kv_op *fx_kv_put(struct arena *a, const char *key, const char *value);
struct kv_op *fx_lock(struct arena *a, int64_t pid, const char *name);
/* (pid, name); ST_END and a row, or none. */
status fx_lookup(struct fx_client *x, int64_t pid, const char *name);
status fx_lookup_kv(struct fx_client *x, const char *key);
int64_t fx_quota(struct fx_client *x, int64_t uid, const char *name); /* 0 if there is no row */
unsigned fx_list(struct fx_client *x, int64_t pid); /* number of entries without _attr_ */

#endif
