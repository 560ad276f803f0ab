/*
 * frontend/access.c — see access.h.
 *
 * Files that have changed since they were last read, well or not, are read again: those that do not
 * fit together yet, because the second is still on its way, when it has come.
 *
 * Invariants
 *   A1  tls and rules are whole at any time: they are replaced under the lock, after the new ones
 *       have been read.
 */
#include "frontend/access.h"
#include "base/assert.h"
#include "base/file_stamp.h"
#include "base/log.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PROTOCOL "postgresql"

enum { CERTIFICATE, KEY, CLIENT_CA, FILES };
static const char *const settings[FILES] = {"tls.certificate", "tls.key", "tls.client_ca"};

struct fe_access {
    pthread_mutex_t mu;
    struct tls_context *tls; /* mu; NULL = no TLS */
    struct fe_hba *rules;    /* mu */
    char *files[FILES];      /* reactor 0 */
    struct file_stamp stamps[FILES];
};

/* -- reading ----------------------------------------------------------------------------------- */

/* OUT NULL: no TLS is wanted. */
static NODISCARD status read_tls(char *const files[FILES], struct tls_context **out,
                                 struct err *err)
{
    const struct tls_files f = {files[CERTIFICATE], files[KEY], files[CLIENT_CA]};
    *out = NULL;
    if (f.certificate[0] == '\0' && f.key[0] == '\0' && f.client_ca[0] == '\0')
        return ST_OK;
    if (f.certificate[0] == '\0' || f.key[0] == '\0')
        return err_set(err, ST_INVALID, "tls.certificate and tls.key are needed both");
    return tls_context_new(&f, PROTOCOL, out, err);
}

static void rules_free(struct fe_hba *h)
{
    if (h == NULL)
        return;
    fe_hba_fini(h);
    free(h);
}

static NODISCARD status read_rules(const struct config *c, struct fe_hba **out, struct err *err)
{
    struct fe_hba *h = calloc(1, sizeof *h);
    const char *line, *where = NULL;
    status st = ST_OK;
    ASSERT(h != NULL);
    fe_hba_init(h);
    for (unsigned i = 0; st == ST_OK && (line = config_list(c, "auth.rule", i, &where)) != NULL;
         i++)
        st = fe_hba_add(h, line, where, err);
    if (st == ST_OK && fe_hba_needs_certificates(h) && config_string(c, "tls.client_ca")[0] == '\0')
        st = err_set(err, ST_INVALID, "auth.rule: method cert needs tls.client_ca");
    if (st != ST_OK)
        rules_free(h);
    else
        *out = h;
    return st;
}

static void tell(const struct tls_context *tls, const char *event)
{
    if (tls != NULL)
        LOG_INFO(event, LOG_I64("not_after", tls_context_not_after(tls)));
}

/* Takes TLS and, unless NULL, RULES over. */
static void replace(struct fe_access *a, struct tls_context *tls, struct fe_hba *rules)
{
    struct fe_hba *old_rules = NULL;
    pthread_mutex_lock(&a->mu);
    struct tls_context *old = a->tls;
    a->tls = tls;
    if (rules != NULL) {
        old_rules = a->rules;
        a->rules = rules;
    }
    pthread_mutex_unlock(&a->mu);
    tls_context_unref(old);
    rules_free(old_rules);
}

static void forget(char *files[FILES])
{
    for (unsigned i = 0; i < FILES; i++)
        free(files[i]);
}

status fe_access_reload(struct fe_access *a, const struct config *c, struct err *err)
{
    char *files[FILES];
    struct file_stamp stamps[FILES];
    struct fe_hba *rules = NULL;
    struct tls_context *tls = NULL;
    for (unsigned i = 0; i < FILES; i++) {
        files[i] = strdup(config_string(c, settings[i]));
        ASSERT(files[i] != NULL);
        stamps[i] = file_stamp_of(files[i]);
    }
    status st = read_rules(c, &rules, err);
    if (st == ST_OK)
        st = read_tls(files, &tls, err);
    if (st != ST_OK) {
        rules_free(rules);
        forget(files);
        return st;
    }
    forget(a->files);
    memcpy(a->files, files, sizeof a->files);
    memcpy(a->stamps, stamps, sizeof a->stamps);
    replace(a, tls, rules);
    tell(tls, "tls.loaded");
    return ST_OK;
}

void fe_access_poll(struct fe_access *a)
{
    struct err err;
    struct tls_context *tls;
    bool changed = false;
    for (unsigned i = 0; i < FILES; i++)
        changed |= file_stamp_renew(&a->stamps[i], a->files[i]);
    if (!changed)
        return;
    err_clear(&err);
    if (read_tls(a->files, &tls, &err) != ST_OK) {
        LOG_WARN("tls.not_loaded", LOG_STR("why", err.message),
                 LOG_STR("still", "the certificate before is in use"));
        return;
    }
    replace(a, tls, NULL);
    tell(tls, "tls.reloaded");
}

status fe_access_new(const struct config *c, struct fe_access **out, struct err *err)
{
    struct fe_access *a = calloc(1, sizeof *a);
    ASSERT(a != NULL);
    pthread_mutex_init(&a->mu, NULL);
    status st = fe_access_reload(a, c, err);
    if (st == ST_OK)
        *out = a;
    else
        fe_access_free(a);
    return st;
}

status fe_access_check(const struct config *c, struct err *err)
{
    char *files[FILES];
    struct fe_hba *rules = NULL;
    struct tls_context *tls = NULL;
    for (unsigned i = 0; i < FILES; i++) {
        files[i] = strdup(config_string(c, settings[i]));
        ASSERT(files[i] != NULL);
    }
    status st = read_rules(c, &rules, err);
    if (st == ST_OK)
        st = read_tls(files, &tls, err);
    rules_free(rules);
    tls_context_unref(tls);
    forget(files);
    return st;
}

void fe_access_free(struct fe_access *a)
{
    if (a == NULL)
        return;
    tls_context_unref(a->tls);
    rules_free(a->rules);
    forget(a->files);
    pthread_mutex_destroy(&a->mu);
    free(a);
}

/* -- asking ------------------------------------------------------------------------------------ */

struct tls_context *fe_access_tls(struct fe_access *a)
{
    pthread_mutex_lock(&a->mu);
    struct tls_context *tls = a->tls != NULL ? tls_context_ref(a->tls) : NULL;
    pthread_mutex_unlock(&a->mu);
    return tls;
}

bool fe_access_has_rules(struct fe_access *a)
{
    pthread_mutex_lock(&a->mu);
    bool has = a->rules->count > 0;
    pthread_mutex_unlock(&a->mu);
    return has;
}

enum fe_method fe_access_find(struct fe_access *a, const struct fe_hba_request *r)
{
    pthread_mutex_lock(&a->mu);
    enum fe_method m = fe_hba_find(a->rules, r);
    pthread_mutex_unlock(&a->mu);
    return m;
}
