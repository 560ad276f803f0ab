/*
 * frontend/startup.c — the first packets of a connection.
 *
 *   SSLRequest, GSSENCRequest   answered once each: S, and TLS begins, if there is a certificate;
 *                               else N, and the client goes on with the same connection. Bytes
 *                               behind such a request would be plain text that somebody slipped
 *                               in ahead of the encryption: refused.
 *   a TLS handshake             of protocol "postgresql" by ALPN: conn_tls.c.
 *   CancelRequest               passed on, then closed without a word.
 *   StartupMessage 3.x          checked, then AuthenticationOk, parameters, key, ReadyForQuery. A
 *                               minor version above 0 and options _pq_.* are negotiated down.
 *
 * Between the checks and AuthenticationOk the client proves who it is (auth.c). What is kept of the
 * StartupMessage until then, and the state of the proof, is struct fe_login.
 */
#include "frontend/startup.h"
#include "base/assert.h"
#include "frontend/cancel.h"
#include "frontend/login.h"
#include "frontend/server_internal.h"
#include "frontend/session.h"
#include <stdio.h>
#include <stdlib.h>

/* Each pair takes four bytes at least. */
#define PAIRS_MAX (LIMIT_STARTUP_BYTES / 4u)

static void refuse(struct fe_conn *c, const struct err *err)
{
    fe_put_error(&c->out, 'E', "FATAL", err, NULL);
    fe_conn_drain(c);
}

static bool name_is(bytes name, const char *text)
{
    return bytes_eq(name, bytes_str(text));
}

static status fatal(struct fe_login *u, const char *sqlstate, const char *text)
{
    return err_set_state(&u->err, ST_PROTOCOL, sqlstate, "%s", text);
}

/* First pass: what decides whether there is a session at all. */
static NODISCARD status read_pairs(struct fe_login *u)
{
    bytes in = u->pairs, name, value;
    status st;
    u->unknown = arena_alloc(&u->arena, PAIRS_MAX * sizeof(char *));
    while ((st = fe_startup_pair(&in, &name, &value)) == ST_OK) {
        if (name_is(name, "user"))
            u->user = value;
        else if (name_is(name, "database"))
            u->database = value;
        else if (name_is(name, "replication"))
            u->replication = !name_is(value, "false") && !name_is(value, "off") &&
                             !name_is(value, "0") && !name_is(value, "no");
        else if (bytes_has_prefix(name, BYTES_LIT("_pq_.")) && u->unknown_count < PAIRS_MAX)
            u->unknown[u->unknown_count++] = arena_strdup(&u->arena, name);
    }
    if (st != ST_END)
        return fatal(u, "08P01", "invalid startup packet layout: expected terminator as last byte");
    if (u->database.size == 0)
        u->database = u->user;
    return ST_OK;
}

static NODISCARD status check_start(struct fe_login *u)
{
    if (u->user.size == 0)
        return fatal(u, "28000", "no PostgreSQL user name specified in startup packet");
    if (u->conn->refuse)
        return err_set(&u->err, ST_TOO_MANY, "sorry, too many clients already");
    if (u->conn->worker->stopping)
        return err_set_state(&u->err, ST_SHUTDOWN, "57P03", "the database system is shutting down");
    if (u->replication)
        return err_set(&u->err, ST_UNSUPPORTED, "replication connections are not supported");
    return ST_OK;
}

/* The client is who it says. May it log in now? */
static NODISCARD status check_role(struct fe_login *u)
{
    struct fe_worker *w = u->conn->worker;
    if (!u->known)
        return err_set_state(&u->err, ST_DENIED, "28000", "role \"%s\" does not exist",
                             arena_strdup(&u->arena, u->user));
    if (!u->role.login)
        return err_set_state(&u->err, ST_DENIED, "28000", "role \"%s\" is not permitted to log in",
                             u->role.name);
    if (!u->role.superuser && fe_server_is_reserved(w->server))
        return err_set(&u->err, ST_TOO_MANY,
                       "remaining connection slots are reserved for non-replication superuser "
                       "connections");
    if (u->role.superuser || u->role.connections < 0)
        return ST_OK;
    int32_t count = 0;
    for (const struct fe_conn *c = w->conns; c != NULL; c = c->next)
        count += c->state == FE_CONN_READY && strcmp(c->session->user, u->role.name) == 0;
    if (count < u->role.connections)
        return ST_OK;
    return err_set(&u->err, ST_TOO_MANY, "too many connections for role \"%s\"", u->role.name);
}

