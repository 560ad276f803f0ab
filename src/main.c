/*
 * main.c — the command line: starts a node or several, looks at a log, says what it is.
 *
 *   metadb start --data DIR [--listen HOST:PORT] [--config FILE] [--NAME=VALUE ...]
 *   metadb demo [--nodes N] [--data DIR] [--port PORT] [--NAME=VALUE ...]
 *   metadb log dump DIR | metadb log check DIR
 *   metadb version | metadb help
 *
 * Exit status: 0 stopped cleanly; 1 usage or configuration; 2 the data directory is in use, foreign
 * or of a newer format; 3 its contents are damaged; 4 its disk failed, or another error of the
 * system.
 *
 * The main thread opens the node and waits; everything else happens on reactor 0: `ready` starts
 * the listener and prints the one line that says so, signals stop listener and node in this order,
 * and the last step wakes the main thread. When log or store are lost the clients get a moment to
 * be told, then the process ends without touching the disk again.
 */
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "cluster/node.h"
#include "demo.h"
#include "frontend/server.h"
#include "raft/log.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum exit_code { EXIT_OK, EXIT_USAGE, EXIT_DIRECTORY, EXIT_DAMAGED, EXIT_DISK };

#define FAILURE_GRACE_US 300000u

static const char usage_text[] =
    "metadb " METADB_VERSION ", a database for file-system metadata\n"
    "\n"
    "  metadb start --data DIR [--listen HOST:PORT] [--config FILE] [--NAME=VALUE ...]\n"
    "      Serves the data directory DIR, which is made when missing. Stops on SIGTERM or SIGINT.\n"
    "  metadb demo [--nodes N] [--data DIR] [--port PORT] [--NAME=VALUE ...]\n"
    "      A cluster of N processes (3) on loopback, clients from PORT (7432) on; in a temporary\n"
    "      directory without --data. Ctrl-C stops it.\n"
    "  metadb log dump DIR\n"
    "      Prints the records of the log in the data directory DIR. The server must be stopped.\n"
    "  metadb log check DIR\n"
    "      Reads the whole log and says whether it is sound.\n"
    "  metadb version\n"
    "  metadb help [settings]\n"
    "      This text, or every setting with its default.\n"
    "\n"
    "exit status: 0 ok, 1 usage, 2 data directory in use or not usable, 3 damaged, 4 disk failed\n";

struct server {
    int argc; /* of the command line, to read settings again */
    char **argv;
    struct cl_node *node;
    struct fe_server *frontend;
    const char *listen;
    struct loop_timer *grace;
    bool stopping;
    pthread_mutex_t mu;
    pthread_cond_t changed;
    bool over;           /* mu */
    enum exit_code code; /* mu */
};

/* -- errors ------------------------------------------------------------------------------------ */

static void print_err(const char *what, const struct err *err)
{
    fprintf(stderr, "metadb: %s%s%s\n", what, what[0] != '\0' ? ": " : "", err->message);
    if (err->detail[0] != '\0')
        fprintf(stderr, "  %s\n", err->detail);
    if (err->hint[0] != '\0')
        fprintf(stderr, "  %s\n", err->hint);
}

static enum exit_code usage_error(const char *message, const char *what)
{
    fprintf(stderr, "metadb: %s%s\n  Try \"metadb help\".\n", message, what);
    return EXIT_USAGE;
}

static enum exit_code exit_status_of(status st)
{
    if (st == ST_LOCKED || st == ST_INVALID)
        return EXIT_DIRECTORY;
    return st == ST_CORRUPT ? EXIT_DAMAGED : EXIT_DISK;
}

/* -- start ------------------------------------------------------------------------------------- */

static void finish(struct server *s, enum exit_code code)
{
    pthread_mutex_lock(&s->mu);
    s->over = true;
    s->code = code;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mu);
}

static void node_stopped(void *arg)
{
    finish(arg, EXIT_OK);
}

static void frontend_stopped(void *arg)
{
    struct server *s = arg;
    s->frontend = NULL;
    cl_node_stop(s->node, node_stopped, s);
}

static void on_signal(void *arg, int signo)
{
    struct server *s = arg;
    if (s->stopping)
        return;
    s->stopping = true;
    LOG_INFO("server.signal", LOG_I64("signal", signo));
    if (s->frontend != NULL)
        fe_server_stop(s->frontend, frontend_stopped, s);
    else
        cl_node_stop(s->node, node_stopped, s);
}

static enum exit_code read_arguments(struct config *config, int argc, char **argv,
                                     const char **data);

/* SIGHUP: the settings of access are read again, from where they were read at the start. */
static void on_reload(void *arg, int signo)
{
    struct server *s = arg;
    const char *data = NULL;
    struct err err;
    unsigned count;
    UNUSED(signo);
    if (s->stopping || s->frontend == NULL)
        return;
    const struct config_setting *settings = cl_settings(&count);
    struct config *fresh = config_new(settings, count);
    err_clear(&err);
    status st = read_arguments(fresh, s->argc, s->argv, &data) == EXIT_OK
                    ? fe_server_reload(s->frontend, fresh, &err)
                    : ST_INVALID;
    if (st == ST_OK)
        LOG_INFO("server.reloaded");
    else
        LOG_ERROR("server.not_reloaded", LOG_STR("why", err.message));
    config_free(fresh);
}

