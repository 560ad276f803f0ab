/*
 * frontend/hba.h — rules that say who is let in from where, and how they prove who they are.
 *
 * One rule is a line of setting auth.rule, in the fields of PostgreSQL's pg_hba.conf:
 *
 *   host|hostssl|hostnossl|local  DATABASE  USER  ADDRESS  trust|scram-sha-256|cert|reject
 *
 * DATABASE is all, sameuser or names with commas between; USER is all or such names; ADDRESS is
 * all, address/bits, or address and mask as two fields. A name in double quotes is a name only. The
 * first rule that fits decides. `local` fits nothing: there are no sockets of that kind.
 *
 * Pure functions; rules are immutable after fe_hba_add.
 */
#ifndef FRONTEND_HBA_H
#define FRONTEND_HBA_H

#include "base/arena.h"
#include "base/err.h"
#include <sys/socket.h>

enum fe_method {
    FE_METHOD_NONE,
    FE_METHOD_TRUST,
    FE_METHOD_SCRAM,
    FE_METHOD_CERT,
    FE_METHOD_REJECT
};

struct fe_hba_rule;
struct fe_hba {
    struct arena arena;
    struct fe_hba_rule *first, **last;
    unsigned count;
};

void fe_hba_init(struct fe_hba *h);
void fe_hba_fini(struct fe_hba *h);
/* Appends the rule of LINE. ST_INVALID: the message begins with WHERE, "file:line". */
NODISCARD status fe_hba_add(struct fe_hba *h, const char *line, const char *where, struct err *err);
/* Does a rule demand a client's certificate? */
bool fe_hba_needs_certificates(const struct fe_hba *h);

struct fe_hba_request {
    const char *database, *user;
    const struct sockaddr_storage *peer;
    bool tls;
};
/* FE_METHOD_NONE: no rule fits. */
enum fe_method fe_hba_find(const struct fe_hba *h, const struct fe_hba_request *r);

/* 127.0.0.0/8 and ::1, also as an IPv4 address inside IPv6. */
bool fe_address_is_loopback(const struct sockaddr_storage *a);
/* As text, for errors and the log. */
void fe_address_text(const struct sockaddr_storage *a, char *out, size_t size);

#endif
