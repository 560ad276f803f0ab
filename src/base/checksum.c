/*
 * base/checksum.c — the only door to xxHash.
 *
 * Compiled in (XXH_INLINE_ALL): libpg_query exports an xxHash of its own under the same names, and
 * a checksum on disk may not depend on which library the linker met first.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checksum.h"
#include <stdio.h>
#include <stdlib.h>

struct checksum_state {
    XXH3_state_t xxh;
};

uint64_t checksum64(bytes data, uint64_t seed)
{
    return XXH3_64bits_withSeed(data.data, data.size, seed);
}

struct checksum_state *checksum_new(uint64_t seed)
{
    struct checksum_state *s = aligned_alloc(64, (sizeof *s + 63) / 64 * 64);
    if (s == NULL) {
        fprintf(stderr, "metadb: out of memory (checksum)\n");
        abort();
    }
    XXH3_INITSTATE(&s->xxh);
    XXH3_64bits_reset_withSeed(&s->xxh, seed);
    return s;
}

void checksum_update(struct checksum_state *s, bytes data)
{
    if (data.size > 0)
        XXH3_64bits_update(&s->xxh, data.data, data.size);
}

uint64_t checksum_digest(const struct checksum_state *s)
{
    return XXH3_64bits_digest(&s->xxh);
}

void checksum_free(struct checksum_state *s)
{
    free(s);
}
