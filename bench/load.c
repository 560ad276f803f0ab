/*
 * bench/load.c — one measurement: prepare data, run a workload, check the counts, print a line.
 *
 *   metadb_load --peer metadb|pg|redis|etcd --port N [--workload NAME] [--form NAME] ...
 *
 * The line: peer workload clients ops/s p50 p99 max (ms) cpu_server cpu_client (cores) errors
 * check, then key=value pairs that say more. A workload whose quota and index updates are part of
 * the operation is timed until the server has delivered them.
 *
 * With --form delta a child process folds the delta rows ten times a second for as long as the run
 * lasts.
 */
#include "control.h"
#include "cpu.h"
#include "engine.h"
#include "prepare.h"
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FOLD_PERIOD_NS 100000000

struct settings {
    struct target target;
    struct engine_options engine;
    struct generator generator;
    const char *workload, *form, *label;
    bool prepared;
};

static const char usage[] =
    "usage: metadb_load --peer metadb|pg|redis|etcd --port N --workload NAME [options]\n"
    "  --host A --database D --user U     where (127.0.0.1, metadb, metadb)\n"
    "  --form NAME         pg: func, pipe or delta\n"
    "  --clients N --idle N               connections that work, and that only exist (1, 0)\n"
    "  --depth N --batch   operations under way per client; all of them under one Sync\n"
    "  --simple            the simple query protocol\n"
    "  --seconds S --warmup S             length of the run (2, 0.3)\n"
    "  --count N           a number of operations instead of a time\n"
    "  --base N            first directory id; each run of one server needs another\n"
    "  --entries N --directories N --keys N\n"
    "                      per client or directory; for reads (4096, 64); for kv (200000)\n"
    "  --prepared          the data is there: an earlier run of reads had this base\n"
    "  --server-pid N      whose processor time to take\n"
    "  --before CMD --after CMD           shell commands around the operations\n"
    "  --label NAME        the peer's name in the line\n"
    "  --list              the workloads\n";

enum option_id {
    OPT_PEER = 1,
    OPT_HOST,
    OPT_PORT,
    OPT_DATABASE,
    OPT_USER,
    OPT_WORKLOAD,
    OPT_FORM,
    OPT_CLIENTS,
    OPT_IDLE,
    OPT_DEPTH,
    OPT_BATCH,
    OPT_SIMPLE,
    OPT_SECONDS,
    OPT_WARMUP,
    OPT_COUNT,
    OPT_BASE,
    OPT_ENTRIES,
    OPT_DIRECTORIES,
    OPT_KEYS,
    OPT_PREPARED,
    OPT_SERVER_PID,
    OPT_BEFORE,
    OPT_AFTER,
    OPT_LABEL,
    OPT_LIST
};

static const struct option options[] = {{"peer", 1, NULL, OPT_PEER},
                                        {"host", 1, NULL, OPT_HOST},
                                        {"port", 1, NULL, OPT_PORT},
                                        {"database", 1, NULL, OPT_DATABASE},
                                        {"user", 1, NULL, OPT_USER},
                                        {"workload", 1, NULL, OPT_WORKLOAD},
                                        {"form", 1, NULL, OPT_FORM},
                                        {"clients", 1, NULL, OPT_CLIENTS},
                                        {"idle", 1, NULL, OPT_IDLE},
                                        {"depth", 1, NULL, OPT_DEPTH},
                                        {"batch", 0, NULL, OPT_BATCH},
                                        {"simple", 0, NULL, OPT_SIMPLE},
                                        {"seconds", 1, NULL, OPT_SECONDS},
                                        {"warmup", 1, NULL, OPT_WARMUP},
                                        {"count", 1, NULL, OPT_COUNT},
                                        {"base", 1, NULL, OPT_BASE},
                                        {"entries", 1, NULL, OPT_ENTRIES},
                                        {"directories", 1, NULL, OPT_DIRECTORIES},
                                        {"keys", 1, NULL, OPT_KEYS},
                                        {"prepared", 0, NULL, OPT_PREPARED},
                                        {"server-pid", 1, NULL, OPT_SERVER_PID},
                                        {"before", 1, NULL, OPT_BEFORE},
                                        {"after", 1, NULL, OPT_AFTER},
                                        {"label", 1, NULL, OPT_LABEL},
                                        {"list", 0, NULL, OPT_LIST},
                                        {0}};

