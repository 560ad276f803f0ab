/*
 * sim/main.c — runs seeds of a simulation, whole nodes or the transport alone.
 *
 *   sim [--seed N] [--count M] [--seconds S] [--broken MISTAKE] [--twice] [--verbose] [--log]
 *       [--sums FILE] [--jobs J] [--until-seconds T]
 *   sim --transport [--seed N] [--count M] [--broken FAULT] [--twice] [--verbose] [--log]
 *
 * Each seed over whole nodes runs in a process of its own, J at a time. Prints what happened by
 * kind, and for a failure the command that repeats it. --twice runs each seed again and compares
 * the histories. --broken makes a mistake on purpose: then it is a failure if no seed fails.
 * --sums adds what happened and the marks passed to what FILE has, and prints that. --until-seconds
 * starts no seed after T real seconds.
 */
#include "base/fault.h"
#include "base/log.h"
#include "sim/main_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void)
{
    fprintf(stderr,
            "usage: sim [--transport] [--seed N] [--count M] [--seconds S] [--broken MISTAKE]\n"
            "           [--twice] [--verbose] [--log] [--sums FILE] [--jobs J] "
            "[--until-seconds T]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct sim_options o = {.first = 1, .count = 1, .seconds = 60, .jobs = 1};
    bool transport = false;
    bool logged = false;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(name, "--transport") == 0)
            transport = true;
        else if (strcmp(name, "--twice") == 0)
            o.twice = true;
        else if (strcmp(name, "--verbose") == 0)
            o.verbose = true;
        else if (strcmp(name, "--log") == 0)
            logged = true;
        else if (value == NULL)
            return usage();
        else if (strcmp(name, "--seed") == 0)
            o.first = strtoull(argv[++i], NULL, 10);
        else if (strcmp(name, "--count") == 0)
            o.count = strtoull(argv[++i], NULL, 10);
        else if (strcmp(name, "--seconds") == 0)
            o.seconds = strtoull(argv[++i], NULL, 10);
        else if (strcmp(name, "--jobs") == 0)
            o.jobs = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(name, "--until-seconds") == 0)
            o.until_s = strtoull(argv[++i], NULL, 10);
        else if (strcmp(name, "--broken") == 0)
            o.broken = argv[++i];
        else if (strcmp(name, "--sums") == 0)
            o.sums = argv[++i];
        else
            return usage();
    }
    /* Nodes that are killed and starved complain by the thousand. */
    log_set_level(logged      ? LOG_LEVEL_DEBUG
                  : transport ? LOG_LEVEL_ERROR
                              : (enum log_level)(LOG_LEVEL_ERROR + 1));
    return transport ? main_transport(&o) : main_nodes(&o);
}
