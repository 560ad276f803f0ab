/* base/checksum.h — XXH3, seeded so that a valid record in the wrong place is not valid. */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H

#include "base/bytes.h"

uint64_t checksum64(bytes data, uint64_t seed);
/* Hash of several pieces as if they were one. */
struct checksum_state;
struct checksum_state *checksum_new(uint64_t seed);
void checksum_update(struct checksum_state *s, bytes data);
uint64_t checksum_digest(const struct checksum_state *s);
void checksum_free(struct checksum_state *s);

#endif
