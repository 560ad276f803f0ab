/*
 * bench/wire_etcd.h — what preparation needs beyond struct wire.
 */
#ifndef BENCH_WIRE_ETCD_H
#define BENCH_WIRE_ETCD_H

#include "wire.h"

/* Puts that go in one transaction: collected in TXN, then written as a request. */
void wire_etcd_put_add(struct out *txn, const char *key, const char *value);
void wire_etcd_put_send(struct out *o, const struct out *txn);
/* The count in a RangeResponse, from a whole answer. */
uint64_t wire_etcd_count(const uint8_t *data, size_t size);

#endif
