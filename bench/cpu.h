/*
 * bench/cpu.h — processor time of a server and of this program.
 */
#ifndef BENCH_CPU_H
#define BENCH_CPU_H

#include <stdint.h>
#include <sys/types.h>

/* Seconds used by process PID and its descendants, those that are alive; 0 for PID 0. Reads all of
 * /proc: milliseconds, so not while latencies are taken. */
double cpu_of_process(pid_t pid);
double cpu_of_self(void);
/* Of all processes since the machine's start. */
double cpu_of_machine(void);
/* Monotonic nanoseconds. */
uint64_t now_ns(void);

#endif
