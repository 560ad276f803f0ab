/*
 * demo.c — starts the nodes, tells what happens to them, and ends them.
 *
 *   DIR/cluster          id of the cluster and number of nodes, so that a later demo goes on here
 *   DIR/node-N.conf      settings of node N, written at each start
 *   DIR/node-N.log       its events
 *   DIR/node-N           its data directory
 *
 * A node that dies is reported and not started again: who kills one wants to see what the others
 * do. The command that starts it is printed; such a node is on its own.
 *
 * Invariants
 *   D1  No node outlives the demo: a stop waits for all of them, and the kernel sends SIGTERM to
 *       those whose demo died before (PR_SET_PDEATHSIG).
 *   D2  A directory is removed only if this process made it under a name that nobody chose.
 *
 * One thread; signals come through a descriptor, the nodes' standard output through pipes.
 */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
#include "demo.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES_MAX 7u
#define FIRST_PORT 7432u
#define PEER_PORTS 10u /* so far above the clients' ports */
#define PATH_BYTES 4096u
#define STOP_MS 20000
#define EXIT_USAGE 1
#define EXIT_DISK 4

struct demo_node {
    unsigned number, clients, peers; /* ports */
    pid_t pid;                       /* 0: not running */
    int out;                         /* its standard output, -1 */
    char line[512];                  /* of it, as far as it came */
    size_t size;
};

struct demo {
    unsigned count, running;
    unsigned port; /* of the first node's clients; 0: nobody said */
    char dir[PATH_BYTES - 64];
    char binary[PATH_BYTES];
    const char *data;
    uint64_t cluster_id;
    bool temporary, stopping;
    int settings; /* count of them */
    char **setting;
    int signals; /* descriptor */
    sigset_t before;
    struct demo_node nodes[NODES_MAX];
};

static int complain(const char *what, const char *which)
{
    fprintf(stderr, "metadb: demo: %s%s\n", what, which);
    return EXIT_USAGE;
}

static int complain_errno(const char *what, const char *which)
{
    fprintf(stderr, "metadb: demo: could not %s \"%s\": %s\n", what, which, strerror(errno));
    return EXIT_DISK;
}

/* -- the command line -------------------------------------------------------------------------- */

/* 1: ARG was --NAME; 0: it is something else; -1: it has no value. */
static int flag(int argc, char **argv, int *at, const char *name, const char **value)
{
    size_t n = strlen(name);
    if (strncmp(argv[*at], name, n) != 0 || (argv[*at][n] != '\0' && argv[*at][n] != '='))
        return 0;
    if (argv[*at][n] == '=') {
        *value = argv[*at] + n + 1;
        return 1;
    }
    if (*at + 1 == argc)
        return -1;
    *value = argv[++*at];
    return 1;
}

static bool number(const char *text, unsigned least, unsigned most, unsigned *out)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || v < least || v > most)
        return false;
    *out = (unsigned)v;
    return true;
}

/* Settings that the demo gives every node itself. */
static bool is_ours(const char *arg)
{
    static const char *const names[] = {"--config", "--listen", "--cluster."};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(arg, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

static int read_flags(struct demo *d, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *nodes = NULL, *port = NULL, *given = argv[i];
        int is_nodes = flag(argc, argv, &i, "--nodes", &nodes);
        int is_port = is_nodes == 0 ? flag(argc, argv, &i, "--port", &port) : 0;
        int is_data = is_nodes == 0 && is_port == 0 ? flag(argc, argv, &i, "--data", &d->data) : 0;
        if (is_nodes < 0 || is_port < 0 || is_data < 0)
            return complain("no value for ", given);
        if (nodes != NULL && !number(nodes, 1, NODES_MAX, &d->count))
            return complain("--nodes takes 1 to 7, not ", nodes);
        if (port != NULL && !number(port, 1, 65535 - PEER_PORTS - NODES_MAX, &d->port))
            return complain("not a port: ", port);
        if (nodes != NULL || port != NULL || is_data != 0)
            continue;
        if (is_ours(given))
            return complain("it is the demo that sets ", given);
        if (strncmp(given, "--", 2) != 0 || strchr(given, '=') == NULL)
            return complain("a setting of the nodes is --NAME=VALUE, not ", given);
        d->setting[d->settings++] = argv[i];
    }
    return 0;
}

/* -- the directory ----------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_directory(const struct demo *d)
{
    if (d->temporary && nftw(d->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        complain_errno("remove", d->dir);
}

static int make_directory(struct demo *d)
{
    if (d->data == NULL) {
        const char *tmp = getenv("TMPDIR");
        snprintf(d->dir, sizeof d->dir, "%s/metadb-demo-XXXXXX",
                 tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
        if (mkdtemp(d->dir) == NULL)
            return complain_errno("make", d->dir);
        d->temporary = true; /* D2 */
        return 0;
    }
    if (mkdir(d->data, 0700) != 0 && errno != EEXIST)
        return complain_errno("make", d->data);
    char *whole = realpath(d->data, NULL);
    if (whole == NULL)
        return complain_errno("find", d->data);
    bool fits = snprintf(d->dir, sizeof d->dir, "%s", whole) < (int)sizeof d->dir;
    free(whole);
    return fits ? 0 : complain("the name is too long: ", d->data);
}