static uint64_t natural(const char *text, uint64_t most)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);
    if (*end || *text < '0' || *text > '9' || v > most)
        die("%s is not a number up to %llu", text, (unsigned long long)most);
    return v;
}

static double duration(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (*end || v < 0 || v > 3600)
        die("%s is not a number of seconds", text);
    return v;
}

static void list_workloads(void)
{
    for (unsigned i = 0; workload_name(i); i++)
        puts(workload_name(i));
    exit(0);
}

static void set(struct settings *s, int id, const char *v)
{
    switch ((enum option_id)id) {
    case OPT_PEER: s->target.peer = v; break;
    case OPT_HOST: s->target.host = v; break;
    case OPT_PORT: s->target.port = (unsigned)natural(v, 65535); break;
    case OPT_DATABASE: s->target.database = v; break;
    case OPT_USER: s->target.user = v; break;
    case OPT_WORKLOAD: s->workload = v; break;
    case OPT_FORM: s->form = v; break;
    case OPT_CLIENTS: s->engine.clients = (unsigned)natural(v, 9999); break;
    case OPT_IDLE: s->engine.idle = (unsigned)natural(v, 50000); break;
    case OPT_DEPTH: s->engine.depth = (unsigned)natural(v, 10000); break;
    case OPT_BATCH: s->engine.batch = true; break;
    case OPT_SIMPLE: s->target.simple = true; break;
    case OPT_SECONDS: s->engine.seconds = duration(v); break;
    case OPT_WARMUP: s->engine.warmup = duration(v); break;
    case OPT_COUNT: s->engine.count = natural(v, 1000000000); break;
    case OPT_BASE: s->generator.base = natural(v, 100000000); break;
    case OPT_ENTRIES: s->generator.entries = natural(v, 9999999); break;
    case OPT_DIRECTORIES: s->generator.directories = (unsigned)natural(v, 9999); break;
    case OPT_KEYS: s->generator.keys = natural(v, 100000000); break;
    case OPT_PREPARED: s->prepared = true; break;
    case OPT_SERVER_PID: s->engine.server = (pid_t)natural(v, 1u << 30); break;
    case OPT_BEFORE: s->engine.before = v; break;
    case OPT_AFTER: s->engine.after = v; break;
    case OPT_LABEL: s->label = v; break;
    case OPT_LIST: list_workloads(); break;
    }
}

static void check_settings(struct settings *s, struct plan *plan)
{
    struct generator *g = &s->generator;
    g->workload = workload_find(s->workload);
    g->clients = s->engine.clients;
    if (!g->workload)
        die("no workload is named %s; see --list", s->workload);
    if (strcmp(s->target.peer, "metadb") != 0 && strcmp(s->target.peer, "pg") != 0 &&
        strcmp(s->target.peer, "redis") != 0 && strcmp(s->target.peer, "etcd") != 0)
        die("no peer is named %s", s->target.peer);
    if (!plan_find(s->target.peer, g->workload->operation, s->form, plan))
        die("%s has no form %s of %s", s->target.peer, s->form, s->workload);
    plan->workload = s->workload;
    if (s->target.port == 0 || g->clients == 0 || s->engine.depth == 0 || g->entries == 0 ||
        g->directories == 0)
        die("port, clients, depth, entries and directories must not be 0");
    if (strcmp(s->target.peer, "etcd") == 0 && s->engine.depth != 1)
        die("etcd: one operation at a time per connection");
    if (s->prepared && g->workload->access != ACCESS_READ)
        die("--prepared is for reads");
    if (strcmp(g->workload->operation, "listdir") == 0 && g->entries <= plan->rows)
        die("listdir needs more than %llu entries", (unsigned long long)plan->rows);
}

