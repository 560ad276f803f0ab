/*
 * bench/log_grid.c — the two writers of the log against each other, on this disk.
 *
 *   metadb_log_grid [DIR [BATCHES [PAIRS]]]
 *
 * For each size of a batch and each number of batches under way: PAIRS runs of each writer, in
 * turns, each on a fresh log with a real loop. A batch that is stored is followed by the next one
 * (a closed loop), so `under way` is how many the owner leaves with the log, as log.inflight does.
 * Printed are medians over the runs: latency from raft_log_submit to on_stored, processor time of
 * this process and of the kernel's workers per batch, waits of all threads (voluntary context
 * switches), wake-ups of the log's thread, and writes. The kernel's workers are the machine's: on
 * a busy machine their time is an upper bound.
 */
#include "base/log.h"
#include "base/mailbox.h"
#include "raft/log.h"

#include "cpu.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ENTRY_BYTES 200u
#define PAIRS_MAX 32
#define TICKETS 16u

struct result {
    double p50_us, p99_us, cpu_us, loop_us, kernel_us, waits, wakeups, writes, batches_s;
};

struct grid_run {
    struct raft_log *log;
    struct loop *loop;
    struct buf *data;
    unsigned entries, under_way;
    uint64_t batches, submitted, stored, next_index;
    uint64_t submitted_ns[TICKETS];
    double *latency_us;
};

static double clock_us(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Microseconds of processor time of the thread whose schedstat is PATH. */
static double schedstat_us(const char *path)
{
    unsigned long long ns = 0;
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    if (fscanf(f, "%llu", &ns) != 1)
        ns = 0;
    fclose(f);
    return (double)ns / 1e3;
}

static double kernel_workers_us(void)
{
    DIR *proc = opendir("/proc");
    double sum = 0;
    struct dirent *d;

    while (proc && (d = readdir(proc)) != NULL) {
        char path[300], name[32] = "";
        if (d->d_name[0] < '0' || d->d_name[0] > '9')
            continue;
        snprintf(path, sizeof path, "/proc/%s/comm", d->d_name);
        FILE *f = fopen(path, "r");
        if (!f)
            continue;
        if (!fgets(name, sizeof name, f))
            name[0] = '\0';
        fclose(f);
        if (strncmp(name, "kworker", 7) != 0 && strncmp(name, "jbd2", 4) != 0)
            continue;
        snprintf(path, sizeof path, "/proc/%s/schedstat", d->d_name);
        sum += schedstat_us(path);
    }
    if (proc)
        closedir(proc);
    return sum;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, compare);
    return v[n / 2];
}

static void submit(struct grid_run *g)
{
    for (unsigned i = 0; i < g->entries; i++) {
        struct raft_entry e = {
            .index = g->next_index++, .term = 1, .kind = RAFT_ENTRY_COMMAND, .data = g->data};
        if (raft_log_append(g->log, 1, &e, 1) != ST_OK)
            abort();
    }
    if (g->next_index > 50000) /* segments come and go */
        raft_log_cut(g->log, 1, g->next_index - 50000);
    g->submitted_ns[++g->submitted % TICKETS] = now_ns();
    if (raft_log_submit(g->log) != g->submitted)
        abort();
}

static void on_stored(void *arg, uint64_t ticket)
{
    struct grid_run *g = arg;
    uint64_t now = now_ns();
    while (g->stored < ticket) {
        g->latency_us[g->stored] = (double)(now - g->submitted_ns[(g->stored + 1) % TICKETS]) / 1e3;
        g->stored++;
    }
    if (g->stored == g->batches)
        loop_stop(g->loop);
}

static void on_failed(void *arg, status st)
{
    (void)arg;
    fprintf(stderr, "the log failed: %s\n", status_name(st));
    exit(1);
}

/* As the node: batches are closed at the end of a turn. */
static void on_turn(void *arg)
{
    struct grid_run *g = arg;
    while (g->submitted < g->batches && g->submitted - g->stored < g->under_way)
        submit(g);
}

/* Until a next segment and the reserve are there: they are made while the log rests. */
static void wait_until_prepared(const char *dir)
{
    char path[400];
    snprintf(path, sizeof path, "%s/reserve", dir);
    while (access(path, F_OK) != 0)
        usleep(1000);
}

static void remove_dir(const char *dir)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command) != 0)
        fprintf(stderr, "%s was not removed\n", dir);
}

