/* sim/main_internal.h — the two simulations, for main.c. */
#ifndef SIM_MAIN_INTERNAL_H
#define SIM_MAIN_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

struct sim_options {
    uint64_t first, count, seconds, until_s;
    unsigned jobs;
    bool twice, verbose;
    const char *broken, *sums;
};

/* The exit status. */
int main_transport(const struct sim_options *o);
int main_nodes(const struct sim_options *o);

#endif
