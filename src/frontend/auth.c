/*
 * frontend/auth.c — how a client proves who it is.
 *
 * The method is that of the first rule that fits (hba.h). Where the operator has given none:
 *
 *   no role has a password                    this host is trusted, others are refused
 *   the role has one                          SCRAM
 *   it has none, nor has any superuser        this host is trusted: somebody has to set the first
 *   otherwise, or there is no such role       SCRAM, which fails
 *
 * SCRAM with a role that does not exist, or has no password, goes its whole way with a verifier
 * that nothing fits: neither the messages nor their time tell the difference. The expensive hashing
 * is the client's; here a login costs a few hashes.
 */
#include "base/assert.h"
#include "base/log.h"
#include "frontend/login.h"
#include "frontend/pgwire.h"
#include "frontend/scram.h"
#include "frontend/server_internal.h"
#include "frontend/session.h"
#include <stdlib.h>

#define AUTH_SASL 10u
#define AUTH_SASL_CONTINUE 11u
#define AUTH_SASL_FINAL 12u
#define ADDRESS_TEXT 64u
#define NONCE_BYTES 18u

_Static_assert(CRYPT_BASE64_SIZE(NONCE_BYTES) < FE_SCRAM_NONCE_MAX, "a nonce has room");

static bool peer_of(const struct fe_conn *c, struct sockaddr_storage *out)
{
    socklen_t n = sizeof *out;
    memset(out, 0, sizeof *out);
    return getpeername(c->fd, (struct sockaddr *)out, &n) == 0;
}

static const char *user_of(struct fe_login *l)
{
    return arena_strdup(&l->arena, l->user);
}

/* -- the method -------------------------------------------------------------------------------- */

static NODISCARD status refuse_rule(struct fe_login *l, const struct sockaddr_storage *peer,
                                    bool rejected)
{
    char address[ADDRESS_TEXT];
    fe_address_text(peer, address, sizeof address);
    return err_set_state(&l->err, ST_DENIED, "28000",
                         "%s for host \"%s\", user \"%s\", database \"%s\", %s",
                         rejected ? "pg_hba.conf rejects connection" : "no pg_hba.conf entry",
                         address, user_of(l), arena_strdup(&l->arena, l->database),
                         l->conn->tls != NULL ? "SSL encryption" : "no encryption");
}

static enum fe_method default_method(const struct fe_login *l, bool loopback)
{
    struct cl_node *n = l->conn->worker->node;
    if (!cl_roles_any_password(n))
        return loopback ? FE_METHOD_TRUST : FE_METHOD_NONE;
    bool has_password = l->known && l->role.verifier[0] != '\0';
    if (!has_password && l->known && loopback && !cl_roles_superuser_password(n))
        return FE_METHOD_TRUST;
    return FE_METHOD_SCRAM;
}

static NODISCARD status find_method(struct fe_login *l, enum fe_method *out)
{
    struct fe_access *access = fe_server_access(l->conn->worker->server);
    struct sockaddr_storage peer;
    if (!peer_of(l->conn, &peer))
        return err_set(&l->err, ST_PROTOCOL, "the client is gone");
    if (!fe_access_has_rules(access)) {
        *out = default_method(l, fe_address_is_loopback(&peer));
        if (*out != FE_METHOD_NONE)
            return ST_OK;
        return err_set_state(
            &l->err, ST_DENIED, "28000",
            "connections from other hosts are refused: no role has a password yet");
    }
    struct fe_hba_request request = {.database = arena_strdup(&l->arena, l->database),
                                     .user = user_of(l),
                                     .peer = &peer,
                                     .tls = l->conn->tls != NULL};
    *out = fe_access_find(access, &request);
    if (*out == FE_METHOD_NONE || *out == FE_METHOD_REJECT)
        return refuse_rule(l, &peer, *out == FE_METHOD_REJECT);
    return ST_OK;
}

static NODISCARD status check_certificate(struct fe_login *l)
{
    const char *name = l->conn->tls != NULL ? tls_peer_name(l->conn->tls) : NULL;
    if (name == NULL)
        return err_set_state(&l->err, ST_DENIED, "28000",
                             "connection requires a valid client certificate");
    if (bytes_eq(bytes_str(name), l->user))
        return ST_OK;
    return err_set_state(&l->err, ST_DENIED, "28000",
                         "certificate authentication failed for user \"%s\"", user_of(l));
}

/* -- SCRAM ------------------------------------------------------------------------------------- */

static void put_request(struct obuf *o, uint32_t code, bytes data)
{
    size_t at = fe_message_begin(o, 'R');
    obuf_be32(o, code);
    obuf_put(o, data.data, data.size);
    fe_message_end(o, at);
}

static bool offers_plus(const struct fe_login *l)
{
    return l->scram->end_point_size > 0;
}

/* An expired password is none, and looks like a wrong one. */
static bool has_expired(const struct fe_login *l)
{
    return l->role.expires && l->role.expires_at < fe_clock(l->conn->worker);
}

