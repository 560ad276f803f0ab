/*
 * A naive model of one shard's state: every version of every key in plain arrays, a log of random
 * commands, and checks of a kv_state against it. Used by the tests of state, flush and crashes.
 */
#ifndef TEST_KV_MODEL_H
#define TEST_KV_MODEL_H

#include "base/arena.h"
#include "kv/state.h"

#define MODEL_DIRS 5u
#define MODEL_NAMES 8u
#define MODEL_PLAIN 40u
#define MODEL_KEYS (MODEL_DIRS + MODEL_DIRS * MODEL_NAMES + MODEL_PLAIN)
#define MODEL_OPS 4u

enum model_op_kind { MODEL_PUT, MODEL_DELETE, MODEL_DELTA, MODEL_PUSH, MODEL_ACK, MODEL_COUNTER };

struct model_op {
    enum model_op_kind kind;
    unsigned key; /* in key order */
    bool fresh;
    bytes row; /* of a put; items of a push */
    int64_t children, mtime, ctime;
    hlc_ts up_to;
};

struct model_command {
    hlc_ts ts;
    unsigned count;
    struct model_op ops[MODEL_OPS];
};

struct model_version {
    struct model_version *older;
    hlc_ts ts;
    bool deleted;
    bytes row;
};

struct model_key {
    bytes key;
    bool attr;
    struct model_version *newest;
    int64_t children, mtime, ctime; /* aggregates as of now */
};

struct model {
    struct arena arena;
    uint64_t seed;
    struct model_key keys[MODEL_KEYS]; /* sorted by key */
    struct model_command *log;         /* command i has index i + 1 */
    unsigned log_count, log_max;
    hlc_ts ts, acked;
    uint64_t counter;
};

uint64_t model_random(struct model *m, uint64_t below);
void model_init(struct model *m, uint64_t seed, unsigned log_max);
void model_fini(struct model *m);
/* Appends a random command to the log and applies it to the model. */
void model_step(struct model *m);
hlc_ts model_last_ts(const struct model *m);

/* Applies every command of the log that S does not have. */
void model_replay(const struct model *m, struct kv_state *s);
/* Compares what S shows with the model, at AT and as of now. Stops the test on a difference. */
void model_check(struct model *m, struct kv_state *s, hlc_ts at, bool pool);
void model_check_queue(const struct model *m, struct kv_state *s);

#endif
