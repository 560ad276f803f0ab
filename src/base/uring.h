/*
 * base/uring.h — the only door to io_uring: durable writes that neither block a loop nor need a
 * thread.
 *
 * Everything belongs to the loop's thread, or to any one thread while the loop does not run. A
 * completion is delivered by the loop, never from inside uring_write: when the ring's descriptor is
 * readable, and in every turn before the hooks.
 */
#ifndef BASE_URING_H
#define BASE_URING_H

#include "base/loop.h"

#include <stddef.h>

struct uring;

struct uring_op { /* embed in the request; belongs to the ring until `done` is called */
    /* RESULT: bytes written, or a negative errno. May start another write. */
    void (*done)(struct uring_op *op, int result);
};

/* At most DEPTH writes at a time. NULL where the kernel or its policy does not permit it. */
struct uring *uring_new(struct loop *l, unsigned depth);
/* Nothing may be under way. NULL is fine. */
void uring_free(struct uring *u);

/* Writes SIZE bytes to FD at AT and makes them durable (as pwritev2 with RWF_DSYNC). SRC stays
 * untouched and FD open until `done`. */
void uring_write(struct uring *u, struct uring_op *op, int fd, const void *src, size_t size,
                 uint64_t at);
/* Blocks until at least one write has completed and delivers what has. Something must be under
 * way. For closing; the loop does not run. */
void uring_wait(struct uring *u);

#endif
