/*
 * sim/main.c — runs seeds of the simulation.
 *
 *   sim [--seed N] [--count M] [--twice] [--broken FAULT] [--verbose] [--log]
 *
 * Prints what happened by kind, and for a failure the seed that repeats it. --twice runs each seed
 * again and compares the histories. --broken makes a mistake on purpose (net.broken_sum,
 * net.broken_unsent): then it is a failure if no seed fails.
 */
#include "base/fault.h"
#include "base/log.h"
#include "sim/transport.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_report(uint64_t seeds, const struct transport_report *r)
{
    printf("seeds %" PRIu64 ", virtual seconds %" PRIu64 "\nfaults:", seeds,
           r->virtual_us / 1000000u);
    for (unsigned i = 0; i < FAULT_KINDS; i++)
        printf(" %s %" PRIu64, fault_names[i], r->faults[i]);
    printf("\nnetwork: connects %" PRIu64 " half-open %" PRIu64 " damaged packets %" PRIu64
           " time-outs %" PRIu64 "\n",
           r->connects, r->half_open, r->damaged, r->timeouts);
    printf("messages: sent %" PRIu64 " delivered %" PRIu64 " dropped %" PRIu64 "\n", r->sent,
           r->delivered, r->dropped);
    printf("requests: %" PRIu64 " answered %" PRIu64 " unknown %" PRIu64 " unreachable %" PRIu64
           " busy %" PRIu64 "\n",
           r->requests, r->answered, r->unknown, r->unreachable, r->busy);
    printf("healing: mean %" PRIu64 " ms, worst %" PRIu64 " ms\n",
           seeds > 0 ? r->heal_us / seeds / 1000u : 0, r->heal_worst_us / 1000u);
}

static int usage(void)
{
    fprintf(stderr, "usage: sim [--seed N] [--count M] [--twice] [--broken FAULT] [--verbose] "
                    "[--log]\n");
    return 2;
}

static bool run_twice(uint64_t seed, uint64_t digest)
{
    struct transport_report again = {0};
    if (transport_run(seed, &again) && again.digest == digest)
        return true;
    fprintf(stderr, "seed %" PRIu64 ": its second run was another history\n", seed);
    return false;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, count = 1, failed = 0;
    bool twice = false, verbose = false;
    const char *broken = NULL;
    log_set_level(LOG_LEVEL_ERROR);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--twice") == 0)
            twice = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--log") == 0)
            log_set_level(LOG_LEVEL_DEBUG);
        else if (value == NULL)
            return usage();
        else if (strcmp(argv[i], "--seed") == 0)
            first = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--count") == 0)
            count = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--broken") == 0)
            broken = argv[++i];
        else
            return usage();
    }
    struct transport_report all = {0};
    for (uint64_t seed = first; seed - first < count; seed++) {
        all.digest = 0;
        if (broken != NULL)
            fault_arm(broken, "error", 1);
        bool good = transport_run(seed, &all) && (!twice || run_twice(seed, all.digest));
        failed += !good;
        if (verbose)
            printf("seed %" PRIu64 " %s %016" PRIx64 "\n", seed, good ? "ok" : "FAILED",
                   all.digest);
    }
    print_report(count, &all);
    if (failed > 0)
        printf("FAILED: %" PRIu64 " of %" PRIu64 " seeds\n", failed, count);
    return (failed > 0) == (broken != NULL) ? 0 : 1;
}