/* HOST:PORT with the port that was really taken, for the line that a person copies. */
static void print_ready(const struct server *s)
{
    char host[256];
    const char *colon = strrchr(s->listen, ':');
    size_t size = colon != NULL ? (size_t)(colon - s->listen) : strlen(s->listen);
    snprintf(host, sizeof host, "%.*s", (int)size, s->listen);
    unsigned port = fe_server_port(s->frontend);
    printf("metadb ready on %s:%u    psql -h %s -p %u -U metadb metadb\n", host, port, host, port);
    fflush(stdout);
}

static void on_ready(void *arg)
{
    struct server *s = arg;
    struct err err;
    err_clear(&err);
    status st = fe_server_new(s->node, s->listen, &s->frontend, &err);
    if (st != ST_OK) {
        print_err("cannot serve", &err);
        finish(s, EXIT_USAGE);
        return;
    }
    print_ready(s);
}

static void failure_over(void *arg)
{
    finish(arg, EXIT_DISK);
}

static void on_failed(void *arg, status st)
{
    struct server *s = arg;
    fprintf(stderr, "metadb: the log or the store has failed (%s); stopping\n", status_text(st));
    s->grace = loop_timer_new(cl_node_reactor(s->node, 0)->loop, failure_over, s);
    loop_timer_start(s->grace, FAILURE_GRACE_US);
}

static enum exit_code wait_for_end(struct server *s)
{
    pthread_mutex_lock(&s->mu);
    while (!s->over)
        pthread_cond_wait(&s->changed, &s->mu);
    enum exit_code code = s->code;
    pthread_mutex_unlock(&s->mu);
    return code;
}

static enum exit_code serve(const struct config *config, const char *dir, int argc, char **argv)
{
    struct server s = {.argc = argc, .argv = argv, .listen = config_string(config, "listen")};
    struct err err;
    err_clear(&err);
    /* Before a directory is made or read. */
    status st = cl_settings_check(config, &err);
    if (st == ST_OK)
        st = fe_server_check(config, s.listen, &err);
    if (st != ST_OK) {
        print_err("cannot start", &err);
        return EXIT_USAGE;
    }
    pthread_mutex_init(&s.mu, NULL);
    pthread_cond_init(&s.changed, NULL);
    st = cl_node_open(env_os(), config, dir, &s.node, &err);
    if (st != ST_OK) {
        err_default(&err, st);
        print_err("cannot start", &err);
        return exit_status_of(st);
    }
    /* From the first turn on: a node among others may wait long for the moment that it serves. */
    struct loop *loop = cl_node_reactor(s.node, 0)->loop;
    loop_on_signal(loop, SIGTERM, on_signal, &s);
    loop_on_signal(loop, SIGINT, on_signal, &s);
    loop_on_signal(loop, SIGHUP, on_reload, &s);
    cl_node_start(s.node, on_ready, on_failed, &s);
    enum exit_code code = wait_for_end(&s);
    if (code != EXIT_OK) {
        fflush(NULL);
        _exit((int)code); /* nothing may be written any more, and there is nobody to wait for */
    }
    cl_node_close(s.node);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.mu);
    return EXIT_OK;
}

/* -- the command line -------------------------------------------------------------------------- */

/* "--NAME=VALUE" or "--NAME VALUE"; *AT moves behind it. */
static bool flag_value(int argc, char **argv, int *at, const char *name, const char **value)
{
    size_t n = strlen(name);
    const char *arg = argv[*at];
    if (strncmp(arg, name, n) != 0 || (arg[n] != '\0' && arg[n] != '='))
        return false;
    if (arg[n] == '=')
        *value = arg + n + 1;
    else if (*at + 1 < argc)
        *value = argv[++*at];
    return true;
}

static enum exit_code set_flag(struct config *config, int argc, char **argv, int *at)
{
    struct err err;
    const char *arg = argv[*at] + 2;
    const char *value = NULL;
    err_clear(&err);
    if (strchr(arg, '=') == NULL) {
        if (*at + 1 == argc)
            return usage_error("no value for ", argv[*at]);
        value = argv[++*at];
    }
    if (config_set(config, arg, value, &err) == ST_OK)
        return EXIT_OK;
    print_err("", &err);
    return EXIT_USAGE;
}

static status load_files(struct config *config, const char *file, struct err *err)
{
    if (file != NULL)
        ST_TRY(config_load_file(config, file, err));
    return config_load_environment(config, err);
}

