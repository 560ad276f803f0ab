/* cluster/peer_tls.c — see peer_tls.h. */
#include "cluster/peer_tls.h"
#include "base/assert.h"
#include "base/file_stamp.h"
#include "base/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL "metadb-peer"

enum { CERTIFICATE, KEY, AUTHORITIES, FILES };
static const char *const settings[FILES] = {"cluster.tls_certificate", "cluster.tls_key",
                                            "cluster.tls_ca"};

struct cl_peer_tls {
    uint64_t node;
    const char *files[FILES]; /* the configuration's */
    struct file_stamp stamps[FILES];
    struct tls_context *context;
};

status cl_peer_tls_check(const struct config *c, struct err *err)
{
    unsigned given = 0;
    for (unsigned i = 0; i < FILES; i++)
        given += config_string(c, settings[i])[0] != '\0';
    if (given == 0 || given == FILES)
        return ST_OK;
    return err_set(err, ST_INVALID, "%s, %s and %s are needed all three", settings[CERTIFICATE],
                   settings[KEY], settings[AUTHORITIES]);
}

bool cl_peer_tls_is(const char *name, uint64_t node, char wanted[CL_PEER_NAME_BYTES])
{
    snprintf(wanted, CL_PEER_NAME_BYTES, "node-%" PRIu64, node);
    return name != NULL && strcmp(name, wanted) == 0;
}

static NODISCARD status read_files(const struct cl_peer_tls *t, struct tls_context **out,
                                   struct err *err)
{
    const struct tls_files f = {t->files[CERTIFICATE], t->files[KEY], t->files[AUTHORITIES]};
    struct tls_context *c;
    char wanted[CL_PEER_NAME_BYTES];
    ST_TRY(tls_context_new_mutual(&f, PROTOCOL, &c, err));
    const char *name = tls_context_name(c);
    if (!cl_peer_tls_is(name, t->node, wanted)) {
        err_set(err, ST_INVALID, "the certificate in \"%s\" is of \"%s\", not of this node, \"%s\"",
                f.certificate, name != NULL ? name : "nobody", wanted);
        tls_context_unref(c);
        return ST_INVALID;
    }
    *out = c;
    return ST_OK;
}

status cl_peer_tls_new(const struct config *c, uint64_t node, struct cl_peer_tls **out,
                       struct err *err)
{
    *out = NULL;
    ST_TRY(cl_peer_tls_check(c, err));
    if (config_string(c, settings[CERTIFICATE])[0] == '\0')
        return ST_OK;
    struct cl_peer_tls *t = calloc(1, sizeof *t);
    ASSERT(t != NULL);
    t->node = node;
    for (unsigned i = 0; i < FILES; i++) {
        t->files[i] = config_string(c, settings[i]);
        t->stamps[i] = file_stamp_of(t->files[i]);
    }
    status st = read_files(t, &t->context, err);
    if (st != ST_OK) {
        cl_peer_tls_free(t);
        return st;
    }
    LOG_INFO("net.tls_loaded", LOG_I64("not_after", tls_context_not_after(t->context)));
    *out = t;
    return ST_OK;
}

void cl_peer_tls_free(struct cl_peer_tls *t)
{
    if (t == NULL)
        return;
    tls_context_unref(t->context);
    free(t);
}

void cl_peer_tls_poll(struct cl_peer_tls *t)
{
    struct tls_context *fresh;
    struct err err;
    bool changed = false;
    for (unsigned i = 0; i < FILES; i++)
        changed |= file_stamp_renew(&t->stamps[i], t->files[i]);
    if (!changed)
        return;
    err_clear(&err);
    if (read_files(t, &fresh, &err) != ST_OK) {
        LOG_WARN("net.tls_not_loaded", LOG_STR("why", err.message),
                 LOG_STR("still", "the certificate before is in use"));
        return;
    }
    tls_context_unref(t->context);
    t->context = fresh;
    LOG_INFO("net.tls_reloaded", LOG_I64("not_after", tls_context_not_after(fresh)));
}

struct tls_context *cl_peer_tls_context(const struct cl_peer_tls *t)
{
    return t->context;
}
