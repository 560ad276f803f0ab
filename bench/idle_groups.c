/*
 * bench/idle_groups.c — what thousands of Raft groups cost that nobody asks for anything.
 *
 *   metadb_idle_groups [GROUPS [SECONDS [QUIESCE_MS]]]      5000, 20, 1000; 0 ms: they never sleep
 *
 * Three processes on loopback, each with a replica of every group (many_groups.h). When all groups
 * have a leader and, unless they never do, sleep, the processes are left alone for SECONDS. Printed
 * are counts per second of all three together first, which a busy machine changes little: turns of
 * the loops, messages and beacons sent, steps of groups, waits of the processes, instructions where
 * the machine counts them; then the share of one core. Last, of how many groups the leader may
 * still serve reads, and what a node's replicas hold in memory.
 */
#include "base/assert.h"
#include "base/log.h"
#include "cpu.h"
#include "many_groups.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLE_SECONDS 120u
#define LOOK_US 1000000u

/* Written by the process, read by the parent, now and then: none needs another to make sense. */
struct shown {
    _Atomic uint64_t turns, messages, beacons, steps, led, awake, serves;
};

struct counts {
    double cpu, turns, messages, beacons, steps, waits, instructions;
};

struct process {
    pid_t pid;
    int perf; /* -1: the machine does not count */
    struct shown *shown;
};

/* -- a process --------------------------------------------------------------------------------- */

struct looker {
    struct many m;
    struct loop_timer *timer;
    struct shown *shown;
};

/* Once a second, which is one of the turns that are counted. */
static void look(void *arg)
{
    struct looker *l = arg;
    const struct many *m = &l->m;
    uint64_t serves = 0;
    for (unsigned i = 0; i < m->o.groups; i++)
        serves += many_serves(m, i);
    l->shown->turns = m->turns;
    l->shown->messages = m->messages;
    l->shown->beacons = m->beacons;
    l->shown->steps = m->steps;
    l->shown->led = many_led(m);
    l->shown->awake = cl_groups_awake(m->groups);
    l->shown->serves = serves;
    loop_timer_start(l->timer, LOOK_US);
}

static _Noreturn void process_main(const struct cl_topology *t, unsigned groups,
                                   uint64_t quiesce_ms, struct shown *shown)
{
    struct looker l = {.shown = shown};
    struct err err = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    log_set_level(LOG_LEVEL_ERROR);
    struct many_options o = {.env = env_os(),
                             .loop = loop_new(),
                             .topology = t,
                             .groups = groups,
                             .election_ms = 1000,
                             .heartbeat_ms = 100,
                             .quiesce_ms = quiesce_ms};
    if (many_open(&l.m, &o, &err) != ST_OK) {
        fprintf(stderr, "metadb_idle_groups: %s\n", err.message);
        _exit(1);
    }
    l.timer = loop_timer_new(o.loop, look, &l);
    loop_timer_start(l.timer, 0);
    loop_run(o.loop);
    _exit(0);
}

/* -- the parent -------------------------------------------------------------------------------- */

static void addresses(struct cl_topology *t)
{
    int fds[MANY_NODES];
    *t = (struct cl_topology){.count = MANY_NODES};
    for (unsigned i = 0; i < MANY_NODES; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof a;
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fds[i] < 0 || bind(fds[i], (struct sockaddr *)&a, sizeof a) != 0 ||
            getsockname(fds[i], (struct sockaddr *)&a, &size) != 0) {
            perror("metadb_idle_groups: no port");
            exit(1);
        }
        t->nodes[i].id = i + 1;
        snprintf(t->nodes[i].peers, sizeof t->nodes[i].peers, "127.0.0.1:%u", ntohs(a.sin_port));
    }
    for (unsigned i = 0; i < MANY_NODES; i++)
        close(fds[i]);
}

static int perf_open(pid_t pid)
{
    struct perf_event_attr a = {.type = PERF_TYPE_HARDWARE,
                                .size = sizeof a,
                                .config = PERF_COUNT_HW_INSTRUCTIONS,
                                .inherit = 1};
    return (int)syscall(SYS_perf_event_open, &a, pid, -1, -1, 0);
}