/* -- settings ---------------------------------------------------------------------------------- */

static NODISCARD status apply_setting(struct fe_login *u, const char *name, const char *value)
{
    return fe_settings_start(&u->conn->session->settings, name, value, &u->err);
}

/* One word of `options`; a backslash keeps the next character as it is. False: none is left. */
static bool option_word(struct arena *a, bytes *in, char **out)
{
    size_t i = 0, n = 0;
    while (i < in->size && (in->data[i] == ' ' || in->data[i] == '\t' || in->data[i] == '\n'))
        i++;
    if (i == in->size)
        return false;
    char *word = arena_alloc(a, in->size - i + 1);
    for (; i < in->size && in->data[i] != ' ' && in->data[i] != '\t' && in->data[i] != '\n'; i++) {
        if (in->data[i] == '\\' && i + 1 < in->size)
            i++;
        word[n++] = (char)in->data[i];
    }
    word[n] = '\0';
    *in = bytes_make(in->data + i, in->size - i);
    *out = word;
    return true;
}

/* "-c name=value", "-cname=value", "--name=value". */
static NODISCARD status apply_options(struct fe_login *u, bytes options)
{
    char *word;
    while (option_word(&u->arena, &options, &word)) {
        char *pair = NULL;
        if (strcmp(word, "-c") == 0 && !option_word(&u->arena, &options, &pair))
            return fatal(u, "42601", "-c requires a value");
        if (pair == NULL && (strncmp(word, "-c", 2) == 0 || strncmp(word, "--", 2) == 0))
            pair = word + 2;
        char *equals = pair != NULL ? strchr(pair, '=') : NULL;
        if (equals == NULL)
            return err_set_state(&u->err, ST_SYNTAX, "42601",
                                 "invalid command-line argument for server process: %s", word);
        *equals = '\0';
        for (char *p = pair; *p != '\0'; p++)
            if (*p == '-')
                *p = '_';
        ST_TRY(apply_setting(u, pair, equals + 1));
    }
    return ST_OK;
}

/* Second pass. `options` comes first: what the client names itself wins. */
static NODISCARD status apply_pairs(struct fe_login *u)
{
    bytes name, value, in = u->pairs;
    while (fe_startup_pair(&in, &name, &value) == ST_OK)
        if (name_is(name, "options"))
            ST_TRY(apply_options(u, value));
    in = u->pairs;
    while (fe_startup_pair(&in, &name, &value) == ST_OK) {
        bool other = name_is(name, "user") || name_is(name, "database") ||
                     name_is(name, "options") || name_is(name, "replication") ||
                     bytes_has_prefix(name, BYTES_LIT("_pq_."));
        if (!other)
            ST_TRY(apply_setting(u, arena_strdup(&u->arena, name), arena_strdup(&u->arena, value)));
    }
    return ST_OK;
}

/* -- answers ----------------------------------------------------------------------------------- */

static void put_negotiate(struct fe_login *u, struct obuf *o)
{
    if ((u->version & 0xffff) == 0 && u->unknown_count == 0)
        return;
    size_t at = fe_message_begin(o, 'v');
    obuf_be32(o, FE_PROTOCOL_3_0);
    obuf_be32(o, u->unknown_count);
    for (unsigned i = 0; i < u->unknown_count; i++)
        fe_put_string(o, u->unknown[i]);
    fe_message_end(o, at);
}

static void put_authentication_ok(struct obuf *o)
{
    size_t at = fe_message_begin(o, 'R');
    obuf_be32(o, 0);
    fe_message_end(o, at);
}

static void put_key(const struct fe_session *s, struct obuf *o)
{
    size_t at = fe_message_begin(o, 'K');
    obuf_be32(o, (uint32_t)s->number);
    obuf_put(o, s->secret, sizeof s->secret);
    fe_message_end(o, at);
}