/* What an earlier demo in this directory was; else this one is written down. */
static int remember(struct demo *d)
{
    char path[PATH_BYTES];
    unsigned count = 0;
    snprintf(path, sizeof path, "%s/cluster", d->dir);
    FILE *f = fopen(path, "r");
    if (f != NULL) {
        int got = fscanf(f, "id %" SCNu64 " nodes %u", &d->cluster_id, &count);
        fclose(f);
        if (got != 2 || d->cluster_id == 0 || count < 1 || count > NODES_MAX)
            return complain("not written by a demo: ", path);
        if (d->count != 0 && d->count != count) {
            fprintf(stderr, "metadb: demo: the cluster in \"%s\" has %u nodes, not %u\n", d->dir,
                    count, d->count);
            return EXIT_USAGE;
        }
        d->count = count;
        return 0;
    }
    d->count = d->count != 0 ? d->count : 3;
    if (getrandom(&d->cluster_id, sizeof d->cluster_id, 0) != (ssize_t)sizeof d->cluster_id)
        return complain_errno("draw", "cluster.id");
    d->cluster_id = (d->cluster_id & (uint64_t)INT64_MAX) | 1;
    f = fopen(path, "w");
    if (f == NULL)
        return complain_errno("write", path);
    bool ok = fprintf(f, "id %" PRIu64 " nodes %u\n", d->cluster_id, d->count) > 0;
    return fclose(f) == 0 && ok ? 0 : complain_errno("write", path);
}

/* -- ports ------------------------------------------------------------------------------------- */

/* The port that a listener on 127.0.0.1:PORT would get, 0: none. */
static unsigned try_port(unsigned port, int *held)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int on = 1;
    *held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*held >= 0 && setsockopt(*held, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(*held, (struct sockaddr *)&a, sizeof a) == 0 && listen(*held, 1) == 0 &&
        getsockname(*held, (struct sockaddr *)&a, &size) == 0)
        return ntohs(a.sin_port);
    return 0;
}

/* All ports are held until all are known, so that none is given twice. FIRST 0: any. */
static bool take_ports(struct demo *d, unsigned first, unsigned *missing)
{
    int held[2 * NODES_MAX];
    unsigned taken = 0;
    bool ok = true;
    for (unsigned i = 0; i < d->count && ok; i++) {
        struct demo_node *n = &d->nodes[i];
        for (unsigned k = 0; k < 2 && ok; k++) {
            unsigned wanted = first != 0 ? first + i + k * PEER_PORTS : 0;
            unsigned got = try_port(wanted, &held[taken++]);
            *(k == 0 ? &n->clients : &n->peers) = got;
            ok = got != 0;
            *missing = wanted;
        }
    }
    while (taken > 0)
        close(held[--taken]);
    return ok;
}

static int choose_ports(struct demo *d)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < d->count; i++)
        d->nodes[i] = (struct demo_node){.number = i + 1, .out = -1};
    if (take_ports(d, d->port != 0 ? d->port : FIRST_PORT, &missing) ||
        (d->port == 0 && take_ports(d, 0, &missing)))
        return 0;
    fprintf(stderr, "metadb: demo: port %u of 127.0.0.1 is not free\n", missing);
    return EXIT_USAGE;
}

/* -- settings ---------------------------------------------------------------------------------- */

