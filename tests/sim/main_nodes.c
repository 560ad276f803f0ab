/*
 * sim/main_nodes.c — seeds over whole nodes, each in a process of its own.
 *
 * A child runs one seed and writes its report, and the marks that it passed, to a pipe. One that
 * dies (an assertion, a sanitizer) has failed its seed as one whose rules did not hold.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "sim/main_internal.h"
#include "sim/run.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_LIMIT 64u
#define MARKS_LIMIT 1024u

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
    struct run_report sum;
    uint64_t runs, failed, least_asked, least_faults, least_leaders;
    char *marks[MARKS_LIMIT];
    unsigned mark_count;
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
    UNUSED(count);
    fprintf(arg, "%s\n", name);
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

static void add_mark(struct all *a, char *name)
{
    name[strcspn(name, "\n")] = '\0';
    for (unsigned i = 0; i < a->mark_count; i++) {
        if (strcmp(a->marks[i], name) == 0)
            return;
    }
    ASSERT(a->mark_count < MARKS_LIMIT);
    a->marks[a->mark_count] = strdup(name);
    ASSERT(a->marks[a->mark_count] != NULL);
    a->mark_count++;
}

static void add(struct all *a, const struct run_report *r)
{
    struct run_report *s = &a->sum;
    uint64_t faults = 0;
    for (unsigned i = 0; i < TROUBLE_KINDS; i++) {
        s->faults[i] += r->faults[i];
        faults += r->faults[i];
    }
#define ADD(field) s->field += r->field
    ADD(virtual_us);
    ADD(asked);
    ADD(answered);
    ADD(unknown);
    ADD(refused);
    ADD(rows);
    ADD(txns);
    ADD(committed);
    ADD(undecided);
    ADD(leaders);
    ADD(restarts);
    ADD(repeated);
    ADD(reordered);
    ADD(installed);
    ADD(offered);
    ADD(cuts);
    ADD(flushes);
    ADD(lost);
#undef ADD
    a->least_asked = r->asked < a->least_asked ? r->asked : a->least_asked;
    a->least_faults = faults < a->least_faults ? faults : a->least_faults;
    a->least_leaders = r->leaders < a->least_leaders ? r->leaders : a->least_leaders;
}

static void fail(struct all *a, const struct job *j, const char *why)
{
    const struct sim_options *o = a->options;
    a->failed++;
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
    char line[128];
    FILE *in = fdopen(j->fd, "r");
    ASSERT(in != NULL);
    bool whole =
        fread(&report, sizeof report, 1, in) == 1 && WIFEXITED(result) && WEXITSTATUS(result) == 0;
    while (whole && fgets(line, sizeof line, in) != NULL)
        add_mark(a, line);
    fclose(in);
    j->pid = 0;
    a->runs++;
    if (!whole) {
        fail(a, j, "it died");
    } else if (j->again && report.digest != j->digest) {
        fail(a, j, "its second run was another history");
    } else if (!report.good) {
        fail(a, j, "a rule is broken");
    } else {
        add(a, &report);
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

static void print_report(const struct all *a)
{
    const struct run_report *r = &a->sum;
    printf("seeds %" PRIu64 ", virtual seconds %" PRIu64 "\nfaults:", a->runs,
           r->virtual_us / 1000000u);
    for (unsigned i = 0; i < TROUBLE_KINDS; i++)
        printf(" %s %" PRIu64, trouble_names[i], r->faults[i]);
    printf("\nmessages: repeated %" PRIu64 " reordered %" PRIu64 "\n", r->repeated, r->reordered);
    printf("nodes: leaders %" PRIu64 " restarts %" PRIu64 " disks lost %" PRIu64 " flushes %" PRIu64
           " cuts %" PRIu64 " snapshots offered %" PRIu64 " installed %" PRIu64 "\n",
           r->leaders, r->restarts, r->lost, r->flushes, r->cuts, r->offered, r->installed);
    printf("requests: %" PRIu64 " answered %" PRIu64 " refused %" PRIu64 " unknown %" PRIu64
           ", rows read %" PRIu64 ", transactions %" PRIu64 " committed %" PRIu64
           ", histories undecided %" PRIu64 "\n",
           r->asked, r->answered, r->refused, r->unknown, r->rows, r->txns, r->committed,
           r->undecided);
    if (a->runs > a->failed)
        printf("least of a seed: requests %" PRIu64 " faults %" PRIu64 " leaders %" PRIu64 "\n",
               a->least_asked, a->least_faults, a->least_leaders);
}

static void write_marks(const struct all *a)
{
    FILE *out = a->options->marks != NULL ? fopen(a->options->marks, "a") : NULL;
    for (unsigned i = 0; out != NULL && i < a->mark_count; i++)
        fprintf(out, "%s\n", a->marks[i]);
    if (out != NULL)
        fclose(out);
}

int main_nodes(const struct sim_options *o)
{
    struct all a = {.options = o,
                    .least_asked = UINT64_MAX,
                    .least_faults = UINT64_MAX,
                    .least_leaders = UINT64_MAX,
                    .started_s = now_s()};
    if (o->jobs == 0 || o->jobs > JOBS_LIMIT || (o->broken != NULL && !run_knows(o->broken))) {
        fprintf(stderr, "sim: no such mistake, or too many jobs\n");
        return 2;
    }
    for (uint64_t seed = o->first; seed - o->first < o->count; seed++) {
        if (o->broken != NULL && a.failed > 0)
            break;
        if (o->until_s > 0 && now_s() - a.started_s >= o->until_s)
            break;
        while (free_job(&a) == NULL)
            wait_one(&a);
        start(&a, free_job(&a), seed);
    }
    while (busy(&a))
        wait_one(&a);
    print_report(&a);
    write_marks(&a);
    if (a.failed > 0)
        printf("FAILED: %" PRIu64 " of %" PRIu64 " seeds\n", a.failed, a.runs);
    return (a.failed > 0) == (o->broken != NULL) ? 0 : 1;
}
