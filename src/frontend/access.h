/*
 * frontend/access.h — what the server's settings say about access: TLS files and rules.
 *
 * Both can be replaced while the server runs: new connections meet the new ones. What cannot be
 * read is reported and changes nothing.
 *
 * Reading (fe_access_tls, fe_access_find) from any thread; the rest on reactor 0.
 */
#ifndef FRONTEND_ACCESS_H
#define FRONTEND_ACCESS_H

#include "base/config.h"
#include "base/tls.h"
#include "frontend/hba.h"

struct fe_access;

/* ST_INVALID: a file or a rule is no good; ERR names it. */
NODISCARD status fe_access_new(const struct config *c, struct fe_access **out, struct err *err);
void fe_access_free(struct fe_access *a); /* NULL is fine */
/* Would fe_access_new take C now? Any thread; ST_INVALID as there. */
NODISCARD status fe_access_check(const struct config *c, struct err *err);
/* Takes files and rules as C has them now. ST_INVALID: all stays as it was. */
NODISCARD status fe_access_reload(struct fe_access *a, const struct config *c, struct err *err);
/* Once in a while: reads the TLS files again if they have changed. */
void fe_access_poll(struct fe_access *a);

/* What new connections are encrypted with, a reference of the caller's; NULL: nothing. */
struct tls_context *fe_access_tls(struct fe_access *a);
/* Are there rules of the operator's? */
bool fe_access_has_rules(struct fe_access *a);
enum fe_method fe_access_find(struct fe_access *a, const struct fe_hba_request *r);

#endif
