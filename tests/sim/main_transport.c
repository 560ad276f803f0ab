/* sim/main_transport.c — seeds of the transport alone, in this process. */
#include "base/fault.h"
#include "sim/main_internal.h"
#include "sim/transport.h"
#include <inttypes.h>
#include <stdio.h>

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

static bool run_twice(uint64_t seed, uint64_t digest)
{
    struct transport_report again = {0};
    if (transport_run(seed, &again) && again.digest == digest)
        return true;
    fprintf(stderr, "seed %" PRIu64 ": its second run was another history\n", seed);
    return false;
}

int main_transport(const struct sim_options *o)
{
    struct transport_report all = {0};
    uint64_t failed = 0;
    for (uint64_t seed = o->first; seed - o->first < o->count; seed++) {
        all.digest = 0;
        if (o->broken != NULL)
            fault_arm(o->broken, "error", 1);
        bool good = transport_run(seed, &all) && (!o->twice || run_twice(seed, all.digest));
        failed += !good;
        if (o->verbose)
            printf("seed %" PRIu64 " %s %016" PRIx64 "\n", seed, good ? "ok" : "FAILED",
                   all.digest);
    }
    print_report(o->count, &all);
    if (failed > 0)
        printf("FAILED: %" PRIu64 " of %" PRIu64 " seeds\n", failed, o->count);
    return (failed > 0) == (o->broken != NULL) ? 0 : 1;
}
