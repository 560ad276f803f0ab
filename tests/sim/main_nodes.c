/*
 * sim/main_nodes.c — seeds over whole nodes, each in a process of its own.
 *
 * A child runs one seed and writes its report, and the marks that it passed, to a pipe. One that
 * dies (an assertion, a sanitizer) has failed its seed as one whose rules did not hold.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "sim/main_internal.h"
#include "sim/sums.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_LIMIT 64u

struct job {
    pid_t pid; /* 0: free */
    int fd;    /* the report comes here */
    uint64_t seed;
    bool again; /* its second run */
    uint64_t digest;
};

struct all {
    const struct sim_options *options;
    struct job jobs[JOBS_LIMIT];
    struct sums sums;
    uint64_t started_s;
};

static uint64_t now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec;
}

static void send_mark(void *arg, const char *name, uint64_t count)
{
    fprintf(arg, "%s %" PRIu64 "\n", name, count);
}

static _Noreturn void child(const struct sim_options *o, uint64_t seed, int fd)
{
    struct run_options options = {.seconds = o->seconds, .broken = o->broken};
    struct run_report report;
    run_seed(seed, &options, &report);
    FILE *out = fdopen(fd, "w");
    ASSERT(out != NULL);
    fwrite(&report, sizeof report, 1, out);
    mark_each(send_mark, out);
    fclose(out);
    fflush(NULL);
    _exit(0); /* what processes of the simulation held is not given back */
}

static void start(struct all *a, struct job *j, uint64_t seed)
{
    int fds[2];
    fflush(NULL);
    if (pipe(fds) != 0 || (j->pid = fork()) < 0) {
        perror("sim");
        exit(1);
    }
    if (j->pid == 0) {
        close(fds[0]);
        child(a->options, seed, fds[1]);
    }
    close(fds[1]);
    j->fd = fds[0];
    j->seed = seed;
}

/* A run that breaks no rule because little happened in it is no proof. */
static bool enough(const struct sim_options *o, const struct run_report *r)
{
    return o->seconds < RUN_S_MIN || o->broken != NULL ||
           (run_done(r) >= RUN_DONE_MIN && run_faults(r) >= RUN_FAULTS_MIN &&
            r->leaders >= RUN_LEADERS_MIN);
}

static void fail(struct all *a, const struct job *j, const char *why)
{
    const struct sim_options *o = a->options;
    a->sums.failed++;
    if (o->broken != NULL) {
        printf("found by seed %" PRIu64 "\n", j->seed);
        return;
    }
    printf("FAILED seed %" PRIu64 " (%s); again: build/debug/tests/sim/sim --seed %" PRIu64
           " --seconds %" PRIu64 " --log\n",
           j->seed, why, j->seed, o->seconds);
    fflush(stdout);
}

/* The process of J has ended. */
static void finish(struct all *a, struct job *j, int result)
{
    struct run_report report;
    char mark[128];
    uint64_t count;
    FILE *in = fdopen(j->fd, "r");
    ASSERT(in != NULL);
    bool whole =
        fread(&report, sizeof report, 1, in) == 1 && WIFEXITED(result) && WEXITSTATUS(result) == 0;
    while (whole && fscanf(in, "%127s %" SCNu64, mark, &count) == 2)
        sums_mark(&a->sums, mark, count);
    fclose(in);
    j->pid = 0;
    a->sums.seeds++;
    if (!whole) {
        fail(a, j, "it died");
    } else if (j->again && report.digest != j->digest) {
        fail(a, j, "its second run was another history");
    } else if (!report.good) {
        fail(a, j, "a rule is broken");
    } else if (!enough(a->options, &report)) {
        fail(a, j, "too little happened in it");
    } else {
        sums_add(&a->sums, &report);
        if (a->options->verbose)
            printf("seed %" PRIu64 " ok %016" PRIx64 "\n", j->seed, report.digest);
    }
    if (!whole || !a->options->twice || j->again) {
        j->again = false;
        return;
    }
    j->again = true;
    j->digest = report.digest;
    start(a, j, j->seed);
}

static void wait_one(struct all *a)
{
    int result;
    pid_t pid = waitpid(-1, &result, 0);
    for (unsigned i = 0; i < a->options->jobs; i++) {
        if (a->jobs[i].pid == pid && pid > 0)
            finish(a, &a->jobs[i], result);
    }
}

static struct job *free_job(struct all *a)
{
    for (unsigned i = 0; i < a->options->jobs; i++) {
        if (a->jobs[i].pid == 0)
            return &a->jobs[i];
    }
    return NULL;
}

static bool busy(const struct all *a)
{
    for (unsigned i = 0; i < a->options->jobs; i++) {
        if (a->jobs[i].pid != 0)
            return true;
    }
    return false;
}

int main_nodes(const struct sim_options *o)
{
    struct all a = {.options = o, .started_s = now_s()};
    sums_init(&a.sums);
    if (o->jobs == 0 || o->jobs > JOBS_LIMIT || (o->broken != NULL && !run_knows(o->broken))) {
        fprintf(stderr, "sim: no such mistake, or too many jobs\n");
        return 2;
    }
    for (uint64_t seed = o->first; seed - o->first < o->count; seed++) {
        if (o->broken != NULL && a.sums.failed > 0)
            break;
        if (o->until_s > 0 && now_s() - a.started_s >= o->until_s)
            break;
        while (free_job(&a) == NULL)
            wait_one(&a);
        start(&a, free_job(&a), seed);
    }
    while (busy(&a))
        wait_one(&a);
    uint64_t failed = a.sums.failed, seeds = a.sums.seeds;
    printf("%" PRIu64 " seeds in %" PRIu64 " s\n", seeds, now_s() - a.started_s);
    if (failed > 0)
        printf("FAILED: %" PRIu64 " of %" PRIu64 " seeds\n", failed, seeds);
    bool kept = o->sums == NULL || (sums_load(&a.sums, o->sums) && sums_save(&a.sums, o->sums));
    if (!kept)
        fprintf(stderr, "sim: %s cannot be read or written\n", o->sums);
    sums_print(&a.sums);
    sums_fini(&a.sums);
    return kept && (failed > 0) == (o->broken != NULL) ? 0 : 1;
}