static void measure(struct grid_run *g, struct result *r)
{
    static struct raft_log_stats before, after;
    struct rusage ra, rb;
    struct loop_turn *turn = loop_turn_new(g->loop, on_turn, g);

    raft_log_stats(g->log, &before);
    double kernel = kernel_workers_us();
    getrusage(RUSAGE_SELF, &ra);
    double cpu = clock_us(CLOCK_PROCESS_CPUTIME_ID), own = clock_us(CLOCK_THREAD_CPUTIME_ID);
    double begin = clock_us(CLOCK_MONOTONIC);
    loop_again(g->loop);
    loop_run(g->loop);
    double wall = clock_us(CLOCK_MONOTONIC) - begin, n = (double)g->batches;
    r->cpu_us = (clock_us(CLOCK_PROCESS_CPUTIME_ID) - cpu) / n;
    r->loop_us = (clock_us(CLOCK_THREAD_CPUTIME_ID) - own) / n;
    getrusage(RUSAGE_SELF, &rb);
    r->kernel_us = (kernel_workers_us() - kernel) / n;
    raft_log_stats(g->log, &after);
    loop_turn_free(turn);
    qsort(g->latency_us, g->batches, sizeof *g->latency_us, compare);
    r->p50_us = g->latency_us[g->batches / 2];
    r->p99_us = g->latency_us[g->batches * 99 / 100];
    r->waits = (double)(rb.ru_nvcsw - ra.ru_nvcsw) / n;
    r->wakeups = (double)(after.wakeups - before.wakeups) / n;
    r->writes = (double)(after.writes - before.writes) / n;
    r->batches_s = n / wall * 1e6;
}

/* One run of WRITER; false if this machine does not have it. */
static bool run(const char *dir, enum raft_log_writer writer, struct grid_run *g, struct result *r)
{
    struct raft_log_options options = {
        .dir = dir,
        .cluster_id = 1,
        .store_id = 1,
        .segment_bytes = 16u << 20,
        .batch_bytes = 1u << 20,
        .batch_entries = 4096,
        .writer = writer,
        .inflight = g->under_way,
    };
    static struct raft_log_stats stats;
    const struct raft_log_recovery recovery = {0};
    const struct raft_log_events events = {g, on_stored, on_failed};
    struct err err;

    g->submitted = g->stored = 0;
    g->next_index = 1;
    if (raft_log_open(env_os(), &options, &recovery, &g->log, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    g->loop = loop_new();
    struct mailbox *mailbox = mailbox_new(g->loop);
    raft_log_start(g->log, mailbox, &events);
    raft_log_stats(g->log, &stats);
    bool there = stats.writer == writer;
    wait_until_prepared(dir);
    if (there)
        measure(g, r);
    raft_log_close(g->log);
    mailbox_free(mailbox);
    loop_free(g->loop);
    return there;
}

static void print_row(const char *name, const struct grid_run *g, struct result *r, size_t n)
{
    double v[9][PAIRS_MAX];
    for (size_t i = 0; i < n; i++) {
        const double of[9] = {r[i].p50_us, r[i].p99_us,  r[i].batches_s,
                              r[i].cpu_us, r[i].loop_us, r[i].kernel_us,
                              r[i].waits,  r[i].wakeups, r[i].writes};
        for (size_t k = 0; k < 9; k++)
            v[k][i] = of[k];
    }
    printf("%7u %9u  %-6s %8.0f %8.0f %10.0f %8.1f %8.1f %8.1f %8.2f %8.2f %8.2f\n", g->entries,
           g->under_way, name, median(v[0], n), median(v[1], n), median(v[2], n), median(v[3], n),
           median(v[4], n), median(v[5], n), median(v[6], n), median(v[7], n), median(v[8], n));
    fflush(stdout);
}

static void one_cell(const char *dir, struct grid_run *g, size_t pairs)
{
    static struct result results[2][PAIRS_MAX];
    static const enum raft_log_writer writers[2] = {RAFT_LOG_THREAD, RAFT_LOG_URING};
    bool there = true;

    for (size_t i = 0; i < 2 * pairs; i++) {
        size_t w = (i + i / 2) % 2; /* thread uring, uring thread, … */
        there = run(dir, writers[w], g, &results[w][i / 2]) && there;
        remove_dir(dir);
    }
    print_row("thread", g, results[0], pairs);
    if (there)
        print_row("uring", g, results[1], pairs);
}

int main(int argc, char **argv)
{
    static const unsigned sizes[] = {1, 8, 64, 512};
    char top[256], dir[300];
    uint64_t batches = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000;
    size_t pairs = argc > 3 ? strtoull(argv[3], NULL, 10) : 5;

    snprintf(top, sizeof top, "%s/metadb-log-grid-XXXXXX", argc > 1 ? argv[1] : "/tmp");
    if (pairs < 1 || pairs > PAIRS_MAX || batches < 100 || !mkdtemp(top)) {
        fprintf(stderr, "usage: metadb_log_grid [DIR [BATCHES [PAIRS]]]\n");
        return 2;
    }
    snprintf(dir, sizeof dir, "%s/0", top);
    log_set_level(LOG_LEVEL_ERROR);
    printf("entries under_way  writer  p50_us   p99_us  batches/s   cpu_us  loop_us kernel_us "
           "  waits  wakeups   writes   (per batch)\n");
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (unsigned under_way = 1; under_way <= 3; under_way++) {
            struct grid_run g = {.entries = sizes[s],
                                 .under_way = under_way,
                                 .batches = batches,
                                 .data = buf_new(ENTRY_BYTES)};
            memset(g.data->data, 'x', ENTRY_BYTES);
            g.latency_us = calloc(batches, sizeof *g.latency_us);
            if (!g.latency_us)
                abort();
            one_cell(dir, &g, pairs);
            free(g.latency_us);
            buf_unref(g.data);
        }
    }
    remove_dir(top);
    return 0;
}