static int write_settings(const struct demo *d, const struct demo_node *n)
{
    char path[PATH_BYTES];
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t memory = (uint64_t)pages * (uint64_t)page / 4 / d->count;
    snprintf(path, sizeof path, "%s/node-%u.conf", d->dir, n->number);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return complain_errno("write", path);
    fprintf(f, "; node %u of a demo; written at each of its starts\n", n->number);
    fprintf(f, "listen = 127.0.0.1:%u\n\n[memory]\nbudget = %" PRIu64 "kB\n", n->clients,
            memory > (64u << 20) ? memory >> 10 : (uint64_t)64 << 10);
    if (d->count > 1)
        fprintf(f, "\n[cluster]\nid = %" PRIu64 "\nnode = %u\n", d->cluster_id, n->number);
    for (unsigned i = 0; d->count > 1 && i < d->count; i++) {
        const struct demo_node *o = &d->nodes[i];
        fprintf(f, "%s%u=127.0.0.1:%u/127.0.0.1:%u\n", i == 0 ? "nodes = " : "        ", o->number,
                o->peers, o->clients);
    }
    bool ok = ferror(f) == 0;
    return fclose(f) == 0 && ok ? 0 : complain_errno("write", path);
}

/* -- processes --------------------------------------------------------------------------------- */

static void become_node(const struct demo *d, const struct demo_node *n, pid_t parent, int out)
{
    char data[PATH_BYTES], config[PATH_BYTES], log[PATH_BYTES];
    char *argv[128] = {(char *)(uintptr_t) "metadb",   (char *)(uintptr_t) "start",
                       (char *)(uintptr_t) "--data",   data,
                       (char *)(uintptr_t) "--config", config};
    snprintf(data, sizeof data, "%s/node-%u", d->dir, n->number);
    snprintf(config, sizeof config, "%s/node-%u.conf", d->dir, n->number);
    snprintf(log, sizeof log, "%s/node-%u.log", d->dir, n->number);
    for (int i = 0; i < d->settings; i++)
        argv[6 + i] = d->setting[i];
    int events = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (events < 0 || none < 0 || dup2(none, 0) < 0 || dup2(out, 1) < 0 || dup2(events, 2) < 0)
        _exit(EXIT_DISK);
    /* D1. The demo may have died before the kernel was told. A group of its own: ^C is for the
     * demo, which ends the nodes in good order. */
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(EXIT_DISK);
    sigprocmask(SIG_SETMASK, &d->before, NULL);
    execv(d->binary, argv);
    _exit(EXIT_DISK);
}

static int start_node(struct demo *d, struct demo_node *n)
{
    int ends[2];
    pid_t self = getpid();
    int code = write_settings(d, n);
    if (code != 0)
        return code;
    if (pipe(ends) != 0)
        return complain_errno("start", "a node");
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_node(d, n, self, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return complain_errno("start", "a node");
    }
    n->pid = pid;
    n->out = ends[0];
    d->running++;
    return 0;
}

static void signal_all(struct demo *d, int signo)
{
    for (unsigned i = 0; i < d->count; i++) {
        if (d->nodes[i].pid != 0)
            kill(d->nodes[i].pid, signo);
    }
}

static void say_ended(const struct demo *d, const struct demo_node *n, int st)
{
    if (WIFSIGNALED(st))
        printf("node %u was killed by signal %d\n", n->number, WTERMSIG(st));
    else if (!d->stopping || WEXITSTATUS(st) != 0)
        printf("node %u has ended with status %d; why is in %s/node-%u.log\n", n->number,
               WEXITSTATUS(st), d->dir, n->number);
    if (d->stopping)
        return;
    printf("  start it again: %s start --data %s/node-%u --config %s/node-%u.conf", d->binary,
           d->dir, n->number, d->dir, n->number);
    for (int i = 0; i < d->settings; i++)
        printf(" %s", d->setting[i]);
    printf("\n");
}

static void reap(struct demo *d)
{
    int st;
    for (unsigned i = 0; i < d->count; i++) {
        struct demo_node *n = &d->nodes[i];
        if (n->pid == 0 || waitpid(n->pid, &st, WNOHANG) != n->pid)
            continue;
        say_ended(d, n, st);
        n->pid = 0;
        d->running--;
    }
    fflush(stdout);
}

/* -- what the nodes say ------------------------------------------------------------------------ */

static void on_line(const struct demo_node *n)
{
    if (strncmp(n->line, "metadb ready", 12) == 0)
        printf("node %u serves     psql -h 127.0.0.1 -p %u -U metadb metadb\n", n->number,
               n->clients);
    else
        printf("node %u: %s\n", n->number, n->line);
    fflush(stdout);
}

