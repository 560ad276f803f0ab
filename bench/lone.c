/*
 * bench/lone.c — one client's create beside what it cannot do without: one sync of the log and one
 * round trip on loopback.
 *
 *   metadb_lone --port N [--dir DIR] [--repetitions R] [--operations N] [--base B]
 *
 * R times, a slice of each in turns: N creates of one prepared statement on the running server; N
 * batches of one entry of a create's size through the log's own writer, each submitted when the
 * one before is stored; N round trips of as many bytes with a child process that receives and
 * sends and does nothing else. DIR should be on the server's disk. Prints the medians of each
 * repetition, and in the last line create / (sync + round trip): the median of the repetitions,
 * the least, the greatest.
 */
#include "base/log.h"
#include "base/mailbox.h"
#include "control.h"
#include "cpu.h"
#include "prepare.h"
#include "raft/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPETITIONS_MAX 100u
#define OPERATIONS_MAX 100000u
#define SLICE 25u
#define COMMAND_BYTES 120u /* of a create in the log */
#define CUT_EVERY 50000u   /* segments come and go */

/* Nanoseconds of each operation of a repetition. */
static uint64_t create_ns[OPERATIONS_MAX], sync_ns[OPERATIONS_MAX], trip_ns[OPERATIONS_MAX];

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Milliseconds. */
static double median(uint64_t *ns, unsigned count)
{
    qsort(ns, count, sizeof *ns, compare_times);
    return (double)ns[count / 2] / 1e6;
}

/* ---- creates ---- */

struct creates {
    struct target target;
    struct control control;
    struct generator generator;
    struct plan plan;
    size_t request_bytes, answer_bytes;
};

static void creates_open(struct creates *c, unsigned port, uint64_t base)
{
    c->target = (struct target){.peer = "metadb",
                                .host = "127.0.0.1",
                                .database = "metadb",
                                .user = "metadb",
                                .port = port};
    c->generator = (struct generator){
        .workload = workload_find("create_hot"), .base = base, .clients = 1, .entries = 1};
    generator_init(&c->generator);
    control_open(&c->control, &c->target, &wire_pg);
    prepare(&c->control, &c->generator);
    if (!plan_find("metadb", "create", "", &c->plan))
        die("no create");
    /* Stage 1 of the greeting prepares the plan's statements. */
    wire_pg.hello(&c->control.out, 1, &c->target, &c->plan);
    control_flush(&c->control, 1);
}

static void creates_measure(struct creates *c, uint64_t *ns, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct op op;
        if (!generator_next(&c->generator, 0, &op))
            die("no name is left");
        wire_pg.operation(&c->control.out, &c->target, &c->plan, &op);
        wire_pg.sync(&c->control.out, &c->target);
        c->request_bytes = c->control.out.size;
        uint64_t begin = now_ns();
        control_flush(&c->control, 1);
        ns[i] = now_ns() - begin;
        c->answer_bytes = c->control.in.size;
    }
}

static void creates_close(struct creates *c)
{
    control_close(&c->control);
    generator_fini(&c->generator);
}

/* ---- round trips ---- */

struct echo {
    int fd;
    pid_t pid;
};

static void receive_all(int fd, size_t size)
{
    uint8_t piece[4096];
    while (size > 0) {
        ssize_t n = recv(fd, piece, size < sizeof piece ? size : sizeof piece, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            exit(0); /* the other side has ended */
        size -= (size_t)n;
    }
}

static void send_all(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            exit(0);
        data += n;
        size -= (size_t)n;
    }
}

static void set_nodelay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void echo_serve(int listener, size_t request_bytes, size_t answer_bytes)
{
    static const uint8_t answer[4096];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        exit(1);
    set_nodelay(fd);
    for (;;) {
        receive_all(fd, request_bytes);
        send_all(fd, answer, answer_bytes);
    }
}

static void echo_open(struct echo *e, size_t request_bytes, size_t answer_bytes)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, size) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *)&at, &size) != 0)
        die("listen: %s", strerror(errno));
    e->pid = fork();
    if (e->pid == 0)
        echo_serve(listener, request_bytes, answer_bytes);
    e->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (e->pid < 0 || e->fd < 0 || connect(e->fd, (struct sockaddr *)&at, sizeof at) != 0)
        die("echo: %s", strerror(errno));
    set_nodelay(e->fd);
    close(listener);
}

static void echo_measure(struct echo *e, uint64_t *ns, unsigned count, const struct creates *c)
{
    static const uint8_t request[4096];
    if (c->request_bytes > sizeof request || c->answer_bytes > sizeof request)
        die("a create of %zu and %zu bytes", c->request_bytes, c->answer_bytes);
    for (unsigned i = 0; i < count; i++) {
        uint64_t begin = now_ns();
        send_all(e->fd, request, c->request_bytes);
        receive_all(e->fd, c->answer_bytes);
        ns[i] = now_ns() - begin;
    }
}

static void echo_close(struct echo *e)
{
    close(e->fd);
    waitpid(e->pid, NULL, 0);
}

/* ---- syncs ---- */

struct syncs {
    struct raft_log *log;
    struct loop *loop;
    struct mailbox *mailbox;
    struct buf *data;
    uint64_t next_index, begin_ns, *ns;
    unsigned count, done;
    char dir[300];
};