static NODISCARD status begin_session(struct fe_login *u)
{
    struct fe_conn *c = u->conn;
    struct cl_node *node = c->worker->node;
    uint32_t ns;
    ST_TRY(check_role(u));
    put_authentication_ok(&c->out);
    if (cl_database_find(node, u->database, &ns) != ST_OK)
        return err_set_state(&u->err, ST_NOT_FOUND, "3D000", "database \"%s\" does not exist",
                             arena_strdup(&u->arena, u->database));
    struct fe_session *s = fe_session_new(c, ns, u->user, u->database);
    fe_session_renew_powers(s);
    ST_TRY(apply_pairs(u));
    fe_settings_fix(&s->settings, "session_authorization", s->user);
    fe_settings_fix(&s->settings, "is_superuser", s->superuser ? "on" : "off");
    fe_settings_fix(&s->settings, "ssl", fe_server_has_tls(c->worker->server) ? "on" : "off");
    fe_settings_fix(&s->settings, "max_connections",
                    arena_printf(&u->arena, "%lld",
                                 (long long)config_int(cl_node_config(node), "max_connections")));
    fe_settings_report(&s->settings, true, &c->out);
    put_key(s, &c->out);
    return ST_OK;
}

void fe_login_free(struct fe_login *u)
{
    if (u == NULL)
        return;
    fe_auth_free(u);
    arena_fini(&u->arena);
    free(u);
}

/* The proof goes on, or is over one way or the other. */
static void move_on(struct fe_login *u, status st)
{
    struct fe_conn *c = u->conn;
    fe_conn_dirty(c);
    if (st == ST_PENDING)
        return;
    if (st == ST_OK)
        st = begin_session(u);
    if (st == ST_OK) {
        fe_conn_ready(c);
        fe_ready(c->session);
    } else {
        fe_login_log(u);
        refuse(c, &u->err);
    }
    c->login = NULL;
    fe_login_free(u);
}

static NODISCARD status start(struct fe_login *u)
{
    ST_TRY(read_pairs(u));
    put_negotiate(u, &u->conn->out);
    ST_TRY(check_start(u));
    return fe_auth_start(u);
}

static void startup_message(struct fe_conn *c, uint32_t version, bytes pairs)
{
    struct fe_login *u = calloc(1, sizeof *u);
    ASSERT(u != NULL);
    u->conn = c;
    u->version = version;
    arena_init(&u->arena, 4096);
    u->pairs = arena_copy(&u->arena, pairs);
    c->login = u;
    move_on(u, start(u));
}

void fe_login_message(struct fe_conn *c, const struct fe_frame *f)
{
    struct fe_login *u = c->login;
    if (f->type == 'p')
        move_on(u, fe_auth_message(u, f->body));
    else
        move_on(u, err_set(&u->err, ST_PROTOCOL, "expected SASL response, got message type %d",
                           f->type));
}

static void encryption_request(struct fe_conn *c, bool *asked, size_t rest)
{
    if (*asked) {
        struct err err;
        (void)err_set(&err, ST_PROTOCOL, "encryption was asked for twice");
        refuse(c, &err);
        return;
    }
    *asked = true;
    if (rest > 0) {
        struct err err;
        obuf_u8(&c->out, 'N');
        (void)err_set(&err, ST_PROTOCOL, "received unencrypted data after an encryption request");
        refuse(c, &err);
    } else if (asked == &c->ssl_asked && c->tls == NULL && fe_conn_tls_start(c, false)) {
        fe_conn_tls_answer(c);
    } else {
        obuf_u8(&c->out, 'N');
        fe_conn_dirty(c);
    }
}

void fe_startup_packet(struct fe_conn *c, bytes body, size_t rest)
{
    ASSERT(body.size >= 4);
    uint32_t code;
    memcpy(&code, body.data, sizeof code);
    code = __builtin_bswap32(code);
    bytes left = bytes_make(body.data + 4, body.size - 4);
    if (code == FE_CODE_CANCEL) {
        if (left.size == 8) {
            uint32_t number;
            memcpy(&number, left.data, sizeof number);
            fe_cancel_request(c->worker, __builtin_bswap32(number), bytes_make(left.data + 4, 4));
        }
        fe_conn_drain(c);
    } else if (code == FE_CODE_SSL) {
        encryption_request(c, &c->ssl_asked, rest);
    } else if (code == FE_CODE_GSS) {
        encryption_request(c, &c->gss_asked, rest);
    } else if (code >> 16 == 3) {
        startup_message(c, code, left);
    } else {
        struct err err;
        (void)err_set(&err, ST_UNSUPPORTED,
                      "unsupported frontend protocol %u.%u: server supports 3.0", code >> 16,
                      code & 0xffffu);
        refuse(c, &err);
    }
}
