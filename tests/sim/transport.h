/* sim/transport.h — transports of some nodes under faults: what arrives, what is answered, whether
 * they find together again. */
#ifndef SIM_TRANSPORT_H
#define SIM_TRANSPORT_H

#include "sim/world.h"

struct transport_report {
    uint64_t faults[FAULT_KINDS];
    uint64_t sent, delivered, dropped;
    uint64_t requests, answered, unknown, unreachable, busy;
    uint64_t connects, half_open, damaged, timeouts;
    uint64_t virtual_us, heal_us, heal_worst_us;
    uint64_t digest; /* of the whole history */
};

/* Adds to OUT. False: something did not hold; it was printed. */
bool transport_run(uint64_t seed, struct transport_report *out);

#endif
