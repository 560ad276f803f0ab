/*
 * Both writers, in a process of their own that is killed: at each fault point, and at a moment that
 * the parent picks. Whatever was reported stored before is there afterwards, unchanged.
 *
 * The child says through shared memory how far it was told to be stored; the parent recovers.
 */
#include "raft/log.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/mailbox.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define BATCHES_MAX 20000u /* the child gives up: the fault was not reached */
#define TICKETS 8u         /* of the past, until their last entries are known to be stored */

struct shared {
    _Atomic uint64_t stored; /* the highest entry that was reported */
};

struct run {
    char dir[64], stream[96];
    struct raft_log_options options;
    struct shared *shared;
    struct raft_log *log;
    struct loop *loop;
    uint64_t next_index, ticket, last_of[TICKETS], stored_ticket;
    uint64_t recovered;
};

static enum raft_log_writer writer;

/* ---- the child ---- */

static uint32_t entry_size(uint64_t index)
{
    return 8 + (uint32_t)(index * 2654435761u % 600);
}

static struct buf *entry_data(uint64_t index)
{
    struct buf *b = buf_new(entry_size(index));
    memset(b->data, (int)(index & 0xff), b->size);
    memcpy(b->data, &index, sizeof index);
    return b;
}

static void on_stored(void *arg, uint64_t ticket)
{
    struct run *r = arg;
    r->stored_ticket = ticket;
    atomic_store(&r->shared->stored, r->last_of[ticket % TICKETS]);
    /* Two segments of the past stay: retiring is part of the load. */
    uint64_t index = r->last_of[ticket % TICKETS];
    if (index > 300)
        raft_log_cut(r->log, 1, index - 300);
}

static void on_failed(void *arg, status st)
{
    (void)arg;
    (void)st;
    _exit(3);
}

static void on_turn(void *arg)
{
    struct run *r = arg;
    while (r->ticket - r->stored_ticket < 2) {
        for (uint64_t i = 0; i < 1 + r->next_index % 7; i++) {
            struct raft_entry e = {.index = r->next_index,
                                   .term = 1,
                                   .kind = RAFT_ENTRY_COMMAND,
                                   .data = entry_data(r->next_index)};
            if (raft_log_append(r->log, 1, &e, 1) != ST_OK)
                _exit(4);
            r->next_index++;
            buf_unref(e.data);
        }
        r->last_of[(r->ticket + 1) % TICKETS] = r->next_index - 1;
        r->ticket = raft_log_submit(r->log);
        if (r->ticket > BATCHES_MAX)
            _exit(5);
    }
}

static status recover(struct run *r, struct err *err);

static void child(struct run *r, const char *site, unsigned nth)
{
    struct err err;
    if (recover(r, &err) != ST_OK)
        _exit(6);
    r->next_index = r->recovered + 1;
    r->loop = loop_new();
    struct mailbox *mailbox = mailbox_new(r->loop);
    const struct raft_log_events events = {r, on_stored, on_failed};
    if (site)
        fault_arm(site, "kill", nth);
    raft_log_start(r->log, mailbox, &events);
    struct loop_turn *turn = loop_turn_new(r->loop, on_turn, r);
    loop_again(r->loop);
    loop_run(r->loop);
    loop_turn_free(turn);
    _exit(7);
}

/* ---- the parent ---- */

static status on_entry(void *arg, uint64_t group, const struct raft_entry *e)
{
    struct run *r = arg;
    struct buf *want = entry_data(e->index);
    if (r->recovered == 0)
        r->recovered = e->index - 1; /* what was before is cut */
    bool same = group == 1 && e->index == r->recovered + 1 && e->data->size == want->size &&
                memcmp(e->data->data, want->data, want->size) == 0;
    buf_unref(want);
    r->recovered++;
    return same ? ST_OK : ST_CORRUPT;
}

static status recover(struct run *r, struct err *err)
{
    const struct raft_log_recovery recovery = {.arg = r, .on_entry = on_entry};
    r->recovered = 0;
    return raft_log_open(env_os(), &r->options, &recovery, &r->log, err);
}

static void run_init(struct run *r)
{
    *r = (struct run){.dir = "/tmp/metadb-kill-XXXXXX"};
    assert_non_null(mkdtemp(r->dir));
    snprintf(r->stream, sizeof r->stream, "%s/0", r->dir);
    r->options = (struct raft_log_options){
        .dir = r->stream,
        .cluster_id = 1,
        .store_id = 2,
        .segment_bytes = 128 * 1024,
        .batch_bytes = 16 * 1024,
        .batch_entries = 64,
        .writer = writer,
        .inflight = 2,
    };
    r->shared =
        mmap(NULL, sizeof *r->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(r->shared != MAP_FAILED);
}

static void run_fini(struct run *r)
{
    char command[128];
    munmap(r->shared, sizeof *r->shared);
    snprintf(command, sizeof command, "rm -rf %s", r->dir);
    assert_int_equal(system(command), 0);
}

/* One life of the log, to be killed at SITE, or by the parent once MORE entries are stored. */
static void one_life(struct run *r, const char *site, unsigned nth, uint64_t more)
{
    uint64_t before = atomic_load(&r->shared->stored);
    int wstatus;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        child(r, site, nth);
    if (!site) {
        while (atomic_load(&r->shared->stored) < before + more &&
               waitpid(pid, &wstatus, WNOHANG) == 0)
            usleep(100);
        kill(pid, SIGKILL);
    }
    assert_int_equal(waitpid(pid, &wstatus, 0), pid);
    if (site)
        assert_true(WIFEXITED(wstatus) && WEXITSTATUS(wstatus) == 137);
    else
        assert_true(WIFSIGNALED(wstatus) && WTERMSIG(wstatus) == SIGKILL);
}

static void check(struct run *r, const char *what)
{
    struct err err = {0};
    status st = recover(r, &err);
    if (st != ST_OK)
        fail_msg("%s: %s", what, err.message);
    if (r->recovered < atomic_load(&r->shared->stored))
        fail_msg("%s: stored up to %llu, recovered up to %llu", what,
                 (unsigned long long)atomic_load(&r->shared->stored),
                 (unsigned long long)r->recovered);
    raft_log_close(r->log);
    r->log = NULL;
}

static void kill_at_every_fault_point_loses_nothing_stored(void **state)
{
    static const char *const sites[] = {"log.write", "log.sync", "log.synced", "log.rotate",
                                        "log.cut"};
    (void)state;
    for (size_t s = 0; s < sizeof sites / sizeof sites[0]; s++) {
        struct run r;
        run_init(&r);
        for (unsigned nth = 1; nth <= 4; nth++) {
            one_life(&r, sites[s], nth, 0);
            check(&r, sites[s]);
        }
        run_fini(&r);
    }
}

static void kill_at_any_moment_loses_nothing_stored(void **state)
{
    struct run r;
    (void)state;
    run_init(&r);
    for (uint64_t i = 0; i < 12; i++) {
        one_life(&r, NULL, 0, 1 + i * 97 % 700);
        check(&r, "kill -9");
    }
    run_fini(&r);
}

static int run(enum raft_log_writer which, const char *name)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kill_at_every_fault_point_loses_nothing_stored),
        cmocka_unit_test(kill_at_any_moment_loses_nothing_stored),
    };
    writer = which;
    return _cmocka_run_group_tests(name, tests, sizeof tests / sizeof tests[0], NULL, NULL);
}

int main(void)
{
    /* Where io_uring is not possible the second half repeats the first. */
    int failed = run(RAFT_LOG_THREAD, "thread");
    return run(RAFT_LOG_AUTO, "uring where possible") + failed;
}
