/*
 * base/saslprep.h — passwords in the form in which they are hashed (RFC 4013).
 *
 * Any thread.
 */
#ifndef BASE_SASLPREP_H
#define BASE_SASLPREP_H

#include "base/buf.h"

/* Appends TEXT, prepared, to OUT. What the RFC forbids, or is no UTF-8, stays as it is: that is
 * what PostgreSQL's clients and servers do. */
void saslprep(const char *text, struct obuf *out);

#endif
