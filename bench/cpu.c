/*
 * bench/cpu.c — /proc/PID/stat tells every process' parent; descendants are found by passes over
 * that list until one adds nothing. Times are those of /proc/PID/task/TID/schedstat, in
 * nanoseconds: the ones in stat are cut to ticks of 10 ms, and a thousand sessions that each use
 * less would count as nothing.
 */
#include "cpu.h"
#include "out.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct process {
    pid_t pid, parent;
    bool counted;
};

static bool read_process(const char *name, struct process *p)
{
    char path[300], text[1024];
    snprintf(path, sizeof path, "/proc/%s/stat", name);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[size] = 0;
    /* The command's name may hold blanks and parentheses; the fields begin after the last one. */
    const char *fields = strrchr(text, ')');
    int parent;
    if (!fields || sscanf(fields + 2, "%*c %d", &parent) != 1)
        return false;
    *p = (struct process){.pid = (pid_t)strtol(name, NULL, 10), .parent = parent};
    return true;
}

/* Nanoseconds of all threads of PID. */
static uint64_t process_time(pid_t pid)
{
    char path[300];
    uint64_t total = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        unsigned long long ns;
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)pid, e->d_name);
        FILE *f = fopen(path, "r");
        if (!f)
            continue;
        if (fscanf(f, "%llu", &ns) == 1)
            total += ns;
        fclose(f);
    }
    if (d)
        closedir(d);
    return total;
}

static struct process *read_all(size_t *count)
{
    size_t capacity = 256;
    struct process *all = must(malloc(capacity * sizeof *all));
    DIR *d = opendir("/proc");
    if (!d)
        die("no /proc");
    *count = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        if (*count == capacity)
            all = must(realloc(all, (capacity *= 2) * sizeof *all));
        *count += read_process(e->d_name, &all[*count]);
    }
    closedir(d);
    return all;
}

static bool parent_counted(const struct process *all, size_t count, pid_t parent)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].pid == parent)
            return all[i].counted;
    return false;
}

double cpu_of_process(pid_t pid)
{
    if (pid == 0)
        return 0;
    size_t count;
    uint64_t ns = 0;
    struct process *all = read_all(&count);
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < count; i++) {
            struct process *p = &all[i];
            if (p->counted || (p->pid != pid && !parent_counted(all, count, p->parent)))
                continue;
            p->counted = more = true;
            ns += process_time(p->pid);
        }
    }
    free(all);
    return (double)ns / 1e9;
}

double cpu_of_self(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

double cpu_of_machine(void)
{
    /* user nice system idle iowait irq softirq */
    unsigned long long v[7] = {0};
    FILE *f = fopen("/proc/stat", "r");
    if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4],
                     &v[5], &v[6]) != 7)
        die("no /proc/stat");
    fclose(f);
    return (double)(v[0] + v[1] + v[2] + v[5] + v[6]) / (double)sysconf(_SC_CLK_TCK);
}

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