static void read_output(struct demo_node *n)
{
    ssize_t got = read(n->out, n->line + n->size, sizeof n->line - 1 - n->size);
    if (got < 0 && errno == EINTR)
        return;
    if (got <= 0) {
        close(n->out);
        n->out = -1;
        return;
    }
    n->size += (size_t)got;
    n->line[n->size] = '\0';
    for (char *end; (end = strchr(n->line, '\n')) != NULL;) {
        *end = '\0';
        on_line(n);
        n->size -= (size_t)(end + 1 - n->line);
        memmove(n->line, end + 1, n->size + 1);
    }
    if (n->size == sizeof n->line - 1)
        n->size = 0; /* no line of ours is so long */
}

static void introduce(const struct demo *d)
{
    printf("metadb demo: %u node%s, data and logs in %s%s\n", d->count, d->count == 1 ? "" : "s",
           d->dir, d->temporary ? ", removed at the end" : "");
    for (unsigned i = 0; i < d->count; i++) {
        const struct demo_node *n = &d->nodes[i];
        printf("  node %u  process %d  clients 127.0.0.1:%u", n->number, (int)n->pid, n->clients);
        if (d->count > 1)
            printf("  nodes 127.0.0.1:%u", n->peers);
        printf("  log %s/node-%u.log\n", d->dir, n->number);
    }
    printf("Ctrl-C stops all.\n");
    fflush(stdout);
}

/* -- the life of the demo ---------------------------------------------------------------------- */

static void on_signals(struct demo *d)
{
    struct signalfd_siginfo info;
    if (read(d->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo == SIGCHLD) {
        reap(d);
    } else if (!d->stopping) {
        d->stopping = true;
        printf("stopping %u node%s\n", d->running, d->running == 1 ? "" : "s");
        fflush(stdout);
        signal_all(d, SIGTERM);
    } else {
        signal_all(d, SIGKILL); /* asked twice */
    }
}

static void supervise(struct demo *d)
{
    while (d->running > 0) {
        struct pollfd fds[1 + NODES_MAX] = {{.fd = d->signals, .events = POLLIN}};
        for (unsigned i = 0; i < d->count; i++)
            fds[1 + i] = (struct pollfd){.fd = d->nodes[i].out, .events = POLLIN};
        int got = poll(fds, 1 + d->count, d->stopping ? STOP_MS : -1);
        if (got == 0)
            signal_all(d, SIGKILL); /* it hangs: its log says where */
        if (got < 0 && errno != EINTR)
            signal_all(d, SIGKILL);
        for (unsigned i = 0; got > 0 && i < d->count; i++) {
            if (fds[1 + i].revents != 0)
                read_output(&d->nodes[i]);
        }
        if (got > 0 && fds[0].revents != 0)
            on_signals(d);
        reap(d);
    }
}

static int start_all(struct demo *d)
{
    int code = 0;
    for (unsigned i = 0; i < d->count && code == 0; i++)
        code = start_node(d, &d->nodes[i]);
    if (code != 0) {
        d->stopping = true;
        signal_all(d, SIGTERM);
    } else {
        introduce(d);
    }
    return code;
}

static int run(struct demo *d)
{
    sigset_t set;
    ssize_t size = readlink("/proc/self/exe", d->binary, sizeof d->binary - 1);
    if (size <= 0)
        return complain_errno("find", "/proc/self/exe");
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &d->before);
    d->signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (d->signals < 0)
        return complain_errno("watch", "signals");
    int code = start_all(d);
    supervise(d);
    for (unsigned i = 0; i < d->count; i++) {
        if (d->nodes[i].out >= 0)
            close(d->nodes[i].out);
    }
    close(d->signals);
    if (code == 0 && !d->stopping) {
        printf("no node is left\n");
        code = EXIT_DISK;
    }
    return code;
}

int demo_run(int argc, char **argv)
{
    struct demo *d = calloc(1, sizeof *d);
    if (d == NULL || argc > 100 ||
        (d->setting = calloc((size_t)argc + 1, sizeof(char *))) == NULL) {
        free(d);
        return complain("too many flags", "");
    }
    int code = read_flags(d, argc, argv);
    if (code == 0)
        code = make_directory(d);
    if (code == 0)
        code = remember(d);
    if (code == 0)
        code = choose_ports(d);
    if (code == 0)
        code = run(d);
    remove_directory(d);
    free(d->setting);
    free(d);
    return code;
}