/* The number behind KEY in /proc/PID/status. */
static double status_of(pid_t pid, const char *key)
{
    char path[64], line[256];
    unsigned long long value = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0)
            (void)sscanf(line + strlen(key), " %llu", &value);
    }
    if (f != NULL)
        fclose(f);
    return (double)value;
}

static struct counts counts_of(const struct process *p)
{
    struct counts c = {0};
    for (unsigned i = 0; i < MANY_NODES; i++) {
        uint64_t instructions = 0;
        if (p[i].perf >= 0 && read(p[i].perf, &instructions, sizeof instructions) < 0)
            instructions = 0;
        c.instructions += (double)instructions;
        c.cpu += cpu_of_process(p[i].pid);
        c.turns += (double)p[i].shown->turns;
        c.messages += (double)p[i].shown->messages;
        c.beacons += (double)p[i].shown->beacons;
        c.steps += (double)p[i].shown->steps;
        c.waits += status_of(p[i].pid, "voluntary_ctxt_switches:");
    }
    return c;
}

static bool settled(const struct process *p, unsigned groups, bool sleeps)
{
    uint64_t led = 0, awake = 0;
    for (unsigned i = 0; i < MANY_NODES; i++) {
        led += p[i].shown->led;
        awake += p[i].shown->awake;
    }
    return led == groups && (!sleeps || awake == 0);
}

static void report(const struct process *p, const struct counts *a, const struct counts *b,
                   double seconds)
{
    uint64_t led = 0, serves = 0;
    double memory = 0;
    for (unsigned i = 0; i < MANY_NODES; i++) {
        led += p[i].shown->led;
        serves += p[i].shown->serves;
        memory += status_of(p[i].pid, "VmRSS:") / 1024 / MANY_NODES;
    }
    printf("turns/s %.0f  messages/s %.0f  beacons/s %.0f  steps/s %.0f  waits/s %.0f\n",
           (b->turns - a->turns) / seconds, (b->messages - a->messages) / seconds,
           (b->beacons - a->beacons) / seconds, (b->steps - a->steps) / seconds,
           (b->waits - a->waits) / seconds);
    if (b->instructions > 0)
        printf("instructions/s %.2fM\n", (b->instructions - a->instructions) / seconds / 1e6);
    printf("share of one core %.2f %%\n", 100 * (b->cpu - a->cpu) / seconds);
    printf("led %llu, may serve reads %llu, memory of a node %.0f MB\n", (unsigned long long)led,
           (unsigned long long)serves, memory);
}

int main(int argc, char **argv)
{
    unsigned groups = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5000;
    unsigned seconds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 20;
    uint64_t quiesce_ms = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000;
    struct process p[MANY_NODES];
    struct cl_topology t;
    unsigned waited = 0;
    if (groups < 1 || groups > 100000 || seconds < 1) {
        fprintf(stderr, "usage: metadb_idle_groups [GROUPS [SECONDS [QUIESCE_MS]]]\n");
        return 2;
    }
    addresses(&t);
    struct shown *shown = mmap(NULL, MANY_NODES * sizeof *shown, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(shown != MAP_FAILED);
    for (unsigned i = 0; i < MANY_NODES; i++) {
        t.self = i + 1;
        p[i] = (struct process){.shown = &shown[i], .pid = fork()};
        if (p[i].pid == 0)
            process_main(&t, groups, quiesce_ms, &shown[i]);
        p[i].perf = perf_open(p[i].pid);
    }
    while (!settled(p, groups, quiesce_ms != 0) && waited++ < SETTLE_SECONDS)
        sleep(1);
    sleep(2);
    struct counts a = counts_of(p);
    uint64_t from = now_ns();
    sleep(seconds);
    struct counts b = counts_of(p);
    bool fine = settled(p, groups, quiesce_ms != 0);
    printf("%u groups on %u processes, %s after %u s\n", groups, MANY_NODES,
           fine ? "settled" : "NOT SETTLED", waited);
    report(p, &a, &b, (double)(now_ns() - from) / 1e9);
    for (unsigned i = 0; i < MANY_NODES; i++) {
        kill(p[i].pid, SIGKILL);
        waitpid(p[i].pid, NULL, 0);
    }
    return fine ? 0 : 1;
}