static NODISCARD status scram_start(struct fe_login *l)
{
    struct fe_conn *c = l->conn;
    struct cl_node *node = c->worker->node;
    struct fe_scram *x = calloc(1, sizeof *x);
    ASSERT(x != NULL);
    l->scram = x;
    x->doomed = !l->known || !l->role.login || has_expired(l) ||
                !fe_scram_parse(bytes_str(l->role.verifier), &x->verifier);
    if (x->doomed)
        fe_scram_mock(l->user, bytes_make(cl_roles_secret(node), CL_ROLES_SECRET_BYTES),
                      (unsigned)config_int(cl_node_config(node), "auth.scram_iterations"),
                      &x->verifier);
    uint8_t nonce[NONCE_BYTES];
    crypt_random(nonce, sizeof nonce);
    crypt_base64(bytes_make(nonce, sizeof nonce), x->own_nonce);
    bytes end_point = c->tls != NULL ? tls_end_point(c->tls) : BYTES_EMPTY;
    ASSERT(end_point.size <= sizeof x->end_point);
    if (end_point.size > 0)
        memcpy(x->end_point, end_point.data, end_point.size);
    x->end_point_size = (unsigned)end_point.size;
    static const char both[] = FE_SCRAM_PLUS_NAME "\0" FE_SCRAM_NAME "\0";
    static const char plain[] = FE_SCRAM_NAME "\0";
    put_request(&c->out, AUTH_SASL,
                offers_plus(l) ? bytes_make(both, sizeof both) : bytes_make(plain, sizeof plain));
    return ST_PENDING;
}

static NODISCARD status scram_step(struct fe_login *l, bytes in)
{
    struct obuf out;
    obuf_init(&out);
    status st = fe_scram_step(l->scram, in, &out, &l->err);
    bool over = l->scram->state == FE_SCRAM_OVER;
    if (st == ST_OK)
        put_request(&l->conn->out, over ? AUTH_SASL_FINAL : AUTH_SASL_CONTINUE,
                    bytes_make(out.data, out.size));
    obuf_fini(&out);
    if (st == ST_DENIED)
        return err_set_state(&l->err, ST_DENIED, "28P01",
                             "password authentication failed for user \"%s\"", user_of(l));
    if (st != ST_OK)
        return st;
    return over ? ST_OK : ST_PENDING;
}

/* SASLInitialResponse: the mechanism, and its first message or none yet. */
static NODISCARD status choose(struct fe_login *l, bytes body)
{
    const uint8_t *zero = body.size > 0 ? memchr(body.data, 0, body.size) : NULL;
    uint32_t length;
    if (zero == NULL || body.size - (size_t)(zero - body.data) - 1 < sizeof length)
        return err_set(&l->err, ST_PROTOCOL, "insufficient data left in message");
    bytes name = bytes_make(body.data, (size_t)(zero - body.data));
    size_t left = body.size - name.size - 1 - sizeof length;
    memcpy(&length, zero + 1, sizeof length);
    length = __builtin_bswap32(length);
    l->scram->plus = offers_plus(l) && bytes_eq(name, BYTES_LIT(FE_SCRAM_PLUS_NAME));
    if (!l->scram->plus && !bytes_eq(name, BYTES_LIT(FE_SCRAM_NAME)))
        return err_set(&l->err, ST_PROTOCOL,
                       "client selected an invalid SASL authentication mechanism");
    bool empty = length == UINT32_MAX;
    if (empty ? left > 0 : length != left)
        return err_set(&l->err, ST_PROTOCOL, "invalid message format");
    l->chosen = true;
    if (!empty)
        return scram_step(l, bytes_make(zero + 1 + sizeof length, left));
    put_request(&l->conn->out, AUTH_SASL_CONTINUE, BYTES_EMPTY);
    return ST_PENDING;
}

/* -- the proof --------------------------------------------------------------------------------- */

status fe_auth_start(struct fe_login *l)
{
    enum fe_method method = FE_METHOD_NONE;
    if (!cl_roles_known(l->conn->worker->node)) {
        err_set(&l->err, ST_NOT_LEADER, "this node does not know the roles yet");
        err_hint(&l->err, "Try again: it has not heard from a leader since its start.");
        return ST_NOT_LEADER;
    }
    l->known = cl_role_find(l->conn->worker->node, l->user, &l->role) == ST_OK;
    ST_TRY(find_method(l, &method));
    switch (method) {
    case FE_METHOD_TRUST: return ST_OK;
    case FE_METHOD_CERT: return check_certificate(l);
    case FE_METHOD_SCRAM: return scram_start(l);
    case FE_METHOD_NONE:
    case FE_METHOD_REJECT: break;
    }
    return err_set(&l->err, ST_INTERNAL, "there is no method");
}

status fe_auth_message(struct fe_login *l, bytes body)
{
    return l->chosen ? scram_step(l, body) : choose(l, body);
}

void fe_auth_free(struct fe_login *l)
{
    if (l->scram == NULL)
        return;
    crypt_forget(l->scram, sizeof *l->scram);
    free(l->scram);
    crypt_forget(&l->role, sizeof l->role);
}

void fe_login_log(const struct fe_login *l)
{
    struct sockaddr_storage peer;
    char address[ADDRESS_TEXT] = "";
    if (peer_of(l->conn, &peer))
        fe_address_text(&peer, address, sizeof address);
    LOG_INFO("auth.refused", LOG_BYTES("user", l->user), LOG_BYTES("database", l->database),
             LOG_STR("address", address), LOG_STR("sqlstate", l->err.sqlstate),
             LOG_STR("why", l->err.message));
}