/* At the end of a turn, as the node does it. */
static void on_turn(void *arg)
{
    struct syncs *s = arg;
    if (s->begin_ns != 0 || s->done == s->count)
        return;
    struct raft_entry e = {
        .index = s->next_index++, .term = 1, .kind = RAFT_ENTRY_COMMAND, .data = s->data};
    s->begin_ns = now_ns();
    if (s->next_index % CUT_EVERY == 0)
        raft_log_cut(s->log, 1, s->next_index - CUT_EVERY / 2);
    if (raft_log_append(s->log, 1, &e, 1) != ST_OK || raft_log_submit(s->log) == 0)
        die("the log takes nothing");
}

static void on_stored(void *arg, uint64_t ticket)
{
    struct syncs *s = arg;
    (void)ticket;
    s->ns[s->done++] = now_ns() - s->begin_ns;
    s->begin_ns = 0;
    if (s->done == s->count)
        loop_stop(s->loop);
}

static void on_failed(void *arg, status st)
{
    (void)arg;
    die("the log failed: %s", status_name(st));
}

static void syncs_open(struct syncs *s, const char *top)
{
    const struct raft_log_recovery recovery = {0};
    const struct raft_log_events events = {s, on_stored, on_failed};
    struct err err;
    char reserve[400];

    snprintf(s->dir, sizeof s->dir, "%s/metadb-lone-XXXXXX", top);
    if (!mkdtemp(s->dir))
        die("%s: %s", s->dir, strerror(errno));
    struct raft_log_options options = {.dir = s->dir,
                                       .cluster_id = 1,
                                       .store_id = 1,
                                       .segment_bytes = 64u << 20,
                                       .batch_bytes = 1u << 20,
                                       .batch_entries = 4096};
    if (raft_log_open(env_os(), &options, &recovery, &s->log, &err) != ST_OK)
        die("%s", err.message);
    s->next_index = 1;
    s->data = buf_new(COMMAND_BYTES);
    memset(s->data->data, 'x', COMMAND_BYTES);
    s->loop = loop_new();
    s->mailbox = mailbox_new(s->loop);
    raft_log_start(s->log, s->mailbox, &events);
    /* A next segment and the reserve are made while the log rests. */
    snprintf(reserve, sizeof reserve, "%s/reserve", s->dir);
    while (access(reserve, F_OK) != 0)
        usleep(1000);
}

static void syncs_measure(struct syncs *s, uint64_t *ns, unsigned count)
{
    struct loop_turn *turn = loop_turn_new(s->loop, on_turn, s);
    s->ns = ns;
    s->count = count;
    s->done = 0;
    loop_again(s->loop);
    loop_run(s->loop);
    loop_turn_free(turn);
}

static void syncs_close(struct syncs *s)
{
    char command[400];
    raft_log_close(s->log);
    mailbox_free(s->mailbox);
    loop_free(s->loop);
    buf_unref(s->data);
    snprintf(command, sizeof command, "rm -rf '%s'", s->dir);
    if (system(command) != 0)
        fprintf(stderr, "%s was not removed\n", s->dir);
}

/* ---- all of them ---- */

struct settings {
    unsigned port, repetitions, operations;
    uint64_t base;
    const char *dir;
};

static void read_settings(struct settings *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"port", 1, NULL, 'p'},       {"dir", 1, NULL, 'd'},  {"repetitions", 1, NULL, 'r'},
        {"operations", 1, NULL, 'o'}, {"base", 1, NULL, 'b'}, {0}};
    *s = (struct settings){.repetitions = 7, .operations = 500, .base = 100000, .dir = "/tmp"};
    for (int id; (id = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (id) {
        case 'p': s->port = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'd': s->dir = optarg; break;
        case 'r': s->repetitions = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'o': s->operations = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'b': s->base = strtoull(optarg, NULL, 10); break;
        default:
            s->port = 0;
            optind = argc;
            break;
        }
    }
    if (s->port == 0 || s->port > 65535 || s->repetitions < 1 || s->repetitions > REPETITIONS_MAX ||
        s->operations < 1 || s->operations > OPERATIONS_MAX)
        die("usage: metadb_lone --port N [--dir DIR] [--repetitions R] [--operations N] [--base "
            "B]");
}

int main(int argc, char **argv)
{
    static double ratios[REPETITIONS_MAX];
    struct settings s;
    struct creates creates = {0};
    struct echo echo;
    struct syncs syncs = {0};

    read_settings(&s, argc, argv);
    log_set_level(LOG_LEVEL_ERROR);
    creates_open(&creates, s.port, s.base);
    creates_measure(&creates, create_ns, SLICE); /* also for the sizes */
    echo_open(&echo, creates.request_bytes, creates.answer_bytes);
    syncs_open(&syncs, s.dir);
    for (unsigned i = 0; i < s.repetitions; i++) {
        for (unsigned at = 0; at < s.operations; at += SLICE) {
            unsigned count = s.operations - at < SLICE ? s.operations - at : SLICE;
            creates_measure(&creates, create_ns + at, count);
            syncs_measure(&syncs, sync_ns + at, count);
            echo_measure(&echo, trip_ns + at, count, &creates);
        }
        double create = median(create_ns, s.operations), sync = median(sync_ns, s.operations),
               trip = median(trip_ns, s.operations);
        ratios[i] = create / (sync + trip);
        printf("create_ms=%.3f sync_ms=%.3f round_trip_ms=%.3f ratio=%.2f\n", create, sync, trip,
               ratios[i]);
        fflush(stdout);
    }
    qsort(ratios, s.repetitions, sizeof *ratios, compare_numbers);
    printf("lone create / (log sync + round trip): %.2f (%.2f..%.2f of %u)\n",
           ratios[s.repetitions / 2], ratios[0], ratios[s.repetitions - 1], s.repetitions);
    syncs_close(&syncs);
    echo_close(&echo);
    creates_close(&creates);
    return 0;
}
