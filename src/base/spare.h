/*
 * base/spare.h — a descriptor kept back for listeners when the process has no other left.
 *
 * Without it a client that waits could be neither accepted nor refused: the listener would stay
 * readable, and its loop would spin. Belongs to the loop's thread, as the listeners that share it.
 */
#ifndef BASE_SPARE_H
#define BASE_SPARE_H

#include "base/loop.h"
#include <stdint.h>

struct spare;

enum spare_outcome {
    SPARE_DROPPED, /* one client was let in and dropped: accept again */
    SPARE_NOBODY,  /* nobody waits: at the limit accept says EMFILE all the same */
    SPARE_GONE,    /* somebody took the spare one, too: watch no listener until AGAIN is called */
};

/* NAME: of who listens, for the log, borrowed. AGAIN is called from the loop, some time after
 * SPARE_GONE. Never NULL. */
struct spare *spare_new(struct loop *l, const char *name, void (*again)(void *arg), void *arg);
void spare_free(struct spare *s); /* NULL is fine; AGAIN is not called any more */
/* accept on the socket LISTENER said EMFILE or ENFILE. Logs once a second at most. */
enum spare_outcome spare_use(struct spare *s, int listener);

#endif
