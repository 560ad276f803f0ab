/*
 * base/saslprep.c — the door to libidn.
 */
#include "base/saslprep.h"
#include "base/assert.h"
#include "base/crypt.h"
#include <stdlib.h>
#include <stringprep.h>

/* Of a character of three bytes, U+FDFA, normalisation makes 18 characters of 33 bytes. */
#define GROWTH 11u

void saslprep(const char *text, struct obuf *out)
{
    size_t n = strlen(text), room = GROWTH * n + 1;
    char *copy = malloc(room);
    ASSERT(copy != NULL);
    memcpy(copy, text, n + 1);
    bool good =
        stringprep(copy, room, STRINGPREP_NO_UNASSIGNED, stringprep_saslprep) == STRINGPREP_OK &&
        copy[0] != '\0';
    obuf_put(out, good ? copy : text, strlen(good ? copy : text));
    crypt_forget(copy, room);
    free(copy);
}