static enum exit_code read_arguments(struct config *config, int argc, char **argv,
                                     const char **data)
{
    const char *file = NULL, *ignored = NULL;
    struct err err;
    err_clear(&err);
    for (int i = 0; i < argc; i++)
        (void)flag_value(argc, argv, &i, "--config", &file);
    if (load_files(config, file, &err) != ST_OK) {
        print_err("", &err);
        return EXIT_USAGE;
    }
    for (int i = 0; i < argc; i++) {
        if (i + 1 == argc && (strcmp(argv[i], "--data") == 0 || strcmp(argv[i], "--config") == 0))
            return usage_error("no value for ", argv[i]);
        if (flag_value(argc, argv, &i, "--data", data) ||
            flag_value(argc, argv, &i, "--config", &ignored))
            continue;
        if (strncmp(argv[i], "--", 2) != 0)
            return usage_error("unexpected argument ", argv[i]);
        enum exit_code code = set_flag(config, argc, argv, &i);
        if (code != EXIT_OK)
            return code;
    }
    if (*data == NULL || (*data)[0] == '\0')
        return usage_error("start needs --data DIR", "");
    return EXIT_OK;
}

static enum exit_code command_start(int argc, char **argv)
{
    unsigned count;
    const struct config_setting *settings = cl_settings(&count);
    struct config *config = config_new(settings, count);
    const char *data = NULL;
    enum log_level level;
    enum exit_code code = read_arguments(config, argc, argv, &data);
    if (code == EXIT_OK) {
        if (log_parse_level(config_string(config, "log_level"), &level))
            log_set_level(level);
        fault_from_environment();
        signal(SIGPIPE, SIG_IGN);
        code = serve(config, data, argc, argv);
    }
    config_free(config);
    return code;
}

static void print_line(void *arg, const char *line)
{
    if (*(const bool *)arg)
        puts(line);
}

/* Is a server at work in DIR? Its log changes while we read; what we would say is worth nothing. */
static bool is_in_use(const char *dir)
{
    struct env *env = env_os();
    struct env_file *file;
    char path[4096];
    snprintf(path, sizeof path, "%s/LOCK", dir);
    if (env->ops->open(env, path, ENV_READ, &file) != ST_OK)
        return false; /* taking the lock would make the file */
    env->ops->close(env, file);
    return env->ops->lock(env, path) == ST_LOCKED;
}

static enum exit_code command_log(int argc, char **argv)
{
    struct err err;
    char path[4096];
    bool dump = argc == 2 && strcmp(argv[0], "dump") == 0;
    if (!dump && !(argc == 2 && strcmp(argv[0], "check") == 0))
        return usage_error("log takes \"dump DIR\" or \"check DIR\"", "");
    err_clear(&err);
    if (is_in_use(argv[1])) {
        fprintf(stderr, "metadb: log: data directory \"%s\" is in use by another process\n",
                argv[1]);
        return EXIT_DIRECTORY;
    }
    snprintf(path, sizeof path, "%s/log/0", argv[1]);
    status st = raft_log_inspect(env_os(), path, print_line, &dump, &err);
    if (st == ST_NOT_FOUND) {
        fprintf(stderr, "metadb: log: there is no log in \"%s\"\n", argv[1]);
        return EXIT_DIRECTORY;
    }
    if (st != ST_OK) {
        err_default(&err, st);
        print_err("log", &err);
        return exit_status_of(st);
    }
    if (!dump)
        puts("log: sound");
    return EXIT_OK;
}

static enum exit_code command_help(int argc, char **argv)
{
    unsigned count;
    if (argc == 0) {
        fputs(usage_text, stdout);
        return EXIT_OK;
    }
    if (argc != 1 || strcmp(argv[0], "settings") != 0)
        return usage_error("help takes \"settings\" or nothing", "");
    const struct config_setting *s = cl_settings(&count);
    for (unsigned i = 0; i < count; i++)
        printf("  --%-26s %-16s %s\n", s[i].name, s[i].def, s[i].help);
    return EXIT_OK;
}

/* "metadb start --help" is asked by who does not know "metadb help". */
static bool asks_for_help(int argc, char **argv)
{
    return argc == 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs(usage_text, stderr);
        return EXIT_USAGE;
    }
    const char *command = argv[1];
    if (asks_for_help(argc - 2, argv + 2))
        return (int)command_help(0, NULL);
    if (strcmp(command, "start") == 0)
        return (int)command_start(argc - 2, argv + 2);
    if (strcmp(command, "demo") == 0)
        return demo_run(argc - 2, argv + 2);
    if (strcmp(command, "log") == 0)
        return (int)command_log(argc - 2, argv + 2);
    if (strcmp(command, "help") == 0 || strcmp(command, "--help") == 0 ||
        strcmp(command, "-h") == 0)
        return (int)command_help(argc - 2, argv + 2);
    if (strcmp(command, "version") == 0 || strcmp(command, "--version") == 0) {
        puts("metadb " METADB_VERSION);
        return EXIT_OK;
    }
    return (int)usage_error("unknown command ", command);
}