static void read_settings(struct settings *s, int argc, char **argv)
{
    *s = (struct settings){
        .target = {.peer = "metadb", .host = "127.0.0.1", .database = "metadb", .user = "metadb"},
        .engine = {.clients = 1, .depth = 1, .seconds = 2, .warmup = 0.3},
        .generator = {.base = 100000, .entries = 4096, .directories = 64, .keys = 200000},
        .workload = "create_spread",
        .form = ""};
    for (int id; (id = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (id == '?') {
            fputs(usage, stderr);
            exit(2);
        }
        set(s, id, optarg);
    }
    if (optind < argc)
        die("what is %s?", argv[optind]);
}

static pid_t start_folder(const struct target *t)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct timespec pause = {.tv_nsec = FOLD_PERIOD_NS};
    struct control c;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    control_open(&c, t, &wire_pg);
    for (;;) {
        control_exec(&c, "SELECT fold_deltas()");
        nanosleep(&pause, NULL);
    }
}

static void stop_folder(pid_t pid)
{
    if (pid > 0) {
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
    }
}

static double milliseconds(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* Operations per second; those of an accounted workload count until the server is done with them.
 * */
static double rate(const struct settings *s, const struct engine_result *r, uint64_t accounted_at)
{
    if (!s->generator.workload->accounted)
        return (double)r->measured / ((double)(r->ended - r->begun) / 1e9);
    return (double)r->measured / ((double)(accounted_at - r->begun) / 1e9);
}

static void report(const struct settings *s, const struct plan *plan, const struct engine_result *r,
                   double ops, const char *check)
{
    const struct histogram *h = &r->latency;
    printf("%s%s%s %s %u %.0f %.3f %.3f %.3f %.2f %.2f %llu %s other=%.2f fair=%llu..%llu",
           s->label ? s->label : s->target.peer, *plan->form && !s->label ? "." : "",
           s->label ? "" : plan->form, s->workload, s->engine.clients, ops,
           milliseconds(histogram_percentile(h, 50)), milliseconds(histogram_percentile(h, 99)),
           milliseconds(h->max), r->server_cores, r->client_cores, (unsigned long long)r->errors,
           check, r->other_cores, (unsigned long long)r->least, (unsigned long long)r->most);
    if (r->errors)
        printf(" error=\"%s\"", r->error);
    putchar('\n');
}

static const struct wire *wire_of(const char *peer)
{
    if (strcmp(peer, "redis") == 0)
        return &wire_redis;
    return strcmp(peer, "etcd") == 0 ? &wire_etcd : &wire_pg;
}

int main(int argc, char **argv)
{
    struct settings s;
    struct plan plan;
    struct control control;
    static struct engine_result result;
    char check[160] = "-";
    read_settings(&s, argc, argv);
    check_settings(&s, &plan);
    const struct wire *wire = wire_of(s.target.peer);
    generator_init(&s.generator);
    control_open(&control, &s.target, wire);
    if (!s.prepared)
        prepare(&control, &s.generator);
    pid_t folder = strcmp(plan.form, "delta") == 0 ? start_folder(&s.target) : 0;
    engine_run(&s.target, wire, &plan, &s.generator, &s.engine, &result);
    stop_folder(folder);
    prepare_wait_accounted(&control);
    uint64_t accounted_at = now_ns();
    if (result.errors == 0)
        prepare_check(&control, &s.generator, result.acknowledged, check);
    report(&s, &plan, &result, rate(&s, &result, accounted_at), check);
    control_close(&control);
    generator_fini(&s.generator);
    return result.errors || strncmp(check, "BAD", 3) == 0 ? 1 : 0;
}
