/*
 * A shard in memory and a small language for operations on it, so that a test reads as a table of
 * statements and answers.
 *
 *   insert TABLE col=v … [| v v … for the next row] [: nothing | : update col=v …]
 *   update TABLE KEY… : SETS [: FILTERS]     delete TABLE KEY… [: FILTERS]      lock TABLE KEY…
 *   range TABLE FROM TO   (names of directory FROM for meta: range meta PID LOWER UPPER)
 *   move|replace|exchange|rename PID NAME PID NAME       link PID NAME PID NAME
 *   mkpath PID PATH       detach PID NAME       reclaim PID       bootstrap
 *   SETS: col=v, col+=v, col>=v (greatest), col<=v (least), col=@col (excluded)
 *   FILTERS: col=v, col!=v, col<v, col>v, col~NULL (is null)
 *   values: numbers, letters for "char", text as it is, NULL, DEFAULT, *N (N bytes), %00 (a zero
 * byte)
 */
#ifndef TEST_KV_OPS_H
#define TEST_KV_OPS_H

#include "kv/aux.h"
#include "kv/command.h"
#include "kv/read.h"

struct shard {
    struct kv_store *store;
    struct kv_state *state;
    struct arena arena; /* of the last command */
    struct kv_applied last;
    struct obuf command; /* the last one, as bytes */
    struct obuf log;     /* all of them: size(4), bytes */
    uint64_t index;
    hlc_ts ts;
    int64_t now; /* of operations */
    uint64_t seed;
    uint32_t ns;
    bool sweep;       /* every read of a command from the store is cold once; see apply_bytes */
    unsigned colds;   /* how often that was */
    hlc_ts delivered; /* queue records taken so far */
    char text[1 << 16];
};

/* For cmocka: *STATE is a shard that is open. */
int shard_setup(void **state);
int shard_teardown(void **state);
/* The end of a test's main: TESTS with this thread known to RCU. */
#define run_shard_tests(tests) (tests_begin(), tests_end(cmocka_run_group_tests(tests, NULL, NULL)))
void tests_begin(void);
int tests_end(int failed);

void shard_open(struct shard *s); /* with a root directory */
void shard_close(struct shard *s);
void shard_reopen(struct shard *s); /* with what the store has */
/* The operation's SQLSTATE, "00000" when it was applied well. */
const char *run(struct shard *s, const char *statement);
/* Several in one command. */
const char *run_all(struct shard *s, const char *const *statements, unsigned count);
const char *apply_bytes(struct shard *s, bytes command);
/* Columns of the row at KEY ("meta 0 a"), by blanks; "none" if there is no row. */
const char *get(struct shard *s, const char *key, const char *columns);
/* RETURNING rows of the last command: columns by blanks, rows by " | ". */
const char *returned(struct shard *s, const char *columns);
/* All rows of a table, as `returned`. */
const char *all(struct shard *s, const char *table, const char *columns);
void format_row(char *out, size_t size, const struct kv_row *row, const char *columns);
/* Sends the queue's records, up to COUNT, as one batch to this same shard, and acknowledges them
 * if ACK. */
void deliver(struct shard *s, unsigned count, bool ack);
/* Takes over the log of OTHER, command by command. */
void shard_replay(struct shard *s, const struct shard *other, void (*between)(struct shard *s));
uint64_t shard_hash(struct shard *s);
/* Seals and, if FLUSH, writes everything to the store. No transaction may be open then. */
void shard_seal(struct shard *s, bool flush);
/* Seals and writes what is older than the retention; a command takes a microsecond. */
#define SHARD_RETENTION_COMMANDS 50
void shard_seal_and_flush_old(struct shard *s);
/* The Nth read from the store at KV_TIER_CACHE is cold; 0 = none. */
void shard_cold_after(struct shard *s, unsigned n);

/* Parses one statement. Memory from A. */
void parse_op(struct shard *s, struct arena *a, const char *text, struct kv_op *op);

/* A transaction of a session. */
struct session {
    struct shard *shard;
    struct arena arena;
    struct kv_txn *txn;
    hlc_ts snapshot;
    struct kv_result result;
    struct err err;
};
void session_begin(struct session *t, struct shard *s);
const char *session_run(struct session *t, const char *statement);
const char *session_get(struct session *t, const char *key, const char *columns);
/* Names in directory PID, by blanks. */
const char *session_list(struct session *t, int64_t pid, bool backwards);
const char *session_commit(struct session *t);
void session_rollback(struct session *t);

#define EXPECT(state, call) assert_string_equal((state), (call))

#endif
